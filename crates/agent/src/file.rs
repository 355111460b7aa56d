//! Creates the files that the agent writes. A file that another recording is writing is never replaced, and errors name
//! the file.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use agent_core::options::{Format, unique_name};

use crate::process;

/// The most names to try, and the most attempts per name while other recordings begin in the same moment.
const ATTEMPTS: usize = 64;

/// A writer whose errors state the name of the file, the number of bytes written, and whether these are kept.
pub(crate) struct Named<F> {
    file: F,
    name: String,
    written: u64,
    /// Whether the file is kept after an error.
    is_kept: bool,
}

impl<F> Named<F> {
    pub(crate) fn new(file: F, name: String, is_kept: bool) -> Self {
        Self {
            file,
            name,
            written: 0,
            is_kept,
        }
    }
}

impl<F: Write> Write for Named<F> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let error = match self.file.write(bytes) {
            Ok(count) if count > 0 || bytes.is_empty() => {
                self.written += count as u64;
                return Ok(count);
            }
            Ok(_) => ErrorKind::WriteZero.into(),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Err(error),
            Err(error) => error,
        };
        let (name, written) = (&self.name, self.written);
        let fate = match self.is_kept {
            true => format!("its first {written} bytes are kept, the rest is dropped"),
            false => format!("the file, which has {written} bytes, is removed"),
        };
        Err(io::Error::new(
            error.kind(),
            format!("{name}: {error}; {fate}"),
        ))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Creates a file in place of an old one, or under another name if another recording is writing that one. Also returns
/// its name.
pub(crate) fn create(name: &str, format: Format) -> io::Result<(File, String)> {
    for free in names(name, format).take(ATTEMPTS) {
        if let Some(file) = replace(Path::new(&free))? {
            if free != name {
                process::note(&format!(
                    "another recording is writing {name}; this one is written to {free}"
                ));
            }
            return Ok((file, free));
        }
    }
    Err(ErrorKind::ResourceBusy.into())
}

/// The first of these names that no file has. A device or a pipe is written, not replaced, and a folder is an error.
pub(crate) fn free_name(name: &str, format: Format) -> String {
    let is_free = |one: &String| {
        let path = Path::new(one);
        is_of_system(path) || !path.is_file()
    };
    let free = names(name, format).find(is_free);
    free.unwrap_or_else(|| name.to_owned())
}

/// The names to try: `NAME`, `NAME.PID`, `NAME.PID.2` for the second recording of this process that needs one, and so on.
fn names(name: &str, format: Format) -> impl Iterator<Item = String> {
    let own = unique_name(name, format, std::process::id());
    let first = [name.to_owned(), own.clone()];
    let later = (2..).map(move |number| unique_name(&own, format, number));
    first.into_iter().chain(later)
}

/// The existing file that a symbolic link of this user leads to.
pub(crate) fn target_of_own_link(path: &Path) -> Option<PathBuf> {
    let link = fs::symlink_metadata(path).ok()?;
    let is_own = link.is_symlink() && link.uid() == process::user();
    is_own.then(|| fs::canonicalize(path).ok()).flatten()
}

/// Creates a file in place of an old one; `None` if another recording is writing the old one. Only its owner can read
/// it, because a dump contains the program's data.
///
/// A recording holds a lock on its file as long as it writes it. A file is replaced only by a recording that holds its
/// lock, so of several recordings that begin in the same moment one succeeds.
///
/// A symbolic link of this user stays, and the file that it leads to is replaced. A link of another user is replaced
/// itself: it may lead to any file of this user.
fn replace(path: &Path) -> io::Result<Option<File>> {
    if is_of_system(path) {
        return OpenOptions::new().append(true).open(path).map(Some);
    }
    let target = target_of_own_link(path);
    let path = target.as_deref().unwrap_or(path);
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    // A device, a pipe, or a link to a file that does not exist yet: it is opened, not replaced. This is checked first,
    // because other recordings may replace the file in the meantime.
    let is_other = match fs::metadata(path) {
        Ok(about) => !about.is_file(),
        Err(_) => path.is_symlink(),
    };
    if is_other {
        return options.create(true).open(path).map(Some);
    }
    for _ in 0..ATTEMPTS {
        // The lock on the old file is held until the new file exists.
        let old = OpenOptions::new().write(true).open(path);
        match &old {
            Ok(old) if is_locked(old) => return Ok(None),
            Ok(old) if !is_at(old, path) => continue,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            // No recording is writing it; or this user may not write it, but may remove it.
            _ => fs::remove_file(path)?,
        }
        match options.create_new(true).open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(file) if !is_locked(&file) && is_at(&file, path) => return Ok(Some(file)),
            // Another recording has locked the new file first, in order to replace it.
            Ok(_) => {}
        }
    }
    Ok(None)
}

/// Whether a name is one of the system for an open file, such as `/dev/stdout` or `/proc/self/fd/1`: it may lead to a
/// file of the program, which is never replaced.
fn is_of_system(path: &Path) -> bool {
    let folder = path
        .parent()
        .and_then(|folder| fs::canonicalize(folder).ok());
    folder.is_some_and(|folder| folder == Path::new("/dev") || folder.starts_with("/proc"))
}

/// Locks the file for this recording; true if another recording has locked it. Always false on a file system without
/// locks.
fn is_locked(file: &File) -> bool {
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// Whether the path leads to this open file.
fn is_at(file: &File, path: &Path) -> bool {
    let id = |about: fs::Metadata| (about.dev(), about.ino());
    let ids = [file.metadata().ok(), fs::metadata(path).ok()].map(|about| about.map(id));
    ids[0].is_some() && ids[0] == ids[1]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_new_file_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, "old").unwrap();
        drop(create(path.to_str().unwrap(), Format::Binary).unwrap());
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!(
            (metadata.len(), metadata.permissions().mode() & 0o777),
            (0, 0o600)
        );
    }

    #[test]
    fn a_link_stays_and_the_file_behind_it_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link] = ["file", "link"].map(|name| folder.path().join(name));
        std::os::unix::fs::symlink(&file, &link).unwrap();
        for text in ["longer", "short"] {
            let (mut written, _) = create(link.to_str().unwrap(), Format::Text).unwrap();
            written.write_all(text.as_bytes()).unwrap();
            drop(written);
            assert!(link.is_symlink(), "{text}");
            assert_eq!(fs::read(&file).unwrap(), text.as_bytes());
        }
    }

    #[test]
    fn an_open_file_of_the_program_is_not_replaced() {
        use std::os::fd::AsRawFd;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let mut log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&path)
            .unwrap();
        log.write_all(b"one ").unwrap();
        let name = format!("/proc/self/fd/{}", log.as_raw_fd());
        let (mut written, _) = create(&name, Format::Text).unwrap();
        written.write_all(b"two ").unwrap();
        log.write_all(b"three").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one two three");
    }

    #[test]
    fn a_file_is_replaced_only_when_it_is_no_longer_written() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("out.txt").display().to_string();
        let create = || create(&name, Format::Text).unwrap();
        let (mut first, at) = create();
        assert_eq!(at, name);
        let (_second, other) = create();
        assert_eq!(other, unique_name(&name, Format::Text, std::process::id()));
        first.write_all(b"whole").unwrap();
        assert_eq!(fs::read(&name).unwrap(), b"whole");
        drop(first);
        let (_third, at) = create();
        assert_eq!((at, fs::read(&name).unwrap()), (name.clone(), vec![]));
    }

    #[test]
    fn several_recordings_of_a_process_are_numbered() {
        let folder = tempfile::tempdir().unwrap();
        let pid = std::process::id();
        for (name, format, expected) in [
            ("a.hprof", Format::Binary, format!("a.hprof.{pid}.3")),
            ("a.txt", Format::Text, format!("a.{pid}.3.txt")),
        ] {
            let name = folder.path().join(name).display().to_string();
            let files: Vec<_> = (0..4).map(|_| create(&name, format).unwrap()).collect();
            let expected = folder.path().join(expected).display().to_string();
            assert_eq!(files[3].1, expected);
        }
    }

    #[test]
    fn a_recording_that_must_keep_files_keeps_those_of_earlier_recordings_of_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("java.hprof").display().to_string();
        let mut names = BTreeSet::new();
        for _ in 0..4 {
            let free = free_name(&name, Format::Binary);
            let (mut file, at) = create(&free, Format::Binary).unwrap();
            file.write_all(b"whole").unwrap();
            names.insert(at);
        }
        let all = fs::read_dir(folder.path()).unwrap();
        let sizes: Vec<u64> = all
            .map(|file| file.unwrap().metadata().unwrap().len())
            .collect();
        assert_eq!((names.len(), sizes), (4, vec![5; 4]));
    }

    #[test]
    fn a_device_has_a_free_name() {
        for name in ["/dev/null", "/dev/stdout", "/proc/self/fd/1"] {
            assert_eq!(free_name(name, Format::Text), name);
        }
    }

    #[test]
    fn files_that_are_created_in_the_same_moment_are_different_ones() {
        const THREADS: usize = 8;
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("out").display().to_string();
        for round in 0..50 {
            fs::write(&name, "old").unwrap();
            let start = std::sync::Barrier::new(THREADS);
            let files: Vec<_> = std::thread::scope(|scope| {
                let create = || {
                    start.wait();
                    create(&name, Format::Binary).unwrap()
                };
                let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(create)).collect();
                threads.into_iter().map(|one| one.join().unwrap()).collect()
            });
            let names: BTreeSet<_> = files.iter().map(|(_, name)| name).collect();
            assert_eq!(names.len(), THREADS, "round {round}");
            assert!(
                files
                    .iter()
                    .all(|(file, name)| is_at(file, Path::new(name)))
            );
        }
    }

    #[test]
    fn a_failure_names_the_file_and_what_it_has() {
        let mut space = [0; 5];
        let mut file = Named::new(&mut space[..], "a.hprof".to_owned(), true);
        let error = file.write_all(b"too much").unwrap_err().to_string();
        assert!(error.starts_with("a.hprof: "), "{error}");
        let fate = "; its first 5 bytes are kept, the rest is dropped";
        assert!(error.ends_with(fate), "{error}");
    }
}
