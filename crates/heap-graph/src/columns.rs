//! Columns read a block at a time: what a scan of all objects wants, instead of looking up the
//! column again for each of them.

use crate::index::Tag;
use crate::packed::{Column, Packed, width_for};
use crate::{ClassIdx, Heap, ObjIdx};
use hprof::Bytes;

impl Heap {
    /// Classes of the objects from `first` on, in the order of numbers. Returns how many of `out`
    /// were filled: less than asked for only at the end.
    pub fn read_classes(&self, first: ObjIdx, out: &mut [ClassIdx]) -> usize {
        let classes = self.classes().len() as u64;
        let packed = Packed::new(
            self.index.bytes(Tag::Classes),
            width_for(classes),
            self.len(),
        );
        let last = classes.saturating_sub(1);
        self.read_block(first, out, |at| ClassIdx(packed.get(at).min(last) as u32))
    }

    /// Shallow sizes, as [`read_classes`](Self::read_classes).
    pub fn read_shallow(&self, first: ObjIdx, out: &mut [Bytes]) -> usize {
        let column = Column::new(self.index.bytes(Tag::Shallow));
        let unit = self.unit();
        self.read_block(first, out, |at| {
            Bytes(column.map_or(0, |c| c.get(at)) * unit)
        })
    }

    /// Retained sizes (0 for unreachable objects), as [`read_classes`](Self::read_classes).
    pub fn read_retained(&self, first: ObjIdx, out: &mut [Bytes]) -> usize {
        let shallow = Column::new(self.index.bytes(Tag::Shallow));
        let below = Column::new(self.index.bytes(Tag::Retained));
        let width = width_for(self.len() + 1);
        let dominators = Packed::new(self.index.bytes(Tag::Dominators), width, self.len());
        let (unit, len) = (self.unit(), self.len());
        self.read_block(first, out, |at| {
            if dominators.get(at) > len {
                return Bytes(0);
            }
            let own = shallow.map_or(0, |c| c.get(at));
            Bytes((own + below.map_or(0, |c| c.get(at))) * unit)
        })
    }

    /// What an object immediately dominates, by id, with retained sizes: faster than asking for the
    /// size of each.
    pub fn dominated_retained(&self, parent: ObjIdx) -> impl Iterator<Item = (ObjIdx, Bytes)> + '_ {
        let shallow = Column::new(self.index.bytes(Tag::Shallow));
        let below = Column::new(self.index.bytes(Tag::Retained));
        let unit = self.unit();
        self.dominated(Some(parent)).map(move |object| {
            let own = shallow.map_or(0, |c| c.get(object.0));
            let below = below.map_or(0, |c| c.get(object.0));
            (object, Bytes((own + below) * unit))
        })
    }

    fn read_block<T>(&self, first: ObjIdx, out: &mut [T], get: impl Fn(u64) -> T) -> usize {
        let count = self.len().saturating_sub(first.0).min(out.len() as u64);
        for (slot, at) in out.iter_mut().zip(first.0..first.0 + count) {
            *slot = get(at);
        }
        count as usize
    }
}
