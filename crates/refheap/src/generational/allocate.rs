//! Allocation in the nursery, and the write barrier.

use super::Generational;
use crate::collector::{Place, Write};
use crate::core::Core;

impl Generational {
    /// Objects larger than half the nursery are allocated in the oldest generation.
    pub(super) fn in_nursery(&mut self, size: u64) -> Option<Place> {
        let large = size > self.generations[0].capacity() / 2;
        let at = if large { self.generations.len() - 1 } else { 0 };
        let space = &mut self.generations[at];
        let arena = space.arena;
        let address = space.allocate(size)?;
        Some(Place { arena, address })
    }

    /// Adds an older object that now refers to a younger one to the remembered set.
    pub(super) fn remember(&mut self, core: &mut Core<'_>, write: Write) {
        if let (Some(holder), Some(new)) = (write.holder, write.new) {
            let old_side = self.generation(core.objects.get(holder).arena);
            let young_side = self.generation(core.objects.get(new).arena);
            if young_side < old_side {
                self.remembered.insert(holder);
            }
        }
    }
}
