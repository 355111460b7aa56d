//! The instances of one class: listed in any order, or counted by common properties; either all of them or a random
//! sample. This module handles those of a dump, whose values are read from fields.

use crate::columns::{Column, Kind, Tabular, Value};
use crate::contents::{Content, content};
use crate::range::{Range, Step};
use crate::table::{Page, words};
use heap_analysis::objects::describe::{Address, value_of};
use heap_analysis::tables::group::trace_frames;
use heap_graph::{ClassIdx, Heap, ObjIdx};
use rustc_hash::FxHashMap;
use vmpi::{ClassOptions, FairSample};

/// The property by which instances are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uniq {
    /// The stack that allocated them.
    Stack,
    /// Their value: by `equals`, if the program's code was called; otherwise by the rules for strings, boxes and
    /// similar classes.
    Value,
    /// Their text: by `toString`, if the program's code was called; otherwise by the same rules.
    Text,
    /// Java's `hashCode` of strings and numbers.
    HashCode,
    /// Their class and its loader.
    Class,
    /// Their size in steps of this number.
    Size(u64),
    /// Their allocation time.
    Time(Step),
}

/// Sources of objects: the program, a heap dump, or the recording, which also has freed objects.
pub const SOURCES: [&str; 3] = ["live", "dump", "recording"];

impl Uniq {
    /// All with their keywords; sizes in steps of one byte.
    const ALL: [(&'static str, Self); 10] = [
        ("value", Self::Value),
        ("text", Self::Text),
        ("stack", Self::Stack),
        ("hash", Self::HashCode),
        ("class", Self::Class),
        ("size", Self::Size(1)),
        ("time", Self::Time(Step::Snapshot)),
        ("second", Self::Time(Step::Second)),
        ("minute", Self::Time(Step::Minute)),
        ("hour", Self::Time(Step::Hour)),
    ];
    /// All keywords.
    pub const WORDS: [&'static str; 10] = words(&Self::ALL);

    /// The property of a keyword.
    pub fn named(word: &str) -> Option<Self> {
        let found = Self::ALL.iter().find(|(name, _)| *name == word);
        found.map(|(_, by)| *by)
    }
}

/// A query.
#[derive(Clone, Debug)]
pub struct Query {
    /// The requested rows and their order.
    pub page: Page,
    /// Objects to examine; `None` for all.
    pub sample: Option<usize>,
    /// The most characters of a value; 0 for no values.
    pub value_limit: usize,
    /// For live objects: the range of their allocation time; `None` for any time.
    pub born: Option<Range>,
}

impl Query {
    /// Whether an object with this allocation time is requested.
    pub fn is_of(&self, born_ms: Option<u64>) -> bool {
        let is_in = |range: Range| born_ms.is_some_and(|ms| range.from <= ms && ms <= range.to);
        self.born.is_none_or(is_in)
    }
}

/// One object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Instance {
    /// Its address in the dump.
    pub id: Option<Address>,
    /// For a live object: its identity hash code.
    pub identity: Option<i32>,
    /// Its allocation time, in milliseconds since 1970. It is exact or a little too early.
    pub born_ms: Option<u64>,
    /// The thread that allocated it, where that is recorded.
    pub context: Option<String>,
    /// Serial of the stack that allocated it; 0 if unknown.
    pub trace: u32,
    /// Its size and capacity.
    pub content: Content,
    /// Its value, or the result of its `toString`.
    pub value: Option<String>,
    /// Java's `hashCode`, if it can be computed from the value or was called.
    pub hash: Option<i32>,
    /// Its position in the order of `compareTo`, if that was called.
    pub rank: Option<u32>,
    /// A number that equal objects share, if `equals` was called.
    pub group: Option<u32>,
    /// The exception that its code threw.
    pub fault: Option<String>,
    /// Frames of its stack, innermost first.
    pub stack: Vec<String>,
}

impl Tabular for Instance {
    const SCHEMA: &'static str = "tenure.live.instances/2";
    const ABOUT: &'static str = "The objects of a class, in the program or in a heap dump.";
    const SORT: &'static str = "born_ms";
    const COLUMNS: &'static [Column<Instance>] = &[
        Column::new(
            Kind::Name,
            "object",
            "Object",
            "Its id in the heap dump, or `@` and the identity hash code of a live object.",
            |row| match (row.id, row.identity) {
                (Some(id), _) => Value::Address(id),
                (None, identity) => identity.map_or(Value::None, Value::Identity),
            },
        ),
        Column::new(
            Kind::Time,
            "born_ms",
            "Allocated",
            "When the object was allocated, or a little earlier; not known in a heap dump.",
            |row| row.born_ms.into(),
        ),
        Column::new(Kind::Count, "size", "Size", "Number of elements.", |row| {
            row.content.size.into()
        }),
        Column::new(
            Kind::Count,
            "capacity",
            "Capacity",
            "Number of elements for which its arrays have space.",
            |row| row.content.capacity.into(),
        ),
        Column::new(
            Kind::Count,
            "excess",
            "Excess",
            "Unused capacity: capacity less size.",
            |row| row.content.excess().into(),
        ),
        Column::new(
            Kind::Bytes,
            "capacity_bytes",
            "Capacity bytes",
            "Bytes of its arrays.",
            |row| {
                let content = &row.content;
                content.capacity.map(|_| content.capacity_bytes).into()
            },
        ),
        Column::new(
            Kind::Number,
            "hash",
            "Hash code",
            "`hashCode` of strings and numbers; for other live objects only if rows are sorted by it and the program's code may run.",
            |row| row.hash.map(i64::from).into(),
        ),
        Column::new(
            Kind::Count,
            "rank",
            "Rank",
            "Position in the order of `compareTo`; only for live objects, if rows are sorted by it and the program's code may run.",
            |row| row.rank.map(u64::from).into(),
        ),
        Column::new(
            Kind::Description,
            "value",
            "Value",
            "The readable value, or what `toString` returns if the program's code may run.",
            |row| (&row.value).into(),
        ),
        Column::new(
            Kind::Detail,
            "fault",
            "Fault",
            "The exception that the object's code threw.",
            |row| (&row.fault).into(),
        ),
        Column::new(
            Kind::Detail,
            "context",
            "Thread",
            "The thread that allocated the object, if threads are recorded.",
            |row| (&row.context).into(),
        ),
        Column::new(
            Kind::Stack,
            "stack",
            "Stack",
            "The stack that allocated the object, innermost frame first.",
            |row| (&row.stack).into(),
        ),
    ];
}

/// Objects of a class, or groups of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<R> {
    /// Objects of the class: reachable ones of a dump, live ones that the agent tracks.
    pub objects: u64,
    /// Objects that were examined.
    pub sampled: usize,
    /// Whether methods of the objects may be called.
    pub own_code: bool,
    /// Calls that were not possible, and why.
    pub notes: Vec<String>,
    /// The rows.
    pub rows: Vec<R>,
}

impl<R> Found<R> {
    /// Rows for these numbers of all objects and of examined ones.
    pub fn of((objects, sampled): (u64, usize), rows: Vec<R>) -> Found<R> {
        Found {
            objects,
            sampled,
            own_code: false,
            notes: Vec::new(),
            rows,
        }
    }
}

/// A group of objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Their common property; for a stack its innermost frame.
    pub value: String,
    /// Objects in the sample.
    pub sampled: u64,
    /// The estimated number among all objects.
    pub estimated: u64,
    /// Their common stack, innermost frame first.
    pub stack: Vec<String>,
}

impl Tabular for Group {
    const SCHEMA: &'static str = "tenure.live.groups/2";
    const ABOUT: &'static str = "The objects of a class, counted by what they have in common.";
    const SORT: &'static str = "sampled";
    const COLUMNS: &'static [Column<Group>] = &[
        Column::new(
            Kind::Name,
            "value",
            "Value",
            "What the objects have in common; for a stack, its innermost frame.",
            |row| row.value.as_str().into(),
        ),
        Column::new(
            Kind::Count,
            "sampled",
            "Sampled",
            "Examined objects of the group.",
            |row| row.sampled.into(),
        ),
        Column::new(
            Kind::Count,
            "estimated",
            "Estimated",
            "All objects of the group, estimated from the examined ones.",
            |row| row.estimated.into(),
        ),
        Column::new(
            Kind::Stack,
            "stack",
            "Stack",
            "The stack that allocated the objects, innermost frame first; only if they are counted by stack.",
            |row| (&row.stack).into(),
        ),
    ];
}

/// The classes with a name.
pub fn classes_named(heap: &Heap, name: &str) -> Vec<ClassIdx> {
    let classes = heap.classes().iter().enumerate();
    let named = classes.filter(|(_, class)| class.name == name);
    named.map(|(n, _)| ClassIdx(n as u32)).collect()
}

/// The objects of a class, or a sample in which each has the same probability. The same dump gives the same sample.
fn sample(heap: &Heap, class: &str, most: Option<usize>) -> (u64, Vec<ObjIdx>) {
    let classes = classes_named(heap, class);
    let all = classes.iter().flat_map(|class| heap.objects_of(*class));
    let mut chosen = FairSample::new(most.unwrap_or(usize::MAX), 0);
    all.filter(|object| heap.is_reachable(*object))
        .for_each(|object| chosen.add(object));
    let (seen, mut chosen) = chosen.done();
    chosen.sort_unstable();
    (seen, chosen)
}

/// Reachable objects of a class.
pub fn count(heap: &Heap, class: &str) -> u64 {
    let classes = classes_named(heap, class);
    let all = classes.iter().flat_map(|class| heap.objects_of(*class));
    all.filter(|object| heap.is_reachable(*object)).count() as u64
}

/// Java's `hashCode` of the value, for strings and whole numbers.
fn java_hash(heap: &Heap, object: ObjIdx) -> Option<i32> {
    let class = heap.class(heap.class_of(object)).name.as_str();
    match class {
        "java.lang.String" => {
            let text = heap.string(object)?;
            let units = text.encode_utf16();
            Some(units.fold(0i32, |hash, unit| {
                hash.wrapping_mul(31).wrapping_add(i32::from(unit))
            }))
        }
        "java.lang.Integer" | "java.lang.Short" | "java.lang.Byte" | "java.lang.Character" => {
            let value = heap_analysis::objects::fields::field_int(heap, object, "value")?;
            i32::try_from(value).ok()
        }
        "java.lang.Long" => {
            let value = heap_analysis::objects::fields::field_int(heap, object, "value")?;
            Some((value ^ ((value as u64) >> 32) as i64) as i32)
        }
        _ => None,
    }
}

/// Cuts a text and appends the number of missing characters, as the original did: `abc+12`.
pub fn cut(text: &str, limit: usize) -> String {
    let length = text.chars().count();
    if length <= limit {
        return text.to_owned();
    }
    let kept: String = text.chars().take(limit).collect();
    format!("{kept}+{}", length - limit)
}

fn instance(heap: &Heap, object: ObjIdx, value_limit: usize, options: &ClassOptions) -> Instance {
    let trace = heap.allocation_trace(object);
    Instance {
        id: Some(Address(heap.id(object))),
        identity: None,
        born_ms: None,
        context: None,
        trace: trace.0,
        content: content(heap, object).cut(options),
        value: (value_limit > 0)
            .then(|| value_of(heap, object))
            .flatten()
            .map(|text| cut(&text, value_limit)),
        hash: java_hash(heap, object),
        rank: None,
        group: None,
        fault: None,
        stack: Vec::new(),
    }
}

/// The objects of a class, without their stacks, as the class filters allow.
pub fn list(heap: &Heap, class: &str, query: &Query, options: &ClassOptions) -> Found<Instance> {
    let (objects, chosen) = sample(heap, class, query.sample);
    let sampled = chosen.len();
    let rows = chosen.into_iter();
    let rows = rows.map(|object| instance(heap, object, query.value_limit, options));
    Found::of((objects, sampled), rows.collect())
}

/// Adds the stacks that allocated the objects to rows of a dump.
pub fn add_stacks(heap: &Heap, rows: &mut [Instance]) {
    for row in rows {
        row.stack = trace_frames(heap, hprof::Serial(row.trace));
    }
}

/// Counts objects by a common property.
pub fn groups(heap: &Heap, class: &str, uniq: Uniq, query: &Query) -> Found<Group> {
    let (objects, chosen) = sample(heap, class, query.sample);
    let sampled = chosen.len();
    let mut counts: FxHashMap<String, u64> = FxHashMap::default();
    let mut traces: FxHashMap<hprof::Serial, u64> = FxHashMap::default();
    for object in chosen {
        let key =
            match uniq {
                Uniq::Stack => {
                    *traces.entry(heap.allocation_trace(object)).or_default() += 1;
                    continue;
                }
                Uniq::Value | Uniq::Text => match heap.string(object) {
                    Some(text) => text,
                    None => value_of(heap, object)
                        .unwrap_or_else(|| Address(heap.id(object)).to_string()),
                },
                Uniq::HashCode => java_hash(heap, object)
                    .map_or_else(|| "not known".to_owned(), |h| h.to_string()),
                Uniq::Class => {
                    let class = heap.class(heap.class_of(object));
                    match class.loader.is_null() {
                        true => format!("{} (boot loader)", class.name),
                        false => format!("{} (loader {})", class.name, Address(class.loader)),
                    }
                }
                Uniq::Size(step) => match content(heap, object).size {
                    Some(size) => (size / step.max(1) * step.max(1)).to_string(),
                    None => "no size".to_owned(),
                },
                Uniq::Time(_) => "not known".to_owned(),
            };
        *counts.entry(key).or_default() += 1;
    }
    for (trace, count) in traces {
        let frames = trace_frames(heap, trace);
        let key = if frames.is_empty() {
            "(no stack)".to_owned()
        } else {
            frames.join("\n")
        };
        *counts.entry(key).or_default() += count;
    }
    let rows = counted(counts, (objects, sampled), uniq);
    Found::of((objects, sampled), rows)
}

/// Counts keys.
pub fn group_by(
    keys: impl Iterator<Item = String>,
    looked_at: (u64, usize),
    uniq: Uniq,
) -> Vec<Group> {
    let mut counts: FxHashMap<String, u64> = FxHashMap::default();
    for key in keys {
        *counts.entry(key).or_default() += 1;
    }
    counted(counts, looked_at, uniq)
}

/// The groups, given the numbers of all objects and of examined ones.
fn counted(
    counts: FxHashMap<String, u64>,
    (objects, sampled): (u64, usize),
    uniq: Uniq,
) -> Vec<Group> {
    let scale = |count: u64| match sampled {
        0 => 0,
        sampled => (count as f64 * objects as f64 / sampled as f64).round() as u64,
    };
    let group = |(value, sampled): (String, u64)| {
        let stack: Vec<String> = match uniq {
            Uniq::Stack => value.lines().map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        Group {
            sampled,
            estimated: scale(sampled),
            value: stack.first().cloned().unwrap_or(value),
            stack,
        }
    };
    counts.into_iter().map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_say_how_much_is_missing() {
        assert_eq!(cut("abcdef", 4), "abcd+2");
        assert_eq!(cut("äöü", 3), "äöü");
    }
}
