// The explorer of one heap dump.

import { ask, address, follow, send } from "./api.js";
import { fill, h, query, to } from "./dom.js";
import { percent } from "./format.js";
import { start } from "./shell.js";
import { dominators, histogram, leaks, overview } from "./views_heap.js";
import { objects, object, paths } from "./views_object.js";
import { android, bitmaps } from "./views_android.js";
import { compare } from "./views_compare.js";
import { duplicateStrings, file, loaders, notes, properties, roots, threads, unreachable } from "./views_more.js";
import { query as queryPage } from "./views_query.js";
import { collections, waste } from "./views_waste.js";

const root = document.getElementById("app");
const title = root.dataset.title;
let state = { stage: "opening" };

android.hidden = bitmaps.hidden = () => !state.android;
compare.hidden = () => !state.base;

const views = [overview, android, leaks, compare, histogram, dominators, queryPage, threads, roots, loaders, duplicateStrings, waste, collections, unreachable, bitmaps, properties, file, notes, objects, object, paths];

/** The way back, if the dump is one of a program that is watched. */
const program = () => (/\/dumps\/[^/]+\/$/.test(location.pathname) ? h("a", { id: "program", href: "../../" }, "The running program") : null);

/** Above every view: what it asked, as a command, JSON, CSV and without JavaScript; a note. */
function tools(view, params) {
  const source = view.source?.(params);
  if (!source) return program();
  const [name, asked] = source;
  const whole = view.whole?.(params)[1] || asked;
  const link = (text, href, more) => h("a", { href, ...more }, text);
  return [
    h("button", { onclick: () => showCommand(name, asked) }, "Show query"),
    link("JSON", address(name, whole), { download: `${name}.json` }),
    link("CSV", address(name, whole, "csv"), { download: `${name}.csv` }),
    link("Plain", `plain/${name}${query(asked)}`),
    h("button", { onclick: () => editNote(view, params) }, "Note"),
    program(),
  ];
}

function dialog(...children) {
  const box = h("dialog", null, children, h("p", null, h("button", { onclick: () => box.close() }, "Close")));
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  return box;
}

async function showCommand(name, asked) {
  try {
    const shown = await ask(`command/${name}`, asked);
    const box = dialog(shown.command ? [h("h2", null, "The same in a terminal"), h("pre", null, shown.command)] : null,
      shown.queries.length ? h("h2", null, "The rows as queries") : null,
      shown.queries.map((q) => [h("p", null, q.title, " · ", h("a", { href: to("query", { text: q.sql }), onclick: () => box.close() }, "ask on the query page")), h("pre", null, q.sql)]));
  } catch (error) {
    dialog(h("p", null, error.message));
  }
}

async function editNote(view, params) {
  let list;
  try {
    list = (await ask("notes")).notes;
  } catch (error) {
    dialog(h("p", null, error.message));
    return;
  }
  const at = `#/${view.name}${query(params)}`;
  const old = list.find((n) => n.view === at);
  const text = h("textarea", { class: "note", rows: "4", placeholder: "What did you see here? An empty note is a bookmark.", value: old?.text || "" });
  const save = async (note) => {
    try {
      await send("notes", { view: at, title: document.querySelector("h1").textContent, ...note });
      box.close();
    } catch (error) {
      fill(fault, error.message);
    }
  };
  const fault = h("p", { class: "bad" });
  const box = dialog(h("h2", null, "A note on this view"), text, fault, h("p", null, h("button", { onclick: () => save({ text: text.value }) }, "Keep"), " ",
    old ? h("button", { onclick: () => save({ removed: true }) }, "Remove") : null),
  h("p", { class: "dim" }, "Kept in a file beside the dump."));
}

const site = start({ root, title, views, ask, tools });
let down = false;

function showState(next) {
  const before = state;
  state = next;
  root.dataset.android = String(next.android);
  const share = next.total ? next.done / next.total : 0;
  const words = { opening: "Building the index", indexed: "Collecting referrers", ready: "Preparing", failed: "" }[next.stage];
  if (next.stage === "failed") fill(site.status, h("span", { class: "bad" }, next.error || "cannot be used"));
  else if (next.phase) fill(site.status, h("progress", { max: "1", value: share }), `${words}: ${next.phase}${next.total ? ` ${percent(share)}` : ""}`);
  else fill(site.status, next.damaged ? h("a", { class: "bad", href: "#/file" }, "damaged file: answered from the rest") : "");
  if (before.android !== next.android || before.base !== next.base) site.menu();
  if (before.stage !== next.stage || next.quick !== before.quick) catchUp();
}

/** What could not be shown, or only in part, is asked again. */
function catchUp() {
  if (!down && document.querySelector("main .notice.wait")) site.refresh();
}

// An answer may be on its way while the state changes, and what takes long comes in part first.
setInterval(() => state.stage === "ready" && catchUp(), 300);

follow("state", showState, (isDown) => {
  const was = down;
  down = isDown;
  if (was && !down) site.refresh();
  if (down) fill(site.status, h("span", { class: "bad" }, "no connection to tenure"));
});
