//! The VM's note of the last Java frame of a thread that runs the VM's own code or native code (`JavaFrameAnchor`).
//!
//! The note has the frame's stack pointer. It has the frame's instruction only when another thread is about to walk the
//! stack, and AsyncGetCallTrace does not walk without it. The VM then fills it in from the word below the stack pointer
//! (`JavaFrameAnchor::make_walkable`). This module does the same for the time of a call.
//!
//! The note of a thread in native code or of one that waits is complete, and other threads may read it at any time: at a
//! safepoint they use it to find the references in the thread's frames. So the note is only written while the thread runs
//! the VM's own code, when no other thread reads it.
//!
//! The frame may belong to a routine of the VM that compiled code has called, to enter a monitor or to allocate.
//! AsyncGetCallTrace does not walk it, because the routine is marked as one without a complete frame, although it has
//! one where it calls. The mark is removed until sampling ends.

use jvmti::{Env, Jni, Live};

use crate::cpu::code_cache::CodeCache;
use crate::vm::vm_structs::{VmStructs, read};

/// The offsets of the notes.
#[derive(Debug)]
pub(super) struct Anchors {
    /// From a thread's own structure to its JNI environment.
    environment: usize,
    /// From the structure to the state of the thread, and the state in which it runs the VM's code.
    state: usize,
    in_vm: i32,
    /// From the structure to its note's stack pointer and instruction.
    stack: usize,
    instruction: usize,
}

const WORD: usize = size_of::<usize>();

impl Anchors {
    /// Looks up the offsets, on the current thread; `None` if this VM does not export them.
    pub(super) fn of(env: Env<Live>, jni: Jni) -> Option<Self> {
        let structs = VmStructs::load()?;
        let class = jni.find_class("java/lang/Thread").ok()?;
        let address = jni.field(class, "eetop", "J").ok()?;
        let thread = env.current_thread().ok()??;
        let own = jni.get_long(thread, address) as usize;
        jni.delete_local(thread);
        jni.delete_local(class);
        let environment = (jni.raw() as usize).checked_sub(own);
        let anchor = structs.offset(&["JavaThread"], "_anchor")?;
        let place = |name| Some(anchor + structs.offset(&["JavaFrameAnchor"], name)?);
        Some(Self {
            // The environment is a part of that structure, which has some kilobytes.
            environment: environment.filter(|offset| own != 0 && *offset < 1 << 16)?,
            state: structs.offset(&["JavaThread"], "_thread_state")?,
            in_vm: structs.constant(&["_thread_in_vm"])?,
            stack: place("_last_Java_sp")?,
            instruction: place("_last_Java_pc")?,
        })
    }

    /// In the handler: the stack pointer in the note of the current thread; 0 if it runs no Java code. While a thread
    /// may run no Java code, as in a pause, it does not change.
    pub(super) fn stack(&self, jni: Jni) -> Option<usize> {
        let thread = (jni.raw() as usize).checked_sub(self.environment)?;
        // SAFETY: the note is a part of the structure of the current thread, which has this environment.
        unsafe { read(thread + self.stack) }
    }

    /// In the handler: calls `body` while AsyncGetCallTrace can walk from the note of the current thread, until it
    /// returns something.
    pub(super) fn complete<T>(
        &self,
        jni: Jni,
        code: &CodeCache,
        mut body: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        let thread = (jni.raw() as usize).checked_sub(self.environment)?;
        let instruction = thread + self.instruction;
        // SAFETY: the note is a part of the structure of the current thread, which has this environment. Its stack pointer is null or
        // that of a frame on the stack of this thread, which has called the code that was interrupted: there are more words above.
        unsafe {
            let sp: usize = read(thread + self.stack)?;
            let noted: usize = read(instruction)?;
            if noted != 0 {
                return if code.unmark(noted) { body() } else { None };
            }
            let may_write = read::<i32>(thread + self.state)? == self.in_vm;
            let below: usize = read(sp.checked_sub(WORD)?)?;
            if !may_write || !sp.is_multiple_of(WORD) || !code.is_safe(below) {
                return None;
            }
            let found = with(instruction, below, &mut body);
            let again = found.is_none() && code.unmark(below);
            if again {
                with(instruction, below, body)
            } else {
                found
            }
        }
    }
}

/// Calls `body` while this address has this word.
///
/// # Safety
/// It is a part of the current thread's note. No other thread reads it while this one runs the VM's code.
unsafe fn with<T>(place: usize, word: usize, body: impl FnOnce() -> T) -> T {
    let place = place as *mut usize;
    // SAFETY: the caller's promise.
    unsafe {
        let before = place.read_volatile();
        place.write_volatile(word);
        let result = body();
        place.write_volatile(before);
        result
    }
}
