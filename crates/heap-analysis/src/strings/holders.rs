//! The fields that hold certain objects: one walk over all references, which counts them by `Class.field`. Takes
//! memory for these objects only.

use crate::sets::object_set::ObjectSet;
use crate::sets::scope::Scope;
use crate::strings::Holder;
use heap_graph::{ClassIdx, Columns, ContentVisitor, Control, Heap, HeapError, ObjIdx, Slot};
use hprof::{BasicType, IdSize, ObjectId, read_id};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

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

type Sums = FxHashMap<(u32, PlaceKey), (u64, u64)>;

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
        for ((_, key), target) in self.waiting.drain(..).zip(&self.found) {
            if let Some(rank) = target.and_then(|target| self.wanted.set.rank(target)) {
                let (group, weight) = self.wanted.tags[rank];
                let sum = self.sums.entry((group, key)).or_default();
                *sum = (sum.0 + 1, sum.1 + weight);
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
    let references = reference_slots(heap);
    let mut passes = heap.walk_contents("holders", control, || HolderPass {
        heap,
        columns: heap.columns(),
        wanted,
        references: &references,
        owners: question.owners,
        scope: question.scope,
        waiting: Vec::with_capacity(AT_ONCE),
        found: Vec::with_capacity(AT_ONCE),
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
    let mut named: Vec<FxHashMap<String, (u64, u64)>> = vec![FxHashMap::default(); question.groups];
    for ((group, key), (count, bytes)) in passes.into_iter().flat_map(|p| p.sums) {
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
    Ok(named.into_iter().map(sorted).collect())
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
