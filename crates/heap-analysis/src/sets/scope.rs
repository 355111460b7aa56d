//! The objects that an analysis of contents examines.

use crate::sets::selection::Selection;
use heap_graph::{Columns, ObjIdx};
use std::sync::Arc;

/// Which objects count.
#[derive(Clone, Debug, Default)]
pub enum Scope {
    /// Objects that the roots reach.
    #[default]
    Reachable,
    /// All objects.
    All,
    /// The members of a set.
    Set {
        /// How the set is named.
        name: String,
        /// Whether it may have unreachable objects.
        all: bool,
        /// The members.
        objects: Arc<Selection>,
    },
}

impl Scope {
    /// Reachable objects, or with `all` all of them.
    pub fn of_all(all: bool) -> Scope {
        match all {
            true => Scope::All,
            false => Scope::Reachable,
        }
    }

    /// Name of the set; none without a set.
    pub(crate) fn set(&self) -> Option<String> {
        match self {
            Scope::Set { name, .. } => Some(name.clone()),
            Scope::Reachable | Scope::All => None,
        }
    }

    /// The objects that may hold those of this scope: what a set holds is also of interest if the holder is outside.
    pub(crate) fn of_holders(&self) -> Scope {
        match self {
            Scope::Set { all, .. } => Scope::of_all(*all),
            other => other.clone(),
        }
    }

    /// Whether an object counts.
    #[inline]
    pub(crate) fn has(&self, columns: &Columns<'_>, object: ObjIdx) -> bool {
        match self {
            Scope::Reachable => columns.is_reachable(object),
            Scope::All => true,
            Scope::Set { objects, .. } => objects.contains(object),
        }
    }
}
