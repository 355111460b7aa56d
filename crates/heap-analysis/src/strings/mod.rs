//! The strings of the heap: search by pattern, and the memory that duplicates waste.
//!
//! Duplicates take one walk over the contents of the heap, in file order, with about 50 bytes per string, and another one
//! for their holders. A search takes two: the strings, then their arrays. With a memory limit that this exceeds, the
//! strings are examined in parts.

pub(crate) mod holders;
mod pattern;
pub(crate) mod texts;

use crate::objects::describe::{Address, MAX_VALUE, shorten, text_of};
use crate::objects::fields::{class_named, field_ref};
use crate::sets::object_set::{Both, ObjectSet, content_hash, unzip};
use crate::sets::part::{Only, Part};
use crate::sets::scope::Scope;
pub use crate::strings::holders::Holder;
use crate::strings::holders::{Question, Wanted, holders};
use crate::strings::pattern::Matcher;
use crate::strings::texts::{HashPass, NO_ARRAY, StringPass, StringShape, Text, matching};
use crate::tables::ranking::cut;
use heap_graph::{Control, Heap, HeapError, ObjIdx, ObjectKind};
use hprof::{BasicType, Bytes};
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

/// Bytes for each string or array of bytes or chars while their texts are compared.
const TEXT_MEMORY: u64 = 64;

/// Bytes that comparing the texts of all strings takes, besides sets of objects.
pub(crate) fn memory_of_texts(heap: &Heap) -> u64 {
    let strings = class_named(heap, "java.lang.String").map_or(0, |c| heap.class(c).objects);
    let holds_texts = |e| matches!(e, Some(BasicType::Byte | BasicType::Char));
    let arrays = heap.classes().iter().filter(|c| holds_texts(c.element));
    strings.max(arrays.map(|c| c.objects).sum()) * TEXT_MEMORY
}

/// The number of parts that comparing the texts of all strings is divided into by the memory limit.
fn parts_of_texts(heap: &Heap) -> Result<u64, HeapError> {
    const WHAT: &str = "the search for equal strings";
    let (sets, texts) = (2 * ObjectSet::bytes(heap.len()), memory_of_texts(heap));
    if StringShape::of(heap).is_some() {
        return heap.parts(WHAT, sets, texts);
    }
    // A shared array belongs to the first of its strings, whose texts may be in different parts.
    heap.require_memory(WHAT, sets + texts)?;
    Ok(1)
}

/// Every string whose text is in the dump and in the part, by object.
fn texts(
    heap: &Heap,
    scope: &Scope,
    part: Part,
    control: &Control<'_>,
) -> Result<Vec<Text>, HeapError> {
    let shape = StringShape::of(heap);
    if shape.is_none() {
        return Ok(shared_texts(heap, scope));
    }
    let strings = |arrays| StringPass::new(heap, shape, scope, arrays);
    if part.is_all() {
        let walked = heap.walk_contents("strings", control, || {
            Both(strings(Only::Part(part)), HashPass::new(part))
        })?;
        let (rows, hashes) = unzip(walked);
        let hashes = HashPass::finish(heap, part, hashes);
        return hashes.texts(heap, StringPass::finish(rows), control);
    }
    let walked = heap.walk_contents("texts", control, || HashPass::new(part))?;
    let hashes = HashPass::finish(heap, part, walked);
    let new = || strings(Only::Set(&hashes.arrays));
    let rows = StringPass::finish(heap.walk_contents("strings", control, new)?);
    hashes.texts(heap, rows, control)
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
    let top = options.top.unwrap_or(usize::MAX);
    let (mut strings, mut matches, mut matched) = (0, 0, Vec::new());
    for part in Part::of(parts_of_search(heap)?) {
        let (count, found) = matching_strings(heap, pattern, &options.scope, part, control)?;
        strings += count;
        matches += found.len() as u64;
        matched.extend(found);
        matched.sort_unstable();
        matched.truncate(top);
    }
    let rows = matched.into_iter().map(|o| found_string(heap, o)).collect();
    Ok(FoundStrings {
        pattern: pattern.as_str().to_owned(),
        set: options.scope.set(),
        rows,
        matches,
        strings,
    })
}

/// Bytes for each string during a search.
const SEARCH_MEMORY: u64 = 56;

/// The number of parts that a search in all strings is divided into by the memory limit.
fn parts_of_search(heap: &Heap) -> Result<u64, HeapError> {
    let fixed = ObjectSet::bytes(heap.len());
    let strings = class_named(heap, "java.lang.String").map_or(0, |c| heap.class(c).objects);
    heap.parts("the search in strings", fixed, strings * SEARCH_MEMORY)
}

/// The number of strings in a part, and those that match.
fn matching_strings(
    heap: &Heap,
    pattern: &Regex,
    scope: &Scope,
    part: Part,
    control: &Control<'_>,
) -> Result<(u64, Vec<ObjIdx>), HeapError> {
    let shape = StringShape::of(heap);
    if shape.is_none() {
        let all = strings_of(heap, scope).filter(|o| part.has(o.0));
        let all: Vec<ObjIdx> = all.collect();
        let mut matcher = Matcher::new(pattern);
        let is_match = |o: &ObjIdx| is_match(heap, *o, &mut matcher);
        return Ok((all.len() as u64, all.into_iter().filter(is_match).collect()));
    }
    let new = || StringPass::new(heap, shape, scope, Only::Part(part));
    let rows = StringPass::finish(heap.walk_contents("strings", control, new)?);
    let matched = matching(heap, &rows, pattern, control)?;
    let pairs = rows.iter().zip(matched);
    let found = pairs.filter(|(_, m)| *m).map(|(r, _)| r.string).collect();
    Ok((rows.len() as u64, found))
}

fn is_match(heap: &Heap, string: ObjIdx, matcher: &mut Matcher) -> bool {
    let data = heap.string_data(string);
    data.is_some_and(|(element, coder, data)| matcher.is_match(element, coder, data))
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
    let mut matcher = Matcher::new(pattern);
    for object in strings_of(heap, &options.scope).take(most) {
        if found.rows.len() >= top {
            break;
        }
        found.strings += 1;
        if is_match(heap, object, &mut matcher) {
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
    let parts = parts_of_texts(heap)?;
    let mut found = Groups::new(options.top);
    let mut list = Vec::new();
    for part in Part::of(parts) {
        drop(std::mem::take(&mut list));
        list = texts(heap, &options.scope, part, control)?;
        found.add(heap, &list);
    }
    found.keep_largest();
    if options.holders {
        found.holders = vec![Vec::new(); found.rows.len()];
        for part in Part::of(parts) {
            if parts > 1 {
                drop(std::mem::take(&mut list));
                list = texts(heap, &options.scope, part, control)?;
            }
            found.add_holders(heap, &list, &options.scope, control)?;
        }
    }
    Ok(found.answer(heap, &options.scope))
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

/// Equal strings of one part after the other: all strings with the same text are in the same part.
pub(crate) struct Groups {
    /// The most rows; `None` for all.
    top: Option<usize>,
    strings: u64,
    distinct: u64,
    bytes: u64,
    wasted: u64,
    rows: Vec<Copies>,
    omitted_rows: u64,
    /// By row.
    holders: Vec<Vec<Holder>>,
}

impl Groups {
    pub(crate) fn new(top: Option<usize>) -> Groups {
        Groups {
            top,
            strings: 0,
            distinct: 0,
            bytes: 0,
            wasted: 0,
            rows: Vec::new(),
            omitted_rows: 0,
            holders: Vec::new(),
        }
    }

    /// Adds the strings of a part, which are sorted by object.
    pub(crate) fn add(&mut self, heap: &Heap, list: &[Text]) {
        // Sorted by hash; strings with the same hash stay in their order.
        let mut sorted: Vec<(u64, usize, u64)> = list
            .iter()
            .zip(0..)
            .zip(owned_bytes(heap, list))
            .map(|((text, at), bytes)| (text.hash, at, bytes))
            .collect();
        sorted.sort_unstable();
        self.strings += list.len() as u64;
        for group in sorted.chunk_by(|a, b| a.0 == b.0) {
            let (hash, first, one) = group[0];
            let bytes: u64 = group.iter().map(|g| g.2).sum();
            self.distinct += 1;
            self.bytes += bytes;
            self.wasted += bytes - one;
            if group.len() > 1 {
                self.rows.push(Copies {
                    hash,
                    first: list[first].string,
                    count: group.len() as u64,
                    bytes,
                    one,
                });
            }
        }
        drop(sorted);
        self.keep_largest();
    }

    /// Sorts the rows and leaves out those beyond the most.
    fn keep_largest(&mut self) {
        let rows = &mut self.rows;
        rows.sort_unstable_by_key(|c| (Reverse(c.bytes - c.one), Reverse(c.count), c.first));
        self.omitted_rows += cut(rows, self.top);
        rows.shrink_to_fit();
    }

    /// Names the fields that hold the strings of a part.
    fn add_holders(
        &mut self,
        heap: &Heap,
        list: &[Text],
        scope: &Scope,
        control: &Control<'_>,
    ) -> Result<(), HeapError> {
        let rows = self.rows.iter().zip(0..);
        let row_of: FxHashMap<u64, u32> = rows.map(|(r, n)| (r.hash, n)).collect();
        let of_rows = list.iter().zip(owned_bytes(heap, list));
        let copies: Vec<(ObjIdx, u32, u64)> = of_rows
            .filter_map(|(t, bytes)| {
                let row = *row_of.get(&t.hash)?;
                let first = self.rows[row as usize].first == t.string;
                Some((t.string, row, if first { 0 } else { bytes }))
            })
            .collect();
        let wanted = Wanted::new(heap, &copies);
        drop(copies);
        let question = Question {
            groups: self.rows.len(),
            keep: 5,
            scope: &scope.of_holders(),
            owners: None,
        };
        let found = holders(heap, &wanted, &question, control)?;
        for (all, found) in self.holders.iter_mut().zip(found) {
            all.extend(found);
        }
        Ok(())
    }

    pub(crate) fn answer(mut self, heap: &Heap, scope: &Scope) -> Duplicates {
        self.holders.resize(self.rows.len(), Vec::new());
        let rows = self.rows.into_iter().zip(self.holders);
        let rows = rows.map(|(copies, holders)| {
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
        });
        Duplicates {
            set: scope.set(),
            strings: self.strings,
            distinct: self.distinct,
            bytes: Bytes(self.bytes),
            wasted: Bytes(self.wasted),
            rows: rows.collect(),
            omitted_rows: self.omitted_rows,
        }
    }
}
