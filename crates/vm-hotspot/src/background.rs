//! What threads of the agent's own do, and retransformation in bulk.

use std::sync::atomic::Ordering;
use std::time::Duration;

use jvmti::sys::Value;
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

/// Collects garbage. While the VM ends, the threads of the concurrent collectors are
/// gone, and who asks them waits for ever; so they are asked by a thread of its own,
/// and not at all in the end.
pub(crate) fn collect_garbage(hotspot: &HotSpot, env: Env<Live>, jni: Jni) -> jvmti::Result<()> {
    const PATIENCE: Duration = Duration::from_secs(2);
    if hotspot.collector().collects_in_vm_thread() {
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

/// The last place among the hooks of Shutdown; those of the program have the second.
const LAST_HOOK: u8 = 9;

/// Has garbage collected when the program has ended: a collector that would be asked in
/// vain while the VM ends is asked by the last hook that Java's shutdown runs. Weak
/// references to the hook and its class, which are to be left out of dumps.
pub(crate) fn collect_at_end(jni: Jni) -> jvmti::Result<[Object; 2]> {
    const CLASS: &[u8] = include_bytes!("../tracker/HprofEnd.class");
    jni.local_frame(8, || {
        let class = jni.define_boot_class("java/lang/HprofEnd", CLASS)?;
        let hook = jni.alloc_object(class)?;
        let shutdown = jni.find_class("java/lang/Shutdown")?;
        let add = jni.static_method(shutdown, "add", "(IZLjava/lang/Runnable;)V")?;
        let arguments = [
            Value {
                i: i32::from(LAST_HOOK),
            },
            Value { z: 0 },
            Value { l: hook.raw() },
        ];
        jni.call_static_void(shutdown, add, &arguments)?;
        Ok([jni.new_weak(hook)?, jni.new_weak(class)?])
    })
}

/// The last hook runs, and nobody needs it any more.
pub(crate) fn at_end(hotspot: &HotSpot, env: Env<Live>, jni: Jni) {
    jni.local_frame(8, || {
        if let Some(hooks) = hooks(jni) {
            jni.array_set(hooks, usize::from(LAST_HOOK), None);
        }
    });
    // What threads have gathered is held until it is taken over.
    hotspot.follow_all_gathered(jni);
    if let Err(error) = collect_garbage(hotspot, env, jni) {
        hotspot.degrade(&format!("the dump at the end will have garbage: {error}"));
    }
}

fn hooks(jni: Jni) -> Option<Object> {
    let shutdown = jni.find_class("java/lang/Shutdown").ok()?;
    let hooks = jni.static_field(shutdown, "hooks", "[Ljava/lang/Runnable;");
    jni.get_static_object(shutdown, hooks.ok()?)
}

/// The clock thread.
pub(crate) fn keep_time(env: Env<Live>, jni: Jni) {
    for ticks in 1.. {
        let Some(hotspot) = HotSpot::get().filter(|h| !h.dead.load(Ordering::Relaxed)) else {
            return;
        };
        let Some(tracker) = hotspot.tracker() else {
            return;
        };
        std::thread::sleep(Duration::from_millis(1));
        match hotspot.config.clock {
            Clock::ThreadCpu => tracker.set_cpu_clocks(env, jni),
            Clock::Elapsed => tracker.set_clock(jni, Clock::Elapsed.now(), ticks),
        }
    }
}

/// Classes that are changed at a time: all threads stand still for each group.
const GROUP: usize = 128;

/// Has the VM ask for the code of every class there is once more. Returns the names of those that it
/// does not change.
///
/// # Errors
/// When the VM does not list its classes.
pub fn retransform_all(env: Env<Live>, jni: Jni) -> jvmti::Result<Vec<String>> {
    retransform_those(env, jni, |_| true, || true).map(|(_, refused)| refused)
}

/// The same for classes with names (with slashes) that `choose` wants, a group at a time as long as
/// `goes_on` says so. How many they are, and the names of those that the VM does not change.
///
/// # Errors
/// When the VM does not list its classes.
pub(crate) fn retransform_those(
    env: Env<Live>,
    jni: Jni,
    mut choose: impl FnMut(&str) -> bool,
    goes_on: impl Fn() -> bool,
) -> jvmti::Result<(usize, Vec<String>)> {
    let is_wanted = |class: &Object| {
        let name = class_name(env, *class);
        env.is_modifiable(*class).unwrap_or(false) && !is_anonymous(&name) && choose(&name)
    };
    let (wanted, others): (Vec<Object>, Vec<Object>) =
        env.loaded_classes()?.into_iter().partition(is_wanted);
    others.into_iter().for_each(|class| jni.delete_local(class));
    let mut refused = Vec::new();
    for group in wanted.chunks(GROUP) {
        if goes_on() {
            refused.extend(retransform(env, group));
        }
        group.iter().for_each(|class| jni.delete_local(*class));
    }
    Ok((wanted.len(), refused))
}

/// Whether a class is one without a name, to which the VM has given a number instead, behind a slash.
/// JDK 8 calls them modifiable, and crashes when it is to say what stands in those of method handles.
fn is_anonymous(name: &str) -> bool {
    let number = name.rsplit_once('/').map(|(_, number)| number);
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// The name of a class, with slashes.
fn class_name(env: Env<Live>, class: Object) -> String {
    let signature = env.class_signature(class).unwrap_or_default();
    let name = signature.strip_prefix('L').unwrap_or(&signature);
    name.strip_suffix(';').unwrap_or(name).to_owned()
}

/// Retransforms all; when the VM refuses a group, its halves are tried, so that
/// one bad class costs only itself. Returns the names of those that were refused.
fn retransform(env: Env<Live>, classes: &[Object]) -> Vec<String> {
    if classes.is_empty() || env.retransform(classes).is_ok() {
        return Vec::new();
    }
    if let [class] = classes {
        return vec![class_name(env, *class)];
    }
    let (left, right) = classes.split_at(classes.len() / 2);
    let mut refused = retransform(env, left);
    refused.extend(retransform(env, right));
    refused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_without_a_name_are_known_by_their_number() {
        let check = |name, expected| assert_eq!(is_anonymous(name), expected, "{name}");
        check("java/lang/invoke/LambdaForm$MH/1510467688", true);
        check("Main$$Lambda$1/883049899", true);
        check("java/lang/Object", false);
        check("Main$1", false);
        check("1", false);
        check("", false);
    }
}
