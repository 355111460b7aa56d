//! Walks a segment to its end, whatever is wrong inside: reports damage, finds the next plausible sub-record, and
//! continues.

use crate::scan::find_sub_record;
use crate::{
    DamageKind, Diagnostic, Diagnostics, FileMap, FileOffset, HeapVisitor, IdSize, Segment,
    SubRecord, read_sub_record, walk,
};

/// A range of sub-records that one worker walks: a segment, or a part of a large one that begins at a known sub-record
/// boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Offset of the first sub-record.
    pub from: u64,
    /// Stop at the first boundary at or after this offset.
    pub until: u64,
    /// End of the segment.
    pub end: u64,
}

impl From<&Segment> for Stretch {
    /// The whole segment.
    fn from(segment: &Segment) -> Stretch {
        Stretch {
            from: segment.body,
            until: segment.end,
            end: segment.end,
        }
    }
}

/// The result of walking a stretch.
#[derive(Clone, Debug, Default)]
pub struct Walked {
    /// Offset of the first sub-record that was not read.
    pub next: u64,
    /// The findings.
    pub diagnostics: Diagnostics,
    /// Bytes that were skipped.
    pub skipped: u64,
}

/// Walks a stretch. Damage never ends the walk early: unreadable bytes are skipped up to the next plausible
/// sub-record, or to the end of the segment. `known_class` returns whether an id is a class of this dump (return
/// `true` when classes are not known).
pub fn walk_stretch<V: HeapVisitor>(
    data: &[u8],
    ids: IdSize,
    stretch: Stretch,
    known_class: &dyn Fn(u64) -> bool,
    visitor: &mut V,
) -> Walked {
    let end = stretch.end.min(data.len() as u64);
    let mut walked = Walked {
        next: stretch.from,
        ..Walked::default()
    };
    while walked.next < stretch.until.min(end) {
        match walk(data, ids, walked.next, stretch.until, end, visitor) {
            Ok(next) => walked.next = next,
            Err(stop) => {
                walked.diagnostics.push(stop.diagnostic());
                let next = find_sub_record(data, ids, stop.at + 1, end, known_class).unwrap_or(end);
                walked.skipped += next - stop.at;
                walked.diagnostics.push(Diagnostic::new(
                    DamageKind::Skipped,
                    stop.at,
                    "HEAP_DUMP_SEGMENT",
                    "",
                    "sub-records",
                    // No position of the next one: `data` may be only a part of a file.
                    format!(
                        "{} bytes skipped to the {}",
                        next - stop.at,
                        match next == end {
                            true => "end of the segment",
                            false => "next sub-record",
                        }
                    ),
                ));
                visitor.resync();
                walked.next = next;
            }
        }
    }
    walked
}

impl FileMap {
    /// Passes the sub-records of all segments to the visitor, in file order. `data` is the file that this is the map
    /// of. Unreadable parts are skipped and reported.
    pub fn walk(&self, data: &[u8], visitor: &mut impl HeapVisitor) -> Walked {
        let mut all = Walked::default();
        for segment in &self.segments {
            let ids = self.header.id_size;
            let walked = walk_stretch(data, ids, segment.into(), &|_| true, visitor);
            all.next = walked.next;
            all.diagnostics.extend(walked.diagnostics);
            all.skipped += walked.skipped;
        }
        all
    }

    /// The sub-records of all segments as values, in file order, each with the offset of its tag. Unreadable parts are
    /// skipped. [`FileMap::walk`] is several times faster and reports what it skips.
    pub fn sub_records<'a>(
        &'a self,
        data: &'a [u8],
    ) -> impl Iterator<Item = (FileOffset, SubRecord<'a>)> + 'a {
        let ids = self.header.id_size;
        self.segments.iter().flat_map(move |segment| {
            let end = segment.end.min(data.len() as u64);
            let mut at = segment.body;
            std::iter::from_fn(move || {
                while at < end {
                    let from = at;
                    match read_sub_record(data, ids, from, end) {
                        Ok((record, next)) => {
                            at = next;
                            return Some((FileOffset(from), record));
                        }
                        Err(stop) => {
                            at = find_sub_record(data, ids, stop.at + 1, end, &|_| true)
                                .unwrap_or(end);
                        }
                    }
                }
                None
            })
        })
    }
}
