//! A copy of a JVM for a heap dump: the agent forks the JVM at a safepoint, this process reads the memory of the
//! copy, and the JVM runs on meanwhile. The copy ends when the connection to it is closed, so also when this
//! process ends.

use super::inside::{Inside, PrivateFolder};
use super::jvm::{self, Jvm};
use super::{agent, attach};
use crate::free_memory;
use anyhow::{Context, Result, bail};
use report::units::human_bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::socket_peercred;
use std::fs;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The socket to which the copy connects.
const SOCKET: &str = "copy";
/// How long a copy may take to connect: it makes a dozen system calls, on a machine that may have other work.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the memory of the copy is looked at.
const STEP: Duration = Duration::from_millis(200);
/// One part in so many of the free memory is what the copy may take, unless another limit is given.
const SHARE: u64 = 4;

/// A copy of a JVM.
pub(crate) struct Snapshot {
    stream: UnixStream,
    /// Its process id.
    pub(crate) pid: u32,
    /// How long the program stood still at most: from the request to stop until it went on.
    pub(crate) stopped: Duration,
    /// How long of that the fork took.
    pub(crate) fork: Duration,
}

impl Snapshot {
    /// Has the agent copy a JVM; it is loaded if it is not yet.
    pub(crate) fn of(jvm: &Jvm, library: Option<&Path>) -> Result<Snapshot> {
        let library = agent::visible(jvm, library)?;
        let inside = Inside::of(jvm)?;
        let mut folder = inside.private_folder()?;
        let listener = folder.listen(&inside, SOCKET)?;
        let order = format!("snapshot={}/{SOCKET}", folder.path);
        let answer = attach::order(jvm, &library, &order)?;
        let (stopped, fork) = times(&answer)
            .with_context(|| format!("the agent in process {} is another version", jvm.pid))?;
        let (stream, pid) = accept(&listener, jvm, &folder)?;
        Ok(Snapshot {
            stream,
            pid,
            stopped,
            fork,
        })
    }

    /// Runs `body`, which reads the copy, and ends the copy when it has taken more memory than `limit` because the
    /// program has changed its own since.
    ///
    /// # Errors
    /// Those of `body`; when the limit was reached; when the copy has ended for another reason.
    pub(crate) fn within<T>(
        self,
        limit: u64,
        body: impl FnOnce() -> Result<T>,
    ) -> Result<(T, u64)> {
        let reached = Arc::new(AtomicU64::new(0));
        let stream = self.stream.try_clone()?;
        let watch = Watch {
            stream: self.stream,
            pid: self.pid,
            limit,
            most: Arc::clone(&reached),
        };
        let (done, over) = std::sync::mpsc::channel::<()>();
        let watching = std::thread::spawn(move || watch.until(&over));
        let result = body();
        let is_there = is_open(&stream);
        drop(done);
        // The thread does not panic.
        drop(watching.join());
        let most = reached.load(Ordering::SeqCst);
        if most > limit {
            bail!(
                "the program has changed {} of its memory since it was copied, more than --cow-limit ({}) allows, so \
                 the dump was abandoned; the program was not disturbed",
                human_bytes(most),
                human_bytes(limit)
            );
        }
        if !is_there {
            bail!(
                "the copy of the process was ended: the program itself has ended, or the system is short of memory"
            );
        }
        Ok((result?, most))
    }
}

/// The two numbers of microseconds that the agent answers.
fn times(answer: &str) -> Option<(Duration, Duration)> {
    let (stopped, fork) = answer.split_once(' ')?;
    let micros = |text: &str| text.parse().ok().map(Duration::from_micros);
    Some((micros(stopped)?, micros(fork)?))
}

/// Waits until the copy has connected and has sent the byte that says that it can be read.
fn accept(listener: &UnixListener, jvm: &Jvm, folder: &PrivateFolder) -> Result<(UnixStream, u32)> {
    let patience = Timespec::try_from(PATIENCE).context("a time")?;
    let mut ready = [PollFd::new(listener, PollFlags::IN)];
    if poll(&mut ready, Some(&patience))? == 0 {
        bail!(
            "the copy of process {} did not connect to {}: it was ended by the system (too little memory?)",
            jvm.pid,
            folder.path
        );
    }
    let (mut stream, _) = listener.accept()?;
    let pid = socket_peercred(&stream)?.pid.as_raw_nonzero().get();
    let pid = pid.unsigned_abs();
    if pid == jvm.pid || !jvm::descends(pid, jvm.pid) {
        bail!(
            "process {pid} is at the socket and not a copy of {}",
            jvm.pid
        );
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut byte = [0];
    stream
        .read_exact(&mut byte)
        .context("the copy of the process has ended at once")?;
    Ok((stream, pid))
}

/// Whether the other end is still there.
fn is_open(stream: &UnixStream) -> bool {
    let mut state = [PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::RDHUP)];
    poll(&mut state, Some(&Timespec::default())).is_ok() && state[0].revents().is_empty()
}

/// Looks at the memory of a copy.
struct Watch {
    stream: UnixStream,
    pid: u32,
    limit: u64,
    most: Arc<AtomicU64>,
}

impl Watch {
    /// Until the other end of the channel is dropped.
    fn until(&self, over: &std::sync::mpsc::Receiver<()>) {
        use std::sync::mpsc::RecvTimeoutError::Timeout;
        while over.recv_timeout(STEP) == Err(Timeout) {
            let Some(own) = own_memory(self.pid) else {
                continue;
            };
            self.most.fetch_max(own, Ordering::SeqCst);
            if own > self.limit {
                // It ends when it reads the end of the stream.
                drop(self.stream.shutdown(std::net::Shutdown::Both));
                return;
            }
        }
    }
}

/// Bytes of a process that no other one has: of a copy, what the original has changed since.
fn own_memory(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    Some((of("Private_Clean:")? + of("Private_Dirty:")?) << 10)
}

/// The usual limit: a part of the memory that is free in the control group of the JVM and on the machine.
pub(crate) fn usual_limit(jvm: &Jvm) -> u64 {
    free_memory::of_process(jvm.pid).unwrap_or(u64::MAX) / SHARE
}

#[cfg(test)]
mod tests {
    use super::{own_memory, times};
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

    #[test]
    fn the_memory_of_a_process_is_read() {
        let own = own_memory(std::process::id()).expect("a process");
        assert!(own > 1 << 16, "{own}");
        assert_eq!(own_memory(u32::MAX), None);
    }
}
