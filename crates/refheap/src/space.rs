//! The addresses of an arena: which are in use and which are free.

use std::collections::BTreeMap;

use vmpi::ArenaId;
use vmpi::wire::ArenaState;

/// A contiguous range of addresses with objects in it. Allocation is first fit, which is equal to incrementing a
/// pointer in a space without holes.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    pub(crate) arena: ArenaId,
    pub(crate) name: String,
    base: u64,
    capacity: u64,
    used: u64,
    /// Free ranges: start and length, never adjacent.
    free: BTreeMap<u64, u64>,
}

/// The distance between arenas, which is large enough that an address identifies its arena.
const DISTANCE: u64 = 0x1000_0000;

/// The largest arena: half of the distance; the other half is scratch space.
pub(crate) const LARGEST: u64 = DISTANCE / 2;

impl Space {
    pub(crate) fn new(arena: u32, name: impl Into<String>, capacity: u64) -> Self {
        let base = DISTANCE * u64::from(arena);
        let capacity = capacity & !7;
        Self {
            arena: ArenaId(arena),
            name: name.into(),
            base,
            capacity,
            used: 0,
            free: BTreeMap::from([(base, capacity)]),
        }
    }

    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    pub(crate) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The number of free bytes, contiguous or not.
    pub(crate) fn room(&self) -> u64 {
        self.capacity - self.used
    }

    /// The address for temporary copies: after the last address of the arena.
    pub(crate) fn scratch(&self) -> u64 {
        self.base + self.capacity
    }

    pub(crate) fn state(&self) -> ArenaState {
        ArenaState {
            arena: self.arena,
            start: self.base,
            used: self.used,
            capacity: self.capacity,
        }
    }

    /// The first address that fits, or `None`.
    pub(crate) fn allocate(&mut self, size: u64) -> Option<u64> {
        let (&start, &len) = self.free.iter().find(|(_, len)| **len >= size)?;
        self.free.remove(&start);
        if len > size {
            self.free.insert(start + size, len - size);
        }
        self.used += size;
        Some(start)
    }

    /// Frees a range and joins it with adjacent free ranges.
    pub(crate) fn release(&mut self, mut start: u64, mut len: u64) {
        self.used -= len;
        if let Some((&before, &before_len)) = self.free.range(..start).next_back()
            && before + before_len == start
        {
            self.free.remove(&before);
            start = before;
            len += before_len;
        }
        if let Some(after_len) = self.free.remove(&(start + len)) {
            len += after_len;
        }
        self.free.insert(start, len);
    }

    /// Makes the whole space free.
    pub(crate) fn clear(&mut self) {
        self.fill(0);
    }

    /// Marks the first `used` bytes as used and the rest as free.
    pub(crate) fn fill(&mut self, used: u64) {
        self.used = used;
        self.free.clear();
        if used < self.capacity {
            self.free.insert(self.base + used, self.capacity - used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_used_first_and_join_again() {
        let mut space = Space::new(1, "heap", 64);
        let places: Vec<_> = (0..4).map(|_| space.allocate(16).unwrap()).collect();
        assert_eq!(space.allocate(8), None);
        space.release(places[1], 16);
        space.release(places[3], 16);
        assert_eq!(space.allocate(24), None, "two holes of 16");
        space.release(places[2], 16);
        assert_eq!(space.allocate(24), Some(places[1]));
        assert_eq!((space.state().used, space.room()), (40, 24));
    }
}
