//! Allocation at the end of the current space.

use super::TwoSpaceCopying;
use crate::collector::Place;

impl TwoSpaceCopying {
    pub(super) fn bump(&mut self, size: u64) -> Option<Place> {
        let space = &mut self.spaces[self.current];
        let arena = space.arena;
        let address = space.allocate(size)?;
        Some(Place { arena, address })
    }
}
