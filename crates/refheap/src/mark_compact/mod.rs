//! Mark, sweep and compact: one arena, whose live objects are compacted.
//!
//! Events: one `ARENA_NEW`; `OBJECT_ALLOC`; in a collection `OBJECT_FREE` for each unreachable object and then
//! `OBJECT_MOVE` for each object whose address changes, with the same arena on both sides. In the arbitrary and
//! linearizing orders an object at the new position of another one moves away first, so it may move twice.

mod allocate;
mod collect;
#[cfg(test)]
mod golden;

use vmpi::GcKind;

use crate::collector::{Collector, Order, Place, Write};
use crate::core::Core;
use crate::space::Space;

pub(crate) use collect::lay_down;

/// The collector's state: its one arena.
#[derive(Debug)]
pub(crate) struct MarkCompact {
    space: Space,
    order: Order,
}

impl MarkCompact {
    pub(crate) fn new(heap: u64, order: Order) -> Self {
        Self {
            space: Space::new(1, "heap", heap),
            order,
        }
    }
}

impl Collector for MarkCompact {
    fn start(&mut self, core: &mut Core<'_>) {
        core.arena_new(&self.space);
    }

    fn allocate(&mut self, size: u64) -> Option<Place> {
        self.bump(size)
    }

    fn collect(&mut self, core: &mut Core<'_>, _kind: GcKind, _need: u64) {
        self.mark_and_compact(core);
    }

    fn stored(&mut self, _core: &mut Core<'_>, _write: Write) {}

    fn spaces(&self) -> Vec<&Space> {
        vec![&self.space]
    }
}
