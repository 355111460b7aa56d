//! Stops a process while it is read.

use crate::fault::Fault;
use crate::machine::Machine;
use crate::process;
use crate::raw::{self, Waited};
use crate::roots::Registers;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::marker::PhantomData;
use std::thread;
use std::time::{Duration, Instant};

/// A thread needs less than this to stop, unless it waits for a device.
const PATIENCE: Duration = Duration::from_secs(10);
const BETWEEN_LOOKS: Duration = Duration::from_micros(200);

/// A process whose threads are all stopped until this value is dropped. If this process ends for any reason, the kernel
/// lets the other one continue.
#[derive(Debug)]
pub struct Frozen {
    pid: u32,
    /// Seized threads; those that are stopped have the signal that is returned to them.
    threads: BTreeMap<i32, Option<i32>>,
    /// Threads that have ended and still have an entry, as a main thread has until the other threads end.
    ended: BTreeSet<i32>,
    since: Instant,
    /// Only the thread that seized a thread can release it.
    not_send: PhantomData<*const ()>,
}

impl Frozen {
    /// Stops a process.
    ///
    /// # Errors
    /// This user may not trace it, or one of its threads does not stop within ten seconds. It then continues.
    pub fn new(pid: u32) -> Result<Frozen, Fault> {
        let mut frozen = Frozen {
            pid,
            threads: BTreeMap::new(),
            ended: BTreeSet::new(),
            since: Instant::now(),
            not_send: PhantomData,
        };
        // Running threads can start others, so this repeats until all are stopped and no new one is found.
        while frozen.seize_all()? {
            frozen.wait_for_all()?;
        }
        Ok(frozen)
    }

    /// How long the process has been stopped.
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// Registers of its threads.
    pub fn registers(&self) -> Vec<Registers> {
        let all = self.threads.keys();
        all.filter_map(|thread| self.registers_of(*thread))
            .collect()
    }

    fn registers_of(&self, thread: i32) -> Option<Registers> {
        let words = raw::registers(thread).ok()?;
        let status = format!("/proc/{}/task/{thread}/status", self.pid);
        let status = fs::read_to_string(status).ok()?;
        // The VM identifies the thread by its number in the innermost namespace.
        let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        let own = numbers.and_then(|numbers| numbers.split_whitespace().last()?.parse().ok());
        Some(Registers {
            thread: own.unwrap_or(thread as u32),
            stack_pointer: *words.get(Machine::own().stack_pointer())?,
            words,
        })
    }

    /// Seizes the threads that are not seized yet; returns false if there are none.
    fn seize_all(&mut self) -> Result<bool, Fault> {
        let wrong = || format!("cannot stop process {}", self.pid);
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid)).map_err(Fault::io(wrong()))?;
        let ids = tasks
            .flatten()
            .filter_map(|task| task.file_name().to_str()?.parse().ok());
        let is_new = |id: &i32| !self.threads.contains_key(id) && !self.ended.contains(id);
        let new: Vec<i32> = ids.filter(is_new).collect();
        for thread in &new {
            match raw::seize(*thread).and_then(|()| {
                self.threads.insert(*thread, None);
                raw::interrupt(*thread)
            }) {
                // The thread has ended meanwhile.
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                    self.threads.remove(thread);
                }
                // The kernel refuses to trace a thread that is ending.
                Err(_) if process::has_ended(self.pid, *thread as u32) => {
                    self.threads.remove(thread);
                    self.ended.insert(*thread);
                }
                Err(error) => return Err(self.refused(error)),
                Ok(()) => {}
            }
        }
        Ok(!new.is_empty())
    }

    fn refused(&self, cause: io::Error) -> Fault {
        let mut what = format!("cannot stop process {}", self.pid);
        if cause.kind() == io::ErrorKind::PermissionDenied {
            what += ": tracing it takes the same user and, where kernel.yama.ptrace_scope is not 0 or in a \
                     container, the right CAP_SYS_PTRACE (try as root); a process that is being debugged \
                     cannot be traced a second time";
        }
        Fault::Io { what, cause }
    }

    fn wait_for_all(&mut self) -> Result<(), Fault> {
        let begun = Instant::now();
        loop {
            let running = |stopped: &Option<i32>| stopped.is_none();
            let open: Vec<i32> = self
                .threads
                .iter()
                .filter(|(_, s)| running(s))
                .map(|(t, _)| *t)
                .collect();
            if open.is_empty() {
                return Ok(());
            }
            for thread in open {
                match raw::look(thread) {
                    Ok(Waited::Runs) => {}
                    Ok(Waited::Stopped { signal }) => {
                        self.threads.insert(thread, Some(signal));
                    }
                    Ok(Waited::Gone) | Err(_) => {
                        self.threads.remove(&thread);
                    }
                }
            }
            if begun.elapsed() > PATIENCE {
                let cause = io::Error::from(io::ErrorKind::TimedOut);
                let what = format!("a thread of process {} did not stop", self.pid);
                return Err(Fault::Io { what, cause });
            }
            thread::sleep(BETWEEN_LOOKS);
        }
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        for (thread, stopped) in &self.threads {
            // A thread that has not stopped cannot be released, but it runs; the kernel releases it when this process
            // ends.
            let _ = raw::detach(*thread, stopped.unwrap_or(0));
        }
    }
}
