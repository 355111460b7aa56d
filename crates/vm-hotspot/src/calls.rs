//! Calling contexts: a number for the last few methods of a thread, and what was
//! spent in each.

use rustc_hash::FxHashMap;

use crate::tracker::{EDGE_WORDS, node_of};

/// Contexts of one thread. Node 0 is the empty context.
#[derive(Debug, Default)]
pub(crate) struct Contexts {
    /// Methods of each node, innermost first, at most the depth kept.
    nodes: Vec<Box<[u32]>>,
    by_methods: FxHashMap<Box<[u32]>, u32>,
    depth: usize,
    /// Calls, own time, time with callees, as last seen.
    pub(crate) seen: Vec<[i64; 3]>,
}

impl Contexts {
    pub(crate) fn new(depth: usize) -> Self {
        let root: Box<[u32]> = Box::default();
        Self {
            nodes: vec![root.clone()],
            by_methods: FxHashMap::from_iter([(root, 0)]),
            depth,
            seen: vec![[0; 3]],
        }
    }

    /// Keeps so many methods of nodes that are made from now on.
    pub(crate) fn set_depth(&mut self, depth: usize) {
        self.depth = depth;
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node after a call of `method` from `node`.
    pub(crate) fn call(&mut self, node: u32, method: u32) -> u32 {
        let before = self
            .nodes
            .get(node as usize)
            .map(|methods| &methods[..])
            .unwrap_or_default();
        let methods: Box<[u32]> = std::iter::once(method)
            .chain(before.iter().copied())
            .take(self.depth)
            .collect();
        if let Some(node) = self.by_methods.get(&methods) {
            return *node;
        }
        let id = self.nodes.len() as u32;
        self.nodes.push(methods.clone());
        self.seen.push([0; 3]);
        self.by_methods.insert(methods, id);
        id
    }

    /// Calls of each node that have ended: of all that its edges count (`edges`: the
    /// tracker's table) those that are not open.
    pub(crate) fn ended(&self, edges: &[i64], open: &[usize]) -> Vec<i64> {
        let mut calls = vec![0; self.len()];
        let mut add = |node: usize, n: i64| {
            if let Some(sum) = calls.get_mut(node) {
                *sum += n;
            }
        };
        for edge in edges.chunks_exact(EDGE_WORDS) {
            add(node_of(edge[1]), edge[2]);
        }
        open.iter().for_each(|node| add(*node, -1));
        calls
    }

    /// These edges begin anew, so what they counted is not to be expected of them again.
    pub(crate) fn forget_calls(&mut self, edges: &[i64]) {
        let forgotten = self.ended(edges, &[]);
        for (seen, calls) in self.seen.iter_mut().zip(forgotten) {
            seen[0] -= calls;
        }
    }

    /// Methods of a node, innermost first.
    pub(crate) fn methods(&self, node: usize) -> &[u32] {
        self.nodes
            .get(node)
            .map(|methods| &methods[..])
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contexts_keep_the_last_calls_only() {
        let mut contexts = Contexts::new(2);
        let a = contexts.call(0, 1);
        let ab = contexts.call(a, 2);
        let bc = contexts.call(ab, 3);
        assert_eq!(contexts.methods(bc as usize), [3, 2]);
        // Recursion closes in on itself instead of growing.
        let once = contexts.call(bc, 3);
        assert_eq!(contexts.call(once, 3), once);
        // The same context reached another way is the same node.
        let other = contexts.call(0, 2);
        assert_eq!(contexts.call(other, 3), bc);
        assert_eq!(contexts.len(), 6);
    }

    #[test]
    fn open_calls_are_not_counted_and_a_new_table_loses_none() {
        let mut contexts = Contexts::new(2);
        let a = contexts.call(0, 1);
        let b = contexts.call(a, 2);
        let edge = |from: u32, method: i64, to: u32, calls| {
            [
                i64::from(from) << 32 | method,
                i64::from(to) | 1 << 32,
                calls,
                0,
            ]
        };
        let edges = [edge(0, 1, a, 7), edge(a, 2, b, 5), edge(b, 2, b, 3), [0; 4]].concat();
        let open = [a as usize, b as usize, b as usize];
        assert_eq!(contexts.ended(&edges, &open), [0, 6, 6]);
        contexts.seen[b as usize][0] = 6;
        contexts.forget_calls(&edges);
        // The two open calls end; one more begins and ends.
        let after = [edge(a, 2, b, 1)].concat();
        let now = contexts.ended(&after, &[]);
        assert_eq!(now[b as usize] - contexts.seen[b as usize][0], 3);
    }

    #[test]
    fn a_new_depth_holds_for_what_is_called_then() {
        let mut contexts = Contexts::new(1);
        let a = contexts.call(0, 1);
        contexts.set_depth(3);
        let b = contexts.call(a, 2);
        let c = contexts.call(b, 3);
        assert_eq!(contexts.methods(c as usize), [3, 2, 1]);
        contexts.set_depth(2);
        let d = contexts.call(c, 4);
        assert_eq!(contexts.methods(d as usize), [4, 3]);
    }
}
