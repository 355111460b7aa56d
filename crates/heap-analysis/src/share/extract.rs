//! A subset of a dump as a dump: chosen objects, or what they retain. References to objects outside the subset become
//! null. Classes, names and stacks stay. Root records stay if they name an object of the subset; an object that no
//! root of the subset reaches gets a root of unknown kind.

use crate::sets::object_set::ObjectSet;
use heap_graph::{Dominator, Heap, LayoutModel, ObjIdx};
use hprof::{
    BasicType, Edit, FileOffset, HeapTag, IdSize, Instance, MeasuredSizes, ObjectArray, ObjectId,
    RawRecord, Record, RecordTag, Rewriter, Root, Segment, Serial, SubRecord, encode_sub_record,
};
use rustc_hash::FxHashMap;

/// Writes a subset.
pub struct Extract<'h> {
    heap: &'h Heap,
    wanted: ObjectSet,
    /// Objects of the subset that no object of the subset dominates.
    tops: Vec<ObjIdx>,
    /// Offsets of references by class id.
    references: FxHashMap<u64, Vec<u32>>,
    objects: u64,
    /// The sizes of its objects, which cannot be derived from their distances in the extract.
    sizes: Option<MeasuredSizes>,
}

impl<'h> Extract<'h> {
    /// The subset of these objects; with `retained` also everything that they dominate.
    pub fn new(heap: &'h Heap, objects: &[ObjIdx], retained: bool) -> Extract<'h> {
        let mut members: Vec<ObjIdx> = objects.to_vec();
        if retained {
            let mut stack = members.clone();
            let mut seen = ObjectSet::new(heap.len(), members.iter().copied());
            // One chosen object may dominate another: visit each subtree once.
            stack.retain(|o| !above(heap, *o).any(|a| seen.rank(a).is_some()));
            members.clone_from(&stack);
            while let Some(object) = stack.pop() {
                for child in heap.dominated(Some(object)) {
                    members.push(child);
                    stack.push(child);
                }
            }
            seen = ObjectSet::new(heap.len(), members.iter().copied());
            members.extend(objects.iter().filter(|o| seen.rank(**o).is_none()));
        }
        let wanted = ObjectSet::new(heap.len(), members.iter().copied());
        let mut tops: Vec<ObjIdx> = members
            .iter()
            .copied()
            .filter(|o| match heap.dominator(*o) {
                Dominator::Object(above) => wanted.rank(above).is_none(),
                _ => true,
            })
            .collect();
        tops.sort_unstable();
        tops.dedup();
        let references = heap
            .classes()
            .iter()
            .enumerate()
            .map(|(n, info)| {
                let slots = heap.slots(heap_graph::ClassIdx(n as u32)).into_iter();
                let offsets = slots.filter(|s| s.kind == BasicType::Object);
                (info.id.0, offsets.map(|s| s.offset).collect())
            })
            .collect();
        Extract {
            heap,
            sizes: sizes(heap, &members),
            objects: wanted.len() as u64,
            wanted,
            tops,
            references,
        }
    }

    /// The number of objects of the subset, whether or not class objects are among them.
    pub fn objects(&self) -> u64 {
        self.objects
    }

    fn has(&self, id: ObjectId) -> bool {
        let object = self.heap.find(id);
        object.is_some_and(|o| {
            // All classes are written, so references to them stay.
            self.wanted.rank(o).is_some() || self.heap.class_by_object(o).is_some()
        })
    }

    /// Clears the references in a table of a CLASS_DUMP whose entries have keys of `key` bytes; returns the offset
    /// after it.
    fn values(
        &self,
        bytes: &mut [u8],
        mut at: usize,
        key: usize,
        kinds: impl Iterator<Item = BasicType>,
    ) -> usize {
        let ids = self.heap.id_size();
        for kind in kinds {
            let from = at + key + 1;
            at = from + kind.size(ids.bytes());
            if kind == BasicType::Object {
                self.clear(&mut bytes[from..at], ids);
            }
        }
        at
    }

    fn clear(&self, bytes: &mut [u8], ids: IdSize) {
        if !self.has(hprof::read_id(bytes, ids)) {
            bytes.fill(0);
        }
    }
}

/// The sizes of these objects, as the heap measured them.
fn sizes(heap: &Heap, members: &[ObjIdx]) -> Option<MeasuredSizes> {
    let layout = &heap.summary().layout;
    if layout.model != LayoutModel::Measured {
        return None;
    }
    let mut classes: Vec<u32> = members.iter().map(|o| heap.class_of(*o).0).collect();
    let all = heap.classes();
    // Class objects are instances of `java.lang.Class`, with their static fields.
    classes.extend((0..all.len() as u32).filter(|n| all[*n as usize].name == "java.lang.Class"));
    classes.sort_unstable();
    classes.dedup();
    let classes = classes.iter().map(|n| &all[*n as usize]);
    let classes = classes.map(|info| (info.id.0, info.instance_size.0));
    Some(MeasuredSizes {
        header: layout.header,
        array_header: layout.array_header,
        reference: layout.reference,
        alignment: layout.alignment,
        agreeing: (layout.confidence * layout.samples as f64).round() as u64,
        samples: layout.samples,
        classes: classes.collect(),
    })
}

/// The dominators of an object, the nearest one first.
fn above(heap: &Heap, object: ObjIdx) -> impl Iterator<Item = ObjIdx> + '_ {
    std::iter::successors(Some(object), |o| match heap.dominator(*o) {
        Dominator::Object(above) => Some(above),
        _ => None,
    })
    .skip(1)
}

impl Rewriter for Extract<'_> {
    fn segment(&self, segment: &Segment) -> bool {
        segment.snapshot + 1 == self.heap.summary().snapshot.0.max(1)
    }

    fn first(&self) -> Option<(u8, Vec<u8>)> {
        let sizes = self.sizes.as_ref()?;
        let ids = self.heap.id_size();
        // An id that no text of a dump has.
        let mut body = vec![0xff; ids.bytes()];
        body.extend_from_slice(sizes.to_text().as_bytes());
        Some((RecordTag::Utf8 as u8, body))
    }

    fn record(&self, record: &RawRecord<'_>, _: &mut Vec<u8>) -> Edit {
        match record.decode(self.heap.id_size()) {
            // The sizes of the original dump.
            Some(Record::Utf8 { bytes, .. })
                if self.sizes.is_some() && MeasuredSizes::parse(bytes).is_some() =>
            {
                Edit::Drop
            }
            _ => Edit::Keep,
        }
    }

    fn sub_record(&self, _: FileOffset, record: &SubRecord<'_>, out: &mut Vec<u8>) -> Edit {
        let ids = self.heap.id_size();
        let width = ids.bytes();
        match record {
            SubRecord::Root(root) if self.has(root.object) => Edit::Keep,
            SubRecord::PrimitiveArray(a) if self.has(a.id) => Edit::Keep,
            SubRecord::HeapInfo { .. } => Edit::Keep,
            SubRecord::Instance(i) if self.has(i.id) => {
                let mut fields = i.fields.to_vec();
                let offsets = self
                    .references
                    .get(&i.class.0)
                    .map_or(&[][..], Vec::as_slice);
                for offset in offsets {
                    let from = *offset as usize;
                    if let Some(bytes) = fields.get_mut(from..from + width) {
                        self.clear(bytes, ids);
                    }
                }
                let fields = &fields;
                let record = SubRecord::Instance(Instance { fields, ..*i });
                encode_sub_record(&record, ids, out);
                Edit::Replace
            }
            SubRecord::ObjectArray(a) if self.has(a.id) => {
                let mut elements = a.elements.to_vec();
                for element in elements.chunks_exact_mut(width) {
                    self.clear(element, ids);
                }
                let elements = &elements;
                let record = SubRecord::ObjectArray(ObjectArray { elements, ..*a });
                encode_sub_record(&record, ids, out);
                Edit::Replace
            }
            SubRecord::Class(class) => {
                let from = out.len();
                encode_sub_record(record, ids, out);
                // The loader, signers and domain follow the id, serial and superclass; then the tables.
                let bytes = &mut out[from..];
                let mut at = 1 + width + 4 + width;
                for _ in 0..3 {
                    self.clear(&mut bytes[at..at + width], ids);
                    at += width;
                }
                at += 2 * width + 4;
                let constants = class.constants().map(|(_, v)| v.kind);
                at = self.values(bytes, at + 2, 2, constants);
                let statics = class.statics().map(|(_, v)| v.kind);
                self.values(bytes, at + 2, width, statics);
                Edit::Replace
            }
            _ => Edit::Drop,
        }
    }

    fn tail(&self, out: &mut Vec<u8>) {
        let tops = self.tops.iter().map(|top| (HeapTag::RootUnknown, *top));
        // As roots, the classes that are written besides the part are not retained by its objects.
        let classes = self.heap.classes().iter().filter(|class| class.dumped);
        let classes = classes.filter_map(|class| self.heap.find(class.id));
        let others = classes.filter(|class| self.wanted.rank(*class).is_none());
        for (kind, object) in tops.chain(others.map(|class| (HeapTag::RootStickyClass, class))) {
            let root = Root {
                kind,
                object: self.heap.id(object),
                thread: Serial(0),
                frame: u32::MAX,
                reference: ObjectId::NULL,
            };
            encode_sub_record(&SubRecord::Root(root), self.heap.id_size(), out);
        }
    }
}
