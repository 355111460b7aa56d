//! Converts JVMTI events to JVMPI events.

use std::cell::Cell;
use std::ffi::c_void;
use std::time::Instant;

use jvmti::sys::{AddrLocation, MethodPtr, RawEnv};
use jvmti::{Agent, Env, FrameRow, Jni, Live, Object};
use locks::{Mutex, Rank};

use crate::bridge::{Bridge, is_inside, say, with_profiler_paused};
use crate::classes::is_prepared;
use crate::objects::ARENA;
use crate::sleep;
use vmpi::c_interface::layout::{
    ClassLoadHook, CompiledMethodLoad, Lineno, MethodEntry2, MonitorWait, NOTHING, NewArena,
    Payload, event,
};

thread_local! {
    /// The time at which this thread began to wait.
    static WAITING_SINCE: Cell<Option<Instant>> = const { Cell::new(None) };
    /// The owner of the monitor at which this thread blocks.
    static OWNER: Cell<usize> = const { Cell::new(0) };
    /// Memory that the agent has allocated for a class file.
    static BUFFERS: Cell<Vec<Vec<u8>>> = const { Cell::new(Vec::new()) };
}

/// Allocates memory for a changed class file; it is freed after the VM has copied it.
extern "C" fn class_file_memory(size: u32) -> *mut c_void {
    let made = jvmti::fence("class file memory", || {
        let mut buffer = vec![0_u8; size as usize];
        let memory = buffer.as_mut_ptr();
        BUFFERS.with(|buffers| {
            let mut all = buffers.take();
            all.push(buffer);
            buffers.set(all);
        });
        memory
    });
    made.unwrap_or(std::ptr::null_mut()).cast()
}

impl Bridge {
    /// Sends an event about one object on the current thread.
    fn about(&self, env: Env<Live>, jni: Jni, kind: i32, object: Object) {
        if self.wants(kind) {
            with_profiler_paused(|| {
                self.meet_current(env, jni);
                let object = self.id_of(env, jni, object);
                self.send(jni.raw(), kind, Payload { object });
            });
        }
    }

    /// Class objects are left out: when the VM reports one, it is not known yet which class it is. They get their ids
    /// with CLASS_LOAD.
    pub(crate) fn allocated(&self, env: Env<Live>, jni: Jni, object: Object, class: Object) {
        if !self.wants(event::OBJECT_ALLOC)
            || with_profiler_paused(|| self.classes.is_class_of_classes(jni, class))
        {
            return;
        }
        with_profiler_paused(|| {
            self.meet_current(env, jni);
            // The VM may report an object twice if it allocated the object for Java code.
            let (id, is_new) = self.name(env, jni, object);
            if let Some(record) = self.objects.get(id).filter(|_| is_new) {
                let obj_alloc = record.payload(id);
                self.send(jni.raw(), event::OBJECT_ALLOC, Payload { obj_alloc });
            }
        });
    }

    /// Whether the current thread is in `Object.clone`. The VM reports the copy, then overwrites its header, which
    /// removes its id; it reports the copy once more when it is complete.
    fn is_being_cloned(&self, env: Env<Live>) -> bool {
        let mut top = [FrameRow {
            method: MethodPtr(std::ptr::null_mut()),
            location: 0,
        }];
        let clone = self.classes.clone_method();
        matches!(env.stack_into(None, &mut top), Ok(1)) && Some(top[0].method) == clone
    }

    /// Passes a class file to the agent; returns the changed one, if the agent changes it.
    fn shown_class_file(&self, redefined: bool, bytes: &[u8]) -> Option<Vec<u8>> {
        let jni = self.java.jni()?;
        if redefined || !self.wants(event::CLASS_LOAD_HOOK) {
            return None;
        }
        with_profiler_paused(|| {
            let class_load_hook = ClassLoadHook {
                data: bytes.as_ptr(),
                len: i32::try_from(bytes.len()).ok()?,
                new_data: bytes.as_ptr(),
                new_len: i32::try_from(bytes.len()).ok()?,
                malloc: class_file_memory,
            };
            let kind = event::CLASS_LOAD_HOOK;
            let back = self.send(jni.raw(), kind, Payload { class_load_hook });
            // SAFETY: the member that was set; the agent changed it in place.
            let hook = unsafe { back.class_load_hook };
            // Only memory that this function's allocator returned is read.
            let buffers = BUFFERS.with(Cell::take);
            let len = usize::try_from(hook.new_len).ok()?;
            let made = buffers
                .into_iter()
                .find(|buffer| buffer.as_ptr() == hook.new_data)?;
            made.get(..len)
                .filter(|class| !class.is_empty())
                .map(<[u8]>::to_vec)
        })
    }

    /// The owner of a monitor, 0 if it has none or it is unknown.
    fn owner_of(&self, env: Env<Live>, jni: Jni, monitor: Object) -> usize {
        let usage = env.monitor_usage(monitor).ok();
        let owner = usage.and_then(|usage| usage.owner);
        owner.map_or(0, |owner| self.threads.env_of(jni, owner) as usize)
    }

    /// Reports everything that existed before the VM was initialized, then the initialization.
    fn begin(&'static self, env: Env<Live>, jni: Jni, main: Object) -> jvmti::Result<()> {
        self.classes.begin(jni)?;
        self.threads.begin(jni, main)?;
        let _ = self.live.set(env);
        self.meet(env, jni, jni.raw(), main);
        for thread in env.all_threads(jni)? {
            let raw = self.threads.env_of(jni, thread);
            self.meet(env, jni, raw, thread);
            jni.delete_local(thread);
        }
        if self.is_on(event::ARENA_NEW) {
            let new_arena = NewArena {
                arena: ARENA,
                name: c"Java heap".as_ptr(),
            };
            self.send(jni.raw(), event::ARENA_NEW, Payload { new_arena });
        }
        self.apply_all();
        if self.is_on(event::CLASS_LOAD) {
            for class in env.loaded_classes(jni)? {
                if is_prepared(env, class) {
                    let id = self.name_class(env, jni, class);
                    self.send_class(env, jni, id, 0);
                }
                jni.delete_local(class);
            }
        }
        self.start_collector(env, jni)
    }
}

impl Agent for Bridge {
    fn vm_init(&self, env: Env<Live>, jni: Jni, thread: Object) {
        let Some(bridge) = Bridge::get() else { return };
        with_profiler_paused(|| {
            if let Err(error) = bridge.begin(env, jni, thread) {
                say(&format!("some events will be missing: {error}"));
            }
            if bridge.is_on(event::JVM_INIT_DONE) {
                bridge.send(jni.raw(), event::JVM_INIT_DONE, NOTHING);
            }
        });
    }

    fn vm_death(&self, env: Env<Live>, jni: Jni) {
        with_profiler_paused(|| {
            self.stop_collector(env, jni);
            if self.is_on(event::JVM_SHUT_DOWN) {
                self.meet_current(env, jni);
                self.send(jni.raw(), event::JVM_SHUT_DOWN, NOTHING);
            }
            self.end();
        });
    }

    fn thread_start(&self, env: Env<Live>, jni: Jni, thread: Object) {
        // Threads that start between loading and initialization are reported there.
        if self.here().is_some() {
            with_profiler_paused(|| self.meet(env, jni, jni.raw(), thread));
        }
    }

    fn thread_end(&self, env: Env<Live>, jni: Jni, _thread: Object) {
        if self.here().is_none() {
            return;
        }
        with_profiler_paused(|| {
            let is_reported = self.is_on(event::THREAD_END);
            if is_reported {
                self.meet_current(env, jni);
            }
            self.threads.close(jni.raw());
            if is_reported {
                self.send(jni.raw(), event::THREAD_END, NOTHING);
            }
            self.forget_current(jni);
        });
    }

    fn class_file(&self, redefined: Option<Object>, name: &str, bytes: &[u8]) -> Option<Vec<u8>> {
        let redefined = redefined.is_some();
        let changed = self.shown_class_file(redefined, bytes);
        self.insert(redefined, name, bytes, changed)
    }

    fn class_prepare(&self, env: Env<Live>, jni: Jni, _thread: Object, class: Object) {
        if self.wants(event::CLASS_LOAD) && self.here().is_some() {
            with_profiler_paused(|| {
                self.meet_current(env, jni);
                let id = self.name_class(env, jni, class);
                self.send_class(env, jni, id, 0);
            });
        }
    }

    fn data_dump(&self, _env: Env<Live>) {
        if let Some((env, jni)) = self.here()
            && self.wants(event::DATA_DUMP_REQUEST)
        {
            with_profiler_paused(|| {
                self.meet_current(env, jni);
                self.send(jni.raw(), event::DATA_DUMP_REQUEST, NOTHING);
            });
        }
    }

    fn monitor_wait(&self, env: Env<Live>, jni: Jni, _t: Object, object: Object, timeout: i64) {
        if is_inside() {
            return;
        }
        WAITING_SINCE.set(Some(Instant::now()));
        if self.wants(event::MONITOR_WAIT) {
            with_profiler_paused(|| {
                self.meet_current(env, jni);
                let object = self.id_of(env, jni, object);
                let monitor_wait = MonitorWait { object, timeout };
                self.send(jni.raw(), event::MONITOR_WAIT, Payload { monitor_wait });
            });
        }
    }

    fn monitor_waited(&self, env: Env<Live>, jni: Jni, _t: Object, object: Object, _out: bool) {
        if !self.wants(event::MONITOR_WAITED) {
            return;
        }
        let waited = WAITING_SINCE
            .take()
            .map_or(0, |since| since.elapsed().as_millis());
        with_profiler_paused(|| {
            self.meet_current(env, jni);
            let object = self.id_of(env, jni, object);
            let timeout = i64::try_from(waited).unwrap_or(i64::MAX);
            let monitor_wait = MonitorWait { object, timeout };
            self.send(jni.raw(), event::MONITOR_WAITED, Payload { monitor_wait });
        });
    }

    fn contended_enter(&self, env: Env<Live>, jni: Jni, _thread: Object, object: Object) {
        if self.wants(event::MONITOR_CONTENDED_EXIT) {
            OWNER.set(with_profiler_paused(|| self.owner_of(env, jni, object)));
        }
        self.about(env, jni, event::MONITOR_CONTENDED_ENTER, object);
    }

    fn contended_entered(&self, env: Env<Live>, jni: Jni, _thread: Object, object: Object) {
        // The VM does not report that the owner has left the monitor, which happened just before this.
        let owner = OWNER.take() as RawEnv;
        if self.wants(event::MONITOR_CONTENDED_EXIT) {
            with_profiler_paused(|| {
                let object = self.id_of(env, jni, object);
                self.threads.emit_of(owner, || {
                    self.send(owner, event::MONITOR_CONTENDED_EXIT, Payload { object });
                });
            });
        }
        self.about(env, jni, event::MONITOR_CONTENDED_ENTERED, object);
    }

    fn gc_finish(&self) {
        self.collector.finished();
    }

    fn object_free(&self, tag: i64) {
        self.collector.died(tag);
    }

    fn vm_object_alloc(
        &self,
        env: Env<Live>,
        jni: Jni,
        _thread: Object,
        object: Object,
        class: Object,
        _size: i64,
    ) {
        self.allocated(env, jni, object, class);
    }

    fn sampled_alloc(
        &self,
        env: Env<Live>,
        jni: Jni,
        _thread: Object,
        object: Object,
        class: Object,
        _size: i64,
    ) {
        if self.wants(event::OBJECT_ALLOC) && !self.is_being_cloned(env) {
            self.allocated(env, jni, object, class);
        }
    }

    fn method_entry(&self, env: Env<Live>, jni: Jni, _thread: Object, method: MethodPtr) {
        if self.wants(event::METHOD_ENTRY) {
            with_profiler_paused(|| {
                self.meet_current(env, jni);
                let method = method.0;
                self.send(jni.raw(), event::METHOD_ENTRY, Payload { method });
            });
        }
        if self.wants(event::METHOD_ENTRY2) {
            with_profiler_paused(|| {
                self.meet_current(env, jni);
                // A static method has no receiver, which the VM reports as an error.
                let receiver = env.receiver().ok().flatten();
                let object = receiver.map_or(0, |receiver| self.id_of(env, jni, receiver));
                let method_entry2 = MethodEntry2 {
                    method: method.0,
                    object,
                };
                self.send(jni.raw(), event::METHOD_ENTRY2, Payload { method_entry2 });
            });
        }
    }

    fn method_exit(&self, env: Env<Live>, jni: Jni, _thread: Object, method: MethodPtr) {
        if self.wants(event::METHOD_EXIT) {
            with_profiler_paused(|| {
                self.meet_current(env, jni);
                let method = method.0;
                self.send(jni.raw(), event::METHOD_EXIT, Payload { method });
            });
        }
    }

    fn native_bind(&self, address: *mut c_void) -> Option<*mut c_void> {
        sleep::replacement(address)
    }

    fn compiled(
        &self,
        _env: Env<Live>,
        method: MethodPtr,
        code: *const c_void,
        len: i32,
        map: &[AddrLocation],
    ) {
        let Some((env, jni)) = self.here() else {
            return;
        };
        // Enabling this event generates events during a call of the agent.
        if !self.is_on(event::COMPILED_METHOD_LOAD) {
            return;
        }
        with_profiler_paused(|| {
            self.meet_current(env, jni);
            let line = |place: &AddrLocation| Lineno {
                offset: (place.start_address as usize).wrapping_sub(code as usize) as i32,
                line: self.lines.line(env, method, place.location),
            };
            let lines: Vec<Lineno> = map.iter().map(line).collect();
            let compiled = CompiledMethodLoad {
                method: method.0,
                code,
                len,
                line_count: lines.len() as i32,
                lines: lines.as_ptr(),
            };
            let kind = event::COMPILED_METHOD_LOAD;
            self.send(jni.raw(), kind, Payload { compiled });
        });
    }

    fn uncompiled(&self, _env: Env<Live>, method: MethodPtr, _code: *const c_void) {
        if let Some((env, jni)) = self.here()
            && self.wants(event::COMPILED_METHOD_UNLOAD)
        {
            with_profiler_paused(|| {
                self.meet_current(env, jni);
                let method = method.0;
                self.send(jni.raw(), event::COMPILED_METHOD_UNLOAD, Payload { method });
            });
        }
    }

    fn panicked(&self, callback: &'static str) {
        static REPORTED: Mutex<Vec<&'static str>> = Mutex::new(Rank::ReportedEvents, Vec::new());
        let mut printed = REPORTED.lock();
        if !printed.contains(&callback) {
            printed.push(callback);
            say(&format!(
                "internal fault in {callback}; the event is missing"
            ));
        }
    }
}
