//! The timeline in characters: the heap as filled columns, marks below it, and small lines of what
//! else is measured.

use super::app::{SPANS, Watch};
use live_analysis::metrics::{METRICS, Row};
use live_analysis::timeline::EventKind;
use live_session::recording::state::TimelineAnswer;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use report::units::{self, human_bytes};

/// Eighths of a cell, from below.
const EIGHTHS: [&str; 9] = [" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];
/// Spaces of the heap that new objects are in, and those that they are promoted to.
const YOUNG: [&str; 2] = ["eden_bytes", "survivor_bytes"];
/// Metrics with a line of their own.
const LINES: [&str; 6] = [
    "resident_bytes",
    "allocated_bytes_per_second",
    "cpu_cores",
    "gc_time_share",
    "threads",
    "tracked_live_objects",
];

fn sum(row: &Row, names: &[&str]) -> Option<f64> {
    let known: Vec<f64> = names.iter().filter_map(|name| row.get(name)).collect();
    (!known.is_empty()).then(|| known.iter().sum())
}

/// Used heap, young and old.
pub(super) fn used(row: &Row) -> Option<f64> {
    sum(row, &[YOUNG[0], YOUNG[1], "old_bytes"])
}

/// The times that a timeline of the last rows shows.
pub(super) fn shown(app: &Watch, first: Option<u64>) -> (u64, u64) {
    let rows = &app.status.rows;
    let to = rows.last().map_or(0, |row| row.time_ms);
    let span = match SPANS[app.span] {
        0 => u64::MAX,
        span => span,
    };
    let from = to.saturating_sub(span).max(first.unwrap_or(0));
    (from.min(to.saturating_sub(1000)), to)
}

/// Mean values by column of the screen; the last known one where none was measured, but none where the program
/// was not monitored.
fn columns(
    answer: &TimelineAnswer,
    (from, to): (u64, u64),
    width: usize,
    value: impl Fn(&Row) -> Option<f64>,
) -> Vec<Option<f64>> {
    let mut sums = vec![(0.0, 0u32, false); width];
    for row in &answer.rows {
        let Some(at) = column_of(row.time_ms, (from, to), width) else {
            continue;
        };
        match value(row) {
            Some(value) => sums[at] = (sums[at].0 + value, sums[at].1 + 1, false),
            None => sums[at].2 |= !row.is_known(),
        }
    }
    let mut last = None;
    let means = sums.into_iter().map(|(sum, count, is_end)| {
        if count > 0 {
            last = Some(sum / f64::from(count));
        }
        let shown = last;
        last = last.filter(|_| !is_end);
        shown
    });
    means.collect()
}

fn column_of(time: u64, (from, to): (u64, u64), width: usize) -> Option<usize> {
    if time < from || time > to || width == 0 {
        return None;
    }
    let share = (time - from) as f64 / (to - from).max(1) as f64;
    Some(((share * width as f64) as usize).min(width - 1))
}

/// The heap in so many lines, a line of marks below it.
pub(super) fn heap(
    app: &Watch,
    answer: &TimelineAnswer,
    (width, height): (usize, usize),
    color: bool,
) -> Vec<Line<'static>> {
    let times = shown(app, answer.rows.first().map(|row| row.time_ms));
    let old = columns(answer, times, width, |row| row.get("old_bytes"));
    let all = columns(answer, times, width, used);
    let committed = columns(answer, times, width, |row| row.get("heap_committed_bytes"));
    let most = |of: &[Option<f64>]| of.iter().flatten().copied().fold(0.0, f64::max);
    let scale = most(&all).max(most(&committed)).max(1.0);
    let (old_style, young_style) = match color {
        true => (Style::new().fg(Color::Blue), Style::new().fg(Color::Cyan)),
        false => (Style::new(), Style::new()),
    };
    let young_full = if color { "█" } else { "▒" };
    let dim = Style::new().add_modifier(Modifier::DIM);
    let span = times.1.saturating_sub(times.0) as f64 / 1000.0;
    let mut lines = vec![Line::from(vec![
        Span::styled("heap, up to ", dim),
        Span::raw(human_bytes(scale as u64)),
        Span::styled(format!(", {span:.0} s:  "), dim),
        Span::styled("█", old_style),
        Span::styled(" old  ", dim),
        Span::styled(young_full, young_style),
        Span::styled(" young  ▴ collection  ◆ mark", dim),
    ])];
    for line in (0..height).rev() {
        let mut spans = Vec::with_capacity(width);
        for at in 0..width {
            let eighths = |value: Option<f64>| {
                (value.unwrap_or(0.0) / scale * (height * 8) as f64).round() as usize
            };
            let below = line * 8;
            let (total, old) = (eighths(all[at]), eighths(old[at]));
            let is_old = old >= below + 4 || total <= old;
            let text = match total.saturating_sub(below).min(8) {
                8 if !is_old => young_full,
                fill => EIGHTHS[fill],
            };
            spans.push(Span::styled(
                text,
                if is_old { old_style } else { young_style },
            ));
        }
        lines.push(Line::from(spans));
    }
    lines.push(marks(app, answer, times, width));
    lines
}

/// Collections, marks and the ends of the range.
fn marks(app: &Watch, answer: &TimelineAnswer, times: (u64, u64), width: usize) -> Line<'static> {
    let mut cells = vec![' '; width];
    for event in &answer.events {
        let Some(at) = column_of(event.time_ms, times, width) else {
            continue;
        };
        match event.kind {
            EventKind::Gc { .. } if cells[at] == ' ' => cells[at] = '▴',
            EventKind::Gc { .. } => {}
            EventKind::Marker { .. } => cells[at] = '◆',
        }
    }
    for (end, sign) in [(app.range.0, '['), (app.range.1, ']')] {
        if let Some(at) = end.and_then(|time| column_of(time, times, width)) {
            cells[at] = sign;
        }
    }
    Line::raw(cells.into_iter().collect::<String>())
}

/// A line for each other metric that is known: name, course, present value.
pub(super) fn lines(app: &Watch, answer: &TimelineAnswer, width: usize) -> Vec<Line<'static>> {
    let times = shown(app, answer.rows.first().map(|row| row.time_ms));
    let room = width.saturating_sub(30);
    let mut out = Vec::new();
    for name in LINES {
        let Some(metric) = METRICS.iter().find(|metric| metric.name == name) else {
            continue;
        };
        let values = columns(answer, times, room, |row| row.get(name));
        let Some(Some(last)) = values.last().copied() else {
            continue;
        };
        let most = values.iter().flatten().copied().fold(0.0, f64::max);
        let course: String = values
            .iter()
            .map(|value| match value {
                None => " ",
                Some(value) if most <= 0.0 => EIGHTHS[usize::from(*value > 0.0)],
                Some(value) => EIGHTHS[((value / most * 8.0).round() as usize).clamp(1, 8)],
            })
            .collect();
        out.push(Line::from(vec![
            Span::styled(
                format!("{:<16}", metric.title),
                Style::new().add_modifier(Modifier::DIM),
            ),
            Span::raw(course),
            Span::raw(format!(" {:>13}", units::metric(metric.unit, last))),
        ]));
    }
    out
}
