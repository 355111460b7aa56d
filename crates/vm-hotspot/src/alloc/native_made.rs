//! Objects that no bytecode makes: those of the VM, which has an event for them, and those of
//! native code, whose functions of JNI are replaced.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use jvmti::sys::FieldPtr;
use jvmti::{Capability, Env, EventKind, Jni, Live, Object};

use crate::instrument::natives::{is_inside, uncounted};
use crate::vm::hotspot::HotSpot;

/// Whether allocations are counted at the moment.
static IS_ON: AtomicBool = AtomicBool::new(false);
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// Counts them from now on.
///
/// # Errors
/// When the VM refuses.
pub(crate) fn begin(hotspot: &HotSpot, env: Env<Live>, jni: Jni) -> jvmti::Result<()> {
    if hotspot.granted.has(Capability::GenerateVmObjectAllocEvents) {
        env.enable(EventKind::VmObjectAlloc, true)?;
    }
    if !IS_WATCHED.swap(true, Ordering::SeqCst) {
        env.tell_native_allocations(jni, made)?;
    }
    switch(true);
    Ok(())
}

/// Counts what native code makes, or does not.
pub(crate) fn switch(on: bool) {
    IS_ON.store(on, Ordering::SeqCst);
}

/// Where a string has its characters.
fn characters(jni: Jni, string: Object) -> Option<Object> {
    static VALUE: OnceLock<Option<FieldPtr>> = OnceLock::new();
    let find = || {
        let class = jni.object_class(string)?;
        let fields = ["[B", "[C"].map(|kind| jni.field(class, "value", kind).ok());
        fields.into_iter().flatten().next()
    };
    jni.get_object(string, (*VALUE.get_or_init(find))?)
}

/// Native code has made an object.
fn made(jni: Jni, object: Object, is_string: bool) {
    if !IS_ON.load(Ordering::Relaxed) || is_inside() {
        return;
    }
    let Some(hotspot) = HotSpot::get().filter(|hotspot| !hotspot.dead.load(Ordering::Relaxed))
    else {
        return;
    };
    let Some(env) = hotspot.live() else { return };
    uncounted(|| {
        jni.without_exception(|| {
            jni.local_frame(32, || {
                let mut all = vec![object];
                if is_string {
                    all.extend(characters(jni, object));
                }
                let mut state = hotspot.lock();
                state.native_allocated((env, jni), &all, &hotspot.config, &hotspot.followed);
            });
        });
    });
}
