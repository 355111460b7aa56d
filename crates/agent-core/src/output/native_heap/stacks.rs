//! Thread stacks of the VM's dump.

use super::Translation;
use crate::ids::{thread_serial, trace_serial};
use hprof::{Frame, ObjectId, Record, Serial};
use rustc_hash::FxHashMap;
use vmpi::{ThreadId, TraceId};

/// The first frame id and the first trace serial of the VM's dumper.
const FRAMES: u64 = 0x7800_0000;
const TRACES: u32 = 0x4000_0000;

/// FRAME and TRACE records of the VM's dump.
#[derive(Default)]
pub(super) struct Stacks {
    frames: FxHashMap<u64, Frame>,
    traces: FxHashMap<u32, Vec<ObjectId>>,
}

impl Stacks {
    pub(super) fn frame(&mut self, frame: Frame) {
        self.frames.insert(frame.id.0, frame);
    }

    pub(super) fn trace(&mut self, serial: Serial, frames: Vec<ObjectId>) {
        self.traces.insert(serial.0, frames);
    }
}

impl Translation<'_, '_, '_> {
    /// Writes the complete stack of a thread, because references from its frames contain positions in it. Returns its
    /// serial.
    pub(super) fn thread_stack(&mut self, thread: ThreadId, serial: u32) -> Serial {
        let top = self.top;
        let Some(frames) = top.stacks.traces.get(&serial).filter(|f| !f.is_empty()) else {
            return trace_serial(TraceId::EMPTY);
        };
        let mut written = Vec::with_capacity(frames.len());
        for frame in frames.iter().filter_map(|id| top.stacks.frames.get(&id.0)) {
            let address = top.serials.get(&frame.class.0).copied().unwrap_or_default();
            let class = self.load(address);
            let (out, vm) = (&mut *self.to.out, self.to.context.vm);
            let id = ObjectId(FRAMES + u64::from(out.taken.next_frame()));
            let record = Record::Frame(Frame {
                id,
                method: out.name(vm, &top.name(frame.method)),
                signature: out.name(vm, &top.name(frame.signature)),
                source: out.name(vm, &top.name(frame.source)),
                class,
                line: frame.line,
            });
            out.put(vm, &record);
            written.push(id);
        }
        let (out, vm) = (&mut *self.to.out, self.to.context.vm);
        let serial = Serial(TRACES + out.taken.next_trace());
        let record = Record::Trace {
            serial,
            thread: thread_serial(thread),
            frames: written,
        };
        out.put(vm, &record);
        serial
    }
}
