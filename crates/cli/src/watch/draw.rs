//! The state on the screen: the program, its memory, the timeline, a table, a word or the keys.

use super::app::{KEYS, Prompt, Watch};
use super::chart;
use super::sheet::{Row, Sheet};
use super::view::View;
use crate::tui::draw::{from_the_left, keys};
use live_analysis::metrics::Unit;
use live_session::recording::program::Recording;
use live_session::recording::state::TimelineAnswer;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::Paragraph;
use report::escape::visible;
use report::units::{self, grouped};

/// Columns that the name keeps.
const NAME: usize = 28;
/// The keys at the bottom.
const FOOT: &str = "q end  ? keys  m a n j i f p v o views  ←→ sort  b group  / filter  Enter more  r record  g GC  d dump  e explore  t range";

fn bold() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

fn dim() -> Style {
    Style::new().add_modifier(Modifier::DIM)
}

/// Draws everything.
pub fn draw(app: &mut Watch, timeline: &TimelineAnswer, frame: &mut Frame<'_>, color: bool) {
    let area = frame.area();
    let width = usize::from(area.width);
    let accent = match color {
        true => Style::new().fg(Color::Cyan),
        false => bold(),
    };
    let mut above = vec![head(app, accent), memory(app)];
    // The timeline takes what a small screen can spare.
    let is_memory = app.view() == View::Memory;
    let spare = usize::from(area.height).saturating_sub(if is_memory { 14 } else { 20 });
    let most = if is_memory { 10 } else { 4 };
    if spare >= 3 {
        let height = (spare / 2).clamp(1, most);
        above.extend(chart::heap(app, timeline, (width, height), color));
        if is_memory {
            above.extend(chart::lines(app, timeline, width).into_iter().take(spare));
        }
    }
    let rows = [
        Constraint::Length(above.len() as u16),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ];
    let [top, title, body, foot] = Layout::vertical(rows).areas(area);
    frame.render_widget(Paragraph::new(Text::from(above)), top);
    if app.help {
        frame.render_widget(Line::styled("Keys", accent), title);
        frame.render_widget(keys(KEYS), body);
    } else {
        let heading = match app.sheet() {
            Some(Ok(sheet)) => format!(": {}", sheet.heading),
            _ => String::new(),
        };
        let text = from_the_left(&format!("{}{heading}", app.trail()), width);
        frame.render_widget(Line::styled(text, accent), title);
        table(app, frame, body);
    }
    frame.render_widget(foot_line(app, width), foot);
}

/// The program, and what is being recorded.
fn head(app: &Watch, accent: Style) -> Line<'static> {
    let status = &app.status;
    let mut spans = vec![
        Span::styled(visible(&status.name).into_owned(), accent),
        Span::raw(format!(" {}  ", status.pid)),
    ];
    if status.ended {
        spans.push(Span::styled("the program has ended  ", bold()));
    }
    spans.push(match &status.recording {
        None => Span::styled("nothing is recorded (r, s)", dim()),
        Some(recording) => {
            let what = match recording.recording {
                Recording::Full { .. } => "every allocation".to_owned(),
                Recording::Sampled { interval, .. } => {
                    format!("an allocation per {} bytes", grouped(interval))
                }
            };
            let state = match (recording.connected, recording.on, recording.counting) {
                (false, ..) => "recorded",
                (_, false, _) => "stopped:",
                (_, true, false) => "changing classes to record",
                _ => "recording",
            };
            let snapshots = grouped(recording.snapshots as u64);
            Span::raw(format!("{state} {what}, {snapshots} snapshots"))
        }
    });
    if let Some(busy) = &status.busy {
        spans.push(Span::styled(format!("  {busy}…"), bold()));
    }
    Line::from(spans)
}

/// What is used at the moment.
fn memory(app: &Watch) -> Line<'static> {
    let Some(row) = app.status.rows.last() else {
        return Line::styled("nothing has been measured yet", dim());
    };
    let mut words = Vec::new();
    let mut say = |name: &str, unit: Unit, value: Option<f64>| {
        if let Some(value) = value {
            words.push(format!("{name} {}", units::metric(unit, value)));
        }
    };
    say("heap", Unit::Bytes, chart::used(row));
    say("of", Unit::Bytes, row.get("heap_committed_bytes"));
    say("metaspace", Unit::Bytes, row.get("metaspace_bytes"));
    say("resident", Unit::Bytes, row.get("resident_bytes"));
    say("container", Unit::Bytes, row.get("container_bytes"));
    say("of", Unit::Bytes, row.get("container_limit_bytes"));
    let rate = row.get("allocated_bytes_per_second");
    say("allocating", Unit::BytesPerSecond, rate);
    say("CPU", Unit::Share, row.get("cpu_cores"));
    say("GC", Unit::Share, row.get("gc_time_share"));
    say("threads", Unit::Count, row.get("threads"));
    say("tracked", Unit::Count, row.get("tracked_live_objects"));
    Line::raw(words.join("  "))
}

/// Which columns fit: from the first one that is shown to the last.
fn fitting(widths: &[usize], room: usize, sort: usize) -> std::ops::Range<usize> {
    let wanted = sort.min(widths.len().saturating_sub(1));
    let fits = |range: std::ops::Range<usize>| {
        widths[range].iter().map(|width| width + 2).sum::<usize>() <= room
    };
    let mut range = 0..widths.len();
    while range.end > range.start && !fits(range.clone()) {
        // The sorted column stays; what is far behind it goes first.
        if range.end > wanted + 1 {
            range.end -= 1;
        } else {
            range.start += 1;
        }
    }
    range
}

fn table(app: &mut Watch, frame: &mut Frame<'_>, area: Rect) {
    let sheet = match app.sheet() {
        None => return frame.render_widget(Line::styled("asking…", dim()), area),
        Some(Err(error)) => {
            let text = visible(error).into_owned();
            let is_kept = matches!(app.view(), View::Changes | View::Source);
            let hint = match app.status.recording {
                _ if is_kept => "Backspace goes back",
                None => "r records every allocation, s a sample; d takes a heap dump",
                Some(_) => "d takes a heap dump; Space asks again",
            };
            let lines = [Line::raw(text), Line::styled(hint, dim())];
            return frame.render_widget(Paragraph::new(Text::from_iter(lines)), area);
        }
        Some(Ok(sheet)) => sheet.clone(),
    };
    if sheet.rows.is_empty() {
        app.height = 1;
        return frame.render_widget(Line::styled(sheet.empty, dim()), area);
    }
    let (chosen, open, _) = app.chosen();
    let details = sheet.rows.get(chosen).filter(|_| open);
    let details = details.map_or(&[][..], |row| &row.details[..]);
    let most = usize::from(area.height) / 2;
    let below = if details.is_empty() {
        0
    } else {
        (details.len() + 1).min(most)
    };
    let parts = [Constraint::Min(1), Constraint::Length(below as u16)];
    let [body, pane] = Layout::vertical(parts).areas(area);
    app.height = usize::from(body.height).saturating_sub(1).max(1);
    let text = Text::from(lines_of(app, &sheet, body));
    frame.render_widget(Paragraph::new(text), body);
    let mut lines = vec![Line::styled("─".repeat(usize::from(pane.width)), dim())];
    lines.extend(details.iter().map(|line| Line::raw(line.clone())));
    frame.render_widget(Paragraph::new(Text::from(lines)), pane);
}

fn lines_of(app: &Watch, sheet: &Sheet, area: Rect) -> Vec<Line<'static>> {
    let (chosen, _, sort) = app.chosen();
    let columns = app.view().columns();
    let arrow = if app.up() { "▲" } else { "▼" };
    let is_sorted = columns.iter().any(|column| !column.1.is_empty());
    let title = |at: usize, text: &str| match is_sorted && at == sort {
        true => format!("{arrow}{text}"),
        false => text.to_owned(),
    };
    let widths: Vec<usize> = (0..columns.len())
        .map(|at| {
            let cells = sheet.rows.iter().filter_map(|row| row.cells.get(at));
            let most = cells.map(|cell| cell.chars().count()).max().unwrap_or(0);
            most.max(columns[at].0.chars().count() + 1)
        })
        .collect();
    let width = usize::from(area.width);
    let range = fitting(&widths, width.saturating_sub(NAME), sort);
    let taken: usize = widths[range.clone()].iter().map(|width| width + 2).sum();
    let room = width.saturating_sub(taken);
    let mut head = String::new();
    for at in range.clone() {
        head += &format!("{:>1$}  ", title(at, columns[at].0), widths[at]);
    }
    head += &title(columns.len(), app.view().name_head());
    let mut lines = vec![Line::styled(head, dim())];
    let line = |row: &Row| {
        let mut text = String::new();
        for at in range.clone() {
            let cell = row.cells.get(at).map_or("", String::as_str);
            text += &format!("{cell:>0$}  ", widths[at]);
        }
        text + &from_the_left(&row.name, room)
    };
    let height = usize::from(area.height).saturating_sub(1);
    let top = chosen.saturating_sub(height.saturating_sub(1) * 2 / 3);
    let top = top.min(sheet.rows.len().saturating_sub(height));
    for (at, row) in sheet.rows.iter().enumerate().skip(top).take(height) {
        let style = match at == chosen {
            true => Style::new().add_modifier(Modifier::REVERSED),
            false => Style::new(),
        };
        lines.push(Line::styled(format!("{:<width$}", line(row)), style));
    }
    lines
}

fn foot_line(app: &Watch, width: usize) -> Line<'static> {
    if let Some((prompt, text)) = &app.typing {
        let what = match prompt {
            Prompt::Filter => "class or frame contains",
            Prompt::Regex => "class or frame is like",
            Prompt::Mark => "mark",
            Prompt::Line => "the line (MODULE CLASS OPTIONS)",
            Prompt::NewLine => "new line (MODULE CLASS OPTIONS)",
        };
        return Line::raw(format!("{what}: {text}▏"));
    }
    let error = app.status.error.as_ref();
    let word = match app.message.is_empty() {
        true => error.map_or("", String::as_str),
        false => &app.message,
    };
    if !word.is_empty() {
        return Line::styled(visible(word).into_owned(), bold());
    }
    Line::styled(FOOT.chars().take(width).collect::<String>(), dim())
}
