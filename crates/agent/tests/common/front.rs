//! A front end of a stream of events: takes what comes, gives commands, waits for answers.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use vmpi::wire::{Command, CommandWriter, Decoder, Frame, Hello, Item};
use vmpi::{Body, ClassLoad, EnvId, HeapDump, MonitorDump, ObjectAlloc, ObjectHandle, Outcome};

use super::stage::PATIENCE;

/// What the stream has said so far.
#[derive(Default)]
pub(crate) struct Received {
    pub(crate) hello: Hello,
    pub(crate) classes: HashMap<ObjectHandle, ClassLoad>,
    pub(crate) threads: HashMap<EnvId, String>,
    /// Objects that live, by id.
    pub(crate) live: HashMap<u64, ObjectAlloc>,
    /// Objects that were described and are not followed.
    pub(crate) described: HashMap<u64, ObjectAlloc>,
    pub(crate) heap_dump: Option<HeapDump>,
    pub(crate) object_dump: Option<Vec<u8>>,
    pub(crate) monitor_dump: Option<MonitorDump>,
    pub(crate) moves: u64,
    pub(crate) collections: u64,
}

impl Received {
    fn take(&mut self, item: Item) {
        let Item::Event { requested, body } = item else {
            // A birth at the place of one whose end is not known yet is counted as lost.
            let is_allocation = |kind| kind == Some(vmpi::EventKind::ObjectAlloc);
            assert!(
                !matches!(item, Item::Lost { kind, .. } if !is_allocation(kind)),
                "{item:?}"
            );
            return;
        };
        match body {
            Body::ClassLoad(class) => {
                let old = self.classes.insert(class.class, *class);
                assert!(old.is_none() || requested, "{old:?} is told twice");
            }
            Body::ThreadStart(thread) => {
                self.threads.insert(thread.env, thread.name);
            }
            Body::ObjectAlloc(alloc) if requested && alloc.arena.0 == 0 => {
                self.described.insert(alloc.object.0, alloc);
            }
            Body::ObjectAlloc(alloc) => {
                let old = self.live.insert(alloc.object.0, alloc);
                assert!(old.is_none() || requested, "{old:?} and {alloc:?}");
            }
            Body::ObjectMove(one) => {
                self.moves += 1;
                let object = self.live.remove(&one.object.0).expect("a live object");
                assert!(self.live.insert(one.new_object.0, object).is_none());
            }
            Body::ObjectFree { object } => {
                assert!(self.live.remove(&object.0).is_some(), "{object:?}");
            }
            Body::GcFinish(_) => self.collections += 1,
            Body::HeapDump(dump) => self.heap_dump = Some(*dump),
            Body::ObjectDump { data } => self.object_dump = Some(data),
            Body::MonitorDump(dump) => self.monitor_dump = Some(*dump),
            _ => {}
        }
    }
}

/// The front end.
pub(crate) struct Front {
    stream: TcpStream,
    /// What a thread of its own reads, so that the program is never too fast for it.
    bytes: Receiver<Vec<u8>>,
    decoder: Decoder,
    commands: CommandWriter,
    pub(crate) received: Received,
}

impl Front {
    /// Waits for a program to connect.
    pub(crate) fn accept(listener: &TcpListener) -> Self {
        let (stream, _) = listener.accept().expect("a program");
        let mut input = stream.try_clone().expect("the same");
        let (sender, bytes) = channel();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(count @ 1..) = input.read(&mut buffer) {
                if sender.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            stream,
            bytes,
            decoder: Decoder::new(),
            commands: CommandWriter::new(),
            received: Received::default(),
        }
    }

    /// Gives a command without waiting for its answer.
    pub(crate) fn give(&mut self, command: Command) {
        let (_, bytes) = self.commands.command(command);
        self.stream.write_all(&bytes).expect("sent");
    }

    /// All answers that have not been taken, until the program closes the stream; and whether that
    /// has an end.
    pub(crate) fn rest(mut self) -> (Vec<Outcome>, bool) {
        let (mut outcomes, mut is_whole) = (Vec::new(), false);
        loop {
            while let Some(frame) = self.decoder.next_frame().expect("a sound stream") {
                match frame {
                    Frame::Answer(answer) => outcomes.push(answer.outcome),
                    Frame::End => is_whole = true,
                    _ => {}
                }
            }
            match self.bytes.recv_timeout(PATIENCE) {
                Ok(bytes) => self.decoder.push(&bytes),
                Err(RecvTimeoutError::Disconnected) => return (outcomes, is_whole),
                Err(RecvTimeoutError::Timeout) => panic!("the stream does not end"),
            }
        }
    }

    /// Gives a command; what the stream says up to its answer is taken.
    pub(crate) fn ask(&mut self, command: Command) -> Outcome {
        let (serial, bytes) = self.commands.command(command);
        self.stream.write_all(&bytes).expect("sent");
        loop {
            while let Some(frame) = self.decoder.next_frame().expect("a sound stream") {
                match frame {
                    Frame::Hello(hello) => self.received.hello = hello,
                    Frame::Batch(batch) => {
                        for item in batch {
                            self.received.take(item.expect("a sound batch"));
                        }
                    }
                    Frame::Answer(answer) if answer.serial == serial => return answer.outcome,
                    _ => {}
                }
            }
            let bytes = self.bytes.recv_timeout(PATIENCE).expect("bytes");
            self.decoder.push(&bytes);
        }
    }
}
