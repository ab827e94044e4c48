// @ts-check
// Rows as CSV. Nothing here accesses the page.
import { cellName } from "./sorting.js";

/**
 * Returns rows as CSV with a header. Times are nanoseconds, shares are fractions.
 * @param {{ title: string, kind: string }[]} columns
 * @param {import("./sorting.js").Cell[][]} rows
 * @returns {string}
 */
export function csvText(columns, rows) {
  const units = /** @type {Record<string, string>} */ ({ time: " (ns)", bytes: " (bytes)", share: " (fraction)" });
  const head = columns.map((column) => csvField(`${column.title}${units[column.kind] || ""}`));
  const lines = rows.map((row) => row.map((cell) => (typeof cell === "number" ? String(cell) : csvField(cellName(cell)))).join(","));
  return `${[head.join(","), ...lines].join("\r\n")}\r\n`;
}

/**
 * Quotes a text if it needs to be. One that a spreadsheet would take for a formula gets an apostrophe.
 * @param {string} text
 */
function csvField(text) {
  const safe = /^[\s\0]*[=@+\-\uff1d\uff20\uff0b\uff0d]|^[\t\r\n]/.test(text) ? `'${text}` : text;
  return /[",;\r\n]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
