//! Global references of native code (JNI).

use crate::ids::{ClassId, ThreadId, TraceId};

/// References of one kind to objects of one class, created at one stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReferenceRow {
    /// The class of the objects.
    pub class: ClassId,
    /// The stack that created them.
    pub trace: TraceId,
    /// The thread that created the last one; [`ThreadId::NONE`] if unknown.
    pub thread: ThreadId,
    /// Weak global references: they keep nothing alive.
    pub weak: bool,
    /// Created since the recording began.
    pub created: u64,
    /// Deleted by the program.
    pub deleted: u64,
    /// Weak ones that exist and whose objects were freed.
    pub cleared: u64,
    /// Shallow bytes of the objects of existing references. An object counts once per reference.
    pub bytes: u64,
    /// Nanoseconds since the oldest existing one was created.
    pub oldest_ns: u64,
}

/// All references that were created since they are recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct References {
    /// The rows, those with most references first.
    pub rows: Vec<ReferenceRow>,
    /// Row and value of each existing reference, with the values of the VM's own heap dumps.
    pub handles: Vec<(u32, u64)>,
    /// References created since the last answer that are in no row, or in one without stack and class.
    pub lost: u64,
}
