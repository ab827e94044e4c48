// @ts-check
// Sums over events: by name in a range, percentiles, histograms. Nothing here accesses the page.
import { GROUPS, GROUP_COUNT, PYTHON, bisect } from "./profile.js";

/**
 * @typedef {object} NameSum
 * @property {number} name
 * @property {number} group  One of `GROUPS`.
 * @property {number} category  That of the first event.
 * @property {number} count
 * @property {number} own
 * @property {number} total
 * @property {number} device
 */

/**
 * Sums up the events that begin in a range by name and group, those with most own time first. Calls
 * and times are those of `mindprof table`: merged calls are one, and recursive calls of a Python
 * function are in the time of the outermost one. Device time is that of the kernels that an operator
 * itself launched.
 * @param {import("./profile.js").Profile} profile
 * @param {[number, number]} range
 * @param {[number, number]} [onDevices]  The range for events of devices, if they run behind the CPU.
 * @returns {NameSum[]}
 */
export function sumByName(profile, range, onDevices = range) {
  const { start, name, category, own, columns } = profile;
  const slots = profile.strings.length * GROUP_COUNT;
  const count = new Uint32Array(slots), total = new Float64Array(slots), kind = new Uint8Array(slots);
  const self = new Float64Array(slots), device = new Float64Array(slots);
  for (const track of profile.tracks) {
    const [first, end] = eventsIn(profile, track, track.is_stream ? onDevices : range);
    const outermost = new OutermostCalls(profile);
    for (let index = first; index < end; index += 1) {
      if (profile.isMerged[index]) continue;
      const slot = name[index] * GROUP_COUNT + profile.groupOf(index, track);
      if (count[slot] === 0) kind[slot] = category[index];
      count[slot] += 1;
      total[slot] += outermost.timeOf(index);
      self[slot] += own[index];
    }
  }
  const from = columns.get("owner_from"), to = columns.get("owner_to");
  for (let i = 0; from && to && i < from.length; i += 1) {
    const owner = from[i];
    if (start[owner] >= range[0] && start[owner] < range[1]) device[name[owner] * GROUP_COUNT + profile.groupOf(owner)] += profile.duration[to[i]];
  }
  const sums = [];
  for (let slot = 0; slot < slots; slot += 1) {
    if (count[slot] === 0) continue;
    const group = slot % GROUP_COUNT, isDevice = isOnDevice(group);
    sums.push({
      name: Math.floor(slot / GROUP_COUNT), group, category: kind[slot], count: count[slot],
      own: isDevice ? 0 : self[slot], total: isDevice ? 0 : total[slot], device: isDevice ? total[slot] : device[slot],
    });
  }
  // Ranges of a device span work, and come after it.
  const isSpan = (/** @type {NameSum} */ sum) => Number(sum.group === GROUPS.deviceRange);
  return sums.sort((a, b) => isSpan(a) - isSpan(b) || b.own + b.device - a.own - a.device);
}

/**
 * Returns whether events of a group ran on a device.
 * @param {number} group
 */
export function isOnDevice(group) {
  return group === GROUPS.device || group === GROUPS.deviceRange;
}

/**
 * The outermost calls of the Python functions of a track that are open, while events come by start.
 *
 * f  |---------------|   |---|     outermost
 * f    |----------|                inside: its time is not counted again
 */
export class OutermostCalls {
  /** @param {import("./profile.js").Profile} profile */
  constructor(profile) {
    this.profile = profile;
    /** @type {Map<number, number>} */
    this.ends = new Map();
  }

  /**
   * Returns the time that an event adds to the total of its name.
   * @param {number} index
   */
  timeOf(index) {
    const { profile, ends } = this, time = profile.duration[index];
    if (profile.category[index] !== PYTHON) return time;
    const end = ends.get(profile.name[index]) || 0;
    if (profile.start[index] < end && profile.endOf(index) <= end) return 0;
    ends.set(profile.name[index], profile.endOf(index));
    return time;
  }
}

/**
 * Returns the positions of the first event of a track that begins in a range, and of the first after.
 * @param {import("./profile.js").Profile} profile
 * @param {import("./profile.js").Track} track
 * @param {[number, number]} range
 * @returns {[number, number]}
 */
export function eventsIn(profile, track, range) {
  const starts = profile.start.subarray(track.first, track.first + track.count);
  return [track.first + bisect(starts, range[0]), track.first + bisect(starts, range[1])];
}

/**
 * Returns the value that a share of the values does not exceed.
 * @param {ArrayLike<number>} sorted
 * @param {number} share
 */
export function percentile(sorted, share) {
  if (sorted.length === 0) return 0;
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1))];
}

/**
 * Returns the names and values of the median and of the percentiles that say something about so few values.
 * @param {ArrayLike<number>} sorted
 * @param {[string, number, number][]} told  Names, percentages and the least number of values.
 * @returns {[string, number][]}
 */
export function toldPercentiles(sorted, told) {
  if (sorted.length < 2) return [];
  const named = told.filter(([, , least]) => sorted.length >= least);
  return [["p50", percentile(sorted, 0.5)], ...named.map(([name, percent]) => /** @type {[string, number]} */ ([name, percentile(sorted, percent / 100)]))];
}

/**
 * Counts sorted durations in classes whose bounds grow by a constant factor.
 * @param {ArrayLike<number>} sorted
 * @param {number} most
 * @returns {{ from: number, to: number, count: number }[]}
 */
export function histogram(sorted, most) {
  if (sorted.length === 0) return [];
  const low = Math.max(sorted[0], 1), high = Math.max(sorted[sorted.length - 1], low * 1.01);
  const factor = (high / low) ** (1 / most);
  const bars = [];
  for (let i = 0; i < most; i += 1) bars.push({ from: low * factor ** i, to: low * factor ** (i + 1), count: 0 });
  for (let i = 0; i < sorted.length; i += 1) {
    const at = Math.floor(Math.log(Math.max(sorted[i], low) / low) / Math.log(factor) + 1e-9);
    bars[Math.min(Math.max(at, 0), most - 1)].count += 1;
  }
  return bars;
}

/**
 * Returns what differs most between the sums of two ranges, the largest difference first. Ranges of
 * a device are left out, because they are no work.
 * @param {NameSum[]} sums
 * @param {NameSum[]} usual
 * @param {number} most
 */
export function differences(sums, usual, most) {
  /** @type {Map<number, { name: number, category: number, time: number, calls: number, usualCalls: number }>} */
  const found = new Map();
  for (const [list, sign] of /** @type {[NameSum[], number][]} */ ([[sums, 1], [usual, -1]])) {
    for (const sum of list) {
      if (sum.group === GROUPS.deviceRange) continue;
      const key = sum.name * GROUP_COUNT + sum.group;
      const one = found.get(key) || { name: sum.name, category: sum.category, time: 0, calls: 0, usualCalls: 0 };
      one.time += sign * (isOnDevice(sum.group) ? sum.device : sum.own);
      if (sign > 0) one.calls = sum.count; else one.usualCalls = sum.count;
      found.set(key, one);
    }
  }
  const list = [...found.values()].filter((one) => one.time !== 0);
  return list.sort((a, b) => Math.abs(b.time) - Math.abs(a.time)).slice(0, most);
}
