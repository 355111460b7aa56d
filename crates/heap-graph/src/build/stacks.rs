//! Threads, stacks and Android's heaps.

use super::classes::ClassTable;
use super::mapped::{Mapped, Objects};
use super::roots::Roots;
use crate::idmap::IdMap;
use crate::index::Detail;
use crate::model::{FrameInfo, Summary, ThreadInfo};
use hprof::{
    BasicType, Bytes, DamageKind, Diagnostic, Diagnostics, FileOffset, HeapTag, HeapVisitor,
    Instance, ObjectArray, PrimitiveArray, Serial, SubRecord, read_sub_record,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;

impl Detail {
    /// Keeps only the conservative local variables whose objects nothing else reaches. The others are often left by
    /// calls that have ended, and would be reported as keeping an object alive.
    pub(crate) fn keep_locals(&mut self, kept: &FxHashSet<u64>) {
        let is_local = |kind| kind == HeapTag::RootJavaFrame;
        self.roots
            .retain(|root| !is_local(root.kind) || kept.contains(&root.object.0));
        self.thread_locals
            .retain(|local| !is_local(local.2) || kept.contains(&local.1));
    }
}

/// Threads, stacks, roots and heaps for the index.
pub(crate) fn detail(
    mapped: &Mapped<'_>,
    objects: &Objects,
    roots: &Roots,
    map: &IdMap<'_>,
) -> Detail {
    let mut detail = Detail {
        roots: roots.records.clone(),
        thread_locals: roots.local_edges.clone(),
        ..Detail::default()
    };
    detail
        .thread_locals
        .sort_unstable_by_key(|l| (l.0, l.3, l.1));
    threads(mapped, objects, map, &mut detail);
    traces(mapped, &mut detail);
    let mut named = BTreeSet::new();
    for (at, heap, name) in &objects.tallies.heap_switches {
        if detail
            .heap_switches
            .last()
            .is_none_or(|last| last.1 != *heap)
        {
            detail.heap_switches.push((*at, *heap));
        }
        if named.insert(*heap) {
            detail
                .heap_names
                .push((*heap, mapped.symbols.text_or_id(*name)));
        }
    }
    detail
}

fn threads(mapped: &Mapped<'_>, objects: &Objects, map: &IdMap<'_>, detail: &mut Detail) {
    let mut seen = FxHashSet::default();
    for raw in objects
        .tallies
        .roots
        .iter()
        .filter(|r| r.root.kind == HeapTag::RootThreadObject)
    {
        if seen.insert(raw.root.thread.0) {
            let trace = Serial(if raw.root.frame == u32::MAX {
                0
            } else {
                raw.root.frame
            });
            detail.threads.push(ThreadInfo {
                object: map.find(raw.root.object),
                serial: raw.root.thread,
                trace,
                unrooted: false,
            });
        }
    }
    for (serial, (object, trace)) in &mapped.symbols.started {
        if seen.insert(serial.0) {
            detail.threads.push(ThreadInfo {
                object: map.find(*object),
                serial: *serial,
                trace: *trace,
                unrooted: false,
            });
        }
    }
    detail.threads.sort_by_key(|t| t.serial);
    // The stack of a thread may be known only by the thread serial in its TRACE record.
    let by_thread: FxHashMap<u32, Serial> = mapped
        .symbols
        .traces
        .iter()
        .filter(|t| t.1.0 != 0)
        .map(|t| (t.1.0, t.0))
        .collect();
    for thread in &mut detail.threads {
        let known = mapped
            .symbols
            .traces
            .binary_search_by_key(&thread.trace, |t| t.0)
            .is_ok();
        if !known && let Some(trace) = by_thread.get(&thread.serial.0) {
            thread.trace = *trace;
        }
    }
}

fn traces(mapped: &Mapped<'_>, detail: &mut Detail) {
    let symbols = &mapped.symbols;
    let class_names: FxHashMap<u32, u64> = symbols.loaded.iter().map(|c| (c.2, c.0)).collect();
    let mut numbers: FxHashMap<u64, u32> = FxHashMap::default();
    for (serial, _, frames) in &symbols.traces {
        let mut trace = Vec::with_capacity(frames.len());
        for id in frames {
            let number = *numbers.entry(id.0).or_insert_with(|| {
                let text = |id: hprof::ObjectId| {
                    if id.is_null() {
                        String::new()
                    } else {
                        symbols.text_or_id(id)
                    }
                };
                detail.frames.push(match symbols.frames.get(&id.0) {
                    Some(frame) => FrameInfo {
                        class: class_names
                            .get(&frame.class.0)
                            .map_or_else(String::new, |c| symbols.class_name(*c).0),
                        method: text(frame.method),
                        signature: text(frame.signature),
                        source: text(frame.source),
                        line: frame.line,
                    },
                    None => FrameInfo {
                        class: String::new(),
                        method: format!("frame@{:x}", id.0),
                        signature: String::new(),
                        source: String::new(),
                        line: 0,
                    },
                });
                detail.frames.len() as u32 - 1
            });
            trace.push(number);
        }
        detail.traces.push((serial.0, trace));
    }
}

/// States of `java.lang.VirtualThread` in which no stack is missing in the dump.
const NEW: i32 = 0;
const TERMINATED: i32 = 99;

/// JDK 21 writes no thread roots for virtual threads. They are found among the objects. The stack of a mounted or pinned
/// one is that of its carrier, of which it is a part; its local variables are roots. Parked ones have no stack in the
/// dump. They are reported, because objects that only they refer to look unreachable. In every JDK a virtual thread has a
/// carrier just while it is mounted; the numbers of the states differ.
pub(crate) fn find_virtual_threads(
    mapped: &Mapped<'_>,
    table: &ClassTable,
    map: &IdMap<'_>,
    found: &[(u64, u64)],
    detail: &mut Detail,
    summary: &mut Summary,
    diagnostics: &mut Diagnostics,
) {
    let traces = detail
        .threads
        .iter()
        .filter_map(|t| Some((t.object?, t.trace)));
    let rooted: FxHashMap<_, _> = traces.collect();
    let ids = mapped.map.header.id_size;
    for (id, at) in found {
        let Some(object) = map
            .find(hprof::ObjectId(*id))
            .filter(|o| !rooted.contains_key(o))
        else {
            continue;
        };
        let Ok((SubRecord::Instance(instance), _)) =
            read_sub_record(mapped.data, ids, *at, u64::MAX)
        else {
            continue;
        };
        let state = table.int_field(&instance, "state", ids.bytes());
        if state.is_none_or(|s| s == NEW || s == TERMINATED) {
            continue;
        }
        let carrier = table.field_bytes(&instance, "carrierThread", BasicType::Object, ids.bytes());
        let carrier = carrier.map(|bytes| hprof::read_id(bytes, ids));
        let carrier = carrier.filter(|id| !id.is_null());
        summary.parked_virtual_threads += u64::from(carrier.is_none());
        let trace = carrier.and_then(|id| rooted.get(&map.find(id)?));
        detail.threads.push(ThreadInfo {
            object: Some(object),
            serial: Serial(0),
            trace: trace.copied().unwrap_or(Serial(0)),
            unrooted: true,
        });
    }
    if summary.parked_virtual_threads > 0 {
        let why = match mapped.symbols.conservative_locals {
            true => {
                "are not in a dump that is read from memory: what they refer to counts as local variables of no thread"
            }
            false => {
                "this JVM did not write (JDK 21): objects held only by those stacks look unreachable"
            }
        };
        let threads = summary.parked_virtual_threads;
        let text = format!("{threads} parked virtual threads whose stacks {why}");
        let note = Diagnostic::new(DamageKind::Note, 0, "HEAP_DUMP", "", "", text);
        diagnostics.push(note);
    }
}

/// Objects and bytes per Android heap, by one more walk; dumps of other VMs have none.
pub(crate) fn android_heaps(
    mapped: &Mapped<'_>,
    objects: &Objects,
    table: &ClassTable,
    summary: &mut Summary,
) {
    if objects.tallies.heap_switches.is_empty() {
        return;
    }
    let mut counter = HeapCounter {
        objects,
        table,
        current: None,
        sums: FxHashMap::default(),
    };
    for unit in &objects.pass.units {
        hprof::walk_stretch(
            mapped.data,
            mapped.map.header.id_size,
            *unit,
            &|id| mapped.symbols.knows_class(id),
            &mut counter,
        );
    }
    for (heap, (count, bytes)) in counter.sums {
        let name = objects.tallies.heap_switches.iter().find(|s| s.1 == heap);
        let name = name.map_or_else(
            || format!("heap {heap}"),
            |s| mapped.symbols.text_or_id(s.2),
        );
        summary.heaps.insert(name, (count, Bytes(bytes)));
    }
}

struct HeapCounter<'a> {
    objects: &'a Objects,
    table: &'a ClassTable,
    current: Option<u32>,
    sums: FxHashMap<u32, (u64, u64)>,
}

impl HeapCounter<'_> {
    fn add(&mut self, size: u64) {
        if let Some(heap) = self.current {
            let sum = self.sums.entry(heap).or_default();
            sum.0 += 1;
            sum.1 += size;
        }
    }
}

impl HeapVisitor for HeapCounter<'_> {
    fn heap_info(&mut self, _: FileOffset, heap: u32, _: hprof::ObjectId) {
        self.current = Some(heap);
    }
    fn class(&mut self, _: FileOffset, class: &hprof::ClassDump<'_>) {
        let size = self
            .table
            .by_id
            .get(class.id.0)
            .and_then(|c| self.table.class_object_size.get(c as usize));
        self.add(size.copied().unwrap_or(0));
    }
    fn instance(&mut self, _: FileOffset, i: Instance<'_>) {
        let class = self
            .table
            .by_id
            .get(i.class.0)
            .and_then(|c| self.table.classes.get(c as usize));
        self.add(class.map_or(0, |c| c.instance_size.0));
    }
    fn object_array(&mut self, _: FileOffset, a: ObjectArray<'_>) {
        self.add(self.objects.rules.array(BasicType::Object, a.len));
    }
    fn primitive_array(&mut self, _: FileOffset, a: PrimitiveArray<'_>) {
        self.add(self.objects.rules.array(a.element, a.len));
    }
}
