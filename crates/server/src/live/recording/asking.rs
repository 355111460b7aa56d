//! Questions to the agent about live objects, and the answers that are kept for their other pages.

use std::time::{Duration, Instant};
use vmpi::{InstanceQuery, Listing};

/// A list that can be paged through is the same on every page for so long.
pub(in crate::live) const KEPT: Duration = Duration::from_secs(60);
/// Lists that are kept: as many may page through lists of their own.
pub(in crate::live) const MOST_KEPT: usize = 4;

/// Questions about objects, one after the other.
#[derive(Debug, Default)]
pub struct Asking {
    /// Number of the last.
    pub(in crate::live) number: u32,
    /// The oldest first.
    pub(in crate::live) kept: Vec<Kept>,
}

/// An answer, for its other pages: each question finds others alive, and chooses other ones.
#[derive(Debug)]
pub(in crate::live) struct Kept {
    pub(in crate::live) query: InstanceQuery,
    pub(in crate::live) listing: Listing,
    pub(in crate::live) arrived: Instant,
}

impl Kept {
    pub(in crate::live) fn is_of(&self, query: &InstanceQuery) -> bool {
        let number = self.query.number;
        let same = InstanceQuery {
            number,
            ..query.clone()
        };
        self.query == same
    }
}
