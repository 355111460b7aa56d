//! What a heap dump adds to the events: objects that are not collected although they are unreachable. Under reference
//! counting these are cycles and the objects that only cycles refer to.

use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use vmpi::dump::{HeapRecord, IdLayout, types_of};
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
        let supers = records.iter().filter_map(|record| match record {
            HeapRecord::Class(class) => Some((class.class.0, class.superclass.0)),
            _ => None,
        });
        let mut fields_of = Fields::new(heap, supers.collect());
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
                    let to = references(&mut fields_of, class.0, fields, level, layout);
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

/// References of an instance. At level 1 its data consists of references; at level 2 the types of the fields come from
/// the classes, its own class first.
fn references(
    fields_of: &mut Fields<'_>,
    class: u64,
    fields: &[u8],
    level: DumpLevel,
    layout: IdLayout,
) -> Vec<u64> {
    let types = if level == DumpLevel::References {
        vec![BasicType::Object; fields.len() / usize::from(layout.width.max(1))]
    } else {
        fields_of.types(class, fields.len())
    };
    let values = vmpi::dump::field_values(fields, &types, layout).unwrap_or_default();
    let objects = values.into_iter().filter_map(|value| match value {
        vmpi::Value::Object(object) => Some(object.0),
        _ => None,
    });
    objects.collect()
}

/// Fields of classes with those of their superclasses, which the records of a dump state. A chain of superclasses can have
/// any length, and can be a cycle.
struct Fields<'h> {
    heap: &'h LiveHeap,
    supers: FxHashMap<u64, u64>,
    /// For each class that was passed, itself or its nearest superclass that has fields.
    nearest: FxHashMap<u64, Option<u64>>,
}

impl<'h> Fields<'h> {
    fn new(heap: &'h LiveHeap, supers: FxHashMap<u64, u64>) -> Self {
        Self {
            heap,
            supers,
            nearest: FxHashMap::default(),
        }
    }

    fn superclass(&self, class: u64) -> u64 {
        self.supers.get(&class).copied().unwrap_or(0)
    }

    fn nearest(&mut self, class: u64) -> Option<u64> {
        let mut way = Vec::new();
        let mut at = class;
        let found = loop {
            if let Some(known) = self.nearest.get(&at) {
                break *known;
            }
            let Some(class) = self.heap.names.classes.get(&at) else {
                break None;
            };
            if !class.load.instances.is_empty() {
                break Some(at);
            }
            // A cycle of classes without fields ends here.
            self.nearest.insert(at, None);
            way.push(at);
            at = self.superclass(at);
        };
        let passed = way.into_iter().map(|passed| (passed, found));
        self.nearest.extend(passed);
        found
    }

    /// The types of the fields of an instance with this many bytes, and one more if they cannot fit.
    fn types(&mut self, class: u64, bytes: usize) -> Vec<BasicType> {
        let mut types = Vec::new();
        let mut at = self.nearest(class);
        while let Some(class) = at {
            let Some(loaded) = self.heap.names.classes.get(&class) else {
                break;
            };
            let left = bytes + 1 - types.len();
            for kind in types_of(&loaded.load.instances).take(left) {
                let Some(kind) = kind else {
                    return types;
                };
                types.push(kind);
            }
            if types.len() > bytes {
                break;
            }
            at = self.nearest(self.superclass(class));
        }
        types
    }
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
        let types = |supers| Fields::new(&heap, supers).types(8, 7).len();
        assert_eq!(types(FxHashMap::from_iter([(8, 8)])), 8);
        assert_eq!(types(FxHashMap::default()), 3);
    }

    /// Each of a million instances would read a hundred thousand classes or fields.
    #[test]
    fn instances_of_large_classes_take_no_more_steps_than_bytes() {
        let mut heap = LiveHeap::new(&Hello::default());
        let mut load = |class: u64, signatures: Vec<&str>| {
            let field = |signature: &str| FieldDef {
                signature: signature.to_owned(),
                ..FieldDef::default()
            };
            let class = ClassLoad {
                class: ObjectHandle(class),
                instances: signatures.into_iter().map(field).collect(),
                ..ClassLoad::default()
            };
            heap.apply(&Item::event(Body::ClassLoad(Box::new(class))));
        };
        const DEEP: u64 = 100_000;
        for class in 0..=DEEP {
            load(class, Vec::new());
        }
        load(DEEP + 1, vec!["B"]);
        load(DEEP + 2, vec!["no type"; DEEP as usize]);
        let chain = (1..=DEEP).map(|class| (class, class + 1)).collect();
        let mut fields = Fields::new(&heap, chain);
        for _ in 0..1_000_000 {
            assert_eq!(fields.types(1, 1), [BasicType::Byte]);
            assert_eq!(fields.types(DEEP + 2, 1), []);
        }
        // Two classes without fields that are superclasses of each other, one of them with the id of none.
        let cycle = [(0, 1), (1, 0)].into_iter().collect();
        assert_eq!(Fields::new(&heap, cycle).types(1, 1), []);
    }
}
