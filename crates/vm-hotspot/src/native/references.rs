//! Global references that native code makes (JNI), with the stack and class of each.
//!
//! The four functions of JNI are replaced for the whole VM. References of the agent, which calls the VM's functions,
//! and those that the VM makes for itself are not recorded. A reference is in the table from before the program gets it
//! until before it is deleted, so a thread that holds the table's lock may read all references in it.
//!
//! No Java code runs here, and every wait has a limit: native code may be in a critical region, which delays a
//! collection that the thread with the state may wait for.

use std::sync::Arc;
use std::time::{Duration, Instant};

use jvmti::sys::{RawEnv, RawObject};
use jvmti::{Env, Jni, Live, Object, ReferenceHooks};
use locks::{Mutex, MutexGuard, Rank};
use rustc_hash::FxHashMap;
use vmpi::{ClassId, Memory, ReferenceRow, References, ThreadId, TraceId, Worth};

use crate::instrument::natives::{is_inside, with_agent_guard};
use crate::vm::costs;
use crate::vm::hotspot::HotSpot;
use crate::vm::state::State;

/// How long to wait for the state before a reference is recorded without its stack.
const PATIENCE: Duration = Duration::from_secs(1);
/// The low bits of a reference are its kind; the others are the address of its slot.
const KIND: usize = 3;

/// The common key of references that are counted together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Key {
    class: ClassId,
    trace: TraceId,
    weak: bool,
}

struct Site {
    key: Key,
    thread: ThreadId,
    created: u64,
    deleted: u64,
}

struct Entry {
    site: u32,
    bytes: u64,
    made_ns: u64,
}

/// All recorded references.
#[derive(Default)]
struct Table {
    sites: Vec<Site>,
    by_key: FxHashMap<Key, u32>,
    by_reference: FxHashMap<usize, Entry>,
    lost: u64,
    memory: Arc<Memory>,
}

impl Table {
    fn add(&mut self, reference: usize, key: Key, thread: ThreadId, (bytes, made_ns): (u64, u64)) {
        if !self.memory.native.take(Worth::Objects, costs::REFERENCE) {
            self.lost += 1;
            return;
        }
        let next = self.sites.len() as u32;
        let site = *self.by_key.entry(key).or_insert(next);
        if site == next {
            self.memory.native.charge(costs::SITE);
            self.sites.push(Site {
                key,
                thread,
                created: 0,
                deleted: 0,
            });
        }
        let row = &mut self.sites[site as usize];
        row.created += 1;
        row.thread = thread;
        let entry = Entry {
            site,
            bytes,
            made_ns,
        };
        // The VM deleted the previous reference by itself.
        if let Some(gone) = self.by_reference.insert(reference, entry) {
            self.memory.native.give(Worth::Objects, costs::REFERENCE);
            self.sites[gone.site as usize].deleted += 1;
        }
    }

    fn remove(&mut self, reference: usize) {
        // A reference that was made before the recording is not known.
        if let Some(entry) = self.by_reference.remove(&reference) {
            self.memory.native.give(Worth::Objects, costs::REFERENCE);
            self.sites[entry.site as usize].deleted += 1;
        }
    }

    /// A copy of the table: rows, and the row and slot of each reference, in no order.
    fn copy(&self, now_ns: u64, is_cleared: impl Fn(usize) -> bool) -> References {
        let row = |site: &Site| ReferenceRow {
            class: site.key.class,
            trace: site.key.trace,
            thread: site.thread,
            weak: site.key.weak,
            created: site.created,
            deleted: site.deleted,
            ..ReferenceRow::default()
        };
        let mut rows: Vec<ReferenceRow> = self.sites.iter().map(row).collect();
        let mut handles = Vec::with_capacity(self.by_reference.len());
        for (reference, entry) in &self.by_reference {
            let row = &mut rows[entry.site as usize];
            row.oldest_ns = row.oldest_ns.max(now_ns.saturating_sub(entry.made_ns));
            match row.weak && is_cleared(*reference) {
                true => row.cleared += 1,
                false => row.bytes += entry.bytes,
            }
            handles.push((entry.site, (reference & !KIND) as u64));
        }
        References {
            rows,
            handles,
            lost: self.lost,
        }
    }
}

/// Sorts the rows by the number of existing references, the largest first.
fn in_order(all: References) -> References {
    let mut order: Vec<usize> = (0..all.rows.len()).collect();
    order.sort_by_key(|at| {
        let row = &all.rows[*at];
        (std::cmp::Reverse(row.created - row.deleted), *at)
    });
    let mut place = vec![0; all.rows.len()];
    for (new, old) in order.iter().enumerate() {
        place[*old] = new as u32;
    }
    let handles = all.handles.iter();
    let mut handles: Vec<(u32, u64)> = handles
        .map(|(row, slot)| (place[*row as usize], *slot))
        .collect();
    handles.sort_unstable();
    let rows = order.into_iter().map(|at| all.rows[at]).collect();
    References {
        rows,
        handles,
        lost: all.lost,
    }
}

static TABLE: Mutex<Option<Table>> = Mutex::new(Rank::References, None);

/// Runs `body` on the table.
fn with_table<T>(body: impl FnOnce(&mut Table) -> T) -> T {
    body(TABLE.lock().get_or_insert_default())
}

/// Locks the state, unless another thread holds it for very long.
fn patiently(hotspot: &HotSpot) -> Option<MutexGuard<'_, State>> {
    let begun = Instant::now();
    loop {
        match hotspot.state.try_lock() {
            Some(state) => return Some(state),
            None if begun.elapsed() > PATIENCE => return None,
            None => std::thread::sleep(Duration::from_micros(50)),
        }
    }
}

/// Class, stack and thread of a reference that the current thread makes.
fn describe(hotspot: &HotSpot, env: Env<Live>, jni: Jni, object: Object) -> (Key, ThreadId) {
    let Some(mut state) = patiently(hotspot) else {
        with_table(|table| table.lost += 1);
        return Default::default();
    };
    let trace = state.current_trace(env, jni, &hotspot.config);
    let thread = state.registry.thread(env, None, false);
    let mirror = jni.object_class(object);
    let class = mirror.map(|mirror| state.registry.class(env, jni, mirror));
    let key = Key {
        class: class.unwrap_or_default(),
        trace,
        weak: false,
    };
    (key, thread)
}

/// Records a new reference, before it is returned to its maker.
fn made(env: RawEnv, reference: RawObject, weak: bool) {
    let Some(hotspot) = HotSpot::get().filter(|_| !is_inside()) else {
        return;
    };
    let is_over = hotspot.dead.load(std::sync::atomic::Ordering::Relaxed);
    let is_wanted = hotspot.config.references && !is_over;
    let (Some(live), true) = (hotspot.live(), is_wanted) else {
        return;
    };
    // SAFETY: JNI has just given it to the caller, with the caller's environment.
    let (jni, made) = unsafe { (Jni::from_raw(env), Object::from_raw(reference)) };
    let Some(made) = made else { return };
    with_agent_guard(|| {
        jni.without_exception(|| {
            jni.local_frame(32, || {
                // The object of a weak reference may be freed meanwhile.
                let Some(object) = jni.new_local(made) else {
                    return;
                };
                let bytes = live.object_size(object).unwrap_or(0);
                let (key, thread) = describe(hotspot, live, jni, object);
                let key = Key { weak, ..key };
                let of = (bytes, hotspot.elapsed());
                with_table(|table| table.add(reference as usize, key, thread, of));
            });
        });
    });
}

/// Removes a reference before it is deleted, because its slot may be reused immediately.
fn dropping(_env: RawEnv, reference: RawObject, _weak: bool) {
    with_table(|table| table.remove(reference as usize));
}

/// Records references from now on.
///
/// # Errors
/// When the VM refuses.
pub(crate) fn record(env: Env<Live>, jni: Jni, memory: &Arc<Memory>) -> jvmti::Result<()> {
    with_table(|table| table.memory = Arc::clone(memory));
    env.replace_references(jni, ReferenceHooks { made, dropping })
}

/// Stops recording, and restores the VM's functions.
pub(crate) fn forget(env: Env<Live>, jni: Jni) {
    if let Err(error) = env.restore_references(jni)
        && let Some(hotspot) = HotSpot::get()
    {
        (hotspot.message)(&format!("JNI's functions stay replaced: {error}"));
    }
    *TABLE.lock() = None;
}

/// What was recorded so far.
pub(crate) fn all(hotspot: &HotSpot, jni: Jni) -> References {
    let is_cleared = |reference: usize| {
        // SAFETY: the thread that deletes it removes it from the table first.
        let weak = unsafe { Object::from_raw(reference as RawObject) };
        weak.is_some_and(|weak| jni.is_dead(weak))
    };
    // Threads that make references wait for the copy, but not for the sorting.
    let copy = with_table(|table| {
        let copy = table.copy(hotspot.elapsed(), is_cleared);
        table.lost = 0;
        copy
    });
    in_order(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(class: u32, weak: bool) -> Key {
        Key {
            class: ClassId(class),
            trace: TraceId(class),
            weak,
        }
    }

    #[test]
    fn references_are_counted_by_kind_class_and_stack() {
        let mut table = Table::default();
        for reference in 0..10 {
            let slot = 0x1000 + 8 * reference;
            table.add(slot | 2, key(1, false), ThreadId(1), (16, reference as u64));
            table.add(slot + 0x801, key(1, true), ThreadId(2), (24, 5));
        }
        for reference in 0..7 {
            table.remove((0x1000 + 8 * reference) | 2);
            table.remove(0x9999); // Made before the recording.
        }
        table.add(0x1002, key(2, false), ThreadId(3), (100, 90)); // A slot that was free.
        let all = in_order(table.copy(100, |reference| reference < 0x1811));
        let row = |at: usize| all.rows[at];
        assert_eq!((row(0).weak, row(0).created, row(0).deleted), (true, 10, 0));
        assert_eq!(
            (row(0).cleared, row(0).bytes, row(0).oldest_ns),
            (2, 8 * 24, 95)
        );
        assert_eq!(
            (row(1).weak, row(1).created, row(1).deleted),
            (false, 10, 7)
        );
        assert_eq!((row(1).bytes, row(1).oldest_ns), (48, 93));
        assert_eq!((row(2).created, row(2).thread), (1, ThreadId(3)));
        let of = |row: u32| all.handles.iter().filter(move |(at, _)| *at == row);
        assert_eq!([0, 1, 2].map(|row| of(row).count()), [10, 3, 1]);
        assert_eq!(
            all.handles[10..],
            [(1, 0x1038), (1, 0x1040), (1, 0x1048), (2, 0x1000)]
        );
    }

    #[test]
    fn a_slot_that_is_used_again_ends_the_reference_before() {
        let mut table = Table::default();
        table.add(0x1000, key(1, false), ThreadId(1), (16, 0));
        table.add(0x1000, key(2, false), ThreadId(1), (24, 0));
        let all = table.copy(0, |_| false);
        let counts = |at: usize| {
            (
                all.rows[at].created,
                all.rows[at].deleted,
                all.rows[at].bytes,
            )
        };
        assert_eq!([counts(0), counts(1)], [(1, 1, 0), (1, 0, 24)]);
        assert_eq!(all.handles, [(1, 0x1000)]);
    }
}
