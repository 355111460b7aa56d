//! The live instances of a class as the agent lists them: sorted, paged, and counted by common properties.

use crate::contents::Content;
use crate::instances::{Found, Group, Instance, Query, Uniq, group_by};
use crate::names::{context, stack_text};
use crate::range::time_text;
use profile::{Profile, TraceId};
use rustc_hash::FxHashMap;
use vmpi::Listing;
use vmpi::class_options::ClassOptions;
use vmpi::instances::ListedObject;

/// The class filters exclude the class of a listing, or it is not loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Excluded;

/// The stacks of a profile by the agent's numbers.
fn by_serial(profile: &Profile) -> FxHashMap<u32, TraceId> {
    let traces = profile.stacks.traces();
    traces
        .map(|trace| (profile.stacks.key(trace).serial.0, trace))
        .collect()
}

/// Adds the allocating threads to rows, where they are recorded.
pub fn add_contexts(profile: &Profile, rows: &mut [Instance]) {
    let traces = by_serial(profile);
    for row in rows {
        let trace = traces.get(&row.trace);
        row.context = trace.and_then(|trace| context(profile, *trace));
    }
}

/// The agent's options for the class; if several classes have that name, what is examined of all of them.
fn options(listing: &Listing) -> Result<ClassOptions, Excluded> {
    let known = listing.classes.iter().filter_map(|class| class.options);
    let both = |a: ClassOptions, b: ClassOptions| ClassOptions {
        time: a.time || b.time,
        stack: a.stack || b.stack,
        size: a.size || b.size,
        capacity: a.capacity || b.capacity,
        context: a.context || b.context,
        share: a.share,
    };
    known.reduce(both).ok_or(Excluded)
}

fn instance(
    recorded: Option<(&Profile, &FxHashMap<u32, TraceId>)>,
    options: &ClassOptions,
    object: ListedObject,
) -> Instance {
    let trace = recorded.and_then(|(profile, traces)| {
        let trace = traces.get(&object.trace.0)?;
        Some((profile, *trace))
    });
    let answer = object.answer;
    let known = |number: u32| (number != 0).then_some(number);
    Instance {
        id: None,
        identity: Some(object.identity),
        born_ms: Some(object.born_ms).filter(|ms| *ms != 0 && options.time),
        context: trace.and_then(|(profile, trace)| context(profile, trace)),
        trace: object.trace.0,
        content: Content::from(object.fill).cut(options),
        value: answer.text,
        hash: answer.hash,
        rank: known(answer.rank),
        group: known(answer.group),
        fault: answer.fault,
        stack: match trace.filter(|_| options.stack) {
            Some((profile, trace)) => stack_text(profile, trace),
            None => Vec::new(),
        },
    }
}

/// The objects of an answer, in its order.
fn rows_of(
    profile: Option<&Profile>,
    objects: Vec<ListedObject>,
    options: &ClassOptions,
) -> Vec<Instance> {
    let traces = profile.map(by_serial).unwrap_or_default();
    let known = profile.map(|profile| (profile, &traces));
    let rows = objects.into_iter();
    rows.map(|object| instance(known, options, object))
        .collect()
}

/// Whether objects can be selected by allocation time; if not, adds a note.
fn has_allocation_times(listing: &mut Listing, options: &ClassOptions, query: &Query) -> bool {
    if !options.time && query.born.is_some() {
        let note =
            "allocation times of these objects are not recorded: objects of all times are listed";
        listing.notes.push(note.to_owned());
    }
    options.time
}

/// The live instances of a class that match the allocation times of a query.
///
/// # Errors
/// The class filters exclude the class.
pub fn list(
    profile: Option<&Profile>,
    query: &Query,
    mut listing: Listing,
) -> Result<Found<Instance>, Excluded> {
    let options = options(&listing)?;
    let objects = std::mem::take(&mut listing.rows);
    let mut rows = rows_of(profile, objects, &options);
    let sampled = rows.len();
    if has_allocation_times(&mut listing, &options, query) {
        rows.retain(|row| query.is_of(row.born_ms));
    }
    Ok(found(listing, sampled, rows))
}

fn found<R>(listing: Listing, sampled: usize, rows: Vec<R>) -> Found<R> {
    Found {
        own_code: listing.own_code,
        notes: listing.notes,
        ..Found::of((listing.objects, sampled), rows)
    }
}

/// The live instances of a class, counted by a common property.
///
/// # Errors
/// Those of [`list`].
pub fn groups(
    profile: Option<&Profile>,
    (class, uniq): (&str, Uniq),
    query: &Query,
    mut listing: Listing,
) -> Result<Found<Group>, Excluded> {
    let options = options(&listing)?;
    let loaders: Vec<String> = listing
        .rows
        .iter()
        .map(|row| loader(&listing, row))
        .collect();
    let objects = std::mem::take(&mut listing.rows);
    let rows = rows_of(profile, objects, &options);
    let sampled = rows.len();
    let has_allocation_times = has_allocation_times(&mut listing, &options, query);
    // The text of the first of several equal objects describes them all.
    let mut values: FxHashMap<u32, String> = FxHashMap::default();
    let keys = rows
        .into_iter()
        .zip(loaders)
        .filter(|(row, _)| !has_allocation_times || query.is_of(row.born_ms))
        .map(|(row, loader)| match uniq {
            Uniq::Value => match row.group {
                Some(group) => {
                    let value = values.entry(group).or_insert_with(|| name_of(&row));
                    format!("{value}\u{0}{group}")
                }
                None => no_answer(&row),
            },
            Uniq::Text => row.value.clone().unwrap_or_else(|| no_answer(&row)),
            Uniq::HashCode => row
                .hash
                .map_or_else(|| no_answer(&row), |hash| hash.to_string()),
            Uniq::Class => match loader.is_empty() {
                true => format!("{class} (boot loader)"),
                false => format!("{class} (loader {loader})"),
            },
            Uniq::Stack if row.stack.is_empty() => "(no stack)".to_owned(),
            Uniq::Stack => row.stack.join("\n"),
            Uniq::Size(step) => match row.content.size {
                Some(size) => (size / step.max(1) * step.max(1)).to_string(),
                None => "no size".to_owned(),
            },
            Uniq::Time(step) => match row.born_ms {
                Some(time) => time_text(step, time),
                None => "not recorded".to_owned(),
            },
        });
    let mut rows = group_by(keys, (listing.objects, sampled), uniq);
    for row in &mut rows {
        if let Some(at) = row.value.rfind('\u{0}').filter(|_| uniq == Uniq::Value) {
            row.value.truncate(at);
        }
    }
    Ok(found(listing, sampled, rows))
}

fn loader(listing: &Listing, row: &ListedObject) -> String {
    let class = listing.classes.get(row.class as usize);
    class.map(|class| class.loader.clone()).unwrap_or_default()
}

/// The text of an object, or a replacement for it.
fn name_of(row: &Instance) -> String {
    match &row.value {
        Some(text) => text.clone(),
        None => format!("@{:x}", row.identity.unwrap_or(0)),
    }
}

fn no_answer(row: &Instance) -> String {
    match &row.fault {
        Some(fault) => fault.clone(),
        None => "(not called: it would run code of the program)".to_owned(),
    }
}
