// @ts-check
// Numbers as text, with the rules of the tables that Rust writes. Nothing here accesses the page.

/** @typedef {"name" | "text" | "time" | "bytes" | "count" | "share" | "points" | "amount"} Kind */

const BYTE_UNITS = ["B", "KB", "MB", "GB"];
const PREFIXES = [["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]];

/**
 * Rounds half to even, as Rust does.
 * @param {number} value
 */
function halfToEven(value) {
  const rounded = Math.round(value);
  return Math.abs(value % 1) === 0.5 && rounded % 2 !== 0 ? rounded - 1 : rounded;
}

/**
 * Returns a time with three digits.
 * @param {number} nanoseconds
 * @returns {string}
 */
export function timeText(nanoseconds) {
  if (nanoseconds < 0) return `\u2212${timeText(-nanoseconds)}`;
  const micros = nanoseconds / 1000;
  const [value, unit] = micros < 1e3 ? [micros, "us"] : micros < 1e6 ? [micros / 1e3, "ms"] : [micros / 1e6, "s"];
  return `${value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0)} ${unit}`;
}

/**
 * Returns a moment since the recording began, to the nanosecond.
 * @param {number} nanoseconds
 */
export function momentText(nanoseconds) {
  return nanoseconds >= 1e6 ? `${(nanoseconds / 1e6).toFixed(3)} ms` : `${(nanoseconds / 1e3).toFixed(3)} us`;
}

/**
 * Returns a number of bytes in the unit that fits its size.
 * @param {number} bytes
 */
export function bytesText(bytes) {
  let value = bytes, unit = 0;
  while (Math.abs(value) >= 1024 && unit < BYTE_UNITS.length - 1) { value /= 1024; unit += 1; }
  return `${unit === 0 ? value : (halfToEven(value * 100) / 100).toFixed(2)} ${BYTE_UNITS[unit]}`;
}

/**
 * Returns a fraction in percent.
 * @param {number} share
 */
export function shareText(share) {
  return `${(share * 100).toFixed(1)} %`;
}

/**
 * Returns a large number with three digits and a prefix.
 * @param {number} number
 */
export function amountText(number) {
  const fitting = PREFIXES.find(([, size]) => number >= Number(size));
  const value = fitting ? number / Number(fitting[1]) : number;
  const digits = value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)} ${fitting ? fitting[0] : ""}`.trimEnd();
}

/**
 * Returns a whole number with a comma between thousands.
 * @param {number} number
 */
export function grouped(number) {
  return number.toFixed(0).replace(/\B(?=(\d{3})+$)/g, ",");
}

/**
 * Returns a number and a noun, which gets an `s` unless the number is one.
 * @param {number} count
 * @param {string} noun
 */
export function countedText(count, noun) {
  return `${grouped(count)} ${noun}${count === 1 ? "" : "s"}`;
}

/**
 * Returns a number of a column as text.
 * @param {number} number
 * @param {Kind} kind
 * @returns {string}
 */
export function numberText(number, kind) {
  if (number === 0) return "0";
  if (kind === "points") return `${number > 0 ? "+" : "\u2212"}${(Math.abs(number) * 100).toFixed(1)} points`;
  if (number < 0) return `\u2212${numberText(-number, kind)}`;
  switch (kind) {
    case "time": return timeText(number);
    case "bytes": return bytesText(number);
    case "share": return shareText(number);
    case "amount": return amountText(number);
    default: return grouped(number);
  }
}

/**
 * Removes trailing zeros: `2.5 ms` for `2.50 ms`, `512 KB` for `512.00 KB`.
 * @param {string} text
 */
export function roundText(text) {
  return text.replace(/(\.\d*?)0+(?= )/, "$1").replace(/\.(?= )/, "");
}

/**
 * Returns a time for a ruler, with as many digits as a step between marks needs.
 * @param {number} nanoseconds
 * @param {number} step
 */
export function markText(nanoseconds, step) {
  if (nanoseconds === 0) return "0";
  const [size, unit] = nanoseconds >= 1e9 ? [1e9, "s"] : nanoseconds >= 1e6 ? [1e6, "ms"] : nanoseconds >= 1e3 ? [1e3, "us"] : [1, "ns"];
  const digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9));
  return `${(nanoseconds / size).toFixed(Math.min(digits, 9))} ${unit}`;
}
