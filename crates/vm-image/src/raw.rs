//! System calls with which one process stops another, and one with which a thread lowers its priority.

#![allow(unsafe_code)]

use std::io;
use std::mem::MaybeUninit;
use std::ptr;

/// The result of checking a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The thread still runs.
    Runs,
    /// The thread is stopped. If it was stopped by a signal, that signal must be returned to it.
    Stopped { signal: i32 },
    /// The thread has ended.
    Gone,
}

fn checked(result: libc::c_long) -> io::Result<()> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Makes this thread the tracer of another one, which continues to run. The kernel ends the tracing when the tracer
/// ends for any reason.
pub(crate) fn seize(thread: i32) -> io::Result<()> {
    let nothing = ptr::null_mut::<libc::c_void>();
    // SAFETY: this request reads no memory of this process.
    checked(unsafe { libc::ptrace(libc::PTRACE_SEIZE, thread, nothing, nothing) })
}

/// Requests that a seized thread stop.
pub(crate) fn interrupt(thread: i32) -> io::Result<()> {
    let nothing = ptr::null_mut::<libc::c_void>();
    // SAFETY: as above.
    checked(unsafe { libc::ptrace(libc::PTRACE_INTERRUPT, thread, nothing, nothing) })
}

/// Lets a stopped thread continue and ends its tracing.
pub(crate) fn detach(thread: i32, signal: i32) -> io::Result<()> {
    let nothing = ptr::null_mut::<libc::c_void>();
    let signal = signal as usize as *mut libc::c_void;
    // SAFETY: the last argument is a number, which this request takes as a pointer.
    checked(unsafe { libc::ptrace(libc::PTRACE_DETACH, thread, nothing, signal) })
}

/// Checks whether a seized thread has stopped, without waiting for it.
pub(crate) fn look(thread: i32) -> io::Result<Waited> {
    let mut status = 0;
    // SAFETY: `status` is where the kernel writes the state of the thread.
    let found = unsafe { libc::waitpid(thread, &raw mut status, libc::__WALL | libc::WNOHANG) };
    if found < 0 {
        return Err(io::Error::last_os_error());
    }
    if found == 0 {
        return Ok(Waited::Runs);
    }
    if !libc::WIFSTOPPED(status) {
        return Ok(Waited::Gone);
    }
    // An event in the upper bits means that the kernel stopped the thread because of the request, not because of a
    // signal.
    let signal = if status >> 16 == 0 {
        libc::WSTOPSIG(status)
    } else {
        0
    };
    Ok(Waited::Stopped { signal })
}

/// The general registers of a stopped thread, in the order of the kernel's `user_regs_struct`.
pub(crate) fn registers(thread: i32) -> io::Result<Vec<u64>> {
    let mut buffer = [MaybeUninit::<u64>::zeroed(); 64];
    let mut vector = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: size_of_val(&buffer),
    };
    let kind = libc::NT_PRSTATUS as usize as *mut libc::c_void;
    // SAFETY: the vector describes the buffer, which outlives the call.
    checked(unsafe { libc::ptrace(libc::PTRACE_GETREGSET, thread, kind, &raw mut vector) })?;
    let count = (vector.iov_len / size_of::<u64>()).min(buffer.len());
    // SAFETY: all words are zero or what the kernel has written.
    Ok(buffer[..count]
        .iter()
        .map(|word| unsafe { word.assume_init() })
        .collect())
}

/// Sets the nice value of this thread. If that is not permitted, it keeps its own.
pub(crate) fn lower_priority(nice: i32) {
    // SAFETY: the call takes numbers only; on Linux, 0 is the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS as _, 0, nice) };
}
