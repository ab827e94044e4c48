// @ts-check
// Intervals in lanes: which rectangles are visible, and what is under a point. The intervals of a
// lane are sorted and disjoint, so that drawing jumps from pixel to pixel by binary search. Nothing
// here accesses the page.

/** @typedef {import("./nesting.js").Intervals} Intervals */

/**
 * Returns the first place in a lane whose interval begins at or after a time.
 * @param {ArrayLike<number>} lane
 * @param {Intervals} events
 * @param {number} time
 * @param {number} [from]
 */
export function firstFrom(lane, events, time, from = 0) {
  const { start } = events;
  let low = from, high = lane.length, step = 1;
  // Looks nearby first: the next pixel is mostly close.
  while (low + step < high && start[lane[low + step]] < time) { low += step; step *= 2; }
  high = Math.min(high, low + step + 1);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (start[lane[middle]] < time) low = middle + 1; else high = middle;
  }
  return low;
}

/**
 * Calls `draw` for the visible rectangles of a lane, at most two for each pixel.
 * @param {ArrayLike<number>} lane
 * @param {Intervals} events
 * @param {[number, number]} range
 * @param {number} width  The width of the range in pixels.
 * @param {(index: number, x: number, width: number) => void} draw
 */
export function visitVisible(lane, events, range, width, draw) {
  const { start, duration } = events, [from, to] = range, scale = width / (to - from);
  let at = firstFrom(lane, events, from);
  if (at > 0) at -= 1;
  while (at < lane.length) {
    const index = lane[at], begin = start[index];
    if (begin > to) return;
    const x = (begin - from) * scale, wide = duration[index] * scale;
    if (x + wide < 0) { at += 1; continue; }
    if (wide >= 1) {
      draw(index, x, wide);
      at += 1;
      continue;
    }
    const pixel = Math.floor(x);
    draw(index, pixel, 1);
    // The last one that begins in this pixel may reach far beyond it.
    const next = from + (pixel + 1) / scale;
    at = Math.max(at + 1, firstFrom(lane, events, next, at) - 1);
  }
}

/**
 * Returns the event of a lane at a time, or the nearest one within a distance; -1 if there is none.
 * @param {ArrayLike<number>} lane
 * @param {Intervals} events
 * @param {number} time
 * @param {number} near
 */
export function hitLane(lane, events, time, near) {
  const { start, duration } = events;
  const next = firstFrom(lane, events, time + near);
  let best = -1, nearest = near;
  for (let at = next - 1; at >= 0 && at >= next - 3; at -= 1) {
    const index = lane[at];
    const distance = Math.max(0, time - start[index] - duration[index], start[index] - time);
    if (distance <= nearest) { best = index; nearest = distance; }
    if (distance === 0) break;
  }
  return best;
}

/**
 * Returns a range that lies in the whole, with a length between the least and that of the whole.
 * @param {[number, number]} range
 * @param {[number, number]} whole
 * @param {number} least
 * @returns {[number, number]}
 */
export function fittedRange(range, whole, least) {
  const length = Math.min(Math.max(range[1] - range[0], least), whole[1] - whole[0]);
  const middle = range[1] - range[0] < least ? (range[0] + range[1] - length) / 2 : range[0];
  const from = Math.min(Math.max(middle, whole[0]), whole[1] - length);
  return [from, from + length];
}
