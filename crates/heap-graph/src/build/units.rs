//! Work for several threads: the segments of a snapshot as units, pulled from one queue. Large
//! segments are walked once by one thread, which leaves checkpoints; later passes split there.

use crate::parallel::on_threads;
use crate::{Control, HeapError, Tuning};
use hprof::{Diagnostics, HeapVisitor, IdSize, Segment, Stretch, walk_stretch};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// A worker's view of the sub-records.
pub(crate) trait UnitVisitor: HeapVisitor + Send {
    /// A new stretch begins; it does not continue the previous one. Offsets of its sub-records are counted from `base`.
    fn begin(&mut self, base: u64) {
        let _ = base;
    }
    /// The stretch is done.
    fn end(&mut self) {}
}

/// The damage that all workers found, and where large segments can be split.
#[derive(Debug, Default)]
pub(crate) struct PassResult {
    pub(crate) diagnostics: Diagnostics,
    pub(crate) skipped: u64,
    pub(crate) units: Vec<Stretch>,
    /// Bytes of the dump that were walked.
    pub(crate) bytes: u64,
}

/// The dump as every pass sees it.
pub(crate) struct Input<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) ids: IdSize,
    pub(crate) known_class: &'a (dyn Fn(u64) -> bool + Sync),
    pub(crate) control: Control<'a>,
    /// Copies a part of the dump, if possible.
    pub(crate) read: &'a (dyn Fn(u64, &mut [u8]) -> bool + Sync),
    /// Drop the pages behind the walk.
    pub(crate) release: Option<&'a (dyn Fn(u64, u64) + Sync)>,
    /// Which segments are copied, and the bytes between checkpoints, cancellation points and progress reports.
    pub(crate) tuning: &'a Tuning,
}

/// The segments of a snapshot as units.
pub(crate) fn units_of<'s>(segments: impl Iterator<Item = &'s Segment>) -> Vec<Stretch> {
    segments
        .filter(|s| !s.is_empty())
        .map(|s| Stretch {
            from: s.body,
            until: s.end,
            end: s.end,
        })
        .collect()
}

/// Copies the unit if it is a complete small segment; false if it is read from the mapping.
fn copy(input: &Input<'_>, unit: Stretch, buffer: &mut Vec<u8>) -> bool {
    let len = unit.end - unit.from;
    if len > input.tuning.copied || unit.end > input.data.len() as u64 {
        return false;
    }
    buffer.resize(len as usize, 0);
    (input.read)(unit.from, buffer)
}

/// Runs one pass over all units; returns the visitors of the workers and the findings.
pub(crate) fn run_pass<V: UnitVisitor>(
    input: &Input<'_>,
    phase: &'static str,
    units: &[Stretch],
    visitors: Vec<V>,
) -> Result<(Vec<V>, PassResult), HeapError> {
    let total: u64 = units.iter().map(|u| u.until - u.from).sum();
    let next = AtomicUsize::new(0);
    let done = AtomicU64::new(0);
    let shared = Mutex::new(PassResult::default());
    let work = |mut visitor: V| {
        let mut mine = PassResult::default();
        let mut buffer = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(unit) = units.get(index) else { break };
            let copied = copy(input, *unit, &mut buffer);
            let (data, base) = if copied {
                (buffer.as_slice(), unit.from)
            } else {
                (input.data, 0)
            };
            visitor.begin(base);
            let mut from = unit.from;
            while from < unit.until {
                if input.control.check().is_err() {
                    break;
                }
                let until = unit.until.min(from + input.tuning.checkpoint);
                let part = Stretch {
                    from: from - base,
                    until: until - base,
                    end: unit.end - base,
                };
                let walked = walk_stretch(data, input.ids, part, input.known_class, &mut visitor);
                let to = (walked.next + base).max(until.min(unit.end));
                mine.diagnostics.extend(walked.diagnostics.shifted(base));
                mine.skipped += walked.skipped;
                mine.units.push(Stretch {
                    from,
                    until: to,
                    end: unit.end,
                });
                mine.bytes += to - from;
                let sum = done.fetch_add(to - from, Ordering::Relaxed) + to - from;
                input.control.report(phase, sum.min(total), total);
                if let Some(release) = input.release.filter(|_| !copied) {
                    release(from, to);
                }
                from = to;
            }
            visitor.end();
        }
        if let Ok(mut all) = shared.lock() {
            all.diagnostics.extend(mine.diagnostics);
            all.skipped += mine.skipped;
            all.bytes += mine.bytes;
            all.units.append(&mut mine.units);
        }
        visitor
    };
    let visitors = on_threads(visitors, work);
    input.control.check()?;
    let mut result = shared.into_inner().unwrap_or_default();
    result.units.sort_by_key(|u| u.from);
    result.diagnostics.sort();
    Ok((visitors, result))
}
