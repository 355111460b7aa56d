//! Replaces the functions of JNI with which native code creates objects without a constructor by functions of this
//! crate, which report the created objects. (`NewObject` runs a constructor.)

use std::ffi::{c_char, c_void};
use std::sync::OnceLock;

use crate::agent::fence;
use crate::env::{Env, Live};
use crate::error::{Error, Result};
use crate::jni::{Jni, Object};
use crate::sys::{RawEnv, RawObject, jni_slot as slot};

/// Receives an object that native code has created, as a local reference of the caller, and whether it is a string,
/// which has an array of its own.
pub type Made = fn(Jni, Object, bool);

type MakeObject = extern "system" fn(RawEnv, RawObject) -> RawObject;
type MakeString = extern "system" fn(RawEnv, *const u16, i32) -> RawObject;
type MakeUtf = extern "system" fn(RawEnv, *const c_char) -> RawObject;
type MakeObjects = extern "system" fn(RawEnv, i32, RawObject, RawObject) -> RawObject;
type MakeArray = extern "system" fn(RawEnv, i32) -> RawObject;

/// Kinds of primitive arrays, whose slots are adjacent.
const KINDS: usize = 8;

/// The original functions of the table.
struct Before {
    object: MakeObject,
    string: MakeString,
    utf: MakeUtf,
    objects: MakeObjects,
    arrays: [MakeArray; KINDS],
    made: Made,
}

static BEFORE: OnceLock<Before> = OnceLock::new();

impl Before {
    fn of(jni: Jni, made: Made) -> Self {
        // SAFETY: a JNI environment points to its table of functions, and these slots
        // have these signatures.
        unsafe {
            let table = *jni.raw();
            let array = |at: usize| std::mem::transmute::<*const c_void, MakeArray>(*table.add(at));
            Self {
                object: std::mem::transmute::<*const c_void, MakeObject>(
                    *table.add(slot::AllocObject),
                ),
                string: std::mem::transmute::<*const c_void, MakeString>(
                    *table.add(slot::NewString),
                ),
                utf: std::mem::transmute::<*const c_void, MakeUtf>(*table.add(slot::NewStringUTF)),
                objects: std::mem::transmute::<*const c_void, MakeObjects>(
                    *table.add(slot::NewObjectArray),
                ),
                arrays: std::array::from_fn(|kind| array(slot::NewBooleanArray + kind)),
                made,
            }
        }
    }

    /// Reports the created object; null is not reported.
    fn emit(&self, env: RawEnv, made: RawObject, is_string: bool) -> RawObject {
        // SAFETY: JNI has just given it to the caller, with the caller's environment.
        let (jni, object) = unsafe { (Jni::from_raw(env), Object::from_raw(made)) };
        if let Some(object) = object {
            let _ = fence("JNI", || (self.made)(jni, object, is_string));
        }
        made
    }
}

/// Calls `make` with the original functions, and reports the object that it created.
fn make(env: RawEnv, is_string: bool, make: impl FnOnce(&Before) -> RawObject) -> RawObject {
    match BEFORE.get() {
        Some(before) => before.emit(env, make(before), is_string),
        None => std::ptr::null_mut(),
    }
}

extern "system" fn object(env: RawEnv, class: RawObject) -> RawObject {
    make(env, false, |before| (before.object)(env, class))
}

extern "system" fn string(env: RawEnv, text: *const u16, length: i32) -> RawObject {
    make(env, true, |before| (before.string)(env, text, length))
}

extern "system" fn utf(env: RawEnv, text: *const c_char) -> RawObject {
    make(env, true, |before| (before.utf)(env, text))
}

extern "system" fn objects(
    env: RawEnv,
    length: i32,
    class: RawObject,
    initial: RawObject,
) -> RawObject {
    make(env, false, |before| {
        (before.objects)(env, length, class, initial)
    })
}

extern "system" fn array<const KIND: usize>(env: RawEnv, length: i32) -> RawObject {
    make(env, false, |before| (before.arrays[KIND])(env, length))
}

impl Env<Live> {
    /// Reports to `made` every object that native code creates by JNI from now on, on all threads and permanently.
    /// Objects that the agent creates by JNI are also reported.
    ///
    /// # Errors
    /// The VM refuses, or this was called before.
    pub fn report_native_allocations(self, jni: Jni, made: Made) -> Result<()> {
        if BEFORE.set(Before::of(jni, made)).is_err() {
            return Err(Error::Jni("a second replacement"));
        }
        let arrays: [MakeArray; KINDS] = [
            array::<0>, array::<1>, array::<2>, array::<3>, array::<4>, array::<5>, array::<6>,
            array::<7>,
        ];
        let mut by = vec![
            (slot::AllocObject, object as MakeObject as *const c_void),
            (slot::NewString, string as MakeString as *const c_void),
            (slot::NewStringUTF, utf as MakeUtf as *const c_void),
            (
                slot::NewObjectArray,
                objects as MakeObjects as *const c_void,
            ),
        ];
        let slots = slot::NewBooleanArray..;
        by.extend(slots.zip(arrays.map(|array| array as *const c_void)));
        // SAFETY: the types are those of the slots, and functions of a library that the VM
        // never unloads stay callable.
        unsafe { self.replace_jni(&by)? };
        Ok(())
    }
}
