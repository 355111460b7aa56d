//! Instances of a class, as requested by an address: from the agent now, or from a heap dump.

use super::tables;
use crate::dumps::list::Dump;
use crate::recording::live_objects;
use crate::recording::state::Live;
use heap_graph::Heap;
use live_analysis::allocation_times;
use live_analysis::columns::Tabular;
use live_analysis::instances::{self, Found, Group, Instance, Query, Uniq};
use live_analysis::range::Range;
use live_analysis::table::{Examined, Table};
use requests::Fault;
use requests::Params;
use std::sync::Arc;
use vmpi::{ClassOptions, Share};

/// The source of the instances.
pub enum Source {
    /// The running program: the objects that the agent tracks.
    Live,
    /// A heap dump, with its number.
    Dump(usize, Arc<Dump>),
    /// The recording: allocated objects, live or freed.
    Recording,
}

/// The parameters `source` (live, dump, or recording) and `dump` (a number). The default is an open heap dump; but it
/// is the program if results of the objects' methods, allocation times, or the objects of a range are requested.
pub fn source(live: &Live, params: &Params, wants_time: bool) -> Result<Source, Fault> {
    let connected = live.commands().is_some();
    let own_code = live.status().borrow().own_code;
    let has_dump = live
        .dumps
        .all()
        .iter()
        .any(|dump| dump.opened.heap().is_ok());
    match params.one_of("source", &instances::SOURCES)? {
        Some("live") => Ok(Source::Live),
        Some("recording") if wants_time => Ok(Source::Recording),
        Some("dump") => dump_of(live, params).map(|(number, dump)| Source::Dump(number, dump)),
        Some(_) => Err(Fault::bad(
            "source=recording: only with a step of time in by=",
        )),
        None if wants_time && connected => Ok(Source::Live),
        None if wants_time => Ok(Source::Recording),
        None if params.get("dump").is_none()
            && connected
            && (own_code || !has_dump || range(params)?.is_some()) =>
        {
            Ok(Source::Live)
        }
        None => dump_of(live, params).map(|(number, dump)| Source::Dump(number, dump)),
    }
}

/// The dump that `dump` names, otherwise the last open one.
fn dump_of(live: &Live, params: &Params) -> Result<(usize, Arc<Dump>), Fault> {
    let none = || Fault::not_found("there is no such heap dump");
    let nowhere = || {
        Fault::not_found(
            "there is no heap dump and no recording: take a heap dump, or start a recording",
        )
    };
    if params.get("dump").is_some() {
        let number = params.number("dump", 0)?;
        return Ok((number, live.dumps.get(number).ok_or_else(none)?));
    }
    let all = match range(params)? {
        Some(range) => live.dumps.of_time(range.to),
        None => live.dumps.all(),
    };
    let open = all
        .iter()
        .enumerate()
        .rev()
        .find(|(_, dump)| dump.opened.heap().is_ok());
    match open {
        Some((n, dump)) => Ok((n + 1, Arc::clone(dump))),
        None => Ok((all.len(), all.last().cloned().ok_or_else(nowhere)?)),
    }
}

fn class(params: &Params) -> Result<&str, Fault> {
    params
        .get("class")
        .ok_or_else(|| Fault::bad("class is missing: expected a class name"))
}

/// The requested range of allocation times, if any.
fn range(params: &Params) -> Result<Option<Range>, Fault> {
    let is_chosen = params.get("from").is_some() || params.get("to").is_some();
    is_chosen.then(|| tables::range(params)).transpose()
}

fn query(params: &Params) -> Result<Query, Fault> {
    Ok(Query {
        page: tables::page(params)?,
        sample: match params.get("sample") {
            None | Some("all") => None,
            Some(_) => Some(params.number("sample", 1000)?),
        },
        value_limit: params.number("value", 200)?,
        born: range(params)?,
    })
}

/// Limits a query to the share of the objects of a dump that the class filters allow.
fn share(query: &Query, options: &ClassOptions, heap: &Heap, class: &str) -> Query {
    let mut query = query.clone();
    if options.share != Share::ALL {
        let objects = instances::count(heap, class) as f64;
        let share = (objects * options.share.ratio()).ceil() as usize;
        query.sample = Some(query.sample.map_or(share, |asked| asked.min(share)));
    }
    query
}

/// The requested page of a table about the objects of a class.
fn table<R: Tabular>(
    class: &str,
    query: &Query,
    (source, dump): (&'static str, Option<usize>),
    found: Found<R>,
) -> Result<Table<R>, Fault> {
    let table = Table::page(source, found.rows, &query.page);
    Ok(Table {
        range: query.born.and_then(tables::covered),
        dump,
        examined: Some(Examined {
            class: class.to_owned(),
            objects: found.objects,
            sampled: found.sampled,
            own_code: found.own_code,
        }),
        notes: found.notes,
        ..table.map_err(|unknown| Fault::bad(unknown.to_string()))?
    })
}

/// The instances of the `class`.
///
/// # Errors
/// There is neither an agent nor a dump, or a parameter is wrong.
pub fn list(live: &Live, params: &Params) -> Result<Table<Instance>, Fault> {
    list_of(
        live,
        class(params)?,
        &query(params)?,
        source(live, params, false)?,
    )
}

/// As [`list`], with given parameters.
///
/// # Errors
/// Those of [`list`].
pub fn list_of(
    live: &Live,
    class: &str,
    query: &Query,
    source: Source,
) -> Result<Table<Instance>, Fault> {
    // Excluded classes are not shown, even if data about them exists.
    let options = tables::detail(live, class)?;
    match source {
        Source::Dump(number, dump) => {
            let heap = dump.opened.heap()?;
            let query = share(query, &options, heap, class);
            let found = instances::list(heap, class, &query, &options);
            let mut list = table(class, &query, ("dump", Some(number)), found)?;
            if options.stack {
                instances::add_stacks(heap, &mut list.rows);
            }
            live_objects::add_contexts(live, &mut list.rows);
            Ok(list)
        }
        Source::Live | Source::Recording => {
            let found = live_objects::list(live, class, query)?;
            table(class, query, ("live", None), found)
        }
    }
}

/// The instances of the `class`, counted `by` a common property.
///
/// # Errors
/// Those of [`list`].
pub fn groups(live: &Live, params: &Params) -> Result<Table<Group>, Fault> {
    let word = params.one_of("by", &Uniq::WORDS)?;
    let by = match word.and_then(Uniq::named).unwrap_or(Uniq::Value) {
        Uniq::Size(step) => Uniq::Size(params.number("step", step as usize)? as u64),
        by => by,
    };
    let source = source(live, params, matches!(by, Uniq::Time(_)))?;
    groups_of(live, (class(params)?, by), &query(params)?, source)
}

/// As [`groups`], with given parameters.
///
/// # Errors
/// Those of [`list`].
pub fn groups_of(
    live: &Live,
    (class, by): (&str, Uniq),
    query: &Query,
    source: Source,
) -> Result<Table<Group>, Fault> {
    let options = tables::detail(live, class)?;
    let is_left_out = match by {
        Uniq::Stack => !options.stack,
        Uniq::Size(_) => !options.size,
        Uniq::Time(_) => !options.time,
        _ => false,
    };
    if is_left_out {
        return Err(Fault::bad(format!(
            "by: the class filters of {class} exclude that"
        )));
    }
    let (place, found) = match (source, by) {
        (Source::Recording, Uniq::Time(step)) => {
            let range = query.born.unwrap_or(Range::ALL);
            let counted = live.recorded(|recorded| {
                let recording = (recorded.profile()?, &recorded.history);
                Some(allocation_times::groups(recording, class, (step, range)))
            });
            let none = || Fault::not_found("nothing has been recorded; start a recording first");
            let (objects, rows) = counted.ok_or_else(none)?;
            let sampled = usize::try_from(objects).unwrap_or(usize::MAX);
            (("recording", None), Found::of((objects, sampled), rows))
        }
        (Source::Dump(..), Uniq::Time(_)) => {
            return Err(Fault::bad(
                "a heap dump has no allocation times: use source=live",
            ));
        }
        (Source::Dump(number, dump), _) => {
            let heap = dump.opened.heap()?;
            let query = share(query, &options, heap, class);
            let found = instances::groups(heap, class, by, &query);
            (("dump", Some(number)), found)
        }
        (Source::Live | Source::Recording, _) => (
            ("live", None),
            live_objects::groups(live, class, by, query)?,
        ),
    };
    table(class, query, place, found)
}
