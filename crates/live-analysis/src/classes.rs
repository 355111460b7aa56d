//! The instances of every class: live and allocated numbers from the recording; sizes and capacities from the agent
//! ([`crate::sizes`]) or the last dump. Columns are those of the Cougaar memory profiler.

use crate::columns::{Column, Kind, Tabular};
use crate::contents::{ClassContents, Spread};
use crate::history::Delta;
use crate::names::{NO_CONTEXT, context, place};
use profile::{Estimate, Profile, Volume};
use rustc_hash::FxHashMap;
use serde::Deserialize;

/// Sources for the instances of classes: the recording, a heap dump, or the VM's own histogram, which is taken at a
/// safepoint.
pub const SOURCES: [&str; 3] = ["recording", "dump", "vm"];

/// Sum, maximum, maximum over all readings or dumps, and mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Measure {
    /// Sum.
    pub sum: u64,
    /// The largest value now, or in the last dump.
    pub max: u64,
    /// The largest value in any reading or dump.
    pub max_ever: u64,
    /// Mean.
    pub mean: f64,
    /// The bounds of the 95 % interval of `sum`, if it is an estimate.
    #[serde(default)]
    pub interval: Option<(u64, u64)>,
}

/// A class.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub struct ClassRow {
    /// Class name.
    pub class: String,
    /// Its loader, where loaders are distinguished.
    #[serde(default)]
    pub loader: Option<String>,
    /// The thread that allocated them, where threads are distinguished.
    #[serde(default)]
    pub context: Option<String>,
    /// Share of allocations that were examined, in percent.
    pub sample_percent: f64,
    /// Live objects.
    pub live: u64,
    /// For sampled counts: the bounds of the 95 % interval of `live`.
    #[serde(default)]
    pub live_interval: Option<(u64, u64)>,
    /// The same of `total`.
    #[serde(default)]
    pub total_interval: Option<(u64, u64)>,
    /// Objects freed in the range; unknown without a recording.
    pub freed: Option<u64>,
    /// Objects allocated in the range; unknown without a recording.
    pub total: Option<u64>,
    /// Shallow bytes of one object (the mean, for arrays).
    pub bytes_each: f64,
    /// Bytes of the live objects.
    pub live_bytes: u64,
    /// Bytes of the arrays that they refer to.
    pub capacity_bytes: Option<u64>,
    /// The bounds of its 95 % interval, if it is an estimate.
    #[serde(default)]
    pub capacity_bytes_interval: Option<(u64, u64)>,
    /// Number of elements.
    pub size: Option<Measure>,
    /// Number of elements for which there is space.
    pub capacity: Option<Measure>,
}

impl ClassRow {
    /// Bytes of the live objects and of their arrays: "+Capacity Bytes".
    pub fn with_capacity_bytes(&self) -> u64 {
        let arrays = self.capacity_bytes.unwrap_or(0);
        self.live_bytes.saturating_add(arrays)
    }
}

impl Tabular for ClassRow {
    const SCHEMA: &'static str = "tenure.live.classes/1";
    const ABOUT: &'static str = "The instances of every class.";
    const SORT: &'static str = "live_bytes";
    const COLUMNS: &'static [Column<ClassRow>] = &[
        Column::new(Kind::Name, "class", "Type", "Class name.", |row| {
            row.class.as_str().into()
        }),
        Column::new(
            Kind::Detail,
            "loader",
            "Loader",
            "Its class loader; only if loaders are shown apart.",
            |row| (&row.loader).into(),
        ),
        Column::new(
            Kind::Detail,
            "context",
            "Thread",
            "The thread that allocated the objects; only if threads are shown apart.",
            |row| (&row.context).into(),
        ),
        Column::new(
            Kind::Percent,
            "sample_percent",
            "Sample %",
            "Share of the allocations that is recorded.",
            |row| row.sample_percent.into(),
        ),
        Column::new(
            Kind::Count,
            "live",
            "Live",
            "Live objects, at the end of the range if there is one.",
            |row| row.live.into(),
        ),
        Column::interval("live_interval", "live", |row| row.live_interval.into()),
        Column::new(
            Kind::Count,
            "freed",
            "GC'd",
            "Objects freed in the range; not known without a recording.",
            |row| row.freed.into(),
        ),
        Column::new(
            Kind::Count,
            "total",
            "Total",
            "Objects allocated in the range; not known without a recording.",
            |row| row.total.into(),
        ),
        Column::interval("total_interval", "total", |row| row.total_interval.into()),
        Column::new(
            Kind::Mean,
            "bytes_each",
            "Bytes each",
            "Shallow size of one object; for arrays, the mean.",
            |row| row.bytes_each.into(),
        ),
        Column::new(
            Kind::Bytes,
            "live_bytes",
            "Live bytes",
            "Bytes of the live objects.",
            |row| row.live_bytes.into(),
        ),
        Column::new(
            Kind::Bytes,
            "capacity_bytes",
            "Capacity bytes",
            "Bytes of the arrays that the live objects hold.",
            |row| row.capacity_bytes.into(),
        ),
        Column::interval("capacity_bytes_interval", "capacity_bytes", |row| {
            row.capacity_bytes_interval.into()
        }),
        Column::new(
            Kind::Bytes,
            "with_capacity_bytes",
            "+ Capacity bytes",
            "Bytes of the live objects and of the arrays that they hold.",
            |row| row.with_capacity_bytes().into(),
        ),
        Column::new(
            Kind::Count,
            "size.sum",
            "Size sum",
            "Number of elements in all live objects.",
            |row| row.size.map(|it| it.sum).into(),
        ),
        Column::interval("size.interval", "size.sum", |row| {
            row.size.and_then(|it| it.interval).into()
        }),
        Column::new(
            Kind::Count,
            "size.max",
            "Size max",
            "Largest number of elements in one object.",
            |row| row.size.map(|it| it.max).into(),
        ),
        Column::new(
            Kind::Count,
            "size.max_ever",
            "Size max ever",
            "Largest number of elements in one object, in any reading or heap dump.",
            |row| row.size.map(|it| it.max_ever).into(),
        ),
        Column::new(
            Kind::Mean,
            "size.mean",
            "Size mean",
            "Mean number of elements per object.",
            |row| row.size.map(|it| it.mean).into(),
        ),
        Column::new(
            Kind::Count,
            "capacity.sum",
            "Capacity sum",
            "Number of elements for which all live objects have space.",
            |row| row.capacity.map(|it| it.sum).into(),
        ),
        Column::interval("capacity.interval", "capacity.sum", |row| {
            row.capacity.and_then(|it| it.interval).into()
        }),
        Column::new(
            Kind::Count,
            "capacity.max",
            "Capacity max",
            "Largest number of elements for which one object has space.",
            |row| row.capacity.map(|it| it.max).into(),
        ),
        Column::new(
            Kind::Count,
            "capacity.max_ever",
            "Capacity max ever",
            "Largest capacity of one object, in any reading or heap dump.",
            |row| row.capacity.map(|it| it.max_ever).into(),
        ),
        Column::new(
            Kind::Mean,
            "capacity.mean",
            "Capacity mean",
            "Mean capacity per object.",
            |row| row.capacity.map(|it| it.mean).into(),
        ),
    ];
}

/// Sizes from every dump that has been read, the last one at the end.
pub type AllContents<'a> = &'a [&'a [ClassContents]];

/// By what the objects of one class are split into several rows.
#[derive(Clone, Copy, Debug, Default)]
pub struct Apart {
    /// By loader.
    pub loaders: bool,
    /// By allocating thread, where that is recorded.
    pub contexts: bool,
}

/// The rows from a recording, without sizes.
pub fn of_recording(profile: &Profile, deltas: &[Delta], apart: Apart) -> Vec<ClassRow> {
    type Key<'a> = (&'a str, Option<String>, Option<String>);
    let mut sums: FxHashMap<Key<'_>, Delta> = FxHashMap::default();
    for delta in deltas {
        let loader = apart.loaders.then(|| place(profile, delta.class).0);
        let made_by = || context(profile, delta.trace).unwrap_or_else(|| NO_CONTEXT.to_owned());
        let context = apart.contexts.then(made_by);
        let name = profile.names.get(delta.class);
        sums.entry((name, loader, context)).or_default().add(delta);
    }
    sums.into_iter()
        .map(|((class, loader, context), sum)| {
            let total = sum.total;
            let each = if sum.live.objects > 0 {
                sum.live
            } else {
                total
            };
            ClassRow {
                class: class.to_owned(),
                loader,
                context,
                sample_percent: 100.0 * share(&sum),
                live: sum.live.objects,
                live_interval: interval(sum.live, sum.variances[0], share(&sum)),
                freed: Some(sum.freed.objects),
                total: Some(total.objects),
                total_interval: interval(total, sum.variances[1], share(&sum)),
                bytes_each: mean(each),
                live_bytes: sum.live.bytes,
                ..ClassRow::default()
            }
        })
        .collect()
}

/// The share of objects that was examined. If each object is examined with the probability `p`, an estimate has a
/// variance of `(1 - p) / p` times its value. This gives `p`; if objects had different probabilities, their common one.
fn share(sum: &Delta) -> f64 {
    let of = |volume: Volume, variance: f64| {
        let value = volume.objects as f64;
        (value > 0.0).then(|| value / (value + variance))
    };
    let live = of(sum.live, sum.variances[0]);
    live.or(of(sum.total, sum.variances[1])).unwrap_or(1.0)
}

/// The bounds of the 95 % interval of an estimate; `None` for an exact count.
fn interval(volume: Volume, variance: f64, share: f64) -> Option<(u64, u64)> {
    let range = if volume.objects == 0 && share < 1.0 {
        Estimate::of_none(1.0 / share)
    } else if variance > 0.0 {
        Estimate::of_sum(volume.objects as f64, variance)
    } else {
        return None;
    };
    Some((range.low.round() as u64, range.high.round() as u64))
}

/// The rows of a dump alone; a dump contains no freed objects.
pub fn of_dump(contents: AllContents<'_>) -> Vec<ClassRow> {
    let Some(last) = contents.last() else {
        return Vec::new();
    };
    let row = |class: &ClassContents| row_of(&class.class, class.objects, class.shallow);
    let mut rows: Vec<ClassRow> = last.iter().map(row).collect();
    add_contents(&mut rows, contents);
    rows
}

/// The rows of a dump, split by loader.
pub fn of_loaders(contents: &[ClassContents]) -> Vec<ClassRow> {
    let row = |class: &ClassContents| ClassRow {
        loader: class.loader.clone(),
        size: measure(class.size, class.size.max),
        capacity: measure(class.capacity, class.capacity.max),
        capacity_bytes: Some(class.capacity_bytes),
        ..row_of(&class.class, class.objects, class.shallow)
    };
    contents.iter().map(row).collect()
}

/// The rows of the VM's own histogram, as `GC.class_histogram` prints it.
pub fn of_histogram(text: &str) -> Vec<ClassRow> {
    let mut rows: Vec<ClassRow> = Vec::new();
    let mut known: FxHashMap<String, usize> = FxHashMap::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [number, objects, bytes, name, ..] = words[..] else {
            continue;
        };
        let (Ok(objects), Ok(bytes)) = (objects.parse::<u64>(), bytes.parse::<u64>()) else {
            continue;
        };
        if !number.ends_with(':') {
            continue;
        }
        let name = hprof::readable_class_name(name);
        match known.get(&*name) {
            Some(at) => {
                let row = &mut rows[*at];
                *row = row_of(&name, row.live + objects, row.live_bytes + bytes);
            }
            None => {
                known.insert(name.to_string(), rows.len());
                rows.push(row_of(&name, objects, bytes));
            }
        }
    }
    rows
}

fn row_of(class: &str, objects: u64, bytes: u64) -> ClassRow {
    ClassRow {
        class: class.to_owned(),
        sample_percent: 100.0,
        live: objects,
        bytes_each: mean(Volume { objects, bytes }),
        live_bytes: bytes,
        ..ClassRow::default()
    }
}

fn mean(volume: Volume) -> f64 {
    if volume.objects == 0 {
        return 0.0;
    }
    volume.bytes as f64 / volume.objects as f64
}

/// Adds sizes and capacities to rows of another source.
pub fn add_contents(rows: &mut [ClassRow], contents: AllContents<'_>) {
    let Some(last) = contents.last() else { return };
    let last: FxHashMap<&str, &ClassContents> = last.iter().map(|c| (&*c.class, c)).collect();
    let mut ever: FxHashMap<&str, (u64, u64)> = FxHashMap::default();
    for class in contents.iter().copied().flatten() {
        let max = ever.entry(&class.class).or_default();
        *max = (max.0.max(class.size.max), max.1.max(class.capacity.max));
    }
    for row in rows {
        let Some(class) = last.get(&*row.class) else {
            continue;
        };
        let (size_ever, capacity_ever) = ever.get(&*row.class).copied().unwrap_or_default();
        row.size = measure(class.size, size_ever);
        row.capacity = measure(class.capacity, capacity_ever);
        row.capacity_bytes = Some(class.capacity_bytes);
    }
}

fn measure(spread: Spread, max_ever: u64) -> Option<Measure> {
    Some(Measure {
        sum: spread.sum,
        max: spread.max,
        max_ever,
        mean: spread.mean()?,
        interval: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vms_histogram_becomes_rows() {
        let text = " num     #instances         #bytes  class name (module)\n\
            -------------------------------------------------------\n\
            \x20  1:          3237         736744  [I (java.base@25.0.3)\n\
            \x20  2:            10            160  a.B\n   3:   5   80  a.B\n\
            Total         18246        2047568\n";
        let rows = of_histogram(text);
        let seen: Vec<_> = rows
            .iter()
            .map(|r| (&*r.class, r.live, r.live_bytes))
            .collect();
        assert_eq!(seen, [("int[]", 3237, 736_744), ("a.B", 15, 240)]);
        assert_eq!((rows[1].bytes_each, rows[1].total), (16.0, None));
    }

    #[test]
    fn sampled_counts_have_an_interval_and_full_ones_none() {
        let mut profile = Profile::default();
        let class = profile.names.intern("a.B");
        let live = Volume {
            objects: 50_000,
            bytes: 50_000 * 24,
        };
        let delta = Delta {
            class,
            live,
            total: live,
            ..Delta::default()
        };
        let full = of_recording(&profile, &[delta], Apart::default());
        assert_eq!(
            (full[0].live, full[0].freed, full[0].live_interval),
            (50_000, Some(0), None)
        );
        assert_eq!(full[0].sample_percent, 100.0);
        // One object in 2730, which is the share of objects of 24 bytes when 64 KiB are sampled.
        let chance = 1.0 / 2730.0;
        let variance = 50_000.0 * (1.0 - chance) / chance;
        let sampled = Delta {
            variances: [variance; 2],
            ..delta
        };
        let rows = of_recording(&profile, &[sampled], Apart::default());
        let (low, high) = rows[0].live_interval.unwrap();
        assert!(
            low > 20_000 && low < 50_000 && high > 50_000 && high < 120_000,
            "{low} {high}"
        );
        assert!((rows[0].sample_percent - 0.0366).abs() < 0.001);
        // If no object was sampled, there may still be some.
        let gone = Delta {
            live: Volume::default(),
            variances: [0.0, variance],
            ..sampled
        };
        let rows = of_recording(&profile, &[gone], Apart::default());
        let (low, high) = rows[0].live_interval.unwrap();
        assert!(low == 0 && (9_000..11_000).contains(&high), "{high}");
    }
}
