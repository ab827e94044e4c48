// @ts-check
// Tables that sort, filter, page and export their rows.
import { grouped, numberText } from "./numbers.js";
import { shortName, shownName } from "./names.js";
import { download, make, say } from "./elements.js";
import { readIndex } from "./address.js";
import { cellName, isMatching, readOrder, sortedOrder } from "./sorting.js";
import { csvText } from "./csv.js";

/** @typedef {import("./sorting.js").Cell} Cell */
/** @typedef {{ title: string, kind: import("./numbers.js").Kind, meaning?: string }} Column */
/** @typedef {{ id: string, caption: string, columns: Column[], rows: Cell[][], sorted: number | null }} TableData */

const PAGE_ROWS = 50;
/** Names of more letters may be cut to the width of their column. */
const LONG_NAME = 24;
/** Columns whose texts have at most so many letters are as narrow as they are. */
const WORD = 20;
/** Tables with at most so many rows need no filter and no pages. */
const FEW_ROWS = 12;

/**
 * Shows a table in an element: its rows page by page, with a filter and a way to export them.
 * @param {HTMLElement} root
 * @param {TableData} table
 * @param {{ filter?: string, sort?: string, page?: string, onTurn?: () => void, onView?: (view: { filter: string, sort: string, page: string }) => void }} [options]
 */
export function showTable(root, table, options = {}) {
  const { columns, rows } = table;
  // Rows come in the order of the sorted column, apart from ranges, which come last.
  const state = { filter: options.filter || "", column: table.sorted, isRising: false, page: Math.max(0, readIndex(options.page, 1e6) - 1), isGiven: true };
  const asked = readOrder(columns, options.sort);
  if (asked) Object.assign(state, asked, { isGiven: false });
  const isOfWords = columns.map(({ kind }, index) => kind === "text" && rows.every((row) => typeof row[index] === "number" || cellName(row[index]).length <= WORD));
  const body = make("tbody"), count = make("span", { class: "quiet", role: "status" });
  const heads = columns.map((column, index) => head(column, index));
  const pages = make("span", { class: "pages" });
  const filter = /** @type {HTMLInputElement} */ (make("input", {
    type: "search", placeholder: "filter", "aria-label": `Filter ${table.caption}`, value: state.filter,
    oninput: () => { state.filter = filter.value; state.page = 0; draw(); tellView(); },
  }));
  const export_button = make("button", { type: "button", onclick: () => save() }, "CSV");
  const tools = make("div", { class: rows.length > FEW_ROWS ? "tools small" : "tools small lone" }, rows.length > FEW_ROWS ? filter : null, count, make("span", { class: "gap" }), pages, export_button);
  const element = make("table", {}, make("caption", {}, table.caption), make("thead", {}, make("tr", {}, ...heads)), body);
  // Paper has no tools that tell how many rows there are.
  const printed = make("p", { class: "printed quiet" });
  const none = make("p", { class: "none" });
  root.replaceChildren(element, none, printed);
  if (root.previousElementSibling?.classList.contains("small")) root.previousElementSibling.remove();
  // The caption of a table stands above its filter, as a heading.
  const heading = root.previousElementSibling;
  if (heading?.classList.contains("caption")) heading.textContent = table.caption;
  else if (!/^H[234]$/.test(heading?.tagName || "")) root.before(make("h3", { class: "caption" }, table.caption));
  root.before(tools);
  draw();

  /**
   * @param {Column} column
   * @param {number} index
   */
  function head(column, index) {
    const isText = column.kind === "name" || column.kind === "text";
    const button = make("button", { type: "button", onclick: () => sortBy(index) }, column.title);
    return make("th", { scope: "col", class: isText ? "text" : null, title: column.meaning || null }, column.title ? button : null);
  }

  /** @param {number} index */
  function sortBy(index) {
    const isText = columns[index].kind === "name" || columns[index].kind === "text";
    state.isRising = state.column === index ? !state.isRising : isText;
    state.column = index;
    state.isGiven = false;
    state.page = 0;
    draw();
    tellView();
    say(`${table.caption}: sorted by ${columns[index].title}, ${state.isRising ? "ascending" : "descending"}`);
  }

  function tellView() {
    const sort = state.column === null ? "" : `${columns[state.column].title}.${state.isRising ? "up" : "down"}`;
    if (options.onView) options.onView({ filter: state.filter, sort: state.isGiven ? "" : sort, page: state.page ? String(state.page + 1) : "" });
  }

  /** @returns {Cell[][]} */
  function shown() {
    const order = state.column === null || state.isGiven ? rows.map((_, index) => index) : sortedOrder(rows, state.column, state.isRising);
    return order.map((index) => rows[index]).filter((row) => isMatching(row, state.filter));
  }

  function draw() {
    const found = shown();
    const last = Math.max(0, Math.ceil(found.length / PAGE_ROWS) - 1);
    state.page = Math.min(state.page, last);
    const first = state.page * PAGE_ROWS;
    body.replaceChildren(...found.slice(first, first + PAGE_ROWS).map((row) => make("tr", {}, ...row.map((cell, index) => cellElement(cell, columns[index].kind, isOfWords[index])))));
    heads.forEach((element, index) => {
      if (state.column === index) element.setAttribute("aria-sort", state.isRising ? "ascending" : "descending");
      else element.removeAttribute("aria-sort");
    });
    fitColumns(root, heads);
    const all = found.length === rows.length ? grouped(rows.length) : `${grouped(found.length)} of ${grouped(rows.length)}`;
    count.textContent = rows.length > FEW_ROWS ? `${all} rows` : "";
    const filtered = state.filter.trim() ? `, of the rows with \u201c${state.filter.trim()}\u201d` : "";
    printed.textContent = last > 0 || filtered ? `Rows ${found.length ? first + 1 : 0} to ${Math.min(first + PAGE_ROWS, found.length)} of ${grouped(found.length)}${filtered}.` : "";
    const isNone = found.length === 0 && rows.length > 0;
    element.hidden = isNone;
    none.replaceChildren(...isNone ? [`Nothing matches \u201c${state.filter.trim()}\u201d. `, make("button", { type: "button", onclick: clear }, "Clear the filter")] : []);
    pages.replaceChildren();
    if (last > 0) {
      pages.append(
        make("button", { type: "button", "aria-label": "Page before", disabled: state.page === 0, onclick: () => turn(-1) }, "\u2039"),
        ` ${state.page + 1} of ${last + 1} `,
        make("button", { type: "button", "aria-label": "Next page", disabled: state.page === last, onclick: () => turn(1) }, "\u203a"),
      );
    }
  }

  /** @param {number} by */
  function turn(by) {
    if (options.onTurn) options.onTurn();
    state.page += by;
    draw();
    tellView();
  }

  function clear() {
    state.filter = filter.value = "";
    draw();
    tellView();
    filter.focus();
  }

  function save() {
    download(`${table.id}.csv`, "text/csv", csvText(columns, shown()));
  }
}

/**
 * Makes the element of a cell.
 * @param {Cell} cell
 * @param {import("./numbers.js").Kind} kind
 * @param {boolean} isWord
 */
function cellElement(cell, kind, isWord) {
  const isName = kind === "name";
  const content = cell === null ? null
    : Array.isArray(cell) ? make("a", { href: `#${cell[1]}`, title: tipOf(cell[0]) }, ...breakable(shortName(cell[0])))
    : typeof cell === "number" ? numberText(cell, kind)
    : isName ? make("span", { class: cell.length > 60 ? "long" : null, title: tipOf(cell) }, ...breakable(shortName(cell))) : cell;
  const style = isWord ? "text word" : isName || kind === "text" ? "text" : cell === 0 ? "zero" : null;
  return make(isName ? "th" : "td", { scope: isName ? "row" : null, class: style }, content);
}

/**
 * Returns a name with the places where a line may break: behind punctuation, rather than in a word.
 * @param {string} name
 * @returns {(string | HTMLElement)[]}
 */
function breakable(name) {
  return name.split(/(?<=[_,/<(>-]|::)(?=\w)|(?<=[a-z])(?=[A-Z])/).flatMap((part, index) => index ? [make("wbr"), part] : [part]);
}

/**
 * Widens the names of a table that is wider than a narrow window, so that no column is cut at its edge.
 * @param {HTMLElement} root
 * @param {HTMLElement[]} heads
 */
function fitColumns(root, heads) {
  root.style.removeProperty("--name");
  if (innerWidth > 640 || root.scrollWidth <= root.clientWidth || heads.length < 2) return;
  const [name, ...others] = heads.map((element) => element.offsetWidth);
  let room = root.clientWidth - name;
  for (const width of others) { if (width > room) break; room -= width; }
  root.style.setProperty("--name", `${name + Math.max(0, room)}px`);
}

/**
 * Returns the whole name, if the table may show less of it.
 * @param {string} name
 */
function tipOf(name) {
  return name.length > LONG_NAME || shortName(name) !== name ? shownName(name) : null;
}
