// Where the CPU time of a range goes: methods, stacks, a flame graph, and the difference to another range.

import { h, query, to } from "./dom.js";
import { className, clock, grouped, percent } from "./format.js";
import { filters, frames } from "./live_tables.js";
import { command, ranged } from "./live_timeline.js";
import { change, notice } from "./shell.js";
import { choice, table } from "./table.js";

const LIMIT = 100;

/** Nanoseconds as a person reads them: `1,234 ms`, `12.3 s`. */
function time(ns) {
  const ms = ns / 1e6;
  return ms < 10000 ? `${grouped(Math.round(ms))} ms` : `${grouped(Number((ms / 1000).toFixed(1)))} s`;
}

const signedTime = (ns) => h("span", { class: ns > 0 ? "plus" : null }, ns < 0 ? `−${time(-ns)}` : `+${time(ns)}`);
const signedShare = (share) => h("span", { class: share > 0 ? "plus" : null }, `${share < 0 ? "−" : "+"}${percent(Math.abs(share))}`);

/** A method with its class apart. */
function method(name) {
  const at = name.lastIndexOf(".");
  return at < 0 ? name : [className(name.slice(0, at)), h("b", null, name.slice(at))];
}

function methodTable(answer) {
  const all = Math.max(1, answer.total);
  return table({
    rows: answer.methods, label: "Methods", key: (r) => r.method, empty: "No sample in this range.",
    columns: [
      { title: "Self", num: true, sort: (r) => r.own, cell: (r) => time(r.own), bar: (r) => r.own / all },
      { title: "Self share", num: true, cell: (r) => percent(r.own / all) },
      { title: "With callees", num: true, sort: (r) => r.total, cell: (r) => time(r.total), bar: (r) => r.total / all },
      { title: "Share", num: true, cell: (r) => percent(r.total / all) },
      { title: "Method", sort: (r) => r.method, cell: (r) => method(r.method) },
    ],
  });
}

/** Shares are compared, because ranges may be of different lengths. */
function differenceTable(answer) {
  const [all, before] = [Math.max(1, answer.total), Math.max(1, answer.base_total)];
  const own = (r) => r.own / all - r.base_own / before;
  const whole = (r) => r.total / all - r.base_total / before;
  return table({
    rows: [...answer.methods].sort((a, b) => Math.abs(own(b)) - Math.abs(own(a))), label: "Methods", key: (r) => r.method, empty: "Nothing differs.",
    columns: [
      { title: "Self share", num: true, sort: own, cell: (r) => signedShare(own(r)) },
      { title: "Self", num: true, sort: (r) => r.own - r.base_own, cell: (r) => signedTime(r.own - r.base_own) },
      { title: "Share with callees", num: true, sort: whole, cell: (r) => signedShare(whole(r)) },
      { title: "Self before → now", num: true, sort: (r) => r.own, cell: (r) => `${time(r.base_own)} → ${time(r.own)}` },
      { title: "Method", sort: (r) => r.method, cell: (r) => method(r.method) },
    ],
  });
}

function stackTable(answer) {
  return table({
    rows: answer.stacks, label: "Stacks", empty: "No sample in this range.",
    columns: [
      { title: "CPU time", num: true, sort: (r) => r.value, cell: (r) => time(r.value), bar: (r) => r.share },
      { title: "Share", num: true, cell: (r) => percent(r.share) },
      { title: "Stack", cell: (r) => frames(r.frames, 8) },
    ],
  });
}

/** The range that others are compared with, and how to choose it. */
function baseLine(params) {
  if (params.base_from)
    return h("p", null, `Compared with ${clock(Number(params.base_from))} – ${clock(Number(params.base_to))}. `, h("button", { class: "link", id: "no-base", onclick: () => change({ base_from: "", base_to: "" }) }, "Do not compare"));
  if (!params.from) return h("p", { class: "dim" }, "To compare two ranges, drag over a chart and make the selected one the base.");
  return h("p", null, h("button", { id: "base", onclick: () => change({ base_from: params.from, base_to: params.to, from: "", to: "", at: "" }) }, "Compare other ranges with this one"));
}

/** The page; `state` is that of the program. */
export async function cpu(state, { params, ask, refresh }) {
  const show = params.base_from ? "methods" : params.show || "methods";
  const asked = { ...ranged(params), base_from: params.base_from, base_to: params.base_to, filter: params.filter, regex: params.regex, limit: LIMIT };
  let answer;
  try {
    answer = await ask("cpu", asked);
  } catch (fault) {
    if (fault.kind !== "not_found") throw fault;
    return notice("", "The CPU has not been sampled.", h("p", null, "Every 10 ms of CPU time of a thread its stack is recorded. ", state.ended ? null
      : h("button", { onclick: async () => { await command("cpu", { on: 1 }); refresh(); } }, "Sample the CPU")));
  }
  const form = (name, title) => h("a", { href: `api/v1/profile${query({ ...asked, limit: "", heap: "cpu", form: name })}`, target: "_blank" }, title);
  return [
    baseLine(params),
    params.base_from ? null : choice("show", [["methods", "Methods"], ["stacks", "Stacks"]], show, (word) => to("cpu", { ...params, show: word })),
    filters(params, "frame"),
    h("p", { class: "dim" }, `${time(answer.total)} of CPU time in samples. `, form("flamegraph", params.base_from ? "Flame graph of the difference" : "Flame graph"),
      params.base_from ? null : [" · ", form("pprof", "pprof"), " · ", form("speedscope", "speedscope"), " · ", form("collapsed", "collapsed stacks"), " · ", form("jfr", "JFR")]),
    params.base_from ? differenceTable(answer) : show === "stacks" ? stackTable(answer) : methodTable(answer),
  ];
}
