//! Memory that the program could save: equal strings, arrays and objects, collections with unused capacity, boxed
//! numbers, fields that are never set, arrays of zeros, weak maps that never free their entries, references and native
//! buffers.
//!
//! Three walks over the contents of the heap (contents; equal objects; their holders) plus one bit-set look-up per
//! object. Memory: two bytes per object for the sketch of hashes, 16 to 40 bytes for each string, collection,
//! reference and suspected copy; a memory limit that is too small for that is refused.
//!
//! The kinds overlap (an array of zeros can be a copy of another one), so their sum is no total.

mod boxed_fields;
mod census;
mod contents;
mod equal;
mod native;
mod plan;
mod references;
mod sites;

pub use boxed_fields::BoxedField;
pub use census::{BoxedRow, ZeroField};
pub use contents::{ArrayContents, ObjectArrays};
pub use equal::{EqualRow, Equals};
pub use native::{Buffer, BufferOrigin, NativeMemory};
pub use references::{ReferenceRow, References, WeakMapRow, WeakMaps};
pub use sites::WasteSite;

use crate::collections::stats::{self as stats, Collections, FillPass, Fills, FindPass, Summing};
use crate::collections::table::{Shape, shapes};
use crate::sets::object_set::{Both, ObjectSet, chained, unzip};
use crate::sets::part::{Only, Part};
use crate::sets::scope::Scope;
use crate::strings::holders::{Owners, Question, Wanted, holders};
use crate::strings::texts::{HashPass, StringPass, StringShape, Text};
use crate::strings::{Duplicates, Groups, Holder, memory_of_texts, shared_texts};
use boxed_fields::{BoxedPass, FieldPlan};
use census::Census;
use equal::{EqualPass, MarkPass, Sketch};
use heap_graph::{Control, Heap, HeapError, ObjIdx};
use hprof::Bytes;
use plan::Plan;
use serde::Serialize;
use sites::Sites;
use std::cmp::Reverse;

/// What to examine.
#[derive(Clone, Debug)]
pub struct WasteOptions {
    /// The objects that count.
    pub scope: Scope,
    /// The most rows per table.
    pub top: Option<usize>,
    /// Name the fields that hold the copies (the third walk).
    pub holders: bool,
    /// Report what each allocating stack wastes.
    pub sites: bool,
}

impl Default for WasteOptions {
    fn default() -> Self {
        WasteOptions {
            scope: Scope::default(),
            top: Some(20),
            holders: true,
            sites: false,
        }
    }
}

/// One kind of waste.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WasteKind {
    /// Name of the kind, which is the name of a field of [`Waste`].
    pub kind: &'static str,
    /// Number of objects that waste memory in this way; for fields, number of instances.
    pub objects: u64,
    /// Bytes that the program could save.
    pub wasted: Bytes,
}

/// Memory that the program could save, by kind.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Waste {
    /// The set whose objects were examined; absent if it was the whole heap.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// Sum of the shallow sizes of the objects that were examined.
    pub shallow: Bytes,
    /// All kinds, those with the largest savings first.
    pub kinds: Vec<WasteKind>,
    /// Fields that hold copies of strings, arrays and objects, with the bytes that these copies waste.
    pub holders: Vec<Holder>,
    /// Strings that occur more than once.
    pub strings: Duplicates,
    /// Equal arrays, of primitives and of references, without the arrays of strings.
    pub arrays: Equals,
    /// Objects of the same class whose fields are equal.
    pub objects: Equals,
    /// Collections by class.
    pub collections: Collections,
    /// Boxed primitives by class.
    pub boxed: Vec<BoxedRow>,
    /// Fields that hold a boxed primitive in every instance.
    pub boxed_fields: Vec<BoxedField>,
    /// Waste by class and allocation stack; empty unless it was requested.
    pub sites: Vec<WasteSite>,
    /// Instance fields that are null or zero in every instance.
    pub zero_fields: Vec<ZeroField>,
    /// Number of fields in `zero_fields` that were left out.
    pub omitted_fields: u64,
    /// Contents of primitive arrays by type.
    pub contents: Vec<ArrayContents>,
    /// Contents of arrays of references.
    pub object_arrays: ObjectArrays,
    /// Soft, weak, phantom and final references.
    pub references: References,
    /// Maps with weak keys whose values refer to their own keys, so that the entries are never freed.
    pub weak_maps: WeakMaps,
    /// Direct buffers and their native memory.
    pub native: NativeMemory,
}

/// What the memory limit is compared with.
const WHAT: &str = "the search for waste";

/// Bytes of what the first walk collects, without the sketch.
fn memory_for(heap: &Heap, plan: &Plan, shapes: &[Option<Shape>]) -> u64 {
    let classes = || heap.classes().iter();
    let boxes = classes().zip(&plan.roles).filter(|c| c.1.boxed.is_some());
    let boxes: u64 = boxes.map(|c| c.0.objects).sum();
    let values = boxes * 2 * size_of::<(u64, ObjIdx)>() as u64;
    stats::memory_for(heap, shapes) + memory_of_texts(heap) + values
}

/// Bytes of what the second walk collects beside what the first one has collected.
fn memory_of_second(heap: &Heap, sketch: &Sketch) -> u64 {
    2 * ObjectSet::bytes(heap.len()) + sketch.list_bytes()
}

/// Checks that what the first walk collects stays within the memory limit.
///
/// # Errors
/// With a limit that is sufficient for the second walk, too. Candidates are counted for it, which takes a walk.
fn require_first(
    heap: &Heap,
    (plan, scope): (&Plan, &Scope),
    first: u64,
    control: &Control<'_>,
) -> Result<(), HeapError> {
    if heap.memory().is_none_or(|left| first <= left) {
        return Ok(());
    }
    let sketch = Sketch::new(heap.len(), heap.memory());
    let new = || MarkPass::new(heap, plan, &sketch, scope);
    MarkPass::finish(heap.walk_contents("objects", control, new)?);
    let both = first + memory_of_second(heap, &sketch);
    drop(sketch);
    heap.require_memory(WHAT, both + Sketch::bytes_beside(heap.len(), both))
}

/// Checks that what the second walk collects stays within the memory limit.
///
/// # Errors
/// With a limit that is sufficient for the larger sketch which that limit leads to.
fn require_second(heap: &Heap, sketch: &Sketch, first: u64) -> Result<(), HeapError> {
    let second = memory_of_second(heap, sketch);
    if heap.memory().is_none_or(|left| second <= left) {
        return Ok(());
    }
    let larger = Sketch::bytes_beside(heap.len(), first + second);
    heap.require_memory(WHAT, second + larger.saturating_sub(sketch.bytes()))
}

/// The first walk: the texts of strings, the collections, and sums by class. The sketch gets what may be equal.
fn first_walk(
    heap: &Heap,
    scope: &Scope,
    (plan, shapes, sketch): (&Plan, &[Option<Shape>], &Sketch),
    control: &Control<'_>,
) -> Result<(Vec<Text>, Vec<stats::Found>, census::Sum), HeapError> {
    let shape = StringShape::of(heap);
    let walked = heap.walk_contents("objects", control, || {
        let strings = StringPass::new(heap, shape, scope, Only::Part(Part::ALL));
        let strings = Both(strings, HashPass::new(Part::ALL));
        let collections = FindPass::new(heap, shapes, scope);
        let census = Census::new(heap, plan, scope);
        let marks = MarkPass::new(heap, plan, sketch, scope);
        Both(strings, Both(collections, Both(census, marks)))
    })?;
    let (strings, walked) = unzip(walked);
    let (found, walked) = unzip(walked);
    let (census, marks) = unzip(walked);
    MarkPass::finish(marks);
    let (strings, hashes) = unzip(strings);
    let texts = match shape {
        Some(_) => {
            let hashes = HashPass::finish(heap, Part::ALL, hashes);
            hashes.texts(heap, StringPass::finish(strings), control)?
        }
        None => shared_texts(heap, scope),
    };
    let found = FindPass::finish(found);
    Ok((texts, found, Census::merge(heap, plan, census)))
}

/// Finds waste of all kinds.
pub fn waste(
    heap: &Heap,
    options: &WasteOptions,
    control: &Control<'_>,
) -> Result<Waste, HeapError> {
    let scope = &options.scope;
    let shapes = shapes(heap);
    let plan = Plan::new(heap);
    let first = memory_for(heap, &plan, &shapes);
    require_first(heap, (&plan, scope), first, control)?;
    let sketch = Sketch::new(heap.len(), heap.memory());
    let (texts, found, census) = first_walk(heap, scope, (&plan, &shapes, &sketch), control)?;

    require_second(heap, &sketch, first)?;
    let string_arrays = ObjectSet::new(heap.len(), texts.iter().map(|t| t.array));
    let fills = stats::arrays_of(heap, &found);
    let filled = Fills::new(&fills);
    let field_plan = FieldPlan::new(heap);
    let walked = heap.walk_contents("equal objects", control, || {
        let fill = FillPass::new(heap, &fills, &filled);
        let equal = EqualPass::new(heap, &plan, &sketch, &string_arrays, scope);
        let boxed = BoxedPass::new(heap, &plan, &field_plan, scope);
        Both(fill, Both(equal, boxed))
    })?;
    let (_, walked) = unzip(walked);
    let (equal, boxed) = unzip(walked);
    let boxed_fields = boxed_fields::sum(heap, &field_plan, boxed);
    let (arrays, objects) = equal::found(equal);
    drop((sketch, string_arrays));
    let mut sites = Sites::default();
    let summing = Summing::new(heap, &shapes, &found, &fills, &filled);
    let mut counts = CollectionCounts::default();
    let collections = summing.sum(options.top, |one| {
        counts.with_unused += u64::from(one.unused > 0);
        counts.large_single += u64::from(one.single_bytes > 0);
        if options.sites {
            sites.add_collection(heap, one);
        }
    });
    let mut strings = Groups::new(options.top);
    strings.add(heap, &texts);
    let strings = strings.answer(heap, scope);
    let arrays = equal::groups(heap, arrays, options.top);
    let objects = equal::groups(heap, objects, options.top);
    let of_strings = match options.holders || options.sites {
        true => equal::copies_of_strings(heap, &texts),
        false => Vec::new(),
    };
    drop(texts);
    let copies = [of_strings, arrays.copies, objects.copies];
    if options.sites {
        sites.add_copies(heap, &copies);
        sites.add(
            heap,
            "duplicate_boxed_numbers",
            census.copies_of_boxes(heap),
        );
        for (row, boxes) in &boxed_fields {
            let field = format!("{}.{}", row.class, row.field);
            sites.add_field(heap, "boxed_fields", field, boxes.iter().copied());
        }
    }
    let mut holders = Vec::new();
    if options.holders {
        holders = who_holds(heap, options, copies, (&fills, &found), control)?;
    }
    let (zero_fields, zero_bytes, omitted_fields) = census.zero_fields(heap, options.top);
    let mut answer = Waste {
        set: scope.set(),
        shallow: Bytes(census.shallow),
        kinds: Vec::new(),
        holders,
        strings: Duplicates {
            // It is stated once.
            set: None,
            ..strings
        },
        arrays: arrays.answer,
        objects: objects.answer,
        collections,
        boxed: census.boxed(heap, &plan),
        boxed_fields: boxed_fields.into_iter().map(|(row, _)| row).collect(),
        sites: sites.rows(heap, options.top),
        zero_fields,
        omitted_fields,
        contents: census.contents.rows(heap),
        object_arrays: census.contents.object_arrays,
        references: references::sum(heap, &census.references, options.top, control)?,
        weak_maps: references::weak_maps(heap, &census.weak_entries, options.top, control)?,
        native: native::sum(heap, &census.buffers, options.top),
    };
    answer.kinds = kinds(&answer, &counts, zero_bytes);
    Ok(answer)
}

/// The fields that hold copies. For arrays that back a collection, the collection's class is reported.
fn who_holds(
    heap: &Heap,
    options: &WasteOptions,
    copies: [Vec<(ObjIdx, u32, u64)>; 3],
    (fills, found): (&ObjectSet, &[stats::Found]),
    control: &Control<'_>,
) -> Result<Vec<Holder>, HeapError> {
    let copies = chained(copies.into_iter());
    let wanted = Wanted::new(heap, &copies);
    drop(copies);
    let mut classes = vec![None; fills.len()];
    for f in found {
        if let Some(rank) = f.holds().and_then(|a| fills.rank(a)) {
            classes[rank] = Some(heap.class_of(f.object()));
        }
    }
    let question = Question {
        groups: 1,
        keep: options.top.unwrap_or(usize::MAX),
        scope: &options.scope.of_holders(),
        owners: Some(&Owners {
            arrays: fills,
            classes,
        }),
    };
    let found = holders(heap, &wanted, &question, control)?;
    Ok(found.into_iter().next().unwrap_or_default())
}

/// Collections that waste memory in ways of which the rows have only the bytes.
#[derive(Default)]
struct CollectionCounts {
    with_unused: u64,
    /// Those with one element that take more than an array of one slot.
    large_single: u64,
}

/// The savings of all kinds, in one list.
fn kinds(waste: &Waste, counts: &CollectionCounts, zero: (u64, u64)) -> Vec<WasteKind> {
    let kind = |kind, objects, wasted| WasteKind {
        kind,
        objects,
        wasted: Bytes(wasted),
    };
    let boxed = |f: fn(&BoxedRow) -> u64| waste.boxed.iter().map(f).sum();
    let contents = |f: fn(&ArrayContents) -> u64| waste.contents.iter().map(f).sum();
    let strings = &waste.strings;
    let mut list = vec![
        kind(
            "duplicate_strings",
            strings.strings - strings.distinct,
            strings.wasted.0,
        ),
        kind(
            "duplicate_arrays",
            waste.arrays.objects - waste.arrays.distinct,
            waste.arrays.wasted.0,
        ),
        kind(
            "equal_objects",
            waste.objects.objects - waste.objects.distinct,
            waste.objects.wasted.0,
        ),
        kind(
            "empty_collections",
            waste.collections.empty,
            waste.collections.empty_bytes.0,
        ),
        kind(
            "unused_slots",
            counts.with_unused,
            waste.collections.unused.0,
        ),
        kind(
            "duplicate_boxed_numbers",
            boxed(|b| b.objects - b.distinct),
            boxed(|b| b.wasted.0),
        ),
        kind(
            "boxed_fields",
            waste.boxed_fields.iter().map(|f| f.boxes).sum(),
            waste.boxed_fields.iter().map(|f| f.wasted.0).sum(),
        ),
        kind(
            "single_element_collections",
            counts.large_single,
            waste.collections.single_bytes.0,
        ),
        kind("zero_fields", zero.0, zero.1),
        kind(
            "zero_arrays",
            contents(|c| c.all_zero),
            contents(|c| c.all_zero_bytes.0),
        ),
        kind(
            "zero_tails",
            contents(|c| c.zero_tail),
            contents(|c| c.zero_tail_bytes.0),
        ),
        kind(
            "unused_high_bytes",
            contents(|c| c.narrow),
            contents(|c| c.narrow_bytes.0),
        ),
        kind(
            "empty_object_arrays",
            waste.object_arrays.all_null,
            waste.object_arrays.all_null_bytes.0,
        ),
        kind(
            "weak_maps_held_by_values",
            waste.weak_maps.entries,
            waste.weak_maps.retained.0,
        ),
    ];
    list.sort_by_key(|k| (Reverse(k.wasted), k.kind));
    list
}
