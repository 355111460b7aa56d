// The dominator tree as areas. A canvas, because a thousand elements would be slow; the keys of the
// arrows choose among siblings and levels, and what is chosen is reported in words below.

import { fill, h, to, visible } from "./dom.js";
import { grouped, human, percent } from "./format.js";

// Colours that people who see few colours can distinguish (after Okabe and Ito), by package.
const PALETTE = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8a7a1c", "#7a6fb0"];
const PAD = 15;

/** The map of an answer `tenure.treemap/1`. */
export function treemap(answer) {
  if (!answer.areas.length) return h("p", { class: "empty" }, "Nothing is dominated here.");
  const areas = answer.areas.map((a, n) => ({ ...a, n, below: [] }));
  const top = [];
  for (const a of areas) (a.parent === null ? top : areas[a.parent].below).push(a);
  const colours = palette(top);
  const canvas = h("canvas", { tabindex: "0", role: "img", "aria-label": "Treemap of the dominator tree. Arrow keys choose, Enter goes in, Backspace goes out, o opens the object." });
  const crumbs = h("div", { class: "crumbs" });
  const text = h("p", { class: "maptext", "aria-live": "polite" });
  const map = { areas, top, colours, canvas, crumbs, text, total: answer.total, root: null, chosen: null, placed: [] };
  canvas.addEventListener("mousemove", (e) => choose(map, at(map, e)));
  canvas.addEventListener("mouseleave", () => choose(map, null));
  canvas.addEventListener("click", (e) => open(map, at(map, e)));
  canvas.addEventListener("keydown", (e) => key(map, e));
  new ResizeObserver(() => draw(map)).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw(map));
  say(map);
  return h("div", { class: "map", own: true }, crumbs, canvas, text, h("div", { class: "legend" },
    [...colours].slice(0, PALETTE.length).map(([name, colour]) => h("span", null, h("i", { vars: { background: colour } }), name || "no package"))));
}

function palette(top) {
  const sums = new Map();
  const visit = (a) => {
    let own = a.retained;
    for (const b of a.below) {
      own -= b.retained;
      visit(b);
    }
    sums.set(a.package, (sums.get(a.package) || 0) + Math.max(0, own));
  };
  top.forEach(visit);
  const order = [...sums].sort((a, b) => b[1] - a[1]).map(([name]) => name);
  return new Map(order.slice(0, PALETTE.length).map((name, n) => [name, PALETTE[n]]));
}

/** Squarified rectangles: rows that keep areas near to squares. */
function squarify(list, x, y, w, h2, total, put) {
  let rest = list.filter((a) => a.retained > 0);
  const scale = (w * h2) / total;
  while (rest.length && w > 1 && h2 > 1) {
    const side = Math.min(w, h2);
    const row = [];
    let sum = 0;
    let worst = Infinity;
    for (const a of rest) {
      const next = sum + a.retained * scale;
      const large = row.length ? row[0].retained * scale : a.retained * scale;
      const small = a.retained * scale;
      const ratio = Math.max((side * side * large) / (next * next), (next * next) / (side * side * small));
      if (ratio > worst) break;
      worst = ratio;
      sum = next;
      row.push(a);
    }
    const thick = sum / side;
    let along = 0;
    for (const a of row) {
      const length = (a.retained * scale) / thick;
      if (w >= h2) put(a, x, y + along, thick, length);
      else put(a, x + along, y, length, thick);
      along += length;
    }
    if (w >= h2) {
      x += thick;
      w -= thick;
    } else {
      y += thick;
      h2 -= thick;
    }
    rest = rest.slice(row.length);
  }
}

function draw(map) {
  const { canvas } = map;
  const box = canvas.getBoundingClientRect();
  if (!box.width) return;
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(box.width * ratio);
  canvas.height = Math.round(box.height * ratio);
  const c = canvas.getContext("2d");
  c.scale(ratio, ratio);
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--fg").trim();
  const ground = style.getPropertyValue("--bg").trim();
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  c.font = "11px system-ui, sans-serif";
  c.textBaseline = "top";
  map.placed = [];
  const put = (depth) => (a, x, y, w, h2) => {
    if (w < 1.5 || h2 < 1.5) return;
    map.placed.push({ a, x, y, w, h: h2, depth });
    c.globalAlpha = (dark ? 0.36 : 0.42) + Math.min(depth, 5) * 0.07;
    c.fillStyle = map.colours.get(a.package) || "#888";
    c.fillRect(x, y, w, h2);
    c.globalAlpha = 1;
    c.strokeStyle = ground;
    c.lineWidth = 1;
    c.strokeRect(x + 0.5, y + 0.5, w - 1, h2 - 1);
    const label = w > 42 && h2 > PAD - 1;
    if (label) {
      c.fillStyle = ink;
      c.fillText(shortened(c, visible(nameOf(a)), w - 6), x + 3, y + 2);
    }
    const head = label ? PAD : 2;
    if (a.below.length && w > 14 && h2 > head + 8) squarify(a.below, x + 2, y + head, w - 4, h2 - head - 2, a.retained, put(depth + 1));
  };
  const list = map.root ? map.root.below : map.top;
  const total = map.root ? map.root.retained : map.total;
  squarify(list, 0, 0, box.width, box.height, total, put(0));
  if (map.chosen) {
    const spot = map.placed.find((p) => p.a === map.chosen);
    if (spot) {
      c.strokeStyle = ink;
      c.lineWidth = 2;
      c.strokeRect(spot.x + 1, spot.y + 1, spot.w - 2, spot.h - 2);
    }
  }
}

function nameOf(a) {
  const simple = a.name.replace(/^class /, "");
  const name = simple.slice(simple.lastIndexOf(".") + 1) || "small objects";
  return a.object ? (a.name.startsWith("class ") ? `class ${name}` : name) : `${grouped(a.objects)} × ${name}`;
}

/** Shortened from the left, where the less telling part is. */
function shortened(c, name, room) {
  if (c.measureText(name).width <= room) return name;
  for (let cut = 1; cut < name.length; cut += 1) {
    const rest = `…${name.slice(cut)}`;
    if (c.measureText(rest).width <= room) return rest.length > 3 ? rest : "";
  }
  return "";
}

function at(map, event) {
  const box = map.canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  let found = null;
  for (const p of map.placed) if (x >= p.x && x < p.x + p.w && y >= p.y && y < p.y + p.h && (!found || p.depth >= found.depth)) found = p;
  return found?.a || null;
}

function choose(map, area) {
  if (map.chosen === area) return;
  map.chosen = area;
  draw(map);
  say(map);
}

function enter(map, area) {
  map.root = area;
  map.chosen = null;
  draw(map);
  say(map);
}

function open(map, area) {
  if (!area) return;
  if (area.below.length && area !== map.root) enter(map, area);
  else if (area.object) location.hash = to("object", { id: area.object });
}

function key(map, event) {
  const list = map.chosen ? siblings(map, map.chosen) : map.root ? map.root.below : map.top;
  const n = map.chosen ? list.indexOf(map.chosen) : -1;
  const moves = {
    ArrowRight: () => choose(map, list[Math.min(list.length - 1, n + 1)]),
    ArrowLeft: () => choose(map, list[Math.max(0, n - 1)]),
    ArrowDown: () => choose(map, map.chosen?.below[0] || map.chosen || list[0]),
    ArrowUp: () => choose(map, map.chosen && map.chosen.parent !== null && map.areas[map.chosen.parent] !== map.root ? map.areas[map.chosen.parent] : map.chosen),
    Enter: () => open(map, map.chosen),
    Backspace: () => enter(map, map.root && map.root.parent !== null ? map.areas[map.root.parent] : null),
    o: () => map.chosen?.object && (location.hash = to("object", { id: map.chosen.object })),
  };
  if (moves[event.key]) {
    event.preventDefault();
    event.stopPropagation();
    moves[event.key]();
  }
}

function siblings(map, area) {
  return area.parent === null ? map.top : map.areas[area.parent].below;
}

/** What is chosen, in words, and where we are. */
function say(map) {
  const a = map.chosen;
  const trail = [];
  for (let at = map.root; at; at = at.parent === null ? null : map.areas[at.parent]) trail.unshift(at);
  fill(map.crumbs, h("button", { onclick: () => enter(map, null) }, "All"), trail.map((t) => [" › ", h("button", { onclick: () => enter(map, t) }, nameOf(t))]),
    map.root?.object ? [" ", h("a", { href: to("object", { id: map.root.object }) }, "open this object")] : null);
  if (!a) {
    fill(map.text, h("span", { class: "dim" }, `${human(map.root ? map.root.retained : map.total)}. Point at an area; click to go in. An area without parts opens its object.`));
    return;
  }
  fill(map.text, h("b", null, human(a.retained)), ` (${percent(a.retained / map.total)}) `,
    a.object ? h("a", { href: to("object", { id: a.object }) }, a.name) : `${grouped(a.objects)} objects${a.name ? ` of ${a.name}` : " of several classes"}`, a.value ? h("span", { class: "val" }, ` "${a.value}"`) : null, a.object ? h("span", { class: "id" }, ` ${a.object}`) : null);
}
