//! What groups of objects retain (the sum over members that no other member dominates): each
//! class, each class with its subclasses, each package, loader and allocation site.
//!
//! All by one sweep over the dominator tree in pre-order: a member counts when no other member of
//! its group is open.

use super::cell::Cell;
use super::graph::Job;
use super::output::Sizes;
use super::retained::{AHEAD, Reached};
use super::tape::{self, Tape};
use super::{classes::ClassTable, parallel};
use crate::HeapError;
use crate::model::{GroupSums, SiteSums};
use crate::raw::{BigVec, SharedSlice, prefetch};
use hprof::{Bytes, ObjectId, Serial, package_of};
use rustc_hash::FxHashMap;
use std::hash::Hash;

/// One object in the order of the dominator tree.
type Placed = [u32; 3]; // class, subtree size, shallow in units; u32::MAX: see `Order::large`

/// No superclass.
const NONE: u32 = u32::MAX;

/// An object counts for so many classes, its own and those above it: no program has more.
const DEEPEST: usize = 1024;

/// The sweep goes in two halves on large heaps, to bound its memory.
const WHOLE: u64 = 1 << 22;

/// Computes what all groups retain.
pub(crate) fn sweep<C: Cell>(
    job: &Job<'_>,
    numbers: &Tape<C>,
    idom: &[C],
    n: u64,
    sizes: &Sizes<'_>,
    reached: &mut Reached,
) -> Result<(), HeapError> {
    let io = || HeapError::io("retained sizes of classes");
    let (places, subtree) = tree_order(job, idom, n)?;
    let classes = class_objects_by_number(job);
    let half = if n > WHOLE { n / 2 + 1 } else { n };
    let mut placed = BigVec::<Placed>::zeroed(half as usize, job.budget).map_err(io())?;
    let sites = if sizes.has_traces() { half } else { 0 };
    let mut traces = BigVec::<u32>::zeroed(sites as usize, job.budget).map_err(io())?;
    let mut by_owner = ByOwner::new(job.table);
    let mut by_kind = ByKind::new(job.table, sizes.has_traces());
    let threads = job.options.thread_count();
    let mut from = 0u64;
    while from + 1 < n {
        let to = (from + half).min(n - 1);
        let special = std::sync::Mutex::new(Special::default());
        {
            let placer = Placer {
                unit: job.objects.rules.alignment,
                class_class: job.table.class_class,
                sizes,
                classes: &classes,
                from,
                placed: SharedSlice::new(&mut placed),
                traces: (sites > 0).then(|| SharedSlice::new(&mut traces)),
                special: &special,
            };
            parallel::blocks(numbers.blocks(), threads, |block| {
                let mut cells = Vec::new();
                numbers.get(block, &mut cells)?;
                for (k, cell) in cells.iter().enumerate() {
                    if let Some(ahead) = cells.get(k + AHEAD).and_then(|c| c.pre()) {
                        prefetch(&places, ahead as usize);
                    }
                    let Some(pre) = cell.pre() else { continue };
                    let at = places[pre as usize].get();
                    if (from..to).contains(&at) {
                        let object = (block * tape::BLOCK + k) as u64;
                        placer.place(at, object, subtree[pre as usize].get());
                    }
                }
                Ok(())
            })?;
        }
        let order = Order {
            placed: &placed[..(to - from) as usize],
            traces: &traces,
            from,
            unit: job.objects.rules.alignment,
            class_class: job.table.class_class,
            special: &special.into_inner().unwrap_or_default(),
        };
        if threads > 1 {
            std::thread::scope(|scope| {
                scope.spawn(|| order.each(|node| by_kind.step(node)));
                order.each(|node| by_owner.step(node));
            });
        } else {
            order.each(|node| by_kind.step(node));
            order.each(|node| by_owner.step(node));
        }
        from = to;
    }
    let retained = by_owner.classes.finish();
    for (row, retained) in reached.classes.iter_mut().zip(retained) {
        row[2] = retained;
    }
    reached.groups = GroupSums {
        superclasses: by_kind
            .superclasses
            .finish()
            .into_iter()
            .map(Bytes)
            .collect(),
        sites: by_kind.sites.map(Sites::finish).unwrap_or_default(),
        packages: by_owner.packages.finish(),
        loaders: by_owner.loaders.finish(),
    };
    Ok(())
}

/// What does not fit into [`Placed`], by place.
#[derive(Default)]
struct Special {
    /// Subtree size and shallow size, where one of them is large.
    large: FxHashMap<u64, (u64, u64)>,
    /// The class that a class object is.
    class_at: FxHashMap<u64, u32>,
}

/// Puts objects at their places.
struct Placer<'a, 's> {
    unit: u64,
    class_class: u32,
    sizes: &'a Sizes<'s>,
    classes: &'a FxHashMap<u64, u32>,
    from: u64,
    placed: SharedSlice<'a, Placed>,
    traces: Option<SharedSlice<'a, u32>>,
    special: &'a std::sync::Mutex<Special>,
}

impl Placer<'_, '_> {
    #[inline]
    fn place(&self, at: u64, object: u64, size: u64) {
        let shallow = self.sizes.shallow(object) / self.unit;
        let short_size = u32::try_from(size).unwrap_or(u32::MAX);
        let short = u32::try_from(shallow).unwrap_or(u32::MAX);
        let class = self.sizes.class(object);
        self.placed.set(at - self.from, [class, short_size, short]);
        if let Some(traces) = &self.traces {
            traces.set(at - self.from, self.sizes.trace(object));
        }
        let large = short_size == u32::MAX || short == u32::MAX;
        if (large || class == self.class_class)
            && let Ok(mut special) = self.special.lock()
        {
            if large {
                special.large.insert(at, (size, shallow * self.unit));
            }
            if let Some(class) = self.classes.get(&object) {
                special.class_at.insert(at, *class);
            }
        }
    }
}

/// An object as the sweep passes it.
struct Node {
    at: u64,
    class: u32,
    /// The class that the object is, if it is one.
    own: Option<u32>,
    /// Objects in its subtree, itself included.
    size: u64,
    shallow: u64,
    trace: u32,
}

/// A stretch of the pre-order of the dominator tree.
struct Order<'a> {
    placed: &'a [Placed],
    traces: &'a [u32],
    from: u64,
    unit: u64,
    class_class: u32,
    special: &'a Special,
}

impl Order<'_> {
    #[inline(always)]
    fn each(&self, mut visit: impl FnMut(&Node)) {
        for (k, [class, size, short]) in self.placed.iter().copied().enumerate() {
            let at = self.from + k as u64;
            let (size, shallow) = if size == u32::MAX || short == u32::MAX {
                self.special.large.get(&at).copied().unwrap_or((1, 0))
            } else {
                (u64::from(size), u64::from(short) * self.unit)
            };
            let own = (class == self.class_class)
                .then(|| self.special.class_at.get(&at).copied())
                .flatten();
            visit(&Node {
                at,
                class,
                own,
                size,
                shallow,
                trace: self.traces.get(k).copied().unwrap_or(0),
            });
        }
    }
}

/// The sums of groups that lie inside each other.
struct Nested {
    /// Open subtrees: end, group, sum at its begin.
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

    /// An object that is a member of this group alone.
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

/// What the class of an object decides, with class objects under the class that they are.
struct ByOwner {
    classes: Nested,
    packages: Named<String>,
    loaders: Named<ObjectId>,
}

impl ByOwner {
    fn new(table: &ClassTable) -> ByOwner {
        let names = table.classes.iter().map(|c| package_of(&c.name).to_owned());
        ByOwner {
            classes: Nested::new(table.classes.len()),
            packages: Named::new(names),
            loaders: Named::new(table.classes.iter().map(|c| c.loader)),
        }
    }

    #[inline]
    fn step(&mut self, node: &Node) {
        self.classes.close(node.at);
        // A class object belongs to the set of its own class and to that of java.lang.Class.
        if let Some(own) = node.own
            && own != node.class
        {
            self.classes.member(node, own);
        }
        self.classes.member(node, node.class);
        self.classes.sum += node.shallow;
        self.packages.step(node);
        self.loaders.step(node);
    }
}

/// What an object is an instance of, and where it was allocated.
struct ByKind {
    /// Superclass of each class, [`NONE`] for none; no circles.
    above: Vec<u32>,
    superclasses: Nested,
    /// When objects have different ones.
    sites: Option<Sites>,
}

impl ByKind {
    fn new(table: &ClassTable, sites: bool) -> ByKind {
        let above = table.classes.iter();
        let above = above.map(|class| class.super_class.map_or(NONE, |above| above.0));
        ByKind {
            above: above.collect(),
            superclasses: Nested::new(table.classes.len()),
            sites: sites.then(Sites::new),
        }
    }

    #[inline]
    fn step(&mut self, node: &Node) {
        self.superclasses.close(node.at);
        let mut class = node.class;
        for _ in 0..DEEPEST {
            // Whatever opened it has opened those above, too.
            if class == NONE || self.superclasses.is_open[class as usize] {
                break;
            }
            self.superclasses.member(node, class);
            class = self.above[class as usize];
        }
        self.superclasses.sum += node.shallow;
        if let Some(sites) = &mut self.sites {
            sites.step(node);
        }
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

/// Places in the pre-order of the dominator tree, and subtree sizes, by search number.
fn tree_order<'b, C: Cell>(
    job: &Job<'b>,
    idom: &[C],
    n: u64,
) -> Result<(BigVec<'b, C>, BigVec<'b, C>), HeapError> {
    let io = || HeapError::io("retained sizes of classes");
    let mut subtree = BigVec::<C>::zeroed(n as usize, job.budget).map_err(io())?;
    for pre in (1..n as usize).rev() {
        let size = subtree[pre].get() + 1;
        subtree[pre] = C::new(size);
        let above = idom[pre].get() as usize;
        subtree[above] = C::new(subtree[above].get() + size);
    }
    // The place of a node is the next free one of its dominator.
    let mut places = BigVec::<C>::zeroed(n as usize, job.budget).map_err(io())?;
    for pre in 1..n as usize {
        let above = idom[pre].get() as usize;
        let at = places[above].get();
        places[above] = C::new(at + subtree[pre].get());
        places[pre] = C::new(at + 1);
    }
    // After its children were placed, a node's counter is its place plus their number.
    for (at, size) in places.iter_mut().zip(subtree.iter()) {
        *at = C::new(at.get().saturating_sub(size.get()));
    }
    Ok((places, subtree))
}

fn class_objects_by_number(job: &Job<'_>) -> rustc_hash::FxHashMap<u64, u32> {
    let classes = job
        .table
        .classes
        .iter()
        .enumerate()
        .filter(|(_, c)| c.dumped);
    classes
        .filter_map(|(i, c)| Some((job.map.rank(c.id.0)?, i as u32)))
        .collect()
}
