// @ts-check
// The events of one row of a table of operators that is grouped by shape, line, module or dtype.
// Nothing here accesses the page.
import { countedText } from "./numbers.js";
import { shownName } from "./names.js";
import { readView } from "./address.js";
import { cellName, groupColumn } from "./sorting.js";

/** @typedef {import("./tables.js").TableData} TableData */

/**
 * Returns the events of the row that an address comes from and what a detail says about them, or null
 * if it comes from none. Tables know more about callers than the page has: then there are no events,
 * and the detail shows all of the operator.
 * @param {import("./profile.js").Profile} profile
 * @param {Map<string, TableData>} tables
 * @param {Record<string, string>} query
 * @param {number[]} all
 * @returns {{ events: Set<number> | null, text: string } | null}
 */
export function groupOf(profile, tables, query, all) {
  const table = tables.get(query.by || ""), at = table ? groupColumn(table) : -1;
  if (!table || at < 0) return null;
  const of = query.of || "", { title } = table.columns[at];
  const row = table.rows.find((cells) => {
    const address = Array.isArray(cells[0]) ? readView(cells[0][1]).query : {};
    return address.name === query.name && address.kind === query.kind && cellName(cells[at]) === of;
  });
  const calls = row ? row[table.columns.findIndex((column) => column.title === "Calls")] : null;
  if (typeof calls !== "number") return null;
  const group = of ? `${title.toLowerCase()} ${of}` : `no ${title.toLowerCase()}`;
  const labels = new Set(table.rows.map((cells) => cellName(cells[at])).filter(Boolean));
  const events = new Set(all.filter((index) => labelOf(profile, table.id, labels, index) === of));
  if (events.size === calls) return { events, text: `These are the ${countedText(calls, "call")} with ${group}, of ${countedText(all.length, "call")} in all.` };
  return { events: null, text: `These are all ${countedText(all.length, "call")}. The row with ${group} has ${countedText(calls, "call")}.` };
}

/**
 * Returns the label by which a table groups an event, as far as the page can tell it.
 * @param {import("./profile.js").Profile} profile
 * @param {string} id
 * @param {Set<string>} labels
 * @param {number} index
 */
function labelOf(profile, id, labels, index) {
  if (id === "operators-shape") return profile.shapesOf(index);
  if (id === "operators-dtype") return profile.dtypesOf(index);
  return profile.stackOf(index).map(shownName).find((frame) => labels.has(frame)) || "";
}
