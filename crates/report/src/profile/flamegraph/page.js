const ROW = 18;
const $ = (id) => document.getElementById(id);
const canvas = $("graph"), pen = canvas.getContext("2d");
const dark = matchMedia("(prefers-color-scheme: dark)");

// What is shown: the graph and the settings of the view.
let graph = null, zoom = -1, hover = -1;
const look = { index: 0, inverted: false, folded: false, flipped: false, side: 0, scaled: false };
let match = null, matches = [], nextMatch = 0;

// ---- The tree: columns in pre-order. Widths show `value`; `other` is the profile that it is compared with.

const hasBase = () => DATA.graphs.some((one) => one.base);

// The own value of each node: its value without those of its children.
function ownOf(depth, column) {
  const own = Float64Array.from(column), stack = [];
  for (let i = 0; i < depth.length; i++) {
    stack[depth[i]] = i;
    if (depth[i] > 1) own[stack[depth[i] - 1]] -= column[i];
  }
  return own;
}

// Removes consecutive repetitions of up to eight frames: A A becomes A, and A B A B becomes A B.
function withoutRepeats(path) {
  const out = [];
  for (const name of path) {
    out.push(name);
    for (let period = 1; period <= 8 && 2 * period <= out.length; period++) {
      const end = out.length;
      let same = true;
      for (let i = 1; i <= period && same; i++) same = out[end - i] === out[end - i - period];
      if (same) { out.length = end - period; break; }
    }
  }
  return out;
}

// A tree of changed paths: each stack with its repetitions removed, or in reverse order.
function rebuilt(raw) {
  const own = [ownOf(raw.depth, raw.value), raw.base && ownOf(raw.depth, raw.base)];
  const nodes = [{ name: -1, values: [0, 0], children: [] }], known = new Map(), path = [];
  for (let i = 0; i < raw.depth.length; i++) {
    path.length = raw.depth[i] - 1;
    path.push(raw.name[i]);
    const values = own.map((one) => one ? one[i] : 0);
    if (values[0] <= 0 && values[1] <= 0) continue;
    let names = look.folded ? withoutRepeats(path) : path.slice();
    if (look.inverted) names.reverse();
    let at = 0;
    for (const name of names) {
      const key = at * DATA.names.length + name;
      let next = known.get(key);
      if (next === undefined) {
        next = nodes.length;
        known.set(key, next);
        nodes.push({ name, values: [0, 0], children: [] });
        nodes[at].children.push(next);
      }
      at = next;
      nodes[at].values[0] += values[0];
      nodes[at].values[1] += values[1];
    }
  }
  const out = { ...raw, depth: [], name: [], value: [], base: raw.base && [] };
  const open = [[0, 0]];
  const order = look.inverted
    ? (a, b) => nodes[a].values[0] - nodes[b].values[0] || nodes[a].values[1] - nodes[b].values[1]
    : (a, b) => DATA.names[nodes[a].name] < DATA.names[nodes[b].name] ? 1 : -1;
  while (open.length) {
    const [at, depth] = open.pop(), node = nodes[at];
    if (at) {
      out.depth.push(depth);
      out.name.push(node.name);
      out.value.push(node.values[0]);
      if (out.base) out.base.push(node.values[1]);
    }
    for (const child of node.children.sort(order)) open.push([child, depth + 1]);
  }
  return out;
}

// Removes nodes without a width, and computes the positions of the others.
function laidOut(raw) {
  const sides = [raw.value, raw.base], totals = [raw.total, raw.baseTotal];
  const side = raw.base ? look.side : 0;
  const factor = look.scaled && totals[1] > 0 ? totals[0] / totals[1] : 1;
  const factors = [1, factor];
  const out = { ...raw, depth: [], name: [], value: [], other: raw.base && [], own: [], left: [], parent: [], end: [] };
  const column = sides[side], own = ownOf(raw.depth, column);
  const stack = [], used = [0];
  out.deepest = 0;
  for (let i = 0; i < column.length; i++) {
    if (column[i] <= 0) continue;
    const depth = raw.depth[i], at = out.value.length, value = column[i] * factors[side];
    while (stack.length >= depth) out.end[stack.pop()] = at;
    const parent = depth > 1 ? stack[depth - 2] : -1;
    out.left.push((parent < 0 ? 0 : out.left[parent]) + used[depth - 1]);
    used[depth - 1] += value;
    used[depth] = 0;
    stack.push(at);
    out.depth.push(depth);
    out.name.push(raw.name[i]);
    out.value.push(value);
    out.own.push(own[i] * factors[side]);
    if (raw.base) out.other.push(sides[1 - side][i] * factors[1 - side]);
    out.parent.push(parent);
    out.deepest = Math.max(out.deepest, depth);
  }
  while (stack.length) out.end[stack.pop()] = out.value.length;
  out.n = out.value.length;
  out.side = side;
  out.total = totals[side] * factors[side];
  out.otherTotal = raw.base ? totals[1 - side] * factors[1 - side] : 0;
  return out;
}

// ---- Colours: one for each of the largest packages; in a comparison, by the change.

// Hues that most colour-blind people can distinguish, pale enough for dark text (dark enough for pale text).
const HUES = [[212, 62], [32, 80], [174, 48], [268, 42], [48, 72], [330, 40], [95, 35], [15, 45]];
const GREY = [210, 9];
let packages = [];

function packageOf(name) {
  const parts = name.replace(/^class /, "").replace(/ ".*$/, "").replace(/[[\]]/g, "").split(".");
  if (parts.length < 2 || name.startsWith("(")) return "";
  // `class.method`, or a class alone.
  const classes = graph.classes || name.startsWith("[") ? 1 : 2;
  return parts.slice(0, Math.max(1, Math.min(3, parts.length - classes))).join(".");
}

function rankPackages() {
  const sums = new Map();
  for (let i = 0; i < graph.n; i++) {
    const name = packageOf(DATA.names[graph.name[i]]);
    if (name) sums.set(name, (sums.get(name) || 0) + graph.own[i]);
  }
  const ranked = [...sums].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  packages = ranked.slice(0, HUES.length).map(([name]) => name);
}

const shade = ([hue, saturation], extra) => `hsl(${hue} ${saturation}% ${dark.matches ? 36 + extra : 78 - extra}%)`;
const FOUND = () => dark.matches ? "#d24da8" : "#e06ac0";

function changeColor(change) {
  // Orange: more than in the base; blue: less.
  const strength = Math.min(1, Math.abs(change));
  if (strength < 0.005) return shade(GREY, 0);
  const light = dark.matches ? 28 + 20 * strength : 92 - 27 * strength;
  return `hsl(${change > 0 ? 28 : 212} ${30 + 55 * strength}% ${light}%)`;
}

// From -1 (removed) to 1 (new).
function change(i) {
  const [now, before] = graph.side ? [graph.other[i], graph.value[i]] : [graph.value[i], graph.other[i]];
  return (now - before) / Math.max(now, before, 1e-9);
}

function color(i) {
  const name = DATA.names[graph.name[i]];
  if (match && match.test(name)) return FOUND();
  if (graph.other) return changeColor(change(i));
  const place = packages.indexOf(packageOf(name));
  return shade(place < 0 ? GREY : HUES[place], graph.depth[i] % 2 ? 0 : 4);
}

function drawLegend() {
  const entries = [];
  if (graph.other) {
    for (const [text, at] of [["gone", -1], ["less than in the base", -0.5], ["as before", 0], ["more", 0.5], ["new", 1]])
      entries.push([changeColor(at), text]);
  } else {
    for (const name of packages) entries.push([shade(HUES[packages.indexOf(name)], 0), name, `^\\[?(class )?${name.replace(/[.$]/g, "\\$&")}\\.`]);
    entries.push([shade(GREY, 0), "other packages"]);
  }
  entries.push([FOUND(), "found by the search"]);
  $("legend").replaceChildren(...entries.map(([fill, text, pattern]) => {
    const entry = document.createElement(pattern ? "button" : "span"), swatch = document.createElement("i");
    swatch.style.background = fill;
    entry.append(swatch, text);
    if (pattern) {
      entry.title = "Search this package";
      entry.onclick = () => { $("search").value = $("search").value === pattern ? "" : pattern; search($("search").value); };
    }
    return entry;
  }));
}

// ---- Drawing.

function unit(value) {
  const whole = Math.round(value).toLocaleString("en");
  if (graph.unit === "bytes") {
    let size = Math.abs(value), at = 0;
    while (size >= 1024 && at < 4) { size /= 1024; at++; }
    const sign = value < 0 ? "-" : "";
    return at ? `${sign}${size.toFixed(1)} ${["", "KiB", "MiB", "GiB", "TiB"][at]} (${whole} bytes)` : `${whole} bytes`;
  }
  if (graph.unit === "nanoseconds") return `${(value / 1e6).toLocaleString("en", { maximumFractionDigits: 3 })} ms`;
  return whole;
}

const range = () => zoom < 0 ? [0, graph.total] : [graph.left[zoom], graph.value[zoom]];
const rowTop = (depth) => look.flipped !== look.inverted ? (depth - 1) * ROW : (graph.deepest - depth) * ROW;

// A frame above the zoomed one is drawn over the whole width.
function box(i, width) {
  const [from, span] = range();
  let x = (graph.left[i] - from) / span * width, w = graph.value[i] / span * width;
  if (x < 0) { w += x; x = 0; }
  if (x + w > width) w = width - x;
  return [x, w];
}

function draw() {
  const width = canvas.clientWidth, height = Math.max(1, graph.deepest) * ROW, scale = devicePixelRatio || 1;
  canvas.style.height = height + "px";
  canvas.width = width * scale;
  canvas.height = height * scale;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.font = "12px system-ui, sans-serif";
  pen.textBaseline = "middle";
  const text = dark.matches ? "#f2f4f6" : "#14171a";
  for (let i = 0; i < graph.n; i++) {
    const [x, w] = box(i, width);
    if (w < 0.4) continue;
    const name = DATA.names[graph.name[i]], y = rowTop(graph.depth[i]);
    pen.globalAlpha = zoom >= 0 && graph.depth[i] < graph.depth[zoom] ? 0.55 : 1;
    pen.fillStyle = color(i);
    pen.fillRect(x, y, Math.max(0.5, w - 0.6), ROW - 1);
    if (i === hover) { pen.strokeStyle = text; pen.strokeRect(x + 0.5, y + 0.5, w - 1.6, ROW - 2); }
    if (w > 26) {
      pen.fillStyle = text;
      pen.fillText(fit(name, w - 8), x + 4, y + ROW / 2);
    }
    pen.globalAlpha = 1;
  }
  say();
}

// Names are shortened from the left, because the method is more informative than the package.
function fit(name, width) {
  if (pen.measureText(name).width <= width) return name;
  let parts = name.split(".");
  while (parts.length > 1) {
    parts = parts.slice(1);
    const short = "…" + parts.join(".");
    if (pen.measureText(short).width <= width) return short;
  }
  let end = parts[0].length;
  while (end > 0 && pen.measureText(parts[0].slice(0, end) + "…").width > width) end--;
  return end > 1 ? parts[0].slice(0, end) + "…" : "";
}

// The matches of the search in the zoomed part: their number and sum. A match inside another one is part of it.
function found() {
  const [from, to] = zoom < 0 ? [0, graph.n] : [zoom, graph.end[zoom]];
  let frames = 0, sum = 0, until = 0;
  for (const i of matches) {
    if (i < from || i >= to) continue;
    frames++;
    if (i >= until) { sum += graph.value[i]; until = graph.end[i]; }
  }
  return { frames, sum };
}

function say() {
  const share = (value, total) => (total > 0 ? value / total * 100 : 0).toFixed(2) + " %";
  const at = hover >= 0 ? hover : zoom;
  let text;
  if (at >= 0) {
    text = `${DATA.names[graph.name[at]]}: ${unit(graph.value[at])}, ${share(graph.value[at], graph.total)}`;
    if (!look.inverted) text += `; own ${unit(graph.own[at])}`;
    if (graph.other) text += difference(graph.value[at], graph.other[at]);
  } else {
    text = `${graph.label}: ${unit(graph.total)} in all`;
    if (graph.other) text += difference(graph.total, graph.otherTotal);
  }
  if (match) {
    const { frames, sum } = found();
    const part = zoom < 0 ? graph.total : graph.value[zoom];
    text += `. Found: ${frames} frames, ${share(sum, part)}`;
    if (zoom >= 0) text += ` of what is shown; ${matches.length} frames in the whole graph`;
  }
  $("state").textContent = text;
}

function difference(shown, other) {
  const [now, before] = graph.side ? [other, shown] : [shown, other];
  const delta = now - before;
  return `; base ${unit(before)}, change ${delta > 0 ? "+" : ""}${unit(delta)}`;
}

// ---- User input.

function at(event) {
  const rect = canvas.getBoundingClientRect(), width = canvas.clientWidth;
  const x = event.clientX - rect.left, y = event.clientY - rect.top;
  for (let i = 0; i < graph.n; i++) {
    const top = rowTop(graph.depth[i]);
    if (y < top || y >= top + ROW) continue;
    const [left, w] = box(i, width);
    if (w >= 0.4 && x >= left && x < left + w) return i;
  }
  return -1;
}

function search(text) {
  try { match = text ? new RegExp(text, "i") : null; $("search").setCustomValidity(""); }
  catch (error) { match = null; $("search").setCustomValidity(String(error)); }
  matches = [];
  nextMatch = 0;
  if (match) for (let i = 0; i < graph.n; i++) if (match.test(DATA.names[graph.name[i]])) matches.push(i);
  draw();
}

function show() {
  const raw = DATA.graphs[look.index];
  graph = laidOut(look.inverted || look.folded ? rebuilt(raw) : raw);
  zoom = hover = -1;
  rankPackages();
  drawLegend();
  search($("search").value);
}

function toggle(name, id) {
  look[name] = !look[name];
  $(id).setAttribute("aria-pressed", look[name]);
  show();
}

function reset() { zoom = -1; draw(); }

const TOGGLES = { i: ["inverted", "invert"], r: ["folded", "fold"], f: ["flipped", "flip"], s: ["scaled", "scale"] };

$("title").textContent = DATA.title;
$("notes").replaceChildren(...DATA.notes.map((note) => {
  const line = document.createElement("p");
  line.textContent = note;
  return line;
}));
DATA.graphs.forEach((one, index) => $("metric").add(new Option(one.label, index)));
if (DATA.graphs.length === 0) {
  $("empty").hidden = false;
  document.querySelectorAll("header select, header button, header input, canvas, footer").forEach((e) => { e.hidden = true; });
} else {
  $("side").hidden = $("scale").hidden = !hasBase();
  $("metric").onchange = (event) => { look.index = Number(event.target.value); show(); };
  $("side").onchange = (event) => { look.side = Number(event.target.value); show(); };
  for (const [name, id] of Object.values(TOGGLES)) $(id).onclick = () => toggle(name, id);
  $("reset").onclick = reset;
  $("search").oninput = (event) => search(event.target.value);
  canvas.onmousemove = (event) => { const i = at(event); if (i !== hover) { hover = i; draw(); } };
  canvas.onmouseleave = () => { hover = -1; draw(); };
  canvas.onclick = (event) => { zoom = at(event); draw(); };
  addEventListener("resize", draw);
  dark.addEventListener("change", () => { drawLegend(); draw(); });
  addEventListener("keydown", (event) => {
    if (event.ctrlKey && event.key === "f") { event.preventDefault(); $("search").focus(); return; }
    if (event.key === "Escape") { $("search").value = ""; search(""); reset(); return; }
    if (event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "0") reset();
    const key = event.key.toLowerCase();
    if (TOGGLES[key] && !$(TOGGLES[key][1]).hidden) toggle(...TOGGLES[key]);
    if (key === "n" && matches.length) { zoom = matches[nextMatch++ % matches.length]; draw(); }
  });
  show();
}
