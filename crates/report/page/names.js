// @ts-check
// Names of kernels without what most of them have in common, with the rule of the tables that Rust
// writes. Nothing here accesses the page.

const NAMESPACES = /(?<![\w:])at::(native::|cuda::)?/g;

/**
 * Returns the name of a kernel without its result, its parameters and the namespaces of PyTorch.
 * Other names stay as they are.
 * @param {string} name
 * @returns {string}
 */
export function shortName(name) {
  if (!name.startsWith("void ")) return name;
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
