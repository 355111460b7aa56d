//! Writes the recording when the heap is full: a dump at the first error, and the whole output if the process ends
//! before its VM.
//!
//! The thread that ends a VM from outside (the `java` launcher after `main`) attaches to it first. If the heap is too
//! full for that thread's object, the launcher calls `exit` instead: no shutdown hooks run, the end of the VM is not
//! reported, and the profile would be lost when it is most needed. So a thread of the agent, attached while there was
//! memory, waits for this.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jvmti::{Agent, Env, Jni, Live};
use locks::{Mutex, Rank};
use vmpi::Event;

use crate::threads::worker::{Worker, fenced};
use crate::vm::hotspot::HotSpot;

/// The longest time that the end of a process is delayed to write its profile.
const AT_THE_END: Duration = Duration::from_secs(600);
/// The longest wait of the thread that got the error. It may hold a monitor that writing needs; the VM stops it anyway
/// while its frames are dumped.
const AT_AN_ERROR: Duration = Duration::from_secs(60);

/// The thread that waits.
static STANDS_BY: Mutex<Option<Arc<Worker>>> = Mutex::new(Rank::StandsBy, None);

/// The process of this thread, which does not exist in a copy of the process made by `fork`.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Starts it.
pub(crate) fn stand_by(hotspot: &HotSpot, env: Env<Live>, jni: Jni) -> jvmti::Result<()> {
    let worker = Worker::start(hotspot, env, jni, "HPROF last words")?;
    *STANDS_BY.lock() = Some(worker);
    if PROCESS.swap(std::process::id(), Ordering::SeqCst) == std::process::id() {
        // A previous recording has registered the function.
        return Ok(());
    }
    // SAFETY: the function takes nothing and returns nothing, as `atexit` calls it.
    match unsafe { libc::atexit(process_ends) } {
        0 => Ok(()),
        _ => Err(jvmti::Error::Jni("atexit")),
    }
}

/// Gives the thread a job and waits for it. If the process `ends`, the thread does nothing more.
fn have(
    job: impl FnOnce(&HotSpot, Env<Live>, Jni) + Send + 'static,
    patience: Duration,
    ends: bool,
) {
    let Some(worker) = STANDS_BY.lock().clone() else {
        return;
    };
    let (done, wait) = std::sync::mpsc::channel();
    worker.give(move |env, jni| {
        fenced(|| {
            if let Some(hotspot) = HotSpot::get() {
                job(hotspot, env, jni);
            }
        });
        // No thread receives this when the wait has ended.
        let _ = done.send(());
        if ends {
            // The destructors of the VM run now, so this thread must not return into the VM.
            loop {
                std::thread::park();
            }
        }
    });
    let _ = wait.recv_timeout(patience);
}

/// The heap is too full for the current thread's allocation. The thread waits, so its frames and their references still
/// exist.
pub(crate) fn dump() {
    have(
        |hotspot, _, _| hotspot.emit(&Event::DumpRequested),
        AT_AN_ERROR,
        false,
    );
}

/// The process ends by `exit`, which any code may call. A thread that is attached to the VM may be in any state, and
/// others may wait for it; so only a thread that is not attached waits here.
extern "C" fn process_ends() {
    if PROCESS.load(Ordering::SeqCst) == std::process::id()
        && let Some(hotspot) = HotSpot::get()
        && !hotspot.dead.load(Ordering::SeqCst)
        && hotspot.java.jni().is_none()
    {
        have(
            |hotspot, env, jni| hotspot.vm_death(env, jni),
            AT_THE_END,
            true,
        );
    }
}
