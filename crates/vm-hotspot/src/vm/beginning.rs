//! The beginning of a recording: announces what exists, and starts the samplers.

use std::sync::atomic::Ordering;

use jvmti::{Capability, Env, EventKind, Jni, Live, Object};
use vmpi::{Event, ThreadId, VmInfo};

use crate::alloc::bound::{self, Bound};
use crate::cpu::sampler::{DEFAULT_INTERVAL, Sampler};
use crate::heap::last_dump::Maker;
use crate::host::Host;
use crate::instrument::natives::with_agent_guard;
use crate::instrument::tracker::Tracker;
use crate::threads::background::{collect_at_end, count_soon, soon};
use crate::threads::parks;
use crate::vm::config::Track;
use crate::vm::hotspot::HotSpot;

impl HotSpot {
    /// For a VM that already runs: does what the start-up events would have done.
    ///
    /// # Errors
    /// When the VM is not in its live phase.
    pub fn attach(&self) -> jvmti::Result<()> {
        let jni = self.java.jni().ok_or(jvmti::Error::Jni("attach"))?;
        let env = self.env.attached_live();
        self.is_under_way.store(true, Ordering::SeqCst);
        if self.config.instruments() && self.tracker().is_none() {
            let _ = self.tracker.set(Tracker::define(jni)?);
        }
        let threads = env.all_threads(jni)?;
        let first = *threads.first().ok_or(jvmti::Error::Jni("attach"))?;
        self.begin(env, jni, first);
        self.begin_events(env, jni, false);
        let (counts, monitors) = (self.config.instruments(), self.config.monitors);
        if counts || monitors {
            let hotspot = self.forever();
            let begin = move |env, jni| {
                if monitors {
                    let done = soon(hotspot, || parks::switch(env, jni, true));
                    done.unwrap_or_else(|error| hotspot.parks_are_not_timed(error));
                }
                if counts {
                    count_soon(hotspot, env, jni);
                }
            };
            self.spawn(env, jni, "HPROF attach", move |env, jni| {
                with_agent_guard(|| begin(env, jni))
            })?;
        }
        Ok(())
    }

    /// The VM is up: reports to the profiler what exists, and starts the samplers.
    pub(crate) fn begin(&self, env: Env<Live>, jni: Jni, thread: Object) {
        let _ = self.live.set(env);
        // Only a collector can request allocation times.
        self.tracked.clock.switch(self.config.has_collector);
        let info = with_agent_guard(|| self.describe(env, jni));
        let _ = self.info.set(info.clone());
        self.bound_tracked(env, info.max_memory);
        with_agent_guard(|| {
            let main = self.lock().registry.thread(env, Some(thread), true);
            let classes = match self.config.has_profiler {
                true => env.loaded_classes(jni).unwrap_or_default(),
                false => Vec::new(),
            };
            for class in classes {
                const PREPARED: i32 = 2;
                if env.class_status(class).unwrap_or(0) & (PREPARED | 16 | 32) != 0 {
                    if self.config.takes_async_stacks() {
                        let _ = env.class_methods(class);
                    }
                    self.lock().registry.announce_class(
                        env,
                        jni,
                        class,
                        vmpi::TraceId::EMPTY,
                        ThreadId::NONE,
                    );
                }
                jni.delete_local(class);
            }
            // VmInit is the first event; what was found before is reported after it.
            let mut profiler = self.profiler.lock();
            if let Some(profiler) = profiler.as_mut() {
                profiler.notify(self, &Event::VmInit { info: &info, main });
            }
            self.begun.store(true, Ordering::SeqCst);
        });
        self.emit_pending();
        crate::native::begin(self, env, jni);
        if self.config.counts_objects() && self.config.track != Track::None {
            let hotspot = self.forever();
            let watch = move |env: Env<Live>, jni| {
                let is_over = || hotspot.dead.load(Ordering::Relaxed);
                // The pending objects of a thread are kept at most until the next collection.
                let take_over = || {
                    if hotspot.config.track == Track::Every {
                        hotspot.track_all_gathered(jni);
                    }
                };
                let used = || used(jni);
                let collect = || {
                    // Without it the heap stays as it is.
                    let _ = env.force_gc();
                };
                with_agent_guard(|| {
                    let tracked = &hotspot.tracked;
                    tracked.watch(jni, is_over, take_over, used, collect);
                });
            };
            if let Err(error) = self.spawn(env, jni, "HPROF gc_finish watcher", watch) {
                self.degrade(&format!(
                    "no thread waits for collections, so that live counts lag: {error}"
                ));
            }
        }
        if let Err(error) = crate::threads::last_words::stand_by(self, env, jni) {
            (self.message)(&format!(
                "no exit handler, so the profile is lost if the JVM exits on OutOfMemoryError: {error}"
            ));
        }
        if self.config.dumps_at_exit && !self.collector().collects_in_vm_thread() {
            match with_agent_guard(|| collect_at_end(jni)) {
                Ok(hook) => drop(self.end_hook.set(hook)),
                Err(error) => {
                    self.degrade(&format!("a dump at the end will have garbage: {error}"));
                }
            }
            match Maker::start(self, env, jni) {
                Ok(maker) => drop(self.last_dump.set(maker)),
                Err(error) => self.degrade(&format!(
                    "the program may wait for memory at its end: {error}"
                )),
            }
        }
        if self.config.references
            && let Err(error) = crate::native::references::record(env, jni, &self.memory)
        {
            self.degrade(&format!("no JNI references: {error}"));
        }
        if self.config.sampled_allocations.is_some() {
            if let Err(error) = self.take_samples_always(env, jni) {
                self.degrade(&format!("no thread takes sampled allocations over, so that threads of the program do: {error}"));
            }
            self.start_sampling_allocations();
        }
        let samples = self.config.samples;
        if samples.is_some() || self.config.wall.is_some() {
            let interval = samples.unwrap_or(DEFAULT_INTERVAL);
            let safepoints = self.config.safepoint_samples;
            Sampler::start(self.forever(), env, jni, interval, safepoints);
            if let Some(sampler) = self.sampler.get().filter(|_| samples.is_some()) {
                sampler.switch(true, None);
            }
        }
    }

    /// Begins the stream of VM events, if it is requested. `at_start`: the program has not begun.
    pub(crate) fn begin_events(&self, env: Env<Live>, jni: Jni, at_start: bool) {
        let begin = |host: &'static Host| jni.local_frame(16, || host.begin(env, jni, at_start));
        if let Some(host) = self.forever().host()
            && let Err(error) = with_agent_guard(|| begin(host))
        {
            (self.message)(&format!("events are not recorded: {error}"));
        }
    }

    /// Limits the number of objects that are tracked, before there are any, and notes if the collector keeps them for
    /// long.
    fn bound_tracked(&self, env: Env<Live>, heap: u64) {
        let keeps_garbage = self.config.track != Track::None && bound::is_needed(env);
        if keeps_garbage && self.config.counts_objects() {
            self.lock().degraded.push(
                "live objects include those that died since the last collection of the old generation: this collector keeps tracked objects until then"
                    .to_owned(),
            );
        }
        if self.config.track != Track::Adaptive {
            return;
        }
        let bound = match self.config.tracked {
            Some(0) => None,
            Some(most) => Some(Bound::new(most)),
            None => keeps_garbage.then(|| Bound::of_heap(heap)),
        };
        let bound = bound.map(|bound| match keeps_garbage {
            true => bound.within(heap),
            false => bound,
        });
        bound
            .into_iter()
            .for_each(|bound| self.tracked.set_bound(bound));
    }

    /// Whether the VM can sample allocations. JDK 8 does not even have the functions for it.
    pub(crate) fn samples_allocations(&self) -> bool {
        self.granted
            .has(Capability::GenerateSampledObjectAllocEvents)
    }

    /// The interval of the VM's sampler: the smaller one, if two receivers want different intervals.
    pub(crate) fn sampling_interval(&self) -> Option<u64> {
        let of_events = self.host().map(Host::interval);
        self.config
            .sampled_allocations
            .into_iter()
            .chain(of_events)
            .min()
    }

    pub(crate) fn set_sampling_interval(&self) -> jvmti::Result<()> {
        let bytes = self.sampling_interval().unwrap_or(0);
        let interval = i32::try_from(bytes).unwrap_or(i32::MAX);
        self.env.set_heap_sampling_interval(interval)
    }

    /// Makes the VM report about one allocation per interval of bytes.
    fn start_sampling_allocations(&self) {
        if !self.samples_allocations() {
            self.degrade("allocations are not sampled: that needs a JVM from JDK 11 on");
            return;
        }
        let set = self.set_sampling_interval();
        if let Err(error) = set.and_then(|()| self.env.enable(EventKind::SampledObjectAlloc, true))
        {
            self.degrade(&format!("allocations are not sampled: {error}"));
        }
    }

    /// What is known of the VM; runs Java code.
    fn describe(&self, env: Env<Live>, jni: Jni) -> VmInfo {
        VmInfo {
            name: env.system_property("java.vm.name").unwrap_or_default(),
            version: env.system_property("java.vm.version").unwrap_or_default(),
            max_memory: largest_heap(jni),
            pid: std::process::id(),
            stable_handles: true,
        }
    }
}

/// The maximum size of the heap in bytes, 0 if unknown; runs Java code.
pub(crate) fn largest_heap(jni: Jni) -> u64 {
    of_runtime(jni, ["maxMemory"]).map_or(0, |[max]| max)
}

/// The results of methods of `java.lang.Runtime`; runs Java code.
fn of_runtime<const N: usize>(jni: Jni, names: [&str; N]) -> Option<[u64; N]> {
    jni.local_frame(8, || {
        let class = jni.find_class("java/lang/Runtime").ok()?;
        let get = jni
            .static_method(class, "getRuntime", "()Ljava/lang/Runtime;")
            .ok()?;
        let runtime = jni.call_static_object(class, get, &[]).ok()??;
        let mut numbers = [0; N];
        for (number, name) in numbers.iter_mut().zip(names) {
            let method = jni.method(class, name, "()J").ok()?;
            *number = jni.call_long(runtime, method).ok()?.cast_unsigned();
        }
        Some(numbers)
    })
}

/// Bytes in use in the program's heap; runs Java code.
fn used(jni: Jni) -> Option<u64> {
    let [total, free] = of_runtime(jni, ["totalMemory", "freeMemory"])?;
    Some(total.saturating_sub(free))
}
