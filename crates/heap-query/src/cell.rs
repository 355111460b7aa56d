//! Results: tables of typed cells.

use crate::Lang;
use hprof::ObjectId;
use serde::{Serialize, Serializer};

/// One value of a result.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// No value.
    Null,
    /// A truth value (OQL; in SQL it is 0 or 1).
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A floating-point number.
    Real(f64),
    /// Text.
    Text(String),
    /// An object of the heap, written `0x7f001000`.
    Object(ObjectId),
    /// Several values (arrays and lists in OQL).
    List(Vec<Cell>),
}

impl Serialize for Cell {
    /// Objects as text, because JSON numbers lose digits above 2^53; numbers that JSON lacks
    /// (NaN, infinities) as their names.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Cell::Null => serializer.serialize_none(),
            Cell::Bool(value) => serializer.serialize_bool(*value),
            Cell::Int(value) => serializer.serialize_i64(*value),
            Cell::Real(value) if value.is_finite() => serializer.serialize_f64(*value),
            Cell::Real(value) => serializer.collect_str(value),
            Cell::Text(text) => serializer.serialize_str(text),
            Cell::Object(id) => serializer.collect_str(id),
            Cell::List(list) => list.serialize(serializer),
        }
    }
}

impl std::fmt::Display for Cell {
    /// For people: nothing for no value, lists in brackets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Cell::Null => Ok(()),
            Cell::Bool(value) => value.fmt(f),
            Cell::Int(value) => value.fmt(f),
            Cell::Real(value) => value.fmt(f),
            Cell::Text(text) => f.write_str(text),
            Cell::Object(id) => id.fmt(f),
            Cell::List(list) => {
                f.write_str("[")?;
                for (n, cell) in list.iter().enumerate() {
                    f.write_str(if n == 0 { "" } else { ", " })?;
                    match cell {
                        Cell::Null => f.write_str("null")?,
                        other => other.fmt(f)?,
                    }
                }
                f.write_str("]")
            }
        }
    }
}

impl Cell {
    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> u64 {
        let more = match self {
            Cell::Text(text) => text.len() as u64,
            Cell::List(cells) => cells.iter().map(Cell::bytes).sum(),
            _ => 0,
        };
        size_of::<Cell>() as u64 + more
    }

    /// True for an object and a list with one.
    pub fn holds_object(&self) -> bool {
        match self {
            Cell::Object(_) => true,
            Cell::List(cells) => cells.iter().any(Cell::holds_object),
            _ => false,
        }
    }
}

/// Why a result does not have all rows of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cut {
    /// The row limit.
    Rows,
    /// The time limit.
    Time,
    /// The caller cancelled.
    Cancelled,
}

/// The result of a query.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// The dialect that the text was read as.
    pub lang: Lang,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Indexes of the columns that have objects, or lists of objects.
    pub object_columns: Vec<usize>,
    /// Rows, each as long as `columns`.
    pub rows: Vec<Vec<Cell>>,
    /// Why rows are missing, if any are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut: Option<Cut>,
    /// What the query names and the dump does not have.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}
