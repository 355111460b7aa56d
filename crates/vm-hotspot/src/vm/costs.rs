//! How many bytes are charged to the memory budget for each kind of thing: its entry in tables that may be half empty,
//! its name, the memory of the VM for it (tags, slots of weak references), and that of the profiler.

use vmpi::{Frame, MethodInfo};

/// Overhead of a block of the allocator.
const BLOCK: u64 = 16;

/// A class: its entry, the entry by name, mirror, tag, its name among the changed classes, and the profiler's copy with
/// two forms of the name.
pub(crate) fn class(signature: &str) -> u64 {
    1000 + 6 * signature.len() as u64
}

/// A method: its entry, the entries by id and of its class, and the profiler's copy.
pub(crate) fn method(info: &MethodInfo, lines: usize) -> u64 {
    let names = info.name.len() + info.descriptor.len();
    480 + 2 * names as u64 + 16 * lines as u64
}

/// A method with a number in inserted code: its entry and the entry by name.
pub(crate) fn numbered_method(names: usize) -> u64 {
    240 + names as u64
}

/// A stack: its frames here and in the profiler, some of which are new to it, entries of both tables, and sums of
/// samples and times.
pub(crate) fn stack(frames: usize) -> u64 {
    560 + (2 * size_of::<Frame>() * frames) as u64
}

/// A site: its row, the entry by key, the count of live objects, and the profiler's row.
pub(crate) const SITE: u64 = 640;

/// Samples of a site at a stack: a row here and in the profiler.
pub(crate) const TALLY: u64 = 160;

/// A thread: an entry here and in the profiler.
pub(crate) fn thread(name: &str) -> u64 {
    320 + 2 * name.len() as u64
}

/// An event that waits until the profiler can receive it.
pub(crate) const PENDING: u64 = 2 * size_of::<crate::vm::registry::Pending>() as u64;

/// A calling context of one thread: its methods twice, entries of both tables, and its times.
pub(crate) fn context(depth: usize) -> u64 {
    2 * (BLOCK + 4 * depth as u64) + 160
}

/// Native memory for an entry in a thread's table of sites: four times as many keys as are used.
pub(crate) const SITE_KEY: u64 = 8 + 32;
/// The same for an edge.
pub(crate) const EDGE_KEY: u64 = 8;

/// Samples of a thread at a stack since the last report.
pub(crate) const SAMPLE: u64 = 56;

/// A recorded reference of JNI.
pub(crate) const REFERENCE: u64 = 80;
