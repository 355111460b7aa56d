//! Allocations in a range of time, by class, package, site or stack.

use crate::columns::{Column, Kind, Tabular};
use crate::history::Delta;
use crate::names::{NO_CONTEXT, context, frame_text, package, place, stack_text};
use crate::table::{Fields, words};
use profile::{Profile, TraceId, Volume};
use regex::Regex;
use rustc_hash::FxHashMap;
use serde::{Serialize, Serializer};

/// How allocations are grouped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// By class.
    #[default]
    Class,
    /// By package of the class.
    Package,
    /// By class and stack.
    Site,
    /// By the allocating method.
    Method,
    /// By the named module of the class.
    Module,
    /// By the loader of the class.
    Loader,
    /// By the allocating thread, where that is recorded.
    Context,
}

impl By {
    /// All groupings with their keywords.
    const ALL: [(&'static str, Self); 7] = [
        ("class", Self::Class),
        ("package", Self::Package),
        ("module", Self::Module),
        ("loader", Self::Loader),
        ("context", Self::Context),
        ("method", Self::Method),
        ("site", Self::Site),
    ];
    /// The keywords of all groupings.
    pub const WORDS: [&'static str; 7] = words(&Self::ALL);
    /// The keywords for native allocations.
    pub const NATIVE: [&'static str; 3] = ["class", "method", "site"];

    /// The grouping of a keyword.
    pub fn named(word: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(name, _)| *name == word);
        found.map(|(_, by)| *by)
    }
}

/// One group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// Class, package or method; for a site the class.
    pub name: String,
    /// For a site: its stack, innermost frame first.
    pub stack: Vec<String>,
    /// For a site: the allocating thread, where that is recorded.
    pub context: Option<String>,
    /// Objects allocated in the range.
    pub allocations: u64,
    /// Objects freed in the range.
    pub deallocations: u64,
    /// Allocations less deallocations.
    pub remaining: i64,
    /// Bytes allocated in the range.
    pub allocated_bytes: u64,
    /// Bytes freed in the range.
    pub deallocated_bytes: u64,
    /// Their difference.
    pub remaining_bytes: i64,
    /// Objects live at the end of the range.
    pub live: u64,
    /// Their bytes.
    pub live_bytes: u64,
}

impl Row {
    fn new(name: String, stack: Vec<String>, delta: &Delta) -> Row {
        Row {
            name,
            stack,
            context: None,
            allocations: delta.allocated.objects,
            deallocations: delta.freed.objects,
            remaining: delta.remaining_objects(),
            allocated_bytes: delta.allocated.bytes,
            deallocated_bytes: delta.freed.bytes,
            remaining_bytes: delta.remaining_bytes(),
            live: delta.live.objects,
            live_bytes: delta.live.bytes,
        }
    }
}

impl Tabular for Row {
    const SCHEMA: &'static str = "tenure.live.allocations/1";
    const ABOUT: &'static str = "What was allocated and freed in a range of time.";
    const SORT: &'static str = "allocated_bytes";
    const COLUMNS: &'static [Column<Row>] = &[
        Column::new(
            Kind::Name,
            "name",
            "Name",
            "Name of the class, package, module, loader, thread or method; for a site, its class.",
            |row| row.name.as_str().into(),
        ),
        Column::new(
            Kind::Count,
            "allocations",
            "Allocations",
            "Objects allocated in the range.",
            |row| row.allocations.into(),
        ),
        Column::new(
            Kind::Count,
            "deallocations",
            "Deallocations",
            "Objects freed in the range.",
            |row| row.deallocations.into(),
        ),
        Column::new(
            Kind::CountChange,
            "remaining",
            "Remaining",
            "Allocations less deallocations.",
            |row| row.remaining.into(),
        ),
        Column::new(
            Kind::Bytes,
            "allocated_bytes",
            "Allocated",
            "Bytes allocated in the range.",
            |row| row.allocated_bytes.into(),
        ),
        Column::new(
            Kind::Bytes,
            "deallocated_bytes",
            "Deallocated",
            "Bytes freed in the range.",
            |row| row.deallocated_bytes.into(),
        ),
        Column::new(
            Kind::BytesChange,
            "remaining_bytes",
            "Remaining bytes",
            "Allocated bytes less freed bytes.",
            |row| row.remaining_bytes.into(),
        ),
        Column::new(
            Kind::Count,
            "live",
            "Live",
            "Live objects at the end of the range.",
            |row| row.live.into(),
        ),
        Column::new(
            Kind::Bytes,
            "live_bytes",
            "Live bytes",
            "Bytes of the live objects at the end of the range.",
            |row| row.live_bytes.into(),
        ),
        Column::new(
            Kind::Detail,
            "context",
            "Thread",
            "For a site: the allocating thread, if threads are recorded.",
            |row| (&row.context).into(),
        ),
        Column::new(
            Kind::Stack,
            "stack",
            "Stack",
            "For a site: its stack, innermost frame first.",
            |row| (&row.stack).into(),
        ),
    ];
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let columns = Row::COLUMNS;
        Fields { columns, row: self }.serialize(serializer)
    }
}

/// Keeps the rows that match: by class name or by any frame.
pub fn filter(profile: &Profile, deltas: &mut Vec<Delta>, pattern: Option<&Regex>) {
    let Some(pattern) = pattern else { return };
    let mut known: FxHashMap<TraceId, bool> = FxHashMap::default();
    deltas.retain(|delta| {
        pattern.is_match(profile.names.get(delta.class))
            || *known.entry(delta.trace).or_insert_with(|| {
                let frames = profile.stacks.frames(delta.trace).iter();
                frames
                    .into_iter()
                    .any(|frame| pattern.is_match(&frame_text(profile, *frame)))
            })
    });
}

/// The groups, unsorted.
pub fn rows(profile: &Profile, deltas: &[Delta], by: By) -> Vec<Row> {
    if by == By::Site {
        let site = |delta: &Delta| {
            let class = profile.names.get(delta.class).to_owned();
            Row {
                context: context(profile, delta.trace),
                ..Row::new(class, stack_text(profile, delta.trace), delta)
            }
        };
        return deltas.iter().map(site).collect();
    }
    let mut groups: FxHashMap<String, Delta> = FxHashMap::default();
    for delta in deltas {
        let class = profile.names.get(delta.class);
        let name = match by {
            By::Package => package(class).to_owned(),
            By::Method => profile.stacks.frames(delta.trace).first().map_or_else(
                || "(no stack)".to_owned(),
                |f| profile.frame_name(profile.stacks.frame(*f)),
            ),
            By::Module => place(profile, delta.class).1,
            By::Loader => place(profile, delta.class).0,
            By::Context => context(profile, delta.trace).unwrap_or_else(|| NO_CONTEXT.to_owned()),
            By::Class | By::Site => class.to_owned(),
        };
        groups.entry(name).or_default().add(delta);
    }
    let rows = groups.into_iter();
    rows.map(|(name, delta)| Row::new(name, Vec::new(), &delta))
        .collect()
}

/// The sum of all rows.
pub fn total(deltas: &[Delta]) -> Row {
    let mut sum = Delta::default();
    deltas.iter().for_each(|delta| sum.add(delta));
    Row::new(String::new(), Vec::new(), &sum)
}

/// A node of the tree of callers.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Node {
    /// Index in the list of nodes.
    pub id: usize,
    /// Index of the caller; `None` for the outermost frame.
    pub parent: Option<usize>,
    /// The frame; in the last row of a path the class.
    pub name: String,
    /// True for a class: what the stack above it allocated.
    pub class: bool,
    /// Objects allocated below.
    pub allocations: u64,
    /// Bytes allocated below.
    pub allocated_bytes: u64,
    /// Objects allocated less objects that died below.
    pub remaining: i64,
    /// Their bytes.
    pub remaining_bytes: i64,
}

/// The stacks as a tree from the outermost frame to the class, as a flat list in which callers come first; at most
/// `most` nodes, those with the most allocations.
pub fn tree(profile: &Profile, deltas: &[Delta], most: usize) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    let mut ids: FxHashMap<(Option<usize>, String), usize> = FxHashMap::default();
    let mut order: Vec<&Delta> = deltas
        .iter()
        .filter(|d| d.allocated != Volume::default() || d.freed != Volume::default())
        .collect();
    order.sort_by_key(|delta| std::cmp::Reverse(delta.allocated.bytes));
    for delta in order {
        let mut names = stack_text(profile, delta.trace);
        names.reverse();
        names.push(profile.names.get(delta.class).to_owned());
        let last = names.len() - 1;
        let mut parent = None;
        for (n, name) in names.into_iter().enumerate() {
            let key = (parent, name);
            let id = match ids.get(&key) {
                Some(id) => *id,
                None if nodes.len() >= most => break,
                None => {
                    let id = nodes.len();
                    nodes.push(Node {
                        id,
                        parent,
                        name: key.1.clone(),
                        class: n == last,
                        ..Node::default()
                    });
                    ids.insert(key, id);
                    id
                }
            };
            let node = &mut nodes[id];
            node.allocations += delta.allocated.objects;
            node.allocated_bytes += delta.allocated.bytes;
            node.remaining += delta.remaining_objects();
            node.remaining_bytes += delta.remaining_bytes();
            parent = Some(id);
        }
    }
    nodes
}
