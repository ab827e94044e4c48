// @ts-check
// The script of the page about all ranks of a job: shows one pane at a time, and its tables.
import { readView } from "./address.js";
import { showTable } from "./tables.js";
import { listenToKeys } from "./keyboard.js";

/** @type {HTMLElement[]} */
const panes = [...document.querySelectorAll(".pane")].map((pane) => /** @type {HTMLElement} */ (pane));
/** @type {Set<string>} */
const filled = new Set();
/** @type {{ tables: import("./tables.js").TableData[] }} */
const data = JSON.parse(document.getElementById("data")?.textContent || "{}");

/** Shows the pane of the address. */
function show() {
  const { pane } = readView(location.hash);
  const shown = panes.find((one) => one.id === pane) || panes[0];
  for (const one of panes) one.classList.toggle("shown", one === shown);
  for (const link of document.querySelectorAll("nav a")) {
    if (link.getAttribute("href") === `#${shown.id}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const nav = document.querySelector("nav"), current = nav?.querySelector("[aria-current]");
  if (nav && current) {
    const [room, place] = [nav.getBoundingClientRect(), current.getBoundingClientRect()];
    nav.scrollLeft += place.left + place.width / 2 - room.left - room.width / 2;
  }
  if (!filled.has(shown.id)) fill(shown);
  scrollTo(0, 0);
}

/**
 * Shows the tables of a pane, which are written with their first rows only.
 * @param {HTMLElement} pane
 */
function fill(pane) {
  filled.add(pane.id);
  for (const holder of pane.querySelectorAll("[data-table]")) {
    const table = data.tables.find((one) => one.id === holder.getAttribute("data-table"));
    if (table) showTable(/** @type {HTMLElement} */ (holder), table);
  }
}

addEventListener("hashchange", show);
listenToKeys({
  panes: panes.map((pane) => pane.id),
  go: (pane) => { location.hash = `#${pane}`; },
  find: () => {
    const field = panes.find((one) => one.classList.contains("shown"))?.querySelector('input[type="search"]');
    if (field) /** @type {HTMLElement} */ (field).focus();
  },
});
show();
document.documentElement.setAttribute("data-ready", String(Math.round(performance.now())));
