//! SQL: SQLite's parser and executor over virtual tables that read the index. Filters on ids,
//! classes and sizes, the order by retained size, and grouping by class are done by the tables.
//!
//! In reading order: `table` (the interface of a table), `objects` and `largest` (an order of theirs), `references`, `classes`, `listed` and `tables`,
//! `class_table`, `functions`, `searches` (functions of SQLite that are replaced), `answers` (results of analyses), `views` (names of other tools), `rewrite` (class names
//! in the text), and `raw` (the bridge to SQLite).

mod answers;
mod class_table;
mod classes;
mod functions;
mod largest;
mod listed;
mod objects;
mod raw;
mod references;
mod rewrite;
mod searches;
pub(crate) mod table;
mod tables;
mod views;

use crate::Lang;
use crate::cell::{Cell, Cut, Table};
use crate::error::QueryError;
use crate::shared::Env;
use crate::sink::Sink;
use heap_analysis::sets::similar::nearest;
use heap_graph::HeapError;
use raw::{Database, SQLITE_MEMORY};
use rewrite::{Known, Rewritten, rewrite};
use rusqlite::functions::FunctionFlags;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Error, ErrorCode, Statement};
use std::sync::Arc;
use table::{ColumnDef, Source};

/// The longest text or row in bytes: one value must not fill the memory.
const MAX_LENGTH: i32 = 64 << 20;

/// Steps of SQLite's machine between two checks of the limits: each may build a value of that length.
const STEPS: i32 = 200;

/// Functions whose work grows with the product of the sizes of two values.
const SLOW: [&str; 2] = ["json_patch", "jsonb_patch"];

/// All tables with fixed names.
fn fixed() -> Vec<(&'static str, Arc<dyn Source>)> {
    let mut all: Vec<(&'static str, Arc<dyn Source>)> = vec![
        ("objects", Arc::new(objects::Objects::new())),
        ("references", Arc::new(references::References::new())),
        ("classes", Arc::new(classes::Classes::new())),
    ];
    let listed = tables::all()
        .into_iter()
        .chain(functions::tables())
        .chain(answers::all());
    all.extend(listed.map(|(name, table)| (name, Arc::new(table) as Arc<dyn Source>)));
    all
}

/// Tables and table functions for completion: name and columns.
pub(crate) fn catalog() -> Vec<(&'static str, Vec<ColumnDef>)> {
    fixed()
        .into_iter()
        .map(|(name, source)| (name, source.columns().to_vec()))
        .collect()
}

/// True for the name of a table, function or view that every heap has.
pub(crate) fn is_table(name: &str) -> bool {
    let fixed = fixed();
    let mut names = fixed.iter().map(|f| f.0).chain(view_names());
    names.any(|n| n.eq_ignore_ascii_case(name))
}

/// Names of the views.
pub(crate) fn view_names() -> impl Iterator<Item = &'static str> {
    views::VIEWS.iter().map(|v| v.0)
}

/// Names of the functions of objects.
pub(crate) fn function_names() -> impl Iterator<Item = &'static str> {
    functions::names()
}

/// The columns of a class's table.
pub(crate) fn class_columns(env: &Env, name: &str) -> Option<Vec<ColumnDef>> {
    let named = env.classes_named(name);
    let table = || class_table::ClassTable::new(env, named, false);
    (!named.is_empty()).then(|| table().columns().to_vec())
}

/// A database with everything that a query can name, but without data of its own.
fn connect(env: &Env, rewritten: &Rewritten) -> Result<Database, Error> {
    Env::forget();
    let mut db = Database::open(env)?;
    let fixed = fixed();
    for (name, class, subclasses) in &rewritten.classes {
        if fixed.iter().any(|f| f.0.eq_ignore_ascii_case(name)) {
            continue;
        }
        let classes = env.classes_named(class);
        let table = class_table::ClassTable::new(env, classes, *subclasses);
        raw::register(&db, name, Arc::new(table), env.clone())?;
    }
    for (name, source) in fixed {
        raw::register(&db, name, source, env.clone())?;
    }
    functions::register(&db, env)?;
    searches::register(&db, env)?;
    let timestamp = i64::try_from(env.heap.summary().timestamp_ms).unwrap_or(0);
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC;
    db.create_scalar_function("heap_timestamp", 0, flags, move |_| {
        Ok(timestamp.saturating_mul(1_000_000))
    })?;
    for (name, definition) in views::VIEWS {
        db.execute_batch(&format!("create temp view {name} as {definition}"))?;
    }
    db.set_limit(Limit::SQLITE_LIMIT_LENGTH, MAX_LENGTH)?;
    db.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    let stop = env.stop.clone();
    db.progress_handler(STEPS, Some(move || stop.reason().is_some()))?;
    db.authorizer(Some(only_reading))?;
    Ok(db)
}

/// A query may only read: no files, no settings, no tables of its own.
fn only_reading(context: AuthContext<'_>) -> Authorization {
    match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => {
            Authorization::Allow
        }
        AuthAction::Function { function_name }
            if !function_name.eq_ignore_ascii_case("load_extension")
                && !SLOW
                    .iter()
                    .any(|name| function_name.eq_ignore_ascii_case(name)) =>
        {
            Authorization::Allow
        }
        _ => Authorization::Deny,
    }
}

fn rewritten(env: &Env, text: &str) -> Result<Rewritten, QueryError> {
    let known = Known {
        is_class: &|name| !env.classes_named(name).is_empty(),
        is_id: &|id| env.heap.find(id).is_some() || env.class_of_id(id).is_some(),
    };
    rewrite(text, known)
}

/// Runs a query.
pub(crate) fn run(env: &Env, text: &str, sink: &mut dyn Sink) -> Result<Option<Cut>, QueryError> {
    let rewritten = rewritten(env, text)?;
    let db = connect(env, &rewritten).map_err(|e| QueryError::Run(e.to_string()))?;
    let mut statement = db
        .prepare(&rewritten.sql)
        .map_err(|e| unprepared(env, text, &rewritten, e))?;
    rows(env, &mut statement, sink).map_err(|e| error_of(env, text, &rewritten, e))
}

/// What SQLite makes of a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reading {
    /// It is a query.
    Accepted,
    /// It has the form of a query, and a name in it does not exist or is used in a wrong way.
    UnknownName,
    /// It is not SQL.
    Refused,
}

/// Prepares a text without running it.
pub(crate) fn read(env: &Env, text: &str) -> Reading {
    let Ok(rewritten) = rewritten(env, text) else {
        return Reading::Refused;
    };
    let Ok(db) = connect(env, &rewritten) else {
        return Reading::Refused;
    };
    match db.prepare(&rewritten.sql) {
        Ok(_) => Reading::Accepted,
        Err(Error::SqlInputError { msg, .. } | Error::SqliteFailure(_, Some(msg))) => {
            let form = ["syntax error", "unrecognized token", "incomplete input"];
            match form.iter().any(|part| msg.contains(part)) {
                true => Reading::Refused,
                false => Reading::UnknownName,
            }
        }
        Err(_) => Reading::Refused,
    }
}

/// SQLite's plan of a query.
pub(crate) fn explain(env: &Env, text: &str) -> Result<Table, QueryError> {
    let mut rewritten = rewritten(env, text)?;
    let db = connect(env, &rewritten).map_err(|e| QueryError::Run(e.to_string()))?;
    // Prepared without EXPLAIN first, so that positions in errors are those in the original text.
    if let Err(error) = db.prepare(&rewritten.sql) {
        return Err(unprepared(env, text, &rewritten, error));
    }
    let failed = |e: Error| QueryError::Run(e.to_string());
    rewritten.sql.insert_str(0, "explain query plan ");
    let mut statement = db.prepare(&rewritten.sql).map_err(failed)?;
    let lines = statement
        .query_map([], |row| row.get::<_, String>(3))
        .map_err(failed)?;
    let rows: Result<Vec<_>, Error> = lines.map(|l| Ok(vec![Cell::Text(l?)])).collect();
    Ok(Table {
        lang: Lang::Sql,
        columns: vec!["plan".to_owned()],
        object_columns: Vec::new(),
        rows: rows.map_err(failed)?,
        cut: None,
        notes: Vec::new(),
    })
}

fn rows(
    env: &Env,
    statement: &mut Statement<'_>,
    sink: &mut dyn Sink,
) -> Result<Option<Cut>, Error> {
    let names = statement.column_names().map(str::to_owned);
    let names: Vec<String> = names.collect();
    let kinds: Vec<Option<bool>> = statement
        .columns()
        .map(|c| {
            c.decl_type()
                .filter(|t| !t.is_empty())
                .map(|t| t.ends_with("OBJECT"))
        })
        .collect();
    sink.columns(&names);
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let mut cells = Vec::with_capacity(kinds.len());
        let mut bytes = 0;
        for (n, kind) in kinds.iter().enumerate() {
            let value = row.get_ref(n)?;
            bytes += match value {
                ValueRef::Text(text) => text.len() as u64,
                ValueRef::Blob(blob) => 2 * blob.len() as u64,
                _ => 0,
            };
            if !env.stop.admits(bytes) {
                return Ok(Some(Cut::Rows));
            }
            cells.push(cell(env, value, *kind));
        }
        if !sink.row(cells) {
            return Ok(Some(Cut::Rows));
        }
    }
    Ok(None)
}

/// A value as a cell. In a column of objects, a text is an object; in an expression, a text that is an object id is
/// one, too, because functions return objects.
fn cell(env: &Env, value: ValueRef<'_>, is_object: Option<bool>) -> Cell {
    match value {
        ValueRef::Null => Cell::Null,
        ValueRef::Integer(n) => Cell::Int(n),
        ValueRef::Real(n) => Cell::Real(n),
        ValueRef::Blob(bytes) => Cell::Text(bytes.iter().map(|b| format!("{b:02x}")).collect()),
        ValueRef::Text(bytes) => {
            let text = String::from_utf8_lossy(bytes);
            let id = match is_object {
                Some(true) => text.parse().ok(),
                None if text.starts_with("0x") => {
                    let id = text.parse().ok();
                    id.filter(|id| env.heap.find(*id).is_some())
                }
                Some(false) | None => None,
            };
            id.map_or_else(|| Cell::Text(text.into_owned()), Cell::Object)
        }
    }
}

/// The error of a text that SQLite does not accept: it always has a position.
fn unprepared(env: &Env, text: &str, rewritten: &Rewritten, error: Error) -> QueryError {
    let message = match error_of(env, text, rewritten, error) {
        QueryError::Run(message) => message,
        other => return other,
    };
    let Some(name) = message.strip_prefix("no such table: ") else {
        return QueryError::at(text, text.len(), message);
    };
    let place = word_at(text, name).unwrap_or(text.len());
    QueryError::at(text, place, format!("{message}{}", hint(env, name)))
}

/// The position of a name in a text, as a whole word.
fn word_at(text: &str, name: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || "_$".contains(c);
    let mut found = text.match_indices(name).filter(|(at, _)| {
        !text[..*at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part)
    });
    found.next().map(|(at, _)| at)
}

/// What to write instead of the name of a table that does not exist.
fn hint(env: &Env, name: &str) -> String {
    if name.eq_ignore_ascii_case("instanceof") {
        return " (in SQL, instanceof.\"a.B\" is the table of a class with its subclasses)"
            .to_owned();
    }
    let fixed = fixed();
    let mut known: Vec<&str> = fixed.iter().map(|f| f.0).chain(view_names()).collect();
    known.extend(env.heap.classes().iter().map(|class| class.name.as_str()));
    nearest(name, &known).map_or_else(String::new, |name| format!("; did you mean {name}?"))
}

/// True for a failure that is not the fault of the query.
fn is_of_the_machine(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::DiskFull | ErrorCode::SystemIoFailure | ErrorCode::CannotOpen
    )
}

fn error_of(env: &Env, text: &str, rewritten: &Rewritten, error: Error) -> QueryError {
    if let Some(cut) = env.stop.reason() {
        return QueryError::Stopped(cut);
    }
    if let Some(error) = env.stop.take_fault() {
        return QueryError::Heap(error);
    }
    match error {
        Error::SqlInputError { msg, offset, .. } => {
            // SQLite does not report a position for every error; the end of the text is a better guess than its start.
            let offset = usize::try_from(offset).map_or(text.len(), |o| rewritten.original(o));
            QueryError::at(text, offset, plain(&msg))
        }
        Error::SqliteFailure(error, message) if is_of_the_machine(error.code) => {
            let message = message.unwrap_or_else(|| error.to_string());
            QueryError::Heap(HeapError::Io {
                what: "temporary files of the query".to_owned(),
                error: std::io::Error::other(message),
            })
        }
        Error::SqliteFailure(error, _) if error.code == ErrorCode::OutOfMemory => {
            QueryError::Limit(format!(
                "SQLite needs more memory than its limit for all queries, {} MiB",
                SQLITE_MEMORY >> 20
            ))
        }
        Error::SqliteFailure(error, _) if error.code == ErrorCode::TooBig => {
            QueryError::Limit(format!(
                "a text or blob exceeds the limit for its length, {} MiB",
                MAX_LENGTH >> 20
            ))
        }
        Error::SqliteFailure(_, Some(message)) => QueryError::Run(plain(&message)),
        other => QueryError::Run(other.to_string()),
    }
}

/// SQLite's message, replaced by a clearer one in the usual case.
fn plain(message: &str) -> String {
    match message {
        "not authorized" => "only SELECT is possible: a dump is never changed".to_owned(),
        "authorization denied" => "only SELECT is possible: a dump is never changed".to_owned(),
        "no query solution" => {
            "a function in FROM needs its argument, for example outbound(o.id)".to_owned()
        }
        other => other.to_owned(),
    }
}
