//! Global references of native code (JNI), by kind, class and the stack that created them.

use crate::names::NameId;
use crate::stacks::TraceId;
use serde::{Deserialize, Serialize};

/// References of one kind to objects of one class, made at one stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reference {
    /// Class of the objects.
    pub class: NameId,
    /// Where they were made.
    pub trace: TraceId,
    /// Serial of the thread that made the last; 0 if it is not known.
    pub thread: u32,
    /// Weak global references: they keep nothing alive.
    pub weak: bool,
    /// Made since the recording began.
    pub created: u64,
    /// Deleted by the program.
    pub deleted: u64,
    /// Weak ones that exist and whose objects are gone.
    pub cleared: u64,
    /// Shallow bytes of the objects of those that exist. An object counts for each reference.
    pub bytes: u64,
    /// Milliseconds since the oldest that exists was made.
    pub oldest_ms: u64,
}

impl Reference {
    /// The number of existing ones.
    pub fn remaining(&self) -> u64 {
        self.created.saturating_sub(self.deleted)
    }
}

/// All references that were made while they were recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceTable {
    /// The rows, those with most references first.
    pub rows: Vec<Reference>,
    /// Row and reference of each that exists, as roots of a heap dump name references. Known
    /// only where the agent was requested to report it.
    #[serde(skip)]
    pub handles: Vec<(u32, u64)>,
}

impl ReferenceTable {
    /// Global and weak references that exist.
    pub fn remaining(&self) -> [u64; 2] {
        [false, true].map(|weak| {
            let rows = self.rows.iter().filter(|row| row.weak == weak);
            rows.map(Reference::remaining).sum()
        })
    }
}
