//! A loop over the contents of a dump that can be cancelled: it counts its steps and regularly checks whether to
//! continue.

use heap_graph::{Control, HeapError};

/// Steps between two checks: about a millisecond, at a microsecond per step.
const STEPS: u64 = 1024;

/// The steps of a loop under a control.
#[derive(Debug)]
pub struct Pace<'a> {
    control: &'a Control<'a>,
    phase: &'static str,
    done: u64,
    total: u64,
}

impl<'a> Pace<'a> {
    /// A loop of about `total` steps; `phase` is the name that progress displays show.
    pub fn new(control: &'a Control<'a>, phase: &'static str, total: u64) -> Pace<'a> {
        Pace {
            control,
            phase,
            done: 0,
            total,
        }
    }

    /// Counts a step.
    ///
    /// # Errors
    /// [`HeapError::Cancelled`] when the control cancels; the first step checks, too.
    pub fn step(&mut self) -> Result<(), HeapError> {
        if self.done.is_multiple_of(STEPS) {
            let done = self.done.min(self.total);
            self.control.report(self.phase, done, self.total);
            self.control.check()?;
        }
        self.done += 1;
        Ok(())
    }
}
