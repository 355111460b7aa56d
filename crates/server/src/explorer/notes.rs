//! Notes and bookmarks about a dump, in `heap.hprof.notes.jsonl` beside it.

use super::kept::Kept;
use requests::Fault;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Longest address or text, in characters.
const MOST_TEXT: usize = 10_000;

/// A note on a view; a note without text is a bookmark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The view's address inside the page, `#/object?id=0x7f00`.
    pub view: String,
    /// Its title in lists.
    #[serde(default)]
    pub title: String,
    /// The text. There is one note per view; a later one replaces it.
    #[serde(default)]
    pub text: String,
    /// True removes the note.
    #[serde(default, skip_serializing_if = "is_false")]
    pub removed: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// The notes about one dump.
#[derive(Debug)]
pub struct Notes(Kept);

impl Notes {
    pub(super) fn beside(dump: &Path, cache: Option<&Path>) -> Notes {
        Notes(Kept::beside(dump, cache, "notes"))
    }

    /// All notes, by view.
    pub fn all(&self) -> Vec<Note> {
        let mut notes: BTreeMap<String, Note> = BTreeMap::new();
        for note in self.0.lines::<Note>() {
            if note.removed {
                notes.remove(&note.view);
            } else {
                notes.insert(note.view.clone(), note);
            }
        }
        notes.into_values().collect()
    }

    /// Appends a note.
    ///
    /// # Errors
    /// When it is too long, has no view, or the file cannot be written.
    pub fn add(&self, note: &Note) -> Result<(), Fault> {
        let lengths = [&note.view, &note.title, &note.text].map(|t| t.chars().count());
        if !note.view.starts_with("#/") || lengths.iter().any(|n| *n > MOST_TEXT) {
            return Err(Fault::bad(
                "a note needs a view (#/...) and at most 10000 characters",
            ));
        }
        self.0.add(note)
    }
}
