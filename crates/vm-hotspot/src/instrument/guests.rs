//! Virtual threads: a small tracker for each live one, and tables for each carrier.
//!
//! A virtual thread counts in the tables of the carrier that it is mounted on, its home. Its own tracker has only its
//! calling context and its open calls, and is reused for another virtual thread when it ends. So a million ended
//! virtual threads take no memory, and all virtual threads on a carrier share the sites and calling contexts that one
//! of them has added.
//!
//! Nodes of calling contexts have the same numbers in all homes of a group of threads (a kind), because a thread keeps
//! its open calls when it moves to another carrier.

use std::sync::atomic::Ordering;

use jvmti::sys::FieldPtr;
use jvmti::{Env, Jni, Live, Object, Result};
use vmpi::{ThreadId, Worth};

use crate::cpu::calls::Contexts;
use crate::instrument::counters::Want;
use crate::instrument::tracker::{COST_WORDS, EDGE_WORDS, FIRST_NODES, Tracker, calls_of, node_of};
use crate::vm::harvest::Nodes;
use crate::vm::hotspot::HotSpot;
use crate::vm::spares::{Spare, Spares, Stop, with_spares};
use crate::vm::state::State;

pub(crate) const OBJECT: &str = "Ljava/lang/HprofTracker;";
pub(crate) const OBJECTS: &str = "[Ljava/lang/HprofTracker;";

/// The most virtual threads that are counted at a time; with stacks of calls of the usual length they take 65 MB of the
/// program's heap. Nothing is counted for further ones.
const MOST: usize = 1 << 16;
/// Bytes of the tracker of a virtual thread, whose owner has a cache line of its own, and of its slot in a table.
const GUEST: u64 = 464;
/// Words of a virtual thread's stack of open calls: at first, and the most that is reused for another thread.
const FIRST_STACK: usize = 64;
const LARGE_STACK: usize = 128;

/// Ids of the fields that only virtual threads need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GuestFields {
    guests: FieldPtr,
    free: FieldPtr,
    homes: FieldPtr,
    home: FieldPtr,
    host: FieldPtr,
    guest: FieldPtr,
    kind: FieldPtr,
}

impl GuestFields {
    pub(crate) fn find(jni: Jni, class: Object) -> Result<Self> {
        Ok(Self {
            guests: jni.static_field(class, "guests", OBJECTS)?,
            free: jni.static_field(class, "free", OBJECT)?,
            homes: jni.static_field(class, "homes", OBJECTS)?,
            home: jni.field(class, "home", OBJECT)?,
            host: jni.field(class, "host", OBJECT)?,
            guest: jni.field(class, "guest", OBJECT)?,
            kind: jni.field(class, "kind", "I")?,
        })
    }
}

/// How many virtual threads have a tracker.
#[derive(Debug, Default)]
pub(crate) struct Lodging {
    living: usize,
    /// The most at any time, which is the number of trackers that were made.
    made: usize,
}

/// A group of virtual threads whose counts are kept together.
pub(crate) struct Kind {
    /// The thread they are reported as, if that is requested.
    pub(crate) thread: ThreadId,
    pub(crate) contexts: Contexts,
    /// Homes that no carrier has, by their index among all homes.
    free: Vec<usize>,
}

impl Tracker {
    /// The home of a virtual thread that has been mounted.
    pub(crate) fn home_of_guest(&self, jni: Jni, object: Object) -> Option<Object> {
        let host = jni.get_object(object, self.guests.host)?;
        jni.delete_local(host);
        jni.get_object(object, self.guests.home)
    }

    fn array(&self, jni: Jni, field: FieldPtr) -> Result<Object> {
        jni.get_static_object(self.class, field)
            .ok_or(jvmti::Error::Jni("a table of threads"))
    }

    /// The trackers of all live virtual threads that have counted something.
    pub(crate) fn for_each_guest(&self, jni: Jni, body: impl FnMut(Object)) {
        if let Ok(table) = self.array(jni, self.guests.guests) {
            self.for_each_in(jni, table, body);
            jni.delete_local(table);
        }
    }

    /// All homes: the trackers that hold tables for virtual threads.
    pub(crate) fn for_each_home(&self, jni: Jni, mut body: impl FnMut(Object)) {
        let Ok(homes) = self.array(jni, self.guests.homes) else {
            return;
        };
        for index in 0..jni.array_len(homes) {
            if let Some(home) = jni.element(homes, index) {
                jni.local_frame(8, || body(home));
                jni.delete_local(home);
            }
        }
        jni.delete_local(homes);
    }

    /// The numbers of the counters of all homes.
    pub(crate) fn homes(&self, jni: Jni) -> Vec<i32> {
        let mut homes = Vec::new();
        self.for_each_home(jni, |home| homes.push(self.id(jni, home)));
        homes
    }

    /// For each kind, what its homes have counted at the nodes of its calling contexts.
    pub(crate) fn nodes_of_guests(&self, jni: Jni) -> Vec<Nodes> {
        let mut kinds: Vec<Nodes> = Vec::new();
        let mut add = |object, node: usize, new: [i64; 3]| {
            let kind = jni.get_int(object, self.guests.kind);
            let kind = usize::try_from(kind).unwrap_or(0);
            if kinds.len() <= kind {
                kinds.resize(kind + 1, Nodes::new());
            }
            let nodes = &mut kinds[kind];
            if nodes.len() <= node {
                nodes.resize(node + 1, [0; 3]);
            }
            let sum = nodes[node];
            nodes[node] = std::array::from_fn(|i| sum[i] + new[i]);
        };
        // The open calls are read before the counts of calls, as with other threads.
        self.for_each_guest(jni, |guest| {
            for node in self.open_calls(jni, guest) {
                add(guest, node, [-1, 0, 0]);
            }
        });
        self.for_each_home(jni, |home| {
            for edge in self.edges(jni, home).chunks_exact(EDGE_WORDS) {
                add(home, node_of(edge[1]), [calls_of(edge[1]), 0, 0]);
            }
            let costs = self.costs(jni, home);
            for (node, cost) in costs.chunks_exact(COST_WORDS).enumerate() {
                add(home, node, [0, cost[0], cost[1]]);
            }
        });
        kinds
    }

    /// All objects that exist because of virtual threads, as local references: trackers, and tables of them.
    pub(crate) fn own_guests(&self, jni: Jni) -> (Vec<Object>, Vec<Object>) {
        let (mut own, mut tables) = (Vec::new(), Vec::new());
        if let Ok(table) = self.array(jni, self.guests.guests) {
            own = self.all_in(jni, table);
            tables.push(table);
        }
        if let Ok(homes) = self.array(jni, self.guests.homes) {
            own.extend((0..jni.array_len(homes)).filter_map(|index| jni.element(homes, index)));
            tables.push(homes);
        }
        let mut free = jni.get_static_object(self.class, self.guests.free);
        while let Some(object) = free {
            own.push(object);
            free = jni.get_object(object, self.guests.host);
        }
        (own, tables)
    }

    /// Releases the trackers of virtual threads, which get new ones when they are counted again.
    pub(crate) fn forget_guests(&self, jni: Jni) -> Result<()> {
        self.for_each_guest(jni, |guest| jni.set_object(guest, self.owner, None));
        let guests = jni.new_objects(1, self.class, self.no_thread(jni))?;
        let homes = jni.new_objects(0, self.class, None)?;
        jni.set_static_object(self.class, self.guests.guests, guests);
        jni.set_static_object(self.class, self.guests.homes, homes);
        jni.set_static_object(self.class, self.guests.free, None::<Object>);
        Ok(())
    }

    /// Makes all virtual threads look up their tables again, because these were replaced.
    pub(crate) fn turn_out(&self, jni: Jni) {
        self.for_each(jni, |host| jni.set_object(host, self.guests.guest, None));
    }

    /// Gives a virtual thread a tracker: a new one, or that of a thread that has ended.
    fn lodge(&self, jni: Jni, thread: Object, kind: i32, has_calls: bool) -> Result<Object> {
        let fields = &self.guests;
        let object = match jni.get_static_object(self.class, fields.free) {
            Some(object) => {
                let next = jni.get_object(object, fields.host);
                jni.set_static_object(self.class, fields.free, next);
                object
            }
            None => jni.alloc_object(self.class)?,
        };
        jni.set_object(object, fields.host, None);
        jni.set_int(object, fields.kind, kind);
        if has_calls && jni.get_object(object, self.stack).is_none() {
            jni.set_object(object, self.stack, Some(jni.new_longs(FIRST_STACK)?));
        }
        jni.set_object(object, self.owner, Some(thread));
        Ok(object)
    }

    /// Adds the tracker of a virtual thread to the table.
    fn enter(&self, jni: Jni, thread: Object, object: Object) -> Result<()> {
        let mut table = self.array(jni, self.guests.guests)?;
        while !self.place(jni, table, thread, object) {
            table = with_spares((jni, self), |spares| self.larger(jni, table, spares))?;
            jni.set_static_object(self.class, self.guests.guests, table);
        }
        Ok(())
    }

    /// Makes the tracker of a virtual thread free for reuse: the thread has ended, or found no slot in the table.
    fn leave(&self, jni: Jni, object: Object) {
        let fields = &self.guests;
        jni.set_object(object, self.owner, None);
        jni.set_int(object, self.depth, 0);
        for large in [self.stack, self.starts] {
            let array = jni.get_object(object, large);
            if array.is_some_and(|array| jni.array_len(array) > LARGE_STACK) {
                jni.set_object(object, large, None);
            }
        }
        let next = jni.get_static_object(self.class, fields.free);
        jni.set_object(object, fields.host, next);
        jni.set_object(object, fields.home, None);
        jni.set_static_object(self.class, fields.free, object);
    }

    /// The home of this kind that a carrier has.
    fn home_of(&self, jni: Jni, host: Object, kind: i32) -> Option<Object> {
        let mut home = jni.get_object(host, self.guests.home);
        while let Some(found) = home {
            if jni.get_int(found, self.guests.kind) == kind {
                return home;
            }
            home = jni.get_object(found, self.guests.home);
        }
        None
    }

    /// Adds a home to all homes, in a larger array; returns its index there.
    fn add_home(&self, jni: Jni, home: Object, homes: Object) -> Result<usize> {
        let before = self.array(jni, self.guests.homes)?;
        let len = jni.array_len(before);
        for index in 0..len {
            let known = jni.element(before, index);
            jni.array_set(homes, index, known);
            known.into_iter().for_each(|known| jni.delete_local(known));
        }
        jni.array_set(homes, len, Some(home));
        jni.set_static_object(self.class, self.guests.homes, homes);
        Ok(len)
    }
}

impl State {
    /// A home of a kind for a carrier, with at least this many words of costs.
    fn house(
        &mut self,
        (jni, tracker): (Jni, &Tracker),
        (host, kind): (Object, i32),
        costs: usize,
        (want, spares): (Want, &Spares),
    ) -> std::result::Result<Object, Stop> {
        let fields = &tracker.guests;
        let home = match tracker.home_of(jni, host, kind) {
            Some(home) => home,
            None => {
                let place = match self.kind(kind).free.pop() {
                    Some(place) => place,
                    None => {
                        let len = jni.array_len(tracker.array(jni, fields.homes)?) + 1;
                        let made = spares.take(&[Spare::Tables(want), Spare::Trackers(len)])?;
                        let [Some(home), Some(homes)] = made[..] else {
                            return Err(jvmti::Error::Jni("memory for a home").into());
                        };
                        let id = self.add_counters(ThreadId::NONE, Some(kind), want);
                        let id = id.ok_or(jvmti::Error::Jni("memory for a home"))?;
                        tracker.set_id(jni, home, id);
                        jni.set_int(home, fields.kind, kind);
                        tracker.add_home(jni, home, homes)?
                    }
                };
                let homes = tracker.array(jni, fields.homes)?;
                let home = jni
                    .element(homes, place)
                    .ok_or(jvmti::Error::Jni("a home"))?;
                let others = jni.get_object(host, fields.home);
                jni.set_object(home, fields.home, others);
                jni.set_object(host, fields.home, Some(home));
                home
            }
        };
        if want.calls {
            let mut words = tracker.costs(jni, home);
            if words.len() < costs {
                let array = spares.one(Spare::Longs(costs))?;
                let more = 8 * (costs - words.len()) as u64;
                self.registry.memory.heap.charge(more);
                words.resize(costs, 0);
                tracker.set_costs(jni, home, array, &words);
                self.set_room(tracker.id(jni, home), words.len() / COST_WORDS);
            }
        }
        Ok(home)
    }

    /// The virtual threads of a kind.
    pub(crate) fn kind(&mut self, kind: i32) -> &mut Kind {
        let at = usize::try_from(kind).unwrap_or(0);
        while self.kinds.len() <= at {
            let made = Kind {
                thread: self.registry.maker_of(self.kinds.len()),
                contexts: Contexts::new(self.call_depth()),
                free: Vec::new(),
            };
            self.kinds.push(made);
        }
        &mut self.kinds[at]
    }

    /// A carrier has ended: makes its homes free for others.
    pub(crate) fn clear_homes(&mut self, jni: Jni, tracker: &Tracker, host: Object) {
        let fields = &tracker.guests;
        let Ok(homes) = tracker.array(jni, fields.homes) else {
            return;
        };
        while let Some(home) = jni.get_object(host, fields.home) {
            let next = jni.get_object(home, fields.home);
            jni.set_object(host, fields.home, next);
            jni.set_object(home, fields.home, None);
            let kind = jni.get_int(home, fields.kind);
            let mut places = 0..jni.array_len(homes);
            let place = places.find(|place| {
                let found = jni.element(homes, *place);
                found.is_some_and(|found| {
                    let is_it = jni.is_same(found, home);
                    jni.delete_local(found);
                    is_it
                })
            });
            self.kind(kind).free.extend(place);
        }
        jni.set_object(host, fields.guest, None);
    }

    /// Removes the calls that homes know, as for threads. `tables`: new arrays of the same length.
    pub(crate) fn forget_guest_calls(
        &mut self,
        (jni, tracker): (Jni, &Tracker),
        tables: &mut dyn Iterator<Item = Object>,
    ) {
        let depth = self.call_depth();
        tracker.for_each_home(jni, |home| {
            let Some(table) = tables.next() else { return };
            let kind = jni.get_int(home, tracker.guests.kind);
            let known = tracker.edges(jni, home);
            tracker.set_edges(jni, home, table, &vec![0; known.len()]);
            self.forget_edges(tracker.id(jni, home));
            let contexts = &mut self.kind(kind).contexts;
            contexts.forget_calls(&known);
            contexts.set_depth(depth);
        });
        tracker.turn_out(jni);
    }
}

impl HotSpot {
    /// Makes the tracker of the current thread, which is virtual and has none.
    pub(crate) fn lodge(&self, jni: Jni, thread: Object) -> Option<Object> {
        // The bytes of the program's heap that a new tracker takes.
        let cost = match self.config.calls {
            true => GUEST + 8 * FIRST_STACK as u64,
            false => GUEST,
        };
        let (env, tracker) = (self.live()?, self.tracker()?);
        let kind = match self.config.distinguishes_threads() {
            true => self.lock().registry.kind_of(env, thread),
            false => 0,
        };
        let mut lodging = self.lodging.lock();
        if self.dead.load(Ordering::Relaxed) {
            return None;
        }
        let is_new = lodging.living == lodging.made;
        let heap = &self.memory.heap;
        if lodging.living >= MOST || is_new && !heap.take(Worth::Names, cost) {
            drop(lodging);
            *self
                .lock()
                .lost
                .entry("virtual threads not counted (more than 65536 at a time, or memory limit)")
                .or_default() += 1;
            return None;
        }
        let made = tracker.lodge(jni, thread, kind, self.config.calls);
        let entered = made.and_then(|object| {
            let entered = tracker.enter(jni, thread, object);
            entered.inspect_err(|_| tracker.leave(jni, object))?;
            Ok(object)
        });
        let Ok(object) = entered else {
            if is_new {
                heap.discharge(cost);
            }
            return None;
        };
        lodging.living += 1;
        lodging.made = lodging.made.max(lodging.living);
        Some(object)
    }

    /// Gives the carrier a home with tables that are large enough for a virtual thread.
    pub(crate) fn house(&self, jni: Jni, host: Object, guest: Object) -> Option<Object> {
        let tracker = self.tracker()?;
        let kind = jni.get_int(guest, tracker.guests.kind);
        let costs = jni.get_object(guest, tracker.costs);
        let costs = costs.map_or(FIRST_NODES * COST_WORDS, |costs| jni.array_len(costs));
        let want = self.wanted_tables();
        let home = with_spares((jni, tracker), |spares| {
            let mut state = self.lock();
            if self.dead.load(Ordering::Relaxed) {
                return Err(jvmti::Error::Jni("a recording that has not ended").into());
            }
            state.house((jni, tracker), (host, kind), costs, (want, spares))
        });
        home.ok()
    }

    /// A virtual thread has ended: makes its tracker free for reuse.
    pub(crate) fn virtual_thread_ended(&self, env: Env<Live>, jni: Jni, thread: Object) {
        if let Some(tracker) = self.tracker() {
            jni.local_frame(8, || {
                let mut lodging = self.lodging.lock();
                let table = tracker.array(jni, tracker.guests.guests).ok()?;
                let (at, object) = tracker.find(jni, table, thread)?;
                jni.array_set(table, at, tracker.no_thread(jni));
                tracker.leave(jni, object);
                lodging.living = lodging.living.saturating_sub(1);
                Some(())
            });
        }
        // The thread has a number only if something has referred to it.
        if env.thread_number(None).is_ok_and(|number| number != 0) {
            self.thread_ended(env, thread);
        }
    }
}
