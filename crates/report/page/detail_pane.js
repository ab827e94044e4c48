// @ts-check
// The detail of one thing: an operator, a kernel, a function, a line or a module, with its events,
// percentiles, shapes, callers, callees, stacks and source lines.
import { countedText, numberText, timeText } from "./numbers.js";
import { shownName } from "./names.js";
import { byId, make, makeShape } from "./elements.js";
import { readIndex } from "./address.js";
import { OutermostCalls, histogram, isOnDevice, percentile, toldPercentiles } from "./sums.js";
import { calleesOf, launchersOf } from "./inside.js";
import { detailAddress, eventsTable } from "./events_table.js";
import { addTable, groupTable, showSource } from "./detail_parts.js";
import { showFinding } from "./finding_detail.js";
import { costOf, showCost } from "./costs.js";
import { cellName } from "./sorting.js";
import { groupOf } from "./groups.js";

/** @typedef {import("./profile.js").Profile} Profile */
/** @typedef {import("./sorting.js").Cell} Cell */

const MOST_EVENTS = 200;

/**
 * Shows the detail that an address asks for.
 * @param {Profile} profile
 * @param {Record<string, string>} query
 * @param {Map<string, import("./tables.js").TableData>} tables
 */
export function showDetail(profile, query, tables) {
  const root = byId("detail-body");
  const name = query.name || "";
  root.replaceChildren();
  if (query.kind === "finding") return showFinding(profile, root, readIndex(name, profile.document.findings.length));
  const { title, isWanted, place } = wanted(query.kind || "event", name);
  const cost = costOf(profile, query.kind || "event", name);
  root.append(make("h1", {}, cost ? cellName(cost.row[0]) : title), make("p", { class: "quiet" }, KINDS.get(query.kind) || "All events of this name"));
  if (cost) showCost(root, cost);
  const numbers = new Set();
  profile.strings.forEach((text, number) => { if (isWanted(text)) numbers.add(number); });
  if (place) showSource(profile, root, place.file, place.line);
  const all = eventsOf(profile, numbers, query.kind || "event"), group = groupOf(profile, tables, query, [...all.cpu, ...all.device]);
  if (group) root.append(make("p", {}, `${group.text} `, group.events ? make("a", { href: `#detail?kind=${query.kind}&name=${encodeURIComponent(name)}` }, "Show all of them") : null));
  const isShown = (/** @type {number} */ index) => !group?.events || group.events.has(index);
  const events = { cpu: all.cpu.filter(isShown), device: all.device.filter(isShown) };
  if (events.cpu.length > 0 && events.device.length > 0) {
    for (const [part, title] of /** @type {[number[], string][]} */ ([[events.cpu, "On the CPU"], [events.device, "On the device"]])) {
      root.append(make("h2", { class: "part" }, title));
      showEvents(profile, root, part);
    }
  } else if (events.cpu.length + events.device.length > 0) showEvents(profile, root, [...events.cpu, ...events.device]);
  else showCalled(profile, root, isWanted, place);
}

/**
 * Returns the events of some names on the CPU and on devices, as far as a kind has them. Merged calls
 * are left out, as in tables.
 * @param {Profile} profile
 * @param {Set<number>} names
 * @param {string} kind
 * @returns {{ cpu: number[], device: number[] }}
 */
export function eventsOf(profile, names, kind) {
  /** @type {{ cpu: number[], device: number[] }} */
  const found = { cpu: [], device: [] };
  for (let index = 0; index < profile.count; index += 1) {
    if (!names.has(profile.name[index]) || profile.isMerged[index]) continue;
    (isOnDevice(profile.groupOf(index)) ? found.device : found.cpu).push(index);
  }
  if (kind === "kernel") found.cpu = [];
  else if (kind !== "event" && KINDS.has(kind)) found.device = [];
  return found;
}

const KINDS = new Map([["operator", "Operator"], ["kernel", "Kernel"], ["function", "Function"], ["line", "Line"], ["module", "Module"]]);

/**
 * Returns which names of events or frames belong to the thing.
 * @param {string} kind
 * @param {string} name
 * @returns {{ title: string, isWanted: (text: string) => boolean, place: { file: string, line: number } | null }}
 */
export function wanted(kind, name) {
  const place = /^(.*):(\d*):(.*)$/.exec(name);
  if ((kind === "function" || kind === "line") && place) {
    const [, file, line, code] = place;
    const end = `: ${code}`;
    const exact = `${file}(${line}): ${code}`;
    const isFunction = (/** @type {string} */ text) => text === exact || (line === "" && text.startsWith(`${file}(`) && text.endsWith(end));
    return { title: `${code} (${file}${line ? `:${line}` : ""})`, isWanted: isFunction, place: { file, line: Number(line) } };
  }
  const frame = /^(.*)\((\d+)\): (.*)$/.exec(name);
  if (kind === "module") return { title: name, isWanted: (text) => text.startsWith("nn.Module: ") && text.slice(11).replace(/_\d+$/, "") === name, place: null };
  const isPattern = name.endsWith("*");
  return {
    title: shownName(name), place: frame ? { file: frame[1], line: Number(frame[2]) } : null,
    isWanted: (text) => text === name || (isPattern && text.startsWith(name.slice(0, -1))),
  };
}

/**
 * @param {Profile} profile
 * @param {HTMLElement} root
 * @param {number[]} events
 */
function showEvents(profile, root, events) {
  const times = Float64Array.from(events, (index) => profile.duration[index]).sort();
  const total = totalOf(profile, events), own = events.reduce((sum, index) => sum + profile.own[index], 0);
  const tiles = make("ul", { class: "tiles" }), isDevice = isOnDevice(profile.groupOf(events[0]));
  for (const [value, name] of [
    [numberText(events.length, "count"), events.length === 1 ? "event" : "events"], [timeText(total), "total"], ...isDevice ? [] : [[timeText(own), "self"]],
    ...toldPercentiles(times, profile.document.percentiles).map(([name, time]) => [timeText(time), name]),
    [timeText(times[times.length - 1]), "longest"],
  ]) tiles.append(make("li", {}, make("b", {}, value), make("span", {}, name)));
  root.append(tiles);
  if (events.length > 4 && times[0] < times[times.length - 1]) root.append(make("h2", {}, "How long they take"), histogramPicture(times));
  groupTable(profile, root, events, "shapes", "By the shapes and dtypes of their inputs", ["Input shapes", "Dtypes"],
    (index) => profile.inputs[index] || -1, (index) => [profile.shapesOf(index), profile.dtypesOf(index)]);
  const parentName = (/** @type {number} */ index) => profile.nameOf(profile.parent[index]);
  const launchers = new Map(launchersOf(profile, events).map((launcher, at) => [events[at], launcher]));
  const launcherName = (/** @type {number} */ index) => profile.nameOf(launchers.get(index) ?? -1);
  // What surrounds work on a device is a range, not a caller.
  if (isDevice) groupTable(profile, root, events.filter((index) => (launchers.get(index) ?? -1) >= 0), "launchers", "Launched by", ["Operator"],
    (index) => profile.name[launchers.get(index) ?? 0], (index) => [[launcherName(index), detailAddress(launcherName(index))]]);
  else groupTable(profile, root, events, "callers", "Called by", ["Caller"],
    (index) => (profile.parent[index] < 0 ? -1 : profile.name[profile.parent[index]]), (index) => [[parentName(index), detailAddress(parentName(index))]]);
  const called = calleesOf(profile, events);
  groupTable(profile, root, called, "callees", "Calls", ["Callee"],
    (index) => profile.name[index], (index) => [[profile.nameOf(index), detailAddress(profile.nameOf(index))]]);
  groupTable(profile, root, events, "by-stack", "By stack, innermost first", ["Stack"],
    (index) => profile.stack[index] || -1, (index) => [profile.stackOf(index).slice(0, 6).map(shownName).join("  \u2190  ")]);
  groupTable(profile, root, events, "by-step", "By step", ["Step"],
    (index) => profile.stepAt(profile.start[index])?.number ?? -1, (index) => {
      const number = profile.stepAt(profile.start[index])?.number;
      return [[String(number), `step?step=${number}`]];
    });
  const longest = [...events].sort((a, b) => profile.duration[b] - profile.duration[a]).slice(0, MOST_EVENTS);
  const caption = events.length > MOST_EVENTS ? `The longest ${MOST_EVENTS} of ${countedText(events.length, "event")}` : "Events";
  addTable(root, caption, eventsTable(profile, longest, "events", caption));
}

/**
 * Returns the time of events of one thread after the other. Calls of a function inside of itself are
 * in the time of the outermost one.
 * @param {Profile} profile
 * @param {number[]} events
 */
export function totalOf(profile, events) {
  let total = 0, track = -1, outermost = new OutermostCalls(profile);
  for (const index of events) {
    const own = profile.trackOf(index);
    if (own !== track) outermost = new OutermostCalls(profile);
    track = own;
    total += outermost.timeOf(index);
  }
  return total;
}

/**
 * Shows what a function, line or module led to, if its calls were not recorded.
 * @param {Profile} profile
 * @param {HTMLElement} root
 * @param {(text: string) => boolean} isWanted
 * @param {{ file: string, line: number } | null} place
 */
function showCalled(profile, root, isWanted, place) {
  const callers = profile.columns.get("stack_caller"), frames = profile.columns.get("stack_frame");
  const isNear = (/** @type {string} */ text) => isWanted(text) || (place !== null && text.startsWith(`${place.file}(${place.line})`));
  const events = [];
  if (callers && frames) {
    const isFrame = Uint8Array.from(profile.strings, (text) => Number(isNear(text)));
    const isInside = new Uint8Array(callers.length);
    for (let stack = 1; stack < callers.length; stack += 1) isInside[stack] = isInside[callers[stack]] || isFrame[frames[stack]];
    for (let index = 0; index < profile.count; index += 1) if (profile.stack[index] && isInside[profile.stack[index]]) events.push(index);
  }
  if (events.length === 0) {
    root.append(make("p", {}, "The recording has no events of it."));
    return;
  }
  root.append(make("p", {}, `Its calls were not recorded. It led to ${countedText(events.length, "event")}:`));
  groupTable(profile, root, events, "called", "What it led to", ["Name"],
    (index) => profile.name[index], (index) => [[profile.nameOf(index), detailAddress(profile.nameOf(index))]]);
}

/** @param {Float64Array} sorted */
function histogramPicture(sorted) {
  const bars = histogram(sorted, 40), most = Math.max(...bars.map((bar) => bar.count));
  const svg = makeShape("svg", { viewBox: "0 0 400 80", preserveAspectRatio: "none", class: "histogram", role: "img", "aria-label": `Most take ${timeText(percentile(sorted, 0.5))}; the longest ${timeText(sorted[sorted.length - 1])}` });
  bars.forEach((bar, index) => {
    const tall = bar.count === 0 ? 0 : Math.max(2, bar.count / most * 78);
    const shape = makeShape("rect", { x: index * 10, width: 9, y: 80 - tall, height: tall }, svg);
    makeShape("title", {}, shape, `${bar.count} of ${timeText(bar.from)} to ${timeText(bar.to)}`);
  });
  return make("figure", { class: "spread" }, svg, make("div", { class: "ends" }, make("span", {}, timeText(bars[0].from)), make("span", {}, timeText(bars[bars.length - 1].to))));
}
