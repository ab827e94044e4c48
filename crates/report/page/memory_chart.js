// @ts-check
// The stacked chart of memory: pure functions from numbers to numbers and texts.

/** @typedef {{ lower: number[], upper: number[] }} Layer */

/**
 * Returns a time in microseconds as text.
 * @param {number} microseconds
 */
export function microsText(microseconds) {
  if (microseconds >= 1e6) return `${(microseconds / 1e6).toFixed(3)} s`;
  if (microseconds >= 1e3) return `${(microseconds / 1e3).toFixed(3)} ms`;
  return `${microseconds} us`;
}

/**
 * Returns the last index whose time is not after `time`; the first one if all are.
 * @param {number[]} times
 * @param {number} time
 */
export function indexAt(times, time) {
  let low = 0, high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1; else high = middle;
  }
  return Math.max(0, low - 1);
}

/**
 * Returns at most about `most` points: the highest and the last one of each time interval.
 * @param {number[]} times
 * @param {number[][]} rows
 * @param {number} most
 */
export function thinnedPoints(times, rows, most) {
  if (times.length <= most) return { times, rows };
  const first = times[0], span = times[times.length - 1] - first + 1;
  /** @param {number} index */
  const stretch = (index) => Math.floor((times[index] - first) * most / 2 / span);
  const total = rows.map((row) => row.reduce((sum, bytes) => sum + bytes, 0));
  /** @type {number[]} */
  const kept = [];
  for (let begin = 0, end = 0; begin < times.length; begin = end) {
    let highest = begin;
    for (end = begin + 1; end < times.length && stretch(end) === stretch(begin); end += 1) {
      if (total[end] > total[highest]) highest = end;
    }
    kept.push(highest);
    if (highest !== end - 1) kept.push(end - 1);
  }
  return { times: kept.map((index) => times[index]), rows: kept.map((index) => rows[index]) };
}

/**
 * Returns, for each category that is shown, the lower and upper edges of its layer at each point.
 * @param {number[][]} rows
 * @param {boolean[]} shown
 * @returns {(Layer | null)[]}
 */
export function layersOf(rows, shown) {
  const floor = rows.map(() => 0);
  return shown.map((isShown, category) => {
    if (!isShown) return null;
    const lower = floor.slice();
    rows.forEach((row, index) => { floor[index] += Math.max(0, row[category]); });
    return { lower, upper: floor.slice() };
  });
}

/**
 * Returns the highest edge.
 * @param {(Layer | null)[]} layered
 */
export function highestEdge(layered) {
  let most = 0;
  for (const layer of layered) if (layer) for (const value of layer.upper) most = Math.max(most, value);
  return most;
}

/**
 * Returns round numbers from zero to at least `most`.
 * @param {number} most
 * @param {number} count
 * @param {number} base
 */
export function ticksTo(most, count, base) {
  if (most <= 0) return [0];
  const rough = most / count;
  const power = base ** Math.floor(Math.log(rough) / Math.log(base));
  const steps = base === 2 ? [1, 2] : [1, 2, 5, 10];
  const step = power * (steps.find((factor) => power * factor >= rough) || base);
  const found = [];
  for (let value = 0; value < most + step; value += step) found.push(value);
  return found;
}

/**
 * Returns the outline of a layer: memory keeps its size until it changes, so edges are steps.
 * @param {Layer} layer
 * @param {number[]} xs
 * @param {number} end
 * @param {(value: number) => number} y
 */
export function outlineOf(layer, xs, end, y) {
  /** @param {number[]} values */
  const edge = (values) => values.map((value, index) => {
    const next = index + 1 < xs.length ? xs[index + 1] : end;
    return [[xs[index], y(value)], [next, y(value)]];
  }).flat();
  const points = edge(layer.upper).concat(edge(layer.lower).reverse());
  return "M" + points.map(([px, py]) => `${px.toFixed(1)},${py.toFixed(1)}`).join("L") + "Z";
}
