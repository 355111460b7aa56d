// The instances of one class: listed in any order, or counted by what they have in common.

import { h, to } from "./dom.js";
import { bytes, clock, grouped } from "./format.js";
import { change } from "./shell.js";
import { choice, pager, table } from "./table.js";
import { faultLine, ranged, tryCommand } from "./live_timeline.js";
import { frames } from "./live_tables.js";

const LIMIT = 100;
const count = (n) => (n === null || n === undefined ? "" : grouped(n));

const FORMS = [["", "List"], ["value", "Equal values"], ["text", "Texts"], ["hash", "Hash codes"], ["stack", "Stacks"], ["class", "Classes and loaders"],
  ["size", "Sizes"], ["size100", "by 100"], ["size1000", "by 1000"], ["time", "Times"], ["second", "Seconds"], ["minute", "Minutes"], ["hour", "Hours"]];
const STEPS = { size100: 100, size1000: 1000 };
const TIMED = ["time", "second", "minute", "hour"];
const ORDERS = [["time", "time"], ["value", "value (compareTo)"], ["text", "toString"], ["hash", "hashCode"], ["size", "size"], ["capacity", "capacity"],
  ["capacity_bytes", "capacity bytes"], ["excess", "excess capacity"], ["none", "none"]];

/** Which forms and orders the options of the class leave. */
function isLeft(name, shown) {
  if (!shown) return true;
  if (name.startsWith("size")) return shown.size;
  if (name.startsWith("capacity")) return shown.capacity;
  return name === "excess" ? shown.size && shown.capacity : name !== "stack" || shown.stack;
}

/** The switch for code of the program, with what it means. */
function ownCode(state, refresh) {
  if (!state.recording?.connected || state.ended) return null;
  const failed = faultLine();
  const set = (on) => () => tryCommand("own", { on: on ? 1 : 0 }, refresh);
  if (state.own_code)
    return h("p", null, "Objects are asked: their own toString, hashCode, equals and compareTo run inside the program. ", h("button", { id: "own-off", onclick: set(false) }, "Ask no more"), failed);
  return h("details", { id: "own" }, h("summary", null, "Ask the objects themselves"),
    h("p", null, h("b", null, "This runs code of the program: "), "toString, hashCode, equals and compareTo of these objects, on a thread of the agent's own. ",
      "Such code may change what the objects hold, take locks, do I/O, or never return. What it throws is shown; a call that takes longer than two seconds times out, ",
      "and its thread keeps running in the program (with two such threads no more calls are made)."),
    h("button", { id: "own-on", onclick: set(true) }, "Run the program's code"), failed);
}

function time(row) {
  if (!row.born_ms) return "";
  const born = new Date(row.born_ms);
  const age = Math.max(0, Date.now() - row.born_ms) / 1000;
  return [h("span", { class: "time", title: born.toISOString() }, clock(born.getTime())), h("div", { class: "dim" }, `${age < 100 ? age.toFixed(1) : grouped(Math.round(age))} s ago`)];
}

function name(row, dump) {
  if (row.id) return h("a", { class: "id", href: `dumps/${dump || "last"}/#/object?id=${row.id}` }, row.id);
  return h("span", { class: "id", title: "identity hash code" }, `@${(row.identity >>> 0).toString(16)}`);
}

const said = (row) => [row.value === null ? null : h("span", { class: "val" }, row.value), row.fault === null ? null : h("div", { class: "bad" }, row.fault)];

/** A line about where the answer comes from, and what could not be asked. */
function origin(answer, params) {
  const range = params.from && answer.source !== "dump" ? " Those made in the selected range are shown." : "";
  const from = { live: "are alive and tracked", dump: `in heap dump ${answer.dump}`, recording: "were allocated since the recording began, live or not" }[answer.source];
  const part = answer.sampled < answer.objects ? "a random sample of " : "";
  return [h("p", null, `${count(answer.objects)} instances ${from}, ${part}${count(answer.sampled)} examined.${range}`), answer.notes.map((note) => h("p", { class: "bad" }, note))];
}

const none = (params) => (params.from ? "No instance was made in this range." : "There is no instance.");

/** The instances of one class. */
export async function instances(state, { params, ask, refresh }) {
  const by = params.by || "";
  const asked = { ...ranged(params), class: params.class, source: params.source, dump: params.dump, sample: params.sample || 1000, limit: LIMIT, offset: params.offset, up: params.up };
  const counted = by ? await ask("groups", { ...asked, by: STEPS[by] ? "size" : by, step: STEPS[by] || params.step }) : null;
  const list = by ? null : await ask("instances", { ...asked, sort: params.sort });
  const shown = list?.shown;
  const select = (label, key, values, chosen) => h("label", null, `${label} `, h("select", { class: "bar-field", onchange: (e) => change({ [key]: e.target.value, offset: "" }) },
    values.map(([value, title]) => h("option", { value, selected: value === chosen }, title))));
  const sources = [["", "Best there is"], ["live", "The program now"], ["dump", "Heap dump"], TIMED.includes(by) ? ["recording", "All that was allocated"] : null].filter(Boolean);
  const head = [
    choice("by", FORMS.filter(([key]) => isLeft(key, shown)), by, (word) => to("instances", { ...params, by: word, offset: "", source: params.source === "recording" ? "" : params.source })),
    h("div", { class: "controls" }, select("From", "source", sources, params.source || ""),
      select("Sample", "sample", ["1000", "10000", "all"].map((n) => [n, n]), params.sample || "1000"),
      by ? null : select("Order", "sort", ORDERS.filter(([key]) => isLeft(key, shown)), params.sort || "time"),
      h("label", null, h("input", { type: "checkbox", checked: params.up === "1", onchange: (e) => change({ up: e.target.checked ? "1" : "", offset: "" }) }), " increasing")),
    ownCode(state, refresh),
  ];
  if (counted) {
    const columns = [
      { title: "Sampled", num: true, cell: (r) => count(r.sampled) },
      { title: "Estimated", num: true, cell: (r) => count(r.estimated), bar: (r) => r.estimated / Math.max(1, counted.objects) },
      { title: "Value", cell: (r) => (by === "stack" ? frames(r.value.split("\n")) : h("span", { class: "val" }, r.value)) },
    ];
    return [head, origin(counted, params), table({ columns, rows: counted.rows, empty: none(params) })];
  }
  const columns = [
    { title: "Object", cell: (r) => name(r, list.dump) },
    shown.time ? { title: "Allocated", cell: time } : null,
    shown.size ? { title: "Size", num: true, cell: (r) => count(r.size) } : null,
    shown.capacity ? { title: "Capacity", num: true, cell: (r) => count(r.capacity) } : null,
    shown.size && shown.capacity ? { title: "Excess", num: true, cell: (r) => (r.size === null || r.capacity === null ? "" : count(Math.max(0, r.capacity - r.size))) } : null,
    shown.capacity ? { title: "Capacity bytes", num: true, cell: (r) => bytes(r.capacity_bytes) } : null,
    params.sort === "hash" ? { title: "Hash code", num: true, cell: (r) => (r.hash === null ? "" : String(r.hash)) } : null,
    shown.context ? { title: "Made by", cell: (r) => r.context } : null,
    { title: shown.stack ? "Value and stack" : "Value", cell: (r) => [said(r), r.stack.length ? frames(r.stack, 3) : null] },
  ];
  // How many were made in a range is known at its end.
  const known = params.from && list.rows.length < LIMIT ? list.offset + list.rows.length : list.sampled;
  return [head, origin(list, params), table({ columns: columns.filter(Boolean), rows: list.rows, empty: none(params) }), pager(list.offset, list.rows.length, known, LIMIT)];
}
