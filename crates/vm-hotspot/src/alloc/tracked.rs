//! Objects that are tracked until they are freed: a weak reference and a site for each.
//!
//! JVMTI tags would cost several times as much: the VM's table of tags is rehashed or searched at every collection.
//! Weak references are slots that a collector clears as part of its work.
//!
//! Threads add to one of several lists, by the number of their tracker. Objects that have survived a collection move to
//! the aged list, which is examined rarely.
//!
//! If tracked objects take too much of the budget, a random half of them is no longer tracked, and each of the others
//! stands for twice as many objects; the same applies to later ones. Counts of live objects are then unbiased
//! estimates. The same happens at the [`Bound`] for a collector in which weak references keep garbage alive.

use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use jvmti::{Jni, Object};
use locks::{Mutex, MutexGuard, Rank};
use rustc_hash::FxHashMap;
use vmpi::{Memory, Share, Worth};

use crate::alloc::allocation_times::{Clock, Dated};
use crate::alloc::bound::{Bound, LARGE};
use crate::alloc::choices::Dice;
use crate::alloc::sites::SiteId;
use crate::heap::slots;

/// Number of young lists; all objects of a thread are in the same one.
const LISTS: usize = 16;
/// Bytes charged for an object: its entry in a list that may be half empty, its share of the allocation times, and the
/// slot of the weak reference in the VM.
const COST: u64 = 2 * size_of::<Entry>() as u64 + 16;
/// Fewer objects than this are not thinned because of the memory budget.
const FEW: usize = 1024;
/// After this many objects handed over by Java code, it tracks fewer objects of each site.
const MUCH: usize = 1 << 19;
/// Live objects that are read under one lock, so that other threads do not wait for long.
pub(crate) const PIECE: usize = 1024;
/// Collections after which the aged list is examined again; earlier if it has doubled.
const SELDOM: u32 = 16;

/// Bits of [`Entry::how`]: the site, a flag, the weight.
pub(crate) const SITE_BITS: u32 = 26;
/// The object existed when counts were cleared.
const OLD: u32 = 1 << SITE_BITS;
const WEIGHT: u32 = SITE_BITS + 1;
/// The greatest weight.
const HEAVIEST: u32 = u32::BITS - WEIGHT;
const LAST_WEIGHT: u32 = (1 << HEAVIEST) - 1;

/// One tracked object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    weak: Object,
    /// Site, [`OLD`], and the binary logarithm of the number of objects that it stands for.
    how: u32,
    /// Size in units of 8 bytes if it is an array, otherwise 0.
    units: u32,
}

impl Entry {
    /// Offsets of its weak reference and site, for another process that reads it.
    pub(crate) const OFFSETS: [usize; 2] = [offset_of!(Entry, weak), offset_of!(Entry, how)];

    /// An object that stands for `1 << weight_log2` objects of a site; `bytes` only if it is an array.
    pub(crate) fn new(weak: Object, site: SiteId, weight_log2: u32, bytes: u64) -> Self {
        Self {
            weak,
            how: site.0 | weight_log2.min(LAST_WEIGHT) << WEIGHT,
            units: u32::try_from(bytes / 8).unwrap_or(u32::MAX),
        }
    }

    /// Its site.
    pub(crate) fn site(self) -> SiteId {
        SiteId(self.how & (OLD - 1))
    }

    /// The binary logarithm of the number of objects that it stands for.
    pub(crate) fn weight_log2(self) -> u32 {
        self.how >> WEIGHT
    }

    /// Makes it stand for twice as many objects.
    pub(super) fn double(&mut self) {
        if self.weight_log2() < LAST_WEIGHT {
            self.how += 1 << WEIGHT;
        }
    }

    /// Whether it existed when counts were cleared.
    pub(crate) fn is_old(self) -> bool {
        self.how & OLD != 0
    }

    /// Its bytes if it is an array, otherwise 0.
    pub(crate) fn array_bytes(self) -> u64 {
        u64::from(self.units) * 8
    }

    /// Its weak reference.
    pub(crate) fn weak(self) -> Object {
        self.weak
    }

    /// Its bytes if it is a large array, otherwise 0.
    pub(super) fn large_bytes(self) -> u64 {
        large(self.array_bytes())
    }
}

/// The bytes of an array if it is large, otherwise 0.
pub(crate) fn large(array_bytes: u64) -> u64 {
    if array_bytes < LARGE { 0 } else { array_bytes }
}

/// The number of objects, and the bytes of the large arrays among them.
pub(super) fn sum(entries: &[Entry]) -> (usize, u64) {
    let large = entries.iter().map(|entry| entry.large_bytes());
    (entries.len(), large.sum())
}

/// The live objects of one site: objects, and bytes of arrays, multiplied by their weights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Living {
    pub(crate) objects: i64,
    pub(crate) array_bytes: i64,
    /// Whether some of them stand for others that were not tracked.
    pub(crate) is_estimate: bool,
    /// Those that existed at the last [`Tracked::clear`]; they are not in the fields above.
    pub(crate) old_objects: i64,
    pub(crate) old_array_bytes: i64,
}

#[derive(Default)]
pub(super) struct Aged {
    pub(super) entries: Dated,
    /// As in the young lists.
    pub(super) rare: FxHashMap<SiteId, u32>,
    /// The number of entries after the last examination, and the collections since then.
    looked_at: usize,
    collections: u32,
}

/// Objects that were tracked since the last examination.
#[derive(Default)]
pub(crate) struct Young {
    pub(crate) entries: Dated,
    /// At more entries than this, a thread that adds an entry removes freed objects itself, because the watcher is too
    /// slow.
    limit: usize,
    /// Objects, and bytes of arrays, that were chosen since the last reading at sites that are recorded in part. Their
    /// allocations are estimated from these.
    chosen: FxHashMap<SiteId, [i64; 2]>,
    /// Only one in `2^n` objects is tracked and stands for the others; `n` for large arrays and for others.
    pub(super) thinned: Thinned,
    /// The same besides, for objects of some sites.
    pub(super) rare: FxHashMap<SiteId, u32>,
    dice: Dice,
}

/// A binary logarithm for large arrays, and one for all other objects.
#[derive(Clone, Copy, Default)]
pub(super) struct Thinned {
    pub(super) large: u32,
    pub(super) others: u32,
}

/// Which objects must be thinned, and why.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Crowd {
    /// All objects, because of the memory budget.
    Memory,
    /// All objects, because of the bound.
    Objects,
    /// Large arrays, because of the bound.
    Large,
}

/// Dropped objects since the last call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dropped {
    /// Objects that were not tracked.
    pub(crate) refused: u64,
    /// Objects that are no longer tracked, for which others stand.
    pub(crate) halved: u64,
}

#[derive(Default)]
pub(super) struct Drops {
    refused: AtomicU64,
    pub(super) halved: AtomicU64,
}

impl Drops {
    fn take(&self) -> Dropped {
        Dropped {
            refused: self.refused.swap(0, Ordering::Relaxed),
            halved: self.halved.swap(0, Ordering::Relaxed),
        }
    }
}

impl Young {
    /// Whether the next object of a site is tracked; if so, it stands for `1 << weight_log2`.
    pub(crate) fn choose(
        &mut self,
        (site, share): (SiteId, Share),
        weight_log2: u32,
        bytes: u64,
    ) -> bool {
        let is_chosen = self.dice.choose(share);
        if is_chosen {
            let sum = self.chosen.entry(site).or_default();
            sum[0] += 1 << weight_log2;
            sum[1] += bytes.cast_signed() << weight_log2;
        }
        is_chosen
    }

    /// The weight of an object after thinning, or `None` if it is not tracked. `weight_log2`: its weight before;
    /// `bytes` only if it is an array.
    pub(crate) fn thin(&mut self, site: SiteId, weight_log2: u32, bytes: u64) -> Option<u32> {
        let thinned = match bytes < LARGE {
            true => self.thinned.others,
            false => self.thinned.large,
        };
        let rare = match self.rare.is_empty() {
            true => 0,
            false => self.rare.get(&site).copied().unwrap_or(0),
        };
        let thinned = thinned + rare;
        let is_chosen = self.dice.choose_in_halves(thinned);
        is_chosen.then_some(weight_log2 + thinned)
    }
}

/// All tracked objects.
pub(crate) struct Tracked {
    pub(super) young: [Mutex<Young>; LISTS],
    pub(super) aged: Mutex<Aged>,
    count: AtomicUsize,
    /// Bytes of the large arrays among them.
    large: AtomicU64,
    /// Objects that Java code has handed over one by one since the start.
    handed_over: AtomicUsize,
    memory: Arc<Memory>,
    /// The bound of their number, if there is one besides the memory budget.
    bound: OnceLock<Bound>,
    /// Objects that were dropped because of the memory budget, and because of the bound.
    pub(super) short_of_memory: Drops,
    pub(super) beyond_bound: Drops,
    /// How often large arrays and other objects were halved.
    pub(super) halvings: [AtomicU32; 2],
    /// Collections that have started, and ended.
    started: AtomicU64,
    collections: AtomicU64,
    pub(super) watcher: OnceLock<std::thread::Thread>,
    /// Whether the slots of freed objects are null; set when this was tried.
    are_cleared: OnceLock<bool>,
    /// Shares by number, that of all objects first.
    shares: Mutex<Vec<Share>>,
    pub(crate) clock: Clock,
}

impl Tracked {
    /// No objects yet; `memory` is the budget that they may take.
    pub(crate) fn new(memory: &Arc<Memory>) -> Self {
        Self {
            young: std::array::from_fn(|_| Mutex::new(Rank::Young, Young::default())),
            aged: Mutex::new(Rank::Aged, Aged::default()),
            count: AtomicUsize::new(0),
            large: AtomicU64::new(0),
            handed_over: AtomicUsize::new(0),
            memory: Arc::clone(memory),
            bound: OnceLock::new(),
            short_of_memory: Drops::default(),
            beyond_bound: Drops::default(),
            halvings: [const { AtomicU32::new(0) }; 2],
            started: AtomicU64::new(0),
            collections: AtomicU64::new(0),
            watcher: OnceLock::new(),
            are_cleared: OnceLock::new(),
            shares: Mutex::new(Rank::Shares, Vec::new()),
            clock: Clock::default(),
        }
    }

    /// The list of a thread's objects. While it is locked, no other thread reads the pending objects of that thread.
    pub(crate) fn list(&self, tracker: i32) -> MutexGuard<'_, Young> {
        self.young[tracker.unsigned_abs() as usize % LISTS].lock()
    }

    /// The number of a share; 0 is the share of all objects. There are at most 32 shares; a further one gets the number
    /// of the nearest, which is also returned.
    pub(crate) fn number_of(&self, share: Share) -> (u32, Share) {
        const MOST: usize = 32;
        let mut shares = self.shares.lock();
        if shares.is_empty() {
            shares.push(Share::ALL);
        }
        let known = shares.iter().position(|known| *known == share);
        let at = known.or_else(|| {
            (shares.len() < MOST).then(|| {
                shares.push(share);
                shares.len() - 1
            })
        });
        let distance = |other: &Share| (other.ratio().ln() - share.ratio().ln()).abs();
        let nearest = || {
            let others = shares.iter().enumerate().skip(1);
            others.min_by(|a, b| distance(a.1).total_cmp(&distance(b.1)))
        };
        let at = at.or_else(|| nearest().map(|(at, _)| at)).unwrap_or(0);
        (at as u32, shares[at])
    }

    /// Counts an object that Java code has handed over; returns whether there were so many that fewer of each site are
    /// sufficient.
    pub(crate) fn hand_over(&self) -> bool {
        self.handed_over.fetch_add(1, Ordering::Relaxed) >= MUCH
    }

    /// The share with a number.
    pub(crate) fn share(&self, number: u32) -> Share {
        let shares = self.shares.lock();
        shares.get(number as usize).copied().unwrap_or_default()
    }

    /// Objects and bytes that were chosen since the last call, by site.
    pub(crate) fn take_chosen(&self) -> Vec<(SiteId, [i64; 2])> {
        let lists = self.young.iter();
        lists
            .flat_map(|list| std::mem::take(&mut list.lock().chosen))
            .collect()
    }

    /// Sets the bound. Must be called before anything is tracked.
    pub(crate) fn set_bound(&self, bound: Bound) {
        let _ = self.bound.set(bound);
    }

    /// The bound, if there is one.
    pub(crate) fn bound(&self) -> Option<Bound> {
        self.bound.get().copied()
    }

    /// Whether `count` more objects, with these bytes of large arrays, may be tracked. Otherwise they are counted as
    /// refused.
    pub(crate) fn admit(&self, count: usize, large_bytes: u64) -> bool {
        let (now, large) = self.now();
        let is_within = |bound: &Bound| bound.includes((now + count, large + large_bytes));
        let drops = match self.bound.get().is_none_or(is_within) {
            true if self.memory.native.take(Worth::Objects, COST * count as u64) => {
                self.count.fetch_add(count, Ordering::Relaxed);
                self.large.fetch_add(large_bytes, Ordering::Relaxed);
                if self.crowd().is_some() {
                    self.wake();
                }
                return true;
            }
            true => &self.short_of_memory,
            false => &self.beyond_bound,
        };
        drops.refused.fetch_add(count as u64, Ordering::Relaxed);
        self.wake();
        false
    }

    /// Records that these objects are no longer tracked.
    pub(crate) fn dismiss(&self, (count, large_bytes): (usize, u64)) {
        self.count.fetch_sub(count, Ordering::Relaxed);
        self.large.fetch_sub(large_bytes, Ordering::Relaxed);
        self.memory.native.give(Worth::Objects, COST * count as u64);
    }

    /// How many there are, and bytes of the large arrays among them.
    fn now(&self) -> (usize, u64) {
        let (count, large) = (&self.count, &self.large);
        (count.load(Ordering::Relaxed), large.load(Ordering::Relaxed))
    }

    /// Which objects must be thinned, if any.
    pub(super) fn crowd(&self) -> Option<Crowd> {
        let (count, large) = self.now();
        let bound = self.bound.get();
        match () {
            () if count > FEW && self.memory.native.is_crowded() => Some(Crowd::Memory),
            () if bound.is_some_and(|bound| bound.has_many(count)) => Some(Crowd::Objects),
            () if bound.is_some_and(|bound| bound.has_many_large(large)) => Some(Crowd::Large),
            () => None,
        }
    }

    /// Removes freed objects from a list that its owner has locked, if it is long.
    pub(crate) fn trim(&self, jni: Jni, list: &mut Young) {
        const LONG: usize = 1 << 18;
        if list.entries.len() > list.limit.max(LONG) {
            self.drop_freed(jni, &mut list.entries);
            list.limit = list.entries.len() * 2;
        }
    }

    /// Objects that were dropped since the last call: because of the memory budget, and because of the bound.
    pub(crate) fn take_dropped(&self) -> [Dropped; 2] {
        [&self.short_of_memory, &self.beyond_bound].map(Drops::take)
    }

    /// One in how many large arrays and one in how many other objects is tracked.
    pub(crate) fn one_in(&self) -> [u64; 2] {
        let halvings = self
            .halvings
            .each_ref()
            .map(|halvings| halvings.load(Ordering::Relaxed));
        halvings.map(|halvings| 1 << halvings.min(63))
    }

    /// A collection starts; called by the VM thread.
    pub(crate) fn collecting(&self) {
        self.started.fetch_add(1, Ordering::SeqCst);
    }

    /// Collections that have started so far.
    pub(crate) fn started(&self) -> u64 {
        self.started.load(Ordering::SeqCst)
    }

    /// A collection has ended; called by the VM thread, so it only wakes the watcher.
    pub(crate) fn collected(&self) {
        self.collections.fetch_add(1, Ordering::SeqCst);
        self.wake();
    }

    /// Wakes the watcher, so that it ends: a VM that ends waits for a while (0.3 seconds) for threads in native code.
    pub(crate) fn wake(&self) {
        if let Some(watcher) = self.watcher.get() {
            watcher.unpark();
        }
    }

    /// Collections that have ended so far.
    pub(crate) fn collections(&self) -> u64 {
        self.collections.load(Ordering::SeqCst)
    }

    /// Drops the references of freed objects, those of the aged list only if `all`.
    pub(super) fn sweep(&self, jni: Jni, aged: &mut Aged, all: bool) {
        let before = aged.entries.len();
        aged.collections += 1;
        if all || aged.collections >= SELDOM || before > 2 * aged.looked_at + 100_000 {
            self.drop_freed(jni, &mut aged.entries);
            (aged.looked_at, aged.collections) = (aged.entries.len(), 0);
        }
        for list in &self.young {
            let mut young = std::mem::take(&mut list.lock().entries);
            self.drop_freed(jni, &mut young);
            aged.entries.append(young);
        }
    }

    pub(super) fn drop_freed(&self, jni: Jni, entries: &mut Dated) {
        let before = entries.len();
        let mut freed_large = 0;
        let weak = entries.iter().map(|entry| entry.weak);
        let try_out = || slots::are_cleared(jni, weak);
        let are_cleared = before > 0 && *self.are_cleared.get_or_init(try_out);
        entries.retain(|entry| {
            let dead = match are_cleared {
                true => slots::address(entry.weak) == 0,
                false => jni.is_dead(entry.weak),
            };
            if dead {
                jni.delete_weak(entry.weak);
                freed_large += entry.large_bytes();
            }
            !dead
        });
        self.dismiss((before - entries.len(), freed_large));
        entries.shrink();
    }

    /// Marks all objects that are tracked so far as old.
    pub(crate) fn clear(&self, jni: Jni) {
        let mut aged = self.aged.lock();
        self.sweep(jni, &mut aged, true);
        for entry in aged.entries.iter_mut() {
            entry.how |= OLD;
        }
    }

    /// Drops all entries, which are no longer needed.
    pub(crate) fn release(&self, jni: Jni) {
        let mut aged = self.aged.lock();
        let lists = self.young.iter();
        let young = lists.map(|list| std::mem::take(&mut list.lock().entries));
        for entries in young.chain([std::mem::take(&mut aged.entries)]) {
            entries.iter().for_each(|entry| jni.delete_weak(entry.weak));
        }
    }

    /// Calls `body` with all live objects. They may be freed meanwhile, but their references stay.
    pub(crate) fn living<T>(&self, jni: Jni, body: impl FnOnce(&Dated) -> T) -> T {
        let mut aged = self.aged.lock();
        self.sweep(jni, &mut aged, true);
        body(&aged.entries)
    }

    /// Begins to read the live objects, and counts those of each site by its number. Only for one caller at a time.
    pub(crate) fn see_all(&self, jni: Jni) -> Vec<u64> {
        let mut aged = self.aged.lock();
        self.sweep(jni, &mut aged, true);
        aged.entries.see_all();
        let mut counts: Vec<u64> = Vec::new();
        for entry in aged.entries.iter().filter(|entry| !entry.is_old()) {
            let site = entry.site().0 as usize;
            if counts.len() <= site {
                counts.resize(site + 1, 0);
            }
            counts[site] += 1;
        }
        counts
    }

    /// The next objects that the caller `wants`, each with a local reference, in a piece so small that no other thread
    /// waits for long; `None` when all were read.
    pub(crate) fn next_chunk(
        &self,
        jni: Jni,
        mut wants: impl FnMut(Entry) -> bool,
    ) -> Option<Vec<(Object, Entry)>> {
        let mut aged = self.aged.lock();
        let mut chosen = Vec::with_capacity(PIECE);
        // Objects that are not wanted take little time, so several pieces are read.
        for _ in 0..64 {
            let piece = aged.entries.next_chunk(PIECE - chosen.len());
            if piece.is_empty() {
                return (!chosen.is_empty()).then_some(chosen);
            }
            for entry in piece.iter().filter(|entry| !entry.is_old()) {
                if wants(*entry)
                    && let Some(object) = jni.new_local(entry.weak)
                {
                    chosen.push((object, *entry));
                }
            }
            if chosen.len() >= PIECE / 2 {
                break;
            }
        }
        Some(chosen)
    }

    /// Objects that were tracked since [`Tracked::living`] began; called from inside it.
    pub(crate) fn newcomers(&self) -> Vec<Entry> {
        let lists = self.young.iter().map(|list| list.lock().entries.to_vec());
        lists.collect::<Vec<_>>().concat()
    }

    /// The live objects of each site, by its number.
    pub(crate) fn by_site(&self, jni: Jni) -> Vec<Living> {
        self.living(jni, |entries| {
            let mut sums: Vec<Living> = Vec::new();
            for entry in entries.iter() {
                let site = entry.site().0 as usize;
                if sums.len() <= site {
                    sums.resize(site + 1, Living::default());
                }
                let (weight, sum) = (entry.how >> WEIGHT, &mut sums[site]);
                let array_bytes = (i64::from(entry.units) * 8) << weight;
                if entry.how & OLD != 0 {
                    sum.old_objects += 1 << weight;
                    sum.old_array_bytes += array_bytes;
                } else {
                    sum.objects += 1 << weight;
                    sum.is_estimate |= weight > 0;
                    sum.array_bytes += array_bytes;
                }
            }
            sums
        })
    }
}
