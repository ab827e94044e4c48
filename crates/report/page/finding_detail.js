// @ts-check
// The detail of a finding: its price, the events that show it, and the kernels that they launched.
import { countedText, grouped } from "./numbers.js";
import { make } from "./elements.js";
import { kernelsOf } from "./inside.js";
import { detailAddress, eventsTable } from "./events_table.js";
import { addTable, groupTable, showSource } from "./detail_parts.js";

/** @typedef {import("./profile.js").Profile} Profile */

/**
 * Shows a finding.
 * @param {Profile} profile
 * @param {HTMLElement} root
 * @param {number} number
 */
export function showFinding(profile, root, number) {
  const finding = profile.document.findings[number];
  if (!finding) {
    root.append(make("p", {}, "There is no such finding."));
    return;
  }
  root.append(
    make("h1", {}, finding.cause), make("p", { class: "quiet" }, `Finding ${finding.rule}, ${finding.confidence} confidence`),
    make("ul", { class: "tiles" },
      finding.is_priced ? make("li", {}, make("b", {}, finding.price), make("span", {}, finding.is_least ? "of a step or more would be saved" : "of a step would be saved")) : null,
      finding.range ? make("li", {}, make("b", {}, finding.range), make("span", {}, "likely, from least to most")) : null,
      finding.count > 0 ? make("li", {}, make("b", {}, grouped(finding.count)), make("span", {}, finding.count === 1 ? "event shows it" : "events show it")) : null),
    ...finding.lines.map((/** @type {string} */ line) => make("p", { title: line.includes("...") ? finding.name : null }, line)),
    make("p", { class: "try" }, make("b", {}, "Try"), ` ${finding.remedy}`));
  if (finding.basis) root.append(make("p", { class: "quiet" }, `${finding.basis}.`));
  if (finding.function) {
    const key = `${finding.file}:${finding.line}:${finding.function}`;
    root.append(make("p", {}, "Function: ", make("a", { href: `#detail?kind=function&name=${encodeURIComponent(key)}` }, `${finding.function} (${finding.file}:${finding.line})`)));
  }
  if (finding.file) showSource(profile, root, finding.file, finding.line);
  if (finding.events.length === 0) return;
  const caption = finding.events.length < finding.count ? `The ${finding.events.length} longest of ${countedText(finding.count, "event")} that show it` : "Events that show it";
  addTable(root, caption, eventsTable(profile, finding.events, "evidence", caption));
  showKernels(profile, root, finding.events);
}

/**
 * Shows the kernels that events of the CPU launched, by name and by the operator that launched them.
 * @param {Profile} profile
 * @param {HTMLElement} root
 * @param {number[]} events
 */
function showKernels(profile, root, events) {
  const owners = new Map(kernelsOf(profile, events).map(({ kernel, owner }) => [kernel, owner]));
  const nameOf = (/** @type {number} */ index) => [profile.nameOf(index), detailAddress(profile.nameOf(index))];
  groupTable(profile, root, [...owners.keys()], "evidence-kernels", "Kernels that these events launched", ["Kernel", "Launched by"],
    (kernel) => profile.name[kernel] * profile.strings.length + profile.name[owners.get(kernel) || 0],
    (kernel) => /** @type {import("./sorting.js").Cell[]} */ ([nameOf(kernel), nameOf(owners.get(kernel) || 0)]));
}
