//! Tables about a running program. A column is declared once, in the module that computes its rows: its name, title,
//! kind, help, and a function from a row to its value. The JSON, CSV, web table, page without JavaScript, terminal
//! table and the reference are generated from this declaration, so a new column is one entry in one list.

use heap_analysis::objects::describe::Address;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use std::cmp::Ordering;
use std::fmt;

/// What the values of a column are, so how they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// What the row is about; the first column of every table.
    Name,
    /// A word.
    Text,
    /// A text that qualifies the name and is shown with it.
    Detail,
    /// Frames, innermost first; shown with the name.
    Stack,
    /// A text that describes the row, such as the value of an object; where there is little room it is shown with the name.
    Description,
    /// A point of time, in milliseconds since 1970.
    Time,
    /// A number that counts nothing, such as a hash code.
    Number,
    /// A number of things.
    Count,
    /// Bytes.
    Bytes,
    /// A difference of numbers.
    CountChange,
    /// A difference of bytes.
    BytesChange,
    /// A mean.
    Mean,
    /// A share in percent.
    Percent,
    /// Milliseconds.
    Milliseconds,
    /// Bytes per hour.
    Rate,
    /// The ends of the 95 % interval of another column, with which it is shown.
    Interval,
}

impl Kind {
    /// Whether rows can be sorted by it.
    pub fn is_sorted(self) -> bool {
        !matches!(self, Kind::Detail | Kind::Stack | Kind::Interval)
    }

    /// Whether it is a separate column where space is limited.
    pub fn is_shown(self) -> bool {
        self.is_sorted() && !matches!(self, Kind::Name | Kind::Description)
    }

    /// Whether the default order is ascending, as for texts; that of numbers is descending.
    pub fn rises(self) -> bool {
        matches!(self, Kind::Name | Kind::Text | Kind::Description)
    }
}

/// A value of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Unknown, or not applicable to this row.
    None,
    /// A text.
    Text(&'a str),
    /// Lines.
    Lines(&'a [String]),
    /// A number of things, bytes or milliseconds.
    Count(u64),
    /// A difference.
    Change(i64),
    /// A fraction.
    Real(f64),
    /// The bounds of an interval.
    Interval(u64, u64),
    /// An object of a heap dump.
    Address(Address),
    /// A live object by its identity hash code, because its address may change.
    Identity(i32),
}

impl Value<'_> {
    /// The value as a number, if it is one.
    pub fn number(self) -> Option<f64> {
        match self {
            Value::Address(address) => Some(address.0.0 as f64),
            Value::Identity(hash) => Some(f64::from(hash)),
            Value::Count(number) => Some(number as f64),
            Value::Change(number) => Some(number as f64),
            Value::Real(number) => Some(number),
            _ => None,
        }
    }

    /// Unknown values come before all others.
    pub(crate) fn order(self, other: Value<'_>) -> Ordering {
        match (self, other) {
            (Value::Text(a), Value::Text(b)) => texts(a, b),
            (Value::Text(_), _) => Ordering::Greater,
            (_, Value::Text(_)) => Ordering::Less,
            (a, b) => {
                let number = |value: Value<'_>| value.number().unwrap_or(f64::NEG_INFINITY);
                number(a).total_cmp(&number(b))
            }
        }
    }
}

/// Compares numbers as numbers, and puts them before texts, which are compared as texts.
fn texts(a: &str, b: &str) -> Ordering {
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(x), Ok(y)) => x.total_cmp(&y),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        _ => a.cmp(b),
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Value<'a> {
        Value::Text(text)
    }
}

impl<'a> From<&'a Option<String>> for Value<'a> {
    fn from(text: &'a Option<String>) -> Value<'a> {
        text.as_deref().map_or(Value::None, Value::Text)
    }
}

impl<'a> From<&'a Vec<String>> for Value<'a> {
    fn from(lines: &'a Vec<String>) -> Value<'a> {
        Value::Lines(lines)
    }
}

impl From<u64> for Value<'_> {
    fn from(number: u64) -> Self {
        Value::Count(number)
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Change(number)
    }
}

impl From<f64> for Value<'_> {
    fn from(number: f64) -> Self {
        Value::Real(number)
    }
}

impl From<(u64, u64)> for Value<'_> {
    fn from((low, high): (u64, u64)) -> Self {
        Value::Interval(low, high)
    }
}

impl<T> From<Option<T>> for Value<'_>
where
    T: Into<Value<'static>>,
{
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::None, Into::into)
    }
}

impl Serialize for Value<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match *self {
            Value::None => serializer.serialize_none(),
            Value::Text(text) => serializer.serialize_str(text),
            Value::Lines(lines) => lines.serialize(serializer),
            Value::Count(number) => serializer.serialize_u64(number),
            Value::Change(number) => serializer.serialize_i64(number),
            Value::Real(number) => serializer.serialize_f64(number),
            Value::Interval(low, high) => [low, high].serialize(serializer),
            Value::Address(address) => address.serialize(serializer),
            Value::Identity(_) => serializer.collect_str(self),
        }
    }
}

/// A value for other programs: numbers with all digits, bytes as a plain number; empty if unknown.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::None => Ok(()),
            Value::Text(text) => f.write_str(text),
            Value::Lines(lines) => f.write_str(&lines.join(" < ")),
            Value::Count(number) => number.fmt(f),
            Value::Change(number) => number.fmt(f),
            Value::Real(number) => write!(f, "{number:.2}"),
            Value::Interval(low, high) => write!(f, "{low} to {high}"),
            Value::Address(address) => address.fmt(f),
            Value::Identity(hash) => write!(f, "@{hash:x}"),
        }
    }
}

/// A column of a table of `R`.
pub struct Column<R> {
    /// Its name in the JSON, in CSV, and to sort by; a dot separates an object from its field.
    pub name: &'static str,
    /// Its title where a table is shown.
    pub title: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// What exactly is counted, in a sentence.
    pub help: &'static str,
    /// For an interval: the name of the column that it belongs to.
    pub of: Option<&'static str>,
    /// Its value in a row.
    pub value: fn(&R) -> Value<'_>,
}

impl<R> Column<R> {
    /// A column.
    pub const fn new(
        kind: Kind,
        name: &'static str,
        title: &'static str,
        help: &'static str,
        value: fn(&R) -> Value<'_>,
    ) -> Column<R> {
        Column {
            name,
            title,
            kind,
            help,
            of: None,
            value,
        }
    }

    /// The 95 % interval of the column called `of`.
    pub const fn interval(
        name: &'static str,
        of: &'static str,
        value: fn(&R) -> Value<'_>,
    ) -> Column<R> {
        Column {
            name,
            title: "",
            kind: Kind::Interval,
            help: "The ends of the 95 % interval, if the value is an estimate.",
            of: Some(of),
            value,
        }
    }
}

impl<R> fmt::Debug for Column<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Column").field("name", &self.name).finish()
    }
}

/// The data that a page needs to show it.
impl<R> Serialize for Column<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Column", 6)?;
        out.serialize_field("name", self.name)?;
        out.serialize_field("title", self.title)?;
        out.serialize_field("kind", &self.kind)?;
        out.serialize_field("sorted", &self.kind.is_sorted())?;
        out.serialize_field("help", self.help)?;
        out.serialize_field("of", &self.of)?;
        out.end()
    }
}

/// A row of a table.
pub trait Tabular: Sized + 'static {
    /// The middle part of the name of the schema, `tenure.live.NAME/1`.
    const SCHEMA: &'static str;
    /// A sentence that describes the table.
    const ABOUT: &'static str;
    /// The column that rows are sorted by unless another one is requested.
    const SORT: &'static str;
    /// The columns, the name first.
    const COLUMNS: &'static [Column<Self>];
}
