//! The sampled threads and their signals, from timers on their CPU time and from the sampling thread. A tid is the
//! kernel's number of a thread.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::fs::File;
use std::ops::Bound;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jvmti::sys::FieldPtr;
use jvmti::{Jni, Object};
use locks::{Mutex, Rank};
use vmpi::{ThreadId, TraceId};

use crate::cpu::clocks::{Clock, Mark, Timer, has_ended};
use crate::cpu::kernel_events;
use crate::cpu::native_walk::own_memory;
use crate::cpu::other_threads::OtherThreads;
use crate::vm::vm_structs::VmStructs;

/// One armed timer.
#[derive(Debug)]
struct Armed {
    clock: Clock,
    /// The thread's number in the profile, 0 if it is not known.
    number: u32,
    /// When the thread had its last turn, or began.
    turn: Instant,
    /// At most so many threads as [`PENDING`] has.
    pending: Option<&'static Pending>,
    last: Option<Last>,
}

/// The stack of a thread's last wall-clock sample, and whether the thread waited.
pub(crate) type Last = (TraceId, bool);

/// The elapsed time of a thread that no sample counts, up to its end or that of the recording.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    pub(crate) us: u64,
    pub(crate) last: Option<Last>,
}

impl Armed {
    /// Ends the thread's present turn. A signal that is under way will count no time.
    fn take_rest(&mut self) -> Rest {
        let now = Instant::now();
        let since = now.duration_since(std::mem::replace(&mut self.turn, now));
        let before = self
            .pending
            .map_or(0, |pending| pending.uncounted_us.swap(0, Ordering::Relaxed));
        Rest {
            us: before + u64::try_from(since.as_micros()).unwrap_or(u64::MAX),
            last: self.last,
        }
    }
}

/// A thread that has ended since samples were last counted.
#[derive(Debug)]
struct Ended {
    tid: u32,
    number: u32,
    rest: Rest,
}

/// What a thread and the sampling thread know of the thread's turns.
#[derive(Debug)]
struct Pending {
    /// Set while the signal of its last turn has not arrived.
    is_set: AtomicBool,
    /// Microseconds up to its last turn that no sample has counted.
    uncounted_us: AtomicU64,
}

static PENDING: [Pending; 4096] = [const {
    Pending {
        is_set: AtomicBool::new(false),
        uncounted_us: AtomicU64::new(0),
    }
}; 4096];
/// A signal that has not arrived after this time may be lost.
const LOST: Duration = Duration::from_millis(200);

/// The armed timers by tid, and the thread whose turn was last.
#[derive(Debug, Default)]
struct AllArmed {
    timers: BTreeMap<u32, Armed>,
    last: u32,
    /// Elements of [`PENDING`] of ended threads, for reuse, and how many were ever given.
    free: Vec<&'static Pending>,
    given: usize,
    /// No thread gets a timer any more.
    is_closed: bool,
}

impl AllArmed {
    /// An element of [`PENDING`] that no thread has.
    fn take_pending(&mut self) -> Option<&'static Pending> {
        let pending = self.free.pop().or_else(|| {
            self.given += 1;
            PENDING.get(self.given - 1)
        });
        pending.inspect(|pending| {
            pending.is_set.store(false, Ordering::Relaxed);
            pending.uncounted_us.store(0, Ordering::Relaxed);
        })
    }
}

/// All timers by tid. Never locked by a signal handler.
#[derive(Debug)]
pub(crate) struct Timers {
    armed: Mutex<AllArmed>,
    /// Nanoseconds of CPU time between two signals of a thread; 0 while no thread is sampled.
    period_ns: AtomicU64,
    ended: Mutex<Vec<Ended>>,
    /// Threads without a timer since the last call of `take_refused`.
    refused: AtomicU64,
    others: OtherThreads,
    /// Whether threads get events of the kernel, as far as these are available.
    wants_events: bool,
}

impl Default for Timers {
    fn default() -> Self {
        Self::new(false)
    }
}

impl Timers {
    /// No timers yet. With `wants_events` they are events of the kernel, as far as these are available.
    pub(crate) fn new(wants_events: bool) -> Self {
        Self {
            wants_events,
            armed: Mutex::new(Rank::Timers, AllArmed::default()),
            period_ns: AtomicU64::new(0),
            ended: Mutex::new(Rank::EndedTimers, Vec::new()),
            refused: AtomicU64::new(0),
            others: OtherThreads::default(),
        }
    }
}

/// Whether a timer on a thread's CPU time is allowed: the user's limit may be reached, or a container may forbid it.
pub(crate) fn are_allowed() -> bool {
    // So late that it never expires.
    Timer::arm(Duration::from_secs(3600), own_tid(), Mark::Program).is_ok()
}

impl Timers {
    /// Sets the period of all present and future timers. Zero stops them.
    pub(crate) fn signal_every(&self, period: Duration) {
        let armed = self.armed.lock();
        let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        if self.period_ns.swap(period_ns, Ordering::Relaxed) == period_ns {
            return;
        }
        for armed in armed.timers.values() {
            // One of a thread that has just ended is refused.
            let _ = armed.clock.set(period);
        }
        self.others.signal_every(period);
    }

    /// Gives threads that run no Java code a timer, and forgets those that have ended.
    pub(crate) fn look_for_others(&self) {
        let known: Vec<u32> = self.armed.lock().timers.keys().copied().collect();
        let is_known = |tid| known.binary_search(&tid).is_ok();
        let arm = |tid| Clock::arm(self.period(), tid, Mark::Other, self.wants_events);
        let refused = self.others.look(arm, is_known);
        self.refused.fetch_add(refused, Ordering::Relaxed);
    }

    /// The name of a thread that runs no Java code.
    pub(crate) fn name_of_other(&self, tid: u32) -> String {
        self.others.name(tid)
    }

    fn period(&self) -> Duration {
        Duration::from_nanos(self.period_ns.load(Ordering::Relaxed))
    }

    /// Gives a thread a timer unless it has one.
    pub(crate) fn arm(&self, tid: u32, number: u32) {
        let mut armed = self.armed.lock();
        if armed.is_closed || armed.timers.contains_key(&tid) {
            return;
        }
        match Clock::arm(self.period(), tid, Mark::Program, self.wants_events) {
            Ok(clock) => {
                let thread = Armed {
                    clock,
                    number,
                    turn: Instant::now(),
                    pending: armed.take_pending(),
                    last: None,
                };
                armed.timers.insert(tid, thread);
            }
            Err(error) if has_ended(&error) => {}
            Err(_) => drop(self.refused.fetch_add(1, Ordering::Relaxed)),
        }
    }

    /// How many threads have got no timer since the last call.
    pub(crate) fn take_refused(&self) -> u64 {
        self.refused.swap(0, Ordering::Relaxed)
    }

    /// Deletes the timer of a thread, which has ended.
    pub(crate) fn disarm(&self, tid: u32) {
        self.others.disarm(tid);
        let mut all = self.armed.lock();
        let mut armed = all.timers.remove(&tid);
        let rest = armed.as_mut().map(|armed| Ended {
            tid,
            number: armed.number,
            rest: armed.take_rest(),
        });
        all.free.extend(armed.and_then(|armed| armed.pending));
        drop(all);
        if let Some(rest) = rest {
            self.ended.lock().push(rest);
        }
    }

    /// The number in the profile of a thread that is alive or ended a moment ago.
    pub(crate) fn number(&self, tid: u32) -> ThreadId {
        let running = self.armed.lock().timers.get(&tid).map(|armed| armed.number);
        let ended = || {
            let ended = self.ended.lock();
            let last = ended.iter().rev().find(|one| one.tid == tid);
            last.map(|one| one.number)
        };
        running.or_else(ended).map_or(ThreadId::NONE, ThreadId)
    }

    /// A thread that is alive or ended a moment ago has a wall-clock sample.
    pub(crate) fn sampled(&self, tid: u32, last: Last) {
        if let Some(armed) = self.armed.lock().timers.get_mut(&tid) {
            armed.last = Some(last);
        } else if let Some(one) = self
            .ended
            .lock()
            .iter_mut()
            .rev()
            .find(|one| one.tid == tid)
        {
            one.rest.last = Some(last);
        }
    }

    /// Records that all samples of ended threads have been counted. Returns the time after these samples; with
    /// `of_all` also that of the other threads.
    pub(crate) fn take_rests(&self, of_all: bool) -> Vec<Rest> {
        let ended = std::mem::take(&mut *self.ended.lock());
        let mut armed = self.armed.lock();
        let running = armed.timers.values_mut().filter(|_| of_all);
        let ended = ended.iter().map(|one| one.rest);
        ended.chain(running.map(Armed::take_rest)).collect()
    }

    /// Deletes all timers; no thread gets another one.
    pub(crate) fn close(&self) {
        self.others.close();
        let mut armed = self.armed.lock();
        armed.timers.clear();
        armed.is_closed = true;
    }

    /// Gives the next threads their turn, at most `most`: calls `signal` with the tid of each and the microseconds
    /// since its last turn. Returns how many calls returned true. A thread whose last signal has not arrived (it gets
    /// no processor) has its turn later, because the system would drop another signal.
    pub(crate) fn take_turns(&self, most: usize, signal: impl Fn(u32, Turn) -> bool) -> usize {
        let mut armed = self.armed.lock();
        let behind = (Bound::Excluded(armed.last), Bound::Unbounded);
        let round = armed
            .timers
            .range(behind)
            .chain(armed.timers.range(..=armed.last));
        let next: Vec<u32> = round.take(most).map(|(tid, _)| *tid).collect();
        let mut done = 0;
        for tid in next {
            armed.last = tid;
            if let Some(thread) = armed.timers.get_mut(&tid) {
                let now = Instant::now();
                let since = now.duration_since(thread.turn);
                let is_pending = thread
                    .pending
                    .is_some_and(|one| one.is_set.load(Ordering::Relaxed));
                if is_pending && since < LOST {
                    continue;
                }
                thread.turn = now;
                let since_us = u32::try_from(since.as_micros()).unwrap_or(u32::MAX);
                if let Some(pending) = thread.pending {
                    let uncounted = &pending.uncounted_us;
                    uncounted.fetch_add(since_us.into(), Ordering::Relaxed);
                    pending.is_set.store(true, Ordering::Relaxed);
                }
                let turn = Turn {
                    since_us,
                    pending: thread.pending,
                };
                done += usize::from(signal(tid, turn));
            }
        }
        done
    }
}

/// Reads tids of threads from the VM: the Java object of a thread has the address of the VM's `JavaThread`, which has
/// the address of its `OSThread`, which has the tid.
pub(crate) struct SystemNumbers {
    /// Memory of this process: a thread may just have ended, and its memory may be unmapped.
    memory: &'static File,
    /// Field `eetop` of `java.lang.Thread`.
    address: FieldPtr,
    os_thread: u64,
    number: u64,
}

impl SystemNumbers {
    /// Looks up the offsets; `None` if this VM does not export them.
    pub(crate) fn of(jni: Jni) -> Option<Self> {
        let structs = VmStructs::load()?;
        let thread = jni.find_class("java/lang/Thread").ok()?;
        Some(Self {
            memory: own_memory().ok()?,
            address: jni.field(thread, "eetop", "J").ok()?,
            os_thread: structs.offset(&["JavaThread", "Thread"], "_osthread")? as u64,
            number: structs.offset(&["OSThread"], "_thread_id")? as u64,
        })
    }

    /// The tid of a live platform thread.
    pub(crate) fn tid(&self, jni: Jni, thread: Object) -> Option<u32> {
        let own = jni.get_long(thread, self.address).cast_unsigned();
        let os_thread = u64::from_ne_bytes(self.read(own, self.os_thread)?);
        let tid = u32::from_ne_bytes(self.read(os_thread, self.number)?);
        Path::new("/proc/self/task")
            .join(tid.to_string())
            .exists()
            .then_some(tid)
    }

    fn read<const SIZE: usize>(&self, start: u64, offset: u64) -> Option<[u8; SIZE]> {
        let mut bytes = [0; SIZE];
        let at = start.checked_add(offset).filter(|_| start != 0)?;
        self.memory.read_exact_at(&mut bytes, at).ok()?;
        Some(bytes)
    }
}

/// The tid of the current thread; for signal handlers, too.
pub(crate) fn own_tid() -> u32 {
    // SAFETY: takes nothing and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// The code of a signal that reports that a file has data.
const POLL_IN: i32 = 1;

/// Why a thread got a signal of the agent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cause {
    /// A [`Timer`]: the thread has used one period of CPU time, and this many more.
    CpuTime(u32),
    /// The same for a thread that runs no Java code.
    OtherCpuTime(u32),
    /// The event with this file: its thread has used one period of CPU time. `true` if it runs no Java code.
    Event(i32, bool),
    /// [`signal`].
    Turn(Turn),
    /// [`signal_pause_ended`].
    PauseEnded,
}

/// The turn of a thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    /// Microseconds since its last turn.
    since_us: u32,
    pending: Option<&'static Pending>,
}

impl Turn {
    /// In the handler: the signal has come.
    pub(crate) fn came(self) {
        if let Some(pending) = self.pending {
            pending.is_set.store(false, Ordering::Relaxed);
        }
    }

    /// In the handler: the microseconds that its sample counts, those of earlier turns without a sample among them.
    pub(crate) fn take_us(self) -> u64 {
        match self.pending {
            Some(pending) => pending.uncounted_us.swap(0, Ordering::Relaxed),
            None => self.since_us.into(),
        }
    }

    /// In the handler: there is no sample, so that the next one counts them.
    pub(crate) fn give_back(self, us: u64) {
        if let Some(pending) = self.pending {
            pending.uncounted_us.fetch_add(us, Ordering::Relaxed);
        }
    }

    /// The value in its signal.
    fn value(self) -> *mut c_void {
        match self.pending {
            Some(pending) => ptr::from_ref(pending).cast_mut().cast(),
            None => Mark::Program.value(),
        }
    }

    /// The turn whose signal has this value.
    fn of(value: *mut c_void, since_us: u32) -> Option<Turn> {
        let pending = match PENDING.as_ptr_range().contains(&value.cast_const().cast()) {
            // SAFETY: it is the address of one of them.
            true => Some(unsafe { &*value.cast_const().cast::<Pending>() }),
            false if value == Mark::Program.value() => None,
            false => return None,
        };
        Some(Turn { since_us, pending })
    }
}

impl Cause {
    /// The file of the event, if it is one.
    pub(crate) fn event(self) -> Option<i32> {
        match self {
            Self::Event(file, _) => Some(file),
            _ => None,
        }
    }
}

/// The cause of a signal; `None` if it is not the agent's. For signal handlers, too.
///
/// # Safety
/// `info` is what the system has given to a handler.
pub(crate) unsafe fn cause_of(info: *const libc::siginfo_t) -> Option<Cause> {
    // SAFETY: the caller's promise; these two kinds of signals have a value.
    let (code, number) = unsafe { ((*info).si_code, (*info).si_errno) };
    if code == POLL_IN {
        // The second number after the code, a gap and a word.
        // SAFETY: as above; the signal of a file has this number.
        let file = unsafe { info.cast::<i32>().add(6).read() };
        return kernel_events::is_other(file).map(|is_other| Cause::Event(file, is_other));
    }
    if code != libc::SI_TIMER && code != libc::SI_QUEUE {
        return None;
    }
    // SAFETY: as above.
    let value = unsafe { (*info).si_value().sival_ptr };
    // How often the timer has expired since: the second number after the code and a gap.
    let overrun = || {
        // SAFETY: as above; the signal of a timer has this number.
        let overrun = unsafe { info.cast::<i32>().add(5).read() };
        overrun.max(0).cast_unsigned()
    };
    match code {
        libc::SI_TIMER if value == Mark::Program.value() => Some(Cause::CpuTime(overrun())),
        libc::SI_TIMER if value == Mark::Other.value() => Some(Cause::OtherCpuTime(overrun())),
        libc::SI_QUEUE if value == Mark::PauseEnded.value() => Some(Cause::PauseEnded),
        libc::SI_QUEUE => Turn::of(value, number.cast_unsigned()).map(Cause::Turn),
        _ => None,
    }
}

/// A signal to one thread, in the form of the system call.
#[repr(C)]
struct Queued {
    signal: i32,
    /// Free for use in signals of a process to itself.
    number: i32,
    code: i32,
    _align: i32,
    pid: i32,
    uid: u32,
    value: *mut c_void,
    _rest: [u8; 96],
}

const _: () = assert!(size_of::<Queued>() == size_of::<libc::siginfo_t>());

/// Signals a thread that its turn has come. Returns whether the system accepted the signal.
pub(crate) fn signal(tid: u32, turn: Turn) -> bool {
    queue(tid, turn.since_us, turn.value())
}

/// Signals a thread that a pause is over.
pub(crate) fn signal_pause_ended(tid: u32) {
    queue(tid, 0, Mark::PauseEnded.value());
}

/// Signals a thread, with a number and a value. Returns whether the system accepted the signal.
fn queue(tid: u32, number: u32, value: *mut c_void) -> bool {
    // SAFETY: takes nothing and cannot fail.
    let pid = unsafe { libc::getpid() };
    let info = Queued {
        signal: libc::SIGPROF,
        number: number.cast_signed(),
        code: libc::SI_QUEUE,
        _align: 0,
        pid,
        uid: 0,
        value,
        _rest: [0; 96],
    };
    // SAFETY: the pointer is to a live local of the size that is read. A number that no thread of this process has is refused.
    let result = unsafe {
        libc::syscall(
            libc::SYS_rt_tgsigqueueinfo,
            pid,
            tid,
            libc::SIGPROF,
            &raw const info,
        )
    };
    result == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// Timers of three threads.
    fn armed() -> Timers {
        let timers = Timers::default();
        let mut armed = timers.armed.lock();
        for (tid, number) in [(5, 1), (7, 2), (9, 3)] {
            let never = Duration::ZERO;
            let clock = Timer::arm(never, own_tid(), Mark::Program).expect("a timer");
            let thread = Armed {
                clock: Clock::Timer(clock),
                number,
                turn: Instant::now(),
                pending: armed.take_pending(),
                last: None,
            };
            armed.timers.insert(tid, thread);
        }
        drop(armed);
        timers
    }

    #[test]
    fn the_time_after_the_last_sample_is_counted_once() {
        let timers = armed();
        let second = Duration::from_secs(1);
        for thread in timers.armed.lock().timers.values_mut() {
            thread.turn -= second;
        }
        timers.sampled(5, (TraceId(50), true));
        timers.disarm(5);
        timers.disarm(9);
        // Its sample was counted late.
        timers.sampled(9, (TraceId(90), false));
        let rests = |of_all| -> Vec<(u64, Option<Last>)> {
            let rests = timers.take_rests(of_all);
            let whole = |rest: Rest| (rest.us / 1_000_000, rest.last);
            rests.into_iter().map(whole).collect()
        };
        let ended = [
            (1, Some((TraceId(50), true))),
            (1, Some((TraceId(90), false))),
        ];
        assert_eq!(rests(false), ended);
        assert_eq!(rests(true), [(1, None)]);
        assert_eq!(rests(true), [(0, None)]);
    }

    #[test]
    fn threads_take_turns() {
        let timers = armed();
        let order = RefCell::new(Vec::new());
        let counted = RefCell::new(Vec::new());
        let take = |most| {
            timers.take_turns(most, |tid, turn| {
                order.borrow_mut().push(tid);
                let again = Turn::of(turn.value(), turn.since_us).expect("it is ours");
                let us = again.take_us();
                counted
                    .borrow_mut()
                    .push((tid, us - u64::from(turn.since_us)));
                if tid == 5 {
                    again.give_back(100);
                }
                if tid != 7 {
                    again.came();
                }
                tid != 9
            })
        };
        assert_eq!([take(2), take(2), take(8)], [2, 1, 1]);
        // The signal of 7 has not come, so that it is left out.
        assert_eq!(*order.borrow(), [5, 7, 9, 5, 9, 5]);
        // A turn without a sample is counted by the thread's next one.
        let counted = counted.into_inner();
        assert_eq!(
            counted,
            [(5, 0), (7, 0), (9, 0), (5, 100), (9, 0), (5, 100)]
        );
        let mut other = 0_u8;
        assert!(Turn::of((&raw mut other).cast(), 0).is_none());
    }
}
