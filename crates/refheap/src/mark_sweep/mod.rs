//! Mark and sweep: one arena; the memory of freed objects returns to the free list and is not moved.
//!
//! Events: one `ARENA_NEW`; `OBJECT_ALLOC`; in a collection one `OBJECT_FREE` for each unreachable object, by address.
//! Nothing moves, so holes remain.

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
pub(crate) struct MarkSweep {
    space: Space,
}

impl MarkSweep {
    pub(crate) fn new(heap: u64) -> Self {
        Self {
            space: Space::new(1, "heap", heap),
        }
    }
}

impl Collector for MarkSweep {
    fn start(&mut self, core: &mut Core<'_>) {
        core.arena_new(&self.space);
    }

    fn allocate(&mut self, size: u64) -> Option<Place> {
        self.first_fit(size)
    }

    fn collect(&mut self, core: &mut Core<'_>, _kind: GcKind, _need: u64) {
        self.mark_and_sweep(core);
    }

    fn stored(&mut self, _core: &mut Core<'_>, _write: Write) {}

    fn spaces(&self) -> Vec<&Space> {
        vec![&self.space]
    }
}
