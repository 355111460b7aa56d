//! Depth-first search from the roots: pre-order numbers, parents, and the edges that are neither
//! tree edges nor edges into classes (those are implied by the objects' classes).

use super::cell::Cell;
use super::pairs::Pairs;
use super::stack::Stack;
use super::tape::Tape;
use super::varint::{Entry, RowReader};
use crate::raw::{Budget, prefetch};
use crate::{Control, HeapError};
use rustc_hash::FxHashMap;

/// The result of the search. Numbers are pre-order numbers; 0 is the virtual root.
pub(crate) struct Search<C: Cell> {
    /// Per number: the number of its parent in the search tree.
    pub(crate) parents: Tape<C>,
    /// Numbers in use, the virtual root included.
    pub(crate) len: u64,
    /// Edges that were followed.
    pub(crate) edges: u64,
    /// Edges that are not in the tree, without class edges.
    pub(crate) pairs: Pairs,
}

/// How many references are decoded, and their cells fetched, at a time.
const BATCH: usize = 32;

/// An object whose references have not all been followed: its number, the number of its decoded targets on the pending
/// stack, and the words of its [`RowReader`].
type Open = [u64; 4];

/// Entries on the pending stack: a target, with the lowest bit set for class edges.
struct Searcher<'a, C: Cell> {
    cells: &'a mut [C],
    rows: &'a [u8],
    class_objects: &'a [u64],
    more: &'a FxHashMap<u64, Vec<u64>>,
    parents: Tape<C>,
    /// The first failure to write a parent.
    failed: std::io::Result<()>,
    next: u64,
    edges: u64,
    pairs: Pairs,
    open: Stack<Open>,
    pending: Stack<C>,
}

/// Visits all objects that the roots reach. Afterwards `cells` has pre-order numbers. `more` has references that are
/// not in the row of their object, by object.
pub(crate) fn search<C: Cell>(
    cells: &mut [C],
    rows: &[u8],
    class_objects: &[u64],
    roots: impl Iterator<Item = u64>,
    more: &FxHashMap<u64, Vec<u64>>,
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
        more,
        parents,
        failed: Ok(()),
        next: 1,
        edges: 0,
        pairs: Pairs::new(n, budget).map_err(HeapError::io("search tree"))?,
        open: Stack::new(budget),
        pending: Stack::new(budget),
    };
    control.report("search", 0, n);
    for root in roots {
        match s.cells[root as usize].pre() {
            None => {
                s.visit(root, 0);
                s.run(control)?;
            }
            Some(seen) => s.pairs.push(seen, 0),
        }
    }
    control.check()?;
    s.parents.finish().map_err(HeapError::io("search tree"))?;
    s.failed.map_err(HeapError::io("search tree"))?;
    let stacks = s.open.check().and(s.pending.check());
    let files = stacks.and(s.pairs.check());
    files.map_err(HeapError::io("search"))?;
    Ok(Search {
        parents: s.parents,
        len: s.next,
        edges: s.edges,
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
            let [state, previous] = row.words();
            self.open.push([pre, 0, state, previous]);
            self.refill();
        }
        if !self.more.is_empty()
            && let Some(more) = self.more.get(&object)
        {
            if row == C::NONE {
                let [state, previous] = RowReader::DONE;
                self.open.push([pre, 0, state, previous]);
            }
            if let Some([_, pending, ..]) = self.open.last_mut() {
                *pending += more.len() as u64;
            }
            self.edges += more.len() as u64;
            more.iter()
                .for_each(|target| self.pending.push(C::new(target << 1)));
        }
    }

    /// Decodes the next references of the innermost open object and fetches their cells.
    #[inline]
    fn refill(&mut self) {
        let Some([_, pending, state, previous]) = self.open.last_mut() else {
            return;
        };
        let mut row = RowReader::of_words([*state, *previous]);
        let (mut batch, mut count) = ([C::default(); BATCH], 0);
        while count < BATCH && !row.is_done() {
            let entry = match row.next(self.rows) {
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
            batch[count] = C::new(entry);
            count += 1;
        }
        *pending = count as u64;
        self.edges += count as u64;
        [*state, *previous] = row.words();
        for entry in batch[..count].iter().rev() {
            self.pending.push(*entry);
        }
    }

    fn run(&mut self, control: &Control<'_>) -> Result<(), HeapError> {
        let total = self.cells.len() as u64;
        let mut report_at = self.next + (1 << 18);
        while let Some([source, pending, state, previous]) = self.open.last_mut() {
            if *pending == 0 {
                if RowReader::of_words([*state, *previous]).is_done() {
                    self.open.pop();
                } else {
                    self.refill();
                }
                continue;
            }
            *pending -= 1;
            let source = *source;
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
