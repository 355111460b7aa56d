//! From messages of the program's threads to bytes on the wire, on a thread of its
//! own. A reader that stops costs events, which are counted, and never time.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use vmpi::wire::{Answer, ArenaState, CommandReader, Encoder, Hello, Item, Numbered};
use vmpi::{Body, EnvId, EventKind, Switches};

/// Bytes that may wait for the reader before events are dropped.
const LIMIT: usize = 8 << 20;
/// Commands carried out before the program's events have their turn again.
const AT_ONCE: usize = 64;
/// At the end, a reader that takes nothing for so long is not waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Where a recording goes.
#[derive(Debug)]
pub enum Sink {
    /// To a file.
    File(File),
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
#[derive(Debug)]
pub(crate) struct Stream {
    encoder: Encoder,
    sink: Sink,
    /// Taken from the encoder, and how much of it is written.
    pending: (Vec<u8>, usize),
    is_broken: bool,
    /// The way back, as long as it makes sense.
    commands: Option<CommandReader>,
    /// What the front end has.
    switches: Switches,
    started: Instant,
    now: u64,
    /// The id of the object whose birth was put down last.
    pub(crate) last_birth: u64,
}

impl Stream {
    pub(crate) fn new(hello: &Hello, sink: Sink, started: Instant) -> Self {
        let is_broken = sink.prepare().is_err();
        Self {
            encoder: Encoder::with_limit(hello, LIMIT),
            sink,
            pending: (Vec::new(), 0),
            is_broken,
            commands: Some(CommandReader::new()),
            switches: Switches::all(),
            started,
            now: 0,
            last_birth: 0,
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

    /// Has an event told or left out from now on.
    pub(crate) fn switch(&mut self, kind: EventKind, on: bool) {
        // Dumps cannot be switched, and are told nowhere but on request.
        let _ = self.switches.set(kind, on);
    }

    /// Answers a command; what it yielded has been put down.
    pub(crate) fn answer(&mut self, answer: Answer) {
        self.encoder.answer(answer);
    }

    /// What the front end has asked since the last time. Bytes that are no commands end
    /// the way back, not the stream.
    pub(crate) fn asked(&mut self) -> Vec<Numbered> {
        let mut asked = Vec::new();
        let mut bytes = [0; 512];
        while let Some(commands) = self.commands.as_mut().filter(|_| asked.len() < AT_ONCE) {
            match commands.next_command() {
                Ok(Some(command)) => asked.push(command),
                Ok(None) => match self.sink.read(&mut bytes) {
                    Ok(count) if count > 0 => commands.push(&bytes[..count]),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return asked,
                    Ok(_) | Err(_) => self.commands = None,
                },
                Err(_) => self.commands = None,
            }
        }
        asked
    }

    /// How full the arenas are.
    pub(crate) fn states(&mut self, at: Instant, states: &[ArenaState]) {
        for state in states {
            self.item(at, EnvId(0), &Item::ArenaState(*state));
        }
    }

    /// Objects that were not followed for want of room.
    pub(crate) fn lost(&mut self, at: Instant, count: u64) {
        if count > 0 {
            let kind = Some(EventKind::ObjectAlloc);
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
                Ok(0) => self.is_broken = true,
                Ok(count) => {
                    self.pending.1 += count;
                    any = true;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return any,
                Err(_) => self.is_broken = true,
            }
        }
    }

    /// Whether the reader has been given everything so far.
    fn is_through(&self) -> bool {
        self.pending.1 == self.pending.0.len() && self.encoder.waiting() == 0
    }

    /// Ends the recording. The reader gets what is left as long as it reads.
    pub(crate) fn finish(mut self) {
        let mut last = Instant::now();
        while !self.is_through() && last.elapsed() < PATIENCE {
            if self.write() {
                last = Instant::now();
            } else {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let mut rest = self.pending.0.split_off(self.pending.1);
        rest.extend(self.encoder.finish());
        let mut done = 0;
        while done < rest.len() && !self.is_broken && last.elapsed() < PATIENCE {
            match self.sink.write(&rest[done..]) {
                Ok(count) if count > 0 => {
                    done += count;
                    last = Instant::now();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                _ => self.is_broken = true,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;
    use vmpi::ObjectHandle;
    use vmpi::wire::{Frame, read_all};

    #[test]
    fn a_reader_that_stops_costs_counted_events_and_no_time() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut reader, _) = listener.accept().unwrap();
        let started = Instant::now();
        let mut wire = Stream::new(&Hello::default(), Sink::Socket(stream), started);
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
}
