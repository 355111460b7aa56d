//! How big and how full all live objects are, as the agent reads it while somebody looks: no heap dump,
//! no pause. A table that is asked for lets it read again, but so seldom that reading costs the program
//! less than a fiftieth of a core; nobody looks, nothing is read.

use super::classes::{Apart, ClassRow, Measure};
use super::program::Ask;
use super::recorded::Recorded;
use super::session::{Live, now_ms};
use super::table::{NO_CONTEXT, context, place};
use hprof::Serial;
use profile::Estimate;
use rustc_hash::FxHashMap;
use serde::Serialize;
use std::time::{Duration, Instant};
use vmpi::fills::{Fills, SiteFill, Sum};

/// What was read so long ago is new.
const NEW: Duration = Duration::from_secs(2);
/// A reading that took so much CPU time is followed by so many times that of rest.
const REST: u32 = 50;
/// What was read so long ago is waited for to be read again, rather than shown.
const OLD: Duration = Duration::from_secs(60);
/// How long a table waits for a new reading if it can show one, and if it cannot.
const PATIENCE: Duration = Duration::from_millis(100);
const MUCH_PATIENCE: Duration = Duration::from_secs(10);
/// An answer that has not come after this long is no longer waited for.
const LOST: Duration = Duration::from_secs(60);

/// One answer of the agent; classes and stacks by its numbers.
#[derive(Debug)]
struct Reading {
    arrived: Instant,
    time_ms: u64,
    fills: Fills,
}

impl Reading {
    fn is_new(&self) -> bool {
        let cost = Duration::from_micros(self.fills.cpu_us);
        self.arrived.elapsed() < NEW.max(cost * REST)
    }
}

/// What was read so far.
#[derive(Debug, Default)]
pub struct Readings {
    last: Option<Reading>,
    /// Greatest size and capacity in any reading, by class and stack.
    ever: FxHashMap<(u32, u32), [u64; 2]>,
    /// Number of the last question, and when it was asked if it has no answer yet.
    number: u32,
    asked: Option<Instant>,
    /// What was asked for so far is not new enough.
    again: bool,
}

/// Where the sizes and capacities of a table come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Source {
    /// `live` or `dump`.
    pub source: &'static str,
    /// When they were read, in milliseconds since 1970.
    pub time_ms: u64,
    /// Number of the heap dump.
    pub dump: Option<usize>,
    /// Live objects that have a size or a capacity, and how many of them were looked at.
    pub objects: Option<u64>,
    /// See `objects`.
    pub read: Option<u64>,
    /// Objects of the program that were counted as another class's, and have no sizes here.
    pub left_out: Option<u64>,
    /// Whether there were so many stacks and threads that sizes are known by class alone.
    pub by_class: bool,
    /// CPU time of the program that reading took, in microseconds.
    pub cpu_us: Option<u64>,
}

impl Readings {
    /// Takes an answer.
    pub(super) fn take(&mut self, fills: Fills) {
        self.asked = None;
        for row in &fills.rows {
            let ever = self.ever.entry((row.class.0, row.trace.0)).or_default();
            *ever = [ever[0].max(row.size.max), ever[1].max(row.capacity.max)];
        }
        self.last = Some(Reading {
            arrived: Instant::now(),
            time_ms: now_ms(),
            fills,
        });
    }

    /// Who was asked is gone.
    pub(super) fn ask_again(&mut self) {
        self.asked = None;
    }

    /// Where the last reading came from.
    pub(super) fn source(&self) -> Option<Source> {
        let last = self.last.as_ref()?;
        Some(Source {
            source: "live",
            time_ms: last.time_ms,
            dump: None,
            objects: Some(last.fills.objects),
            read: Some(last.fills.read),
            left_out: Some(last.fills.left_out),
            by_class: last.fills.by_class,
            cpu_us: Some(last.fills.cpu_us),
        })
    }

    /// Whoever wants to know next has it read again.
    pub(super) fn read_again(&mut self) {
        self.again = true;
    }

    fn is_new(&self) -> bool {
        !self.again && self.last.as_ref().is_some_and(Reading::is_new)
    }

    fn is_old(&self) -> bool {
        let last = self.last.as_ref();
        last.is_none_or(|last| last.arrived.elapsed() > OLD)
    }
}

impl Live {
    /// Lets the agent read again how big and how full live objects are, if that was not done just now,
    /// and waits for it a little; longer if nothing is known yet or what is known is old, unless the
    /// answer is to be brief.
    pub(super) fn read_fills(&self, is_brief: bool) {
        let Some(commands) = self.commands() else {
            return;
        };
        let plan = self.recorded_mut(|recorded| {
            let readings = &mut recorded.fills;
            if readings.is_new() {
                return None;
            }
            let patience = match readings.is_old() && !is_brief {
                true => MUCH_PATIENCE,
                false => PATIENCE,
            };
            let waiting = readings.asked.filter(|since| since.elapsed() < LOST);
            if waiting.is_none() {
                readings.number = readings.number.wrapping_add(1);
                readings.asked = Some(Instant::now());
                readings.again = false;
            }
            let number = waiting.is_none().then_some(readings.number);
            Some((number, readings.asked, patience))
        });
        let Some((number, asked, patience)) = plan else {
            return;
        };
        if let Some(number) = number
            && commands(Ask::Fills(number)).is_err()
        {
            return;
        }
        let mut pause = Duration::from_millis(1);
        // Those that come later wait for the same answer, and not from the beginning.
        while asked.is_some_and(|since| since.elapsed() < patience) && self.commands().is_some() {
            if self.recorded(|recorded| recorded.fills.asked != asked) {
                return;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

/// Class, loader and thread of a row of a table.
type Key<'a> = (&'a str, Option<String>, Option<String>);

/// The objects of one row of a table.
#[derive(Clone, Debug, Default)]
struct Sums {
    row: SiteFill,
    ever: [u64; 2],
}

/// Adds sizes and capacities of the last reading to the rows of a recording; false without one.
pub(super) fn add(recorded: &Recorded, rows: &mut [ClassRow], apart: Apart) -> bool {
    let (Some(profile), Some(tap)) = (recorded.profile(), recorded.tap()) else {
        return false;
    };
    let readings = &recorded.fills;
    let Some(last) = &readings.last else {
        return false;
    };
    let key = |(class, trace): (u32, u32)| -> Key<'_> {
        let class = tap.class(Serial(class));
        let made_by = || {
            let trace = tap.trace(Serial(trace));
            let context = trace.and_then(|trace| context(profile, trace));
            context.unwrap_or_else(|| NO_CONTEXT.to_owned())
        };
        (
            profile.names.get(class),
            apart.loaders.then(|| place(profile, class).0),
            apart.contexts.then(made_by),
        )
    };
    let mut sums: FxHashMap<Key<'_>, Sums> = FxHashMap::default();
    for (site, ever) in &readings.ever {
        let sum = sums.entry(key(*site)).or_default();
        sum.ever = [sum.ever[0].max(ever[0]), sum.ever[1].max(ever[1])];
    }
    for row in &last.fills.rows {
        let sum = sums.entry(key((row.class.0, row.trace.0))).or_default();
        sum.row.size.merge(&row.size);
        sum.row.capacity.merge(&row.capacity);
        sum.row.capacity_bytes.merge(&row.capacity_bytes);
    }
    for row in rows {
        let key = (&*row.class, row.loader.clone(), row.context.clone());
        let Some(Sums { row: sum, ever }) = sums.get(&key) else {
            continue;
        };
        row.size = measure(&sum.size, ever[0]);
        row.capacity = measure(&sum.capacity, ever[1]);
        row.capacity_bytes = row.capacity.map(|_| whole(sum.capacity_bytes.sum));
        row.capacity_bytes_interval = interval(&sum.capacity_bytes);
    }
    true
}

fn whole(value: f64) -> u64 {
    value.round() as u64
}

/// The ends of the 95 % interval of an estimated sum.
fn interval(sum: &Sum) -> Option<(u64, u64)> {
    (sum.variance > 0.0).then(|| {
        let range = Estimate::of_sum(sum.sum, sum.variance);
        (whole(range.low), whole(range.high))
    })
}

/// The columns of a sum. One that nobody has now, but somebody had, shows what was the greatest.
fn measure(sum: &Sum, max_ever: u64) -> Option<Measure> {
    if sum.is_empty() && max_ever == 0 {
        return None;
    }
    Some(Measure {
        sum: whole(sum.sum),
        max: sum.max,
        max_ever,
        mean: sum.sum / sum.count.max(f64::MIN_POSITIVE),
        interval: interval(sum),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fills(values: &[u64]) -> Fills {
        let mut size = Sum::default();
        values.iter().for_each(|value| size.add(*value, 1.0));
        Fills {
            rows: vec![SiteFill {
                size,
                ..SiteFill::default()
            }],
            ..Fills::default()
        }
    }

    #[test]
    fn the_greatest_ever_is_that_of_all_readings() {
        let mut readings = Readings::default();
        for values in [&[3, 9][..], &[4]] {
            readings.take(fills(values));
        }
        let last = &readings.last.as_ref().unwrap().fills.rows[0].size;
        let measured = measure(last, readings.ever[&(0, 0)][0]).unwrap();
        assert_eq!((measured.sum, measured.max, measured.max_ever), (4, 4, 9));
        assert_eq!((measured.mean, measured.interval), (4.0, None));
        let nobody = measure(&Sum::default(), 9).unwrap();
        assert_eq!((nobody.sum, nobody.max_ever, nobody.mean), (0, 9, 0.0));
        assert_eq!(measure(&Sum::default(), 0), None);
    }

    #[test]
    fn what_stands_for_others_has_an_interval() {
        let mut sum = Sum::default();
        (0..100).for_each(|n| sum.add(n, 20.0));
        let measured = measure(&sum, 99).unwrap();
        assert_eq!(measured.sum, 99 * 50 * 20);
        assert_eq!(measured.mean, 49.5);
        let (low, high) = measured.interval.unwrap();
        assert!(low < measured.sum && measured.sum < high);
    }

    #[test]
    fn what_takes_long_is_read_seldom() {
        let mut readings = Readings::default();
        assert!(!readings.is_new() && readings.is_old());
        readings.take(fills(&[1]));
        assert!(readings.is_new() && !readings.is_old());
        let ago = Duration::from_secs(5);
        let last = readings.last.as_mut().unwrap();
        last.arrived = Instant::now().checked_sub(ago).unwrap();
        assert!(!readings.is_new());
        readings.last.as_mut().unwrap().fills.cpu_us = 300_000;
        assert!(readings.is_new(), "0.3 s of CPU time, 15 s of rest");
    }
}
