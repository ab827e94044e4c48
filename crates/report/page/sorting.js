// @ts-check
// Sorts and filters the rows of tables. Nothing here accesses the page.
import { shortName, shownName } from "./names.js";

/** @typedef {null | number | string | [string, string]} Cell */

/**
 * Returns the text of a cell that is no number.
 * @param {Cell} cell
 * @returns {string}
 */
export function cellName(cell) {
  if (cell === null) return "";
  return Array.isArray(cell) ? cell[0] : String(cell);
}

/**
 * Returns the column that tells the groups of a table of operators apart; -1 if it has none.
 * @param {{ id: string, columns: { title: string, kind: string }[] }} table
 */
export function groupColumn({ id, columns }) {
  return id.startsWith("operators-") ? columns.findIndex(({ title, kind }) => kind === "text" && title !== "Runs on") : -1;
}

/**
 * Returns the order of rows by a column. Empty cells come last, and equal ones keep their order.
 * @param {Cell[][]} rows
 * @param {number} column
 * @param {boolean} isRising
 * @returns {number[]}
 */
export function sortedOrder(rows, column, isRising) {
  const sign = isRising ? 1 : -1;
  const order = rows.map((_, index) => index);
  return order.sort((a, b) => {
    const [left, right] = [rows[a][column], rows[b][column]];
    if (left === null || right === null) return Number(left === null) - Number(right === null) || a - b;
    const [isNumber, isOtherNumber] = [typeof left === "number", typeof right === "number"];
    // A word in place of a number is no number to sort by.
    if (isNumber !== isOtherNumber) return Number(isOtherNumber) - Number(isNumber);
    const difference = typeof left === "number" && typeof right === "number" ? left - right : compareNames(shownText(left), shownText(right));
    return sign * difference || a - b;
  });
}

/**
 * Reads the order that an address asks for, such as `Calls.up`; null if there is no such column.
 * Columns without a title cannot be asked for.
 * @param {{ title: string }[]} columns
 * @param {string | undefined} text
 * @returns {{ column: number, isRising: boolean } | null}
 */
export function readOrder(columns, text) {
  const found = /^(.+)\.(up|down)$/.exec(text || "");
  const column = found ? columns.findIndex(({ title }) => title === found[1]) : -1;
  return found && column >= 0 ? { column, isRising: found[2] === "up" } : null;
}

/**
 * Returns the text of a cell as the table shows it.
 * @param {Cell} cell
 */
function shownText(cell) {
  return Array.isArray(cell) ? shortName(cell[0]) : cellName(cell);
}

/**
 * Compares names; numbers inside of them by value.
 * @param {string} left
 * @param {string} right
 */
function compareNames(left, right) {
  return left.localeCompare(right, "en", { numeric: true });
}

/**
 * Returns whether a row has each word of a filter in one of its texts, as recorded or as shown.
 * @param {Cell[]} row
 * @param {string} filter
 */
export function isMatching(row, filter) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return true;
  const texts = row.filter((cell) => typeof cell !== "number").map((cell) => {
    const name = cellName(cell);
    return (Array.isArray(cell) ? `${name} ${shownName(name)}` : name).toLowerCase();
  });
  return words.every((word) => texts.some((text) => text.includes(word)));
}
