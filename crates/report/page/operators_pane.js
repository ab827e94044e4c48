// @ts-check
// The pane of operators: one grouping at a time, and the sums of a range while one is selected.
import { timeText } from "./numbers.js";
import { byId, make } from "./elements.js";
import { showTable } from "./tables.js";
import { rangeTable } from "./events_table.js";

/**
 * Shows one member of a group of tables.
 * @param {Map<string, import("./tables.js").TableData>} tables
 * @param {import("./profile.js").Profile} profile
 * @param {Record<string, string>} query
 * @param {[number, number] | null} chosen
 * @param {(query: Record<string, string>) => void} keep
 */
export function showOperators(tables, profile, query, chosen, keep) {
  const by = document.querySelector(`[data-member="${CSS.escape(query.by || "")}"]`) ? query.by : "operators";
  const note = byId("operators-range");
  note.replaceChildren();
  for (const button of document.querySelectorAll("button[data-shows]")) {
    const id = button.getAttribute("data-shows") || "";
    button.setAttribute("aria-pressed", String(id === by));
    /** @type {HTMLElement} */ (button).onclick = () => showOperators(tables, profile, keptBy(id), chosen, keep);
  }
  for (const member of document.querySelectorAll("[data-member]")) {
    const id = member.getAttribute("data-member") || "";
    /** @type {HTMLElement} */ (member).hidden = id !== by;
    const holder = member.querySelector("[data-table]"), table = tables.get(id);
    if (id !== by || !holder || !table) continue;
    const isRange = chosen !== null && id === "operators";
    if (isRange) note.append(`of the selected ${timeText(chosen[1] - chosen[0])} `, make("a", { href: "#step" }, "(clear)"));
    showTable(/** @type {HTMLElement} */ (holder), isRange ? rangeTable(profile, chosen) : table, {
      filter: query.filter, sort: query.sort, onView: (view) => keep({ by: by === "operators" ? "" : by, filter: view.filter, sort: view.sort }),
    });
  }

  /** @param {string} id */
  function keptBy(id) {
    const next = { by: id, filter: query.filter || "", sort: "" };
    keep({ ...next, by: id === "operators" ? "" : id });
    return next;
  }
}
