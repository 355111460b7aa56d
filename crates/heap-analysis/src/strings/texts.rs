//! All strings with the hashes of their texts, in two walks over the contents: the strings first, then the arrays that
//! they own. 24 bytes per string and 8 per array.

use crate::objects::fields::class_named;
use crate::sets::object_set::{ObjectSet, Place, chained, content_hash, counts};
use heap_graph::{ClassIdx, Columns, ContentVisitor, Heap, ObjIdx, string_text};
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

/// The first walk.
pub(crate) struct StringPass<'h> {
    heap: &'h Heap,
    columns: Columns<'h>,
    shape: Option<StringShape>,
    all: bool,
    rows: Vec<StringRow>,
}

impl<'h> StringPass<'h> {
    pub(crate) fn new(heap: &'h Heap, shape: Option<StringShape>, all: bool) -> StringPass<'h> {
        StringPass {
            heap,
            columns: heap.columns(),
            shape,
            all,
            rows: Vec::new(),
        }
    }

    /// The strings of all workers, by object.
    pub(crate) fn finish(passes: Vec<StringPass<'h>>) -> Vec<StringRow> {
        let mut rows = chained(passes.into_iter().map(|p| p.rows));
        rows.sort_unstable_by_key(|r| r.string);
        rows
    }
}

impl ContentVisitor for StringPass<'_> {
    const OBJECT_ARRAYS: bool = false;
    const PRIMITIVE_ARRAYS: bool = false;

    fn instance(&mut self, object: ObjIdx, class: ClassIdx, fields: &[u8]) {
        let Some(shape) = self.shape.filter(|s| s.class == class) else {
            return;
        };
        let ids = self.heap.id_size();
        let array = shape.value.id(fields, ids);
        if let Some(array) = self.heap.find(array)
            && counts(&self.columns, self.all, object)
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
pub(crate) fn arrays_of(heap: &Heap, rows: &[StringRow]) -> ObjectSet {
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
/// The hash of an array whose data is not in the dump.
const NO_DATA: u64 = 0;

/// The second walk: a hash for each array that a string owns.
pub(crate) struct HashPass<'a> {
    arrays: &'a ObjectSet,
    found: Vec<(usize, u64)>,
}

impl<'a> HashPass<'a> {
    pub(crate) fn new(arrays: &'a ObjectSet) -> HashPass<'a> {
        HashPass {
            arrays,
            found: Vec::new(),
        }
    }

    /// The strings whose arrays have data, in their order, with the hashes of their texts.
    pub(crate) fn finish(
        passes: Vec<HashPass<'a>>,
        arrays: &ObjectSet,
        rows: Vec<StringRow>,
    ) -> Vec<Text> {
        let mut hashes = vec![NO_DATA; arrays.len()];
        for (rank, hash) in passes.into_iter().flat_map(|p| p.found) {
            hashes[rank] = hash;
        }
        let hash_of = |r: &StringRow| {
            let hash = hashes[arrays.rank(r.array)?];
            let wide = u64::from(r.coder == 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (hash != NO_DATA).then_some(hash ^ wide)
        };
        let text = |row: StringRow| {
            Some(Text {
                string: row.string,
                array: row.array,
                hash: hash_of(&row)?,
            })
        };
        // Rows and texts have the same size, so the texts reuse the memory of the rows.
        rows.into_iter().filter_map(text).collect()
    }
}

impl ContentVisitor for HashPass<'_> {
    const INSTANCES: bool = false;
    const OBJECT_ARRAYS: bool = false;

    fn primitive_array(&mut self, object: ObjIdx, element: BasicType, len: u32, data: &[u8]) {
        if let Some(rank) = self.arrays.rank(object)
            && matches!(element, BasicType::Byte | BasicType::Char)
            && data.is_empty() == (len == 0)
        {
            self.found
                .push((rank, content_hash(0, data).max(NO_DATA + 1)));
        }
    }
}

/// The second walk of a search: the arrays whose text matches.
struct MatchPass<'a> {
    arrays: &'a ObjectSet,
    /// Per array of the set: whether a string reads it as UTF16.
    wide: &'a [bool],
    pattern: Regex,
    found: Vec<usize>,
}

impl ContentVisitor for MatchPass<'_> {
    const INSTANCES: bool = false;
    const OBJECT_ARRAYS: bool = false;

    fn primitive_array(&mut self, object: ObjIdx, element: BasicType, len: u32, data: &[u8]) {
        if let Some(rank) = self.arrays.rank(object)
            && data.is_empty() == (len == 0)
            && let Some(text) = string_text(element, Some(i8::from(self.wide[rank])), data)
            && self.pattern.is_match(&text)
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
    control: &heap_graph::Control<'_>,
) -> Result<Vec<bool>, heap_graph::HeapError> {
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
        // Each clone has its own scratch space, so that workers do not wait for each other.
        pattern: pattern.clone(),
        found: Vec::new(),
    })?;
    let mut matched = vec![false; arrays.len()];
    for rank in passes.into_iter().flat_map(|p| p.found) {
        matched[rank] = true;
    }
    let is_match = |r: &StringRow| arrays.rank(r.array).is_some_and(|rank| matched[rank]);
    Ok(rows.iter().map(is_match).collect())
}
