//! Collects the counts of threads, for a report or when a thread ends.
//!
//! The arrays of a thread are copied while nothing is locked, because the thread may need the state meanwhile. The
//! copies are then added to the state some entries at a time. If the thread has emptied its tables in between, the
//! copies are invalid and made again.

use jvmti::{Env, Jni, Live, Object};
use vmpi::{Frame, Location, ThreadId, Trace};

use crate::cpu::calls::{Contexts, ended};
use crate::instrument::natives::with_agent_guard;
use crate::instrument::tracker::{COST_WORDS, SITE_WORDS, Tracker};
use crate::vm::hotspot::HotSpot;
use crate::vm::state::State;

/// Entries that are added under one lock of the state.
const SOME: usize = 1 << 12;
/// How many copies may be invalid before the tables of a thread are read with the state locked.
const TRIES: usize = 3;

/// Whose calling contexts the node numbers refer to.
#[derive(Clone, Copy)]
pub(crate) enum Whose {
    /// A thread's, by the number of its counters.
    Thread(i32),
    /// Those of all virtual threads of a kind.
    Kind(usize),
}

/// Calls, own time and time with callees of each node, as they are now.
pub(crate) type Nodes = Vec<[i64; 3]>;

/// A copy of the tables of a thread or home.
struct Copied {
    sites: Vec<i64>,
    nodes: Nodes,
}

impl Copied {
    fn sites_of(jni: Jni, tracker: &Tracker, object: Object) -> Self {
        Self {
            sites: tracker.sites(jni, object),
            nodes: Nodes::new(),
        }
    }

    fn all_of(jni: Jni, tracker: &Tracker, object: Object) -> Self {
        let sites = tracker.sites(jni, object);
        // The open calls are read before the counts, so that a call that begins in between is not subtracted.
        let open = tracker.open_calls(jni, object);
        let edges = tracker.edges(jni, object);
        let costs = tracker.costs(jni, object);
        let costs = costs.chunks_exact(COST_WORDS);
        let calls = ended(&edges, &open, costs.len());
        let nodes = calls.iter().zip(costs);
        let nodes = nodes.map(|(calls, cost)| [*calls, cost[0], cost[1]]);
        Self {
            sites,
            nodes: nodes.collect(),
        }
    }

    /// Pieces of sites and of nodes, with the number of the first node.
    fn pieces(&self) -> impl Iterator<Item = (&[i64], usize, &[[i64; 3]])> {
        let sites = self.sites.chunks(SOME * SITE_WORDS);
        let sites = sites.map(|sites| (sites, 0, &[][..]));
        let nodes = self.nodes.chunks(SOME).enumerate();
        sites.chain(nodes.map(|(piece, nodes)| (&[][..], piece * SOME, nodes)))
    }
}

impl HotSpot {
    /// Collects the counts of all threads, and then their pending objects: each counted object is then tracked or has
    /// been freed.
    pub(crate) fn harvest(&self, env: Env<Live>, jni: Jni) {
        self.take_samples(env, jni);
        if let Some(tracker) = self.tracker() {
            tracker.for_each(jni, |object| {
                self.harvest_one((jni, tracker), object, Copied::all_of);
            });
            tracker.for_each_home(jni, |home| {
                self.harvest_one((jni, tracker), home, Copied::sites_of);
            });
            self.harvest_guests(jni, tracker);
        }
        let mut reported = self.reported.lock();
        reported.settle(|number| self.lock().sites.after(number));
        drop(reported);
        self.track_all_gathered(jni);
        let chosen = self.tracked.take_chosen();
        self.reported.lock().take_chosen(&chosen);
        self.lock().sites.take_chosen(&chosen);
    }

    /// Adds what the tables of a tracker have counted since the last reading.
    fn harvest_one(
        &self,
        (jni, tracker): (Jni, &Tracker),
        object: Object,
        copy: fn(Jni, &Tracker, Object) -> Copied,
    ) {
        let id = tracker.id(jni, object);
        for _ in 0..TRIES {
            let Some(emptied) = self.lock().emptied(id) else {
                return;
            };
            let copied = copy(jni, tracker, object);
            let is_good = |state: &State| state.emptied(id) == Some(emptied);
            let mut pieces = copied.pieces();
            let is_done = pieces.all(|(sites, first, nodes)| {
                let mut state = self.lock();
                let is_good = is_good(&state);
                if is_good {
                    state.take_sites(id, sites);
                    self.take_nodes(&mut state, Whose::Thread(id), first, nodes);
                }
                is_good
            });
            if is_done {
                return;
            }
        }
        let mut state = self.lock();
        let copied = copy(jni, tracker, object);
        for (sites, first, nodes) in copied.pieces() {
            state.take_sites(id, sites);
            self.take_nodes(&mut state, Whose::Thread(id), first, nodes);
        }
    }

    /// Adds the calls of virtual threads since the last reading. If carriers empty their tables again and again
    /// meanwhile, the calls wait for the next report.
    fn harvest_guests(&self, jni: Jni, tracker: &Tracker) {
        let homes = tracker.homes(jni);
        let emptied = |state: &State| -> Vec<_> {
            let homes = homes.iter();
            homes.map(|home| state.emptied(*home)).collect()
        };
        for _ in 0..TRIES {
            let before = emptied(&self.lock());
            let kinds = tracker.nodes_of_guests(jni);
            let mut pieces = kinds.iter().enumerate().flat_map(|(kind, nodes)| {
                let pieces = nodes.chunks(SOME).enumerate();
                pieces.map(move |(piece, nodes)| (Whose::Kind(kind), piece * SOME, nodes))
            });
            let is_done = pieces.all(|(kind, first, nodes)| {
                let mut state = self.lock();
                let is_good = emptied(&state) == before;
                if is_good {
                    self.take_nodes(&mut state, kind, first, nodes);
                }
                is_good
            });
            if is_done {
                return;
            }
        }
    }

    fn take_nodes(&self, state: &mut State, whose: Whose, first: usize, now: &[[i64; 3]]) {
        if now.is_empty() {
            return;
        }
        // The contexts are put back at the end, because numbering stacks needs the rest of the state.
        let Some((mut contexts, thread)) = state.lend_contexts(whose) else {
            return;
        };
        let thread = match self.config.per_thread {
            true => thread,
            false => ThreadId::NONE,
        };
        self.take_calls(state, &mut contexts, thread, (first, now));
        state.put_contexts(whose, contexts);
    }

    /// Adds the present calls, own time and time with callees of some nodes, from `first` on.
    fn take_calls(
        &self,
        state: &mut State,
        contexts: &mut Contexts,
        thread: ThreadId,
        (first, now): (usize, &[[i64; 3]]),
    ) {
        let nodes = (first..contexts.len()).zip(now);
        for (node, now) in nodes.filter(|(node, _)| *node > 0) {
            let seen = contexts.seen[node];
            let new: [i64; 3] = std::array::from_fn(|i| now[i] - seen[i]);
            if new == [0; 3] {
                continue;
            }
            contexts.seen[node] = *now;
            let registry = &mut state.registry;
            let mut reserved = 0;
            if seen == [0; 3] {
                reserved =
                    crate::vm::costs::stack(contexts.methods(node).len()).min(contexts.reserved);
                contexts.reserved -= reserved;
            }
            let frames = contexts.methods(node).iter().map(|number| Frame {
                method: registry.numbered(*number, self.numbers),
                location: Location::Unknown,
            });
            let frames = frames.collect();
            let trace = registry.reserved_trace(Trace { thread, frames }, reserved);
            let sum = state.costs.entry(trace).or_default();
            *sum = std::array::from_fn(|i| sum[i] + new[i]);
        }
    }

    /// A thread ends: keeps its counts and frees its slot.
    pub(crate) fn retire(&self, env: Env<Live>, jni: Jni, thread: Object) {
        with_agent_guard(|| {
            if let Some(tracker) = self.tracker() {
                // The thread counts nothing more. It stays in the table until its counts are in the state, so that the
                // last report finds them in one of the two.
                if let Some(object) = tracker.of(jni, thread) {
                    self.track_gathered(jni, object, false);
                    self.harvest_one((jni, tracker), object, Copied::all_of);
                }
                let mut state = self.lock();
                if let Some(object) = tracker.retire(jni, thread) {
                    state.clear_homes(jni, tracker, object);
                    state.remove_counters(tracker.id(jni, object));
                }
            }
        });
        self.thread_ended(env, thread);
    }
}

impl Tracker {
    /// The tracker of a thread that is not virtual.
    fn of(&self, jni: Jni, thread: Object) -> Option<Object> {
        let table = jni.get_static_object(self.class, self.table)?;
        self.find(jni, table, thread).map(|(_, object)| object)
    }
}

impl State {
    /// How often the tables of a thread or home were emptied; `None` if it has ended.
    fn emptied(&self, id: i32) -> Option<u32> {
        self.counters.get(&id).map(|counters| counters.emptied)
    }

    /// Adds the present entries of the sites of a thread or home.
    fn take_sites(&mut self, id: i32, entries: &[i64]) {
        let Some(counters) = self.counters.get_mut(&id) else {
            return;
        };
        for entry in entries.chunks_exact(SITE_WORDS) {
            let [key, objects, bytes] = [entry[0], entry[1], entry[2]];
            let Some(seen) = counters.seen.get_mut(&key).filter(|_| key != 0) else {
                continue;
            };
            self.sites.take_over(seen, objects, bytes);
        }
    }

    /// The calling contexts of a thread or kind, and the thread that they belong to.
    fn lend_contexts(&mut self, whose: Whose) -> Option<(Contexts, ThreadId)> {
        let (contexts, thread) = match whose {
            Whose::Thread(id) => {
                let counters = self.counters.get_mut(&id)?;
                (&mut counters.contexts, counters.thread)
            }
            Whose::Kind(kind) => {
                let kind = self.kinds.get_mut(kind)?;
                (&mut kind.contexts, kind.thread)
            }
        };
        Some((std::mem::take(contexts), thread))
    }

    fn put_contexts(&mut self, whose: Whose, contexts: Contexts) {
        let place = match whose {
            Whose::Thread(id) => self
                .counters
                .get_mut(&id)
                .map(|counters| &mut counters.contexts),
            Whose::Kind(kind) => self.kinds.get_mut(kind).map(|kind| &mut kind.contexts),
        };
        if let Some(place) = place {
            *place = contexts;
        }
    }
}
