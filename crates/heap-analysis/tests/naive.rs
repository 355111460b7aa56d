//! The answers against definitions written down naively: over random graphs, in the plain model.

use heap_analysis::leaks::{LeakOptions, SuspectKind, find};
use heap_analysis::objects::describe::title;
use heap_analysis::paths::merged::{EXACT_VISITS, MergedOptions, to_objects};
use heap_analysis::paths::{Exclusions, PathOptions, to_roots};
use heap_analysis::sets::selection::Selection;
use heap_analysis::tables::class_paths::{
    ClassPath, ClassPathOptions, ClassPaths, DEEPER, SMALLER, class_paths,
};
use heap_analysis::tables::group::{GroupBy, retained_by_group};
use heap_analysis::tables::{dominators, top, treemap};
use heap_graph::{ClassIdx, Control, Heap, LayoutModel, ObjIdx, Options};
use hprof::ObjectId;
use proptest::prelude::*;
use std::collections::{BTreeMap, VecDeque};
use testkit::dump::IdSize;
use testkit::graph::{Dominator, Graph, PlainGraph};
use testkit::shapes::{Encoding, dump_of, graphs};

/// A heap and the graph it was made from; node numbers and object numbers are the same, both in
/// the order of ids.
struct Case {
    heap: Heap,
    plain: PlainGraph,
    dominators: Vec<Option<Dominator>>,
    retained: Vec<u64>,
    _file: tempfile::NamedTempFile,
}

fn case(graph: &Graph, encoding: Encoding) -> Case {
    let dump = dump_of(graph, encoding, IdSize::Eight);
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    std::fs::write(file.path(), dump.heap.bytes()).expect("writing the dump");
    let options = Options {
        layout: LayoutModel::Plain,
        no_index: true,
        threads: 1,
        ..Options::default()
    };
    let heap = Heap::open(file.path(), &options, &Control::quiet()).expect("a readable dump");
    let plain = dump.heap.plain_graph();
    let dominators = plain.graph.dominators_by_data_flow();
    let retained = plain.graph.retained(&dominators);
    Case {
        heap,
        plain,
        dominators,
        retained,
        _file: file,
    }
}

impl Case {
    fn top_level(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.plain.ids.len()).filter(|n| self.dominators[*n] == Some(Dominator::VirtualRoot))
    }

    fn class_of(&self, node: usize) -> ClassIdx {
        self.heap.class_of(ObjIdx(node as u64))
    }

    fn total(&self) -> u64 {
        self.top_level().map(|n| self.retained[n]).sum()
    }
}

fn encodings() -> impl Strategy<Value = Encoding> {
    prop_oneof![
        Just(Encoding::Fields),
        Just(Encoding::Arrays),
        Just(Encoding::Mixed)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn suspects_are_what_the_definition_says(
        graph in graphs(40), encoding in encodings(), threshold in 1u64..40
    ) {
        let case = case(&graph, encoding);
        let limit = case.total() * threshold / 100;
        let mut want: BTreeMap<(bool, u64), (u64, u64)> = BTreeMap::new();
        for n in case.top_level() {
            let bytes = case.retained[n];
            let key = if bytes > limit {
                (false, case.plain.ids[n])
            } else {
                (true, case.heap.class(case.class_of(n)).id.0)
            };
            let sum = want.entry(key).or_default();
            *sum = (sum.0 + 1, sum.1 + bytes);
        }
        want.retain(|_, sum| sum.1 > limit);
        let options = LeakOptions { threshold: threshold as f64, ..LeakOptions::default() };
        let leaks = find(&case.heap, &options, &Control::quiet()).unwrap();
        let mut got: BTreeMap<_, _> = leaks.suspects.iter().map(|s| {
            ((s.kind == SuspectKind::Class, s.object.0.0), (s.instances, s.retained.0))
        }).collect();
        // Groups of plain values are not called suspects, but none is left out.
        for values in &leaks.scattered {
            let class = case.heap.classes().iter().find(|c| c.name == values.class);
            let id = class.expect("a class of the heap").id.0;
            got.insert((true, id), (values.objects, values.retained.0));
        }
        prop_assert_eq!(got, want);
        let sizes: Vec<u64> = leaks.suspects.iter().map(|s| s.retained.0).collect();
        prop_assert!(sizes.is_sorted_by(|a, b| a >= b));
        for suspect in leaks.suspects.iter().filter(|s| s.kind == SuspectKind::Object) {
            let point = suspect.accumulation_point.as_ref().expect("short chains have one");
            let at = case.plain.ids.binary_search(&point.object.0.0).unwrap();
            let parent = case.retained[at];
            let below = (0..case.plain.ids.len())
                .filter(|n| case.dominators[*n] == Some(Dominator::Node(at)))
                .map(|n| case.retained[n])
                .max();
            prop_assert!(below.is_none_or(|b| (b as f64) < 0.7 * parent as f64 || parent == 0));
        }
    }

    #[test]
    fn groups_at_the_top_add_up_to_the_heap(graph in graphs(40), encoding in encodings()) {
        let case = case(&graph, encoding);
        for by in [GroupBy::Class, GroupBy::Package, GroupBy::Loader] {
            let groups = dominators::by_group(&case.heap, by, None);
            let sum: u64 = groups.rows.iter().map(|r| r.retained.0).sum();
            prop_assert_eq!(sum, case.total());
        }
        let consumers = top::consumers(&case.heap, &top::TopOptions { threshold: 0.0, top: None }).unwrap();
        let mut want: Vec<u64> = case.top_level().map(|n| case.retained[n]).filter(|b| *b > 0).collect();
        want.sort_unstable_by(|a, b| b.cmp(a));
        let got: Vec<u64> = consumers.objects.iter().map(|o| o.object.retained.0).collect();
        prop_assert_eq!(got, want);
    }

    #[test]
    fn what_a_group_retains_is_what_dies_with_it(graph in graphs(24), odd in any::<bool>()) {
        let case = case(&graph, Encoding::Mixed);
        // Any split will do: every other object.
        let member = |n: usize| (n % 2 == 1) == odd;
        let got = retained_by_group(&case.heap, 1, |object, groups| {
            if member(object.0 as usize) {
                groups.push(0);
            }
        })[0];
        let mut want = 0;
        for n in (0..case.plain.ids.len()).filter(|n| member(*n)) {
            let mut above = case.dominators[n];
            let mut covered = above.is_none();
            while let Some(Dominator::Node(a)) = above {
                covered |= member(a);
                above = case.dominators[a];
            }
            if !covered {
                want += case.retained[n];
            }
        }
        prop_assert_eq!(got, want);
    }

    #[test]
    fn paths_are_shortest(graph in graphs(30), encoding in encodings()) {
        let case = case(&graph, encoding);
        // References to the class of an object are no way to it here, so instances and arrays only.
        let distance = distances(&case);
        for (node, want) in distance.iter().enumerate() {
            let object = ObjIdx(node as u64);
            if case.heap.class_by_object(object).is_some() {
                continue;
            }
            let options = PathOptions { count: 1, exclude: Exclusions::default() };
            let paths = to_roots(&case.heap, object, &options, &Control::quiet()).unwrap();
            let got = paths.paths.first().map(|p| p.steps.len() - 1);
            prop_assert_eq!(got, *want);
            for step in paths.paths.iter().flat_map(|p| &p.steps) {
                prop_assert!(step.direct);
            }
        }
    }

    #[test]
    fn merged_paths_count_every_object_once(graph in graphs(30), encoding in encodings()) {
        let case = case(&graph, encoding);
        let distance = distances(&case);
        for class in 0..case.heap.classes().len() {
            let class = ClassIdx(class as u32);
            let name = case.heap.class(class).name.clone();
            if name == "java.lang.Class" {
                continue;
            }
            let objects = Selection::of(&case.heap, case.heap.objects_of(class));
            let merge = |exact| {
                let options = MergedOptions { max_paths: 1000, depth: 100, top: 1000, exclude: Exclusions::default(), exact };
                to_objects(&case.heap, &name, &objects, &options, &Control::quiet()).unwrap()
            };
            let merged = merge(EXACT_VISITS);
            // Hardly any search ends, and yet no path is missed.
            prop_assert_eq!(merge(3).without_path, merged.without_path);
            let reached = objects.iter().filter(|o| distance[o.0 as usize].is_some()).count();
            prop_assert_eq!(merged.followed - merged.without_path, reached as u64);
            let at_roots: u64 = merged.nodes.iter().filter(|n| n.depth == 0).map(|n| n.targets).sum();
            prop_assert_eq!(at_roots + merged.without_path, merged.followed);
            let mut tops = merged.nodes.iter().filter(|n| n.depth == 0);
            if let (Some(top), None) = (tops.next(), tops.next()) {
                let is_one = |n: usize| objects.contains(ObjIdx(n as u64));
                let above = |n: usize| match case.dominators[n] {
                    Some(Dominator::Node(above)) => Some(above),
                    _ => None,
                };
                let outermost = (0..case.plain.ids.len()).filter(|n| {
                    let mut all = std::iter::successors(above(*n), |n| above(*n));
                    is_one(*n) && case.dominators[*n].is_some() && !all.any(is_one)
                });
                let want: u64 = outermost.map(|n| case.retained[n]).sum();
                prop_assert_eq!(top.targets_retained.0, want);
            }
            let mut before: Vec<(u64, u64)> = Vec::new();
            for node in &merged.nodes {
                before.truncate(node.depth + 1);
                let rank = (node.targets, node.targets_retained.0);
                prop_assert!(before.get(node.depth).is_none_or(|sibling| *sibling >= rank));
                before.truncate(node.depth);
                before.push(rank);
            }
            for node in merged.nodes.iter().filter(|n| n.is_target) {
                let at = case.plain.ids.binary_search(&node.object.object.0.0).unwrap();
                prop_assert_eq!(Some(node.depth), distance[at]);
            }
        }
    }

    #[test]
    fn class_paths_are_those_of_the_dominators(
        graph in graphs(40), encoding in encodings(), parts in 1u64..200, depth in 1usize..6
    ) {
        let case = case(&graph, encoding);
        let name = |n: usize| title(&case.heap, ObjIdx(n as u64));
        // Each object by itself: the names on its way, equal ones in a row once.
        let mut want: BTreeMap<Vec<String>, u64> = BTreeMap::new();
        for n in (0..case.plain.ids.len()).filter(|n| case.dominators[*n].is_some()) {
            let mut path = vec![name(n)];
            let mut above = case.dominators[n];
            while let Some(Dominator::Node(a)) = above {
                path.push(name(a));
                above = case.dominators[a];
            }
            path.reverse();
            path.dedup();
            *want.entry(path).or_default() += case.heap.shallow(ObjIdx(n as u64)).0;
        }
        want.retain(|_, bytes| *bytes > 0);
        let all = ClassPathOptions { parts: u64::MAX, depth: 1000 };
        let whole = class_paths(&case.heap, &all, &Control::quiet()).unwrap();
        prop_assert_eq!(own_by_path(&whole), want);
        prop_assert_eq!((whole.smaller.0, whole.deeper.0), (0, 0));
        let cut = class_paths(&case.heap, &ClassPathOptions { parts, depth }, &Control::quiet()).unwrap();
        for tree in [&whole, &cut] {
            prop_assert_eq!(tree.nodes.iter().map(|n| n.own.0).sum::<u64>(), case.total());
            let mut sums: Vec<u64> = tree.nodes.iter().map(|n| n.own.0).collect();
            for (at, node) in tree.nodes.iter().enumerate().rev() {
                prop_assert_eq!(sums[at], node.retained.0);
                if let Some(parent) = node.parent {
                    prop_assert!((parent as usize) < at);
                    sums[parent as usize] += sums[at];
                }
            }
        }
        let levels = own_by_path(&cut);
        prop_assert!(levels.keys().all(|path| path.len() <= depth + 1));
        let is_folded = |n: &&ClassPath| n.name == SMALLER || n.name == DEEPER;
        prop_assert!(cut.nodes.iter().filter(|n| !is_folded(n)).all(|n| n.retained >= cut.least));
        let folded: u64 = cut.nodes.iter().filter(is_folded).map(|n| n.own.0).sum();
        prop_assert_eq!(folded, cut.smaller.0 + cut.deeper.0);
    }

    #[test]
    fn the_map_has_no_more_than_its_parents(graph in graphs(40)) {
        let case = case(&graph, Encoding::Mixed);
        let map = treemap::treemap(&case.heap, 50);
        let mut inside = vec![0u64; map.areas.len()];
        for area in &map.areas {
            if let Some(parent) = area.parent {
                inside[parent as usize] += area.retained.0;
            }
        }
        for (area, inside) in map.areas.iter().zip(inside) {
            prop_assert!(inside <= area.retained.0);
        }
    }
}

/// What each path of names has of its own, zero left out.
fn own_by_path(tree: &ClassPaths) -> BTreeMap<Vec<String>, u64> {
    let mut paths: Vec<Vec<String>> = Vec::new();
    let mut sums: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for node in &tree.nodes {
        let above = node.parent.map(|at| paths[at as usize].clone());
        let mut path = above.unwrap_or_default();
        path.push(node.name.clone());
        *sums.entry(path.clone()).or_default() += node.own.0;
        paths.push(path);
    }
    sums.retain(|_, bytes| *bytes > 0);
    sums
}

/// Steps from the nearest root by breadth first search, class references aside.
fn distances(case: &Case) -> Vec<Option<usize>> {
    let mut distance = vec![None; case.plain.ids.len()];
    let mut queue = VecDeque::new();
    for root in &case.plain.graph.roots {
        if distance[*root].is_none() {
            distance[*root] = Some(0);
            queue.push_back(*root);
        }
    }
    while let Some(node) = queue.pop_front() {
        let class = case.heap.class(case.class_of(node)).id;
        for next in &case.plain.graph.edges[node] {
            let to_class = ObjectId(case.plain.ids[*next]) == class;
            if !to_class && distance[*next].is_none() {
                distance[*next] = distance[node].map(|d: usize| d + 1);
                queue.push_back(*next);
            }
        }
    }
    distance
}
