//! Monitor contention and waits.

use crate::names::NameId;
use crate::rank::{Cut, Ranked, rank};
use crate::stacks::TraceId;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Contention at one place: threads that found a monitor of one class taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contention {
    /// Class of the monitor's object. The agent uses its own numbering here.
    pub class: NameId,
    /// Where the threads blocked.
    pub trace: TraceId,
    /// How often.
    pub count: u64,
    /// Nanoseconds blocked.
    pub blocked_ns: u64,
}

/// Contention by class and trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ContentionTable {
    rows: Vec<Contention>,
    /// Time of rows the file does not list.
    pub unlisted_ns: u64,
    #[serde(skip)]
    index: FxHashMap<(NameId, TraceId), u32>,
}

impl ContentionTable {
    /// Adds contention to its row.
    pub fn add(&mut self, one: Contention) {
        let next = self.rows.len() as u32;
        let row = *self.index.entry((one.class, one.trace)).or_insert_with(|| {
            self.rows.push(Contention {
                count: 0,
                blocked_ns: 0,
                ..one
            });
            next
        });
        let row = &mut self.rows[row as usize];
        row.count = row.count.saturating_add(one.count);
        row.blocked_ns = row.blocked_ns.saturating_add(one.blocked_ns);
    }

    /// All rows in order of their first contention.
    pub fn rows(&self) -> &[Contention] {
        &self.rows
    }

    /// Nanoseconds of all contention.
    pub fn total_ns(&self) -> u64 {
        let rows = self.rows.iter().map(|row| row.blocked_ns);
        rows.fold(self.unlisted_ns, u64::saturating_add)
    }

    /// Resets all counts to zero.
    pub fn clear(&mut self) {
        for row in &mut self.rows {
            row.count = 0;
            row.blocked_ns = 0;
        }
        self.unlisted_ns = 0;
    }

    /// The rows that MONITOR TIME prints.
    pub fn rank(&self, cutoff: f64) -> Vec<Ranked> {
        let cut = Cut {
            share: cutoff,
            hits_only: true,
        };
        let total = i64::try_from(self.total_ns()).unwrap_or(i64::MAX);
        let cost = |row: usize| i64::try_from(self.rows[row].blocked_ns).unwrap_or(i64::MAX);
        rank(self.rows.len(), total, cut, cost, |row| {
            self.rows[row].count
        })
    }
}

/// Threads and monitors at one moment: MONITOR DUMP.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonitorDump {
    /// Every thread that had started.
    pub threads: Vec<MonitorThread>,
    /// Every monitor that a thread owned or waited for.
    pub monitors: Vec<Monitor>,
}

/// A thread of a monitor dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MonitorThread {
    /// Its serial.
    pub thread: u32,
    /// Where it was.
    pub trace: TraceId,
    /// As the text form writes it: `R`, `MW`, `intr|CW`; `ZO` once it has ended.
    pub status: String,
}

/// A monitor of a monitor dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Monitor {
    /// Class of its object.
    pub class: NameId,
    /// Serial of the thread that owned it, and how often it had entered.
    pub owner: Option<(u32, u32)>,
    /// Serials of threads at its entrance.
    pub waiting_to_enter: Vec<u32>,
    /// Serials of threads in `wait`.
    pub waiting_to_be_notified: Vec<u32>,
}

/// A finished `Object.wait`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// Class of the monitor's object.
    pub class: NameId,
    /// Serial of the thread.
    pub thread: u32,
    /// Nanoseconds waited.
    pub waited_ns: u64,
}
