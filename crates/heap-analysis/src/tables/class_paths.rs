//! The dominator tree by class: in this form a whole heap fits into a flame graph.
//!
//! The path of an object consists of the classes of its dominators, outermost first, and its own class. Objects with
//! the same path are one node; the own size of a node is the sum of theirs, and together with all nodes below it this
//! is what they retain. Three rules keep the tree small while every byte is counted:
//!
//! * Consecutive objects of one class are one level: the nodes of a linked list, the entries of a bin.
//! * Nodes that retain less than a given part of the heap are added up in a node [`SMALLER`] beside their larger
//!   siblings.
//! * Nodes below a given number of levels are added up in a node [`DEEPER`].
//!
//! A class object or thread that retains at least that part of the heap has a node of its own.
//!
//! Cost: each reachable object is visited once; the list of objects to visit takes eight bytes for each object that
//! dominates others.

use crate::objects::describe::{thread_name, title};
use crate::pace::Pace;
use heap_graph::{ClassIdx, Columns, Control, Heap, HeapError, ObjIdx};
use hprof::Bytes;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::cmp::Reverse;

/// The name of a node for paths that retain too little for nodes of their own.
pub const SMALLER: &str = "(smaller paths)";
/// The name of a node for everything that is too many levels below the top.
pub const DEEPER: &str = "(deeper paths)";

/// How large the tree may be.
#[derive(Clone, Copy, Debug)]
pub struct ClassPathOptions {
    /// A node retains at least the heap divided by this.
    pub parts: u64,
    /// Most levels.
    pub depth: usize,
}

impl Default for ClassPathOptions {
    fn default() -> Self {
        ClassPathOptions {
            parts: 10_000,
            depth: 100,
        }
    }
}

/// A node of the tree: objects with the same classes above them in the dominator tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClassPath {
    /// Index of the parent node in the list; `null` at the top.
    pub parent: Option<u32>,
    /// Name of the class, `class X`, a thread with its name, [`SMALLER`] or [`DEEPER`].
    pub name: String,
    /// Number of objects; for [`SMALLER`] and [`DEEPER`] only the topmost ones.
    pub objects: u64,
    /// Bytes of this node, without its child nodes.
    pub own: Bytes,
    /// Bytes of this node with its child nodes.
    pub retained: Bytes,
}

/// The dominator tree, merged by class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClassPaths {
    /// Size of the reachable heap, which is the sum of the own sizes of all nodes.
    pub total: Bytes,
    /// The smallest retained size for which objects get their own node.
    pub least: Bytes,
    /// Maximum number of levels.
    pub depth: usize,
    /// Bytes of the heap in [`SMALLER`] nodes.
    pub smaller: Bytes,
    /// Bytes of the heap in [`DEEPER`] nodes.
    pub deeper: Bytes,
    /// The nodes in pre-order; siblings are ordered by size, largest first.
    pub nodes: Vec<ClassPath>,
}

/// What decides to which group an object below a node belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Key {
    Class(ClassIdx),
    /// A class object or a thread with a node of its own.
    Object(ObjIdx),
}

/// The objects of a node.
#[derive(Debug, Default)]
struct Group {
    objects: u64,
    own: u64,
    retained: u64,
    /// Objects that dominate others.
    inner: Vec<ObjIdx>,
}

/// A node to be added.
struct Open {
    parent: Option<u32>,
    depth: usize,
    key: Key,
    group: Group,
}

/// The tree of the whole heap.
///
/// # Errors
/// [`HeapError::Cancelled`] soon after the control cancels.
pub fn class_paths(
    heap: &Heap,
    options: &ClassPathOptions,
    control: &Control<'_>,
) -> Result<ClassPaths, HeapError> {
    let total = heap.summary().reachable_shallow;
    let least = Bytes((total.0 / options.parts.max(1)).max(1));
    let mut tree = Tree {
        heap,
        columns: heap.columns(),
        threads: heap.threads().iter().filter_map(|t| t.object).collect(),
        pace: Pace::new(control, "adding up paths", heap.len()),
        left: heap.len(),
        found: ClassPaths {
            total,
            least,
            depth: options.depth,
            smaller: Bytes(0),
            deeper: Bytes(0),
            nodes: Vec::new(),
        },
    };
    let mut groups = FxHashMap::default();
    for object in heap.dominated(None) {
        tree.put(&mut groups, object)?;
    }
    let mut open = Vec::new();
    tree.add_groups(None, 0, groups, &mut open);
    while let Some(next) = open.pop() {
        let mut group = next.group;
        let inner = std::mem::take(&mut group.inner);
        let at = tree.add(next.parent, next.key, &group);
        let below = tree.below(at, next.key, inner)?;
        tree.add_groups(Some(at), next.depth, below, &mut open);
    }
    Ok(tree.found)
}

type Groups = FxHashMap<Key, Group>;

struct Tree<'h> {
    heap: &'h Heap,
    columns: Columns<'h>,
    threads: FxHashSet<ObjIdx>,
    pace: Pace<'h>,
    /// How many objects can still follow: a damaged index may list an object below itself.
    left: u64,
    found: ClassPaths,
}

impl Tree<'_> {
    fn key(&self, object: ObjIdx) -> Key {
        let stands_for_itself = self.columns.retained(object) >= self.found.least
            && (self.threads.contains(&object) || self.heap.class_by_object(object).is_some());
        if stands_for_itself {
            Key::Object(object)
        } else {
            Key::Class(self.columns.class_of(object))
        }
    }

    /// Counts an object; false once as many were counted as the heap has.
    fn visit(&mut self) -> Result<bool, HeapError> {
        self.pace.step()?;
        let is_new = self.left > 0;
        self.left = self.left.saturating_sub(1);
        Ok(is_new)
    }

    fn put(&mut self, groups: &mut Groups, object: ObjIdx) -> Result<(), HeapError> {
        if !self.visit()? {
            return Ok(());
        }
        let key = self.key(object);
        let group = groups.entry(key).or_default();
        group.objects += 1;
        group.own += self.columns.shallow(object).0;
        group.retained += self.columns.retained(object).0;
        if self.heap.dominated_count(Some(object)) > 0 {
            group.inner.push(object);
        }
        Ok(())
    }

    /// The objects that those of a node dominate. Objects of the node's own class become part of the node.
    fn below(&mut self, at: u32, key: Key, mut inner: Vec<ObjIdx>) -> Result<Groups, HeapError> {
        let heap = self.heap;
        let mut groups = Groups::default();
        while let Some(object) = inner.pop() {
            for child in heap.dominated(Some(object)) {
                if !matches!(key, Key::Class(_)) || self.key(child) != key {
                    self.put(&mut groups, child)?;
                    continue;
                }
                if !self.visit()? {
                    return Ok(groups);
                }
                let node = &mut self.found.nodes[at as usize];
                node.objects += 1;
                node.own.0 += self.columns.shallow(child).0;
                if heap.dominated_count(Some(child)) > 0 {
                    inner.push(child);
                }
            }
        }
        Ok(groups)
    }

    fn name(&self, key: Key) -> String {
        match key {
            Key::Class(class) => self.heap.class(class).name.clone(),
            Key::Object(object) => {
                let title = title(self.heap, object);
                let is_thread = self.threads.contains(&object);
                match thread_name(self.heap, object).filter(|_| is_thread) {
                    Some(name) => format!("{title} \"{name}\""),
                    None => title,
                }
            }
        }
    }

    fn add(&mut self, parent: Option<u32>, key: Key, group: &Group) -> u32 {
        let node = ClassPath {
            parent,
            name: self.name(key),
            objects: group.objects,
            own: Bytes(group.own),
            retained: Bytes(group.retained),
        };
        self.found.nodes.push(node);
        self.found.nodes.len() as u32 - 1
    }

    /// Opens the large groups below a node so that the largest is processed next, and adds up the others.
    fn add_groups(
        &mut self,
        parent: Option<u32>,
        depth: usize,
        groups: Groups,
        open: &mut Vec<Open>,
    ) {
        let is_deep = depth >= self.found.depth;
        let (mut large, mut folded) = (Vec::new(), Group::default());
        for (key, group) in groups {
            if is_deep || group.retained < self.found.least.0 {
                folded.objects += group.objects;
                folded.retained += group.retained;
            } else {
                large.push((key, group));
            }
        }
        if folded.objects > 0 {
            let (name, sum) = match is_deep {
                true => (DEEPER, &mut self.found.deeper),
                false => (SMALLER, &mut self.found.smaller),
            };
            sum.0 += folded.retained;
            self.found.nodes.push(ClassPath {
                parent,
                name: name.to_owned(),
                objects: folded.objects,
                own: Bytes(folded.retained),
                retained: Bytes(folded.retained),
            });
        }
        large.sort_by_cached_key(|(key, group)| (group.retained, Reverse(self.name(*key)), *key));
        open.extend(large.into_iter().map(|(key, group)| Open {
            parent,
            depth: depth + 1,
            key,
            group,
        }));
    }
}
