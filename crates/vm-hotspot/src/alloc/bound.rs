//! How many objects may be tracked if each tracked object keeps garbage alive.
//!
//! Young collections of generational ZGC treat weak references as strong. A tracked object, with everything it refers
//! to, stays until the old generation has been collected, too. If such objects fill the heap, the program waits for
//! memory at each allocation (`bench/zgc.py` measures this).
//!
//! A limit of their number does not help if one freed object refers to all later ones. So heap usage is read, too: if
//! the heap stays nearly full over some collections, the agent has all of it collected. If many tracked objects of
//! a site were dead, their number is reduced further and further. Otherwise the program's own data fill the heap.

use jvmti::{Env, Live};

use crate::vm::collector::Collector;
use crate::vm::vm_structs::VmStructs;

/// Bytes from which on an array is large. Large arrays are thinned separately, because a few of them take as much
/// memory as all other tracked objects.
pub(crate) const LARGE: u64 = 1 << 10;

/// How many objects may be tracked, and bytes of the large arrays among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) objects: usize,
    pub(crate) large_bytes: u64,
    /// Maximum size of the heap in bytes, if heap usage is read.
    pub(crate) heap: Option<u64>,
}

impl Bound {
    /// At most this many objects.
    pub(crate) fn new(objects: usize) -> Self {
        /// Large arrays may take a 64th of a heap with [`Bound::of_heap`].
        const LARGE_BYTES_EACH: u64 = Bound::HEAP_OF_EACH / 64;
        Self {
            objects,
            large_bytes: objects as u64 * LARGE_BYTES_EACH,
            heap: None,
        }
    }

    /// Bytes of a program's heap for each tracked object.
    const HEAP_OF_EACH: u64 = 128 << 10;

    /// For a heap with this maximum size: as many objects as take a small part of it (`bench/zgc.py` measures the
    /// effect).
    pub(crate) fn of_heap(bytes: u64) -> Self {
        const LEAST: u64 = 1 << 11;
        const MOST: u64 = 1 << 20;
        let objects = (bytes / Self::HEAP_OF_EACH).clamp(LEAST, MOST);
        Self::new(objects as usize)
    }

    /// For objects that are sampled once per `interval` bytes and cannot be thinned: as many as can be alive, and large
    /// arrays up to an eighth of the heap.
    pub(crate) fn of_samples(heap: u64, interval: u64) -> Self {
        let alive = usize::try_from(heap / interval.max(1)).unwrap_or(usize::MAX);
        Self {
            objects: alive.max(Self::of_heap(heap).objects),
            large_bytes: heap / 8,
            heap: None,
        }
    }

    /// The same for a heap of this size in which tracked objects keep garbage alive.
    pub(crate) fn within(self, heap: u64) -> Self {
        Self {
            heap: Some(heap),
            ..self
        }
    }

    /// Whether these objects, with these bytes of large arrays, are within the bound.
    pub(crate) fn includes(&self, (objects, large_bytes): (usize, u64)) -> bool {
        objects <= self.objects && large_bytes <= self.large_bytes
    }

    /// Whether this many objects must be thinned, so that others can be tracked.
    pub(crate) fn has_many(&self, objects: usize) -> bool {
        objects > self.objects / 2
    }

    /// Whether large arrays with this many bytes must be thinned.
    pub(crate) fn has_many_large(&self, large_bytes: u64) -> bool {
        large_bytes > self.large_bytes / 2
    }
}

/// The minimum of heap usage over some collections. Usage right after a collection is not known, because the collector
/// runs concurrently with the program.
#[derive(Debug)]
pub(crate) struct LowWater {
    least: u64,
    looks: u32,
    /// Pauses of the collector before the first reading.
    before: u64,
}

impl LowWater {
    /// Readings and pauses of the collector that a minimum needs; each collection has three pauses.
    const LOOKS: u32 = 10;
    const PAUSES: u64 = 6;

    /// Starts after this many pauses.
    pub(crate) fn new(pauses: u64) -> Self {
        Self {
            least: u64::MAX,
            looks: 0,
            before: pauses,
        }
    }

    /// Adds a reading: bytes in use after this many pauses. Returns the minimum when there were enough readings, and
    /// starts again.
    pub(crate) fn look(&mut self, used: u64, pauses: u64) -> Option<u64> {
        self.least = self.least.min(used);
        self.looks += 1;
        if self.looks < Self::LOOKS || pauses < self.before + Self::PAUSES {
            return None;
        }
        let least = self.least;
        *self = Self::new(pauses);
        Some(least)
    }
}

/// How often a heap that stays nearly full is collected: each time, but after a collection that shows that the tracked
/// objects keep no garbage, more and more rarely.
#[derive(Debug, Default)]
pub(crate) struct Pauses {
    left: u32,
    last: u32,
}

impl Pauses {
    /// The longest pause. The heap is found nearly full once a second at most.
    const LONGEST: u32 = 255;

    /// The heap is found nearly full: whether it is to be collected now.
    pub(crate) fn is_over(&mut self) -> bool {
        let is_over = self.left == 0;
        self.left = self.left.saturating_sub(1);
        is_over
    }

    /// It was collected, and the tracked objects have kept garbage or not.
    pub(crate) fn follow(&mut self, was_garbage: bool) {
        self.last = match was_garbage {
            true => 0,
            false => (2 * self.last + 1).min(Self::LONGEST),
        };
        self.left = self.last;
    }
}

/// Whether a heap of `heap` bytes is nearly full if `used` bytes stay in use.
pub(crate) fn is_nearly_full(heap: u64, used: u64) -> bool {
    used > heap / 8 * 7
}

/// Whether weak references keep garbage alive in this VM.
pub(crate) fn is_needed(env: Env<Live>) -> bool {
    let structs = VmStructs::load().unwrap_or_default();
    let version = env.system_property("java.vm.specification.version");
    let version = version.and_then(|version| version.parse().ok());
    Collector::of(&structs) == Collector::Z
        && is_generational(structs.flag("ZGenerational"), version)
}

/// JDK 21 to 23 have both kinds of ZGC and a flag; later JDKs have only the generational one.
fn is_generational(flag: Option<bool>, version: Option<u32>) -> bool {
    flag.unwrap_or(version.is_some_and(|version| version > 23))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_follows_the_heap_within_limits() {
        let objects = |mib: u64| Bound::of_heap(mib << 20).objects;
        let found = [0, 16, 512, 2048, 1 << 20].map(objects);
        assert_eq!(found, [2048, 2048, 4096, 16384, 1 << 20]);
        assert_eq!(Bound::of_heap(512 << 20).large_bytes, 8 << 20);
        let sampled =
            [0, 4 << 10, 64 << 10, 1 << 20].map(|i| Bound::of_samples(512 << 20, i).objects);
        assert_eq!(sampled, [512 << 20, 1 << 17, 1 << 13, 1 << 12]);
    }

    #[test]
    fn objects_are_made_fewer_before_they_are_refused() {
        let bound = Bound::new(1000);
        assert!(!bound.has_many(500) && bound.has_many(501));
        assert!(bound.includes((1000, 2_048_000)));
        assert!(!bound.includes((1001, 0)) && !bound.includes((1, 2_048_001)));
        assert!(!bound.has_many_large(1_024_000) && bound.has_many_large(1_024_001));
    }

    #[test]
    fn the_heap_is_full_when_it_stays_so_over_collections() {
        let mut low_water = LowWater::new(100);
        let mut look = |used, pauses| low_water.look(used, pauses);
        for _ in 0..20 {
            assert_eq!(look(900, 105), None, "too few pauses");
        }
        assert_eq!(look(950, 106), Some(900));
        for pauses in 107..116 {
            assert_eq!(look(990, pauses), None, "too few looks");
        }
        assert_eq!(look(980, 116), Some(980));
        assert!(is_nearly_full(1000, 900) && !is_nearly_full(1000, 800));
    }

    #[test]
    fn a_heap_full_of_live_objects_is_collected_more_and_more_rarely() {
        let mut pauses = Pauses::default();
        let mut between = |was_garbage| {
            let waited = (0..).take_while(|_| !pauses.is_over()).count();
            pauses.follow(was_garbage);
            waited
        };
        let found = [false, false, false, true, false, false].map(&mut between);
        assert_eq!(found, [0, 1, 3, 7, 0, 1]);
    }

    #[test]
    fn each_release_says_in_its_way_that_zgc_has_generations() {
        let check = |flag, version, expected| {
            assert_eq!(is_generational(flag, Some(version)), expected, "{version}");
        };
        check(None, 17, false);
        check(Some(false), 21, false);
        check(Some(true), 21, true);
        check(Some(false), 23, false);
        check(None, 25, true);
    }
}
