//! Queries: the text is a parameter of the address, the rows are returned as `tenure.query/1`.

use super::state::Explorer;
use crate::reply::{Form, Written};
use heap_analysis::sets::spec::SetSpec;
use heap_query::{Lang, Limits, Session};
use report::Provenance;
use report::csv::{line, row};
use report::say::Tables;
use requests::Fault;
use requests::{MOST_ROWS, Params};
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Rows of an answer by default.
const ROWS: usize = 1000;

/// Seconds that a query may take, by default and at most.
const SECONDS: usize = 60;
const MOST_SECONDS: usize = 3600;

/// The most completions of a word.
const PROPOSALS: usize = 12;

/// Stops a query when it is dropped, which happens when no one waits for the answer any more.
#[derive(Debug, Default)]
pub(super) struct Waiting(Arc<AtomicBool>);

impl Waiting {
    /// Becomes true when no one waits.
    pub(super) fn cancel(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Answers the views for queries; `None` for all other views.
pub(super) fn answer(
    e: &Explorer,
    view: &str,
    params: &Params,
    form: Form,
    cancel: Arc<AtomicBool>,
) -> Option<Result<Written, Fault>> {
    match view {
        "query" => Some(run(e, params, form, cancel)),
        "query_plan" => Some(plan(e, params, form)),
        "query_tables" => Some(tables(e, form)),
        "complete" => Some(complete(e, params)),
        _ => None,
    }
}

/// Runs `text`.
fn run(
    e: &Explorer,
    params: &Params,
    form: Form,
    cancel: Arc<AtomicBool>,
) -> Result<Written, Fault> {
    let seconds = params.number("seconds", SECONDS)?.min(MOST_SECONDS);
    let limits = Limits {
        rows: Some(params.limit(ROWS)?.min(MOST_ROWS)),
        time: Some(Duration::from_secs(seconds as u64)),
        cancel,
        ..Limits::default()
    };
    let session = session(e)?;
    e.running_queries.fetch_add(1, Ordering::Relaxed);
    let table = session.run(text(params)?, lang(params)?, &limits);
    e.running_queries.fetch_sub(1, Ordering::Relaxed);
    let table = table?;
    if form == Form::Csv {
        let mut lines = line(&table.columns);
        lines.extend(table.rows.iter().map(|cells| row(cells)));
        let bytes = lines.into_bytes();
        return Ok(Written { form, bytes });
    }
    let provenance = Provenance::of(session.heap().summary());
    Ok(Written::new(form, &table, &provenance))
}

/// The plan of the query `text`.
fn plan(e: &Explorer, params: &Params, form: Form) -> Result<Written, Fault> {
    let session = session(e)?;
    let table = session.explain(text(params)?, lang(params)?, &Limits::default())?;
    let provenance = Provenance::of(session.heap().summary());
    Ok(Written::new(form, &table, &provenance))
}

/// Tables and columns.
fn tables(e: &Explorer, form: Form) -> Result<Written, Fault> {
    let session = session(e)?;
    let answer = Tables {
        tables: session.tables(),
    };
    let provenance = Provenance::of(session.heap().summary());
    Ok(Written::new(form, &answer, &provenance))
}

#[derive(Serialize)]
struct Proposals {
    schema: &'static str,
    proposals: Vec<String>,
}

/// Completions of the word at the end of `before` in the text `before` + `after`.
fn complete(e: &Explorer, params: &Params) -> Result<Written, Fault> {
    let before = params.get("before").unwrap_or_default();
    let text = format!("{before}{}", params.get("after").unwrap_or_default());
    let proposals = session(e)?.complete(&text, before.len(), PROPOSALS);
    let answer = Proposals {
        schema: "tenure.complete/1",
        proposals,
    };
    Ok(Written {
        form: Form::Json,
        bytes: crate::reply::json_bytes(&answer),
    })
}

/// A set whose queries are replaced by their objects.
pub(super) fn resolve(e: &Explorer, set: &SetSpec) -> Result<SetSpec, Fault> {
    let limits = Limits {
        time: Some(Duration::from_secs(SECONDS as u64)),
        ..Limits::default()
    };
    Ok(session(e)?.resolve(set, &limits)?)
}

fn text(params: &Params) -> Result<&str, Fault> {
    params
        .get("text")
        .ok_or_else(|| Fault::bad("text is missing: the query is empty"))
}

fn lang(params: &Params) -> Result<Option<Lang>, Fault> {
    let Some(name) = params.get("lang") else {
        return Ok(None);
    };
    let wrong = || Fault::bad(format!("lang={name}: expected sql, oql or jhat"));
    Lang::named(name).map(Some).ok_or_else(wrong)
}

/// The session that runs queries over the heap. The first query that needs referrers builds their table, if it does
/// not exist yet.
fn session(e: &Explorer) -> Result<&Session, Fault> {
    let heap = Arc::clone(e.heap()?);
    Ok(e.queries.get_or_init(|| Session::open(heap)))
}
