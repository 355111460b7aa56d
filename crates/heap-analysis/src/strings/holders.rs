//! The fields that hold certain objects: one walk over all references, which counts them by `Class.field`. Takes
//! memory for these objects, and for the fields of those that several fields hold: with a memory limit that this
//! exceeds, more walks.

use crate::sets::object_set::ObjectSet;
use crate::sets::part::Part;
use crate::sets::scope::Scope;
use heap_graph::{ClassIdx, Columns, ContentVisitor, Control, Heap, HeapError, ObjIdx, Slot};
use hprof::{BasicType, Bytes, IdSize, ObjectId, read_id};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::cmp::Reverse;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// A field that holds copies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Holder {
    /// `Class.field`; the class alone for array elements.
    pub field: String,
    /// Number of references to the copies.
    pub count: u64,
    /// Bytes that the copies in this field waste; a copy that two fields hold counts for both.
    pub bytes: Bytes,
}

/// The objects whose holders are counted.
pub(crate) struct Wanted {
    set: ObjectSet,
    /// Group and weight by number in the set.
    tags: Vec<(u32, u64)>,
}

impl Wanted {
    /// Each object with a group and a weight (bytes); only the first entry of an object counts.
    pub(crate) fn new(heap: &Heap, list: &[(ObjIdx, u32, u64)]) -> Wanted {
        let set = ObjectSet::new(heap.len(), list.iter().map(|l| l.0));
        let mut tags = vec![(u32::MAX, 0); set.len()];
        for (object, group, weight) in list {
            if let Some(rank) = set.rank(*object)
                && tags[rank].0 == u32::MAX
            {
                tags[rank] = (*group, *weight);
            }
        }
        Wanted { set, tags }
    }
}

/// A field that refers to an object: the declaring class and the number of the field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct PlaceKey {
    class: ClassIdx,
    field: u32,
}

/// Instead of a field number: an element of an array.
const ELEMENT: u32 = u32::MAX;
/// Added to the field number of static fields.
const STATIC: u32 = 1 << 31;

/// Backing arrays and the class of the collection that owns each, by number in the set.
pub(crate) struct Owners<'a> {
    pub(crate) arrays: &'a ObjectSet,
    pub(crate) classes: Vec<Option<ClassIdx>>,
}

/// By group and field: the number of references, and the weight of the objects, each counted once.
type Sums = FxHashMap<(u32, PlaceKey), (u64, u64)>;

/// The fields that are known to hold an object.
struct Seen {
    /// By number in the set: the first field that was found, see [`PlaceKey::word`]; 0 for none.
    first: Vec<AtomicU64>,
    /// The further ones.
    more: Mutex<Pairs>,
}

/// Objects by number in the set, and fields that hold them: as many as fit into memory, so maybe those of a part only.
#[derive(Default)]
struct Pairs {
    part: Part,
    pairs: FxHashSet<(usize, PlaceKey)>,
    /// The most pairs; `None` if the part is not divided further.
    most: Option<usize>,
}

/// Bytes of memory for a pair, while the table of pairs grows.
const PAIR_MEMORY: u64 = 64;

/// Pairs for which there is always memory.
const FEW_PAIRS: u64 = 1 << 14;

impl Pairs {
    /// With a limit, half of the memory that it leaves: the parts are not of the same size.
    fn new(heap: &Heap) -> Pairs {
        let most = heap.memory().map(|left| left / 2 / PAIR_MEMORY);
        Pairs {
            most: most.map(|pairs| pairs.max(FEW_PAIRS) as usize),
            ..Pairs::default()
        }
    }

    fn insert(&mut self, rank: usize, key: PlaceKey) {
        if !self.part.has(rank as u64) || !self.pairs.insert((rank, key)) {
            return;
        }
        if self.most.is_some_and(|most| self.pairs.len() > most)
            && let Some(half) = self.part.half()
        {
            self.part = half;
            self.pairs.retain(|(rank, _)| half.has(*rank as u64));
        }
    }
}

impl PlaceKey {
    /// Never 0.
    fn word(self) -> u64 {
        (u64::from(self.class.0) << 32 | u64::from(self.field)) + 1
    }
}

struct HolderPass<'a> {
    heap: &'a Heap,
    columns: Columns<'a>,
    wanted: &'a Wanted,
    references: &'a [Vec<Slot>],
    owners: Option<&'a Owners<'a>>,
    scope: &'a Scope,
    /// References to look up together, and a buffer for their targets.
    waiting: Vec<(ObjectId, PlaceKey)>,
    found: Vec<Option<ObjIdx>>,
    seen: &'a Seen,
    /// By class, see [`same_classes`].
    same: &'a [ClassIdx],
    /// Whether this is the first walk, which counts references.
    counts: bool,
    /// Objects that a field holds which is not their first one.
    again: Vec<(usize, PlaceKey)>,
    sums: Sums,
}

/// Number of references that are looked up together.
const AT_ONCE: usize = 512;

impl HolderPass<'_> {
    #[inline]
    fn add(&mut self, target: ObjectId, key: PlaceKey) {
        if target.is_null() {
            return;
        }
        self.waiting.push((target, key));
        if self.waiting.len() == AT_ONCE {
            self.add_all();
        }
    }

    fn add_all(&mut self) {
        self.found.clear();
        let targets = self.waiting.iter().map(|(target, _)| *target);
        self.heap.find_all(targets, &mut self.found);
        for ((_, mut key), target) in self.waiting.drain(..).zip(&self.found) {
            let Some(rank) = target.and_then(|target| self.wanted.set.rank(target)) else {
                continue;
            };
            key.class = self.same[key.class.0 as usize];
            let (group, weight) = self.wanted.tags[rank];
            let field = key.word();
            let mut first = self.seen.first[rank].load(Ordering::Relaxed);
            if self.counts {
                let sum = self.sums.entry((group, key)).or_default();
                sum.0 += 1;
                if first == 0 {
                    let (slot, order) = (&self.seen.first[rank], Ordering::Relaxed);
                    first = match slot.compare_exchange(0, field, order, order) {
                        Ok(_) => {
                            sum.1 += weight;
                            field
                        }
                        Err(other) => other,
                    };
                }
            }
            if first != field && weight > 0 {
                self.again.push((rank, key));
            }
        }
        if !self.again.is_empty() {
            let more = self.seen.more.lock();
            let mut more = more.unwrap_or_else(PoisonError::into_inner);
            for (rank, key) in self.again.drain(..) {
                more.insert(rank, key);
            }
        }
    }
}

impl ContentVisitor for HolderPass<'_> {
    const PRIMITIVE_ARRAYS: bool = false;

    fn instance(&mut self, object: ObjIdx, class: ClassIdx, fields: &[u8]) {
        if !self.scope.has(&self.columns, object) {
            return;
        }
        let (ids, all) = (self.heap.id_size(), self.references);
        for slot in &all[class.0 as usize] {
            if let Some(bytes) = fields.get(slot.offset as usize..)
                && bytes.len() >= ids.bytes()
            {
                let key = PlaceKey {
                    class: slot.declared_in,
                    field: slot.field as u32,
                };
                self.add(read_id(bytes, ids), key);
            }
        }
    }

    fn object_array(&mut self, object: ObjIdx, class: ClassIdx, elements: &[u8]) {
        if !self.scope.has(&self.columns, object) {
            return;
        }
        let ids = self.heap.id_size();
        let owner = self.owners.and_then(|o| o.classes[o.arrays.rank(object)?]);
        let key = PlaceKey {
            class: owner.unwrap_or(class),
            field: ELEMENT,
        };
        for element in elements.chunks_exact(ids.bytes()) {
            self.add(read_id(element, ids), key);
        }
    }
}

/// The reference fields of every class, inherited ones included.
pub(crate) fn reference_slots(heap: &Heap) -> Vec<Vec<Slot>> {
    (0..heap.classes().len() as u32)
        .map(|c| {
            let mut slots = heap.slots(ClassIdx(c));
            slots.retain(|s| s.kind == BasicType::Object);
            slots
        })
        .collect()
}

/// What to count.
#[derive(Clone, Copy)]
pub(crate) struct Question<'a> {
    /// Groups of wanted objects.
    pub(crate) groups: usize,
    /// The most fields to return per group.
    pub(crate) keep: usize,
    /// The holders that count.
    pub(crate) scope: &'a Scope,
    /// Arrays that are reported as their collection.
    pub(crate) owners: Option<&'a Owners<'a>>,
}

/// Counts the references to the wanted objects by group and field. Returns, for each group, the fields with most bytes
/// (then most references).
pub(crate) fn holders(
    heap: &Heap,
    wanted: &Wanted,
    question: &Question<'_>,
    control: &Control<'_>,
) -> Result<Vec<Vec<Holder>>, HeapError> {
    let mut seen = Seen {
        first: wanted.tags.iter().map(|_| AtomicU64::new(0)).collect(),
        more: Mutex::default(),
    };
    // The memory for the first fields is in use by now.
    seen.more = Mutex::new(Pairs::new(heap));
    let mut sums = Sums::default();
    let mut walk = |seen: &mut Seen, counts| {
        for pass in passes(heap, wanted, question, (seen, counts), control)? {
            for (place, (count, bytes)) in pass {
                let sum = sums.entry(place).or_default();
                *sum = (sum.0 + count, sum.1 + bytes);
            }
        }
        let more = seen.more.get_mut().unwrap_or_else(PoisonError::into_inner);
        for (rank, key) in mem::take(&mut more.pairs) {
            let (group, weight) = wanted.tags[rank];
            sums.entry((group, key)).or_default().1 += weight;
        }
        Ok::<_, HeapError>(more.part)
    };
    let part = walk(&mut seen, true)?;
    for part in part.others() {
        seen.more = Mutex::new(Pairs {
            part,
            ..Pairs::default()
        });
        walk(&mut seen, false)?;
    }
    Ok(named(heap, sums, question))
}

/// One walk over all references: the sums of each worker.
fn passes(
    heap: &Heap,
    wanted: &Wanted,
    question: &Question<'_>,
    (seen, counts): (&Seen, bool),
    control: &Control<'_>,
) -> Result<Vec<Sums>, HeapError> {
    let references = reference_slots(heap);
    let same = same_classes(heap);
    let mut passes = heap.walk_contents("holders", control, || HolderPass {
        heap,
        columns: heap.columns(),
        wanted,
        references: &references,
        owners: question.owners,
        scope: question.scope,
        waiting: Vec::with_capacity(AT_ONCE),
        found: Vec::with_capacity(AT_ONCE),
        seen,
        same: &same,
        counts,
        again: Vec::new(),
        sums: Sums::default(),
    })?;
    if let Some(first) = passes.first_mut() {
        for (n, info) in heap.classes().iter().enumerate() {
            for (at, field) in info.statics.iter().enumerate() {
                if field.kind == BasicType::Object {
                    let key = PlaceKey {
                        class: ClassIdx(n as u32),
                        field: STATIC | at as u32,
                    };
                    first.add(ObjectId(field.bits), key);
                }
            }
        }
    }
    passes.iter_mut().for_each(HolderPass::add_all);
    Ok(passes.into_iter().map(|pass| pass.sums).collect())
}

/// By class: the first class with the same name and fields. The fields of classes that several loaders define are one
/// field in an answer, which holds an object once.
fn same_classes(heap: &Heap) -> Vec<ClassIdx> {
    let mut first: FxHashMap<&str, ClassIdx> = FxHashMap::default();
    let classes = heap.classes().iter().zip(0..);
    let same = classes.map(|(info, number)| {
        let one = *first.entry(&*info.name).or_insert(ClassIdx(number));
        let of = heap.class(one);
        let fields = info.fields.iter().map(|f| &f.name);
        let statics = info.statics.iter().map(|f| &f.name);
        let is_same = fields.eq(of.fields.iter().map(|f| &f.name))
            && statics.eq(of.statics.iter().map(|f| &f.name));
        if is_same { one } else { ClassIdx(number) }
    });
    same.collect()
}

/// For each group, the fields with most bytes (then most references).
fn named(heap: &Heap, sums: Sums, question: &Question<'_>) -> Vec<Vec<Holder>> {
    let mut named: Vec<FxHashMap<String, (u64, u64)>> = vec![FxHashMap::default(); question.groups];
    for ((group, key), (count, bytes)) in sums {
        if let Some(group) = named.get_mut(group as usize) {
            let sum = group.entry(name_of(heap, key)).or_default();
            *sum = (sum.0 + count, sum.1 + bytes);
        }
    }
    let sorted = |group: FxHashMap<String, (u64, u64)>| {
        let mut list: Vec<Holder> = group
            .into_iter()
            .map(|(field, (count, bytes))| Holder {
                field,
                count,
                bytes: hprof::Bytes(bytes),
            })
            .collect();
        list.sort_by(|a, b| {
            (Reverse(a.bytes), Reverse(a.count), &a.field).cmp(&(
                Reverse(b.bytes),
                Reverse(b.count),
                &b.field,
            ))
        });
        list.truncate(question.keep);
        list
    };
    named.into_iter().map(sorted).collect()
}

/// `Class.field`; for elements the array class, or the collection that owns the array.
fn name_of(heap: &Heap, key: PlaceKey) -> String {
    let info = heap.class(key.class);
    let field = match key.field {
        ELEMENT => None,
        n if n & STATIC != 0 => info.statics.get((n & !STATIC) as usize).map(|s| &s.name),
        n => info.fields.get(n as usize).map(|f| &f.name),
    };
    match field {
        Some(field) => format!("{}.{field}", info.name),
        None if info.name.ends_with("[]") => info.name.clone(),
        None => format!("{} (elements)", info.name),
    }
}

/// The references in the bytes of an array of references.
pub(crate) fn element_ids(elements: &[u8], ids: IdSize) -> impl Iterator<Item = ObjectId> + '_ {
    elements
        .chunks_exact(ids.bytes())
        .map(move |e| read_id(e, ids))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_parts_of_pairs_have_each_pair_once() {
        let key = |field| PlaceKey {
            class: ClassIdx(0),
            field,
        };
        let all = || (0..300).flat_map(|rank| [(rank, key(1)), (rank, key(2)), (rank, key(1))]);
        let mut limited = Pairs {
            most: Some(100),
            ..Pairs::default()
        };
        all().for_each(|(rank, key)| limited.insert(rank, key));
        assert!(limited.pairs.len() <= 100);
        let mut found: Vec<_> = limited.pairs.into_iter().collect();
        let parts = limited.part.others();
        for part in parts {
            let mut pairs = Pairs {
                part,
                ..Pairs::default()
            };
            all().for_each(|(rank, key)| pairs.insert(rank, key));
            assert!(pairs.pairs.len() <= 200);
            found.extend(pairs.pairs);
        }
        assert_eq!(found.len(), 600);
        found.sort_unstable();
        assert_eq!(found, Vec::from_iter(all().collect::<BTreeSet<_>>()));
    }
}
