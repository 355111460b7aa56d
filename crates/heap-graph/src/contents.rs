//! The contents of all objects at the speed of reading: one walk over the file by several workers, in file order.
//! [`Heap::object`](Heap::object) finds each record from an anchor and is for few objects.

use crate::build::objects::is_repetition;
use crate::build::units::{Input, UnitVisitor, run_pass, units_of};
use crate::idmap::{Cursor, IdMap};
use crate::index::Tag;
use crate::layout::SizeRules;
use crate::{ClassIdx, Columns, Control, Heap, HeapError, ObjIdx};
use hprof::{
    BasicType, Bytes, FileOffset, HeapVisitor, Instance, ObjectArray, ObjectId, PrimitiveArray,
    Stretch, SubRecord, read_id, walk_stretch,
};
use rustc_hash::FxHashSet;

/// A worker of [`Heap::walk_contents`]. Every object of the dump, reachable or not, is passed once to one worker,
/// except class objects (their contents are in [`Heap::classes`]). Kinds that are switched off cost nothing.
pub trait ContentVisitor: Send {
    /// Whether instances are wanted.
    const INSTANCES: bool = true;
    /// Whether arrays of references are wanted.
    const OBJECT_ARRAYS: bool = true;
    /// Whether arrays of primitives are wanted.
    const PRIMITIVE_ARRAYS: bool = true;

    /// The classes whose instances are wanted; `None` for all. Most instances of other classes are skipped before they
    /// are looked up; a few may still be passed.
    fn classes(&self) -> Option<Vec<ClassIdx>> {
        None
    }
    /// An instance with its field bytes, big-endian, as [`Heap::slots`] lays them out.
    fn instance(&mut self, object: ObjIdx, class: ClassIdx, fields: &[u8]) {
        let _ = (object, class, fields);
    }
    /// An array of references: one id of [`Heap::id_size`] bytes per element.
    fn object_array(&mut self, object: ObjIdx, class: ClassIdx, elements: &[u8]) {
        let _ = (object, class, elements);
    }
    /// An array of primitives; `data` is big-endian, and empty when the producer left it out.
    fn primitive_array(&mut self, object: ObjIdx, element: BasicType, len: u32, data: &[u8]) {
        let _ = (object, element, len, data);
    }
}

impl<V: ContentVisitor> ContentVisitor for &mut V {
    const INSTANCES: bool = V::INSTANCES;
    const OBJECT_ARRAYS: bool = V::OBJECT_ARRAYS;
    const PRIMITIVE_ARRAYS: bool = V::PRIMITIVE_ARRAYS;

    fn classes(&self) -> Option<Vec<ClassIdx>> {
        (**self).classes()
    }
    fn instance(&mut self, object: ObjIdx, class: ClassIdx, fields: &[u8]) {
        (**self).instance(object, class, fields);
    }
    fn object_array(&mut self, object: ObjIdx, class: ClassIdx, elements: &[u8]) {
        (**self).object_array(object, class, elements);
    }
    fn primitive_array(&mut self, object: ObjIdx, element: BasicType, len: u32, data: &[u8]) {
        (**self).primitive_array(object, element, len, data);
    }
}

/// A walk over the contents of all objects that continues only on request, for callers that return one row after the
/// other. Made by [`Heap::content_steps`].
#[derive(Debug)]
pub struct ContentSteps {
    units: Vec<Stretch>,
    known: FxHashSet<u64>,
    /// The unit that is being read, and the offset where the next step begins.
    unit: usize,
    from: u64,
    done: u64,
    total: u64,
}

impl ContentSteps {
    /// Shows the next piece of the dump, to the end of its last record, to the visitor; false when nothing is left.
    pub fn next<V: ContentVisitor>(
        &mut self,
        heap: &Heap,
        visitor: &mut V,
    ) -> Result<bool, HeapError> {
        let Some(unit) = self.units.get(self.unit) else {
            return Ok(false);
        };
        let source = heap.source()?;
        let from = self.from.max(unit.from);
        let part = Stretch {
            from,
            until: unit
                .until
                .min(from.saturating_add(heap.options.tuning.content_step)),
            end: unit.end,
        };
        let mut worker = Worker::new(heap, visitor);
        let known = |id| self.known.contains(&id);
        let walked = walk_stretch(source.bytes(), heap.id_size(), part, &known, &mut worker);
        if source.has_failed() {
            heap.check()?;
        }
        let to = walked.next.max(part.until.min(unit.end));
        source.release(from, to);
        self.done += to - from;
        self.from = to;
        if to >= unit.until {
            self.unit += 1;
            self.from = 0;
        }
        Ok(true)
    }

    /// Bytes of the dump that were read, and those of all heap segments.
    pub fn progress(&self) -> (u64, u64) {
        (self.done.min(self.total), self.total)
    }
}

/// A field in the bytes of an instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    /// The class that declares it.
    pub declared_in: ClassIdx,
    /// Number of the field in that class.
    pub field: usize,
    /// Type.
    pub kind: BasicType,
    /// Offset of its first byte.
    pub offset: u32,
}

/// The class ids of wanted instances as a hash set of 4,096 bits. It may contain further ids.
struct ClassFilter([u64; 64]);

impl ClassFilter {
    fn new(heap: &Heap, wanted: Option<Vec<ClassIdx>>) -> ClassFilter {
        let ids = |wanted: Vec<ClassIdx>| wanted.into_iter().map(|c| heap.class(c).id).collect();
        let ids: Option<Vec<ObjectId>> = wanted.map(ids);
        // A class without an id stands for those that the dump does not define.
        let Some(ids) = ids.filter(|ids| !ids.contains(&ObjectId::NULL)) else {
            return ClassFilter([u64::MAX; 64]);
        };
        let mut filter = ClassFilter([0; 64]);
        for id in ids {
            let (word, bit) = ClassFilter::place(id);
            filter.0[word] |= bit;
        }
        filter
    }

    #[inline]
    fn place(id: ObjectId) -> (usize, u64) {
        let hash = id.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52;
        ((hash >> 6) as usize, 1 << (hash & 63))
    }

    #[inline]
    fn admits(&self, id: ObjectId) -> bool {
        let (word, bit) = ClassFilter::place(id);
        self.0[word] & bit != 0
    }
}

struct Worker<'h, V> {
    ids: IdMap<'h>,
    cursor: Cursor,
    columns: Columns<'h>,
    /// Offsets of the records that repeat an id: only the first one counts.
    repetitions: &'h [u64],
    base: u64,
    wanted: ClassFilter,
    visitor: V,
}

impl<'h, V: ContentVisitor> Worker<'h, V> {
    fn new(heap: &'h Heap, visitor: V) -> Worker<'h, V> {
        Worker {
            ids: heap.ids(),
            cursor: Cursor::default(),
            columns: heap.columns(),
            repetitions: heap.index.array(Tag::Repetitions),
            base: 0,
            wanted: ClassFilter::new(heap, visitor.classes()),
            visitor,
        }
    }

    #[inline]
    fn number(&mut self, at: FileOffset, id: ObjectId) -> Option<ObjIdx> {
        if is_repetition(self.repetitions, at.0 + self.base) {
            return None;
        }
        let number = self.ids.rank_after(&mut self.cursor, id.0);
        number.filter(|_| !id.is_null()).map(ObjIdx)
    }
}

impl<V: ContentVisitor> HeapVisitor for Worker<'_, V> {
    fn instance(&mut self, at: FileOffset, i: Instance<'_>) {
        if V::INSTANCES
            && self.wanted.admits(i.class)
            && let Some(object) = self.number(at, i.id)
        {
            let class = self.columns.class_of(object);
            self.visitor.instance(object, class, i.fields);
        }
    }

    fn object_array(&mut self, at: FileOffset, a: ObjectArray<'_>) {
        if V::OBJECT_ARRAYS
            && let Some(object) = self.number(at, a.id)
        {
            let class = self.columns.class_of(object);
            self.visitor.object_array(object, class, a.elements);
        }
    }

    fn primitive_array(&mut self, at: FileOffset, a: PrimitiveArray<'_>) {
        if V::PRIMITIVE_ARRAYS
            && let Some(object) = self.number(at, a.id)
        {
            self.visitor
                .primitive_array(object, a.element, a.len, a.data);
        }
    }
}

impl<V: ContentVisitor> UnitVisitor for Worker<'_, V> {
    fn begin(&mut self, base: u64) {
        self.base = base;
    }
}

impl Heap {
    /// Walks the contents of all objects once, in file order, with one visitor per worker; returns the visitors. One
    /// pass over the heap records of the file.
    pub fn walk_contents<V: ContentVisitor>(
        &self,
        phase: &'static str,
        control: &Control<'_>,
        mut visitor: impl FnMut() -> V,
    ) -> Result<Vec<V>, HeapError> {
        let source = self.source_under(control)?;
        let map = hprof::map_file(source.bytes(), |_| {})?;
        let snapshot = self.summary().snapshot.0.saturating_sub(1);
        let units = self.split(units_of(map.snapshot(snapshot)));
        let workers = self.options.thread_count().min(units.len()).max(1);
        let known: FxHashSet<u64> = self.classes().iter().map(|c| c.id.0).collect();
        let release = |from, to| source.release(from, to);
        let input = Input {
            data: source.bytes(),
            ids: self.id_size(),
            known_class: &|id| known.contains(&id),
            control: *control,
            read: &|at, out| source.read_at(at, out),
            release: Some(&release),
            tuning: &self.options.tuning,
        };
        let visitors = (0..workers).map(|_| Worker::new(self, visitor())).collect();
        let (workers, _) = run_pass(&input, phase, &units, visitors)?;
        self.check()?;
        Ok(workers.into_iter().map(|w| w.visitor).collect())
    }

    /// The same walk by one worker, a small piece at a time, in file order.
    pub fn content_steps(&self) -> Result<ContentSteps, HeapError> {
        let map = hprof::map_file(self.source()?.bytes(), |_| {})?;
        let snapshot = self.summary().snapshot.0.saturating_sub(1);
        let units = units_of(map.snapshot(snapshot));
        Ok(ContentSteps {
            total: units.iter().map(|u| u.until - u.from).sum(),
            units,
            known: self.classes().iter().map(|c| c.id.0).collect(),
            unit: 0,
            from: 0,
            done: 0,
        })
    }

    /// At most `most` elements of an array of references, from element `first` on; none for other objects.
    pub fn elements(
        &self,
        array: ObjIdx,
        first: usize,
        most: usize,
    ) -> Result<Vec<ObjectId>, HeapError> {
        let SubRecord::ObjectArray(array) = self.record(array)? else {
            return Ok(Vec::new());
        };
        let ids = self.id_size();
        let all = array.elements.chunks_exact(ids.bytes());
        Ok(all
            .skip(first)
            .take(most)
            .map(|e| read_id(e, ids))
            .collect())
    }

    /// Cuts large segments at records that the index knows the offsets of.
    fn split(&self, units: Vec<Stretch>) -> Vec<Stretch> {
        let most = self.options.tuning.divided;
        if units.iter().all(|u| u.until - u.from <= most) {
            return units;
        }
        let offsets = self.index.array::<u64>(Tag::AnchorOffsets);
        let step = (offsets.len() / 4096).max(1);
        let mut cuts: Vec<u64> = offsets.iter().step_by(step).copied().collect();
        cuts.sort_unstable();
        let mut out = Vec::new();
        for mut unit in units {
            let from = cuts.partition_point(|c| *c < unit.from.saturating_add(most));
            for cut in &cuts[from..] {
                if *cut >= unit.until {
                    break;
                }
                if *cut >= unit.from + most {
                    out.push(Stretch {
                        until: *cut,
                        ..unit
                    });
                    unit.from = *cut;
                }
            }
            out.push(unit);
        }
        out
    }

    /// The fields of an instance of a class in the order of its bytes: those of the class itself
    /// first, then those of the superclass, and so on. Those behind the last byte of any instance
    /// are left out, so that the fields of all classes together are no more than the file has.
    pub fn slots(&self, class: ClassIdx) -> Vec<Slot> {
        let ids = self.id_size().bytes();
        let (mut out, mut offset, mut next) = (Vec::new(), 0u32, Some(class));
        let bytes = self.class(class).instance_bytes.0;
        let mut depth = 0;
        while let Some(declared_in) = next.filter(|_| u64::from(offset) < bytes) {
            let info = self.class(declared_in);
            for (field, f) in info.fields.iter().enumerate() {
                if u64::from(offset) >= bytes {
                    break;
                }
                out.push(Slot {
                    declared_in,
                    field,
                    kind: f.kind,
                    offset,
                });
                offset = offset.saturating_add(f.kind.size(ids) as u32);
            }
            // A damaged dump can have a cycle of superclasses.
            depth += 1;
            next = info.super_class.filter(|_| depth < 4096);
        }
        out
    }

    /// The shallow size that an array of this length has in the heap's layout.
    pub fn array_bytes(&self, element: BasicType, len: u32) -> Bytes {
        Bytes(SizeRules::of(&self.summary().layout).array(element, len))
    }

    /// Bytes that a field of this type takes in the heap's layout.
    pub fn field_bytes(&self, kind: BasicType) -> Bytes {
        Bytes(SizeRules::of(&self.summary().layout).field(kind))
    }
}
