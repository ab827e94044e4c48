// @ts-check
// The address of a view: `#pane?key=value&key=value`. A copied address shows the same view again.

/**
 * @typedef {object} View
 * @property {string} pane
 * @property {Record<string, string>} query
 */

/**
 * Reads the part of an address behind the `#`.
 * @param {string} hash
 * @returns {View}
 */
export function readView(hash) {
  const text = hash.replace(/^#/, "");
  const at = text.indexOf("?");
  const pane = at < 0 ? text : text.slice(0, at);
  /** @type {Record<string, string>} */
  const query = {};
  if (at >= 0) for (const [key, value] of new URLSearchParams(text.slice(at + 1).replaceAll("+", "%2B"))) query[key] = value;
  return { pane, query };
}

/**
 * Writes the address of a view, without keys that have no value.
 * @param {View} view
 * @returns {string}
 */
export function writeView(view) {
  const parts = Object.entries(view.query).filter(([, value]) => value !== "" && value !== undefined);
  const query = parts.map(([key, value]) => `${encodeURIComponent(key)}=${encodeURIComponent(value)}`).join("&");
  return `#${view.pane}${query ? `?${query}` : ""}`;
}

/**
 * Returns the filter, order and page of a table in the address, and how changes of them get there. Several
 * tables of a pane stand side by side under their names.
 * @param {string} id
 * @param {Record<string, string>} query
 * @param {(part: Record<string, string>) => void} keep
 */
export function keptTable(id, query, keep) {
  const [filter, sort, page] = ["filter", "sort", "page"].map((part) => `${id}.${part}`);
  return {
    filter: query[filter] || "", sort: query[sort] || "", page: query[page] || "",
    onView: (/** @type {{ filter: string, sort: string, page: string }} */ view) => keep({ [filter]: view.filter, [sort]: view.sort, [page]: view.page }),
  };
}

/**
 * Reads a range such as `100-200`, cut to the whole; null if it is none, or lies outside.
 * @param {string | undefined} text
 * @param {[number, number]} whole
 * @returns {[number, number] | null}
 */
export function readRange(text, whole) {
  const found = /^(\d+)-(\d+)$/.exec(text || "");
  if (!found) return null;
  const [from, to] = [Math.max(Number(found[1]), whole[0]), Math.min(Number(found[2]), Math.ceil(whole[1]))];
  return from < to ? [from, to] : null;
}

/**
 * Reads a number below a count, such as the position of an event; -1 if it is none.
 * @param {string | undefined} text
 * @param {number} count
 */
export function readIndex(text, count) {
  const index = /^\d+$/.test(text || "") ? Number(text) : -1;
  return index < count ? index : -1;
}

/**
 * Writes a range of nanoseconds.
 * @param {[number, number] | null} range
 */
export function writeRange(range) {
  return range ? `${Math.floor(range[0])}-${Math.ceil(range[1])}` : "";
}
