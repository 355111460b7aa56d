//! A graph as plain lists, and its dominators by the definition: slow, short, and obviously right.

/// A directed graph with weighted nodes `0..n` and roots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Graph {
    /// Nodes that are always alive; may repeat.
    pub roots: Vec<usize>,
    /// Targets by source; may repeat and may loop.
    pub edges: Vec<Vec<usize>>,
    /// Weight by node.
    pub sizes: Vec<u64>,
}

/// A graph whose nodes are objects of a dump, in the order of their ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainGraph {
    /// The graph in the plain model.
    pub graph: Graph,
    /// Object id by node, ascending.
    pub ids: Vec<u64>,
}

/// The nearest node that every path from the roots goes through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dominator {
    /// None but the virtual root above all roots.
    VirtualRoot,
    /// A node.
    Node(usize),
}

impl Graph {
    /// `n` nodes of size 1 without edges and roots.
    pub fn new(n: usize) -> Self {
        Graph {
            roots: Vec::new(),
            edges: vec![Vec::new(); n],
            sizes: vec![1; n],
        }
    }

    /// A graph from pairs.
    pub fn from_edges(n: usize, roots: &[usize], edges: &[(usize, usize)]) -> Self {
        let mut g = Graph::new(n);
        g.roots = roots.to_vec();
        for (from, to) in edges {
            g.edges[*from].push(*to);
        }
        g
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.edges.len()
    }

    /// True without nodes.
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// Which nodes the roots reach.
    pub fn reachable(&self) -> Vec<bool> {
        self.reachable_without(None)
    }

    /// Which nodes the roots reach when one node is taken out.
    pub fn reachable_without(&self, gone: Option<usize>) -> Vec<bool> {
        let mut seen = vec![false; self.len()];
        let mut todo: Vec<usize> = self.roots.clone();
        while let Some(v) = todo.pop() {
            if gone != Some(v) && !std::mem::replace(&mut seen[v], true) {
                todo.extend(&self.edges[v]);
            }
        }
        seen
    }

    /// Immediate dominators by the definition: v dominates w when w cannot be reached without v.
    /// O(nodes * edges); `None` for unreachable nodes.
    pub fn dominators_by_removal(&self) -> Vec<Option<Dominator>> {
        let alive = self.reachable();
        let mut dominators: Vec<Vec<usize>> = vec![Vec::new(); self.len()];
        for v in (0..self.len()).filter(|v| alive[*v]) {
            let left = self.reachable_without(Some(v));
            for w in (0..self.len()).filter(|w| alive[*w] && !left[*w] && *w != v) {
                dominators[w].push(v);
            }
        }
        // The dominators of a node form a chain: the nearest is the one with most of its own.
        let nearest = |w: usize| match dominators[w].iter().max_by_key(|d| dominators[**d].len()) {
            Some(d) => Dominator::Node(*d),
            None => Dominator::VirtualRoot,
        };
        (0..self.len())
            .map(|w| alive[w].then(|| nearest(w)))
            .collect()
    }

    /// Immediate dominators by iterating the data-flow equation to its fixed point over reverse
    /// postorder (Cooper, Harvey and Kennedy 2001). Good for some thousands of nodes, and for many more where paths are short.
    pub fn dominators_by_data_flow(&self) -> Vec<Option<Dominator>> {
        let order = self.postorder();
        let n = order.len();
        // Postorder numbers, the virtual root last: a dominator always has the larger number.
        let mut number = vec![usize::MAX; self.len()];
        for (i, v) in order.iter().enumerate() {
            number[*v] = i;
        }
        let mut sources: Vec<Vec<usize>> = vec![Vec::new(); n];
        for (i, v) in order.iter().enumerate() {
            for to in &self.edges[*v] {
                sources[number[*to]].push(i);
            }
        }
        for r in &self.roots {
            sources[number[*r]].push(n);
        }
        let mut idom = vec![usize::MAX; n + 1];
        idom[n] = n;
        let mut changed = true;
        while changed {
            changed = false;
            for i in (0..n).rev() {
                let known = sources[i]
                    .iter()
                    .copied()
                    .filter(|s| idom[*s] != usize::MAX);
                let new = known.reduce(|a, b| meet(&idom, a, b)).expect("reachable");
                changed |= std::mem::replace(&mut idom[i], new) != new;
            }
        }
        let name = |i: usize| match order.get(idom[i]) {
            Some(v) => Dominator::Node(*v),
            None => Dominator::VirtualRoot,
        };
        (0..self.len())
            .map(|v| (number[v] != usize::MAX).then(|| name(number[v])))
            .collect()
    }

    fn postorder(&self) -> Vec<usize> {
        let mut seen = vec![false; self.len()];
        let mut order = Vec::new();
        for root in &self.roots {
            if std::mem::replace(&mut seen[*root], true) {
                continue;
            }
            let mut stack = vec![(*root, 0)];
            while let Some((v, next)) = stack.last_mut() {
                match self.edges[*v].get(*next) {
                    Some(to) => {
                        *next += 1;
                        if !std::mem::replace(&mut seen[*to], true) {
                            stack.push((*to, 0));
                        }
                    }
                    None => {
                        order.push(*v);
                        stack.pop();
                    }
                }
            }
        }
        order
    }

    /// Retained sizes by the definition: what dies with the node. 0 for unreachable nodes.
    pub fn retained_by_removal(&self) -> Vec<u64> {
        let alive = self.reachable();
        let of = |v: usize| {
            let left = self.reachable_without(Some(v));
            let lost = (0..self.len()).filter(|w| alive[*w] && !left[*w]);
            lost.map(|w| self.sizes[w]).sum()
        };
        (0..self.len())
            .map(|v| if alive[v] { of(v) } else { 0 })
            .collect()
    }

    /// Retained sizes by adding every node to each of its dominators. 0 for unreachable nodes.
    pub fn retained(&self, dominators: &[Option<Dominator>]) -> Vec<u64> {
        let mut retained = vec![0; self.len()];
        for v in (0..self.len()).filter(|v| dominators[*v].is_some()) {
            let mut at = Some(Dominator::Node(v));
            while let Some(Dominator::Node(d)) = at {
                retained[d] += self.sizes[v];
                at = dominators[d];
            }
        }
        retained
    }
}

fn meet(idom: &[usize], mut a: usize, mut b: usize) -> usize {
    while a != b {
        if a < b {
            a = idom[a];
        } else {
            b = idom[b];
        }
    }
    a
}

impl PlainGraph {
    /// The lines of `tenure dominators --tsv --all`: object id, immediate dominator's id (0 for the
    /// virtual root) and retained size, one per reachable object, by id.
    pub fn dominator_lines(&self) -> String {
        let dominators = self.graph.dominators_by_data_flow();
        let retained = self.graph.retained(&dominators);
        let mut text = String::new();
        for (i, d) in dominators.iter().enumerate() {
            let above = match d {
                None => continue,
                Some(Dominator::VirtualRoot) => 0,
                Some(Dominator::Node(d)) => self.ids[*d],
            };
            text.push_str(&format!("{:x} {above:x} {}\n", self.ids[i], retained[i]));
        }
        text
    }
}
