//! Answers about a recording as plain data: one function per address.

use super::references;
use crate::clock::now_ms;
use crate::dumps::list::Dump;
use crate::recording::sizes::add;
use crate::recording::state::Live;
use live_analysis::allocations::{self as sites, By, Node, Row};
use live_analysis::class_filters;
use live_analysis::classes::{self, Apart, ClassRow};
use live_analysis::columns::Tabular;
use live_analysis::comparison::{self, Change};
use live_analysis::contents::ClassContents;
use live_analysis::history::{self, Delta, History};
use live_analysis::origin;
use live_analysis::range::Range;
use live_analysis::table::{Page, Table};
use profile::write::jfr::{Allocation, Timed};
use profile::write::{self, jfr};
use profile::{Metric, NameId, Profile, TraceId};
use regex::{Regex, RegexBuilder};
use report::profile::Form;
use requests::Fault;
use requests::Params;
use rustc_hash::FxHashSet;
use serde::Serialize;
use std::sync::Arc;
use vmpi::ClassOptions;

/// The default number of rows on a page.
const ROWS: usize = 100;
/// The most nodes of a tree.
const NODES: usize = 5_000;

/// `from` and `to`; the default is all time.
///
/// # Errors
/// One is not a time, or the end is before the begin.
pub fn range(params: &Params) -> Result<Range, Fault> {
    let from = number(params, "from", 0)?;
    let to = number(params, "to", u64::MAX)?;
    match from <= to {
        true => Ok(Range { from, to }),
        false => Err(Fault::bad(format!(
            "from={from}, to={to}: the range ends before it begins"
        ))),
    }
}

/// The range that an answer of this moment covers.
pub(super) fn covered(range: Range) -> Option<Range> {
    Some(range.until(now_ms()))
}

fn number(params: &Params, name: &str, default: u64) -> Result<u64, Fault> {
    match params.get(name) {
        None => Ok(default),
        Some(text) => text
            .parse()
            .map_err(|_| Fault::bad(format!("{name}={text}: expected milliseconds since 1970"))),
    }
}

/// `filter` (text, case-insensitive) or `regex`.
pub fn pattern(params: &Params) -> Result<Option<Regex>, Fault> {
    if let Some(regex) = params.regex("regex")? {
        return Ok(Some(regex));
    }
    let Some(text) = params.get("filter") else {
        return Ok(None);
    };
    let made = RegexBuilder::new(&regex::escape(text))
        .case_insensitive(true)
        .build();
    made.map(Some)
        .map_err(|error| Fault::bad(format!("filter: {error}")))
}

/// The requested rows: `sort`, `up`, `offset` and `limit`.
pub(super) fn page(params: &Params) -> Result<Page, Fault> {
    Ok(Page {
        sort: params.get("sort").unwrap_or_default().to_owned(),
        up: params.flag("up"),
        offset: params.offset()?,
        limit: params.limit(ROWS)?,
    })
}

/// The requested page of these rows.
pub(super) fn table<R: Tabular>(
    params: &Params,
    source: &'static str,
    rows: Vec<R>,
) -> Result<Table<R>, Fault> {
    let table = Table::page(source, rows, &page(params)?);
    table.map_err(|unknown| Fault::bad(unknown.to_string()))
}

fn no_recording() -> Fault {
    Fault::not_found("nothing has been recorded; start a recording first")
}

/// `heap`: java, or native, where the class is the library that requested a block.
fn is_native(params: &Params) -> Result<bool, Fault> {
    match params.get("heap") {
        None | Some("" | "java") => Ok(false),
        Some("native") => Ok(true),
        Some(other) => Err(Fault::bad(format!("heap={other}: expected java or native"))),
    }
}

/// Reads the sites of a range.
fn deltas<T>(
    live: &Live,
    params: &Params,
    look: impl FnOnce(&Profile, &History, Vec<Delta>) -> Result<T, Fault>,
) -> Result<T, Fault> {
    let (range, pattern) = (range(params)?, pattern(params)?);
    live.recorded(|recorded| {
        let profile = recorded.profile().ok_or_else(no_recording)?;
        let is_native = is_native(params)?;
        let history = match is_native {
            true => &recorded.native,
            false => &recorded.history,
        };
        let mut deltas = history.range(range.from, range.to);
        if !is_native {
            class_filters::cut_sites(recorded.filters(&live.rules.get()), &mut deltas);
        }
        sites::filter(profile, &mut deltas, pattern.as_ref());
        look(profile, history, deltas)
    })
}

/// The allocations in the range: `by` class, package, method or site.
pub fn allocations(live: &Live, params: &Params) -> Result<Table<Row>, Fault> {
    let word = params.one_of("by", &By::WORDS)?;
    let by = word.and_then(By::named).unwrap_or_default();
    let range = range(params)?;
    deltas(live, params, |profile, _, mut deltas| {
        deltas.retain(Delta::is_something);
        let rows = sites::rows(profile, &deltas, by);
        Ok(Table {
            range: covered(range),
            total: Some(sites::total(&deltas)),
            ..table(params, "recording", rows)?
        })
    })
}

/// The tree of callers of a range: `tenure.live.stacks/1`.
#[derive(Clone, Debug, Serialize)]
pub struct Stacks {
    /// Name of the schema.
    pub schema: &'static str,
    /// The range.
    pub range: Range,
    /// The sum of all stacks.
    pub total: Row,
    /// Callers before what they call; the parent is an index in this list.
    pub nodes: Vec<Node>,
}

/// The stacks of a range as a tree.
pub fn stacks(live: &Live, params: &Params) -> Result<Stacks, Fault> {
    let range = range(params)?;
    let most = params.limit(NODES)?;
    deltas(live, params, |profile, _, deltas| {
        Ok(Stacks {
            schema: "tenure.live.stacks/1",
            range: range.until(now_ms()),
            total: sites::total(&deltas),
            nodes: sites::tree(profile, &deltas, most),
        })
    })
}

/// A range as a profile in a form that other tools read.
pub fn profile(live: &Live, params: &Params, form: Form) -> Result<Vec<u8>, Fault> {
    let metric = match params.get("metric") {
        None => None,
        Some(name) => Some(metric(name)?),
    };
    if form == Form::Plain(write::Form::Jfr) && !is_native(params)? {
        return recording(live, params, metric);
    }
    let title = match is_native(params)? {
        true => "Native allocations",
        false => "Allocations",
    };
    let range = range_profile(live, params)?;
    Ok(report::profile::render(&range, form, metric, title))
}

/// A range as a JFR recording, in which each allocation has the time of the first snapshot that contains it.
fn recording(live: &Live, params: &Params, metric: Option<Metric>) -> Result<Vec<u8>, Fault> {
    let range = range(params)?;
    deltas(live, params, |profile, history, deltas| {
        let kept: FxHashSet<(NameId, TraceId)> = deltas
            .iter()
            .map(|delta| (delta.class, delta.trace))
            .collect();
        // Stacks that the class filters exclude have been replaced by the empty one.
        let place = |class, trace| {
            let stacks = [trace, TraceId::EMPTY];
            stacks
                .into_iter()
                .find(|trace| kept.contains(&(class, *trace)))
        };
        let all = history.allocations(range.from, range.to).into_iter();
        let allocations = all.filter_map(|(time_ms, class, trace, volume)| {
            Some(Allocation {
                time_ms,
                class,
                trace: place(class, trace)?,
                bytes: volume.bytes,
            })
        });
        let times = history.times();
        let in_range = |time: &&u64| (range.from..=range.to).contains(*time);
        let last = times.iter().rev().find(in_range).copied();
        let first = times.iter().find(in_range).copied();
        let begin = profile.created_ms.max(range.from);
        let begin_ms = first.map_or(begin, |first| first.min(begin));
        let timed = Timed {
            begin_ms,
            end_ms: last.unwrap_or(begin_ms),
            allocations: allocations.collect(),
        };
        let made = history::as_profile(profile, &deltas);
        let metrics = metric.map_or_else(|| made.metrics(), |one| vec![one]);
        Ok(jfr::write_timed(&made, &metrics, &timed))
    })
}

/// The sites of a range as a separate profile: its allocations, and the remaining ones as live.
pub fn range_profile(live: &Live, params: &Params) -> Result<Profile, Fault> {
    deltas(live, params, |profile, _, deltas| {
        let mut range = history::as_profile(profile, &deltas);
        if is_native(params)? {
            range.native = range.sites.take();
        }
        Ok(range)
    })
}

fn metric(name: &str) -> Result<Metric, Fault> {
    let mut all = Metric::ALL.into_iter();
    let found = all.find(|metric| metric.name() == name);
    found.ok_or_else(|| Fault::bad(format!("metric={name}: no such metric")))
}

/// The instances of every class.
#[derive(Clone, Debug)]
pub struct Classes {
    /// The source of the counts: `recording`, `dump` or `vm`.
    pub source: &'static str,
    /// The source of sizes and capacities.
    pub sizes: Option<origin::Source>,
    /// The rows.
    pub rows: Vec<ClassRow>,
}

/// The instances of every class. `source` is recording, dump or vm (its own histogram, at a safepoint); the default is
/// the recording if there is one, otherwise a dump. With `brief` this does not wait until sizes are read.
///
/// # Errors
/// There is no such source, or a parameter is wrong.
pub fn class_rows(live: &Live, params: &Params) -> Result<Classes, Fault> {
    let pattern = pattern(params)?;
    let mut classes = class_source(live, params)?;
    let (chosen, rows) = (live.rules.get(), &mut classes.rows);
    live.recorded(|recorded| class_filters::cut_classes(recorded.filters(&chosen), rows));
    if let Some(pattern) = pattern {
        rows.retain(|row| pattern.is_match(&row.class));
    }
    Ok(classes)
}

/// The data about classes in the dumps of a time.
struct Dumped<'d> {
    contents: Vec<&'d [ClassContents]>,
    /// The last of these dumps.
    source: Option<origin::Source>,
}

/// The data of the dumps that can be read; with `brief`, of those that have already been read.
fn dumped(dumps: &[Arc<Dump>], brief: bool) -> Dumped<'_> {
    let mut found = Dumped {
        contents: Vec::new(),
        source: None,
    };
    for (n, dump) in dumps.iter().enumerate() {
        let contents = match brief {
            true => dump.read_contents(),
            false => dump.contents().ok(),
        };
        let Some(contents) = contents else { continue };
        found.contents.push(contents);
        found.source = Some(origin::Source {
            source: "dump",
            time_ms: dump.time_ms,
            dump: Some(n + 1),
            objects: None,
            read: None,
            left_out: None,
            by_class: false,
            cpu_us: None,
        });
    }
    found
}

fn class_source(live: &Live, params: &Params) -> Result<Classes, Fault> {
    let range = range(params)?;
    let brief = params.flag("brief");
    let dumps = live.dumps.of_time(range.to);
    let is_open = |dump: &Arc<Dump>| dump.opened.heap().is_ok();
    let not_open = || Fault::not_ready("there is no heap dump that is open");
    let is_recording = live.status().borrow().recording.is_some();
    let source = match params.one_of("source", &classes::SOURCES)? {
        Some(source) => source,
        None if is_recording => "recording",
        None if dumps.iter().any(is_open) => "dump",
        None => "vm",
    };
    let apart = Apart {
        loaders: params.flag("loaders"),
        contexts: params.flag("contexts"),
    };
    let (source, sizes, rows) = match source {
        "recording" => {
            is_recording.then_some(()).ok_or_else(no_recording)?;
            live.read_fills(brief);
            let (mut rows, sizes) = live.recorded(|recorded| {
                let profile = recorded.profile().ok_or_else(no_recording)?;
                let mut deltas = recorded.history.range(range.from, range.to);
                deltas.retain(|delta| delta.live.objects > 0 || delta.is_something());
                deltas.iter_mut().for_each(Delta::forget_before);
                let mut rows = classes::of_recording(profile, &deltas, apart);
                let is_known = add(recorded, &mut rows, apart);
                Ok::<_, Fault>((rows, is_known.then(|| recorded.fills.source()).flatten()))
            })?;
            match sizes {
                Some(sizes) => ("recording", Some(sizes), rows),
                None => {
                    let dumped = dumped(&dumps, brief);
                    classes::add_contents(&mut rows, &dumped.contents);
                    ("recording", dumped.source, rows)
                }
            }
        }
        "dump" => {
            let dumped = dumped(&dumps, false);
            let rows = match dumped.contents.is_empty() {
                true => return Err(not_open()),
                false if apart.loaders => {
                    let mut open = dumps.iter().rev();
                    let open = open.find(|dump| is_open(dump)).ok_or_else(not_open)?;
                    classes::of_loaders(open.contents_per_loader()?)
                }
                false => classes::of_dump(&dumped.contents),
            };
            ("dump", dumped.source, rows)
        }
        _ => {
            let text = live
                .program()
                .diagnose("GC.class_histogram -all")
                .map_err(Fault::failed)?;
            let mut rows = classes::of_histogram(&text);
            let dumped = dumped(&dumps, brief);
            classes::add_contents(&mut rows, &dumped.contents);
            ("vm", dumped.source, rows)
        }
    };
    Ok(Classes {
        source,
        sizes,
        rows,
    })
}

/// A page of the classes.
pub fn classes(live: &Live, params: &Params) -> Result<Table<ClassRow>, Fault> {
    let classes = class_rows(live, params)?;
    Ok(Table {
        range: covered(range(params)?),
        sizes: classes.sizes,
        ..table(params, classes.source, classes.rows)?
    })
}

/// The lines that say what is shown of each class: `tenure.live.options/1`.
#[derive(Clone, Debug, Serialize)]
pub struct Lines {
    /// Name of the schema.
    pub schema: &'static str,
    /// The lines.
    pub text: String,
}

/// The class filters.
pub fn options(live: &Live) -> Lines {
    Lines {
        schema: "tenure.live.options/1",
        text: live.rules.get().text().to_owned(),
    }
}

/// What is shown of one class.
///
/// # Errors
/// The class is excluded.
pub fn detail(live: &Live, class: &str) -> Result<ClassOptions, Fault> {
    let chosen = live.rules.get();
    let options =
        live.recorded(|recorded| class_filters::of_class(recorded.filters(&chosen), class));
    options.ok_or_else(|| Fault::not_found(format!("{class} is off in the class filters")))
}

/// The differences between two saved tables, with the numbers `from` and `to`: `tenure.live.compare/1`.
pub fn compare(live: &Live, params: &Params) -> Result<Table<Change>, Fault> {
    let pattern = pattern(params)?;
    let side = |name: &str| {
        let number = params.number(name, 0)?;
        let none = || Fault::not_found(format!("{name}={number}: there is no such saved table"));
        let saved = live.saved_tables.get(number).ok_or_else(none)?;
        let rows = saved.rows();
        let rows =
            rows.map_err(|error| Fault::failed(format!("{}: {error}", saved.stem.display())))?;
        Ok::<_, Fault>((saved.sizes_ms, rows))
    };
    let (before, after) = (side("from")?, side("to")?);
    // If both sizes are from the same dump, their difference is meaningless.
    let contents = before.0.is_some() && after.0.is_some() && before.0 != after.0;
    let mut rows = comparison::compare(before.1, after.1, contents);
    if let Some(pattern) = pattern {
        rows.retain(|row| pattern.is_match(&row.class));
    }
    table(params, "saved", rows)
}

/// A page of the references of native code; `source` states whether the objects that they keep alive are known.
pub fn references(
    live: &Live,
    params: &Params,
) -> Result<Table<live_analysis::references::Row>, Fault> {
    let range = range(params)?;
    let (dump, rows) = references::rows(live, range, pattern(params)?.as_ref())?;
    let source = dump.map_or("recording", |_| "recording and dump");
    Ok(Table {
        range: covered(range),
        ..table(params, source, rows)?
    })
}
