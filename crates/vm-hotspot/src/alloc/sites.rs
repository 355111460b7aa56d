//! Allocation sites: what each thread counted, summed up.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use vmpi::{AllocationStackRow, ClassId, Memory, Share, TraceId, Worth};

use crate::alloc::tallies::Tallies;
use crate::alloc::tracked::SITE_BITS;
use crate::vm::config::Track;
use crate::vm::costs;

/// Number of a site: class and stack. 26 bits, to leave room for a flag and a weight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct SiteId(pub(crate) u32);

impl SiteId {
    /// No site: objects of a class that is off.
    pub(crate) const NONE: SiteId = SiteId(0);
    const BITS: u32 = SITE_BITS;

    /// The high half of a site's last word in the tracker: the number of the site, and the number of the share of its
    /// objects that is recorded.
    pub(crate) fn word(self, share: u32) -> i64 {
        i64::from(self.0 | share << Self::BITS) << 32
    }

    /// The numbers of site and share in this word.
    pub(crate) fn of_word(word: i64) -> (SiteId, u32) {
        let high = (word.cast_unsigned() >> 32) as u32;
        (SiteId(high & ((1 << Self::BITS) - 1)), high >> Self::BITS)
    }
}

/// Tracking mask of a site before it has made many objects: 0 tracks each object.
pub(crate) fn first_mask(track: Track) -> i64 {
    match track {
        Track::None => i64::from(i32::MAX),
        Track::Every | Track::Exact | Track::Adaptive => 0,
    }
}

/// The counts of a site.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Site {
    pub(crate) class: ClassId,
    pub(crate) trace: TraceId,
    /// The share of its objects that is recorded.
    pub(crate) share: Share,
    /// Size of each object; 0 for arrays, whose sizes differ.
    pub(crate) size: i64,
    pub(crate) objects: i64,
    pub(crate) bytes: i64,
}

/// All sites.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    rows: Vec<Site>,
    by_key: FxHashMap<(ClassId, TraceId, Share), SiteId>,
    pub(crate) is_tracked: bool,
    pub(crate) memory: Arc<Memory>,
    /// Stacks, if they are sampled.
    pub(crate) tallies: Tallies,
    /// Sites that were merged with another one of their class since the last report, because of the memory limit.
    pub(crate) joined: u64,
}

impl Sites {
    /// The site of a class and stack, of whose objects this share is recorded. If there is no memory for a new site,
    /// that of the class without a stack.
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

    /// Class, stack and share of a site, and the size of its objects (0 for arrays).
    pub(crate) fn about(&self, id: SiteId) -> Option<(ClassId, TraceId, Share, u64)> {
        let row = self.rows.get((id.0 as usize).wrapping_sub(1))?;
        Some((
            row.class,
            row.trace,
            row.share,
            row.size.max(0).cast_unsigned(),
        ))
    }

    /// Some of the sites in order of their numbers, from the one after `number` on; none when there are no more. A
    /// copy, so that no other thread waits while it is used.
    pub(crate) fn after(&self, number: usize) -> Vec<Site> {
        const SOME: usize = 1 << 13;
        let rest = self.rows.get(number..).unwrap_or_default();
        rest[..rest.len().min(SOME)].to_vec()
    }

    /// Adds to the allocations of a site.
    pub(crate) fn allocated(&mut self, id: SiteId, objects: i64, bytes: i64) {
        if let Some(row) = self.row(id) {
            row.objects += objects;
            row.bytes += bytes;
        }
    }

    /// Adds what a thread has counted at a key since the last reading.
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

    /// Adds objects, and bytes of arrays, of sites that are recorded in part.
    pub(crate) fn take_chosen(&mut self, chosen: &[(SiteId, [i64; 2])]) {
        for (site, [objects, array_bytes]) in chosen {
            if let Some(row) = self.row(*site) {
                row.objects += objects;
                row.bytes += objects * row.size + array_bytes;
            }
        }
    }

    /// Sampled stacks since the last call, by class and site.
    pub(crate) fn take_stacks(&mut self) -> Vec<AllocationStackRow> {
        let taken = self.tallies.take().into_iter();
        taken
            .filter_map(|(site, row)| {
                let (class, trace, ..) = self.about(site)?;
                Some(AllocationStackRow {
                    class,
                    site: trace,
                    ..row
                })
            })
            .collect()
    }

    /// The size that all objects of a site have.
    pub(crate) fn set_size(&mut self, id: SiteId, size: i64) {
        if let Some(row) = self.row(id) {
            row.size = size;
        }
    }
}

/// What a thread had counted at a key at the last reading.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    pub(crate) site: SiteId,
    /// Whether only some of its objects are recorded; these are counted where they are chosen.
    pub(crate) is_thinned: bool,
    /// The epoch of the class filters when the key was added.
    pub(crate) epoch: u32,
    /// Size of each object, 0 if the bytes are counted (arrays).
    pub(crate) size: i64,
    pub(crate) objects: i64,
    pub(crate) bytes: i64,
}
