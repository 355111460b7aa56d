//! Two ways to use several cores: blocks in any order, and blocks that are computed ahead but consumed in order.

use crate::HeapError;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, sync_channel};
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
    let done: io::Result<()> = std::thread::scope(|scope| {
        // Where the system starts no further thread, this one computes all blocks.
        let others = (1..threads.min(count))
            .map_while(|_| thread::Builder::new().spawn_scoped(scope, run).ok());
        let others: Vec<_> = others.collect();
        let mine = run();
        others.into_iter().fold(mine, |all, other| {
            all.and(
                other
                    .join()
                    .unwrap_or_else(|p| std::panic::resume_unwind(p)),
            )
        })
    });
    done.map_err(HeapError::io("parallel work"))
}

/// Computes blocks on other threads and passes them to `consume` in order. `compute` receives the result of an earlier
/// block to overwrite.
pub(crate) fn in_order<R: Default + Send>(
    count: usize,
    threads: usize,
    compute: impl Fn(usize, &mut R) -> io::Result<()> + Sync,
    mut consume: impl FnMut(usize, &R) -> io::Result<()>,
) -> io::Result<()> {
    let workers = threads.saturating_sub(1).max(1);
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..workers)
            .map(|worker| {
                let (send, results) = sync_channel(2);
                let (done, spare) = channel::<R>();
                let compute = &compute;
                scope.spawn(move || {
                    for block in (worker..count).step_by(workers) {
                        let mut result = spare.try_recv().unwrap_or_default();
                        let computed = compute(block, &mut result);
                        if send.send(computed.map(|()| result)).is_err() {
                            return;
                        }
                    }
                });
                (results, done)
            })
            .collect();
        for block in 0..count {
            let (results, done) = &all[block % workers];
            let Ok(result) = results.recv() else {
                return Err(io::Error::other("a worker ended early"));
            };
            let result = result?;
            consume(block, &result)?;
            // After its last block the worker has ended.
            let _ = done.send(result);
        }
        Ok(())
    })
}
