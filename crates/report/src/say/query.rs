//! Results of queries.

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
        let why = self.cut.map(|cut| cut_text(cut, self.rows.len() as u64));
        let doc = match why {
            Some(why) if self.rows.is_empty() => Doc::new().text([Span::Text(why)]),
            Some(why) => Doc::new().table(table).note([Span::Text(why)]),
            None => Doc::new().table(table),
        };
        let notes = self.notes.iter();
        notes.fold(doc, |doc, note| doc.note([Span::Text(note.clone())]))
    }
}

/// Why rows are missing, as a sentence, and how many were found.
pub fn cut_text(cut: Cut, rows: u64) -> String {
    let why = match cut {
        Cut::Rows => return "There are more rows (--limit 0 gives all).".to_owned(),
        Cut::Time => "The time limit ended the query",
        Cut::Cancelled => "The query was cancelled",
    };
    match rows {
        0 => format!("{why} before it found a row."),
        1 => format!("{why}: partial result, the 1 row that was found until then."),
        rows => format!("{why}: partial result, the {rows} rows that were found until then."),
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

/// The names that a query can use.
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
