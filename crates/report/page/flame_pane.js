// @ts-check
// The flame graph: where time or memory goes, by what called what.
import { bytesText, shareText, timeText } from "./numbers.js";
import { byId, make, say } from "./elements.js";
import { keptTable, readIndex } from "./address.js";
import { hitLane, visitVisible } from "./lanes.js";
import { colourNumber } from "./colours.js";
import { flameLayout, flameTree, inverted, sumByFrame } from "./tree.js";
import { LABEL_FONT, fittingText, placeTip, putCanvas, readTheme, shortLabel, sizedContext } from "./canvas.js";
import { showTable } from "./tables.js";
import { detailAddress } from "./events_table.js";
import { shownName } from "./names.js";

const FRAME = 18;
/** The frame of a wait, which no event has as its name. */
const WAITING = "waiting for the backward thread";
/** What shares are shares of. */
const WHOLES = new Map([
  ["cpu", "the CPU time of all threads, with waits of the main thread but without those of the others"],
  ["device", "the time of all kernels in the recording"], ["memory", "the memory in use at the peak"],
]);

export class FlamePane {
  /**
   * @param {import("./profile.js").Profile} profile
   * @param {(query: Record<string, string>) => void} keep
   * @param {() => void} step  Makes the view that follows a step back of its own.
   */
  constructor(profile, keep, step) {
    this.profile = profile;
    this.keep = keep;
    this.step = step;
    this.pictures = profile.document.flames;
    this.frame = byId("flame-graph");
    this.root = 0;
    this.hovered = -1;
    this.selected = -1;
    this.text = "";
    /** The filter and order of the table.
     * @type {Record<string, string>} */
    this.kept = {};
    this.theme = readTheme();
    this.width = 0;
    this.tree = flameTree([0], [0], [0]);
    this.flames = flameLayout(this.tree);
    /** @type {Uint8Array | null} */
    this.found = null;
    const choice = byId("flame-choice");
    for (const picture of this.pictures) choice.append(make("option", { value: picture.id }, picture.title));
    choice.addEventListener("change", () => this.choose(choice.value, this.isInverted));
    const invert = byId("flame-inverted");
    invert.addEventListener("change", () => this.choose(this.picture.id, invert.checked));
    byId("flame-all").addEventListener("click", () => this.zoomTo(0));
    const find = byId("flame-find");
    find.addEventListener("input", () => { this.find(find.value); this.keepView(); });
    this.canvas = putCanvas(this.frame, () => { this.theme = readTheme(); this.draw(); });
    this.isInverted = false;
    this.picture = this.pictures[0];
    if (this.picture) {
      this.load();
      this.listen();
    } else {
      choice.closest(".tools").hidden = true;
    }
  }

  load() {
    const { columns } = this.profile, { id } = this.picture;
    const [caller, frame, amount] = ["caller", "frame", "amount"].map((part) => /** @type {any} */ (columns.get(`${id}_${part}`)));
    const tree = flameTree(caller, frame, amount);
    this.tree = this.isInverted ? inverted(tree) : tree;
    this.flames = flameLayout(this.tree);
    this.root = 0;
    this.selected = -1;
    this.showTable(tree);
  }

  /** @param {number} amount */
  amountText(amount) { return this.picture.kind === "bytes" ? bytesText(amount) : timeText(amount); }

  /** @param {import("./tree.js").FlameTree} tree */
  showTable(tree) {
    const whole = tree.whole[0] || 1;
    const { kind, id } = this.picture, of = `The share of ${WHOLES.get(id)}.`;
    const rows = sumByFrame(tree).slice(0, 2000).map((sum) => {
      const name = this.profile.strings[sum.frame];
      return /** @type {import("./sorting.js").Cell[]} */ ([name === WAITING ? name : [name, detailAddress(name)], sum.own, sum.own / whole, sum.whole, sum.whole / whole]);
    });
    showTable(byId("flame-table"), {
      id: "frames", caption: `Frames: ${this.picture.title}`, sorted: 1, rows,
      columns: [{ title: "Frame", kind: "name" }, { title: "Self", kind, meaning: "Without the frames that it calls." }, { title: "Self %", kind: "share", meaning: of }, { title: "Total", kind, meaning: "With the frames that it calls." }, { title: "Total %", kind: "share", meaning: of }],
    }, keptTable("frames", this.kept, (part) => { Object.assign(this.kept, part); this.keep(part); }));
    byId("flame-table").classList.add("wide");
  }

  /**
   * @param {string} id
   * @param {boolean} isInverted
   */
  choose(id, isInverted) {
    if (!this.picture) return;
    this.step();
    this.take(id, isInverted);
    this.draw();
    this.keepView();
  }

  /**
   * Takes another picture.
   * @param {string} id
   * @param {boolean} isInverted
   */
  take(id, isInverted) {
    const picture = this.pictures.find((/** @type {any} */ one) => one.id === id) || this.pictures[0];
    byId("flame-choice").value = picture.id;
    byId("flame-inverted").checked = isInverted;
    this.picture = picture;
    this.isInverted = isInverted;
    this.load();
  }

  keepView() {
    this.keep({ by: this.picture === this.pictures[0] ? "" : this.picture.id, inverted: this.isInverted ? "yes" : "", find: this.text, node: this.root ? String(this.root) : "" });
  }

  /** @param {Record<string, string>} query */
  show(query) {
    if (!this.picture) {
      byId("flame-graph").textContent = "Nothing was recorded for a flame graph.";
      return;
    }
    const isInverted = query.inverted === "yes", id = query.by || this.pictures[0].id;
    const order = (/** @type {Record<string, string>} */ view) => JSON.stringify([view["frames.filter"] || "", view["frames.sort"] || ""]);
    const isSame = id === this.picture.id && isInverted === this.isInverted && order(query) === order(this.kept);
    this.kept = { ...query };
    if (!isSame) this.take(id, isInverted);
    byId("flame-find").value = query.find || "";
    this.find(query.find || "");
    this.root = Math.max(0, readIndex(query.node, this.flames.duration.length));
    this.draw();
  }

  /** @param {string} text */
  find(text) {
    this.text = text;
    if (!this.picture) return;
    const wanted = text.trim().toLowerCase();
    this.found = wanted ? Uint8Array.from(this.profile.strings, (name) => Number(name.toLowerCase().includes(wanted))) : null;
    let sum = 0;
    if (this.found) {
      const { caller, frame, whole } = this.tree;
      for (let node = 1; node < whole.length; node += 1) {
        if (!this.found[frame[node]]) continue;
        let up = caller[node];
        while (up !== 0 && !this.found[frame[up]]) up = caller[up];
        if (up === 0) sum += whole[node];
      }
    }
    byId("flame-found").textContent = wanted ? `${this.amountText(sum)}, ${shareText(sum / (this.tree.whole[0] || 1))}` : "";
    this.draw();
  }

  /** The levels from the zoomed frame on, with the frames around it above. */
  path() {
    const around = [];
    for (let node = this.root; node !== 0; node = this.tree.caller[node]) around.unshift(node);
    return around;
  }

  draw() {
    if (!this.picture || this.frame.clientWidth === 0) return;
    const { theme, flames } = this;
    this.width = this.frame.clientWidth;
    const around = this.path();
    const [from, to] = this.rangeOf(this.root);
    const deepest = this.deepest(around.length);
    const height = Math.max(120, (deepest + 1) * FRAME + 4);
    const context = sizedContext(this.canvas, this.width, height);
    context.fillStyle = theme.page;
    context.fillRect(0, 0, this.width, height);
    context.font = LABEL_FONT;
    context.textBaseline = "middle";
    this.drawFrame(context, 0, 0, 0, this.width, true);
    around.slice(0, -1).forEach((node, index) => this.drawFrame(context, node, index + 1, 0, this.width, true));
    for (let level = Math.max(1, around.length); level < flames.levels.length; level += 1) {
      visitVisible(flames.levels[level], flames, [from, to], this.width, (node, x, wide) => {
        if (flames.start[node] + 0.5 < from || flames.start[node] >= to) return;
        this.drawFrame(context, node, level, Math.max(0, x), Math.min(wide, this.width), false);
      });
    }
  }

  /** @param {number} from */
  deepest(from) {
    const [begin, end] = this.rangeOf(this.root);
    let deepest = from;
    this.flames.levels.forEach((level, number) => {
      if (number > deepest && level.some((node) => this.flames.start[node] >= begin && this.flames.start[node] < end)) deepest = number;
    });
    return deepest;
  }

  /**
   * @param {number} node
   * @returns {[number, number]}
   */
  rangeOf(node) {
    const start = this.flames.start[node];
    return [start, start + Math.max(this.flames.duration[node], 1)];
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} node
   * @param {number} level
   * @param {number} x
   * @param {number} wide
   * @param {boolean} isAround
   */
  drawFrame(context, node, level, x, wide, isAround) {
    const { theme } = this;
    const frame = this.tree.frame[node], name = node === 0 ? "all" : this.profile.strings[frame];
    const isFound = !this.found || this.found[frame];
    context.globalAlpha = isAround && node !== this.root ? 0.55 : isFound ? 1 : 0.25;
    context.fillStyle = node === 0 ? theme.line : theme.colours[colourNumber(name, kindOf(name))];
    context.fillRect(x, level * FRAME, Math.max(wide - (wide > 3 ? 0.6 : 0), 0.8), FRAME - 1);
    context.globalAlpha = 1;
    if (wide > 26) {
      context.fillStyle = theme.label;
      const text = fittingText(node === 0 ? `all: ${this.amountText(this.tree.whole[0])}` : shortLabel(name), wide);
      if (text) context.fillText(text, x + 4, level * FRAME + FRAME / 2);
    }
    if (node === this.selected || node === this.hovered) {
      context.strokeStyle = theme.text;
      context.lineWidth = node === this.selected ? 2 : 1;
      context.strokeRect(x + 0.5, level * FRAME + 0.5, Math.max(wide - 1, 1), FRAME - 2);
    }
  }

  /**
   * Returns the frame at a point of the canvas, or -1.
   * @param {number} x
   * @param {number} y
   */
  hit(x, y) {
    const level = Math.floor(y / FRAME), around = this.path();
    if (level === 0) return 0;
    if (level <= around.length) return level < around.length ? around[level - 1] : (around[level - 1] ?? -1);
    const [from, to] = this.rangeOf(this.root);
    const lane = this.flames.levels[level];
    return lane ? hitLane(lane, this.flames, from + x / this.width * (to - from), 0) : -1;
  }

  /** @param {number} node */
  zoomTo(node) {
    if (Math.max(0, node) !== this.root) this.step();
    this.root = Math.max(0, node);
    this.selected = this.root;
    this.draw();
    this.keepView();
    say(this.text_of(this.root));
  }

  /** @param {number} node */
  text_of(node) {
    const whole = this.tree.whole[0] || 1;
    const name = node === 0 ? "all" : shownName(this.profile.strings[this.tree.frame[node]]);
    return `${name}: ${this.amountText(this.tree.whole[node])}, ${shareText(this.tree.whole[node] / whole)}; own ${this.amountText(this.tree.own[node])}`;
  }

  listen() {
    this.canvas.addEventListener("pointermove", (event) => {
      const tip = byId("tip"), node = this.hit(event.offsetX, event.offsetY);
      if (node !== this.hovered) { this.hovered = node; this.draw(); }
      if (node < 0) { tip.hidden = true; return; }
      const [name, ...rest] = [node === 0 ? "all" : shownName(this.profile.strings[this.tree.frame[node]]), this.text_of(node).slice(this.text_of(node).lastIndexOf(": ") + 2)];
      tip.replaceChildren(make("strong", {}, name), make("div", {}, rest.join("")));
      placeTip(tip, event.clientX, event.clientY);
    });
    this.canvas.addEventListener("pointerleave", () => { this.hovered = -1; byId("tip").hidden = true; this.draw(); });
    this.canvas.addEventListener("click", (event) => { this.frame.focus({ preventScroll: true }); const node = this.hit(event.offsetX, event.offsetY); if (node >= 0) this.zoomTo(node); });
    this.frame.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.key(event));
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { caller } = this.tree, { levels } = this.flames;
    const node = this.selected < 0 ? this.root : this.selected;
    const level = levels.findIndex((one) => one.includes(node)), at = level < 0 ? -1 : levels[level].indexOf(node);
    const children = level < 0 ? [] : (levels[level + 1] || []).filter((one) => caller[one] === node);
    const actions = /** @type {Record<string, () => void>} */ ({
      ArrowUp: () => this.selectFrame(caller[node]),
      ArrowDown: () => { if (children.length) this.selectFrame(children[0]); },
      ArrowLeft: () => { if (at > 0) this.selectFrame(levels[level][at - 1]); },
      ArrowRight: () => { if (at >= 0 && at + 1 < levels[level].length) this.selectFrame(levels[level][at + 1]); },
      Enter: () => this.zoomTo(node),
      Escape: () => this.zoomTo(0),
    });
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  /** @param {number} node */
  selectFrame(node) {
    this.selected = node;
    const [from, to] = this.rangeOf(this.root);
    if (this.flames.start[node] < from || this.flames.start[node] >= to) this.root = this.tree.caller[node] || 0;
    this.draw();
    say(this.text_of(node));
  }
}

/**
 * Returns the category by whose colours a frame is drawn.
 * @param {string} name
 */
function kindOf(name) {
  if (/\(\d+\): /.test(name) || name.startsWith("<")) return 2;
  return name.startsWith("nn.Module: ") ? 1 : 0;
}
