//! What things are charged to the budget: their place in tables that may be half empty, their names, what the VM
//! keeps for them (tags, slots of weak references) and what the profiler keeps of the same.

use vmpi::{Frame, MethodInfo};

/// Of a block that is allocated by itself, beside its content.
const BLOCK: u64 = 16;

/// A class: entry, by name, mirror, tag, its name among those that were changed, and the profiler's copy with
/// two forms of the name.
pub(crate) fn class(signature: &str) -> u64 {
    1000 + 6 * signature.len() as u64
}

/// A method: entry, by id and as one of its class, and the profiler's copy.
pub(crate) fn method(info: &MethodInfo, lines: usize) -> u64 {
    let names = info.name.len() + info.descriptor.len();
    480 + 2 * names as u64 + 16 * lines as u64
}

/// A method that inserted code has a number for: entry and by name.
pub(crate) fn numbered_method(names: usize) -> u64 {
    240 + names as u64
}

/// A stack: its frames here and at the profiler, of which some are new to it, both tables, and sums of
/// samples and times.
pub(crate) fn stack(frames: usize) -> u64 {
    560 + (2 * size_of::<Frame>() * frames) as u64
}

/// A site: row, by key, who of it lives, and the profiler's row.
pub(crate) const SITE: u64 = 640;

/// Samples of a site at a stack: row, and the profiler's.
pub(crate) const TALLY: u64 = 160;

/// A thread: entry and the profiler's.
pub(crate) fn thread(name: &str) -> u64 {
    320 + 2 * name.len() as u64
}

/// An event that waits for a profiler that has no time.
pub(crate) const PENDING: u64 = 2 * size_of::<crate::vm::registry::Pending>() as u64;

/// A calling context of one thread: its methods twice, both tables, and what was spent in it.
pub(crate) fn context(depth: usize) -> u64 {
    2 * (BLOCK + 4 * depth as u64) + 160
}

/// What native code knows of an entry in a thread's table of sites: four times as many keys as are used.
pub(crate) const SITE_KEY: u64 = 8 + 32;
/// The same of an edge.
pub(crate) const EDGE_KEY: u64 = 8;

/// Samples of a thread at a stack since the last report.
pub(crate) const SAMPLE: u64 = 56;

/// A recorded reference of JNI.
pub(crate) const REFERENCE: u64 = 80;
