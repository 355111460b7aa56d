//! Classes, methods, traces and threads that are known so far. A name is read from the VM when it is first printed, and
//! only once.

use crate::ids::{thread_serial, trace_serial};
use hprof::Serial;
use hprof_text::TextLine;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use vmpi::{
    ClassId, ClassInfo, Frame, LineEntry, Location, MethodId, ObjectHandle, ThreadId, TraceId, Vm,
};

/// A class as it is printed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Class {
    /// `Ljava/lang/String;`.
    pub(crate) signature: Arc<str>,
    /// `java.lang.String`, `int[]`.
    pub(crate) name: Arc<str>,
    /// Source file.
    pub(crate) source: Option<Arc<str>>,
    /// The class itself.
    pub(crate) info: ClassInfo,
    /// The stack that loaded it.
    pub(crate) trace: TraceId,
}

/// A frame as it is printed.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedFrame {
    /// Number of the frame, from 0.
    pub(crate) index: u32,
    /// Its class.
    pub(crate) class: ClassId,
    /// Class name.
    pub(crate) class_name: Arc<str>,
    /// Method name.
    pub(crate) method: Arc<str>,
    /// Method descriptor.
    pub(crate) signature: Arc<str>,
    /// Source file.
    pub(crate) source: Option<Arc<str>>,
    /// Line, native mark or neither.
    pub(crate) line: TextLine,
}

/// A trace as it is printed.
#[derive(Clone, Debug)]
pub(crate) struct ResolvedTrace {
    /// Its serial.
    pub(crate) serial: Serial,
    /// Its thread, with `thread=y`.
    pub(crate) thread: Option<Serial>,
    /// Innermost first.
    pub(crate) frames: Vec<Arc<ResolvedFrame>>,
}

/// The state of a thread in the output.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Thread {
    pub(crate) announced: bool,
    pub(crate) ended: bool,
    /// The output attributes a trace to this thread.
    is_named: bool,
}

impl Thread {
    /// Whether what follows in the output may refer to it.
    pub(crate) fn is_wanted(self) -> bool {
        self.announced && (self.is_named || !self.ended)
    }
}

/// The most ended threads that are remembered although no trace names them.
const MOST_ENDED: usize = 1024;

/// Everything that was defined so far.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    /// `lineno`: frames carry line numbers.
    line_numbers: bool,
    /// Mark native frames (the original never did).
    mark_native: bool,
    /// Live threads, ended threads that a trace names, and the threads that ended last, which MONITOR DUMP lists.
    pub(crate) threads: BTreeMap<ThreadId, Thread>,
    ended: VecDeque<ThreadId>,
    /// With `thread=y`, the thread to which the output attributes the empty trace: main.
    pub(crate) owner_of_empty: Option<ThreadId>,
    classes: FxHashMap<ClassId, Arc<Class>>,
    mirrors: FxHashMap<ObjectHandle, ClassId>,
    methods: FxHashMap<MethodId, (ClassId, Arc<str>, Arc<str>)>,
    lines: FxHashMap<MethodId, Vec<LineEntry>>,
    frames: FxHashMap<Frame, Arc<ResolvedFrame>>,
    traces: Vec<Option<vmpi::Trace>>,
}

impl Catalog {
    /// An empty catalog with or without line numbers and native marks.
    pub(crate) fn new(line_numbers: bool, mark_native: bool) -> Catalog {
        Catalog {
            line_numbers,
            mark_native,
            ..Catalog::default()
        }
    }

    /// A class was loaded.
    pub(crate) fn define_class(&mut self, id: ClassId, info: &ClassInfo, trace: TraceId) {
        self.mirrors.insert(info.mirror, id);
        self.classes
            .insert(id, Arc::new(new_class(info.clone(), trace)));
    }

    /// A class was unloaded, and nothing refers to it.
    pub(crate) fn forget_class(&mut self, id: ClassId) {
        if let Some(class) = self.classes.remove(&id)
            && self.mirrors.get(&class.info.mirror) == Some(&id)
        {
            self.mirrors.remove(&class.info.mirror);
        }
    }

    /// Every class that was defined and not forgotten.
    pub(crate) fn class_ids(&self) -> Vec<ClassId> {
        let mut ids: Vec<_> = self.classes.keys().copied().collect();
        ids.sort();
        ids
    }

    /// Name of the class whose class object this is.
    pub(crate) fn class_name_of(&self, mirror: ObjectHandle) -> Arc<str> {
        let class = self
            .mirrors
            .get(&mirror)
            .and_then(|id| self.classes.get(id));
        class.map_or_else(|| "<unknown class>".into(), |class| Arc::clone(&class.name))
    }

    /// Stores the stack of an id.
    pub(crate) fn define_trace(&mut self, id: TraceId, trace: &vmpi::Trace) {
        let at = id.0 as usize;
        if self.traces.len() <= at {
            self.traces.resize(at + 1, None);
        }
        self.traces[at] = Some(trace.clone());
        if let Some(thread) = self.threads.get_mut(&trace.thread) {
            thread.is_named = true;
        }
    }

    /// Adds a thread.
    pub(crate) fn define_thread(&mut self, id: ThreadId, announced: bool) {
        let thread = Thread {
            announced,
            ..Thread::default()
        };
        self.threads.insert(id, thread);
    }

    /// A thread has ended. The first call for it returns its state.
    pub(crate) fn end_thread(&mut self, id: ThreadId) -> Option<Thread> {
        let known = self.threads.get_mut(&id).filter(|known| !known.ended)?;
        known.ended = true;
        let known = *known;
        if !known.is_named {
            self.ended.push_back(id);
        }
        if self.ended.len() > MOST_ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.threads.remove(&oldest);
        }
        Some(known)
    }

    /// Whether a trace was defined.
    pub(crate) fn knows_trace(&self, id: TraceId) -> bool {
        let trace = self.traces.get(id.0 as usize);
        trace.is_some_and(Option::is_some)
    }

    /// Every trace that was defined, in order of serials, the empty one first.
    pub(crate) fn trace_ids(&self) -> Vec<TraceId> {
        let defined = self.traces.iter().enumerate().skip(1);
        let defined = defined.filter(|(_, trace)| trace.is_some());
        let ids = defined.map(|(at, _)| TraceId(at as u32));
        std::iter::once(TraceId::EMPTY).chain(ids).collect()
    }

    /// A class by its id. If it is unknown, its data is read from the VM.
    pub(crate) fn class(&mut self, vm: &dyn Vm, id: ClassId) -> Arc<Class> {
        if let Some(class) = self.classes.get(&id) {
            return Arc::clone(class);
        }
        let info = vm.class(id).unwrap_or_default();
        let class = Arc::new(new_class(info, TraceId::EMPTY));
        if id.0 != 0 {
            self.classes.insert(id, Arc::clone(&class));
        }
        class
    }

    /// A trace with all names.
    pub(crate) fn trace(&mut self, vm: &dyn Vm, id: TraceId) -> ResolvedTrace {
        let trace = self.traces.get(id.0 as usize).cloned().flatten();
        let mut trace = trace.or_else(|| vm.trace(id).ok()).unwrap_or_default();
        if id == TraceId::EMPTY {
            trace.thread = self.owner_of_empty.unwrap_or_default();
        }
        ResolvedTrace {
            serial: trace_serial(id),
            thread: (trace.thread != ThreadId::NONE).then(|| thread_serial(trace.thread)),
            frames: trace
                .frames
                .iter()
                .map(|frame| self.frame(vm, *frame))
                .collect(),
        }
    }

    fn frame(&mut self, vm: &dyn Vm, frame: Frame) -> Arc<ResolvedFrame> {
        if let Some(known) = self.frames.get(&frame) {
            return Arc::clone(known);
        }
        let (class, method, signature) = self.method(vm, frame.method);
        let declaring = self.class(vm, class);
        let resolved = Arc::new(ResolvedFrame {
            index: self.frames.len() as u32,
            class,
            class_name: Arc::clone(&declaring.name),
            method,
            signature,
            source: declaring.source.clone(),
            line: self.line(vm, frame),
        });
        self.frames.insert(frame, Arc::clone(&resolved));
        resolved
    }

    fn method(&mut self, vm: &dyn Vm, id: MethodId) -> (ClassId, Arc<str>, Arc<str>) {
        let known = self
            .methods
            .entry(id)
            .or_insert_with(|| match vm.method(id) {
                Ok(method) => (method.class, method.name.into(), method.descriptor.into()),
                Err(_) => (ClassId(0), "<unknown method>".into(), "".into()),
            });
        known.clone()
    }

    fn line(&mut self, vm: &dyn Vm, frame: Frame) -> TextLine {
        let at = match frame.location {
            Location::Native if self.mark_native => return TextLine::Native,
            Location::Bytecode(at) if self.line_numbers => at,
            _ => return TextLine::Unknown,
        };
        let ask = || vm.lines(frame.method).unwrap_or_default();
        let lines = self.lines.entry(frame.method).or_insert_with(ask);
        let after = lines.partition_point(|entry| entry.start <= at);
        match after.checked_sub(1).and_then(|row| lines.get(row)) {
            Some(entry) => TextLine::Number(entry.line),
            None => TextLine::Unknown,
        }
    }
}

fn new_class(info: ClassInfo, trace: TraceId) -> Class {
    let name = info.java_name();
    Class {
        signature: info.signature.as_str().into(),
        name: if name.is_empty() {
            "<unknown class>".into()
        } else {
            name.into()
        },
        source: info.source.as_deref().map(Arc::from),
        info,
        trace,
    }
}
