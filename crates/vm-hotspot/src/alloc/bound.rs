//! How many objects may be tracked where each of them keeps garbage.
//!
//! The young collections of generational ZGC take weak references for strong ones. An object that is tracked stays, with all
//! that it refers to, until the old generation has been collected, too. A program whose heap fills with them waits for memory
//! at each allocation (`bench/zgc.py` measures it).

use crate::host::spaces::Collector;
use crate::host::vm_structs::VmStructs;

/// Bytes from which on an array is large. Large arrays are made fewer by themselves: few of them take as much as all other
/// tracked objects.
pub(crate) const LARGE: u64 = 1 << 10;

/// How many objects may be tracked, and bytes of the large arrays among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bound {
    pub(crate) objects: usize,
    pub(crate) large_bytes: u64,
}

impl Bound {
    /// At most so many.
    pub(crate) fn new(objects: usize) -> Self {
        /// Large arrays may take a 64th of a heap with [`Bound::of_heap`].
        const LARGE_BYTES_EACH: u64 = Bound::HEAP_OF_EACH / 64;
        Self {
            objects,
            large_bytes: objects as u64 * LARGE_BYTES_EACH,
        }
    }

    /// Bytes of a program's heap for each tracked object.
    const HEAP_OF_EACH: u64 = 128 << 10;

    /// What was measured to do no harm in a heap that may have so many bytes.
    pub(crate) fn of_heap(bytes: u64) -> Self {
        const LEAST: u64 = 1 << 11;
        const MOST: u64 = 1 << 20;
        let objects = (bytes / Self::HEAP_OF_EACH).clamp(LEAST, MOST);
        Self::new(objects as usize)
    }

    /// Whether so many objects, with so many bytes of large arrays, are within it.
    pub(crate) fn includes(&self, (objects, large_bytes): (usize, u64)) -> bool {
        objects <= self.objects && large_bytes <= self.large_bytes
    }

    /// Whether so many are to be made fewer, so that there is room for others.
    pub(crate) fn has_many(&self, objects: usize) -> bool {
        objects > self.objects / 2
    }

    /// Whether large arrays of so many bytes are to be made fewer.
    pub(crate) fn has_many_large(&self, large_bytes: u64) -> bool {
        large_bytes > self.large_bytes / 2
    }
}

/// Whether the VM, of this version, keeps garbage for the sake of weak references.
pub(crate) fn is_needed(version: Option<u32>) -> bool {
    let structs = VmStructs::load().unwrap_or_default();
    Collector::of(&structs) == Collector::Z
        && is_generational(structs.flag("ZGenerational"), version)
}

/// JDK 21 to 23 have both kinds of ZGC and a flag, later ones only the generational one.
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
