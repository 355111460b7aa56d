//! Depth-first search from the roots: pre-order numbers, parents, and the edges that are neither
//! tree edges nor edges into classes (those are implied by the objects' classes).

use super::cell::Cell;
use super::pairs::Pairs;
use super::tape::Tape;
use super::varint::{Entry, RowReader};
use crate::raw::{Budget, prefetch};
use crate::{Control, HeapError};

/// What the search gives. Numbers are pre-order numbers; 0 is the virtual root.
pub(crate) struct Search<C: Cell> {
    /// Per number: the number of its parent in the search tree.
    pub(crate) parents: Tape<C>,
    /// Numbers in use, the virtual root included.
    pub(crate) len: u64,
    /// Edges that are not in the tree, class edges left out.
    pub(crate) pairs: Pairs,
}

/// References that are decoded, and their cells fetched, at once.
const BATCH: u32 = 32;

#[derive(Clone, Copy)]
struct Open {
    pre: u64,
    row: RowReader,
    /// Decoded targets of this object that wait on the pending stack.
    pending: u32,
}

/// Entries on the pending stack: a target, with the lowest bit set for class edges.
struct Searcher<'a, C: Cell> {
    cells: &'a mut [C],
    rows: &'a [u8],
    class_objects: &'a [u64],
    parents: Tape<C>,
    /// The first failure to write a parent.
    failed: std::io::Result<()>,
    next: u64,
    pairs: Pairs,
    open: Vec<Open>,
    pending: Vec<C>,
}

/// Visits everything the roots reach. `cells` ends up with pre-order numbers.
pub(crate) fn search<C: Cell>(
    cells: &mut [C],
    rows: &[u8],
    class_objects: &[u64],
    roots: &[u64],
    budget: &Budget,
    control: &Control<'_>,
) -> Result<Search<C>, HeapError> {
    let n = cells.len() as u64 + 1;
    let mut parents = Tape::new(n, budget).map_err(HeapError::io("search tree"))?;
    parents
        .push(C::new(0))
        .map_err(HeapError::io("search tree"))?;
    let mut s = Searcher {
        cells,
        rows,
        class_objects,
        parents,
        failed: Ok(()),
        next: 1,
        pairs: Pairs::new(n),
        open: Vec::new(),
        pending: Vec::new(),
    };
    control.report("search", 0, n);
    for root in roots {
        if s.cells[*root as usize].pre().is_none() {
            s.visit(*root, 0);
            s.run(control)?;
        }
    }
    control.check()?;
    s.parents.finish().map_err(HeapError::io("search tree"))?;
    s.failed.map_err(HeapError::io("search tree"))?;
    Ok(Search {
        parents: s.parents,
        len: s.next,
        pairs: s.pairs,
    })
}

impl<C: Cell> Searcher<'_, C> {
    fn visit(&mut self, object: u64, parent: u64) {
        let cell = &mut self.cells[object as usize];
        let row = *cell;
        let pre = self.next;
        self.next += 1;
        *cell = C::visited(pre);
        if let Err(error) = self.parents.push(C::new(parent)) {
            self.failed = Err(error);
        }
        if row != C::NONE {
            let row = RowReader::new(row.get() as usize, object);
            self.open.push(Open {
                pre,
                row,
                pending: 0,
            });
            self.refill();
        }
    }

    /// Decodes the next references of the innermost open object and fetches their cells.
    #[inline]
    fn refill(&mut self) {
        let Some(open) = self.open.last_mut() else {
            return;
        };
        let first = self.pending.len();
        while open.pending < BATCH && !open.row.is_done() {
            let entry = match open.row.next(self.rows) {
                Entry::Target(target) => {
                    prefetch(self.cells, target as usize);
                    target << 1
                }
                Entry::Class(ordinal) => {
                    self.class_objects
                        .get(ordinal as usize)
                        .copied()
                        .unwrap_or(0)
                        << 1
                        | 1
                }
            };
            self.pending.push(C::new(entry));
            open.pending += 1;
        }
        self.pending[first..].reverse();
    }

    fn run(&mut self, control: &Control<'_>) -> Result<(), HeapError> {
        let total = self.cells.len() as u64;
        let mut report_at = self.next + (1 << 18);
        while let Some(open) = self.open.last_mut() {
            if open.pending == 0 {
                if open.row.is_done() {
                    self.open.pop();
                } else {
                    self.refill();
                }
                continue;
            }
            open.pending -= 1;
            let source = open.pre;
            let entry = self.pending.pop().map_or(0, C::get);
            let (target, is_class) = (entry >> 1, entry & 1 == 1);
            match self.cells[target as usize].pre() {
                Some(_) if is_class => {}
                Some(seen) => {
                    if seen != source {
                        self.pairs.push(seen, source);
                    }
                }
                None => {
                    if let Some(sibling) = self.pending.last() {
                        // Its cell has been fetched; now the row it points to.
                        let cell = self.cells[(sibling.get() >> 1) as usize];
                        if cell.pre().is_none() {
                            prefetch(self.rows, cell.get() as usize);
                        }
                    }
                    self.visit(target, source);
                }
            }
            if self.next >= report_at {
                control.check()?;
                control.report("search", self.next, total);
                report_at = self.next + (1 << 18);
            }
        }
        Ok(())
    }
}
