// The page of a running program.

import { ask, follow } from "./api.js";
import { fill, h } from "./dom.js";
import { clock } from "./format.js";
import { faultNotice, go, here, notice, start } from "./shell.js";
import { Timeline, charts, collections, commands, dumpList, meanings, rangeLine, selection } from "./live_timeline.js";
import { cpu } from "./live_cpu.js";
import { instances } from "./live_objects.js";
import { advice, allocations, classes, filters, native, references, stacks, withSources } from "./live_tables.js";
import { options, saved, source } from "./live_saved.js";

const root = document.getElementById("app");
const timeline = new Timeline();
const bar = commands();
let state = null;
let drawn = null;

const sheet = h("link", { rel: "stylesheet", href: "assets/live.css" });
document.head.append(sheet);

/** The charts above a table, so that a range can be selected anywhere. */
function above() {
  drawn = charts(timeline);
  requestAnimationFrame(() => drawn?.draw());
  return drawn;
}

const small = () => {
  const all = above();
  return [bar.element, all.nodes[0] || null, rangeLine(timeline, () => all.draw())];
};

async function overview() {
  const all = above();
  const early = timeline.known("heap_committed_bytes") && !timeline.known("old_bytes") ? ["The VM says how its heap is used from its first collection on."] : [];
  const notes = [...early, ...state.notes].map((text) => h("p", { class: "dim" }, text));
  return [
    bar.element,
    state.ended ? notice("bad", "The program has ended.", h("p", null, "What was measured and recorded stays here.")) : null,
    rangeLine(timeline, () => all.draw()), notes, all.nodes, meanings(timeline), collections(timeline.events),
    h("h2", null, "Heap dumps"), h("div", { id: "dump-list" }, dumpList(state.dumps)),
  ];
}

async function events() {
  const chosen = selection();
  const rows = timeline.events.filter((e) => !chosen || (e.time_ms >= chosen[0] && e.time_ms <= chosen[1])).reverse();
  const { table } = await import("./table.js");
  const columns = [
    { title: "When", cell: (e) => h("span", { class: "time" }, clock(e.time_ms)), sort: (e) => e.time_ms },
    { title: "Pause", num: true, cell: (e) => (e.kind === "gc" ? `${e.pause_ms.toFixed(1)} ms` : ""), sort: (e) => e.pause_ms || 0 },
    { title: "Count", num: true, cell: (e) => (e.kind === "gc" ? e.count : ""), sort: (e) => e.count || 0 },
    { title: "What", cell: (e) => (e.kind === "gc" ? `${e.collector}: ${e.cause}` : e.text), sort: (e) => e.collector || e.text },
  ];
  return [small(), table({ columns, key: (e) => `event-${e.id}`, rows: rows.slice(0, 2000), empty: "Nothing has happened in this range." })];
}

/** A view below the commands and the chart, which stay when it cannot be shown. */
function below(show) {
  return async (context) => {
    const before = drawn;
    const head = small();
    try {
      return [head, await show(context)];
    } catch (fault) {
      if (fault.name === "AbortError" || fault.kind === "offline") {
        // What is on the page stays there, with its charts.
        drawn = before;
        throw fault;
      }
      const { filter, regex } = context.params;
      return [head, filter || regex ? filters(context.params, show === classes ? "class" : undefined) : null, faultNotice(fault, context.refresh)];
    }
  };
}

/** A table of the recording, or the way to one. */
const recorded = (show) => below((context) => (state.recording ? show(context)
  : notice("", "Nothing has been recorded.", h("p", null, "Press Record to count allocations: every one, or a sample that costs less."))));

const view = (name, title, keys, group, show) => ({ name, title, keys, group, show });
const views = [
  view("memory", "Memory", "m", "", overview),
  view("allocations", "Allocations", "a", "Recording", recorded(allocations)),
  view("stacks", "Call stacks", "s", "Recording", recorded(stacks)),
  view("cpu", "CPU", "p", "Recording", below((context) => cpu(state, context))),
  view("native", "Native memory", "n", "Recording", recorded(native)),
  view("references", "JNI references", "j", "Recording", recorded(references)),
  view("classes", "Instances", "i", "Objects", below(classes)),
  view("saved", "Saved", "w", "Objects", (context) => saved(state, context)),
  view("options", "Class filters", "o", "Objects", below(options)),
  view("advice", "What to fix", "f", "Objects", below(advice)),
  view("events", "Collections", "c", "Time", events),
  { ...view("instances", "Instances of a class", null, undefined, below((context) => instances(state, context))),
    heading: (params) => `Instances of ${params.class || "a class"}` },
  view("source", "Source", null, undefined, source),
];

/** The selected range goes with the user from view to view. */
function carried() {
  const { from, to, at } = here().params;
  return { from, to, at };
}

async function begin() {
  state = await ask("state");
  withSources(state.sources);
  await timeline.load();
  bar.update(state);
  const site = start({ root, title: root.dataset.title, views, ask, carried, tools: () => [h("a", { href: root.dataset.plain }, "No-JavaScript version")] });
  let busy = false;
  let seen = null;
  follow("state", async (next) => {
    if (busy) return;
    busy = true;
    const before = state;
    state = next;
    bar.update(state);
    try {
      await timeline.take(state);
    } catch (error) {
      fill(site.status, error.message);
    }
    busy = false;
    drawn?.draw();
    fill(site.status, state.ended ? "the program has ended" : [`pid ${state.pid}`, timeline.container()].filter(Boolean).join(" · "));
    const list = document.getElementById("dump-list");
    if (list && JSON.stringify(before.dumps) !== JSON.stringify(state.dumps)) fill(list, dumpList(state.dumps));
    // A table is requested again when a snapshot has come, unless it is that of a selected range.
    const quiet = ["", "memory", "events"].includes(here().name);
    const key = `${quiet ? Boolean(state.recording?.snapshots) : state.recording?.snapshots}|${state.recording?.on}|${state.cpu && here().name === "cpu" ? Math.floor((state.rows.at(-1)?.[0] || 0) / 2000) : state.cpu}|${state.dumps.map((d) => d.stage)}|${state.saved.length}|${state.ended}|${timeline.rows.length > 1}|${[...timeline.present]}`;
    if (seen !== null && seen !== key && !selection()) site.refresh();
    seen = key;
  }, (down, ended) => down && fill(site.status, ended ? "the server of this page has ended; a new one has another address" : "no connection; trying again"));
  addEventListener("resize", () => drawn?.draw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn?.draw());
  document.addEventListener("click", (event) => {
    const link = /** @type {HTMLElement} */ (/** @type {Element} */ (event.target).closest("nav a[data-view]"));
    if (!link) return;
    event.preventDefault();
    go(link.dataset.view, carried());
  });
}

begin().catch((error) => fill(root, notice("bad", "This page cannot be shown.", h("p", null, error.message), h("p", null, h("a", { href: root.dataset.plain }, "No-JavaScript version")))));
