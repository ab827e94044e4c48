// @ts-check
// How the events of a track nest: their depth, their parents and their own time. The events of a
// track are sorted by start, and nest or are disjoint. Nothing here accesses the page.

/**
 * @typedef {object} Intervals
 * @property {import("./columns.js").Numbers} start
 * @property {import("./columns.js").Numbers} duration
 */

/**
 * Returns where events begin. Each gap is from the start of the event before if the event begins
 * inside of it, otherwise from its end.
 * @param {ArrayLike<number>} gap
 * @param {ArrayLike<number>} inside
 * @param {ArrayLike<number>} duration
 * @param {{ first: number, count: number }[]} tracks
 * @returns {Float64Array}
 */
export function startsOf(gap, inside, duration, tracks) {
  const starts = new Float64Array(gap.length);
  for (const { first, count } of tracks) {
    let start = 0, end = 0;
    for (let index = first; index < first + count; index += 1) {
      start = (inside[index] ? start : end) + gap[index];
      end = start + duration[index];
      starts[index] = start;
    }
  }
  return starts;
}

/**
 * @typedef {object} Nested
 * @property {Int32Array} parent  The position of the event around each event, or -1.
 * @property {Uint16Array} depth
 * @property {number} levels
 */

/**
 * Nests the events of a track, except those that are left out.
 *
 * a |-----------|     depth 0
 * b   |---|           depth 1, parent a
 * c         |--|      depth 1, parent a
 *
 * @param {Intervals} events
 * @param {number} first
 * @param {number} count
 * @param {(index: number) => boolean} [isKept]
 * @returns {Nested}
 */
export function nest(events, first, count, isKept) {
  const { start, duration } = events;
  const parent = new Int32Array(count).fill(-1);
  const depth = new Uint16Array(count).fill(65535);
  /** @type {number[]} */
  const open = [];
  let levels = 0;
  for (let offset = 0; offset < count; offset += 1) {
    const index = first + offset, begin = start[index];
    if (isKept && !isKept(index)) continue;
    while (open.length > 0 && start[open[open.length - 1]] + duration[open[open.length - 1]] <= begin) open.pop();
    parent[offset] = open.length > 0 ? open[open.length - 1] : -1;
    depth[offset] = Math.min(open.length, 65534);
    if (duration[index] > 0) open.push(index);
    if (depth[offset] + 1 > levels) levels = depth[offset] + 1;
  }
  return { parent, depth, levels };
}

/**
 * Returns the positions of each level of a track, sorted by start.
 * @param {Nested} nested
 * @param {number} first
 * @returns {Int32Array[]}
 */
export function levelPositions(nested, first) {
  const counts = new Uint32Array(nested.levels);
  for (const depth of nested.depth) if (depth < nested.levels) counts[depth] += 1;
  const levels = Array.from(counts, (count) => new Int32Array(count));
  counts.fill(0);
  for (let offset = 0; offset < nested.depth.length; offset += 1) {
    const depth = nested.depth[offset];
    if (depth < nested.levels) { levels[depth][counts[depth]] = first + offset; counts[depth] += 1; }
  }
  return levels;
}

/**
 * Subtracts from the time of each event that of the events directly inside of it.
 * @param {Intervals} events
 * @param {Nested} nested
 * @param {number} first
 * @param {Float64Array} own
 */
export function subtractInner(events, nested, first, own) {
  for (let offset = 0; offset < nested.parent.length; offset += 1) own[first + offset] = events.duration[first + offset];
  for (let offset = 0; offset < nested.parent.length; offset += 1) {
    const parent = nested.parent[offset];
    if (parent >= 0) own[parent] = Math.max(0, own[parent] - events.duration[first + offset]);
  }
}
