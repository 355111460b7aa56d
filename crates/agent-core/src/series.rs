//! The files of a continuous recording. Their names contain the time; a file has a temporary name until it is complete;
//! the files, with those that are being written, take no more space than the limit, unless one alone is larger.

use crate::host::WallTime;
use crate::options::{Keep, Patterns, expand};
use locks::{Mutex, Rank};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// The placeholder for the time in a template.
const TIME: char = '\u{1}';
/// The placeholder for the process id in a template.
const PROCESS: char = '\u{2}';
/// The ending of a file's name until it is complete.
const PART: &str = ".part";
/// A temporary file is abandoned by a killed process only if it is at least this old: a process that starts has locked
/// its file by then.
const ABANDONED: Duration = Duration::from_secs(10);
/// The same on a file system without locks: hardly a file of a series takes so long. The process id in a name would not show
/// whether the process runs, because other containers and machines have ids of their own.
const ABANDONED_WITHOUT_LOCKS: Duration = Duration::from_secs(7 * 86_400);
/// A file that another process completes in the meantime is at most so much later.
const SAME_TIME: Duration = Duration::from_secs(60);

/// The files that series of this process have begun or written.
static OWN: Mutex<BTreeSet<PathBuf>> = Mutex::new(Rank::SeriesFiles, BTreeSet::new());

/// Bytes that series of this process have written. Two files are open while one follows the other.
static WRITTEN: AtomicU64 = AtomicU64::new(0);

/// The names of the files of a series, in one folder.
#[derive(Clone, Debug)]
pub struct Series {
    folder: PathBuf,
    /// The name, with [`TIME`] and [`PROCESS`] in it.
    template: String,
    keep: Keep,
}

impl Series {
    /// The series of a name with `%t`; if the name has none, the time is inserted before its ending. Patterns in the
    /// folder are replaced only once.
    pub fn new(
        name: &str,
        keep: Keep,
        patterns: &Patterns<'_>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Series {
        let (folder, file) = match name.rsplit_once('/') {
            Some((folder, file)) => (expand(&format!("{folder}/"), patterns, &variable), file),
            None => (String::new(), name),
        };
        let (time, process) = (TIME.to_string(), PROCESS.to_string());
        let placed = Patterns {
            pid: &process,
            time: &time,
            host: patterns.host,
        };
        let mut template = expand(file, &placed, &variable);
        if !template.contains(TIME) {
            // The first dot of `app.hprof.txt`, but not that of a hidden file.
            let dot = template.char_indices().skip(1).find(|(_, c)| *c == '.');
            template.insert_str(
                dot.map_or(template.len(), |(at, _)| at),
                &format!("-{TIME}"),
            );
        }
        Series {
            folder: PathBuf::from(folder),
            template,
            keep,
        }
    }

    /// Begins the next file.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn begin(&self, time: &str, pid: u32) -> io::Result<Part> {
        let name = self.template.replace(PROCESS, &pid.to_string());
        for number in 1.. {
            let path = self.numbered(&name, time, number);
            let mut part = path.clone().into_os_string();
            part.push(PART);
            let part = PathBuf::from(part);
            let created = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&part);
            match created {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                // Only now, because another series may have completed this file in the meantime.
                Ok(_) if path.exists() => drop(fs::remove_file(part)),
                Ok(file) => {
                    let _ = file.try_lock();
                    OWN.lock().insert(path.clone());
                    return Ok(Part {
                        file,
                        part,
                        path,
                        name,
                        time: time.to_owned(),
                        series: self.clone(),
                        until: match self.keep {
                            Keep::Files(_) => u64::MAX,
                            Keep::Bytes(_) => 0,
                        },
                        is_empty: true,
                        has_failed: false,
                    });
                }
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The path of the file of this number that begins at this time.
    fn numbered(&self, name: &str, time: &str, number: u32) -> PathBuf {
        let time = match number {
            1 => time.to_owned(),
            _ => format!("{time}-{number}"),
        };
        self.folder.join(name.replace(TIME, &time))
    }

    /// Removes the oldest files until the rest, with those that are open and with `more` bytes, is within the limit, and
    /// the temporary files of killed processes. `path` is the file that is complete now, which is always kept, or that of
    /// an open file. Returns how many bytes may be written until this must be done again. While another process writes a series of the same names, only files of
    /// this process are counted and removed. A file of a later time is an old one: the clock was set back since.
    fn prune(&self, path: &Path, more: u64) -> u64 {
        let folder = match self.folder.as_os_str().is_empty() {
            true => Path::new("."),
            false => &self.folder,
        };
        let mut own = OWN.lock();
        let (mut whole, mut names) = (Vec::new(), BTreeSet::new());
        let (mut has_others, mut is_complete) = (false, true);
        let (mut open, mut newest) = (more, None);
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let (Some(name), Ok(about)) = (name.to_str(), entry.metadata()) else {
                continue;
            };
            let modified = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let final_name = name.strip_suffix(PART).unwrap_or(name);
            if !about.is_file() || !matches(&self.template, final_name) {
                continue;
            }
            let this = self.folder.join(final_name);
            if this == path {
                // By the clock of the file system, which may differ from that of this machine.
                newest = Some(modified);
                is_complete = final_name == name;
            }
            if final_name == name {
                whole.push((modified, this.clone(), about.len()));
            } else if own.contains(&this) {
                open = open.saturating_add(about.len());
            } else {
                let age = modified.elapsed().unwrap_or_default();
                if age >= ABANDONED && is_abandoned(&entry.path(), age) {
                    let _ = fs::remove_file(entry.path());
                } else {
                    has_others = true;
                }
            }
            names.insert(this);
        }
        own.retain(|path| path.parent() != Some(&self.folder) || names.contains(path));
        if has_others {
            whole.retain(|(_, path, _)| own.contains(path));
        }
        let newest = newest.unwrap_or_else(SystemTime::now);
        let is_later = |modified: SystemTime| {
            let ahead = modified.duration_since(newest).unwrap_or_default();
            ahead > SAME_TIME
        };
        whole.sort_unstable_by_key(|(modified, one, _)| {
            (one == path, !is_later(*modified), *modified, one.clone())
        });
        let sizes: Vec<u64> = whole.iter().map(|(_, _, size)| *size).collect();
        let excess = excess(&sizes, self.keep, open, is_complete.into());
        for (_, path, _) in &whole[..excess] {
            let _ = fs::remove_file(path);
            own.remove(path);
        }
        let kept = &sizes[excess..];
        match self.keep {
            Keep::Bytes(most) if !kept.is_empty() => {
                most.saturating_sub(kept.iter().sum::<u64>() + (open - more))
            }
            _ => u64::MAX,
        }
    }
}

/// How many of these sizes, from the first and oldest one on, must be removed beside open files of so many bytes. At least
/// so many stay.
fn excess(sizes: &[u64], keep: Keep, open: u64, least: usize) -> usize {
    let kept = match keep {
        Keep::Files(most) => usize::try_from(most).unwrap_or(usize::MAX),
        Keep::Bytes(most) => {
            let mut sum = open;
            let newest_first = sizes.iter().rev();
            newest_first
                .take_while(|size| {
                    sum = sum.saturating_add(**size);
                    sum <= most
                })
                .count()
        }
    };
    sizes.len().saturating_sub(kept.max(least))
}

/// Whether the process that wrote a file has ended.
fn is_abandoned(part: &Path, age: Duration) -> bool {
    let file = OpenOptions::new().write(true).open(part);
    file.is_ok_and(|file| has_ended(file.try_lock(), age))
}

/// The same, when its file has been locked, or not. While it runs, it has a lock on the file.
fn has_ended(locked: Result<(), TryLockError>, age: Duration) -> bool {
    match locked {
        Ok(()) => true,
        Err(TryLockError::WouldBlock) => false,
        Err(TryLockError::Error(_)) => age >= ABANDONED_WITHOUT_LOCKS,
    }
}

/// Whether the template can produce this name.
fn matches(template: &str, name: &str) -> bool {
    let mut rest = template.chars();
    match rest.next() {
        None => name.is_empty(),
        Some(PROCESS) => {
            let digits = digits(name);
            digits > 0 && matches(rest.as_str(), &name[digits..])
        }
        Some(TIME) => {
            let Some(mut after) = after_time(name) else {
                return false;
            };
            after = after.strip_prefix('Z').unwrap_or(after);
            if matches(rest.as_str(), after) {
                return true;
            }
            let numbered = after.strip_prefix('-').map(|tail| &tail[digits(tail)..]);
            numbered.is_some_and(|after| matches(rest.as_str(), after))
        }
        Some(c) => name
            .strip_prefix(c)
            .is_some_and(|name| matches(rest.as_str(), name)),
    }
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// The rest of a name after a time such as `20260131-235959`.
fn after_time(name: &str) -> Option<&str> {
    let (day, rest) = name.split_at_checked(8)?;
    let (time, rest) = rest.strip_prefix('-')?.split_at_checked(6)?;
    (digits(day) == 8 && digits(time) == 6).then_some(rest)
}

/// A file of a series that is being written. On drop, it gets its name; it is removed instead if nothing was written or
/// a write failed.
#[derive(Debug)]
pub struct Part {
    file: File,
    part: PathBuf,
    path: PathBuf,
    /// The name, with [`TIME`] in it.
    name: String,
    time: String,
    series: Series,
    /// The value of [`WRITTEN`] up to which no older files must be removed.
    until: u64,
    is_empty: bool,
    has_failed: bool,
}

impl Part {
    /// The final name, unless another program creates a file of this name in the meantime.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Ends the file and returns its name; `None` if there is none, because nothing was written or a write failed.
    ///
    /// # Errors
    /// It cannot be renamed.
    pub fn finish(mut self) -> io::Result<Option<PathBuf>> {
        let is_named = self.end()?;
        Ok(is_named.then(|| self.path.clone()))
    }

    /// Gives the file its name; false if it is removed instead, or has ended before.
    fn end(&mut self) -> io::Result<bool> {
        let part = std::mem::take(&mut self.part);
        if part.as_os_str().is_empty() {
            return Ok(false);
        }
        let named = match self.is_empty || self.has_failed {
            true => fs::remove_file(&part).map(|()| false),
            false => self.rename(&part).map(|()| true),
        };
        self.series.prune(&self.path, 0);
        named
    }

    /// Renames the file to the first name from its own on that no other file has.
    fn rename(&mut self, part: &Path) -> io::Result<()> {
        let mut free = self.path.clone();
        for number in 2.. {
            match fs::hard_link(part, &free) {
                Ok(()) => drop(fs::remove_file(part)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists || free.exists() => {
                    free = self.series.numbered(&self.name, &self.time, number);
                    continue;
                }
                // The file system does not support links.
                Err(_) => fs::rename(part, &free)?,
            }
            break;
        }
        let mut own = OWN.lock();
        own.remove(&self.path);
        own.insert(free.clone());
        drop(own);
        self.path = free;
        Ok(())
    }

    /// Removes the file on drop instead of renaming it.
    pub fn abandon(&mut self) {
        self.has_failed = true;
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let size = bytes.len() as u64;
        let before = WRITTEN.load(Ordering::Relaxed);
        if before.saturating_add(size) > self.until {
            self.until = before.saturating_add(self.series.prune(&self.path, size));
        }
        let written = self.file.write(bytes);
        match &written {
            Ok(count) => {
                self.is_empty &= *count == 0;
                WRITTEN.fetch_add(*count as u64, Ordering::Relaxed);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.has_failed = true,
        }
        written
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

impl WallTime {
    /// The time in the names of files: `20260131-235959`.
    pub fn stamp(self) -> String {
        let seconds = (self.unix_ms / 1000) as i64 + i64::from(self.offset_seconds);
        let (days, clock) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = crate::host::civil(days);
        format!(
            "{year}{:02}{day:02}-{:02}{:02}{:02}",
            month + 1,
            clock / 3600,
            clock / 60 % 60,
            clock % 60
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const T: &str = "20260131-235959";

    fn series(name: &str, keep: Keep) -> Series {
        let patterns = Patterns {
            pid: "42",
            time: T,
            host: "box",
        };
        Series::new(name, keep, &patterns, |_| None)
    }

    fn write(series: &Series, text: &str) -> PathBuf {
        let mut part = series.begin(T, 42).unwrap();
        part.write_all(text.as_bytes()).unwrap();
        part.path().to_owned()
    }

    fn listing(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().flatten();
        let mut names: Vec<_> = entries
            .map(|entry| entry.file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_stamp_sorts_by_time() {
        let time = WallTime {
            unix_ms: 1_795_237_044_000,
            offset_seconds: 0,
        };
        assert_eq!(time.stamp(), "20261121-045724");
    }

    #[test]
    fn names_have_the_time_of_each_file() {
        let check = |name: &str, expected: &str| {
            let folder = tempfile::tempdir().unwrap();
            let series = series(
                &format!("{}/{name}", folder.path().display()),
                Keep::Files(9),
            );
            let path = write(&series, "x");
            assert_eq!(path, folder.path().join(expected));
            assert_eq!(listing(folder.path()), [expected]);
        };
        check("a-%t-%p.hprof", "a-20260131-235959-42.hprof");
        check("a.hprof.txt", "a-20260131-235959.hprof.txt");
        check("%h", "box-20260131-235959");
        check(".a", ".a-20260131-235959");
    }

    #[test]
    fn a_file_has_its_name_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let series = series(&format!("{}/a-%t", folder.path().display()), Keep::Files(9));
        let mut part = series.begin(T, 42).unwrap();
        part.write_all(b"text").unwrap();
        assert_eq!(listing(folder.path()), [format!("a-{T}.part")]);
        // A second file in the same second.
        let other = series.begin(T, 42).unwrap();
        assert!(other.path().ends_with(format!("a-{T}-2")));
        drop(other);
        drop(part);
        assert_eq!(listing(folder.path()), [format!("a-{T}")]);
        let mut failed = series.begin(T, 42).unwrap();
        failed.write_all(b"text").unwrap();
        failed.abandon();
        drop(failed);
        assert_eq!(listing(folder.path()), [format!("a-{T}")]);
    }

    #[test]
    fn only_names_of_the_template_are_of_the_series() {
        let check = |template: &str, name: &str, expected| {
            let template = template.replace("%t", "\u{1}").replace("%p", "\u{2}");
            assert_eq!(matches(&template, name), expected, "{template} {name}");
        };
        check("a-%t.hprof", "a-20260131-235959.hprof", true);
        check("a-%t.hprof", "a-20260131-235959Z.hprof", true);
        check("a-%t.hprof", "a-20260131-235959-17.hprof", true);
        check("a-%t-%p.hprof", "a-20260131-235959-17.hprof", true);
        check("a-%t-%p.hprof", "a-20260131-235959-2-17.hprof", true);
        check("a-%t.hprof", "a-20260131-235959.hprof.bak", false);
        check("a-%t.hprof", "a-20260131.hprof", false);
        check("a-%t.hprof", "b-20260131-235959.hprof", false);
        check("a-%p", "a-", false);
        check("%t", "2026013é-235959", false);
    }

    #[test]
    fn the_oldest_files_go() {
        assert_eq!(excess(&[1; 5], Keep::Files(3), 0, 1), 2);
        assert_eq!(excess(&[1; 2], Keep::Files(3), 0, 1), 0);
        assert_eq!(excess(&[5, 4, 3, 2], Keep::Bytes(6), 0, 1), 2);
        assert_eq!(excess(&[5, 4, 3, 2], Keep::Bytes(9), 0, 1), 1);
        assert_eq!(
            excess(&[5, 50], Keep::Bytes(9), 0, 1),
            1,
            "the newest stays"
        );
        assert_eq!(excess(&[], Keep::Files(1), 0, 1), 0);
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("other"), "kept").unwrap();
        let series = series(&format!("{}/a-%t", folder.path().display()), Keep::Files(2));
        let paths: Vec<_> = (0..5).map(|_| write(&series, "x")).collect();
        let name = |at: usize| paths[at].file_name().unwrap().to_str().unwrap().to_owned();
        let mut expected = vec![name(3), name(4), "other".to_owned()];
        expected.sort();
        assert_eq!(listing(folder.path()), expected);
    }

    #[test]
    fn older_files_go_while_a_file_grows() {
        let folder = tempfile::tempdir().unwrap();
        let size = || -> u64 {
            let files = fs::read_dir(folder.path()).unwrap().flatten();
            files.map(|file| file.metadata().unwrap().len()).sum()
        };
        let series = series(
            &format!("{}/a-%t", folder.path().display()),
            Keep::Bytes(10),
        );
        for _ in 0..3 {
            let mut part = series.begin(T, 42).unwrap();
            for _ in 0..4 {
                part.write_all(b"x").unwrap();
                assert!(size() <= 10, "{:?}", listing(folder.path()));
            }
        }
        assert_eq!(size(), 8, "two files");
        // One file follows another.
        let mut last = series.begin(T, 42).unwrap();
        last.write_all(b"x").unwrap();
        let mut next = series.begin(T, 42).unwrap();
        next.write_all(b"x").unwrap();
        last.write_all(b"xx").unwrap();
        next.write_all(b"x").unwrap();
        assert!(size() <= 10, "{:?}", listing(folder.path()));
        drop((last, next));
        // A file that is larger than the limit remains alone.
        write(&series, &"x".repeat(11));
        assert_eq!((size(), listing(folder.path()).len()), (11, 1));
        let mut next = series.begin(T, 42).unwrap();
        next.write_all(b"x").unwrap();
        assert_eq!((size(), listing(folder.path()).len()), (1, 1));
    }

    #[test]
    fn a_new_file_stays_after_the_clock_was_set_back() {
        let folder = tempfile::tempdir().unwrap();
        let later = SystemTime::now() + Duration::from_secs(3600);
        for name in ["a-20270101-000000", "a-20270102-000000"] {
            let file = File::create(folder.path().join(name)).unwrap();
            file.set_modified(later).unwrap();
        }
        let series = series(&format!("{}/a-%t", folder.path().display()), Keep::Files(2));
        let paths = [write(&series, "x"), write(&series, "x")];
        let mut names = paths.map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
        names.sort();
        assert_eq!(listing(folder.path()), names);
    }

    #[test]
    fn a_file_that_appears_while_a_part_is_written_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let series = series(&format!("{}/a-%t", folder.path().display()), Keep::Files(9));
        let mut part = series.begin(T, 42).unwrap();
        part.write_all(b"recorded").unwrap();
        let other = part.path().to_owned();
        fs::write(&other, "of another").unwrap();
        let path = part.finish().unwrap().unwrap();
        assert_eq!(path, folder.path().join(format!("a-{T}-2")));
        assert_eq!(fs::read_to_string(path).unwrap(), "recorded");
        assert_eq!(fs::read_to_string(other).unwrap(), "of another");
        assert_eq!(listing(folder.path()).len(), 2);
    }

    #[test]
    fn files_of_another_process_stay_while_it_writes() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let old = SystemTime::now() - Duration::from_secs(3600);
        let other = ["a-20260131-000000", "a-20260131-000001"];
        for name in other {
            File::create(path(name)).unwrap().set_modified(old).unwrap();
        }
        let part = File::create(path("a-20260131-000002.part")).unwrap();
        part.set_modified(old).unwrap();
        part.lock().unwrap();
        let series = series(&format!("{}/a-%t", folder.path().display()), Keep::Files(1));
        write(&series, "x");
        let last = write(&series, "x");
        let last = last.file_name().unwrap().to_str().unwrap();
        let expected = [other[0], other[1], "a-20260131-000002.part", last];
        assert_eq!(listing(folder.path()), expected);
        // It is killed: what it has left counts.
        drop(part);
        let last = write(&series, "x");
        let last = last.file_name().unwrap().to_str().unwrap();
        assert_eq!(listing(folder.path()), [last]);
    }

    #[test]
    fn an_old_file_is_abandoned_where_there_are_no_locks() {
        let without_locks = |days: u64| {
            let error = io::Error::from(io::ErrorKind::Unsupported);
            let age = Duration::from_secs(days * 86_400);
            has_ended(Err(TryLockError::Error(error)), age)
        };
        assert!(without_locks(8) && !without_locks(6));
        let old = Duration::from_secs(100 * 86_400);
        assert!(!has_ended(Err(TryLockError::WouldBlock), old));
    }

    #[test]
    fn what_a_killed_process_has_left_goes_and_what_another_writes_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let series = series(&format!("{}/a-%t", folder.path().display()), Keep::Files(2));
        let part = series.begin(T, 42).unwrap();
        let old = SystemTime::now() - Duration::from_secs(3600);
        part.file.set_modified(old).unwrap();
        let left = path("a-20260131-000000.part");
        File::create(&left).unwrap().set_modified(old).unwrap();
        File::create(path("a-20260131-000001.part")).unwrap();
        series.prune(Path::new(""), 0);
        assert_eq!(
            listing(folder.path()),
            ["a-20260131-000001.part".to_owned(), format!("a-{T}.part")]
        );
    }
}
