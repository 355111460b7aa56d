//! Layouts and numbers of JNI and JVMTI, as in the headers of JDK 8 to 28.

use std::ffi::{c_char, c_void};

/// An opaque reference of JNI; null is allowed.
pub type RawObject = *mut c_void;
/// `jmethodID`: identifies a method while its class is loaded. The VM checks it on use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct MethodPtr(pub *mut c_void);
/// `jfieldID`: identifies a field while its class is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct FieldPtr(pub *mut c_void);

// SAFETY: ids are names, compared and handed back to the VM, never followed here.
unsafe impl Send for MethodPtr {}
// SAFETY: as above.
unsafe impl Sync for MethodPtr {}
// SAFETY: as above.
unsafe impl Send for FieldPtr {}
// SAFETY: as above.
unsafe impl Sync for FieldPtr {}

/// A function table of the VM: a pointer to a pointer to slots.
pub type RawEnv = *mut *const *const c_void;

/// JVMTI version 1.2, which every JDK from 6 on supports.
pub const JVMTI_VERSION_1_2: i32 = 0x3001_0200;
/// JNI version 1.6.
pub const JNI_VERSION_1_6: i32 = 0x0001_0006;

/// `jvalue`.
#[derive(Clone, Copy)]
#[repr(C)]
pub union Value {
    /// `boolean`.
    pub z: u8,
    /// `byte`.
    pub b: i8,
    /// `char`.
    pub c: u16,
    /// `short`.
    pub s: i16,
    /// `int`.
    pub i: i32,
    /// `long`.
    pub j: i64,
    /// `float`.
    pub f: f32,
    /// `double`.
    pub d: f64,
    /// A reference.
    pub l: RawObject,
}

/// `jvmtiThreadInfo`.
#[repr(C)]
pub struct ThreadInfo {
    /// Modified UTF-8, to be deallocated.
    pub name: *mut c_char,
    /// Priority.
    pub priority: i32,
    /// Daemon or not.
    pub is_daemon: u8,
    /// Its group, null if the thread has ended.
    pub thread_group: RawObject,
    /// Its context class loader.
    pub context_class_loader: RawObject,
}

/// `jvmtiThreadGroupInfo`.
#[repr(C)]
pub struct ThreadGroupInfo {
    /// The parent group, null for the top.
    pub parent: RawObject,
    /// Modified UTF-8, to be deallocated.
    pub name: *mut c_char,
    /// The highest priority of a thread in this group.
    pub max_priority: i32,
    /// Daemon or not.
    pub is_daemon: u8,
}

/// `jvmtiFrameInfo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(C)]
pub struct FrameInfo {
    /// The method.
    pub method: MethodPtr,
    /// Bytecode index, -1 for native methods.
    pub location: i64,
}

/// `jvmtiStackInfo`.
#[repr(C)]
pub struct StackInfo {
    /// The thread.
    pub thread: RawObject,
    /// State bits.
    pub state: i32,
    /// Its frames, inside the same allocation.
    pub frame_buffer: *mut FrameInfo,
    /// How many.
    pub frame_count: i32,
}

/// `jvmtiLineNumberEntry`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct LineNumberEntry {
    /// First bytecode index.
    pub start_location: i64,
    /// The line.
    pub line_number: i32,
}

/// `jvmtiAddrLocationMap`: the bytecode index of compiled code at an address.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct AddrLocation {
    /// The first address.
    pub start_address: *const c_void,
    /// Bytecode index.
    pub location: i64,
}

/// `jvmtiMonitorUsage`.
#[repr(C)]
pub struct MonitorUsage {
    /// Owner or null.
    pub owner: RawObject,
    /// Times entered.
    pub entry_count: i32,
    /// Threads blocked at entry.
    pub waiter_count: i32,
    /// Those threads.
    pub waiters: *mut RawObject,
    /// Threads in `wait`.
    pub notify_waiter_count: i32,
    /// Those threads.
    pub notify_waiters: *mut RawObject,
}

/// `jvmtiHeapReferenceInfo`, the largest member; the others are prefixes.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct StackReferenceInfo {
    /// Tag of the thread.
    pub thread_tag: i64,
    /// Its Java id.
    pub thread_id: i64,
    /// Frame, 0 innermost.
    pub depth: i32,
    /// Method of the frame.
    pub method: MethodPtr,
    /// Position in it (not for JNI locals).
    pub location: i64,
    /// Slot (not for JNI locals).
    pub slot: i32,
}

/// `jvmtiHeapReferenceInfo`.
#[derive(Clone, Copy)]
#[repr(C)]
pub union ReferenceInfo {
    /// Field, static field, array element or constant pool index.
    pub index: i32,
    /// Stack local and JNI local.
    pub stack: StackReferenceInfo,
}

/// `jvmtiHeapCallbacks`.
#[repr(C)]
pub struct HeapCallbacks {
    /// Object during iteration.
    pub iteration: Option<IterationFn>,
    /// Reference or root.
    pub reference: Option<ReferenceFn>,
    /// Primitive field.
    pub primitive_field: Option<PrimitiveFieldFn>,
    /// Primitive array.
    pub array_primitive: Option<ArrayPrimitiveFn>,
    /// String.
    pub string: *const c_void,
    /// Reserved slots 5 to 15.
    pub reserved: [*const c_void; 11],
}

/// `jvmtiHeapIterationCallback`.
pub type IterationFn = extern "system" fn(i64, i64, *mut i64, i32, *mut c_void) -> i32;
/// `jvmtiHeapReferenceCallback`.
pub type ReferenceFn = extern "system" fn(
    i32,
    *const ReferenceInfo,
    i64,
    i64,
    i64,
    *mut i64,
    *mut i64,
    i32,
    *mut c_void,
) -> i32;
/// `jvmtiPrimitiveFieldCallback`.
pub type PrimitiveFieldFn =
    extern "system" fn(i32, *const ReferenceInfo, i64, *mut i64, Value, i32, *mut c_void) -> i32;
/// `jvmtiArrayPrimitiveValueCallback`.
pub type ArrayPrimitiveFn =
    extern "system" fn(i64, i64, *mut i64, i32, i32, *const c_void, *mut c_void) -> i32;

/// `jvmtiEventCallbacks`: slots for events 50 to 88, all nullable.
#[repr(C)]
pub struct EventCallbacks(pub [*const c_void; 39]);

/// `jvmtiCapabilities`: 128 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct RawCapabilities(pub [u32; 4]);

/// Declares ordinals of table slots as constants, with a list for the tests.
macro_rules! slots {
    ($list:ident: $($name:ident = $number:literal),* $(,)?) => {
        $(
            #[doc = concat!("Slot of `", stringify!($name), "`.")]
            #[expect(non_upper_case_globals, reason = "named as in the header")]
            pub const $name: usize = $number;
        )*
        /// Every slot used, by name, for the comparison with the header.
        pub const $list: &[(&str, usize)] = &[$((stringify!($name), $number)),*];
    };
}

/// Slots of `jvmtiInterface_1`, numbered from 1 as in the header.
pub mod jvmti_slot {
    slots! { ALL:
        SetEventNotificationMode = 2, GetAllThreads = 4, SuspendThread = 5,
        ResumeThread = 6, GetThreadInfo = 9,
        GetOwnedMonitorInfo = 10, GetCurrentContendedMonitor = 11, RunAgentThread = 12,
        GetTopThreadGroups = 13, GetThreadGroupInfo = 14, GetThreadState = 17,
        GetCurrentThread = 18, CreateRawMonitor = 31, RawMonitorEnter = 33,
        RawMonitorExit = 34, RawMonitorWait = 35, RawMonitorNotifyAll = 37,
        IsModifiableClass = 45, Allocate = 46, Deallocate = 47,
        GetClassSignature = 48, GetClassStatus = 49, GetSourceFileName = 50,
        GetClassModifiers = 51, GetClassMethods = 52, GetClassFields = 53,
        GetImplementedInterfaces = 54, IsInterface = 55, IsArrayClass = 56,
        GetClassLoader = 57, GetObjectHashCode = 58, GetObjectMonitorUsage = 59, GetFieldName = 60,
        GetFieldModifiers = 62, GetMethodName = 64, GetMethodDeclaringClass = 65,
        GetLineNumberTable = 70, GetMethodLocation = 71, IsMethodNative = 76, GetLoadedClasses = 78,
        GetCapabilities = 89, IsMethodObsolete = 91, GetAllStackTraces = 100, GetThreadListStackTraces = 101,
        GetThreadLocalStorage = 102, SetThreadLocalStorage = 103, GetStackTrace = 104,
        GetTag = 106, SetTag = 107, ForceGarbageCollection = 108,
        GetObjectsWithTags = 114, FollowReferences = 115, IterateThroughHeap = 116,
        SetJNIFunctionTable = 120, GetJNIFunctionTable = 121, SetEventCallbacks = 122,
        GenerateEvents = 123, DisposeEnvironment = 127, GetSystemProperty = 131,
        GetPhase = 133, GetThreadCpuTime = 137, GetPotentialCapabilities = 140,
        AddCapabilities = 142, RelinquishCapabilities = 143, RetransformClasses = 152,
        GetObjectSize = 154, GetLocalInstance = 155, SetHeapSamplingInterval = 156,
    }
}

/// Slots of `JNINativeInterface_`, numbered from 0.
pub mod jni_slot {
    slots! { ALL:
        DefineClass = 5, FindClass = 6, GetSuperclass = 10, Throw = 13, ExceptionOccurred = 15,
        ExceptionClear = 17, PushLocalFrame = 19, PopLocalFrame = 20, NewGlobalRef = 21,
        DeleteGlobalRef = 22, DeleteLocalRef = 23, IsSameObject = 24, NewLocalRef = 25, EnsureLocalCapacity = 26,
        AllocObject = 27, NewObjectA = 30, GetObjectClass = 31, IsInstanceOf = 32,
        GetMethodID = 33, CallObjectMethodA = 36, CallLongMethodA = 54, CallVoidMethodA = 63,
        GetFieldID = 94, GetObjectField = 95, GetByteField = 97, GetIntField = 100, GetLongField = 101,
        SetObjectField = 104, SetIntField = 109,
        SetLongField = 110, GetStaticMethodID = 113, CallStaticObjectMethodA = 116, CallStaticIntMethodA = 131, CallStaticVoidMethodA = 143,
        GetStaticFieldID = 144, GetStaticObjectField = 145, GetStaticIntField = 150,
        SetStaticObjectField = 154, SetStaticBooleanField = 155, SetStaticIntField = 159,
        SetStaticLongField = 160, NewString = 163, NewStringUTF = 167, GetStringUTFLength = 168,
        GetStringUTFChars = 169, ReleaseStringUTFChars = 170, GetArrayLength = 171,
        NewObjectArray = 172, GetObjectArrayElement = 173, SetObjectArrayElement = 174, NewBooleanArray = 175, NewByteArray = 176,
        NewIntArray = 179, NewLongArray = 180,
        GetIntArrayRegion = 203, GetLongArrayRegion = 204, SetIntArrayRegion = 211,
        SetLongArrayRegion = 212, RegisterNatives = 215, GetPrimitiveArrayCritical = 222,
        ReleasePrimitiveArrayCritical = 223, NewWeakGlobalRef = 226,
        DeleteWeakGlobalRef = 227, ExceptionCheck = 228, GetObjectRefType = 232,
    }
}

/// Slots of `JNIInvokeInterface_`, numbered from 0.
pub mod vm_slot {
    slots! { ALL:
        DestroyJavaVM = 3, AttachCurrentThread = 4, DetachCurrentThread = 5, GetEnv = 6,
        AttachCurrentThreadAsDaemon = 7,
    }
}

/// Calls slot `$slot` of table `$env` (whose first slot has number `$first`).
///
/// The caller vouches that the slot has the signature given.
macro_rules! table_call {
    ($env:expr, $first:literal, $slot:expr, ($($arg:expr => $ty:ty),* $(,)?) -> $ret:ty) => {{
        locks::before_vm();
        $crate::sys::signal_safe_call!($env, $first, $slot, ($($arg => $ty),*) -> $ret)
    }};
}
pub(crate) use table_call;

/// The same for calls in signal handlers. Thread-locals are not read, because their first use allocates, and the signal
/// may have interrupted an allocation.
///
/// The caller vouches that the slot has the signature given.
macro_rules! signal_safe_call {
    ($env:expr, $first:literal, $slot:expr, ($($arg:expr => $ty:ty),* $(,)?) -> $ret:ty) => {{
        let env = $env;
        let slot: *const std::ffi::c_void = *(*env).add($slot - $first);
        let function: extern "system" fn($crate::sys::RawEnv $(, $ty)*) -> $ret =
            std::mem::transmute::<*const std::ffi::c_void, _>(slot);
        function(env $(, $arg)*)
    }};
}
pub(crate) use signal_safe_call;
