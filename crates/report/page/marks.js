// @ts-check
// Round numbers for rulers. Nothing here accesses the page.

/**
 * Returns round times in a range, and the step between them.
 * @param {[number, number]} range
 * @param {number} most
 * @returns {{ marks: number[], step: number }}
 */
export function rulerMarks(range, most) {
  const rough = Math.max((range[1] - range[0]) / Math.max(most, 1), 1e-3);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * ([1, 2, 5, 10].find((factor) => power * factor >= rough) || 10);
  const marks = [];
  for (let at = Math.ceil(range[0] / step); at * step <= range[1]; at += 1) marks.push(at * step);
  return { marks, step };
}
