//! The entry points that the VM calls.

use std::ffi::{c_char, c_void};
use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use agent_core::Recorder;
use agent_core::options::{ENVIRONMENT, OptionError, Options, Parsed, StartError, help, parse};
use jvmti::JavaVm;
use jvmti::sys::RawEnv;
use locks::{Mutex, Rank};
use vm_hotspot::{HotSpot, Setup};

use crate::listener::{self, Shared};
use crate::output::Output;
use crate::process::{self, Process};
use crate::{conversion, output, plan, recording};

const JNI_OK: i32 = 0;
const JNI_ERR: i32 = -1;

/// Source positions of the original that its messages contain. They are kept because scripts compare the messages.
mod place {
    pub(super) const OPTIONS: &str = "hprof_init.c:495";
    pub(super) const CONNECT: &str = "hprof_init.c:827";
    pub(super) const FILE: &str = "hprof_init.c:850";
    pub(super) const TEMPORARY: &str = "hprof_init.c:814";
    pub(super) const TWICE: &str = "hprof_init.c:1956";
}

/// A recording has begun in this process, or a start was refused permanently.
static LOADED: AtomicBool = AtomicBool::new(false);

/// The recording has ended, so another one may begin.
pub(crate) fn allow_another() {
    LOADED.store(false, Ordering::SeqCst);
}

/// The VM loads the agent at start-up.
///
/// # Safety
/// Called by the VM: `vm` is its `JavaVM*`, `options` null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnLoad(
    vm: RawEnv,
    options: *const c_char,
    _reserved: *mut c_void,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { fenced(vm, options, start) }
}

/// The agent is attached to a running VM.
///
/// # Safety
/// As [`Agent_OnLoad`].
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnAttach(
    vm: RawEnv,
    options: *const c_char,
    _reserved: *mut c_void,
) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { fenced(vm, options, attach) }
}

/// The VM is about to unload the library. Everything was done when the VM ended, unless a recording had ended just before
/// and its file is still being converted.
#[unsafe(no_mangle)]
pub extern "system" fn Agent_OnUnload(_vm: RawEnv) {
    let finish = || conversion::run_last(|| ());
    if std::panic::catch_unwind(finish).is_err() {
        process::note("internal fault at the end");
    }
}

/// Starts the recording and catches panics, so that a fault of the agent does not harm the program.
///
/// # Safety
/// As [`Agent_OnLoad`].
unsafe fn fenced(vm: RawEnv, options: *const c_char, begin: fn(JavaVm, &str) -> i32) -> i32 {
    // SAFETY: the caller's promise.
    let started = unsafe { jvmti::load(vm, options, begin) };
    started.unwrap_or_else(|| {
        process::note("internal fault at start; the program runs unprofiled");
        JNI_OK
    })
}

fn start(java: JavaVm, text: &str) -> i32 {
    if LOADED.swap(true, Ordering::SeqCst) {
        return refuse(&StartError::LoadedTwice.into(), text);
    }
    let environment = std::env::var(ENVIRONMENT).ok();
    let options = match parse(text, environment.as_deref()) {
        Ok(Parsed::Run(options)) => *options,
        Ok(Parsed::Help) => {
            let _ = std::io::stdout().write_all(help().as_bytes());
            process::exit(0)
        }
        Err(error) => return refuse(&Fault::Options(error), text),
    };
    if let Some(remark) = options.remark() {
        process::note(&remark);
    }
    let opened = output::open(&options).map_err(Fault::Start);
    match opened.and_then(|output| run(java, options, output)) {
        Ok(_) => JNI_OK,
        Err(fault) => refuse(&fault, text),
    }
}

fn attach(java: JavaVm, text: &str) -> i32 {
    match recording::order(java, text) {
        true => JNI_OK,
        false => JNI_ERR,
    }
}

/// Begins a recording in a program that is already running.
pub(crate) fn begin(java: JavaVm, options: Options, output: Output) -> Result<(), Fault> {
    LOADED.store(true, Ordering::SeqCst);
    let begun = run(java, options, output).and_then(|hotspot| hotspot.attach().map_err(Fault::Vm));
    begun.inspect_err(|_| {
        recording::forget();
        allow_another();
    })
}

/// Why nothing is recorded.
#[derive(Debug)]
pub(crate) enum Fault {
    Options(OptionError),
    Start(StartError),
    Vm(jvmti::Error),
}

impl From<StartError> for Fault {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Options(error) => error.fmt(f),
            Self::Start(error) => error.fmt(f),
            Self::Vm(error) => error.fmt(f),
        }
    }
}

fn run(java: JavaVm, options: Options, output: Output) -> Result<&'static HotSpot, Fault> {
    let config = plan::config(&options);
    let process = Process {
        scratch: output.scratch,
    };
    let recorder = Recorder::new(options.clone(), output.writer, Box::new(process));
    let recorder = Arc::new(Mutex::new(Rank::Recorder, recorder));
    recording::begin(&recorder, &options, &output.place, output.folder);
    listener::begin();
    let profiler = Shared {
        recorder,
        is_socket: output.collector.is_some(),
        collector: output.collector,
    };
    let setup = Setup {
        config,
        profiler: Box::new(profiler),
        message: process::note,
        memory: output.memory,
        events: output.events,
    };
    HotSpot::load(java, setup).map_err(Fault::Vm)
}

/// Prints why nothing is recorded. The program continues, unless `compat=y` is among the options: the original ended
/// it.
fn refuse(fault: &Fault, text: &str) -> i32 {
    let place = match fault {
        Fault::Options(_) => place::OPTIONS,
        Fault::Start(StartError::ProfileFile(..)) => place::FILE,
        Fault::Start(StartError::TempHeapFile(..)) => place::TEMPORARY,
        Fault::Start(StartError::LoadedTwice) => place::TWICE,
        Fault::Start(_) | Fault::Vm(_) => place::CONNECT,
    };
    let environment = std::env::var(ENVIRONMENT).unwrap_or_default();
    let mut words = text.split(',').chain(environment.split(','));
    if words.any(|word| word == "compat=y") {
        let text = format!("{fault} [{place}]");
        match fault {
            Fault::Options(_) => process::refuse(&text, OptionError::EXIT_CODE, false),
            Fault::Start(error) => process::refuse(&text, error.exit_code(), error.is_fatal()),
            Fault::Vm(_) => {}
        }
    }
    let fault = match fault {
        Fault::Start(error) => error.with_reason(),
        fault => fault.to_string(),
    };
    process::note(&format!("{fault}; the program runs unprofiled"));
    JNI_OK
}
