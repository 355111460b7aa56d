//! The state that all parts share, and the one function that calls the agent.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use jvmti::sys::RawEnv;
use jvmti::{Capabilities, Env, JavaVm, Jni, Live, OnLoad};
use locks::{Mutex, Rank};

use crate::classes::Classes;
use crate::collector::Collector;
use crate::interface::INTERFACE;
use crate::jni_refs::JniRefs;
use crate::new_objects::NewObjects;
use crate::objects::Objects;
use crate::threads::Threads;
use crate::traces::LineTables;
use crate::words::Words;
use vmpi::c_interface::layout::{Event, Notify, Payload, event};
use vmpi::c_interface::raw_monitor::RawMonitors;

/// The bridge of the process. There is only one, and it is never freed.
pub(crate) struct Bridge {
    pub(crate) java: JavaVm,
    pub(crate) env: Env<OnLoad>,
    pub(crate) granted: Mutex<Capabilities>,
    pub(crate) live: OnceLock<Env<Live>>,
    pub(crate) words: Words,
    /// Bit n: events of type n are enabled.
    pub(crate) enabled: AtomicU64,
    ended: AtomicBool,
    pub(crate) objects: Objects,
    pub(crate) new_objects: NewObjects,
    pub(crate) classes: Classes,
    pub(crate) threads: Threads,
    pub(crate) lines: LineTables,
    pub(crate) monitors: RawMonitors,
    pub(crate) refs: JniRefs,
    pub(crate) collector: Collector,
}

static BRIDGE: OnceLock<Bridge> = OnceLock::new();

thread_local! {
    /// How many nested calls of the agent or of internal work are active on this thread.
    static INSIDE: Cell<u32> = const { Cell::new(0) };
}

/// Runs `body`, during which the VM's events on this thread are ignored.
pub(crate) fn with_profiler_paused<T>(body: impl FnOnce() -> T) -> T {
    /// Decrements the count, also if `body` panics.
    struct Down;
    impl Drop for Down {
        fn drop(&mut self) {
            let _ = INSIDE.try_with(|inside| inside.set(inside.get().saturating_sub(1)));
        }
    }
    let _ = INSIDE.try_with(|inside| inside.set(inside.get() + 1));
    let _down = Down;
    body()
}

/// Whether this thread runs the agent or internal work of the bridge. A thread whose thread-locals were already
/// destroyed counts as such.
pub(crate) fn is_inside() -> bool {
    INSIDE.try_with(Cell::get).unwrap_or(1) > 0
}

/// Writes one line for the user. If the stream is closed, the line is dropped.
pub(crate) fn say(text: &str) {
    use std::io::Write;
    let _ = std::io::stderr().write_all(format!("JVMPI: {text}\n").as_bytes());
}

impl Bridge {
    pub(crate) fn new(java: JavaVm, env: Env<OnLoad>, granted: Capabilities, words: Words) -> Self {
        Self {
            java,
            env,
            granted: Mutex::new(Rank::Granted, granted),
            live: OnceLock::new(),
            words,
            enabled: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            objects: Objects::default(),
            new_objects: NewObjects::default(),
            classes: Classes::default(),
            threads: Threads::default(),
            lines: LineTables::default(),
            monitors: RawMonitors::default(),
            refs: JniRefs::default(),
            collector: Collector::default(),
        }
    }

    /// Stores the bridge; `None` if there already was one.
    pub(crate) fn install(self) -> Option<&'static Self> {
        BRIDGE.set(self).ok()?;
        BRIDGE.get()
    }

    /// The bridge, once the library is loaded.
    pub(crate) fn get() -> Option<&'static Self> {
        BRIDGE.get()
    }

    /// Both environments of the current thread, if the VM is running.
    pub(crate) fn here(&self) -> Option<(Env<Live>, Jni)> {
        if self.ended.load(Ordering::SeqCst) {
            return None;
        }
        Some((*self.live.get()?, self.java.jni()?))
    }

    /// Whether the agent has enabled an event.
    pub(crate) fn is_on(&self, kind: i32) -> bool {
        self.enabled.load(Ordering::Relaxed) >> kind & 1 == 1
    }

    /// Whether an event of this thread must be delivered now.
    pub(crate) fn wants(&self, kind: i32) -> bool {
        self.is_on(kind) && !is_inside() && !self.ended.load(Ordering::Relaxed)
    }

    /// Calls the agent. The payload's pointers are valid until it returns; the result is the payload as the agent has
    /// changed it.
    pub(crate) fn send(&self, env: RawEnv, kind: i32, payload: Payload) -> Payload {
        if self.ended.load(Ordering::SeqCst) && kind != event::JVM_SHUT_DOWN {
            return payload;
        }
        // SAFETY: the field is a pointer in a static; the agent writes it with one
        // store at any time, so it is read as an atomic.
        let notify = unsafe {
            let field = (&raw mut (*INTERFACE.0.get()).notify).cast::<*mut ()>();
            AtomicPtr::from_ptr(field).load(Ordering::Acquire)
        };
        if notify.is_null() {
            return payload;
        }
        // SAFETY: not null, so it is the function that the agent stored.
        let notify: Notify = unsafe { std::mem::transmute::<*mut (), Notify>(notify) };
        let mut event = Event {
            event_type: kind,
            env,
            payload,
        };
        with_profiler_paused(|| notify(&raw mut event));
        event.payload
    }

    /// Ends events and all calls of the VM.
    pub(crate) fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }
}
