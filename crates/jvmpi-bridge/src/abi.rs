//! Layouts and numbers of `jvmpi.h` (`include/jvmpi.h` of this crate; a test
//! compares the two with the C compiler).

use std::ffi::{c_char, c_void};

use jvmti::sys::{MethodPtr, RawEnv, RawObject};

/// `JVMPI_VERSION_1`.
pub(crate) const VERSION_1: i32 = 0x1000_0001;
/// `JVMPI_VERSION_1_2`, the newest.
pub(crate) const VERSION_1_2: i32 = 0x1000_0003;

/// `JVMPI_SUCCESS`.
pub(crate) const SUCCESS: i32 = 0;
/// `JVMPI_NOT_AVAILABLE`.
pub(crate) const NOT_AVAILABLE: i32 = 1;
/// `JVMPI_FAIL`.
pub(crate) const FAIL: i32 = -1;
/// `JVMPI_REQUESTED_EVENT`.
pub(crate) const REQUESTED: i32 = 0x1000_0000;

/// Event types.
pub(crate) mod event {
    pub(crate) const METHOD_ENTRY: i32 = 1;
    pub(crate) const METHOD_ENTRY2: i32 = 2;
    pub(crate) const METHOD_EXIT: i32 = 3;
    pub(crate) const OBJECT_ALLOC: i32 = 4;
    pub(crate) const OBJECT_FREE: i32 = 5;
    pub(crate) const COMPILED_METHOD_LOAD: i32 = 7;
    pub(crate) const COMPILED_METHOD_UNLOAD: i32 = 8;
    pub(crate) const THREAD_START: i32 = 33;
    pub(crate) const THREAD_END: i32 = 34;
    pub(crate) const CLASS_LOAD_HOOK: i32 = 35;
    pub(crate) const HEAP_DUMP: i32 = 37;
    pub(crate) const JNI_GLOBALREF_ALLOC: i32 = 38;
    pub(crate) const JNI_GLOBALREF_FREE: i32 = 39;
    pub(crate) const JNI_WEAK_GLOBALREF_ALLOC: i32 = 40;
    pub(crate) const JNI_WEAK_GLOBALREF_FREE: i32 = 41;
    pub(crate) const CLASS_LOAD: i32 = 42;
    pub(crate) const CLASS_UNLOAD: i32 = 43;
    pub(crate) const DATA_DUMP_REQUEST: i32 = 44;
    pub(crate) const JVM_INIT_DONE: i32 = 46;
    pub(crate) const JVM_SHUT_DOWN: i32 = 47;
    pub(crate) const ARENA_NEW: i32 = 48;
    pub(crate) const OBJECT_DUMP: i32 = 50;
    pub(crate) const RAW_MONITOR_CONTENDED_ENTER: i32 = 51;
    pub(crate) const RAW_MONITOR_CONTENDED_ENTERED: i32 = 52;
    pub(crate) const RAW_MONITOR_CONTENDED_EXIT: i32 = 53;
    pub(crate) const MONITOR_CONTENDED_ENTER: i32 = 54;
    pub(crate) const MONITOR_CONTENDED_ENTERED: i32 = 55;
    pub(crate) const MONITOR_CONTENDED_EXIT: i32 = 56;
    pub(crate) const MONITOR_WAIT: i32 = 57;
    pub(crate) const MONITOR_WAITED: i32 = 58;
    pub(crate) const MONITOR_DUMP: i32 = 59;
    pub(crate) const GC_START: i32 = 60;
    pub(crate) const GC_FINISH: i32 = 61;
}

/// An object's name towards the agent; 0 is `NULL`.
pub(crate) type ObjectId = usize;

/// `JVMPI_Field`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Field {
    pub(crate) name: *const c_char,
    pub(crate) signature: *const c_char,
}

/// `JVMPI_Method`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Method {
    pub(crate) name: *const c_char,
    pub(crate) signature: *const c_char,
    pub(crate) start: i32,
    pub(crate) end: i32,
    pub(crate) id: MethodPtr,
}

/// `JVMPI_Lineno`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Lineno {
    pub(crate) offset: i32,
    pub(crate) line: i32,
}

/// `JVMPI_CallFrame`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CallFrame {
    pub(crate) line: i32,
    pub(crate) method: MethodPtr,
}

/// `JVMPI_CallTrace`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CallTrace {
    pub(crate) env: RawEnv,
    pub(crate) count: i32,
    pub(crate) frames: *mut CallFrame,
}

/// `class_load`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ClassLoad {
    pub(crate) name: *const c_char,
    pub(crate) source: *const c_char,
    pub(crate) interfaces: i32,
    pub(crate) method_count: i32,
    pub(crate) methods: *const Method,
    pub(crate) static_count: i32,
    pub(crate) statics: *const Field,
    pub(crate) instance_count: i32,
    pub(crate) instances: *const Field,
    pub(crate) class: ObjectId,
}

/// `class_load_hook`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ClassLoadHook {
    pub(crate) data: *const u8,
    pub(crate) len: i32,
    pub(crate) new_data: *const u8,
    pub(crate) new_len: i32,
    pub(crate) malloc: extern "C" fn(u32) -> *mut c_void,
}

/// `thread_start`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ThreadStart {
    pub(crate) name: *const c_char,
    pub(crate) group: *const c_char,
    pub(crate) parent: *const c_char,
    pub(crate) thread: ObjectId,
    pub(crate) env: RawEnv,
}

/// `new_arena`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct NewArena {
    pub(crate) arena: i32,
    pub(crate) name: *const c_char,
}

/// `obj_alloc`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ObjAlloc {
    pub(crate) arena: i32,
    pub(crate) class: ObjectId,
    pub(crate) is_array: i32,
    pub(crate) size: i32,
    pub(crate) object: ObjectId,
}

/// `gc_info`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct GcInfo {
    pub(crate) used_objects: i64,
    pub(crate) used_space: i64,
    pub(crate) total_space: i64,
}

/// `method_entry2`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct MethodEntry2 {
    pub(crate) method: MethodPtr,
    pub(crate) object: ObjectId,
}

/// `compiled_method_load`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct CompiledMethodLoad {
    pub(crate) method: MethodPtr,
    pub(crate) code: *const c_void,
    pub(crate) len: i32,
    pub(crate) line_count: i32,
    pub(crate) lines: *const Lineno,
}

/// `raw_monitor`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct RawMonitorEvent {
    pub(crate) name: *const c_char,
    pub(crate) id: usize,
}

/// `monitor_wait`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct MonitorWait {
    pub(crate) object: ObjectId,
    pub(crate) timeout: i64,
}

/// `monitor_dump`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct MonitorDump {
    pub(crate) begin: *const u8,
    pub(crate) end: *const u8,
    pub(crate) trace_count: i32,
    pub(crate) traces: *const CallTrace,
    pub(crate) statuses: *const i32,
}

/// `heap_dump`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct HeapDump {
    pub(crate) level: i32,
    pub(crate) begin: *const u8,
    pub(crate) end: *const u8,
    pub(crate) trace_count: i32,
    pub(crate) traces: *const CallTrace,
}

/// `object_dump`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct ObjectDump {
    pub(crate) len: i32,
    pub(crate) data: *const u8,
}

/// `jni_globalref_alloc`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct GlobalRef {
    pub(crate) object: ObjectId,
    pub(crate) reference: RawObject,
}

/// What an event carries.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) union Payload {
    /// Nothing, or the whole as words.
    pub(crate) words: [usize; 9],
    pub(crate) class_load: ClassLoad,
    pub(crate) class_load_hook: ClassLoadHook,
    pub(crate) thread_start: ThreadStart,
    pub(crate) new_arena: NewArena,
    pub(crate) obj_alloc: ObjAlloc,
    /// Every payload that is one object: `obj_free`, `class_unload`, `monitor`.
    pub(crate) object: ObjectId,
    pub(crate) gc_info: GcInfo,
    /// `method`, `compiled_method_unload`.
    pub(crate) method: MethodPtr,
    pub(crate) method_entry2: MethodEntry2,
    pub(crate) compiled: CompiledMethodLoad,
    pub(crate) raw_monitor: RawMonitorEvent,
    pub(crate) monitor_wait: MonitorWait,
    pub(crate) monitor_dump: MonitorDump,
    pub(crate) heap_dump: HeapDump,
    pub(crate) object_dump: ObjectDump,
    pub(crate) global_ref: GlobalRef,
    /// `jni_globalref_free`.
    pub(crate) reference: RawObject,
}

/// No payload.
pub(crate) const NOTHING: Payload = Payload { words: [0; 9] };

/// `JVMPI_Event`.
#[repr(C)]
pub(crate) struct Event {
    pub(crate) event_type: i32,
    pub(crate) env: RawEnv,
    pub(crate) payload: Payload,
}

/// What the agent gives for [`Interface::notify`].
pub(crate) type Notify = extern "C" fn(*mut Event);
/// What the agent gives to `CreateSystemThread`.
pub(crate) type ThreadFn = extern "C" fn(*mut c_void);

/// `JVMPI_Interface`.
#[repr(C)]
pub(crate) struct Interface {
    pub(crate) version: i32,
    /// Written by the agent at any time.
    pub(crate) notify: Option<Notify>,
    pub(crate) enable_event: extern "C" fn(i32, *mut c_void) -> i32,
    pub(crate) disable_event: extern "C" fn(i32, *mut c_void) -> i32,
    pub(crate) request_event: extern "C" fn(i32, *mut c_void) -> i32,
    pub(crate) get_call_trace: extern "C" fn(*mut CallTrace, i32),
    pub(crate) profiler_exit: extern "C" fn(i32),
    pub(crate) raw_monitor_create: extern "C" fn(*const c_char) -> usize,
    pub(crate) raw_monitor_enter: extern "C" fn(usize),
    pub(crate) raw_monitor_exit: extern "C" fn(usize),
    pub(crate) raw_monitor_wait: extern "C" fn(usize, i64),
    pub(crate) raw_monitor_notify_all: extern "C" fn(usize),
    pub(crate) raw_monitor_destroy: extern "C" fn(usize),
    pub(crate) get_current_thread_cpu_time: extern "C" fn() -> i64,
    pub(crate) suspend_thread: extern "C" fn(RawEnv),
    pub(crate) resume_thread: extern "C" fn(RawEnv),
    pub(crate) get_thread_status: extern "C" fn(RawEnv) -> i32,
    pub(crate) thread_has_run: extern "C" fn(RawEnv) -> u8,
    pub(crate) create_system_thread: extern "C" fn(*const c_char, i32, Option<ThreadFn>) -> i32,
    pub(crate) set_thread_local_storage: extern "C" fn(RawEnv, *mut c_void),
    pub(crate) get_thread_local_storage: extern "C" fn(RawEnv) -> *mut c_void,
    pub(crate) disable_gc: extern "C" fn(),
    pub(crate) enable_gc: extern "C" fn(),
    pub(crate) run_gc: extern "C" fn(),
    pub(crate) get_thread_object: extern "C" fn(RawEnv) -> ObjectId,
    pub(crate) get_method_class: extern "C" fn(MethodPtr) -> ObjectId,
    pub(crate) id_to_object: extern "C" fn(ObjectId) -> RawObject,
    pub(crate) object_to_id: extern "C" fn(RawObject) -> ObjectId,
    pub(crate) suspend_thread_list: extern "C" fn(i32, *const RawEnv, *mut i32),
    pub(crate) resume_thread_list: extern "C" fn(i32, *const RawEnv, *mut i32),
}

#[cfg(test)]
#[path = "abi_tests.rs"]
mod tests;
