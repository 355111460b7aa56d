//! The pass behind "who refers": every reference as a pair of target and source.

use crate::build::classes::class_references;
use crate::build::objects::is_repetition;
use crate::build::pairs::Pairs;
use crate::build::units::{Input, UnitVisitor, run_pass, units_of};
use crate::index::Tag;
use crate::raw::Budget;
use crate::{ClassIdx, Control, Heap, HeapError, ObjIdx};
use hprof::{BasicType, ClassDump, FileOffset, HeapVisitor, Instance, ObjectArray, read_id};
use rustc_hash::FxHashMap;
use std::io;

/// A worker.
pub(crate) struct InboundPass<'a> {
    heap: &'a Heap,
    classes: &'a FxHashMap<u64, ClassIdx>,
    /// By class number.
    offsets: Vec<Offsets>,
    /// Offsets of the records that repeat an id.
    repetitions: &'a [u64],
    /// Is added to every offset.
    base: u64,
    pub(crate) pairs: Pairs,
}

/// Where the references of a class are, as far as its instances went.
#[derive(Clone, Debug, Default)]
struct Offsets {
    of: Vec<u32>,
    /// Field bytes that were examined, at least.
    until: usize,
}

impl Offsets {
    /// The offsets in an instance of so many bytes. What is kept of a class is bounded by its longest
    /// instance: a class may claim 65,535 fields, each of 100,000 subclasses inherits them.
    fn within(&mut self, heap: &Heap, class: ClassIdx, bytes: usize) -> &[u32] {
        if self.until < bytes {
            // Twice as far each time, so that growing instances do not begin again at each.
            self.until = bytes.max(self.until * 2);
            self.of = offsets_of(heap, class, self.until);
        }
        &self.of
    }
}

impl InboundPass<'_> {
    fn add(&mut self, source: u64, target: u64) {
        if let Some(target) = self.heap.find(hprof::ObjectId(target)) {
            self.pairs.push(target.0, source);
        }
    }

    fn source(&self, at: FileOffset, id: hprof::ObjectId) -> Option<u64> {
        if is_repetition(self.repetitions, at.0 + self.base) {
            return None;
        }
        self.heap.find(id).map(|o| o.0)
    }
}

impl HeapVisitor for InboundPass<'_> {
    fn class(&mut self, at: FileOffset, class: &ClassDump<'_>) {
        let Some(source) = self.source(at, class.id) else {
            return;
        };
        let model = self.heap.summary().layout.model;
        class_references(class, model).for_each(|id| self.add(source, id.0));
    }

    fn instance(&mut self, at: FileOffset, instance: Instance<'_>) {
        let Some(source) = self.source(at, instance.id) else {
            return;
        };
        let Some(class) = self.classes.get(&instance.class.0) else {
            return;
        };
        let (heap, ids) = (self.heap, self.heap.id_size());
        let offsets = &mut self.offsets[class.0 as usize];
        for offset in offsets.within(heap, *class, instance.fields.len()) {
            let Some(bytes) = instance.fields.get(*offset as usize..) else {
                break;
            };
            if let Some(target) = heap.find(read_id(bytes, ids)) {
                self.pairs.push(target.0, source);
            }
        }
    }

    fn object_array(&mut self, at: FileOffset, array: ObjectArray<'_>) {
        let Some(source) = self.source(at, array.id) else {
            return;
        };
        let ids = self.heap.id_size();
        for element in array.elements.chunks_exact(ids.bytes()) {
            self.add(source, read_id(element, ids).0);
        }
    }
}

impl UnitVisitor for InboundPass<'_> {
    fn begin(&mut self, base: u64) {
        self.base = base;
    }
}

/// Runs the pass over the snapshot of a heap.
pub(crate) fn run<'a>(
    heap: &'a Heap,
    budget: &Budget,
    control: &Control<'_>,
) -> Result<Vec<InboundPass<'a>>, HeapError> {
    let source = heap.source_under(control)?;
    let map = hprof::map_file(source.bytes(), |_| {})?;
    let snapshot = heap.summary().snapshot.0.saturating_sub(1);
    let units = units_of(map.snapshot(snapshot));
    let ids = heap.id_size();
    let classes: &'a FxHashMap<u64, ClassIdx> = heap.class_numbers.get_or_init(|| {
        let all = heap.classes().iter().enumerate();
        all.map(|(n, c)| (c.id.0, ClassIdx(n as u32))).collect()
    });
    let threads = heap.options.thread_count().min(units.len()).max(1);
    let input = Input {
        data: source.bytes(),
        ids,
        known_class: &|id| classes.contains_key(&id),
        control: *control,
        read: &|at, out| source.read_at(at, out),
        release: None,
        tuning: &heap.options.tuning,
    };
    let visitors = (0..threads)
        .map(|_| {
            Ok(InboundPass {
                heap,
                classes,
                offsets: vec![Offsets::default(); heap.classes().len()],
                repetitions: heap.index.array(Tag::Repetitions),
                base: 0,
                pairs: Pairs::new(heap.len(), budget)?,
            })
        })
        .collect::<io::Result<_>>()
        .map_err(HeapError::io("referrers"))?;
    let (mut passes, _) = run_pass(&input, "referrers", &units, visitors)?;
    heap.check()?;
    if let Some(first) = passes.first_mut() {
        for thread in heap.threads().iter().filter_map(|t| t.object) {
            for local in heap.locals_of(ObjIdx(thread.0)) {
                first.pairs.push(local.1, thread.0);
            }
        }
    }
    for pass in &mut passes {
        pass.pairs.check().map_err(HeapError::io("referrers"))?;
    }
    Ok(passes)
}

/// Offsets of the references in the first `bytes` of an instance's fields, referents included.
fn offsets_of(heap: &Heap, class: ClassIdx, bytes: usize) -> Vec<u32> {
    let id_bytes = heap.id_size().bytes();
    let (mut out, mut at, mut next) = (Vec::new(), 0, Some(class));
    while let Some(info) = next.map(|c| heap.class(c)) {
        for field in &info.fields {
            if at >= bytes {
                return out;
            }
            if field.kind == BasicType::Object {
                out.push(at as u32);
            }
            at += field.kind.size(id_bytes);
        }
        next = info.super_class;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use testkit::dump::{Heap as Builder, IdSize, Type};

    #[test]
    fn of_a_class_no_more_is_kept_than_its_longest_instance_has() {
        let mut b = Builder::new(IdSize::Eight);
        let object = b.java_lang_object();
        let names: Vec<String> = (0..1000).map(|n| format!("f{n}")).collect();
        let fields: Vec<(&str, Type)> = names.iter().map(|n| (&**n, Type::Object)).collect();
        let wide = b.class("Wide", object, &fields);
        b.class("Below", wide, &[("n", Type::Int), ("own", Type::Object)]);
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), b.bytes()).expect("a dump");
        let options = Options {
            no_index: true,
            ..Options::default()
        };
        let heap = Heap::open(file.path(), &options, &Control::quiet()).expect("a heap");
        let below = heap.classes().iter().position(|c| c.name == "Below");
        let below = ClassIdx(below.expect("the class") as u32);
        let mut offsets = Offsets::default();
        assert!(offsets.within(&heap, below, 0).is_empty());
        assert_eq!(offsets.within(&heap, below, 20), [4, 12]);
        let until_40 = [4, 12, 20, 28, 36];
        assert_eq!(offsets.within(&heap, below, 28), until_40);
        assert_eq!(offsets.within(&heap, below, 12), until_40);
        assert_eq!(offsets.within(&heap, below, 8012).len(), 1001);
    }
}
