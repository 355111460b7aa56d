//! The dominator tree in pre-order: every object has a place (an index), followed by the objects that it dominates.

use super::cell::Cell;
use super::job::Job;
use super::output::Sizes;
use super::reached::Reached;
use super::tape::Tape;
use crate::HeapError;
use crate::parallel;
use crate::raw::{BigVec, SharedSlice, prefetch, trim};
use std::sync::Mutex;

/// How many elements before its use a place is fetched into the cache.
pub(crate) const AHEAD: usize = 16;

/// The entry at a place, before the sweep: an object, and its class and size (see [`kind`]).
pub(crate) type Placed<R> = [R; 2];

/// All reachable objects, by place.
pub(crate) struct Tree<'b, C: Cell, R: Cell> {
    /// The place of each object, marked as visited; not marked if the object is not reachable.
    pub(crate) places: Tape<C>,
    /// For each place, the number of objects in its subtree, including itself.
    pub(crate) subtrees: Tape<C>,
    pub(crate) placed: BigVec<'b, Placed<R>>,
}

/// Marks a class or size that does not fit into 16 bits.
const OTHER_KIND: u64 = u32::MAX as u64;

/// Class and size in units as one word of 32 bits.
#[inline(always)]
fn kind(class: u32, units: u64) -> u64 {
    if class < 0xffff && units < 0xffff {
        u64::from(class) << 16 | units
    } else {
        OTHER_KIND
    }
}

/// Class and size in units of an object of this kind.
#[inline(always)]
pub(crate) fn of_kind(kind: u64, object: u64, sizes: &Sizes<'_>) -> (u32, u64) {
    if kind == OTHER_KIND {
        (sizes.class(object), sizes.units(object))
    } else {
        ((kind >> 16) as u32, kind & 0xffff)
    }
}

/// Stores all objects at their places. `numbers` has the search number of every object; `n` is their count, including
/// the virtual root.
pub(crate) fn build<'b, C: Cell, R: Cell>(
    job: &Job<'b>,
    numbers: &Tape<C>,
    idom: BigVec<'b, C>,
    n: u64,
    sizes: &Sizes<'_>,
    reached: &mut Reached,
) -> Result<Tree<'b, C, R>, HeapError> {
    let io = || HeapError::io("dominator tree");
    let (order, subtrees) = order(job, idom, n)?;
    let len = n as usize - 1;
    let mut placed = BigVec::<Placed<R>>::zeroed(len, job.budget).map_err(io())?;
    let places = Tape::new(numbers.len, job.budget).map_err(io())?;
    let all = Mutex::new((places, reached));
    {
        let shared = SharedSlice::new(&mut placed);
        let threads = job.options.thread_count();
        let compute = |block, (buffer, own): &mut (Vec<C>, Vec<C>)| {
            let cells = numbers.get(block, buffer)?;
            own.clear();
            own.extend(cells.iter().enumerate().map(|(k, cell)| {
                if let Some(ahead) = cells.get(k + AHEAD).and_then(|c| c.pre()) {
                    prefetch(&order, ahead as usize);
                }
                cell.pre()
                    .map_or(*cell, |pre| C::visited(order[pre as usize].get()))
            }));
            let sum = place(job, super::pairs::first_of(block), own, sizes, &shared);
            if let Ok(mut all) = all.lock() {
                let (places, reached) = &mut *all;
                places.put(block, own)?;
                reached.add(sum);
            }
            Ok(())
        };
        parallel::blocks(numbers.blocks(), threads, compute)?;
    }
    let (mut places, _) = all.into_inner().unwrap_or_else(|e| e.into_inner());
    places.len = numbers.len;
    Ok(Tree {
        places,
        subtrees,
        placed,
    })
}

/// Stores the objects from `first` on at these places, and adds them up.
fn place<C: Cell, R: Cell>(
    job: &Job<'_>,
    first: u64,
    places: &[C],
    sizes: &Sizes<'_>,
    placed: &SharedSlice<'_, Placed<R>>,
) -> Reached {
    let plain_rows = job.options.layout == crate::LayoutModel::Plain;
    let unit = job.objects.rules.alignment;
    let mut sum = Reached::new(job.table.classes.len());
    for (k, at) in places.iter().enumerate() {
        if let Some(ahead) = places.get(k + AHEAD).and_then(|c| c.pre()) {
            placed.prefetch(ahead as usize);
        }
        let Some(at) = at.pre() else { continue };
        let object = first + k as u64;
        let (class, units) = (sizes.class(object), sizes.units(object));
        placed.set(at, [R::new(object), R::new(kind(class, units))]);
        let is_row =
            !(plain_rows && class == job.table.class_class && job.class_objects.contains(object));
        sum.object(class, units * unit, is_row);
    }
    sum
}

/// Places by search number, and subtree sizes by place.
fn order<'b, C: Cell>(
    job: &Job<'b>,
    idom: BigVec<'b, C>,
    n: u64,
) -> Result<(BigVec<'b, C>, Tape<C>), HeapError> {
    let io = || HeapError::io("dominator tree");
    let mut subtree = BigVec::<C>::zeroed(n as usize, job.budget).map_err(io())?;
    for pre in (1..n as usize).rev() {
        let size = subtree[pre].get() + 1;
        subtree[pre] = C::new(size);
        let above = idom[pre].get() as usize;
        subtree[above] = C::new(subtree[above].get() + size);
    }
    // Assigns pre-order places, which overwrite the dominators: these have lower numbers. `places[d]` is the next free
    // place among the children of `d`.
    let mut places = idom;
    for pre in 1..n as usize {
        let above = places[pre].get() as usize;
        let at = places[above].get();
        places[above] = C::new(at + subtree[pre].get());
        places[pre] = C::new(at + 1);
    }
    let mut by_place = BigVec::<C>::zeroed(n as usize - 1, job.budget).map_err(io())?;
    for (place, size) in places.iter_mut().zip(subtree.iter()).skip(1) {
        // After all nodes below it were placed, a node's counter is its place plus their number. The two are
        // inconsistent only if the disk of a temporary file was full, which is reported later.
        let at = place.get().saturating_sub(size.get());
        *place = C::new(at);
        if let Some(entry) = by_place.get_mut(at as usize) {
            *entry = *size;
        }
    }
    drop(subtree);
    let sizes = Tape::of(&by_place, job.budget).map_err(io())?;
    drop(by_place);
    trim();
    Ok((places, sizes))
}
