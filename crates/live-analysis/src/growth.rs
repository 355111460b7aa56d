//! Sites that grow although garbage is collected.

use crate::columns::{Column, Kind, Tabular};
use crate::history::History;
use crate::names::stack_text;
use profile::{NameId, Profile, TraceId, Volume};

/// The least number of collections after which growth is reported.
pub const FEWEST_COLLECTIONS: usize = 3;
/// The share of the steps between collections in which the live objects must increase.
const RISING: f64 = 0.7;

/// A site whose live objects increase from collection to collection.
#[derive(Clone, Debug, PartialEq)]
pub struct Growing {
    /// The class.
    pub class: String,
    /// The stack that allocates them, innermost frame first.
    pub stack: Vec<String>,
    /// Objects live after the first examined collection.
    pub first: u64,
    /// Objects live after the last one.
    pub last: u64,
    /// Bytes live after the last one.
    pub live_bytes: u64,
    /// Increase in bytes since the first one.
    pub grown_bytes: u64,
    /// Collections examined.
    pub collections: usize,
    /// The share of the steps between collections in which the live objects increased.
    pub rising_share: f64,
    /// For how long the site has not shrunk, in milliseconds before the last snapshot: its live objects are at least
    /// that old.
    pub growing_for_ms: u64,
    /// Bytes per hour, by a line fitted to the values after the collections.
    pub bytes_per_hour: f64,
}

impl Tabular for Growing {
    const SCHEMA: &'static str = "tenure.live.growth/1";
    const ABOUT: &'static str = "Sites whose live objects increase over garbage collections.";
    const SORT: &'static str = "grown_bytes";
    const COLUMNS: &'static [Column<Growing>] = &[
        Column::new(Kind::Name, "class", "Class", "Class name.", |row| {
            row.class.as_str().into()
        }),
        Column::new(
            Kind::Bytes,
            "grown_bytes",
            "Grown",
            "Bytes of the live objects after the last collection, less those after the first.",
            |row| row.grown_bytes.into(),
        ),
        Column::new(
            Kind::Count,
            "first",
            "First live",
            "Live objects after the first collection that was examined.",
            |row| row.first.into(),
        ),
        Column::new(
            Kind::Count,
            "last",
            "Last live",
            "Live objects after the last collection.",
            |row| row.last.into(),
        ),
        Column::new(
            Kind::Bytes,
            "live_bytes",
            "Live bytes",
            "Bytes of the live objects after the last collection.",
            |row| row.live_bytes.into(),
        ),
        Column::new(
            Kind::Rate,
            "bytes_per_hour",
            "Rate",
            "Growth per hour: the slope of a straight line fitted to the live bytes after each collection.",
            |row| row.bytes_per_hour.into(),
        ),
        Column::new(
            Kind::Milliseconds,
            "growing_for_ms",
            "Growing for",
            "Time since the number of live objects last decreased.",
            |row| row.growing_for_ms.into(),
        ),
        Column::new(
            Kind::Count,
            "collections",
            "Collections",
            "Collections that were examined.",
            |row| (row.collections as u64).into(),
        ),
        Column::new(
            Kind::Percent,
            "rising_percent",
            "Rising %",
            "Share of the steps from one collection to the next in which the number of live objects increased.",
            |row| (100.0 * row.rising_share).into(),
        ),
        Column::new(
            Kind::Stack,
            "stack",
            "Stack",
            "The stack that allocates the objects, innermost frame first.",
            |row| (&row.stack).into(),
        ),
    ];
}

/// Sites that grow. `collections` are the times of garbage collections.
pub fn growing(profile: &Profile, history: &History, collections: &[u64]) -> Vec<Growing> {
    let after = after_collections(history.times(), collections);
    if after.len() < FEWEST_COLLECTIONS {
        return Vec::new();
    }
    let (Some(first), Some(last)) = (after.first(), after.last()) else {
        return Vec::new();
    };
    let times: Vec<u64> = after.iter().map(|n| history.times()[*n]).collect();
    let mut found = Vec::new();
    // Only sites with live objects that were allocated after the first collection can have grown.
    for delta in history.range(history.times()[*first], history.times()[*last]) {
        if delta.remaining_bytes() <= 0 {
            continue;
        }
        let live = history.live_at(delta.class, delta.trace);
        let points: Vec<Volume> = after.iter().map(|n| live[*n]).collect();
        found.extend(judge(profile, (delta.class, delta.trace), &points, &times));
    }
    found
}

/// The first snapshot after each collection, without repetition.
fn after_collections(times: &[u64], collections: &[u64]) -> Vec<usize> {
    let mut after: Vec<usize> = collections
        .iter()
        .map(|collection| times.partition_point(|time| time < collection))
        .filter(|n| *n < times.len())
        .collect();
    after.dedup();
    after
}

fn judge(
    profile: &Profile,
    (class, trace): (NameId, TraceId),
    points: &[Volume],
    times: &[u64],
) -> Option<Growing> {
    let (first, last) = (points.first()?, points.last()?);
    let steps = points.windows(2);
    let rising = steps
        .clone()
        .filter(|pair| pair[1].objects > pair[0].objects)
        .count();
    let rising_share = rising as f64 / (points.len() - 1) as f64;
    if last.objects <= first.objects || rising_share < RISING {
        return None;
    }
    let fell = steps
        .clone()
        .rposition(|pair| pair[1].objects < pair[0].objects);
    let since = times[fell.map_or(0, |n| n + 1)];
    Some(Growing {
        class: profile.names.get(class).to_owned(),
        stack: stack_text(profile, trace),
        first: first.objects,
        last: last.objects,
        live_bytes: last.bytes,
        grown_bytes: last.bytes.saturating_sub(first.bytes),
        collections: points.len(),
        rising_share,
        growing_for_ms: times.last()?.saturating_sub(since),
        bytes_per_hour: slope(points, times) * 3_600_000.0,
    })
}

/// Bytes per millisecond of the least squares line.
fn slope(points: &[Volume], times: &[u64]) -> f64 {
    let n = points.len() as f64;
    let begin = times.first().copied().unwrap_or(0);
    let at = |time: &u64| (time - begin) as f64;
    let mean_x = times.iter().map(at).sum::<f64>() / n;
    let mean_y = points.iter().map(|p| p.bytes as f64).sum::<f64>() / n;
    let (mut above, mut below) = (0.0, 0.0);
    for (point, time) in points.iter().zip(times) {
        let x = at(time) - mean_x;
        above += x * (point.bytes as f64 - mean_y);
        below += x * x;
    }
    if below > 0.0 { above / below } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::{Site, SiteTable};

    #[test]
    fn what_grows_over_collections_is_found_and_what_waves_is_not() {
        let mut profile = Profile::default();
        let leak = profile.names.intern("Leak");
        let wave = profile.names.intern("Wave");
        let flat = profile.names.intern("Flat");
        let mut history = History::default();
        for n in 0..20u64 {
            let mut table = SiteTable::default();
            for (class, live) in [(leak, n * 10), (wave, 50 + (n % 3) * 20), (flat, 7)] {
                let volume = |objects| Volume {
                    objects,
                    bytes: objects * 24,
                };
                table.add(Site {
                    class,
                    trace: TraceId(0),
                    live: volume(live),
                    allocated: volume(n * 100 + 200),
                });
            }
            history.push(n * 1000, &table);
        }
        let collections: Vec<u64> = (1..20).map(|n| n * 1000 - 500).collect();
        let found = growing(&profile, &history, &collections);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(
            (found[0].class.as_str(), found[0].first, found[0].last),
            ("Leak", 10, 190)
        );
        assert_eq!(found[0].grown_bytes, 180 * 24);
        assert_eq!(found[0].growing_for_ms, 18_000);
        // 240 bytes a second.
        assert!(
            (found[0].bytes_per_hour - 864_000.0).abs() < 1.0,
            "{}",
            found[0].bytes_per_hour
        );
        assert!(growing(&profile, &history, &collections[..2]).is_empty());
    }
}
