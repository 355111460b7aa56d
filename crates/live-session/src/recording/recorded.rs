//! The data received from the agent: its stream is processed as it arrives and becomes the history of every site.

use super::program::SAMPLES_NS;
use super::readings::Readings;
use super::tap::{Arrived, NextDump, Tap, TapError};
use crate::persist::journal_filter as kept;
use hprof::{RecordTag, Serial};
use live_analysis::class_filters::{Answers, Filters};
use live_analysis::history::History;
use live_analysis::{references, samples};
use private_records::PrivateTag;
use profile::{NameId, Profile, TraceId};
use std::collections::BTreeSet;
use std::time::Instant;
use vmpi::class_options::Rules;

/// The data received from the agent so far.
#[derive(Debug, Default)]
pub struct Recorded {
    tap: Option<Tap>,
    /// The sites at each snapshot.
    pub history: History,
    /// The blocks of native code at each snapshot; the class is the library.
    pub native: History,
    /// Global and weak references of native code at each snapshot.
    pub made: [History; 2],
    /// CPU samples at each time they were received: the sites are stacks, with samples as objects and CPU time in
    /// nanoseconds as bytes.
    pub cpu: History,
    /// Tracked live objects and their bytes at the last snapshot.
    pub(crate) tracked: Option<(u64, u64)>,
    pub(crate) asked: Option<Instant>,
    /// How many snapshots of the sites have been received from the connected agent and are visible to pages.
    pub(crate) sites: u64,
    /// How often the list of all JNI references was received.
    pub(crate) references: u64,
    /// The last list of live objects.
    pub(crate) listing: Option<vmpi::Listing>,
    /// Readings of sizes and capacities of live objects.
    pub(crate) fills: Readings,
    /// How often CPU samples and contention of monitors were received.
    pub(crate) measured: [u64; 2],
    /// Notes of the agent that are on the timeline, without their digits.
    pub(crate) notes: BTreeSet<String>,
}

/// The result of processing some bytes of the stream.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// What was received, in order.
    pub(crate) arrived: Vec<Arrived>,
    /// If a snapshot was received: whether anything was ever counted.
    pub(crate) snapshot: Option<bool>,
    /// The data that a later server needs.
    pub(crate) kept: Vec<u8>,
}

impl Recorded {
    /// Names and stacks of everything in the history.
    pub fn profile(&self) -> Option<&Profile> {
        self.tap.as_ref().and_then(Tap::profile)
    }

    /// The parsed stream of the agent.
    pub(crate) fn tap(&self) -> Option<&Tap> {
        self.tap.as_ref()
    }

    /// Answers of the program's factories about classes.
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

    /// The stream of an agent begins. A program has only one agent during its life, whose counts and numbers continue,
    /// so earlier data stays.
    pub(crate) fn begin(&mut self, next_dump: NextDump) {
        match &mut self.tap {
            Some(tap) => tap.go_on(next_dump),
            None => self.tap = Some(Tap::new(next_dump)),
        }
        self.asked = None;
        self.sites = 0;
        self.fills.ask_again();
    }

    /// The stream has ended; returns a message if a heap dump in it is not complete.
    pub(crate) fn end_of_stream(&mut self) -> Option<String> {
        self.tap.as_mut().and_then(Tap::end_of_stream)
    }

    /// Processes the next bytes of the stream.
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

    /// The received data, without unchanged rows of tables.
    fn kept(&mut self, has_sites: bool, has_table: bool) -> Vec<u8> {
        let Some(tap) = &mut self.tap else {
            return Vec::new();
        };
        let mut kept = std::mem::take(tap.kept());
        if has_sites {
            kept.settle_threads();
        }
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
            kept.table(PrivateTag::NativeSites.into(), &mut out, native);
            let wide = PrivateTag::WideAllocSites.into();
            for tag in [RecordTag::AllocSites.into(), wide] {
                kept.table(tag, &mut out, |row| changed(&self.history, row));
            }
        }
        if has_table {
            // Each table is complete and small.
            match self.made.iter().any(History::has_any_changed) {
                true => kept.whole(PrivateTag::JniReferences, &mut out),
                false => kept.forget(PrivateTag::JniReferences),
            }
        }
        if let Some(tap) = &mut self.tap {
            *tap.kept() = kept;
        }
        out
    }

    /// A journal was replayed: its last table had only some rows.
    pub(crate) fn end_replay(&mut self) {
        if !self.history.times().is_empty() {
            let live = self.history.live();
            self.tracked = Some((live.objects, live.bytes));
        }
    }

    /// The number of snapshots, and the times of the first and the last one.
    pub(crate) fn snapshots(&self) -> (usize, Option<(u64, u64)>) {
        let times = self.history.times();
        let range = times.first().copied().zip(times.last().copied());
        (times.len(), range)
    }
}
