//! The strings of the heap: search by pattern, and what is wasted on equal ones.

use crate::chain::field_to;
use crate::describe::{Address, ObjectRef, describe, shorten};
use crate::fields::{class_named, field_ref};
use heap_graph::{ClassIdx, Heap, HeapError, ObjIdx, ObjectKind};
use hprof::Bytes;
use regex::Regex;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::cmp::Reverse;
use std::hash::{DefaultHasher, Hash, Hasher};

/// What to look at.
#[derive(Clone, Debug)]
pub struct StringOptions {
    /// Unreachable strings too.
    pub all: bool,
    /// At most so many rows; `None` for all.
    pub top: Option<usize>,
    /// Name the fields that hold duplicates (needs inbound references).
    pub holders: bool,
}

/// A string that matched.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundString {
    /// The string.
    pub object: Address,
    /// Its text.
    pub text: String,
    /// Own size.
    pub shallow: Bytes,
    /// What it retains.
    pub retained: Bytes,
}

/// Strings that match a pattern, in id order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundStrings {
    /// The pattern.
    pub pattern: String,
    /// The matches.
    pub rows: Vec<FoundString>,
    /// Number of all matches.
    pub matches: u64,
    /// Strings that were looked at.
    pub strings: u64,
}

/// A field that holds strings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// `Class.field`; the class alone for array elements.
    pub field: String,
    /// How many of the looked-at copies it holds.
    pub count: u64,
}

/// Equal strings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Duplicate {
    /// The text, shortened.
    pub text: String,
    /// Its length in characters.
    pub length: u64,
    /// How many strings have it.
    pub count: u64,
    /// Bytes of all of them, with their arrays.
    pub bytes: Bytes,
    /// Bytes that one copy instead of all would free.
    pub wasted: Bytes,
    /// Who holds them, most copies first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<Holder>,
    /// One of them.
    pub example: Address,
}

/// Equal strings of the heap, the most wasteful first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Duplicates {
    /// Strings that were looked at.
    pub strings: u64,
    /// Different texts.
    pub distinct: u64,
    /// Bytes of all strings, with their arrays.
    pub bytes: Bytes,
    /// Bytes wasted on copies.
    pub wasted: Bytes,
    /// The rows.
    pub rows: Vec<Duplicate>,
    /// Rows that were left out.
    pub omitted_rows: u64,
}

/// Copies of one text whose holders are looked up.
const SAMPLE: usize = 64;

/// Every String of the heap.
fn strings_of(heap: &Heap, all: bool) -> impl Iterator<Item = ObjIdx> + '_ {
    let class = class_named(heap, "java.lang.String");
    class
        .into_iter()
        .flat_map(|c: ClassIdx| heap.objects_of(c))
        .filter(move |o| all || heap.is_reachable(*o))
        .filter(|o| heap.kind(*o) == ObjectKind::Instance)
}

/// Finds strings by pattern.
pub fn find(heap: &Heap, pattern: &Regex, options: &StringOptions) -> FoundStrings {
    let mut found = FoundStrings {
        pattern: pattern.as_str().to_owned(),
        rows: Vec::new(),
        matches: 0,
        strings: 0,
    };
    let limit = options.top.unwrap_or(usize::MAX);
    for object in strings_of(heap, options.all) {
        found.strings += 1;
        let Some(text) = heap.string(object) else {
            continue;
        };
        if !pattern.is_match(&text) {
            continue;
        }
        found.matches += 1;
        if found.rows.len() < limit {
            found.rows.push(FoundString {
                object: Address(heap.id(object)),
                text,
                shallow: heap.shallow(object),
                retained: heap.retained(object),
            });
        }
    }
    found
}

#[derive(Clone, Copy)]
struct Copies {
    first: ObjIdx,
    count: u64,
    bytes: u64,
    /// Bytes of the first string with its array: what must stay.
    one: u64,
}

fn hash_of(text: &str) -> u64 {
    // SipHash with fixed keys: the same answer on every run, and no cheap collisions.
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Sums up equal strings. Arrays that several strings share are counted once.
pub fn duplicates(heap: &Heap, options: &StringOptions) -> Result<Duplicates, HeapError> {
    let mut texts: FxHashMap<u64, Copies> = FxHashMap::default();
    let mut arrays: FxHashSet<ObjIdx> = FxHashSet::default();
    let mut strings = 0;
    for object in strings_of(heap, options.all) {
        let Some(text) = heap.string(object) else {
            continue;
        };
        strings += 1;
        let array = field_ref(heap, object, "value").filter(|a| arrays.insert(*a));
        let bytes = heap.shallow(object).0 + array.map_or(0, |a| heap.shallow(a).0);
        let copies = texts.entry(hash_of(&text)).or_insert(Copies {
            first: object,
            count: 0,
            bytes: 0,
            one: bytes,
        });
        copies.count += 1;
        copies.bytes += bytes;
    }
    let distinct = texts.len() as u64;
    let bytes = Bytes(texts.values().map(|c| c.bytes).sum());
    let wasted = Bytes(texts.values().map(|c| c.bytes - c.one).sum());
    let mut rows: Vec<(u64, Copies)> = texts.into_iter().filter(|(_, c)| c.count > 1).collect();
    rows.sort_by_key(|(_, c)| (Reverse(c.bytes - c.one), Reverse(c.count), c.first));
    let keep = options.top.unwrap_or(usize::MAX).min(rows.len());
    let omitted_rows = (rows.len() - keep) as u64;
    rows.truncate(keep);
    let holders = if options.holders {
        holders(heap, &rows, options.all)?
    } else {
        vec![Vec::new(); rows.len()]
    };
    let rows = rows
        .into_iter()
        .zip(holders)
        .map(|((_, copies), holders)| {
            let text = heap.string(copies.first).unwrap_or_default();
            Duplicate {
                length: text.chars().count() as u64,
                text: shorten(&text),
                count: copies.count,
                bytes: Bytes(copies.bytes),
                wasted: Bytes(copies.bytes - copies.one),
                holders,
                example: Address(heap.id(copies.first)),
            }
        })
        .collect();
    Ok(Duplicates {
        strings,
        distinct,
        bytes,
        wasted,
        rows,
        omitted_rows,
    })
}

/// The fields that hold the first copies of each row.
fn holders(heap: &Heap, rows: &[(u64, Copies)], all: bool) -> Result<Vec<Vec<Holder>>, HeapError> {
    let mut row_of: FxHashMap<u64, usize> = FxHashMap::default();
    for (n, (hash, _)) in rows.iter().enumerate() {
        row_of.insert(*hash, n);
    }
    let mut samples: Vec<Vec<ObjIdx>> = vec![Vec::new(); rows.len()];
    for object in strings_of(heap, all) {
        if let Some(text) = heap.string(object)
            && let Some(n) = row_of.get(&hash_of(&text))
            && samples[*n].len() < SAMPLE
        {
            samples[*n].push(object);
        }
    }
    let mut found = Vec::with_capacity(rows.len());
    for sample in samples {
        let mut counts: FxHashMap<String, u64> = FxHashMap::default();
        for object in sample {
            for holder in heap.inbound(object)? {
                if let Some(name) = holder_name(heap, holder, object)? {
                    *counts.entry(name).or_default() += 1;
                }
            }
        }
        let mut list: Vec<Holder> = counts
            .into_iter()
            .map(|(field, count)| Holder { field, count })
            .collect();
        list.sort_by(|a, b| b.count.cmp(&a.count).then_with(|| a.field.cmp(&b.field)));
        list.truncate(5);
        found.push(list);
    }
    Ok(found)
}

/// `Class.field` of the reference from a holder; the array class for elements.
fn holder_name(heap: &Heap, from: ObjIdx, to: ObjIdx) -> Result<Option<String>, HeapError> {
    let holder: ObjectRef = describe(heap, from);
    let class = match (&holder.kind, holder.value) {
        (ObjectKind::Class, Some(name)) => name,
        _ => holder.class,
    };
    Ok(match field_to(heap, from, to)? {
        Some(field) if field.starts_with('[') => Some(class),
        Some(field) => Some(format!("{class}.{field}")),
        None => None,
    })
}
