//! The damage in an image: counted by kind, with one example of each.

use crate::memory::Address;
use std::collections::BTreeMap;

/// Damage by kind: how often, and where first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage(BTreeMap<&'static str, (u64, Address)>);

impl Damage {
    pub(crate) fn count(&mut self, what: &'static str, at: Address) {
        let entry = self.0.entry(what).or_insert((0, at));
        entry.0 += 1;
    }

    /// Adds the damage of another part.
    pub(crate) fn add(&mut self, other: Damage) {
        for (what, (count, at)) in other.0 {
            let entry = self.0.entry(what).or_insert((0, at));
            entry.0 += count;
        }
    }

    /// The number of all damages.
    pub fn total(&self) -> u64 {
        self.0.values().map(|(count, _)| count).sum()
    }

    /// A sentence for each kind.
    pub fn sentences(&self) -> impl Iterator<Item = String> {
        let one = |(what, (count, at)): (&&str, &(u64, Address))| match count {
            1 => format!("{what} (at 0x{at:x})"),
            _ => format!("{what} ({count} times, first at 0x{at:x})"),
        };
        self.0.iter().map(one)
    }
}
