//! Walking a segment to its end whatever is wrong inside: report, find the next believable
//! sub-record, go on.

use crate::scan::find_sub_record;
use crate::{DamageKind, Diagnostic, Diagnostics, HeapVisitor, IdSize, walk};

/// A stretch of sub-records that one worker walks: a segment, or a piece of a large one that
/// begins at a known sub-record boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// Offset of the first sub-record.
    pub from: u64,
    /// Stop at the first boundary at or after this offset.
    pub until: u64,
    /// End of the segment.
    pub end: u64,
}

/// What came of walking a stretch.
#[derive(Clone, Debug, Default)]
pub struct Walked {
    /// Offset of the first sub-record that was not read.
    pub next: u64,
    /// What was wrong.
    pub diagnostics: Diagnostics,
    /// Bytes that were skipped.
    pub skipped: u64,
}

/// Walks a stretch. Damage never ends it early: what cannot be read is skipped up to the next
/// believable sub-record, or to the end of the segment. `known_class` says whether an id is a
/// class of this dump (answer `true` when classes are not known).
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
                    if next == end {
                        format!("{} bytes skipped to the end of the segment", next - stop.at)
                    } else {
                        format!(
                            "{} bytes skipped to the next sub-record at {next}",
                            next - stop.at
                        )
                    },
                ));
                visitor.resync();
                walked.next = next;
            }
        }
    }
    walked
}
