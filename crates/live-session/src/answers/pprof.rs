//! `/debug/pprof/NAME?seconds=N` as in Go programs, so that `go tool pprof` and scrapers of Pyroscope, Parca or Alloy
//! can read a JVM.

use super::tables;
use crate::recording::measure::What;
use crate::recording::state::Live;
use profile::Metric;
use profile::write::pprof::write;
use requests::Fault;
use requests::Params;
use std::time::Duration;

/// The default seconds of `profile` and `block`: as Go's `profile`.
const SECONDS: usize = 30;
/// The longest time until an answer.
const MOST_SECONDS: usize = 600;

/// The metrics of `profile`, the main one first.
pub const CPU: [Metric; 2] = [Metric::CpuTime, Metric::Samples];
/// The metrics of `block`.
pub const BLOCK: [Metric; 2] = [Metric::Blocked, Metric::Contentions];
/// The metrics of `allocs`.
pub const ALLOCS: [Metric; 2] = [Metric::AllocatedBytes, Metric::AllocatedObjects];
/// The metrics of `heap`.
pub const HEAP: [Metric; 2] = [Metric::LiveBytes, Metric::LiveObjects];

/// The gzipped profile. `allocs` and `heap` cover the whole recording or the next `seconds`; `profile` and `block`
/// always measure for some time.
///
/// # Errors
/// There is no such profile, nothing is recorded, or `seconds` is invalid.
pub fn answer(live: &Live, name: &str, params: &Params) -> Result<Vec<u8>, Fault> {
    let asked = match params.get("seconds") {
        None => None,
        Some(text) => {
            let seconds = params.number("seconds", 0)?;
            if !(1..=MOST_SECONDS).contains(&seconds) {
                let expected = format!("seconds={text}: expected 1 to {MOST_SECONDS}");
                return Err(Fault::bad(expected));
            }
            Some(Duration::from_secs(seconds as u64))
        }
    };
    let time = asked.unwrap_or(Duration::from_secs(SECONDS as u64));
    let measured = |what, metrics: &[Metric]| {
        let profile = live.measure_for(&[what], time)?;
        Ok(write(&profile, metrics))
    };
    match name {
        "profile" => measured(What::Cpu, &CPU),
        "block" => measured(What::Contention, &BLOCK),
        "allocs" | "heap" => {
            let mut params = params.clone();
            if let Some(time) = asked {
                let (from, to) = live.range_of(time)?;
                params = params.with("from", &from.to_string());
                params = params.with("to", &to.to_string());
            }
            let range = tables::range_profile(live, &params)?;
            let metrics = if name == "heap" { &HEAP } else { &ALLOCS };
            Ok(write(&range, metrics))
        }
        _ => Err(Fault::not_found("expected allocs, heap, profile or block")),
    }
}
