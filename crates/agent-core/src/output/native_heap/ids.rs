//! Converts addresses to ids.

use hprof::IdSize;
use rustc_hash::{FxHashMap, FxHashSet};

/// The first id of objects by address; the ids of classes, loaders and threads are lower.
const FIRST: u64 = 0x5100_0000;
/// The number of ids from [`FIRST`] on.
const ROOM: u64 = (1 << 32) - FIRST;

/// Converts an address to an id of four bytes: its distance from a base address, in units.
#[derive(Clone, Copy, Debug)]
struct Window {
    low: u64,
    shift: u32,
}

/// Maps addresses of the VM's dump to ids of the profile.
pub(super) struct Ids {
    size: IdSize,
    window: Window,
    /// Ids of objects that also have an id outside of dumps.
    named: FxHashMap<u64, u64>,
    /// Bits of addresses in `named` and `own`, so that most others are not looked up.
    bits: Box<[u64]>,
    /// Addresses outside the window.
    others: FxHashMap<u64, u64>,
    own: FxHashSet<u64>,
}

fn bit(address: u64) -> (usize, u64) {
    let at = address >> 3;
    ((at >> 6) as usize % 1024, 1 << (at & 63))
}

impl Ids {
    /// `named`: addresses with their ids. `own`: addresses that are left out. `heap`: the maximum size of the heap.
    pub(super) fn new(
        size: IdSize,
        named: FxHashMap<u64, u64>,
        own: FxHashSet<u64>,
        heap: u64,
    ) -> Ids {
        let mut bits = vec![0; 1024].into_boxed_slice();
        for address in named.keys().chain(&own) {
            let (word, mask) = bit(*address);
            bits[word] |= mask;
        }
        // All addresses of the heap are within its maximum size of each other. If an id counts bytes, a reader can see
        // the sizes of objects, so larger units are used only if necessary.
        let highest = named.keys().copied().max().unwrap_or(0);
        let reach = heap + heap / 4 + (1 << 20);
        let window = Window {
            low: highest.saturating_sub(reach) & !7,
            shift: if reach < ROOM / 2 { 0 } else { 3 },
        };
        Ids {
            size,
            window,
            named,
            bits,
            others: FxHashMap::default(),
            own,
        }
    }

    /// Whether the object belongs to the profiler.
    pub(super) fn is_own(&self, address: u64) -> bool {
        let (word, mask) = bit(address);
        self.bits[word] & mask != 0 && self.own.contains(&address)
    }

    /// Adds an object of the profiler.
    pub(super) fn add_own(&mut self, address: u64) {
        let (word, mask) = bit(address);
        self.bits[word] |= mask;
        self.own.insert(address);
    }

    /// The id of the object at an address; null stays null, and an object that is left out becomes null.
    #[inline]
    pub(super) fn id(&mut self, address: u64) -> u64 {
        if address == 0 {
            return 0;
        }
        let (word, mask) = bit(address);
        if self.bits[word] & mask != 0 {
            if let Some(id) = self.named.get(&address) {
                return *id;
            }
            if self.own.contains(&address) {
                return 0;
            }
        }
        if self.size == IdSize::Eight {
            return address;
        }
        let at = address.wrapping_sub(self.window.low) >> self.window.shift;
        if at < ROOM {
            return FIRST + at;
        }
        self.other(address)
    }

    /// The id of an address outside the window: these ids count from 1 and so are below all others.
    #[cold]
    fn other(&mut self, address: u64) -> u64 {
        let next = self.others.len() as u64 + 1;
        *self.others.entry(address).or_insert(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(size: IdSize, named: &[(u64, u64)], heap: u64) -> Ids {
        Ids::new(
            size,
            named.iter().copied().collect(),
            FxHashSet::default(),
            heap,
        )
    }

    #[test]
    fn four_bytes_keep_addresses_apart_wherever_they_are() {
        for heap in [64 << 20, 4 << 30, 30 << 30] {
            let top = 0x7_f000_0000;
            let mut ids = ids(IdSize::Four, &[(top, 0x5000_0007)], heap);
            let far = [8, 1 << 20, top + (200 << 30), 1 << 45];
            let near = (0..10_000).map(|n| top - 8 * n);
            let mut seen = FxHashSet::default();
            for address in near.chain(far).chain(far) {
                let id = ids.id(address);
                assert!(id != 0 && id <= u64::from(u32::MAX));
                seen.insert(id);
            }
            assert_eq!(seen.len(), 10_004, "{heap}");
            assert_eq!((ids.id(0), ids.id(top)), (0, 0x5000_0007));
        }
    }

    #[test]
    fn a_small_heap_keeps_distances_and_eight_bytes_keep_addresses() {
        let mut four = ids(IdSize::Four, &[(0xf800_0000, 1)], 512 << 20);
        assert_eq!(four.id(0xf700_0018) - four.id(0xf700_0000), 0x18);
        let mut eight = ids(IdSize::Eight, &[(0xf800_0000, 1)], 512 << 20);
        assert_eq!(
            (eight.id(0xf700_0018), eight.id(0xf800_0000)),
            (0xf700_0018, 1)
        );
    }
}
