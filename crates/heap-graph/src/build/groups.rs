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
use std::mem;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{self, Scope, ScopedJoinHandle};

/// No class.
pub(crate) const NONE: u32 = u32::MAX;

/// Maximum superclass depth; deeper ancestors are ignored. No program has more.
const DEEPEST: usize = 1024;

/// How many nodes are passed to the other thread at a time.
const CHUNK: usize = 1 << 13;

/// An object in the sweep.
pub(crate) struct Node {
    /// Objects in its subtree, itself included.
    pub(crate) size: u64,
    pub(crate) shallow: u64,
    pub(crate) class: u32,
    /// The class that the object is, [`NONE`] if it is none.
    pub(crate) own: u32,
    pub(crate) trace: u32,
}

/// Receives all objects in the pre-order of the dominator tree, and has their groups added up.
pub(crate) struct Groups<'s> {
    adder: Adder<'s>,
    chunk: Vec<Node>,
}

/// Who adds up the groups: this thread, or another one.
enum Adder<'s> {
    Here(Box<RetainedSums>),
    Elsewhere {
        chunks: SyncSender<Vec<Node>>,
        /// Chunks that it has finished, for reuse.
        spare: Receiver<Vec<Node>>,
        thread: ScopedJoinHandle<'s, RetainedSums>,
    },
}

impl<'s> Adder<'s> {
    /// `None` if the system starts no further thread.
    fn elsewhere<'e>(
        table: &ClassTable,
        sites: bool,
        scope: &'s Scope<'s, 'e>,
    ) -> Option<Adder<'s>> {
        let (chunks, received) = sync_channel::<Vec<Node>>(2);
        let (done, spare) = channel();
        let mut sums = RetainedSums::new(table, sites);
        let run = move || {
            for chunk in received {
                chunk.iter().for_each(|node| sums.step(node));
                // At the end of the sweep the receiver has been dropped.
                let _ = done.send(chunk);
            }
            sums
        };
        let thread = thread::Builder::new().spawn_scoped(scope, run).ok()?;
        Some(Adder::Elsewhere {
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
        let elsewhere = (threads > 1).then(|| Adder::elsewhere(table, sites, scope));
        let here = || Adder::Here(Box::new(RetainedSums::new(table, sites)));
        Groups {
            adder: elsewhere.flatten().unwrap_or_else(here),
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
        match &mut self.adder {
            Adder::Here(sums) => self.chunk.iter().for_each(|node| sums.step(node)),
            Adder::Elsewhere { chunks, spare, .. } => {
                let next = spare.try_recv();
                let next = next.unwrap_or_else(|_| Vec::with_capacity(CHUNK));
                // The thread ends early only by a panic, which `finish` passes on.
                let _ = chunks.send(mem::replace(&mut self.chunk, next));
            }
        }
        self.chunk.clear();
    }

    /// The retained size of each class, and the other groups.
    pub(crate) fn finish(mut self) -> (Vec<u64>, GroupSums) {
        self.pass_on();
        let sums = match self.adder {
            Adder::Here(sums) => *sums,
            Adder::Elsewhere { chunks, thread, .. } => {
                drop(chunks);
                let joined = thread.join();
                joined.unwrap_or_else(|p| std::panic::resume_unwind(p))
            }
        };
        sums.finish()
    }
}

/// The sums of groups of several kinds, with one number for each group of any kind.
struct Nested {
    /// Open subtrees: end, group, sum at the beginning.
    open: Vec<(u64, u32, u64)>,
    is_open: Vec<bool>,
    retained: Vec<u64>,
    /// The place of the next object, and the size of all before it.
    at: u64,
    sum: u64,
}

impl Nested {
    fn new(groups: usize) -> Nested {
        Nested {
            open: Vec::new(),
            is_open: vec![false; groups],
            retained: vec![0; groups],
            at: 0,
            sum: 0,
        }
    }

    /// Closes the subtrees that end before the next object.
    #[inline]
    fn close(&mut self) {
        while let Some((_, group, before)) = self.open.pop_if(|o| o.0 <= self.at) {
            self.retained[group as usize] += self.sum - before;
            self.is_open[group as usize] = false;
        }
    }

    /// The next object is a member of a group.
    #[inline]
    fn member(&mut self, node: &Node, group: u32) {
        if self.is_open[group as usize] {
            return;
        }
        if node.size == 1 {
            self.retained[group as usize] += node.shallow;
        } else {
            self.is_open[group as usize] = true;
            self.open.push((self.at + node.size, group, self.sum));
        }
    }

    /// All groups of the next object are known.
    #[inline]
    fn pass(&mut self, node: &Node) {
        self.at += 1;
        self.sum += node.shallow;
    }

    fn finish(&mut self) -> Vec<u64> {
        self.at = u64::MAX;
        self.close();
        mem::take(&mut self.retained)
    }
}

/// The groups of the objects of a class, as numbers of groups. The group of the class itself has the number of the class.
#[derive(Clone, Copy)]
struct OfClass {
    package: u32,
    loader: u32,
    /// The class with its subclasses.
    with_subclasses: u32,
    /// The superclass; [`NONE`] for none, without cycles.
    above: u32,
}

/// The sums of all groups.
struct RetainedSums {
    of: Vec<OfClass>,
    packages: Vec<String>,
    loaders: Vec<ObjectId>,
    nested: Nested,
    /// If objects have different sites.
    sites: Option<Sites>,
}

impl RetainedSums {
    fn new(table: &ClassTable, sites: bool) -> RetainedSums {
        let classes = table.classes.len() as u32;
        let mut of = Vec::with_capacity(table.classes.len());
        let (mut packages, mut loaders) = (Numbers::default(), Numbers::default());
        for (number, class) in table.classes.iter().enumerate() {
            of.push(OfClass {
                package: packages.of(package_of(&class.name).to_owned()),
                loader: loaders.of(class.loader),
                with_subclasses: classes + number as u32,
                above: class.super_class.map_or(NONE, |above| above.0),
            });
        }
        let (packages, loaders) = (packages.keys, loaders.keys);
        for groups in &mut of {
            groups.package += 2 * classes;
            groups.loader += 2 * classes + packages.len() as u32;
        }
        let groups = 2 * of.len() + packages.len() + loaders.len();
        RetainedSums {
            of,
            packages,
            loaders,
            nested: Nested::new(groups),
            sites: sites.then(Sites::new),
        }
    }

    /// A class object counts in the group of `java.lang.Class` with its superclasses, and in those of the class that it
    /// is: the class itself, its package and its loader.
    #[inline]
    fn step(&mut self, node: &Node) {
        let nested = &mut self.nested;
        nested.close();
        let named = match node.own {
            NONE => node.class,
            own => own,
        };
        nested.member(node, named);
        if named != node.class {
            nested.member(node, node.class);
        }
        let groups = self.of[named as usize];
        nested.member(node, groups.package);
        nested.member(node, groups.loader);
        let mut class = node.class;
        for _ in 0..DEEPEST {
            let Some(groups) = self.of.get(class as usize) else {
                break;
            };
            // The object that opened this group has opened those of the superclasses, too.
            if nested.is_open[groups.with_subclasses as usize] {
                break;
            }
            nested.member(node, groups.with_subclasses);
            class = groups.above;
        }
        nested.pass(node);
        if let Some(sites) = &mut self.sites {
            sites.step(node);
        }
    }

    fn finish(mut self) -> (Vec<u64>, GroupSums) {
        let mut retained = self.nested.finish();
        let mut rest = retained.split_off(self.of.len()).into_iter().map(Bytes);
        let superclasses = rest.by_ref().take(self.of.len()).collect();
        let groups = GroupSums {
            superclasses,
            sites: self.sites.map(Sites::finish).unwrap_or_default(),
            top_level: Vec::new(),
            packages: self.packages.into_iter().zip(rest.by_ref()).collect(),
            loaders: self.loaders.into_iter().zip(rest).collect(),
        };
        (retained, groups)
    }
}

/// Numbers of keys, from 0 in the order of their first use.
struct Numbers<K> {
    numbers: FxHashMap<K, u32>,
    keys: Vec<K>,
}

impl<K> Default for Numbers<K> {
    fn default() -> Numbers<K> {
        Numbers {
            numbers: FxHashMap::default(),
            keys: Vec::new(),
        }
    }
}

impl<K: Clone + Eq + Hash> Numbers<K> {
    fn of(&mut self, key: K) -> u32 {
        *self.numbers.entry(key).or_insert_with_key(|key| {
            self.keys.push(key.clone());
            self.keys.len() as u32 - 1
        })
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
        self.sums.close();
        self.sums.member(node, site);
        self.sums.pass(node);
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
