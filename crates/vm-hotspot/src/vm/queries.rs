//! [`vmpi::Vm`] on HotSpot.

use std::path::Path;

use std::sync::atomic::Ordering;

use jvmti::{Capability, Env, EventKind, Jni, Live, Object};
use vmpi::vm::Control;
use vmpi::{
    ClassId, ClassInfo, CostRow, Event, FieldInfo, Frame, HeapSummary, HeapVisitor, LineEntry,
    MethodId, MethodInfo, MonitorInfo, NativeDump, SampleRow, SampleTiming, ThreadId, ThreadInfo,
    ThreadStack, ThreadState, Trace, TraceId, Vm, VmError, VmInfo, WallDropped, WallRow,
};

use crate::alloc::bound::LARGE;
use crate::cpu::sampler::{DEFAULT_INTERVAL, Sampler};
use crate::heap::field_layout::declared_fields;
use crate::heap::native_dump;
use crate::heap::visit;
use crate::instrument::natives::with_agent_guard;
use crate::native::Malloc;
use crate::threads::background::collect_garbage;
use crate::vm::hotspot::HotSpot;

/// A JVMTI failure as a [`VmError`].
pub(crate) fn failed(error: jvmti::Error) -> VmError {
    match error {
        jvmti::Error::Jvmti { function, code } => VmError::Failed {
            function,
            reason: jvmti::error::name(code).to_owned(),
        },
        jvmti::Error::Jni(function) => VmError::Failed {
            function,
            reason: "exception".to_owned(),
        },
        jvmti::Error::OtherVm(why) => VmError::Unsupported(why),
    }
}

/// What is reported as missing if classes or methods cannot be changed.
pub(crate) const NOT_INSTRUMENTED: &str =
    "counts of classes or methods that cannot be instrumented";

/// State bits as a struct.
fn thread_state(bits: i32) -> ThreadState {
    let has = |bit: i32| bits & bit != 0;
    ThreadState {
        alive: has(0x1),
        runnable: has(0x4),
        blocked_on_monitor: has(0x400),
        waiting: has(0x100),
        sleeping: has(0x40),
        parked: has(0x200),
        suspended: has(0x10_0000),
        interrupted: has(0x20_0000),
        in_native: has(0x40_0000),
    }
}

impl HotSpot {
    /// Both environments of the current thread.
    pub(crate) fn here(&self) -> Result<(Env<Live>, Jni), VmError> {
        let env = self.live().ok_or(VmError::WrongPhase)?;
        let jni = self.java.jni().ok_or(VmError::WrongPhase)?;
        Ok((env, jni))
    }

    /// The live thread with a number, as a local reference.
    fn find_thread(
        &self,
        (env, jni): (Env<Live>, Jni),
        thread: ThreadId,
    ) -> Result<Object, VmError> {
        let threads = env.all_threads(jni).map_err(failed)?;
        let is_it = |object: &Object| env.thread_number(Some(*object)) == Ok(thread.0 as usize);
        threads
            .into_iter()
            .find(is_it)
            .ok_or(VmError::Gone("thread"))
    }

    /// Sets the counts of live objects, from which the rows of the sites are computed.
    fn count_living(&self, jni: Jni) {
        let living = self.tracked.by_site(jni);
        let [memory, bound] = self.tracked.take_dropped();
        let estimated = self.reported.lock().set_living(&living);
        let mut state = self.lock();
        if estimated > 0 {
            *state
                .lost
                .entry("exact live counts of sites, which are estimates (exact=y counts all)")
                .or_default() += estimated;
        }
        let dropped = [
            ("objects not tracked (memory limit)", memory.refused),
            (
                "tracked objects replaced by an estimate (memory limit)",
                memory.halved,
            ),
            (
                "objects not tracked (limit of tracked objects)",
                bound.refused,
            ),
            (
                "tracked objects replaced by an estimate (limit of tracked objects)",
                bound.halved,
            ),
        ];
        for (what, count) in dropped.into_iter().filter(|(_, count)| *count > 0) {
            *state.lost.entry(what).or_default() += count;
        }
        let [large, all] = self.tracked.one_in();
        if memory.halved > 0 {
            let limit = self.memory.native.limit();
            state.degraded.push(format!(
                "memory={limit} is reached: one tracked object stands for {all}, so that live counts are estimates"
            ));
        }
        if let Some(most) = self.tracked.bound().filter(|_| bound.halved > 0) {
            let why = match self.config.tracked {
                Some(most) => format!("tracked={most} is reached"),
                None => format!(
                    "young collections of this garbage collector keep tracked objects, so there are at most {} (see tracked=), and fewer of sites whose objects fill \
                     the heap with garbage",
                    most.objects
                ),
            };
            state.degraded.push(format!(
                "{why}: one tracked object stands for {all} or more and one tracked array of {LARGE} bytes or more for {large}, so that live \
                 counts are estimates"
            ));
        }
    }

    /// From now on, objects that exist already are not reported when they are freed. Objects that are made during this
    /// call may be treated as existing.
    fn clear_allocations(&self, env: Env<Live>, jni: Jni) {
        self.track_all_gathered(jni);
        self.tracked.clear(jni);
        self.harvest(env, jni);
        self.reported.lock().clear();
        self.lock().sites.take_stacks();
        if let Some(malloc) = Malloc::recording() {
            malloc.clear();
        }
    }

    /// Switches counting or sampling of allocations on or off.
    fn switch_allocations(&self, jni: Jni, on: bool) -> Result<(), VmError> {
        if !self.config.counts_objects() {
            return Err(VmError::Unsupported(
                "allocation counting, which heap=sites starts",
            ));
        }
        let (env, _) = self.here()?;
        if self.config.allocations {
            let tracker = self.tracker().ok_or(VmError::WrongPhase)?;
            self.switch_code(env, jni, tracker, on).map_err(failed)?;
        }
        self.reports_allocations.store(on, Ordering::SeqCst);
        for (capability, event) in [
            (
                Capability::GenerateVmObjectAllocEvents,
                EventKind::VmObjectAlloc,
            ),
            (
                Capability::GenerateSampledObjectAllocEvents,
                EventKind::SampledObjectAlloc,
            ),
        ] {
            if self.granted.has(capability) {
                // The stream of VM events receives the same.
                let is_on = on || self.host().is_some();
                env.enable(event, is_on).map_err(failed)?;
            }
        }
        Ok(())
    }

    fn take_rows(&self) -> Rows {
        let (allocations, frees) = self.reported.lock().take();
        let mut state = self.lock();
        let costs = std::mem::take(&mut state.costs);
        let samples = state.take_samples();
        let sample_timing = std::mem::take(&mut state.sample_timing);
        let wall = std::mem::take(&mut state.wall);
        let wall_dropped = std::mem::take(&mut state.wall_dropped);
        let stacks = state.sites.take_stacks();
        drop(state);
        let cost = |(trace, [calls, own, total]): (TraceId, [i64; 3])| CostRow {
            trace,
            calls: calls.max(0).cast_unsigned(),
            self_ns: own.max(0).cast_unsigned(),
            total_ns: total.max(0).cast_unsigned(),
        };
        let mut costs: Vec<CostRow> = costs.into_iter().map(cost).collect();
        costs.sort_unstable_by_key(|row| row.trace);
        let sample = |((thread, trace), samples)| SampleRow {
            thread,
            trace,
            samples,
        };
        let mut samples: Vec<SampleRow> = samples.map(sample).collect();
        samples.sort_unstable_by_key(|row| (row.trace, row.thread));
        let mut wall: Vec<WallRow> = wall.into_values().collect();
        wall.sort_unstable_by_key(|row| row.trace);
        let refused = self.numbers.take_refused();
        let mut state = self.lock();
        if refused.count > 0 {
            *state.lost.entry(NOT_INSTRUMENTED).or_default() += refused.count;
        }
        state.take_shortages(self.numbers.take_nameless());
        let lost = std::mem::take(&mut state.lost);
        let mut degraded = std::mem::take(&mut state.degraded);
        degraded.extend(
            refused
                .named
                .iter()
                .map(|what| format!("not counted: {what}")),
        );
        Rows {
            allocations,
            stacks,
            frees,
            costs,
            samples,
            sample_timing,
            wall,
            wall_dropped,
            lost: lost.into_iter().collect(),
            degraded,
        }
    }
}

/// One flush.
struct Rows {
    allocations: Vec<vmpi::AllocationRow>,
    stacks: Vec<vmpi::AllocationStackRow>,
    frees: Vec<vmpi::FreeRow>,
    costs: Vec<CostRow>,
    samples: Vec<SampleRow>,
    sample_timing: SampleTiming,
    wall: Vec<WallRow>,
    wall_dropped: WallDropped,
    lost: Vec<(&'static str, u64)>,
    degraded: Vec<String>,
}

impl Vm for HotSpot {
    fn info(&self) -> &VmInfo {
        static UNKNOWN: VmInfo = VmInfo {
            name: String::new(),
            version: String::new(),
            max_memory: 0,
            pid: 0,
            stable_handles: false,
        };
        self.info.get().unwrap_or(&UNKNOWN)
    }

    fn class(&self, class: ClassId) -> Result<ClassInfo, VmError> {
        if let Some(known) = &*self.classes_of_walk.lock() {
            return known.get(&class).cloned().ok_or(VmError::Gone("class"));
        }
        let state = self.lock();
        let entry = state.registry.classes.get(class.0);
        entry
            .map(|entry| entry.info.clone())
            .ok_or(VmError::Gone("class"))
    }

    fn place(&self, class: ClassId) -> Result<vmpi::ClassPlace, VmError> {
        with_agent_guard(|| crate::vm::places::place(self, class))
    }

    fn fields(&self, class: ClassId) -> Result<Vec<FieldInfo>, VmError> {
        let (env, jni) = self.here()?;
        let state = self.lock();
        let entry = state.registry.classes.get(class.0);
        let weak = entry
            .and_then(|entry| entry.mirror)
            .ok_or(VmError::Gone("class"))?;
        jni.local_frame(8, || {
            let mirror = jni.new_local(weak).ok_or(VmError::Gone("class"))?;
            declared_fields(env, mirror)
        })
    }

    fn method(&self, method: MethodId) -> Result<MethodInfo, VmError> {
        let state = self.lock();
        let entry = state.registry.methods.get(method.0);
        entry
            .map(|entry| entry.info.clone())
            .ok_or(VmError::Gone("method"))
    }

    fn lines(&self, method: MethodId) -> Result<Vec<LineEntry>, VmError> {
        let state = self.lock();
        let entry = state.registry.methods.get(method.0);
        entry
            .map(|entry| entry.lines.to_vec())
            .ok_or(VmError::Gone("method"))
    }

    fn trace(&self, trace: TraceId) -> Result<Trace, VmError> {
        if trace == TraceId::EMPTY {
            return Ok(Trace::default());
        }
        let state = self.lock();
        let found = state.registry.traces.get(trace.0);
        found
            .map(|trace| Trace::clone(trace))
            .ok_or(VmError::Gone("trace"))
    }

    fn threads(&self) -> Result<Vec<ThreadId>, VmError> {
        let (env, jni) = self.here()?;
        jni.local_frame(256, || {
            let threads = env.all_threads(jni).map_err(failed)?.into_iter();
            Ok(threads.map(|thread| self.number_of(env, thread)).collect())
        })
    }

    fn thread(&self, thread: ThreadId) -> Result<ThreadInfo, VmError> {
        let state = self.lock();
        let found = state.registry.thread_info(thread);
        found.cloned().ok_or(VmError::Gone("thread"))
    }

    fn stack(&self, thread: ThreadId, depth: u32) -> Result<Vec<Frame>, VmError> {
        let (env, jni) = self.here()?;
        jni.local_frame(256, || {
            let object = self.find_thread((env, jni), thread)?;
            let nothing = jvmti::FrameRow {
                method: jvmti::sys::MethodPtr(std::ptr::null_mut()),
                location: 0,
            };
            let mut rows = vec![nothing; (depth as usize).min(crate::vm::state::MOST_FRAMES)];
            let count = env.stack_into(Some(object), &mut rows).map_err(failed)?;
            Ok(self
                .lock()
                .registry
                .stack(env, jni, &rows[..count], depth as usize))
        })
    }

    fn all_stacks(&self) -> Result<Vec<ThreadStack>, VmError> {
        let (env, jni) = self.here()?;
        jni.local_frame(256, || {
            let depth = self.lock().depth;
            let rows = env
                .all_stacks(jni, depth.min(1 << 16) as i32)
                .map_err(failed)?;
            let stack = |row: jvmti::StackRow| {
                let (thread, trace) = self.number_stack((env, jni), row.thread, &row.frames, depth);
                ThreadStack {
                    thread,
                    state: thread_state(row.state),
                    trace,
                }
            };
            Ok(rows.into_iter().map(stack).collect())
        })
    }

    fn monitors(&self) -> Result<Vec<MonitorInfo>, VmError> {
        let (env, jni) = self.here()?;
        jni.local_frame(256, || self.owned_monitors(env, jni).map_err(failed))
    }

    fn walk_heap(&self, visitor: &mut dyn HeapVisitor) -> Result<(), VmError> {
        let (env, jni) = self.here()?;
        self.keep_classes_for_walk(env, jni).map_err(failed)?;
        let walked = with_agent_guard(|| visit::walk(self, jni, visitor));
        *self.classes_of_walk.lock() = None;
        walked
    }

    fn native_dump(&self, path: &Path) -> Result<NativeDump, VmError> {
        let (env, jni) = self.here()?;
        with_agent_guard(|| jni.local_frame(256, || native_dump::write(self, env, jni, path)))
    }

    fn references(&self) -> Result<vmpi::References, VmError> {
        if !self.config.references {
            return Err(VmError::Unsupported("record of JNI references (jni=y)"));
        }
        let (_, jni) = self.here()?;
        Ok(with_agent_guard(|| {
            crate::native::references::all(self, jni)
        }))
    }

    fn heap_summary(&self) -> Result<HeapSummary, VmError> {
        let [live_bytes, live_objects, allocated_bytes, allocated_objects] =
            self.reported.lock().totals();
        Ok(HeapSummary {
            live_bytes,
            live_objects,
            allocated_bytes,
            allocated_objects,
        })
    }

    fn force_gc(&self) -> Result<(), VmError> {
        let (env, jni) = self.here()?;
        with_agent_guard(|| {
            // The pending objects of threads are kept alive until they are collected.
            self.track_all_gathered(jni);
            collect_garbage(self, env, jni)
        })
        .map_err(failed)
    }

    fn flush(&self, sink: &mut dyn FnMut(&Event<'_>)) -> Result<(), VmError> {
        let (env, jni) = self.here()?;
        with_agent_guard(|| {
            if let Some(sampler) = self.sampler.get() {
                sampler.drain(self, env, jni);
            }
            self.give_up_factory();
            self.harvest(env, jni);
            self.count_living(jni);
            let rows = self.take_rows();
            let native = Malloc::recording().map(|malloc| malloc.rows(self, env, jni));
            let (anew, answers) = self.lock().choices.take_news();
            self.announce(usize::MAX, sink);
            let answers = &answers;
            sink(&Event::ClassOptions { anew, answers });
            sink(&Event::Allocations(&rows.allocations));
            sink(&Event::AllocationStacks(&rows.stacks));
            sink(&Event::Frees(&rows.frees));
            sink(&Event::Costs(&rows.costs));
            sink(&Event::Samples {
                rows: &rows.samples,
                timing: rows.sample_timing,
            });
            sink(&Event::Wall {
                rows: &rows.wall,
                dropped: rows.wall_dropped,
            });
            if let Some(native) = native {
                sink(&Event::NativeAllocations(&native.allocations));
                sink(&Event::NativeFrees(&native.frees));
                if native.lost > 0 {
                    sink(&Event::Lost {
                        what: "native blocks, because their table was full",
                        count: native.lost,
                    });
                }
            }
            for what in rows.degraded {
                sink(&Event::Degraded { what: &what });
            }
            for (what, count) in rows.lost {
                sink(&Event::Lost { what, count });
            }
        });
        Ok(())
    }

    fn control(&self, request: Control) -> Result<(), VmError> {
        let (env, jni) = self.here()?;
        match request {
            Control::Allocations(on) => self.switch_allocations(jni, on),
            Control::Sampling { on, thread } => {
                if on && self.sampler.get().is_none() {
                    let hotspot = self.forever();
                    let safepoints = self.config.safepoint_samples;
                    if !safepoints {
                        self.prepare_async_stacks(env);
                    }
                    Sampler::start(hotspot, env, jni, DEFAULT_INTERVAL, safepoints);
                }
                if let Some(sampler) = self.sampler.get() {
                    sampler.switch(on, thread);
                }
                Ok(())
            }
            Control::Depth(depth) => {
                with_agent_guard(|| self.change_depth(jni, depth)).map_err(failed)?;
                if let Some(sampler) = self.sampler.get() {
                    sampler.set_depth(depth);
                }
                Ok(())
            }
            Control::ClearAllocations => {
                with_agent_guard(|| self.clear_allocations(env, jni));
                Ok(())
            }
            Control::Monitors(on) => self.switch_monitors(env, jni, on).map_err(failed),
            Control::Classes(rules) => {
                if !self.config.counts_objects() {
                    return Err(VmError::Unsupported("allocations to choose among"));
                }
                crate::vm::places::prepare(jni);
                with_agent_guard(|| {
                    // Samples so far are recorded by the previous rules.
                    self.take_samples(env, jni);
                    self.lock().choose(jni, self.tracker(), &rules);
                    self.ask_factories(env, jni);
                    self.keep_allocation_times(env, jni, rules.may_want_time());
                });
                Ok(())
            }
            Control::OwnCode(on) => {
                crate::live::own_answers::allow(on);
                with_agent_guard(|| self.ask_factories(env, jni));
                Ok(())
            }
            Control::Instances(query) => {
                with_agent_guard(|| self.list(env, jni, query)).map_err(failed)
            }
            Control::Fills(number) => {
                with_agent_guard(|| self.read_fills(env, jni, number)).map_err(failed)
            }
            _ => Err(VmError::Unsupported("change while running")),
        }
    }

    fn elapsed_ns(&self) -> u64 {
        self.elapsed()
    }

    fn thread_cpu_ns(&self, thread: ThreadId) -> Result<u64, VmError> {
        let (env, jni) = self.here()?;
        jni.local_frame(256, || {
            let object = self.find_thread((env, jni), thread)?;
            env.thread_cpu_time(object)
                .map(i64::cast_unsigned)
                .map_err(failed)
        })
    }
}
