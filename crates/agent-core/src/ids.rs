//! The identifier spaces of the original (facts: section 2). Each begins at another number, so that a reader recognizes
//! the kind of an id.

use crate::options::Mode;
use hprof::{IdSize, ObjectId, Serial};
use vmpi::{ClassId, ObjectHandle, ThreadId, TraceId, VmInfo};

/// Serial of a class.
pub(crate) fn class_serial(class: ClassId) -> Serial {
    Serial(100_000u32.wrapping_add(class.0))
}

/// Serial of a thread; 200000 is the unknown thread.
pub(crate) fn thread_serial(thread: ThreadId) -> Serial {
    Serial(200_000u32.wrapping_add(thread.0))
}

/// Serial of a trace; 300000 is the empty one.
pub(crate) fn trace_serial(trace: TraceId) -> Serial {
    Serial(300_000u32.wrapping_add(trace.0))
}

/// The thread of a serial.
pub(crate) fn thread_of(serial: u32) -> Option<ThreadId> {
    serial.checked_sub(200_000).map(ThreadId)
}

/// First id of frames.
pub(crate) const FRAMES: u64 = 0x7000_0001;
/// First id of names.
pub(crate) const NAMES: u64 = 0xa000_0001;

/// Converts object handles to ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectIds {
    /// Width of every id.
    pub(crate) size: IdSize,
    base: u64,
}

impl ObjectIds {
    /// Compat output numbers objects from 0x50000001 in four bytes. Addresses do not fit there, so
    /// a VM without stable handles gets eight bytes in either mode.
    pub(crate) fn new(mode: Mode, info: &VmInfo) -> ObjectIds {
        if mode == Mode::Compat && info.stable_handles {
            return ObjectIds {
                size: IdSize::Four,
                base: 0x5000_0000,
            };
        }
        ObjectIds {
            size: IdSize::Eight,
            base: 0,
        }
    }

    /// The id of a handle; null stays null.
    pub(crate) fn id(self, handle: ObjectHandle) -> ObjectId {
        if handle.is_null() {
            return ObjectId::NULL;
        }
        let id = self.base.wrapping_add(handle.0);
        match self.size {
            IdSize::Four => ObjectId(id & 0xffff_ffff),
            IdSize::Eight => ObjectId(id),
        }
    }
}
