//! What threads of the agent's own do, and retransformation in bulk.

use std::sync::atomic::Ordering;
use std::time::Duration;

use jvmti::{Env, Jni, Live, Object};

use crate::config::Clock;
use crate::hotspot::HotSpot;

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
pub(crate) fn retransform(env: Env<Live>, classes: &[Object]) -> usize {
    if classes.is_empty() || env.retransform(classes).is_ok() {
        return 0;
    }
    if classes.len() == 1 {
        return 1;
    }
    let (left, right) = classes.split_at(classes.len() / 2);
    retransform(env, left) + retransform(env, right)
}
