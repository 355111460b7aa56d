//! The classes, threads and stacks of the registry that were reported in the stream.

use jvmti::sys::MethodPtr;
use jvmti::{Env, FrameRow, Jni, Live, Object};
use rustc_hash::{FxHashMap, FxHashSet};
use vmpi::wire::Item;
use vmpi::{
    BasicType, Body, CallFrame, CallTrace, ClassId, ClassLoad, EnvId, FieldDef, FieldInfo, Frame,
    JMethodId, Location, MethodDef, ObjectHandle, ThreadId, ThreadStart, Trace, TraceId, Worth,
};

use super::components::Components;
use crate::heap::field_layout::declared_fields;
use crate::vm::registry::Registry;

/// Ids of classes, which do not move, are above all addresses.
pub(crate) const CLASS_IDS: u64 = 1 << 62;

/// Memory of a class: its row in a table that may be half empty.
const CLASS: u64 = 2 * size_of::<(ClassId, Class)>() as u64;
/// Memory of the number of a stack.
const STACK: u64 = 2 * size_of::<TraceId>() as u64;

/// The fields of allocation events for instances of a class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// `class` of an [`ObjectAlloc`](vmpi::ObjectAlloc): of an array of references that of its
    /// elements.
    pub(crate) class: ObjectHandle,
    pub(crate) array: Option<BasicType>,
}

impl Known {
    const NOTHING: Self = Self {
        class: ObjectHandle::NULL,
        array: None,
    };
}

/// Whether the stream has the CLASS_LOAD of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Definition {
    Missing,
    /// It has one from before the VM knew its fields.
    WithoutFields,
    Whole,
}

/// A class whose instances were reported.
#[derive(Clone, Copy, Debug)]
struct Class {
    known: Known,
    definition: Definition,
}

/// What has been reported. It is a part of the state, like the registry, so that no thread uses a name before it is
/// reported.
#[derive(Default)]
pub(crate) struct Names {
    classes: FxHashMap<ClassId, Class>,
    /// Threads whose start was reported and whose end was not.
    threads: FxHashSet<ThreadId>,
    traces: FxHashSet<TraceId>,
}

/// Looks up names, and reports new ones.
pub(crate) struct Namer<'a> {
    pub(crate) env: Env<Live>,
    pub(crate) jni: Jni,
    pub(crate) registry: &'a mut Registry,
    pub(crate) names: &'a mut Names,
    pub(super) components: &'a Components,
    /// Takes definitions.
    pub(crate) emit: &'a mut dyn FnMut(EnvId, Item),
}

/// The id of a class in the stream.
pub(super) fn id_of(class: ClassId) -> ObjectHandle {
    ObjectHandle(CLASS_IDS | u64::from(class.0))
}

/// What the stream calls a thread.
pub(super) fn env_of(thread: ThreadId) -> EnvId {
    EnvId(u64::from(thread.0))
}

impl Names {
    /// Whether what the stream says of a class has no fields because they were not known yet.
    pub(super) fn has_no_fields(&self, class: ClassId) -> bool {
        self.definition(class) == Definition::WithoutFields
    }

    fn definition(&self, class: ClassId) -> Definition {
        let class = self.classes.get(&class);
        class.map_or(Definition::Missing, |class| class.definition)
    }

    /// All classes, in no order.
    pub(super) fn all(&self) -> impl Iterator<Item = (ClassId, Known)> {
        let all = self.classes.iter();
        all.map(|(class, row)| (*class, row.known))
    }

    /// Whether the stream knows a class.
    pub(super) fn knows(&self, class: ClassId) -> bool {
        self.classes.contains_key(&class)
    }

    /// The class that was reported with this id.
    pub(super) fn class_of(&self, id: ObjectHandle) -> Option<ClassId> {
        let number = u32::try_from(id.0.checked_sub(CLASS_IDS)?).ok()?;
        let class = ClassId(number);
        (self.definition(class) != Definition::Missing).then_some(class)
    }

    /// A class was unloaded; returns whether it was reported.
    pub(super) fn class_gone(&mut self, registry: &Registry, class: ClassId) -> bool {
        let row = self.classes.remove(&class);
        if row.is_some() {
            registry.memory.native.give(Worth::Names, CLASS);
        }
        row.is_some()
    }

    /// A thread has ended; returns whether it was reported.
    pub(super) fn thread_gone(&mut self, thread: ThreadId) -> bool {
        self.threads.remove(&thread)
    }

    /// Stacks are reported again, because their frames have other lines or their numbers are no longer used.
    pub(crate) fn forget_traces(&mut self, registry: &Registry) {
        let memory = STACK * self.traces.len() as u64;
        registry.memory.native.give(Worth::Stacks, memory);
        self.traces.clear();
    }
}

impl Namer<'_> {
    /// The data of a class; a new class is reported first. None for a new class when the memory limit is reached.
    pub(super) fn class(&mut self, mirror: Object) -> Known {
        let class = self.number(mirror);
        let class = class.and_then(|class| self.names.classes.get(&class));
        class.map_or(Known::NOTHING, |class| class.known)
    }

    /// The number of a class whose instances can be reported from now on.
    fn number(&mut self, mirror: Object) -> Option<ClassId> {
        let class = self.registry.registered_class(self.env, self.jni, mirror);
        if self.names.classes.contains_key(&class) {
            return Some(class);
        }
        // There is no entry without memory for one, and none when the recording has just ended.
        let signature = self.registry.classes.get(class.0)?.info.signature.clone();
        if !self.registry.memory.native.take(Worth::Names, CLASS) {
            return None;
        }
        let new = Class {
            known: Known::NOTHING,
            definition: Definition::Missing,
        };
        self.names.classes.insert(class, new);
        let array = match signature.strip_prefix('[') {
            Some(element) => BasicType::from_descriptor(element),
            None => None,
        };
        let of = match array {
            None => {
                self.define((class, &signature), mirror, false);
                id_of(class)
            }
            Some(BasicType::Object) => {
                let component = self.component_of(mirror);
                let named = component.and_then(|component| {
                    let named = self.named(component, false);
                    self.jni.delete_local(component);
                    named
                });
                named.map_or(ObjectHandle::NULL, id_of)
            }
            Some(_) => ObjectHandle::NULL,
        };
        if let Some(row) = self.names.classes.get_mut(&class) {
            row.known = Known { class: of, array };
        }
        Some(class)
    }

    /// The number of a class that is reported under its own id, also of an array class, with its fields if the VM knows
    /// them now; it is reported again if it was reported without fields.
    pub(super) fn named(&mut self, mirror: Object, is_asked: bool) -> Option<ClassId> {
        let class = self.number(mirror)?;
        if self.names.definition(class) != Definition::Whole {
            let signature = self.registry.classes.get(class.0)?.info.signature.clone();
            self.define((class, &signature), mirror, is_asked);
        }
        Some(class)
    }

    /// Reports a class, unless it was reported with everything that is known now.
    fn define(&mut self, (class, signature): (ClassId, &str), mirror: Object, requested: bool) {
        const PREPARED: i32 = 2;
        let is_whole = signature.starts_with('[')
            || self.env.class_status(mirror).unwrap_or(0) & PREPARED != 0;
        let definition = match is_whole {
            true => Definition::Whole,
            false => Definition::WithoutFields,
        };
        let Some(row) = self.names.classes.get_mut(&class) else {
            return;
        };
        if std::mem::replace(&mut row.definition, definition) != definition {
            let load = describe(self.env, mirror, id_of(class), signature);
            let body = Body::ClassLoad(Box::new(load));
            (self.emit)(EnvId(0), Item::Event { requested, body });
        }
    }

    fn component_of(&self, mirror: Object) -> Option<Object> {
        match self.components {
            Components::Field(field) => self.jni.get_object(mirror, *field),
            Components::Known(known) => {
                let mut known = known.iter();
                let found = known.find(|(array, _)| self.jni.is_same(*array, mirror));
                self.jni.new_local(found?.1)
            }
        }
    }

    /// The class object of a class, unless it was unloaded.
    pub(super) fn mirror_of(&self, class: ClassId) -> Option<Object> {
        let entry = self.registry.classes.get(class.0)?;
        self.jni.new_local(entry.mirror?)
    }

    /// The definition of a class that was reported, unless it was unloaded.
    pub(super) fn load_of(&self, id: ObjectHandle) -> Option<ClassLoad> {
        let class = self.names.class_of(id)?;
        let mirror = self.mirror_of(class)?;
        let signature = &self.registry.classes.get(class.0)?.info.signature;
        Some(describe(self.env, mirror, id, signature))
    }

    /// The stack of the current thread in frames, whose classes are reported first if they are new.
    pub(super) fn frames(&mut self, rows: &[FrameRow]) -> Vec<CallFrame> {
        let frames = self.registry.stack(self.env, self.jni, rows, rows.len());
        frames.iter().map(|frame| self.frame(*frame)).collect()
    }

    fn frame(&mut self, frame: Frame) -> CallFrame {
        const UNKNOWN: i32 = -1;
        const NATIVE: i32 = -3;
        let Some(method) = self.registry.methods.get(frame.method.0) else {
            let method = JMethodId(0);
            let line = UNKNOWN;
            return CallFrame { line, method };
        };
        let line = match frame.location {
            Location::Bytecode(at) => {
                let after = method.lines.partition_point(|line| line.start <= at);
                let line = after.checked_sub(1).and_then(|at| method.lines.get(at));
                line.map_or(UNKNOWN, |line| line.line as i32)
            }
            _ => NATIVE,
        };
        let id = JMethodId(method.ptr.map_or(0, |ptr| ptr.0 as u64));
        let class = method.info.class;
        if self.names.definition(class) == Definition::Missing
            && let Some(mirror) = self.mirror_of(class)
        {
            self.class(mirror);
            self.jni.delete_local(mirror);
        }
        CallFrame { line, method: id }
    }

    /// The number of a stack, which is reported first if it is new; the empty stack if the memory limit is reached.
    pub(super) fn trace(&mut self, rows: &[FrameRow]) -> TraceId {
        let frames = self.registry.stack(self.env, self.jni, rows, rows.len());
        // Stacks are shared by threads.
        let thread = ThreadId::NONE;
        let id = self.registry.trace(Trace { thread, frames });
        let Some(trace) = self.registry.traces.get(id.0).cloned() else {
            return TraceId::EMPTY;
        };
        if !self.names.traces.contains(&id) {
            if !self.registry.memory.native.take(Worth::Stacks, STACK) {
                return TraceId::EMPTY;
            }
            let frames = trace.frames.iter().map(|frame| self.frame(*frame));
            let trace = CallTrace {
                env: EnvId(0),
                frames: frames.collect(),
            };
            self.names.traces.insert(id);
            (self.emit)(EnvId(0), Item::Trace { id, trace });
        }
        id
    }

    /// What the stream calls the current thread, which is reported first if it is new. Virtual threads of one name are one.
    pub(super) fn current_thread(&mut self) -> EnvId {
        let thread = self.registry.maker(self.env);
        self.thread(thread)
    }

    /// The same of a live platform thread; `None` if its end was reported.
    pub(super) fn platform_thread(&mut self, thread: Object) -> Option<EnvId> {
        let id = self.registry.thread(self.env, Some(thread), false);
        if id == ThreadId::NONE || self.registry.has_ended(id) {
            return None;
        }
        Some(self.thread(id))
    }

    fn thread(&mut self, thread: ThreadId) -> EnvId {
        let env = env_of(thread);
        if thread != ThreadId::NONE && self.names.threads.insert(thread) {
            let body = self.start_of(thread, ObjectHandle::NULL);
            (self.emit)(env, Item::event(body));
        }
        env
    }

    /// The start of a thread whose object has this id.
    pub(super) fn start_of(&self, thread: ThreadId, object: ObjectHandle) -> Body {
        let info = self.registry.thread_info(thread).cloned();
        let info = info.unwrap_or_default();
        Body::ThreadStart(Box::new(ThreadStart {
            env: env_of(thread),
            object,
            name: info.name,
            group: info.group,
            parent: info.parent_group,
        }))
    }
}

fn describe(env: Env<Live>, mirror: Object, class: ObjectHandle, signature: &str) -> ClassLoad {
    let method = |method: MethodPtr| {
        let (name, signature) = env.method_name(method).ok()?;
        let lines = env.line_numbers(method).unwrap_or_default();
        let lines = lines.iter().map(|(_, line)| *line as i32);
        Some(MethodDef {
            name,
            signature,
            start_line: lines.clone().min().unwrap_or(-1),
            end_line: lines.max().unwrap_or(-1),
            method: JMethodId(method.0 as u64),
        })
    };
    let methods = env.class_methods(mirror).unwrap_or_default();
    let fields = declared_fields(env, mirror).unwrap_or_default();
    let (statics, instances): (Vec<FieldInfo>, _) =
        fields.into_iter().partition(|field| field.is_static);
    let defined = |field: FieldInfo| FieldDef {
        name: field.name,
        signature: field.descriptor,
    };
    ClassLoad {
        class,
        name: vmpi::info::java_name(signature),
        source: env.source_file(mirror).unwrap_or_default(),
        interfaces: env
            .class_interfaces(mirror)
            .map_or(0, |list| list.len() as u32),
        methods: methods.into_iter().filter_map(method).collect(),
        statics: statics.into_iter().map(defined).collect(),
        instances: instances.into_iter().map(defined).collect(),
    }
}
