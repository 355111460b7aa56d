//! The second pass writes the references of every object as a row of dense numbers.

use super::cell::Cell;
use super::classes::{ClassTable, class_references};
use super::facts::{LARGE, Run, SharedObjectFacts};
use super::objects::is_repetition;
use super::units::UnitVisitor;
use super::varint::RowWriter;
use crate::bits::Bits;
use crate::idmap::{IdMap, NO_NUMBER};
use crate::layout::SizeRules;
use crate::raw::{Block, SharedRows, SharedSlice};
use crate::{LayoutModel, Tuning};
use hprof::{
    BasicType, ClassDump, DamageKind, Diagnostic, Diagnostics, FileOffset, HeapVisitor, IdSize,
    Instance, ObjectArray, ObjectId, PrimitiveArray, Root, Serial, read_id,
};
use rustc_hash::FxHashMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// The data that all workers of the pass share.
pub(crate) struct Shared<'a, C> {
    pub(crate) ids: IdSize,
    pub(crate) map: &'a IdMap<'a>,
    pub(crate) classes: &'a ClassTable,
    pub(crate) rules: &'a SizeRules,
    pub(crate) roots: &'a Bits,
    /// Per class: its ordinal among the classes whose object is in the dump and not a root; u32::MAX for others.
    pub(crate) class_ordinal: &'a [u32],
    /// By id of the thread object: the objects that its stack refers to.
    pub(crate) thread_locals: &'a FxHashMap<u64, Vec<u64>>,
    pub(crate) cells: SharedSlice<'a, C>,
    pub(crate) rows: SharedRows<'a>,
    pub(crate) facts: SharedObjectFacts<'a>,
    /// Set if a row offset does not fit into a cell: the pass is repeated with wider cells.
    pub(crate) too_long: AtomicBool,
    /// `java.lang.VirtualThread`, `u32::MAX` if there is none.
    pub(crate) virtual_thread: u32,
    /// Offsets of the records that repeat an id, ascending.
    pub(crate) repetitions: &'a [u64],
    pub(crate) tuning: &'a Tuning,
}

/// How many ids wait for their numbers while their cache lines are fetched.
const WINDOW: usize = 384;

/// An object whose references are in the window.
#[derive(Clone, Copy, Default)]
struct Waiting {
    offset: u64,
    class: u32,
    /// Whether the object has an edge to its class.
    class_edge: bool,
    first: u32,
    /// Size of an array, 0 for other objects.
    size: u64,
    trace: Serial,
}

/// A worker of the second pass.
pub(crate) struct ReferencePass<'a, C> {
    shared: &'a Shared<'a, C>,
    window: Vec<u64>,
    waiting: Vec<Waiting>,
    block: Option<Block<'a>>,
    last: Option<(u64, u32)>,
    before: u64,
    run: Run,
    /// The first failure to store facts about objects.
    pub(crate) failed: std::io::Result<()>,
    /// Is added to every offset.
    base: u64,
    /// Anchors: number and file offset of objects from which positions are counted.
    pub(crate) anchors: Vec<(u64, u64)>,
    /// Number and size, in units, of the large arrays.
    pub(crate) large: Vec<(u64, u64)>,
    marker: std::marker::PhantomData<C>,
    /// Ids whose numbers were looked up.
    pub(crate) ranked: u64,
    /// References to objects that are not in the dump.
    pub(crate) dangling: u64,
    /// Virtual threads: id and file offset.
    pub(crate) virtual_threads: Vec<(u64, u64)>,
    /// Instances that are shorter than their class.
    pub(crate) diagnostics: Diagnostics,
}

impl<'a, C: Cell> ReferencePass<'a, C> {
    pub(crate) fn new(shared: &'a Shared<'a, C>) -> ReferencePass<'a, C> {
        ReferencePass {
            shared,
            window: Vec::with_capacity(WINDOW * 2),
            waiting: Vec::with_capacity(WINDOW),
            block: None,
            last: None,
            before: u64::MAX,
            run: Run::default(),
            failed: Ok(()),
            base: 0,
            anchors: Vec::new(),
            large: Vec::new(),
            marker: std::marker::PhantomData,
            ranked: 0,
            dangling: 0,
            virtual_threads: Vec::new(),
            diagnostics: Diagnostics::default(),
        }
    }

    #[inline(always)]
    fn class(&mut self, id: u64) -> u32 {
        if let Some((last, class)) = self.last
            && last == id
        {
            return class;
        }
        let class = self.shared.classes.by_id.get(id).unwrap_or(u32::MAX);
        self.last = Some((id, class));
        class
    }

    #[inline(always)]
    fn push(&mut self, id: u64) {
        if id != 0 {
            self.window.push(self.shared.map.spot(id));
        }
    }

    /// An object begins; its references are pushed next.
    #[inline(always)]
    fn source(&mut self, at: FileOffset, id: u64, object: Waiting) -> bool {
        if self.is_repetition(at) {
            return false;
        }
        if self.window.len() >= WINDOW {
            self.flush();
        }
        let first = self.window.len() as u32;
        self.waiting.push(Waiting {
            offset: at.0 + self.base,
            first,
            ..object
        });
        self.window.push(self.shared.map.spot(id));
        true
    }

    /// Whether the id was seen before. Records after such a record are not counted from an anchor before it.
    #[inline(always)]
    fn is_repetition(&mut self, at: FileOffset) -> bool {
        let is_one = is_repetition(self.shared.repetitions, at.0 + self.base);
        if is_one {
            self.resync();
        }
        is_one
    }

    /// Reports an instance whose last fields are missing.
    #[cold]
    #[inline(never)]
    fn too_short(&mut self, at: FileOffset, class: u32, least: u32, found: usize) {
        let name = &self.shared.classes.classes[class as usize].name;
        self.diagnostics.push(Diagnostic::new(
            DamageKind::BadLength,
            at.0 + self.base,
            "INSTANCE_DUMP",
            "field bytes",
            format!("at least {least}, those of class {name}"),
            found.to_string(),
        ));
    }

    /// A block that a row of at most `entries` entries fits into.
    fn room(&mut self, entries: usize) -> Option<Block<'a>> {
        let need = (entries + 2) * C::ENTRY;
        let mut block = self.block.take();
        if block
            .as_mut()
            .is_none_or(|block| block.bytes().len() < need)
        {
            let size = (need as u64).max(self.shared.tuning.row_block);
            block = self.shared.rows.take(size, C::LIMIT);
            if block.is_none() {
                self.shared.too_long.store(true, Ordering::Relaxed);
            }
        }
        block
    }

    fn flush(&mut self) {
        let mut window = std::mem::take(&mut self.window);
        self.shared.map.ranks(&mut window);
        let waiting = std::mem::take(&mut self.waiting);
        for (i, object) in waiting.iter().enumerate() {
            let end = waiting
                .get(i + 1)
                .map_or(window.len(), |next| next.first as usize);
            let targets = &window[object.first as usize + 1..end];
            self.write_row(object, window[object.first as usize], targets.len(), |k| {
                targets[k]
            });
        }
        self.window = window;
        self.waiting = waiting;
        self.window.clear();
        self.waiting.clear();
    }

    /// Writes the facts and the row of the object with this number; `target` gives the number of each reference.
    #[inline(always)]
    fn write_row(
        &mut self,
        object: &Waiting,
        source: u64,
        len: usize,
        mut target: impl FnMut(usize) -> u64,
    ) {
        let shared = self.shared;
        if source == NO_NUMBER {
            return;
        }
        if source.is_multiple_of(64) || source != self.before.wrapping_add(1) {
            self.anchors.push((source, object.offset));
        }
        self.before = source;
        let units = object.size / shared.rules.alignment;
        let short = u16::try_from(units).unwrap_or(LARGE);
        if short == LARGE {
            self.large.push((source, units));
        }
        let trace = object.trace.0;
        let stored = self
            .run
            .push(&shared.facts, source, object.class, short, trace);
        if stored.is_err() {
            self.failed = stored;
        }
        let Some(mut block) = self.room(len) else {
            return;
        };
        let out = block.bytes();
        let mut row = RowWriter::new(source);
        self.ranked += len as u64 + 1;
        let ordinal = shared
            .class_ordinal
            .get(object.class as usize)
            .copied()
            .unwrap_or(u32::MAX);
        if ordinal != u32::MAX && object.class_edge {
            row.class(u64::from(ordinal));
        }
        let mut at = 0;
        for k in 0..len {
            let target = target(k);
            if target == NO_NUMBER {
                self.dangling += 1;
            } else if !shared.roots.contains(target) {
                at = row.target(out, at, target);
            }
        }
        let (cell, used) = match row.finish(out, at) {
            Some(end) => (C::new(block.start()), end),
            None => (C::NONE, 0),
        };
        shared.cells.set(source, cell);
        self.block = Some(block.after(used));
    }
}

impl<C: Cell> HeapVisitor for ReferencePass<'_, C> {
    fn class(&mut self, at: FileOffset, dump: &ClassDump<'_>) {
        let shared = self.shared;
        let plain = shared.rules.model == LayoutModel::Plain;
        // In the plain model a class object has no edge to java.lang.Class.
        let object = Waiting {
            class: shared.classes.class_class,
            class_edge: !plain,
            trace: dump.trace,
            ..Waiting::default()
        };
        if !self.source(at, dump.id.0, object) {
            return;
        }
        class_references(dump, shared.rules.model).for_each(|id| self.push(id.0));
    }

    #[inline(always)]
    fn instance(&mut self, at: FileOffset, instance: Instance<'_>) {
        let class = self.class(instance.class.0);
        let chunks = &self.shared.classes.stack_chunks;
        let size = if chunks.is_empty() {
            0
        } else {
            chunks.get(&instance.id.0).copied().unwrap_or(0)
        };
        let object = Waiting {
            class,
            class_edge: true,
            size,
            trace: instance.trace,
            ..Waiting::default()
        };
        if !self.source(at, instance.id.0, object) {
            return;
        }
        let shared = self.shared;
        if class == shared.virtual_thread {
            self.virtual_threads.push((instance.id.0, at.0 + self.base));
        }
        let least = shared.classes.least_bytes.get(class as usize);
        let least = least.copied().unwrap_or(0);
        if instance.fields.len() < least as usize {
            self.too_short(at, class, least, instance.fields.len());
        }
        let offsets: &[u32] = shared
            .classes
            .references
            .get(class as usize)
            .map_or(&[], |o| o);
        for offset in offsets {
            if let Some(bytes) = instance.fields.get(*offset as usize..)
                && bytes.len() >= shared.ids.bytes()
            {
                self.push(read_id(bytes, shared.ids).0);
            }
        }
        if !shared.thread_locals.is_empty()
            && let Some(locals) = shared.thread_locals.get(&instance.id.0)
        {
            locals.iter().for_each(|local| self.push(*local));
        }
    }

    #[inline(always)]
    fn object_array(&mut self, at: FileOffset, array: ObjectArray<'_>) {
        let class = self.class(array.class.0);
        let size = self.shared.rules.array(BasicType::Object, array.len);
        let width = self.shared.ids.bytes();
        let object = Waiting {
            offset: at.0 + self.base,
            class,
            class_edge: true,
            first: 0,
            size,
            trace: array.trace,
        };
        if array.len as usize > self.shared.tuning.long_array {
            self.flush();
            if !self.is_repetition(at) {
                let shared = self.shared;
                let id = shared.map.rank(array.id.0).unwrap_or(NO_NUMBER);
                // Look up the numbers of the next elements.
                let mut next = Vec::with_capacity(WINDOW);
                let ids = array.elements.chunks_exact(width);
                let nulls = ids.filter(|e| read_id(e, shared.ids).is_null()).count() as u64;
                let element = |k: usize| {
                    if k.is_multiple_of(WINDOW) {
                        let rest = array.elements[k * width..].chunks_exact(width).take(WINDOW);
                        next.clear();
                        next.extend(rest.map(|e| match read_id(e, shared.ids) {
                            ObjectId::NULL => NO_NUMBER,
                            id => shared.map.spot(id.0),
                        }));
                        shared.map.ranks(&mut next);
                    }
                    next.get(k % WINDOW).copied().unwrap_or(NO_NUMBER)
                };
                self.write_row(&object, id, array.len as usize, element);
                // The array reserved a block that it fills in part only.
                let rest = self.block.take();
                self.block = rest.and_then(|rest| shared.rows.give_back(rest));
                self.dangling = self.dangling.saturating_sub(nulls);
            }
            return;
        }
        if !self.source(at, array.id.0, object) {
            return;
        }
        for element in array.elements.chunks_exact(width) {
            self.push(read_id(element, self.shared.ids).0);
        }
    }

    #[inline(always)]
    fn primitive_array(&mut self, at: FileOffset, array: PrimitiveArray<'_>) {
        let class = self.shared.classes.primitive[array.element as usize];
        let size = self.shared.rules.array(array.element, array.len);
        // In MAT's model a primitive array refers to its class, although the file has no class id for it.
        let class_edge = self.shared.rules.model == LayoutModel::Mat;
        let object = Waiting {
            class,
            class_edge,
            size,
            trace: array.trace,
            ..Waiting::default()
        };
        self.source(at, array.id.0, object);
    }

    /// Only objects are counted from an anchor, not other records.
    fn root(&mut self, _: FileOffset, _: Root) {
        self.resync();
    }

    /// All objects that are counted from one anchor are in one Android heap.
    fn heap_info(&mut self, _: FileOffset, _: u32, _: ObjectId) {
        self.resync();
    }

    fn resync(&mut self) {
        self.flush();
        self.before = u64::MAX;
    }
}

impl<C: Cell> UnitVisitor for ReferencePass<'_, C> {
    fn begin(&mut self, base: u64) {
        self.base = base;
        self.before = u64::MAX;
    }

    fn end(&mut self) {
        self.flush();
        let stored = self.run.store(&self.shared.facts);
        if stored.is_err() {
            self.failed = stored;
        }
    }
}
