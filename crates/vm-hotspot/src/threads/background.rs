//! The work of threads of the agent, and retransformation of many classes.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use jvmti::sys::Value;
use jvmti::{Env, Jni, Live, Object};
use rustc_hash::FxHashSet;

use crate::vm::config::Clock;
use crate::vm::hotspot::HotSpot;

/// Starts counting in a VM that already runs.
pub(crate) fn count_soon(hotspot: &HotSpot, env: Env<Live>, jni: Jni) {
    if let Err(error) = soon(hotspot, || hotspot.start_counting(env, jni)) {
        (hotspot.message)(&format!("nothing can be counted: {error}"));
        hotspot.inserted.begin();
    }
}

/// Starts something that needs native methods of the agent in a VM that already runs. The VM finds these in the agent's
/// library only after the attach has ended, so a thread of the agent tries it for a while.
///
/// # Errors
/// That of the last try.
pub(crate) fn soon(hotspot: &HotSpot, start: impl Fn() -> jvmti::Result<()>) -> jvmti::Result<()> {
    const TRIES: usize = 1000;
    let mut result = Ok(());
    for _ in 0..TRIES {
        std::thread::sleep(Duration::from_millis(2));
        if hotspot.dead.load(Ordering::SeqCst) {
            return Ok(());
        }
        result = start();
        if result.is_ok() {
            break;
        }
    }
    result
}

/// Collects garbage. While the VM ends, the threads of concurrent collectors have ended, and a request to them would
/// wait for ever. So a separate thread requests the collection, and none is requested at the end.
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
        // No thread receives this when the wait has ended.
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

/// The last slot among the hooks of Shutdown; those of the program are in the second.
const LAST_HOOK: u8 = 9;

/// Requests a garbage collection when the program has ended, from the last hook that Java's shutdown runs; a concurrent
/// collector ignores requests while the VM ends. Returns weak references to the hook and its class, which are left out
/// of dumps.
pub(crate) fn collect_at_end(jni: Jni) -> jvmti::Result<[Object; 2]> {
    const CLASS: &[u8] = include_bytes!("../../tracker/HprofEnd.class");
    jni.local_frame(8, || {
        // A previous recording may have installed it.
        let class = match jni.find_class("java/lang/HprofEnd") {
            Ok(class) => class,
            Err(_) => jni.define_boot_class("java/lang/HprofEnd", CLASS)?,
        };
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

/// Called when the last hook runs; it is then no longer needed.
pub(crate) fn at_end(hotspot: &HotSpot, env: Env<Live>, jni: Jni) {
    forget_end_hook(jni);
    // The pending objects of threads are kept alive until they are collected.
    hotspot.track_all_gathered(jni);
    if let Err(error) = collect_garbage(hotspot, env, jni) {
        hotspot.degrade(&format!("the dump at the end will have garbage: {error}"));
    }
}

/// Removes the last hook, if it is the agent's.
pub(crate) fn forget_end_hook(jni: Jni) {
    jni.local_frame(8, || {
        let (Some(hooks), Ok(ours)) = (hooks(jni), jni.find_class("java/lang/HprofEnd")) else {
            return;
        };
        let hook = jni.array_get(hooks, usize::from(LAST_HOOK));
        let class = hook.and_then(|hook| jni.object_class(hook));
        if class.is_some_and(|class| jni.is_same(class, ours)) {
            jni.array_set(hooks, usize::from(LAST_HOOK), None);
        }
    });
}

fn hooks(jni: Jni) -> Option<Object> {
    let shutdown = jni.find_class("java/lang/Shutdown").ok()?;
    let hooks = jni.static_field(shutdown, "hooks", "[Ljava/lang/Runnable;");
    jni.get_static_object(shutdown, hooks.ok()?)
}

/// The clock thread.
pub(crate) fn keep_time(hotspot: &HotSpot, env: Env<Live>, jni: Jni) {
    for ticks in 1.. {
        if hotspot.dead.load(Ordering::Relaxed) {
            return;
        }
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

/// Retransforms all loaded classes. Returns the names of those that the VM does not change.
///
/// # Errors
/// When the VM does not list its classes.
pub fn retransform_all(env: Env<Live>, jni: Jni) -> jvmti::Result<Vec<String>> {
    retransform_those(env, jni, |_| true, || true, false).map(|(_, refused)| refused)
}

/// The same for classes whose names (with slashes) `choose` accepts, a slice at a time as long as `goes_on` returns
/// true. Returns how many they are, and the names of those that the VM does not change. If the program runs meanwhile,
/// classes with running methods come first, and the program gets half of the time.
///
/// # Errors
/// When the VM does not list its classes.
pub(crate) fn retransform_those(
    env: Env<Live>,
    jni: Jni,
    mut choose: impl FnMut(&str) -> bool,
    goes_on: impl Fn() -> bool,
    runs: bool,
) -> jvmti::Result<(usize, Vec<String>)> {
    let hot = match runs {
        true => running_classes(env, jni),
        false => FxHashSet::default(),
    };
    let mut wanted = Vec::new();
    for class in env.loaded_classes(jni)? {
        let name = class_name(env, class);
        if env.is_modifiable(class).unwrap_or(false) && !is_anonymous(&name) && choose(&name) {
            wanted.push((!hot.contains(&name), class));
        } else {
            jni.delete_local(class);
        }
    }
    wanted.sort_by_key(|(is_cold, _)| *is_cold);
    let wanted: Vec<Object> = wanted.into_iter().map(|(_, class)| class).collect();
    let mut refused = Vec::new();
    let (mut rest, mut slices) = (&wanted[..], Slices::default());
    while !rest.is_empty() {
        let (slice, others) = rest.split_at(slices.next.min(rest.len()));
        rest = others;
        if goes_on() {
            let begun = Instant::now();
            refused.extend(retransform(env, slice));
            let took = begun.elapsed();
            slices.took(took);
            if runs {
                std::thread::sleep(took);
            }
        }
        slice.iter().for_each(|class| jni.delete_local(*class));
    }
    Ok((wanted.len(), refused))
}

/// How many classes are changed at a time: all threads are stopped for each slice. Before JDK 17 a VM may visit all
/// classes for each changed one, which then takes milliseconds if there are many.
#[derive(Debug)]
struct Slices {
    next: usize,
}

impl Default for Slices {
    fn default() -> Self {
        Self { next: 16 }
    }
}

impl Slices {
    const MOST: usize = 128;
    /// The longest time that a slice should take, including the VM's work before it stops the threads.
    const LONG: Duration = Duration::from_millis(100);

    /// Adapts the size of the next slice to the time of the last one: the next should take at most half of the limit,
    /// or may be twice as large.
    fn took(&mut self, time: Duration) {
        if time > Self::LONG {
            let less = self.next as u128 * Self::LONG.as_nanos() / time.as_nanos() / 2;
            self.next = usize::try_from(less).unwrap_or(1).max(1);
        } else if time < Self::LONG / 4 {
            self.next = (self.next * 2).min(Self::MOST);
        }
    }
}

/// The names, with slashes, of the loaded classes; `None` when the VM does not list them.
pub(crate) fn loaded_names(env: Env<Live>, jni: Jni) -> Option<FxHashSet<String>> {
    let classes = env.loaded_classes(jni).ok()?.into_iter();
    let names = classes.map(|class| {
        let name = class_name(env, class);
        jni.delete_local(class);
        name
    });
    Some(names.collect())
}

/// Frames of each thread that are examined for running methods.
pub(crate) const RUNNING: i32 = 64;

/// Names of the classes whose methods are on the stacks of the threads, at a few moments.
fn running_classes(env: Env<Live>, jni: Jni) -> FxHashSet<String> {
    const LOOKS: usize = 4;
    const BETWEEN: Duration = Duration::from_millis(5);
    let mut methods = FxHashSet::default();
    for _ in 0..LOOKS {
        jni.local_frame(256, || {
            for stack in env.all_stacks(jni, RUNNING).unwrap_or_default() {
                methods.extend(stack.frames.iter().map(|row| row.method));
            }
        });
        std::thread::sleep(BETWEEN);
    }
    let class_of = |method| {
        let class = env.method_class(method).ok().flatten()?;
        let name = class_name(env, class);
        jni.delete_local(class);
        Some(name)
    };
    methods.into_iter().filter_map(class_of).collect()
}

/// Whether a class has no name; the VM then uses a number after a slash. JDK 8 reports such classes as modifiable, but
/// crashes when it reads those of method handles.
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

/// Retransforms all these classes. If the VM refuses a group, its halves are tried, so that one bad class does not
/// affect others. Returns the names of those that were refused.
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
    fn a_slice_that_takes_long_makes_the_next_one_short() {
        let mut slices = Slices::default();
        let mut stops = 0;
        // As on JDK 8 with 3,000 classes: each takes 7 ms.
        let (mut left, mut longest) = (3000_usize, Duration::ZERO);
        while left > 0 {
            let slice = slices.next.min(left);
            let took = Duration::from_millis(7) * slice as u32;
            slices.took(took);
            (left, longest, stops) = (left - slice, longest.max(took), stops + 1);
        }
        assert!(longest < Duration::from_millis(250), "{longest:?}");
        assert!(stops < 500, "{stops}");
        // A VM that is fast at it is not slowed down.
        let mut slices = Slices::default();
        (0..4).for_each(|_| slices.took(Duration::from_millis(3)));
        assert_eq!(slices.next, Slices::MOST);
        slices.took(Duration::from_secs(10));
        assert_eq!(slices.next, 1);
    }

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
