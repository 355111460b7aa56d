//! Converts a heap dump of the VM to one of Tenure's while it is read: it has the ids of the profile and the stack that
//! allocated each tracked object, and it omits objects of the profiler. The VM's dumper is several times as fast as a
//! walk from outside, and the conversion adds about half of its time.

mod classes;
mod ids;
mod join;
mod stacks;
mod survey;
mod text;

use super::Context;
use super::binary::BinaryOutput;
use super::segments::Segments;
use super::text::TextOutput;
use crate::ids::{ObjectIds, trace_serial};
use classes::{Classes, Plan};
use hprof::{
    BasicType, ClassDump, FileMap, FileOffset, HeapTag, HeapVisitor, IdSize, Instance, ObjectArray,
    ObjectId, PrimitiveArray, Record, Root, SubRecord, Value, map_file, read_sub_record,
};
use ids::Ids;
use join::Join;
use rustc_hash::{FxHashMap, FxHashSet};
use stacks::Stacks;
use std::path::Path;
use vmpi::{ClassId, HeapSummary, NativeDump, ThreadId, TraceId, VmError};

/// Makes the VM dump to `path`, which must not exist and does not exist afterwards, and writes the dump. A note in the
/// output states for how many objects the stack is known.
///
/// # Errors
/// The VM cannot write this dump; nothing has been written then.
pub(super) fn write(
    out: &mut BinaryOutput,
    context: &mut Context<'_>,
    path: &Path,
) -> Result<(), VmError> {
    let text = dumped(context, path, |context, file, source| {
        let mut translation = Translation::new(out, context, source);
        translation.run(file, source.map);
        translation.to.finish();
        let Translation {
            join,
            objects,
            left_out,
            ..
        } = translation;
        summary(&join, objects, left_out, source.dump)
    })?;
    super::Emit::note(out, context, &text);
    Ok(())
}

/// As [`write`], in the text form. The note states only for how many objects the stack is unknown.
///
/// # Errors
/// As [`write`].
pub(super) fn write_text(
    out: &mut TextOutput,
    context: &mut Context<'_>,
    heap: HeapSummary,
    path: &Path,
) -> Result<(), VmError> {
    let text = dumped(context, path, |context, _, source| {
        text::write(out, context, heap, source)
    })?;
    if let Some(text) = text {
        super::Emit::note(out, context, &text);
    }
    Ok(())
}

/// The VM's dump, and its data about it.
struct Source<'a> {
    dump: &'a NativeDump,
    data: &'a [u8],
    map: &'a FileMap,
    top: &'a Top<'a>,
}

/// Makes the VM dump to `path`, and calls `body` with the dump.
fn dumped<T>(
    context: &mut Context<'_>,
    path: &Path,
    body: impl FnOnce(&mut Context<'_>, &hprof::source::Source, &Source<'_>) -> T,
) -> Result<T, VmError> {
    let file = Scratch(path);
    let mut dump = context.vm.native_dump(path)?;
    // A stack that was first seen after the traces were written is not in the file.
    for object in &mut dump.objects {
        if !context.catalog.knows_trace(object.trace) {
            object.trace = vmpi::TraceId::EMPTY;
        }
    }
    let broken = |reason: String| VmError::Failed {
        function: "reading the VM's heap dump",
        reason,
    };
    let opened = hprof::source::Source::open(file.0, &hprof::source::Unpack::default());
    let opened = opened.map_err(|e| broken(e.to_string()))?;
    let data = opened.bytes();
    let mut top = Top::default();
    let map = map_file(data, |record| {
        if let Some(record) = record.decode(IdSize::Eight) {
            top.take(record);
        }
    });
    let map = map.map_err(|error| broken(error.to_string()))?;
    if map.header.id_size != IdSize::Eight || map.segments.is_empty() {
        return Err(broken("no ids of 8 bytes or no segments".to_owned()));
    }
    if map.diagnostics.any_damage() {
        return Err(broken("it is damaged".to_owned()));
    }
    let source = Source {
        dump: &dump,
        data,
        map: &map,
        top: &top,
    };
    Ok(body(context, &opened, &source))
}

/// The note about the stacks.
fn summary(join: &Join<'_>, objects: u64, left_out: u64, dump: &NativeDump) -> String {
    let joined = join.joined;
    let mut text = format!(
        "heap dump by the VM: {joined} of {objects} objects carry the stack that allocated them"
    );
    let unfound = dump.objects.len() as u64 - joined.min(dump.objects.len() as u64);
    let without = unfound + dump.moved;
    if without > 0 {
        text += &format!(
            "; {without} tracked objects could not be found in it ({} had moved, {} were of \
             another class)",
            dump.moved, join.strangers
        );
    }
    if left_out > 0 {
        text += &format!("; {left_out} records could not be read");
    }
    text
}

/// The ids of the objects at the addresses of a dump.
fn ids_of(context: &mut Context<'_>, ids: ObjectIds, dump: &NativeDump) -> Ids {
    let vm = context.vm;
    let mut named = FxHashMap::default();
    for (address, handle) in &dump.handles {
        named.insert(*address, ids.id(*handle).0);
    }
    for (address, class) in &dump.classes {
        let mirror = context.catalog.class(vm, *class).info.mirror;
        named.insert(*address, ids.id(mirror).0);
    }
    for (address, thread) in &dump.threads {
        if let Ok(info) = vm.thread(*thread) {
            named.insert(*address, ids.id(info.object).0);
        }
    }
    let own: FxHashSet<u64> = dump.own.iter().copied().collect();
    Ids::new(ids.size, named, own, vm.info().max_memory)
}

/// Classes of primitive arrays, by type.
fn primitive_classes(top: &Top<'_>, numbers: &FxHashMap<u64, ClassId>) -> [ClassId; 12] {
    let mut primitive = [ClassId::default(); 12];
    for (class, name) in &top.classes {
        if let [b'[', kind] = top.names.get(name).copied().unwrap_or_default()
            && let Some(kind) = std::str::from_utf8(&[*kind])
                .ok()
                .and_then(vmpi::BasicType::from_descriptor)
        {
            primitive[kind as usize] = numbers.get(class).copied().unwrap_or_default();
        }
    }
    primitive
}

/// The profiler's numbers of threads.
struct Threads {
    by_object: FxHashMap<u64, ThreadId>,
    /// By thread serial of the VM.
    by_serial: FxHashMap<u32, ThreadId>,
}

impl Threads {
    fn of(dump: &NativeDump) -> Threads {
        Threads {
            by_object: dump.threads.iter().copied().collect(),
            by_serial: FxHashMap::default(),
        }
    }

    fn is_thread(&self, object: u64) -> bool {
        self.by_object.contains_key(&object)
    }

    /// The thread of a root. A thread that is unknown to the profiler gets a new number.
    fn of_root(&mut self, root: &Root) -> ThreadId {
        const UNHEARD: u32 = 1 << 24;
        if root.kind == HeapTag::RootThreadObject {
            let known = self.by_object.get(&root.object.0).copied();
            let thread = known.filter(|thread| *thread != ThreadId::NONE);
            let thread = thread.unwrap_or(ThreadId(UNHEARD + root.thread.0));
            self.by_serial.insert(root.thread.0, thread);
        }
        let known = self.by_serial.get(&root.thread.0);
        known.copied().unwrap_or(ThreadId::NONE)
    }
}

/// The VM's file, which is removed on drop.
struct Scratch<'a>(&'a Path);

impl Drop for Scratch<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.0);
    }
}

/// The records before the heap.
#[derive(Default)]
struct Top<'a> {
    names: FxHashMap<u64, &'a [u8]>,
    /// Name of each class object.
    classes: FxHashMap<u64, u64>,
    /// Class object of each serial.
    serials: FxHashMap<u32, u64>,
    stacks: Stacks,
}

impl<'a> Top<'a> {
    fn take(&mut self, record: Record<'a>) {
        match record {
            Record::Utf8 { id, bytes } => {
                self.names.insert(id.0, bytes);
            }
            Record::LoadClass {
                serial,
                class,
                name,
                ..
            } => {
                self.classes.insert(class.0, name.0);
                self.serials.insert(serial.0, class.0);
            }
            Record::Frame(frame) => self.stacks.frame(frame),
            Record::Trace { serial, frames, .. } => self.stacks.trace(serial, frames),
            _ => {}
        }
    }

    fn name(&self, id: ObjectId) -> std::borrow::Cow<'a, str> {
        hprof::decode_modified_utf8(self.names.get(&id.0).copied().unwrap_or_default())
    }
}

/// The state of the conversion.
struct Translation<'a, 'c, 'd> {
    to: Segments<'a, 'c>,
    top: &'d Top<'d>,
    ids: Ids,
    join: Join<'d>,
    classes: Classes,
    /// The profiler's number of each class object.
    numbers: FxHashMap<u64, ClassId>,
    /// Classes of primitive arrays, by type.
    primitive: [ClassId; 12],
    threads: Threads,
    /// The positions of the class dumps, which are written last.
    class_dumps: Vec<u64>,
    /// Roots, which are written after the objects, when it is known which objects are left out.
    roots: Vec<Root>,
    objects: u64,
    left_out: u64,
}

impl<'a, 'c, 'd> Translation<'a, 'c, 'd> {
    fn new(
        out: &'a mut BinaryOutput,
        context: &'a mut Context<'c>,
        source: &'d Source<'d>,
    ) -> Self {
        let (dump, top) = (source.dump, source.top);
        let numbers: FxHashMap<u64, ClassId> = dump.classes.iter().copied().collect();
        let ids = ids_of(context, out.ids, dump);
        Translation {
            to: Segments::new(out, context),
            top,
            ids,
            join: Join::new(&dump.objects),
            classes: Classes::default(),
            primitive: primitive_classes(top, &numbers),
            numbers,
            threads: Threads::of(dump),
            class_dumps: Vec::new(),
            roots: Vec::new(),
            objects: 0,
            left_out: 0,
        }
    }

    fn run(&mut self, source: &hprof::source::Source, map: &FileMap) {
        const WARM: u64 = 4 << 20;
        let mut buffer = Vec::new();
        for segment in &map.segments {
            // Reading into a buffer that is already in memory costs half as much as page faults in the mapping.
            buffer.resize(segment.len().min(WARM) as usize, 0);
            let is_copied = segment.len() <= WARM && source.read_at(segment.body, &mut buffer);
            let (data, from, end) = if is_copied {
                (&buffer[..], 0, segment.len())
            } else {
                (source.bytes(), segment.body, segment.end)
            };
            let first_class = self.class_dumps.len();
            if hprof::walk(data, IdSize::Eight, from, end, end, self).is_err() {
                self.left_out += 1;
            }
            if is_copied {
                for at in &mut self.class_dumps[first_class..] {
                    *at += segment.body;
                }
            }
        }
        for root in std::mem::take(&mut self.roots) {
            self.write_root(&root);
        }
        let ends: Vec<(u64, u64)> = map.segments.iter().map(|s| (s.body, s.end)).collect();
        for at in std::mem::take(&mut self.class_dumps) {
            let segment = ends.partition_point(|(body, _)| *body <= at);
            let Some((_, end)) = segment.checked_sub(1).and_then(|s| ends.get(s)) else {
                continue;
            };
            let read = read_sub_record(source.bytes(), IdSize::Eight, at, *end);
            if let Ok((SubRecord::Class(class), _)) = read {
                self.class_dump(&class);
            }
        }
    }

    fn write_root(&mut self, root: &Root) {
        let thread = self.threads.of_root(root);
        let is_class = root.kind == HeapTag::RootStickyClass;
        // JDK 17 names some classes that it does not dump.
        let is_missing = is_class && !self.classes.is_dumped(root.object.0);
        if is_missing || self.ids.is_own(root.object.0) {
            return;
        }
        // Threads are roots by themselves; their local roots are references of the profiler.
        let is_thread = self.threads.is_thread(root.object.0);
        if root.kind == HeapTag::RootJniLocal && is_thread {
            return;
        }
        let mut trace = trace_serial(TraceId::EMPTY);
        if root.kind == HeapTag::RootThreadObject {
            trace = self.thread_stack(thread, root.frame);
        }
        self.to.tag(root.kind);
        self.id(root.object);
        match root.kind {
            HeapTag::RootJniGlobal => self.to.reference(root.reference),
            HeapTag::RootThreadObject => {
                self.to.thread(thread);
                self.to.u4(trace.0);
            }
            HeapTag::RootJniLocal | HeapTag::RootJavaFrame => {
                self.to.thread(thread);
                self.to.u4(root.frame);
            }
            HeapTag::RootNativeStack | HeapTag::RootThreadBlock => self.to.thread(thread),
            _ => {}
        }
    }

    fn id(&mut self, address: ObjectId) {
        let id = self.ids.id(address.0);
        self.to.raw_id(id);
    }

    fn name(&mut self, id: ObjectId) {
        let name = self.top.name(id);
        self.to.name(&name);
    }

    /// Makes sure that the file has a LOAD CLASS for the class, and returns its serial.
    fn load(&mut self, address: u64) -> hprof::Serial {
        let (out, context) = (&mut *self.to.out, &mut *self.to.context);
        if let Some(class) = self.numbers.get(&address) {
            return out.passing_class(context, *class);
        }
        let name = self.top.classes.get(&address).copied().unwrap_or_default();
        let name = self.top.name(ObjectId(name));
        let id = ObjectId(self.ids.id(address));
        let (class, serial) = out.load_unheard(context, id, &hprof::readable_class_name(&name));
        self.numbers.insert(address, class);
        serial
    }

    fn class_dump(&mut self, class: &ClassDump<'_>) {
        let number = self.numbers.get(&class.id.0).copied().unwrap_or_default();
        let loaded_at = self.to.context.catalog.class(self.to.context.vm, number);
        let size = self.to.out.ids.size;
        self.to.tag(HeapTag::ClassDump);
        self.id(class.id);
        self.to.u4(trace_serial(loaded_at.trace).0);
        for address in [
            class.super_class,
            class.loader,
            class.signers,
            class.domain,
            ObjectId::NULL,
            ObjectId::NULL,
        ] {
            self.id(address);
        }
        let bytes = self.classes.instance_size(class.id.0, size);
        self.to.u4(bytes as u32);
        self.to.u2(0);
        self.to.u2(usize::from(class.statics.len));
        for (name, value) in class.statics() {
            self.name(name);
            self.to.body.push(value.kind as u8);
            self.value(value);
        }
        self.to.u2(usize::from(class.fields.len));
        for (name, kind) in class.fields() {
            self.name(name);
            self.to.body.push(kind as u8);
        }
    }

    fn value(&mut self, value: Value<'_>) {
        match value.as_id() {
            Some(id) => self.id(id),
            None if self.to.out.settings.primitives.fields => {
                self.to.body.extend_from_slice(value.bytes);
            }
            None => self.to.body.extend(value.bytes.iter().map(|_| 0)),
        }
    }
}

/// Writes the fields of an instance.
#[inline]
fn fields(body: &mut Vec<u8>, ids: &mut Ids, plan: &Plan, fields: &[u8], four: bool, keep: bool) {
    let mut rest = fields;
    for run in &plan.runs {
        if *run == 0 {
            let Some((head, tail)) = rest.split_first_chunk::<8>() else {
                return;
            };
            put_id(body, ids.id(u64::from_be_bytes(*head)), four);
            rest = tail;
        } else {
            let (head, tail) = rest.split_at(usize::from(*run).min(rest.len()));
            if keep {
                body.extend_from_slice(head);
            } else {
                body.resize(body.len() + head.len(), 0);
            }
            rest = tail;
        }
    }
}

#[inline]
fn put_id(body: &mut Vec<u8>, id: u64, four: bool) {
    if four {
        body.extend_from_slice(&(id as u32).to_be_bytes());
    } else {
        body.extend_from_slice(&id.to_be_bytes());
    }
}

impl HeapVisitor for Translation<'_, '_, '_> {
    fn root(&mut self, _: FileOffset, root: Root) {
        self.roots.push(root);
    }

    fn class(&mut self, at: FileOffset, class: &ClassDump<'_>) {
        if self.ids.is_own(class.id.0) {
            return;
        }
        self.load(class.id.0);
        self.classes.define(class);
        self.class_dumps.push(at.0);
    }

    fn instance(&mut self, _: FileOffset, instance: Instance<'_>) {
        let size = self.to.out.ids.size;
        let (numbers, ids) = (&self.numbers, &mut self.ids);
        let plan = self.classes.plan(instance.class.0, size, || {
            let number = numbers.get(&instance.class.0).copied().unwrap_or_default();
            (number, ids.id(instance.class.0))
        });
        let Some(plan) = plan.filter(|plan| plan.input == instance.fields.len()) else {
            if self.ids.is_own(instance.class.0) {
                self.ids.add_own(instance.id.0);
            } else {
                self.left_out += 1;
            }
            return;
        };
        if self.ids.is_own(instance.id.0) {
            return;
        }
        let four = size == IdSize::Four;
        let keep = self.to.out.settings.primitives.fields;
        self.objects += 1;
        self.to.tag(HeapTag::InstanceDump);
        let body = &mut self.to.body;
        body.reserve(32 + plan.output);
        put_id(body, self.ids.id(instance.id.0), four);
        let serial = self.join.serial(instance.id.0, plan.class);
        body.extend_from_slice(&serial.to_be_bytes());
        put_id(body, plan.id, four);
        body.extend_from_slice(&(plan.output as u32).to_be_bytes());
        fields(body, &mut self.ids, plan, instance.fields, four, keep);
    }

    fn object_array(&mut self, _: FileOffset, array: ObjectArray<'_>) {
        if self.ids.is_own(array.id.0) {
            return;
        }
        let class = self
            .numbers
            .get(&array.class.0)
            .copied()
            .unwrap_or_default();
        let four = self.to.out.ids.size == IdSize::Four;
        self.objects += 1;
        self.to.tag(HeapTag::ObjectArrayDump);
        self.id(array.id);
        let serial = self.join.serial(array.id.0, class);
        self.to.u4(serial);
        self.to.u4(array.len);
        self.id(array.class);
        let body = &mut self.to.body;
        body.reserve(array.elements.len());
        let (elements, _) = array.elements.as_chunks::<8>();
        for element in elements {
            put_id(body, self.ids.id(u64::from_be_bytes(*element)), four);
        }
    }

    fn primitive_array(&mut self, _: FileOffset, array: PrimitiveArray<'_>) {
        if self.ids.is_own(array.id.0) {
            return;
        }
        let keep = self.to.out.settings.primitives.arrays;
        let class = self.primitive.get(array.element as usize);
        let class = class.copied().unwrap_or_default();
        self.objects += 1;
        self.to.tag(HeapTag::PrimitiveArrayDump);
        self.id(array.id);
        let serial = self.join.serial(array.id.0, class);
        self.to.u4(serial);
        self.to.u4(if keep { array.len } else { 0 });
        self.to.body.push(array.element as u8);
        if keep {
            self.to.body.extend_from_slice(array.data);
        }
    }
}

const _: () = assert!(BasicType::Long as usize == 11, "types index an array of 12");
