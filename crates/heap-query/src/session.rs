//! The interface of the crate: a session runs queries in any dialect over a heap.

use crate::cell::{Cell, Cut, Table};
use crate::error::QueryError;
use crate::lang::Lang;
use crate::limits::{Limits, Stop};
use crate::recognise::recognise;
use crate::shared::{Cache, Env};
use crate::sink::Sink;
use crate::{jhat, oql, sql};
use heap_analysis::sets::spec::SetSpec;
use heap_graph::Heap;
use hprof::ObjectId;
use std::sync::{Arc, Mutex, PoisonError};

/// A query that was run.
#[derive(Clone, Debug, PartialEq)]
pub struct HistoryEntry {
    /// The text of the query.
    pub text: String,
    /// The dialect it was read as.
    pub lang: Lang,
    /// Rows of the result; `None` when there was an error.
    pub rows: Option<u64>,
}

/// Runs queries over a heap. Several threads may share it: every query has its own database, and tables that need a
/// pass over the heap are built once.
pub struct Session {
    heap: Arc<Heap>,
    cache: Arc<Cache>,
    history: Mutex<Vec<HistoryEntry>>,
    unreachable: bool,
}

/// The number of queries that are remembered.
const HISTORY: usize = 1000;

impl Session {
    /// A session over a heap.
    pub fn open(heap: Arc<Heap>) -> Session {
        Session {
            heap,
            cache: Arc::default(),
            history: Mutex::default(),
            unreachable: false,
        }
    }

    /// Includes unreachable objects in MAT OQL; MAT drops them when it opens a dump. SQL and jhat OQL include all
    /// objects in any case.
    pub fn with_unreachable(self, unreachable: bool) -> Session {
        Session {
            unreachable,
            ..self
        }
    }

    /// The heap.
    pub fn heap(&self) -> &Arc<Heap> {
        &self.heap
    }

    pub(crate) fn env(&self, limits: &Limits) -> Env {
        Env {
            heap: self.heap.clone(),
            cache: self.cache.clone(),
            stop: Arc::new(Stop::new(limits, self.heap.memory())),
            unreachable: self.unreachable,
            ask: Some(ask),
            scanned_class: Arc::default(),
            kept_class: Arc::default(),
            notes: Arc::default(),
        }
    }

    /// Runs a query and collects its rows. Without `lang` the dialect is recognised from the text.
    pub fn run(
        &self,
        text: &str,
        lang: Option<Lang>,
        limits: &Limits,
    ) -> Result<Table, QueryError> {
        let mut collected = Collected {
            columns: Vec::new(),
            rows: Vec::new(),
            notes: Vec::new(),
        };
        let (lang, cut) = self.query(text, lang, limits, &mut collected, true)?;
        let holds = |n: &usize| {
            let mut cells = collected.rows.iter().filter_map(|row| row.get(*n));
            cells.any(Cell::holds_object)
        };
        Ok(Table {
            lang,
            object_columns: (0..collected.columns.len()).filter(holds).collect(),
            columns: collected.columns,
            rows: collected.rows,
            cut,
            notes: collected.notes,
        })
    }

    /// Runs a query and passes its rows on as they are found. Returns the dialect and the reason why rows are missing,
    /// if any are.
    pub fn each(
        &self,
        text: &str,
        lang: Option<Lang>,
        limits: &Limits,
        sink: &mut dyn Sink,
    ) -> Result<(Lang, Option<Cut>), QueryError> {
        self.query(text, lang, limits, sink, false)
    }

    /// See [`Session::each`]; `collects` if the sink keeps the rows in memory.
    fn query(
        &self,
        text: &str,
        lang: Option<Lang>,
        limits: &Limits,
        sink: &mut dyn Sink,
        collects: bool,
    ) -> Result<(Lang, Option<Cut>), QueryError> {
        let asked = lang.is_some();
        not_empty(text)?;
        let env = self.env(limits);
        let lang = lang.unwrap_or_else(|| recognise(&env, text));
        let mut limited = Limited {
            sink: &mut *sink,
            left: limits.rows.unwrap_or(usize::MAX),
            rows: 0,
            stop: &env.stop,
            bytes: collects.then_some(0),
        };
        let result = run(&env, text, lang, &mut limited);
        let rows = limited.rows;
        let result = result.and_then(|cut| self.heap.check().map(|()| cut).map_err(Into::into));
        env.notes().iter().for_each(|note| sink.note(note));
        self.remember(HistoryEntry {
            text: text.to_owned(),
            lang,
            rows: result.is_ok().then_some(rows),
        });
        let result = result.map_err(|error| match asked {
            true => error,
            false => error.recognised_as(lang),
        });
        Ok((lang, result?))
    }

    /// Runs every query in a set: `sql:(TEXT)` is replaced by the objects in the result, taken from the first column
    /// in which an object occurs.
    ///
    /// # Errors
    /// When a query fails, has no column of objects, or is stopped by a limit: an incomplete set would be mistaken for
    /// the complete one.
    pub fn resolve(&self, set: &SetSpec, limits: &Limits) -> Result<SetSpec, QueryError> {
        self.env(limits).resolve(set)
    }

    /// How a query would run. SQL: the tables in the order in which they are scanned, and the filters and order that
    /// each scan applies itself. OQL: how the text was parsed.
    pub fn explain(
        &self,
        text: &str,
        lang: Option<Lang>,
        limits: &Limits,
    ) -> Result<Table, QueryError> {
        not_empty(text)?;
        let asked = lang.is_some();
        let env = self.env(limits);
        let lang = lang.unwrap_or_else(|| recognise(&env, text));
        let plan = match lang {
            Lang::Sql => sql::explain(&env, text),
            Lang::Oql => oql::explain(text).map(|plan| lines_of(lang, &plan)),
            Lang::Jhat => jhat::explain(text).map(|plan| lines_of(lang, &plan)),
        };
        plan.map_err(|error| match asked {
            true => error,
            false => error.recognised_as(lang),
        })
    }

    fn remember(&self, entry: HistoryEntry) {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        if history.len() >= HISTORY {
            history.remove(0);
        }
        history.push(entry);
    }

    /// The queries of this session, oldest first.
    pub fn history(&self) -> Vec<HistoryEntry> {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.clone()
    }
}

/// Refuses a text without a query, before a language is detected.
fn not_empty(text: &str) -> Result<(), QueryError> {
    let is_blank = |c: char| c.is_whitespace() || c == ';';
    match text.chars().all(is_blank) {
        true => Err(QueryError::Run("the query is empty".to_owned())),
        false => Ok(()),
    }
}

fn run(env: &Env, text: &str, lang: Lang, sink: &mut dyn Sink) -> Result<Option<Cut>, QueryError> {
    let result = match lang {
        Lang::Sql => sql::run(env, text, sink),
        Lang::Oql => oql::run(env, text, sink),
        Lang::Jhat => jhat::run(env, text, sink),
    };
    if let Some(error) = env.stop.exceeded() {
        return Err(error);
    }
    match result {
        // The rows that were found until then are the result.
        Err(QueryError::Stopped(cut)) => Ok(Some(cut)),
        // If a scan ends early, there may be no further row at which the query would notice it.
        Ok(None) => Ok(env.stop.cut()),
        result => result,
    }
}

/// The objects of a query inside a set.
fn ask(env: &Env, dialect: &str, text: &str) -> Result<Vec<ObjectId>, QueryError> {
    not_empty(text)?;
    let lang = Lang::named(dialect).unwrap_or_else(|| recognise(env, text));
    let mut ids = Ids {
        column: None,
        found: Vec::new(),
        rows: 0,
        stop: &env.stop,
    };
    match run(env, text, lang, &mut ids)? {
        Some(cut) => Err(QueryError::Stopped(cut)),
        None if ids.rows > 0 && ids.column.is_none() => Err(QueryError::Run(
            "the result has no column of objects, so it is not a set".to_owned(),
        )),
        None => Ok(ids.found),
    }
}

fn lines_of(lang: Lang, text: &str) -> Table {
    Table {
        lang,
        columns: vec!["plan".to_owned()],
        object_columns: Vec::new(),
        rows: text
            .lines()
            .map(|l| vec![Cell::Text(l.to_owned())])
            .collect(),
        cut: None,
        notes: Vec::new(),
    }
}

/// The objects of a result: those of the first column in which an object occurs.
struct Ids<'a> {
    column: Option<usize>,
    found: Vec<ObjectId>,
    rows: u64,
    stop: &'a Stop,
}

impl Ids<'_> {
    fn add(&mut self, cell: &Cell) {
        match cell {
            Cell::Object(id) => self.found.push(*id),
            Cell::List(cells) => cells.iter().for_each(|c| self.add(c)),
            _ => {}
        }
    }
}

impl Sink for Ids<'_> {
    fn columns(&mut self, _: &[String]) {}

    fn row(&mut self, cells: Vec<Cell>) -> bool {
        self.rows += 1;
        let first = || cells.iter().position(Cell::holds_object);
        self.column = self.column.or_else(first);
        if let Some(cell) = self.column.and_then(|n| cells.get(n)) {
            self.add(cell);
        }
        self.stop.admits(size_of_val(&self.found[..]) as u64)
    }
}

struct Collected {
    columns: Vec<String>,
    rows: Vec<Vec<Cell>>,
    notes: Vec<String>,
}

impl Sink for Collected {
    fn columns(&mut self, names: &[String]) {
        self.columns = names.to_vec();
    }

    fn row(&mut self, cells: Vec<Cell>) -> bool {
        self.rows.push(cells);
        true
    }

    fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }
}

/// Passes on at most this many rows; the first row beyond the limit ends the query.
struct Limited<'a> {
    sink: &'a mut dyn Sink,
    left: usize,
    rows: u64,
    stop: &'a Stop,
    /// Bytes of the rows, if they are kept in memory.
    bytes: Option<u64>,
}

impl Sink for Limited<'_> {
    fn columns(&mut self, names: &[String]) {
        self.sink.columns(names);
    }

    fn row(&mut self, cells: Vec<Cell>) -> bool {
        if self.left == 0 {
            return false;
        }
        if let Some(bytes) = &mut self.bytes {
            *bytes += cells.iter().map(Cell::bytes).sum::<u64>();
            if !self.stop.admits(*bytes) {
                return false;
            }
        }
        self.left -= 1;
        self.rows += 1;
        self.sink.row(cells)
    }
}
