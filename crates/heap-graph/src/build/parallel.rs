//! Two small ways to use the other core: blocks in any order, and blocks computed ahead but
//! consumed in order.

use crate::HeapError;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;

/// Runs `work` for every block, on `threads` threads, in any order.
pub(crate) fn blocks(
    count: usize,
    threads: usize,
    work: impl Fn(usize) -> io::Result<()> + Sync,
) -> Result<(), HeapError> {
    let next = AtomicUsize::new(0);
    let run = || {
        loop {
            let block = next.fetch_add(1, Ordering::Relaxed);
            if block >= count {
                return Ok(());
            }
            work(block)?;
        }
    };
    let done: io::Result<()> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(count)).map(|_| scope.spawn(run)).collect();
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

/// Computes blocks on other threads and hands them to `consume` in order.
pub(crate) fn in_order<R: Send>(
    count: usize,
    threads: usize,
    compute: impl Fn(usize) -> io::Result<R> + Sync,
    mut consume: impl FnMut(usize, R) -> io::Result<()>,
) -> io::Result<()> {
    let workers = threads.saturating_sub(1).max(1);
    std::thread::scope(|scope| {
        let receivers: Vec<_> = (0..workers)
            .map(|worker| {
                let (send, receive) = sync_channel(2);
                let compute = &compute;
                scope.spawn(move || {
                    for block in (worker..count).step_by(workers) {
                        if send.send(compute(block)).is_err() {
                            return;
                        }
                    }
                });
                receive
            })
            .collect();
        for block in 0..count {
            match receivers[block % workers].recv() {
                Ok(result) => consume(block, result?)?,
                Err(_) => return Err(io::Error::other("a worker ended early")),
            }
        }
        Ok(())
    })
}
