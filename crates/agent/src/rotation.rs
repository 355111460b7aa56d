//! Timed actions: the next file of a recording with `loop=`, and its end after `duration=`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use agent_core::Recorder;
use locks::Mutex;
use vm_hotspot::HotSpot;

use crate::{conversion, listener, output, process, recording};

/// The interval at which the thread checks whether the recording has ended.
const STEP: Duration = Duration::from_millis(100);

/// The interval at which the thread checks whether everything is counted.
const SHORT: Duration = Duration::from_millis(10);

/// A recording has begun: starts a thread if an option requires a timed action.
pub(crate) fn begin(recorder: &Arc<Mutex<Recorder>>) {
    let Some(vm) = HotSpot::get() else { return };
    let options = recorder.lock().options().clone();
    if options.series.is_none() && options.duration.is_none() {
        return;
    }
    let recorder = Arc::clone(recorder);
    let run = move || {
        // The time of a recording starts when it counts everything.
        while !vm.records_all() {
            if vm.has_ended() {
                return;
            }
            std::thread::sleep(SHORT);
        }
        let begun = Instant::now();
        let end = options.duration.and_then(|after| begun.checked_add(after));
        let every = options.series.map(|series| series.every);
        let mut next = every.and_then(|every| begun.checked_add(every));
        let mut last_fault = String::new();
        loop {
            let Some(wanted) = [next, end].into_iter().flatten().min() else {
                return;
            };
            if !wait(vm, wanted) {
                return;
            }
            if end.is_some_and(|end| end <= Instant::now()) {
                recording::stop_this(&recorder);
                return;
            }
            // The recording stays in the current output until another one is open.
            let options = recorder.lock().options().clone();
            match output::open(&options) {
                Ok(output) => {
                    listener::rotate(vm, &recorder, output);
                    conversion::run();
                }
                Err(error) => {
                    let fault = error.with_reason();
                    if fault != last_fault {
                        process::note(&format!("there is no next file: {fault}"));
                    }
                    last_fault = fault;
                }
            }
            // After a pause of the whole machine, this writes one file and not one for each missed interval.
            let after = |next: Instant| Some((next + every?).max(Instant::now()));
            next = next.and_then(after);
        }
    };
    if let Err(error) = vm.run_thread("HPROF rotation", run) {
        process::note(&format!("loop= and duration= have no effect: {error}"));
    }
}

/// Waits until this time; returns false if the recording ends before.
fn wait(vm: &HotSpot, then: Instant) -> bool {
    while !vm.has_ended() {
        let left = then.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return true;
        }
        std::thread::sleep(left.min(STEP));
    }
    false
}
