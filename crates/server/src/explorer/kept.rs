//! A small file beside the dump, `heap.hprof.WHAT.jsonl`, of values as JSON lines. Lines are only ever appended, so
//! that two explorers of one dump do not destroy each other's data.

use heap_graph::path_tag;
use requests::Fault;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// A larger file was not written by Tenure.
const MOST_BYTES: u64 = 4 << 20;

/// The paths of the file, and a lock for writing.
#[derive(Debug)]
pub(super) struct Kept {
    what: &'static str,
    places: Vec<PathBuf>,
    writing: Mutex<()>,
}

impl Kept {
    /// Beside the dump, or in the cache folder if that folder cannot be written. There the name has a part for the
    /// folder of the dump, because dumps in different folders may have the same name.
    pub(super) fn beside(dump: &Path, cache: Option<&Path>, what: &'static str) -> Kept {
        let name = dump.file_name().unwrap_or_default().to_string_lossy();
        let mut places = Vec::new();
        if dump.as_os_str() != "-" {
            places.push(dump.with_file_name(format!("{name}.{what}.jsonl")));
            let tag = path_tag(dump);
            let of_cache = cache.zip(tag);
            places
                .extend(of_cache.map(|(dir, tag)| dir.join(format!("{tag}-{name}.{what}.jsonl"))));
        }
        Kept {
            what,
            places,
            writing: Mutex::new(()),
        }
    }

    /// All lines that can be parsed as such a value; other lines of a damaged or foreign file are skipped.
    pub(super) fn lines<T: DeserializeOwned>(&self) -> Vec<T> {
        let mut found = Vec::new();
        for place in &self.places {
            let Ok(file) = File::open(place) else {
                continue;
            };
            if file.metadata().is_ok_and(|m| m.len() > MOST_BYTES) {
                continue;
            }
            let lines = BufReader::new(file).split(b'\n').map_while(Result::ok);
            found.extend(lines.filter_map(|line| serde_json::from_slice(&line).ok()));
        }
        found
    }

    /// Appends a value.
    ///
    /// # Errors
    /// When no file can be written.
    pub(super) fn add(&self, value: &impl Serialize) -> Result<(), Fault> {
        let mut line = serde_json::to_string(value).map_err(|e| Fault::failed(e.to_string()))?;
        line.push('\n');
        let _writing = self.writing.lock();
        let mut last = io::Error::other(
            "nothing is stored for a dump from standard input; save it as a file first",
        );
        for place in &self.places {
            match append(place, line.as_bytes()) {
                Ok(()) => return Ok(()),
                Err(error) => last = error,
            }
        }
        let what = self.what;
        Err(Fault::failed(format!("{what} cannot be kept: {last}")))
    }
}

fn append(place: &Path, line: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // Notes about a secret may contain the secret.
        options.mode(0o600);
    }
    let mut file = options.open(place)?;
    let length = file.metadata()?.len();
    if length + line.len() as u64 + 1 > MOST_BYTES {
        return Err(io::Error::other("the file is full"));
    }
    // A line that was cut, for instance by a full disk, must not take this one with it.
    let mut last = [b'\n'];
    if length > 0 {
        file.seek(SeekFrom::Start(length - 1))?;
        file.read_exact(&mut last)?;
    }
    match last {
        [b'\n'] => file.write_all(line),
        _ => file.write_all(&[b"\n".as_slice(), line].concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumps_of_one_name_in_different_folders_share_no_file_in_a_cache() {
        let folder = tempfile::tempdir().expect("a folder");
        // A folder is where the file would be: nothing can be written beside the dumps.
        let dumps = ["a", "b"].map(|name| {
            let dump = folder.path().join(name).join("heap.hprof");
            std::fs::create_dir(dump.parent().expect("a folder")).expect("created");
            std::fs::write(&dump, b"").expect("written");
            std::fs::create_dir(dump.with_file_name("heap.hprof.words.jsonl")).expect("created");
            dump
        });
        let [a, b] = dumps.map(|dump| Kept::beside(&dump, Some(folder.path()), "words"));
        a.add(&"of a").expect("written");
        assert_eq!(a.lines::<String>(), ["of a"]);
        assert!(b.lines::<String>().is_empty());
        b.add(&"of b").expect("written");
        assert_eq!(a.lines::<String>(), ["of a"]);
        let input = Kept::beside("-".as_ref(), Some(folder.path()), "words");
        assert!(input.add(&"of any dump").is_err());
    }

    #[test]
    fn damaged_lines_hide_no_other_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let dump = folder.path().join("heap.hprof");
        let kept = Kept::beside(&dump, None, "words");
        kept.add(&"one").expect("written");
        let mut file = OpenOptions::new()
            .append(true)
            .open(folder.path().join("heap.hprof.words.jsonl"))
            .expect("the file");
        file.write_all(b"\"\xff\"\n\"two\"\n\"cu").expect("written");
        kept.add(&"three").expect("written");
        kept.add(&"four").expect("written");
        assert_eq!(kept.lines::<String>(), ["one", "two", "three", "four"]);
    }
}
