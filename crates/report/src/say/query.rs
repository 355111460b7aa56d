//! Answers of queries.

use super::Say;
use crate::doc::{Align, Cell, Column, Doc, Span, Table};
use heap_analysis::objects::describe::Address;
use heap_query::{Cell as Value, Cut, Table as Answer, TableInfo};
use serde::Serialize;

impl Say for Answer {
    const NAME: &'static str = "query";

    fn doc(&self) -> Doc {
        let is_number = |v: &Value| matches!(v, Value::Int(_) | Value::Real(_) | Value::Null);
        let columns = self.columns.iter().enumerate().map(|(n, name)| {
            let mut values = self.rows.iter().filter_map(|row| row.get(n));
            let numbers = !self.rows.is_empty() && values.all(is_number);
            Column {
                title: name.clone().into(),
                align: if numbers { Align::Right } else { Align::Left },
            }
        });
        let mut table = Table::new(columns);
        for row in &self.rows {
            table.row(row.iter().map(cell));
        }
        table.when_empty = "no rows";
        let doc = Doc::new().table(table);
        match self.cut {
            Some(cut) => doc.note([Span::from(cut_text(cut))]),
            None => doc,
        }
    }
}

/// Why rows are missing, as a sentence.
pub fn cut_text(cut: Cut) -> &'static str {
    match cut {
        Cut::Rows => "There are more rows (--limit 0 gives all).",
        Cut::Time => "The time is over; these are the rows that were found until then.",
        Cut::Cancelled => "Cancelled; these are the rows that were found until then.",
    }
}

fn cell(value: &Value) -> Cell {
    match value {
        Value::Null => Cell::empty(),
        Value::Object(id) => Span::Object(Address(*id)).into(),
        Value::Text(text) => Cell::value(text.clone()),
        other => Span::Text(other.to_string()).into(),
    }
}

/// What a query can name.
#[derive(Clone, Debug, Serialize)]
pub struct Tables {
    /// Tables, views and table functions.
    pub tables: Vec<TableInfo>,
}

impl Say for Tables {
    const NAME: &'static str = "query_tables";

    fn doc(&self) -> Doc {
        let words = |title| crate::doc::words(title);
        let mut table = Table::new([words("table"), words("kind"), words("columns")]);
        for info in &self.tables {
            let columns: Vec<&str> = info.columns.iter().map(|c| c.name.as_str()).collect();
            table.row([
                Cell::value(info.name.clone()),
                Span::from(info.kind.name()).into(),
                Cell::value(columns.join(" ")),
            ]);
        }
        Doc::new().table(table).note([Span::from(
            "Each class is a table of its own: \"java.util.HashMap\", or \
             instanceof.\"java.util.Map\" with its subclasses; \"this\" is the object, its fields \
             are the columns.",
        )])
    }
}
