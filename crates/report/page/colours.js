// @ts-check
// Colours of events: the same name always has the same colour. Nothing here accesses the page.

/** The categories of events, in the order of their numbers. */
export const CATEGORIES = ["operator", "range", "Python", "runtime call", "device work", "range on a device", "other"];

const HUES = 24;
const FAMILIES = [
  { from: 190, span: 170, saturation: 48, shade: 0 },
  { from: 210, span: 20, saturation: 22, shade: 4 },
  { from: 95, span: 60, saturation: 30, shade: 4 },
  { from: 30, span: 25, saturation: 55, shade: 2 },
  { from: 0, span: 360, saturation: 58, shade: 0 },
  { from: 168, span: 14, saturation: 38, shade: 8 },
  { from: 0, span: 1, saturation: 0, shade: 4 },
];

/** The number of different colours. */
export const COLOUR_COUNT = FAMILIES.length * HUES;

/**
 * Returns a number for a text that is the same everywhere.
 * @param {string} text
 */
export function textHash(text) {
  let hash = 2166136261;
  for (let i = 0; i < text.length; i += 1) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return (hash ^ (hash >>> 15)) >>> 0;
}

/**
 * Returns the number of the colour of a name. Names that differ only in numbers share it.
 * @param {string} name
 * @param {number} category
 */
export function colourNumber(name, category) {
  return category * HUES + (textHash(name.replace(/[\d<(].*$/, "")) % HUES);
}

/**
 * Returns all colours of a theme, by number.
 * @param {boolean} isDark
 * @returns {string[]}
 */
export function colourList(isDark) {
  const colours = [];
  for (const { from, span, saturation, shade } of FAMILIES) {
    for (let hue = 0; hue < HUES; hue += 1) {
      const angle = (from + (hue * span) / HUES) % 360;
      const step = (hue % 3) * 3;
      const lightness = isDark ? 36 - shade + step : 74 + shade / 2 - step;
      colours.push(`hsl(${angle.toFixed(0)} ${isDark ? saturation * 0.8 : saturation}% ${lightness}%)`);
    }
  }
  return colours;
}

/**
 * Returns some colours of a category, in the order of their hues.
 * @param {number} category
 * @param {boolean} isDark
 */
export function familyColours(category, isDark) {
  const colours = colourList(isDark).slice(category * HUES, (category + 1) * HUES);
  return colours.filter((_, index) => index % 6 === 0);
}
