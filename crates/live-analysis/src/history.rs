//! Allocations by site, at any time in the past: the counts of each site whenever they changed.

use profile::{NameId, Profile, Sampling, Site, SiteTable, TraceId, Volume};
use rustc_hash::FxHashMap;

/// The most stored changes; when there are more, every second snapshot is dropped.
const MOST_CHANGES: usize = 4 << 20;

/// The counts of a site at a snapshot.
#[derive(Clone, Copy, Debug)]
struct Change {
    snapshot: u32,
    live: Volume,
    allocated: Volume,
    /// Variances of both numbers of objects, if they are estimates.
    variances: [f64; 2],
}

#[derive(Clone, Debug)]
struct SiteHistory {
    class: NameId,
    trace: TraceId,
    changes: Vec<Change>,
}

/// The changes of a site in a range of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delta {
    /// Class.
    pub class: NameId,
    /// Stack.
    pub trace: TraceId,
    /// Allocated in the range.
    pub allocated: Volume,
    /// Freed in the range.
    pub freed: Volume,
    /// Live at its end.
    pub live: Volume,
    /// Allocated from the beginning of the recording to the end of the range.
    pub total: Volume,
    /// Variances of the objects of `live` and `total`; 0 for exact counts.
    pub variances: [f64; 2],
}

impl Delta {
    /// Objects allocated minus objects freed: what the range added.
    pub fn remaining_objects(&self) -> i64 {
        signed(self.allocated.objects) - signed(self.freed.objects)
    }

    /// Bytes allocated minus bytes freed.
    pub fn remaining_bytes(&self) -> i64 {
        signed(self.allocated.bytes) - signed(self.freed.bytes)
    }

    /// Whether anything was allocated or freed in the range.
    pub fn is_something(&self) -> bool {
        self.allocated != Volume::default() || self.freed != Volume::default()
    }

    /// Removes allocations before the range from `total`; its variance is reduced in proportion to the objects.
    pub fn forget_before(&mut self) {
        if self.total.objects > 0 {
            let part = self.allocated.objects as f64 / self.total.objects as f64;
            self.variances[1] *= part;
        }
        self.total = self.allocated;
    }

    /// Adds another site's counts.
    pub fn add(&mut self, other: &Delta) {
        self.allocated.add(other.allocated);
        self.freed.add(other.freed);
        self.live.add(other.live);
        self.total.add(other.total);
        for (sum, more) in self.variances.iter_mut().zip(other.variances) {
            *sum += more;
        }
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// All snapshots of the sites.
#[derive(Clone, Debug, Default)]
pub struct History {
    times: Vec<u64>,
    sites: Vec<SiteHistory>,
    rows: FxHashMap<(NameId, TraceId), u32>,
    changes: usize,
}

impl History {
    /// Adds a snapshot. If it has the same time as the last one, it replaces it.
    pub fn push(&mut self, time_ms: u64, table: &SiteTable) {
        if self.times.last() != Some(&time_ms) {
            self.times.push(time_ms);
        }
        let snapshot = self.times.len() as u32 - 1;
        for (row, site) in table.sites().iter().enumerate() {
            self.change(snapshot, site, table.variances(row));
        }
        if self.changes > MOST_CHANGES {
            self.thin();
        }
    }

    fn change(&mut self, snapshot: u32, site: &Site, variances: [f64; 2]) {
        let next = self.sites.len() as u32;
        let row = *self
            .rows
            .entry((site.class, site.trace))
            .or_insert_with(|| {
                self.sites.push(SiteHistory {
                    class: site.class,
                    trace: site.trace,
                    changes: Vec::new(),
                });
                next
            });
        let changes = &mut self.sites[row as usize].changes;
        let change = Change {
            snapshot,
            live: site.live,
            allocated: site.allocated,
            variances,
        };
        match changes.last_mut() {
            Some(last) if last.live == site.live && last.allocated == site.allocated => {}
            Some(last) if last.snapshot == snapshot => *last = change,
            _ => {
                changes.push(change);
                self.changes += 1;
            }
        }
    }

    /// Drops every second snapshot except the last.
    fn thin(&mut self) {
        let last = self.times.len() as u32 - 1;
        let kept = |n: u32| n.is_multiple_of(2) || n == last;
        // A change at a dropped snapshot is moved to the next kept one.
        let moved = |n: u32| if kept(n) { n } else { n + 1 };
        let number = |n: u32| n.div_ceil(2);
        self.changes = 0;
        for site in &mut self.sites {
            let mut thinned: Vec<Change> = Vec::with_capacity(site.changes.len() / 2 + 1);
            for change in &site.changes {
                let snapshot = number(moved(change.snapshot));
                match thinned.last_mut() {
                    Some(before) if before.snapshot == snapshot => {
                        *before = Change {
                            snapshot,
                            ..*change
                        };
                    }
                    _ => thinned.push(Change {
                        snapshot,
                        ..*change
                    }),
                }
            }
            self.changes += thinned.len();
            site.changes = thinned;
        }
        let times = self.times.iter().enumerate();
        let times = times
            .filter(|(n, _)| kept(*n as u32))
            .map(|(_, time)| *time);
        self.times = times.collect();
    }

    /// The times of the snapshots.
    pub fn times(&self) -> &[u64] {
        &self.times
    }

    /// Whether a site changed at the last snapshot.
    pub fn has_changed(&self, class: NameId, trace: TraceId) -> bool {
        let site = self.rows.get(&(class, trace));
        let last = site.and_then(|row| self.sites[*row as usize].changes.last());
        last.is_some_and(|change| change.snapshot as usize + 1 == self.times.len())
    }

    /// Whether any site changed at the last snapshot.
    pub fn has_any_changed(&self) -> bool {
        let last = self.times.len();
        let mut changes = self.sites.iter().filter_map(|site| site.changes.last());
        changes.any(|change| change.snapshot as usize + 1 == last)
    }

    /// Objects and bytes that were live at the last snapshot.
    pub fn live(&self) -> Volume {
        let mut live = Volume::default();
        for change in self.sites.iter().filter_map(|site| site.changes.last()) {
            live.add(change.live);
        }
        live
    }

    /// The changes of every site from the last snapshot at or before `from` (from zero if there is none) to the last
    /// one at or before `to`.
    pub fn range(&self, from: u64, to: u64) -> Vec<Delta> {
        let before = |time: u64| self.times.partition_point(|t| *t <= time) as u32;
        let (begin, end) = (before(from), before(to));
        let deltas = self.sites.iter().map(|site| {
            let at = |end: u32| {
                let known = site.changes.partition_point(|change| change.snapshot < end);
                known.checked_sub(1).map(|n| site.changes[n])
            };
            delta(site, at(begin), at(end.max(begin)))
        });
        deltas.filter(|delta| delta.total.objects > 0).collect()
    }

    /// The allocations of the sites of some classes, with their times: that of the first snapshot that has them, in
    /// milliseconds since 1970.
    pub fn allocated_at(&self, is_it: impl Fn(NameId) -> bool) -> Vec<(u64, Volume)> {
        let mut found = Vec::new();
        for site in self.sites.iter().filter(|site| is_it(site.class)) {
            let mut before = Volume::default();
            for change in &site.changes {
                let mut new = change.allocated;
                new.remove(before);
                before = change.allocated;
                found.push((self.times[change.snapshot as usize], new));
            }
        }
        found
    }

    /// The allocations of each site in a range, defined as in [`History::range`], in the order of the snapshots that
    /// have them first: time, class, stack and volume.
    pub fn allocations(&self, from: u64, to: u64) -> Vec<(u64, NameId, TraceId, Volume)> {
        let before = |time: u64| self.times.partition_point(|t| *t <= time) as u32;
        let (begin, end) = (before(from), before(to));
        let mut found = Vec::new();
        for site in &self.sites {
            let mut known = Volume::default();
            for change in &site.changes {
                let mut new = change.allocated;
                new.remove(known);
                known = change.allocated;
                if (begin..end).contains(&change.snapshot) && new != Volume::default() {
                    found.push((change.snapshot, site.class, site.trace, new));
                }
            }
        }
        found.sort_by_key(|one| one.0);
        let timed = found.into_iter();
        timed
            .map(|(n, class, trace, new)| (self.times[n as usize], class, trace, new))
            .collect()
    }

    /// Live objects and bytes of a site at each snapshot.
    pub fn live_at(&self, class: NameId, trace: TraceId) -> Vec<Volume> {
        let mut live = vec![Volume::default(); self.times.len()];
        let Some(row) = self.rows.get(&(class, trace)) else {
            return live;
        };
        let changes = &self.sites[*row as usize].changes;
        for (n, change) in changes.iter().enumerate() {
            let end = changes
                .get(n + 1)
                .map_or(live.len(), |next| next.snapshot as usize);
            live[change.snapshot as usize..end].fill(change.live);
        }
        live
    }
}

fn delta(site: &SiteHistory, begin: Option<Change>, end: Option<Change>) -> Delta {
    let volumes =
        |change: Option<Change>| change.map_or_else(Default::default, |c| (c.live, c.allocated));
    let ((live_before, allocated_before), (live, total)) = (volumes(begin), volumes(end));
    let less = |a: Volume, b: Volume| {
        let mut left = a;
        left.remove(b);
        left
    };
    let allocated = less(total, allocated_before);
    // Objects that were live before or allocated since are either live or freed.
    let mut freed = live_before;
    freed.add(allocated);
    Delta {
        class: site.class,
        trace: site.trace,
        allocated,
        freed: less(freed, live),
        live,
        total,
        variances: end.map_or([0.0; 2], |end| end.variances),
    }
}

/// A profile of a range, for the renderers of profiles: its allocations, and the remaining ones as live.
pub fn as_profile(source: &Profile, deltas: &[Delta]) -> Profile {
    let mut table = SiteTable::new(Sampling::All);
    for delta in deltas {
        let mut live = delta.allocated;
        live.remove(delta.freed);
        table.add(Site {
            class: delta.class,
            trace: delta.trace,
            live,
            allocated: delta.allocated,
        });
    }
    Profile {
        created_ms: source.created_ms,
        names: source.names.clone(),
        stacks: source.stacks.clone(),
        threads: source.threads.clone(),
        places: source.places.clone(),
        sites: Some(table),
        ..Profile::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume(objects: u64) -> Volume {
        Volume {
            objects,
            bytes: objects * 16,
        }
    }

    fn table(rows: &[(u32, u64, u64)]) -> SiteTable {
        let mut table = SiteTable::default();
        for (class, live, allocated) in rows {
            table.add(Site {
                class: NameId(*class),
                trace: TraceId(1),
                live: volume(*live),
                allocated: volume(*allocated),
            });
        }
        table
    }

    #[test]
    fn a_range_is_the_difference_of_its_ends() {
        let mut history = History::default();
        history.push(100, &table(&[(1, 5, 5)]));
        history.push(200, &table(&[(1, 7, 10), (2, 3, 3)]));
        history.push(300, &table(&[(1, 1, 10), (2, 3, 3)]));
        let of = |from, to| history.range(from, to);
        let all = of(0, 400);
        assert_eq!(
            (all[0].allocated, all[0].freed, all[0].live),
            (volume(10), volume(9), volume(1))
        );
        let middle = of(100, 250);
        assert_eq!(
            (middle[0].allocated, middle[0].freed),
            (volume(5), volume(3))
        );
        assert_eq!(middle[0].remaining_objects(), 2);
        assert_eq!(middle[1].allocated, volume(3));
        let end = of(200, 300);
        assert_eq!((end[0].allocated, end[0].freed), (volume(0), volume(6)));
        assert_eq!(end[0].remaining_bytes(), -96);
        let all = history.allocated_at(|class| class == NameId(1));
        assert_eq!(all, [(100, volume(5)), (200, volume(5)), (300, volume(0))]);
        let by_time = history.allocations(150, 400);
        let seen: Vec<_> = by_time
            .iter()
            .map(|(time, class, _, new)| (*time, class.0, *new))
            .collect();
        assert_eq!(seen, [(200, 1, volume(5)), (200, 2, volume(3))]);
        assert!(of(0, 50).is_empty());
        assert_eq!(
            history.live_at(NameId(1), TraceId(1)),
            [volume(5), volume(7), volume(1)]
        );
    }

    #[test]
    fn thinning_keeps_the_counts_of_every_kept_snapshot() {
        let mut full = History::default();
        for n in 0..101u64 {
            full.push(n * 10, &table(&[(1, n % 7, n), (2, n / 3, n)]));
        }
        let mut thin = full.clone();
        thin.thin();
        assert_eq!(thin.times.len(), 51);
        for time in thin.times.clone() {
            assert_eq!(thin.range(0, time), full.range(0, time), "{time}");
        }
    }
}
