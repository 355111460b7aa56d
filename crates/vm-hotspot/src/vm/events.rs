//! Callbacks of JVMTI events; each calls a method of [`HotSpot`].

use std::cell::OnceCell;
use std::sync::atomic::Ordering;

use jvmti::{Agent, Env, EventKind, Jni, Live, Object};
use vmpi::{ClassId, Event, ThreadId, TraceId};

use crate::alloc::thinned::is_wanted;
use crate::instrument::natives::{is_inside, with_agent_guard};
use crate::instrument::rewrite::{Tracking, is_eligible};
use crate::instrument::tracker::Tracker;
use crate::threads::background::loaded_names;
use crate::threads::monitors::Step;
use crate::threads::parks;
use crate::vm::config::WhenExhausted;
use crate::vm::hotspot::{ANNOUNCED, HotSpot};
use crate::vm::registry::CLASS_TAG;

impl HotSpot {
    fn define_tracker(&self, jni: Jni) {
        match Tracker::define(jni) {
            Ok(tracker) => drop(self.tracker.set(tracker)),
            Err(error) => self.degrade(&format!("nothing can be counted: {error}")),
        }
    }

    /// Methods of a class, by number, that cannot be instrumented.
    fn refuse_methods(&self, bytes: &[u8], methods: &[(usize, classfile::Error)]) {
        let class = match classfile::Class::parse(bytes) {
            Ok(class) if !methods.is_empty() => class,
            _ => return,
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        for (index, error) in methods {
            if let Some(method) = class.methods.iter().find(|m| m.index == *index) {
                let name = text(class.name).replace('/', ".");
                let what = format!("{name}.{}{}", text(method.name), text(method.descriptor));
                self.numbers.refuse(&what, &error.to_string());
            }
        }
    }
}

impl HotSpot {
    /// A class file with inserted code; `None` if it stays unchanged.
    fn with_counting(
        &self,
        redefined: Option<Object>,
        name: &str,
        bytes: &[u8],
    ) -> Option<Vec<u8>> {
        let tracker = self.tracker()?;
        if !is_eligible(name) || self.inserted.leaves_classes() {
            return None;
        }
        let class = redefined.and_then(|class| self.known_class(class));
        let mut tracking = Tracking {
            numbers: self.numbers,
            sites: self.numbers.sites_of(class, bytes.len()),
            next_site: 0,
            allocations: self.config.allocations,
            stacks_sampled: self.config.stacks_sampled,
            calls: self.config.calls,
            unsafe_class: tracker.unsafe_class(),
            allocation_free: OnceCell::new(),
        };
        match classfile::patch(bytes, &mut tracking) {
            Ok(patched) => {
                let patched = patched?;
                self.refuse_methods(bytes, &patched.skipped);
                if patched.changed == 0 {
                    return None;
                }
                let loaded = || loaded_names(self.live()?, self.java.jni()?);
                if !self.inserted.changed.note(name, loaded) {
                    self.numbers
                        .refuse(name, "too many classes to put back; it keeps its code");
                }
                // The number of an instruction determines the class of its objects, so it is never reused.
                if self.config.takes_code_out()
                    && !self.config.stacks_sampled
                    && let Some(class) = class
                {
                    self.numbers.keep_sites(class, tracking.sites);
                }
                Some(patched.bytes)
            }
            Err(error) => {
                let name = name.replace('/', ".");
                self.numbers.refuse(&name, &error.to_string());
                None
            }
        }
    }
}

impl Agent for HotSpot {
    fn vm_start(&self, _env: Env<jvmti::Start>, jni: Jni) {
        self.define_tracker(jni);
    }

    fn class_file(&self, redefined: Option<Object>, name: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        let counting = self.with_counting(redefined, name, bytes);
        let host = self.host().filter(|_| !self.dead.load(Ordering::SeqCst));
        let counted = counting.as_deref().unwrap_or(bytes);
        let sampling = host.and_then(|host| host.with_new_object_calls(name, counted));
        sampling.or(counting)
    }

    fn vm_init(&self, env: Env<Live>, jni: Jni, thread: Object) {
        self.begin(env, jni, thread);
        if self.config.monitors {
            let done = parks::switch(env, jni, true);
            done.unwrap_or_else(|error| self.parks_are_not_timed(error));
        }
        if self.config.instruments() && self.tracker().is_none() {
            self.define_tracker(jni);
        }
        if self.config.instruments()
            && let Err(error) = with_agent_guard(|| self.start_counting(env, jni))
        {
            self.degrade(&format!("nothing can be counted: {error}"));
            self.inserted.begin();
        }
        self.begin_events(env, jni, true);
        self.is_under_way.store(true, Ordering::SeqCst);
    }

    fn vm_death(&self, _env: Env<Live>, jni: Jni) {
        if self.dead.swap(true, Ordering::Relaxed) {
            return;
        }
        self.tracked.wake();
        self.samples.wake();
        crate::threads::worker::wake_all();
        with_agent_guard(|| {
            if let Some(tracker) = self.tracker() {
                tracker.switch(jni, false);
            }
            if let Some(sampler) = self.sampler.get() {
                sampler.stop();
            }
            self.emit(&Event::VmDeath);
            if let Some(maker) = self.last_dump.get() {
                maker.end();
            }
            if let Some(host) = self.host() {
                host.end(jni);
            }
            if let Some(sampler) = self.sampler.get() {
                sampler.leave();
            }
            crate::native::stop();
        });
    }

    fn thread_start(&self, env: Env<Live>, _jni: Jni, thread: Object) {
        with_agent_guard(|| {
            self.lock().registry.thread(env, Some(thread), true);
            if let Some(sampler) = self.sampler.get() {
                sampler.thread_started(self);
            }
            self.emit_pending();
        });
    }

    fn thread_end(&self, env: Env<Live>, jni: Jni, thread: Object) {
        if let Some(sampler) = self.sampler.get() {
            sampler.thread_ended();
        }
        if self.dead.load(Ordering::Relaxed) {
            return;
        }
        if let Some(host) = self.host()
            && let Ok(number @ 1..) = env.thread_number(None)
        {
            with_agent_guard(|| host.thread_ended(ThreadId(number as u32)));
        }
        self.retire(env, jni, thread);
        with_agent_guard(|| self.emit_pending());
    }

    fn virtual_thread_end(&self, env: Env<Live>, jni: Jni, thread: Object) {
        with_agent_guard(|| self.virtual_thread_ended(env, jni, thread));
    }

    fn class_prepare(&self, env: Env<Live>, jni: Jni, _thread: Object, class: Object) {
        if self.live().is_none() {
            return;
        }
        let is_nested = is_inside();
        with_agent_guard(|| {
            if self.takes_async_stacks() {
                // Creates the method ids that samples are reported with.
                let _ = env.class_methods(class);
            }
            let mut state = self.lock();
            let trace = match self.config.takes_load_stacks() {
                true => state.current_trace(env, jni, &self.config),
                false => TraceId::EMPTY,
            };
            let thread = state.registry.thread(env, None, false);
            let id = state
                .registry
                .announce_class(env, jni, class, trace, thread);
            // Calls a factory before the class has objects, if it answers immediately.
            state.look_up(jni, (id, class));
            let pending = state.registry.pending.len();
            drop(state);
            // A program may load and unload classes without end although nothing else is emitted. A thread inside the
            // agent may hold locks that the profiler takes.
            if pending >= ANNOUNCED && !is_nested {
                self.emit_pending();
            }
        });
    }

    fn data_dump(&self, _env: Env<Live>) {
        with_agent_guard(|| self.emit(&Event::DumpRequested));
    }

    fn heap_exhausted(&self, env: Env<Live>, _jni: Jni) {
        // The agent may be emitting an event on this thread, and cannot emit another one meanwhile.
        if !is_inside() && !self.exhausted.swap(true, Ordering::Relaxed) {
            // The VM prints a line about each of these events.
            let _ = env.enable(EventKind::ResourceExhausted, false);
            match self.config.when_exhausted {
                WhenExhausted::Nothing => {}
                WhenExhausted::Dump => crate::threads::last_words::dump(),
                WhenExhausted::Call(call) => with_agent_guard(|| call(self.java)),
            }
        }
    }

    fn monitor_wait(&self, env: Env<Live>, jni: Jni, _: Object, object: Object, timeout_ms: i64) {
        self.monitor(env, jni, object, Step::Wait { timeout_ms });
    }

    fn monitor_waited(&self, env: Env<Live>, jni: Jni, _: Object, object: Object, timed_out: bool) {
        self.monitor(env, jni, object, Step::Waited { timed_out });
    }

    fn contended_enter(&self, env: Env<Live>, jni: Jni, _: Object, object: Object) {
        self.monitor(env, jni, object, Step::Enter);
    }

    fn contended_entered(&self, env: Env<Live>, jni: Jni, _: Object, object: Object) {
        self.monitor(env, jni, object, Step::Entered);
    }

    fn gc_start(&self) {
        self.tracked.collecting();
        if let Some(host) = self.host() {
            host.collecting();
        }
    }

    fn gc_finish(&self) {
        self.tracked.collected();
        if let Some(sampler) = self.sampler.get() {
            sampler.collected();
        }
        if let Some(host) = self.host() {
            host.collected();
        }
    }

    fn object_free(&self, tag: i64) {
        self.deaths.lock().push(tag);
        if let Some(host) = self.host()
            && tag & CLASS_TAG != 0
        {
            host.class_freed(ClassId((tag & !CLASS_TAG) as u32));
        }
    }

    fn vm_object_alloc(
        &self,
        env: Env<Live>,
        jni: Jni,
        _: Object,
        object: Object,
        class: Object,
        size: i64,
    ) {
        if is_inside() {
            return;
        }
        let is_counted = self.reports_allocations.load(Ordering::Relaxed);
        with_agent_guard(|| {
            if is_counted && self.config.allocations {
                self.lock()
                    .vm_allocated((env, jni), object, &self.config, &self.tracked);
            }
            if let Some(host) = self.host() {
                host.made_by_vm(env, jni, object, class, size);
            }
        });
    }

    fn sampled_alloc(
        &self,
        env: Env<Live>,
        jni: Jni,
        _: Object,
        object: Object,
        class: Object,
        size: i64,
    ) {
        // The agent makes tables for threads while it has locked the state; these are not objects of the program.
        if is_inside() {
            return;
        }
        let interval = self.sampling_interval().unwrap_or(0);
        let is_for = |wanted: u64| is_wanted(size.cast_unsigned(), interval, wanted);
        let is_counted = self.reports_allocations.load(Ordering::Relaxed);
        with_agent_guard(|| {
            if is_counted && self.config.sampled_allocations.is_some_and(is_for) {
                self.sampled(env, jni, object);
            }
            if let Some(host) = self.host().filter(|host| is_for(host.interval())) {
                host.sampled(env, jni, object, class, size);
            }
        });
    }

    fn panicked(&self, callback: &'static str) {
        (self.message)(&format!(
            "internal fault in {callback}; the profile may be incomplete"
        ));
    }
}
