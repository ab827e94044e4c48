// @ts-check
// A range of a profile as a Chrome trace, which Perfetto and mindprof read. Nothing here accesses
// the page.
import { eventsIn } from "./sums.js";

const TRACE_CATEGORIES = ["cpu_op", "user_annotation", "python_function", "cuda_runtime", "kernel", "gpu_user_annotation", "other"];

/**
 * Returns the events that begin in a range as the text of a trace file, with the kernels of their
 * operators linked to them. Times are microseconds.
 * @param {import("./profile.js").Profile} profile
 * @param {[number, number]} range
 * @returns {string}
 */
export function traceText(profile, range) {
  /** @type {any[]} */
  const events = [];
  const external = linkNumbers(innermostOwners(profile)), correlation = linkNumbers(linksOf(profile, "launch"));
  // A launch has the number of the operator whose kernel it launches.
  for (const { from, to } of linksOf(profile, "launch")) if (external.has(to)) external.set(from, /** @type {number} */ (external.get(to)));
  /** The threads and streams that have a name: events that overlap are further tracks of the same thread. */
  const named = new Set();
  for (const track of profile.tracks) {
    const { process: pid, thread: tid } = track;
    const key = `${pid} ${tid}`;
    if (!named.has(key)) events.push({ ph: "M", name: "thread_name", pid, tid, args: { name: track.name.replace(/^(rank \d+, )?process -?\d+, /, "$1").replace(/, events that overlap \(\d+\)$/, "") } });
    named.add(key);
    const [first, end] = eventsIn(profile, track, range);
    for (let index = first; index < end; index += 1) {
      /** @type {Record<string, any>} */
      const args = track.is_stream ? { device: pid, stream: tid } : {};
      if (external.has(index)) args["External id"] = external.get(index);
      if (correlation.has(index)) args.correlation = correlation.get(index);
      const shapes = readShapes(profile.shapesOf(index));
      if (shapes) args["Input Dims"] = shapes;
      events.push({
        ph: "X", cat: traceCategory(profile.category[index], profile.nameOf(index)), name: profile.nameOf(index), pid, tid,
        ts: profile.start[index] / 1000, dur: profile.duration[index] / 1000, args,
      });
    }
  }
  return JSON.stringify({ schemaVersion: 1, traceEvents: events });
}

/**
 * Returns the category of an event in a trace file. Copies, fills and calls of the
 * driver have categories of their own there.
 * @param {number} category
 * @param {string} name
 */
function traceCategory(category, name) {
  const found = TRACE_CATEGORIES[category];
  if (found === "cuda_runtime") return /^cu(?!da)/.test(name) ? "cuda_driver" : found;
  if (found !== "kernel") return found;
  return name.startsWith("Memcpy") ? "gpu_memcpy" : name.startsWith("Memset") ? "gpu_memset" : found;
}

/**
 * Returns the number that both ends of each arrow share, by the position of the end.
 * @param {{ from: number, to: number }[]} links
 * @returns {Map<number, number>}
 */
function linkNumbers(links) {
  const numbers = new Map();
  for (const { from, to } of links) numbers.set(from, from + 1).set(to, from + 1);
  return numbers;
}

/**
 * Returns the arrows from operators to their kernels. The innermost of merged calls owns the kernels,
 * because whoever reads the trace takes those of the innermost one.
 * @param {import("./profile.js").Profile} profile
 */
function innermostOwners(profile) {
  /** @type {Map<number, number>} */
  const inner = new Map();
  profile.isMerged.forEach((isMerged, index) => { if (isMerged) inner.set(profile.parent[index], index); });
  return linksOf(profile, "owner").map(({ from, to }) => {
    let owner = from;
    for (let next = inner.get(owner); next !== undefined; next = inner.get(owner)) owner = next;
    return { from: owner, to };
  });
}

/**
 * Returns the arrows of a kind.
 * @param {import("./profile.js").Profile} profile
 * @param {string} kind
 * @returns {{ from: number, to: number }[]}
 */
function linksOf(profile, kind) {
  const heads = profile.columns.get(`${kind}_to`) || new Uint8Array(0), tails = profile.columns.get(`${kind}_from`) || heads;
  return Array.from(heads, (to, i) => ({ from: tails[i], to }));
}

/**
 * Returns the shapes of inputs as lists; null if there are none.
 * @param {string} text
 */
function readShapes(text) {
  if (!text) return null;
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
