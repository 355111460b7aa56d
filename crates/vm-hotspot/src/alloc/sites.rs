//! Allocation sites: what each thread counted, summed up, and who is still alive.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use vmpi::{AllocationRow, ArenaId, ClassId, FreeRow, Memory, ObjectHandle, Share, TraceId, Worth};

use crate::alloc::followed::{Living, SITE_BITS};
use crate::vm::config::Follow;
use crate::vm::costs;

/// Number of a site: class and stack. 26 bits, to leave room for a flag and a weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct SiteId(pub(crate) u32);

impl SiteId {
    /// No site: objects of a class that is off.
    pub(crate) const NONE: SiteId = SiteId(0);
    const BITS: u32 = SITE_BITS;

    /// The high half of a site's last word in the tracker: the number, and which share of its
    /// objects is looked at, by its number.
    pub(crate) fn word(self, share: u32) -> i64 {
        i64::from(self.0 | share << Self::BITS) << 32
    }

    /// Both of them.
    pub(crate) fn of_word(word: i64) -> (SiteId, u32) {
        let high = (word.cast_unsigned() >> 32) as u32;
        (SiteId(high & ((1 << Self::BITS) - 1)), high >> Self::BITS)
    }
}

/// Follow mask of a site before it has made many objects: 0 follows each.
pub(crate) fn first_mask(follow: Follow) -> i64 {
    match follow {
        Follow::None => i64::from(i32::MAX),
        Follow::Every | Follow::Exact | Follow::Adaptive => 0,
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Site {
    class: ClassId,
    trace: TraceId,
    /// How many of its objects are looked at.
    share: Share,
    /// Size of each object, 0 of arrays, whose sizes differ.
    size: i64,
    objects: i64,
    bytes: i64,
    /// Both at the last [`Sites::settle`].
    settled: [i64; 2],
    living: Living,
    /// What was said of its living was an estimate.
    was_estimated: bool,
    /// Objects and bytes at the last [`Sites::clear`]; what is told is since then.
    cleared: [i64; 2],
    told: [i64; 4],
}

/// All sites.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    rows: Vec<Site>,
    by_key: FxHashMap<(ClassId, TraceId, Share), SiteId>,
    pub(crate) follows: bool,
    pub(crate) memory: Arc<Memory>,
    /// Sites that were merged with another one of their class since the last report, because of the memory limit.
    pub(crate) joined: u64,
}

impl Sites {
    /// The site of a class and stack, of whose objects this share is looked at. Without memory for
    /// another, it is that of the class without a stack.
    pub(crate) fn site(&mut self, class: ClassId, trace: TraceId, share: Share) -> SiteId {
        const MOST: usize = 1 << SITE_BITS;
        if let Some(id) = self.by_key.get(&(class, trace, share)) {
            return *id;
        }
        if trace == TraceId::EMPTY {
            self.memory.native.charge(costs::SITE);
        } else if !self.memory.native.take(Worth::Sites, costs::SITE) {
            self.joined += 1;
            return self.site(class, TraceId::EMPTY, share);
        }
        if self.rows.len() + 1 == MOST {
            return SiteId(1);
        }
        self.rows.push(Site {
            class,
            trace,
            share,
            ..Site::default()
        });
        let id = SiteId(self.rows.len() as u32);
        self.by_key.insert((class, trace, share), id);
        id
    }

    fn row(&mut self, id: SiteId) -> Option<&mut Site> {
        self.rows.get_mut((id.0 as usize).wrapping_sub(1))
    }

    /// The stack of a site.
    pub(crate) fn trace(&self, id: SiteId) -> Option<TraceId> {
        let row = self.rows.get((id.0 as usize).wrapping_sub(1));
        row.map(|row| row.trace)
    }

    /// Class, stack and share of a site, and the size of its objects, 0 of arrays.
    pub(crate) fn about(&self, id: SiteId) -> Option<(ClassId, TraceId, Share, u64)> {
        let row = self.rows.get((id.0 as usize).wrapping_sub(1))?;
        Some((
            row.class,
            row.trace,
            row.share,
            row.size.max(0).cast_unsigned(),
        ))
    }

    /// Class and stack of all sites, in order of their numbers.
    pub(crate) fn keys(&self) -> Vec<(ClassId, TraceId)> {
        self.rows.iter().map(|row| (row.class, row.trace)).collect()
    }

    /// Adds to the allocations of a site.
    pub(crate) fn allocated(&mut self, id: SiteId, objects: i64, bytes: i64) {
        if let Some(row) = self.row(id) {
            row.objects += objects;
            row.bytes += bytes;
        }
    }

    /// Takes over what a thread has counted at a key since it was last looked at.
    pub(crate) fn take_over(&mut self, seen: &mut Seen, objects: i64, bytes: i64) {
        let new = objects - seen.objects;
        let new_bytes = match seen.size {
            0 => bytes - seen.bytes,
            size => new * size,
        };
        (seen.objects, seen.bytes) = (objects, bytes);
        if !seen.is_thinned {
            self.allocated(seen.site, new, new_bytes);
        }
    }

    /// Adds objects, and bytes of arrays, of sites that are thinned out.
    pub(crate) fn take_chosen(&mut self, chosen: &[(SiteId, [i64; 2])]) {
        for (site, [objects, array_bytes]) in chosen {
            if let Some(row) = self.row(*site) {
                row.objects += objects;
                row.bytes += objects * row.size + array_bytes;
                // Those are followed already.
                row.settled = [row.objects, row.bytes];
            }
        }
    }

    /// The size that all objects of a site have.
    pub(crate) fn set_size(&mut self, id: SiteId, size: i64) {
        if let Some(row) = self.row(id) {
            row.size = size;
        }
    }

    /// Takes the present counts as those that are reported next. To be called before the living objects are counted:
    /// an object that was allocated in between is not among those, and would be reported as dead.
    pub(crate) fn settle(&mut self) {
        for row in &mut self.rows {
            row.settled = [row.objects, row.bytes];
        }
    }

    /// Who is alive now, by number of the site. How many sites that is an estimate of for
    /// the first time.
    pub(crate) fn set_living(&mut self, living: &[Living]) -> u64 {
        let mut estimated = 0;
        for (row, number) in self.rows.iter_mut().zip(1..) {
            row.living = living.get(number).copied().unwrap_or_default();
            if row.living.is_estimate && !std::mem::replace(&mut row.was_estimated, true) {
                estimated += 1;
            }
        }
        estimated
    }

    /// What is told from now on is of objects made from now on.
    pub(crate) fn clear(&mut self) {
        for row in &mut self.rows {
            row.cleared = [row.objects, row.bytes];
            row.told = [0; 4];
            row.living = Living {
                old_objects: row.living.objects + row.living.old_objects,
                old_array_bytes: row.living.array_bytes + row.living.old_array_bytes,
                ..Living::default()
            };
        }
    }

    /// Totals since the beginning: live bytes and objects, allocated bytes and objects.
    pub(crate) fn totals(&self) -> [u64; 4] {
        self.rows.iter().fold([0; 4], |sum, row| {
            let [live_objects, live_bytes] = row.live_of_all(self.follows);
            let add = [live_bytes, live_objects, row.bytes, row.objects];
            std::array::from_fn(|i| sum[i] + add[i].max(0) as u64)
        })
    }

    /// Differences since the last call.
    pub(crate) fn take(&mut self) -> (Vec<AllocationRow>, Vec<FreeRow>) {
        let (mut allocations, mut frees) = (Vec::new(), Vec::new());
        for row in &mut self.rows {
            let [live_objects, live_bytes] = row.live(self.follows);
            let [objects, bytes] = row.since_clear();
            let now = [objects, bytes, objects - live_objects, bytes - live_bytes];
            // An estimate may take back a death; it is then told later or never.
            let new: [i64; 4] = std::array::from_fn(|i| (now[i] - row.told[i]).max(0));
            row.told = std::array::from_fn(|i| row.told[i] + new[i]);
            let (class, trace, share) = (row.class, row.trace, row.share);
            let object = ObjectHandle::NULL;
            if new[0] > 0 {
                let (objects, bytes) = (new[0] as u64, new[1] as u64);
                let arena = ArenaId(0);
                allocations.push(AllocationRow {
                    class,
                    trace,
                    arena,
                    objects,
                    bytes,
                    share,
                    object,
                });
            }
            if new[2] > 0 {
                let (objects, bytes) = (new[2] as u64, new[3] as u64);
                frees.push(FreeRow {
                    class,
                    trace,
                    objects,
                    bytes,
                    share,
                    object,
                });
            }
        }
        (allocations, frees)
    }
}

impl Site {
    /// Objects and bytes made from when counts were cleared until they were settled.
    fn since_clear(&self) -> [i64; 2] {
        std::array::from_fn(|i| (self.settled[i] - self.cleared[i]).max(0))
    }

    /// Living objects and bytes of those since counts were cleared, at most these.
    fn live(&self, follows: bool) -> [i64; 2] {
        let Living {
            objects,
            array_bytes,
            ..
        } = self.living;
        self.bounded(follows, objects, array_bytes, self.since_clear())
    }

    /// Living objects and bytes of all, at most what was ever allocated.
    fn live_of_all(&self, follows: bool) -> [i64; 2] {
        let objects = self.living.objects + self.living.old_objects;
        let array_bytes = self.living.array_bytes + self.living.old_array_bytes;
        self.bounded(follows, objects, array_bytes, [self.objects, self.bytes])
    }

    fn bounded(&self, follows: bool, objects: i64, array_bytes: i64, most: [i64; 2]) -> [i64; 2] {
        if !follows {
            return most;
        }
        let bytes = objects * self.size + array_bytes;
        [objects.clamp(0, most[0]), bytes.clamp(0, most[1])]
    }
}

/// What a thread had counted at a key when it was last looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) site: SiteId,
    /// Of its objects not all are looked at: they are counted where they are chosen.
    pub(crate) is_thinned: bool,
    /// The options of classes when it was entered.
    pub(crate) epoch: u32,
    /// Size of each object, 0 if the bytes are counted (arrays).
    pub(crate) size: i64,
    pub(crate) objects: i64,
    pub(crate) bytes: i64,
}

/// Spreads keys over slots; the same number as in the tracker.
pub(crate) const SPREAD: i64 = 0x9E37_79B9_7F4A_7C15_u64.cast_signed();

/// First slot of a key in a table of `1 << (64 - shift)` entries.
pub(crate) fn slot(key: i64, shift: i32) -> usize {
    (key.wrapping_mul(SPREAD).cast_unsigned() >> shift) as usize
}

/// Where `key` is, or the empty place it belongs, in a table of `stride` words an
/// entry whose first word is the key.
pub(crate) fn find_slot(table: &[i64], stride: usize, shift: i32, key: i64) -> usize {
    let entries = table.len() / stride;
    let mut at = slot(key, shift);
    loop {
        let found = table[at * stride];
        if found == key || found == 0 {
            return at * stride;
        }
        at = (at + 1) % entries;
    }
}

/// A table twice as large with the same entries.
pub(crate) fn grow(table: &[i64], stride: usize, shift: i32) -> Vec<i64> {
    rebuild(table, stride, shift - 1)
}

/// A table for another shift with the same entries, for which there has to be room.
pub(crate) fn rebuild(table: &[i64], stride: usize, shift: i32) -> Vec<i64> {
    let mut new = vec![0; stride << (64 - shift)];
    for entry in table.chunks_exact(stride).filter(|entry| entry[0] != 0) {
        let at = find_slot(&new, stride, shift, entry[0]);
        new[at..at + stride].copy_from_slice(entry);
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grown_table_finds_every_key() {
        let mut table = vec![0; 16 * 4];
        let keys: Vec<i64> = (1..9).map(|i| i * 0x1234_5678_9abc).collect();
        for key in &keys {
            let at = find_slot(&table, 4, 60, *key);
            table[at] = *key;
            table[at + 1] = key ^ 1;
        }
        let larger = grow(&table, 4, 60);
        for key in keys {
            let at = find_slot(&larger, 4, 59, key);
            assert_eq!((larger[at], larger[at + 1]), (key, key ^ 1));
        }
    }

    #[test]
    fn deaths_are_allocations_that_are_no_longer_alive() {
        let mut sites = Sites {
            follows: true,
            ..Sites::default()
        };
        let site = sites.site(ClassId(1), TraceId(1), Share::ALL);
        sites.allocated(site, 10, 240);
        sites.settle();
        sites.set_size(site, 24);
        let alive = Living {
            objects: 3,
            is_estimate: true,
            ..Living::default()
        };
        assert_eq!(sites.set_living(&[Living::default(), alive]), 1);
        assert_eq!(sites.set_living(&[Living::default(), alive]), 0);
        let (allocations, frees) = sites.take();
        assert_eq!((allocations[0].objects, allocations[0].bytes), (10, 240));
        assert_eq!((frees[0].objects, frees[0].bytes), (7, 168));
        assert_eq!(sites.take(), (vec![], vec![]));
        assert_eq!(sites.totals(), [72, 3, 240, 10]);
    }

    #[test]
    fn what_is_counted_while_the_living_are_found_is_not_taken_for_dead() {
        let mut sites = Sites {
            follows: true,
            ..Sites::default()
        };
        let site = sites.site(ClassId(1), TraceId(1), Share::ALL);
        sites.set_size(site, 16);
        let told = |sites: &mut Sites, alive| {
            let living = Living {
                objects: alive,
                ..Living::default()
            };
            sites.set_living(&[Living::default(), living]);
            let (allocations, frees) = sites.take();
            let made: u64 = allocations.iter().map(|row| row.objects).sum();
            (made, frees.iter().map(|row| row.objects).sum::<u64>())
        };
        sites.allocated(site, 10, 160);
        sites.settle();
        sites.allocated(site, 5, 80);
        assert_eq!(told(&mut sites, 10), (10, 0));
        // The five are among the living before they are settled.
        assert_eq!(told(&mut sites, 15), (0, 0));
        sites.settle();
        assert_eq!(told(&mut sites, 12), (5, 3));
    }

    #[test]
    fn deaths_of_what_was_there_when_counts_were_cleared_are_not_told() {
        let mut sites = Sites {
            follows: true,
            ..Sites::default()
        };
        let site = sites.site(ClassId(1), TraceId(1), Share::ALL);
        sites.set_size(site, 16);
        sites.allocated(site, 10, 160);
        sites.settle();
        let living = |objects, old_objects| {
            let alive = Living {
                objects,
                old_objects,
                ..Living::default()
            };
            [Living::default(), alive]
        };
        sites.set_living(&living(10, 0));
        sites.take();
        sites.clear();
        assert_eq!(sites.take(), (vec![], vec![]));
        assert_eq!(sites.totals(), [160, 10, 160, 10]);
        sites.allocated(site, 5, 80);
        sites.settle();
        // All of the old die, and one of the new.
        sites.set_living(&living(4, 0));
        let (allocations, frees) = sites.take();
        assert_eq!((allocations[0].objects, allocations[0].bytes), (5, 80));
        assert_eq!((frees[0].objects, frees[0].bytes), (1, 16));
        sites.set_living(&living(0, 0));
        assert_eq!(sites.take().1[0].objects, 4);
        assert_eq!(sites.totals(), [0, 0, 240, 15]);
    }
}
