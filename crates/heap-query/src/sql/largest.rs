//! Objects by retained size, largest first. An object that another one dominates retains no more than that one, so the
//! dominator tree gives this order without a sort, and a lower bound prunes it. Beyond the memory limit, scans of all
//! objects give it, each a piece: they continue after the last entry from the tree, so the tree must have had all entries
//! before that one and no other. This is so unless an object retains as much as its dominator, which then has the size 0,
//! and has a smaller number: there the scans begin.

use crate::shared::{BLOCK, Env};
use heap_graph::ObjIdx;
use hprof::Bytes;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Retained size and object; the greater one comes first.
type Entry = (u64, Reverse<u64>);

/// The share of the memory limit for the objects that are known to follow.
const SHARE: u64 = 4;

/// The order, from the largest object on.
pub(crate) struct Largest {
    floor: u64,
    /// The number of children of the virtual root that were taken, largest first.
    taken: u64,
    queue: BinaryHeap<Entry>,
    /// The most entries of the queue.
    most: usize,
    /// The last entry from the tree.
    last: Entry,
    scans: Option<Scans>,
    /// Where the search for unreachable objects continues; they retain nothing and come last.
    rest: u64,
}

/// The order by scans.
struct Scans {
    /// The last entry that was taken.
    last: Entry,
    /// The entries after it, the next one last.
    piece: Vec<Entry>,
}

impl Largest {
    pub(crate) fn new(env: &Env, floor: u64) -> Largest {
        let share = env.heap.memory().map(|memory| memory / SHARE);
        let most = share.map_or(u64::MAX, |share| share / size_of::<Entry>() as u64);
        Largest {
            floor,
            taken: 0,
            queue: BinaryHeap::new(),
            most: most.max(64) as usize,
            last: (u64::MAX, Reverse(0)),
            scans: None,
            rest: 0,
        }
    }

    /// Retained size and number of the next object.
    pub(crate) fn next(&mut self, env: &Env) -> Option<(u64, u64)> {
        let found = match &mut self.scans {
            Some(scans) => scans.next(env, self.floor, self.most),
            None => self.next_in_tree(env),
        };
        match found {
            Some((retained, Reverse(object))) => {
                (retained >= self.floor).then_some((retained, object))
            }
            None if self.floor > 0 || env.stop.reason().is_some() => None,
            None => {
                let unreachable = |n: &u64| !env.heap.is_reachable(ObjIdx(*n));
                let object = (self.rest..env.heap.len()).find(unreachable)?;
                self.rest = object + 1;
                Some((0, object))
            }
        }
    }

    fn next_in_tree(&mut self, env: &Env) -> Option<Entry> {
        let heap = &env.heap;
        let top = heap.top_level(self.taken);
        let top = top.map(|o| (heap.retained(o).0, Reverse(o.0)));
        let best = match (top, self.queue.peek()) {
            (Some(top), queued) if queued.is_none_or(|q| *q <= top) => {
                self.taken += 1;
                top
            }
            _ => self.queue.pop()?,
        };
        let children = heap.dominated_retained(ObjIdx(best.1.0));
        let children = children.map(|(child, bytes)| (bytes.0, Reverse(child.0)));
        let children = children.filter(|c| c.0 >= self.floor);
        let mut is_in_order = true;
        let mut children = children.inspect(|c| is_in_order &= *c < best);
        let room = self.most.saturating_sub(self.queue.len());
        // Thousands at once: as a heap of their own that is merged, each costs one step.
        self.queue
            .append(&mut children.by_ref().take(room).collect());
        let has_room = children.next().is_none();
        let is_limited = self.most < usize::MAX;
        if is_limited && !(has_room && is_in_order) {
            self.queue = BinaryHeap::new();
            let scans = self.scans.insert(Scans {
                last: self.last,
                piece: Vec::new(),
            });
            return scans.next(env, self.floor, self.most);
        }
        self.last = best;
        Some(best)
    }
}

impl Scans {
    fn next(&mut self, env: &Env, floor: u64, most: usize) -> Option<Entry> {
        if self.piece.is_empty() {
            self.piece = self.scan(env, floor, most);
        }
        let next = self.piece.pop()?;
        self.last = next;
        Some(next)
    }

    /// The `most` / 2 entries that follow the last one, the greatest one last.
    fn scan(&self, env: &Env, floor: u64, most: usize) -> Vec<Entry> {
        let half = most / 2;
        let mut found: Vec<Entry> = Vec::with_capacity(most);
        // All entries below it follow `half` others.
        let mut least = (floor, Reverse(u64::MAX));
        let mut block = vec![Bytes(0); BLOCK];
        for first in (0..env.heap.len()).step_by(BLOCK) {
            if env.stop.reason().is_some() {
                return Vec::new();
            }
            let count = env.heap.read_retained(ObjIdx(first), &mut block);
            for (object, retained) in (first..).zip(&block[..count]) {
                let entry = (retained.0, Reverse(object));
                let is_next = entry >= least && entry < self.last;
                if is_next && (retained.0 > 0 || env.heap.is_reachable(ObjIdx(object))) {
                    found.push(entry);
                    if found.len() == most {
                        found.select_nth_unstable(most - half);
                        found.drain(..most - half);
                        least = found.iter().min().copied().unwrap_or(least);
                    }
                }
            }
        }
        found.sort_unstable();
        let beyond = found.len().saturating_sub(half);
        found.drain(..beyond);
        found
    }
}
