//! The retained size of every object: the size of its dominator subtree.

use super::cell::{Cell, Wide};
use super::groups::{Groups, NONE, Node};
use super::job::Job;
use super::output::Sizes;
use super::pairs::first_of;
use super::reached::Reached;
use super::stack::Stack;
use super::tape::Tape;
use super::tree::{self, AHEAD, Placed, Tree};
use crate::HeapError;
use crate::index::{IndexWriter, Tag};
use crate::model::Sums;
use crate::packed::{BitWriter, ColumnBuilder, Packed, width_for};
use crate::parallel;
use crate::raw::{BigVec, bytes_of, prefetch, trim};
use hprof::Bytes;
use rustc_hash::FxHashMap;

/// Width of a packed dominator: an object, the virtual root, or "unreachable".
pub(crate) fn dominator_width(objects: u64) -> u32 {
    width_for(objects + 1)
}

/// Writes dominators, retained sizes and the lists of dominated objects. `numbers` has the
/// pre-order number of every object, `n` counts them, the virtual root included; `total` is the size of
/// all objects in units.
pub(crate) fn write<C: Cell>(
    job: &Job<'_>,
    index: &mut IndexWriter,
    numbers: Tape<C>,
    idom: BigVec<'_, C>,
    n: u64,
    sizes: &Sizes<'_>,
    total: u64,
) -> Result<Reached, HeapError> {
    let reached = if total < C::LIMIT && !job.options.tuning.wide_sizes {
        objects::<C, C>(job, index, numbers, idom, n, sizes)?
    } else if total < Wide::LIMIT {
        objects::<C, Wide>(job, index, numbers, idom, n, sizes)?
    } else {
        objects::<C, u64>(job, index, numbers, idom, n, sizes)?
    };
    trim();
    job.control.check()?;
    job.options.phases.begin("dominated objects");
    job.options.phases.random(3 * n);
    job.control.report("dominator tree", 0, n);
    dominated::<C>(job, index)?;
    Ok(reached)
}

/// Dominators and retained sizes of all objects and of groups. The size of all objects in units fits into `R`.
fn objects<C: Cell, R: Cell>(
    job: &Job<'_>,
    index: &mut IndexWriter,
    numbers: Tape<C>,
    idom: BigVec<'_, C>,
    n: u64,
    sizes: &Sizes<'_>,
) -> Result<Reached, HeapError> {
    let phases = &job.options.phases;
    let mut reached = Reached::new(job.table.classes.len());
    phases.begin("dominator tree");
    // For each object, its place and the entry there.
    phases.random(2 * n);
    job.control.report("dominator tree", 0, n);
    let mut tree = tree::build::<C, R>(job, &numbers, idom, n, sizes, &mut reached)?;
    drop(numbers);
    job.control.check()?;
    phases.begin("groups");
    job.control.report("classes", 0, n);
    let top = fold(job, &mut tree, sizes, &mut reached)?;
    job.control.check()?;
    phases.begin("retained sizes");
    phases.random(n);
    job.control.report("retained sizes", 0, n);
    top_level(job, index, top)?;
    columns(job, index, &tree)?;
    Ok(reached)
}

/// An object whose subtree is being swept: its place, the end of the subtree, the sum of sizes up to and including the
/// object, and the object.
type Open = [u64; 4];

/// Sweeps over the tree in pre-order. Afterwards each place has the dominator, as an object, and the units that the
/// object retains besides its own size. Returns the retained units and the objects of the children of the virtual root.
fn fold<C: Cell, R: Cell>(
    job: &Job<'_>,
    tree: &mut Tree<'_, C, R>,
    sizes: &Sizes<'_>,
    reached: &mut Reached,
) -> Result<Vec<Placed<R>>, HeapError> {
    let io = || HeapError::io("retained sizes");
    let classes = class_objects_by_number(job);
    let class_class = job.table.class_class;
    let (count, unit) = (job.map.len(), job.objects.rules.alignment);
    let placed: &mut [Placed<R>] = &mut tree.placed;
    let mut open = Stack::<Open>::new(job.budget);
    let mut top = TopLevel::<R>::new(job.table.classes.len());
    let mut sum = 0u64;
    let (retained, groups) = std::thread::scope(|scope| {
        let threads = job.options.thread_count();
        let mut groups = Groups::new(job.table, sizes.has_traces(), threads, scope);
        let mut buffer = Vec::new();
        for number in 0..tree.subtrees.blocks() {
            job.control.check()?;
            let block = tree.subtrees.get(number, &mut buffer).map_err(io())?;
            for (k, size) in block.iter().enumerate() {
                let (at, size) = (first_of(number) + k as u64, size.get());
                let [object, kind] = placed[at as usize].map(R::get);
                let (class, units) = tree::of_kind(kind, object, sizes);
                close(&mut open, at, sum, placed);
                let dominator = open.last().map_or(count, |above| above[3]);
                if dominator == count {
                    top.begin(object, class, units, sum);
                }
                placed[at as usize] = [R::new(dominator), R::new(0)];
                sum += units;
                if size > 1 {
                    open.push([at, at + size, sum, object]);
                }
                let own = match class == class_class {
                    true => classes.get(&object).copied().unwrap_or(NONE),
                    false => NONE,
                };
                groups.step(Node {
                    size,
                    shallow: units * unit,
                    class,
                    own,
                    trace: sizes.trace(object),
                });
            }
        }
        Ok::<_, HeapError>(groups.finish())
    })?;
    close(&mut open, u64::MAX, sum, placed);
    open.check().map_err(io())?;
    for (row, retained) in reached.classes.iter_mut().zip(retained) {
        row[2] = retained;
    }
    reached.groups = groups;
    top.end(sum);
    let bytes = |units: u64| Bytes(units * unit);
    let sums = top.sums.iter().map(|[objects, shallow, retained]| Sums {
        objects: *objects,
        shallow: bytes(*shallow),
        retained: bytes(*retained),
    });
    reached.groups.top_level = sums.collect();
    Ok(top.objects)
}

/// The children of the virtual root: their subtrees follow one another.
struct TopLevel<R> {
    /// For each child its retained units and its object.
    objects: Vec<Placed<R>>,
    /// For each class: objects, units, and retained units.
    sums: Vec<[u64; 3]>,
    /// The class of the last child, if its subtree has not ended, and the sum of sizes before it.
    open: Option<(usize, u64)>,
}

impl<R: Cell> TopLevel<R> {
    fn new(classes: usize) -> TopLevel<R> {
        TopLevel {
            objects: Vec::new(),
            sums: vec![[0; 3]; classes],
            open: None,
        }
    }

    /// The next child begins; `sum` is the sum of all sizes before it.
    #[inline]
    fn begin(&mut self, object: u64, class: u32, units: u64, sum: u64) {
        self.end(sum);
        let class = class as usize;
        self.objects.push([R::new(0), R::new(object)]);
        self.sums[class][0] += 1;
        self.sums[class][1] += units;
        self.open = Some((class, sum));
    }

    fn end(&mut self, sum: u64) {
        if let Some((class, before)) = self.open.take()
            && let Some(last) = self.objects.last_mut()
        {
            last[0] = R::new(sum - before);
            self.sums[class][2] += sum - before;
        }
    }
}

/// Ends the subtrees that end before a place.
#[inline(always)]
fn close<R: Cell>(open: &mut Stack<Open>, at: u64, sum: u64, placed: &mut [Placed<R>]) {
    while let Some([place, end, before, _]) = open.last().copied()
        && end <= at
    {
        placed[place as usize][1] = R::new(sum - before);
        open.pop();
    }
}

/// Dominators and retained sizes, in the order of objects.
fn columns<C: Cell, R: Cell>(
    job: &Job<'_>,
    index: &mut IndexWriter,
    tree: &Tree<'_, C, R>,
) -> Result<(), HeapError> {
    let io = || HeapError::io("retained sizes");
    let count = job.map.len();
    let width = dominator_width(count);
    let threads = job.options.thread_count();
    let mut column = ColumnBuilder::new(count, job.budget).map_err(io())?;
    let unreachable = [R::new(count + 1), R::new(0)];
    let compute = |block: usize, (buffer, values): &mut (Vec<C>, Vec<Placed<R>>)| {
        let places = tree.places.get(block, buffer)?;
        let of = |k: usize, place: &C| {
            if let Some(ahead) = places.get(k + AHEAD).and_then(|c| c.pre()) {
                prefetch(&tree.placed, ahead as usize);
            }
            let found = place.pre();
            let found = found.and_then(|at| tree.placed.get(at as usize).copied());
            found.unwrap_or(unreachable)
        };
        values.clear();
        values.extend(places.iter().enumerate().map(|(k, place)| of(k, place)));
        Ok::<(), std::io::Error>(())
    };
    index
        .section(Tag::Dominators, |out| {
            let mut bits = BitWriter::new(out);
            parallel::in_order(tree.places.blocks(), threads, compute, |_, (_, values)| {
                for [dominator, excess] in values {
                    bits.push(dominator.get(), width)?;
                    column.push(excess.get())?;
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

/// The children of the virtual root, largest first.
fn top_level<R: Cell>(
    job: &Job<'_>,
    index: &mut IndexWriter,
    mut top: Vec<Placed<R>>,
) -> Result<(), HeapError> {
    top.sort_unstable_by_key(|[size, object]| (std::cmp::Reverse(size.get()), object.get()));
    let width = width_for(job.map.len());
    index
        .section(Tag::TopLevel, |out| {
            out.write_all(bytes_of(&[top.len() as u64]))?;
            let mut bits = BitWriter::new(out);
            for [_, object] in &top {
                bits.push(object.get(), width)?;
            }
            bits.finish()
        })
        .map_err(HeapError::io("index"))
}

fn class_objects_by_number(job: &Job<'_>) -> FxHashMap<u64, u32> {
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

/// The most threads that sort the dominators: each reads all of them.
const SORTERS: usize = 4;

/// Writes the objects that each object dominates, by a counting sort of the dominators. Each thread sorts what a part
/// of the objects dominates.
fn dominated<C: Cell>(job: &Job<'_>, index: &mut IndexWriter) -> Result<(), HeapError> {
    let io = || HeapError::io("dominator tree");
    let count = job.map.len();
    let threads = job.options.thread_count().clamp(1, SORTERS);
    let size = (count as usize).div_ceil(threads).max(1);
    let view = index.view().map_err(io())?;
    let dominators = Packed::new(view.bytes(Tag::Dominators), dominator_width(count), count);
    // Calls `call` with each object and its dominator, as an index into this part.
    fn each(dominators: &Packed<'_>, first: usize, mut call: impl FnMut(usize, u64)) {
        for object in 0..dominators.len() {
            let dominator = dominators.get(object) as usize;
            call(dominator.wrapping_sub(first), object);
        }
    }
    let mut next = BigVec::<C>::zeroed(count as usize, job.budget).map_err(io())?;
    let parts = (0..).step_by(size).zip(next.chunks_mut(size)).collect();
    parallel::on_threads(parts, |(first, counts): (usize, &mut [C])| {
        each(&dominators, first, |dominator, _| {
            if let Some(count) = counts.get_mut(dominator) {
                *count = C::new(count.get() + 1);
            }
        });
    });
    let mut starts = Vec::with_capacity(count as usize / 64 + 1);
    let mut sum = 0u64;
    for (object, next) in next.iter_mut().enumerate() {
        if object % 64 == 0 {
            starts.push(sum);
        }
        let own = next.get();
        *next = C::new(sum);
        sum += own;
    }
    let mut lists = BigVec::<C>::zeroed(sum as usize, job.budget).map_err(io())?;
    let mut rest: &mut [C] = &mut lists;
    let mut parts = Vec::new();
    let ends = next.chunks(size).skip(1).map(|part| part[0].get());
    let ends: Vec<u64> = ends.chain([sum]).collect();
    let mut begin = 0;
    for ((first, next), end) in (0..).step_by(size).zip(next.chunks_mut(size)).zip(ends) {
        let (own, after) = rest.split_at_mut((end - begin) as usize);
        parts.push((first, next, begin, own));
        (rest, begin) = (after, end);
    }
    parallel::on_threads(parts, |(first, next, begin, lists)| {
        each(&dominators, first, |dominator, object| {
            if let Some(next) = next.get_mut(dominator) {
                let at = next.get();
                lists[(at - begin) as usize] = C::new(object);
                *next = C::new(at + 1);
            }
        });
    });
    // By now each entry is the end of the object's list, which is the start of the next one.
    let ends = || next.iter().map(|end| end.get());
    let counts = || {
        let mut counts = ColumnBuilder::new(count, job.budget)?;
        let starts = std::iter::once(0).chain(ends());
        starts
            .zip(ends())
            .try_for_each(|(start, end)| counts.push(end - start))?;
        Ok::<_, std::io::Error>(counts)
    };
    let width = width_for(count);
    let (counts, written) = parallel::beside(counts, || {
        index.section(Tag::Dominated, |out| {
            let mut bits = BitWriter::new(out);
            for object in lists.iter() {
                bits.push(object.get(), width)?;
            }
            bits.finish()
        })
    });
    written.map_err(io())?;
    let counts = counts.map_err(io())?;
    index
        .section(Tag::DominatedCounts, |out| counts.write(out))
        .map_err(io())?;
    index
        .section(Tag::DominatedStarts, |out| out.write_all(bytes_of(&starts)))
        .map_err(io())
}
