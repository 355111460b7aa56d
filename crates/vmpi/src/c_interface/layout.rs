//! Layouts and numbers of `jvmpi.h` (a test compares them with the C compiler).
//! Fields are named and typed after the header.
#![allow(missing_docs)]

use std::ffi::{c_char, c_void};

use crate::kind;

/// A thread: `JNIEnv *`.
pub type EnvPtr = *mut *const *const c_void;
/// A method: `jmethodID`.
pub type MethodPtr = *mut c_void;
/// A JNI reference: `jobject`.
pub type ReferencePtr = *mut c_void;

/// `JVMPI_VERSION_1`.
pub const VERSION_1: i32 = kind::VERSION_1;
/// `JVMPI_VERSION_1_2`, the newest.
pub const VERSION_1_2: i32 = kind::VERSION_1_2;

/// `JVMPI_SUCCESS`.
pub const SUCCESS: i32 = kind::Outcome::Success as i32;
/// `JVMPI_NOT_AVAILABLE`.
pub const NOT_AVAILABLE: i32 = kind::Outcome::NotAvailable as i32;
/// `JVMPI_FAIL`.
pub const FAIL: i32 = kind::Outcome::Fail as i32;
/// `JVMPI_REQUESTED_EVENT`.
pub const REQUESTED: i32 = kind::REQUESTED_EVENT;

/// Event types as constants, because patterns of `match` need them.
pub mod event {
    use crate::kind::EventKind as Kind;

    pub const METHOD_ENTRY: i32 = Kind::MethodEntry.code();
    pub const METHOD_ENTRY2: i32 = Kind::MethodEntry2.code();
    pub const METHOD_EXIT: i32 = Kind::MethodExit.code();
    pub const OBJECT_ALLOC: i32 = Kind::ObjectAlloc.code();
    pub const OBJECT_FREE: i32 = Kind::ObjectFree.code();
    pub const COMPILED_METHOD_LOAD: i32 = Kind::CompiledMethodLoad.code();
    pub const COMPILED_METHOD_UNLOAD: i32 = Kind::CompiledMethodUnload.code();
    pub const THREAD_START: i32 = Kind::ThreadStart.code();
    pub const THREAD_END: i32 = Kind::ThreadEnd.code();
    pub const CLASS_LOAD_HOOK: i32 = Kind::ClassLoadHook.code();
    pub const HEAP_DUMP: i32 = Kind::HeapDump.code();
    pub const JNI_GLOBALREF_ALLOC: i32 = Kind::JniGlobalRefAlloc.code();
    pub const JNI_GLOBALREF_FREE: i32 = Kind::JniGlobalRefFree.code();
    pub const JNI_WEAK_GLOBALREF_ALLOC: i32 = Kind::JniWeakGlobalRefAlloc.code();
    pub const JNI_WEAK_GLOBALREF_FREE: i32 = Kind::JniWeakGlobalRefFree.code();
    pub const CLASS_LOAD: i32 = Kind::ClassLoad.code();
    pub const CLASS_UNLOAD: i32 = Kind::ClassUnload.code();
    pub const DATA_DUMP_REQUEST: i32 = Kind::DataDumpRequest.code();
    pub const JVM_INIT_DONE: i32 = Kind::JvmInitDone.code();
    pub const JVM_SHUT_DOWN: i32 = Kind::JvmShutDown.code();
    pub const ARENA_NEW: i32 = Kind::ArenaNew.code();
    pub const OBJECT_DUMP: i32 = Kind::ObjectDump.code();
    pub const RAW_MONITOR_CONTENDED_ENTER: i32 = Kind::RawMonitorContendedEnter.code();
    pub const RAW_MONITOR_CONTENDED_ENTERED: i32 = Kind::RawMonitorContendedEntered.code();
    pub const RAW_MONITOR_CONTENDED_EXIT: i32 = Kind::RawMonitorContendedExit.code();
    pub const MONITOR_CONTENDED_ENTER: i32 = Kind::MonitorContendedEnter.code();
    pub const MONITOR_CONTENDED_ENTERED: i32 = Kind::MonitorContendedEntered.code();
    pub const MONITOR_CONTENDED_EXIT: i32 = Kind::MonitorContendedExit.code();
    pub const MONITOR_WAIT: i32 = Kind::MonitorWait.code();
    pub const MONITOR_WAITED: i32 = Kind::MonitorWaited.code();
    pub const MONITOR_DUMP: i32 = Kind::MonitorDump.code();
    pub const GC_START: i32 = Kind::GcStart.code();
    pub const GC_FINISH: i32 = Kind::GcFinish.code();
}

/// The id of an object for the agent; 0 is `NULL`.
pub type ObjectId = usize;

/// `JVMPI_Field`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Field {
    pub name: *const c_char,
    pub signature: *const c_char,
}

/// `JVMPI_Method`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Method {
    pub name: *const c_char,
    pub signature: *const c_char,
    pub start: i32,
    pub end: i32,
    pub id: MethodPtr,
}

/// `JVMPI_Lineno`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Lineno {
    pub offset: i32,
    pub line: i32,
}

/// `JVMPI_CallFrame`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CallFrame {
    pub line: i32,
    pub method: MethodPtr,
}

/// `JVMPI_CallTrace`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CallTrace {
    pub env: EnvPtr,
    pub count: i32,
    pub frames: *mut CallFrame,
}

/// `class_load`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ClassLoad {
    pub name: *const c_char,
    pub source: *const c_char,
    pub interfaces: i32,
    pub method_count: i32,
    pub methods: *const Method,
    pub static_count: i32,
    pub statics: *const Field,
    pub instance_count: i32,
    pub instances: *const Field,
    pub class: ObjectId,
}

/// `class_load_hook`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ClassLoadHook {
    pub data: *const u8,
    pub len: i32,
    pub new_data: *const u8,
    pub new_len: i32,
    pub malloc: extern "C" fn(u32) -> *mut c_void,
}

/// `thread_start`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ThreadStart {
    pub name: *const c_char,
    pub group: *const c_char,
    pub parent: *const c_char,
    pub thread: ObjectId,
    pub env: EnvPtr,
}

/// `new_arena`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct NewArena {
    pub arena: i32,
    pub name: *const c_char,
}

/// `obj_move`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ObjMove {
    pub arena: i32,
    pub object: ObjectId,
    pub new_arena: i32,
    pub new_object: ObjectId,
}

/// `obj_alloc`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ObjAlloc {
    pub arena: i32,
    pub class: ObjectId,
    pub is_array: i32,
    pub size: i32,
    pub object: ObjectId,
}

/// `gc_info`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct GcInfo {
    pub used_objects: i64,
    pub used_space: i64,
    pub total_space: i64,
}

/// `method_entry2`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MethodEntry2 {
    pub method: MethodPtr,
    pub object: ObjectId,
}

/// `compiled_method_load`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct CompiledMethodLoad {
    pub method: MethodPtr,
    pub code: *const c_void,
    pub len: i32,
    pub line_count: i32,
    pub lines: *const Lineno,
}

/// `raw_monitor`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct RawMonitorEvent {
    pub name: *const c_char,
    pub id: usize,
}

/// `monitor_wait`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MonitorWait {
    pub object: ObjectId,
    pub timeout: i64,
}

/// `monitor_dump`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct MonitorDump {
    pub begin: *const u8,
    pub end: *const u8,
    pub trace_count: i32,
    pub traces: *const CallTrace,
    pub statuses: *const i32,
}

/// `heap_dump`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HeapDump {
    pub level: i32,
    pub begin: *const u8,
    pub end: *const u8,
    pub trace_count: i32,
    pub traces: *const CallTrace,
}

/// `object_dump`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct ObjectDump {
    pub len: i32,
    pub data: *const u8,
}

/// `jni_globalref_alloc`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct GlobalRef {
    pub object: ObjectId,
    pub reference: ReferencePtr,
}

/// The data of an event.
#[derive(Clone, Copy)]
#[repr(C)]
pub union Payload {
    /// No data, or all data as words.
    pub words: [usize; 9],
    pub class_load: ClassLoad,
    pub class_load_hook: ClassLoadHook,
    pub thread_start: ThreadStart,
    pub new_arena: NewArena,
    /// `delete_arena`.
    pub arena: i32,
    pub obj_alloc: ObjAlloc,
    pub obj_move: ObjMove,
    /// All payloads that are one object: `obj_free`, `class_unload`, `monitor`.
    pub object: ObjectId,
    pub gc_info: GcInfo,
    /// `method`, `compiled_method_unload`.
    pub method: MethodPtr,
    pub method_entry2: MethodEntry2,
    pub compiled: CompiledMethodLoad,
    pub raw_monitor: RawMonitorEvent,
    pub monitor_wait: MonitorWait,
    pub monitor_dump: MonitorDump,
    pub heap_dump: HeapDump,
    pub object_dump: ObjectDump,
    pub global_ref: GlobalRef,
    /// `jni_globalref_free`.
    pub reference: ReferencePtr,
}

/// No payload.
pub const NOTHING: Payload = Payload { words: [0; 9] };

/// `JVMPI_Event`.
#[derive(Debug)]
#[repr(C)]
pub struct Event {
    pub event_type: i32,
    pub env: EnvPtr,
    pub payload: Payload,
}

/// The function that the agent sets as [`Interface::notify`].
pub type Notify = extern "C" fn(*mut Event);
/// The function that the agent passes to `CreateSystemThread`.
pub type ThreadFn = extern "C" fn(*mut c_void);

/// `JVMPI_Interface`.
#[derive(Debug)]
#[repr(C)]
pub struct Interface {
    pub version: i32,
    /// The agent may write this at any time.
    pub notify: Option<Notify>,
    pub enable_event: extern "C" fn(i32, *mut c_void) -> i32,
    pub disable_event: extern "C" fn(i32, *mut c_void) -> i32,
    pub request_event: extern "C" fn(i32, *mut c_void) -> i32,
    pub get_call_trace: extern "C" fn(*mut CallTrace, i32),
    pub profiler_exit: extern "C" fn(i32),
    pub raw_monitor_create: extern "C" fn(*const c_char) -> usize,
    pub raw_monitor_enter: extern "C" fn(usize),
    pub raw_monitor_exit: extern "C" fn(usize),
    pub raw_monitor_wait: extern "C" fn(usize, i64),
    pub raw_monitor_notify_all: extern "C" fn(usize),
    pub raw_monitor_destroy: extern "C" fn(usize),
    pub get_current_thread_cpu_time: extern "C" fn() -> i64,
    pub suspend_thread: extern "C" fn(EnvPtr),
    pub resume_thread: extern "C" fn(EnvPtr),
    pub get_thread_status: extern "C" fn(EnvPtr) -> i32,
    pub thread_has_run: extern "C" fn(EnvPtr) -> u8,
    pub create_system_thread: extern "C" fn(*const c_char, i32, Option<ThreadFn>) -> i32,
    pub set_thread_local_storage: extern "C" fn(EnvPtr, *mut c_void),
    pub get_thread_local_storage: extern "C" fn(EnvPtr) -> *mut c_void,
    pub disable_gc: extern "C" fn(),
    pub enable_gc: extern "C" fn(),
    pub run_gc: extern "C" fn(),
    pub get_thread_object: extern "C" fn(EnvPtr) -> ObjectId,
    pub get_method_class: extern "C" fn(MethodPtr) -> ObjectId,
    pub id_to_object: extern "C" fn(ObjectId) -> ReferencePtr,
    pub object_to_id: extern "C" fn(ReferencePtr) -> ObjectId,
    pub suspend_thread_list: extern "C" fn(i32, *const EnvPtr, *mut i32),
    pub resume_thread_list: extern "C" fn(i32, *const EnvPtr, *mut i32),
}

impl std::fmt::Debug for Payload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Payload")
    }
}

/// An [`Interface`] of the functions that are in scope at the call and have the names of its fields.
#[macro_export]
macro_rules! jvmpi_functions {
    () => {
        $crate::c_interface::layout::Interface {
            version: $crate::c_interface::layout::VERSION_1_2,
            notify: None,
            enable_event,
            disable_event,
            request_event,
            get_call_trace,
            profiler_exit,
            raw_monitor_create,
            raw_monitor_enter,
            raw_monitor_exit,
            raw_monitor_wait,
            raw_monitor_notify_all,
            raw_monitor_destroy,
            get_current_thread_cpu_time,
            suspend_thread,
            resume_thread,
            get_thread_status,
            thread_has_run,
            create_system_thread,
            set_thread_local_storage,
            get_thread_local_storage,
            disable_gc,
            enable_gc,
            run_gc,
            get_thread_object,
            get_method_class,
            id_to_object,
            object_to_id,
            suspend_thread_list,
            resume_thread_list,
        }
    };
}

#[cfg(test)]
#[path = "layout_tests.rs"]
mod tests;
