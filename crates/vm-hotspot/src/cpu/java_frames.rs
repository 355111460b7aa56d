//! The Java frames of a sample, in the signal handler: AsyncGetCallTrace finds them if the thread is at an instruction of
//! a Java method whose frame is complete, or in native code that Java code has called with a complete note of its last
//! frame. For the other positions it is called with other registers or another note:
//!
//! 1. a compiled method whose frame is partial, or a routine of the VM without a frame ([`partial_frames`]);
//! 2. the VM's own code that was called with an incomplete note ([`anchors`](crate::cpu::anchors));
//! 3. native code that compiled code calls without a note: the native frames lead to the code that called
//!    ([`native_walk`](crate::cpu::native_walk)).

use std::ffi::c_void;

use jvmti::sys::RawEnv;
use jvmti::{Env, Jni, Live};

use crate::cpu::anchors::Anchors;
use crate::cpu::code_cache::CodeCache;
use crate::cpu::native_walk::Walker;
use crate::cpu::registers::Registers;
use crate::cpu::slots::CallFrame;
use crate::cpu::{fault_guard, partial_frames};
use crate::vm::vm_structs::exported_symbol;

/// The argument of AsyncGetCallTrace.
#[repr(C)]
pub(crate) struct CallTrace {
    pub(crate) env: RawEnv,
    /// Frames written, or an error below 1.
    pub(crate) count: i32,
    pub(crate) frames: *mut CallFrame,
}

/// The results of AsyncGetCallTrace for a thread without Java frames, for any thread while the VM collects garbage, and
/// for one whose innermost frame it does not know, which is then not a Java frame.
const NO_FRAMES: i32 = 0;
const COLLECTS: i32 = -2;
const NO_TOP_FRAME: i32 = -3;

/// Why a sample has no Java frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// The VM cannot walk the stack.
    Unknown,
    /// The VM collects garbage, in a pause.
    Pause,
}

pub(crate) type AsyncGetCallTrace = unsafe extern "C" fn(*mut CallTrace, i32, *mut c_void);

/// Finds the VM's function, and prepares [`fault_guard::call`] for it. Not for signal handlers.
pub(crate) fn find_agct() -> Option<AsyncGetCallTrace> {
    let symbol = exported_symbol(c"AsyncGetCallTrace");
    if !symbol.is_null() {
        fault_guard::install();
    }
    // SAFETY: the symbol has this signature in every HotSpot that exports it.
    (!symbol.is_null()).then(|| unsafe { std::mem::transmute(symbol) })
}

/// Where the VM's code has called the native code that a thread runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Caller {
    /// As far as the native frames of the sample have been followed.
    Known(Option<Registers>),
    /// The sample has no native frames.
    Unknown,
}

/// What takes Java frames.
#[derive(Debug)]
pub(super) struct JavaFrames {
    function: AsyncGetCallTrace,
    code: &'static CodeCache,
    anchors: Option<Anchors>,
    walker: Option<Walker>,
}

impl JavaFrames {
    /// Prepares taking them. Not for signal handlers.
    pub(super) fn prepare(function: AsyncGetCallTrace, env: Env<Live>, jni: Jni) -> Self {
        Self {
            function,
            code: CodeCache::of_vm(),
            anchors: Anchors::of(env, jni),
            walker: Walker::new().ok(),
        }
    }

    /// Leaves the VM as it was.
    pub(super) fn stop(&self) {
        self.code.mark_again();
    }

    /// In the handler: the stack pointer of the last Java frame of the current thread, as far as it is known.
    pub(super) fn last_frame(&self, jni: Jni) -> usize {
        let anchors = self.anchors.as_ref();
        anchors.and_then(|anchors| anchors.stack(jni)).unwrap_or(0)
    }

    /// In the handler: writes the frames of the current thread. Returns their number: 0 for a thread that runs no Java
    /// code.
    ///
    /// # Safety
    /// `context` is what the system has given to a signal handler of the thread that has this environment.
    pub(super) unsafe fn take(
        &self,
        jni: Jni,
        frames: &mut [CallFrame],
        context: *mut c_void,
        native: Caller,
    ) -> Result<i32, Missing> {
        let mut ask = || {
            let mut trace = CallTrace {
                env: jni.raw(),
                count: 0,
                frames: frames.as_mut_ptr(),
            };
            let depth = frames.len() as i32;
            // SAFETY: called in a signal handler with its context, as the function wants.
            let returned = unsafe { fault_guard::call(self.function, &mut trace, depth, context) };
            returned.then_some(trace.count)
        };
        // SAFETY: the caller's promise.
        let (first, found) = unsafe {
            let now = Registers::of(context);
            let first = self.at(now, context, &mut ask);
            if first == Some(COLLECTS) {
                return Err(Missing::Pause);
            }
            let is_known = first.is_none_or(|count| count > 0);
            let again = || self.below(now, jni, context, native, ask);
            (first, if is_known { first } else { again() })
        };
        let is_without = first == Some(NO_FRAMES) || first == Some(NO_TOP_FRAME);
        found.or(is_without.then_some(0)).ok_or(Missing::Unknown)
    }

    /// The first call, with the registers that belong to the complete frame.
    ///
    /// # Safety
    /// As of [`take`](Self::take); `now` are the registers of the context.
    unsafe fn at(
        &self,
        now: Registers,
        context: *mut c_void,
        mut ask: impl FnMut() -> Option<i32>,
    ) -> Option<i32> {
        let code = self.code.code_at(now.pc);
        // SAFETY: the caller's promise.
        unsafe {
            match code.and_then(|code| partial_frames::completed(&code, now)) {
                Some(complete) => complete.within(context, ask),
                None => ask(),
            }
        }
    }

    /// Further calls, for the frames below code that AsyncGetCallTrace does not walk; the first number above 0.
    ///
    /// # Safety
    /// As of [`at`](Self::at).
    unsafe fn below(
        &self,
        now: Registers,
        jni: Jni,
        context: *mut c_void,
        native: Caller,
        mut ask: impl FnMut() -> Option<i32>,
    ) -> Option<i32> {
        let found = |count: Option<i32>| count.filter(|count| *count > 0);
        if self.code.contains(now.pc) {
            // SAFETY: the caller's promise.
            let mut callers = unsafe { partial_frames::callers(self.code, now, true) };
            // SAFETY: as above.
            return callers.find_map(|caller| found(unsafe { caller.within(context, &mut ask) }));
        }
        let anchors = self.anchors.as_ref();
        let noted = anchors.and_then(|anchors| anchors.complete(jni, self.code, || found(ask())));
        if noted.is_some() {
            return noted;
        }
        let caller = match native {
            Caller::Known(caller) => caller,
            // SAFETY: the caller's promise.
            Caller::Unknown => unsafe { self.walker.as_ref()?.caller(context) },
        }?;
        // SAFETY: as above.
        let below = unsafe { partial_frames::callers(self.code, caller, false) };
        let at_call = Some(caller).filter(|caller| self.code.is_safe(caller.pc));
        let mut callers = at_call.into_iter().chain(below);
        // SAFETY: as above.
        callers.find_map(|caller| found(unsafe { caller.within(context, &mut ask) }))
    }
}
