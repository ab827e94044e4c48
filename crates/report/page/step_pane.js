// @ts-check
// The pane of one step: the timeline, what is selected in it, and what differs from the median step.
import { countedText, momentText, timeText } from "./numbers.js";
import { byId, download, make } from "./elements.js";
import { keptTable, readIndex, readRange, writeRange } from "./address.js";
import { CATEGORIES, familyColours } from "./colours.js";
import { Timeline } from "./timeline.js";
import { isDarkTheme, onTheme } from "./canvas.js";
import { showTable } from "./tables.js";
import { detailAddress, differenceTable, rangeTable } from "./events_table.js";
import { traceText } from "./trace_file.js";
import { cpuRange, deviceRange, isBehind, openingRange } from "./profile.js";
import { isOnDevice } from "./sums.js";
import { shortName, shownName } from "./names.js";

/** @typedef {import("./profile.js").Profile} Profile */

export class StepPane {
  /**
   * @param {Profile} profile
   * @param {(query: Record<string, string>) => void} keep  Puts the view into the address.
   */
  constructor(profile, keep) {
    this.profile = profile;
    this.keep = keep;
    this.step = "";
    this.text = "";
    /** The filters and orders of the tables below.
     * @type {Record<string, string>} */
    this.kept = {};
    this.opening = openingRange(profile.steps, profile.whole);
    this.timeline = new Timeline(byId("timeline"), profile, {
      onRange: () => this.keepView(),
      onSelect: () => { this.showSelection(); this.keepView(); },
      onChoose: () => { this.showSelection(); this.keepView(); },
    });
    this.listen();
    this.showLegend();
  }

  /** Explains the colours of events and of the critical path. */
  showLegend() {
    const { category, columns, document: { path_kinds } } = this.profile;
    const swatches = CATEGORIES.map(() => make("span", { class: "swatch hues" }));
    const fill = () => swatches.forEach((swatch, number) => { swatch.style.background = `linear-gradient(to right, ${familyColours(number, isDarkTheme()).join(", ")})`; });
    fill();
    onTheme(fill);
    const known = CATEGORIES.map((name, number) => category.includes(number) ? make("li", {}, swatches[number], name) : null);
    const events = make("ul", { class: "legend" }, make("li", { class: "quiet" }, "events, by name in shades of:"), ...known);
    byId("timeline-help").before(events);
    const kinds = new Set(columns.get("path_kind") || []);
    if (kinds.size === 0) return;
    const list = make("ul", { class: "legend" }, make("li", { class: "quiet" }, "critical path:"));
    for (const kind of [...kinds].sort((a, b) => a - b)) {
      list.append(make("li", {}, make("span", { class: `swatch class-${path_kinds[kind].class}` }), path_kinds[kind].name));
    }
    byId("timeline-help").before(list);
  }

  listen() {
    const choice = byId("step-choice");
    choice.append(make("option", { value: "" }, "all"));
    for (const step of this.profile.steps) choice.append(make("option", { value: step.number }, `${step.number} (${timeText(step.duration)}${step.slow ? ", slow" : ""})`));
    choice.parentElement.hidden = this.profile.steps.length === 0;
    choice.addEventListener("change", () => this.seeStep(choice.value));
    byId("zoom-in").addEventListener("click", () => this.timeline.zoom(0.5));
    byId("zoom-out").addEventListener("click", () => this.timeline.zoom(2));
    byId("zoom-all").addEventListener("click", () => this.timeline.see(this.profile.whole));
    byId("zoom-step").addEventListener("click", () => this.seeStep(this.step));
    byId("zoom-step").hidden = this.profile.steps.length === 0;
    const find = byId("find");
    find.addEventListener("input", () => { this.find(find.value); this.keepView(); });
    find.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => { if (event.key === "Enter") this.timeline.findNext(); });
    byId("find-next").addEventListener("click", () => this.timeline.findNext());
    const python = byId("show-python");
    python.parentElement.hidden = !this.profile.hasPython;
    python.addEventListener("change", () => { this.timeline.isWithPython = python.checked; this.timeline.queue(); this.keepView(); });
  }

  /** @param {string} text */
  find(text) {
    this.text = text;
    const count = this.timeline.find(text);
    byId("found").textContent = text ? countedText(count, "event") : "";
  }

  /** @param {string} number */
  seeStep(number) {
    this.step = number;
    const step = this.profile.steps.find((one) => String(one.number) === number);
    byId("step-choice").value = step ? number : "";
    byId("step-title").textContent = step ? `Step ${number}` : "Timeline";
    if (step) {
      const room = step.duration * 0.01;
      this.timeline.see([step.start - room, step.start + step.duration + room]);
    } else {
      this.timeline.see(this.opening);
    }
    this.showSelection();
  }

  /**
   * Shows the view of an address.
   * @param {Record<string, string>} query
   */
  show(query) {
    const { timeline } = this;
    this.kept = { ...query };
    const step = this.profile.steps.some((one) => String(one.number) === query.step) ? query.step : "";
    const range = readRange(query.at, this.profile.whole);
    if (step !== this.step || !range) this.seeStep(step);
    const event = readIndex(query.event, this.profile.count);
    timeline.chosen = readRange(query.chosen, this.profile.whole);
    const python = byId("show-python");
    timeline.isWithPython = python.checked = query.python !== "no";
    byId("find").value = query.find || "";
    this.find(query.find || "");
    if (range) timeline.see(range);
    if (event < 0) timeline.selected = -1;
    else if (event !== timeline.selected) timeline.select(event, true);
    this.showSelection();
    // Whatever changed on the way kept a view that was half of the one before.
    this.keepView();
    timeline.draw();
  }

  keepView() {
    const { timeline } = this;
    const isOpening = timeline.range[0] === this.opening[0] && timeline.range[1] === this.opening[1];
    this.keep({
      step: this.step, at: isOpening ? "" : writeRange(timeline.range), chosen: writeRange(timeline.chosen),
      event: timeline.selected >= 0 ? String(timeline.selected) : "", find: this.text, python: timeline.isWithPython ? "" : "no",
    });
  }

  showSelection() {
    const { timeline, profile } = this;
    const parts = [];
    if (timeline.selected >= 0) parts.push(this.eventCard(timeline.selected));
    const root = byId("selection");
    root.replaceChildren(...parts);
    if (timeline.chosen) {
      const chosen = timeline.chosen;
      const holder = make("div", { class: "wide" });
      root.append(
        make("h2", {}, `Selected ${timeText(chosen[1] - chosen[0])}, from ${momentText(chosen[0])} on`),
        make("p", { class: "tools" },
          make("button", { type: "button", onclick: () => timeline.see(chosen) }, "Zoom to the selection"),
          make("button", { type: "button", onclick: () => download("selection.trace.json", "application/json", traceText(profile, chosen)) }, "Save as a trace"),
          make("button", { type: "button", onclick: () => { timeline.chosen = null; timeline.queue(); this.showSelection(); this.keepView(); } }, "Clear"),
        ), holder);
      this.showKept(holder, rangeTable(profile, chosen));
    } else {
      this.showDifference(root);
    }
  }

  /**
   * Shows a table whose filter and order are kept in the address.
   * @param {HTMLElement} holder
   * @param {import("./tables.js").TableData} table
   */
  showKept(holder, table) {
    showTable(holder, table, keptTable(table.id, this.kept, (part) => { Object.assign(this.kept, part); this.keep(part); }));
  }

  /** @param {HTMLElement} root */
  showDifference(root) {
    const { profile } = this;
    const step = profile.steps.find((one) => String(one.number) === this.step);
    const median = medianStep(profile);
    if (!step || !median) return;
    const holder = make("div", { class: "wide" });
    const isMedian = step === median, isLate = isBehind(step) || isBehind(median);
    const caption = isMedian ? `Events of step ${step.number}, which is the median step` : `What differs from step ${median.number}, the median step`;
    if (isBehind(step)) root.append(this.deviceNote(step));
    root.append(make("h2", {}, caption));
    if (isLate) root.append(make("p", { class: "quiet" }, "On the CPU, these are the events that begin in the step; on the device, the work of the step, whenever it ran."));
    root.append(holder);
    this.showKept(holder, isMedian ? rangeTable(profile, cpuRange(step), deviceRange(step)) : differenceTable(profile, step, median, caption));
  }

  /**
   * Says when the device works for a step, if that is after the CPU has made it.
   * @param {import("./profile.js").Step} step
   */
  deviceNote(step) {
    const [from, to] = deviceRange(step);
    const see = make("button", { type: "button", onclick: () => this.timeline.see([from, to]) }, "See its work on the device");
    return make("p", {}, `The device runs behind the CPU: it works on step ${step.number} for ${timeText(to - from)}, from ${momentText(from)} to ${momentText(to)}, and the critical path of the step lies there too. `, see);
  }

  /** @param {number} index */
  eventCard(index) {
    const { profile } = this;
    const step = profile.stepAt(profile.start[index]);
    const facts = [
      ["Time", timeText(profile.duration[index])], ["Self", isOnDevice(profile.groupOf(index)) ? "" : timeText(profile.own[index])], ["Begins", momentText(profile.start[index])],
      ["Step", step ? String(step.number) : ""], ["Kind", CATEGORIES[profile.category[index]]],
      ["Track", profile.tracks[profile.trackOf(index)].name], ["Input shapes", profile.shapesOf(index)], ["Dtypes", profile.dtypesOf(index)],
    ];
    const list = make("dl", { class: "event" });
    for (const [name, value] of facts) if (value) list.append(make("dt", {}, name), make("dd", {}, value));
    for (const arrow of profile.arrowsOf(index)) {
      const jump = make("button", { type: "button", class: "link", onclick: () => this.timeline.select(arrow.other, true) }, shownName(profile.nameOf(arrow.other)));
      list.append(make("dt", {}, arrow.title), make("dd", {}, jump));
    }
    const stack = profile.stackOf(index);
    if (stack.length) list.append(make("dt", {}, "Stack"), make("dd", {}, make("pre", {}, stack.map(shownName).join("\n"))));
    return make("section", { class: "card", "aria-label": "Selected event" },
      make("h2", {}, make("a", { href: `#${detailAddress(profile.nameOf(index))}`, title: shownName(profile.nameOf(index)) }, shortName(profile.nameOf(index)))), list);
  }
}

/**
 * Returns the step with the median duration: on the device, if that is behind the CPU.
 * @param {Profile} profile
 */
export function medianStep(profile) {
  const length = (/** @type {import("./profile.js").Step} */ step) => profile.document.is_behind && step.device ? step.device[1] : step.duration;
  const sorted = [...profile.steps].sort((a, b) => length(a) - length(b));
  return sorted[Math.max(0, Math.ceil(sorted.length / 2) - 1)];
}
