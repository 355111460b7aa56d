//! Retained sizes of groups of objects: each class, each class with its subclasses, each package, loader and allocation
//! site. The retained size of a group is the sum over the members that no other member dominates.
//!
//! All are computed in one sweep over the dominator tree in pre-order: a member counts if no other member of its group
//! is open.

use super::classes::ClassTable;
use crate::model::{GroupSums, SiteSums};
use hprof::{Bytes, ObjectId, Serial, package_of};
use rustc_hash::FxHashMap;
use std::hash::Hash;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{self, Scope, ScopedJoinHandle};

/// No superclass.
const NONE: u32 = u32::MAX;

/// Maximum superclass depth; deeper ancestors are ignored. No program has more.
const DEEPEST: usize = 1024;

/// How many nodes are passed to the other thread at a time.
const CHUNK: usize = 1 << 13;

/// The sums of all groups. Receives all objects in the pre-order of the dominator tree.
pub(crate) struct Groups<'s> {
    classes: Classes,
    others: Others<'s>,
    chunk: Vec<Node>,
}

/// Who adds up the groups other than classes: this thread, or another one.
enum Others<'s> {
    Here(Box<OtherGroups>),
    Elsewhere {
        chunks: SyncSender<Vec<Node>>,
        /// Chunks that it has finished, for reuse.
        spare: Receiver<Vec<Node>>,
        thread: ScopedJoinHandle<'s, OtherGroups>,
    },
}

impl<'s> Others<'s> {
    /// `None` if the system starts no further thread.
    fn elsewhere<'e>(
        table: &ClassTable,
        sites: bool,
        scope: &'s Scope<'s, 'e>,
    ) -> Option<Others<'s>> {
        let (chunks, received) = sync_channel::<Vec<Node>>(2);
        let (done, spare) = channel();
        let mut groups = OtherGroups::new(table, sites);
        let run = move || {
            for chunk in received {
                chunk.iter().for_each(|node| groups.step(node));
                // At the end of the sweep the receiver has been dropped.
                let _ = done.send(chunk);
            }
            groups
        };
        let thread = thread::Builder::new().spawn_scoped(scope, run).ok()?;
        Some(Others::Elsewhere {
            chunks,
            spare,
            thread,
        })
    }
}

impl<'s> Groups<'s> {
    /// Uses another thread in this scope if `threads` is more than 1 and the system starts one.
    pub(crate) fn new<'e>(
        table: &ClassTable,
        sites: bool,
        threads: usize,
        scope: &'s Scope<'s, 'e>,
    ) -> Groups<'s> {
        let elsewhere = (threads > 1).then(|| Others::elsewhere(table, sites, scope));
        let others = elsewhere
            .flatten()
            .unwrap_or_else(|| Others::Here(Box::new(OtherGroups::new(table, sites))));
        Groups {
            classes: Classes(Nested::new(table.classes.len())),
            others,
            chunk: Vec::with_capacity(CHUNK),
        }
    }

    /// The next object.
    #[inline]
    pub(crate) fn step(&mut self, node: Node) {
        self.chunk.push(node);
        if self.chunk.len() == CHUNK {
            self.pass_on();
        }
    }

    fn pass_on(&mut self) {
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.iter().for_each(|node| self.classes.step(node));
        match &mut self.others {
            Others::Here(groups) => chunk.iter().for_each(|node| groups.step(node)),
            Others::Elsewhere { chunks, spare, .. } => {
                let next = spare.try_recv();
                // The thread ends early only by a panic, which `finish` passes on.
                let _ = chunks.send(chunk);
                chunk = next.unwrap_or_else(|_| Vec::with_capacity(CHUNK));
            }
        }
        chunk.clear();
        self.chunk = chunk;
    }

    /// The retained size of each class, and the other groups.
    pub(crate) fn finish(mut self) -> (Vec<u64>, GroupSums) {
        self.pass_on();
        let others = match self.others {
            Others::Here(groups) => *groups,
            Others::Elsewhere { chunks, thread, .. } => {
                drop(chunks);
                let joined = thread.join();
                joined.unwrap_or_else(|p| std::panic::resume_unwind(p))
            }
        };
        (self.classes.0.finish(), others.finish())
    }
}

/// An object in the sweep.
pub(crate) struct Node {
    pub(crate) at: u64,
    pub(crate) class: u32,
    /// The class that the object is, if it is one.
    pub(crate) own: Option<u32>,
    /// Objects in its subtree, itself included.
    pub(crate) size: u64,
    pub(crate) shallow: u64,
    pub(crate) trace: u32,
}

/// The sums of groups that lie inside each other.
struct Nested {
    /// Open subtrees: end, group, sum at the beginning.
    open: Vec<(u64, u32, u64)>,
    is_open: Vec<bool>,
    retained: Vec<u64>,
    sum: u64,
}

impl Nested {
    fn new(groups: usize) -> Nested {
        Nested {
            open: Vec::new(),
            is_open: vec![false; groups],
            retained: vec![0; groups],
            sum: 0,
        }
    }

    /// Closes the subtrees that end before a place.
    #[inline]
    fn close(&mut self, at: u64) {
        while let Some((_, group, before)) = self.open.pop_if(|o| o.0 <= at) {
            self.retained[group as usize] += self.sum - before;
            self.is_open[group as usize] = false;
        }
    }

    /// An object that is a member of a group.
    #[inline]
    fn member(&mut self, node: &Node, group: u32) {
        if self.is_open[group as usize] {
            return;
        }
        if node.size == 1 {
            self.retained[group as usize] += node.shallow;
        } else {
            self.is_open[group as usize] = true;
            self.open.push((node.at + node.size, group, self.sum));
        }
    }

    /// An object that is a member of only this group.
    #[inline]
    fn step(&mut self, node: &Node, group: u32) {
        self.close(node.at);
        self.member(node, group);
        self.sum += node.shallow;
    }

    fn finish(&mut self) -> Vec<u64> {
        self.close(u64::MAX);
        std::mem::take(&mut self.retained)
    }
}

/// Groups with names, one for each class.
struct Named<K> {
    keys: Vec<K>,
    of: Vec<u32>,
    sums: Nested,
}

impl<K: Clone + Eq + Hash> Named<K> {
    fn new(keys_of_classes: impl Iterator<Item = K>) -> Named<K> {
        let mut numbers = FxHashMap::default();
        let mut keys = Vec::new();
        let of = keys_of_classes
            .map(|key| {
                *numbers.entry(key).or_insert_with_key(|key| {
                    keys.push(key.clone());
                    keys.len() as u32 - 1
                })
            })
            .collect();
        let sums = Nested::new(keys.len());
        Named { keys, of, sums }
    }

    #[inline]
    fn step(&mut self, node: &Node) {
        let group = self.of[node.own.unwrap_or(node.class) as usize];
        self.sums.step(node, group);
    }

    fn finish(mut self) -> Vec<(K, Bytes)> {
        let retained = self.sums.finish().into_iter().map(Bytes);
        self.keys.into_iter().zip(retained).collect()
    }
}

/// Groups by class. A class object counts for the class that it represents, too.
struct Classes(Nested);

impl Classes {
    #[inline]
    fn step(&mut self, node: &Node) {
        let Classes(sums) = self;
        sums.close(node.at);
        // A class object belongs to the set of its own class and to that of java.lang.Class.
        if let Some(own) = node.own
            && own != node.class
        {
            sums.member(node, own);
        }
        sums.member(node, node.class);
        sums.sum += node.shallow;
    }
}

/// Groups by package, by loader, by class with subclasses, and by allocation site. In packages and loaders, a class
/// object counts for the class that it represents.
struct OtherGroups {
    packages: Named<String>,
    loaders: Named<ObjectId>,
    superclasses: Superclasses,
    /// If objects have different sites.
    sites: Option<Sites>,
}

impl OtherGroups {
    fn new(table: &ClassTable, sites: bool) -> OtherGroups {
        let names = table.classes.iter().map(|c| package_of(&c.name).to_owned());
        OtherGroups {
            packages: Named::new(names),
            loaders: Named::new(table.classes.iter().map(|c| c.loader)),
            superclasses: Superclasses::new(table),
            sites: sites.then(Sites::new),
        }
    }

    #[inline]
    fn step(&mut self, node: &Node) {
        self.packages.step(node);
        self.loaders.step(node);
        self.superclasses.step(node);
        if let Some(sites) = &mut self.sites {
            sites.step(node);
        }
    }

    fn finish(mut self) -> GroupSums {
        let superclasses = self.superclasses.sums.finish();
        GroupSums {
            superclasses: superclasses.into_iter().map(Bytes).collect(),
            sites: self.sites.map(Sites::finish).unwrap_or_default(),
            top_level: Vec::new(),
            packages: self.packages.finish(),
            loaders: self.loaders.finish(),
        }
    }
}

/// Groups by class with subclasses.
struct Superclasses {
    /// Superclass of each class, [`NONE`] for none; without cycles.
    above: Vec<u32>,
    sums: Nested,
}

impl Superclasses {
    fn new(table: &ClassTable) -> Superclasses {
        let above = table.classes.iter();
        let above = above.map(|class| class.super_class.map_or(NONE, |above| above.0));
        Superclasses {
            above: above.collect(),
            sums: Nested::new(table.classes.len()),
        }
    }

    #[inline]
    fn step(&mut self, node: &Node) {
        self.sums.close(node.at);
        let mut class = node.class;
        for _ in 0..DEEPEST {
            // The object that opened this group has opened those of the superclasses, too.
            if class == NONE || self.sums.is_open[class as usize] {
                break;
            }
            self.sums.member(node, class);
            class = self.above[class as usize];
        }
        self.sums.sum += node.shallow;
    }
}

/// Sums by allocation site.
struct Sites {
    numbers: FxHashMap<u32, u32>,
    rows: Vec<SiteSums>,
    sums: Nested,
}

impl Sites {
    fn new() -> Sites {
        Sites {
            numbers: FxHashMap::default(),
            rows: Vec::new(),
            sums: Nested::new(0),
        }
    }

    #[inline]
    fn step(&mut self, node: &Node) {
        let next = self.rows.len() as u32;
        let site = *self.numbers.entry(node.trace).or_insert(next);
        if site == next {
            self.rows.push(SiteSums {
                trace: Serial(node.trace),
                ..SiteSums::default()
            });
            self.sums.is_open.push(false);
            self.sums.retained.push(0);
        }
        let row = &mut self.rows[site as usize];
        row.objects += 1;
        row.shallow.0 += node.shallow;
        self.sums.step(node, site);
    }

    /// By trace.
    fn finish(mut self) -> Vec<SiteSums> {
        let retained = self.sums.finish();
        for (row, retained) in self.rows.iter_mut().zip(retained) {
            row.retained = Bytes(retained);
        }
        self.rows.sort_unstable_by_key(|row| row.trace);
        self.rows
    }
}
