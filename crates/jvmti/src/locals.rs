//! Local references of JNI: frames of them, their number, and each one.

use std::ptr;

use crate::jni::{Jni, Object};
use crate::sys::{RawObject, jni_slot as slot, table_call};

/// A frame of local references, which ends with this value.
struct Frame(Jni);

impl Drop for Frame {
    fn drop(&mut self) {
        // SAFETY: pops the frame that `local_frame` has pushed on this thread.
        unsafe {
            table_call!(self.0.raw(), 0, slot::PopLocalFrame, (ptr::null_mut() => RawObject) -> RawObject)
        };
    }
}

impl Jni {
    /// Runs `body` with room for `capacity` local references that end with it.
    pub fn local_frame<T>(self, capacity: i32, body: impl FnOnce() -> T) -> T {
        // SAFETY: slots 19 and 20 bracket the frame; a refused push (out of
        // memory) only means the references live until the caller returns.
        let pushed =
            unsafe { table_call!(self.raw(), 0, slot::PushLocalFrame, (capacity => i32) -> i32) };
        if pushed != 0 {
            self.clear_exception();
        }
        // Also when a fault unwinds to the fence of a callback.
        let _frame = (pushed == 0).then(|| Frame(self));
        body()
    }

    /// Announces that this thread has `count` local references more than before, returned by a function of JVMTI, or as many
    /// as its caller has. A VM with `-Xcheck:jni` prints a warning about those that were not announced.
    pub(crate) fn announce_locals(self, count: usize) {
        /// For those that the thread gets afterwards.
        const MORE: usize = 4096;
        const MOST: usize = 1 << 16;
        let capacity = count.saturating_add(MORE).min(MOST) as i32;
        // SAFETY: slot 26 is (capacity).
        let refused = unsafe {
            table_call!(self.raw(), 0, slot::EnsureLocalCapacity, (capacity => i32) -> i32)
        };
        if refused != 0 {
            self.clear_exception();
        }
    }

    /// A local reference, `None` if a weak one's object is gone.
    #[must_use]
    pub fn new_local(self, object: Object) -> Option<Object> {
        // SAFETY: slot 25 is (object).
        Object::new(unsafe {
            table_call!(self.raw(), 0, slot::NewLocalRef, (object.raw() => RawObject) -> RawObject)
        })
    }

    /// Drops a local reference.
    pub fn delete_local(self, object: Object) {
        // SAFETY: slot 23 is (object).
        unsafe {
            table_call!(self.raw(), 0, slot::DeleteLocalRef, (object.raw() => RawObject) -> ())
        };
    }
}
