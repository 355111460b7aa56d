//! What threads have counted, taken over when a report is due or a thread ends.

use jvmti::{Jni, Object};
use vmpi::{Frame, Location, ThreadId, Trace};

use crate::cpu::calls::Contexts;
use crate::instrument::rewrite::Numbers;
use crate::instrument::tracker::{COST_WORDS, SITE_WORDS, Tracker};
use crate::vm::state::State;

/// How counters become rows.
pub(crate) struct How<'a> {
    pub(crate) numbers: &'a Numbers,
    pub(crate) per_thread: bool,
}

impl State {
    /// Takes over what a tracker object has counted since it was last read.
    pub(crate) fn harvest(
        &mut self,
        (jni, tracker): (Jni, &Tracker),
        object: Object,
        how: &How<'_>,
    ) {
        self.harvest_sites(jni, tracker, object);
        let Some(counters) = self.counters.get_mut(&tracker.id(jni, object)) else {
            return;
        };
        // Read before the calls are, so that what begins meanwhile is not taken from them.
        let open = tracker.open_calls(jni, object);
        let calls = counters.contexts.ended(&tracker.edges(jni, object), &open);
        let costs = tracker.costs(jni, object);
        let nodes = calls.iter().zip(costs.chunks_exact(COST_WORDS));
        let now: Vec<[i64; 3]> = nodes.map(|(n, cost)| [*n, cost[0], cost[1]]).collect();
        let thread = counters.thread;
        let mut contexts = std::mem::take(&mut counters.contexts);
        self.take_calls(&mut contexts, thread, &now, how);
        if let Some(counters) = self.counters.get_mut(&tracker.id(jni, object)) {
            counters.contexts = contexts;
        }
    }

    /// Takes over the sites in the tables of a thread or home.
    pub(crate) fn harvest_sites(&mut self, jni: Jni, tracker: &Tracker, object: Object) {
        let Some(counters) = self.counters.get_mut(&tracker.id(jni, object)) else {
            return;
        };
        for entry in tracker.sites(jni, object).chunks_exact(SITE_WORDS) {
            let [key, objects, bytes] = [entry[0], entry[1], entry[2]];
            let Some(seen) = counters.seen.get_mut(&key).filter(|_| key != 0) else {
                continue;
            };
            self.sites.take_over(seen, objects, bytes);
        }
    }

    /// Takes over calls, own time and time with callees of each node, as they are now.
    pub(crate) fn take_calls(
        &mut self,
        contexts: &mut Contexts,
        thread: ThreadId,
        now: &[[i64; 3]],
        how: &How<'_>,
    ) {
        let thread = match how.per_thread {
            true => thread,
            false => ThreadId::NONE,
        };
        let nodes = now.iter().take(contexts.len()).enumerate();
        for (node, now) in nodes.skip(1) {
            let seen = contexts.seen[node];
            let new: [i64; 3] = std::array::from_fn(|i| now[i] - seen[i]);
            if new == [0; 3] {
                continue;
            }
            contexts.seen[node] = *now;
            let registry = &mut self.registry;
            let mut reserved = 0;
            if seen == [0; 3] {
                reserved =
                    crate::vm::costs::stack(contexts.methods(node).len()).min(contexts.reserved);
                contexts.reserved -= reserved;
            }
            let frames = contexts.methods(node).iter().map(|number| Frame {
                method: registry.numbered(*number, how.numbers),
                location: Location::Unknown,
            });
            let frames = frames.collect();
            let trace = registry.reserved_trace(Trace { thread, frames }, reserved);
            let sum = self.costs.entry(trace).or_default();
            *sum = std::array::from_fn(|i| sum[i] + new[i]);
        }
    }
}
