//! The live instances of a class, as the agent lists them now: no heap dump, no pause. It knows those
//! that it follows, when and where each was made, and, where code of the program may be run, what they
//! say of themselves.

use super::contents::Content;
use super::instances::{self, Group, Instance, Instances, Query, Shown, Sort, Uniq, group_by};
use super::moments::time_text;
use super::program::Ask;
use super::recorded::Recorded;
use super::session::{Live, locked};
use super::table::{context, stack_text};
use crate::reply::Fault;
use profile::{Profile, TraceId};
use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};
use vmpi::class_options::ClassOptions;
use vmpi::instances::{EQUAL, HASH, ListedObject, MOST, ORDER, TEXT};
use vmpi::{InstanceQuery, Listing};

/// Longer than the agent asks the objects of one question.
const PATIENCE: Duration = Duration::from_secs(40);
/// Characters of a text that stands for a group.
const GROUP_TEXT: u32 = 2000;

/// A list that can be paged through is the same on every page for so long.
const KEPT: Duration = Duration::from_secs(60);
/// Lists that are kept: as many may page through lists of their own.
const MOST_KEPT: usize = 4;

/// Questions about objects, one after the other.
#[derive(Debug, Default)]
pub struct Asking {
    /// Number of the last.
    number: u32,
    /// The oldest first.
    kept: Vec<Kept>,
}

/// An answer, for its other pages: each question finds others alive, and chooses other ones.
#[derive(Debug)]
struct Kept {
    query: InstanceQuery,
    listing: Listing,
    arrived: Instant,
}

impl Kept {
    fn is_of(&self, query: &InstanceQuery) -> bool {
        let number = self.query.number;
        let same = InstanceQuery {
            number,
            ..query.clone()
        };
        self.query == same
    }
}

/// Which page of an answer is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Page {
    /// It has none.
    None,
    First,
    Later,
}

/// What is asked of the agent.
fn question(class: &str, query: &Query, ask: u8, text_limit: usize) -> InstanceQuery {
    InstanceQuery {
        number: 0,
        sample: query
            .sample
            .map_or(MOST, |most| (most as u64).min(u64::from(MOST)) as u32),
        ask,
        text_limit: u32::try_from(text_limit).unwrap_or(u32::MAX),
        class: class.to_owned(),
    }
}

impl Live {
    /// Asks the agent about the instances of a class, one question after the other.
    ///
    /// # Errors
    /// When no agent is connected, or it does not answer.
    fn listing(&self, mut query: InstanceQuery, page: Page) -> Result<Listing, Fault> {
        let none = || Fault::not_found("nothing is being recorded; start a recording first");
        let mut asking = locked(&self.asking);
        asking.kept.retain(|kept| kept.arrived.elapsed() < KEPT);
        let mut kept = asking.kept.iter().filter(|_| page == Page::Later);
        if let Some(kept) = kept.find(|kept| kept.is_of(&query)) {
            return Ok(kept.listing.clone());
        }
        let commands = self.commands().ok_or_else(none)?;
        asking.number = asking.number.wrapping_add(1);
        query.number = asking.number;
        commands(Ask::Instances(query.clone())).map_err(Fault::failed)?;
        let begun = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            let arrived = self.recorded_mut(|recorded| {
                let is_it = |listing: &mut Listing| listing.number == query.number;
                recorded.listing.take_if(is_it)
            });
            if let Some(listing) = arrived {
                self.status.send_if_modified(|status| {
                    let is_news = status.own_code != listing.own_code;
                    status.own_code = listing.own_code;
                    is_news
                });
                if page != Page::None {
                    asking.kept.retain(|kept| !kept.is_of(&query));
                    if asking.kept.len() == MOST_KEPT {
                        asking.kept.remove(0);
                    }
                    asking.kept.push(Kept {
                        query,
                        listing: listing.clone(),
                        arrived: Instant::now(),
                    });
                }
                return Ok(listing);
            }
            if self.commands().is_none() {
                return Err(Fault::failed("the agent is gone"));
            }
            if begun.elapsed() > PATIENCE {
                return Err(Fault::failed("the agent has not answered"));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// Lets the agent run code of the program to answer what is asked of its objects, or no longer.
    ///
    /// # Errors
    /// When the agent is gone.
    pub fn set_own_code(&self, on: bool) -> Result<(), String> {
        self.status.send_modify(|status| status.own_code = on);
        match self.commands() {
            Some(commands) => commands(Ask::OwnCode(on)),
            None => Ok(()),
        }
    }
}

/// The stacks of a profile by the numbers that the agent gives them.
fn by_serial(profile: &Profile) -> FxHashMap<u32, TraceId> {
    let traces = profile.stacks.traces();
    traces
        .map(|trace| (profile.stacks.key(trace).serial.0, trace))
        .collect()
}

/// Adds to rows who made their objects, where that was recorded.
pub fn add_contexts(live: &Live, rows: &mut [Instance]) {
    live.recorded(|recorded| {
        let Some(profile) = recorded.profile() else {
            return;
        };
        let traces = by_serial(profile);
        for row in rows {
            let trace = traces.get(&row.trace);
            row.context = trace.and_then(|trace| context(profile, *trace));
        }
    });
}

/// What holds for the class, by the agent; what every one of several of that name is looked at for.
fn options(listing: &Listing) -> Result<ClassOptions, Fault> {
    let known = listing.classes.iter().filter_map(|class| class.options);
    let both = |a: ClassOptions, b: ClassOptions| ClassOptions {
        time: a.time || b.time,
        stack: a.stack || b.stack,
        size: a.size || b.size,
        capacity: a.capacity || b.capacity,
        context: a.context || b.context,
        share: a.share,
    };
    let off = || Fault::not_found("the class is off in the options of classes, or not loaded");
    known.reduce(both).ok_or_else(off)
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
    let said = object.said;
    let fill = object.fill;
    let known = |number: u32| (number != 0).then_some(number);
    Instance {
        id: None,
        identity: Some(object.identity),
        born_ms: Some(object.born_ms).filter(|ms| *ms != 0 && options.time),
        context: trace.and_then(|(profile, trace)| context(profile, trace)),
        trace: object.trace.0,
        content: Content {
            size: fill.size.filter(|_| options.size),
            capacity: fill.capacity.filter(|_| options.capacity),
            capacity_bytes: if options.capacity {
                fill.capacity_bytes
            } else {
                0
            },
        },
        value: said.text,
        hash: said.hash,
        rank: known(said.rank),
        group: known(said.group),
        fault: said.fault,
        stack: match trace.filter(|_| options.stack) {
            Some((profile, trace)) => stack_text(profile, trace),
            None => Vec::new(),
        },
    }
}

/// The objects of an answer, in its order.
fn rows_of(live: &Live, listing: &mut Listing, options: &ClassOptions) -> Vec<Instance> {
    let objects = std::mem::take(&mut listing.rows);
    live.recorded(|recorded: &Recorded| {
        let profile = recorded.profile();
        let traces = profile.map(by_serial).unwrap_or_default();
        let known = profile.map(|profile| (profile, &traces));
        let rows = objects.into_iter();
        rows.map(|object| instance(known, options, object))
            .collect()
    })
}

/// Whether a range can be one of births; a note says that it cannot.
fn knows_births(listing: &mut Listing, options: &ClassOptions, query: &Query) -> bool {
    if !options.time && query.born.is_some() {
        let note = "when these objects were made is not recorded: those of all time are here";
        listing.notes.push(note.to_owned());
    }
    options.time
}

/// The live instances of a class.
///
/// # Errors
/// When no agent is connected, it does not answer, or the class is off.
pub fn list(live: &Live, class: &str, query: &Query) -> Result<Instances, Fault> {
    let mut ask = 0;
    if query.value_limit > 0 {
        ask |= TEXT;
    }
    match query.sort {
        Sort::Value => ask |= ORDER | TEXT,
        Sort::Text => ask |= TEXT,
        Sort::HashCode => ask |= HASH,
        _ => {}
    }
    let question = question(class, query, ask, query.value_limit.max(1));
    let page = match query.offset {
        0 => Page::First,
        _ => Page::Later,
    };
    let mut listing = live.listing(question, page)?;
    let options = options(&listing)?;
    let mut rows = rows_of(live, &mut listing, &options);
    let sampled = rows.len();
    if knows_births(&mut listing, &options, query) {
        rows.retain(|row| query.is_of(row.born_ms));
    }
    let rows = instances::arrange(rows, query);
    Ok(Instances {
        schema: "tenure.live.instances/1",
        class: class.to_owned(),
        source: "live",
        dump: None,
        objects: listing.objects,
        sampled,
        offset: query.offset,
        own_code: listing.own_code,
        shown: Shown::of(&options, true),
        notes: listing.notes,
        rows,
    })
}

/// The live instances of a class, counted by what they have in common; how many there are, how many
/// were looked at, and what could not be asked.
///
/// # Errors
/// As of [`list`].
pub fn groups(
    live: &Live,
    class: &str,
    uniq: Uniq,
    query: &Query,
) -> Result<(u64, usize, Vec<Group>, Vec<String>), Fault> {
    let ask = match uniq {
        Uniq::Value => EQUAL | TEXT,
        Uniq::Text => TEXT,
        Uniq::HashCode => HASH,
        Uniq::Stack | Uniq::Class | Uniq::Size(_) | Uniq::Time(_) => 0,
    };
    let question = question(class, query, ask, GROUP_TEXT as usize);
    let mut listing = live.listing(question, Page::None)?;
    let options = options(&listing)?;
    let loaders: Vec<String> = listing
        .rows
        .iter()
        .map(|row| loader(&listing, row))
        .collect();
    let rows = rows_of(live, &mut listing, &options);
    let sampled = rows.len();
    let knows_births = knows_births(&mut listing, &options, query);
    // Of equal objects the first one says what they are.
    let mut values: FxHashMap<u32, String> = FxHashMap::default();
    let keys = rows
        .into_iter()
        .zip(loaders)
        .filter(|(row, _)| !knows_births || query.is_of(row.born_ms))
        .map(|(row, loader)| match uniq {
            Uniq::Value => match row.group {
                Some(group) => {
                    let value = values.entry(group).or_insert_with(|| name_of(&row));
                    format!("{value}\u{0}{group}")
                }
                None => not_said(&row),
            },
            Uniq::Text => row.value.clone().unwrap_or_else(|| not_said(&row)),
            Uniq::HashCode => row
                .hash
                .map_or_else(|| not_said(&row), |hash| hash.to_string()),
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
    let mut rows = group_by(keys, (listing.objects, sampled), query);
    for row in &mut rows {
        if let Some(at) = row.value.rfind('\u{0}').filter(|_| uniq == Uniq::Value) {
            row.value.truncate(at);
        }
    }
    Ok((listing.objects, sampled, rows, listing.notes))
}

fn loader(listing: &Listing, row: &ListedObject) -> String {
    let class = listing.classes.get(row.class as usize);
    class.map(|class| class.loader.clone()).unwrap_or_default()
}

/// The text of an object, or what stands for it.
fn name_of(row: &Instance) -> String {
    match &row.value {
        Some(text) => text.clone(),
        None => format!("@{:x}", row.identity.unwrap_or(0)),
    }
}

fn not_said(row: &Instance) -> String {
    match &row.fault {
        Some(fault) => fault.clone(),
        None => "(not asked: it would run code of the program)".to_owned(),
    }
}
