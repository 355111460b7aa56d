// The frame of every page: navigation, addresses (`#/view?a=b`), keys, and the states that a view can
// be in. A site gives a list of views; `start` does the rest.
//
// A view is `{name, title, group, hidden, keys, show(context)}`. `show` gets
// `{params, ask, signal, refresh}` and returns nodes; it may throw a Fault, and set `context.heading` once it knows
// what it shows.

import { fill, h, renew, to, visible } from "./dom.js";
import { sentence } from "./format.js";

/** The view and parameters of the present address. */
export function here() {
  const [path, search] = location.hash.replace(/^#\/?/, "").split("?");
  return { name: path, params: Object.fromEntries(new URLSearchParams(search || "")) };
}

/** Goes to a view; `replace` leaves no step in the history. */
export function go(view, params, replace) {
  const hash = to(view, params);
  if (replace) {
    history.replaceState(null, "", hash);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else location.hash = hash;
}

/** The same view with some parameters changed. */
export function change(params, replace) {
  const now = here();
  go(now.name, { ...now.params, ...params }, replace);
}

/** What stands in the place of a view that is not there. */
export function notice(kind, title, ...more) {
  return h("div", { class: `notice ${kind}`, role: kind === "bad" ? "alert" : "status" }, h("p", { class: "strong" }, title), more);
}

/** What stands in the place of an answer that did not come. */
export function faultNotice(fault, again) {
  if (fault.kind === "not_ready" || fault.kind === "later")
    return notice("wait", "Computing...", h("p", null, `${sentence(fault.message)} This view opens when the answer is ready.`));
  if (fault.kind === "offline")
    return notice("bad", "No connection", h("p", null, sentence(fault.message)), h("button", { onclick: again }, "Try again"));
  const title = { not_found: "Not found", bad_request: "Invalid filter" }[fault.kind] || "Request failed";
  const whole = fault.kind === "bad_request" ? h("p", null, h("a", { href: to(here().name) }, "Clear filters")) : null;
  return notice("bad", title, h("p", null, sentence(fault.message)), whole);
}

/**
 * Starts a site. `tools(name, params)` gives nodes for the line above the view; `carried()` the
 * parameters that go with the user from view to view.
 *
 * @param {{root: HTMLElement, title: string, views: any[], ask: (...words: any[]) => Promise<any>,
 *   tools?: (...words: any[]) => any, carried?: () => any}} parts
 */
export function start({ root, title, views, ask, tools, carried }) {
  const status = h("div", { class: "status", role: "status", "aria-live": "polite" });
  const nav = h("nav", { "aria-label": "Views" });
  const main = h("main", { tabindex: "-1" });
  const help = h("dialog", { class: "help" });
  fill(root,
    h("header", { class: "top" }, h("a", { class: "brand", href: "#/" }, h("img", { src: "assets/icon.svg", alt: "", width: "18", height: "18" }), h("b", null, "Tenure")),
      h("span", { class: "file", title }, title), status,
      h("button", { class: "quiet", title: "Keys (?)", onclick: () => showHelp(help, views) }, "?")),
    h("div", { class: "frame" }, nav, main), help);

  let running = null;
  let busy = false;
  let shown = null;

  const viewOf = (name) => views.find((v) => v.name === name) || views[0];

  async function show() {
    const { name, params } = here();
    const view = viewOf(name);
    running?.abort();
    running = new AbortController();
    const mine = running;
    busy = true;
    const where = location.hash;
    if (shown !== where) main.classList.add("loading");
    mark(view.name);
    let partial = false;
    const asked = async (v, p) => {
      const answer = await ask(v, p, mine.signal);
      partial ||= answer.complete === false;
      return answer;
    };
    const context = { params, ask: asked, signal: mine.signal, refresh: show, heading: "" };
    let nodes;
    let fault = null;
    try {
      nodes = await view.show(context);
    } catch (error) {
      if (error.name === "AbortError") return;
      fault = error;
      nodes = faultNotice(error, show);
    }
    if (mine.signal.aborted) return;
    busy = false;
    // What was asked wrongly is put right where it was asked: the fields stay.
    const stays = fault?.kind === "bad_request" && main.dataset.view === view.name && main.childElementCount > 1;
    if (stays) nodes = [nodes, [...main.children].slice(1).filter((one) => !one.matches(".notice.bad"))];
    if (partial) nodes = [notice("wait", "So far", h("p", null, "This is what is known already. The rest is being computed and appears by itself.")), nodes];
    const heading = context.heading || (view.heading ? view.heading(params) : view.title);
    document.title = visible(`${heading} - ${title}`);
    // A view that is shown already keeps what the user is doing in it.
    const put = main.dataset.view === view.name ? renew : fill;
    put(main, h("div", { class: "headline" }, h("h1", null, heading), fault ? null : h("div", { class: "tools" }, tools?.(view, params))), nodes);
    main.classList.remove("loading");
    main.dataset.view = view.name;
    main.dataset.at = where;
    if (shown !== where && shown !== null) scrollTo(0, 0);
    shown = where;
  }

  /** Shows in the list of views which one is open. */
  function mark(name) {
    for (const link of nav.querySelectorAll("a")) {
      if (link.dataset.view === name) {
        link.setAttribute("aria-current", "page");
        link.scrollIntoView({ block: "nearest", inline: "nearest" });
      } else {
        link.removeAttribute("aria-current");
      }
    }
  }

  function menu() {
    const groups = new Map();
    for (const view of views.filter((v) => !v.hidden?.()))
      if (view.group !== undefined) groups.set(view.group, [...(groups.get(view.group) || []), view]);
    fill(nav, [...groups].map(([group, list]) => h("div", { class: "group" }, group ? h("span", { class: "label" }, group) : null,
      list.map((v) => h("a", { href: to(v.name), "data-view": v.name, title: v.keys ? `g ${v.keys}` : null }, v.title)))));
    mark(viewOf(here().name).name);
  }

  addEventListener("hashchange", show);
  addEventListener("keydown", (event) => keys(event, views, help, carried));
  menu();
  show();
  return {
    status,
    menu,
    /** Asks again, unless an answer is on its way. */
    refresh: () => busy || show(),
  };
}

function showHelp(help, views) {
  const key = (k, what) => [h("dt", null, h("kbd", null, k)), h("dd", null, what)];
  fill(help, h("h2", null, "Keys"), h("dl", null,
    key("j k", "next, previous row"), key("Enter", "open the row"), key("n p", "next, previous page of rows"), key("/", "filter or search"),
    key("Backspace", "back"), views.filter((v) => v.keys).map((v) => key(`g ${v.keys}`, v.title)), key("?", "these keys")),
  h("button", { onclick: () => help.close() }, "Close"));
  if (!help.open) help.showModal();
}

let pending = false;

function keys(event, views, help, carried) {
  const target = event.target;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (target.closest("input, textarea, select, canvas, dialog")) {
    if (event.key === "Escape") target.blur();
    return;
  }
  if (pending) {
    pending = false;
    const view = views.find((v) => v.keys === event.key);
    if (view) {
      event.preventDefault();
      go(view.name, carried?.());
    }
    return;
  }
  const row = (step) => {
    const rows = [.../** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("tbody tr[tabindex]"))];
    if (!rows.length) return;
    const at = rows.indexOf(document.activeElement?.closest("tr"));
    rows[Math.max(0, Math.min(rows.length - 1, at + step))].focus();
  };
  const one = (selector) => /** @type {HTMLElement} */ (document.querySelector(selector));
  const press = (selector) => one(selector)?.click();
  const actions = {
    j: () => row(1), k: () => row(-1), ArrowDown: () => row(1), ArrowUp: () => row(-1),
    n: () => press(".pager .next:not([disabled])"), p: () => press(".pager .previous:not([disabled])"),
    "/": () => one("main input[type=search]")?.focus(),
    g: () => { pending = true; },
    "?": () => showHelp(help, views),
    Backspace: () => history.back(),
    Enter: () => target.closest("tr")?.querySelector("a")?.click(),
    ArrowRight: () => target.closest("tr")?.querySelector("button.twist[aria-expanded=false]")?.click(),
    ArrowLeft: () => target.closest("tr")?.querySelector("button.twist[aria-expanded=true]")?.click(),
  };
  const arrows = event.key.startsWith("Arrow") && !target.closest("tr");
  if (actions[event.key] && !arrows && !(event.key === "Enter" && target.closest("a, button"))) {
    event.preventDefault();
    actions[event.key]();
  }
}
