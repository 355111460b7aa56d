//! A class histogram over all objects of a dump at read speed: one pass, memory that depends on
//! the number of classes and not on the size of the dump.

use crate::build::mapped::map;
use crate::build::units::units_of;
use crate::heap::split_snapshot;
use crate::index::{in_spill_folder, make_requested};
use crate::sections::unpack;
use crate::{Control, HeapError, Options, Summary};
use hprof::source::Source;
use hprof::{Bytes, ObjectId};
use std::path::Path;

/// A row of the histogram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuickRow {
    /// The class.
    pub class_id: ObjectId,
    /// Readable name.
    pub name: String,
    /// Objects of exactly this class.
    pub objects: u64,
    /// Their shallow size.
    pub shallow: Bytes,
}

/// The histogram and the findings of the pass.
#[derive(Clone, Debug, PartialEq)]
pub struct QuickHistogram {
    /// Totals; reachable numbers are 0, because no references are followed.
    pub summary: Summary,
    /// One row per class id that has objects, largest first, ties by id.
    pub rows: Vec<QuickRow>,
    /// Bytes of heap records that were walked (exactly once).
    pub walked: u64,
}

/// Counts all objects by class.
pub fn quick_histogram(
    path: &Path,
    options: &Options,
    control: &Control<'_>,
) -> Result<QuickHistogram, HeapError> {
    let (path, options) = split_snapshot(path, options);
    make_requested(&options)?;
    let source = in_spill_folder(&path, &options, |folder| {
        Ok(Source::open(&path, &unpack(folder, &options, control))?)
    })?;
    source.advise(true);
    let mapped = map(&source, true)?;
    let snapshot = mapped.choose_snapshot(&path, options.snapshot)?;
    let units = units_of(mapped.map.snapshot(snapshot));
    let release = |from, to| source.release(from, to);
    let objects = mapped.objects(&units, &options, control, false, Some(&release))?;
    mapped.check(&path)?;
    let (table, mut summary, mut found) = mapped.classes(snapshot, &objects, &options);
    found.extend(objects.pass.diagnostics.clone());
    summary.diagnostics.extend(found);
    summary.diagnostics.sort();
    let mut rows: Vec<QuickRow> = table
        .classes
        .into_iter()
        .filter(|c| c.objects > 0)
        .map(|c| QuickRow {
            class_id: c.id,
            name: c.name,
            objects: c.objects,
            shallow: c.shallow,
        })
        .collect();
    rows.sort_by_key(|r| (std::cmp::Reverse(r.shallow), r.class_id));
    Ok(QuickHistogram {
        summary,
        rows,
        walked: objects.pass.bytes,
    })
}
