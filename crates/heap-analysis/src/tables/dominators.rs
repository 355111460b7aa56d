//! The dominator tree, from the top or from one object, limited to what fits on a page.

use crate::objects::describe::{ObjectRef, describe};
use crate::tables::group::{ClassGroups, GroupBy, GroupKey};
use crate::tables::ranking::{cut, largest, share};
use heap_graph::{ClassIdx, Dominator, Heap, ObjIdx, Sums};
use hprof::Bytes;
use serde::Serialize;

/// How much of the tree to return.
#[derive(Clone, Copy, Debug)]
pub struct TreeOptions {
    /// Start below this object; `None` for the whole heap.
    pub root: Option<ObjIdx>,
    /// Levels.
    pub depth: usize,
    /// Children per node, the largest ones.
    pub top: usize,
}

impl Default for TreeOptions {
    fn default() -> Self {
        TreeOptions {
            root: None,
            depth: 3,
            top: 10,
        }
    }
}

/// A node of the dominator tree. The list is in pre-order, so `depth` determines the tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TreeNode {
    /// Level in the tree, from 0.
    pub depth: usize,
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// Its retained size as a share of the reachable heap, 0 to 1.
    pub share: f64,
    /// Number of objects that it dominates directly.
    pub dominated: u64,
    /// Number of these objects that were left out: those beyond `top`, and all of them on the last level.
    pub omitted: u64,
}

/// A part of the dominator tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DominatorTree {
    /// Size of the reachable heap.
    pub total: Bytes,
    /// Number of objects directly below the object at which this part starts (or at the top of the tree).
    pub dominated: u64,
    /// Number of these objects that were left out.
    pub omitted: u64,
    /// True if this part starts at an object, not at the top of the tree.
    #[serde(skip)]
    pub below_object: bool,
    /// The nodes in pre-order.
    pub nodes: Vec<TreeNode>,
}

/// The largest nodes of the tree.
pub fn tree(heap: &Heap, options: &TreeOptions) -> DominatorTree {
    let total = heap.summary().reachable_shallow;
    let children = |parent: Option<ObjIdx>| -> Vec<ObjIdx> {
        match parent {
            // The children of the virtual root are already sorted.
            None => heap.dominated(None).take(options.top).collect(),
            some => largest(heap, heap.dominated(some), options.top),
        }
    };
    let first = if options.depth == 0 {
        Vec::new()
    } else {
        children(options.root)
    };
    let dominated = heap.dominated_count(options.root);
    let omitted = dominated - first.len() as u64;
    let mut nodes = Vec::new();
    let mut stack: Vec<(usize, ObjIdx)> = first.into_iter().rev().map(|o| (0, o)).collect();
    while let Some((depth, object)) = stack.pop() {
        let dominated = heap.dominated_count(Some(object));
        let below = if depth + 1 < options.depth {
            children(Some(object))
        } else {
            Vec::new()
        };
        nodes.push(TreeNode {
            depth,
            object: describe(heap, object),
            share: share(heap.retained(object).0, total.0),
            dominated,
            omitted: dominated - below.len() as u64,
        });
        stack.extend(below.into_iter().rev().map(|o| (depth + 1, o)));
    }
    DominatorTree {
        total,
        dominated,
        omitted,
        below_object: options.root.is_some(),
        nodes,
    }
}

/// A group of objects at the top of the dominator tree, which no other object dominates.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DominatorGroup {
    /// The group.
    #[serde(flatten)]
    pub key: GroupKey,
    /// Number of objects of the group at the top of the tree.
    pub objects: u64,
    /// Sum of their shallow sizes.
    pub shallow: Bytes,
    /// Sum of their retained sizes.
    pub retained: Bytes,
    /// Their retained size as a share of the reachable heap, 0 to 1.
    pub share: f64,
}

/// The objects at the top of the dominator tree in groups, largest first.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DominatorGroups {
    /// How objects are grouped.
    pub by: GroupBy,
    /// Size of the reachable heap.
    pub total: Bytes,
    /// The groups.
    pub rows: Vec<DominatorGroup>,
    /// Number of groups that `top` cut off.
    pub omitted_rows: u64,
}

/// The objects at the top of the tree by class, loader or package (other groupings mean class).
/// Every reachable byte is in exactly one row.
pub fn by_group(heap: &Heap, by: GroupBy, top: Option<usize>) -> DominatorGroups {
    let groups = ClassGroups::new(heap, by);
    let mut sums = vec![Sums::default(); groups.keys.len()];
    for (of, own) in groups.of.iter().zip(&heap.group_sums().top_level) {
        let sum = &mut sums[*of as usize];
        sum.objects += own.objects;
        sum.shallow.0 += own.shallow.0;
        sum.retained.0 += own.retained.0;
    }
    if matches!(by, GroupBy::Loader | GroupBy::Package) {
        move_class_objects(heap, &groups, &mut sums);
    }
    let total = heap.summary().reachable_shallow;
    let mut rows: Vec<DominatorGroup> = groups
        .keys
        .into_iter()
        .zip(sums)
        .filter(|(_, sum)| sum.objects > 0)
        .map(|(key, sum)| DominatorGroup {
            key,
            objects: sum.objects,
            shallow: sum.shallow,
            retained: sum.retained,
            share: share(sum.retained.0, total.0),
        })
        .collect();
    rows.sort_by(|a, b| b.retained.cmp(&a.retained).then_with(|| a.key.cmp(&b.key)));
    let omitted_rows = cut(&mut rows, top);
    DominatorGroups {
        by,
        total,
        rows,
        omitted_rows,
    }
}

/// Moves the class objects at the top of the tree from the group of `java.lang.Class` to the group of the class that
/// each of them represents.
fn move_class_objects(heap: &Heap, groups: &ClassGroups, sums: &mut [Sums]) {
    for class in (0..heap.classes().len() as u32).map(ClassIdx) {
        let Some(object) = heap.class_object(class) else {
            continue;
        };
        if heap.class_by_object(object) != Some(class) || heap.dominator(object) != Dominator::Root
        {
            continue;
        }
        let (shallow, retained) = (heap.shallow(object).0, heap.retained(object).0);
        let group = |class: ClassIdx| groups.of[class.0 as usize] as usize;
        let from = &mut sums[group(heap.class_of(object))];
        from.objects = from.objects.saturating_sub(1);
        from.shallow.0 = from.shallow.0.saturating_sub(shallow);
        from.retained.0 = from.retained.0.saturating_sub(retained);
        let to = &mut sums[group(class)];
        to.objects += 1;
        to.shallow.0 += shallow;
        to.retained.0 += retained;
    }
}
