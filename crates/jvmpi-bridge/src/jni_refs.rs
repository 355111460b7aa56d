//! JNI_GLOBALREF and JNI_WEAK_GLOBALREF events, from hooks of the functions of JNI that create and delete such
//! references. References that the VM creates for itself are not reported.

use std::sync::atomic::{AtomicBool, Ordering};

use jvmti::sys::{RawEnv, RawObject};
use jvmti::{Env, Jni, Live, Object, ReferenceHooks};
use locks::{Mutex, Rank};
use rustc_hash::FxHashMap;

use crate::bridge::{Bridge, with_profiler_paused};
use vmpi::c_interface::layout::{GlobalRef, ObjectId, Payload, event};

/// Global references created since the functions were replaced, for the roots of a heap dump.
pub(crate) struct JniRefs {
    by_reference: Mutex<FxHashMap<usize, ObjectId>>,
}

impl Default for JniRefs {
    fn default() -> Self {
        Self {
            by_reference: Mutex::new(Rank::BridgeReferences, FxHashMap::default()),
        }
    }
}

impl JniRefs {
    /// One global reference of each object that has any.
    pub(crate) fn by_object(&self) -> FxHashMap<ObjectId, usize> {
        let by_reference = self.by_reference.lock();
        by_reference
            .iter()
            .map(|(r, object)| (*object, *r))
            .collect()
    }
}

/// A reference was created.
fn made(env: RawEnv, reference: RawObject, is_weak: bool) {
    let kind = match is_weak {
        false => event::JNI_GLOBALREF_ALLOC,
        true => event::JNI_WEAK_GLOBALREF_ALLOC,
    };
    let Some(bridge) = Bridge::get().filter(|bridge| bridge.wants(kind)) else {
        return;
    };
    let Some((live, jni)) = bridge.here().filter(|(_, jni)| jni.raw() == env) else {
        return;
    };
    with_profiler_paused(|| {
        // SAFETY: JNI has just given it to the caller.
        let Some(object) = (unsafe { Object::from_raw(reference) }) else {
            return;
        };
        bridge.meet_current(live, jni);
        let object = bridge.id_of(live, jni, object);
        if !is_weak {
            bridge
                .refs
                .by_reference
                .lock()
                .insert(reference as usize, object);
        }
        let global_ref = GlobalRef { object, reference };
        bridge.send(env, kind, Payload { global_ref });
    });
}

/// A reference is about to be deleted.
fn dropping(env: RawEnv, reference: RawObject, is_weak: bool) {
    let kind = match is_weak {
        false => event::JNI_GLOBALREF_FREE,
        true => event::JNI_WEAK_GLOBALREF_FREE,
    };
    let Some(bridge) = Bridge::get().filter(|bridge| bridge.wants(kind)) else {
        return;
    };
    let Some((live, jni)) = bridge.here().filter(|(_, jni)| jni.raw() == env) else {
        return;
    };
    if reference.is_null() {
        return;
    }
    with_profiler_paused(|| {
        bridge.meet_current(live, jni);
        if !is_weak {
            bridge
                .refs
                .by_reference
                .lock()
                .remove(&(reference as usize));
        }
        bridge.send(env, kind, Payload { reference });
    });
}

/// Installs the hooks, once and permanently.
///
/// # Errors
/// The VM refuses.
pub(crate) fn watch(env: Env<Live>, jni: Jni) -> jvmti::Result<()> {
    static IS_DONE: AtomicBool = AtomicBool::new(false);
    if IS_DONE.swap(true, Ordering::SeqCst) {
        return Ok(());
    }
    env.replace_references(jni, ReferenceHooks { made, dropping })
}
