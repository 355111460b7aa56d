//! The profiler: receives VM events and writes HPROF. It is one state machine that processes events one at a time.

mod answers;
mod report;

use crate::catalog::Catalog;
use crate::control::{Command, Switch};
use crate::host::Host;
use crate::ids::{ObjectIds, thread_of};
use crate::options::{Format, Mode, Options, Output};
use crate::output::binary::{BinaryOutput, Settings};
use crate::output::sink::Sink;
use crate::output::text::TextOutput;
use crate::output::{Context, Emit, ThreadRecord, WaitRecord};
use answers::Answers;
use profile::{
    AllocationStacks, Contention, ContentionTable, Cost, CostTable, NameId, SampleTable, Sampling,
    SiteTable, StackSamples, Volume,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::io::Write;
use std::sync::Arc;
use vmpi::class_options::Rules;
use vmpi::{
    AllocationRow, AllocationStackRow, ClassId, CostRow, Event, FreeRow, MonitorEvent, MonitorId,
    Profiler, SampleRow, SampleTiming, ThreadId, ThreadInfo, TraceId, Vm, VmInfo, WallDropped,
    WallRow,
};

/// What the agent does after a socket command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Read the next command.
    Continue,
    /// Stop listening; the program continues.
    StopListening,
    /// End the recording, which writes all its data; the program continues.
    Stop,
    /// End the process with this code, without a final dump.
    Exit(i32),
}

/// Records what the options request and writes it.
pub struct Recorder {
    options: Options,
    host: Box<dyn Host>,
    /// The output until the VM is ready, because its form cannot be decided before.
    waiting: Option<Sink>,
    out: Option<Box<dyn Emit>>,
    catalog: Catalog,
    tables: Tables,
    printed: FxHashSet<TraceId>,
    /// The answers of the program's factories.
    answers: Answers,
    lost: Vec<(String, u64)>,
    degraded: Vec<report::Note>,
    ended: bool,
    /// Why the current output cannot be written further.
    failure: Option<String>,
    measures: Measures,
}

/// What a collector has started to measure and not stopped yet.
#[derive(Clone, Copy, Debug, Default)]
struct Measures {
    samples: bool,
    contention: bool,
}

/// All counts.
#[derive(Debug, Default)]
struct Tables {
    sites: SiteTable,
    /// Sampled stacks of the sites.
    stacks: AllocationStacks,
    /// Blocks of native code; the class is the library.
    native: SiteTable,
    samples: SampleTable,
    /// How often threads were interrupted for samples since this output began.
    sample_timing: SampleTiming,
    costs: CostTable,
    wall: Wall,
    contention: ContentionTable,
    /// Waits for locks that are not monitors.
    parks: ContentionTable,
    /// The monitor and the stack at which each thread is blocked.
    entering: FxHashMap<ThreadId, (MonitorId, TraceId)>,
}

/// Wall-clock samples.
#[derive(Debug, Default)]
struct Wall {
    /// The first table is of threads that ran or could have run, the second of threads that waited. Samples are counted
    /// as calls, with the time that they represent.
    tables: [CostTable; 2],
    /// Samples since this output began, and the nanoseconds that they represent.
    taken: [u64; 2],
    dropped: WallDropped,
}

impl Recorder {
    /// A recorder for these options. It writes nothing until the VM is ready.
    pub fn new(options: Options, out: Box<dyn Write + Send>, host: Box<dyn Host>) -> Recorder {
        let sampling = options
            .sampled
            .map_or(Sampling::All, |s| Sampling::Interval(s.interval));
        let interval = u64::try_from(options.interval.as_nanos()).unwrap_or(u64::MAX);
        let modern = options.mode == Mode::Modern;
        let catalog = Catalog::new(options.traces.line_numbers, modern);
        let tables = Tables {
            sites: SiteTable::new(sampling),
            stacks: AllocationStacks::default(),
            samples: SampleTable::new(interval),
            ..Tables::default()
        };
        Recorder {
            options,
            host,
            waiting: Some(Sink::new(out)),
            out: None,
            catalog,
            tables,
            printed: FxHashSet::default(),
            answers: Answers::default(),
            lost: Vec::new(),
            degraded: Vec::new(),
            ended: false,
            failure: None,
            measures: Measures::default(),
        }
    }

    /// The settings.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The output is another one of the same form from now on.
    pub fn set_output(&mut self, output: Output) {
        self.options.output = output;
    }

    /// Calls one output function with the context that it needs.
    fn write(&mut self, vm: &dyn Vm, step: impl FnOnce(&mut dyn Emit, &mut Context<'_>)) {
        let Some(out) = self.out.as_deref_mut() else {
            return;
        };
        let date = self.host.now().ctime();
        step(
            out,
            &mut Context {
                vm,
                catalog: &mut self.catalog,
                date,
            },
        );
        self.report_failure();
    }

    /// Reports once that the output has failed.
    fn report_failure(&mut self) {
        let failure = self.out.as_deref_mut().and_then(Emit::take_failure);
        if let Some(failure) = failure {
            self.host
                .say(&format!("HPROF ERROR: the output is lost: {failure}\n"));
            self.failure = Some(failure);
        }
    }

    /// Why the output is incomplete, if it is.
    pub fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn start(&mut self, vm: &dyn Vm, info: &VmInfo, main: ThreadId) {
        let Some(sink) = self.waiting.take() else {
            return;
        };
        self.catalog.owner_of_empty = self.options.traces.per_thread.then_some(main);
        self.open(vm, info, sink);
        if self.options.heap.own_code
            && let Err(error) = vm.control(vmpi::Control::OwnCode(true))
        {
            self.note(vm, &format!("no code of the program is run: {error}"));
        }
    }

    /// Continues with another output, to which it writes the header and all definitions that later records refer to.
    /// Counts continue, so that the next tables include what was counted in between.
    pub fn begin_again(&mut self, vm: &dyn Vm, out: Box<dyn Write + Send>) {
        if self.out.is_none() || self.ended {
            return;
        }
        self.printed.clear();
        self.answers.send_again();
        self.open(vm, vm.info(), Sink::new(out));
        let classes = self.catalog.class_ids();
        let threads = self.catalog.threads.clone();
        self.write(vm, |out, context| {
            for class in classes {
                let entry = context.catalog.class(context.vm, class);
                out.class_loaded(context, class, &entry);
            }
            for (id, thread) in threads.into_iter().filter(|(_, thread)| thread.is_wanted()) {
                let info = context.vm.thread(id).unwrap_or_default();
                let record = ThreadRecord {
                    thread: id,
                    info: &info,
                    trace: TraceId::EMPTY,
                };
                out.thread_started(context, &record);
                if thread.ended {
                    out.thread_ended(context, id);
                }
            }
        });
    }

    /// Begins an output.
    fn open(&mut self, vm: &dyn Vm, info: &VmInfo, sink: Sink) {
        let now = self.host.now();
        let ids = ObjectIds::new(self.options.mode, info);
        let options = &self.options;
        let out: Box<dyn Emit> = match options.output.format {
            Format::Text => Box::new(TextOutput::new(sink, ids, options.cpu.old)),
            Format::Binary => {
                let settings = Settings {
                    mode: options.mode,
                    allocations: options.heap.sites || options.heap.dump,
                    sample_interval: options.cpu.samples.then_some(options.interval),
                    depth: options.traces.depth,
                    primitives: options.primitives,
                    // Some readers of files stop at a record that they do not know.
                    for_collector: options.mode == Mode::Modern
                        && (options.output.target.is_collector()
                            || options.output.converted.is_some()),
                };
                let max_memory = info.max_memory;
                Box::new(BinaryOutput::new(
                    sink,
                    ids,
                    settings,
                    max_memory,
                    now.unix_ms,
                ))
            }
        };
        self.out = Some(out);
        self.failure = None;
        self.write(vm, |out, context| out.begin(context, now.unix_ms));
    }

    fn thread_started(&mut self, vm: &dyn Vm, thread: ThreadId, info: &ThreadInfo, trace: TraceId) {
        // Threads older than the profiler got a serial but no record from the original.
        let announced = !info.predates_profiler || self.options.mode == Mode::Modern;
        self.catalog.define_thread(thread, announced);
        if announced {
            let record = ThreadRecord {
                thread,
                info,
                trace,
            };
            self.write(vm, |out, context| out.thread_started(context, &record));
        }
    }

    fn thread_ended(&mut self, vm: &dyn Vm, thread: ThreadId) {
        self.tables.entering.remove(&thread);
        let known = self.catalog.end_thread(thread);
        if known.is_some_and(|known| known.announced) {
            self.write(vm, |out, context| out.thread_ended(context, thread));
        }
    }

    fn costs(&mut self, rows: &[CostRow]) {
        let signed = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
        for row in rows {
            let cost = Cost {
                calls: row.calls,
                self_ns: signed(row.self_ns),
                total_ns: signed(row.total_ns),
            };
            self.tables.costs.add(trace_id(row.trace), cost);
        }
    }

    fn samples(&mut self, rows: &[SampleRow], timing: SampleTiming) {
        self.tables.sample_timing.add(timing);
        for row in rows {
            self.tables.samples.add(trace_id(row.trace), row.samples);
        }
    }

    fn wall(&mut self, rows: &[WallRow], dropped: WallDropped) {
        let wall = &mut self.tables.wall;
        for row in rows {
            let counts = [(row.running, row.running_ns), (row.waiting, row.waiting_ns)];
            for (table, (samples, ns)) in wall.tables.iter_mut().zip(counts) {
                let time_ns = i64::try_from(ns).unwrap_or(i64::MAX);
                let cost = Cost {
                    calls: samples,
                    self_ns: time_ns,
                    total_ns: time_ns,
                };
                // Time after a thread's last sample has no sample of its own.
                if samples > 0 || ns > 0 {
                    table.add(trace_id(row.trace), cost);
                }
                wall.taken[0] += samples;
                wall.taken[1] += ns;
            }
        }
        wall.dropped.add(dropped);
    }

    fn monitor(
        &mut self,
        vm: &dyn Vm,
        what: MonitorEvent,
        (thread, monitor): (ThreadId, MonitorId),
        class: ClassId,
        trace: TraceId,
    ) {
        match what {
            MonitorEvent::ContendedEnter => {
                self.tables.entering.insert(thread, (monitor, trace));
            }
            MonitorEvent::ContendedEntered { waited_ns } => {
                // The stack is the one at which the thread blocked, from the first event.
                let entered = self.tables.entering.remove(&thread);
                let trace = match entered {
                    Some((same, trace)) if same == monitor => trace,
                    _ => trace,
                };
                self.tables.contention.add(Contention {
                    class: class_name(class),
                    trace: trace_id(trace),
                    count: 1,
                    blocked_ns: waited_ns,
                });
            }
            MonitorEvent::Parked { parked_ns } => self.tables.parks.add(Contention {
                class: class_name(class),
                trace: trace_id(trace),
                count: 1,
                blocked_ns: parked_ns,
            }),
            MonitorEvent::Wait { timeout_ms } => {
                self.wait(vm, false, timeout_ms, thread, class);
            }
            MonitorEvent::Waited { waited_ns, .. } => {
                let ms = i64::try_from(waited_ns / 1_000_000).unwrap_or(i64::MAX);
                self.wait(vm, true, ms, thread, class);
            }
        }
    }

    fn wait(&mut self, vm: &dyn Vm, done: bool, time_ms: i64, thread: ThreadId, class: ClassId) {
        // No other form has single waits.
        if self.options.output.converted.is_some() {
            return;
        }
        self.write(vm, |out, context| {
            let signature = context.catalog.class(context.vm, class).signature.clone();
            let wait = WaitRecord {
                done,
                signature: &signature,
                class,
                time_ms,
                thread,
            };
            out.wait(context, &wait);
        });
    }

    /// Carries out a command of the collector.
    pub fn command(&mut self, vm: &dyn Vm, command: &Command) -> Reaction {
        if self.ended {
            return Reaction::StopListening;
        }
        match command {
            Command::ForceGc => self.collect(vm),
            Command::DumpHeap => {
                self.pull(vm);
                if self.options.heap.references {
                    self.references(vm, true);
                }
                self.heap(vm);
            }
            Command::AllocSites { flags, cutoff } => {
                if flags & 4 != 0 {
                    self.collect(vm);
                }
                self.counts(vm, *flags, f64::from(*cutoff));
            }
            Command::HeapSummary => {
                self.pull(vm);
                self.heap_summary(vm);
            }
            Command::Exit => {
                self.host.say("HPROF: received exit event, exiting ...\n");
                return Reaction::Exit(0);
            }
            Command::DumpTraces => {
                self.pull(vm);
                self.all_traces(vm);
            }
            Command::CpuSamples { cutoff } => {
                self.pull(vm);
                self.cpu_samples(vm, f64::from(*cutoff));
            }
            Command::Control(Switch::Stop) => return Reaction::Stop,
            Command::Control(switch) => self.switch(vm, switch),
            Command::Eof => return Reaction::StopListening,
            Command::Unknown(tag) => {
                self.host
                    .say(&format!("HPROF ERROR: failed to recognize cmd {tag}\n"));
                return Reaction::StopListening;
            }
        }
        self.flush();
        Reaction::Continue
    }

    fn switch(&mut self, vm: &dyn Vm, switch: &Switch) {
        self.pull(vm);
        let request = match switch.clone() {
            Switch::Allocations(on) => vmpi::Control::Allocations(on),
            Switch::Sampling { on, thread: None } => {
                self.measures.samples = on;
                vmpi::Control::Sampling { on, thread: None }
            }
            Switch::Sampling {
                on,
                thread: Some(id),
            } => {
                let thread = self.thread_of_object(vm, id);
                if thread.is_none() {
                    return self.note(vm, &format!("a control command names no thread: {id}"));
                }
                vmpi::Control::Sampling { on, thread }
            }
            Switch::ClearSamples => return self.tables.samples.clear(),
            Switch::ClearSites => {
                self.tables.native.clear();
                self.tables.sites.clear();
                self.tables.stacks.clear();
                vmpi::Control::ClearAllocations
            }
            Switch::Depth(depth) => vmpi::Control::Depth(u32::from(depth)),
            Switch::Monitors(on) => return self.time_monitors(vm, on),
            Switch::Classes(text) => match Rules::parse(&text) {
                Ok(rules) => vmpi::Control::Classes(Arc::new(rules)),
                Err(error) => return self.note(vm, &format!("class filters: {error}")),
            },
            Switch::OwnCode(on) => vmpi::Control::OwnCode(on),
            Switch::Instances(query) => vmpi::Control::Instances(query),
            Switch::Fills(number) => vmpi::Control::Fills(number),
            Switch::Stop | Switch::Unknown(_) => return,
        };
        if let Err(error) = vm.control(request) {
            self.note(vm, &format!("a control command had no effect: {error}"));
        }
    }

    /// Starts to time contention, or stops and writes the results for the collector that is waiting for them.
    fn time_monitors(&mut self, vm: &dyn Vm, on: bool) {
        self.measures.contention = on;
        if on {
            self.tables.contention.clear();
            self.tables.parks.clear();
        }
        if let Err(error) = vm.control(vmpi::Control::Monitors(on)) {
            self.note(vm, &format!("contention is not timed: {error}"));
        }
        if !on {
            self.pull(vm);
            self.all_traces(vm);
            let table = std::mem::take(&mut self.tables.contention);
            let parks = std::mem::take(&mut self.tables.parks);
            self.write(vm, |out, context| {
                out.locks(context, &parks, 0.0);
                out.contention(context, &table, 0.0);
            });
            self.tables.contention = table;
            self.tables.parks = parks;
        }
    }

    /// The VM ends while a collector is measuring: writes the results until now.
    fn last_measurements(&mut self, vm: &dyn Vm) {
        if self.measures.samples {
            self.cpu_samples(vm, 0.0);
        }
        if self.measures.contention {
            self.time_monitors(vm, false);
        }
    }

    /// The thread whose object has this id. The original read the id in the byte order of its
    /// machine, so both orders are tried.
    fn thread_of_object(&self, vm: &dyn Vm, id: u64) -> Option<ThreadId> {
        let ids = ObjectIds::new(self.options.mode, vm.info());
        let swapped = u64::from((id as u32).swap_bytes());
        let mut threads = self.catalog.threads.keys().copied();
        let found = threads.find(|thread| {
            let object = vm.thread(*thread).map(|info| ids.id(info.object).0);
            object.is_ok_and(|object| object == id || object == swapped)
        });
        found.or_else(|| thread_of(id as u32).filter(|thread| vm.thread(*thread).is_ok()))
    }

    fn collect(&mut self, vm: &dyn Vm) {
        if let Err(error) = vm.force_gc() {
            self.note(vm, &format!("cannot collect garbage: {error}"));
        }
    }

    /// Hands everything written so far to the output.
    pub fn flush(&mut self) {
        if let Some(out) = self.out.as_deref_mut() {
            out.flush();
        }
        self.report_failure();
    }
}

impl Profiler for Recorder {
    fn notify(&mut self, vm: &dyn Vm, event: &Event<'_>) {
        if self.ended {
            return;
        }
        match event {
            Event::VmInit { info, main } => self.start(vm, info, *main),
            Event::VmDeath => {
                if self.options.dump_on_exit {
                    self.dump(vm);
                } else if self.options.writes_last_counts() {
                    self.counts(vm, 0, self.options.cutoff);
                    self.last_measurements(vm);
                }
                self.finish(vm);
            }
            Event::DumpRequested => self.dump(vm),
            Event::TraceDefined { id, trace } => self.catalog.define_trace(*id, trace),
            Event::ClassLoaded {
                class, info, trace, ..
            } => {
                self.catalog.define_class(*class, info, *trace);
                let class = *class;
                self.write(vm, |out, context| {
                    let entry = context.catalog.class(context.vm, class);
                    out.class_loaded(context, class, &entry);
                });
            }
            Event::ClassUnloaded { class, is_named } => {
                self.write(vm, |out, context| {
                    out.class_unloaded(context, *class, *is_named);
                });
                if !is_named {
                    self.catalog.forget_class(*class);
                    self.answers.forget(*class);
                }
            }
            Event::ThreadStarted {
                thread,
                info,
                trace,
            } => {
                self.thread_started(vm, *thread, info, *trace);
            }
            Event::ThreadEnded { thread } => self.thread_ended(vm, *thread),
            Event::Allocations(rows) => allocations(&mut self.tables.sites, rows),
            Event::AllocationStacks(rows) => allocation_stacks(&mut self.tables.stacks, rows),
            Event::Frees(rows) => frees(&mut self.tables.sites, rows),
            Event::NativeAllocations(rows) => allocations(&mut self.tables.native, rows),
            Event::NativeFrees(rows) => frees(&mut self.tables.native, rows),
            Event::Costs(rows) => self.costs(rows),
            Event::Samples { rows, timing } => self.samples(rows, *timing),
            Event::Wall { rows, dropped } => self.wall(rows, *dropped),
            Event::Monitor {
                what,
                thread,
                monitor,
                class,
                trace,
            } => {
                self.monitor(vm, *what, (*thread, *monitor), *class, *trace);
            }
            Event::ClassOptions { anew, answers } => self.answers.add(*anew, answers),
            Event::Instances(listing) => self.instances(vm, listing),
            Event::Fills(fills) => self.fills(vm, fills),
            Event::Lost { what, count } => self.lost(what, *count),
            Event::Degraded { what } => self.degraded(what),
            _ => {}
        }
    }
}

fn allocations(table: &mut SiteTable, rows: &[AllocationRow]) {
    for row in rows {
        let volume = Volume {
            objects: row.objects,
            bytes: row.bytes,
        };
        let (class, trace) = (class_name(row.class), trace_id(row.trace));
        table.allocate_part(class, trace, volume, row.share.ratio());
    }
}

fn allocation_stacks(table: &mut AllocationStacks, rows: &[AllocationStackRow]) {
    for row in rows {
        table.add(StackSamples {
            class: class_name(row.class),
            site: trace_id(row.site),
            stack: trace_id(row.stack),
            samples: row.samples,
            objects: row.objects,
            squares: row.squares,
        });
    }
}

fn frees(table: &mut SiteTable, rows: &[FreeRow]) {
    for row in rows {
        let volume = Volume {
            objects: row.objects,
            bytes: row.bytes,
        };
        let (class, trace) = (class_name(row.class), trace_id(row.trace));
        table.free_part(class, trace, volume, row.share.ratio());
    }
}

/// The profile's class numbers are the VM's own while the agent runs.
fn class_name(class: ClassId) -> NameId {
    NameId(class.0)
}

/// The profile's trace numbers are the VM's own while the agent runs.
fn trace_id(trace: TraceId) -> profile::TraceId {
    profile::TraceId(trace.0)
}
