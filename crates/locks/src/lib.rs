//! Locks with ranks, so that no two threads ever wait for each other.
//!
//! Each lock has a place in one table, [`Rank`]. A thread that holds a lock may wait only for locks that stand below it.
//! A build with debug assertions records which ranks each thread holds. When a thread requests a lock that does not stand
//! below all of them, it prints the names and the stack and ends the process, even if the lock is free: one run of the code is
//! enough to find a wrong order. Other builds record nothing.
//!
//! A lock whose holder failed is taken over as it is: the agents continue after a fault of their own.
//!
//! ```
//! use locks::{Mutex, Rank};
//!
//! let state = Mutex::new(Rank::State, 1);
//! let deaths = Mutex::new(Rank::Deaths, vec![2]);
//! let mut number = state.lock();
//! *number += deaths.lock()[0];
//! assert_eq!(*number, 3);
//! ```
//!
//! Reading order: [`rank`], `order`.

mod order;
pub mod rank;

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{self, LockResult, PoisonError, TryLockError};
use std::time::Duration;

use order::Held;
pub use order::{before_java, before_vm};
pub use rank::Rank;

fn taken_over<G>(locked: LockResult<G>) -> G {
    locked.unwrap_or_else(PoisonError::into_inner)
}

/// What a lock holds, until this is dropped.
#[derive(Debug)]
pub struct Guard<G> {
    // Given back before the rank is.
    inner: G,
    held: Held,
}

/// What a [`Mutex`] holds.
pub type MutexGuard<'a, T> = Guard<sync::MutexGuard<'a, T>>;

impl<G: Deref> Deref for Guard<G> {
    type Target = G::Target;

    fn deref(&self) -> &G::Target {
        &self.inner
    }
}

impl<G: DerefMut> DerefMut for Guard<G> {
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.inner
    }
}

/// One at a time.
pub struct Mutex<T> {
    rank: Rank,
    inner: sync::Mutex<T>,
}

impl<T> Mutex<T> {
    /// A lock at a place of the table.
    pub const fn new(rank: Rank, value: T) -> Self {
        Self {
            rank,
            inner: sync::Mutex::new(value),
        }
    }

    /// Waits for it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        let held = Held::wanted(self.rank);
        let inner = taken_over(self.inner.lock());
        Guard { inner, held }
    }

    /// Takes the lock if it is free. This does not wait, so any rank is allowed; locks taken after it are checked against its
    /// rank.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let inner = match self.inner.try_lock() {
            Ok(inner) => inner,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let held = Held::got(self.rank);
        Some(Guard { inner, held })
    }
}

impl<T> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Mutex").field(&self.rank).finish()
    }
}

/// Many who read, or one who writes.
pub struct RwLock<T> {
    rank: Rank,
    inner: sync::RwLock<T>,
}

impl<T> RwLock<T> {
    /// A lock at a place of the table.
    pub const fn new(rank: Rank, value: T) -> Self {
        Self {
            rank,
            inner: sync::RwLock::new(value),
        }
    }

    /// Waits until no thread writes. A thread that reads already must not call it again: a writer may wait in between.
    pub fn read(&self) -> Guard<sync::RwLockReadGuard<'_, T>> {
        let held = Held::wanted(self.rank);
        let inner = taken_over(self.inner.read());
        Guard { inner, held }
    }

    /// Waits until it has it alone.
    pub fn write(&self) -> Guard<sync::RwLockWriteGuard<'_, T>> {
        let held = Held::wanted(self.rank);
        let inner = taken_over(self.inner.write());
        Guard { inner, held }
    }
}

impl<T> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RwLock").field(&self.rank).finish()
    }
}

/// A condition variable for a [`Mutex`]. A waiting thread takes the lock again at the end, so it must hold no lock below it.
#[derive(Debug, Default)]
pub struct Condvar(sync::Condvar);

impl Condvar {
    /// A condition variable without waiting threads.
    #[must_use]
    pub const fn new() -> Self {
        Self(sync::Condvar::new())
    }

    /// Waits to be woken.
    pub fn wait<'a, T>(&self, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        let Guard { inner, held } = guard;
        held.again();
        let inner = taken_over(self.0.wait(inner));
        Guard { inner, held }
    }

    /// Waits to be woken, for at most this long.
    pub fn wait_timeout<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        most: Duration,
    ) -> MutexGuard<'a, T> {
        let Guard { inner, held } = guard;
        held.again();
        let inner = taken_over(self.0.wait_timeout(inner, most)).0;
        Guard { inner, held }
    }

    /// Waits while the condition is true, for at most this long.
    pub fn wait_timeout_while<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        most: Duration,
        condition: impl FnMut(&mut T) -> bool,
    ) -> MutexGuard<'a, T> {
        let Guard { inner, held } = guard;
        held.again();
        let inner = taken_over(self.0.wait_timeout_while(inner, most, condition)).0;
        Guard { inner, held }
    }

    /// Wakes one.
    pub fn notify_one(&self) {
        self.0.notify_one();
    }

    /// Wakes all.
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}
