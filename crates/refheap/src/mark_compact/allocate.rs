//! Allocation after the last object: the free area is one range.

use super::MarkCompact;
use crate::collector::Place;

impl MarkCompact {
    pub(super) fn bump(&mut self, size: u64) -> Option<Place> {
        let arena = self.space.arena;
        let address = self.space.allocate(size)?;
        Some(Place { arena, address })
    }
}
