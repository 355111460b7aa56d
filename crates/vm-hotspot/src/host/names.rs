//! Classes and stacks that the stream has been told of.

use jvmti::sys::MethodPtr;
use jvmti::{Env, FrameRow, Jni, Live, Object};
use rustc_hash::FxHashMap;
use vmpi::wire::Item;
use vmpi::{
    BasicType, Body, CallFrame, CallTrace, ClassLoad, EnvId, JMethodId, MethodDef, ObjectHandle,
    TraceId,
};

/// Above all addresses: ids of classes, which do not move.
pub(crate) const CLASS_IDS: u64 = 1 << 62;

/// A class that was told of: what allocations of it say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// `class` of an [`ObjectAlloc`](vmpi::ObjectAlloc).
    pub(crate) class: ObjectHandle,
    pub(crate) array: Option<BasicType>,
}

/// What has been told.
#[derive(Default)]
pub(crate) struct Names {
    classes: Vec<Known>,
    traces: FxHashMap<Box<[FrameRow]>, TraceId>,
    /// Source lines of frames whose class was told.
    lines: FxHashMap<FrameRow, i32>,
    last_trace: u32,
}

impl Names {
    /// What is known of a class; told first if it is new. `tell` takes definitions.
    pub(crate) fn class(
        &mut self,
        env: Env<Live>,
        mirror: Object,
        tell: &mut dyn FnMut(Item),
    ) -> Known {
        let nothing = Known {
            class: ObjectHandle::NULL,
            array: None,
        };
        let tag = env.tag(mirror).unwrap_or(0);
        if let Some(known) = (tag as usize)
            .checked_sub(1)
            .and_then(|at| self.classes.get(at))
        {
            return *known;
        }
        let Ok(signature) = env.class_signature(mirror) else {
            return nothing;
        };
        let dims = signature.bytes().take_while(|byte| *byte == b'[').count();
        let element = BasicType::from_descriptor(&signature[dims..]);
        // Arrays of objects are named by their elements. The stream is told of an
        // element class for each array class: the real one may be of no interest yet.
        let array = match (dims, element) {
            (0, _) => None,
            (1, element) => element,
            _ => Some(BasicType::Object),
        };
        self.classes.push(nothing);
        let number = self.classes.len();
        let id = ObjectHandle(CLASS_IDS | number as u64);
        let is_primitive_array = array.is_some_and(|element| element != BasicType::Object);
        let known = Known {
            class: if is_primitive_array {
                ObjectHandle::NULL
            } else {
                id
            },
            array,
        };
        self.classes[number - 1] = known;
        let _ = env.set_tag(mirror, number as i64);
        if !is_primitive_array {
            let named = if array.is_some() {
                &signature[1..]
            } else {
                &signature
            };
            let load = describe(env, mirror, id, named);
            tell(Item::event(Body::ClassLoad(Box::new(load))));
        }
        known
    }

    /// The definition of a class that was told of, unless it was unloaded.
    pub(crate) fn load_of(&self, env: Env<Live>, class: ObjectHandle) -> Option<ClassLoad> {
        let number = class.0.checked_sub(CLASS_IDS)?;
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        let known = self.classes.get(at).filter(|known| known.class == class)?;
        let found = env.objects_with_tags(&[number.cast_signed()]).ok()?;
        let (mirror, _) = *found.first()?;
        let signature = env.class_signature(mirror).ok()?;
        let named = &signature[usize::from(known.array.is_some())..];
        Some(describe(env, mirror, class, named))
    }

    /// The number of a stack; told first if it is new.
    pub(crate) fn trace(
        &mut self,
        env: Env<Live>,
        jni: Jni,
        rows: &[FrameRow],
        tell: &mut dyn FnMut(Item),
    ) -> TraceId {
        if rows.is_empty() {
            return TraceId::EMPTY;
        }
        if let Some(id) = self.traces.get(rows) {
            return *id;
        }
        let mut frame = |row: &FrameRow| CallFrame {
            line: self.line(env, jni, row, tell),
            method: JMethodId(row.method.0 as u64),
        };
        let frames = rows.iter().map(&mut frame).collect();
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
        env: Env<Live>,
        jni: Jni,
        row: &FrameRow,
        tell: &mut dyn FnMut(Item),
    ) -> i32 {
        if let Some(line) = self.lines.get(row) {
            return *line;
        }
        if let Ok(Some(mirror)) = env.method_class(row.method) {
            self.class(env, mirror, tell);
            jni.delete_local(mirror);
        }
        let line = line(env, row);
        self.lines.insert(*row, line);
        line
    }

    /// A class was unloaded: ids of its methods may be given to others.
    pub(crate) fn forget_traces(&mut self) {
        self.traces.clear();
        self.lines.clear();
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
    ClassLoad {
        class,
        name: vmpi::info::java_name(signature),
        source: env.source_file(mirror).unwrap_or_default(),
        interfaces: env
            .class_interfaces(mirror)
            .map_or(0, |list| list.len() as u32),
        methods: methods.into_iter().filter_map(method).collect(),
        statics: Vec::new(),
        instances: Vec::new(),
    }
}
