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

/// The most words in the frame of such a routine.
const MOST_WORDS: usize = 16;
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

    /// In the handler: completes the current thread's note if it is incomplete, and calls `body`. If the result is not
    /// `is_found`, calls `body` again while the note has the frame's caller. Only addresses in the VM's `compiled` code
    /// are stored.
    pub(super) fn complete<T>(
        &self,
        jni: Jni,
        compiled: impl Fn(usize) -> bool,
        mut body: impl FnMut() -> T,
        is_found: impl Fn(&T) -> bool,
    ) -> Option<T> {
        let thread = (jni.raw() as usize).checked_sub(self.environment)?;
        // SAFETY: the note is a part of the structure of the current thread, which has this environment. Its stack pointer is null or
        // that of a frame on the stack of this thread, which has called the code that was interrupted: there are more words above.
        let (stack, below) = unsafe {
            if read::<i32>(thread + self.state)? != self.in_vm {
                return None;
            }
            let stack: usize = read(thread + self.stack)?;
            if stack == 0 || !stack.is_multiple_of(WORD) {
                return None;
            }
            (stack, read::<usize>(stack - WORD)?)
        };
        let instruction = thread + self.instruction;
        // SAFETY: as above.
        let is_complete = unsafe { read::<usize>(instruction)? } != 0;
        let mut found = None;
        if !is_complete && compiled(below) {
            // SAFETY: as above.
            found = Some(unsafe { with([(instruction, below)], &mut body) });
        }
        if found.as_ref().is_some_and(&is_found) {
            return found;
        }
        // SAFETY: as above.
        let word = |index: usize| unsafe { ((stack + index * WORD) as *const usize).read() };
        let frame = thread + self.frame?;
        let Some(index) = (1..MOST_WORDS).find(|index| compiled(word(*index))) else {
            return found;
        };
        let caller = [
            (thread + self.stack, stack + (index + 1) * WORD),
            (instruction, word(index)),
            (frame, word(index - 1)),
        ];
        // SAFETY: as above.
        Some(unsafe { with(caller, &mut body) })
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
