//! Immediate dominators by Semi-NCA (Georgiadis, Tarjan, Werneck): semidominators in reverse
//! pre-order with path compression, then nearest common ancestors in pre-order. Iterative, so a
//! list of any length is fine; only cross and back edges are evaluated.

use super::cell::Cell;
use super::dfs::Search;
use super::pairs::{Grouped, bucket_of};
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

/// Immediate dominators by pre-order number; the virtual root is 0 and its own dominator.
pub(crate) fn immediate_dominators<'b, C: Cell>(
    mut search: Search<'b, C>,
    class_edges: ClassEdges<'b, C>,
    budget: &'b Budget,
    control: &Control<'_>,
) -> Result<BigVec<'b, C>, HeapError> {
    let n = search.len;
    let io = || HeapError::io("dominators");
    let mut semi = BigVec::<C>::zeroed(n as usize, budget).map_err(io())?;
    let mut links = BigVec::<Link<C>>::zeroed(n as usize, budget).map_err(io())?;
    let mut path = Vec::new();
    let mut grouped = Grouped::default();
    let mut bucket = usize::MAX;
    let mut lists = class_edges.lists.iter().peekable();
    for w in (1..n).rev() {
        if bucket_of(w) != bucket {
            bucket = bucket_of(w);
            search.pairs.take(bucket, &mut grouped);
            control.check()?;
            control.report("dominators", n - w, n);
        }
        let parent = search.parents[w as usize];
        let mut best = parent.get();
        if w & 0xffff >= 12 {
            // The links that a node a little further down will need.
            if let Some(source) = grouped.of(w - 12).first() {
                prefetch(&links, *source as usize);
            }
        }
        for source in grouped.of(w) {
            best = best.min(if *source < w {
                *source
            } else {
                eval(&mut links, &mut path, *source, w)
            });
        }
        if let Some((_, from, to)) = lists.next_if(|l| l.0 == w) {
            for at in *from..*to {
                if best == 0 {
                    break;
                }
                if let Some(ahead) = class_edges.sources.get(at as usize + 16) {
                    prefetch(&links, ahead.get() as usize);
                }
                let source = class_edges.sources[at as usize].get();
                if source != w {
                    best = best.min(if source < w {
                        source
                    } else {
                        eval(&mut links, &mut path, source, w)
                    });
                }
            }
        }
        semi[w as usize] = C::new(best);
        links[w as usize] = [parent, C::new(best)];
    }
    drop(links);
    let mut idom = search.parents;
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
