//! OBJECT_ALLOC for objects of Java code on VMs that have no event for them (before JDK 11). Every constructor calls
//! that of `Object`, so a call is inserted there, and one after each instruction that creates an array. Objects that
//! the VM itself creates (clone, reflection) are reported by all versions.
//!
//! The inserted call runs `java/JvmpiNewObject.java`, which calls the bridge. The frames of these calls and of the
//! object's constructors are hidden from GetCallTrace: the historic VM reported an object before its constructor ran.

use std::cell::Cell;
use std::sync::OnceLock;

use jvmti::sys::{FieldPtr, MethodPtr, RawEnv, RawObject};
use jvmti::{Capability, Env, EventKind, FrameRow, Jni, Live, Object};
use locks::{Mutex, Rank, RwLock};
use rustc_hash::FxHashMap;
use vm_hotspot::instrument::new_object_calls::{NewObjectCalls as Hooks, hidden_frames as hide};
use vm_hotspot::instrument::rewrite::is_eligible;
use vm_hotspot::retransform_all;
use vmpi::c_interface::layout::{ObjectId, event};

use crate::bridge::{Bridge, say, with_profiler_paused};

const CLASS: &str = "java/lang/JvmpiNewObject";
/// Compiled from `java/JvmpiNewObject.java`.
const BYTES: &[u8] = include_bytes!("../java/JvmpiNewObject.class");
/// The most frames that are examined to find the outermost constructor.
const CONSTRUCTORS: usize = 32;

thread_local! {
    /// The number of innermost frames of this thread that are hidden from the agent.
    static HIDDEN: Cell<usize> = const { Cell::new(0) };
}

/// How many innermost frames of the current thread are hidden from the agent.
pub(crate) fn hidden_frames() -> usize {
    HIDDEN.try_with(Cell::get).unwrap_or(0)
}

type Step = vm_hotspot::instrument::new_object_calls::Step<ObjectId>;

/// State of the inserted code.
pub(crate) struct NewObjects {
    /// A weak reference to the class, and the field that enables it.
    class: OnceLock<(Object, FieldPtr)>,
    steps: RwLock<FxHashMap<MethodPtr, Step>>,
    /// Class files that the agent changed before code was inserted, by name, because the VM returns the original ones.
    early: Mutex<FxHashMap<String, Vec<u8>>>,
}

impl Default for NewObjects {
    fn default() -> Self {
        Self {
            class: OnceLock::new(),
            steps: RwLock::new(Rank::NewObjectSteps, FxHashMap::default()),
            early: Mutex::new(Rank::EarlyClasses, FxHashMap::default()),
        }
    }
}

impl NewObjects {
    /// Forgets methods: a class was unloaded, and ids of its methods may be reused.
    pub(crate) fn clear(&self) {
        let mut steps = self.steps.write();
        steps.clear();
    }
}

const HOOKS: Hooks = Hooks {
    class: CLASS,
    object: "object",
    array: "object",
    nested: "nested",
};

impl Bridge {
    /// Whether inserted code must report the allocations of Java code, because the VM does not.
    fn needs_new_objects(&self) -> bool {
        let granted = self.granted.lock();
        !granted.has(Capability::GenerateSampledObjectAllocEvents)
            && granted.has(Capability::RetransformClasses)
    }

    /// Whether class files are needed for inserting code.
    pub(crate) fn inserts(&self) -> bool {
        self.new_objects.class.get().is_some()
    }

    /// OBJECT_ALLOC was enabled or disabled.
    pub(crate) fn switch_new_objects(
        &self,
        env: Env<Live>,
        jni: Jni,
        on: bool,
    ) -> jvmti::Result<()> {
        if !self.needs_new_objects() {
            return Ok(());
        }
        with_profiler_paused(|| {
            if on && !self.inserts() {
                self.begin_new_objects(env, jni)?;
            }
            if let Some((class, field)) = self.new_objects.class.get() {
                jni.set_static_boolean(*class, *field, on);
            }
            Ok(())
        })
    }

    fn begin_new_objects(&self, env: Env<Live>, jni: Jni) -> jvmti::Result<()> {
        let class = jni.define_boot_class(CLASS, BYTES)?;
        let field = jni.static_field(class, "on", "Z")?;
        let _ = self.new_objects.class.set((jni.new_weak(class)?, field));
        self.env.enable(EventKind::ClassFileLoadHook, true)?;
        let refused = retransform_all(env, jni)?.len();
        self.new_objects.early.lock().clear();
        if refused > 0 {
            say(&format!(
                "objects made in {refused} classes are not reported"
            ));
        }
        Ok(())
    }

    /// The class file for the VM: as the agent changed it, with the inserted calls.
    pub(crate) fn insert(
        &self,
        redefined: bool,
        name: &str,
        bytes: &[u8],
        changed: Option<Vec<u8>>,
    ) -> Option<Vec<u8>> {
        if !self.inserts() {
            if let Some(changed) = changed.as_ref().filter(|_| self.needs_new_objects()) {
                let mut early = self.new_objects.early.lock();
                early.insert(name.to_owned(), changed.clone());
            }
            return changed;
        }
        let early = redefined.then(|| self.new_objects.early.lock().get(name).cloned());
        let changed = changed.or(early.flatten());
        if !is_eligible(name) || name == CLASS {
            return changed;
        }
        let mut hooks = HOOKS;
        let patched = classfile::patch(changed.as_deref().unwrap_or(bytes), &mut hooks);
        match patched {
            Ok(Some(patched)) => Some(patched.bytes),
            _ => changed,
        }
    }

    fn step(&self, env: Env<Live>, jni: Jni, method: MethodPtr) -> Step {
        let known = self.new_objects.steps.read().get(&method).copied();
        known.unwrap_or_else(|| {
            let name = env.method_name(method).unwrap_or_default().0;
            let class = env.method_class(method).ok().flatten();
            let step = match (class, self.new_objects.class.get()) {
                (Some(class), Some((ours, _))) if jni.is_same(class, *ours) => Step::Ours,
                (Some(class), _) if name == "<init>" => {
                    Step::Constructor(self.name_class(env, jni, class))
                }
                _ => Step::Other,
            };
            self.new_objects.steps.write().insert(method, step);
            step
        })
    }

    /// The current thread has created an object.
    fn born(&self, env: Env<Live>, jni: Jni, object: Object) {
        if !self.wants(event::OBJECT_ALLOC) {
            return;
        }
        let Some(class) = jni.object_class(object) else {
            return;
        };
        let nothing = FrameRow {
            method: MethodPtr(std::ptr::null_mut()),
            location: 0,
        };
        let mut rows = [nothing; CONSTRUCTORS];
        let hidden = with_profiler_paused(|| {
            let count = env.stack_into(None, &mut rows).unwrap_or(0);
            let id = self.name_class(env, jni, class);
            let step = |row: &FrameRow| self.step(env, jni, row.method);
            hide(rows[..count].iter().map(step), &id)
        });
        HIDDEN.set(hidden);
        self.allocated(env, jni, object, class);
        HIDDEN.set(0);
    }
}

/// `JvmpiNewObject.made`, which the VM finds by name in this library.
///
/// # Safety
/// Called by the VM: `made` is a local reference of the current thread.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_JvmpiNewObject_made(
    _jni: RawEnv,
    _class: RawObject,
    made: RawObject,
) {
    jvmti::fence("JvmpiNewObject.made", || {
        let bridge = Bridge::get()?;
        let (env, jni) = bridge.here()?;
        // SAFETY: the caller's promise; it is valid during the call.
        let made = unsafe { Object::from_raw(made) }?;
        bridge.born(env, jni, made);
        Some(())
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_inserted_into_objects_constructor_and_behind_arrays() {
        // The inserted class itself creates no array, so it needs no change.
        let mut hooks = HOOKS;
        assert!(matches!(classfile::patch(BYTES, &mut hooks), Ok(None)));
    }
}
