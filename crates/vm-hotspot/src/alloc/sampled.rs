//! Sampled allocations on their way to the state. The allocating thread adds a sample to a list that its number
//! selects, and continues; a thread of the agent empties the lists. So allocating threads wait neither for each other
//! nor for reports.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::thread::Thread;
use std::time::Duration;

use jvmti::{Env, FrameRow, Jni, Live, Object};
use locks::{Mutex, Rank};
use vmpi::{ClassId, ThreadId, Worth};

use crate::alloc::choices::Chosen;
use crate::alloc::sites::SiteId;
use crate::cpu::timers::own_tid;
use crate::instrument::natives::with_agent_guard;
use crate::vm::config::{Config, Track};
use crate::vm::hotspot::HotSpot;
use crate::vm::registry::{CLASS_TAG, virtual_name};
use crate::vm::state::{MOST_FRAMES, NOWHERE, State, TRACKER_FRAMES};

/// Number of lists: enough for each thread of most programs.
const LISTS: usize = 64;
/// How many samples in a list wake the agent's thread, and how many fill the list.
const MANY: usize = 64;
const FULL: usize = 1024;

/// An object that was sampled.
struct Sample {
    class: ClassId,
    thread: ThreadId,
    /// The name of a virtual thread, which has no number.
    virtual_name: Option<String>,
    size: u64,
    /// Time by the clock of tracked objects.
    time: u32,
    /// A weak reference, if the object is to be tracked.
    object: Option<Object>,
    rows: Box<[FrameRow]>,
}

impl Sample {
    /// Bytes that it is charged while it waits.
    fn cost(&self) -> u64 {
        (size_of::<Self>() + size_of_val(&*self.rows) + 32) as u64
    }
}

/// Samples that wait.
pub(crate) struct Samples {
    lists: [Mutex<Vec<Sample>>; LISTS],
    taker: OnceLock<Thread>,
}

impl Default for Samples {
    fn default() -> Self {
        Self {
            lists: std::array::from_fn(|_| Mutex::new(Rank::Samples, Vec::new())),
            taker: OnceLock::new(),
        }
    }
}

impl Samples {
    /// Wakes the thread that empties the lists, for samples or because the recording has ended.
    pub(crate) fn wake(&self) {
        if let Some(taker) = self.taker.get() {
            taker.unpark();
        }
    }
}

impl HotSpot {
    /// The current thread has allocated an object that the VM's sampler picked.
    pub(crate) fn sampled(&self, env: Env<Live>, jni: Jni, made: Object) {
        if self.put_sample(env, jni, made).is_none() {
            let (config, tracked) = (&self.config, &self.tracked);
            self.lock().sampled((env, jni), made, config, tracked);
        }
    }

    /// Adds a sample to a list. `None` if its class or thread has no number yet, or the list is full.
    fn put_sample(&self, env: Env<Live>, jni: Jni, made: Object) -> Option<()> {
        let class = env.tag(jni.object_class(made)?).ok()?;
        let thread = env.thread_number(None).ok()?;
        if class & CLASS_TAG == 0 {
            return None;
        }
        let virtual_name = match thread {
            0 => Some(virtual_name(env)?),
            _ => None,
        };
        let depth = (self.depth.load(Ordering::Relaxed) as usize).min(MOST_FRAMES);
        let mut rows = Vec::new();
        if depth > 0 {
            rows.resize(depth + TRACKER_FRAMES, NOWHERE);
            let count = env.stack_into(None, &mut rows).unwrap_or(0);
            rows.truncate(count);
        }
        let mut sample = Sample {
            class: ClassId((class & !CLASS_TAG) as u32),
            thread: ThreadId(thread as u32),
            virtual_name,
            size: env.object_size(made).unwrap_or(0),
            time: self.tracked.clock.now(),
            object: None,
            rows: rows.into(),
        };
        if !self.memory.native.take(Worth::Objects, sample.cost()) {
            return None;
        }
        let list = match thread {
            0 => own_tid() as usize,
            thread => thread,
        };
        let mut list = self.samples.lists[list % LISTS].lock();
        if list.len() == FULL {
            drop(list);
            self.memory.native.give(Worth::Objects, sample.cost());
            return None;
        }
        if self.config.track != Track::None {
            sample.object = jni.weak(made);
        }
        list.push(sample);
        if list.len().is_multiple_of(MANY) {
            drop(list);
            self.samples.wake();
        }
        Some(())
    }

    /// Counts all waiting samples.
    pub(crate) fn take_samples(&self, env: Env<Live>, jni: Jni) {
        for list in &self.samples.lists {
            let waiting = std::mem::take(&mut *list.lock());
            for sample in waiting {
                self.memory.native.give(Worth::Objects, sample.cost());
                let taken = jni.local_frame(16, || {
                    self.lock().take_sample((env, jni), &sample, &self.config)
                });
                let Some(object) = sample.object else {
                    continue;
                };
                match taken {
                    Some(site) => self.tracked.add_weak(jni, object, site, sample.time),
                    None => jni.delete_weak(object),
                }
            }
        }
    }

    /// Drops the waiting samples when the recording ends.
    pub(crate) fn drop_samples(&self, jni: Jni) {
        for list in &self.samples.lists {
            let waiting = std::mem::take(&mut *list.lock());
            for sample in waiting {
                self.memory.native.give(Worth::Objects, sample.cost());
                if let Some(object) = sample.object {
                    jni.delete_weak(object);
                }
            }
        }
    }

    /// Starts the thread that empties the lists.
    pub(crate) fn take_samples_always(&self, env: Env<Live>, jni: Jni) -> jvmti::Result<()> {
        /// How long samples wait if they keep garbage alive.
        const SHORT: Duration = Duration::from_millis(20);
        let hotspot = self.forever();
        let bound = self.tracked.bound();
        let keep_garbage = bound.is_some_and(|bound| bound.heap.is_some());
        self.spawn(env, jni, "HPROF allocations", move |env, jni| {
            let _ = hotspot.samples.taker.set(std::thread::current());
            while !hotspot.dead.load(Ordering::Relaxed) {
                with_agent_guard(|| hotspot.take_samples(env, jni));
                match keep_garbage {
                    true => std::thread::park_timeout(SHORT),
                    false => std::thread::park(),
                }
            }
        })
    }
}

impl State {
    /// Counts a sample; returns its site, and its bytes if it is an array; `None` if it is not recorded.
    fn take_sample(
        &mut self,
        (env, jni): (Env<Live>, Jni),
        sample: &Sample,
        config: &Config,
    ) -> Option<(SiteId, u64)> {
        let class = sample.class;
        let Chosen::Record(options) = self.holds_for_class(jni, class) else {
            return None;
        };
        if !self.choices.dice.choose(options.share) {
            return None;
        }
        let frames = match options.stack {
            true => {
                let depth = (self.depth as usize).min(MOST_FRAMES);
                self.registry.stack(env, jni, &sample.rows, depth)
            }
            false => Vec::new(),
        };
        let thread = match config.per_thread || options.context {
            true => match &sample.virtual_name {
                Some(name) => self.registry.maker_named(name),
                None => self.registry.maker_numbered(sample.thread),
            },
            false => ThreadId::NONE,
        };
        let trace = self.registry.trace(vmpi::Trace { thread, frames });
        let site = self.sites.site(class, trace, options.share);
        Some((site, self.one_more(site, class, sample.size)))
    }
}
