// The columns of a table as its answer describes them, so that a column is declared once, on the server.

import { h } from "./dom.js";
import { bytes, clock, grouped } from "./format.js";

/** A difference with its sign. */
export const signed = (n) => h("span", { class: n > 0 ? "plus" : null }, n > 0 ? `+${grouped(n)}` : grouped(n));

/** A difference of bytes with its sign. */
export const signedBytes = (n) => (n < 0 ? ["−", bytes(-n)] : [n > 0 ? "+" : "", bytes(n)]);

/** A time of day, and how long ago it was. */
function time(ms) {
  const age = Math.max(0, Date.now() - ms) / 1000;
  return [h("span", { class: "time", title: new Date(ms).toISOString() }, clock(ms)), h("div", { class: "dim" }, `${age < 100 ? age.toFixed(1) : grouped(Math.round(age))} s ago`)];
}

/** How a value of a kind is written; texts are shown as they are. */
const FORMS = {
  count: grouped,
  bytes,
  count_change: signed,
  bytes_change: signedBytes,
  mean: (n) => n.toFixed(1),
  percent: (n) => (n >= 99.995 ? "100" : n.toPrecision(3)),
  milliseconds: (n) => `${grouped(Math.round(n / 1000))} s`,
  rate: (n) => [bytes(Math.round(Math.max(0, n))), "/h"],
  number: String,
  time,
  description: (text) => h("span", { class: "val" }, text),
};

/** The value of a column in a row; a dot in its name leads into an object. */
export function valueOf(row, name) {
  const value = name.split(".").reduce((part, key) => part?.[key], row);
  return value === undefined ? null : value;
}

/**
 * The columns of an answer for `table`. `name(row)` makes the first cell, and `bars` gives the share that a bar shows, by the
 * column's name. A column in which no row has a value is left out.
 *
 * @param {{columns: any[], rows: any[]}} answer
 * @param {(row: any) => any} name
 * @param {Record<string, (row: any) => number>} [bars]
 */
export function described(answer, name, bars = {}) {
  const intervals = new Map(answer.columns.filter((c) => c.of).map((c) => [c.of, c.name]));
  const isFilled = (c) => c.kind === "name" || answer.rows.some((row) => valueOf(row, c.name) !== null);
  return answer.columns.filter((c) => c.sorted && isFilled(c)).map((c) => {
    if (c.kind === "name") return { title: c.title, sort: "name", about: c.help, cell: name };
    const form = FORMS[c.kind] || ((text) => text);
    const ends = (row) => (intervals.has(c.name) ? valueOf(row, intervals.get(c.name)) : null);
    const interval = (row) => (ends(row) ? h("span", { class: "dim", title: "95 % interval" }, " ", form(ends(row)[0]), "–", form(ends(row)[1])) : null);
    const cell = (row) => (valueOf(row, c.name) === null ? "" : [form(valueOf(row, c.name)), interval(row)]);
    return { title: c.title, num: !["text", "description", "time"].includes(c.kind), sort: c.name, about: c.help, cell, bar: bars[c.name] };
  });
}

/** The same columns for a table whose rows are all here, so that no answer is needed to sort them. */
export function sortedHere(columns, answer) {
  const nameOf = (c) => (c.sort === "name" ? answer.columns[0].name : c.sort);
  return columns.map((c) => ({ ...c, sort: (row) => valueOf(row, nameOf(c)) }));
}

/** What qualifies the name of a row: its loader, the thread that allocates. */
export function details(answer, row) {
  const known = answer.columns.filter((c) => c.kind === "detail" && valueOf(row, c.name));
  return known.map((c) => h("div", { class: c.name === "fault" ? "bad" : "dim", title: c.help }, c.name === "context" ? `by ${row.context}` : valueOf(row, c.name)));
}
