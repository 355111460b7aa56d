//! Tables about a running program. A column is declared once, in the module that computes its rows: its name, title,
//! kind and help, and how it follows from a row. The JSON, CSV, web table, page without scripts, terminal table and the
//! reference are generated from this declaration, so a new column is one entry of one list.

use crate::origin::Source;
use crate::range::Range;
use serde::ser::{SerializeMap, SerializeSeq, SerializeStruct};
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
    /// The ends of the 95 % interval of another column, with which it is shown.
    Interval,
}

impl Kind {
    /// Whether rows can be sorted by it.
    pub fn is_sorted(self) -> bool {
        !matches!(self, Kind::Detail | Kind::Stack | Kind::Interval)
    }

    /// Whether it has a column of its own where a table is shown.
    pub fn is_shown(self) -> bool {
        self.is_sorted() && self != Kind::Name
    }

    /// Whether its values are numbers.
    pub fn is_number(self) -> bool {
        self.is_shown() && self != Kind::Text
    }
}

/// A value of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Not known, or without a meaning for this row.
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
    /// The ends of an interval.
    Interval(u64, u64),
}

impl Value<'_> {
    /// The value as a number, if it is one.
    pub fn number(self) -> Option<f64> {
        match self {
            Value::Count(number) => Some(number as f64),
            Value::Change(number) => Some(number as f64),
            Value::Real(number) => Some(number),
            _ => None,
        }
    }

    /// Unknown values come before all others.
    fn order(self, other: Value<'_>) -> Ordering {
        match (self, other) {
            (Value::Text(a), Value::Text(b)) => a.cmp(b),
            (Value::Text(_), _) => Ordering::Greater,
            (_, Value::Text(_)) => Ordering::Less,
            (a, b) => {
                let number = |value: Value<'_>| value.number().unwrap_or(f64::NEG_INFINITY);
                number(a).total_cmp(&number(b))
            }
        }
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
        }
    }
}

/// A column of a table of `R`.
pub struct Column<R> {
    /// Its name in the JSON, in CSV, and to sort by; a dot separates an object from its field.
    pub name: &'static str,
    /// Its title where a table is shown.
    pub title: &'static str,
    /// What its values are.
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

/// What a page needs to show it.
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
    /// The middle of the name of the schema, `tenure.live.NAME/1`.
    const SCHEMA: &'static str;
    /// What the table is, in a sentence.
    const ABOUT: &'static str;
    /// The column that rows are sorted by unless another one is requested.
    const SORT: &'static str;
    /// The columns, the name first.
    const COLUMNS: &'static [Column<Self>];
}

/// Which rows of a table are requested, in which order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The column to sort by: names rise, everything else falls. Empty for the table's own.
    pub sort: String,
    /// The other way round.
    pub up: bool,
    /// Number of the first row.
    pub offset: usize,
    /// Number of rows.
    pub limit: usize,
}

/// A table has no column of this name, or cannot be sorted by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownColumn {
    name: String,
    known: Vec<&'static str>,
}

impl fmt::Display for UnknownColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sort={}: there is no such column", self.name)?;
        if let Some(near) = nearest(&self.name, &self.known) {
            write!(f, "; did you mean {near}?")?;
        }
        write!(f, " Columns: {}", self.known.join(", "))
    }
}

impl std::error::Error for UnknownColumn {}

/// The most similar of some names, if one is similar.
pub fn nearest<'n>(name: &str, known: &[&'n str]) -> Option<&'n str> {
    let name = name.to_lowercase();
    let least = known.iter().map(|known| (distance(&name, known), *known));
    let (distance, found) = least.min_by_key(|(distance, _)| *distance)?;
    (distance <= name.chars().count().max(3) / 3 + 1).then_some(found)
}

/// The number of characters to insert, remove or replace.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (n, one) in a.chars().enumerate() {
        let mut before = std::mem::replace(&mut row[0], n + 1);
        for (m, other) in b.iter().enumerate() {
            let replaced = before + usize::from(one != *other);
            before = row[m + 1];
            row[m + 1] = replaced.min(row[m] + 1).min(before + 1);
        }
    }
    row[b.len()]
}

/// The column to sort by; `name` is the first one, whatever it is called.
fn sorted_by<'c, R>(columns: &'c [Column<R>], name: &str) -> Result<&'c Column<R>, UnknownColumn> {
    let mut sorted = columns.iter().filter(|column| column.kind.is_sorted());
    let is_it =
        |column: &&Column<R>| column.name == name || (name == "name" && column.kind == Kind::Name);
    sorted.find(is_it).ok_or_else(|| UnknownColumn {
        name: name.to_owned(),
        known: columns
            .iter()
            .filter(|column| column.kind.is_sorted())
            .map(|column| column.name)
            .collect(),
    })
}

/// A page of a table.
pub struct Table<R: 'static> {
    /// The columns.
    pub columns: &'static [Column<R>],
    /// Name of the schema.
    pub schema: &'static str,
    /// The range; `None` where it has no meaning.
    pub range: Option<Range>,
    /// Where the numbers come from.
    pub source: &'static str,
    /// Where sizes and capacities come from, if there are some.
    pub sizes: Option<Source>,
    /// Rows in all.
    pub count: usize,
    /// Number of the first row given.
    pub offset: usize,
    /// The sum of all rows, where it has a meaning.
    pub total: Option<R>,
    /// The rows.
    pub rows: Vec<R>,
}

impl<R: Tabular> Table<R> {
    /// Sorts rows and takes those of a page.
    ///
    /// # Errors
    /// When there is no such column to sort by.
    pub fn page(source: &'static str, rows: Vec<R>, page: &Page) -> Result<Self, UnknownColumn> {
        Table::with_columns(R::COLUMNS, source, rows, page)
    }

    /// The same with other columns.
    ///
    /// # Errors
    /// When there is no such column to sort by.
    pub fn with_columns(
        columns: &'static [Column<R>],
        source: &'static str,
        mut rows: Vec<R>,
        page: &Page,
    ) -> Result<Self, UnknownColumn> {
        let sort = match page.sort.as_str() {
            "" => R::SORT,
            name => name,
        };
        let column = sorted_by(columns, sort)?;
        if let Some(name) = columns.first() {
            rows.sort_by(|a, b| (name.value)(a).order((name.value)(b)));
        }
        match column.kind {
            Kind::Name => {}
            Kind::Text => rows.sort_by(|a, b| (column.value)(a).order((column.value)(b))),
            _ => rows.sort_by(|a, b| (column.value)(b).order((column.value)(a))),
        }
        if page.up {
            rows.reverse();
        }
        let count = rows.len();
        rows.drain(..page.offset.min(count));
        rows.truncate(page.limit);
        Ok(Table {
            columns,
            schema: R::SCHEMA,
            range: None,
            source,
            sizes: None,
            count,
            offset: page.offset,
            total: None,
            rows,
        })
    }
}

/// A row as JSON: a field for each column.
#[derive(Debug)]
pub struct Fields<'a, R: 'static> {
    /// The columns.
    pub columns: &'static [Column<R>],
    /// The row.
    pub row: &'a R,
}

impl<R> Serialize for Fields<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(None)?;
        let mut rest = self.columns;
        while let Some(column) = rest.first() {
            let Some((object, _)) = column.name.split_once('.') else {
                out.serialize_entry(column.name, &(column.value)(self.row))?;
                rest = &rest[1..];
                continue;
            };
            let is_in = |column: &&Column<R>| field(column.name, object).is_some();
            let fields = rest.iter().take_while(is_in).count();
            let part = Object {
                name: object,
                columns: &rest[..fields],
                row: self.row,
            };
            match part.is_known() {
                true => out.serialize_entry(object, &part)?,
                false => out.serialize_entry(object, &Value::None)?,
            }
            rest = &rest[fields..];
        }
        out.end()
    }
}

/// The part of a name after the dot, if the part before it is this one.
fn field(name: &'static str, object: &str) -> Option<&'static str> {
    name.strip_prefix(object)?.strip_prefix('.')
}

/// Columns with names that begin alike are one object of the JSON.
struct Object<'a, R> {
    name: &'a str,
    columns: &'a [Column<R>],
    row: &'a R,
}

impl<R> Object<'_, R> {
    fn is_known(&self) -> bool {
        let mut values = self.columns.iter().map(|column| (column.value)(self.row));
        values.any(|value| value != Value::None)
    }
}

impl<R> Serialize for Object<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_map(None)?;
        for column in self.columns {
            if let Some(name) = field(column.name, self.name) {
                out.serialize_entry(name, &(column.value)(self.row))?;
            }
        }
        out.end()
    }
}

struct Rows<'a, R: 'static>(&'static [Column<R>], &'a [R]);

impl<R> Serialize for Rows<'_, R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_seq(Some(self.1.len()))?;
        for row in self.1 {
            let columns = self.0;
            out.serialize_element(&Fields { columns, row })?;
        }
        out.end()
    }
}

impl<R> Serialize for Table<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let columns = self.columns;
        let total = self.total.as_ref().map(|row| Fields { columns, row });
        let mut out = serializer.serialize_struct("Table", 9)?;
        out.serialize_field("schema", self.schema)?;
        out.serialize_field("range", &self.range)?;
        out.serialize_field("source", self.source)?;
        if self.sizes.is_some() {
            out.serialize_field("sizes", &self.sizes)?;
        }
        out.serialize_field("count", &self.count)?;
        out.serialize_field("offset", &self.offset)?;
        out.serialize_field("columns", columns)?;
        out.serialize_field("total", &total)?;
        out.serialize_field("rows", &Rows(columns, &self.rows))?;
        out.end()
    }
}

impl<R: fmt::Debug> fmt::Debug for Table<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table")
            .field("schema", &self.schema)
            .field("rows", &self.rows)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fruit(&'static str, u64, Option<f64>);

    impl Tabular for Fruit {
        const SCHEMA: &'static str = "tenure.live.fruit/1";
        const ABOUT: &'static str = "Fruit.";
        const SORT: &'static str = "count";
        const COLUMNS: &'static [Column<Fruit>] = &[
            Column::new(Kind::Name, "fruit", "Fruit", "Its name.", |row| {
                row.0.into()
            }),
            Column::new(Kind::Count, "count", "Count", "How many.", |row| {
                row.1.into()
            }),
            Column::new(Kind::Mean, "weight.mean", "Weight", "Its weight.", |row| {
                row.2.into()
            }),
        ];
    }

    fn rows() -> Vec<Fruit> {
        vec![
            Fruit("pear", 3, None),
            Fruit("apple", 3, Some(1.5)),
            Fruit("plum", 7, Some(0.5)),
        ]
    }

    fn names(sort: &str, up: bool) -> Vec<&'static str> {
        let page = Page {
            sort: sort.to_owned(),
            up,
            offset: 0,
            limit: 10,
        };
        let table = Table::page("test", rows(), &page).expect("a column");
        table.rows.iter().map(|row| row.0).collect()
    }

    #[test]
    fn numbers_fall_names_rise_and_unknown_values_are_last() {
        assert_eq!(names("", false), ["plum", "apple", "pear"]);
        assert_eq!(names("weight.mean", false), ["apple", "plum", "pear"]);
        assert_eq!(names("name", false), ["apple", "pear", "plum"]);
        assert_eq!(names("fruit", true), ["plum", "pear", "apple"]);
    }

    #[test]
    fn a_misspelt_column_is_refused_with_a_suggestion() {
        let page = Page {
            sort: "cuont".to_owned(),
            ..Page::default()
        };
        let refused = Table::page("test", rows(), &page).expect_err("no column");
        assert_eq!(
            refused.to_string(),
            "sort=cuont: there is no such column; did you mean count? Columns: fruit, count, weight.mean"
        );
        assert_eq!(nearest("something else", &["count", "fruit"]), None);
    }

    #[test]
    fn a_page_begins_where_it_is_asked_to() {
        let page = Page {
            offset: 1,
            limit: 1,
            ..Page::default()
        };
        let table = Table::page("test", rows(), &page).expect("a column");
        assert_eq!((table.count, table.rows[0].0), (3, "apple"));
    }
}
