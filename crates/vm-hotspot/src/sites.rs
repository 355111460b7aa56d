//! Allocation sites: what each thread counted, summed up, and who is still alive.

use rustc_hash::FxHashMap;
use vmpi::{AllocationRow, ArenaId, ClassId, FreeRow, ObjectHandle, TraceId};

use crate::config::{EXACT_PER_SITE, Follow};

/// Number of a site: class and stack. 27 bits, to fit in a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct SiteId(pub(crate) u32);

/// The tag of a followed object: site (27 bits), how many objects it stands for
/// as a power of two (6), its size in units of 8 bytes (28, saturating). Bits 61
/// and 62 stay clear: they mark heap walks and classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectTag {
    pub(crate) site: SiteId,
    pub(crate) weight_log2: u32,
    pub(crate) size: u64,
}

const SIZE_BITS: u32 = 28;
const WEIGHT_BITS: u32 = 6;

impl ObjectTag {
    pub(crate) fn encode(self) -> i64 {
        let size = (self.size / 8).min((1 << SIZE_BITS) - 1) as i64;
        i64::from(self.site.0) << (SIZE_BITS + WEIGHT_BITS)
            | i64::from(self.weight_log2) << SIZE_BITS
            | size
    }

    pub(crate) fn decode(tag: i64) -> Option<Self> {
        if tag <= 0 || tag & (crate::registry::CLASS_TAG | crate::registry::WALK_TAG) != 0 {
            return None;
        }
        let size = (tag & ((1 << SIZE_BITS) - 1)) as u64 * 8;
        let weight_log2 = (tag >> SIZE_BITS & ((1 << WEIGHT_BITS) - 1)) as u32;
        Some(Self {
            site: SiteId((tag >> (SIZE_BITS + WEIGHT_BITS)) as u32),
            weight_log2,
            size,
        })
    }
}

/// Follow mask for a site that has made `objects`: 0 follows each.
pub(crate) fn follow_mask(follow: Follow, objects: i64) -> i64 {
    match follow {
        Follow::None => i64::MAX,
        Follow::Every => 0,
        Follow::Adaptive if objects < EXACT_PER_SITE => 0,
        Follow::Adaptive => {
            let every = (objects / EXACT_PER_SITE).cast_unsigned() + 1;
            every.next_power_of_two().cast_signed() - 1
        }
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Site {
    class: ClassId,
    trace: TraceId,
    objects: i64,
    bytes: i64,
    live_objects: i64,
    live_bytes: i64,
    told: [i64; 4],
}

/// All sites.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    rows: Vec<Site>,
    by_key: FxHashMap<(ClassId, TraceId), SiteId>,
    pub(crate) follows: bool,
}

impl Sites {
    /// The site of a class and stack.
    pub(crate) fn site(&mut self, class: ClassId, trace: TraceId) -> SiteId {
        const MOST: usize = 1 << 27;
        if let Some(id) = self.by_key.get(&(class, trace)) {
            return *id;
        }
        if self.rows.len() + 1 == MOST {
            return SiteId(1);
        }
        self.rows.push(Site {
            class,
            trace,
            ..Site::default()
        });
        let id = SiteId(self.rows.len() as u32);
        self.by_key.insert((class, trace), id);
        id
    }

    fn row(&mut self, id: SiteId) -> Option<&mut Site> {
        self.rows.get_mut((id.0 as usize).wrapping_sub(1))
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

    /// Objects were put under a tag (`sign` 1) or died (-1).
    pub(crate) fn tagged(&mut self, tag: ObjectTag, sign: i64) {
        if let Some(row) = self.row(tag.site) {
            row.live_objects += sign << tag.weight_log2;
            row.live_bytes += (sign * tag.size.cast_signed()) << tag.weight_log2;
        }
    }

    /// Totals: live bytes and objects, allocated bytes and objects.
    pub(crate) fn totals(&self) -> [u64; 4] {
        self.rows.iter().fold([0; 4], |sum, row| {
            let [live_objects, live_bytes] = row.live(self.follows);
            let add = [live_bytes, live_objects, row.bytes, row.objects];
            std::array::from_fn(|i| sum[i] + add[i].max(0) as u64)
        })
    }

    /// Differences since the last call.
    pub(crate) fn take(&mut self) -> (Vec<AllocationRow>, Vec<FreeRow>) {
        let (mut allocations, mut frees) = (Vec::new(), Vec::new());
        for row in &mut self.rows {
            let [live_objects, live_bytes] = row.live(self.follows);
            let now = [
                row.objects,
                row.bytes,
                row.objects - live_objects,
                row.bytes - live_bytes,
            ];
            // An estimate may take back a death; it is then told later or never.
            let new: [i64; 4] = std::array::from_fn(|i| (now[i] - row.told[i]).max(0));
            row.told = std::array::from_fn(|i| row.told[i] + new[i]);
            let (class, trace, object) = (row.class, row.trace, ObjectHandle::NULL);
            if new[0] > 0 {
                let (objects, bytes) = (new[0] as u64, new[1] as u64);
                let arena = ArenaId(0);
                allocations.push(AllocationRow {
                    class,
                    trace,
                    arena,
                    objects,
                    bytes,
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
                    object,
                });
            }
        }
        (allocations, frees)
    }
}

impl Site {
    /// Living objects and bytes, at most what was allocated.
    fn live(&self, follows: bool) -> [i64; 2] {
        if !follows {
            return [self.objects, self.bytes];
        }
        [
            self.live_objects.clamp(0, self.objects),
            self.live_bytes.clamp(0, self.bytes),
        ]
    }
}

/// What a thread had counted at a key when it was last looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) site: SiteId,
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
    let mut larger = vec![0; table.len() * 2];
    for entry in table.chunks_exact(stride).filter(|entry| entry[0] != 0) {
        let at = find_slot(&larger, stride, shift - 1, entry[0]);
        larger[at..at + stride].copy_from_slice(entry);
    }
    larger
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_keeps_what_was_put_in() {
        let tag = ObjectTag {
            site: SiteId(0x07ff_fffe),
            weight_log2: 40,
            size: 24,
        };
        assert_eq!(ObjectTag::decode(tag.encode()), Some(tag));
        let huge = ObjectTag {
            size: 1 << 40,
            ..tag
        };
        assert_eq!(
            ObjectTag::decode(huge.encode()).unwrap().size,
            ((1 << 28) - 1) * 8
        );
        assert_eq!(ObjectTag::decode(crate::registry::CLASS_TAG | 5), None);
        assert_eq!(ObjectTag::decode(0), None);
    }

    #[test]
    fn small_sites_are_followed_exactly_and_large_ones_thinned() {
        let check = |objects, mask| assert_eq!(follow_mask(Follow::Adaptive, objects), mask);
        check(1, 0);
        check(EXACT_PER_SITE - 1, 0);
        check(EXACT_PER_SITE, 1);
        check(EXACT_PER_SITE * 100, 127);
        assert_eq!(follow_mask(Follow::Every, 1 << 40), 0);
    }

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
        let site = sites.site(ClassId(1), TraceId(1));
        sites.allocated(site, 10, 240);
        let tag = ObjectTag {
            site,
            weight_log2: 0,
            size: 24,
        };
        (0..10).for_each(|_| sites.tagged(tag, 1));
        (0..7).for_each(|_| sites.tagged(tag, -1));
        let (allocations, frees) = sites.take();
        assert_eq!((allocations[0].objects, allocations[0].bytes), (10, 240));
        assert_eq!((frees[0].objects, frees[0].bytes), (7, 168));
        assert_eq!(sites.take(), (vec![], vec![]));
        assert_eq!(sites.totals(), [72, 3, 240, 10]);
    }
}
