//! What was allocated in a range of time, by class, package, site or stack.

use super::history::Delta;
use profile::{Line, NameId, Profile, TraceId, Volume};
use regex::Regex;
use rustc_hash::FxHashMap;
use serde::Serialize;

/// Groups of allocations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// By class.
    #[default]
    Class,
    /// By package of the class.
    Package,
    /// By class and stack.
    Site,
    /// By the method that allocates.
    Method,
    /// By the named module of the class.
    Module,
    /// By the loader of the class.
    Loader,
    /// By the thread that allocates, where that is recorded.
    Context,
}

/// One group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// Class, package or method; for a site the class.
    pub name: String,
    /// For a site: its stack, innermost frame first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
    /// For a site: the thread that allocates, where that is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Objects allocated in the range.
    pub allocations: u64,
    /// Objects that died in the range.
    pub deallocations: u64,
    /// Allocations less deallocations.
    pub remaining: i64,
    /// Bytes allocated in the range.
    pub allocated_bytes: u64,
    /// Bytes that died in the range.
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

    /// The value of a column; `None` when there is no such column.
    pub fn column(&self, name: &str) -> Option<i64> {
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        Some(match name {
            "allocations" => signed(self.allocations),
            "deallocations" => signed(self.deallocations),
            "remaining" => self.remaining,
            "allocated_bytes" => signed(self.allocated_bytes),
            "deallocated_bytes" => signed(self.deallocated_bytes),
            "remaining_bytes" => self.remaining_bytes,
            "live" => signed(self.live),
            "live_bytes" => signed(self.live_bytes),
            _ => return None,
        })
    }
}

/// `class.method(File.java:7)`.
pub fn frame_text(profile: &Profile, frame: profile::FrameId) -> String {
    let frame = profile.stacks.frame(frame);
    let source = profile
        .names
        .get(profile.stacks.method(frame.method).source);
    let source = if source.is_empty() {
        "Unknown Source"
    } else {
        source
    };
    let name = profile.frame_name(frame);
    match frame.line {
        Line::Number(line) => format!("{name}({source}:{line})"),
        Line::Native => format!("{name}(Native method)"),
        Line::Compiled | Line::Unknown => format!("{name}({source})"),
    }
}

/// The frames of a trace as text, innermost first.
pub fn stack_text(profile: &Profile, trace: TraceId) -> Vec<String> {
    let frames = profile.stacks.frames(trace).iter();
    frames.map(|frame| frame_text(profile, *frame)).collect()
}

/// The package of a class: all of the name before the last dot, for arrays of their elements.
pub fn package(class: &str) -> &str {
    class
        .rsplit_once('.')
        .map_or("(no package)", |(package, _)| package)
}

/// The named module of a class; empty for none, `None` if it is not known.
pub fn module(profile: &Profile, class: NameId) -> Option<&str> {
    let place = profile.places.get(class)?;
    Some(profile.names.get(place.module))
}

/// Loader and module of a class, in words.
pub fn place(profile: &Profile, class: NameId) -> (String, String) {
    let Some(place) = profile.places.get(class) else {
        return ("(not known)".to_owned(), "(not known)".to_owned());
    };
    let text = |id: NameId, none: &str| match profile.names.get(id) {
        "" => none.to_owned(),
        name => name.to_owned(),
    };
    let loader = text(place.loader, "(boot loader)");
    (loader, text(place.module, "(no named module)"))
}

/// In the place of a thread that nobody recorded.
pub const NO_CONTEXT: &str = "(not recorded)";

/// The thread that allocated at a trace, with its group, where that was recorded.
pub fn context(profile: &Profile, trace: TraceId) -> Option<String> {
    let serial = profile.stacks.key(trace).thread?;
    Some(thread_text(profile, serial.0))
}

/// A thread with its group.
pub fn thread_text(profile: &Profile, serial: u32) -> String {
    let Some(thread) = profile.thread(serial) else {
        return format!("thread {serial}");
    };
    let (name, group) = (
        profile.names.get(thread.name),
        profile.names.get(thread.group),
    );
    match (name, group) {
        // There can be any number of them, and those of one name are one.
        ("", "VirtualThreads") => "virtual threads without a name".to_owned(),
        (name, "VirtualThreads") => format!("{name} (virtual threads)"),
        (name, "") => name.to_owned(),
        (name, group) => format!("{name} ({group})"),
    }
}

/// Keeps what matches: a class name or any frame.
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

/// The sum of all.
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

/// The stacks as a tree from the outermost frame to the class, as a flat list in which callers
/// come first; at most `most` nodes, those that allocate most.
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
