//! All strings with the hashes of their texts, in one walk over the contents, which hashes every array of bytes or chars:
//! 24 bytes per string and 16 per array. A search reads the arrays of strings in a second walk.

use crate::objects::fields::class_named;
use crate::sets::object_set::{ObjectSet, Place, chained, content_hash};
use crate::sets::part::{Only, Part};
use crate::sets::scope::Scope;
use crate::strings::pattern::Matcher;
use heap_graph::{ClassIdx, Columns, ContentVisitor, Control, Heap, HeapError, ObjIdx, ObjectView};
use hprof::BasicType;
use regex::Regex;

/// The fields of `java.lang.String` for its array and coder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StringShape {
    class: ClassIdx,
    value: Place,
    coder: Option<Place>,
}

impl StringShape {
    /// `None` when the heap has no strings, or when strings share arrays (before JDK 7u6) and must be read one by one.
    pub(crate) fn of(heap: &Heap) -> Option<StringShape> {
        let class = class_named(heap, "java.lang.String")?;
        let slots = heap.slots(class);
        if Place::of(heap, &slots, "offset").is_some() {
            return None;
        }
        Some(StringShape {
            class,
            value: Place::of(heap, &slots, "value")?,
            coder: Place::of(heap, &slots, "coder"),
        })
    }
}

/// A string and its array.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StringRow {
    pub(crate) string: ObjIdx,
    pub(crate) array: ObjIdx,
    coder: i8,
}

/// A visitor that finds the strings.
pub(crate) struct StringPass<'h> {
    heap: &'h Heap,
    columns: Columns<'h>,
    shape: Option<StringShape>,
    scope: &'h Scope,
    /// The arrays whose strings are collected.
    arrays: Only<'h>,
    rows: Vec<StringRow>,
}

impl<'h> StringPass<'h> {
    pub(crate) fn new(
        heap: &'h Heap,
        shape: Option<StringShape>,
        scope: &'h Scope,
        arrays: Only<'h>,
    ) -> StringPass<'h> {
        StringPass {
            heap,
            columns: heap.columns(),
            shape,
            scope,
            arrays,
            rows: Vec::new(),
        }
    }

    /// The strings of all workers, by object.
    pub(crate) fn finish(passes: Vec<StringPass<'h>>) -> Vec<StringRow> {
        let mut rows = chained(passes.into_iter().map(|p| p.rows));
        // The lists consist of long ascending runs, which the stable sort only merges.
        rows.sort_by_key(|r| r.string);
        rows
    }
}

impl ContentVisitor for StringPass<'_> {
    const OBJECT_ARRAYS: bool = false;
    const PRIMITIVE_ARRAYS: bool = false;

    fn classes(&self) -> Option<Vec<ClassIdx>> {
        Some(self.shape.iter().map(|s| s.class).collect())
    }

    fn instance(&mut self, object: ObjIdx, class: ClassIdx, fields: &[u8]) {
        let Some(shape) = self.shape.filter(|s| s.class == class) else {
            return;
        };
        let ids = self.heap.id_size();
        let array = shape.value.id(fields, ids);
        if let Some(array) = self.heap.find(array)
            && self.arrays.has(array)
            && self.scope.has(&self.columns, object)
        {
            let coder = shape.coder.map_or(0, |c| c.bits(fields, ids) as i8);
            self.rows.push(StringRow {
                string: object,
                array,
                coder,
            });
        }
    }
}

/// The arrays that strings own.
fn arrays_of(heap: &Heap, rows: &[StringRow]) -> ObjectSet {
    ObjectSet::new(heap.len(), rows.iter().map(|r| r.array))
}

/// A string with its array and the hash of its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text {
    pub(crate) string: ObjIdx,
    /// [`NO_ARRAY`] if there is none.
    pub(crate) array: ObjIdx,
    pub(crate) hash: u64,
}

/// Stands for a missing array.
pub(crate) const NO_ARRAY: ObjIdx = ObjIdx(u64::MAX);

/// Stands for the hash of an array that is read later.
const LATER: u64 = 1;
/// Longer arrays are only read if a string owns them: most are files and buffers.
const LONG: usize = 1 << 16;

/// A visitor that hashes each array of bytes or chars, whether or not a string owns it: that is not known before the
/// walk ends. Used in one walk with [`StringPass`], or, for a part of the hashes, in a walk before that.
pub(crate) struct HashPass {
    part: Part,
    found: Vec<(ObjIdx, u64)>,
}

/// The arrays of bytes and chars with the hash of each.
pub(crate) struct Hashes {
    part: Part,
    pub(crate) arrays: ObjectSet,
    /// By number in the set.
    hashes: Vec<u64>,
}

impl HashPass {
    pub(crate) fn new(part: Part) -> HashPass {
        HashPass {
            part,
            found: Vec::new(),
        }
    }

    /// What all workers found.
    pub(crate) fn finish(heap: &Heap, part: Part, passes: Vec<HashPass>) -> Hashes {
        let found = chained(passes.into_iter().map(|p| p.found));
        let arrays = ObjectSet::new(heap.len(), found.iter().map(|f| f.0));
        let mut hashes = vec![0; arrays.len()];
        for (array, hash) in found {
            if let Some(rank) = arrays.rank(array) {
                hashes[rank] = hash;
            }
        }
        Hashes {
            part,
            arrays,
            hashes,
        }
    }
}

impl Hashes {
    /// The strings whose arrays have data, in their order, with the hashes of their texts.
    pub(crate) fn texts(
        mut self,
        heap: &Heap,
        rows: Vec<StringRow>,
        control: &Control<'_>,
    ) -> Result<Vec<Text>, HeapError> {
        for row in &rows {
            let rank = self.arrays.rank(row.array);
            if let Some(rank) = rank.filter(|r| self.hashes[*r] == LATER) {
                control.check()?;
                if let ObjectView::PrimitiveArray { data, .. } = heap.object(row.array)? {
                    self.hashes[rank] = hash_of_text(data);
                }
            }
        }
        let text = |row: StringRow| {
            let hash = self.hashes[self.arrays.rank(row.array)?];
            let wide = u64::from(row.coder == 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.part.has(hash).then_some(Text {
                string: row.string,
                array: row.array,
                hash: hash ^ wide,
            })
        };
        // Rows and texts have the same size, so the texts reuse the memory of the rows.
        Ok(rows.into_iter().filter_map(text).collect())
    }
}

fn hash_of_text(data: &[u8]) -> u64 {
    content_hash(0, data).max(LATER + 1)
}

impl ContentVisitor for HashPass {
    const INSTANCES: bool = false;
    const OBJECT_ARRAYS: bool = false;

    fn primitive_array(&mut self, object: ObjIdx, element: BasicType, len: u32, data: &[u8]) {
        if matches!(element, BasicType::Byte | BasicType::Char) && data.is_empty() == (len == 0) {
            let hash = match data.len() {
                0..=LONG => hash_of_text(data),
                _ => LATER,
            };
            if hash == LATER || self.part.has(hash) {
                self.found.push((object, hash));
            }
        }
    }
}

/// The second walk of a search: the arrays whose text matches.
struct MatchPass<'a> {
    arrays: &'a ObjectSet,
    /// Per array of the set: whether a string reads it as UTF16.
    wide: &'a [bool],
    pattern: Matcher,
    found: Vec<usize>,
}

impl ContentVisitor for MatchPass<'_> {
    const INSTANCES: bool = false;
    const OBJECT_ARRAYS: bool = false;

    fn primitive_array(&mut self, object: ObjIdx, element: BasicType, len: u32, data: &[u8]) {
        if let Some(rank) = self.arrays.rank(object)
            && data.is_empty() == (len == 0)
            && self
                .pattern
                .is_match(element, Some(i8::from(self.wide[rank])), data)
        {
            self.found.push(rank);
        }
    }
}

/// Per string, whether its text matches.
pub(crate) fn matching(
    heap: &Heap,
    rows: &[StringRow],
    pattern: &Regex,
    control: &Control<'_>,
) -> Result<Vec<bool>, HeapError> {
    let arrays = arrays_of(heap, rows);
    let mut wide = vec![false; arrays.len()];
    for row in rows.iter().filter(|r| r.coder == 1) {
        if let Some(rank) = arrays.rank(row.array) {
            wide[rank] = true;
        }
    }
    let passes = heap.walk_contents("texts", control, || MatchPass {
        arrays: &arrays,
        wide: &wide,
        pattern: Matcher::new(pattern),
        found: Vec::new(),
    })?;
    let mut matched = vec![false; arrays.len()];
    for rank in passes.into_iter().flat_map(|p| p.found) {
        matched[rank] = true;
    }
    let is_match = |r: &StringRow| arrays.rank(r.array).is_some_and(|rank| matched[rank]);
    Ok(rows.iter().map(is_match).collect())
}
