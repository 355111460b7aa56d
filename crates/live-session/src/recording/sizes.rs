//! How large and how full all live objects are, as the agent reads it on demand: no heap dump, no pause. A requested
//! table starts a new reading, but so rarely that reading costs the program less than a fiftieth of a core; without
//! requests, nothing is read.

use super::program::Ask;
use super::recorded::Recorded;
use super::state::Live;
use hprof::Serial;
use live_analysis::classes::{Apart, ClassRow};
use live_analysis::sizes;
use std::time::{Duration, Instant};

/// How long a table waits for a new reading: first if an older one can be shown, then if not.
const PATIENCE: Duration = Duration::from_millis(100);
const MUCH_PATIENCE: Duration = Duration::from_secs(10);
/// How long an answer is awaited.
const LOST: Duration = Duration::from_secs(60);

impl Live {
    /// Makes the agent read sizes and capacities of live objects again, unless that was done recently, and waits for it
    /// briefly; longer if there is no reading or it is old, unless `is_brief` is set.
    pub(crate) fn read_fills(&self, is_brief: bool) {
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
        // Later callers wait for the same answer, for the rest of its time.
        while asked.is_some_and(|since| since.elapsed() < patience) && self.commands().is_some() {
            if self.recorded(|recorded| recorded.fills.asked != asked) {
                return;
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }
}

/// Adds sizes and capacities of the last reading to the rows of a recording; returns false if there is no reading.
pub(crate) fn add(recorded: &Recorded, rows: &mut [ClassRow], apart: Apart) -> bool {
    let (Some(profile), Some(tap)) = (recorded.profile(), recorded.tap()) else {
        return false;
    };
    let readings = &recorded.fills;
    let Some(last) = &readings.last else {
        return false;
    };
    let reading = sizes::Reading {
        fills: &last.fills,
        ever: &readings.ever,
        site: &|(class, trace)| (tap.class(Serial(class)), tap.trace(Serial(trace))),
    };
    sizes::add(profile, reading, rows, apart);
    true
}
