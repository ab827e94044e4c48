// @ts-check
// Names as the page shows them, with the rules of the tables that Rust writes: functions by name and
// place, and kernels without what most of them have in common. Nothing here accesses the page.

const NAMESPACES = /(?<![\w:])at::(native::|cuda::)?/g;

/** A Python call as profilers name it, such as `train.py(29): forward`. */
const CALL = /^(.*)\((\d+)\): (.*)$/s;

/**
 * Returns a whole name as the page shows it: `forward (train.py:29)` for a Python call.
 * @param {string} name
 * @returns {string}
 */
export function shownName(name) {
  if (name === "") return "(no name)";
  const call = CALL.exec(name);
  return call ? `${call[3]} (${call[1]}:${call[2]})` : name;
}

/**
 * Returns a name as tables show it: that of a kernel is without its result, its parameters and the
 * namespaces of PyTorch.
 * @param {string} name
 * @returns {string}
 */
export function shortName(name) {
  if (!name.startsWith("void ")) return shownName(name);
  return withoutParameters(name.slice(5)).replaceAll("(anonymous namespace)::", "").replaceAll(NAMESPACES, "");
}

/**
 * Returns a declaration without the parentheses at its end and what is in them.
 * @param {string} text
 */
function withoutParameters(text) {
  if (!text.endsWith(")")) return text;
  let open = 0;
  for (let at = text.length - 1; at >= 0; at -= 1) {
    if (text[at] === ")") open += 1; else if (text[at] === "(") open -= 1;
    if (open === 0) return text.slice(0, at).trimEnd() || text;
  }
  return text;
}
