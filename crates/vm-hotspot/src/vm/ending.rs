//! The end of a recording in a program that continues. Afterwards the recording has been handed over, and the program
//! is as it was before, except for the memory of this library.

use std::sync::atomic::Ordering;

use jvmti::{Agent, Capability, Env, EventKind, Jni, Live, Result};
use vmpi::Event;

use crate::alloc::reported::Reported;
use crate::instrument::natives::with_agent_guard;
use crate::instrument::tracker::Tracker;
use crate::threads::background::{collect_garbage, forget_end_hook};
use crate::vm::hotspot::HotSpot;
use crate::vm::state::State;

/// Every event that a recording may have switched on.
const EVENTS: [EventKind; 21] = [
    EventKind::VmInit,
    EventKind::VmStart,
    EventKind::VmDeath,
    EventKind::ThreadStart,
    EventKind::ThreadEnd,
    EventKind::VirtualThreadEnd,
    EventKind::ClassLoad,
    EventKind::ClassPrepare,
    EventKind::ClassFileLoadHook,
    EventKind::CompiledMethodLoad,
    EventKind::DataDumpRequest,
    EventKind::ResourceExhausted,
    EventKind::ObjectFree,
    EventKind::VmObjectAlloc,
    EventKind::SampledObjectAlloc,
    EventKind::GarbageCollectionStart,
    EventKind::GarbageCollectionFinish,
    EventKind::MonitorContendedEnter,
    EventKind::MonitorContendedEntered,
    EventKind::MonitorWait,
    EventKind::MonitorWaited,
];

/// The capabilities that are needed to remove code from classes.
const FOR_CLASSES: [Capability; 4] = [
    Capability::TagObjects,
    Capability::RetransformClasses,
    Capability::RetransformAnyClass,
    Capability::GenerateAllClassHookEvents,
];

impl HotSpot {
    /// Whether the recording has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    /// Makes the profiler write the present data, as at SIGQUIT.
    pub fn dump(&self) {
        with_agent_guard(|| self.emit(&Event::DumpRequested));
    }

    /// Ends the recording: the profiler is notified as at the end of the VM, and dropped. When this returns, another
    /// recording may be loaded. A separate thread then removes the inserted code from the classes.
    ///
    /// # Errors
    /// If the current thread is not attached to the VM, or the VM is not up.
    pub fn end(&self) -> Result<()> {
        let jni = self.java.jni().ok_or(jvmti::Error::Jni("end"))?;
        let env = self.live().ok_or(jvmti::Error::Jni("end"))?;
        if self.has_ended() {
            return Ok(());
        }
        if self.config.dumps_at_exit {
            // The last dump must not contain garbage, as at the end of the VM.
            with_agent_guard(|| {
                self.track_all_gathered(jni);
                if let Err(error) = collect_garbage(self, env, jni) {
                    self.degrade(&format!("the last dump has garbage: {error}"));
                }
            });
        }
        self.vm_death(env, jni);
        for event in EVENTS {
            // Events that the VM does not know were never enabled.
            let _ = self.env.enable(event, false);
        }
        with_agent_guard(|| self.leave(env, jni));
        let hotspot = self.forever();
        let changes = move |env, jni| with_agent_guard(|| hotspot.clean_classes(env, jni));
        self.spawn(env, jni, "HPROF classes", changes)
    }

    /// Releases everything that keeps objects of the program alive, and most memory.
    fn leave(&self, env: Env<Live>, jni: Jni) {
        drop(self.profiler.lock().take());
        if let Some(tracker) = self.tracker()
            && let Err(error) = self.count_no_more(jni, tracker)
        {
            (self.message)(&format!("counters of threads stay in memory: {error}"));
        }
        if let Err(error) = crate::threads::parks::switch(env, jni, false) {
            (self.message)(&format!(
                "the method that parks threads stays replaced: {error}"
            ));
        }
        crate::alloc::native_made::switch(false);
        if self.config.references {
            crate::native::references::forget(env, jni);
        }
        forget_end_hook(jni);
        self.drop_samples(jni);
        self.tracked.release(jni);
        crate::native::symbols::all().release(&self.memory);
        if let Some(host) = self.host() {
            host.release(jni);
        }
        *self.reported.lock() = Reported::default();
        let mut before = {
            let mut state = self.lock();
            let mut empty = State::default();
            empty.follow_on(&state);
            std::mem::replace(&mut *state, empty)
        };
        before.registry.release(jni);
        let kept = FOR_CLASSES;
        let others = Capability::ALL.iter().map(|(capability, _)| *capability);
        self.relinquish(others.filter(|capability| !kept.contains(capability)));
    }

    fn relinquish(&self, capabilities: impl Iterator<Item = Capability>) {
        for capability in capabilities.filter(|capability| self.granted.has(*capability)) {
            // A capability that the VM keeps costs nothing while no event is enabled.
            let _ = self
                .env
                .relinquish(jvmti::Capabilities::default().with(capability));
        }
    }

    /// Removes code and tags from the classes, unless the next recording inserts its own code, which replaces this one.
    fn clean_classes(&self, env: Env<Live>, jni: Jni) {
        let goes_on = || {
            let now = Self::get();
            now.is_some_and(|now| std::ptr::eq(now, self) || !now.config.instruments())
        };
        let refused = self.inserted.changed.put_back(env, jni, goes_on)
            + self
                .host()
                .map_or(0, |host| host.take_out(env, jni, goes_on));
        if refused > 0 {
            (self.message)(&format!(
                "{refused} classes keep the code that counts, switched off"
            ));
        }
        // A thread that was counting when the recording ended may have stored its tracker in `recent` afterwards.
        if let Some(tracker) = self.tracker() {
            tracker.forget_recent(jni);
        }
        if let Some(now) = Self::get().filter(|now| !std::ptr::eq(*now, self)) {
            now.inserted.changed.take_over(&self.inserted.changed);
        }
        for class in env.loaded_classes(jni).unwrap_or_default() {
            let _ = env.set_tag(class, 0);
            jni.delete_local(class);
        }
        self.relinquish(FOR_CLASSES.into_iter());
    }
}

impl Tracker {
    /// Clears the trackers of threads that have run recently (`recent` and others).
    pub(crate) fn forget_recent(&self, jni: Jni) {
        for field in self.recent {
            jni.set_static_object(self.class, field, self.no_thread(jni));
        }
    }

    /// Releases the trackers of all threads, which get new ones when they are counted again.
    pub(crate) fn forget_threads(&self, jni: Jni) -> Result<()> {
        jni.local_frame(8, || {
            self.for_each(jni, |object| jni.set_object(object, self.owner, None));
            let new = jni.new_objects(1, self.class, self.no_thread(jni))?;
            jni.set_static_object(self.class, self.table, new);
            self.forget_recent(jni);
            self.forget_guests(jni)
        })
    }

    /// Makes the VM discard compiled code in which the values that [`Tracker::configure`] sets are constants.
    pub(crate) fn forget_compiled(&self, env: Env<Live>, jni: Jni) -> Result<()> {
        jni.local_frame(8, || {
            let class = jni
                .new_local(self.class)
                .ok_or(jvmti::Error::Jni("tracker"))?;
            env.retransform(&[class])
        })
    }
}
