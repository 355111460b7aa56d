//! Global references of native code (JNI).

use crate::ids::{ClassId, ThreadId, TraceId};

/// References of one kind to objects of one class, made at one stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReferenceRow {
    /// The class of the objects.
    pub class: ClassId,
    /// The stack that made them.
    pub trace: TraceId,
    /// The thread that made the last; [`ThreadId::NONE`] if it is not known.
    pub thread: ThreadId,
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
    /// Nanoseconds since the oldest that exists was made.
    pub oldest_ns: u64,
}

/// All references that were made while they were recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// The rows, those with most references first.
    pub rows: Vec<ReferenceRow>,
    /// Row and value of each that exists, as the VM's own heap dumps name them.
    pub handles: Vec<(u32, u64)>,
    /// References made since the last answer that are not in the rows, or in one without
    /// stack and class.
    pub lost: u64,
}
