// Tests of intervals in lanes.
import assert from "node:assert/strict";
import test from "node:test";
import { firstFrom, fittedRange, hitLane, visitVisible } from "../../crates/report/page/lanes.js";
import { nest, startsOf } from "../../crates/report/page/nesting.js";
import { rulerMarks } from "../../crates/report/page/marks.js";

/** Returns disjoint intervals of a pseudo-random lane. */
function randomLane(count, seed) {
  let state = seed;
  const next = (most) => { state = (state * 1103515245 + 12345) % 2147483648; return state % most; };
  const start = [], duration = [];
  let at = 0;
  for (let i = 0; i < count; i += 1) { at += next(50); start.push(at); const long = next(40); duration.push(long); at += long; }
  return { lane: start.map((_, index) => index), events: { start, duration } };
}

test("the first interval from a time on is the one that a scan finds", () => {
  const { lane, events } = randomLane(500, 7);
  for (let time = -10; time < 25000; time += 37) {
    const scanned = events.start.findIndex((start) => start >= time);
    assert.equal(firstFrom(lane, events, time), scanned < 0 ? lane.length : scanned);
  }
});

test("drawing covers every pixel that an interval touches", () => {
  const { lane, events } = randomLane(2000, 3);
  const width = 300;
  for (const range of [[0, 90000], [1000, 3000], [5000, 5100]]) {
    const scale = width / (range[1] - range[0]);
    const drawn = new Set();
    let calls = 0;
    visitVisible(lane, events, range, width, (_, x, wide) => {
      calls += 1;
      for (let pixel = Math.floor(x); pixel < x + wide; pixel += 1) drawn.add(pixel);
    });
    assert.ok(calls <= 2 * width + 2, `${calls} rectangles`);
    lane.forEach((index) => {
      const x = (events.start[index] - range[0]) * scale;
      if (x >= 0 && x < width) assert.ok(drawn.has(Math.floor(x)), `pixel ${x} of ${range}`);
    });
  }
});

test("an interval wider than a pixel is drawn in full after a narrow one in the same pixel", () => {
  const events = { start: [104, 108, 900], duration: [2, 700, 80] };
  const drawn = [];
  visitVisible([0, 1, 2], events, [0, 1000], 125, (index, x, wide) => drawn.push([index, x, wide]));
  assert.deepEqual(drawn, [[0, 13, 1], [1, 13.5, 87.5], [2, 112.5, 10]]);
  for (const [count, width] of [[2000, 300], [5000, 77]]) {
    const { lane, events: many } = randomLane(count, count);
    const whole = [0, many.start[count - 1] + 50], scale = width / whole[1];
    const seen = new Map();
    visitVisible(lane, many, whole, width, (index, x, wide) => seen.set(index, wide));
    lane.forEach((index) => {
      if (many.duration[index] * scale >= 1) assert.equal(seen.get(index), many.duration[index] * scale, `interval ${index}`);
    });
  }
});

test("a hit finds the interval at a time, or the nearest within reach", () => {
  const events = { start: [0, 100, 200], duration: [50, 0, 10] };
  const lane = [0, 1, 2];
  assert.equal(hitLane(lane, events, 25, 0), 0);
  assert.equal(hitLane(lane, events, 75, 0), -1);
  assert.equal(hitLane(lane, events, 98, 3), 1);
  assert.equal(hitLane(lane, events, 212, 3), 2);
});

test("events nest by time, and calls that are left out leave no gap", () => {
  // a |----------|   b   |---|   c |-| inside of b, d after a
  const events = { start: [0, 10, 12, 100], duration: [50, 20, 5, 10] };
  const nested = nest(events, 0, 4);
  assert.deepEqual(Array.from(nested.parent), [-1, 0, 1, -1]);
  assert.deepEqual(nested.levels.map((level) => Array.from(level)), [[0, 3], [1], [2]]);
  assert.deepEqual(Array.from(nested.own), [30, 15, 5, 10]);
  const without = nest(events, 0, 4, (index) => index !== 1);
  assert.deepEqual(without.levels.map((level) => Array.from(level)), [[0, 3], [2]]);
});

test("events of a later track keep their positions, and zero durations have nothing inside", () => {
  // a |--|   then b at a point, c |---| from the same point on
  const nested = nest({ start: [0, 0, 10, 10], duration: [9, 5, 0, 7] }, 1, 3);
  assert.deepEqual(Array.from(nested.parent), [-1, -1, -1]);
  assert.deepEqual(nested.levels.map((level) => Array.from(level)), [[1, 2, 3]]);
});

test("a hundred levels are kept apart, and no events have none", () => {
  const count = 100, events = { start: Array.from({ length: count }, (_, index) => index), duration: Array.from({ length: count }, (_, index) => 1000 - 2 * index) };
  const nested = nest(events, 0, count);
  assert.deepEqual(nested.levels.map((level) => Array.from(level)), Array.from({ length: count }, (_, index) => [index]));
  assert.deepEqual(Array.from(nested.parent), Array.from({ length: count }, (_, index) => index - 1));
  assert.equal(nested.own[0], 2);
  assert.deepEqual(nest(events, 0, 0).levels, []);
});

test("starts follow from gaps, from the start or the end of the event before", () => {
  // a |-----|  b inside of it, c after b but inside of a; d on another track
  const tracks = [{ first: 0, count: 3 }, { first: 3, count: 1 }];
  assert.deepEqual(Array.from(startsOf([5, 10, 3, 7], [0, 1, 0, 0], [100, 20, 9, 4], tracks)), [5, 15, 38, 7]);
});

test("a range stays inside of the whole and keeps a least length", () => {
  assert.deepEqual(fittedRange([-10, 20], [0, 100], 5), [0, 30]);
  assert.deepEqual(fittedRange([90, 120], [0, 100], 5), [70, 100]);
  assert.deepEqual(fittedRange([50, 50.5], [0, 100], 5), [47.75, 52.75]);
  assert.deepEqual(fittedRange([0, 1000], [0, 100], 5), [0, 100]);
});

test("marks of a ruler are round and as many as there is room for", () => {
  const { marks, step } = rulerMarks([13, 117], 10);
  assert.equal(step, 20);
  assert.deepEqual(marks, [20, 40, 60, 80, 100]);
});
