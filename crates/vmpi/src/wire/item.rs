//! The content of a batch: the document's events, and additions of the stream.

use crate::ids::{ArenaId, ObjectHandle, TraceId};
use crate::kind::EventKind;
use crate::vm_event::{Body, CallTrace};

/// All objects with ids from `from` up to `from + len` keep their distances and move together: one row for what a
/// compacting collector does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MoveRange {
    /// The first id of the old range.
    pub from: ObjectHandle,
    /// Ids in the range.
    pub len: u64,
    /// The arena that they leave.
    pub arena: ArenaId,
    /// The new value of the first id.
    pub to: ObjectHandle,
    /// The arena they enter.
    pub new_arena: ArenaId,
}

/// How full an arena is, as reported by the VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArenaState {
    /// The arena.
    pub arena: ArenaId,
    /// The id that an object at its start has, 0 if unknown.
    pub start: u64,
    /// Bytes in use, unreachable objects included.
    pub used: u64,
    /// Bytes it has.
    pub capacity: u64,
}

/// One item of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    /// One of the document's events.
    Event {
        /// Whether it was requested.
        requested: bool,
        /// The kind and the data.
        body: Body,
    },
    /// The following items happened at or after this time, in nanoseconds since the stream began.
    Clock {
        /// The time.
        ns: u64,
    },
    /// A stack gets a number that allocations refer to. Numbers are never reused.
    Trace {
        /// The number.
        id: TraceId,
        /// The stack.
        trace: CallTrace,
    },
    /// Many objects move.
    MoveRange(MoveRange),
    /// How full an arena is.
    ArenaState(ArenaState),
    /// This many events were dropped here because the reader was slow.
    Lost {
        /// The event, or `None` for [`Item::MoveRange`] rows.
        kind: Option<EventKind>,
        /// How many since the last such item of the kind.
        count: u64,
    },
}

impl Item {
    /// An event that was not requested.
    #[must_use]
    pub fn event(body: Body) -> Self {
        Self::Event {
            requested: false,
            body,
        }
    }

    /// Whether it may be as large as a heap.
    pub(crate) fn is_dump(&self) -> bool {
        let Self::Event { body, .. } = self else {
            return false;
        };
        matches!(
            body,
            Body::HeapDump(_) | Body::ObjectDump { .. } | Body::MonitorDump(_)
        )
    }

    /// Whether a reader can still use the stream without it. Definitions, arenas and the brackets of collections are
    /// always delivered.
    #[must_use]
    pub fn may_be_dropped(&self) -> bool {
        match self {
            Self::Event { requested, body } => {
                let is_loose = matches!(
                    body,
                    Body::ObjectFree { .. }
                        | Body::ObjectMove(_)
                        | Body::JniGlobalRefAlloc { .. }
                        | Body::JniGlobalRefFree { .. }
                        | Body::JniWeakGlobalRefAlloc { .. }
                        | Body::JniWeakGlobalRefFree { .. }
                );
                !self.is_ordered() || is_loose && !requested
            }
            Self::MoveRange(_) => true,
            Self::Clock { .. } | Self::Trace { .. } | Self::ArenaState(_) | Self::Lost { .. } => {
                false
            }
        }
    }

    /// Whether its position among the events of *other* threads matters. The rest (calls, monitors, allocations) may be
    /// written thread by thread.
    pub(crate) fn is_ordered(&self) -> bool {
        match self {
            Self::Event { requested, body } => {
                *requested
                    || !matches!(
                        body,
                        Body::MethodEntry { .. }
                            | Body::MethodEntry2 { .. }
                            | Body::MethodExit { .. }
                            | Body::ObjectAlloc(_)
                            | Body::InstructionStart { .. }
                            | Body::RawMonitorContendedEnter { .. }
                            | Body::RawMonitorContendedEntered { .. }
                            | Body::RawMonitorContendedExit { .. }
                            | Body::MonitorContendedEnter { .. }
                            | Body::MonitorContendedEntered { .. }
                            | Body::MonitorContendedExit { .. }
                            | Body::MonitorWait { .. }
                            | Body::MonitorWaited { .. }
                    )
            }
            Self::Clock { .. } => false,
            Self::Trace { .. } | Self::MoveRange(_) | Self::ArenaState(_) | Self::Lost { .. } => {
                true
            }
        }
    }
}
