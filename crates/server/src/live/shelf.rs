//! Tables of all classes that were kept, on demand or on schedule: each as a page that sorts
//! offline, CSV and JSON in the folder of the dumps; and what changed between two of them.

use super::classes::ClassRow;
use super::saved::{self, CLASSES};
use super::session::now_ms;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
#[derive(Serialize, Deserialize)]
struct Kept {
    schema: String,
    time_ms: u64,
    source: String,
    rows: Vec<ClassRow>,
}

/// Everything that was kept of one program.
#[derive(Debug)]
pub struct Shelf {
    folder: PathBuf,
    stem: String,
    list: Mutex<Vec<Saved>>,
}

impl Shelf {
    /// Files named `STEM-classes-N` in a folder, which is made when it is needed.
    pub fn new(folder: PathBuf, stem: String) -> Shelf {
        Shelf {
            folder,
            stem,
            list: Mutex::default(),
        }
    }

    /// Keeps a table, and gives its number. Nothing that exists is overwritten.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn keep(
        &self,
        source: &str,
        sizes_ms: Option<u64>,
        rows: Vec<ClassRow>,
    ) -> io::Result<usize> {
        fs::create_dir_all(&self.folder)?;
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut json, stem) = self.next_file("classes", "json", list.len() + 1)?;
        let kept = Kept {
            schema: "tenure.live.classes/1".to_owned(),
            time_ms: now_ms(),
            source: source.to_owned(),
            rows,
        };
        let cells = saved::texts(&kept.rows, CLASSES);
        serde_json::to_writer(&mut json, &kept)?;
        json.flush()?;
        for (form, text) in [
            ("csv", saved::csv(CLASSES, &cells)),
            ("html", saved::page("classes", CLASSES, &cells)),
        ] {
            create(&with_ending(&stem, form))?.write_all(text.as_bytes())?;
        }
        let number = list.len() + 1;
        list.push(Saved {
            number,
            time_ms: kept.time_ms,
            source: kept.source,
            sizes_ms,
            stem,
        });
        Ok(number)
    }

    /// Takes a table up that was kept earlier, if its file is there yet.
    pub fn add(&self, saved: Saved) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if saved.file("json").is_file() {
            let number = list.len() + 1;
            list.push(Saved { number, ..saved });
        }
    }

    /// Keeps a file of another kind, named `STEM-WHAT-N.FORM`. Nothing that exists is overwritten.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep_file(&self, what: &str, form: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        fs::create_dir_all(&self.folder)?;
        let (mut file, stem) = self.next_file(what, form, 1)?;
        file.write_all(bytes)?;
        Ok(with_ending(&stem, form))
    }

    /// The first file from number `n` on that does not exist yet.
    fn next_file(&self, what: &str, form: &str, mut n: usize) -> io::Result<(File, PathBuf)> {
        loop {
            let stem = self.folder.join(format!("{}-{what}-{n}", self.stem));
            match create(&with_ending(&stem, form)) {
                Ok(file) => return Ok((file, stem)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => n += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// All of them, in order of their numbers.
    pub fn list(&self) -> Vec<Saved> {
        let list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.clone()
    }

    /// One by its number.
    pub fn get(&self, number: usize) -> Option<Saved> {
        let list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.get(number.checked_sub(1)?).cloned()
    }
}

/// A new file, readable by its owner only.
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

/// A name may have dots of its own.
fn with_ending(stem: &Path, form: &str) -> PathBuf {
    let mut name = stem.as_os_str().to_owned();
    name.push(".");
    name.push(form);
    PathBuf::from(name)
}

impl Saved {
    /// Its file of a form: json, csv or html.
    pub fn file(&self, form: &str) -> PathBuf {
        with_ending(&self.stem, form)
    }

    /// Its rows, read from the file again.
    ///
    /// # Errors
    /// When the file is gone or was changed into something else.
    pub fn rows(&self) -> io::Result<Vec<ClassRow>> {
        let text = fs::read(self.file("json"))?;
        Ok(serde_json::from_slice::<Kept>(&text)?.rows)
    }
}

/// What became of a class from one table to another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Change {
    /// Class name.
    pub class: String,
    /// Live objects before.
    pub live_before: u64,
    /// Live objects after.
    pub live_after: u64,
    /// Their difference.
    pub live_change: i64,
    /// Bytes of live objects before.
    pub bytes_before: u64,
    /// Bytes of live objects after.
    pub bytes_after: u64,
    /// Their difference.
    pub bytes_change: i64,
    /// Difference of the bytes of arrays that they hold, where both tables know them.
    pub capacity_bytes_change: Option<i64>,
    /// Difference of the elements that they hold, where both tables know them.
    pub size_change: Option<i64>,
}

impl Change {
    /// The value of a column, unknown ones as no change; `None` when there is no such column.
    pub fn column(&self, name: &str) -> Option<f64> {
        let signed = |n: i64| n as f64;
        Some(match name {
            "live_before" => self.live_before as f64,
            "live_after" => self.live_after as f64,
            "live_change" => signed(self.live_change),
            "bytes_before" => self.bytes_before as f64,
            "bytes_after" => self.bytes_after as f64,
            "bytes_change" => signed(self.bytes_change),
            "capacity_bytes_change" => signed(self.capacity_bytes_change.unwrap_or(0)),
            "size_change" => signed(self.size_change.unwrap_or(0)),
            _ => return None,
        })
    }
}

fn difference(before: u64, after: u64) -> i64 {
    i64::try_from(i128::from(after) - i128::from(before)).unwrap_or(i64::MAX)
}

/// Every class of either table whose live objects changed in number, bytes or content. Content is
/// compared when it is known of both times (`contents`).
pub fn compare(before: Vec<ClassRow>, after: Vec<ClassRow>, contents: bool) -> Vec<Change> {
    let mut both: BTreeMap<String, [Option<ClassRow>; 2]> = BTreeMap::new();
    for (side, rows) in [before, after].into_iter().enumerate() {
        for row in rows {
            let sides = both.entry(row.class.clone()).or_default();
            sides[side] = Some(row);
        }
    }
    let changes = both.into_iter().map(|(class, sides)| {
        let [a, b] = sides.map(Option::unwrap_or_default);
        // What is not there holds nothing; what is there without sizes is not known.
        let known = |row: &ClassRow, value: Option<u64>| match row.live {
            0 => Some(value.unwrap_or(0)),
            _ => value,
        };
        let size = |row: &ClassRow| known(row, row.size.map(|size| size.sum));
        let capacity = |row: &ClassRow| known(row, row.capacity_bytes);
        let has = |row: &ClassRow| row.size.is_some();
        let sized = contents && (has(&a) || has(&b));
        let change = |a: Option<u64>, b: Option<u64>| Some(difference(a?, b?)).filter(|_| sized);
        Change {
            class,
            live_before: a.live,
            live_after: b.live,
            live_change: difference(a.live, b.live),
            bytes_before: a.live_bytes,
            bytes_after: b.live_bytes,
            bytes_change: difference(a.live_bytes, b.live_bytes),
            capacity_bytes_change: change(capacity(&a), capacity(&b)),
            size_change: change(size(&a), size(&b)),
        }
    });
    changes
        .filter(|change| {
            let content = [change.size_change, change.capacity_bytes_change];
            change.live_change != 0
                || change.bytes_change != 0
                || content.into_iter().flatten().any(|n| n != 0)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::classes::Measure;
    use super::*;

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
        let shelf = Shelf::new(folder.path().to_owned(), "p".to_owned());
        let rows = vec![row("a.B", 7, Some(3)), row("=evil()", 1, None)];
        assert_eq!(shelf.keep("recording", None, rows.clone()).unwrap(), 1);
        assert_eq!(shelf.keep("dump", Some(5), Vec::new()).unwrap(), 2);
        let saved = shelf.get(1).unwrap();
        assert_eq!(saved.rows().unwrap(), rows);
        assert!(saved.stem.ends_with("p-classes-2"));
        let csv = fs::read_to_string(folder.path().join("p-classes-2.csv")).unwrap();
        assert!(
            csv.contains("\r\na.B,") && csv.contains("'=evil()"),
            "{csv}"
        );
        let page = fs::read_to_string(folder.path().join("p-classes-2.html")).unwrap();
        assert!(page.contains("<td>a.B</td>"), "{page}");
        let mine = fs::read_to_string(folder.path().join("p-classes-1.json")).unwrap();
        assert_eq!(mine, "mine");
    }

    #[test]
    fn changes_are_after_less_before_and_unknown_sizes_stay_unknown() {
        let before = vec![
            row("gone", 2, Some(4)),
            row("same", 5, None),
            row("unsized", 1, None),
        ];
        let after = vec![
            row("new", 3, Some(9)),
            row("same", 5, None),
            row("unsized", 4, Some(2)),
        ];
        let unknown = compare(before.clone(), after.clone(), false);
        assert!(unknown.iter().all(|change| change.size_change.is_none()));
        let changes = compare(before, after, true);
        let seen: Vec<_> = changes
            .iter()
            .map(|c| (&*c.class, c.live_change, c.bytes_change, c.size_change))
            .collect();
        assert_eq!(
            seen,
            [
                ("gone", -2, -48, Some(-4)),
                ("new", 3, 72, Some(9)),
                ("unsized", 3, 72, None)
            ]
        );
    }
}
