//! Documents as Markdown that renders in an issue or a merge request.

use crate::doc::{Align, Block, Cell, Doc, Span, Table};
use crate::escape::markdown as escape;
use crate::units::{Sizes, grouped, percent, plural};

/// Renders a document.
pub fn render(doc: &Doc, raw_bytes: bool) -> String {
    let mut out = String::new();
    let sizes = Sizes::in_text(raw_bytes);
    for block in &doc.blocks {
        match block {
            Block::Heading(level, spans) => {
                let marks = "#".repeat(usize::from(*level) + 1);
                out.push_str(&format!("{marks} {}\n\n", line(spans, sizes)));
            }
            Block::Text(spans) => out.push_str(&format!("{}\n\n", line(spans, sizes).trim())),
            Block::Note(spans) => {
                out.push_str(&format!("<sub>{}</sub>\n\n", line(spans, sizes)));
            }
            Block::Facts(facts) => {
                out.push_str("| | |\n|---|---|\n");
                for (name, spans) in facts {
                    out.push_str(&format!("| {name} | {} |\n", line(spans, sizes)));
                }
                out.push('\n');
            }
            Block::Table(table) => render_table(table, raw_bytes, &mut out),
            Block::Lines(lines) => {
                for text in lines {
                    // Hard line breaks instead of a code fence, which a name could close.
                    out.push_str(&format!("&nbsp;&nbsp;{}  \n", escape(text)));
                }
                out.push('\n');
            }
        }
    }
    out
}

fn line(spans: &[Span], sizes: Sizes) -> String {
    spans.iter().map(|s| span(s, sizes)).collect()
}

fn span(span: &Span, sizes: Sizes) -> String {
    match span {
        Span::Text(t)
        | Span::Dim(t)
        | Span::Class(t)
        | Span::Name { text: t, .. }
        | Span::Value(t) => escape(t),
        Span::Strong(t) => format!("**{}**", escape(t)),
        Span::Object(id) => format!("`{id}`"),
        Span::Bytes(n) => sizes.show(*n),
        Span::StrongBytes(n) => format!("**{}**", sizes.show(*n)),
        Span::Count(n) => grouped(*n),
        Span::Share(share) => percent(*share),
    }
}

fn cell(cell: &Cell, sizes: Sizes) -> String {
    let indent = "&nbsp;&nbsp;".repeat(cell.indent);
    format!("{indent}{}", line(&cell.spans, sizes))
}

fn render_table(table: &Table, raw_bytes: bool, out: &mut String) {
    if table.rows.is_empty() {
        out.push_str(&format!("{}\n\n", table.when_empty));
        return;
    }
    let join = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    out.push_str(&join(
        table
            .columns
            .iter()
            .map(|c| crate::escape::markdown(&c.title))
            .collect(),
    ));
    let rules = table.columns.iter().map(|c| match c.align {
        Align::Left => "---".to_owned(),
        Align::Right => "---:".to_owned(),
    });
    out.push_str(&join(rules.collect()));
    for row in table.rows.iter().chain(&table.total) {
        let cells = row.iter().zip(&table.columns);
        let cells = cells.map(|(c, column)| cell(c, Sizes::in_column(raw_bytes, column.align)));
        out.push_str(&join(cells.collect()));
    }
    if table.omitted > 0 {
        let more = plural(table.omitted, "more row", "more rows");
        out.push_str(&format!("\n… {more}\n"));
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc::{number, words};

    #[test]
    fn tables_survive_hostile_names() {
        let mut table = Table::new([number("objects"), words("class")]);
        table.row([Cell::count(1000), Cell::class("a|b<script>")]);
        let text = render(&Doc::new().heading("T").table(table), false);
        assert_eq!(
            text,
            "## T\n\n| objects | class |\n| ---: | --- |\n| 1,000 | a\\|b&lt;script&gt; |\n\n"
        );
    }
}
