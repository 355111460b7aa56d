//! The first walk: counts per class, which fields are ever set, boxed values, references and buffers.

use super::contents::Contents;
use super::native::RawBuffer;
use super::plan::Plan;
use super::references::{RawReference, RawWeakEntry};
use crate::objects::fields::lineage;
use crate::sets::scope::Scope;
use crate::tables::ranking::cut;
use heap_graph::{ClassIdx, Columns, ContentVisitor, Heap, ObjIdx, Slot};
use hprof::{BasicType, Bytes};
use serde::Serialize;
use std::cmp::Reverse;

/// Boxed primitives of one class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BoxedRow {
    /// The class, such as `java.lang.Integer`.
    pub class: String,
    /// Number of objects.
    pub objects: u64,
    /// Sum of their shallow sizes.
    pub bytes: Bytes,
    /// Number of different values.
    pub distinct: u64,
    /// Bytes that would be saved if each value had only one object.
    pub wasted: Bytes,
}

/// A field that is null or zero in every instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ZeroField {
    /// The class that declares the field.
    pub class: String,
    /// Name of the field.
    pub field: String,
    /// Type of the field.
    pub kind: &'static str,
    /// Number of instances that have the field, including those of subclasses.
    pub instances: u64,
    /// Width of the field times the number of instances: an upper limit of the savings, because alignment is ignored.
    pub wasted: Bytes,
}

/// What a worker counts.
pub(super) struct Census<'a> {
    heap: &'a Heap,
    columns: Columns<'a>,
    plan: &'a Plan,
    scope: &'a Scope,
    /// Shallow size of everything that was examined.
    pub(super) shallow: u64,
    /// Per class: instances, and the bitwise or of all their field bytes.
    masks: Vec<(u64, Vec<u8>)>,
    /// Per class of boxes: the values, and the boxes that have them.
    values: Vec<Vec<(u64, ObjIdx)>>,
    pub(super) contents: Contents,
    pub(super) references: Vec<RawReference>,
    pub(super) weak_entries: Vec<RawWeakEntry>,
    pub(super) buffers: Vec<RawBuffer>,
}

impl<'a> Census<'a> {
    pub(super) fn new(heap: &'a Heap, plan: &'a Plan, scope: &'a Scope) -> Census<'a> {
        let classes = heap.classes().len();
        Census {
            heap,
            columns: heap.columns(),
            plan,
            scope,
            shallow: 0,
            masks: vec![(0, Vec::new()); classes],
            values: vec![Vec::new(); classes],
            contents: Contents::default(),
            references: Vec::new(),
            weak_entries: Vec::new(),
            buffers: Vec::new(),
        }
    }

    /// The counts of all workers in one.
    pub(super) fn merge(heap: &'a Heap, plan: &'a Plan, parts: Vec<Census<'a>>) -> Sum {
        let classes = heap.classes().len();
        let mut sum = Sum {
            shallow: 0,
            masks: vec![(0, Vec::new()); classes],
            values: vec![Vec::new(); classes],
            contents: Contents::default(),
            references: Vec::new(),
            weak_entries: Vec::new(),
            buffers: Vec::new(),
        };
        for part in parts {
            sum.shallow += part.shallow;
            for (all, one) in sum.masks.iter_mut().zip(&part.masks) {
                all.0 += one.0;
                or(&mut all.1, &one.1);
            }
            for (all, one) in sum.values.iter_mut().zip(part.values) {
                all.extend(one);
            }
            sum.contents.merge(&part.contents);
            sum.references.extend(part.references);
            sum.weak_entries.extend(part.weak_entries);
            sum.buffers.extend(part.buffers);
        }
        sum.references.sort_by_key(|r| r.object);
        sum.weak_entries.sort_by_key(|r| r.entry);
        sum.buffers.sort_by_key(|r| r.object);
        sum.values.iter_mut().for_each(|list| list.sort_unstable());
        // A class without instances, or with truncated ones, has no bytes to examine.
        for (class, slots) in plan.slots.iter().enumerate() {
            sum.masks[class].1.resize(field_bytes(heap, slots), 0);
        }
        sum
    }
}

fn field_bytes(heap: &Heap, slots: &[Slot]) -> usize {
    slots.last().map_or(0, |s| {
        s.offset as usize + s.kind.size(heap.id_size().bytes())
    })
}

fn or(all: &mut Vec<u8>, one: &[u8]) {
    if all.len() < one.len() {
        all.resize(one.len(), 0);
    }
    for (a, b) in all.iter_mut().zip(one) {
        *a |= b;
    }
}

impl ContentVisitor for Census<'_> {
    fn instance(&mut self, object: ObjIdx, class: ClassIdx, fields: &[u8]) {
        if !self.scope.has(&self.columns, object) {
            return;
        }
        let ids = self.heap.id_size();
        self.shallow += self.columns.shallow(object).0;
        let mask = &mut self.masks[class.0 as usize];
        mask.0 += 1;
        or(&mut mask.1, fields);
        let role = &self.plan.roles[class.0 as usize];
        if let Some(place) = role.boxed {
            self.values[class.0 as usize].push((place.bits(fields, ids), object));
        }
        if let Some(shape) = &role.reference {
            self.references
                .push(shape.read(self.heap, object, class, fields));
        }
        if let Some(shape) = &role.weak_entry {
            let entry = shape.read(self.heap, object, fields);
            self.weak_entries.extend(entry);
        }
        if let Some(shape) = &role.buffer {
            self.buffers.push(shape.read(object, fields, ids));
        }
    }

    fn object_array(&mut self, object: ObjIdx, _: ClassIdx, elements: &[u8]) {
        if !self.scope.has(&self.columns, object) {
            return;
        }
        let shallow = self.columns.shallow(object).0;
        self.shallow += shallow;
        self.contents
            .references(shallow, elements, self.heap.id_size());
    }

    fn primitive_array(&mut self, object: ObjIdx, element: BasicType, len: u32, data: &[u8]) {
        if !self.scope.has(&self.columns, object) {
            return;
        }
        let shallow = self.columns.shallow(object).0;
        self.shallow += shallow;
        self.contents
            .primitive(self.heap, shallow, element, len, data);
    }
}

/// What all workers counted.
pub(super) struct Sum {
    pub(super) shallow: u64,
    masks: Vec<(u64, Vec<u8>)>,
    values: Vec<Vec<(u64, ObjIdx)>>,
    pub(super) contents: Contents,
    pub(super) references: Vec<RawReference>,
    pub(super) weak_entries: Vec<RawWeakEntry>,
    pub(super) buffers: Vec<RawBuffer>,
}

impl Sum {
    /// Boxed numbers by class, most bytes first.
    pub(super) fn boxed(&self, heap: &Heap, plan: &Plan) -> Vec<BoxedRow> {
        let mut rows = Vec::new();
        for (class, values) in self.values.iter().enumerate() {
            if values.is_empty() || plan.roles[class].boxed.is_none() {
                continue;
            }
            let info = heap.class(ClassIdx(class as u32));
            let (objects, distinct) = (
                self.masks[class].0,
                values.chunk_by(|a, b| a.0 == b.0).count() as u64,
            );
            let one = info.instance_size.0;
            rows.push(BoxedRow {
                class: info.name.clone(),
                objects,
                bytes: Bytes(one * objects),
                distinct,
                wasted: Bytes(one * (objects - distinct)),
            });
        }
        rows.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.class.cmp(&b.class)));
        rows
    }

    /// The boxes that are not the first of their value, with their size.
    pub(super) fn copies_of_boxes(&self, heap: &Heap) -> impl Iterator<Item = (ObjIdx, u64)> {
        let groups = self
            .values
            .iter()
            .flat_map(|list| list.chunk_by(|a, b| a.0 == b.0));
        groups.flat_map(|group| {
            group[1..]
                .iter()
                .map(|(_, object)| (*object, heap.shallow(*object).0))
        })
    }

    /// Fields that no instance sets; the instances and bytes of all such fields; the number of omitted rows.
    pub(super) fn zero_fields(
        &self,
        heap: &Heap,
        top: Option<usize>,
    ) -> (Vec<ZeroField>, (u64, u64), u64) {
        let ids = heap.id_size().bytes();
        // Per class and own field: is it set anywhere, and how many instances have it.
        let mut set: Vec<Vec<bool>> = heap
            .classes()
            .iter()
            .map(|c| vec![false; c.fields.len()])
            .collect();
        let mut instances = vec![0u64; set.len()];
        for (class, (count, mask)) in self.masks.iter().enumerate() {
            if *count == 0 {
                continue;
            }
            for above in lineage(heap, ClassIdx(class as u32)) {
                instances[above.0 as usize] += count;
            }
            for slot in heap.slots(ClassIdx(class as u32)) {
                let from = slot.offset as usize;
                let bytes = mask.get(from..from + slot.kind.size(ids));
                if bytes.is_some_and(|b| b.iter().any(|b| *b != 0)) {
                    set[slot.declared_in.0 as usize][slot.field] = true;
                }
            }
        }
        let mut rows = Vec::new();
        for (class, fields) in set.iter().enumerate().filter(|(c, _)| instances[*c] > 0) {
            let info = heap.class(ClassIdx(class as u32));
            for (field, _) in info.fields.iter().zip(fields).filter(|(_, set)| !**set) {
                rows.push(ZeroField {
                    class: info.name.clone(),
                    field: field.name.clone(),
                    kind: field.kind.name(),
                    instances: instances[class],
                    wasted: Bytes(heap.field_bytes(field.kind).0 * instances[class]),
                });
            }
        }
        rows.sort_by(|a, b| {
            let key = |r: &ZeroField| (Reverse(r.wasted), Reverse(r.instances));
            (key(a), &a.class, &a.field).cmp(&(key(b), &b.class, &b.field))
        });
        let total = rows
            .iter()
            .fold((0, 0), |sum, r| (sum.0 + r.instances, sum.1 + r.wasted.0));
        let omitted = cut(&mut rows, top);
        (rows, total, omitted)
    }
}
