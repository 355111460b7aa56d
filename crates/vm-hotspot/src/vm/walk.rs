//! What heap walks, and other queries about all classes or sites, need of the state. It is copied some entries at a
//! time, so that no thread of the program waits for them.

use jvmti::{Env, FrameRow, Jni, Live, Object};
use vmpi::{ClassId, ObjectHandle, ThreadId, Trace, TraceId};

use crate::vm::hotspot::HotSpot;
use crate::vm::registry::{Registry, handles};

/// Classes that are examined under one lock of the state.
const SOME: u32 = 256;

impl HotSpot {
    /// Registers all loaded classes, and deletes their local references.
    pub(crate) fn know_classes(&self, env: Env<Live>, jni: Jni) -> jvmti::Result<()> {
        for some in env.loaded_classes(jni)?.chunks(SOME as usize) {
            let mut state = self.lock();
            for class in some {
                state.registry.registered_class(env, jni, *class);
                jni.delete_local(*class);
            }
        }
        Ok(())
    }

    /// The results of `of` for each known class, in the order of their numbers.
    pub(crate) fn all_classes<T>(
        &self,
        mut of: impl FnMut(&Registry, ClassId) -> Option<T>,
    ) -> Vec<T> {
        let (mut all, mut first) = (Vec::new(), 0);
        loop {
            let state = self.lock();
            let last = state.registry.classes.last().min(first + SOME);
            if first == last {
                return all;
            }
            let numbers = (first + 1..=last).map(ClassId);
            all.extend(numbers.filter_map(|class| of(&state.registry, class)));
            first = last;
        }
    }

    /// Registers classes that may be needed while the heap is walked. The VM thread looks them up during the walk, when
    /// a stopped thread may have locked the state.
    pub(crate) fn keep_classes_for_walk(&self, env: Env<Live>, jni: Jni) -> jvmti::Result<()> {
        self.know_classes(env, jni)?;
        let infos = self.all_classes(|registry, class| {
            let entry = registry.classes.get(class.0)?;
            Some((class, entry.info.clone()))
        });
        *self.classes_of_walk.lock() = Some(infos.into_iter().collect());
        Ok(())
    }

    /// All loaders that are known and alive, as local references.
    pub(crate) fn loaders(&self, jni: Jni) -> Vec<(Object, ObjectHandle)> {
        let (mut all, mut first) = (Vec::new(), 0);
        loop {
            let state = self.lock();
            let loaders = &state.registry.loaders;
            if first >= loaders.numbers() {
                return all;
            }
            // Their weak references are dropped under this lock.
            let some = loaders.some(first, SOME as usize);
            all.extend(some.filter_map(|(number, weak)| {
                let loader = jni.new_local(weak)?;
                Some((loader, handles::loader(number)))
            }));
            first += SOME as usize;
        }
    }

    /// The number of a thread that is alive.
    pub(crate) fn number_of(&self, env: Env<Live>, thread: Object) -> ThreadId {
        self.lock().registry.thread(env, Some(thread), false)
    }

    /// The numbers of a thread and of its stack.
    pub(crate) fn number_stack(
        &self,
        (env, jni): (Env<Live>, Jni),
        thread: Object,
        frames: &[FrameRow],
        depth: u32,
    ) -> (ThreadId, TraceId) {
        let mut state = self.lock();
        let thread = state.registry.thread(env, Some(thread), false);
        let frames = state.registry.stack(env, jni, frames, depth as usize);
        let owner = match self.config.per_thread {
            true => thread,
            false => ThreadId::NONE,
        };
        let trace = Trace {
            thread: owner,
            frames,
        };
        (thread, state.registry.trace(trace))
    }

    /// Class and stack of all sites, in order of their numbers.
    pub(crate) fn keys_of_sites(&self) -> Vec<(ClassId, TraceId)> {
        let mut keys = Vec::new();
        loop {
            let some = self.lock().sites.after(keys.len());
            if some.is_empty() {
                return keys;
            }
            keys.extend(some.iter().map(|site| (site.class, site.trace)));
        }
    }
}
