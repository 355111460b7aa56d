// The report's script: the treemap, sortable tables, filters. It reads one inert JSON block and
// writes text nodes only, so nothing from the dump can become markup.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const data = JSON.parse($("areas").textContent);
  // Okabe and Ito's colours, which people with any colour vision can distinguish; grey for the rest.
  const COLORS = ["0,114,178", "230,159,0", "0,158,115", "204,121,167", "86,180,233", "213,94,0", "175,165,30"];
  const GREY = "128,134,140";

  const human = (n) => {
    const units = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if (n < 1024) return n + " B";
    let u = -1;
    do { n /= 1024; u++; } while (n >= 1023.95 && u + 1 < units.length);
    return n.toFixed(1) + " " + units[u];
  };
  const percent = (n) => (data.total ? (100 * n / data.total).toFixed(1) : "0.0") + " %";

  const areas = data.areas.map(([parent, name, id, value, pack, shallow, retained, count], index) =>
    ({ parent, name, id, value, pack, shallow, retained, count, index, children: [] }));
  const top = { name: "heap", retained: data.total, children: [], index: -1, pack: "" };
  for (const a of areas) (a.parent < 0 ? top : areas[a.parent]).children.push(a);
  const parentOf = (a) => (a === top ? null : a.parent < 0 ? top : areas[a.parent]);

  // Colour by the first two parts of the package, the largest groups first.
  const group = (pack) => pack.split(".").slice(0, 2).join(".") || "(no package)";
  const sums = new Map();
  for (const a of areas) {
    if (!a.name) continue;
    const own = a.retained - a.children.reduce((sum, c) => sum + c.retained, 0);
    sums.set(group(a.pack), (sums.get(group(a.pack)) || 0) + own);
  }
  const ranked = [...sums].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const colors = new Map(ranked.slice(0, COLORS.length).map(([name], n) => [name, COLORS[n]]));
  const colorOf = (a) => (a.name && colors.get(group(a.pack))) || GREY;

  const canvas = /** @type {HTMLCanvasElement} */ ($("treemap"));
  const box = /** @type {HTMLElement} */ (canvas.closest(".map"));
  const ctx = canvas.getContext("2d");
  let root = top;
  let boxes = [];
  let chosen = null;

  // Squarified layout (Bruls, Huizing, van Wijk): rows along the shorter side while that makes the
  // areas squarer.
  function squarify(items, x, y, w, h) {
    const out = [];
    let total = items.reduce((sum, i) => sum + i.size, 0);
    let from = 0;
    while (from < items.length && total > 0 && w > 0.5 && h > 0.5) {
      const side = Math.min(w, h);
      const scale = w * h / total;
      let sum = 0, to = from, best = Infinity;
      while (to < items.length) {
        const next = sum + items[to].size * scale;
        const large = items[from].size * scale, small = items[to].size * scale;
        const worst = Math.max(side * side * large / (next * next), next * next / (side * side * small));
        if (worst > best) break;
        best = worst; sum = next; to++;
      }
      const thick = sum / side;
      let at = 0;
      for (let i = from; i < to; i++) {
        const length = items[i].size * scale / thick;
        out.push(w >= h ? { ...items[i], x, y: y + at, w: thick, h: length }
          : { ...items[i], x: x + at, y, w: length, h: thick });
        at += length;
        total -= items[i].size;
      }
      if (w >= h) { x += thick; w -= thick; } else { y += thick; h -= thick; }
      from = to;
    }
    return out;
  }

  const simple = (name) => {
    const bare = name.replace(/^class /, "");
    return (bare === name ? "" : "class ") + bare.slice(bare.lastIndexOf(".") + 1);
  };

  const label = (a) => a.id ? simple(a.name)
    : a.count.toLocaleString("en") + (a.name ? " × " + simple(a.name) : " more objects");

  function layout(node, x, y, w, h, depth) {
    const items = node.children.map((area) => ({ area, size: area.retained }));
    const rest = node.retained - items.reduce((sum, i) => sum + i.size, 0);
    if (rest > 0) items.push({ area: null, size: rest });
    items.sort((a, b) => b.size - a.size);
    for (const b of squarify(items, x, y, w, h)) {
      if (b.area) {
        boxes.push({ ...b, depth });
        if (depth < 3 && b.area.children.length && b.w > 36 && b.h > 34) {
          layout(b.area, b.x + 2, b.y + 17, b.w - 4, b.h - 19, depth + 1);
        }
      }
    }
  }

  function draw() {
    const style = getComputedStyle(document.documentElement);
    const ratio = window.devicePixelRatio || 1;
    const w = canvas.clientWidth, h = canvas.clientHeight;
    canvas.width = w * ratio;
    canvas.height = h * ratio;
    ctx.setTransform(ratio, 0, 0, ratio, 0, 0);
    ctx.clearRect(0, 0, w, h);
    ctx.font = "12px system-ui, sans-serif";
    ctx.textBaseline = "top";
    boxes = [];
    layout(root, 0, 0, w, h, 0);
    for (const b of boxes) {
      ctx.fillStyle = style.getPropertyValue("--bg");
      ctx.fillRect(b.x, b.y, b.w, b.h);
      ctx.fillStyle = `rgba(${colorOf(b.area)},${style.getPropertyValue("--alpha")})`;
      ctx.fillRect(b.x + 0.5, b.y + 0.5, Math.max(b.w - 1, 0.5), Math.max(b.h - 1, 0.5));
      if (b.w > 34 && b.h > 15) {
        ctx.save();
        ctx.beginPath();
        ctx.rect(b.x, b.y, b.w - 3, b.h);
        ctx.clip();
        ctx.fillStyle = style.getPropertyValue("--fg");
        const size = human(b.area.retained);
        ctx.fillText(label(b.area) + (b.w > 130 ? "  " + size : ""), b.x + 4, b.y + 3);
        if (b.w <= 130 && b.h > 32 && !b.area.children.length) ctx.fillText(size, b.x + 4, b.y + 18);
        ctx.restore();
      }
    }
    const mark = boxes.find((b) => b.area === chosen);
    if (mark) {
      ctx.strokeStyle = style.getPropertyValue("--fg");
      ctx.lineWidth = 2;
      ctx.strokeRect(mark.x + 1, mark.y + 1, Math.max(mark.w - 2, 1), Math.max(mark.h - 2, 1));
    }
  }

  function say(a) {
    if (!a) { $("status").textContent = "Click or Enter goes in, Backspace goes out, arrow keys choose."; return; }
    const parts = a.id ? [a.name, a.id, a.value && `"${a.value}"`].filter(Boolean).join(" ")
      : `${a.count.toLocaleString("en")} objects ${a.name && "of " + a.name}`;
    $("status").textContent = `${parts}: ${human(a.retained)} retained (${a.retained.toLocaleString("en")} bytes, `
      + percent(a.retained) + (a.id ? `), ${human(a.shallow)} itself` : ")");
  }

  function go(a) {
    root = a;
    chosen = a.children[0] || null;
    const crumbs = $("crumbs");
    crumbs.textContent = "";
    const chain = [];
    for (let at = a; at; at = parentOf(at)) chain.unshift(at);
    chain.forEach((at, n) => {
      if (n) crumbs.append(" › ");
      const button = document.createElement("button");
      button.textContent = n ? `${simple(at.name)} ${human(at.retained)}` : `heap ${human(at.retained)}`;
      button.onclick = () => go(at);
      crumbs.append(button);
    });
    draw();
    say(chosen);
  }

  const hit = (e) => {
    const r = canvas.getBoundingClientRect();
    const x = e.clientX - r.left, y = e.clientY - r.top;
    let found = null;
    for (const b of boxes) if (x >= b.x && x < b.x + b.w && y >= b.y && y < b.y + b.h) found = b.area;
    return found;
  };
  canvas.onmousemove = (e) => {
    const a = hit(e);
    if (a && a !== chosen) { chosen = a; draw(); say(a); }
  };
  canvas.onclick = (e) => { const a = hit(e); if (a && a.children.length) go(a); };
  canvas.onkeydown = (e) => {
    const siblings = (chosen && parentOf(chosen) || root).children;
    const at = siblings.indexOf(chosen);
    const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
    if (move) {
      chosen = siblings[(at + move + siblings.length) % siblings.length] || null;
      draw(); say(chosen);
    } else if (e.key === "Enter" && chosen && chosen.children.length) {
      go(chosen);
    } else if ((e.key === "Backspace" || e.key === "Escape") && root !== top) {
      const from = root;
      go(parentOf(root));
      chosen = from; draw(); say(chosen);
    } else return;
    e.preventDefault();
  };

  for (const [name] of ranked.slice(0, COLORS.length)) {
    const item = document.createElement("span"), swatch = document.createElement("b");
    swatch.style.background = `rgb(${colors.get(name)})`;
    item.append(swatch, name);
    $("legend").append(item);
  }
  if (areas.length) {
    box.hidden = false;
    go(top);
    say(null);
    new ResizeObserver(draw).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  }

  // Tables: sort by a column, filter long ones.
  for (const table of /** @type {NodeListOf<HTMLTableElement>} */ (document.querySelectorAll("table:not(.tree)"))) {
    const body = table.tBodies[0];
    if (body.rows.length < 3) continue;
    [...table.tHead.rows[0].cells].forEach((th, column) => {
      const button = document.createElement("button");
      button.textContent = th.textContent;
      th.textContent = "";
      th.append(button);
      button.onclick = () => {
        const numeric = th.classList.contains("n");
        const down = th.getAttribute("aria-sort") ? th.getAttribute("aria-sort") !== "descending" : numeric;
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        th.setAttribute("aria-sort", down ? "descending" : "ascending");
        const key = (row) => numeric ? Number(row.cells[column].dataset.k || -1) : row.cells[column].textContent;
        const order = (a, b) => { const x = key(a), y = key(b); return x < y ? -1 : x > y ? 1 : 0; };
        body.append(...[...body.rows].sort((a, b) => (down ? -order(a, b) : order(a, b))));
      };
    });
    if (body.rows.length < 25) continue;
    const input = document.createElement("input");
    input.className = "filter";
    input.type = "search";
    input.placeholder = "Filter " + body.rows.length + " rows";
    input.setAttribute("aria-label", "Filter rows");
    input.oninput = () => {
      const want = input.value.toLowerCase();
      for (const row of body.rows) row.hidden = !row.textContent.toLowerCase().includes(want);
    };
    table.parentElement.before(input);
  }
})();
