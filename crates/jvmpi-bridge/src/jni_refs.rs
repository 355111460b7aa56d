//! JNI_GLOBALREF and JNI_WEAK_GLOBALREF events: replaces the four functions of JNI that create and delete such
//! references. References that the VM creates for itself are not reported.

use std::ffi::c_void;
use std::sync::OnceLock;

use jvmti::sys::{RawEnv, RawObject, jni_slot};
use jvmti::{Env, Jni, Live, Object};
use locks::{Mutex, Rank};
use rustc_hash::FxHashMap;

use crate::bridge::{Bridge, with_profiler_paused};
use vmpi::c_interface::layout::{GlobalRef, ObjectId, Payload, event};

type Make = extern "system" fn(RawEnv, RawObject) -> RawObject;
type Drop = extern "system" fn(RawEnv, RawObject);

/// JNI's own functions.
struct Before {
    make: Make,
    drop: Drop,
    make_weak: Make,
    drop_weak: Drop,
}

static BEFORE: OnceLock<Before> = OnceLock::new();

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
fn made(env: RawEnv, reference: RawObject, kind: i32) {
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
        if kind == event::JNI_GLOBALREF_ALLOC {
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
fn dropping(env: RawEnv, reference: RawObject, kind: i32) {
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
        if kind == event::JNI_GLOBALREF_FREE {
            bridge
                .refs
                .by_reference
                .lock()
                .remove(&(reference as usize));
        }
        bridge.send(env, kind, Payload { reference });
    });
}

fn fenced(body: impl FnOnce()) {
    let _ = jvmti::fence("JNI reference", body);
}

extern "system" fn make(env: RawEnv, object: RawObject) -> RawObject {
    let Some(before) = BEFORE.get() else {
        return std::ptr::null_mut();
    };
    let reference = (before.make)(env, object);
    fenced(|| made(env, reference, event::JNI_GLOBALREF_ALLOC));
    reference
}

extern "system" fn make_weak(env: RawEnv, object: RawObject) -> RawObject {
    let Some(before) = BEFORE.get() else {
        return std::ptr::null_mut();
    };
    let reference = (before.make_weak)(env, object);
    fenced(|| made(env, reference, event::JNI_WEAK_GLOBALREF_ALLOC));
    reference
}

extern "system" fn drop(env: RawEnv, reference: RawObject) {
    if let Some(before) = BEFORE.get() {
        fenced(|| dropping(env, reference, event::JNI_GLOBALREF_FREE));
        (before.drop)(env, reference);
    }
}

extern "system" fn drop_weak(env: RawEnv, reference: RawObject) {
    if let Some(before) = BEFORE.get() {
        fenced(|| dropping(env, reference, event::JNI_WEAK_GLOBALREF_FREE));
        (before.drop_weak)(env, reference);
    }
}

/// Installs the functions of this module, once and permanently.
///
/// # Errors
/// The VM refuses.
pub(crate) fn watch(env: Env<Live>, jni: Jni) -> jvmti::Result<()> {
    if BEFORE.get().is_some() {
        return Ok(());
    }
    // SAFETY: a JNI environment points to its table of functions, and the slots
    // have these signatures.
    unsafe {
        let table = *jni.raw();
        let slot = |slot: usize| *table.add(slot);
        let before = Before {
            make: std::mem::transmute::<*const c_void, Make>(slot(jni_slot::NewGlobalRef)),
            drop: std::mem::transmute::<*const c_void, Drop>(slot(jni_slot::DeleteGlobalRef)),
            make_weak: std::mem::transmute::<*const c_void, Make>(slot(jni_slot::NewWeakGlobalRef)),
            drop_weak: std::mem::transmute::<*const c_void, Drop>(slot(
                jni_slot::DeleteWeakGlobalRef,
            )),
        };
        if BEFORE.set(before).is_err() {
            return Ok(());
        }
        env.replace_jni(&[
            (jni_slot::NewGlobalRef, make as *const c_void),
            (jni_slot::DeleteGlobalRef, drop as *const c_void),
            (jni_slot::NewWeakGlobalRef, make_weak as *const c_void),
            (jni_slot::DeleteWeakGlobalRef, drop_weak as *const c_void),
        ])?;
    }
    Ok(())
}
