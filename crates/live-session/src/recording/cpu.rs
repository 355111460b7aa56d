//! Takes CPU samples while a page or a measurement needs them.

use super::program::{Ask, Commands, Recording};
use super::state::{Live, locked};
use requests::Fault;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// If an agent was loaded only for CPU samples, this is what it records when allocations are recorded later.
const LATER: Recording = Recording::Sampled {
    interval: 512 << 10,
    depth: DEPTH,
    native: None,
};
/// Frames per stack.
const DEPTH: u32 = 64;
/// How long the agent may take to send its data.
const PATIENCE: Duration = Duration::from_secs(30);

impl Live {
    /// Starts or stops taking CPU samples. Loads the agent if it is not loaded.
    ///
    /// # Errors
    /// A message: no agent can be loaded, or it is gone.
    pub fn sample_cpu(self: &Arc<Self>, on: bool) -> Result<(), String> {
        let what = if on {
            "Starting to sample the CPU"
        } else {
            "Ending the CPU samples"
        };
        self.busy(what, || {
            // Another request may have done the same meanwhile.
            if self.status.borrow().cpu == on {
                return Ok(());
            }
            if on && self.commands().is_none() {
                let agent = self.program().record(LATER)?;
                self.connect(agent);
                self.command(Ask::Allocations(false))?;
                self.set_recording(false);
            }
            // If the agent is gone, there is nothing to stop.
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

    /// The agent may still take samples for a previous server: requests the existing samples and stops this.
    pub(crate) fn end_old_samples(&self) {
        let was_sampled = self.recorded(|recorded| !recorded.cpu.times().is_empty());
        if let Some(commands) = self.commands().filter(|_| was_sampled) {
            // If the agent is gone, the thread that reads its stream reports this.
            let _ = self.order_samples(&commands, Ask::Samples(false));
        }
    }

    /// Requests the samples since the last ones, if samples are taken and the last ones have been received.
    pub(crate) fn ask_samples(&self) {
        let is_on = self.status.borrow().cpu;
        let Some(commands) = self.commands().filter(|_| is_on) else {
            return;
        };
        let asked = *locked(&self.samples_asked);
        if self.recorded(|recorded| recorded.measured[0] >= asked) {
            // If the agent is gone, the thread that reads its stream reports this.
            let _ = self.order_samples(&commands, Ask::SamplesSoFar);
        }
    }

    /// Requests samples; returns how often samples will have been received when these have.
    fn order_samples(&self, commands: &Commands, ask: Ask) -> Result<u64, String> {
        let mut asked = locked(&self.samples_asked);
        commands(ask)?;
        *asked += 1;
        Ok(*asked)
    }

    /// Starts samples for one more user; all samples until now have been received when this returns.
    pub(crate) fn begin_samples(&self, commands: &Commands) -> Result<(), Fault> {
        let mut wanted = locked(&self.samples_wanted);
        match *wanted {
            0 => commands(Ask::Samples(true)).map_err(Fault::failed)?,
            _ => self.settle_samples(commands, Ask::SamplesSoFar)?,
        }
        *wanted += 1;
        Ok(())
    }

    /// Ends samples for one user; all samples until now have been received when this returns. The last user ends the
    /// sampling.
    pub(crate) fn end_samples(&self, commands: &Commands) -> Result<(), Fault> {
        let mut wanted = locked(&self.samples_wanted);
        *wanted = wanted.saturating_sub(1);
        let ask = match *wanted {
            0 => Ask::Samples(false),
            _ => Ask::SamplesSoFar,
        };
        self.settle_samples(commands, ask)
    }

    /// Requests samples and waits for them.
    pub(crate) fn settle_samples(&self, commands: &Commands, ask: Ask) -> Result<(), Fault> {
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
