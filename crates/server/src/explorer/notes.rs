//! Notes and bookmarks about a dump, in a small file beside it: `heap.hprof.notes.jsonl`. Lines are
//! only ever appended, so two explorers of one dump do not destroy each other's words.

use crate::reply::Fault;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A longer file was not written by us.
const MOST_BYTES: u64 = 4 << 20;

/// Longest address or text, in characters.
const MOST_TEXT: usize = 10_000;

/// A note on a view; a note without text is a bookmark.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The view's address inside the page, `#/object?id=0x7f00`.
    pub view: String,
    /// What to call it.
    #[serde(default)]
    pub title: String,
    /// The words; one note per view, the last one counts.
    #[serde(default)]
    pub text: String,
    /// True takes the note away.
    #[serde(default, skip_serializing_if = "is_false")]
    pub removed: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

/// The notes about one dump.
#[derive(Debug)]
pub struct Notes {
    places: Vec<PathBuf>,
    writing: Mutex<()>,
}

impl Notes {
    /// Beside the dump, or in the cache folder where that cannot be written.
    pub(super) fn beside(dump: &Path, cache: Option<&Path>) -> Notes {
        let name = dump.file_name().map_or_else(
            || "heap.notes.jsonl".to_owned(),
            |n| format!("{}.notes.jsonl", n.to_string_lossy()),
        );
        let mut places = Vec::new();
        if dump.as_os_str() != "-" {
            places.push(dump.with_file_name(&name));
        }
        places.extend(cache.map(|dir| dir.join(&name)));
        Notes {
            places,
            writing: Mutex::new(()),
        }
    }

    /// All notes, by view. A file that is not ours, or is damaged, gives what can be read of it.
    pub fn all(&self) -> Vec<Note> {
        let mut notes: BTreeMap<String, Note> = BTreeMap::new();
        for place in &self.places {
            let Ok(file) = File::open(place) else {
                continue;
            };
            if file.metadata().is_ok_and(|m| m.len() > MOST_BYTES) {
                continue;
            }
            for line in BufReader::new(file).lines().map_while(Result::ok) {
                let Ok(note) = serde_json::from_str::<Note>(&line) else {
                    continue;
                };
                if note.removed {
                    notes.remove(&note.view);
                } else {
                    notes.insert(note.view.clone(), note);
                }
            }
        }
        notes.into_values().collect()
    }

    /// Appends a note.
    ///
    /// # Errors
    /// When it is too long, is about no view, or no place can be written.
    pub fn add(&self, note: &Note) -> Result<(), Fault> {
        let lengths = [&note.view, &note.title, &note.text].map(|t| t.chars().count());
        if !note.view.starts_with("#/") || lengths.iter().any(|n| *n > MOST_TEXT) {
            return Err(Fault::bad(
                "a note needs a view (#/...) and at most 10000 characters",
            ));
        }
        let mut line = serde_json::to_string(note).map_err(|e| Fault::failed(e.to_string()))?;
        line.push('\n');
        let _writing = self.writing.lock();
        let mut last = io::Error::other("standard input has no place for notes; use --cache-dir");
        for place in &self.places {
            match append(place, line.as_bytes()) {
                Ok(()) => return Ok(()),
                Err(error) => last = error,
            }
        }
        Err(Fault::failed(format!("the note cannot be kept: {last}")))
    }
}

fn append(place: &Path, line: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // What people write about a secret is secret.
        options.mode(0o600);
    }
    let mut file = options.open(place)?;
    if file.metadata()?.len() + line.len() as u64 > MOST_BYTES {
        return Err(io::Error::other("there are too many notes"));
    }
    file.write_all(line)
}
