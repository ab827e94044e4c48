// @ts-check
// What happens inside of events: what they call, and the kernels that they launch. Nothing here
// accesses the page.
import { bisect } from "./profile.js";

/** @typedef {import("./profile.js").Profile} Profile */

/**
 * Marks events.
 * @param {Profile} profile
 * @param {number[]} events
 */
function marked(profile, events) {
  const marks = new Uint8Array(profile.count);
  for (const index of events) marks[index] = 1;
  return marks;
}

/**
 * Returns the events directly inside of some events. Merged calls are not among them: what they call
 * is called by the event around them.
 * @param {Profile} profile
 * @param {number[]} events
 * @returns {number[]}
 */
export function calleesOf(profile, events) {
  const { parent, isMerged } = profile, marks = marked(profile, events), found = [];
  // An event follows the event around it.
  for (let index = 0; index < profile.count; index += 1) {
    const around = parent[index];
    if (around < 0 || !marks[around]) continue;
    if (isMerged[index]) marks[index] = 1; else found.push(index);
  }
  return found;
}

/**
 * Returns the operators that launched kernels, in the order of the kernels; -1 where none is known.
 * @param {Profile} profile
 * @param {number[]} kernels
 * @returns {number[]}
 */
export function launchersOf(profile, kernels) {
  const from = profile.columns.get("owner_from"), to = profile.columns.get("owner_to");
  return kernels.map((kernel) => {
    if (!from || !to) return -1;
    const at = bisect(to, kernel);
    return to[at] === kernel ? from[at] : -1;
  });
}

/**
 * Returns the kernels that were launched inside of some events, with the operators that launched them.
 * @param {Profile} profile
 * @param {number[]} events
 * @returns {{ kernel: number, owner: number }[]}
 */
export function kernelsOf(profile, events) {
  const { parent, columns } = profile, marks = marked(profile, events);
  for (let index = 0; index < profile.count; index += 1) if (parent[index] >= 0 && marks[parent[index]]) marks[index] = 1;
  const from = columns.get("owner_from"), to = columns.get("owner_to"), found = [];
  for (let i = 0; from && to && i < from.length; i += 1) if (marks[from[i]] && !marks[to[i]]) found.push({ kernel: to[i], owner: from[i] });
  return found;
}
