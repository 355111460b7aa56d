//! Threads that block or wait at monitors, as events and as a list at one moment, and threads that were parked at
//! locks.

use jvmti::{Capability, Env, EventKind, Jni, Live, Object};
use vmpi::{ClassId, Event, MonitorEvent, MonitorId, MonitorInfo, ThreadId, TraceId, Worth};

use crate::heap::used_monitors::used_monitors;
use crate::instrument::natives::{is_inside, with_agent_guard};
use crate::threads::parks;
use crate::vm::costs;
use crate::vm::hotspot::HotSpot;
use crate::vm::registry::Pending;

/// What a thread does at a monitor.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Enter,
    Entered,
    Wait {
        timeout_ms: i64,
    },
    Waited {
        timed_out: bool,
    },
    /// It was parked at a lock of `java.util.concurrent`.
    Parked {
        parked_ns: u64,
    },
}

/// An event that has not been emitted to the profiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AtMonitor {
    what: MonitorEvent,
    thread: ThreadId,
    monitor: MonitorId,
    class: ClassId,
    trace: TraceId,
}

impl AtMonitor {
    pub(crate) fn event(self) -> Event<'static> {
        let Self {
            what,
            thread,
            monitor,
            class,
            trace,
        } = self;
        Event::Monitor {
            what,
            thread,
            monitor,
            class,
            trace,
        }
    }
}

/// A monitor's number: the identity hash of its object, which two objects may share.
fn number(env: Env<Live>, object: Object) -> MonitorId {
    let hash = env.object_hash(object).unwrap_or(0);
    MonitorId(u64::from(hash.cast_unsigned()))
}

impl HotSpot {
    /// The current thread begins or ends blocking or waiting at a monitor.
    pub(crate) fn monitor(&self, env: Env<Live>, jni: Jni, object: Object, step: Step) {
        // Code that the agent runs does not belong to the program, and its thread may have locked the profiler.
        if is_inside() {
            return;
        }
        with_agent_guard(|| {
            let now = self.elapsed();
            let mut state = self.lock();
            let thread = state.registry.thread(env, None, false);
            let since = |begun: Option<u64>| now.saturating_sub(begun.unwrap_or(now));
            let what = match step {
                Step::Enter => {
                    state.blocked.insert(thread, now);
                    MonitorEvent::ContendedEnter
                }
                Step::Entered => MonitorEvent::ContendedEntered {
                    waited_ns: since(state.blocked.remove(&thread)),
                },
                Step::Wait { timeout_ms } => {
                    state.waiting.insert(thread, now);
                    MonitorEvent::Wait { timeout_ms }
                }
                Step::Waited { timed_out } => MonitorEvent::Waited {
                    timed_out,
                    waited_ns: since(state.waiting.remove(&thread)),
                },
                Step::Parked { parked_ns } => MonitorEvent::Parked { parked_ns },
            };
            if !self.memory.native.take(Worth::Objects, costs::PENDING) {
                *state
                    .lost
                    .entry("monitor events (memory limit)")
                    .or_default() += 1;
                return;
            }
            let trace = match step {
                Step::Parked { .. } => state.trace_of_locker(env, jni, &self.config),
                _ => state.current_trace(env, jni, &self.config),
            };
            let class = jni
                .object_class(object)
                .map(|mirror| state.registry.class(env, jni, mirror));
            let event = AtMonitor {
                what,
                thread,
                monitor: number(env, object),
                class: class.unwrap_or_default(),
                trace,
            };
            state.registry.announce(Pending::Monitor(event));
            drop(state);
            self.emit_pending();
        });
    }

    /// Parked threads cannot be timed.
    pub(crate) fn parks_are_not_timed(&self, error: jvmti::Error) {
        let what = "time at locks of java.util.concurrent is not measured";
        self.degrade(&format!("{what}: {error}"));
    }

    /// Switches whether contention of monitors is reported. Options that request it always have it.
    pub(crate) fn switch_monitors(&self, env: Env<Live>, jni: Jni, on: bool) -> jvmti::Result<()> {
        if self.config.monitors {
            return Ok(());
        }
        parks::switch(env, jni, on).unwrap_or_else(|error| self.parks_are_not_timed(error));
        // HotSpot grants this capability at any time.
        self.env
            .add_capabilities(&[Capability::GenerateMonitorEvents])?;
        self.env.enable(EventKind::MonitorContendedEnter, on)?;
        self.env.enable(EventKind::MonitorContendedEntered, on)
    }

    /// All monitors that are owned by a thread.
    pub(crate) fn owned_monitors(
        &self,
        env: Env<Live>,
        jni: Jni,
    ) -> jvmti::Result<Vec<MonitorInfo>> {
        let threads = env.all_threads(jni)?;
        let mut found = Vec::new();
        for object in used_monitors(env, jni, threads.into_iter()) {
            let Ok(usage) = env.monitor_usage(object) else {
                continue;
            };
            let mirror = jni.object_class(object);
            // A thread also waits for monitors that have no owner.
            let Some(owner) = usage.owner else { continue };
            let mut state = self.lock();
            let registry = &mut state.registry;
            let mut number_of = |thread: Object| registry.thread(env, Some(thread), false);
            let owner = number_of(owner);
            let mut all = |threads: Vec<Object>| threads.into_iter().map(&mut number_of).collect();
            found.push(MonitorInfo {
                monitor: number(env, object),
                owner: Some(owner),
                entry_count: usage.entry_count,
                waiting_to_enter: all(usage.waiting_to_enter),
                waiting_to_be_notified: all(usage.waiting_to_be_notified),
                class: mirror.map_or(ClassId(0), |mirror| registry.class(env, jni, mirror)),
            });
        }
        Ok(found)
    }
}
