//! Which garbage collector the VM runs with.

use crate::vm::vm_structs::VmStructs;

/// The garbage collectors that are distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Collector {
    Serial,
    Parallel,
    G1,
    Z,
    Shenandoah,
    /// Concurrent Mark Sweep, up to JDK 13.
    Cms,
    Other,
}

impl Collector {
    /// The collector of this VM.
    pub(crate) fn of(structs: &VmStructs) -> Self {
        let is_on = |flag: &str| structs.flag(flag) == Some(true);
        match () {
            () if is_on("UseSerialGC") => Self::Serial,
            () if is_on("UseParallelGC") => Self::Parallel,
            () if is_on("UseG1GC") => Self::G1,
            () if is_on("UseZGC") => Self::Z,
            () if is_on("UseShenandoahGC") => Self::Shenandoah,
            () if is_on("UseConcMarkSweepGC") => Self::Cms,
            () => Self::Other,
        }
    }

    /// Whether the VM thread collects, so that a collection may be requested while the VM ends. The threads of
    /// concurrent collectors have ended by then, and a request to them would wait for ever.
    pub(crate) fn collects_in_vm_thread(self) -> bool {
        matches!(self, Self::Serial | Self::Parallel | Self::G1)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Serial => "Serial",
            Self::Parallel => "Parallel",
            Self::G1 => "G1",
            Self::Z => "ZGC",
            Self::Shenandoah => "Shenandoah",
            Self::Cms => "CMS",
            Self::Other => "unknown",
        }
    }
}
