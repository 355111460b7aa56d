//! Allocation from the free list.

use super::MarkSweep;
use crate::collector::Place;

impl MarkSweep {
    /// The first free range that is large enough.
    pub(super) fn first_fit(&mut self, size: u64) -> Option<Place> {
        let arena = self.space.arena;
        let address = self.space.allocate(size)?;
        Some(Place { arena, address })
    }
}
