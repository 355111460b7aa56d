//! One event of the document with its data.
//!
//! Frequent events are small and plain; rare ones own their data, so that an event is valid longer than the buffer it
//! was read from. Units and meanings are those of section 3 of the document; additions of this crate are marked.

use crate::event::GcKind;
use crate::ids::{ArenaId, ObjectHandle, TraceId};
use crate::info::BasicType;
use crate::kind::EventKind;

/// Defines one id type of 64 bits, for pointers in the C interface.
macro_rules! pointer_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);
    };
}

pointer_id! {
    /// A thread as the interface identifies it (`JNIEnv *`); 0 is "no thread".
    EnvId
}
pointer_id! {
    /// A method (`jmethodID`); 0 is "unknown".
    JMethodId
}
pointer_id! {
    /// A JNI global or weak global reference (`jobject`).
    RefId
}
pointer_id! {
    /// A raw monitor (`JVMPI_RawMonitor`).
    RawMonitorId
}

/// An object is allocated, or an existing one is described on request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectAlloc {
    /// Its new id.
    pub object: ObjectHandle,
    /// Its class; the element class for an array of objects, null for a primitive array and for `java.lang.Class`
    /// itself.
    pub class: ObjectHandle,
    /// Its size in bytes.
    pub size: u64,
    /// Its arena.
    pub arena: ArenaId,
    /// The stack that allocated it, an addition; [`TraceId::EMPTY`] if it is not recorded.
    pub trace: TraceId,
    /// The element type, if it is an array.
    pub array: Option<BasicType>,
}

/// An object gets a new id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectMove {
    /// The old id.
    pub object: ObjectHandle,
    /// The arena it leaves.
    pub arena: ArenaId,
    /// The new id.
    pub new_object: ObjectHandle,
    /// The arena it enters, perhaps the same.
    pub new_arena: ArenaId,
}

/// A field as a class declares it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldDef {
    /// Its name.
    pub name: String,
    /// Its descriptor.
    pub signature: String,
}

/// A method as a class declares it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MethodDef {
    /// Its name.
    pub name: String,
    /// Its descriptor.
    pub signature: String,
    /// First source line, -1 for native and abstract methods.
    pub start_line: i32,
    /// Last source line, -1 likewise.
    pub end_line: i32,
    /// Its id.
    pub method: JMethodId,
}

/// A class is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassLoad {
    /// The class object.
    pub class: ObjectHandle,
    /// Its name with dots.
    pub name: String,
    /// The source file, empty if the class states none.
    pub source: String,
    /// How many interfaces it implements directly.
    pub interfaces: u32,
    /// Its methods.
    pub methods: Vec<MethodDef>,
    /// Its static fields, in the order of dumps.
    pub statics: Vec<FieldDef>,
    /// Its instance fields, in the order of dumps.
    pub instances: Vec<FieldDef>,
}

impl ClassLoad {
    /// How many of the static fields are references; `None` if the type of one is unknown.
    #[must_use]
    pub fn static_references(&self) -> Option<u32> {
        let mut count = 0;
        for field in &self.statics {
            let kind = BasicType::from_descriptor(&field.signature)?;
            count += u32::from(kind == BasicType::Object);
        }
        Some(count)
    }
}

/// A thread starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadStart {
    /// The thread.
    pub env: EnvId,
    /// The `Thread` object.
    pub object: ObjectHandle,
    /// Its name.
    pub name: String,
    /// Its group.
    pub group: String,
    /// The name of its parent, empty if not known.
    pub parent: String,
}

/// Compiled code of a method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompiledMethod {
    /// The method.
    pub method: JMethodId,
    /// The address of its code.
    pub address: u64,
    /// Bytes of code.
    pub size: u32,
    /// Offset in the code and source line, by offset.
    pub lines: Vec<(u32, i32)>,
}

/// Operands of an instruction, reported by an `INSTRUCTION_START`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// None.
    None,
    /// A conditional branch, and whether it is taken.
    If(bool),
    /// A `tableswitch`.
    TableSwitch {
        /// The value of the switch.
        key: i32,
        /// The lowest case.
        low: i32,
        /// The highest case.
        high: i32,
    },
    /// A `lookupswitch`.
    LookupSwitch {
        /// The chosen pair.
        chosen: i32,
        /// How many pairs there are.
        pairs: i32,
    },
}

/// One frame of a [`CallTrace`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallFrame {
    /// The source line; -1 not known, -2 compiled, -3 native.
    pub line: i32,
    /// The method.
    pub method: JMethodId,
}

/// A stack, callee first (section 5, `JVMPI_CallTrace`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct CallTrace {
    /// Its thread.
    pub env: EnvId,
    /// Its frames.
    pub frames: Vec<CallFrame>,
}

/// How much a heap dump contains (section 4.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum DumpLevel {
    /// Ids and types.
    Ids = 0,
    /// Roots and references.
    References = 1,
    /// Everything, the default.
    #[default]
    Values = 2,
}

impl DumpLevel {
    /// From the number of the C interface.
    #[must_use]
    pub fn from_code(code: u64) -> Option<Self> {
        Some(match code {
            0 => Self::Ids,
            1 => Self::References,
            2 => Self::Values,
            _ => return None,
        })
    }
}

/// A heap dump as delivered; [`dump`](crate::dump) reads its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapDump {
    /// How much it contains.
    pub level: DumpLevel,
    /// The records.
    pub data: Vec<u8>,
    /// Stacks that contain roots.
    pub traces: Vec<CallTrace>,
}

/// A monitor dump as delivered; [`dump`](crate::dump) reads its bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MonitorDump {
    /// The records.
    pub data: Vec<u8>,
    /// The stacks of all threads.
    pub traces: Vec<CallTrace>,
    /// The status of each of those threads (see [`thread_status`]).
    pub status: Vec<i32>,
}

/// The heap at the end of a collection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GcInfo {
    /// Objects in use.
    pub used_objects: u64,
    /// Bytes in use.
    pub used_space: u64,
    /// Bytes available for objects.
    pub total_space: u64,
}

/// Values of `GetThreadStatus` (section 2).
pub mod thread_status {
    /// Runnable.
    pub const RUNNABLE: i32 = 1;
    /// Waits at a monitor.
    pub const MONITOR_WAIT: i32 = 2;
    /// Waits on a condition variable.
    pub const CONDVAR_WAIT: i32 = 3;
    /// Set also when the thread is suspended by the language.
    pub const SUSPENDED: i32 = 0x8000;
    /// Set also when its interrupt flag is set.
    pub const INTERRUPTED: i32 = 0x4000;
}

/// Thread priorities of `CreateSystemThread`.
pub mod priority {
    /// The lowest.
    pub const MINIMUM: i32 = 1;
    /// The default.
    pub const NORMAL: i32 = 5;
    /// The highest.
    pub const MAXIMUM: i32 = 10;
}

/// The kind and the data of an event: one variant for each [`EventKind`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Fields are named as in the document and typed by their ids.
pub enum Body {
    MethodEntry {
        method: JMethodId,
    },
    MethodEntry2 {
        method: JMethodId,
        object: ObjectHandle,
    },
    MethodExit {
        method: JMethodId,
    },
    ObjectAlloc(ObjectAlloc),
    ObjectFree {
        object: ObjectHandle,
    },
    ObjectMove(ObjectMove),
    CompiledMethodLoad(Box<CompiledMethod>),
    CompiledMethodUnload {
        method: JMethodId,
    },
    InstructionStart {
        method: JMethodId,
        offset: u32,
        operand: Operand,
    },
    ThreadStart(Box<ThreadStart>),
    ThreadEnd,
    ClassLoadHook {
        class_data: Vec<u8>,
    },
    HeapDump(Box<HeapDump>),
    JniGlobalRefAlloc {
        object: ObjectHandle,
        reference: RefId,
    },
    JniGlobalRefFree {
        reference: RefId,
    },
    JniWeakGlobalRefAlloc {
        object: ObjectHandle,
        reference: RefId,
    },
    JniWeakGlobalRefFree {
        reference: RefId,
    },
    ClassLoad(Box<ClassLoad>),
    ClassUnload {
        class: ObjectHandle,
    },
    DataDumpRequest,
    DataResetRequest,
    JvmInitDone,
    JvmShutDown,
    ArenaNew {
        arena: ArenaId,
        name: String,
    },
    ArenaDelete {
        arena: ArenaId,
    },
    ObjectDump {
        data: Vec<u8>,
    },
    RawMonitorContendedEnter {
        monitor: RawMonitorId,
        name: String,
    },
    RawMonitorContendedEntered {
        monitor: RawMonitorId,
        name: String,
    },
    RawMonitorContendedExit {
        monitor: RawMonitorId,
        name: String,
    },
    MonitorContendedEnter {
        object: ObjectHandle,
    },
    MonitorContendedEntered {
        object: ObjectHandle,
    },
    MonitorContendedExit {
        object: ObjectHandle,
    },
    /// A null object means `Thread.sleep`; a timeout of 0 means no limit.
    MonitorWait {
        object: ObjectHandle,
        timeout_ms: i64,
    },
    MonitorWaited {
        object: ObjectHandle,
        timeout_ms: i64,
    },
    MonitorDump(Box<MonitorDump>),
    /// The kind of collection is an addition.
    GcStart {
        kind: GcKind,
    },
    GcFinish(GcInfo),
}

impl Body {
    /// The kind of this event.
    #[must_use]
    pub fn kind(&self) -> EventKind {
        use EventKind as K;
        match self {
            Self::MethodEntry { .. } => K::MethodEntry,
            Self::MethodEntry2 { .. } => K::MethodEntry2,
            Self::MethodExit { .. } => K::MethodExit,
            Self::ObjectAlloc(_) => K::ObjectAlloc,
            Self::ObjectFree { .. } => K::ObjectFree,
            Self::ObjectMove(_) => K::ObjectMove,
            Self::CompiledMethodLoad(_) => K::CompiledMethodLoad,
            Self::CompiledMethodUnload { .. } => K::CompiledMethodUnload,
            Self::InstructionStart { .. } => K::InstructionStart,
            Self::ThreadStart(_) => K::ThreadStart,
            Self::ThreadEnd => K::ThreadEnd,
            Self::ClassLoadHook { .. } => K::ClassLoadHook,
            Self::HeapDump(_) => K::HeapDump,
            Self::JniGlobalRefAlloc { .. } => K::JniGlobalRefAlloc,
            Self::JniGlobalRefFree { .. } => K::JniGlobalRefFree,
            Self::JniWeakGlobalRefAlloc { .. } => K::JniWeakGlobalRefAlloc,
            Self::JniWeakGlobalRefFree { .. } => K::JniWeakGlobalRefFree,
            Self::ClassLoad(_) => K::ClassLoad,
            Self::ClassUnload { .. } => K::ClassUnload,
            Self::DataDumpRequest => K::DataDumpRequest,
            Self::DataResetRequest => K::DataResetRequest,
            Self::JvmInitDone => K::JvmInitDone,
            Self::JvmShutDown => K::JvmShutDown,
            Self::ArenaNew { .. } => K::ArenaNew,
            Self::ArenaDelete { .. } => K::ArenaDelete,
            Self::ObjectDump { .. } => K::ObjectDump,
            Self::RawMonitorContendedEnter { .. } => K::RawMonitorContendedEnter,
            Self::RawMonitorContendedEntered { .. } => K::RawMonitorContendedEntered,
            Self::RawMonitorContendedExit { .. } => K::RawMonitorContendedExit,
            Self::MonitorContendedEnter { .. } => K::MonitorContendedEnter,
            Self::MonitorContendedEntered { .. } => K::MonitorContendedEntered,
            Self::MonitorContendedExit { .. } => K::MonitorContendedExit,
            Self::MonitorWait { .. } => K::MonitorWait,
            Self::MonitorWaited { .. } => K::MonitorWaited,
            Self::MonitorDump(_) => K::MonitorDump,
            Self::GcStart { .. } => K::GcStart,
            Self::GcFinish(_) => K::GcFinish,
        }
    }
}

/// An event as `NotifyEvent` delivers it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VmEvent {
    /// The thread in which it happened.
    pub env: EnvId,
    /// Whether it was requested by `RequestEvent`.
    pub requested: bool,
    /// The kind and the data.
    pub body: Body,
}

impl VmEvent {
    /// An event that was not requested.
    #[must_use]
    pub fn new(env: EnvId, body: Body) -> Self {
        Self {
            env,
            requested: false,
            body,
        }
    }

    /// The number in the C interface, with the requested bit.
    #[must_use]
    pub fn event_type(&self) -> i32 {
        let kind = self.body.kind();
        if self.requested {
            kind.requested_code()
        } else {
            kind.code()
        }
    }
}
