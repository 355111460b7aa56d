//! Retained sizes of every object: its dominator subtree.

use super::cell::Cell;
use super::graph::Job;
use super::groups;
use super::output::Sizes;
use super::parallel;
use super::tape::{self, Tape};
use crate::HeapError;
use crate::index::{IndexWriter, Tag};
use crate::model::{ClassInfo, GroupSums, Summary};
use crate::packed::{BitWriter, ColumnBuilder, width_for};
use crate::raw::{BigVec, SharedSlice, bytes_of, prefetch, trim};
use hprof::Bytes;

/// What is reachable, by class.
#[derive(Debug, Default)]
pub(crate) struct Reached {
    objects: u64,
    shallow: u64,
    /// Per class: objects, shallow, retained.
    pub(crate) classes: Vec<[u64; 3]>,
    /// Other groups.
    pub(crate) groups: GroupSums,
    /// Virtual threads: id and place in the file.
    pub(crate) virtual_threads: Vec<(u64, u64)>,
}

impl Reached {
    fn add(&mut self, other: Reached) {
        self.objects += other.objects;
        self.shallow += other.shallow;
        for (all, one) in self.classes.iter_mut().zip(other.classes) {
            all[0] += one[0];
            all[1] += one[1];
        }
    }

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

/// Writes dominators, retained sizes and the lists of dominated objects. `numbers` has the
/// pre-order number of every object, `n` counts them, the virtual root included.
pub(crate) fn write<C: Cell>(
    job: &Job<'_>,
    index: &mut IndexWriter,
    numbers: &Tape<C>,
    mut idom: BigVec<'_, C>,
    n: u64,
    sizes: &Sizes<'_>,
) -> Result<Reached, HeapError> {
    let mut reached = Reached {
        classes: vec![[0; 3]; job.table.classes.len()],
        ..Reached::default()
    };
    let phases = &job.options.phases;
    phases.begin("groups");
    // Of each object its place, its subtree and where it is put; in two halves on large heaps.
    phases.random(3 * n);
    job.control.report("classes", 0, n);
    groups::sweep(job, numbers, &idom, n, sizes, &mut reached)?;
    job.control.check()?;
    phases.begin("retained sizes");
    phases.random(6 * n);
    job.control.report("retained sizes", 0, n);
    objects(job, index, numbers, &mut idom, n, sizes, &mut reached)?;
    drop(idom);
    trim();
    job.control.check()?;
    phases.begin("dominator tree");
    phases.random(3 * n);
    job.control.report("dominator tree", 0, n);
    dominated::<C>(job, index)?;
    Ok(reached)
}

/// How far ahead of its use a place is fetched.
pub(crate) const AHEAD: usize = 16;

/// Dominator and retained size of every object, in the order of objects.
fn objects<C: Cell>(
    job: &Job<'_>,
    index: &mut IndexWriter,
    numbers: &Tape<C>,
    idom: &mut [C],
    n: u64,
    sizes: &Sizes<'_>,
    reached: &mut Reached,
) -> Result<(), HeapError> {
    let io = || HeapError::io("retained sizes");
    let threads = job.options.thread_count();
    let mut retained = BigVec::<u64>::zeroed(n as usize, job.budget).map_err(io())?;
    let mut vertex = BigVec::<C>::zeroed(n as usize, job.budget).map_err(io())?;
    let sums = std::sync::Mutex::new(Vec::new());
    {
        let (retained, vertex) = (
            SharedSlice::new(&mut retained),
            SharedSlice::new(&mut vertex),
        );
        parallel::blocks(numbers.blocks(), threads, |block| {
            let own = fill_block(job, numbers, block, sizes, &retained, &vertex)?;
            if let Ok(mut sums) = sums.lock() {
                sums.push(own);
            }
            Ok(())
        })?;
    }
    for sum in sums.into_inner().unwrap_or_default() {
        reached.add(sum);
    }
    for pre in (1..n as usize).rev() {
        let own = retained[pre];
        retained[idom[pre].get() as usize] += own;
    }
    top_level(job, index, idom, &retained, &vertex, n)?;
    // From here on the dominator is wanted as an object; the virtual root keeps 0.
    let count = job.map.len();
    for dominator in idom.iter_mut().skip(1) {
        let object = match dominator.get() {
            0 => count,
            pre => vertex[pre as usize].get(),
        };
        *dominator = C::new(object);
    }
    drop(vertex);
    let width = dominator_width(count);
    let unit = job.objects.rules.alignment;
    let mut column = ColumnBuilder::default();
    let compute = |block: usize| {
        let mut cells = Vec::new();
        numbers.get(block, &mut cells)?;
        let of = |k: usize, cell: &C| {
            if let Some(ahead) = cells.get(k + AHEAD).and_then(|c| c.pre()) {
                prefetch(idom, ahead as usize);
                prefetch(&retained, ahead as usize);
            }
            let Some(pre) = cell.pre() else {
                return (count + 1, 0);
            };
            let object = (block * tape::BLOCK + k) as u64;
            let excess = retained[pre as usize] - sizes.shallow(object);
            (idom[pre as usize].get(), excess.div_ceil(unit))
        };
        Ok(cells
            .iter()
            .enumerate()
            .map(|(k, cell)| of(k, cell))
            .collect::<Vec<_>>())
    };
    index
        .section(Tag::Dominators, |out| {
            let mut bits = BitWriter::new(out);
            parallel::in_order(numbers.blocks(), threads, compute, |_, values| {
                for (dominator, excess) in values {
                    bits.push(dominator, width)?;
                    column.push(excess);
                }
                Ok(())
            })?;
            bits.finish()
        })
        .map_err(io())?;
    index
        .section(Tag::Retained, |out| column.write(out))
        .map_err(io())
}

/// Puts shallow sizes and objects of one block at their pre-order numbers.
fn fill_block<C: Cell>(
    job: &Job<'_>,
    numbers: &Tape<C>,
    block: usize,
    sizes: &Sizes<'_>,
    retained: &SharedSlice<'_, u64>,
    vertex: &SharedSlice<'_, C>,
) -> std::io::Result<Reached> {
    let plain_rows = job.options.layout == crate::LayoutModel::Plain;
    let mut sum = Reached {
        classes: vec![[0; 3]; job.table.classes.len()],
        ..Reached::default()
    };
    let mut cells = Vec::new();
    numbers.get(block, &mut cells)?;
    for (k, cell) in cells.iter().enumerate() {
        if let Some(ahead) = cells.get(k + AHEAD).and_then(|c| c.pre()) {
            retained.prefetch(ahead as usize);
            vertex.prefetch(ahead as usize);
        }
        let Some(pre) = cell.pre() else { continue };
        let object = (block * tape::BLOCK + k) as u64;
        let shallow = sizes.shallow(object);
        retained.set(pre, shallow);
        vertex.set(pre, C::new(object));
        sum.objects += 1;
        sum.shallow += shallow;
        let class = sizes.class(object);
        if !(plain_rows && class == job.table.class_class && job.class_objects.contains(object)) {
            let row = &mut sum.classes[class as usize];
            row[0] += 1;
            row[1] += shallow;
        }
    }
    Ok(sum)
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
