//! Parts of the work of an analysis, one after the other, so that it stays within the memory limit.

use crate::sets::object_set::ObjectSet;
use heap_graph::ObjIdx;

/// One of several parts of all numbers (hashes or objects) of about the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    number: u64,
    of: u64,
}

impl Default for Part {
    fn default() -> Part {
        Part::ALL
    }
}

impl Part {
    /// Everything.
    pub(crate) const ALL: Part = Part { number: 0, of: 1 };

    /// The parts of a division.
    pub(crate) fn of(parts: u64) -> impl Iterator<Item = Part> {
        (0..parts).map(move |number| Part { number, of: parts })
    }

    /// The other parts of the division.
    pub(crate) fn others(self) -> impl Iterator<Item = Part> {
        Part::of(self.of).filter(move |part| *part != self)
    }

    /// A half of this part, which is a part of twice as many; `None` if there would be too many.
    pub(crate) fn half(self) -> Option<Part> {
        let of = self.of * 2;
        (of <= 64).then_some(Part { of, ..self })
    }

    /// Whether there is no other part.
    pub(crate) fn is_all(self) -> bool {
        self.of == 1
    }

    /// Whether a number is in this part.
    #[inline]
    pub(crate) fn has(self, n: u64) -> bool {
        // Any dump may have numbers with a common factor; the high bits of the product differ all the same.
        self.of == 1 || (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % self.of == self.number
    }
}

/// The objects that a walk collects.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Only<'a> {
    /// Those of a part.
    Part(Part),
    /// Members of a set.
    Set(&'a ObjectSet),
}

impl Only<'_> {
    /// Whether an object is one of them.
    #[inline]
    pub(crate) fn has(self, object: ObjIdx) -> bool {
        match self {
            Only::Part(part) => part.has(object.0),
            Only::Set(set) => set.rank(object).is_some(),
        }
    }
}
