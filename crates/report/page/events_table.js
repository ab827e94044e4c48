// @ts-check
// Tables about events that scripts compute: sums of a range, lists of events, differences of steps.
import { CATEGORIES } from "./colours.js";
import { differences, isOnDevice, sumByName } from "./sums.js";
import { cpuRange, deviceRange } from "./profile.js";

/** @typedef {import("./tables.js").TableData} TableData */
/** @typedef {import("./profile.js").Profile} Profile */

/**
 * Returns the address of the detail of an event's name.
 * @param {string} name
 */
export function detailAddress(name) {
  return `detail?kind=event&name=${encodeURIComponent(name)}`;
}

/**
 * Returns the address of an event in the timeline.
 * @param {number} index
 */
export function eventAddress(index) {
  return `step?event=${index}`;
}

/**
 * Returns the sums of the events that begin in a range.
 * @param {Profile} profile
 * @param {[number, number]} range
 * @param {[number, number]} [onDevices]
 * @returns {TableData}
 */
export function rangeTable(profile, range, onDevices = range) {
  const rows = sumByName(profile, range, onDevices).map((sum) => {
    const name = profile.strings[sum.name];
    return /** @type {import("./sorting.js").Cell[]} */ ([[name, detailAddress(name)], CATEGORIES[sum.category], sum.own, sum.total, sum.device, sum.count]);
  });
  return {
    id: "range", caption: "Events that begin in the range", sorted: null, rows,
    columns: [
      { title: "Name", kind: "name" }, { title: "Kind", kind: "text" },
      { title: "Self CPU", kind: "time", meaning: "CPU time without that of the events inside." },
      { title: "CPU total", kind: "time", meaning: "CPU time with that of the events inside." },
      { title: "Device", kind: "time", meaning: "The time of the kernels that it launched itself." },
      { title: "Calls", kind: "count" },
    ],
  };
}

/**
 * Returns a list of events.
 * @param {Profile} profile
 * @param {number[]} events
 * @param {string} id
 * @param {string} caption
 * @returns {TableData}
 */
export function eventsTable(profile, events, id, caption) {
  const rows = events.map((index) => {
    const step = profile.stepAt(profile.start[index]);
    return /** @type {import("./sorting.js").Cell[]} */ ([
      [profile.nameOf(index), eventAddress(index)], profile.duration[index], isOnDevice(profile.groupOf(index)) ? null : profile.own[index], profile.start[index],
      step ? [`${step.number}`, `step?step=${step.number}`] : null, profile.tracks[profile.trackOf(index)].name, profile.shapesOf(index), profile.dtypesOf(index),
    ]);
  });
  const columns = /** @type {import("./tables.js").Column[]} */ ([
    { title: "Event", kind: "name" }, { title: "Time", kind: "time" }, { title: "Self", kind: "time", meaning: "The time without that of the events inside." }, { title: "Begins", kind: "time" },
    { title: "Step", kind: "text" }, { title: "Track", kind: "text" }, { title: "Input shapes", kind: "text" }, { title: "Dtypes", kind: "text" },
  ]);
  return withoutEmpty({ id, caption, sorted: 1, rows, columns });
}

/**
 * Returns what differs between two steps.
 * @param {Profile} profile
 * @param {import("./profile.js").Step} step
 * @param {import("./profile.js").Step} usual
 * @param {string} caption
 * @returns {TableData}
 */
export function differenceTable(profile, step, usual, caption) {
  const [sums, usualSums] = [step, usual].map((one) => {
    const found = sumByName(profile, cpuRange(one), deviceRange(one));
    // The range that makes the step has another name in each of them.
    return found.filter((sum) => !/^ProfilerStep#\d+$/.test(profile.strings[sum.name]));
  });
  const found = differences(sums, usualSums, 40);
  const rows = found.map((one) => {
    const name = profile.strings[one.name];
    return /** @type {import("./sorting.js").Cell[]} */ ([[name, detailAddress(name)], CATEGORIES[one.category], one.time, one.calls, one.usualCalls]);
  });
  return {
    id: "difference", caption, sorted: null, rows,
    columns: [
      { title: "Name", kind: "name" }, { title: "Kind", kind: "text" },
      { title: "Self time", kind: "time", meaning: "The self time in this step minus that in the other." },
      { title: "Calls", kind: "count" }, { title: "Calls there", kind: "count" },
    ],
  };
}

/**
 * Drops the columns in which no row says anything.
 * @param {TableData} table
 * @returns {TableData}
 */
export function withoutEmpty(table) {
  const kept = table.columns.map((column, index) => column.kind === "name" || table.rows.some((row) => row[index] !== null && row[index] !== "" && row[index] !== 0));
  return {
    ...table,
    columns: table.columns.filter((_, index) => kept[index]),
    rows: table.rows.map((row) => row.filter((_, index) => kept[index])),
    sorted: table.sorted !== null && kept[table.sorted] ? kept.slice(0, table.sorted).filter(Boolean).length : null,
  };
}
