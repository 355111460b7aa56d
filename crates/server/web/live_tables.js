// Tables about a recording: allocations, stacks, classes, instances, what to fix.

import { described, details, signed, signedBytes, sortedHere } from "./columns.js";
import { h, query, renew, to } from "./dom.js";
import { bytes, className, clock, grouped, plural } from "./format.js";
import { change, notice } from "./shell.js";
import { choice, pager, search, table } from "./table.js";
import { ranged } from "./live_timeline.js";

const LIMIT = 100;
const count = (n) => (n === null || n === undefined ? "" : grouped(n));
let sources = false;

/** Whether frames lead to their source. */
export function withSources(known) {
  sources = known;
}

/** Frames of the JDK are in no source root. */
const sourced = (text) => (sources && /\([^()]+:\d+\)$/.test(text) && !/^(.*\/)?(java|javax|jdk|sun|com\.sun)\./.test(text) ? h("a", { href: to("source", { frame: text }) }, text) : text);
const frame = (text) => h("div", null, sourced(text));
/** The first frames of a stack, and the others behind a click. Where few fit, they begin with the caller of the constructors. */
export function frames(stack, most = 6) {
  const caller = most < 6 ? stack.findIndex((text) => !text.includes(".<init>(")) : 0;
  const from = Math.max(0, Math.min(caller, stack.length - most));
  const shown = stack.slice(from, from + most);
  const rest = stack.length - shown.length;
  return h("div", { class: "frames" }, shown.map(frame),
    rest > 0 ? h("details", null, h("summary", null, plural(rest, "more frame", "more frames")), (from ? stack : stack.slice(most)).map(frame)) : null);
}

/** Whether an empty field waits for a regular expression. */
let asRegex = false;

/** A field to filter by: a text, or a regular expression. */
export function filters(params, what = "class or frame") {
  const regex = params.regex ? true : params.filter ? false : asRegex;
  const field = search(regex ? "regex" : "filter", regex ? params.regex : params.filter, regex ? `${what} matches` : `${what} contains`,
    "/ goes here; a text in any case, or a regular expression");
  const box = h("input", { type: "checkbox", checked: regex, onchange: ({ target }) => {
    asRegex = target.checked;
    const text = target.closest(".controls").querySelector("input[type=search]").value;
    change({ filter: asRegex ? "" : text, regex: asRegex ? text : "", offset: "" }, true);
  } });
  return h("div", { class: "controls" }, field, h("label", null, box, " regular expression"));
}

export function downloads(view, asked) {
  const link = (text, form) => h("a", { href: `api/v1/${view}${query({ ...asked, form, limit: 1000000, offset: "" })}`, download: `${view}.${form}` }, text);
  return h("p", { class: "dim" }, "Save all rows as ", link("a page that sorts offline", "html"), ", ", link("CSV", "csv"), ", ", link("JSON", "json"), ".");
}

const JAVA = { view: "allocations", sort: "allocated_bytes", by: [["class", "Class"], ["package", "Package"], ["module", "Module"], ["loader", "Loader"], ["method", "Method"], ["context", "Thread"], ["site", "Class and stack"]] };
const NATIVE = { view: "native", heap: "native", sort: "live_bytes", by: [["class", "Library"], ["method", "Function"], ["site", "Library and stack"]] };

/** What was allocated in the range. */
export const allocations = (context) => allocated(JAVA, context);

/** What native code allocated in the range, and has not freed. */
export async function native(context) {
  const shown = await allocated(NATIVE, context);
  const asked = { ...ranged(context.params), filter: context.params.filter, regex: context.params.regex, heap: "native" };
  const form = (name, title, metric) => h("a", { href: `api/v1/profile${query({ ...asked, form: name, metric })}`, target: "_blank" }, title);
  return [shown, h("p", { class: "dim" }, form("flamegraph", "Flame graph"), " · ", form("pprof", "pprof"), " · ", form("collapsed", "collapsed stacks", "native_inuse_space"),
    " · Blocks of malloc and its family by the library that requested them. What is sampled stands for all.")];
}

/** Why a table is empty. */
function nothing(params, heap) {
  if (params.filter || params.regex) return "Nothing matches in this range.";
  return heap ? "No block was recorded in this range. A recording counts them when it is started with native memory." : "Nothing was allocated in this range.";
}

async function allocated(kind, { params, ask }) {
  const by = params.by || "class";
  const sort = params.sort || kind.sort;
  const asked = { ...ranged(params), heap: kind.heap, by, sort, up: params.up, filter: params.filter, regex: params.regex, offset: params.offset, limit: LIMIT };
  const answer = await ask("allocations", asked);
  const name = (r) => [kind.heap ? h("span", { class: "cls" }, r.name) : className(r.name), details(answer, r), r.stack.length ? frames(r.stack) : null];
  const columns = described(answer, name, { allocated_bytes: (r) => r.allocated_bytes / Math.max(1, answer.total.allocated_bytes) });
  const total = columns.map((c, n) => (n ? c.cell(answer.total) : "All"));
  return [
    choice("by", kind.by, by, (word) => to(kind.view, { ...params, by: word, offset: "" })),
    filters(params),
    table({ columns, rows: answer.rows, sort, turned: params.up || "", total, label: "Allocations", empty: nothing(params, kind.heap) }),
    pager(answer.offset, answer.rows.length, answer.count, LIMIT), downloads("allocations", asked),
  ];
}

/** Frames of the tree of stacks that were opened or closed. */
const opened = new Map();

/** The stacks as a tree from the outermost frame. */
export async function stacks({ params, ask }) {
  const heap = params.heap === "native" ? "native" : "";
  const asked = { ...ranged(params), heap, filter: params.filter, regex: params.regex };
  const answer = await ask("stacks", asked);
  const children = new Map();
  for (const node of answer.nodes) children.set(node.parent, [...(children.get(node.parent) || []), node]);
  for (const list of children.values()) list.sort((a, b) => b.allocated_bytes - a.allocated_bytes);
  const all = Math.max(1, answer.total.allocated_bytes);
  const roots = children.get(null) || [];
  // A frame and, where it is open, what it calls. `above` is the way to it.
  const lines = (node, depth, above) => {
    const key = `${above}\n${node.class ? "class " : ""}${node.name}`;
    const below = children.get(node.id) || [];
    // The way down is open as long as there is only one.
    const open = below.length > 0 && (opened.get(key) ?? (below.length === 1 || (depth === 0 && roots.length === 1)));
    const twist = below.length ? h("button", { class: "twist", "aria-expanded": String(open), "aria-label": "Callees", onclick: ({ target }) => {
      opened.set(key, !open);
      renew(target.closest("tbody"), shown());
    } }, open ? "▾" : "▸") : h("span", { class: "twist" });
    const row = h("tr", { tabindex: "-1", "data-key": key },
      h("td", { class: "n bar", vars: { "--b": `${((node.allocated_bytes / all) * 100).toFixed(1)}%` } }, bytes(node.allocated_bytes)),
      h("td", { class: "n" }, count(node.allocations)), h("td", { class: "n" }, signed(node.remaining)), h("td", { class: "n" }, signedBytes(node.remaining_bytes)),
      h("td", { vars: { "--d": String(depth) } }, twist, node.class ? h("b", null, heap ? node.name : className(node.name)) : sourced(node.name)));
    return [row, open ? below.map((child) => lines(child, depth + 1, key)) : null];
  };
  const shown = () => roots.map((node) => lines(node, 0, ""));
  const form = (name, title, metric) => h("a", { href: `api/v1/profile${query({ ...asked, form: name, metric })}`, target: "_blank" }, title);
  return [
    choice("heap", [["", "Java objects"], ["native", "Native memory"]], heap, (word) => to("stacks", { ...params, heap: word })),
    filters(params),
    h("p", { class: "dim" }, form("flamegraph", "Flame graph"), " · ", form("pprof", "pprof"), " · ", form("speedscope", "speedscope"), " · ",
      form("collapsed", "collapsed stacks", heap ? "native_inuse_space" : "alloc_space"), heap ? null : [" · ", form("jfr", "JFR")]),
    roots.length ? h("div", { class: "scroll" }, h("table", { class: "tree", "aria-label": "Stacks" }, h("thead", null, h("tr", null,
      ["Allocated", "Allocations", "Remaining", "Remaining bytes"].map((t) => h("th", { class: "n" }, t)), h("th", null, "Frame"))), h("tbody", null, shown())))
      : notice("", nothing(params, heap)),
  ];
}

/** Global references of native code. */
export async function references({ params, ask }) {
  const sort = params.sort || "remaining";
  const asked = { ...ranged(params), sort, up: params.up, filter: params.filter, regex: params.regex, offset: params.offset, limit: LIMIT };
  const answer = await ask("references", asked);
  const columns = described(answer, (r) => [className(r.name), r.stack.length ? frames(r.stack) : h("div", { class: "dim" }, "no Java code")]);
  return [
    filters(params),
    h("p", { class: "dim" }, params.from ? "References that native code has made or deleted in the range; what remains is that of its end. " : "References that native code has made since the recording began. ",
      answer.source === "recording" ? "Take a heap dump to see what they retain." : "Objects and retained bytes are from the last heap dump."),
    table({ columns, rows: answer.rows, sort, turned: params.up || "", label: "JNI references",
      empty: params.from || params.filter || params.regex ? "No reference in this range matches." : "Native code has made no global reference." }),
    pager(answer.offset, answer.rows.length, answer.count, LIMIT), downloads("references", asked),
  ];
}

/** Where and when the sizes and capacities of a table were read. */
function sizesFrom(sizes) {
  if (!sizes) return "No sizes and capacities have been read yet. ";
  const time = clock(sizes.time_ms);
  if (sizes.source === "dump") return `Sizes and capacities are from heap dump ${sizes.dump}, ${time}. `;
  const part = sizes.read < sizes.objects ? ` from a random sample of ${count(sizes.read)} of ${count(sizes.objects)} objects` : "";
  const only = sizes.by_class ? "There are so many stacks and threads that they are known by class alone, not by thread. " : "";
  const left = sizes.left_out ? `${count(sizes.left_out)} objects that were counted as another class's are not among them. ` : "";
  return `Sizes and capacities were read in the program at ${time}${part}. ${only}${left}`;
}

/** The instances of every class. */
export async function classes({ params, ask }) {
  const sort = params.sort || "live_bytes";
  const asked = { ...ranged(params), source: params.source, loaders: params.loaders, contexts: params.contexts, sort, up: params.up, filter: params.filter, regex: params.regex, offset: params.offset, limit: LIMIT };
  // A page that comes at once: sizes that are still being read are there the next time.
  const answer = await ask("classes", { ...asked, brief: 1 });
  const name = (r) => [h("a", { href: to("instances", { class: r.class, ...ranged(params), at: params.at }) }, className(r.class)), details(answer, r)];
  const columns = described(answer, name);
  const apart = (name, title) => h("a", { href: to("classes", { ...params, [name]: params[name] ? "" : "1", offset: "" }) }, `${title} ${params[name] ? "together" : "apart"}`);
  const sources = [["", "Auto"], ["recording", "Recording"], ["dump", "Heap dump"], ["vm", "The VM's histogram"]];
  return [
    choice("source", sources, params.source || "", (word) => to("classes", { ...params, source: word, offset: "" })),
    filters(params, "class"),
    h("p", { class: "dim" }, `Counts are from: ${{ recording: params.from ? "the recording; live ones at the end of the range, the others in it" : "the recording", dump: "the last heap dump", vm: "the VM's own histogram of this moment" }[answer.source]}. `,
      sizesFrom(answer.sizes),
      answer.source === "vm" ? null : apart("loaders", "Loaders"), answer.source === "recording" ? [" · ", apart("contexts", "Threads")] : null),
    table({ columns, rows: answer.rows, sort, turned: params.up || "", label: "Classes", empty: "No class matches." }), pager(answer.offset, answer.rows.length, answer.count, LIMIT), downloads("classes", asked),
  ];
}

/** What to fix: what grows, and what could be saved. */
export async function advice({ params, ask }) {
  const asked = { ...ranged(params), limit: LIMIT };
  const [growth, sites, kinds] = await Promise.all([ask("growth", asked), ask("savings", asked), ask("savings", { ...asked, by: "kind" })]);
  const shown = (answer, view, more, label, empty) => {
    const name = (r) => [className(r.class || r.name), r.stack.length ? frames(r.stack) : null];
    return [answer.notes.map((note) => h("p", { class: "dim" }, note)),
      table({ columns: sortedHere(described(answer, name), answer), rows: answer.rows, label, empty }), downloads(view, { ...asked, ...more })];
  };
  return [
    h("h2", null, "Still growing after GC"), shown(growth, "growth", {}, "Growth", "No site has grown from collection to collection."),
    h("h2", null, "Could be saved"), kinds.dump ? h("p", { class: "dim" }, `From heap dump ${kinds.dump}. Kinds overlap.`) : null,
    shown(sites, "savings", {}, "Savings", "Nothing."),
    kinds.dump ? [h("h3", null, "By kind"), shown(kinds, "savings", { by: "kind" }, "Savings by kind", "Nothing.")] : null,
  ];
}
