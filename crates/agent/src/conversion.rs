//! Files in the forms of other tools: the recording is written in the binary form, and converted when the file ends.
//!
//! The thread that ends a file converts it: that of a series, or the one that ends the recording, which is the VM's last
//! one if the program ends. While the program runs, only the thread that ends the recording waits for a conversion.

use std::cell::Cell;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Once};
use std::time::{Duration, Instant};

use agent_core::series::Part;
use locks::{Mutex, Rank};
use profile::NoProfile;
use profile::write::{Form, write_to};
use vm_hotspot::HotSpot;
use vmpi::Worth;

use crate::process;

/// The time for all conversions when the program ends.
const PATIENCE: Duration = Duration::from_secs(10);

/// The files that have ended and are not yet converted.
static ENDED: Mutex<Vec<Data>> = Mutex::new(Rank::EndedFiles, Vec::new());

/// Locked while files are converted: why the last conversion failed, if it did.
static CONVERTING: Mutex<Option<String>> = Mutex::new(Rank::Conversion, None);

/// When the program ends, the milliseconds after [`START`] until which files may be converted; otherwise 0.
static UNTIL: AtomicU64 = AtomicU64::new(0);

static START: LazyLock<Instant> = LazyLock::new(Instant::now);

thread_local! {
    /// This thread ends a recording, and the program continues.
    static IS_LATER: Cell<bool> = const { Cell::new(false) };
}

/// Receives the binary form of a file. When it is dropped, the file waits for [`run`].
pub(crate) struct Receiver(Option<Data>);

/// The binary form of a file.
struct Data {
    part: Part,
    form: Form,
}

impl Receiver {
    pub(crate) fn new(part: Part, form: Form) -> Self {
        Self(Some(Data { part, form }))
    }
}

impl Write for Receiver {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Some(data) => data.part.write(bytes),
            None => Ok(0),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // The others are removed: nothing was written, or the disk was full.
        let usable = self.0.take().filter(|data| data.part.is_usable());
        if let Some(data) = usable {
            ENDED.lock().push(data);
        }
    }
}

/// Converts the files that have ended, and waits for another thread that does. Returns why the last file was not converted,
/// if it was not.
pub(crate) fn run() -> Option<String> {
    let mut last_fault = CONVERTING.lock();
    let ended = std::mem::take(&mut *ENDED.lock());
    for data in ended {
        let fault = data.convert();
        // A series reports the same fault once: only the times in the names differ.
        let words = |fault: &String| fault.replace(|c: char| c.is_ascii_digit(), "");
        if let Some(fault) = &fault
            && last_fault.as_ref().map(words) != Some(words(fault))
        {
            process::note(fault);
        }
        *last_fault = fault;
    }
    last_fault.clone()
}

/// Calls `end`, which ends the recording, and converts its last file, except during [`later`]. A conversion that a thread
/// has begun is awaited; all of them together have a limited time.
pub(crate) fn run_last(end: impl FnOnce()) {
    if IS_LATER.get() {
        return end();
    }
    let limit = || {
        let until = START.elapsed() + PATIENCE;
        UNTIL.store(until.as_millis() as u64, Ordering::SeqCst);
    };
    limit();
    end();
    // Writing the data takes its own time.
    limit();
    run();
    UNTIL.store(0, Ordering::SeqCst);
}

/// Calls `end`, which ends the recording of a program that continues. The caller then calls [`run`] without a lock.
pub(crate) fn later<T>(end: impl FnOnce() -> T) -> T {
    IS_LATER.set(true);
    let done = end();
    IS_LATER.set(false);
    done
}

/// Fails if the program ends and has waited too long.
fn check_time() -> io::Result<()> {
    let until = UNTIL.load(Ordering::SeqCst);
    if until == 0 || START.elapsed() < Duration::from_millis(until) {
        return Ok(());
    }
    let fault = format!("it takes more than {} s", PATIENCE.as_secs());
    Err(io::Error::new(io::ErrorKind::TimedOut, fault))
}

impl Data {
    /// Writes the file in its form. If that fails, keeps its data, and returns the reason.
    fn convert(mut self) -> Option<String> {
        let place = self.part.path().display().to_string();
        let Err(fault) = fenced(|| self.write()) else {
            self.part.abandon();
            return None;
        };
        let kept = match self.part.finish() {
            Ok(Some(name)) => format!("the data is in {}", name.display()),
            Ok(None) => "the data is lost".to_owned(),
            Err(error) => format!("the data is lost: {error}"),
        };
        Some(format!("{place} is not written: {fault}; {kept}"))
    }

    fn write(&self) -> io::Result<()> {
        let vm = HotSpot::get().ok_or(io::ErrorKind::NotFound)?;
        let most = self.most_memory()?;
        if !vm.memory().native.has_room(Worth::Names, most) {
            return Err(io::Error::other(format!(
                "memory= is reached, this takes {most} bytes (less with a shorter loop=)"
            )));
        }
        check_time()?;
        let bytes = self.part.read()?;
        let profile = match profile::read_binary(&bytes) {
            Ok((profile, _)) => profile,
            // `doe=n`: nothing was to be written at the end.
            Err(NoProfile::Empty) => return Ok(()),
            Err(error) => return Err(io::Error::other(error)),
        };
        drop(bytes);
        check_time()?;
        let left_out = [
            self.form.left_out(&profile, None),
            self.form.left_out_events(&profile, None),
        ];
        static NOTED: [Once; 2] = [const { Once::new() }; 2];
        for (text, noted) in left_out.into_iter().zip(&NOTED) {
            // The same holds for each file of a series.
            if let Some(text) = text {
                noted.call_once(|| process::note(&text));
            }
        }
        let mut part = self.part.begin_whole()?;
        let written = fenced(|| {
            let mut out = BufWriter::with_capacity(64 << 10, Limited(&mut part));
            write_to(&profile, self.form, &mut out)?;
            out.flush()
        });
        if written.is_err() {
            part.abandon();
        }
        written?;
        part.finish().map(|_| ())
    }

    /// An upper bound for the memory of a conversion.
    fn most_memory(&self) -> io::Result<u64> {
        // The bytes, the profile that is read from them, and tables of the writer: of collapsed stacks, all names of
        // each stack.
        let times = match self.form {
            Form::Collapsed => 16,
            Form::Pprof | Form::Jfr => 6,
        };
        Ok(self.part.size()?.saturating_mul(times))
    }
}

/// Turns a panic into an error.
fn fenced<T>(body: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let done = catch_unwind(AssertUnwindSafe(body));
    done.unwrap_or_else(|_| Err(io::Error::other("internal fault")))
}

/// A file that must be written within [`PATIENCE`] when the program ends.
struct Limited<'p>(&'p mut Part);

impl Write for Limited<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        check_time()?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Seek for Limited<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::series::Series;

    /// Here is no VM whose memory could be used.
    #[test]
    fn data_is_kept_if_a_conversion_fails() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.jfr");
        let series = Series::single(&file, true).of_data();
        let part = series.begin("20260131-235959", 1).unwrap();
        let mut receiver = Receiver::new(part, Form::Jfr);
        receiver.write_all(b"data").unwrap();
        later(|| run_last(|| drop(receiver)));
        let data = folder.path().join("a.jfr.hprof");
        assert!(!data.exists());
        let fault = run().expect("a fault");
        assert!(fault.starts_with(&format!("{} is not written: ", file.display())));
        assert!(fault.ends_with(&format!("; the data is in {}", data.display())));
        assert_eq!(std::fs::read(data).unwrap(), b"data");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_panic_is_a_fault() {
        let fault = fenced(|| -> io::Result<()> { panic!("of a test") });
        assert_eq!(fault.unwrap_err().to_string(), "internal fault");
    }

    #[test]
    fn an_output_without_data_leaves_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let series = Series::single(&folder.path().join("a.jfr"), true).of_data();
        let part = series.begin("20260131-235959", 1).unwrap();
        drop(Receiver::new(part, Form::Jfr));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
