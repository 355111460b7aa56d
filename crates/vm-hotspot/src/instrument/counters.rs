//! The counts of one thread, and the memory of its tables, which is charged to the budget.

use jvmti::{Jni, Object};
use rustc_hash::FxHashMap;
use vmpi::{Memory, ThreadId, Worth};

use crate::alloc::sites::{Seen, Sites};
use crate::cpu::calls::Contexts;
use crate::instrument::guests::Kind;
use crate::instrument::tracker::{
    CALL, COST_WORDS, EDGE_WORDS, FIRST_EDGES, FIRST_NODES, FIRST_SITES, FIRST_STACK,
    PENDING_WORDS, SITE_WORDS, Tracker, calls_of, node_of,
};
use crate::vm::costs;
use crate::vm::spares::{Spare, Spares, Stop};
use crate::vm::state::{At, State};

/// Which arrays a thread needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) sites: bool,
    pub(crate) calls: bool,
    /// How many objects wait to be tracked together; 0 if each is tracked immediately.
    pub(crate) pending: usize,
    /// The tables begin with an eighth of the usual size, because memory is short.
    pub(crate) is_small: bool,
}

impl Want {
    fn sized(self, usual: usize) -> usize {
        if self.is_small { usual / 8 } else { usual }
    }

    pub(crate) fn first_sites(self) -> usize {
        self.sized(FIRST_SITES)
    }

    pub(crate) fn first_edges(self) -> usize {
        self.sized(FIRST_EDGES)
    }

    pub(crate) fn first_nodes(self) -> usize {
        self.sized(FIRST_NODES)
    }

    pub(crate) fn first_stack(self) -> usize {
        self.sized(FIRST_STACK)
    }

    /// Bytes of the program's heap that such tables take.
    pub(crate) fn heap_bytes(self) -> u64 {
        let gathered = self.pending * (PENDING_WORDS + 1);
        let of_sites = self.first_sites() * SITE_WORDS + gathered;
        let of_nodes = self.first_nodes() * COST_WORDS + self.first_stack();
        let of_calls = self.first_edges() * EDGE_WORDS + of_nodes;
        let words = [(self.sites, of_sites), (self.calls, of_calls), (true, 64)];
        words
            .iter()
            .filter(|(is_wanted, _)| *is_wanted)
            .map(|(_, words)| 8 * *words as u64)
            .sum()
    }
}

/// The new size of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Larger {
    /// Length of its array.
    pub(crate) words: usize,
    /// Additional bytes: of native memory, and of the program's heap.
    pub(crate) more: [u64; 2],
}

/// The counts of one thread.
pub(crate) struct Counters {
    pub(crate) thread: ThreadId,
    /// Of a home: the group of virtual threads whose tables these are; a group shares contexts.
    pub(crate) kind: Option<i32>,
    pub(crate) seen: FxHashMap<i64, Seen>,
    /// Keys of the thread's sites, in the slots of its table.
    pub(crate) keys: Vec<i64>,
    pub(crate) contexts: Contexts,
    /// Keys of the thread's edges, in the slots of its table.
    pub(crate) edge_keys: Vec<i64>,
    pub(crate) n_edges: usize,
    /// How many nodes fit into its cost array.
    pub(crate) room: usize,
    /// How often something was removed from its tables: copies that were made of them before are then invalid.
    pub(crate) emptied: u32,
    /// Bytes charged for its tables: of native memory, and of the program's heap.
    pub(crate) charged: [u64; 2],
}

impl State {
    /// Adds counters for such tables and returns their number; `None` if there is no memory.
    pub(crate) fn add_counters(
        &mut self,
        thread: ThreadId,
        kind: Option<i32>,
        want: Want,
    ) -> Option<i32> {
        let keys = if want.sites { want.first_sites() } else { 0 };
        let edge_keys = if want.calls { want.first_edges() } else { 0 };
        let native = costs::SITE_KEY * keys as u64 + costs::EDGE_KEY * edge_keys as u64 + 512;
        let charged = [native, want.heap_bytes()];
        let memory = &self.registry.memory;
        if !memory.native.take(Worth::Names, native) {
            return None;
        }
        if !memory.heap.take(Worth::Names, charged[1]) {
            memory.native.give(Worth::Names, native);
            return None;
        }
        self.next_counters += 1;
        let counters = Counters {
            thread,
            kind,
            seen: FxHashMap::default(),
            keys: vec![0; keys],
            contexts: Contexts::new(self.call_depth),
            edge_keys: vec![0; edge_keys],
            n_edges: 0,
            room: want.first_nodes(),
            emptied: 0,
            charged,
        };
        self.counters.insert(self.next_counters, counters);
        Some(self.next_counters)
    }

    /// Whether a thread that was refused may try again; attempts become rarer.
    pub(crate) fn may_enroll(&mut self, thread: ThreadId) -> bool {
        self.refused.get_mut(&thread).is_none_or(|times| {
            *times = times.saturating_add(1);
            times.is_power_of_two()
        })
    }

    /// Records that a thread gets no counters, because there is no memory.
    pub(crate) fn refuse(&mut self, thread: ThreadId) {
        let lost = &mut self.lost;
        self.refused.entry(thread).or_insert_with(|| {
            *lost.entry("threads not counted").or_default() += 1;
            1
        });
    }

    /// Sets how many nodes fit into the costs of a thread or home.
    pub(crate) fn set_room(&mut self, id: i32, nodes: usize) {
        if let Some(counters) = self.counters.get_mut(&id) {
            counters.room = nodes;
        }
    }

    /// Collects the calls of one edge of the current thread, so that its count does not overflow.
    pub(crate) fn carry_calls(&mut self, at: &At<'_>, slot: usize) {
        let (jni, tracker, object) = (at.jni, at.tracker, at.object);
        let Some(counters) = self.counters.get_mut(&tracker.id(jni, object)) else {
            return;
        };
        let word = tracker.edge_word(jni, object, slot + 1);
        tracker.set_edge_words(jni, object, slot + 1, &[word & (CALL - 1)]);
        counters.emptied += 1;
        let contexts = counters.contexts_among(&mut self.kinds);
        contexts.forget_calls_of(node_of(word), calls_of(word));
    }

    /// Records that the edges of a thread or home were emptied.
    pub(crate) fn forget_edges(&mut self, id: i32) {
        if let Some(counters) = self.counters.get_mut(&id) {
            counters.forget_edges();
        }
    }

    /// Removes the counters of an ended thread after they were collected.
    pub(crate) fn remove_counters(&mut self, id: i32) {
        if let Some(mut counters) = self.counters.remove(&id) {
            let all = counters.charged;
            counters.discharge(&self.registry.memory, all);
            self.registry
                .memory
                .native
                .discharge(counters.contexts.reserved);
        }
    }
}

impl Counters {
    /// Whether its tables may grow by these bytes, of native memory and of the program's heap; charges them.
    pub(crate) fn charge(&mut self, memory: &Memory, [native, heap]: [u64; 2]) -> bool {
        if !memory.native.take(Worth::Sites, native) {
            return false;
        }
        if !memory.heap.take(Worth::Sites, heap) {
            memory.native.give(Worth::Sites, native);
            return false;
        }
        self.charged[0] += native;
        self.charged[1] += heap;
        true
    }

    /// Arrays for larger tables, which are charged; `None` for one without memory.
    pub(crate) fn larger<const N: usize>(
        &mut self,
        memory: &Memory,
        spares: &Spares,
        wanted: [Option<Larger>; N],
    ) -> Result<[Option<Object>; N], Stop> {
        let charged = wanted.map(|table| table.filter(|table| self.charge(memory, table.more)));
        let arrays = charged.iter().flatten();
        let arrays: Vec<_> = arrays.map(|table| Spare::Longs(table.words)).collect();
        let mut taken = match spares.take(&arrays) {
            Ok(taken) => taken.into_iter(),
            Err(stop) => {
                let charged = charged.into_iter().flatten();
                charged.for_each(|table| self.discharge(memory, table.more));
                return Err(stop);
            }
        };
        Ok(charged.map(|table| {
            let table = table?;
            let array = taken.next().flatten();
            if array.is_none() {
                self.discharge(memory, table.more);
            }
            array
        }))
    }

    pub(crate) fn discharge(&mut self, memory: &Memory, [native, heap]: [u64; 2]) {
        memory.native.discharge(native);
        memory.heap.discharge(heap);
        self.charged[0] -= native;
        self.charged[1] -= heap;
    }

    /// Collects the counts in the table of sites and empties it; later allocations add their sites again. Only for the
    /// thread that owns the table.
    pub(crate) fn empty_sites(
        &mut self,
        (jni, tracker, object): (Jni, &Tracker, Object),
        sites: &mut Sites,
    ) {
        let table = tracker.sites(jni, object);
        for entry in table.chunks_exact(SITE_WORDS).filter(|entry| entry[0] != 0) {
            if let Some(seen) = self.seen.get_mut(&entry[0]) {
                sites.take_over(seen, entry[1], entry[2]);
            }
        }
        tracker.set_site_words(jni, object, 0, &vec![0; table.len()]);
        self.emptied += 1;
        self.seen.clear();
        self.keys.fill(0);
    }

    /// The contexts that its node numbers refer to: its own, or those of its group of virtual threads.
    pub(crate) fn contexts_among<'a>(&'a mut self, kinds: &'a mut [Kind]) -> &'a mut Contexts {
        let kind = self.kind.and_then(|kind| usize::try_from(kind).ok());
        match kind.and_then(|kind| kinds.get_mut(kind)) {
            Some(kind) => &mut kind.contexts,
            None => &mut self.contexts,
        }
    }

    /// Empties the table of edges and returns what it had. Only for the thread that owns the table.
    pub(crate) fn empty_edges(
        &mut self,
        (jni, tracker, object): (Jni, &Tracker, Object),
    ) -> Vec<i64> {
        let known = tracker.edges(jni, object);
        tracker.set_edge_words(jni, object, 0, &vec![0; known.len()]);
        self.forget_edges();
        known
    }

    /// Records that its table of edges was emptied.
    pub(crate) fn forget_edges(&mut self) {
        self.emptied += 1;
        self.edge_keys.fill(0);
        self.n_edges = 0;
    }
}
