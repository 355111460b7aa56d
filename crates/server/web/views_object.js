// One object, a set of objects, paths.

import { h, setOfSet, to } from "./dom.js";
import { bytes, className, grouped, headingOf, object as objectLink, plural, titleOf } from "./format.js";
import { classLink, facts, figures, more, objectTable, picture, setTabs, steps } from "./objects.js";
import { notice } from "./shell.js";
import { choice, pager, search, table } from "./table.js";
import { histogramTable } from "./views_heap.js";

const LIMIT = 100;

function slots(list) {
  return table({
    rows: list,
    columns: [
      { title: "Retained", num: true, sort: (r) => r.object?.retained || 0, cell: (r) => (r.object ? bytes(r.object.retained) : "") },
      { title: "Field", sort: (r) => r.name, cell: (r) => h("span", { title: r.declared_in || null }, r.name) },
      { title: "Value", cell: (r) => (r.object ? objectLink(r.object) : h("span", { class: r.value === "null" ? "dim" : null }, r.value)) },
    ],
  });
}

function contentsTable(c) {
  if (!c.rows.length) return null;
  const cell = (o) => objectLink(o);
  const columns = c.form === "map"
    ? [{ title: "Key", cell: (r) => cell(r.key) }, { title: "Retained", num: true, sort: (r) => r.value?.retained || 0, cell: (r) => bytes(r.value?.retained) }, { title: "Value", cell: (r) => cell(r.value) }]
    : [{ title: "Retained", num: true, sort: (r) => r.value?.retained || 0, cell: (r) => bytes(r.value?.retained) }, { title: "Element", cell: (r) => cell(r.value) }];
  return [h("h2", null, { map: "Entries", set: "Elements", list: "Elements" }[c.form]), h("div", { class: c.form === "map" ? "pairs" : null }, table({ rows: c.rows, columns })), c.more ? h("p", { class: "empty" }, `The first ${c.rows.length}.`) : null];
}

// More would not fit into a line; the whole chain is a table of the page.
const CRUMBS = 6;

/** The objects that keep this one alive, the outermost first. */
function crumbs(dominators) {
  if (!dominators.length) return null;
  const link = (o) => {
    const title = titleOf(o);
    return [h("a", { href: to("object", { id: o.object }), title: `${title} ${o.object}` }, title.startsWith("class ") ? title : title.slice(title.lastIndexOf(".") + 1)),
      o.field ? ` ${o.field.startsWith("[") ? "" : "."}${o.field.replace(/^static /, "")}` : null];
  };
  const shown = dominators.length > CRUMBS ? [...dominators.slice(0, 2), null, ...dominators.slice(3 - CRUMBS)] : dominators;
  return h("p", { class: "crumbs", "aria-label": "Kept alive by" }, shown.map((o) => [o ? link(o) : "…", " › "]), "this");
}

export const object = {
  name: "object", title: "Object",
  heading: (p) => `Object ${p.id || ""}`,
  source: (p) => ["object", { id: p.id }],
  async show(context) {
    const id = context.params.id;
    const [o, contents] = await Promise.all([context.ask("object", { id }), context.ask("contents", { id, limit: LIMIT })]);
    context.heading = headingOf(o);
    const c = o.of_class;
    const set = `object:${o.object}`;
    const link = (text, view, params) => h("a", { href: to(view, params) }, text);
    const value = o.kind === "class" ? null : o.value;
    return [
      crumbs(o.dominators.slice(0, -1)),
      h("p", { class: "strong" }, className(titleOf(o)), value ? h("span", { class: "val" }, ` "${value}"`) : null),
      figures([[bytes(o.shallow), "shallow"], [bytes(o.retained), "retained"], [o.dominated_count, "dominated"], o.inbound_count === null ? null : [o.inbound_count, "referrers"]]),
      h("p", null, link("Paths from roots", "paths", { id: o.object }), " · ", link("Dominator tree below", "dominators", { id: o.object }), " · ",
        link("What it retains by class", "objects", { set: `retained:${set}`, show: "class" }), " · ", link("Others of its class", "objects", { set: `class:${c.class_id !== "0x0" ? c.class_id : c.name}` })),
      o.reachable ? null : notice("warn", "Unreachable", h("p", null, "No root leads to this object: it is garbage that had not been collected.")),
      facts([["State", o.roots.length ? `GC root (${o.roots.join(", ")})` : o.reachable ? "reachable" : "unreachable"], ["Heap", o.heap],
        ["Class", [classLink(c.name, c.class_id), c.superclasses.map((s) => [" < ", classLink(s)])]],
        ["Loader", c.loader_id === "0x0" ? c.loader : [h("a", { href: to("object", { id: c.loader_id }) }, c.loader)]],
        ["Instances", c.objects ? plural(c.objects, "object", "objects") : ""]]),
      c.name === "android.graphics.Bitmap" ? [h("h2", null, "Picture"), h("p", null, picture(context, id, 512))] : null,
      o.text !== undefined ? [h("h2", null, "Text"), h("pre", null, o.text), o.text_length ? h("p", { class: "dim" }, `… (${grouped(o.text_length)} characters)`) : null] : null,
      contentsTable(contents),
      o.slots.length ? [h("h2", null, o.slots[0].declared_in ? "Fields" : "Elements"), slots(o.slots), more(o.omitted_slots, o.kind === "object_array" ? to("objects", { set: `out:${set}` }) : null)] : null,
      o.statics?.length ? [h("h2", null, "Static fields"), slots(o.statics)] : null,
      o.dominators.length ? [h("h2", null, "Kept alive through"), steps(o.dominators),
        o.omitted_dominators ? h("p", { class: "dim" }, `${grouped(o.omitted_dominators)} steps in the middle are left out.`) : null] : null,
      h("h2", null, "Referred to by"),
      o.inbound_count === null ? notice("wait", "Referrers are still being collected", h("p", null, "They appear here by themselves."))
        : [objectTable(o.inbound, { field: true, empty: "Nothing refers to it by a field." }), more(o.inbound_count - o.inbound.length, to("objects", { set: `in:${set}` }))],
      o.dominated.length ? [h("h2", null, "Keeps alive"), objectTable(o.dominated), more(o.dominated_count - o.dominated.length, to("objects", { set: `dominated:${set}` }))] : null,
      o.allocated_at.length ? [h("h2", null, "Allocated at"), h("pre", null, o.allocated_at.join("\n"))] : null,
    ];
  },
};

function setSource(p) {
  const set = p.set;
  switch (p.show) {
    case "class": case "package": case "loader": case "superclass":
      return ["histogram", { set, by: p.show, filter: p.filter, sort: p.sort, all: p.all, limit: LIMIT, offset: p.offset }];
    case "dominators": return ["immediate_dominators", { set, skip: p.skip, all: p.all }];
    case "paths": return ["merged_paths", { set, exclude: p.exclude, all: p.all, top: 20 }];
    default: return ["objects", { set, sort: p.sort, all: p.all, limit: LIMIT, offset: p.offset }];
  }
}

async function setBody(context, p, set) {
  const answer = await context.ask(...setSource(p));
  switch (p.show) {
    case "class": case "package": case "loader": case "superclass": {
      const offset = answer.skipped_rows || 0;
      return [h("div", { class: "controls" }, search("filter", p.filter, "Filter by regular expression")),
        histogramTable(answer, p), pager(offset, answer.rows.length, offset + answer.rows.length + answer.omitted_rows, LIMIT)];
    }
    case "dominators":
      return [h("div", { class: "controls" }, search("skip", p.skip, "Look through classes matching", "A dominator whose class matches gives way to its own dominator")),
        table({
          rows: answer.rows, empty: "Nothing keeps these alive.",
          columns: [
            { title: "Dominators", num: true, sort: (r) => r.dominators, cell: (r) => grouped(r.dominators) },
            { title: "Objects", num: true, sort: (r) => r.dominated, cell: (r) => grouped(r.dominated) },
            { title: "Their size", num: true, sort: (r) => r.dominated_shallow, cell: (r) => bytes(r.dominated_shallow) },
            { title: "Kept alive by objects of", cell: (r) => (r.class === "<roots>" ? "roots, by several ways" : h("a", { href: to("objects", { set: `${setOfSet("dominators", set)} and class:${r.class_id}` }) }, className(r.class))) },
          ],
        })];
    case "paths":
      return [h("div", { class: "controls" }, choice("exclude", EXCLUSIONS, p.exclude || "", (exclude) => to("objects", { ...p, exclude }))),
        h("p", { class: "dim" }, answer.followed < answer.objects ? `An even sample of ${grouped(answer.followed)} of ${grouped(answer.objects)} was followed.` : plural(answer.objects, "object", "objects"),
          answer.by_excluded ? ` ${grouped(answer.by_excluded)} only through references that are left out.` : "",
          answer.without_path > (answer.by_excluded ?? 0) ? ` To ${grouped(answer.without_path - (answer.by_excluded ?? 0))} no path was found.` : ""),
        merged(answer), more(answer.omitted)];
    default:
      return [objectTable(answer.rows, { server: true, sort: p.sort || "retained" }), pager(answer.offset, answer.rows.length, answer.total.objects, LIMIT),
        h("p", { class: "dim" }, `${plural(answer.total.objects, "object", "objects")}, `, bytes(answer.total.shallow), " shallow.")];
  }
}

function merged(answer) {
  if (!answer.nodes.length) return h("p", { class: "empty" }, "No path from a root with these exclusions.");
  return h("div", { class: "scroll tree" }, h("table", null, h("thead", null, h("tr", null, h("th", { class: "n" }, "Objects"), h("th", { class: "n" }, "They retain"), h("th", null, "From the roots"))),
    h("tbody", null, answer.nodes.map((n) => h("tr", { tabindex: "-1" }, h("td", { class: "n" }, grouped(n.targets)), h("td", { class: "n" }, bytes(n.targets_retained)),
      h("td", { vars: { "--d": String(n.depth) } }, n.field ? [h("b", null, n.field), " → "] : null, n.objects > 1 ? `${grouped(n.objects)} of ${n.class}` : objectLink(n), n.roots?.length ? h("span", { class: "dim" }, ` (${n.roots.join(", ")})`) : null,
        n.omitted ? h("span", { class: "dim" }, ` … ${grouped(n.omitted)} more below`) : null))))));
}

const EXCLUSIONS = [["", "Strong, if there are any"], ["none", "Any reference"], ["weak,final,phantom", "Strong and soft"], ["all", "Strong only"]];

export const objects = {
  name: "objects", title: "Objects",
  heading: (p) => (p.set ? `Objects: ${p.set}` : "Objects"),
  source: setSource,
  async show(context) {
    const p = context.params;
    if (!p.set) return notice("bad", "No objects are named", h("p", null, "The address of this view needs a set, such as set=class:java.lang.String."));
    return [setTabs(p.set, p.show || "list"), await setBody(context, p, p.set)];
  },
};

export const paths = {
  name: "paths", title: "Paths",
  heading: (p) => `Paths from roots to ${p.id || ""}`,
  source: (p) => ["paths", { id: p.id, exclude: p.exclude, count: p.count }],
  async show(context) {
    const p = context.params;
    const answer = await context.ask("paths", { id: p.id, exclude: p.exclude, count: p.count || 3 });
    context.heading = `Paths from roots to ${headingOf(answer.target)}`;
    const head = [h("p", null, objectLink(answer.target)), h("div", { class: "controls" }, choice("exclude", EXCLUSIONS, p.exclude || "", (exclude) => to("paths", { ...p, exclude })))];
    if (!answer.reachable) return [head, notice("warn", "Unreachable", h("p", null, "No root leads to this object."))];
    if (!answer.paths.length) return [head, h("p", { class: "empty" }, "No path with these exclusions.")];
    return [head, answer.paths.map((path, n) => [h("h2", null, `Path ${n + 1}: ${path.roots.join(", ")}`), steps(path.steps)]),
      answer.more ? h("p", null, h("a", { href: to("paths", { ...p, count: Number(p.count || 3) * 3 }) }, "More paths")) : null];
  },
};
