//! The peer's commands in socket mode.

use std::io::Read;
use std::net::TcpStream;
use std::sync::{Arc, Mutex, PoisonError};

use agent_core::control::Decoder;
use agent_core::{Reaction, Recorder};
use vm_hotspot::HotSpot;
use vmpi::{Event, Profiler, Vm};

use crate::process;

/// The recorder, told events by the VM and commands by the listener. Whoever tells
/// it holds its lock meanwhile.
pub(crate) struct Shared {
    pub(crate) recorder: Arc<Mutex<Recorder>>,
    /// Whether a peer waits for what is written.
    pub(crate) is_socket: bool,
    /// The peer, until the listener has been started.
    pub(crate) peer: Option<TcpStream>,
}

impl Profiler for Shared {
    fn notify(&mut self, vm: &dyn Vm, event: &Event<'_>) {
        {
            let mut recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
            recorder.notify(vm, event);
            // The original's peer saw nothing for seconds.
            let is_rare = !matches!(
                event,
                Event::ClassLoaded { .. } | Event::TraceDefined { .. }
            );
            if self.is_socket && is_rare {
                recorder.flush();
            }
        }
        if let Event::VmInit { .. } = event
            && let Some(peer) = self.peer.take()
            && let Some(hotspot) = HotSpot::get()
        {
            let recorder = Arc::clone(&self.recorder);
            let listen = move || listen(hotspot, peer, &recorder);
            if let Err(error) = hotspot.run_thread("HPROF listener thread", listen) {
                process::note(&format!("no commands can be taken: {error}"));
            }
        }
    }
}

/// Takes commands until the peer ends it or is gone; the program goes on.
fn listen(vm: &HotSpot, mut peer: TcpStream, recorder: &Mutex<Recorder>) {
    let mut decoder = Decoder::default();
    let mut buffer = [0; 512];
    loop {
        let count = match peer.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        decoder.push(&buffer[..count]);
        while let Some(command) = decoder.next_command() {
            let reaction = vm.quietly(|| {
                let mut recorder = recorder.lock().unwrap_or_else(PoisonError::into_inner);
                let reaction = recorder.command(vm, &command);
                recorder.flush();
                reaction
            });
            match reaction {
                Reaction::Continue => {}
                Reaction::StopListening => return,
                Reaction::Exit(code) => process::exit(code),
            }
        }
    }
}
