//! The reference VM as a [`Host`]: the functions for a profiler, in the modes of the document.

use vmpi::mode::{Host, Request};
use vmpi::vm_event::thread_status;
use vmpi::wire::Command;
use vmpi::{
    Body, CallTrace, EnvId, EventKind, GcKind, JMethodId, MonitorDump, ObjectHandle, Outcome,
    ThreadStart, VmEvent,
};

use crate::core::{Core, VM_THREAD};
use crate::object::ClassIdx;
use crate::vm::RefVm;

/// Functions that may also be called while an event is emitted: they change nothing, or only request an action before
/// the next step.
impl Core<'_> {
    fn thread_at(&self, env: EnvId) -> Option<usize> {
        let at = usize::try_from(env.0.checked_sub(VM_THREAD.0 + 1)?).ok()?;
        self.threads.get(at).filter(|thread| !thread.ended)?;
        Some(at)
    }

    pub(crate) fn answer(&self, request: Request) -> Option<Body> {
        let at_address = |object: ObjectHandle| {
            let mut all = self.objects.iter();
            all.find(|(_, one)| one.handle() == object)
                .map(|(at, _)| at)
        };
        Some(match request {
            Request::ObjectAlloc(object) => Body::ObjectAlloc(self.describe(at_address(object)?)),
            Request::ClassLoad(object) => {
                let class = ClassIdx::of(object)?;
                Body::ClassLoad(Box::new(self.classes.get(class.0 as usize)?.load(class)))
            }
            Request::ThreadStart(object) => {
                let wanted = Some(at_address(object)?);
                let mut threads = self.threads.iter();
                let at = threads.position(|thread| thread.object == wanted)?;
                Body::ThreadStart(Box::new(self.describe_thread(at)))
            }
            Request::ObjectDump(object) => Body::ObjectDump {
                data: self.object_dump(at_address(object)?),
            },
            Request::HeapDump(level) => Body::HeapDump(Box::new(self.heap_dump(level))),
            Request::MonitorDump => {
                let running = self.threads.iter().filter(|thread| !thread.ended);
                let envs: Vec<_> = running.map(|thread| thread.env).collect();
                let traces = envs
                    .iter()
                    .filter_map(|env| self.call_trace(*env, usize::MAX));
                Body::MonitorDump(Box::new(MonitorDump {
                    data: Vec::new(),
                    traces: traces.collect(),
                    status: vec![thread_status::RUNNABLE; envs.len()],
                }))
            }
        })
    }

    pub(crate) fn describe_thread(&self, at: usize) -> ThreadStart {
        let thread = &self.threads[at];
        let object = thread.object.map(|at| self.objects.get(at).handle());
        ThreadStart {
            env: thread.env,
            object: object.unwrap_or(ObjectHandle::NULL),
            name: thread.name.clone(),
            group: "main".into(),
            parent: "VM".into(),
        }
    }

    pub(crate) fn disable_gc(&self) {
        self.gc_disabled.set(self.gc_disabled.get() + 1);
    }

    pub(crate) fn enable_gc(&self) {
        let times = self.gc_disabled.get();
        self.gc_disabled.set(times.saturating_sub(1));
    }

    /// Lines of its script that a thread has run; for the VM's own thread, those of all threads.
    pub(crate) fn steps(&self, env: EnvId) -> u64 {
        match self.thread_at(env) {
            Some(at) => self.threads[at].steps,
            None => self.threads.iter().map(|thread| thread.steps).sum(),
        }
    }

    pub(crate) fn suspend(&self, env: EnvId) -> Outcome {
        let Some(at) = self.thread_at(env) else {
            return Outcome::Fail;
        };
        let thread = &self.threads[at];
        thread.suspended.set(thread.suspended.get() + 1);
        Outcome::Success
    }

    pub(crate) fn resume(&self, env: EnvId) -> Outcome {
        let Some(at) = self.thread_at(env) else {
            return Outcome::Fail;
        };
        let thread = &self.threads[at];
        thread
            .suspended
            .set(thread.suspended.get().saturating_sub(1));
        thread.steps_at_suspend.set(thread.steps);
        Outcome::Success
    }

    pub(crate) fn thread_status(&self, env: EnvId) -> Option<i32> {
        self.thread_at(env).map(|_| thread_status::RUNNABLE)
    }

    pub(crate) fn thread_has_run(&self, env: EnvId) -> bool {
        let thread = self.thread_at(env).map(|at| &self.threads[at]);
        thread.is_some_and(|thread| thread.steps > thread.steps_at_suspend.get())
    }

    pub(crate) fn call_trace(&self, env: EnvId, depth: usize) -> Option<CallTrace> {
        let stack = &self.threads[self.thread_at(env)?].stack;
        let frames = stack.iter().rev().take(depth).copied().collect();
        Some(CallTrace { env, frames })
    }

    pub(crate) fn thread_object(&self, env: EnvId) -> Option<ObjectHandle> {
        let object = self.threads[self.thread_at(env)?].object?;
        Some(self.objects.get(object).handle())
    }
}

impl RefVm<'_> {
    /// Passes the event for a request to the VM's own sink, as a command of the stream does.
    pub fn request_to_sink(&mut self, request: Request) -> Outcome {
        match self.core.answer(request) {
            Some(body) => {
                self.core.emit_requested(VmEvent {
                    env: VM_THREAD,
                    requested: true,
                    body,
                });
                Outcome::Success
            }
            None => Outcome::Fail,
        }
    }

    /// Carries out a command of a front end between two steps; its results are passed to the VM's own sink.
    pub fn carry_out(&mut self, command: Command) -> Outcome {
        match command {
            Command::Enable(kind) => self.switch(kind, true),
            Command::Disable(kind) => self.switch(kind, false),
            Command::Request(kind, object) => match Request::new(kind, object) {
                Some(request) => self.request_to_sink(request),
                None => Outcome::NotAvailable,
            },
            Command::HeapDump(level) => self.request_to_sink(Request::HeapDump(level)),
            Command::MonitorDump => self.request_to_sink(Request::MonitorDump),
            Command::RunGc => {
                self.run_gc();
                Outcome::Success
            }
        }
    }
}

impl Host for RefVm<'_> {
    fn switch(&mut self, kind: EventKind, on: bool) -> Outcome {
        self.core.switches.set(kind, on)
    }

    fn request(&mut self, request: Request, sink: &mut dyn FnMut(VmEvent)) -> Outcome {
        match self.core.answer(request) {
            Some(body) => {
                sink(VmEvent {
                    env: VM_THREAD,
                    requested: true,
                    body,
                });
                Outcome::Success
            }
            None => Outcome::Fail,
        }
    }

    fn disable_gc(&mut self) {
        self.core.disable_gc();
    }

    fn enable_gc(&mut self) {
        self.core.enable_gc();
    }

    fn run_gc(&mut self) {
        self.collect(GcKind::Full);
    }

    fn suspend(&mut self, env: EnvId) -> Outcome {
        self.core.suspend(env)
    }

    fn resume(&mut self, env: EnvId) -> Outcome {
        self.core.resume(env)
    }

    fn thread_status(&self, env: EnvId) -> Option<i32> {
        self.core.thread_status(env)
    }

    fn thread_has_run(&self, env: EnvId) -> bool {
        self.core.thread_has_run(env)
    }

    fn call_trace(&self, env: EnvId, depth: usize) -> Option<CallTrace> {
        self.core.call_trace(env, depth)
    }

    fn thread_object(&self, env: EnvId) -> Option<ObjectHandle> {
        self.core.thread_object(env)
    }

    fn method_class(&self, method: JMethodId) -> Option<ObjectHandle> {
        self.core.method_class(method).map(ClassIdx::handle)
    }
}
