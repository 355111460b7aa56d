//! The functions of the interface: each catches panics and has a few lines of code.

use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::sync::atomic::{AtomicI32, Ordering};

use jvmti::sys::{MethodPtr, RawEnv, RawObject, Value};
use jvmti::{Env, Jni, Live, Object};

use crate::bridge::{Bridge, with_profiler_paused};
use crate::words::CpuTime;
use vmpi::DumpLevel;
use vmpi::c_interface::layout::{
    CallTrace, FAIL, Interface, NOT_AVAILABLE, ObjectId, Payload, RawMonitorEvent, SUCCESS,
    ThreadFn, event,
};
use vmpi::c_interface::raw_monitor::RawMonitor;

/// The table that agents receive. They write one field of it.
pub(crate) struct Shared(pub(crate) UnsafeCell<Interface>);

// SAFETY: the only field that is ever written (by the agent) is read as an atomic.
unsafe impl Sync for Shared {}

pub(crate) static INTERFACE: Shared = Shared(UnsafeCell::new(vmpi::jvmpi_functions!()));

/// The table for an agent that requests `version`. There is one table, which has the version that was requested last:
/// newer versions only add functions at the end.
pub(crate) fn table(version: i32) -> *mut c_void {
    let table = INTERFACE.0.get();
    // SAFETY: a field of a static, written as an atomic.
    unsafe { AtomicI32::from_ptr(&raw mut (*table).version) }.store(version, Ordering::Release);
    table.cast()
}

/// Calls `body` with the bridge; returns `other` if there is no bridge, or after a panic.
fn with<T: Copy>(name: &'static str, other: T, body: impl FnOnce(&'static Bridge) -> T) -> T {
    let run = || Bridge::get().map_or(other, |bridge| with_profiler_paused(|| body(bridge)));
    jvmti::fence(name, run).unwrap_or(other)
}

/// As [`with`], for functions that need an initialized VM and a thread that is attached to it.
fn live<T: Copy>(
    name: &'static str,
    other: T,
    body: impl FnOnce(&'static Bridge, Env<Live>, Jni) -> T,
) -> T {
    with(name, other, |bridge| match bridge.here() {
        Some((env, jni)) => body(bridge, env, jni),
        None => other,
    })
}

extern "C" fn enable_event(kind: i32, _arg: *mut c_void) -> i32 {
    with("EnableEvent", FAIL, |bridge| bridge.switch(kind, true))
}

extern "C" fn disable_event(kind: i32, _arg: *mut c_void) -> i32 {
    with("DisableEvent", FAIL, |bridge| bridge.switch(kind, false))
}

extern "C" fn request_event(kind: i32, arg: *mut c_void) -> i32 {
    const AVAILABLE: [i32; 6] = [
        event::CLASS_LOAD,
        event::OBJECT_ALLOC,
        event::THREAD_START,
        event::HEAP_DUMP,
        event::OBJECT_DUMP,
        event::MONITOR_DUMP,
    ];
    if !AVAILABLE.contains(&kind) {
        return NOT_AVAILABLE;
    }
    live("RequestEvent", FAIL, |bridge, env, jni| {
        jni.local_frame(64, || bridge.request(env, jni, kind, arg))
    })
}

impl Bridge {
    /// Handles a request on this thread before it returns.
    fn request(&self, env: Env<Live>, jni: Jni, kind: i32, arg: *mut c_void) -> i32 {
        use vmpi::c_interface::layout::REQUESTED;
        let id = arg as ObjectId;
        let answered = match kind {
            event::CLASS_LOAD => self.send_class(env, jni, id, REQUESTED),
            event::OBJECT_ALLOC => self.objects.get(id).is_some_and(|record| {
                let obj_alloc = record.payload(id);
                self.send(jni.raw(), kind | REQUESTED, Payload { obj_alloc });
                true
            }),
            event::THREAD_START => {
                let raw = self.threads.env_with_id(id);
                let thread = raw.and_then(|raw| Some((raw, self.threads.object(jni, raw)?)));
                thread.is_some_and(|(raw, thread)| {
                    self.send_thread(env, jni, raw, thread, REQUESTED);
                    true
                })
            }
            event::HEAP_DUMP => {
                const DEFAULT: i32 = 2;
                let level = if arg.is_null() {
                    DEFAULT
                } else {
                    // SAFETY: not null, so a `JVMPI_HeapDumpArg` by the interface.
                    unsafe { *arg.cast::<i32>() }
                };
                let level = u64::try_from(level).ok().and_then(DumpLevel::from_code);
                level.is_some_and(|level| self.dump_heap(env, jni, level))
            }
            event::OBJECT_DUMP => self.dump_object(env, jni, id),
            event::MONITOR_DUMP => self.dump_monitors(env, jni),
            _ => return NOT_AVAILABLE,
        };
        if answered { SUCCESS } else { FAIL }
    }
}

extern "C" fn get_call_trace(trace: *mut CallTrace, depth: i32) {
    // SAFETY: null or a trace with room for `depth` frames, by the interface.
    with("GetCallTrace", (), |bridge| unsafe {
        bridge.call_trace(trace, depth)
    });
}

/// Ends the VM immediately, as the original did: no shutdown hook of the program runs, because one might need a lock
/// that the agent holds.
extern "C" fn profiler_exit(code: i32) {
    with("ProfilerExit", (), |bridge| {
        if let Some((_, jni)) = bridge.here() {
            let halt = || -> jvmti::Result<()> {
                let class = jni.find_class("java/lang/Runtime")?;
                let get = jni.static_method(class, "getRuntime", "()Ljava/lang/Runtime;")?;
                let halt = jni.method(class, "halt", "(I)V")?;
                if let Some(runtime) = jni.call_static_object(class, get, &[])? {
                    jni.call_void(runtime, halt, &[Value { i: code }])?;
                }
                Ok(())
            };
            let _ = halt();
        }
        // SAFETY: the agent wants the process to end, and there is no VM to ask.
        unsafe { libc::exit(code) }
    });
}

extern "C" fn raw_monitor_create(name: *const c_char) -> usize {
    let name = if name.is_null() {
        CString::default()
    } else {
        // SAFETY: not null, a C string by the interface.
        unsafe { CStr::from_ptr(name) }.to_owned()
    };
    with("RawMonitorCreate", 0, |bridge| bridge.monitors.create(name))
}

/// The identity of the current thread for raw monitors: its `JNIEnv*`, or the address of a thread-local if the VM does
/// not know the thread.
fn me(bridge: &Bridge) -> usize {
    thread_local! {
        static ADDRESS: u8 = const { 0 };
    }
    match bridge.java.jni() {
        Some(jni) => jni.raw() as usize,
        None => ADDRESS
            .try_with(|byte| &raw const *byte as usize)
            .unwrap_or(1),
    }
}

/// Reports contention to the agent, also if it happens while this thread runs the agent, but not contention in the
/// handler of such a report.
fn emit(id: usize) -> impl Fn(i32, &RawMonitor) {
    thread_local! {
        static EMITTING: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    }
    move |kind, monitor| {
        let Some(bridge) = Bridge::get().filter(|bridge| bridge.is_on(kind)) else {
            return;
        };
        let Some((env, jni)) = bridge.here() else {
            return;
        };
        if EMITTING.replace(true) {
            return;
        }
        bridge.meet_current(env, jni);
        let name = monitor.name.as_ptr();
        let raw_monitor = RawMonitorEvent { name, id };
        bridge.send(jni.raw(), kind, Payload { raw_monitor });
        EMITTING.set(false);
    }
}

extern "C" fn raw_monitor_enter(id: usize) {
    with("RawMonitorEnter", (), |bridge| {
        bridge.monitors.enter(id, me(bridge), &emit(id));
    });
}

extern "C" fn raw_monitor_exit(id: usize) {
    with("RawMonitorExit", (), |bridge| {
        bridge.monitors.exit(id, me(bridge), &emit(id));
    });
}

extern "C" fn raw_monitor_wait(id: usize, ms: i64) {
    with("RawMonitorWait", (), |bridge| {
        bridge.monitors.wait(id, me(bridge), ms);
    });
}

extern "C" fn raw_monitor_notify_all(id: usize) {
    with("RawMonitorNotifyAll", (), |bridge| {
        bridge.monitors.notify_all(id, me(bridge));
    });
}

extern "C" fn raw_monitor_destroy(id: usize) {
    with("RawMonitorDestroy", (), |bridge| {
        bridge.monitors.destroy(id)
    });
}

extern "C" fn get_current_thread_cpu_time() -> i64 {
    with("GetCurrentThreadCpuTime", 0, |bridge| {
        let blocking = event::RAW_MONITOR_CONTENDED_ENTER..=event::MONITOR_WAITED;
        let is_elapsed = match bridge.words.cpu_time {
            CpuTime::Thread => false,
            CpuTime::Elapsed => true,
            CpuTime::Auto => blocking.into_iter().any(|kind| bridge.is_on(kind)),
        };
        let clock = if is_elapsed {
            libc::CLOCK_MONOTONIC
        } else {
            libc::CLOCK_THREAD_CPUTIME_ID
        };
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the pointer is to a live local.
        unsafe { libc::clock_gettime(clock, &raw mut time) };
        time.tv_sec * 1_000_000_000 + time.tv_nsec
    })
}

extern "C" fn suspend_thread(thread: RawEnv) {
    live("SuspendThread", (), |bridge, env, jni| {
        bridge.suspend(env, jni, thread);
    });
}

extern "C" fn resume_thread(thread: RawEnv) {
    live("ResumeThread", (), |bridge, env, jni| {
        bridge.resume(env, jni, thread);
    });
}

extern "C" fn get_thread_status(thread: RawEnv) -> i32 {
    live("GetThreadStatus", 0, |bridge, env, jni| {
        jni.local_frame(4, || bridge.status(env, jni, thread))
    })
}

extern "C" fn thread_has_run(thread: RawEnv) -> u8 {
    with("ThreadHasRun", 0, |bridge| u8::from(bridge.has_run(thread)))
}

/// A fresh `Thread` object; runs Java code.
pub(crate) fn new_thread(jni: Jni, name: &str) -> jvmti::Result<Object> {
    let class = jni.find_class("java/lang/Thread")?;
    let make = jni.method(class, "<init>", "(Ljava/lang/String;)V")?;
    let name = jni.new_string(name)?;
    jni.new_object(class, make, &[Value { l: name.raw() }])
}

extern "C" fn create_system_thread(
    name: *const c_char,
    priority: i32,
    body: Option<ThreadFn>,
) -> i32 {
    const JNI_OK: i32 = 0;
    const JNI_ERR: i32 = -1;
    let Some(body) = body else { return JNI_ERR };
    let name = if name.is_null() {
        String::new()
    } else {
        // SAFETY: not null, a C string by the interface.
        let name = unsafe { CStr::from_ptr(name) };
        name.to_string_lossy().into_owned()
    };
    live("CreateSystemThread", JNI_ERR, |_, env, jni| {
        jni.local_frame(16, || {
            let start = || {
                let thread = new_thread(jni, &name)?;
                let run = Box::new(move |_: Env<Live>, _: Jni| body(std::ptr::null_mut()));
                env.run_agent_thread(thread, priority.clamp(1, 10), run)
            };
            if start().is_ok() { JNI_OK } else { JNI_ERR }
        })
    })
}

extern "C" fn set_thread_local_storage(thread: RawEnv, data: *mut c_void) {
    with("SetThreadLocalStorage", (), |bridge| {
        bridge.threads.set_local(thread, data);
    });
}

extern "C" fn get_thread_local_storage(thread: RawEnv) -> *mut c_void {
    let nothing = std::ptr::null_mut();
    with("GetThreadLocalStorage", nothing, |bridge| {
        bridge.threads.local(thread)
    })
}

extern "C" fn disable_gc() {
    with("DisableGC", (), |bridge| bridge.collector.hold(1));
}

extern "C" fn enable_gc() {
    with("EnableGC", (), |bridge| bridge.collector.hold(-1));
}

extern "C" fn run_gc() {
    live("RunGC", (), |bridge, env, jni| bridge.run_gc(env, jni));
}

extern "C" fn get_thread_object(thread: RawEnv) -> ObjectId {
    with("GetThreadObject", 0, |bridge| bridge.threads.id(thread))
}

/// Whether a method id points to readable memory: the VM dereferences it twice before it checks it.
fn is_readable_method(method: MethodPtr) -> bool {
    let read = |address: usize| -> Option<usize> {
        let mut word = 0_usize;
        let local = libc::iovec {
            iov_base: (&raw mut word).cast(),
            iov_len: size_of::<usize>(),
        };
        let remote = libc::iovec {
            iov_base: address as *mut c_void,
            iov_len: size_of::<usize>(),
        };
        // SAFETY: the kernel checks the address, and `word` is a live local.
        let got = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
        (got == size_of::<usize>() as isize).then_some(word)
    };
    let address = method.0 as usize;
    address.is_multiple_of(size_of::<usize>()) && read(address).and_then(read).is_some()
}

extern "C" fn get_method_class(method: *mut c_void) -> ObjectId {
    live("GetMethodClass", 0, |bridge, env, jni| {
        let method = MethodPtr(method);
        if !is_readable_method(method) {
            return 0;
        }
        jni.local_frame(8, || match env.method_class(method) {
            Ok(Some(class)) => bridge.name_class(env, jni, class),
            _ => 0,
        })
    })
}

extern "C" fn id_to_object(id: ObjectId) -> RawObject {
    let nothing = std::ptr::null_mut();
    live("jobjectID2jobject", nothing, |bridge, env, jni| {
        // This creates no local frame, because the agent owns this local reference.
        bridge
            .object_of(env, jni, id)
            .map_or(nothing, |object| object.raw())
    })
}

extern "C" fn object_to_id(object: RawObject) -> ObjectId {
    live("jobject2jobjectID", 0, |bridge, env, jni| {
        if !jni.is_reference(object) {
            return 0;
        }
        // SAFETY: the VM knows it for a reference.
        let object = unsafe { Object::from_raw(object) };
        object.map_or(0, |object| bridge.id_of(env, jni, object))
    })
}

/// Suspends or resumes each thread of a list.
fn each(
    name: &'static str,
    count: i32,
    threads: *const RawEnv,
    results: *mut i32,
    act: fn(&Bridge, Env<Live>, Jni, RawEnv) -> i32,
) {
    let count = usize::try_from(count).unwrap_or(0);
    if threads.is_null() {
        return;
    }
    for at in 0..count {
        // SAFETY: `count` threads, by the interface.
        let thread = unsafe { *threads.add(at) };
        let result = live(name, FAIL, |bridge, env, jni| act(bridge, env, jni, thread));
        if !results.is_null() {
            // SAFETY: not null, so room for `count` results.
            unsafe { *results.add(at) = result };
        }
    }
}

extern "C" fn suspend_thread_list(count: i32, threads: *const RawEnv, results: *mut i32) {
    each(
        "SuspendThreadList",
        count,
        threads,
        results,
        Bridge::suspend,
    );
}

extern "C" fn resume_thread_list(count: i32, threads: *const RawEnv, results: *mut i32) {
    each("ResumeThreadList", count, threads, results, Bridge::resume);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_id_that_leads_nowhere_is_not_followed() {
        let leads = 0_usize;
        let to_word = (&raw const leads) as usize;
        let good = (&raw const to_word) as *mut c_void;
        assert!(is_readable_method(MethodPtr(good)));
        for bad in [0, 1, 0xdead_beef_usize, usize::MAX, to_word] {
            assert!(
                !is_readable_method(MethodPtr(bad as *mut c_void)),
                "{bad:x}"
            );
        }
    }

    #[test]
    fn without_a_vm_every_function_says_no() {
        assert_eq!(
            enable_event(event::OBJECT_ALLOC, std::ptr::null_mut()),
            FAIL
        );
        assert_eq!(
            request_event(event::GC_START, std::ptr::null_mut()),
            NOT_AVAILABLE
        );
        assert_eq!(request_event(event::HEAP_DUMP, std::ptr::null_mut()), FAIL);
        get_call_trace(std::ptr::null_mut(), 5);
        run_gc();
        assert_eq!(get_method_class(std::ptr::null_mut()), 0);
        assert!(id_to_object(8).is_null());
        assert_eq!(create_system_thread(c"t".as_ptr(), 5, None), -1);
    }
}
