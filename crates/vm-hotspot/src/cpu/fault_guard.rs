//! Calls AsyncGetCallTrace so that a fault inside it ends the call and not the process.
//!
//! 1. [`call`] stores the thread and its callee-saved registers in a note, and calls the function.
//! 2. A fault sends SIGSEGV or SIGBUS to [`on_fault`]. If the thread has no note, the signal is passed to the previous
//!    handler: that of the VM, which needs these signals for null checks and safepoints.
//! 3. If it has a note, the VM's handler is called first, because the VM's safe reads fault on purpose.
//! 4. If the VM does not handle the signal, the registers are restored, and the thread continues after the call, which
//!    reports the fault.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use crate::cpu::java_frames::{AsyncGetCallTrace, CallTrace};
use crate::cpu::timers::own_tid;
use crate::vm::vm_structs::exported_symbol;

/// The most simultaneous calls in all threads.
const MOST: usize = 64;

/// Space for the callee-saved registers, the stack pointer first.
#[repr(C, align(16))]
struct Registers([u64; 22]);

/// A call that is under way.
struct Note {
    /// The thread; 0 if there is no call.
    tid: AtomicU32,
    registers: AtomicPtr<Registers>,
    /// Whether the VM's handler is running for a fault of this call.
    asked: AtomicBool,
}

static NOTES: [Note; MOST] = [const {
    Note {
        tid: AtomicU32::new(0),
        registers: AtomicPtr::new(ptr::null_mut()),
        asked: AtomicBool::new(false),
    }
}; MOST];

/// Number of calls under way, so that a fault elsewhere costs only one check.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// `JVM_handle_linux_signal`: with 0 as the last argument it returns whether it has handled the signal.
type VmHandler = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void, c_int) -> c_int;

static VM_HANDLER: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

const SIGNALS: [c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// The previous action of each signal: null, or an action that is never freed.
static BEFORE: [AtomicPtr<libc::sigaction>; 2] = [const { AtomicPtr::new(ptr::null_mut()) }; 2];

/// Installs the handlers; before that, [`call`] fails. Not for signal handlers.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        VM_HANDLER.store(
            exported_symbol(c"JVM_handle_linux_signal"),
            Ordering::Relaxed,
        );
        for (signal, before) in SIGNALS.into_iter().zip(&BEFORE) {
            let mut action = MaybeUninit::<libc::sigaction>::zeroed();
            // SAFETY: the pointers are to live memory, for which zeros are valid. The action stays the one that was there, with
            // its mask and stack, but for the handler, which has the signature that SA_SIGINFO requires.
            unsafe {
                if libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) != 0 {
                    continue;
                }
                let mut action = action.assume_init();
                before.store(Box::into_raw(Box::new(action)), Ordering::Release);
                action.sa_sigaction = on_fault as *const () as usize;
                action.sa_flags |= libc::SA_SIGINFO;
                libc::sigaction(signal, &raw const action, ptr::null_mut());
            }
        }
    });
}

/// Calls the function; false if it faulted, or if too many calls are under way. Fit for signal handlers.
///
/// # Safety
/// As of the function.
pub(crate) unsafe fn call(
    function: AsyncGetCallTrace,
    trace: &mut CallTrace,
    depth: c_int,
    context: *mut c_void,
) -> bool {
    let tid = own_tid();
    let claim = |note: &&Note| {
        let free = note
            .tid
            .compare_exchange(0, tid, Ordering::Acquire, Ordering::Relaxed);
        free.is_ok()
    };
    let Some(note) = NOTES.iter().find(claim) else {
        return false;
    };
    let mut registers = Registers([0; 22]);
    note.asked.store(false, Ordering::Relaxed);
    note.registers.store(&raw mut registers, Ordering::SeqCst);
    CALLS.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the caller's promise; the registers live until the note is taken back.
    let faulted = unsafe { enter(&raw mut registers, function, trace, depth, context) };
    CALLS.fetch_sub(1, Ordering::SeqCst);
    note.registers.store(ptr::null_mut(), Ordering::SeqCst);
    note.tid.store(0, Ordering::Release);
    faulted == 0
}

/// SIGSEGV and SIGBUS: no allocation, no lock.
extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let Some(note) = note_of_this_thread() else {
        return pass_on(signal, info, context);
    };
    // With libjsig the VM passes the signal back to this handler.
    let asked = note.asked.swap(true, Ordering::Relaxed);
    let vm = VM_HANDLER.load(Ordering::Relaxed);
    if !asked && !vm.is_null() {
        // SAFETY: the symbol has this signature in every HotSpot for Linux, and the arguments are the system's.
        let known = unsafe {
            let vm: VmHandler = std::mem::transmute(vm);
            vm(signal, info, context, 0)
        };
        note.asked.store(false, Ordering::Relaxed);
        if known != 0 {
            return;
        }
    }
    // SAFETY: the system's context of this thread; the registers are those of the call that is under way.
    unsafe { leave(context, note.registers.load(Ordering::SeqCst)) };
}

/// The innermost call of this thread: its registers are lowest on the stack.
fn note_of_this_thread() -> Option<&'static Note> {
    if CALLS.load(Ordering::SeqCst) == 0 {
        return None;
    }
    let tid = own_tid();
    let registers = |note: &&Note| note.registers.load(Ordering::SeqCst);
    let own = NOTES
        .iter()
        .filter(|note| note.tid.load(Ordering::Relaxed) == tid);
    own.filter(|note| !registers(note).is_null())
        .min_by_key(registers)
}

/// Passes a signal to the previous handler.
fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let index = usize::from(signal != SIGNALS[0]);
    // SAFETY: null, or leaked by `install`.
    let before = unsafe { BEFORE[index].load(Ordering::Acquire).as_ref() };
    match before {
        Some(action) if !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN) => {
            // SAFETY: a handler with three arguments may be one that reads the first only.
            let handler: extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                unsafe { std::mem::transmute(action.sa_sigaction) };
            handler(signal, info, context);
        }
        // The fault repeats when this handler returns, and then has the default effect.
        _ => {
            // SAFETY: only sets what the signal does.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
    }
}

/// Makes the interrupted thread continue in [`resume`] with these registers.
///
/// # Safety
/// `context` is what the system gave to a handler of the thread whose registers these are.
#[cfg(target_arch = "x86_64")]
unsafe fn leave(context: *mut c_void, registers: *mut Registers) {
    // SAFETY: the caller's promise.
    let machine = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext };
    machine.gregs[libc::REG_RDI as usize] = registers as i64;
    machine.gregs[libc::REG_RIP as usize] = resume as *const () as i64;
    // Functions are entered with the direction flag clear.
    machine.gregs[libc::REG_EFL as usize] &= !0x400;
}

/// As above.
///
/// # Safety
/// As above.
#[cfg(target_arch = "aarch64")]
unsafe fn leave(context: *mut c_void, registers: *mut Registers) {
    // SAFETY: the caller's promise.
    let machine = unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext };
    machine.regs[0] = registers as u64;
    machine.pc = resume as *const () as u64;
}

/// Saves the registers and calls the function with the other arguments; 0 when it returns.
///
/// # Safety
/// As of the function; `registers` is valid until the return.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn enter(
    registers: *mut Registers,
    function: AsyncGetCallTrace,
    trace: *mut CallTrace,
    depth: c_int,
    context: *mut c_void,
) -> c_int {
    std::arch::naked_asm!(
        "mov [rdi], rsp",
        "mov [rdi + 8], rbx",
        "mov [rdi + 16], rbp",
        "mov [rdi + 24], r12",
        "mov [rdi + 32], r13",
        "mov [rdi + 40], r14",
        "mov [rdi + 48], r15",
        "sub rsp, 8",
        "mov rax, rsi",
        "mov rdi, rdx",
        "mov esi, ecx",
        "mov rdx, r8",
        "call rax",
        "add rsp, 8",
        "xor eax, eax",
        "ret",
    )
}

/// Returns 1 from the [`enter`] that saved these registers.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
unsafe extern "C" fn resume(registers: *mut Registers) -> c_int {
    std::arch::naked_asm!(
        "mov rsp, [rdi]",
        "mov rbx, [rdi + 8]",
        "mov rbp, [rdi + 16]",
        "mov r12, [rdi + 24]",
        "mov r13, [rdi + 32]",
        "mov r14, [rdi + 40]",
        "mov r15, [rdi + 48]",
        "mov eax, 1",
        "ret",
    )
}

/// As above.
///
/// # Safety
/// As above.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn enter(
    registers: *mut Registers,
    function: AsyncGetCallTrace,
    trace: *mut CallTrace,
    depth: c_int,
    context: *mut c_void,
) -> c_int {
    std::arch::naked_asm!(
        "mov x9, sp",
        "stp x9, x30, [x0]",
        "stp x19, x20, [x0, #16]",
        "stp x21, x22, [x0, #32]",
        "stp x23, x24, [x0, #48]",
        "stp x25, x26, [x0, #64]",
        "stp x27, x28, [x0, #80]",
        "str x29, [x0, #96]",
        "stp d8, d9, [x0, #112]",
        "stp d10, d11, [x0, #128]",
        "stp d12, d13, [x0, #144]",
        "stp d14, d15, [x0, #160]",
        "stp x29, x30, [sp, #-16]!",
        "mov x29, sp",
        "mov x9, x1",
        "mov x0, x2",
        "mov w1, w3",
        "mov x2, x4",
        "blr x9",
        "ldp x29, x30, [sp], #16",
        "mov w0, #0",
        "ret",
    )
}

/// Returns 1 from the [`enter`] that saved these registers.
#[cfg(target_arch = "aarch64")]
#[unsafe(naked)]
unsafe extern "C" fn resume(registers: *mut Registers) -> c_int {
    std::arch::naked_asm!(
        "ldp x9, x30, [x0]",
        "mov sp, x9",
        "ldp x19, x20, [x0, #16]",
        "ldp x21, x22, [x0, #32]",
        "ldp x23, x24, [x0, #48]",
        "ldp x25, x26, [x0, #64]",
        "ldp x27, x28, [x0, #80]",
        "ldr x29, [x0, #96]",
        "ldp d8, d9, [x0, #112]",
        "ldp d10, d11, [x0, #128]",
        "ldp d12, d13, [x0, #144]",
        "ldp d14, d15, [x0, #160]",
        "mov w0, #1",
        "ret",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    /// Reads and writes at an unmapped address, and overwrites every callee-saved register in between.
    unsafe extern "C" fn faults(trace: *mut CallTrace, depth: c_int, context: *mut c_void) {
        // SAFETY: the trace is the caller's.
        unsafe { (*trace).count = depth };
        let words = std::hint::black_box([depth as u64; 64]);
        // SAFETY: this faults, which is the question.
        unsafe { context.cast::<u64>().write_volatile(words.iter().sum()) };
    }

    unsafe extern "C" fn returns(trace: *mut CallTrace, depth: c_int, _: *mut c_void) {
        // SAFETY: the trace is the caller's.
        unsafe { (*trace).count = depth };
    }

    fn trace() -> CallTrace {
        CallTrace {
            env: ptr::null_mut(),
            count: 0,
            frames: ptr::null_mut(),
        }
    }

    #[test]
    fn a_fault_ends_the_call_and_not_the_process() {
        install();
        let threads: Vec<_> = (1..=4)
            .map(|n: c_int| {
                std::thread::spawn(move || {
                    for round in 1..=1000 {
                        let (mut bad, mut good) = (trace(), trace());
                        let nowhere = ptr::without_provenance_mut(8);
                        // SAFETY: neither function needs a VM.
                        unsafe {
                            assert!(!call(faults, &mut bad, n * round, nowhere));
                            assert!(call(returns, &mut good, n + round, nowhere));
                        }
                        assert_eq!((bad.count, good.count), (n * round, n + round));
                    }
                })
            })
            .collect();
        threads
            .into_iter()
            .for_each(|t| t.join().expect("no panic"));
        assert_eq!(CALLS.load(Ordering::SeqCst), 0);
        assert!(
            NOTES
                .iter()
                .all(|note| note.tid.load(Ordering::Relaxed) == 0)
        );
    }

    #[test]
    fn a_fault_elsewhere_ends_the_process_as_before() {
        const CHILD: &str = "TENURE_TEST_FAULT";
        if std::env::var_os(CHILD).is_some() {
            install();
            let mut own = trace();
            // SAFETY: faults as the test wants.
            unsafe { faults(&raw mut own, 1, ptr::without_provenance_mut(8)) };
            return;
        }
        let name = "cpu::fault_guard::tests::a_fault_elsewhere_ends_the_process_as_before";
        let mut child = std::process::Command::new(std::env::current_exe().expect("the test"));
        let ended = child
            .args([name, "--exact"])
            .env(CHILD, "1")
            .output()
            .expect("a process");
        assert_eq!(ended.status.signal(), Some(libc::SIGSEGV), "{ended:?}");
    }
}
