// @ts-check
// Reads the data block of a page: base64 or dense text, gzip, a document and columns of whole numbers.

/**
 * @typedef {object} Place
 * @property {string} name
 * @property {number} offset
 * @property {number} count
 * @property {number} width
 * @property {boolean} is_difference
 */

/** @typedef {Uint8Array | Uint16Array | Uint32Array | Float64Array} Numbers */

/**
 * Reads a column, which is written byte plane by byte plane.
 * @param {Uint8Array} bytes
 * @param {Place} place
 * @returns {Numbers}
 */
export function readColumn(bytes, place) {
  const { offset, count, width, is_difference } = place;
  const planes = [];
  for (let plane = 0; plane < width; plane += 1) planes.push(bytes.subarray(offset + plane * count, offset + (plane + 1) * count));
  const [p0, p1, p2, p3] = planes;
  if (width <= 4) {
    const values = width === 1 ? new Uint8Array(count) : width === 2 ? new Uint16Array(count) : new Uint32Array(count);
    if (width === 1) values.set(p0);
    else if (width === 2) for (let i = 0; i < count; i += 1) values[i] = p0[i] | (p1[i] << 8);
    else if (width === 3) for (let i = 0; i < count; i += 1) values[i] = p0[i] | (p1[i] << 8) | (p2[i] << 16);
    else for (let i = 0; i < count; i += 1) values[i] = (p0[i] | (p1[i] << 8) | (p2[i] << 16) | (p3[i] << 24)) >>> 0;
    if (is_difference) sumUp(values, 256 ** width);
    return values;
  }
  const values = new Float64Array(count);
  for (let i = 0; i < count; i += 1) values[i] = (p0[i] | (p1[i] << 8) | (p2[i] << 16) | (p3[i] << 24)) >>> 0;
  for (let plane = 4; plane < width; plane += 1) {
    const factor = 256 ** plane, part = planes[plane];
    for (let i = 0; i < count; i += 1) values[i] += part[i] * factor;
  }
  if (is_difference) sumUp(values, 256 ** width);
  return values;
}

/**
 * Replaces differences by values. A sum that exceeds the width wraps around.
 * @param {Numbers} values
 * @param {number} limit
 */
function sumUp(values, limit) {
  let sum = 0;
  for (let i = 0; i < values.length; i += 1) {
    sum += values[i];
    if (sum >= limit) sum -= limit;
    values[i] = sum;
  }
}

/**
 * Splits unpacked bytes into the document and the columns.
 * @param {Uint8Array} bytes
 * @returns {{ document: any, columns: Map<string, Numbers> }}
 */
export function readBlock(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const document = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const rest = bytes.subarray(4 + length);
  const columns = new Map();
  for (const place of document.columns) columns.set(place.name, readColumn(rest, place));
  return { document, columns };
}

/**
 * Returns the bytes of a base64 text.
 * @param {string} text
 * @returns {Uint8Array}
 */
export function fromBase64(text) {
  const native = /** @type {any} */ (Uint8Array).fromBase64;
  if (native) return native.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/** The characters of dense text that stand in pairs, and the first pair; page/dense.rs describes both. */
const REPLACED = [...'\0\b\n\v\f\r\x1a\x1b"&\'<>\\'].map((letter) => letter.charCodeAt(0));
const FIRST_PAIR = 0x100;

/**
 * Returns the bytes of a dense text.
 * @param {string} text
 * @returns {Uint8Array}
 */
export function fromDense(text) {
  const begin = text.indexOf(";") + 1;
  const bytes = new Uint8Array(Number(text.slice("dense".length, begin - 1)));
  let bits = 0, count = 0, at = 0;
  for (let i = begin; i < text.length; i += 1) {
    const letter = text.charCodeAt(i), pair = letter - FIRST_PAIR;
    if (letter < 128) {
      bits = (bits << 7) | letter;
      count += 7;
    } else {
      bits = (bits << 14) | (REPLACED[pair >> 7] << 7) | (pair & 127);
      count += 14;
    }
    for (; count >= 8; at += 1) {
      count -= 8;
      bytes[at] = bits >>> count;
    }
    bits &= 127;
  }
  return bytes;
}

/**
 * Unpacks a data block.
 * @param {string} text
 */
export async function unpack(text) {
  const packed = text.startsWith("dense") ? fromDense(text) : fromBase64(JSON.parse(text).packed);
  const source = new Blob([/** @type {any} */ (packed)]).stream();
  const plain = source.pipeThrough(new DecompressionStream("gzip"));
  return readBlock(new Uint8Array(await new Response(plain).arrayBuffer()));
}
