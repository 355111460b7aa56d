//! How full collections are: for each class the sizes, the used share of the backing array, empty collections,
//! collisions, and what trimming would free. The table of [`collection_table`] defines which classes are collections.
//! Two walks over the contents; about 30 bytes per collection.
//!
//! Definitions, for one collection with backing array `a` of length n and `size` elements:
//! * *fill* is `size * slots / n`, at most 1; collections without an array or with n = 0 have none;
//! * *needed* is the shortest array that the table allows for `size` elements;
//! * *unused bytes* are the shallow size of `a` minus that of an array of length needed, when needed < n; an empty
//!   collection has none, because all of it is *empty bytes*. An array that several collections share counts for the
//!   first of them;
//! * *collided* are the entries of a chained table that are not the first of their bucket: `size` minus the buckets in
//!   use;
//! * a collection that another one wraps (the HashMap of a HashSet) is counted in its wrapper's row
//!   and has none of its own; a wrapper of an object that the table does not know is omitted.

use crate::collections::table::{CollectionKind, Shape, Size, shapes};
use crate::objects::describe::Address;
use crate::objects::fields::{elements, field_int};
use crate::sets::object_set::{ObjectSet, chained};
use crate::sets::scope::Scope;
use crate::strings::holders::element_ids;
use crate::tables::ranking::cut;
use heap_graph::{ClassIdx, Columns, ContentVisitor, Control, Heap, HeapError, ObjIdx};
use hprof::{BasicType, Bytes};
use serde::Serialize;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicU64, Ordering};

/// What to examine.
#[derive(Clone, Debug, Default)]
pub struct CollectionOptions {
    /// The collections that count.
    pub scope: Scope,
    /// The most rows.
    pub top: Option<usize>,
}

/// Upper bounds of the size classes; the last class is open.
pub const SIZE_BOUNDS: [u64; 9] = [0, 1, 4, 8, 16, 64, 256, 1024, 16384];

/// The collections of one class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CollectionRow {
    /// The class.
    pub class: String,
    /// The kind of collection.
    pub kind: CollectionKind,
    /// Number of collections.
    pub objects: u64,
    /// Their bytes, including backing arrays and wrapped collections.
    pub bytes: Bytes,
    /// Elements in all of them.
    pub elements: u64,
    /// Number of collections without elements.
    pub empty: u64,
    /// Bytes of collections without elements.
    pub empty_bytes: Bytes,
    /// Number of collections with one element.
    pub single: u64,
    /// Bytes that collections with one element use beyond an array with one slot.
    pub single_bytes: Bytes,
    /// Number of collections by number of elements: 0, at most 1, 4, 8, 16, 64, 256, 1024, 16384, and more.
    pub sizes: [u64; 10],
    /// Number of collections by the share of their array that elements use: at most 20, 40, 60, 80 and 100 %.
    /// Collections without an array, or with an empty one, are left out.
    pub fill: [u64; 5],
    /// Bytes that would be saved if each array were no larger than its elements need; empty collections are not counted
    /// here.
    pub unused: Bytes,
    /// Number of entries that are not the first in their bucket of a hash table.
    pub collided: u64,
    /// Id of the collection with the most elements.
    pub largest: Address,
    /// Number of its elements.
    pub largest_size: u64,
}

/// All collections by class, those with the most bytes in unused slots and empty collections first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Collections {
    /// The set whose collections were examined; absent if it was the whole heap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// Number of collections.
    pub objects: u64,
    /// Their bytes, including backing arrays and wrapped collections.
    pub bytes: Bytes,
    /// Number of elements in all of them.
    pub elements: u64,
    /// Number of empty collections.
    pub empty: u64,
    /// Bytes of empty collections.
    pub empty_bytes: Bytes,
    /// Number of collections with one element.
    pub single: u64,
    /// Bytes that collections with one element use beyond an array with one slot.
    pub single_bytes: Bytes,
    /// Bytes that would be saved if each array were no larger than its elements need; empty collections are not counted
    /// here.
    pub unused: Bytes,
    /// A row for each class of collections.
    pub rows: Vec<CollectionRow>,
    /// Number of rows that were left out.
    pub omitted_rows: u64,
}

/// Examines all collections.
pub fn collections(
    heap: &Heap,
    options: &CollectionOptions,
    control: &Control<'_>,
) -> Result<Collections, HeapError> {
    let shapes = shapes(heap);
    heap.require_memory("the table of collections", memory_for(heap, &shapes))?;
    let new = || FindPass::new(heap, &shapes, &options.scope);
    let found = FindPass::finish(heap.walk_contents("collections", control, new)?);
    let arrays = arrays_of(heap, &found);
    let fills = Fills::new(&arrays);
    heap.walk_contents("arrays", control, || FillPass::new(heap, &arrays, &fills))?;
    let found = Summing::new(heap, &shapes, &found, &arrays, &fills).sum(options.top, |_| {});
    Ok(Collections {
        set: options.scope.set(),
        ..found
    })
}

/// Bytes that counting the collections takes.
pub(crate) fn memory_for(heap: &Heap, shapes: &[Option<Shape>]) -> u64 {
    // First the list and what a worker appends to it, then the list, the fill of the array and whether it is owned.
    const EACH: u64 = (size_of::<Found>() + 10) as u64;
    let classes = heap.classes().iter().zip(shapes);
    let collections = classes.filter(|c| c.1.is_some()).map(|c| c.0.objects);
    2 * ObjectSet::bytes(heap.len()) + EACH * collections.sum::<u64>()
}

/// A collection as the first walk finds it. Object numbers have 40 bits.
#[derive(Clone, Copy, Debug)]
#[repr(C, packed(2))]
pub(crate) struct Found {
    object_low: u32,
    holds_low: u32,
    object_high: u8,
    holds_high: u8,
    /// The value of the size field; -1 when the size comes from another source.
    size: i64,
}

/// Stands for a collection that holds nothing.
const NOTHING: u64 = (1 << 40) - 1;

impl Found {
    fn new(object: ObjIdx, holds: Option<ObjIdx>, size: i64) -> Found {
        let holds = holds.map_or(NOTHING, |object| object.0);
        Found {
            object_low: object.0 as u32,
            holds_low: holds as u32,
            object_high: (object.0 >> 32) as u8,
            holds_high: (holds >> 32) as u8,
            size,
        }
    }

    /// The collection.
    #[inline]
    pub(crate) fn object(&self) -> ObjIdx {
        ObjIdx(u64::from(self.object_high) << 32 | u64::from(self.object_low))
    }

    /// The backing array, or the wrapped collection.
    #[inline]
    pub(crate) fn holds(&self) -> Option<ObjIdx> {
        let holds = u64::from(self.holds_high) << 32 | u64::from(self.holds_low);
        (holds != NOTHING).then_some(ObjIdx(holds))
    }
}

/// The first walk.
pub(crate) struct FindPass<'a> {
    heap: &'a Heap,
    columns: Columns<'a>,
    shapes: &'a [Option<Shape>],
    scope: &'a Scope,
    found: Vec<Found>,
}

impl<'a> FindPass<'a> {
    pub(crate) fn new(
        heap: &'a Heap,
        shapes: &'a [Option<Shape>],
        scope: &'a Scope,
    ) -> FindPass<'a> {
        FindPass {
            heap,
            columns: heap.columns(),
            shapes,
            scope,
            found: Vec::new(),
        }
    }

    /// The collections of all workers, by object.
    pub(crate) fn finish(passes: Vec<FindPass<'a>>) -> Vec<Found> {
        let limited = passes.iter().any(|pass| pass.heap.memory().is_some());
        let mut found = chained(passes.into_iter().map(|p| p.found));
        match limited {
            // Without memory for a copy of the list.
            true => found.sort_unstable_by_key(Found::object),
            // The lists consist of long ascending runs, which the stable sort only merges.
            false => found.sort_by_key(Found::object),
        }
        found
    }
}

impl ContentVisitor for FindPass<'_> {
    const OBJECT_ARRAYS: bool = false;
    const PRIMITIVE_ARRAYS: bool = false;

    fn classes(&self) -> Option<Vec<ClassIdx>> {
        let shapes = self.shapes.iter().zip((0..).map(ClassIdx));
        Some(
            shapes
                .filter(|(s, _)| s.is_some())
                .map(|(_, c)| c)
                .collect(),
        )
    }

    fn instance(&mut self, object: ObjIdx, class: ClassIdx, fields: &[u8]) {
        let Some(shape) = &self.shapes[class.0 as usize] else {
            return;
        };
        if !self.scope.has(&self.columns, object) {
            return;
        }
        let ids = self.heap.id_size();
        let size = match shape.size {
            Some(Size::Field(place)) => place.int(fields, ids),
            Some(Size::Counter(place)) => {
                let counter = self.heap.find(place.id(fields, ids));
                let value = counter.and_then(|counter| field_int(self.heap, counter, "value"));
                value.unwrap_or(0)
            }
            _ => -1,
        };
        let cells = shape.cells.map(|c| c.id(fields, ids));
        let cells = cells.and_then(|id| self.heap.find(id));
        let more: i64 = cells.map_or(0, |array| {
            let values = elements(self.heap, array).into_iter();
            values
                .filter_map(|cell| field_int(self.heap, cell, "value"))
                .fold(0, i64::wrapping_add)
        });
        let holds = shape.array.or(shape.inner).map(|p| p.id(fields, ids));
        let holds = holds.and_then(|id| self.heap.find(id));
        let size = size.saturating_add(more);
        self.found.push(Found::new(object, holds, size));
    }
}

/// The arrays (and wrapped collections) that collections hold.
pub(crate) fn arrays_of(heap: &Heap, found: &[Found]) -> ObjectSet {
    ObjectSet::new(heap.len(), found.iter().filter_map(Found::holds))
}

/// Length of an array and elements that are not null; all elements of a primitive array.
type Fill = (u32, u32);

/// The fills of arrays, by number in a set; workers share it.
pub(crate) struct Fills(Vec<AtomicU64>);

impl Fills {
    /// Stands for an object that is not an array: no array has so many elements in use and none in all.
    const NONE: u64 = u32::MAX as u64;

    pub(crate) fn new(arrays: &ObjectSet) -> Fills {
        Fills(
            (0..arrays.len())
                .map(|_| AtomicU64::new(Fills::NONE))
                .collect(),
        )
    }

    fn set(&self, rank: usize, (len, used): Fill) {
        let fill = u64::from(len) << 32 | u64::from(used);
        self.0[rank].store(fill, Ordering::Relaxed);
    }

    /// `None` for an object that is not an array.
    fn get(&self, rank: usize) -> Option<Fill> {
        let fill = self.0[rank].load(Ordering::Relaxed);
        (fill != Fills::NONE).then_some(((fill >> 32) as u32, fill as u32))
    }
}

/// The second walk.
pub(crate) struct FillPass<'a> {
    heap: &'a Heap,
    arrays: &'a ObjectSet,
    fills: &'a Fills,
}

impl<'a> FillPass<'a> {
    pub(crate) fn new(heap: &'a Heap, arrays: &'a ObjectSet, fills: &'a Fills) -> FillPass<'a> {
        FillPass {
            heap,
            arrays,
            fills,
        }
    }
}

impl ContentVisitor for FillPass<'_> {
    const INSTANCES: bool = false;

    fn object_array(&mut self, object: ObjIdx, _: ClassIdx, elements: &[u8]) {
        if let Some(rank) = self.arrays.rank(object) {
            let ids = element_ids(elements, self.heap.id_size());
            let used = ids.filter(|id| !id.is_null()).count() as u32;
            let len = (elements.len() / self.heap.id_size().bytes()) as u32;
            self.fills.set(rank, (len, used));
        }
    }

    fn primitive_array(&mut self, object: ObjIdx, _: BasicType, len: u32, _: &[u8]) {
        if let Some(rank) = self.arrays.rank(object) {
            self.fills.set(rank, (len, len));
        }
    }
}

/// The sizes of one collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Filled {
    size: u64,
    /// Bytes of the object, its array and the collection that it wraps.
    bytes: u64,
    /// Length of the array; `None` without one.
    len: Option<u32>,
    /// Slots of the array that the elements take.
    taken: u64,
    unused: u64,
    collided: u64,
}

/// A collection as a row counts it, with the collection that it wraps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FullCollection {
    pub(crate) object: ObjIdx,
    pub(crate) size: u64,
    /// Bytes, with its array and the collection that it wraps.
    pub(crate) bytes: u64,
    /// See [`CollectionRow::single_bytes`].
    pub(crate) single_bytes: u64,
    /// See [`CollectionRow::unused`].
    pub(crate) unused: u64,
}

/// Adds the collections up.
pub(crate) struct Summing<'a> {
    heap: &'a Heap,
    columns: Columns<'a>,
    shapes: &'a [Option<Shape>],
    found: &'a [Found],
    arrays: &'a ObjectSet,
    fills: &'a Fills,
    /// By number of the collection: whether its array counts for it, not for one before it.
    owns: Vec<bool>,
}

impl<'a> Summing<'a> {
    pub(crate) fn new(
        heap: &'a Heap,
        shapes: &'a [Option<Shape>],
        found: &'a [Found],
        arrays: &'a ObjectSet,
        fills: &'a Fills,
    ) -> Summing<'a> {
        let mut taken = vec![false; arrays.len()];
        let owns = found.iter().map(|f| {
            let rank = f.holds().and_then(|a| arrays.rank(a));
            rank.is_some_and(|r| !std::mem::replace(&mut taken[r], true))
        });
        Summing {
            owns: owns.collect(),
            columns: heap.columns(),
            heap,
            shapes,
            found,
            arrays,
            fills,
        }
    }

    /// The sizes of a collection, given by its number.
    fn filled(&self, number: usize) -> Filled {
        let found = &self.found[number];
        let Some(shape) = &self.shapes[self.class_of(found).0 as usize] else {
            return Filled::default();
        };
        let rank = found.holds().and_then(|a| self.arrays.rank(a));
        let fill = rank.and_then(|r| self.fills.get(r));
        let array = found
            .holds()
            .filter(|_| self.owns[number] && fill.is_some());
        let array_bytes = array.map_or(0, |a| self.heap.shallow(a).0);
        let (len, used) = fill.unwrap_or((0, 0));
        let size = match shape.size {
            Some(Size::Elements) => u64::from(used / shape.slots),
            Some(Size::Length) => u64::from(len / shape.slots),
            _ => u64::try_from(found.size).unwrap_or(0),
        };
        let needed = shape.needed(size);
        let unused = match array {
            Some(a) if size > 0 && needed < u64::from(len) => {
                let element = self.heap.class(self.heap.class_of(a)).element;
                let element = element.unwrap_or(BasicType::Object);
                let trimmed = self.heap.array_bytes(element, needed as u32).0;
                self.heap.shallow(a).0.saturating_sub(trimmed)
            }
            _ => 0,
        };
        let collided = if shape.chained && fill.is_some() {
            size.saturating_sub(u64::from(used))
        } else {
            0
        };
        Filled {
            size,
            bytes: self.columns.shallow(found.object()).0 + array_bytes,
            len: fill.map(|f| f.0),
            taken: size.saturating_mul(u64::from(shape.slots)),
            unused,
            collided,
        }
    }

    fn class_of(&self, found: &Found) -> ClassIdx {
        self.columns.class_of(found.object())
    }

    /// The answer; `each` is called with every collection that a row counts.
    pub(crate) fn sum(
        &self,
        top: Option<usize>,
        mut each: impl FnMut(&FullCollection),
    ) -> Collections {
        let least = self.heap.array_bytes(BasicType::Object, 1).0;
        let found = self.found;
        let wrappers = found.iter().filter(|f| self.is_wrapper(self.class_of(f)));
        let wrapped = ObjectSet::new(self.heap.len(), wrappers.filter_map(Found::holds));
        let mut reported = vec![false; wrapped.len()];
        let mut by_class: Vec<Option<CollectionRow>> = vec![None; self.heap.classes().len()];
        for (number, f) in found.iter().enumerate() {
            if wrapped.rank(f.object()).is_some() {
                continue;
            }
            let class = self.class_of(f);
            let mut filled = self.filled(number);
            let (mut innermost, mut inner_class) = (f, class);
            // Wrappers can wrap wrappers; no real chain is longer.
            for _ in 0..8 {
                if !self.is_wrapper(inner_class) {
                    break;
                }
                let inside = innermost.holds().unwrap_or(ObjIdx(u64::MAX));
                let Ok(at) = found.binary_search_by_key(&inside, Found::object) else {
                    break;
                };
                let fresh = wrapped
                    .rank(inside)
                    .is_some_and(|r| !std::mem::replace(&mut reported[r], true));
                filled = merged(&filled, &self.filled(at), fresh);
                innermost = &found[at];
                inner_class = self.class_of(innermost);
            }
            if self.is_wrapper(inner_class) {
                continue;
            }
            let row = by_class[class.0 as usize].get_or_insert_with(|| self.empty_row(class, f));
            let single = if filled.size == 1 { filled.bytes } else { 0 };
            let reported = FullCollection {
                object: f.object(),
                size: filled.size,
                bytes: filled.bytes,
                single_bytes: single.saturating_sub(least),
                unused: filled.unused,
            };
            each(&reported);
            row.single_bytes.0 += reported.single_bytes;
            add(row, f, &filled, self.heap);
        }
        sorted(by_class.into_iter().flatten().collect(), top)
    }

    fn is_wrapper(&self, class: ClassIdx) -> bool {
        let shape = self.shapes[class.0 as usize].as_ref();
        shape.is_some_and(|s| s.inner.is_some())
    }

    fn empty_row(&self, class: ClassIdx, found: &Found) -> CollectionRow {
        let kind = self.shapes[class.0 as usize].as_ref();
        CollectionRow {
            class: self.heap.class(class).name.clone(),
            kind: kind.map_or(CollectionKind::Other, |s| s.kind),
            objects: 0,
            bytes: Bytes(0),
            elements: 0,
            empty: 0,
            empty_bytes: Bytes(0),
            single: 0,
            single_bytes: Bytes(0),
            sizes: [0; 10],
            fill: [0; 5],
            unused: Bytes(0),
            collided: 0,
            largest: Address(self.heap.id(found.object())),
            largest_size: 0,
        }
    }
}

/// A wrapper with the collection that it wraps, whose bytes count only once.
fn merged(outer: &Filled, inner: &Filled, fresh: bool) -> Filled {
    if fresh {
        Filled {
            bytes: outer.bytes + inner.bytes,
            ..*inner
        }
    } else {
        Filled {
            bytes: outer.bytes,
            unused: 0,
            ..*inner
        }
    }
}

fn add(row: &mut CollectionRow, found: &Found, filled: &Filled, heap: &Heap) {
    row.objects += 1;
    row.bytes.0 += filled.bytes;
    row.elements = row.elements.saturating_add(filled.size);
    if filled.size == 0 {
        row.empty += 1;
        row.empty_bytes.0 += filled.bytes;
    }
    row.single += u64::from(filled.size == 1);
    let class = SIZE_BOUNDS.partition_point(|b| *b < filled.size);
    row.sizes[class] += 1;
    if let Some(len) = filled.len.filter(|l| *l > 0) {
        // The first bucket is 20 % and below, and so on; exact integers, no rounding.
        let taken = filled.taken.min(u64::from(len));
        let segment = (taken * 5).div_ceil(u64::from(len)).clamp(1, 5);
        row.fill[segment as usize - 1] += 1;
    }
    row.unused.0 += filled.unused;
    // A damaged dump may have any size.
    row.collided = row.collided.saturating_add(filled.collided);
    if filled.size > row.largest_size {
        row.largest = Address(heap.id(found.object()));
        row.largest_size = filled.size;
    }
}

fn sorted(mut rows: Vec<CollectionRow>, top: Option<usize>) -> Collections {
    // Classes with the same name (several loaders) have separate rows, like the rows of a histogram.
    rows.sort_by(|a, b| {
        let key = |r: &CollectionRow| (Reverse(r.unused.0 + r.empty_bytes.0), Reverse(r.bytes));
        (key(a), &a.class, a.largest).cmp(&(key(b), &b.class, b.largest))
    });
    let sum = |f: fn(&CollectionRow) -> u64| rows.iter().map(f).fold(0, u64::saturating_add);
    let mut answer = Collections {
        set: None,
        objects: sum(|r| r.objects),
        bytes: Bytes(sum(|r| r.bytes.0)),
        elements: sum(|r| r.elements),
        empty: sum(|r| r.empty),
        empty_bytes: Bytes(sum(|r| r.empty_bytes.0)),
        single: sum(|r| r.single),
        single_bytes: Bytes(sum(|r| r.single_bytes.0)),
        unused: Bytes(sum(|r| r.unused.0)),
        rows: Vec::new(),
        omitted_rows: 0,
    };
    answer.omitted_rows = cut(&mut rows, top);
    answer.rows = rows;
    answer
}
