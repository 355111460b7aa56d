//! Calls that change how the VM runs: suspension, JNI functions, generated events.

use std::ffi::c_void;
use std::ptr;

use crate::env::{Env, EventKind, Live, check};
use crate::error::Result;
use crate::jni::{Jni, Object};
use crate::sys::{RawObject, jni_slot, jvmti_slot as slot, table_call};

impl Env<Live> {
    /// Suspends a thread. Suspending the current one returns when it is resumed.
    pub fn suspend(self, thread: Object) -> Result<()> {
        // SAFETY: slot 5 is (thread).
        let code = unsafe {
            table_call!(self.raw, 1, slot::SuspendThread, (thread.raw() => RawObject) -> i32)
        };
        check("SuspendThread", code)
    }

    /// Resumes a suspended thread.
    pub fn resume(self, thread: Object) -> Result<()> {
        // SAFETY: slot 6 is (thread).
        let code = unsafe {
            table_call!(self.raw, 1, slot::ResumeThread, (thread.raw() => RawObject) -> i32)
        };
        check("ResumeThread", code)
    }

    /// The current thread, as a local reference; the virtual thread if one is mounted.
    pub fn current_thread(self) -> Result<Option<Object>> {
        let mut thread: RawObject = ptr::null_mut();
        // SAFETY: slot 18 is (thread out).
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetCurrentThread, (&raw mut thread => *mut RawObject) -> i32)
        };
        check("GetCurrentThread", code)?;
        Ok(Object::new(thread))
    }

    /// The receiver (`this`) of the innermost frame of the current thread.
    pub fn receiver(self) -> Result<Option<Object>> {
        let mut value: RawObject = ptr::null_mut();
        // SAFETY: slot 155 is (thread, depth, value); null is the current thread.
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetLocalInstance, (ptr::null_mut() => RawObject, 0 => i32, &raw mut value => *mut RawObject) -> i32)
        };
        check("GetLocalInstance", code)?;
        Ok(Object::new(value))
    }

    /// The monitor at which a thread blocks or on which it waits.
    pub fn contended_monitor(self, thread: Object) -> Result<Option<Object>> {
        let mut value: RawObject = ptr::null_mut();
        // SAFETY: slot 11 is (thread, monitor).
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetCurrentContendedMonitor, (thread.raw() => RawObject, &raw mut value => *mut RawObject) -> i32)
        };
        check("GetCurrentContendedMonitor", code)?;
        Ok(Object::new(value))
    }

    /// Sends events of a kind again for everything that exists already (compiled methods).
    pub fn generate(self, event: EventKind) -> Result<()> {
        // SAFETY: slot 123 is (event).
        let code =
            unsafe { table_call!(self.raw, 1, slot::GenerateEvents, (event as i32 => i32) -> i32) };
        check("GenerateEvents", code)
    }

    /// Replaces functions in the table that native code uses for JNI, given as (slot of [`jni_slot`], function);
    /// returns the previous ones.
    ///
    /// # Safety
    /// Each function has the signature of its slot and stays callable for ever.
    pub unsafe fn replace_jni(self, by: &[(usize, *const c_void)]) -> Result<Vec<*const c_void>> {
        let mut table: *mut *const c_void = ptr::null_mut();
        // SAFETY: slot 121 is (table out).
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetJNIFunctionTable, (&raw mut table => *mut *mut *const c_void) -> i32)
        };
        check("GetJNIFunctionTable", code)?;
        let swap = |&(slot, function): &(usize, *const c_void)| {
            // SAFETY: the VM gave a whole table; slots named here exist since JNI 1.2.
            unsafe { std::mem::replace(&mut *table.add(slot), function) }
        };
        let before = by.iter().map(swap).collect();
        // SAFETY: slot 120 is (table); the VM copies it.
        let code = unsafe {
            table_call!(self.raw, 1, slot::SetJNIFunctionTable, (table => *const *const c_void) -> i32)
        };
        // SAFETY: allocated by this environment, not used again.
        unsafe { self.deallocate(table) };
        check("SetJNIFunctionTable", code)?;
        Ok(before)
    }
}

impl Jni {
    /// Whether a pointer is a reference of this thread or a global one. The VM compares addresses and does not
    /// dereference unknown pointers.
    #[must_use]
    pub fn is_reference(self, raw: RawObject) -> bool {
        // SAFETY: slot 232 is (object) and answers 0 for what is no reference.
        !raw.is_null()
            && unsafe {
                table_call!(self.raw(), 0, jni_slot::GetObjectRefType, (raw => RawObject) -> i32)
            } != 0
    }
}
