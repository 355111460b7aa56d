//! The dominator tree as areas: the largest nodes are expanded first until a budget of nodes is spent, so that the map
//! has most detail where most bytes are.

use crate::objects::describe::{Address, title, value_of};
use heap_graph::{ClassIdx, Heap, ObjIdx};
use hprof::{Bytes, package_of};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An area of the map.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Area {
    /// Index of the parent area in the list; `null` at the top.
    pub parent: Option<u32>,
    /// Id of the object; `null` if the area stands for several small objects.
    pub object: Option<Address>,
    /// Number of objects that the area stands for, without those that they dominate.
    pub objects: u64,
    /// Name of the class, or `class X` for a class object; empty for small objects of several classes.
    pub name: String,
    /// Readable value of the object; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Package of the class, which determines the colour.
    pub package: String,
    /// Shallow size of these objects.
    pub shallow: Bytes,
    /// Retained size of these objects, which determines the size of the area.
    pub retained: Bytes,
}

/// The dominator tree, or the part below an object, as a map of areas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Treemap {
    /// Size of the reachable heap; for the part below an object, its retained size.
    pub total: Bytes,
    /// The areas. A parent comes before its children; siblings are ordered by size, largest first.
    pub areas: Vec<Area>,
}

/// The most areas below one node: more than sixty would show no more about a list of ten thousand equal objects.
const CHILDREN: usize = 60;

/// The most areas below one node that each stand for the small objects of one class.
const CLASSES: usize = 12;

/// The map of the whole heap with about `budget` areas, none of them smaller than a two-thousandth
/// of the heap.
pub fn treemap(heap: &Heap, budget: usize) -> Treemap {
    below(heap, None, budget)
}

/// The map of what one object dominates; of the whole heap for `None`.
pub fn below(heap: &Heap, root: Option<ObjIdx>, budget: usize) -> Treemap {
    let total = root.map_or(heap.summary().reachable_shallow, |o| heap.retained(o));
    let least = total.0 / 2000;
    let mut areas: Vec<Area> = Vec::new();
    // Nodes whose children are not in the map yet, the largest first.
    let mut open: BinaryHeap<(u64, Reverse<u32>)> = BinaryHeap::new();
    let mut objects: Vec<Option<ObjIdx>> = Vec::new();
    expand(heap, None, root, least, &mut areas, &mut objects, &mut open);
    while areas.len() < budget {
        let Some((_, Reverse(at))) = open.pop() else {
            break;
        };
        let object = objects[at as usize];
        expand(
            heap,
            Some(at),
            object,
            least,
            &mut areas,
            &mut objects,
            &mut open,
        );
    }
    Treemap { total, areas }
}

/// Adds the children of one node; small children, and those beyond the limit, become areas together.
fn expand(
    heap: &Heap,
    parent: Option<u32>,
    object: Option<ObjIdx>,
    least: u64,
    areas: &mut Vec<Area>,
    objects: &mut Vec<Option<ObjIdx>>,
    open: &mut BinaryHeap<(u64, Reverse<u32>)>,
) {
    let (mut large, mut small) = match object {
        None => top_level(heap, least),
        Some(object) => children(heap, object, least),
    };
    for child in large.drain(CHILDREN.min(large.len())..) {
        let sum = small.entry(heap.class_of(child)).or_default();
        sum.0 += heap.retained(child).0;
        sum.1 += 1;
    }
    for child in large {
        let at = areas.len() as u32;
        let retained = heap.retained(child);
        areas.push(area(heap, parent, child));
        objects.push(Some(child));
        if retained.0 >= 2 * least && heap.dominated_count(Some(child)) > 0 {
            open.push((retained.0, Reverse(at)));
        }
    }
    let (mut rest, mut rest_bytes) = (0, 0);
    let mut small: Vec<_> = small.into_iter().collect();
    small.sort_by_key(|(class, sum)| (Reverse(*sum), *class));
    for (n, (class, (bytes, count))) in small.into_iter().enumerate() {
        if n < CLASSES && bytes >= least.max(1) {
            let name = heap.class(class).name.clone();
            areas.push(together(parent, name, count, bytes));
        } else {
            rest += count;
            rest_bytes += bytes;
        }
    }
    if rest_bytes >= least.max(1) {
        areas.push(together(parent, String::new(), rest, rest_bytes));
    }
    objects.resize(areas.len(), None);
}

/// Bytes and number of small objects, by class.
type Small = FxHashMap<ClassIdx, (u64, u64)>;

/// The objects at the top of the tree that are large, the largest first, and the rest of them.
fn top_level(heap: &Heap, least: u64) -> (Vec<ObjIdx>, Small) {
    let is_large = |object: &ObjIdx| heap.retained(*object).0 >= least.max(1);
    let large: Vec<ObjIdx> = heap.dominated(None).take_while(is_large).collect();
    let all = (0..).map(ClassIdx).zip(&heap.group_sums().top_level);
    let mut small: Small = all
        .map(|(class, sum)| (class, (sum.retained.0, sum.objects)))
        .collect();
    for object in &large {
        if let Some((bytes, count)) = small.get_mut(&heap.class_of(*object)) {
            *bytes = bytes.saturating_sub(heap.retained(*object).0);
            *count = count.saturating_sub(1);
        }
    }
    small.retain(|_, (_, count)| *count > 0);
    (large, small)
}

/// The same for the objects that one object dominates.
fn children(heap: &Heap, object: ObjIdx, least: u64) -> (Vec<ObjIdx>, Small) {
    let columns = heap.columns();
    let (mut large, mut small) = (Vec::new(), Small::default());
    // Neighbours are mostly of one class.
    let (mut class, mut sum) = (ClassIdx(0), (0, 0));
    let mut add = |class, sum: (u64, u64)| {
        if sum.1 > 0 {
            let all = small.entry(class).or_default();
            *all = (all.0 + sum.0, all.1 + sum.1);
        }
    };
    for (child, bytes) in heap.dominated_retained(object) {
        if bytes.0 >= least.max(1) {
            large.push((Reverse(bytes), child));
            continue;
        }
        let of = columns.class_of(child);
        if of != class {
            add(class, sum);
            (class, sum) = (of, (0, 0));
        }
        sum = (sum.0 + bytes.0, sum.1 + 1);
    }
    add(class, sum);
    large.sort_unstable();
    (large.into_iter().map(|(_, child)| child).collect(), small)
}

/// An area for many small objects.
fn together(parent: Option<u32>, name: String, objects: u64, bytes: u64) -> Area {
    Area {
        parent,
        object: None,
        objects,
        value: None,
        package: package_of(&name).to_owned(),
        name,
        shallow: Bytes(bytes),
        retained: Bytes(bytes),
    }
}

fn area(heap: &Heap, parent: Option<u32>, object: ObjIdx) -> Area {
    let name = title(heap, object);
    let is_class = heap.class_by_object(object).is_some();
    Area {
        parent,
        object: Some(Address(heap.id(object))),
        objects: 1,
        package: package_of(name.strip_prefix("class ").unwrap_or(&name)).to_owned(),
        value: if is_class {
            None
        } else {
            value_of(heap, object)
        },
        name,
        shallow: heap.shallow(object),
        retained: heap.retained(object),
    }
}
