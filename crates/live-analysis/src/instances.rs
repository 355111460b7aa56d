//! The instances of one class: listed in any order, or counted by what they have in common, all of
//! them or a fair random sample. Here those of a dump, whose values are read from fields.

use crate::contents::{Content, content};
use crate::range::{Range, Step};
use heap_analysis::objects::describe::{Address, value_of};
use heap_analysis::tables::group::trace_frames;
use heap_graph::{ClassIdx, Heap, ObjIdx};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Ordering;
use vmpi::{ClassOptions, FairSample};

/// Orders of the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// As they were made, where that is known; else as sites came first into use, then by address.
    #[default]
    Time,
    /// By `compareTo`, where the objects were asked; else by value: numbers as numbers, texts as texts.
    Value,
    /// By `toString`, or the value.
    Text,
    /// By Java's `hashCode` of strings and numbers.
    HashCode,
    /// By elements held.
    Size,
    /// By elements there is room for.
    Capacity,
    /// By bytes of arrays.
    CapacityBytes,
    /// By room that is not used.
    Excess,
    /// As the dump has them.
    None,
}

/// What instances of a group have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Uniq {
    /// The stack that allocated them.
    Stack,
    /// Their value, as `equals` sees it, where the objects were asked; else as that of strings, boxes
    /// and the like does.
    Value,
    /// Their text, likewise.
    Text,
    /// Java's `hashCode` of strings and numbers.
    HashCode,
    /// Their class and its loader.
    Class,
    /// Their size in steps of so many.
    Size(u64),
    /// When they were made.
    Time(Step),
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// Order, and from which end.
    pub sort: Sort,
    /// Greatest first.
    pub descending: bool,
    /// Objects to examine; `None` for all.
    pub sample: Option<usize>,
    /// Number of the first object to give.
    pub offset: usize,
    /// Objects to give.
    pub limit: usize,
    /// Characters of a value; 0 for no values.
    pub value_limit: usize,
    /// When they were made, of live ones; `None` for any time.
    pub born: Option<Range>,
}

impl Query {
    /// Whether an object made then is requested.
    pub fn is_of(&self, born_ms: Option<u64>) -> bool {
        let is_in = |range: Range| born_ms.is_some_and(|ms| range.from <= ms && ms <= range.to);
        self.born.is_none_or(is_in)
    }
}

/// One object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Instance {
    /// Its address in the dump.
    pub id: Option<Address>,
    /// Its identity hash code, of a live one.
    pub identity: Option<i32>,
    /// When it was made, in milliseconds since 1970, or a little before.
    pub born_ms: Option<u64>,
    /// The thread that made it, where that is recorded.
    pub context: Option<String>,
    /// Serial of the stack that allocated it; 0 when it is not known.
    pub trace: u32,
    /// Its size and capacity.
    #[serde(flatten)]
    pub content: Content,
    /// Its value, or what its `toString` said.
    pub value: Option<String>,
    /// Java's `hashCode`, where it follows from the value, or what it said.
    pub hash: Option<i32>,
    /// Its place in the order of `compareTo`, if it was asked.
    pub rank: Option<u32>,
    /// Number that equal objects share, if they were asked.
    #[serde(skip)]
    pub group: Option<u32>,
    /// What its code threw when it was asked.
    pub fault: Option<String>,
    /// Frames of its stack, innermost first.
    pub stack: Vec<String>,
}

/// Objects of a class: `tenure.live.instances/1`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Instances {
    /// Name of the schema.
    pub schema: &'static str,
    /// Class name.
    pub class: String,
    /// `live` or `dump`.
    pub source: &'static str,
    /// Number of the dump.
    pub dump: Option<usize>,
    /// Objects of the class: reachable ones of a dump, live ones that the agent follows.
    pub objects: u64,
    /// Objects that were examined.
    pub sampled: usize,
    /// Number of the first row, among those that were examined.
    pub offset: usize,
    /// The objects themselves may be asked.
    pub own_code: bool,
    /// What is shown of the class.
    pub shown: Shown,
    /// What could not be asked, and why.
    pub notes: Vec<String>,
    /// The rows.
    pub rows: Vec<Instance>,
}

/// What is shown of a class, by its options: which columns and orders there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Shown {
    /// When objects were made.
    pub time: bool,
    /// The stacks that made them.
    pub stack: bool,
    /// How many elements they hold.
    pub size: bool,
    /// How many they have room for.
    pub capacity: bool,
    /// Who made them.
    pub context: bool,
}

impl Shown {
    /// By options; only the agent knows times.
    pub fn of(options: &ClassOptions, has_times: bool) -> Shown {
        Shown {
            time: options.time && has_times,
            stack: options.stack,
            size: options.size,
            capacity: options.capacity,
            context: options.context,
        }
    }
}

/// A group of objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Objects in the sample.
    pub sampled: u64,
    /// What that stands for among all objects.
    pub estimated: u64,
    /// What they have in common.
    pub value: String,
}

/// The classes of a name.
pub fn classes_named(heap: &Heap, name: &str) -> Vec<ClassIdx> {
    let classes = heap.classes().iter().enumerate();
    let named = classes.filter(|(_, class)| class.name == name);
    named.map(|(n, _)| ClassIdx(n as u32)).collect()
}

/// The objects of a class, or a sample in which each has the same chance. The same dump gives the
/// same sample.
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

/// Cuts a text and says how much is missing, as the original did: `abc+12`.
pub fn cut(text: &str, limit: usize) -> String {
    let length = text.chars().count();
    if length <= limit {
        return text.to_owned();
    }
    let kept: String = text.chars().take(limit).collect();
    format!("{kept}+{}", length - limit)
}

fn instance(heap: &Heap, object: ObjIdx, value_limit: usize) -> Instance {
    let trace = heap.allocation_trace(object);
    Instance {
        id: Some(Address(heap.id(object))),
        identity: None,
        born_ms: None,
        context: None,
        trace: trace.0,
        content: content(heap, object),
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

/// Lists objects.
pub fn list(heap: &Heap, class: &str, query: &Query) -> Instances {
    let (objects, chosen) = sample(heap, class, query.sample);
    let sampled = chosen.len();
    let rows: Vec<Instance> = chosen
        .into_iter()
        .map(|object| instance(heap, object, query.value_limit.max(1)))
        .collect();
    let mut rows = arrange(rows, query);
    for row in &mut rows {
        row.stack = trace_frames(heap, hprof::Serial(row.trace));
    }
    Instances {
        schema: "tenure.live.instances/1",
        class: class.to_owned(),
        source: "dump",
        dump: None,
        objects,
        sampled,
        offset: query.offset,
        own_code: false,
        shown: Shown::default(),
        notes: Vec::new(),
        rows,
    }
}

/// Puts rows in order and takes those of a page.
pub fn arrange(mut rows: Vec<Instance>, query: &Query) -> Vec<Instance> {
    if query.sort != Sort::None {
        rows.sort_by(|a, b| order(a, b, query.sort));
    }
    if query.descending {
        rows.reverse();
    }
    rows.drain(..query.offset.min(rows.len()));
    rows.truncate(query.limit);
    if query.value_limit == 0 {
        rows.iter_mut().for_each(|row| row.value = None);
    }
    rows
}

fn order(a: &Instance, b: &Instance, sort: Sort) -> Ordering {
    let by = match sort {
        Sort::Time => a.born_ms.cmp(&b.born_ms).then(a.trace.cmp(&b.trace)),
        Sort::Value if a.rank.is_some() || b.rank.is_some() => a.rank.cmp(&b.rank),
        Sort::Value | Sort::Text => values(a.value.as_deref(), b.value.as_deref()),
        Sort::HashCode => a.hash.cmp(&b.hash),
        Sort::Size => a.content.size.cmp(&b.content.size),
        Sort::Capacity => a.content.capacity.cmp(&b.content.capacity),
        Sort::CapacityBytes => a.content.capacity_bytes.cmp(&b.content.capacity_bytes),
        Sort::Excess => a.content.excess().cmp(&b.content.excess()),
        Sort::None => Ordering::Equal,
    };
    let id = |row: &Instance| row.id.map(|id| id.0);
    by.then_with(|| id(a).cmp(&id(b)))
}

/// Nothing first, then numbers as numbers, then texts as texts.
fn values(a: Option<&str>, b: Option<&str>) -> Ordering {
    let number = |text: Option<&str>| text.and_then(|t| t.parse::<f64>().ok());
    match (number(a), number(b)) {
        (Some(x), Some(y)) => x.total_cmp(&y),
        (Some(_), None) if b.is_some() => Ordering::Less,
        (None, Some(_)) if a.is_some() => Ordering::Greater,
        _ => a.cmp(&b),
    }
}

/// Counts objects by what they have in common, most frequent first.
pub fn groups(heap: &Heap, class: &str, uniq: Uniq, query: &Query) -> (u64, usize, Vec<Group>) {
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
    (objects, sampled, ranked(counts, (objects, sampled), query))
}

/// Counts keys, most frequent first.
pub fn group_by(
    keys: impl Iterator<Item = String>,
    looked_at: (u64, usize),
    query: &Query,
) -> Vec<Group> {
    let mut counts: FxHashMap<String, u64> = FxHashMap::default();
    for key in keys {
        *counts.entry(key).or_default() += 1;
    }
    ranked(counts, looked_at, query)
}

/// The groups in order; so many objects there are, and so many were examined.
fn ranked(
    counts: FxHashMap<String, u64>,
    (objects, sampled): (u64, usize),
    query: &Query,
) -> Vec<Group> {
    let scale = |count: u64| match sampled {
        0 => 0,
        sampled => (count as f64 * objects as f64 / sampled as f64).round() as u64,
    };
    let mut rows: Vec<Group> = counts
        .into_iter()
        .map(|(value, sampled)| Group {
            sampled,
            estimated: scale(sampled),
            value,
        })
        .collect();
    rows.sort_by(|a, b| {
        b.sampled
            .cmp(&a.sampled)
            .then_with(|| values(Some(&a.value), Some(&b.value)))
    });
    if !query.descending {
        rows.reverse();
    }
    rows.truncate(query.limit);
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_say_how_much_is_missing() {
        assert_eq!(cut("abcdef", 4), "abcd+2");
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(values(Some("9"), Some("10")), Ordering::Less);
        assert_eq!(values(Some("b"), Some("a")), Ordering::Greater);
        // One order for all of them, or sorting would panic.
        let rising = [
            None,
            Some("-1"),
            Some("9"),
            Some("10"),
            Some("1a"),
            Some("a"),
        ];
        for (n, a) in rising.iter().enumerate() {
            for (m, b) in rising.iter().enumerate() {
                assert_eq!(values(*a, *b), n.cmp(&m), "{a:?} {b:?}");
            }
        }
    }
}
