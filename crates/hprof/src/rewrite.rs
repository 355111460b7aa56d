//! Rewrites a dump: every record is passed to a [`Rewriter`], which keeps, drops or replaces it. Unreadable parts are
//! omitted, and every run of segments gets its end record, so that the output is complete even if the input is not.
//!
//! One pass, and memory for one segment of at most [`CUT`] bytes. Longer HEAP_DUMP_SEGMENTs are split. A longer
//! HEAP_DUMP is read twice, because its length precedes its body.

use crate::scan::find_sub_record;
use crate::{
    Diagnostics, FileMap, FileOffset, Header, HeaderError, IdSize, RawRecord, RecordTag, Segment,
    SubRecord, map_file, read_sub_record,
};
use std::collections::HashSet;
use std::fmt;
use std::io::{self, Write};

/// Bytes after which a segment is split.
pub const CUT: usize = 32 << 20;

/// What happens to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edit {
    /// It is written unchanged.
    Keep,
    /// It is omitted.
    Drop,
    /// It is replaced by the bytes that the rewriter appended to the buffer.
    Replace,
}

/// Decides about records. Called in file order; may be called twice for a record, and must return the same both times.
pub trait Rewriter {
    /// The header of the output.
    fn header(&self, header: &Header) -> Header {
        header.clone()
    }
    /// A record to be written before all others: its tag and body.
    fn first(&self) -> Option<(u8, Vec<u8>)> {
        None
    }
    /// A top-level record that is not a heap dump; a new body is appended to `body`.
    fn record(&self, record: &RawRecord<'_>, body: &mut Vec<u8>) -> Edit {
        let _ = (record, body);
        Edit::Keep
    }
    /// A record to be written after this one: its tag and body.
    fn after(&self, record: &RawRecord<'_>) -> Option<(u8, Vec<u8>)> {
        let _ = record;
        None
    }
    /// Whether a heap segment is written.
    fn segment(&self, segment: &Segment) -> bool {
        let _ = segment;
        true
    }
    /// A heap sub-record; new bytes are appended to `out`, tag first
    /// ([`encode_sub_record`](crate::encode_sub_record)).
    fn sub_record(&self, at: FileOffset, record: &SubRecord<'_>, out: &mut Vec<u8>) -> Edit;
    /// Sub-records to be appended to the last segment.
    fn tail(&self, out: &mut Vec<u8>) {
        let _ = out;
    }
}

/// Why a dump could not be rewritten.
#[derive(Debug)]
#[non_exhaustive]
pub enum RewriteError {
    /// The input is not a dump.
    Header(HeaderError),
    /// The output could not be written.
    Io(io::Error),
    /// A single HEAP_DUMP would be longer than its length word can express.
    TooLong(u64),
}

impl fmt::Display for RewriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RewriteError::Header(error) => error.fmt(f),
            RewriteError::Io(error) => error.fmt(f),
            RewriteError::TooLong(bytes) => write!(
                f,
                "the heap dump would have {bytes} bytes, and HEAP_DUMP can have 4 GiB"
            ),
        }
    }
}

impl std::error::Error for RewriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RewriteError::Header(error) => error.source(),
            RewriteError::Io(error) => error.source(),
            RewriteError::TooLong(_) => None,
        }
    }
}

impl From<HeaderError> for RewriteError {
    fn from(error: HeaderError) -> Self {
        RewriteError::Header(error)
    }
}

impl From<io::Error> for RewriteError {
    fn from(error: io::Error) -> Self {
        RewriteError::Io(error)
    }
}

/// The result of a rewrite.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    /// Heap sub-records written unchanged.
    pub kept: u64,
    /// Heap sub-records replaced.
    pub replaced: u64,
    /// Heap sub-records omitted.
    pub dropped: u64,
    /// Bytes of the output.
    pub bytes: u64,
    /// Bytes of the input's heap that could not be read.
    pub skipped: u64,
    /// Findings about the input.
    pub damage: Diagnostics,
}

/// Rewrites a dump.
///
/// # Errors
/// When the input has no valid header, when `out` returns an error, or when a single HEAP_DUMP would be longer than its
/// length word can express. Damage of the input is no error.
pub fn rewrite(
    data: &[u8],
    rewriter: &dyn Rewriter,
    out: &mut dyn Write,
) -> Result<Rewritten, RewriteError> {
    let mut records: Vec<RawRecord<'_>> = Vec::new();
    let map = map_file(data, |record| records.push(*record))?;
    let classes = class_ids(&records, map.header.id_size);
    let last = map.segments.iter().rposition(|s| rewriter.segment(s));
    let mut pass = Pass {
        data,
        map: &map,
        classes,
        rewriter,
        out: Counted { out, bytes: 0 },
        done: Rewritten {
            damage: map.diagnostics.clone(),
            ..Rewritten::default()
        },
    };
    let header = rewriter.header(&map.header);
    pass.out.write_all(&header.to_bytes())?;
    if let Some((tag, body)) = rewriter.first() {
        pass.frame(tag, 0, &body)?;
    }
    let mut segments = map.segments.iter().enumerate().peekable();
    let mut open = false;
    for record in &records {
        while let Some((n, segment)) = segments.next_if(|(_, s)| s.at < record.at) {
            open |= pass.heap(segment, Some(n) == last)?;
        }
        open &= record.known_tag() != Some(RecordTag::HeapDumpEnd);
        pass.record(record)?;
    }
    for (n, segment) in segments {
        open |= pass.heap(segment, Some(n) == last)?;
    }
    if open {
        pass.frame(RecordTag::HeapDumpEnd as u8, 0, &[])?;
    }
    pass.done.bytes = pass.out.bytes;
    Ok(pass.done)
}

fn class_ids(records: &[RawRecord<'_>], ids: IdSize) -> HashSet<u64> {
    let class = |r: &RawRecord<'_>| match r.decode(ids) {
        Some(crate::Record::LoadClass { class, .. }) => Some(class.0),
        _ => None,
    };
    records.iter().filter_map(class).collect()
}

struct Counted<'w> {
    out: &'w mut dyn Write,
    bytes: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.bytes += n as u64;
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

struct Pass<'a> {
    data: &'a [u8],
    map: &'a FileMap,
    classes: HashSet<u64>,
    rewriter: &'a dyn Rewriter,
    out: Counted<'a>,
    done: Rewritten,
}

/// Called with the collected bytes; the flag is true at the end of the segment.
type Flush<'f, P> = dyn FnMut(&mut P, &mut Vec<u8>, bool) -> Result<(), RewriteError> + 'f;

impl Pass<'_> {
    fn frame(&mut self, tag: u8, time_us: u32, body: &[u8]) -> Result<(), RewriteError> {
        self.head(tag, time_us, body.len() as u64)?;
        Ok(self.out.write_all(body)?)
    }

    fn head(&mut self, tag: u8, time_us: u32, len: u64) -> Result<(), RewriteError> {
        let len = u32::try_from(len).map_err(|_| RewriteError::TooLong(len))?;
        self.out.write_all(&[tag])?;
        self.out.write_all(&time_us.to_be_bytes())?;
        Ok(self.out.write_all(&len.to_be_bytes())?)
    }

    fn record(&mut self, record: &RawRecord<'_>) -> Result<(), RewriteError> {
        if self.is_cut(record) {
            return Ok(());
        }
        let mut body = Vec::new();
        match self.rewriter.record(record, &mut body) {
            Edit::Keep => self.frame(record.tag, record.time_us, record.body)?,
            Edit::Drop => {}
            Edit::Replace => self.frame(record.tag, record.time_us, &body)?,
        }
        match self.rewriter.after(record) {
            Some((tag, body)) => self.frame(tag, record.time_us, &body),
            None => Ok(()),
        }
    }

    /// True for a record that the end of the file truncates: only a text is useful in part.
    fn is_cut(&self, record: &RawRecord<'_>) -> bool {
        let at = record.at.0 as usize;
        let length = self.data.get(at + 5..at + 9);
        let claimed = length.map(|l| l.iter().fold(0, |sum, b| sum << 8 | usize::from(*b)));
        claimed != Some(record.body.len()) && record.known_tag() != Some(RecordTag::Utf8)
    }

    /// Writes a segment; returns true when a run of segments is now open.
    fn heap(&mut self, segment: &Segment, last: bool) -> Result<bool, RewriteError> {
        if !self.rewriter.segment(segment) {
            return Ok(false);
        }
        let at = segment.at.0 as usize;
        let head = self.data.get(at..at + 5);
        let (tag, time_us) = match head {
            Some([tag, a, b, c, d]) => (*tag, u32::from_be_bytes([*a, *b, *c, *d])),
            _ => (RecordTag::HeapDumpSegment as u8, 0),
        };
        let pieces = tag == RecordTag::HeapDumpSegment as u8;
        if pieces || segment.len() <= CUT as u64 {
            let mut body = Vec::new();
            self.walk(segment, last, &mut body, &mut |pass, body, end| {
                if !body.is_empty() && (end || pieces && body.len() >= CUT) {
                    pass.frame(tag, time_us, body)?;
                    body.clear();
                }
                Ok(())
            })?;
            return Ok(pieces);
        }
        let mut total = 0u64;
        let before = self.done.clone();
        self.walk(segment, last, &mut Vec::new(), &mut |_, body, end| {
            if end || body.len() >= CUT {
                total += body.len() as u64;
                body.clear();
            }
            Ok(())
        })?;
        self.done = before;
        self.head(tag, time_us, total)?;
        self.walk(segment, last, &mut Vec::new(), &mut |pass, body, end| {
            if end || body.len() >= CUT {
                pass.out.write_all(body)?;
                body.clear();
            }
            Ok(())
        })?;
        Ok(false)
    }

    /// Reads the sub-records of a segment; `flush` is called after each with the collected bytes.
    fn walk(
        &mut self,
        segment: &Segment,
        last: bool,
        body: &mut Vec<u8>,
        flush: &mut Flush<'_, Self>,
    ) -> Result<(), RewriteError> {
        let ids = self.map.header.id_size;
        let mut at = segment.body;
        while at < segment.end {
            match read_sub_record(self.data, ids, at, segment.end) {
                Ok((record, next)) => {
                    let raw = &self.data[at as usize..next as usize];
                    match self.rewriter.sub_record(FileOffset(at), &record, body) {
                        Edit::Keep => {
                            self.done.kept += 1;
                            body.extend_from_slice(raw);
                        }
                        Edit::Drop => self.done.dropped += 1,
                        Edit::Replace => self.done.replaced += 1,
                    }
                    at = next;
                    flush(self, body, false)?;
                }
                Err(stop) => {
                    let known = |id| self.classes.is_empty() || self.classes.contains(&id);
                    let next = find_sub_record(self.data, ids, stop.at + 1, segment.end, &known);
                    let next = next.unwrap_or(segment.end);
                    self.done.skipped += next - at;
                    self.done.damage.push(stop.diagnostic());
                    at = next;
                }
            }
        }
        if last {
            self.rewriter.tail(body);
        }
        flush(self, body, true)
    }
}
