//! Waste by the stack that allocated it: each kind of waste that consists of objects, by class and allocating stack.

use crate::collections::stats::FullCollection;
use crate::objects::describe::{Address, value_of};
use crate::tables::group::trace_frames;
use crate::tables::ranking::cut;
use heap_graph::{ClassIdx, Heap, ObjIdx};
use hprof::{Bytes, Serial};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;

/// Waste of one kind and class that one allocation stack caused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WasteSite {
    /// The kind, as in [`super::WasteKind`].
    pub kind: &'static str,
    /// Class of the objects.
    pub class: String,
    /// For boxed fields: the field that holds the boxes, `Class.field`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Number of objects that could be removed or made smaller.
    pub objects: u64,
    /// Bytes that this would save.
    pub wasted: Bytes,
    /// Id of one of the objects.
    pub example: Address,
    /// Readable value of that object; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Trace serial in the dump; 0 for none.
    pub trace: u32,
    /// Frames of the stack, innermost first; empty if they are not in the dump.
    pub frames: Vec<String>,
}

/// The waste of one stack.
#[derive(Clone, Copy, Debug)]
struct Sum {
    objects: u64,
    wasted: u64,
    example: ObjIdx,
}

/// Sums by kind, class, field and stack.
#[derive(Debug, Default)]
pub(super) struct Sites {
    sums: FxHashMap<(&'static str, ClassIdx, u32, Serial), Sum>,
    fields: Vec<String>,
}

impl Sites {
    /// Adds objects of a kind with what each wastes.
    pub(super) fn add(
        &mut self,
        heap: &Heap,
        kind: &'static str,
        objects: impl IntoIterator<Item = (ObjIdx, u64)>,
    ) {
        self.add_of(heap, kind, 0, objects);
    }

    /// The same for objects that a field holds.
    pub(super) fn add_field(
        &mut self,
        heap: &Heap,
        kind: &'static str,
        field: String,
        objects: impl IntoIterator<Item = (ObjIdx, u64)>,
    ) {
        self.fields.push(field);
        self.add_of(heap, kind, self.fields.len() as u32, objects);
    }

    fn add_of(
        &mut self,
        heap: &Heap,
        kind: &'static str,
        field: u32,
        objects: impl IntoIterator<Item = (ObjIdx, u64)>,
    ) {
        for (object, wasted) in objects.into_iter().filter(|(_, wasted)| *wasted > 0) {
            let key = (
                kind,
                heap.class_of(object),
                field,
                heap.allocation_trace(object),
            );
            let sum = self.sums.entry(key).or_insert(Sum {
                objects: 0,
                wasted: 0,
                example: object,
            });
            sum.objects += 1;
            sum.wasted += wasted;
            sum.example = sum.example.min(object);
        }
    }

    /// Adds the copies of strings, arrays and objects.
    pub(super) fn add_copies(&mut self, heap: &Heap, copies: &[Vec<(ObjIdx, u32, u64)>; 3]) {
        let kinds = ["duplicate_strings", "duplicate_arrays", "equal_objects"];
        for (kind, copies) in kinds.into_iter().zip(copies) {
            self.add(heap, kind, copies.iter().map(|copy| (copy.0, copy.2)));
        }
    }

    /// Adds a collection: empty, with one element, or with unused capacity.
    pub(super) fn add_collection(&mut self, heap: &Heap, one: &FullCollection) {
        let empty = if one.size == 0 { one.bytes } else { 0 };
        for (kind, wasted) in [
            ("empty_collections", empty),
            ("single_element_collections", one.single_bytes),
            ("unused_slots", one.unused),
        ] {
            self.add(heap, kind, [(one.object, wasted)]);
        }
    }

    /// The rows, most bytes first.
    pub(super) fn rows(self, heap: &Heap, top: Option<usize>) -> Vec<WasteSite> {
        let mut sums: Vec<_> = self.sums.into_iter().collect();
        sums.sort_unstable_by_key(|((kind, class, field, trace), sum)| {
            (Reverse(sum.wasted), *kind, class.0, *field, trace.0)
        });
        cut(&mut sums, top);
        type Key = (&'static str, ClassIdx, u32, Serial);
        let row = |((kind, class, field, trace), sum): (Key, Sum)| WasteSite {
            kind,
            class: heap.class(class).name.clone(),
            field: (field as usize)
                .checked_sub(1)
                .map(|n| self.fields[n].clone()),
            objects: sum.objects,
            wasted: Bytes(sum.wasted),
            example: Address(heap.id(sum.example)),
            value: value_of(heap, sum.example),
            trace: trace.0,
            frames: trace_frames(heap, trace),
        };
        sums.into_iter().map(row).collect()
    }
}
