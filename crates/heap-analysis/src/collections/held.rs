//! The contents of a collection, read through the fields that `collections.toml` lists; trees, chains and skip lists
//! are read through the fields of their nodes. A damaged dump may contain cycles, so every walk is bounded.

use crate::collections::table::{CollectionKind, CollectionSpec, CollectionTable};
use crate::objects::fields::{field, field_int, field_ref, is_subclass_of, lineage};
use crate::pace::Pace;
use heap_graph::{Control, Heap, HeapError, ObjIdx, ObjectKind};
use rustc_hash::FxHashSet;

const SKIP_LIST: &str = "java.util.concurrent.ConcurrentSkipListMap";

/// An entry of a map: key and value, if they are in the dump. Elements of other collections are values without a key.
pub type Entry = (Option<ObjIdx>, Option<ObjIdx>);

/// The form of a collection's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Elements in an order; also queues.
    List,
    /// Different elements.
    Set,
    /// Keys and values.
    Map,
    /// Not a known collection.
    Other,
}

impl Form {
    /// The name in answers.
    pub fn name(self) -> &'static str {
        match self {
            Form::List => "list",
            Form::Set => "set",
            Form::Map => "map",
            Form::Other => "other",
        }
    }

    fn of(kind: CollectionKind) -> Form {
        match kind {
            CollectionKind::List | CollectionKind::Queue => Form::List,
            CollectionKind::Set => Form::Set,
            CollectionKind::Map => Form::Map,
            CollectionKind::Other => Form::Other,
        }
    }
}

/// The contents of a collection.
#[derive(Debug)]
pub struct Held {
    /// The form of the collection.
    pub form: Form,
    /// The entries; for a set that is backed by a map, those of the map.
    rows: Vec<Entry>,
    of_map: bool,
}

impl Held {
    /// The entries of a map, or of the map that backs a set; empty for all others.
    pub fn entries(self) -> Vec<Entry> {
        if self.of_map { self.rows } else { Vec::new() }
    }

    /// Keys with values for a map; values alone for others.
    pub fn rows(self) -> Vec<Entry> {
        match (self.form, self.of_map) {
            (Form::Set, true) => self.rows.into_iter().map(|(key, _)| (None, key)).collect(),
            _ => self.rows,
        }
    }

    /// The elements, or the values of a map, that are in the dump.
    pub fn values(self) -> Vec<ObjIdx> {
        self.rows().into_iter().filter_map(|row| row.1).collect()
    }
}

/// The first `limit` elements or entries of a collection, in its own order if it has one. Null elements are omitted.
/// An array of objects is a list.
///
/// # Errors
/// [`HeapError::Cancelled`] soon after the control of the pace cancels.
pub fn held(
    heap: &Heap,
    object: ObjIdx,
    limit: usize,
    pace: &mut Pace<'_>,
) -> Result<Held, HeapError> {
    let mut reader = Reader { heap, limit, pace };
    let (at, is_set) = innermost(heap, object);
    let (form, rows) = reader.read(at)?;
    let of_map = form == Form::Map;
    let is_set = is_set && form != Form::Other;
    let form = if is_set { Form::Set } else { form };
    Ok(Held { form, rows, of_map })
}

/// The number of elements of a collection, including null elements, or the number of elements of an array that are not
/// null; `None` for any other object.
///
/// # Errors
/// [`HeapError::Cancelled`] soon after the control of the pace cancels.
pub fn size(heap: &Heap, object: ObjIdx, pace: &mut Pace<'_>) -> Result<Option<u64>, HeapError> {
    let (at, _) = innermost(heap, object);
    if let Some(size) = counted(heap, at, usize::MAX, pace)? {
        return Ok(Some(size));
    }
    let held = held(heap, at, usize::MAX, pace)?;
    Ok((held.form != Form::Other).then_some(held.rows.len() as u64))
}

/// The number of elements of a collection, if its fields and at most [`PIECE`] slots of its array say it. Collections are
/// the classes of the table, and those of `java.util`.
pub(crate) fn quick_size(heap: &Heap, object: ObjIdx) -> Option<u64> {
    let (class, table) = (heap.class_of(object), CollectionTable::of(heap));
    let is_one = |name: &str| table.spec_of(name).is_some() || table.wrapped_by(name).is_some();
    let is_listed = || lineage(heap, class).any(|above| is_one(&heap.class(above).name));
    if !heap.class(class).name.starts_with("java.util.") && !is_listed() {
        return None;
    }
    let quiet = Control::quiet();
    let mut pace = Pace::new(&quiet, "size", 0);
    counted(heap, innermost(heap, object).0, PIECE, &mut pace).ok()?
}

/// The number of elements as the table says for the class of this object, or as one of the usual fields has it. `None` if
/// more than `most` slots would have to be counted.
fn counted(
    heap: &Heap,
    at: ObjIdx,
    most: usize,
    pace: &mut Pace<'_>,
) -> Result<Option<u64>, HeapError> {
    if let Some(spec) = spec_of(heap, at) {
        let array = spec.array.as_deref().and_then(|f| reference(heap, at, f));
        let cells = spec.cells.as_deref().and_then(|f| reference(heap, at, f));
        for word in spec.size.split('|') {
            let (of, mut sum) = match word {
                "#elements" | "#length" => (array, Some(0)),
                name => (cells, number(heap, at, name)),
            };
            let slots = of.into_iter().flat_map(|array| slots(heap, array, 0));
            for (n, slot) in slots.enumerate() {
                pace.step()?;
                if n >= most {
                    return Ok(None);
                }
                let more = match word {
                    "#elements" => i64::from(slot.is_some()),
                    "#length" => 1,
                    _ => slot.and_then(|c| field_int(heap, c, "value")).unwrap_or(0),
                };
                sum = sum.map(|sum| sum.wrapping_add(more));
            }
            if let Some(size) = sum.and_then(|sum| u64::try_from(sum).ok()) {
                let slots = if word.starts_with('#') { spec.slots } else { 1 };
                return Ok(Some(size / u64::from(slots)));
            }
        }
    }
    // A class of another library that only has the name of an entry may mean something else by these.
    if !heap.class(heap.class_of(at)).name.starts_with("java.util.") {
        return Ok(None);
    }
    let names = ["size", "elementCount", "count"];
    let own = names.iter().find_map(|name| number(heap, at, name));
    Ok(own.and_then(|size| u64::try_from(size).ok()))
}

/// The number in a field, or the `value` of the object there, such as an AtomicInteger.
fn number(heap: &Heap, object: ObjIdx, name: &str) -> Option<i64> {
    let inside = || field_int(heap, field_ref(heap, object, name)?, "value");
    field_int(heap, object, name).or_else(inside)
}

/// The collection behind a wrapper or a chain of them, and whether the elements of this one are the keys of that
/// collection.
fn innermost(heap: &Heap, object: ObjIdx) -> (ObjIdx, bool) {
    let table = CollectionTable::of(heap);
    let (mut at, mut is_set) = (object, false);
    for _ in 0..8 {
        let found = lineage(heap, heap.class_of(at)).find_map(|class| {
            let name = heap.class(class).name.as_str();
            let (field, kind) = table.wrapped_by(name)?;
            Some((field_ref(heap, at, field)?, kind))
        });
        let Some((inside, kind)) = found else { break };
        is_set |= kind == Some(CollectionKind::Set);
        at = inside;
    }
    (at, is_set)
}

/// The nearest entry of the table, for its class or a superclass, whose array field exists.
fn spec_of(heap: &Heap, object: ObjIdx) -> Option<&CollectionSpec> {
    let table = CollectionTable::of(heap);
    lineage(heap, heap.class_of(object)).find_map(|class| {
        let spec = table.spec_of(&heap.class(class).name)?;
        let has = |names: &String| names.split('|').any(|f| field(heap, object, f).is_some());
        (spec.inner.is_none() && spec.array.as_ref().is_none_or(has)).then_some(spec)
    })
}

/// The object in the first of these fields (`a|b`).
fn reference(heap: &Heap, object: ObjIdx, names: &str) -> Option<ObjIdx> {
    names.split('|').find_map(|f| field_ref(heap, object, f))
}

/// Elements that are read at once.
const PIECE: usize = 1024;

/// The elements of an object array starting at `from`, read when they are needed; `None` for null and for objects that
/// are not in the dump.
fn slots(heap: &Heap, array: ObjIdx, from: usize) -> impl Iterator<Item = Option<ObjIdx>> + '_ {
    (from..)
        .step_by(PIECE)
        .map(move |at| heap.elements(array, at, PIECE).unwrap_or_default())
        .take_while(|piece| !piece.is_empty())
        .flatten()
        .map(|id| (!id.is_null()).then(|| heap.find(id)).flatten())
}

/// An element as a row.
fn element(slot: Option<ObjIdx>) -> Option<Entry> {
    slot.map(|object| (None, Some(object)))
}

type Found = Result<(Form, Vec<Entry>), HeapError>;

struct Reader<'a, 'b, 'c> {
    heap: &'a Heap,
    limit: usize,
    pace: &'b mut Pace<'c>,
}

impl Reader<'_, '_, '_> {
    fn read(&mut self, at: ObjIdx) -> Found {
        let heap = self.heap;
        if heap.kind(at) == ObjectKind::ObjectArray {
            return Ok((Form::List, self.rows(slots(heap, at, 0), element)?));
        }
        if let Some(spec) = spec_of(heap, at) {
            return self.as_in_table(at, spec);
        }
        if let Some((form, mut rows)) = small(heap, at) {
            rows.truncate(self.limit);
            return Ok((form, rows));
        }
        if is_subclass_of(heap, heap.class_of(at), SKIP_LIST) {
            return Ok((Form::Map, self.skip_list(at)?));
        }
        if let Some(table) = field_ref(heap, at, "table") {
            let rows = self.chains(table)?;
            return Ok(match rows.is_empty() {
                true => (Form::Other, rows),
                false => (Form::Map, rows),
            });
        }
        let items = self.linked(at)?;
        let name = heap.class(heap.class_of(at)).name.as_str();
        let is_queue = name.starts_with("java.util.") && name.ends_with("Queue");
        let is_linked = !items.is_empty() || is_queue || name.ends_with("LinkedDeque");
        let form = if is_linked { Form::List } else { Form::Other };
        Ok((form, items))
    }

    fn as_in_table(&mut self, at: ObjIdx, spec: &CollectionSpec) -> Found {
        let heap = self.heap;
        let form = Form::of(spec.kind);
        let Some(names) = &spec.array else {
            let rows = match field_ref(heap, at, "root") {
                Some(root) if form == Form::Map => self.tree(root)?,
                _ => self.linked(at)?,
            };
            // A collection whose nodes are not found this way has an unknown layout.
            let is_known = !rows.is_empty() || number(heap, at, &spec.size) == Some(0);
            return Ok((if is_known { form } else { Form::Other }, rows));
        };
        let Some(array) = reference(heap, at, names) else {
            return Ok((form, Vec::new()));
        };
        if form == Form::Map {
            return Ok((form, self.entries(at, array, spec)?));
        }
        if spec.chained {
            let keys = self.chains(array)?.into_iter().map(|(key, _)| (None, key));
            return Ok((form, keys.collect()));
        }
        let used = match spec.kind {
            CollectionKind::List => field_int(heap, at, &spec.size),
            _ => None,
        };
        let used = used.and_then(|used| usize::try_from(used).ok());
        // A ring buffer whose elements wrap around: those before `front` follow those at the end of the array.
        let place = |f| field_int(heap, at, f).and_then(|n| usize::try_from(n).ok());
        let ends = |head, tail| place(head).zip(place(tail));
        let ring = ends("head", "tail").or_else(|| ends("takeIndex", "putIndex"));
        let front = ring.map_or(0, |(head, tail)| if tail <= head { tail } else { 0 });
        let all = slots(heap, array, front).chain(slots(heap, array, 0).take(front));
        let all = all.take(used.unwrap_or(usize::MAX));
        Ok((form, self.rows(all, element)?))
    }

    /// The entries of a map that has an array.
    fn entries(
        &mut self,
        map: ObjIdx,
        array: ObjIdx,
        spec: &CollectionSpec,
    ) -> Result<Vec<Entry>, HeapError> {
        let heap = self.heap;
        let first = field_ref(heap, map, "head").filter(|e| field(heap, *e, "after").is_some());
        if first.is_some() {
            return self.each(first, "after", |node| Some(entry(heap, node)));
        }
        if spec.chained {
            return self.chains(array);
        }
        let kept = |entry: &Entry| entry.0.is_some() || entry.1.is_some();
        if spec.slots == 2 || field_ref(heap, map, "alternatingKeysAndValues").is_some() {
            let mut slots = slots(heap, array, 0);
            let pairs = std::iter::from_fn(|| Some((slots.next()?, slots.next()?)));
            return self.rows(pairs, |pair| Some(pair).filter(kept));
        }
        let (keys, values) = match field_ref(heap, map, "keyUniverse") {
            Some(universe) => (universe, Some(array)),
            None => (array, reference(heap, map, "valuesArray|value")),
        };
        if let Some(values) = values {
            let values = slots(heap, values, 0);
            let keys = slots(heap, keys, 0).chain(std::iter::repeat(None));
            // An enum constant without a value is not a key of an EnumMap.
            let has_value = |pair: &Entry| pair.1.is_some();
            return self.rows(keys.zip(values), |pair| Some(pair).filter(has_value));
        }
        self.rows(slots(heap, array, 0), |slot| Some(lone(heap, slot?)))
    }

    /// Applies `row` to each of the items.
    fn rows<T>(
        &mut self,
        items: impl Iterator<Item = T>,
        mut row: impl FnMut(T) -> Option<Entry>,
    ) -> Result<Vec<Entry>, HeapError> {
        let mut rows = Vec::new();
        for item in items {
            self.pace.step()?;
            if rows.len() >= self.limit {
                break;
            }
            rows.extend(row(item));
        }
        Ok(rows)
    }

    /// Applies `row` to `first` and to all nodes after it.
    fn each(
        &mut self,
        first: Option<ObjIdx>,
        next: &str,
        mut row: impl FnMut(ObjIdx) -> Option<Entry>,
    ) -> Result<Vec<Entry>, HeapError> {
        let (mut rows, mut seen) = (Vec::new(), FxHashSet::default());
        let mut node = first;
        while let Some(here) = node {
            self.pace.step()?;
            if rows.len() >= self.limit || !seen.insert(here) {
                break;
            }
            rows.extend(row(here));
            node = reference(self.heap, here, next);
        }
        Ok(rows)
    }

    /// The elements of a linked list, starting at its field `first` or `head`.
    fn linked(&mut self, at: ObjIdx) -> Result<Vec<Entry>, HeapError> {
        let heap = self.heap;
        let first = reference(heap, at, "first|head");
        self.each(first, "next|tl", |node| {
            Some((None, Some(reference(heap, node, "item|head")?)))
        })
    }

    /// The entries of a skip list, whose nodes are in the lowest level of the index.
    fn skip_list(&mut self, map: ObjIdx) -> Result<Vec<Entry>, HeapError> {
        let heap = self.heap;
        let mut lowest = field_ref(heap, map, "head");
        for _ in 0..64 {
            let below = lowest.and_then(|index| field_ref(heap, index, "down"));
            lowest = below.or(lowest);
        }
        let first = lowest.and_then(|index| field_ref(heap, index, "node"));
        self.each(first, "next", |node| {
            // The first node has no key, and a removed one no value.
            let (key, value) = entry(heap, node);
            (key.is_some() && value.is_some()).then_some((key, value))
        })
    }

    /// The entries of the chains that begin in a table.
    fn chains(&mut self, table: ObjIdx) -> Result<Vec<Entry>, HeapError> {
        let heap = self.heap;
        let mut found = Vec::new();
        let mut seen = FxHashSet::default();
        for bucket in slots(heap, table, 0) {
            self.pace.step()?;
            if found.len() >= self.limit {
                break;
            }
            let Some(bucket) = bucket else { continue };
            // ConcurrentHashMap converts long buckets to a TreeBin, whose field `first` begins the list of nodes.
            let mut next = Some(field_ref(heap, bucket, "first").unwrap_or(bucket));
            while let Some(node) = next {
                self.pace.step()?;
                if found.len() >= self.limit || !seen.insert(node) {
                    break;
                }
                found.extend(is_entry(heap, node).then(|| entry(heap, node)));
                next = reference(heap, node, "next|_next|nextInKToVBucket");
            }
        }
        Ok(found)
    }

    /// A binary tree in order, without recursion and without assumptions about its shape.
    fn tree(&mut self, root: ObjIdx) -> Result<Vec<Entry>, HeapError> {
        let heap = self.heap;
        let mut rows = Vec::new();
        let mut seen = FxHashSet::default();
        let mut stack = Vec::new();
        let mut next = Some(root);
        while rows.len() < self.limit {
            self.pace.step()?;
            match next {
                Some(node) if seen.insert(node) => {
                    stack.push(node);
                    next = field_ref(heap, node, "left");
                }
                _ => {
                    let Some(node) = stack.pop() else { break };
                    rows.push(entry(heap, node));
                    next = field_ref(heap, node, "right");
                }
            }
        }
        Ok(rows)
    }
}

/// `List.of`, `Set.of` and `Map.of` of one or two elements, and sets of few enum constants.
fn small(heap: &Heap, at: ObjIdx) -> Option<(Form, Vec<Entry>)> {
    let class = heap.class(heap.class_of(at)).name.as_str();
    let in_fields = |names: [&str; 2]| names.map(|f| field_ref(heap, at, f));
    match class.strip_prefix("java.util.")? {
        "ImmutableCollections$Map1" => {
            let [key, value] = in_fields(["k0", "v0"]);
            Some((Form::Map, vec![(key, value)]))
        }
        "ImmutableCollections$List12" | "ImmutableCollections$Set12" => {
            let form = match class.ends_with("Set12") {
                true => Form::Set,
                false => Form::List,
            };
            let [first, second] = in_fields(["e0", "e1"]);
            // `List12` and `Set12` with one element have a plain object in the second field.
            let is_element = |o: &ObjIdx| heap.class(heap.class_of(*o)).name != "java.lang.Object";
            let found = first.into_iter().chain(second.filter(is_element));
            Some((form, found.map(|o| (None, Some(o))).collect()))
        }
        "RegularEnumSet" => {
            let bits = field_int(heap, at, "elements")?;
            let universe = slots(heap, field_ref(heap, at, "universe")?, 0);
            let all = universe.take(64).enumerate();
            let found = all.filter_map(|(n, constant)| constant.filter(|_| bits >> n & 1 != 0));
            Some((Form::Set, found.map(|o| (None, Some(o))).collect()))
        }
        _ => None,
    }
}

/// The names of the key field of an entry; in weak entries the key is the referent.
const KEYS: [&str; 3] = ["key", "_key", "referent"];

fn is_entry(heap: &Heap, node: ObjIdx) -> bool {
    KEYS.iter().any(|name| field(heap, node, name).is_some())
}

/// An element of a map's array: an entry, or a value whose key is a primitive number.
fn lone(heap: &Heap, object: ObjIdx) -> Entry {
    let is_one = heap.class(heap.class_of(object)).name.ends_with("Entry");
    match is_one && is_entry(heap, object) {
        true => entry(heap, object),
        false => (None, Some(object)),
    }
}

/// Key and value of an entry.
fn entry(heap: &Heap, node: ObjIdx) -> Entry {
    let key = KEYS.iter().find_map(|f| field_ref(heap, node, f));
    (key, reference(heap, node, "val|value|_value"))
}
