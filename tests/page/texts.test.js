// Tests of numbers as text, addresses, sorting and CSV.
import assert from "node:assert/strict";
import test from "node:test";
import { amountText, bytesText, markText, momentText, numberText, roundText, timeText } from "../../crates/report/page/numbers.js";
import { keptTable, readIndex, readRange, readView, writeRange, writeView } from "../../crates/report/page/address.js";
import { isMatching, readOrder, sortedOrder } from "../../crates/report/page/sorting.js";
import { shortName, shownName } from "../../crates/report/page/names.js";
import { csvText } from "../../crates/report/page/csv.js";
import { CATEGORIES, COLOUR_COUNT, colourList, colourNumber, familyColours } from "../../crates/report/page/colours.js";

test("times have three digits, as in the tables of Rust", () => {
  const texts = [0, 510, 9994, 9996, 99960, 1.5e6, 2.5e9, -1500].map(timeText);
  assert.deepEqual(texts, ["0.00 us", "0.51 us", "9.99 us", "10.0 us", "100 us", "1.50 ms", "2.50 s", "\u22121.50 us"]);
  assert.equal(numberText(0, "time"), "0");
  assert.equal(momentText(127869123), "127.869 ms");
});

test("bytes and amounts have the unit that fits", () => {
  assert.deepEqual([512, 1536, 3 * 1024 ** 2].map(bytesText), ["512 B", "1.50 KB", "3.00 MB"]);
  assert.deepEqual([0.5, 12, 999, 1234, 5e12].map(amountText), ["0.50", "12.0", "999", "1.23 k", "5.00 T"]);
  assert.equal(roundText("512.00 KB"), "512 KB");
  assert.equal(markText(127867500, 500), "127.8675 ms");
});

test("negative numbers have a minus, and differences of shares a sign", () => {
  const texts = [numberText(-1536, "bytes"), numberText(-0.25, "share"), numberText(-1000, "count"), numberText(0.697, "points"), numberText(-0.03, "points"), numberText(0, "points")];
  assert.deepEqual(texts, ["\u22121.50 KB", "\u221225.0 %", "\u22121,000", "+69.7 points", "\u22123.0 points", "0"]);
});

test("an address keeps a view, whatever is in its names", () => {
  const view = { pane: "detail", query: { kind: "operator", name: "a&b=c #?%+<\u00e9>" } };
  assert.deepEqual(readView(writeView(view)), view);
  assert.deepEqual(readView("#step"), { pane: "step", query: {} });
  assert.equal(writeView({ pane: "step", query: { find: "" } }), "#step");
  assert.deepEqual(readView("#detail?kind=operator&name=aten::mm%20%3Cx%3E").query.name, "aten::mm <x>");
});

test("tables of a pane keep their filters, orders and pages under their names", () => {
  /** @type {Record<string, string>} */
  const query = { "kernels.filter": "gemm", "kernels.sort": "Time.up", "streams.sort": "Count.down" };
  const kernels = keptTable("kernels", query, (part) => Object.assign(query, part));
  assert.deepEqual([kernels.filter, kernels.sort, keptTable("copies", query, () => {}).sort], ["gemm", "Time.up", ""]);
  kernels.onView({ filter: "", sort: "Calls.down", page: "3" });
  assert.equal(writeView({ pane: "kernels", query }), "#kernels?kernels.sort=Calls.down&streams.sort=Count.down&kernels.page=3");
  assert.equal(keptTable("kernels", query, () => {}).page, "3");
});

test("ranges that are none are refused", () => {
  assert.deepEqual(readRange(writeRange([1.5, 7.2]), [0, 100]), [1, 8]);
  assert.deepEqual(readRange(`50-${"9".repeat(400)}`, [0, 99.5]), [50, 100]);
  for (const text of ["", "7-7", "9-3", "a-b", "200-300", "1e3-1e4", "-5-7", undefined]) assert.equal(readRange(text, [0, 100]), null);
});

test("positions that are none are refused", () => {
  assert.equal(readIndex("7", 8), 7);
  for (const text of ["8", "-1", "1.5", "NaN", "1e1", "9".repeat(400), "", "constructor", undefined]) assert.equal(readIndex(text, 8), -1);
});

test("names sort as they are shown", () => {
  const rows = [[["b.py(1): a", "x"]], [["a.py(1): b", "x"]]];
  assert.deepEqual(sortedOrder(rows, 0, true), [0, 1]);
});

test("rows sort by number or name, with empty cells last", () => {
  const rows = [["op10", 5], ["op2", null], [["op1", "x"], 7], ["op3", 5]];
  assert.deepEqual(sortedOrder(rows, 1, false), [2, 0, 3, 1]);
  assert.deepEqual(sortedOrder(rows, 1, true), [0, 3, 2, 1]);
  assert.deepEqual(sortedOrder(rows, 0, true), [2, 1, 3, 0]);
  const prices = [["not priced"], [0.1], [null], [0.5]];
  assert.deepEqual(sortedOrder(prices, 0, false), [3, 1, 0, 2]);
});

test("an order names a column that has a title", () => {
  const columns = [{ title: "Name" }, { title: "Self CPU %" }, { title: "" }];
  assert.deepEqual(readOrder(columns, "Self CPU %.up"), { column: 1, isRising: true });
  assert.deepEqual(readOrder(columns, "Name.down"), { column: 0, isRising: false });
  for (const text of [undefined, "", ".up", "Name", "Name.sideways", "Calls.up", "constructor.up"]) assert.equal(readOrder(columns, text), null);
});

test("a filter needs all of its words in texts of the row", () => {
  assert.ok(isMatching([["aten::mm", "x"], 7, "[[3, 4]]"], "MM [3"));
  assert.ok(!isMatching([["aten::mm", "x"], 7, "[[3, 4]]"], "mm 7"));
  assert.ok(isMatching([null], "  "));
  assert.ok(isMatching([["train.py(29): forward", "x"]], "forward (train.py:29"));
  assert.ok(isMatching([["train.py(29): forward", "x"]], "train.py(29):"));
});

test("kernels lose what they have in common", () => {
  for (const [name, short] of [
    ["void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, at::native::FillFunctor<float>, std::array<char*, 1ul>)", "vectorized_elementwise_kernel<4, FillFunctor<float>, std::array<char*, 1ul> >"],
    ["void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float>(float*, int)", "cunn_SoftMaxForward<8, float>"],
    ["void sgemm<true>(Params)", "sgemm<true>"], ["void cat::f<float::x, mine::at::y>(int)", "cat::f<float::x, mine::at::y>"], ["void (*)(int)", "(*)"], ["void (int)", "(int)"], ["void )", ")"],
    ["ampere_sgemm_128x64_tn", "ampere_sgemm_128x64_tn"], ["Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD (Pageable -> Device)"], ["at::native::add", "at::native::add"],
    ["a (old)/train.py(29): forward", "forward (a (old)/train.py:29)"], ["", "(no name)"],
  ]) assert.equal(shortName(name), short);
  assert.equal(shownName("void sgemm<true>(Params)"), "void sgemm<true>(Params)");
});

test("CSV quotes fields, and no name becomes a formula", () => {
  const columns = [{ title: "Name", kind: "name" }, { title: "Self CPU", kind: "time" }];
  const text = csvText(columns, [[["=HYPERLINK(1)", "x"], 1500], ['a,"b"', -3], [null, null]]);
  assert.equal(text, "Name,Self CPU (ns)\r\n'=HYPERLINK(1),1500\r\n\"a,\"\"b\"\"\",-3\r\n,\r\n");
  const field = (/** @type {string} */ name) => csvText([{ title: "Name", kind: "name" }], [[name]]).slice(6, -2);
  for (const name of ["=1", "+1", "-1+cmd|' /C calc'!A0", "-2", "@SUM(1)", "\uff1d1"]) assert.equal(field(name), `'${name}`);
  for (const name of [" =1", "\t=1"]) assert.equal(field(name), `'${name}`);
  for (const name of ["\r=1", "\n@x"]) assert.equal(field(name), `"'${name}"`);
  for (const name of ["a;b", "a\nb", " a", "a\r"]) assert.equal(field(name), `"${name}"`);
  assert.equal(field("aten::add_"), "aten::add_");
  assert.equal(csvText(columns, [["a", -1.5e-7]]).split("\r\n")[1], "a,-1.5e-7");
});

test("a name has one colour, and all colours exist", () => {
  assert.equal(colourNumber("aten::mm", 0), colourNumber("aten::mm", 0));
  for (const isDark of [false, true]) assert.equal(colourList(isDark).length, COLOUR_COUNT);
  assert.ok(colourNumber("anything", 6) < COLOUR_COUNT);
});

test("the legend of a category has colours that its events have", () => {
  CATEGORIES.forEach((_, category) => {
    const [first, ...others] = familyColours(category, false);
    assert.equal(first, colourList(false)[category * COLOUR_COUNT / CATEGORIES.length]);
    assert.equal(others.length, 3);
  });
});
