//! The first pass finds the objects, their number per class, the roots, and the distances between objects.

use super::id_table::IdTable;
use super::units::UnitVisitor;
use crate::idmap::{Directory, FinishedIds, IdMap, IdSetBuilder};
use crate::layout::{FirstGaps, LARGEST_GAP, Sample, SizeRules};
use hprof::{
    BasicType, ClassDump, FileOffset, HeapTag, HeapVisitor, Instance, ObjectArray, ObjectId,
    PrimitiveArray, Root, Serial,
};

/// The counts for one class id.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClassTally {
    pub(crate) id: u64,
    /// Offset of the first record of an object of the class.
    pub(crate) first: u64,
    /// Instances, and the sum of their field bytes.
    pub(crate) instances: u64,
    pub(crate) total_field_bytes: u64,
    /// Object arrays of this class, and the sum of their sizes by the rules.
    pub(crate) arrays: u64,
    pub(crate) array_bytes: u64,
    pub(crate) gaps: FirstGaps,
}

/// Arrays of one primitive type.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PrimitiveTally {
    pub(crate) arrays: u64,
    pub(crate) bytes: u64,
}

/// A root record of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawRoot {
    pub(crate) at: u64,
    pub(crate) root: Root,
}

/// A worker of the first pass.
pub(crate) struct ObjectPass<'a> {
    rules: &'a SizeRules,
    /// `None` if ids are not needed (the quick histogram).
    pub(crate) ids: Option<IdSetBuilder>,
    table: IdTable,
    pub(crate) classes: Vec<ClassTally>,
    /// The previous class and its slot.
    last: Option<(u64, u32)>,
    pub(crate) primitives: [PrimitiveTally; 12],
    /// Class id and offset of the CLASS_DUMP.
    pub(crate) class_dumps: Vec<(u64, u64)>,
    pub(crate) roots: Vec<RawRoot>,
    pub(crate) counts: [u64; 256],
    pub(crate) heap_switches: Vec<(u64, u32, ObjectId)>,
    /// Class id of `jdk.internal.vm.StackChunk`, 0 for none, and its instances: id and offset.
    stack_chunk: u64,
    pub(crate) stack_chunks: Vec<(u64, u64)>,
    /// Offsets of the records whose id was seen before.
    repetitions: Vec<u64>,
    /// Smallest and largest trace serial.
    pub(crate) traces: (u32, u32),
    /// Is added to every offset.
    base: u64,
    /// The previous instance and its class slot, if the next object in the file may be its neighbour by address.
    before: Option<(Sample, u32)>,
}

/// The range of trace serials if there are no objects.
const NO_TRACES: (u32, u32) = (u32::MAX, 0);

impl<'a> ObjectPass<'a> {
    pub(crate) fn new(
        rules: &'a SizeRules,
        ids: Option<IdSetBuilder>,
        stack_chunk: u64,
    ) -> ObjectPass<'a> {
        ObjectPass {
            rules,
            ids,
            table: IdTable::new(),
            classes: Vec::new(),
            last: None,
            primitives: [PrimitiveTally::default(); 12],
            class_dumps: Vec::new(),
            roots: Vec::new(),
            counts: [0; 256],
            heap_switches: Vec::new(),
            stack_chunk,
            stack_chunks: Vec::new(),
            repetitions: Vec::new(),
            traces: NO_TRACES,
            base: 0,
            before: None,
        }
    }

    #[inline(always)]
    fn class_slot(&mut self, at: FileOffset, id: u64) -> u32 {
        if let Some((last, slot)) = self.last
            && last == id
        {
            return slot;
        }
        let found = self.table.get(id);
        let slot = found.unwrap_or_else(|| self.new_class(at, id));
        self.last = Some((id, slot));
        slot
    }

    #[cold]
    fn new_class(&mut self, at: FileOffset, id: u64) -> u32 {
        let slot = self.classes.len() as u32;
        self.classes.push(ClassTally {
            id,
            first: at.0 + self.base,
            ..ClassTally::default()
        });
        self.table.insert(id, slot);
        slot
    }

    /// Adds an object; false if its id was seen before.
    #[inline(always)]
    fn object(&mut self, at: FileOffset, id: u64, trace: Serial) -> bool {
        self.traces = span(self.traces, (trace.0, trace.0));
        if let Some((mut sample, class)) = self.before.take()
            && id.wrapping_sub(sample.id) < LARGEST_GAP
        {
            sample.next = id;
            self.classes[class as usize].gaps.add(sample);
        }
        let is_new = self.ids.as_mut().is_none_or(|ids| ids.insert(id));
        if !is_new {
            self.repetitions.push(at.0 + self.base);
        }
        is_new
    }
}

impl HeapVisitor for ObjectPass<'_> {
    fn root(&mut self, at: FileOffset, root: Root) {
        self.counts[root.kind as usize] += 1;
        self.roots.push(RawRoot {
            at: at.0 + self.base,
            root,
        });
    }

    fn class(&mut self, at: FileOffset, class: &ClassDump<'_>) {
        self.counts[HeapTag::ClassDump as usize] += 1;
        if self.object(at, class.id.0, class.trace) {
            self.class_dumps.push((class.id.0, at.0 + self.base));
        }
    }

    #[inline(always)]
    fn instance(&mut self, at: FileOffset, instance: Instance<'_>) {
        self.counts[HeapTag::InstanceDump as usize] += 1;
        if self.object(at, instance.id.0, instance.trace) {
            let slot = self.class_slot(at, instance.class.0);
            let tally = &mut self.classes[slot as usize];
            tally.instances += 1;
            tally.total_field_bytes += instance.fields.len() as u64;
            if instance.class.0 == self.stack_chunk {
                self.stack_chunks.push((instance.id.0, at.0 + self.base));
                return;
            }
            if !tally.gaps.wanted() {
                return;
            }
            let sample = Sample {
                at: at.0 + self.base,
                id: instance.id.0,
                next: 0,
            };
            if self.ids.is_some() {
                tally.gaps.add(sample);
            } else {
                self.before = Some((sample, slot));
            }
        }
    }

    #[inline(always)]
    fn object_array(&mut self, at: FileOffset, array: ObjectArray<'_>) {
        self.counts[HeapTag::ObjectArrayDump as usize] += 1;
        if self.object(at, array.id.0, array.trace) {
            let size = self.rules.array(BasicType::Object, array.len);
            let slot = self.class_slot(at, array.class.0);
            let tally = &mut self.classes[slot as usize];
            tally.arrays += 1;
            tally.array_bytes += size;
        }
    }

    #[inline(always)]
    fn primitive_array(&mut self, at: FileOffset, array: PrimitiveArray<'_>) {
        let tag = if array.has_data {
            HeapTag::PrimitiveArrayDump
        } else {
            HeapTag::PrimitiveArrayNoData
        };
        self.counts[tag as usize] += 1;
        if self.object(at, array.id.0, array.trace) {
            let tally = &mut self.primitives[array.element as usize];
            tally.arrays += 1;
            tally.bytes += self.rules.array(array.element, array.len);
        }
    }

    fn heap_info(&mut self, at: FileOffset, heap: u32, name: ObjectId) {
        self.counts[HeapTag::HeapDumpInfo as usize] += 1;
        self.heap_switches.push((at.0 + self.base, heap, name));
    }

    fn resync(&mut self) {
        self.before = None;
    }
}

impl UnitVisitor for ObjectPass<'_> {
    fn begin(&mut self, base: u64) {
        self.base = base;
        self.before = None;
    }
}

/// The tallies of all workers together.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    /// By class id, ascending.
    pub(crate) classes: Vec<ClassTally>,
    pub(crate) primitives: [PrimitiveTally; 12],
    /// By class id, ascending; the first one of an id.
    pub(crate) class_dumps: Vec<(u64, u64)>,
    /// In file order.
    pub(crate) roots: Vec<RawRoot>,
    pub(crate) counts: Vec<u64>,
    /// StackChunks: id and offset.
    pub(crate) stack_chunks: Vec<(u64, u64)>,
    /// Offsets of the records that repeat an id, ascending: the first record of an id counts.
    pub(crate) repetitions: Vec<u64>,
    /// The trace serial of all objects if they have the same, as in the dumps of a VM.
    pub(crate) one_trace: Option<u32>,
    /// In file order.
    pub(crate) heap_switches: Vec<(u64, u32, ObjectId)>,
}

impl Tallies {
    /// Finds the next object by address for each object that a class is measured by.
    pub(crate) fn measure(&mut self, ids: &FinishedIds) {
        let directory = Directory::new(&ids.numbers);
        let map = IdMap::new(ids.shift, ids.len, &ids.blocks, &ids.numbers, &directory);
        let next = |sample: &Sample| {
            let after = map.rank(sample.id)? + 1;
            (after < map.len()).then(|| map.select(after))
        };
        for class in &mut self.classes {
            class.gaps.measure(next);
        }
    }

    /// The same without the ids of all objects, for a file in the order of addresses: the next object by address is the
    /// next one in the file, unless a class object lies between, whose record is elsewhere.
    pub(crate) fn measure_in_order(&mut self) {
        let classes = &self.class_dumps;
        let next = |sample: &Sample| {
            let after = classes.partition_point(|class| class.0 <= sample.id);
            let class = classes.get(after).map_or(u64::MAX, |class| class.0);
            Some(sample.next.min(class))
        };
        for class in &mut self.classes {
            class.gaps.measure(next);
        }
    }
}

/// Whether the record at this offset repeats an id: only the first record of an id counts.
#[inline(always)]
pub(crate) fn is_repetition(repetitions: &[u64], at: u64) -> bool {
    !repetitions.is_empty() && repetitions.binary_search(&at).is_ok()
}

fn span(a: (u32, u32), b: (u32, u32)) -> (u32, u32) {
    (a.0.min(b.0), a.1.max(b.1))
}

/// Adds up the results of the workers; also returns their sets of ids.
pub(crate) fn merge(passes: Vec<ObjectPass<'_>>) -> (Tallies, Vec<IdSetBuilder>) {
    let mut sum = Tallies {
        counts: vec![0; 256],
        ..Tallies::default()
    };
    let mut sets = Vec::new();
    let mut traces = NO_TRACES;
    for pass in passes {
        traces = span(traces, pass.traces);
        sum.classes.extend(pass.classes);
        for (all, one) in sum.primitives.iter_mut().zip(pass.primitives) {
            all.arrays += one.arrays;
            all.bytes += one.bytes;
        }
        sum.class_dumps.extend(pass.class_dumps);
        sum.roots.extend(pass.roots);
        for (all, one) in sum.counts.iter_mut().zip(pass.counts) {
            *all += one;
        }
        sum.heap_switches.extend(pass.heap_switches);
        sum.stack_chunks.extend(pass.stack_chunks);
        sum.repetitions.extend(pass.repetitions);
        sets.extend(pass.ids);
    }
    sum.one_trace = (traces.0 >= traces.1).then_some(traces.1);
    sum.classes.sort_by_key(|c| c.id);
    sum.classes.dedup_by(|later, kept| {
        let same = later.id == kept.id;
        if same {
            kept.first = kept.first.min(later.first);
            kept.instances += later.instances;
            kept.total_field_bytes += later.total_field_bytes;
            kept.arrays += later.arrays;
            kept.array_bytes += later.array_bytes;
            kept.gaps.merge(std::mem::take(&mut later.gaps));
        }
        same
    });
    sum.class_dumps.sort_by_key(|c| (c.0, c.1));
    sum.class_dumps.dedup_by_key(|c| c.0);
    sum.repetitions.sort_unstable();
    sum.roots.sort_by_key(|r| r.at);
    sum.heap_switches.sort_by_key(|s| s.0);
    (sum, sets)
}
