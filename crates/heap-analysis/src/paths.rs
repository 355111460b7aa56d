//! Shortest paths from GC roots to an object: breadth first over inbound references.

use crate::chain::{Step, steps};
use crate::leaks::root_kinds;
use crate::selection::Selection;
use heap_graph::{ClassIdx, Heap, HeapError, ObjIdx, RefStrength};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// Referents that paths may be asked not to go through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exclusions {
    /// Soft references.
    pub soft: bool,
    /// Weak references.
    pub weak: bool,
    /// Finalizer references.
    pub finalizer: bool,
    /// Phantom references.
    pub phantom: bool,
}

impl Exclusions {
    /// Everything but strong references.
    pub const ALL: Exclusions = Exclusions {
        soft: true,
        weak: true,
        finalizer: true,
        phantom: true,
    };

    /// The ones to try one after the other: those of `text` (`none`, `all`, or some of `soft`, `weak`,
    /// `final`, `phantom` with commas), else all and then none.
    ///
    /// # Errors
    /// What is not such a word, and what was expected.
    pub fn to_try(text: Option<&str>) -> Result<Vec<Exclusions>, String> {
        let Some(text) = text else {
            return Ok(vec![Exclusions::ALL, Exclusions::default()]);
        };
        let mut chosen = Exclusions::default();
        for word in text.split(',') {
            match word.trim() {
                "none" => {}
                "soft" => chosen.soft = true,
                "weak" => chosen.weak = true,
                "final" => chosen.finalizer = true,
                "phantom" => chosen.phantom = true,
                "all" => chosen = Exclusions::ALL,
                other => {
                    return Err(format!(
                        "{other}: expected none, all, or some of soft, weak, final, phantom"
                    ));
                }
            }
        }
        Ok(vec![chosen])
    }

    /// True when nothing is excluded.
    pub fn is_empty(self) -> bool {
        self == Exclusions::default()
    }

    fn has(self, strength: RefStrength) -> bool {
        match strength {
            RefStrength::Strong => false,
            RefStrength::Soft => self.soft,
            RefStrength::Weak => self.weak,
            RefStrength::Final => self.finalizer,
            RefStrength::Phantom => self.phantom,
        }
    }
}

/// What to look for.
#[derive(Clone, Copy, Debug)]
pub struct PathOptions {
    /// How many paths; the shortest ones first.
    pub count: usize,
    /// References that do not count.
    pub exclude: Exclusions,
}

/// A path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Path {
    /// Kinds of the root records of the first object.
    pub roots: Vec<String>,
    /// From the root to the object.
    pub steps: Vec<Step>,
}

/// The paths to one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Paths {
    /// The object.
    pub target: crate::describe::ObjectRef,
    /// References that did not count.
    pub exclude: Exclusions,
    /// False when it is garbage: then there is no path.
    pub reachable: bool,
    /// Shortest paths, each from another last object before the common part, shortest first.
    pub paths: Vec<Path>,
    /// True when there may be more.
    pub more: bool,
}

/// The objects that root records name.
pub(crate) fn root_set(heap: &Heap) -> Selection {
    Selection::of(heap, heap.roots().iter().map(|r| r.object))
}

/// The objects that hold an object, leaving out excluded referents. A class that nothing else
/// holds is held by its instances.
pub(crate) struct Holders<'h> {
    heap: &'h Heap,
    exclude: Exclusions,
    reference_class: Vec<bool>,
}

impl<'h> Holders<'h> {
    pub(crate) fn new(heap: &'h Heap, exclude: Exclusions) -> Holders<'h> {
        let reference_class = (0..heap.classes().len())
            .map(|n| !exclude.is_empty() && heap.reference_strength(ClassIdx(n as u32)).is_some())
            .collect();
        Holders {
            heap,
            exclude,
            reference_class,
        }
    }

    pub(crate) fn of(&self, object: ObjIdx) -> Result<Vec<ObjIdx>, HeapError> {
        let heap = self.heap;
        let mut found = heap.inbound(object)?;
        if found.is_empty()
            && let Some(class) = heap.class_by_object(object)
        {
            found.extend(heap.objects_of(class));
        }
        if self.exclude.is_empty() {
            return Ok(found);
        }
        let mut kept = Vec::with_capacity(found.len());
        for holder in found {
            if !self.reference_class[heap.class_of(holder).0 as usize]
                || heap
                    .outbound(holder)?
                    .iter()
                    .any(|r| r.target == object && !self.exclude.has(r.strength))
            {
                kept.push(holder);
            }
        }
        Ok(kept)
    }
}

/// The shortest paths from roots to an object.
pub fn to_roots(heap: &Heap, target: ObjIdx, options: &PathOptions) -> Result<Paths, HeapError> {
    let roots = root_set(heap);
    let holders = Holders::new(heap, options.exclude);
    let mut seen = Selection::none(heap);
    // For every object that was reached, the next one on the way to the target.
    let mut next: FxHashMap<ObjIdx, ObjIdx> = FxHashMap::default();
    let mut queue = std::collections::VecDeque::from([target]);
    let mut paths = Vec::new();
    seen.insert(target);
    while let Some(object) = queue.pop_front() {
        if roots.contains(object) {
            let mut chain = vec![object];
            while let Some(o) = chain.last().and_then(|o| next.get(o)) {
                chain.push(*o);
            }
            paths.push(Path {
                roots: root_kinds(heap, object),
                steps: steps(heap, &chain)?,
            });
            if paths.len() >= options.count {
                break;
            }
            // What holds a root does not matter for this path.
            continue;
        }
        for holder in holders.of(object)? {
            if heap.is_reachable(holder) && seen.insert(holder) {
                next.insert(holder, object);
                queue.push_back(holder);
            }
        }
    }
    Ok(Paths {
        target: crate::describe::describe(heap, target),
        exclude: options.exclude,
        reachable: heap.is_reachable(target),
        more: !queue.is_empty(),
        paths,
    })
}
