//! Large graphs in dumps of many segments, built with small thresholds, so that every way of the build runs, against the
//! definitions.

use crate::dominators::lines;
use heap_graph::{ClassIdx, ContentVisitor, Control, Heap, LayoutModel, ObjIdx, Options, Tuning};
use hprof::{BasicType, ObjectId, Serial};
use testkit::dump::{Heap as Builder, IdSize, Root, Type, Value};
use testkit::graph::Graph;

/// SplitMix64: the same numbers in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % n
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[self.below(values.len() as u64) as usize]
    }

    /// A tree of lists and branches with edges between them, some hubs with thousands of edges, and parts that no root
    /// reaches.
    fn graph(&mut self) -> Graph {
        let n = 80_000 + self.below(40_000) as usize;
        let mut graph = Graph::new(n);
        let list = 10_000..12_000;
        for node in 1..n {
            let above = match self.below(16) {
                0 => continue,
                k if k < 8 || list.contains(&node) => node - 1,
                _ => self.below(node as u64) as usize,
            };
            graph.edges[above].push(node);
        }
        let mut any = || self.below(n as u64) as usize;
        for _ in 0..n / 3 {
            let source = any();
            graph.edges[source].push(any());
        }
        for _ in 0..6 {
            let hub = any();
            graph.edges[hub].extend((0..4000).map(|_| any()));
        }
        graph.roots = vec![0, any(), any()];
        graph
    }

    /// Thresholds that a graph of this size exceeds many times, or not at all.
    fn options(&mut self) -> Options {
        let tuning = Tuning {
            in_file: self.one_of(&[1, 50_000, u64::MAX]),
            long_array: self.one_of(&[0, 3, 100, 2048]),
            row_block: 1 << self.below(17),
            stack_block: 1 + self.below(100) as usize,
            checkpoint: 1 << (12 + self.below(8)),
            copied: self.one_of(&[0, 1 << 15, u64::MAX]),
            divided: 1 << (12 + self.below(8)),
            content_step: 1 << (10 + self.below(12)),
            wide: self.below(2) == 1,
            wide_sizes: self.below(2) == 1,
        };
        Options {
            layout: LayoutModel::Plain,
            no_index: true,
            threads: 1 + self.below(4) as usize,
            max_memory: self.one_of(&[None, Some(0), Some(1 << 20)]),
            tuning,
            ..Options::default()
        }
    }
}

/// Every second node an array, the others instances; each with one of seven allocation traces.
fn dump_of(graph: &Graph) -> (Builder, Vec<u64>) {
    let mut heap = Builder::new(IdSize::Eight);
    let (object, array) = (heap.java_lang_object(), heap.object_array_class());
    let names: Vec<String> = (0..6000).map(|k| format!("f{k}")).collect();
    let mut classes = std::collections::HashMap::new();
    let mut ids = Vec::with_capacity(graph.len());
    for (node, targets) in graph.edges.iter().enumerate() {
        heap.allocated_at(trace_of(node));
        if node % 2 == 1 {
            ids.push(heap.object_array(array, &vec![0; targets.len()]));
            continue;
        }
        let class = *classes.entry(targets.len()).or_insert_with(|| {
            let fields = names[..targets.len()].iter();
            let fields: Vec<(&str, Type)> = fields.map(|name| (&**name, Type::Object)).collect();
            heap.class(&format!("graph.Node{}", targets.len()), object, &fields)
        });
        ids.push(heap.instance(class, &vec![Value::Object(0); targets.len()]));
    }
    for (node, targets) in graph.edges.iter().enumerate() {
        for (k, target) in targets.iter().enumerate() {
            heap.set_reference(ids[node], k, ids[*target]);
        }
    }
    for root in &graph.roots {
        heap.root(Root::Unknown, ids[*root]);
    }
    (heap, ids)
}

fn trace_of(node: usize) -> u32 {
    (node % 7) as u32
}

/// The objects that a walk over the contents passes, and the ids in them that are not null.
#[derive(Default)]
struct Seen {
    objects: Vec<ObjIdx>,
    references: usize,
}

impl Seen {
    fn add(&mut self, object: ObjIdx, ids: &[u8]) {
        self.objects.push(object);
        self.references += ids
            .chunks(8)
            .filter(|id| id.iter().any(|b| *b != 0))
            .count();
    }

    fn check(mut self, heap: &Heap, graph: &Graph, of: &str) {
        self.objects.sort_unstable();
        let all = heap.all_ids().map(|(object, _)| object);
        let all = all.filter(|object| heap.class_by_object(*object).is_none());
        let edges: usize = graph.edges.iter().map(Vec::len).sum();
        assert!(self.objects.into_iter().eq(all), "{of}");
        assert_eq!(self.references, edges, "{of}");
    }
}

impl ContentVisitor for Seen {
    fn instance(&mut self, object: ObjIdx, _: ClassIdx, fields: &[u8]) {
        self.add(object, fields);
    }

    fn object_array(&mut self, object: ObjIdx, _: ClassIdx, elements: &[u8]) {
        self.add(object, elements);
    }

    fn primitive_array(&mut self, _: ObjIdx, _: BasicType, _: u32, _: &[u8]) {
        unreachable!("the dump has none");
    }
}

#[test]
fn answers_do_not_depend_on_the_thresholds() {
    for seed in 0..4 {
        let mut numbers = Numbers(seed);
        let graph = numbers.graph();
        let (dump, ids) = dump_of(&graph);
        let dump = dump.segments_of(1 << (14 + seed * 2));
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(file.path(), dump.bytes()).expect("the dump is written");
        let dominators = dump.plain_graph().dominator_lines();
        let reachable = graph.reachable();
        let mut referrers: Vec<Vec<u64>> = vec![Vec::new(); graph.len()];
        for (source, targets) in graph.edges.iter().enumerate() {
            targets
                .iter()
                .for_each(|target| referrers[*target].push(ids[source]));
        }
        referrers.iter_mut().for_each(Vec::dedup);
        for turn in 0..4 {
            let options = numbers.options();
            let of = format!("graph {seed}, turn {turn}: {options:?}");
            let heap = Heap::open(file.path(), &options, &Control::quiet()).expect(&of);
            assert!(lines(&heap) == dominators, "dominators of {of}");
            for (node, id) in ids.iter().enumerate() {
                let object = heap.find(ObjectId(*id)).expect("the object");
                assert_eq!(
                    heap.is_reachable(object),
                    reachable[node],
                    "{id:#x} of {of}"
                );
                assert_eq!(
                    heap.allocation_trace(object),
                    Serial(trace_of(node)),
                    "{id:#x} of {of}"
                );
                let found = heap.inbound(object).expect("referrers");
                let found: Vec<u64> = found.iter().map(|o| heap.id(*o).0).collect();
                assert_eq!(found, referrers[node], "referrers of {id:#x} of {of}");
            }
            let walked = heap.walk_contents("test", &Control::quiet(), Seen::default);
            let walked = walked.expect("contents").into_iter();
            let walked = walked.reduce(|mut all, one| {
                all.objects.extend(one.objects);
                all.references += one.references;
                all
            });
            let walked = walked.expect("a worker");
            walked.check(&heap, &graph, &of);
            let mut stepped = Seen::default();
            let mut steps = heap.content_steps().expect("contents");
            while steps.next(&heap, &mut stepped).expect("contents") {}
            stepped.check(&heap, &graph, &of);
        }
    }
}
