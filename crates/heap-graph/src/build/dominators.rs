//! Immediate dominators by Semi-NCA (Georgiadis, Tarjan, Werneck): semidominators in reverse
//! pre-order with path compression, then nearest common ancestors in pre-order. Iterative, so a
//! list of any length is fine; only cross and back edges are evaluated.

use super::cell::Cell;
use super::dfs::Search;
use super::pairs::{Grouped, first_of};
use crate::raw::{BigVec, Budget, prefetch};
use crate::{Control, HeapError};

/// The instances of the classes whose object is no root: the sources of implied class edges.
pub(crate) struct ClassEdges<'b, C: Cell> {
    /// Pre-order number of a class object and its part of `sources`, highest number first.
    lists: Vec<(u64, u64, u64)>,
    sources: BigVec<'b, C>,
}

impl<'b, C: Cell> ClassEdges<'b, C> {
    /// `cells` holds pre-order numbers. `ordinal_of` gives the ordinal of the class of an object
    /// that has an edge to its class, `u32::MAX` else.
    pub(crate) fn collect(
        cells: &[C],
        class_objects: &[u64],
        ordinal_of: &dyn Fn(u64) -> u32,
        budget: &'b Budget,
    ) -> Result<ClassEdges<'b, C>, HeapError> {
        let mut starts = vec![0u64; class_objects.len() + 2];
        let each = |call: &mut dyn FnMut(usize, u64)| {
            for (object, cell) in cells.iter().enumerate() {
                let ordinal = ordinal_of(object as u64);
                if ordinal != u32::MAX
                    && let Some(pre) = cell.pre()
                {
                    call(ordinal as usize, pre);
                }
            }
        };
        if class_objects.is_empty() {
            let sources = BigVec::zeroed(0, budget).map_err(HeapError::io("class edges"))?;
            return Ok(ClassEdges {
                lists: Vec::new(),
                sources,
            });
        }
        each(&mut |ordinal, _| starts[ordinal + 2] += 1);
        for k in 2..starts.len() {
            starts[k] += starts[k - 1];
        }
        let len = starts.last().copied().unwrap_or(0) as usize;
        let mut sources = BigVec::zeroed(len, budget).map_err(HeapError::io("class edges"))?;
        each(&mut |ordinal, pre| {
            sources[starts[ordinal + 1] as usize] = C::new(pre);
            starts[ordinal + 1] += 1;
        });
        let mut lists = Vec::new();
        for (ordinal, object) in class_objects.iter().enumerate() {
            if let Some(pre) = cells[*object as usize].pre() {
                lists.push((pre, starts[ordinal], starts[ordinal + 1]));
            }
        }
        lists.sort_unstable_by_key(|l| std::cmp::Reverse(l.0));
        Ok(ClassEdges { lists, sources })
    }
}

/// Ancestor and label of a processed node, in one cache line.
type Link<C> = [C; 2];

/// The smallest label on the way from `node` up to the first ancestor that is not above `limit`,
/// compressing the way.
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
        if smallest < link[1] {
            link[1] = smallest;
        }
        smallest = link[1];
        link[0] = ancestor;
    }
    smallest.get()
}

/// The reverse pass over one pre-order number after the other.
struct Pass<'a, C: Cell> {
    links: &'a mut [Link<C>],
    semi: &'a mut [C],
    parents: &'a [C],
    path: Vec<u64>,
}

impl<C: Cell> Pass<'_, C> {
    /// The smallest number that an edge in the bucket gives, or the tree edge.
    #[inline]
    fn explicit(&mut self, w: u64, bucket_start: u64, grouped: &Grouped) -> u64 {
        if w >= bucket_start + 12 {
            // The links that a node a little further down will need.
            for source in grouped.of(w - 12) {
                prefetch(self.links, *source as usize);
            }
        }
        let mut best = self.parents[w as usize].get();
        for source in grouped.of(w) {
            best = best.min(self.candidate(*source, w));
        }
        best
    }

    #[inline]
    fn candidate(&mut self, source: u64, w: u64) -> u64 {
        if source < w { source } else { eval(self.links, &mut self.path, source, w) }
    }

    /// The same for the instances of a class object; nothing is smaller than the virtual root.
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

    #[inline]
    fn settle(&mut self, w: u64, best: u64) {
        self.semi[w as usize] = C::new(best);
        self.links[w as usize] = [self.parents[w as usize], C::new(best)];
    }
}

/// Immediate dominators by pre-order number; the virtual root is 0 and its own dominator.
pub(crate) fn immediate_dominators<'b, C: Cell>(
    search: Search<'b, C>,
    class_edges: ClassEdges<'b, C>,
    budget: &'b Budget,
    control: &Control<'_>,
) -> Result<BigVec<'b, C>, HeapError> {
    let n = search.len;
    let io = || HeapError::io("dominators");
    let mut semi = BigVec::<C>::zeroed(n as usize, budget).map_err(io())?;
    let mut links = BigVec::<Link<C>>::zeroed(n as usize, budget).map_err(io())?;
    // Another thread groups the edges of the next buckets meanwhile.
    let pairs = search.pairs;
    let parents = search.parents;
    std::thread::scope(|scope| {
        let (send, receive) = std::sync::mpsc::sync_channel(1);
        scope.spawn(move || {
            for grouped in pairs.into_grouped() {
                if send.send(grouped).is_err() {
                    return;
                }
            }
        });
        let mut pass = Pass { links: &mut links, semi: &mut semi, parents: &parents, path: Vec::new() };
        let mut lists = class_edges.lists.iter().peekable();
        let mut below = n;
        while let Ok((bucket, grouped)) = receive.recv() {
            control.check()?;
            control.report("dominators", n - below, n);
            let from = first_of(bucket).max(1);
            for w in (from..below).rev() {
                let mut best = pass.explicit(w, from, &grouped);
                if let Some((_, first, last)) = lists.next_if(|l| l.0 == w) {
                    best = pass.implied(w, best, &class_edges.sources[*first as usize..*last as usize]);
                }
                pass.settle(w, best);
            }
            below = below.min(from);
        }
        Ok::<(), HeapError>(())
    })?;
    drop(links);
    control.report("ancestors", 0, n);
    let mut idom = parents;
    for w in 1..n as usize {
        let limit = semi[w].get();
        let mut d = idom[w].get();
        while d > limit {
            d = idom[d as usize].get();
        }
        idom[w] = C::new(d);
    }
    Ok(idom)
}
