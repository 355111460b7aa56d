//! What later dumps are compared with: counts by class, leak suspects, and what the patterns of rules retain.
//!
//! Classes are counted by name, all loaders together, reachable objects only. A retained size is that of all objects of
//! the classes together, and of their class objects, which hold the static fields. Leak signatures are made of classes
//! and fields on the way to the accumulation point, not of addresses, so that they survive a restart.

use crate::compare::identity::{matches, signature, stable_name};
use crate::leaks::{LeakOptions, Leaks, Suspect, SuspectKind, find};
use crate::paths::chain::Step;
use crate::sets::members::retained_in;
use crate::sets::selection::Selection;
use crate::tables::group::owner_class;
use heap_graph::{Columns, Control, Heap, HeapError, LayoutModel, ObjIdx, ObjectKind, Strength};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A leak suspect in a baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnownLeak {
    /// Identifies the suspect in other dumps of the program: the classes and fields on the path to its accumulation
    /// point.
    pub signature: String,
    /// A readable description.
    pub title: String,
    /// Its retained size.
    pub retained: u64,
}

/// One class of a baseline: number of objects, shallow size and retained size.
pub type ClassCounts = [u64; 3];

/// What later dumps are compared with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Baseline {
    /// The name of this form, `tenure.baseline/2`.
    pub schema: String,
    /// How sizes were computed; absent in baselines of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<LayoutModel>,
    /// Which references count; absent in baselines of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strength: Option<Strength>,
    /// Number of reachable objects.
    pub objects: u64,
    /// Sum of their shallow sizes.
    pub shallow: u64,
    /// By class name: number of reachable objects, their shallow size and their retained size.
    pub classes: BTreeMap<String, ClassCounts>,
    /// By pattern of the rules that the baseline was written with: what all objects of the matching classes retain
    /// together. Absent if no rule limits the retained size of a pattern.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub patterns: BTreeMap<String, u64>,
    /// The leak suspects.
    pub leaks: Vec<KnownLeak>,
}

/// The name of the baseline's form.
pub const BASELINE: &str = "tenure.baseline/2";

impl Baseline {
    /// Makes a baseline of a heap, with what the classes of each of these patterns retain together.
    ///
    /// # Errors
    /// [`HeapError::Cancelled`] soon after the control cancels.
    pub fn of(
        heap: &Heap,
        patterns: &[&str],
        control: &Control<'_>,
    ) -> Result<Baseline, HeapError> {
        let leaks = find(heap, &LeakOptions::default(), control)?;
        Ok(Baseline::with(heap, patterns, &leaks))
    }

    /// A baseline with the suspects that were found.
    pub(crate) fn with(heap: &Heap, patterns: &[&str], leaks: &Leaks) -> Baseline {
        let (classes, patterns) = retained_by_name(heap, patterns);
        let summary = heap.summary();
        Baseline {
            schema: BASELINE.to_owned(),
            layout: Some(summary.layout.model),
            strength: Some(summary.strength),
            objects: summary.reachable_objects,
            shallow: summary.reachable_shallow.0,
            classes,
            patterns,
            leaks: leaks.suspects.iter().map(known).collect(),
        }
    }

    /// The option by which the sizes of a heap differ from those of this baseline.
    pub(crate) fn other_option(&self, heap: &Heap) -> Option<&'static str> {
        let summary = heap.summary();
        let layout = self.layout.is_some_and(|l| l != summary.layout.model);
        let strength = self.strength.is_some_and(|s| s != summary.strength);
        match layout {
            true => Some("--layout"),
            false => strength.then_some("--strength"),
        }
    }

    /// The objects, the shallow size and the retained size of the classes of a pattern, or of the whole heap; `None` if
    /// a baseline was written without this pattern, and several classes match it.
    pub(crate) fn sums(&self, pattern: Option<&str>) -> [Option<u64>; 3] {
        let Some(pattern) = pattern else {
            return [self.objects, self.shallow, self.shallow].map(Some);
        };
        let of = self
            .classes
            .iter()
            .filter(|(name, _)| matches(pattern, name));
        let counts: Vec<&ClassCounts> = of.map(|class| class.1).collect();
        let sum = |n: usize| counts.iter().map(|c| c[n]).sum();
        let retained = match self.patterns.get(pattern) {
            None if counts.iter().filter(|c| c[2] > 0).count() > 1 => None,
            known => Some(known.copied().unwrap_or_else(|| sum(2))),
        };
        [Some(sum(0)), Some(sum(1)), retained]
    }
}

/// The classes that have reachable objects, or a class object that retains what its static fields hold, and what the
/// classes of each pattern retain together.
fn retained_by_name(
    heap: &Heap,
    patterns: &[&str],
) -> (BTreeMap<String, ClassCounts>, BTreeMap<String, u64>) {
    let mut classes: BTreeMap<String, ClassCounts> = BTreeMap::new();
    let mut numbers: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (number, info) in heap.classes().iter().enumerate() {
        if info.reachable_objects == 0 && info.retained.0 == 0 {
            continue;
        }
        let name = stable_name(&info.name);
        let sum = classes.entry(name.clone()).or_default();
        sum[0] += info.reachable_objects;
        sum[1] += info.reachable_shallow.0;
        sum[2] += info.retained.0;
        numbers.entry(name).or_default().push(number);
    }
    let mut patterns: BTreeMap<String, u64> =
        patterns.iter().map(|p| ((*p).to_owned(), 0)).collect();
    // The groups of each class whose retained size the index does not have.
    let mut of_class = vec![Vec::new(); heap.classes().len()];
    let shared = numbers.iter().filter(|(_, numbers)| numbers.len() > 1);
    let shared: Vec<&String> = shared.map(|(name, _)| name).collect();
    let of_shared = shared.iter().map(|name| &numbers[*name]);
    let of_patterns = patterns.keys().map(|pattern| {
        let named = numbers.iter().filter(|(name, _)| matches(pattern, name));
        named.flat_map(|(_, numbers)| numbers).copied().collect()
    });
    let of_patterns: Vec<Vec<usize>> = of_patterns.collect();
    for (group, members) in (0..).zip(of_shared.chain(&of_patterns)) {
        for class in members {
            of_class[*class].push(group);
        }
    }
    let mut sizes = together(heap, shared.len() + patterns.len(), &of_class).into_iter();
    for (name, size) in shared.into_iter().zip(sizes.by_ref()) {
        if let Some(sum) = classes.get_mut(name) {
            sum[2] = size;
        }
    }
    patterns
        .values_mut()
        .zip(sizes)
        .for_each(|(of, size)| *of = size);
    (classes, patterns)
}

/// What the objects of each group of classes retain together. A class object belongs to the groups of the class that it
/// is and to those of `java.lang.Class`.
fn together(heap: &Heap, groups: usize, of_class: &[Vec<u32>]) -> Vec<u64> {
    if groups == 0 {
        return Vec::new();
    }
    let groups_of = |columns: &Columns<'_>, object: ObjIdx| {
        let class = columns.class_of(object);
        let own = (class == heap.class_class()).then(|| owner_class(heap, object));
        let classes = [Some(class), own.filter(|own| *own != class)];
        let groups = classes.into_iter().flatten();
        groups
            .flat_map(|class| &of_class[class.0 as usize])
            .copied()
    };
    let set = Selection::by(heap, |columns, object| {
        columns.is_reachable(object) && groups_of(columns, object).next().is_some()
    });
    let columns = heap.columns();
    retained_in(heap, &set, groups, |object, out| {
        for group in groups_of(&columns, object) {
            if !out.contains(&group) {
                out.push(group);
            }
        }
    })
}

/// A suspect as later dumps recognize it.
pub(crate) fn known(suspect: &Suspect) -> KnownLeak {
    let subject = match (&suspect.kind, &suspect.value) {
        (SuspectKind::Object, Some(of)) if suspect.class == "java.lang.Class" => {
            format!("class {}", stable_name(of))
        }
        _ => stable_name(&suspect.class),
    };
    let mut words = vec![format!("{:?}", suspect.kind), subject.clone()];
    words.extend(path_words(&suspect.path));
    let point = suspect.accumulation_point.as_ref();
    let piled = point.and_then(|p| p.of_class.as_ref());
    let mut title = subject;
    if let Some(holder) = &suspect.holder {
        title.push_str(&format!(" by {holder}"));
    }
    if let Some(piled) = piled {
        title.push_str(&format!(", full of {}", stable_name(&piled.class)));
    }
    KnownLeak {
        signature: signature(words.iter().map(String::as_str)),
        title,
        retained: suspect.retained.0,
    }
}

/// The classes and fields of a path. What accumulates at its end is no part of it, because it
/// depends on amounts; and so does the depth in a list or tree, so of nodes of one class in a row
/// only the last counts.
fn path_words(path: &[Step]) -> Vec<String> {
    let mut words = Vec::new();
    for (n, step) in path.iter().enumerate() {
        let object = &step.object;
        let next = path.get(n + 1).map(|next| &next.object.class);
        if object.kind == ObjectKind::Instance && next == Some(&object.class) {
            continue;
        }
        words.push(match (object.kind, &object.value) {
            (ObjectKind::Class, Some(of)) => format!("class {}", stable_name(of)),
            _ => stable_name(&object.class),
        });
        let field = step.field.as_deref().unwrap_or("");
        words.push(if field.starts_with('[') { "[]" } else { field }.to_owned());
    }
    words
}
