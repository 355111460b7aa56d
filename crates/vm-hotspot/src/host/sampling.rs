//! Sampled objects of VMs that do not sample (before JDK 11): inserted code counts the bytes that Java
//! code makes and reports one object per so many (`tracker/HprofSample.java`). What the VM itself
//! makes (clone, reflection) has an event, and is counted here.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use jvmti::sys::{FieldPtr, Value};
use jvmti::{Env, EventKind, FrameRow, Jni, Live, Object};

use super::Host;
use crate::heap::array_layout::ArrayLayout;
use crate::instrument::birth_calls::{Births, Step, hidden_frames};
use crate::instrument::changed_classes::{ChangedClasses, MOST_WHERE_SLOW};
use crate::instrument::rewrite::is_eligible;
use crate::threads::background::retransform_those;

const CLASS: &str = "java/lang/HprofSample";
/// Compiled from `tracker/HprofSample.java`.
const BYTES: &[u8] = include_bytes!("../../tracker/HprofSample.class");
const BIRTHS: Births = Births {
    class: CLASS,
    object: "object",
    array: "array",
    nested: "nested",
};

thread_local! {
    /// This thread is in a birth already.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
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
        let class = jni.define_boot_class(CLASS, BYTES)?;
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
        // The VM looks for native methods with the help of Java code: before anything is reported.
        let null = [Value {
            l: std::ptr::null_mut(),
        }];
        let told = jni.static_method(class, "told", "(Ljava/lang/Object;)I")?;
        jni.call_static_int(class, told, &null)?;
        let size = jni.static_method(class, "size", "(Ljava/lang/Object;)I")?;
        jni.call_static_int(class, size, &null)?;
        let _ = self.inserted.set(inserted);
        env.enable(EventKind::ClassFileLoadHook, true)?;
        self.insert(env, jni)?;
        self.tell_sampled(env, jni, true);
        Ok(())
    }

    fn insert(&self, env: Env<Live>, jni: Jni) -> jvmti::Result<()> {
        let goes_on = || !self.is_stopped.load(Ordering::SeqCst);
        let (_, refused) = retransform_those(env, jni, |_| true, goes_on, false)?;
        // Lines of methods are at other places.
        self.names.lock().forget_traces();
        if !refused.is_empty() {
            let count = refused.len();
            (self.message)(&format!("arrays made in {count} classes are not reported"));
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
        self.tell_sampled(env, jni, on);
        if takes_out && !was_out {
            let goes_on = || !self.is_stopped.load(Ordering::SeqCst);
            let refused = inserted.changed.put_back(env, jni, goes_on);
            self.names.lock().forget_traces();
            if refused > 0 {
                (self.message)(&format!("{refused} classes keep code that does nothing"));
            }
        }
        true
    }

    /// Has inserted code report objects or not; whether there is such code.
    pub(super) fn tell_sampled(&self, env: Env<Live>, jni: Jni, on: bool) -> bool {
        let Some(inserted) = self.inserted.get() else {
            return false;
        };
        jni.set_static_boolean(inserted.class, inserted.on, on);
        let _ = env.enable(EventKind::VmObjectAlloc, on);
        true
    }

    /// A class file with the calls in it; `None` if it stays as it is.
    pub(super) fn with_births(&self, name: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        let inserted = self.inserted.get()?;
        if !is_eligible(name) || name == CLASS || inserted.is_out.load(Ordering::SeqCst) {
            return None;
        }
        let mut births = BIRTHS;
        let patched = classfile::patch(bytes, &mut births).ok().flatten()?;
        inserted.changed.note(name);
        Some(patched.bytes)
    }

    /// Bytes to the next sample: exponential, so that every byte is as likely as any other.
    fn distance(&self) -> i64 {
        static STATE: AtomicU64 = AtomicU64::new(0x9e37_79b9_7f4a_7c15);
        let mut bits = STATE.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let uniform = ((bits ^ bits >> 31) >> 11) as f64 / (1_u64 << 53) as f64;
        (-(1.0 - uniform).ln() * f64::from(self.interval)) as i64
    }

    /// An object that the VM itself has made.
    pub(super) fn made_by_vm(
        &self,
        env: Env<Live>,
        jni: Jni,
        object: Object,
        class: Object,
        size: i64,
    ) {
        if self.samples() || INSIDE.get() {
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

    fn told(&self, jni: Jni, object: Object) -> i64 {
        if let Some(inserted) = self.inserted.get()
            && !self.is_stopped.load(Ordering::Relaxed)
            && !INSIDE.replace(true)
        {
            if let Some(class) = jni.object_class(object) {
                let size = inserted.env.object_size(object).unwrap_or(0);
                self.sampled(inserted.env, jni, object, class, size.cast_signed());
                jni.delete_local(class);
            }
            INSIDE.set(false);
        }
        self.distance()
    }
}

/// An object that inserted code reports; bytes to the next one.
pub(crate) fn told(jni: Jni, object: Object) -> i32 {
    let Some(host) = super::HOST.get() else {
        return i32::MAX;
    };
    i32::try_from(host.told(jni, object)).unwrap_or(i32::MAX)
}

/// Bytes of an object; 0 when nothing is sampled.
pub(crate) fn size(object: Object) -> i32 {
    let inserted = super::HOST.get().and_then(|host| host.inserted.get());
    let size = inserted.and_then(|inserted| inserted.env.object_size(object).ok());
    size.and_then(|size| i32::try_from(size).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inserted_class_makes_nothing_that_would_be_told() {
        let class = classfile::Class::parse(BYTES).expect("a class file");
        assert_eq!(class.name, CLASS.as_bytes());
        // But its counters, which are made before it is called.
        let mut births = BIRTHS;
        let patched = classfile::patch(BYTES, &mut births).expect("a class file");
        assert!(patched.is_some());
    }
}
