//! How often each stack of a site was sampled, since the last report.

use rustc_hash::FxHashMap;
use vmpi::{AllocationStackRow, Memory, TraceId, Worth};

use crate::alloc::sites::SiteId;
use crate::vm::costs;

/// Samples of one stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    samples: u64,
    /// Number of objects that the samples stand for.
    objects: u64,
    /// Sum of the squares of these numbers.
    squares: u64,
}

/// Samples of all stacks, by site.
#[derive(Debug, Default)]
pub(crate) struct Tallies(FxHashMap<(SiteId, TraceId), Tally>);

impl Tallies {
    /// Adds a sample that stands for `2^weight_log2` objects. If there is no memory for another stack, it is counted
    /// without a stack.
    pub(crate) fn add(&mut self, memory: &Memory, key: (SiteId, TraceId), weight_log2: u32) {
        let mut key = key;
        if !self.0.contains_key(&key) && !memory.native.take(Worth::Stacks, costs::TALLY) {
            key.1 = TraceId::EMPTY;
            if !self.0.contains_key(&key) {
                memory.native.charge(costs::TALLY);
            }
        }
        let tally = self.0.entry(key).or_default();
        let weight = 1_u64 << weight_log2.min(31);
        tally.samples += 1;
        tally.objects = tally.objects.saturating_add(weight);
        tally.squares = tally.squares.saturating_add(weight * weight);
    }

    /// All samples since the last call.
    pub(crate) fn take(&mut self) -> Vec<(SiteId, AllocationStackRow)> {
        let new = self.0.iter_mut().filter(|(_, tally)| tally.samples > 0);
        new.map(|(&(site, stack), tally)| {
            let tally = std::mem::take(tally);
            let row = AllocationStackRow {
                stack,
                samples: tally.samples,
                objects: tally.objects,
                squares: tally.squares,
                ..AllocationStackRow::default()
            };
            (site, row)
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_add_up_until_they_are_taken() {
        let memory = Memory::default();
        let mut tallies = Tallies::default();
        let [one, other] = [(SiteId(1), TraceId(5)), (SiteId(1), TraceId(3))];
        tallies.add(&memory, one, 0);
        tallies.add(&memory, one, 3);
        tallies.add(&memory, other, 40);
        let row = |stack, samples, objects, squares| {
            let (class, site, stack) = (vmpi::ClassId(0), TraceId::EMPTY, TraceId(stack));
            let row = AllocationStackRow {
                class,
                site,
                stack,
                samples,
                objects,
                squares,
            };
            (SiteId(1), row)
        };
        let most = 1 << 31;
        let mut taken = tallies.take();
        taken.sort_by_key(|(_, row)| row.stack);
        assert_eq!(taken, [row(3, 1, most, most * most), row(5, 2, 9, 65)]);
        assert_eq!(tallies.take(), []);
        tallies.add(&memory, one, 1);
        assert_eq!(tallies.take(), [row(5, 1, 2, 4)]);
    }

    #[test]
    fn without_memory_samples_of_further_stacks_are_of_none() {
        let memory = Memory::new(0);
        let mut tallies = Tallies::default();
        for stack in [3, 4, 5] {
            tallies.add(&memory, (SiteId(1), TraceId(stack)), 1);
        }
        let taken = tallies.take();
        let [(site, row)] = taken[..] else {
            panic!("{taken:?}")
        };
        assert_eq!(
            (site, row.stack, row.samples),
            (SiteId(1), TraceId::EMPTY, 3)
        );
        assert_eq!(memory.native.used(), costs::TALLY);
    }
}
