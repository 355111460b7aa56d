//! Time that threads are parked at locks of `java.util.concurrent`.
//!
//! Threads park in one native method of the VM, `Unsafe.park`, and `LockSupport` stores in the thread what it is parked
//! at. During a recording, a function of the agent replaces this method: it calls the VM's function, and measures the
//! time if the thread is parked at a lock.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use jvmti::park::Park;
use jvmti::sys::{FieldPtr, RawEnv, RawObject, Value};
use jvmti::{Env, Jni, Live, Object, fence};

use crate::instrument::natives::is_inside;
use crate::threads::monitors::Step;
use crate::vm::hotspot::HotSpot;

const CLASS: &[u8] = include_bytes!("../../tracker/HprofPark.class");
const CLASS_NAME: &str = "java/lang/HprofPark";
/// Classes of synchronizers that threads are parked at for a lock or a permit.
const LOCKS: [&str; 3] = [
    "java/util/concurrent/locks/AbstractQueuedSynchronizer",
    "java/util/concurrent/locks/AbstractQueuedLongSynchronizer",
    "java/util/concurrent/locks/StampedLock",
];
/// Waiting for an event is not contention.
const LATCH: &str = "java/util/concurrent/CountDownLatch$Sync";

/// Whether parked threads are timed now.
static IS_ON: AtomicBool = AtomicBool::new(false);
static KNOWN: OnceLock<Known> = OnceLock::new();

/// What the function needs.
struct Known {
    vms_own: Park,
    /// Field `parkBlocker` of `java.lang.Thread`.
    blocker: FieldPtr,
    /// Global references of [`LOCKS`] that this VM has.
    locks: Vec<Object>,
    latch: Option<Object>,
}

// SAFETY: global references and fields are good on every thread.
unsafe impl Send for Known {}
// SAFETY: as above, and nothing is changed.
unsafe impl Sync for Known {}

impl Known {
    fn find(env: Env<Live>, jni: Jni) -> jvmti::Result<Self> {
        let thread = jni.find_class("java/lang/Thread")?;
        let global = |name: &str| {
            jni.find_class(name)
                .and_then(|class| jni.new_global(class))
                .ok()
        };
        Ok(Self {
            vms_own: env.own_park(jni)?,
            blocker: jni.field(thread, "parkBlocker", "Ljava/lang/Object;")?,
            locks: LOCKS.into_iter().filter_map(global).collect(),
            latch: global(LATCH),
        })
    }

    /// The lock that the current thread is about to be parked at, if it is one.
    fn lock(&self, env: Env<Live>, jni: Jni) -> Option<Object> {
        let thread = env.current_thread().ok()??;
        let blocker = jni.get_object(thread, self.blocker);
        jni.delete_local(thread);
        let blocker = blocker?;
        let is_a = |class: &Object| jni.is_instance(blocker, *class);
        if self.locks.iter().any(is_a) && !self.latch.iter().any(is_a) {
            return Some(blocker);
        }
        jni.delete_local(blocker);
        None
    }
}

/// Starts or stops timing parked threads; when it stops, the VM's method is restored.
///
/// # Errors
/// When the VM is no HotSpot that this is known of.
pub(crate) fn switch(env: Env<Live>, jni: Jni, on: bool) -> jvmti::Result<()> {
    if IS_ON.swap(on, Ordering::SeqCst) == on {
        return Ok(());
    }
    let done = jni.local_frame(16, || {
        if KNOWN.get().is_none() {
            // A second finding would be the same.
            let _ = KNOWN.set(Known::find(env, jni)?);
        }
        let class = match jni.find_class(CLASS_NAME) {
            Ok(class) => class,
            Err(_) => jni.define_boot_class(CLASS_NAME, CLASS)?,
        };
        let exchange = jni.static_method(class, "exchange", "(Z)V")?;
        jni.call_static_void(class, exchange, &[Value { z: u8::from(on) }])
    });
    if done.is_err() {
        IS_ON.store(false, Ordering::SeqCst);
    }
    done
}

/// The native method that `HprofPark.exchange` calls: replaces the VM's method.
pub(crate) fn register(jni: Jni, on: bool) {
    let Some(known) = KNOWN.get() else { return };
    let function: Park = if on { park } else { known.vms_own };
    if let Err(error) = jni.register_park(function)
        && let Some(hotspot) = HotSpot::get()
    {
        (hotspot.message)(&format!("parked threads are not timed: {error}"));
    }
}

/// Replaces `Unsafe.park`.
extern "system" fn park(env: RawEnv, object: RawObject, is_absolute: u8, time: i64) {
    let Some(known) = KNOWN.get() else { return };
    let before = fence("park", || about_to_park(known, env)).flatten();
    (known.vms_own)(env, object, is_absolute, time);
    if let Some((lock, since)) = before {
        let _ = fence("parked", || parked(env, lock, since));
    }
}

/// The lock that the current thread is about to be parked at, and the time, if that is to be measured.
fn about_to_park(known: &Known, env: RawEnv) -> Option<(Object, u64)> {
    if !IS_ON.load(Ordering::Relaxed) || is_inside() {
        return None;
    }
    let hotspot = HotSpot::get().filter(|hotspot| !hotspot.dead.load(Ordering::Relaxed))?;
    // SAFETY: the VM passes this thread's environment to native methods.
    let jni = unsafe { Jni::from_raw(env) };
    let lock = known.lock(hotspot.live()?, jni)?;
    Some((lock, hotspot.elapsed()))
}

/// Records that the current thread was parked at a lock since that time.
fn parked(env: RawEnv, lock: Object, since: u64) -> Option<()> {
    let hotspot = HotSpot::get().filter(|hotspot| !hotspot.dead.load(Ordering::Relaxed))?;
    // SAFETY: the VM passes this thread's environment to native methods.
    let jni = unsafe { Jni::from_raw(env) };
    let parked_ns = hotspot.elapsed().saturating_sub(since);
    hotspot.monitor(hotspot.live()?, jni, lock, Step::Parked { parked_ns });
    jni.delete_local(lock);
    Some(())
}
