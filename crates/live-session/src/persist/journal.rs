//! The journal: the history of a watched program on disk, written as it happens. Entries are only appended to the file,
//! so that a server that is killed loses none, and the next one continues where it ended. This module handles files and
//! entries; `journal_state` handles their meaning.
//!
//! A file is a line that identifies its program, then entries: length and CRC-32 (four bytes each, little-endian) of
//! kind (a byte), time (eight bytes, milliseconds since 1970) and content. Bytes from the first incomplete entry on are
//! damage and are removed.

use jvm_observe::process;
use live_analysis::metrics::COUNT;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use thiserror::Error;

/// The most bytes of a journal; later entries are not stored.
const MOST: u64 = 256 << 20;
/// Length and checksum.
const HEAD: usize = 8;
/// Kind and time.
const STAMP: usize = 9;
/// The longest first line.
const LINE: u64 = 256;
/// Journals of other machines and containers are removed if they were not written to for this time.
const FORGOTTEN: Duration = Duration::from_secs(7 * 24 * 3600);

/// Why there is no journal, or why it ends.
#[derive(Debug, Error)]
pub enum JournalError {
    /// Another process writes it.
    #[error("another tenure process watches this program and saves its history")]
    Busy,
    /// Another user owns it, or others may read it.
    #[error("{0} is not this user's own file")]
    Foreign(PathBuf),
    /// It has reached its maximum size.
    #[error("it has {} MiB", MOST >> 20)]
    Full,
    /// The system refuses.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// The identity of a program, which differs from that of every other one, also of earlier ones and those of other
/// machines and containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    pid: u32,
    /// Its start time, in ticks since the machine started.
    started: u64,
    /// The namespace of process ids of this process.
    namespace: u64,
    /// The id of this boot of the machine.
    boot: String,
}

impl Identity {
    /// The identity of a process; `None` if there is no such process.
    pub fn of(pid: u32) -> Option<Identity> {
        let started = process::read(pid)?.started;
        let link = fs::read_link("/proc/self/ns/pid").ok();
        let digits = link.map(|link| {
            let text = link.to_string_lossy().into_owned();
            text.chars()
                .filter(char::is_ascii_digit)
                .collect::<String>()
        });
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(Identity {
            pid,
            started,
            namespace: digits.and_then(|digits| digits.parse().ok()).unwrap_or(0),
            boot: boot.trim().chars().filter(|c| *c != '-').collect(),
        })
    }

    fn file_name(&self) -> String {
        format!(
            "{}-{}-{}-{}.past",
            self.boot, self.namespace, self.pid, self.started
        )
    }

    fn from_file_name(name: &str) -> Option<Identity> {
        let parts: Vec<&str> = name.strip_suffix(".past")?.split('-').collect();
        let [boot, namespace, pid, started] = parts[..] else {
            return None;
        };
        Some(Identity {
            pid: pid.parse().ok()?,
            started: started.parse().ok()?,
            namespace: namespace.parse().ok()?,
            boot: boot.to_owned(),
        })
    }

    /// The first line of a journal. Journals of another version are not read.
    fn line(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let name = self.file_name();
        format!("tenure past 1 {version} {COUNT} {name}\n")
    }
}

/// A journal that only this process has open.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    length: u64,
    most: u64,
    /// Bytes of another version or of an unknown format that were in the file.
    foreign: u64,
}

/// The result of reading a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Found {
    /// Complete entries.
    pub entries: u64,
    /// Bytes after them, which were removed, or all bytes of a journal of another version.
    pub damaged: u64,
}

impl Journal {
    /// Opens the journal of a program, an empty one if there is none, and removes those in the folder whose programs
    /// have ended.
    ///
    /// # Errors
    /// Another process has it open, or it cannot be created.
    pub fn open(folder: &Path, program: &Identity) -> Result<Journal, JournalError> {
        private_folder(folder)?;
        sweep(folder, program);
        let path = folder.join(program.file_name());
        let file = private_file(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::Busy),
            Err(TryLockError::Error(error)) => return Err(error.into()),
        }
        let mut journal = Journal {
            file,
            path,
            length: 0,
            most: MOST,
            foreign: 0,
        };
        let line = program.line();
        let mut first = Vec::new();
        (&journal.file).take(LINE).read_to_end(&mut first)?;
        if !first.starts_with(line.as_bytes()) {
            journal.foreign = journal.file.metadata()?.len();
            journal.cut(0)?;
            journal.file.write_all(line.as_bytes())?;
        }
        journal.length = line.len() as u64;
        Ok(journal)
    }

    /// Passes every entry (kind, time, content) in order to `each`, and removes the bytes after the last complete one.
    /// Must be called once, before anything is written.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&mut self, mut each: impl FnMut(u8, u64, &[u8])) -> io::Result<Found> {
        let all = self.file.seek(SeekFrom::End(0))?;
        self.file.seek(SeekFrom::Start(self.length))?;
        let mut found = Found::default();
        let mut reader = BufReader::with_capacity(1 << 18, &self.file);
        let mut body = Vec::new();
        loop {
            let left = all - self.length;
            let mut head = [0; HEAD];
            if left < HEAD as u64 {
                break;
            }
            reader.read_exact(&mut head)?;
            let (length, sum) = (word(&head[..4]), word(&head[4..]));
            // The length was compared with the file, so it is safe to allocate.
            if (length as usize) < STAMP || u64::from(length) > left - HEAD as u64 {
                break;
            }
            body.resize(length as usize, 0);
            reader.read_exact(&mut body)?;
            if crc32fast::hash(&body) != sum {
                break;
            }
            let time = u64::from_le_bytes(std::array::from_fn(|n| body[1 + n]));
            each(body[0], time, &body[STAMP..]);
            self.length += HEAD as u64 + u64::from(length);
            found.entries += 1;
        }
        found.damaged = all - self.length + std::mem::take(&mut self.foreign);
        self.cut(self.length)?;
        Ok(found)
    }

    /// Appends an entry. It has been passed to the system when this returns.
    ///
    /// # Errors
    /// The journal is full, or the file cannot be written.
    pub fn write(&mut self, kind: u8, time_ms: u64, content: &[u8]) -> Result<(), JournalError> {
        let length = STAMP + content.len();
        let whole = (HEAD + length) as u64;
        let Ok(short) = u32::try_from(length) else {
            return Err(JournalError::Full);
        };
        if self.length + whole > self.most {
            return Err(JournalError::Full);
        }
        let mut entry = Vec::with_capacity(HEAD + length);
        entry.extend(short.to_le_bytes());
        entry.extend([0; 4]);
        entry.push(kind);
        entry.extend(time_ms.to_le_bytes());
        entry.extend(content);
        let sum = crc32fast::hash(&entry[HEAD..]);
        entry[4..HEAD].copy_from_slice(&sum.to_le_bytes());
        self.file.write_all(&entry)?;
        self.length += whole;
        Ok(())
    }

    /// Removes the journal, because its data is saved elsewhere.
    pub fn remove(self) {
        let _ = fs::remove_file(&self.path);
    }

    #[cfg(test)]
    pub(crate) fn bound(&mut self, most: u64) {
        self.most = most;
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.file.set_len(length)?;
        self.file.seek(SeekFrom::Start(length))?;
        Ok(())
    }
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(folder)
}

/// Opens a file that only its owner can read, and whose owner is this user.
fn private_file(path: &Path) -> Result<File, JournalError> {
    let foreign = || JournalError::Foreign(path.to_owned());
    if fs::symlink_metadata(path).is_ok_and(|data| !data.is_file()) {
        return Err(foreign());
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let file = options.open(path)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let (data, own) = (file.metadata()?, fs::metadata("/proc/self")?);
        if data.uid() != own.uid() || data.mode() & 0o077 != 0 {
            return Err(foreign());
        }
    }
    Ok(file)
}

/// Removes journals of programs that have ended. If that is unknown (another machine, another container), removes those
/// that were not written to for a long time.
fn sweep(folder: &Path, ours: &Identity) {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    for path in files.map(|file| file.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(program) = Identity::from_file_name(&name) else {
            continue;
        };
        let is_here = program.boot == ours.boot && program.namespace == ours.namespace;
        let is_over = match is_here {
            true => process::read(program.pid).is_none_or(|now| now.started != program.started),
            false => is_forgotten(&path),
        };
        let is_file = fs::symlink_metadata(&path).is_ok_and(|data| data.is_file());
        // If a server still uses it, that server will remove it.
        if is_over && is_file && File::open(&path).is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(&path);
        }
    }
}

fn is_forgotten(path: &Path) -> bool {
    let written = fs::metadata(path).and_then(|data| data.modified());
    let age = written.map(|written| SystemTime::now().duration_since(written));
    matches!(age, Ok(Ok(age)) if age > FORGOTTEN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> Identity {
        Identity::of(std::process::id()).unwrap()
    }

    fn all(journal: &mut Journal) -> (Vec<(u8, u64, Vec<u8>)>, Found) {
        let mut entries = Vec::new();
        let found = journal
            .read(|kind, time, content| entries.push((kind, time, content.to_vec())))
            .unwrap();
        (entries, found)
    }

    #[test]
    fn a_journal_cut_or_changed_anywhere_gives_the_entries_before_and_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let entries: Vec<(u8, u64, Vec<u8>)> = (0..20u8)
            .map(|n| (n, 1000 + u64::from(n), vec![n; usize::from(n) * 7]))
            .collect();
        let mut journal = Journal::open(folder.path(), &here()).unwrap();
        let mut ends = vec![journal.length];
        for (kind, time, content) in &entries {
            journal.write(*kind, *time, content).unwrap();
            ends.push(journal.length);
        }
        let path = journal.path.clone();
        drop(journal);
        let whole = fs::read(&path).unwrap();
        for at in (ends[0]..whole.len() as u64).step_by(5) {
            let before = ends.iter().filter(|end| **end <= at).count() - 1;
            let mut changed = whole.clone();
            changed[at as usize] ^= 0x41;
            for bytes in [&whole[..at as usize], &changed[..]] {
                fs::write(&path, bytes).unwrap();
                let mut journal = Journal::open(folder.path(), &here()).unwrap();
                let (read, found) = all(&mut journal);
                assert_eq!(read, entries[..before], "{at}");
                assert_eq!(found.damaged, bytes.len() as u64 - ends[before]);
                journal.write(99, 5000, b"later").unwrap();
                drop(journal);
                let mut again = Journal::open(folder.path(), &here()).unwrap();
                let (read, found) = all(&mut again);
                assert_eq!((read.len(), found.damaged), (before + 1, 0), "{at}");
                assert_eq!(read[before], (99, 5000, b"later".to_vec()));
            }
        }
    }

    #[test]
    fn a_journal_is_one_programs_and_has_one_writer() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(folder.path(), &here()).unwrap();
        journal.write(1, 1, b"mine").unwrap();
        let busy = Journal::open(folder.path(), &here());
        assert!(matches!(busy, Err(JournalError::Busy)));
        // Another program had the same process id before: its journal is not read, and is removed.
        let mut earlier = here();
        earlier.started -= 1;
        let stale = folder.path().join(earlier.file_name());
        fs::write(&stale, "of a program that has ended").unwrap();
        let mut elsewhere = here();
        elsewhere.namespace += 1;
        let other = folder.path().join(elsewhere.file_name());
        fs::write(&other, "of a container").unwrap();
        let mine = folder.path().join("shop-4711-recording-1.jfr");
        fs::write(&mine, "saved").unwrap();
        drop(journal);
        let mut journal = Journal::open(folder.path(), &here()).unwrap();
        assert_eq!(all(&mut journal).0, [(1, 1, b"mine".to_vec())]);
        assert!(!stale.exists() && other.exists() && mine.exists());
        // A file whose first line identifies another program is not read.
        let path = journal.path.clone();
        drop(journal);
        let others = fs::read(&path).unwrap().split_off(3);
        fs::write(&path, &others).unwrap();
        let mut journal = Journal::open(folder.path(), &here()).unwrap();
        let found = Found {
            entries: 0,
            damaged: others.len() as u64,
        };
        assert_eq!(all(&mut journal), (Vec::new(), found));
        journal.remove();
        assert!(!path.exists());
    }

    #[test]
    fn it_ends_at_its_bound_and_only_its_owner_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut journal = Journal::open(&folder.path().join("a/b"), &here()).unwrap();
        journal.bound(journal.length + 100);
        assert!(journal.write(1, 1, &[0; 50]).is_ok());
        assert!(matches!(
            journal.write(1, 1, &[0; 50]),
            Err(JournalError::Full)
        ));
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&journal.path), 0o600);
        assert_eq!(mode(&folder.path().join("a/b")), 0o700);
        let path = journal.path.clone();
        drop(journal);
        fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        let open = Journal::open(&folder.path().join("a/b"), &here());
        assert!(matches!(open, Err(JournalError::Foreign(_))));
    }
}
