//! Retained sizes: of every object (its dominator subtree), and of every class (the sum over
//! members that no other member dominates).

use super::cell::Cell;
use super::graph::Job;
use super::output::{Sizes, class_object_set};
use crate::HeapError;
use crate::index::{IndexWriter, Tag};
use crate::model::{ClassInfo, Summary};
use crate::packed::{BitWriter, ColumnBuilder, width_for};
use crate::raw::{BigVec, bytes_of, prefetch};
use hprof::Bytes;

/// What is reachable, by class.
#[derive(Debug, Default)]
pub(crate) struct Reached {
    objects: u64,
    shallow: u64,
    /// Per class: objects, shallow, retained.
    classes: Vec<[u64; 3]>,
    /// Virtual threads: id and place in the file.
    pub(crate) virtual_threads: Vec<(u64, u64)>,
}

impl Reached {
    pub(crate) fn fill(self, classes: &mut [ClassInfo], summary: &mut Summary) {
        summary.reachable_objects = self.objects;
        summary.reachable_shallow = Bytes(self.shallow);
        for (info, [objects, shallow, retained]) in classes.iter_mut().zip(self.classes) {
            info.reachable_objects = objects;
            info.reachable_shallow = Bytes(shallow);
            info.retained = Bytes(retained);
        }
    }
}

/// Width of a packed dominator: an object, the virtual root, or "unreachable".
pub(crate) fn dominator_width(objects: u64) -> u32 {
    width_for(objects + 1)
}

/// Writes dominators, retained sizes and the lists of dominated objects. `n` counts pre-order
/// numbers, the virtual root included.
pub(crate) fn write<C: Cell>(
    job: &Job<'_>,
    index: &mut IndexWriter,
    cells: BigVec<'_, C>,
    idom: BigVec<'_, C>,
    n: u64,
    sizes: &Sizes<'_>,
) -> Result<Reached, HeapError> {
    let mut reached = Reached {
        classes: vec![[0; 3]; job.table.classes.len()],
        ..Reached::default()
    };
    job.control.report("retained sizes", 0, n);
    objects(job, index, &cells, &idom, n, sizes, &mut reached)?;
    job.control.check()?;
    job.control.report("classes", 0, n);
    classes(job, &cells, idom, n, sizes, &mut reached)?;
    drop(cells);
    job.control.check()?;
    job.control.report("dominator tree", 0, n);
    dominated::<C>(job, index)?;
    Ok(reached)
}

/// Dominator and retained size of every object, in the order of objects.
fn objects<C: Cell>(
    job: &Job<'_>,
    index: &mut IndexWriter,
    cells: &[C],
    idom: &[C],
    n: u64,
    sizes: &Sizes<'_>,
    reached: &mut Reached,
) -> Result<(), HeapError> {
    let io = || HeapError::io("retained sizes");
    let plain_rows = job.options.layout == crate::LayoutModel::Plain;
    let class_objects = plain_rows.then(|| class_object_set(job.table, job.map));
    let mut retained = BigVec::<u64>::zeroed(n as usize, job.budget).map_err(io())?;
    let mut vertex = BigVec::<C>::zeroed(n as usize, job.budget).map_err(io())?;
    for (object, cell) in cells.iter().enumerate() {
        let Some(pre) = cell.pre() else { continue };
        let shallow = sizes.shallow(object as u64);
        retained[pre as usize] = shallow;
        vertex[pre as usize] = C::new(object as u64);
        reached.objects += 1;
        reached.shallow += shallow;
        if class_objects
            .as_ref()
            .is_none_or(|set| !set.contains(object as u64))
        {
            let row = &mut reached.classes[sizes.class(object as u64) as usize];
            row[0] += 1;
            row[1] += shallow;
        }
    }
    for pre in (1..n as usize).rev() {
        let own = retained[pre];
        retained[idom[pre].get() as usize] += own;
    }
    top_level(job, index, idom, &retained, &vertex, n)?;
    let count = job.map.len();
    let width = dominator_width(count);
    let unit = job.objects.rules.alignment;
    let mut column = ColumnBuilder::default();
    index
        .section(Tag::Dominators, |out| {
            let mut bits = BitWriter::new(out);
            for (object, cell) in cells.iter().enumerate() {
                if let Some(ahead) = cells.get(object + 16).and_then(|c| c.pre()) {
                    prefetch(idom, ahead as usize);
                    prefetch(&retained, ahead as usize);
                }
                let Some(pre) = cell.pre() else {
                    bits.push(count + 1, width)?;
                    column.push(0);
                    continue;
                };
                let dominator = idom[pre as usize].get();
                bits.push(
                    if dominator == 0 {
                        count
                    } else {
                        vertex[dominator as usize].get()
                    },
                    width,
                )?;
                column.push((retained[pre as usize] - sizes.shallow(object as u64)).div_ceil(unit));
            }
            bits.finish()
        })
        .map_err(io())?;
    index
        .section(Tag::Retained, |out| column.write(out))
        .map_err(io())
}

/// The children of the virtual root, largest first.
fn top_level<C: Cell>(
    job: &Job<'_>,
    index: &mut IndexWriter,
    idom: &[C],
    retained: &[u64],
    vertex: &[C],
    n: u64,
) -> Result<(), HeapError> {
    let mut top: Vec<(u64, C)> = (1..n as usize)
        .filter(|pre| idom[*pre].get() == 0)
        .map(|pre| (retained[pre], vertex[pre]))
        .collect();
    top.sort_unstable_by_key(|(size, object)| (std::cmp::Reverse(*size), *object));
    let width = width_for(job.map.len());
    index
        .section(Tag::TopLevel, |out| {
            out.write_all(bytes_of(&[top.len() as u64]))?;
            let mut bits = BitWriter::new(out);
            for (_, object) in &top {
                bits.push(object.get(), width)?;
            }
            bits.finish()
        })
        .map_err(HeapError::io("index"))
}

/// One object in the order of the dominator tree.
type Placed = [u32; 3]; // class, subtree size, shallow in units; u32::MAX: see `Sweep::large`

/// The sweep goes in two halves on large heaps, to bound its memory.
const WHOLE: u64 = 1 << 22;

/// Retained size per class by one sweep over the dominator tree in pre-order: a member counts
/// when no other member of its class is open.
fn classes<C: Cell>(
    job: &Job<'_>,
    cells: &[C],
    idom: BigVec<'_, C>,
    n: u64,
    sizes: &Sizes<'_>,
    reached: &mut Reached,
) -> Result<(), HeapError> {
    let io = || HeapError::io("retained sizes of classes");
    let mut subtree = BigVec::<C>::zeroed(n as usize, job.budget).map_err(io())?;
    for pre in (1..n as usize).rev() {
        let size = subtree[pre].get() + 1;
        subtree[pre] = C::new(size);
        let above = idom[pre].get() as usize;
        subtree[above] = C::new(subtree[above].get() + size);
    }
    // The place of a node is the next free one of its dominator.
    let mut place = BigVec::<C>::zeroed(n as usize, job.budget).map_err(io())?;
    for pre in 1..n as usize {
        let above = idom[pre].get() as usize;
        let at = place[above].get();
        place[above] = C::new(at + subtree[pre].get());
        place[pre] = C::new(at + 1);
    }
    drop(idom);
    // After its children were placed, a node's counter is its place plus their number.
    for (at, size) in place.iter_mut().zip(subtree.iter()) {
        *at = C::new(at.get().saturating_sub(size.get()));
    }
    let class_of_object = class_objects_by_number(job);
    let mut sweep = Sweep::new(job.table.classes.len(), job.table.class_class);
    let places = if n > WHOLE { n / 2 + 1 } else { n };
    let mut placed = BigVec::<Placed>::zeroed(places as usize, job.budget).map_err(io())?;
    let unit = job.objects.rules.alignment;
    let mut from = 0u64;
    while from + 1 < n {
        let to = (from + places).min(n - 1);
        for (object, cell) in cells.iter().enumerate() {
            if let Some(ahead) = cells.get(object + 16).and_then(|c| c.pre()) {
                prefetch(&place, ahead as usize);
            }
            let Some(pre) = cell.pre() else { continue };
            let at = place[pre as usize].get();
            if at >= from && at < to {
                let size = subtree[pre as usize].get();
                let object = object as u64;
                let shallow = sizes.shallow(object) / unit;
                let (short_size, short) = (
                    u32::try_from(size).unwrap_or(u32::MAX),
                    u32::try_from(shallow).unwrap_or(u32::MAX),
                );
                if short_size == u32::MAX || short == u32::MAX {
                    sweep.large.insert(at, (size, shallow * unit));
                }
                placed[(at - from) as usize] = [sizes.class(object), short_size, short];
                if let Some(class) = class_of_object.get(&object) {
                    sweep.class_at.insert(at, *class);
                }
            }
        }
        for at in from..to {
            let [class, size, short] = placed[(at - from) as usize];
            let (size, shallow) = if size == u32::MAX || short == u32::MAX {
                sweep.large.remove(&at).unwrap_or((1, 0))
            } else {
                (u64::from(size), u64::from(short) * unit)
            };
            sweep.step(at, class, size, shallow);
        }
        from = to;
    }
    for (row, retained) in reached.classes.iter_mut().zip(sweep.finish()) {
        row[2] = retained;
    }
    Ok(())
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

/// The state of the sweep.
struct Sweep {
    /// Open subtrees: end, class, sum at its begin; class `u32::MAX` when it does not count.
    open: Vec<(u64, u32, u64)>,
    is_open: Vec<bool>,
    retained: Vec<u64>,
    sum: u64,
    class_class: u32,
    class_at: rustc_hash::FxHashMap<u64, u32>,
    /// Subtree size and shallow size of places whose values do not fit.
    large: rustc_hash::FxHashMap<u64, (u64, u64)>,
}

impl Sweep {
    fn new(classes: usize, class_class: u32) -> Sweep {
        Sweep {
            open: Vec::new(),
            is_open: vec![false; classes],
            retained: vec![0; classes],
            sum: 0,
            class_class,
            class_at: Default::default(),
            large: Default::default(),
        }
    }

    fn close(&mut self, at: u64) {
        while let Some((_, class, before)) = self.open.pop_if(|o| o.0 <= at) {
            self.retained[class as usize] += self.sum - before;
            self.is_open[class as usize] = false;
        }
    }

    #[inline]
    fn member(&mut self, at: u64, class: u32, size: u64, shallow: u64) {
        if self.is_open[class as usize] {
            return;
        }
        if size == 1 {
            self.retained[class as usize] += shallow;
        } else {
            self.is_open[class as usize] = true;
            self.open.push((at + size, class, self.sum));
        }
    }

    #[inline]
    fn step(&mut self, at: u64, class: u32, size: u64, shallow: u64) {
        self.close(at);
        // A class object belongs to the set of its own class and to that of java.lang.Class.
        if class == self.class_class
            && let Some(own) = self.class_at.remove(&at)
            && own != class
        {
            self.member(at, own, size, shallow);
        }
        self.member(at, class, size, shallow);
        self.sum += shallow;
    }

    fn finish(mut self) -> Vec<u64> {
        self.close(u64::MAX);
        self.retained
    }
}

/// The objects that each object dominates, by a counting sort of the dominators just written.
fn dominated<C: Cell>(job: &Job<'_>, index: &mut IndexWriter) -> Result<(), HeapError> {
    let io = || HeapError::io("dominator tree");
    let count = job.map.len();
    let view = index.view().map_err(io())?;
    let dominators =
        crate::packed::Packed::new(view.bytes(Tag::Dominators), dominator_width(count), count);
    let mut next = BigVec::<C>::zeroed(count as usize + 1, job.budget).map_err(io())?;
    for object in 0..count {
        let dominator = dominators.get(object);
        if dominator < count {
            next[dominator as usize] = C::new(next[dominator as usize].get() + 1);
        }
    }
    let mut counts = ColumnBuilder::default();
    let mut starts = Vec::with_capacity(count as usize / 64 + 1);
    let mut sum = 0u64;
    for object in 0..count as usize {
        if object % 64 == 0 {
            starts.push(sum);
        }
        let own = next[object].get();
        counts.push(own);
        next[object] = C::new(sum);
        sum += own;
    }
    let mut lists = BigVec::<C>::zeroed(sum as usize, job.budget).map_err(io())?;
    for object in 0..count {
        let dominator = dominators.get(object);
        if dominator < count {
            let at = next[dominator as usize].get();
            lists[at as usize] = C::new(object);
            next[dominator as usize] = C::new(at + 1);
        }
    }
    drop(next);
    let width = width_for(count);
    index
        .section(Tag::Dominated, |out| {
            let mut bits = BitWriter::new(out);
            for object in lists.iter() {
                bits.push(object.get(), width)?;
            }
            bits.finish()
        })
        .map_err(io())?;
    index
        .section(Tag::DominatedCounts, |out| counts.write(out))
        .map_err(io())?;
    index
        .section(Tag::DominatedStarts, |out| out.write_all(bytes_of(&starts)))
        .map_err(io())
}
