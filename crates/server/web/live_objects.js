// The instances of one class: listed in any order, or counted by what they have in common.

import { described, details } from "./columns.js";
import { h, to } from "./dom.js";
import { grouped } from "./format.js";
import { change } from "./shell.js";
import { choice, pager, table } from "./table.js";
import { faultLine, ranged, tryCommand } from "./live_timeline.js";
import { downloads, frames } from "./live_tables.js";

const LIMIT = 100;

const FORMS = [["", "List"], ["value", "Equal values"], ["text", "Texts"], ["hash", "Hash codes"], ["stack", "Stacks"], ["class", "Classes and loaders"],
  ["size", "Sizes"], ["size100", "by 100"], ["size1000", "by 1000"], ["time", "Times"], ["second", "Seconds"], ["minute", "Minutes"], ["hour", "Hours"]];
const STEPS = { size100: 100, size1000: 1000 };
const TIMED = ["time", "second", "minute", "hour"];

/** The switch for code of the program, with what it means. */
function ownCode(state, refresh) {
  if (!state.recording?.connected || state.ended) return null;
  const failed = faultLine();
  const set = (on) => () => tryCommand("own", { on: on ? 1 : 0 }, refresh);
  if (state.own_code)
    return h("p", null, "The agent calls toString, hashCode, equals and compareTo of these objects inside the program. ", h("button", { id: "own-off", onclick: set(false) }, "Stop calling program code"), failed);
  return h("details", { id: "own" }, h("summary", null, "Call toString, equals, hashCode"),
    h("p", null, h("b", null, "This runs code of the program: "), "toString, hashCode, equals and compareTo of these objects, on a thread of the agent's own. ",
      "Such code may change what the objects hold, take locks, do I/O, or never return. What it throws is shown; a call that takes longer than two seconds times out, ",
      "and its thread keeps running in the program (with two such threads no more calls are made)."),
    h("button", { id: "own-on", onclick: set(true) }, "Run the program's code"), failed);
}

/** An object of a dump leads to the explorer. */
const object = (id, dump) => (id.startsWith("0x") ? h("a", { class: "id", href: `dumps/${dump || "last"}/#/object?id=${id}` }, id) : h("span", { class: "id", title: "identity hash code" }, id));

/** A line about where the answer comes from, and what could not be asked. */
function origin(answer, params) {
  const range = params.from && answer.source !== "dump" ? " Those made in the selected range are shown." : "";
  const from = { live: "are alive and tracked", dump: `in heap dump ${answer.dump}`, recording: "were allocated since the recording began, live or not" }[answer.source];
  const part = answer.sampled < answer.objects ? "a random sample of " : "";
  return [h("p", null, `${grouped(answer.objects)} instances ${from}, ${part}${grouped(answer.sampled)} examined.${range}`), answer.notes.map((note) => h("p", { class: "bad" }, note))];
}

const none = (params) => (params.from ? "No instance was made in this range." : "There is no instance.");

/** The instances of one class. */
export async function instances(state, { params, ask, refresh }) {
  const by = params.by || "";
  const view = by ? "groups" : "instances";
  const sort = params.sort || (by ? "sampled" : "born_ms");
  const asked = { ...ranged(params), class: params.class, source: params.source, dump: params.dump, sample: params.sample || 1000, sort, up: params.up, limit: LIMIT, offset: params.offset,
    ...(by ? { by: STEPS[by] ? "size" : by, step: STEPS[by] || params.step } : {}) };
  const answer = await ask(view, asked);
  const select = (label, key, values, chosen) => h("label", null, `${label} `, h("select", { class: "bar-field", onchange: (e) => change({ [key]: e.target.value, offset: "" }) },
    values.map(([value, title]) => h("option", { value, selected: value === chosen }, title))));
  const sources = [["", "Auto"], ["live", "The program now"], ["dump", "Heap dump"], TIMED.includes(by) ? ["recording", "All that was allocated"] : null].filter(Boolean);
  // Live objects compute what they are sorted by, so columns without values can be chosen, too.
  const orders = answer.columns.filter((c) => c.sorted).map((c) => [c.name, c.title]);
  const name = by ? (r) => (r.stack.length ? frames(r.stack) : h("span", { class: "val" }, r.value))
    : (r) => [object(r.object, answer.dump), details(answer, r), r.stack.length ? frames(r.stack, 3) : null];
  const columns = described(answer, name, { estimated: (r) => r.estimated / Math.max(1, answer.objects) });
  return [
    choice("by", FORMS, by, (word) => to("instances", { ...params, by: word, sort: "", up: "", offset: "", source: params.source === "recording" ? "" : params.source })),
    h("div", { class: "controls" }, select("From", "source", sources, params.source || ""),
      select("Sample", "sample", ["1000", "10000", "all"].map((n) => [n, n]), params.sample || "1000"), select("Order", "sort", orders, sort)),
    ownCode(state, refresh), origin(answer, params),
    table({ columns, rows: answer.rows, sort, turned: params.up || "", label: "Objects", empty: none(params) }),
    pager(answer.offset, answer.rows.length, answer.count, LIMIT), downloads(view, asked),
  ];
}
