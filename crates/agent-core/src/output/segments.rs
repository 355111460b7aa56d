//! Heap segments under construction. The record of a name is written before the segment that uses it first.

use super::Context;
use super::binary::BinaryOutput;
use crate::ids::thread_serial;
use hprof::{HeapTag, IdSize, ObjectId, RecordTag};
use vmpi::ThreadId;

/// A segment is written when it is this long.
const SEGMENT: usize = 1 << 20;
/// A 1.0.1 dump is one record up to this length; a longer one falls back to segments, which every
/// reader of 1.0.1 in use understands.
const ONE_RECORD: usize = 128 << 20;

/// The body of a dump.
pub(super) struct Segments<'a, 'c> {
    pub(super) out: &'a mut BinaryOutput,
    pub(super) context: &'a mut Context<'c>,
    pub(super) body: Vec<u8>,
    limit: usize,
    written: u32,
    references: u64,
}

impl<'a, 'c> Segments<'a, 'c> {
    pub(super) fn new(out: &'a mut BinaryOutput, context: &'a mut Context<'c>) -> Self {
        let limit = if out.one_record { ONE_RECORD } else { SEGMENT };
        Segments {
            out,
            context,
            body: Vec::with_capacity(SEGMENT + (64 << 10)),
            limit,
            written: 0,
            references: 0,
        }
    }

    /// Begins a sub-record.
    pub(super) fn tag(&mut self, tag: HeapTag) {
        if self.body.len() >= self.limit {
            self.write(RecordTag::HeapDumpSegment);
            self.limit = SEGMENT;
        }
        self.body.push(tag as u8);
    }

    pub(super) fn u2(&mut self, number: usize) {
        self.body
            .extend(u16::try_from(number).unwrap_or(u16::MAX).to_be_bytes());
    }

    pub(super) fn u4(&mut self, number: u32) {
        self.body.extend(number.to_be_bytes());
    }

    pub(super) fn raw_id(&mut self, id: u64) {
        match self.out.ids.size {
            IdSize::Four => self.body.extend((id as u32).to_be_bytes()),
            IdSize::Eight => self.body.extend(id.to_be_bytes()),
        }
    }

    /// Writes the id of a JNI global reference; each dump numbers them from the start.
    pub(super) fn next_reference(&mut self) {
        self.references += 1;
        self.raw_id(self.references);
    }

    /// As [`Self::next_reference`], but with the VM's own id if ids are wide enough for it.
    pub(super) fn reference(&mut self, id: ObjectId) {
        match self.out.ids.size {
            IdSize::Four => self.next_reference(),
            IdSize::Eight => self.raw_id(id.0),
        }
    }

    pub(super) fn thread(&mut self, thread: ThreadId) {
        self.u4(thread_serial(thread).0);
    }

    pub(super) fn name(&mut self, name: &str) {
        let id = self.out.name(self.context.vm, name);
        self.raw_id(id.0);
    }

    fn write(&mut self, tag: RecordTag) {
        self.out.body(self.context.vm, tag, &self.body);
        self.body.clear();
        self.written += 1;
    }

    /// Writes the remaining bytes and the end of the dump.
    pub(super) fn finish(&mut self) {
        if self.written == 0 && self.out.one_record {
            self.write(RecordTag::HeapDump);
            return;
        }
        if !self.body.is_empty() {
            self.write(RecordTag::HeapDumpSegment);
        }
        self.write(RecordTag::HeapDumpEnd);
    }
}
