//! The heap segments of a dump.

use hprof::{IdSize, RecordTag, SubRecord, Writer, encode_sub_record};
use std::io::{self, Write};

/// A segment is written when it has so many bytes.
const FULL: usize = 1 << 20;

/// Collects sub-records and writes them as segments.
pub(crate) struct Segments<W: Write> {
    out: Writer<W>,
    body: Vec<u8>,
}

impl<W: Write> Segments<W> {
    pub(crate) fn new(out: Writer<W>) -> Segments<W> {
        Segments {
            out,
            body: Vec::with_capacity(FULL * 2),
        }
    }

    pub(crate) fn sub_record(&mut self, record: &SubRecord<'_>) -> io::Result<()> {
        encode_sub_record(record, IdSize::Eight, &mut self.body);
        if self.body.len() >= FULL {
            self.flush()?;
        }
        Ok(())
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
