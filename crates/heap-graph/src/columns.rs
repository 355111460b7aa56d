//! Direct access to columns, for a scan of all objects; does not look up the column for each object.

use crate::index::Tag;
use crate::packed::{Column, Packed, width_for};
use crate::{ClassIdx, Dominator, Heap, ObjIdx};
use hprof::{Bytes, ObjectId};

/// The columns of all objects, looked up once; the same queries as in [`Heap`]. An object number that the heap does not
/// have is unreachable and of size 0.
#[derive(Clone, Copy, Debug)]
pub struct Columns<'h> {
    classes: Packed<'h>,
    last_class: u64,
    shallow: Option<Column<'h>>,
    below: Option<Column<'h>>,
    dominators: Packed<'h>,
    unit: u64,
    len: u64,
}

impl Columns<'_> {
    /// The class of an object; `java.lang.Class` for class objects.
    #[inline]
    pub fn class_of(&self, object: ObjIdx) -> ClassIdx {
        ClassIdx(self.classes.get(object.0).min(self.last_class) as u32)
    }

    /// Shallow size.
    #[inline]
    pub fn shallow(&self, object: ObjIdx) -> Bytes {
        Bytes(self.shallow.map_or(0, |c| c.get(object.0)) * self.unit)
    }

    /// Retained size; 0 when unreachable.
    #[inline]
    pub fn retained(&self, object: ObjIdx) -> Bytes {
        if !self.is_reachable(object) {
            return Bytes(0);
        }
        self.retained_if_reachable(object)
    }

    /// Retained size of an object that is known to be reachable.
    #[inline]
    fn retained_if_reachable(&self, object: ObjIdx) -> Bytes {
        Bytes(self.shallow(object).0 + self.below.map_or(0, |c| c.get(object.0)) * self.unit)
    }

    /// True when some root reaches the object.
    #[inline]
    pub fn is_reachable(&self, object: ObjIdx) -> bool {
        object.0 < self.dominators.len() && self.dominators.get(object.0) <= self.len
    }

    /// The immediate dominator.
    #[inline]
    pub fn dominator(&self, object: ObjIdx) -> Dominator {
        if object.0 >= self.dominators.len() {
            return Dominator::Unreachable;
        }
        match self.dominators.get(object.0) {
            n if n < self.len => Dominator::Object(ObjIdx(n)),
            n if n == self.len => Dominator::Root,
            _ => Dominator::Unreachable,
        }
    }
}

impl Heap {
    /// The columns; bulk access to many objects.
    pub fn columns(&self) -> Columns<'_> {
        let classes = self.classes().len() as u64;
        let len = self.len();
        let packed = |tag, width| Packed::new(self.index.bytes(tag), width, len);
        Columns {
            classes: packed(Tag::Classes, width_for(classes)),
            last_class: classes.saturating_sub(1),
            shallow: Column::new(self.index.bytes(Tag::Shallow)),
            below: Column::new(self.index.bytes(Tag::Retained)),
            dominators: packed(Tag::Dominators, width_for(len + 1)),
            unit: self.unit(),
            len,
        }
    }

    /// Ids of the objects from `first` on, in the order of numbers. Returns how many of `out`
    /// were filled: less than requested only at the end.
    pub fn read_ids(&self, first: ObjIdx, out: &mut [ObjectId]) -> usize {
        let mut ids = self.ids_from(first);
        self.read_block(first, out, |_| ids.next().unwrap_or(ObjectId::NULL))
    }

    /// Classes of the objects, as [`read_ids`](Self::read_ids).
    pub fn read_classes(&self, first: ObjIdx, out: &mut [ClassIdx]) -> usize {
        let columns = self.columns();
        self.read_block(first, out, |object| columns.class_of(object))
    }

    /// Shallow sizes, as [`read_ids`](Self::read_ids).
    pub fn read_shallow(&self, first: ObjIdx, out: &mut [Bytes]) -> usize {
        let columns = self.columns();
        self.read_block(first, out, |object| columns.shallow(object))
    }

    /// Retained sizes (0 for unreachable objects), as [`read_ids`](Self::read_ids).
    pub fn read_retained(&self, first: ObjIdx, out: &mut [Bytes]) -> usize {
        let columns = self.columns();
        self.read_block(first, out, |object| columns.retained(object))
    }

    /// The objects that an object immediately dominates, by id, with retained sizes; faster than a query for each size.
    pub fn dominated_retained(&self, parent: ObjIdx) -> impl Iterator<Item = (ObjIdx, Bytes)> + '_ {
        let columns = self.columns();
        let sized = move |object| (object, columns.retained_if_reachable(object));
        self.dominated(Some(parent)).map(sized)
    }

    /// Calls `child` with all objects that the members of a set immediately dominate. The set has a bit per object, 64
    /// in a word; `words` are those from word `first` on. The lists are read in the order of the index, which for large
    /// sets is many times faster than [`dominated`](Self::dominated).
    pub fn for_dominated(&self, first: usize, words: &[u64], mut child: impl FnMut(ObjIdx)) {
        let Some(counts) = Column::new(self.index.bytes(Tag::DominatedCounts)) else {
            return;
        };
        let starts = self.index.array::<u64>(Tag::DominatedStarts);
        let list = Packed::new(
            self.index.bytes(Tag::Dominated),
            width_for(self.len()),
            u64::MAX,
        );
        for (block, word) in (first..).zip(words) {
            let Some(mut at) = starts.get(block).copied().filter(|_| *word != 0) else {
                continue;
            };
            let last = 63 - u64::from(word.leading_zeros());
            for bit in 0..=last {
                let count = counts.get(block as u64 * 64 + bit);
                if word >> bit & 1 == 1 {
                    (at..at + count).for_each(|n| child(ObjIdx(list.get(n))));
                }
                at += count;
            }
        }
    }

    fn read_block<T>(
        &self,
        first: ObjIdx,
        out: &mut [T],
        mut get: impl FnMut(ObjIdx) -> T,
    ) -> usize {
        let count = self.len().saturating_sub(first.0).min(out.len() as u64);
        for (slot, at) in out.iter_mut().zip(first.0..first.0 + count) {
            *slot = get(ObjIdx(at));
        }
        count as usize
    }
}
