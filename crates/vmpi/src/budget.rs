//! How much memory the tables of a profiler may use, and which of them stop growing when it is used up.
//!
//! All tables share one lock-free counter. A table reserves bytes before it grows and releases them when it shrinks.
//! Charges are for the capacity of the tables, including the data that the other side keeps about the same item, so
//! that one reservation is enough.
//!
//! Each kind of data may fill the budget up to its own level, so that the least useful kind stops first: single
//! objects, then stacks, then sites, then names. Data that cannot be refused (a live thread) is charged without a
//! reservation and uses the space above the last level.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The kind of data in a table, the least useful first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Worth {
    /// Single objects, references and waiting events: others of the same kind represent them.
    Objects,
    /// Stacks and calling contexts: without one, its events are counted without a stack.
    Stacks,
    /// Sums of a stack: without them, its events are added to the sums of the class.
    Sites,
    /// Names of classes and methods: without one, the name is unknown.
    Names,
}

impl Worth {
    /// The sixteenths of the budget that may be in use after a reservation of this kind.
    const fn level(self) -> u64 {
        match self {
            Self::Objects => 10,
            Self::Stacks => 11,
            Self::Sites => 12,
            Self::Names => 13,
        }
    }
}

/// The sixteenths that objects may always use, whatever else is in use.
const FOR_OBJECTS: u64 = 2;
/// If this many sixteenths are in use, objects should be reduced.
const CROWDED: u64 = 8;

/// A limit in bytes, and how many of them are in use.
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    used: AtomicU64,
    /// The bytes in use for objects.
    objects: AtomicU64,
    /// The highest number of bytes in use so far.
    most: AtomicU64,
    /// How often a reservation was refused.
    refused: AtomicU64,
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(Self::DEFAULT)
    }
}

impl Budget {
    /// The default in bytes.
    pub const DEFAULT: u64 = 256 << 20;
    /// The smallest budget: the data that exists before anything is recorded fits into it.
    pub const LEAST: u64 = 16 << 20;

    /// An empty budget with this limit.
    #[must_use]
    pub const fn new(limit: u64) -> Self {
        Self {
            limit,
            used: AtomicU64::new(0),
            objects: AtomicU64::new(0),
            most: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Bytes that may be used.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Bytes in use.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used.load(Relaxed)
    }

    /// The highest number of bytes in use so far.
    #[must_use]
    pub fn most(&self) -> u64 {
        self.most.load(Relaxed)
    }

    /// How often a reservation was refused.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    fn part(&self, sixteenths: u64) -> u64 {
        self.limit / 16 * sixteenths
    }

    /// Reserves these bytes; returns false if they exceed the level of their kind.
    #[must_use]
    pub fn take(&self, worth: Worth, bytes: u64) -> bool {
        let now = self.used.fetch_add(bytes, Relaxed) + bytes;
        let mut fits = now <= self.part(worth.level());
        if worth == Worth::Objects {
            let of_objects = self.objects.fetch_add(bytes, Relaxed) + bytes;
            fits |= of_objects <= self.part(FOR_OBJECTS);
        }
        if !fits {
            self.give(worth, bytes);
            self.refused.fetch_add(1, Relaxed);
            return false;
        }
        self.most.fetch_max(now, Relaxed);
        true
    }

    /// Whether these bytes would not exceed the level of their kind: for memory that is used for a moment, beside the
    /// data of the recording.
    #[must_use]
    pub fn has_room(&self, worth: Worth, bytes: u64) -> bool {
        self.used().saturating_add(bytes) <= self.part(worth.level())
    }

    /// Counts a refusal that the caller has decided.
    pub fn refuse(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    /// Adds bytes that cannot be refused.
    pub fn charge(&self, bytes: u64) {
        let now = self.used.fetch_add(bytes, Relaxed) + bytes;
        self.most.fetch_max(now, Relaxed);
    }

    /// Releases reserved bytes.
    pub fn give(&self, worth: Worth, bytes: u64) {
        if worth == Worth::Objects {
            self.objects.fetch_sub(bytes, Relaxed);
        }
        self.used.fetch_sub(bytes, Relaxed);
    }

    /// Releases charged bytes.
    pub fn discharge(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Relaxed);
    }

    /// Whether objects should be reduced before reservations are refused.
    #[must_use]
    pub fn is_crowded(&self) -> bool {
        let objects = self.objects.load(Relaxed);
        let has_more_than_its_own = objects > self.part(FOR_OBJECTS) * 3 / 4;
        self.used() > self.part(CROWDED) && has_more_than_its_own
    }

    /// A note for a budget that was too small; `None` if it was large enough.
    #[must_use]
    pub fn shortage(&self, of_what: &str) -> Option<String> {
        (self.refused() > 0).then(|| {
            format!(
                "{of_what}: at most {} of {} bytes were in use, and more was refused {} times; a larger memory= or a smaller \
                 depth= avoids that",
                self.most(),
                self.limit,
                self.refused()
            )
        })
    }
}

/// Both budgets of a recording.
#[derive(Debug)]
pub struct Memory {
    /// Memory of the process.
    pub native: Budget,
    /// Memory in the program's heap: a quarter of the other.
    pub heap: Budget,
}

impl Default for Memory {
    fn default() -> Self {
        Self::new(Budget::DEFAULT)
    }
}

impl Memory {
    /// The budgets for this many bytes of native memory, and a quarter of that in the heap.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self {
            native: Budget::new(limit),
            heap: Budget::new(limit / 4),
        }
    }

    /// Notes for the budgets that were too small.
    pub fn shortages(&self) -> impl Iterator<Item = String> {
        let native = self.native.shortage("memory= is reached");
        let heap = self.heap.shortage("memory= is reached in the Java heap");
        native.into_iter().chain(heap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_useful_stops_first_and_nothing_goes_beyond_the_limit() {
        let budget = Budget::new(16_000);
        let fill = |worth| (0..).take_while(|_| budget.take(worth, 100)).count();
        assert_eq!(fill(Worth::Objects), 100);
        assert!(budget.is_crowded());
        assert_eq!(fill(Worth::Stacks), 10);
        assert_eq!(fill(Worth::Sites), 10);
        assert_eq!(fill(Worth::Names), 10);
        assert_eq!((budget.used(), budget.refused()), (13_000, 4));
        budget.give(Worth::Objects, 10_000);
        assert_eq!(fill(Worth::Objects), 70, "up to their level");
        assert_eq!((budget.used(), budget.most()), (10_000, 13_000));
        assert!(budget.has_room(Worth::Names, 3000) && !budget.has_room(Worth::Names, 3001));
        budget.charge(500);
        budget.discharge(500);
        assert_eq!(budget.used(), 10_000);
    }

    #[test]
    fn objects_have_some_room_whatever_else_there_is() {
        let budget = Budget::new(16_000);
        while budget.take(Worth::Names, 100) {}
        let objects = (0..).take_while(|_| budget.take(Worth::Objects, 100));
        assert_eq!(objects.count(), 20);
        assert_eq!(budget.used(), 15_000);
    }

    #[test]
    fn threads_together_never_take_more_than_there_is() {
        let budget = &Budget::new(16 << 10);
        let taken: u64 = std::thread::scope(|scope| {
            let take = || {
                (0..100_000)
                    .filter(|_| budget.take(Worth::Names, 8))
                    .count()
            };
            let all: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
            all.into_iter()
                .map(|one| one.join().unwrap_or(0) as u64)
                .sum()
        });
        assert_eq!(budget.used(), 8 * taken);
        assert!(budget.used() <= 13 << 10 && budget.most() <= 13 << 10);
        assert!(budget.refused() > 0);
    }

    #[test]
    fn who_had_enough_is_not_mentioned() {
        let memory = Memory::new(Budget::LEAST);
        assert_eq!(memory.shortages().count(), 0);
        assert!(!memory.heap.take(Worth::Names, Budget::LEAST));
        let printed: Vec<String> = memory.shortages().collect();
        let expected = "memory= is reached in the Java heap: at most 0 of 4194304 bytes were in use, and more was \
                        refused 1 times; a larger memory= or a smaller depth= avoids that";
        assert_eq!(printed, [expected]);
    }
}
