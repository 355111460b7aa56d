//! What changed from dump to dump: classes by name, and the dominator trees matched by structure
//! (class, field, thread name, map key) instead of by address, because the garbage collector
//! moves objects and a restarted program has other ones.
//!
//! Growth is followed from the top of the merged trees: objects of equal label are one group; from
//! a group that grew the search continues to the group below it that has at least 0.7 of the growth,
//! and stops where the growth is spread out. That is the place where memory accumulates. Cost: one
//! walk over the top of each tree, and for every group on the way its members' children.

use crate::compare::identity::{Label, fields_of, key_text, label, signature, stable_name};
use crate::leaks::is_plumbing;
use heap_graph::{Heap, ObjIdx};
use hprof::Bytes;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::Serialize;
use std::cmp::Reverse;

/// How to compare.
#[derive(Clone, Debug)]
pub struct DiffOptions {
    /// At most so many rows per table.
    pub top: Option<usize>,
    /// Percent of the first heap that a group must have grown or shrunk by to be listed.
    pub threshold: f64,
}

impl Default for DiffOptions {
    fn default() -> Self {
        DiffOptions {
            top: Some(20),
            threshold: 1.0,
        }
    }
}

/// Totals of one dump; reachable objects.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DumpFacts {
    /// What the caller calls it.
    pub name: String,
    /// Milliseconds since 1970.
    pub timestamp_ms: u64,
    /// Objects.
    pub objects: u64,
    /// Shallow size.
    pub shallow: Bytes,
    /// True when it shares fewer than half of its classes with the first dump: it is of another
    /// program, and what changed means little.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unrelated: bool,
}

/// One class in all dumps; classes of one name are added up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClassChange {
    /// Its name, without the numbers that differ between runs.
    pub class: String,
    /// Objects, per dump.
    pub objects: Vec<u64>,
    /// Shallow size, per dump.
    pub shallow: Vec<Bytes>,
    /// Retained size, per dump.
    pub retained: Vec<Bytes>,
    /// True when the number of objects grew from every dump to the next.
    pub steady: bool,
}

/// Objects of one label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupChange {
    /// What they have in common.
    #[serde(flatten)]
    pub label: Label,
    /// How many, per dump.
    pub objects: Vec<u64>,
    /// What they retain, per dump.
    pub retained: Vec<Bytes>,
}

impl GroupChange {
    /// Bytes retained more in the last dump than in the first; negative when less.
    pub fn growth(&self) -> i64 {
        growth(&self.retained)
    }
}

fn growth(retained: &[Bytes]) -> i64 {
    let first = retained.first().map_or(0, |b| b.0);
    let last = retained.last().map_or(0, |b| b.0);
    last as i64 - first as i64
}

/// A place that grew or shrank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// From the top of the dominator tree to the place where the growth spreads out.
    pub path: Vec<GroupChange>,
    /// The group directly below that grew (or shrank) most: what accumulates there. Nodes of a
    /// collection are counted with those that hang on them, in the bins of a table or as a list.
    pub contents: Option<GroupChange>,
    /// For nodes and entries of the platform's collections, which say nothing: what these hold
    /// that grew (or shrank) most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holding: Option<GroupChange>,
    /// Growth of the last step of the path, in bytes; negative for less.
    pub growth: i64,
    /// True when it grew from every dump to the next.
    pub steady: bool,
    /// The same for the same place in any dump of the program.
    pub signature: String,
}

/// Everything that changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// The dumps, in the order given.
    pub dumps: Vec<DumpFacts>,
    /// Places that grew, most first.
    pub grown: Vec<Change>,
    /// Places that shrank, most first.
    pub shrunk: Vec<Change>,
    /// Groups at the top of the tree that only the last dump has, largest first.
    pub new: Vec<GroupChange>,
    /// Groups at the top of the tree that only the first dump has, largest first.
    pub gone: Vec<GroupChange>,
    /// Classes, those whose retained size changed most first.
    pub classes: Vec<ClassChange>,
    /// Classes that changed but were left out.
    pub omitted_classes: u64,
}

/// A group with its members.
#[derive(Clone)]
struct Group {
    label: Label,
    members: Vec<Vec<ObjIdx>>,
    retained: Vec<u64>,
}

impl Group {
    fn growth(&self) -> i64 {
        self.retained.last().copied().unwrap_or(0) as i64
            - self.retained.first().copied().unwrap_or(0) as i64
    }

    fn change(&self) -> GroupChange {
        GroupChange {
            label: self.label.clone(),
            objects: self.members.iter().map(|m| m.len() as u64).collect(),
            retained: self.retained.iter().map(|b| Bytes(*b)).collect(),
        }
    }
}

/// Compares dumps of one program, in the order of time.
pub fn diff(dumps: &[(String, &Heap)], options: &DiffOptions) -> Diff {
    let heaps: Vec<&Heap> = dumps.iter().map(|d| d.1).collect();
    let facts = dumps.iter().map(|(name, heap)| DumpFacts {
        name: name.clone(),
        unrelated: heaps.first().is_some_and(|first| !are_related(first, heap)),
        timestamp_ms: heap.summary().timestamp_ms,
        objects: heap.summary().reachable_objects,
        shallow: heap.summary().reachable_shallow,
    });
    let keep = options.top.unwrap_or(usize::MAX);
    let top = grouped(
        &heaps,
        heaps
            .iter()
            .map(|h| h.dominated(None).map(|o| (o, label(h, o, None))).collect())
            .collect(),
    );
    let first = heaps.first().map_or(0, |h| h.summary().reachable_shallow.0);
    let least = ((first as f64 * options.threshold / 100.0) as i64).max(1);
    let changes = |up: bool| {
        let sign = if up { 1 } else { -1 };
        let moved = top.iter().filter(|g| g.growth() * sign >= least);
        let mut list: Vec<Change> = moved.map(|g| follow(&heaps, g, sign)).collect();
        list.sort_by(|a, b| {
            let key = |c: &Change| Reverse(c.growth * sign);
            (key(a), &a.signature).cmp(&(key(b), &b.signature))
        });
        list.truncate(keep);
        list
    };
    let only = |last: bool| {
        let absent = |g: &&Group| {
            let (a, b) = (g.members.first(), g.members.last());
            let (there, not) = if last { (b, a) } else { (a, b) };
            there.is_some_and(|m| !m.is_empty()) && not.is_some_and(Vec::is_empty)
        };
        let mut list: Vec<GroupChange> = top.iter().filter(absent).map(Group::change).collect();
        list.sort_by(|a, b| {
            (Reverse(a.growth().abs()), &a.label).cmp(&(Reverse(b.growth().abs()), &b.label))
        });
        list.truncate(keep);
        list
    };
    let (classes, omitted_classes) = classes(&heaps, keep);
    Diff {
        dumps: facts.collect(),
        grown: changes(true),
        shrunk: changes(false),
        new: only(true),
        gone: only(false),
        classes,
        omitted_classes,
    }
}

/// Whether two dumps may be of one program: the smaller set of the application's class names is at
/// least half in the other one. Without any, all classes count.
fn are_related(a: &Heap, b: &Heap) -> bool {
    let names = |heap: &Heap, all: bool| -> FxHashSet<String> {
        let classes = heap.classes().iter().filter(|c| c.dumped);
        let classes = classes.filter(|c| all || !is_plumbing(&c.name) && !c.name.ends_with("[]"));
        classes.map(|c| stable_name(&c.name)).collect()
    };
    let alike = |all: bool| {
        let (a, b) = (names(a, all), names(b, all));
        let least = a.len().min(b.len());
        (least > 0).then(|| a.intersection(&b).count() * 2 >= least)
    };
    alike(false).or_else(|| alike(true)).unwrap_or(true)
}

/// Puts objects of equal label together; per heap the objects with their labels.
fn grouped(heaps: &[&Heap], lists: Vec<Vec<(ObjIdx, Label)>>) -> Vec<Group> {
    let mut numbers: FxHashMap<Label, usize> = FxHashMap::default();
    let mut groups: Vec<Group> = Vec::new();
    for (n, list) in lists.into_iter().enumerate() {
        for (object, label) in list {
            let at = *numbers.entry(label).or_insert_with_key(|label| {
                groups.push(Group {
                    label: label.clone(),
                    members: vec![Vec::new(); heaps.len()],
                    retained: vec![0; heaps.len()],
                });
                groups.len() - 1
            });
            groups[at].members[n].push(object);
            groups[at].retained[n] += heaps[n].retained(object).0;
        }
    }
    groups.sort_by(|a, b| a.label.cmp(&b.label));
    groups
}

/// Above this many members the fields that hold the groups below are not looked up.
const NAMED: usize = 100_000;

fn below(heaps: &[&Heap], group: &Group) -> Vec<Group> {
    let named = group.members.iter().all(|m| m.len() <= NAMED);
    let lists = heaps.iter().zip(&group.members).map(|(heap, members)| {
        let mut list = Vec::new();
        for member in members {
            let mut children = heap.dominated(Some(*member)).peekable();
            if children.peek().is_none() {
                continue;
            }
            let fields = if named {
                fields_of(heap, *member)
            } else {
                FxHashMap::default()
            };
            for child in children {
                let field = fields.get(&child).cloned();
                list.push((child, label(heap, child, field)));
            }
        }
        list
    });
    grouped(heaps, lists.collect())
}

/// The members of a group of map entries, by key.
fn by_key(heaps: &[&Heap], group: &Group) -> Vec<Group> {
    if group.members.iter().any(|m| m.len() > NAMED) {
        return Vec::new();
    }
    let lists = heaps.iter().zip(&group.members).map(|(heap, members)| {
        members
            .iter()
            .map(|m| {
                let name = key_text(heap, *m);
                let label = Label {
                    name,
                    ..group.label.clone()
                };
                (*m, label)
            })
            .collect()
    });
    let groups = grouped(heaps, lists.collect());
    if groups.iter().all(|g| g.label.name.is_none()) {
        return Vec::new();
    }
    groups
}

/// Share of the growth that the next group must have.
const FOLLOWED: f64 = 0.7;
/// Longest path.
const STEPS: usize = 200;

/// Goes down from a group that moved to where its movement spreads out.
fn follow(heaps: &[&Heap], top: &Group, sign: i64) -> Change {
    let mut path = vec![top.clone()];
    let mut contents = None;
    let mut chained = false;
    while path.len() < STEPS {
        let Some(group) = path.last() else { break };
        let moved = group.growth() * sign;
        let enough = |g: &Group| (g.growth() * sign) as f64 >= FOLLOWED * moved as f64;
        let most = |list: Vec<Group>| list.into_iter().max_by_key(|g| g.growth() * sign);
        // One entry of a map is a place of its own; many together are a group.
        let one = most(by_key(heaps, group)).filter(|g| {
            enough(g) && g.label.name.is_some() && group.members.iter().any(|m| m.len() > 1)
        });
        if let Some(one) = one {
            let at = path.len() - 1;
            path[at] = one;
        }
        let Some(group) = path.last() else { break };
        let next = most(below(heaps, group)).filter(|g| g.growth() * sign > 0);
        // Many objects that came together are what accumulates; their contents add no information.
        let counts = |g: &Group| {
            let count = |m: Option<&Vec<ObjIdx>>| m.map_or(0, Vec::len) as i64;
            (count(g.members.last()) - count(g.members.first())) * sign
        };
        match next {
            Some(next) if enough(&next) && counts(&next) <= 1 => {
                let links = path.iter().rev().take(2);
                if links.clone().count() == 2 && links.clone().all(|l| l.label == next.label) {
                    let same = |g: &&Group| g.label.class == next.label.class;
                    let first = path.len() - path.iter().rev().take_while(same).count();
                    // All links of the chain pile up, unless it begins at the top.
                    contents = Some(match first {
                        0 => next,
                        _ => path.drain(first..).next().unwrap_or(next),
                    });
                    chained = true;
                    break;
                }
                path.push(next);
            }
            next => {
                contents = next;
                break;
            }
        }
    }
    let steady = path.last().is_some_and(|g| {
        let up = g.retained.windows(2).all(|w| w[1] > w[0]);
        let down = g.retained.windows(2).all(|w| w[1] < w[0]);
        if sign > 0 { up } else { down }
    });
    let mut words: Vec<String> = path.iter().map(|g| g.label.to_string()).collect();
    words.extend(contents.iter().map(|c| c.label.class.clone()));
    let mut holding = None;
    if let Some(nodes) = &mut contents {
        let nameless = is_plumbing(&nodes.label.class);
        if nameless || chained {
            let held = unfold(heaps, nodes);
            let most = held.into_iter().max_by_key(|g| g.growth() * sign);
            let most = most.filter(|g| nameless && g.growth() * sign > 0);
            holding = most.map(|g| g.change());
        }
    }
    Change {
        growth: path.last().map_or(0, Group::growth),
        path: path.iter().map(Group::change).collect(),
        contents: contents.as_ref().map(Group::change),
        holding,
        steady,
        signature: signature(words.iter().map(String::as_str)),
    }
}

/// Adds to the nodes of a collection those that hang on them: the rest of a bin, of a list, of a
/// tree. Gives what all of them hold, by class; the sizes of the nodes include it already.
fn unfold(heaps: &[&Heap], nodes: &mut Group) -> Vec<Group> {
    let mut held = Vec::with_capacity(heaps.len());
    for (heap, members) in heaps.iter().zip(&mut nodes.members) {
        let mut list = Vec::new();
        let mut at = 0;
        while let Some(node) = members.get(at).copied() {
            at += 1;
            for child in heap.dominated(Some(node)) {
                if heap.class_of(child) == heap.class_of(node) {
                    members.push(child);
                } else {
                    list.push((child, label(heap, child, None)));
                }
            }
        }
        held.push(list);
    }
    grouped(heaps, held)
}

fn classes(heaps: &[&Heap], keep: usize) -> (Vec<ClassChange>, u64) {
    let mut rows: FxHashMap<String, ClassChange> = FxHashMap::default();
    for (n, heap) in heaps.iter().enumerate() {
        for info in heap.classes() {
            let name = stable_name(&info.name);
            let row = rows.entry(name).or_insert_with_key(|name| ClassChange {
                class: name.clone(),
                objects: vec![0; heaps.len()],
                shallow: vec![Bytes(0); heaps.len()],
                retained: vec![Bytes(0); heaps.len()],
                steady: false,
            });
            row.objects[n] += info.reachable_objects;
            row.shallow[n].0 += info.reachable_shallow.0;
            row.retained[n].0 += info.retained.0;
        }
    }
    let mut rows: Vec<ClassChange> = rows.into_values().collect();
    let moved = |r: &ClassChange| {
        let objects = r.objects.windows(2).any(|w| w[0] != w[1]);
        objects || r.retained.windows(2).any(|w| w[0] != w[1])
    };
    rows.retain(moved);
    for row in &mut rows {
        row.steady = row.objects.windows(2).all(|w| w[1] > w[0]);
    }
    rows.sort_by(|a, b| {
        let key = |r: &ClassChange| (Reverse(growth(&r.retained)), Reverse(growth(&r.shallow)));
        (key(a), &a.class).cmp(&(key(b), &b.class))
    });
    let omitted = rows.len().saturating_sub(keep) as u64;
    rows.truncate(keep);
    (rows, omitted)
}
