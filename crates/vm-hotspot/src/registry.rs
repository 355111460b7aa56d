//! Classes, methods, threads and stacks by number.
//!
//! A class is known by the tag on its mirror, which says when it dies as well; a
//! thread by the number JVMTI keeps for it. What can be asked about a method is
//! asked when it is first seen, because its class may be gone when it is printed.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::monitors::AtMonitor;
use jvmti::sys::MethodPtr;
use jvmti::{Env, FrameRow, Jni, Live, Object};
use rustc_hash::FxHashMap;
use vmpi::{
    ClassId, ClassInfo, Frame, LineEntry, Location, MethodId, MethodInfo, ObjectHandle, ThreadId,
    ThreadInfo, Trace, TraceId,
};

/// Marks tags of class mirrors; the low bits are the class id.
pub(crate) const CLASS_TAG: i64 = 1 << 62;
/// Marks tags that objects have while the heap is walked.
pub(crate) const WALK_TAG: i64 = 1 << 61;
/// With [`WALK_TAG`]: the low bits are a handle, not an index of the walk.
pub(crate) const HANDLE_TAG: i64 = 1 << 60;

/// Handles are small numbers, so that four bytes hold them as in the original:
/// classes, loaders and threads keep theirs, other objects get one for each walk.
pub(crate) mod handles {
    use vmpi::{ClassId, ObjectHandle, ThreadId};

    const LOADERS: u64 = 1 << 21;
    const THREADS: u64 = 3 << 20;
    const OBJECTS: u64 = 1 << 22;

    /// Of a class's mirror.
    pub(crate) fn class(id: ClassId) -> ObjectHandle {
        ObjectHandle(u64::from(id.0))
    }

    /// Of the `index`th loader.
    pub(crate) fn loader(index: usize) -> ObjectHandle {
        ObjectHandle(LOADERS + index as u64)
    }

    /// Of a thread.
    pub(crate) fn thread(id: ThreadId) -> ObjectHandle {
        ObjectHandle(THREADS + u64::from(id.0))
    }

    /// Of the `index`th object of a walk.
    pub(crate) fn object(index: u64) -> ObjectHandle {
        ObjectHandle(OBJECTS + index)
    }
}

/// What the profiler has to be told before it hears of the thing itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    Class(ClassId, TraceId, ThreadId),
    ClassGone(ClassId),
    Trace(TraceId),
    Thread(ThreadId),
    ThreadGone(ThreadId),
    Monitor(AtMonitor),
}

pub(crate) struct ClassEntry {
    pub(crate) info: ClassInfo,
    /// Weak reference to the mirror.
    pub(crate) mirror: Option<Object>,
    pub(crate) load_trace: TraceId,
}

#[derive(Clone, Default)]
pub(crate) struct MethodEntry {
    pub(crate) info: MethodInfo,
    pub(crate) lines: Arc<[LineEntry]>,
}

#[derive(Default)]
pub(crate) struct Registry {
    pub(crate) classes: Vec<ClassEntry>,
    pub(crate) loaders: Vec<Object>,
    pub(crate) methods: Vec<MethodEntry>,
    /// By the VM's id and the end of the code: with inserted code a method has other places.
    by_ptr: FxHashMap<(MethodPtr, i64), MethodId>,
    /// Inserted code is taken out and put in again.
    pub(crate) code_changes: bool,
    by_number: FxHashMap<u32, MethodId>,
    pub(crate) threads: Vec<ThreadInfo>,
    /// Threads that have ended.
    pub(crate) ended: Vec<bool>,
    pub(crate) traces: Vec<Arc<Trace>>,
    by_trace: FxHashMap<Arc<Trace>, TraceId>,
    pub(crate) pending: VecDeque<Pending>,
    /// The tracker's class, whose frames are cut from stacks.
    pub(crate) tracker: Option<ClassId>,
    /// The first virtual thread of each name, which stands for all.
    virtual_makers: FxHashMap<String, ThreadId>,
    /// Object's constructor, cut once: with inserted code and without.
    object_init: Vec<MethodId>,
    /// Threads being started by the agent itself.
    pub(crate) agent_threads: Vec<String>,
}

impl Registry {
    /// The class of a mirror; found or registered.
    pub(crate) fn class(&mut self, env: Env<Live>, jni: Jni, mirror: Object) -> ClassId {
        match env.tag(mirror) {
            Ok(tag) if tag & CLASS_TAG != 0 => return ClassId((tag & !CLASS_TAG) as u32),
            _ => {}
        }
        let Ok(signature) = env.class_signature(mirror) else {
            return ClassId(0);
        };
        self.classes.push(ClassEntry {
            info: ClassInfo::default(),
            mirror: jni.new_weak(mirror).ok(),
            load_trace: TraceId::EMPTY,
        });
        let id = ClassId(self.classes.len() as u32);
        let _ = env.set_tag(mirror, CLASS_TAG | i64::from(id.0));
        let superclass = match jni.superclass(mirror) {
            Some(superclass) => {
                let id = self.class(env, jni, superclass);
                jni.delete_local(superclass);
                id
            }
            None => ClassId(0),
        };
        let loader = self.loader(env, jni, mirror);
        if signature == "Ljava/lang/HprofTracker;" {
            self.tracker = Some(id);
        }
        self.classes[id.0 as usize - 1].info = ClassInfo {
            signature,
            source: env.source_file(mirror),
            superclass,
            mirror: handles::class(id),
            loader,
            is_interface: env.is_interface(mirror).unwrap_or(false),
        };
        id
    }

    /// A handle that is the same for classes of one loader.
    fn loader(&mut self, env: Env<Live>, jni: Jni, mirror: Object) -> ObjectHandle {
        let Ok(Some(loader)) = env.class_loader(mirror) else {
            return ObjectHandle::NULL;
        };
        let known = self
            .loaders
            .iter()
            .position(|weak| jni.is_same(*weak, loader));
        let index = known.or_else(|| {
            self.loaders.push(jni.new_weak(loader).ok()?);
            Some(self.loaders.len() - 1)
        });
        jni.delete_local(loader);
        index.map_or(ObjectHandle::NULL, handles::loader)
    }

    /// Registers a class and queues its announcement.
    pub(crate) fn announce_class(
        &mut self,
        env: Env<Live>,
        jni: Jni,
        mirror: Object,
        trace: TraceId,
        thread: ThreadId,
    ) -> ClassId {
        let id = self.class(env, jni, mirror);
        if let Some(entry) = self.classes.get_mut((id.0 as usize).wrapping_sub(1)) {
            entry.load_trace = trace;
            self.pending.push_back(Pending::Class(id, trace, thread));
        }
        id
    }

    /// A class died: its methods' ids may be given to others now.
    pub(crate) fn class_gone(&mut self, jni: Option<Jni>, id: ClassId) {
        let Some(entry) = self.classes.get_mut((id.0 as usize).wrapping_sub(1)) else {
            return;
        };
        if let (Some(jni), Some(mirror)) = (jni, entry.mirror.take()) {
            jni.delete_weak(mirror);
        }
        let methods = &self.methods;
        self.by_ptr
            .retain(|_, method| methods[method.0 as usize - 1].info.class != id);
        self.pending.push_back(Pending::ClassGone(id));
    }

    /// The method behind a VM id.
    pub(crate) fn method(&mut self, env: Env<Live>, jni: Jni, ptr: MethodPtr) -> MethodId {
        let end = match self.code_changes {
            true => env.method_end(ptr).unwrap_or(-1),
            false => 0,
        };
        if let Some(id) = self.by_ptr.get(&(ptr, end)) {
            return *id;
        }
        let Ok((name, descriptor)) = env.method_name(ptr) else {
            return MethodId(0);
        };
        let class = match env.method_class(ptr) {
            Ok(Some(mirror)) => {
                let class = self.class(env, jni, mirror);
                jni.delete_local(mirror);
                class
            }
            _ => ClassId(0),
        };
        let is_native = env.is_native(ptr).unwrap_or(false);
        let rows = if is_native {
            Vec::new()
        } else {
            env.line_numbers(ptr).unwrap_or_default()
        };
        let mut lines: Vec<LineEntry> = rows
            .into_iter()
            .map(|(start, line)| LineEntry { start, line })
            .collect();
        lines.sort_unstable();
        let is_object_init = name == "<init>" && self.class_name_is(class, "Ljava/lang/Object;");
        let info = MethodInfo {
            class,
            name,
            descriptor,
            is_native,
        };
        self.methods.push(MethodEntry {
            info,
            lines: lines.into(),
        });
        let id = MethodId(self.methods.len() as u32);
        self.by_ptr.insert((ptr, end), id);
        if is_object_init {
            self.object_init.push(id);
        }
        id
    }

    /// Whether a class is one of arrays.
    pub(crate) fn is_array(&self, class: ClassId) -> bool {
        self.classes
            .get((class.0 as usize).wrapping_sub(1))
            .is_some_and(|entry| entry.info.signature.starts_with('['))
    }

    fn class_name_is(&self, class: ClassId, signature: &str) -> bool {
        self.classes
            .get((class.0 as usize).wrapping_sub(1))
            .is_some_and(|entry| entry.info.signature == signature)
    }

    /// The method an instrumenter's number stands for. The class is looked up by
    /// name only: a name is all that is printed.
    pub(crate) fn numbered(&mut self, number: u32, names: &crate::instrument::Numbers) -> MethodId {
        if let Some(id) = self.by_number.get(&number) {
            return *id;
        }
        let Some(method) = names.method_name(number) else {
            return MethodId(0);
        };
        let signature = format!("L{};", method.class);
        let found = self
            .classes
            .iter()
            .position(|entry| entry.info.signature == signature);
        let Some(found) = found else {
            return MethodId(0);
        };
        let info = MethodInfo {
            class: ClassId(found as u32 + 1),
            name: method.name,
            descriptor: method.descriptor,
            is_native: false,
        };
        self.methods.push(MethodEntry {
            info,
            lines: Arc::default(),
        });
        let id = MethodId(self.methods.len() as u32);
        self.by_number.insert(number, id);
        id
    }

    /// A stack as the VM gives it, cut to `depth` frames below the tracker's.
    pub(crate) fn stack(
        &mut self,
        env: Env<Live>,
        jni: Jni,
        rows: &[FrameRow],
        depth: usize,
    ) -> Vec<Frame> {
        let mut frames = Vec::with_capacity(depth.min(rows.len()));
        let mut at_top = true;
        for row in rows {
            if frames.len() == depth {
                break;
            }
            let method = self.method(env, jni, row.method);
            if at_top {
                let entry = self.methods.get((method.0 as usize).wrapping_sub(1));
                let class = entry.map(|entry| entry.info.class);
                if class.is_some() && class == self.tracker {
                    continue;
                }
                at_top = false;
                if rows.len() > 1 && self.object_init.contains(&method) {
                    continue;
                }
            }
            let location = match u32::try_from(row.location) {
                Ok(at) => Location::Bytecode(at),
                Err(_) => Location::Native,
            };
            frames.push(Frame { method, location });
        }
        frames
    }

    /// The number of a stack; found or given and queued for announcement.
    pub(crate) fn trace(&mut self, trace: Trace) -> TraceId {
        if trace.frames.is_empty() && trace.thread == ThreadId::NONE {
            return TraceId::EMPTY;
        }
        if let Some(id) = self.by_trace.get(&trace) {
            return *id;
        }
        let trace = Arc::new(trace);
        self.traces.push(Arc::clone(&trace));
        let id = TraceId(self.traces.len() as u32);
        self.by_trace.insert(trace, id);
        self.pending.push_back(Pending::Trace(id));
        id
    }

    /// The current thread as who makes something. There can be any number of virtual threads, most
    /// of them without a name, so those of one name are one.
    pub(crate) fn maker(&mut self, env: Env<Live>) -> ThreadId {
        /// What JVMTI says of every virtual thread.
        const GROUP: &str = "VirtualThreads";
        let thread = self.thread(env, None, false);
        let info = self.threads.get((thread.0 as usize).wrapping_sub(1));
        match info.filter(|info| info.group == GROUP) {
            Some(info) => *self
                .virtual_makers
                .entry(info.name.clone())
                .or_insert(thread),
            None => thread,
        }
    }

    /// The number of a live thread (`None`: the current one); found or given.
    pub(crate) fn thread(
        &mut self,
        env: Env<Live>,
        thread: Option<Object>,
        is_new: bool,
    ) -> ThreadId {
        match env.thread_number(thread) {
            Ok(number) if number != 0 => return ThreadId(number as u32),
            Ok(_) => {}
            Err(_) => return ThreadId::NONE,
        }
        let Ok(row) = env.thread_info(thread) else {
            return ThreadId::NONE;
        };
        let id = ThreadId(self.threads.len() as u32 + 1);
        if env.set_thread_number(thread, id.0 as usize).is_err() {
            return ThreadId::NONE;
        }
        let is_agent = self.agent_threads.contains(&row.name);
        self.threads.push(ThreadInfo {
            is_agent,
            name: row.name,
            group: row.group,
            parent_group: row.parent_group,
            object: handles::thread(id),
            is_virtual: false,
            predates_profiler: !is_new,
        });
        self.ended.push(false);
        self.pending.push_back(Pending::Thread(id));
        id
    }
}
