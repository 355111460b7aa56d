//! How far a dump is.

use serde::Serialize;

/// How far the opening of a heap dump is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Reading the file.
    #[default]
    Opening,
    /// Every question is answered, except those that need the referrers.
    Indexed,
    /// Every question is answered.
    Ready,
    /// The file cannot be used.
    Failed,
}
