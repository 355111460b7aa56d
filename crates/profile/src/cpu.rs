//! CPU profiles: samples, timed calls, and the caller-callee pairs of `cpu=old`.

use crate::names::NameId;
use crate::rank::{Cut, Ranked, rank};
use crate::stacks::TraceId;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// How often each trace was on CPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SampleTable {
    rows: Vec<(TraceId, u64)>,
    /// Samples whose trace the file does not list (cut off below the cutoff).
    pub unlisted: u64,
    /// Nanoseconds between two samples of a thread; 0 when not known.
    pub interval_ns: u64,
    #[serde(skip)]
    index: FxHashMap<TraceId, u32>,
}

impl SampleTable {
    /// An empty table of samples this far apart.
    pub fn new(interval_ns: u64) -> SampleTable {
        SampleTable {
            interval_ns,
            ..SampleTable::default()
        }
    }

    /// Counts samples of one trace.
    pub fn add(&mut self, trace: TraceId, samples: u64) {
        let next = self.rows.len() as u32;
        let row = *self.index.entry(trace).or_insert_with(|| {
            self.rows.push((trace, 0));
            next
        });
        let sum = &mut self.rows[row as usize].1;
        *sum = sum.saturating_add(samples);
    }

    /// Traces and their samples, in order of their first one.
    pub fn rows(&self) -> &[(TraceId, u64)] {
        &self.rows
    }

    /// All samples, the unlisted ones included.
    pub fn total(&self) -> u64 {
        let rows = self.rows.iter().map(|(_, samples)| *samples);
        rows.fold(self.unlisted, u64::saturating_add)
    }

    /// Resets all counts to zero.
    pub fn clear(&mut self) {
        self.rows.iter_mut().for_each(|(_, samples)| *samples = 0);
        self.unlisted = 0;
    }

    /// The rows that CPU SAMPLES prints.
    pub fn rank(&self, cutoff: f64) -> Vec<Ranked> {
        let cut = Cut {
            share: cutoff,
            hits_only: true,
        };
        let samples = |row: usize| self.rows[row].1;
        let total = i64::try_from(self.total()).unwrap_or(i64::MAX);
        rank(
            self.rows.len(),
            total,
            cut,
            |row| i64::try_from(samples(row)).unwrap_or(i64::MAX),
            samples,
        )
    }
}

/// The cost of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Completed calls.
    pub calls: u64,
    /// Nanoseconds in the method itself. The original's could be negative.
    pub self_ns: i64,
    /// Nanoseconds in the method and all it called.
    pub total_ns: i64,
}

impl Cost {
    /// Adds another cost.
    pub fn add(&mut self, other: Cost) {
        self.calls = self.calls.saturating_add(other.calls);
        self.self_ns = self.self_ns.saturating_add(other.self_ns);
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
    }
}

/// What the calls of each trace cost; a trace is the called method and its callers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CostTable {
    rows: Vec<(TraceId, Cost)>,
    /// Time of traces the file does not list.
    pub unlisted_ns: i64,
    #[serde(skip)]
    index: FxHashMap<TraceId, u32>,
}

impl CostTable {
    /// Counts calls of one trace.
    pub fn add(&mut self, trace: TraceId, cost: Cost) {
        let next = self.rows.len() as u32;
        let row = *self.index.entry(trace).or_insert_with(|| {
            self.rows.push((trace, Cost::default()));
            next
        });
        self.rows[row as usize].1.add(cost);
    }

    /// Traces and their cost, in order of their first call.
    pub fn rows(&self) -> &[(TraceId, Cost)] {
        &self.rows
    }

    /// Time of all calls, excluding their callees.
    pub fn total_ns(&self) -> i64 {
        let rows = self.rows.iter().map(|(_, cost)| cost.self_ns);
        rows.fold(self.unlisted_ns, i64::saturating_add)
    }

    /// Resets all counts to zero.
    pub fn clear(&mut self) {
        self.rows
            .iter_mut()
            .for_each(|(_, cost)| *cost = Cost::default());
        self.unlisted_ns = 0;
    }

    /// The rows that CPU TIME prints, by the time in the method itself. With a cutoff of 0, methods that were called
    /// but took no time are included; the original omitted them.
    pub fn rank(&self, cutoff: f64) -> Vec<Ranked> {
        let cut = Cut {
            share: cutoff,
            hits_only: true,
        };
        let cost = |row: usize| self.rows[row].1;
        rank(
            self.rows.len(),
            self.total_ns(),
            cut,
            |row| cost(row).self_ns,
            |row| cost(row).calls,
        )
    }

    /// The rows that `cpu=old` prints: all rows, by descending number of calls.
    pub fn rank_by_calls(&self) -> Vec<usize> {
        let mut rows: Vec<_> = (0..self.rows.len()).collect();
        rows.retain(|row| self.rows[*row].1.calls > 0);
        rows.sort_by_key(|row| std::cmp::Reverse(self.rows[*row].1.calls));
        rows
    }
}

/// A caller and callee pair of the `cpu=old` form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallPair {
    /// `Class.method(signature)`; empty when unknown.
    pub callee: NameId,
    /// Its caller; empty when unknown.
    pub caller: NameId,
    /// Calls.
    pub calls: u64,
    /// Nanoseconds, callees included.
    pub total_ns: i64,
}
