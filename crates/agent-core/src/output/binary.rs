//! The binary form (facts: section 4).

use super::sink::Sink;
use super::{
    Context, Emit, SitesSection, ThreadRecord, WaitRecord, class_of, known_thread, monitor_threads,
    shown, source_name, trace_of,
};
use crate::catalog::{Class, ResolvedFrame, ResolvedTrace};
use crate::ids::{FRAMES, NAMES, ObjectIds, class_serial, thread_serial, trace_serial};
use crate::mutf8::encode;
use crate::options::Mode;
use hprof::{
    AllocSite, FileOffset, Frame, Header, IdSize, ObjectId, RawRecord, Record, Serial, Writer,
};
use hprof_text::TextLine;
use private_records::{PrivateTag, SAMPLE_INTERVAL, Tag};
use profile::{
    AGENT_NAMES, ContentionTable, CostTable, Ranked, SampleTable, SiteOrder, SiteTable, StackShare,
    Volume,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use vmpi::{ClassId, HeapSummary, MonitorInfo, ThreadId, ThreadStack, TraceId, Vm, VmError};

/// Below this `Runtime.maxMemory` the original wrote version 1.0.1.
const SMALL_HEAP: u64 = 2_000_000_000;

/// Settings of the run that go into the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) mode: Mode,
    pub(crate) allocations: bool,
    /// The CPU time that a sample stands for, if samples are taken.
    pub(crate) sample_interval: Option<Duration>,
    pub(crate) depth: u32,
    pub(crate) primitives: crate::options::Primitives,
    /// Whether a collector receives the output, or it is converted to another form: it gets the origins of classes, and only the classes that something
    /// refers to, because the classes of a program that loads and unloads them have no end.
    pub(crate) for_collector: bool,
}

/// Writes the binary form. A name's record is always written directly before its first use.
pub(crate) struct BinaryOutput {
    writer: Option<Writer<Sink>>,
    pub(super) ids: ObjectIds,
    pub(super) settings: Settings,
    /// Version 1.0.1: a dump is one record.
    pub(super) one_record: bool,
    names: FxHashMap<Box<str>, ObjectId>,
    /// Names written so far.
    n_names: u64,
    frames: FxHashSet<u32>,
    /// Classes that have been written, and whether a stack or a row that was written refers to them.
    classes: FxHashMap<ClassId, bool>,
    pub(super) taken: Taken,
    /// Classes whose origin has been written.
    placed: FxHashSet<ClassId>,
}

/// Numbers assigned to classes and threads that are in the VM's own dump but unknown to the profiler.
#[derive(Default)]
pub(super) struct Taken {
    frames: u32,
    traces: u32,
    classes: u32,
}

impl Taken {
    pub(super) fn next_frame(&mut self) -> u32 {
        self.frames += 1;
        self.frames
    }

    pub(super) fn next_trace(&mut self) -> u32 {
        self.traces += 1;
        self.traces
    }

    /// The next number of a class; the profiler never counts up to these.
    fn next_class(&mut self) -> ClassId {
        self.classes += 1;
        ClassId(1 << 31 | self.classes)
    }
}

impl BinaryOutput {
    pub(crate) fn new(
        sink: Sink,
        ids: ObjectIds,
        settings: Settings,
        max_memory: u64,
        unix_ms: u64,
    ) -> BinaryOutput {
        let one_record = settings.mode == Mode::Compat && max_memory < SMALL_HEAP;
        let version = if one_record { "1.0.1" } else { "1.0.2" };
        let header = Header {
            format: format!("JAVA PROFILE {version}"),
            id_size: ids.size,
            timestamp_ms: unix_ms,
            len: 31,
        };
        BinaryOutput {
            // A sink accepts every write, so there is always a writer.
            writer: Writer::new(sink, &header).ok(),
            ids,
            settings,
            one_record,
            names: FxHashMap::default(),
            n_names: 0,
            frames: FxHashSet::default(),
            classes: FxHashMap::default(),
            taken: Taken::default(),
            placed: FxHashSet::default(),
        }
    }

    pub(super) fn put(&mut self, vm: &dyn Vm, record: &Record<'_>) {
        if let Some(writer) = &mut self.writer {
            let _ = writer.record(micros(vm), record);
        }
    }

    /// A record with a finished body: heap segments, and Tenure's records, which old readers skip by length.
    pub(super) fn body(&mut self, vm: &dyn Vm, tag: impl Into<Tag>, body: &[u8]) {
        if let Some(writer) = &mut self.writer {
            let _ = writer.raw(&RawRecord {
                at: FileOffset(0),
                tag: tag.into().byte(),
                time_us: micros(vm),
                length: body.len() as u32,
                body,
            });
        }
    }

    /// The id of a name; its record is written first when it is new. The empty name is 0.
    pub(super) fn name(&mut self, vm: &dyn Vm, name: &str) -> ObjectId {
        if name.is_empty() {
            return ObjectId::NULL;
        }
        if let Some(id) = self.names.get(name) {
            return *id;
        }
        let id = self.new_name(vm, name);
        self.names.insert(name.into(), id);
        id
    }

    /// The name of a thread or a class. Only the first names are remembered, because programs can create threads and
    /// classes with new names without end.
    fn passing_name(&mut self, vm: &dyn Vm, name: &str) -> ObjectId {
        if self.names.len() < AGENT_NAMES || name.is_empty() || self.names.contains_key(name) {
            return self.name(vm, name);
        }
        self.new_name(vm, name)
    }

    fn new_name(&mut self, vm: &dyn Vm, name: &str) -> ObjectId {
        let id = ObjectId(NAMES + self.n_names);
        self.n_names += 1;
        self.put(
            vm,
            &Record::Utf8 {
                id,
                bytes: &encode(name),
            },
        );
        id
    }

    /// Makes sure that the file has a LOAD CLASS for the class, to which a stack or a row refers.
    fn class(&mut self, context: &mut Context<'_>, id: ClassId) -> Serial {
        let serial = self.passing_class(context, id);
        if let Some(is_named) = self.classes.get_mut(&id) {
            *is_named = true;
        }
        serial
    }

    /// Makes sure that the file has a LOAD CLASS for a class that only a heap dump or class filters name: it may be
    /// forgotten with its class.
    pub(super) fn passing_class(&mut self, context: &mut Context<'_>, id: ClassId) -> Serial {
        if id.0 != 0 && !self.classes.contains_key(&id) {
            let class = context.catalog.class(context.vm, id);
            self.load(context, id, &class);
        }
        class_serial(id)
    }

    /// Writes LOAD CLASS for a class that is unknown to the profiler.
    pub(super) fn load_unheard(
        &mut self,
        context: &mut Context<'_>,
        class: ObjectId,
        name: &str,
    ) -> (ClassId, Serial) {
        let id = self.taken.next_class();
        let record = Record::LoadClass {
            serial: class_serial(id),
            class,
            trace: trace_serial(TraceId::EMPTY),
            name: self.passing_name(context.vm, name),
        };
        self.put(context.vm, &record);
        (id, class_serial(id))
    }

    fn load(&mut self, context: &mut Context<'_>, id: ClassId, class: &Class) {
        if self.classes.contains_key(&id) {
            return;
        }
        self.classes.insert(id, false);
        let record = Record::LoadClass {
            serial: class_serial(id),
            class: self.ids.id(class.info.mirror),
            trace: trace_serial(class.trace),
            name: self.passing_name(context.vm, &class.name),
        };
        self.put(context.vm, &record);
    }

    /// Writes the origins of the classes whose origin is not written yet.
    fn places(&mut self, context: &mut Context<'_>, classes: impl Iterator<Item = ClassId>) {
        let mut body = Vec::new();
        for id in classes {
            if !self.settings.for_collector || !self.placed.insert(id) {
                continue;
            }
            let Ok(place) = context.vm.place(id) else {
                continue;
            };
            let class = self.class(context, id);
            let names = [&place.loader, &place.module].map(|name| self.name(context.vm, name));
            body.extend(class.0.to_be_bytes());
            for name in names {
                match self.ids.size {
                    IdSize::Four => body.extend((name.0 as u32).to_be_bytes()),
                    IdSize::Eight => body.extend(name.0.to_be_bytes()),
                }
            }
        }
        if !body.is_empty() {
            self.body(context.vm, PrivateTag::ClassPlaces, &body);
        }
    }

    /// A table of waits by class and stack.
    fn waits_of(
        &mut self,
        context: &mut Context<'_>,
        tag: PrivateTag,
        table: &ContentionTable,
        cutoff: f64,
    ) {
        let mut body = table.total_ns().to_be_bytes().to_vec();
        for ranked in table.rank(cutoff) {
            let row = table.rows()[ranked.row];
            body.extend(self.class(context, class_of(row.class)).0.to_be_bytes());
            body.extend(trace_serial(trace_of(row.trace)).0.to_be_bytes());
            body.extend(row.count.to_be_bytes());
            body.extend(row.blocked_ns.to_be_bytes());
        }
        self.body(context.vm, tag, &body);
    }

    fn frame(&mut self, context: &mut Context<'_>, frame: &ResolvedFrame) -> ObjectId {
        let id = ObjectId(FRAMES + u64::from(frame.index));
        if self.frames.insert(frame.index) {
            let class = self.class(context, frame.class);
            let record = Record::Frame(Frame {
                id,
                method: self.name(context.vm, &frame.method),
                signature: self.name(context.vm, &frame.signature),
                source: self.name(context.vm, source_name(&frame.source)),
                class,
                line: match frame.line {
                    TextLine::Number(line) => i32::try_from(line).unwrap_or(-1),
                    TextLine::Native => -3,
                    TextLine::Compiled => -2,
                    TextLine::Unknown | TextLine::Absent => -1,
                },
            });
            self.put(context.vm, &record);
        }
        id
    }
}

/// Microseconds since the agent was loaded, modulo 2^32 as the field is.
fn micros(vm: &dyn Vm) -> u32 {
    (vm.elapsed_ns() / 1000) as u32
}

/// The largest u4 instead of a wrapped one.
fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl Emit for BinaryOutput {
    fn begin(&mut self, context: &mut Context<'_>, _unix_ms: u64) {
        let settings = self.settings;
        let flags =
            u32::from(settings.allocations) | u32::from(settings.sample_interval.is_some()) << 1;
        let depth = u16::try_from(settings.depth).unwrap_or(u16::MAX);
        self.put(context.vm, &Record::ControlSettings { flags, depth });
        if let Some(interval) = settings
            .sample_interval
            .filter(|_| settings.mode == Mode::Modern)
        {
            let nanoseconds = interval.as_nanos();
            self.name(context.vm, &format!("{SAMPLE_INTERVAL}{nanoseconds}"));
        }
    }

    fn class_loaded(&mut self, context: &mut Context<'_>, id: ClassId, class: &Class) {
        if !self.settings.for_collector {
            self.load(context, id, class);
        }
    }

    fn class_unloaded(&mut self, context: &mut Context<'_>, id: ClassId, is_named: bool) {
        // Only classes that are in the file: an UNLOAD of an unknown serial confuses readers.
        let Some(is_written_named) = self.classes.get(&id) else {
            return;
        };
        let is_named = is_named || *is_written_named;
        if !is_named {
            self.classes.remove(&id);
        }
        // A collector forgets the class, so it keeps one that something refers to.
        if !is_named || !self.settings.for_collector {
            self.put(
                context.vm,
                &Record::UnloadClass {
                    serial: class_serial(id),
                },
            );
        }
    }

    fn thread_started(&mut self, context: &mut Context<'_>, thread: &ThreadRecord<'_>) {
        let name = self.passing_name(context.vm, &thread.info.name);
        let record = Record::StartThread {
            thread: thread_serial(thread.thread),
            object: self.ids.id(thread.info.object),
            trace: trace_serial(thread.trace),
            name,
            group: self.name(context.vm, &thread.info.group),
            parent_group: self.name(context.vm, &thread.info.parent_group),
        };
        self.put(context.vm, &record);
    }

    fn thread_ended(&mut self, context: &mut Context<'_>, thread: ThreadId) {
        self.put(
            context.vm,
            &Record::EndThread {
                thread: thread_serial(thread),
            },
        );
    }

    fn trace(&mut self, context: &mut Context<'_>, trace: &ResolvedTrace) {
        let frames = trace
            .frames
            .iter()
            .map(|frame| self.frame(context, frame))
            .collect();
        let thread = trace.thread.unwrap_or_default();
        self.put(
            context.vm,
            &Record::Trace {
                serial: trace.serial,
                thread,
                frames,
            },
        );
    }

    fn sites(&mut self, context: &mut Context<'_>, section: &SitesSection<'_>) {
        let ranked = section.rows;
        let class = |row: usize| class_of(section.table.sites()[row].class);
        self.places(context, ranked.iter().map(|one| class(one.row)));
        let mut sites = Vec::with_capacity(ranked.len());
        let (mut wide, mut overflow) = (Vec::new(), false);
        let mut variances = Vec::new();
        for one in ranked {
            let site = section.table.sites()[one.row];
            let (live, allocated) = shown(section.table, one.row);
            let class = self.class(context, class_of(site.class));
            let signature = &context
                .catalog
                .class(context.vm, class_of(site.class))
                .signature;
            let trace = trace_serial(trace_of(site.trace));
            sites.push(AllocSite {
                array: array_type(signature),
                class,
                trace,
                live_bytes: narrow(live.bytes),
                live_instances: narrow(live.objects),
                bytes: narrow(allocated.bytes),
                instances: narrow(allocated.objects),
            });
            wide_row(&mut wide, (class, trace), (live, allocated));
            overflow |= allocated.bytes.max(allocated.objects) > u64::from(u32::MAX);
            let of_row = section.table.variances(one.row);
            variances.extend(of_row.iter().flat_map(|one| one.to_be_bytes()));
        }
        if section.table.is_estimate() && self.settings.for_collector {
            self.body(context.vm, PrivateTag::SiteVariances, &variances);
        }
        let (live, allocated) = section.table.totals();
        let sorted = if section.order == SiteOrder::AllocatedBytes {
            2
        } else {
            0
        };
        let record = Record::AllocSites {
            flags: section.flags | sorted,
            cutoff: section.cutoff as f32,
            live_bytes: narrow(live.bytes),
            live_instances: narrow(live.objects),
            bytes: allocated.bytes,
            instances: allocated.objects,
            sites,
        };
        self.put(context.vm, &record);
        // Some readers stop at a record they do not know, so it is written only when needed.
        if overflow && self.settings.mode == Mode::Modern {
            self.body(context.vm, PrivateTag::WideAllocSites, &wide);
        }
    }

    fn estimates(&mut self, _: &mut Context<'_>, _: &SiteTable, _: u64) {}

    fn allocation_stacks(&mut self, context: &mut Context<'_>, samples: u64, rows: &[StackShare]) {
        let mut body = samples.to_be_bytes().to_vec();
        for row in rows {
            let class = self.class(context, class_of(row.of.class));
            let traces = [row.of.site, row.of.stack].map(|trace| trace_serial(trace_of(trace)));
            for word in [row.rank, class.0, traces[0].0, traces[1].0] {
                body.extend(word.to_be_bytes());
            }
            for word in [row.of.samples, row.allocated.objects, row.allocated.bytes] {
                body.extend(word.to_be_bytes());
            }
            for part in [row.share.value, row.share.low, row.share.high] {
                body.extend(part.to_be_bytes());
            }
        }
        self.body(context.vm, PrivateTag::AllocationStacks, &body);
    }

    fn native(
        &mut self,
        context: &mut Context<'_>,
        table: &SiteTable,
        rows: &[Ranked],
        interval: u64,
    ) {
        let mut body = interval.to_be_bytes().to_vec();
        for ranked in rows {
            let site = table.sites()[ranked.row];
            let class = self.class(context, class_of(site.class));
            let trace = trace_serial(trace_of(site.trace));
            wide_row(&mut body, (class, trace), shown(table, ranked.row));
        }
        self.body(context.vm, PrivateTag::NativeSites, &body);
    }

    fn samples(&mut self, context: &mut Context<'_>, table: &SampleTable, cutoff: f64) {
        let rows = table.rank(cutoff).into_iter().map(|ranked| {
            let (trace, count) = table.rows()[ranked.row];
            (narrow(count), trace_serial(trace_of(trace)))
        });
        let samples = rows.collect();
        self.put(
            context.vm,
            &Record::CpuSamples {
                total: narrow(table.total()),
                samples,
            },
        );
    }

    fn wall(
        &mut self,
        context: &mut Context<'_>,
        is_waiting: bool,
        table: &CostTable,
        cutoff: f64,
    ) {
        let mut body = u32::from(is_waiting).to_be_bytes().to_vec();
        body.extend(table.total_ns().to_be_bytes());
        for ranked in table.rank(cutoff) {
            let (trace, cost) = table.rows()[ranked.row];
            body.extend(trace_serial(trace_of(trace)).0.to_be_bytes());
            body.extend(cost.calls.to_be_bytes());
            body.extend(cost.self_ns.to_be_bytes());
        }
        self.body(context.vm, PrivateTag::WallTimes, &body);
    }

    fn times(&mut self, context: &mut Context<'_>, table: &CostTable, cutoff: f64) {
        let mut body = table.total_ns().to_be_bytes().to_vec();
        for ranked in table.rank(cutoff) {
            let (trace, cost) = table.rows()[ranked.row];
            body.extend(trace_serial(trace_of(trace)).0.to_be_bytes());
            body.extend(cost.calls.to_be_bytes());
            body.extend(cost.self_ns.to_be_bytes());
            body.extend(cost.total_ns.to_be_bytes());
        }
        self.body(context.vm, PrivateTag::CpuTimes, &body);
    }

    fn call_pairs(&mut self, context: &mut Context<'_>, table: &CostTable) {
        self.times(context, table, 0.0);
    }

    fn contention(&mut self, context: &mut Context<'_>, table: &ContentionTable, cutoff: f64) {
        self.waits_of(context, PrivateTag::MonitorTimes, table, cutoff);
    }

    fn locks(&mut self, context: &mut Context<'_>, table: &ContentionTable, cutoff: f64) {
        self.waits_of(context, PrivateTag::LockTimes, table, cutoff);
    }

    fn class_options(&mut self, context: &mut Context<'_>, answers: &[vmpi::ClassAnswer]) {
        if !self.settings.for_collector {
            return;
        }
        let mut body = Vec::with_capacity(9 * answers.len());
        for answer in answers {
            let options = answer.options.unwrap_or_default();
            let off = u8::from(answer.options.is_none()) << 7;
            // The collector forgets an answer with its class.
            let class = self.passing_class(context, answer.class);
            body.extend(class.0.to_be_bytes());
            body.push(options.bits() | off);
            body.extend(options.share.millionths().to_be_bytes());
        }
        self.body(context.vm, PrivateTag::ClassOptions, &body);
    }

    fn instances(&mut self, context: &mut Context<'_>, listing: &vmpi::Listing) {
        let body = listing.encode(|trace| trace_serial(trace).0);
        self.body(context.vm, PrivateTag::Instances, &body);
    }

    fn fills(&mut self, context: &mut Context<'_>, fills: &vmpi::Fills) {
        let body = fills.encode(|class, trace| {
            let class = self.class(context, class);
            (class.0, trace_serial(trace).0)
        });
        self.body(context.vm, PrivateTag::Fills, &body);
    }

    fn references(
        &mut self,
        context: &mut Context<'_>,
        all: &vmpi::References,
        with_handles: bool,
    ) {
        let mut body = Vec::with_capacity(56 * all.rows.len());
        for row in &all.rows {
            let class = self.class(context, row.class);
            let (thread, trace) = (known_thread(row.thread), trace_serial(row.trace));
            for number in [class.0, trace.0, thread, u32::from(row.weak)] {
                body.extend(number.to_be_bytes());
            }
            let oldest_ms = row.oldest_ns / 1_000_000;
            for number in [row.created, row.deleted, row.cleared, row.bytes, oldest_ms] {
                body.extend(number.to_be_bytes());
            }
        }
        self.body(context.vm, PrivateTag::JniReferences, &body);
        if with_handles {
            let mut body = Vec::with_capacity(12 * all.handles.len());
            for (row, reference) in &all.handles {
                body.extend(row.to_be_bytes());
                body.extend(reference.to_be_bytes());
            }
            self.body(context.vm, PrivateTag::JniHandles, &body);
        }
    }

    fn wait(&mut self, context: &mut Context<'_>, wait: &WaitRecord<'_>) {
        let class = self.class(context, wait.class);
        let mut body = Vec::with_capacity(20);
        for word in [u32::from(wait.done), class.0, thread_serial(wait.thread).0] {
            body.extend(word.to_be_bytes());
        }
        body.extend(wait.time_ms.to_be_bytes());
        self.body(context.vm, PrivateTag::MonitorWait, &body);
    }

    fn monitors(
        &mut self,
        context: &mut Context<'_>,
        threads: &[ThreadStack],
        monitors: &[MonitorInfo],
    ) {
        let threads = monitor_threads(context.catalog, threads);
        let mut words = vec![threads.len() as u32];
        for (thread, status, trace) in threads {
            words.extend([thread_serial(thread).0, trace_serial(trace).0, status]);
        }
        words.push(monitors.len() as u32);
        for monitor in monitors {
            let owner = monitor.owner.map_or(0, |owner| thread_serial(owner).0);
            let class = self.class(context, monitor.class);
            let waiting = [&monitor.waiting_to_enter, &monitor.waiting_to_be_notified];
            words.extend([class.0, owner, monitor.entry_count]);
            words.extend(waiting.map(|threads| threads.len() as u32));
            let threads = waiting.into_iter().flatten();
            words.extend(threads.map(|thread| thread_serial(*thread).0));
        }
        let body: Vec<u8> = words.into_iter().flat_map(u32::to_be_bytes).collect();
        self.body(context.vm, PrivateTag::MonitorDump, &body);
    }

    fn heap(
        &mut self,
        context: &mut Context<'_>,
        _: HeapSummary,
        scratch: Option<&Path>,
    ) -> Result<(), VmError> {
        if let Some(scratch) = scratch {
            match super::native_heap::write(self, context, scratch) {
                Ok(()) => return Ok(()),
                Err(VmError::Unsupported(_)) => {}
                Err(error) => self.note(context, &format!("the heap was walked: {error}")),
            }
        }
        super::binary_heap::walk(self, context)
    }

    fn heap_summary(&mut self, context: &mut Context<'_>, summary: HeapSummary) {
        let record = Record::HeapSummary {
            live_bytes: narrow(summary.live_bytes),
            live_instances: narrow(summary.live_objects),
            bytes: summary.allocated_bytes,
            instances: summary.allocated_objects,
        };
        self.put(context.vm, &record);
    }

    fn note(&mut self, context: &mut Context<'_>, text: &str) {
        // A name that no record refers to: every reader accepts it.
        self.name(context.vm, &format!("NOTE: {text}"));
    }

    fn flush(&mut self) {
        if let Some(writer) = &mut self.writer {
            let _ = writer.get_mut().flush();
        }
    }

    fn take_failure(&mut self) -> Option<String> {
        self.writer.as_mut()?.get_mut().take_failure()
    }
}

/// A row of WIDE ALLOC SITES and NATIVE SITES.
fn wide_row(body: &mut Vec<u8>, site: (Serial, Serial), (live, allocated): (Volume, Volume)) {
    body.extend(site.0.0.to_be_bytes());
    body.extend(site.1.0.to_be_bytes());
    for number in [live.bytes, live.objects, allocated.bytes, allocated.objects] {
        body.extend(number.to_be_bytes());
    }
}

/// The byte for the kind of array in ALLOC SITES: 0 for an object, 2 for an array of references, otherwise the type.
fn array_type(signature: &str) -> u8 {
    let element = signature.strip_prefix('[');
    element
        .and_then(vmpi::BasicType::from_descriptor)
        .map_or(0, |kind| kind as u8)
}
