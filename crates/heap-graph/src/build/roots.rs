//! Turns root records into root objects, by the rules of the chosen model.

use super::classes::ClassTable;
use super::mapped::{Mapped, Objects};
use crate::bits::Bits;
use crate::idmap::IdMap;
use crate::{LayoutModel, ObjIdx, RootInfo};
use hprof::{DamageKind, Diagnostic, Diagnostics, HeapTag, Serial};
use rustc_hash::FxHashMap;

/// Roots by number, and the references that stand for thread-local roots.
pub(crate) struct Roots {
    /// Root objects, each once, in the order of their records.
    pub(crate) order: Vec<u64>,
    /// Conservative local variables: thread object and object.
    pub(crate) conservative: Vec<(Option<u64>, u64)>,
    pub(crate) set: Bits,
    /// Every root record whose object is in the dump.
    pub(crate) records: Vec<RootInfo>,
    pub(crate) dangling: u64,
    /// Whether every object is a root, because no record states which objects are alive.
    pub(crate) none: bool,
    /// By id of the thread object: ids of the objects that its stack refers to.
    pub(crate) thread_locals: FxHashMap<u64, Vec<u64>>,
    /// The same with object numbers: thread, object, kind, frame.
    pub(crate) local_edges: Vec<(u64, u64, HeapTag, u32)>,
    /// Thread object by thread serial.
    pub(crate) threads: FxHashMap<u32, ObjIdx>,
}

/// Kinds of roots on stacks. Except in the plain model they are references of the thread, as in MAT, so that a thread
/// retains its local variables.
pub(crate) fn is_local(kind: HeapTag) -> bool {
    matches!(
        kind,
        HeapTag::RootJniLocal
            | HeapTag::RootJavaFrame
            | HeapTag::RootNativeStack
            | HeapTag::RootThreadBlock
    )
}

impl Roots {
    pub(crate) fn resolve(
        mapped: &Mapped<'_>,
        objects: &Objects,
        table: &ClassTable,
        map: &IdMap<'_>,
        model: LayoutModel,
        found: &mut Diagnostics,
    ) -> Roots {
        let mut roots = Roots {
            order: Vec::new(),
            conservative: Vec::new(),
            set: Bits::new(map.len()),
            records: Vec::new(),
            dangling: 0,
            none: false,
            thread_locals: FxHashMap::default(),
            local_edges: Vec::new(),
            threads: FxHashMap::default(),
        };
        for raw in objects
            .tallies
            .roots
            .iter()
            .filter(|r| r.root.kind == HeapTag::RootThreadObject)
        {
            if let Some(object) = map.find(raw.root.object) {
                roots.threads.entry(raw.root.thread.0).or_insert(object);
            }
        }
        for (serial, (object, _)) in &mapped.symbols.started {
            if let Some(object) = map.find(*object) {
                roots.threads.entry(serial.0).or_insert(object);
            }
        }
        for raw in &objects.tallies.roots {
            let Some(object) = map.find(raw.root.object) else {
                roots.dangling += 1;
                continue;
            };
            let (kind, thread, frame) = (raw.root.kind, raw.root.thread, raw.root.frame);
            roots.records.push(RootInfo {
                object,
                kind,
                thread,
                frame,
            });
            let holder = roots.threads.get(&thread.0).copied();
            if kind == HeapTag::RootJavaFrame && mapped.symbols.conservative_locals {
                let thread = holder.filter(|_| model != LayoutModel::Plain);
                roots.conservative.push((thread.map(|t| t.0), object.0));
                let edge = thread.map(|thread| (thread.0, object.0, kind, frame));
                roots.local_edges.extend(edge);
                continue;
            }
            match holder.filter(|_| is_local(kind) && model != LayoutModel::Plain) {
                Some(thread) if thread == object => roots.add(object),
                Some(thread) => {
                    let locals = roots.thread_locals.entry(map.select(thread.0)).or_default();
                    locals.push(raw.root.object.0);
                    roots.local_edges.push((thread.0, object.0, kind, frame));
                }
                None if kind == HeapTag::RootUnreachable => {}
                None => roots.add(object),
            }
        }
        if model != LayoutModel::Plain {
            roots.system_classes(objects, table, map, found);
            roots.all_if_none(objects, map, found);
        }
        if !roots.conservative.is_empty() {
            found.push(Diagnostic::new(
                DamageKind::Note,
                0,
                "HEAP_DUMP",
                "ROOT_JAVA_FRAME",
                "",
                "local variables are conservative: they count where nothing else keeps an object alive",
            ));
        }
        roots
    }

    fn add(&mut self, object: ObjIdx) {
        if self.set.insert(object.0) {
            self.order.push(object.0);
        }
    }

    /// No root refers to an object of the dump.
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty() && self.conservative.is_empty()
    }

    /// A dump without roots, such as one whose end is missing, does not state which objects are alive. So all objects
    /// count, and none keeps another one alive.
    fn all_if_none(&mut self, objects: &Objects, map: &IdMap<'_>, found: &mut Diagnostics) {
        if !self.is_empty() || map.len() == 0 {
            return;
        }
        self.none = true;
        (0..map.len()).for_each(|object| self.add(ObjIdx(object)));
        // A dump without any root record is reported elsewhere.
        if !objects.tallies.roots.is_empty() {
            found.push(Diagnostic::new(
                DamageKind::Missing,
                0,
                "HEAP_DUMP",
                "",
                "",
                "no GC root names an object of the dump: all objects are counted, and what keeps them alive is unknown",
            ));
        }
    }

    /// In a dump without STICKY_CLASS roots (jhsdb), the boot loader's classes are roots nevertheless.
    fn system_classes(
        &mut self,
        objects: &Objects,
        table: &ClassTable,
        map: &IdMap<'_>,
        found: &mut Diagnostics,
    ) {
        if objects.tallies.counts[HeapTag::RootStickyClass as usize] > 0 || self.records.is_empty()
        {
            return;
        }
        let mut added = 0u64;
        for class in table
            .classes
            .iter()
            .filter(|c| c.dumped && c.loader.is_null() && !c.name.ends_with("[]"))
        {
            if let Some(object) = map.find(class.id)
                && !self.set.contains(object.0)
            {
                self.add(object);
                self.records.push(RootInfo {
                    object,
                    kind: HeapTag::RootStickyClass,
                    thread: Serial(0),
                    frame: u32::MAX,
                });
                added += 1;
            }
        }
        if added > 0 {
            found.push(Diagnostic::new(
                DamageKind::Note,
                0,
                "HEAP_DUMP",
                "",
                "",
                format!(
                    "no STICKY_CLASS roots: {added} classes of the boot loader are taken as roots"
                ),
            ));
        }
    }
}
