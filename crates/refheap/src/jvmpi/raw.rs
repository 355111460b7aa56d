//! The table of functions, and the one agent that uses it.
//!
//! Every function catches panics and has a few lines of code. Functions that need the VM get it from [`HERE`], which is
//! set while the agent is being notified of an event; at any other time, and on threads of the agent, they return a
//! failure.
#![allow(unsafe_code)]

use std::cell::{Cell, UnsafeCell};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use vmpi::c_interface::layout::{
    CallTrace, EnvPtr, Event, FAIL, Interface, MethodPtr, NOT_AVAILABLE, Notify, ObjectId, Payload,
    ReferencePtr, SUCCESS, ThreadFn, VERSION_1, VERSION_1_2,
};
use vmpi::c_interface::raw_monitor::{RawMonitor, RawMonitors};
use vmpi::dump::IdLayout;
use vmpi::dump::monitor::{MonitorRecord, encode};
use vmpi::mode::Request;
use vmpi::{Body, DumpLevel, EnvId, EventKind, EventMode, JMethodId, ObjectHandle, Outcome};

use super::{AgentError, EMITTED, payload};
use crate::core::{Core, VM_THREAD};

const JNI_OK: i32 = 0;
const JNI_ERR: i32 = -1;
const JNI_EVERSION: i32 = -3;
/// `ProfilerExit` was not called.
const GOES_ON: i64 = i64::MAX;

/// The agent's settings.
#[derive(Debug)]
struct State {
    /// Bit n: event n is enabled.
    enabled: AtomicU64,
    exit: AtomicI64,
    monitors: RawMonitors,
    /// Thread-local storage by env.
    local: Mutex<HashMap<usize, usize>>,
}

static STATE: OnceLock<State> = OnceLock::new();

/// The VM while the agent is being notified, the thread of the event, and the mode, in which threads may be suspended.
#[derive(Clone, Copy)]
struct Here {
    vm: *const Core<'static>,
    env: EnvId,
    mode: EventMode,
}

thread_local! {
    static HERE: Cell<Option<Here>> = const { Cell::new(None) };
}

/// The table that agents receive. They write one field of it.
struct Shared(UnsafeCell<Interface>);

// SAFETY: the only field that is written later (by the agent) is read as an atomic.
unsafe impl Sync for Shared {}

static INTERFACE: Shared = Shared(UnsafeCell::new(vmpi::jvmpi_functions!()));

/// A `JavaVM`: three reserved words, then the functions.
struct Vm([*const c_void; 8]);

// SAFETY: never written.
unsafe impl Sync for Vm {}

static VM: Vm = Vm([
    std::ptr::null(),
    std::ptr::null(),
    std::ptr::null(),
    refuse as *const c_void,
    refuse as *const c_void,
    refuse as *const c_void,
    get_env as *const c_void,
    refuse as *const c_void,
]);

/// There is no JNI: attaching, detaching and destroying are refused.
extern "system" fn refuse() -> i32 {
    JNI_ERR
}

extern "system" fn get_env(_vm: *mut c_void, out: *mut *mut c_void, version: i32) -> i32 {
    if out.is_null() {
        return JNI_ERR;
    }
    let table = INTERFACE.0.get();
    let is_known = (VERSION_1..=VERSION_1_2).contains(&version);
    // SAFETY: not null, where the caller wants the answer; the version is a field of
    // a static that no one else uses while an agent is loaded.
    unsafe {
        if is_known {
            (*table).version = version;
        }
        *out = if is_known {
            table.cast()
        } else {
            std::ptr::null_mut()
        };
    }
    if is_known { JNI_OK } else { JNI_EVERSION }
}

/// Loads the library and calls its `JVM_OnLoad`.
pub(super) fn load(library: &Path, options: &str) -> Result<(), AgentError> {
    type OnLoad = unsafe extern "system" fn(*mut c_void, *mut c_char, *mut c_void) -> i32;
    let state = State {
        enabled: AtomicU64::new(0),
        exit: AtomicI64::new(GOES_ON),
        monitors: RawMonitors::default(),
        local: Mutex::default(),
    };
    let path = payload::text(&library.to_string_lossy());
    // SAFETY: loads the library that the user names; a C string.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
    if handle.is_null() {
        // SAFETY: dlerror gives null or a C string of this thread.
        let fault = unsafe {
            let error = libc::dlerror();
            (!error.is_null()).then(|| CStr::from_ptr(error))
        };
        let fault = fault.unwrap_or_default().to_string_lossy().into_owned();
        return Err(AgentError::Load(fault));
    }
    // SAFETY: a valid handle and a C string.
    let symbol = unsafe { libc::dlsym(handle, c"JVM_OnLoad".as_ptr()) };
    if symbol.is_null() {
        return Err(AgentError::NoEntry);
    }
    STATE.set(state).map_err(|_| AgentError::Second)?;
    // SAFETY: the symbol of that name has this signature in every agent.
    let on_load = unsafe { std::mem::transmute::<*mut c_void, OnLoad>(symbol) };
    // A pointer to the table's address. It and the options are never freed, because agents keep pointers to them.
    let vm: &'static *const c_void = Box::leak(Box::new((&raw const VM.0).cast::<c_void>()));
    let vm = std::ptr::from_ref(vm).cast_mut().cast();
    let options = payload::text(options).into_raw();
    // SAFETY: `vm` behaves as a `JavaVM *`; the options live for ever.
    match unsafe { on_load(vm, options, std::ptr::null_mut()) } {
        JNI_OK => Ok(()),
        code => Err(AgentError::Refused(code)),
    }
}

/// Whether the agent has enabled an event.
pub(super) fn is_on(kind: EventKind) -> bool {
    let bits = STATE.get().map(|s| s.enabled.load(Ordering::Relaxed));
    bits.is_some_and(|bits| bits >> kind.code() & 1 == 1)
}

pub(super) fn exit_code() -> Option<i32> {
    let code = STATE.get()?.exit.load(Ordering::SeqCst);
    (code != GOES_ON).then_some(code as i32)
}

/// Calls the agent, which may call functions of `vm` meanwhile.
pub(super) fn send(vm: &Core<'_>, env: EnvId, body: &Body, requested: bool) {
    /// Restores the previous value on drop.
    struct Back(Option<Here>);
    impl Drop for Back {
        fn drop(&mut self) {
            HERE.set(self.0);
        }
    }
    // SAFETY: a field of a static; the agent writes it with one store, so it is read
    // as an atomic.
    let notify = unsafe {
        let field = (&raw mut (*INTERFACE.0.get()).notify).cast::<*mut ()>();
        AtomicPtr::from_ptr(field).load(Ordering::Acquire)
    };
    if notify.is_null() {
        return;
    }
    // SAFETY: not null, so it is the function that the agent stored.
    let notify: Notify = unsafe { std::mem::transmute::<*mut (), Notify>(notify) };
    let kind = body.kind();
    payload::with(body, |payload: Payload| {
        let mut event = Event {
            event_type: if requested {
                kind.requested_code()
            } else {
                kind.code()
            },
            env: payload::env(env),
            payload,
        };
        let here = Here {
            vm: std::ptr::from_ref(vm).cast(),
            env,
            mode: kind.mode(),
        };
        let _back = Back(HERE.replace(Some(here)));
        notify(&raw mut event);
    });
    if kind == EventKind::ThreadEnd
        && let Some(state) = STATE.get()
    {
        locked(&state.local).remove(&(env.0 as usize));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `body` with the state; returns `other` without an agent or after a panic.
fn with<T>(other: T, body: impl FnOnce(&'static State) -> T) -> T {
    let run = AssertUnwindSafe(|| STATE.get().map(body));
    catch_unwind(run).ok().flatten().unwrap_or(other)
}

/// Runs `body` with the VM; returns `other` if it is not available.
fn asked<T>(other: T, body: impl FnOnce(&Core<'_>, Here) -> T) -> T {
    let run = AssertUnwindSafe(|| {
        let here = HERE.get()?;
        // SAFETY: `send` holds the reference as long as this is set, on this thread.
        Some(body(unsafe { &*here.vm }, here))
    });
    catch_unwind(run).ok().flatten().unwrap_or(other)
}

fn env_of(thread: EnvPtr) -> EnvId {
    EnvId(thread as usize as u64)
}

fn switch(kind: i32, on: bool) -> i32 {
    with(FAIL, |state| {
        let Some(kind) = EventKind::from_code(kind).filter(|kind| EMITTED.contains(kind)) else {
            return NOT_AVAILABLE;
        };
        let bit = 1 << kind.code();
        if on {
            state.enabled.fetch_or(bit, Ordering::SeqCst);
        } else {
            state.enabled.fetch_and(!bit, Ordering::SeqCst);
        }
        SUCCESS
    })
}

extern "C" fn enable_event(kind: i32, _arg: *mut c_void) -> i32 {
    switch(kind, true)
}

extern "C" fn disable_event(kind: i32, _arg: *mut c_void) -> i32 {
    switch(kind, false)
}

/// The second argument of `RequestEvent`, which is a pointer only for heap dumps.
fn request_of(kind: EventKind, arg: *mut c_void) -> Option<Request> {
    if kind != EventKind::HeapDump || arg.is_null() {
        return Request::new(kind, ObjectHandle(arg as usize as u64));
    }
    // SAFETY: not null, so a `JVMPI_HeapDumpArg` by the interface.
    let level = unsafe { *arg.cast::<i32>() };
    let level = u64::try_from(level).ok().and_then(DumpLevel::from_code);
    level.map(Request::HeapDump)
}

extern "C" fn request_event(kind: i32, arg: *mut c_void) -> i32 {
    let Some(kind) = EventKind::from_code(kind).filter(|kind| vmpi::Switches::may_request(*kind))
    else {
        return NOT_AVAILABLE;
    };
    asked(FAIL, |vm, here| {
        // While objects are freed and moved, requests are not allowed.
        let Some(request) = request_of(kind, arg).filter(|_| here.mode != EventMode::Suspended)
        else {
            return FAIL;
        };
        let Some(mut body) = vm.answer(request) else {
            return FAIL;
        };
        if let (Body::MonitorDump(dump), Some(state)) = (&mut body, STATE.get()) {
            let data = &mut dump.data;
            let monitors = &state.monitors;
            monitors.used(|usage| encode(data, &MonitorRecord::of(usage), IdLayout::NATIVE));
        }
        send(vm, here.env, &body, true);
        SUCCESS
    })
}

extern "C" fn get_call_trace(trace: *mut CallTrace, depth: i32) {
    if trace.is_null() {
        return;
    }
    // SAFETY: not null, so a trace with room for `depth` frames by the interface.
    let trace = unsafe { &mut *trace };
    trace.count = 0;
    let depth = usize::try_from(depth).unwrap_or(0);
    if trace.frames.is_null() {
        return;
    }
    let found = asked(None, |vm, _| vm.call_trace(env_of(trace.env), depth));
    let frames = found
        .map(|found| payload::frames(&found))
        .unwrap_or_default();
    // SAFETY: room for `depth` frames, and there are no more.
    unsafe { std::ptr::copy_nonoverlapping(frames.as_ptr(), trace.frames, frames.len()) };
    trace.count = frames.len() as i32;
}

extern "C" fn profiler_exit(code: i32) {
    with((), |state| state.exit.store(code.into(), Ordering::SeqCst));
}

/// The identity of the current machine thread for raw monitors: all threads of the script have the same one, so a
/// monitor that one of them owns does not block another.
fn owner() -> usize {
    thread_local! {
        static ADDRESS: u8 = const { 0 };
    }
    if HERE.get().is_some() {
        return VM_THREAD.0 as usize;
    }
    let address = ADDRESS.try_with(|byte| &raw const *byte as usize);
    address.unwrap_or(usize::MAX)
}

/// The events of contention are not available: the VM has one machine thread.
fn silent(_kind: i32, _monitor: &RawMonitor) {}

extern "C" fn raw_monitor_create(name: *const c_char) -> usize {
    let name = if name.is_null() {
        CString::default()
    } else {
        // SAFETY: not null, a C string by the interface.
        unsafe { CStr::from_ptr(name) }.to_owned()
    };
    with(0, |state| state.monitors.create(name))
}

extern "C" fn raw_monitor_enter(id: usize) {
    with((), |state| state.monitors.enter(id, owner(), &silent));
}

extern "C" fn raw_monitor_exit(id: usize) {
    with((), |state| state.monitors.exit(id, owner(), &silent));
}

extern "C" fn raw_monitor_wait(id: usize, ms: i64) {
    with((), |state| state.monitors.wait(id, owner(), ms));
}

extern "C" fn raw_monitor_notify_all(id: usize) {
    with((), |state| state.monitors.notify_all(id, owner()));
}

extern "C" fn raw_monitor_destroy(id: usize) {
    with((), |state| state.monitors.destroy(id));
}

/// The CPU time of a thread, which is at least one microsecond per line of its script: this VM has no clock.
extern "C" fn get_current_thread_cpu_time() -> i64 {
    asked(0, |vm, here| vm.steps(here.env).cast_signed() * 1000)
}

extern "C" fn suspend_thread(thread: EnvPtr) {
    each(1, &raw const thread, std::ptr::null_mut(), |vm, env| {
        vm.suspend(env)
    });
}

extern "C" fn resume_thread(thread: EnvPtr) {
    each(1, &raw const thread, std::ptr::null_mut(), |vm, env| {
        vm.resume(env)
    });
}

extern "C" fn get_thread_status(thread: EnvPtr) -> i32 {
    asked(0, |vm, _| vm.thread_status(env_of(thread)).unwrap_or(0))
}

extern "C" fn thread_has_run(thread: EnvPtr) -> u8 {
    asked(0, |vm, _| u8::from(vm.thread_has_run(env_of(thread))))
}

/// This VM runs on one machine thread and cannot create another one.
extern "C" fn create_system_thread(_: *const c_char, _: i32, _: Option<ThreadFn>) -> i32 {
    JNI_ERR
}

extern "C" fn set_thread_local_storage(thread: EnvPtr, data: *mut c_void) {
    with((), |state| {
        locked(&state.local).insert(thread as usize, data as usize);
    });
}

extern "C" fn get_thread_local_storage(thread: EnvPtr) -> *mut c_void {
    let found = with(None, |state| {
        locked(&state.local).get(&(thread as usize)).copied()
    });
    found.unwrap_or(0) as *mut c_void
}

extern "C" fn disable_gc() {
    asked((), |vm, _| vm.disable_gc());
}

extern "C" fn enable_gc() {
    asked((), |vm, _| vm.enable_gc());
}

extern "C" fn run_gc() {
    asked((), |vm, _| vm.gc_wanted.set(true));
}

extern "C" fn get_thread_object(thread: EnvPtr) -> ObjectId {
    let found = asked(None, |vm, _| vm.thread_object(env_of(thread)));
    found.map_or(0, |object| object.0 as ObjectId)
}

extern "C" fn get_method_class(method: MethodPtr) -> ObjectId {
    let method = JMethodId(method as usize as u64);
    let found = asked(None, |vm, _| vm.method_class(method));
    found.map_or(0, |class| class.handle().0 as ObjectId)
}

/// There is no JNI, so there are no references.
extern "C" fn id_to_object(_id: ObjectId) -> ReferencePtr {
    std::ptr::null_mut()
}

extern "C" fn object_to_id(_object: ReferencePtr) -> ObjectId {
    0
}

/// Suspends or resumes each thread of a list.
fn each(
    count: i32,
    threads: *const EnvPtr,
    results: *mut i32,
    act: impl Fn(&Core<'_>, EnvId) -> Outcome,
) {
    if threads.is_null() {
        return;
    }
    for at in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: `count` threads, by the interface.
        let thread = unsafe { *threads.add(at) };
        let outcome = asked(Outcome::Fail, |vm, _| act(vm, env_of(thread)));
        if !results.is_null() {
            // SAFETY: not null, so room for `count` results.
            unsafe { *results.add(at) = outcome as i32 };
        }
    }
}

extern "C" fn suspend_thread_list(count: i32, threads: *const EnvPtr, results: *mut i32) {
    each(count, threads, results, |vm, env| vm.suspend(env));
}

extern "C" fn resume_thread_list(count: i32, threads: *const EnvPtr, results: *mut i32) {
    each(count, threads, results, |vm, env| vm.resume(env));
}
