// @ts-check
// The script of the report: reads the data, and shows the pane that the address names.
import { make } from "./elements.js";
import { unpack } from "./columns.js";
import { readView, writeView } from "./address.js";
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

/** The parts of the report, each made when it is first shown. */
class Report {
  /** @param {Profile} profile */
  constructor(profile) {
    this.profile = profile;
    /** @type {Map<string, import("./tables.js").TableData>} */
    this.tables = new Map(profile.document.tables.map((/** @type {any} */ table) => [table.id, table]));
    /** @type {Set<string>} */
    this.filled = new Set();
    /** @type {StepPane | null} */
    this.steps = null;
    /** @type {FlamePane | null} */
    this.flames = null;
    this.isOwnChange = false;
  }

  /** Shows the pane of the address. */
  show() {
    const { pane, query } = readView(location.hash);
    const section = sections.find((one) => one.id === pane) || sections[0];
    const id = section.id;
    const isOther = !section.classList.contains("shown");
    for (const one of sections) one.classList.toggle("shown", one === section);
    for (const link of document.querySelectorAll("nav a")) {
      if (link.getAttribute("href") === `#${id}`) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
    }
    showCurrentLink();
    const tip = document.getElementById("tip");
    if (tip) tip.hidden = true;
    this.fill(section, query);
    if (isOther) scrollTo(0, 0);
  }

  /**
   * @param {HTMLElement} section
   * @param {Record<string, string>} query
   */
  fill(section, query) {
    const { id } = section, { profile } = this;
    if (id === "step") {
      if (!this.steps) this.steps = new StepPane(profile, (view) => this.keep("step", view));
      this.steps.show(query);
    } else if (id === "flames") {
      if (!this.flames) this.flames = new FlamePane(profile, (view) => this.keep("flames", view));
      this.flames.show(query);
    } else if (id === "operators") {
      const chosen = this.steps ? this.steps.timeline.chosen : null;
      showOperators(this.tables, profile, query, chosen, (view) => this.keep("operators", view));
    } else if (id === "detail") {
      showDetail(profile, query);
      scrollTo(0, 0);
    }
    if (this.filled.has(id)) return;
    this.filled.add(id);
    for (const figure of section.querySelectorAll("[data-memory]")) showMemory(figure, profile.document.memory[Number(figure.getAttribute("data-memory"))]);
    if (id === "operators") return;
    for (const holder of section.querySelectorAll("[data-table]")) {
      const table = this.tables.get(holder.getAttribute("data-table") || "");
      if (table) showTable(/** @type {HTMLElement} */ (holder), table);
    }
  }

  /**
   * Keeps the view in the address, without a step back for every change of it.
   * @param {string} pane
   * @param {Record<string, string>} query
   */
  keep(pane, query) {
    if (!sections.find((one) => one.id === pane)?.classList.contains("shown")) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => history.replaceState(null, "", writeView({ pane, query })), 120);
  }

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer;
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
  const report = new Report(new Profile(found, columns));
  addEventListener("hashchange", () => report.show());
  const panes = [...document.querySelectorAll("nav a")].map((link) => (link.getAttribute("href") || "").slice(1));
  listenToKeys({
    panes,
    go: (pane) => { location.hash = `#${pane}`; },
    find: () => {
      const visible = sections.find((one) => one.classList.contains("shown"));
      const field = /** @type {HTMLElement | null | undefined} */ (visible?.querySelector('input[type="search"]'));
      if (field) field.focus(); else location.hash = "#step";
    },
  });
  report.show();
  if (!location.hash) history.replaceState(null, "", `#${FIRST}`);
  document.documentElement.setAttribute("data-ready", String(Math.round(performance.now())));
}

begin().catch((error) => {
  for (const section of sections) section.classList.add("shown");
  const message = `The data of this page could not be read: ${error.message}. The tables are complete without it.`;
  document.getElementById("main")?.prepend(make("p", { class: "bad" }, message));
  throw error;
});
