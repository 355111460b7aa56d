//! Sampled objects of VMs that do not sample (before JDK 11): inserted code counts the bytes that Java
//! code makes and reports one object per so many (`tracker/HprofSample.java`). What the VM itself
//! makes (clone, reflection) has an event, and is counted here.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering};

use jvmti::sys::FieldPtr;
use jvmti::{Env, EventKind, FrameRow, Jni, Live, Object};

use super::Host;
use crate::heap::array_layout::ArrayLayout;
use crate::instrument::changed_classes::{ChangedClasses, MOST_WHERE_SLOW};
use crate::instrument::natives::{
    Java_java_lang_HprofSample_sampled, Java_java_lang_HprofSample_size, is_inside,
    with_agent_guard,
};
use crate::instrument::new_object_calls::{NewObjectCalls, Step, hidden_frames};
use crate::instrument::rewrite::is_eligible;
use crate::threads::background::{loaded_names, retransform_those};
use crate::vm::hotspot::HotSpot;

/// The inserted class.
pub(crate) const CLASS: &str = "java/lang/HprofSample";
/// Compiled from `tracker/HprofSample.java`.
const BYTES: &[u8] = include_bytes!("../../tracker/HprofSample.class");
const NEW_OBJECT_CALLS: NewObjectCalls = NewObjectCalls {
    class: CLASS,
    object: "object",
    array: "array",
    nested: "nested",
};

thread_local! {
    /// Bytes to the next object of the VM's own that is reported.
    static LEFT: Cell<i64> = const { Cell::new(0) };
}

/// The inserted class.
#[derive(Debug)]
pub(super) struct Inserted {
    env: Env<Live>,
    /// Held weakly.
    class: Object,
    on: FieldPtr,
    changed: ChangedClasses,
    /// Classes stay as they are.
    is_out: AtomicBool,
}

impl Host {
    /// Inserts the code into every class there is; those to come get it when they are loaded.
    pub(super) fn begin_sampling(&self, env: Env<Live>, jni: Jni) -> jvmti::Result<()> {
        let class = match jni.find_class(CLASS) {
            // From the recording before.
            Ok(class) => class,
            Err(_) => jni.define_boot_class(CLASS, BYTES)?,
        };
        // With inserted code a method has other places.
        self.core.lock().registry.code_changes = true;
        let layout = jni.local_frame(300, || ArrayLayout::measure(env, jni))?;
        for (name, value) in [
            ("base", layout.base[8]),
            ("reference", 1 << layout.shift[2]),
            ("mask", layout.align - 1),
        ] {
            jni.set_static_int(class, jni.static_field(class, name, "I")?, value);
        }
        let inserted = Inserted {
            env,
            class: jni.new_weak(class)?,
            on: jni.static_field(class, "on", "Z")?,
            changed: ChangedClasses::default(),
            is_out: AtomicBool::new(false),
        };
        // While the library is being loaded into a program that runs, the VM does not look for native methods in it.
        let sampled = Java_java_lang_HprofSample_sampled as *const c_void;
        let size = Java_java_lang_HprofSample_size as *const c_void;
        for (name, function) in [(c"sampled", sampled), (c"size", size)] {
            // SAFETY: the functions take what the methods of the class do, and no agent's library is unloaded.
            unsafe { jni.register_native(class, (name, c"(Ljava/lang/Object;)I"), function)? };
        }
        let _ = self.inserted.set(inserted);
        env.enable(EventKind::ClassFileLoadHook, true)?;
        self.insert(env, jni)?;
        self.switch_inserted(jni, true);
        Ok(())
    }

    fn insert(&self, env: Env<Live>, jni: Jni) -> jvmti::Result<()> {
        let goes_on = || !self.is_stopped.load(Ordering::SeqCst);
        let (_, refused) = retransform_those(env, jni, |_| true, goes_on, false)?;
        if !refused.is_empty() {
            let count = refused.len();
            self.message(&format!("arrays made in {count} classes are not reported"));
        }
        Ok(())
    }

    /// Reports objects from now on, or no longer, and then removes the code again; whether that is
    /// done by inserted code.
    pub(super) fn switch_sampling(&self, env: Env<Live>, jni: Jni, on: bool) -> bool {
        let Some(inserted) = self.inserted.get() else {
            return false;
        };
        let takes_out = !on && inserted.changed.count() <= MOST_WHERE_SLOW;
        let was_out = inserted.is_out.swap(takes_out, Ordering::SeqCst);
        if on && was_out && self.insert(env, jni).is_err() {
            return false;
        }
        self.switch_inserted(jni, on);
        if takes_out && !was_out {
            let goes_on = || !self.is_stopped.load(Ordering::SeqCst);
            let refused = inserted.changed.put_back(env, jni, goes_on);
            if refused > 0 {
                self.message(&format!("{refused} classes keep code that does nothing"));
            }
        }
        true
    }

    /// Has inserted code report objects or not.
    pub(super) fn switch_inserted(&self, jni: Jni, on: bool) {
        if let Some(inserted) = self.inserted.get() {
            jni.set_static_boolean(inserted.class, inserted.on, on);
            if on || !self.core.config.allocations {
                let _ = self.core.env.enable(EventKind::VmObjectAlloc, on);
            }
        }
    }

    /// The recording has ended: takes the code out of the classes, as long as `goes_on` returns true. How many keep it.
    pub(crate) fn take_out(&self, env: Env<Live>, jni: Jni, goes_on: impl Fn() -> bool) -> usize {
        let Some(inserted) = self.inserted.get() else {
            return 0;
        };
        inserted.is_out.store(true, Ordering::SeqCst);
        inserted.changed.put_back(env, jni, goes_on)
    }

    /// A class file with the calls in it; `None` if it stays as it is.
    pub(crate) fn with_new_object_calls(&self, name: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        let inserted = self.inserted.get()?;
        if !is_eligible(name) || inserted.is_out.load(Ordering::SeqCst) {
            return None;
        }
        let mut calls = NEW_OBJECT_CALLS;
        let patched = classfile::patch(bytes, &mut calls).ok().flatten()?;
        let loaded = || loaded_names(inserted.env, self.core.java.jni()?);
        inserted.changed.note(name, loaded);
        Some(patched.bytes)
    }

    /// Bytes to the next sample: exponential, so that every byte is as likely as any other.
    fn distance(&self) -> i64 {
        (-(1.0 - crate::alloc::thinned::uniform()).ln() * f64::from(self.interval)) as i64
    }

    /// An object that the VM itself has made.
    pub(crate) fn made_by_vm(
        &self,
        env: Env<Live>,
        jni: Jni,
        object: Object,
        class: Object,
        size: i64,
    ) {
        if self.inserted.get().is_none() {
            return;
        }
        let rest = LEFT.get() - size;
        LEFT.set(rest);
        if rest < 0 {
            LEFT.set(self.distance());
            self.sampled(env, jni, object, class, size);
        }
    }

    /// Frames on top of a stack that lead to the birth of an object: inserted code, and its constructors.
    pub(super) fn hidden(
        &self,
        env: Env<Live>,
        jni: Jni,
        class: Object,
        rows: &[FrameRow],
    ) -> usize {
        let Some(inserted) = self.inserted.get() else {
            return 0;
        };
        let step = |row: &FrameRow| {
            let Ok(Some(of)) = env.method_class(row.method) else {
                return Step::Other;
            };
            let is = |other| jni.is_same(of, other);
            let is_constructor = || {
                env.method_name(row.method)
                    .is_ok_and(|(name, _)| name == "<init>")
            };
            let step = if is(inserted.class) {
                Step::Ours
            } else if is_constructor() {
                Step::Constructor(is(class))
            } else {
                Step::Other
            };
            jni.delete_local(of);
            step
        };
        hidden_frames(rows.iter().map(step), &true)
    }

    fn report(&self, jni: Jni, object: Object) -> i64 {
        if let Some(inserted) = self.inserted.get()
            && !self.is_stopped.load(Ordering::Relaxed)
            && !is_inside()
        {
            with_agent_guard(|| {
                if let Some(class) = jni.object_class(object) {
                    let size = inserted.env.object_size(object).unwrap_or(0);
                    self.sampled(inserted.env, jni, object, class, size.cast_signed());
                    jni.delete_local(class);
                }
            });
        }
        self.distance()
    }
}

/// An object that inserted code reports; bytes to the next one.
pub(crate) fn sampled(jni: Jni, object: Object) -> i32 {
    let Some(host) = HotSpot::get().and_then(HotSpot::host) else {
        return i32::MAX;
    };
    i32::try_from(host.report(jni, object)).unwrap_or(i32::MAX)
}

/// Bytes of an object; 0 when nothing is sampled.
pub(crate) fn size(object: Object) -> i32 {
    let host = HotSpot::get().and_then(HotSpot::host);
    let inserted = host.and_then(|host| host.inserted.get());
    let size = inserted.and_then(|inserted| inserted.env.object_size(object).ok());
    size.and_then(|size| i32::try_from(size).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inserted_class_makes_nothing_that_would_be_reported() {
        let class = classfile::Class::parse(BYTES).expect("a class file");
        assert_eq!(class.name, CLASS.as_bytes());
        // But its counters, which are made before it is called.
        let mut calls = NEW_OBJECT_CALLS;
        let patched = classfile::patch(BYTES, &mut calls).expect("a class file");
        assert!(patched.is_some());
    }
}
