//! Tracks fewer objects when they take too much memory, or keep too much garbage.

use std::sync::atomic::Ordering;
use std::time::Duration;

use jvmti::{Jni, Object};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::alloc::allocation_times::Dated;
use crate::alloc::bound::{LowWater, Pauses, is_nearly_full};
use crate::alloc::choices::Dice;
use crate::alloc::sites::SiteId;
use crate::alloc::tracked::{Aged, Crowd, Drops, Entry, Thinned, Tracked, Young, sum};

/// The interval of reading heap usage, if it is read.
const LOOK: Duration = Duration::from_millis(100);

impl Young {
    /// Drops about half of some entries at random, and doubles the weight of the others of them.
    fn halve(
        dice: &mut Dice,
        drop: &mut dyn FnMut(Object),
        entries: &mut Dated,
        is_meant: &dyn Fn(&Entry) -> bool,
    ) {
        entries.retain(|entry| {
            let stays = !is_meant(entry) || dice.choose_in_halves(1);
            if !stays {
                drop(entry.weak());
            }
            stays
        });
        let meant = entries.iter_mut().filter(|entry| is_meant(entry));
        meant.for_each(Entry::double);
        entries.shrink();
    }
}

impl Tracked {
    /// The watcher: after each collection, calls `take_over` and removes freed objects, until `is_over`. `used`: bytes
    /// in use in the heap. `collect`: collects all of it.
    pub(crate) fn watch(
        &self,
        jni: Jni,
        is_over: impl Fn() -> bool,
        take_over: impl Fn(),
        used: impl Fn() -> Option<u64>,
        collect: impl Fn(),
    ) {
        let _ = self.watcher.set(std::thread::current());
        let mut seen = 0;
        let heap = self.bound().and_then(|bound| bound.heap);
        let mut low_water = LowWater::new(self.collections());
        let mut pauses = Pauses::default();
        while !is_over() {
            let now = self.collections();
            let is_crowded = self.crowd().is_some();
            if now == seen && !is_crowded {
                let Some(heap) = heap else {
                    std::thread::park();
                    continue;
                };
                std::thread::park_timeout(LOOK);
                let least = used().and_then(|used| low_water.look(used, self.collections()));
                if least.is_some_and(|least| is_nearly_full(heap, least)) && pauses.is_over() {
                    let sites = self.sites_of_garbage(jni, &collect);
                    if !sites.is_empty() {
                        self.thin_out(jni, &mut self.aged.lock(), &sites);
                    }
                    pauses.follow(!sites.is_empty());
                }
                continue;
            }
            seen = now;
            take_over();
            let mut aged = self.aged.lock();
            self.sweep(jni, &mut aged, is_crowded);
            self.make_room(jni, &mut aged);
            drop(aged);
        }
    }

    /// Thins the objects as long as they take too much.
    fn make_room(&self, jni: Jni, aged: &mut Aged) {
        let mut dice = Dice::default();
        while let Some(crowd) = self.crowd() {
            self.halve(jni, aged, &mut dice, crowd);
        }
    }

    /// The sites of which a collection of the whole heap, which clears the references of all unreachable objects, clears a quarter
    /// or more.
    fn sites_of_garbage(&self, jni: Jni, collect: impl Fn()) -> FxHashSet<SiteId> {
        let count = |aged: &Aged| {
            let mut counts: FxHashMap<SiteId, usize> = FxHashMap::default();
            for entry in aged.entries.iter() {
                *counts.entry(entry.site()).or_default() += 1;
            }
            counts
        };
        let mut aged = self.aged.lock();
        self.sweep(jni, &mut aged, true);
        let before = count(&aged);
        drop(aged);
        collect();
        let mut aged = self.aged.lock();
        // Younger objects are not compared.
        self.drop_freed(jni, &mut aged.entries);
        let after = count(&aged);
        let is_garbage = |(site, before): (SiteId, usize)| {
            let freed = before.saturating_sub(after.get(&site).copied().unwrap_or(0));
            (freed > 0 && 4 * freed >= before).then_some(site)
        };
        before.into_iter().filter_map(is_garbage).collect()
    }

    /// The heap stays nearly full of garbage: tracks only a sixteenth of the objects of these sites.
    fn thin_out(&self, jni: Jni, aged: &mut Aged, sites: &FxHashSet<SiteId>) {
        let mut dice = Dice::default();
        for _ in 0..4 {
            for site in sites {
                *aged.rare.entry(*site).or_default() += 1;
            }
            let rare = aged.rare.clone();
            let is_meant = |entry: &Entry| sites.contains(&entry.site());
            let follow = |list: &mut Young| list.rare.clone_from(&rare);
            self.halve_where(
                jni,
                aged,
                &mut dice,
                (&self.beyond_bound, &is_meant),
                follow,
            );
        }
    }

    fn halve(&self, jni: Jni, aged: &mut Aged, dice: &mut Dice, crowd: Crowd) {
        let [large, others] = &self.halvings;
        let is_large_only = u32::from(crowd == Crowd::Large);
        let thinned = Thinned {
            large: large.fetch_add(1, Ordering::Relaxed) + 1,
            others: others.fetch_add(1 - is_large_only, Ordering::Relaxed) + 1 - is_large_only,
        };
        let drops = match crowd {
            Crowd::Memory => &self.short_of_memory,
            Crowd::Objects | Crowd::Large => &self.beyond_bound,
        };
        let is_meant = |entry: &Entry| crowd != Crowd::Large || entry.large_bytes() > 0;
        let follow = |list: &mut Young| list.thinned = thinned;
        self.halve_where(jni, aged, dice, (drops, &is_meant), follow);
    }

    /// Drops half of some objects, counted as `drops`; each young list follows while it is locked.
    fn halve_where(
        &self,
        jni: Jni,
        aged: &mut Aged,
        dice: &mut Dice,
        (drops, is_meant): (&Drops, &dyn Fn(&Entry) -> bool),
        follow: impl Fn(&mut Young),
    ) {
        let mut halve = |entries: &mut Dated| {
            let before = sum(entries);
            Young::halve(dice, &mut |weak| jni.delete_weak(weak), entries, is_meant);
            let after = sum(entries);
            let gone = (before.0 - after.0, before.1 - after.1);
            drops.halved.fetch_add(gone.0 as u64, Ordering::Relaxed);
            self.dismiss(gone);
        };
        halve(&mut aged.entries);
        for list in &self.young {
            let mut list = list.lock();
            halve(&mut list.entries);
            follow(&mut list);
        }
    }
}
