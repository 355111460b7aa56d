//! The VM's note of the last Java frame of a thread that runs the VM's own code (`JavaFrameAnchor`).
//!
//! The note has the frame's stack pointer. It has the frame's instruction only when another thread is about to walk the
//! stack, and AsyncGetCallTrace does not walk without it. The VM then fills it in from the word below the stack pointer
//! (`JavaFrameAnchor::make_walkable`). This module does the same for the time of a call. If the frame belongs to one of
//! the VM's routines for compiled code, which AsyncGetCallTrace does not walk either, the note gets the frame's caller
//! for that time.
//!
//! The note of a thread in native code is complete, and other threads may read it at any time: at a safepoint they use
//! it to find the references in the thread's frames. So the note is only written while the thread runs the VM's own
//! code, when no other thread reads it.

use jvmti::{Env, Jni, Live};

use crate::cpu::code_cache::CodeCache;
use crate::cpu::partial_frames;
use crate::cpu::registers::Registers;
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
    /// From the structure to its note's frame pointer, if notes have one.
    frame: Option<usize>,
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
            frame: place("_last_Java_fp"),
        })
    }

    /// In the handler: completes the current thread's note if it is incomplete, and calls `body` until it returns
    /// something: then while the note has the caller of a routine of the VM.
    pub(super) fn complete<T>(
        &self,
        jni: Jni,
        code: &CodeCache,
        mut body: impl FnMut() -> Option<T>,
    ) -> Option<T> {
        let thread = (jni.raw() as usize).checked_sub(self.environment)?;
        let [stack, instruction] = [self.stack, self.instruction].map(|place| thread + place);
        // SAFETY: the note is a part of the structure of the current thread, which has this environment. Its stack pointer is null or
        // that of a frame on the stack of this thread, which has called the code that was interrupted: there are more words above.
        unsafe {
            let sp: usize = read(stack)?;
            if read::<i32>(thread + self.state)? != self.in_vm || !sp.is_multiple_of(WORD) {
                return None;
            }
            let noted: usize = read(instruction)?;
            let below: usize = read(sp.checked_sub(WORD)?)?;
            let pc = if noted == 0 { below } else { noted };
            if !code.contains(pc) {
                return None;
            }
            if noted == 0
                && let Some(found) = with([(instruction, pc)], &mut body)
            {
                return Some(found);
            }
            let frame = thread + self.frame?;
            let fp = read(frame)?;
            partial_frames::callers(code, Registers { pc, sp, fp }, false).find_map(|caller| {
                let Registers { pc, sp, fp } = caller;
                with([(stack, sp), (instruction, pc), (frame, fp)], &mut body)
            })
        }
    }
}

/// Calls `body` while these addresses have these words.
///
/// # Safety
/// They are parts of the current thread's note. No other thread reads it while this one runs the VM's code.
unsafe fn with<const COUNT: usize, T>(
    words: [(usize, usize); COUNT],
    body: impl FnOnce() -> T,
) -> T {
    // SAFETY: the caller's promise.
    let put = |(place, word): (usize, usize)| unsafe {
        let place = place as *mut usize;
        let before = place.read_volatile();
        place.write_volatile(word);
        before
    };
    let before = words.map(|(place, word)| (place, put((place, word))));
    let result = body();
    let _ = before.map(put);
    result
}
