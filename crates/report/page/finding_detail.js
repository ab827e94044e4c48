// @ts-check
// The detail of a finding: its price, the events that show it, and the kernels that they launched.
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
      make("li", {}, make("b", {}, finding.price), make("span", {}, "of a step saved, likely")),
      finding.range ? make("li", {}, make("b", {}, finding.range), make("span", {}, "range")) : null,
      make("li", {}, make("b", {}, String(finding.count)), make("span", {}, "events show it"))),
    ...finding.lines.map((/** @type {string} */ line) => make("p", {}, line)),
    make("p", { class: "try" }, make("b", {}, "Try"), ` ${finding.remedy}`));
  if (finding.file) showSource(profile, root, finding.file, finding.line);
  if (finding.events.length === 0) return;
  const caption = finding.events.length < finding.count ? `The ${finding.events.length} longest of ${finding.count} events that show it` : "Events that show it";
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
