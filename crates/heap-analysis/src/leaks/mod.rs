//! Leak suspects as Eclipse MAT defines them, with the accumulation point, the path down
//! to it and the field that holds it.
//!
//! Single suspects are the objects at the top of the dominator tree that alone retain more than
//! the threshold; class suspects are groups of the remaining objects that together do so. For a single suspect
//! everything comes from the dominator tree. Class suspects need merged shortest paths, and these need the inbound
//! references; they are computed only on request
//! ([`LeakOptions::deep`]). MAT draws a random sample above 10,000 instances; Tenure takes every k-th
//! instance in id order, so that the same dump always gives the same answer.

mod below;
mod finalizable;
mod threads;

use crate::android::destroyed::{Destroyed, destroyed};
use crate::leaks::below::{Below, below, below_nodes};
use crate::leaks::finalizable::finalizable;
pub use crate::leaks::finalizable::{Finalizable, FinalizableClass};
pub use crate::leaks::threads::{LocalOf, ThreadLocalOf};
use crate::leaks::threads::{
    local_of, static_field_of, thread_local_of, variables_of, variables_on,
};
use crate::objects::allocation::{AllocatedBy, allocated_by};
use crate::objects::describe::{Address, ObjectRef, describe, root_kinds};
use crate::objects::nodes::own_size;
use crate::pace::Pace;
use crate::paths::chain::{Step, field_to, steps};
use crate::paths::merged::{BIG_DROP, common_point};
use crate::tables::group::frame_text;
use crate::tables::ranking::{is_zero, share};
use crate::tables::thread_locals::ThreadLocal;
use heap_graph::{ClassIdx, Control, Heap, HeapError, ObjIdx, ObjectKind, Strength};
use hprof::{Bytes, Serial};
use rustc_hash::FxHashMap;
use serde::Serialize;

/// The options and defaults of MAT's `leakhunter`.
#[derive(Clone, Copy, Debug)]
pub struct LeakOptions {
    /// Percent of the reachable heap above which something is a suspect.
    pub threshold: f64,
    /// Find the accumulation points of class suspects too (needs inbound references).
    pub deep: bool,
}

impl Default for LeakOptions {
    fn default() -> Self {
        LeakOptions {
            threshold: 10.0,
            deep: false,
        }
    }
}

/// The most instances of a class suspect whose paths are searched.
const MOST_PATHS: usize = 10_000;

/// The most parts of an accumulation point that are named.
const PARTS: usize = 8;

/// Nodes of a collection that are examined, and objects below each.
const SAMPLE: usize = 1000;

/// Share of the accumulation point that a part must have to be named.
const PART: f64 = 0.02;

/// The most levels from a suspect down to an accumulation point.
pub const MAX_LEVELS: usize = 1000;

/// The innermost frames of a suspect's stack that are listed, if it has more than these and the outermost ones.
const INNERMOST_FRAMES: usize = 30;

/// The outermost frames of a suspect's stack that are listed after those that were left out.
pub const OUTERMOST_FRAMES: usize = 5;

/// The kind of a suspect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SuspectKind {
    /// One object.
    Object,
    /// All instances of a class together.
    Class,
}

/// The place where a suspect's memory accumulates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AccumulationPoint {
    /// The object.
    pub object: Address,
    /// Class of the object.
    pub class: String,
    /// A readable value; for a class object the class that it represents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Retained size of the object.
    pub retained: Bytes,
    /// Number of objects that it dominates directly.
    pub dominated: u64,
    /// The class of these objects that retains most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of_class: Option<PiledClass>,
    /// The largest of these objects, if any of them is large by itself.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// The stacks that allocated most of these objects, from a sample; absent if the dump has no allocation stacks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocated_by: Option<AllocatedBy>,
}

/// A large object that an accumulation point dominates directly.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Part {
    /// The field of the accumulation point that holds it; `null` if only other dominated objects hold it.
    pub field: Option<String>,
    /// The object.
    #[serde(flatten)]
    pub object: ObjectRef,
}

/// The class that retains most at an accumulation point.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PiledClass {
    /// Name of the class.
    pub class: String,
    /// Number of objects.
    pub objects: u64,
    /// The size that they retain.
    pub retained: Bytes,
    /// For nodes and entries of the JDK's collections, whose class explains little: the class of the objects that use
    /// most of their memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holding: Option<String>,
}

/// A leak suspect.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Suspect {
    /// Whether it is one object or all instances of a class.
    pub kind: SuspectKind,
    /// Class of the object or objects. For the class object of X it is `java.lang.Class`, and `value` is X.
    pub class: String,
    /// The object; for a class suspect, the class object.
    pub object: Address,
    /// Readable value of a single object: the name of a thread, or for a class object the class that it represents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// True if the suspect is a thread; absent otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_thread: bool,
    /// Its retained size.
    pub retained: Bytes,
    /// Its share of the reachable heap, 0 to 1.
    pub share: f64,
    /// Number of instances; 1 for a single object.
    pub instances: u64,
    /// Loader that defined the class, 0 for the boot loader.
    pub loader: Address,
    /// The object at which the memory accumulates; `null` if there is none.
    pub accumulation_point: Option<AccumulationPoint>,
    /// If the suspect is the class `java.lang.ref.Finalizer`: the objects that have a `finalize` method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finalizable: Option<Finalizable>,
    /// Class of the links, if the suspect is the head of a chain of more than 1000 objects ([`MAX_LEVELS`]). It then
    /// has no accumulation point.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain_of: Option<String>,
    /// The steps from the suspect to the accumulation point; for a class suspect from a GC root.
    pub path: Vec<Step>,
    /// Kinds of the GC roots that refer to the first object of the path; empty if it is only held by several roots
    /// together.
    pub roots: Vec<String>,
    /// The frame whose local variable holds the first object of the path, or the second one if the first is a thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local_of: Option<LocalOf>,
    /// A static field that holds the first object of the path, too, if a local variable does: `Class.field`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub static_field: Option<String>,
    /// The thread-local variable that the path goes through, if its first object is a thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_local_of: Option<ThreadLocalOf>,
    /// For a class of threads, and for a thread that several thread-local variables fill, those variables whose values
    /// retain at least a tenth of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub thread_locals: Vec<ThreadLocal>,
    /// The field of an application class that holds the accumulation point, `Class.field`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// For a class suspect: ids of the largest instances.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub largest: Vec<Address>,
    /// If the suspect is a thread, its stack, innermost frame first. Otherwise the stack that allocated it (for a class,
    /// its largest instance), if the dump has it. Of more than 35 frames, the first 30 and the last 5.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<String>,
    /// Number of frames between the first 30 and the last 5 of `stack` that were left out; absent if it is 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub stack_omitted: u64,
}

/// A class of plain values (strings, arrays) that many objects hold, so that none of them explains the memory.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scattered {
    /// Name of the class.
    pub class: String,
    /// Number of its objects at the top of the dominator tree.
    pub objects: u64,
    /// The size that they retain.
    pub retained: Bytes,
    /// Share of the reachable heap, 0 to 1.
    pub share: f64,
}

/// The leak suspects of a heap.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Leaks {
    /// Size of the reachable heap.
    pub total: Bytes,
    /// Percentage of the reachable heap above which something is a suspect.
    pub threshold: f64,
    /// True if the accumulation points of class suspects were searched, too.
    pub deep: bool,
    /// Which references of `java.lang.ref` count; the JSON of an answer states it for all of the answer.
    #[serde(skip)]
    pub strength: Strength,
    /// True if the dump has no GC roots. It is then unknown what keeps objects alive, and an empty list of suspects
    /// does not mean that there is no leak.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_roots: bool,
    /// The suspects, largest first.
    pub suspects: Vec<Suspect>,
    /// Classes of plain values that are above the threshold but held from many places, so they are not suspects. With
    /// `deep`, a place that holds most of the objects makes the class a suspect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scattered: Vec<Scattered>,
    /// Android objects that are destroyed but still strongly reachable.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub destroyed: Vec<Destroyed>,
}

/// Finds the suspects.
///
/// # Errors
/// [`HeapError::Cancelled`] soon after the control cancels.
pub fn find(heap: &Heap, options: &LeakOptions, control: &Control<'_>) -> Result<Leaks, HeapError> {
    let total = heap.summary().reachable_shallow;
    let mut leaks = Leaks {
        total,
        threshold: options.threshold,
        deep: options.deep,
        strength: heap.summary().strength,
        no_roots: heap.summary().no_roots,
        suspects: Vec::new(),
        scattered: Vec::new(),
        destroyed: Vec::new(),
    };
    if leaks.no_roots {
        return Ok(leaks);
    }
    let limit = (total.0 as f64 * options.threshold / 100.0) as u64;
    let mut suspects = Vec::new();
    let mut top = heap.dominated(None).peekable();
    while let Some(object) = top.next_if(|o| heap.retained(*o).0 > limit) {
        let mut suspect = single(heap, object)?;
        suspect.finalizable = finalizable(heap, object, control)?;
        suspects.push(suspect);
    }
    // The remaining objects of each class.
    let mut groups: Vec<(u64, u64)> = heap
        .group_sums()
        .top_level
        .iter()
        .map(|sum| (sum.objects, sum.retained.0))
        .collect();
    for object in heap.dominated(None).take(suspects.len()) {
        if let Some((count, retained)) = groups.get_mut(heap.class_of(object).0 as usize) {
            *count = count.saturating_sub(1);
            *retained = retained.saturating_sub(heap.retained(object).0);
        }
    }
    for (class, (count, retained)) in (0..).map(ClassIdx).zip(groups) {
        if retained <= limit {
            continue;
        }
        let suspect = group(
            heap,
            class,
            (count, Bytes(retained)),
            limit,
            options,
            control,
        )?;
        // Every heap has many classes, strings and arrays that several objects share; without an accumulation point
        // they are no suspect.
        if is_value(heap, class) && suspect.accumulation_point.is_none() {
            leaks.scattered.push(Scattered {
                class: suspect.class,
                objects: suspect.instances,
                retained: suspect.retained,
                share: suspect.share,
            });
        } else {
            suspects.push(suspect);
        }
    }
    leaks
        .scattered
        .sort_by_key(|s| std::cmp::Reverse(s.retained));
    suspects.sort_by(|a, b| {
        let order = |s: &Suspect| s.kind == SuspectKind::Class;
        b.retained
            .cmp(&a.retained)
            .then(order(a).cmp(&order(b)))
            .then_with(|| a.class.cmp(&b.class))
            .then(a.object.cmp(&b.object))
    });
    leaks.suspects = suspects;
    leaks.destroyed = destroyed(heap, control)?;
    Ok(leaks)
}

fn single(heap: &Heap, object: ObjIdx) -> Result<Suspect, HeapError> {
    let (down, level) = descend(heap, object);
    let link = level.is_none().then(|| down.last()).flatten();
    let link = link.map(|o| heap.class_of(*o));
    // For a chain, the path to its first link is enough.
    let shown = down
        .iter()
        .position(|o| Some(heap.class_of(*o)) == link)
        .map_or(&down[..], |first| &down[..=first]);
    let path = steps(heap, shown)?;
    let point = match (down.last(), &level) {
        (Some(point), Some(level)) => Some(pile(heap, *point, level)?),
        _ => None,
    };
    let named = describe(heap, object);
    let class = heap
        .class_by_object(object)
        .unwrap_or_else(|| heap.class_of(object));
    let thread = heap.threads().iter().find(|t| t.object == Some(object));
    let trace = thread.map_or_else(|| heap.allocation_trace(object), |t| t.trace);
    let (stack, stack_omitted) = ends_of(heap, trace);
    let local = local_of(heap, &path);
    Ok(Suspect {
        kind: SuspectKind::Object,
        is_thread: thread.is_some(),
        retained: named.retained,
        share: share(named.retained.0, heap.summary().reachable_shallow.0),
        instances: 1,
        loader: Address(heap.class(class).loader),
        accumulation_point: point,
        finalizable: None,
        chain_of: link.map(|class| heap.class(class).name.clone()),
        roots: root_kinds(heap, object),
        static_field: local.as_ref().and_then(|_| static_field_of(heap, &path)),
        local_of: local,
        thread_local_of: thread_local_of(heap, &path),
        thread_locals: variables_on(heap, &path),
        holder: holder(&path),
        largest: Vec::new(),
        stack,
        stack_omitted,
        path,
        class: named.class,
        object: named.object,
        value: named.value,
    })
}

/// The largest objects of a class suspect, at most `most`. The single suspects are excluded; the remaining
/// objects of the class are the group.
fn members_of(
    heap: &Heap,
    class: ClassIdx,
    limit: u64,
    most: usize,
    control: &Control<'_>,
) -> Result<Vec<ObjIdx>, HeapError> {
    let columns = heap.columns();
    let mut pace = Pace::new(control, "objects of a suspect", heap.len());
    let mut found = Vec::new();
    for object in heap.dominated(None) {
        pace.step()?;
        if columns.class_of(object) == class && columns.retained(object).0 <= limit {
            found.push(object);
            if found.len() == most {
                break;
            }
        }
    }
    Ok(found)
}

fn group(
    heap: &Heap,
    class: ClassIdx,
    (count, retained): (u64, Bytes),
    limit: u64,
    options: &LeakOptions,
    control: &Control<'_>,
) -> Result<Suspect, HeapError> {
    let members = |most| members_of(heap, class, limit, most, control);
    let largest = members(10)?;
    let mut found = None;
    if options.deep {
        let step = (count as usize).div_ceil(MOST_PATHS).max(1);
        let mut all = members(usize::MAX)?;
        all.sort_unstable();
        let sample: Vec<ObjIdx> = all.into_iter().step_by(step).collect();
        found = common_point(heap, &sample, control)?;
    }
    let (point, path) = match found {
        Some(common) => {
            let level = below(heap, common.point, PARTS);
            let point = pile(heap, common.point, &level)?;
            (Some(point), steps(heap, &common.path)?)
        }
        None => (None, Vec::new()),
    };
    let info = heap.class(class);
    let roots = path
        .first()
        .and_then(|s| heap.find(s.object.object.0))
        .map(|o| root_kinds(heap, o))
        .unwrap_or_default();
    let allocated = largest.first().map(|o| heap.allocation_trace(*o));
    let (stack, stack_omitted) = allocated.map(|t| ends_of(heap, t)).unwrap_or_default();
    let local = local_of(heap, &path);
    Ok(Suspect {
        kind: SuspectKind::Class,
        class: info.name.clone(),
        object: Address(info.id),
        value: None,
        is_thread: false,
        retained,
        share: share(retained.0, heap.summary().reachable_shallow.0),
        instances: count,
        loader: Address(info.loader),
        accumulation_point: point,
        finalizable: None,
        chain_of: None,
        roots,
        static_field: local.as_ref().and_then(|_| static_field_of(heap, &path)),
        local_of: local,
        thread_local_of: thread_local_of(heap, &path),
        thread_locals: variables_of(heap, class, limit, retained),
        holder: holder(&path),
        stack,
        stack_omitted,
        largest: largest.iter().map(|o| Address(heap.id(*o))).collect(),
        path,
    })
}

/// Descends from the suspect to the largest child while the child has a large enough share of its parent's size.
/// Returns the path, and what is below the object at the first drop; `None` if there is no drop within [`MAX_LEVELS`].
fn descend(heap: &Heap, suspect: ObjIdx) -> (Vec<ObjIdx>, Option<Below>) {
    let mut way = vec![suspect];
    let mut at = suspect;
    for _ in 0..MAX_LEVELS {
        let level = below(heap, at, PARTS);
        match level.largest.first() {
            Some(child) if enough(heap, at, *child) => at = *child,
            _ => {
                let level = in_nodes(heap, &mut way).unwrap_or(level);
                return (way, Some(level));
            }
        }
        way.push(at);
    }
    (way, None)
}

/// If the path ends within a tree or list, shortens it to the topmost node, because which node below has the largest
/// retained size depends on the shape of the tree. Returns what all nodes dominate.
fn in_nodes(heap: &Heap, way: &mut Vec<ObjIdx>) -> Option<Below> {
    let class = heap.class_of(*way.last()?);
    let above = way.iter().rposition(|o| heap.class_of(*o) != class);
    let first = above.map_or(0, |above| above + 1);
    let level = below_nodes(heap, *way.get(first)?, PARTS, SAMPLE)?;
    way.truncate(first + 1);
    Some(level)
}

fn enough(heap: &Heap, parent: ObjIdx, child: ObjIdx) -> bool {
    share(heap.retained(child).0, heap.retained(parent).0) >= BIG_DROP
}

fn pile(heap: &Heap, point: ObjIdx, level: &Below) -> Result<AccumulationPoint, HeapError> {
    let named = describe(heap, point);
    let mut parts = Vec::new();
    for part in &level.largest {
        if share(heap.retained(*part).0, named.retained.0) < PART {
            break;
        }
        parts.push(Part {
            field: field_to(heap, point, *part)?,
            object: describe(heap, *part),
        });
    }
    let piled = level.class.map(|(class, _)| match level.nodes.is_empty() {
        true => Piled::new(heap, point, class),
        false => Piled::of(heap, class, level.nodes.clone()),
    });
    Ok(AccumulationPoint {
        object: named.object,
        class: named.class,
        value: named.value,
        retained: named.retained,
        dominated: heap.dominated_count(Some(point)),
        of_class: level.class.map(|(class, sum)| PiledClass {
            class: heap.class(class).name.clone(),
            objects: sum.objects,
            retained: Bytes(sum.retained),
            holding: piled
                .as_ref()
                .and_then(|p| p.holding)
                .map(|class| heap.class(class).name.clone()),
        }),
        allocated_by: piled
            .and_then(|p| allocated_by(heap, p.holding.unwrap_or(p.class), p.objects)),
        parts,
    })
}

/// A sample of the objects that an accumulation point consists of.
struct Piled {
    /// Class of the objects directly below the point.
    class: ClassIdx,
    /// When these are nodes of a collection: the class that most of their memory is in.
    holding: Option<ClassIdx>,
    /// Objects of `holding` if there is one, else of `class`.
    objects: Vec<ObjIdx>,
}

impl Piled {
    fn new(heap: &Heap, point: ObjIdx, class: ClassIdx) -> Piled {
        let sample: Vec<ObjIdx> = heap
            .dominated(Some(point))
            .filter(|o| heap.class_of(*o) == class)
            .take(SAMPLE)
            .collect();
        Piled::of(heap, class, sample)
    }

    fn of(heap: &Heap, class: ClassIdx, sample: Vec<ObjIdx>) -> Piled {
        match held_class(heap, class, &sample) {
            None => Piled {
                class,
                holding: None,
                objects: sample,
            },
            Some(held) => Piled {
                class,
                holding: Some(held),
                objects: sample
                    .iter()
                    .flat_map(|node| heap.dominated(Some(*node)).take(SAMPLE))
                    .filter(|o| heap.class_of(*o) == held)
                    .take(SAMPLE)
                    .collect(),
            },
        }
    }
}

/// The class that most of the memory of a collection's nodes is in, estimated from a sample of them.
fn held_class(heap: &Heap, nodes: ClassIdx, sample: &[ObjIdx]) -> Option<ClassIdx> {
    if !is_plumbing(&heap.class(nodes).name) {
        return None;
    }
    let mut classes: FxHashMap<ClassIdx, u64> = FxHashMap::default();
    let mut all = 0;
    for node in sample {
        // The node's next node is itself in the sample, or is like those that are.
        all += own_size(heap, *node);
        for held in heap.dominated(Some(*node)).take(SAMPLE) {
            *classes.entry(heap.class_of(held)).or_default() += heap.retained(held).0;
        }
    }
    let (class, bytes) = classes
        .into_iter()
        .filter(|(class, _)| *class != nodes)
        .max_by_key(|(class, bytes)| (*bytes, std::cmp::Reverse(*class)))?;
    (share(bytes, all) >= 0.5).then_some(class)
}

/// The deepest field on the path that the application declares: the last step whose class is not
/// part of the platform's collections. A field of `java.util.HashMap` explains nothing.
fn holder(path: &[Step]) -> Option<String> {
    let before_last = path.iter().filter(|s| s.field.is_some());
    before_last.rev().find_map(|step| {
        let class = match step.object.kind {
            ObjectKind::Class => step.object.value.as_deref()?,
            ObjectKind::Instance => step.object.class.as_str(),
            _ => return None,
        };
        if is_plumbing(class) {
            return None;
        }
        let field = step.field.as_deref()?;
        let field = field.strip_prefix("static ").unwrap_or(field);
        (!field.starts_with('<')).then(|| format!("{class}.{field}"))
    })
}

/// Classes that are frequent in every heap: classes, strings, boxes, arrays of them.
fn is_value(heap: &Heap, class: ClassIdx) -> bool {
    const VALUES: [&str; 10] = [
        "java.lang.Class",
        "java.lang.String",
        "java.lang.Object",
        "java.lang.Boolean",
        "java.lang.Byte",
        "java.lang.Short",
        "java.lang.Character",
        "java.lang.Integer",
        "java.lang.Long",
        "java.lang.Double",
    ];
    let info = heap.class(class);
    info.element.is_some() || VALUES.contains(&info.name.trim_end_matches("[]"))
}

/// Classes whose fields do not explain which part of the program holds an object.
pub(crate) fn is_plumbing(class: &str) -> bool {
    const PREFIXES: [&str; 7] = [
        "java.", "javax.", "jdk.", "sun.", "com.sun.", "android.", "dalvik.",
    ];
    PREFIXES.iter().any(|p| class.starts_with(p))
}

/// The first frames of a stack and its last [`OUTERMOST_FRAMES`], and the number of frames between them that were left
/// out: a recursion may be tens of thousands of frames deep.
fn ends_of(heap: &Heap, trace: Serial) -> (Vec<String>, u64) {
    let frames = heap.trace(trace);
    let omitted = frames
        .len()
        .saturating_sub(INNERMOST_FRAMES + OUTERMOST_FRAMES);
    let is_shown = |n: usize| n < INNERMOST_FRAMES || n >= INNERMOST_FRAMES + omitted;
    let shown = frames.into_iter().enumerate().filter(|(n, _)| is_shown(*n));
    let texts = shown.map(|(_, frame)| frame_text(frame)).collect();
    (texts, omitted as u64)
}
