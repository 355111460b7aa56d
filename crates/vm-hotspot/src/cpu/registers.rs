//! The registers of an interrupted thread in the context that the system has given to a signal handler.

use std::ffi::c_void;

/// The position of a thread when it was interrupted, or after returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Registers {
    pub(super) pc: usize,
    pub(super) sp: usize,
    pub(super) fp: usize,
}

impl Registers {
    /// # Safety
    /// `context` is what the system has given to a signal handler.
    #[cfg(target_arch = "x86_64")]
    pub(super) unsafe fn of(context: *const c_void) -> Self {
        // SAFETY: the caller's promise.
        let registers = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
        let at = |register: i32| registers[register as usize] as usize;
        Self {
            pc: at(libc::REG_RIP),
            sp: at(libc::REG_RSP),
            fp: at(libc::REG_RBP),
        }
    }

    /// # Safety
    /// `context` is what the system has given to a signal handler.
    #[cfg(target_arch = "aarch64")]
    pub(super) unsafe fn of(context: *const c_void) -> Self {
        // SAFETY: the caller's promise.
        let context = unsafe { &(*context.cast::<libc::ucontext_t>()).uc_mcontext };
        Self {
            pc: context.pc as usize,
            sp: context.sp as usize,
            fp: context.regs[29] as usize,
        }
    }

    /// Writes these registers into a context.
    ///
    /// # Safety
    /// `context` is what the system has given to a signal handler, which puts the former ones back.
    #[cfg(target_arch = "x86_64")]
    unsafe fn put(self, context: *mut c_void) {
        // SAFETY: the caller's promise.
        let registers = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs };
        registers[libc::REG_RIP as usize] = self.pc as i64;
        registers[libc::REG_RSP as usize] = self.sp as i64;
        registers[libc::REG_RBP as usize] = self.fp as i64;
    }

    /// As above.
    ///
    /// # Safety
    /// As above.
    #[cfg(target_arch = "aarch64")]
    unsafe fn put(self, context: *mut c_void) {
        // SAFETY: the caller's promise.
        let context = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext };
        context.pc = self.pc as u64;
        context.sp = self.sp as u64;
        context.regs[29] = self.fp as u64;
    }

    /// Calls `body` while the context has these registers.
    ///
    /// # Safety
    /// `context` is what the system has given to a signal handler.
    pub(super) unsafe fn within<T>(self, context: *mut c_void, body: impl FnOnce() -> T) -> T {
        // SAFETY: the caller's promise.
        let before = unsafe { Self::of(context) };
        // SAFETY: as above; they are put back below.
        unsafe { self.put(context) };
        let result = body();
        // SAFETY: as above.
        unsafe { before.put(context) };
        result
    }
}

/// The register that has the return address until a function saves it, on processors that have one.
///
/// # Safety
/// `context` is what the system has given to a signal handler.
pub(super) unsafe fn link_register(context: *const c_void) -> Option<usize> {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the caller's promise.
    return Some(unsafe { (*context.cast::<libc::ucontext_t>()).uc_mcontext.regs[30] } as usize);
    #[cfg(not(target_arch = "aarch64"))]
    {
        let _ = context;
        None
    }
}

/// What a walk may need of the stack that the handler runs on: the VM alone keeps the places of all registers, those of
/// vectors among them, for several frames.
const WALK: usize = 16 << 10;

/// In the handler: whether its stack has room for a walk. A stack that a library has made for signals may be smaller.
///
/// # Safety
/// `context` is what the system has given to a signal handler.
pub(super) unsafe fn has_room(context: *const c_void) -> bool {
    let here = 0_u8;
    // SAFETY: the caller's promise.
    let stack = unsafe { (*context.cast::<libc::ucontext_t>()).uc_stack };
    let room = (&raw const here as usize).checked_sub(stack.ss_sp as usize);
    // Otherwise the handler runs on the stack of the thread.
    let room = room.filter(|room| *room < stack.ss_size);
    room.is_none_or(|room| room >= WALK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::MaybeUninit;

    #[test]
    fn a_small_stack_for_signals_has_no_room_for_a_walk() {
        let here = 0_u8;
        let check = |below: usize, size: usize, expected: bool| {
            // SAFETY: zeros are valid.
            let mut context: libc::ucontext_t = unsafe { MaybeUninit::zeroed().assume_init() };
            let begin = (&raw const here as usize).wrapping_sub(below);
            context.uc_stack.ss_sp = begin as *mut c_void;
            context.uc_stack.ss_size = size;
            // SAFETY: a live context.
            let has_room = unsafe { has_room((&raw const context).cast()) };
            assert_eq!(has_room, expected, "{below} {size}");
        };
        check(8 << 10, 9 << 10, false);
        check(64 << 10, 65 << 10, true);
        // This thread runs on another stack.
        check(64 << 10, 8 << 10, true);
        check(0, 0, true);
    }
}
