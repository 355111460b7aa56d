//! CPU samples and contention of monitors, on request, for `profile` and `block` of the pprof addresses. Between
//! requests, the agent measures neither.

use super::program::{Ask, Commands, SAMPLES_NS};
use super::recorded::Recorded;
use super::state::{Live, locked};
use crate::clock::now_ms;
use profile::{
    Contention, ContentionTable, Cost, CostTable, NameId, Profile, SampleTable, TraceId,
};
use requests::Fault;
use rustc_hash::FxHashMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long the agent may take to send its results.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// CPU time of threads.
    Cpu,
    /// Waits of threads for monitors that others own.
    Contention,
}

/// The state before the measurement of tables that only grow.
struct Before {
    /// How often contention had been received.
    sent: u64,
    samples: FxHashMap<TraceId, u64>,
    contention: FxHashMap<(NameId, TraceId), (u64, u64)>,
}

impl Before {
    fn of(recorded: &Recorded) -> Before {
        let profile = recorded.profile();
        let samples = profile.and_then(|profile| profile.samples.as_ref());
        let contention = profile.and_then(|profile| profile.contention.as_ref());
        let rows = contention.into_iter().flat_map(ContentionTable::rows);
        Before {
            sent: recorded.measured[1],
            samples: samples
                .into_iter()
                .flat_map(SampleTable::rows)
                .copied()
                .collect(),
            contention: rows
                .map(|row| ((row.class, row.trace), (row.count, row.blocked_ns)))
                .collect(),
        }
    }

    /// The data received since then, with the names and stacks it needs.
    fn since(&self, recorded: &Recorded, what: &[What]) -> Profile {
        let Some(now) = recorded.profile() else {
            return Profile::default();
        };
        let mut found = Profile {
            created_ms: now_ms(),
            names: now.names.clone(),
            stacks: now.stacks.clone(),
            ..Profile::default()
        };
        if what.contains(&What::Cpu) {
            let mut samples = SampleTable::new(SAMPLES_NS);
            let mut times = CostTable::default();
            for (trace, count) in now.samples.iter().flat_map(SampleTable::rows) {
                let new = count.saturating_sub(self.samples.get(trace).copied().unwrap_or(0));
                samples.add(*trace, new);
                let cost = Cost {
                    self_ns: new.saturating_mul(SAMPLES_NS).cast_signed(),
                    ..Cost::default()
                };
                times.add(*trace, cost);
            }
            (found.samples, found.costs) = (Some(samples), Some(times));
        }
        if what.contains(&What::Contention) {
            let mut table = ContentionTable::default();
            for row in now.contention.iter().flat_map(ContentionTable::rows) {
                let before = self.contention.get(&(row.class, row.trace));
                let (count, blocked_ns) = before.copied().unwrap_or_default();
                table.add(Contention {
                    count: row.count.saturating_sub(count),
                    blocked_ns: row.blocked_ns.saturating_sub(blocked_ns),
                    ..*row
                });
            }
            found.contention = Some(table);
        }
        found
    }
}

impl Live {
    /// Measures for this time; only one measurement runs at a time. It ends early if the program ends, and then has
    /// what the agent sent at the end.
    ///
    /// # Errors
    /// No agent is connected, or it does not answer.
    pub fn measure_for(&self, what: &[What], time: Duration) -> Result<Profile, Fault> {
        let _turn = locked(&self.measuring);
        let none = || Fault::not_found("nothing is being recorded; start a recording first");
        let commands = self.commands().ok_or_else(none)?;
        let [cpu, contention] = [What::Cpu, What::Contention].map(|one| what.contains(&one));
        if cpu {
            self.begin_samples(&commands)?;
        }
        let before = self.recorded(Before::of);
        if contention {
            commands(Ask::Monitors(true)).map_err(Fault::failed)?;
        }
        self.pass(time);
        let answered = self.end_measuring(&commands, what, &before);
        if answered.is_err() {
            self.await_last_counts();
        }
        if self.is_connected() {
            answered?;
        }
        Ok(self.recorded(|now| before.since(now, what)))
    }

    /// Makes the agent send its measurements, and waits for them.
    fn end_measuring(
        &self,
        commands: &Commands,
        what: &[What],
        before: &Before,
    ) -> Result<(), Fault> {
        let contention = what.contains(&What::Contention);
        if contention {
            commands(Ask::Monitors(false)).map_err(Fault::failed)?;
        }
        if what.contains(&What::Cpu) {
            self.end_samples(commands)?;
        }
        let begun = Instant::now();
        let has_come = || self.recorded(|now| now.measured[1] > before.sent);
        while contention && !has_come() {
            if self.commands().is_none() {
                return Err(Fault::failed("the agent is gone"));
            }
            if begun.elapsed() > PATIENCE {
                return Err(Fault::failed("the agent has not answered"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Waits for this time, and returns the covered range: from the last snapshot of the sites before it to the first
    /// one after it, in milliseconds since 1970.
    ///
    /// # Errors
    /// No agent is connected.
    pub fn range_of(&self, time: Duration) -> Result<(u64, u64), Fault> {
        let none = || Fault::not_found("nothing is being recorded; start a recording first");
        let commands = self.commands().ok_or_else(none)?;
        self.settle(&commands).map_err(Fault::failed)?;
        let from = now_ms();
        self.pass(time);
        self.settle(&commands).map_err(Fault::failed)?;
        Ok((from, now_ms()))
    }

    fn pass(&self, time: Duration) {
        let (begun, before) = (Instant::now(), self.finished.load(Ordering::Relaxed));
        let goes_on = || self.alive() && self.finished.load(Ordering::Relaxed) == before;
        self.status.send_modify(|status| status.measuring += 1);
        while goes_on() && begun.elapsed() < time {
            let rest = time.saturating_sub(begun.elapsed());
            std::thread::sleep(rest.min(Duration::from_millis(50)));
        }
        self.status.send_modify(|status| status.measuring -= 1);
    }

    /// Ends the running measurements now; their results cover the time until then.
    pub fn finish(&self) {
        self.finished.fetch_add(1, Ordering::Relaxed);
    }
}
