// @ts-check
// The script of the report: reads the data, and shows the pane that the address names.
import { byId, make } from "./elements.js";
import { unpack } from "./columns.js";
import { keptTable, readView } from "./address.js";
import { Visit } from "./visit.js";
import { Profile } from "./profile.js";
import { showMemory } from "./memory_pane.js";
import { showTable } from "./tables.js";
import { StepPane } from "./step_pane.js";
import { FlamePane } from "./flame_pane.js";
import { showOperators } from "./operators_pane.js";
import { showDetail } from "./detail_pane.js";
import { listenToKeys } from "./keyboard.js";

/** @type {HTMLElement[]} */
const sections = [...document.querySelectorAll(".pane")].map((section) => /** @type {HTMLElement} */ (section));
const FIRST = "overview";

/** The panes that details belong to, if the reader came from none. */
const HOMES = new Map([["finding", "overview"], ["operator", "operators"], ["kernel", "kernels"], ["function", "code"], ["line", "code"], ["module", "code"]]);

/** The parts of the report, each made when it is first shown. */
class Report {
  /** @param {Profile} profile */
  constructor(profile) {
    this.profile = profile;
    this.visit = new Visit();
    /** @type {Map<string, import("./tables.js").TableData>} */
    this.tables = new Map(profile.document.tables.map((/** @type {any} */ table) => [table.id, table]));
    /** @type {Set<string>} */
    this.filled = new Set();
    /** The filter and order by which each table is shown.
     * @type {Map<string, string>} */
    this.shownBy = new Map();
    /** @type {StepPane | null} */
    this.steps = null;
    /** @type {FlamePane | null} */
    this.flames = null;
    /** The view from which the reader went to a detail.
     * @type {{ pane: string, hash: string, y: number } | null} */
    this.origin = null;
    /** How far the next view is scrolled, if that is not what its entry of the history says.
     * @type {number | null} */
    this.nextScroll = null;
    this.isFinding = false;
  }

  /** Shows the pane of the address. */
  show() {
    const { visit } = this, { pane, query } = readView(location.hash);
    const section = sections.find((one) => one.id === pane) || sections[0], { id } = section;
    const link = navigationLink(visit.pane);
    if (link) this.origin = { pane: visit.pane, hash: visit.hash, y: visit.scrolled.get(visit.entry) || 0 };
    const left = visit.arrive(id, query), y = this.nextScroll ?? left;
    this.nextScroll = null;
    for (const one of sections) one.classList.toggle("shown", one === section);
    this.showNote(pane && pane !== id ? `There is no view named ${pane}. This is the overview.` : this.missing(id, query));
    this.markCurrent(id, query);
    const tip = document.getElementById("tip");
    if (tip) tip.hidden = true;
    this.fill(section, query);
    scrollTo(0, y);
    if (this.isFinding) byId("find").focus();
    this.isFinding = false;
  }

  /**
   * Returns what an address asks for that the profile does not have; empty if there is nothing.
   * @param {string} pane
   * @param {Record<string, string>} query
   */
  missing(pane, query) {
    const isKnown = pane !== "step" || !query.step || this.profile.steps.some(({ number }) => String(number) === query.step);
    return isKnown ? "" : `There is no step ${query.step}. This is the whole recording.`;
  }

  /** @param {string} text */
  showNote(text) {
    document.getElementById("note")?.remove();
    if (text) byId("main").prepend(make("p", { id: "note", class: "bad", role: "status" }, text.length > 200 ? `${text.slice(0, 200)}\u2026` : text));
  }

  /**
   * Marks the link of the current pane, or of the one from which the reader came to a detail, and
   * makes a link back to that one.
   * @param {string} pane
   * @param {Record<string, string>} query
   */
  markCurrent(pane, query) {
    const home = HOMES.get(query.kind) || "step";
    const origin = this.origin || { pane: navigationLink(home) ? home : FIRST, hash: "", y: 0 };
    const isDetail = pane === "detail", link = navigationLink(isDetail ? origin.pane : pane);
    for (const other of document.querySelectorAll("nav a")) other.removeAttribute("aria-current");
    link?.setAttribute("aria-current", isDetail ? "true" : "page");
    showCurrentLink();
    if (!isDetail || !link) return;
    const back = make("a", { href: origin.hash || `#${origin.pane}`, onclick: () => { this.nextScroll = origin.y; } }, `\u2039 Back to ${link.textContent}`);
    byId("detail-origin").replaceChildren(back);
  }

  /**
   * @param {HTMLElement} section
   * @param {Record<string, string>} query
   */
  fill(section, query) {
    const { id } = section, { profile, visit } = this;
    /** @param {Record<string, string>} part */
    const keep = (part) => visit.keep(id, part);
    const step = () => visit.step();
    if (id === "step") {
      if (!this.steps) this.steps = new StepPane(profile, keep);
      this.steps.show(query);
    } else if (id === "flames") {
      if (!this.flames) this.flames = new FlamePane(profile, keep, step);
      this.flames.show(query);
    } else if (id === "operators") {
      const chosen = this.steps ? this.steps.timeline.chosen : null;
      showOperators(this.tables, profile, query, chosen, keep, step);
    } else if (id === "detail") {
      showDetail(profile, query, this.tables);
    }
    if (id !== "operators") this.fillTables(section, query, keep, step);
    if (this.filled.has(id)) return;
    this.filled.add(id);
    for (const figure of section.querySelectorAll("[data-memory]")) showMemory(figure, profile.document.memory[Number(figure.getAttribute("data-memory"))]);
  }

  /**
   * Shows the tables of a pane, as far as they are not yet shown as the address says.
   * @param {HTMLElement} section
   * @param {Record<string, string>} query
   * @param {(part: Record<string, string>) => void} keep
   * @param {() => void} step
   */
  fillTables(section, query, keep, step) {
    for (const holder of section.querySelectorAll("[data-table]")) {
      const id = holder.getAttribute("data-table") || "", table = this.tables.get(id);
      if (!table) continue;
      const options = keptTable(id, query, (part) => { this.shownBy.set(id, Object.values(part).join("\n")); keep(part); });
      const by = `${options.filter}\n${options.sort}\n${options.page}`;
      if (this.shownBy.get(id) === by) continue;
      this.shownBy.set(id, by);
      showTable(/** @type {HTMLElement} */ (holder), table, { ...options, onTurn: step });
    }
  }
}

/**
 * Returns the link of the navigation that leads to a pane.
 * @param {string} pane
 */
function navigationLink(pane) {
  return [...document.querySelectorAll("nav a")].find((link) => link.getAttribute("href") === `#${pane}`);
}

/** Scrolls the navigation of a narrow window to the link of the current pane. */
function showCurrentLink() {
  const nav = document.querySelector("nav"), link = nav?.querySelector("[aria-current]");
  if (!nav || !link) return;
  const [room, place] = [nav.getBoundingClientRect(), link.getBoundingClientRect()];
  nav.scrollLeft += place.left + place.width / 2 - room.left - room.width / 2;
}

async function begin() {
  const data = document.getElementById("data")?.textContent || "{}";
  for (const element of document.querySelectorAll(".scripted")) if (!element.hasAttribute("data-memory")) /** @type {HTMLElement} */ (element).hidden = false;
  const { document: found, columns } = await unpack(data);
  // Links to views that scripts draw are none before.
  for (const link of document.querySelectorAll("a[data-href]")) link.setAttribute("href", link.getAttribute("data-href") || "");
  const report = new Report(new Profile(found, columns));
  addEventListener("hashchange", () => report.show());
  const panes = [...document.querySelectorAll("nav a")].map((link) => (link.getAttribute("href") || "").slice(1));
  listenToKeys({
    panes,
    go: (pane) => { location.hash = `#${pane}`; },
    find: () => {
      const fields = sections.find((one) => one.classList.contains("shown"))?.querySelectorAll('input[type="search"]');
      const field = [...fields || []].map((one) => /** @type {HTMLElement} */ (one)).find((one) => one.offsetParent !== null);
      report.isFinding = !field;
      if (field) field.focus(); else location.hash = "#step";
    },
  });
  // Paper cannot be unfolded. The points of a chart are too many for it.
  /** @type {HTMLDetailsElement[]} */
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open]):not(:has(.points))")].map((one) => /** @type {HTMLDetailsElement} */ (one));
    for (const one of folded) one.open = true;
  });
  addEventListener("afterprint", () => { for (const one of folded) one.open = false; });
  if (!location.hash) history.replaceState(null, "", `#${FIRST}`);
  report.show();
  document.documentElement.setAttribute("data-ready", String(Math.round(performance.now())));
}

begin().catch((error) => {
  for (const section of sections) section.classList.add("shown");
  const message = `The data of this page could not be read: ${error.message}. The tables are complete without it.`;
  document.getElementById("main")?.prepend(make("p", { class: "bad" }, message));
  throw error;
});
