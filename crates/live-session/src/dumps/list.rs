//! The heap dumps taken of a watched program, with their opened state.

use super::opened::OpenDump;
use super::roots::roots;
use heap_graph::Heap;
use live_analysis::contents::{ClassContents, by_class};
use live_analysis::references::{Held, Holding, holdings};
use live_analysis::savings::{Savings, savings};
use profile::{NameId, TraceId};
use requests::{Fault, Stage};
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// The most rows of possible savings.
const SAVINGS: usize = 1000;

/// The longest time for which a request waits for a dump.
const PATIENCE: Duration = Duration::from_secs(3600);

/// How a dump was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Writer {
    /// From a copy of the process, while the program ran on.
    Snapshot,
    /// By the agent, with the VM's own dumper.
    Agent,
    /// By the VM.
    Vm,
}

/// How a dump was written, and what that cost the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Written {
    /// Who wrote it.
    pub by: Writer,
    /// Microseconds that the program stood still at most.
    pub stopped_us: u64,
    /// Why it is no snapshot.
    pub no_snapshot: Option<String>,
}

impl Written {
    /// A sentence that describes this.
    pub fn sentence(&self) -> String {
        let stopped = Duration::from_micros(self.stopped_us).as_secs_f64();
        match (self.by, &self.no_snapshot) {
            (Writer::Snapshot, _) => format!(
                "snapshot: the program was stopped for {:.1} ms",
                stopped * 1e3
            ),
            (by, why) => {
                let by = if by == Writer::Agent { "agent" } else { "VM" };
                let why = why.as_deref().unwrap_or("unknown");
                format!(
                    "written by the {by}: the program was stopped for up to {stopped:.2} s (no snapshot: {why})"
                )
            }
        }
    }
}

/// A heap dump for the pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DumpInfo {
    /// Number, from 1: its explorer is at `dumps/NUMBER/`.
    pub number: usize,
    /// When it was taken, in milliseconds since 1970.
    pub time_ms: u64,
    /// The file.
    pub file: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// True when its objects know the stack that allocated them.
    pub joined: bool,
    /// How it was written; `None` if an earlier server has taken it.
    pub written: Option<Written>,
    /// The same in words.
    pub how: Option<String>,
    /// How far its explorer is.
    pub stage: Stage,
}

/// A heap dump.
pub struct Dump {
    /// When it was taken, in milliseconds since 1970.
    pub time_ms: u64,
    path: PathBuf,
    joined: bool,
    written: OnceLock<Written>,
    /// The references of native code when it was taken; `None` if they are unknown.
    held: Option<Held>,
    /// The dump in its opened state.
    pub opened: Arc<dyn OpenDump>,
    /// Sizes and capacities by class, after the first request.
    contents: OnceLock<Vec<ClassContents>>,
    /// The same, with classes split by loader.
    per_loader: OnceLock<Vec<ClassContents>>,
    /// Possible savings, after the first request.
    savings: OnceLock<Savings>,
    /// The objects that references of native code keep alive, after the first request.
    holdings: OnceLock<FxHashMap<(NameId, TraceId), Holding>>,
}

impl std::fmt::Debug for Dump {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dump")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Dump {
    /// The file.
    pub fn file(&self) -> &Path {
        &self.path
    }

    /// Sizes and capacities by class; the first call reads every object.
    ///
    /// # Errors
    /// The dump is still being opened, or cannot be opened.
    pub fn contents(&self) -> Result<&[ClassContents], Fault> {
        let heap: &Heap = self.opened.heap()?;
        Ok(self.contents.get_or_init(|| by_class(heap, false)))
    }

    /// The result of an earlier [`Dump::contents`]; does not wait.
    pub fn read_contents(&self) -> Option<&[ClassContents]> {
        self.contents.get().map(Vec::as_slice)
    }

    /// As [`Dump::contents`], with classes of one name split by loader.
    ///
    /// # Errors
    /// Those of [`Dump::contents`].
    pub fn contents_per_loader(&self) -> Result<&[ClassContents], Fault> {
        let heap: &Heap = self.opened.heap()?;
        Ok(self.per_loader.get_or_init(|| by_class(heap, true)))
    }

    /// Whether the references of native code are known.
    pub fn knows_references(&self) -> bool {
        self.held.is_some()
    }

    /// The objects that references of native code keep alive, by class and stack; the first call reads the file.
    ///
    /// # Errors
    /// The dump is still being opened, or cannot be read.
    pub fn holdings(
        &self,
        names: &dyn Fn(NameId) -> String,
    ) -> Result<&FxHashMap<(NameId, TraceId), Holding>, Fault> {
        let heap: &Heap = self.opened.heap()?;
        if let Some(known) = self.holdings.get() {
            return Ok(known);
        }
        let none = Held::new();
        let held = self.held.as_ref().unwrap_or(&none);
        let found = holdings(heap, &roots(&self.path)?, held, names);
        Ok(self.holdings.get_or_init(|| found))
    }

    /// Possible savings; the first call walks the heap.
    ///
    /// # Errors
    /// The dump is still being opened, or cannot be read.
    pub fn savings(&self) -> Result<&Savings, Fault> {
        let heap: &Heap = self.opened.heap()?;
        if let Some(known) = self.savings.get() {
            return Ok(known);
        }
        let found = savings(heap, SAVINGS)?;
        Ok(self.savings.get_or_init(|| found))
    }
}

#[derive(Debug, Default)]
struct Inner {
    dumps: Vec<Arc<Dump>>,
    created: usize,
    /// Why dumps that the agent has sent could not be stored.
    failures: Vec<String>,
}

/// All dumps of one program.
#[derive(Clone, Debug)]
pub struct Dumps {
    folder: PathBuf,
    stem: String,
    inner: Arc<Mutex<Inner>>,
}

impl Dumps {
    /// Dumps named `STEM-N.hprof` in a folder, which is created when it is needed.
    pub fn new(folder: PathBuf, stem: String) -> Dumps {
        Dumps {
            folder,
            stem,
            inner: Arc::default(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates a file of a name that is not in use. Only its owner can read it, because a dump contains the data of the
    /// program.
    ///
    /// # Errors
    /// It or its folder cannot be created.
    pub fn create(&self) -> io::Result<(PathBuf, File)> {
        fs::create_dir_all(&self.folder)?;
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        let mut inner = self.inner();
        loop {
            inner.created += 1;
            let name = format!("{}-{}.hprof", self.stem, inner.created);
            let path = self.folder.join(name);
            // Another process may take dumps of this program, too.
            match options.open(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => return Ok((path, created?)),
            }
        }
    }

    /// Adds a dump that was complete at this time and is being opened, and returns its number.
    pub fn add(
        &self,
        time_ms: u64,
        (path, opened): (PathBuf, Arc<dyn OpenDump>),
        joined: bool,
        held: Option<Held>,
    ) -> usize {
        let mut inner = self.inner();
        // Compares it with the previous dump, to find what has grown.
        if let Some(before) = inner.dumps.last() {
            opened.compare_with(&before.path);
        }
        inner.dumps.push(Arc::new(Dump {
            time_ms,
            path,
            joined,
            written: OnceLock::new(),
            held,
            opened,
            contents: OnceLock::new(),
            per_loader: OnceLock::new(),
            savings: OnceLock::new(),
            holdings: OnceLock::new(),
        }));
        inner.dumps.len()
    }

    /// Adds the reason why a dump could not be stored.
    pub fn add_failure(&self, why: String) {
        self.inner().failures.push(why);
    }

    /// Returns a function that gives the next dump's number, or why it could not be stored, once it is known.
    pub fn next(&self) -> impl Fn() -> Option<Result<usize, String>> {
        let (before, failed) = (self.count(), self.inner().failures.len());
        move || {
            let inner = self.inner();
            let number = (inner.dumps.len() > before).then_some(Ok(before + 1));
            number.or_else(|| inner.failures.get(failed).cloned().map(Err))
        }
    }

    /// Sets how a dump was written, by its number.
    pub fn set_written(&self, number: usize, written: Written) {
        if let Some(dump) = self.get(number) {
            // This is set only once.
            let _ = dump.written.set(written);
        }
    }

    /// The number of dumps.
    pub fn count(&self) -> usize {
        self.inner().dumps.len()
    }

    /// A dump by its number.
    pub fn get(&self, number: usize) -> Option<Arc<Dump>> {
        self.inner().dumps.get(number.checked_sub(1)?).cloned()
    }

    /// All dumps, in the order of their numbers.
    pub fn all(&self) -> Vec<Arc<Dump>> {
        self.inner().dumps.clone()
    }

    /// The dumps for a time: all until then, or if there are none, the first one after it. Numbers are positions from
    /// 1.
    pub fn of_time(&self, time_ms: u64) -> Vec<Arc<Dump>> {
        let mut dumps = self.all();
        let before = dumps.partition_point(|dump| dump.time_ms <= time_ms);
        dumps.truncate(before.max(1));
        dumps
    }

    /// The last one.
    pub fn last(&self) -> Option<Arc<Dump>> {
        self.inner().dumps.last().cloned()
    }

    /// All of them.
    pub fn list(&self) -> Vec<DumpInfo> {
        let dumps = self.inner().dumps.clone();
        let info = |(n, dump): (usize, &Arc<Dump>)| DumpInfo {
            number: n + 1,
            time_ms: dump.time_ms,
            file: dump.path.to_string_lossy().into_owned(),
            bytes: fs::metadata(&dump.path).map_or(0, |metadata| metadata.len()),
            joined: dump.joined,
            written: dump.written.get().cloned(),
            how: dump.written.get().map(Written::sentence),
            stage: dump.opened.stage(),
        };
        dumps.iter().enumerate().map(info).collect()
    }

    /// Waits until `done` returns a value, as long as `possible` returns true.
    ///
    /// # Errors
    /// `possible` returned false, or an hour has passed.
    pub fn wait<T>(
        &self,
        done: impl Fn() -> Option<T>,
        possible: impl Fn() -> bool,
    ) -> Result<T, String> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(value) = done() {
                return Ok(value);
            }
            if !possible() {
                return done().ok_or_else(|| "the agent is gone".to_owned());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err("the dump was not complete within an hour".to_owned())
    }

    /// Stops dumps that are being opened.
    pub fn close(&self) {
        for dump in &self.inner().dumps {
            dump.opened.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_servers_of_one_program_never_have_the_same_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let dumps = || Dumps::new(folder.path().join("new"), "app-1".to_owned());
        let take = |dumps: Dumps| {
            let created = (0..100).map(|_| dumps.create().expect("a file").0);
            created.collect::<Vec<_>>()
        };
        let mut all = std::thread::scope(|scope| {
            let other = scope.spawn(|| take(dumps()));
            let mut all = take(dumps());
            all.extend(other.join().expect("files"));
            all
        });
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 200);
    }
}
