//! How agents get the interface: `GetEnv` of the `JavaVM`.
//!
//! HotSpot's `GetEnv` returns that this interface is no longer supported. A `JavaVM` is a pointer to a table of
//! functions, and the pointer is in the VM's data: it is changed to point to a copy of the table with the bridge's
//! `GetEnv`. So every way to the interface works (the pointer that the bridge or `-Xrun` passes to `JVM_OnLoad`, and
//! the one from JNI's `GetJavaVM`). If that memory cannot be written, the agent that the bridge itself loads gets a
//! separate `JavaVM` of the bridge.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

use jvmti::sys::{RawEnv, vm_slot};

use crate::interface;
use vmpi::c_interface::layout::{VERSION_1, VERSION_1_2};

const SLOTS: usize = 8;
type Table = [*const c_void; SLOTS];
type GetEnv = extern "system" fn(RawEnv, *mut *mut c_void, i32) -> i32;

/// The original table, and the `JavaVM` that it belongs to.
struct Before {
    get_env: GetEnv,
    vm: RawEnv,
    table: *const *const c_void,
}

// SAFETY: written once before any reader; the pointers are to VM statics.
unsafe impl Send for Before {}
// SAFETY: as above.
unsafe impl Sync for Before {}

static BEFORE: OnceLock<Before> = OnceLock::new();

/// Handles versions of the profiler interface; passes all others to the original function.
extern "system" fn get_env(vm: RawEnv, out: *mut *mut c_void, version: i32) -> i32 {
    const JNI_EVERSION: i32 = -3;
    if (VERSION_1..=VERSION_1_2).contains(&version) && !out.is_null() {
        // SAFETY: not null; where the caller wants the answer.
        unsafe { *out = interface::table(version) };
        return 0;
    }
    let _ = vm;
    match BEFORE.get() {
        Some(before) => (before.get_env)(before.vm, out, version),
        None => JNI_EVERSION,
    }
}

/// The functions other than `GetEnv`, called with the VM's original pointer.
macro_rules! pass_on {
    ($name:ident, $slot:expr, ($($arg:ident: $ty:ty),*)) => {
        extern "system" fn $name(_vm: RawEnv $(, $arg: $ty)*) -> i32 {
            let Some(before) = BEFORE.get() else { return -1 };
            // SAFETY: the VM's own table, whose slot has this signature.
            unsafe {
                let function: extern "system" fn(RawEnv $(, $ty)*) -> i32 =
                    std::mem::transmute::<*const c_void, _>(*before.table.add($slot));
                function(before.vm $(, $arg)*)
            }
        }
    };
}
pass_on!(destroy, vm_slot::DestroyJavaVM, ());
pass_on!(
    attach,
    vm_slot::AttachCurrentThread,
    (out: *mut *mut c_void, args: *mut c_void)
);
pass_on!(detach, vm_slot::DetachCurrentThread, ());
pass_on!(
    attach_daemon,
    vm_slot::AttachCurrentThreadAsDaemon,
    (out: *mut *mut c_void, args: *mut c_void)
);

/// Whether the word at `address` may be written: a pipe reads and writes it in place, and returns an error where a
/// direct write would crash.
fn is_writable(address: *const c_void) -> bool {
    let word = size_of::<usize>();
    let mut ends = [0; 2];
    // SAFETY: the kernel checks the address; the same bytes are written back.
    unsafe {
        if libc::pipe(ends.as_mut_ptr()) != 0 {
            return false;
        }
        let passed = libc::write(ends[1], address, word) == word as isize
            && libc::read(ends[0], address.cast_mut(), word) == word as isize;
        libc::close(ends[0]);
        libc::close(ends[1]);
        passed
    }
}

/// Makes `GetEnv` of `vm` return the interface. Returns the `JavaVM*` that does so: `vm` itself, or one of the bridge
/// if the VM's cannot be changed.
///
/// # Safety
/// `vm` is the `JavaVM*` of this process, and this library is never unloaded.
pub(crate) unsafe fn interpose(vm: RawEnv) -> RawEnv {
    // SAFETY: a `JavaVM*` points to a pointer to the table, whose slots 3 to 7 are
    // the functions and 0 to 2 are reserved.
    unsafe {
        let table = *vm;
        let get_env_before: GetEnv = std::mem::transmute(*table.add(vm_slot::GetEnv));
        let before = Before {
            get_env: get_env_before,
            vm,
            table,
        };
        if BEFORE.set(before).is_err() {
            return vm;
        }
        let mut ours: Table = [std::ptr::null(); SLOTS];
        std::ptr::copy_nonoverlapping(table, ours.as_mut_ptr(), SLOTS);
        ours[vm_slot::GetEnv] = get_env as *const c_void;
        if is_writable(vm.cast()) {
            let kept: &'static Table = Box::leak(Box::new(ours));
            // Other threads of the VM may read the pointer at the same time, so it is written with one store.
            AtomicPtr::from_ptr(vm.cast::<*mut c_void>())
                .store(kept.as_ptr().cast_mut().cast(), Ordering::Release);
            return vm;
        }
        ours[vm_slot::DestroyJavaVM] = destroy as *const c_void;
        ours[vm_slot::AttachCurrentThread] = attach as *const c_void;
        ours[vm_slot::DetachCurrentThread] = detach as *const c_void;
        ours[vm_slot::AttachCurrentThreadAsDaemon] = attach_daemon as *const c_void;
        let kept: &'static Table = Box::leak(Box::new(ours));
        Box::leak(Box::new(kept.as_ptr())) as RawEnv
    }
}
