//! Removes unloaded classes from the registry.

use std::sync::Arc;

use jvmti::Jni;
use vmpi::{ClassId, MethodId, Trace, Worth};

use crate::vm::costs;
use crate::vm::registry::{Pending, Registry};

impl Registry {
    /// A class was unloaded, so the ids of its methods may be reused. The rest is done by [`Registry::clear_up`].
    pub(crate) fn class_gone(&mut self, id: ClassId) {
        if let Some(entry) = self.classes.get_mut(id.0) {
            entry.is_gone = true;
            self.gone.push(id);
        }
    }

    /// Removes the data of at most `most` unloaded classes. Thousands may be unloaded at once, and the next thread that
    /// locks the registry must not wait for all of them.
    pub(crate) fn clear_up(&mut self, jni: impl Fn() -> Option<Jni>, most: usize) {
        let first = self.gone.len().saturating_sub(most);
        for id in self.gone.split_off(first) {
            let Some(entry) = self.classes.get_mut(id.0) else {
                continue;
            };
            if let (Some(jni), Some(mirror)) = (jni(), entry.mirror.take()) {
                jni.delete_weak(mirror);
            }
            for (key, method) in std::mem::take(&mut entry.methods) {
                // The VM may have given the same id to another method meanwhile.
                if self.by_ptr.get(&key) == Some(&method) {
                    self.by_ptr.remove(&key);
                }
                self.forget_method(method);
            }
            // A profiler may not have received the class yet, so its entry is kept until its end is announced.
            match self.has_profiler {
                true => self.announce(Pending::ClassGone(id)),
                false => drop(self.forget_class(id)),
            }
        }
        // The numbers of methods are not reused, so old stacks stay valid and only take memory.
        if !self.has_profiler && self.is_clear() {
            self.forget_traces();
        }
    }

    /// Drops all stacks.
    fn forget_traces(&mut self) {
        let cost = |trace: Arc<Trace>| costs::stack(trace.frames.len());
        let memory = self.traces.drain().map(cost).sum();
        self.memory.native.give(Worth::Stacks, memory);
        self.by_trace.clear();
    }

    /// Drops a method that is no longer in any stack.
    fn forget_method(&mut self, method: MethodId) {
        if !self.has_profiler
            && let Some(entry) = self.methods.remove(method.0)
        {
            let cost = costs::method(&entry.info, entry.lines.len());
            self.memory.native.give(Worth::Names, cost);
            self.object_init.retain(|known| *known != method);
        }
    }

    /// Drops a class that was unloaded, unless a record refers to it; returns whether one does.
    pub(crate) fn forget_class(&mut self, class: ClassId) -> bool {
        let entry = self.classes.get(class.0);
        if self.has_profiler && entry.is_some_and(|entry| entry.is_named) {
            return true;
        }
        if let Some(entry) = self.classes.remove(class.0) {
            let signature = entry.info.signature.as_str();
            self.memory
                .native
                .give(Worth::Names, costs::class(signature));
            if self.by_signature.get(signature) == Some(&class) {
                self.by_signature.remove(signature);
            }
        }
        false
    }

    /// A class with this name, to which a record refers from now on. If all that were known have been unloaded, it
    /// stands for them; `None` when there is no memory for its name.
    pub(super) fn class_named(&mut self, signature: &str) -> Option<ClassId> {
        let known = self.by_signature.get(signature).copied();
        if let Some(entry) = known.and_then(|id| self.classes.get_mut(id.0)) {
            entry.is_named = true;
            return known;
        }
        if !self.has_room_for_name(costs::class(signature)) {
            return None;
        }
        let id = self.add_class(signature);
        self.by_signature.insert(signature.into(), id);
        Some(id)
    }

    /// Whether nothing is left to remove.
    pub(crate) fn is_clear(&self) -> bool {
        self.gone.is_empty()
    }

    /// Whether a class has been unloaded.
    pub(super) fn is_gone(&self, class: ClassId) -> bool {
        let entry = self.classes.get(class.0);
        entry.is_some_and(|entry| entry.is_gone)
    }
}
