//! Sends bytes to a collector or a pipe by a separate thread. If a collector reads slowly or not at all, the profile loses its
//! end, and the program is not delayed.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use locks::{Condvar, Mutex, MutexGuard, Rank};

use vmpi::Memory;

use crate::process;
use crate::stream::Stream;

/// The most bytes that may wait for the collector, unless the memory limit is small.
const LIMIT: u64 = 16 << 20;
/// Waiting bytes may use the memory limit divided by this, and are charged to it.
const SHARE: u64 = 8;
/// A collector that reads nothing for this time while a writer waits for it is abandoned.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes that are added to the queue at once.
const PIECE: usize = 64 << 10;
/// Bytes per write to the socket; the collector's progress is measured in this unit.
const SENT: usize = 8 << 10;

/// The state that writers and the sending thread share.
#[derive(Default)]
struct Queue {
    pieces: VecDeque<Vec<u8>>,
    /// Bytes in `pieces`, and the unsent bytes of the piece that is being sent.
    waiting: u64,
    /// All bytes sent so far.
    sent: u64,
    /// Why sending has ended.
    end: Option<String>,
    /// The end has been reported to a writer.
    is_reported: bool,
    /// The number of dumps in progress, plus one while the program ends: if it is not zero, a writer may wait.
    patient: u32,
    /// Nothing more will come.
    is_closed: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    stream: Stream,
    memory: Arc<Memory>,
    limit: u64,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }

    /// Waits until `done` returns true, as long as the collector reads some bytes within each interval; otherwise the
    /// collector is abandoned.
    fn wait<'a>(
        &'a self,
        mut queue: MutexGuard<'a, Queue>,
        done: impl Fn(&Queue) -> bool,
    ) -> MutexGuard<'a, Queue> {
        let (mut sent, mut since) = (queue.sent, Instant::now());
        while queue.end.is_none() && !done(&queue) {
            if queue.sent != sent {
                (sent, since) = (queue.sent, Instant::now());
            }
            let left = PATIENCE.saturating_sub(since.elapsed());
            if left.is_zero() {
                self.give_up(&mut queue);
                break;
            }
            queue = self.changed.wait_timeout(queue, left);
        }
        queue
    }

    /// Ends sending. Wakes the threads that write to the collector or read from it.
    fn give_up(&self, queue: &mut Queue) {
        queue.end = Some(format!(
            "the {} does not read; {} bytes are dropped, and all later ones",
            self.stream.reader(),
            queue.waiting
        ));
        queue.pieces.clear();
        self.memory
            .native
            .discharge(std::mem::take(&mut queue.waiting));
        self.stream.abandon();
        self.changed.notify_all();
    }
}

/// The writing side.
pub(crate) struct Sender(Arc<Shared>);

/// Decides when writers may wait for the collector.
#[derive(Clone)]
pub(crate) struct Patience(Arc<Shared>);

/// While a value of this type exists, writers may wait.
struct Patient<'a>(&'a Shared);

impl<'a> Patient<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.lock().patient += 1;
        Self(shared)
    }
}

impl Drop for Patient<'_> {
    fn drop(&mut self) {
        self.0.lock().patient -= 1;
    }
}

impl Patience {
    /// Whether both are for the same collector.
    pub(crate) fn is_same(&self, other: &Patience) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether sending has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.0.lock().end.is_some()
    }

    /// Runs `body`, which writes a dump or ends the profile and may wait for a collector that reads. When this returns,
    /// all bytes of `body` have been sent to the collector, or the collector has been abandoned, which is reported.
    /// Several calls may run at once.
    pub(crate) fn while_waiting<T>(&self, body: impl FnOnce() -> T) -> T {
        let _patient = Patient::new(&self.0);
        let result = body();
        let queue = self.0.lock();
        // It does not wait for bytes that other threads write meanwhile.
        let last = queue.sent + queue.waiting;
        let mut queue = self.0.wait(queue, |queue| queue.sent >= last);
        let was_reported = queue.end.is_none() || std::mem::replace(&mut queue.is_reported, true);
        let end = queue.end.clone().filter(|_| !was_reported);
        drop(queue);
        if let Some(end) = end {
            process::say(&format!("HPROF ERROR: the output is lost: {end}\n"));
        }
        result
    }
}

impl Sender {
    /// Starts a thread that sends to the collector. Waiting bytes are charged to this memory.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn new(stream: Stream, memory: &Arc<Memory>) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            queue: Mutex::new(Rank::Sender, Queue::default()),
            changed: Condvar::new(),
            stream,
            memory: Arc::clone(memory),
            limit: LIMIT.min(memory.native.limit() / SHARE),
        });
        let theirs = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("HPROF sender".to_owned())
            .spawn(move || {
                process::leave_signals_to_others();
                send(&theirs);
            })?;
        Ok(Self(shared))
    }

    /// A handle with which its user allows writers to wait.
    pub(crate) fn patience(&self) -> Patience {
        Patience(Arc::clone(&self.0))
    }
}

impl Drop for Sender {
    /// Waiting bytes are still sent.
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

impl Write for Sender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut queue = self.0.lock();
        let limit = self.0.limit;
        let fits = |queue: &Queue| queue.waiting + PIECE as u64 <= limit;
        if queue.patient > 0 {
            queue = self.0.wait(queue, fits);
        } else if queue.end.is_none() && !fits(&queue) {
            self.0.give_up(&mut queue);
        }
        if let Some(end) = queue.end.clone() {
            // The end is reported once; later bytes are dropped without an error.
            if std::mem::replace(&mut queue.is_reported, true) {
                return Ok(bytes.len());
            }
            return Err(io::Error::new(ErrorKind::TimedOut, end));
        }
        let piece = &bytes[..bytes.len().min(PIECE)];
        queue.waiting += piece.len() as u64;
        self.0.memory.native.charge(piece.len() as u64);
        queue.pieces.push_back(piece.to_vec());
        self.0.changed.notify_all();
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The sending thread; it ends when the collector has disconnected or the writers close the queue.
fn send(shared: &Shared) {
    let collector = &shared.stream;
    loop {
        let mut queue = shared.lock();
        let piece = loop {
            if queue.end.is_some() {
                return;
            }
            match queue.pieces.pop_front() {
                Some(piece) => break piece,
                None if queue.is_closed => {
                    collector.end();
                    return;
                }
                None => queue = shared.changed.wait(queue),
            }
        };
        drop(queue);
        let mut rest = &piece[..];
        while !rest.is_empty() {
            let written = match collector.write(&rest[..rest.len().min(SENT)]) {
                Ok(0) => Err(ErrorKind::WriteZero.into()),
                Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
                written => written,
            };
            let mut queue = shared.lock();
            match written {
                Ok(count) => {
                    rest = &rest[count..];
                    queue.sent += count as u64;
                    // If the collector was abandoned meanwhile, no bytes are waiting.
                    let count = queue.waiting.min(count as u64);
                    queue.waiting -= count;
                    shared.memory.native.discharge(count);
                }
                Err(error) => {
                    queue.end.get_or_insert_with(|| error.to_string());
                    queue.pieces.clear();
                    let waiting = std::mem::take(&mut queue.waiting);
                    shared.memory.native.discharge(waiting);
                }
            }
            let is_over = queue.end.is_some();
            drop(queue);
            shared.changed.notify_all();
            if is_over {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    fn pair() -> (Sender, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let sender = Sender::new(Stream::Socket(stream), &Arc::default()).unwrap();
        (sender, listener.accept().unwrap().0)
    }

    #[test]
    fn what_waits_is_charged_to_the_memory_limit_until_it_is_sent() {
        let (mut sender, mut collector) = pair();
        let memory = Arc::clone(&sender.0.memory);
        sender.write_all(&vec![7; 1 << 20]).unwrap();
        assert!(memory.native.used() <= 1 << 20);
        let patience = sender.patience();
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            collector.read_to_end(&mut all).map(|_| all.len())
        });
        patience.while_waiting(|| ());
        assert_eq!(memory.native.used(), 0);
        assert!(memory.native.most() >= PIECE as u64);
        drop(sender);
        assert_eq!(reader.join().unwrap().unwrap(), 1 << 20);
    }

    #[test]
    fn a_small_memory_limit_has_a_short_queue_and_an_abandoned_collector_costs_nothing() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let memory = Arc::new(Memory::new(16 << 20));
        let mut sender = Sender::new(Stream::Socket(stream), &memory).unwrap();
        let collector = listener.accept().unwrap().0;
        let block = vec![7; 1 << 20];
        assert!((0..200).any(|_| sender.write_all(&block).is_err()));
        assert!(memory.native.most() <= 2 << 20, "{}", memory.native.most());
        assert_eq!(memory.native.used(), 0);
        drop(collector);
    }

    #[test]
    fn a_collector_that_does_not_read_costs_no_time_and_is_abandoned() {
        let (mut sender, collector) = pair();
        let block = vec![7; 1 << 20];
        let began = Instant::now();
        let failed = (0..200).find_map(|_| sender.write_all(&block).err());
        // This is far below the seconds that waiting for each block would take.
        assert!(began.elapsed() < Duration::from_secs(20));
        let printed = failed.expect("the limit is reached").to_string();
        assert!(printed.contains("does not read") && printed.contains("bytes are dropped"));
        assert!(sender.write(&block).is_ok(), "it is said once");
        drop(collector);
    }

    #[test]
    fn a_dump_waits_for_a_slow_collector_and_not_for_a_stopped_one() {
        const BLOCKS: usize = 64;
        let (mut sender, collector) = pair();
        let patience = sender.patience();
        let block = vec![7; 1 << 20];
        let reader = slow_reader(collector, BLOCKS << 20);
        patience.while_waiting(|| {
            for _ in 0..BLOCKS {
                sender.write_all(&block).unwrap();
            }
        });
        // All bytes have been sent; from here on no thread reads.
        let collector = reader.join().unwrap();
        let failed = patience.while_waiting(|| {
            let mut blocks = (0..BLOCKS).map(|_| sender.write_all(&block));
            blocks.find_map(Result::err)
        });
        assert!(failed.is_some());
        drop(collector);
    }

    /// A thread that slowly reads this number of bytes, and returns the collector's stream.
    fn slow_reader(mut collector: TcpStream, bytes: usize) -> std::thread::JoinHandle<TcpStream> {
        std::thread::spawn(move || {
            let (mut got, mut buffer) = (0, vec![0; 1 << 20]);
            while got < bytes {
                std::thread::sleep(Duration::from_millis(2));
                got += collector.read(&mut buffer).unwrap();
            }
            collector
        })
    }

    #[test]
    fn a_dump_that_ends_does_not_hurry_another() {
        const BLOCKS: usize = 64;
        let (mut sender, collector) = pair();
        let reader = slow_reader(collector, BLOCKS << 20);
        let (one, other) = (sender.patience(), sender.patience());
        one.while_waiting(|| {
            other.while_waiting(|| ());
            for _ in 0..BLOCKS {
                sender.write_all(&vec![7; 1 << 20]).unwrap();
            }
        });
        reader.join().unwrap();
    }

    #[test]
    fn the_collector_of_a_writer_that_is_gone_receives_the_queue_and_then_the_end() {
        let (mut sender, mut collector) = pair();
        collector
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        sender.write_all(&vec![7; 5 << 20]).unwrap();
        drop(sender);
        let mut all = Vec::new();
        collector.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), 5 << 20);
    }
}
