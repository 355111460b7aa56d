//! The program's own handler of SIGPROF, which gets the signals that the agent has not sent.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A handler that was installed with SA_SIGINFO.
type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut c_void);

/// The program's previous action for SIGPROF: null, or an action that is never freed.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// The number in a signal that is being passed on, in a field that the system does not use on Linux.
const PASSED_ON: i32 = 0x7e9e;

/// Passes a signal to the program's previous handler. Without one it is ignored, because a timer of an agent that no
/// longer exists may have sent it. A signal that comes back is ignored, too: the previous handler may have been
/// installed once more, and then passes signals to this one.
///
/// # Safety
/// As of a signal handler.
pub(super) unsafe fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: null, or leaked by `install_handler`.
    let before = unsafe { BEFORE.load(Ordering::Acquire).as_ref() };
    // SAFETY: the caller's promise.
    let number = unsafe { (*info).si_errno };
    let Some(before) = before.filter(|_| number != PASSED_ON) else {
        return;
    };
    // SAFETY: as above.
    unsafe { (*info).si_errno = PASSED_ON };
    call_handler(before, signal, info, context);
    // SAFETY: as above.
    unsafe { (*info).si_errno = number };
}

/// Calls the handler of an action, if it has one.
fn call_handler(
    before: &libc::sigaction,
    signal: i32,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
) {
    match before.sa_sigaction {
        libc::SIG_DFL | libc::SIG_IGN => {}
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: with this flag a handler has this signature.
            let handler: Handler = unsafe { std::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: without the flag it has this one.
            let handler: extern "C" fn(i32) = unsafe { std::mem::transmute(handler) };
            handler(signal);
        }
    }
}

/// Makes this the handler of SIGPROF; false if the system refuses it.
pub(super) fn install(handler: Handler) -> bool {
    let ours = handler as *const () as usize;
    let mut before = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the pointer is to a live local, for which zeros are valid.
    let before = unsafe {
        libc::sigaction(libc::SIGPROF, ptr::null(), before.as_mut_ptr());
        before.assume_init()
    };
    // A previous recording may have installed the handler. It is never removed, because signals may still arrive.
    if before.sa_sigaction != ours {
        BEFORE.store(Box::into_raw(Box::new(before)), Ordering::Release);
    }
    // SAFETY: a zeroed sigaction is valid, and the handler has the signature that
    // SA_SIGINFO requires.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = ours;
        // Programs whose threads have small stacks use another stack for signals.
        let stack = before.sa_flags & libc::SA_ONSTACK;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | stack;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(libc::SIGPROF, &raw const action, ptr::null_mut()) == 0
    }
}
