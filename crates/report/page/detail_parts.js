// @ts-check
// The parts that details share: tables of grouped events, and source lines.
import { make } from "./elements.js";
import { showTable } from "./tables.js";
import { withoutEmpty } from "./events_table.js";

/** @typedef {import("./profile.js").Profile} Profile */
/** @typedef {import("./sorting.js").Cell} Cell */

/**
 * Adds a table of events grouped by a key, unless all are alike.
 * @param {Profile} profile
 * @param {HTMLElement} root
 * @param {number[]} events
 * @param {string} id
 * @param {string} caption
 * @param {string[]} titles
 * @param {(index: number) => number} keyOf  Returns the number of the group, or -1 for none.
 * @param {(index: number) => Cell[]} cellsOf  Returns what describes the group of an event.
 */
export function groupTable(profile, root, events, id, caption, titles, keyOf, cellsOf) {
  /** @type {Map<number, { key: Cell[], count: number, total: number, most: number }>} */
  const groups = new Map();
  for (const index of events) {
    const key = keyOf(index);
    if (key < 0) continue;
    let group = groups.get(key);
    if (!group) {
      group = { key: cellsOf(index), count: 0, total: 0, most: 0 };
      groups.set(key, group);
    }
    group.count += 1;
    group.total += profile.duration[index];
    group.most = Math.max(group.most, profile.duration[index]);
  }
  if (groups.size === 0) return;
  const rows = [...groups.values()].sort((a, b) => b.total - a.total).map((group) => /** @type {Cell[]} */ ([...group.key, group.total, group.count, group.total / group.count, group.most]));
  const columns = /** @type {import("./tables.js").Column[]} */ ([
    ...titles.map((title, index) => ({ title, kind: index === 0 ? "name" : "text" })),
    { title: "Time", kind: "time" }, { title: "Calls", kind: "count" }, { title: "Mean", kind: "time" }, { title: "Longest", kind: "time" },
  ]);
  addTable(root, caption, withoutEmpty({ id, caption, columns, rows, sorted: titles.length }));
}

/**
 * Shows the source lines around a line, if the page has them.
 * @param {Profile} profile
 * @param {HTMLElement} root
 * @param {string} file
 * @param {number} line
 */
export function showSource(profile, root, file, line) {
  const sources = profile.document.source;
  if (!Object.hasOwn(sources, file)) return;
  const lines = sources[file];
  const near = Object.keys(lines).map(Number).filter((number) => Math.abs(number - line) <= 8).sort((a, b) => a - b);
  if (near.length === 0) return;
  const list = make("pre", { class: "source", "aria-label": `Lines of ${file}` });
  for (const number of near) list.append(make("span", { class: number === line ? "here" : null }, `${String(number).padStart(5)}  ${lines[number]}\n`));
  root.append(make("h2", {}, `${file}:${line}`), list);
}

/**
 * @param {HTMLElement} root
 * @param {string} title
 * @param {import("./tables.js").TableData} table
 */
export function addTable(root, title, table) {
  const holder = make("div", { class: "wide" });
  root.append(make("h2", {}, title), holder);
  showTable(holder, table);
}
