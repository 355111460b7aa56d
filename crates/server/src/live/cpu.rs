//! CPU samples while a page wants them: where threads use CPU time, by range of time.

use super::ask::{pattern, range};
use super::history::Delta;
use super::program::{Ask, Commands, Recording, SAMPLES_NS};
use super::session::{Live, locked};
use super::table;
use crate::explorer::params::Params;
use crate::reply::Fault;
use profile::{
    Cost, CostTable, Metric, NameId, Profile, SampleTable, Sampling, Site, SiteTable, Volume,
};
use report::profile::Form;
use report::profile::difference::{ProfileDifference, difference};
use report::profile::top::{TopProfile, top};
use serde::Serialize;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What an agent that is loaded for the CPU alone records when allocations are recorded later.
const LATER: Recording = Recording::Sampled {
    interval: 512 << 10,
    depth: DEPTH,
    native: None,
};
/// Frames per stack.
const DEPTH: u32 = 64;
/// How long the agent may take to send what it has.
const PATIENCE: Duration = Duration::from_secs(30);
/// Methods and stacks of an answer when nothing else is asked for.
const ROWS: usize = 100;

/// The samples so far as a table whose history can be kept.
pub(super) fn as_sites(table: &SampleTable) -> SiteTable {
    let mut sites = SiteTable::new(Sampling::All);
    for (trace, samples) in table.rows() {
        sites.add(Site {
            class: NameId::default(),
            trace: *trace,
            live: Volume::default(),
            allocated: Volume {
                objects: *samples,
                bytes: samples.saturating_mul(SAMPLES_NS),
            },
        });
    }
    sites
}

/// Where the CPU time of a range went, or what differs from another range.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Answer {
    /// `tenure.profile/1`.
    Top(Box<TopProfile>),
    /// `tenure.profile_difference/1`.
    Difference(ProfileDifference),
}

/// The CPU time of a range by method and by stack; with `base_from` and `base_to` the difference to that range.
///
/// # Errors
/// When the CPU has never been sampled, or a parameter is wrong.
pub fn answer(live: &Live, params: &Params) -> Result<Answer, Fault> {
    let limit = Some(params.limit(ROWS)?);
    let profile = of_range(live, params)?;
    Ok(match base(live, params)? {
        None => Answer::Top(Box::new(top(&profile, Metric::CpuTime, limit))),
        Some(base) => Answer::Difference(difference(&profile, &base, Metric::CpuTime, limit)),
    })
}

/// The same as tables of a page without script.
pub(super) fn plain(live: &Live, params: &Params) -> Result<String, Fault> {
    let doc = match answer(live, params)? {
        Answer::Top(answer) => report::profile::top::doc(&answer, Metric::CpuTime, Some(ROWS)),
        Answer::Difference(answer) => report::profile::difference::doc(&answer, Metric::CpuTime),
    };
    Ok(report::html::render(&doc, 2))
}

/// The same in a form other tools read; the flame graph shows the difference to `base_from` and `base_to`.
///
/// # Errors
/// As [`answer`].
pub fn rendered(live: &Live, params: &Params, form: Form) -> Result<Vec<u8>, Fault> {
    let profile = of_range(live, params)?;
    let base = base(live, params)?.filter(|_| form == Form::Html);
    let (metric, title) = (Some(Metric::CpuTime), "CPU time");
    Ok(match base {
        Some(base) => report::profile::render_difference(&profile, &base, metric, title),
        None => report::profile::render(&profile, form, metric, title),
    })
}

fn base(live: &Live, params: &Params) -> Result<Option<Profile>, Fault> {
    let (Some(from), Some(to)) = (params.get("base_from"), params.get("base_to")) else {
        return Ok(None);
    };
    let params = params.clone().with("from", from).with("to", to);
    of_range(live, &params).map(Some)
}

/// The samples of a range as a profile of their own.
fn of_range(live: &Live, params: &Params) -> Result<Profile, Fault> {
    let (range, pattern) = (range(params)?, pattern(params)?);
    live.recorded(|recorded| {
        let none = || Fault::not_found("the CPU has not been sampled; start that first");
        let source = recorded
            .profile()
            .filter(|_| !recorded.cpu.times().is_empty());
        let source = source.ok_or_else(none)?;
        let mut deltas = recorded.cpu.range(range.from, range.to);
        deltas.retain(Delta::is_something);
        table::filter(source, &mut deltas, pattern.as_ref());
        let (mut samples, mut costs) = (SampleTable::new(SAMPLES_NS), CostTable::default());
        for delta in &deltas {
            samples.add(delta.trace, delta.allocated.objects);
            let cost = Cost {
                self_ns: delta.allocated.bytes.cast_signed(),
                ..Cost::default()
            };
            costs.add(delta.trace, cost);
        }
        Ok(Profile {
            created_ms: source.created_ms,
            names: source.names.clone(),
            stacks: source.stacks.clone(),
            threads: source.threads.clone(),
            samples: Some(samples),
            costs: Some(costs),
            ..Profile::default()
        })
    })
}

impl Live {
    /// Takes CPU samples from now on, or no longer. Loads the agent if it is not there.
    ///
    /// # Errors
    /// When no agent can be loaded, or it is gone, in words.
    pub fn sample_cpu(self: &Arc<Self>, on: bool) -> Result<(), String> {
        if self.status.borrow().cpu == on {
            return Ok(());
        }
        let what = if on {
            "Starting to sample the CPU"
        } else {
            "Ending the CPU samples"
        };
        self.busy(what, || {
            if on && self.commands().is_none() {
                let agent = self.program().record(LATER)?;
                self.connect(agent);
                self.command(Ask::Allocations(false))?;
                self.set_recording(false);
            }
            // If the agent is gone, there is nothing to end.
            if let Some(commands) = self.commands() {
                let done = if on {
                    self.begin_samples(&commands)
                } else {
                    self.end_samples(&commands)
                };
                done.map_err(|fault| fault.message)?;
            }
            self.status.send_modify(|status| status.cpu = on);
            self.mark(if on {
                "CPU samples started"
            } else {
                "CPU samples ended"
            });
            Ok(())
        })
    }

    fn command(&self, ask: Ask) -> Result<(), String> {
        let commands = self.commands().ok_or("the agent is gone")?;
        commands(ask)
    }

    /// The agent may go on with what a server before this one has begun: what it has comes, and that ends.
    pub(super) fn end_old_samples(&self) {
        let was_sampled = self.recorded(|recorded| !recorded.cpu.times().is_empty());
        if let Some(commands) = self.commands().filter(|_| was_sampled) {
            // If the agent is gone, whoever reads its stream says so.
            let _ = self.order_samples(&commands, Ask::Samples(false));
        }
    }

    /// Asks for the samples since the last ones, where they are taken and the last ones have come.
    pub(super) fn ask_samples(&self) {
        let is_on = self.status.borrow().cpu;
        let Some(commands) = self.commands().filter(|_| is_on) else {
            return;
        };
        let asked = *locked(&self.samples_asked);
        if self.recorded(|recorded| recorded.measured[0] >= asked) {
            // If the agent is gone, whoever reads its stream says so.
            let _ = self.order_samples(&commands, Ask::SamplesSoFar);
        }
    }

    /// Asks for samples; how many times they will have come when these have.
    fn order_samples(&self, commands: &Commands, ask: Ask) -> Result<u64, String> {
        let mut asked = locked(&self.samples_asked);
        commands(ask)?;
        *asked += 1;
        Ok(*asked)
    }

    /// Takes samples for one more of those who want them; what others have until now has come.
    pub(super) fn begin_samples(&self, commands: &Commands) -> Result<(), Fault> {
        let mut wanted = locked(&self.samples_wanted);
        match *wanted {
            0 => commands(Ask::Samples(true)).map_err(Fault::failed)?,
            _ => self.settle_samples(commands, Ask::SamplesSoFar)?,
        }
        *wanted += 1;
        Ok(())
    }

    /// One of those who want samples has enough; all samples until now have come. The last one ends them.
    pub(super) fn end_samples(&self, commands: &Commands) -> Result<(), Fault> {
        let mut wanted = locked(&self.samples_wanted);
        *wanted = wanted.saturating_sub(1);
        let ask = match *wanted {
            0 => Ask::Samples(false),
            _ => Ask::SamplesSoFar,
        };
        self.settle_samples(commands, ask)
    }

    /// Asks for samples and waits for them.
    pub(super) fn settle_samples(&self, commands: &Commands, ask: Ask) -> Result<(), Fault> {
        let number = self.order_samples(commands, ask).map_err(Fault::failed)?;
        let begun = Instant::now();
        while self.recorded(|recorded| recorded.measured[0] < number) {
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
}
