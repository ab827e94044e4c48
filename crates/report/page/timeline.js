// @ts-check
// The timeline: threads and streams with their events, steps, the critical path and memory above
// them. It draws on a canvas, and tells its owner what is selected.
import { markText, momentText, timeText } from "./numbers.js";
import { byId, make, say } from "./elements.js";
import { firstFrom, fittedRange, hitLane, visitVisible } from "./lanes.js";
import { rulerMarks } from "./marks.js";
import { LABEL_FONT, fittingText, placeTip, putCanvas, readTheme, shortLabel, sizedContext } from "./canvas.js";
import { CATEGORIES } from "./colours.js";
import { bisect, cpuRange, deviceRange, isBehind } from "./profile.js";
import { isOnDevice } from "./sums.js";
import { shownName } from "./names.js";

const RULER = 22, BAND = 16, MEMORY = 44, CAPTION = 14, HEADER = 17, ROW = 16;
const LEAST_RANGE = 50;

/**
 * @typedef {object} Row
 * @property {number} track
 * @property {number} top
 * @property {number} height
 */

export class Timeline {
  /**
   * @param {HTMLElement} frame
   * @param {import("./profile.js").Profile} profile
   * @param {{ onRange: () => void, onSelect: (index: number) => void, onChoose: () => void }} listener
   */
  constructor(frame, profile, listener) {
    this.frame = frame;
    this.profile = profile;
    this.listener = listener;
    /** @type {[number, number]} */
    this.range = profile.whole;
    /** @type {[number, number] | null} */
    this.chosen = null;
    this.selected = -1;
    this.hovered = -1;
    this.isWithPython = true;
    this.scroll = 0;
    /** @type {Set<number>} */
    this.folded = new Set();
    /** @type {Uint8Array | null} */
    this.found = null;
    /** @type {{ x: number, y: number, range: [number, number], scroll: number, isMove: boolean, isMoved: boolean } | null} */
    this.drag = null;
    this.theme = readTheme();
    this.width = 0;
    this.height = 0;
    this.isQueued = false;
    this.canvas = putCanvas(frame, () => { this.theme = readTheme(); this.draw(); });
    this.memory = (profile.document.memory || [])[0];
    /** The bytes in use at each time of the memory chart. */
    this.inUse = (this.memory ? this.memory.bytes : []).map((/** @type {number[]} */ row) => row.reduce((sum, bytes) => sum + bytes, 0));
    /** Whether the steps of the devices are another band, below those of the CPU. */
    this.hasDeviceSteps = profile.steps.some(isBehind);
    this.hasPath = (profile.columns.get("path_start") || []).length > 0;
    this.listen();
  }

  /** Returns the height of what stays on top. */
  top() {
    return RULER + (this.profile.steps.length ? BAND : 0) + (this.hasDeviceSteps ? BAND : 0) + (this.hasPath ? CAPTION + BAND : 0) + (this.memory ? CAPTION + MEMORY : 0);
  }

  /** @returns {{ rows: Row[], height: number }} */
  layout() {
    const rows = [];
    let top = 0;
    for (let track = 0; track < this.profile.tracks.length; track += 1) {
      const levels = this.folded.has(track) ? 0 : this.profile.trackLevels(track, this.isWithPython).length;
      const height = HEADER + levels * ROW + 5;
      rows.push({ track, top, height });
      top += height;
    }
    return { rows, height: top };
  }

  queue() {
    if (this.isQueued) return;
    this.isQueued = true;
    requestAnimationFrame(() => { this.isQueued = false; this.draw(); });
  }

  /** @param {number} time */
  toX(time) { return (time - this.range[0]) / (this.range[1] - this.range[0]) * this.width; }

  /** @param {number} x */
  toTime(x) { return this.range[0] + x / this.width * (this.range[1] - this.range[0]); }

  draw() {
    if (this.frame.clientWidth === 0) return;
    const begin = performance.now();
    this.width = this.frame.clientWidth;
    const { rows, height } = this.layout();
    // A page scrolls more easily than a picture in it.
    const room = Math.max(260, Math.round(innerHeight * 1.5));
    this.height = Math.min(room, this.top() + height + 4);
    this.scroll = Math.max(0, Math.min(this.scroll, this.top() + height + 4 - this.height));
    const context = sizedContext(this.canvas, this.width, this.height);
    context.fillStyle = this.theme.page;
    context.fillRect(0, 0, this.width, this.height);
    context.font = LABEL_FONT;
    context.textBaseline = "middle";
    this.drawGrid(context);
    for (const row of rows) {
      const y = this.top() + row.top - this.scroll;
      if (y < this.height && y + row.height > this.top()) this.drawTrack(context, row.track, y);
    }
    this.drawArrows(context);
    this.drawTop(context);
    this.drawChosen(context);
    this.drawScroll(context, height);
    this.frame.dataset.drawn = (performance.now() - begin).toFixed(1);
  }

  /** @param {CanvasRenderingContext2D} context */
  drawGrid(context) {
    const { marks } = rulerMarks(this.range, this.width / 110);
    context.fillStyle = this.theme.line;
    for (const mark of marks) context.fillRect(Math.round(this.toX(mark)), 0, 1, this.height);
    for (const step of this.profile.steps) {
      context.fillStyle = this.theme.muted;
      context.globalAlpha = 0.45;
      for (const time of [step.start, step.start + step.duration]) {
        const x = Math.round(this.toX(time));
        if (x >= 0 && x <= this.width) context.fillRect(x, this.top(), 1, this.height);
      }
      context.globalAlpha = 1;
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} track
   * @param {number} y
   */
  drawTrack(context, track, y) {
    const { profile, theme } = this;
    const about = profile.tracks[track];
    context.fillStyle = theme.raised;
    context.fillRect(0, y, this.width, HEADER - 1);
    context.fillStyle = theme.muted;
    const sign = this.folded.has(track) ? "\u25b8" : "\u25be";
    context.fillText(`${sign} ${about.name}`, 6, y + HEADER / 2);
    if (this.folded.has(track)) return;
    const levels = profile.trackLevels(track, this.isWithPython);
    for (let level = 0; level < levels.length; level += 1) {
      const top = y + HEADER + level * ROW;
      if (top + ROW < this.top() || top > this.height) continue;
      this.drawLevel(context, levels[level], top);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {Int32Array} level
   * @param {number} top
   */
  drawLevel(context, level, top) {
    const { profile, theme, found } = this;
    /** @type {[number, number, number][]} */
    const labels = [];
    let colour = -1;
    visitVisible(level, profile, this.range, this.width, (index, x, wide) => {
      const isDim = found !== null && !found[profile.name[index]];
      const next = profile.colourOf(index);
      if (next !== colour) { context.fillStyle = theme.colours[next]; colour = next; }
      const left = Math.max(x, -1), right = Math.min(x + wide, this.width + 1);
      if (isDim) context.globalAlpha = 0.22;
      context.fillRect(left, top, Math.max(1, right - left - (wide > 3 ? 0.6 : 0)), ROW - 1);
      if (isDim) context.globalAlpha = 1;
      if (right - left > 26 && !isDim) labels.push([index, left, right - left]);
    });
    context.fillStyle = theme.label;
    for (const [index, left, wide] of labels) {
      const text = fittingText(shortLabel(profile.nameOf(index)), wide);
      if (text) context.fillText(text, left + 4, top + ROW / 2);
    }
    for (const [index, width] of [[this.hovered, 1], [this.selected, 2]]) {
      if (index < 0 || !isIn(level, index)) continue;
      const left = this.toX(profile.start[index]), wide = Math.max(2, this.toX(profile.endOf(index)) - left);
      context.strokeStyle = theme.text;
      context.lineWidth = width;
      context.strokeRect(Math.max(left, -4), top + 0.5, Math.min(wide, this.width + 8), ROW - 2);
    }
  }

  /**
   * Returns the place of an event on the canvas, or null if it is hidden.
   * @param {number} index
   */
  placeOf(index) {
    const track = this.profile.trackOf(index);
    const row = this.layout().rows[track];
    const levels = this.profile.trackLevels(track, this.isWithPython);
    const level = this.folded.has(track) ? -1 : levels.findIndex((positions) => isIn(positions, index));
    const inside = level < 0 ? HEADER / 2 : HEADER + level * ROW + ROW / 2;
    return { x: this.toX(this.profile.start[index]), right: this.toX(this.profile.endOf(index)), y: this.top() + row.top + inside - this.scroll };
  }

  /** @param {CanvasRenderingContext2D} context */
  drawArrows(context) {
    if (this.selected < 0) return;
    context.strokeStyle = this.theme.accent;
    context.lineWidth = 1.5;
    for (const { other, isFrom } of this.profile.arrowsOf(this.selected)) {
      const [from, to] = isFrom ? [this.selected, other] : [other, this.selected];
      const tail = this.placeOf(from), head = this.placeOf(to);
      const begin = Math.min(tail.right, tail.x + 6), bend = Math.max(20, Math.abs(head.x - begin) / 3);
      context.beginPath();
      context.moveTo(begin, tail.y);
      context.bezierCurveTo(begin + bend, tail.y, head.x - bend, head.y, head.x, head.y);
      context.stroke();
      context.beginPath();
      context.arc(head.x, head.y, 3, 0, 7);
      context.stroke();
    }
  }

  /** @param {CanvasRenderingContext2D} context */
  drawTop(context) {
    const { theme, profile } = this;
    context.fillStyle = theme.page;
    context.fillRect(0, 0, this.width, this.top());
    const { marks, step } = rulerMarks(this.range, this.width / 110);
    for (const mark of marks) {
      const x = Math.round(this.toX(mark));
      context.fillStyle = theme.line;
      context.fillRect(x, 0, 1, RULER);
      context.fillStyle = theme.muted;
      const text = markText(mark, step);
      if (x + text.length * 6 < this.width) context.fillText(text, x + 4, RULER / 2);
    }
    let y = RULER;
    if (profile.steps.length) { this.drawSteps(context, y, cpuRange, ""); y += BAND; }
    if (this.hasDeviceSteps) { this.drawSteps(context, y, deviceRange, " on the device"); y += BAND; }
    if (this.hasPath) { this.drawPath(context, y); y += CAPTION + BAND; }
    if (this.memory) { this.drawMemory(context, y); y += CAPTION + MEMORY; }
    context.fillStyle = theme.line;
    context.fillRect(0, this.top() - 1, this.width, 1);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} y
   * @param {(step: import("./profile.js").Step) => [number, number]} rangeOf
   * @param {string} where
   */
  drawSteps(context, y, rangeOf, where) {
    const { theme } = this;
    let isEmpty = true;
    for (const step of this.profile.steps) {
      const [x, right] = rangeOf(step).map((time) => this.toX(time));
      if (right < 0 || x > this.width) continue;
      const [left, wide] = [Math.max(x, 0), Math.min(right, this.width) - Math.max(x, 0)];
      context.fillStyle = step.slow ? this.theme.accent : this.theme.line;
      context.fillRect(left, y, Math.max(1, wide - 1), BAND - 2);
      context.fillStyle = step.slow ? this.theme.page : this.theme.text;
      const text = fittingText(`step ${step.number}${where}`, wide) || fittingText(`${step.number}`, wide);
      if (text) context.fillText(text, left + 4, y + BAND / 2 - 1);
      isEmpty = false;
    }
    if (!isEmpty || !where) return;
    context.fillStyle = theme.muted;
    context.fillText(`steps${where}: not here, it runs behind the CPU`, 6, y + BAND / 2 - 1);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} y
   */
  drawPath(context, y) {
    const { columns, document: { path_kinds } } = this.profile;
    const [start, duration, kind] = ["path_start", "path_duration", "path_kind"].map((name) => /** @type {any} */ (columns.get(name)));
    const scale = this.width / (this.range[1] - this.range[0]);
    this.drawCaption(context, "critical path", y);
    let last = -1, isEmpty = true;
    for (let i = Math.max(0, bisect(start, this.range[0]) - 1); i < start.length; i += 1) {
      const x = (start[i] - this.range[0]) * scale, wide = duration[i] * scale;
      if (x + wide < 0) continue;
      if (x > this.width) break;
      if (wide < 1 && Math.floor(x) === last) continue;
      last = Math.floor(x);
      isEmpty = false;
      context.fillStyle = this.theme.classes[path_kinds[kind[i]].class];
      context.fillRect(Math.max(x, 0), y + CAPTION, Math.max(1, Math.min(x + wide, this.width) - Math.max(x, 0)), BAND - 3);
    }
    if (!isEmpty) return;
    const end = start[start.length - 1] + duration[duration.length - 1];
    context.fillStyle = this.theme.muted;
    context.fillText(`not here: from ${momentText(start[0])} to ${momentText(end)}`, 6, y + CAPTION + BAND / 2 - 1);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} y
   */
  drawMemory(context, y) {
    const { times, peak_bytes, peak_text } = this.memory;
    const high = MEMORY - 6, scale = this.width / (this.range[1] - this.range[0]);
    this.drawCaption(context, `memory, peak ${peak_text}`, y);
    context.fillStyle = this.theme.accent;
    context.globalAlpha = 0.3;
    let at = bisect(times, this.range[0] / 1000), value = at > 0 ? this.inUse[at - 1] : 0;
    for (let x = 0; x < this.width; x += 1) {
      const end = (this.range[0] + (x + 1) / scale) / 1000;
      let most = value;
      while (at < times.length && times[at] <= end) {
        value = this.inUse[at];
        most = Math.max(most, value);
        at += 1;
      }
      const tall = most / Math.max(peak_bytes, 1) * high;
      context.fillRect(x, y + CAPTION + high - tall, 1, tall);
    }
    context.globalAlpha = 1;
  }

  /**
   * Draws the text above a band.
   * @param {CanvasRenderingContext2D} context
   * @param {string} text
   * @param {number} y
   */
  drawCaption(context, text, y) {
    context.fillStyle = this.theme.muted;
    context.fillText(text, 6, y + CAPTION / 2);
  }

  /** @param {CanvasRenderingContext2D} context */
  drawChosen(context) {
    if (!this.chosen) return;
    const [from, to] = this.chosen.map((time) => this.toX(time));
    context.fillStyle = this.theme.accent;
    context.globalAlpha = 0.14;
    context.fillRect(from, 0, Math.max(1, to - from), this.height);
    context.globalAlpha = 1;
    for (const x of [from, to]) context.fillRect(Math.round(x), 0, 1, this.height);
    const text = timeText(this.chosen[1] - this.chosen[0]);
    const x = Math.min(Math.max((from + to) / 2 - 24, 2), this.width - 64);
    context.fillRect(x, 2, text.length * 6.4 + 10, RULER - 5);
    context.fillStyle = this.theme.page;
    context.fillText(text, x + 5, RULER / 2);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} content
   */
  drawScroll(context, content) {
    const room = this.height - this.top();
    if (content <= room) return;
    const tall = Math.max(24, room * room / content);
    context.fillStyle = this.theme.muted;
    context.globalAlpha = 0.5;
    context.fillRect(this.width - 6, this.top() + this.scroll / (content - room) * (room - tall), 4, tall);
    context.globalAlpha = 1;
  }

  /**
   * Returns what is at a point of the canvas.
   * @param {number} x
   * @param {number} y
   * @returns {{ event: number, track: number }}
   */
  hit(x, y) {
    if (y < this.top()) return { event: -1, track: -1 };
    const inside = y - this.top() + this.scroll;
    const row = this.layout().rows.find((one) => one.top <= inside && inside < one.top + one.height);
    if (!row) return { event: -1, track: -1 };
    const level = Math.floor((inside - row.top - HEADER) / ROW);
    if (level < 0) return { event: -1, track: row.track };
    const positions = this.folded.has(row.track) ? undefined : this.profile.trackLevels(row.track, this.isWithPython)[level];
    if (!positions) return { event: -1, track: -1 };
    const near = 3 * (this.range[1] - this.range[0]) / this.width;
    return { event: hitLane(positions, this.profile, this.toTime(x), near), track: -1 };
  }

  /**
   * Shows a range, and reports it.
   * @param {[number, number]} range
   */
  see(range) {
    this.range = fittedRange(range, this.profile.whole, LEAST_RANGE);
    this.queue();
    this.listener.onRange();
  }

  /**
   * @param {number} factor
   * @param {number} [around]
   */
  zoom(factor, around) {
    const [from, to] = this.range;
    const middle = around === undefined ? (from + to) / 2 : around;
    this.see([middle - (middle - from) * factor, middle + (to - middle) * factor]);
  }

  /** @param {number} share */
  move(share) {
    const by = (this.range[1] - this.range[0]) * share;
    this.see([this.range[0] + by, this.range[1] + by]);
  }

  /**
   * Selects an event, and scrolls to it.
   * @param {number} index
   * @param {boolean} [isShown]  Whether the view moves so that the event is seen.
   */
  select(index, isShown = false) {
    this.selected = index;
    if (index >= 0 && isShown) {
      const { start } = this.profile, end = this.profile.endOf(index);
      if (end < this.range[0] || start[index] > this.range[1] || this.toX(end) - this.toX(start[index]) < 3) {
        const room = Math.max((end - start[index]) * 4, 2000);
        this.range = fittedRange([start[index] - room, end + room], this.profile.whole, LEAST_RANGE);
      }
      this.folded.delete(this.profile.trackOf(index));
      this.draw();
      const { y } = this.placeOf(index);
      if (y < this.top() + 10) this.scroll += y - this.top() - 40;
      else if (y > this.height - 20) this.scroll += y - this.height + 60;
    }
    this.queue();
    this.listener.onSelect(index);
    if (index >= 0) say(`${shownName(this.profile.nameOf(index))}, ${timeText(this.profile.duration[index])}`);
  }

  /**
   * Selects the event before, after, around or inside of the selected one.
   * @param {"ArrowLeft" | "ArrowRight" | "ArrowUp" | "ArrowDown"} key
   */
  walk(key) {
    const { profile } = this;
    if (this.selected < 0) {
      for (let track = 0; track < profile.tracks.length; track += 1) {
        const level = profile.trackLevels(track, this.isWithPython)[0];
        const first = level ? level[firstFrom(level, profile, this.range[0])] : undefined;
        if (first !== undefined) { this.select(first, true); return; }
      }
      return;
    }
    const track = profile.trackOf(this.selected);
    const levels = profile.trackLevels(track, this.isWithPython);
    const level = levels.findIndex((positions) => isIn(positions, this.selected));
    if (level < 0) return;
    const at = levels[level].indexOf(this.selected);
    let next;
    if (key === "ArrowLeft") next = levels[level][at - 1];
    else if (key === "ArrowRight") next = levels[level][at + 1];
    else if (key === "ArrowUp") next = level > 0 ? hitLane(levels[level - 1], profile, profile.start[this.selected], 0) : undefined;
    else if (level + 1 < levels.length) next = levels[level + 1].find((index) => profile.start[index] >= profile.start[this.selected] && profile.start[index] < profile.endOf(this.selected));
    if (next !== undefined && next >= 0) this.select(next, true);
  }

  /**
   * Marks names that contain a text, and returns how many events have one.
   * @param {string} text
   */
  find(text) {
    const wanted = text.trim().toLowerCase();
    this.found = null;
    let count = 0;
    if (wanted) {
      this.found = Uint8Array.from(this.profile.strings, (name) => Number(name.toLowerCase().includes(wanted)));
      for (const name of this.profile.name) count += this.found[name];
    }
    this.queue();
    return count;
  }

  /** Selects the next event that was found, in order of time. */
  findNext() {
    const { profile, found } = this;
    if (!found) return;
    const after = this.selected >= 0 ? profile.start[this.selected] : this.range[0] - 1;
    let best = -1, first = -1;
    for (let index = 0; index < profile.count; index += 1) {
      if (!found[profile.name[index]]) continue;
      const start = profile.start[index];
      if (first < 0 || start < profile.start[first]) first = index;
      const isAfter = start > after || (start === after && index > this.selected);
      if (isAfter && (best < 0 || start < profile.start[best])) best = index;
    }
    const next = best >= 0 ? best : first;
    if (next >= 0) this.select(next, true);
  }

  listen() {
    const { canvas } = this;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      this.frame.focus({ preventScroll: true });
      canvas.setPointerCapture(event.pointerId);
      const isMove = event.shiftKey || event.pointerType === "touch";
      this.drag = { x: event.offsetX, y: event.offsetY, range: this.range, scroll: this.scroll, isMove, isMoved: false };
    });
    canvas.addEventListener("pointermove", (event) => { if (this.drag) this.dragTo(event); else this.hover(event); });
    canvas.addEventListener("pointerup", (event) => this.drop(event));
    canvas.addEventListener("pointercancel", () => { this.drag = null; });
    canvas.addEventListener("pointerleave", () => { this.hovered = -1; byId("tip").hidden = true; this.queue(); });
    canvas.addEventListener("dblclick", (event) => {
      const { event: index } = this.hit(event.offsetX, event.offsetY);
      if (index >= 0) { const room = Math.max(this.profile.duration[index] * 0.1, 10); this.see([this.profile.start[index] - room, this.profile.endOf(index) + room]); }
    });
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    this.frame.addEventListener("keydown", (event) => this.key(event));
  }

  /** @param {PointerEvent} event */
  dragTo(event) {
    const drag = /** @type {NonNullable<typeof this.drag>} */ (this.drag);
    const [dx, dy] = [event.offsetX - drag.x, event.offsetY - drag.y];
    if (!drag.isMoved && Math.abs(dx) + Math.abs(dy) < 4) return;
    drag.isMoved = true;
    if (drag.isMove) {
      const by = dx / this.width * (drag.range[1] - drag.range[0]);
      this.scroll = drag.scroll - dy;
      this.see([drag.range[0] - by, drag.range[1] - by]);
    } else {
      const times = [this.toTime(drag.x), this.toTime(event.offsetX)].sort((a, b) => a - b);
      this.chosen = [Math.max(times[0], this.range[0]), Math.min(times[1], this.range[1])];
      this.queue();
    }
  }

  /** @param {PointerEvent} event */
  drop(event) {
    const drag = this.drag;
    this.drag = null;
    if (!drag) return;
    if (drag.isMoved) {
      if (!drag.isMove) this.listener.onChoose();
      return;
    }
    const { event: index, track } = this.hit(event.offsetX, event.offsetY);
    if (track >= 0) {
      if (this.folded.has(track)) this.folded.delete(track); else this.folded.add(track);
      this.queue();
      return;
    }
    if (index < 0 && this.chosen) { this.chosen = null; this.listener.onChoose(); }
    this.select(index);
  }

  /** @param {PointerEvent} event */
  hover(event) {
    const tip = byId("tip");
    const { event: index } = this.hit(event.offsetX, event.offsetY);
    if (index !== this.hovered) { this.hovered = index; this.queue(); }
    if (index < 0) { tip.hidden = true; return; }
    const { profile } = this;
    tip.replaceChildren(
      make("strong", {}, shownName(profile.nameOf(index))),
      make("div", {}, `${timeText(profile.duration[index])}${selfText(profile, index)}`),
      make("div", { class: "quiet" }, `${CATEGORIES[profile.category[index]]}, begins at ${momentText(profile.start[index])}`),
      profile.shapesOf(index) ? make("div", { class: "quiet" }, profile.shapesOf(index)) : "",
    );
    placeTip(tip, event.clientX, event.clientY);
  }

  /** @param {WheelEvent} event */
  wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.zoom(Math.exp(event.deltaY * 0.002), this.toTime(event.offsetX));
    } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.move(event.deltaX / this.width);
    } else {
      const before = this.scroll;
      const most = this.top() + this.layout().height + 4 - this.height;
      this.scroll = Math.max(0, Math.min(this.scroll + event.deltaY, most));
      if (this.scroll !== before) { event.preventDefault(); this.queue(); }
    }
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const actions = /** @type {Record<string, () => void>} */ ({
      w: () => this.zoom(0.6), "+": () => this.zoom(0.6), "=": () => this.zoom(0.6),
      s: () => this.zoom(1 / 0.6), "-": () => this.zoom(1 / 0.6),
      a: () => this.move(-0.2), d: () => this.move(0.2),
      ArrowLeft: () => this.walk("ArrowLeft"), ArrowRight: () => this.walk("ArrowRight"),
      ArrowUp: () => this.walk("ArrowUp"), ArrowDown: () => this.walk("ArrowDown"),
      f: () => { if (this.selected >= 0) { const room = Math.max(this.profile.duration[this.selected] * 0.1, 10); this.see([this.profile.start[this.selected] - room, this.profile.endOf(this.selected) + room]); } },
      Escape: () => { this.chosen = null; this.select(-1); this.listener.onChoose(); },
      Enter: () => this.open(),
      PageDown: () => { this.scroll += this.height / 2; this.queue(); },
      PageUp: () => { this.scroll -= this.height / 2; this.queue(); },
    });
    if (!actions[key]) return;
    event.preventDefault();
    event.stopPropagation();
    actions[key]();
  }

  open() {
    if (this.selected < 0) return;
    const name = this.profile.nameOf(this.selected);
    location.hash = `#detail?kind=event&name=${encodeURIComponent(name)}`;
  }
}

/**
 * Returns the self time of an event for a tip; nothing for device work, which has nothing inside.
 * @param {import("./profile.js").Profile} profile
 * @param {number} index
 */
function selfText(profile, index) {
  return isOnDevice(profile.groupOf(index)) ? "" : `, self ${timeText(profile.own[index])}`;
}

/**
 * Returns whether a sorted list has a value.
 * @param {ArrayLike<number>} sorted
 * @param {number} value
 */
function isIn(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1; else high = middle;
  }
  return sorted[low] === value;
}
