//! Questions to the agent about live objects, and the answers that are kept for their other pages.

use std::time::{Duration, Instant};
use vmpi::{InstanceQuery, Listing};

/// A list that can be paged through is the same on every page for so long.
pub(crate) const KEPT: Duration = Duration::from_secs(60);
/// Lists that are kept: as many may page through lists of their own.
pub(crate) const MOST_KEPT: usize = 4;

/// Questions about objects, one after the other.
#[derive(Debug, Default)]
pub struct Asking {
    /// Number of the last.
    pub(crate) number: u32,
    /// The oldest first.
    pub(crate) kept: Vec<Kept>,
}

/// An answer, for its other pages: each question finds others alive, and chooses other ones.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) query: InstanceQuery,
    pub(crate) listing: Listing,
    pub(crate) arrived: Instant,
}

impl Kept {
    pub(crate) fn is_of(&self, query: &InstanceQuery) -> bool {
        let number = self.query.number;
        let same = InstanceQuery {
            number,
            ..query.clone()
        };
        self.query == same
    }
}
