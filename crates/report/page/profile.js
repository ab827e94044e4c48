// @ts-check
// The profile behind a page: events by position, with their names, tracks, stacks and arrows.
// Nothing here accesses the page.
import { nest, startsOf } from "./nesting.js";
import { colourNumber } from "./colours.js";

/** @typedef {import("./columns.js").Numbers} Numbers */

/** The number of the category of Python calls. */
export const PYTHON = 2;
const ANNOTATIONS = [1, 5];

/** The groups that rows of one name keep apart, as the tables of Rust do. */
export const GROUPS = { cpu: 0, range: 1, python: 2, device: 3, deviceRange: 4 };
export const GROUP_COUNT = 5;

/**
 * @typedef {object} Track
 * @property {string} name
 * @property {boolean} is_stream
 * @property {number} process
 * @property {number} thread
 * @property {number} first
 * @property {number} count
 */

/**
 * @typedef {object} Step
 * @property {number} number
 * @property {number} start
 * @property {number} duration
 * @property {boolean} slow
 * @property {[number, number] | null} [device]  Start and duration of the step as the devices see it.
 */

/**
 * Returns the time in which the CPU makes a step.
 * @param {Step} step
 * @returns {[number, number]}
 */
export function cpuRange(step) {
  return [step.start, step.start + step.duration];
}

/**
 * Returns the time in which the devices work for a step, which may be after the CPU has made it.
 * @param {Step} step
 * @returns {[number, number]}
 */
export function deviceRange(step) {
  return step.device ? [step.device[0], step.device[0] + step.device[1]] : cpuRange(step);
}

/** The part of a step by which its work on the devices ends later, from which on they are behind. */
const BEHIND = 0.1;

/**
 * Returns whether the devices are so far behind the CPU that a step is another time for them.
 * @param {Step} step
 */
export function isBehind(step) {
  return deviceRange(step)[1] - cpuRange(step)[1] > BEHIND * step.duration;
}

/** The part of a recording that its steps must fill for the timeline to open on all of it. */
const MOSTLY = 0.5;

/**
 * Returns the range that the timeline opens on: the steps, if imports and whatever else surrounds them takes longer.
 * @param {Step[]} steps
 * @param {[number, number]} whole
 * @returns {[number, number]}
 */
export function openingRange(steps, whole) {
  const ranges = steps.flatMap((step) => [cpuRange(step), deviceRange(step)]);
  const start = ranges.reduce((least, range) => Math.min(least, range[0]), Infinity);
  const end = ranges.reduce((most, range) => Math.max(most, range[1]), -Infinity);
  if (end <= start || end - start >= MOSTLY * (whole[1] - whole[0])) return whole;
  const room = (end - start) * 0.01;
  return [Math.max(whole[0], Math.floor(start - room)), Math.min(whole[1], Math.ceil(end + room))];
}

/**
 * @typedef {object} Level
 * @property {Int32Array[]} all  The positions of each level, with Python calls.
 * @property {Int32Array[] | null} withoutPython  The same without them; null until it is needed.
 */

/** The contents of the data block, and what is derived from it once. */
export class Profile {
  /**
   * @param {any} document
   * @param {Map<string, Numbers>} columns
   */
  constructor(document, columns) {
    const empty = new Uint8Array(0);
    /** @param {string} name */
    const column = (name) => columns.get(name) || empty;
    this.document = document;
    this.columns = columns;
    /** @type {string[]} */
    this.strings = document.strings;
    /** @type {Track[]} */
    this.tracks = document.tracks;
    /** @type {Step[]} */
    this.steps = document.steps;
    this.stepsByStart = [...this.steps].sort((a, b) => a.start - b.start);
    this.stepStarts = this.stepsByStart.map((step) => step.start);
    this.duration = column("duration");
    this.start = startsOf(column("gap"), column("inside"), this.duration, this.tracks);
    this.name = column("name");
    this.category = column("category");
    this.inputs = column("inputs");
    this.stack = column("stack");
    /** @type {number} */
    this.count = document.events;
    this.parent = new Int32Array(this.count);
    this.own = new Float64Array(this.count);
    /** @type {Level[]} */
    this.levels = this.tracks.map((track) => {
      const { parent, own, levels } = nest(this, track.first, track.count);
      this.parent.set(parent, track.first);
      this.own.set(own, track.first);
      return { all: levels, withoutPython: null };
    });
    /** Whether each event repeats the call around it, whose only content it is, so that rows count both as one. */
    this.isMerged = new Uint8Array(this.count);
    for (const index of column("merged_at")) this.isMerged[index] = 1;
    const at = column("own_at"), own = column("own");
    for (let i = 0; i < at.length; i += 1) this.own[at[i]] = own[i];
    const end = this.tracks.reduce((most, track) => Math.max(most, this.trackEnd(track)), 0);
    /** @type {[number, number]} */
    this.whole = [0, Math.max(document.span, end, 1)];
    this.hasPython = this.category.includes(PYTHON);
    /** @type {{ index: number, found: { title: string, other: number, isFrom: boolean }[] } | null} */
    this.arrows = null;
    /** @type {Int16Array} */
    this.colours = new Int16Array(this.strings.length * 7).fill(-1);
  }

  /** @param {Track} track */
  trackEnd(track) {
    let end = 0;
    const last = track.first + track.count;
    for (let index = Math.max(track.first, last - 2000); index < last; index += 1) end = Math.max(end, this.start[index] + this.duration[index]);
    return end;
  }

  /**
   * Returns the levels of a track.
   * @param {number} number
   * @param {boolean} isWithPython
   * @returns {Int32Array[]}
   */
  trackLevels(number, isWithPython) {
    const level = this.levels[number];
    if (isWithPython || !this.hasPython) return level.all;
    if (!level.withoutPython) {
      const { first, count } = this.tracks[number];
      level.withoutPython = nest(this, first, count, (index) => this.category[index] !== PYTHON).levels;
    }
    return level.withoutPython;
  }

  /** @param {number} index */
  nameOf(index) { return this.strings[this.name[index]]; }

  /** @param {number} index */
  endOf(index) { return this.start[index] + this.duration[index]; }

  /**
   * Returns the number of the track of an event.
   * @param {number} index
   */
  trackOf(index) {
    let low = 0, high = this.tracks.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.tracks[middle].first <= index) low = middle; else high = middle;
    }
    return low;
  }

  /**
   * Returns the group of an event: rows of one name are one for each group.
   * @param {number} index
   * @param {Track} [track]
   */
  groupOf(index, track = this.tracks[this.trackOf(index)]) {
    const category = this.category[index], isRange = ANNOTATIONS.includes(category);
    if (track.is_stream) return isRange ? GROUPS.deviceRange : GROUPS.device;
    return isRange ? GROUPS.range : category === PYTHON ? GROUPS.python : GROUPS.cpu;
  }

  /** @param {number} index */
  colourOf(index) {
    const slot = this.name[index] * 7 + this.category[index];
    if (this.colours[slot] < 0) this.colours[slot] = colourNumber(this.nameOf(index), this.category[index]);
    return this.colours[slot];
  }

  /** @param {number} index */
  shapesOf(index) {
    const inputs = this.inputs[index];
    return inputs ? this.strings[(this.columns.get("input_shapes") || [])[inputs]] : "";
  }

  /** @param {number} index */
  dtypesOf(index) {
    const inputs = this.inputs[index];
    return inputs ? this.strings[(this.columns.get("input_dtypes") || [])[inputs]] : "";
  }

  /**
   * Returns the frames of a stack, innermost first.
   * @param {number} stack
   * @returns {string[]}
   */
  frames(stack) {
    const callers = this.columns.get("stack_caller"), frames = this.columns.get("stack_frame");
    /** @type {string[]} */
    const found = [];
    if (!callers || !frames) return found;
    for (let at = stack; at !== 0; at = callers[at]) found.push(this.strings[frames[at]]);
    return found;
  }

  /**
   * Returns the frames around an event: those of its stack, or the Python calls around it.
   * @param {number} index
   */
  stackOf(index) {
    if (this.stack[index]) return this.frames(this.stack[index]);
    const found = [];
    for (let at = this.parent[index]; at >= 0; at = this.parent[at]) if (this.category[at] === PYTHON) found.push(this.nameOf(at));
    return found;
  }

  /**
   * Returns the arrows that begin or end at an event.
   * @param {number} index
   * @returns {{ title: string, other: number, isFrom: boolean }[]}
   */
  arrowsOf(index) {
    if (this.arrows && this.arrows.index === index) return this.arrows.found;
    /** @type {{ title: string, other: number, isFrom: boolean }[]} */
    const found = [];
    this.arrows = { index, found };
    for (const [kind, from, to] of [["launch", "launched by", "launches"], ["backward", "forward operator", "backward node"], ["owner", "work of", "work on the device"]]) {
      const tails = this.columns.get(`${kind}_from`), heads = this.columns.get(`${kind}_to`);
      if (!tails || !heads) continue;
      const at = bisect(heads, index);
      if (heads[at] === index) found.push({ title: from, other: tails[at], isFrom: false });
      for (let i = 0, most = 12; i < tails.length && most > 0; i += 1) if (tails[i] === index) { found.push({ title: to, other: heads[i], isFrom: true }); most -= 1; }
    }
    return found;
  }

  /**
   * Returns the step in which an event begins, or null.
   * @param {number} time
   */
  stepAt(time) {
    const step = this.stepsByStart[bisect(this.stepStarts, time + 1) - 1];
    return step && time < step.start + step.duration ? step : null;
  }
}

/**
 * Returns the first place in a sorted list whose value is not less.
 * @param {ArrayLike<number>} sorted
 * @param {number} value
 */
export function bisect(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1; else high = middle;
  }
  return low;
}
