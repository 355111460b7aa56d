// Numbers and names as people read them; the same words as in the terminal.

import { h, to } from "./dom.js";

const UNITS = ["KiB", "MiB", "GiB", "TiB", "PiB"];

/** `1.5 MiB`. */
export function human(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  let value = bytes / 1024;
  let unit = 0;
  while (value >= 1023.95 && unit + 1 < UNITS.length) {
    value /= 1024;
    unit += 1;
  }
  return `${value.toFixed(1)} ${UNITS[unit]}`;
}

/** The time of a day, 24 hours: `14:03:59`. */
export function clock(ms, seconds = true) {
  return new Date(ms).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(seconds ? { second: "2-digit" } : {}) });
}

/** `1,234,567`. */
export function grouped(n) {
  return n.toLocaleString("en-US");
}

/** `12.3 %`. */
export function percent(share) {
  const p = share * 100;
  return p > 0 && p < 0.05 ? "<0.1 %" : `${p.toFixed(1)} %`;
}

/** `1 object`, `2 objects`. */
export function plural(n, one, many) {
  return `${grouped(n)} ${n === 1 ? one : many}`;
}

/** A message as a sentence. If it begins with a name, such as `set=...` or `a.B is not there`, that stays as it is. */
export function sentence(text) {
  const begun = text.replace(/^[a-z]+(?= |$)/, (word) => word.charAt(0).toUpperCase() + word.slice(1));
  return /[.!?]$/.test(begun) ? begun : `${begun}.`;
}

/** A size, exact when pointed at. */
export function bytes(n) {
  return n === undefined || n === null ? "" : h("span", { title: `${grouped(n)} bytes` }, human(n));
}

/** A class name whose package is in the background; it may break after a dot, not inside a word. */
export function className(name) {
  const at = name.lastIndexOf(".");
  if (at < 0) return h("span", { class: "cls" }, name);
  const parts = [];
  for (const word of name.slice(0, at).split(".")) parts.push(`${word}.`, h("wbr"));
  return h("span", { class: "cls" }, h("span", { class: "pkg" }, parts), name.slice(at + 1));
}

/** What an object is called: its class, or `class X`. */
export function titleOf(o) {
  return o.kind === "class" && o.value ? `class ${o.value}` : o.class;
}

/** What an object is called in a heading: the class without its package, the value, the id. */
export function headingOf(o) {
  const title = titleOf(o);
  const short = title.startsWith("class ") ? title : title.slice(title.lastIndexOf(".") + 1);
  return `${short}${o.kind !== "class" && o.value ? ` "${o.value}"` : ""} ${o.object}`;
}

/** An object as a link: name, value, id. */
export function object(o, more) {
  if (!o) return h("span", { class: "dim" }, "null");
  const value = o.kind === "class" ? null : o.value;
  return h("span", { class: "obj" },
    h("a", { href: to("object", { id: o.object }) }, className(titleOf(o))), " ",
    value ? [h("span", { class: "val" }, `"${value}"`), " "] : null,
    h("span", { class: "id" }, o.object), more);
}

/** The set of objects that a row of a histogram stands for. */
export function setOf(row, by) {
  if (row.class !== undefined) {
    const word = by === "superclass" ? "sub" : "class";
    return `${word}:${row.class_id && row.class_id !== "0x0" ? row.class_id : row.class}`;
  }
  if (row.loader !== undefined) return `loader:${row.object}`;
  if (row.package !== undefined) return `package:${row.package}`;
  if (row.heap !== undefined) return `heap:${row.heap}`;
  return `site:${row.trace}`;
}

/** The name of such a row. */
export function nameOf(row) {
  if (row.class !== undefined) return row.class;
  if (row.loader !== undefined) return row.object === "0x0" ? row.loader : `${row.loader} @ ${row.object}`;
  if (row.package !== undefined) return row.package || "<no package>";
  if (row.heap !== undefined) return row.heap;
  return row.frames.length ? row.frames.join(" < ") : `<no stack, trace ${row.trace}>`;
}
