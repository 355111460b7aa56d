//! What differs between systems, on Linux: signals, the terminal and running JVMs. Other systems have `system_elsewhere.rs`.

use jvm_observe::jvm;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::backend::Handle;
use signal_hook::iterator::exfiltrator::raw::WithRawSiginfo;
use signal_hook::iterator::{Signals, SignalsInfo};
use signal_hook::low_level::emulate_default_handler;
use std::fs;
use std::io;
use std::thread;
use std::time::Duration;

/// Signals that arrive within this time are one: the terminal and a program that passes them on send the same.
pub(crate) const TOGETHER: Duration = Duration::from_secs(1);

/// The signals that end a command.
const ENDS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// SIGINT, SIGTERM, SIGHUP and SIGQUIT as they arrive, for a command that passes signals on.
pub(crate) struct Caught(SignalsInfo<WithRawSiginfo>);

/// A signal that has arrived.
pub(crate) struct Arrived {
    pub(crate) signal: i32,
    /// It was typed on the terminal, which sends it to the whole process group.
    pub(crate) is_typed: bool,
}

impl Caught {
    /// Catches signals from now on. A signal that this process ignores stays ignored, so that the programs that it starts
    /// ignore it, too.
    pub(crate) fn new() -> io::Result<Caught> {
        SignalsInfo::new(heeded(&[SIGINT, SIGTERM, SIGHUP, SIGQUIT])).map(Caught)
    }

    /// The signals that have arrived since the last call.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Arrived> {
        self.0.pending().map(|info| Arrived {
            signal: info.si_signo,
            // The code of what the kernel itself sends is positive, and that of kill(2) is 0.
            is_typed: info.si_code > 0,
        })
    }
}

/// Those that this process does not ignore: what `nohup` or a script has switched off stays so.
pub(crate) fn heeded(wanted: &[i32]) -> Vec<i32> {
    let ignored = ignored();
    let is_heeded = |signal: &i32| ignored >> (signal - 1) & 1 == 0;
    wanted.iter().copied().filter(is_heeded).collect()
}

/// Runs `body` before a signal ends the process. What it returns, such as a lock, is held until the end.
pub(crate) fn before_end<T>(body: impl FnOnce() -> T + Send + 'static) {
    let waiting = at_first(&heeded(&ENDS), |signal| {
        let _held = body();
        let _ = emulate_default_handler(signal);
    });
    // Without a thread the body does not run, as at SIGKILL.
    drop(waiting);
}

/// Runs `body` at the first signal that requests the end, until the handle is closed.
pub(crate) fn at_signal(body: impl FnOnce(i32) + Send + 'static) -> io::Result<Handle> {
    at_first(&ENDS, body)
}

/// Waits for signals on a thread of its own.
fn at_first(signals: &[i32], body: impl FnOnce(i32) + Send + 'static) -> io::Result<Handle> {
    let mut signals = Signals::new(signals)?;
    let handle = signals.handle();
    let thread = thread::Builder::new().name("signals".to_owned());
    thread.spawn(move || {
        if let Some(signal) = signals.forever().next() {
            body(signal);
        }
    })?;
    Ok(handle)
}

/// The signals that this process ignores, one bit each.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

/// Whether a name means a running JVM.
pub(crate) fn is_running_jvm(name: &str) -> bool {
    jvm::find(name).is_ok()
}

/// Waits until something is typed, a signal comes, or the time is over. A terminal that is gone is an error.
pub(crate) fn wait_for_input(patience: Duration) -> io::Result<()> {
    let stdin = io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::IN)];
    let time = Timespec {
        tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(patience.subsec_nanos()),
    };
    match poll(&mut fds, Some(&time)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let gone = PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    match fds[0].revents().intersects(gone) {
        true => Err(io::Error::other("the terminal is gone")),
        false => Ok(()),
    }
}
