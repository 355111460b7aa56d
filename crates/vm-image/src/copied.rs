//! A copy of a JVM, made by a fork at a safepoint, which waits at the other end of a stream while it is read. It shares
//! all memory with the JVM; pages that the JVM changes meanwhile use additional memory, which is limited.

use crate::container::free_memory;
use crate::fault::Fault;
use crate::heap::Heap;
use crate::memory::Memory;
use crate::process::Process;
use crate::raw;
use crate::tracked::Words;
use crate::vm::Vm;
use crate::{Place, Summary};
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long a copy may take until it reports that it can be read: it makes a dozen system calls, on a machine that may
/// be busy.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the memory of the copy is measured.
const STEP: Duration = Duration::from_millis(200);
/// How often this checks whether a copy has ended.
const END_STEP: Duration = Duration::from_millis(2);
/// Unless another limit is given, the copy may use the free memory divided by this.
const SHARE: u64 = 4;
/// The nice value of the reader: a busy program gets ten times as much processor time. With a higher value the copy
/// would exist for longer, and each change of the program meanwhile uses memory.
const PRIORITY: i32 = 10;

/// A copy of a JVM. It ends when this is dropped.
#[derive(Debug)]
pub struct Copied {
    stream: UnixStream,
    pid: u32,
    tracked: Words,
}

/// Bytes of memory that the copy used because the program has changed its own memory since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed(pub u64);

impl Copied {
    /// The copy at the other end of a stream, after it has sent two words: the address and the number of the words with
    /// the agent's data about objects. From then on it can be read.
    ///
    /// # Errors
    /// The copy ends before that.
    pub fn met(mut stream: UnixStream, pid: u32) -> io::Result<Copied> {
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut words = [0; 2 * size_of::<u64>()];
        stream.read_exact(&mut words)?;
        let [at, len] = [0, 8].map(|i| {
            words[i..]
                .first_chunk()
                .map_or(0, |word| u64::from_le_bytes(*word))
        });
        Ok(Copied {
            stream,
            pid,
            tracked: Words { at, len },
        })
    }

    /// Whether a copy of this process could be read. This examines the running process, because a fork that turns out
    /// to be useless would also stop it. Facts that cannot be examined there do not count as an error.
    ///
    /// # Errors
    /// Its collector is not supported.
    pub fn is_possible(original: u32) -> Result<(), Fault> {
        let known = Process::open(original)
            .and_then(|process| Heap::collector(&Vm::open(&process, process.libjvm())?).map(drop));
        match known {
            Err(fault @ Fault::Collector { .. }) => Err(fault),
            _ => Ok(()),
        }
    }

    /// The default limit of its memory: a share of the memory that is free in the control group of the process and on
    /// the machine.
    pub fn usual_limit(original: u32) -> u64 {
        free_memory(original).unwrap_or(u64::MAX) / SHARE
    }

    /// Runs `body`, which reads the copy; this thread keeps a lower priority afterwards. Ends the copy if it has used
    /// more memory than `limit`.
    ///
    /// # Errors
    /// Those of `body`; the limit was reached; the copy has ended for another reason.
    pub fn read(
        self,
        limit: u64,
        body: impl FnOnce(&dyn Memory, &Place) -> Result<Summary, Fault>,
    ) -> Result<(Summary, Changed), Fault> {
        let broken = || Fault::io("cannot watch the copy of the process");
        let most = Arc::new(AtomicU64::new(0));
        let watch = Watch {
            stream: self.stream.try_clone().map_err(broken())?,
            pid: self.pid,
            limit,
            most: Arc::clone(&most),
        };
        let (done, over) = channel::<()>();
        let watching = std::thread::Builder::new().name("watch of copy".to_owned());
        let watching = watching.spawn(move || watch.until(&over));
        let watching = watching.map_err(broken())?;
        // Only this thread; the one that checks the limit keeps its priority.
        raw::lower_priority(PRIORITY);
        let result = self
            .open()
            .and_then(|(process, place)| body(&process, &place));
        let is_there = self.is_there();
        drop(done);
        // The thread does not panic.
        drop(watching.join());
        let changed = most.load(Ordering::SeqCst);
        if changed > limit {
            return Err(Fault::Changed { changed, limit });
        }
        // The memory of a killed process is gone before its connection is closed.
        if !is_there || matches!(result, Err(Fault::Ended)) {
            return Err(Fault::CopyEnded);
        }
        if matches!(result, Err(Fault::InCollection)) {
            self.end();
        }
        Ok((result?, Changed(changed)))
    }

    /// Ends the copy and waits until its process has ended, so that another one can be made.
    fn end(self) {
        let process = PathBuf::from(format!("/proc/{}", self.pid));
        drop(self);
        let begun = Instant::now();
        while process.exists() && begun.elapsed() < PATIENCE {
            std::thread::sleep(END_STEP);
        }
    }

    fn open(&self) -> Result<(Process, Place), Fault> {
        let process = Process::open(self.pid)?;
        let place = Place {
            libjvm: process.libjvm(),
            registers: Vec::new(),
            at_safepoint: true,
            tracked: self.tracked,
        };
        Ok((process, place))
    }

    /// Whether the other end is still open: it sends no more bytes.
    fn is_there(&self) -> bool {
        let looked = self.stream.set_nonblocking(true);
        let found = looked.and_then(|()| (&self.stream).read(&mut [0]));
        found.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }
}

/// Watches the memory of a copy.
struct Watch {
    stream: UnixStream,
    pid: u32,
    limit: u64,
    most: Arc<AtomicU64>,
}

impl Watch {
    /// Checks immediately, and then until the other end of the channel is dropped.
    fn until(&self, over: &Receiver<()>) {
        loop {
            let own = own_memory(self.pid).unwrap_or(0);
            self.most.fetch_max(own, Ordering::SeqCst);
            if own > self.limit {
                // The copy ends when it reads the end of the stream.
                drop(self.stream.shutdown(Shutdown::Both));
            }
            if over.recv_timeout(STEP) != Err(RecvTimeoutError::Timeout) {
                return;
            }
        }
    }
}

/// Bytes of a process that it shares with no other: for a copy, the memory that the original has changed since.
fn own_memory(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let of = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    Some((of("Private_Clean:")? + of("Private_Dirty:")?) << 10)
}

#[cfg(test)]
mod tests {
    use super::own_memory;

    #[cfg(target_os = "linux")]
    #[test]
    fn the_memory_of_a_process_is_read() {
        let own = own_memory(std::process::id()).expect("a process");
        assert!(own > 1 << 16, "{own}");
        assert_eq!(own_memory(u32::MAX), None);
    }
}
