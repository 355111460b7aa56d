// What only dumps of Android have: heaps, destroyed screens and services that are still held, native memory, bitmaps.

import { h, to } from "./dom.js";
import { bytes, grouped, human, object, percent } from "./format.js";
import { classLink, figures, more, picture, steps } from "./objects.js";
import { table } from "./table.js";

// Pictures cost a question each: the largest have them in the table, all have them on their own page.
const PICTURES = 50;

function bitmapTable(context, rows) {
  const shown = new Set(rows.filter((r) => r.in_heap).slice(0, PICTURES));
  return table({
    rows, empty: "There are no bitmaps.",
    columns: [
      { title: "Bytes", num: true, sort: (r) => r.bytes, cell: (r) => bytes(r.bytes) },
      { title: "Retained", num: true, sort: (r) => r.retained, cell: (r) => bytes(r.retained) },
      { title: "Size", num: true, sort: (r) => r.width * r.height, cell: (r) => `${r.width} × ${r.height}` },
      { title: "Copies", num: true, sort: (r) => r.copies, cell: (r) => grouped(r.copies) },
      { title: "Picture", cell: (r) => (shown.has(r) ? picture(context, r.object, 48) : r.in_heap ? "" : h("span", { class: "dim" }, "native")) },
      { title: "Bitmap", cell: (r) => object(r) },
    ],
  });
}

/** One that should be gone: what it is, how that is known, what holds it. */
function destroyed(d) {
  return h("section", null,
    h("div", { class: "suspect" }, h("p", null, d.kind === "watched" ? "A watched object, " : `A destroyed ${d.kind}, `, object(d), ", is still held and retains ", h("b", null, bytes(d.retained)), `. ${d.reason[0].toUpperCase()}${d.reason.slice(1)}.`,
      d.key ? h("span", { class: "dim" }, ` Key ${d.key}.`) : null),
    h("p", null, h("a", { href: to("paths", { id: d.object }) }, "All paths from roots"), " · ", h("a", { href: to("objects", { set: `retained:object:${d.object}`, show: "class" }) }, "What it retains"))),
    d.path.steps.length ? [steps(d.path.steps), h("p", { class: "dim" }, `Root: ${d.path.roots.join(", ")}`)] : null);
}

export const android = {
  name: "android", title: "Android", group: "", keys: "a",
  source: () => ["android"],
  async show(context) {
    const answer = await context.ask("android");
    const whole = answer.heaps.reduce((sum, one) => sum + one.shallow, 0) || 1;
    return [
      figures([answer.sdk ? [String(answer.sdk), "API level"] : null, answer.device ? [answer.device, "device"] : null, [answer.destroyed.length, "destroyed, still held"],
        [human(answer.native_bytes), "native memory"], [human(answer.bitmap_bytes), "pixels of bitmaps"]]),
      h("h2", null, "Destroyed, but still held"),
      answer.destroyed.length ? answer.destroyed.map(destroyed) : h("p", { class: "empty" }, "No destroyed activity, fragment, view or service is held, as far as the dump shows."),
      h("h2", null, "Heaps"),
      table({
        rows: answer.heaps,
        columns: [
          { title: "Objects", num: true, sort: (r) => r.objects, cell: (r) => grouped(r.objects) },
          { title: "Shallow", num: true, sort: (r) => r.shallow, cell: (r) => bytes(r.shallow), bar: (r) => r.shallow / whole },
          { title: "Share", num: true, cell: (r) => percent(r.shallow / whole) },
          { title: "Heap", cell: (r) => h("a", { href: to("objects", { set: `heap:${r.name}`, show: "class" }) }, r.name) },
        ],
      }),
      answer.native.length ? [h("h2", null, "Native memory by class"), table({
        rows: answer.native,
        columns: [
          { title: "Objects", num: true, sort: (r) => r.objects, cell: (r) => grouped(r.objects) },
          { title: "Native bytes", num: true, sort: (r) => r.bytes, cell: (r) => bytes(r.bytes), bar: (r) => r.bytes / (answer.native_bytes || 1) },
          { title: "Class", cell: (r) => classLink(r.class) },
        ],
      })] : null,
      h("h2", null, "Largest bitmaps"), bitmapTable(context, answer.bitmaps), more(answer.omitted_bitmaps, to("bitmaps")),
    ];
  },
};

export const bitmaps = {
  name: "bitmaps", title: "Bitmaps", group: "Parts",
  source: () => ["bitmaps"],
  async show(context) {
    const answer = await context.ask("bitmaps");
    const native = answer.rows.filter((r) => !r.in_heap).length;
    return [figures([[answer.rows.length, "bitmaps"], [human(answer.bytes), "pixels"], [human(answer.wasted), "wasted by equal ones"]]),
      native ? h("p", { class: "dim" }, `${native === answer.rows.length ? "All" : grouped(native)} of them keep their pixels in native memory (Android 8 and later): the dump does not have them, so there is no picture, and bytes are four per pixel.`) : null,
      bitmapTable(context, answer.rows)];
  },
};
