//! From the objects that a thread has gathered to those that are tracked.

use jvmti::{Jni, Object};

use crate::alloc::sites::SiteId;
use crate::alloc::tracked::{Entry, large};
use crate::instrument::tracker::PENDING_WORDS;
use crate::vm::config::Track;
use crate::vm::hotspot::HotSpot;

impl HotSpot {
    /// Tracks the objects a thread has gathered. `is_owner`: it is the current thread.
    pub(crate) fn track_gathered(&self, jni: Jni, object: Object, is_owner: bool) {
        if self.config.track == Track::None {
            return;
        }
        let Some(tracker) = self.tracker() else {
            return;
        };
        let mut list = self.tracked.list(tracker.id(jni, object));
        let Some((objects, words, before)) = tracker.gathered(jni, object, is_owner) else {
            return;
        };
        let mut shares = None;
        let gathered = words.chunks_exact(PENDING_WORDS).enumerate().skip(before);
        let chosen = gathered.filter_map(|(index, word)| {
            let (site, share) = SiteId::of_word(word[0]);
            let weight_log2 = (word[0] as u32).trailing_ones();
            let mut is_chosen = true;
            if share != 0 {
                let shares = shares.get_or_insert_with(|| self.tracked.shares());
                let share = shares.get(share as usize).copied().unwrap_or_default();
                is_chosen = list.choose((site, share), weight_log2, word[1].cast_unsigned());
            }
            let bytes = word[1].cast_unsigned();
            let weight_log2 = is_chosen.then(|| list.thin(weight_log2, bytes)).flatten();
            if weight_log2.is_none() && !is_owner {
                jni.array_set(objects, index, None);
            }
            Some((index, site, weight_log2?, bytes))
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
            // Its owner reads it no more, and it may be freed.
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

    /// Tracks what all threads have gathered, and what was sampled.
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
