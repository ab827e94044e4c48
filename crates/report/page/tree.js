// @ts-check
// The tree of a flame graph: widths with what frames call, inverted trees, and the layout of frames
// in levels. Nothing here accesses the page.

/**
 * @typedef {object} FlameTree
 * @property {ArrayLike<number>} caller  The caller of each frame; zero is the root.
 * @property {ArrayLike<number>} frame  The name of each frame.
 * @property {Float64Array} own  What was spent at each frame itself.
 * @property {Float64Array} whole  The same with what it calls.
 */

/**
 * Sums up the amounts of a tree. Callers precede what they call.
 * @param {ArrayLike<number>} caller
 * @param {ArrayLike<number>} frame
 * @param {ArrayLike<number>} amount
 * @returns {FlameTree}
 */
export function flameTree(caller, frame, amount) {
  const own = Float64Array.from(/** @type {any} */ (amount));
  const whole = own.slice();
  for (let node = whole.length - 1; node > 0; node -= 1) whole[caller[node]] += whole[node];
  return { caller, frame, own, whole };
}

/**
 * Turns a tree around: the innermost frames become the outermost, with their callers inside.
 * @param {FlameTree} tree
 * @returns {FlameTree}
 */
export function inverted(tree) {
  const caller = [0], frame = [0], amount = [0];
  /** @type {Map<string, number>} */
  const known = new Map();
  for (let node = 1; node < tree.own.length; node += 1) {
    if (tree.own[node] === 0) continue;
    let at = 0;
    for (let up = node; up !== 0; up = tree.caller[up]) {
      const key = `${at}.${tree.frame[up]}`;
      let next = known.get(key);
      if (next === undefined) {
        next = caller.length;
        known.set(key, next);
        caller.push(at); frame.push(tree.frame[up]); amount.push(0);
      }
      at = next;
    }
    amount[at] += tree.own[node];
  }
  return flameTree(caller, frame, amount);
}

/**
 * @typedef {object} FlameLayout
 * @property {Float64Array} start
 * @property {Float64Array} duration
 * @property {number[][]} levels  The nodes of each level, sorted by start.
 */

/**
 * Lays the frames out: siblings beside each other, the widest first, each below its caller.
 * @param {FlameTree} tree
 * @returns {FlameLayout}
 */
export function flameLayout(tree) {
  const count = tree.whole.length;
  /** @type {number[][]} */
  const children = Array.from({ length: count }, () => []);
  for (let node = 1; node < count; node += 1) if (tree.whole[node] > 0) children[tree.caller[node]].push(node);
  const start = new Float64Array(count);
  /** @type {number[][]} */
  const levels = [];
  let row = [0];
  while (row.length > 0) {
    levels.push(row);
    /** @type {number[]} */
    const next = [];
    for (const node of row) {
      let at = start[node];
      for (const child of children[node].sort((a, b) => tree.whole[b] - tree.whole[a] || a - b)) {
        start[child] = at;
        at += tree.whole[child];
        next.push(child);
      }
    }
    row = next;
  }
  return { start, duration: tree.whole, levels };
}

/**
 * Sums up what was spent by frame: by itself, and with what it calls, counted once in recursions.
 * @param {FlameTree} tree
 * @returns {{ frame: number, own: number, whole: number }[]}
 */
export function sumByFrame(tree) {
  /** @type {Map<number, { frame: number, own: number, whole: number }>} */
  const sums = new Map();
  for (let node = 1; node < tree.own.length; node += 1) {
    const frame = tree.frame[node];
    const sum = sums.get(frame) || { frame, own: 0, whole: 0 };
    sum.own += tree.own[node];
    let up = tree.caller[node];
    while (up !== 0 && tree.frame[up] !== frame) up = tree.caller[up];
    if (up === 0) sum.whole += tree.whole[node];
    sums.set(frame, sum);
  }
  return [...sums.values()].sort((a, b) => b.own - a.own);
}
