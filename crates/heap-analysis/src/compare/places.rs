//! Where memory accumulates or goes away: the dominator trees of several dumps, matched group by
//! group, are followed down from the top.
//!
//! A group moved because it has more or fewer members (a pile), or because something below it
//! moved, or by itself. Piles and groups that moved by themselves are places; what is between
//! them and the top is the way there. What a place accounts for is subtracted from everything
//! above it, so that no byte is in two places, and so that a loss below a group that grew is
//! found.

use crate::compare::groups::{FOLLOWED, Group, GroupChange, below, by_key};
use crate::compare::identity::signature;
use crate::leaks::is_plumbing;
use crate::pace::Pace;
use heap_graph::{Heap, HeapError};
use serde::Serialize;

/// A place that grew or shrank.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// From the top of the dominator tree to the place where memory accumulates.
    pub path: Vec<GroupChange>,
    /// The objects that accumulate there: the group directly below the place that grew (or shrank) most. Nodes of a
    /// collection count together with the nodes linked to them (in buckets, lists and trees).
    pub contents: Option<GroupChange>,
    /// If `contents` are nodes or entries of the JDK's collections, whose class explains little: the group of objects
    /// in them that grew (or shrank) most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holding: Option<GroupChange>,
    /// The last field on the path that an application class declares, `Class.field`; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// Growth at this place in bytes, negative if it shrank. Growth of other listed places below it is not included.
    pub growth: i64,
    /// True if it grew (or shrank) from each dump to the next.
    pub steady: bool,
    /// Identifies the place: the same in all dumps of the program.
    pub signature: String,
}

/// Longest path.
const STEPS: usize = 200;
/// Most members of a group that is searched although it moved by less than the threshold: gains
/// and losses below it can be equal.
const SEARCHED: usize = 1000;

/// A place with the members of its contents.
pub(crate) struct Place {
    path: Vec<GroupChange>,
    contents: Option<Group>,
    /// Bytes at this place, per dump, apart from what did not move.
    bytes: Vec<i64>,
    signature: String,
}

impl Place {
    pub(crate) fn growth(&self) -> i64 {
        moved(&self.bytes)
    }

    pub(crate) fn signature(&self) -> &str {
        &self.signature
    }

    /// The answer, with what is found only by a look at the contents.
    pub(crate) fn change(&self, heaps: &[&Heap], pace: &mut Pace<'_>) -> Result<Change, HeapError> {
        let growth = self.growth();
        let sign = growth.signum();
        let nodes = self.contents.as_ref();
        let held = nodes.filter(|nodes| is_plumbing(&nodes.label.class));
        let held = match held {
            Some(nodes) => most(below(heaps, nodes, false, pace)?, sign),
            None => None,
        };
        Ok(Change {
            path: self.path.clone(),
            contents: nodes.map(Group::change),
            holding: held.map(|g| g.change()),
            holder: holder(&self.path),
            growth,
            steady: self.bytes.windows(2).all(|w| (w[1] - w[0]) * sign > 0),
            signature: self.signature.clone(),
        })
    }
}

/// All places that moved by at least this many bytes.
pub(crate) fn places(
    heaps: &[&Heap],
    top: Vec<Group>,
    least: i64,
    pace: &mut Pace<'_>,
) -> Result<Vec<Place>, HeapError> {
    let mut walk = Walk {
        heaps,
        pace,
        least,
        path: Vec::new(),
        found: Vec::new(),
    };
    for mut group in top {
        if walk.matters(&group) {
            group.fold(heaps, walk.pace)?;
            walk.visit(&group, group.is_pile())?;
        }
    }
    Ok(walk.found)
}

fn moved(bytes: &[i64]) -> i64 {
    bytes.last().unwrap_or(&0) - bytes.first().unwrap_or(&0)
}

fn most(groups: Vec<Group>, sign: i64) -> Option<Group> {
    let groups = groups.into_iter().filter(|g| g.growth() * sign > 0);
    groups.max_by_key(|g| g.growth() * sign)
}

fn add(to: &mut [i64], more: impl IntoIterator<Item = i64>) {
    for (sum, more) in to.iter_mut().zip(more) {
        *sum += more;
    }
}

fn bytes_of(group: &Group) -> Vec<i64> {
    group.retained.iter().map(|b| *b as i64).collect()
}

/// A field of `java.util.HashMap` explains nothing; one of the application does.
fn holder(path: &[GroupChange]) -> Option<String> {
    path.windows(2).rev().find_map(|pair| {
        let [above, held] = pair else { return None };
        let class = &above.label.class;
        let class = class.strip_prefix("class ").unwrap_or(class);
        let field = held.label.field.as_deref()?;
        let field = field.strip_prefix("static ").unwrap_or(field);
        (!is_plumbing(class)).then(|| format!("{class}.{field}"))
    })
}

struct Walk<'h, 'c> {
    heaps: &'h [&'h Heap],
    pace: &'h mut Pace<'c>,
    least: i64,
    path: Vec<GroupChange>,
    found: Vec<Place>,
}

impl Walk<'_, '_> {
    /// Whether something at or below a group can have moved enough.
    fn matters(&self, group: &Group) -> bool {
        let growth = group.growth();
        let most = group.retained.iter().max().copied().unwrap_or(0) as i64;
        growth.abs() >= self.least || growth != 0 && most >= self.least && group.count() <= SEARCHED
    }

    /// Follows a group or, if single entries of a map moved, these. Gives the bytes that belong
    /// to places, per dump.
    fn enter(&mut self, group: &Group) -> Result<Vec<i64>, HeapError> {
        let mut keyed = by_key(self.heaps, group, self.pace)?;
        keyed.retain(|g| g.growth().abs() >= self.least);
        let by_keys: i64 = keyed.iter().map(Group::growth).sum();
        if keyed.is_empty() || (by_keys.abs() as f64) < FOLLOWED * group.growth().abs() as f64 {
            return self.visit(group, false);
        }
        let mut placed = vec![0; self.heaps.len()];
        for entry in &keyed {
            add(&mut placed, self.visit(entry, false)?);
        }
        Ok(placed)
    }

    /// Finds the places at and below a group. Gives the bytes that belong to them, per dump.
    fn visit(&mut self, group: &Group, is_pile: bool) -> Result<Vec<i64>, HeapError> {
        self.path.push(group.change());
        let mut placed = vec![0; self.heaps.len()];
        let mut piles: Vec<Group> = Vec::new();
        // The other groups below, and how far they moved apart from the places in them.
        let mut others: Vec<(i64, Group)> = Vec::new();
        let follow = !is_pile && self.path.len() < STEPS;
        for mut child in below(self.heaps, group, true, self.pace)? {
            let growth = child.growth();
            if !follow || !self.matters(&child) {
                others.push((growth, child));
                continue;
            }
            child.fold(self.heaps, self.pace)?;
            if child.is_pile() && growth.abs() >= self.least {
                piles.push(child);
                continue;
            }
            let inside = self.enter(&child)?;
            others.push((growth - moved(&inside), child));
            add(&mut placed, inside);
        }
        let mut rest = bytes_of(group);
        add(&mut rest, placed.iter().map(|b| -b));
        for pile in &piles {
            add(&mut rest, bytes_of(pile).iter().map(|b| -b));
        }
        // What is not in the piles belongs to the largest of them that moved in the same
        // direction: the table that grew with its nodes.
        let sign = moved(&rest).signum();
        piles.sort_by_key(|pile| std::cmp::Reverse(pile.growth().abs()));
        let with_rest = piles.iter().position(|pile| pile.growth().signum() == sign);
        for (n, pile) in piles.into_iter().enumerate() {
            let mut bytes = bytes_of(&pile);
            if with_rest == Some(n) {
                add(&mut bytes, rest.iter().copied());
            }
            add(&mut placed, bytes.iter().copied());
            self.found(bytes, Some(pile));
        }
        if with_rest.is_none() && moved(&rest).abs() >= self.least {
            others.retain(|(growth, _)| growth * sign > 0);
            let contents = others.into_iter().max_by_key(|(growth, _)| growth * sign);
            let mut contents = contents.map(|(_, group)| group);
            if let Some(group) = &mut contents {
                group.fold(self.heaps, self.pace)?;
            }
            add(&mut placed, rest.iter().copied());
            self.found(rest, contents);
        }
        self.path.pop();
        Ok(placed)
    }

    fn found(&mut self, bytes: Vec<i64>, contents: Option<Group>) {
        let mut words: Vec<String> = self.path.iter().map(|g| g.label.to_string()).collect();
        words.extend(contents.iter().map(|c| c.label.class.clone()));
        self.found.push(Place {
            path: self.path.clone(),
            contents,
            bytes,
            signature: signature(words.iter().map(String::as_str)),
        });
    }
}
