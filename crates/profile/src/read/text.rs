//! The text form.

use super::threads::Threads;
use crate::cpu::{CallPair, Cost, CostTable, SampleTable};
use crate::metric::{Metric, WeightedStack};
use crate::monitors::{Contention, Monitor, MonitorDump, MonitorThread, Wait};
use crate::names::NameId;
use crate::profile::{Profile, Thread};
use crate::references::{Reference, ReferenceTable};
use crate::sites::{Site, SiteTable, Volume};
use crate::stacks::{Frame, Line, Method, TraceId, TraceKey};
use hprof::{
    DamageKind, Diagnostic, Diagnostics, Serial, decode_modified_utf8, readable_class_name,
};
use hprof_text::{CpuKind, OldRow, RankRow, ReferenceRow, TextLine, TextReader, TextRecord, Trace};
use rustc_hash::FxHashMap;

/// Nanoseconds in a millisecond.
const MS: i64 = 1_000_000;

pub(super) fn read(data: &[u8]) -> (Profile, Diagnostics) {
    let mut reader = TextReader::new(data);
    let mut builder = Builder::default();
    for record in reader.by_ref() {
        builder.record(&record);
    }
    let mut diagnostics = reader.into_diagnostics();
    diagnostics.extend(builder.diagnostics);
    (builder.profile, diagnostics)
}

/// Milliseconds as nanoseconds; a negative time is none.
fn nanoseconds(milliseconds: i64) -> u64 {
    milliseconds.max(0).saturating_mul(MS).cast_unsigned()
}

/// A date as `ctime` prints it, `Fri Feb  6 13:13:42 2004`, in milliseconds since 1970.
fn unix_ms(date: &[u8]) -> Option<u64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let text = std::str::from_utf8(date).ok()?;
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [_, month, day, clock, year] = words[..] else {
        return None;
    };
    let month = MONTHS.find(month).filter(|at| at % 3 == 0)? as u64 / 3 + 1;
    let (day, year): (u64, u64) = (day.parse().ok()?, year.parse().ok()?);
    if !(1..=31).contains(&day) || !(1970..10_000).contains(&year) {
        return None;
    }
    let mut parts = clock.split(':').map(|part| part.parse::<u64>().ok());
    let mut seconds = 0;
    for most in [23, 59, 60] {
        seconds = seconds * 60 + parts.next()??.min(most);
    }
    // Years begin in March here, so that the leap day is the last day of a year.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day;
    Some((days.checked_sub(719_469)? * 86_400 + seconds) * 1000)
}

#[derive(Default)]
struct Builder {
    profile: Profile,
    traces: FxHashMap<u32, TraceId>,
    threads: Threads,
    diagnostics: Diagnostics,
    /// The open table, and the part of its total that is not in its rows so far.
    open: Option<(CpuKind, i64)>,
    total: i64,
    /// Whether the following rows of sites belong to NATIVE.
    is_native: bool,
}

impl Builder {
    fn name(&mut self, bytes: &[u8]) -> NameId {
        self.profile.names.intern(&decode_modified_utf8(bytes))
    }

    fn record(&mut self, record: &TextRecord<'_>) {
        match record {
            TextRecord::Header(header) => {
                self.profile.created_ms = unix_ms(header.created).unwrap_or(0);
            }
            TextRecord::ThreadStart(start) => {
                let (name, group) = (self.name(start.name), self.name(start.group));
                let thread = Thread {
                    serial: start.thread,
                    name,
                    group,
                    ended: false,
                };
                self.threads.start(&mut self.profile, thread, false);
            }
            TextRecord::ThreadEnd { thread } => self.threads.end(&mut self.profile, *thread),
            TextRecord::Trace(trace) => self.trace(trace),
            TextRecord::SitesBegin { .. } => {
                self.profile.sites = Some(SiteTable::default());
                self.is_native = false;
            }
            TextRecord::NativeBegin { interval, .. } => {
                self.profile.native = Some(SiteTable::default());
                self.profile.native_interval = *interval;
                self.is_native = true;
            }
            TextRecord::Site(row) => {
                let site = Site {
                    class: self.name(row.class),
                    trace: self.find(row.trace),
                    live: Volume {
                        objects: row.live_objects,
                        bytes: row.live_bytes,
                    },
                    allocated: Volume {
                        objects: row.allocated_objects,
                        bytes: row.allocated_bytes,
                    },
                };
                let table = match self.is_native {
                    true => &mut self.profile.native,
                    false => &mut self.profile.sites,
                };
                table.get_or_insert_default().add(site);
            }
            TextRecord::CpuBegin { kind, total, .. } => {
                self.open = Some((*kind, *total));
                self.total = *total;
                match kind {
                    CpuKind::Samples => {
                        self.profile.samples.get_or_insert_default();
                    }
                    CpuKind::Time => {
                        self.profile.costs.get_or_insert_default();
                    }
                    CpuKind::Running => self.profile.begin_weights(Metric::WallRunning),
                    CpuKind::Waiting => self.profile.begin_weights(Metric::WallWaiting),
                }
            }
            TextRecord::Cpu(row) => self.cpu(row),
            TextRecord::CpuEnd(_) => self.end_cpu(),
            TextRecord::Note(text) => {
                let text = String::from_utf8_lossy(text.trim_ascii_end());
                self.profile.agent_notes.push(text.into_owned());
            }
            TextRecord::OldBegin => {
                self.profile.pairs.get_or_insert_default();
            }
            TextRecord::Old(row) => {
                let known =
                    |name: &'static [u8], found| if found == name { &b""[..] } else { found };
                let pair = CallPair {
                    callee: self.name(known(b"<unknown callee>", row.callee)),
                    caller: self.name(known(b"<unknown caller>", row.caller)),
                    calls: row.count,
                    total_ns: row.time.saturating_mul(MS),
                };
                self.profile.pairs.get_or_insert_default().push(pair);
                self.call_pair(row);
            }
            TextRecord::Wait(event) if event.done => {
                let class = self.class(event.monitor);
                let waited_ns = nanoseconds(event.time);
                self.profile.waits.push(Wait {
                    class,
                    thread: event.thread,
                    waited_ns,
                });
            }
            TextRecord::MonitorTimeBegin { total, .. } => {
                self.total = i64::try_from(*total).unwrap_or(i64::MAX / MS);
                self.profile.contention.get_or_insert_default();
            }
            TextRecord::MonitorTime(row) => {
                let blocked_ns = nanoseconds(self.part(row.share));
                let (class, trace) = (self.class(row.name), self.find(row.trace));
                let row = Contention {
                    class,
                    trace,
                    count: row.count,
                    blocked_ns,
                };
                self.profile.contention.get_or_insert_default().add(row);
            }
            TextRecord::ReferencesBegin { .. } => {
                self.profile.references = Some(ReferenceTable::default());
            }
            TextRecord::Reference(row) => self.reference(row),
            _ => self.monitors(record),
        }
    }

    /// LOCK TIME and MONITOR DUMP.
    fn monitors(&mut self, record: &TextRecord<'_>) {
        match record {
            TextRecord::LockTimeBegin { total, .. } => {
                self.total = i64::try_from(*total).unwrap_or(i64::MAX / MS);
                self.profile.begin_weights(Metric::Parked);
                self.profile.begin_weights(Metric::Parks);
            }
            TextRecord::LockTime(row) => {
                let parked_ns = nanoseconds(self.part(row.share));
                let (class, trace) = (self.name(row.name), self.find(row.trace));
                self.profile.add_parks(class, trace, row.count, parked_ns);
            }

            TextRecord::AllocationStacksBegin { .. } => {
                self.profile.begin_allocation_stacks();
            }
            TextRecord::AllocationStack(row) => {
                let class = self.name(row.class);
                let trace = match row.trace {
                    0 => TraceId::EMPTY,
                    serial => self.find(serial),
                };
                let allocated = Volume {
                    objects: row.objects,
                    bytes: row.bytes,
                };
                self.profile.add_allocation_stack(class, trace, allocated);
            }
            TextRecord::MonitorDumpBegin => {
                self.profile.monitor_dumps.push(MonitorDump::default());
            }
            TextRecord::MonitorThread(row) => {
                let row = MonitorThread {
                    thread: row.thread,
                    trace: self.find(row.trace),
                    status: String::from_utf8_lossy(row.status).into_owned(),
                };
                if let Some(dump) = self.profile.monitor_dumps.last_mut() {
                    dump.threads.push(row);
                }
            }
            TextRecord::Monitor(row) => {
                let row = Monitor {
                    class: self.class(row.name),
                    owner: row.owner,
                    waiting_to_enter: row.waiters.clone(),
                    waiting_to_be_notified: row.notify_waiters.clone(),
                };
                if let Some(dump) = self.profile.monitor_dumps.last_mut() {
                    dump.monitors.push(row);
                }
            }
            _ => {}
        }
    }

    fn reference(&mut self, row: &ReferenceRow<'_>) {
        let row = Reference {
            class: self.name(row.class),
            trace: match row.trace {
                0 => TraceId::EMPTY,
                serial => self.find(serial),
            },
            thread: row.thread,
            weak: row.weak,
            created: row.created,
            deleted: row.deleted,
            cleared: row.cleared,
            bytes: row.bytes,
            oldest_ms: row.oldest_ms,
        };
        let table = self.profile.references.get_or_insert_default();
        table.rows.push(row);
    }

    /// A signature as a name in Java source.
    fn class(&mut self, signature: &[u8]) -> NameId {
        let signature = decode_modified_utf8(signature);
        let plain = signature
            .strip_prefix('L')
            .and_then(|rest| rest.strip_suffix(';'));
        let name = readable_class_name(plain.unwrap_or(&signature));
        self.profile.names.intern(&name)
    }

    /// The milliseconds for a share of the open table's total.
    fn part(&self, share: f64) -> i64 {
        (share / 100.0 * self.total as f64).round() as i64
    }

    fn cpu(&mut self, row: &RankRow<'_>) {
        let trace = self.find(row.trace);
        let part = self.part(row.share);
        match &mut self.open {
            Some((CpuKind::Samples, left)) => {
                *left = left.saturating_sub_unsigned(row.count);
                self.profile
                    .samples
                    .get_or_insert_default()
                    .add(trace, row.count);
            }
            Some((CpuKind::Time, left)) => {
                *left = left.saturating_sub(part);
                let time_ns = part.saturating_mul(MS);
                let cost = Cost {
                    calls: row.count,
                    self_ns: time_ns,
                    total_ns: time_ns,
                };
                self.profile.costs.get_or_insert_default().add(trace, cost);
            }
            Some((kind @ (CpuKind::Running | CpuKind::Waiting), _)) => {
                let metric = match kind {
                    CpuKind::Running => Metric::WallRunning,
                    _ => Metric::WallWaiting,
                };
                let stack = WeightedStack {
                    trace,
                    class: None,
                    value: nanoseconds(part),
                };
                self.profile.add_weight(metric, stack);
            }
            None => {}
        }
    }

    fn end_cpu(&mut self) {
        match self.open.take() {
            Some((CpuKind::Samples, left)) => {
                let table: &mut SampleTable = self.profile.samples.get_or_insert_default();
                table.unlisted = table.unlisted.saturating_add(left.max(0) as u64);
            }
            Some((CpuKind::Time, left)) => {
                let table: &mut CostTable = self.profile.costs.get_or_insert_default();
                let unlisted = left.max(0).saturating_mul(MS);
                table.unlisted_ns = table.unlisted_ns.saturating_add(unlisted);
            }
            Some((CpuKind::Running | CpuKind::Waiting, _)) | None => {}
        }
    }

    fn trace(&mut self, trace: &Trace<'_>) {
        let mut frames = Vec::with_capacity(trace.frames.len());
        for frame in &trace.frames {
            let unknown = frame.source == b"<Unknown Source>";
            let method = Method {
                class: self.name(frame.class),
                name: self.name(frame.method),
                signature: NameId::default(),
                source: if unknown {
                    NameId::default()
                } else {
                    self.name(frame.source)
                },
            };
            let line = match frame.line {
                TextLine::Number(number) => Line::Number(number),
                TextLine::Unknown | TextLine::Absent => Line::Unknown,
                TextLine::Compiled => Line::Compiled,
                TextLine::Native => Line::Native,
            };
            let method = self.profile.stacks.intern_method(method);
            frames.push(self.profile.stacks.intern_frame(Frame { method, line }));
        }
        let serial = Serial(trace.serial);
        let key = TraceKey {
            serial,
            thread: trace.thread.map(Serial),
        };
        let id = self.profile.stacks.push_trace(key, &frames);
        self.traces.insert(trace.serial, id);
    }

    /// The pair as a trace of two frames, so that it is shown like any other call.
    fn call_pair(&mut self, row: &OldRow<'_>) {
        let mut frames = Vec::new();
        for name in [row.callee, row.caller] {
            let name = decode_modified_utf8(name);
            let Some(bracket) = name.find('(') else { break };
            let Some(dot) = name[..bracket].rfind('.') else {
                break;
            };
            let names = &mut self.profile.names;
            let method = Method {
                class: names.intern(&name[..dot]),
                name: names.intern(&name[dot + 1..bracket]),
                signature: names.intern(&name[bracket..]),
                source: NameId::default(),
            };
            let method = self.profile.stacks.intern_method(method);
            let line = Line::Unknown;
            frames.push(self.profile.stacks.intern_frame(Frame { method, line }));
        }
        let trace = self.profile.stacks.push_trace(TraceKey::default(), &frames);
        let cost = Cost {
            calls: row.count,
            self_ns: 0,
            total_ns: row.time.saturating_mul(MS),
        };
        self.profile.costs.get_or_insert_default().add(trace, cost);
    }

    /// The trace of a serial. If the file has none, this returns an empty one and reports that once.
    fn find(&mut self, serial: u32) -> TraceId {
        if let Some(id) = self.traces.get(&serial) {
            return *id;
        }
        let missing = Diagnostic::new(
            DamageKind::Missing,
            0,
            "TRACE",
            "serial",
            format!("TRACE {serial}"),
            "none",
        );
        self.diagnostics.push(missing);
        let key = TraceKey {
            serial: Serial(serial),
            thread: None,
        };
        let id = self.profile.stacks.push_trace(key, &[]);
        self.traces.insert(serial, id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_ctime_prints_them() {
        let check = |text: &str, seconds: Option<u64>| {
            assert_eq!(
                unix_ms(text.as_bytes()),
                seconds.map(|s| s * 1000),
                "{text}"
            );
        };
        check("Thu Jan  1 00:00:00 1970", Some(0));
        check("Fri Feb  6 13:13:42 2004", Some(1_076_073_222));
        check("Tue Feb 29 00:00:00 2000", Some(951_782_400));
        check("Sat Nov 21 04:57:24 2026", Some(1_795_237_044));
        check("Thu Dec 31 23:59:59 2099", Some(4_102_444_799));
        for other in [
            "",
            "Fri Feb 6 2004",
            "Fri Feb 0 13:13:42 2004",
            "a Fox 1 1:1:1 2000",
            "a Jan 1 1:1 2000",
        ] {
            check(other, None);
        }
    }
}
