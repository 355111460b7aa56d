//! The addresses of tracked objects and their stacks, for a process that reads a copy of this one.

use std::iter::once;
use std::mem::size_of;

use vmpi::TraceId;

use crate::alloc::tracked::{Entry, SITE_BITS};
use crate::heap::slots::Reading;
use crate::instrument::natives::with_agent_guard;
use crate::vm::config::Track;
use crate::vm::hotspot::HotSpot;

/// Lists of tracked objects in memory. Offsets and sizes are bytes.
#[derive(Debug)]
pub struct TrackedLists {
    /// Addresses and lengths.
    pub lists: [(u64, usize); 2],
    /// The size of an entry.
    pub entry_size: usize,
    /// Offset of the weak JNI reference to the object in an entry.
    pub reference_at: usize,
    /// Offset of the number of the allocation site in an entry.
    pub site_at: usize,
    /// The bits of that number.
    pub site_mask: u32,
}

impl HotSpot {
    /// The stacks of all allocation sites, by number of the site; `None` when no object is tracked.
    #[must_use]
    pub fn stacks_of_sites(&self) -> Option<Vec<TraceId>> {
        let is_tracking = self.config.counts_objects() && self.config.track != Track::None;
        if !is_tracking || self.has_ended() {
            return None;
        }
        let sites = self.keys_of_sites();
        let stacks = sites.into_iter().map(|(_, stack)| stack);
        Some(once(TraceId::EMPTY).chain(stacks).collect())
    }

    /// Runs `body` while the lists of tracked objects do not change. It gets no lists if the slots of references do not
    /// have addresses. The thread must be attached to the VM.
    pub fn while_tracked<T>(&self, body: impl FnOnce(Option<&TrackedLists>) -> T) -> T {
        let Some(jni) = self.java.jni() else {
            return body(None);
        };
        with_agent_guard(|| {
            self.tracked.living(jni, |entries| {
                let weak = entries.iter().map(|entry| entry.weak());
                if Reading::tried(jni, weak) != Some(Reading::Weak) {
                    return body(None);
                }
                // Objects that were allocated since the last collection.
                self.track_all_gathered(jni);
                let new = self.tracked.newcomers();
                let [reference_at, site_at] = Entry::OFFSETS;
                body(Some(&TrackedLists {
                    lists: [&entries[..], &new[..]].map(|list| (list.as_ptr() as u64, list.len())),
                    entry_size: size_of::<Entry>(),
                    reference_at,
                    site_at,
                    site_mask: (1 << SITE_BITS) - 1,
                }))
            })
        })
    }
}
