//! Raw monitors. JVMTI's cannot be used here: they cannot be created before the VM is initialized, and do not report
//! contention. A handle is a number, so an invalid one is detected.

use std::ffi::CString;
use std::sync::Arc;
use std::time::{Duration, Instant};

use locks::{Condvar, Mutex, MutexGuard, Rank, RwLock};

use super::layout::event;

/// The identity of a thread: its `JNIEnv *`, or another unique number for native threads without one.
pub type Owner = usize;

#[derive(Debug, Default)]
struct State {
    owner: Option<Owner>,
    count: u32,
    /// Threads blocked at the entrance.
    entering: Vec<Owner>,
    /// Threads in `wait`.
    waiting: Vec<Owner>,
    /// Counts notifications.
    notified: u64,
}

/// One raw monitor.
#[derive(Debug)]
pub struct RawMonitor {
    /// The name it was made with.
    pub name: CString,
    state: Mutex<State>,
    freed: Condvar,
    awake: Condvar,
}

/// A raw monitor at one moment.
#[derive(Debug, PartialEq, Eq)]
pub struct Usage {
    /// Its name, valid during the call that reports it.
    pub name: *const std::ffi::c_char,
    /// Its handle.
    pub id: usize,
    /// The owner, 0 for none.
    pub owner: Owner,
    /// How often the owner entered it.
    pub count: u32,
    /// Threads blocked at its entrance.
    pub entering: Vec<Owner>,
    /// Threads that wait to be notified.
    pub waiting: Vec<Owner>,
}

/// All raw monitors, by handle: index in the list plus one.
#[derive(Debug)]
pub struct RawMonitors(RwLock<Vec<Option<Arc<RawMonitor>>>>);

impl Default for RawMonitors {
    fn default() -> Self {
        Self(RwLock::new(Rank::RawMonitors, Vec::new()))
    }
}

/// Receives contention: (event type, monitor).
pub type Emit<'a> = &'a dyn Fn(i32, &RawMonitor);

/// Removes one entry.
fn leave(list: &mut Vec<Owner>, me: Owner) {
    if let Some(at) = list.iter().position(|other| *other == me) {
        list.swap_remove(at);
    }
}

impl RawMonitor {
    /// Monitors whose names begin with an underscore are not reported.
    fn is_silent(&self) -> bool {
        self.name.as_bytes().first() == Some(&b'_')
    }

    fn emit(&self, kind: i32, emit: Emit<'_>) {
        if !self.is_silent() {
            emit(kind, self);
        }
    }

    fn enter(&self, me: Owner, emit: Emit<'_>) {
        let mut state = self.state.lock();
        match state.owner {
            None => (state.owner, state.count) = (Some(me), 1),
            Some(owner) if owner == me => state.count += 1,
            Some(_) => {
                state.entering.push(me);
                drop(state);
                self.emit(event::RAW_MONITOR_CONTENDED_ENTER, emit);
                drop(self.take(self.state.lock(), me, 1));
                self.emit(event::RAW_MONITOR_CONTENDED_ENTERED, emit);
            }
        }
    }

    /// Blocks until the monitor is free and enters it; until then `me` is in the list of entering threads.
    fn take<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        me: Owner,
        count: u32,
    ) -> MutexGuard<'a, State> {
        while state.owner.is_some() {
            state = self.freed.wait(state);
        }
        leave(&mut state.entering, me);
        (state.owner, state.count) = (Some(me), count);
        state
    }

    fn exit(&self, me: Owner, emit: Emit<'_>) {
        let mut state = self.state.lock();
        if state.owner != Some(me) {
            return;
        }
        state.count -= 1;
        if state.count > 0 {
            return;
        }
        state.owner = None;
        let is_contended = !state.entering.is_empty();
        drop(state);
        self.freed.notify_one();
        if is_contended {
            self.emit(event::RAW_MONITOR_CONTENDED_EXIT, emit);
        }
    }

    /// Releases the monitor until notified or `ms` have passed (0: without limit).
    fn wait(&self, me: Owner, ms: i64) {
        let mut state = self.state.lock();
        if state.owner != Some(me) {
            return;
        }
        let (count, seen) = (state.count, state.notified);
        (state.owner, state.count) = (None, 0);
        state.waiting.push(me);
        self.freed.notify_one();
        let limit = u64::try_from(ms).ok().filter(|ms| *ms > 0);
        let until = limit.and_then(|ms| Instant::now().checked_add(Duration::from_millis(ms)));
        while state.notified == seen {
            match until {
                None => {
                    state = self.awake.wait(state);
                }
                Some(until) => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        break;
                    }
                    let back = self.awake.wait_timeout(state, left);
                    state = back;
                }
            }
        }
        leave(&mut state.waiting, me);
        state.entering.push(me);
        drop(self.take(state, me, count));
    }

    fn notify_all(&self, me: Owner) {
        let mut state = self.state.lock();
        if state.owner == Some(me) {
            state.notified += 1;
            drop(state);
            self.awake.notify_all();
        }
    }

    /// Wakes all waiting threads, because the monitor is being destroyed.
    fn release(&self) {
        let mut state = self.state.lock();
        state.notified += 1;
        (state.owner, state.count) = (None, 0);
        drop(state);
        self.awake.notify_all();
        self.freed.notify_all();
    }
}

impl RawMonitors {
    /// Creates a monitor; returns its handle.
    pub fn create(&self, name: CString) -> usize {
        let monitor = Arc::new(RawMonitor {
            name,
            state: Mutex::new(Rank::RawMonitor, State::default()),
            freed: Condvar::new(),
            awake: Condvar::new(),
        });
        let mut all = self.0.write();
        all.push(Some(monitor));
        all.len()
    }

    fn find(&self, id: usize) -> Option<Arc<RawMonitor>> {
        let all = self.0.read();
        all.get(id.wrapping_sub(1))?.clone()
    }

    /// Enters. Here and below, invalid handles have no effect.
    pub fn enter(&self, id: usize, me: Owner, emit: Emit<'_>) {
        if let Some(monitor) = self.find(id) {
            monitor.enter(me, emit);
        }
    }

    /// Leaves; has no effect if the caller is not the owner.
    pub fn exit(&self, id: usize, me: Owner, emit: Emit<'_>) {
        if let Some(monitor) = self.find(id) {
            monitor.exit(me, emit);
        }
    }

    /// Releases the monitor until notified or `ms` have passed, 0 without limit.
    pub fn wait(&self, id: usize, me: Owner, ms: i64) {
        if let Some(monitor) = self.find(id) {
            monitor.wait(me, ms);
        }
    }

    /// Wakes all waiting threads.
    pub fn notify_all(&self, id: usize, me: Owner) {
        if let Some(monitor) = self.find(id) {
            monitor.notify_all(me);
        }
    }

    /// Destroys a monitor; threads that wait for it continue.
    pub fn destroy(&self, id: usize) {
        let mut all = self.0.write();
        let gone = all.get_mut(id.wrapping_sub(1)).and_then(Option::take);
        drop(all);
        if let Some(monitor) = gone {
            monitor.release();
        }
    }

    /// Monitors that are owned or have waiting threads; `body` may use their names.
    pub fn used(&self, mut body: impl FnMut(&Usage)) {
        let all = self.0.read().clone();
        for (place, monitor) in all.iter().enumerate() {
            let Some(monitor) = monitor else { continue };
            let state = monitor.state.lock();
            let usage = Usage {
                name: monitor.name.as_ptr(),
                id: place + 1,
                owner: state.owner.unwrap_or(0),
                count: state.count,
                entering: state.entering.clone(),
                waiting: state.waiting.clone(),
            };
            drop(state);
            let is_used = usage.owner != 0 || !usage.waiting.is_empty();
            if is_used || !usage.entering.is_empty() {
                body(&usage);
            }
        }
    }
}

#[cfg(test)]
#[path = "raw_monitor_tests.rs"]
mod tests;
