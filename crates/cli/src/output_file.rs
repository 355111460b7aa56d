//! Output files of all commands: they appear under their name when they are whole, and never replace
//! an input.

use crate::exit::Usage;
use crate::interruption;
use crate::output::note;
use anyhow::{Context, Result, bail};
use hprof::source::split_number;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::{NamedTempFile, TempPath};

/// A file that is being written, readable by its owner only: what is written holds what the heap held. Until
/// [`finish`](Self::finish) it has another name in the same folder, and it is removed when it is dropped or a signal
/// ends the process before.
pub(crate) struct OutputFile {
    file: File,
    /// `None` for what is no file with a name to give: a device, a pipe, a file in memory.
    part: Option<TempPath>,
    path: PathBuf,
    /// The name and number that `path` was made of, if the file takes the next free one.
    numbered: Option<(PathBuf, usize)>,
    force: bool,
    /// Bytes that were written, and how many of them the system has begun to write to the disk.
    written: u64,
    sent: u64,
}

/// The system begins to write to the disk when there are so many bytes more, so that [`OutputFile::finish`] need not wait
/// for all of them.
const SENT_AT_ONCE: u64 = 32 << 20;

/// The name of an output that was not named: that of the input with another ending, in the working folder.
pub(crate) fn named_after(input: &Path, ending: &str) -> PathBuf {
    const ENDINGS: [&str; 9] = [
        ".gz", ".zst", ".xz", ".bz2", ".zip", ".txt", ".hprof", ".jfr", ".html",
    ];
    let name = input.file_name().unwrap_or_default().to_string_lossy();
    let mut stem = name.as_ref();
    // The second snapshot of a file is `file#2`.
    stem = stem.split_once('#').map_or(stem, |(file, _)| file);
    while let Some(shorter) = ENDINGS.iter().find_map(|ending| stem.strip_suffix(ending)) {
        stem = shorter;
    }
    if stem.is_empty() || stem == "-" {
        stem = "heap";
    }
    PathBuf::from(format!("{stem}{ending}"))
}

impl OutputFile {
    /// Begins a file. Overwrites only with `force`, and never one of the inputs. Call it before the
    /// work begins, so that an output that cannot be written is an error at once.
    pub(crate) fn create(path: &Path, force: bool, inputs: &[&Path]) -> Result<OutputFile> {
        Self::begin(path, force, inputs, true)
    }

    /// The same for an output that another program writes, or that is read before it is whole: a device or a pipe, which
    /// has no other name until then, is refused before it is opened.
    pub(crate) fn create_with_part(
        path: &Path,
        force: bool,
        inputs: &[&Path],
    ) -> Result<OutputFile> {
        match fs::symlink_metadata(path) {
            Ok(there) if force && !is_replaceable(path, &there) => Err(no_file(path)),
            _ => Self::create(path, force, inputs),
        }
    }

    /// The same for a command that handles signals itself, because a recording ends with them. A recording cannot be
    /// repeated: if another file has taken the name meanwhile, it gets the next free number.
    pub(crate) fn create_for_recording(path: &Path, force: bool) -> Result<OutputFile> {
        Ok(Self::begin(path, force, &[], false)?.or_numbered())
    }

    /// If another file has taken the name by the end, this one gets the next free number.
    pub(crate) fn or_numbered(mut self) -> OutputFile {
        self.numbered = Some((self.path.clone(), 0));
        self
    }

    /// The same for the recording that follows so many `earlier` ones, under the first number that is free.
    pub(crate) fn create_numbered(path: &Path, earlier: usize, force: bool) -> Result<OutputFile> {
        let mut number = earlier;
        loop {
            match Self::begin(&numbered(path, number), force, &[], false) {
                Err(error) if error.is::<Usage>() => number += 1,
                begun => {
                    let mut file = begun?;
                    file.numbered = Some((path.to_owned(), number));
                    return Ok(file);
                }
            }
        }
    }

    fn begin(
        path: &Path,
        force: bool,
        inputs: &[&Path],
        is_removed_at_signal: bool,
    ) -> Result<OutputFile> {
        let is_input = |input: &&Path| is_same(split_number(input).0, path);
        if inputs.iter().any(is_input) {
            return Err(Usage(format!("{} is the input", path.display())).into());
        }
        let wrong = || format!("cannot write {}", path.display());
        if let Ok(there) = fs::symlink_metadata(path) {
            if !force {
                return Err(exists(path));
            }
            if !is_replaceable(path, &there) {
                let file = OpenOptions::new().write(true).truncate(true).open(path);
                return Ok(Self::direct(file.with_context(wrong)?, path));
            }
        }
        let mut prefix = path.file_name().with_context(wrong)?.to_owned();
        prefix.push(".");
        let folder = folder_of(path);
        let mut part = tempfile::Builder::new();
        part.prefix(&prefix).suffix(".part");
        let part = match is_removed_at_signal {
            true => interruption::remove_at_signal(|| part.tempfile_in(folder)),
            false => part.tempfile_in(folder),
        };
        let part = part.map_err(without_place).with_context(wrong)?;
        Ok(Self::without_name(part, path, force))
    }

    /// A file in the temporary folder, for an output that is read before it is sent to `path`, which is no file: it never
    /// gets a name of its own, and is removed when it is dropped or a signal ends the process.
    pub(crate) fn temporary(path: &Path) -> Result<OutputFile> {
        let part = interruption::remove_at_signal(NamedTempFile::new);
        let part = part.context("cannot write a temporary file")?;
        Ok(Self::without_name(part, path, false))
    }

    fn without_name(part: NamedTempFile, path: &Path, force: bool) -> OutputFile {
        let (file, part) = part.into_parts();
        OutputFile {
            file,
            part: Some(part),
            path: path.to_owned(),
            numbered: None,
            force,
            written: 0,
            sent: 0,
        }
    }

    /// As [`create_numbered`](Self::create_numbered), but the recording has its name from the beginning: it can be read
    /// while it grows, and what was recorded until a command is killed is a recording, too.
    pub(crate) fn create_growing(path: &Path, earlier: usize, force: bool) -> Result<OutputFile> {
        let mut file = Self::create_numbered(path, earlier, force)?;
        if let Some(part) = file.part.take() {
            file.name(part)?;
        }
        Ok(file)
    }

    /// A file that is written where it is.
    pub(crate) fn direct(file: File, path: &Path) -> OutputFile {
        OutputFile {
            file,
            part: None,
            path: path.to_owned(),
            numbered: None,
            force: false,
            written: 0,
            sent: 0,
        }
    }

    /// The name it will have.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The name it has until it is whole.
    ///
    /// # Errors
    /// If it has none, because it is a device or a pipe.
    pub(crate) fn part(&self) -> Result<&Path> {
        self.part.as_deref().ok_or_else(|| no_file(&self.path))
    }

    /// Gives it its name, unless what it was made from changed meanwhile.
    pub(crate) fn finish(self) -> Result<()> {
        self.finish_named().map(drop)
    }

    /// The same, and returns the name.
    pub(crate) fn finish_named(mut self) -> Result<PathBuf> {
        let Some(part) = self.part.take() else {
            return Ok(std::mem::take(&mut self.path));
        };
        if hprof::source::input_changed() {
            bail!(
                "a file changed while it was being read; {} is not written",
                self.path.display()
            );
        }
        // Some file systems say only now that the disk is full.
        let synced = self.file.sync_data();
        synced.with_context(|| format!("cannot write {}", self.path.display()))?;
        self.name(part)?;
        Ok(std::mem::take(&mut self.path))
    }

    /// Has the system begin to write to the disk what was written since.
    fn send(&mut self) {
        // Pages that are not on the disk yet stay in memory: Linux begins to write them, and takes away the others only.
        #[cfg(target_os = "linux")]
        {
            let len = std::num::NonZeroU64::new(self.written - self.sent);
            let advice = rustix::fs::Advice::DontNeed;
            // The output is as whole without it.
            let _ = rustix::fs::fadvise(&self.file, self.sent, len, advice);
        }
        self.sent = self.written;
    }

    fn name(&mut self, mut part: TempPath) -> Result<()> {
        loop {
            let place = part.to_path_buf();
            let named = interruption::forget(&place, || match self.force {
                true => part.persist(&self.path),
                false => part.persist_noclobber(&self.path),
            });
            let Err(fault) = named else { return Ok(()) };
            let is_taken = fault.error.kind() == io::ErrorKind::AlreadyExists;
            if let Some((path, number)) = self.numbered.as_mut().filter(|_| is_taken) {
                *number += 1;
                self.path = numbered(path, *number);
                part = fault.path;
                continue;
            }
            keep(fault.path);
            return Err(match is_taken {
                true => exists(&self.path),
                false => anyhow::Error::new(fault.error)
                    .context(format!("cannot write {}", self.path.display())),
            });
        }
    }

    /// Leaves what could be written under the other name: for what cannot be recorded again.
    pub(crate) fn keep(mut self) {
        if let Some(part) = self.part.take() {
            keep(part);
        }
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(part) = self.part.take() {
            let place = part.to_path_buf();
            interruption::forget(&place, || drop(part));
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes).map_err(of_reader)?;
        self.written += count as u64;
        if self.part.is_some() && self.written - self.sent >= SENT_AT_ONCE {
            self.send();
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The error of a write. Text whose reader has seen enough (`| head`) is no failure; a file that its reader did not get
/// whole is one.
pub(crate) fn of_reader(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::BrokenPipe => {
            io::Error::other("the reader of the output ended before it had all of it")
        }
        _ => error,
    }
}

/// The name of the recording that follows so many earlier ones.
fn numbered(path: &Path, earlier: usize) -> PathBuf {
    let mut path = path.to_path_buf();
    if earlier > 0 {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = match name.split_once('.') {
            Some((base, ending)) => format!("{base}-{}.{ending}", earlier + 1),
            None => format!("{name}-{}", earlier + 1),
        };
        path.set_file_name(name);
    }
    path
}

/// Stores a recording whose output cannot be written, under a free name: at `path`, or if that fails, too, in the
/// temporary folder. Returns the name.
pub(crate) fn rescue(path: &Path, bytes: &[u8]) -> Result<PathBuf> {
    let store = |path: &Path| {
        let mut file = OutputFile::create_numbered(path, 0, false)?;
        file.write_all(bytes)?;
        file.finish_named()
    };
    store(path).or_else(|error| {
        let name = path.file_name().unwrap_or_default();
        store(&std::env::temp_dir().join(name)).map_err(|_| error)
    })
}

/// Writes a whole output file.
pub(crate) fn write_file(path: &Path, force: bool, inputs: &[&Path], bytes: &[u8]) -> Result<()> {
    let mut file = OutputFile::create(path, force, inputs)?;
    file.write_all(bytes)
        .with_context(|| format!("cannot write {}", path.display()))?;
    file.finish()
}

/// Leaves a file under the name that it was written with, and reports this name.
fn keep(part: TempPath) {
    let place = part.to_path_buf();
    let kept = interruption::forget(&place, || part.keep());
    // It is not there if its folder was moved or removed.
    if let Some(part) = kept.ok().filter(|part| part.exists()) {
        note(&format!("what was written is in {}", part.display()));
    }
}

/// Refuses a file that is there, before anything is begun that will write it.
pub(crate) fn refuse_existing(path: &Path, force: bool) -> Result<()> {
    match path.exists() && !force {
        true => Err(exists(path)),
        false => Ok(()),
    }
}

/// Refuses a file that is there or cannot be written, before this program begins what it will write there.
pub(crate) fn refuse_early(path: &Path, force: bool) -> Result<()> {
    refuse_existing(path, force)?;
    if path.exists() {
        return Ok(());
    }
    // The permissions of the folder do not say it for all users and file systems.
    tempfile::tempfile_in(folder_of(path))
        .map(drop)
        .map_err(without_place)
        .with_context(|| format!("cannot write {}", path.display()))
}

/// The system's error, without the name of a temporary file, which the user has not given.
fn without_place(error: io::Error) -> io::Error {
    match error.to_string().split_once(" at path ") {
        Some((reason, _)) => io::Error::new(error.kind(), reason),
        None => error,
    }
}

/// The folder of a file.
fn folder_of(path: &Path) -> &Path {
    let folder = path.parent();
    let folder = folder.filter(|folder| *folder != Path::new(""));
    folder.unwrap_or(Path::new("."))
}

fn exists(path: &Path) -> anyhow::Error {
    Usage(format!("{} exists (--force overwrites)", path.display())).into()
}

fn no_file(path: &Path) -> anyhow::Error {
    let path = path.display();
    Usage(format!(
        "{path} is not a regular file, which this output must be"
    ))
    .into()
}

/// What two names of one file have in common.
#[cfg(unix)]
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).map(|found| (found.dev(), found.ino()))
}
/// The same, but hard links have nothing in common.
#[cfg(not(unix))]
fn identity(path: &Path) -> io::Result<PathBuf> {
    fs::canonicalize(path)
}

/// Whether two names mean one file: through links, and of files that are still to be written.
fn is_same(a: &Path, b: &Path) -> bool {
    match (identity(a), identity(b)) {
        (Ok(a), Ok(b)) => a == b,
        _ => std::path::absolute(a).ok() == std::path::absolute(b).ok(),
    }
}

/// Whether another file may take the name: of a file, or of a link to one that is not a link of the
/// system's, such as `/dev/stdout`.
fn is_replaceable(path: &Path, there: &fs::Metadata) -> bool {
    if there.is_file() {
        return true;
    }
    let of_system = ["/dev", "/proc"]
        .iter()
        .any(|folder| path.starts_with(folder));
    let target = fs::metadata(path);
    there.is_symlink() && !of_system && target.is_ok_and(|target| target.is_file())
}

#[cfg(test)]
mod tests {
    use super::{OutputFile, named_after, numbered};
    use std::io::Write as _;
    use std::path::Path;

    #[test]
    fn every_recording_has_its_own_file() {
        let path = |earlier| numbered(Path::new("a/b.hprof"), earlier);
        assert_eq!(path(0), Path::new("a/b.hprof"));
        assert_eq!(path(2), Path::new("a/b-3.hprof"));
        assert_eq!(numbered(Path::new("b"), 1), Path::new("b-2"));
    }

    #[test]
    fn a_recording_takes_the_next_free_number() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("b-2.txt"), "mine").expect("written");
        let grown = OutputFile::create_growing(&at("b.txt"), 1, false).expect("begun");
        assert_eq!(grown.path(), at("b-3.txt"));
        // A name that is taken before the end.
        let mut late = OutputFile::create_for_recording(&at("c.txt"), false).expect("begun");
        late.write_all(b"recorded").expect("written");
        std::fs::write(at("c.txt"), "mine").expect("written");
        assert_eq!(late.finish_named().expect("named"), at("c-2.txt"));
        for (name, text) in [
            ("b-2.txt", "mine"),
            ("b-3.txt", ""),
            ("c.txt", "mine"),
            ("c-2.txt", "recorded"),
        ] {
            let content = std::fs::read_to_string(at(name)).expect(name);
            assert_eq!(content, text, "{name}");
        }
        assert_eq!(std::fs::read_dir(folder.path()).expect("it").count(), 4);
        // With --force earlier files are replaced.
        let forced = OutputFile::create_growing(&at("b.txt"), 1, true).expect("begun");
        assert_eq!(forced.path(), at("b-2.txt"));
    }

    #[test]
    fn an_output_is_named_after_its_input() {
        let check = |input: &str, expected: &str| {
            assert_eq!(named_after(Path::new(input), ".html"), Path::new(expected));
        };
        check("/a/heap.hprof", "heap.html");
        check("heap.hprof.gz", "heap.html");
        check("java.hprof.txt", "java.html");
        check("both.hprof#2", "both.html");
        check("core.4711", "core.4711.html");
        check("-", "heap.html");
        check(".hprof", "heap.html");
    }
}
