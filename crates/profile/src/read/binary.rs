//! The binary form.

use super::NoProfile;
use super::remarks::Remarks;
use super::threads::Threads;
use crate::cpu::Cost;
use crate::metric::{Metric, WeightedStack};
use crate::monitors::{Contention, Monitor, MonitorDump, MonitorThread, Wait};
use crate::names::NameId;
use crate::places::Place;
use crate::profile::{Profile, Thread};
use crate::references::{Reference, ReferenceTable};
use crate::sites::{Site, SiteTable, Volume};
use crate::stacks::{Frame, FrameId, Line, Method, TraceId, TraceKey};
use hprof::{
    AllocSite, Diagnostics, IdSize, ObjectId, RawRecord, Record, Serial, decode_modified_utf8,
    map_file, readable_class_name,
};
use private_records::PrivateTag;
use rustc_hash::FxHashMap;
use std::borrow::Cow;

pub(super) fn read(data: &[u8]) -> Result<(Profile, Diagnostics), NoProfile> {
    let header = hprof::Header::parse(data).map_err(NoProfile::Header)?;
    let mut builder = Builder::default();
    let mut remarks = Remarks::default();
    let ids: IdSize = header.id_size;
    builder.ids = Some(ids);
    let map = map_file(data, |raw| match raw.decode(ids) {
        Some(Record::Utf8 { id, bytes }) => {
            remarks.text(id, bytes);
            builder.texts.insert(id, Cow::Borrowed(bytes));
        }
        Some(record) => {
            remarks.record(&record);
            builder.record(&record);
        }
        None => builder.extra(raw),
    })
    .map_err(NoProfile::Header)?;
    builder.profile.created_ms = header.timestamp_ms;
    remarks.finish(&mut builder.profile);
    if builder.has_no_tables() && !map.segments.is_empty() {
        return Err(NoProfile::OnlyHeap);
    }
    if builder.has_no_tables() && builder.traces.is_empty() {
        return Err(NoProfile::Empty);
    }
    Ok((builder.profile, map.diagnostics))
}

/// A profile that grows with the records of a stream without end. Pass every record except heap dumps; the profile can
/// be requested at any time.
///
/// Threads that have ended are forgotten, with their names, if no stack refers to them; the last thousand are kept. Classes
/// that are unloaded are forgotten, with their names, if no stack and no row has referred to them. Of monitor dumps the last one is kept, and no single waits.
#[derive(Debug)]
pub struct StreamReader {
    ids: IdSize,
    builder: Builder<'static>,
    /// The number of names of this stream.
    texts: usize,
    /// The last record, if it is a name that may be that of the next thread or class only.
    own_text: Option<ObjectId>,
}

/// The agent remembers so many names, the first ones of a stream, and refers to them again, also for threads, classes and
/// members with the same name. It sends the names of later threads and classes with each of them.
pub const AGENT_NAMES: usize = 4096;

/// A name after so many name records may be that of one thread or class only: among the first ones are also notes, of which there
/// are fewer than of the rest.
pub const SHARED_NAMES: usize = 2 * AGENT_NAMES;

impl StreamReader {
    /// A reader for a stream with this header.
    pub fn new(header: &hprof::Header) -> StreamReader {
        let mut builder = Builder::default();
        builder.profile.created_ms = header.timestamp_ms;
        builder.ids = Some(header.id_size);
        builder.threads = Threads::of_stream();
        StreamReader {
            ids: header.id_size,
            builder,
            texts: 0,
            own_text: None,
        }
    }

    /// Width of the stream's ids.
    pub fn id_size(&self) -> IdSize {
        self.ids
    }

    /// Begins another stream of the same program with this header. Earlier data stays; numbers of classes, stacks and
    /// threads keep their meaning, and those of names and frames are assigned again. Classes that nothing refers to are
    /// forgotten, because the end of one may have been missed.
    pub fn go_on(&mut self, header: &hprof::Header) {
        self.ids = header.id_size;
        (self.texts, self.own_text) = (0, None);
        self.builder.ids = Some(header.id_size);
        self.builder.texts.clear();
        self.builder.frames.clear();
        self.builder.variances.clear();
        self.builder.forget_classes();
        self.builder.goes_on = true;
    }

    /// Processes the next record. Damaged and unknown ones are ignored.
    pub fn record(&mut self, raw: &RawRecord<'_>) {
        let own_text = self.own_text.take();
        match raw.decode(self.ids) {
            Some(Record::Utf8 { id, bytes }) => {
                self.builder.texts.insert(id, Cow::Owned(bytes.to_vec()));
                self.texts += 1;
                self.own_text = (self.texts > SHARED_NAMES).then_some(id);
            }
            Some(record) => {
                self.builder.record(&record);
                if let Record::StartThread { name, .. } | Record::LoadClass { name, .. } = record
                    && own_text == Some(name)
                {
                    self.builder.texts.remove(&name);
                }
            }
            None => {
                self.builder.extra(raw);
                let profile = &mut self.builder.profile;
                profile.waits.clear();
                let last = profile.monitor_dumps.len().saturating_sub(1);
                profile.monitor_dumps.drain(..last);
            }
        }
    }

    /// The name of a class by its number in the records.
    pub fn class(&self, serial: Serial) -> NameId {
        let class = self.builder.classes.get(&serial);
        class.map_or(NameId::default(), |class| class.name)
    }

    /// A stack by its number in the records, if it has been read.
    pub fn trace(&self, serial: Serial) -> Option<TraceId> {
        self.builder.traces.get(&serial).copied()
    }

    /// The profile so far; its allocation sites are those of the last table.
    pub fn profile(&self) -> &Profile {
        &self.builder.profile
    }
}

/// A class by its number.
#[derive(Clone, Copy, Debug)]
struct Class {
    name: NameId,
    /// Whether a stack or a row refers to it.
    is_named: bool,
}

#[derive(Debug, Default)]
struct Builder<'a> {
    profile: Profile,
    ids: Option<IdSize>,
    texts: FxHashMap<ObjectId, Cow<'a, [u8]>>,
    classes: FxHashMap<Serial, Class>,
    frames: FxHashMap<ObjectId, FrameId>,
    traces: FxHashMap<Serial, TraceId>,
    threads: Threads,
    /// The variances for the rows of the next table.
    variances: Vec<[f64; 2]>,
    /// Whether this is not the first stream: stacks and threads that were reported before are reported again.
    goes_on: bool,
}

impl Builder<'_> {
    fn name(&mut self, id: ObjectId) -> NameId {
        let bytes = self.texts.get(&id).map(|text| &**text).unwrap_or_default();
        let name = self.profile.names.intern(&decode_modified_utf8(bytes));
        self.threads.share_name(name);
        name
    }

    /// Whether there are no tables: a heap dump has the stacks of its threads, which are not a profile.
    fn has_no_tables(&self) -> bool {
        let profile = &self.profile;
        profile.metrics().is_empty() && profile.waits.is_empty() && profile.monitor_dumps.is_empty()
    }

    /// The name of a class that a stack or a row refers to.
    fn class(&mut self, serial: Serial) -> NameId {
        let Some(class) = self.classes.get_mut(&serial) else {
            return NameId::default();
        };
        if !class.is_named {
            class.is_named = true;
            self.threads.share_name(class.name);
        }
        class.name
    }

    fn load_class(&mut self, serial: Serial, name: ObjectId) {
        let bytes = self.texts.get(&name).map(|text| &**text);
        let text = readable_class_name(&decode_modified_utf8(bytes.unwrap_or_default()));
        let name = self.threads.name(&mut self.profile.names, &text);
        let new = Class {
            name,
            is_named: false,
        };
        let old = self.classes.insert(serial, new);
        if let Some(old) = old {
            self.threads.release(&mut self.profile.names, old.name);
        }
        if old.is_some_and(|old| old.is_named) {
            self.class(serial);
        }
    }

    /// A class of a stream was unloaded.
    fn unload_class(&mut self, serial: Serial) {
        let class = self.classes.get(&serial).copied();
        if let Some(class) = class.filter(|class| !class.is_named && self.threads.are_forgotten()) {
            self.classes.remove(&serial);
            self.threads.release(&mut self.profile.names, class.name);
        }
    }

    /// Forgets the classes that no stack and no row refers to.
    fn forget_classes(&mut self) {
        self.classes.retain(|_, class| {
            if !class.is_named {
                self.threads.release(&mut self.profile.names, class.name);
            }
            class.is_named
        });
    }

    fn record(&mut self, record: &Record<'_>) {
        match record {
            Record::LoadClass { serial, name, .. } => self.load_class(*serial, *name),
            Record::UnloadClass { serial } => self.unload_class(*serial),
            Record::Frame(frame) => self.frame(frame),
            Record::Trace {
                serial,
                thread,
                frames,
            } => {
                let frames: Vec<FrameId> = frames
                    .iter()
                    .filter_map(|id| self.frames.get(id).copied())
                    .collect();
                let thread = (thread.0 != 0).then_some(*thread);
                if let Some(thread) = thread {
                    self.threads.refer(thread.0);
                }
                let key = TraceKey {
                    serial: *serial,
                    thread,
                };
                // A stack that a table referred to before it was defined has no frames yet.
                let is_whole =
                    |id: &TraceId| frames.is_empty() || !self.profile.stacks.frames(*id).is_empty();
                if self.goes_on && self.traces.get(serial).is_some_and(is_whole) {
                    return;
                }
                let id = self.profile.stacks.push_trace(key, &frames);
                self.traces.insert(*serial, id);
            }
            Record::StartThread {
                thread,
                name,
                group,
                ..
            } => {
                let bytes = self.texts.get(name).map(|text| &**text).unwrap_or_default();
                let text = decode_modified_utf8(bytes);
                let name = self.threads.name(&mut self.profile.names, &text);
                let thread = Thread {
                    serial: thread.0,
                    name,
                    group: self.name(*group),
                    ended: false,
                };
                self.threads.start(&mut self.profile, thread, self.goes_on);
            }
            Record::EndThread { thread } => self.threads.end(&mut self.profile, thread.0),
            Record::AllocSites { sites, .. } => self.sites(sites),
            Record::CpuSamples { total, samples } => {
                let mut left = i64::from(*total);
                for (count, serial) in samples {
                    let trace = self.trace(*serial);
                    left = left.saturating_sub(i64::from(*count));
                    self.profile
                        .samples
                        .get_or_insert_default()
                        .add(trace, u64::from(*count));
                }
                let table = self.profile.samples.get_or_insert_default();
                table.unlisted = table.unlisted.saturating_add(left.max(0) as u64);
            }
            _ => {}
        }
    }

    fn frame(&mut self, frame: &hprof::Frame) {
        let method = Method {
            class: self.class(frame.class),
            name: self.name(frame.method),
            signature: self.name(frame.signature),
            source: self.name(frame.source),
        };
        let line = match frame.line {
            number if number > 0 => Line::Number(number as u32),
            -2 => Line::Compiled,
            -3 => Line::Native,
            _ => Line::Unknown,
        };
        let method = self.profile.stacks.intern_method(method);
        let id = self.profile.stacks.intern_frame(Frame { method, line });
        self.frames.insert(frame.id, id);
    }

    fn sites(&mut self, sites: &[AllocSite]) {
        let mut table = SiteTable::default();
        for (row, site) in sites.iter().enumerate() {
            let class = self.class(site.class);
            let trace = self.trace(site.trace);
            let volume = |objects: u32, bytes: u32| Volume {
                objects: u64::from(objects),
                bytes: u64::from(bytes),
            };
            let site = Site {
                class,
                trace,
                live: volume(site.live_instances, site.live_bytes),
                allocated: volume(site.instances, site.bytes),
            };
            add_site(&mut table, site, self.variances.get(row));
        }
        self.profile.sites = Some(table);
    }

    /// Handles records of Tenure's agent that are not part of the format.
    fn extra(&mut self, raw: &RawRecord<'_>) {
        let body = raw.body;
        match PrivateTag::from_u8(raw.tag) {
            Some(PrivateTag::CpuTimes) if body.len() >= 8 => {
                let mut left = number(&body[..8]) as i64;
                for row in body[8..].chunks_exact(28) {
                    let trace = self.trace(Serial(number(&row[..4]) as u32));
                    let cost = Cost {
                        calls: number(&row[4..12]),
                        self_ns: number(&row[12..20]) as i64,
                        total_ns: number(&row[20..28]) as i64,
                    };
                    left = left.saturating_sub(cost.self_ns);
                    self.profile.costs.get_or_insert_default().add(trace, cost);
                }
                let table = self.profile.costs.get_or_insert_default();
                table.unlisted_ns = table.unlisted_ns.saturating_add(left.max(0));
            }
            Some(PrivateTag::WallTimes) if body.len() >= 12 => {
                let metric = match number(&body[..4]) {
                    0 => Metric::WallRunning,
                    _ => Metric::WallWaiting,
                };
                self.profile.begin_weights(metric);
                for row in body[12..].chunks_exact(20) {
                    let stack = WeightedStack {
                        trace: self.trace(Serial(number(&row[..4]) as u32)),
                        class: None,
                        value: number(&row[12..]),
                    };
                    self.profile.add_weight(metric, stack);
                }
            }
            Some(PrivateTag::LockTimes) if body.len() >= 8 => {
                self.profile.begin_weights(Metric::Parked);
                self.profile.begin_weights(Metric::Parks);
                for row in body[8..].chunks_exact(24) {
                    let class = self.class(Serial(number(&row[..4]) as u32));
                    let trace = self.trace(Serial(number(&row[4..8]) as u32));
                    let (count, parked_ns) = (number(&row[8..16]), number(&row[16..24]));
                    self.profile.add_parks(class, trace, count, parked_ns);
                }
            }
            Some(PrivateTag::MonitorTimes) if body.len() >= 8 => {
                let mut left = number(&body[..8]);
                for row in body[8..].chunks_exact(24) {
                    let class = self.class(Serial(number(&row[..4]) as u32));
                    let trace = self.trace(Serial(number(&row[4..8]) as u32));
                    let (count, blocked_ns) = (number(&row[8..16]), number(&row[16..24]));
                    left = left.saturating_sub(blocked_ns);
                    let row = Contention {
                        class,
                        trace,
                        count,
                        blocked_ns,
                    };
                    self.profile.contention.get_or_insert_default().add(row);
                }
                let table = self.profile.contention.get_or_insert_default();
                table.unlisted_ns = table.unlisted_ns.saturating_add(left);
            }
            Some(PrivateTag::MonitorDump) => self.monitor_dump(body),
            Some(PrivateTag::MonitorWait) if body.len() == 20 && number(&body[..4]) == 1 => {
                let wait = Wait {
                    class: self.class(Serial(number(&body[4..8]) as u32)),
                    thread: number(&body[8..12]) as u32,
                    waited_ns: number(&body[12..]).saturating_mul(1_000_000),
                };
                self.profile.waits.push(wait);
            }
            Some(PrivateTag::SiteVariances) => {
                let real = |bytes: &[u8]| f64::from_bits(number(bytes));
                let sane = |real: f64| if real.is_finite() { real.max(0.0) } else { 0.0 };
                let row = |row: &[u8]| [&row[..8], &row[8..]].map(|bytes| sane(real(bytes)));
                self.variances = body.chunks_exact(16).map(row).collect();
            }
            Some(PrivateTag::AllocationStacks) if body.len() >= 8 => {
                self.profile.begin_allocation_stacks();
                for row in body[8..].chunks_exact(64) {
                    let class = self.class(Serial(number(&row[4..8]) as u32));
                    let trace = self.trace(Serial(number(&row[12..16]) as u32));
                    let allocated = Volume {
                        objects: number(&row[24..32]),
                        bytes: number(&row[32..40]),
                    };
                    self.profile.add_allocation_stack(class, trace, allocated);
                }
            }
            Some(PrivateTag::WideAllocSites) => {
                let variances = std::mem::take(&mut self.variances);
                self.profile.sites = Some(self.wide_sites(body, &variances));
            }
            Some(PrivateTag::NativeSites) if body.len() >= 8 => {
                self.profile.native = Some(self.wide_sites(&body[8..], &[]));
                self.profile.native_interval = number(&body[..8]);
            }
            Some(PrivateTag::ClassPlaces) => self.places(body),
            Some(PrivateTag::JniReferences) => self.references(body),
            Some(PrivateTag::JniHandles) => {
                let handle = |row: &[u8]| (number(&row[..4]) as u32, number(&row[4..]));
                if let Some(table) = &mut self.profile.references {
                    table.handles = body.chunks_exact(12).map(handle).collect();
                }
            }
            _ => {}
        }
    }

    /// Rows of WIDE ALLOC SITES and NATIVE SITES.
    fn wide_sites(&mut self, rows: &[u8], variances: &[[f64; 2]]) -> SiteTable {
        let mut table = SiteTable::default();
        for (at, row) in rows.chunks_exact(40).enumerate() {
            let class = self.class(Serial(number(&row[..4]) as u32));
            let trace = self.trace(Serial(number(&row[4..8]) as u32));
            let volume = |at: usize| Volume {
                bytes: number(&row[at..at + 8]),
                objects: number(&row[at + 8..at + 16]),
            };
            let site = Site {
                class,
                trace,
                live: volume(8),
                allocated: volume(24),
            };
            add_site(&mut table, site, variances.get(at));
        }
        table
    }

    fn places(&mut self, body: &[u8]) {
        let width = self.ids.map_or(8, IdSize::bytes);
        for row in body.chunks_exact(4 + 2 * width) {
            let serial = Serial(number(&row[..4]) as u32);
            let class = self.class(serial);
            let mut name = |at: usize| {
                let bytes = &row[4 + at * width..4 + (at + 1) * width];
                self.name(ObjectId(number(bytes)))
            };
            let place = Place {
                loader: name(0),
                module: name(1),
            };
            let profile = &mut self.profile;
            let name = profile.places.add(&mut profile.names, class, place);
            let is_named = true;
            self.classes.insert(serial, Class { name, is_named });
        }
    }

    /// The last table includes all earlier ones.
    fn references(&mut self, body: &[u8]) {
        let row = |row: &[u8]| {
            let wide = |at: usize| number(&row[16 + 8 * at..24 + 8 * at]);
            Reference {
                class: self.class(Serial(number(&row[..4]) as u32)),
                trace: self.trace(Serial(number(&row[4..8]) as u32)),
                thread: number(&row[8..12]) as u32,
                weak: row[15] & 1 != 0,
                created: wide(0),
                deleted: wide(1),
                cleared: wide(2),
                bytes: wide(3),
                oldest_ms: wide(4),
            }
        };
        let rows: Vec<Reference> = body.chunks_exact(56).map(row).collect();
        rows.iter().for_each(|row| self.threads.refer(row.thread));
        self.profile.references = Some(ReferenceTable {
            rows,
            handles: Vec::new(),
        });
    }

    /// Truncated parts are left out.
    fn monitor_dump(&mut self, body: &[u8]) {
        let mut words = body.chunks_exact(4).map(|word| number(word) as u32);
        let mut dump = MonitorDump::default();
        for _ in 0..words.next().unwrap_or(0) {
            let (Some(thread), Some(trace), Some(status)) =
                (words.next(), words.next(), words.next())
            else {
                break;
            };
            dump.threads.push(MonitorThread {
                thread,
                trace: self.trace(Serial(trace)),
                status: private_records::thread_status(status),
            });
        }
        for _ in 0..words.next().unwrap_or(0) {
            let head: Vec<u32> = words.by_ref().take(5).collect();
            let [class, owner, entries, enter, notified] = head[..] else {
                break;
            };
            let mut threads = |count: u32| words.by_ref().take(count as usize).collect();
            dump.monitors.push(Monitor {
                class: self.class(Serial(class)),
                owner: (owner != 0).then_some((owner, entries)),
                waiting_to_enter: threads(enter),
                waiting_to_be_notified: threads(notified),
            });
        }
        self.profile.monitor_dumps.push(dump);
    }

    fn trace(&mut self, serial: Serial) -> TraceId {
        if let Some(id) = self.traces.get(&serial) {
            return *id;
        }
        let id = self.profile.stacks.push_trace(
            TraceKey {
                serial,
                thread: None,
            },
            &[],
        );
        self.traces.insert(serial, id);
        id
    }
}

/// Adds a row; it is an estimate if its variances are given.
fn add_site(table: &mut SiteTable, site: Site, variances: Option<&[f64; 2]>) {
    match variances {
        Some(variances) => table.add_estimate(site, *variances),
        None => table.add(site),
    }
}

/// A big-endian number of up to eight bytes.
fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hprof::{FileOffset, RecordTag};
    use private_records::Tag;

    fn header() -> hprof::Header {
        let mut bytes = b"JAVA PROFILE 1.0.2\0".to_vec();
        bytes.extend(4u32.to_be_bytes());
        bytes.extend(0u64.to_be_bytes());
        hprof::Header::parse(&bytes).expect("a header")
    }

    fn reader() -> StreamReader {
        StreamReader::new(&header())
    }

    fn send(reader: &mut StreamReader, tag: impl Into<Tag>, words: &[u32], text: &str) {
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        body.extend(text.bytes());
        reader.record(&RawRecord {
            at: FileOffset(0),
            tag: tag.into().byte(),
            time_us: 0,
            length: body.len() as u32,
            body: &body,
        });
    }

    #[test]
    fn a_stream_of_short_threads_needs_no_more_memory_with_time() {
        let mut reader = reader();
        send(&mut reader, RecordTag::Utf8, &[1], "main");
        send(&mut reader, RecordTag::StartThread, &[1, 0, 0, 1, 1, 1], "");
        for n in 2..50_000 {
            send(&mut reader, RecordTag::Utf8, &[n], &format!("Thread-{n}"));
            send(&mut reader, RecordTag::StartThread, &[n, 0, 0, n, 1, 1], "");
            send(&mut reader, RecordTag::EndThread, &[n], "");
        }
        let texts = reader.builder.texts.len();
        let profile = reader.profile();
        let (threads, names) = (profile.threads.len(), profile.names.len());
        assert!(texts <= SHARED_NAMES && threads < 2500, "{texts} {threads}");
        assert_eq!(names, threads + 1);
        let name = |serial| {
            profile
                .names
                .get(profile.thread(serial).expect("kept").name)
        };
        assert_eq!([name(1), name(49_999)], ["main", "Thread-49999"]);
    }

    #[test]
    fn a_stream_forgets_unloaded_classes_unless_a_stack_or_a_row_refers_to_them() {
        let mut reader = reader();
        let load = |reader: &mut StreamReader, n: u32, name: &str| {
            send(reader, RecordTag::Utf8, &[n], name);
            send(reader, RecordTag::LoadClass, &[n, n, 0, n], "");
        };
        for n in 1..50_000 {
            load(&mut reader, n, &format!("a/Script{n}"));
            send(&mut reader, RecordTag::UnloadClass, &[n], "");
        }
        let texts = reader.builder.texts.len();
        assert!(texts <= SHARED_NAMES, "{texts}");
        let kept = |reader: &StreamReader| {
            let names = reader.profile().names.iter().filter(|it| !it.is_empty());
            let names = names.map(str::to_owned).collect::<Vec<_>>();
            (reader.builder.classes.len(), names)
        };
        assert_eq!(kept(&reader), (0, vec![]));
        // Two classes of one name: one has a row. And one whose end another stream does not report.
        for n in [50_000, 50_001] {
            load(&mut reader, n, "a/Plugin");
        }
        load(&mut reader, 50_002, "a/Other");
        // The total, then class, stack, count and time.
        let times = [0, 0, 50_000, 0, 0, 1, 0, 7];
        send(&mut reader, PrivateTag::LockTimes, &times, "");
        for n in [50_000, 50_001] {
            send(&mut reader, RecordTag::UnloadClass, &[n], "");
        }
        assert_eq!(reader.class(Serial(50_001)), NameId::default());
        let mut names = vec!["a.Plugin".to_owned(), "a.Other".to_owned()];
        assert_eq!(kept(&reader), (2, names.clone()));
        reader.go_on(&header());
        names.pop();
        assert_eq!(kept(&reader), (1, names));
        let plugin = reader.class(Serial(50_000));
        assert_eq!(reader.profile().names.get(plugin), "a.Plugin");
    }

    #[test]
    fn a_stream_keeps_no_single_waits_and_the_last_monitor_dump() {
        let mut reader = reader();
        for n in 0..10 {
            send(&mut reader, PrivateTag::MonitorWait, &[1, 0, n, 0, 7], "");
            send(&mut reader, PrivateTag::MonitorDump, &[1, n, 0, 0, 0], "");
        }
        let profile = reader.profile();
        assert!(profile.waits.is_empty());
        let dumps: Vec<u32> = profile
            .monitor_dumps
            .iter()
            .map(|one| one.threads[0].thread)
            .collect();
        assert_eq!(dumps, [9]);
    }
}
