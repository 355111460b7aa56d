// Threads, roots, loaders, strings, garbage, properties, the file, notes.

import { address } from "./api.js";
import { h, setOfQuery, to } from "./dom.js";
import { bytes, className, grouped, human, object, percent, plural } from "./format.js";
import { classLink, facts, figures, more, objectTable, onlyOf } from "./objects.js";
import { notice } from "./shell.js";
import { search, table } from "./table.js";

function stack(thread) {
  if (!thread.stack.length && !thread.other_locals?.length) return h("p", { class: "empty" }, "The dump has no stack of it.");
  const locals = (list, omitted) => (list?.length ? h("div", { class: "locals" }, list.map((o) => h("p", null, bytes(o.retained), " ", object(o))), omitted ? h("p", null, `… ${grouped(omitted)} more`) : null) : null);
  return h("div", { class: "stack" }, thread.stack.map((f) => [h("p", null, f.frame), locals(f.locals, f.omitted)]),
    thread.other_locals?.length ? [h("p", { class: "dim" }, "in no known frame"), locals(thread.other_locals, thread.other_locals_omitted)] : null);
}

/** A row of a thread; its stack, with the objects of its frames, opens below. */
const threadColumns = [
  { title: "Retained", num: true, sort: (t) => t.retained, cell: (t) => bytes(t.retained) },
  { title: "By its locals", num: true, sort: (t) => t.locals_retained || 0, cell: (t) => (t.locals_retained ? bytes(t.locals_retained) : "") },
  { title: "Shared", num: true, sort: (t) => t.shared_retained || 0, cell: (t) => (t.shared_retained ? bytes(t.shared_retained) : "") },
  { title: "Kind", sort: (t) => kindOf(t), cell: (t) => h("span", { class: "dim" }, kindOf(t)) },
  { title: "Thread, and where it stands", sort: (t) => t.name, cell: (t) => h("details", null,
    h("summary", null, h("b", null, t.name || "(no name)"), t.stack.length ? h("span", { class: "dim" }, ` ${t.stack[0].frame}`) : null),
    t.object !== "0x0" ? h("p", { class: "stack" }, object({ ...t, kind: "instance", value: t.name })) : null, stack(t)) },
];

const kindOf = (t) => [t.daemon ? "daemon" : "", t.is_virtual ? "virtual" : ""].filter(Boolean).join(", ");

export const threads = {
  name: "threads", title: "Threads", group: "Parts", keys: "t",
  source: () => ["threads"],
  async show(context) {
    const answer = await context.ask("threads");
    const find = (context.params.find || "").toLowerCase();
    const list = answer.threads.filter((t) => !find || t.name.toLowerCase().includes(find) || t.stack.some((f) => f.frame.toLowerCase().includes(find)));
    return [
      h("div", { class: "controls" }, search("find", context.params.find, "Name or frame")),
      table({ rows: list, label: "Threads", key: (t) => t.object, empty: answer.threads.length ? "No thread matches." : "The dump names no threads.", columns: threadColumns }), more(answer.omitted),
      answer.thread_locals.length ? [h("h2", null, "Thread-local variables"), table({
        rows: answer.thread_locals,
        columns: [
          { title: "Retained", num: true, sort: (v) => v.retained, cell: (v) => bytes(v.retained) },
          { title: "Threads", num: true, sort: (v) => v.threads, cell: (v) => grouped(v.threads) },
          { title: "Variable", sort: (v) => v.variable || v.class, cell: (v) => (v.class ? object({ ...v, kind: "instance", value: v.variable }) : h("span", { class: "dim" }, "variables that no longer exist")) },
          { title: "Of this name", num: true, sort: (v) => v.variables, cell: (v) => (v.variables > 1 ? grouped(v.variables) : "") },
          { title: "Largest value", cell: (v) => object(v.largest) },
        ],
      }), more(answer.thread_locals_omitted)] : null,
      answer.virtual_groups.length ? [h("h2", null, `Virtual threads by stack (${grouped(answer.virtual_threads)})`), table({
        rows: answer.virtual_groups,
        columns: [
          { title: "Threads", num: true, sort: (g) => g.threads, cell: (g) => (g.largest.length ? h("a", { href: to("objects", { set: `stack:${g.largest[0].object}` }), title: "These threads as a set" }, grouped(g.threads)) : grouped(g.threads)) },
          { title: "Retained", num: true, sort: (g) => g.retained, cell: (g) => bytes(g.retained) },
          { title: "Where they stand", cell: (g) => h("details", null, h("summary", null, g.stack[0] || "no stack"), h("pre", null, g.stack.join("\n")), objectTable(g.largest)) },
        ],
      }), more(answer.virtual_groups_omitted)] : null,
      answer.virtual_without_stack ? h("p", { class: "dim" }, `${plural(answer.virtual_without_stack, "virtual thread has", "virtual threads have")} no stack in the dump.`) : null,
    ];
  },
};

export const roots = {
  name: "roots", title: "GC roots", group: "Parts", keys: "r",
  source: () => ["roots"],
  async show(context) {
    const answer = await context.ask("roots");
    return [table({
      rows: answer.kinds,
      columns: [
        { title: "Records", num: true, sort: (r) => r.records, cell: (r) => grouped(r.records) },
        { title: "Objects", num: true, sort: (r) => r.objects, cell: (r) => grouped(r.objects) },
        { title: "Shallow", num: true, sort: (r) => r.shallow, cell: (r) => bytes(r.shallow) },
        { title: "Retained", num: true, sort: (r) => r.retained, cell: (r) => bytes(r.retained) },
        { title: "Kind", cell: (r) => h("a", { href: to("objects", { set: `roots:${r.kind}`, show: "class" }) }, r.kind) },
      ],
    }), answer.dangling ? h("p", { class: "dim" }, `${plural(answer.dangling, "record names an object", "records name objects")} that the dump does not have.`) : null,
    answer.kinds.map((k) => h("details", null, h("summary", null, `Largest of ${k.kind}`), objectTable(k.largest)))];
  },
};

export const loaders = {
  name: "loaders", title: "Loaders", group: "Parts",
  source: () => ["loaders"],
  async show(context) {
    const answer = await context.ask("loaders");
    return [table({
      rows: answer.loaders,
      columns: [
        { title: "Classes", num: true, sort: (r) => r.classes, cell: (r) => grouped(r.classes) },
        { title: "Objects", num: true, sort: (r) => r.objects, cell: (r) => grouped(r.objects) },
        { title: "Shallow", num: true, sort: (r) => r.shallow, cell: (r) => bytes(r.shallow) },
        { title: "Retained", num: true, sort: (r) => r.retained || 0, cell: (r) => bytes(r.retained) },
        { title: "Loader retains", num: true, sort: (r) => r.loader_retained || 0, cell: (r) => bytes(r.loader_retained) },
        { title: "Loader", cell: (r) => [h("a", { href: to("objects", { set: `loader:${r.object}`, show: "class" }) }, r.loader), " ",
          r.object !== "0x0" ? h("a", { class: "id", href: to("object", { id: r.object }) }, r.object) : null, r.unreachable ? h("span", { class: "bad" }, " unreachable") : null] },
      ],
    }), more(answer.omitted_loaders),
    h("h2", null, "Classes of the same name"),
    table({
      rows: answer.duplicates, empty: "No class is there twice.",
      columns: [
        { title: "Times", num: true, sort: (r) => r.count, cell: (r) => grouped(r.count) },
        { title: "Objects", num: true, sort: (r) => r.objects, cell: (r) => grouped(r.objects) },
        { title: "Class", cell: (r) => [classLink(r.class), " ", r.loaders.map((l) => [h("a", { class: "id", href: to("objects", { set: `loader:${l}` }) }, l), " "])] },
      ],
    })];
  },
};

export const duplicateStrings = {
  name: "strings", title: "Strings", group: "Parts", keys: "s",
  heading: (p) => (p.find ? "Strings found" : "Duplicate strings"),
  source: (p) => (p.find ? ["strings", { find: p.find, limit: 200, set: p.set }] : ["duplicate_strings", { limit: 100, set: p.set }]),
  async show(context) {
    const { find, set } = context.params;
    const field = [onlyOf(set), h("div", { class: "controls" }, search("find", find, "Find strings by regular expression"))];
    if (find) {
      const answer = await context.ask("strings", { find, limit: 200, set });
      return [field, h("p", null, `${grouped(answer.matches)} of ${grouped(answer.strings)} strings match. `, answer.matches && !set ? h("a", { href: stringSet(`value regexp ${sql(find)}`) }, "All of them as a set") : null), table({
        rows: answer.rows, empty: "No string matches.",
        columns: [
          { title: "Retained", num: true, sort: (r) => r.retained, cell: (r) => bytes(r.retained) },
          { title: "Text", cell: (r) => [h("a", { href: to("object", { id: r.object }) }, h("span", { class: "id" }, r.object)), " ", r.text, r.text_length ? ` … (${grouped(r.text_length)} characters)` : null] },
        ],
      }), more(answer.matches - answer.rows.length)];
    }
    const answer = await context.ask("duplicate_strings", { limit: 100, set });
    return [field, figures([[answer.strings, "strings"], [answer.distinct, "different"], [human(answer.bytes), "in all"], [human(answer.wasted), "wasted by copies"]]), table({
      rows: answer.rows, empty: "No two strings are equal.",
      columns: [
        { title: "Wasted", num: true, sort: (r) => r.wasted, cell: (r) => bytes(r.wasted), bar: (r) => r.wasted / (answer.wasted || 1) },
        { title: "Copies", num: true, sort: (r) => r.count, cell: (r) => (set || r.text.endsWith("…") ? grouped(r.count) : h("a", { href: stringSet(`value = ${sql(r.text)}`), title: "These strings as a set" }, grouped(r.count))) },
        { title: "Length", num: true, sort: (r) => r.length, cell: (r) => grouped(r.length) },
        { title: "Text", cell: (r) => h("a", { href: to("strings", { find: exact(r.text), set }) }, r.text || "(empty)") },
      ],
    }), more(answer.omitted_rows)];
  },
};

/** A text in SQL. */
function sql(text) {
  return `'${text.replaceAll("'", "''")}'`;
}

/** The page of the strings for which a condition holds. */
function stringSet(condition) {
  return to("objects", { set: setOfQuery(`select id from strings where reachable and ${condition}`, "sql") });
}

/** A regular expression for exactly this text; of one that was cut, for its beginning. */
function exact(text) {
  const cut = text.endsWith("…");
  const words = (cut ? text.slice(0, -1) : text).replace(/[.*+?^${}()|[\]\\&~#-]/g, "\\$&");
  return `^${words}${cut ? "" : "$"}`;
}

export const unreachable = {
  name: "unreachable", title: "Unreachable", group: "Parts", keys: "u",
  source: () => ["unreachable"],
  async show(context) {
    const answer = await context.ask("unreachable");
    return [figures([[human(answer.total.shallow), `garbage, ${percent(answer.share)} of all`], [answer.total.objects, "objects"]]), table({
      rows: answer.rows, empty: "Everything in the dump is reachable.",
      columns: [
        { title: "Objects", num: true, sort: (r) => r.objects, cell: (r) => grouped(r.objects) },
        { title: "Shallow", num: true, sort: (r) => r.shallow, cell: (r) => bytes(r.shallow), bar: (r) => r.shallow / (answer.total.shallow || 1) },
        { title: "Class", cell: (r) => h("a", { href: to("objects", { set: `unreachable and class:${r.class_id !== "0x0" ? r.class_id : r.class}`, all: "1" }) }, className(r.class)) },
      ],
    }), more(answer.omitted_rows)];
  },
};

function pairs(list, find) {
  const rows = list.filter((p) => !find || `${p.name} ${p.value}`.toLowerCase().includes(find));
  return table({ rows, empty: "None.", columns: [{ title: "Name", sort: (r) => r.name, cell: (r) => r.name }, { title: "Value", cell: (r) => r.value }] });
}

export const properties = {
  name: "properties", title: "Properties", group: "File",
  source: () => ["properties"],
  async show(context) {
    const answer = await context.ask("properties");
    const find = (context.params.find || "").toLowerCase();
    return [h("div", { class: "controls" }, search("find", context.params.find, "Name or value")), h("h2", null, "System properties"), pairs(answer.properties, find), h("h2", null, "Environment"), pairs(answer.environment, find)];
  },
};

/** Sub-records that are no roots; roots are listed by their kind. */
const SUB_RECORDS = { "0x20": "CLASS_DUMP", "0x21": "INSTANCE_DUMP", "0x22": "OBJECT_ARRAY_DUMP", "0x23": "PRIMITIVE_ARRAY_DUMP", "0xc3": "PRIMITIVE_ARRAY_NODATA", "0xfe": "HEAP_DUMP_INFO" };

export const file = {
  name: "file", title: "The file", group: "File",
  source: () => ["validate"],
  async show(context) {
    const [summary, verdict] = await Promise.all([context.ask("summary"), context.ask("validate")]);
    const named = (map) => Object.fromEntries(Object.entries(map).filter(([tag]) => SUB_RECORDS[tag]).map(([tag, n]) => [SUB_RECORDS[tag], n]));
    const counts = (map) => Object.entries(map).map(([name, n]) => h("p", null, `${name} ${grouped(n)}`));
    return [
      verdict.whole ? notice("", "The file is whole") : notice("bad", "The file is damaged", h("p", null, `${grouped(verdict.skipped_bytes)} bytes could not be read; results cover the rest.`)),
      table({ rows: verdict.checks, columns: [{ title: "Count", num: true, cell: (r) => grouped(r.count) }, { title: "", cell: (r) => (r.ok ? "ok" : h("span", { class: "bad" }, "no")) }, { title: "Check", cell: (r) => r.what }] }),
      verdict.dangling_references ? h("p", { class: "dim" }, `${plural(verdict.dangling_references, "reference leads", "references lead")} to objects that are not in the dump. A JVM with class data sharing writes some hundred of them, from arrays of archived objects.`) : null,
      verdict.findings.length ? [h("h2", null, "Findings"), table({
        rows: verdict.findings,
        columns: [{ title: "Offset", num: true, cell: (r) => grouped(r.offset) }, { title: "Record", cell: (r) => r.record }, { title: "Finding", cell: (r) => r.message }],
      }), more(verdict.omitted_findings)] : null,
      h("h2", null, "Contents"),
      facts([["Format", summary.format], ["Id size", summary.id_size], ["Bytes", grouped(summary.bytes)], ["Snapshot", `${summary.snapshot} of ${summary.snapshots}`], ["Objects", grouped(summary.objects.total)],
        ["Records", counts(summary.records)], ["Heap records", counts(named(summary.sub_records))], ["Roots", counts(summary.gc_roots)]]),
    ];
  },
};

export const notes = {
  name: "notes", title: "Notes", group: "File", keys: "n",
  async show(context) {
    const answer = await context.ask("notes");
    if (!answer.notes.length) return h("p", { class: "empty" }, "No notes yet. Every view has \"Note\" above it; notes are kept in a file beside the dump.");
    const download = (form) => h("a", { href: address("notes", {}, form), download: `notes.${form || "json"}` }, form ? "CSV" : "JSON");
    return [h("p", null, "Download: ", download(), " ", download("csv")), table({
      rows: answer.notes,
      columns: [{ title: "View", cell: (r) => h("a", { href: r.view.startsWith("#/") ? r.view : "#/" }, r.title || r.view) }, { title: "Note", cell: (r) => r.text || h("span", { class: "dim" }, "bookmark") }],
    })];
  },
};
