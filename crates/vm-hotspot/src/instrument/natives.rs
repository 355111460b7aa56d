//! The native methods of the Java classes in `tracker/`: the tracker, sampling before JDK 11, timing of parked threads,
//! and the last shutdown hook. The VM finds them by name in the agent's library, so none has to be registered.
//!
//! They run on threads of the program, in the middle of its code. The VM functions that they call must not run Java
//! code, and must leave no exception pending.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use jvmti::sys::{RawEnv, RawObject, Value};
use jvmti::{Jni, Object};

use crate::alloc::sites::SiteId;
use crate::host::sampling;
use crate::instrument::tracker::Tracker;
use crate::threads::background::at_end;
use crate::threads::parks;
use crate::vm::config::Clock;
use crate::vm::hotspot::HotSpot;

thread_local! {
    /// Set while this thread is inside the agent, so that the code it runs is not counted.
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Restores [`INSIDE`], also when a panic unwinds.
struct Before(bool);

impl Drop for Before {
    fn drop(&mut self) {
        INSIDE.set(self.0);
    }
}

/// Runs `body` unless this thread is inside the agent already.
fn enter_agent<T>(default: T, body: impl FnOnce() -> Option<T>) -> T {
    if is_inside() {
        return default;
    }
    let result = catch_unwind(AssertUnwindSafe(|| with_agent_guard(body)));
    result.ok().flatten().unwrap_or(default)
}

/// Whether this thread is inside the agent.
pub(crate) fn is_inside() -> bool {
    INSIDE.get()
}

/// Runs `body` without counting what this thread does in it.
pub(crate) fn with_agent_guard<T>(body: impl FnOnce() -> T) -> T {
    let _before = Before(INSIDE.replace(true));
    body()
}

/// Wraps the arguments of a native method.
fn wrap(jni: RawEnv, object: RawObject) -> Option<(Jni, Object)> {
    // SAFETY: the VM passes this thread's environment and valid local references
    // to native methods.
    unsafe { Some((Jni::from_raw(jni), Object::from_raw(object)?)) }
}

impl Tracker {
    /// Calls each native method once while nothing is counted. The VM runs Java code to find a native method of a boot
    /// class. Once that code is counted, it would call the method that the VM is searching for.
    pub(crate) fn link_natives(&self, jni: Jni) -> jvmti::Result<()> {
        let class = self.class;
        let null = Value {
            l: std::ptr::null_mut(),
        };
        let zero = Value { j: 0 };
        let of = |name, descriptor: &str| jni.static_method(class, name, descriptor);
        let enroll = of("enroll", "(Ljava/lang/Thread;)Ljava/lang/HprofTracker;")?;
        jni.call_static_object(class, enroll, &[null])?;
        for (name, more) in [
            ("site", "Ljava/lang/Object;JJ"),
            ("check", "J"),
            ("sample", "JI"),
            ("drain", ""),
            ("upcall", ""),
        ] {
            let method = of(name, &format!("(Ljava/lang/HprofTracker;{more})V"))?;
            let arguments = match name {
                "site" => &[null, null, zero, zero][..],
                _ => &[null, zero, zero][..1 + more.len()],
            };
            jni.call_static_void(class, method, arguments)?;
        }
        let track = of("track", "(Ljava/lang/Object;IJJ)I")?;
        jni.call_static_int(class, track, &[null, zero, zero, zero])?;
        let lodge = of("lodge", "(Ljava/lang/Thread;)Ljava/lang/HprofTracker;")?;
        jni.call_static_object(class, lodge, &[null])?;
        let house = "(Ljava/lang/HprofTracker;Ljava/lang/HprofTracker;)Ljava/lang/HprofTracker;";
        jni.call_static_object(class, of("house", house)?, &[null, null])?;
        let edge = of("edge", "(Ljava/lang/HprofTracker;J)I")?;
        jni.call_static_int(class, edge, &[null, zero])?;
        let carry = of("carry", "(Ljava/lang/HprofTracker;I)V")?;
        jni.call_static_void(class, carry, &[null, zero])?;
        Ok(())
    }
}

/// `HprofEnd.run`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_HprofEnd_run(jni: RawEnv, hook: RawObject) {
    enter_agent((), || {
        let (jni, _) = wrap(jni, hook)?;
        let hotspot = HotSpot::get()?;
        at_end(hotspot, hotspot.live()?, jni);
        Some(())
    });
}

/// `HprofPark.register`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_HprofPark_register(jni: RawEnv, class: RawObject, on: u8) {
    let register = || wrap(jni, class).map(|(jni, _)| parks::register(jni, on != 0));
    let _ = catch_unwind(register);
}

/// `HprofSample.sampled`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_HprofSample_sampled(
    jni: RawEnv,
    _class: RawObject,
    made: RawObject,
) -> i32 {
    let sampled = || wrap(jni, made).map(|(jni, made)| sampling::sampled(jni, made));
    catch_unwind(sampled).ok().flatten().unwrap_or(i32::MAX)
}

/// `HprofSample.size`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_HprofSample_size(
    jni: RawEnv,
    _class: RawObject,
    made: RawObject,
) -> i32 {
    let size = || wrap(jni, made).map(|(_, made)| sampling::size(made));
    catch_unwind(size).ok().flatten().unwrap_or(0)
}

/// `HprofTracker.enroll`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_HprofTracker_enroll(
    jni: RawEnv,
    _class: RawObject,
    thread: RawObject,
) -> RawObject {
    enter_agent(ptr::null_mut(), || {
        let (jni, thread) = wrap(jni, thread)?;
        HotSpot::get()?.enroll(jni, thread).map(Object::raw)
    })
}

/// `HprofTracker.lodge`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_HprofTracker_lodge(
    jni: RawEnv,
    _class: RawObject,
    thread: RawObject,
) -> RawObject {
    enter_agent(ptr::null_mut(), || {
        let (jni, thread) = wrap(jni, thread)?;
        HotSpot::get()?.lodge(jni, thread).map(Object::raw)
    })
}

/// `HprofTracker.house`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_HprofTracker_house(
    jni: RawEnv,
    _class: RawObject,
    host: RawObject,
    guest: RawObject,
) -> RawObject {
    enter_agent(ptr::null_mut(), || {
        let ((jni, host), (_, guest)) = (wrap(jni, host)?, wrap(jni, guest)?);
        HotSpot::get()?.house(jni, host, guest).map(Object::raw)
    })
}

/// `HprofTracker.site`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_HprofTracker_site(
    jni: RawEnv,
    _class: RawObject,
    tracker: RawObject,
    made: RawObject,
    key: i64,
    bytes: i64,
) {
    enter_agent((), || {
        let ((jni, tracker), (_, made)) = (wrap(jni, tracker)?, wrap(jni, made)?);
        HotSpot::get()?.at(jni, tracker, |state, at| {
            state.new_site(at, made, key, bytes)
        })
    });
}

/// `HprofTracker.drain`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_HprofTracker_drain(
    jni: RawEnv,
    _class: RawObject,
    tracker: RawObject,
) {
    enter_agent((), || {
        let (jni, tracker) = wrap(jni, tracker)?;
        HotSpot::get()?.track_gathered(jni, tracker, true);
        Some(())
    });
}

/// `HprofTracker.track`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_HprofTracker_track(
    jni: RawEnv,
    _class: RawObject,
    made: RawObject,
    tables: i32,
    how: i64,
    bytes: i64,
) -> i32 {
    enter_agent(0, || {
        let (jni, made) = wrap(jni, made)?;
        let what = (how, bytes.cast_unsigned());
        Some(i32::from(
            HotSpot::get()?.track_made(jni, made, tables, what),
        ))
    })
}

/// `HprofTracker.upcall`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_HprofTracker_upcall(
    jni: RawEnv,
    _class: RawObject,
    tracker: RawObject,
) {
    enter_agent((), || {
        let (jni, tracker) = wrap(jni, tracker)?;
        HotSpot::get()?.at(jni, tracker, |state, at| {
            state.enter_upcall(at);
            Ok(())
        })
    });
}

/// `HprofTracker.check`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_HprofTracker_check(
    jni: RawEnv,
    _class: RawObject,
    tracker: RawObject,
    how: i64,
) {
    enter_agent((), || {
        let (jni, tracker) = wrap(jni, tracker)?;
        let (site, _) = SiteId::of_word(how);
        HotSpot::get()?.at(jni, tracker, |state, at| {
            state.check(at, site);
            Ok(())
        })
    });
}

/// `HprofTracker.sample`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_HprofTracker_sample(
    jni: RawEnv,
    _class: RawObject,
    tracker: RawObject,
    how: i64,
    weight_log2: i32,
) {
    enter_agent((), || {
        let (jni, tracker) = wrap(jni, tracker)?;
        let (site, _) = SiteId::of_word(how);
        let hotspot = HotSpot::get()?;
        let mut stack = hotspot.allocating_stack();
        hotspot.at(jni, tracker, |state, at| {
            let sampled = (site, weight_log2.cast_unsigned());
            state.sample_stack(at, sampled, stack.take());
            Ok(())
        })
    });
}

/// `HprofTracker.edge`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_HprofTracker_edge(
    jni: RawEnv,
    _class: RawObject,
    tracker: RawObject,
    key: i64,
) -> i32 {
    enter_agent(0, || {
        let (jni, tracker) = wrap(jni, tracker)?;
        HotSpot::get()?.at(jni, tracker, |state, at| state.new_edge(at, key))
    })
}

/// `HprofTracker.carry`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_HprofTracker_carry(
    jni: RawEnv,
    _class: RawObject,
    tracker: RawObject,
    slot: i32,
) {
    enter_agent((), || {
        let (jni, tracker) = wrap(jni, tracker)?;
        let slot = usize::try_from(slot).ok()?;
        HotSpot::get()?.at(jni, tracker, |state, at| {
            state.carry_calls(at, slot);
            Ok(())
        })
    });
}

/// `HprofTracker.cpuTime`.
#[unsafe(no_mangle)]
pub extern "system" fn Java_java_lang_HprofTracker_cpuTime(_jni: RawEnv, _class: RawObject) -> i64 {
    Clock::ThreadCpu.now()
}
