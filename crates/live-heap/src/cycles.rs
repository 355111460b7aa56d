//! What a heap dump adds to the events: objects that are not collected although they are unreachable. Under reference
//! counting these are cycles and the objects that only cycles refer to.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use vmpi::dump::{HeapRecord, IdLayout};
use vmpi::{BasicType, DumpLevel};

use crate::heap::LiveHeap;
use crate::names::Room;

/// Bytes of all frames of the rows: a stream can refer to the name of a method with a few bytes, any number of times.
/// Rows after that have no frames; they are those with the fewest bytes.
const TEXT: usize = 64 << 20;

/// Objects that nothing reaches, by class and site.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CycleLeaks {
    /// Objects of the population that the dump's roots do not reach.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Groups of objects that reach each other: each is what keeps itself alive.
    pub cycles: u64,
    /// Objects in such groups; the others hang on them.
    pub in_cycles: u64,
    /// By class and site, most bytes first.
    pub rows: Vec<CycleRow>,
}

/// Leaked objects of one class from one site.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CycleRow {
    /// The class.
    pub class: String,
    /// The stack that allocated them, innermost first.
    pub frames: Vec<String>,
    /// How many.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Compares an undamaged dump of level 1 or 2 with the population.
pub(crate) fn find(heap: &LiveHeap, level: DumpLevel, records: &[HeapRecord]) -> CycleLeaks {
    let graph = Graph::new(heap, records, level, IdLayout::of(&heap.hello));
    let reached = graph.reached();
    let leaked: FxHashSet<u64> = heap
        .objects
        .iter()
        .map(|row| row.id)
        .filter(|id| graph.edges.contains_key(id) && !reached.contains(id))
        .collect();
    let (cycles, in_cycles) = graph.cycles(&leaked);
    let mut leaks = CycleLeaks {
        cycles,
        in_cycles,
        ..CycleLeaks::default()
    };
    let mut rows: FxHashMap<(u32, u32), (u64, u64)> = FxHashMap::default();
    for row in heap.objects.iter().filter(|row| leaked.contains(&row.id)) {
        let bytes = heap.weight(row.size);
        let sum = rows.entry(heap.names.kinds[row.kind as usize]).or_default();
        sum.0 += 1;
        sum.1 += bytes;
        leaks.objects += 1;
        leaks.bytes += bytes;
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    rows.sort_unstable_by_key(|(key, (_, bytes))| (std::cmp::Reverse(*bytes), *key));
    let mut room = Room::new(TEXT);
    leaks.rows = rows
        .into_iter()
        .map(|((class, site), (objects, bytes))| CycleRow {
            class: heap.names.class_name(class),
            frames: heap.names.site_frames_in(site, &mut room),
            objects,
            bytes,
        })
        .collect();
    leaks
}

struct Graph {
    roots: Vec<u64>,
    edges: FxHashMap<u64, Vec<u64>>,
}

impl Graph {
    fn new(heap: &LiveHeap, records: &[HeapRecord], level: DumpLevel, layout: IdLayout) -> Self {
        let mut supers: FxHashMap<u64, u64> = FxHashMap::default();
        for record in records {
            if let HeapRecord::Class(class) = record {
                supers.insert(class.class.0, class.superclass.0);
            }
        }
        let mut graph = Self {
            roots: Vec::new(),
            edges: FxHashMap::default(),
        };
        for record in records {
            match record {
                HeapRecord::Root { object, .. } => graph.roots.push(object.0),
                HeapRecord::Class(class) => {
                    // Objects that a loaded class refers to are kept alive by it.
                    let constants = class.constants.iter().map(|(_, value)| value);
                    let values = class.statics.iter().chain(constants);
                    let held = values.filter_map(|value| match value {
                        vmpi::Value::Object(object) => Some(object.0),
                        _ => None,
                    });
                    graph.roots.extend(held);
                    let others = [class.loader, class.signers, class.protection_domain];
                    graph.roots.extend(others.map(|object| object.0));
                }
                HeapRecord::Instance {
                    object,
                    class,
                    fields,
                } => {
                    let to = references(heap, &supers, class.0, fields, level, layout);
                    graph.edges.insert(object.0, to);
                }
                HeapRecord::ObjectArray {
                    object, elements, ..
                } => {
                    let to = elements.iter().map(|element| element.0).collect();
                    graph.edges.insert(object.0, to);
                }
                HeapRecord::PrimitiveArray { object, .. } => {
                    graph.edges.insert(object.0, Vec::new());
                }
            }
        }
        graph
    }

    fn reached(&self) -> FxHashSet<u64> {
        let mut reached = FxHashSet::default();
        let mut stack = self.roots.clone();
        while let Some(id) = stack.pop() {
            if reached.insert(id)
                && let Some(to) = self.edges.get(&id)
            {
                stack.extend(to);
            }
        }
        reached
    }

    /// Strongly connected groups among `inside`: the number of groups, and of objects in them. Tarjan's algorithm with
    /// its stack on the heap.
    fn cycles(&self, inside: &FxHashSet<u64>) -> (u64, u64) {
        let mut nodes: Vec<u64> = inside.iter().copied().collect();
        nodes.sort_unstable();
        let place: FxHashMap<u64, usize> =
            nodes.iter().enumerate().map(|(at, id)| (*id, at)).collect();
        let to: Vec<Vec<usize>> = nodes
            .iter()
            .map(|id| {
                self.edges[id]
                    .iter()
                    .filter_map(|to| place.get(to).copied())
                    .collect()
            })
            .collect();
        let (mut cycles, mut objects) = (0, 0);
        let mut order = vec![usize::MAX; nodes.len()];
        let mut low = vec![0; nodes.len()];
        let mut open = vec![false; nodes.len()];
        let (mut stack, mut count) = (Vec::new(), 0);
        for start in 0..nodes.len() {
            if order[start] != usize::MAX {
                continue;
            }
            let mut path = vec![(start, 0usize)];
            while let Some((at, edge)) = path.last_mut() {
                let at = *at;
                if *edge == 0 {
                    order[at] = count;
                    low[at] = count;
                    count += 1;
                    stack.push(at);
                    open[at] = true;
                }
                if let Some(&next) = to[at].get(*edge) {
                    *edge += 1;
                    if order[next] == usize::MAX {
                        path.push((next, 0));
                    } else if open[next] {
                        low[at] = low[at].min(order[next]);
                    }
                    continue;
                }
                path.pop();
                if let Some((parent, _)) = path.last() {
                    low[*parent] = low[*parent].min(low[at]);
                }
                if low[at] == order[at] {
                    let mut size = 0;
                    while let Some(one) = stack.pop() {
                        open[one] = false;
                        size += 1;
                        if one == at {
                            break;
                        }
                    }
                    if size > 1 || to[at].contains(&at) {
                        cycles += 1;
                        objects += size;
                    }
                }
            }
        }
        (cycles, objects)
    }
}

/// The most superclasses of a class.
const DEEPEST: usize = 1024;

/// References of an instance. At level 1 its data consists of references; at level 2 the types of the fields come from
/// the classes, its own class first.
fn references(
    heap: &LiveHeap,
    supers: &FxHashMap<u64, u64>,
    class: u64,
    fields: &[u8],
    level: DumpLevel,
    layout: IdLayout,
) -> Vec<u64> {
    let types = if level == DumpLevel::References {
        vec![BasicType::Object; fields.len() / usize::from(layout.width.max(1))]
    } else {
        field_types(heap, supers, class, fields.len())
    };
    let values = vmpi::dump::field_values(fields, &types, layout).unwrap_or_default();
    let objects = values.into_iter().filter_map(|value| match value {
        vmpi::Value::Object(object) => Some(object.0),
        _ => None,
    });
    objects.collect()
}

/// The types of the fields of an instance with this many bytes, and one more if they cannot fit: a chain of
/// superclasses can be a cycle.
fn field_types(
    heap: &LiveHeap,
    supers: &FxHashMap<u64, u64>,
    class: u64,
    bytes: usize,
) -> Vec<BasicType> {
    let mut types = Vec::new();
    let mut at = class;
    for _ in 0..DEEPEST {
        let Some(load) = heap.names.classes.get(&at).filter(|_| types.len() <= bytes) else {
            break;
        };
        let own = load
            .instances
            .iter()
            .filter_map(|field| BasicType::from_descriptor(&field.signature));
        types.extend(own.take(bytes + 1 - types.len()));
        at = supers.get(&at).copied().unwrap_or(0);
    }
    types
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi::wire::{Hello, Item};
    use vmpi::{
        ArenaId, Body, CallFrame, CallTrace, ClassLoad, EnvId, FieldDef, JMethodId, MethodDef,
        ObjectAlloc, ObjectHandle, TraceId,
    };

    #[test]
    fn stacks_of_leaked_objects_do_not_fill_the_memory() {
        let mut heap = LiveHeap::new(&Hello::default());
        let long = "n".repeat(10_000);
        let class = ClassLoad {
            class: ObjectHandle(8),
            name: long.clone(),
            methods: vec![MethodDef {
                name: long,
                method: JMethodId(7),
                ..MethodDef::default()
            }],
            ..ClassLoad::default()
        };
        heap.apply(&Item::event(Body::ClassLoad(Box::new(class))));
        let mut records = Vec::new();
        for number in 1..20 {
            let frame = CallFrame {
                line: 1,
                method: JMethodId(7),
            };
            let trace = CallTrace {
                env: EnvId(1),
                frames: vec![frame; 1000],
            };
            let (id, object) = (TraceId(number), ObjectHandle(1000 + 8 * u64::from(number)));
            heap.apply(&Item::Trace { id, trace });
            heap.apply(&Item::event(Body::ObjectAlloc(ObjectAlloc {
                object,
                class: ObjectHandle(8),
                size: 16,
                arena: ArenaId(1),
                trace: id,
                array: None,
            })));
            records.push(HeapRecord::Instance {
                object,
                class: ObjectHandle(8),
                fields: Vec::new(),
            });
        }
        let leaks = find(&heap, DumpLevel::References, &records);
        assert_eq!((leaks.objects, leaks.rows.len()), (19, 19));
        let frames = leaks.rows.iter().flat_map(|row| &row.frames);
        let text: usize = frames.map(String::len).sum();
        assert!((TEXT / 2..=TEXT).contains(&text), "{text}");
    }

    #[test]
    fn a_class_that_is_its_own_superclass_has_no_more_fields_than_bytes() {
        let mut heap = LiveHeap::new(&Hello::default());
        let field = FieldDef {
            name: "f".to_owned(),
            signature: "B".to_owned(),
        };
        let class = ClassLoad {
            class: ObjectHandle(8),
            instances: vec![field; 3],
            ..ClassLoad::default()
        };
        heap.apply(&Item::event(Body::ClassLoad(Box::new(class))));
        let cycle = (1..1000).map(|class| (8 * class, 8)).collect();
        assert_eq!(field_types(&heap, &cycle, 8, 7).len(), 8);
        let single = FxHashMap::default();
        assert_eq!(field_types(&heap, &single, 8, 7).len(), 3);
    }
}
