//! The program under test as a child process, with a time limit and an address-space limit.

use std::io::Read;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How a run ended.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Exit code, `None` when a signal or the time limit ended it.
    pub code: Option<i32>,
    /// The signal that ended it, 9 for the time limit.
    pub signal: Option<i32>,
    /// True when the time limit ended it.
    pub timed_out: bool,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Wall time.
    pub took: Duration,
}

impl Ran {
    /// True when the program panicked, hung or died by a signal.
    pub fn crashed(&self) -> bool {
        self.code.is_none() || self.code == Some(101) || self.stderr.contains("panicked at")
    }
}

/// Limits of a run.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Wall time.
    pub time: Duration,
    /// Address space in KiB (`ulimit -v`).
    pub address_space_kib: u64,
}

impl Limits {
    /// A minute, however busy the machine is, and 4 GiB of address space.
    pub const HOSTILE_INPUT: Limits = Limits {
        time: Duration::from_secs(60),
        address_space_kib: 4 << 20,
    };
}

/// Runs `program` under limits. The address-space limit is set by a POSIX shell, so this needs one.
pub fn run(program: &Path, args: &[&str], limits: Limits) -> Ran {
    let mut command = Command::new("sh");
    let limit = format!(
        "ulimit -v {} && exec \"$0\" \"$@\"",
        limits.address_space_kib
    );
    command.args(["-c", &limit]).arg(program).args(args);
    run_command(command, limits.time)
}

/// Runs any command with a time limit, both outputs captured.
pub fn run_command(mut command: Command, time: Duration) -> Ran {
    let start = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let stdout = drain(child.stdout.take());
    let stderr = drain(child.stderr.take());
    let (status, timed_out) = loop {
        match child.try_wait().expect("waiting for a child") {
            Some(status) => break (status, false),
            None if start.elapsed() > time => {
                child.kill().expect("killing a child");
                break (child.wait().expect("waiting for a child"), true);
            }
            None => std::thread::sleep(Duration::from_millis(2)),
        }
    };
    Ran {
        code: status.code(),
        signal: signal(status),
        timed_out,
        stdout: stdout.join().expect("the reader thread"),
        stderr: stderr.join().expect("the reader thread"),
        took: start.elapsed(),
    }
}

fn drain(from: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut from) = from {
            // A child killed in the middle of a write leaves what it wrote; that is all there is.
            let _ = from.read_to_end(&mut bytes);
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<i32> {
    None
}
