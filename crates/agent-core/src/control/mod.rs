//! The protocol of the socket `net=host:port`: the commands that a collector may send (facts: section 6), for both
//! sides. It converts between bytes and values; only `timed` reads a socket.

mod decode;
pub mod secret;
mod stream_meter;
pub mod timed;
mod words;

pub use decode::Decoder;
pub use stream_meter::{Form, Progress, StreamMeter};
pub use words::{NoCommand, WORDS};

/// A command of the collector.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// 0x01: collect garbage.
    ForceGc,
    /// 0x02: write a heap dump.
    DumpHeap,
    /// 0x03: write the allocation sites.
    AllocSites {
        /// 1 incremental, 2 sorted by allocation, 4 collect before.
        flags: u16,
        /// Rows below this share are left out.
        cutoff: f32,
    },
    /// 0x04: write the totals of the heap.
    HeapSummary,
    /// 0x05: end the process.
    Exit,
    /// 0x06: write every new trace.
    DumpTraces,
    /// 0x07: write the CPU samples.
    CpuSamples {
        /// Rows below this share are left out.
        cutoff: f32,
    },
    /// 0x08: change what is recorded.
    Control(Switch),
    /// 0xff: no more commands.
    Eof,
    /// An unknown tag.
    Unknown(u8),
}

/// What a control command changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Switch {
    /// 1 and 2: count allocations or not.
    Allocations(bool),
    /// 3 and 4: sample or not.
    Sampling {
        /// On or off.
        on: bool,
        /// Id of a thread object, or a thread serial; all threads when absent (0 in the bytes).
        thread: Option<u64>,
    },
    /// 5: forget the CPU samples.
    ClearSamples,
    /// 6: forget the allocation sites.
    ClearSites,
    /// 7: depth of traces from now on.
    Depth(u16),
    /// New in Tenure, 9 and 10: start to time the contention of monitors from zero, or stop and write it.
    Monitors(bool),
    /// New in Tenure, 8: what is recorded of each class from now on, as lines of [`vmpi::class_options`].
    Classes(String),
    /// New in Tenure, 11 and 12: allow the agent to run the program's code for requests about its objects, or forbid
    /// it.
    OwnCode(bool),
    /// New in Tenure, 13: list the live objects of a class.
    Instances(vmpi::InstanceQuery),
    /// New in Tenure, 14: read how large and how full all live objects are. The answer has the serial of the command as
    /// its number; agents that do not know this switch read it as two bytes.
    Fills(u32),
    /// New in Tenure, 15: write everything that was recorded, and end the recording.
    Stop,
    /// Any other number: no effect.
    Unknown(u16),
}

impl Command {
    /// The bytes a collector sends: tag, serial, length and body, except for the lone tag of
    /// [`Command::Eof`]. Thread ids are four bytes, as the original takes them.
    pub fn encode(&self, serial: u32) -> Vec<u8> {
        let mut body = Vec::new();
        let tag = match self {
            Command::ForceGc => 1,
            Command::DumpHeap => 2,
            Command::AllocSites { flags, cutoff } => {
                body.extend(flags.to_be_bytes());
                body.extend(cutoff.to_be_bytes());
                3
            }
            Command::HeapSummary => 4,
            Command::Exit => 5,
            Command::DumpTraces => 6,
            Command::CpuSamples { cutoff } => {
                body.extend([0, 0]);
                body.extend(cutoff.to_be_bytes());
                7
            }
            Command::Control(switch) => {
                switch.encode(&mut body);
                8
            }
            Command::Eof => return vec![0xff],
            Command::Unknown(tag) => *tag,
        };
        let serial = match self {
            Command::Control(Switch::Fills(number)) => *number,
            _ => serial,
        };
        let mut bytes = vec![tag];
        bytes.extend(serial.to_be_bytes());
        bytes.extend((body.len() as u32).to_be_bytes());
        bytes.extend(body);
        bytes
    }
}

impl Switch {
    fn encode(&self, body: &mut Vec<u8>) {
        let number: u16 = match self {
            Switch::Allocations(on) => 2 - u16::from(*on),
            Switch::Sampling { on, .. } => 4 - u16::from(*on),
            Switch::ClearSamples => 5,
            Switch::ClearSites => 6,
            Switch::Depth(_) => 7,
            Switch::Monitors(on) => 10 - u16::from(*on),
            Switch::OwnCode(on) => 12 - u16::from(*on),
            Switch::Instances(_) => 13,
            Switch::Fills(_) => 14,
            Switch::Stop => 15,
            Switch::Classes(_) => 8,
            Switch::Unknown(number) => *number,
        };
        body.extend(number.to_be_bytes());
        match self {
            Switch::Sampling { thread, .. } => {
                body.extend((thread.unwrap_or(0) as u32).to_be_bytes());
            }
            Switch::Depth(depth) => body.extend(depth.to_be_bytes()),
            Switch::Classes(text) => put_text(body, text),
            Switch::Instances(query) => put_text(body, &query.to_string()),
            _ => {}
        }
    }
}

fn put_text(body: &mut Vec<u8>, text: &str) {
    body.extend((text.len() as u32).to_be_bytes());
    body.extend(text.as_bytes());
}
