// The query page: SQL or OQL, rows as a table whose objects are links and whose objects are a set.

import { ask, send } from "./api.js";
import { fill, h, setOfQuery, to } from "./dom.js";
import { className, grouped } from "./format.js";
import { classLink, setTabs } from "./objects.js";
import { change, notice } from "./shell.js";
import { table } from "./table.js";

const EXAMPLES = [
  ["Classes by retained size", "select name, reachable_objects, reachable_shallow, retained from classes order by retained desc limit 50"],
  ["Largest objects", "select id, class, shallow, retained from objects order by retained desc limit 50"],
  ["Objects and bytes by class", "select class, count(*), sum(shallow) from objects where reachable group by class order by 3 desc limit 50"],
  ["Most frequent texts", "select value, count(*), sum(retained) from strings where reachable group by value having count(*) > 1 order by 3 desc limit 50"],
  ["Largest arrays", "select id, class, length, shallow from arrays where reachable order by shallow desc limit 50"],
  ["Threads with their top frames", "select t.id, t.name, t.retained, f.frame from threads t left join frames f on f.thread_serial = t.serial and f.depth = 0 order by t.retained desc"],
  ["Fields of a class as columns (SQL)", "select this, toString(name), \"@retained\" from \"java.lang.Thread\""],
  ["Long strings (MAT OQL)", "SELECT s, s.value.@length AS length FROM java.lang.String s WHERE s.value.@length > 1000"],
  ["Strings with a word (jhat OQL)", "select { string: s, text: s.toString() } from java.lang.String s where /java/(s.toString())"],
];

const ROWS = 1000;
const LONGEST = 300;
const DIALECTS = [["", "Auto-detect"], ["sql", "SQL"], ["oql", "MAT OQL"], ["jhat", "jhat OQL"]];
const NAMES = Object.fromEntries(DIALECTS);

// True when the last query was started from the keyboard, which then stays in the editor.
let typing = false;
let page = null;

function cell(value, column) {
  if (value === null) return h("span", { class: "dim" }, "null");
  if (Array.isArray(value)) return ["[", value.map((v, n) => [n ? ", " : "", cell(v, column)]), "]"];
  if (column.object && /^0x[0-9a-f]+$/.test(value)) return h("a", { class: "id", href: to("object", { id: value }) }, value);
  if (typeof value === "number") return Number.isInteger(value) ? grouped(value) : String(value);
  if (column.name.toLowerCase() === "class" && typeof value === "string") return classLink(value);
  const text = String(value);
  return text.length > LONGEST ? h("span", { title: text.slice(0, 4000) }, `${text.slice(0, LONGEST)}…`) : text;
}

function rowTable(answer) {
  const columns = answer.columns.map((name, n) => ({
    name,
    object: answer.object_columns.includes(n),
    num: answer.rows.length > 0 && answer.rows.every((r) => r[n] === null || typeof r[n] === "number"),
  }));
  return table({ rows: answer.rows, empty: "No rows.", label: "Rows", columns: columns.map((c, n) => ({
    title: c.name, num: c.num, cell: (r) => cell(r[n], c), sort: c.num ? (r) => r[n] ?? 0 : (r) => String(r[n] ?? ""),
  })) });
}

/** An answer: what it was read as, where its objects can go, its rows. */
function answered(answer, p) {
  const read = `${grouped(answer.rows.length)} ${answer.rows.length === 1 ? "row" : "rows"}, read as ${NAMES[answer.lang]}.`;
  const cut = {
    rows: [" There are more: ", h("button", { class: "link", onclick: () => change({ limit: Number(p.limit || ROWS) * 10 }) }, "show more"), ", or take them all as CSV or JSON above."],
    time: " The time limit ended the query: partial result.", cancelled: " It was stopped; these are the rows found until then.",
  }[answer.cut];
  return [
    h("p", { class: "dim" }, read, cut),
    (answer.notes || []).map((note) => h("p", null, note)),
    answer.object_columns.length ? [h("p", null, "The objects of this answer as a set:"), setTabs(setOfQuery(p.text, answer.lang), "query")] : null,
    rowTable(answer),
  ];
}

/** Where a fault lies in a text, as an index of it. */
function indexOf(text, place) {
  const lines = text.split("\n");
  const before = lines.slice(0, place.line - 1).reduce((n, line) => n + line.length + 1, 0);
  return before + [...(lines[place.line - 1] || "")].slice(0, place.column - 1).join("").length;
}

function wrong(fault, box) {
  const place = fault.place;
  if (!place) return notice("bad", "The query has no answer", h("p", null, fault.message));
  const at = indexOf(box.value, place);
  box.setSelectionRange(at, at);
  return notice("bad", "The query cannot be read", h("p", null, fault.message), h("pre", { class: "place" }, `${place.text}\n${" ".repeat(place.column - 1)}^`));
}

/** The word that ends at the caret. */
function wordBefore(text) {
  return /[\p{L}\p{N}._$@]*$/u.exec(text)[0];
}

/** Proposals below the editor: Tab takes the first, a click any. */
function completion(box) {
  const list = h("div", { class: "proposals", role: "listbox", "aria-label": "Proposals" });
  let timer = null;
  let asked = 0;
  const close = () => {
    clearTimeout(timer);
    asked += 1;
    fill(list);
  };
  const take = (proposal) => {
    const at = box.selectionStart;
    const word = wordBefore(box.value.slice(0, at));
    box.setRangeText(proposal, at - word.length, at, "end");
    box.dispatchEvent(new Event("input"));
    close();
    box.focus();
  };
  const propose = async (least) => {
    const at = box.selectionStart;
    const before = box.value.slice(0, at);
    const word = wordBefore(before);
    const mine = asked += 1;
    if (word.length < least) return fill(list);
    try {
      const found = (await ask("complete", { before, after: box.value.slice(at) })).proposals.filter((f) => f !== word);
      if (mine === asked) fill(list, found.map((f, n) => h("button", { class: "link", role: "option", "aria-selected": String(n === 0), onclick: () => take(f) }, className(f))));
    } catch {
      fill(list);
    }
  };
  box.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => propose(2), 150);
  });
  return {
    list,
    /** True when a key was for the list. */
    key(event) {
      if (event.key === " " && event.ctrlKey) propose(0);
      else if (event.key === "Escape" && list.firstChild) close();
      else if (event.key === "Tab" && !event.shiftKey && list.firstChild) list.firstChild.click();
      else return false;
      event.preventDefault();
      event.stopPropagation();
      return true;
    },
  };
}

/** Queries to begin with: each is a link to its answer. */
function cards(list) {
  return h("div", { class: "cards" }, list.map(([name, text]) => h("a", { class: "card", href: to("query", { text }) }, h("b", null, name), h("code", null, highlighted(text)))));
}

const TOKENS = new RegExp([
  "(?<text>'(?:[^']|'')*'?|\"[^\"]*\"?)", "(?<comment>--.*)", "(?<number>\\b(?:0x[0-9a-f]+|\\d+(?:\\.\\d+)?)\\b)",
  "(?<word>\\b(?:all|and|as|asc|between|by|case|desc|distinct|else|end|exists|filter|from|group|having|in|instanceof|is|join|left|like|limit|not|null|objects|offset|on|or|order|regexp|select|then|union|using|when|where|with)\\b)",
].join("|"), "gi");

/** A query with its keywords, texts and numbers marked. */
function highlighted(text) {
  const parts = [];
  let at = 0;
  for (const match of text.matchAll(TOKENS)) {
    const kind = Object.entries(match.groups || {}).find(([, found]) => found)?.[0];
    parts.push(text.slice(at, match.index), h("span", { class: `tok-${kind}` }, match[0]));
    at = match.index + match[0].length;
  }
  return [...parts, text.slice(at)];
}

/** The editor: what is typed lies above the same text in colours. */
function editor(box) {
  const behind = h("pre", { "aria-hidden": "true" });
  const draw = () => {
    // A last line without text has no height of its own.
    fill(behind, highlighted(box.value), "\n");
    behind.scrollTop = box.scrollTop;
  };
  for (const event of ["input", "scroll"]) box.addEventListener(event, draw);
  draw();
  return h("div", { class: "editor" }, behind, box);
}

/** Opens in place and asks when it is opened for the first time. */
function later(title, show) {
  const inside = h("div");
  return h("details", { ontoggle: async (e) => {
    if (!e.target.open || inside.firstChild) return;
    try {
      fill(inside, await show());
    } catch (fault) {
      fill(inside, h("p", { class: "bad" }, fault.message));
    }
  } }, h("summary", null, title), inside);
}

async function names() {
  const list = (await ask("query_tables")).tables;
  return [h("p", { class: "dim" }, "Every class is a table of its own, too: \"java.util.HashMap\", or instanceof.\"java.util.Map\" with its subclasses; \"this\" is the object, its fields are the columns."),
    table({ rows: list, columns: [
      { title: "Name", sort: (t) => t.name, cell: (t) => t.name }, { title: "Kind", sort: (t) => t.kind, cell: (t) => t.kind },
      { title: "Columns", cell: (t) => t.columns.map((c, n) => [n ? ", " : "", h("span", { class: c.hidden ? "dim" : null, title: c.kind }, c.name)]) }] })];
}

async function past() {
  const list = (await ask("queries")).queries;
  return list.length ? h("ul", { class: "history" }, list.map((q) => h("li", null, h("a", { href: to("query", q) }, q.text), q.lang ? h("span", { class: "dim" }, ` ${NAMES[q.lang] || q.lang}`) : null)))
    : h("p", { class: "empty" }, "No query was asked yet. They are kept in a file beside the dump.");
}

function source(p, more) {
  return p.text ? ["query", { text: p.text, lang: p.lang, ...more }] : ["query_tables"];
}

export const query = {
  name: "query", title: "Query", group: "", keys: "q",
  source: (p) => source(p, { limit: p.limit || ROWS }),
  whole: (p) => source(p, { limit: 1000000, seconds: 3600 }),
  async show(context) {
    const p = context.params;
    const asked = JSON.stringify([p.text || "", p.lang || "", p.limit || ""]);
    // The same query again: what is typed stays.
    if (page?.asked === asked) {
      if (p.text) answer(context, p, page.box, page.result);
      return page.nodes;
    }
    const result = h("div", { class: "result", "aria-live": "polite" });
    const box = h("textarea", { class: "sql", spellcheck: "false", autocomplete: "off", "aria-label": "Query", rows: "6", value: p.text || "",
      placeholder: "select class, count(*), sum(shallow) from objects group by class",
      onkeydown: (event) => {
        if (proposals.key(event)) return;
        if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
        typing = true;
        run();
      } });
    const proposals = completion(box);
    const lang = h("select", { "aria-label": "Language", title: "Language of the query" }, DIALECTS.map(([v, t]) => h("option", { value: v, selected: v === (p.lang || "") }, t)));
    const run = () => {
      const text = box.value.trim();
      if (!text) return;
      if (text === p.text && lang.value === (p.lang || "")) context.refresh();
      else change({ text, lang: lang.value, limit: "" });
    };
    const plan = async () => {
      try {
        const answer = await ask("query_plan", { text: box.value, lang: lang.value });
        fill(result, h("h2", null, `How it is answered (${NAMES[answer.lang]})`), h("pre", null, answer.rows.map((r) => r[0]).join("\n")));
      } catch (fault) {
        fill(result, wrong(fault, box));
      }
    };
    if (p.text) answer(context, p, box, result);
    if (typing) setTimeout(() => box.focus());
    typing = false;
    const nodes = [editor(box),
      h("div", { class: "controls" }, h("button", { class: "run", onclick: run, title: "Ctrl+Enter" }, "Run"), lang, h("button", { onclick: plan }, "Explain"), p.text ? h("a", { href: to("query") }, "Examples") : null),
      proposals.list, later("History", past), later("Tables and columns", names), p.text ? null : cards(EXAMPLES), result].filter(Boolean);
    // They know one another.
    for (const node of nodes) node.own = true;
    page = { asked, box, result, nodes };
    return nodes;
  },
};

/** Asks, with a way to stop while the answer is on its way, and shows what comes. */
async function answer(context, p, box, result) {
  const stop = new AbortController();
  context.signal.addEventListener("abort", () => stop.abort());
  result.setAttribute("aria-busy", "true");
  fill(result, h("p", null, h("progress"), " ", h("button", { class: "stop", onclick: () => stop.abort() }, "Stop")));
  let shown;
  try {
    const found = await ask("query", { text: p.text, lang: p.lang, limit: p.limit || ROWS, seconds: p.seconds || 60 }, stop.signal);
    shown = answered(found, p);
    send("queries", { text: p.text, lang: p.lang || "" }).catch(() => {});
  } catch (fault) {
    if (context.signal.aborted) return;
    if (fault.name === "AbortError") shown = notice("", "Stopped", h("p", null, "The query was stopped before its answer was there."));
    else if (fault.kind === "not_ready") shown = notice("wait", "Computing...", h("p", null, `${fault.message}. The answer appears here when it is ready.`));
    else shown = wrong(fault, box);
  }
  fill(result, shown);
  result.removeAttribute("aria-busy");
}
