//! Calling contexts: a number for the last few methods of a thread, and what was
//! spent in each.

use rustc_hash::FxHashMap;

/// Contexts of one thread. Node 0 is the empty context.
#[derive(Debug)]
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
