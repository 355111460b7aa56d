//! A loop over what a dump holds that can be cancelled: it counts its steps, and checks every so
//! often whether to continue.

use heap_graph::{Control, HeapError};

/// Steps between two looks: at a microsecond each, a millisecond.
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
    /// A loop of about so many steps; the phase is what a person reads of it.
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
    /// [`HeapError::Cancelled`] when the control cancels; it is asked at the first step, too.
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
