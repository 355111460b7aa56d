//! The current class filters: what is recorded and shown of each class, as parsed by [`vmpi::class_options`] from a
//! file or the page. They are sent to the agent, so that excluded classes cost nothing from then on; tables omit what
//! they exclude, also for the past (`live_analysis::class_filters`).

use std::sync::{Arc, PoisonError, RwLock};
use vmpi::class_options::Rules;

/// The current lines.
#[derive(Debug, Default)]
pub struct Chosen(RwLock<Arc<Rules>>);

impl Chosen {
    /// The current filters.
    pub fn get(&self) -> Arc<Rules> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces them.
    pub(crate) fn set(&self, rules: Rules) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }
}
