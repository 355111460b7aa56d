//! Where the VM notes the last Java frame of a thread that runs the VM's own code.
//!
//! The note has the frame's stack pointer, and its instruction only when another thread is to walk the stack; AsyncGetCallTrace
//! refuses to walk without it. The VM itself fills it in from the word below the stack pointer (`JavaFrameAnchor::make_walkable`), and so
//! does this for the time of a call.

use jvmti::{Env, Jni, Live};

use crate::host::vm_structs::{VmStructs, read};

/// Where in memory the notes are.
#[derive(Debug)]
pub(super) struct Anchors {
    /// From a thread's own structure to its JNI environment.
    environment: usize,
    /// From there to its note's stack pointer and instruction.
    stack: usize,
    instruction: usize,
}

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
            stack: place("_last_Java_sp")?,
            instruction: place("_last_Java_pc")?,
        })
    }

    /// In the handler: calls `body` while the current thread's note is complete, if it was not. The instruction must be one of the VM's
    /// `compiled` code.
    pub(super) fn complete<T>(
        &self,
        jni: Jni,
        compiled: impl Fn(usize) -> bool,
        body: impl FnOnce() -> T,
    ) -> Option<T> {
        let thread = (jni.raw() as usize).checked_sub(self.environment)?;
        // SAFETY: the note is a part of the structure of the current thread, which has this environment. Its stack pointer is null or
        // that of a frame on the stack of this thread, which has called the code that was interrupted.
        let (at, instruction) = unsafe {
            let stack: usize = read(thread + self.stack)?;
            let at = (thread + self.instruction) as *mut usize;
            if stack == 0 || stack % size_of::<usize>() != 0 || at.read_volatile() != 0 {
                return None;
            }
            (at, read::<usize>(stack - size_of::<usize>())?)
        };
        if !compiled(instruction) {
            return None;
        }
        // SAFETY: as above. No other thread reads the note while this one runs the VM's code.
        unsafe { at.write_volatile(instruction) };
        let result = body();
        // SAFETY: as above.
        unsafe { at.write_volatile(0) };
        Some(result)
    }
}
