//! Checks whether the file is complete: what was damaged, what was omitted, and what a heap dump cannot show in
//! principle.

use heap_graph::{Heap, Summary};
use hprof::DamageKind;
use serde::Serialize;

/// Damage or another finding at one place of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Offset in the decompressed file, in bytes.
    pub offset: u64,
    /// Name of the record at this place.
    pub record: String,
    /// The kind of finding.
    pub kind: DamageKind,
    /// The finding as a sentence.
    pub message: String,
}

impl Finding {
    /// Whether it names the dumps of an archive that are not used. That is no damage, but a reader of the answer must
    /// know which dump it is about.
    pub fn is_about_archive(&self) -> bool {
        self.kind == DamageKind::Note && self.record == "archive"
    }
}

/// A check and its result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was checked.
    pub what: &'static str,
    /// True when the check passed.
    pub ok: bool,
    /// Number of violations; 0 if the check passed.
    pub count: u64,
}

/// The state of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// True if nothing is damaged.
    pub whole: bool,
    /// Bytes that belong to no readable record.
    pub skipped_bytes: u64,
    /// The checks.
    pub checks: Vec<Check>,
    /// Number of references of objects to objects that are not in the dump. This is no check: JVMs with class data sharing write
    /// some hundred such references, from arrays of archived objects.
    pub dangling_references: u64,
    /// Damage and other findings, by offset.
    pub findings: Vec<Finding>,
    /// Number of findings that are not in the list.
    pub omitted_findings: u64,
}

/// Findings as answers show them.
pub fn findings(summary: &Summary) -> Vec<Finding> {
    summary
        .diagnostics
        .iter()
        .map(|d| Finding {
            offset: d.offset.0,
            record: d.record.clone(),
            kind: d.kind,
            message: d.message(),
        })
        .collect()
}

/// Checks a heap.
pub fn validate(heap: &Heap) -> Verdict {
    let summary = heap.summary();
    let check = |what, count| Check {
        what,
        ok: count == 0,
        count,
    };
    let missing = heap
        .classes()
        .iter()
        .filter(|c| !c.dumped && c.element.is_none());
    let unnamed = heap.classes().iter().filter(|c| c.name.is_empty());
    Verdict {
        whole: !summary.diagnostics.any_damage(),
        skipped_bytes: summary.skipped,
        checks: vec![
            check("bytes that belong to no readable record", summary.skipped),
            check(
                "roots whose object is not in the dump",
                summary.dangling_roots,
            ),
            check(
                "object ids that occur more than once",
                summary.duplicate_objects,
            ),
            check(
                "classes that objects name but no record describes",
                missing.count() as u64,
            ),
            check("classes without a name", unnamed.count() as u64),
            check(
                "parked virtual threads whose stacks the dump does not have",
                summary.parked_virtual_threads,
            ),
        ],
        dangling_references: summary.dangling_references,
        findings: findings(summary),
        omitted_findings: summary.diagnostics.dropped(),
    }
}
