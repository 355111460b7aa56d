//! Shortest paths from GC roots to an object: breadth first over inbound references.

pub mod chain;
mod finder;
pub mod merged;
pub(crate) mod together;

use crate::objects::describe::root_kinds;
use crate::pace::Pace;
use crate::paths::chain::{Step, step};
use crate::sets::selection::Selection;
use heap_graph::{
    ClassIdx, Control, Heap, HeapError, ObjIdx, ObjectsByClass, RefStrength, Strength,
};
use hprof::HeapTag;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::cell::{Cell, OnceCell};

/// Kinds of references that paths may exclude.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exclusions {
    /// Soft references.
    pub soft: bool,
    /// Weak references.
    pub weak: bool,
    /// Final references: those of the VM to objects that have a `finalize` method.
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

    /// The words that [`Exclusions::to_try`] takes.
    pub const WORDS: [&str; 6] = ["none", "all", "soft", "weak", "final", "phantom"];

    /// The exclusions to try one after the other: those in `text` (`none`, `all`, or some of `soft`, `weak`, `final`,
    /// `phantom`, separated by commas); without a text, all and then none.
    ///
    /// # Errors
    /// The word that is invalid, and the expected ones.
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

    /// These and the kinds of references that the heap was opened without.
    fn and_ignored(self, strength: Strength) -> Exclusions {
        let ignores = |reference| !strength.counts(reference);
        Exclusions {
            soft: self.soft || ignores(RefStrength::Soft),
            weak: self.weak || ignores(RefStrength::Weak),
            finalizer: self.finalizer || ignores(RefStrength::Final),
            phantom: self.phantom || ignores(RefStrength::Phantom),
        }
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

/// Options of a search for paths.
#[derive(Clone, Copy, Debug)]
pub struct PathOptions {
    /// Number of paths; the shortest ones first.
    pub count: usize,
    /// References that paths do not use.
    pub exclude: Exclusions,
}

/// A path from a GC root to an object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Path {
    /// Kinds of the root records that refer to the first object.
    pub roots: Vec<String>,
    /// The objects from the root to the target.
    pub steps: Vec<Step>,
}

/// The shortest paths from GC roots to one object.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Paths {
    /// The object that was requested.
    pub target: crate::objects::describe::ObjectRef,
    /// Kinds of references that paths do not use.
    pub exclude: Exclusions,
    /// False if the object is unreachable; then there is no path.
    pub reachable: bool,
    /// The paths, shortest first; of an object that is itself a root, the first one is only this object. Each starts at another root; where two paths meet, they have the same steps from
    /// there.
    pub paths: Vec<Path>,
    /// True if there may be more paths.
    pub more: bool,
}

/// The objects that root records name.
pub(crate) fn root_set(heap: &Heap) -> Selection {
    Selection::of(heap, heap.roots().iter().map(|r| r.object))
}

/// The number of classes whose instances count as holders after [`Holders::with_instances`].
const CLASSES: u32 = 200;
/// The number of lookups of a class's instances that each walk over all objects.
const WALKS: u32 = 4;

/// The objects that hold an object, without excluded referents. A class that no other object holds is held by its
/// instances.
pub(crate) struct Holders<'h> {
    heap: &'h Heap,
    exclude: Exclusions,
    /// For how many more classes the instances count as holders even if other objects hold the class. This is needed
    /// when those lead to no root.
    classes: Cell<u32>,
    /// How often the instances of a class were looked up. After [`WALKS`] lookups, `by_class` lists those of all
    /// classes.
    asked: Cell<u32>,
    by_class: OnceCell<ObjectsByClass>,
    reference_class: Vec<bool>,
}

impl<'h> Holders<'h> {
    /// References that the heap was opened without are excluded, too.
    pub(crate) fn new(heap: &'h Heap, exclude: Exclusions) -> Holders<'h> {
        let exclude = exclude.and_ignored(heap.summary().strength);
        let reference_class = (0..heap.classes().len())
            .map(|n| !exclude.is_empty() && heap.reference_strength(ClassIdx(n as u32)).is_some())
            .collect();
        Holders {
            heap,
            exclude,
            classes: Cell::new(0),
            asked: Cell::new(0),
            by_class: OnceCell::new(),
            reference_class,
        }
    }

    /// From now on, instances are holders of their class even if other objects hold it.
    pub(crate) fn with_instances(&self) {
        self.classes.set(CLASSES);
    }

    /// The first few classes take a walk over all objects each; then one walk lists the instances of all classes.
    fn add_instances(&self, class: ClassIdx, found: &mut Vec<ObjIdx>) {
        let asked = self.asked.get();
        self.asked.set(asked.saturating_add(1));
        if asked < WALKS {
            found.extend(self.heap.objects_of(class));
        } else {
            let by_class = self.by_class.get_or_init(|| self.heap.objects_by_class());
            found.extend(by_class.of(class));
        }
    }

    pub(crate) fn of(&self, object: ObjIdx) -> Result<Vec<ObjIdx>, HeapError> {
        let heap = self.heap;
        let mut found = heap.inbound(object)?;
        let class = heap.class_by_object(object);
        if let Some(class) = class.filter(|c| heap.class(*c).reachable_objects > 0) {
            let more = self.classes.get();
            if found.is_empty() || more > 0 {
                self.classes.set(more.saturating_sub(1));
                self.add_instances(class, &mut found);
            }
        }
        self.without_excluded(object, found)
    }

    /// As [`of`](Self::of), but the instances of a class do not count.
    fn referrers(&self, object: ObjIdx) -> Result<Vec<ObjIdx>, HeapError> {
        self.without_excluded(object, self.heap.inbound(object)?)
    }

    fn without_excluded(
        &self,
        object: ObjIdx,
        found: Vec<ObjIdx>,
    ) -> Result<Vec<ObjIdx>, HeapError> {
        let heap = self.heap;
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

/// The shortest paths from roots to an object; through the instances of a class only if no other path leads to a root.
/// It may visit every object of the heap.
///
/// # Errors
/// [`HeapError::Cancelled`] soon after the control cancels.
pub fn to_roots(
    heap: &Heap,
    target: ObjIdx,
    options: &PathOptions,
    control: &Control<'_>,
) -> Result<Paths, HeapError> {
    from_roots(heap, target, options, &root_set(heap), control)
}

/// The shortest path that does not start at an object that only native code holds; if there is none, the shortest
/// path. A binder has a JNI global as long as another process refers to it.
pub(crate) fn best_path(
    heap: &Heap,
    target: ObjIdx,
    exclude: Exclusions,
    control: &Control<'_>,
) -> Result<Option<Path>, HeapError> {
    let options = PathOptions { count: 1, exclude };
    let others = heap.roots().iter();
    let others = others.filter(|r| r.kind != HeapTag::RootJniGlobal);
    let others = Selection::of(heap, others.map(|r| r.object));
    for roots in [others, root_set(heap)] {
        let found = from_roots(heap, target, &options, &roots, control)?;
        if let Some(path) = found.paths.into_iter().next() {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn from_roots(
    heap: &Heap,
    target: ObjIdx,
    options: &PathOptions,
    roots: &Selection,
    control: &Control<'_>,
) -> Result<Paths, HeapError> {
    let holders = Holders::new(heap, options.exclude);
    let found = search(heap, target, options, &holders, roots, control)?;
    if !found.paths.is_empty() || !found.reachable {
        return Ok(found);
    }
    holders.with_instances();
    search(heap, target, options, &holders, roots, control)
}

fn search(
    heap: &Heap,
    target: ObjIdx,
    options: &PathOptions,
    holders: &Holders<'_>,
    roots: &Selection,
    control: &Control<'_>,
) -> Result<Paths, HeapError> {
    let mut pace = Pace::new(control, "looking for paths", heap.len());
    let mut seen = Selection::none(heap);
    // For every object that was reached, the next one on the way to the target.
    let mut next: FxHashMap<ObjIdx, ObjIdx> = FxHashMap::default();
    let mut queue = std::collections::VecDeque::from([target]);
    let mut paths = Vec::new();
    seen.insert(target);
    while let Some(object) = queue.pop_front() {
        pace.step()?;
        let is_root = roots.contains(object);
        if is_root {
            let mut chain = vec![object];
            while let Some(o) = chain.last().and_then(|o| next.get(o)) {
                chain.push(*o);
            }
            let mut steps = Vec::with_capacity(chain.len());
            for n in 0..chain.len() {
                pace.step()?;
                steps.push(step(heap, &chain, n)?);
            }
            paths.push(Path {
                roots: root_kinds(heap, object),
                steps,
            });
        }
        // What holds a root does not belong to the path from it; but what holds the target is another way to it.
        let held_by = match (is_root, object == target) {
            (false, _) => holders.of(object)?,
            (true, true) => holders.referrers(object)?,
            (true, false) => Vec::new(),
        };
        for holder in held_by {
            if heap.is_reachable(holder) && seen.insert(holder) {
                next.insert(holder, object);
                queue.push_back(holder);
            }
        }
        if is_root && paths.len() >= options.count {
            break;
        }
    }
    Ok(Paths {
        target: crate::objects::describe::describe(heap, target),
        exclude: holders.exclude,
        reachable: heap.is_reachable(target),
        more: !queue.is_empty(),
        paths,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use heap_graph::Options;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use testkit::dump::{ClassSpec, Heap as Builder, IdSize, Root, Type, Value};

    const ONE: PathOptions = PathOptions {
        count: 1,
        exclude: Exclusions {
            soft: false,
            weak: false,
            finalizer: false,
            phantom: false,
        },
    };

    fn opened(dump: &Builder) -> Heap {
        opened_with(dump, Strength::All)
    }

    fn opened_with(dump: &Builder, strength: Strength) -> Heap {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), dump.bytes()).expect("a dump");
        let options = Options {
            no_index: true,
            strength,
            ..Options::default()
        };
        Heap::open(file.path(), &options, &Control::quiet()).expect("a heap")
    }

    /// Classes that nothing holds but their instances, each of which a static field of the next class holds.
    #[test]
    fn a_path_leads_through_the_instances_of_many_classes() {
        const MANY: u32 = 5 * WALKS;
        let mut b = Builder::new(IdSize::Eight);
        let object = b.java_lang_object();
        // Classes without a loader are roots.
        let loader = b.instance(object, &[]);
        let first = b.class_spec(ClassSpec {
            name: "First",
            super_class: object,
            loader,
            ..ClassSpec::default()
        });
        let mut held = b.instance(first, &[]);
        for n in 0..MANY {
            let class = b.class_spec(ClassSpec {
                name: &format!("Class{n}"),
                super_class: object,
                loader,
                statics: vec![("held", Value::Object(held))],
                ..ClassSpec::default()
            });
            held = b.instance(class, &[]);
            b.instance(class, &[]);
        }
        b.root(Root::JniGlobal { reference: 1 }, held);
        let heap = opened(&b);
        let by_class = heap.objects_by_class();
        for class in (0..heap.classes().len() as u32).map(ClassIdx) {
            assert!(
                heap.objects_of(class)
                    .eq(by_class.of(class).iter().copied())
            );
        }
        assert!(by_class.of(ClassIdx(u32::MAX)).is_empty());
        let first = heap.find(hprof::ObjectId(first)).expect("the class");
        let options = ONE;
        let found = to_roots(&heap, first, &options, &Control::quiet()).expect("paths");
        assert_eq!(found.paths[0].steps.len() as u32, 2 * MANY + 2);
    }

    #[test]
    fn paths_use_no_references_that_the_heap_was_opened_without() {
        let mut b = Builder::new(IdSize::Eight);
        let object = b.java_lang_object();
        let fields = [("referent", Type::Object)];
        let reference = b.class("java.lang.ref.Reference", object, &fields);
        let weak = b.class("java.lang.ref.WeakReference", reference, &[]);
        let node = b.class("Node", object, &[("next", Type::Object)]);
        let target = b.instance(node, &[Value::Object(0)]);
        let middle = b.instance(node, &[Value::Object(target)]);
        let first = b.instance(node, &[Value::Object(middle)]);
        let weak = b.instance(weak, &[Value::Object(target)]);
        b.root(Root::JniGlobal { reference: 1 }, first);
        b.root(Root::JniGlobal { reference: 2 }, weak);
        for (strength, length) in [(Strength::All, 2), (Strength::Strong, 3)] {
            let heap = opened_with(&b, strength);
            let target = heap.find(hprof::ObjectId(target)).expect("the target");
            let found = to_roots(&heap, target, &ONE, &Control::quiet()).expect("a path");
            assert_eq!(found.paths[0].steps.len(), length, "{strength:?}");
            assert_eq!(found.exclude.weak, strength == Strength::Strong);
        }
    }

    #[test]
    fn what_else_holds_a_root_is_shown() {
        let mut b = Builder::new(IdSize::Eight);
        let object = b.java_lang_object();
        let node = b.class("Node", object, &[("next", Type::Object)]);
        let target = b.instance(node, &[Value::Object(0)]);
        let middle = b.instance(node, &[Value::Object(target)]);
        let first = b.instance(node, &[Value::Object(middle)]);
        b.set_reference(target, 0, first);
        b.root(Root::JniGlobal { reference: 1 }, target);
        b.root(Root::JniGlobal { reference: 2 }, first);
        let heap = opened(&b);
        let target = heap.find(hprof::ObjectId(target)).expect("the target");
        let lengths = |count| {
            let options = PathOptions { count, ..ONE };
            let found = to_roots(&heap, target, &options, &Control::quiet()).expect("paths");
            let lengths: Vec<usize> = found.paths.iter().map(|path| path.steps.len()).collect();
            (lengths, found.more)
        };
        assert_eq!(lengths(1), (vec![1], true));
        assert_eq!(lengths(2), (vec![1, 3], false));
        assert_eq!(lengths(usize::MAX), (vec![1, 3], false));
    }

    /// A chain of 10,000 objects whose root is far from its end.
    #[test]
    fn a_search_for_paths_ends_when_it_is_cancelled() {
        let mut b = Builder::new(IdSize::Eight);
        let object = b.java_lang_object();
        let node = b.class("Node", object, &[("next", Type::Object)]);
        let last = b.instance(node, &[Value::Object(0)]);
        let mut first = last;
        for _ in 0..10_000 {
            first = b.instance(node, &[Value::Object(first)]);
        }
        b.root(Root::JniGlobal { reference: 1 }, first);
        let heap = opened(&b);
        let last = heap.find(hprof::ObjectId(last)).expect("the last one");
        let options = ONE;
        let whole = to_roots(&heap, last, &options, &Control::quiet()).expect("paths");
        assert_eq!(whole.paths[0].steps.len(), 10_001);
        let (cancel, reports) = (AtomicBool::new(false), AtomicU64::new(0));
        let third = |_| {
            let cancelled = reports.fetch_add(1, Ordering::Relaxed) == 2;
            cancel.fetch_or(cancelled, Ordering::Relaxed);
        };
        let control = Control {
            progress: &third,
            cancel: &cancel,
        };
        let found = to_roots(&heap, last, &options, &control);
        assert!(matches!(found, Err(HeapError::Cancelled)), "{found:?}");
        assert_eq!(reports.load(Ordering::Relaxed), 3);
    }
}
