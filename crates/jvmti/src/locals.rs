//! Local references of JNI: frames of them, their number, and single references.

use std::ptr;

use crate::jni::{Jni, Object};
use crate::sys::{RawObject, jni_slot as slot, table_call};

/// A frame of local references, which is popped on drop.
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
    /// Runs `body` with capacity for this many local references, which are freed when it returns.
    pub fn local_frame<T>(self, capacity: i32, body: impl FnOnce() -> T) -> T {
        // SAFETY: slots 19 and 20 bracket the frame; a refused push (out of
        // memory) only means the references live until the caller returns.
        let pushed =
            unsafe { table_call!(self.raw(), 0, slot::PushLocalFrame, (capacity => i32) -> i32) };
        if pushed != 0 {
            self.clear_exception();
        }
        // The frame is also popped when a panic unwinds to the callback.
        let _frame = (pushed == 0).then(|| Frame(self));
        body()
    }

    /// Announces that this thread has `count` more local references, which a JVMTI function returned, or as many as its
    /// caller has. A VM with `-Xcheck:jni` prints a warning about references that were not announced.
    pub(crate) fn announce_locals(self, count: usize) {
        /// Capacity for references that the thread gets afterwards.
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

    /// A new local reference, `None` if the object of a weak one was freed.
    #[must_use]
    pub fn new_local(self, object: Object) -> Option<Object> {
        // SAFETY: slot 25 is (object).
        Object::new(unsafe {
            table_call!(self.raw(), 0, slot::NewLocalRef, (object.raw() => RawObject) -> RawObject)
        })
    }

    /// Deletes a local reference.
    pub fn delete_local(self, object: Object) {
        // SAFETY: slot 23 is (object).
        unsafe {
            table_call!(self.raw(), 0, slot::DeleteLocalRef, (object.raw() => RawObject) -> ())
        };
    }
}
