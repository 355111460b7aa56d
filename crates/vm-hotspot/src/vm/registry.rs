//! Classes, methods, threads and stacks by number.
//!
//! A class is identified by the tag of its mirror, which also reports when it is unloaded; a thread by the number that
//! JVMTI keeps for it. The details of a method are read when it is first seen, because its class may be unloaded when
//! it is printed.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::threads::monitors::AtMonitor;
use crate::vm::costs;
use crate::vm::libraries::Libraries;
use crate::vm::loaders::Loaders;
use crate::vm::numbered::Numbered;
use jvmti::sys::MethodPtr;
use jvmti::{Env, FrameRow, Jni, Live, Object};
use rustc_hash::FxHashMap;
use vmpi::{
    ClassId, ClassInfo, Frame, LineEntry, Location, Memory, MethodId, MethodInfo, ObjectHandle,
    ThreadId, ThreadInfo, Trace, TraceId, Worth,
};

/// Marks tags of class mirrors; the low bits are the class id.
pub(crate) const CLASS_TAG: i64 = 1 << 62;

/// Handles are small numbers that fit into four bytes, as in the original. Classes, loaders and threads keep their
/// handles; other objects get one for each walk.
pub(crate) mod handles {
    use vmpi::{ClassId, ObjectHandle};

    const LOADERS: u64 = 1 << 21;
    const THREADS: u64 = 3 << 20;
    const OBJECTS: u64 = 1 << 22;
    /// How many threads can have a handle at a time.
    pub(crate) const MOST_THREADS: u64 = OBJECTS - THREADS - 1;

    /// Numbers of classes are not reused. Those that would be handles of loaders get this bit, for which only ids of eight
    /// bytes have room.
    const LATE_CLASSES: u64 = 1 << 40;

    /// The handle of a class's mirror.
    pub(crate) fn class(id: ClassId) -> ObjectHandle {
        let id = u64::from(id.0);
        ObjectHandle(if id < LOADERS { id } else { LATE_CLASSES | id })
    }

    /// The handle of the `index`th loader.
    pub(crate) fn loader(index: usize) -> ObjectHandle {
        ObjectHandle(LOADERS + index as u64)
    }

    /// The handle of the `index`th thread, from 1.
    pub(crate) fn thread(index: u64) -> ObjectHandle {
        ObjectHandle(THREADS + index)
    }

    /// The handle of the `index`th object of a walk.
    pub(crate) fn object(index: u64) -> ObjectHandle {
        ObjectHandle(OBJECTS + index)
    }
}

/// What is emitted to the profiler before an event that refers to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pending {
    Class(ClassId, TraceId, ThreadId),
    ClassGone(ClassId),
    Trace(TraceId),
    Thread(ThreadId),
    ThreadGone(ThreadId),
    Monitor(AtMonitor),
}

#[derive(Default)]
pub(crate) struct ClassEntry {
    pub(crate) info: ClassInfo,
    /// Weak reference to the mirror.
    pub(crate) mirror: Option<Object>,
    pub(crate) load_trace: TraceId,
    /// Its known methods, by their ids in the VM.
    pub(super) methods: Vec<((MethodPtr, i64), MethodId)>,
    /// Whether a stack, a site or another record refers to it, so that its entry is kept after it is unloaded.
    pub(super) is_named: bool,
    /// Whether it has been unloaded; the VM may then give the ids to other methods.
    pub(super) is_gone: bool,
}

struct ThreadEntry {
    info: ThreadInfo,
    /// Whether a reported stack refers to this thread, so that its entry is kept after its end.
    is_named: bool,
    /// Whether it has ended; the VM lists it for a moment longer.
    has_ended: bool,
}

/// The thread group that JVMTI reports for every virtual thread.
const VIRTUAL_GROUP: &str = "VirtualThreads";
/// The class whose methods stand for threads without Java code.
const OTHER_THREADS: &str = "LNativeThread;";
/// How many names of virtual threads are distinguished, and the name of all others.
const MOST_NAMES: usize = 32;
const OTHER_NAMES: &str = "(other names)";
/// The same for threads without Java code, whose names are names of methods.
const MOST_OTHER_THREADS: usize = 256;
const OTHER_THREAD_NAMES: &str = "(other_names)";

#[derive(Clone, Default)]
pub(crate) struct MethodEntry {
    pub(crate) info: MethodInfo,
    pub(crate) lines: Arc<[LineEntry]>,
    /// Its id in the VM, unless only its name is known.
    pub(crate) ptr: Option<MethodPtr>,
}

impl MethodEntry {
    /// A method of which only the name is known.
    fn named(info: MethodInfo) -> Self {
        Self {
            info,
            ..Self::default()
        }
    }
}

/// Counts of things without memory.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Refused {
    pub(crate) stacks: u64,
    pub(crate) names: u64,
}

#[derive(Default)]
pub(crate) struct Registry {
    pub(crate) memory: Arc<Memory>,
    /// Stacks, classes and methods without memory since the last report.
    pub(crate) refused: Refused,
    pub(crate) classes: Numbered<ClassEntry>,
    /// The first class of each name.
    pub(super) by_signature: FxHashMap<Box<str>, ClassId>,
    /// Unloaded classes whose data must still be removed.
    pub(super) gone: Vec<ClassId>,
    pub(crate) loaders: Loaders,
    pub(crate) methods: Numbered<MethodEntry>,
    /// Names of threads that run no Java code, as methods of a class that does not exist in the VM.
    other_threads: FxHashMap<Box<str>, MethodId>,
    pub(crate) libraries: Libraries,
    /// By the VM's id and the end of the code, because a method with inserted code has other bytecode indices.
    pub(super) by_ptr: FxHashMap<(MethodPtr, i64), MethodId>,
    /// Whether inserted code is removed and inserted again.
    pub(crate) code_changes: bool,
    by_number: FxHashMap<u32, MethodId>,
    threads: FxHashMap<ThreadId, ThreadEntry>,
    /// Numbers of threads given so far.
    last_thread: u32,
    /// How many handles of threads were given so far, and the free ones, the oldest first.
    last_handle: u64,
    free_handles: VecDeque<ObjectHandle>,
    pub(crate) traces: Numbered<Arc<Trace>>,
    pub(super) by_trace: FxHashMap<Arc<Trace>, TraceId>,
    pub(crate) pending: VecDeque<Pending>,
    /// Whether a profiler receives everything, and may query what its records refer to until the recording ends.
    /// Otherwise the data of a class, and all stacks, are dropped when a class is unloaded.
    pub(crate) has_profiler: bool,
    /// The tracker's class, whose frames are removed from stacks.
    pub(crate) tracker: Option<ClassId>,
    /// Names of virtual threads, and the thread that stands for all of one name.
    virtual_makers: Vec<(String, ThreadId)>,
    /// Object's constructor, cut once: with inserted code and without.
    pub(crate) object_init: Vec<MethodId>,
    /// Names of threads of the agent.
    agent_threads: Vec<&'static str>,
}

/// The name of the current thread if it is virtual.
pub(crate) fn virtual_name(env: Env<Live>) -> Option<String> {
    let row = env.thread_info(None).ok()?;
    (row.group == VIRTUAL_GROUP).then_some(row.name)
}

impl Registry {
    /// Deletes the weak references to classes and loaders.
    pub(crate) fn release(&mut self, jni: Jni) {
        let mirrors = self.classes.values_mut();
        let mirrors = mirrors.filter_map(|entry| entry.mirror.take());
        mirrors.for_each(|weak| jni.delete_weak(weak));
        for (_, weak) in std::mem::take(&mut self.loaders).some(0, usize::MAX) {
            jni.delete_weak(weak);
        }
    }

    /// Copies the threads of the agent that another registry knows.
    pub(crate) fn follow_on(&mut self, before: &Self) {
        self.agent_threads.clone_from(&before.agent_threads);
    }

    /// The class of a mirror, to which a record refers from now on.
    pub(crate) fn class(&mut self, env: Env<Live>, jni: Jni, mirror: Object) -> ClassId {
        let id = self.registered_class(env, jni, mirror);
        if let Some(entry) = self.classes.get_mut(id.0) {
            entry.is_named = true;
        }
        id
    }

    /// The class of a mirror; found or registered.
    pub(crate) fn registered_class(&mut self, env: Env<Live>, jni: Jni, mirror: Object) -> ClassId {
        match env.tag(mirror) {
            Ok(tag) if tag & CLASS_TAG != 0 => return ClassId((tag & !CLASS_TAG) as u32),
            _ => {}
        }
        let Ok(signature) = env.class_signature(mirror) else {
            return ClassId(0);
        };
        if !self.has_room_for_name(costs::class(&signature)) {
            return ClassId(0);
        }
        let id = ClassId(self.classes.add(ClassEntry {
            mirror: jni.new_weak(mirror).ok(),
            ..ClassEntry::default()
        }));
        if !self.by_signature.contains_key(signature.as_str()) {
            self.by_signature.insert(signature.as_str().into(), id);
        }
        let _ = env.set_tag(mirror, CLASS_TAG | i64::from(id.0));
        let superclass = match jni.superclass(mirror) {
            Some(superclass) => {
                let id = self.registered_class(env, jni, superclass);
                jni.delete_local(superclass);
                id
            }
            None => ClassId(0),
        };
        let loader = self.loader(env, jni, mirror);
        if signature == "Ljava/lang/HprofTracker;" {
            self.tracker = Some(id);
        }
        self.classes[id.0].info = ClassInfo {
            signature,
            source: env.source_file(mirror),
            superclass,
            mirror: handles::class(id),
            loader,
            is_interface: env.is_interface(mirror).unwrap_or(false),
        };
        id
    }

    /// A class that does not exist in the VM.
    pub(crate) fn add_class(&mut self, signature: &str) -> ClassId {
        let id = ClassId(self.classes.add(ClassEntry::default()));
        self.classes[id.0].info = ClassInfo {
            signature: signature.to_owned(),
            mirror: handles::class(id),
            ..ClassInfo::default()
        };
        id
    }

    /// Queues an event for the profiler.
    pub(crate) fn announce(&mut self, what: Pending) {
        if self.has_profiler {
            self.pending.push_back(what);
        }
    }

    /// Whether there is memory for another class or method; charges it.
    pub(crate) fn has_room_for_name(&mut self, cost: u64) -> bool {
        let has_room = self.memory.native.take(Worth::Names, cost);
        self.refused.names += u64::from(!has_room);
        has_room
    }

    /// A handle that is the same for classes of one loader.
    fn loader(&mut self, env: Env<Live>, jni: Jni, mirror: Object) -> ObjectHandle {
        let Ok(Some(loader)) = env.class_loader(mirror) else {
            return ObjectHandle::NULL;
        };
        let index = self.loaders.number(env, jni, loader);
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
        let id = self.registered_class(env, jni, mirror);
        if let Some(entry) = self.classes.get_mut(id.0) {
            entry.load_trace = trace;
            self.announce(Pending::Class(id, trace, thread));
        }
        id
    }

    /// The method behind a VM id.
    pub(crate) fn method(&mut self, env: Env<Live>, jni: Jni, ptr: MethodPtr) -> MethodId {
        let end = match self.code_changes {
            true => env.method_end(ptr).unwrap_or(-1),
            false => 0,
        };
        if let Some(id) = self.by_ptr.get(&(ptr, end)) {
            let class = self.methods[id.0].info.class;
            if !self.is_gone(class) {
                return *id;
            }
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
        if !self.has_room_for_name(costs::method(&info, lines.len())) {
            return MethodId(0);
        }
        let id = MethodId(self.methods.add(MethodEntry {
            info,
            lines: lines.into(),
            ptr: Some(ptr),
        }));
        self.by_ptr.insert((ptr, end), id);
        if let Some(entry) = self.classes.get_mut(class.0) {
            entry.methods.push(((ptr, end), id));
        }
        if is_object_init {
            self.object_init.push(id);
        }
        id
    }

    /// Whether a class is an array class.
    pub(crate) fn is_array(&self, class: ClassId) -> bool {
        self.classes
            .get(class.0)
            .is_some_and(|entry| entry.info.signature.starts_with('['))
    }

    fn class_name_is(&self, class: ClassId, signature: &str) -> bool {
        self.classes
            .get(class.0)
            .is_some_and(|entry| entry.info.signature == signature)
    }

    /// The method with an instrumenter's number. The class is looked up only by name, because only the name is printed.
    pub(crate) fn numbered(
        &mut self,
        number: u32,
        names: &crate::instrument::numbers::Numbers,
    ) -> MethodId {
        if let Some(id) = self.by_number.get(&number) {
            return *id;
        }
        let Some(method) = names.method_name(number) else {
            return MethodId(0);
        };
        let signature = format!("L{};", method.class);
        let Some(class) = self.class_named(&signature) else {
            return MethodId(0);
        };
        let info = MethodInfo {
            class,
            name: method.name.clone(),
            descriptor: method.descriptor.clone(),
            is_native: false,
        };
        let Some(id) = self.add_named(info) else {
            return MethodId(0);
        };
        self.by_number.insert(number, id);
        id
    }

    /// A method of which only the name is known; `None` when there is no memory for another name.
    pub(crate) fn add_named(&mut self, info: MethodInfo) -> Option<MethodId> {
        if !self.has_room_for_name(costs::method(&info, 0)) {
            return None;
        }
        Some(MethodId(self.methods.add(MethodEntry::named(info))))
    }

    /// A stack of the VM, cut to `depth` frames below those of the tracker.
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
                let entry = self.methods.get(method.0);
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

    /// The frame that stands for a thread that runs no Java code: its name.
    pub(crate) fn frame_of_other(&mut self, name: &str) -> Frame {
        let has_room = self.other_threads.len() < MOST_OTHER_THREADS;
        let name = match has_room || self.other_threads.contains_key(name) {
            true => name,
            false => OTHER_THREAD_NAMES,
        };
        let known = self.other_threads.get(name).copied();
        Frame {
            method: known.unwrap_or_else(|| self.add_other_thread(name)),
            location: Location::Native,
        }
    }

    fn add_other_thread(&mut self, name: &str) -> MethodId {
        let known = self.other_threads.values().next();
        let known = known.and_then(|id| self.methods.get(id.0));
        let class = match known.map(|method| method.info.class) {
            Some(class) => class,
            None => self.add_class(OTHER_THREADS),
        };
        let method = MethodId(self.methods.add(MethodEntry::named(MethodInfo {
            class,
            name: name.to_owned(),
            descriptor: String::new(),
            is_native: true,
        })));
        self.other_threads.insert(name.into(), method);
        method
    }

    /// Whether a method is one of `java.util.concurrent.locks`, or of the class whose method parks threads.
    pub(crate) fn is_of_locks(&self, method: MethodId) -> bool {
        let method = self.methods.get(method.0);
        let class = method.and_then(|method| self.classes.get(method.info.class.0));
        class.is_some_and(|class| {
            let name = &class.info.signature;
            name.starts_with("Ljava/util/concurrent/locks/") || name.ends_with("/misc/Unsafe;")
        })
    }

    /// The number of a stack; a new stack is queued for announcement. Without memory for another, that of the empty
    /// stack.
    pub(crate) fn trace(&mut self, trace: Trace) -> TraceId {
        self.reserved_trace(trace, 0)
    }

    /// The same, if `reserved` bytes have been charged for it already.
    pub(crate) fn reserved_trace(&mut self, trace: Trace, reserved: u64) -> TraceId {
        let native = &self.memory.native;
        if trace.frames.is_empty() && trace.thread == ThreadId::NONE {
            native.discharge(reserved);
            return TraceId::EMPTY;
        }
        if let Some(id) = self.by_trace.get(&trace) {
            native.discharge(reserved);
            return *id;
        }
        let cost = costs::stack(trace.frames.len());
        if reserved == 0 && !native.take(Worth::Stacks, cost) {
            self.refused.stacks += 1;
            return TraceId::EMPTY;
        }
        if let Some(entry) = self.threads.get_mut(&trace.thread) {
            entry.is_named = true;
        }
        let trace = Arc::new(trace);
        let id = TraceId(self.traces.add(Arc::clone(&trace)));
        self.by_trace.insert(trace, id);
        self.announce(Pending::Trace(id));
        id
    }

    /// The current thread, as the maker of an object. There can be any number of virtual threads, most of them without
    /// a name, so those with the same name are counted as one.
    pub(crate) fn maker(&mut self, env: Env<Live>) -> ThreadId {
        let thread = match env.thread_number(None) {
            Ok(0) => match virtual_name(env) {
                Some(name) => return self.maker_named(&name),
                None => self.thread(env, None, false),
            },
            Ok(number) => ThreadId(number as u32),
            Err(_) => return ThreadId::NONE,
        };
        self.maker_numbered(thread)
    }

    /// A thread with this number, as the maker of an object.
    pub(crate) fn maker_numbered(&mut self, thread: ThreadId) -> ThreadId {
        let virtual_name = self.thread_info(thread).filter(|info| info.is_virtual);
        match virtual_name.map(|info| info.name.clone()) {
            Some(name) => self.maker_named(&name),
            None => thread,
        }
    }

    /// A virtual thread with this name, as the maker of an object.
    pub(crate) fn maker_named(&mut self, name: &str) -> ThreadId {
        let kind = self.kind_named(name);
        self.maker_of(kind)
    }

    /// The number of the name of a virtual thread, from 1.
    pub(crate) fn kind_of(&mut self, env: Env<Live>, thread: Object) -> i32 {
        let name = env.thread_info(Some(thread)).map(|row| row.name);
        self.kind_named(&name.unwrap_or_default()) as i32
    }

    fn kind_named(&mut self, name: &str) -> usize {
        let known = |makers: &[(String, ThreadId)], name: &str| {
            makers.iter().position(|(known, _)| known == name)
        };
        let name = match self.virtual_makers.len() {
            0..MOST_NAMES => name,
            _ if known(&self.virtual_makers, name).is_some() => name,
            _ => OTHER_NAMES,
        };
        let at = known(&self.virtual_makers, name).unwrap_or_else(|| {
            let info = ThreadInfo {
                name: name.to_owned(),
                group: VIRTUAL_GROUP.to_owned(),
                is_virtual: true,
                predates_profiler: true,
                ..ThreadInfo::default()
            };
            let thread = self.add_thread(info);
            self.virtual_makers.push((name.to_owned(), thread));
            self.virtual_makers.len() - 1
        });
        at + 1
    }

    /// The thread that stands for the virtual threads whose name has this number.
    pub(crate) fn maker_of(&self, kind: usize) -> ThreadId {
        let maker = self.virtual_makers.get(kind.wrapping_sub(1));
        maker.map_or(ThreadId::NONE, |(_, thread)| *thread)
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
        let id = ThreadId(self.last_thread + 1);
        if env.set_thread_number(thread, id.0 as usize).is_err() {
            return ThreadId::NONE;
        }
        let is_agent = self.agent_threads.contains(&row.name.as_str());
        self.add_thread(ThreadInfo {
            is_agent,
            is_virtual: row.group == VIRTUAL_GROUP,
            name: row.name,
            group: row.group,
            parent_group: row.parent_group,
            object: ObjectHandle::NULL,
            predates_profiler: !is_new,
        })
    }

    /// Records that threads with this name are threads of the agent, which has a few fixed names.
    pub(crate) fn name_agent_thread(&mut self, name: &'static str) {
        if !self.agent_threads.contains(&name) {
            self.agent_threads.push(name);
        }
    }

    /// Gives a thread a number and a handle.
    fn add_thread(&mut self, mut info: ThreadInfo) -> ThreadId {
        self.last_thread += 1;
        let id = ThreadId(self.last_thread);
        info.object = self.thread_handle();
        self.memory.native.charge(costs::thread(&info.name));
        let entry = ThreadEntry {
            info,
            is_named: false,
            has_ended: false,
        };
        self.threads.insert(id, entry);
        self.announce(Pending::Thread(id));
        id
    }

    fn thread_handle(&mut self) -> ObjectHandle {
        if self.last_handle < handles::MOST_THREADS {
            self.last_handle += 1;
            return handles::thread(self.last_handle);
        }
        self.free_handles.pop_front().unwrap_or(ObjectHandle::NULL)
    }

    /// The data of a thread that is alive or that a stack refers to.
    pub(crate) fn thread_info(&self, thread: ThreadId) -> Option<&ThreadInfo> {
        self.threads.get(&thread).map(|entry| &entry.info)
    }

    /// Whether a thread that has a number has ended.
    pub(crate) fn has_ended(&self, thread: ThreadId) -> bool {
        self.threads
            .get(&thread)
            .is_none_or(|entry| entry.has_ended)
    }

    /// A thread has ended.
    pub(crate) fn thread_ended(&mut self, thread: ThreadId) {
        if let Some(entry) = self.threads.get_mut(&thread) {
            entry.has_ended = true;
        }
        match self.has_profiler {
            true => self.announce(Pending::ThreadGone(thread)),
            false => self.forget_thread(thread),
        }
    }

    /// Whether a thread belongs to the agent, if it is known.
    pub(crate) fn is_agent(&self, thread: ThreadId) -> Option<bool> {
        self.thread_info(thread).map(|info| info.is_agent)
    }

    /// A thread has ended, and its end was reported.
    pub(crate) fn forget_thread(&mut self, thread: ThreadId) {
        if self
            .threads
            .get(&thread)
            .is_some_and(|entry| !entry.is_named)
            && let Some(entry) = self.threads.remove(&thread)
        {
            let cost = costs::thread(&entry.info.name);
            self.memory.native.discharge(cost);
            if !entry.info.object.is_null() {
                self.free_handles.push_back(entry.info.object);
            }
        }
    }
}
