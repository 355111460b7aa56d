//! The reference VM as a [`Host`]: what a profiler may ask, in the modes of the
//! document.

use vmpi::mode::{Host, Request};
use vmpi::vm_event::thread_status;
use vmpi::{
    Body, CallTrace, EnvId, EventKind, GcKind, JMethodId, MonitorDump, ObjectHandle, Outcome,
    VmEvent,
};

use crate::core::VM_THREAD;
use crate::object::ClassIdx;
use crate::vm::RefVm;

impl RefVm<'_> {
    fn thread_at(&self, env: EnvId) -> Option<usize> {
        let at = usize::try_from(env.0.checked_sub(VM_THREAD.0 + 1)?).ok()?;
        self.core.threads.get(at).filter(|thread| !thread.ended)?;
        Some(at)
    }

    fn answer(&self, request: Request) -> Option<Body> {
        let at_address = |object: ObjectHandle| {
            let mut all = self.core.objects.iter();
            all.find(|(_, one)| one.handle() == object)
                .map(|(at, _)| at)
        };
        Some(match request {
            Request::ObjectAlloc(object) => {
                Body::ObjectAlloc(self.core.describe(at_address(object)?))
            }
            Request::ClassLoad(object) => {
                let class = ClassIdx::of(object)?;
                Body::ClassLoad(Box::new(
                    self.core.classes.get(class.0 as usize)?.load(class),
                ))
            }
            Request::ThreadStart(object) => {
                let wanted = Some(at_address(object)?);
                let mut threads = self.core.threads.iter();
                let at = threads.position(|thread| thread.object == wanted)?;
                Body::ThreadStart(Box::new(self.describe_thread(at)))
            }
            Request::ObjectDump(object) => Body::ObjectDump {
                data: self.object_dump(at_address(object)?),
            },
            Request::HeapDump(level) => Body::HeapDump(Box::new(self.heap_dump(level))),
            Request::MonitorDump => {
                let running = self.core.threads.iter().filter(|thread| !thread.ended);
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

    /// Answers a request through the VM's own sink, as a command of the wire does.
    pub fn request_to_sink(&mut self, request: Request) -> Outcome {
        match self.answer(request) {
            Some(body) => {
                self.core.tell_requested(VmEvent {
                    env: VM_THREAD,
                    requested: true,
                    body,
                });
                Outcome::Success
            }
            None => Outcome::Fail,
        }
    }
}

impl Host for RefVm<'_> {
    fn switch(&mut self, kind: EventKind, on: bool) -> Outcome {
        self.core.switches.set(kind, on)
    }

    fn request(&mut self, request: Request, sink: &mut dyn FnMut(VmEvent)) -> Outcome {
        match self.answer(request) {
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
        self.gc_disabled += 1;
    }

    fn enable_gc(&mut self) {
        self.gc_disabled = self.gc_disabled.saturating_sub(1);
    }

    fn run_gc(&mut self) {
        self.collect(GcKind::Full);
    }

    fn suspend(&mut self, env: EnvId) -> Outcome {
        let Some(at) = self.thread_at(env) else {
            return Outcome::Fail;
        };
        let thread = &mut self.core.threads[at];
        thread.suspended += 1;
        Outcome::Success
    }

    fn resume(&mut self, env: EnvId) -> Outcome {
        let Some(at) = self.thread_at(env) else {
            return Outcome::Fail;
        };
        let thread = &mut self.core.threads[at];
        thread.suspended = thread.suspended.saturating_sub(1);
        thread.steps_at_suspend = thread.steps;
        Outcome::Success
    }

    fn thread_status(&self, env: EnvId) -> Option<i32> {
        self.thread_at(env).map(|_| thread_status::RUNNABLE)
    }

    fn thread_has_run(&self, env: EnvId) -> bool {
        let thread = self.thread_at(env).map(|at| &self.core.threads[at]);
        thread.is_some_and(|thread| thread.steps > thread.steps_at_suspend)
    }

    fn call_trace(&self, env: EnvId, depth: usize) -> Option<CallTrace> {
        let stack = &self.core.threads[self.thread_at(env)?].stack;
        let frames = stack.iter().rev().take(depth).copied().collect();
        Some(CallTrace { env, frames })
    }

    fn thread_object(&self, env: EnvId) -> Option<ObjectHandle> {
        let object = self.core.threads[self.thread_at(env)?].object?;
        Some(self.core.objects.get(object).handle())
    }

    fn method_class(&self, method: JMethodId) -> Option<ObjectHandle> {
        self.core.method_class(method).map(ClassIdx::handle)
    }
}
