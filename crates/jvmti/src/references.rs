//! Replaces the four functions of JNI that create and delete global references by others. This library itself calls the
//! VM's own functions.

use std::ffi::c_void;
use std::sync::OnceLock;

use crate::env::{Env, Live};
use crate::error::{Error, Result};
use crate::jni::{Jni, Object};
use crate::sys::{RawEnv, RawObject, jni_slot as slot, table_call};

/// `NewGlobalRef`, `NewWeakGlobalRef`.
pub type MakeReference = extern "system" fn(RawEnv, RawObject) -> RawObject;
/// `DeleteGlobalRef`, `DeleteWeakGlobalRef`.
pub type DropReference = extern "system" fn(RawEnv, RawObject);

/// The four functions.
#[derive(Clone, Copy, Debug)]
pub struct ReferenceFunctions {
    /// `NewGlobalRef`.
    pub make: MakeReference,
    /// `DeleteGlobalRef`.
    pub drop: DropReference,
    /// `NewWeakGlobalRef`.
    pub make_weak: MakeReference,
    /// `DeleteWeakGlobalRef`.
    pub drop_weak: DropReference,
}

static BEFORE: OnceLock<ReferenceFunctions> = OnceLock::new();

impl ReferenceFunctions {
    /// The functions that were in the table before; `None` while they are not replaced.
    #[must_use]
    pub fn before() -> Option<&'static Self> {
        BEFORE.get()
    }

    /// The original functions, whether or not they are replaced now.
    pub(crate) fn own(jni: Jni) -> Self {
        BEFORE.get().copied().unwrap_or_else(|| Self::of(jni))
    }

    fn of(jni: Jni) -> Self {
        // SAFETY: a JNI environment points to its table of functions, and these slots
        // have these signatures.
        unsafe {
            let table = *jni.raw();
            let make =
                |at: usize| std::mem::transmute::<*const c_void, MakeReference>(*table.add(at));
            let drop =
                |at: usize| std::mem::transmute::<*const c_void, DropReference>(*table.add(at));
            Self {
                make: make(slot::NewGlobalRef),
                drop: drop(slot::DeleteGlobalRef),
                make_weak: make(slot::NewWeakGlobalRef),
                drop_weak: drop(slot::DeleteWeakGlobalRef),
            }
        }
    }
}

impl Env<Live> {
    /// Replaces the functions that create and delete global references, for all threads. Each new function must call
    /// the original in [`ReferenceFunctions::before`].
    ///
    /// # Errors
    /// The VM refuses, or the functions are already replaced.
    pub fn replace_references(self, jni: Jni, ours: ReferenceFunctions) -> Result<()> {
        let now = ReferenceFunctions::of(jni);
        if std::ptr::fn_addr_eq(now.make, ours.make) {
            return Err(Error::Jni("a second replacement"));
        }
        BEFORE.get_or_init(|| now);
        self.set_references(ours)
    }

    /// Restores the previous functions, unless others that call `ours` have been installed since.
    ///
    /// # Errors
    /// The VM refuses, or others have been installed.
    pub fn restore_references(self, jni: Jni, ours: ReferenceFunctions) -> Result<()> {
        let now = ReferenceFunctions::of(jni);
        match BEFORE.get() {
            Some(before) if std::ptr::fn_addr_eq(now.make, ours.make) => {
                self.set_references(*before)
            }
            _ => Err(Error::Jni("another agent's functions")),
        }
    }

    fn set_references(self, ours: ReferenceFunctions) -> Result<()> {
        let by = [
            (slot::NewGlobalRef, ours.make as *const c_void),
            (slot::DeleteGlobalRef, ours.drop as *const c_void),
            (slot::NewWeakGlobalRef, ours.make_weak as *const c_void),
            (slot::DeleteWeakGlobalRef, ours.drop_weak as *const c_void),
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

    /// A global reference of the agent, which is not reported as one of the program: see [`ReferenceFunctions`].
    pub fn new_global(self, object: Object) -> Result<Object> {
        let make = ReferenceFunctions::own(self).make;
        self.found("NewGlobalRef", make(self.raw(), object.raw()))
    }

    /// Deletes a global reference.
    pub fn delete_global(self, object: Object) {
        (ReferenceFunctions::own(self).drop)(self.raw(), object.raw());
    }

    /// A weak global reference.
    pub fn new_weak(self, object: Object) -> Result<Object> {
        let make = ReferenceFunctions::own(self).make_weak;
        self.found("NewWeakGlobalRef", make(self.raw(), object.raw()))
    }

    /// A weak global reference, `None` if memory is short. Cheaper than [`Jni::new_weak`], because it checks for an
    /// exception only then.
    #[must_use]
    pub fn weak(self, object: Object) -> Option<Object> {
        let raw = (ReferenceFunctions::own(self).make_weak)(self.raw(), object.raw());
        if raw.is_null() {
            self.clear_exception();
        }
        Object::new(raw)
    }

    /// Deletes a weak global reference.
    pub fn delete_weak(self, object: Object) {
        (ReferenceFunctions::own(self).drop_weak)(self.raw(), object.raw());
    }
}
