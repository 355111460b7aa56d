//! The connection to the agent: a thread reads its stream, and the received data is added to the recording.

use super::program::{Agent, Ask};
use super::recorded::Recorded;
use super::state::{Live, locked};
use super::status::RecordingState;
use super::tap::{Arrived, TapError};
use crate::clock::now_ms;
use live_analysis::references::Held;
use std::io::{ErrorKind, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use vmpi::class_options::Rules;

impl Live {
    /// Handles a newly connected agent.
    pub fn connect(self: &Arc<Self>, agent: Agent) {
        let dumps = self.dumps.clone();
        let (snapshots, range) = self.recorded_mut(|recorded| {
            recorded.begin(Box::new(move || dumps.create()));
            recorded.listing = None;
            locked(&self.past).agent(agent.recording);
            recorded.snapshots()
        });
        self.set_commands(Some(agent.commands));
        self.send_rules();
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

    /// Reads the agent's stream until it ends.
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
        if let Some(why) = self.recorded_mut(Recorded::end_of_stream) {
            self.dump_failed(&why);
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
                Arrived::DumpFailed(why) => self.dump_failed(&why),
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

    /// Reports that a heap dump of the agent could not be stored.
    fn dump_failed(&self, why: &str) {
        let why = format!("cannot store the heap dump: {why}");
        self.fail(&why);
        self.dumps.add_failure(why);
    }

    /// Adds a note of the agent to the timeline, unless it differs only in numbers from an existing one.
    fn note(&self, text: &str) {
        // The agent has fewer notes than this. The name of a thread may look like a note, and a program can have any
        // number of these.
        const MOST: usize = 256;
        let words = text.replace(|c: char| c.is_ascii_digit(), "");
        let is_new = self
            .recorded_mut(|recorded| recorded.notes.len() < MOST && recorded.notes.insert(words));
        if is_new {
            self.mark(format!("Agent: {text}"));
        }
    }

    /// Adds a complete heap dump, and returns its number.
    pub(crate) fn add_dump(&self, path: PathBuf, joined: bool, held: Option<Held>) -> usize {
        locked(&self.past).dump(path.clone(), joined);
        let opened = self.program.open_dump(&path);
        self.dumps.add(now_ms(), (path, opened), joined, held)
    }
}

impl Live {
    /// Sets the class filters for recording and showing from now on.
    ///
    /// # Errors
    /// The first line that is wrong; the previous filters then stay.
    pub fn choose(&self, text: &str) -> Result<(), String> {
        let rules = Rules::parse(text).map_err(|wrong| wrong.to_string())?;
        locked(&self.past).classes(rules.text());
        self.rules.set(rules);
        self.send_rules();
        Ok(())
    }

    /// Sends the class filters to the agent, if there is one. If it is gone, the thread that reads its stream notices.
    pub(crate) fn send_rules(&self) {
        if let Some(commands) = self.commands() {
            let _ = commands(Ask::Classes(self.rules.get().text().to_owned()));
        }
    }
}
