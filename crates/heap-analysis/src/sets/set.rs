//! Sets of objects by name, so that the answer to one question can be passed on to the next:
//! `class:com.example.Session`, `retained:object:0x7f00`,
//! `in:class:java.lang.String and package:com.example`.

use crate::objects::fields::lineage;
use crate::pace::Pace;
use crate::sets::selection::Selection;
use crate::sets::similar::{nearest, nearest_qualified};
use crate::sets::spec::{SetError, SetSpec};
use crate::tables::group::{ClassGroups, GroupBy, GroupKey, owner_class};
use crate::tables::threads;
use heap_graph::{ClassIdx, Columns, Control, Dominator, Heap, HeapError, ObjIdx};
use hprof::{ObjectId, Serial, package_of};
use std::collections::BTreeSet;

/// The classes with a name or id; several loaders may define classes of the same name.
pub fn classes_of(heap: &Heap, name: &str) -> Vec<ClassIdx> {
    let id = name.parse::<ObjectId>().ok();
    let readable = hprof::readable_class_name(name);
    (0..heap.classes().len() as u32)
        .map(ClassIdx)
        .filter(|c| {
            let info = heap.class(*c);
            match id {
                Some(id) => info.id == id,
                None => info.name == name || info.name == readable,
            }
        })
        .collect()
}

/// A class with a similar name, where there is none of this name.
pub fn similar_class<'h>(heap: &'h Heap, name: &str) -> Option<&'h str> {
    let classes = heap.classes().iter().map(|class| &*class.name);
    let is_id = name.parse::<ObjectId>().is_ok();
    (!is_id).then(|| nearest_qualified(name, &classes.collect::<Vec<_>>()))?
}

/// Decides whether an object is in a set by examining only the object.
type Test<'h> = Box<dyn Fn(&Columns<'_>, ObjIdx) -> bool + Sync + 'h>;

/// The heap of objects of a dump that names no heaps.
const NO_HEAP: &str = "<java>";

/// The error of a set whose name is not in the dump.
fn unknown(heap: &Heap, spec: &SetSpec) -> SetError {
    let similar = match spec {
        SetSpec::Class(name) | SetSpec::Subclasses(name) => similar_class(heap, name),
        SetSpec::Package(name) => {
            let classes = heap.classes().iter().map(|class| &*class.name);
            let packages: BTreeSet<&str> = classes.map(package_of).collect();
            nearest_qualified(name, &Vec::from_iter(packages))
        }
        SetSpec::Heap(name) => {
            let heaps = heap.summary().heaps.keys().map(String::as_str);
            nearest(name, &heaps.collect::<Vec<_>>())
        }
        _ => None,
    };
    let set = spec.to_string();
    let word = set.split(':').next().unwrap_or_default();
    let similar = similar.map(|name| format!("{word}:{name}"));
    SetError::Unknown { set, similar }
}

/// The test of a set that has one.
fn test_of<'h>(heap: &'h Heap, spec: &SetSpec, all: bool) -> Result<Option<Test<'h>>, SetError> {
    let unknown = || unknown(heap, spec);
    let of_classes = |wanted: Vec<bool>| -> Test<'h> {
        Box::new(move |columns, o| {
            wanted[columns.class_of(o).0 as usize] && (all || columns.is_reachable(o))
        })
    };
    Ok(Some(match spec {
        SetSpec::All => Box::new(move |columns, o| all || columns.is_reachable(o)),
        SetSpec::Unreachable => Box::new(|columns, o| !columns.is_reachable(o)),
        SetSpec::Class(name) => {
            let classes = classes_of(heap, name);
            if classes.is_empty() {
                return Err(unknown());
            }
            of_classes(flags(heap, |class| classes.contains(&class)))
        }
        SetSpec::Subclasses(name) => {
            let tops = classes_of(heap, name);
            if tops.is_empty() {
                return Err(unknown());
            }
            let below = |class| lineage(heap, class).any(|above| tops.contains(&above));
            of_classes(flags(heap, below))
        }
        SetSpec::Loader(_) | SetSpec::Package(_) => {
            let wanted = owned(heap, spec).ok_or_else(unknown)?;
            let class_class = heap.class_class();
            Box::new(move |columns, o| {
                let class = columns.class_of(o);
                // A class object belongs to its own package and loader.
                let class = if class == class_class {
                    owner_class(heap, o)
                } else {
                    class
                };
                wanted[class.0 as usize] && (all || columns.is_reachable(o))
            })
        }
        SetSpec::Heap(name) => {
            if name != NO_HEAP && !heap.summary().heaps.contains_key(name) {
                return Err(unknown());
            }
            let name = name.clone();
            Box::new(move |columns, o| {
                heap.heap_name(o).unwrap_or(NO_HEAP) == name && (all || columns.is_reachable(o))
            })
        }
        SetSpec::Site(trace) => {
            let trace = *trace;
            let is_of_object = || {
                let mut objects = (0..heap.len()).map(ObjIdx);
                objects.any(|o| heap.allocation_trace(o).0 == trace)
            };
            if heap.trace(Serial(trace)).is_empty() && !is_of_object() {
                return Err(unknown());
            }
            Box::new(move |columns, o| {
                heap.allocation_trace(o).0 == trace && (all || columns.is_reachable(o))
            })
        }
        _ => return Ok(None),
    }))
}

/// The members of a set. Groups have reachable objects only, or with `all` every object.
///
/// # Errors
/// [`SetError::Heap`] with [`HeapError::Cancelled`] soon after the control cancels; the other kinds as they say.
pub fn members(
    heap: &Heap,
    spec: &SetSpec,
    all: bool,
    control: &Control<'_>,
) -> Result<Selection, SetError> {
    control.check().map_err(HeapError::from)?;
    let of = |set: &SetSpec| members(heap, set, all, control);
    let mut pace = Pace::new(control, "members of a set", heap.len());
    let columns = heap.columns();
    let counts = |o: &ObjIdx| all || columns.is_reachable(*o);
    let unknown = || unknown(heap, spec);
    if let Some(test) = test_of(heap, spec, all)? {
        return Ok(Selection::by(heap, test));
    }
    Ok(match spec {
        SetSpec::Roots(kind) => {
            let roots = heap.roots().iter();
            let roots = roots.filter(|r| kind.is_none_or(|kind| kind == r.kind));
            Selection::of(heap, roots.map(|r| r.object))
        }
        SetSpec::Objects(ids) => {
            let find = |id: &ObjectId| heap.find(*id).ok_or_else(unknown);
            let found: Vec<ObjIdx> = ids.iter().map(find).collect::<Result<_, _>>()?;
            Selection::of(heap, found)
        }
        SetSpec::Stack(id) => {
            let thread = heap.find(*id).ok_or_else(unknown)?;
            let same = threads::with_stack_of(heap, thread).ok_or_else(unknown)?;
            Selection::of(heap, same)
        }
        SetSpec::And(sets) => {
            let mut sets = sets.iter();
            let mut kept = match sets.next() {
                Some(first) => of(first)?,
                None => Selection::none(heap),
            };
            for set in sets {
                kept.keep(&of(set)?);
            }
            kept
        }
        SetSpec::In(set) => holders(heap, of(set)?.iter(), counts, &mut pace)?,
        SetSpec::Out(set) => referents(heap, of(set)?.iter(), counts, &mut pace)?,
        SetSpec::Dominated(set) => {
            let mut found = Selection::none(heap);
            for object in of(set)?.iter() {
                pace.step()?;
                heap.dominated(Some(object)).for_each(|below| {
                    found.insert(below);
                });
            }
            found
        }
        SetSpec::Dominators(set) => dominators(heap, of(set)?.iter()),
        SetSpec::Retained(set) => of(set)?.with_all_below(heap),
        _ => return Err(SetError::Unasked(spec.to_string())),
    })
}

/// How much of a heap [`some`] examines.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Ranges of objects, spread evenly over the heap.
    pub windows: u64,
    /// Objects in each range.
    pub each: u64,
    /// Members whose references are read; a hundred times as many are followed downwards.
    pub ask: usize,
}

impl Default for Look {
    /// Half a million objects, a few milliseconds.
    fn default() -> Look {
        Look {
            windows: 32,
            each: 1 << 14,
            ask: 1_000,
        }
    }
}

/// Some members of a set, found without examining every object of the heap: the first page of a large set. All of them
/// are in [`members`]. `None` if this would not be faster, or if the sets that it consists of cannot be found
/// partially.
///
/// # Errors
/// As [`members`].
pub fn some(
    heap: &Heap,
    spec: &SetSpec,
    all: bool,
    look: &Look,
    control: &Control<'_>,
) -> Result<Option<Selection>, SetError> {
    if heap.len() < 2 * look.windows * look.each {
        return Ok(None);
    }
    if let Some(test) = test_of(heap, spec, all)? {
        return Ok(Some(Selection::by_some(
            heap,
            look.windows,
            look.each,
            test,
        )));
    }
    let columns = heap.columns();
    let inner = match spec {
        SetSpec::In(set) | SetSpec::Out(set) | SetSpec::Dominated(set) => {
            some(heap, set, all, look, control)?
        }
        SetSpec::Dominators(set) | SetSpec::Retained(set) => some(heap, set, all, look, control)?,
        SetSpec::And(sets) => {
            let mut kept: Option<Selection> = None;
            for set in sets {
                let Some(part) = some(heap, set, all, look, control)? else {
                    return Ok(None);
                };
                match &mut kept {
                    Some(kept) => kept.keep(&part),
                    None => kept = Some(part),
                }
            }
            return Ok(kept);
        }
        SetSpec::Roots(_) | SetSpec::Objects(_) => {
            return members(heap, spec, all, control).map(Some);
        }
        _ => None,
    };
    let Some(inner) = inner else {
        return Ok(None);
    };
    let few = inner.iter().take(look.ask);
    let counts = |o: &ObjIdx| all || columns.is_reachable(*o);
    let mut pace = Pace::new(control, "members of a set", look.ask as u64);
    Ok(Some(match spec {
        SetSpec::In(_) => holders(heap, few, counts, &mut pace)?,
        SetSpec::Out(_) => referents(heap, few, counts, &mut pace)?,
        SetSpec::Dominators(_) => dominators(heap, few),
        SetSpec::Dominated(_) => {
            let below = few.flat_map(|o| heap.dominated(Some(o)));
            Selection::of(heap, below.take(look.ask * 100))
        }
        _ => {
            let mut found: Vec<ObjIdx> = few.collect();
            let mut at = 0;
            while found.len() < look.ask * 100 && at < found.len() {
                found.extend(heap.dominated(Some(found[at])).take(look.ask));
                at += 1;
            }
            Selection::of(heap, found)
        }
    }))
}

/// The objects that refer to some objects.
fn holders(
    heap: &Heap,
    objects: impl Iterator<Item = ObjIdx>,
    counts: impl Fn(&ObjIdx) -> bool,
    pace: &mut Pace<'_>,
) -> Result<Selection, SetError> {
    let mut found = Selection::none(heap);
    for object in objects {
        pace.step()?;
        for holder in heap.inbound(object)?.iter().filter(|o| counts(o)) {
            found.insert(*holder);
        }
    }
    Ok(found)
}

/// The objects that some objects refer to, except their classes. Those that count, and all of an object that does not
/// count itself.
fn referents(
    heap: &Heap,
    objects: impl Iterator<Item = ObjIdx>,
    counts: impl Fn(&ObjIdx) -> bool,
    pace: &mut Pace<'_>,
) -> Result<Selection, SetError> {
    let mut found = Selection::none(heap);
    for object in objects {
        pace.step()?;
        let is_garbage = !counts(&object);
        for reference in heap.outbound(object)? {
            let is_class = reference.via == heap_graph::Via::Class;
            if !is_class && (is_garbage || counts(&reference.target)) {
                found.insert(reference.target);
            }
        }
    }
    Ok(found)
}

/// The objects that immediately dominate some objects.
fn dominators(heap: &Heap, objects: impl Iterator<Item = ObjIdx>) -> Selection {
    let columns = heap.columns();
    let above = objects.filter_map(|o| match columns.dominator(o) {
        Dominator::Object(above) => Some(above),
        _ => None,
    });
    Selection::of(heap, above)
}

/// A flag per class.
fn flags(heap: &Heap, test: impl Fn(ClassIdx) -> bool) -> Vec<bool> {
    (0..heap.classes().len() as u32)
        .map(|class| test(ClassIdx(class)))
        .collect()
}

/// A flag per class: whether it is of a package or loader. `None` if no class is, and no object has the id of the loader.
fn owned(heap: &Heap, spec: &SetSpec) -> Option<Vec<bool>> {
    let by = match spec {
        SetSpec::Loader(_) => GroupBy::Loader,
        _ => GroupBy::Package,
    };
    let groups = ClassGroups::new(heap, by);
    let wanted: Vec<bool> = groups
        .keys
        .iter()
        .map(|key| match (key, spec) {
            (GroupKey::Loader { object, .. }, SetSpec::Loader(id)) => object.0 == *id,
            (GroupKey::Package { package }, SetSpec::Package(name)) => package == name,
            _ => false,
        })
        .collect();
    let is_object = matches!(spec, SetSpec::Loader(id) if heap.find(*id).is_some());
    let is_known = is_object || wanted.contains(&true);
    is_known.then(|| flags(heap, |class| wanted[groups.of[class.0 as usize] as usize]))
}
