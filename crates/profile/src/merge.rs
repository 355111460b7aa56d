//! Adds one profile to another: ids are mapped, equal rows are summed.

use crate::cpu::{CallPair, CostTable, SampleTable};
use crate::metric::WeightedStack;
use crate::monitors::{Contention, ContentionTable, Wait};
use crate::names::{NameId, Names};
use crate::profile::{Profile, Thread};
use crate::references::Reference;
use crate::sites::{Site, SiteTable};
use crate::stacks::{Frame, FrameId, Method, Stacks, TraceId, TraceKey};
use rustc_hash::{FxHashMap, FxHashSet};

impl Profile {
    /// Adds another run's profile. Traces with the same frames become one; serial numbers and
    /// threads of a trace are those of one process and are dropped. Other threads get free serials.
    pub fn merge(&mut self, other: &Profile) {
        let mut map = Map::new(self);
        let traces: Vec<TraceId> = map.traces(&other.names, &other.stacks);
        let trace = |id: TraceId| traces.get(id.0 as usize).copied().unwrap_or(TraceId::EMPTY);
        let names: Vec<NameId> = other
            .names
            .iter()
            .map(|name| self.names.intern(name))
            .collect();
        let name = |id: NameId| names.get(id.0 as usize).copied().unwrap_or_default();
        let mut threads = Serials::new(self, other);

        self.native_interval = self.native_interval.max(other.native_interval);
        for (ours, table) in [
            (&mut self.sites, &other.sites),
            (&mut self.native, &other.native),
        ] {
            let Some(table) = table else { continue };
            let sites = ours.get_or_insert_with(|| SiteTable::new(table.sampling));
            for site in table.sites() {
                sites.add(Site {
                    class: name(site.class),
                    trace: trace(site.trace),
                    ..*site
                });
            }
        }
        if let Some(table) = &other.samples {
            let samples = self
                .samples
                .get_or_insert_with(|| SampleTable::new(table.interval_ns));
            table
                .rows()
                .iter()
                .for_each(|(id, count)| samples.add(trace(*id), *count));
            samples.unlisted = samples.unlisted.saturating_add(table.unlisted);
        }
        if let Some(table) = &other.costs {
            let costs = self.costs.get_or_insert_with(CostTable::default);
            table
                .rows()
                .iter()
                .for_each(|(id, cost)| costs.add(trace(*id), *cost));
            costs.unlisted_ns = costs.unlisted_ns.saturating_add(table.unlisted_ns);
        }
        if let Some(pairs) = &other.pairs {
            let ours = self.pairs.get_or_insert_with(Vec::new);
            for pair in pairs {
                let (callee, caller) = (name(pair.callee), name(pair.caller));
                match ours
                    .iter_mut()
                    .find(|one| (one.callee, one.caller) == (callee, caller))
                {
                    Some(one) => {
                        one.calls = one.calls.saturating_add(pair.calls);
                        one.total_ns = one.total_ns.saturating_add(pair.total_ns);
                    }
                    None => ours.push(CallPair {
                        callee,
                        caller,
                        ..*pair
                    }),
                }
            }
        }
        if let Some(table) = &other.contention {
            let contention = self.contention.get_or_insert_with(ContentionTable::default);
            for row in table.rows() {
                contention.add(Contention {
                    class: name(row.class),
                    trace: trace(row.trace),
                    ..*row
                });
            }
            let unlisted = contention.unlisted_ns;
            contention.unlisted_ns = unlisted.saturating_add(table.unlisted_ns);
        }
        if let Some(table) = &other.references {
            let references = self.references.get_or_insert_default();
            let rows = table.rows.iter().map(|row| Reference {
                class: name(row.class),
                trace: trace(row.trace),
                thread: threads.of(row.thread),
                ..*row
            });
            references.rows.extend(rows);
        }
        self.merge_weighted(other, trace, name);
        let waits = other.waits.iter().map(|wait| Wait {
            class: name(wait.class),
            thread: threads.of(wait.thread),
            ..*wait
        });
        self.waits.extend(waits);
        for dump in &other.monitor_dumps {
            let mut dump = dump.clone();
            for row in &mut dump.threads {
                row.trace = trace(row.trace);
                row.thread = threads.of(row.thread);
            }
            for monitor in &mut dump.monitors {
                monitor.class = name(monitor.class);
                let waiting = monitor.waiting_to_enter.iter_mut();
                let waiting = waiting.chain(&mut monitor.waiting_to_be_notified);
                let owner = monitor.owner.as_mut().map(|owner| &mut owner.0);
                waiting
                    .chain(owner)
                    .for_each(|thread| *thread = threads.of(*thread));
            }
            self.monitor_dumps.push(dump);
        }
        self.threads
            .extend(other.threads.iter().map(|thread| Thread {
                serial: threads.of(thread.serial),
                name: name(thread.name),
                group: name(thread.group),
                ..*thread
            }));
    }

    /// Adds the numbers of [`Profile::weighted`], and the notes about them.
    fn merge_weighted(
        &mut self,
        other: &Profile,
        trace: impl Fn(TraceId) -> TraceId,
        name: impl Fn(NameId) -> NameId,
    ) {
        for table in &other.weighted {
            for row in table.rows() {
                let stack = WeightedStack {
                    trace: trace(row.trace),
                    class: row.class.map(&name),
                    ..*row
                };
                self.add_weight(table.metric, stack);
            }
        }
        for note in &other.notes {
            if !self.notes.contains(note) {
                self.notes.push(note.clone());
            }
        }
    }
}

/// Maps the serials of another profile's threads to serials that are free in this one.
struct Serials {
    taken: FxHashSet<u32>,
    mapped: FxHashMap<u32, u32>,
    last: u32,
}

impl Serials {
    fn new(own: &Profile, other: &Profile) -> Serials {
        let (taken, others) = (serials(own), serials(other));
        Serials {
            last: taken.union(&others).copied().max().unwrap_or(0),
            mapped: FxHashMap::default(),
            taken,
        }
    }

    /// The new serial of a thread; 0 is no thread.
    fn of(&mut self, serial: u32) -> u32 {
        if serial == 0 || !self.taken.contains(&serial) {
            return serial;
        }
        *self.mapped.entry(serial).or_insert_with(|| {
            self.last = self.last.wrapping_add(1);
            self.last
        })
    }
}

/// All serials in the tables of a profile; not every thread is in [`Profile::threads`].
fn serials(profile: &Profile) -> FxHashSet<u32> {
    let mut found: FxHashSet<u32> = profile.threads.iter().map(|one| one.serial).collect();
    found.extend(profile.waits.iter().map(|wait| wait.thread));
    let references = profile.references.iter().flat_map(|table| &table.rows);
    found.extend(references.map(|row| row.thread));
    for dump in &profile.monitor_dumps {
        found.extend(dump.threads.iter().map(|row| row.thread));
        for monitor in &dump.monitors {
            found.extend(&monitor.waiting_to_enter);
            found.extend(&monitor.waiting_to_be_notified);
            found.extend(monitor.owner.map(|owner| owner.0));
        }
    }
    found
}

/// Maps the traces of another profile to those of this one.
struct Map<'a> {
    names: &'a mut Names,
    stacks: &'a mut Stacks,
    known: FxHashMap<Vec<FrameId>, TraceId>,
}

impl<'a> Map<'a> {
    fn new(profile: &'a mut Profile) -> Map<'a> {
        let stacks = &mut profile.stacks;
        let mut known = FxHashMap::default();
        for trace in stacks.traces() {
            known.entry(stacks.frames(trace).to_vec()).or_insert(trace);
        }
        Map {
            names: &mut profile.names,
            stacks,
            known,
        }
    }

    fn traces(&mut self, names: &Names, stacks: &Stacks) -> Vec<TraceId> {
        let mut mapped = Vec::with_capacity(stacks.trace_count());
        for trace in stacks.traces() {
            let frames: Vec<FrameId> = stacks
                .frames(trace)
                .iter()
                .map(|id| self.frame(names, stacks, *id))
                .collect();
            let id = match self.known.get(&frames) {
                Some(id) => *id,
                None => {
                    let id = self.stacks.push_trace(TraceKey::default(), &frames);
                    self.known.insert(frames, id);
                    id
                }
            };
            mapped.push(id);
        }
        mapped
    }

    fn frame(&mut self, names: &Names, stacks: &Stacks, id: FrameId) -> FrameId {
        let frame = stacks.frame(id);
        let method = stacks.method(frame.method);
        let mut name = |id: NameId| self.names.intern(names.get(id));
        let method = Method {
            class: name(method.class),
            name: name(method.name),
            signature: name(method.signature),
            source: name(method.source),
        };
        let method = self.stacks.intern_method(method);
        self.stacks.intern_frame(Frame {
            method,
            line: frame.line,
        })
    }
}
