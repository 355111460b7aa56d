//! CPU samples by range of time.

use crate::history::Delta;
use profile::{Cost, CostTable, NameId, Profile, SampleTable, Sampling, Site, SiteTable, Volume};

/// The samples so far as a table of sites, so that [`crate::history`] can store their history.
pub fn as_sites(table: &SampleTable, period_ns: u64) -> SiteTable {
    let mut sites = SiteTable::new(Sampling::All);
    for (trace, samples) in table.rows() {
        sites.add(Site {
            class: NameId::default(),
            trace: *trace,
            live: Volume::default(),
            allocated: Volume {
                objects: *samples,
                bytes: samples.saturating_mul(period_ns),
            },
        });
    }
    sites
}

/// The samples of a range as a separate profile.
pub fn as_profile(source: &Profile, deltas: &[Delta], period_ns: u64) -> Profile {
    let (mut samples, mut costs) = (SampleTable::new(period_ns), CostTable::default());
    for delta in deltas {
        samples.add(delta.trace, delta.allocated.objects);
        let cost = Cost {
            self_ns: delta.allocated.bytes.cast_signed(),
            ..Cost::default()
        };
        costs.add(delta.trace, cost);
    }
    Profile {
        created_ms: source.created_ms,
        names: source.names.clone(),
        stacks: source.stacks.clone(),
        threads: source.threads.clone(),
        samples: Some(samples),
        costs: Some(costs),
        ..Profile::default()
    }
}
