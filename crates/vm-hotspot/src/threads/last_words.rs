//! What is written when the heap is full: a dump at the first error, and everything when the process
//! ends although its VM has not.
//!
//! The thread that ends a VM from outside (the `java` launcher when `main` is over) is attached to it
//! first. When the heap is too full for that thread's object, the launcher leaves by `exit` instead:
//! no shutdown hooks run, no end of the VM is reported, and the profile would be lost when it is wanted
//! most. So a thread of the agent's own, attached while memory was left, stands by.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use jvmti::{Agent, Env, Jni, Live};
use locks::{Mutex, Rank};
use vmpi::Event;

use crate::threads::worker::{Worker, fenced};
use crate::vm::hotspot::HotSpot;

/// Longest wait for the profile of a process that ends: it is worth some time, but not for ever.
const AT_THE_END: Duration = Duration::from_secs(600);
/// Longest wait of the thread that got the error. It may hold a monitor that writing needs; and the
/// VM stops it anyway while its frames are dumped.
const AT_AN_ERROR: Duration = Duration::from_secs(60);

/// The thread that stands by.
static STANDS_BY: Mutex<Option<Arc<Worker>>> = Mutex::new(Rank::StandsBy, None);

/// The process that it belongs to: in a copy of the process, which `fork` makes, it is not there.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Starts it.
pub(crate) fn stand_by(hotspot: &HotSpot, env: Env<Live>, jni: Jni) -> jvmti::Result<()> {
    let worker = Worker::start(hotspot, env, jni, "HPROF last words")?;
    *STANDS_BY.lock() = Some(worker);
    if PROCESS.swap(std::process::id(), Ordering::SeqCst) == std::process::id() {
        // A recording before has said so.
        return Ok(());
    }
    // SAFETY: the function takes nothing and returns nothing, as `atexit` calls it.
    match unsafe { libc::atexit(process_ends) } {
        0 => Ok(()),
        _ => Err(jvmti::Error::Jni("atexit")),
    }
}

/// Has it do something, and waits for that. If the process `ends`, it does nothing more.
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
            // The VM's destructors run: who came back into the VM would call what is no more.
            loop {
                std::thread::park();
            }
        }
    });
    let _ = wait.recv_timeout(patience);
}

/// The heap is too full for the current thread's allocation. The thread waits and so still has its
/// frames, with all that they hold.
pub(crate) fn dump() {
    have(
        |hotspot, _, _| hotspot.emit(&Event::DumpRequested),
        AT_AN_ERROR,
        false,
    );
}

/// The process ends by `exit`, called from anywhere. A thread of the VM's may be in the middle of
/// anything, and others may wait for it in vain; only one that is none can wait for them.
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
