//! Classes, threads and stacks that the stream has been told of.

use jvmti::sys::{FieldPtr, MethodPtr};
use jvmti::{Env, FrameRow, Jni, Live, Object};
use rustc_hash::{FxHashMap, FxHashSet};
use vmpi::wire::Item;
use vmpi::{
    BasicType, Body, Budget, CallFrame, CallTrace, ClassLoad, EnvId, FieldDef, FieldInfo,
    JMethodId, MethodDef, ObjectHandle, TraceId, Worth,
};

use crate::heap::field_layout::declared_fields;

/// Above all addresses: ids of classes, which do not move.
pub(crate) const CLASS_IDS: u64 = 1 << 62;

/// Memory of a stack: its row in a table that may be half empty, and the allocation for its frames.
const STACK: u64 = 96;
/// Memory of a frame: in its stack, and in the table of lines.
const FRAME: u64 = 16 + 64;

/// What allocations say of instances of a class.
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
enum Told {
    No,
    /// Before the VM knew its fields.
    Bare,
    Whole,
}

/// A class that has a number, which is its tag.
#[derive(Clone, Copy, Debug)]
struct Class {
    known: Known,
    told: Told,
}

/// How to ask the class of an array for that of its elements.
#[derive(Clone, Copy, Debug)]
enum Component {
    Field(FieldPtr),
    /// Before JDK 9; native code of the VM.
    Method(MethodPtr),
}

/// What has been told.
#[derive(Default)]
pub(crate) struct Names {
    classes: Vec<Class>,
    component: Option<Component>,
    /// Threads whose start was told and whose end was not.
    pub(super) threads: FxHashSet<EnvId>,
    traces: FxHashMap<Box<[FrameRow]>, TraceId>,
    /// Source lines of frames whose class was told.
    lines: FxHashMap<FrameRow, i32>,
    last_trace: u32,
    /// Memory of the stacks that was taken from the limit.
    taken: u64,
}

/// The id of the class with a number.
pub(super) fn id_of(number: usize) -> ObjectHandle {
    ObjectHandle(CLASS_IDS | number as u64)
}

impl Names {
    /// Looks up what is asked of array classes.
    pub(super) fn begin(&mut self, jni: Jni) -> jvmti::Result<()> {
        let class = jni.find_class("java/lang/Class")?;
        let field = jni.field(class, "componentType", "Ljava/lang/Class;");
        self.component = Some(match field {
            Ok(field) => Component::Field(field),
            Err(_) => {
                let method = jni.method(class, "getComponentType", "()Ljava/lang/Class;")?;
                Component::Method(method)
            }
        });
        Ok(())
    }

    /// What is known of a class; it is told first if it is new. `tell` takes definitions.
    pub(crate) fn class(
        &mut self,
        (env, jni): (Env<Live>, Jni),
        mirror: Object,
        tell: &mut dyn FnMut(Item),
    ) -> Known {
        let number = self.number((env, jni), mirror, tell);
        number.map_or(Known::NOTHING, |number| self.classes[number - 1].known)
    }

    /// The number of a class whose instances can be told of from now on.
    fn number(
        &mut self,
        (env, jni): (Env<Live>, Jni),
        mirror: Object,
        tell: &mut dyn FnMut(Item),
    ) -> Option<usize> {
        let tag = usize::try_from(env.tag(mirror).unwrap_or(0)).unwrap_or(0);
        if tag > 0 && tag <= self.classes.len() {
            return Some(tag);
        }
        let signature = env.class_signature(mirror).ok()?;
        let array = match signature.strip_prefix('[') {
            Some(element) => BasicType::from_descriptor(element),
            None => None,
        };
        self.classes.push(Class {
            known: Known::NOTHING,
            told: Told::No,
        });
        let number = self.classes.len();
        let _ = env.set_tag(mirror, number as i64);
        let class = match array {
            None => {
                self.tell((env, number), mirror, &signature, false, tell);
                id_of(number)
            }
            Some(BasicType::Object) => {
                let component = self.component_of(jni, mirror);
                let named = component.and_then(|component| {
                    let named = self.named((env, jni), component, false, tell);
                    jni.delete_local(component);
                    named
                });
                named.map_or(ObjectHandle::NULL, id_of)
            }
            Some(_) => ObjectHandle::NULL,
        };
        self.classes[number - 1].known = Known { class, array };
        Some(number)
    }

    /// The number of a class that is told under its own id, arrays included, with its fields if
    /// the VM knows them by now; told again, if it was told without.
    pub(super) fn named(
        &mut self,
        (env, jni): (Env<Live>, Jni),
        mirror: Object,
        is_asked: bool,
        tell: &mut dyn FnMut(Item),
    ) -> Option<usize> {
        let number = self.number((env, jni), mirror, tell)?;
        if self.classes[number - 1].told != Told::Whole {
            let signature = env.class_signature(mirror).ok()?;
            self.tell((env, number), mirror, &signature, is_asked, tell);
        }
        Some(number)
    }

    /// Tells a class, unless that was done and nothing has come to be known since.
    fn tell(
        &mut self,
        (env, number): (Env<Live>, usize),
        mirror: Object,
        signature: &str,
        requested: bool,
        tell: &mut dyn FnMut(Item),
    ) {
        const PREPARED: i32 = 2;
        let is_whole =
            signature.starts_with('[') || env.class_status(mirror).unwrap_or(0) & PREPARED != 0;
        let told = if is_whole { Told::Whole } else { Told::Bare };
        if std::mem::replace(&mut self.classes[number - 1].told, told) != told {
            let load = describe(env, mirror, id_of(number), signature);
            let body = Body::ClassLoad(Box::new(load));
            tell(Item::Event { requested, body });
        }
    }

    fn component_of(&self, jni: Jni, mirror: Object) -> Option<Object> {
        match self.component? {
            Component::Field(field) => jni.get_object(mirror, field),
            Component::Method(method) => jni.call_object(mirror, method, &[]).ok()?,
        }
    }

    /// Whether what the stream says of a class has no fields because they were not known yet.
    pub(super) fn is_bare(&self, number: usize) -> bool {
        let class = number.checked_sub(1).and_then(|at| self.classes.get(at));
        class.is_some_and(|class| class.told == Told::Bare)
    }

    /// All classes by number, from 1.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, Known)> {
        let known = self.classes.iter().map(|class| class.known);
        (1..).zip(known)
    }

    /// The number and the class object of a class that was told of, unless it was unloaded.
    pub(super) fn mirror_of(&self, env: Env<Live>, class: ObjectHandle) -> Option<(usize, Object)> {
        let number = usize::try_from(class.0.checked_sub(CLASS_IDS)?).ok()?;
        let known = self.classes.get(number.checked_sub(1)?)?;
        if known.told == Told::No {
            return None;
        }
        let found = env.objects_with_tags(&[number as i64]).ok()?;
        Some((number, found.first()?.0))
    }

    /// The definition of a class that was told of, unless it was unloaded.
    pub(crate) fn load_of(&self, env: Env<Live>, class: ObjectHandle) -> Option<ClassLoad> {
        let (_, mirror) = self.mirror_of(env, class)?;
        let signature = env.class_signature(mirror).ok()?;
        Some(describe(env, mirror, class, &signature))
    }

    /// A frame, whose class is told first if it is new.
    pub(super) fn frame(
        &mut self,
        (env, jni): (Env<Live>, Jni),
        row: &FrameRow,
        tell: &mut dyn FnMut(Item),
    ) -> CallFrame {
        let line = self.line((env, jni), row, tell);
        CallFrame {
            line,
            method: JMethodId(row.method.0 as u64),
        }
    }

    /// The number of a stack, which is recorded first if it is new; the empty stack if the memory limit is reached.
    pub(crate) fn trace(
        &mut self,
        (env, jni): (Env<Live>, Jni),
        rows: &[FrameRow],
        memory: &Budget,
        tell: &mut dyn FnMut(Item),
    ) -> TraceId {
        if rows.is_empty() {
            return TraceId::EMPTY;
        }
        if let Some(id) = self.traces.get(rows) {
            return *id;
        }
        let cost = STACK + FRAME * rows.len() as u64;
        if !memory.take(Worth::Stacks, cost) {
            return TraceId::EMPTY;
        }
        self.taken += cost;
        let frame = |row| self.frame((env, jni), row, tell);
        let frames = rows.iter().map(frame).collect();
        self.last_trace += 1;
        let id = TraceId(self.last_trace);
        self.traces.insert(rows.into(), id);
        // Stacks are shared by threads.
        let trace = CallTrace {
            env: EnvId(0),
            frames,
        };
        tell(Item::Trace { id, trace });
        id
    }

    /// The source line of a frame, whose class is told first if it is new.
    fn line(
        &mut self,
        (env, jni): (Env<Live>, Jni),
        row: &FrameRow,
        tell: &mut dyn FnMut(Item),
    ) -> i32 {
        if let Some(line) = self.lines.get(row) {
            return *line;
        }
        if let Ok(Some(mirror)) = env.method_class(row.method) {
            self.class((env, jni), mirror, tell);
            jni.delete_local(mirror);
        }
        let line = line(env, row);
        self.lines.insert(*row, line);
        line
    }

    /// A class was unloaded: ids of its methods may be given to others.
    pub(crate) fn forget_traces(&mut self, memory: &Budget) {
        self.traces.clear();
        self.lines.clear();
        memory.give(Worth::Stacks, std::mem::take(&mut self.taken));
    }
}

/// The source line of a frame as the vocabulary has it.
fn line(env: Env<Live>, row: &FrameRow) -> i32 {
    const UNKNOWN: i32 = -1;
    const NATIVE: i32 = -3;
    let Ok(at) = u32::try_from(row.location) else {
        return NATIVE;
    };
    let mut lines = env.line_numbers(row.method).unwrap_or_default();
    lines.sort_unstable();
    let after = lines.partition_point(|(start, _)| *start <= at);
    let found = after.checked_sub(1).and_then(|at| lines.get(at));
    found.map_or(UNKNOWN, |(_, line)| *line as i32)
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
