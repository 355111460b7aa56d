//! The result of a dump.

use crate::damage::Damage;
use hprof::HeapTag;
use std::collections::BTreeMap;

/// What was written, and what could not be written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The VM's version.
    pub version: String,
    /// Its collector.
    pub collector: String,
    /// Classes.
    pub classes: u64,
    /// Objects that are not arrays.
    pub instances: u64,
    /// Arrays of references.
    pub object_arrays: u64,
    /// Arrays of primitive types.
    pub primitive_arrays: u64,
    /// Objects with a known allocation stack.
    pub with_stack: u64,
    /// Threads that can run Java code.
    pub threads: u64,
    /// Threads whose frames could be read.
    pub traces: u64,
    /// Roots by the name of their kind.
    pub roots: BTreeMap<&'static str, u64>,
    /// Bytes of the heap in which no objects could be recognized.
    pub gap_bytes: u64,
    /// Objects that were left out because their class is not loaded (any more).
    pub unloaded: u64,
    /// Bytes of unreachable objects that were left out because the collector has found them dead and may have unloaded
    /// their classes.
    pub dead_bytes: u64,
    /// The damage in the image.
    pub damage: Damage,
}

impl Summary {
    pub(crate) fn count_root(&mut self, kind: HeapTag) {
        *self.roots.entry(kind.name()).or_default() += 1;
    }

    /// Objects of all kinds, except class objects.
    pub fn objects(&self) -> u64 {
        self.instances + self.object_arrays + self.primitive_arrays
    }
}
