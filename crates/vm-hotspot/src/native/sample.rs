//! The stack of a recorded block: native frames by the unwinder of the C++ runtime, which
//! ends where code of the VM's own compilers begins, and Java frames by AsyncGetCallTrace.
//! Nothing here allocates or locks.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::Ordering;

use jvmti::sys::MethodPtr;

use super::Malloc;
use super::blocks::Block;
use super::stacks::{Found, MOST_JAVA, MOST_NATIVE};
use crate::cpu::fault_guard;
use crate::cpu::java_frames::CallTrace;
use crate::cpu::sampler::unsampled;
use crate::cpu::slots::CallFrame;
use crate::vm::hotspot::HotSpot;

unsafe extern "C" {
    fn _Unwind_Backtrace(
        visit: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

/// Return addresses as they are found.
struct Walk {
    frames: [MaybeUninit<usize>; MOST_NATIVE],
    count: usize,
    own: (usize, usize),
}

unsafe extern "C" fn visit(context: *mut c_void, walk: *mut c_void) -> c_int {
    const GO_ON: c_int = 0;
    const END: c_int = 5;
    // SAFETY: the unwinder passes its context and our own pointer.
    let (pc, walk) = unsafe { (_Unwind_GetIP(context), &mut *walk.cast::<Walk>()) };
    if walk.count == 0 && (walk.own.0..walk.own.1).contains(&pc) {
        return GO_ON;
    }
    if pc == 0 || walk.count == MOST_NATIVE {
        return END;
    }
    walk.frames[walk.count].write(pc);
    walk.count += 1;
    GO_ON
}

/// Records a block that was chosen.
#[cold]
#[inline(never)]
pub(super) fn record(malloc: &Malloc, address: usize, size: usize) {
    let mut walk = Walk {
        frames: [const { MaybeUninit::uninit() }; MOST_NATIVE],
        count: 0,
        own: malloc.own,
    };
    // SAFETY: the callback has the signature and gets the live `walk`.
    unsafe { _Unwind_Backtrace(visit, (&raw mut walk).cast()) };
    // SAFETY: so many were written.
    let native = unsafe { std::slice::from_raw_parts(walk.frames.as_ptr().cast(), walk.count) };
    let mut frames = [CallFrame {
        bci: 0,
        method: MethodPtr(ptr::null_mut()),
    }; MOST_JAVA];
    let java = java_frames(malloc, &mut frames);
    let found = Found {
        native,
        java: &frames[..java],
    };
    let block = malloc.stacks.number(&found).map(|stack| Block {
        stack,
        size: size as u64,
        is_old: false,
    });
    match block {
        Some(block) if malloc.blocks.put(address, block) => malloc.stacks.allocated(block),
        _ => drop(malloc.lost.fetch_add(1, Ordering::Relaxed)),
    }
}

/// Takes the Java frames of the current thread and returns their number: 0 outside a Java thread, or if the VM does not
/// find them.
fn java_frames(malloc: &Malloc, frames: &mut [CallFrame]) -> usize {
    if !malloc.java_is_up.load(Ordering::Relaxed) {
        return 0;
    }
    let function = malloc.call_trace;
    let jni = HotSpot::get().and_then(|hotspot| hotspot.java.jni());
    let (Some(function), Some(jni)) = (function, jni) else {
        return 0;
    };
    let depth = malloc.depth.min(frames.len());
    let mut trace = CallTrace {
        env: jni.raw(),
        count: 0,
        frames: frames.as_mut_ptr(),
    };
    // SAFETY: the function is asked about the current thread. It runs native code or the
    // VM's own, so the VM knows where its Java frames end; a signal's context is only needed
    // in the middle of Java code, and without one there is no stack then.
    let returned = unsampled(|| unsafe {
        fault_guard::call(function, &mut trace, depth as c_int, ptr::null_mut())
    });
    let frames = if returned { trace.count } else { 0 };
    usize::try_from(frames).unwrap_or(0).min(depth)
}
