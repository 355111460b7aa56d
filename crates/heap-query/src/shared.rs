//! State that all dialects share: the heap, the running query's limits, and tables that are built once per session
//! because building them takes a pass over the heap.

use crate::error::QueryError;
use crate::limits::{Lead, Stop};
use heap_analysis::sets::set::similar_class;
use heap_analysis::sets::spec::SetSpec;
use heap_analysis::tables::class_references::{ClassReference, class_references};
use heap_graph::{ClassIdx, Heap, ObjIdx};
use hprof::{HeapTag, ObjectId};
use rustc_hash::FxHashMap;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

thread_local! {
    /// The object whose id a table most recently returned to the query of this thread, and the address of its heap: in
    /// a join, the next table usually looks up this object.
    static LAST: Cell<Option<(usize, ObjectId, ObjIdx)>> = const { Cell::new(None) };
}

/// A running query.
#[derive(Clone)]
pub(crate) struct Env {
    pub(crate) heap: Arc<Heap>,
    pub(crate) cache: Arc<Cache>,
    pub(crate) stop: Arc<Stop>,
    /// OQL includes unreachable objects, too. SQL always does: `objects.reachable` distinguishes them.
    pub(crate) unreachable: bool,
    /// Runs a query inside a set; none in such a query.
    pub(crate) ask: Option<Ask>,
    /// Whether the query has scanned the objects of a class. A join scans one class after the other.
    pub(crate) scanned_class: Arc<AtomicBool>,
    /// The objects of the class that the query has scanned last, if they are kept for the next scan.
    pub(crate) kept_class: Arc<Mutex<KeptClass>>,
    /// Notes on the result, each once.
    pub(crate) notes: Arc<Mutex<BTreeSet<String>>>,
}

/// The objects of a query; gets the word before it and its text.
type Ask = fn(&Env, &str, &str) -> Result<Vec<ObjectId>, QueryError>;

/// A class and its objects, in the order of their numbers.
type KeptClass = Option<(ClassIdx, Arc<Vec<u64>>)>;

/// Tables that are built when first needed.
#[derive(Default)]
pub(crate) struct Cache {
    names: OnceLock<FxHashMap<String, Vec<ClassIdx>>>,
    roots: OnceLock<FxHashMap<ObjIdx, HeapTag>>,
    gc_roots: OnceLock<Vec<ObjIdx>>,
    subclasses: OnceLock<Vec<Vec<ClassIdx>>>,
    by_class: OnceLock<Arc<ByClass>>,
    tree: OnceLock<Arc<Tree>>,
    class_ids: OnceLock<FxHashMap<u64, ClassIdx>>,
    class_references: OnceLock<Arc<Vec<ClassReference>>>,
    distances: OnceLock<Arc<Vec<u32>>>,
}

/// The share of the memory limit for the order, or for the piece of it that one scan has.
const ORDER_SHARE: u64 = 2;

/// All objects ordered by class. What does not fit into the memory limit is read from the class column again, a piece of
/// the order at a time.
pub(crate) struct ByClass {
    starts: Vec<u64>,
    objects: ByClassObjects,
}

enum ByClassObjects {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
    /// They are read in pieces with so many objects.
    InPieces(u64),
}

impl ByClass {
    pub(crate) fn new(env: &Env) -> Result<ByClass, QueryError> {
        let heap = &env.heap;
        let mut starts = vec![0u64; heap.classes().len() + 1];
        env.each_class_block(|_, classes| {
            for class in classes {
                starts[class.0 as usize + 1] += 1;
            }
        })?;
        for n in 1..starts.len() {
            starts[n] += starts[n - 1];
        }
        let narrow = heap.len() <= u64::from(u32::MAX);
        let bytes = heap.len() * if narrow { 4 } else { 8 };
        let mut made = ByClass {
            starts,
            objects: ByClassObjects::InPieces(heap.len()),
        };
        let share = heap.memory().map(|memory| memory / ORDER_SHARE);
        if let Some(share) = share.filter(|share| bytes > *share) {
            made.objects = ByClassObjects::InPieces((share / 8).max(64));
        } else if narrow {
            let mut objects = vec![0u32; heap.len() as usize];
            made.each(env, |at, object| objects[at] = object as u32)?;
            made.objects = ByClassObjects::Narrow(objects);
        } else {
            let mut objects = vec![0u64; heap.len() as usize];
            made.each(env, |at, object| objects[at] = object)?;
            made.objects = ByClassObjects::Wide(objects);
        }
        Ok(made)
    }

    /// The positions of the objects of a class.
    fn range(&self, class: ClassIdx) -> Range<u64> {
        self.starts[class.0 as usize]..self.starts[class.0 as usize + 1]
    }

    fn len(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// Calls `put` for each object, with its position.
    fn each(&self, env: &Env, mut put: impl FnMut(usize, u64)) -> Result<(), QueryError> {
        let mut next = self.starts.clone();
        env.each_class_block(|first, classes| {
            for (object, class) in (first..).zip(classes) {
                let at = &mut next[class.0 as usize];
                put(*at as usize, object);
                *at += 1;
            }
        })
    }
}

/// Reads the objects of classes, one class after the other.
pub(crate) struct ByClassReader {
    env: Env,
    by_class: Arc<ByClass>,
    /// Classes with the positions that are left to read, the next one last.
    left: Vec<(ClassIdx, Range<u64>)>,
    /// Whether there is only one class.
    is_single: bool,
    /// If they are read in pieces: the objects that follow, in the order of reading, and how many of them were read.
    piece: Arc<Vec<u64>>,
    read: usize,
}

/// A class in a piece.
struct Slot {
    /// The position of its next object in the class column.
    next: u64,
    /// The positions that the piece has.
    range: Range<u64>,
    /// The place of the first of them in the piece.
    place: usize,
}

impl ByClassReader {
    pub(crate) fn new(
        env: &Env,
        classes: impl DoubleEndedIterator<Item = ClassIdx>,
    ) -> Result<ByClassReader, QueryError> {
        let by_class = env.by_class()?;
        let ranges = classes.rev().map(|class| (class, by_class.range(class)));
        let left: Vec<_> = ranges.collect();
        Ok(ByClassReader {
            is_single: left.len() == 1,
            left,
            env: env.clone(),
            by_class,
            piece: Arc::default(),
            read: 0,
        })
    }

    /// Number of all objects of the heap.
    pub(crate) fn len(&self) -> u64 {
        self.by_class.len()
    }

    /// The next object, with its class.
    pub(crate) fn next(&mut self) -> Result<Option<(ClassIdx, ObjIdx)>, QueryError> {
        while self.left.last().is_some_and(|(_, range)| range.is_empty()) {
            self.left.pop();
        }
        let Some((class, range)) = self.left.last_mut() else {
            return Ok(None);
        };
        let (class, at) = (*class, range.start);
        let object = match &self.by_class.objects {
            ByClassObjects::Narrow(objects) => u64::from(objects[at as usize]),
            ByClassObjects::Wide(objects) => objects[at as usize],
            ByClassObjects::InPieces(most) => {
                if self.read == self.piece.len() {
                    self.fill(*most)?;
                }
                self.read += 1;
                self.piece[self.read - 1]
            }
        };
        if let Some((_, range)) = self.left.last_mut() {
            range.start += 1;
        }
        Ok(Some((class, ObjIdx(object))))
    }

    /// The class whose objects are kept for the next scan of it, because a join may scan it for each row of another table:
    /// the only one, if half a piece has all of its objects.
    fn kept_class(&self, most: u64) -> Option<ClassIdx> {
        let (class, range) = self.left.last().filter(|_| self.is_single)?;
        let is_whole = *range == self.by_class.range(*class);
        (is_whole && range.end - range.start <= most / 2).then_some(*class)
    }

    /// Reads the next objects, at most so many, by one scan of the class column.
    fn fill(&mut self, most: u64) -> Result<(), QueryError> {
        const NONE: u32 = u32::MAX;
        let kept_class = self.kept_class(most);
        self.read = 0;
        self.piece = Arc::default();
        if let Some((class, objects)) = &*self.env.kept_class()
            && kept_class == Some(*class)
        {
            self.piece = Arc::clone(objects);
            return Ok(());
        }
        let mut slot_of = vec![NONE; self.by_class.starts.len()];
        let mut slots: Vec<Slot> = Vec::new();
        let mut count = 0;
        for (class, range) in self.left.iter().rev() {
            let slot = &mut slot_of[class.0 as usize];
            if count == most || *slot != NONE {
                break;
            }
            let end = range.end.min(range.start + (most - count));
            *slot = slots.len() as u32;
            slots.push(Slot {
                next: self.by_class.range(*class).start,
                range: range.start..end,
                place: count as usize,
            });
            count += end - range.start;
        }
        let mut piece = vec![0; count as usize];
        self.env.each_class_block(|first, classes| {
            for (object, class) in (first..).zip(classes) {
                let slot = slot_of[class.0 as usize];
                if slot == NONE {
                    continue;
                }
                let slot = &mut slots[slot as usize];
                if slot.range.contains(&slot.next) {
                    piece[slot.place + (slot.next - slot.range.start) as usize] = object;
                }
                slot.next += 1;
            }
        })?;
        self.piece = Arc::new(piece);
        if let Some(class) = kept_class {
            *self.env.kept_class() = Some((class, Arc::clone(&self.piece)));
        }
        Ok(())
    }
}

/// Sums over dominator subtrees.
pub(crate) struct Tree {
    /// Objects in the subtree, the object itself included; 0 for unreachable objects.
    pub(crate) counts: Vec<u64>,
    /// Dominators above the object; 0 for children of the virtual root.
    pub(crate) depths: Vec<u32>,
}

/// Bytes for each object while counts and depths are computed.
const TREE_MEMORY: u64 = 20;
/// Bytes for each object while distances are computed: its distance, and its place in two lists.
const DISTANCE_MEMORY: u64 = 20;

/// Objects per block of a scan.
pub(crate) const BLOCK: usize = 4096;

impl Env {
    /// A set whose queries are replaced by their objects. A query inside a query may not contain a third one.
    pub(crate) fn resolve(&self, set: &SetSpec) -> Result<SetSpec, QueryError> {
        let inner = Env {
            ask: None,
            ..self.clone()
        };
        set.resolve(&mut |dialect, text| match self.ask {
            Some(ask) => ask(&inner, dialect, text),
            None => Err(QueryError::Run(
                "a query inside a set of a query inside a set is one too many".to_owned(),
            )),
        })
    }

    /// Adds a note that the dump does not have a class of the query.
    pub(crate) fn note_missing_class(&self, name: &str) {
        let similar = similar_class(&self.heap, name);
        let end = similar.map_or_else(|| ".".to_owned(), |name| format!("; did you mean {name}?"));
        self.notes()
            .insert(format!("The dump has no class {name}{end}"));
    }

    /// The notes on the result.
    pub(crate) fn notes(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept_class(&self) -> MutexGuard<'_, KeptClass> {
        let kept = self.kept_class.lock();
        kept.unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers an object whose id the query gets, because the query may look it up next.
    pub(crate) fn remember(&self, id: ObjectId, object: ObjIdx) {
        LAST.set(Some((self.heap_address(), id, object)));
    }

    fn heap_address(&self) -> usize {
        Arc::as_ptr(&self.heap).addr()
    }

    /// Forgets the remembered object: a new query may use another heap at the same address.
    pub(crate) fn forget() {
        LAST.set(None);
    }

    /// The object of an id.
    pub(crate) fn find(&self, id: ObjectId) -> Option<ObjIdx> {
        match LAST.get() {
            Some((heap, last, object)) if last == id && heap == self.heap_address() => Some(object),
            _ => self.heap.find(id),
        }
    }

    /// The classes with a readable name; several loaders may each have one.
    pub(crate) fn classes_named(&self, name: &str) -> &[ClassIdx] {
        let names = self.cache.names.get_or_init(|| {
            let mut names: FxHashMap<String, Vec<ClassIdx>> = FxHashMap::default();
            for (n, class) in self.heap.classes().iter().enumerate() {
                let list = names.entry(class.name.clone()).or_default();
                list.push(ClassIdx(n as u32));
            }
            names
        });
        names.get(name).map_or(&[], Vec::as_slice)
    }

    /// The class with the id of this class object.
    pub(crate) fn class_of_id(&self, id: ObjectId) -> Option<ClassIdx> {
        let ids = self.cache.class_ids.get_or_init(|| {
            let all = self.heap.classes().iter().zip((0..).map(ClassIdx));
            all.filter(|(c, _)| !c.id.is_null())
                .map(|(c, n)| (c.id.0, n))
                .collect()
        });
        ids.get(&id.0).copied()
    }

    /// The references by class and field: computed in one pass over the dump, then cached.
    pub(crate) fn class_references(&self) -> Result<Arc<Vec<ClassReference>>, QueryError> {
        if let Some(made) = self.cache.class_references.get() {
            return Ok(made.clone());
        }
        let made = self.stop.within(|c| class_references(&self.heap, c))?;
        let made = Arc::new(made);
        Ok(self.cache.class_references.get_or_init(|| made).clone())
    }

    /// A scan that reports progress if it is the outermost one of the query.
    pub(crate) fn lead(&self, phase: &'static str) -> Lead {
        Lead::new(self.stop.clone(), phase)
    }

    /// Direct subclasses of a class.
    pub(crate) fn subclasses(&self, class: ClassIdx) -> &[ClassIdx] {
        let all = self.cache.subclasses.get_or_init(|| {
            let mut all = vec![Vec::new(); self.heap.classes().len()];
            for (n, class) in self.heap.classes().iter().enumerate() {
                if let Some(above) = class.super_class {
                    all[above.0 as usize].push(ClassIdx(n as u32));
                }
            }
            all
        });
        all.get(class.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// The classes with all their subclasses, ascending, each once.
    pub(crate) fn with_subclasses(&self, classes: &[ClassIdx]) -> Vec<ClassIdx> {
        let mut found = classes.to_vec();
        let mut seen: rustc_hash::FxHashSet<ClassIdx> = classes.iter().copied().collect();
        let mut at = 0;
        while let Some(class) = found.get(at).copied() {
            at += 1;
            for below in self.subclasses(class) {
                if seen.insert(*below) {
                    found.push(*below);
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Objects of exactly these classes, class by class; only reachable ones unless
    /// [`unreachable`](Self::unreachable).
    pub(crate) fn objects_of(
        &self,
        classes: &[ClassIdx],
    ) -> Result<Box<dyn Iterator<Item = Result<ObjIdx, QueryError>>>, QueryError> {
        let env = self.clone();
        let visible = move |o: &ObjIdx| env.is_visible(*o);
        if let [class] = *classes {
            let one = flags(self, |c| c == class);
            let found = of_classes(self, one, 0..self.heap.len());
            return Ok(Box::new(found.filter(visible).map(Ok)));
        }
        let mut reader = ByClassReader::new(self, classes.iter().copied())?;
        let found = std::iter::from_fn(move || match reader.next() {
            Ok(found) => found.map(|(_, object)| Ok(object)),
            Err(error) => Some(Err(error)),
        });
        Ok(Box::new(found.filter(move |found| match found {
            Ok(object) => visible(object),
            Err(_) => true,
        })))
    }

    /// Whether OQL includes an object: reachable ones, and the class objects of reachable objects, because objects of
    /// primitive arrays refer to their class only in MAT's model.
    pub(crate) fn is_visible(&self, object: ObjIdx) -> bool {
        self.unreachable
            || self.heap.is_reachable(object)
            || self
                .heap
                .class_by_object(object)
                .is_some_and(|c| self.heap.class(c).reachable_objects > 0)
    }

    /// The kind of the first root record of an object.
    pub(crate) fn root_kind(&self, object: ObjIdx) -> Option<HeapTag> {
        let roots = self.cache.roots.get_or_init(|| {
            let mut kinds = FxHashMap::default();
            for root in self.heap.roots() {
                kinds.entry(root.object).or_insert(root.kind);
            }
            kinds
        });
        roots.get(&object).copied()
    }

    /// The objects that are roots for MAT, by number: an object that only the stack of a thread refers to is a
    /// reference of the thread.
    pub(crate) fn gc_roots(&self) -> &[ObjIdx] {
        self.cache.gc_roots.get_or_init(|| {
            let records = self.heap.roots().iter();
            let roots = records.filter(|root| !self.heap.is_held_by_thread(root));
            let mut found: Vec<ObjIdx> = roots.map(|root| root.object).collect();
            found.sort_unstable();
            found.dedup();
            found
        })
    }

    /// All objects ordered by class: computed in two passes over the class column, then cached.
    pub(crate) fn by_class(&self) -> Result<Arc<ByClass>, QueryError> {
        if let Some(made) = self.cache.by_class.get() {
            return Ok(made.clone());
        }
        let made = Arc::new(ByClass::new(self)?);
        Ok(self.cache.by_class.get_or_init(|| made).clone())
    }

    pub(crate) fn each_class_block(
        &self,
        mut work: impl FnMut(u64, &[ClassIdx]),
    ) -> Result<(), QueryError> {
        let mut block = vec![ClassIdx(0); BLOCK];
        let mut first = 0;
        loop {
            let count = self.heap.read_classes(ObjIdx(first), &mut block);
            if count == 0 {
                return Ok(());
            }
            work(first, &block[..count]);
            first += count as u64;
            self.stop.check()?;
        }
    }

    /// Counts and depths in the dominator tree: computed in one walk, then cached.
    pub(crate) fn tree(&self) -> Result<Arc<Tree>, QueryError> {
        if let Some(made) = self.cache.tree.get() {
            return Ok(made.clone());
        }
        let heap = &self.heap;
        heap.require_memory("the depth in the dominator tree", heap.len() * TREE_MEMORY)?;
        let mut order: Vec<u64> = heap.dominated(None).map(|o| o.0).collect();
        order.retain(|o| *o < heap.len());
        let mut depths = vec![0u32; heap.len() as usize];
        let mut at = 0;
        while let Some(object) = order.get(at).copied() {
            at += 1;
            if at % BLOCK == 0 {
                self.stop.check()?;
            }
            let depth = depths[object as usize] + 1;
            // A tree has each object once; a manipulated index must not cause an endless loop.
            for child in heap.dominated(Some(ObjIdx(object))) {
                if order.len() < depths.len()
                    && let Some(slot) = depths.get_mut(child.0 as usize)
                {
                    *slot = depth;
                    order.push(child.0);
                }
            }
        }
        let mut counts = vec![0u64; heap.len() as usize];
        for object in order.iter().rev() {
            counts[*object as usize] += 1;
            if let heap_graph::Dominator::Object(above) = heap.dominator(ObjIdx(*object)) {
                counts[above.0 as usize] += counts[*object as usize];
            }
        }
        let made = Arc::new(Tree { counts, depths });
        Ok(self.cache.tree.get_or_init(|| made).clone())
    }
}

impl Env {
    /// The smallest number of references from a root to each object, 0 for objects that a root record names and
    /// [`NO_DISTANCE`] for unreachable ones: computed by reading each object's references once, then cached.
    pub(crate) fn distances(&self) -> Result<Arc<Vec<u32>>, QueryError> {
        if let Some(made) = self.cache.distances.get() {
            return Ok(made.clone());
        }
        let heap = &self.heap;
        heap.require_memory("the distance from the roots", heap.len() * DISTANCE_MEMORY)?;
        let mut distances = vec![NO_DISTANCE; heap.len() as usize];
        let mut near: Vec<ObjIdx> = Vec::new();
        for root in heap.roots() {
            let slot = &mut distances[root.object.0 as usize];
            if *slot == NO_DISTANCE && heap.is_reachable(root.object) {
                *slot = 0;
                near.push(root.object);
            }
        }
        let mut distance = 0;
        let mut looked_at = 0;
        while !near.is_empty() {
            // In the order of the file, so that neighbours are read together.
            near.sort_unstable();
            distance += 1;
            let mut far = Vec::new();
            for object in near {
                looked_at += 1;
                if looked_at % BLOCK == 0 {
                    self.stop.check()?;
                }
                for reference in heap.outbound(object)? {
                    let slot = &mut distances[reference.target.0 as usize];
                    if *slot == NO_DISTANCE && heap.summary().strength.counts(reference.strength) {
                        *slot = distance;
                        far.push(reference.target);
                    }
                }
            }
            near = far;
        }
        let made = Arc::new(distances);
        Ok(self.cache.distances.get_or_init(|| made).clone())
    }
}

/// The distance of unreachable objects.
pub(crate) const NO_DISTANCE: u32 = u32::MAX;

/// Objects of the given classes within a range, a block of the class column at a time.
pub(crate) fn of_classes(
    env: &Env,
    admitted: Vec<bool>,
    objects: std::ops::Range<u64>,
) -> impl Iterator<Item = ObjIdx> + use<> {
    let env = env.clone();
    let mut block = vec![ClassIdx(0); BLOCK];
    objects.clone().step_by(BLOCK).flat_map(move |first| {
        let count = env.heap.read_classes(ObjIdx(first), &mut block) as u64;
        let end = (first + count).min(objects.end);
        // The query reports that it was stopped; this loop must not read further.
        let end = if env.stop.reason().is_some() {
            first
        } else {
            end
        };
        let admits = |c: ClassIdx| admitted.get(c.0 as usize).copied().unwrap_or(false);
        let found: Vec<ObjIdx> = (first..end)
            .zip(&block)
            .filter(|(_, c)| admits(**c))
            .map(|(n, _)| ObjIdx(n))
            .collect();
        found
    })
}

/// One flag per class.
pub(crate) fn flags(env: &Env, admit: impl Fn(ClassIdx) -> bool) -> Vec<bool> {
    (0..env.heap.classes().len() as u32)
        .map(|n| admit(ClassIdx(n)))
        .collect()
}
