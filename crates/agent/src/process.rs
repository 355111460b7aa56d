//! The process around the recorder: time, messages, exit.

use std::io::Write;
use std::mem::MaybeUninit;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use agent_core::options::{ERROR_PREFIX, TERMINATED};
use agent_core::{Host, WallTime};

/// This process.
pub(crate) struct Process {
    /// The path at which the VM may write its own dump.
    pub(crate) scratch: PathBuf,
}

impl Host for Process {
    fn now(&self) -> WallTime {
        wall_time()
    }

    fn scratch(&self) -> Option<PathBuf> {
        // If a file has that name, it belongs to another program or to a dump in progress.
        (!self.scratch.exists()).then(|| self.scratch.clone())
    }

    fn say(&mut self, text: &str) {
        say(text);
    }
}

/// The time now.
pub(crate) fn wall_time() -> WallTime {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = now.as_secs() as libc::time_t;
    let mut local = MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both pointers are to live locals; a zeroed `tm` is valid.
    let offset = unsafe {
        libc::localtime_r(&raw const seconds, local.as_mut_ptr());
        local.assume_init().tm_gmtoff
    };
    WallTime {
        unix_ms: now.as_millis() as u64,
        offset_seconds: offset as i32,
    }
}

/// The user whose rights the process has.
pub(crate) fn user() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::geteuid() }
}

/// Writes to standard error; all messages use this function. If the stream is closed, the text is dropped.
pub(crate) fn say(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Prints one line about something that failed.
pub(crate) fn note(text: &str) {
    say(&format!("HPROF: {text}\n"));
}

/// Blocks all signals in a thread that the VM does not know, so that other threads handle them.
pub(crate) fn leave_signals_to_others() {
    let mut all = MaybeUninit::<libc::sigset_t>::zeroed();
    // SAFETY: the set is a live local that the first call fills; the old mask is not wanted.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), std::ptr::null_mut());
    }
}

/// Ends the process because it was started with invalid options.
pub(crate) fn refuse(text: &str, code: i32, fatal: bool) -> ! {
    say(&format!("{ERROR_PREFIX}{text}\n"));
    if fatal {
        say(&format!("{TERMINATED}\n"));
    }
    exit(code)
}

/// Ends the process immediately, without running exit handlers of a VM that is only partly started.
pub(crate) fn exit(code: i32) -> ! {
    let _ = std::io::stdout().flush();
    // SAFETY: ends the process; the agent has nothing left to do.
    unsafe { libc::_exit(code) }
}
