// A table that shows one page of any number of rows; the server sorts and cuts.

import { fill, h } from "./dom.js";
import { grouped } from "./format.js";
import { change } from "./shell.js";

/**
 * A table. A column is `{title, num, cell(row), bar(row), sort}`; `sort` is the word the server sorts
 * by, or a function of a row when all rows are here. `turned` is the parameter `up` where the server
 * turns the order round. `total` is a row of sums. `key(row)` distinguishes rows, which others may come before.
 *
 * @param {{columns: any[], rows: any[], empty?: any, sort?: string, turned?: string, total?: any[], label?: string,
 *   key?: (row: any) => any}} parts
 */
export function table({ columns, rows, empty, sort, turned, total, label, key }) {
  if (!rows.length) return h("p", { class: "empty" }, empty || "Nothing.");
  const line = (row) => h("tr", { tabindex: "-1", "data-key": key ? key(row) : null }, columns.map((c) => {
    const share = c.bar?.(row);
    return h("td", { class: [c.num ? "n" : "", share !== undefined ? "bar" : ""].join(" ").trim() || null,
      vars: share !== undefined ? { "--b": `${(Math.min(1, Math.max(0, share)) * 100).toFixed(1)}%` } : null }, c.cell(row));
  }));
  const heads = columns.map((c) => heading(c, [sort, turned], ({ target }) => {
    const up = c.up = !c.up;
    const sorted = [...rows].sort((a, b) => (up ? 1 : -1) * compare(c.sort(b), c.sort(a)));
    fill(target.closest("table").tBodies[0], sorted.map(line));
  }));
  return h("div", { class: "scroll" }, h("table", { "aria-label": label || null }, h("thead", null, h("tr", null, heads)), h("tbody", null, rows.map(line)),
    total ? h("tfoot", null, h("tr", null, total.map((c, n) => h("td", { class: columns[n].num ? "n" : null }, c)))) : null));
}

function compare(a, b) {
  return typeof a === "string" ? String(b).localeCompare(a) : a - b;
}

function heading(column, [sort, turned], local) {
  const attributes = { scope: "col", class: column.num ? "n" : null };
  if (!column.sort) return h("th", attributes, column.title);
  if (typeof column.sort === "function") return h("th", attributes, h("button", { onclick: local, title: "Sort" }, column.title));
  const on = column.sort === sort;
  const up = turned === "1";
  if (on) attributes["aria-sort"] = (column.sort === "name") !== up ? "ascending" : "descending";
  const next = on && turned !== undefined && !up ? "1" : "";
  return h("th", attributes, h("button", { onclick: () => change({ sort: column.sort, up: next, offset: "" }), title: column.about || "Sort" }, column.title));
}

/** Where we are in the rows, and the way to others. */
export function pager(offset, shown, total, limit) {
  if (total <= shown && offset === 0) return h("p", { class: "pager" }, total > 10 ? `${grouped(total)} rows` : "");
  const jump = h("input", { type: "number", min: "1", max: String(total), "aria-label": "Go to row", placeholder: "row",
    onchange: (event) => {
      const row = Math.min(total, Math.max(1, Number(event.target.value) || 1)) - 1;
      change({ offset: row - (row % limit) });
    } });
  const button = (name, text, at, on) => h("button", { class: name, disabled: !on, onclick: () => change({ offset: at || "" }) }, text);
  return h("p", { class: "pager" },
    button("first", "«", 0, offset > 0), button("previous", "‹ Previous", Math.max(0, offset - limit), offset > 0),
    h("span", null, `${grouped(offset + 1)} – ${grouped(offset + shown)} of ${grouped(total)}`),
    button("next", "Next ›", offset + limit, offset + shown < total),
    button("last", "»", Math.floor((total - 1) / limit) * limit, offset + shown < total), jump);
}

/** A field whose words become a parameter of the address after a short pause. */
export function search(name, value, placeholder, hint) {
  return h("input", { type: "search", value: value || "", placeholder, title: hint || placeholder, "aria-label": placeholder, spellcheck: "false", "data-parameter": name,
    oninput: ({ target }) => {
      clearTimeout(target.timer);
      target.timer = setTimeout(() => {
        // By now it may be another parameter's, or another view is shown.
        if (target.isConnected) change({ [target.dataset.parameter]: target.value, offset: "" }, true);
      }, 350);
    },
    onkeydown: ({ key, target }) => {
      if (key !== "Enter") return;
      clearTimeout(target.timer);
      change({ [name]: target.value, offset: "" });
    } });
}

/** Choices of one parameter as a row of links. */
export function choice(name, options, value, hrefs) {
  return h("div", { class: "tabs", role: "group" }, options.map(([word, title]) => h("a", {
    href: hrefs(word), "aria-current": word === value ? "true" : null, "data-choice": `${name}:${word}` }, title)));
}
