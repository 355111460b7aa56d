//! Events: the trait that receives them, the table of callbacks, and the function that catches panics.

use std::ffi::{CStr, c_char, c_void};
use std::io::{self, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::env::{Env, EventKind, Live, OnLoad, Start};
use crate::error::Result;
use crate::jni::{JavaVm, Jni, Object};
use crate::sys::{AddrLocation, EventCallbacks, MethodPtr, RawEnv, RawObject};
use crate::text::decode_modified_utf8;

/// Receives events. Methods that are not overridden do nothing. Object arguments are local references of the callback.
#[expect(unused_variables, reason = "defaults ignore their arguments")]
pub trait Agent: Sync + Send {
    /// JNI can be used; no class of the program has run.
    fn vm_start(&self, env: Env<Start>, jni: Jni) {}
    /// The VM is ready.
    fn vm_init(&self, env: Env<Live>, jni: Jni, thread: Object) {}
    /// The VM is about to end.
    fn vm_death(&self, env: Env<Live>, jni: Jni) {}
    /// A platform thread starts.
    fn thread_start(&self, env: Env<Live>, jni: Jni, thread: Object) {}
    /// A platform thread ends; this is called on that thread.
    fn thread_end(&self, env: Env<Live>, jni: Jni, thread: Object) {}
    /// A virtual thread ends; this is called on that thread.
    fn virtual_thread_end(&self, env: Env<Live>, jni: Jni, thread: Object) {}
    /// The VM is about to use a class file; returned bytes replace it. May be called in any phase; `name` is empty for
    /// classes without one. `redefined` is the class that already exists.
    fn class_file(&self, redefined: Option<Object>, name: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        None
    }
    /// A class is prepared.
    fn class_prepare(&self, env: Env<Live>, jni: Jni, thread: Object, class: Object) {}
    /// A data dump is requested.
    fn data_dump(&self, env: Env<Live>) {}
    /// The Java heap is too full for the current thread's allocation; an `OutOfMemoryError`
    /// follows.
    fn heap_exhausted(&self, env: Env<Live>, jni: Jni) {}
    /// A thread calls `wait`.
    fn monitor_wait(
        &self,
        env: Env<Live>,
        jni: Jni,
        thread: Object,
        object: Object,
        timeout_ms: i64,
    ) {
    }
    /// A thread returns from `wait`.
    fn monitor_waited(
        &self,
        env: Env<Live>,
        jni: Jni,
        thread: Object,
        object: Object,
        timed_out: bool,
    ) {
    }
    /// A thread blocks at a monitor that another thread owns.
    fn contended_enter(&self, env: Env<Live>, jni: Jni, thread: Object, object: Object) {}
    /// The thread has entered that monitor.
    fn contended_entered(&self, env: Env<Live>, jni: Jni, thread: Object, object: Object) {}
    /// A GC pause starts. JNI and JVMTI must not be used.
    fn gc_start(&self) {}
    /// A GC pause ends. JNI and JVMTI must not be used.
    fn gc_finish(&self) {}
    /// A tagged object was freed. JNI and JVMTI must not be used.
    fn object_free(&self, tag: i64) {}
    /// The VM itself allocated an object.
    fn vm_object_alloc(
        &self,
        env: Env<Live>,
        jni: Jni,
        thread: Object,
        object: Object,
        class: Object,
        size: i64,
    ) {
    }
    /// The allocation sampler selected an object.
    fn sampled_alloc(
        &self,
        env: Env<Live>,
        jni: Jni,
        thread: Object,
        object: Object,
        class: Object,
        size: i64,
    ) {
    }
    /// A method is entered. If this event is enabled, the VM interprets all code.
    fn method_entry(&self, env: Env<Live>, jni: Jni, thread: Object, method: MethodPtr) {}
    /// A method returns or throws.
    fn method_exit(&self, env: Env<Live>, jni: Jni, thread: Object, method: MethodPtr) {}
    /// A native method is bound to its code at `address`; a returned address replaces it. May be called before the VM
    /// is ready.
    fn native_bind(&self, address: *mut c_void) -> Option<*mut c_void> {
        None
    }
    /// A method was compiled: `len` bytes of code at `code`, with the bytecode
    /// index of some addresses. Live phase only.
    fn compiled(
        &self,
        env: Env<Live>,
        method: MethodPtr,
        code: *const c_void,
        len: i32,
        map: &[AddrLocation],
    ) {
    }
    /// Compiled code was removed. Live phase only.
    fn uncompiled(&self, env: Env<Live>, method: MethodPtr, code: *const c_void) {}
    /// A callback panicked, which has ended the callback.
    fn panicked(&self, callback: &'static str) {}
}

/// The receiver of events: null, or a reference in a box that is never freed.
static AGENT: AtomicPtr<&'static dyn Agent> = AtomicPtr::new(ptr::null_mut());

fn agent() -> Option<&'static dyn Agent> {
    // SAFETY: null or a box that was leaked.
    unsafe { AGENT.load(Ordering::Acquire).as_ref() }.copied()
}

/// Makes `agent` the receiver in this process and installs the callbacks. Events are then enabled one by one with
/// [`Env::enable`]. A second agent is refused (`false`).
pub fn install(env: Env<OnLoad>, agent: &'static dyn Agent) -> Result<bool> {
    let new = Box::into_raw(Box::new(agent));
    let none = ptr::null_mut();
    if AGENT
        .compare_exchange(none, new, Ordering::AcqRel, Ordering::Acquire)
        .is_err()
    {
        // SAFETY: made above and known to no other code.
        drop(unsafe { Box::from_raw(new) });
        return Ok(false);
    }
    env.set_callbacks(&callbacks())?;
    Ok(true)
}

/// Makes `agent` the receiver instead of the current one, which has disabled its events. A running callback ends in the
/// old one.
pub fn replace(env: Env<OnLoad>, agent: &'static dyn Agent) -> Result<()> {
    AGENT.store(Box::into_raw(Box::new(agent)), Ordering::Release);
    env.set_callbacks(&callbacks())
}

/// Runs `begin` with the options for the entry point of an agent. Panics are caught, so that a fault of the agent does not
/// harm the program; the result is then `None`.
///
/// # Safety
/// `vm` is the `JavaVM*` of this process, and `options` null or a C string.
pub unsafe fn load<T>(
    vm: RawEnv,
    options: *const c_char,
    begin: impl FnOnce(JavaVm, &str) -> T,
) -> Option<T> {
    end_at_panics();
    let text = match options.is_null() {
        true => Default::default(),
        // SAFETY: not null, a C string by the caller's promise.
        false => unsafe { CStr::from_ptr(options) }.to_string_lossy(),
    };
    // SAFETY: the caller's promise.
    let java = unsafe { JavaVm::from_raw(vm) };
    catch_unwind(AssertUnwindSafe(|| begin(java, &text))).ok()
}

/// In a debug build, makes a panic of this library end the program, so that no test overlooks a fault that a release
/// build catches and reports in one line.
fn end_at_panics() {
    if !cfg!(debug_assertions) {
        return;
    }
    std::panic::set_hook(Box::new(|panic| {
        let trace = std::backtrace::Backtrace::force_capture();
        // The usual function for messages may be the cause of the panic.
        let _ = writeln!(io::stderr(), "tenure: internal fault: {panic}\n{trace}");
        std::process::abort();
    }));
}

/// Runs `body`; a panic is caught here and reported to the agent.
pub fn fence<T>(callback: &'static str, body: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(value) => Some(value),
        Err(_) => {
            if let Some(agent) = agent() {
                let _ = catch_unwind(AssertUnwindSafe(|| agent.panicked(callback)));
            }
            None
        }
    }
}

/// Runs one callback on the installed agent.
fn deliver(callback: &'static str, body: impl FnOnce(&dyn Agent)) {
    if let Some(agent) = agent() {
        fence(callback, || body(agent));
    }
}

/// Wraps a callback's environments.
///
/// # Safety
/// Both are what the VM passed to a callback in phase `P`.
unsafe fn wrap<P>(env: RawEnv, jni: RawEnv) -> (Env<P>, Jni) {
    // SAFETY: the caller's promise.
    let (env, jni) = unsafe { (Env::from_raw(env), Jni::from_raw(jni)) };
    // Local references of the native code that caused the event count in the callback, too.
    jni.announce_locals(0);
    (env, jni)
}

extern "system" fn vm_start(env: RawEnv, jni: RawEnv) {
    // SAFETY: passed by the VM in the start phase.
    let (env, jni) = unsafe { wrap(env, jni) };
    deliver("VMStart", |agent| agent.vm_start(env, jni));
}

extern "system" fn vm_death(env: RawEnv, jni: RawEnv) {
    // SAFETY: passed by the VM in the live phase.
    let (env, jni) = unsafe { wrap(env, jni) };
    deliver("VMDeath", |agent| agent.vm_death(env, jni));
}

/// A callback whose arguments are the environments and a thread.
macro_rules! thread_callback {
    ($name:ident, $label:literal) => {
        extern "system" fn $name(env: RawEnv, jni: RawEnv, thread: RawObject) {
            // SAFETY: passed by the VM in the live phase.
            let (env, jni) = unsafe { wrap(env, jni) };
            let Some(thread) = Object::new(thread) else {
                return;
            };
            deliver($label, |agent| agent.$name(env, jni, thread));
        }
    };
}
thread_callback!(vm_init, "VMInit");
thread_callback!(virtual_thread_end, "VirtualThreadEnd");

/// Thread events are also sent in the start phase, in which most functions are refused. The agent lists those threads
/// when the VM is initialized.
fn is_live(env: RawEnv) -> bool {
    const LIVE: i32 = 4;
    // SAFETY: passed by the VM; asking for the phase is legal in all of them.
    let env: Env<Start> = unsafe { Env::from_raw(env) };
    env.phase_number() == Ok(LIVE)
}

extern "system" fn thread_start(env: RawEnv, jni: RawEnv, thread: RawObject) {
    let Some(thread) = Object::new(thread).filter(|_| is_live(env)) else {
        return;
    };
    // SAFETY: passed by the VM, in the live phase as just checked.
    let (env, jni) = unsafe { wrap(env, jni) };
    deliver("ThreadStart", |agent| agent.thread_start(env, jni, thread));
}

extern "system" fn thread_end(env: RawEnv, jni: RawEnv, thread: RawObject) {
    let Some(thread) = Object::new(thread).filter(|_| is_live(env)) else {
        return;
    };
    // SAFETY: passed by the VM, in the live phase as just checked.
    let (env, jni) = unsafe { wrap(env, jni) };
    deliver("ThreadEnd", |agent| agent.thread_end(env, jni, thread));
}

extern "system" fn class_prepare(env: RawEnv, jni: RawEnv, thread: RawObject, class: RawObject) {
    let (Some(thread), Some(class)) = (Object::new(thread), Object::new(class)) else {
        return;
    };
    if !is_live(env) {
        return;
    }
    // SAFETY: passed by the VM, in the live phase as just checked.
    let (env, jni) = unsafe { wrap(env, jni) };
    deliver("ClassPrepare", |agent| {
        agent.class_prepare(env, jni, thread, class)
    });
}

/// Does nothing, but must exist: AsyncGetCallTrace returns -1 unless an agent receives class load events.
extern "system" fn class_load(_env: RawEnv, _jni: RawEnv, _thread: RawObject, _class: RawObject) {}

extern "system" fn class_file_load_hook(
    env: RawEnv,
    jni: RawEnv,
    class: RawObject,
    _loader: RawObject,
    name: *const c_char,
    _domain: RawObject,
    len: i32,
    bytes: *const u8,
    new_len: *mut i32,
    new_bytes: *mut *mut u8,
) {
    if bytes.is_null() || new_len.is_null() || new_bytes.is_null() {
        return;
    }
    // SAFETY: the VM passes `len` bytes of class file and a C string or null.
    let (bytes, name) = unsafe {
        let bytes = std::slice::from_raw_parts(bytes, usize::try_from(len).unwrap_or(0));
        let name = (!name.is_null()).then(|| decode_modified_utf8(CStr::from_ptr(name).to_bytes()));
        (bytes, name.unwrap_or_default())
    };
    if is_live(env) {
        // SAFETY: passed by the VM, in the live phase as just checked.
        let _ = unsafe { wrap::<Live>(env, jni) };
    }
    deliver("ClassFileLoadHook", |agent| {
        let Some(patched) = agent.class_file(Object::new(class), &name, bytes) else {
            return;
        };
        let Ok(patched_len) = i32::try_from(patched.len()) else {
            return;
        };
        // SAFETY: passed by the VM; allocation is legal in every phase.
        let env: Env<Start> = unsafe { Env::from_raw(env) };
        if let Ok(memory) = env.allocate_copy(&patched) {
            // SAFETY: both out pointers were checked and belong to this call.
            unsafe {
                *new_bytes = memory;
                *new_len = patched_len;
            }
        }
    });
}

extern "system" fn data_dump_request(env: RawEnv) {
    // SAFETY: passed by the VM in the live phase.
    let env = unsafe { Env::<Live>::from_raw(env) };
    deliver("DataDumpRequest", |agent| agent.data_dump(env));
}

extern "system" fn resource_exhausted(
    env: RawEnv,
    jni: RawEnv,
    flags: i32,
    _reserved: *const c_void,
    _description: *const c_char,
) {
    const JAVA_HEAP: i32 = 2;
    if flags & JAVA_HEAP != 0 {
        // SAFETY: passed by the VM in the live phase.
        let (env, jni) = unsafe { wrap(env, jni) };
        deliver("ResourceExhausted", |agent| agent.heap_exhausted(env, jni));
    }
}

extern "system" fn monitor_wait(
    env: RawEnv,
    jni: RawEnv,
    thread: RawObject,
    object: RawObject,
    timeout: i64,
) {
    // SAFETY: passed by the VM in the live phase.
    let (env, jni) = unsafe { wrap(env, jni) };
    let (Some(thread), Some(object)) = (Object::new(thread), Object::new(object)) else {
        return;
    };
    deliver("MonitorWait", |agent| {
        agent.monitor_wait(env, jni, thread, object, timeout)
    });
}

extern "system" fn monitor_waited(
    env: RawEnv,
    jni: RawEnv,
    thread: RawObject,
    object: RawObject,
    timed_out: u8,
) {
    // SAFETY: passed by the VM in the live phase.
    let (env, jni) = unsafe { wrap(env, jni) };
    let (Some(thread), Some(object)) = (Object::new(thread), Object::new(object)) else {
        return;
    };
    deliver("MonitorWaited", |agent| {
        agent.monitor_waited(env, jni, thread, object, timed_out != 0)
    });
}

/// A callback about a thread at a monitor.
macro_rules! monitor_callback {
    ($name:ident, $label:literal) => {
        extern "system" fn $name(env: RawEnv, jni: RawEnv, thread: RawObject, object: RawObject) {
            // SAFETY: passed by the VM in the live phase.
            let (env, jni) = unsafe { wrap(env, jni) };
            let (Some(thread), Some(object)) = (Object::new(thread), Object::new(object)) else {
                return;
            };
            deliver($label, |agent| agent.$name(env, jni, thread, object));
        }
    };
}
monitor_callback!(contended_enter, "MonitorContendedEnter");
monitor_callback!(contended_entered, "MonitorContendedEntered");

/// A callback about an allocated object.
macro_rules! alloc_callback {
    ($name:ident, $label:literal) => {
        extern "system" fn $name(
            env: RawEnv,
            jni: RawEnv,
            thread: RawObject,
            object: RawObject,
            class: RawObject,
            size: i64,
        ) {
            // SAFETY: passed by the VM in the live phase.
            let (env, jni) = unsafe { wrap(env, jni) };
            let all = (Object::new(thread), Object::new(object), Object::new(class));
            let (Some(thread), Some(object), Some(class)) = all else {
                return;
            };
            deliver($label, |agent| {
                agent.$name(env, jni, thread, object, class, size)
            });
        }
    };
}
alloc_callback!(vm_object_alloc, "VMObjectAlloc");
alloc_callback!(sampled_alloc, "SampledObjectAlloc");

/// A callback about a method of the current thread; live phase only.
macro_rules! method_callback {
    ($name:ident, $label:literal, ($($more:ident: $ty:ty),*)) => {
        extern "system" fn $name(
            env: RawEnv,
            jni: RawEnv,
            thread: RawObject,
            method: MethodPtr,
            $($more: $ty),*
        ) {
            $(let _ = $more;)*
            let Some(thread) = Object::new(thread).filter(|_| is_live(env)) else {
                return;
            };
            // SAFETY: passed by the VM, in the live phase as just checked.
            let (env, jni) = unsafe { wrap(env, jni) };
            deliver($label, |agent| agent.$name(env, jni, thread, method));
        }
    };
}
method_callback!(method_entry, "MethodEntry", ());
// The returned value is a separate argument of 8 bytes and is not passed on.
method_callback!(method_exit, "MethodExit", (by_exception: u8, value: i64));

extern "system" fn native_method_bind(
    _env: RawEnv,
    _jni: RawEnv,
    _thread: RawObject,
    _method: MethodPtr,
    address: *mut c_void,
    new_address: *mut *mut c_void,
) {
    deliver("NativeMethodBind", |agent| {
        if let Some(replacement) = agent.native_bind(address)
            && !new_address.is_null()
        {
            // SAFETY: the out pointer belongs to this call and was checked.
            unsafe { *new_address = replacement };
        }
    });
}

extern "system" fn compiled_method_load(
    env: RawEnv,
    method: MethodPtr,
    len: i32,
    code: *const c_void,
    count: i32,
    map: *const AddrLocation,
    _compile_info: *const c_void,
) {
    if !is_live(env) {
        return;
    }
    // SAFETY: passed by the VM, in the live phase as just checked.
    let env = unsafe { Env::<Live>::from_raw(env) };
    let rows = match usize::try_from(count) {
        // SAFETY: the VM passes `count` rows for the time of the call.
        Ok(count) if count > 0 && !map.is_null() => unsafe {
            std::slice::from_raw_parts(map, count)
        },
        _ => &[],
    };
    deliver("CompiledMethodLoad", |agent| {
        agent.compiled(env, method, code, len, rows)
    });
}

extern "system" fn compiled_method_unload(env: RawEnv, method: MethodPtr, code: *const c_void) {
    if !is_live(env) {
        return;
    }
    // SAFETY: passed by the VM, in the live phase as just checked.
    let env = unsafe { Env::<Live>::from_raw(env) };
    deliver("CompiledMethodUnload", |agent| {
        agent.uncompiled(env, method, code)
    });
}

extern "system" fn gc_start(_env: RawEnv) {
    deliver("GarbageCollectionStart", |agent| agent.gc_start());
}

extern "system" fn gc_finish(_env: RawEnv) {
    deliver("GarbageCollectionFinish", |agent| agent.gc_finish());
}

extern "system" fn object_free(_env: RawEnv, tag: i64) {
    deliver("ObjectFree", |agent| agent.object_free(tag));
}

/// The table of callbacks: one entry per event of [`EventKind`].
fn callbacks() -> EventCallbacks {
    let mut table = EventCallbacks([ptr::null(); 39]);
    let mut set = |event: EventKind, function: *const c_void| {
        table.0[event as usize - EventKind::VmInit as usize] = function;
    };
    set(EventKind::VmInit, vm_init as *const c_void);
    set(EventKind::VmDeath, vm_death as *const c_void);
    set(EventKind::ThreadStart, thread_start as *const c_void);
    set(EventKind::ThreadEnd, thread_end as *const c_void);
    set(
        EventKind::ClassFileLoadHook,
        class_file_load_hook as *const c_void,
    );
    set(EventKind::ClassLoad, class_load as *const c_void);
    set(EventKind::ClassPrepare, class_prepare as *const c_void);
    set(EventKind::VmStart, vm_start as *const c_void);
    set(
        EventKind::DataDumpRequest,
        data_dump_request as *const c_void,
    );
    set(EventKind::MethodEntry, method_entry as *const c_void);
    set(EventKind::MethodExit, method_exit as *const c_void);
    set(
        EventKind::NativeMethodBind,
        native_method_bind as *const c_void,
    );
    set(
        EventKind::CompiledMethodLoad,
        compiled_method_load as *const c_void,
    );
    set(
        EventKind::CompiledMethodUnload,
        compiled_method_unload as *const c_void,
    );
    set(
        EventKind::ResourceExhausted,
        resource_exhausted as *const c_void,
    );
    set(EventKind::MonitorWait, monitor_wait as *const c_void);
    set(EventKind::MonitorWaited, monitor_waited as *const c_void);
    set(
        EventKind::MonitorContendedEnter,
        contended_enter as *const c_void,
    );
    set(
        EventKind::MonitorContendedEntered,
        contended_entered as *const c_void,
    );
    set(EventKind::GarbageCollectionStart, gc_start as *const c_void);
    set(
        EventKind::GarbageCollectionFinish,
        gc_finish as *const c_void,
    );
    set(EventKind::ObjectFree, object_free as *const c_void);
    set(EventKind::VmObjectAlloc, vm_object_alloc as *const c_void);
    set(
        EventKind::SampledObjectAlloc,
        sampled_alloc as *const c_void,
    );
    set(
        EventKind::VirtualThreadEnd,
        virtual_thread_end as *const c_void,
    );
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Set in the child process that must end.
    const CHILD: &str = "JVMTI_TEST_PANICS";

    #[test]
    fn a_panic_ends_a_debug_build() {
        if std::env::var_os(CHILD).is_some() {
            end_at_panics();
            let after = fence("an event", || panic!("a fault"));
            assert!(after.is_none(), "fenced, as in a release");
            return;
        }
        let own = std::env::current_exe().unwrap();
        let mut child = Command::new(own);
        child.args(["--exact", "agent::tests::a_panic_ends_a_debug_build"]);
        let ran = child.arg("--nocapture").env(CHILD, "1").output().unwrap();
        let printed = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.success(), !cfg!(debug_assertions), "{printed}");
        assert!(printed.contains("a fault"), "{printed}");
    }
}
