//! Inserted code in the program's classes: inserted when counting begins, removed when a collector no
//! longer wants allocations counted, and inserted again when it does.
//!
//! One thread at a time changes classes: first the thread that starts to count, later a thread of the agent, which
//! follows the latest request. While classes change nothing is counted, and frames that run replaced code continue with
//! it, so a stop or start in the middle needs no special care. A class that the VM does not restore keeps the inserted
//! code, switched off.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use jvmti::sys::MethodPtr;
use jvmti::{Capability, Env, Jni, Live, Object};
use locks::{Mutex, Rank};
use rustc_hash::FxHashSet;
use vmpi::ClassId;
use vmpi::info::java_name;

use crate::alloc::native_made;
use crate::instrument::changed_classes::{ChangedClasses, MOST_WHERE_SLOW};
use crate::instrument::natives::with_agent_guard;
use crate::instrument::tracker::Tracker;
use crate::threads::background::{RUNNING, keep_time, retransform_those};
use crate::threads::worker::Place;
use crate::vm::config::Clock;
use crate::vm::hotspot::HotSpot;
use crate::vm::registry::CLASS_TAG;

/// How long a start waits until classes have the code; other agents may change each class, too.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it checks whether the VM ends.
const STEP: Duration = Duration::from_millis(100);

/// Which classes have inserted code, and which should have it.
pub(crate) struct Inserted {
    /// Whether counting of allocations is stopped. Locked while that is switched.
    stopped: Mutex<bool>,
    /// Locked while counting begins.
    begins: Mutex<()>,
    /// Counting has begun, or was found to be impossible.
    has_begun: AtomicBool,
    /// Whether classes that are loaded now stay unchanged.
    leaves: AtomicBool,
    /// Whether all classes have the code. Locked while they are changed.
    is_in: Mutex<bool>,
    pub(crate) changed: ChangedClasses,
    worker: Place,
}

impl Default for Inserted {
    fn default() -> Self {
        Self {
            stopped: Mutex::new(Rank::Counting, false),
            begins: Mutex::new(Rank::Begins, ()),
            has_begun: AtomicBool::new(false),
            leaves: AtomicBool::new(false),
            is_in: Mutex::new(Rank::Classes, false),
            changed: ChangedClasses::default(),
            worker: Mutex::new(Rank::Worker, None),
        }
    }
}

impl Inserted {
    /// Whether a class that is loaded now stays unchanged.
    pub(crate) fn leaves_classes(&self) -> bool {
        self.leaves.load(Ordering::SeqCst)
    }

    /// Counting begins, or is impossible.
    pub(crate) fn begin(&self) {
        self.has_begun.store(true, Ordering::SeqCst);
    }
}

impl HotSpot {
    /// Whether everything is recorded: in a program that already runs it takes a while until all classes have the
    /// inserted code. Also true if nothing can be counted.
    #[must_use]
    pub fn records_all(&self) -> bool {
        !self.config.instruments() || self.inserted.has_begun.load(Ordering::SeqCst)
    }

    /// Ends counting with the recording; waits for threads that are about to count.
    pub(crate) fn count_no_more(&self, jni: Jni, tracker: &Tracker) -> jvmti::Result<()> {
        let _begins = self.inserted.begins.lock();
        let _stopped = self.inserted.stopped.lock();
        tracker.switch(jni, false);
        tracker.switch_allocations(jni, false)?;
        // A thread that is being added to the tables is added before they are emptied; after this no thread is added.
        drop(self.lodging.lock());
        drop(self.lock());
        tracker.forget_threads(jni)
    }

    /// The number of a loaded class, if it has one.
    pub(crate) fn known_class(&self, class: Object) -> Option<ClassId> {
        let tag = self.live()?.tag(class).ok()?;
        (tag & CLASS_TAG != 0).then_some(ClassId((tag & !CLASS_TAG) as u32))
    }

    /// Starts to count: configures the tracker and sends the loaded classes through the class file load hook.
    pub(crate) fn start_counting(&self, env: Env<Live>, jni: Jni) -> jvmti::Result<()> {
        let Some(tracker) = self.tracker() else {
            return Err(jvmti::Error::Jni("tracker"));
        };
        let _begins = self.inserted.begins.lock();
        if self.is_over() {
            return Ok(());
        }
        let depth = self.lock().depth;
        tracker.configure(env, jni, &self.config, depth)?;
        if self.follows_another {
            tracker.forget_compiled(env, jni)?;
        }
        self.put_in(env, jni)?;
        tracker.set_clock(jni, Clock::Elapsed.now(), 0);
        {
            // A collector may have requested a stop already.
            let stopped = self.inserted.stopped.lock();
            if self.is_over() {
                return Ok(());
            }
            let counts = self.config.allocations && !*stopped;
            tracker.switch_allocations(jni, counts)?;
            tracker.switch(jni, true);
            if counts {
                native_made::begin(self, env, jni)?;
            }
        }
        self.inserted.begin();
        if self.config.calls {
            let hotspot = self.forever();
            self.spawn(env, jni, "HPROF clock", move |env, jni| {
                with_agent_guard(|| keep_time(hotspot, env, jni))
            })?;
        }
        Ok(())
    }

    /// Starts or stops counting allocations by inserted code. A caller that starts it again waits until classes have
    /// the code.
    pub(crate) fn switch_code(
        &self,
        env: Env<Live>,
        jni: Jni,
        tracker: &Tracker,
        on: bool,
    ) -> jvmti::Result<()> {
        let is_bare = self.inserted.leaves_classes();
        if on && is_bare {
            return self.count_again_soon(env, jni);
        }
        {
            let mut stopped = self.inserted.stopped.lock();
            if self.is_over() {
                return Ok(());
            }
            tracker.switch_allocations(jni, on)?;
            if on {
                native_made::begin(self, env, jni)?;
            } else {
                native_made::switch(false);
            }
            *stopped = !on;
        }
        if !on && !is_bare && self.takes_code_out() {
            let worker = self.worker(&self.inserted.worker, (env, jni), "HPROF classes")?;
            self.inserted.leaves.store(true, Ordering::SeqCst);
            let hotspot = self.forever();
            worker.give(move |env, jni| hotspot.take_out(env, jni));
        }
        Ok(())
    }

    /// Whether the code is removed when counting stops.
    fn takes_code_out(&self) -> bool {
        const FAST: u32 = 17;
        let version = self.env.system_property("java.vm.specification.version");
        let number = version.and_then(|version| version.parse::<u32>().ok());
        let may_be_slow = || number.is_none_or(|number| number < FAST);
        self.config.takes_code_out()
            && self.granted.has(Capability::RetransformClasses)
            && !(may_be_slow() && self.inserted.changed.count() > MOST_WHERE_SLOW)
    }

    fn count_again_soon(&self, env: Env<Live>, jni: Jni) -> jvmti::Result<()> {
        let worker = self.worker(&self.inserted.worker, (env, jni), "HPROF classes")?;
        *self.inserted.stopped.lock() = false;
        self.inserted.leaves.store(false, Ordering::SeqCst);
        let (done, wait) = channel();
        let hotspot = self.forever();
        worker.give(move |env, jni| {
            if let Err(error) = hotspot.count_again(env, jni) {
                hotspot.degrade(&format!("nothing can be counted: {error}"));
            }
            // No thread receives this when the wait has ended.
            let _ = done.send(());
        });
        let begun = Instant::now();
        while let Err(RecvTimeoutError::Timeout) = wait.recv_timeout(STEP) {
            if self.dead.load(Ordering::SeqCst) {
                break;
            }
            if begun.elapsed() > PATIENCE {
                self.degrade(
                    "retransformation takes more than 60 s; counting starts when it completes",
                );
                break;
            }
        }
        Ok(())
    }

    fn count_again(&self, env: Env<Live>, jni: Jni) -> jvmti::Result<()> {
        let Some(tracker) = self.tracker() else {
            return Err(jvmti::Error::Jni("tracker"));
        };
        self.put_in(env, jni)?;
        let stopped = self.inserted.stopped.lock();
        if !*stopped && !self.is_over() {
            self.lock().begin_again(jni, tracker);
            tracker.switch_allocations(jni, true)?;
            native_made::begin(self, env, jni)?;
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.dead.load(Ordering::SeqCst)
    }

    /// Inserts the code into all classes, unless it is no longer wanted.
    fn put_in(&self, env: Env<Live>, jni: Jni) -> jvmti::Result<()> {
        let mut is_in = self.inserted.is_in.lock();
        let goes_on = || !self.inserted.leaves_classes() && !self.is_over();
        if *is_in || !goes_on() {
            return Ok(());
        }
        let runs = self.is_under_way.load(Ordering::SeqCst);
        let (_, refused) = retransform_those(env, jni, |_| true, goes_on, runs)?;
        *is_in = goes_on();
        if runs {
            jni.local_frame(256, || self.note_running(env, jni));
        }
        if !refused.is_empty() {
            let count = refused.len();
            (self.message)(&format!("{count} classes could not be instrumented"));
        }
        for name in refused {
            let name = name.replace('/', ".");
            self.numbers
                .refuse(&name, "the VM rejected retransformation");
        }
        Ok(())
    }

    /// Notes methods of the program that run code from before: they count only from their next call on.
    fn note_running(&self, env: Env<Live>, jni: Jni) {
        /// Names in the note.
        const NAMES: usize = 5;
        let stacks = env.all_stacks(jni, RUNNING).unwrap_or_default();
        let frames = stacks.iter().flat_map(|stack| &stack.frames);
        let methods: FxHashSet<MethodPtr> = frames.map(|frame| frame.method).collect();
        let old = methods.iter().filter(|m| env.is_obsolete(**m) == Ok(true));
        let names: BTreeSet<String> = old.filter_map(|m| own_method(env, jni, *m)).collect();
        if names.is_empty() {
            return;
        }
        let first: Vec<&str> = names.iter().take(NAMES).map(String::as_str).collect();
        let more = match names.len() - first.len() {
            0 => String::new(),
            rest => format!(" and {rest} more"),
        };
        self.lock().degraded.push(format!(
            "methods that were running when counting began are counted from their next call on: {}{more}",
            first.join(", ")
        ));
    }

    /// Removes the code from all classes that have it, unless it is wanted again.
    fn take_out(&self, env: Env<Live>, jni: Jni) {
        let mut is_in = self.inserted.is_in.lock();
        *is_in = false;
        let goes_on = || self.inserted.leaves_classes() && !self.is_over();
        let refused = self.inserted.changed.put_back(env, jni, goes_on);
        if refused > 0 {
            self.degrade(&format!(
                "{refused} classes keep the code that counts, switched off"
            ));
        }
    }
}

/// The name of a method of the program; `None` for those of the boot loader.
fn own_method(env: Env<Live>, jni: Jni, method: MethodPtr) -> Option<String> {
    let class = env.method_class(method).ok()??;
    let loader = env.class_loader(class).ok().flatten();
    let class_name = env.class_signature(class).map(|name| java_name(&name));
    jni.delete_local(class);
    jni.delete_local(loader?);
    let (name, _) = env.method_name(method).ok()?;
    Some(format!("{}.{name}", class_name.ok()?))
}
