//! The top-level records, borrowed from the file, and their encoding.

use crate::tag::record_name;
use crate::{Cursor, FileOffset, IdSize, ObjectId, RecordTag, Serial};

/// A top-level record as in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawRecord<'a> {
    /// Offset of the tag.
    pub at: FileOffset,
    /// The tag byte.
    pub tag: u8,
    /// Microseconds since the header's time stamp.
    pub time_us: u32,
    /// The length word of the file. `body` may be shorter (truncated file) or, if the word overflowed and was
    /// repaired, longer.
    pub length: u32,
    /// The body.
    pub body: &'a [u8],
}

/// Bytes of a record before its body: tag, time, length.
pub const RECORD_HEAD: u64 = 9;

/// STACK FRAME.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Frame id.
    pub id: ObjectId,
    /// Method name.
    pub method: ObjectId,
    /// Method signature.
    pub signature: ObjectId,
    /// Source file name.
    pub source: ObjectId,
    /// Serial of the class.
    pub class: Serial,
    /// Line number; 0 none, -1 unknown, -2 compiled, -3 native.
    pub line: i32,
}

/// One row of ALLOC SITES.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AllocSite {
    /// 0 for no array, else the element type.
    pub array: u8,
    /// Serial of the class.
    pub class: Serial,
    /// Serial of the trace.
    pub trace: Serial,
    /// Live bytes.
    pub live_bytes: u32,
    /// Live instances.
    pub live_instances: u32,
    /// Bytes allocated.
    pub bytes: u32,
    /// Instances allocated.
    pub instances: u32,
}

/// The decoded body of a top-level record that is not a heap dump.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Record<'a> {
    /// STRING IN UTF8.
    Utf8 {
        /// Its id.
        id: ObjectId,
        /// Modified UTF-8.
        bytes: &'a [u8],
    },
    /// LOAD CLASS.
    LoadClass {
        /// Class serial.
        serial: Serial,
        /// Class object.
        class: ObjectId,
        /// Trace of the load.
        trace: Serial,
        /// Name.
        name: ObjectId,
    },
    /// UNLOAD CLASS.
    UnloadClass {
        /// Class serial.
        serial: Serial,
    },
    /// STACK FRAME.
    Frame(Frame),
    /// STACK TRACE.
    Trace {
        /// Trace serial.
        serial: Serial,
        /// Thread serial.
        thread: Serial,
        /// The frame ids that are in the record, innermost first.
        frames: Vec<ObjectId>,
    },
    /// ALLOC SITES.
    AllocSites {
        /// Flags.
        flags: u16,
        /// Cutoff ratio.
        cutoff: f32,
        /// Total live bytes.
        live_bytes: u32,
        /// Total live instances.
        live_instances: u32,
        /// Total bytes allocated.
        bytes: u64,
        /// Total instances allocated.
        instances: u64,
        /// The rows.
        sites: Vec<AllocSite>,
    },
    /// HEAP SUMMARY.
    HeapSummary {
        /// Live bytes.
        live_bytes: u32,
        /// Live instances.
        live_instances: u32,
        /// Bytes allocated.
        bytes: u64,
        /// Instances allocated.
        instances: u64,
    },
    /// START THREAD.
    StartThread {
        /// Thread serial.
        thread: Serial,
        /// Thread object.
        object: ObjectId,
        /// Trace serial.
        trace: Serial,
        /// Thread name.
        name: ObjectId,
        /// Group name.
        group: ObjectId,
        /// Parent group name.
        parent_group: ObjectId,
    },
    /// END THREAD.
    EndThread {
        /// Thread serial.
        thread: Serial,
    },
    /// CPU SAMPLES.
    CpuSamples {
        /// Total number of samples.
        total: u32,
        /// Samples and trace serial.
        samples: Vec<(u32, Serial)>,
    },
    /// CONTROL SETTINGS.
    ControlSettings {
        /// Flags.
        flags: u32,
        /// Stack trace depth.
        depth: u16,
    },
    /// HEAP DUMP END.
    HeapDumpEnd,
}

impl<'a> RawRecord<'a> {
    /// The tag, if the format has it.
    pub fn known_tag(&self) -> Option<RecordTag> {
        RecordTag::from_u8(self.tag)
    }

    /// Name of the tag, or `0x77` for a private or unknown one.
    pub fn name(&self) -> String {
        record_name(self.tag)
    }

    /// Decodes the body. `None` for heap dumps, private and unknown tags, and bodies that are too short. Counted tables
    /// end at the end of the body, even if their count is larger.
    pub fn decode(&self, ids: IdSize) -> Option<Record<'a>> {
        let mut c = Cursor::new(self.body, ids);
        Some(match self.known_tag()? {
            RecordTag::Utf8 => Record::Utf8 {
                id: c.id()?,
                bytes: c.rest(),
            },
            RecordTag::LoadClass => Record::LoadClass {
                serial: Serial(c.u4()?),
                class: c.id()?,
                trace: Serial(c.u4()?),
                name: c.id()?,
            },
            RecordTag::UnloadClass => Record::UnloadClass {
                serial: Serial(c.u4()?),
            },
            RecordTag::Frame => Record::Frame(Frame {
                id: c.id()?,
                method: c.id()?,
                signature: c.id()?,
                source: c.id()?,
                class: Serial(c.u4()?),
                line: c.u4()? as i32,
            }),
            RecordTag::Trace => {
                let (serial, thread, count) = (Serial(c.u4()?), Serial(c.u4()?), c.u4()?);
                let frames = (0..count).map_while(|_| c.id()).collect();
                Record::Trace {
                    serial,
                    thread,
                    frames,
                }
            }
            RecordTag::AllocSites => alloc_sites(&mut c)?,
            RecordTag::HeapSummary => Record::HeapSummary {
                live_bytes: c.u4()?,
                live_instances: c.u4()?,
                bytes: c.u8()?,
                instances: c.u8()?,
            },
            RecordTag::StartThread => Record::StartThread {
                thread: Serial(c.u4()?),
                object: c.id()?,
                trace: Serial(c.u4()?),
                name: c.id()?,
                group: c.id()?,
                parent_group: c.id()?,
            },
            RecordTag::EndThread => Record::EndThread {
                thread: Serial(c.u4()?),
            },
            RecordTag::CpuSamples => {
                let (total, count) = (c.u4()?, c.u4()?);
                let samples = (0..count)
                    .map_while(|_| Some((c.u4()?, Serial(c.u4()?))))
                    .collect();
                Record::CpuSamples { total, samples }
            }
            RecordTag::ControlSettings => Record::ControlSettings {
                flags: c.u4()?,
                depth: c.u2()?,
            },
            RecordTag::HeapDumpEnd => Record::HeapDumpEnd,
            RecordTag::HeapDump | RecordTag::HeapDumpSegment => return None,
        })
    }
}

fn alloc_sites<'a>(c: &mut Cursor<'a>) -> Option<Record<'a>> {
    let flags = c.u2()?;
    let cutoff = f32::from_bits(c.u4()?);
    let (live_bytes, live_instances) = (c.u4()?, c.u4()?);
    let (bytes, instances, count) = (c.u8()?, c.u8()?, c.u4()?);
    let mut row = || {
        Some(AllocSite {
            array: c.u1()?,
            class: Serial(c.u4()?),
            trace: Serial(c.u4()?),
            live_bytes: c.u4()?,
            live_instances: c.u4()?,
            bytes: c.u4()?,
            instances: c.u4()?,
        })
    };
    let sites = (0..count).map_while(|_| row()).collect();
    Some(Record::AllocSites {
        flags,
        cutoff,
        live_bytes,
        live_instances,
        bytes,
        instances,
        sites,
    })
}

/// True when a body of `length` bytes is possible for this tag.
pub(crate) fn length_is_possible(tag: RecordTag, length: u64, ids: IdSize) -> bool {
    let w = ids.bytes() as u64;
    match tag {
        RecordTag::Utf8 => length >= w && length < 1 << 28,
        RecordTag::LoadClass => length == 8 + 2 * w,
        RecordTag::UnloadClass | RecordTag::EndThread => length == 4,
        RecordTag::Frame => length == 8 + 4 * w,
        RecordTag::Trace => length >= 12 && (length - 12).is_multiple_of(w) && length < 1 << 24,
        RecordTag::AllocSites => length >= 34 && (length - 34).is_multiple_of(25),
        RecordTag::HeapSummary => length == 24,
        RecordTag::StartThread => length == 8 + 4 * w,
        RecordTag::CpuSamples => length >= 8 && (length - 8).is_multiple_of(8),
        RecordTag::ControlSettings => length == 6,
        RecordTag::HeapDumpEnd => length == 0,
        RecordTag::HeapDump | RecordTag::HeapDumpSegment => true,
    }
}
