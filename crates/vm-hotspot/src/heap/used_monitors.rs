//! Monitors in use, for a monitor dump. The VM cannot list monitors that have neither an owner nor waiting threads.

use jvmti::{Env, Jni, Live, Object};
use vmpi::dump::MonitorRecord;
use vmpi::dump::monitor::MonitorName;
use vmpi::vm_event::thread_status;
use vmpi::{EnvId, ObjectHandle};

/// Monitors that one of these threads owns, blocks at or waits on, each once.
#[must_use]
pub fn used_monitors(
    env: Env<Live>,
    jni: Jni,
    threads: impl Iterator<Item = Object>,
) -> Vec<Object> {
    let mut found: Vec<Object> = Vec::new();
    for thread in threads {
        let owned = env.owned_monitors(thread).unwrap_or_default();
        let contended = env.contended_monitor(thread).ok().flatten();
        for monitor in owned.into_iter().chain(contended) {
            if !found.iter().any(|known| jni.is_same(*known, monitor)) {
                found.push(monitor);
            }
        }
    }
    found
}

/// The entry of a dump for the monitor of an object with this id; `None` if the VM does not report it.
///
/// Before JDK 23 a VM counts threads that wait to be notified also among those that wait to enter.
pub fn monitor_record(
    (env, jni): (Env<Live>, Jni),
    monitor: Object,
    id: ObjectHandle,
    env_of: impl Fn(Object) -> EnvId,
) -> Option<MonitorRecord> {
    let usage = env.monitor_usage(monitor).ok()?;
    let with_env = |thread: Object| (thread, env_of(thread));
    let waiting = usage.waiting_to_be_notified.into_iter().map(with_env);
    let waiting: Vec<(Object, EnvId)> = waiting.collect();
    // All virtual threads have one env.
    let is_other = |(thread, env): &(Object, EnvId)| {
        let is_it = |(other, same): &(Object, EnvId)| {
            env == same && (*env != EnvId(0) || jni.is_same(*other, *thread))
        };
        !waiting.iter().any(is_it)
    };
    let entering = usage.waiting_to_enter.into_iter().map(with_env);
    let entering = entering.filter(is_other);
    Some(MonitorRecord {
        monitor: MonitorName::Java(id),
        owner: usage.owner.map_or(EnvId(0), &env_of),
        entry_count: usage.entry_count,
        waiting_to_enter: entering.map(|(_, env)| env).collect(),
        waiting_to_be_notified: waiting.iter().map(|(_, env)| *env).collect(),
    })
}

/// JVMTI state bits as a status of the interface; a suspension of the profiler's own is not shown.
#[must_use]
pub fn status_of(bits: i32, is_ours: bool) -> i32 {
    const BLOCKED: i32 = 0x400;
    const WAITING: i32 = 0x80 | 0x40;
    let mut status = match bits {
        _ if bits & BLOCKED != 0 => thread_status::MONITOR_WAIT,
        _ if bits & WAITING != 0 => thread_status::CONDVAR_WAIT,
        _ => thread_status::RUNNABLE,
    };
    if bits & 0x10_0000 != 0 && !is_ours {
        status |= thread_status::SUSPENDED;
    }
    if bits & 0x20_0000 != 0 {
        status |= thread_status::INTERRUPTED;
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_fold_to_three_and_two_bits() {
        let check = |bits, ours, expected| assert_eq!(status_of(bits, ours), expected, "{bits:x}");
        check(0x1 | 0x4, false, 1);
        check(0x1 | 0x400, false, 2);
        check(0x1 | 0x80 | 0x10 | 0x100, false, 3); // Object.wait
        check(0x1 | 0x80 | 0x20 | 0x40, false, 3); // sleep
        check(0x1 | 0x4 | 0x10_0000, false, 0x8001);
        check(0x1 | 0x4 | 0x10_0000, true, 1);
        check(0x1 | 0x4 | 0x20_0000, false, 0x4001);
    }
}
