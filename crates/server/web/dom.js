// Elements are made here and nowhere else. A child that is a string becomes a text node, so nothing
// that comes out of a dump is ever read as markup.

/** An element: `h("a", {href: "#/x", class: "c"}, "text", child)`. */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "vars") for (const [k, v] of Object.entries(value)) element.style.setProperty(k, v);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  add(element, children);
  return element;
}

function add(parent, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) add(parent, child);
    else if (child instanceof Node) parent.append(child);
    else parent.append(document.createTextNode(String(child)));
  }
}

/** Replaces what an element holds. */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

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
