//! Reference counting: an object is freed immediately when the last reference to it is removed.
//!
//! Events: one `ARENA_NEW`; `OBJECT_ALLOC`; `OBJECT_FREE` whenever a count drops to zero, on the thread that removed
//! the reference and outside of any collection. A cycle keeps itself alive: without the detector it leaks, with it a
//! collection frees it between `GC_START` and `GC_FINISH`.

mod allocate;
mod collect;
#[cfg(test)]
mod golden;

use vmpi::GcKind;

use crate::collector::{Collector, Place, Write};
use crate::core::Core;
use crate::space::Space;

/// The collector's state: its one arena.
#[derive(Debug)]
pub(crate) struct ReferenceCounting {
    space: Space,
    cycle_detector: bool,
}

impl ReferenceCounting {
    pub(crate) fn new(heap: u64, cycle_detector: bool) -> Self {
        Self {
            space: Space::new(1, "heap", heap),
            cycle_detector,
        }
    }
}

impl Collector for ReferenceCounting {
    fn start(&mut self, core: &mut Core<'_>) {
        core.arena_new(&self.space);
    }

    fn allocate(&mut self, size: u64) -> Option<Place> {
        self.first_fit(size)
    }

    fn collect(&mut self, core: &mut Core<'_>, _kind: GcKind, _need: u64) {
        self.detect_cycles(core);
    }

    fn stored(&mut self, core: &mut Core<'_>, write: Write) {
        self.count(core, write);
    }

    fn spaces(&self) -> Vec<&Space> {
        vec![&self.space]
    }
}
