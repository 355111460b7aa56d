//! The history of a program: its timeline, the journal that stores it, and the data of the agent, for a later server if
//! this one is killed. That server replays the journal with the code that handled the data when it was received, so it
//! gets the same state.

use super::journal::{Found, Identity, Journal, JournalError};
use super::saved_tables::Saved;
use crate::clock::{self, now_ms};
use crate::recording::program::Recording;
use crate::recording::recorded::Recorded;
use live_analysis::metrics::{COUNT, Row};
use live_analysis::sampler::Collectors;
use live_analysis::timeline::{EventKind, Timeline};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};

/// Kinds of entries: a row of the timeline, bytes of the agent's stream, everything else as JSON.
const ROW: u8 = 1;
const STREAM: u8 = 2;
const NOTE: u8 = 3;

/// A word of bits states which values of a row follow.
const _: () = assert!(COUNT <= 32, "a row has a bit for each metric");

/// What is kept as JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Note {
    /// An event of the timeline.
    Event(EventKind),
    /// What the collectors have done.
    Collectors(Collectors),
    /// An agent is connected; its stream begins.
    Agent(Recording),
    /// New allocations are counted, or no longer.
    On(bool),
    /// Class filters.
    Classes(String),
    /// A heap dump was taken.
    Dump { path: PathBuf, joined: bool },
    /// A table was kept.
    Saved(Saved),
    /// No one watched from here on.
    Interrupted,
}

/// The timeline and its journal.
#[derive(Debug, Default)]
pub(crate) struct Past {
    /// The timeline.
    pub(crate) timeline: Timeline,
    journal: Option<Journal>,
    /// The last row in the journal; the next one is stored as a difference to it.
    row: Option<Row>,
    collectors: Option<Collectors>,
    /// Why nothing is stored any more.
    pub(crate) fault: Option<String>,
    /// The recording that was active when the previous server ended, until it is resumed.
    pub(crate) resume: Option<Recording>,
}

/// The data of a journal except the timeline.
#[derive(Debug, Default)]
pub(crate) struct Earlier {
    /// The data of the agent.
    pub(crate) recorded: Recorded,
    /// The recording, and whether new allocations were counted at the end.
    pub(crate) recording: Option<(Recording, bool)>,
    /// The state of the collectors.
    pub(crate) collectors: Option<Collectors>,
    /// Class filters.
    pub(crate) classes: Option<String>,
    /// Heap dumps: time, path, and whether allocation stacks of objects are known.
    pub(crate) dumps: Vec<(u64, PathBuf, bool)>,
    /// Saved tables.
    pub(crate) saved: Vec<Saved>,
    /// Time of the last entry.
    last_ms: u64,
    /// The stream cannot be read any further.
    is_lost: bool,
}

impl Past {
    /// Reads the journal of a program in this folder, and stores new data in it.
    pub(crate) fn open(folder: Option<&Path>, pid: u32) -> (Past, Earlier) {
        let (mut past, mut earlier) = (Past::default(), Earlier::default());
        let Some((folder, program)) = folder.zip(Identity::of(pid)) else {
            return (past, earlier);
        };
        match past.replay(folder, &program, &mut earlier) {
            Ok(found) => {
                if found.entries > 0 {
                    past.go_on(&earlier);
                }
                if found.damaged > 0 {
                    let damaged = found.damaged;
                    let text = format!(
                        "The journal was damaged or of another version: {damaged} bytes are lost"
                    );
                    let at = now_ms();
                    past.mark(at, EventKind::Marker { text });
                }
            }
            Err(error) => past.give_up(&error),
        }
        (past, earlier)
    }

    fn replay(
        &mut self,
        folder: &Path,
        program: &Identity,
        earlier: &mut Earlier,
    ) -> Result<Found, JournalError> {
        let mut journal = Journal::open(folder, program)?;
        let found = journal.read(|kind, time, content| {
            earlier.last_ms = earlier.last_ms.max(time);
            self.entry(earlier, (kind, time), content);
        })?;
        // The clock may have been set back since; what follows must not be earlier.
        clock::continue_from(earlier.last_ms.saturating_add(1));
        earlier.recorded.end_replay();
        self.journal = Some(journal);
        Ok(found)
    }

    /// Replays an entry.
    fn entry(&mut self, earlier: &mut Earlier, (kind, time): (u8, u64), content: &[u8]) {
        match kind {
            ROW => {
                if let Some(row) = decode_row(self.row.as_ref(), time, content) {
                    self.timeline.push(row);
                    self.row = Some(row);
                }
            }
            STREAM if !earlier.is_lost => {
                let taken = earlier.recorded.take(time, content);
                earlier.is_lost = taken.is_err();
            }
            NOTE => {
                if let Ok(note) = serde_json::from_slice(content) {
                    self.note_again(earlier, time, note);
                }
            }
            _ => {}
        }
    }

    fn note_again(&mut self, earlier: &mut Earlier, time: u64, note: Note) {
        match note {
            Note::Event(mut kind) => {
                // JSON may lose the last bit of a number; this one has three decimals.
                if let EventKind::Gc { pause_ms, .. } = &mut kind {
                    *pause_ms = (*pause_ms * 1e3).round() / 1e3;
                }
                self.timeline.mark(time, kind);
            }
            Note::Collectors(collectors) => earlier.collectors = Some(collectors),
            Note::Agent(recording) => {
                let none = || Err(io::Error::other("a journal has no heap dumps"));
                earlier.recorded.begin(Box::new(none));
                earlier.recording = Some((recording, true));
                earlier.is_lost = false;
            }
            Note::On(on) => {
                if let Some(recording) = &mut earlier.recording {
                    recording.1 = on;
                }
            }
            Note::Classes(text) => earlier.classes = Some(text),
            Note::Dump { path, joined } => earlier.dumps.push((time, path, joined)),
            Note::Saved(saved) => earlier.saved.push(saved),
            Note::Interrupted => self.timeline.interrupt(time),
        }
    }

    /// Marks the time in which the program was not monitored.
    fn go_on(&mut self, earlier: &Earlier) {
        let (from, now) = (earlier.last_ms.saturating_add(1), now_ms());
        let on = earlier.recording.filter(|(_, on)| *on);
        self.resume = on.map(|(recording, _)| recording);
        self.collectors = earlier.collectors;
        self.timeline.interrupt(from);
        self.note(from, &Note::Interrupted);
        let seconds = now.saturating_sub(from).div_ceil(1000);
        let text =
            format!("Tenure did not run for {seconds} s; counts of that time are added here");
        self.mark(now.max(from), EventKind::Marker { text });
    }

    fn give_up(&mut self, error: &JournalError) {
        self.fault = Some(format!(
            "The history from now on is not saved and would be lost if this server were killed: {error}."
        ));
    }

    fn write(&mut self, kind: u8, time_ms: u64, content: &[u8]) {
        let Some(journal) = self.journal.as_mut().filter(|_| self.fault.is_none()) else {
            return;
        };
        if let Err(error) = journal.write(kind, time_ms, content) {
            self.give_up(&error);
        }
    }

    fn note(&mut self, time_ms: u64, note: &Note) {
        if let Ok(text) = serde_json::to_vec(note) {
            self.write(NOTE, time_ms, &text);
        }
    }

    /// Adds a row.
    pub(crate) fn push(&mut self, row: Row) {
        self.timeline.push(row);
        let content = encode_row(self.row.as_ref(), &row);
        self.row = Some(row);
        self.write(ROW, row.time_ms, &content);
    }

    /// Adds an event and returns its number.
    pub(crate) fn mark(&mut self, time_ms: u64, kind: EventKind) -> u64 {
        self.note(time_ms, &Note::Event(kind.clone()));
        self.timeline.mark(time_ms, kind)
    }

    /// Stores the current state of the collectors.
    pub(crate) fn collectors(&mut self, collectors: Option<Collectors>) {
        if collectors.is_some() && self.collectors != collectors {
            self.collectors = collectors;
            self.note(now_ms(), &Note::Collectors(collectors.unwrap_or_default()));
        }
    }

    /// An agent is connected.
    pub(crate) fn agent(&mut self, recording: Recording) {
        self.note(now_ms(), &Note::Agent(recording));
    }

    /// New allocations are counted, or no longer.
    pub(crate) fn on(&mut self, on: bool) {
        self.note(now_ms(), &Note::On(on));
    }

    /// Bytes of the agent's stream.
    pub(crate) fn stream(&mut self, time_ms: u64, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.write(STREAM, time_ms, bytes);
        }
    }

    /// The class filters have changed.
    pub(crate) fn classes(&mut self, text: &str) {
        self.note(now_ms(), &Note::Classes(text.to_owned()));
    }

    /// A heap dump was taken.
    pub(crate) fn dump(&mut self, path: PathBuf, joined: bool) {
        self.note(now_ms(), &Note::Dump { path, joined });
    }

    /// A table was saved.
    pub(crate) fn saved(&mut self, saved: Saved) {
        self.note(now_ms(), &Note::Saved(saved));
    }

    /// Removes the journal: the program has ended, and the recording is saved elsewhere.
    pub(crate) fn forget(&mut self) {
        if let Some(journal) = self.journal.take() {
            journal.remove();
        }
    }
}

/// A word of bits states which values differ from those of the previous row; these values follow.
fn encode_row(before: Option<&Row>, row: &Row) -> Vec<u8> {
    let none = Row::new(0);
    let before = before.unwrap_or(&none);
    let (mut mask, mut values) = (0u32, Vec::new());
    for (n, (old, new)) in before.values.iter().zip(&row.values).enumerate() {
        if old.to_bits() != new.to_bits() {
            mask |= 1 << n;
            values.extend(new.to_le_bytes());
        }
    }
    let mut content = mask.to_le_bytes().to_vec();
    content.extend(values);
    content
}

/// `None` if the bytes are not a row.
fn decode_row(before: Option<&Row>, time_ms: u64, content: &[u8]) -> Option<Row> {
    let (mask, values) = content.split_first_chunk()?;
    let mask = u32::from_le_bytes(*mask);
    let mut values = values.chunks_exact(8);
    let mut row = before.copied().unwrap_or(Row::new(0));
    row.time_ms = time_ms;
    for n in (0..COUNT).filter(|n| mask & 1 << n != 0) {
        let value = values.next()?;
        row.values[n] = f64::from_le_bytes(std::array::from_fn(|at| value[at]));
    }
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &Path) -> (Past, Earlier) {
        Past::open(Some(folder), std::process::id())
    }

    #[test]
    fn the_timeline_is_the_same_after_it_was_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let (mut past, earlier) = open(folder.path());
        assert_eq!((past.fault.clone(), earlier.recording), (None, None));
        let begin = now_ms() - 3_000_000;
        for n in 0..5000u64 {
            let mut row = Row::new(begin + n * 250);
            row.set("eden_bytes", (n * 7919 % 1000) as f64 / 3.0);
            if n % 3 > 0 {
                row.set("threads", 12.0);
            }
            past.push(row);
            if n % 100 == 0 {
                let text = n.to_string();
                past.mark(row.time_ms, EventKind::Marker { text });
                let kind = EventKind::Gc {
                    collector: "Copy".to_owned(),
                    count: 2,
                    pause_ms: 0.5,
                    cause: String::new(),
                };
                past.mark(row.time_ms, kind);
            }
        }
        assert_eq!(past.timeline.collections().count, 100);
        let end = begin + 4999 * 250;
        let printed = |past: &Past| {
            let rows: Vec<_> = [(5000, 20_000), (5000, 300), (700, 90)]
                .map(|(back, points)| past.timeline.rows(end - back * 250, end, points))
                .iter()
                .map(|rows| serde_json::to_string(rows).unwrap())
                .collect();
            let events = past.timeline.events(0, end, None);
            (rows, events, past.timeline.collections())
        };
        let before = printed(&past);
        drop(past);
        for times in 1..4 {
            let (past, _) = open(folder.path());
            assert!(printed(&past) == before, "it says something else");
            let later = past.timeline.events(end + 1, u64::MAX, None);
            assert_eq!(later.len(), times);
            let text = serde_json::to_string(&later[0]).unwrap();
            assert!(text.contains("Tenure did not run for 17"), "{text}");
        }
        let (mut past, _) = open(folder.path());
        past.forget();
        drop(past);
        assert_eq!(open(folder.path()).0.timeline.last_event(), None);
    }

    #[test]
    fn entries_of_a_server_follow_those_of_earlier_ones_also_if_the_clock_was_set_back() {
        let folder = tempfile::tempdir().unwrap();
        let times = |past: &Past| -> Vec<u64> {
            let rows = past.timeline.recent(usize::MAX);
            rows.map(|row| row.time_ms).collect()
        };
        let (mut past, _) = open(folder.path());
        // The clock is set back by a second after this server.
        let ahead = now_ms() + 1000;
        past.push(Row::new(ahead));
        drop(past);
        let (mut past, _) = open(folder.path());
        past.push(Row::new(now_ms()));
        let known = times(&past);
        assert_eq!(known[0], ahead);
        assert!(known.is_sorted(), "{known:?}");
        drop(past);
        assert_eq!(times(&open(folder.path()).0)[..known.len()], known);
    }

    #[test]
    fn who_cannot_keep_the_past_says_so_and_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let (mut past, _) = open(folder.path());
        past.push(Row::new(1));
        let (mut second, _) = open(folder.path());
        let fault = second.fault.clone().unwrap();
        assert!(fault.contains("another tenure"), "{fault}");
        second.push(Row::new(2));
        second.forget();
        past.journal.as_mut().unwrap().bound(0);
        past.push(Row::new(3));
        assert!(past.fault.clone().unwrap().contains("it has 256 MiB"));
        assert_eq!(past.timeline.recent(9).count(), 2);
        drop(past);
        // Earlier rows are there, followed by the row that marks the end of the monitored time.
        let (past, _) = open(folder.path());
        assert_eq!((past.timeline.recent(9).count(), past.fault), (2, None));
    }

    #[test]
    fn what_is_no_entry_changes_nothing() {
        let (mut past, mut earlier) = (Past::default(), Earlier::default());
        for content in [&[][..], &[255; 7], &[255; 40], b"{}", b"{\"event\":1}"] {
            for kind in 0..5 {
                past.entry(&mut earlier, (kind, 7), content);
            }
        }
        assert_eq!(past.timeline.last_event(), None);
        assert!(past.timeline.last().is_none() && earlier.recording.is_none());
    }

    /// A record of the agent.
    fn record(tag: u8, body: &[&[u8]]) -> Vec<u8> {
        let body = body.concat();
        let mut out = vec![tag, 0, 0, 0, 0];
        out.extend((body.len() as u32).to_be_bytes());
        out.extend(body);
        out
    }

    /// Header, class `n` with the name `Cn`, and one stack per class. Each stream uses other numbers for names.
    fn prelude(stream: u32, classes: u32) -> Vec<u8> {
        let mut out = b"JAVA PROFILE 1.0.2\0\0\0\0\x04\0\0\0\0\0\0\0\0".to_vec();
        for n in (0..classes).map(|n| (n * 7 + stream) % classes) {
            let [name, class, frame] = [1000 * stream + n, 10 + n, 5000 * stream + n];
            let text = format!("C{n}");
            out.extend(record(1, &[&name.to_be_bytes(), text.as_bytes()]));
            let (zero, line) = ([0; 4], 7u32.to_be_bytes());
            let class = class.to_be_bytes();
            out.extend(record(2, &[&class, &zero, &zero, &name.to_be_bytes()]));
            let name = name.to_be_bytes();
            let frame = frame.to_be_bytes();
            out.extend(record(4, &[&frame, &name, &zero, &zero, &class, &line]));
            let (serial, one) = ((300 + n).to_be_bytes(), 1u32.to_be_bytes());
            out.extend(record(5, &[&serial, &zero, &one, &frame]));
        }
        out
    }

    /// ALLOC SITES in which class `n` has these numbers of objects, live and in total, of 16 bytes.
    fn sites(counts: &[(u32, u32)]) -> Vec<u8> {
        let mut rows = vec![0; 30];
        rows.extend((counts.len() as u32).to_be_bytes());
        for (n, (live, all)) in counts.iter().enumerate() {
            rows.push(0);
            let n = n as u32;
            for word in [10 + n, 300 + n, 16 * live, *live, 16 * all, *all] {
                rows.extend(word.to_be_bytes());
            }
        }
        record(6, &[&rows])
    }

    /// The contents of a recording for every range between these times, by names.
    fn ranges(recorded: &Recorded, times: &[u64]) -> Vec<String> {
        let profile = recorded.profile().unwrap();
        let mut printed = Vec::new();
        for (n, from) in times.iter().enumerate() {
            for to in &times[n..] {
                for delta in recorded.history.range(*from, *to) {
                    let class = profile.names.get(delta.class);
                    let stack = profile.trace_names(delta.trace);
                    let counts = (delta.live, delta.allocated, delta.freed, delta.total);
                    printed.push(format!("{from} {to} {class} {stack:?} {counts:?}"));
                }
            }
        }
        printed
    }

    #[test]
    fn ranges_of_a_recording_are_the_same_after_it_was_read_again() {
        const CLASSES: u32 = 20;
        let folder = tempfile::tempdir().unwrap();
        let recording = Recording::Full {
            depth: 8,
            native: None,
        };
        let mut counts = vec![(0u32, 0u32); CLASSES as usize];
        let mut times = vec![0];
        let mut time = now_ms() - 1_000_000;
        let mut random = 12345u64;
        let mut number = |below: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) % below
        };
        let mut printed = Vec::new();
        for stream in 1..4 {
            let (mut past, earlier) = open(folder.path());
            let mut recorded = earlier.recorded;
            if stream > 1 {
                assert_eq!(ranges(&recorded, &times), printed, "stream {stream}");
                assert_eq!(past.resume, Some(recording));
                let live: u32 = counts.iter().map(|count| count.0).sum();
                assert_eq!(recorded.tracked.unwrap().0, u64::from(live));
            }
            past.agent(recording);
            recorded.begin(Box::new(|| Err(io::Error::other("no dump"))));
            let mut bytes = prelude(stream, CLASSES);
            for _ in 0..30 {
                for (live, all) in &mut counts {
                    if number(3) == 0 {
                        let new = number(50) as u32;
                        *all += new;
                        *live = number(u64::from(*live + new + 1)) as u32;
                    }
                }
                bytes.extend(sites(&counts));
                // Pieces may end anywhere, except for the last one.
                let cut = number(bytes.len() as u64) as usize;
                let rest = bytes.split_off(cut);
                for piece in [std::mem::take(&mut bytes), rest] {
                    time += 1000;
                    let taken = recorded.take(time, &piece).unwrap();
                    past.stream(time, &taken.kept);
                }
                times.push(time);
            }
            printed = ranges(&recorded, &times);
            assert!(printed.len() > 1000);
        }
        // Unchanged rows are not stored again.
        let journal = std::fs::read_dir(folder.path()).unwrap().next().unwrap();
        let length = journal.unwrap().metadata().unwrap().len();
        let whole = 90 * sites(&counts).len() as u64;
        assert!(length < whole, "{length} of {whole}");
    }
}
