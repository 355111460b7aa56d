//! The Java class `HprofTracker` in the VM: defines it, finds its objects, reads and writes their arrays.

use jvmti::sys::{FieldPtr, Value};
use jvmti::{Env, Jni, Live, Object, Result};

use crate::heap::array_layout::ArrayLayout;
use crate::instrument::counters::Want;
use crate::instrument::guests::{GuestFields, OBJECT, OBJECTS};
use crate::instrument::key_slots::SPREAD;
use crate::instrument::numbers::SITE_BITS;
use crate::instrument::rewrite::TRACKER;
use crate::instrument::tracker_class::{ThreadIds, class_bytes};
use crate::vm::config::{Clock, Config, EXACT_PER_SITE, Track};
use crate::vm::spares::{Spare, Spares, Stop, with_spares};

/// Entries of a new thread's tables: sites, edges of calling contexts.
pub(crate) const FIRST_SITES: usize = 512;
pub(crate) const FIRST_EDGES: usize = 4096;
/// Nodes in a new thread's array of costs, and words of its stack of open calls.
pub(crate) const FIRST_NODES: usize = 512;
pub(crate) const FIRST_STACK: usize = 2048;
/// Words of an entry.
pub(crate) const SITE_WORDS: usize = 4;
pub(crate) const EDGE_WORDS: usize = 2;
pub(crate) const COST_WORDS: usize = 4;
pub(crate) const PENDING_WORDS: usize = 2;
const STACK_WORDS: usize = 2;
/// Marks a node of which every stretch of time is measured, until there are many.
pub(crate) const EACH: i64 = 1 << 31;
/// One call, in the second word of an edge.
pub(crate) const CALL: i64 = 1 << 32;
/// Slots of the table of threads: at first, and at most.
const FIRST_TABLE: usize = 256;
const LAST_TABLE: usize = 1 << 19;
/// How many slots, beginning with that of its id, a thread's tracker may be in.
const PROBES: usize = 8;

/// Ids of the tracker's fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tracker {
    /// A weak reference, so that the agent adds no root to the program's heap.
    pub(crate) class: Object,
    no_thread: FieldPtr,
    pub(crate) table: FieldPtr,
    counting: FieldPtr,
    /// The static fields `recent`, `alone` and `candidate`.
    pub(crate) recent: [FieldPtr; 3],
    on: FieldPtr,
    allocations: FieldPtr,
    clock: FieldPtr,
    pub(crate) owner: FieldPtr,
    pub(crate) id: FieldPtr,
    sites: FieldPtr,
    sites_shift: FieldPtr,
    pub(crate) stack: FieldPtr,
    pub(crate) depth: FieldPtr,
    pub(crate) node: FieldPtr,
    pub(crate) starts: FieldPtr,
    edges: FieldPtr,
    pub(crate) costs: FieldPtr,
    pending: FieldPtr,
    pending_words: FieldPtr,
    pending_count: FieldPtr,
    peeked: FieldPtr,
    pub(crate) seen: FieldPtr,
    cpu: FieldPtr,
    context: FieldPtr,
    /// Additional fields for virtual threads.
    pub(crate) guests: GuestFields,
    /// The field `tid` of `java.lang.Thread`.
    tid: FieldPtr,
    ids: ThreadIds,
}

impl Tracker {
    /// Defines the class; allowed from the start phase on.
    pub(crate) fn define(jni: Jni) -> Result<Self> {
        jni.local_frame(16, || {
            let thread = jni.find_class("java/lang/Thread")?;
            let ids = if jni.method(thread, "threadId", "()J").is_ok() {
                ThreadIds::Final
            } else if jni.find_class("jdk/internal/misc/Unsafe").is_ok() {
                ThreadIds::Internal
            } else {
                ThreadIds::Old
            };
            let carrier = jni.static_method(thread, "currentCarrierThread", "()Ljava/lang/Thread;");
            let has_carriers = carrier.is_ok();
            let class = jni.define_boot_class(TRACKER, &class_bytes(ids, has_carriers))?;
            let carriers = jni.static_field(class, "hasCarriers", "Z")?;
            jni.set_static_boolean(class, carriers, has_carriers);
            let of = |name| jni.static_field(class, name, OBJECT);
            Ok(Self {
                class: jni.new_weak(class)?,
                no_thread: of("noThread")?,
                table: jni.static_field(class, "table", OBJECTS)?,
                counting: jni.static_field(class, "counting", OBJECTS)?,
                recent: [of("recent")?, of("alone")?, of("candidate")?],
                on: jni.static_field(class, "on", "Z")?,
                allocations: jni.static_field(class, "allocations", "Z")?,
                clock: jni.static_field(class, "clock", "[J")?,
                owner: jni.field(class, "owner", "Ljava/lang/Thread;")?,
                id: jni.field(class, "id", "I")?,
                sites: jni.field(class, "sites", "[J")?,
                sites_shift: jni.field(class, "sitesShift", "I")?,
                stack: jni.field(class, "stack", "[J")?,
                depth: jni.field(class, "depth", "I")?,
                node: jni.field(class, "node", "J")?,
                starts: jni.field(class, "starts", "[J")?,
                edges: jni.field(class, "edges", "[J")?,
                costs: jni.field(class, "costs", "[J")?,
                pending: jni.field(class, "pending", "[Ljava/lang/Object;")?,
                pending_words: jni.field(class, "pendingWords", "[J")?,
                pending_count: jni.field(class, "pendingCount", "I")?,
                peeked: jni.field(class, "peeked", "I")?,
                seen: jni.field(class, "seen", "J")?,
                cpu: jni.field(class, "cpu", "J")?,
                context: jni.field(class, "context", "J")?,
                guests: GuestFields::find(jni, class)?,
                tid: jni.field(thread, "tid", "J")?,
                ids,
            })
        })
    }

    /// Name of the class whose native methods make objects without a constructor.
    pub(crate) fn unsafe_class(&self) -> &'static str {
        self.ids.unsafe_class()
    }

    /// Sets what does not change (array layout, kind of clock, how ids are read), and makes the table of threads.
    /// `depth`: number of frames that distinguish stacks.
    pub(crate) fn configure(
        &self,
        env: Env<Live>,
        jni: Jni,
        config: &Config,
        depth: u32,
    ) -> Result<()> {
        jni.local_frame(64, || {
            let (class, clock) = (self.class, config.clock);
            self.renew_keys(jni, depth, 0)?;
            for (name, is_so) in [
                ("depthMayChange", config.has_collector),
                ("perThread", clock == Clock::ThreadCpu),
                ("adaptive", config.track == Track::Adaptive),
                ("stacksSampled", config.stacks_sampled),
            ] {
                jni.set_static_boolean(class, jni.static_field(class, name, "Z")?, is_so);
            }
            let overhead = jni.static_field(class, "overhead", "J")?;
            jni.set_static_long(class, overhead, clock.cost_of_reading());
            let layout = ArrayLayout::measure(env, jni)?;
            let exact_shift = EXACT_PER_SITE.trailing_zeros().cast_signed();
            for (name, value) in [
                ("contextShift", context_shift(depth)),
                ("exactShift", exact_shift),
                ("alignMask", layout.align - 1),
            ] {
                jni.set_static_int(class, jni.static_field(class, name, "I")?, value);
            }
            for (name, values) in [("arrayBase", layout.base), ("arrayShift", layout.shift)] {
                let field = jni.static_field(class, name, "[I")?;
                if let Some(array) = jni.get_static_object(class, field) {
                    jni.set_ints(array, 0, &values);
                }
            }
            with_spares((jni, self), |spares| self.enlarge_table(jni, spares))?;
            self.prepare(jni)?;
            self.link_natives(jni)
        })
    }

    /// Gives the tracker what it needs to read ids of threads.
    fn prepare(&self, jni: Jni) -> Result<()> {
        let class = self.class;
        if let Some(name) = self.ids.unsafe_name() {
            let descriptor = format!("L{name};");
            let reader = jni.find_class(name)?;
            let one = jni.static_field(reader, "theUnsafe", &descriptor)?;
            let one = jni.get_static_object(reader, one);
            let ours = jni.static_field(class, "unsafe", &descriptor)?;
            jni.set_static_object(class, ours, one.ok_or(jvmti::Error::Jni("theUnsafe"))?);
        }
        let answer = jni.new_longs(1)?;
        let prepare = jni.static_method(class, "prepare", "([J)V")?;
        jni.call_static_void(class, prepare, &[Value { l: answer.raw() }])?;
        let mut at = [0];
        jni.longs(answer, 0, &mut at);
        jni.set_static_long(class, jni.static_field(class, "tid", "J")?, at[0]);
        Ok(())
    }

    /// Sets how many frames distinguish stacks, if that may change. Equal contexts get other keys from now on, because
    /// the depth or the class filters have changed (`epoch` times).
    pub(crate) fn renew_keys(&self, jni: Jni, depth: u32, epoch: u32) -> Result<()> {
        let class = self.class;
        let salt = jni.static_field(class, "depthSalt", "J")?;
        let number = i64::from(epoch) << 32 | i64::from(depth);
        jni.set_static_long(class, salt, number.wrapping_mul(SPREAD));
        let shift = jni.static_field(class, "shiftNow", "I")?;
        jni.set_static_int(class, shift, context_shift(depth));
        Ok(())
    }

    /// The calling context of a thread.
    pub(crate) fn context(&self, jni: Jni, object: Object) -> i64 {
        jni.get_long(object, self.context)
    }

    /// Sets the calling context of a thread.
    pub(crate) fn set_context(&self, jni: Jni, object: Object, context: i64) {
        jni.set_long(object, self.context, context);
    }

    /// Switches counting on or off.
    pub(crate) fn switch(&self, jni: Jni, on: bool) {
        jni.set_static_boolean(self.class, self.on, on);
    }

    /// Switches counting of allocations on or off.
    pub(crate) fn switch_allocations(&self, jni: Jni, on: bool) -> Result<()> {
        jni.local_frame(8, || {
            let table = if on {
                self.table(jni)?
            } else {
                jni.new_objects(1, self.class, self.no_thread(jni))?
            };
            jni.set_static_boolean(self.class, self.allocations, on);
            jni.set_static_object(self.class, self.counting, table);
            Ok(())
        })
    }

    /// Updates the CPU time of every thread.
    pub(crate) fn set_cpu_clocks(&self, env: Env<Live>, jni: Jni) {
        self.for_each(jni, |object| {
            let before = jni.get_long(object, self.cpu);
            let time = jni
                .get_object(object, self.owner)
                .filter(|_| before != 0)
                .map(|thread| env.thread_cpu_time(thread));
            if let Some(Ok(nanos)) = time
                && nanos >> 8 != before >> 8
            {
                jni.set_long(object, self.cpu, tick(nanos, before + 1));
            }
        });
    }

    /// Lets the clock tick. `ticks`: how often it has ticked before.
    pub(crate) fn set_clock(&self, jni: Jni, nanos: i64, ticks: i64) {
        if let Some(clock) = jni.get_static_object(self.class, self.clock) {
            jni.set_longs(clock, 0, &[tick(nanos, ticks)]);
            jni.delete_local(clock);
        }
    }

    fn table(&self, jni: Jni) -> Result<Object> {
        jni.get_static_object(self.class, self.table)
            .ok_or(jvmti::Error::Jni("table"))
    }

    /// The content of unused slots.
    pub(crate) fn no_thread(&self, jni: Jni) -> Option<Object> {
        jni.get_static_object(self.class, self.no_thread)
    }

    /// Replaces the table of threads with a larger one.
    fn enlarge_table(&self, jni: Jni, spares: &Spares) -> std::result::Result<(), Stop> {
        let old = self.table(jni)?;
        let counting = jni.get_static_object(self.class, self.counting);
        let new = self.larger(jni, old, spares)?;
        if counting.is_some_and(|counting| jni.is_same(counting, old)) {
            jni.set_static_object(self.class, self.counting, new);
        }
        jni.set_static_object(self.class, self.table, new);
        Ok(())
    }

    /// A copy of a table with at least twice as many slots (a power of two).
    pub(crate) fn larger(
        &self,
        jni: Jni,
        old: Object,
        spares: &Spares,
    ) -> std::result::Result<Object, Stop> {
        let mut owners = Vec::new();
        self.for_each_in(jni, old, |object| {
            let owner = jni.get_object(object, self.owner);
            owners.extend(owner.map(|owner| jni.get_long(owner, self.tid)));
        });
        let lens = std::iter::successors(Some(FIRST_TABLE), |len| Some(len * 2));
        let len = lens
            .take_while(|len| *len <= LAST_TABLE)
            .find(|len| *len > jni.array_len(old) && have_places(&owners, *len))
            .ok_or(jvmti::Error::Jni("thread table full"))?;
        let new = spares.one(Spare::Trackers(len))?;
        self.for_each_in(jni, old, |object| {
            if let Some(owner) = jni.get_object(object, self.owner) {
                self.place(jni, new, owner, object);
            }
        });
        Ok(new)
    }

    /// An array filled with the tracker that belongs to no thread.
    pub(crate) fn new_trackers(&self, jni: Jni, len: usize) -> Result<Object> {
        jni.new_objects(len, self.class, self.no_thread(jni))
    }

    /// Stores a tracker in a free slot of its thread; false if there is none.
    pub(crate) fn place(&self, jni: Jni, table: Object, thread: Object, object: Object) -> bool {
        let free = self.probe(jni, table, thread, |owner| owner.is_none());
        if let Some((at, found)) = free {
            jni.delete_local(found);
            jni.array_set(table, at, Some(object));
        }
        free.is_some()
    }

    /// The tracker of a thread in a table, and its slot.
    pub(crate) fn find(&self, jni: Jni, table: Object, thread: Object) -> Option<(usize, Object)> {
        let is_it = |owner: Option<Object>| owner.is_some_and(|owner| jni.is_same(owner, thread));
        self.probe(jni, table, thread, is_it)
    }

    /// The first of a thread's slots whose owner `wanted` accepts.
    fn probe(
        &self,
        jni: Jni,
        table: Object,
        thread: Object,
        wanted: impl Fn(Option<Object>) -> bool,
    ) -> Option<(usize, Object)> {
        let id = jni.get_long(thread, self.tid);
        let len = jni.array_len(table);
        for at in places_of(id, len) {
            let found = jni.element(table, at)?;
            let owner = jni.get_object(found, self.owner);
            let is_wanted = wanted(owner);
            owner.into_iter().for_each(|owner| jni.delete_local(owner));
            if is_wanted {
                return Some((at, found));
            }
            jni.delete_local(found);
        }
        None
    }

    /// Makes a tracker with tables; its number is not set. Must not be called while the state is locked.
    pub(crate) fn with_tables(&self, jni: Jni, want: Want) -> Result<Object> {
        let object = jni.alloc_object(self.class)?;
        if want.sites {
            let words = vec![0; want.first_sites() * SITE_WORDS];
            self.set_sites(jni, object, jni.new_longs(words.len())?, &words);
        }
        if want.sites && want.pending > 0 {
            let any = jni.find_class("java/lang/Object")?;
            let pending = jni.new_objects(want.pending, any, None)?;
            jni.set_object(object, self.pending, Some(pending));
            let words = jni.new_longs(want.pending * PENDING_WORDS)?;
            jni.set_object(object, self.pending_words, Some(words));
        }
        if want.calls {
            let words = vec![0; want.first_edges() * EDGE_WORDS];
            self.set_edges(jni, object, jni.new_longs(words.len())?, &words);
            let costs = jni.new_longs(want.first_nodes() * COST_WORDS)?;
            jni.set_object(object, self.costs, Some(costs));
        }
        Ok(object)
    }

    /// Makes the tracker of a thread; returns a local reference. `now`: time of the clock in use, 0 if unknown. Must
    /// not be called while the state is locked.
    pub(crate) fn of_thread(
        &self,
        jni: Jni,
        thread: Object,
        id: i32,
        (want, now): (Want, i64),
    ) -> Result<Object> {
        let object = self.with_tables(jni, want)?;
        self.set_id(jni, object, id);
        if want.calls {
            jni.set_object(object, self.stack, Some(jni.new_longs(want.first_stack())?));
            let now = if now == 0 { 0 } else { tick(now, 0) };
            jni.set_long(object, self.seen, now);
            jni.set_long(object, self.cpu, now);
        }
        jni.set_object(object, self.owner, Some(thread));
        Ok(object)
    }

    /// Adds the tracker of a thread to the table.
    pub(crate) fn enroll(
        &self,
        jni: Jni,
        thread: Object,
        object: Object,
        spares: &Spares,
    ) -> std::result::Result<(), Stop> {
        while !self.place(jni, self.table(jni)?, thread, object) {
            self.enlarge_table(jni, spares)?;
        }
        Ok(())
    }

    /// All objects that exist because of the tracker, as local references.
    pub(crate) fn own_objects(&self, jni: Jni) -> Vec<Object> {
        let arrays = ["arrayBase", "arrayShift"].into_iter();
        let arrays = arrays.filter_map(|name| jni.static_field(self.class, name, "[I").ok());
        let mut own: Vec<Object> = arrays
            .chain([self.clock])
            .filter_map(|field| jni.get_static_object(self.class, field))
            .collect();
        let Ok(table) = self.table(jni) else {
            return own;
        };
        let mut objects = self.all_in(jni, table);
        let (guests, tables) = self.own_guests(jni);
        objects.extend(guests);
        own.extend(tables);
        objects.extend(self.no_thread(jni));
        for object in objects {
            let parts = [
                self.sites,
                self.stack,
                self.starts,
                self.edges,
                self.costs,
                self.pending,
                self.pending_words,
            ];
            own.extend(
                parts
                    .iter()
                    .filter_map(|part| jni.get_object(object, *part)),
            );
            own.push(object);
        }
        own.extend(jni.get_static_object(self.class, self.counting));
        own.push(table);
        own
    }

    /// Calls `body` with the tracker of each thread that is not virtual.
    pub(crate) fn for_each(&self, jni: Jni, body: impl FnMut(Object)) {
        if let Ok(table) = self.table(jni) {
            self.for_each_in(jni, table, body);
            jni.delete_local(table);
        }
    }

    /// Calls `body` with each tracker in a table that has an owner.
    pub(crate) fn for_each_in(&self, jni: Jni, table: Object, mut body: impl FnMut(Object)) {
        let Some(no_thread) = self.no_thread(jni) else {
            return;
        };
        for index in 0..jni.array_len(table) {
            let Some(object) = jni.element(table, index) else {
                continue;
            };
            if !jni.is_same(object, no_thread) {
                jni.local_frame(8, || body(object));
            }
            jni.delete_local(object);
        }
        jni.delete_local(no_thread);
    }

    /// The trackers in a table that have an owner, as local references.
    pub(crate) fn all_in(&self, jni: Jni, table: Object) -> Vec<Object> {
        let no_thread = self.no_thread(jni);
        let of_somebody = |object: &Object| {
            let is_no_thread = no_thread.is_some_and(|no_thread| jni.is_same(no_thread, *object));
            if is_no_thread {
                jni.delete_local(*object);
            }
            !is_no_thread
        };
        let all = (0..jni.array_len(table)).filter_map(|index| jni.element(table, index));
        let all = all.filter(of_somebody).collect();
        no_thread
            .into_iter()
            .for_each(|no_thread| jni.delete_local(no_thread));
        all
    }

    /// Removes the tracker of a thread that has ended and is not virtual.
    pub(crate) fn retire(&self, jni: Jni, thread: Object) -> Option<Object> {
        let table = self.table(jni).ok()?;
        let (at, object) = self.find(jni, table, thread)?;
        jni.array_set(table, at, self.no_thread(jni));
        jni.set_object(object, self.owner, None);
        self.forget_recent(jni);
        Some(object)
    }

    pub(crate) fn set_id(&self, jni: Jni, object: Object, id: i32) {
        jni.set_int(object, self.id, id);
    }

    /// The number of a tracker's counters.
    pub(crate) fn id(&self, jni: Jni, object: Object) -> i32 {
        jni.get_int(object, self.id)
    }

    fn longs(&self, jni: Jni, object: Object, field: FieldPtr) -> Vec<i64> {
        let Some(array) = jni.get_object(object, field) else {
            return Vec::new();
        };
        let mut words = vec![0; jni.array_len(array)];
        jni.longs(array, 0, &mut words);
        jni.delete_local(array);
        words
    }

    /// Fills a table, and stores it in a tracker and in the home of a virtual thread.
    fn set_table(&self, jni: Jni, object: Object, at: FieldPtr, (array, words): (Object, &[i64])) {
        jni.set_longs(array, 0, words);
        let home = self.home_of_guest(jni, object);
        for object in [object].into_iter().chain(home) {
            jni.set_object(object, at, Some(array));
            if at == self.sites {
                let shift = 64 - words.len().trailing_zeros();
                jni.set_int(object, self.sites_shift, shift.cast_signed());
            }
        }
        jni.delete_local(array);
    }

    /// All entries of the sites.
    pub(crate) fn sites(&self, jni: Jni, object: Object) -> Vec<i64> {
        self.longs(jni, object, self.sites)
    }

    /// Moves the entries of the sites into another array of their length; only for the owner.
    pub(crate) fn set_sites(&self, jni: Jni, object: Object, array: Object, words: &[i64]) {
        self.set_table(jni, object, self.sites, (array, words));
    }

    /// The pending objects of a thread, with the words of each (site, and bytes if it is an array), and how many of
    /// them were read before. If `is_owner`, the caller is that thread, and its list is then empty; otherwise another
    /// thread only reads the objects, and they count as read.
    pub(crate) fn gathered(
        &self,
        jni: Jni,
        object: Object,
        is_owner: bool,
    ) -> Option<(Object, Vec<i64>, usize)> {
        let objects = jni.get_object(object, self.pending)?;
        let count = jni.get_int(object, self.pending_count);
        let before = jni.get_int(object, self.peeked);
        let words = jni.get_object(object, self.pending_words)?;
        let mut copied = vec![0; usize::try_from(count).ok()? * PENDING_WORDS];
        if !jni.longs(words, 0, &mut copied) {
            return None;
        }
        jni.delete_local(words);
        jni.set_int(object, self.peeked, if is_owner { 0 } else { count });
        if is_owner {
            jni.set_int(object, self.pending_count, 0);
        }
        Some((objects, copied, usize::try_from(before).unwrap_or(0)))
    }

    /// Writes words of the site entries.
    pub(crate) fn set_site_words(&self, jni: Jni, object: Object, at: usize, words: &[i64]) {
        if let Some(array) = jni.get_object(object, self.sites) {
            jni.set_longs(array, at, words);
        }
    }

    /// Writes words of the edges.
    pub(crate) fn set_edge_words(&self, jni: Jni, object: Object, at: usize, words: &[i64]) {
        if let Some(array) = jni.get_object(object, self.edges) {
            jni.set_longs(array, at, words);
        }
    }

    /// A word of the edges; 0 if there are none.
    pub(crate) fn edge_word(&self, jni: Jni, object: Object, at: usize) -> i64 {
        let mut word = [0];
        if let Some(array) = jni.get_object(object, self.edges) {
            jni.longs(array, at, &mut word);
        }
        word[0]
    }

    /// All edges.
    pub(crate) fn edges(&self, jni: Jni, object: Object) -> Vec<i64> {
        self.longs(jni, object, self.edges)
    }

    /// Nodes of the calls that have not ended.
    pub(crate) fn open_calls(&self, jni: Jni, object: Object) -> Vec<usize> {
        let depth = usize::try_from(jni.get_int(object, self.depth)).unwrap_or(0);
        let words = self.longs(jni, object, self.stack);
        // The stack has the node before each call; the node of the last call is the present one.
        let left = words
            .iter()
            .take(depth)
            .step_by(STACK_WORDS)
            .skip(1)
            .copied();
        let last = (depth > 0).then(|| jni.get_long(object, self.node));
        left.chain(last).map(node_of).collect()
    }

    /// Moves the edges into another array of their length; only for the owner.
    pub(crate) fn set_edges(&self, jni: Jni, object: Object, array: Object, words: &[i64]) {
        self.set_table(jni, object, self.edges, (array, words));
    }

    /// All costs.
    pub(crate) fn costs(&self, jni: Jni, object: Object) -> Vec<i64> {
        self.longs(jni, object, self.costs)
    }

    /// Moves the costs into another array of their length; only for the owner.
    pub(crate) fn set_costs(&self, jni: Jni, object: Object, array: Object, words: &[i64]) {
        self.set_table(jni, object, self.costs, (array, words));
    }
}

/// Whether a table with this many slots has a slot for each of these threads.
fn have_places(ids: &[i64], len: usize) -> bool {
    let mut taken = vec![false; len];
    ids.iter().all(|id| {
        let mut places = places_of(*id, len);
        let free = places.find(|at| !taken[*at]);
        free.inspect(|at| taken[*at] = true).is_some()
    })
}

/// The slots of a table of this length that a thread's tracker may be in.
fn places_of(id: i64, len: usize) -> impl Iterator<Item = usize> {
    (0..PROBES).map(move |probe| (id as usize).wrapping_add(probe) & (len - 1))
}

/// The number of a node, without the other bits of its word.
pub(crate) fn node_of(word: i64) -> usize {
    (word & (EACH - 1)) as usize
}

/// The calls in the second word of an edge.
pub(crate) fn calls_of(word: i64) -> i64 {
    (word.cast_unsigned() >> 32).cast_signed()
}

/// Bits by which a context is shifted for each call. The last `depth` sites are then in it, and the first of these
/// still has all the bits that count sites, as long as there are that many bits (37 frames).
fn context_shift(depth: u32) -> i32 {
    let before = depth.saturating_sub(1);
    let shift = (64 - SITE_BITS).checked_div(before);
    shift.map_or(63, |shift| shift.max(1).cast_signed())
}

/// A time in the tracker's form: the low 8 bits count ticks.
fn tick(nanos: i64, ticks: i64) -> i64 {
    nanos & !0xff | ticks & 0xff
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_sites_in_a_context_keeps_its_number() {
        for depth in 2..=37 {
            let shift = context_shift(depth).unsigned_abs();
            assert!(64 - (depth - 1) * shift >= SITE_BITS, "{depth}");
            // And few bits of the sites beyond the depth remain.
            assert!(
                depth < 3 || (depth - 1) * (shift + 1) > 64 - SITE_BITS,
                "{depth}"
            );
        }
        assert_eq!([0, 1, 2, 4, 1000].map(context_shift), [63, 63, 36, 12, 1]);
    }
}
