//! The source of the sizes and capacities of a table.

use serde::Serialize;

/// Where the sizes and capacities of a table come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Source {
    /// `live` or `dump`.
    pub source: &'static str,
    /// When they were read, in milliseconds since 1970.
    pub time_ms: u64,
    /// Number of the heap dump.
    pub dump: Option<usize>,
    /// Live objects that have a size or a capacity, and how many of them were examined.
    pub objects: Option<u64>,
    /// See `objects`.
    pub read: Option<u64>,
    /// Objects of the program that were counted as another class's, and have no sizes here.
    pub left_out: Option<u64>,
    /// Whether there were so many stacks and threads that sizes are known by class alone.
    pub by_class: bool,
    /// CPU time of the program that reading took, in microseconds.
    pub cpu_us: Option<u64>,
}
