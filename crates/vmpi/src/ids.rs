//! Names of things in a running VM.
//!
//! Each is its own type, so that a class cannot be passed for a thread, and none
//! converts into another.

/// Makes one id newtype over an integer.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident($int:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $int);
    };
}

id! {
    /// A thread, numbered from 1 in order of discovery. 0 is "no thread": an
    /// event outside any Java thread, or a trace that is not kept per thread.
    ThreadId(u32)
}
id! {
    /// A class, one per (name, loader) and load, numbered from 1. 0 is "unknown".
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
    /// A monitor: the object whose lock is meant.
    MonitorId(u64)
}
id! {
    /// An allocation arena (generation, region, space). 0 when the VM keeps one heap.
    ArenaId(u32)
}
id! {
    /// An object as this VM names it at this moment; 0 is null. Whether it is a
    /// tag (stable) or an address (valid until the next collection) is the VM's
    /// affair and is given by [`VmInfo::stable_handles`](crate::VmInfo::stable_handles).
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

/// Where in a method a frame stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Location {
    /// Offset of the instruction in the method's original bytecode.
    Bytecode(u32),
    /// In a native method.
    Native,
    /// Not known, or not requested (call counting keeps methods only).
    Unknown,
}

/// One frame of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// The method.
    pub method: MethodId,
    /// The place in it.
    pub location: Location,
}
