//! Findings: what is wrong in a file, the position, and how it was handled.

use crate::FileOffset;
use std::fmt;

/// The kind of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum DamageKind {
    /// The file ends inside a record.
    Truncated,
    /// A tag that the format does not have.
    UnknownTag,
    /// A record's length cannot be right.
    BadLength,
    /// A sub-record reaches past its segment.
    RunsOver,
    /// A basic type that does not exist.
    BadType,
    /// A length over 4 GiB was written modulo 2^32 and was corrected.
    LengthOverflow,
    /// Bytes that belong to no record.
    Skipped,
    /// An identifier without the record it names.
    Missing,
    /// The same identifier more than once.
    Duplicate,
    /// The compressed container is damaged or cut.
    Container,
    /// The file was changed by a text-mode transfer (CR bytes inserted).
    TextModeTransfer,
    /// Not damage, but a fact that limits the results.
    Note,
}

impl DamageKind {
    /// False for notes, which do not make a file "damaged".
    pub fn is_damage(self) -> bool {
        !matches!(self, DamageKind::Note)
    }
}

/// One finding: the position, the record, the field, the expected and the actual value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Diagnostic {
    /// Offset in the decoded file.
    pub offset: FileOffset,
    /// Name of the record or sub-record (`UTF8`, `INSTANCE_DUMP`), or `file`.
    pub record: String,
    /// Path of the field; empty for the record as a whole.
    pub field: String,
    /// The kind of damage.
    pub kind: DamageKind,
    /// The value that the format or the rest of the file requires.
    pub expected: String,
    /// The value in the file.
    pub found: String,
}

impl Diagnostic {
    /// A finding about a whole record or one of its fields.
    pub fn new(
        kind: DamageKind,
        offset: u64,
        record: impl Into<String>,
        field: impl Into<String>,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> Diagnostic {
        Diagnostic {
            offset: FileOffset(offset),
            record: record.into(),
            field: field.into(),
            kind,
            expected: expected.into(),
            found: found.into(),
        }
    }

    /// By offset, then by everything else.
    fn order(&self) -> impl Ord + '_ {
        let texts = (&self.record, &self.field, &self.expected, &self.found);
        (self.offset, self.kind, texts)
    }

    /// One line without the offset: `INSTANCE_DUMP length: expected …, found …`.
    pub fn message(&self) -> String {
        let mut text = String::new();
        if !self.field.is_empty() {
            text.push_str(&self.field);
            text.push_str(": ");
        }
        if self.expected.is_empty() {
            text.push_str(&self.found);
        } else {
            text.push_str(&format!("expected {}, found {}", self.expected, self.found));
        }
        text
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {}: {}: {}", self.offset, self.record, self.message())
    }
}

/// The findings of one file. Many findings of one kind would hide the others, so only the first ones of each kind (by
/// offset) are kept, and the others are counted. The result does not depend on the order in which findings are added,
/// so that several workers give the same list as one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Diagnostics {
    kept: Vec<Diagnostic>,
    dropped: u64,
}

impl Diagnostics {
    /// The most findings of one kind that are kept.
    pub const PER_KIND: usize = 20;

    /// Adds a finding.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let same = |d: &&mut Diagnostic| d.kind == diagnostic.kind;
        if self.kept.iter_mut().filter(same).count() < Self::PER_KIND {
            self.kept.push(diagnostic);
            return;
        }
        self.dropped += 1;
        let last = self.kept.iter_mut().filter(same);
        if let Some(last) = last.max_by(|a, b| a.order().cmp(&b.order()))
            && diagnostic.order() < last.order()
        {
            *last = diagnostic;
        }
    }

    /// Adds all findings of another list.
    pub fn extend(&mut self, other: Diagnostics) {
        for diagnostic in other.kept {
            self.push(diagnostic);
        }
        self.dropped += other.dropped;
    }

    /// The findings that were kept, sorted by offset by [`Diagnostics::sort`].
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.kept.iter()
    }

    /// Number of findings that were counted but not kept.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Number of all findings.
    pub fn len(&self) -> u64 {
        self.kept.len() as u64 + self.dropped
    }

    /// True when nothing was found.
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// True when something was really damaged (notes do not count).
    pub fn any_damage(&self) -> bool {
        self.kept.iter().any(|d| d.kind.is_damage())
    }

    /// The same findings, with offsets increased by `by`.
    pub fn shifted(mut self, by: u64) -> Diagnostics {
        self.kept.iter_mut().for_each(|d| d.offset.0 += by);
        self
    }

    /// Sorts the findings by offset.
    pub fn sort(&mut self) {
        self.kept.sort_by(|a, b| a.order().cmp(&b.order()));
    }
}
