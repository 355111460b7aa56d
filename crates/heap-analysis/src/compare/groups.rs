//! Objects of several dumps, matched: those of equal [`Label`] are one group.

use crate::compare::identity::{Label, fields_of, key_text, label};
use crate::objects::fields::is_subclass_of;
use crate::objects::nodes::{can_be_node, next_nodes, own_size};
use crate::pace::Pace;
use heap_graph::{ClassIdx, Heap, HeapError, ObjIdx};
use hprof::Bytes;
use rustc_hash::FxHashMap;
use serde::Serialize;

/// A group of objects with the same label, in all dumps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GroupChange {
    /// The label that they share.
    #[serde(flatten)]
    pub label: Label,
    /// Number of objects in each dump.
    pub objects: Vec<u64>,
    /// The size that they retain, in each dump.
    pub retained: Vec<Bytes>,
}

impl GroupChange {
    /// Bytes retained more in the last dump than in the first; negative when less.
    pub fn growth(&self) -> i64 {
        let at = |bytes: Option<&Bytes>| bytes.map_or(0, |b| b.0 as i64);
        at(self.retained.last()) - at(self.retained.first())
    }
}

/// A group with its members.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) label: Label,
    /// Per dump. After [`Group::fold`] with all nodes of a tree or list.
    pub(crate) members: Vec<Vec<ObjIdx>>,
    /// Per dump.
    pub(crate) retained: Vec<u64>,
    /// What the largest member retains without its further nodes, per dump; known after
    /// [`Group::fold`].
    largest: Vec<u64>,
    folded: bool,
}

/// Share of a movement that one object must have to be its cause.
pub(crate) const FOLLOWED: f64 = 0.7;
/// Above this many members the fields that hold the groups below are not looked up.
const NAMED: usize = 100_000;
/// Members of a group that are tried for a key, before it is no group of map entries.
const TRIED: usize = 100;

impl Group {
    pub(crate) fn growth(&self) -> i64 {
        let at = |bytes: Option<&u64>| bytes.map_or(0, |b| *b as i64);
        at(self.retained.last()) - at(self.retained.first())
    }

    pub(crate) fn change(&self) -> GroupChange {
        GroupChange {
            label: self.label.clone(),
            objects: self.members.iter().map(|m| m.len() as u64).collect(),
            retained: self.retained.iter().map(|b| Bytes(*b)).collect(),
        }
    }

    /// The most members that the group has in a dump.
    pub(crate) fn count(&self) -> usize {
        self.members.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Adds the nodes that hang on nodes of the same class: the rest of a bin, of a list, of a
    /// tree. The retained sizes include them already.
    pub(crate) fn fold(&mut self, heaps: &[&Heap], pace: &mut Pace<'_>) -> Result<(), HeapError> {
        if std::mem::replace(&mut self.folded, true) {
            return Ok(());
        }
        for (n, (heap, members)) in heaps.iter().zip(&mut self.members).enumerate() {
            let links = are_links(heap, members);
            let (mut at, mut largest) = (0, 0);
            while let Some(member) = members.get(at).copied() {
                pace.step()?;
                at += 1;
                let mut own = heap.retained(member).0;
                if links {
                    for next in next_nodes(heap, member) {
                        pace.step()?;
                        own -= heap.retained(next).0.min(own);
                        members.push(next);
                    }
                }
                largest = largest.max(own);
            }
            self.largest[n] = largest;
        }
        Ok(())
    }

    /// Whether the group moved because it has more or fewer members, and no single one of them
    /// is the cause.
    pub(crate) fn is_pile(&self) -> bool {
        let growth = self.growth();
        let (from, to) = (0, self.members.len().saturating_sub(1));
        let (more, fewer) = if growth > 0 { (to, from) } else { (from, to) };
        let count = |n: usize| self.members.get(n).map_or(0, Vec::len);
        let came = count(more).saturating_sub(count(fewer)) as f64;
        let moved = growth.unsigned_abs() as f64;
        let of = |sizes: &[u64]| sizes.get(more).copied().unwrap_or(0) as f64;
        let average = of(&self.retained) / count(more).max(1) as f64;
        came > 1.0 && of(&self.largest) < FOLLOWED * moved && came * average >= moved / 2.0
    }
}

/// Whether these objects of one class can be nodes of a tree or list.
fn are_links(heap: &Heap, members: &[ObjIdx]) -> bool {
    members.first().is_some_and(|o| can_be_node(heap, *o))
}

/// Puts objects of equal label together.
struct Grouping<'h> {
    heaps: &'h [&'h Heap],
    numbers: FxHashMap<Label, usize>,
    groups: Vec<Group>,
    /// The dump and class of the last object, if the class alone makes its label, and its group:
    /// neighbours are mostly of one class.
    last: Option<((usize, ClassIdx), usize)>,
}

impl<'h> Grouping<'h> {
    fn new(heaps: &'h [&'h Heap]) -> Grouping<'h> {
        Grouping {
            heaps,
            numbers: FxHashMap::default(),
            groups: Vec::new(),
            last: None,
        }
    }

    /// Adds an object of a dump by its label.
    fn labelled(&mut self, n: usize, object: ObjIdx, retained: u64, label: Label) -> usize {
        let dumps = self.heaps.len();
        let at = *self.numbers.entry(label).or_insert_with_key(|label| {
            self.groups.push(Group {
                label: label.clone(),
                members: vec![Vec::new(); dumps],
                retained: vec![0; dumps],
                largest: vec![0; dumps],
                folded: false,
            });
            self.groups.len() - 1
        });
        self.put(at, n, object, retained);
        at
    }

    fn put(&mut self, at: usize, n: usize, object: ObjIdx, retained: u64) {
        let group = &mut self.groups[at];
        group.members[n].push(object);
        group.retained[n] += retained;
    }

    /// Adds an object of a dump that this field holds.
    fn held(&mut self, n: usize, object: ObjIdx, field: Option<String>) {
        let heap = self.heaps[n];
        let retained = heap.retained(object).0;
        let key = (n, heap.class_of(object));
        if field.is_none()
            && let Some((_, at)) = self.last.filter(|(last, _)| *last == key)
        {
            return self.put(at, n, object, retained);
        }
        let plain = field.is_none()
            && heap.class_by_object(object).is_none()
            && !is_subclass_of(heap, key.1, "java.lang.Thread");
        let at = self.labelled(n, object, retained, label(heap, object, field));
        self.last = plain.then_some((key, at));
    }

    fn finish(mut self) -> Vec<Group> {
        self.groups.sort_by(|a, b| a.label.cmp(&b.label));
        self.groups
    }
}

/// The groups at the top of the dominator trees.
pub(crate) fn top(heaps: &[&Heap], pace: &mut Pace<'_>) -> Result<Vec<Group>, HeapError> {
    let mut groups = Grouping::new(heaps);
    for (n, heap) in heaps.iter().enumerate() {
        for object in heap.dominated(None) {
            pace.step()?;
            groups.held(n, object, None);
        }
    }
    Ok(groups.finish())
}

/// The groups directly below a group. The nodes that [`Group::fold`] adds to it are not below it.
pub(crate) fn below(
    heaps: &[&Heap],
    group: &Group,
    with_fields: bool,
    pace: &mut Pace<'_>,
) -> Result<Vec<Group>, HeapError> {
    let named = with_fields && group.count() <= NAMED;
    let mut groups = Grouping::new(heaps);
    for (n, (heap, members)) in heaps.iter().zip(&group.members).enumerate() {
        let links = are_links(heap, members);
        for member in members {
            pace.step()?;
            let class = heap.class_of(*member);
            let children = heap.dominated(Some(*member));
            let mut children = children
                .filter(|c| !links || heap.class_of(*c) != class)
                .peekable();
            if children.peek().is_none() {
                continue;
            }
            let fields = if named {
                fields_of(heap, *member)
            } else {
                FxHashMap::default()
            };
            for child in children {
                pace.step()?;
                groups.held(n, child, fields.get(&child).cloned());
            }
        }
    }
    Ok(groups.finish())
}

/// The members of a folded group of map entries, by key, each without its further nodes; empty
/// if they have no keys.
pub(crate) fn by_key(
    heaps: &[&Heap],
    group: &Group,
    pace: &mut Pace<'_>,
) -> Result<Vec<Group>, HeapError> {
    let count = group.count();
    if !(2..=NAMED).contains(&count) {
        return Ok(Vec::new());
    }
    let mut groups = Grouping::new(heaps);
    let mut tried = 0;
    for (n, (heap, members)) in heaps.iter().zip(&group.members).enumerate() {
        let links = are_links(heap, members);
        for member in members {
            if tried == TRIED && groups.groups.iter().all(|g| g.label.name.is_none()) {
                return Ok(Vec::new());
            }
            pace.step()?;
            tried += 1;
            let label = Label {
                name: key_text(heap, *member),
                ..group.label.clone()
            };
            let own = match links {
                true => own_size(heap, *member),
                false => heap.retained(*member).0,
            };
            groups.labelled(n, *member, own, label);
        }
    }
    let mut groups = groups.finish();
    groups.retain(|g| g.label.name.is_some());
    for group in &mut groups {
        group.folded = true;
    }
    Ok(groups)
}
