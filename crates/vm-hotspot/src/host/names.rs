//! Classes, threads and stacks that were reported to the stream.

use std::sync::Arc;

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
/// Memory of a class: its row in a table that may be half empty, and the VM's entry for its tag.
const CLASS: u64 = 2 * size_of::<(usize, Class)>() as u64 + 64;

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

/// What has been reported.
pub(crate) struct Names {
    /// Those that have not been unloaded, by number.
    classes: FxHashMap<usize, Class>,
    /// Numbers given so far; none is given twice.
    last_class: usize,
    component: Option<Component>,
    /// Threads whose start was reported and whose end was not.
    pub(super) threads: FxHashSet<EnvId>,
    traces: FxHashMap<Box<[FrameRow]>, TraceId>,
    /// Source lines of frames whose class was reported.
    lines: FxHashMap<FrameRow, i32>,
    last_trace: u32,
    memory: Arc<Budget>,
    /// Memory of the stacks that was taken from the limit.
    taken: u64,
}

/// The id of the class with a number.
pub(super) fn id_of(number: usize) -> ObjectHandle {
    ObjectHandle(CLASS_IDS | number as u64)
}

impl Names {
    /// None. Their tables are charged to this limit.
    pub(super) fn new(memory: &Arc<Budget>) -> Self {
        Self {
            classes: FxHashMap::default(),
            last_class: 0,
            component: None,
            threads: FxHashSet::default(),
            traces: FxHashMap::default(),
            lines: FxHashMap::default(),
            last_trace: 0,
            memory: Arc::clone(memory),
            taken: 0,
        }
    }

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

    /// What is known of a class; a new one is reported first. `tell` takes definitions. Nothing is known of a new class
    /// when the memory limit is reached.
    pub(crate) fn class(
        &mut self,
        (env, jni): (Env<Live>, Jni),
        mirror: Object,
        tell: &mut dyn FnMut(Item),
    ) -> Known {
        let number = self.number((env, jni), mirror, tell);
        let class = number.and_then(|number| self.classes.get(&number));
        class.map_or(Known::NOTHING, |class| class.known)
    }

    /// The number of a class whose instances can be reported from now on.
    fn number(
        &mut self,
        (env, jni): (Env<Live>, Jni),
        mirror: Object,
        tell: &mut dyn FnMut(Item),
    ) -> Option<usize> {
        let tag = usize::try_from(env.tag(mirror).unwrap_or(0)).unwrap_or(0);
        if self.classes.contains_key(&tag) {
            return Some(tag);
        }
        let signature = env.class_signature(mirror).ok()?;
        let number = self.add()?;
        let array = match signature.strip_prefix('[') {
            Some(element) => BasicType::from_descriptor(element),
            None => None,
        };
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
        if let Some(row) = self.classes.get_mut(&number) {
            row.known = Known { class, array };
        }
        Some(number)
    }

    /// A number for another class; `None` if the memory limit is reached.
    fn add(&mut self) -> Option<usize> {
        if !self.memory.take(Worth::Names, CLASS) {
            return None;
        }
        self.last_class += 1;
        let class = Class {
            known: Known::NOTHING,
            told: Told::No,
        };
        self.classes.insert(self.last_class, class);
        Some(self.last_class)
    }

    /// The number of a class that is reported under its own id, arrays included, with its fields if
    /// the VM knows them by now; reported again, if it was reported without.
    pub(super) fn named(
        &mut self,
        (env, jni): (Env<Live>, Jni),
        mirror: Object,
        is_asked: bool,
        tell: &mut dyn FnMut(Item),
    ) -> Option<usize> {
        let number = self.number((env, jni), mirror, tell)?;
        if self.told(number) != Told::Whole {
            let signature = env.class_signature(mirror).ok()?;
            self.tell((env, number), mirror, &signature, is_asked, tell);
        }
        Some(number)
    }

    /// Reports a class, unless that was done and nothing has come to be known since.
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
        let Some(class) = self.classes.get_mut(&number) else {
            return;
        };
        if std::mem::replace(&mut class.told, told) != told {
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
        self.told(number) == Told::Bare
    }

    fn told(&self, number: usize) -> Told {
        self.classes
            .get(&number)
            .map_or(Told::No, |class| class.told)
    }

    /// All classes by number, in no order.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, Known)> {
        let all = self.classes.iter();
        all.map(|(number, class)| (*number, class.known))
    }

    /// The number and the class object of a class that was reported, unless it was unloaded.
    pub(super) fn mirror_of(&self, env: Env<Live>, class: ObjectHandle) -> Option<(usize, Object)> {
        let number = usize::try_from(class.0.checked_sub(CLASS_IDS)?).ok()?;
        if self.told(number) == Told::No {
            return None;
        }
        let found = env.objects_with_tags(&[number as i64]).ok()?;
        Some((number, found.first()?.0))
    }

    /// The definition of a class that was reported, unless it was unloaded.
    pub(crate) fn load_of(&self, env: Env<Live>, class: ObjectHandle) -> Option<ClassLoad> {
        let (_, mirror) = self.mirror_of(env, class)?;
        let signature = env.class_signature(mirror).ok()?;
        Some(describe(env, mirror, class, &signature))
    }

    /// A frame, whose class is reported first if it is new.
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
        tell: &mut dyn FnMut(Item),
    ) -> TraceId {
        if rows.is_empty() {
            return TraceId::EMPTY;
        }
        if let Some(id) = self.traces.get(rows) {
            return *id;
        }
        let cost = STACK + FRAME * rows.len() as u64;
        if !self.memory.take(Worth::Stacks, cost) {
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

    /// The source line of a frame, whose class is reported first if it is new.
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

    /// The class with a number was unloaded: ids of its methods may be given to others.
    pub(super) fn class_gone(&mut self, number: usize) {
        if self.classes.remove(&number).is_some() {
            self.memory.give(Worth::Names, CLASS);
        }
        self.forget_traces();
    }

    /// Methods have changed.
    pub(crate) fn forget_traces(&mut self) {
        self.traces.clear();
        self.lines.clear();
        self.memory
            .give(Worth::Stacks, std::mem::take(&mut self.taken));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_classes_are_charged_until_they_are_unloaded_and_given_once() {
        let memory = Arc::new(Budget::new(Budget::LEAST));
        let mut names = Names::new(&memory);
        let all: Vec<usize> = std::iter::from_fn(|| names.add()).collect();
        let most = (Budget::LEAST / CLASS) as usize;
        assert!((most / 2..most).contains(&all.len()), "{}", all.len());
        assert_eq!(memory.used(), CLASS * all.len() as u64);
        // A new class is unknown, and one that is unloaded makes room for another.
        names.class_gone(7);
        names.class_gone(7);
        assert_eq!(names.add(), Some(all.len() + 1));
        assert_eq!(names.add(), None);
        assert_eq!(names.all().filter(|(number, _)| *number == 7).count(), 0);
        for number in 1..=all.len() + 1 {
            names.class_gone(number);
        }
        assert_eq!(memory.used(), 0);
    }
}
