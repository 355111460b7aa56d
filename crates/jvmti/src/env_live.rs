//! Queries of the live phase: threads, classes, methods, monitors.

use std::ffi::{c_char, c_void};
use std::ptr;

use crate::env::{Env, Live, check};
use crate::error::Result;
use crate::jni::{Jni, Object};
use crate::sys::{
    FieldPtr, FrameInfo, LineNumberEntry, MethodPtr, MonitorUsage as RawMonitorUsage, RawEnv,
    RawObject, StackInfo, ThreadGroupInfo, ThreadInfo, jvmti_slot as slot, table_call,
};

/// Name, group and parent group of a thread.
#[derive(Clone, Debug, Default)]
pub struct ThreadRow {
    /// The thread's name.
    pub name: String,
    /// The name of its group, empty if it has none.
    pub group: String,
    /// The group's parent.
    pub parent_group: String,
}

/// One frame of a stack as JVMTI reports it.
pub type FrameRow = FrameInfo;

/// A thread with its stack.
#[derive(Clone, Debug)]
pub struct StackRow {
    /// A local reference.
    pub thread: Object,
    /// JVMTI state bits.
    pub state: i32,
    /// Innermost first.
    pub frames: Vec<FrameRow>,
}

/// The owner of a monitor and the threads that wait for it, as local references.
#[derive(Clone, Debug)]
pub struct MonitorUsage {
    /// The owner.
    pub owner: Option<Object>,
    /// How often the owner has entered it.
    pub entry_count: u32,
    /// Threads blocked at entry.
    pub waiting_to_enter: Vec<Object>,
    /// Threads in `wait`.
    pub waiting_to_be_notified: Vec<Object>,
}

impl Env<Live> {
    /// Calls a function that returns a list of `T`.
    ///
    /// # Safety
    /// `slot` has the signature (env, count out, list out), with elements `T`.
    unsafe fn list<T: Copy>(self, function: &'static str, slot: usize) -> Result<Vec<T>> {
        let (mut count, mut list) = (0, ptr::null_mut::<T>());
        // SAFETY: the caller's promise; both out pointers are live locals.
        let code = unsafe {
            table_call!(self.raw, 1, slot, (&raw mut count => *mut i32, &raw mut list => *mut *mut T) -> i32)
        };
        check(function, code)?;
        // SAFETY: on success the VM allocated `count` elements.
        Ok(unsafe { self.take_array(list, count) })
    }

    /// Calls a function that returns a list of `T` about one object.
    ///
    /// # Safety
    /// `slot` has the signature (env, object, count out, list out).
    unsafe fn list_of<T: Copy>(
        self,
        function: &'static str,
        slot: usize,
        of: RawObject,
    ) -> Result<Vec<T>> {
        let (mut count, mut list) = (0, ptr::null_mut::<T>());
        // SAFETY: the caller's promise; both out pointers are live locals.
        let code = unsafe {
            table_call!(self.raw, 1, slot, (of => RawObject, &raw mut count => *mut i32, &raw mut list => *mut *mut T) -> i32)
        };
        check(function, code)?;
        // SAFETY: on success the VM allocated `count` elements.
        Ok(unsafe { self.take_array(list, count) })
    }

    /// Calls a function with the signature (env, object, out `T`).
    ///
    /// # Safety
    /// `slot` has that signature and `T` is plain data.
    unsafe fn one<T: Default>(
        self,
        function: &'static str,
        slot: usize,
        of: *mut c_void,
    ) -> Result<T> {
        let mut value = T::default();
        // SAFETY: the caller's promise; the out pointer is a live local.
        let code = unsafe {
            table_call!(self.raw, 1, slot, (of => *mut c_void, &raw mut value => *mut T) -> i32)
        };
        check(function, code)?;
        Ok(value)
    }

    /// All live platform threads, as local references.
    pub fn all_threads(self, jni: Jni) -> Result<Vec<Object>> {
        // SAFETY: slot 4 is (count, threads).
        let raw: Vec<RawObject> = unsafe { self.list("GetAllThreads", slot::GetAllThreads)? };
        jni.announce_locals(raw.len());
        Ok(Object::list(raw))
    }

    /// All loaded classes, as local references.
    pub fn loaded_classes(self, jni: Jni) -> Result<Vec<Object>> {
        // SAFETY: slot 78 is (count, classes).
        let raw: Vec<RawObject> = unsafe { self.list("GetLoadedClasses", slot::GetLoadedClasses)? };
        jni.announce_locals(raw.len());
        Ok(Object::list(raw))
    }

    /// Methods that a class declares. This call also creates their ids, without which AsyncGetCallTrace cannot identify
    /// them.
    pub fn class_methods(self, class: Object) -> Result<Vec<MethodPtr>> {
        // SAFETY: slot 52 is (class, count, methods).
        unsafe { self.list_of("GetClassMethods", slot::GetClassMethods, class.raw()) }
    }

    /// Fields a class declares, in class file order.
    pub fn class_fields(self, class: Object) -> Result<Vec<FieldPtr>> {
        // SAFETY: slot 53 is (class, count, fields).
        unsafe { self.list_of("GetClassFields", slot::GetClassFields, class.raw()) }
    }

    /// Interfaces a class implements directly.
    pub fn class_interfaces(self, class: Object) -> Result<Vec<Object>> {
        // SAFETY: slot 54 is (class, count, interfaces).
        let raw: Vec<RawObject> = unsafe {
            self.list_of(
                "GetImplementedInterfaces",
                slot::GetImplementedInterfaces,
                class.raw(),
            )?
        };
        Ok(Object::list(raw))
    }

    /// Line number table of a method as (bytecode index, line).
    pub fn line_numbers(self, method: MethodPtr) -> Result<Vec<(u32, u32)>> {
        // SAFETY: slot 70 is (method, count, entries).
        let raw: Vec<LineNumberEntry> =
            unsafe { self.list_of("GetLineNumberTable", slot::GetLineNumberTable, method.0)? };
        let entry = |row: &LineNumberEntry| (row.start_location as u32, row.line_number as u32);
        Ok(raw.iter().map(entry).collect())
    }

    /// The index of the last byte of a method's code. Methods that were replaced by a redefinition of their class keep
    /// their end.
    ///
    /// # Errors
    /// The method is native, or the VM no longer knows it.
    pub fn method_end(self, method: MethodPtr) -> Result<i64> {
        let (mut start, mut end) = (0, 0);
        // SAFETY: slot 71 is (method, start, end), both 64 bits wide.
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetMethodLocation, (method => MethodPtr, &raw mut start => *mut i64, &raw mut end => *mut i64) -> i32)
        };
        check("GetMethodLocation", code)?;
        Ok(end)
    }

    /// Type descriptor of a class.
    pub fn class_signature(self, class: Object) -> Result<String> {
        let mut text: *mut c_char = ptr::null_mut();
        // SAFETY: slot 48 is (class, signature, generic); null means not wanted.
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetClassSignature, (class.raw() => RawObject, &raw mut text => *mut *mut c_char, ptr::null_mut() => *mut *mut c_char) -> i32)
        };
        check("GetClassSignature", code)?;
        // SAFETY: a C string of this environment.
        Ok(unsafe { self.take_string(text) }.unwrap_or_default())
    }

    /// Source file of a class; `None` if the class file does not state it.
    pub fn source_file(self, class: Object) -> Option<String> {
        let mut text: *mut c_char = ptr::null_mut();
        // SAFETY: slot 50 is (class, name).
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetSourceFileName, (class.raw() => RawObject, &raw mut text => *mut *mut c_char) -> i32)
        };
        if code != 0 {
            return None;
        }
        // SAFETY: a C string of this environment.
        unsafe { self.take_string(text) }
    }

    /// Status bits of a class: 1 verified, 2 prepared, 4 initialised, 8 error,
    /// 16 array, 32 primitive.
    pub fn class_status(self, class: Object) -> Result<i32> {
        // SAFETY: slot 49 is (class, status).
        unsafe { self.one("GetClassStatus", slot::GetClassStatus, class.raw()) }
    }

    /// Whether retransformation may change the class.
    pub fn is_modifiable(self, class: Object) -> Result<bool> {
        // SAFETY: slot 45 is (class, boolean).
        let flag: u8 =
            unsafe { self.one("IsModifiableClass", slot::IsModifiableClass, class.raw())? };
        Ok(flag != 0)
    }

    /// Whether the class is an interface.
    pub fn is_interface(self, class: Object) -> Result<bool> {
        // SAFETY: slot 55 is (class, boolean).
        let flag: u8 = unsafe { self.one("IsInterface", slot::IsInterface, class.raw())? };
        Ok(flag != 0)
    }

    /// The defining loader; `None` for the boot loader.
    pub fn class_loader(self, class: Object) -> Result<Option<Object>> {
        let mut loader: RawObject = ptr::null_mut();
        // SAFETY: slot 57 is (class, loader).
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetClassLoader, (class.raw() => RawObject, &raw mut loader => *mut RawObject) -> i32)
        };
        check("GetClassLoader", code)?;
        Ok(Object::new(loader))
    }

    /// Name and descriptor of a field, and whether it is static.
    pub fn field(self, class: Object, field: FieldPtr) -> Result<(String, String, bool)> {
        let (mut name, mut descriptor) = (ptr::null_mut::<c_char>(), ptr::null_mut::<c_char>());
        // SAFETY: slot 60 is (class, field, name, signature, generic).
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetFieldName, (class.raw() => RawObject, field => FieldPtr, &raw mut name => *mut *mut c_char, &raw mut descriptor => *mut *mut c_char, ptr::null_mut() => *mut *mut c_char) -> i32)
        };
        check("GetFieldName", code)?;
        // SAFETY: C strings of this environment.
        let (name, descriptor) = unsafe { (self.take_string(name), self.take_string(descriptor)) };
        let mut modifiers = 0;
        // SAFETY: slot 62 is (class, field, modifiers).
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetFieldModifiers, (class.raw() => RawObject, field => FieldPtr, &raw mut modifiers => *mut i32) -> i32)
        };
        check("GetFieldModifiers", code)?;
        Ok((
            name.unwrap_or_default(),
            descriptor.unwrap_or_default(),
            modifiers & 8 != 0,
        ))
    }

    /// Name and descriptor of a method.
    pub fn method_name(self, method: MethodPtr) -> Result<(String, String)> {
        let (mut name, mut descriptor) = (ptr::null_mut::<c_char>(), ptr::null_mut::<c_char>());
        // SAFETY: slot 64 is (method, name, signature, generic).
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetMethodName, (method => MethodPtr, &raw mut name => *mut *mut c_char, &raw mut descriptor => *mut *mut c_char, ptr::null_mut() => *mut *mut c_char) -> i32)
        };
        check("GetMethodName", code)?;
        // SAFETY: C strings of this environment.
        let (name, descriptor) = unsafe { (self.take_string(name), self.take_string(descriptor)) };
        Ok((name.unwrap_or_default(), descriptor.unwrap_or_default()))
    }

    /// The class that declares a method, as a local reference.
    pub fn method_class(self, method: MethodPtr) -> Result<Option<Object>> {
        let mut class: RawObject = ptr::null_mut();
        // SAFETY: slot 65 is (method, class).
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetMethodDeclaringClass, (method => MethodPtr, &raw mut class => *mut RawObject) -> i32)
        };
        check("GetMethodDeclaringClass", code)?;
        Ok(Object::new(class))
    }

    /// Whether a method has other code now, and runs only where it was running before.
    pub fn is_obsolete(self, method: MethodPtr) -> Result<bool> {
        // SAFETY: slot 91 is (method, boolean).
        let flag: u8 = unsafe { self.one("IsMethodObsolete", slot::IsMethodObsolete, method.0)? };
        Ok(flag != 0)
    }

    /// Whether a method is native.
    pub fn is_native(self, method: MethodPtr) -> Result<bool> {
        // SAFETY: slot 76 is (method, boolean).
        let flag: u8 = unsafe { self.one("IsMethodNative", slot::IsMethodNative, method.0)? };
        Ok(flag != 0)
    }

    /// Name and groups of a thread (`None`: the current one).
    pub fn thread_info(self, thread: Option<Object>) -> Result<ThreadRow> {
        let mut info = ThreadInfo {
            name: ptr::null_mut(),
            priority: 0,
            is_daemon: 0,
            thread_group: ptr::null_mut(),
            context_class_loader: ptr::null_mut(),
        };
        let raw = thread.map_or(ptr::null_mut(), Object::raw);
        // SAFETY: slot 9 is (thread, info).
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetThreadInfo, (raw => RawObject, &raw mut info => *mut ThreadInfo) -> i32)
        };
        check("GetThreadInfo", code)?;
        // SAFETY: a C string of this environment.
        let name = unsafe { self.take_string(info.name) }.unwrap_or_default();
        let (group, parent) = self.group(info.thread_group);
        let (parent_group, _) = self.group(parent);
        Ok(ThreadRow {
            name,
            group,
            parent_group,
        })
    }

    /// Name and parent of a thread group; empty for a group that is null or being destroyed.
    fn group(self, group: RawObject) -> (String, RawObject) {
        let nothing = (String::new(), ptr::null_mut());
        if group.is_null() {
            return nothing;
        }
        let mut info = ThreadGroupInfo {
            parent: ptr::null_mut(),
            name: ptr::null_mut(),
            max_priority: 0,
            is_daemon: 0,
        };
        // SAFETY: slot 14 is (group, info); the group is a local reference just given.
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetThreadGroupInfo, (group => RawObject, &raw mut info => *mut ThreadGroupInfo) -> i32)
        };
        if code != 0 {
            return nothing;
        }
        // SAFETY: a C string of this environment.
        (
            unsafe { self.take_string(info.name) }.unwrap_or_default(),
            info.parent,
        )
    }

    /// The number that the agent set for a thread, 0 if none. Works for the current thread (`None`) without a lookup.
    pub fn thread_number(self, thread: Option<Object>) -> Result<usize> {
        let mut data: *mut c_void = ptr::null_mut();
        let raw = thread.map_or(ptr::null_mut(), Object::raw);
        // SAFETY: slot 102 is (thread, data); the data is a number, never followed.
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetThreadLocalStorage, (raw => RawObject, &raw mut data => *mut *mut c_void) -> i32)
        };
        check("GetThreadLocalStorage", code)?;
        Ok(data as usize)
    }

    /// Sets the number of a live thread.
    pub fn set_thread_number(self, thread: Option<Object>, number: usize) -> Result<()> {
        let raw = thread.map_or(ptr::null_mut(), Object::raw);
        // SAFETY: slot 103 is (thread, data); the data is a number, never followed.
        let code = unsafe {
            table_call!(self.raw, 1, slot::SetThreadLocalStorage, (raw => RawObject, number as *const c_void => *const c_void) -> i32)
        };
        check("SetThreadLocalStorage", code)
    }

    /// State bits of a thread.
    pub fn thread_state(self, thread: Object) -> Result<i32> {
        // SAFETY: slot 17 is (thread, state).
        unsafe { self.one("GetThreadState", slot::GetThreadState, thread.raw()) }
    }

    /// CPU time of a thread in nanoseconds.
    pub fn thread_cpu_time(self, thread: Object) -> Result<i64> {
        // SAFETY: slot 137 is (thread, nanos).
        unsafe { self.one("GetThreadCpuTime", slot::GetThreadCpuTime, thread.raw()) }
    }

    /// Stack of a thread (`None`: the current one), into `frames`; returns how
    /// many were filled. Allocates nothing.
    pub fn stack_into(self, thread: Option<Object>, frames: &mut [FrameRow]) -> Result<usize> {
        let raw = thread.map_or(ptr::null_mut(), Object::raw);
        let mut count = 0;
        // SAFETY: slot 104 is (thread, start, max, buffer, count); the buffer has
        // room for `max` frames.
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetStackTrace, (raw => RawObject, 0 => i32, frames.len() as i32 => i32, frames.as_mut_ptr() => *mut FrameInfo, &raw mut count => *mut i32) -> i32)
        };
        check("GetStackTrace", code)?;
        Ok(usize::try_from(count).unwrap_or(0).min(frames.len()))
    }

    /// Stacks of all threads at one moment; the threads are local references.
    pub fn all_stacks(self, jni: Jni, depth: i32) -> Result<Vec<StackRow>> {
        let (mut infos, mut count) = (ptr::null_mut::<StackInfo>(), 0);
        // SAFETY: slot 100 is (max, infos, count).
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetAllStackTraces, (depth => i32, &raw mut infos => *mut *mut StackInfo, &raw mut count => *mut i32) -> i32)
        };
        check("GetAllStackTraces", code)?;
        if infos.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: the VM filled `count` infos, each with `frame_count` frames, in
        // one allocation that is copied here and given back below.
        let rows = unsafe {
            std::slice::from_raw_parts(infos, usize::try_from(count).unwrap_or(0))
                .iter()
                .filter_map(|info| {
                    let n = usize::try_from(info.frame_count).unwrap_or(0);
                    let frames = if n == 0 || info.frame_buffer.is_null() {
                        Vec::new()
                    } else {
                        std::slice::from_raw_parts(info.frame_buffer, n).to_vec()
                    };
                    Some(StackRow {
                        thread: Object::new(info.thread)?,
                        state: info.state,
                        frames,
                    })
                })
                .collect()
        };
        // SAFETY: allocated by this environment, not used again.
        unsafe { self.deallocate(infos) };
        jni.announce_locals(usize::try_from(count).unwrap_or(0));
        Ok(rows)
    }

    /// Identity hash of an object.
    pub fn object_hash(self, object: Object) -> Result<i32> {
        // SAFETY: slot 58 is (object, hash).
        unsafe { self.one("GetObjectHashCode", slot::GetObjectHashCode, object.raw()) }
    }

    /// Monitors a thread owns, as local references.
    pub fn owned_monitors(self, thread: Object) -> Result<Vec<Object>> {
        // SAFETY: slot 10 is (thread, count, monitors).
        let raw: Vec<RawObject> = unsafe {
            self.list_of(
                "GetOwnedMonitorInfo",
                slot::GetOwnedMonitorInfo,
                thread.raw(),
            )?
        };
        Ok(Object::list(raw))
    }

    /// The owner of a monitor and the threads that wait for it.
    pub fn monitor_usage(self, object: Object) -> Result<MonitorUsage> {
        let mut raw = RawMonitorUsage {
            owner: ptr::null_mut(),
            entry_count: 0,
            waiter_count: 0,
            waiters: ptr::null_mut(),
            notify_waiter_count: 0,
            notify_waiters: ptr::null_mut(),
        };
        // SAFETY: slot 59 is (object, usage).
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetObjectMonitorUsage, (object.raw() => RawObject, &raw mut raw => *mut RawMonitorUsage) -> i32)
        };
        check("GetObjectMonitorUsage", code)?;
        // SAFETY: the VM allocated both lists with these counts.
        let (waiters, notify) = unsafe {
            (
                self.take_array(raw.waiters, raw.waiter_count),
                self.take_array(raw.notify_waiters, raw.notify_waiter_count),
            )
        };
        Ok(MonitorUsage {
            owner: Object::new(raw.owner),
            entry_count: raw.entry_count as u32,
            waiting_to_enter: Object::list(waiters),
            waiting_to_be_notified: Object::list(notify),
        })
    }

    /// Collects garbage.
    pub fn force_gc(self) -> Result<()> {
        // SAFETY: slot 108 takes nothing.
        let code = unsafe { table_call!(self.raw, 1, slot::ForceGarbageCollection, () -> i32) };
        check("ForceGarbageCollection", code)
    }

    /// Passes classes to the class file hook again.
    pub fn retransform(self, classes: &[Object]) -> Result<()> {
        let raw: Vec<RawObject> = classes.iter().map(|class| class.raw()).collect();
        // SAFETY: slot 152 is (count, classes); the list lives through the call.
        let code = unsafe {
            table_call!(self.raw, 1, slot::RetransformClasses, (raw.len() as i32 => i32, raw.as_ptr() => *const RawObject) -> i32)
        };
        check("RetransformClasses", code)
    }

    /// Objects that carry one of `tags`, as (local reference, tag).
    pub fn objects_with_tags(self, tags: &[i64]) -> Result<Vec<(Object, i64)>> {
        let (mut count, mut objects, mut found) =
            (0, ptr::null_mut::<RawObject>(), ptr::null_mut::<i64>());
        // SAFETY: slot 114 is (count, tags, count out, objects out, tags out).
        let code = unsafe {
            table_call!(self.raw, 1, slot::GetObjectsWithTags, (tags.len() as i32 => i32, tags.as_ptr() => *const i64, &raw mut count => *mut i32, &raw mut objects => *mut *mut RawObject, &raw mut found => *mut *mut i64) -> i32)
        };
        check("GetObjectsWithTags", code)?;
        // SAFETY: both lists have `count` elements.
        let (objects, found) = unsafe {
            (
                self.take_array(objects, count),
                self.take_array(found, count),
            )
        };
        Ok(objects
            .into_iter()
            .zip(found)
            .filter_map(|(o, t)| Some((Object::new(o)?, t)))
            .collect())
    }

    /// Runs `body` on a new VM thread for `thread`, a fresh `java.lang.Thread`.
    pub fn run_agent_thread(
        self,
        thread: Object,
        priority: i32,
        body: Box<dyn FnOnce(Env<Live>, Jni) + Send>,
    ) -> Result<()> {
        type Body = Box<dyn FnOnce(Env<Live>, Jni) + Send>;
        extern "system" fn start(env: RawEnv, jni: RawEnv, arg: *mut c_void) {
            // SAFETY: `arg` is the box leaked below, handed over exactly once.
            let body = unsafe { Box::from_raw(arg.cast::<Body>()) };
            // SAFETY: the VM passes this thread's environments, in the live phase.
            let (env, jni) = unsafe { (Env::from_raw(env), Jni::from_raw(jni)) };
            crate::agent::fence("agent thread", || body(env, jni));
        }
        let arg = Box::into_raw(Box::new(body)).cast::<c_void>();
        // SAFETY: slot 12 is (thread, function, arg, priority).
        let code = unsafe {
            table_call!(self.raw, 1, slot::RunAgentThread, (thread.raw() => RawObject, start => extern "system" fn(RawEnv, RawEnv, *mut c_void), arg => *mut c_void, priority => i32) -> i32)
        };
        if code != 0 {
            // SAFETY: on failure the VM did not take the box.
            drop(unsafe { Box::from_raw(arg.cast::<Body>()) });
        }
        check("RunAgentThread", code)
    }
}
