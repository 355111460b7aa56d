//! Recordings of JDK Flight Recorder: of the JDK, of async-profiler, and those that Tenure writes.
//!
//! A recording is a sequence of chunks. Each has its own metadata, which describe all events, and its own constant
//! pools, which contain the values that events refer to by a key (stacks, threads, classes). A chunk is read twice:
//! pools first, then events.

mod cursor;
mod events;
mod metadata;
mod values;

use super::NoProfile;
use crate::profile::Profile;
use cursor::Cursor;
use events::{Clock, Collector};
use hprof::{DamageKind, Diagnostic, Diagnostics};
use values::Values;

/// The first bytes of a chunk.
const MAGIC: &[u8; 4] = b"FLR\0";
/// Bytes of a chunk's header.
const HEADER: usize = 68;
/// Types of the two events that are not events of the program.
const METADATA: u64 = 0;
const CHECKPOINT: u64 = 1;

/// Whether a file is a recording.
pub(super) fn is_recording(data: &[u8]) -> bool {
    data.starts_with(MAGIC)
}

/// Reads a recording. Unreadable parts are left out and listed.
pub(super) fn read(data: &[u8]) -> Result<(Profile, Diagnostics), NoProfile> {
    let mut collector = Collector::default();
    let mut diagnostics = Diagnostics::default();
    let mut at = 0;
    while at < data.len() {
        let rest = &data[at..];
        let mut damage = |kind, offset: usize, field: &str, expected: &str, found: &str| {
            let offset = (at + offset) as u64;
            diagnostics.push(Diagnostic::new(
                kind, offset, "chunk", field, expected, found,
            ));
        };
        let Some(header) = Header::of(rest) else {
            damage(DamageKind::Skipped, 0, "", "a chunk", "other bytes");
            break;
        };
        if header.size > rest.len() as u64 {
            let found = format!("{} bytes", rest.len());
            let expected = format!("{} bytes", header.size);
            damage(DamageKind::Truncated, rest.len(), "", &expected, &found);
        }
        // An unfinished chunk has no size.
        let size = match usize::try_from(header.size) {
            Ok(size) if size >= HEADER => size.min(rest.len()),
            _ => rest.len(),
        };
        let chunk = Chunk {
            data: &rest[..size],
            header,
        };
        if let Err((offset, what)) = chunk.read(&mut collector) {
            damage(DamageKind::BadLength, offset, what, "", "it cannot be read");
        }
        at += size;
    }
    diagnostics.sort();
    Ok((collector.finish(), diagnostics))
}

/// The header of a chunk.
struct Header {
    size: u64,
    metadata: u64,
    clock: Clock,
    compressed: bool,
}

impl Header {
    fn of(data: &[u8]) -> Option<Header> {
        let mut cursor = Cursor::new(data.get(..HEADER)?, 0, false);
        let magic = cursor.bytes(4)?;
        let major = cursor.fixed(2)?;
        cursor.fixed(2)?;
        let size = cursor.fixed(8)?;
        let _checkpoint = cursor.fixed(8)?;
        let metadata = cursor.fixed(8)?;
        let start_ns = cursor.fixed(8)?;
        let _duration = cursor.fixed(8)?;
        let start_ticks = cursor.fixed(8)?;
        let ticks_per_second = cursor.fixed(8)?;
        let features = cursor.fixed(4)?;
        (magic == MAGIC && major == 2).then_some(Header {
            size,
            metadata,
            clock: Clock {
                start_ns,
                start_ticks,
                ticks_per_second,
            },
            compressed: features & 1 != 0,
        })
    }
}

/// A chunk and its position, which is used to report damage.
struct Chunk<'a> {
    data: &'a [u8],
    header: Header,
}

/// The position and a description of damage.
type Damage = (usize, &'static str);

impl<'a> Chunk<'a> {
    /// Calls `visit` with the type and the body of each event.
    fn for_events(
        &self,
        mut visit: impl FnMut(u64, Cursor<'a>) -> Result<(), Damage>,
    ) -> Result<(), Damage> {
        let mut at = HEADER;
        while at < self.data.len() {
            let mut cursor = Cursor::new(self.data, at, self.header.compressed);
            let size = cursor
                .integer(4)
                .and_then(|size| usize::try_from(size).ok());
            let end = size.and_then(|size| at.checked_add(size));
            let end = end.filter(|end| *end > cursor.at && *end <= self.data.len());
            let end = end.ok_or((at, "size of an event"))?;
            let mut cursor = cursor.until(end);
            if let Some(kind) = cursor.integer(8) {
                visit(kind, cursor)?;
            }
            at = end;
        }
        Ok(())
    }

    fn read(&self, collector: &mut Collector) -> Result<(), Damage> {
        let mut values = Values::default();
        let wanted = usize::try_from(self.header.metadata).unwrap_or(usize::MAX);
        let mut metadata = Err((wanted.min(self.data.len()), "metadata"));
        if wanted >= HEADER && wanted < self.data.len() {
            let mut cursor = Cursor::new(self.data, wanted, self.header.compressed);
            let head = cursor.integer(4).and(cursor.integer(8));
            if head == Some(METADATA) {
                metadata = metadata::read(&mut cursor).ok_or((wanted, "metadata"));
            }
        }
        // An unfinished chunk does not state the position of its metadata.
        if metadata.is_err() {
            let _ = self.for_events(|kind, mut cursor| {
                if kind == METADATA
                    && let Some(types) = metadata::read(&mut cursor)
                {
                    metadata = Ok(types);
                }
                Ok(())
            });
        }
        values.types = metadata?;
        let mut damage = None;
        let whole = self.for_events(|kind, mut cursor| {
            let at = cursor.at;
            if kind == CHECKPOINT && values.add_checkpoint(&mut cursor).is_none() {
                damage.get_or_insert((at, "constant pool"));
            }
            Ok(())
        });
        collector.begin_chunk(&values, self.header.clock);
        let _ = self.for_events(|kind, mut cursor| {
            let at = cursor.at;
            if kind > CHECKPOINT && collector.event(&values, kind, &mut cursor).is_none() {
                damage.get_or_insert((at, "event"));
            }
            Ok(())
        });
        collector.end_chunk();
        match damage {
            Some(damage) => Err(damage),
            None => whole,
        }
    }
}
