//! Where the records of a dump are written: names as they come, sub-records in heap segments.

use hprof::{
    Edit, FileOffset, IdSize, ObjectId, RawRecord, Record, RecordTag, Rewriter, SubRecord, Writer,
    encode_sub_record,
};
use std::io::{self, Write};

/// A segment is written when it has so many bytes.
const FULL: usize = 1 << 20;

/// Collects sub-records and writes them as segments. A rewriter may replace or drop names and sub-records on their way.
pub(crate) struct Segments<'r, W: Write> {
    out: Writer<W>,
    rewriter: Option<&'r dyn Rewriter>,
    body: Vec<u8>,
}

impl<'r, W: Write> Segments<'r, W> {
    pub(crate) fn new(out: Writer<W>, rewriter: Option<&'r dyn Rewriter>) -> Self {
        Segments {
            out,
            rewriter,
            body: Vec::with_capacity(FULL * 2),
        }
    }

    /// Whether contents may be replaced, so that they are needed as a whole.
    pub(crate) fn rewrites(&self) -> bool {
        self.rewriter.is_some()
    }

    /// A record before the heap.
    pub(crate) fn record(&mut self, record: &Record<'_>) -> io::Result<()> {
        self.out.record(0, record)
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
            Edit::Keep => self.out.raw(&record),
            Edit::Drop => Ok(()),
            Edit::Replace => self.out.raw(&RawRecord {
                body: &new,
                ..record
            }),
        }
    }

    pub(crate) fn sub_record(&mut self, record: &SubRecord<'_>) -> io::Result<()> {
        let edit = self.rewriter.map_or(Edit::Keep, |rewriter| {
            rewriter.sub_record(FileOffset(0), record, &mut self.body)
        });
        if edit == Edit::Keep {
            encode_sub_record(record, IdSize::Eight, &mut self.body);
        }
        if self.body.len() >= FULL {
            self.flush()?;
        }
        Ok(())
    }

    /// The same in a segment of its own.
    pub(crate) fn large(&mut self, record: &SubRecord<'_>) -> io::Result<()> {
        self.flush()?;
        self.sub_record(record)?;
        self.flush()
    }

    /// Begins a segment of its own for a record that is too large for the buffer. `head` is the record
    /// without its contents, of which `len` bytes are given to [`piece`](Self::piece) next.
    pub(crate) fn begin_large(&mut self, head: &SubRecord<'_>, len: u32) -> io::Result<()> {
        self.flush()?;
        encode_sub_record(head, IdSize::Eight, &mut self.body);
        let total = len + self.body.len() as u32;
        let out = self.out.get_mut();
        out.write_all(&[RecordTag::HeapDumpSegment as u8, 0, 0, 0, 0])?;
        out.write_all(&total.to_be_bytes())?;
        out.write_all(&self.body)?;
        self.body.clear();
        Ok(())
    }

    pub(crate) fn piece(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.out.get_mut().write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.body.is_empty() {
            self.out.heap(RecordTag::HeapDumpSegment, 0, &self.body)?;
            self.body.clear();
        }
        Ok(())
    }

    /// Ends the dump.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        self.out.record(0, &hprof::Record::HeapDumpEnd)?;
        self.out.into_inner().flush()
    }
}
