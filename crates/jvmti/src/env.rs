//! A JVMTI environment: creation, capabilities, events, memory.

use std::ffi::{CStr, CString, c_char, c_void};
use std::marker::PhantomData;
use std::ptr;

use crate::capabilities::{Capabilities, Capability};
use crate::error::{Error, Result};
use crate::jni::{JavaVm, Object};
use crate::sys::{
    EventCallbacks, RawCapabilities, RawEnv, RawObject, jvmti_slot as slot, table_call,
};
use crate::text::decode_modified_utf8;

/// Phase: the agent is being loaded, before the VM runs.
#[derive(Clone, Copy, Debug)]
pub enum OnLoad {}
/// Phase: JNI can be used, few classes are loaded.
#[derive(Clone, Copy, Debug)]
pub enum Start {}
/// Phase: everything is allowed.
#[derive(Clone, Copy, Debug)]
pub enum Live {}

/// A JVMTI environment in phase `P`. Copies refer to the same environment.
#[derive(Debug)]
pub struct Env<P> {
    pub(crate) raw: RawEnv,
    phase: PhantomData<P>,
}

impl<P> Clone for Env<P> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<P> Copy for Env<P> {}

// SAFETY: a JVMTI environment may be used from any thread (JVMTI specification,
// "Environments"); the wrapper holds nothing but its pointer.
unsafe impl<P> Send for Env<P> {}
// SAFETY: as above, calls may be concurrent.
unsafe impl<P> Sync for Env<P> {}

/// Events that this crate delivers.
#[expect(missing_docs, reason = "named as in the JVMTI specification")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum EventKind {
    VmInit = 50,
    VmDeath = 51,
    ThreadStart = 52,
    ThreadEnd = 53,
    ClassFileLoadHook = 54,
    ClassLoad = 55,
    ClassPrepare = 56,
    VmStart = 57,
    MethodEntry = 65,
    MethodExit = 66,
    NativeMethodBind = 67,
    CompiledMethodLoad = 68,
    CompiledMethodUnload = 69,
    DataDumpRequest = 71,
    MonitorWait = 73,
    MonitorWaited = 74,
    MonitorContendedEnter = 75,
    MonitorContendedEntered = 76,
    ResourceExhausted = 80,
    GarbageCollectionStart = 81,
    GarbageCollectionFinish = 82,
    ObjectFree = 83,
    VmObjectAlloc = 84,
    SampledObjectAlloc = 86,
    VirtualThreadStart = 87,
    VirtualThreadEnd = 88,
}

/// Turns a JVMTI return code into a result.
pub(crate) fn check(function: &'static str, code: i32) -> Result<()> {
    if code == 0 {
        Ok(())
    } else {
        Err(Error::Jvmti { function, code })
    }
}

impl Env<OnLoad> {
    /// Creates an environment while the agent is loaded.
    pub fn create(vm: JavaVm) -> Result<Self> {
        let raw = vm.get_env(crate::sys::JVMTI_VERSION_1_2)?;
        Ok(Self {
            raw,
            phase: PhantomData,
        })
    }

    /// The same environment, when the agent is attached to a running VM.
    #[must_use]
    pub fn attached_live(self) -> Env<Live> {
        Env {
            raw: self.raw,
            phase: PhantomData,
        }
    }
}

impl<P> Env<P> {
    /// Wraps a pointer that the VM passed to a callback of phase `P`.
    ///
    /// # Safety
    /// `raw` is a JVMTI environment of this process, and the VM is in phase `P`
    /// or a later one in which everything of `P` is legal.
    #[must_use]
    pub unsafe fn from_raw(raw: RawEnv) -> Self {
        Self {
            raw,
            phase: PhantomData,
        }
    }

    /// The pointer, for a callback's own use.
    #[must_use]
    pub fn raw(self) -> RawEnv {
        self.raw
    }

    /// Capabilities that the VM could grant now.
    pub fn potential_capabilities(self) -> Result<Capabilities> {
        let mut found = RawCapabilities::default();
        // SAFETY: slot 140 has this signature; the pointer is to a live local.
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetPotentialCapabilities, (&raw mut found => *mut RawCapabilities) -> i32)
        };
        check("GetPotentialCapabilities", code)?;
        Ok(Capabilities(found))
    }

    /// Requests each capability separately; returns those granted.
    pub fn add_capabilities(self, wanted: &[Capability]) -> Result<Capabilities> {
        let possible = self.potential_capabilities()?;
        let mut granted = Capabilities::default();
        for capability in wanted.iter().copied().filter(|c| possible.has(*c)) {
            let one = Capabilities::default().with(capability);
            // SAFETY: slot 142 has this signature; the set outlives the call.
            let code = unsafe {
                table_call!(self.raw, 1, slot::AddCapabilities, (&raw const one.0 => *const RawCapabilities) -> i32)
            };
            if code == 0 {
                granted = granted.with(capability);
            }
        }
        Ok(granted)
    }

    /// Returns capabilities to the VM.
    pub fn relinquish(self, granted: Capabilities) -> Result<()> {
        // SAFETY: slot 143 has this signature; the set outlives the call.
        let code = unsafe {
            table_call!(self.raw, 1, slot::RelinquishCapabilities, (&raw const granted.0 => *const RawCapabilities) -> i32)
        };
        check("RelinquishCapabilities", code)
    }

    /// Installs callbacks. The VM copies the table.
    pub(crate) fn set_callbacks(self, table: &EventCallbacks) -> Result<()> {
        let size = size_of::<EventCallbacks>() as i32;
        // SAFETY: slot 122 has this signature; older VMs read a prefix of the table.
        let code = unsafe {
            table_call!(self.raw, 1, slot::SetEventCallbacks, (ptr::from_ref(table) => *const EventCallbacks, size => i32) -> i32)
        };
        check("SetEventCallbacks", code)
    }

    /// Enables or disables one event for all threads.
    pub fn enable(self, event: EventKind, on: bool) -> Result<()> {
        // SAFETY: slot 2 has this signature (its trailing `...` is never read).
        let code = unsafe {
            table_call!(self.raw, 1, slot::SetEventNotificationMode, (i32::from(on) => i32, event as i32 => i32, ptr::null_mut() => RawObject) -> i32)
        };
        check("SetEventNotificationMode", code)
    }

    /// Memory allocated by the VM, filled with `bytes`, as a class file hook must return it.
    pub fn allocate_copy(self, bytes: &[u8]) -> Result<*mut u8> {
        let mut memory: *mut u8 = ptr::null_mut();
        // SAFETY: slot 46 has this signature; the out pointer is a live local.
        let code = unsafe {
            table_call!(self.raw, 1, slot::Allocate, (bytes.len() as i64 => i64, &raw mut memory => *mut *mut u8) -> i32)
        };
        check("Allocate", code)?;
        // SAFETY: the VM gave `bytes.len()` bytes at `memory`, not overlapping `bytes`.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), memory, bytes.len()) };
        Ok(memory)
    }

    /// Frees memory that the VM allocated; null is allowed.
    ///
    /// # Safety
    /// `memory` came from this environment and is not used again.
    pub(crate) unsafe fn deallocate<T>(self, memory: *mut T) {
        if memory.is_null() {
            return;
        }
        // SAFETY: slot 47 has this signature; ownership is the caller's promise.
        unsafe {
            table_call!(self.raw, 1, slot::Deallocate, (memory.cast() => *mut c_void) -> i32);
        }
    }

    /// Decodes a C string of the VM and frees it.
    ///
    /// # Safety
    /// `text` is null or a NUL-terminated string allocated by this environment.
    pub(crate) unsafe fn take_string(self, text: *mut c_char) -> Option<String> {
        if text.is_null() {
            return None;
        }
        // SAFETY: not null, NUL-terminated by the caller's promise.
        let decoded = decode_modified_utf8(unsafe { CStr::from_ptr(text) }.to_bytes());
        // SAFETY: allocated by this environment, not used again.
        unsafe { self.deallocate(text) };
        Some(decoded)
    }

    /// Copies an array of the VM and frees it.
    ///
    /// # Safety
    /// `array` is null or holds `count` initialised values, allocated by this environment.
    pub(crate) unsafe fn take_array<T: Copy>(self, array: *mut T, count: i32) -> Vec<T> {
        if array.is_null() {
            return Vec::new();
        }
        let count = usize::try_from(count).unwrap_or(0);
        // SAFETY: the caller's promise.
        let copied = unsafe { std::slice::from_raw_parts(array, count) }.to_vec();
        // SAFETY: allocated by this environment, not used again.
        unsafe { self.deallocate(array) };
        copied
    }

    /// A system property of the VM.
    pub fn system_property(self, key: &str) -> Option<String> {
        let key = CString::new(key).ok()?;
        let mut value: *mut c_char = ptr::null_mut();
        // SAFETY: slot 131 has this signature; both pointers live through the call.
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetSystemProperty, (key.as_ptr() => *const c_char, &raw mut value => *mut *mut c_char) -> i32)
        };
        if code != 0 {
            return None;
        }
        // SAFETY: a C string of this environment.
        unsafe { self.take_string(value) }
    }

    /// The phase: 1 load, 2 primordial, 4 live, 6 start, 8 dead.
    pub fn phase_number(self) -> Result<i32> {
        let mut phase = 0;
        // SAFETY: slot 133 has this signature; the pointer is to a live local.
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetPhase, (&raw mut phase => *mut i32) -> i32)
        };
        check("GetPhase", code)?;
        Ok(phase)
    }

    /// Sets the mean number of bytes between two sampled allocations, 0 for every allocation.
    pub fn set_heap_sampling_interval(self, bytes: i32) -> Result<()> {
        // SAFETY: slot 156 has this signature on VMs that granted the capability;
        // on older ones the caller never got it and must not call (the table ends).
        let code = unsafe {
            table_call!(self.raw, 1, slot::SetHeapSamplingInterval, (bytes => i32) -> i32)
        };
        check("SetHeapSamplingInterval", code)
    }

    /// Frees the environment; no call on any copy is legal after it.
    pub fn dispose(self) -> Result<()> {
        // SAFETY: slot 127 has this signature.
        let code = unsafe { table_call!(self.raw, 1, slot::DisposeEnvironment, () -> i32) };
        check("DisposeEnvironment", code)
    }

    /// The tag of an object, 0 if none.
    pub fn tag(self, object: Object) -> Result<i64> {
        let mut tag = 0;
        // SAFETY: slot 106 has this signature; `object` is a valid handle.
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetTag, (object.raw() => RawObject, &raw mut tag => *mut i64) -> i32)
        };
        check("GetTag", code)?;
        Ok(tag)
    }

    /// Tags an object; 0 removes the tag.
    pub fn set_tag(self, object: Object, tag: i64) -> Result<()> {
        // SAFETY: slot 107 has this signature; `object` is a valid handle.
        let code = unsafe {
            table_call!(self.raw, 1, slot::SetTag, (object.raw() => RawObject, tag => i64) -> i32)
        };
        check("SetTag", code)
    }

    /// Bytes of an object in the heap.
    pub fn object_size(self, object: Object) -> Result<u64> {
        let mut size = 0_i64;
        // SAFETY: slot 154 has this signature; `object` is a valid handle.
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetObjectSize, (object.raw() => RawObject, &raw mut size => *mut i64) -> i32)
        };
        check("GetObjectSize", code)?;
        Ok(size as u64)
    }
}
