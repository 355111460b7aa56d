//! The queries that were run on a dump, in `heap.hprof.queries.jsonl` beside it.

use super::kept::Kept;
use requests::Fault;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The longest query that is saved, in characters.
const MOST_TEXT: usize = 10_000;

/// The most queries that are returned.
const MOST: usize = 100;

/// A query.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The text.
    pub text: String,
    /// The dialect, when it was chosen: `sql`, `oql`, `jhat`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub lang: String,
}

/// The queries about one dump.
#[derive(Debug)]
pub struct History(Kept);

impl History {
    pub(super) fn beside(dump: &Path, cache: Option<&Path>) -> History {
        History(Kept::beside(dump, cache, "queries"))
    }

    /// The last queries, newest first, each once.
    pub fn all(&self) -> Vec<Asked> {
        let mut found: Vec<Asked> = Vec::new();
        for asked in self.0.lines::<Asked>().into_iter().rev() {
            if found.len() < MOST && !found.contains(&asked) {
                found.push(asked);
            }
        }
        found
    }

    /// Saves a query, unless it is the one that was saved last.
    ///
    /// # Errors
    /// When it is empty or too long, or the file cannot be written.
    pub fn add(&self, asked: &Asked) -> Result<(), Fault> {
        let length = asked.text.trim().chars().count();
        if !(1..=MOST_TEXT).contains(&length) {
            return Err(Fault::bad("a query has 1 to 10000 characters"));
        }
        if self.0.lines::<Asked>().last() == Some(asked) {
            return Ok(());
        }
        self.0.add(asked)
    }
}
