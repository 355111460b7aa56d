//! What the agent has said: its stream, taken in as it comes, becomes the past of every site.

use super::cpu;
use super::fills::Readings;
use super::history::History;
use super::kept;
use super::program::Agent;
use super::references;
use super::rules::Answers;
use super::session::{Live, locked, now_ms};
use super::status::RecordingState;
use super::tap::{Arrived, NextDump, Tap, TapError};
use hprof::{RecordTag, Serial};
use profile::{NameId, Profile, TraceId};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

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
    /// CPU samples at each time they were sent: the stacks, with samples as objects and CPU time in nanoseconds as bytes.
    pub cpu: History,
    /// Objects and bytes tracked and live at the last snapshot.
    pub(super) tracked: Option<(u64, u64)>,
    pub(super) asked: Option<Instant>,
    /// How many snapshots of the sites the agent that is connected has sent, as far as pages know them.
    pub(super) sites: u64,
    /// How often each JNI reference was sent.
    pub(super) references: u64,
    /// The last live objects that were listed.
    pub(super) listing: Option<vmpi::Listing>,
    /// How big and how full live objects were when the agent read that.
    pub(super) fills: Readings,
    /// How often CPU samples were sent, and contention of monitors.
    pub(super) measured: [u64; 2],
    /// Notes of the agent's that are on the timeline, without their numbers.
    notes: BTreeSet<String>,
}

/// What some bytes of the stream brought.
#[derive(Debug, Default)]
pub(super) struct Taken {
    /// In order.
    arrived: Vec<Arrived>,
    /// A snapshot came: whether anything was ever counted.
    snapshot: Option<bool>,
    /// What a server that comes later needs of it.
    pub(super) kept: Vec<u8>,
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

    /// The stream of an agent begins. A program has one agent as long as it lives, whose counts and numbers go
    /// on, so what was known stays.
    pub(super) fn begin(&mut self, next_dump: NextDump) {
        match &mut self.tap {
            Some(tap) => tap.go_on(next_dump),
            None => self.tap = Some(Tap::new(next_dump)),
        }
        self.asked = None;
        self.sites = 0;
        self.fills.ask_again();
    }

    /// Takes the next bytes of the stream.
    pub(super) fn take(&mut self, now: u64, bytes: &[u8]) -> Result<Taken, TapError> {
        let mut taken = Taken::default();
        let Some(tap) = &mut self.tap else {
            return Ok(taken);
        };
        taken.arrived = tap.push(bytes)?;
        let has = |what| taken.arrived.contains(&what);
        let has_table = has(Arrived::ReferenceTable);
        self.references += u64::from(has(Arrived::References));
        if has_table && let Some(table) = tap.profile().and_then(|it| it.references.as_ref()) {
            for (history, weak) in self.made.iter_mut().zip([false, true]) {
                history.push(now, &references::as_sites(table, weak));
            }
        }
        let samples = taken.arrived.iter().filter(|it| **it == Arrived::Samples);
        let sent = samples.count() as u64;
        self.measured[0] += sent;
        if sent > 0
            && let Some(table) = tap.profile().and_then(|it| it.samples.as_ref())
        {
            self.cpu.push(now, &cpu::as_sites(table));
        }
        self.measured[1] += u64::from(has(Arrived::Contention));
        let has_sites = has(Arrived::Sites);
        if has_sites && let Some(table) = tap.profile().and_then(|profile| profile.sites.as_ref()) {
            self.history.push(now, table);
            if let Some(native) = tap.profile().and_then(|profile| profile.native.as_ref()) {
                self.native.push(now, native);
            }
            let live = table.totals().0;
            self.tracked = Some((live.objects, live.bytes));
            self.asked = None;
            taken.snapshot = Some(!table.sites().is_empty());
        }
        taken.kept = self.kept(has_sites, has_table);
        Ok(taken)
    }

    /// What has arrived, without the rows of tables that say what the history knew.
    fn kept(&mut self, has_sites: bool, has_table: bool) -> Vec<u8> {
        let Some(tap) = &mut self.tap else {
            return Vec::new();
        };
        let mut kept = std::mem::take(tap.kept());
        let mut out = kept.names();
        let tap = &*tap;
        let site = |row: kept::Row| -> Option<(NameId, TraceId)> {
            Some((tap.class(Serial(row.0)), tap.trace(Serial(row.1))?))
        };
        let changed = |history: &History, row| {
            site(row).is_some_and(|(class, trace)| history.has_changed(class, trace))
        };
        if has_sites {
            let native = |row| changed(&self.native, row);
            kept.table(RecordTag::NativeSites, &mut out, native);
            for tag in [RecordTag::AllocSites, RecordTag::WideAllocSites] {
                kept.table(tag, &mut out, |row| changed(&self.history, row));
            }
        }
        if has_table {
            // Each table is the whole of what exists, and small.
            match self.made.iter().any(History::has_any_changed) {
                true => kept.whole(RecordTag::JniReferences, &mut out),
                false => kept.forget(RecordTag::JniReferences),
            }
        }
        if let Some(tap) = &mut self.tap {
            *tap.kept() = kept;
        }
        out
    }

    /// A journal was read again: its last table had only some rows.
    pub(super) fn end_replay(&mut self) {
        if !self.history.times().is_empty() {
            let live = self.history.live();
            self.tracked = Some((live.objects, live.bytes));
        }
    }

    /// Number of the snapshots, and when the first and the last were taken.
    pub(super) fn snapshots(&self) -> (usize, Option<(u64, u64)>) {
        let times = self.history.times();
        let range = times.first().copied().zip(times.last().copied());
        (times.len(), range)
    }
}

impl Live {
    /// Takes an agent that is connected.
    pub fn connect(self: &Arc<Self>, agent: Agent) {
        let dumps = self.dumps.clone();
        let (snapshots, range) = self.recorded_mut(|recorded| {
            recorded.begin(Box::new(move || dumps.create()));
            recorded.listing = None;
            locked(&self.past).agent(agent.recording);
            recorded.snapshots()
        });
        self.set_commands(Some(agent.commands));
        self.tell_rules();
        self.end_old_samples();
        if self.status.borrow().own_code {
            let _ = self.set_own_code(true);
        }
        self.status.send_modify(|status| {
            let before = status.recording.take();
            status.recording = Some(RecordingState {
                recording: agent.recording,
                on: true,
                connected: true,
                counting: before.is_some_and(|before| before.counting),
                snapshots,
                range,
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
                self.fail(&error.to_string());
                break;
            }
        }
        self.set_commands(None);
        self.status.send_modify(|status| {
            if let Some(state) = &mut status.recording {
                state.connected = false;
                state.on = false;
            }
        });
    }

    fn take(&self, bytes: &[u8]) -> Result<(), TapError> {
        let now = now_ms();
        let (taken, (snapshots, range)) = self.recorded_mut(|recorded| {
            let taken = recorded.take(now, bytes)?;
            locked(&self.past).stream(now, &taken.kept);
            Ok::<_, TapError>((taken, recorded.snapshots()))
        })?;
        if let Some(counting) = taken.snapshot {
            let mut began = false;
            self.status.send_modify(|status| {
                if let Some(recording) = &mut status.recording {
                    recording.snapshots = snapshots;
                    recording.range = range;
                    began = counting && !recording.counting;
                    recording.counting |= counting;
                }
            });
            if began {
                self.mark("Counting");
            }
        }
        let is_snapshot = |one: &&Arrived| **one == Arrived::Sites;
        let come = taken.arrived.iter().filter(is_snapshot).count() as u64;
        for event in taken.arrived {
            match event {
                Arrived::Dump(path, held) => {
                    self.add_dump(path, true, Some(held));
                }
                Arrived::Listing(listing) => {
                    self.recorded_mut(|recorded| recorded.listing = Some(*listing));
                }
                Arrived::Fills(fills) => self.recorded_mut(|recorded| recorded.fills.take(*fills)),
                Arrived::Note(text) => self.note(&text),
                _ => {}
            }
        }
        if come > 0 {
            self.recorded_mut(|recorded| recorded.sites += come);
        }
        Ok(())
    }

    /// Puts a note of the agent's on the timeline, unless it differs from one that is there in
    /// numbers only.
    fn note(&self, text: &str) {
        // The agent has no more. The name of a thread may look like a note, and there are as many of these as the
        // program likes.
        const MOST: usize = 256;
        let words = text.replace(|c: char| c.is_ascii_digit(), "");
        let is_new = self
            .recorded_mut(|recorded| recorded.notes.len() < MOST && recorded.notes.insert(words));
        if is_new {
            self.mark(format!("Agent: {text}"));
        }
    }

    /// Adds a heap dump that is whole, and gives its number.
    pub(super) fn add_dump(
        &self,
        path: PathBuf,
        joined: bool,
        held: Option<references::Held>,
    ) -> usize {
        locked(&self.past).dump(path.clone(), joined);
        self.dumps.add(now_ms(), path, joined, held)
    }
}
