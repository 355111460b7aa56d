//! A document as lines of a screen; a line knows what it leads to.

use heap_analysis::sets::spec::SetSpec;
use hprof::ObjectId;
use report::doc::{Align, Block, Cell, Doc, Span, Table};
use report::escape::visible;
use report::units::{grouped, human_bytes, percent};

/// What a line leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// An object.
    Object(ObjectId),
    /// A set of objects.
    Set(SetSpec),
}

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Plain.
    Plain,
    /// Headings and what matters.
    Strong,
    /// Background.
    Dim,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its pieces; no control characters in them.
    pub pieces: Vec<(Tone, String)>,
    /// What it leads to.
    pub target: Option<Target>,
}

impl Line {
    fn new(pieces: Vec<(Tone, String)>) -> Line {
        Line {
            pieces,
            target: None,
        }
    }

    /// The text alone.
    pub fn text(&self) -> String {
        self.pieces.iter().map(|(_, t)| t.as_str()).collect()
    }
}

/// The lines of a document. `targets` are those of the rows of its last table, where they are more
/// exact than the names in it.
pub fn of_doc(doc: &Doc, targets: &[Target]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let last_table = doc
        .blocks
        .iter()
        .rposition(|b| matches!(b, Block::Table(_)));
    for (n, block) in doc.blocks.iter().enumerate() {
        match block {
            Block::Heading(_, spans) => {
                if !lines.is_empty() {
                    lines.push(Line::new(Vec::new()));
                }
                let text: String = spans.iter().map(|s| piece(s).1).collect();
                lines.push(Line::new(vec![(Tone::Strong, text)]));
            }
            Block::Text(spans) => lines.push(of_spans(spans)),
            Block::Note(spans) => {
                let text: String = spans.iter().map(|s| piece(s).1).collect();
                lines.push(Line::new(vec![(Tone::Dim, text)]));
            }
            Block::Facts(facts) => {
                for (name, spans) in facts {
                    let mut line = of_spans(spans);
                    line.pieces.insert(0, (Tone::Dim, format!("{name:<12} ")));
                    lines.push(line);
                }
            }
            Block::Lines(texts) => {
                let shown = texts.iter().flat_map(|t| t.split('\n')).take(1000);
                lines.extend(shown.map(|t| Line::new(vec![(Tone::Plain, clean(t))])));
            }
            Block::Table(table) => {
                let exact = if Some(n) == last_table { targets } else { &[] };
                push_table(table, exact, &mut lines);
            }
        }
    }
    lines
}

fn clean(text: &str) -> String {
    visible(text).replace(['\n', '\t'], " ")
}

fn of_spans(spans: &[Span]) -> Line {
    Line {
        pieces: spans.iter().map(piece).collect(),
        target: target_of(spans),
    }
}

/// The first object of a row, else its first class.
fn target_of<'s>(spans: impl IntoIterator<Item = &'s Span> + Clone) -> Option<Target> {
    let object = spans.clone().into_iter().find_map(|span| match span {
        Span::Object(id) if !id.0.is_null() => Some(Target::Object(id.0)),
        _ => None,
    });
    object.or_else(|| {
        spans.into_iter().find_map(|span| match span {
            Span::Class(name) => {
                let name = name.strip_prefix("class ").unwrap_or(name);
                Some(Target::Set(SetSpec::Class(name.to_owned())))
            }
            Span::Name { set, .. } => set.as_ref()?.parse().ok().map(Target::Set),
            _ => None,
        })
    })
}

fn piece(span: &Span) -> (Tone, String) {
    match span {
        Span::Text(t) => (Tone::Plain, clean(t)),
        Span::Strong(t) => (Tone::Strong, clean(t)),
        Span::Dim(t) | Span::Value(t) => (Tone::Dim, clean(t)),
        Span::Class(t) | Span::Name { text: t, .. } => (Tone::Plain, clean(t)),
        Span::Object(id) => (Tone::Dim, id.to_string()),
        Span::Bytes(n) => (Tone::Plain, human_bytes(*n)),
        Span::StrongBytes(n) => (Tone::Strong, human_bytes(*n)),
        Span::Count(n) => (Tone::Plain, grouped(*n)),
        Span::Share(share) => (Tone::Plain, percent(*share)),
    }
}

fn cell_pieces(cell: &Cell) -> Vec<(Tone, String)> {
    let indent = (cell.indent > 0).then(|| (Tone::Plain, "  ".repeat(cell.indent.min(40))));
    indent
        .into_iter()
        .chain(cell.spans.iter().map(piece))
        .collect()
}

fn width(pieces: &[(Tone, String)]) -> usize {
    pieces.iter().map(|(_, t)| t.chars().count()).sum()
}

/// Columns of words in front of the last one are not wider than this.
const WORDS: usize = 40;

fn push_table(table: &Table, targets: &[Target], lines: &mut Vec<Line>) {
    if table.rows.is_empty() {
        lines.push(Line::new(vec![(Tone::Dim, table.when_empty.to_owned())]));
        return;
    }
    let rows: Vec<Vec<Vec<(Tone, String)>>> = table
        .rows
        .iter()
        .chain(&table.total)
        .map(|row| row.iter().map(cell_pieces).collect())
        .collect();
    let widths: Vec<usize> = (0..table.columns.len())
        .map(|c| {
            let most = rows.iter().filter_map(|r| r.get(c)).map(|p| width(p)).max();
            most.unwrap_or(0)
                .max(table.columns[c].title.chars().count())
                .min(WORDS)
        })
        .collect();
    let last = table.columns.len().saturating_sub(1);
    let put = |c: usize, cell: &[(Tone, String)], out: &mut Vec<(Tone, String)>| {
        let gap = widths[c].saturating_sub(width(cell));
        let right = table.columns[c].align == Align::Right;
        if right {
            out.push((Tone::Plain, " ".repeat(gap)));
        }
        out.extend_from_slice(cell);
        if c != last {
            out.push((Tone::Plain, " ".repeat(if right { 2 } else { gap + 2 })));
        }
    };
    let mut head = Vec::new();
    for (c, column) in table.columns.iter().enumerate() {
        put(c, &[(Tone::Dim, column.title.to_string())], &mut head);
    }
    lines.push(Line::new(head));
    for (n, row) in rows.iter().enumerate() {
        let mut pieces = Vec::new();
        for (c, cell) in row.iter().enumerate().take(table.columns.len()) {
            put(c, cell, &mut pieces);
        }
        let spans = table.rows.get(n);
        let named = spans.and_then(|row| target_of(row.iter().flat_map(|c| &c.spans)));
        lines.push(Line {
            pieces,
            target: targets
                .get(n)
                .cloned()
                .filter(|_| spans.is_some())
                .or(named),
        });
    }
    if table.omitted > 0 {
        let more = format!("… {} more", grouped(table.omitted));
        lines.push(Line::new(vec![(Tone::Dim, more)]));
    }
}
