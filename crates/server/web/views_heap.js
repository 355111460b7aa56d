// Views of the heap as a whole: overview, suspects, histogram, dominators.

import { h, to } from "./dom.js";
import { bytes, className, grouped, human, nameOf, object, percent, plural, setOf } from "./format.js";
import { classLink, facts, figures, more, objectTable, steps } from "./objects.js";
import { change, notice } from "./shell.js";
import { choice, pager, search, table } from "./table.js";
import { treemap } from "./treemap.js";

const LIMIT = 100;

/** The first histogram, before there is an index. */
async function early(context, fault) {
  if (fault.kind !== "not_ready") throw fault;
  const quick = await context.ask("quick_histogram", { limit: LIMIT });
  return [
    notice("wait", "The index is still being built", h("p", null, "Counts of the first pass over the file, unreachable objects included; retained sizes, suspects and paths follow.")),
    figures([[quick.total.objects, "objects"], [human(quick.total.shallow), "shallow size"], [quick.rows.length + quick.omitted_rows, "classes"]]),
    histogramTable(quick, {}, true),
  ];
}

/** One suspect in a sentence, with the way to its evidence. */
function suspectCard(s, whole) {
  const point = s.accumulation_point;
  const who = s.kind === "class"
    ? [plural(s.instances, "object", "objects"), " of ", classLink(s.class, s.object)]
    : ["One object, ", object({ ...s, kind: s.class === "java.lang.Class" ? "class" : "instance" }), ","];
  const pile = point?.of_class;
  return h("div", { class: "suspect" },
    h("div", { class: "share", role: "img", "aria-label": `${percent(s.share)} of the heap`, vars: { "--b": `${(100 * s.share).toFixed(1)}%` } }),
    h("p", null, who, " keep", s.kind === "class" ? " " : "s ", h("b", null, bytes(s.retained)), ` (${percent(s.share)}) alive.`,
      s.local_of ? [" A local variable of the thread ", h("b", null, s.local_of.thread), " holds it, in ", s.local_of.frame, "."] : null,
      s.thread_local_of ? [" A thread-local variable of the thread ", h("b", null, s.thread_local_of.thread), " holds it", s.thread_local_of.variable ? [", ", s.thread_local_of.variable] : null, "."] : null,
      s.thread_locals?.length ? [" Thread-local variables hold it: ", s.thread_locals.map((v, n) => [n ? ", " : "", h("b", null, v.variable || v.class || "variables that no longer exist"), " with ", bytes(v.retained), " in ", plural(v.threads, "thread", "threads")]), "."] : null),
    point && point.object !== s.object ? h("p", null, "The memory is accumulated in ", object({ ...point, kind: point.class === "java.lang.Class" ? "class" : "instance" }),
      pile ? [", which holds ", plural(pile.objects, "object", "objects"), " of ", classLink(pile.class), pile.holding ? [" (", className(pile.holding), ")"] : null] : null,
      s.holder ? [", held by ", h("b", { class: "holder" }, s.holder)] : null, ".") : s.holder ? h("p", null, "Held by ", h("b", { class: "holder" }, s.holder), ".") : null,
    s.chain_of ? h("p", null, "It is the head of a long chain of ", classLink(s.chain_of), ".") : null,
    h("p", null, h("a", { href: to("objects", { set: s.kind === "class" ? `class:${s.object}` : `retained:object:${s.object}`, show: "class" }) }, s.kind === "class" ? "These objects" : "What it retains"), " · ",
      point ? [h("a", { href: to("paths", { id: point.object }) }, "Paths from roots"), " · "] : null,
      whole ? h("a", { href: to("leaks") }, "Evidence") : h("a", { href: to("dominators", { id: s.object }) }, "Dominator tree below")));
}

export const overview = {
  name: "overview", title: "Overview", group: "", keys: "o",
  source: () => ["overview"],
  async show(context) {
    let answer;
    try {
      answer = await context.ask("overview");
    } catch (fault) {
      return early(context, fault);
    }
    const f = answer.facts;
    const whole = f.reachable_shallow;
    const map = treemap(await context.ask("treemap"));
    const unreachable = f.shallow - f.reachable_shallow;
    return [
      figures([[human(whole), "reachable"], [f.reachable_objects, "objects"], [f.classes, "classes"], [f.loaders, "loaders"], [f.threads, "threads"],
        unreachable > 0 ? [human(unreachable), "unreachable"] : null]),
      answer.damaged ? notice("bad", "The file is damaged", h("p", null, "Results cover the readable part. ", h("a", { href: "#/file" }, "What is missing"), ".")) : null,
      h("h2", null, "Leak suspects"),
      answer.leaks.suspects.length ? answer.leaks.suspects.map((s) => suspectCard(s, true)) : noSuspects(answer.leaks),
      more(answer.omitted_suspects, "#/leaks"),
      h("h2", null, "What fills the heap"), map,
      h("div", { class: "columns" },
        h("section", null, h("h2", null, "Biggest objects"), objectTable(answer.objects, { whole }), h("p", null, h("a", { href: "#/dominators" }, "Dominator tree"))),
        h("section", null, h("h2", null, "Biggest classes"), histogramTable(answer.classes, {}, true), h("p", null, h("a", { href: "#/histogram" }, "Histogram")))),
      h("h2", null, "The file"),
      facts([["Format", `${f.format}, ${f.id_size}-byte ids`], ["Taken", f.timestamp_ms ? new Date(f.timestamp_ms).toISOString().replace("T", " ").slice(0, 19) + " UTC" : ""],
        ["JVM", f.jvm], ["Size of the file", bytes(f.bytes)],
        ["Sizes", `${answer.layout.model} layout: ${answer.layout.header}-byte header, ${answer.layout.reference}-byte references, ${answer.layout.alignment}-byte alignment`
          + (answer.layout.samples ? `; ${percent(answer.layout.confidence)} of ${grouped(answer.layout.samples)} gaps agree` : "")]]),
    ];
  },
};

// Nothing was found, or nothing can be found out.
const noSuspects = (leaks) => h("p", { class: "empty" }, leaks.no_roots
  ? "Unknown: the dump has no GC roots, so it does not say what keeps objects alive. All its objects are counted."
  : `No suspects: no object, and no class of objects, keeps more than ${leaks.threshold} % of the heap alive.`);

// As `OUTERMOST_FRAMES` of the analysis: so many frames follow those that were left out.
const OUTERMOST = 5;
const stackLines = (s) => (s.stack_omitted
  ? [...s.stack.slice(0, -OUTERMOST), `… ${plural(s.stack_omitted, "more frame", "more frames")} …`, ...s.stack.slice(-OUTERMOST)] : s.stack);

export const leaks = {
  name: "leaks", title: "Leak suspects", group: "", keys: "l",
  source: (p) => ["leaks", { deep: p.deep }],
  async show(context) {
    const answer = await context.ask("leaks", { deep: context.params.deep });
    if (!answer.suspects.length) return noSuspects(answer);
    return answer.suspects.map((s, n) => h("section", null, h("h2", null, `Suspect ${n + 1}`), suspectCard(s),
      s.path.length ? [h("h3", null, s.kind === "class" ? "From the root to the common point" : "From the suspect to the accumulation point"), steps(s.path)] : null,
      s.roots.length ? h("p", null, `Root: ${s.roots.join(", ")}`) : null,
      s.accumulation_point?.parts?.length ? [h("h3", null, "Its largest parts"), objectTable(s.accumulation_point.parts, { field: true, whole: answer.total })] : null,
      s.stack?.length ? [h("h3", null, "Stack"), h("pre", null, stackLines(s).join("\n"))] : null));
  },
};

/** Rows of a histogram. `short` leaves out what belongs to the page of its own. */
export function histogramTable(answer, params, short) {
  const by = answer.by;
  const within = params.set ? ` and ${params.set}` : "";
  const retained = answer.rows.some((r) => r.retained !== undefined);
  const whole = answer.heap_shallow;
  const sort = (word) => (short ? undefined : word);
  const columns = [
    { title: "Objects", num: true, sort: sort("objects"), cell: (r) => grouped(r.objects) },
    { title: "Shallow", num: true, sort: sort("shallow"), cell: (r) => bytes(r.shallow), bar: retained ? undefined : (r) => r.shallow / answer.total.shallow },
    retained ? { title: "Retained", num: true, sort: sort("retained"), cell: (r) => bytes(r.retained), bar: (r) => r.retained / whole } : null,
    retained ? { title: "Share", num: true, cell: (r) => percent(r.retained / whole) } : null,
    { title: by[0].toUpperCase() + by.slice(1), sort: sort("name"), cell: (r) => {
      const name = by === "site" ? nameOf(r) : className(nameOf(r));
      return retained ? h("a", { href: to("objects", { set: setOf(r, by) + within, all: params.all }) }, name) : name;
    } },
  ].filter(Boolean);
  const total = short ? null : [grouped(answer.total.objects), bytes(answer.total.shallow), ...(retained ? ["", ""] : []), "all of these"];
  return table({ columns, rows: answer.rows, sort: params.sort || (retained ? "retained" : "shallow"), total, empty: "No class matches." });
}

const GROUPS = [["class", "Class"], ["superclass", "Superclass"], ["package", "Package"], ["loader", "Loader"], ["heap", "Android heap"], ["site", "Allocation site"]];

function histogramParams(p) {
  return { by: p.by, set: p.set, filter: p.filter, sort: p.sort, all: p.all, limit: LIMIT, offset: p.offset };
}

export const histogram = {
  name: "histogram", title: "Histogram", group: "", keys: "h",
  source: (p) => ["histogram", histogramParams(p)],
  async show(context) {
    const p = context.params;
    const answer = await context.ask("histogram", histogramParams(p));
    const early = !answer.rows.some((r) => r.retained !== undefined) && answer.rows.length > 0;
    const offset = answer.skipped_rows || 0;
    const count = offset + answer.rows.length + answer.omitted_rows;
    return [
      early ? notice("wait", "The index is still being built", h("p", null, "Counts of the first pass; other groupings and retained sizes follow.")) : null,
      h("div", { class: "controls" }, choice("by", GROUPS.filter(([g]) => g !== "heap" || p.by === g || document.getElementById("app").dataset.android === "true"), p.by || "class", (by) => to("histogram", { ...p, by, offset: "" })),
        search("filter", p.filter, "Filter by regular expression"),
        h("label", null, h("input", { type: "checkbox", checked: p.all === "1", onchange: (e) => change({ all: e.target.checked ? "1" : "", offset: "" }) }), " unreachable too")),
      histogramTable(answer, p), pager(offset, answer.rows.length, count, LIMIT),
    ];
  },
};

/** The tree as a table whose rows open in place. */
function treeTable(answer, ask) {
  const body = h("tbody");
  const line = (node, depth) => {
    const twist = h("button", { class: "twist", "aria-expanded": "false", "aria-label": "Open", onclick: () => open() }, "▸");
    const row = h("tr", { tabindex: "-1" }, h("td", { class: "n" }, bytes(node.shallow)),
      h("td", { class: "n bar", vars: { "--b": `${(node.share * 100).toFixed(1)}%` } }, bytes(node.retained)), h("td", { class: "n" }, percent(node.share)),
      h("td", { vars: { "--d": String(depth) } }, node.dominated ? twist : h("span", { class: "twist" }), object(node),
        node.dominated ? h("span", { class: "dim" }, ` ${grouped(node.dominated)}`) : null));
    let below = null;
    async function open() {
      if (below) {
        const hide = twist.getAttribute("aria-expanded") === "true";
        for (const r of below) {
          r.close?.(hide);
          r.hidden = hide;
        }
        twist.setAttribute("aria-expanded", String(!hide));
        twist.textContent = hide ? "▸" : "▾";
        return;
      }
      const part = await ask("dominators", { id: node.object, limit: 20 });
      below = part.nodes.map((n) => line(n, depth + 1));
      if (part.omitted) below.push(h("tr", { tabindex: "-1" }, h("td"), h("td"), h("td"), h("td", { vars: { "--d": String(depth + 1) } },
        h("a", { href: to("objects", { set: `dominated:object:${node.object}` }) }, `… ${grouped(part.omitted)} more`))));
      row.after(...below);
      twist.setAttribute("aria-expanded", "true");
      twist.textContent = "▾";
    }
    row.close = (hide) => {
      if (!below || twist.getAttribute("aria-expanded") !== "true") return;
      for (const r of below) {
        r.close?.(hide);
        r.hidden = hide;
      }
    };
    return row;
  };
  body.append(...answer.nodes.map((n) => line(n, 0)));
  return h("div", { class: "scroll tree", own: true }, h("table", null, h("thead", null, h("tr", null, ["Shallow", "Retained", "Share"].map((t) => h("th", { class: "n" }, t)), h("th", null, "Object; children"))), body));
}

const SHAPES = [["tree", "Tree"], ["map", "Treemap"], ["class", "By class"], ["package", "By package"], ["loader", "By loader"]];

function dominatorSource(p) {
  if (p.show === "map") return ["treemap", { id: p.id }];
  if (p.show && p.show !== "tree") return ["dominator_groups", { by: p.show, limit: 200 }];
  return ["dominators", { id: p.id, limit: LIMIT }];
}

export const dominators = {
  name: "dominators", title: "Dominators", group: "", keys: "d",
  heading: (p) => (p.id ? `Dominated by ${p.id}` : "Dominator tree"),
  source: dominatorSource,
  async show(context) {
    const p = context.params;
    const shape = p.show || "tree";
    const answer = await context.ask(...dominatorSource(p));
    const shapes = p.id ? SHAPES.slice(0, 2) : SHAPES;
    const head = [choice("show", shapes, shape, (show) => to("dominators", { id: p.id, show })),
      p.id ? h("p", null, h("a", { href: to("object", { id: p.id }) }, "This object"), " · ", h("a", { href: to("objects", { set: `retained:object:${p.id}`, show: "class" }) }, "What it retains by class")) : null];
    if (shape === "map") return [head, treemap(answer)];
    if (shape === "tree") return [head, answer.nodes.length ? treeTable(answer, context.ask) : h("p", { class: "empty" }, "It dominates nothing."),
      more(answer.omitted, p.id ? to("objects", { set: `dominated:object:${p.id}` }) : null)];
    return [head, h("p", { class: "dim" }, "The objects at the top of the tree, put together; the rows add up to the heap."), table({
      rows: answer.rows,
      columns: [
        { title: "Objects", num: true, sort: (r) => r.objects, cell: (r) => grouped(r.objects) },
        { title: "Shallow", num: true, sort: (r) => r.shallow, cell: (r) => bytes(r.shallow) },
        { title: "Retained", num: true, sort: (r) => r.retained, cell: (r) => bytes(r.retained), bar: (r) => r.share },
        { title: "Share", num: true, cell: (r) => percent(r.share) },
        { title: "Name", sort: nameOf, cell: (r) => h("a", { href: to("objects", { set: setOf(r, answer.by) }) }, className(nameOf(r))) },
      ],
    }), more(answer.omitted_rows)];
  },
};
