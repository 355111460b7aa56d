//! The progress of opening a heap dump.

use serde::Serialize;

/// The stage of opening a heap dump.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Reading the file.
    #[default]
    Opening,
    /// All views work, except those that need the referrers.
    Indexed,
    /// All views work.
    Ready,
    /// The file cannot be used.
    Failed,
}
