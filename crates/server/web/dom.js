// Elements are made here and nowhere else. A child that is a string becomes a text node, so nothing
// that comes out of a dump is ever read as markup.

/**
 * An element: `h("a", {href: "#/x", class: "c"}, "text", child)`. `own` marks one that `renew` replaces as a whole,
 * because code outside of its handlers holds it.
 *
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...any} children
 * @returns {any}
 */
export function h(tag, attributes, ...children) {
  /** @type {any} */
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) listen(element, name.slice(2), value);
    else if (name === "own") element.own = true;
    else if (name === "vars") for (const [k, v] of Object.entries(value)) element.style.setProperty(k, v);
    else if (name === "value") element.value = value;
    else if (name === "title") element.setAttribute(name, visible(String(value)));
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...flat(children));
  if (element.matches("input, select, textarea")) element.shown = valueOf(element);
  return element;
}

/** Has an element call a handler, of which `renew` can put another in its place. */
function listen(element, kind, handler) {
  element.handlers ??= {};
  if (!(kind in element.handlers)) element.addEventListener(kind, (event) => element.handlers[kind]?.(event));
  element.handlers[kind] = handler;
}

// The characters that the other formats escape, too (`report::escape`); lines and tabs stay.
const UNSAFE = /(?![\t\n\r])[\p{Cc}\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

/** A text without characters that make it read differently from what it is, such as overrides of its direction: `\u{202e}`. */
export function visible(text) {
  return text.replace(UNSAFE, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
}

/** Nodes of children that may be texts, lists and nothing. */
function flat(children) {
  return children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(visible(String(child)))));
}

/** Replaces what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren(...flat(children));
  return element;
}

/**
 * Makes an element hold these children. Those of the same kind as before stay, with the focus, what was typed, what was
 * opened and what is pressed; only what differs is changed. A child with the attribute `data-key` or `id` is recognized
 * by it, any other by its place.
 */
export function renew(parent, ...children) {
  const wanted = flat(children);
  const given = new Set(wanted);
  const names = new Set(wanted.map(nameOf));
  const named = new Map([...parent.childNodes].filter(nameOf).map((node) => [nameOf(node), node]));
  let next = parent.firstChild;
  for (const node of wanted) {
    const old = node.parentNode === parent ? node : counterpart(node, next, named, given);
    if (old && old !== node) update(old, node);
    const kept = old || node;
    given.add(kept);
    // An element that is moved loses the focus: what is before it goes, unless it is wanted later.
    while (old && next && next !== old && !given.has(next) && !(nameOf(next) && names.has(nameOf(next)))) {
      const gone = next;
      next = next.nextSibling;
      gone.remove();
    }
    if (kept === next) next = next.nextSibling;
    else parent.insertBefore(kept, next);
  }
  for (const node of [...parent.childNodes]) if (!given.has(node)) node.remove();
  return parent;
}

const nameOf = (node) => node.dataset?.key || node.id;

/** The child that a new node stands for: the one of its name, or the next of its kind. */
function counterpart(node, next, named, given) {
  const name = nameOf(node);
  if (name) {
    const old = named.get(name);
    return old && !given.has(old) && alike(old, node) ? old : null;
  }
  for (let old = next; old; old = old.nextSibling) if (!given.has(old) && !nameOf(old) && alike(old, node)) return old;
  return null;
}

function alike(old, node) {
  return old.nodeName === node.nodeName && !old.own && !node.own && old.type === node.type
    && (node.nodeType !== Node.ELEMENT_NODE || old.className === node.className || /^(TR|TD|TH|A|BUTTON|SPAN)$/.test(node.nodeName));
}

/** Gives an element the attributes, handlers and children of a new one. */
function update(old, node) {
  if (node.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== node.data) old.data = node.data;
    return;
  }
  // Whether details are open is the user's choice; an attribute for the style is not allowed on these pages.
  const left = (name) => name === "style" || (name === "open" && node.nodeName === "DETAILS");
  for (const { name } of [...old.attributes]) if (!left(name) && !node.hasAttribute(name)) old.removeAttribute(name);
  for (const { name, value } of node.attributes) if (!left(name) && old.getAttribute(name) !== value) old.setAttribute(name, value);
  if (old.style.cssText !== node.style.cssText) old.style.cssText = node.style.cssText;
  for (const kind in old.handlers) if (!node.handlers?.[kind]) delete old.handlers[kind];
  for (const kind in node.handlers) listen(old, kind, node.handlers[kind]);
  renew(old, [...node.childNodes]);
  if (!("shown" in node)) return;
  // What the user has changed stays.
  if (valueOf(old) === old.shown) {
    if (old.type === "checkbox") old.checked = node.shown;
    else old.value = node.shown;
  }
  old.shown = node.shown;
}

const valueOf = (field) => (field.type === "checkbox" ? field.checked : field.value);

/** A link inside the page: view and parameters. */
export function to(view, params) {
  return `#/${view}${query(params)}`;
}

/** `?a=1&b=2`, or nothing. Empty values are left out. */
export function query(params) {
  const pairs = Object.entries(params || {}).filter(([, v]) => v !== undefined && v !== null && v !== "" && v !== false);
  return pairs.length ? "?" + new URLSearchParams(pairs.map(([k, v]) => [k, v === true ? "1" : String(v)])) : "";
}

/** A set made of a set: `retained`, `in`, `out`, `dominated`, `dominators`. */
export function setOfSet(word, set) {
  return set.includes(" and ") ? `${word}:(${set})` : `${word}:${set}`;
}

/** The set of the objects that a query gives; `lang` is `sql`, `oql` or `jhat`. */
export function setOfQuery(text, lang) {
  return `${lang}:(${text.replace(/[%()]/g, (c) => `%${c.charCodeAt(0).toString(16)}`)})`;
}
