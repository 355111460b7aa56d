//! Ids of items in a running VM.
//!
//! Each kind has its own type, and no type converts into another, so that a class cannot be passed as a thread.

/// Defines one id type that wraps an integer.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident($int:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $int);
    };
}

id! {
    /// A thread, numbered from 1 in the order of discovery. 0 is "no thread": an event outside any Java thread, or a
    /// trace that is not recorded per thread.
    ThreadId(u32)
}
id! {
    /// A class, numbered from 1; each (name, loader) and each load has a separate number. 0 is "unknown".
    ClassId(u32)
}
id! {
    /// A method of a class, numbered from 1. 0 is "unknown".
    MethodId(u32)
}
id! {
    /// An interned stack, numbered from 1. 0 is the empty stack, which the
    /// original agent calls the system trace.
    TraceId(u32)
}
id! {
    /// A monitor: the object that is locked.
    MonitorId(u64)
}
id! {
    /// An allocation arena (generation, region, space). 0 if the VM has only one heap.
    ArenaId(u32)
}
id! {
    /// An object as this VM identifies it now; 0 is null. [`VmInfo::stable_handles`](crate::VmInfo::stable_handles)
    /// states whether it is a tag (stable) or an address (valid until the next collection).
    ObjectHandle(u64)
}

impl ThreadId {
    /// No thread in particular.
    pub const NONE: Self = Self(0);
}

impl TraceId {
    /// The empty stack.
    pub const EMPTY: Self = Self(0);
}

impl ObjectHandle {
    /// The null reference.
    pub const NULL: Self = Self(0);

    /// Whether this is the null reference.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.0 == 0
    }
}

/// The position of a frame in its method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Location {
    /// Offset of the instruction in the method's original bytecode.
    Bytecode(u32),
    /// In a native method.
    Native,
    /// Not known, or not requested (call counting records methods only).
    Unknown,
}

/// One frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// The method.
    pub method: MethodId,
    /// The position in it.
    pub location: Location,
}
