//! Waiting for what another process or thread does: the only place of the tests that lets time
//! pass. Nothing is asserted about how long it takes.

use std::fmt::Display;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// A test that has waited for so long waits for something that does not happen.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Looks again and again until there is something, and gives it.
///
/// # Panics
/// After [`PATIENCE`], with what the last look said.
#[track_caller]
pub fn until<T, E: Display>(mut look: impl FnMut() -> Result<T, E>) -> T {
    let begun = Instant::now();
    loop {
        match look() {
            Ok(found) => return found,
            Err(printed) => assert!(begun.elapsed() < PATIENCE, "waited in vain: {printed}"),
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a process ends.
///
/// # Panics
/// When it does not end; it is killed then.
#[track_caller]
pub fn ended(child: &mut Child) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a child") {
            return status;
        }
        if begun.elapsed() > PATIENCE {
            drop(child.kill());
            panic!("process {} does not end", child.id());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
