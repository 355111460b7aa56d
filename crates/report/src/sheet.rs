//! The tables of any answer as [CSV](crate::csv): sizes in bytes, shares from 0 to 1.

use crate::csv::line;
use crate::doc::{Block, Cell, Doc, Span, Table};

/// All tables of a document, an empty line between them. A first column `level` gives the
/// depth in a table that is a tree.
pub fn render(doc: &Doc) -> String {
    let mut out = String::new();
    for block in &doc.blocks {
        if let Block::Table(table) = block {
            if !out.is_empty() {
                out.push_str("\r\n");
            }
            push_table(table, &mut out);
        }
    }
    out
}

fn push_table(table: &Table, out: &mut String) {
    let is_tree = table.rows.iter().flatten().any(|c| c.indent > 0);
    let level = |text: String| is_tree.then_some(text);
    let titles = table.columns.iter().map(|c| c.title.to_string());
    out.push_str(&line(level("level".to_owned()).into_iter().chain(titles)));
    for row in &table.rows {
        let depth = row.iter().map(|c| c.indent).max().unwrap_or(0);
        let cells = row.iter().map(cell_text);
        out.push_str(&line(level(depth.to_string()).into_iter().chain(cells)));
    }
}

fn cell_text(cell: &Cell) -> String {
    cell.spans.iter().map(span_text).collect()
}

fn span_text(span: &Span) -> String {
    match span {
        Span::Text(t) | Span::Strong(t) | Span::Dim(t) | Span::Class(t) | Span::Value(t) => {
            t.clone()
        }
        Span::Object(id) => id.to_string(),
        Span::Bytes(n) | Span::Count(n) => n.to_string(),
        Span::Share(share) => format!("{share:.6}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc::{number, words};

    #[test]
    fn fields_are_quoted_and_formulas_are_not_run() {
        let mut table = Table::new([number("objects"), words("class")]);
        table.row([Cell::count(7), Cell::class("a\"b, c")]);
        table.row([
            Cell::bytes(hprof::Bytes(4096)),
            Cell::class("=HYPERLINK(1)"),
        ]);
        table.row([Cell::count(1), Cell::value("-12")]);
        assert_eq!(
            render(&Doc::new().table(table)),
            "objects,class\r\n7,\"a\"\"b, c\"\r\n4096,\"'=HYPERLINK(1)\"\r\n1,-12\r\n"
        );
    }

    #[test]
    fn a_tree_keeps_its_levels() {
        let mut table = Table::new([words("object")]);
        table.row([Cell::class("a")]);
        table.row([Cell::class("b").at_depth(1)]);
        assert_eq!(
            render(&Doc::new().table(table)),
            "level,object\r\n0,a\r\n1,b\r\n"
        );
    }
}
