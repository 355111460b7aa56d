//! Conservative local variables ([`hprof::CONSERVATIVE_LOCALS`]): words of stacks that look like references, many of
//! them left by calls that have ended. As exact roots they would reduce the retained sizes of other objects. So only
//! those count whose object nothing else reaches.

use super::cell::Cell;
use super::roots::Roots;
use super::stack::Stack;
use super::varint::{Entry, RowReader};
use crate::bits::Bits;
use crate::raw::Budget;
use crate::{Control, HeapError};
use rustc_hash::{FxHashMap, FxHashSet};

/// The references of the dump, in the form that the search follows.
pub(crate) struct Edges<'a, C: Cell> {
    pub(crate) cells: &'a [C],
    pub(crate) rows: &'a [u8],
    pub(crate) class_objects: &'a [u64],
}

/// What conservative local variables add to the graph.
#[derive(Default)]
pub(crate) struct Locals {
    /// Objects that a thread refers to, by thread object.
    pub(crate) of_threads: FxHashMap<u64, Vec<u64>>,
    /// Objects without a known thread, which become roots.
    pub(crate) roots: Vec<u64>,
    /// All of these objects.
    pub(crate) objects: FxHashSet<u64>,
}

impl Locals {
    /// The conservative local variables whose objects the exact roots do not reach.
    pub(crate) fn find<C: Cell>(
        roots: &Roots,
        edges: &Edges<'_, C>,
        budget: &Budget,
        control: &Control<'_>,
    ) -> Result<Locals, HeapError> {
        let mut found = Locals::default();
        if roots.conservative.is_empty() {
            return Ok(found);
        }
        let reached = edges.reached(&roots.order, budget, control)?;
        for (thread, object) in &roots.conservative {
            if reached.contains(*object) {
                continue;
            }
            found.objects.insert(*object);
            match thread.filter(|thread| reached.contains(*thread)) {
                Some(thread) => found.of_threads.entry(thread).or_default().push(*object),
                None => found.roots.push(*object),
            }
        }
        Ok(found)
    }
}

impl<C: Cell> Edges<'_, C> {
    fn reached(
        &self,
        roots: &[u64],
        budget: &Budget,
        control: &Control<'_>,
    ) -> Result<Bits, HeapError> {
        let mut seen = Bits::new(self.cells.len() as u64);
        let mut waiting = Stack::<C>::new(budget);
        for root in roots.iter().filter(|root| seen.insert(**root)) {
            waiting.push(C::new(*root));
        }
        let mut visited = 0u64;
        while let Some(object) = waiting.pop() {
            visited += 1;
            if visited.is_multiple_of(1 << 18) {
                control.check()?;
            }
            let row = self.cells[object.get() as usize];
            if row == C::NONE {
                continue;
            }
            let mut row = RowReader::new(row.get() as usize, object.get());
            while !row.is_done() {
                let target = match row.next(self.rows) {
                    Entry::Target(target) => target,
                    Entry::Class(ordinal) => {
                        let class = self.class_objects.get(ordinal as usize);
                        class.copied().unwrap_or(0)
                    }
                };
                if seen.insert(target) {
                    waiting.push(C::new(target));
                }
            }
        }
        waiting.check().map_err(HeapError::io("search"))?;
        Ok(seen)
    }
}
