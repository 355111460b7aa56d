//! Allocation sites: allocated objects by class and stack, and how many of them are live.

use crate::estimate::{Estimate, Sampling, Weight};
use crate::names::NameId;
use crate::rank::{Cut, Ranked, rank};
use crate::stacks::TraceId;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Objects and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Number of objects.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Volume {
    /// Adds, limited to the largest number.
    pub fn add(&mut self, other: Volume) {
        self.objects = self.objects.saturating_add(other.objects);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    /// Subtracts, limited to zero.
    pub fn remove(&mut self, other: Volume) {
        self.objects = self.objects.saturating_sub(other.objects);
        self.bytes = self.bytes.saturating_sub(other.bytes);
    }
}

/// What SITES is sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SiteOrder {
    /// Bytes not known to be collected.
    #[default]
    LiveBytes,
    /// Bytes ever allocated.
    AllocatedBytes,
}

/// One site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Class name as in Java source (`int[]`). The agent uses its own numbering here.
    pub class: NameId,
    /// Where.
    pub trace: TraceId,
    /// Not known to be collected.
    pub live: Volume,
    /// Ever allocated.
    pub allocated: Volume,
}

/// The table of sites, one row per class and trace. In a sampled profile the volumes are those of
/// the samples; [`SiteTable::estimate`] scales them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SiteTable {
    sites: Vec<Site>,
    /// The weights of live and allocated samples, row by row; empty while every count is exact.
    weights: Vec<(Weight, Weight)>,
    /// How objects were chosen.
    pub sampling: Sampling,
    #[serde(skip)]
    rows: FxHashMap<(NameId, TraceId), u32>,
}

impl SiteTable {
    /// An empty table of exact counts or of samples.
    pub fn new(sampling: Sampling) -> SiteTable {
        SiteTable {
            sampling,
            ..SiteTable::default()
        }
    }

    /// The row of a site, which is added if it is new.
    pub fn row(&mut self, class: NameId, trace: TraceId) -> usize {
        let next = self.sites.len() as u32;
        let row = *self.rows.entry((class, trace)).or_insert_with(|| {
            self.sites.push(Site {
                class,
                trace,
                ..Site::default()
            });
            if self.sampling != Sampling::All || !self.weights.is_empty() {
                self.weights.push(Default::default());
            }
            next
        });
        row as usize
    }

    /// Adds weights to the table; existing rows get those of exact counts.
    fn keep_weights(&mut self) {
        let known = self.weights.len();
        let exact = self.sites[known..].iter().map(|site| {
            let weight = |volume| Sampling::All.weight(volume);
            (weight(site.live), weight(site.allocated))
        });
        self.weights.extend(exact);
    }

    /// Counts allocated objects.
    pub fn allocate(&mut self, class: NameId, trace: TraceId, volume: Volume) {
        self.allocate_part(class, trace, volume, 1.0);
    }

    /// Counts allocated objects of which only this share was examined: the volume is that of the examined ones.
    pub fn allocate_part(&mut self, class: NameId, trace: TraceId, volume: Volume, share: f64) {
        let row = self.row(class, trace);
        if share < 1.0 {
            self.keep_weights();
        }
        self.sites[row].live.add(volume);
        self.sites[row].allocated.add(volume);
        if let Some((live, allocated)) = self.weights.get_mut(row) {
            let weight = self.sampling.weight_of_part(volume, share);
            live.add(weight);
            allocated.add(weight);
        }
    }

    /// Counts freed objects of a site.
    pub fn free(&mut self, class: NameId, trace: TraceId, volume: Volume) {
        self.free_part(class, trace, volume, 1.0);
    }

    /// Counts freed objects that were allocated with [`SiteTable::allocate_part`].
    pub fn free_part(&mut self, class: NameId, trace: TraceId, volume: Volume, share: f64) {
        let row = self.row(class, trace);
        self.sites[row].live.remove(volume);
        if let Some((live, _)) = self.weights.get_mut(row) {
            live.remove(self.sampling.weight_of_part(volume, share));
        }
    }

    /// Adds a row of estimates, with the variances of its live and its allocated objects.
    pub fn add_estimate(&mut self, site: Site, variances: [f64; 2]) {
        let row = self.row(site.class, site.trace);
        self.keep_weights();
        self.sites[row].live.add(site.live);
        self.sites[row].allocated.add(site.allocated);
        if let Some((live, allocated)) = self.weights.get_mut(row) {
            live.add(Weight::of_estimate(site.live, variances[0]));
            allocated.add(Weight::of_estimate(site.allocated, variances[1]));
        }
    }

    /// Whether some of the counts are estimates.
    pub fn is_estimate(&self) -> bool {
        !self.weights.is_empty()
    }

    /// Variances of a row's live and allocated objects; 0 for exact counts.
    pub fn variances(&self, row: usize) -> [f64; 2] {
        let weights = self.weights.get(row);
        weights.map_or([0.0; 2], |(live, allocated)| {
            [live.variance(), allocated.variance()]
        })
    }

    /// Adds a row that was read from a file.
    pub fn add(&mut self, site: Site) {
        let row = self.row(site.class, site.trace);
        self.sites[row].live.add(site.live);
        self.sites[row].allocated.add(site.allocated);
        if let Some((live, allocated)) = self.weights.get_mut(row) {
            live.add(self.sampling.weight(site.live));
            allocated.add(self.sampling.weight(site.allocated));
        }
    }

    /// Resets the counts of allocations; the counts of live objects stay.
    pub fn clear_allocated(&mut self) {
        for site in &mut self.sites {
            site.allocated = Volume::default();
        }
        for (_, allocated) in &mut self.weights {
            *allocated = Weight::default();
        }
    }

    /// Resets all volumes but keeps the rows.
    pub fn clear(&mut self) {
        for site in &mut self.sites {
            site.live = Volume::default();
            site.allocated = Volume::default();
        }
        self.weights.fill(Default::default());
    }

    /// All sites in order of their first allocation.
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// Sums of live and allocated volumes.
    pub fn totals(&self) -> (Volume, Volume) {
        let mut totals = (Volume::default(), Volume::default());
        for site in &self.sites {
            totals.0.add(site.live);
            totals.1.add(site.allocated);
        }
        totals
    }

    /// The rows that SITES prints: sorted by one volume (in a sampled table, the estimates) and cut on the share of the
    /// same one. (The original cut on live bytes in either order, so a list sorted by allocation ended at its first
    /// site with mostly freed objects.)
    pub fn rank(&self, order: SiteOrder, cutoff: f64) -> Vec<Ranked> {
        let bytes: Vec<i64> = (0..self.sites.len())
            .map(|row| {
                let all = self.estimate(row);
                let one = match order {
                    SiteOrder::LiveBytes => all.live_bytes,
                    SiteOrder::AllocatedBytes => all.allocated_bytes,
                };
                one.value.round() as i64
            })
            .collect();
        let cut = Cut {
            share: cutoff,
            hits_only: false,
        };
        let total = bytes.iter().fold(0i64, |sum, one| sum.saturating_add(*one));
        rank(bytes.len(), total, cut, |row| bytes[row], |_| 1)
    }

    /// The estimates of each class over all its sites, by descending allocated bytes.
    pub fn estimate_classes(&self) -> Vec<ClassEstimate> {
        let mut order = Vec::new();
        let mut sums: FxHashMap<NameId, (Weight, Weight)> = FxHashMap::default();
        for (row, site) in self.sites.iter().enumerate() {
            let exact = || {
                let weight = |volume| Sampling::All.weight(volume);
                (weight(site.live), weight(site.allocated))
            };
            let (live, allocated) = self.weights.get(row).copied().unwrap_or_else(exact);
            let sum = sums.entry(site.class).or_insert_with(|| {
                order.push(site.class);
                Default::default()
            });
            sum.0.add(live);
            sum.1.add(allocated);
        }
        let mut classes: Vec<_> = order
            .into_iter()
            .map(|class| ClassEstimate {
                class,
                estimate: estimate_of(&sums[&class]),
            })
            .collect();
        let bytes = |one: &ClassEstimate| one.estimate.allocated_bytes.value;
        classes.sort_by(|a, b| bytes(b).total_cmp(&bytes(a)));
        classes
    }

    /// The estimated live and allocated bytes and objects of a row, with their 95 % intervals.
    pub fn estimate(&self, row: usize) -> SiteEstimate {
        let site = self.sites[row];
        match self.weights.get(row) {
            None => SiteEstimate {
                live_bytes: Estimate::exact(site.live.bytes),
                live_objects: Estimate::exact(site.live.objects),
                allocated_bytes: Estimate::exact(site.allocated.bytes),
                allocated_objects: Estimate::exact(site.allocated.objects),
            },
            Some(weights) => estimate_of(weights),
        }
    }
}

fn estimate_of((live, allocated): &(Weight, Weight)) -> SiteEstimate {
    SiteEstimate {
        live_bytes: live.bytes(),
        live_objects: live.objects(),
        allocated_bytes: allocated.bytes(),
        allocated_objects: allocated.objects(),
    }
}

/// What all sites of one class stand for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClassEstimate {
    /// The class.
    pub class: NameId,
    /// Its sites together.
    pub estimate: SiteEstimate,
}

/// What a site stands for. Exact tables give intervals of no width.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SiteEstimate {
    /// Bytes not known to be collected.
    pub live_bytes: Estimate,
    /// Objects not known to be collected.
    pub live_objects: Estimate,
    /// Bytes ever allocated.
    pub allocated_bytes: Estimate,
    /// Objects ever allocated.
    pub allocated_objects: Estimate,
}
