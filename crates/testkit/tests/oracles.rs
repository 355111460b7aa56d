//! The two dominator oracles against each other and against dominators known by hand.

use proptest::prelude::*;
use testkit::dump::IdSize;
use testkit::graph::{Dominator, Graph};
use testkit::shapes::{Encoding, dump_of, graphs};

fn check(n: usize, roots: &[usize], edges: &[(usize, usize)], want: &[Option<Dominator>]) {
    let g = Graph::from_edges(n, roots, edges);
    assert_eq!(g.dominators_by_removal(), want, "by removal: {g:?}");
    assert_eq!(g.dominators_by_data_flow(), want, "by data flow: {g:?}");
}

const TOP: Option<Dominator> = Some(Dominator::VirtualRoot);

fn under(n: usize) -> Option<Dominator> {
    Some(Dominator::Node(n))
}

#[test]
fn dominators_of_small_graphs_are_those_known_by_hand() {
    check(0, &[], &[], &[]);
    check(2, &[], &[(0, 1)], &[None, None]);
    check(2, &[0, 0], &[(0, 1), (1, 1)], &[TOP, under(0)]);
    check(3, &[0, 2], &[(0, 1), (2, 1)], &[TOP, TOP, TOP]);
    check(
        4,
        &[0],
        &[(0, 1), (0, 2), (1, 3), (2, 3)],
        &[TOP, under(0), under(0), under(0)],
    );
    check(
        4,
        &[0],
        &[(0, 1), (1, 2), (2, 1), (2, 3)],
        &[TOP, under(0), under(1), under(2)],
    );
    // Lengauer and Tarjan's irreducible loop: two ways into a cycle.
    check(
        3,
        &[0],
        &[(0, 1), (0, 2), (1, 2), (2, 1)],
        &[TOP, under(0), under(0)],
    );
}

#[test]
fn a_long_chain_needs_no_recursion() {
    let edges: Vec<_> = (1..200_000).map(|i| (i - 1, i)).collect();
    let g = Graph::from_edges(200_000, &[0], &edges);
    assert_eq!(g.dominators_by_data_flow()[199_999], under(199_998));
}

proptest! {
    #[test]
    fn both_oracles_agree_on_dominators_and_retained_sizes(g in graphs(40)) {
        let by_removal = g.dominators_by_removal();
        prop_assert_eq!(&g.dominators_by_data_flow(), &by_removal);
        prop_assert_eq!(g.retained(&by_removal), g.retained_by_removal());
    }

    #[test]
    fn a_graph_as_a_dump_keeps_its_edges_and_reachability(g in graphs(30), wide in any::<bool>()) {
        let id_size = if wide { IdSize::Eight } else { IdSize::Four };
        for encoding in [Encoding::Fields, Encoding::Arrays, Encoding::Mixed] {
            let made = dump_of(&g, encoding, id_size);
            let plain = made.heap.plain_graph();
            let node = |i: usize| plain.ids.binary_search(&made.ids[i]).expect("its id");
            let alive = plain.graph.reachable();
            for (i, was) in g.reachable().into_iter().enumerate() {
                prop_assert_eq!(alive[node(i)], was);
                // The first edge of an instance or array is its class.
                let targets: Vec<usize> = g.edges[i].iter().map(|t| node(*t)).collect();
                prop_assert_eq!(&plain.graph.edges[node(i)][1..], &targets[..]);
            }
        }
    }
}
