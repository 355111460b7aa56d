//! A copy of a JVM, made by a fork at a safepoint, that waits at the other end of a stream while it is read. It shares
//! all memory that the JVM does not change meanwhile; what the JVM changes costs memory, which has a limit.

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

/// How long a copy may take to say that it is there: it makes a dozen system calls, on a machine that may have other work.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often the memory of the copy is measured.
const STEP: Duration = Duration::from_millis(200);
/// How often it is looked whether a copy has ended.
const END_STEP: Duration = Duration::from_millis(2);
/// One part in so many of the free memory is what the copy may take, unless another limit is given.
const SHARE: u64 = 4;
/// The nice value of the reader: a busy program gets ten times as much processor time. With a higher value the copy
/// would last longer, and what the program changes meanwhile costs memory.
const PRIORITY: i32 = 10;

/// A copy of a JVM. It ends when this is dropped.
#[derive(Debug)]
pub struct Copied {
    stream: UnixStream,
    pid: u32,
    tracked: Words,
}

/// What a copy has taken of the memory of the machine because the program has changed its own since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed(pub u64);

impl Copied {
    /// The copy at the other end of a stream, once it has sent two words: where its agent has laid down what it knows of
    /// objects. From then on it can be read.
    ///
    /// # Errors
    /// When it ends instead.
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

    /// Whether a copy of this process could be read, looked up in the running process: a fork for nothing would stop it, too. What
    /// cannot be looked up there is no reason.
    ///
    /// # Errors
    /// When its collector is not one of those that are read.
    pub fn is_possible(original: u32) -> Result<(), Fault> {
        let known = Process::open(original)
            .and_then(|process| Heap::collector(&Vm::open(&process, process.libjvm())?).map(drop));
        match known {
            Err(fault @ Fault::Collector { .. }) => Err(fault),
            _ => Ok(()),
        }
    }

    /// The limit of its memory unless one is given: a part of what is free in the control group of the process and on the machine.
    pub fn usual_limit(original: u32) -> u64 {
        free_memory(original).unwrap_or(u64::MAX) / SHARE
    }

    /// Runs `body`, which reads the copy, with a lower priority of this thread from then on. Ends the copy when it has
    /// taken more memory than `limit`.
    ///
    /// # Errors
    /// Those of `body`; when the limit was reached; when the copy has ended for another reason.
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
        // Of this thread only; the one that holds the limit keeps its priority.
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
        if !is_there {
            return Err(Fault::CopyEnded);
        }
        if matches!(result, Err(Fault::InCollection)) {
            self.end();
        }
        Ok((result?, Changed(changed)))
    }

    /// Ends the copy and waits until its process is gone, so that another one can be made.
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

    /// Whether the other end is still open: it sends nothing more.
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
    /// At once, and until the other end of the channel is dropped.
    fn until(&self, over: &Receiver<()>) {
        loop {
            let own = own_memory(self.pid).unwrap_or(0);
            self.most.fetch_max(own, Ordering::SeqCst);
            if own > self.limit {
                // It ends when it reads the end of the stream.
                drop(self.stream.shutdown(Shutdown::Both));
            }
            if over.recv_timeout(STEP) != Err(RecvTimeoutError::Timeout) {
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
