//! Objects that no bytecode makes: those of the VM, which has an event for them, and those of native code, counted by
//! replacing functions of JNI.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use jvmti::sys::FieldPtr;
use jvmti::{Capability, Env, EventKind, Jni, Live, Object};
use vmpi::MethodInfo;

use crate::alloc::tracked::Tracked;
use crate::instrument::natives::{is_inside, with_agent_guard};
use crate::vm::config::Config;
use crate::vm::hotspot::HotSpot;
use crate::vm::state::{NOWHERE, State};

/// Whether allocations are counted now.
static IS_ON: AtomicBool = AtomicBool::new(false);
static IS_WATCHED: AtomicBool = AtomicBool::new(false);

/// Starts to count them.
///
/// # Errors
/// When the VM refuses.
pub(crate) fn begin(hotspot: &HotSpot, env: Env<Live>, jni: Jni) -> jvmti::Result<()> {
    if hotspot.granted.has(Capability::GenerateVmObjectAllocEvents) {
        env.enable(EventKind::VmObjectAlloc, true)?;
    }
    if !IS_WATCHED.swap(true, Ordering::SeqCst) {
        env.report_native_allocations(jni, made)?;
    }
    switch(true);
    Ok(())
}

/// Switches counting of objects of native code on or off.
pub(crate) fn switch(on: bool) {
    IS_ON.store(on, Ordering::SeqCst);
}

/// The field of a string that has its characters.
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
    with_agent_guard(|| {
        jni.without_exception(|| {
            jni.local_frame(32, || {
                let mut all = vec![object];
                if is_string {
                    all.extend(characters(jni, object));
                }
                let mut state = hotspot.lock();
                state.native_allocated((env, jni), &all, &hotspot.config, &hotspot.tracked);
            });
        });
    });
}

impl State {
    /// Objects that native code made by JNI: one, or a string with its array.
    pub(crate) fn native_allocated(
        &mut self,
        (env, jni): (Env<Live>, Jni),
        made: &[Object],
        config: &Config,
        tracked: &Tracked,
    ) {
        // JDK 8 makes these by JNI.
        if let [Some(top), caller] = self.innermost(env, jni)
            && is_unsafe(top, caller)
        {
            return;
        }
        for object in made {
            self.sampled((env, jni), *object, config, tracked);
        }
    }

    /// The two innermost methods of the current stack.
    fn innermost(&mut self, env: Env<Live>, jni: Jni) -> [Option<&MethodInfo>; 2] {
        let mut rows = [NOWHERE; 2];
        let count = env.stack_into(None, &mut rows).unwrap_or(0);
        let frames = self.registry.stack(env, jni, &rows[..count], rows.len());
        let method = |at: usize| Some(&self.registry.methods.get(frames.get(at)?.method.0)?.info);
        [method(0), method(1)]
    }

    /// Whether the code that requests an object from the VM counts it itself, because callers of these native methods
    /// are instrumented.
    pub(crate) fn is_counted_by_caller(&mut self, env: Env<Live>, jni: Jni) -> bool {
        let [Some(top), caller] = self.innermost(env, jni) else {
            return false;
        };
        let is_copy = ["clone", "newArray", "multiNewArray", "newInstance0"];
        top.is_native && is_copy.contains(&top.name.as_str()) || is_unsafe(top, caller)
    }
}

/// Whether this is `Unsafe.allocateInstance`, called by code that counts the objects.
fn is_unsafe(top: &MethodInfo, caller: Option<&MethodInfo>) -> bool {
    let is_called = caller.is_some_and(|caller| !caller.is_native);
    top.is_native && top.name == "allocateInstance" && is_called
}
