//! The tables of any answer as [CSV](crate::csv): sizes in bytes, shares from 0 to 1.

use crate::csv::line;
use crate::doc::{Block, Doc, Span, Table};

/// All tables of a document, separated by empty lines. If a table is a tree, its first column is `level`, the depth.
/// Facts are a table of names and values.
pub fn render(doc: &Doc) -> String {
    let tables = doc.blocks.iter().filter_map(|block| match block {
        Block::Table(table) => Some(text_of(table)),
        Block::Facts(facts) => Some(text_of_facts(facts)),
        _ => None,
    });
    tables.collect::<Vec<_>>().join("\r\n")
}

fn text_of_facts(facts: &[(&'static str, Vec<Span>)]) -> String {
    let rows = facts.iter();
    let rows = rows.map(|(name, value)| line([(*name).to_owned(), text_of_spans(value)]));
    line(["name", "value"]) + &rows.collect::<String>()
}

fn text_of(table: &Table) -> String {
    let is_tree = table.rows.iter().flatten().any(|c| c.indent > 0);
    let level = |text: String| is_tree.then_some(text);
    let titles = table.columns.iter().map(|c| c.title.to_string());
    let mut out = line(level("level".to_owned()).into_iter().chain(titles));
    for row in &table.rows {
        let depth = row.iter().map(|c| c.indent).max().unwrap_or(0);
        let cells = row.iter().map(|cell| text_of_spans(&cell.spans));
        out.push_str(&line(level(depth.to_string()).into_iter().chain(cells)));
    }
    out
}

fn text_of_spans(spans: &[Span]) -> String {
    spans.iter().map(span_text).collect()
}

fn span_text(span: &Span) -> String {
    match span {
        Span::Text(t)
        | Span::Strong(t)
        | Span::Dim(t)
        | Span::Class(t)
        | Span::Name { text: t, .. }
        | Span::Value(t) => t.clone(),
        Span::Object(id) => id.to_string(),
        Span::Bytes(n) | Span::StrongBytes(n) | Span::Count(n) => n.to_string(),
        Span::Share(share) => format!("{share:.6}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doc::{Cell, number, words};

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

    #[test]
    fn facts_are_a_table_of_names_and_values() {
        let facts = || Doc::new().facts(vec![("size", vec![Span::Bytes(4096)])]);
        assert_eq!(render(&facts()), "name,value\r\nsize,4096\r\n");
        let mut table = Table::new([words("class")]);
        table.row([Cell::class("a")]);
        let text = render(&facts().table(table));
        assert_eq!(text, "name,value\r\nsize,4096\r\n\r\nclass\r\na\r\n");
        assert_eq!(render(&Doc::new()), "");
    }
}
