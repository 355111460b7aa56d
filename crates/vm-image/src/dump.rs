//! Converts an image to a heap dump.

use crate::behind::{Direct, Sink, written_behind};
use crate::code::CodeCache;
use crate::damage::Damage;
use crate::fault::Fault;
use crate::frames::{Frame, Frames, Trace};
use crate::heap::Heap;
use crate::klass::{Class, Classes, Shape};
use crate::memory::{Address, Memory};
use crate::objects::{Objects, Wanted};
use crate::roots::{self, Registers};
use crate::segments::Segments;
use crate::summary::Summary;
use crate::symbols::Symbols;
use crate::threads::{self, Thread};
use crate::tracked::{self, Stacks, Words};
use crate::vm::Vm;
use crate::walk::Walk;
use hprof::{
    BasicType, ClassDump, Header, HeaderError, IdSize, ObjectId, Record, Rewriter, Serial,
    SubRecord, Table,
};
use rustc_hash::FxHashMap;
use std::io::{self, Write};
use std::time::SystemTime;

/// The trace of all objects, which has no frames.
pub(crate) const NO_TRACE: Serial = Serial(1);

/// The position of a VM, and the kernel's data about its threads.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The address of the first byte of `libjvm.so`.
    pub libjvm: Address,
    /// Registers of its threads, as far as they are known. If they are unknown for a thread, its whole stack is
    /// searched for references.
    pub registers: Vec<Registers>,
    /// All threads are at a safepoint: only the Java frames of their stacks have references.
    pub at_safepoint: bool,
    /// The position of the agent's data about objects, if there is an agent.
    pub tracked: Words,
}

/// Writes the heap of the VM in this memory as a dump in HPROF format.
///
/// # Errors
/// There is no VM that can be read, its process ends meanwhile, or the dump cannot be written. Damage is not an error.
pub fn dump(memory: &dyn Memory, place: &Place, out: impl Write + Send) -> Result<Summary, Fault> {
    dump_rewritten(memory, place, None, out)
}

/// Receives the beginning of a dump, as a separate dump with all names, classes and stack traces and without objects;
/// returns a rewriter that replaces the records.
pub type Plan<'p> = &'p dyn Fn(&[u8]) -> Result<Box<dyn Rewriter>, HeaderError>;

/// As [`dump()`], with names and sub-records passed through a rewriter, so that only its results reach the output. A
/// primitive array is in memory as a whole meanwhile.
///
/// # Errors
/// Those of [`dump()`].
pub fn dump_rewritten(
    memory: &dyn Memory,
    place: &Place,
    plan: Option<Plan<'_>>,
    out: impl Write + Send,
) -> Result<Summary, Fault> {
    let written = write(memory, place, plan, out);
    // Whatever is wrong then is a consequence.
    if memory.has_ended() {
        return Err(Fault::Ended);
    }
    written
}

fn write(
    memory: &dyn Memory,
    place: &Place,
    plan: Option<Plan<'_>>,
    out: impl Write + Send,
) -> Result<Summary, Fault> {
    let vm = Vm::open(memory, place.libjvm)?;
    let mut damage = Damage::default();
    let heap = Heap::read(&vm, &mut damage)?;
    let mut symbols = Symbols::new(&vm)?;
    let classes = Classes::read(&vm, &mut symbols, &mut damage)?;
    let threads = threads::read(&vm, &mut damage)?;
    let threads = traces(&vm, &classes, &mut symbols, threads, place, &mut damage);
    let (stacks, mut places) = tracked::read(&vm.memory, place.tracked, &mut symbols);
    let roots = roots::read(&vm, &heap, &classes, &threads, place, &mut damage);
    let mut summary = Summary {
        version: vm.version(),
        collector: heap.collector.to_owned(),
        threads: threads.len() as u64,
        traces: threads.iter().filter(|(_, trace)| trace.is_whole).count() as u64,
        ..Summary::default()
    };
    let mut head = Head {
        vm: &vm,
        classes: &classes,
        symbols: &mut symbols,
        threads: &threads,
        stacks: &stacks,
    };
    let write = |out: &mut dyn Sink| -> io::Result<()> {
        let rewriter = match plan {
            None => None,
            Some(plan) => {
                let mut bytes = Vec::new();
                let mut out = Direct(&mut bytes);
                let segments = head.write(&mut out, None, &mut Damage::default())?;
                segments.finish()?;
                Some(plan(&bytes).map_err(io::Error::other)?)
            }
        };
        let mut segments = head.write(out, rewriter.as_deref(), &mut damage)?;
        summary.classes = head.classes().count() as u64;
        let wanted = roots.iter().map(|root| root.object.0).collect();
        let mut objects = Objects::new(
            (&vm, &classes, &mut places),
            &mut segments,
            &mut summary,
            wanted,
            heap.reserved,
        );
        let mut walk = Walk::new(&vm, &classes, heap.marks.as_ref());
        let pieces = heap.pieces(threads.iter().map(|(thread, _)| thread));
        for piece in &pieces {
            walk.piece(*piece, &mut damage, &mut objects)?;
        }
        let (found, parked) = objects.found();
        summary.gap_bytes = walk.passed.gap;
        summary.unloaded = walk.passed.strangers;
        summary.dead_bytes = walk.passed.dead;
        for root in roots.iter().filter(|root| found.contains(&root.object.0)) {
            segments.sub_record(&SubRecord::Root(*root))?;
            summary.count_root(root.kind);
        }
        // Objects before a stack chunk were passed before its words were known.
        let mut parked = Wanted::new(parked);
        let mut walk = Walk::new(&vm, &classes, heap.marks.as_ref());
        for piece in pieces {
            if parked.any_in(piece) {
                // This damage has been counted.
                walk.piece(piece, &mut Damage::default(), &mut parked)?;
            }
        }
        for root in parked.found().into_iter().map(roots::of_parked) {
            segments.sub_record(&SubRecord::Root(root))?;
            summary.count_root(root.kind);
        }
        segments.finish()
    };
    let written = written_behind(out, write);
    written.map_err(Fault::io("cannot write the dump"))?;
    // The walk over large arrays has already counted some damage.
    summary.damage.add(damage);
    Ok(summary)
}

/// Threads with their frames.
fn traces(
    vm: &Vm<'_>,
    classes: &Classes,
    symbols: &mut Symbols,
    threads: Vec<Thread>,
    place: &Place,
    damage: &mut Damage,
) -> Vec<(Thread, Trace)> {
    let code = CodeCache::read(vm);
    if code.is_err() {
        damage.count("the code cannot be found, so there are no stack traces", 0);
    }
    let frames = code.as_ref().ok().map(|code| Frames { vm, classes, code });
    let mut trace = |thread: Thread| {
        let registers = Registers::of(&place.registers, &thread);
        let trace = frames
            .as_ref()
            .map(|frames| frames.of(symbols, &thread, registers));
        (thread, trace.unwrap_or_default())
    };
    threads.into_iter().map(&mut trace).collect()
}

fn header() -> Header {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Header {
        format: "JAVA PROFILE 1.0.2".to_owned(),
        id_size: IdSize::Eight,
        timestamp_ms: now.map_or(0, |now| now.as_millis() as u64),
        len: 0,
    }
}

/// The names that the VM's own dumps use for its additions to the static fields of a class.
struct Own {
    resolved_references: Address,
    init_lock: Address,
}

impl Own {
    fn new(symbols: &mut Symbols) -> Own {
        symbols.own(hprof::CONSERVATIVE_LOCALS);
        Own {
            resolved_references: symbols.own("<resolved_references>"),
            init_lock: symbols.own("<init_lock>"),
        }
    }
}

/// The beginning of a dump: names, classes and stack traces.
struct Head<'h, 'm> {
    vm: &'h Vm<'m>,
    classes: &'h Classes,
    symbols: &'h mut Symbols,
    threads: &'h [(Thread, Trace)],
    /// The stacks that allocated objects.
    stacks: &'h Stacks,
}

impl Head<'_, '_> {
    /// The classes of the dump.
    fn classes(&self) -> impl Iterator<Item = &Class> {
        self.classes.all.iter().filter(|class| class.is_in_dump())
    }

    fn write<'r>(
        &mut self,
        out: &'r mut dyn Sink,
        rewriter: Option<&'r dyn Rewriter>,
        damage: &mut Damage,
    ) -> io::Result<Segments<'r>> {
        let mut segments = Segments::new(out, &header(), rewriter)?;
        let own = Own::new(self.symbols);
        for (id, bytes) in self.symbols.all() {
            segments.text(ObjectId(id), bytes)?;
        }
        self.write_tables(&mut segments)?;
        for class in self.classes() {
            write_class(self.vm, self.classes, class, &own, &mut segments, damage)?;
        }
        Ok(segments)
    }

    /// Loaded classes and stack traces.
    fn write_tables(&self, segments: &mut Segments<'_>) -> io::Result<()> {
        let mut serials = FxHashMap::default();
        let in_dump = (0..)
            .zip(&self.classes.all)
            .filter(|(_, class)| class.is_in_dump());
        for (i, class) in in_dump {
            let serial = serials.len() as u32 + 1;
            serials.insert(i, serial);
            segments.record(&Record::LoadClass {
                serial: Serial(serial),
                class: ObjectId(class.mirror),
                trace: NO_TRACE,
                name: ObjectId(class.name),
            })?;
        }
        segments.record(&Record::Trace {
            serial: NO_TRACE,
            thread: Serial(0),
            frames: Vec::new(),
        })?;
        let mut last_frame = 0;
        for (i, (_, trace)) in self.threads.iter().enumerate() {
            let mut frames = Vec::new();
            for frame in &trace.frames {
                last_frame += 1;
                frames.push(ObjectId(last_frame));
                segments.record(&Record::Frame(frame_record(frame, last_frame, &serials)))?;
            }
            let serial = i as u32 + 1;
            segments.record(&Record::Trace {
                serial: Serial(serial + NO_TRACE.0),
                thread: Serial(serial),
                frames,
            })?;
        }
        self.write_stacks(segments, &serials, last_frame)
    }

    /// The stacks that allocated objects, after this many frames.
    fn write_stacks(
        &self,
        segments: &mut Segments<'_>,
        serials: &FxHashMap<u32, u32>,
        last_frame: u64,
    ) -> io::Result<()> {
        let mut by_name = FxHashMap::default();
        for (class, serial) in serials {
            let name = self.classes.all[*class as usize].name;
            by_name.extend(self.symbols.known(name).map(|name| (name, *serial)));
        }
        // Frames may refer to a class that was unloaded.
        let mut next = serials.len() as u32;
        let mut of_frames = Vec::new();
        for (id, name) in &self.stacks.classes {
            let known = by_name.get(&name[..]).copied();
            of_frames.push(known.unwrap_or_else(|| {
                next += 1;
                next
            }));
            if known.is_none() {
                segments.record(&Record::LoadClass {
                    serial: Serial(next),
                    class: *id,
                    trace: NO_TRACE,
                    name: *id,
                })?;
            }
        }
        let id = |frame: u32| ObjectId(last_frame + 1 + u64::from(frame));
        for (i, frame) in (0..).zip(&self.stacks.frames) {
            let class = of_frames.get(frame.class.0 as usize).copied();
            segments.record(&Record::Frame(hprof::Frame {
                id: id(i),
                class: Serial(class.unwrap_or(0)),
                ..*frame
            }))?;
        }
        for (serial, frames) in &self.stacks.traces {
            segments.record(&Record::Trace {
                serial: *serial,
                thread: Serial(0),
                frames: frames.iter().map(|frame| id(*frame)).collect(),
            })?;
        }
        Ok(())
    }
}

fn frame_record(frame: &Frame, id: u64, serials: &FxHashMap<u32, u32>) -> hprof::Frame {
    let method = &frame.method;
    hprof::Frame {
        id: ObjectId(id),
        method: ObjectId(method.name),
        signature: ObjectId(method.signature),
        source: ObjectId(method.source),
        class: Serial(serials.get(&method.class).copied().unwrap_or(0)),
        line: frame.line,
    }
}

/// The record of a class.
fn write_class(
    vm: &Vm<'_>,
    classes: &Classes,
    class: &Class,
    own: &Own,
    segments: &mut Segments<'_>,
    damage: &mut Damage,
) -> io::Result<()> {
    let is_array = matches!(class.shape, Shape::References(_) | Shape::Primitives(..));
    // The loader of an array is that of its elements, its superclass always `java.lang.Object`.
    let (origin, superclass) = if is_array {
        (classes.bottom(class), classes.object())
    } else {
        (Some(class), classes.superclass(class))
    };
    let kept = |offset: Option<u32>| {
        let mirror = origin
            .map(|class| class.mirror)
            .filter(|mirror| *mirror != 0)?;
        vm.reference_at(mirror.wrapping_add(offset?.into()))
    };
    let injected = classes.injected;
    let (mut statics, mut fields) = (Rows::default(), Rows::default());
    for field in class.fields.iter().filter(|field| !field.is_static) {
        fields.add(field.name, field.kind, &[]);
    }
    for field in class.fields.iter().filter(|field| field.is_static) {
        let at = class.mirror.wrapping_add(field.offset.into());
        let value = value_at(vm, field.kind, at);
        if value.is_none() {
            damage.count("a static field cannot be read", at);
        }
        let zero = vec![0; field.kind.size(8)];
        statics.add(field.name, field.kind, &value.unwrap_or(zero));
    }
    let mut reference = |name, value: Option<Address>| {
        if let Some(value) = value.filter(|value| *value != 0) {
            statics.add(name, BasicType::Object, &value.to_be_bytes());
        }
    };
    if !is_array {
        reference(
            own.resolved_references,
            resolved_references(vm, class.klass),
        );
        reference(own.init_lock, kept(injected.and_then(|of| of.init_lock)));
    }
    let record = ClassDump {
        id: ObjectId(class.mirror),
        trace: NO_TRACE,
        super_class: ObjectId(superclass.map_or(0, |class| class.mirror)),
        loader: ObjectId(origin.map_or(0, |class| class.loader)),
        signers: ObjectId(kept(injected.and_then(|of| of.signers)).unwrap_or(0)),
        domain: ObjectId(kept(injected.and_then(|of| of.domain)).unwrap_or(0)),
        reserved: [ObjectId::NULL; 2],
        instance_size: class.slots_size,
        constants: Table::new(0, &[], IdSize::Eight),
        statics: statics.table(),
        fields: fields.table(),
    };
    segments.sub_record(&SubRecord::Class(record))
}

/// The rows of a table of fields.
#[derive(Default)]
struct Rows {
    len: u16,
    bytes: Vec<u8>,
}

impl Rows {
    fn add(&mut self, name: Address, kind: BasicType, value: &[u8]) {
        // A class file cannot have more fields.
        let Some(len) = self.len.checked_add(1) else {
            return;
        };
        self.len = len;
        self.bytes.extend(name.to_be_bytes());
        self.bytes.push(kind as u8);
        self.bytes.extend(value);
    }

    fn table(&self) -> Table<'_> {
        Table::new(self.len, &self.bytes, IdSize::Eight)
    }
}

/// A value in big-endian order.
fn value_at(vm: &Vm<'_>, kind: BasicType, at: Address) -> Option<Vec<u8>> {
    if kind == BasicType::Object {
        return Some(vm.reference_at(at)?.to_be_bytes().into());
    }
    let mut bytes = vm.memory.bytes(at, kind.size(8))?;
    bytes.reverse();
    Some(bytes)
}

/// The array of the resolved constants of a class.
fn resolved_references(vm: &Vm<'_>, klass: Address) -> Option<Address> {
    let constants = vm.tables.find("InstanceKlass._constants")?;
    let pool = vm.memory.pointer(klass.wrapping_add(constants))?;
    if let Some(at) = vm.tables.find("ConstantPool._resolved_references") {
        // JDK 8: a JNI handle.
        let handle = vm.memory.pointer(pool.wrapping_add(at))?;
        return vm.memory.u64(handle);
    }
    let cache = vm.tables.find("ConstantPool._cache")?;
    let cache = vm.memory.pointer(pool.wrapping_add(cache))?;
    vm.reference_of(cache, "ConstantPoolCache._resolved_references")
}
