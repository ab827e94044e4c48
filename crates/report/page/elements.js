// @ts-check
// Makes elements of the page. Names of a profile become text, never markup.

/** @typedef {string | Node | null | undefined} Child */

/**
 * Makes an element with attributes and children. An attribute that is null is left out, one that
 * begins with `on` is a listener.
 * @param {string} tag
 * @param {Record<string, any>} attributes
 * @param {...Child} children
 * @returns {HTMLElement}
 */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) if (child !== null && child !== undefined) element.append(child);
  return element;
}

/**
 * Makes an element of a picture.
 * @param {string} tag
 * @param {Record<string, any>} attributes
 * @param {Element | null} [parent]
 * @param {string} [text]
 */
export function makeShape(tag, attributes, parent, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  if (text !== undefined) element.textContent = text;
  if (parent) parent.append(element);
  return element;
}

/**
 * Returns the element with an id, which the page must have.
 * @param {string} id
 * @returns {any}
 */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no element ${id}`);
  return element;
}

/**
 * Tells a screen reader something.
 * @param {string} text
 */
export function say(text) {
  byId("said").textContent = text;
}

/**
 * Offers a text as a file.
 * @param {string} name
 * @param {string} type
 * @param {string} text
 */
export function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  const link = make("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}
