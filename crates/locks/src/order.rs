//! Which ranks the current thread holds, in builds with debug assertions.

use std::backtrace::Backtrace;
use std::cell::Cell;
use std::fmt::Debug;
use std::io::Write;

use crate::Rank;

thread_local! {
    /// A bit for each rank. It needs no code before its first use and none when the thread ends: locks are taken by
    /// threads of the VM's, and when others have been taken down already.
    static HELD: Cell<u64> = const { Cell::new(0) };
    /// Calls of the VM since the thread has taken the state.
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

/// Calls of the VM that a thread may make while it holds the state. Most take less than a microsecond, so no other thread
/// waits for more than some milliseconds.
const MOST_CALLS: u32 = 8192;

const IS_ON: bool = cfg!(debug_assertions);

const fn bit(rank: Rank) -> u64 {
    1 << rank as u32
}

// The last rank has a bit.
const _: () = assert!((Rank::Libraries as u32) < u64::BITS);

/// A rank that the current thread holds.
#[derive(Debug)]
pub(crate) struct Held {
    rank: Rank,
    /// It was held before, so another guard gives it back.
    is_second: bool,
}

impl Held {
    /// The thread is about to wait for a lock.
    pub(crate) fn wanted(rank: Rank) -> Self {
        if IS_ON && HELD.get() >= bit(rank) {
            fail(&rank, HELD.get());
        }
        Self::got(rank)
    }

    /// The thread has a lock.
    pub(crate) fn got(rank: Rank) -> Self {
        let before = if IS_ON { HELD.get() } else { 0 };
        if IS_ON {
            HELD.set(before | bit(rank));
            if rank == Rank::State {
                CALLS.set(0);
            }
        }
        Self {
            rank,
            is_second: before & bit(rank) != 0,
        }
    }

    /// The thread gives the lock up for a while, and is about to wait for it.
    pub(crate) fn again(&self) {
        if IS_ON && HELD.get() >= bit(self.rank) << 1 {
            fail(&self.rank, HELD.get());
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if IS_ON && !self.is_second {
            HELD.set(HELD.get() & !bit(self.rank));
        }
    }
}

/// Call this before the thread allocates in the program's heap or runs Java code. An allocation may begin a
/// collection, which on JDK 8 waits for a Java monitor, and Java code may need the state. Builds with debug
/// assertions end the process if the thread holds the state or a lock that is taken under it.
pub fn before_java() {
    const UNDER_STATE: u64 = bit(Rank::EventSink) - bit(Rank::State);
    if IS_ON && HELD.get() & UNDER_STATE != 0 {
        fail(&"the program's heap", HELD.get());
    }
}

/// Call this before each call of the VM. Builds with debug assertions end the process if the thread makes very many while it
/// holds the state, which threads of the program need for their events: work that grows with the program copies what it
/// needs, or gives the state back in between.
#[inline]
pub fn before_vm() {
    if IS_ON && HELD.get() & bit(Rank::State) != 0 {
        let calls = CALLS.get() + 1;
        CALLS.set(calls);
        if calls > MOST_CALLS {
            fail(&"one more call of the VM", HELD.get());
        }
    }
}

/// Ends the process: a panic would end at the next fence, and no test would see it.
#[cold]
fn fail(wanted: &dyn Debug, held: u64) -> ! {
    let all = Rank::ALL.iter().copied();
    let held: Vec<Rank> = all.filter(|rank| held & bit(*rank) != 0).collect();
    let text = format!(
        "LOCK ORDER: {wanted:?} is wanted while {held:?} are held, see the table in crates/locks/src/rank.rs\n{}\n",
        Backtrace::force_capture()
    );
    let _ = std::io::stderr().write_all(text.as_bytes());
    std::process::abort()
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;
    use std::time::Duration;

    use crate::{Condvar, Mutex, Rank, RwLock};

    fn three() -> [Mutex<u8>; 3] {
        [Rank::Profiler, Rank::State, Rank::Libraries].map(|rank| Mutex::new(rank, 0))
    }

    #[test]
    fn ranks_that_rise_are_fine_in_whatever_order_they_are_given_back() {
        let [outer, inner, last] = three();
        let (a, b) = (outer.lock(), inner.lock());
        drop(a);
        let c = last.lock();
        drop(b);
        drop(c);
        drop(inner.lock());
        drop(outer.lock());
        // Each thread has its own.
        let _held = last.lock();
        std::thread::scope(|threads| {
            threads.spawn(|| drop(outer.lock()));
        });
    }

    #[test]
    fn calls_are_counted_from_each_lock_of_the_state_on() {
        let [outer, state, _] = three();
        let _held = outer.lock();
        for _ in 0..10 {
            let _state = state.lock();
            (0..super::MOST_CALLS / 2).for_each(|_| crate::before_vm());
        }
        (0..2 * super::MOST_CALLS).for_each(|_| crate::before_vm());
    }

    #[test]
    fn what_is_tried_is_not_waited_for() {
        let [outer, inner, last] = three();
        let held = inner.lock();
        let tried = outer.try_lock().expect("it is free");
        assert!(outer.try_lock().is_none() && inner.try_lock().is_none());
        drop(last.lock());
        drop(held);
        drop(inner.lock());
        drop(tried);
        drop(outer.lock());
    }

    #[test]
    fn who_waits_to_be_woken_has_the_lock_afterwards() {
        let ([_, state, _], woken) = (three(), Condvar::new());
        let guard = woken.wait_timeout(state.lock(), Duration::from_millis(1));
        let guard = woken.wait_timeout_while(guard, Duration::from_millis(1), |_| true);
        std::thread::scope(|threads| {
            let guard = guard;
            threads.spawn(|| {
                *state.lock() = 1;
                woken.notify_all();
            });
            let mut guard = guard;
            while *guard == 0 {
                guard = woken.wait(guard);
            }
            assert!(state.try_lock().is_none());
        });
        drop(state.lock());
    }

    /// Locks against the order, which no fence may hide.
    fn lock_wrongly(case: &str) {
        let [outer, inner, last] = three();
        let (table, woken) = (RwLock::new(Rank::State, ()), Condvar::new());
        let body = || match case {
            "lower" => drop((last.lock(), outer.lock())),
            "same" => drop((inner.lock(), table.write())),
            "read twice" => drop((table.read(), table.read())),
            "after a try" => drop((last.try_lock(), inner.lock())),
            "work" => {
                let _guard = inner.lock();
                (0..=super::MOST_CALLS).for_each(|_| crate::before_vm());
            }
            "wait" => {
                let guard = inner.lock();
                let _below = last.lock();
                drop(woken.wait_timeout(guard, Duration::from_millis(1)));
            }
            _ => {
                let guard = inner.lock();
                drop(last.lock());
                drop(guard);
            }
        };
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
    }

    #[test]
    fn a_wrong_order_ends_the_process_with_both_names() {
        const CASE: &str = "LOCKS_CASE";
        if let Ok(case) = std::env::var(CASE) {
            return lock_wrongly(&case);
        }
        let own = std::env::current_exe().unwrap();
        let run = |case: &str| {
            let name = "order::tests::a_wrong_order_ends_the_process_with_both_names";
            let mut command = Command::new(&own);
            command.args(["--exact", name, "--nocapture"]);
            let output = command.env(CASE, case).output().unwrap();
            (
                output.status.signal(),
                String::from_utf8_lossy(&output.stderr).into_owned(),
            )
        };
        for (case, wanted, held) in [
            ("lower", "Profiler", "[Libraries]"),
            ("same", "State", "[State]"),
            ("read twice", "State", "[State]"),
            ("after a try", "State", "[Libraries]"),
            ("wait", "State", "[State, Libraries]"),
            ("work", "\"one more call of the VM\"", "[State]"),
        ] {
            let (signal, printed) = run(case);
            let expected = format!("LOCK ORDER: {wanted} is wanted while {held} are held");
            assert_eq!(
                (signal, printed.contains(&expected)),
                (Some(6), true),
                "{case}: {printed}"
            );
        }
        assert_eq!(run("none").0, None);
    }
}
