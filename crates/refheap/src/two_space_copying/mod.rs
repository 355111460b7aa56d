//! Two-space copying: objects are allocated in one arena; a collection moves the live ones into the other one, which is
//! in reserve, and deletes the first.
//!
//! Events: two `ARENA_NEW`; `OBJECT_ALLOC`; in a collection `OBJECT_MOVE` for each live object in the order in which
//! the scan finds it, `ARENA_DELETE` of the old space, which frees the remaining objects without separate events, and
//! `ARENA_NEW` with the same id, which is the reserve from then on. There is no `OBJECT_FREE`.

mod allocate;
mod collect;
#[cfg(test)]
mod golden;

use vmpi::GcKind;

use crate::collector::{Collector, Place, Write};
use crate::core::Core;
use crate::space::Space;

/// The collector's state: its semi-spaces and the index of the one in use.
#[derive(Debug)]
pub(crate) struct TwoSpaceCopying {
    spaces: [Space; 2],
    current: usize,
}

impl TwoSpaceCopying {
    pub(crate) fn new(heap: u64) -> Self {
        Self {
            spaces: [
                Space::new(1, "space 1", heap),
                Space::new(2, "space 2", heap),
            ],
            current: 0,
        }
    }
}

impl Collector for TwoSpaceCopying {
    fn start(&mut self, core: &mut Core<'_>) {
        for space in &self.spaces {
            core.arena_new(space);
        }
    }

    fn allocate(&mut self, size: u64) -> Option<Place> {
        self.bump(size)
    }

    fn collect(&mut self, core: &mut Core<'_>, _kind: GcKind, _need: u64) {
        self.scavenge(core);
    }

    fn stored(&mut self, _core: &mut Core<'_>, _write: Write) {}

    fn spaces(&self) -> Vec<&Space> {
        self.spaces.iter().collect()
    }
}
