//! The state on the screen: where we are, the lines, a word or the keys.

use super::app::{App, KEYS, Prompt};
use super::lines::Tone;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::Paragraph;

/// Draws everything.
pub fn draw(app: &mut App<'_>, frame: &mut Frame<'_>, color: bool) {
    let rows = [
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(1),
    ];
    let [head, body, foot] = Layout::vertical(rows).areas(frame.area());
    app.height = usize::from(body.height);
    let accent = if color {
        Style::new().fg(Color::Cyan)
    } else {
        Style::new().add_modifier(Modifier::BOLD)
    };
    // The end of the trail is what matters, so a long one is cut at its beginning.
    let trail = from_the_left(&app.trail(), usize::from(head.width).saturating_sub(2));
    frame.render_widget(Line::styled(trail, accent), head);
    if app.help {
        frame.render_widget(keys(KEYS), body);
    } else {
        lines(app, frame, body);
    }
    frame.render_widget(foot_line(app, usize::from(foot.width)), foot);
}

/// The end of a text that is too long: names differ at their ends.
pub(crate) fn from_the_left(text: &str, room: usize) -> String {
    let count = text.chars().count();
    if count <= room {
        return text.to_owned();
    }
    let rest: String = text.chars().skip(count - room.saturating_sub(1)).collect();
    format!("…{rest}")
}

/// Keys with what they do.
pub(crate) fn keys(keys: &'static [(&'static str, &'static str)]) -> Text<'static> {
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let line = |(keys, what): &(&'static str, &'static str)| {
        Line::from(vec![
            Span::styled(format!("{keys:<28}"), bold),
            Span::raw(*what),
        ])
    };
    Text::from_iter(keys.iter().map(line))
}

fn lines(app: &App<'_>, frame: &mut Frame<'_>, area: Rect) {
    let screen = app.screen();
    let height = usize::from(area.height);
    // The chosen line stays a little away from the edges.
    let top = screen
        .chosen
        .saturating_sub(height.saturating_sub(1) * 2 / 3);
    let top = top.min(screen.lines.len().saturating_sub(height));
    let shown = screen.lines.iter().enumerate().skip(top).take(height);
    let text = Text::from_iter(shown.map(|(n, line)| {
        let style = |tone: &Tone| match tone {
            Tone::Plain => Style::new(),
            Tone::Strong => Style::new().add_modifier(Modifier::BOLD),
            Tone::Dim => Style::new().add_modifier(Modifier::DIM),
        };
        let mark = if line.target.is_some() { "· " } else { "  " };
        let mut spans = vec![Span::styled(mark, style(&Tone::Dim))];
        spans.extend(
            line.pieces
                .iter()
                .map(|(tone, t)| Span::styled(t.as_str(), style(tone))),
        );
        let line = Line::from(spans);
        if n == screen.chosen {
            line.style(Style::new().add_modifier(Modifier::REVERSED))
        } else {
            line
        }
    }));
    frame.render_widget(Paragraph::new(text), area);
}

fn foot_line(app: &App<'_>, width: usize) -> Line<'static> {
    if let Some((prompt, text)) = &app.typing {
        let what = match prompt {
            Prompt::Search => "search",
            Prompt::Strings => "strings matching",
            Prompt::Object => "object id",
        };
        return Line::raw(format!("{what}: {text}▏"));
    }
    if !app.message.is_empty() {
        return Line::styled(
            app.message.clone(),
            Style::new().add_modifier(Modifier::BOLD),
        );
    }
    let screen = app.screen();
    let place = format!("{}/{}", screen.chosen + 1, screen.lines.len());
    let keys = "Enter open  Backspace back  p paths  r retained  / search  ? keys  q end";
    let text = format!("{place}  {}  {keys}", app.file);
    let text: String = text.chars().take(width).collect();
    Line::styled(text, Style::new().add_modifier(Modifier::DIM))
}
