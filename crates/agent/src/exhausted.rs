//! A snapshot of the heap at the first `OutOfMemoryError` (`oom=snapshot`).
//!
//! The thread whose allocation failed copies the process and continues with its error. A thread of the agent reads the
//! copy, so no other program of Tenure is needed on the machine. If the process ends meanwhile, it waits for that
//! thread, because a process without free memory usually ends soon.

use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use jvmti::JavaVm;
use locks::{Mutex, Rank};
use vm_image::{Copied, Fault, Summary};

use crate::snapshot::{self, Reader, Taken};
use crate::{process, recording};

/// The longest time that an ending process waits.
const AT_THE_END: Duration = Duration::from_secs(600);
/// The most file names that are tried.
const MOST_NAMES: u32 = 1000;
/// The start of all messages.
const FULL: &str = "the Java heap is full (OutOfMemoryError)";

/// The options of the snapshot.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// The folder of the file.
    pub(crate) folder: PathBuf,
    /// The most bytes that the copy may use; without a limit, a share of the free memory.
    pub(crate) limit: Option<u64>,
}

/// The process that reads a copy, and a channel that closes when the reading is finished. In a child that the program
/// has forked, the id is that of another process.
static READING: Mutex<Option<(u32, Receiver<()>)>> = Mutex::new(Rank::ReadingCopy, None);

/// The heap is too full for an allocation of the current thread.
pub(crate) fn snapshot(java: JavaVm) {
    let Some(recording) = recording::now() else {
        return;
    };
    if let Err(why) = begin(java, &recording.snapshot) {
        process::note(&format!("{FULL}, and there is no snapshot of it: {why}"));
    }
}

/// Copies the process and starts to read the copy.
fn begin(java: JavaVm, wanted: &Arc<Wanted>) -> Result<(), String> {
    Copied::is_possible(std::process::id()).map_err(|fault| causes(&fault))?;
    let file = NewFile::create(&wanted.folder)
        .map_err(|error| format!("{}: {error}", wanted.folder.display()))?;
    let (ours, theirs) = UnixStream::pair().map_err(|error| error.to_string())?;
    let (done, is_done) = channel();
    let limit = wanted.limit;
    let read = move |pid: i32, taken: Taken| {
        let millis = taken.stopped.as_secs_f64() * 1e3;
        let stopped = format!("the program was stopped for {millis:.1} ms");
        process::note(&match read(ours, pid.unsigned_abs(), limit, file) {
            Ok((path, summary)) => {
                let (objects, damaged) = (summary.objects(), summary.damage.total());
                let damage = match damaged {
                    0 => String::new(),
                    _ => format!("; {damaged} places could not be read"),
                };
                format!(
                    "{FULL}: its {objects} objects are in {}; {stopped}{damage}; later errors make no snapshot",
                    path.display()
                )
            }
            Err(fault) => {
                let why = causes(&fault);
                format!("{FULL}, and there is no snapshot of it: {why}; {stopped}")
            }
        });
        drop(done);
    };
    snapshot::take(java, Reader::Behind(theirs.as_raw_fd()), read)?;
    wait_at_the_end(is_done);
    Ok(())
}

/// Reads the copy at the other end of a stream into a file.
fn read(
    stream: UnixStream,
    pid: u32,
    limit: Option<u64>,
    file: NewFile,
) -> Result<(PathBuf, Summary), Fault> {
    let failed = |what: &'static str| {
        move |cause| Fault::Io {
            what: what.to_owned(),
            cause,
        }
    };
    let copied = Copied::met(stream, pid).map_err(failed("the copy of the process has ended"))?;
    let limit = limit.unwrap_or_else(|| Copied::usual_limit(std::process::id()));
    let mut out = BufWriter::with_capacity(1 << 20, &file.file);
    let (summary, _) = copied.read(limit, |memory, place| {
        vm_image::dump(memory, place, &mut out)
    })?;
    drop(out);
    let path = file.finish().map_err(failed("cannot name the dump"))?;
    Ok((path, summary))
}

/// An error with its causes.
fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// Makes the process wait before its end until this receiver reports that the reading is finished.
fn wait_at_the_end(is_done: Receiver<()>) {
    let before = READING.lock().replace((std::process::id(), is_done));
    if before.is_none() {
        // SAFETY: the function takes nothing and returns nothing, as `atexit` calls it. Without it, the file of a
        // process that ends early is not whole.
        let _ = unsafe { libc::atexit(process_ends) };
    }
}

/// The process ends by `exit`, called by any thread.
extern "C" fn process_ends() {
    let reading = READING.lock().take();
    if let Some((pid, is_done)) = reading
        && pid == std::process::id()
    {
        let _ = is_done.recv_timeout(AT_THE_END);
    }
}

/// A file with a name that is not in use. It has a temporary name until it is complete, and is removed if it is dropped
/// before.
struct NewFile {
    file: File,
    folder: PathBuf,
    number: u32,
}

/// `oom-PID.hprof`, `oom-PID-2.hprof`, ...
fn name(number: u32) -> String {
    let pid = std::process::id();
    match number {
        1 => format!("oom-{pid}.hprof"),
        _ => format!("oom-{pid}-{number}.hprof"),
    }
}

impl NewFile {
    fn create(folder: &Path) -> io::Result<NewFile> {
        for number in 1..=MOST_NAMES {
            if folder.join(name(number)).exists() {
                continue;
            }
            let part = folder.join(format!("{}.part", name(number)));
            // Only the owner may read it, because a dump contains the data of the program.
            let mut options = OpenOptions::new();
            match options.write(true).create_new(true).mode(0o600).open(part) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                opened => {
                    return Ok(NewFile {
                        file: opened?,
                        folder: folder.to_owned(),
                        number,
                    });
                }
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }

    fn part(&self) -> PathBuf {
        self.folder.join(format!("{}.part", name(self.number)))
    }

    /// Renames the file to its final name, or to the next one that is not in use by now.
    fn finish(self) -> io::Result<PathBuf> {
        for number in self.number..=MOST_NAMES {
            let path = self.folder.join(name(number));
            match fs::hard_link(self.part(), &path) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                // The file system does not support links.
                Err(_) if !path.exists() => {
                    fs::rename(self.part(), &path)?;
                    return Ok(path);
                }
                Err(_) => {}
            }
        }
        Err(ErrorKind::AlreadyExists.into())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        drop(fs::remove_file(self.part()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn a_new_file_overwrites_none_and_is_there_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let files = || {
            let entries = fs::read_dir(folder.path()).unwrap();
            let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let text = |path: &Path| fs::read_to_string(path).unwrap();
        let first = folder.path().join(name(1));
        fs::write(&first, "of another program").unwrap();
        let file = NewFile::create(folder.path()).unwrap();
        (&file.file).write_all(b"mine").unwrap();
        // Another program uses the name first.
        let second = folder.path().join(name(2));
        fs::write(&second, "taken").unwrap();
        let path = file.finish().unwrap();
        assert_eq!(path, folder.path().join(name(3)));
        assert_eq!(text(&path), "mine");
        assert_eq!(text(&first), "of another program");
        assert_eq!(text(&second), "taken");
        assert_eq!(files().len(), 3, "{:?}", files());
        drop(NewFile::create(folder.path()).unwrap());
        assert_eq!(files().len(), 3, "{:?}", files());
    }
}
