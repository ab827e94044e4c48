// @ts-check
// Draws charts of memory and handles their input.
import { bytesText, roundText } from "./numbers.js";
import { makeShape } from "./elements.js";
import { highestEdge, indexAt, layersOf, microsText, outlineOf, thinnedPoints, ticksTo } from "./memory_chart.js";

/**
 * @typedef {object} MemoryData
 * @property {string[]} categories
 * @property {number[]} colours
 * @property {number[]} times  In microseconds.
 * @property {number[][]} bytes  The bytes of each category at each time.
 * @property {number} end
 * @property {number | null} peak
 * @property {number} peak_bytes
 * @property {string} peak_text  The same as text, with how exact it is.
 */

/**
 * Draws the chart of one device into its figure.
 * @param {any} root
 * @param {MemoryData} data
 */
export function showMemory(root, data) {
  /** @param {string} name @returns {any} */
  const part = (name) => root.getElementsByClassName(name)[0];
  const [frame, tip, reading] = ["chart", "chart-tip", "reading"].map(part);
  root.hidden = false;
  if (data.times.length === 0) {
    frame.textContent = "No memory was recorded for this device.";
    part("tools").hidden = true;
    return;
  }
  const EDGE = { left: 72, right: 12, top: 28, bottom: 28 };
  const HEIGHT = 380, SMALLEST_SPAN = 10;
  const last = Math.max(data.end, data.times[data.times.length - 1] + 1);
  /** @type {[number, number]} */
  const whole = [data.times[0], last];
  /** @type {{ width: number, most: number, shown: boolean[], range: [number, number], chosen: [number, number] | null, cursor: number | null }} */
  const state = { width: 0, most: 1, shown: data.categories.map(() => true), range: whole, chosen: null, cursor: null };
  /** @type {Element} */
  let overlay = frame;

  const inner = () => state.width - EDGE.left - EDGE.right;
  /** @param {number} time */
  const toX = (time) => EDGE.left + (time - state.range[0]) / (state.range[1] - state.range[0]) * inner();
  /** @param {number} bytes */
  const toY = (bytes) => HEIGHT - EDGE.bottom - bytes / state.most * (HEIGHT - EDGE.top - EDGE.bottom);
  /** @param {number} time */
  const isSeen = (time) => time >= state.range[0] && time <= state.range[1];

  function visible() {
    const first = indexAt(data.times, state.range[0]);
    const end = indexAt(data.times, state.range[1]) + 1;
    const times = data.times.slice(first, end).map((time) => Math.max(time, state.range[0]));
    // Two points for each column of pixels: more would not be visible, and appear after zooming in.
    return thinnedPoints(times, data.bytes.slice(first, end), 2 * state.width);
  }

  function draw() {
    state.width = Math.max(320, frame.clientWidth);
    const { times, rows } = visible();
    const layered = layersOf(rows, state.shown);
    const marks = ticksTo(highestEdge(layered), 5, 2);
    state.most = marks[marks.length - 1] || 1;
    const svg = makeShape("svg", { width: state.width, height: HEIGHT, viewBox: `0 0 ${state.width} ${HEIGHT}` });
    for (const mark of marks) {
      makeShape("line", { class: "grid", x1: EDGE.left, x2: state.width - EDGE.right, y1: toY(mark), y2: toY(mark) }, svg);
      makeShape("text", { x: EDGE.left - 8, y: toY(mark) + 4, "text-anchor": "end" }, svg, roundText(bytesText(mark)));
    }
    const xs = times.map(toX), end = toX(state.range[1]);
    layered.forEach((layer, category) => {
      if (!layer) return;
      makeShape("path", { d: outlineOf(layer, xs, end, toY), class: `category-${data.colours[category]}` }, svg);
    });
    drawTimes(svg);
    drawPeak(svg);
    overlay = makeShape("g", {}, svg);
    drawOverlay();
    listen(svg);
    frame.replaceChildren(svg);
  }

  /** @param {Element} svg */
  function drawTimes(svg) {
    const [from, to] = state.range;
    const step = ticksTo(to - from, state.width / 150, 10)[1] || to - from;
    for (let time = Math.ceil(from / step) * step; time <= to; time += step) {
      const anchor = toX(time) > state.width - 40 ? "end" : "middle";
      makeShape("text", { x: toX(time), y: HEIGHT - 8, "text-anchor": anchor }, svg, roundText(microsText(time)));
    }
  }

  /** @param {Element} svg */
  function drawPeak(svg) {
    if (data.peak === null || !isSeen(data.peak)) return;
    const x = toX(data.peak), y = Math.max(toY(data.peak_bytes), EDGE.top);
    for (const name of ["halo", "peak"]) makeShape("line", { class: name, x1: x, x2: x, y1: EDGE.top - 6, y2: HEIGHT - EDGE.bottom }, svg);
    if (state.shown.every(Boolean)) makeShape("circle", { class: "peak-spot", cx: x, cy: y, r: 4 }, svg);
    const anchor = x > state.width / 2 ? "end" : "start";
    makeShape("text", { class: "peak-name", x, y: EDGE.top - 12, "text-anchor": anchor }, svg, `peak ${data.peak_text}`);
  }

  // The cursor is drawn on top: redrawing all layers at every move of the pointer would be too slow.
  function drawOverlay() {
    overlay.replaceChildren();
    if (state.chosen) {
      const [from, to] = state.chosen.map(toX).sort((a, b) => a - b);
      makeShape("rect", { class: "chosen", x: from, width: to - from, y: EDGE.top, height: HEIGHT - EDGE.top - EDGE.bottom }, overlay);
    }
    if (state.cursor !== null && isSeen(data.times[state.cursor])) {
      const x = toX(data.times[state.cursor]);
      for (const name of ["halo", "cursor"]) makeShape("line", { class: name, x1: x, x2: x, y1: EDGE.top, y2: HEIGHT - EDGE.bottom }, overlay);
    }
  }

  /** @param {number} category */
  function swatch(category) {
    const found = document.createElement("span");
    found.className = `swatch category-${data.colours[category]}`;
    
    return found;
  }

  /** @param {number} index */
  function read(index) {
    state.cursor = index;
    const row = data.bytes[index];
    /** @type {[number, string, number][]} */
    const all = data.categories.map((name, category) => [row[category], name, category]);
    const parts = all.filter(([bytes]) => bytes !== 0);
    const total = row.reduce((sum, bytes) => sum + bytes, 0);
    const moment = microsText(data.times[index]), inUse = bytesText(total);
    const table = document.createElement("table");
    for (const [bytes, name, category] of parts.reverse()) {
      const line = table.insertRow();
      line.insertCell().append(swatch(category), name);
      line.insertCell().textContent = bytesText(bytes);
    }
    const head = document.createElement("strong");
    head.textContent = `${moment}: ${inUse}`;
    tip.replaceChildren(head, table);
    tip.hidden = false;
    drawOverlay();
    const x = Math.min(Math.max(toX(data.times[index]), EDGE.left), state.width - EDGE.right);
    const left = x > state.width / 2 ? x - tip.offsetWidth - 12 : x + 12;
    tip.style.transform = `translate(${Math.max(0, left)}px, ${EDGE.top}px)`;
    return `${moment}: ${inUse}${parts.map(([bytes, name]) => `, ${name} ${bytesText(bytes)}`).join("")}`;
  }

  function leave() {
    state.cursor = null;
    tip.hidden = true;
    drawOverlay();
  }

  /** @param {number} from @param {number} to */
  function see(from, to) {
    const span = Math.min(Math.max(to - from, SMALLEST_SPAN), whole[1] - whole[0]);
    const start = Math.min(Math.max(from, whole[0]), whole[1] - span);
    state.range = [start, start + span];
    state.chosen = null;
    leave();
    draw();
  }

  /** @param {number} factor @param {number} around */
  function zoom(factor, around) {
    const cursor = state.cursor, [from, to] = state.range;
    see(around - (around - from) * factor, around + (to - around) * factor);
    if (cursor !== null) read(cursor);
  }

  function seePeak() {
    if (data.peak === null) return;
    const span = (whole[1] - whole[0]) / 10;
    see(data.peak - span / 2, data.peak + span / 2);
    reading.textContent = read(indexAt(data.times, data.peak));
  }

  /** @param {any} event @param {Element} svg */
  function timeOf(event, svg) {
    const x = event.clientX - svg.getBoundingClientRect().left;
    const time = state.range[0] + (x - EDGE.left) / inner() * (state.range[1] - state.range[0]);
    return Math.min(Math.max(time, state.range[0]), state.range[1]);
  }

  /** @param {any} svg */
  function listen(svg) {
    svg.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      const time = timeOf(event, svg);
      if (state.chosen) state.chosen[1] = time;
      read(indexAt(data.times, time));
    });
    svg.addEventListener("pointerleave", () => { if (!state.chosen) leave(); });
    svg.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
      if (event.button !== 0) return;
      const time = timeOf(event, svg);
      state.chosen = [time, time];
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointerup", () => {
      const [from, to] = state.chosen ? state.chosen.slice().sort((a, b) => a - b) : [0, 0];
      state.chosen = null;
      if (to - from > (state.range[1] - state.range[0]) / 100) see(from, to); else drawOverlay();
    });
    svg.addEventListener("pointercancel", () => { state.chosen = null; leave(); });
  }

  /** @param {number} index */
  function walk(index) {
    const next = Math.min(Math.max(index, 0), data.times.length - 1);
    const time = data.times[next], span = state.range[1] - state.range[0];
    if (!isSeen(time)) see(time - span / 2, time + span / 2);
    reading.textContent = read(next);
  }

  frame.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const first = indexAt(data.times, state.range[0]), cursor = state.cursor;
    const around = cursor === null ? (state.range[0] + state.range[1]) / 2 : data.times[cursor];
    const action = /** @type {Record<string, () => void>} */ ({
      ArrowLeft: () => walk(cursor === null ? first : cursor - 1),
      ArrowRight: () => walk(cursor === null ? first : cursor + 1),
      Home: () => walk(0),
      End: () => walk(data.times.length - 1),
      p: seePeak,
      P: seePeak,
      "+": () => zoom(0.5, around),
      "=": () => zoom(0.5, around),
      "-": () => zoom(2, around),
      Escape: () => see(...whole),
    })[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });

  const legend = part("categories");
  data.categories.forEach((/** @type {string} */ name, /** @type {number} */ category) => {
    if (data.bytes.every((row) => row[category] === 0)) return;
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", "true");
    button.append(swatch(category), name);
    button.addEventListener("click", () => {
      state.shown[category] = !state.shown[category];
      button.setAttribute("aria-pressed", String(state.shown[category]));
      draw();
    });
    legend.appendChild(button);
  });
  part("at-peak").addEventListener("click", seePeak);
  part("see-all").addEventListener("click", () => see(...whole));
  new ResizeObserver(() => { if (frame.clientWidth > 0 && frame.clientWidth !== state.width) draw(); }).observe(frame);
  draw();
}
