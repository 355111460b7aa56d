//! A JVM of this machine as the live page needs it: its counters file, its attach socket, and the
//! agent's socket.

use super::door::Door;
use super::{agent, snapshot};
use crate::commands::cache::user_cache;
use crate::session::Session;
use agent_core::control::{Command, Switch};
use anyhow::{Context, Result, bail};
use heap_graph::Options;
use jvm_observe::attach;
use jvm_observe::files::JvmFiles;
use jvm_observe::jvm::{self, Jvm};
use live_session::Live;
use live_session::dumps::opened::OpenDump;
use live_session::recording::program::{Agent, Ask, Commands, Program, Recording, Snapshot};
use server::explorer::{Explorer, Renaming};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use vm_image::Copied;

/// How long a loaded agent may take to connect: it may have to change every class first.
const PATIENCE: Duration = Duration::from_secs(60);

/// A JVM, and the agent library that could be loaded into it.
pub(crate) struct Watched {
    jvm: Jvm,
    library: Option<PathBuf>,
    /// Memory limit of the agent in bytes, if it is not the usual one.
    memory: Option<u64>,
    counters: Mutex<Option<File>>,
    /// How its heap dumps are opened, and the names of a mapping file for them.
    opening: (Options, Option<Renaming>),
    /// One command at a time: two that request the socket at once could make the JVM print its
    /// threads instead.
    turn: Mutex<()>,
}

impl Watched {
    pub(crate) fn new(jvm: Jvm, library: Option<PathBuf>, memory: Option<u64>) -> Watched {
        Watched {
            jvm,
            library,
            memory,
            counters: Mutex::default(),
            opening: Default::default(),
            turn: Mutex::default(),
        }
    }

    /// Begins to watch the JVM. Heap dumps are written to the folder `dumps` (without it, the present folder); sources
    /// of frames are searched below `sources`. The history is written to the user's cache, for the next process if this
    /// one is killed.
    pub(crate) fn watch(
        self,
        dumps: Option<&Path>,
        sources: Vec<PathBuf>,
        session: &Session,
    ) -> Result<Arc<Live>> {
        let folder = dumps.unwrap_or(Path::new("."));
        let folder = std::path::absolute(folder).with_context(|| folder.display().to_string())?;
        let past = user_cache(session).map(|cache| cache.join("live"));
        let options = Options {
            // A dump is taken later, when other memory is free.
            max_memory: None,
            ..session.options()
        };
        let watched = Watched {
            opening: (options, session.renaming()?),
            ..self
        };
        Ok(Live::watch(
            Arc::new(watched),
            folder,
            sources,
            past.as_deref(),
        ))
    }

    fn command(&self, name: &str, arguments: [&str; 3]) -> Result<String, String> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        attach::command(&self.jvm, name, arguments).map_err(|error| words(&error.into()))
    }

    /// The counters file, which is in a folder per user in the JVM's temporary folder. It stays open, because its name
    /// may refer to another file later.
    fn counters_file(&self) -> Option<PathBuf> {
        let mut file = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        if file.is_none() {
            *file = JvmFiles::of(&self.jvm).ok()?.counters(self.jvm.inner_pid);
        }
        let descriptor = file.as_ref()?.as_raw_fd();
        Some(PathBuf::from(format!("/proc/self/fd/{descriptor}")))
    }

    fn load(&self, recording: Recording) -> Result<Agent> {
        // Another process may have loaded the agent meanwhile.
        let jvm = jvm::find(&self.jvm.pid.to_string()).unwrap_or_else(|_| self.jvm.clone());
        let library = agent::visible(&jvm, self.library.as_deref())?;
        let door = Door::to(&jvm)?;
        {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            let options = options(recording, self.memory, &door.address());
            agent::begin(&jvm, &library, &options, "")?;
        }
        accept(&door, recording)
    }
}

/// Starts the recording that was requested, or continues what an earlier process recorded of the JVM.
pub(crate) fn record_or_resume(live: &Arc<Live>, recording: Option<Recording>) {
    let earlier = live.resume();
    if let Some(recording) = recording.or(earlier) {
        let live = Arc::clone(live);
        // What goes wrong is in the state that is shown.
        std::thread::spawn(move || live.start_recording(recording));
    }
}

/// The options for the agent: binary records on a socket, and no output at exit.
pub(crate) fn options(recording: Recording, memory: Option<u64>, address: &str) -> String {
    let (mut what, depth, native) = match recording {
        Recording::Full { depth, native } => ("heap=all".to_owned(), depth, native),
        Recording::Sampled {
            interval,
            depth,
            native,
        } => (format!("alloc={interval}"), depth, native),
    };
    if let Some(interval) = native {
        what.push_str(&format!(",native={interval}"));
    }
    if let Some(memory) = memory {
        what.push_str(&format!(",memory={memory}"));
    }
    format!("{what},jni=y,depth={depth},format=b,modern=y,doe=n,cutoff=0,net={address}")
}

/// Waits for the agent.
pub(crate) fn accept(door: &Door, recording: Recording) -> Result<Agent> {
    let begun = Instant::now();
    loop {
        if let Some(stream) = door.next()? {
            return connected(stream, recording);
        }
        if begun.elapsed() > PATIENCE {
            bail!("the agent did not connect");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn connected(stream: TcpStream, recording: Recording) -> Result<Agent> {
    let peer = stream.try_clone()?;
    peer.set_write_timeout(Some(Duration::from_secs(10)))?;
    let state = Mutex::new((peer, 0u32));
    let commands: Commands = Box::new(move |ask| {
        let mut state = state.lock().map_err(|_| "the agent is gone".to_owned())?;
        let mut bytes = Vec::new();
        for command in commands_of(ask) {
            state.1 += 1;
            bytes.extend(command.encode(state.1));
        }
        state
            .0
            .write_all(&bytes)
            .map_err(|error| format!("the agent is gone: {error}"))
    });
    Ok(Agent {
        stream: Box::new(stream),
        commands,
        recording,
    })
}

fn commands_of(ask: Ask) -> Vec<Command> {
    let sampling = |on| Command::Control(Switch::Sampling { on, thread: None });
    let one = match ask {
        Ask::Sites => Command::AllocSites {
            flags: 0,
            cutoff: 0.0,
        },
        Ask::References => Command::AllocSites {
            flags: 8,
            cutoff: 0.0,
        },
        Ask::Gc => Command::ForceGc,
        Ask::Dump => Command::DumpHeap,
        Ask::Allocations(on) => Command::Control(Switch::Allocations(on)),
        Ask::Classes(text) => Command::Control(Switch::Classes(text)),
        Ask::OwnCode(on) => Command::Control(Switch::OwnCode(on)),
        Ask::Instances(query) => Command::Control(Switch::Instances(query)),
        Ask::Fills(number) => Command::Control(Switch::Fills(number)),
        Ask::Monitors(on) => Command::Control(Switch::Monitors(on)),
        Ask::Samples(true) => {
            return vec![Command::Control(Switch::ClearSamples), sampling(true)];
        }
        Ask::Samples(false) => {
            return vec![sampling(false), Command::CpuSamples { cutoff: 0.0 }];
        }
        Ask::SamplesSoFar => {
            let clear = Command::Control(Switch::ClearSamples);
            return vec![Command::CpuSamples { cutoff: 0.0 }, clear];
        }
    };
    vec![one]
}

fn words(error: &anyhow::Error) -> String {
    format!("{error:#}")
}

impl Program for Watched {
    fn pid(&self) -> u32 {
        self.jvm.pid
    }

    fn open_dump(&self, path: &Path) -> Arc<dyn OpenDump> {
        let (options, mapping) = self.opening.clone();
        Explorer::open_renamed(path, options, mapping)
    }

    fn name(&self) -> String {
        self.jvm.main.clone()
    }

    fn counters(&self) -> Option<PathBuf> {
        self.counters_file()
    }

    fn diagnose(&self, line: &str) -> Result<String, String> {
        self.command("jcmd", [line, "", ""])
    }

    fn dump(&self, path: &Path, live_only: bool) -> Result<(), String> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        attach::dump(&self.jvm, path, live_only).map_err(|error| words(&error.into()))
    }

    fn snapshot(&self, out: &mut (dyn Write + Send)) -> Result<Snapshot, String> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
            return Err("snapshots need Linux on x86_64".to_owned());
        }
        let copy = {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            snapshot::Snapshot::of(&self.jvm, self.library.as_deref(), false)
        };
        let copy = copy.map_err(|error| words(&error))?;
        let limit = Copied::usual_limit(self.jvm.pid);
        let stopped = copy.stopped;
        let read = || {
            let mut out = BufWriter::with_capacity(1 << 20, out);
            copy.copied.read(limit, |memory, place| {
                vm_image::dump(memory, place, &mut out)
            })
        };
        // A thread of its own, because it leaves others the processor.
        let read = thread::scope(|scope| scope.spawn(read).join());
        let read = read.unwrap_or(Err(vm_image::Fault::CopyEnded));
        let (summary, _) = read.map_err(|fault| words(&fault.into()))?;
        Ok(Snapshot {
            stopped,
            with_stack: summary.with_stack,
        })
    }

    fn record(&self, recording: Recording) -> Result<Agent, String> {
        self.load(recording).map_err(|error| words(&error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::options::{Parsed, parse};

    #[test]
    fn the_agents_options_are_ones_it_takes() {
        let parsed = |recording| {
            let text = options(recording, Some(16 << 20), "unix:/tmp/x");
            match parse(&text, None) {
                Ok(Parsed::Run(options)) => options,
                other => panic!("{other:?}"),
            }
        };
        let full = parsed(Recording::Full {
            depth: 9,
            native: Some(1),
        });
        assert!(full.heap.dump && full.heap.sites && !full.dump_on_exit);
        assert!(full.heap.references);
        assert_eq!(full.memory, 16 << 20);
        assert_eq!((full.traces.depth, full.cutoff), (9, 0.0));
        assert_eq!(full.heap.native, Some(1));
        let sampled = parsed(Recording::Sampled {
            interval: 65_536,
            depth: 8,
            native: None,
        });
        assert_eq!(sampled.sampled.map(|s| s.interval), Some(65_536));
        assert_eq!(sampled.heap.native, None);
        assert!(!sampled.heap.dump && !sampled.dump_on_exit);
    }
}
