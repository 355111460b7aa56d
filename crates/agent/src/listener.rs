//! The collector's commands in socket mode.

use std::io::Read;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use agent_core::control::{Command, Decoder, Switch};
use agent_core::options::Options;
use agent_core::{Reaction, Recorder};
use locks::{Mutex, MutexGuard, Rank};
use vm_hotspot::HotSpot;
use vmpi::{Event, Profiler, Vm};

use crate::output::Output;
use crate::recording::{self, Recording};
use crate::sender::Patience;
use crate::{conversion, output, process, rotation};

/// The recorder, which receives events from the VM and commands from the listener. The sending thread holds the
/// recorder's lock meanwhile.
pub(crate) struct Shared {
    pub(crate) recorder: Arc<Mutex<Recorder>>,
    /// Whether the output is sent to a collector.
    pub(crate) is_socket: bool,
    /// The collector's stream, if it is no pipe, until the listener is started.
    pub(crate) collector: Option<(Option<TcpStream>, Patience)>,
}

impl Profiler for Shared {
    fn notify(&mut self, vm: &dyn Vm, event: &Event<'_>) {
        let report = || {
            let mut recorder = self.recorder.lock();
            recorder.notify(vm, event);
            // Otherwise the collector receives nothing for seconds, as in the original agent.
            let is_rare = !matches!(
                event,
                Event::ClassLoaded { .. } | Event::TraceDefined { .. }
            );
            if self.is_socket && is_rare {
                recorder.flush();
            }
        };
        let is_dump = matches!(event, Event::DumpRequested | Event::VmDeath);
        let patience = lock_patience().clone();
        let report = || match patience.filter(|_| is_dump) {
            Some(patience) => patience.while_waiting(report),
            None => report(),
        };
        match event {
            Event::VmDeath => conversion::run_last(report),
            _ => report(),
        }
        if let Event::VmInit { .. } = event
            && let Some(collector) = self.collector.take()
            && let Some(hotspot) = HotSpot::get()
        {
            hear(hotspot, collector, &self.recorder);
        }
        if let Event::VmInit { .. } = event {
            rotation::begin(&self.recorder);
        }
    }
}

/// The waiting policy for the current collector.
static PATIENCE: Mutex<Option<Patience>> = Mutex::new(Rank::Patience, None);
/// Whether the last collector has disconnected.
static IS_ALONE: AtomicBool = AtomicBool::new(false);

fn lock_patience() -> MutexGuard<'static, Option<Patience>> {
    PATIENCE.lock()
}

/// A recording begins, and no collector is connected yet.
pub(crate) fn begin() {
    *lock_patience() = None;
    IS_ALONE.store(false, Ordering::SeqCst);
}

/// The recording has ended: nothing keeps a pipe open any more, so that its reader gets the end.
pub(crate) fn end() {
    *lock_patience() = None;
}

/// Whether the collector of the recording has disconnected.
pub(crate) fn is_alone() -> bool {
    IS_ALONE.load(Ordering::SeqCst)
}

/// Continues with another collector if the last one has disconnected and the options record the same as before. Counts
/// of the time in between are not lost. Returns false if the options record something else, or the last collector stays.
///
/// # Errors
/// The reason why it cannot continue, as text.
pub(crate) fn come_back(now: &Recording, options: &Options) -> Result<bool, String> {
    const PATIENCE: Duration = Duration::from_secs(2);
    let Some(vm) = HotSpot::get() else {
        return Ok(false);
    };
    let recorder = &now.recorder;
    let lock = || recorder.lock();
    let is_collected = lock().options().output.target.is_collector();
    if options.events.is_some()
        || !options.output.target.is_collector()
        || !is_collected
        || !lock().options().records_as(options)
    {
        return Ok(false);
    }
    let begun = Instant::now();
    while !IS_ALONE.swap(false, Ordering::SeqCst) {
        if begun.elapsed() > PATIENCE {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = output::open(options).map_err(|error| error.to_string());
    let output = output.inspect_err(|_| IS_ALONE.store(true, Ordering::SeqCst))?;
    let Some((collector, patience)) = output.collector else {
        return Err("nothing listens at the other end".to_owned());
    };
    recording::continues_with(options, &output.place);
    let begin = || {
        let mut recorder = lock();
        recorder.set_output(options.output.clone());
        recorder.begin_again(vm, output.writer);
        let on = Command::Control(Switch::Allocations(true));
        if recorder.options().tracks_every_allocation() || recorder.options().sampled.is_some() {
            recorder.command(vm, &on);
        }
        recorder.flush();
    };
    vm.with_profiler_paused(|| patience.while_waiting(begin));
    hear(vm, (collector, patience), recorder);
    Ok(true)
}

/// Ends the current output with what was recorded, and continues with another one.
pub(crate) fn rotate(vm: &'static HotSpot, recorder: &Arc<Mutex<Recorder>>, output: Output) {
    recording::moved(&output.place);
    let patience = lock_patience().clone();
    let turn = || recorder.lock().rotate(vm, output.writer);
    vm.with_profiler_paused(|| match (&patience, &output.collector) {
        (Some(before), Some((_, now))) => now.while_waiting(|| before.while_waiting(turn)),
        _ => turn(),
    });
    if let Some(collector) = output.collector {
        hear(vm, collector, recorder);
    }
}

/// Starts a thread that takes the collector's commands; a pipe has none.
fn hear(
    vm: &'static HotSpot,
    (collector, patience): (Option<TcpStream>, Patience),
    recorder: &Arc<Mutex<Recorder>>,
) {
    *lock_patience() = Some(patience.clone());
    IS_ALONE.store(false, Ordering::SeqCst);
    let Some(collector) = collector else { return };
    let recorder = Arc::clone(recorder);
    let listen = move || listen(vm, collector, &recorder, &patience);
    if let Err(error) = vm.run_thread("HPROF listener thread", listen) {
        process::note(&format!("no commands can be taken: {error}"));
    }
}

/// Carries out commands until the collector ends this or disconnects; the program continues.
fn listen(
    vm: &HotSpot,
    mut collector: TcpStream,
    recorder: &Arc<Mutex<Recorder>>,
    patience: &Patience,
) {
    let mut decoder = Decoder::default();
    let mut buffer = [0; 512];
    loop {
        let count = match collector.read(&mut buffer) {
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => {
                // Another recording may have begun meanwhile, or the next file of this one.
                let now = lock_patience().clone();
                if !vm.has_ended() && now.is_some_and(|now| now.is_same(patience)) {
                    IS_ALONE.store(true, Ordering::SeqCst);
                }
                return;
            }
            Ok(count) => count,
        };
        // The collector has gone, so no process reads the result of a command. Unread bytes would reset the connection,
        // and the collector would lose data that is still being sent.
        if patience.is_over() {
            continue;
        }
        decoder.push(&buffer[..count]);
        while let Some(command) = decoder.next_command().filter(|_| !patience.is_over()) {
            let carry_out = || {
                let mut recorder = recorder.lock();
                let reaction = recorder.command(vm, &command);
                recorder.flush();
                reaction
            };
            let reaction = vm.with_profiler_paused(|| match patience.while_waiting(carry_out) {
                // The recorder is locked, so no thread writes and the stream ends with a complete record.
                Reaction::Exit(code) => process::exit(code),
                reaction => reaction,
            });
            match reaction {
                Reaction::StopListening => return,
                Reaction::Stop => return recording::stop_this(recorder),
                Reaction::Continue | Reaction::Exit(_) => {}
            }
        }
    }
}
