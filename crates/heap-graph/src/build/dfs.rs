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
/// How far ahead of its use the cell of a reference is fetched again.
const AHEAD: usize = 16;

/// A reference to follow: its target and the number of its source. The lowest bit of the target marks edges to classes.
/// The target [`rest`] stands for the references of the source that have not been decoded.
type Pending<C> = [C; 2];

/// The target of entries for references that have not been decoded: no object has this number.
#[inline(always)]
fn rest<C: Cell>() -> C {
    C::new(C::LIMIT << 1)
}

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
    pending: Stack<Pending<C>>,
    /// For each entry [`rest`] on the stack, the words of a [`RowReader`].
    rests: Stack<[u64; 2]>,
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
        pending: Stack::new(budget),
        rests: Stack::new(budget),
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
    let stacks = s.pending.check().and(s.rests.check());
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
    #[inline(always)]
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
            self.decode(pre, RowReader::new(row.get() as usize, object));
        }
        if !self.more.is_empty()
            && let Some(more) = self.more.get(&object)
        {
            self.edges += more.len() as u64;
            let more = more.iter().map(|target| [target << 1, pre].map(C::new));
            more.for_each(|entry| self.pending.push(entry));
        }
    }

    /// Decodes the next references of the object with the number `source`, fetches their cells and adds them to the
    /// stack, the first one on top.
    #[inline(always)]
    fn decode(&mut self, source: u64, mut row: RowReader) {
        let (mut batch, mut count) = ([C::default(); BATCH], 0);
        while count < BATCH && !row.is_done() {
            self.edges += 1;
            let entry = match row.next(self.rows) {
                Entry::Target(target) => {
                    prefetch(self.cells, target as usize);
                    target << 1
                }
                Entry::Class(ordinal) => {
                    let class = self.class_objects.get(ordinal as usize).copied();
                    let class = class.unwrap_or(0);
                    if self.cells[class as usize].pre().is_some() {
                        continue;
                    }
                    class << 1 | 1
                }
            };
            batch[count] = C::new(entry);
            count += 1;
        }
        if !row.is_done() {
            self.rests.push(row.words());
            self.pending.push([rest(), C::new(source)]);
        }
        for entry in batch[..count].iter().rev() {
            self.pending.push([*entry, C::new(source)]);
        }
    }

    fn run(&mut self, control: &Control<'_>) -> Result<(), HeapError> {
        let total = self.cells.len() as u64;
        let mut report_at = self.next + (1 << 18);
        while let Some([entry, source]) = self.pending.pop() {
            if let Some([ahead, _]) = self.pending.after(AHEAD) {
                prefetch(self.cells, (ahead.get() >> 1) as usize);
            }
            let (target, is_class, source) = (entry.get() >> 1, entry.get() & 1 == 1, source.get());
            let Some(cell) = self.cells.get(target as usize) else {
                let row = self.rests.pop().unwrap_or(RowReader::DONE);
                self.decode(source, RowReader::of_words(row));
                continue;
            };
            match cell.pre() {
                Some(seen) => {
                    if seen != source && !is_class {
                        self.pairs.push(seen, source);
                    }
                }
                None => {
                    if let Some([sibling, _]) = self.pending.last() {
                        // Its cell has been fetched; now the row it points to.
                        let cell = self.cells.get((sibling.get() >> 1) as usize);
                        if let Some(cell) = cell
                            && cell.pre().is_none()
                        {
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
