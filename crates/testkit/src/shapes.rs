//! Random graphs for property tests, and graphs turned into dumps.

use proptest::prelude::*;

use crate::dump::{Heap, IdSize, Root, Type, Value};
use crate::graph::Graph;

/// How a graph becomes objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    /// One class per out-degree, with that many reference fields.
    Fields,
    /// Every node an `Object[]`.
    Arrays,
    /// Every second node an array.
    Mixed,
}

/// A dump made from a graph.
#[derive(Clone, Debug)]
pub struct GraphDump {
    /// The heap; [`Heap::bytes`] is the file, [`Heap::plain_graph`] the graph with its classes.
    pub heap: Heap,
    /// Object id of each node.
    pub ids: Vec<u64>,
}

/// Graphs of up to `max` nodes, of every shape below.
pub fn graphs(max: usize) -> impl Strategy<Value = Graph> {
    assert!(max >= 4, "too small for the shapes");
    prop_oneof![
        4 => random(max),
        1 => chain(max),
        1 => diamonds(max),
        1 => star(max),
        2 => back_edges(max),
        2 => tree_with_cross_edges(max),
    ]
}

/// Any edges, any roots, about half of the nodes unreachable when edges are few.
pub fn random(max: usize) -> impl Strategy<Value = Graph> {
    (1..=max).prop_flat_map(|n| {
        let edges = prop::collection::vec((0..n, 0..n), 0..3 * n);
        let roots = prop::collection::vec(0..n, 0..=3);
        with_sizes(n, edges, roots)
    })
}

/// A list: the shape that breaks recursion.
pub fn chain(max: usize) -> impl Strategy<Value = Graph> {
    (1..=max).prop_flat_map(|n| {
        let edges: Vec<_> = (1..n).map(|i| (i - 1, i)).collect();
        with_sizes(n, Just(edges), Just(vec![0]))
    })
}

/// Two ways to every third node: the join's dominator is the fork.
pub fn diamonds(max: usize) -> impl Strategy<Value = Graph> {
    (1..=(max - 1) / 3).prop_flat_map(|k| {
        let fork = |i: usize| {
            let a = 3 * i;
            [(a, a + 1), (a, a + 2), (a + 1, a + 3), (a + 2, a + 3)]
        };
        let edges: Vec<_> = (0..k).flat_map(fork).collect();
        with_sizes(3 * k + 1, Just(edges), Just(vec![0]))
    })
}

/// One node that points at all others, some of which are roots themselves or point back.
pub fn star(max: usize) -> impl Strategy<Value = Graph> {
    (2..=max).prop_flat_map(|n| {
        let rays: Vec<_> = (1..n).map(|i| (0, i)).collect();
        let back = prop::collection::vec(1..n, 0..4);
        let edges = back.prop_map(move |b| {
            let back = b.into_iter().map(|i| (i, 0));
            rays.iter().copied().chain(back).collect::<Vec<_>>()
        });
        let roots = prop::collection::vec(0..n, 1..3);
        with_sizes(n, edges, roots)
    })
}

/// A list with edges from its end towards its start: nested loops.
pub fn back_edges(max: usize) -> impl Strategy<Value = Graph> {
    (2..=max).prop_flat_map(|n| {
        let extra = prop::collection::vec((0..n, 0..n), 0..n);
        let edges = extra.prop_map(move |pairs| {
            let back = pairs.into_iter().map(|(a, b)| (a.max(b), a.min(b)));
            (1..n).map(|i| (i - 1, i)).chain(back).collect::<Vec<_>>()
        });
        with_sizes(n, edges, Just(vec![0]))
    })
}

/// A random tree with edges between its branches: what real heaps look like.
pub fn tree_with_cross_edges(max: usize) -> impl Strategy<Value = Graph> {
    (2..=max).prop_flat_map(|n| {
        let parents = prop::collection::vec(any::<prop::sample::Index>(), n - 1);
        let cross = prop::collection::vec((0..n, 0..n), 0..=n / 3);
        let edges = (parents, cross).prop_map(|(parents, cross)| {
            let down = parents
                .iter()
                .enumerate()
                .map(|(i, p)| (p.index(i + 1), i + 1));
            down.chain(cross).collect::<Vec<_>>()
        });
        with_sizes(n, edges, Just(vec![0]))
    })
}

fn with_sizes(
    n: usize,
    edges: impl Strategy<Value = Vec<(usize, usize)>>,
    roots: impl Strategy<Value = Vec<usize>>,
) -> impl Strategy<Value = Graph> {
    (edges, roots, prop::collection::vec(0..4u64, n)).prop_map(move |(edges, roots, sizes)| {
        let mut g = Graph::from_edges(n, &roots, &edges);
        g.sizes = sizes;
        g
    })
}

/// Turns a graph into a heap. A node's weight becomes that many `long` fields (arrays have none),
/// so sizes are to be read from [`Heap::plain_graph`]. Roots take every kind in turn.
pub fn dump_of(graph: &Graph, encoding: Encoding, id_size: IdSize) -> GraphDump {
    let mut heap = Heap::new(id_size);
    let array_class = heap.object_array_class();
    let object = heap.java_lang_object();
    let mut classes = std::collections::HashMap::new();
    let mut ids = Vec::with_capacity(graph.len());
    for (i, targets) in graph.edges.iter().enumerate() {
        let as_array = match encoding {
            Encoding::Fields => false,
            Encoding::Arrays => true,
            Encoding::Mixed => i % 2 == 1,
        };
        if as_array {
            ids.push(heap.object_array(array_class, &vec![0; targets.len()]));
            continue;
        }
        let (degree, weight) = (targets.len(), graph.sizes[i] as usize);
        let class = *classes.entry((degree, weight)).or_insert_with(|| {
            let names: Vec<String> = (0..degree + weight).map(|k| format!("f{k}")).collect();
            let ty = |k: usize| if k < degree { Type::Object } else { Type::Long };
            let named = names.iter().enumerate();
            let fields: Vec<(&str, Type)> = named.map(|(k, n)| (n.as_str(), ty(k))).collect();
            heap.class(&format!("graph.Node{degree}x{weight}"), object, &fields)
        });
        let mut values = vec![Value::Object(0); degree];
        values.resize(degree + weight, Value::Long(-1));
        ids.push(heap.instance(class, &values));
    }
    for (i, targets) in graph.edges.iter().enumerate() {
        for (k, to) in targets.iter().enumerate() {
            heap.set_reference(ids[i], k, ids[*to]);
        }
    }
    let kinds = [
        Root::StickyClass,
        Root::JniGlobal { reference: 0x99 },
        Root::Unknown,
        Root::MonitorUsed,
    ];
    for (i, r) in graph.roots.iter().enumerate() {
        heap.root(kinds[i % kinds.len()], ids[*r]);
    }
    GraphDump { heap, ids }
}
