//! What the agent has said: its stream, taken in as it comes, becomes the past of every site.

use super::program::SAMPLES_NS;
use super::readings::Readings;
use super::tap::{Arrived, NextDump, Tap, TapError};
use crate::persist::journal_filter as kept;
use hprof::{RecordTag, Serial};
use live_analysis::class_filters::{Answers, Filters};
use live_analysis::history::History;
use live_analysis::{references, samples};
use profile::{NameId, Profile, TraceId};
use std::collections::BTreeSet;
use std::time::Instant;
use vmpi::class_options::Rules;

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
    pub(crate) tracked: Option<(u64, u64)>,
    pub(crate) asked: Option<Instant>,
    /// How many snapshots of the sites the agent that is connected has sent, as far as pages know them.
    pub(crate) sites: u64,
    /// How often each JNI reference was sent.
    pub(crate) references: u64,
    /// The last live objects that were listed.
    pub(crate) listing: Option<vmpi::Listing>,
    /// How big and how full live objects were when the agent read that.
    pub(crate) fills: Readings,
    /// How often CPU samples were sent, and contention of monitors.
    pub(crate) measured: [u64; 2],
    /// Notes of the agent's that are on the timeline, without their numbers.
    pub(crate) notes: BTreeSet<String>,
}

/// What some bytes of the stream brought.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// In order.
    pub(crate) arrived: Vec<Arrived>,
    /// A snapshot came: whether anything was ever counted.
    pub(crate) snapshot: Option<bool>,
    /// What a server that comes later needs of it.
    pub(crate) kept: Vec<u8>,
}

impl Recorded {
    /// Names and stacks of everything in the history.
    pub fn profile(&self) -> Option<&Profile> {
        self.tap.as_ref().and_then(Tap::profile)
    }

    /// What the agent sends.
    pub(crate) fn tap(&self) -> Option<&Tap> {
        self.tap.as_ref()
    }

    /// What factories of the program have said of classes.
    pub fn answers(&self) -> Option<&Answers> {
        self.tap.as_ref().map(Tap::answers)
    }

    /// Class filters, as they apply to the recording.
    pub fn filters<'a>(&'a self, rules: &'a Rules) -> Filters<'a> {
        Filters {
            rules,
            profile: self.profile(),
            answers: self.answers(),
        }
    }

    /// The stream of an agent begins. A program has one agent as long as it lives, whose counts and numbers
    /// continue, so what was known stays.
    pub(crate) fn begin(&mut self, next_dump: NextDump) {
        match &mut self.tap {
            Some(tap) => tap.go_on(next_dump),
            None => self.tap = Some(Tap::new(next_dump)),
        }
        self.asked = None;
        self.sites = 0;
        self.fills.ask_again();
    }

    /// Takes the next bytes of the stream.
    pub(crate) fn take(&mut self, now: u64, bytes: &[u8]) -> Result<Taken, TapError> {
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
        let sent = taken.arrived.iter().filter(|it| **it == Arrived::Samples);
        let sent = sent.count() as u64;
        self.measured[0] += sent;
        if sent > 0
            && let Some(table) = tap.profile().and_then(|it| it.samples.as_ref())
        {
            self.cpu.push(now, &samples::as_sites(table, SAMPLES_NS));
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
    pub(crate) fn end_replay(&mut self) {
        if !self.history.times().is_empty() {
            let live = self.history.live();
            self.tracked = Some((live.objects, live.bytes));
        }
    }

    /// Number of the snapshots, and when the first and the last were taken.
    pub(crate) fn snapshots(&self) -> (usize, Option<(u64, u64)>) {
        let times = self.history.times();
        let range = times.first().copied().zip(times.last().copied());
        (times.len(), range)
    }
}
