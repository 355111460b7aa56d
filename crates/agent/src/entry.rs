//! The entry points that the VM looks for.

use std::ffi::{CStr, c_char, c_void};
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use agent_core::Recorder;
use agent_core::options::{ENVIRONMENT, OptionError, Options, Parsed, StartError, help, parse};
use jvmti::JavaVm;
use jvmti::sys::RawEnv;
use vm_hotspot::{HotSpot, Setup};

use crate::listener::{self, Shared};
use crate::process::{self, Process};
use crate::{events, output, plan};

const JNI_OK: i32 = 0;
const JNI_ERR: i32 = -1;

/// Places in the original's sources that its messages name, kept because scripts
/// compare them.
mod place {
    pub(super) const OPTIONS: &str = "hprof_init.c:495";
    pub(super) const CONNECT: &str = "hprof_init.c:827";
    pub(super) const FILE: &str = "hprof_init.c:850";
    pub(super) const TEMPORARY: &str = "hprof_init.c:814";
    pub(super) const TWICE: &str = "hprof_init.c:1956";
}

static LOADED: AtomicBool = AtomicBool::new(false);

/// Whether the program has not started yet, so that a fault may still end it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Moment {
    Start,
    Attach,
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
    unsafe { fenced(vm, options, Moment::Start) }
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
    unsafe { fenced(vm, options, Moment::Attach) }
}

/// The VM is about to unload the library; everything was done at VM death.
#[unsafe(no_mangle)]
pub extern "system" fn Agent_OnUnload(_vm: RawEnv) {}

/// Runs the start behind a panic fence: a fault of ours leaves the program alone.
///
/// # Safety
/// As [`Agent_OnLoad`].
unsafe fn fenced(vm: RawEnv, options: *const c_char, moment: Moment) -> i32 {
    let text = if options.is_null() {
        String::new()
    } else {
        // SAFETY: not null, a C string by the caller's promise.
        unsafe { CStr::from_ptr(options) }
            .to_string_lossy()
            .into_owned()
    };
    // SAFETY: the caller's promise.
    let java = unsafe { JavaVm::from_raw(vm) };
    let started = catch_unwind(AssertUnwindSafe(|| start(java, &text, moment)));
    started.unwrap_or_else(|_| {
        process::note("internal fault at start; the program runs unprofiled");
        JNI_OK
    })
}

fn start(java: JavaVm, text: &str, moment: Moment) -> i32 {
    if LOADED.swap(true, Ordering::SeqCst) {
        return again(text, moment);
    }
    if let Some(wanted) = events::parse(text) {
        return record(java, wanted, moment);
    }
    let environment = std::env::var(ENVIRONMENT).ok();
    let options = match parse(text, environment.as_deref()) {
        Ok(Parsed::Run(options)) => *options,
        Ok(Parsed::Help) if moment == Moment::Start => {
            let _ = std::io::stdout().write_all(help().as_bytes());
            process::exit(0)
        }
        Ok(Parsed::Help) => return JNI_ERR,
        Err(error) => return refuse_options(&error, moment),
    };
    match run(java, options, moment) {
        Ok(()) => JNI_OK,
        Err(Fault::Start(error)) => refuse_start(&error, moment),
        Err(Fault::Vm(error)) => {
            process::note(&format!("the program runs unprofiled: {error}"));
            JNI_OK
        }
    }
}

/// The agent is there already: another peer may go on with what it records.
fn again(text: &str, moment: Moment) -> i32 {
    if moment == Moment::Start {
        return refuse_start(&StartError::LoadedTwice, moment);
    }
    match parse(text, std::env::var(ENVIRONMENT).ok().as_deref()) {
        Ok(Parsed::Run(options)) => match listener::come_back(&options) {
            Ok(()) => JNI_OK,
            Err(fault) => {
                process::note(&fault);
                refuse_start(&StartError::LoadedTwice, moment)
            }
        },
        _ => refuse_start(&StartError::LoadedTwice, moment),
    }
}

/// Records events instead of a profile. It needs the VM from its start on.
fn record(java: JavaVm, wanted: Result<events::Wanted<'_>, String>, moment: Moment) -> i32 {
    let started = match moment {
        Moment::Attach => Err("events= cannot be attached; give it at start".to_owned()),
        Moment::Start => wanted.and_then(|wanted| events::start(java, &wanted)),
    };
    match started {
        Ok(()) => JNI_OK,
        Err(fault) => {
            process::note(&fault);
            JNI_ERR
        }
    }
}

/// Why nothing is profiled.
enum Fault {
    Start(StartError),
    Vm(jvmti::Error),
}

fn run(java: JavaVm, options: Options, moment: Moment) -> Result<(), Fault> {
    let config = plan::config(&options);
    let output = output::open(&options).map_err(Fault::Start)?;
    let process = Process {
        scratch: output.scratch,
    };
    let recorder = Recorder::new(options, output.writer, Box::new(process));
    let recorder = Arc::new(Mutex::new(recorder));
    listener::keep(&recorder);
    let profiler = Shared {
        recorder,
        is_socket: output.peer.is_some(),
        peer: output.peer,
    };
    let setup = Setup {
        config,
        profiler: Box::new(profiler),
        message: process::note,
    };
    let hotspot = HotSpot::load(java, setup).map_err(Fault::Vm)?;
    if moment == Moment::Attach {
        hotspot.attach().map_err(Fault::Vm)?;
    }
    Ok(())
}

fn refuse_options(error: &OptionError, moment: Moment) -> i32 {
    let text = format!("{error} [{}]", place::OPTIONS);
    if moment == Moment::Start {
        process::refuse(&text, OptionError::EXIT_CODE, false)
    }
    process::note(&text);
    LOADED.store(false, Ordering::SeqCst);
    JNI_ERR
}

fn refuse_start(error: &StartError, moment: Moment) -> i32 {
    let place = match error {
        StartError::Connect { .. } => place::CONNECT,
        StartError::ProfileFile(_) => place::FILE,
        StartError::TempHeapFile(_) => place::TEMPORARY,
        StartError::LoadedTwice => place::TWICE,
    };
    let text = format!("{error} [{place}]");
    if moment == Moment::Start {
        process::refuse(&text, error.exit_code(), error.is_fatal())
    }
    process::note(&text);
    if *error != StartError::LoadedTwice {
        LOADED.store(false, Ordering::SeqCst);
    }
    JNI_ERR
}
