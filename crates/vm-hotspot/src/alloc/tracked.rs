//! Objects that are tracked until they are freed: a weak reference and a site for each.
//!
//! Tags would do, and cost several times as much: the VM's table of tags is
//! hashed anew or searched at every collection. Weak references are slots that a
//! collector clears on its way.
//!
//! Threads add to one of several lists, by the number of their tracker; what has
//! survived a collection moves to the aged ones, which are examined seldom.
//!
//! When they take too much of the budget, half of them, chosen at random, are no longer tracked, and each
//! of the others stands for twice as many; so does each later one. The counts of live objects are then
//! estimates, and no sort of object is preferred. The same happens at the [`Bound`] of a
//! collector that keeps garbage for the sake of a weak reference.

use std::mem::offset_of;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use jvmti::{Jni, Object};
use locks::{Mutex, MutexGuard, Rank};
use rustc_hash::FxHashMap;
use vmpi::{Memory, Share, Worth};

use crate::alloc::allocation_times::{Clock, Dated};
use crate::alloc::bound::{Bound, LARGE, LowWater, is_nearly_full};
use crate::alloc::choices::Dice;
use crate::alloc::sites::SiteId;
use crate::heap::slots;

/// Lists of the young; a thread's objects are all in one.
const LISTS: usize = 16;
/// What an object is charged: its entry in a list that may be half empty, its share of the allocation times,
/// and the slot of the weak reference in the VM.
const COST: u64 = 2 * size_of::<Entry>() as u64 + 16;
/// So few objects are not made fewer.
const FEW: usize = 1024;
/// Objects that Java code hands over before it has fewer tracked of each site.
const MUCH: usize = 1 << 19;
/// How often heap usage is read, if at all.
const LOOK: Duration = Duration::from_millis(100);
/// Live objects that one reader holds at a time before others get their turn.
pub(crate) const PIECE: usize = 1024;
/// Collections after which the aged are examined again, unless they have doubled.
const SELDOM: u32 = 16;

/// Bits of [`Entry::how`]: the site, a flag, the weight.
pub(crate) const SITE_BITS: u32 = 26;
/// The object was there when counts were cleared.
const OLD: u32 = 1 << SITE_BITS;
const WEIGHT: u32 = SITE_BITS + 1;
/// The greatest weight.
const HEAVIEST: u32 = u32::BITS - WEIGHT;
const LAST_WEIGHT: u32 = (1 << HEAVIEST) - 1;

/// One tracked object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    weak: Object,
    /// Site, [`OLD`], and how many objects it stands for as a power of two.
    how: u32,
    /// Size in units of 8 bytes if it is an array, else 0.
    units: u32,
}

impl Entry {
    /// Where it has its weak reference and its site, for any process that reads it from outside.
    pub(crate) const OFFSETS: [usize; 2] = [offset_of!(Entry, weak), offset_of!(Entry, how)];

    /// An object of a site that stands for `1 << weight_log2` objects; `bytes` only
    /// if it is an array.
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

    /// How many objects it stands for as a power of two.
    pub(crate) fn weight_log2(self) -> u32 {
        self.how >> WEIGHT
    }

    /// From now on it stands for twice as many.
    fn double(&mut self) {
        if self.weight_log2() < LAST_WEIGHT {
            self.how += 1 << WEIGHT;
        }
    }

    /// Whether it was there when counts were cleared.
    pub(crate) fn is_old(self) -> bool {
        self.how & OLD != 0
    }

    /// Its bytes if it is an array, else 0.
    pub(crate) fn array_bytes(self) -> u64 {
        u64::from(self.units) * 8
    }

    /// Its weak reference.
    pub(crate) fn weak(self) -> Object {
        self.weak
    }

    /// Its bytes if it is a large array, else 0.
    fn large_bytes(self) -> u64 {
        large(self.array_bytes())
    }
}

/// The bytes of an array if it is a large one, else 0.
pub(crate) fn large(array_bytes: u64) -> u64 {
    if array_bytes < LARGE { 0 } else { array_bytes }
}

/// How many objects, and bytes of the large arrays among them.
fn sum(entries: &[Entry]) -> (usize, u64) {
    let large = entries.iter().map(|entry| entry.large_bytes());
    (entries.len(), large.sum())
}

/// The live objects of one site, weights counted in: objects, and bytes of arrays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Living {
    pub(crate) objects: i64,
    pub(crate) array_bytes: i64,
    /// Some stand for others that were not tracked.
    pub(crate) is_estimate: bool,
    /// Those older than the last [`Tracked::clear`], which the others are without.
    pub(crate) old_objects: i64,
    pub(crate) old_array_bytes: i64,
}

#[derive(Default)]
struct Aged {
    entries: Dated,
    /// How many there were when they were last examined, and collections since.
    looked_at: usize,
    collections: u32,
}

/// Objects that were tracked since the last look at them.
#[derive(Default)]
pub(crate) struct Young {
    pub(crate) entries: Dated,
    /// Entries at which the threads that add to them remove freed objects themselves,
    /// because the watcher cannot keep up.
    limit: usize,
    /// Objects and bytes of arrays of sites that are thinned out, which were chosen since the
    /// last look: what is known of how many were allocated.
    chosen: FxHashMap<SiteId, [i64; 2]>,
    /// One in so many objects is tracked and stands for all, as a power of two: of the large arrays, and of the others.
    thinned: Thinned,
    dice: Dice,
}

/// A power of two for large arrays, and one for all other objects.
#[derive(Clone, Copy, Default)]
struct Thinned {
    large: u32,
    others: u32,
}

/// What has to be made fewer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Crowd {
    /// Everything, because of the budget.
    Memory,
    /// Everything, because of the bound.
    Objects,
    /// Large arrays, because of the bound.
    Large,
    /// Everything, because the heap stays nearly full.
    Heap,
}

/// What was dropped since this was last asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dropped {
    /// Objects that were not tracked.
    pub(crate) refused: u64,
    /// Objects that were let go, for which others stand.
    pub(crate) halved: u64,
}

#[derive(Default)]
struct Drops {
    refused: AtomicU64,
    halved: AtomicU64,
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

    /// The weight of an object that would have this one otherwise, if it is tracked at all; `bytes` only if it is
    /// an array.
    pub(crate) fn thin(&mut self, weight_log2: u32, bytes: u64) -> Option<u32> {
        let thinned = match bytes < LARGE {
            true => self.thinned.others,
            false => self.thinned.large,
        };
        let is_chosen = self.dice.choose_in_halves(thinned);
        is_chosen.then_some(weight_log2 + thinned)
    }

    /// Lets go of about half of some entries, and has the others stand for them.
    fn halve(dice: &mut Dice, drop: &mut dyn FnMut(Object), entries: &mut Dated, crowd: Crowd) {
        let is_meant = |entry: &Entry| crowd != Crowd::Large || entry.large_bytes() > 0;
        entries.retain(|entry| {
            let stays = !is_meant(entry) || dice.choose_in_halves(1);
            if !stays {
                drop(entry.weak);
            }
            stays
        });
        let meant = entries.iter_mut().filter(|entry| is_meant(entry));
        meant.for_each(Entry::double);
        entries.shrink();
    }
}

/// All tracked objects.
pub(crate) struct Tracked {
    young: [Mutex<Young>; LISTS],
    aged: Mutex<Aged>,
    count: AtomicUsize,
    /// Bytes of the large arrays among them.
    large: AtomicU64,
    /// Objects that Java code has handed over one by one since the beginning.
    handed_over: AtomicUsize,
    memory: Arc<Memory>,
    /// How many there may be, if the memory is not all that counts.
    bound: OnceLock<Bound>,
    /// Objects that were dropped because memory was short, and because of the bound.
    short_of_memory: Drops,
    beyond_bound: Drops,
    /// How often large arrays and all others were halved.
    halvings: [AtomicU32; 2],
    /// Collections that have started, and ended.
    started: AtomicU64,
    collections: AtomicU64,
    watcher: OnceLock<std::thread::Thread>,
    /// Whether the slots of freed objects are null, once that was tried.
    are_cleared: OnceLock<bool>,
    /// Shares by number, that of all objects first.
    shares: Mutex<Vec<Share>>,
    pub(crate) clock: Clock,
}

impl Tracked {
    /// None, with the memory that they may take.
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

    /// The list that a thread's objects go to. While it is locked no other thread takes
    /// over what that thread has gathered.
    pub(crate) fn list(&self, tracker: i32) -> MutexGuard<'_, Young> {
        self.young[tracker.unsigned_abs() as usize % LISTS].lock()
    }

    /// The number of a share, 0 for all objects. There are 32 at most; beyond these it is the one
    /// that is nearest, which is given, too.
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

    /// Counts an object that Java code has handed over; whether there were so many that fewer of each site will do.
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

    /// From now on there are at most so many. To be called before anything is tracked.
    pub(crate) fn set_bound(&self, bound: Bound) {
        let _ = self.bound.set(bound);
    }

    /// How many there may be, if that is limited.
    pub(crate) fn bound(&self) -> Option<Bound> {
        self.bound.get().copied()
    }

    /// Whether `count` more may be tracked, with so many bytes of large arrays; the others are counted as refused.
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

    /// So many are tracked no more.
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

    /// What has to be made fewer, if anything.
    fn crowd(&self) -> Option<Crowd> {
        let (count, large) = self.now();
        let bound = self.bound.get();
        match () {
            () if count > FEW && self.memory.native.is_crowded() => Some(Crowd::Memory),
            () if bound.is_some_and(|bound| bound.has_many(count)) => Some(Crowd::Objects),
            () if bound.is_some_and(|bound| bound.has_many_large(large)) => Some(Crowd::Large),
            () => None,
        }
    }

    /// Keeps a list short while its owner holds it.
    pub(crate) fn trim(&self, jni: Jni, list: &mut Young) {
        const LONG: usize = 1 << 18;
        if list.entries.len() > list.limit.max(LONG) {
            self.drop_freed(jni, &mut list.entries);
            list.limit = list.entries.len() * 2;
        }
    }

    /// Objects that were dropped since the last call: because memory was short, and because of the bound.
    pub(crate) fn take_dropped(&self) -> [Dropped; 2] {
        [&self.short_of_memory, &self.beyond_bound].map(Drops::take)
    }

    /// One in how many large arrays, and one in how many other objects is tracked.
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

    /// Lets the watcher see that it is over: a VM that ends waits for a while (0.3 seconds)
    /// for threads that are in native code.
    pub(crate) fn wake(&self) {
        if let Some(watcher) = self.watcher.get() {
            watcher.unpark();
        }
    }

    /// Collections that have ended so far.
    pub(crate) fn collections(&self) -> u64 {
        self.collections.load(Ordering::SeqCst)
    }

    /// The watcher: looks after each collection who has died, until `is_over`; `take_over` is
    /// called before that. `used`: what is in use in the heap.
    pub(crate) fn watch(
        &self,
        jni: Jni,
        is_over: impl Fn() -> bool,
        take_over: impl Fn(),
        used: impl Fn() -> Option<u64>,
    ) {
        let _ = self.watcher.set(std::thread::current());
        let mut seen = 0;
        let heap = self.bound().and_then(|bound| bound.heap);
        let mut low_water = LowWater::new(self.collections());
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
                if least.is_some_and(|least| is_nearly_full(heap, least)) {
                    let mut aged = self.aged.lock();
                    self.sweep(jni, &mut aged, true);
                    self.thin_out(jni, &mut aged);
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

    /// Tracks fewer, as long as they take too much.
    fn make_room(&self, jni: Jni, aged: &mut Aged) {
        let mut dice = Dice::default();
        while let Some(crowd) = self.crowd() {
            self.halve(jni, aged, &mut dice, crowd);
        }
    }

    /// The heap stays nearly full: tracks a sixteenth.
    fn thin_out(&self, jni: Jni, aged: &mut Aged) {
        let mut dice = Dice::default();
        for _ in 0..4 {
            self.halve(jni, aged, &mut dice, Crowd::Heap);
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
            Crowd::Objects | Crowd::Large | Crowd::Heap => &self.beyond_bound,
        };
        let mut halve = |entries: &mut Dated| {
            let before = sum(entries);
            Young::halve(dice, &mut |weak| jni.delete_weak(weak), entries, crowd);
            let after = sum(entries);
            let gone = (before.0 - after.0, before.1 - after.1);
            drops.halved.fetch_add(gone.0 as u64, Ordering::Relaxed);
            self.dismiss(gone);
        };
        halve(&mut aged.entries);
        for list in &self.young {
            let mut list = list.lock();
            halve(&mut list.entries);
            list.thinned = thinned;
        }
    }

    /// Drops the references of freed objects, those of the aged too if `all` are wanted.
    fn sweep(&self, jni: Jni, aged: &mut Aged, all: bool) {
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

    fn drop_freed(&self, jni: Jni, entries: &mut Dated) {
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

    /// From now on all that are tracked so far are old.
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

    /// All live objects, for `body`. They may be freed meanwhile, but their references stay.
    pub(crate) fn living<T>(&self, jni: Jni, body: impl FnOnce(&Dated) -> T) -> T {
        let mut aged = self.aged.lock();
        self.sweep(jni, &mut aged, true);
        body(&aged.entries)
    }

    /// Begins to go through the live objects, and counts those of each site by its number. One caller at
    /// a time does so.
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

    /// The next of them that the caller `wants`, each with a local reference, in a piece so small that
    /// no other thread waits for long; `None` when all have been seen.
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

    /// All that were tracked since [`Tracked::living`] began, from inside of it.
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
