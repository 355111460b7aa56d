//! Blocks of a document as HTML.

use crate::doc::{Align, Block, Cell, Doc, Span, Table};
use crate::escape::html as escape;
use crate::units::{grouped, human_bytes, percent, plural};
use std::fmt::Write;

/// Renders a document. Headings begin at `level` (2 makes them `h2`).
pub fn render(doc: &Doc, level: u8) -> String {
    let mut out = String::new();
    let mut blocks = doc.blocks.iter().peekable();
    while let Some(block) = blocks.next() {
        match block {
            Block::Heading(depth, spans) => {
                let h = (level + depth - 1).min(6);
                out.push_str(&format!("<h{h}>{}</h{h}>\n", line(spans)));
            }
            Block::Text(spans) => out.push_str(&format!("<p>{}</p>\n", line(spans))),
            Block::Note(spans) => {
                out.push_str(&format!("<p class=\"note\">{}</p>\n", line(spans)));
            }
            Block::Facts(facts) => {
                out.push_str("<dl>\n");
                for (name, spans) in facts {
                    out.push_str(&format!("<dt>{name}</dt><dd>{}</dd>\n", line(spans)));
                }
                out.push_str("</dl>\n");
            }
            Block::Table(table) => render_table(table, &mut out),
            Block::Lines(lines) => {
                out.push_str("<pre>");
                push_lines(lines, &mut out);
                // Consecutive lines are one stack.
                while let Some(Block::Lines(more)) = blocks.peek() {
                    push_lines(more, &mut out);
                    blocks.next();
                }
                out.push_str("</pre>\n");
            }
        }
    }
    out
}

fn push_lines(lines: &[String], out: &mut String) {
    for text in lines {
        out.push_str(&escape(text));
        out.push('\n');
    }
}

pub(super) fn line(spans: &[Span]) -> String {
    spans.iter().map(span).collect()
}

fn span(span: &Span) -> String {
    match span {
        Span::Text(t) => escape(t),
        Span::Strong(t) => format!("<b>{}</b>", escape(t)),
        Span::Dim(t) => format!("<i>{}</i>", escape(t)),
        Span::Class(t) => format!("<span class=\"c\">{}</span>", escape(t)),
        Span::Name { text, set } => {
            let set = set.as_deref().unwrap_or_default();
            let (text, set) = (escape(text), escape(set));
            format!("<span class=\"c\" data-set=\"{set}\">{text}</span>")
        }
        Span::Value(t) => format!("<span class=\"v\">{}</span>", escape(t)),
        Span::Object(id) => format!("<code>{id}</code>"),
        Span::StrongBytes(n) => format!("<b>{}</b>", self::span(&Span::Bytes(*n))),
        Span::Bytes(n) => format!(
            "<span title=\"{} bytes\">{}</span>",
            grouped(*n),
            human_bytes(*n)
        ),
        Span::Count(n) => grouped(*n),
        Span::Share(share) => percent(*share),
    }
}

/// The number that a cell is sorted by.
fn sort_key(cell: &Cell) -> Option<String> {
    match cell.spans.first()? {
        Span::Bytes(n) | Span::StrongBytes(n) | Span::Count(n) => Some(n.to_string()),
        Span::Share(share) => Some(format!("{share:.6}")),
        _ => None,
    }
}

fn cell_html(cell: &Cell, align: Align, out: &mut String) {
    out.push_str("<td");
    if align == Align::Right {
        out.push_str(" class=\"n\"");
        if let Some(key) = sort_key(cell) {
            let _ = write!(out, " data-k=\"{key}\"");
        }
    }
    let mut style = String::new();
    if let Some(share) = cell.bar {
        let _ = write!(style, "--b:{:.1}%", share.clamp(0.0, 1.0) * 100.0);
    }
    if cell.indent > 0 {
        let _ = write!(style, "padding-left:{}em", cell.indent as f64 * 1.2 + 0.5);
    }
    if !style.is_empty() {
        let _ = write!(out, " style=\"{style}\"");
    }
    let _ = write!(out, ">{}</td>", line(&cell.spans));
}

fn row_html(row: &[Cell], table: &Table, class: &str, out: &mut String) {
    let _ = write!(out, "<tr{class}>");
    for (cell, column) in row.iter().zip(&table.columns) {
        cell_html(cell, column.align, out);
    }
    out.push_str("</tr>\n");
}

fn render_table(table: &Table, out: &mut String) {
    if table.rows.is_empty() {
        let _ = writeln!(out, "<p class=\"empty\">{}</p>", escape(table.when_empty));
        return;
    }
    // A tree loses its meaning when it is sorted.
    let is_tree = table.rows.iter().flatten().any(|c| c.indent > 0);
    let class = if is_tree { " class=\"tree\"" } else { "" };
    let _ = write!(
        out,
        "<div class=\"t\" tabindex=\"0\"><table{class}>\n<thead><tr>"
    );
    for column in &table.columns {
        let class = match column.align {
            Align::Right => " class=\"n\"",
            Align::Left => "",
        };
        let title = crate::escape::html(&column.title);
        let _ = write!(out, "<th scope=\"col\"{class}>{title}</th>");
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        row_html(row, table, "", out);
    }
    out.push_str("</tbody>\n");
    if let Some(total) = &table.total {
        out.push_str("<tfoot>");
        row_html(total, table, "", out);
        out.push_str("</tfoot>\n");
    }
    out.push_str("</table></div>\n");
    if table.omitted > 0 {
        let more = plural(table.omitted, "more row", "more rows");
        let _ = writeln!(out, "<p class=\"empty\">… {more}</p>");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc::{number, words};

    #[test]
    fn names_from_the_dump_are_text() {
        let mut table = Table::new([number("objects"), words("class")]);
        table.row([Cell::count(1), Cell::class("<script>alert(1)</script>")]);
        let page = render(&Doc::new().table(table), 2);
        assert!(!page.contains("<script>"), "{page}");
        assert!(page.contains("&lt;script&gt;"), "{page}");
    }
}
