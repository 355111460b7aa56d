//! Stacks by number, with their allocations: a table of fixed size without locks.
//!
//! A stack is native frames (return addresses, innermost first) and below them Java frames
//! (method and bytecode index). The first thread that sees it writes its frames; all others find it
//! by its hash.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::blocks::Block;
use super::memory::{Zeroed, places};
use crate::cpu::slots::CallFrame;

/// Most native frames of a stack.
pub(super) const MOST_NATIVE: usize = 48;
/// Most Java frames of a stack.
pub(super) const MOST_JAVA: usize = 256;
/// Places for stacks.
const PLACES: usize = 1 << 16;
/// Most words for all frames.
const MOST_WORDS: usize = 1 << 23;
/// Places that are searched for a stack, from the place of its hash on.
const WINDOW: usize = 64;
/// Counts are kept in fractions: this many parts of one.
const UNIT: f64 = 1024.0;

/// A stack as it is found.
pub(super) struct Found<'a> {
    /// Return addresses, innermost first.
    pub(super) native: &'a [usize],
    /// The Java frames that called them.
    pub(super) java: &'a [CallFrame],
}

impl Found<'_> {
    fn words(&self) -> impl Iterator<Item = u64> {
        let native = self.native.iter().map(|pc| *pc as u64);
        let java = self.java.iter();
        native.chain(java.flat_map(|frame| [frame.method.0 as u64, u64::from(frame.bci as u32)]))
    }

    /// Never 0, which marks an empty place.
    fn hash(&self) -> u64 {
        let seed = self.native.len() as u64 + 1;
        let mix = |hash: u64, word: u64| {
            (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        };
        self.words().fold(seed, mix) | 1
    }
}

/// Allocations or frees of one stack, in parts of one.
#[derive(Default)]
struct Sum {
    blocks: AtomicU64,
    bytes: AtomicU64,
}

impl Sum {
    fn add(&self, size: u64, interval: u64) {
        let weight = weight(size, interval);
        self.blocks
            .fetch_add((weight * UNIT).round() as u64, Ordering::Relaxed);
        self.bytes.fetch_add(
            (weight * size as f64 * UNIT).round() as u64,
            Ordering::Relaxed,
        );
    }

    fn read(&self) -> [u64; 2] {
        [&self.blocks, &self.bytes]
            .map(|sum| (sum.load(Ordering::Relaxed) as f64 / UNIT).round() as u64)
    }
}

/// How many blocks one recorded block stands for: blocks are chosen by the bytes they hold,
/// one in `interval` on average (0: every block).
fn weight(size: u64, interval: u64) -> f64 {
    if interval == 0 {
        return 1.0;
    }
    -1.0 / (-(size as f64) / interval as f64).exp_m1()
}

#[repr(C)]
struct Place {
    /// 0: empty.
    hash: AtomicU64,
    /// First word, native and Java frames once they are written: `at + 1`, 10 and 10 bits.
    frames: AtomicU64,
    allocated: Sum,
    freed: Sum,
}

/// Blocks and bytes of a stack since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    /// Allocated blocks and bytes.
    pub(super) allocated: [u64; 2],
    /// Freed ones.
    pub(super) freed: [u64; 2],
}

/// A stack with its frames.
pub(super) struct Stack {
    /// Return addresses, innermost first.
    pub(super) native: Vec<usize>,
    /// Method and bytecode index of each Java frame.
    pub(super) java: Vec<(usize, i32)>,
}

/// All stacks.
pub(super) struct Stacks {
    places: Zeroed<Place>,
    words: Zeroed<AtomicU64>,
    used: AtomicUsize,
    /// Numbers in order of their stacks' first block, plus one.
    order: Zeroed<AtomicU32>,
    count: AtomicUsize,
    /// Mean bytes between two recorded blocks, 0 for every block.
    interval: u64,
}

impl Stacks {
    /// An empty table of about so many bytes at most; `None` when the system gives no memory.
    pub(super) fn new(interval: u64, bytes: u64) -> Option<Self> {
        // SAFETY: zero is an empty place and a word of zero.
        unsafe {
            Some(Self {
                places: Zeroed::new(PLACES)?,
                words: Zeroed::new(places::<AtomicU64>(bytes, MOST_WORDS))?,
                used: AtomicUsize::new(0),
                order: Zeroed::new(PLACES)?,
                count: AtomicUsize::new(0),
                interval,
            })
        }
    }

    /// Bytes of the tables.
    pub(super) fn bytes(&self) -> u64 {
        let words = size_of_val(&*self.words) + size_of_val(&*self.order);
        (size_of_val(&*self.places) + words) as u64
    }

    /// The number of a stack, found or given; `None` when the table is full.
    pub(super) fn number(&self, found: &Found<'_>) -> Option<u32> {
        let hash = found.hash();
        for step in 0..WINDOW {
            let at = ((hash >> 40) as usize + step) % PLACES;
            let place = &self.places[at];
            match place
                .hash
                .compare_exchange(0, hash, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => {
                    self.write(place, found);
                    let next = self.count.fetch_add(1, Ordering::Relaxed);
                    self.order[next % PLACES].store(at as u32 + 1, Ordering::Release);
                    return Some(at as u32);
                }
                Err(known) if known == hash => return Some(at as u32),
                Err(_) => {}
            }
        }
        None
    }

    /// Writes the frames of a new stack; if the table is full, it has no frames.
    fn write(&self, place: &Place, found: &Found<'_>) {
        let length = found.native.len() + 2 * found.java.len();
        let at = self.used.fetch_add(length, Ordering::Relaxed);
        let [native, java] = if at + length <= self.words.len() {
            for (word, slot) in found.words().zip(&self.words[at..]) {
                slot.store(word, Ordering::Relaxed);
            }
            [found.native.len() as u64, found.java.len() as u64]
        } else {
            [0, 0]
        };
        let frames = (at as u64 + 1) << 20 | native << 10 | java;
        place.frames.store(frames, Ordering::Release);
    }

    /// A block was allocated.
    pub(super) fn allocated(&self, block: Block) {
        self.places[block.stack as usize % PLACES]
            .allocated
            .add(block.size, self.interval);
    }

    /// A block was freed.
    pub(super) fn freed(&self, block: Block) {
        self.places[block.stack as usize % PLACES]
            .freed
            .add(block.size, self.interval);
    }

    /// Numbers of the stacks from the `first` on, in order of their first block. One that is
    /// being written ends the list.
    pub(super) fn numbers(&self, first: usize) -> impl Iterator<Item = u32> {
        let numbers = self.order.iter().skip(first);
        numbers.map_while(|number| number.load(Ordering::Acquire).checked_sub(1))
    }

    /// Counts of a stack.
    pub(super) fn counts(&self, number: u32) -> Counts {
        let place = &self.places[number as usize % PLACES];
        // Frees are read first: a block that is freed meanwhile was allocated before.
        let freed = place.freed.read();
        let allocated = place.allocated.read();
        Counts { allocated, freed }
    }

    /// The frames of a stack.
    pub(super) fn stack(&self, number: u32) -> Stack {
        let frames = self.places[number as usize % PLACES]
            .frames
            .load(Ordering::Acquire);
        let (native, java) = ((frames >> 10 & 0x3ff) as usize, (frames & 0x3ff) as usize);
        let at = (frames >> 20).saturating_sub(1) as usize;
        let word = |index: usize| self.words[at + index].load(Ordering::Relaxed);
        Stack {
            native: (0..native).map(|index| word(index) as usize).collect(),
            java: (0..java)
                .map(|index| native + 2 * index)
                .map(|index| (word(index) as usize, word(index + 1) as u32 as i32))
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jvmti::sys::MethodPtr;

    #[test]
    fn equal_stacks_have_one_number_and_keep_their_frames() {
        let stacks = Stacks::new(0, 64 << 20).expect("memory");
        let java = [7_usize, 8].map(|method| CallFrame {
            bci: -3,
            method: MethodPtr(method as *mut _),
        });
        let number = |native: &[usize], java: &[CallFrame]| {
            stacks.number(&Found { native, java }).expect("room")
        };
        let one = number(&[1, 2], &java);
        assert_eq!(one, number(&[1, 2], &java));
        assert_ne!(one, number(&[1, 2], &java[..1]));
        assert_ne!(one, number(&[1], &java));
        let stack = stacks.stack(one);
        assert_eq!(
            (stack.native, stack.java),
            (vec![1, 2], vec![(7, -3), (8, -3)])
        );
        let block = Block {
            stack: one,
            size: 10,
            is_old: false,
        };
        stacks.allocated(block);
        stacks.allocated(Block {
            stack: one,
            size: 5,
            is_old: false,
        });
        stacks.freed(block);
        let expected = Counts {
            allocated: [2, 15],
            freed: [1, 10],
        };
        assert_eq!(stacks.counts(one), expected);
        assert_eq!(stacks.numbers(0).count(), 3);
        assert_eq!(stacks.numbers(0).next(), Some(one));
    }

    #[test]
    fn a_recorded_block_stands_for_those_that_were_not() {
        assert_eq!(weight(10, 0), 1.0);
        assert!((weight(1, 1 << 20) - f64::from(1 << 20)).abs() < 1.0);
        assert!((weight(1 << 30, 1 << 10) - 1.0).abs() < 1e-9);
    }
}
