// The memory of the program over time, and the commands.

import { ask } from "./api.js";
import { fill, h, query, to } from "./dom.js";
import { clock, grouped, human, percent } from "./format.js";
import { change, here, notice } from "./shell.js";
import { chart } from "./live_chart.js";

const bytes = (n) => human(Math.max(0, Math.round(n)));

/** Rows that are kept as they arrived. */
const MOST = 20000;

/** Milliseconds at the end of the timeline that are fetched as they were measured. */
const RECENT = 600000;

/** Rows and events, as they arrive. */
export class Timeline {
  constructor() {
    this.rows = [];
    this.events = [];
    this.metrics = [];
    this.present = new Set();
    this.span = 120000;
    this.lastEvent = null;
  }

  /** Fetches everything there is: the last minutes as they were measured, what is older in steps that grow with the whole time. */
  async load() {
    const answer = await ask("timeline", { points: 4000 });
    const last = answer.rows.length ? answer.rows[answer.rows.length - 1][0] : 0;
    const after = answer.events.length ? answer.events[answer.events.length - 1].id : "";
    const recent = await ask("timeline", { points: 4000, from: Math.max(0, last - RECENT), after });
    const begin = recent.rows.length ? recent.rows[0][0] : Infinity;
    this.metrics = answer.metrics;
    this.rows = [...answer.rows.filter((row) => row[0] < begin), ...recent.rows];
    this.note(this.rows);
    this.events = after === "" ? recent.events : [...answer.events, ...recent.events];
    this.lastEvent = this.events.length ? this.events[this.events.length - 1].id : null;
  }

  /** Takes the last rows of a state; what was missed is fetched. */
  async take(state) {
    const last = this.rows.length ? this.rows[this.rows.length - 1][0] : 0;
    const fresh = state.rows.filter((row) => row[0] > last);
    const gap = fresh.length === state.rows.length && fresh.length > 0 && this.rows.length > 0;
    // The server merges old rows, so that a page that is open for long shows all of the past, too.
    if (!this.metrics.length || gap || this.rows.length > MOST) await this.load();
    else {
      this.rows.push(...fresh);
      this.note(fresh);
    }
    if (state.last_event !== null && state.last_event !== this.lastEvent) {
      const after = this.lastEvent;
      const answer = await ask("timeline", { points: 2, from: last, after: after === null ? "" : after });
      const known = new Set(this.events.slice(-200).map((e) => e.id));
      this.events.push(...answer.events.filter((e) => !known.has(e.id)));
      this.lastEvent = state.last_event;
    }
  }

  column(name) {
    return this.metrics.findIndex((m) => m.name === name) + 1;
  }

  /** The last value of a metric, or null. */
  latest(name) {
    const row = this.rows[this.rows.length - 1];
    return row ? row[this.column(name)] : null;
  }

  /** Use and limit of the container that the program runs in; empty without a limit. */
  container() {
    const [used, limit] = [this.latest("container_bytes"), this.latest("container_limit_bytes")];
    return limit ? `container ${bytes(used)} of ${bytes(limit)} (${percent(used / limit)})` : "";
  }

  /** Whether a metric has had a value. */
  known(name) {
    return this.present.has(name);
  }

  /** Remembers which metrics have values in these rows. */
  note(rows) {
    this.metrics.forEach((metric, index) => {
      if (!this.present.has(metric.name) && rows.some((row) => row[index + 1] !== null)) this.present.add(metric.name);
    });
  }

  view() {
    const end = this.rows.length ? this.rows[this.rows.length - 1][0] : Date.now();
    const begin = this.rows.length ? this.rows[0][0] : end - 1000;
    const held = here().params.at;
    const to = held ? Number(held) : end;
    const from = this.span ? to - this.span : begin;
    return { from: Math.max(Math.min(begin, to - 1000), from), to };
  }
}

/** The selected range of the address. */
export function selection() {
  const { from, to: end } = here().params;
  return from && end ? [Number(from), Number(end)] : null;
}

/** Parameters of a question about the selected range. */
export function ranged(params) {
  return { from: params.from, to: params.to };
}

let drawn = null;

/** The charts as a view; they draw themselves anew with every state. They are made once for the metrics that are known. */
export function charts(timeline) {
  const known = [...timeline.present].join(" ");
  if (drawn?.known !== known) drawn = { known, ...made(timeline) };
  return drawn;
}

function made(timeline) {
  const model = {
    /** @type {number | null} The time that is pointed at. */
    cursor: null,
    draw: () => list.forEach((one) => one.draw()),
    view: () => timeline.view(),
    rows: () => timeline.rows,
    events: () => timeline.events,
    selection,
    select: (range) => change({ from: range ? range[0] : "", to: range ? range[1] : "", at: range ? Math.round(timeline.view().to) : "" }),
  };
  const colors = ["--c0", "--c1", "--c2", "--c3", "--c4", "--c5"];
  const make = (title, names, format, more) => {
    const series = names.filter((n) => timeline.known(n.name)).map((n, i) => ({ color: colors[i], ...n, at: timeline.column(n.name),
      ...timeline.metrics[timeline.column(n.name) - 1] }));
    return series.length ? chart({ title, series, format, binary: format === bytes, model, ...more }) : null;
  };
  const share = (n) => percent(n);
  // A limit far above the use would press the chart flat; the status line names it.
  const near = timeline.latest("container_limit_bytes") < 4 * timeline.latest("resident_bytes");
  const limit = near ? [{ name: "container_limit_bytes", line: true, dashed: true, color: "--c5" }] : [];
  const list = [
    make("Heap and metaspace", [{ name: "old_bytes", color: "--c2" }, { name: "survivor_bytes", color: "--c1" }, { name: "eden_bytes", color: "--c0" },
      { name: "metaspace_bytes", color: "--c3" }, { name: "heap_committed_bytes", line: true, dashed: true, color: "--c5" }], bytes, { stacked: true, main: true }),
    make("Process, resident", [{ name: "resident_java_bytes" }, { name: "resident_class_bytes" }, { name: "resident_code_bytes" }, { name: "resident_stack_bytes" },
      { name: "resident_gc_bytes" }, { name: "resident_native_bytes", color: "--c6" }, { name: "resident_other_bytes", color: "--c5" },
      { name: "resident_bytes", line: true, color: "--mark" }, ...limit], bytes, { stacked: true }),
    make("Committed, as the VM tracks it", [{ name: "nmt_java_bytes" }, { name: "nmt_class_bytes" }, { name: "nmt_code_bytes" }, { name: "nmt_stack_bytes" },
      { name: "nmt_gc_bytes" }, { name: "nmt_native_bytes", color: "--c6" }, { name: "nmt_other_bytes", color: "--c5" }], bytes, { stacked: true }),
    make("Tracked objects", [{ name: "tracked_live_objects", line: true, dashed: true }], (n) => grouped(Math.round(n))),
    make("Allocation", [{ name: "allocated_bytes_per_second" }], (n) => `${bytes(n)}/s`, { stacked: true, binary: true }),
    make("CPU and pauses", [{ name: "cpu_cores", line: true }, { name: "gc_time_share", line: true, color: "--mark" }], share, { floor: 0.05 }),
    make("Threads", [{ name: "threads", line: true }, { name: "java_threads", line: true, color: "--c2" }], (n) => grouped(Math.round(n))),
    make("Loaded classes", [{ name: "loaded_classes", line: true }], (n) => grouped(Math.round(n))),
  ].filter(Boolean);
  return {
    nodes: list.map((one) => one.element),
    draw: model.draw,
  };
}

/** What the categories of memory are. */
export function meanings(timeline) {
  const part = (title, chart) => {
    const known = timeline.metrics.filter((m) => m.chart === chart && m.about && timeline.known(m.name));
    return known.length ? [h("p", null, title), h("ul", null, known.map((m) => h("li", null, h("b", null, m.title), ": ", m.about)))] : null;
  };
  const parts = [part("Process: the resident memory, each page in one category, read every 5 s.", "process"),
    part("What the VM itself tracks (-XX:NativeMemoryTracking).", "tracked")];
  return parts.some(Boolean) ? h("details", { id: "meanings" }, h("summary", null, "What the categories of memory are"), parts) : null;
}

/** What is selected, and how much of the past is shown. */
export function rangeLine(timeline, redraw) {
  const spans = [[30000, "30 s"], [120000, "2 min"], [600000, "10 min"], [3600000, "1 h"], [0, "All"]];
  const box = h("select", { class: "bar-field", "aria-label": "Time shown", onchange: (event) => {
    timeline.span = Number(event.target.value);
    redraw();
  } }, spans.map(([ms, title]) => h("option", { value: String(ms), selected: ms === timeline.span }, title)));
  const chosen = selection();
  const time = (ms) => clock(ms);
  return h("div", { class: "range" }, box,
    chosen ? [h("span", { class: "strong" }, `${time(chosen[0])} – ${time(chosen[1])} (${((chosen[1] - chosen[0]) / 1000).toFixed(1)} s)`),
      h("button", { id: "clear-range", onclick: () => change({ from: "", to: "", at: "" }) }, "Whole time")]
      : h("span", null, "Drag over a chart to select a range; the tables show what happened in it."),
    here().params.at ? h("button", { id: "go-live", onclick: () => change({ at: "" }) }, "Go to now") : null);
}

/** Sends a command; the state has the result. */
export async function command(name, params) {
  const response = await fetch(`api/v1/commands/${name}${query(params)}`, { method: "POST" });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error?.message || `status ${response.status}`);
  return answer;
}

let fault = null;

/** Where a view says why its command failed. It is one element, which every renewal of a view keeps. */
export function faultLine() {
  return fault ??= h("span", { class: "bad", role: "alert" });
}

/** Sends a command of a view, and asks again; or says why that failed. */
export async function tryCommand(name, params, refresh) {
  fill(faultLine());
  try {
    await command(name, params);
    refresh();
  } catch (error) {
    fill(faultLine(), error.message);
  }
}

/** How new the counts of the recording are. */
function counted({ recording, ended }) {
  if (!recording.range) return "";
  const time = clock(recording.range[1]);
  return ended || !recording.connected ? `recorded until ${time}` : `${recording.on ? "recording" : "recording is stopped"}; counts of ${time}`;
}

/** The line of commands. It is made once; `update(state)` fits it to a state. */
export function commands() {
  const failed = h("span", { class: "bad", role: "alert" });
  const busy = h("span", { class: "dim", role: "status" });
  const run = (name, params) => async () => {
    fill(failed);
    try {
      await command(typeof name === "function" ? name() : name, typeof params === "function" ? params() : params);
      return true;
    } catch (error) {
      fill(failed, error.message);
      return false;
    }
  };
  let recording = false;
  let sampling = false;
  let shown = null;
  const mode = h("select", { id: "mode", "aria-label": "What to record" },
    h("option", { value: "full" }, "every allocation"), h("option", { value: "sampled:16384" }, "sampled, 16 KiB"),
    h("option", { value: "sampled:65536" }, "sampled, 64 KiB"), h("option", { value: "sampled:524288" }, "sampled, 512 KiB"));
  const record = h("button", { id: "record", onclick: run(() => (recording ? "stop" : "record"), () => {
    if (recording || mode.disabled) return {};
    const [kind, interval] = mode.value.split(":");
    return { mode: kind, interval, native: blocks.value };
  }) }, "Record");
  const blocks = h("select", { id: "blocks", "aria-label": "Blocks of native code to record" },
    h("option", { value: "" }, "no native memory"), h("option", { value: "524288" }, "native, 512 KiB"), h("option", { value: "65536" }, "native, 64 KiB"),
    h("option", { value: "1" }, "every native block"));
  const interval = h("select", { id: "interval", "aria-label": "Time between two measurements", onchange: () => run("interval", { ms: interval.value })() },
    [100, 250, 1000, 5000].map((ms) => h("option", { value: String(ms) }, ms < 1000 ? `${ms} ms` : `${ms / 1000} s`)));
  const text = h("input", { id: "mark-text", placeholder: "Label", size: "14", "aria-label": "Label of a marker",
    onkeydown: (event) => { if (event.key === "Enter") mark(); } });
  const mark = async () => {
    if (await run("mark", { text: text.value })()) text.value = "";
  };
  const explore = h("span");
  const buttons = [h("button", { id: "gc", onclick: run("gc") }, "Force GC"), h("button", { id: "dump", onclick: run("dump") }, "Heap dump"), record];
  const marked = h("button", { id: "mark", onclick: mark }, "Add marker");
  const group = (...parts) => h("span", { class: "together" }, parts);
  const cpu = h("button", { id: "cpu", onclick: run("cpu", () => ({ on: sampling ? 0 : 1 })) }, "Sample the CPU");
  const choices = h("details", { id: "choices" }, h("summary", null, "Options"),
    h("div", null, h("label", null, "Java objects: ", mode), h("label", null, "Native memory: ", blocks), h("label", null, "Measure every ", interval)));
  const element = h("div", { class: "commands" }, group(record, cpu), group(buttons[0], buttons[1], explore), group(text, marked), choices, busy, failed);
  return {
    element,
    update(state) {
      recording = state.recording?.on === true;
      record.textContent = recording ? "Stop recording" : "Record";
      record.className = recording ? "record on" : "record";
      sampling = state.cpu === true;
      cpu.textContent = sampling ? "End CPU samples" : "Sample the CPU";
      cpu.className = sampling ? "on" : "";
      blocks.disabled = mode.disabled = recording || state.recording?.connected === true || state.ended;
      text.disabled = marked.disabled = interval.disabled = state.ended;
      for (const one of [blocks, mode]) one.title = one.disabled && !state.ended ? "How it is recorded is chosen once: the agent stays in the program" : "";
      const last = state.dumps[state.dumps.length - 1];
      if (explore.dataset.of !== JSON.stringify(last)) {
        explore.dataset.of = JSON.stringify(last);
        fill(explore, last ? h("a", { href: `dumps/${last.number}/`, title: last.file }, `Explore heap dump ${last.number}`) : "");
      }
      for (const button of [...buttons, cpu]) button.disabled = state.ended || state.busy !== null;
      if (document.activeElement !== interval) interval.value = String(state.interval_ms);
      fill(busy, state.busy ? `${state.busy}…` : !state.recording ? ""
        : state.recording.on && !state.recording.counting ? "changing classes; waiting for the first allocation" : counted(state));
      if (state.error !== shown) fill(failed, shown = state.error);
    },
  };
}

/** Dumps that were taken, each with its explorer. */
export function dumpList(dumps) {
  if (!dumps.length) return h("p", { class: "empty" }, "No heap dump has been taken.");
  return h("ul", { id: "dumps" }, dumps.map((d) => h("li", null, h("a", { href: `dumps/${d.number}/` }, `Heap dump ${d.number}`), " ",
    `${clock(d.time_ms)}, ${bytes(d.bytes)}, `, [d.how, d.joined ? "objects have their stacks" : ""].filter(Boolean).join(", "),
    d.stage === "ready" || d.stage === "indexed" ? "" : ` (${d.stage})`, h("div", { class: "dim file-name" }, d.file))));
}

/** Garbage collections of the range. */
export function collections(events) {
  const chosen = selection();
  const found = events.filter((e) => e.kind === "gc" && (!chosen || (e.time_ms >= chosen[0] && e.time_ms <= chosen[1])));
  if (!found.length) return notice("", "No garbage collection in this range.");
  const pause = found.reduce((sum, e) => sum + e.pause_ms, 0);
  const count = found.reduce((sum, e) => sum + e.count, 0);
  const longest = found.reduce((a, b) => (b.pause_ms > a.pause_ms ? b : a));
  return h("p", null, `${grouped(count)} collections, ${pause.toFixed(1)} ms of pauses; the longest ${longest.pause_ms.toFixed(1)} ms (${longest.collector}: ${longest.cause}). `,
    h("a", { href: to("events", here().params) }, "All of them"));
}
