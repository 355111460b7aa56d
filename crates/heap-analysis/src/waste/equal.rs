//! Equal arrays and objects. The first walk marks a hash of every candidate in a sketch of two bit planes; the second
//! one collects only candidates whose hash was marked twice.

use super::plan::Plan;
use crate::objects::describe::Address;
use crate::sets::object_set::{ObjectSet, chained, content_hash};
use crate::sets::scope::Scope;
use crate::strings::owned_bytes;
use crate::strings::texts::Text;
use crate::tables::ranking::cut;
use heap_graph::{ClassIdx, Columns, ContentVisitor, Heap, ObjIdx};
use hprof::{BasicType, Bytes};
use serde::Serialize;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, Ordering};

/// A group of equal objects.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EqualRow {
    /// Class of the objects.
    pub class: String,
    /// Number of equal objects.
    pub count: u64,
    /// Sum of their shallow sizes.
    pub bytes: Bytes,
    /// Bytes that would be saved if there were only one of them.
    pub wasted: Bytes,
    /// Id of the first of them.
    pub example: Address,
    /// The readable value of that object; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// Groups of equal objects, those that waste the most bytes first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Equals {
    /// Number of objects that are equal to another one.
    pub objects: u64,
    /// Number of groups.
    pub distinct: u64,
    /// Bytes that would be saved if each group had only one object.
    pub wasted: Bytes,
    /// A row for each group.
    pub rows: Vec<EqualRow>,
    /// Number of rows that were left out.
    pub omitted_rows: u64,
}

/// The share of a memory limit for the sketch.
const SHARE: u64 = 4;
/// The fewest words of each plane.
const LEAST_WORDS: usize = 16;

/// Bits for hashes that occurred once, and for those that occurred twice.
pub(super) struct Sketch {
    once: Vec<AtomicU64>,
    twice: Vec<AtomicU64>,
    /// Number of hashes that were marked again.
    again: AtomicU64,
}

impl Sketch {
    /// A sketch for `objects` objects: a byte of each plane per object, or less with a memory limit. A smaller sketch only
    /// takes more objects for candidates.
    pub(super) fn new(objects: u64, memory: Option<u64>) -> Sketch {
        let words = Sketch::words(objects);
        let words = match memory.map(|memory| (memory / SHARE / 16) as usize) {
            Some(most) => words.min(most.max(1).next_power_of_two() / 2),
            None => words,
        };
        let words = words.max(LEAST_WORDS);
        let plane = || (0..words).map(|_| AtomicU64::new(0)).collect();
        Sketch {
            once: plane(),
            twice: plane(),
            again: AtomicU64::new(0),
        }
    }

    /// Words of each plane without a memory limit.
    fn words(objects: u64) -> usize {
        (objects as usize / 8).next_power_of_two().max(LEAST_WORDS)
    }

    /// Bytes of both planes.
    pub(super) fn bytes(&self) -> u64 {
        16 * self.once.len() as u64
    }

    /// The most bytes of a sketch for so many objects if it and `others` bytes are within a memory limit.
    pub(super) fn bytes_beside(objects: u64, others: u64) -> u64 {
        let words = (others / (SHARE - 1) / 16) as usize;
        16 * Sketch::words(objects).min(words.max(LEAST_WORDS)) as u64
    }

    /// The most bytes of the lists of candidates and of the copies among them.
    pub(super) fn list_bytes(&self) -> u64 {
        let again = self.again.load(Ordering::Relaxed);
        let twice = self.twice.iter();
        let firsts: u64 = twice
            .map(|w| u64::from(w.load(Ordering::Relaxed).count_ones()))
            .sum();
        (again + firsts) * size_of::<(u64, ObjIdx)>() as u64
            + again * size_of::<(ObjIdx, u32, u64)>() as u64
    }

    fn place(&self, hash: u64) -> (usize, u64) {
        let word = (hash >> 6) as usize & (self.once.len() - 1);
        (word, 1 << (hash & 63))
    }

    /// Marks hashes and removes them from the list. Their words are read first, independently of each other, so that
    /// the processor does not wait for each of them in turn.
    fn mark_all(&self, hashes: &mut Vec<u64>) {
        self.touch(&self.once, hashes.iter());
        let mut again = 0;
        for hash in hashes.drain(..) {
            let (word, bit) = self.place(hash);
            if self.once[word].fetch_or(bit, Ordering::Relaxed) & bit != 0 {
                self.twice[word].fetch_or(bit, Ordering::Relaxed);
                again += 1;
            }
        }
        self.again.fetch_add(again, Ordering::Relaxed);
    }

    fn touch<'a>(&self, plane: &[AtomicU64], hashes: impl Iterator<Item = &'a u64>) {
        let words = hashes.map(|hash| self.place(*hash).0);
        let read = words.fold(0, |all, word| all | plane[word].load(Ordering::Relaxed));
        std::hint::black_box(read);
    }

    fn met_twice(&self, hash: u64) -> bool {
        let (word, bit) = self.place(hash);
        self.twice[word].load(Ordering::Relaxed) & bit != 0
    }
}

/// Number of hashes that are collected before they are looked up in the sketch together.
const AHEAD: usize = 64;

/// The hash of an instance, which includes its class.
fn hash_instance(class: ClassIdx, fields: &[u8]) -> u64 {
    content_hash(1 << 40 | u64::from(class.0), fields)
}

/// The hash of an array of references.
fn hash_references(class: ClassIdx, elements: &[u8]) -> u64 {
    content_hash(2 << 40 | u64::from(class.0), elements)
}

/// The hash of an array of primitives.
fn hash_primitives(element: BasicType, data: &[u8]) -> u64 {
    content_hash(3 << 40 | element as u64, data)
}

/// The first walk, which marks the candidates.
pub(super) struct MarkPass<'a> {
    columns: Columns<'a>,
    plan: &'a Plan,
    sketch: &'a Sketch,
    scope: &'a Scope,
    /// Hashes that will be marked.
    marks: Vec<u64>,
}

impl<'a> MarkPass<'a> {
    pub(super) fn new(
        heap: &'a Heap,
        plan: &'a Plan,
        sketch: &'a Sketch,
        scope: &'a Scope,
    ) -> MarkPass<'a> {
        MarkPass {
            columns: heap.columns(),
            plan,
            sketch,
            scope,
            marks: Vec::with_capacity(AHEAD),
        }
    }

    /// Marks what the workers have collected last.
    pub(super) fn finish(passes: Vec<MarkPass<'_>>) {
        for mut pass in passes {
            pass.sketch.mark_all(&mut pass.marks);
        }
    }

    fn mark(&mut self, object: ObjIdx, hash: u64) {
        if !self.scope.has(&self.columns, object) {
            return;
        }
        self.marks.push(hash);
        if self.marks.len() == AHEAD {
            self.sketch.mark_all(&mut self.marks);
        }
    }
}

impl ContentVisitor for MarkPass<'_> {
    fn instance(&mut self, object: ObjIdx, class: ClassIdx, fields: &[u8]) {
        if self.plan.comparable(class, fields) {
            self.mark(object, hash_instance(class, fields));
        }
    }

    fn object_array(&mut self, object: ObjIdx, class: ClassIdx, elements: &[u8]) {
        self.mark(object, hash_references(class, elements));
    }

    fn primitive_array(&mut self, object: ObjIdx, element: BasicType, len: u32, data: &[u8]) {
        if data.is_empty() == (len == 0) {
            self.mark(object, hash_primitives(element, data));
        }
    }
}

/// The second walk.
pub(super) struct EqualPass<'a> {
    columns: Columns<'a>,
    plan: &'a Plan,
    sketch: &'a Sketch,
    /// Hashes to look up in the sketch, with their objects, and whether they are arrays.
    candidates: Vec<(u64, ObjIdx, bool)>,
    /// Arrays that strings own are counted with the strings.
    texts: &'a ObjectSet,
    scope: &'a Scope,
    arrays: Vec<(u64, ObjIdx)>,
    objects: Vec<(u64, ObjIdx)>,
}

impl<'a> EqualPass<'a> {
    pub(super) fn new(
        heap: &'a Heap,
        plan: &'a Plan,
        sketch: &'a Sketch,
        texts: &'a ObjectSet,
        scope: &'a Scope,
    ) -> EqualPass<'a> {
        EqualPass {
            columns: heap.columns(),
            plan,
            sketch,
            candidates: Vec::with_capacity(AHEAD),
            texts,
            scope,
            arrays: Vec::new(),
            objects: Vec::new(),
        }
    }

    fn candidate(&mut self, hash: u64, object: ObjIdx, is_array: bool) {
        self.candidates.push((hash, object, is_array));
        if self.candidates.len() == AHEAD {
            self.keep();
        }
    }

    /// Adds the candidates that may have an equal one to the lists.
    fn keep(&mut self) {
        let sketch = self.sketch;
        sketch.touch(&sketch.twice, self.candidates.iter().map(|c| &c.0));
        for (hash, object, is_array) in self.candidates.drain(..) {
            if sketch.met_twice(hash) && self.scope.has(&self.columns, object) {
                let list = match is_array {
                    true => &mut self.arrays,
                    false => &mut self.objects,
                };
                list.push((hash, object));
            }
        }
    }
}

impl ContentVisitor for EqualPass<'_> {
    fn instance(&mut self, object: ObjIdx, class: ClassIdx, fields: &[u8]) {
        if self.plan.comparable(class, fields) {
            self.candidate(hash_instance(class, fields), object, false);
        }
    }

    fn object_array(&mut self, object: ObjIdx, class: ClassIdx, elements: &[u8]) {
        self.candidate(hash_references(class, elements), object, true);
    }

    fn primitive_array(&mut self, object: ObjIdx, element: BasicType, len: u32, data: &[u8]) {
        if self.texts.rank(object).is_some() || data.is_empty() != (len == 0) {
            return;
        }
        self.candidate(hash_primitives(element, data), object, true);
    }
}

/// An answer and the copies it counts, with what each wastes.
pub(super) struct Summed {
    pub(super) answer: Equals,
    pub(super) copies: Vec<(ObjIdx, u32, u64)>,
}

/// Objects with their hashes.
type Hashed = Vec<(u64, ObjIdx)>;

/// The arrays and the objects that all workers found.
pub(super) fn found(passes: Vec<EqualPass<'_>>) -> (Hashed, Hashed) {
    let lists = passes.into_iter().map(|mut pass| {
        pass.keep();
        (pass.arrays, pass.objects)
    });
    let (arrays, objects): (Vec<_>, Vec<_>) = lists.unzip();
    (chained(arrays.into_iter()), chained(objects.into_iter()))
}

/// Sums up groups of equal objects.
pub(super) fn groups(heap: &Heap, mut list: Hashed, top: Option<usize>) -> Summed {
    list.sort_unstable();
    let mut answer = Equals::default();
    let mut copies = Vec::new();
    let mut found: Vec<(u64, u64, u64, ObjIdx)> = Vec::new();
    for group in list.chunk_by(|a, b| a.0 == b.0).filter(|g| g.len() > 1) {
        let first = group[0].1;
        // Equal objects have the same class and length, so the same size.
        let one = heap.shallow(first).0;
        let wasted = one * (group.len() as u64 - 1);
        answer.objects += group.len() as u64;
        answer.distinct += 1;
        answer.wasted.0 += wasted;
        found.push((wasted, group.len() as u64, one, first));
        copies.extend(group[1..].iter().map(|(_, o)| (*o, 0, one)));
    }
    found.sort_unstable_by_key(|f| (Reverse(f.0), Reverse(f.1), f.3));
    answer.omitted_rows = cut(&mut found, top);
    let row = |(wasted, count, one, first): (u64, u64, u64, ObjIdx)| EqualRow {
        class: heap.class(heap.class_of(first)).name.clone(),
        count,
        bytes: Bytes(one * count),
        wasted: Bytes(wasted),
        example: Address(heap.id(first)),
        value: crate::objects::describe::value_of(heap, first),
    };
    answer.rows = found.into_iter().map(row).collect();
    Summed { answer, copies }
}

/// The strings that are not the first with their text, with the size of the string and its array.
pub(super) fn copies_of_strings(heap: &Heap, texts: &[Text]) -> Vec<(ObjIdx, u32, u64)> {
    let mut firsts: Vec<(u64, usize)> = texts.iter().zip(0..).map(|(t, n)| (t.hash, n)).collect();
    firsts.sort_unstable();
    firsts.dedup_by_key(|f| f.0);
    let mut is_first = vec![false; texts.len()];
    firsts.iter().for_each(|f| is_first[f.1] = true);
    drop(firsts);
    texts
        .iter()
        .zip(owned_bytes(heap, texts))
        .zip(is_first)
        .filter(|(_, is_first)| !is_first)
        .map(|((text, bytes), _)| (text.string, 0, bytes))
        .collect()
}
