//! Documents for a terminal or a pipe: aligned columns, numbers on the right, class names
//! shortened from the left when the screen is narrow.

use crate::doc::{Align, Block, Cell, Doc, Span, Table};
use crate::escape::visible;
use crate::units::{Sizes, grouped, percent, plural};

/// How to show a document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Columns of the screen; `None` for no limit (a pipe).
    pub width: Option<usize>,
    /// Use colour.
    pub color: bool,
    /// Sizes as numbers of bytes: alone in a column of numbers, with their unit in a sentence.
    pub raw_bytes: bool,
}

/// Columns are padded up to this width: one text of a megabyte must not make every row as long.
const MOST_PADDED: usize = 200;

/// A piece of output and its width on the screen.
struct Piece {
    text: String,
    width: usize,
}

/// Renders a document; ends with a line end unless it is empty.
pub fn render(doc: &Doc, look: &Look) -> String {
    let mut out = String::new();
    for (n, block) in doc.blocks.iter().enumerate() {
        if n > 0 && needs_gap(&doc.blocks[n - 1], block) {
            out.push('\n');
        }
        match block {
            Block::Heading(_, spans) => {
                let piece = text_piece(spans, look);
                out.push_str(&paint(&piece.text, "1", look));
                out.push('\n');
            }
            Block::Text(spans) => {
                let piece = text_piece(spans, look);
                wrap(&piece.text, look, &mut out);
            }
            Block::Note(spans) => {
                let piece = text_piece(spans, look);
                wrap(&paint(&piece.text, "2", look), look, &mut out);
            }
            Block::Facts(facts) => render_facts(facts, look, &mut out),
            Block::Table(table) => render_table(table, look, &mut out),
            Block::Lines(lines) => {
                for line in lines {
                    out.push_str("    ");
                    out.push_str(&visible(line));
                    out.push('\n');
                }
            }
        }
    }
    out
}

fn needs_gap(before: &Block, block: &Block) -> bool {
    match (before, block) {
        (_, Block::Note(_)) => true,
        (Block::Heading(..), _) => false,
        (_, Block::Heading(..)) => true,
        (Block::Text(_), Block::Lines(_) | Block::Text(_) | Block::Table(_)) => false,
        (Block::Table(_), Block::Text(_) | Block::Table(_)) => true,
        _ => false,
    }
}

fn paint(text: &str, code: &str, look: &Look) -> String {
    if look.color && !text.is_empty() {
        format!("\x1b[{code}m{text}\x1b[0m")
    } else {
        text.to_owned()
    }
}

/// A span as plain text.
fn span_text(span: &Span, sizes: Sizes) -> String {
    match span {
        Span::Text(t)
        | Span::Strong(t)
        | Span::Dim(t)
        | Span::Class(t)
        | Span::Name { text: t, .. }
        | Span::Value(t) => visible(t).into_owned(),
        Span::Object(id) => format!("@{id}"),
        Span::Bytes(n) | Span::StrongBytes(n) => sizes.show(*n),
        Span::Count(n) => grouped(*n),
        Span::Share(share) => percent(*share),
    }
}

fn span_color(span: &Span) -> Option<&'static str> {
    match span {
        Span::Strong(_) | Span::StrongBytes(_) => Some("1"),
        Span::Dim(_) | Span::Object(_) => Some("2"),
        Span::Value(_) => Some("36"),
        _ => None,
    }
}

/// Joins the spans of a text.
fn text_piece(spans: &[Span], look: &Look) -> Piece {
    spans_piece(spans, look, Sizes::in_text(look.raw_bytes), None)
}

/// Joins spans; `limit` is the available width.
fn spans_piece(spans: &[Span], look: &Look, sizes: Sizes, limit: Option<usize>) -> Piece {
    let mut parts: Vec<(String, Option<&str>, bool)> = spans
        .iter()
        .map(|s| {
            (
                span_text(s, sizes),
                span_color(s),
                matches!(s, Span::Class(_) | Span::Name { .. }),
            )
        })
        .collect();
    if let Some(limit) = limit {
        fit(&mut parts, limit);
    }
    let width = parts.iter().map(|(t, ..)| t.chars().count()).sum();
    let text = parts
        .iter()
        .map(|(text, color, _)| match color {
            Some(code) => paint(text, code, look),
            None => text.clone(),
        })
        .collect();
    Piece { text, width }
}

/// Shortens to the limit: first the parts after the class name, from the end, then the beginning of the class name,
/// because the end of a class name is the distinctive part.
fn fit(parts: &mut Vec<(String, Option<&str>, bool)>, limit: usize) {
    let width = |parts: &[(String, Option<&str>, bool)]| -> usize {
        parts.iter().map(|(t, ..)| t.chars().count()).sum()
    };
    let mut over = width(parts).saturating_sub(limit);
    for (text, _, is_class) in parts.iter_mut().rev() {
        if over == 0 {
            break;
        }
        let len = text.chars().count();
        if *is_class {
            *text = shorten_left(text, len.saturating_sub(over).max(8));
        } else {
            let keep = len.saturating_sub(over + 1);
            *text = if keep == 0 {
                String::new()
            } else {
                text.chars().take(keep).chain(['…']).collect()
            };
        }
        over -= over.min(len - text.chars().count());
    }
    parts.retain(|(t, ..)| !t.is_empty());
}

/// `…util.concurrent.ConcurrentHashMap$Node`: cut at a dot where there is one.
pub fn shorten_left(name: &str, width: usize) -> String {
    let len = name.chars().count();
    if len <= width || width == 0 {
        return name.to_owned();
    }
    let tail: String = name.chars().skip(len - width + 1).collect();
    let at_dot = tail.find('.').filter(|at| *at + 1 < tail.len());
    match at_dot {
        Some(at) => format!("…{}", &tail[at + 1..]),
        None => format!("…{tail}"),
    }
}

fn wrap(text: &str, look: &Look, out: &mut String) {
    let Some(width) = look.width else {
        out.push_str(text);
        out.push('\n');
        return;
    };
    let indent: String = text.chars().take_while(|c| *c == ' ').collect();
    let mut column = 0;
    for (n, word) in text.trim_start().split(' ').enumerate() {
        // Colour codes have no width.
        let mut escaped = false;
        let len = word
            .chars()
            .filter(|c| {
                let hidden = escaped || *c == '\x1b';
                escaped = hidden && *c != 'm';
                !hidden
            })
            .count();
        if n == 0 {
            out.push_str(&indent);
            column = indent.len();
        } else if column + 1 + len > width {
            out.push('\n');
            out.push_str(&indent);
            column = indent.len();
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += len;
    }
    out.push('\n');
}

fn render_facts(facts: &[(&'static str, Vec<Span>)], look: &Look, out: &mut String) {
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, spans) in facts {
        let piece = text_piece(spans, look);
        let padded = format!("{name:width$}");
        out.push_str(&format!("{}  {}\n", paint(&padded, "2", look), piece.text));
    }
}

fn cell_piece(cell: &Cell, align: Align, look: &Look, limit: Option<usize>) -> Piece {
    let indent = cell.indent * 2;
    let sizes = Sizes::in_column(look.raw_bytes, align);
    let limit = limit.map(|l| l.saturating_sub(indent));
    let mut piece = spans_piece(&cell.spans, look, sizes, limit);
    piece.text.insert_str(0, &" ".repeat(indent));
    piece.width += indent;
    piece
}

fn render_table(table: &Table, look: &Look, out: &mut String) {
    if table.rows.is_empty() {
        out.push_str(&paint(table.when_empty, "2", look));
        out.push('\n');
        return;
    }
    let columns = table.columns.len();
    let all = || table.rows.iter().chain(&table.total);
    let mut widths: Vec<usize> = table
        .columns
        .iter()
        .map(|c| visible(&c.title).chars().count())
        .collect();
    for row in all() {
        for (n, cell) in row.iter().enumerate().take(columns) {
            let piece = cell_piece(cell, table.columns[n].align, look, None);
            widths[n] = widths[n].max(piece.width);
        }
    }
    // Only the last column of words is shortened: it has the names.
    let flexible = table.columns.iter().rposition(|c| c.align == Align::Left);
    let mut limit = None;
    if let (Some(width), Some(n)) = (look.width, flexible) {
        let others: usize = widths.iter().sum::<usize>() - widths[n] + 2 * (columns - 1);
        let room = width.saturating_sub(others).max(24);
        if widths[n] > room {
            widths[n] = room;
            limit = Some((n, room));
        }
    }
    widths
        .iter_mut()
        .for_each(|width| *width = (*width).min(MOST_PADDED));
    let mut line = |cells: Vec<Piece>, dim: bool| {
        let mut text = String::new();
        for (n, piece) in cells.iter().enumerate() {
            if n > 0 {
                text.push_str("  ");
            }
            let pad = " ".repeat(widths[n].saturating_sub(piece.width));
            let last = n + 1 == cells.len();
            match table.columns[n].align {
                Align::Right => text.push_str(&format!("{pad}{}", piece.text)),
                Align::Left if last => text.push_str(&piece.text),
                Align::Left => text.push_str(&format!("{}{pad}", piece.text)),
            }
        }
        let text = text.trim_end();
        out.push_str(&if dim {
            paint(text, "2", look)
        } else {
            text.to_owned()
        });
        out.push('\n');
    };
    let titles = table.columns.iter().map(|c| Piece {
        text: visible(&c.title).into_owned(),
        width: visible(&c.title).chars().count(),
    });
    line(titles.collect(), true);
    for row in all() {
        let cells = row.iter().enumerate().take(columns).map(|(n, cell)| {
            let room = limit.filter(|(at, _)| *at == n).map(|(_, room)| room);
            cell_piece(cell, table.columns[n].align, look, room)
        });
        line(cells.collect(), false);
    }
    if table.omitted > 0 {
        let text = format!("… {}", plural(table.omitted, "more row", "more rows"));
        out.push_str(&paint(&text, "2", look));
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc::{number, words};

    fn sample() -> Doc {
        let mut table = Table::new([number("objects"), number("shallow"), words("class")]);
        table.row([
            Cell::count(1_234_567),
            Cell::bytes(hprof::Bytes(2048)),
            Cell::class("com.example.deep.inside.SomeService$Entry"),
        ]);
        table.row([
            Cell::count(1),
            Cell::bytes(hprof::Bytes(16)),
            Cell::class("evil\x1b[2J"),
        ]);
        table.omitted = 1;
        Doc::new().heading("Classes").table(table)
    }

    #[test]
    fn columns_line_up_and_names_are_harmless() {
        assert_eq!(
            render(&sample(), &Look::default()),
            "Classes\n\
             \x20 objects  shallow  class\n\
             1,234,567  2.0 KiB  com.example.deep.inside.SomeService$Entry\n\
             \x20       1     16 B  evil\\u{1b}[2J\n\
             … 1 more row\n"
        );
    }

    #[test]
    fn a_narrow_screen_shortens_names_from_the_left() {
        let look = Look {
            width: Some(46),
            ..Look::default()
        };
        let text = render(&sample(), &look);
        assert!(text.lines().all(|l| l.chars().count() <= 46), "{text}");
        assert!(text.contains("…inside.SomeService$Entry"), "{text}");
    }

    #[test]
    fn one_long_text_does_not_make_every_row_as_long() {
        let mut table = Table::new([words("value"), number("length")]);
        table.row([Cell::value("x".repeat(100_000)), Cell::count(100_000)]);
        for n in 0..100 {
            table.row([Cell::value("short"), Cell::count(n)]);
        }
        let text = render(&Doc::new().table(table), &Look::default());
        assert!(text.len() < 130_000, "{}", text.len());
        let row = text.lines().last().expect("a row");
        assert_eq!(row, format!("short{:202}99", ""));
    }

    #[test]
    fn numbers_of_bytes_have_their_unit_in_a_sentence() {
        let mut table = Table::new([number("shallow"), words("what")]);
        table.row([
            Cell::new([Span::from("+"), Span::Bytes(2048)]),
            Cell::new([Span::from("half of "), Span::Bytes(4096)]),
        ]);
        let doc = Doc::new()
            .text([
                Span::StrongBytes(40_006_848),
                Span::from(" in use; unreachable "),
                Span::Bytes(0),
            ])
            .facts(vec![("file", vec![Span::Bytes(12_000_016)])])
            .table(table);
        let look = Look {
            raw_bytes: true,
            ..Look::default()
        };
        assert_eq!(
            render(&doc, &look),
            "40,006,848 B in use; unreachable 0 B\n\
             file  12,000,016 B\n\
             shallow  what\n\
             \x20 +2048  half of 4,096 B\n"
        );
        let page = crate::markdown::render(&doc, true);
        assert!(page.contains("**40,006,848 B** in use"), "{page}");
        assert!(page.contains("| +2048 | half of 4,096 B |"), "{page}");
    }

    #[test]
    fn names_are_cut_at_a_dot() {
        assert_eq!(shorten_left("a.b.Name", 20), "a.b.Name");
        assert_eq!(shorten_left("com.example.Name", 12), "…Name");
        assert_eq!(shorten_left("Name$WithALongTail", 10), "…ALongTail");
    }
}
