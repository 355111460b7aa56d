//! Calling contexts: a number for the last few methods of a thread, with calls and times of each.

use rustc_hash::FxHashMap;

use crate::instrument::tracker::{EDGE_WORDS, calls_of, node_of};

/// Contexts of one thread. Node 0 is the empty context; node 1 is for calls without memory for a context of their own.
#[derive(Debug, Default)]
pub(crate) struct Contexts {
    /// Methods of each node, innermost first, at most the depth kept.
    nodes: Vec<Box<[u32]>>,
    by_methods: FxHashMap<Box<[u32]>, u32>,
    depth: usize,
    /// Calls, own time, time with callees, as last seen.
    pub(crate) seen: Vec<[i64; 3]>,
    /// Bytes charged for stacks of nodes that have not been harvested.
    pub(crate) reserved: u64,
}

impl Contexts {
    /// The context of calls without memory for their own: a method without a name.
    pub(crate) const NO_CALLER: u32 = 1;

    pub(crate) fn new(depth: usize) -> Self {
        let first: [Box<[u32]>; 2] = [Box::default(), Box::new([0])];
        Self {
            nodes: first.to_vec(),
            by_methods: first.into_iter().zip(0..).collect(),
            depth,
            seen: vec![[0; 3]; 2],
            reserved: 0,
        }
    }

    /// Sets how many methods later nodes keep.
    pub(crate) fn set_depth(&mut self, depth: usize) {
        self.depth = depth;
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The node after a call of `method` from `node`. A new node is made if `may_add` allows one with its number of
    /// methods. Otherwise the call is counted for the method without callers if that is known, or for `NO_CALLER`.
    pub(crate) fn call_if(
        &mut self,
        node: u32,
        method: u32,
        mut may_add: impl FnMut(usize) -> bool,
    ) -> u32 {
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
        if !may_add(methods.len()) {
            let alone = self.by_methods.get(&methods[..1.min(methods.len())]);
            return alone.copied().unwrap_or(Self::NO_CALLER);
        }
        let id = self.nodes.len() as u32;
        self.nodes.push(methods.clone());
        self.seen.push([0; 3]);
        self.by_methods.insert(methods, id);
        id
    }

    /// These edges restart at 0: subtracts their calls from the counts that were seen.
    pub(crate) fn forget_calls(&mut self, edges: &[i64]) {
        let forgotten = ended(edges, &[], self.len());
        for (seen, calls) in self.seen.iter_mut().zip(forgotten) {
            seen[0] -= calls;
        }
    }

    /// An edge to this node with `calls` calls restarts at 0.
    pub(crate) fn forget_calls_of(&mut self, node: usize, calls: i64) {
        if let Some(seen) = self.seen.get_mut(node) {
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

/// The ended calls of each of the first `len` nodes: all calls that its edges count (`edges`: the tracker's table),
/// without the open ones.
pub(crate) fn ended(edges: &[i64], open: &[usize], len: usize) -> Vec<i64> {
    let mut calls = vec![0; len];
    let mut add = |node: usize, n: i64| {
        if let Some(sum) = calls.get_mut(node) {
            *sum += n;
        }
    };
    for edge in edges.chunks_exact(EDGE_WORDS) {
        add(node_of(edge[1]), calls_of(edge[1]));
    }
    open.iter().for_each(|node| add(*node, -1));
    calls
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::key_slots::spread_method;
    use crate::instrument::tracker::{CALL, EACH};

    fn call(contexts: &mut Contexts, node: u32, method: u32) -> u32 {
        contexts.call_if(node, method, |_| true)
    }

    #[test]
    fn without_memory_a_call_has_no_callers_or_no_name() {
        let mut contexts = Contexts::new(3);
        let a = call(&mut contexts, 0, 7);
        let b = call(&mut contexts, a, 8);
        assert_eq!(contexts.call_if(b, 7, |_| false), a);
        assert_eq!(contexts.call_if(a, 8, |_| false), b, "it is known");
        assert_eq!(contexts.call_if(b, 9, |_| false), Contexts::NO_CALLER);
        assert_eq!(contexts.methods(Contexts::NO_CALLER as usize), [0]);
    }

    #[test]
    fn contexts_keep_the_last_calls_only() {
        let mut contexts = Contexts::new(2);
        let a = call(&mut contexts, 0, 1);
        let ab = call(&mut contexts, a, 2);
        let bc = call(&mut contexts, ab, 3);
        assert_eq!(contexts.methods(bc as usize), [3, 2]);
        // Recursion leads to the same node instead of new ones.
        let once = call(&mut contexts, bc, 3);
        assert_eq!(call(&mut contexts, once, 3), once);
        // The same context reached another way is the same node.
        let other = call(&mut contexts, 0, 2);
        assert_eq!(call(&mut contexts, other, 3), bc);
        assert_eq!(contexts.len(), 7);
    }

    #[test]
    fn open_calls_are_not_counted_and_a_new_table_loses_none() {
        let mut contexts = Contexts::new(2);
        let a = call(&mut contexts, 0, 1);
        let b = call(&mut contexts, a, 2);
        let edge = |from: u32, method: u32, to: u32, calls: i64| {
            let word = i64::from(to) | EACH | (CALL * calls);
            [i64::from(from) << 33 ^ spread_method(method), word]
        };
        let edges = [edge(0, 1, a, 7), edge(a, 2, b, 5), edge(b, 2, b, 3), [0; 2]].concat();
        let open = [a as usize, b as usize, b as usize];
        assert_eq!(ended(&edges, &open, contexts.len()), [0, 0, 6, 6]);
        contexts.seen[b as usize][0] = 6;
        contexts.forget_calls(&edges);
        // The two open calls end; one more begins and ends.
        let after = [edge(a, 2, b, 1)].concat();
        let now = ended(&after, &[], contexts.len());
        assert_eq!(now[b as usize] - contexts.seen[b as usize][0], 3);
    }

    #[test]
    fn a_new_depth_holds_for_what_is_called_then() {
        let mut contexts = Contexts::new(1);
        let a = call(&mut contexts, 0, 1);
        contexts.set_depth(3);
        let b = call(&mut contexts, a, 2);
        let c = call(&mut contexts, b, 3);
        assert_eq!(contexts.methods(c as usize), [3, 2, 1]);
        contexts.set_depth(2);
        let d = call(&mut contexts, c, 4);
        assert_eq!(contexts.methods(d as usize), [4, 3]);
    }
}
