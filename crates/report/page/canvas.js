// @ts-check
// A canvas that fills its frame at the resolution of the screen, and the colours of the theme.
import { make } from "./elements.js";
import { colourList } from "./colours.js";
import { shownName } from "./names.js";

/**
 * @typedef {object} Theme
 * @property {string[]} colours
 * @property {string[]} classes  The colours of the classes of time, as in the chart of steps.
 * @property {string} page
 * @property {string} text
 * @property {string} muted
 * @property {string} line
 * @property {string} raised
 * @property {string} accent
 * @property {string} label
 */

/** The number of the classes of time that `colours.css` has colours for. */
const CLASS_COUNT = 12;

/** Returns whether the theme is dark. Paper is light. */
export function isDarkTheme() {
  return matchMedia("(prefers-color-scheme: dark)").matches && !document.documentElement.classList.contains("on-paper");
}

/**
 * Calls a function when the theme changes, which it does for the time of printing too.
 * @param {() => void} draw
 */
export function onTheme(draw) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  for (const [kind, isPaper] of /** @type {[string, boolean][]} */ ([["beforeprint", true], ["afterprint", false]])) {
    addEventListener(kind, () => { document.documentElement.classList.toggle("on-paper", isPaper); draw(); });
  }
}

/**
 * Returns the colours of the current theme.
 * @returns {Theme}
 */
export function readTheme() {
  const style = getComputedStyle(document.documentElement);
  /** @param {string} name */
  const value = (name) => style.getPropertyValue(name).trim();
  const isDark = isDarkTheme();
  return {
    colours: colourList(isDark), classes: Array.from({ length: CLASS_COUNT }, (_, number) => value(`--class-${number}`)), page: value("--page"), text: value("--text"), muted: value("--muted"),
    line: value("--line"), raised: value("--raised"), accent: value("--accent"), label: isDark ? "#eef2f6" : "#14181d",
  };
}

/**
 * Puts a canvas into a frame, and calls `draw` when its size or the theme changes.
 * @param {HTMLElement} frame
 * @param {() => void} draw
 */
export function putCanvas(frame, draw) {
  const canvas = /** @type {HTMLCanvasElement} */ (make("canvas", { "aria-hidden": "true" }));
  frame.replaceChildren(canvas);
  new ResizeObserver(() => { if (frame.clientWidth > 0) draw(); }).observe(frame);
  onTheme(draw);
  return canvas;
}

/**
 * Sets the size of a canvas in pixels of the page, and returns its context.
 * @param {HTMLCanvasElement} canvas
 * @param {number} width
 * @param {number} height
 */
export function sizedContext(canvas, width, height) {
  const ratio = devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  return context;
}

/** The font of labels, and the width of an average letter in it. */
export const LABEL_FONT = "11px system-ui, sans-serif";
const LETTER = 6.7;

/**
 * Returns as much of a text as fits into a width; empty if that is too little to read.
 * @param {string} text
 * @param {number} width
 */
export function fittingText(text, width) {
  const letters = Math.floor((width - 6) / LETTER);
  if (text.length <= letters) return text;
  return letters < 3 ? "" : `${text.slice(0, letters - 1)}\u2026`;
}

/**
 * Returns the short form of a name for a label: a place as its function, a kernel without its types.
 * @param {string} name
 */
export function shortLabel(name) {
  const place = /^(.*\/)?([^/]*)\((\d+)\): (.*)$/.exec(name);
  if (place || name === "") return place ? `${place[4]} (${place[2]}:${place[3]})` : shownName(name);
  const kernel = /^void ([\w:]*::)?([\w~]+)\s*[<(]/.exec(name);
  return kernel ? kernel[2] : name.replace(/^nn\.Module: /, "");
}

/**
 * Places the tip next to the pointer, inside of the window.
 * @param {HTMLElement} tip
 * @param {number} x
 * @param {number} y
 */
export function placeTip(tip, x, y) {
  tip.hidden = false;
  const left = Math.min(x + 14, innerWidth - tip.offsetWidth - 8);
  const top = y + 18 + tip.offsetHeight > innerHeight ? y - tip.offsetHeight - 10 : y + 18;
  tip.style.transform = `translate(${Math.max(4, left)}px, ${Math.max(4, top)}px)`;
}
