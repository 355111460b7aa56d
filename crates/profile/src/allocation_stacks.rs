//! Sampled stacks of allocation sites: the share of each stack in the objects of a site.
//!
//! In this mode, a site is an allocating instruction, and its counts are exact. The stacks of some of its objects are
//! read; they are selected independently of the stack, and each represents as many objects as it was selected from.

use crate::estimate::Estimate;
use crate::names::NameId;
use crate::rank::Ranked;
use crate::sites::{SiteOrder, SiteTable, Volume};
use crate::stacks::TraceId;
use rustc_hash::FxHashMap;

/// Samples of one stack of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackSamples {
    /// The site's class.
    pub class: NameId,
    /// The site's trace.
    pub site: TraceId,
    /// The stack.
    pub stack: TraceId,
    /// How many samples.
    pub samples: u64,
    /// How many objects they represent.
    pub objects: u64,
    /// The sum of the squares of the number that each sample represents.
    pub squares: u64,
}

/// The samples of all sites.
#[derive(Clone, Debug, Default)]
pub struct AllocationStacks {
    rows: Vec<StackSamples>,
    known: FxHashMap<(NameId, TraceId, TraceId), usize>,
}

/// The share of a stack in the allocations of a site.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StackShare {
    /// Rank of the site by allocated bytes, from 1.
    pub rank: u32,
    /// Class, site, stack and samples.
    pub of: StackSamples,
    /// Share of the site's objects.
    pub share: Estimate,
    /// That share of the site's allocations.
    pub allocated: Volume,
}

impl AllocationStacks {
    /// Adds samples.
    pub fn add(&mut self, new: StackSamples) {
        let key = (new.class, new.site, new.stack);
        let row = *self.known.entry(key).or_insert_with(|| {
            let (samples, objects, squares) = (0, 0, 0);
            self.rows.push(StackSamples {
                samples,
                objects,
                squares,
                ..new
            });
            self.rows.len() - 1
        });
        let row = &mut self.rows[row];
        row.samples = row.samples.saturating_add(new.samples);
        row.objects = row.objects.saturating_add(new.objects);
        row.squares = row.squares.saturating_add(new.squares);
    }

    /// Removes all samples.
    pub fn clear(&mut self) {
        *self = AllocationStacks::default();
    }

    /// The number of samples.
    pub fn samples(&self) -> u64 {
        self.rows.iter().map(|row| row.samples).sum()
    }

    /// The stacks of the sites that have at least this share of all allocated bytes, by descending bytes of the site
    /// and descending share.
    pub fn shares(&self, sites: &SiteTable, cutoff: f64) -> Vec<StackShare> {
        let mut of_site: FxHashMap<(NameId, TraceId), Vec<StackSamples>> = FxHashMap::default();
        for row in &self.rows {
            of_site.entry((row.class, row.site)).or_default().push(*row);
        }
        let mut shares = Vec::new();
        for ranked in sites.rank(SiteOrder::AllocatedBytes, cutoff) {
            let site = sites.sites()[ranked.row];
            if let Some(rows) = of_site.get_mut(&(site.class, site.trace)) {
                rows.sort_unstable_by_key(|row| (std::cmp::Reverse(row.objects), row.stack.0));
                shares.extend(shares_of(sites, &ranked, rows));
            }
        }
        shares
    }
}

/// The shares of a site's stacks.
fn shares_of<'a>(
    sites: &SiteTable,
    ranked: &Ranked,
    rows: &'a [StackSamples],
) -> impl Iterator<Item = StackShare> + 'a {
    let sum = |of: fn(&StackSamples) -> u64| rows.iter().map(|row| of(row) as f64).sum::<f64>();
    let all = sum(|row| row.objects);
    // The weighted number of objects that the samples represent besides themselves: 0 if every object was sampled.
    let unseen = sum(|row| row.squares) - all;
    let allocated = sites.estimate(ranked.row);
    let rank = ranked.rank;
    rows.iter().map(move |row| {
        let share = Estimate::of_weighted_share(row.objects as f64, all, unseen);
        let part = |whole: Estimate| (share.value * whole.value).round() as u64;
        StackShare {
            rank,
            of: *row,
            share,
            allocated: Volume {
                objects: part(allocated.allocated_objects),
                bytes: part(allocated.allocated_bytes),
            },
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(stack: u32, samples: u64, weight: u64) -> StackSamples {
        StackSamples {
            class: NameId(1),
            site: TraceId(1),
            stack: TraceId(stack),
            samples,
            objects: samples * weight,
            squares: samples * weight * weight,
        }
    }

    fn sites(objects: u64) -> SiteTable {
        let mut sites = SiteTable::default();
        let bytes = objects * 16;
        sites.allocate(NameId(1), TraceId(1), Volume { objects, bytes });
        sites
    }

    #[test]
    fn shares_have_intervals_as_wide_as_the_samples_are_few() {
        let mut table = AllocationStacks::default();
        for (stack, n) in [(2, 75), (3, 25), (2, 225), (3, 75)] {
            table.add(samples(stack, n, 1000));
        }
        assert_eq!(table.samples(), 400);
        let shares = table.shares(&sites(400_040), 0.0);
        let seen: Vec<_> = shares
            .iter()
            .map(|one| (one.rank, one.of.stack.0))
            .collect();
        assert_eq!(seen, [(1, 2), (1, 3)]);
        assert_eq!(
            shares[0].allocated,
            Volume {
                objects: 300_030,
                bytes: 4_800_480
            }
        );
        // Wilson's interval of 300 of 400.
        let wilson = Estimate::of_share(300, 400);
        assert_eq!(shares[0].share.value, 0.75);
        assert!(
            (shares[0].share.low - wilson.low).abs() < 1e-4,
            "{shares:?}"
        );
        assert!(
            (shares[0].share.high - wilson.high).abs() < 1e-4,
            "{shares:?}"
        );
    }

    #[test]
    fn shares_are_exact_where_every_object_was_sampled() {
        let mut table = AllocationStacks::default();
        table.add(samples(2, 3, 1));
        table.add(samples(3, 1, 1));
        let shares = table.shares(&sites(4), 0.0);
        let ends = |one: &StackShare| [one.share.low, one.share.value, one.share.high];
        assert_eq!(ends(&shares[0]), [0.75; 3]);
        assert_eq!(ends(&shares[1]), [0.25; 3]);
        table.clear();
        assert_eq!(table.shares(&sites(4), 0.0), []);
    }

    #[test]
    fn samples_that_stand_for_more_make_wider_intervals() {
        let width = |rows: &[StackSamples]| {
            let mut table = AllocationStacks::default();
            rows.iter().for_each(|row| table.add(*row));
            let share = table.shares(&sites(1000), 0.0)[0].share;
            assert!((0.0..=1.0).contains(&share.low) && share.high <= 1.0);
            share.high - share.low
        };
        let even = width(&[samples(2, 100, 8), samples(3, 100, 8)]);
        let uneven = width(&[
            samples(2, 90, 1),
            samples(2, 10, 71),
            samples(3, 90, 1),
            samples(3, 10, 71),
        ]);
        assert!(uneven > 2.0 * even, "{uneven} {even}");
    }
}
