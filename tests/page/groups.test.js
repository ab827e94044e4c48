// Tests of the events of a grouped row.
import assert from "node:assert/strict";
import test from "node:test";
import { groupOf } from "../../crates/report/page/groups.js";

const columns = ["Name", "Runs on", "Line", "Calls"].map((title, index) => ({ title, kind: index === 3 ? "count" : index === 0 ? "name" : "text" }));
const copy = ["aten::copy_", "detail?kind=operator&name=aten::copy_"];
/** @param {number} calls */
const tables = (calls) => new Map([["operators-line", { id: "operators-line", caption: "", sorted: null, columns, rows: [[copy, "CPU", "forward (train.py:29)", calls], [copy, "CPU", "step (train.py:83)", 1]] }]]);
const query = { kind: "operator", name: "aten::copy_", by: "operators-line", of: "forward (train.py:29)" };
const stacks = [["torch/nn.py(7): call", "train.py(29): forward"], ["train.py(83): step"], ["train.py(29): forward"]];
const profile = /** @type {any} */ ({ stackOf: (/** @type {number} */ index) => stacks[index] });

test("a row by line has the events of its line", () => {
  const group = groupOf(profile, /** @type {any} */ (tables(2)), query, [0, 1, 2]);
  assert.deepEqual([...group?.events || []], [0, 2]);
  assert.equal(group?.text, "These are the 2 calls with line forward (train.py:29), of 3 calls in all.");
});

test("where the page cannot tell the events of a row, both numbers are told", () => {
  const group = groupOf(profile, /** @type {any} */ (tables(3)), query, [0, 1, 2]);
  assert.equal(group?.events, null);
  assert.equal(group?.text, "These are all 3 calls. The row with line forward (train.py:29) has 3 calls.");
});

test("an ungrouped row has all events", () => {
  assert.equal(groupOf(profile, /** @type {any} */ (tables(2)), { kind: "operator", name: "aten::copy_" }, [0, 1, 2]), null);
});
