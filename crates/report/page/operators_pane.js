// @ts-check
// The pane of operators: one grouping at a time, and the sums of a range while one is selected.
import { timeText } from "./numbers.js";
import { byId, make } from "./elements.js";
import { showTable } from "./tables.js";
import { rangeTable } from "./events_table.js";
import { cellName, groupColumn } from "./sorting.js";

/**
 * Shows one member of a group of tables.
 * @param {Map<string, import("./tables.js").TableData>} tables
 * @param {import("./profile.js").Profile} profile
 * @param {Record<string, string>} query
 * @param {[number, number] | null} chosen
 * @param {(query: Record<string, string>) => void} keep
 * @param {() => void} step  Makes the view that follows a step back of its own.
 */
export function showOperators(tables, profile, query, chosen, keep, step) {
  const by = document.querySelector(`[data-member="${CSS.escape(query.by || "")}"]`) ? query.by : "operators";
  const note = byId("operators-range");
  note.replaceChildren();
  for (const button of document.querySelectorAll("button[data-shows]")) {
    const id = button.getAttribute("data-shows") || "";
    button.setAttribute("aria-pressed", String(id === by));
    /** @type {HTMLElement} */ (button).onclick = () => { step(); showOperators(tables, profile, keptBy(id), chosen, keep, step); };
  }
  for (const member of document.querySelectorAll("[data-member]")) {
    const id = member.getAttribute("data-member") || "";
    /** @type {HTMLElement} */ (member).hidden = id !== by;
    const holder = member.querySelector("[data-table]"), table = tables.get(id);
    if (id !== by || !holder || !table) continue;
    const isRange = chosen !== null && id === "operators";
    if (isRange) note.append(`of the selected ${timeText(chosen[1] - chosen[0])} `, make("a", { href: "#step" }, "(clear)"));
    showTable(/** @type {HTMLElement} */ (holder), isRange ? rangeTable(profile, chosen) : leadingToGroups(table), {
      filter: query.filter, sort: query.sort, page: query.page, onTurn: step, onView: (view) => keep({ by: by === "operators" ? "" : by, ...view }),
    });
  }

  /** @param {string} id */
  function keptBy(id) {
    const next = { by: id, filter: query.filter || "", sort: "", page: "" };
    keep({ ...next, by: id === "operators" ? "" : id });
    return next;
  }
}

/**
 * Returns a table of grouped rows whose names lead to the detail of their group.
 * @param {import("./tables.js").TableData} table
 * @returns {import("./tables.js").TableData}
 */
export function leadingToGroups(table) {
  const at = groupColumn(table);
  if (at < 0) return table;
  const rows = table.rows.map((row) => Array.isArray(row[0])
    ? /** @type {import("./sorting.js").Cell[]} */ ([[row[0][0], `${row[0][1]}&by=${table.id}&of=${encodeURIComponent(cellName(row[at]))}`], ...row.slice(1)]) : row);
  return { ...table, rows };
}
