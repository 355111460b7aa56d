//! The strings of the heap: search by pattern, and the memory that duplicates waste.
//!
//! Duplicates take one walk over the contents of the heap, in file order, with about 50 bytes per string, and another one
//! for their holders. A search takes two: the strings, then their arrays.

pub(crate) mod holders;
pub(crate) mod texts;

use crate::objects::describe::{Address, MAX_VALUE, shorten, text_of};
use crate::objects::fields::{class_named, field_ref};
use crate::sets::object_set::{Both, ObjectSet, content_hash, unzip};
use crate::sets::scope::Scope;
use crate::strings::holders::{Question, Wanted, holders};
use crate::strings::texts::{HashPass, NO_ARRAY, StringPass, StringShape, Text, matching};
use heap_graph::{Control, Heap, HeapError, ObjIdx, ObjectKind};
use hprof::Bytes;
use regex::Regex;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;

/// What to examine.
#[derive(Clone, Debug)]
pub struct StringOptions {
    /// The strings that count.
    pub scope: Scope,
    /// The most rows; `None` for all.
    pub top: Option<usize>,
    /// Name the fields that hold duplicates (one more walk).
    pub holders: bool,
}

/// A string that matches the pattern.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundString {
    /// Id of the string.
    pub object: Address,
    /// Text of the string, at most its first 65,536 characters.
    pub text: String,
    /// Number of characters of the whole text; absent if `text` has all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text_length: Option<u64>,
    /// Its shallow size.
    pub shallow: Bytes,
    /// Its retained size.
    pub retained: Bytes,
}

/// Strings that match a pattern, ordered by id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FoundStrings {
    /// The pattern.
    pub pattern: String,
    /// The set whose objects were examined; absent if it was the whole heap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// The strings that match.
    pub rows: Vec<FoundString>,
    /// Number of all strings that match.
    pub matches: u64,
    /// Number of strings that were examined.
    pub strings: u64,
}

/// A field that holds copies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// `Class.field`; the class alone for array elements.
    pub field: String,
    /// Number of references to the copies.
    pub count: u64,
    /// Bytes that the copies in this field waste; a copy that two fields hold counts for both.
    pub bytes: Bytes,
}

/// Strings with the same text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Duplicate {
    /// The text, shortened.
    pub text: String,
    /// Its length in characters.
    pub length: u64,
    /// Number of strings with this text.
    pub count: u64,
    /// Bytes of all these strings, including their arrays.
    pub bytes: Bytes,
    /// Bytes that would be saved if there were only one such string.
    pub wasted: Bytes,
    /// The fields that hold these strings, those with the most copies first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub holders: Vec<Holder>,
    /// Id of one of these strings.
    pub example: Address,
}

/// Strings that occur more than once, those that waste the most bytes first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Duplicates {
    /// The set whose objects were examined; absent if it was the whole heap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// Number of strings that were examined.
    pub strings: u64,
    /// Number of different texts.
    pub distinct: u64,
    /// Bytes of all strings, including their arrays.
    pub bytes: Bytes,
    /// Bytes that would be saved if each text had only one string.
    pub wasted: Bytes,
    /// A row for each text that several strings have.
    pub rows: Vec<Duplicate>,
    /// Number of rows that were left out.
    pub omitted_rows: u64,
}

/// Every string whose text is in the dump, by object.
fn texts(heap: &Heap, scope: &Scope, control: &Control<'_>) -> Result<Vec<Text>, HeapError> {
    let shape = StringShape::of(heap);
    if shape.is_none() {
        return Ok(shared_texts(heap, scope));
    }
    let walked = heap.walk_contents("strings", control, || {
        Both(StringPass::new(heap, shape, scope), HashPass::default())
    })?;
    let (rows, hashes) = unzip(walked);
    HashPass::finish(heap, hashes, StringPass::finish(rows), control)
}

/// Strings that share arrays (before JDK 7u6), read one by one.
pub(crate) fn shared_texts(heap: &Heap, scope: &Scope) -> Vec<Text> {
    strings_of(heap, scope)
        .filter_map(|string| {
            Some(Text {
                string,
                array: field_ref(heap, string, "value").unwrap_or(NO_ARRAY),
                hash: content_hash(0, heap.string(string)?.as_bytes()),
            })
        })
        .collect()
}

/// Every String of the heap.
fn strings_of<'a>(heap: &'a Heap, scope: &'a Scope) -> impl Iterator<Item = ObjIdx> + 'a {
    let class = class_named(heap, "java.lang.String");
    let columns = heap.columns();
    class
        .into_iter()
        .flat_map(|c| heap.objects_of(c))
        .filter(move |o| scope.has(&columns, *o))
        .filter(|o| heap.kind(*o) == ObjectKind::Instance)
}

/// Finds strings by pattern.
pub fn find(
    heap: &Heap,
    pattern: &Regex,
    options: &StringOptions,
    control: &Control<'_>,
) -> Result<FoundStrings, HeapError> {
    let shape = StringShape::of(heap);
    let (strings, matched): (u64, Vec<ObjIdx>) = if shape.is_none() {
        let all: Vec<ObjIdx> = strings_of(heap, &options.scope).collect();
        let is_match = |o: &ObjIdx| heap.string(*o).is_some_and(|t| pattern.is_match(&t));
        (all.len() as u64, all.into_iter().filter(is_match).collect())
    } else {
        let new = || StringPass::new(heap, shape, &options.scope);
        let rows = StringPass::finish(heap.walk_contents("strings", control, new)?);
        let matched = matching(heap, &rows, pattern, control)?;
        let pairs = rows.iter().zip(matched);
        let found = pairs.filter(|(_, m)| *m).map(|(r, _)| r.string).collect();
        (rows.len() as u64, found)
    };
    let shown = matched.iter().take(options.top.unwrap_or(usize::MAX));
    let rows = shown.map(|object| found_string(heap, *object)).collect();
    Ok(FoundStrings {
        pattern: pattern.as_str().to_owned(),
        set: options.scope.set(),
        rows,
        matches: matched.len() as u64,
        strings,
    })
}

fn found_string(heap: &Heap, object: ObjIdx) -> FoundString {
    let (text, text_length) = text_of(heap, object).unwrap_or_default();
    FoundString {
        object: Address(heap.id(object)),
        text,
        text_length,
        shallow: heap.shallow(object),
        retained: heap.retained(object),
    }
}

/// The matches among the first `most` strings, read one by one, until there are `top` rows: the first results of
/// [`find`], without a walk over the dump.
pub fn first(heap: &Heap, pattern: &Regex, options: &StringOptions, most: usize) -> FoundStrings {
    let top = options.top.unwrap_or(usize::MAX);
    let mut found = FoundStrings {
        pattern: pattern.as_str().to_owned(),
        set: options.scope.set(),
        rows: Vec::new(),
        matches: 0,
        strings: 0,
    };
    for object in strings_of(heap, &options.scope).take(most) {
        if found.rows.len() >= top {
            break;
        }
        found.strings += 1;
        if heap.string(object).is_some_and(|t| pattern.is_match(&t)) {
            found.rows.push(found_string(heap, object));
        }
    }
    found.matches = found.rows.len() as u64;
    found
}

#[derive(Clone, Copy)]
struct Copies {
    hash: u64,
    first: ObjIdx,
    count: u64,
    bytes: u64,
    /// Bytes of the first string with its array, which is needed in any case.
    one: u64,
}

/// Sums up equal strings. Arrays that several strings share are counted once.
pub fn duplicates(
    heap: &Heap,
    options: &StringOptions,
    control: &Control<'_>,
) -> Result<Duplicates, HeapError> {
    duplicates_of(
        heap,
        &texts(heap, &options.scope, control)?,
        options,
        control,
    )
}

/// The bytes of each string: a shared array belongs to the first one.
pub(crate) fn owned_bytes<'a>(heap: &'a Heap, list: &'a [Text]) -> impl Iterator<Item = u64> + 'a {
    let arrays = ObjectSet::new(heap.len(), list.iter().map(|t| t.array));
    let mut taken = vec![false; arrays.len()];
    list.iter().map(move |text| {
        let fresh = arrays
            .rank(text.array)
            .is_some_and(|r| !std::mem::replace(&mut taken[r], true));
        let array = if fresh { heap.shallow(text.array).0 } else { 0 };
        heap.shallow(text.string).0 + array
    })
}

/// The texts that several strings have, and the number of texts, bytes and wasted bytes.
fn copies_of(heap: &Heap, list: &[Text]) -> (Vec<Copies>, u64, u64, u64) {
    // Sorted by hash; strings with the same hash stay in their order.
    let mut sorted: Vec<(u64, usize, u64)> = list
        .iter()
        .zip(0..)
        .zip(owned_bytes(heap, list))
        .map(|((text, at), bytes)| (text.hash, at, bytes))
        .collect();
    sorted.sort_unstable();
    let (mut distinct, mut all, mut wasted) = (0, 0, 0);
    let mut rows = Vec::new();
    for group in sorted.chunk_by(|a, b| a.0 == b.0) {
        let (hash, first, one) = group[0];
        let bytes = group.iter().map(|g| g.2).sum();
        distinct += 1;
        all += bytes;
        wasted += bytes - one;
        if group.len() > 1 {
            rows.push(Copies {
                hash,
                first: list[first].string,
                count: group.len() as u64,
                bytes,
                one,
            });
        }
    }
    (rows, distinct, all, wasted)
}

/// As [`duplicates`], for texts that are already known, by object.
pub(crate) fn duplicates_of(
    heap: &Heap,
    list: &[Text],
    options: &StringOptions,
    control: &Control<'_>,
) -> Result<Duplicates, HeapError> {
    let (mut rows, distinct, bytes, wasted) = copies_of(heap, list);
    rows.sort_unstable_by_key(|c| (Reverse(c.bytes - c.one), Reverse(c.count), c.first));
    let keep = options.top.unwrap_or(usize::MAX).min(rows.len());
    let omitted_rows = (rows.len() - keep) as u64;
    rows.truncate(keep);
    let holders = if options.holders {
        let row_of: FxHashMap<u64, u32> = rows.iter().zip(0..).map(|(r, n)| (r.hash, n)).collect();
        let of_rows = list.iter().zip(owned_bytes(heap, list));
        let wanted: Vec<(ObjIdx, u32, u64)> = of_rows
            .filter_map(|(t, bytes)| {
                let row = *row_of.get(&t.hash)?;
                let first = rows[row as usize].first == t.string;
                Some((t.string, row, if first { 0 } else { bytes }))
            })
            .collect();
        let wanted = Wanted::new(heap, &wanted);
        let question = Question {
            groups: rows.len(),
            keep: 5,
            scope: &options.scope.of_holders(),
            owners: None,
        };
        holders(heap, &wanted, &question, control)?
    } else {
        vec![Vec::new(); rows.len()]
    };
    let rows = rows
        .into_iter()
        .zip(holders)
        .map(|(copies, holders)| {
            let text = heap.string_prefix(copies.first, MAX_VALUE + 1);
            Duplicate {
                length: heap.string_length(copies.first).unwrap_or_default(),
                text: shorten(&text.unwrap_or_default()),
                count: copies.count,
                bytes: Bytes(copies.bytes),
                wasted: Bytes(copies.bytes - copies.one),
                holders,
                example: Address(heap.id(copies.first)),
            }
        })
        .collect();
    Ok(Duplicates {
        set: options.scope.set(),
        strings: list.len() as u64,
        distinct,
        bytes: Bytes(bytes),
        wasted: Bytes(wasted),
        rows,
        omitted_rows,
    })
}
