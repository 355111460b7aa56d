//! Writes the records of a dump: names directly, sub-records in heap segments.

use crate::behind::{Block, Sink};
use hprof::{
    Edit, FileOffset, Header, IdSize, ObjectId, RawRecord, Record, RecordTag, Rewriter, SubRecord,
    Writer, encode_sub_record,
};
use std::io::{self, ErrorKind};
use std::mem;

/// A segment with this many bytes is complete, and a block with as many is passed on.
const FULL: usize = 1 << 20;
/// Bytes of a record before its contents: tag, time, length.
const HEAD: usize = 9;

/// Collects sub-records and writes them as segments. A rewriter may replace or drop names and sub-records on their way.
pub(crate) struct Segments<'r> {
    out: &'r mut dyn Sink,
    rewriter: Option<&'r dyn Rewriter>,
    block: Block,
    /// The offset in the block at which the contents of an incomplete segment begin.
    segment: Option<usize>,
    /// Records before they are copied into the block.
    records: Writer<Vec<u8>>,
    /// Sub-records before they are copied into the block.
    body: Vec<u8>,
}

impl<'r> Segments<'r> {
    pub(crate) fn new(
        out: &'r mut dyn Sink,
        header: &Header,
        rewriter: Option<&'r dyn Rewriter>,
    ) -> io::Result<Self> {
        let mut segments = Segments {
            out,
            rewriter,
            block: Block::new(),
            segment: None,
            records: Writer::new(Vec::new(), header)?,
            body: Vec::new(),
        };
        segments.pass_records()?;
        Ok(segments)
    }

    /// Whether contents may be replaced, so that they are needed as a whole.
    pub(crate) fn rewrites(&self) -> bool {
        self.rewriter.is_some()
    }

    /// A record before the heap.
    pub(crate) fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        self.records.record(0, record)?;
        self.pass_records()
    }

    pub(crate) fn text(&mut self, id: ObjectId, bytes: &[u8]) -> io::Result<()> {
        let Some(rewriter) = self.rewriter else {
            return self.record(&Record::Utf8 { id, bytes });
        };
        let body = [&id.0.to_be_bytes(), bytes].concat();
        let record = RawRecord {
            at: FileOffset(0),
            tag: RecordTag::Utf8 as u8,
            time_us: 0,
            length: body.len() as u32,
            body: &body,
        };
        let mut new = Vec::new();
        match rewriter.record(&record, &mut new) {
            Edit::Keep => self.records.raw(&record)?,
            Edit::Drop => {}
            Edit::Replace => self.records.raw(&RawRecord {
                body: &new,
                ..record
            })?,
        }
        self.pass_records()
    }

    /// Space for this many bytes of a sub-record that is not rewritten; `None` if it is too large for a block.
    pub(crate) fn room(&mut self, count: usize) -> io::Result<Option<&mut [u8]>> {
        let len = self.segment.map(|begin| self.block.len() - begin);
        if len.is_some_and(|len| len >= FULL) {
            self.complete();
        }
        // A segment and the block in which it begins both have less than `FULL` bytes before their last sub-record, so
        // the ends of segments do not depend on blocks.
        if self.segment.is_none() && self.block.len() >= FULL {
            self.swap()?;
        }
        let head = if self.segment.is_none() { HEAD } else { 0 };
        if count
            .checked_add(head)
            .is_none_or(|count| count > self.block.rest())
        {
            return Ok(None);
        }
        if self.segment.is_none() {
            self.block.more(HEAD);
            self.segment = Some(self.block.len());
        }
        Ok(self.block.more(count))
    }

    pub(crate) fn sub_record(&mut self, record: &SubRecord<'_>) -> io::Result<()> {
        let mut body = mem::take(&mut self.body);
        body.clear();
        let edit = self.rewriter.map_or(Edit::Keep, |rewriter| {
            rewriter.sub_record(FileOffset(0), record, &mut body)
        });
        if edit == Edit::Keep {
            encode_sub_record(record, IdSize::Eight, &mut body);
        }
        let passed = self.pass(&body);
        self.body = body;
        passed
    }

    /// Writes a sub-record in its final format.
    fn pass(&mut self, body: &[u8]) -> io::Result<()> {
        if body.is_empty() {
            return Ok(());
        }
        if let Some(room) = self.room(body.len())? {
            room.copy_from_slice(body);
            return Ok(());
        }
        self.raw_segment(body.len())?;
        self.raw(body)
    }

    /// Writes a sub-record in a separate segment.
    pub(crate) fn large(&mut self, record: &SubRecord<'_>) -> io::Result<()> {
        self.complete();
        self.sub_record(record)?;
        self.complete();
        Ok(())
    }

    /// Begins a separate segment for a record that is too large for a block. `head` is the record without its contents,
    /// of which `len` bytes are passed to [`piece`](Self::piece) next.
    pub(crate) fn begin_large(&mut self, head: &SubRecord<'_>, len: u32) -> io::Result<()> {
        let mut body = Vec::new();
        encode_sub_record(head, IdSize::Eight, &mut body);
        self.raw_segment(len as usize + body.len())?;
        self.raw(&body)
    }

    pub(crate) fn piece(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.raw(bytes)
    }

    /// Ends the dump.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.record(&Record::HeapDumpEnd)?;
        self.swap()
    }

    fn pass_records(&mut self) -> io::Result<()> {
        let bytes = mem::take(self.records.get_mut());
        self.raw(&bytes)?;
        *self.records.get_mut() = bytes;
        self.records.get_mut().clear();
        Ok(())
    }

    /// Writes the head of a segment with this many bytes.
    fn raw_segment(&mut self, len: usize) -> io::Result<()> {
        let len = u32::try_from(len).map_err(|_| ErrorKind::InvalidData)?;
        self.raw(&head(len))
    }

    /// Writes bytes that are not part of a collected segment.
    fn raw(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.complete();
        while !bytes.is_empty() {
            let count = self.block.fill(bytes);
            bytes = &bytes[count..];
            if !bytes.is_empty() {
                self.swap()?;
            }
        }
        Ok(())
    }

    /// Completes the segment.
    fn complete(&mut self) {
        let Some(begin) = self.segment.take() else {
            return;
        };
        let len = self.block.len() - begin;
        self.block.bytes()[begin - HEAD..begin].copy_from_slice(&head(len as u32));
    }

    fn swap(&mut self) -> io::Result<()> {
        self.complete();
        let full = mem::replace(&mut self.block, Block::none());
        self.block = self.out.swap(full)?;
        Ok(())
    }
}

/// The head of a segment.
fn head(len: u32) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[0] = RecordTag::HeapDumpSegment as u8;
    head[HEAD - 4..].copy_from_slice(&len.to_be_bytes());
    head
}
