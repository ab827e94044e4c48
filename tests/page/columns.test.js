// Tests of reading the data block.
import assert from "node:assert/strict";
import test from "node:test";
import { gzipSync } from "node:zlib";
import { fromBase64, fromDense, readBlock, readColumn, unpack } from "../../crates/report/page/columns.js";

/** Writes a column as `columns.rs` does. */
function planes(values, isDifference) {
  const most = Math.max(1, ...values);
  let width = 1;
  while (256 ** width <= most) width += 1;
  const limit = 256n ** BigInt(width);
  const bytes = [];
  for (let plane = 0; plane < width; plane += 1) {
    values.forEach((value, index) => {
      const before = isDifference && index > 0 ? values[index - 1] : 0;
      const written = (BigInt(value) - BigInt(before) + limit) % limit;
      bytes.push(Number((written >> BigInt(8 * plane)) & 255n));
    });
  }
  return { bytes: Uint8Array.from(bytes), width };
}

for (const values of [[], [7], [0, 255, 256, 65535, 65536, 2 ** 24, 2 ** 32 - 1], [2 ** 47, 0, 2 ** 40, 5]]) {
  for (const isDifference of [false, true]) {
    test(`a column of ${values} ${isDifference ? "as differences" : ""} is read as it was written`, () => {
      const { bytes, width } = planes(values, isDifference);
      const place = { name: "x", offset: 0, count: values.length, width, is_difference: isDifference };
      assert.deepEqual(Array.from(readColumn(bytes, place)), values);
    });
  }
}

test("a block has a document and columns behind it", async () => {
  const document = JSON.stringify({ columns: [{ name: "a", offset: 1, count: 2, width: 1, is_difference: false }], strings: ["\u00e9<"] });
  const text = new TextEncoder().encode(document);
  const bytes = new Uint8Array(4 + text.length + 3);
  new DataView(bytes.buffer).setUint32(0, text.length, true);
  bytes.set(text, 4);
  bytes.set([9, 1, 2], 4 + text.length);
  const block = readBlock(bytes);
  assert.deepEqual(block.document.strings, ["\u00e9<"]);
  assert.deepEqual(Array.from(block.columns.get("a")), [1, 2]);
  const packed = await unpack(JSON.stringify({ packed: gzipSync(bytes).toString("base64") }));
  assert.deepEqual(Array.from(packed.columns.get("a")), [1, 2]);
});

test("base64 is read", () => {
  assert.deepEqual(Array.from(fromBase64("AQID/w==")), [1, 2, 3, 255]);
});

test("dense text is read", () => {
  assert.deepEqual(Array.from(fromDense("dense6;\u0100 /o{~")), [0, 1, 2, 253, 254, 255]);
  assert.deepEqual(Array.from(fromDense("dense0;")), []);
});
