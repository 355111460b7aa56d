//! Adds tracked objects: one by one as they are made, or all that are pending at a thread.

use jvmti::{Jni, Object};

use crate::alloc::sites::SiteId;
use crate::alloc::tracked::{Entry, Tracked, Young, large};
use crate::instrument::tracker::PENDING_WORDS;
use crate::vm::config::Track;
use crate::vm::hotspot::HotSpot;

impl Tracked {
    /// If an object is tracked: its site, and the binary logarithm of the number of objects that it stands for.
    fn chosen(&self, list: &mut Young, how: i64, bytes: u64) -> Option<(SiteId, u32)> {
        let (site, share) = SiteId::of_word(how);
        let weight_log2 = (how as u32).trailing_ones();
        if share != 0 && !list.choose((site, self.share(share)), weight_log2, bytes) {
            return None;
        }
        Some((site, list.thin(site, weight_log2, bytes)?))
    }

    /// Tracks one object if `wanted`; `bytes` only if it is an array.
    pub(crate) fn add_if(&self, wanted: bool, jni: Jni, object: Object, site: SiteId, bytes: u64) {
        if !wanted {
            return;
        }
        let mut list = self.list(0);
        if let Some(weight) = list.thin(site, 0, bytes) {
            self.add(jni, &mut list, object, (site, weight, bytes));
        }
    }

    /// Tracks one object of a site, which stands for `1 << weight_log2` objects, if the limits allow it; `bytes` only
    /// if it is an array.
    pub(crate) fn add(
        &self,
        jni: Jni,
        list: &mut Young,
        object: Object,
        (site, weight_log2, bytes): (SiteId, u32, u64),
    ) {
        if !self.admit(1, large(bytes)) {
            return;
        }
        match jni.weak(object) {
            Some(weak) => {
                let entry = Entry::new(weak, site, weight_log2, bytes);
                list.entries.push(entry, self.clock.now());
            }
            None => self.dismiss((1, large(bytes))),
        }
    }

    /// Tracks one object that has a weak reference already, or deletes the reference. `bytes` only if it is an array.
    pub(crate) fn add_weak(&self, jni: Jni, weak: Object, (site, bytes): (SiteId, u64), time: u32) {
        let mut list = self.list(0);
        match list.thin(site, 0, bytes) {
            Some(weight) if self.admit(1, large(bytes)) => {
                let entry = Entry::new(weak, site, weight, bytes);
                list.entries.push(entry, time);
            }
            _ => jni.delete_weak(weak),
        }
    }
}

impl HotSpot {
    /// Tracks one object that the current thread has made. `tables`: number of the tables that have its site; `how` and
    /// `bytes`: as for a pending object in the tracker. Returns whether so many were tracked that fewer of each site
    /// are sufficient.
    pub(crate) fn track_made(
        &self,
        jni: Jni,
        made: Object,
        tables: i32,
        (how, bytes): (i64, u64),
    ) -> bool {
        if self.config.track == Track::None {
            return false;
        }
        let mut list = self.tracked.list(tables);
        if let Some((site, weight_log2)) = self.tracked.chosen(&mut list, how, bytes) {
            let entry = (site, weight_log2, bytes);
            self.tracked.add(jni, &mut list, made, entry);
        }
        self.tracked.trim(jni, &mut list);
        self.tracked.hand_over()
    }

    /// Tracks the pending objects of a thread. `is_owner`: it is the current thread.
    pub(crate) fn track_gathered(&self, jni: Jni, object: Object, is_owner: bool) {
        let Some(tracker) = self.tracker() else {
            return;
        };
        let mut list = self.tracked.list(tracker.id(jni, object));
        let Some((objects, words, before)) = tracker.gathered(jni, object, is_owner) else {
            return;
        };
        let gathered = words.chunks_exact(PENDING_WORDS).enumerate().skip(before);
        let chosen = gathered.filter_map(|(index, word)| {
            let bytes = word[1].cast_unsigned();
            let chosen = self.tracked.chosen(&mut list, word[0], bytes);
            if chosen.is_none() && !is_owner {
                jni.array_set(objects, index, None);
            }
            let (site, weight_log2) = chosen?;
            Some((index, site, weight_log2, bytes))
        });
        let new: Vec<_> = chosen.collect();
        let now = self.tracked.clock.now();
        let large_bytes = new.iter().map(|(.., bytes)| large(*bytes)).sum();
        let is_admitted = self.tracked.admit(new.len(), large_bytes);
        let mut dead = (0, 0);
        for (index, site, weight_log2, bytes) in new {
            let made = jni.element(objects, index).filter(|_| is_admitted);
            match made.and_then(|made| jni.weak(made)) {
                Some(weak) => {
                    let entry = Entry::new(weak, site, weight_log2, bytes);
                    list.entries.push(entry, now);
                }
                None => dead = (dead.0 + 1, dead.1 + large(bytes)),
            }
            // The owner no longer reads it, so it may be freed.
            if !is_owner {
                jni.array_set(objects, index, None);
            }
            made.into_iter().for_each(|made| jni.delete_local(made));
        }
        if is_admitted {
            self.tracked.dismiss(dead);
        }
        jni.delete_local(objects);
        if is_owner {
            self.tracked.trim(jni, &mut list);
        }
    }

    /// Tracks the pending objects of all threads, and the sampled ones.
    pub(crate) fn track_all_gathered(&self, jni: Jni) {
        if let Some(env) = self.live() {
            self.take_samples(env, jni);
        }
        if let Some(tracker) = self.tracker() {
            let track = |object| self.track_gathered(jni, object, false);
            tracker.for_each(jni, track);
            tracker.for_each_home(jni, track);
        }
    }
}
