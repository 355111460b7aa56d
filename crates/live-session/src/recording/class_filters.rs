//! The class filters that hold: what is recorded and shown of each class, as [`vmpi::class_options`] reads it from
//! a file or the page. The agent gets them, so that excluded classes cost nothing from then on; tables leave out what
//! they exclude, of the past as well (`live_analysis::class_filters`).

use std::sync::{Arc, PoisonError, RwLock};
use vmpi::class_options::Rules;

/// The lines that hold now.
#[derive(Debug, Default)]
pub struct Chosen(RwLock<Arc<Rules>>);

impl Chosen {
    /// All of them.
    pub fn get(&self) -> Arc<Rules> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces them.
    pub(crate) fn set(&self, rules: Rules) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
    }
}
