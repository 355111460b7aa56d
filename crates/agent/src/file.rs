//! The files that the agent writes: none is taken from another recording that writes it, and a failure names the file.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use agent_core::options::{Format, unique_name};

use crate::process;

/// Other recordings begin in the same moment at most so often.
const ATTEMPTS: usize = 64;

/// A writer whose failures name the file, how much of it is written, and what becomes of that.
pub(crate) struct Named<F> {
    file: F,
    name: String,
    written: u64,
    /// Whether the file stays if it cannot be written further.
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

/// A new file in place of an old one, or under another name if another recording is writing that. Also returns its name.
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

/// The names to try: `NAME`, `NAME.PID`, `NAME.PID.2` for the second recording of this process that needs one, and so on.
fn names(name: &str, format: Format) -> impl Iterator<Item = String> {
    let own = unique_name(name, format, std::process::id());
    let first = [name.to_owned(), own.clone()];
    let later = (2..).map(move |number| unique_name(&own, format, number));
    first.into_iter().chain(later)
}

/// A new file in place of an old one; `None` if another recording is writing the old one. It is readable by its owner
/// only, because a dump holds what the program holds.
///
/// A recording holds a lock on its file. The lock on a file is also needed to replace it, and of recordings that begin in
/// the same moment one gets it.
fn replace(path: &Path) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600);
    // A device, a pipe, or a link to a file that is to be created. Found out at once: others replace the file meanwhile.
    let is_other = match fs::metadata(path) {
        Ok(about) => !about.is_file(),
        Err(_) => path.is_symlink(),
    };
    if is_other {
        return options.create(true).open(path).map(Some);
    }
    for _ in 0..ATTEMPTS {
        // The lock is held until the other file is there.
        let old = OpenOptions::new().write(true).open(path);
        match &old {
            Ok(old) if is_locked(old) => return Ok(None),
            Ok(old) if !is_at(old, path) => continue,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            // Also one that this user may not write but may remove.
            _ => fs::remove_file(path)?,
        }
        match options.create_new(true).open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
            Ok(file) if !is_locked(&file) && is_at(&file, path) => return Ok(Some(file)),
            // Another recording has locked it first, in order to replace it.
            Ok(_) => {}
        }
    }
    Ok(None)
}

/// Whether another recording has locked the file; otherwise this one has now. Without locks in the file system, none has.
fn is_locked(file: &File) -> bool {
    matches!(file.try_lock(), Err(TryLockError::WouldBlock))
}

/// Whether the file is the one of this name.
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
