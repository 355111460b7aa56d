//! From messages of the program's threads to bytes on the socket, on a thread of its
//! own. A reader that stops costs events, which are counted, and never time.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use vmpi::wire::{Answer, ArenaState, CommandReader, Encoder, Hello, Item, Numbered};
use vmpi::{Body, EnvId, EventKind, Switches};

/// Bytes that may wait for the reader before events are dropped, unless the memory limit is small.
const LIMIT: usize = 8 << 20;
/// One part in so many of the memory limit may wait, and as much again may be in the process of being written.
const SHARE: u64 = 16;
/// At the end, a reader is not waited for if it has accepted nothing after so many pauses. Pauses are counted and not time:
/// on a busy machine, time may pass while this thread does not run.
const PAUSES: u32 = 2000;
/// The length of a pause.
const PAUSE: Duration = Duration::from_millis(1);

/// Grows whenever the writer gets on.
static PROGRESS: AtomicU64 = AtomicU64::new(0);

/// The writer gets on.
pub(super) fn get_on() {
    PROGRESS.fetch_add(1, Ordering::Relaxed);
}

/// Another number than before if the writer got on meanwhile.
pub(super) fn progress() -> u64 {
    PROGRESS.load(Ordering::Relaxed)
}

/// Where a recording goes.
pub enum Sink {
    /// To a file.
    File(Box<dyn Write + Send>),
    /// To a reader that listens.
    Socket(TcpStream),
}

impl Sink {
    fn prepare(&self) -> std::io::Result<()> {
        match self {
            Self::File(_) => Ok(()),
            Self::Socket(stream) => stream.set_nonblocking(true),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Socket(stream) => stream.write(bytes),
        }
    }

    /// What came back; a file has no way back.
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::File(_) => Ok(0),
            Self::Socket(stream) => stream.read(bytes),
        }
    }
}

/// The wire and what waits for it.
pub(crate) struct Stream {
    encoder: Encoder,
    sink: Sink,
    /// Taken from the encoder, and how much of it is written.
    pending: (Vec<u8>, usize),
    /// An earlier write failed, so nothing more is written.
    is_broken: bool,
    /// The reason, until it is reported.
    fault: Option<String>,
    limit: usize,
    /// The way back, as long as it makes sense.
    commands: Option<CommandReader>,
    /// What the front end has.
    switches: Switches,
    started: Instant,
    now: u64,
    /// The id of the object whose birth was put down last.
    pub(crate) last_allocation: u64,
}

impl Stream {
    pub(crate) fn new(hello: &Hello, sink: Sink, started: Instant, memory: u64) -> Self {
        let fault = sink.prepare().err().map(|error| error.to_string());
        let limit = usize::try_from(memory / SHARE).map_or(LIMIT, |share| share.min(LIMIT));
        Self {
            encoder: Encoder::with_limit(hello, limit),
            sink,
            pending: (Vec::new(), 0),
            is_broken: fault.is_some(),
            fault,
            limit,
            commands: Some(CommandReader::new()),
            switches: Switches::all(),
            started,
            now: 0,
            last_allocation: 0,
        }
    }

    /// Puts down one item of a thread that happened at `at`, if the front end has it.
    pub(crate) fn item(&mut self, at: Instant, env: EnvId, item: &Item) {
        if let Item::Event { requested, body } = item
            && !requested
            && !self.switches.is_on(body.kind())
        {
            return;
        }
        let since = at.saturating_duration_since(self.started).as_nanos() as u64;
        // Threads note the time before they are in the queue: it does not go back.
        self.now = self.now.max(since);
        self.encoder.clock(self.now);
        self.encoder.item(env, item);
    }

    /// Puts down one event.
    pub(crate) fn event(&mut self, at: Instant, env: EnvId, body: Body) {
        self.item(at, env, &Item::event(body));
    }

    /// Has an event emitted or left out from now on.
    pub(crate) fn switch(&mut self, kind: EventKind, on: bool) {
        // Dumps cannot be switched, and are emitted only on request.
        let _ = self.switches.set(kind, on);
    }

    /// Answers a command; what it yielded has been put down.
    pub(crate) fn answer(&mut self, answer: Answer) {
        self.encoder.answer(answer);
    }

    /// The next that the front end has asked; if not `all` is wanted, once the reader has taken most of
    /// what was said before. Bytes that are no commands end the way back, not the stream.
    pub(crate) fn asked(&mut self, all: bool) -> Option<Numbered> {
        if !all && self.waiting() > self.limit {
            return None;
        }
        let mut bytes = [0; 512];
        while let Some(commands) = &mut self.commands {
            match commands.next_command() {
                Ok(Some(command)) => return Some(command),
                Ok(None) => match self.sink.read(&mut bytes) {
                    Ok(count) if count > 0 => commands.push(&bytes[..count]),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                    Ok(_) | Err(_) => self.commands = None,
                },
                Err(_) => self.commands = None,
            }
        }
        None
    }

    /// How full the arenas are.
    pub(crate) fn states(&mut self, at: Instant, states: &[ArenaState]) {
        for state in states {
            self.item(at, EnvId(0), &Item::ArenaState(*state));
        }
    }

    /// Records how many events were dropped because the memory limit was reached.
    pub(crate) fn lost(&mut self, at: Instant, kind: EventKind, count: u64) {
        if count > 0 {
            let kind = Some(kind);
            self.item(at, EnvId(0), &Item::Lost { kind, count });
        }
    }

    /// Writes as much as the reader takes without waiting; whether anything went.
    pub(crate) fn write(&mut self) -> bool {
        self.encoder.flush();
        let mut any = false;
        loop {
            if self.pending.1 == self.pending.0.len() {
                self.pending = (self.encoder.take(), 0);
                if self.pending.0.is_empty() {
                    return any;
                }
            }
            if self.is_broken {
                self.pending = (Vec::new(), 0);
                continue;
            }
            match self.sink.write(&self.pending.0[self.pending.1..]) {
                Ok(0) => self.fail(&ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.pending.1 += count;
                    any = true;
                    get_on();
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return any,
                Err(error) => self.fail(&error),
            }
        }
    }

    /// Stops the recording after a failed write.
    fn fail(&mut self, error: &std::io::Error) {
        self.is_broken = true;
        self.fault = Some(error.to_string());
    }

    /// The reason why the recording ended before the program; only the first call returns it.
    pub(crate) fn fault(&mut self) -> Option<String> {
        self.fault.take()
    }

    /// Bytes that the reader has not been given so far.
    fn waiting(&self) -> usize {
        self.pending.0.len() - self.pending.1 + self.encoder.waiting()
    }

    /// Ends the recording and writes the remaining data while the reader accepts it. Returns the reason if it could not.
    pub(crate) fn finish(mut self) -> Option<String> {
        let mut pauses = 0;
        while self.waiting() > 0 && pauses < PAUSES {
            if self.write() {
                pauses = 0;
            } else {
                std::thread::sleep(PAUSE);
                pauses += 1;
            }
        }
        let mut rest = self.pending.0.split_off(self.pending.1);
        rest.extend(self.encoder.finish());
        let mut done = 0;
        while done < rest.len() && !self.is_broken && pauses < PAUSES {
            match self.sink.write(&rest[done..]) {
                Ok(count) if count > 0 => {
                    done += count;
                    pauses = 0;
                    get_on();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    std::thread::sleep(PAUSE);
                    pauses += 1;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(_) => self.is_broken = true,
                Err(error) => {
                    self.is_broken = true;
                    self.fault = Some(error.to_string());
                }
            }
        }
        self.fault
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;
    use vmpi::wire::{Command, CommandWriter, Frame, read_all};
    use vmpi::{DumpLevel, HeapDump, ObjectHandle};

    #[test]
    fn a_reader_that_stops_costs_counted_events_and_no_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut reader, _) = listener.accept().unwrap();
        let started = Instant::now();
        let mut wire = Stream::new(&Hello::default(), Sink::Socket(stream), started, u64::MAX);
        const EVENTS: u64 = 6_000_000;
        for at in 0..EVENTS {
            // Far apart, so that each takes several bytes.
            let object = ObjectHandle(at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8);
            wire.event(started, EnvId(1), Body::ObjectFree { object });
            if at % 1000 == 0 {
                wire.write();
            }
        }
        let dropped = wire.encoder.dropped();
        assert!(dropped > 0, "the limit was never reached");
        let read = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).unwrap();
            bytes
        });
        wire.finish();
        let bytes = read.join().unwrap();
        let (mut events, mut lost) = (0, 0);
        read_all(&bytes, |frame| {
            if let Frame::Batch(batch) = frame {
                for item in batch {
                    match item? {
                        Item::Event { .. } => events += 1,
                        Item::Lost { count, .. } => lost += count,
                        _ => {}
                    }
                }
            }
            Ok(())
        })
        .expect("a whole stream");
        assert_eq!((events + lost, lost >= dropped), (EVENTS, true));
    }

    #[test]
    fn who_has_not_read_a_dump_is_given_no_second_one() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut reader, _) = listener.accept().unwrap();
        let mut wire = Stream::new(
            &Hello::default(),
            Sink::Socket(stream),
            Instant::now(),
            u64::MAX,
        );
        let mut commands = CommandWriter::new();
        for _ in 0..2 {
            let (_, bytes) = commands.command(Command::HeapDump(DumpLevel::Values));
            reader.write_all(&bytes).unwrap();
        }
        let mut next = || loop {
            if let Some(asked) = wire.asked(false) {
                break asked.serial;
            }
            std::thread::yield_now();
        };
        assert_eq!(next(), 1);
        let body = Body::HeapDump(Box::new(HeapDump {
            level: DumpLevel::Values,
            data: vec![0; 3 * LIMIT],
            traces: Vec::new(),
        }));
        let requested = true;
        wire.item(Instant::now(), EnvId(0), &Item::Event { requested, body });
        wire.write();
        assert!(wire.waiting() > LIMIT, "a socket takes less at once");
        assert_eq!(wire.asked(false), None);
        let read = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).unwrap();
            bytes.len()
        });
        while wire.waiting() > 0 {
            wire.write();
        }
        assert_eq!(wire.asked(false).map(|asked| asked.serial), Some(2));
        wire.finish();
        assert!(read.join().unwrap() > 3 * LIMIT);
    }
}
