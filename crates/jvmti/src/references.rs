//! Replaces the four functions of JNI that create and delete global references by some that also call hooks. This
//! library itself calls the VM's own functions.

use std::ffi::c_void;
use std::sync::OnceLock;

use crate::agent::fence;
use crate::env::{Env, Live};
use crate::error::{Error, Result};
use crate::jni::{Jni, Object};
use crate::sys::{RawEnv, RawObject, jni_slot as slot, table_call};

type Make = extern "system" fn(RawEnv, RawObject) -> RawObject;
type Drop = extern "system" fn(RawEnv, RawObject);

/// The four functions.
#[derive(Clone, Copy, Debug)]
struct Functions {
    make: Make,
    drop: Drop,
    make_weak: Make,
    drop_weak: Drop,
}

/// What is called for each global reference. The last parameter is whether it is weak.
#[derive(Clone, Copy, Debug)]
pub struct ReferenceHooks {
    /// A reference was created, and is returned to its maker afterwards.
    pub made: fn(RawEnv, RawObject, bool),
    /// A reference is about to be deleted.
    pub dropping: fn(RawEnv, RawObject, bool),
}

/// The functions that were in the table before they were first replaced, and the hooks.
static REPLACED: OnceLock<(Functions, ReferenceHooks)> = OnceLock::new();

const OURS: Functions = Functions {
    make,
    drop: drop_global,
    make_weak,
    drop_weak,
};

impl Functions {
    /// The original functions, whether or not they are replaced now.
    fn own(jni: Jni) -> Self {
        REPLACED
            .get()
            .map_or_else(|| Self::of(jni), |(before, _)| *before)
    }

    fn of(jni: Jni) -> Self {
        // SAFETY: a JNI environment points to its table of functions, and these slots
        // have these signatures.
        unsafe {
            let table = *jni.raw();
            let make = |at: usize| std::mem::transmute::<*const c_void, Make>(*table.add(at));
            let drop = |at: usize| std::mem::transmute::<*const c_void, Drop>(*table.add(at));
            Self {
                make: make(slot::NewGlobalRef),
                drop: drop(slot::DeleteGlobalRef),
                make_weak: make(slot::NewWeakGlobalRef),
                drop_weak: drop(slot::DeleteWeakGlobalRef),
            }
        }
    }
}

/// Calls a function that creates a reference, and then the hook.
fn made(
    (env, object, is_weak): (RawEnv, RawObject, bool),
    function: fn(&Functions) -> Make,
) -> RawObject {
    let Some((before, hooks)) = REPLACED.get() else {
        return std::ptr::null_mut();
    };
    let reference = function(before)(env, object);
    let _ = fence("JNI reference", || (hooks.made)(env, reference, is_weak));
    reference
}

/// Calls the hook, and then a function that deletes a reference.
fn dropped((env, reference, is_weak): (RawEnv, RawObject, bool), function: fn(&Functions) -> Drop) {
    if let Some((before, hooks)) = REPLACED.get() {
        let _ = fence("JNI reference", || {
            (hooks.dropping)(env, reference, is_weak);
        });
        function(before)(env, reference);
    }
}

extern "system" fn make(env: RawEnv, object: RawObject) -> RawObject {
    made((env, object, false), |before| before.make)
}

extern "system" fn make_weak(env: RawEnv, object: RawObject) -> RawObject {
    made((env, object, true), |before| before.make_weak)
}

extern "system" fn drop_global(env: RawEnv, reference: RawObject) {
    dropped((env, reference, false), |before| before.drop);
}

extern "system" fn drop_weak(env: RawEnv, reference: RawObject) {
    dropped((env, reference, true), |before| before.drop_weak);
}

impl Env<Live> {
    /// Replaces the functions that create and delete global references, for all threads, by some that also call the
    /// hooks. The hooks of the first call stay.
    ///
    /// # Errors
    /// The VM refuses, or the functions are already replaced.
    pub fn replace_references(self, jni: Jni, hooks: ReferenceHooks) -> Result<()> {
        let now = Functions::of(jni);
        if std::ptr::fn_addr_eq(now.make, OURS.make) {
            return Err(Error::Jni("a second replacement"));
        }
        REPLACED.get_or_init(|| (now, hooks));
        self.set_references(OURS)
    }

    /// Restores the previous functions, unless others that call the present ones have been installed since.
    ///
    /// # Errors
    /// The VM refuses, or others have been installed.
    pub fn restore_references(self, jni: Jni) -> Result<()> {
        let now = Functions::of(jni);
        match REPLACED.get() {
            Some((before, _)) if std::ptr::fn_addr_eq(now.make, OURS.make) => {
                self.set_references(*before)
            }
            _ => Err(Error::Jni("another agent's functions")),
        }
    }

    fn set_references(self, to: Functions) -> Result<()> {
        let by = [
            (slot::NewGlobalRef, to.make as *const c_void),
            (slot::DeleteGlobalRef, to.drop as *const c_void),
            (slot::NewWeakGlobalRef, to.make_weak as *const c_void),
            (slot::DeleteWeakGlobalRef, to.drop_weak as *const c_void),
        ];
        // SAFETY: the types are those of the slots, and functions of a library that the VM
        // never unloads stay callable.
        unsafe { self.replace_jni(&by)? };
        Ok(())
    }
}

impl Jni {
    /// Runs `body` while a pending exception is cleared and restored afterwards: native code may create a reference
    /// while one is pending.
    pub fn without_exception<T>(self, body: impl FnOnce() -> T) -> T {
        // SAFETY: slot 15 takes nothing and gives a local reference.
        let pending =
            unsafe { table_call!(self.raw(), 0, slot::ExceptionOccurred, () -> RawObject) };
        let Some(pending) = Object::new(pending) else {
            return body();
        };
        self.clear_exception();
        let result = body();
        self.clear_exception();
        // SAFETY: slot 13 is (object).
        unsafe { table_call!(self.raw(), 0, slot::Throw, (pending.raw() => RawObject) -> i32) };
        self.delete_local(pending);
        result
    }

    /// A global reference of the agent, for which no hook is called.
    pub fn new_global(self, object: Object) -> Result<Object> {
        let make = Functions::own(self).make;
        self.found("NewGlobalRef", make(self.raw(), object.raw()))
    }

    /// Deletes a global reference.
    pub fn delete_global(self, object: Object) {
        (Functions::own(self).drop)(self.raw(), object.raw());
    }

    /// A weak global reference.
    pub fn new_weak(self, object: Object) -> Result<Object> {
        let make = Functions::own(self).make_weak;
        self.found("NewWeakGlobalRef", make(self.raw(), object.raw()))
    }

    /// A weak global reference, `None` if memory is short. Cheaper than [`Jni::new_weak`], because it checks for an
    /// exception only then.
    #[must_use]
    pub fn weak(self, object: Object) -> Option<Object> {
        let raw = (Functions::own(self).make_weak)(self.raw(), object.raw());
        if raw.is_null() {
            self.clear_exception();
        }
        Object::new(raw)
    }

    /// Deletes a weak global reference.
    pub fn delete_weak(self, object: Object) {
        (Functions::own(self).drop_weak)(self.raw(), object.raw());
    }
}
