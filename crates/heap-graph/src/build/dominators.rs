//! Immediate dominators by Semi-NCA (Georgiadis, Tarjan, Werneck): semidominators in reverse pre-order with path
//! compression, then nearest common ancestors in pre-order. Iterative, so that linked lists of any length are possible.
//! Only cross and back edges are evaluated.

use super::cell::Cell;
use super::dfs::Search;
use super::pairs::{Grouped, Pairs, first_of};
use super::tape::Tape;
use crate::parallel;
use crate::raw::{BigVec, Budget, prefetch, trim};
use crate::{Control, HeapError};
use std::sync::{Mutex, PoisonError};

/// The instances of the classes whose object is not a root: the sources of implied class edges.
pub(crate) struct ClassEdges<'b, C: Cell> {
    /// Pre-order number of a class object and its range in `sources`, highest number first.
    lists: Vec<(u64, u64, u64)>,
    sources: BigVec<'b, C>,
}

impl<'b, C: Cell> ClassEdges<'b, C> {
    /// `cells` has pre-order numbers. `ordinal_of` returns the ordinal of the class of an object that has an edge to
    /// its class, and `u32::MAX` otherwise. `most` has how many such objects each of the classes can have.
    pub(crate) fn collect(
        cells: &[C],
        class_objects: &[u64],
        most: impl Iterator<Item = u64>,
        ordinal_of: impl Fn(u64) -> u32,
        budget: &'b Budget,
    ) -> Result<ClassEdges<'b, C>, HeapError> {
        let mut len = 0;
        // Per class: the range that is left of its part of the sources.
        let rooms = most.map(|most| {
            let from = len;
            len += most;
            (from, len)
        });
        let mut rooms: Vec<(u64, u64)> = rooms.collect();
        let starts: Vec<u64> = rooms.iter().map(|(from, _)| *from).collect();
        let mut sources =
            BigVec::<C>::zeroed(len as usize, budget).map_err(HeapError::io("class edges"))?;
        if !class_objects.is_empty() {
            for (object, cell) in cells.iter().enumerate() {
                if let Some(pre) = cell.pre()
                    && let Some((at, end)) = rooms.get_mut(ordinal_of(object as u64) as usize)
                    && at < end
                {
                    sources[*at as usize] = C::new(pre);
                    *at += 1;
                }
            }
        }
        let lists = class_objects.iter().zip(starts).zip(rooms);
        let lists = lists.filter_map(|((object, from), (end, _))| {
            Some((cells[*object as usize].pre()?, from, end))
        });
        let mut lists: Vec<_> = lists.collect();
        lists.sort_unstable_by_key(|l| std::cmp::Reverse(l.0));
        Ok(ClassEdges { lists, sources })
    }
}

/// Ancestor and label of a processed node, in one cache line.
type Link<C> = [C; 2];

/// The smallest label on the path from `node` up to the first ancestor that is at most `limit`; compresses the path.
#[inline]
fn eval<C: Cell>(links: &mut [Link<C>], path: &mut Vec<u64>, node: u64, limit: u64) -> u64 {
    let [mut ancestor, label] = links[node as usize];
    if ancestor.get() <= limit {
        return label.get();
    }
    let mut at = node;
    while ancestor.get() > limit {
        path.push(at);
        at = ancestor.get();
        ancestor = links[at as usize][0];
    }
    let mut smallest = links[at as usize][1];
    while let Some(below) = path.pop() {
        let link = &mut links[below as usize];
        if smallest.get() < link[1].get() {
            link[1] = smallest;
        }
        smallest = link[1];
        link[0] = ancestor;
    }
    smallest.get()
}

/// The distance, in edges, between two steps of [`Pass::fetch`]: long enough for a link to arrive.
const GAP: usize = 10;
/// How many steps from a source towards its ancestors are fetched. With long lists, an evaluation takes several.
const STEPS: usize = 4;
/// Number of edges that [`Pass::fetch`] keeps in mind: more than `GAP * STEPS`, and a power of two.
const FETCHED: usize = 64;

/// The reverse pass over the numbers of one block.
struct Pass<'a, C: Cell> {
    links: &'a mut [Link<C>],
    path: Vec<u64>,
    /// For the edges that are evaluated soon, by their position: the highest node whose link is being fetched.
    fetched: [C; FETCHED],
}

impl<C: Cell> Pass<'_, C> {
    /// The smallest candidate from the edges in the bucket, or `parent` if that is smaller.
    #[inline]
    fn explicit(&mut self, w: u64, parent: u64, grouped: &Grouped<C>) -> u64 {
        let mut best = parent;
        let sources = grouped.sources();
        // In reverse order, so that the positions of all edges of the bucket descend.
        for at in grouped.range(w).rev() {
            if let Some(first) = at.checked_sub(GAP * (STEPS + 1)) {
                self.fetch(sources, first, w);
            }
            best = best.min(self.candidate(sources[at].get(), w));
        }
        best
    }

    /// Fetches links that later edges need: the one of the source of an edge that is far ahead, and for nearer edges the
    /// one above the link that was fetched for them before. Otherwise each step of an evaluation would wait for memory.
    #[inline]
    fn fetch(&mut self, sources: &[C], first: usize, w: u64) {
        let source = sources[first];
        prefetch(self.links, source.get() as usize);
        self.fetched[first % FETCHED] = source;
        for step in 1..=STEPS {
            let fetched = &mut self.fetched[(first + step * GAP) % FETCHED];
            let above = self.links[fetched.get() as usize][0];
            // Numbers up to that of the target have no links yet.
            if above.get() > w {
                *fetched = above;
            }
            prefetch(self.links, fetched.get() as usize);
        }
    }

    #[inline]
    fn candidate(&mut self, source: u64, w: u64) -> u64 {
        if source < w {
            source
        } else {
            eval(self.links, &mut self.path, source, w)
        }
    }

    /// The same for the instances of a class object; stops at the virtual root, which is the smallest.
    fn implied(&mut self, w: u64, mut best: u64, sources: &[C]) -> u64 {
        for (k, source) in sources.iter().enumerate() {
            if best == 0 {
                break;
            }
            if let Some(ahead) = sources.get(k + 16) {
                prefetch(self.links, ahead.get() as usize);
            }
            if source.get() != w {
                best = best.min(self.candidate(source.get(), w));
            }
        }
        best
    }
}

/// Immediate dominators by pre-order number; the virtual root is 0 and its own dominator.
pub(crate) fn immediate_dominators<'b, C: Cell>(
    search: Search<C>,
    class_edges: ClassEdges<'_, C>,
    budget: &'b Budget,
    control: &Control<'_>,
) -> Result<BigVec<'b, C>, HeapError> {
    let Search {
        parents,
        len: n,
        pairs,
        ..
    } = search;
    let semi = semidominators(&parents, pairs, n, class_edges, budget, control)?;
    trim();
    budget.phases().begin("ancestors");
    control.report("ancestors", 0, n);
    let io = || HeapError::io("dominators");
    let mut idom = BigVec::<C>::zeroed(n as usize, budget).map_err(io())?;
    let (mut parent, mut limit) = (Vec::new(), Vec::new());
    for block in 0..parents.blocks() {
        let parent = parents.get(block, &mut parent).map_err(io())?;
        let limit = semi.get(block, &mut limit).map_err(io())?;
        let from = first_of(block) as usize;
        for (k, (parent, limit)) in parent.iter().zip(limit).enumerate() {
            let (mut d, limit) = (parent.get(), limit.get());
            while d > limit {
                d = idom[d as usize].get();
            }
            idom[from + k] = C::new(d);
        }
    }
    Ok(idom)
}

/// Semidominators by pre-order number.
fn semidominators<C: Cell>(
    parents: &Tape<C>,
    pairs: Pairs,
    n: u64,
    class_edges: ClassEdges<'_, C>,
    budget: &Budget,
    control: &Control<'_>,
) -> Result<Tape<C>, HeapError> {
    let io = || HeapError::io("dominators");
    let mut links = BigVec::<Link<C>>::zeroed(n as usize, budget).map_err(io())?;
    let mut semi = Tape::new(n, budget).map_err(io())?;
    semi.len = n;
    let buckets = pairs.buckets();
    let pairs = Mutex::new(pairs);
    let last_first = |block: usize| buckets - 1 - block;
    let group = |block: usize, grouped: &mut Grouped<C>| {
        let mut pairs = pairs.lock().unwrap_or_else(PoisonError::into_inner);
        pairs.take(last_first(block), grouped).map_err(io())
    };
    let mut pass = Pass {
        links: &mut links,
        path: Vec::new(),
        fetched: [C::default(); FETCHED],
    };
    let mut lists = class_edges.lists.iter().peekable();
    let (mut buffer, mut limits) = (Vec::new(), Vec::new());
    // Meanwhile another thread groups the edges of the next bucket.
    parallel::in_order(buckets, 2, group, |block, grouped| {
        let bucket = last_first(block);
        control.check()?;
        control.report("dominators", n.saturating_sub(first_of(bucket)), n);
        let parent = parents.get(bucket, &mut buffer).map_err(io())?;
        let from = first_of(bucket);
        limits.clear();
        limits.extend_from_slice(parent);
        for (k, parent) in parent.iter().enumerate().rev() {
            let w = from + k as u64;
            if w == 0 {
                break;
            }
            let mut best = pass.explicit(w, parent.get(), grouped);
            if let Some((_, first, last)) = lists.next_if(|l| l.0 == w) {
                best = pass.implied(
                    w,
                    best,
                    &class_edges.sources[*first as usize..*last as usize],
                );
            }
            limits[k] = C::new(best);
            pass.links[w as usize] = [*parent, C::new(best)];
        }
        if !limits.is_empty() {
            semi.put(bucket, &limits).map_err(io())?;
        }
        Ok(())
    })?;
    Ok(semi)
}
