//! Readings of the agent: how large and how full all live objects were, and whether a reading is recent enough to be
//! shown.

use crate::clock::now_ms;
use live_analysis::origin::Source;
use live_analysis::sizes::Site;
use rustc_hash::FxHashMap;
use std::time::{Duration, Instant};
use vmpi::fills::Fills;

/// A reading that is at most this old is current.
const NEW: Duration = Duration::from_secs(2);
/// After a reading, the next one waits for this many times its CPU time.
const REST: u32 = 50;
/// If a reading is older than this, a request waits for a new one instead of showing it.
const OLD: Duration = Duration::from_secs(60);

/// One answer of the agent, with its numbers for classes and stacks.
#[derive(Debug)]
pub(crate) struct Reading {
    arrived: Instant,
    time_ms: u64,
    pub(crate) fills: Fills,
}

impl Reading {
    fn is_new(&self) -> bool {
        let cost = Duration::from_micros(self.fills.cpu_us);
        self.arrived.elapsed() < NEW.max(cost * REST)
    }
}

/// All readings so far.
#[derive(Debug, Default)]
pub struct Readings {
    pub(crate) last: Option<Reading>,
    /// The largest size and capacity in any reading, by class and stack.
    pub(crate) ever: FxHashMap<Site, [u64; 2]>,
    /// The number of the last request, and the time of the request if it is not answered yet.
    pub(crate) number: u32,
    pub(crate) asked: Option<Instant>,
    /// Whether the pending reading is not recent enough, so that another one must follow.
    pub(crate) again: bool,
}

impl Readings {
    /// Adds an answer.
    pub(crate) fn take(&mut self, fills: Fills) {
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

    /// The agent is gone, so a pending request must be repeated.
    pub(crate) fn ask_again(&mut self) {
        self.asked = None;
    }

    /// The source of the last reading.
    pub(crate) fn source(&self) -> Option<Source> {
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

    /// Makes the next request start a new reading.
    pub(crate) fn read_again(&mut self) {
        self.again = true;
    }

    pub(crate) fn is_new(&self) -> bool {
        !self.again && self.last.as_ref().is_some_and(Reading::is_new)
    }

    pub(crate) fn is_old(&self) -> bool {
        let last = self.last.as_ref();
        last.is_none_or(|last| last.arrived.elapsed() > OLD)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmpi::fills::{SiteFill, Sum};

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
        assert_eq!((last.max, readings.ever[&(0, 0)][0]), (4, 9));
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
