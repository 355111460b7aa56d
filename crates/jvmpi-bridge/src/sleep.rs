//! `Thread.sleep` as MONITOR_WAIT without an object: the name of the VM's own function is known, and when Java's method
//! is bound to it, it is replaced by a function of the bridge.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Instant;

use jvmti::sys::{RawEnv, RawObject};

use crate::bridge::{Bridge, with_profiler_paused};
use vmpi::c_interface::layout::{MonitorWait, Payload, event};

type Sleep = extern "system" fn(RawEnv, RawObject, i64);

static MILLIS: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
static NANOS: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// The replacement for the code of a native method, if that method sleeps.
pub(crate) fn replacement(address: *mut c_void) -> Option<*mut c_void> {
    let is = |name: &CStr| {
        // SAFETY: looks a name up among the libraries of this process.
        let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        !found.is_null() && found == address
    };
    if is(c"JVM_Sleep") {
        MILLIS.store(address, Ordering::Release);
        Some(sleep_millis as *mut c_void)
    } else if is(c"JVM_SleepNanos") {
        NANOS.store(address, Ordering::Release);
        Some(sleep_nanos as *mut c_void)
    } else {
        None
    }
}

/// Reports the start and the end of a sleep, and runs `sleep` between them.
fn report_around(env: RawEnv, millis: i64, sleep: impl FnOnce()) {
    let emit = |kind: i32, timeout: i64| {
        let _ = jvmti::fence("sleep", || {
            let Some(bridge) = Bridge::get().filter(|bridge| bridge.wants(kind)) else {
                return;
            };
            if let Some((live, jni)) = bridge.here().filter(|(_, jni)| jni.raw() == env) {
                with_profiler_paused(|| {
                    bridge.meet_current(live, jni);
                    let monitor_wait = MonitorWait { object: 0, timeout };
                    bridge.send(env, kind, Payload { monitor_wait });
                });
            }
        });
    };
    emit(event::MONITOR_WAIT, millis);
    let start = Instant::now();
    sleep();
    let slept = i64::try_from(start.elapsed().as_millis()).unwrap_or(i64::MAX);
    emit(event::MONITOR_WAITED, slept);
}

extern "system" fn sleep_millis(env: RawEnv, class: RawObject, millis: i64) {
    let function = MILLIS.load(Ordering::Acquire);
    if !function.is_null() {
        // SAFETY: the VM's own function for this method.
        let function = unsafe { std::mem::transmute::<*mut c_void, Sleep>(function) };
        report_around(env, millis, || function(env, class, millis));
    }
}

extern "system" fn sleep_nanos(env: RawEnv, class: RawObject, nanos: i64) {
    let function = NANOS.load(Ordering::Acquire);
    if !function.is_null() {
        // SAFETY: the VM's own function for this method.
        let function = unsafe { std::mem::transmute::<*mut c_void, Sleep>(function) };
        report_around(env, nanos / 1_000_000, || function(env, class, nanos));
    }
}
