//! What threads of the agent's own do, and retransformation in bulk.

use std::sync::atomic::Ordering;
use std::time::Duration;

use jvmti::{Env, Jni, Live, Object};

use crate::config::Clock;
use crate::hotspot::HotSpot;
use crate::native_dump::collects_in_vm_thread;

/// Starts counting in a VM that runs already. It finds the tracker's native methods
/// in the agent's library only when the attach has ended, so this is tried for a
/// while from a thread of its own.
pub(crate) fn count_soon(env: Env<Live>, jni: Jni) {
    const TRIES: usize = 1000;
    let Some(hotspot) = HotSpot::get() else {
        return;
    };
    for last in (0..TRIES).rev() {
        std::thread::sleep(Duration::from_millis(2));
        match hotspot.start_counting(env, jni) {
            Ok(()) => return,
            Err(error) if last == 0 => {
                (hotspot.message)(&format!("nothing can be counted: {error}"));
            }
            Err(_) => {}
        }
    }
}

/// Collects garbage. While the VM ends, the threads of the concurrent collectors are
/// gone, and who asks them waits for ever; so they are asked by a thread of its own,
/// and not at all in the end.
pub(crate) fn collect_garbage(hotspot: &HotSpot, env: Env<Live>, jni: Jni) -> jvmti::Result<()> {
    const PATIENCE: Duration = Duration::from_secs(2);
    let in_vm_thread = hotspot
        .collects_in_vm_thread
        .get_or_init(|| collects_in_vm_thread(jni));
    if *in_vm_thread {
        return env.force_gc();
    }
    let is_over = || hotspot.dead.load(Ordering::SeqCst);
    if is_over() {
        return Ok(());
    }
    let (done, wait) = std::sync::mpsc::channel();
    hotspot.spawn(env, jni, "HPROF collector", move |env, _| {
        // Nobody listens any more when the wait has ended.
        let _ = done.send(env.force_gc());
    })?;
    let mut ending_for = Duration::ZERO;
    while ending_for < PATIENCE {
        const STEP: Duration = Duration::from_millis(100);
        match wait.recv_timeout(STEP) {
            Ok(collected) => return collected,
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) if is_over() => ending_for += STEP,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
        }
    }
    Ok(())
}

/// The clock thread.
pub(crate) fn keep_time(env: Env<Live>, jni: Jni) {
    while let Some(hotspot) = HotSpot::get().filter(|h| !h.dead.load(Ordering::Relaxed)) {
        std::thread::sleep(Duration::from_millis(1));
        let Some(tracker) = hotspot.tracker() else {
            return;
        };
        match hotspot.config.clock {
            Clock::ThreadCpu => tracker.set_cpu_clocks(env, jni),
            _ => tracker.set_clock(jni, hotspot.elapsed()),
        }
    }
}

/// Retransforms all; when the VM refuses a group, its halves are tried, so that
/// one bad class costs only itself. Returns how many were refused.
pub fn retransform(env: Env<Live>, classes: &[Object]) -> usize {
    if classes.is_empty() || env.retransform(classes).is_ok() {
        return 0;
    }
    if classes.len() == 1 {
        return 1;
    }
    let (left, right) = classes.split_at(classes.len() / 2);
    retransform(env, left) + retransform(env, right)
}
