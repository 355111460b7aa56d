// Pieces that several views share: lists of objects, steps of a path, what can be asked about a set.

import { h, setOfSet, to } from "./dom.js";
import { bytes, className, grouped, object, percent } from "./format.js";
import { table } from "./table.js";

/** What the first fields of an object say, where it has no value of its own. */
const fieldTexts = (r) => (r.fields?.length ? h("span", { class: "val" }, ` ${r.fields.map((f) => `${f.name} = ${f.value}`).join(", ")}`) : null);

/** Shallow, retained, share, object. */
export function objectTable(rows, options = {}) {
  const whole = options.whole;
  return table({
    rows,
    empty: options.empty || "No objects.",
    sort: options.sort,
    label: options.label,
    columns: [
      { title: "Shallow", num: true, sort: options.server ? "shallow" : (r) => r.shallow, cell: (r) => bytes(r.shallow) },
      { title: "Retained", num: true, sort: options.server ? "retained" : (r) => r.retained, cell: (r) => bytes(r.retained),
        bar: whole ? (r) => r.retained / whole : undefined },
      whole ? { title: "Share", num: true, cell: (r) => percent(r.retained / whole) } : null,
      options.field ? { title: "Field", cell: (r) => r.field || "" } : null,
      { title: options.title || "Object", sort: options.server ? "name" : undefined, cell: (r) => object(r, fieldTexts(r)) },
    ].filter(Boolean),
  });
}

/** A path, as in the terminal: each object below the one that holds it, with the field that does. */
export function steps(list) {
  const rows = list.map((step, n) => ({ step, depth: n, field: n ? list[n - 1].field : null, direct: n ? list[n - 1].direct !== false : true }));
  return table({
    rows,
    empty: "No path.",
    columns: [
      { title: "Retained", num: true, cell: (r) => bytes(r.step.retained) },
      { title: "Field and object", cell: (r) => h("div", { class: "indent", vars: { "--d": String(r.depth) } },
        r.field ? [h("b", { class: "field" }, r.field), " → "] : null, object(r.step), r.direct ? null : h("span", { class: "dim" }, " (shared: several paths lead to it)")) },
    ],
  });
}

/** Which objects an answer is about, when it is a set. */
export function onlyOf(set) {
  return set ? h("p", { class: "dim" }, "Only objects of ", h("a", { href: to("objects", { set }) }, set), ".") : null;
}

/** The questions about a set, as tabs. */
export function setTabs(set, now) {
  const views = [
    ["list", "Objects", to("objects", { set })],
    ["class", "By class", to("objects", { set, show: "class" })],
    ["package", "By package", to("objects", { set, show: "package" })],
    ["dominators", "Kept alive by", to("objects", { set, show: "dominators" })],
    ["paths", "Paths from roots", to("objects", { set, show: "paths" })],
    ["retained", "They retain", to("objects", { set: setOfSet("retained", set), show: "class" })],
    ["in", "Referrers", to("objects", { set: setOfSet("in", set), show: "class" })],
    ["out", "Refer to", to("objects", { set: setOfSet("out", set), show: "class" })],
    ["waste", "Waste", to("waste", { set })],
    ["query", "Query", to("query", { text: `select id, class, shallow, retained from set_members('${set.replaceAll("'", "''")}') order by retained desc`, lang: "sql" })],
  ];
  // The objects of a query are asked further, not by the query they come from.
  const shown = now === "query" ? views.slice(0, -1) : views;
  return h("div", { class: "tabs" }, shown.map(([word, title, href]) => h("a", { href, "aria-current": word === now ? "true" : null, "data-choice": word }, title)));
}

/** A class of an answer as a link to its objects. */
export function classLink(name, id) {
  return h("a", { href: to("objects", { set: `class:${id && id !== "0x0" ? id : name}` }) }, className(name));
}

/** Figures side by side. */
export function figures(list) {
  return h("div", { class: "figures" }, list.filter(Boolean).map(([value, words]) => h("div", null, h("b", null, typeof value === "number" ? grouped(value) : value), h("span", null, words))));
}

/** Names and what they stand for. */
export function facts(list) {
  return h("dl", { class: "facts" }, list.filter((f) => f && f[1] !== undefined && f[1] !== null && f[1] !== "").map(([name, value]) => [h("dt", null, name), h("dd", null, value)]));
}

/** "and N more". */
export function more(n, href) {
  if (!n) return null;
  const words = `… ${grouped(n)} more`;
  return h("p", { class: "empty" }, href ? h("a", { href }, words) : words);
}

/** What a bitmap shows, as wide and high as `most` pixels; the canvas is filled when the answer comes. */
export function picture(context, id, most) {
  const canvas = h("canvas", { class: "picture", own: true, width: "1", height: "1" });
  context.ask("bitmap_picture", { id, most }).then((p) => {
    if (!p.format) {
      canvas.replaceWith(h("span", { class: "dim" }, "The pixels are in native memory, not in the dump."));
      return;
    }
    [canvas.width, canvas.height] = p.shown;
    canvas.title = `${p.size[0]} × ${p.size[1]}, ${p.format}`;
    const pixels = Uint8ClampedArray.from({ length: p.pixels.length / 2 }, (_, n) => parseInt(p.pixels.slice(2 * n, 2 * n + 2), 16));
    canvas.getContext("2d").putImageData(new ImageData(pixels, p.shown[0], p.shown[1]), 0, 0);
  }, () => canvas.remove());
  return canvas;
}
