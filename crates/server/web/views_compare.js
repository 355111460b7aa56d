// What grew between this dump and an earlier one of the same program.

import { h, to } from "./dom.js";
import { bytes, className, grouped, human } from "./format.js";
import { classLink, facts, more } from "./objects.js";
import { notice } from "./shell.js";
import { search, table } from "./table.js";

/** A difference with its sign; `say` writes a number without one. */
function signed(n, say) {
  return h("span", { class: n > 0 ? "grown" : n < 0 ? "shrunk" : "dim" }, n < 0 ? `−${say(-n)}` : `+${say(n)}`);
}

const first = (list) => list[0];
const last = (list) => list[list.length - 1];
const change = (list) => last(list) - first(list);
const between = (list, say) => [h("span", { class: "dim" }, say(first(list)), " → "), say(last(list))];

/** A group of a path: the field that leads to it, its class, and whose it is. */
function group(g) {
  const name = g.class.startsWith("class ") ? ["class ", classLink(g.class.slice(6))] : classLink(g.class);
  return [g.field ? [h("b", null, g.field), " → "] : null, name, g.name ? h("span", { class: "val" }, ` "${g.name}"`) : null];
}

/** Where memory was added or given back: the path to it, with what it holds. */
function place(c, n) {
  const held = c.contents || last(c.path);
  const rows = [...c.path.map((g, depth) => ({ ...g, depth })), ...[c.contents, c.holding].filter(Boolean).map((g, i) => ({ ...g, depth: c.path.length + i }))];
  return h("section", null,
    h("div", { class: "suspect" }, h("p", null, `${n + 1}. `, h("b", null, signed(c.growth, human)), ` in `, group(last(c.path)), c.holder ? [" of ", h("b", null, c.holder)] : null, c.contents ? [": ", between(c.contents.objects, grouped), " of ", className(held.class)] : null,
      c.holding ? [", full of ", className(c.holding.class)] : null)),
    h("div", { class: "tree" }, table({
      rows,
      columns: [
        { title: "Change", num: true, cell: (r) => signed(change(r.retained), human) },
        { title: "Retained", num: true, cell: (r) => between(r.retained, human) },
        { title: "Objects", num: true, cell: (r) => between(r.objects, grouped) },
        { title: "Path", cell: (r) => h("div", { class: "indent", vars: { "--d": String(r.depth) } }, group(r)) },
      ],
    })));
}

function groups(title, rows, omitted, index) {
  if (!rows.length) return null;
  return [h("h2", null, title), table({
    rows,
    columns: [
      { title: "Objects", num: true, sort: (r) => r.objects.at(index), cell: (r) => grouped(r.objects.at(index)) },
      { title: "Retained", num: true, sort: (r) => r.retained.at(index), cell: (r) => bytes(r.retained.at(index)) },
      { title: "Group", cell: group },
    ],
  }), more(omitted)];
}

export const compare = {
  name: "compare", title: "Compare", group: "", keys: "c",
  source: () => ["compare"],
  async show(context) {
    const answer = await context.ask("compare");
    const find = (context.params.find || "").toLowerCase();
    const [before, after] = [first(answer.dumps), last(answer.dumps)];
    const rows = answer.classes.filter((r) => r.class.toLowerCase().includes(find));
    const most = Math.max(1, ...rows.map((r) => Math.abs(change(r.retained))));
    const taken = (d) => (d.timestamp_ms ? `, ${new Date(d.timestamp_ms).toISOString().replace("T", " ").slice(0, 19)} UTC` : "");
    return [
      facts([["Before", `${before.name}${taken(before)}`], ["After", `${after.name}${taken(after)}`],
        ["Objects", [between([before.objects, after.objects], grouped), " ", signed(after.objects - before.objects, grouped)]],
        ["Shallow", [between([before.shallow, after.shallow], human), " ", signed(after.shallow - before.shallow, human)]]]),
      after.unrelated ? notice("warn", "These dumps have little in common", h("p", null, "They may be of different programs. What follows is then no sign of a leak.")) : null,
      h("h2", null, "What grew"),
      answer.grown.length ? answer.grown.map(place) : h("p", { class: "empty" }, "No place grew by a notable part of the heap."),
      more(answer.omitted_grown),
      answer.shrunk.length ? [h("h2", null, "What shrank"), answer.shrunk.map(place), more(answer.omitted_shrunk)] : null,
      groups("New at the top of the dominator tree", answer.new, answer.omitted_new, -1), groups("Gone from there", answer.gone, answer.omitted_gone, 0),
      h("h2", null, "Classes"), h("div", { class: "controls" }, search("find", context.params.find, "Class")),
      table({
        rows, empty: "No class changed.",
        columns: [
          { title: "Objects", num: true, sort: (r) => change(r.objects), cell: (r) => signed(change(r.objects), grouped) },
          { title: "Shallow", num: true, sort: (r) => change(r.shallow), cell: (r) => signed(change(r.shallow), human) },
          { title: "Retained", num: true, sort: (r) => change(r.retained), cell: (r) => signed(change(r.retained), human), bar: (r) => Math.abs(change(r.retained)) / most },
          { title: "Before → after", num: true, sort: (r) => last(r.objects), cell: (r) => between(r.objects, grouped) },
          { title: "Class", sort: (r) => r.class, cell: (r) => (last(r.objects) ? classLink(r.class) : h("a", { href: to("histogram", { filter: r.class }) }, className(r.class))) },
        ],
      }), more(answer.omitted_classes),
    ];
  },
};
