//! A JVM of this machine as the live page needs it: its counters file, its attach socket, and the
//! agent's socket.

use super::jvm::Jvm;
use super::{agent, attach};
use agent_core::control::{Command, Switch};
use anyhow::{Context, Result, anyhow, bail};
use server::live::program::{Agent, Ask, Commands, Program, Recording};
use std::fs;
use std::io::{ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a loaded agent may take to connect: it may have to change every class first.
const PATIENCE: Duration = Duration::from_secs(60);

/// A JVM, and the agent library that could be loaded into it.
pub(crate) struct Watched {
    jvm: Jvm,
    library: Option<PathBuf>,
    /// One command at a time: two that ask for the socket at once could make the JVM print its
    /// threads instead.
    turn: Mutex<()>,
}

impl Watched {
    pub(crate) fn new(jvm: Jvm, library: Option<PathBuf>) -> Watched {
        Watched {
            jvm,
            library,
            turn: Mutex::default(),
        }
    }

    fn command(&self, name: &str, arguments: [&str; 3]) -> Result<String, String> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        attach::command(&self.jvm, name, arguments).map_err(|error| words(&error))
    }

    /// The counters file: in a folder per user of the JVM's own temporary folder.
    fn counters_file(&self) -> Option<PathBuf> {
        let folders = fs::read_dir(self.jvm.path("/tmp")).ok()?.flatten();
        folders
            .filter(|folder| {
                folder
                    .file_name()
                    .to_string_lossy()
                    .starts_with("hsperfdata_")
            })
            .map(|folder| folder.path().join(self.jvm.inner_pid.to_string()))
            .find(|file| file.is_file())
    }

    fn load(&self, recording: Recording) -> Result<Agent> {
        let library = agent::visible(&self.jvm, &agent::find(self.library.as_deref())?)?;
        let listener = TcpListener::bind("127.0.0.1:0").context("no free port")?;
        let options = options(recording, listener.local_addr()?.port());
        {
            let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
            attach::load_agent(&self.jvm, &library, &options)?;
        }
        accept(&listener, recording)
    }
}

/// What the agent is told: binary records on a socket, and nothing at exit.
pub(crate) fn options(recording: Recording, port: u16) -> String {
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
    format!("{what},jni=y,depth={depth},format=b,modern=y,doe=n,cutoff=0,net=127.0.0.1:{port}")
}

/// Waits for the agent.
pub(crate) fn accept(listener: &TcpListener, recording: Recording) -> Result<Agent> {
    listener.set_nonblocking(true)?;
    let begun = Instant::now();
    loop {
        match listener.accept() {
            Ok((stream, _)) => return connected(stream, recording),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if begun.elapsed() > PATIENCE {
                    bail!(
                        "the agent did not connect; one that was loaded before stays until the \
                         program ends"
                    );
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(error).context("no connection"),
        }
    }
}

fn connected(stream: TcpStream, recording: Recording) -> Result<Agent> {
    stream.set_nonblocking(false)?;
    stream.set_nodelay(true)?;
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
        let which = if live_only { "-live" } else { "-all" };
        let inside = if self.jvm.has_own_files() {
            format!("/tmp/tenure-{}.hprof", std::process::id())
        } else {
            let path = path.to_str().ok_or("the path is not UTF-8")?;
            path.to_owned()
        };
        let answer = self.command("dumpheap", [&inside, which, ""])?;
        let from = self.jvm.path(&inside);
        if self.jvm.has_own_files() {
            fs::copy(&from, path).map_err(|error| words(&anyhow!(error)))?;
            let _ = fs::remove_file(&from);
        }
        match path.is_file() {
            true => Ok(()),
            false => Err(format!("no dump was written: {}", answer.trim())),
        }
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
        let parsed = |recording| match parse(&options(recording, 7), None) {
            Ok(Parsed::Run(options)) => options,
            other => panic!("{other:?}"),
        };
        let full = parsed(Recording::Full {
            depth: 9,
            native: Some(1),
        });
        assert!(full.heap.dump && full.heap.sites && !full.dump_on_exit);
        assert!(full.heap.references);
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
