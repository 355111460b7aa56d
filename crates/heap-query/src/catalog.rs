//! What a query can name: for pages that list it and editors that complete it.

use crate::Session;
use crate::limits::Limits;
use crate::sql;
use crate::sql::table::{ColumnDef, Type};
use serde::Serialize;

/// What stands in FROM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TableKind {
    /// A table of the heap.
    Table,
    /// A function of an object: `outbound(id)`.
    Function,
    /// A name that another tool gave to the same data.
    View,
    /// The instances of a class.
    Class,
}

impl TableKind {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            TableKind::Table => "table",
            TableKind::Function => "function",
            TableKind::View => "view",
            TableKind::Class => "class",
        }
    }
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ColumnInfo {
    /// Its name.
    pub name: String,
    /// `object`, `int`, `real`, `text` or `any`.
    pub kind: &'static str,
    /// True when `select *` leaves it out.
    pub hidden: bool,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableInfo {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: TableKind,
    /// Its columns, without the argument of a function; empty for views.
    pub columns: Vec<ColumnInfo>,
}

fn infos(columns: Vec<ColumnDef>) -> Vec<ColumnInfo> {
    let info = |c: ColumnDef| ColumnInfo {
        name: c.name,
        hidden: c.hidden,
        kind: match c.kind {
            Type::Object => "object",
            Type::Int => "int",
            Type::Real => "real",
            Type::Text => "text",
            Type::Any => "any",
        },
    };
    columns.into_iter().map(info).collect()
}

impl Session {
    /// All tables with fixed names: tables, functions, views. Classes are tables too, see
    /// [`class_table`](Self::class_table).
    pub fn tables(&self) -> Vec<TableInfo> {
        let fixed = sql::catalog()
            .into_iter()
            .map(|(name, is_function, mut columns)| {
                if is_function {
                    columns.retain(|c| c.name != "of");
                }
                TableInfo {
                    name: name.to_owned(),
                    kind: if is_function {
                        TableKind::Function
                    } else {
                        TableKind::Table
                    },
                    columns: infos(columns),
                }
            });
        let views = sql::view_names().map(|name| TableInfo {
            name: name.to_owned(),
            kind: TableKind::View,
            columns: Vec::new(),
        });
        fixed.chain(views).collect()
    }

    /// The table of a class by its readable name; `None` if the dump has no such class.
    pub fn class_table(&self, name: &str) -> Option<TableInfo> {
        let env = self.env(&Limits::default());
        Some(TableInfo {
            name: name.to_owned(),
            kind: TableKind::Class,
            columns: infos(sql::class_columns(&env, name)?),
        })
    }

    /// Names of the functions of objects.
    pub fn functions(&self) -> Vec<&'static str> {
        sql::function_names().collect()
    }

    /// What the word that ends at a byte offset can become: tables, functions, columns and classes
    /// that begin with it, at most `limit`. Classes also match by their simple name.
    pub fn complete(&self, text: &str, offset: usize, limit: usize) -> Vec<String> {
        let before = text.get(..offset).unwrap_or(text);
        let is_part = |c: char| c.is_alphanumeric() || "._$".contains(c);
        let word = before.rsplit(|c| !is_part(c)).next().unwrap_or_default();
        let starts = |name: &str| {
            name.get(..word.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(word))
        };
        let tables = self.tables();
        let columns = tables
            .iter()
            .flat_map(|t| t.columns.iter().map(|c| c.name.clone()));
        let names = tables.iter().map(|t| t.name.clone());
        let functions = self.functions().into_iter().map(str::to_owned);
        let mut found: Vec<String> = names.chain(functions).chain(columns).collect();
        found.retain(|name| starts(name));
        let simple = |name: &str| name.rsplit('.').next().is_some_and(starts);
        let classes = self.heap().classes().iter().map(|c| c.name.as_str());
        let mut classes: Vec<String> = classes
            .filter(|name| !word.is_empty() && (starts(name) || simple(name)))
            .map(str::to_owned)
            .collect();
        found.sort();
        found.dedup();
        classes.sort();
        classes.dedup();
        found.extend(classes);
        found.truncate(limit);
        found
    }
}
