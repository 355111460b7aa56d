//! The reference VM: threads that allocate and link objects, and a collector.

use std::cell::Cell;
use std::collections::BTreeSet;

use vmpi::wire::{Hello, Item};
use vmpi::{Body, CallFrame, EnvId, GcKind, JMethodId, ObjectHandle, Switches, ThreadStart};

use crate::collector::{Collector, Config, Gc, Write};
use crate::core::{Core, Sink, Thread, VM_THREAD};
use crate::jvmpi::Agent;
use crate::object::{Class, ClassIdx, ObjIdx, Object, ObjectTable, Shape, size_of, slots_of};

/// Why a mutator cannot continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VmFault {
    /// No collection frees enough memory for this many bytes.
    #[error("out of memory: {0} bytes do not fit")]
    OutOfMemory(u64),
    /// A null reference was dereferenced.
    #[error("null reference")]
    NullReference,
    /// An object has no such slot.
    #[error("slot {slot} of an object with {slots}")]
    NoSlot {
        /// The slot requested.
        slot: u32,
        /// The number of its slots.
        slots: u32,
    },
    /// No thread with this number is running.
    #[error("no such thread")]
    NoThread,
}

/// A thread by its number, 0 for the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadIdx(pub usize);

/// A variable: a root of the thread, or one that all threads share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Variable {
    /// A variable of the thread that uses it.
    Local(u32),
    /// A variable of all threads.
    Global(u32),
}

/// A VM with one of the five collectors.
///
/// It is a simulation: addresses and sizes are those of a real heap, but data in primitive fields is not stored. There
/// is no time and no randomness, so the same calls cause the same events.
#[derive(Debug)]
pub struct RefVm<'s> {
    pub(crate) core: Core<'s>,
    pub(crate) collector: Box<dyn Collector>,
    pub(crate) config: Config,
    pub(crate) collections: u64,
    thread_class: ClassIdx,
}

impl<'s> RefVm<'s> {
    /// Starts a VM: arenas, the VM's own thread, `JVM_INIT_DONE`. Enabled events are passed to `sink`.
    #[must_use]
    pub fn new(config: Config, switches: Switches, sink: Sink<'s>) -> Self {
        Self::watched(config, switches, sink, None)
    }

    /// As [`RefVm::new`], with an agent of the C interface, which gets the events that it has enabled.
    #[must_use]
    pub fn watched(
        config: Config,
        switches: Switches,
        sink: Sink<'s>,
        agent: Option<Agent>,
    ) -> Self {
        let mut vm = Self {
            collector: config.collector(),
            core: Core::new(switches, sink, agent),
            config,
            collections: 0,
            thread_class: ClassIdx(0),
        };
        vm.collector.start(&mut vm.core);
        let start = ThreadStart {
            env: VM_THREAD,
            name: "VM".into(),
            group: "system".into(),
            ..ThreadStart::default()
        };
        vm.core.emit(VM_THREAD, Body::ThreadStart(Box::new(start)));
        vm.thread_class = vm.define_class("Thread", 0, 16, &[]);
        vm.core.emit(VM_THREAD, Body::JvmInitDone);
        vm
    }

    /// The `Hello` at the start of a stream of this VM's events.
    #[must_use]
    pub fn hello(config: &Config) -> Hello {
        Hello {
            frees_outside_gc: config.gc == Gc::ReferenceCounting,
            vm: concat!("refheap ", env!("CARGO_PKG_VERSION")).into(),
            collector: config.gc.name().into(),
            ..Hello::default()
        }
    }

    /// Loads a class: its reference slots, its bytes of data, and methods that stacks refer to.
    pub fn define_class(
        &mut self,
        name: &str,
        slots: u32,
        data: u32,
        methods: &[&str],
    ) -> ClassIdx {
        let index = ClassIdx(self.core.classes.len() as u32);
        let number = |core: &mut Core<'_>| {
            core.methods.push(index);
            JMethodId(core.methods.len() as u64)
        };
        let methods = methods
            .iter()
            .map(|name| (number(&mut self.core), (*name).to_string()))
            .collect();
        let class = Class {
            name: name.into(),
            slots,
            data,
            methods,
        };
        let load = class.load(index);
        self.core.classes.push(class);
        self.core.emit(VM_THREAD, Body::ClassLoad(Box::new(load)));
        index
    }

    /// The classes by number.
    #[must_use]
    pub fn classes(&self) -> &[Class] {
        &self.core.classes
    }

    /// Starts a thread; its object is allocated first.
    ///
    /// # Errors
    /// The heap is full.
    pub fn start_thread(&mut self, name: &str) -> Result<ThreadIdx, VmFault> {
        let shape = Shape::Instance(self.thread_class);
        let object = self.allocate_for(VM_THREAD, None, shape)?;
        let env = EnvId(VM_THREAD.0 + 1 + self.core.threads.len() as u64);
        self.core.threads.push(Thread {
            env,
            name: name.into(),
            object: Some(object),
            variables: Vec::new(),
            stack: Vec::new(),
            suspended: Cell::new(0),
            steps: 0,
            steps_at_suspend: Cell::new(0),
            ended: false,
        });
        self.wrote(VM_THREAD, None, None, Some(object));
        let start = self.core.describe_thread(self.core.threads.len() - 1);
        self.core.emit(env, Body::ThreadStart(Box::new(start)));
        Ok(ThreadIdx(self.core.threads.len() - 1))
    }

    /// Ends a thread: its variables are not roots any more.
    ///
    /// # Errors
    /// There is no such thread.
    pub fn end_thread(&mut self, thread: ThreadIdx) -> Result<(), VmFault> {
        let env = self.thread(thread)?.env;
        self.core.emit(env, Body::ThreadEnd);
        let one = self.thread(thread)?;
        one.ended = true;
        let mut roots: Vec<_> = std::mem::take(&mut one.variables)
            .into_iter()
            .flatten()
            .collect();
        roots.extend(one.object.take());
        for root in roots {
            // The thread has ended, so its last references are removed on the VM's thread.
            self.wrote(VM_THREAD, None, Some(root), None);
        }
        Ok(())
    }

    fn thread(&mut self, thread: ThreadIdx) -> Result<&mut Thread, VmFault> {
        let found = self.core.threads.get_mut(thread.0);
        found
            .filter(|thread| !thread.ended)
            .ok_or(VmFault::NoThread)
    }

    /// Enters a method, which becomes the innermost frame of the thread's stack.
    ///
    /// # Errors
    /// There is no such thread.
    pub fn enter(
        &mut self,
        thread: ThreadIdx,
        method: JMethodId,
        line: i32,
    ) -> Result<(), VmFault> {
        let one = self.thread(thread)?;
        if let Some(caller) = one.stack.last_mut() {
            caller.line = line;
        }
        one.stack.push(CallFrame { line: -1, method });
        let env = one.env;
        self.core.emit(env, Body::MethodEntry { method });
        Ok(())
    }

    /// Leaves the innermost method, if there is one.
    ///
    /// # Errors
    /// There is no such thread.
    pub fn exit(&mut self, thread: ThreadIdx) -> Result<(), VmFault> {
        let one = self.thread(thread)?;
        let env = one.env;
        if let Some(CallFrame { method, .. }) = one.stack.pop() {
            self.core.emit(env, Body::MethodExit { method });
        }
        Ok(())
    }

    /// Sets the line of the innermost frame.
    pub(crate) fn at_line(&mut self, thread: ThreadIdx, line: i32) {
        if let Ok(one) = self.thread(thread) {
            one.steps += 1;
            if let Some(top) = one.stack.last_mut() {
                top.line = line;
            }
        }
    }

    /// Allocates an object into a variable.
    ///
    /// # Errors
    /// No collection frees enough memory, or there is no such thread.
    pub fn new_object(
        &mut self,
        thread: ThreadIdx,
        into: Variable,
        shape: Shape,
    ) -> Result<(), VmFault> {
        let env = self.thread(thread)?.env;
        let object = self.allocate_for(env, Some(thread), shape)?;
        self.assign(thread, into, Some(object))
    }

    /// Copies a variable, or null, into a variable.
    ///
    /// # Errors
    /// There is no such thread.
    pub fn set(
        &mut self,
        thread: ThreadIdx,
        into: Variable,
        from: Option<Variable>,
    ) -> Result<(), VmFault> {
        let value = from.and_then(|from| self.value(thread, from));
        self.assign(thread, into, value)
    }

    /// Stores a variable, or null, into a slot of the object in a variable.
    ///
    /// # Errors
    /// The variable is null, or its object has no such slot.
    pub fn store(
        &mut self,
        thread: ThreadIdx,
        holder: Variable,
        slot: u32,
        from: Option<Variable>,
    ) -> Result<(), VmFault> {
        let env = self.thread(thread)?.env;
        let at = self.value(thread, holder).ok_or(VmFault::NullReference)?;
        let new = from.and_then(|from| self.value(thread, from));
        let old = std::mem::replace(self.slot(at, slot)?, new);
        self.wrote(env, Some(at), old, new);
        Ok(())
    }

    /// Loads a slot of the object in a variable into a variable.
    ///
    /// # Errors
    /// The variable is null, or its object has no such slot.
    pub fn load(
        &mut self,
        thread: ThreadIdx,
        into: Variable,
        holder: Variable,
        slot: u32,
    ) -> Result<(), VmFault> {
        let at = self.value(thread, holder).ok_or(VmFault::NullReference)?;
        let value = *self.slot(at, slot)?;
        self.assign(thread, into, value)
    }

    /// The number of slots of the object in a variable; `None` for null.
    #[must_use]
    pub fn slots(&self, thread: ThreadIdx, holder: Variable) -> Option<u32> {
        let at = self.value(thread, holder)?;
        Some(self.core.objects.get(at).slots.len() as u32)
    }

    fn slot(&mut self, at: ObjIdx, slot: u32) -> Result<&mut Option<ObjIdx>, VmFault> {
        let slots = &mut self.core.objects.get_mut(at).slots;
        let len = slots.len() as u32;
        let fault = VmFault::NoSlot { slot, slots: len };
        slots.get_mut(slot as usize).ok_or(fault)
    }

    /// Collects: everything, or with [`GcKind::Young`] only young objects, if the collector has generations. Does
    /// nothing while collections are disabled.
    pub fn collect(&mut self, kind: GcKind) {
        if self.core.gc_disabled.get() == 0 {
            self.run_collector(kind, 0);
        }
    }

    fn run_collector(&mut self, kind: GcKind, need: u64) {
        self.collections += 1;
        self.collector.collect(&mut self.core, kind, need);
    }

    /// Carries out requests that were made while events were emitted; returns whether the VM continues, because an
    /// agent may have ended it.
    pub fn serve(&mut self) -> bool {
        if self.core.gc_disabled.get() == 0 && self.core.gc_wanted.take() {
            self.run_collector(GcKind::Full, 0);
        }
        self.exit_code().is_none()
    }

    /// The code with which an agent has requested the VM to end.
    #[must_use]
    pub fn exit_code(&self) -> Option<i32> {
        self.core.agent.as_ref()?.exit_code()
    }

    /// Whether a profiler has suspended a thread.
    #[must_use]
    pub fn is_suspended(&self, thread: ThreadIdx) -> bool {
        let found = self.core.threads.get(thread.0);
        found.is_some_and(|thread| thread.suspended.get() > 0)
    }

    /// Ends the VM: `JVM_SHUT_DOWN`.
    pub fn shut_down(&mut self) {
        self.core.emit(VM_THREAD, Body::JvmShutDown);
    }

    /// Collections so far.
    #[must_use]
    pub fn collections(&self) -> u64 {
        self.collections
    }

    /// Every object that has not been freed.
    #[must_use]
    pub fn objects(&self) -> &ObjectTable {
        &self.core.objects
    }

    /// Ids of the objects that a mutator can reach, found by a simple walk over roots and slots, for checks.
    #[must_use]
    pub fn reachable(&self) -> BTreeSet<ObjectHandle> {
        let mut found = BTreeSet::new();
        let mut stack = self.core.roots();
        while let Some(at) = stack.pop() {
            let object: &Object = self.core.objects.get(at);
            if found.insert(object.handle()) {
                stack.extend(object.slots.iter().flatten());
            }
        }
        found
    }

    /// Emits how full each arena is.
    pub fn emit_arenas(&mut self) {
        for space in self.collector.spaces() {
            let item = Item::ArenaState(space.state());
            self.core.emit_item(VM_THREAD, &item);
        }
    }

    pub(crate) fn value(&self, thread: ThreadIdx, variable: Variable) -> Option<ObjIdx> {
        let (all, at) = match variable {
            Variable::Local(at) => (&self.core.threads.get(thread.0)?.variables, at),
            Variable::Global(at) => (&self.core.globals, at),
        };
        all.get(at as usize).copied().flatten()
    }

    fn assign(
        &mut self,
        thread: ThreadIdx,
        into: Variable,
        value: Option<ObjIdx>,
    ) -> Result<(), VmFault> {
        let env = self.thread(thread)?.env;
        let (all, at) = match into {
            Variable::Local(at) => (&mut self.core.threads[thread.0].variables, at as usize),
            Variable::Global(at) => (&mut self.core.globals, at as usize),
        };
        if all.len() <= at {
            all.resize(at + 1, None);
        }
        let old = std::mem::replace(&mut all[at], value);
        self.wrote(env, None, old, value);
        Ok(())
    }

    fn wrote(
        &mut self,
        env: EnvId,
        holder: Option<ObjIdx>,
        old: Option<ObjIdx>,
        new: Option<ObjIdx>,
    ) {
        let write = Write {
            env,
            holder,
            old,
            new,
        };
        self.collector.stored(&mut self.core, write);
    }

    fn allocate_for(
        &mut self,
        env: EnvId,
        thread: Option<ThreadIdx>,
        shape: Shape,
    ) -> Result<ObjIdx, VmFault> {
        let size = size_of(shape, &self.core.classes);
        let trace = thread.map_or(vmpi::TraceId::EMPTY, |thread| self.core.trace_of(thread.0));
        let attempts: &[GcKind] = match (self.core.gc_disabled.get(), self.config.gc) {
            (1.., _) => &[],
            (0, Gc::Generational) => &[GcKind::Young, GcKind::Full],
            (0, _) => &[GcKind::Full],
        };
        let mut place = self.collector.allocate(size);
        for kind in attempts {
            if place.is_none() {
                self.run_collector(*kind, size);
                place = self.collector.allocate(size);
            }
        }
        let place = place.ok_or(VmFault::OutOfMemory(size))?;
        let at = self.core.objects.insert(Object {
            shape,
            address: place.address,
            arena: place.arena,
            size,
            slots: vec![None; slots_of(shape, &self.core.classes)],
            trace,
            age: 0,
            count: 0,
        });
        self.core.emit_alloc(env, at);
        Ok(at)
    }
}
