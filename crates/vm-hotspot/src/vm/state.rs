//! The state of a recording, behind one lock.

use std::collections::HashMap;
use std::sync::Arc;

use jvmti::{Env, Jni, Live, Object};
use rustc_hash::FxHashMap;
use vmpi::class_options::Rules;
use vmpi::{
    ClassId, ClassOptions, Frame, Memory, SampleTiming, Share, ThreadId, Trace, TraceId,
    WallDropped, WallRow, Worth,
};

use crate::alloc::choices::{Choices, Chosen, Question};
use crate::alloc::site_stacks::Maker;
use crate::alloc::sites::{Seen, SiteId, Sites, first_mask};
use crate::alloc::tracked::Tracked;
use crate::cpu::calls::Contexts;
use crate::host::names::Names;
use crate::instrument::counters::{Counters, Larger};
use crate::instrument::guests::Kind;
use crate::instrument::key_slots::{
    SPREAD, find_entry, node_and_method, of_edge, of_site, rebuild,
};
use crate::instrument::numbers::Numbers;
use crate::instrument::tracker::{CALL, COST_WORDS, EACH, EDGE_WORDS, SITE_WORDS, Tracker};
use crate::vm::config::{Config, Track};
use crate::vm::costs;
use crate::vm::registry::Registry;
use crate::vm::spares::{Spare, Spares, Stop};

/// Allocations whose stack is found to be another one than that of their site.
pub(crate) const OTHER_STACK: &str = "allocations at another stack than that of their site (methods without counting code, or equal context hashes)";

/// How many frames of the tracker are expected above the wanted ones.
pub(crate) const TRACKER_FRAMES: usize = 6;
/// How many frames of a lock are expected above the method that acquires it.
const LOCK_FRAMES: usize = 16;
/// A row of a stack before it is filled.
pub(crate) const NOWHERE: jvmti::FrameRow = jvmti::FrameRow {
    method: jvmti::sys::MethodPtr(std::ptr::null_mut()),
    location: 0,
};
/// Innermost frames to skip at a call by the VM: `upcall` and its caller.
const OWN_FRAMES: usize = 2;
/// The most frames kept of a stack.
pub(crate) const MOST_FRAMES: usize = 2048;

/// Slots of a thread's tables for each key. A frequent key should be in its first slot, because only the check of that
/// slot is inlined into callers.
const SPARSE: usize = 4;
/// The same for edges, which take half as much memory: one that is not in its first slot costs several times as much
/// time.
const SPARSE_EDGES: usize = 8;
/// Tracking mask of a class that is off: only one object in 2^31 becomes pending, and it has no site.
const OFF: i64 = i32::MAX as i64;

/// The state.
#[derive(Default)]
pub(crate) struct State {
    /// Frames kept of a stack.
    pub(crate) depth: u32,
    /// Methods kept of a calling context.
    pub(crate) call_depth: usize,
    pub(crate) registry: Registry,
    /// Which parts of the registry the stream of VM events has received.
    pub(crate) stream: Names,
    pub(crate) sites: Sites,
    /// Counters by the number in the tracker.
    pub(crate) counters: HashMap<i32, Counters>,
    pub(crate) next_counters: i32,
    /// Groups of virtual threads whose counts are kept together, by number.
    pub(crate) kinds: Vec<Kind>,
    /// Calls and times by stack since the last report.
    pub(crate) costs: FxHashMap<TraceId, [i64; 3]>,
    /// Samples by thread and stack since the last report.
    pub(crate) samples: FxHashMap<(ThreadId, TraceId), u64>,
    /// How often threads were interrupted for these samples.
    pub(crate) sample_timing: SampleTiming,
    /// Wall-clock samples by stack since the last report, and dropped ones.
    pub(crate) wall: FxHashMap<TraceId, WallRow>,
    pub(crate) wall_dropped: WallDropped,
    /// When threads began to wait to enter a monitor, and in `wait`.
    pub(crate) blocked: FxHashMap<ThreadId, u64>,
    pub(crate) waiting: FxHashMap<ThreadId, u64>,
    /// Threads that got no counters because of the memory limit, and how often they requested them.
    pub(crate) refused: FxHashMap<ThreadId, u32>,
    /// Notes since the last report: what is not measured as requested.
    pub(crate) degraded: Vec<String>,
    /// What is recorded of each class.
    pub(crate) choices: Choices,
    /// Since the last report: tables of threads that were emptied because they may not grow, and calling contexts
    /// without memory.
    pub(crate) flushed: u64,
    pub(crate) contexts_refused: u64,
    /// How often something was refused at the last report.
    pub(crate) refusals_reported: u64,
    /// Since the last report: (what, how many).
    pub(crate) lost: FxHashMap<&'static str, u64>,
}

impl State {
    /// An empty state.
    pub(crate) fn new(config: &Config, memory: &Arc<Memory>) -> Self {
        let mut state = Self::default();
        state.registry.memory = Arc::clone(memory);
        state.sites.memory = Arc::clone(memory);
        state.set_depth(config, config.depth);
        state.sites.is_tracked = config.counts_objects() && config.track != Track::None;
        state.registry.code_changes = config.takes_code_out();
        state.registry.has_profiler = config.has_profiler;
        state
    }

    /// Continues after the previous recording: numbers of counters that its inserted code may still use are not reused,
    /// and live threads of the agent stay known.
    pub(crate) fn follow_on(&mut self, before: &Self) {
        self.next_counters = before.next_counters;
        self.registry.follow_on(&before.registry);
    }

    /// Removes the data of some of the unloaded classes.
    pub(crate) fn clear_up(&mut self, jni: impl Fn() -> Option<Jni>, most: usize) {
        self.registry.clear_up(jni, most);
        if !self.registry.has_profiler && self.registry.is_clear() {
            self.stream.forget_traces(&self.registry);
        }
    }

    /// The profiler receives the end of a class next. Returns whether a record refers to the class, so that it is kept.
    pub(crate) fn forget_class(&mut self, class: ClassId) -> bool {
        let is_named = self.registry.forget_class(class);
        if !is_named {
            self.choices.forget(class);
        }
        is_named
    }

    pub(crate) fn set_depth(&mut self, config: &Config, depth: u32) {
        self.depth = depth;
        self.call_depth = (config.call_depth.unwrap_or(depth) as usize).max(1);
    }

    /// Sets how many frames are kept. Contexts of open calls keep the depth at which they began.
    pub(crate) fn change_depth(
        &mut self,
        (jni, tracker): (Jni, &Tracker),
        config: &Config,
        depth: u32,
        spares: &Spares,
    ) -> Result<(), Stop> {
        self.set_depth(config, depth);
        if tracker
            .renew_keys(jni, depth, self.choices.epoch())
            .is_err()
        {
            *self.lost.entry("changes of depth").or_default() += 1;
        }
        if !config.calls || config.call_depth.is_some() {
            return Ok(());
        }
        // Known calls lead to nodes of the old depth, so all are forgotten.
        let mut tables = Vec::new();
        let mut has_table = |object| tables.push(Spare::Longs(tracker.edges(jni, object).len()));
        tracker.for_each(jni, &mut has_table);
        tracker.for_each_home(jni, &mut has_table);
        // All arrays or none are taken; each is as long as the table at the same index.
        let tables: Option<Vec<Object>> = spares.take(&tables)?.into_iter().collect();
        let Some(tables) = tables else {
            *self.lost.entry("changes of depth").or_default() += 1;
            return Ok(());
        };
        let mut tables = tables.into_iter();
        let (counters, call_depth) = (&mut self.counters, self.call_depth);
        tracker.for_each(jni, |object| {
            let (Some(table), Some(counters)) =
                (tables.next(), counters.get_mut(&tracker.id(jni, object)))
            else {
                return;
            };
            let known = tracker.edges(jni, object);
            tracker.set_edges(jni, object, table, &vec![0; known.len()]);
            counters.forget_edges();
            counters.contexts.forget_calls(&known);
            counters.contexts.set_depth(call_depth);
        });
        self.forget_guest_calls((jni, tracker), &mut tables);
        Ok(())
    }

    /// Sets the class filters.
    pub(crate) fn choose(&mut self, jni: Jni, tracker: Option<&Tracker>, rules: &Arc<Rules>) {
        if !self.choices.set(rules) {
            return;
        }
        self.renew_keys(jni, tracker);
    }

    /// Makes threads add their sites again, under new keys.
    fn renew_keys(&mut self, jni: Jni, tracker: Option<&Tracker>) {
        // The answers were changed before the keys, so an entry with an old answer is never found again.
        let depth = self.depth;
        let renew = |tracker: &Tracker| tracker.renew_keys(jni, depth, self.choices.epoch());
        if tracker.is_some_and(|tracker| renew(tracker).is_err()) {
            *self.lost.entry("changes of the class filters").or_default() += 1;
        }
    }

    /// Counting starts again. Code that stores no contexts has run meanwhile, so stacks are read again.
    pub(crate) fn begin_again(&mut self, jni: Jni, tracker: &Tracker) {
        self.choices.begin_epoch();
        self.renew_keys(jni, Some(tracker));
        tracker.for_each(jni, |object| {
            tracker.set_context(jni, object, 0);
        });
        tracker.for_each_guest(jni, |guest| tracker.set_context(jni, guest, 0));
    }

    /// Looks up how a class is recorded before it has objects.
    pub(crate) fn look_up(&mut self, jni: Jni, class: (ClassId, Object)) {
        self.choices.of(&self.registry, jni, class);
    }

    /// How a class is recorded now.
    pub(crate) fn holds_for(&mut self, jni: Jni, class: (ClassId, Object)) -> Chosen {
        self.choices.of(&self.registry, jni, class)
    }

    /// The same for a class without its mirror; it may have been unloaded.
    pub(crate) fn holds_for_class(&mut self, jni: Jni, class: ClassId) -> Chosen {
        let classes = &self.registry.classes;
        let entry = classes.get(class.0);
        let mirror = entry.and_then(|entry| entry.mirror);
        match mirror.and_then(|weak| jni.new_local(weak)) {
            Some(mirror) => self.choices.of(&self.registry, jni, (class, mirror)),
            None => Chosen::Record(ClassOptions::FULL),
        }
    }

    /// Stores the answers of factories of the program.
    pub(crate) fn answered(
        &mut self,
        jni: Jni,
        tracker: Option<&Tracker>,
        mut answers: Vec<(Question, Chosen)>,
    ) {
        // A class may have been unloaded while its factory was called.
        let classes = &self.registry.classes;
        answers.retain(|(question, _)| classes.get(question.class.0).is_some());
        if self.choices.take_answers(answers) {
            self.renew_keys(jni, tracker);
        }
    }

    /// The stack of the current thread, numbered.
    pub(crate) fn current_trace(&mut self, env: Env<Live>, jni: Jni, config: &Config) -> TraceId {
        self.trace_as(env, jni, config, ClassOptions::FULL)
    }

    /// The stack of the current thread, numbered, from the method that acquires a lock; frames of the lock are left out.
    pub(crate) fn trace_of_locker(&mut self, env: Env<Live>, jni: Jni, config: &Config) -> TraceId {
        let depth = (self.depth as usize).min(MOST_FRAMES);
        let mut rows = vec![NOWHERE; if depth == 0 { 0 } else { depth + LOCK_FRAMES }];
        let count = env.stack_into(None, &mut rows).unwrap_or(0);
        let frames = self.registry.stack(env, jni, &rows[..count], rows.len());
        let of_lock = |frame: &Frame| self.registry.is_of_locks(frame.method);
        let begin = frames.iter().position(|frame| !of_lock(frame)).unwrap_or(0);
        let frames = frames.into_iter().skip(begin).take(depth).collect();
        let thread = match config.per_thread {
            true => self.registry.maker(env),
            false => ThreadId::NONE,
        };
        self.registry.trace(Trace { thread, frames })
    }

    /// The stack of the current thread in the form that these options require, numbered.
    fn trace_as(
        &mut self,
        env: Env<Live>,
        jni: Jni,
        config: &Config,
        options: ClassOptions,
    ) -> TraceId {
        let frames = match options.stack {
            true => self.current_frames(env, jni),
            false => Vec::new(),
        };
        let thread = match config.per_thread || options.context {
            true => self.registry.maker(env),
            false => ThreadId::NONE,
        };
        self.registry.trace(Trace { thread, frames })
    }

    fn current_frames(&mut self, env: Env<Live>, jni: Jni) -> Vec<Frame> {
        let depth = (self.depth as usize).min(MOST_FRAMES);
        let mut more = TRACKER_FRAMES;
        loop {
            let mut rows = vec![NOWHERE; depth + more];
            let count = if depth == 0 {
                0
            } else {
                env.stack_into(None, &mut rows).unwrap_or(0)
            };
            let frames = self.registry.stack(env, jni, &rows[..count], depth);
            // Nested arrays are counted by as many nested calls.
            if frames.len() >= depth || count < rows.len() || more > MOST_FRAMES {
                return frames;
            }
            more *= 2;
        }
    }

    /// The site of an object that the current thread makes, if this share of its objects is recorded. `by`: the
    /// instruction, if stacks are sampled.
    fn site_of(
        &mut self,
        (env, jni): (Env<Live>, Jni),
        config: &Config,
        (class, options): (ClassId, ClassOptions),
        by: Maker<'_>,
    ) -> SiteId {
        if config.stacks_sampled {
            return self.sampled_site((env, jni), config, (class, options), by);
        }
        let trace = self.trace_as(env, jni, config, options);
        self.sites.site(class, trace, options.share)
    }

    /// An allocation at a key that the current thread has not seen.
    pub(crate) fn new_site(
        &mut self,
        at: &At<'_>,
        made: Object,
        key: i64,
        bytes: i64,
    ) -> Result<(), Stop> {
        let At {
            env,
            jni,
            tracker,
            object,
            config,
            tracked,
            ..
        } = *at;
        let Some(mirror) = jni.object_class(made) else {
            return Ok(());
        };
        let class = self.registry.class(env, jni, mirror);
        let chosen = self.choices.of(&self.registry, jni, (class, mirror));
        let size = env.object_size(made).unwrap_or(0).cast_signed();
        let id = tracker.id(jni, object);
        // This comes first, because it is repeated if the table must grow.
        let slot = match key {
            0 => None,
            _ => match self.slot_for(at, id, key)? {
                None => return Ok(()),
                slot => slot,
            },
        };
        let (site, share, number) = match chosen {
            Chosen::Off => (SiteId::NONE, Share::ALL, 0),
            Chosen::Record(mut options) => {
                // Without tracking, counting everything is free.
                let (number, share) = match self.sites.is_tracked {
                    true => tracked.number_of(options.share),
                    false => (0, Share::ALL),
                };
                options.share = share;
                let by = Maker::of(at);
                let site = self.site_of((env, jni), config, (class, options), by);
                (site, share, number)
            }
        };
        let (is_off, is_thinned) = (site == SiteId::NONE, share != Share::ALL);
        if !is_thinned && key == 0 {
            self.sites.allocated(site, 1, size);
            return Ok(());
        }
        if let Some(slot) = slot {
            let mask = if is_off {
                OFF
            } else {
                first_mask(config.track)
            };
            let how = site.word(number) | mask;
            tracker.set_site_words(jni, object, slot * SITE_WORDS, &[key, 1, bytes, how]);
            let seen = Seen {
                site,
                is_thinned: is_thinned || is_off,
                epoch: self.choices.epoch(),
                size: if bytes == 0 { size } else { 0 },
                objects: 0,
                bytes: 0,
            };
            if let Some(counters) = self.counters.get_mut(&id) {
                counters.keys[slot] = key;
                counters.seen.insert(key, seen);
            }
        }
        if is_off {
            return Ok(());
        }
        let is_array = bytes != 0;
        if !is_array {
            self.sites.set_size(site, size);
        }
        if is_thinned {
            if !self.choices.dice.choose(share) {
                return Ok(());
            }
            self.sites.allocated(site, 1, size);
        }
        let array_bytes = if is_array { size.cast_unsigned() } else { 0 };
        tracked.add_if(self.sites.is_tracked, jni, made, site, array_bytes);
        Ok(())
    }

    /// A free slot for a key in the current thread's table, which grows if necessary. Keys that were added under other
    /// class filters are never looked up again, and are removed.
    fn slot_for(&mut self, at: &At<'_>, id: i32, key: i64) -> Result<Option<usize>, Stop> {
        let At {
            jni,
            tracker,
            object,
            spares,
            ..
        } = *at;
        let Some(counters) = self.counters.get_mut(&id) else {
            return Ok(None);
        };
        if (counters.seen.len() + 1) * SPARSE > counters.keys.len() {
            let epoch = self.choices.epoch();
            let is_old = |seen: &&Seen| seen.epoch != epoch;
            let n_old = counters.seen.values().filter(is_old).count();
            let stay = counters.seen.len() - n_old;
            let is_full = (stay + 1) * SPARSE * 2 > counters.keys.len();
            let more = if is_full { counters.keys.len() } else { 0 };
            let larger = Larger {
                words: SITE_WORDS * (counters.keys.len() + more),
                more: [costs::SITE_KEY, 8 * SITE_WORDS as u64].map(|each| each * more as u64),
            };
            let [larger] = counters.larger(&self.registry.memory, spares, [Some(larger)])?;
            let mut old = tracker.sites(jni, object);
            if n_old > 0 {
                counters.emptied += 1;
                for entry in old.chunks_exact_mut(SITE_WORDS) {
                    let seen = counters.seen.get_mut(&entry[0]);
                    if let Some(seen) = seen.filter(|seen| seen.epoch != epoch) {
                        self.sites.take_over(seen, entry[1], entry[2]);
                        counters.seen.remove(&entry[0]);
                        entry.fill(0);
                    }
                }
            }
            match larger {
                Some(array) => {
                    let entries = counters.keys.len() << u32::from(is_full);
                    let larger = rebuild(of_site, &old, SITE_WORDS, entries);
                    tracker.set_sites(jni, object, array, &larger);
                    counters.keys = larger.iter().step_by(SITE_WORDS).copied().collect();
                }
                None => {
                    self.flushed += 1;
                    counters.empty_sites((jni, tracker, object), &mut self.sites);
                }
            }
        }
        Ok(Some(find_entry(of_site, &counters.keys, 1, key)))
    }

    /// Sets the context of the current thread from its stack: the VM has called a method in the middle of other code,
    /// which has stored the context of the last method that it called.
    pub(crate) fn enter_upcall(&self, at: &At<'_>) {
        let depth = (self.depth as usize).min(MOST_FRAMES);
        let mut rows = vec![NOWHERE; depth + OWN_FRAMES];
        let count = at.env.stack_into(None, &mut rows).unwrap_or(0);
        let frames = rows[..count].iter().skip(OWN_FRAMES);
        let context = frames.fold(0, |sum: u64, frame| {
            let place = (frame.method.0 as u64).rotate_left(32) ^ frame.location as u64;
            (sum ^ place).wrapping_mul(SPREAD.cast_unsigned()) ^ sum >> 29
        });
        let context = context.wrapping_mul(SPREAD.cast_unsigned());
        let context = (context ^ context >> 32).cast_signed();
        at.tracker.set_context(at.jni, at.object, context);
    }

    /// Checks that the current stack is that of a site: two contexts with the same number are counted as one, and so are
    /// the contexts of a method without inserted code.
    pub(crate) fn check(&mut self, at: &At<'_>, site: SiteId) {
        let now = self.current_frames(at.env, at.jni);
        let known = self.sites.trace(site).unwrap_or(TraceId::EMPTY);
        let known = self.registry.traces.get(known.0);
        // Without frames: the stack is not recorded.
        if known.is_some_and(|known| !known.frames.is_empty() && known.frames != now) {
            *self.lost.entry(OTHER_STACK).or_default() += 1;
        }
    }

    /// An allocation that no bytecode made.
    pub(crate) fn vm_allocated(
        &mut self,
        here: (Env<Live>, Jni),
        made: Object,
        config: &Config,
        tracked: &Tracked,
    ) {
        let (env, jni) = here;
        let Some((class, options)) = self.chosen(here, made) else {
            return;
        };
        if !self.is_counted_by_caller(env, jni) && self.choices.dice.choose(options.share) {
            self.one_allocated(here, made, config, (class, options), tracked);
        }
    }

    /// An allocation that the VM's sampler picked. It is counted as one object; the reporting code computes how many it
    /// stands for.
    pub(crate) fn sampled(
        &mut self,
        here: (Env<Live>, Jni),
        made: Object,
        config: &Config,
        tracked: &Tracked,
    ) {
        let chosen = self.chosen(here, made);
        if let Some((class, options)) = chosen
            && self.choices.dice.choose(options.share)
        {
            self.one_allocated(here, made, config, (class, options), tracked);
        }
    }

    /// The class of an object and how it is recorded; `None` if it is not.
    fn chosen(
        &mut self,
        (env, jni): (Env<Live>, Jni),
        made: Object,
    ) -> Option<(ClassId, ClassOptions)> {
        let mirror = jni.object_class(made)?;
        let class = self.registry.class(env, jni, mirror);
        match self.choices.of(&self.registry, jni, (class, mirror)) {
            Chosen::Off => None,
            Chosen::Record(options) => Some((class, options)),
        }
    }

    fn one_allocated(
        &mut self,
        (env, jni): (Env<Live>, Jni),
        made: Object,
        config: &Config,
        (class, options): (ClassId, ClassOptions),
        tracked: &Tracked,
    ) {
        let site = self.site_of((env, jni), config, (class, options), Maker::Native);
        let size = env.object_size(made).unwrap_or(0);
        let bytes = self.one_more(site, class, size);
        tracked.add_if(self.sites.is_tracked, jni, made, site, bytes);
    }

    /// Counts an object of a site; returns its bytes if it is an array, otherwise 0.
    pub(crate) fn one_more(&mut self, site: SiteId, class: ClassId, size: u64) -> u64 {
        self.sites.allocated(site, 1, size.cast_signed());
        if self.registry.is_array(class) {
            return size;
        }
        self.sites.set_size(site, size.cast_signed());
        0
    }

    /// The node after a call that the current thread has not seen.
    pub(crate) fn new_edge(&mut self, at: &At<'_>, key: i64) -> Result<i32, Stop> {
        let At {
            jni,
            tracker,
            object,
            spares,
            ..
        } = *at;
        let Some(counters) = self.counters.get_mut(&tracker.id(jni, object)) else {
            return Ok(0);
        };
        let n_nodes = counters.contexts_among(&mut self.kinds).len();
        let memory = Arc::clone(&self.registry.memory);
        // Make room for the node that this call may add, and for the edge to it.
        let room = (n_nodes + 1).next_power_of_two();
        let costs = (room > counters.room).then(|| Larger {
            words: COST_WORDS * room,
            more: [0, (8 * COST_WORDS * (room - counters.room)) as u64],
        });
        let edges = counters.edge_keys.len();
        let edges = ((counters.n_edges + 1) * SPARSE_EDGES > edges).then(|| Larger {
            words: EDGE_WORDS * 2 * edges,
            more: [costs::EDGE_KEY, 8 * EDGE_WORDS as u64].map(|each| each * edges as u64),
        });
        let has_edges = edges.is_none();
        let [costs, edges] = counters.larger(&memory, spares, [costs, edges])?;
        if let Some(array) = costs {
            let mut larger = tracker.costs(jni, object);
            larger.resize(room * COST_WORDS, 0);
            tracker.set_costs(jni, object, array, &larger);
            counters.room = room;
        }
        let contexts = counters.contexts_among(&mut self.kinds);
        // A node gets a stack when it is harvested; the memory for it is charged now.
        let mut added = [0; 2];
        let mut may_add = |depth| {
            let cost = [costs::context(depth), costs::stack(depth)];
            let may_add = memory.native.take(Worth::Stacks, cost[0] + cost[1]);
            if may_add {
                added = cost;
            }
            may_add
        };
        let (node, method) = node_and_method(key);
        let mut child = contexts.call_if(node, method, &mut may_add);
        if child == Contexts::NO_CALLER && method != 0 {
            self.contexts_refused += 1;
        }
        contexts.reserved += added[1];
        counters.charged[0] += added[0];
        if child as usize >= counters.room {
            self.contexts_refused += 1;
            child = Contexts::NO_CALLER;
        }
        if let Some(array) = edges {
            let (known, entries) = (tracker.edges(jni, object), 2 * counters.edge_keys.len());
            let larger = rebuild(of_edge, &known, EDGE_WORDS, entries);
            tracker.set_edges(jni, object, array, &larger);
            counters.edge_keys = larger.iter().step_by(EDGE_WORDS).copied().collect();
        } else if !has_edges {
            self.flushed += 1;
            let known = counters.empty_edges((jni, tracker, object));
            let contexts = counters.contexts_among(&mut self.kinds);
            contexts.forget_calls(&known);
        }
        let slot = find_entry(of_edge, &counters.edge_keys, 1, key);
        counters.edge_keys[slot] = key;
        counters.n_edges += 1;
        let edge = [key, i64::from(child) | EACH | CALL];
        tracker.set_edge_words(jni, object, slot * EDGE_WORDS, &edge);
        Ok(child as i32)
    }

    /// Methods kept of a calling context.
    pub(crate) fn call_depth(&self) -> usize {
        self.call_depth
    }

    /// A thread ends: removes what is kept only for it.
    pub(crate) fn forget_thread(&mut self, thread: ThreadId) {
        self.blocked.remove(&thread);
        self.waiting.remove(&thread);
        self.refused.remove(&thread);
    }
}

/// The context of a call of a native method of the tracker.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    pub(crate) env: Env<Live>,
    pub(crate) jni: Jni,
    pub(crate) tracker: &'a Tracker,
    /// The tracker of the thread.
    pub(crate) object: Object,
    pub(crate) config: &'a Config,
    pub(crate) numbers: &'a Numbers,
    pub(crate) tracked: &'a Tracked,
    pub(crate) spares: &'a Spares,
}
