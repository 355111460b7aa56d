//! The files of a continuous recording. Their names contain the time; a file has a temporary name until it is complete;
//! the files, with those that are being written, take no more space than the limit, unless one alone is larger.
//!
//! A file may be made of another one, its data, when that is complete. The data has the same name with a further ending,
//! belongs to the series in the same way, and is removed when the file has its name.

use crate::host::WallTime;
use crate::options::{Keep, Patterns, expand};
use locks::{Mutex, Rank};
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Seek, SeekFrom, Write};
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
/// The further ending of data that a file is made of.
const DATA: &str = ".hprof";
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
    /// The files are made of data.
    has_data: bool,
    /// A file replaces one of its name.
    replaces: bool,
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
            template.insert_str(ending_of(&template), &format!("-{TIME}"));
        }
        Series {
            folder: PathBuf::from(folder),
            template,
            keep,
            has_data: false,
            replaces: false,
        }
    }

    /// A single file of exactly this name, or of this name with a number if another recording is writing one of this name
    /// or, unless it `replaces` it, if there is one.
    pub fn single(name: &Path, replaces: bool) -> Series {
        let file = name.file_name().unwrap_or_default();
        Series {
            folder: name.parent().unwrap_or(Path::new("")).to_owned(),
            template: file.to_string_lossy().into_owned(),
            keep: Keep::Files(u64::MAX),
            has_data: false,
            replaces,
        }
    }

    /// The same series, whose files are made of data.
    #[must_use]
    pub fn of_data(self) -> Series {
        let has_data = true;
        Series { has_data, ..self }
    }

    /// Begins the next file.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn begin(&self, time: &str, pid: u32) -> io::Result<Part> {
        if !self.template.contains(TIME) {
            // What a killed process has left would have the same name.
            self.prune(Path::new(""), 0);
        }
        let name = self.template.replace(PROCESS, &pid.to_string());
        self.open(name, time, 1, if self.has_data { DATA } else { "" })
    }

    /// Opens the first file from this number on whose name is free; it has the further ending.
    fn open(&self, name: String, time: &str, first: u32, ending: &'static str) -> io::Result<Part> {
        for number in first.. {
            let path = self.numbered(&name, time, number);
            let whole = with_ending(&path, ending);
            let part = with_ending(&whole, PART);
            let created = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&part);
            match created {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                // Only now, because another series may have completed this file in the meantime.
                Ok(_) if !self.replaces && (whole.exists() || path.exists()) => {
                    drop(fs::remove_file(part));
                }
                Ok(file) => {
                    let _ = file.try_lock();
                    OWN.lock().insert(path.clone());
                    return Ok(Part {
                        file,
                        part,
                        path,
                        number,
                        ending,
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
        if number > 1 && !name.contains(TIME) {
            let mut name = name.to_owned();
            name.insert_str(ending_of(&name), &format!("-{number}"));
            return self.folder.join(name);
        }
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
        let (mut has_others, mut is_complete) = (false, None);
        let (mut open, mut newest) = (more, None);
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let (Some(name), Ok(about)) = (name.to_str(), entry.metadata()) else {
                continue;
            };
            let modified = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let whole_name = name.strip_suffix(PART).unwrap_or(name);
            let data = whole_name.strip_suffix(DATA).filter(|_| self.has_data);
            let final_name = data.unwrap_or(whole_name);
            if !about.is_file() || !matches(&self.template, final_name) {
                continue;
            }
            let this = self.folder.join(final_name);
            if this == path {
                // By the clock of the file system, which may differ from that of this machine.
                newest = newest.max(Some(modified));
                is_complete = Some(is_complete == Some(true) || whole_name == name);
            }
            if whole_name == name {
                whole.push((modified, this.clone(), about.len(), entry.path()));
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
            whole.retain(|(_, path, ..)| own.contains(path));
        }
        let newest = newest.unwrap_or_else(SystemTime::now);
        let is_later = |modified: SystemTime| {
            let ahead = modified.duration_since(newest).unwrap_or_default();
            ahead > SAME_TIME
        };
        whole.sort_unstable_by_key(|(modified, one, ..)| {
            (one == path, !is_later(*modified), *modified, one.clone())
        });
        let sizes: Vec<u64> = whole.iter().map(|(_, _, size, _)| *size).collect();
        let excess = excess(&sizes, self.keep, open, is_complete.unwrap_or(true).into());
        for (_, path, _, file) in &whole[..excess] {
            let _ = fs::remove_file(file);
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

/// Where the ending of a file name begins: at the first dot of `app.hprof.txt`, but not that of a hidden file.
fn ending_of(name: &str) -> usize {
    let dot = name.char_indices().skip(1).find(|(_, c)| *c == '.');
    dot.map_or(name.len(), |(at, _)| at)
}

/// The path with a further ending.
fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut path = path.to_owned().into_os_string();
    path.push(ending);
    PathBuf::from(path)
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
    /// The number of `path` among those of its time.
    number: u32,
    /// What follows `path` in the name that the file gets.
    ending: &'static str,
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
        Ok(is_named.then(|| with_ending(&self.path, self.ending)))
    }

    /// Whether something was written, and no write failed.
    pub fn is_usable(&self) -> bool {
        !self.is_empty && !self.has_failed
    }

    /// Bytes written so far.
    ///
    /// # Errors
    /// The file cannot be examined.
    pub fn size(&self) -> io::Result<u64> {
        self.file.metadata().map(|about| about.len())
    }

    /// All bytes written so far.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self) -> io::Result<Vec<u8>> {
        fs::read(&self.part)
    }

    /// Begins the file that is made of this data. It is complete even if nothing is written.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn begin_whole(&self) -> io::Result<Part> {
        let mut part = self
            .series
            .open(self.name.clone(), &self.time, self.number, "")?;
        part.is_empty = false;
        Ok(part)
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
            let whole = with_ending(&free, self.ending);
            // A name that the options do not have replaces nothing.
            if self.series.replaces && self.ending.is_empty() {
                fs::rename(part, whole)?;
                break;
            }
            match fs::hard_link(part, &whole) {
                Ok(()) => drop(fs::remove_file(part)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists || whole.exists() => {
                    free = self.series.numbered(&self.name, &self.time, number);
                    continue;
                }
                // The file system does not support links.
                Err(_) => fs::rename(part, &whole)?,
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

impl Seek for Part {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
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
mod tests;
