//! The names that a query can use: for pages that list them and editors that complete them.

use crate::Session;
use crate::limits::Limits;
use crate::sql;
use crate::sql::table::{ColumnDef, Type};
use serde::Serialize;

/// The kind of a name in FROM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TableKind {
    /// A table of the heap.
    Table,
    /// A function: `outbound(id)`, `set_members('roots')`.
    Function,
    /// A view: a name that another tool uses for the same data.
    View,
    /// The instances of a class.
    Class,
}

impl TableKind {
    /// The name of the kind.
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
    /// True when `select *` does not include it.
    pub hidden: bool,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TableInfo {
    /// Its name.
    pub name: String,
    /// The kind of table.
    pub kind: TableKind,
    /// The names of a function's arguments; all but the first are optional.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<String>,
    /// Its columns, without the arguments of a function; empty for views.
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

/// All tables with fixed names: tables, functions, views. Classes are tables too, see
/// [`Session::class_table`].
pub fn tables() -> Vec<TableInfo> {
    let fixed = sql::catalog().into_iter().map(|(name, columns)| {
        let (arguments, columns): (Vec<_>, Vec<_>) = columns.into_iter().partition(|c| c.argument);
        TableInfo {
            name: name.to_owned(),
            kind: match arguments.is_empty() {
                true => TableKind::Table,
                false => TableKind::Function,
            },
            arguments: arguments.into_iter().map(|c| c.name).collect(),
            columns: infos(columns),
        }
    });
    let views = sql::view_names().map(|name| TableInfo {
        name: name.to_owned(),
        kind: TableKind::View,
        arguments: Vec::new(),
        columns: Vec::new(),
    });
    fixed.chain(views).collect()
}

impl Session {
    /// See [`tables`].
    pub fn tables(&self) -> Vec<TableInfo> {
        tables()
    }

    /// The table of a class by its readable name; `None` if the dump has no such class.
    pub fn class_table(&self, name: &str) -> Option<TableInfo> {
        let env = self.env(&Limits::default());
        Some(TableInfo {
            name: name.to_owned(),
            kind: TableKind::Class,
            arguments: Vec::new(),
            columns: infos(sql::class_columns(&env, name)?),
        })
    }

    /// Names of the functions of objects.
    pub fn functions(&self) -> Vec<&'static str> {
        sql::function_names().collect()
    }

    /// Completions of the word that ends at a byte offset, at most `limit`: columns of the tables and fields of the
    /// classes in the text, and tables, functions, columns and classes that begin with the word. Classes also match by
    /// their simple name; after the alias of a table (`o.ret`) only columns do.
    pub fn complete(&self, text: &str, offset: usize, limit: usize) -> Vec<String> {
        let before = text.get(..offset).unwrap_or(text);
        let is_part = |c: char| c.is_alphanumeric() || "._$@".contains(c);
        let word = before.rsplit(|c| !is_part(c)).next().unwrap_or_default();
        let starts = |name: &str, word: &str| {
            let head = name.get(..word.len());
            head.is_some_and(|head| head.eq_ignore_ascii_case(word))
        };
        let tables = self.tables();
        let named = self.named_columns(text, &tables);
        let mut found: Vec<String> = Vec::new();
        if let Some((alias, part)) = word.split_once('.') {
            // In OQL, a member of an object may also be a property or a method call.
            let mut all: Vec<&str> = named.iter().map(String::as_str).collect();
            all.extend(METHODS);
            all.extend(if alias == "heap" { HEAP_WORDS } else { &[] });
            all.retain(|name| starts(name, part));
            found.extend(all.iter().map(|name| format!("{alias}.{name}")));
        } else {
            found.extend(named.iter().filter(|name| starts(name, word)).cloned());
        }
        let columns = tables.iter().flat_map(|t| &t.columns);
        let others = tables.iter().map(|t| t.name.as_str());
        let others = others
            .chain(self.functions())
            .chain(columns.map(|c| c.name.as_str()))
            .chain(WORDS.iter().copied());
        let mut others: Vec<&str> = others.filter(|name| starts(name, word)).collect();
        others.sort_unstable();
        let simple = |name: &str| name.rsplit('.').next().is_some_and(|n| starts(n, word));
        let classes = self.heap().classes().iter().map(|c| c.name.as_str());
        let mut classes: Vec<&str> = classes
            .filter(|name| !word.is_empty() && (starts(name, word) || simple(name)))
            .collect();
        classes.sort_unstable();
        found.extend(others.into_iter().chain(classes).map(str::to_owned));
        let mut seen = rustc_hash::FxHashSet::default();
        found.retain(|name| seen.insert(name.clone()));
        found.truncate(limit);
        found
    }

    /// Columns of the tables, and fields of the classes, that occur in a text. Most texts are unfinished at this
    /// point, so the text is split into words and not parsed.
    fn named_columns(&self, text: &str, tables: &[TableInfo]) -> Vec<String> {
        let is_part = |c: char| c.is_alphanumeric() || "._$[]".contains(c);
        let mut columns = Vec::new();
        for word in text.split(|c| !is_part(c)).filter(|w| !w.is_empty()) {
            let table = tables.iter().find(|t| t.name.eq_ignore_ascii_case(word));
            let class = || self.class_table(word);
            let info = table.cloned().or_else(class);
            let names = info.into_iter().flat_map(|t| t.columns).map(|c| c.name);
            columns.extend(names.filter(|n| n != "this" || text.contains("this")));
        }
        columns.sort();
        columns.dedup();
        columns
    }
}

/// Functions and keywords of OQL and SQL that are in no table.
const WORDS: &[&str] = &[
    "classof",
    "count",
    "distinct",
    "dominatorof",
    "dominators",
    "eval",
    "filter",
    "from",
    "group by",
    "having",
    "heap",
    "identical",
    "inbounds",
    "instanceof",
    "limit",
    "map",
    "objectid",
    "order by",
    "outbounds",
    "reachables",
    "referees",
    "referrers",
    "rsizeof",
    "select",
    "sizeof",
    "sum",
    "toHex",
    "toHtml",
    "toString",
    "unique",
    "union",
    "where",
];

/// Properties and methods of objects in MAT's OQL.
const METHODS: &[&str] = &[
    "@GCRootInfo",
    "@classLoaderId",
    "@clazz",
    "@displayName",
    "@length",
    "@name",
    "@objectAddress",
    "@objectId",
    "@retainedHeapSize",
    "@superClass",
    "@usedHeapSize",
    "@valueArray",
    "toString()",
];

/// Members of `heap` in jhat's OQL.
const HEAP_WORDS: &[&str] = &[
    "classes()",
    "findClass(",
    "findObject(",
    "forEachClass(",
    "forEachObject(",
    "livepaths(",
    "objects(",
    "reachables(",
    "roots()",
];
