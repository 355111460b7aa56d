//! A copy of a JVM for a heap dump: the agent forks the JVM at a safepoint, this process reads the memory of the
//! copy, and the JVM runs on meanwhile. The copy ends when the connection to it is closed, so also when this
//! process ends.

use super::agent;
use anyhow::{Context, Result, bail};
use jvm_observe::attach;
use jvm_observe::files::{JvmFiles, PrivateFolder};
use jvm_observe::jvm::{self, Jvm};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Duration;
use vm_image::Copied;

/// The socket to which the copy connects.
const SOCKET: &str = "copy";
/// How long a copy may take to connect: it makes a dozen system calls, on a machine that may be busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// A copy of a JVM.
pub(crate) struct Snapshot {
    pub(crate) copied: Copied,
    /// The longest time that the program was stopped: from the request to stop until it continued.
    pub(crate) stopped: Duration,
    /// The part of this time that the fork took.
    pub(crate) fork: Duration,
    /// Bytes that were moved to huge pages before, or why none could be moved.
    pub(crate) moved: Option<Result<u64>>,
}

impl Snapshot {
    /// Lets the agent copy a JVM; the agent is loaded if necessary. With `huge_pages` it moves memory to huge pages
    /// first.
    pub(crate) fn of(jvm: &Jvm, library: Option<&Path>, huge_pages: bool) -> Result<Snapshot> {
        Copied::is_possible(jvm.pid)?;
        let library = agent::visible(jvm, library)?;
        let moved = huge_pages.then(|| {
            let answer = attach::order(jvm, &library, "huge-pages")?;
            answer.parse().with_context(|| other_version(jvm))
        });
        let inside = JvmFiles::of(jvm)?;
        let mut folder = inside.private_folder()?;
        let listener = folder.listen(&inside, SOCKET)?;
        let order = format!("snapshot={}/{SOCKET}", folder.path);
        let answer = attach::order(jvm, &library, &order)?;
        let (stopped, fork) = times(&answer).with_context(|| other_version(jvm))?;
        let copied = accept(&listener, jvm, &folder)?;
        Ok(Snapshot {
            copied,
            stopped,
            fork,
            moved,
        })
    }
}

fn other_version(jvm: &Jvm) -> String {
    format!("the agent in process {} is another version", jvm.pid)
}

/// The two numbers of microseconds in the agent's answer.
fn times(answer: &str) -> Option<(Duration, Duration)> {
    let (stopped, fork) = answer.split_once(' ')?;
    let micros = |text: &str| text.parse().ok().map(Duration::from_micros);
    Some((micros(stopped)?, micros(fork)?))
}

/// Waits until the copy has connected and has sent the byte that reports that it can be read.
fn accept(listener: &UnixListener, jvm: &Jvm, folder: &PrivateFolder) -> Result<Copied> {
    let patience = Timespec::try_from(PATIENCE).context("a time")?;
    let mut ready = [PollFd::new(listener, PollFlags::IN)];
    if poll(&mut ready, Some(&patience))? == 0 {
        bail!(
            "the copy of process {} did not connect to {}: it was ended by the system (too little memory?)",
            jvm.pid,
            folder.path
        );
    }
    let (stream, _) = listener.accept()?;
    let pid = socket_peercred(&stream)?.pid.as_raw_nonzero().get();
    let pid = pid.unsigned_abs();
    if pid == jvm.pid || !jvm::descends(pid, jvm.pid) {
        bail!(
            "process {pid} is at the socket and not a copy of {}",
            jvm.pid
        );
    }
    Copied::met(stream, pid).context("the copy of the process has ended at once")
}

#[cfg(test)]
mod tests {
    use super::times;
    use std::time::Duration;

    #[test]
    fn an_answer_has_two_times() {
        let some = times("4911 2500").expect("two times");
        assert_eq!(
            some,
            (Duration::from_micros(4911), Duration::from_micros(2500))
        );
        for other in ["", "4911", "4911 x", "nothing is recorded"] {
            assert_eq!(times(other), None, "{other}");
        }
    }
}
