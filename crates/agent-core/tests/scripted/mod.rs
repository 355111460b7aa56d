//! A VM that answers from tables: the recorder receives what a test puts in.

#![allow(dead_code)] // Each test file uses its part.

use agent_core::options::{Parsed, parse};
use agent_core::{Host, Recorder, WallTime};
use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex};
use vmpi::{
    AllocationRow, BasicType, ClassId, ClassInfo, ClassRecord, Control, CostRow, Event, FieldInfo,
    Frame, FreeRow, HeapSummary, HeapVisitor, Instance, LineEntry, Location, MethodId, MethodInfo,
    MonitorInfo, ObjectArray, ObjectHandle, PrimitiveArray, Root, SampleRow, SampleTiming,
    ThreadId, ThreadInfo, ThreadStack, Trace, TraceId, Value, Vm, VmError, VmInfo, WallDropped,
    WallRow,
};

/// An object of a heap walk.
#[derive(Clone, Debug)]
pub(crate) enum Thing {
    /// A root.
    Root(ObjectHandle, Root),
    /// A plain object: id, class, class object, trace, size, values.
    Object(
        ObjectHandle,
        ClassId,
        ObjectHandle,
        TraceId,
        u64,
        Vec<Value>,
    ),
    /// An array of references: id, class, class object, trace, size, elements.
    References(
        ObjectHandle,
        ClassId,
        ObjectHandle,
        TraceId,
        u64,
        Vec<ObjectHandle>,
    ),
    /// A primitive array: id, class, trace, element type, length, bytes.
    Primitives(ObjectHandle, ClassId, TraceId, BasicType, u32, Vec<u8>),
    /// A class: id, class, trace, [super, loader, signers, domain], statics, fields.
    Class(
        ObjectHandle,
        ClassId,
        TraceId,
        [ObjectHandle; 4],
        Vec<(FieldInfo, Value)>,
        Vec<FieldInfo>,
    ),
}

/// The counts of one flush.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    pub(crate) allocations: Vec<AllocationRow>,
    pub(crate) frees: Vec<FreeRow>,
    pub(crate) costs: Vec<CostRow>,
    pub(crate) samples: Vec<SampleRow>,
    pub(crate) sample_timing: SampleTiming,
    pub(crate) wall: Vec<WallRow>,
}

/// The tables behind the answers.
#[derive(Default)]
pub(crate) struct ScriptedVm {
    pub(crate) info: VmInfo,
    pub(crate) classes: Vec<(ClassInfo, Vec<FieldInfo>)>,
    class_ids: HashMap<(String, Option<String>, Vec<String>), ClassId>,
    pub(crate) methods: Vec<MethodInfo>,
    lines: HashMap<MethodId, BTreeSet<u32>>,
    method_ids: HashMap<(ClassId, String, String), MethodId>,
    pub(crate) threads: HashMap<ThreadId, ThreadInfo>,
    pub(crate) stacks: Vec<ThreadStack>,
    pub(crate) monitors: Vec<MonitorInfo>,
    pub(crate) heap: Vec<Thing>,
    pub(crate) summary: HeapSummary,
    pub(crate) batch: Mutex<Batch>,
    pub(crate) controls: Mutex<Vec<Control>>,
    pub(crate) collections: Mutex<u32>,
}

impl ScriptedVm {
    pub(crate) fn new() -> ScriptedVm {
        let info = VmInfo {
            stable_handles: true,
            max_memory: 1 << 30,
            ..VmInfo::default()
        };
        ScriptedVm {
            info,
            ..ScriptedVm::default()
        }
    }

    /// A class by signature, source file and fields; new classes get the next id.
    pub(crate) fn class(
        &mut self,
        signature: &str,
        source: Option<&str>,
        fields: &[&str],
    ) -> ClassId {
        let names = fields.iter().map(|name| (*name).to_owned()).collect();
        let key = (signature.to_owned(), source.map(str::to_owned), names);
        let next = ClassId(self.classes.len() as u32 + 1);
        *self.class_ids.entry(key).or_insert_with(|| {
            let info = ClassInfo {
                signature: signature.to_owned(),
                source: source.map(str::to_owned),
                ..ClassInfo::default()
            };
            let field = |name: &&str| FieldInfo {
                name: (*name).to_owned(),
                descriptor: "Ljava/lang/Object;".into(),
                is_static: false,
            };
            self.classes
                .push((info, fields.iter().map(field).collect()));
            next
        })
    }

    /// A method by class, name and descriptor.
    pub(crate) fn method(&mut self, class: ClassId, name: &str, descriptor: &str) -> MethodId {
        let next = MethodId(self.methods.len() as u32 + 1);
        let key = (class, name.to_owned(), descriptor.to_owned());
        *self.method_ids.entry(key).or_insert_with(|| {
            self.methods.push(MethodInfo {
                class,
                name: name.to_owned(),
                descriptor: descriptor.to_owned(),
                is_native: false,
            });
            next
        })
    }

    /// A frame whose bytecode offset is its line number.
    pub(crate) fn frame(&mut self, method: MethodId, line: Option<u32>) -> Frame {
        if let Some(line) = line {
            self.lines.entry(method).or_default().insert(line);
        }
        let location = line.map_or(Location::Unknown, Location::Bytecode);
        Frame { method, location }
    }
}

impl Vm for ScriptedVm {
    fn info(&self) -> &VmInfo {
        &self.info
    }
    fn class(&self, class: ClassId) -> Result<ClassInfo, VmError> {
        let at = (class.0 as usize).checked_sub(1);
        let found = at.and_then(|at| self.classes.get(at));
        found
            .map(|(info, _)| info.clone())
            .ok_or(VmError::Gone("class"))
    }
    fn fields(&self, class: ClassId) -> Result<Vec<FieldInfo>, VmError> {
        let at = (class.0 as usize).checked_sub(1);
        let found = at.and_then(|at| self.classes.get(at));
        found
            .map(|(_, fields)| fields.clone())
            .ok_or(VmError::Gone("class"))
    }
    fn method(&self, method: MethodId) -> Result<MethodInfo, VmError> {
        let at = (method.0 as usize).checked_sub(1);
        at.and_then(|at| self.methods.get(at))
            .cloned()
            .ok_or(VmError::Gone("method"))
    }
    fn lines(&self, method: MethodId) -> Result<Vec<LineEntry>, VmError> {
        let lines = self.lines.get(&method).cloned().unwrap_or_default();
        let entry = |line| LineEntry { start: line, line };
        Ok(lines.into_iter().map(entry).collect())
    }
    fn trace(&self, _: TraceId) -> Result<Trace, VmError> {
        Err(VmError::Gone("trace"))
    }
    fn threads(&self) -> Result<Vec<ThreadId>, VmError> {
        Ok(self.threads.keys().copied().collect())
    }
    fn thread(&self, thread: ThreadId) -> Result<ThreadInfo, VmError> {
        self.threads
            .get(&thread)
            .cloned()
            .ok_or(VmError::Gone("thread"))
    }
    fn stack(&self, _: ThreadId, _: u32) -> Result<Vec<Frame>, VmError> {
        Err(VmError::Unsupported("stack"))
    }
    fn all_stacks(&self) -> Result<Vec<ThreadStack>, VmError> {
        Ok(self.stacks.clone())
    }
    fn monitors(&self) -> Result<Vec<MonitorInfo>, VmError> {
        Ok(self.monitors.clone())
    }
    fn walk_heap(&self, visitor: &mut dyn HeapVisitor) -> Result<(), VmError> {
        self.heap.iter().for_each(|thing| visit(thing, visitor));
        Ok(())
    }
    fn native_dump(&self, _: &Path) -> Result<vmpi::NativeDump, VmError> {
        Err(VmError::Unsupported("dumper"))
    }
    fn heap_summary(&self) -> Result<HeapSummary, VmError> {
        Ok(self.summary)
    }
    fn force_gc(&self) -> Result<(), VmError> {
        *self.collections.lock().expect("lock") += 1;
        Ok(())
    }
    fn flush(&self, sink: &mut dyn FnMut(&Event<'_>)) -> Result<(), VmError> {
        let batch = std::mem::take(&mut *self.batch.lock().expect("lock"));
        sink(&Event::Allocations(&batch.allocations));
        sink(&Event::Frees(&batch.frees));
        sink(&Event::Costs(&batch.costs));
        sink(&Event::Samples {
            rows: &batch.samples,
            timing: batch.sample_timing,
        });
        sink(&Event::Wall {
            rows: &batch.wall,
            dropped: WallDropped {
                no_stack: 2,
                ..WallDropped::default()
            },
        });
        Ok(())
    }
    fn control(&self, request: Control) -> Result<(), VmError> {
        self.controls.lock().expect("lock").push(request);
        Ok(())
    }
    fn elapsed_ns(&self) -> u64 {
        338_000_000
    }
    fn thread_cpu_ns(&self, _: ThreadId) -> Result<u64, VmError> {
        Err(VmError::Unsupported("clock"))
    }
}

fn visit(thing: &Thing, visitor: &mut dyn HeapVisitor) {
    match thing {
        Thing::Root(object, why) => visitor.root(*object, *why),
        Thing::Object(object, class, class_object, trace, size, values) => {
            visitor.instance(&Instance {
                object: *object,
                class: *class,
                class_object: *class_object,
                trace: *trace,
                size: *size,
                values,
            });
        }
        Thing::References(object, class, class_object, trace, size, elements) => {
            visitor.object_array(&ObjectArray {
                object: *object,
                class: *class,
                class_object: *class_object,
                trace: *trace,
                size: *size,
                elements,
            });
        }
        Thing::Primitives(object, class, trace, element, len, bytes) => {
            visitor.primitive_array(&PrimitiveArray {
                object: *object,
                class: *class,
                trace: *trace,
                size: bytes.len() as u64 + 16,
                element: *element,
                len: *len,
                bytes,
            });
        }
        Thing::Class(
            object,
            class,
            trace,
            [superclass, loader, signers, domain],
            statics,
            fields,
        ) => {
            visitor.class(&ClassRecord {
                object: *object,
                class: *class,
                trace: *trace,
                superclass: *superclass,
                loader: *loader,
                signers: *signers,
                protection_domain: *domain,
                statics,
                fields,
                instance_size: 16,
            });
        }
    }
}

/// Bytes that several owners see.
#[derive(Clone, Default)]
pub(crate) struct Shared(pub(crate) Arc<Mutex<Vec<u8>>>);

impl Shared {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().expect("lock").clone()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("lock").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A process at a fixed time that stores its messages.
pub(crate) struct Process(pub(crate) Shared);

impl Host for Process {
    fn now(&self) -> WallTime {
        WallTime {
            unix_ms: 1_795_237_044_000,
            offset_seconds: 0,
        }
    }
    fn say(&mut self, text: &str) {
        let _ = self.0.write_all(text.as_bytes());
    }
}

/// A recorder with its output and its messages.
pub(crate) fn recorder(options: &str, environment: Option<&str>) -> (Recorder, Shared, Shared) {
    let Ok(Parsed::Run(options)) = parse(options, environment) else {
        panic!("{options}")
    };
    let (out, printed) = (Shared::default(), Shared::default());
    let host = Box::new(Process(printed.clone()));
    (
        Recorder::new(*options, Box::new(out.clone()), host),
        out,
        printed,
    )
}
