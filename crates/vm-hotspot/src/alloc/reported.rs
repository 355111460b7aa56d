//! What was reported of the sites, and what will be reported next: live objects, and the differences since the last
//! report.
//!
//! It has a lock of its own. The counts of the state are copied some sites at a time, so that no thread of the program
//! waits for a report.

use vmpi::{AllocationRow, ArenaId, FreeRow, ObjectHandle};

use crate::alloc::sites::{Site, SiteId};
use crate::alloc::tracked::Living;

#[derive(Clone, Copy, Debug, Default)]
struct Row {
    /// The counts at the last [`Reported::settle`].
    site: Site,
    living: Living,
    /// Whether an estimate of its live objects was reported.
    was_estimated: bool,
    /// Objects and bytes at the last [`Reported::clear`]; reports have those since then.
    cleared: [i64; 2],
    announced: [i64; 4],
}

/// All sites that have been settled, by number.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    rows: Vec<Row>,
    is_tracked: bool,
}

impl Reported {
    /// No sites yet. `is_tracked`: whether live objects will be known.
    pub(crate) fn new(is_tracked: bool) -> Self {
        Self {
            rows: Vec::new(),
            is_tracked,
        }
    }

    /// Copies the present counts, which are reported next; `after` copies some sites. Must be called before live
    /// objects are counted: an object that is counted but not among the live ones is reported as freed.
    pub(crate) fn settle(&mut self, after: impl Fn(usize) -> Vec<Site>) {
        let mut number = 0;
        loop {
            let some = after(number);
            if some.is_empty() {
                break;
            }
            for site in some {
                match self.rows.get_mut(number) {
                    Some(row) => row.site = site,
                    None => self.rows.push(Row {
                        site,
                        ..Row::default()
                    }),
                }
                number += 1;
            }
        }
    }

    /// Adds objects, and bytes of arrays, of sites that are recorded in part. These objects are tracked already.
    pub(crate) fn take_chosen(&mut self, chosen: &[(SiteId, [i64; 2])]) {
        for (site, [objects, array_bytes]) in chosen {
            let number = (site.0 as usize).wrapping_sub(1);
            if let Some(Row { site, .. }) = self.rows.get_mut(number) {
                site.objects += objects;
                site.bytes += objects * site.size + array_bytes;
            }
        }
    }

    /// Sets the live objects by number of the site. Returns for how many sites they are an estimate for the first time.
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

    /// From now on reports have only objects that are made later.
    pub(crate) fn clear(&mut self) {
        for row in &mut self.rows {
            row.cleared = [row.site.objects, row.site.bytes];
            row.announced = [0; 4];
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
            let [live_objects, live_bytes] = row.live_of_all(self.is_tracked);
            let add = [live_bytes, live_objects, row.site.bytes, row.site.objects];
            std::array::from_fn(|i| sum[i] + add[i].max(0) as u64)
        })
    }

    /// Differences since the last call.
    pub(crate) fn take(&mut self) -> (Vec<AllocationRow>, Vec<FreeRow>) {
        let (mut allocations, mut frees) = (Vec::new(), Vec::new());
        for row in &mut self.rows {
            let [live_objects, live_bytes] = row.live(self.is_tracked);
            let [objects, bytes] = row.since_clear();
            let now = [objects, bytes, objects - live_objects, bytes - live_bytes];
            // A new estimate may count fewer freed objects than were reported; then none are reported until it exceeds
            // that number.
            let new: [i64; 4] = std::array::from_fn(|i| (now[i] - row.announced[i]).max(0));
            row.announced = std::array::from_fn(|i| row.announced[i] + new[i]);
            let Site {
                class,
                trace,
                share,
                ..
            } = row.site;
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

impl Row {
    /// Objects and bytes made between `clear` and `settle`.
    fn since_clear(&self) -> [i64; 2] {
        let made = [self.site.objects, self.site.bytes];
        std::array::from_fn(|i| (made[i] - self.cleared[i]).max(0))
    }

    /// Live objects and bytes since counts were cleared, at most those that were made.
    fn live(&self, is_tracked: bool) -> [i64; 2] {
        let Living {
            objects,
            array_bytes,
            ..
        } = self.living;
        self.bounded(is_tracked, objects, array_bytes, self.since_clear())
    }

    /// All live objects and bytes, at most those that were ever made.
    fn live_of_all(&self, is_tracked: bool) -> [i64; 2] {
        let objects = self.living.objects + self.living.old_objects;
        let array_bytes = self.living.array_bytes + self.living.old_array_bytes;
        let made = [self.site.objects, self.site.bytes];
        self.bounded(is_tracked, objects, array_bytes, made)
    }

    fn bounded(
        &self,
        is_tracked: bool,
        objects: i64,
        array_bytes: i64,
        most: [i64; 2],
    ) -> [i64; 2] {
        if !is_tracked {
            return most;
        }
        let bytes = objects * self.site.size + array_bytes;
        [objects.clamp(0, most[0]), bytes.clamp(0, most[1])]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alloc::sites::Sites;
    use vmpi::{ClassId, Share, TraceId};

    /// One site, what was reported of it, and its number.
    fn one() -> (Sites, Reported, SiteId) {
        let mut sites = Sites::default();
        let site = sites.site(ClassId(1), TraceId(1), Share::ALL);
        (sites, Reported::new(true), site)
    }

    fn settle(reported: &mut Reported, sites: &Sites) {
        reported.settle(|number| sites.after(number));
    }

    #[test]
    fn deaths_are_allocations_that_are_no_longer_alive() {
        let (mut sites, mut reported, site) = one();
        sites.allocated(site, 10, 240);
        sites.set_size(site, 24);
        settle(&mut reported, &sites);
        let alive = Living {
            objects: 3,
            is_estimate: true,
            ..Living::default()
        };
        assert_eq!(reported.set_living(&[Living::default(), alive]), 1);
        assert_eq!(reported.set_living(&[Living::default(), alive]), 0);
        let (allocations, frees) = reported.take();
        assert_eq!((allocations[0].objects, allocations[0].bytes), (10, 240));
        assert_eq!((frees[0].objects, frees[0].bytes), (7, 168));
        assert_eq!(reported.take(), (vec![], vec![]));
        assert_eq!(reported.totals(), [72, 3, 240, 10]);
    }

    #[test]
    fn what_is_counted_while_the_living_are_found_is_not_taken_for_dead() {
        let (mut sites, mut reported, site) = one();
        sites.set_size(site, 16);
        let announced = |reported: &mut Reported, alive| {
            let living = Living {
                objects: alive,
                ..Living::default()
            };
            reported.set_living(&[Living::default(), living]);
            let (allocations, frees) = reported.take();
            let made: u64 = allocations.iter().map(|row| row.objects).sum();
            (made, frees.iter().map(|row| row.objects).sum::<u64>())
        };
        sites.allocated(site, 10, 160);
        settle(&mut reported, &sites);
        sites.allocated(site, 5, 80);
        assert_eq!(announced(&mut reported, 10), (10, 0));
        // The five are among the live objects before they are settled.
        assert_eq!(announced(&mut reported, 15), (0, 0));
        settle(&mut reported, &sites);
        assert_eq!(announced(&mut reported, 12), (5, 3));
    }

    #[test]
    fn deaths_of_what_was_there_when_counts_were_cleared_are_not_reported() {
        let (mut sites, mut reported, site) = one();
        sites.set_size(site, 16);
        sites.allocated(site, 10, 160);
        settle(&mut reported, &sites);
        let living = |objects, old_objects| {
            let alive = Living {
                objects,
                old_objects,
                ..Living::default()
            };
            [Living::default(), alive]
        };
        reported.set_living(&living(10, 0));
        reported.take();
        reported.clear();
        assert_eq!(reported.take(), (vec![], vec![]));
        assert_eq!(reported.totals(), [160, 10, 160, 10]);
        sites.allocated(site, 5, 80);
        settle(&mut reported, &sites);
        // All of the old die, and one of the new.
        reported.set_living(&living(4, 0));
        let (allocations, frees) = reported.take();
        assert_eq!((allocations[0].objects, allocations[0].bytes), (5, 80));
        assert_eq!((frees[0].objects, frees[0].bytes), (1, 16));
        reported.set_living(&living(0, 0));
        assert_eq!(reported.take().1[0].objects, 4);
        assert_eq!(reported.totals(), [0, 0, 240, 15]);
    }

    #[test]
    fn chosen_objects_of_thinned_sites_are_settled_at_once() {
        let (mut sites, mut reported, site) = one();
        sites.set_size(site, 16);
        settle(&mut reported, &sites);
        let chosen = [(site, [3, 0]), (SiteId(9), [1, 0])];
        sites.take_chosen(&chosen);
        reported.take_chosen(&chosen);
        assert_eq!(reported.totals()[2..], [48, 3]);
        settle(&mut reported, &sites);
        assert_eq!(reported.totals()[2..], [48, 3]);
    }

    #[test]
    fn very_many_sites_are_copied_in_pieces() {
        let (mut sites, mut reported, _) = one();
        for trace in 2..=20_000 {
            let site = sites.site(ClassId(1), TraceId(trace), Share::ALL);
            sites.allocated(site, 1, 8);
        }
        let copied = std::cell::Cell::new(0);
        reported.settle(|number| {
            copied.set(copied.get() + 1);
            sites.after(number)
        });
        assert_eq!(copied.get(), 4);
        assert_eq!(reported.totals()[3], 19_999);
    }
}
