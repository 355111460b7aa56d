//! Where the VM notes the last Java frame of a thread that runs the VM's own code.
//!
//! The note has the frame's stack pointer, and its instruction only when another thread is to walk the stack; AsyncGetCallTrace
//! refuses to walk without it. The VM itself fills it in from the word below the stack pointer (`JavaFrameAnchor::make_walkable`), and so
//! does this for the time of a call. If the frame is one of the VM's routines for compiled code, which AsyncGetCallTrace does not walk
//! either, the note names its caller meanwhile.
//!
//! The note of a thread in native code is complete, and other threads may read it at any time: at a safepoint they find there what the
//! thread's frames refer to. So nothing is written unless the thread runs the VM's own code, which no other thread interrupts.

use jvmti::{Env, Jni, Live};

use crate::vm::vm_structs::{VmStructs, read};

/// Where in memory the notes are.
#[derive(Debug)]
pub(super) struct Anchors {
    /// From a thread's own structure to its JNI environment.
    environment: usize,
    /// From the structure to the state of the thread, and the state in which it runs the VM's code.
    state: usize,
    in_vm: i32,
    /// And to its note's stack pointer and instruction.
    stack: usize,
    instruction: usize,
    /// And to its frame pointer, where notes have one.
    frame: Option<usize>,
}

/// Most words of the frame of such a routine that has called the VM.
const MOST_WORDS: usize = 16;
const WORD: usize = size_of::<usize>();

impl Anchors {
    /// Looks the places up, of the current thread; `None` when this VM does not say them.
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
            // It is a part of that structure, which has some kilobytes.
            environment: environment.filter(|offset| own != 0 && *offset < 1 << 16)?,
            state: structs.offset(&["JavaThread"], "_thread_state")?,
            in_vm: structs.constant(&["_thread_in_vm"])?,
            stack: place("_last_Java_sp")?,
            instruction: place("_last_Java_pc")?,
            frame: place("_last_Java_fp"),
        })
    }

    /// In the handler: calls `body` while the current thread's note is complete, if it was not, and again while it names the caller if
    /// the result is not `is_found`. Only addresses in the VM's `compiled` code are noted.
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

/// Calls `body` while these places have these words.
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
