// @ts-check
// What a function, a line or a module costs, as the tables of the pane Code have it: with backward
// work and kernels, which the events of its calls do not contain.
import { make } from "./elements.js";
import { addTable } from "./detail_parts.js";
import { withoutEmpty } from "./events_table.js";
import { cellName } from "./sorting.js";

/** @typedef {import("./sorting.js").Cell} Cell */
/** @typedef {import("./tables.js").TableData} TableData */

/** The tables that have the costs of a kind of thing. */
const TABLES = new Map([["function", ["functions", "functions-elsewhere"]], ["line", ["lines", "lines-elsewhere"]], ["module", ["modules"]]]);

/**
 * Returns the row of a thing and its table, or null if there is none. An event that is a call of a
 * function has the row of the function.
 * @param {import("./profile.js").Profile} profile
 * @param {string} kind
 * @param {string} name
 * @returns {{ table: TableData, row: Cell[] } | null}
 */
export function costOf(profile, kind, name) {
  const call = kind === "event" ? /^(.*)\((\d+)\): (.*)$/.exec(name) : null;
  const of = call ? "function" : kind, key = call ? `${call[1]}:${call[2]}:${call[3]}` : name;
  for (const id of TABLES.get(of) || []) {
    const table = profile.document.tables.find((/** @type {TableData} */ one) => one.id === id);
    const row = table?.rows.find((/** @type {Cell[]} */ cells) => {
      const address = Array.isArray(cells[0]) ? cells[0][1] : "";
      return decodeURIComponent(address.slice(address.indexOf("&name=") + 6)) === key;
    });
    if (row) return { table, row };
  }
  return null;
}

/**
 * Shows a row of costs, and in what they differ from the times of events.
 * @param {HTMLElement} root
 * @param {{ table: TableData, row: Cell[] }} cost
 */
export function showCost(root, { table, row }) {
  const named = [cellName(row[0]), ...row.slice(1)];
  addTable(root, "What it costs", withoutEmpty({ ...table, id: "cost", caption: "What it costs", rows: [named], sorted: null }));
  root.append(make("p", { class: "quiet" }, "This is its row in the pane Code, with its backward work and its kernels. "
    + "The events below are its calls alone: backward work runs later, and kernels run on a device."));
}
