// What could be saved, and how collections are filled.

import { h, to } from "./dom.js";
import { bytes, className, grouped, human, percent, plural } from "./format.js";
import { classLink, figures, more, onlyOf } from "./objects.js";
import { table } from "./table.js";

const TITLES = {
  holders: "Who holds the copies", strings: "Equal strings", arrays: "Equal arrays", objects: "Equal objects", boxed: "Boxed numbers", boxed_fields: "Fields that always hold a boxed number", zero_fields: "Fields always null or zero",
  collections: "Collections", contents: "Contents of primitive arrays", references: "References", weak_maps: "Weak maps that hold their keys", native: "Native memory",
};

// Where the evidence for a kind of waste is.
const PLACES = {
  duplicate_strings: "strings", duplicate_arrays: "arrays", equal_objects: "objects", duplicate_boxed_numbers: "boxed", boxed_fields: "boxed_fields", single_element_collections: "collections", zero_fields: "zero_fields", weak_maps_held_by_values: "weak_maps",
  empty_collections: "collections", unused_slots: "collections", zero_arrays: "contents", zero_tails: "contents", unused_high_bytes: "contents",
};

const num = (title, key, size) => ({ title, num: true, sort: (r) => r[key] || 0, cell: (r) => (size ? bytes(r[key]) : grouped(r[key])) });
const cls = (key = "class") => ({ title: "Class", sort: (r) => r[key], cell: (r) => classLink(r[key]) });
const example = { title: "One of them", cell: (r) => [h("a", { class: "id", href: to("object", { id: r.example }) }, r.example), r.value ? h("span", { class: "val" }, ` "${r.value}"`) : null] };

function section(id, count, ...content) {
  return count ? h("section", { id }, h("h2", null, TITLES[id]), content) : null;
}

export const waste = {
  name: "waste", title: "Waste", group: "Parts", keys: "w",
  source: (p) => ["waste", { set: p.set }],
  async show(context) {
    const w = await context.ask("waste", { set: context.params.set });
    const jump = (kind) => {
      const name = kind.replaceAll("_", " ");
      return PLACES[kind] ? h("button", { class: "link", onclick: () => document.getElementById(PLACES[kind])?.scrollIntoView() }, name) : name;
    };
    return [
      onlyOf(w.set),
      h("p", { class: "dim" }, "What the program could save, by kind; the kinds overlap."),
      table({
        rows: w.kinds.filter((k) => k.wasted > 0), empty: "Nothing to save was found.",
        columns: [num("Wasted", "wasted", true), { title: "Share", num: true, cell: (r) => percent(r.wasted / (w.shallow || 1)) }, num("Objects", "objects"), { title: "Kind", cell: (r) => jump(r.kind) }],
      }),
      section("holders", w.holders.length, table({ rows: w.holders, columns: [num("Wasted", "bytes", true), num("References", "count"), { title: "Field", cell: (r) => r.field }] })),
      section("strings", w.strings.rows.length, h("p", null, `${grouped(w.strings.strings)} strings, ${grouped(w.strings.distinct)} different, waste ${human(w.strings.wasted)}.`),
        table({ rows: w.strings.rows, columns: [num("Wasted", "wasted", true), num("Copies", "count"), { title: "Text", cell: (r) => h("a", { href: to("object", { id: r.example }) }, r.text || "(empty)") }] }), more(w.strings.omitted_rows, to("strings", { set: w.set }))),
      ["arrays", "objects"].map((kind) => section(kind, w[kind].rows.length, table({ rows: w[kind].rows, columns: [num("Wasted", "wasted", true), num("Copies", "count"), cls(), example] }), more(w[kind].omitted_rows))),
      section("boxed", w.boxed.length, table({ rows: w.boxed, columns: [num("Wasted", "wasted", true), num("Objects", "objects"), num("Different", "distinct"), cls()] })),
      section("boxed_fields", w.boxed_fields.length, table({ rows: w.boxed_fields, columns: [num("Wasted", "wasted", true), num("Boxes", "boxes"), num("Instances", "instances"), { title: "Could be", cell: (r) => r.primitive }, { title: "Field", cell: (r) => r.field }, cls()] })),
      section("zero_fields", w.zero_fields.length, table({ rows: w.zero_fields, columns: [num("At most", "wasted", true), num("Instances", "instances"), { title: "Field", cell: (r) => r.field }, cls()] }), more(w.omitted_fields)),
      section("collections", w.collections.rows.length, h("p", null, h("a", { href: to("collections", { set: w.set }) }, plural(w.collections.objects, "collection", "collections")), `, ${grouped(w.collections.empty)} empty; trimming frees ${human(w.collections.unused)}.`)),
      section("contents", w.contents.length, contents(w.contents)),
      section("references", w.references.rows.length, table({ rows: w.references.rows, columns: [num("References", "references"), num("Only these hold", "only"), num("They retain", "only_retained", true), { title: "Strength", cell: (r) => r.strength }, cls()] }), more(w.references.omitted_rows)),
      section("weak_maps", w.weak_maps.rows.length, table({ rows: w.weak_maps.rows, columns: [num("Retained", "retained", true), num("Entries", "entries"), { title: "Key", cell: (r) => classLink(r.key) }, { title: "Value", cell: (r) => classLink(r.value) }] }), more(w.weak_maps.omitted_rows)),
      section("native", w.native.buffers.length, table({ rows: w.native.buffers, columns: [num("Native bytes", "capacity", true), { title: "Buffer", cell: (r) => [h("a", { href: to("object", { id: r.object }) }, className(r.class)), " ", h("span", { class: "id" }, r.object)] }] }), more(w.native.omitted_buffers)),
    ];
  },
};

/** One row per type of array; whatever sums the answer has are columns. */
function contents(rows) {
  const keys = Object.keys(rows[0]).filter((k) => typeof rows[0][k] === "number");
  const words = Object.keys(rows[0]).filter((k) => typeof rows[0][k] === "string");
  const size = (k) => /bytes|wasted|unused|tail/.test(k);
  return table({ rows, columns: [...keys.map((k) => num(k.replaceAll("_", " "), k, size(k))), ...words.map((k) => ({ title: k.replaceAll("_", " "), cell: (r) => r[k] }))] });
}

const FILLS = ["≤20 %", "≤40 %", "≤60 %", "≤80 %", "≤100 %"];

export const collections = {
  name: "collections", title: "Collections", group: "Parts",
  source: (p) => ["collections", { set: p.set }],
  async show(context) {
    const c = await context.ask("collections", { set: context.params.set });
    return [onlyOf(c.set), figures([[c.objects, "collections"], [c.elements, "elements"], [c.empty, "empty"], [human(c.unused), "freed by trimming"]]), table({
      rows: c.rows, empty: "No collection of a known class.",
      columns: [num("Unused", "unused", true), num("Collections", "objects"), num("Bytes", "bytes", true), num("Elements", "elements"), num("Empty", "empty"), num("Single", "single"), num("Collided", "collided"),
        { title: "Array fill", cell: (r) => h("span", { class: "fill", title: r.fill.map((n, i) => `${FILLS[i]}: ${grouped(n)}`).join(", ") }, fills(r.fill)) },
        num("Largest", "largest_size"),
        { title: "Class", sort: (r) => r.class, cell: (r) => [classLink(r.class), " ", r.largest !== "0x0" ? h("a", { class: "id", href: to("object", { id: r.largest }) }, "largest") : null] }],
    }), more(c.omitted_rows)];
  },
};

/** Five bars, from hardly filled to full. */
function fills(list) {
  const most = Math.max(1, ...list);
  return list.map((n) => h("i", { vars: { "--f": `${Math.round((n / most) * 12)}px` } }));
}
