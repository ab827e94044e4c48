// @ts-check
// Where the reader is: keeps the view in the address, and how far each view was scrolled.
import { writeView } from "./address.js";

/** The time without a change after which the address gets the view. */
const PAUSE_MS = 120;

export class Visit {
  constructor() {
    this.pane = "";
    /** @type {Record<string, string>} */
    this.query = {};
    /** The address as it was last read or written. Another one belongs to a view that is not shown yet. */
    this.hash = location.hash;
    this.isChanged = false;
    this.count = 0;
    /** The name of the current entry of the history. */
    this.entry = "";
    /** @type {Map<string, number>} */
    this.scrolled = new Map();
    history.scrollRestoration = "manual";
    addEventListener("scroll", () => this.scrolled.set(this.entry, scrollY), { passive: true });
    // A view is written before a link or a key leads away from it.
    for (const kind of ["click", "keydown"]) addEventListener(kind, () => this.write(), { capture: true });
    addEventListener("pagehide", () => this.write());
  }

  /** @type {ReturnType<typeof setTimeout> | undefined} */
  timer;

  /**
   * Begins a view, and returns how far it was scrolled when it was left; zero if it is new.
   * @param {string} pane
   * @param {Record<string, string>} query
   */
  arrive(pane, query) {
    clearTimeout(this.timer);
    Object.assign(this, { pane, query: { ...query }, hash: location.hash, isChanged: false });
    const known = history.state;
    if (known?.entry) {
      this.entry = known.entry;
      return this.scrolled.get(known.entry) ?? known.y ?? 0;
    }
    this.count += 1;
    this.entry = `${performance.timeOrigin}-${this.count}`;
    history.replaceState({ entry: this.entry, y: 0 }, "");
    return 0;
  }

  /**
   * Keeps a part of the view of a pane in the address, without a step back for every change of it.
   * @param {string} pane
   * @param {Record<string, string>} part
   */
  keep(pane, part) {
    if (pane !== this.pane) return;
    Object.assign(this.query, part);
    this.isChanged = true;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.write(), PAUSE_MS);
  }

  /** Makes an entry of the history for what is kept from now on, so that Back returns to the view before. */
  step() {
    this.write();
    this.count += 1;
    this.entry = `${performance.timeOrigin}-${this.count}`;
    history.pushState({ entry: this.entry, y: scrollY }, "", location.href);
    this.scrolled.set(this.entry, scrollY);
  }

  /** Writes the view into the entry of the history that shows it. */
  write() {
    clearTimeout(this.timer);
    if (location.hash !== this.hash || (!this.isChanged && history.state?.y === scrollY)) return;
    const address = this.isChanged ? writeView({ pane: this.pane, query: this.query }) : location.href;
    history.replaceState({ entry: this.entry, y: scrollY }, "", address);
    Object.assign(this, { hash: location.hash, isChanged: false });
  }
}
