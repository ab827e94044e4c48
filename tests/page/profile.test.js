// Tests of the profile behind a page, its sums, and the flame graph.
import assert from "node:assert/strict";
import test from "node:test";
import { Profile, cpuRange, deviceRange, isBehind, openingRange } from "../../crates/report/page/profile.js";
import { differences, eventsIn, histogram, percentile, sumByName, toldPercentiles } from "../../crates/report/page/sums.js";
import { flameLayout, flameTree, inverted, sumByFrame } from "../../crates/report/page/tree.js";
import { calleesOf, kernelsOf, launchersOf } from "../../crates/report/page/inside.js";
import { costOf } from "../../crates/report/page/costs.js";
import { differenceTable } from "../../crates/report/page/events_table.js";
import { traceText } from "../../crates/report/page/trace_file.js";

// step |-------------------------|  thread
// mm      |-----|    add |---|
// kernel       |-------|            stream, owned by mm
function small() {
  const columns = new Map(Object.entries({
    gap: [0, 10, 10, 20], inside: [0, 1, 0, 0], duration: [100, 20, 10, 25], name: [1, 2, 3, 4], category: [1, 0, 0, 4],
    owner_from: [1], owner_to: [3], own_at: [2], own: [9],
  }).map(([name, values]) => [name, Uint32Array.from(values)]));
  const tracks = [
    { name: "main", is_stream: false, process: 9, thread: 10, first: 0, count: 3 },
    { name: "stream 7", is_stream: true, process: 0, thread: 7, first: 3, count: 1 },
  ];
  const steps = [{ number: 5, start: 0, duration: 100, slow: false }];
  return new Profile({ strings: ["", "step", "mm", "add", "kernel"], tracks, steps, events: 4, span: 100, memory: [] }, columns);
}

test("events have parents, own times and tracks", () => {
  const profile = small();
  assert.deepEqual(Array.from(profile.parent), [-1, 0, 0, -1]);
  assert.deepEqual(Array.from(profile.own), [70, 20, 9, 25]);
  assert.equal(profile.trackOf(3), 1);
  assert.deepEqual(profile.arrowsOf(3).map(({ other, isFrom }) => [other, isFrom]), [[1, false]]);
  assert.deepEqual(profile.arrowsOf(1).map(({ other, isFrom }) => [other, isFrom]), [[3, true]]);
  assert.equal(profile.stepAt(99)?.number, 5);
  assert.equal(profile.stepAt(100), null);
});

test("sums of a range have the events that begin in it", () => {
  const profile = small();
  const sums = sumByName(profile, [5, 30]);
  assert.deepEqual(sums.map((sum) => [profile.strings[sum.name], sum.count, sum.own, sum.device]), [["mm", 1, 20, 25], ["kernel", 1, 0, 25]]);
  assert.deepEqual(eventsIn(profile, profile.tracks[0], [10, 41]), [1, 3]);
});

// f      |--------------|        a Python function that calls itself
// f         |-------|
// range  |------|                on the CPU and, by the same name, on the device
// x                |---|         with an x inside that is its only content
// x                 |-|
test("calls are counted as tables count them", () => {
  const columns = new Map(Object.entries({
    gap: [0, 10, 0, 0, 1, 5], inside: [0, 1, 0, 0, 1, 0], duration: [100, 60, 20, 10, 5, 30], name: [1, 1, 2, 3, 3, 2], category: [2, 2, 1, 0, 0, 5],
    own_at: [3], own: [10], merged_at: [4],
  }).map(([name, values]) => [name, Uint32Array.from(values)]));
  const tracks = [{ name: "main", is_stream: false, process: 1, thread: 1, first: 0, count: 5 }, { name: "stream 7", is_stream: true, process: 0, thread: 7, first: 5, count: 1 }];
  const profile = new Profile({ strings: ["", "f", "range", "x"], tracks, steps: [], events: 6, span: 200, memory: [] }, columns);
  const sums = sumByName(profile, [0, 200]).map((sum) => [profile.strings[sum.name], sum.count, sum.total, sum.device]);
  assert.deepEqual(sums.sort(), [["f", 2, 100, 0], ["range", 1, 0, 30], ["range", 1, 20, 0], ["x", 1, 10, 0]]);
});

test("differences of steps are signed and the largest comes first", () => {
  const sum = (name, own, count) => ({ name, group: 0, category: 0, own, count, total: own, device: 0 });
  const found = differences([sum(1, 10, 1), sum(2, 5, 2)], [sum(1, 40, 4), sum(3, 1, 1)], 2);
  assert.deepEqual(found.map((one) => [one.name, one.time, one.calls, one.usualCalls]), [[1, -30, 1, 4], [2, 5, 2, 0]]);
});

test("percentiles of few values are not told", () => {
  const told = (/** @type {number} */ count) => toldPercentiles(Float64Array.from({ length: count }, (_, index) => index + 1), [["p90", 90, 20], ["p99", 99, 200]]);
  assert.deepEqual(told(1), []);
  assert.deepEqual(told(19), [["p50", 10]]);
  assert.deepEqual(told(20), [["p50", 10], ["p90", 18]]);
  assert.deepEqual(told(200), [["p50", 100], ["p90", 180], ["p99", 198]]);
});

test("percentiles are values that occur, and histograms count all", () => {
  const sorted = Float64Array.from({ length: 100 }, (_, index) => index + 1);
  assert.deepEqual([0.5, 0.9, 0.99, 1].map((share) => percentile(sorted, share)), [50, 90, 99, 100]);
  assert.equal(histogram(sorted, 10).reduce((sum, bar) => sum + bar.count, 0), 100);
  assert.equal(histogram([5, 5], 4).reduce((sum, bar) => sum + bar.count, 0), 2);
});

test("a flame graph sums up callees, and turned around it keeps its total", () => {
  // root -> main(1) -> f(2) 30, g(3) 10; root -> g(3) 5
  const tree = flameTree([0, 0, 1, 1, 0], [0, 1, 2, 3, 3], [0, 0, 30, 10, 5]);
  assert.deepEqual(Array.from(tree.whole), [45, 40, 30, 10, 5]);
  const turned = inverted(tree);
  assert.equal(turned.whole[0], 45);
  const roots = Array.from(turned.whole.keys()).filter((node) => node > 0 && turned.caller[node] === 0);
  assert.deepEqual(roots.map((node) => [turned.frame[node], turned.whole[node]]), [[2, 30], [3, 15]]);
  const layout = flameLayout(tree);
  assert.deepEqual(layout.levels.map((level) => Array.from(level)), [[0], [1, 4], [2, 3]]);
  assert.deepEqual([layout.start[2], layout.start[3], layout.start[4]], [0, 30, 40]);
});

test("a recursion counts once in the total of its frame", () => {
  const tree = flameTree([0, 0, 1, 2], [0, 1, 2, 1], [0, 1, 2, 3]);
  assert.deepEqual(sumByFrame(tree), [{ frame: 1, own: 4, whole: 6 }, { frame: 2, own: 2, whole: 5 }]);
});

test("a selection is a trace in microseconds", () => {
  const trace = JSON.parse(traceText(small(), [0, 30]));
  const events = trace.traceEvents.filter((event) => event.ph === "X");
  assert.deepEqual(events.map((event) => [event.name, event.cat, event.ts, event.dur]), [["step", "user_annotation", 0, 0.1], ["mm", "cpu_op", 0.01, 0.02], ["kernel", "kernel", 0.02, 0.025]]);
  assert.deepEqual(events.map((event) => [event.pid, event.tid]), [[9, 10], [9, 10], [0, 7]]);
  assert.deepEqual(events.map((event) => event.args), [{}, { "External id": 2 }, { device: 0, stream: 7, "External id": 2 }]);
});

// kernel   |-----|            two tracks of one stream, because its works overlap
// Memcpy      |-----|
// Memset            |-|
test("a selection names a stream once, and copies and fills are no kernels", () => {
  const columns = new Map(Object.entries({ gap: [0, 10, 5], inside: [0, 0, 0], duration: [20, 20, 5], name: [1, 2, 3], category: [4, 4, 4] })
    .map(([name, values]) => [name, Uint32Array.from(values)]));
  const stream = { is_stream: true, process: 0, thread: 7 };
  const tracks = [{ ...stream, name: "cuda:0 stream 7", first: 0, count: 1 }, { ...stream, name: "cuda:0 stream 7, events that overlap (1)", first: 1, count: 2 }];
  const strings = ["", "kernel", "Memcpy HtoD (Pageable -> Device)", "Memset (Device)"];
  const profile = new Profile({ strings, tracks, steps: [], events: 3, span: 100, memory: [] }, columns);
  const events = JSON.parse(traceText(profile, [0, 100])).traceEvents;
  assert.deepEqual(events.filter((event) => event.ph === "M").map((event) => event.args.name), ["cuda:0 stream 7"]);
  assert.deepEqual(events.filter((event) => event.ph === "X").map((event) => event.cat), ["kernel", "gpu_memcpy", "gpu_memset"]);
});

// f   |-------------------|   f calls x, which is a merged pair and calls z and y
// x     |---------------|
// x      |-------------|
// z        |-----| y |-|      z launches the kernel
test("what a function calls is what is directly inside of it, and its kernels are those of all inside", () => {
  const columns = new Map(Object.entries({
    gap: [0, 1, 1, 1, 5, 20], inside: [0, 1, 1, 1, 0, 0], duration: [100, 50, 40, 20, 10, 30], name: [1, 2, 2, 4, 3, 5], category: [2, 0, 0, 0, 0, 4],
    merged_at: [2], owner_from: [3], owner_to: [5],
  }).map(([name, values]) => [name, Uint32Array.from(values)]));
  const tracks = [{ name: "main", is_stream: false, process: 1, thread: 1, first: 0, count: 5 }, { name: "stream 7", is_stream: true, process: 0, thread: 7, first: 5, count: 1 }];
  const profile = new Profile({ strings: ["", "f", "x", "y", "z", "kernel"], tracks, steps: [], events: 6, span: 200, memory: [] }, columns);
  assert.deepEqual(Array.from(profile.parent), [-1, 0, 1, 2, 2, -1]);
  assert.deepEqual(calleesOf(profile, [0]), [1]);
  assert.deepEqual(calleesOf(profile, [1]), [3, 4]);
  assert.deepEqual(kernelsOf(profile, [0]), [{ kernel: 5, owner: 3 }]);
  assert.deepEqual(kernelsOf(profile, [4]), []);
  assert.deepEqual(launchersOf(profile, [5, 4]), [3, -1]);
});

// CPU     |-1-|-2-|
// stream      |--1--|--2--|     kernels a, b: the device works for a step after the CPU has made it
test("a step of a device that runs behind has the work that was launched in it", () => {
  const columns = new Map(Object.entries({
    gap: [0, 5, 10, 0, 0], inside: [0, 0, 0, 0, 0], duration: [5, 5, 30, 30, 25], name: [1, 1, 2, 3, 4], category: [0, 0, 4, 4, 5],
  }).map(([name, values]) => [name, Uint32Array.from(values)]));
  const tracks = [
    { name: "main", is_stream: false, process: 1, thread: 1, first: 0, count: 2 },
    { name: "stream 7", is_stream: true, process: 0, thread: 7, first: 2, count: 2 },
    { name: "stream 8", is_stream: true, process: 0, thread: 8, first: 4, count: 1 },
  ];
  const steps = [{ number: 1, start: 0, duration: 10, slow: false, device: [10, 30] }, { number: 2, start: 10, duration: 10, slow: false, device: [40, 30] }];
  const profile = new Profile({ strings: ["", "mm", "a", "b", "ProfilerStep#1"], tracks, steps, events: 5, span: 70, memory: [] }, columns);
  assert.ok(isBehind(steps[0]) && isBehind(steps[1]));
  assert.ok(!isBehind({ number: 1, start: 0, duration: 100, slow: false, device: [0, 105] }) && !isBehind({ number: 1, start: 0, duration: 100, slow: false }));
  const names = (step) => sumByName(profile, cpuRange(step), deviceRange(step)).map((sum) => profile.strings[sum.name]);
  assert.deepEqual(names(steps[0]), ["a", "mm"]);
  assert.deepEqual(names(steps[1]), ["b", "mm"]);
  const table = differenceTable(profile, steps[0], steps[1], "");
  assert.deepEqual(table.rows.map((row) => [row[0][0], row[2], row[3], row[4]]), [["a", 30, 1, 0], ["b", -30, 0, 1]]);
});

test("ranges of a device come after its work, and are no difference of steps", () => {
  const columns = new Map(Object.entries({ gap: [0, 0], inside: [0, 0], duration: [90, 20], name: [1, 2], category: [5, 4] }).map(([name, values]) => [name, Uint32Array.from(values)]));
  const tracks = [0, 1].map((first) => ({ name: "", is_stream: true, process: 0, thread: first, first, count: 1 }));
  const profile = new Profile({ strings: ["", "forward", "gemm"], tracks, steps: [], events: 2, span: 90, memory: [] }, columns);
  const sums = sumByName(profile, [0, 100]);
  assert.deepEqual(sums.map((sum) => profile.strings[sum.name]), ["gemm", "forward"]);
  assert.deepEqual(differences(sums, [], 9).map((one) => profile.strings[one.name]), ["gemm"]);
});

test("a function costs what its table says, by whatever address it is asked for", () => {
  const table = { id: "functions", caption: "", columns: [], rows: [[["forward (train.py:31)", "detail?kind=function&name=my%20dir/train.py:29:forward"], 0.5]], sorted: 1 };
  const profile = { document: { tables: [table] } };
  const cell = (kind, name) => costOf(profile, kind, name)?.row[1];
  assert.equal(cell("function", "my dir/train.py:29:forward"), 0.5);
  assert.equal(cell("event", "my dir/train.py(29): forward"), 0.5);
  for (const [kind, name] of [["line", "my dir/train.py:29:forward"], ["event", "forward"], ["function", ""], ["operator", "aten::mm"]]) assert.equal(cell(kind, name), undefined);
});

test("the timeline opens on the steps if they are a small part of the recording", () => {
  const step = (/** @type {number} */ number, /** @type {number} */ start, /** @type {[number, number] | null} */ device) => ({ number, start, duration: 100, slow: false, device });
  const steps = [step(1, 8000, null), step(2, 8100, [8150, 850])];
  assert.deepEqual(openingRange(steps, [0, 10000]), [7990, 9010]);
  assert.deepEqual(openingRange(steps, [0, 1900]), [0, 1900]);
  assert.deepEqual(openingRange([], [0, 10000]), [0, 10000]);
  assert.deepEqual(openingRange([step(1, 0, null)], [0, 1000]), [0, 101]);
});
