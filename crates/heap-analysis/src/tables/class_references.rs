//! Which classes refer to which, by which field, and how often: a summary of the references of the heap. References of
//! objects to their class are left out, as in the table `references`.
//!
//! One walk over the contents; memory by pairs of classes, not by objects.

use heap_graph::{ClassIdx, ContentVisitor, Control, Heap, HeapError, ObjIdx};
use hprof::{BasicType, IdSize, read_id};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::collections::BTreeMap;

/// The references from one field of one class to objects of one class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClassReference {
    /// The class of the objects that refer; `java.lang.Class` for class objects.
    pub from: ClassIdx,
    /// The field; `[]` for all elements of arrays, else as [`Via::field`](heap_graph::Via::field) writes it.
    pub field: String,
    /// The kind of reference, as [`Via::kind`](heap_graph::Via::kind) writes it.
    pub kind: &'static str,
    /// The class of the objects referred to.
    pub to: ClassIdx,
    /// Number of references.
    pub count: u64,
}

/// A reference field in the bytes of an instance.
struct Field {
    offset: usize,
    number: u32,
    /// The class of the most recent targets, and how many references to it are not counted yet: usually a field refers
    /// to objects of one class.
    last: (u32, u64),
}

/// The number of the "field" that stands for all elements of an array.
const ELEMENTS: u32 = u32::MAX;

type Counts = FxHashMap<(u32, u32, u32), u64>;

struct Pass<'a> {
    heap: &'a Heap,
    ids: IdSize,
    /// Reference fields by class, computed when the first instance is read.
    fields: Vec<Option<Vec<Field>>>,
    counts: Counts,
}

fn fields_of(heap: &Heap, class: ClassIdx) -> Vec<Field> {
    let slots = heap.slots(class).into_iter().zip(0..);
    slots
        .filter(|(s, _)| s.kind == BasicType::Object)
        .map(|(s, number)| Field {
            offset: s.offset as usize,
            number,
            last: (0, 0),
        })
        .collect()
}

impl ContentVisitor for Pass<'_> {
    const PRIMITIVE_ARRAYS: bool = false;

    fn instance(&mut self, _: ObjIdx, class: ClassIdx, fields: &[u8]) {
        let heap = self.heap;
        let Some(known) = self.fields.get_mut(class.0 as usize) else {
            return;
        };
        for field in known.get_or_insert_with(|| fields_of(heap, class)) {
            let Some(bytes) = fields.get(field.offset..field.offset + self.ids.bytes()) else {
                return;
            };
            let Some(target) = heap.find(read_id(bytes, self.ids)) else {
                continue;
            };
            let to = heap.class_of(target).0;
            if field.last.0 != to {
                count(&mut self.counts, class, field.number, field.last);
                field.last = (to, 0);
            }
            field.last.1 += 1;
        }
    }

    fn object_array(&mut self, _: ObjIdx, class: ClassIdx, elements: &[u8]) {
        let mut last = (0, 0);
        for element in elements.chunks_exact(self.ids.bytes()) {
            let Some(target) = self.heap.find(read_id(element, self.ids)) else {
                continue;
            };
            let to = self.heap.class_of(target).0;
            if last.0 != to {
                count(&mut self.counts, class, ELEMENTS, last);
                last = (to, 0);
            }
            last.1 += 1;
        }
        count(&mut self.counts, class, ELEMENTS, last);
    }
}

fn count(counts: &mut Counts, from: ClassIdx, field: u32, (to, times): (u32, u64)) {
    if times > 0 {
        *counts.entry((from.0, field, to)).or_default() += times;
    }
}

/// Sums up the references, ordered by class number, field and target.
pub fn class_references(
    heap: &Heap,
    control: &Control<'_>,
) -> Result<Vec<ClassReference>, HeapError> {
    let passes = heap.walk_contents("references of classes", control, || Pass {
        heap,
        ids: heap.id_size(),
        fields: heap.classes().iter().map(|_| None).collect(),
        counts: Counts::default(),
    })?;
    let mut counts = Counts::default();
    for mut pass in passes {
        for (class, fields) in pass.fields.iter().enumerate() {
            for field in fields.iter().flatten() {
                let class = ClassIdx(class as u32);
                count(&mut pass.counts, class, field.number, field.last);
            }
        }
        for (key, times) in pass.counts {
            *counts.entry(key).or_default() += times;
        }
    }
    let mut all: BTreeMap<(u32, String, &'static str, u32), u64> = BTreeMap::new();
    for ((from, field, to), times) in counts {
        let (name, kind) = match field {
            ELEMENTS => ("[]".to_owned(), "element"),
            number => (name_of(heap, ClassIdx(from), number), "field"),
        };
        *all.entry((from, name, kind, to)).or_default() += times;
    }
    for (from, reference) in heap.references_beside_records()? {
        let to = heap.class_of(reference.target).0;
        let key = (
            heap.class_of(from).0,
            reference.via.field(),
            reference.via.kind(),
            to,
        );
        *all.entry(key).or_default() += 1;
    }
    let row = |((from, field, kind, to), count)| ClassReference {
        from: ClassIdx(from),
        field,
        kind,
        to: ClassIdx(to),
        count,
    };
    Ok(all.into_iter().map(row).collect())
}

fn name_of(heap: &Heap, class: ClassIdx, number: u32) -> String {
    let slot = heap.slots(class).into_iter().nth(number as usize);
    slot.map_or_else(String::new, |s| {
        heap.class(s.declared_in).fields[s.field].name.clone()
    })
}
