//! Strings and properties.

use super::Say;
use super::sets::of_set;
use crate::doc::{Cell, Doc, Span, Table, number, words};
use crate::units::grouped;
use heap_analysis::strings::{Duplicates, FoundStrings};
use heap_analysis::tables::properties::{Properties, Property};

impl Say for FoundStrings {
    const NAME: &'static str = "strings";

    fn doc(&self) -> Doc {
        let mut table = Table::new([words("object"), number("retained"), words("text")]);
        for row in &self.rows {
            let mut text = vec![Span::Value(row.text.clone())];
            if let Some(length) = row.text_length {
                text.push(Span::Dim(format!(" … ({} characters)", grouped(length))));
            }
            table.row([
                Span::Object(row.object).into(),
                Cell::bytes(row.retained),
                Cell::new(text),
            ]);
        }
        table.omitted = self.matches - self.rows.len() as u64;
        of_set(self.set.as_deref())
            .text([
                Span::Count(self.matches),
                Span::from(" of "),
                Span::Count(self.strings),
                Span::from(" strings match."),
            ])
            .table(table)
    }
}

impl Say for Duplicates {
    const NAME: &'static str = "duplicate_strings";

    fn doc(&self) -> Doc {
        let mut table = Table::new([
            number("copies"),
            number("bytes"),
            number("wasted"),
            words("text"),
            words("held by"),
        ]);
        let holders = self.rows.iter().any(|r| !r.holders.is_empty());
        if !holders {
            table.columns.pop();
        }
        for row in &self.rows {
            let mut cells = vec![
                Cell::count(row.count),
                Cell::bytes(row.bytes),
                Cell::bytes(row.wasted),
                Cell::value(row.text.clone()),
            ];
            if holders {
                let names: Vec<String> = row
                    .holders
                    .iter()
                    .map(|h| format!("{} ({})", h.field, h.count))
                    .collect();
                cells.push(Cell::value(names.join(", ")));
            }
            table.row(cells);
        }
        table.omitted = self.omitted_rows;
        of_set(self.set.as_deref())
            .text([
                Span::Count(self.strings),
                Span::from(" strings, "),
                Span::Count(self.distinct),
                Span::from(" different texts, "),
                Span::Bytes(self.bytes.0),
                Span::from(" with their arrays; copies waste "),
                Span::StrongBytes(self.wasted.0),
                Span::from("."),
            ])
            .table(table)
    }
}

fn properties_table(list: &[Property]) -> Table {
    let mut table = Table::new([words("name"), words("value")]);
    for p in list {
        table.row([Cell::value(p.name.clone()), Cell::value(p.value.clone())]);
    }
    table.when_empty = "not found in this dump";
    table
}

impl Say for Properties {
    const NAME: &'static str = "properties";

    fn doc(&self) -> Doc {
        let mut doc = Doc::new()
            .heading("System properties")
            .table(properties_table(&self.properties));
        if !self.environment.is_empty() {
            doc = doc
                .heading("Environment variables")
                .table(properties_table(&self.environment));
        }
        doc
    }
}
