//! Monitors a program: the threads that read it, and the user's commands: collections, heap dumps, recordings.

use super::asking::Asking;
use super::class_filters::Chosen;
use super::program::{Ask, Commands, Program, Recording};
use super::state::{Live, locked};
use super::status::{RecordingState, Status};
use crate::clock::now_ms;
use crate::dumps::list::{Dumps, Writer, Written};
use crate::persist::journal_state::{Earlier, Past};
use crate::persist::saved_tables::SavedTables;
use jvm_observe::counters::Counters;
use jvm_observe::process;
use live_analysis::metrics::Row;
use live_analysis::references::{Held, held};
use live_analysis::sampler::{Collectors, Reading, Sampler};
use live_analysis::timeline::EventKind;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use vm_image::container;

/// The default time between two ticks in milliseconds.
const INTERVAL_MS: u64 = 250;
/// The times that the page may request.
const INTERVALS_MS: std::ops::RangeInclusive<u64> = 50..=60_000;
/// While recording, allocation sites are requested once in this many ticks,
const SITES_TICKS: u64 = 8;
/// but at least and at most this many milliseconds apart.
const SITES_MS: [u64; 2] = [500, 2000];
/// How long an answer is awaited.
const SITES_PATIENCE: Duration = Duration::from_secs(30);
/// How long a collection waits for the agent.
const SETTLE: Duration = Duration::from_secs(10);
/// Rows in every status that is sent to pages: enough for a page that missed some.
const ROWS_IN_STATE: usize = 16;

impl Live {
    /// Starts to monitor a program. Heap dumps and tables are written to `folder`, and the sources of frames are
    /// searched below `sources`. The history is stored in the folder `past`, if given; the history of this program that
    /// an earlier server stored there is loaded.
    pub fn watch(
        program: Arc<dyn Program>,
        folder: PathBuf,
        sources: Vec<PathBuf>,
        past: Option<&Path>,
    ) -> Arc<Live> {
        let (past, mut earlier) = Past::open(past, program.pid());
        let recorded = std::mem::take(&mut earlier.recorded);
        let (snapshots, range) = recorded.snapshots();
        let recording = earlier.recording.map(|(recording, _)| RecordingState {
            recording,
            on: false,
            connected: false,
            counting: recorded.tracked.is_some(),
            snapshots,
            range,
        });
        let status = Status {
            recording,
            schema: "tenure.live.state/1",
            pid: program.pid(),
            name: program.name(),
            interval_ms: INTERVAL_MS,
            sources: !sources.is_empty(),
            ..Status::default()
        };
        let stem = format!("{}-{}", file_stem(&status.name), status.pid);
        let live = Arc::new(Live {
            program,
            past: Mutex::new(past),
            recorded: RwLock::new(recorded),
            commands: Mutex::default(),
            memory: Mutex::default(),
            memory_wanted: AtomicBool::new(false),
            rules: Chosen::default(),
            dumps: Dumps::new(folder.clone(), stem.clone()),
            saved_tables: SavedTables::new(folder, stem),
            sources,
            status: watch::channel(status).0,
            interval_ms: AtomicU64::new(INTERVAL_MS),
            turn: Mutex::default(),
            sites_asked: Mutex::default(),
            samples_asked: Mutex::default(),
            samples_wanted: Mutex::default(),
            measuring: Mutex::default(),
            finished: AtomicU64::new(0),
            asking: Mutex::<Asking>::default(),
            stop: AtomicBool::new(false),
        });
        live.take_up(&earlier);
        let collectors = earlier.collectors;
        live.thread("tenure-timeline", move |live| live.measure(collectors));
        live.thread("tenure-memory", Live::ask_memory);
        live.thread("tenure-save", Live::save_on_schedule);
        live
    }

    /// Restores the state that an earlier server stored.
    fn take_up(&self, earlier: &Earlier) {
        for (time_ms, path, joined) in &earlier.dumps {
            if path.is_file() {
                let opened = self.program.open_dump(path);
                self.dumps
                    .add(*time_ms, (path.clone(), opened), *joined, None);
            }
        }
        for saved in &earlier.saved {
            self.saved_tables.add(saved.clone());
        }
        let saved = self.saved_tables.list();
        self.status.send_modify(|status| status.saved = saved);
        if let Some(text) = &earlier.classes {
            // It was valid when it was stored.
            let _ = self.choose(text);
        }
    }

    /// Returns once the recording that was active when the previous server ended.
    pub fn resume(&self) -> Option<Recording> {
        locked(&self.past).resume.take()
    }

    /// Removes the stored history: the program has ended, and the recording is saved elsewhere.
    pub fn forget(&self) {
        locked(&self.past).forget();
    }

    /// Reads the program at each tick, until the program or the monitoring ends.
    fn measure(self: &Arc<Self>, earlier: Option<Collectors>) {
        let mut sampler = Sampler::after(earlier);
        let mut started = None;
        let mut sites = Instant::now();
        while self.alive() {
            let begun = Instant::now();
            let process = process::read(self.program.pid());
            let same = process.filter(|p| *started.get_or_insert(p.started) == p.started);
            let Some(process) = same else {
                self.end();
                return;
            };
            let file = self
                .program
                .counters()
                .and_then(|path| std::fs::read(path).ok());
            let reading = Reading {
                time_ms: now_ms(),
                process,
                container: container::read(self.program.pid()),
                counters: file.and_then(|bytes| Counters::parse(&bytes).ok()),
                memory: *locked(&self.memory),
            };
            self.note_missing(&reading);
            let tracked = self.recorded(|recorded| recorded.tracked);
            let (row, events) = sampler.tick(reading, tracked);
            self.add(row, events, sampler.collectors());
            let interval_ms = self.interval_ms.load(Ordering::Relaxed);
            let sites_ms = (interval_ms * SITES_TICKS).clamp(SITES_MS[0], SITES_MS[1]);
            if sites.elapsed() >= Duration::from_millis(sites_ms) {
                sites = Instant::now();
                self.ask_sites();
                self.ask_samples();
            }
            let interval = Duration::from_millis(interval_ms);
            // Sleeps in short steps, so that the end is noticed.
            while begun.elapsed() < interval && self.alive() {
                let rest = interval.saturating_sub(begun.elapsed());
                std::thread::sleep(rest.min(Duration::from_millis(250)));
            }
        }
    }

    fn note_missing(&self, reading: &Reading) {
        let mut notes: Vec<String> = locked(&self.past).fault.iter().cloned().collect();
        if reading.counters.is_none() {
            notes.push(
                "The VM has no counters file (-XX:-UsePerfData, or another user's).".to_owned(),
            );
        }
        self.status.send_if_modified(|status| {
            let changed = status.notes != notes;
            status.notes = notes;
            changed
        });
    }

    fn add(&self, row: Row, events: Vec<EventKind>, collectors: Option<Collectors>) {
        let (rows, last_event) = {
            let mut past = locked(&self.past);
            for event in events {
                past.mark(row.time_ms, event);
            }
            past.collectors(collectors);
            past.push(row);
            let timeline = &past.timeline;
            (
                timeline.recent(ROWS_IN_STATE).copied().collect(),
                timeline.last_event(),
            )
        };
        let dumps = self.dumps.list();
        self.status.send_modify(|status| {
            status.rows = rows;
            status.last_event = last_event;
            status.dumps = dumps;
        });
    }

    fn end(&self) {
        self.mark("The program has ended");
        locked(&self.commands).take();
        self.status.send_modify(|status| status.ended = true);
    }

    fn ask_sites(&self) {
        let Some(commands) = locked(&self.commands).clone() else {
            return;
        };
        let waiting = self.recorded(|recorded| recorded.asked);
        if waiting.is_some_and(|since| since.elapsed() < SITES_PATIENCE) {
            return;
        }
        self.recorded_mut(|recorded| recorded.asked = Some(Instant::now()));
        let _ = self.order_sites(&commands, Ask::Sites);
    }

    /// Requests a snapshot of the sites; returns how many will have been received when it has.
    fn order_sites(&self, commands: &Commands, ask: Ask) -> Result<u64, String> {
        // Requests are sent in the order of their numbers.
        let mut asked = locked(&self.sites_asked);
        let come = self.recorded(|recorded| recorded.sites);
        commands(ask)?;
        *asked = come.max(*asked) + 1;
        Ok(*asked)
    }

    /// Changes the time between two rows.
    ///
    /// # Errors
    /// The time is out of range.
    pub fn set_interval(&self, ms: u64) -> Result<(), String> {
        if !INTERVALS_MS.contains(&ms) {
            return Err(format!("{ms} ms: expected 50 to 60000"));
        }
        self.interval_ms.store(ms, Ordering::Relaxed);
        self.status.send_modify(|status| status.interval_ms = ms);
        Ok(())
    }

    /// Collects garbage.
    ///
    /// # Errors
    /// A message: the VM refuses.
    pub fn force_gc(&self) -> Result<(), String> {
        self.busy("Collecting garbage", || {
            let agent = locked(&self.commands).clone();
            if let Some(commands) = &agent {
                self.settle(commands)?;
            }
            self.mark("Force GC");
            match (self.program.diagnose("GC.run"), agent) {
                (Ok(_), _) => Ok(()),
                (Err(_), Some(commands)) => commands(Ask::Gc),
                (Err(error), None) => Err(error),
            }
        })?;
        self.recorded_mut(|recorded| recorded.asked = None);
        self.ask_sites();
        Ok(())
    }

    /// Requests a snapshot of the sites and waits for it; returns whether it was received. Before a request, the agent
    /// keeps the newest objects of each thread alive, so that a collection would not free them.
    pub fn settle(&self, commands: &Commands) -> Result<bool, String> {
        self.settle_within(commands, SETTLE)
    }

    fn settle_within(&self, commands: &Commands, patience: Duration) -> Result<bool, String> {
        let begun = Instant::now();
        let number = self.order_sites(commands, Ask::Sites)?;
        let has_come = || self.recorded(|recorded| recorded.sites >= number);
        while !has_come() {
            if begun.elapsed() > patience || locked(&self.commands).is_none() {
                // The wait for this one has ended.
                self.recorded_mut(|recorded| recorded.sites = recorded.sites.max(number));
                return Ok(false);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Ok(true)
    }

    /// Performs the periodic work now: requests a snapshot of the sites, and waits for it if there is a recording;
    /// reads sizes for the next table, and memory by category for one of the next rows.
    ///
    /// # Errors
    /// The agent does not answer.
    pub fn snapshot(&self) -> Result<(), String> {
        self.memory_wanted.store(true, Ordering::Relaxed);
        let Some(commands) = self.commands() else {
            return Ok(());
        };
        if !self.settle_within(&commands, SITES_PATIENCE)? {
            return Err("the agent has not answered".to_owned());
        }
        if self.status.borrow().cpu {
            self.settle_samples(&commands, Ask::SamplesSoFar)
                .map_err(|fault| fault.message)?;
        }
        self.recorded_mut(|recorded| recorded.fills.read_again());
        Ok(())
    }

    /// The existing JNI references, requested from the agent now.
    fn held(&self, commands: &Commands) -> Option<Held> {
        let sent = || self.recorded(|recorded| recorded.references);
        let (before, begun) = (sent(), Instant::now());
        self.order_sites(commands, Ask::References).ok()?;
        let is_awaited = || begun.elapsed() < SETTLE && self.commands().is_some();
        while sent() == before && is_awaited() {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.recorded(|recorded| recorded.profile().map(held))
    }

    /// Takes a heap dump and returns its number. It is a snapshot if there is an agent that can make one; otherwise the
    /// agent writes it in a full recording, and the VM itself in other cases. Allocation stacks of tracked objects are
    /// known, unless the VM writes the dump.
    ///
    /// # Errors
    /// A message: the VM refuses.
    pub fn dump(self: &Arc<Self>) -> Result<usize, String> {
        self.busy("Taking a heap dump", || {
            self.mark("Heap dump");
            let agent = locked(&self.commands).clone();
            let snapshot = match &agent {
                Some(commands) => self.dump_by_copy(commands),
                None => {
                    let why = "the agent is not loaded; Record loads it";
                    Err(NoSnapshot::Impossible(why.to_owned()))
                }
            };
            let (number, written) = match snapshot {
                Ok(taken) => taken,
                Err(NoSnapshot::Impossible(why)) => self.dump_by_another(agent, why)?,
                // Another kind of dump could not be stored either.
                Err(NoSnapshot::Output(why)) => {
                    return Err(format!("cannot store the heap dump: {why}"));
                }
            };
            self.dumps.set_written(number, written);
            let dumps = self.dumps.list();
            self.status.send_modify(|status| status.dumps = dumps);
            Ok(number)
        })
    }

    /// Whether there is an agent that tracks all objects.
    fn records_in_full(&self) -> bool {
        matches!(
            self.status.borrow().recording,
            Some(RecordingState {
                recording: Recording::Full { .. },
                connected: true,
                ..
            })
        )
    }

    /// Takes a dump from a copy of the program.
    fn dump_by_copy(&self, commands: &Commands) -> Result<(usize, Written), NoSnapshot> {
        let created = self.dumps.create();
        let (path, file) = created.map_err(|error| NoSnapshot::Output(error.to_string()))?;
        let held = self.held(commands);
        let mut out = Checked { file, fault: None };
        let taken = self.program.snapshot(&mut out);
        let taken = taken.map_err(|why| {
            let _ = fs::remove_file(&path);
            match out.fault {
                Some(fault) => NoSnapshot::Output(format!("{}: {fault}", path.display())),
                None => NoSnapshot::Impossible(why),
            }
        })?;
        let written = Written {
            by: Writer::Snapshot,
            stopped_us: micros(taken.stopped),
            no_snapshot: None,
        };
        let joined = self.records_in_full() && taken.with_stack > 0;
        let number = self.add_dump(path, joined, held);
        Ok((number, written))
    }

    /// Makes the agent or the VM write a dump.
    fn dump_by_another(
        &self,
        agent: Option<Arc<Commands>>,
        why: String,
    ) -> Result<(usize, Written), String> {
        let full = agent.clone().filter(|_| self.records_in_full());
        let (number, by, begun) = match full {
            Some(commands) => {
                let done = self.dumps.next();
                let begun = Instant::now();
                commands(Ask::Dump)?;
                let possible = || locked(&self.commands).is_some();
                (self.dumps.wait(done, possible)??, Writer::Agent, begun)
            }
            None => {
                let (path, _) = self.dumps.create().map_err(|error| error.to_string())?;
                let held = agent.and_then(|commands| self.held(&commands));
                let begun = Instant::now();
                let dumped = self.dump_by_vm(&path);
                dumped.inspect_err(|_| drop(fs::remove_file(&path)))?;
                (self.add_dump(path, false, held), Writer::Vm, begun)
            }
        };
        let written = Written {
            by,
            stopped_us: micros(begun.elapsed()),
            no_snapshot: Some(why),
        };
        Ok((number, written))
    }

    /// Makes the VM write a dump in place of an empty file. The VM writes only to names that are not in use.
    fn dump_by_vm(&self, path: &Path) -> Result<(), String> {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        // An earlier process may have left one.
        let _ = fs::remove_file(&part);
        let dumped = self.program.dump(&part, true).and_then(|()| {
            let renamed = fs::rename(&part, path);
            renamed.map_err(|error| format!("{}: {error}", path.display()))
        });
        dumped.inspect_err(|_| drop(fs::remove_file(&part)))
    }

    /// Starts or resumes counting allocations.
    ///
    /// # Errors
    /// A message: no agent can be loaded.
    pub fn start_recording(self: &Arc<Self>, recording: Recording) -> Result<(), String> {
        self.busy("Starting to record", || {
            let connected = locked(&self.commands).clone();
            match connected {
                Some(commands) => commands(Ask::Allocations(true))?,
                None => {
                    let agent = self.program.record(recording)?;
                    self.connect(agent);
                }
            }
            self.set_recording(true);
            self.mark("Recording started");
            Ok(())
        })?;
        self.ask_sites();
        Ok(())
    }

    /// Stops counting new allocations. Frees of counted objects are still reported.
    ///
    /// # Errors
    /// Nothing is being recorded.
    pub fn stop_recording(&self) -> Result<(), String> {
        self.busy("Stopping the recording", || {
            let commands = locked(&self.commands).clone();
            let commands = commands.ok_or("nothing is being recorded")?;
            self.order_sites(&commands, Ask::Sites)?;
            commands(Ask::Allocations(false))?;
            self.set_recording(false);
            self.mark("Recording stopped");
            Ok(())
        })
    }

    pub(crate) fn set_recording(&self, on: bool) {
        locked(&self.past).on(on);
        self.status.send_modify(|status| {
            if let Some(state) = &mut status.recording {
                state.on = on;
            }
        });
    }
}

/// Why there is no dump from a copy of the program.
enum NoSnapshot {
    /// No copy can be made or read.
    Impossible(String),
    /// The file cannot be written.
    Output(String),
}

/// A file, and the first error of writing it.
struct Checked {
    file: File,
    fault: Option<String>,
}

impl Write for Checked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                self.fault.get_or_insert_with(|| error.to_string());
            }
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A time in microseconds.
fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A part of a file name, derived from a program's name.
fn file_stem(name: &str) -> String {
    let last = name.rsplit(['/', ' ']).next().unwrap_or(name);
    let kept = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let stem: String = last.chars().filter(|c| kept(*c)).take(60).collect();
    if stem.is_empty() {
        "java".to_owned()
    } else {
        stem
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_parts_of_file_names() {
        assert_eq!(file_stem("/opt/app/shop.jar"), "shop.jar");
        assert_eq!(file_stem("com.example.Main"), "com.example.Main");
        assert_eq!(file_stem("<>"), "java");
    }
}
