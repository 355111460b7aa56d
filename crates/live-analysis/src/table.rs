//! A page of a table: rows with their declared columns ([`crate::columns`]), sorted and cut, and its JSON.

use crate::columns::{Column, Kind, Tabular, Value};
use crate::origin::Source;
use crate::range::Range;
use heap_analysis::sets::similar::nearest;
use serde::ser::{SerializeMap, SerializeSeq, SerializeStruct};
use serde::{Serialize, Serializer};
use std::fmt;

/// The requested rows of a table and their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The column to sort by: texts ascending, numbers descending. Empty for the table's default.
    pub sort: String,
    /// Reverses the order.
    pub up: bool,
    /// Index of the first row.
    pub offset: usize,
    /// Number of rows.
    pub limit: usize,
}

/// The keywords of a list of parameter values.
pub(crate) const fn words<T, const N: usize>(named: &[(&'static str, T); N]) -> [&'static str; N] {
    let (mut words, mut at) = ([""; N], 0);
    while at < N {
        words[at] = named[at].0;
        at += 1;
    }
    words
}

/// A table has no column with this name, or cannot be sorted by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownColumn {
    name: String,
    known: Vec<&'static str>,
}

impl fmt::Display for UnknownColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sort={}: there is no such column", self.name)?;
        let all = self.known.join(", ");
        match nearest(&self.name, &self.known) {
            Some(near) => write!(f, "; did you mean {near}? Columns: {all}"),
            None => write!(f, "; it has {all}"),
        }
    }
}

impl std::error::Error for UnknownColumn {}

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

/// The number of objects behind the rows of a table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Examined {
    /// Their class.
    pub class: String,
    /// Objects of the class: reachable ones of a dump, live ones that the agent tracks, or allocated ones of a recording.
    pub objects: u64,
    /// Objects that were examined.
    pub sampled: usize,
    /// Whether the program's code may run to describe them.
    pub own_code: bool,
}

/// A page of a table.
pub struct Table<R: 'static> {
    /// The columns.
    pub columns: &'static [Column<R>],
    /// Name of the schema.
    pub schema: &'static str,
    /// The range; `None` if it does not apply.
    pub range: Option<Range>,
    /// The source of the numbers.
    pub source: &'static str,
    /// The source of sizes and capacities, if there are any.
    pub sizes: Option<Source>,
    /// Number of the heap dump that the rows are from.
    pub dump: Option<usize>,
    /// The number of garbage collections that were examined, if the table depends on them.
    pub collections: Option<usize>,
    /// For a table about one class: the number of objects behind it.
    pub examined: Option<Examined>,
    /// Data that could not be obtained, and why.
    pub notes: Vec<String>,
    /// The total number of rows.
    pub count: usize,
    /// Index of the first row on the page.
    pub offset: usize,
    /// The sum of all rows, if it is meaningful.
    pub total: Option<R>,
    /// The rows.
    pub rows: Vec<R>,
}

impl<R: Tabular> Table<R> {
    /// Sorts rows and keeps those of a page.
    ///
    /// # Errors
    /// There is no such column to sort by.
    pub fn page(source: &'static str, rows: Vec<R>, page: &Page) -> Result<Self, UnknownColumn> {
        Table::with_columns(R::COLUMNS, source, rows, page)
    }

    /// As [`Table::page`], with other columns.
    ///
    /// # Errors
    /// There is no such column to sort by.
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
            kind if kind.rises() => {
                rows.sort_by(|a, b| (column.value)(a).order((column.value)(b)));
            }
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
            dump: None,
            collections: None,
            examined: None,
            notes: Vec::new(),
            count,
            offset: page.offset,
            total: None,
            rows,
        })
    }
}

/// A row as JSON: one field per column.
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

/// Columns whose names begin with the same part and a dot are one object of the JSON.
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
        let mut out = serializer.serialize_struct("Table", 16)?;
        out.serialize_field("schema", self.schema)?;
        out.serialize_field("range", &self.range)?;
        out.serialize_field("source", self.source)?;
        if self.sizes.is_some() {
            out.serialize_field("sizes", &self.sizes)?;
        }
        if self.dump.is_some() {
            out.serialize_field("dump", &self.dump)?;
        }
        if self.collections.is_some() {
            out.serialize_field("collections", &self.collections)?;
        }
        if let Some(examined) = &self.examined {
            out.serialize_field("class", &examined.class)?;
            out.serialize_field("objects", &examined.objects)?;
            out.serialize_field("sampled", &examined.sampled)?;
            out.serialize_field("own_code", &examined.own_code)?;
        }
        out.serialize_field("notes", &self.notes)?;
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
    fn numbers_in_texts_are_sorted_as_numbers_before_other_texts() {
        let mut names = ["a", "10", "1a", "9", "-1"].map(|name| Fruit(name, 1, None));
        names.reverse();
        let page = Page {
            limit: 10,
            ..Page::default()
        };
        let table = Table::page("test", names.into(), &page).expect("a column");
        let sorted: Vec<&str> = table.rows.iter().map(|row| row.0).collect();
        assert_eq!(sorted, ["-1", "9", "10", "1a", "a"]);
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
        let page = Page {
            sort: "x".to_owned(),
            ..Page::default()
        };
        let refused = Table::page("test", rows(), &page).expect_err("no column");
        assert_eq!(
            refused.to_string(),
            "sort=x: there is no such column; it has fruit, count, weight.mean"
        );
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
