//! Requests to the agent about live objects, and the answers that are cached for their other pages.

use std::time::{Duration, Instant};
use vmpi::{InstanceQuery, Listing};

/// For how long a list stays the same on all its pages.
pub(crate) const KEPT: Duration = Duration::from_secs(60);
/// The most cached lists: as many users can page through separate lists.
pub(crate) const MOST_KEPT: usize = 4;

/// Requests about objects, which are sent one at a time.
#[derive(Debug, Default)]
pub struct Asking {
    /// The number of the last request.
    pub(crate) number: u32,
    /// The oldest first.
    pub(crate) kept: Vec<Kept>,
}

/// A cached answer for its other pages: each new request would find other live objects and choose another sample.
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
