//! All objects ordered by class. What does not fit into the memory limit is read from the class column again, a piece of
//! the order at a time.

use crate::error::QueryError;
use crate::shared::Env;
use heap_graph::{ClassIdx, ObjIdx};
use std::ops::Range;
use std::sync::Arc;

/// The share of the memory limit for the order, or for the piece of it that one scan has.
const SHARE: u64 = 4;

/// All objects ordered by class.
pub(crate) struct ByClass {
    starts: Vec<u64>,
    objects: Objects,
}

enum Objects {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
    /// They are read in pieces with so many objects.
    InPieces(u64),
}

impl ByClass {
    pub(crate) fn new(env: &Env) -> Result<ByClass, QueryError> {
        let heap = &env.heap;
        let mut starts = vec![0u64; heap.classes().len() + 1];
        env.each_class_block(|_, classes| {
            for class in classes {
                starts[class.0 as usize + 1] += 1;
            }
        })?;
        for n in 1..starts.len() {
            starts[n] += starts[n - 1];
        }
        let narrow = heap.len() <= u64::from(u32::MAX);
        let bytes = heap.len() * if narrow { 4 } else { 8 };
        let mut made = ByClass {
            starts,
            objects: Objects::InPieces(heap.len()),
        };
        let share = heap.memory().map(|memory| memory / SHARE);
        if let Some(share) = share.filter(|share| bytes > *share) {
            made.objects = Objects::InPieces((share / 8).max(64));
        } else if narrow {
            let mut objects = vec![0u32; heap.len() as usize];
            made.each(env, 0..heap.len(), |at, object| objects[at] = object as u32)?;
            made.objects = Objects::Narrow(objects);
        } else {
            made.objects = Objects::Wide(made.piece(env, 0..heap.len())?);
        }
        Ok(made)
    }

    /// The positions of the objects of a class.
    fn range(&self, class: ClassIdx) -> Range<u64> {
        self.starts[class.0 as usize]..self.starts[class.0 as usize + 1]
    }

    fn len(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Calls `put` for each object in a range of positions, with its place in the range.
    fn each(
        &self,
        env: &Env,
        range: Range<u64>,
        mut put: impl FnMut(usize, u64),
    ) -> Result<(), QueryError> {
        let mut next = self.starts.clone();
        env.each_class_block(|first, classes| {
            for (object, class) in (first..).zip(classes) {
                let at = &mut next[class.0 as usize];
                if range.contains(at) {
                    put((*at - range.start) as usize, object);
                }
                *at += 1;
            }
        })
    }

    /// The objects in a range of positions.
    fn piece(&self, env: &Env, range: Range<u64>) -> Result<Vec<u64>, QueryError> {
        let mut objects = vec![0u64; (range.end - range.start) as usize];
        self.each(env, range, |at, object| objects[at] = object)?;
        Ok(objects)
    }
}

/// Reads the order; best from one position to the next.
pub(crate) struct ByClassReader {
    env: Env,
    by_class: Arc<ByClass>,
    /// The first position of the piece that was read last.
    first: u64,
    piece: Vec<u64>,
}

impl ByClassReader {
    pub(crate) fn new(env: &Env) -> Result<ByClassReader, QueryError> {
        Ok(ByClassReader {
            env: env.clone(),
            by_class: env.by_class()?,
            first: 0,
            piece: Vec::new(),
        })
    }

    /// The positions of the objects of a class.
    pub(crate) fn range(&self, class: ClassIdx) -> Range<u64> {
        self.by_class.range(class)
    }

    /// Number of all objects.
    pub(crate) fn len(&self) -> u64 {
        self.by_class.len()
    }

    /// The object at a position.
    pub(crate) fn get(&mut self, at: u64) -> Result<ObjIdx, QueryError> {
        let object = match &self.by_class.objects {
            Objects::Narrow(objects) => objects.get(at as usize).map(|o| u64::from(*o)),
            Objects::Wide(objects) => objects.get(at as usize).copied(),
            Objects::InPieces(most) => {
                let here = |first: u64| at.checked_sub(first).map(|n| n as usize);
                if here(self.first).is_none_or(|n| n >= self.piece.len()) {
                    let end = at.saturating_add(*most).min(self.by_class.len());
                    self.piece.clear();
                    self.piece = self.by_class.piece(&self.env, at.min(end)..end)?;
                    self.first = at;
                }
                here(self.first).and_then(|n| self.piece.get(n).copied())
            }
        };
        Ok(ObjIdx(object.unwrap_or(0)))
    }
}
