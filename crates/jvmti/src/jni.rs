//! A thread's JNI environment and the VM handle.

use std::ffi::{CString, c_char, c_void};
use std::ptr::{self, NonNull};

use crate::error::{Error, Result};
use crate::sys::{
    FieldPtr, JNI_VERSION_1_6, MethodPtr, RawEnv, RawObject, Value, jni_slot as slot,
    signal_safe_call, table_call, vm_slot,
};
use crate::text::decode_modified_utf8;

/// A reference that is not null. A local one is valid only in its frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Object(NonNull<c_void>);

// SAFETY: global references may cross threads; local ones are the caller's duty,
// as the crate's documentation says.
unsafe impl Send for Object {}
// SAFETY: as above.
unsafe impl Sync for Object {}

impl Object {
    /// Wraps a reference that the VM returned; `None` for null.
    #[must_use]
    pub(crate) fn new(raw: RawObject) -> Option<Self> {
        NonNull::new(raw).map(Self)
    }

    /// Wraps a reference passed to an entry point by the VM.
    ///
    /// # Safety
    /// `raw` is null or a valid JNI reference for as long as the result is used.
    #[must_use]
    pub unsafe fn from_raw(raw: RawObject) -> Option<Self> {
        Self::new(raw)
    }

    /// The references of a list that are not null.
    pub(crate) fn list(raw: Vec<RawObject>) -> Vec<Self> {
        raw.into_iter().filter_map(Self::new).collect()
    }

    /// The raw reference.
    #[must_use]
    pub fn raw(self) -> RawObject {
        self.0.as_ptr()
    }
}

/// The VM of this process.
#[derive(Clone, Copy, Debug)]
pub struct JavaVm(RawEnv);

// SAFETY: the invoke interface may be used from any thread.
unsafe impl Send for JavaVm {}
// SAFETY: as above.
unsafe impl Sync for JavaVm {}

impl JavaVm {
    /// Wraps the pointer given to an agent's entry point.
    ///
    /// # Safety
    /// `raw` is the `JavaVM*` of this process.
    #[must_use]
    pub unsafe fn from_raw(raw: RawEnv) -> Self {
        Self(raw)
    }

    /// An environment of `version` (JNI or JVMTI) for this thread.
    pub fn get_env(self, version: i32) -> Result<RawEnv> {
        let mut env: RawEnv = ptr::null_mut();
        // SAFETY: slot 6 is (env out, version).
        let code = unsafe {
            signal_safe_call!(self.0, 0, vm_slot::GetEnv, (&raw mut env => *mut RawEnv, version => i32) -> i32)
        };
        if code != 0 || env.is_null() {
            Err(Error::Jni("GetEnv"))
        } else {
            Ok(env)
        }
    }

    /// This thread's JNI environment, if it is attached. Signal-safe.
    #[must_use]
    pub fn jni(self) -> Option<Jni> {
        self.get_env(JNI_VERSION_1_6).ok().map(Jni)
    }

    /// Attaches this thread as a daemon.
    pub fn attach_daemon(self) -> Result<Jni> {
        let mut env: RawEnv = ptr::null_mut();
        // SAFETY: slot 7 is (env out, args); null arguments are allowed.
        let code = unsafe {
            table_call!(self.0, 0, vm_slot::AttachCurrentThreadAsDaemon, (&raw mut env => *mut RawEnv, ptr::null_mut() => *mut c_void) -> i32)
        };
        if code != 0 {
            Err(Error::Jni("AttachCurrentThreadAsDaemon"))
        } else {
            Ok(Jni(env))
        }
    }

    /// Detaches this thread.
    pub fn detach(self) {
        // SAFETY: slot 5 takes nothing.
        unsafe { table_call!(self.0, 0, vm_slot::DetachCurrentThread, () -> i32) };
    }
}

/// A thread's JNI environment. If a call throws an exception, it is cleared and becomes an error: the program never
/// sees an exception of the agent.
#[derive(Clone, Copy, Debug)]
pub struct Jni(RawEnv);

/// `CString::new` for the fixed names used here.
fn c(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

impl Jni {
    /// Wraps the pointer given to a callback.
    ///
    /// # Safety
    /// `raw` is the JNI environment of the current thread.
    #[must_use]
    pub unsafe fn from_raw(raw: RawEnv) -> Self {
        Self(raw)
    }

    /// The pointer.
    #[must_use]
    pub fn raw(self) -> RawEnv {
        self.0
    }

    /// Clears a pending exception; returns whether there was one.
    pub fn clear_exception(self) -> bool {
        // SAFETY: slots 228 and 17 take nothing.
        unsafe {
            if table_call!(self.0, 0, slot::ExceptionCheck, () -> u8) == 0 {
                return false;
            }
            table_call!(self.0, 0, slot::ExceptionClear, () -> ());
        }
        true
    }

    pub(crate) fn found(self, what: &'static str, raw: RawObject) -> Result<Object> {
        if self.clear_exception() {
            return Err(Error::Jni(what));
        }
        Object::new(raw).ok_or(Error::Jni(what))
    }

    /// A class by its name (`java/lang/Thread`), found by the boot loader or the caller's loader.
    pub fn find_class(self, name: &str) -> Result<Object> {
        let name = c(name);
        // SAFETY: slot 6 is (name).
        let raw = unsafe {
            table_call!(self.0, 0, slot::FindClass, (name.as_ptr() => *const c_char) -> RawObject)
        };
        self.found("FindClass", raw)
    }

    /// Defines a class in the boot loader.
    pub fn define_boot_class(self, name: &str, bytes: &[u8]) -> Result<Object> {
        let name = c(name);
        // SAFETY: slot 5 is (name, loader, bytes, length); null is the boot loader.
        let raw = unsafe {
            table_call!(self.0, 0, slot::DefineClass, (name.as_ptr() => *const c_char, ptr::null_mut() => RawObject, bytes.as_ptr() => *const u8, bytes.len() as i32 => i32) -> RawObject)
        };
        self.found("DefineClass", raw)
    }

    /// A method of a class.
    pub fn method(self, class: Object, name: &str, descriptor: &str) -> Result<MethodPtr> {
        self.member(slot::GetMethodID, class, name, descriptor, "GetMethodID")
            .map(MethodPtr)
    }

    /// A static method of a class.
    pub fn static_method(self, class: Object, name: &str, descriptor: &str) -> Result<MethodPtr> {
        self.member(
            slot::GetStaticMethodID,
            class,
            name,
            descriptor,
            "GetStaticMethodID",
        )
        .map(MethodPtr)
    }

    /// A static field of a class.
    pub fn static_field(self, class: Object, name: &str, descriptor: &str) -> Result<FieldPtr> {
        self.member(
            slot::GetStaticFieldID,
            class,
            name,
            descriptor,
            "GetStaticFieldID",
        )
        .map(FieldPtr)
    }

    /// An instance field of a class.
    pub fn field(self, class: Object, name: &str, descriptor: &str) -> Result<FieldPtr> {
        self.member(slot::GetFieldID, class, name, descriptor, "GetFieldID")
            .map(FieldPtr)
    }

    fn member(
        self,
        slot: usize,
        class: Object,
        name: &str,
        descriptor: &str,
        what: &'static str,
    ) -> Result<*mut c_void> {
        let (name, descriptor) = (c(name), c(descriptor));
        // SAFETY: the four member lookups share (class, name, descriptor).
        let raw = unsafe {
            table_call!(self.0, 0, slot, (class.raw() => RawObject, name.as_ptr() => *const c_char, descriptor.as_ptr() => *const c_char) -> *mut c_void)
        };
        if self.clear_exception() || raw.is_null() {
            Err(Error::Jni(what))
        } else {
            Ok(raw)
        }
    }

    /// Calls an instance method that returns a reference.
    pub fn call_object(
        self,
        object: Object,
        method: MethodPtr,
        args: &[Value],
    ) -> Result<Option<Object>> {
        locks::before_java();
        // SAFETY: slot 36 is (object, method, args); the caller matches the descriptor.
        let raw = unsafe {
            table_call!(self.0, 0, slot::CallObjectMethodA, (object.raw() => RawObject, method => MethodPtr, args.as_ptr() => *const Value) -> RawObject)
        };
        if self.clear_exception() {
            Err(Error::Jni("CallObjectMethod"))
        } else {
            Ok(Object::new(raw))
        }
    }

    /// Calls an instance method that returns nothing.
    pub fn call_void(self, object: Object, method: MethodPtr, args: &[Value]) -> Result<()> {
        locks::before_java();
        // SAFETY: slot 63 is (object, method, args).
        unsafe {
            table_call!(self.0, 0, slot::CallVoidMethodA, (object.raw() => RawObject, method => MethodPtr, args.as_ptr() => *const Value) -> ())
        };
        if self.clear_exception() {
            Err(Error::Jni("CallVoidMethod"))
        } else {
            Ok(())
        }
    }

    /// Calls an instance method that returns a `long`.
    pub fn call_long(self, object: Object, method: MethodPtr) -> Result<i64> {
        locks::before_java();
        // SAFETY: slot 54 is (object, method, args).
        let value = unsafe {
            table_call!(self.0, 0, slot::CallLongMethodA, (object.raw() => RawObject, method => MethodPtr, ptr::null() => *const Value) -> i64)
        };
        if self.clear_exception() {
            Err(Error::Jni("CallLongMethod"))
        } else {
            Ok(value)
        }
    }

    /// Calls a static method that returns a reference.
    pub fn call_static_object(
        self,
        class: Object,
        method: MethodPtr,
        args: &[Value],
    ) -> Result<Option<Object>> {
        locks::before_java();
        // SAFETY: slot 116 is (class, method, args).
        let raw = unsafe {
            table_call!(self.0, 0, slot::CallStaticObjectMethodA, (class.raw() => RawObject, method => MethodPtr, args.as_ptr() => *const Value) -> RawObject)
        };
        if self.clear_exception() {
            Err(Error::Jni("CallStaticObjectMethod"))
        } else {
            Ok(Object::new(raw))
        }
    }

    /// Calls a static method that returns an `int`.
    pub fn call_static_int(self, class: Object, method: MethodPtr, args: &[Value]) -> Result<i32> {
        locks::before_java();
        // SAFETY: slot 131 is (class, method, args).
        let value = unsafe {
            table_call!(self.0, 0, slot::CallStaticIntMethodA, (class.raw() => RawObject, method => MethodPtr, args.as_ptr() => *const Value) -> i32)
        };
        if self.clear_exception() {
            Err(Error::Jni("CallStaticIntMethod"))
        } else {
            Ok(value)
        }
    }

    /// Calls a static method that returns nothing.
    pub fn call_static_void(self, class: Object, method: MethodPtr, args: &[Value]) -> Result<()> {
        locks::before_java();
        // SAFETY: slot 143 is (class, method, args).
        unsafe {
            table_call!(self.0, 0, slot::CallStaticVoidMethodA, (class.raw() => RawObject, method => MethodPtr, args.as_ptr() => *const Value) -> ())
        };
        if self.clear_exception() {
            Err(Error::Jni("CallStaticVoidMethod"))
        } else {
            Ok(())
        }
    }

    /// Creates an object with a constructor.
    pub fn new_object(
        self,
        class: Object,
        constructor: MethodPtr,
        args: &[Value],
    ) -> Result<Object> {
        locks::before_java();
        // SAFETY: slot 30 is (class, constructor, args).
        let raw = unsafe {
            table_call!(self.0, 0, slot::NewObjectA, (class.raw() => RawObject, constructor => MethodPtr, args.as_ptr() => *const Value) -> RawObject)
        };
        self.found("NewObject", raw)
    }

    /// A Java string.
    pub fn new_string(self, text: &str) -> Result<Object> {
        locks::before_java();
        let text = c(text);
        // SAFETY: slot 167 is (text).
        let raw = unsafe {
            table_call!(self.0, 0, slot::NewStringUTF, (text.as_ptr() => *const c_char) -> RawObject)
        };
        self.found("NewStringUTF", raw)
    }

    /// The text of a Java string.
    pub fn string(self, string: Object) -> Result<String> {
        // SAFETY: slots 168 to 170; the characters are copied before release.
        unsafe {
            let len = table_call!(self.0, 0, slot::GetStringUTFLength, (string.raw() => RawObject) -> i32);
            let chars = table_call!(self.0, 0, slot::GetStringUTFChars, (string.raw() => RawObject, ptr::null_mut() => *mut u8) -> *const c_char);
            if chars.is_null() {
                self.clear_exception();
                return Err(Error::Jni("GetStringUTFChars"));
            }
            let bytes =
                std::slice::from_raw_parts(chars.cast::<u8>(), usize::try_from(len).unwrap_or(0));
            let text = decode_modified_utf8(bytes);
            table_call!(self.0, 0, slot::ReleaseStringUTFChars, (string.raw() => RawObject, chars => *const c_char) -> ());
            Ok(text)
        }
    }

    /// Whether the object of a weak global reference was freed.
    #[must_use]
    pub fn is_dead(self, weak: Object) -> bool {
        // SAFETY: slot 24 is (a, b); null matches a weak reference whose object was freed.
        unsafe {
            table_call!(self.0, 0, slot::IsSameObject, (weak.raw() => RawObject, ptr::null_mut() => RawObject) -> u8)
                != 0
        }
    }

    /// Whether two references refer to one object.
    #[must_use]
    pub fn is_same(self, a: Object, b: Object) -> bool {
        // SAFETY: slot 24 is (a, b).
        unsafe {
            table_call!(self.0, 0, slot::IsSameObject, (a.raw() => RawObject, b.raw() => RawObject) -> u8)
                != 0
        }
    }

    /// Whether an object is an instance of a class or of a subtype of it.
    #[must_use]
    pub fn is_instance(self, object: Object, class: Object) -> bool {
        // SAFETY: slot 32 is (object, class).
        unsafe {
            table_call!(self.0, 0, slot::IsInstanceOf, (object.raw() => RawObject, class.raw() => RawObject) -> u8)
                != 0
        }
    }

    /// The class of an object.
    #[must_use]
    pub fn object_class(self, object: Object) -> Option<Object> {
        // SAFETY: slot 31 is (object).
        Object::new(unsafe {
            table_call!(self.0, 0, slot::GetObjectClass, (object.raw() => RawObject) -> RawObject)
        })
    }

    /// The superclass; `None` for interfaces and `Object`.
    #[must_use]
    pub fn superclass(self, class: Object) -> Option<Object> {
        // SAFETY: slot 10 is (class).
        Object::new(unsafe {
            table_call!(self.0, 0, slot::GetSuperclass, (class.raw() => RawObject) -> RawObject)
        })
    }

    /// Reads an object field.
    #[must_use]
    pub fn get_object(self, object: Object, field: FieldPtr) -> Option<Object> {
        // SAFETY: slot 95 is (object, field).
        Object::new(unsafe {
            table_call!(self.0, 0, slot::GetObjectField, (object.raw() => RawObject, field => FieldPtr) -> RawObject)
        })
    }

    /// Reads a `byte` field.
    #[must_use]
    pub fn get_byte(self, object: Object, field: FieldPtr) -> i8 {
        // SAFETY: slot 97 is (object, field).
        unsafe {
            table_call!(self.0, 0, slot::GetByteField, (object.raw() => RawObject, field => FieldPtr) -> i8)
        }
    }

    /// Reads an `int` field.
    #[must_use]
    pub fn get_int(self, object: Object, field: FieldPtr) -> i32 {
        // SAFETY: slot 100 is (object, field).
        unsafe {
            table_call!(self.0, 0, slot::GetIntField, (object.raw() => RawObject, field => FieldPtr) -> i32)
        }
    }

    /// Reads a `long` field.
    #[must_use]
    pub fn get_long(self, object: Object, field: FieldPtr) -> i64 {
        // SAFETY: slot 101 is (object, field).
        unsafe {
            table_call!(self.0, 0, slot::GetLongField, (object.raw() => RawObject, field => FieldPtr) -> i64)
        }
    }

    /// Writes an object field.
    pub fn set_object(self, object: Object, field: FieldPtr, value: Option<Object>) {
        let raw = value.map_or(ptr::null_mut(), Object::raw);
        // SAFETY: slot 104 is (object, field, value).
        unsafe {
            table_call!(self.0, 0, slot::SetObjectField, (object.raw() => RawObject, field => FieldPtr, raw => RawObject) -> ())
        };
    }

    /// Writes an `int` field.
    pub fn set_int(self, object: Object, field: FieldPtr, value: i32) {
        // SAFETY: slot 109 is (object, field, value).
        unsafe {
            table_call!(self.0, 0, slot::SetIntField, (object.raw() => RawObject, field => FieldPtr, value => i32) -> ())
        };
    }

    /// Writes a `long` field.
    pub fn set_long(self, object: Object, field: FieldPtr, value: i64) {
        // SAFETY: slot 110 is (object, field, value).
        unsafe {
            table_call!(self.0, 0, slot::SetLongField, (object.raw() => RawObject, field => FieldPtr, value => i64) -> ())
        };
    }

    /// Writes a static object field.
    pub fn set_static_object(
        self,
        class: Object,
        field: FieldPtr,
        value: impl Into<Option<Object>>,
    ) {
        let raw = value.into().map_or(ptr::null_mut(), Object::raw);
        // SAFETY: slot 154 is (class, field, value).
        unsafe {
            table_call!(self.0, 0, slot::SetStaticObjectField, (class.raw() => RawObject, field => FieldPtr, raw => RawObject) -> ())
        };
    }

    /// Creates an object without running a constructor.
    pub fn alloc_object(self, class: Object) -> Result<Object> {
        locks::before_java();
        // SAFETY: slot 27 is (class).
        let raw = unsafe {
            table_call!(self.0, 0, slot::AllocObject, (class.raw() => RawObject) -> RawObject)
        };
        self.found("AllocObject", raw)
    }

    /// A new `long[]`.
    pub fn new_longs(self, len: usize) -> Result<Object> {
        locks::before_java();
        // SAFETY: slot 180 is (length).
        let raw =
            unsafe { table_call!(self.0, 0, slot::NewLongArray, (len as i32 => i32) -> RawObject) };
        self.found("NewLongArray", raw)
    }

    /// A new `byte[]`.
    pub fn new_bytes(self, len: usize) -> Result<Object> {
        locks::before_java();
        // SAFETY: slot 176 is (length).
        let raw =
            unsafe { table_call!(self.0, 0, slot::NewByteArray, (len as i32 => i32) -> RawObject) };
        self.found("NewByteArray", raw)
    }

    /// A new array of references, filled with `initial`.
    pub fn new_objects(self, len: usize, class: Object, initial: Option<Object>) -> Result<Object> {
        locks::before_java();
        let raw = initial.map_or(ptr::null_mut(), Object::raw);
        // SAFETY: slot 172 is (length, class, initial).
        let raw = unsafe {
            table_call!(self.0, 0, slot::NewObjectArray, (len as i32 => i32, class.raw() => RawObject, raw => RawObject) -> RawObject)
        };
        self.found("NewObjectArray", raw)
    }

    /// Copies `int`s into an array from `start`; false if out of range.
    pub fn set_ints(self, array: Object, start: usize, from: &[i32]) -> bool {
        // SAFETY: slot 211 is (array, start, length, buffer).
        unsafe {
            table_call!(self.0, 0, slot::SetIntArrayRegion, (array.raw() => RawObject, start as i32 => i32, from.len() as i32 => i32, from.as_ptr() => *const i32) -> ())
        };
        !self.clear_exception()
    }

    /// Reads a static object field.
    #[must_use]
    pub fn get_static_object(self, class: Object, field: FieldPtr) -> Option<Object> {
        // SAFETY: slot 145 is (class, field).
        Object::new(unsafe {
            table_call!(self.0, 0, slot::GetStaticObjectField, (class.raw() => RawObject, field => FieldPtr) -> RawObject)
        })
    }

    /// Reads a static `int` field.
    #[must_use]
    pub fn get_static_int(self, class: Object, field: FieldPtr) -> i32 {
        // SAFETY: slot 150 is (class, field).
        unsafe {
            table_call!(self.0, 0, slot::GetStaticIntField, (class.raw() => RawObject, field => FieldPtr) -> i32)
        }
    }

    /// Writes a static `boolean` field.
    pub fn set_static_boolean(self, class: Object, field: FieldPtr, value: bool) {
        // SAFETY: slot 155 is (class, field, value).
        unsafe {
            table_call!(self.0, 0, slot::SetStaticBooleanField, (class.raw() => RawObject, field => FieldPtr, u8::from(value) => u8) -> ())
        };
    }

    /// Writes a static `int` field.
    pub fn set_static_int(self, class: Object, field: FieldPtr, value: i32) {
        // SAFETY: slot 159 is (class, field, value).
        unsafe {
            table_call!(self.0, 0, slot::SetStaticIntField, (class.raw() => RawObject, field => FieldPtr, value => i32) -> ())
        };
    }

    /// Writes a static `long` field.
    pub fn set_static_long(self, class: Object, field: FieldPtr, value: i64) {
        // SAFETY: slot 160 is (class, field, value).
        unsafe {
            table_call!(self.0, 0, slot::SetStaticLongField, (class.raw() => RawObject, field => FieldPtr, value => i64) -> ())
        };
    }

    /// Length of an array.
    #[must_use]
    pub fn array_len(self, array: Object) -> usize {
        // SAFETY: slot 171 is (array).
        let len = unsafe {
            table_call!(self.0, 0, slot::GetArrayLength, (array.raw() => RawObject) -> i32)
        };
        usize::try_from(len).unwrap_or(0)
    }

    /// An element of an object array; `None` for null or out of range.
    #[must_use]
    pub fn array_get(self, array: Object, index: usize) -> Option<Object> {
        // SAFETY: slot 173 is (array, index); a bad index leaves an exception.
        let raw = unsafe {
            table_call!(self.0, 0, slot::GetObjectArrayElement, (array.raw() => RawObject, index as i32 => i32) -> RawObject)
        };
        if self.clear_exception() {
            None
        } else {
            Object::new(raw)
        }
    }

    /// An element of an object array of at least `index + 1` elements; cheaper than
    /// [`Jni::array_get`], which clears the exception of a bad index.
    #[must_use]
    pub fn element(self, array: Object, index: usize) -> Option<Object> {
        // SAFETY: slot 173 is (array, index); a bad index leaves an exception.
        Object::new(unsafe {
            table_call!(self.0, 0, slot::GetObjectArrayElement, (array.raw() => RawObject, index as i32 => i32) -> RawObject)
        })
    }

    /// Sets an element of an object array; does nothing if out of range.
    pub fn array_set(self, array: Object, index: usize, value: Option<Object>) {
        let raw = value.map_or(ptr::null_mut(), Object::raw);
        // SAFETY: slot 174 is (array, index, value); a bad index leaves an exception.
        unsafe {
            table_call!(self.0, 0, slot::SetObjectArrayElement, (array.raw() => RawObject, index as i32 => i32, raw => RawObject) -> ())
        };
        self.clear_exception();
    }

    /// Copies `int`s out of an array from `start`; false if out of range.
    pub fn ints(self, array: Object, start: usize, into: &mut [i32]) -> bool {
        // SAFETY: slot 203 is (array, start, length, buffer); the buffer has the length.
        unsafe {
            table_call!(self.0, 0, slot::GetIntArrayRegion, (array.raw() => RawObject, start as i32 => i32, into.len() as i32 => i32, into.as_mut_ptr() => *mut i32) -> ())
        };
        !self.clear_exception()
    }

    /// Copies `long`s out of an array from `start`; false if out of range.
    pub fn longs(self, array: Object, start: usize, into: &mut [i64]) -> bool {
        // SAFETY: slot 204 is (array, start, length, buffer); the buffer has the length.
        unsafe {
            table_call!(self.0, 0, slot::GetLongArrayRegion, (array.raw() => RawObject, start as i32 => i32, into.len() as i32 => i32, into.as_mut_ptr() => *mut i64) -> ())
        };
        !self.clear_exception()
    }

    /// Copies `long`s into an array from `start`; false if out of range.
    pub fn set_longs(self, array: Object, start: usize, from: &[i64]) -> bool {
        // SAFETY: slot 212 is (array, start, length, buffer).
        unsafe {
            table_call!(self.0, 0, slot::SetLongArrayRegion, (array.raw() => RawObject, start as i32 => i32, from.len() as i32 => i32, from.as_ptr() => *const i64) -> ())
        };
        !self.clear_exception()
    }
}
