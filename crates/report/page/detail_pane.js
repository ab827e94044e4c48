// @ts-check
// The detail of one thing: an operator, a kernel, a function, a line, a module or a finding, with its
// events, percentiles, shapes, stacks and source lines.
import { countedText, shareText, timeText } from "./numbers.js";
import { byId, make, makeShape } from "./elements.js";
import { readIndex } from "./address.js";
import { histogram, percentile } from "./sums.js";
import { showTable } from "./tables.js";
import { detailAddress, eventsTable, withoutEmpty } from "./events_table.js";

/** @typedef {import("./profile.js").Profile} Profile */
/** @typedef {import("./sorting.js").Cell} Cell */

const MOST_EVENTS = 200;

/**
 * Shows the detail that an address asks for.
 * @param {Profile} profile
 * @param {Record<string, string>} query
 */
export function showDetail(profile, query) {
  const root = byId("detail-body");
  const name = query.name || "";
  root.replaceChildren();
  if (query.kind === "finding") return showFinding(profile, root, readIndex(name, profile.document.findings.length));
  const { title, isWanted, place } = wanted(query.kind || "event", name);
  root.append(make("h1", {}, title), make("p", { class: "quiet" }, KINDS.get(query.kind) || "Event"));
  const numbers = new Set();
  profile.strings.forEach((text, number) => { if (isWanted(text)) numbers.add(number); });
  const events = [];
  for (let index = 0; index < profile.count; index += 1) if (numbers.has(profile.name[index])) events.push(index);
  if (place) showSource(profile, root, place.file, place.line);
  if (events.length > 0) showEvents(profile, root, events);
  else showCalled(profile, root, isWanted, place);
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
    title: name, place: frame ? { file: frame[1], line: Number(frame[2]) } : null,
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
  const total = times.reduce((sum, time) => sum + time, 0), own = events.reduce((sum, index) => sum + profile.own[index], 0);
  const tiles = make("ul", { class: "tiles" });
  for (const [value, name] of [
    [String(events.length), events.length === 1 ? "event" : "events"], [timeText(total), "total"], [timeText(own), "own"],
    [timeText(percentile(times, 0.5)), "p50"], [timeText(percentile(times, 0.9)), "p90"], [timeText(percentile(times, 0.99)), "p99"], [timeText(times[times.length - 1]), "longest"],
  ]) tiles.append(make("li", {}, make("b", {}, value), make("span", {}, name)));
  root.append(tiles);
  if (events.length > 4 && times[0] < times[times.length - 1]) root.append(make("h2", {}, "How long they take"), histogramPicture(times));
  groupTable(profile, root, events, "shapes", "By the shapes and dtypes of their inputs", ["Input shapes", "Dtypes"],
    (index) => profile.inputs[index] || -1, (index) => [profile.shapesOf(index), profile.dtypesOf(index)]);
  const parentName = (/** @type {number} */ index) => profile.nameOf(profile.parent[index]);
  groupTable(profile, root, events, "callers", "Called by", ["Caller"],
    (index) => (profile.parent[index] < 0 ? -1 : profile.name[profile.parent[index]]), (index) => [[parentName(index), detailAddress(parentName(index))]]);
  groupTable(profile, root, events, "by-stack", "By stack, innermost first", ["Stack"],
    (index) => profile.stack[index] || -1, (index) => [profile.stackOf(index).slice(0, 6).join("  \u2190  ")]);
  groupTable(profile, root, events, "by-step", "By step", ["Step"],
    (index) => profile.stepAt(profile.start[index])?.number ?? -1, (index) => {
      const number = profile.stepAt(profile.start[index])?.number;
      return [[String(number), `step?step=${number}`]];
    });
  const longest = [...events].sort((a, b) => profile.duration[b] - profile.duration[a]).slice(0, MOST_EVENTS);
  const caption = events.length > MOST_EVENTS ? `The longest ${MOST_EVENTS} of ${events.length} events` : "Events";
  addTable(root, caption, eventsTable(profile, longest, "events", caption));
}

/**
 * Adds a table of events grouped by a key, unless all are alike.
 * @param {Profile} profile
 * @param {HTMLElement} root
 * @param {number[]} events
 * @param {string} id
 * @param {string} caption
 * @param {string[]} titles
 * @param {(index: number) => number} keyOf  Returns the number of the group, or -1 for none.
 * @param {(index: number) => Cell[]} cellsOf  Returns what describes the group of an event.
 */
function groupTable(profile, root, events, id, caption, titles, keyOf, cellsOf) {
  /** @type {Map<number, { key: Cell[], count: number, total: number, most: number }>} */
  const groups = new Map();
  for (const index of events) {
    const key = keyOf(index);
    if (key < 0) continue;
    let group = groups.get(key);
    if (!group) {
      group = { key: cellsOf(index), count: 0, total: 0, most: 0 };
      groups.set(key, group);
    }
    group.count += 1;
    group.total += profile.duration[index];
    group.most = Math.max(group.most, profile.duration[index]);
  }
  if (groups.size === 0) return;
  const rows = [...groups.values()].map((group) => /** @type {Cell[]} */ ([...group.key, group.total, group.count, group.total / group.count, group.most]));
  const columns = /** @type {import("./tables.js").Column[]} */ ([
    ...titles.map((title, index) => ({ title, kind: index === 0 ? "name" : "text" })),
    { title: "Time", kind: "time" }, { title: "Calls", kind: "count" }, { title: "Mean", kind: "time" }, { title: "Longest", kind: "time" },
  ]);
  addTable(root, caption, withoutEmpty({ id, caption, columns, rows, sorted: titles.length }));
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

/**
 * @param {Profile} profile
 * @param {HTMLElement} root
 * @param {number} number
 */
function showFinding(profile, root, number) {
  const finding = profile.document.findings[number];
  if (!finding) {
    root.append(make("p", {}, "There is no such finding."));
    return;
  }
  root.append(
    make("h1", {}, finding.cause), make("p", { class: "quiet" }, `Finding ${finding.rule}, ${finding.confidence} confidence`),
    make("ul", { class: "tiles" },
      make("li", {}, make("b", {}, finding.share > 0 ? shareText(finding.share) : "\u2013"), make("span", {}, "of a step saved, likely")),
      make("li", {}, make("b", {}, `${shareText(finding.low)} to ${shareText(finding.high)}`), make("span", {}, "range")),
      make("li", {}, make("b", {}, String(finding.count)), make("span", {}, "events show it"))),
    ...finding.lines.map((/** @type {string} */ line) => make("p", {}, line)),
    make("p", { class: "try" }, make("b", {}, "Try"), ` ${finding.remedy}`));
  if (finding.file) showSource(profile, root, finding.file, finding.line);
  if (finding.events.length === 0) return;
  const caption = finding.events.length < finding.count ? `The ${finding.events.length} longest of ${finding.count} events that show it` : "Events that show it";
  addTable(root, caption, eventsTable(profile, finding.events, "evidence", caption));
}

/**
 * Shows the source lines around a line, if the page has them.
 * @param {Profile} profile
 * @param {HTMLElement} root
 * @param {string} file
 * @param {number} line
 */
function showSource(profile, root, file, line) {
  const sources = profile.document.source;
  if (!Object.hasOwn(sources, file)) return;
  const lines = sources[file];
  const near = Object.keys(lines).map(Number).filter((number) => Math.abs(number - line) <= 8).sort((a, b) => a - b);
  if (near.length === 0) return;
  const list = make("pre", { class: "source", "aria-label": `Lines of ${file}` });
  for (const number of near) list.append(make("span", { class: number === line ? "here" : null }, `${String(number).padStart(5)}  ${lines[number]}\n`));
  root.append(make("h2", {}, `${file}:${line}`), list);
}

/**
 * @param {HTMLElement} root
 * @param {string} title
 * @param {import("./tables.js").TableData} table
 */
function addTable(root, title, table) {
  const holder = make("div", { class: "wide" });
  root.append(make("h2", {}, title), holder);
  showTable(holder, table);
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
