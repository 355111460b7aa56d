//! Samples: a thread is signalled by a timer on its CPU clock, or by the sampling thread (`wall`), and the signal
//! handler takes a stack with AsyncGetCallTrace. Threads that run already when sampling starts are found in the
//! system's list (`timers`).
//!
//! The handler allocates nothing and takes no lock: it fills one of a fixed number of slots, which a thread of the
//! agent empties. If all slots are full, the sample is counted as dropped. A thread that does not run has no CPU
//! samples and costs nothing.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use jvmti::{Env, EventKind, Jni, Live};
use locks::{Mutex, Rank};
use vmpi::{Frame, Location, SampleTiming, ThreadId, Trace, TraceId};

use crate::cpu::at_safepoints::AtSafepoints;
use crate::cpu::choice::Choice;
use crate::cpu::every::Every;
use crate::cpu::java_frames::{Caller, JavaFrames, Missing, find_agct};
use crate::cpu::native_frames::{KernelNames, NativeFrames};
use crate::cpu::other_threads::{self, LOOK};
use crate::cpu::pauses::PAUSES;
use crate::cpu::previous_handler;
use crate::cpu::registers::{Registers, has_room};
use crate::cpu::slots::{CallFrame, EMPTY, FULL, MOST_FRAMES, Of, SLOTS, Slot, slots};
use crate::cpu::timers::{self, Cause, SystemNumbers, Timers, own_tid};
use crate::cpu::wall::{Elapsed, Wall, is_waiting};
use crate::instrument::natives::with_agent_guard;
use crate::vm::hotspot::HotSpot;
use crate::vm::state::State;

/// The interval of CPU samples that a command has started.
pub(crate) const DEFAULT_INTERVAL: Duration = Duration::from_millis(10);
/// How often slots are emptied.
const DRAIN: Duration = Duration::from_millis(20);

/// The names of the frames of samples without Java frames: the VM could not walk the stack, or it collected garbage, and
/// the frames could not be taken later.
const UNKNOWN_STACK: &str = "(unknown_stack)";
const GC_PAUSE: &str = "(GC_pause)";

/// How stacks are taken.
enum Method {
    /// In the handler.
    Async(JavaFrames),
    /// By a thread of the agent, for all runnable threads at once, at a safepoint.
    Safepoint,
}

impl Method {
    /// By signals, unless safepoints are `wanted` or signals are not available, which is reported.
    fn choose(hotspot: &HotSpot, env: Env<Live>, jni: Jni, wanted: bool) -> Self {
        if wanted {
            return Self::Safepoint;
        }
        let missing = match find_agct() {
            None => "this VM has no AsyncGetCallTrace",
            Some(_) if !timers::are_allowed() => "the system gives no timers on CPU time",
            Some(function) if previous_handler::install(on_signal) => {
                return Self::Async(JavaFrames::prepare(function, env, jni));
            }
            Some(_) => "SIGPROF cannot be handled",
        };
        let samples = match hotspot.config.wall {
            Some(_) if hotspot.config.samples.is_none() => "wall-clock samples",
            _ => "CPU samples",
        };
        hotspot.degrade(&format!("{samples} are taken at safepoints: {missing}"));
        Self::Safepoint
    }
}

/// The sampler of a recording.
pub(crate) struct Sampler {
    slots: &'static [Slot],
    /// The number of the recording, larger than all previous ones.
    recording: u32,
    /// Frames taken of a stack.
    depth: AtomicU32,
    next: AtomicU32,
    method: Method,
    interval: Duration,
    stopped: AtomicBool,
    /// Whether no CPU samples are taken.
    paused: AtomicBool,
    draining: Mutex<KernelNames>,
    /// Samples have native frames.
    native: Option<NativeFrames>,
    choice: Mutex<Choice>,
    /// Wall-clock samples are taken until the end.
    wall: Option<Wall>,
    full: AtomicU64,
    /// Interruptions by timers, and periods that had passed ([`SampleTiming`]).
    timing: [AtomicU64; 2],
    timers: Timers,
}

impl Sampler {
    /// Starts sampling; called once, when the VM is up or a listener requests it. There are no
    /// CPU samples before [`Sampler::switch`].
    pub(crate) fn start(
        hotspot: &'static HotSpot,
        env: Env<Live>,
        jni: Jni,
        interval: Duration,
        safepoints: bool,
    ) {
        static RECORDINGS: AtomicU32 = AtomicU32::new(0);
        let method = Method::choose(hotspot, env, jni, safepoints);
        let native = match method {
            Method::Async(_) => NativeFrames::prepare(hotspot),
            Method::Safepoint => NativeFrames::none_at_safepoints(hotspot),
        };
        let sampler = Self {
            slots: slots(),
            recording: RECORDINGS.fetch_add(1, Ordering::Relaxed),
            depth: AtomicU32::new(hotspot.lock().depth),
            next: AtomicU32::new(0),
            method,
            interval,
            stopped: AtomicBool::new(false),
            paused: AtomicBool::new(true),
            draining: Mutex::new(Rank::Draining, KernelNames::default()),
            choice: Mutex::new(Rank::Sampled, Choice::of_all(false)),
            wall: hotspot.config.wall.map(Wall::new),
            full: AtomicU64::new(0),
            timing: Default::default(),
            timers: Timers::new(native.as_ref().is_some_and(NativeFrames::has_kernel)),
            native,
        };
        if hotspot.sampler.set(sampler).is_err() {
            return;
        }
        let Some(sampler) = hotspot.sampler.get() else {
            return;
        };
        let body =
            move |env: Env<Live>, jni: Jni| with_agent_guard(|| sampler.run(hotspot, env, jni));
        let _ = hotspot.spawn(env, jni, "HPROF cpu sampling thread", body);
        sampler.thread_started(hotspot);
        if matches!(sampler.method, Method::Async(_)) {
            // Without this event, samples of a pause have no Java frames.
            if let Err(error) = hotspot.env.enable(EventKind::GarbageCollectionFinish, true) {
                (hotspot.message)(&format!("ends of collections are missing: {error}"));
            }
            sampler.arm_running(hotspot, env, jni);
        }
    }

    /// In the VM's report of the end of a collection.
    pub(crate) fn collected(&self) {
        PAUSES.end(self.slots);
    }

    /// Arms the timer of the current thread.
    pub(crate) fn thread_started(&self, hotspot: &HotSpot) {
        let Some(env) = hotspot.live() else { return };
        let number = env.thread_number(None).unwrap_or(0);
        let is_agent = hotspot.lock().registry.is_agent(ThreadId(number as u32));
        let is_agent = is_agent.unwrap_or(true);
        if is_agent || !matches!(self.method, Method::Async(_)) {
            return;
        }
        // The previous thread with this tid has ended without an event.
        self.timers.disarm(own_tid());
        self.timers.arm(own_tid(), number as u32);
    }

    /// Arms the timers of threads that run already.
    fn arm_running(&self, hotspot: &HotSpot, env: Env<Live>, jni: Jni) {
        let running = jni.local_frame(256, || running_threads(hotspot, env, jni));
        match running {
            Some(running) => {
                for (tid, number) in running {
                    self.timers.arm(tid, number.0);
                }
            }
            None => hotspot.degrade(
                "threads that run already are not sampled: this VM does not say which they are",
            ),
        }
    }

    /// Disarms the timer of the current thread.
    pub(crate) fn thread_ended(&self) {
        self.timers.disarm(own_tid());
    }

    /// Switches CPU samples of a thread, or of all threads, on or off. The choice for a single thread holds until all
    /// are switched.
    pub(crate) fn switch(&self, on: bool, thread: Option<ThreadId>) {
        let mut choice = self.choice.lock();
        choice.switch(on, thread);
        let is_empty = choice.is_empty();
        self.paused.store(is_empty, Ordering::Relaxed);
        self.timers.signal_every(match is_empty {
            true => Duration::ZERO,
            false => self.interval,
        });
    }

    /// The CPU time between two samples.
    pub(super) fn interval(&self) -> Duration {
        self.interval
    }

    /// Sets how many frames are taken.
    pub(crate) fn set_depth(&self, depth: u32) {
        self.depth.store(depth, Ordering::Relaxed);
    }

    /// How many frames are taken.
    pub(super) fn depth(&self) -> usize {
        (self.depth.load(Ordering::Relaxed) as usize).clamp(1, MOST_FRAMES)
    }

    /// Whether CPU samples of a thread count.
    pub(super) fn has_chosen(&self, thread: ThreadId) -> bool {
        self.choice.lock().has(thread)
    }

    /// Ends sampling.
    pub(crate) fn stop(&self) {
        // First, so that no later sample changes what is restored.
        self.stopped.store(true, Ordering::Relaxed);
        if let Method::Async(java) = &self.method {
            java.stop();
        }
    }

    /// After the last report: deletes all timers, including those of threads that continue, and releases memory.
    pub(crate) fn leave(&self) {
        self.timers.close();
        *self.draining.lock() = KernelNames::default();
    }

    /// The sampling thread.
    fn run(&self, hotspot: &HotSpot, env: Env<Live>, jni: Jni) {
        let is_async = matches!(self.method, Method::Async(_));
        let mut often = match is_async {
            true => Every::new(DRAIN.min(self.interval * 8)),
            false => Every::new(self.interval),
        };
        let mut looks = Every::new(LOOK);
        looks.next = Instant::now();
        let mut threads = 0;
        let mut turns = self.wall.as_ref().map(|wall| Every::new(wall.interval));
        let mut at_safepoints = AtSafepoints::new();
        while !self.stopped.load(Ordering::Relaxed) {
            let next = turns
                .as_ref()
                .map_or(often.next, |turns| turns.next.min(often.next));
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            if self.stopped.load(Ordering::Relaxed) {
                break;
            }
            let wants_wall = turns.as_mut().is_some_and(Every::take_due);
            if let Some(wall) = self.wall.as_ref().filter(|_| wants_wall && is_async) {
                wall.tick(&self.timers);
            }
            let is_due = often.take_due();
            if is_async && is_due && !self.paused.load(Ordering::Relaxed) {
                let before = std::mem::replace(&mut threads, other_threads::count());
                if looks.take_due() || threads != before {
                    self.timers.look_for_others();
                }
            }
            if is_async && is_due {
                self.drain(hotspot, env, jni);
            }
            let is_paused = self.paused.load(Ordering::Relaxed);
            if is_paused {
                at_safepoints.pause();
            }
            let wants_cpu = is_due && !is_paused;
            if !is_async && (wants_cpu || wants_wall) {
                let is_due = || wants_wall || turns.as_mut().is_some_and(Every::take_due);
                jni.local_frame(256, || {
                    at_safepoints.take(self, (hotspot, env, jni), wants_cpu, is_due)
                });
            }
        }
    }

    /// Empties full slots. Called by the sampling thread and before reports, by one thread at a time.
    pub(crate) fn drain(&self, hotspot: &HotSpot, env: Env<Live>, jni: Jni) {
        let mut kernel = self.draining.lock();
        if let Some(native) = &self.native {
            native.follow_libraries(&hotspot.memory);
        }
        let ended = PAUSES.look();
        let has_stopped = self.stopped.load(Ordering::Relaxed);
        for slot in self.slots {
            if !slot.claim(FULL) && !PAUSES.give_up(slot, ended, has_stopped) {
                continue;
            }
            if slot.recording.get() != self.recording {
                // The sample belongs to a recording that has ended, or to one that has begun after this one ended.
                let is_old = slot.recording.get() < self.recording;
                slot.leave(if is_old { EMPTY } else { FULL });
                continue;
            }
            let missing = slot.count.get().err();
            let count = usize::try_from(slot.count.get().unwrap_or(0)).unwrap_or(0);
            // SAFETY: this call moved the slot from FULL to BUSY and is its only user.
            let frames = unsafe { &*slot.frames.get() };
            let native = self.native.as_ref();
            let native = native.map(|native| native.places(slot, &mut kernel, &hotspot.memory));
            let mut state = hotspot.lock();
            let java: Vec<Frame> = jni.local_frame(16, || {
                let row = |frame: &CallFrame| Frame {
                    method: state.registry.method(env, jni, frame.method),
                    location: u32::try_from(frame.bci).map_or(Location::Native, Location::Bytecode),
                };
                frames.iter().take(count).map(row).collect()
            });
            let (of, tid) = (slot.of.get(), slot.tid.load(Ordering::Relaxed));
            let thread = self.timers.number(tid);
            slot.leave(EMPTY);
            if !matches!(of, Of::Wall(_)) && !self.has_chosen(thread) {
                continue;
            }
            let native = native.iter().flatten();
            let mut rows: Vec<Frame> = native
                .map(|place| state.registry.native_frame(place))
                .collect();
            let name = missing.map(|missing| {
                let (name, what) = match missing {
                    Missing::Unknown => {
                        (UNKNOWN_STACK, "Java frames of samples: stack not walkable")
                    }
                    Missing::Pause => (GC_PAUSE, "Java frames of samples: taken in a GC pause"),
                };
                *state.lost.entry(what).or_default() += of.count();
                name.to_owned()
            });
            match java.is_empty() {
                true => {
                    let name = name.unwrap_or_else(|| self.timers.name_of_other(tid));
                    rows.push(state.registry.frame_of_other(&name));
                }
                false => rows.extend(java),
            }
            let trace = trace_of(hotspot, &mut state, thread, rows);
            match of {
                Of::Wall(elapsed) => {
                    self.timers.sampled(tid, (trace, elapsed.is_waiting));
                    state.add_wall(trace, elapsed);
                }
                Of::Cpu(_) | Of::OtherCpu(_) => state.add_samples(thread, trace, of.count()),
            }
        }
        let rests = self.timers.take_rests(has_stopped);
        let [interruptions, intervals] = self
            .timing
            .each_ref()
            .map(|count| count.swap(0, Ordering::Relaxed));
        let mut state = hotspot.lock();
        if let Some(wall) = &self.wall {
            state.wall_dropped.add(wall.take_dropped());
            state.add_rests(&rests);
        }
        state.sample_timing.add(SampleTiming {
            interruptions,
            intervals,
        });
        drop(state);
        let counts = [
            (
                self.full.swap(0, Ordering::Relaxed),
                "CPU samples, because their buffer was full",
            ),
            (
                self.timers.take_refused(),
                "threads without CPU samples: no timer left",
            ),
        ];
        for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
            *hotspot.lock().lost.entry(what).or_default() += count;
        }
    }

    /// In the handler: the kind of the sample; `None` if none is wanted.
    fn wanted(&self, cause: Cause, context: *mut c_void) -> Option<Of> {
        match cause {
            Cause::CpuTime(_) | Cause::OtherCpuTime(_) | Cause::Event(..)
                if self.paused.load(Ordering::Relaxed) =>
            {
                None
            }
            Cause::CpuTime(missed) => Some(self.interrupted(missed, Of::Cpu(1))),
            Cause::OtherCpuTime(missed) => Some(self.interrupted(missed, Of::OtherCpu(1))),
            // The periods that it has missed are in its ring.
            Cause::Event(_, true) => Some(self.interrupted(0, Of::OtherCpu(1))),
            Cause::Event(_, false) => Some(self.interrupted(0, Of::Cpu(1))),
            Cause::Turn(turn) => {
                self.wall.as_ref()?.arrived();
                let us = turn.take_us();
                // SAFETY: the handler has it from the system.
                let is_waiting = unsafe { is_waiting(context) };
                Some(Of::Wall(Elapsed { us, is_waiting }))
            }
            Cause::PauseEnded => None,
        }
    }

    /// In the handler: a timer has interrupted a thread, after missing this many periods.
    fn interrupted(&self, missed: u32, of: Of) -> Of {
        let [interruptions, intervals] = &self.timing;
        interruptions.fetch_add(1, Ordering::Relaxed);
        intervals.fetch_add(1 + u64::from(missed), Ordering::Relaxed);
        of.and(missed)
    }

    /// In the handler: an empty slot for a sample; without one the sample is counted as dropped.
    fn slot(&self, of: Of) -> Option<&Slot> {
        let start = self.next.fetch_add(1, Ordering::Relaxed) as usize;
        let mut nearest = (0..8).map(|i| &self.slots[(start + i) % SLOTS]);
        let found = nearest.find(|slot| slot.claim(EMPTY));
        match (found, &self.wall, of) {
            (Some(slot), _, _) => {
                slot.recording.set(self.recording);
                slot.tid.store(own_tid(), Ordering::Relaxed);
                slot.of.set(of);
                slot.count.set(Ok(0));
                slot.native.set([0; 2]);
            }
            (None, Some(wall), Of::Wall(_)) => wall.buffer_was_full(),
            (None, _, _) => drop(self.full.fetch_add(1, Ordering::Relaxed)),
        }
        found
    }

    /// In the handler: takes the native frames of the current thread, if samples have any. Returns the registers where
    /// the VM's own code has called them, if they were found.
    fn take_native(&self, slot: &Slot, interrupted: Interrupted) -> Option<Registers> {
        let native = self.native.as_ref()?;
        let Interrupted { context, event } = interrupted;
        // SAFETY: the handler has the context from the system, and moved the slot to BUSY.
        let (records, caller) = unsafe { native.take(slot, context, event) };
        let missed = records.saturating_sub(1);
        self.timing[1].fetch_add(u64::from(missed), Ordering::Relaxed);
        slot.of.set(slot.of.get().and(missed));
        caller
    }

    /// In the handler: writes the frames of the current thread, and returns the number of the Java frames among them.
    fn take_frames(
        &self,
        java: &JavaFrames,
        jni: Jni,
        slot: &Slot,
        interrupted: Interrupted,
    ) -> Result<i32, Missing> {
        let native = match self.native {
            Some(_) => Caller::Known(self.take_native(slot, interrupted)),
            None => Caller::Unknown,
        };
        self.take_java(java, jni, slot, interrupted.context, native)
    }

    /// In the handler: writes the Java frames of the current thread, and returns their number.
    fn take_java(
        &self,
        java: &JavaFrames,
        jni: Jni,
        slot: &Slot,
        context: *mut c_void,
        native: Caller,
    ) -> Result<i32, Missing> {
        // SAFETY: this handler moved the slot to BUSY and is its only user.
        let frames = unsafe { &mut *slot.frames.get() };
        let frames = &mut frames[..self.depth()];
        // SAFETY: the handler has the context from the system.
        unsafe { java.take(jni, frames, context, native) }
    }

    /// In the handler: takes the stack of the current thread. Returns whether there is a sample.
    fn sample(&self, of: Of, java: &JavaFrames, jni: Jni, interrupted: Interrupted) -> bool {
        let Some(slot) = self.slot(of) else {
            return false;
        };
        let pause = PAUSES.ended();
        // SAFETY: the handler has the context from the system.
        let count = match unsafe { has_room(interrupted.context) } {
            true => self.take_frames(java, jni, slot, interrupted),
            false => Err(Missing::Unknown),
        };
        if count == Err(Missing::Pause) && PAUSES.hold(slot, pause, java.last_frame(jni)) {
            if PAUSES.ended() != pause {
                self.complete(java, jni, interrupted.context);
            }
            return true;
        }
        match (&self.wall, of) {
            (Some(wall), Of::Wall(_))
                if count == Err(Missing::Unknown) && slot.native.get() == [0; 2] =>
            {
                wall.had_no_stack();
                slot.leave(EMPTY);
                false
            }
            _ => {
                slot.count.set(count);
                slot.leave(FULL);
                true
            }
        }
    }

    /// In the handler: takes the Java frames of the current thread for its samples of a pause, which is over.
    fn complete(&self, java: &JavaFrames, jni: Jni, context: *mut c_void) {
        let mut waits = PAUSES.waits();
        for slot in PAUSES.take_own(self.slots) {
            let is_same = slot.recording.get() == self.recording
                && slot.last_frame.get() == java.last_frame(jni);
            // SAFETY: the handler has the context from the system.
            if is_same && unsafe { has_room(context) } {
                let take = || self.take_java(java, jni, slot, context, Caller::Unknown);
                let mut count = take();
                while count == Err(Missing::Pause) && waits.next().is_some() {
                    count = take();
                }
                slot.count.set(count.map_err(|_| Missing::Pause));
            }
            slot.leave(FULL);
        }
    }

    /// In the handler: a thread got a signal of the agent.
    fn on_signal(&self, java: &JavaFrames, jni: Option<Jni>, cause: Cause, context: *mut c_void) {
        if let Some(jni) = jni {
            self.complete(java, jni, context);
        }
        let event = cause.event();
        let interrupted = Interrupted { context, event };
        match self.wanted(cause, context) {
            None => {}
            Some(of @ Of::OtherCpu(_)) => {
                if let Some(slot) = self.slot(of) {
                    // SAFETY: the handler has the context from the system.
                    if unsafe { has_room(context) } {
                        self.take_native(slot, interrupted);
                    }
                    slot.leave(FULL);
                }
            }
            Some(of @ (Of::Cpu(_) | Of::Wall(_))) => {
                let is_taken = jni.is_some_and(|jni| self.sample(of, java, jni, interrupted));
                if let (false, Cause::Turn(turn), Of::Wall(elapsed)) = (is_taken, cause, of) {
                    turn.give_back(elapsed.us);
                }
            }
        }
    }
}

/// A thread that a signal has interrupted.
#[derive(Clone, Copy)]
struct Interrupted {
    /// The context that the system has passed to the handler.
    context: *mut c_void,
    /// The event of the kernel that has sent the signal.
    event: Option<i32>,
}

/// The trace of a sample, with its thread if the output distinguishes threads.
pub(super) fn trace_of(
    hotspot: &HotSpot,
    state: &mut State,
    thread: ThreadId,
    frames: Vec<Frame>,
) -> TraceId {
    let owner = match hotspot.config.per_thread {
        true => thread,
        false => ThreadId::NONE,
    };
    state.registry.trace(Trace {
        thread: owner,
        frames,
    })
}

/// The handler of SIGPROF: allocates nothing, takes no lock and preserves errno. Signals that the agent has not sent
/// belong to the program.
extern "C" fn on_signal(signal: i32, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: the system gives the signal to a handler that was installed with SA_SIGINFO.
    let Some(cause) = (unsafe { timers::cause_of(info) }) else {
        // SAFETY: the system's description of this signal, which only this thread uses.
        return unsafe { previous_handler::pass_on(signal, info, context) };
    };
    if let Cause::Turn(turn) = cause {
        turn.came();
    }
    // SAFETY: the address of this thread's errno is always valid.
    let errno = unsafe { *libc::__errno_location() };
    if let Some(hotspot) = HotSpot::get()
        && let Some(sampler) = hotspot.sampler.get()
        && let Method::Async(java) = &sampler.method
        && !sampler.stopped.load(Ordering::Relaxed)
    {
        let jni = match cause {
            // Such a thread has no JNI environment and may run any code.
            Cause::OtherCpuTime(_) | Cause::Event(_, true) => None,
            _ => hotspot.java.jni(),
        };
        sampler.on_signal(java, jni, cause, context);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Runs `body` while no signal takes a sample on this thread: a signal that arrives meanwhile stays pending. Calls of
/// AsyncGetCallTrace outside of a signal handler go through here, because a VM without the fixes JDK-8329103 and JDK-8339133
/// may crash when such a call is made inside another one.
pub(crate) fn unsampled<T>(body: impl FnOnce() -> T) -> T {
    let mut blocked = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: all pointers are to live locals, which the calls fill; a number of a signal cannot be refused.
    unsafe {
        libc::sigemptyset(blocked.as_mut_ptr());
        libc::sigaddset(blocked.as_mut_ptr(), libc::SIGPROF);
        libc::pthread_sigmask(libc::SIG_BLOCK, blocked.as_ptr(), before.as_mut_ptr());
    }
    let result = body();
    // SAFETY: filled above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    result
}

impl HotSpot {
    /// Whether the methods of every class must be known.
    pub(crate) fn takes_async_stacks(&self) -> bool {
        self.config.takes_async_stacks() || self.async_stacks.load(Ordering::Relaxed)
    }

    /// Prepares taking stacks in signal handlers, although the options did not request it.
    pub(crate) fn prepare_async_stacks(&self, env: Env<Live>) {
        if self.takes_async_stacks() {
            return;
        }
        // Without these events AsyncGetCallTrace returns no stacks. Classes that are loaded from here on are noticed by
        // one of the two: the flag or the list.
        self.async_stacks.store(true, Ordering::Relaxed);
        if let Err(error) = self.env.enable(EventKind::ClassLoad, true) {
            (self.message)(&format!("ClassLoad events are missing: {error}"));
        }
        let Some(jni) = self.java.jni() else { return };
        for class in env.loaded_classes(jni).unwrap_or_default() {
            let _ = env.class_methods(class);
            jni.delete_local(class);
        }
    }
}

/// The tids and numbers of the program's live threads; `None` if the VM's tables do not have the tids.
fn running_threads(hotspot: &HotSpot, env: Env<Live>, jni: Jni) -> Option<Vec<(u32, ThreadId)>> {
    let numbers = SystemNumbers::of(jni)?;
    let threads = env.all_threads(jni).unwrap_or_default();
    let mut running = Vec::new();
    for thread in threads {
        let mut state = hotspot.lock();
        let number = state.registry.thread(env, Some(thread), false);
        let info = state.registry.thread_info(number);
        let is_agent = info.is_none_or(|info| info.is_agent);
        if let Some(tid) = numbers.tid(jni, thread).filter(|_| !is_agent) {
            running.push((tid, number));
        }
    }
    Some(running)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_that_comes_while_no_sample_may_be_taken_waits() {
        static CAUGHT: AtomicU32 = AtomicU32::new(0);
        extern "C" fn count(_: i32) {
            CAUGHT.fetch_add(1, Ordering::SeqCst);
        }
        let caught = || CAUGHT.load(Ordering::SeqCst);
        // SAFETY: the handler has the required signature, and only counts; the signal goes to this thread.
        let raise = || unsafe { libc::raise(libc::SIGPROF) };
        // SAFETY: as above.
        unsafe { libc::signal(libc::SIGPROF, count as *const () as usize) };
        unsampled(|| {
            unsampled(raise);
            assert_eq!(caught(), 0);
        });
        assert_eq!(caught(), 1);
        raise();
        assert_eq!(caught(), 2);
    }
}
