//! The centre of the agent: receives events of the VM and emits notifications.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use jvmti::sys::Value;
use jvmti::{Capabilities, Capability, Env, EventKind, JavaVm, Jni, Live, Object, OnLoad};
use locks::{Mutex, MutexGuard, Rank};
use rustc_hash::FxHashMap;
use vmpi::{ClassId, ClassInfo, Event, Memory, Profiler, VmInfo, Worth};

use crate::alloc::reported::Reported;
use crate::alloc::sampled::Samples;
use crate::alloc::tracked::Tracked;
use crate::cpu::other_threads::as_own;
use crate::cpu::sampler::Sampler;
use crate::heap::last_dump::Maker;
use crate::host::{Host, HostSetup};
use crate::instrument::counters::Want;
use crate::instrument::guests::Lodging;
use crate::instrument::inserted::Inserted;
use crate::instrument::natives::with_agent_guard;
use crate::instrument::numbers::Numbers;
use crate::instrument::tracker::Tracker;
use crate::vm::collector::Collector;
use crate::vm::config::{Clock, Config, Track};
use crate::vm::costs;
use crate::vm::registry::{CLASS_TAG, Pending};
use crate::vm::spares::{Stop, with_spares};
use crate::vm::state::{At, State};
use crate::vm::vm_structs::VmStructs;

/// What the agent provides when it is loaded.
pub struct Setup {
    /// What to measure.
    pub config: Config,
    /// Receives the events.
    pub profiler: Box<dyn Profiler>,
    /// Takes one-line messages about what could not be done.
    pub message: fn(&str),
    /// The memory budget of all tables, and how much others have taken of it already.
    pub memory: Arc<Memory>,
    /// The stream of VM events, if it is wanted.
    pub events: Option<HostSetup>,
}

/// HotSpot with the agent's hooks: one recording. There is one at a time, and none is ever freed, because the VM may be
/// in the middle of a callback when it ends.
pub struct HotSpot {
    pub(crate) config: Config,
    /// The memory budget of all tables.
    pub(crate) memory: Arc<Memory>,
    pub(crate) java: JavaVm,
    pub(crate) granted: Capabilities,
    pub(crate) env: Env<OnLoad>,
    pub(crate) live: OnceLock<Env<Live>>,
    pub(crate) tracker: OnceLock<Tracker>,
    /// Includes the numbers of the previous recording, whose inserted code may still run.
    pub(crate) numbers: &'static Numbers,
    pub(crate) inserted: Inserted,
    pub(crate) state: Mutex<State>,
    pub(crate) reported: Mutex<Reported>,
    /// Tags of freed objects, added by the VM thread.
    pub(crate) deaths: Mutex<Vec<i64>>,
    pub(crate) profiler: Mutex<Option<Box<dyn Profiler>>>,
    /// Whether the profiler has received VmInit; earlier announcements would be lost.
    pub(crate) begun: AtomicBool,
    pub(crate) info: OnceLock<VmInfo>,
    /// All classes, while the heap is walked.
    pub(crate) classes_of_walk: Mutex<Option<FxHashMap<ClassId, ClassInfo>>>,
    pub(crate) sampler: OnceLock<Sampler>,
    /// Whether a command has requested stacks that are taken without a safepoint.
    pub(crate) async_stacks: AtomicBool,
    pub(crate) started: Instant,
    /// The stream of VM events.
    host: OnceLock<Host>,
    /// Whether there was a recording before in the same program.
    pub(crate) follows_another: bool,
    /// Whether the program has begun, so that it runs while classes are changed.
    pub(crate) is_under_way: AtomicBool,
    /// Whether the recording has ended or the VM ends.
    pub(crate) dead: AtomicBool,
    collector: OnceLock<Collector>,
    /// The hook of [`collect_at_end`], if it was needed.
    pub(crate) end_hook: OnceLock<[Object; 2]>,
    /// Makes the objects for a dump at the end, if it was needed.
    pub(crate) last_dump: OnceLock<Maker>,
    pub(crate) tracked: Tracked,
    pub(crate) samples: Samples,
    /// Frames kept of a stack; a copy of the value in the state.
    pub(crate) depth: AtomicU32,
    pub(crate) lodging: Mutex<Lodging>,
    /// Whether the profiler wants allocations that the VM reports.
    pub(crate) reports_allocations: AtomicBool,
    /// Whether the heap was exhausted before.
    pub(crate) exhausted: AtomicBool,
    pub(crate) message: fn(&str),
}

/// Pending objects per thread if every object is tracked. They cannot be freed meanwhile, so if counts are exact it is
/// one, and large objects are never pending.
const GATHERED: usize = 256;

/// How many unloaded classes a thread cleans up when it locks the state.
const CLEARED_UP: usize = 32;
/// How many unloaded classes a thread of the program announces at a time; other threads announce the rest. A thread that
/// loads a class announces what is pending if it is at least as much.
pub(super) const ANNOUNCED: usize = 256;

/// The last recording that was begun: null, or one that is never freed.
static HOTSPOT: AtomicPtr<HotSpot> = AtomicPtr::new(std::ptr::null_mut());

impl HotSpot {
    /// The process's last recording, once loaded.
    #[must_use]
    pub fn get() -> Option<&'static Self> {
        // SAFETY: null, or made by `load`, which never frees it.
        unsafe { HOTSPOT.load(Ordering::Acquire).as_ref() }
    }

    /// The recording itself, which lives long enough for threads of the agent.
    pub(crate) fn forever(&self) -> &'static Self {
        // SAFETY: `load` makes all of them, and never frees one.
        unsafe { &*std::ptr::from_ref(self) }
    }

    /// Sets everything up while the agent is loaded; the rest follows in events. A previous recording must have ended
    /// ([`HotSpot::end`]).
    ///
    /// # Errors
    /// When the VM gives no JVMTI environment; the program then runs unprofiled.
    pub fn load(java: JavaVm, setup: Setup) -> jvmti::Result<&'static Self> {
        let before = Self::get();
        if before.is_some_and(|before| !before.has_ended()) {
            return Err(jvmti::Error::Jni("a second load"));
        }
        let env = Env::create(java)?;
        let name = env.system_property("java.vm.name");
        if name.is_some_and(|name| name.contains("OpenJ9")) {
            const WHY: &str = "this is OpenJ9; the agent needs a HotSpot JVM";
            return Err(jvmti::Error::OtherVm(WHY));
        }
        let wanted = setup
            .config
            .capabilities(version_of(env), setup.events.is_some());
        let granted = env.add_capabilities(&wanted)?;
        let memory = setup.memory;
        let mut state = State::new(&setup.config, &memory);
        if let Some(before) = before {
            state.follow_on(&before.lock());
        }
        let hotspot: &'static Self = Box::leak(Box::new(Self {
            depth: AtomicU32::new(setup.config.depth),
            config: setup.config,
            java,
            granted,
            env,
            live: OnceLock::new(),
            tracker: OnceLock::new(),
            numbers: match before {
                Some(before) => before.numbers,
                None => Box::leak(Box::default()),
            },
            inserted: Inserted::default(),
            reported: Mutex::new(Rank::Reported, Reported::new(state.sites.is_tracked)),
            state: Mutex::new(Rank::State, state),
            deaths: Mutex::new(Rank::Deaths, Vec::new()),
            profiler: Mutex::new(Rank::Profiler, Some(setup.profiler)),
            begun: AtomicBool::new(false),
            info: OnceLock::new(),
            classes_of_walk: Mutex::new(Rank::ClassesOfWalk, None),
            sampler: OnceLock::new(),
            async_stacks: AtomicBool::new(false),
            started: Instant::now(),
            host: OnceLock::new(),
            follows_another: before.is_some(),
            is_under_way: AtomicBool::new(false),
            dead: AtomicBool::new(false),
            collector: OnceLock::new(),
            end_hook: OnceLock::new(),
            last_dump: OnceLock::new(),
            tracked: Tracked::new(&memory),
            samples: Samples::default(),
            memory,
            lodging: Mutex::new(Rank::Lodging, Lodging::default()),
            reports_allocations: AtomicBool::new(true),
            exhausted: AtomicBool::new(false),
            message: setup.message,
        }));
        hotspot.numbers.begin(&hotspot.memory);
        if let Some(events) = setup.events {
            let _ = hotspot.host.set(Host::new(hotspot, events));
        }
        if let Some(tracker) = before.and_then(Self::tracker) {
            let _ = hotspot.tracker.set(*tracker);
        }
        crate::live::own_answers::allow(false);
        HOTSPOT.store(std::ptr::from_ref(hotspot).cast_mut(), Ordering::Release);
        match before {
            Some(_) => jvmti::replace(env, hotspot)?,
            None => drop(jvmti::install(env, hotspot)?),
        }
        hotspot.enable_events();
        if hotspot.sampling_interval().is_some() && hotspot.samples_allocations() {
            // A thread draws its first sample when it is made, the first one right after this.
            let _ = hotspot.set_sampling_interval();
        }
        if let Some(interval) = hotspot.config.native
            && let Err(fault) =
                crate::native::start(interval, hotspot.config.depth, &hotspot.memory)
        {
            hotspot.degrade(fault);
        }
        Ok(hotspot)
    }

    /// Reports now, and in the profile, that something is missing or not measured as requested. Must not be called
    /// while the state is locked.
    pub(crate) fn degrade(&self, what: &str) {
        (self.message)(what);
        self.lock().degraded.push(what.to_owned());
    }

    fn enable_events(&self) {
        let mut events = vec![
            EventKind::VmInit,
            EventKind::VmDeath,
            EventKind::ThreadEnd,
            EventKind::ObjectFree,
        ];
        if self.config.has_profiler {
            events.extend([
                EventKind::ThreadStart,
                EventKind::ClassPrepare,
                EventKind::DataDumpRequest,
            ]);
        }
        if self.config.counts_objects() {
            events.extend([
                EventKind::GarbageCollectionStart,
                EventKind::GarbageCollectionFinish,
            ]);
        }
        if self.config.when_exhausted.is_wanted() {
            events.push(EventKind::ResourceExhausted);
        }
        if self.config.takes_async_stacks() {
            events.push(EventKind::ClassLoad);
        }
        if self
            .granted
            .has(Capability::GenerateCompiledMethodLoadEvents)
        {
            events.push(EventKind::CompiledMethodLoad);
        }
        if self.config.instruments() {
            events.push(EventKind::ClassFileLoadHook);
            if !self.starts_before_java() {
                events.push(EventKind::VmStart);
            }
        }
        if self.reports_virtual_threads() && self.granted.has(Capability::SupportVirtualThreads) {
            events.push(EventKind::VirtualThreadEnd);
        }
        if self.config.monitors {
            events.extend([
                EventKind::MonitorContendedEnter,
                EventKind::MonitorContendedEntered,
                EventKind::MonitorWait,
                EventKind::MonitorWaited,
            ]);
        }
        for event in events {
            if let Err(error) = self.env.enable(event, true) {
                self.degrade(&format!("{event:?} events are missing: {error}"));
            }
        }
    }

    /// Whether there is data of virtual threads that must be removed when they end.
    fn reports_virtual_threads(&self) -> bool {
        self.config.instruments() || self.config.monitors
    }

    /// JDK 8 reports its start before it has run any Java code; looking up a class then crashes it. So the tracker is
    /// made when the VM is up.
    fn starts_before_java(&self) -> bool {
        version_of(self.env) == 8
    }

    /// The stream of VM events, if it is wanted.
    pub(crate) fn host(&self) -> Option<&Host> {
        self.host.get()
    }

    /// The environment, once the VM is up.
    pub(crate) fn live(&self) -> Option<Env<Live>> {
        self.live.get().copied()
    }

    /// The VM's collector.
    pub(crate) fn collector(&self) -> Collector {
        let find = || Collector::of(&VmStructs::load().unwrap_or_default());
        *self.collector.get_or_init(find)
    }

    /// The tracker, if classes are instrumented.
    pub(crate) fn tracker(&self) -> Option<&Tracker> {
        self.tracker.get()
    }

    /// Nanoseconds since load.
    pub(crate) fn elapsed(&self) -> u64 {
        self.started.elapsed().as_nanos() as u64
    }

    /// Locks the state and processes the tags of freed objects.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        let deaths = std::mem::take(&mut *self.deaths.lock());
        for tag in deaths.into_iter().filter(|tag| tag & CLASS_TAG != 0) {
            let class = ClassId((tag & !CLASS_TAG) as u32);
            state.registry.class_gone(class);
        }
        if !state.registry.is_clear() {
            state.clear_up(|| self.java.jni(), CLEARED_UP);
        }
        state
    }

    /// Runs `body` for a native method of the tracker.
    pub(crate) fn at<T>(
        &self,
        jni: Jni,
        object: Object,
        mut body: impl FnMut(&mut State, &At<'_>) -> Result<T, Stop>,
    ) -> Option<T> {
        let (env, tracker) = (self.live()?, self.tracker()?);
        let done = jni.local_frame(32, || {
            with_spares((jni, tracker), |spares| {
                let at = At {
                    env,
                    jni,
                    tracker,
                    object,
                    config: &self.config,
                    numbers: self.numbers,
                    tracked: &self.tracked,
                    spares,
                };
                body(&mut self.lock(), &at)
            })
        });
        done.ok()
    }

    /// Makes the tracker of the current thread.
    pub(crate) fn enroll(&self, jni: Jni, thread: Object) -> Option<Object> {
        if self.dead.load(Ordering::Relaxed) {
            return None;
        }
        let (env, tracker) = (self.live()?, self.tracker()?);
        // A thread that native code attaches runs its own constructor before it is alive; its id, its name and the
        // event of its start come later.
        const ALIVE: i32 = 1;
        if env
            .thread_state(thread)
            .is_ok_and(|state| state & ALIVE == 0)
        {
            return None;
        }
        let want = self.wanted_tables();
        let (id, number) = {
            let mut state = self.lock();
            let id = state.registry.thread(env, Some(thread), false);
            let is_agent = state.registry.is_agent(id).unwrap_or(false);
            if is_agent || !state.may_enroll(id) {
                return None;
            }
            let Some(number) = state.add_counters(id, None, want) else {
                state.refuse(id);
                return None;
            };
            (id, number)
        };
        let now = match self.config.clock {
            Clock::ThreadCpu => env.thread_cpu_time(thread).unwrap_or(0),
            Clock::Elapsed => Clock::Elapsed.now(),
        };
        let made = tracker.of_thread(jni, thread, number, (want, now));
        let entered = made.and_then(|object| {
            with_spares((jni, tracker), |spares| {
                let _state = self.lock();
                if self.dead.load(Ordering::Relaxed) {
                    return Err(jvmti::Error::Jni("a recording that has not ended").into());
                }
                tracker.enroll(jni, thread, object, spares)
            })?;
            Ok(object)
        });
        if entered.is_err() {
            let mut state = self.lock();
            state.remove_counters(number);
            state.refuse(id);
        }
        entered.ok()
    }

    /// Sets how many frames of stacks are kept.
    pub(crate) fn change_depth(&self, jni: Jni, depth: u32) -> jvmti::Result<()> {
        self.depth.store(depth, Ordering::Relaxed);
        let Some(tracker) = self.tracker() else {
            self.lock().set_depth(&self.config, depth);
            return Ok(());
        };
        with_spares((jni, tracker), |spares| {
            let here = (jni, tracker);
            self.lock().change_depth(here, &self.config, depth, spares)
        })
    }

    /// Which tables a thread needs.
    pub(crate) fn wanted_tables(&self) -> Want {
        Want {
            sites: self.config.allocations,
            calls: self.config.calls,
            pending: match self.config.track {
                Track::Every => GATHERED,
                _ => 0,
            },
            is_small: self.memory.heap.used() > self.memory.heap.limit() / 2,
        }
    }

    /// Emits the pending events to the profiler, and then `event`.
    pub(crate) fn emit(&self, event: &Event<'_>) {
        if let Some(profiler) = self.profiler.lock().as_mut() {
            if self.has_begun() {
                self.announce(usize::MAX, &mut |event| profiler.notify(self, event));
            }
            profiler.notify(self, event);
        }
        self.emit_pending();
    }

    fn has_begun(&self) -> bool {
        self.begun.load(Ordering::SeqCst)
    }

    /// Emits the pending events to the profiler, unless another thread is emitting: that thread then emits these, too.
    /// So a thread of the program never waits for a dump while it holds a monitor that the dump may wait for.
    pub(crate) fn emit_pending(&self) {
        let mut left = ANNOUNCED;
        while left > 0 && self.has_begun() && !self.lock().registry.pending.is_empty() {
            let Some(mut profiler) = self.profiler.try_lock() else {
                return;
            };
            let Some(profiler) = profiler.as_mut() else {
                return;
            };
            left -= self.announce(left, &mut |event| profiler.notify(self, event));
        }
    }

    /// Runs `body` while no thread emits events to the profiler; for commands that it receives from elsewhere.
    pub fn with_profiler_paused<T>(&self, body: impl FnOnce() -> T) -> T {
        let result = {
            let _profiler = self.profiler.lock();
            with_agent_guard(body)
        };
        self.emit_pending();
        result
    }

    /// Hands over pending announcements until they include `most` unloaded classes; returns how many they included.
    pub(crate) fn announce(&self, most: usize, sink: &mut dyn FnMut(&Event<'_>)) -> usize {
        let mut gone = 0;
        while gone < most {
            let mut state = self.lock();
            let Some(pending) = state.registry.pending.pop_front() else {
                break;
            };
            let registry = &state.registry;
            match pending {
                Pending::Class(class, trace, thread) => {
                    let info = registry.classes[class.0].info.clone();
                    drop(state);
                    sink(&Event::ClassLoaded {
                        class,
                        info: &info,
                        trace,
                        thread,
                    });
                }
                Pending::ClassGone(class) => {
                    gone += 1;
                    let is_named = state.forget_class(class);
                    drop(state);
                    self.numbers.forget_class(class);
                    sink(&Event::ClassUnloaded { class, is_named });
                }
                Pending::Trace(id) => {
                    let trace = registry.traces[id.0].clone();
                    drop(state);
                    sink(&Event::TraceDefined { id, trace: &trace });
                }
                Pending::Thread(thread) => {
                    let info = registry.thread_info(thread).cloned().unwrap_or_default();
                    drop(state);
                    let trace = vmpi::TraceId::EMPTY;
                    sink(&Event::ThreadStarted {
                        thread,
                        info: &info,
                        trace,
                    });
                }
                Pending::ThreadGone(thread) => {
                    state.registry.forget_thread(thread);
                    drop(state);
                    sink(&Event::ThreadEnded { thread });
                }
                Pending::Monitor(monitor) => {
                    drop(state);
                    self.memory.native.give(Worth::Objects, costs::PENDING);
                    sink(&monitor.event());
                }
            }
        }
        gone
    }

    /// A thread that has a number ends.
    pub(crate) fn thread_ended(&self, env: Env<Live>, thread: Object) {
        with_agent_guard(|| {
            let mut state = self.lock();
            // A thread that was never seen has no number, and needs none.
            if !self.config.has_profiler && env.thread_number(Some(thread)).unwrap_or(0) == 0 {
                return;
            }
            let id = state.registry.thread(env, Some(thread), true);
            state.forget_thread(id);
            state.registry.thread_ended(id);
        });
    }

    /// Starts a thread of the agent's own.
    pub(crate) fn spawn(
        &self,
        env: Env<Live>,
        jni: Jni,
        name: &'static str,
        body: impl FnOnce(Env<Live>, Jni) + Send + 'static,
    ) -> jvmti::Result<()> {
        self.lock().registry.name_agent_thread(name);
        with_agent_guard(|| {
            jni.local_frame(8, || {
                let class = jni.find_class("java/lang/Thread")?;
                let constructor = jni.method(class, "<init>", "(Ljava/lang/String;)V")?;
                let name = jni.new_string(name)?;
                let thread = jni.new_object(class, constructor, &[Value { l: name.raw() }])?;
                let own = |env, jni| as_own(|| with_agent_guard(|| body(env, jni)));
                env.run_agent_thread(thread, 10, Box::new(own))
            })
        })
    }

    /// The memory budget of the recording.
    #[must_use]
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Runs `body` on a thread of the agent's own, attached to the VM.
    ///
    /// # Errors
    /// Before the VM is up, or when it makes no thread.
    pub fn run_thread(
        &self,
        name: &'static str,
        body: impl FnOnce() + Send + 'static,
    ) -> jvmti::Result<()> {
        let env = self.live().ok_or(jvmti::Error::Jni("run_thread"))?;
        let jni = self.java.jni().ok_or(jvmti::Error::Jni("run_thread"))?;
        self.spawn(env, jni, name, |_, _| with_agent_guard(body))
    }
}

/// The number of the JDK, 0 if it is not known.
fn version_of<P>(env: Env<P>) -> u32 {
    let version = env.system_property("java.vm.specification.version");
    let number = version
        .as_deref()
        .map(|version| version.strip_prefix("1.").unwrap_or(version));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}
