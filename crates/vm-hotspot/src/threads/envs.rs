//! The interface names threads by their `JNIEnv *`.

use jvmti::sys::{FieldPtr, RawEnv};
use jvmti::{Jni, Object};

/// Where a `Thread` object has its VM thread, and how far that is from the `JNIEnv`, which is a
/// part of it.
#[derive(Clone, Copy, Debug)]
pub struct ThreadEnvs {
    field: FieldPtr,
    distance: i64,
}

impl ThreadEnvs {
    /// Measures it on the current thread.
    ///
    /// # Errors
    /// When threads do not have the field.
    pub fn measure(jni: Jni, current: Object) -> jvmti::Result<Self> {
        let class = jni.find_class("java/lang/Thread")?;
        let field = jni.field(class, "eetop", "J")?;
        let distance = jni.raw() as i64 - jni.get_long(current, field);
        Ok(Self { field, distance })
    }

    /// The `JNIEnv *` of a live platform thread; null if it has none.
    #[must_use]
    pub fn of(self, jni: Jni, thread: Object) -> RawEnv {
        match jni.get_long(thread, self.field) {
            0 => std::ptr::null_mut(),
            vm_thread => (vm_thread + self.distance) as RawEnv,
        }
    }
}
