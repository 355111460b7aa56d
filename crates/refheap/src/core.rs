//! The state that every collector works on: objects, roots, and the output of events.

use std::cell::Cell;
use std::collections::HashMap;

use vmpi::wire::Item;
use vmpi::{
    ArenaId, Body, CallFrame, CallTrace, EnvId, GcInfo, GcKind, JMethodId, ObjectAlloc, ObjectMove,
    Switches, TraceId, VmEvent,
};

use crate::jvmpi::Agent;
use crate::object::{Class, ClassIdx, ObjIdx, Object, ObjectTable, Shape};
use crate::space::Space;

/// The thread that collects and that starts the others.
pub const VM_THREAD: EnvId = EnvId(1);

/// A thread of the mutator.
#[derive(Debug)]
pub(crate) struct Thread {
    pub(crate) env: EnvId,
    pub(crate) name: String,
    pub(crate) object: Option<ObjIdx>,
    pub(crate) variables: Vec<Option<ObjIdx>>,
    pub(crate) stack: Vec<CallFrame>,
    pub(crate) suspended: Cell<u32>,
    pub(crate) steps: u64,
    pub(crate) steps_at_suspend: Cell<u64>,
    pub(crate) ended: bool,
}

/// Receives items, with the thread in which they happen.
pub type Sink<'s> = Box<dyn FnMut(EnvId, &Item) + 's>;

/// The state that all collectors share.
pub(crate) struct Core<'s> {
    pub(crate) objects: ObjectTable,
    pub(crate) classes: Vec<Class>,
    pub(crate) threads: Vec<Thread>,
    /// Variables that belong to no thread.
    pub(crate) globals: Vec<Option<ObjIdx>>,
    pub(crate) switches: Switches,
    pub(crate) agent: Option<Agent>,
    /// The number of calls that disabled collections, minus those that enabled them.
    pub(crate) gc_disabled: Cell<u32>,
    /// A collection was requested while an event was emitted.
    pub(crate) gc_wanted: Cell<bool>,
    pub(crate) methods: Vec<ClassIdx>,
    traces: HashMap<Vec<CallFrame>, TraceId>,
    sink: Sink<'s>,
}

impl std::fmt::Debug for Core<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Core")
            .field("objects", &self.objects.len())
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl<'s> Core<'s> {
    pub(crate) fn new(switches: Switches, sink: Sink<'s>, agent: Option<Agent>) -> Self {
        Self {
            objects: ObjectTable::default(),
            classes: Vec::new(),
            threads: Vec::new(),
            globals: Vec::new(),
            switches,
            agent,
            gc_disabled: Cell::new(0),
            gc_wanted: Cell::new(false),
            methods: Vec::new(),
            traces: HashMap::new(),
            sink,
        }
    }

    /// Passes an event to the sink if the event is enabled, and to an agent if the agent has enabled it.
    pub(crate) fn emit(&mut self, env: EnvId, body: Body) {
        if let Some(agent) = &self.agent {
            agent.notify(self, env, &body);
        }
        if self.switches.is_on(body.kind()) {
            (self.sink)(env, &Item::event(body));
        }
    }

    /// Passes an item that the stream adds to the document's events to the sink.
    pub(crate) fn emit_item(&mut self, env: EnvId, item: &Item) {
        (self.sink)(env, item);
    }

    /// Emits a requested event.
    pub(crate) fn emit_requested(&mut self, event: VmEvent) {
        let item = Item::Event {
            requested: event.requested,
            body: event.body,
        };
        (self.sink)(event.env, &item);
    }

    pub(crate) fn arena_new(&mut self, space: &Space) {
        self.emit(
            VM_THREAD,
            Body::ArenaNew {
                arena: space.arena,
                name: space.name.clone(),
            },
        );
    }

    /// Deletes an arena: its objects are freed without separate events.
    pub(crate) fn arena_delete(&mut self, arena: ArenaId) {
        let inside = |(at, object): (ObjIdx, &Object)| (object.arena == arena).then_some(at);
        let dead: Vec<_> = self.objects.iter().filter_map(inside).collect();
        for at in dead {
            self.objects.remove(at);
        }
        self.emit(VM_THREAD, Body::ArenaDelete { arena });
    }

    pub(crate) fn gc_start(&mut self, kind: GcKind) {
        self.emit(VM_THREAD, Body::GcStart { kind });
    }

    pub(crate) fn gc_finish(&mut self, spaces: &[&Space]) {
        let info = GcInfo {
            used_objects: self.objects.len(),
            used_space: self.objects.bytes(),
            total_space: spaces.iter().map(|space| space.capacity()).sum(),
        };
        self.emit(VM_THREAD, Body::GcFinish(info));
        for space in spaces {
            self.emit_item(VM_THREAD, &Item::ArenaState(space.state()));
        }
    }

    /// Frees one object and emits the event.
    pub(crate) fn free(&mut self, env: EnvId, at: ObjIdx) -> Object {
        let object = self.objects.remove(at);
        let body = Body::ObjectFree {
            object: object.handle(),
        };
        self.emit(env, body);
        object
    }

    /// Moves an object to another address, perhaps in another arena, and emits the event.
    pub(crate) fn move_to(&mut self, at: ObjIdx, arena: ArenaId, address: u64) {
        let object = self.objects.get_mut(at);
        let (old, old_arena) = (object.handle(), object.arena);
        object.address = address;
        object.arena = arena;
        let body = Body::ObjectMove(ObjectMove {
            object: old,
            arena: old_arena,
            new_object: object.handle(),
            new_arena: arena,
        });
        self.emit(VM_THREAD, body);
    }

    /// Emits the event of an allocated object.
    pub(crate) fn emit_alloc(&mut self, env: EnvId, at: ObjIdx) {
        let body = Body::ObjectAlloc(self.describe(at));
        self.emit(env, body);
    }

    pub(crate) fn describe(&self, at: ObjIdx) -> ObjectAlloc {
        let object = self.objects.get(at);
        let (class, array) = match object.shape {
            Shape::Instance(class) => (class.handle(), None),
            Shape::Array(class, _) => (class.handle(), Some(vmpi::BasicType::Object)),
            Shape::Primitive(kind, _) => (vmpi::ObjectHandle::NULL, Some(kind)),
        };
        ObjectAlloc {
            object: object.handle(),
            class,
            size: object.size,
            arena: object.arena,
            trace: object.trace,
            array,
        }
    }

    /// Every root in a fixed order: globals, then each thread's object and
    /// variables.
    pub(crate) fn roots(&self) -> Vec<ObjIdx> {
        let threads = self.threads.iter().filter(|thread| !thread.ended);
        let threads =
            threads.flat_map(|thread| thread.variables.iter().copied().chain([thread.object]));
        self.globals
            .iter()
            .copied()
            .chain(threads)
            .flatten()
            .collect()
    }

    /// Objects in the order in which a breadth-first walk from `from` finds them. The walk enters only objects that
    /// `inside` accepts.
    pub(crate) fn walk(&self, from: Vec<ObjIdx>, inside: impl Fn(&Object) -> bool) -> Vec<ObjIdx> {
        let mut seen = std::collections::HashSet::new();
        let mut order: Vec<ObjIdx> = Vec::new();
        let mut enter = |at: ObjIdx, order: &mut Vec<ObjIdx>| {
            if inside(self.objects.get(at)) && seen.insert(at) {
                order.push(at);
            }
        };
        for at in from {
            enter(at, &mut order);
        }
        let mut next = 0;
        while next < order.len() {
            for slot in self.objects.get(order[next]).slots.iter().flatten() {
                enter(*slot, &mut order);
            }
            next += 1;
        }
        order
    }

    /// Objects that a walk from the roots does not find, by address.
    pub(crate) fn unreachable(&self) -> Vec<ObjIdx> {
        let live = self.walk(self.roots(), |_| true);
        let live: std::collections::HashSet<_> = live.into_iter().collect();
        let mut dead: Vec<_> = self
            .objects
            .iter()
            .filter(|(at, _)| !live.contains(at))
            .map(|(at, object)| (object.address, at))
            .collect();
        dead.sort_unstable();
        dead.into_iter().map(|(_, at)| at).collect()
    }

    /// Objects of an arena by address.
    pub(crate) fn in_arena(&self, arena: ArenaId) -> Vec<ObjIdx> {
        let mut found: Vec<_> = self
            .objects
            .iter()
            .filter(|(_, object)| object.arena == arena)
            .map(|(at, object)| (object.address, at))
            .collect();
        found.sort_unstable();
        found.into_iter().map(|(_, at)| at).collect()
    }

    /// The number of a thread's stack, which is emitted if it is new.
    pub(crate) fn trace_of(&mut self, thread: usize) -> TraceId {
        let stack: Vec<_> = self.threads[thread].stack.iter().rev().copied().collect();
        if stack.is_empty() {
            return TraceId::EMPTY;
        }
        if let Some(id) = self.traces.get(&stack) {
            return *id;
        }
        let id = TraceId(self.traces.len() as u32 + 1);
        self.traces.insert(stack.clone(), id);
        // Threads share a trace, so it states no thread.
        let trace = CallTrace {
            env: EnvId(0),
            frames: stack,
        };
        self.emit_item(self.threads[thread].env, &Item::Trace { id, trace });
        id
    }

    pub(crate) fn method_class(&self, method: JMethodId) -> Option<ClassIdx> {
        let at = usize::try_from(method.0).ok()?.checked_sub(1)?;
        self.methods.get(at).copied()
    }
}
