//! Top-level records, one method each, byte for byte as the format text lists them.

use super::bytes::{Bytes, IdSize, count};
use super::segment::Segment;

/// The version string of a file. Nothing else follows from it: 1.0.1 files with 8-byte ids exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// `JAVA PROFILE 1.0.1`: one HEAP DUMP record.
    V101,
    /// `JAVA PROFILE 1.0.2`: segments.
    V102,
    /// `JAVA PROFILE 1.0.3`: ART.
    V103,
}

impl Version {
    /// All three.
    pub const ALL: [Version; 3] = [Version::V101, Version::V102, Version::V103];

    /// The string at the start of the file, without its NUL.
    pub const fn text(self) -> &'static str {
        match self {
            Version::V101 => "JAVA PROFILE 1.0.1",
            Version::V102 => "JAVA PROFILE 1.0.2",
            Version::V103 => "JAVA PROFILE 1.0.3",
        }
    }
}

/// Fields of a STACK FRAME record.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frame {
    /// Frame id.
    pub id: u64,
    /// Method name string id.
    pub method: u64,
    /// Method signature string id.
    pub signature: u64,
    /// Source file string id.
    pub source: u64,
    /// Class serial number.
    pub class_serial: u32,
    /// Line number; 0 none, -1 unknown, -2 compiled, -3 native.
    pub line: i32,
}

/// Live and allocated totals of HEAP SUMMARY and ALLOC SITES.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Total live bytes.
    pub live_bytes: u32,
    /// Total live instances.
    pub live_instances: u32,
    /// Total bytes allocated.
    pub allocated_bytes: u64,
    /// Total instances allocated.
    pub allocated_instances: u64,
}

/// One row of ALLOC SITES.
#[derive(Clone, Copy, Debug, Default)]
pub struct Site {
    /// 0 for an object, else the element type of the array.
    pub array: u8,
    /// Class serial number.
    pub class_serial: u32,
    /// Stack trace serial number.
    pub trace: u32,
    /// Live bytes.
    pub live_bytes: u32,
    /// Live instances.
    pub live_instances: u32,
    /// Bytes allocated.
    pub allocated_bytes: u32,
    /// Instances allocated.
    pub allocated_instances: u32,
}

/// Fields of a START THREAD record.
#[derive(Clone, Copy, Debug, Default)]
pub struct StartThread {
    /// Thread serial number.
    pub serial: u32,
    /// Thread object id.
    pub object: u64,
    /// Stack trace serial number.
    pub trace: u32,
    /// Thread name string id.
    pub name: u64,
    /// Thread group name string id.
    pub group: u64,
    /// Parent group name string id.
    pub parent_group: u64,
}

/// The bytes of a dump under construction: a header and the records so far.
#[derive(Clone, Debug)]
pub struct Dump {
    bytes: Bytes,
    time: u32,
}

impl Dump {
    /// A file of one of the three versions, timestamp 0.
    pub fn new(version: Version, id_size: IdSize) -> Self {
        Self::with_header(
            version.text().as_bytes(),
            id_size,
            id_size.bytes() as u32,
            0,
        )
    }

    /// A header of any content; `id_size` is what is written afterwards, `claimed` what the header says.
    pub fn with_header(version: &[u8], id_size: IdSize, claimed: u32, timestamp_ms: u64) -> Self {
        let mut bytes = Bytes::new(id_size);
        bytes.raw(version).u1(0).u4(claimed).u8(timestamp_ms);
        Dump { bytes, time: 0 }
    }

    /// The id width of this file.
    pub fn id_size(&self) -> IdSize {
        self.bytes.id_size
    }

    /// Microseconds since the header's timestamp, written into the records that follow.
    pub fn at(&mut self, time: u32) -> &mut Self {
        self.time = time;
        self
    }

    /// Bytes so far: the offset of the next record.
    pub fn len(&self) -> usize {
        self.bytes.data.len()
    }

    /// Never true: a dump starts with its header.
    pub fn is_empty(&self) -> bool {
        self.bytes.data.is_empty()
    }

    /// The file.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes.data
    }

    /// A record of any tag and body.
    pub fn record(&mut self, tag: u8, body: &[u8]) -> &mut Self {
        self.record_claiming(tag, count(body.len()), body)
    }

    /// A record whose length field says something else than its body.
    pub fn record_claiming(&mut self, tag: u8, length: u32, body: &[u8]) -> &mut Self {
        self.bytes.u1(tag).u4(self.time).u4(length).raw(body);
        self
    }

    /// Bytes outside any record.
    pub fn raw(&mut self, data: &[u8]) -> &mut Self {
        self.bytes.raw(data);
        self
    }

    fn build(&mut self, tag: u8, fill: impl FnOnce(&mut Bytes)) -> &mut Self {
        let mut body = Bytes::new(self.bytes.id_size);
        fill(&mut body);
        self.record(tag, &body.data)
    }

    /// 0x01 STRING IN UTF8.
    pub fn utf8(&mut self, id: u64, text: &[u8]) -> &mut Self {
        self.build(0x01, |b| {
            b.id(id).raw(text);
        })
    }

    /// 0x02 LOAD CLASS.
    pub fn load_class(&mut self, serial: u32, class: u64, trace: u32, name: u64) -> &mut Self {
        self.build(0x02, |b| {
            b.u4(serial).id(class).u4(trace).id(name);
        })
    }

    /// 0x03 UNLOAD CLASS.
    pub fn unload_class(&mut self, serial: u32) -> &mut Self {
        self.build(0x03, |b| {
            b.u4(serial);
        })
    }

    /// 0x04 STACK FRAME.
    pub fn frame(&mut self, f: Frame) -> &mut Self {
        self.build(0x04, |b| {
            b.id(f.id).id(f.method).id(f.signature).id(f.source);
            b.u4(f.class_serial).u4(f.line as u32);
        })
    }

    /// 0x05 STACK TRACE.
    pub fn trace(&mut self, serial: u32, thread: u32, frames: &[u64]) -> &mut Self {
        self.build(0x05, |b| {
            b.u4(serial).u4(thread).u4(count(frames.len()));
            for f in frames {
                b.id(*f);
            }
        })
    }

    /// 0x06 ALLOC SITES.
    pub fn alloc_sites(&mut self, flags: u16, cutoff: f32, t: Totals, sites: &[Site]) -> &mut Self {
        self.build(0x06, |b| {
            b.u2(flags)
                .u4(cutoff.to_bits())
                .u4(t.live_bytes)
                .u4(t.live_instances);
            b.u8(t.allocated_bytes).u8(t.allocated_instances);
            b.u4(count(sites.len()));
            for s in sites {
                b.u1(s.array).u4(s.class_serial).u4(s.trace);
                b.u4(s.live_bytes).u4(s.live_instances);
                b.u4(s.allocated_bytes).u4(s.allocated_instances);
            }
        })
    }

    /// 0x07 HEAP SUMMARY.
    pub fn heap_summary(&mut self, t: Totals) -> &mut Self {
        self.build(0x07, |b| {
            b.u4(t.live_bytes).u4(t.live_instances);
            b.u8(t.allocated_bytes).u8(t.allocated_instances);
        })
    }

    /// 0x0A START THREAD.
    pub fn start_thread(&mut self, t: StartThread) -> &mut Self {
        self.build(0x0a, |b| {
            b.u4(t.serial).id(t.object).u4(t.trace);
            b.id(t.name).id(t.group).id(t.parent_group);
        })
    }

    /// 0x0B END THREAD.
    pub fn end_thread(&mut self, serial: u32) -> &mut Self {
        self.build(0x0b, |b| {
            b.u4(serial);
        })
    }

    /// 0x0C HEAP DUMP: a whole heap in one record.
    pub fn heap_dump(&mut self, body: Segment) -> &mut Self {
        self.record(0x0c, &body.into_bytes())
    }

    /// 0x0D CPU SAMPLES; each row is samples and trace serial.
    pub fn cpu_samples(&mut self, total: u32, rows: &[(u32, u32)]) -> &mut Self {
        self.build(0x0d, |b| {
            b.u4(total).u4(count(rows.len()));
            for (samples, trace) in rows {
                b.u4(*samples).u4(*trace);
            }
        })
    }

    /// 0x0E CONTROL SETTINGS.
    pub fn control_settings(&mut self, flags: u32, depth: u16) -> &mut Self {
        self.build(0x0e, |b| {
            b.u4(flags).u2(depth);
        })
    }

    /// 0x1C HEAP DUMP SEGMENT.
    pub fn segment(&mut self, body: Segment) -> &mut Self {
        self.record(0x1c, &body.into_bytes())
    }

    /// 0x2C HEAP DUMP END.
    pub fn heap_end(&mut self) -> &mut Self {
        self.record(0x2c, &[])
    }
}
