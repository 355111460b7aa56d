// A chart over time on a canvas: stacked areas or lines, marks, a selected range. Charts of one page
// share their range and their cursor.

import { fill, h } from "./dom.js";
import { clock } from "./format.js";

/** Milliseconds between two times on the axis. */
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400].map((s) => s * 1000);

/** Round values up to the largest one, at most so many. */
export function roundValues(most, count, binary) {
  const base = binary ? 2 : 10;
  const unit = base ** Math.floor(Math.log(most / count) / Math.log(base));
  const step = unit * (binary ? [1, 2] : [1, 2, 5, 10]).find((n) => most / (unit * n) <= count);
  return Array.from({ length: Math.floor(most / step) }, (_, n) => (n + 1) * step);
}

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/**
 * A chart of `series` ({name, title, color, line}), each a column of the rows. `format(value)` says a
 * value, whose ticks are at powers of two if `binary`. `model` is `{view(), rows(), events(), selection(), select(from, to), cursor, draw()}`;
 * the charts that share it have one cursor, the time that is pointed at.
 */
export function chart({ title, series, format, binary, stacked, main, model, floor }) {
  const canvas = h("canvas", { tabindex: "0", role: "img", "aria-label": title });
  const legend = h("figcaption");
  const element = h("figure", { class: main ? "chart main" : "chart" }, legend, canvas);
  let drag = null;

  const scale = () => {
    const { from, to } = model.view();
    const width = canvas.clientWidth || 1;
    return { from, to, width, x: (t) => ((t - from) / Math.max(1, to - from)) * width, t: (x) => from + (x / width) * (to - from) };
  };

  function top(rows) {
    let most = floor || 0;
    for (const row of rows) {
      let sum = 0;
      for (const s of series) {
        const value = row[s.at] || 0;
        if (stacked && !s.line) sum += value;
        else most = Math.max(most, value);
      }
      most = Math.max(most, sum);
    }
    return most * 1.08;
  }

  function draw() {
    const ratio = devicePixelRatio || 1;
    const height = canvas.clientHeight;
    const { from, to, width, x } = scale();
    if (!width || !height) return;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    const all = model.rows();
    const rows = all.filter((row) => row[0] >= from - 60000 && row[0] <= to + 60000);
    const peak = top(rows.filter((row) => row[0] >= from && row[0] <= to));
    const most = peak || 1;
    const foot = main ? 13 : 0;
    const y = (value) => height - foot - (value / most) * (height - foot - 14);
    grid(pen, x, [from, to], [width, height, foot]);
    const ticks = peak ? roundValues(peak / 1.08, main ? 4 : 2, binary) : [];
    for (const value of ticks) level(pen, y(value), width);
    if (stacked) watched(rows).forEach((run) => areas(pen, run, x, y));
    for (const s of series.filter((s) => !stacked || s.line)) line(pen, rows, s, x, y);
    pen.font = "11px system-ui";
    pen.textBaseline = "top";
    marks(pen, x, height - foot, from, to);
    range(pen, x, width, height);
    pen.fillStyle = style("--dim");
    for (const value of ticks) pen.fillText(format(value), 4, y(value) + 1);
    if (model.cursor !== null) {
      pen.strokeStyle = style("--dim");
      pen.beginPath();
      pen.moveTo(x(model.cursor), 0);
      pen.lineTo(x(model.cursor), height);
      pen.stroke();
    }
    caption(all);
  }

  function level(pen, at, width) {
    pen.strokeStyle = style("--line");
    pen.beginPath();
    pen.moveTo(0, Math.round(at) + 0.5);
    pen.lineTo(width, Math.round(at) + 0.5);
    pen.stroke();
  }

  /** Lines at round times, with the times below the main chart. */
  function grid(pen, x, [from, to], [width, height, foot]) {
    const step = STEPS.find((ms) => (ms / (to - from)) * width >= 80) || STEPS[STEPS.length - 1];
    const zone = new Date(from).getTimezoneOffset() * 60000;
    pen.font = "11px system-ui";
    pen.textBaseline = "bottom";
    pen.lineWidth = 1;
    let free = 0;
    for (let time = Math.ceil((from - zone) / step) * step + zone; time <= to; time += step) {
      const at = Math.round(x(time)) + 0.5;
      pen.strokeStyle = style("--line");
      pen.beginPath();
      pen.moveTo(at, 0);
      pen.lineTo(at, height - foot);
      pen.stroke();
      if (!foot) continue;
      const text = clock(time, step < 60000);
      pen.fillStyle = style("--dim");
      const wide = pen.measureText(text).width;
      const left = at - wide / 2;
      if (left < free || left + wide > width) continue;
      pen.fillText(text, left, height + 1);
      free = left + wide + 8;
    }
  }

  /** The rows in runs: one without any value says that nothing was measured from then until the next one. */
  function watched(rows) {
    const runs = [[]];
    for (const row of rows) {
      if (row.some((value, n) => n > 0 && value !== null)) runs[runs.length - 1].push(row);
      else runs.push([]);
    }
    return runs;
  }

  function areas(pen, all, x, y) {
    // Where nothing is known there is no area.
    const rows = all.filter((row) => series.some((s) => !s.line && row[s.at] !== null && row[s.at] !== undefined));
    let below = rows.map(() => 0);
    for (const s of series.filter((s) => !s.line)) {
      const above = rows.map((row, n) => below[n] + (row[s.at] || 0));
      pen.fillStyle = style(s.color);
      pen.beginPath();
      rows.forEach((row, n) => pen.lineTo(x(row[0]), y(above[n])));
      for (let n = rows.length - 1; n >= 0; n -= 1) pen.lineTo(x(rows[n][0]), y(below[n]));
      pen.fill();
      below = above;
    }
  }

  function line(pen, rows, s, x, y) {
    pen.strokeStyle = style(s.color);
    pen.lineWidth = 1.5;
    pen.setLineDash(s.dashed ? [5, 3] : []);
    pen.beginPath();
    let down = false;
    for (const row of rows) {
      const value = row[s.at];
      if (value === null || value === undefined) down = false;
      else if (down) pen.lineTo(x(row[0]), y(value));
      else {
        pen.moveTo(x(row[0]), y(value));
        down = true;
      }
    }
    pen.stroke();
    pen.setLineDash([]);
    pen.lineWidth = 1;
  }

  function marks(pen, x, height, from, to) {
    // Each label goes into the first row that is free at its place.
    const rows = [0, 0, 0, 0];
    const label = (text, at) => {
      const wide = pen.measureText(text).width + 6;
      const left = Math.max(0, Math.min(at + 3, x(to) - wide));
      const row = rows.findIndex((end) => end <= left);
      if (row < 0) return;
      rows[row] = left + wide;
      pen.fillText(text, left, 15 + 13 * row);
    };
    for (const event of model.events()) {
      if (event.time_ms < from || event.time_ms > to) continue;
      const at = x(event.time_ms);
      pen.fillStyle = style(event.kind === "gc" ? "--dim" : "--mark");
      if (event.kind === "gc") {
        pen.beginPath();
        pen.moveTo(at - 3, height);
        pen.lineTo(at + 3, height);
        pen.lineTo(at, height - 6);
        pen.fill();
      } else {
        pen.fillRect(at, 0, 1, height);
        if (main) label(event.text, at);
      }
    }
  }

  function range(pen, x, width, height) {
    const chosen = drag ? [Math.min(...drag), Math.max(...drag)] : model.selection();
    if (!chosen) return;
    const [a, b] = [Math.max(0, x(chosen[0])), Math.min(width, x(chosen[1]))];
    pen.fillStyle = style("--accent");
    pen.globalAlpha = 0.16;
    pen.fillRect(a, 0, b - a, height);
    pen.globalAlpha = 1;
    pen.fillRect(a, 0, 1, height);
    pen.fillRect(b - 1, 0, 1, height);
  }

  function caption(rows) {
    const until = model.cursor ?? model.view().to;
    let row = rows[rows.length - 1];
    if (row?.[0] > until) for (const one of rows) if (one[0] <= until || one === rows[0]) row = one;
    const when = model.cursor === null || !row ? "" : ` at ${clock(row[0])}`;
    fill(legend, h("b", null, title, when), series.map((s) => {
      const value = row ? row[s.at] : null;
      return value === null || value === undefined ? null
        : h("span", { title: s.about || null }, h("i", { vars: { background: `var(${s.color})` } }), s.title, " ", h("span", { class: "v" }, format(value)));
    }), near());
  }

  /** What happened near the cursor. */
  function near() {
    if (model.cursor === null || !main) return null;
    const { from, to, width } = scale();
    const close = ((to - from) / width) * 6;
    const found = model.events().filter((e) => Math.abs(e.time_ms - model.cursor) <= close).slice(-2);
    return found.map((e) => h("span", null, e.kind === "gc" ? `${e.collector}: ${e.cause}, ${e.pause_ms.toFixed(1)} ms${e.count > 1 ? ` (${e.count})` : ""}` : e.text));
  }

  const at = (event) => scale().t(event.clientX - canvas.getBoundingClientRect().left);
  canvas.addEventListener("pointermove", (event) => {
    model.cursor = at(event);
    if (drag) drag[1] = model.cursor;
    model.draw();
  });
  canvas.addEventListener("pointerleave", () => {
    model.cursor = null;
    model.draw();
  });
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    drag = [at(event), at(event)];
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!drag) return;
    const [a, b] = [Math.min(...drag), Math.max(...drag)];
    drag = null;
    const { from, to, width } = scale();
    // A click takes the range away.
    if (((b - a) / (to - from)) * width < 4) model.select(null);
    else model.select([Math.round(a), Math.round(b)]);
    event.preventDefault();
  });
  canvas.addEventListener("pointercancel", () => {
    drag = null;
    draw();
  });
  // With the keys: arrows move the cursor, with Shift they select.
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") model.select(null);
    if (!step) return;
    event.preventDefault();
    const { from, to } = scale();
    const before = model.cursor ?? to;
    model.cursor = Math.max(from, Math.min(to, before + (step * (to - from)) / 50));
    if (event.shiftKey) {
      drag = [drag ? drag[0] : before, model.cursor];
    }
    model.draw();
  });
  canvas.addEventListener("keyup", (event) => {
    if (event.key !== "Shift" || !drag) return;
    const range = [Math.min(...drag), Math.max(...drag)].map(Math.round);
    drag = null;
    if (range[0] < range[1]) model.select(range);
  });
  // It is drawn as soon as it has a place on the page, and whenever that changes.
  new ResizeObserver(() => draw()).observe(canvas);
  return { element, draw };
}
