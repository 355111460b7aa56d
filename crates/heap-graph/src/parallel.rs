//! Ways to use several cores. Where the system starts no further thread (`ulimit -v`, a limit of tasks), the threads
//! that there are do all of the work.

use crate::HeapError;
use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Runs `work` for every block, on `threads` threads, in any order. Each thread reuses a value of its own.
pub(crate) fn blocks<S: Default>(
    count: usize,
    threads: usize,
    work: impl Fn(usize, &mut S) -> io::Result<()> + Sync,
) -> Result<(), HeapError> {
    let next = AtomicUsize::new(0);
    let run = || {
        let mut own = S::default();
        loop {
            let block = next.fetch_add(1, Ordering::Relaxed);
            if block >= count {
                return Ok(());
            }
            work(block, &mut own)?;
        }
    };
    let done: io::Result<()> = thread::scope(|scope| {
        let others = (1..threads.min(count))
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, run).ok());
        let others: Vec<_> = others.collect();
        let mine = run();
        others.into_iter().fold(mine, |all, other| {
            all.and(other.join().unwrap_or_else(|p| resume_unwind(p)))
        })
    });
    done.map_err(HeapError::io("parallel work"))
}

/// Passes each value to `work` on a thread of its own; on this thread, if there is only one. The results are in the order
/// of the values.
pub(crate) fn on_threads<V: Send, R: Send>(values: Vec<V>, work: impl Fn(V) -> R + Sync) -> Vec<R> {
    if values.len() == 1 {
        return values.into_iter().map(work).collect();
    }
    let slots: Vec<Mutex<Option<V>>> = values.into_iter().map(|v| Mutex::new(Some(v))).collect();
    let take = |slot: &Mutex<Option<V>>| slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    let run = |slot: &Mutex<Option<V>>| take(slot).map(&work);
    thread::scope(|scope| {
        let run = &run;
        let started = slots.iter().map(|slot| {
            let thread = thread::Builder::new().spawn_scoped(scope, move || run(slot));
            (slot, thread.ok())
        });
        let started: Vec<_> = started.collect();
        let results = started
            .into_iter()
            .filter_map(|(slot, thread)| match thread {
                // A panic of a worker is a bug; it is passed on to the caller.
                Some(thread) => thread.join().unwrap_or_else(|p| resume_unwind(p)),
                None => run(slot),
            });
        results.collect()
    })
}

/// Runs `other` on another thread while this one runs `mine`, or after it if the system starts no further thread. A panic
/// of either is passed on.
pub fn beside<A: Send, B>(other: impl FnOnce() -> A + Send, mine: impl FnOnce() -> B) -> (A, B) {
    let other = Mutex::new(Some(other));
    let run = || {
        let other = other.lock().unwrap_or_else(PoisonError::into_inner).take();
        other.map(|other| other())
    };
    thread::scope(|scope| {
        let started = thread::Builder::new().spawn_scoped(scope, run);
        let mine = mine();
        let result = match started {
            Ok(thread) => thread.join().unwrap_or_else(|p| resume_unwind(p)),
            Err(_) => run(),
        };
        let Some(result) = result else {
            unreachable!("it runs only once")
        };
        (result, mine)
    })
}

/// Computes blocks on other threads, or on this one if the system starts none, and passes them to `consume` in order.
/// `compute` receives the result of an earlier block to overwrite. Each thread is at most one block ahead.
pub(crate) fn in_order<R: Default + Send, E: Send>(
    count: usize,
    threads: usize,
    compute: impl Fn(usize, &mut R) -> Result<(), E> + Sync,
    mut consume: impl FnMut(usize, &R) -> Result<(), E>,
) -> Result<(), E> {
    let workers = threads.saturating_sub(1).max(1);
    thread::scope(|scope| {
        let all: Vec<_> = (0..workers)
            .map(|worker| {
                let (send, results) = sync_channel(0);
                let (done, spare) = channel::<R>();
                let compute = &compute;
                let run = move || {
                    for block in (worker..count).step_by(workers) {
                        let mut result = spare.try_recv().unwrap_or_default();
                        let computed = compute(block, &mut result);
                        if send.send(computed.map(|()| result)).is_err() {
                            return;
                        }
                    }
                };
                let thread = thread::Builder::new().spawn_scoped(scope, run);
                thread.ok().map(|_| (results, done))
            })
            .collect();
        let mut own = R::default();
        for block in 0..count {
            match &all[block % workers] {
                Some((results, done)) => {
                    // A worker ends early only by a panic, which the scope passes on.
                    let Ok(result) = results.recv() else { break };
                    let result = result?;
                    consume(block, &result)?;
                    // After its last block the worker has ended.
                    let _ = done.send(result);
                }
                None => {
                    compute(block, &mut own)?;
                    consume(block, &own)?;
                }
            }
        }
        Ok(())
    })
}
