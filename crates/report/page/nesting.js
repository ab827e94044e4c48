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
 * @property {Float64Array} own  The time of each event without the events directly inside of it.
 * @property {Int32Array[]} levels  The positions of each level, sorted by start.
 */

/** The depth of events that are left out, and the largest one of the others. */
const NOWHERE = 65535, DEEPEST = 65534;

/**
 * Nests the events of a track, except those that are left out.
 *
 * a |-----------|     level 0
 * b   |---|           level 1, parent a
 * c         |--|      level 1, parent a
 *
 * One pass does everything, because the page waits for it when it opens.
 *
 * @param {Intervals} events
 * @param {number} first
 * @param {number} count
 * @param {(index: number) => boolean} [isKept]
 * @returns {Nested}
 */
export function nest(events, first, count, isKept) {
  const { start, duration } = events;
  const parent = new Int32Array(count), depth = new Uint16Array(count), own = new Float64Array(count);
  let open = new Int32Array(64), ends = new Float64Array(64), inside = 0;
  /** @type {number[]} */
  const counts = [];
  for (let offset = 0; offset < count; offset += 1) {
    const index = first + offset, begin = start[index], time = duration[index];
    own[offset] = time;
    parent[offset] = -1;
    if (isKept && !isKept(index)) { depth[offset] = NOWHERE; continue; }
    while (inside > 0 && ends[inside - 1] <= begin) inside -= 1;
    if (inside > 0) {
      const around = open[inside - 1];
      parent[offset] = around;
      own[around - first] = Math.max(0, own[around - first] - time);
    }
    const level = Math.min(inside, DEEPEST);
    depth[offset] = level;
    if (level === counts.length) counts.push(1); else counts[level] += 1;
    if (time === 0) continue;
    if (inside === open.length) [open, ends] = [twice(open), twice(ends)];
    open[inside] = index;
    ends[inside] = begin + time;
    inside += 1;
  }
  return { parent, own, levels: levelsOf(depth, counts, first) };
}

/**
 * Sorts positions by depth.
 * @param {Uint16Array} depth
 * @param {number[]} counts  The number of events of each depth.
 * @param {number} first
 * @returns {Int32Array[]}
 */
function levelsOf(depth, counts, first) {
  const next = new Uint32Array(counts.length);
  for (let level = 1; level < counts.length; level += 1) next[level] = next[level - 1] + counts[level - 1];
  const levels = counts.map((count, level) => [next[level], next[level] + count]);
  const positions = new Int32Array(depth.length);
  for (let offset = 0; offset < depth.length; offset += 1) {
    const level = depth[offset];
    if (level < NOWHERE) { positions[next[level]] = first + offset; next[level] += 1; }
  }
  return levels.map(([from, to]) => positions.subarray(from, to));
}

/**
 * Returns a list with twice the room.
 * @template {Int32Array | Float64Array} List
 * @param {List} list
 * @returns {List}
 */
function twice(list) {
  const larger = /** @type {any} */ (new /** @type {any} */ (list.constructor)(2 * list.length));
  larger.set(list);
  return larger;
}
