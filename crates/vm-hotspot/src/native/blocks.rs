//! Which blocks are recorded, by address: a table of fixed size without locks.
//!
//! A free of a block that is not recorded costs one load of a small filter. An address
//! belongs to one thread at a time (who got it from the allocator, until it frees it), so
//! two threads never put in or take out the same one at once.

use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use super::memory::{Zeroed, places};

/// Most places for blocks.
const MOST: usize = 1 << 21;
/// Places that are searched for a block, from the place of its address on.
const WINDOW: usize = 32;
/// Counters of the filter; they fit the second-level cache.
const FILTER: usize = 1 << 15;
/// A place that is being filled.
const TAKEN: u64 = 1;
/// Bits of a size; those above the next hold the stack.
const SIZE_BITS: u32 = 43;
/// The block is older than the counts that are reported.
const OLD: u64 = 1 << SIZE_BITS;

/// A recorded block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The stack that allocated it.
    pub(super) stack: u32,
    /// The bytes that were requested.
    pub(super) size: u64,
    /// It was there when all counts were cleared.
    pub(super) is_old: bool,
}

impl Block {
    fn pack(self) -> u64 {
        let old = if self.is_old { OLD } else { 0 };
        u64::from(self.stack) << (SIZE_BITS + 1) | old | self.size.min(OLD - 1)
    }

    fn unpack(word: u64) -> Self {
        Self {
            stack: (word >> (SIZE_BITS + 1)) as u32,
            size: word & (OLD - 1),
            is_old: word & OLD != 0,
        }
    }
}

#[repr(C)]
struct Place {
    /// 0: empty.
    address: AtomicU64,
    block: AtomicU64,
}

/// The recorded blocks.
pub(super) struct Blocks {
    places: Zeroed<Place>,
    /// Bits of a hash that are not needed to choose one of them.
    shift: u32,
    filter: Zeroed<AtomicU16>,
}

fn hash(address: usize) -> u64 {
    ((address as u64) >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

impl Blocks {
    /// An empty table of so many bytes at most; `None` when the system gives no memory.
    pub(super) fn new(bytes: u64) -> Option<Self> {
        let places = places::<Place>(bytes, MOST);
        // SAFETY: zero is an empty place and a counter of zero.
        unsafe {
            Some(Self {
                places: Zeroed::new(places)?,
                shift: u64::BITS - places.trailing_zeros(),
                filter: Zeroed::new(FILTER)?,
            })
        }
    }

    /// Bytes of the table.
    pub(super) fn bytes(&self) -> u64 {
        (size_of_val(&*self.places) + size_of_val(&*self.filter)) as u64
    }

    fn counter(&self, address: usize) -> &AtomicU16 {
        &self.filter[(hash(address) >> 49) as usize]
    }

    fn window(&self, address: usize) -> impl Iterator<Item = &Place> {
        let first = (hash(address) >> self.shift) as usize;
        (0..WINDOW).map(move |step| &self.places[(first + step) % self.places.len()])
    }

    /// False when the block is not recorded, for almost all that are not.
    #[inline]
    pub(super) fn may_hold(&self, address: usize) -> bool {
        self.counter(address).load(Ordering::Relaxed) != 0
    }

    /// Records a block; false when the table is full.
    pub(super) fn put(&self, address: usize, block: Block) -> bool {
        let free = self.window(address).find(|place| {
            place
                .address
                .compare_exchange(0, TAKEN, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        });
        let Some(place) = free else { return false };
        place.block.store(block.pack(), Ordering::Relaxed);
        place.address.store(address as u64, Ordering::Release);
        self.counter(address).fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Marks every recorded block as old.
    pub(super) fn make_old(&self) {
        for place in self.places.iter() {
            if place.address.load(Ordering::Acquire) > TAKEN {
                place.block.fetch_or(OLD, Ordering::Relaxed);
            }
        }
    }

    /// Takes a block out, if it was recorded.
    pub(super) fn take(&self, address: usize) -> Option<Block> {
        if address as u64 <= TAKEN {
            return None;
        }
        let place = self
            .window(address)
            .find(|place| place.address.load(Ordering::Acquire) == address as u64)?;
        let block = Block::unpack(place.block.load(Ordering::Relaxed));
        place.address.store(0, Ordering::Release);
        self.counter(address).fetch_sub(1, Ordering::Relaxed);
        Some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_is_taken_out_once() {
        let blocks = Blocks::new(64 << 20).expect("memory");
        let address = |n: usize| 0x7f00_0000_1000 + n * 48;
        for n in 0..100_000 {
            let block = Block {
                stack: n as u32 & 0xffff,
                size: 3 * n as u64,
                is_old: false,
            };
            assert!(blocks.put(address(n), block));
        }
        assert_eq!(blocks.take(address(100_000)), None);
        for n in (0..100_000).rev() {
            assert!(blocks.may_hold(address(n)));
            let block = blocks.take(address(n)).expect("recorded");
            assert_eq!((block.stack, block.size), (n as u32 & 0xffff, 3 * n as u64));
            assert_eq!(blocks.take(address(n)), None);
        }
        assert!((0..100_000).all(|n| !blocks.may_hold(address(n))));
    }

    #[test]
    fn blocks_are_old_from_one_moment_on() {
        let blocks = Blocks::new(64 << 20).expect("memory");
        let block = |size, is_old| Block {
            stack: 0xffff,
            size,
            is_old,
        };
        assert!(blocks.put(0x1000, block(OLD - 1, false)));
        blocks.make_old();
        assert!(blocks.put(0x2000, block(7, false)));
        assert_eq!(blocks.take(0x1000), Some(block(OLD - 1, true)));
        assert_eq!(blocks.take(0x2000), Some(block(7, false)));
    }

    #[test]
    fn a_full_window_refuses_and_threads_do_not_disturb_each_other() {
        let blocks = Blocks::new(64 << 20).expect("memory");
        let block = Block {
            stack: 1,
            size: 1,
            is_old: false,
        };
        let refused = (0..2 * WINDOW).filter(|_| !blocks.put(4096, block));
        assert_eq!(refused.count(), WINDOW);
        let blocks = &blocks;
        std::thread::scope(|scope| {
            for thread in 1..8_usize {
                scope.spawn(move || {
                    for round in 0..20_000_usize {
                        let address = (thread << 32) + (round % 500) * 16;
                        let block = Block {
                            stack: thread as u32,
                            size: round as u64,
                            is_old: false,
                        };
                        assert!(blocks.put(address, block));
                        assert_eq!(blocks.take(address), Some(block));
                    }
                });
            }
        });
    }
}
