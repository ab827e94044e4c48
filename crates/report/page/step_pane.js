// @ts-check
// The pane of one step: the timeline, what is selected in it, and what differs from the median step.
import { countedText, momentText, timeText } from "./numbers.js";
import { byId, download, make } from "./elements.js";
import { readIndex, readRange, writeRange } from "./address.js";
import { CATEGORIES, familyColours } from "./colours.js";
import { PATH_COLOURS, Timeline } from "./timeline.js";
import { showTable } from "./tables.js";
import { detailAddress, differenceTable, rangeTable } from "./events_table.js";
import { traceText } from "./trace_file.js";
import { isOnDevice } from "./sums.js";
import { shortName } from "./names.js";

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
    const isDark = matchMedia("(prefers-color-scheme: dark)");
    const swatches = CATEGORIES.map(() => make("span", { class: "swatch hues" }));
    const fill = () => swatches.forEach((swatch, number) => { swatch.style.background = `linear-gradient(to right, ${familyColours(number, isDark.matches).join(", ")})`; });
    fill();
    isDark.addEventListener("change", fill);
    const known = CATEGORIES.map((name, number) => category.includes(number) ? make("li", {}, swatches[number], name) : null);
    const events = make("ul", { class: "legend" }, make("li", { class: "quiet" }, "events, by name in shades of:"), ...known);
    byId("timeline-help").before(events);
    const kinds = new Set(columns.get("path_kind") || []);
    if (kinds.size === 0) return;
    const list = make("ul", { class: "legend" }, make("li", { class: "quiet" }, "critical path:"));
    for (const kind of [...kinds].sort((a, b) => a - b)) {
      const swatch = make("span", { class: "swatch" });
      swatch.style.background = PATH_COLOURS[kind];
      list.append(make("li", {}, swatch, path_kinds[kind]));
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
      this.timeline.see(this.profile.whole);
    }
    this.showSelection();
  }

  /**
   * Shows the view of an address.
   * @param {Record<string, string>} query
   */
  show(query) {
    const { timeline } = this;
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
    timeline.draw();
  }

  keepView() {
    const { timeline } = this;
    const isWhole = timeline.range[0] === this.profile.whole[0] && timeline.range[1] === this.profile.whole[1];
    this.keep({
      step: this.step, at: isWhole ? "" : writeRange(timeline.range), chosen: writeRange(timeline.chosen),
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
      showTable(holder, rangeTable(profile, chosen));
    } else {
      this.showDifference(root);
    }
  }

  /** @param {HTMLElement} root */
  showDifference(root) {
    const { profile } = this;
    const step = profile.steps.find((one) => String(one.number) === this.step);
    const median = medianStep(profile);
    if (!step || !median) return;
    const holder = make("div", { class: "wide" });
    const isMedian = step === median;
    const caption = isMedian ? `Events of step ${step.number}, which is the median step` : `What differs from step ${median.number}, the median step`;
    root.append(make("h2", {}, caption), holder);
    /** @param {{ start: number, duration: number }} one @returns {[number, number]} */
    const range = (one) => [one.start, one.start + one.duration];
    showTable(holder, isMedian ? rangeTable(profile, range(step)) : differenceTable(profile, range(step), range(median), caption));
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
      const jump = make("button", { type: "button", class: "link", onclick: () => this.timeline.select(arrow.other, true) }, profile.nameOf(arrow.other));
      list.append(make("dt", {}, arrow.title), make("dd", {}, jump));
    }
    const stack = profile.stackOf(index);
    if (stack.length) list.append(make("dt", {}, "Stack"), make("dd", {}, make("pre", {}, stack.join("\n"))));
    return make("section", { class: "card", "aria-label": "Selected event" },
      make("h2", {}, make("a", { href: `#${detailAddress(profile.nameOf(index))}`, title: profile.nameOf(index) }, shortName(profile.nameOf(index)))), list);
  }
}

/**
 * Returns the step with the median duration.
 * @param {Profile} profile
 */
export function medianStep(profile) {
  const sorted = [...profile.steps].sort((a, b) => a.duration - b.duration);
  return sorted[Math.max(0, Math.ceil(sorted.length / 2) - 1)];
}
