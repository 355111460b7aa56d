//! Chosen objects of a heap: one bit per object, so that a set of half the heap costs no more than a set of three
//! objects. Threads share the work on large sets.

use crate::tables::ranking::Largest;
use heap_graph::{Bits, Columns, Heap, ObjIdx};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// A set of objects of one heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    bits: Bits,
    /// Number of members.
    len: u64,
    /// True when it is known that everything below a member in the dominator tree is a member.
    closed: bool,
}

/// A number of words, of 64 objects each, for which more threads are not worthwhile.
const FEW_WORDS: usize = 1 << 8;

impl Selection {
    /// The empty set.
    pub fn none(heap: &Heap) -> Selection {
        Selection::of_bits(Bits::new(heap.len()))
    }

    /// The set of these objects.
    pub fn of(heap: &Heap, objects: impl IntoIterator<Item = ObjIdx>) -> Selection {
        let mut set = Selection::none(heap);
        for object in objects {
            set.insert(object);
        }
        set
    }

    /// The objects that pass a test, which runs for all of them.
    pub fn by(heap: &Heap, test: impl Fn(&Columns<'_>, ObjIdx) -> bool + Sync) -> Selection {
        let columns = heap.columns();
        let words = heap.len().div_ceil(64) as usize;
        let parts = in_parts(heap, words, |range| {
            let word = |at: usize| {
                let first = at as u64 * 64;
                let objects = first..(first + 64).min(heap.len());
                objects.fold(0u64, |word, object| {
                    word | u64::from(test(&columns, ObjIdx(object))) << (object % 64)
                })
            };
            range.map(word).collect::<Vec<u64>>()
        });
        let mut parts = parts.into_iter();
        let mut words = parts.next().unwrap_or_default();
        parts.for_each(|part| words.extend(part));
        Selection::of_bits(Bits::of_words(words))
    }

    /// As [`by`](Self::by), but tests only some objects: `windows` ranges of `each` objects, spread evenly over the
    /// heap.
    pub(crate) fn by_some(
        heap: &Heap,
        windows: u64,
        each: u64,
        test: impl Fn(&Columns<'_>, ObjIdx) -> bool + Sync,
    ) -> Selection {
        let columns = heap.columns();
        let begins = |n: u64| heap.len() / windows * n;
        let found = in_parts(heap, windows as usize * FEW_WORDS, |range| {
            let windows = (range.start / FEW_WORDS) as u64..(range.end / FEW_WORDS) as u64;
            let objects = windows.flat_map(|n| begins(n)..(begins(n) + each).min(heap.len()));
            let passed = objects.map(ObjIdx).filter(|o| test(&columns, *o));
            passed.collect::<Vec<ObjIdx>>()
        });
        Selection::of(heap, found.into_iter().flatten())
    }

    fn of_bits(bits: Bits) -> Selection {
        Selection {
            len: bits.count(),
            bits,
            closed: false,
        }
    }

    /// How many words of 64 objects it has.
    fn words(&self) -> usize {
        self.bits.words().len()
    }

    /// Number of members.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True without members.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// True when everything below a member in the dominator tree is known to be a member.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        self.words() * 8
    }

    /// True for a member.
    #[inline]
    pub fn contains(&self, object: ObjIdx) -> bool {
        self.bits.contains(object.0)
    }

    /// Adds an object; false if it is a member already or not an object of the heap.
    pub fn insert(&mut self, object: ObjIdx) -> bool {
        let new = self.bits.insert(object.0);
        self.len += u64::from(new);
        self.closed &= !new;
        new
    }

    /// Keeps only members that are in the other set as well.
    pub(crate) fn keep(&mut self, other: &Selection) {
        self.bits.keep(&other.bits);
        *self = Selection::of_bits(std::mem::take(&mut self.bits));
    }

    /// The members, by number.
    pub fn iter(&self) -> impl Iterator<Item = ObjIdx> + '_ {
        self.bits.members(0..self.words()).map(ObjIdx)
    }

    /// Processes the members on several threads: `work` gets some of them, in the order of their numbers. The results
    /// are in the order of members.
    pub(crate) fn in_parts<T: Send>(
        &self,
        heap: &Heap,
        work: impl Fn(&mut dyn Iterator<Item = ObjIdx>) -> T + Sync,
    ) -> Vec<T> {
        in_parts(heap, self.words(), |range| {
            work(&mut self.bits.members(range).map(ObjIdx))
        })
    }

    /// The `count` members with the largest keys, largest first, ties by number.
    pub(crate) fn largest(
        &self,
        heap: &Heap,
        count: usize,
        key: impl Fn(ObjIdx) -> u64 + Sync,
    ) -> Vec<ObjIdx> {
        if count as u64 > self.len / 4 {
            // Most of them: sorting is cheaper than keeping the largest.
            let mut all: Vec<ObjIdx> = self.iter().collect();
            all.sort_by_cached_key(|o| std::cmp::Reverse((key(*o), std::cmp::Reverse(*o))));
            all.truncate(count);
            return all;
        }
        let parts = self.in_parts(heap, |members| {
            let mut largest = Largest::new(count);
            members.for_each(|o| largest.offer(key(o), o));
            largest
        });
        let joined = parts.into_iter().reduce(|mut all, one| {
            all.join(one);
            all
        });
        joined.map_or_else(Vec::new, Largest::into_sorted)
    }

    /// The members and everything below them in the dominator tree, level by level, so that the lists of the index are
    /// read in their order. Deep and narrow parts (chains of millions exist) are followed object by object.
    pub(crate) fn with_all_below(&self, heap: &Heap) -> Selection {
        let words = self.bits.words();
        let found: Vec<AtomicU64> = words.iter().map(|w| AtomicU64::new(*w)).collect();
        // True if the object was not a member yet.
        let add = |words: &[AtomicU64], object: ObjIdx| {
            let bit = 1 << (object.0 % 64);
            let word = words.get((object.0 / 64) as usize);
            word.is_some_and(|w| w.fetch_or(bit, Ordering::Relaxed) & bit == 0)
        };
        let wide = words.len() as u64 / 8;
        let mut level = self.clone();
        while !level.is_empty() {
            if level.len > wide {
                let next: Vec<AtomicU64> = words.iter().map(|_| AtomicU64::new(0)).collect();
                in_parts(heap, words.len(), |range| {
                    heap.for_dominated(range.start, &level.bits.words()[range], |child| {
                        if add(&found, child) {
                            add(&next, child);
                        }
                    });
                });
                level = Selection::of_bits(plain(next));
                continue;
            }
            let mut list: Vec<ObjIdx> = level.iter().collect();
            while !list.is_empty() && list.len() as u64 <= wide.max(1 << 10) {
                let children = list.iter().flat_map(|o| heap.dominated(Some(*o)));
                list = children.filter(|child| add(&found, *child)).collect();
            }
            level = Selection::of(heap, list);
        }
        Selection {
            closed: true,
            ..Selection::of_bits(plain(found))
        }
    }
}

fn plain(words: Vec<AtomicU64>) -> Bits {
    Bits::of_words(words.into_iter().map(AtomicU64::into_inner).collect())
}

/// Splits `0..words` among threads; the results are in the order of the ranges.
fn in_parts<T: Send>(heap: &Heap, words: usize, work: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    let parts = heap.thread_count().min(words / FEW_WORDS).max(1);
    let cut = |n: usize| words * n / parts;
    let run = |part: usize| work(cut(part)..cut(part + 1));
    std::thread::scope(|scope| {
        let run = &run;
        let others = (1..parts).map(|part| {
            let thread = std::thread::Builder::new().spawn_scoped(scope, move || run(part));
            (part, thread)
        });
        let others: Vec<_> = others.collect();
        let mut out = vec![run(0)];
        out.extend(others.into_iter().map(|(part, thread)| {
            match thread {
                Ok(thread) => thread
                    .join()
                    .unwrap_or_else(|p| std::panic::resume_unwind(p)),
                // The system starts no further thread.
                Err(_) => run(part),
            }
        }));
        out
    })
}
