//! Objects that are followed until they die: a weak reference and a site for each.
//!
//! Tags would do, and cost several times as much: the VM's table of tags is
//! hashed anew or searched at every collection. Weak references are slots that a
//! collector clears on its way.
//!
//! Threads add to one of several lists, by the number of their tracker; what has
//! lived through a collection moves to the aged ones, which are looked at seldom.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

use jvmti::{Jni, Object};
use rustc_hash::FxHashMap;
use vmpi::Share;

use crate::births::{Clock, Dated};
use crate::choices::Dice;
use crate::hotspot::locked;
use crate::sites::SiteId;
use crate::slots;

/// Lists of the young; a thread's objects are all in one.
const LISTS: usize = 16;
/// Most objects followed at a time: about a gigabyte of the agent's and the VM's
/// memory. Those beyond it are counted, and left out of what is said of the living.
const MOST: usize = 32 << 20;
/// Living objects that somebody looks at without leaving room for others.
pub(crate) const PIECE: usize = 1024;
/// Collections after which the aged are looked at again, unless they have doubled.
const SELDOM: u32 = 16;

/// Bits of [`Entry::how`]: the site, a flag, the weight.
pub(crate) const SITE_BITS: u32 = 26;
/// The object was there when counts were cleared.
const OLD: u32 = 1 << SITE_BITS;
const WEIGHT: u32 = SITE_BITS + 1;

/// One followed object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    weak: Object,
    /// Site, [`OLD`], and how many objects it stands for as a power of two.
    how: u32,
    /// Size in units of 8 bytes if it is an array, else 0.
    units: u32,
}

impl Entry {
    /// An object of a site that stands for `1 << weight_log2` objects; `bytes` only
    /// if it is an array.
    pub(crate) fn new(weak: Object, site: SiteId, weight_log2: u32, bytes: u64) -> Self {
        Self {
            weak,
            how: site.0 | weight_log2 << WEIGHT,
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
}

/// The living of one site, weights counted in: objects, and bytes of arrays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Living {
    pub(crate) objects: i64,
    pub(crate) array_bytes: i64,
    /// Some stand for others that were not followed.
    pub(crate) is_estimate: bool,
    /// Those older than the last [`Followed::clear`], which the others are without.
    pub(crate) old_objects: i64,
    pub(crate) old_array_bytes: i64,
}

#[derive(Default)]
struct Aged {
    entries: Dated,
    /// How many there were when they were last looked at, and collections since.
    looked_at: usize,
    collections: u32,
}

/// Objects that were followed since the last look at them.
#[derive(Default)]
pub(crate) struct Young {
    pub(crate) entries: Dated,
    /// Entries at which the threads that add to them look after the dead themselves,
    /// because the watcher cannot keep up.
    limit: usize,
    /// Objects and bytes of arrays of sites that are thinned out, which were chosen since the
    /// last look: what is known of how many were allocated.
    chosen: FxHashMap<SiteId, [i64; 2]>,
    dice: Dice,
}

impl Young {
    /// Whether the next object of a site is followed; if so, it stands for `1 << weight_log2`.
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
}

/// All followed objects. The aged are locked before a list of the young.
#[derive(Default)]
pub(crate) struct Followed {
    young: [Mutex<Young>; LISTS],
    aged: Mutex<Aged>,
    count: AtomicUsize,
    /// Objects not followed for want of room.
    refused: AtomicU64,
    /// Collections that have started, and ended.
    started: AtomicU64,
    collections: AtomicU64,
    watcher: OnceLock<std::thread::Thread>,
    /// Whether the slots of the dead are null, once that was tried.
    are_cleared: OnceLock<bool>,
    /// Shares by number, that of all objects first.
    shares: Mutex<Vec<Share>>,
    pub(crate) clock: Clock,
}

impl Followed {
    /// The list that a thread's objects go to. While it is locked nobody else takes
    /// over what that thread has gathered.
    pub(crate) fn list(&self, tracker: i32) -> MutexGuard<'_, Young> {
        locked(&self.young[tracker.unsigned_abs() as usize % LISTS])
    }

    /// The number of a share, 0 for all objects. There are 32 at most; beyond these it is the one
    /// that is nearest, which is given, too.
    pub(crate) fn number_of(&self, share: Share) -> (u32, Share) {
        const MOST: usize = 32;
        let mut shares = locked(&self.shares);
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

    /// The shares that have numbers.
    pub(crate) fn shares(&self) -> Vec<Share> {
        locked(&self.shares).clone()
    }

    /// Objects and bytes that were chosen since the last call, by site.
    pub(crate) fn take_chosen(&self) -> Vec<(SiteId, [i64; 2])> {
        let lists = self.young.iter();
        lists
            .flat_map(|list| std::mem::take(&mut locked(list).chosen))
            .collect()
    }

    /// Whether `count` more may be followed; the others are counted as refused.
    pub(crate) fn admit(&self, count: usize) -> bool {
        if self.count.fetch_add(count, Ordering::Relaxed) < MOST {
            return true;
        }
        self.count.fetch_sub(count, Ordering::Relaxed);
        self.refused.fetch_add(count as u64, Ordering::Relaxed);
        false
    }

    /// Follows one object if `wanted`; `bytes` only if it is an array.
    pub(crate) fn add_if(&self, wanted: bool, jni: Jni, object: Object, site: SiteId, bytes: u64) {
        if wanted
            && self.admit(1)
            && let Some(weak) = jni.weak(object)
        {
            let (entry, now) = (Entry::new(weak, site, 0, bytes), self.clock.now());
            self.list(0).entries.push(entry, now);
        }
    }

    /// Keeps a list short while its owner holds it.
    pub(crate) fn trim(&self, jni: Jni, list: &mut Young) {
        const LONG: usize = 1 << 18;
        if list.entries.len() > list.limit.max(LONG) {
            self.drop_dead(jni, &mut list.entries);
            list.limit = list.entries.len() * 2;
        }
    }

    /// How many were refused since the last call.
    pub(crate) fn take_refused(&self) -> u64 {
        self.refused.swap(0, Ordering::Relaxed)
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
    /// called before that.
    pub(crate) fn watch(&self, jni: Jni, is_over: impl Fn() -> bool, take_over: impl Fn()) {
        let _ = self.watcher.set(std::thread::current());
        let mut seen = 0;
        while !is_over() {
            let now = self.collections();
            if now == seen {
                std::thread::park();
                continue;
            }
            seen = now;
            take_over();
            self.bury(jni, &mut locked(&self.aged), false);
        }
    }

    /// Drops the references of the dead, those of the aged too if `all` are wanted.
    fn bury(&self, jni: Jni, aged: &mut Aged, all: bool) {
        let before = aged.entries.len();
        aged.collections += 1;
        if all || aged.collections >= SELDOM || before > 2 * aged.looked_at + 100_000 {
            self.drop_dead(jni, &mut aged.entries);
            (aged.looked_at, aged.collections) = (aged.entries.len(), 0);
        }
        for list in &self.young {
            let mut young = std::mem::take(&mut locked(list).entries);
            self.drop_dead(jni, &mut young);
            aged.entries.append(young);
        }
    }

    fn drop_dead(&self, jni: Jni, entries: &mut Dated) {
        let before = entries.len();
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
            }
            !dead
        });
        self.count
            .fetch_sub(before - entries.len(), Ordering::Relaxed);
        entries.shrink();
    }

    /// From now on all that are followed so far are old.
    pub(crate) fn clear(&self, jni: Jni) {
        let mut aged = locked(&self.aged);
        self.bury(jni, &mut aged, true);
        for entry in aged.entries.iter_mut() {
            entry.how |= OLD;
        }
    }

    /// Forgets all, which nobody asks for any more.
    pub(crate) fn release(&self, jni: Jni) {
        let mut aged = locked(&self.aged);
        let lists = self.young.iter();
        let young = lists.map(|list| std::mem::take(&mut locked(list).entries));
        for entries in young.chain([std::mem::take(&mut aged.entries)]) {
            entries.iter().for_each(|entry| jni.delete_weak(entry.weak));
        }
    }

    /// All the living, for `body`. They may die meanwhile, but their references stay.
    pub(crate) fn living<T>(&self, jni: Jni, body: impl FnOnce(&Dated) -> T) -> T {
        let mut aged = locked(&self.aged);
        self.bury(jni, &mut aged, true);
        body(&aged.entries)
    }

    /// Begins to go through the living, and counts those of each site by its number. One at a time
    /// does so.
    pub(crate) fn see_all(&self, jni: Jni) -> Vec<u64> {
        let mut aged = locked(&self.aged);
        self.bury(jni, &mut aged, true);
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

    /// The next of them that somebody `wants`, each with a local reference, in a piece so small that
    /// nobody waits for it; `None` when all have been seen.
    pub(crate) fn see(
        &self,
        jni: Jni,
        mut wants: impl FnMut(Entry) -> bool,
    ) -> Option<Vec<(Object, Entry)>> {
        let mut aged = locked(&self.aged);
        let mut chosen = Vec::with_capacity(PIECE);
        // Many that nobody wants are not many to look at.
        for _ in 0..64 {
            let piece = aged.entries.see(PIECE - chosen.len());
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

    /// All that were followed since [`Followed::living`] began, from inside of it.
    pub(crate) fn newcomers(&self) -> Vec<Entry> {
        let lists = self.young.iter().map(|list| locked(list).entries.to_vec());
        lists.collect::<Vec<_>>().concat()
    }

    /// The living of each site, by its number.
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
