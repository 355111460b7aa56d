// Tables that were kept, what changed between two of them, and the source of a frame.

import { described } from "./columns.js";
import { h } from "./dom.js";
import { className } from "./format.js";
import { change, notice } from "./shell.js";
import { pager, table } from "./table.js";
import { faultLine, tryCommand } from "./live_timeline.js";
import { downloads, filters } from "./live_tables.js";

const LIMIT = 100;

/** What is recorded and shown of each class, line by line. */
export async function options({ ask, refresh }) {
  const answer = await ask("options");
  const text = h("textarea", { id: "class-options", rows: "12", cols: "72", spellcheck: "false", "aria-label": "Class filters" }, answer.text);
  const set = () => tryCommand("options", { text: /** @type {HTMLTextAreaElement} */ (document.getElementById("class-options")).value }, refresh);
  return [
    h("p", null, "A line is ", h("code", null, "MODULE CLASS OPTIONS"), "; the first that fits a class holds, and a class that none fits is recorded in full. ",
      h("code", null, "*"), " is any part of a name between dots, ", h("code", null, "**"), " anything."),
    h("p", { class: "dim" }, "Options: off (not recorded), all, count (nothing but counts), time, stack, size, capacity, context (who makes them), ratio=0.1 (share of the instances that is examined), with commas; or factory=CLASS, whose getOptions(module, class) knows. For instance: ",
      h("code", null, "java.base java.util.** size,capacity")),
    text, h("div", { class: "controls" }, h("button", { id: "set-options", onclick: set }, "Use these"), faultLine()),
  ];
}

/** The tables that were kept, and the difference of two. */
export async function saved(state, { params, ask, refresh }) {
  const run = (name, asked) => tryCommand(name, asked, refresh);
  const list = state.saved;
  const every = h("select", { id: "schedule", class: "bar-field", "aria-label": "Save on schedule", onchange: (event) => run("schedule", { minutes: event.target.value }) },
    [...new Set([0, 1, 10, 60, 1440, state.save_every_minutes])].sort((a, b) => a - b)
      .map((m) => h("option", { value: String(m), selected: m === state.save_every_minutes }, m === 0 ? "Save only when asked" : m % 60 ? `Save every ${m} min` : `Save every ${m / 60} h`)));
  const head = h("div", { class: "controls" }, h("button", { id: "save", onclick: () => run("save") }, "Save now"), every, faultLine());
  if (!list.length) return [head, notice("", "No table of classes has been saved.", h("p", null, "Each is a page that sorts offline, CSV and JSON, beside the heap dumps."))];
  const time = (one) => `${one.number}: ${new Date(one.time_ms).toLocaleString()}`;
  const from = params.first || String(list[Math.max(0, list.length - 2)].number);
  const end = params.second || String(list[list.length - 1].number);
  const pick = (name, value) => h("label", null, name === "first" ? "From " : "To ", h("select", { class: "bar-field", onchange: (e) => change({ first: from, second: end, [name]: e.target.value, offset: "" }) },
    list.map((one) => h("option", { value: String(one.number), selected: String(one.number) === value }, time(one)))));
  const file = (one, form) => h("a", { href: `api/v1/saved?number=${one.number}&form=${form}` }, form);
  const kept = table({ columns: [
    { title: "Saved", cell: (r) => h("span", { class: "time" }, time(r)) }, { title: "Counts from", cell: (r) => r.source },
    { title: "File", cell: (r) => [file(r, "html"), " ", file(r, "csv"), " ", file(r, "json")] },
  ], rows: [...list].reverse().slice(0, 50), label: "Saved tables" });
  if (list.length < 2) return [head, kept];
  const asked = { from, to: end, sort: params.sort || "bytes_change", up: params.up, filter: params.filter, regex: params.regex, offset: params.offset, limit: LIMIT };
  const answer = await ask("compare", asked);
  const columns = described(answer, (r) => className(r.class));
  return [head, h("h2", null, "What changed"), h("div", { class: "controls" }, pick("first", from), pick("second", end)), filters(params, "class"),
    table({ columns, rows: answer.rows, sort: asked.sort, turned: params.up || "", label: "Changes", empty: params.filter || params.regex ? "No class that matches has changed." : "No class has changed." }), pager(answer.offset, answer.rows.length, answer.count, LIMIT),
    downloads("compare", asked), h("h2", null, "Saved"), kept];
}

/** The lines around a frame's own. */
export async function source({ params, ask }) {
  const answer = await ask("source", { frame: params.frame });
  const lines = answer.lines.map((text, n) => {
    const own = answer.first + n === answer.line;
    return h("div", { class: own ? "own" : null }, h("span", { class: "dim" }, String(answer.first + n).padStart(5)), `  ${text}`);
  });
  requestAnimationFrame(() => document.querySelector(".source .own")?.scrollIntoView({ block: "center" }));
  return [h("p", null, params.frame), h("p", { class: "dim" }, answer.file), h("pre", { class: "source" }, lines)];
}
