//! The pass behind "who refers": every reference as a pair of target and source.

use super::pairs::Pairs;
use super::units::{Input, UnitVisitor, run_pass, units_of};
use crate::{Control, Heap, HeapError, LayoutModel, ObjIdx};
use hprof::{BasicType, ClassDump, FileOffset, HeapVisitor, Instance, ObjectArray, read_id};
use rustc_hash::FxHashMap;

/// A worker.
pub(crate) struct InboundPass<'a> {
    heap: &'a Heap,
    offsets: &'a FxHashMap<u64, Vec<u32>>,
    pub(crate) pairs: Pairs,
}

impl InboundPass<'_> {
    fn add(&mut self, source: u64, target: u64) {
        if let Some(target) = self.heap.find(hprof::ObjectId(target)) {
            self.pairs.push(target.0, source);
        }
    }

    fn source(&self, id: hprof::ObjectId) -> Option<u64> {
        self.heap.find(id).map(|o| o.0)
    }
}

impl HeapVisitor for InboundPass<'_> {
    fn class(&mut self, _: FileOffset, class: &ClassDump<'_>) {
        let Some(source) = self.source(class.id) else {
            return;
        };
        for id in [class.super_class, class.loader] {
            self.add(source, id.0);
        }
        for id in class.statics().filter_map(|(_, v)| v.as_id()) {
            self.add(source, id.0);
        }
        if self.heap.summary().layout.model == LayoutModel::Mat {
            return;
        }
        let constants = class.constants().filter_map(|(_, v)| v.as_id());
        for id in constants.chain([class.signers, class.domain]) {
            self.add(source, id.0);
        }
    }

    fn instance(&mut self, _: FileOffset, instance: Instance<'_>) {
        let Some(source) = self.source(instance.id) else {
            return;
        };
        let Some(offsets) = self.offsets.get(&instance.class.0) else {
            return;
        };
        let ids = self.heap.id_size();
        for offset in offsets {
            if let Some(bytes) = instance.fields.get(*offset as usize..) {
                self.add(source, read_id(bytes, ids).0);
            }
        }
    }

    fn object_array(&mut self, _: FileOffset, array: ObjectArray<'_>) {
        let Some(source) = self.source(array.id) else {
            return;
        };
        let ids = self.heap.id_size();
        for element in array.elements.chunks_exact(ids.bytes()) {
            self.add(source, read_id(element, ids).0);
        }
    }
}

impl UnitVisitor for InboundPass<'_> {}

/// Runs the pass over the snapshot of a heap.
pub(crate) fn run<'a>(
    heap: &'a Heap,
    control: &Control<'_>,
) -> Result<Vec<InboundPass<'a>>, HeapError> {
    let source = heap.source()?;
    let map = hprof::map_file(source.bytes(), |_| {})?;
    let snapshot = heap.summary().snapshot.0.saturating_sub(1);
    let units = units_of(map.snapshot(snapshot));
    let ids = heap.id_size();
    let offsets: &'a FxHashMap<u64, Vec<u32>> = heap.reference_offsets.get_or_init(|| {
        heap.classes()
            .iter()
            .map(|c| (c.id.0, offsets_of(heap, c, ids.bytes())))
            .collect()
    });
    let threads = heap.options.thread_count().min(units.len()).max(1);
    let input = Input {
        data: source.bytes(),
        ids,
        known_class: &|id| offsets.contains_key(&id),
        control: *control,
        read: &|at, out| source.read_at(at, out),
        release: None,
    };
    let visitors = (0..threads)
        .map(|_| InboundPass {
            heap,
            offsets,
            pairs: Pairs::new(heap.len()),
        })
        .collect();
    let (mut passes, _) = run_pass(&input, "referrers", &units, visitors)?;
    heap.check()?;
    if let Some(first) = passes.first_mut() {
        for thread in heap.threads().iter().filter_map(|t| t.object) {
            for local in heap.locals_of(ObjIdx(thread.0)) {
                first.pairs.push(local.1, thread.0);
            }
        }
    }
    Ok(passes)
}

/// Offsets of all references in the field bytes of an instance, referents included.
fn offsets_of(heap: &Heap, class: &crate::ClassInfo, id_bytes: usize) -> Vec<u32> {
    let (mut out, mut at, mut next) = (Vec::new(), 0u32, Some(class));
    while let Some(info) = next {
        for field in &info.fields {
            if field.kind == BasicType::Object {
                out.push(at);
            }
            at += field.kind.size(id_bytes) as u32;
        }
        next = info.super_class.map(|c| heap.class(c));
    }
    out
}
