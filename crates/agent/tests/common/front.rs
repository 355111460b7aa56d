//! A front end of a stream of events: takes what comes, gives commands, waits for answers.

use std::collections::HashMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

use vmpi::wire::{Command, CommandWriter, Decoder, Frame, Hello, Item};
use vmpi::{Body, ClassLoad, EnvId, HeapDump, MonitorDump, ObjectAlloc, ObjectHandle, Outcome};

use super::stage::PATIENCE;

/// What the stream has said so far.
#[derive(Default)]
pub(crate) struct Told {
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

impl Told {
    fn take(&mut self, item: Item) {
        let Item::Event { requested, body } = item else {
            assert!(!matches!(item, Item::Lost { .. }), "{item:?}");
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
    decoder: Decoder,
    commands: CommandWriter,
    pub(crate) told: Told,
}

impl Front {
    /// Waits for a program to connect.
    pub(crate) fn accept(listener: &TcpListener) -> Self {
        let (stream, _) = listener.accept().expect("a program");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        Self {
            stream,
            decoder: Decoder::new(),
            commands: CommandWriter::new(),
            told: Told::default(),
        }
    }

    /// Gives a command; what the stream says up to its answer is taken.
    pub(crate) fn ask(&mut self, command: Command) -> Outcome {
        let (serial, bytes) = self.commands.command(command);
        self.stream.write_all(&bytes).expect("sent");
        let mut buffer = vec![0; 1 << 16];
        loop {
            while let Some(frame) = self.decoder.next_frame().expect("a sound stream") {
                match frame {
                    Frame::Hello(hello) => self.told.hello = hello,
                    Frame::Batch(batch) => {
                        for item in batch {
                            self.told.take(item.expect("a sound batch"));
                        }
                    }
                    Frame::Answer(answer) if answer.serial == serial => return answer.outcome,
                    _ => {}
                }
            }
            let count = loop {
                match self.stream.read(&mut buffer) {
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    other => break other.expect("bytes"),
                }
            };
            assert!(count > 0, "the program has ended");
            self.decoder.push(&buffer[..count]);
        }
    }
}
