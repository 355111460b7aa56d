//! One JSON object per line.

use heap_analysis::share::export::{Table, Values};
use serde_json::{Map, Value};
use std::io::{self, Write};

pub(super) fn write(out: &mut dyn Write, table: &Table) -> io::Result<()> {
    for row in 0..table.rows() {
        let object: Map<String, Value> = table
            .columns
            .iter()
            .map(|column| {
                let value = match &column.values {
                    Values::Text(list) => Value::from(list[row].as_str()),
                    Values::Number(list) => Value::from(list[row]),
                    Values::Real(list) => Value::from(list[row]),
                };
                (column.name.to_owned(), value)
            })
            .collect();
        serde_json::to_writer(&mut *out, &object)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
