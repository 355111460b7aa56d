//! Saved tables of all classes, on demand or periodically: each as a page that can be sorted offline, as CSV and as
//! JSON, in the folder of the dumps.

use super::table_forms;
use crate::clock::now_ms;
use live_analysis::classes::ClassRow;
use live_analysis::columns::Tabular;
use live_analysis::table::Fields;
use report::live;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// A table that was kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Saved {
    /// Number, from 1.
    pub number: usize,
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// Where its counts come from: recording, dump or vm.
    pub source: String,
    /// When the heap dump was taken that sizes and capacities are from, if there was one.
    pub sizes_ms: Option<u64>,
    /// The file without `.json`, `.csv`, `.html`.
    pub stem: PathBuf,
}

/// What a JSON file holds: `tenure.live.classes/1`.
#[derive(Serialize)]
struct Written<'a> {
    schema: &'static str,
    time_ms: u64,
    source: &'a str,
    rows: Vec<Fields<'a, ClassRow>>,
}

/// The part of it that is read again.
#[derive(Deserialize)]
struct Read {
    rows: Vec<ClassRow>,
}

/// All saved tables of one program.
#[derive(Debug)]
pub struct SavedTables {
    folder: PathBuf,
    stem: String,
    list: Mutex<Vec<Saved>>,
}

impl SavedTables {
    /// Files named `STEM-classes-N` in a folder, which is created when it is needed.
    pub fn new(folder: PathBuf, stem: String) -> SavedTables {
        SavedTables {
            folder,
            stem,
            list: Mutex::default(),
        }
    }

    /// Saves a table, and returns its number. Existing files are never overwritten.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn keep(
        &self,
        source: &str,
        sizes_ms: Option<u64>,
        rows: Vec<ClassRow>,
    ) -> io::Result<usize> {
        fs::create_dir_all(&self.folder)?;
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let columns = ClassRow::COLUMNS;
        let fields = |row| Fields { columns, row };
        let written = Written {
            schema: ClassRow::SCHEMA,
            time_ms: now_ms(),
            source,
            rows: rows.iter().map(fields).collect(),
        };
        let forms = [
            ("json", serde_json::to_vec(&written)?),
            ("csv", live::csv(columns, &rows).into_bytes()),
            (
                "html",
                table_forms::page("classes", columns, &rows).into_bytes(),
            ),
        ];
        let stem = self.store("classes", list.len() + 1, &forms)?;
        let number = list.len() + 1;
        list.push(Saved {
            number,
            time_ms: written.time_ms,
            source: source.to_owned(),
            sizes_ms,
            stem,
        });
        Ok(number)
    }

    /// Adds a table that was saved earlier, if its file still exists.
    pub fn add(&self, saved: Saved) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if saved.file("json").is_file() {
            let number = list.len() + 1;
            list.push(Saved { number, ..saved });
        }
    }

    /// Saves a file of another kind, named `STEM-WHAT-N.FORM`. Existing files are never overwritten.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn keep_file(&self, what: &str, form: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        fs::create_dir_all(&self.folder)?;
        let stem = self.store(what, 1, &[(form, bytes)])?;
        Ok(with_ending(&stem, form))
    }

    /// Writes files of these forms under the first number from `n` on that none of them has yet, and returns their name
    /// without the form. If one cannot be written, there is none.
    fn store(
        &self,
        what: &str,
        mut n: usize,
        forms: &[(&str, impl AsRef<[u8]>)],
    ) -> io::Result<PathBuf> {
        loop {
            let stem = self.folder.join(format!("{}-{what}-{n}", self.stem));
            let mut created = Vec::new();
            let stored = forms.iter().try_for_each(|(form, bytes)| {
                let path = with_ending(&stem, form);
                let mut file = create(&path)?;
                created.push(path);
                file.write_all(bytes.as_ref())
            });
            let Err(error) = stored else { return Ok(stem) };
            for path in created {
                let _ = fs::remove_file(path);
            }
            match error.kind() {
                io::ErrorKind::AlreadyExists => n += 1,
                _ => return Err(error),
            }
        }
    }

    /// All saved tables, in the order of their numbers.
    pub fn list(&self) -> Vec<Saved> {
        let list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.clone()
    }

    /// A saved table by its number.
    pub fn get(&self, number: usize) -> Option<Saved> {
        let list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.get(number.checked_sub(1)?).cloned()
    }
}

/// A new file that only its owner can read.
fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path)
}

/// Appends the ending, because a name may contain dots.
fn with_ending(stem: &Path, form: &str) -> PathBuf {
    let mut name = stem.as_os_str().to_owned();
    name.push(".");
    name.push(form);
    PathBuf::from(name)
}

impl Saved {
    /// Its file in a format: json, csv or html.
    pub fn file(&self, form: &str) -> PathBuf {
        with_ending(&self.stem, form)
    }

    /// Its rows, read from the file.
    ///
    /// # Errors
    /// The file does not exist any more, or its content is invalid.
    pub fn rows(&self) -> io::Result<Vec<ClassRow>> {
        let text = fs::read(self.file("json"))?;
        Ok(serde_json::from_slice::<Read>(&text)?.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use live_analysis::classes::Measure;

    fn row(class: &str, live: u64, size: Option<u64>) -> ClassRow {
        ClassRow {
            class: class.to_owned(),
            live,
            live_bytes: live * 24,
            size: size.map(|sum| Measure {
                sum,
                ..Measure::default()
            }),
            capacity_bytes: size.map(|sum| sum * 8),
            ..ClassRow::default()
        }
    }

    #[test]
    fn what_is_kept_is_read_again_and_never_overwrites() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("p-classes-1.json"), "mine").unwrap();
        let saved_tables = SavedTables::new(folder.path().to_owned(), "p".to_owned());
        let rows = vec![row("a.B", 7, Some(3)), row("=evil()", 1, None)];
        assert_eq!(
            saved_tables.keep("recording", None, rows.clone()).unwrap(),
            1
        );
        assert_eq!(saved_tables.keep("dump", Some(5), Vec::new()).unwrap(), 2);
        let saved = saved_tables.get(1).unwrap();
        assert_eq!(saved.rows().unwrap(), rows);
        assert!(saved.stem.ends_with("p-classes-2"));
        let csv = fs::read_to_string(folder.path().join("p-classes-2.csv")).unwrap();
        assert!(
            csv.contains("\r\na.B,") && csv.contains("'=evil()"),
            "{csv}"
        );
        // Neither does a part of a name that another file has.
        fs::write(folder.path().join("p-classes-4.html"), "mine").unwrap();
        saved_tables.keep("dump", None, rows).unwrap();
        assert!(saved_tables.get(3).unwrap().stem.ends_with("p-classes-5"));
        assert!(!folder.path().join("p-classes-4.json").exists());
        let page = fs::read_to_string(folder.path().join("p-classes-2.html")).unwrap();
        assert!(page.contains("<td>a.B</td>"), "{page}");
        let mine = fs::read_to_string(folder.path().join("p-classes-1.json")).unwrap();
        assert_eq!(mine, "mine");
    }

    #[test]
    fn a_save_that_fails_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let saved_tables = SavedTables::new(folder.path().to_owned(), "p".repeat(230));
        // The second name is too long for the file system.
        let forms = [("json", "rows"), ("an-ending-of-some-length", "rows")];
        assert!(saved_tables.store("classes", 1, &forms).is_err());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
