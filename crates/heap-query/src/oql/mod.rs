//! The OQL of Eclipse MAT: its grammar and its peculiarities. Methods and properties come from a fixed table, see
//! `model`, because no Java code can be called.
//!
//! In reading order: `lexer`, `ast`, `parser`, `value`, `model` (the results of `@x` and `x()`), `eval`, `from`.

mod alone;
mod ast;
mod eval;
mod from;
mod lexer;
mod model;
mod parser;
mod value;

use crate::cell::{Cell, Cut};
use crate::describe::readable;
use crate::error::QueryError;
use crate::shared::Env;
use crate::sink::Sink;
use eval::{Row, Runner, columns};
use heap_graph::Heap;
use std::cell::RefCell;
use value::Value;

/// Columns of a list of objects.
const OBJECTS: [&str; 5] = ["object", "class", "value", "shallow", "retained"];

/// Runs a query.
pub(crate) fn run(env: &Env, text: &str, sink: &mut dyn Sink) -> Result<Option<Cut>, QueryError> {
    let query = parser::parse(text)?;
    let names = columns(&query);
    match &names {
        Some(names) => sink.columns(names),
        None => sink.columns(&OBJECTS.map(str::to_owned)),
    }
    let runner = Runner {
        env,
        text,
        answers: RefCell::default(),
    };
    let result = runner.run(&query, &mut |row| {
        let heap = &env.heap;
        let cells = match (row, &names) {
            (Row::One(value), None) => object_cells(heap, &value),
            (Row::One(value), Some(_)) => vec![value.cell(heap)],
            (Row::Cells(cells), Some(_)) => cells.iter().map(|v| v.cell(heap)).collect(),
            // UNION of a list of objects with a table of one column.
            (Row::Cells(cells), None) => {
                let first = cells.first().unwrap_or(&Value::Null);
                object_cells(heap, first)
            }
        };
        Ok(sink.row(cells))
    });
    match result {
        Ok(true) => Ok(None),
        Ok(false) => Ok(Some(Cut::Rows)),
        Err(error) => Err(error),
    }
}

/// Describes how a text was parsed, without running it.
pub(crate) fn explain(text: &str) -> Result<String, QueryError> {
    parser::parse(text).map(|query| format!("{query:#?}"))
}

/// True for a text that is a query of this dialect.
pub(crate) fn parses(text: &str) -> bool {
    parser::parse(text).is_ok()
}

fn object_cells(heap: &Heap, value: &Value) -> Vec<Cell> {
    match value {
        Value::Object(o) => vec![
            Cell::Object(heap.id(*o)),
            Cell::Text(heap.class(heap.class_of(*o)).name.clone()),
            readable(heap, *o).map_or(Cell::Null, Cell::Text),
            Cell::Int(heap.shallow(*o).0 as i64),
            Cell::Int(heap.retained(*o).0 as i64),
        ],
        other => vec![
            other.cell(heap),
            Cell::Null,
            Cell::Null,
            Cell::Null,
            Cell::Null,
        ],
    }
}
