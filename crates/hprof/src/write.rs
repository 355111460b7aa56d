//! Encodes records. A record that was read is written unchanged, byte for byte.

use crate::{
    ClassDump, Header, HeapTag, IdSize, ObjectId, RawRecord, Record, RecordTag, Root, SubRecord,
    Table,
};
use std::io::{self, Write};

/// Writes a dump: the header first, then records. [`encode_sub_record`](Writer::encode_sub_record) collects
/// sub-records in a buffer of the caller, which becomes the body of a segment, because a record's length precedes its
/// body.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    ids: IdSize,
}

impl<W: Write> Writer<W> {
    /// Writes the header.
    ///
    /// # Errors
    /// When the output returns one.
    pub fn new(mut out: W, header: &Header) -> io::Result<Writer<W>> {
        out.write_all(&header.to_bytes())?;
        Ok(Writer {
            out,
            ids: header.id_size,
        })
    }

    /// The output, to flush it or to write other bytes between two records.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }

    /// Returns the output.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Writes a record exactly as it was read, unknown tags included.
    ///
    /// # Errors
    /// When the output returns one.
    pub fn raw(&mut self, record: &RawRecord<'_>) -> io::Result<()> {
        self.frame(record.tag, record.time_us, record.body)
    }

    /// Writes a decoded record, `time_us` microseconds after the time stamp of the header.
    ///
    /// # Errors
    /// When the output returns one.
    pub fn record(&mut self, time_us: u32, record: &Record<'_>) -> io::Result<()> {
        let mut body = Vec::new();
        let tag = encode_record(record, self.ids, &mut body);
        self.frame(tag as u8, time_us, &body)
    }

    /// Writes a heap dump or segment with this body, `time_us` microseconds after the time stamp of the header.
    ///
    /// # Errors
    /// When the output returns one.
    pub fn heap(&mut self, tag: RecordTag, time_us: u32, body: &[u8]) -> io::Result<()> {
        self.frame(tag as u8, time_us, body)
    }

    fn frame(&mut self, tag: u8, time_us: u32, body: &[u8]) -> io::Result<()> {
        self.out.write_all(&[tag])?;
        self.out.write_all(&time_us.to_be_bytes())?;
        // A body over 4 GiB has its length modulo 2^32, as the JVM writes it.
        self.out.write_all(&(body.len() as u32).to_be_bytes())?;
        self.out.write_all(body)
    }

    /// Appends a sub-record to a segment body.
    pub fn encode_sub_record(&self, record: &SubRecord<'_>, body: &mut Vec<u8>) {
        encode_sub_record(record, self.ids, body);
    }
}

/// Appends an id.
pub(crate) fn push_id(body: &mut Vec<u8>, id: crate::ObjectId, ids: IdSize) {
    Out { body, ids }.id(id);
}

struct Out<'b> {
    body: &'b mut Vec<u8>,
    ids: IdSize,
}

impl Out<'_> {
    fn u1(&mut self, v: u8) {
        self.body.push(v);
    }
    fn u2(&mut self, v: u16) {
        self.body.extend(v.to_be_bytes());
    }
    fn u4(&mut self, v: u32) {
        self.body.extend(v.to_be_bytes());
    }
    fn u8(&mut self, v: u64) {
        self.body.extend(v.to_be_bytes());
    }
    fn id(&mut self, v: ObjectId) {
        match self.ids {
            IdSize::Four => self.u4(v.0 as u32),
            IdSize::Eight => self.u8(v.0),
        }
    }
    fn bytes(&mut self, v: &[u8]) {
        self.body.extend_from_slice(v);
    }
    fn table(&mut self, table: &Table<'_>) {
        self.u2(table.len);
        self.bytes(table.bytes);
    }
}

/// Appends the body of a record; returns its tag.
pub fn encode_record(record: &Record<'_>, ids: IdSize, body: &mut Vec<u8>) -> RecordTag {
    let mut o = Out { body, ids };
    match record {
        Record::Utf8 { id, bytes } => {
            o.id(*id);
            o.bytes(bytes);
            RecordTag::Utf8
        }
        Record::LoadClass {
            serial,
            class,
            trace,
            name,
        } => {
            o.u4(serial.0);
            o.id(*class);
            o.u4(trace.0);
            o.id(*name);
            RecordTag::LoadClass
        }
        Record::UnloadClass { serial } => {
            o.u4(serial.0);
            RecordTag::UnloadClass
        }
        Record::Frame(f) => {
            for id in [f.id, f.method, f.signature, f.source] {
                o.id(id);
            }
            o.u4(f.class.0);
            o.u4(f.line as u32);
            RecordTag::Frame
        }
        Record::Trace {
            serial,
            thread,
            frames,
        } => {
            o.u4(serial.0);
            o.u4(thread.0);
            o.u4(frames.len() as u32);
            frames.iter().for_each(|f| o.id(*f));
            RecordTag::Trace
        }
        Record::StartThread {
            thread,
            object,
            trace,
            name,
            group,
            parent_group,
        } => {
            o.u4(thread.0);
            o.id(*object);
            o.u4(trace.0);
            for id in [name, group, parent_group] {
                o.id(*id);
            }
            RecordTag::StartThread
        }
        Record::EndThread { thread } => {
            o.u4(thread.0);
            RecordTag::EndThread
        }
        Record::HeapDumpEnd => RecordTag::HeapDumpEnd,
        totals => encode_totals(totals, &mut o),
    }
}

fn encode_totals(record: &Record<'_>, o: &mut Out<'_>) -> RecordTag {
    match record {
        Record::AllocSites {
            flags,
            cutoff,
            live_bytes,
            live_instances,
            bytes,
            instances,
            sites,
        } => {
            o.u2(*flags);
            o.u4(cutoff.to_bits());
            o.u4(*live_bytes);
            o.u4(*live_instances);
            o.u8(*bytes);
            o.u8(*instances);
            o.u4(sites.len() as u32);
            for s in sites {
                o.u1(s.array);
                for v in [
                    s.class.0,
                    s.trace.0,
                    s.live_bytes,
                    s.live_instances,
                    s.bytes,
                    s.instances,
                ] {
                    o.u4(v);
                }
            }
            RecordTag::AllocSites
        }
        Record::HeapSummary {
            live_bytes,
            live_instances,
            bytes,
            instances,
        } => {
            o.u4(*live_bytes);
            o.u4(*live_instances);
            o.u8(*bytes);
            o.u8(*instances);
            RecordTag::HeapSummary
        }
        Record::CpuSamples { total, samples } => {
            o.u4(*total);
            o.u4(samples.len() as u32);
            for (count, trace) in samples {
                o.u4(*count);
                o.u4(trace.0);
            }
            RecordTag::CpuSamples
        }
        Record::ControlSettings { flags, depth } => {
            o.u4(*flags);
            o.u2(*depth);
            RecordTag::ControlSettings
        }
        _ => RecordTag::HeapDumpEnd,
    }
}

/// Appends a sub-record to a segment body, tag first.
pub fn encode_sub_record(record: &SubRecord<'_>, ids: IdSize, body: &mut Vec<u8>) {
    let mut o = Out { body, ids };
    match record {
        SubRecord::Root(root) => encode_root(root, &mut o),
        SubRecord::Class(class) => encode_class(class, &mut o),
        SubRecord::Instance(i) => {
            o.u1(HeapTag::InstanceDump as u8);
            o.id(i.id);
            o.u4(i.trace.0);
            o.id(i.class);
            o.u4(i.fields.len() as u32);
            o.bytes(i.fields);
        }
        SubRecord::ObjectArray(a) => {
            o.u1(HeapTag::ObjectArrayDump as u8);
            o.id(a.id);
            o.u4(a.trace.0);
            o.u4(a.len);
            o.id(a.class);
            o.bytes(a.elements);
        }
        SubRecord::PrimitiveArray(a) => {
            let tag = if a.has_data {
                HeapTag::PrimitiveArrayDump
            } else {
                HeapTag::PrimitiveArrayNoData
            };
            o.u1(tag as u8);
            o.id(a.id);
            o.u4(a.trace.0);
            o.u4(a.len);
            o.u1(a.element as u8);
            o.bytes(a.data);
        }
        SubRecord::HeapInfo { heap, name } => {
            o.u1(HeapTag::HeapDumpInfo as u8);
            o.u4(*heap);
            o.id(*name);
        }
    }
}

fn encode_root(root: &Root, o: &mut Out<'_>) {
    o.u1(root.kind as u8);
    o.id(root.object);
    match (root.kind, root.kind.root_extra(o.ids.bytes())) {
        (HeapTag::RootJniGlobal, _) => o.id(root.reference),
        (_, 8) => {
            o.u4(root.thread.0);
            o.u4(root.frame);
        }
        (_, 4) => o.u4(root.thread.0),
        _ => {}
    }
}

fn encode_class(class: &ClassDump<'_>, o: &mut Out<'_>) {
    o.u1(HeapTag::ClassDump as u8);
    o.id(class.id);
    o.u4(class.trace.0);
    for id in [class.super_class, class.loader, class.signers, class.domain] {
        o.id(id);
    }
    for id in class.reserved {
        o.id(id);
    }
    o.u4(class.instance_size);
    for table in [&class.constants, &class.statics, &class.fields] {
        o.table(table);
    }
}
