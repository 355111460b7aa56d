//! A table as [CSV](crate::csv), with the header line of Neo4j's importer if that is requested.

use crate::csv::{push_field, push_one_line};
use heap_analysis::share::export::{Table, Values};
use std::io::{self, Write};

/// Writes a piece of a table; `first` adds the header line, `neo4j` the types of that importer.
pub(super) fn write(
    out: &mut dyn Write,
    table: &Table,
    first: bool,
    neo4j: bool,
) -> io::Result<()> {
    let mut line = String::new();
    if first {
        for (n, column) in table.columns.iter().enumerate() {
            if n > 0 {
                line.push(',');
            }
            line.push_str(&if neo4j {
                neo4j_head(table.name, column.name, &column.values)
            } else {
                column.name.to_owned()
            });
        }
        line.push_str("\r\n");
        out.write_all(line.as_bytes())?;
    }
    for row in 0..table.rows() {
        line.clear();
        for (n, column) in table.columns.iter().enumerate() {
            if n > 0 {
                line.push(',');
            }
            match &column.values {
                // The importer of Neo4j reads a row per line unless an option is given.
                Values::Text(list) if neo4j => push_one_line(&list[row], &mut line),
                Values::Text(list) => push_field(&list[row], &mut line),
                // An id above 2^63 would be a negative number; here it is text.
                Values::Number(list) if is_id(column.name) => {
                    line.push_str(&(list[row] as u64).to_string());
                }
                Values::Number(list) => line.push_str(&list[row].to_string()),
                Values::Real(list) => line.push_str(&list[row].to_string()),
            }
        }
        line.push_str("\r\n");
        out.write_all(line.as_bytes())?;
    }
    Ok(())
}

fn is_id(name: &str) -> bool {
    matches!(name, "id" | "dominator" | "source" | "target")
}

/// `id:ID`, `:START_ID`, `:END_ID`, `:LABEL`, `:TYPE`, and types for the rest.
fn neo4j_head(table: &str, column: &str, values: &Values) -> String {
    match (table, column) {
        ("objects", "id") => "id:ID".to_owned(),
        ("objects", "kind") => ":LABEL".to_owned(),
        ("references", "source") => ":START_ID".to_owned(),
        ("references", "target") => ":END_ID".to_owned(),
        ("references", "field") => ":TYPE".to_owned(),
        _ => match values {
            Values::Text(_) => format!("{column}:string"),
            Values::Number(_) => format!("{column}:long"),
            Values::Real(_) => format!("{column}:double"),
        },
    }
}
