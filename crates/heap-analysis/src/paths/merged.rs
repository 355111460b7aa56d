//! Shortest paths to many objects, merged into one tree from the roots, which shows what the paths have in common.

use crate::objects::describe::{ObjectRef, describe, root_kinds};
use crate::pace::Pace;
use crate::paths::Exclusions;
use crate::paths::chain::field_to;
use crate::paths::finder::{Memory, Route, paths_to};
use crate::paths::together::Above;
use crate::sets::selection::Selection;
use crate::tables::ranking::{is_zero, share};
use heap_graph::{ClassIdx, Control, Heap, HeapError, ObjIdx, ObjectKind};
use hprof::Bytes;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::hash_map::Entry;

/// How many objects all searches together may visit to find the shortest paths. Ten thousand searches that each visit
/// half of the heap would take hours. Beyond this limit, a search accepts the first connection to a known path, or
/// follows dominators if it does not find one soon.
pub const EXACT_VISITS: usize = 2_000_000;

/// How many objects of a path [`common_point`] follows: the paths to ten thousand nodes of a list of a million would take
/// more memory than any machine has.
const MOST_LEVELS: usize = 1024;

/// Share of the targets that a common path must cover, as in MAT.
const GROUP_RATIO: f64 = 0.8;

/// Share of the retained size above that the next step down to an accumulation point must have, as in MAT.
pub(crate) const BIG_DROP: f64 = 0.7;

/// The object where the paths to a group of objects meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommonPoint {
    /// The last object that (nearly) all paths have in common.
    pub point: ObjIdx,
    /// From the root to it.
    pub path: Vec<ObjIdx>,
}

/// MAT's accumulation point of a class suspect: from the root that holds most of the targets down the common path,
/// while more than [`GROUP_RATIO`] of them are below and the retained size does not drop.
pub fn common_point(
    heap: &Heap,
    targets: &[ObjIdx],
    control: &Control<'_>,
) -> Result<Option<CommonPoint>, HeapError> {
    let memory = Memory::unlimited(heap);
    let to = |exclude| {
        paths_to(
            &memory,
            targets,
            exclude,
            EXACT_VISITS,
            MOST_LEVELS,
            control,
        )
    };
    let mut paths = to(Exclusions::ALL)?;
    if paths.is_empty() {
        paths = to(Exclusions::default())?;
    }
    let enough = (GROUP_RATIO * targets.len() as f64) as usize;
    let bytes = |paths: &[&Route]| -> u64 { paths.iter().map(|p| heap.retained(p.target).0).sum() };
    let all: Vec<&Route> = paths.iter().collect();
    let Some((mut at, mut here)) = fullest(&all, 0) else {
        return Ok(None);
    };
    let mut path = Vec::new();
    while here.len() > enough {
        path.push(at);
        match fullest(&here, path.len()) {
            Some((child, below)) if share(bytes(&below), bytes(&here)) >= BIG_DROP => {
                (at, here) = (child, below);
            }
            // The paths end here, or the retained size drops: the object above is the point.
            _ => return Ok(Some(CommonPoint { point: at, path })),
        }
    }
    Ok(None)
}

/// The object at `depth` that most of the paths go through, with those paths.
fn fullest<'p>(paths: &[&'p Route], depth: usize) -> Option<(ObjIdx, Vec<&'p Route>)> {
    let mut counts: FxHashMap<ObjIdx, usize> = FxHashMap::default();
    for route in paths {
        if let Some(object) = route.path.get(depth) {
            *counts.entry(*object).or_default() += 1;
        }
    }
    let (object, _) = counts.into_iter().max_by_key(|(o, n)| (*n, Reverse(*o)))?;
    let through = paths.iter().filter(|p| p.path.get(depth) == Some(&object));
    Some((object, through.copied().collect()))
}

/// A node of the merged tree, in pre-order.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MergedNode {
    /// Level, from 0 for the roots.
    pub depth: usize,
    /// The object; if the node stands for several objects, the one with the largest retained size.
    #[serde(flatten)]
    pub object: ObjectRef,
    /// Number of objects, all of one class, that this node stands for. Objects in the slots of one array are merged
    /// into one node, and so are the objects that these hold by the same field.
    pub objects: u64,
    /// Kinds of root; only on level 0.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<String>,
    /// The field of the node above that holds this one; `[*]` for any slot of an array.
    pub field: Option<String>,
    /// Number of requested objects whose paths lead through this node.
    pub targets: u64,
    /// The size that these objects retain together: the sum over those that no other of them dominates.
    pub targets_retained: Bytes,
    /// True if this is one of the requested objects.
    pub is_target: bool,
    /// Number of child nodes that were left out.
    pub omitted: u64,
}

/// Merged shortest paths to the objects of a class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MergedPaths {
    /// Name of the class, which includes all classes of this name if several loaders define it, or the set of objects.
    pub class: String,
    /// Number of reachable objects of the class.
    pub objects: u64,
    /// Number of other objects of the class, which no root reaches: no path leads to them.
    #[serde(skip_serializing_if = "is_zero")]
    pub unreachable: u64,
    /// Number of the reachable objects whose paths were searched.
    pub followed: u64,
    /// Number of searched objects to which no path leads without the excluded references.
    pub without_path: u64,
    /// Number of objects without a path that excluded references do reach.
    #[serde(skip_serializing_if = "is_zero")]
    pub by_excluded: u64,
    /// The merged tree from the roots, in pre-order.
    pub nodes: Vec<MergedNode>,
    /// Number of roots that were left out.
    pub omitted: u64,
}

/// How much of the merged tree to return.
#[derive(Clone, Copy, Debug)]
pub struct MergedOptions {
    /// The most objects to follow; of more, an even sample.
    pub max_paths: usize,
    /// Levels.
    pub depth: usize,
    /// Children per node, those with most targets; of as many, those whose targets retain most.
    pub top: usize,
    /// References that do not count.
    pub exclude: Exclusions,
    /// Objects that may be visited for shortest paths, [`EXACT_VISITS`] by default; beyond it the first connection to
    /// a known path is used.
    pub exact: usize,
}

/// The merged shortest paths to some objects; `name` describes them.
///
/// # Errors
/// [`HeapError::Cancelled`] soon after the control cancels; [`HeapError::Memory`] if the paths do not fit.
pub fn to_objects(
    heap: &Heap,
    name: &str,
    objects: &Selection,
    options: &MergedOptions,
    control: &Control<'_>,
) -> Result<MergedPaths, HeapError> {
    let columns = heap.columns();
    let reachable = || objects.iter().filter(|o| columns.is_reachable(*o));
    let count = reachable().count();
    let step = count.div_ceil(options.max_paths.max(1)).max(1);
    // One level more than the tree has, so that a node knows whether paths continue below it.
    let levels = options.depth.saturating_add(1);
    let memory = Memory::for_tree(heap, count.div_ceil(step), levels)?;
    let sample: Vec<ObjIdx> = reachable().step_by(step).collect();
    let to = |objects: &[ObjIdx], exclude| {
        paths_to(&memory, objects, exclude, options.exact, levels, control)
    };
    let paths = to(&sample, options.exclude)?;
    let mut merged = MergedPaths {
        class: name.to_owned(),
        objects: count as u64,
        unreachable: objects.len() - count as u64,
        followed: sample.len() as u64,
        without_path: (sample.len() - paths.len()) as u64,
        by_excluded: 0,
        nodes: Vec::new(),
        omitted: 0,
    };
    if merged.without_path > 0 && options.exclude != Exclusions::default() {
        let found: FxHashSet<ObjIdx> = paths.iter().map(|p| p.target).collect();
        let others: Vec<ObjIdx> = sample.into_iter().filter(|o| !found.contains(o)).collect();
        merged.by_excluded = to(&others, Exclusions::default())?.len() as u64;
    }
    let mut pace = Pace::new(control, "merging paths", paths.len() as u64);
    grow(heap, &paths, options, &mut merged, &mut pace)?;
    Ok(merged)
}

/// Objects that are one node of the tree, and the paths through them.
struct Branch<'p> {
    /// Each once, the one that retains most first.
    members: Vec<ObjIdx>,
    /// The field by which the branch above holds each of them; `[*]` for slots of an array.
    field: Option<String>,
    paths: Vec<&'p Route>,
    /// What the targets of these paths retain together.
    retained: Bytes,
}

impl<'p> Branch<'p> {
    fn new() -> Branch<'p> {
        Branch {
            members: Vec::new(),
            field: None,
            paths: Vec::new(),
            retained: Bytes(0),
        }
    }
}

/// Those with most targets first, of as many those that retain most.
fn order(heap: &Heap, branches: &mut [Branch<'_>], above: &Above) {
    for branch in &mut *branches {
        branch.retained = above.retained(heap, branch.paths.iter().map(|path| path.target));
    }
    branches.sort_by(|a, b| {
        let rank = |b: &Branch<'_>| (Reverse((b.paths.len(), b.retained)), b.members[0]);
        (rank(a), &a.field).cmp(&(rank(b), &b.field))
    });
}

/// What decides whether objects are one branch.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Key {
    Object(ObjIdx),
    /// The slots of arrays that hold objects of a class.
    Slots(ClassIdx),
    /// A field of many objects, and the class of the objects in it.
    Field(Option<String>, ClassIdx),
}

/// The next level of a branch, in no order. The slots of an array are not distinguished, nor are the objects that the elements hold
/// by the same field: `[*] -> Node -> val` is one path, not ten thousand.
fn branches<'p>(
    heap: &Heap,
    above: &Branch<'p>,
    depth: usize,
    pace: &mut Pace<'_>,
) -> Result<Vec<Branch<'p>>, HeapError> {
    let folded = above.members.len() > 1;
    let mut fields: FxHashMap<(ObjIdx, ObjIdx), Option<String>> = FxHashMap::default();
    let mut groups: FxHashMap<Key, Branch<'p>> = FxHashMap::default();
    for route in &above.paths {
        pace.step()?;
        let path = &route.path;
        let (Some(parent), Some(child)) = (path.get(depth), path.get(depth + 1)) else {
            continue;
        };
        let class = heap.class_of(*child);
        let key = if heap.kind(*parent) == ObjectKind::ObjectArray {
            Key::Slots(class)
        } else if folded {
            let field = match fields.entry((*parent, *child)) {
                Entry::Occupied(known) => known.get().clone(),
                Entry::Vacant(new) => new.insert(field_to(heap, *parent, *child)?).clone(),
            };
            Key::Field(field, class)
        } else {
            Key::Object(*child)
        };
        let branch = groups.entry(key).or_insert_with(Branch::new);
        branch.members.push(*child);
        branch.paths.push(route);
    }
    let mut found = Vec::with_capacity(groups.len());
    for (key, mut branch) in groups {
        branch.members.sort_unstable();
        branch.members.dedup();
        branch
            .members
            .sort_by_key(|o| (Reverse(heap.retained(*o)), *o));
        branch.field = match (key, branch.paths.first()) {
            (Key::Slots(_), _) if folded || branch.members.len() > 1 => Some("[*]".to_owned()),
            (Key::Field(field, _), _) => field,
            (_, Some(route)) => field_to(heap, route.path[depth], branch.members[0])?,
            (_, None) => None,
        };
        found.push(branch);
    }
    Ok(found)
}

/// Builds the tree from paths, with an explicit stack.
fn grow(
    heap: &Heap,
    paths: &[Route],
    options: &MergedOptions,
    merged: &mut MergedPaths,
    pace: &mut Pace<'_>,
) -> Result<(), HeapError> {
    let mut roots: FxHashMap<ObjIdx, Branch<'_>> = FxHashMap::default();
    for route in paths {
        let Some(root) = route.path.first() else {
            continue;
        };
        let branch = roots.entry(*root).or_insert_with(|| Branch {
            members: vec![*root],
            ..Branch::new()
        });
        branch.paths.push(route);
    }
    let mut roots: Vec<Branch<'_>> = roots.into_values().collect();
    let targets: Vec<ObjIdx> = paths.iter().map(|p| p.target).collect();
    let above = Above::of(heap, &targets, pace)?;
    order(heap, &mut roots, &above);
    merged.omitted = roots.len().saturating_sub(options.top) as u64;
    roots.truncate(options.top);
    let mut stack: Vec<(usize, Branch<'_>)> = roots.into_iter().rev().map(|b| (0, b)).collect();
    while let Some((depth, here)) = stack.pop() {
        let mut next = branches(heap, &here, depth, pace)?;
        order(heap, &mut next, &above);
        let all = next.len();
        next.truncate(if depth + 1 < options.depth {
            options.top
        } else {
            0
        });
        let object = here.members[0];
        merged.nodes.push(MergedNode {
            depth,
            object: describe(heap, object),
            objects: here.members.len() as u64,
            roots: match depth {
                0 => root_kinds(heap, object),
                _ => Vec::new(),
            },
            field: here.field,
            targets: here.paths.len() as u64,
            targets_retained: here.retained,
            is_target: here.paths.iter().any(|p| p.path.len() == depth + 1),
            omitted: (all - next.len()) as u64,
        });
        stack.extend(next.into_iter().rev().map(|b| (depth + 1, b)));
    }
    Ok(())
}
