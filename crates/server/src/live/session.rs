//! One watched program: what is known of it, and the threads that keep it known.

use super::dumps::Dumps;
use super::fills::Readings;
use super::history::History;
use super::live_objects::Asking;
use super::memory::Memory;
use super::metrics::{METRICS, MetricInfo, Row};
use super::perfdata::Counters;
use super::process;
use super::program::{Agent, Ask, Commands, Program, Recording};
use super::references::{self, Held, held};
use super::rules::{Answers, Chosen};
use super::sampler::{Reading, Sampler};
use super::shelf::Shelf;
use super::status::{RecordingState, Status};
use super::tap::{Arrived, Tap};
use super::timeline::{EventKind, Timeline};
use profile::Profile;
use serde::Serialize;
use std::io::{ErrorKind, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::watch;

/// Milliseconds between two ticks, unless the page asks for others.
const INTERVAL_MS: u64 = 250;
/// What the page may ask for.
const INTERVALS_MS: std::ops::RangeInclusive<u64> = 50..=60_000;
/// Allocation sites are asked for so often while recording.
const SITES_EVERY: Duration = Duration::from_secs(2);
/// An answer that has not come after this long is no longer waited for.
const SITES_PATIENCE: Duration = Duration::from_secs(30);
/// A collection does not wait longer for the agent.
const SETTLE: Duration = Duration::from_secs(10);
/// Rows in every state that pages follow: enough for a page that missed some.
const ROWS_IN_STATE: usize = 16;

/// What the agent has said so far.
#[derive(Debug, Default)]
pub struct Recorded {
    tap: Option<Tap>,
    /// The sites at each snapshot.
    pub history: History,
    /// The blocks of native code at each snapshot; the class is the library.
    pub native: History,
    /// Global and weak references of native code at each snapshot.
    pub made: [History; 2],
    /// Objects and bytes tracked and live at the last snapshot.
    tracked: Option<(u64, u64)>,
    asked: Option<Instant>,
    /// How often each JNI reference was sent.
    pub(super) references: u64,
    /// The last live objects that were listed.
    pub(super) listing: Option<vmpi::Listing>,
    /// How big and how full live objects were when the agent read that.
    pub(super) fills: Readings,
    /// How often CPU samples were sent, and contention of monitors.
    pub(super) measured: [u64; 2],
}

impl Recorded {
    /// Names and stacks of everything in the history.
    pub fn profile(&self) -> Option<&Profile> {
        self.tap.as_ref().and_then(Tap::profile)
    }

    /// What the agent sends.
    pub(super) fn tap(&self) -> Option<&Tap> {
        self.tap.as_ref()
    }

    /// What factories of the program have said of classes.
    pub fn answers(&self) -> Option<&Answers> {
        self.tap.as_ref().map(Tap::answers)
    }
}

/// Metrics of the timeline with rows and events: `tenure.live.timeline/1`.
#[derive(Clone, Debug, Serialize)]
pub struct TimelineAnswer {
    /// Name of the schema.
    pub schema: &'static str,
    /// What the values of a row are.
    pub metrics: &'static [MetricInfo],
    /// Rows.
    pub rows: Vec<Row>,
    /// Events in the range.
    pub events: Vec<super::timeline::Event>,
}

/// A watched program.
pub struct Live {
    program: Arc<dyn Program>,
    timeline: Mutex<Timeline>,
    recorded: RwLock<Recorded>,
    commands: Mutex<Option<Arc<Commands>>>,
    /// What was last known of memory by category.
    pub(super) memory: Mutex<Memory>,
    /// Its heap dumps.
    pub dumps: Dumps,
    /// Its tables of classes that were kept.
    pub shelf: Shelf,
    /// What is looked at of each class.
    pub rules: Chosen,
    /// Where the sources of its frames may be found.
    sources: Vec<PathBuf>,
    pub(super) status: watch::Sender<Status>,
    interval_ms: AtomicU64,
    /// One command after the other.
    turn: Mutex<()>,
    /// One measurement after the other.
    pub(super) measuring: Mutex<()>,
    /// One question about objects after the other.
    pub(super) asking: Mutex<Asking>,
    stop: AtomicBool,
}

impl std::fmt::Debug for Live {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Live")
            .field("pid", &self.program.pid())
            .finish_non_exhaustive()
    }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Milliseconds since 1970.
pub fn now_ms() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

impl Live {
    /// Begins to watch a program; heap dumps and tables go into `folder`, and the sources of frames are
    /// looked for below `sources`.
    pub fn watch(program: Arc<dyn Program>, folder: PathBuf, sources: Vec<PathBuf>) -> Arc<Live> {
        let status = Status {
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
            timeline: Mutex::default(),
            recorded: RwLock::default(),
            commands: Mutex::default(),
            memory: Mutex::default(),
            rules: Chosen::default(),
            dumps: Dumps::new(folder.clone(), stem.clone()),
            shelf: Shelf::new(folder, stem),
            sources,
            status: watch::channel(status).0,
            interval_ms: AtomicU64::new(INTERVAL_MS),
            turn: Mutex::default(),
            measuring: Mutex::default(),
            asking: Mutex::default(),
            stop: AtomicBool::new(false),
        });
        live.thread("tenure-timeline", Live::measure);
        live.thread("tenure-memory", Live::ask_memory);
        live.thread("tenure-save", Live::save_on_schedule);
        live
    }

    /// Runs something on a thread of its own.
    fn thread(self: &Arc<Self>, name: &str, work: impl FnOnce(&Arc<Live>) + Send + 'static) {
        let live = Arc::clone(self);
        let spawned = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(&live));
        if let Err(error) = spawned {
            self.fail(&error.to_string());
        }
    }

    /// Stops watching; the program goes on.
    pub fn close(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.dumps.close();
    }

    /// The present state, and how to follow it.
    pub fn status(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    /// The program.
    pub fn program(&self) -> &dyn Program {
        &*self.program
    }

    /// Folders below which sources of frames are looked for.
    pub fn sources(&self) -> &[PathBuf] {
        &self.sources
    }

    /// Rows and events from `from` to `to`.
    pub fn timeline(
        &self,
        from: u64,
        to: u64,
        points: usize,
        after: Option<u64>,
    ) -> TimelineAnswer {
        let timeline = locked(&self.timeline);
        TimelineAnswer {
            schema: "tenure.live.timeline/1",
            metrics: &METRICS,
            rows: timeline.rows(from, to, points),
            events: timeline.events(from, to, after),
        }
    }

    /// Looks at what the agent has said.
    pub fn recorded<T>(&self, look: impl FnOnce(&Recorded) -> T) -> T {
        look(&self.recorded.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn recorded_mut<T>(&self, change: impl FnOnce(&mut Recorded) -> T) -> T {
        change(
            &mut self
                .recorded
                .write()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }

    pub(super) fn fail(&self, message: &str) {
        self.status
            .send_modify(|status| status.error = Some(message.to_owned()));
    }

    pub(super) fn alive(&self) -> bool {
        !self.stop.load(Ordering::Relaxed) && !self.status.borrow().ended
    }

    /// Puts a mark on the timeline.
    pub fn mark(&self, text: impl Into<String>) {
        let kind = EventKind::Marker { text: text.into() };
        let id = locked(&self.timeline).mark(now_ms(), kind);
        self.status
            .send_modify(|status| status.last_event = Some(id));
    }

    /// The ticks, until the program or the watch ends.
    fn measure(self: &Arc<Self>) {
        let mut sampler = Sampler::default();
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
                counters: file.and_then(|bytes| Counters::parse(&bytes).ok()),
                memory: *locked(&self.memory),
            };
            self.note_missing(&reading);
            let tracked = self.recorded(|recorded| recorded.tracked);
            let (row, events) = sampler.tick(reading, tracked);
            self.add(row, events);
            if sites.elapsed() >= SITES_EVERY {
                sites = Instant::now();
                self.ask_sites();
            }
            let interval = Duration::from_millis(self.interval_ms.load(Ordering::Relaxed));
            // In short steps, so that the end is noticed.
            while begun.elapsed() < interval && self.alive() {
                let rest = interval.saturating_sub(begun.elapsed());
                std::thread::sleep(rest.min(Duration::from_millis(250)));
            }
        }
    }

    fn note_missing(&self, reading: &Reading) {
        let mut notes = Vec::new();
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

    fn add(&self, row: Row, events: Vec<EventKind>) {
        let (rows, last_event) = {
            let mut timeline = locked(&self.timeline);
            for event in events {
                timeline.mark(row.time_ms, event);
            }
            timeline.push(row);
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
        let _ = commands(Ask::Sites);
    }

    /// Changes the time between two rows.
    ///
    /// # Errors
    /// When it is out of range.
    pub fn set_interval(&self, ms: u64) -> Result<(), String> {
        if !INTERVALS_MS.contains(&ms) {
            return Err(format!("{ms} ms: expected 50 to 60000"));
        }
        self.interval_ms.store(ms, Ordering::Relaxed);
        self.status.send_modify(|status| status.interval_ms = ms);
        Ok(())
    }

    /// Does something that takes time, one after the other, and says so on the pages.
    fn busy<T>(&self, what: &str, work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let _turn = locked(&self.turn);
        if self.status.borrow().ended {
            return Err("the program has ended".to_owned());
        }
        self.status.send_modify(|status| {
            status.busy = Some(what.to_owned());
            status.error = None;
        });
        let done = work();
        self.status.send_modify(|status| {
            status.busy = None;
            status.error = done.as_ref().err().cloned();
        });
        done
    }

    /// Collects garbage.
    ///
    /// # Errors
    /// When the VM refuses, in words.
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

    /// Waits for a snapshot of the sites: until it is asked, the agent holds the youngest objects of
    /// each thread, so that a collection would not find them.
    pub(super) fn settle(&self, commands: &Commands) -> Result<(), String> {
        let snapshots = || self.recorded(|recorded| recorded.history.times().len());
        let (before, begun) = (snapshots(), Instant::now());
        commands(Ask::Sites)?;
        while snapshots() == before && begun.elapsed() < SETTLE {
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// The JNI references that exist, as the agent says it now.
    fn held(&self, commands: &Commands) -> Option<Held> {
        let sent = || self.recorded(|recorded| recorded.references);
        let (before, begun) = (sent(), Instant::now());
        commands(Ask::References).ok()?;
        while sent() == before && begun.elapsed() < SETTLE {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.recorded(|recorded| recorded.profile().map(held))
    }

    /// Takes a heap dump and gives its number. With a full recording its objects know the stack
    /// that allocated them; else the VM writes it itself.
    ///
    /// # Errors
    /// When the VM refuses, in words.
    pub fn dump(self: &Arc<Self>) -> Result<usize, String> {
        self.busy("Taking a heap dump", || {
            self.mark("Heap dump");
            let full = matches!(
                self.status.borrow().recording,
                Some(RecordingState {
                    recording: Recording::Full { .. },
                    connected: true,
                    ..
                })
            );
            let agent = locked(&self.commands).clone();
            let number = match agent.clone().filter(|_| full) {
                Some(commands) => {
                    let before = self.dumps.count();
                    commands(Ask::Dump)?;
                    let done = || (self.dumps.count() > before).then_some(before + 1);
                    self.dumps.wait(done, || locked(&self.commands).is_some())?
                }
                None => {
                    let path = self.dumps.next_path().map_err(|error| error.to_string())?;
                    let held = agent.and_then(|commands| self.held(&commands));
                    self.program.dump(&path, true)?;
                    self.dumps.add(path, false, held)
                }
            };
            let dumps = self.dumps.list();
            self.status.send_modify(|status| status.dumps = dumps);
            Ok(number)
        })
    }

    /// Starts to count allocations, or goes on with it.
    ///
    /// # Errors
    /// When no agent can be loaded, in words.
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

    /// Stops counting new allocations. Deaths of what was counted are still noticed.
    ///
    /// # Errors
    /// When nothing is being recorded.
    pub fn stop_recording(&self) -> Result<(), String> {
        self.busy("Stopping the recording", || {
            let commands = locked(&self.commands).clone();
            let commands = commands.ok_or("nothing is being recorded")?;
            commands(Ask::Sites)?;
            commands(Ask::Allocations(false))?;
            self.set_recording(false);
            self.mark("Recording stopped");
            Ok(())
        })
    }

    fn set_recording(&self, on: bool) {
        self.status.send_modify(|status| {
            if let Some(state) = &mut status.recording {
                state.on = on;
            }
        });
    }

    /// The way to the agent that is connected.
    pub(super) fn commands(&self) -> Option<Arc<Commands>> {
        locked(&self.commands).clone()
    }

    /// Takes an agent that is connected.
    pub fn connect(self: &Arc<Self>, agent: Agent) {
        let dumps = self.dumps.clone();
        let tap = Tap::new(Box::new(move || dumps.create()));
        self.recorded_mut(|recorded| {
            *recorded = Recorded {
                tap: Some(tap),
                ..Recorded::default()
            };
        });
        *locked(&self.commands) = Some(Arc::new(agent.commands));
        self.tell_rules();
        if self.status.borrow().own_code {
            let _ = self.set_own_code(true);
        }
        self.status.send_modify(|status| {
            status.recording = Some(RecordingState {
                recording: agent.recording,
                on: true,
                connected: true,
                counting: false,
                snapshots: 0,
                range: None,
            });
        });
        self.thread("tenure-agent", move |live| live.receive(agent.stream));
    }

    /// Reads what the agent sends until it is gone.
    fn receive(&self, mut stream: Box<dyn Read + Send>) {
        let mut buffer = vec![0; 1 << 16];
        while !self.stop.load(Ordering::Relaxed) {
            let count = match stream.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => count,
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                        continue;
                    }
                    _ => break,
                },
            };
            if let Err(error) = self.take(&buffer[..count]) {
                self.fail(&error);
                break;
            }
        }
        locked(&self.commands).take();
        self.status.send_modify(|status| {
            if let Some(state) = &mut status.recording {
                state.connected = false;
                state.on = false;
            }
        });
    }

    fn take(&self, bytes: &[u8]) -> Result<(), String> {
        let now = now_ms();
        let mut counting = false;
        let (arrived, state) = self.recorded_mut(|recorded| {
            let Some(tap) = &mut recorded.tap else {
                return Ok((Vec::new(), None));
            };
            let arrived = tap.push(bytes).map_err(|error| error.to_string())?;
            let mut state = None;
            let sent = |what| u64::from(arrived.contains(&what));
            recorded.references += sent(Arrived::References);
            if arrived.contains(&Arrived::ReferenceTable)
                && let Some(table) = tap.profile().and_then(|it| it.references.as_ref())
            {
                for (history, weak) in recorded.made.iter_mut().zip([false, true]) {
                    history.push(now, &references::as_sites(table, weak));
                }
            }
            recorded.measured[0] += sent(Arrived::Samples);
            recorded.measured[1] += sent(Arrived::Contention);
            if arrived.contains(&Arrived::Sites)
                && let Some(table) = tap.profile().and_then(|profile| profile.sites.as_ref())
            {
                recorded.history.push(now, table);
                if let Some(native) = tap.profile().and_then(|profile| profile.native.as_ref()) {
                    recorded.native.push(now, native);
                }
                let live = table.totals().0;
                recorded.tracked = Some((live.objects, live.bytes));
                counting = !table.sites().is_empty();
                recorded.asked = None;
                let times = recorded.history.times();
                state = times
                    .first()
                    .copied()
                    .zip(times.last().copied())
                    .map(|r| (times.len(), r));
            }
            Ok::<_, String>((arrived, state))
        })?;
        if let Some((snapshots, range)) = state {
            let mut began = false;
            self.status.send_modify(|status| {
                if let Some(recording) = &mut status.recording {
                    recording.snapshots = snapshots;
                    recording.range = Some(range);
                    began = counting && !recording.counting;
                    recording.counting |= counting;
                }
            });
            if began {
                self.mark("Counting");
            }
        }
        for event in arrived {
            match event {
                Arrived::Dump(path, held) => {
                    self.dumps.add(path, true, Some(held));
                }
                Arrived::Listing(listing) => {
                    self.recorded_mut(|recorded| recorded.listing = Some(*listing));
                }
                Arrived::Fills(fills) => self.recorded_mut(|recorded| recorded.fills.take(*fills)),
                _ => {}
            }
        }
        Ok(())
    }
}

/// A part of a file name made of a program's name.
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
