//! The three modes of section 1.5 as types.
//!
//! A profiler gets a [`Running`] VM. Disabling collections borrows it, so while a [`GcDisabled`] exists no function can
//! be called that could collect or allocate; suspending a thread borrows the [`GcDisabled`]. Dropping a value leaves
//! its mode, in the order that nested calls require.
//!
//! ```compile_fail
//! # fn f<H: vmpi::mode::Host>(vm: &mut vmpi::mode::Running<'_, H>) {
//! let still = vm.gc_disabled();
//! vm.run_gc(); // the document forbids it, and so does the compiler
//! drop(still);
//! # }
//! ```
//!
//! ```
//! # use vmpi::{EnvId, mode::{Host, Running}};
//! fn thread_object<H: Host>(vm: &mut Running<'_, H>, env: EnvId) -> Option<u64> {
//!     vm.gc_disabled().thread_object(env).map(|object| object.0)
//! }
//! ```

use crate::ids::ObjectHandle;
use crate::kind::{EventKind, Outcome};
use crate::vm_event::{CallTrace, DumpLevel, EnvId, JMethodId, VmEvent};

/// The second argument of `RequestEvent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// `OBJECT_ALLOC` of an object.
    ObjectAlloc(ObjectHandle),
    /// `CLASS_LOAD` of a class.
    ClassLoad(ObjectHandle),
    /// `THREAD_START` of a thread object.
    ThreadStart(ObjectHandle),
    /// `OBJECT_DUMP` of an object.
    ObjectDump(ObjectHandle),
    /// `HEAP_DUMP` of a level.
    HeapDump(DumpLevel),
    /// `MONITOR_DUMP`.
    MonitorDump,
}

impl Request {
    /// The event that is sent.
    #[must_use]
    pub fn kind(self) -> EventKind {
        match self {
            Self::ObjectAlloc(_) => EventKind::ObjectAlloc,
            Self::ClassLoad(_) => EventKind::ClassLoad,
            Self::ThreadStart(_) => EventKind::ThreadStart,
            Self::ObjectDump(_) => EventKind::ObjectDump,
            Self::HeapDump(_) => EventKind::HeapDump,
            Self::MonitorDump => EventKind::MonitorDump,
        }
    }

    /// The request for an event by its kind and object, as `RequestEvent` and the socket's command have it; `None` if
    /// the kind cannot be requested. A heap dump has the full level.
    #[must_use]
    pub fn new(kind: EventKind, object: ObjectHandle) -> Option<Self> {
        Some(match kind {
            EventKind::ObjectAlloc => Self::ObjectAlloc(object),
            EventKind::ClassLoad => Self::ClassLoad(object),
            EventKind::ThreadStart => Self::ThreadStart(object),
            EventKind::ObjectDump => Self::ObjectDump(object),
            EventKind::HeapDump => Self::HeapDump(DumpLevel::Values),
            EventKind::MonitorDump => Self::MonitorDump,
            _ => return None,
        })
    }
}

/// The functions of a VM that the modes are built on. A profiler does not call these but the types of this module,
/// which allow each call only where it is safe.
pub trait Host {
    /// Enables or disables an event.
    fn switch(&mut self, kind: EventKind, on: bool) -> Outcome;
    /// Handles a request by passing one event, with its requested bit, to `sink` before it returns.
    fn request(&mut self, request: Request, sink: &mut dyn FnMut(VmEvent)) -> Outcome;
    /// Prevents collections; calls nest.
    fn disable_gc(&mut self);
    /// Undoes one [`disable_gc`](Self::disable_gc).
    fn enable_gc(&mut self);
    /// Collects everything. Collections are enabled.
    fn run_gc(&mut self);
    /// Stops a thread. Collections are disabled.
    fn suspend(&mut self, env: EnvId) -> Outcome;
    /// Lets it continue.
    fn resume(&mut self, env: EnvId) -> Outcome;
    /// Its status (see [`thread_status`](crate::vm_event::thread_status)), as if
    /// this interface had not suspended it.
    fn thread_status(&self, env: EnvId) -> Option<i32>;
    /// Whether it has used CPU time since it was last suspended.
    fn thread_has_run(&self, env: EnvId) -> bool;
    /// Its stack, at most so many frames.
    fn call_trace(&self, env: EnvId, depth: usize) -> Option<CallTrace>;
    /// Its `Thread` object.
    fn thread_object(&self, env: EnvId) -> Option<ObjectHandle>;
    /// The class that declares a method.
    fn method_class(&self, method: JMethodId) -> Option<ObjectHandle>;
}

/// Multi-threaded, collections enabled.
#[derive(Debug)]
pub struct Running<'h, H: Host>(&'h mut H);

/// Multi-threaded, collections disabled. Object ids do not change.
#[derive(Debug)]
pub struct GcDisabled<'h, H: Host>(&'h mut H);

/// Some threads are suspended. The profiler must not block meanwhile.
#[derive(Debug)]
pub struct Suspended<'h, H: Host> {
    host: &'h mut H,
    threads: Vec<EnvId>,
}

impl<'h, H: Host> Running<'h, H> {
    /// The mode a profiler starts in.
    pub fn new(host: &'h mut H) -> Self {
        Self(host)
    }

    /// Enables or disables an event.
    pub fn switch(&mut self, kind: EventKind, on: bool) -> Outcome {
        self.0.switch(kind, on)
    }

    /// Collects everything now.
    pub fn run_gc(&mut self) {
        self.0.run_gc();
    }

    /// Requests a monitor dump, which is allowed in this mode because it needs no valid object id.
    pub fn monitor_dump(&mut self, sink: &mut dyn FnMut(VmEvent)) -> Outcome {
        self.0.request(Request::MonitorDump, sink)
    }

    /// Disables collections until the result is dropped.
    pub fn gc_disabled(&mut self) -> GcDisabled<'_, H> {
        GcDisabled::enter(self.0)
    }
}

impl<'h, H: Host> GcDisabled<'h, H> {
    fn enter(host: &'h mut H) -> Self {
        host.disable_gc();
        Self(host)
    }

    /// Disables collections once more; calls nest.
    pub fn gc_disabled(&mut self) -> GcDisabled<'_, H> {
        GcDisabled::enter(self.0)
    }

    /// Requests an event once. Its object id cannot change in this mode.
    pub fn request(&mut self, request: Request, sink: &mut dyn FnMut(VmEvent)) -> Outcome {
        self.0.request(request, sink)
    }

    /// The thread's object.
    #[must_use]
    pub fn thread_object(&self, env: EnvId) -> Option<ObjectHandle> {
        self.0.thread_object(env)
    }

    /// The class that declares a method.
    #[must_use]
    pub fn method_class(&self, method: JMethodId) -> Option<ObjectHandle> {
        self.0.method_class(method)
    }

    /// Suspends threads until the result is dropped; threads that have ended are left out. Collections stay disabled
    /// meanwhile, as JDK 1.2 requires.
    pub fn suspend(&mut self, threads: &[EnvId]) -> Suspended<'_, H> {
        let mut stopped = threads.to_vec();
        stopped.retain(|env| self.0.suspend(*env) == Outcome::Success);
        Suspended {
            host: self.0,
            threads: stopped,
        }
    }
}

impl<H: Host> Drop for GcDisabled<'_, H> {
    fn drop(&mut self) {
        self.0.enable_gc();
    }
}

impl<H: Host> Suspended<'_, H> {
    /// The threads that are stopped.
    #[must_use]
    pub fn threads(&self) -> &[EnvId] {
        &self.threads
    }

    /// The status of a thread.
    #[must_use]
    pub fn status(&self, env: EnvId) -> Option<i32> {
        self.host.thread_status(env)
    }

    /// Whether a thread has run since it was last suspended.
    #[must_use]
    pub fn has_run(&self, env: EnvId) -> bool {
        self.host.thread_has_run(env)
    }

    /// The stack of a thread.
    #[must_use]
    pub fn call_trace(&self, env: EnvId, depth: usize) -> Option<CallTrace> {
        self.host.call_trace(env, depth)
    }
}

impl<H: Host> Drop for Suspended<'_, H> {
    fn drop(&mut self) {
        for env in self.threads.drain(..).rev() {
            let _ = self.host.resume(env);
        }
    }
}
