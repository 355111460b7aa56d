//! Replaces `Unsafe.park`, the native method that parks threads, by a function of this crate.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::env::{Env, Live};
use crate::error::{Error, Result};
use crate::jni::{Jni, Object};
use crate::sys::{RawEnv, RawObject, jni_slot as slot, table_call};

/// `Unsafe.park(boolean isAbsolute, long time)`.
pub type Park = extern "system" fn(RawEnv, RawObject, u8, i64);

/// A native method in the format of `RegisterNatives`.
#[repr(C)]
struct NativeMethod {
    name: *const c_char,
    signature: *const c_char,
    function: *const c_void,
}

const NAME: &CStr = c"park";
const SIGNATURE: &CStr = c"(ZJ)V";

type RegisterNatives = extern "system" fn(RawEnv, RawObject, *const NativeMethod, i32) -> i32;

/// The VM's own function, once it is known.
static OWN: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
/// The original `RegisterNatives`, while [`look`] replaces it.
static REGISTER: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    /// Whether this thread has made the VM register the methods of `Unsafe`, so that [`look`] sees them.
    static IS_LOOKING: Cell<bool> = const { Cell::new(false) };
}

/// Replaces `RegisterNatives`: searches the functions that the VM registers on this thread for the VM's own `park`, and
/// registers nothing. Calls of other threads are passed on.
extern "system" fn look(
    env: RawEnv,
    class: RawObject,
    methods: *const NativeMethod,
    count: i32,
) -> i32 {
    if !IS_LOOKING.get() {
        let register = REGISTER.load(Ordering::Acquire);
        // SAFETY: it stood in the slot with this signature before this function did.
        let register: RegisterNatives = unsafe { std::mem::transmute(register) };
        return register(env, class, methods, count);
    }
    for at in 0..usize::try_from(count).unwrap_or(0) {
        // SAFETY: the caller passes so many methods with names and signatures that end in zeros.
        let (name, signature, function) = unsafe {
            let method = &*methods.add(at);
            let text = |start| CStr::from_ptr(start);
            (text(method.name), text(method.signature), method.function)
        };
        if name == NAME && signature == SIGNATURE {
            OWN.store(function.cast_mut(), Ordering::Release);
        }
    }
    0
}

/// The class that declares the method.
fn unsafe_class(jni: Jni) -> Result<Object> {
    jni.find_class("jdk/internal/misc/Unsafe")
        .or_else(|_| jni.find_class("sun/misc/Unsafe"))
}

impl Env<Live> {
    /// The VM's own function. The first call runs Java code.
    ///
    /// # Errors
    /// This VM does not register the method as HotSpot does.
    pub fn own_park(self, jni: Jni) -> Result<Park> {
        if OWN.load(Ordering::Acquire).is_null() {
            jni.local_frame(4, || self.find_park(jni))?;
        }
        let own = OWN.load(Ordering::Acquire);
        if own.is_null() {
            return Err(Error::Jni("Unsafe.registerNatives"));
        }
        // SAFETY: the VM has registered it for a method of this signature.
        Ok(unsafe { std::mem::transmute::<*mut c_void, Park>(own) })
    }

    fn find_park(self, jni: Jni) -> Result<()> {
        let class = unsafe_class(jni)?;
        let method = jni.static_method(class, "registerNatives", "()V")?;
        // SAFETY: a JNI environment points to its table of functions, which has this slot.
        let register = unsafe { *(*jni.raw()).add(slot::RegisterNatives) };
        REGISTER.store(register.cast_mut(), Ordering::Release);
        // SAFETY: the function has the signature of the slot, and this library is never unloaded.
        unsafe { self.replace_jni(&[(slot::RegisterNatives, look as *const c_void)])? };
        IS_LOOKING.set(true);
        let called = jni.call_static_void(class, method, &[]);
        IS_LOOKING.set(false);
        // SAFETY: it stood there before.
        unsafe { self.replace_jni(&[(slot::RegisterNatives, register)])? };
        called
    }
}

impl Jni {
    /// Makes the VM call this function for `Unsafe.park`. From JDK 15 on it prints a warning unless the caller was
    /// called from a class of the boot loader.
    ///
    /// # Errors
    /// The VM refuses.
    pub fn register_park(self, function: Park) -> Result<()> {
        self.local_frame(4, || {
            let class = unsafe_class(self)?;
            // SAFETY: the function has this signature.
            unsafe { self.register_native(class, (NAME, SIGNATURE), function as *const c_void) }
        })
    }

    /// Makes the VM call this function for a native method of a class, given by name and descriptor.
    ///
    /// # Safety
    /// The function has the parameters of the method and belongs to this library, which is never unloaded.
    ///
    /// # Errors
    /// The class has no such method.
    pub unsafe fn register_native(
        self,
        class: Object,
        (name, signature): (&CStr, &CStr),
        function: *const c_void,
    ) -> Result<()> {
        let method = NativeMethod {
            name: name.as_ptr(),
            signature: signature.as_ptr(),
            function,
        };
        // SAFETY: slot 215 is (class, methods, count), and the VM copies what it needs of the names.
        let code = unsafe {
            table_call!(self.raw(), 0, slot::RegisterNatives,
                (class.raw() => RawObject, &raw const method => *const NativeMethod, 1 => i32) -> i32)
        };
        match code {
            0 => Ok(()),
            _ => {
                self.clear_exception();
                Err(Error::Jni("RegisterNatives"))
            }
        }
    }
}
