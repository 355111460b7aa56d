//! The functions that the VM calls to load the library, which loads the agent.

use std::ffi::{CStr, CString, c_char, c_void};
use std::path::{Path, PathBuf};

use jvmti::sys::RawEnv;
use jvmti::{Capability, Env, EventKind, JavaVm, OnLoad};

use crate::bridge::{Bridge, say};
use crate::get_env;
use crate::words::{AgentLibrary, parse};

const JNI_OK: i32 = 0;
const JNI_ERR: i32 = -1;

/// The VM loads the library at start-up.
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
    let started = unsafe { jvmti::load(vm, options, |java, text| start(vm, java, text)) };
    match started {
        Some(Ok(())) => JNI_OK,
        Some(Err(fault)) => {
            say(&fault);
            JNI_ERR
        }
        None => {
            say("internal fault at start; the program runs without the agent");
            JNI_OK
        }
    }
}

/// Refuses to attach: events of start-up would be missing, and this interface never supported attaching.
///
/// # Safety
/// As [`Agent_OnLoad`].
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnAttach(
    _vm: RawEnv,
    _options: *const c_char,
    _reserved: *mut c_void,
) -> i32 {
    say("load the bridge with -agentpath: when the program starts; it cannot be attached");
    JNI_ERR
}

/// The VM is about to unload the library; everything was done when the VM ended.
#[unsafe(no_mangle)]
pub extern "system" fn Agent_OnUnload(_vm: RawEnv) {}

/// Capabilities that the bridge requests. Each is granted or not.
const WANTED: &[Capability] = &[
    Capability::TagObjects,
    Capability::GenerateObjectFreeEvents,
    Capability::GenerateGarbageCollectionEvents,
    Capability::GetSourceFileName,
    Capability::GetLineNumbers,
    Capability::GetThreadCpuTime,
    Capability::GetOwnedMonitorInfo,
    Capability::GetCurrentContendedMonitor,
    Capability::GetMonitorInfo,
    Capability::GenerateMonitorEvents,
    Capability::GenerateVmObjectAllocEvents,
    Capability::GenerateSampledObjectAllocEvents,
    Capability::GenerateAllClassHookEvents,
    Capability::GenerateCompiledMethodLoadEvents,
    Capability::GenerateNativeMethodBindEvents,
    Capability::GenerateMethodEntryEvents,
    Capability::GenerateMethodExitEvents,
    Capability::Suspend,
];

/// # Safety
/// `vm` is the `JavaVM*` of this process, which is loading the library.
unsafe fn start(vm: RawEnv, java: JavaVm, text: &str) -> Result<(), String> {
    let (words, library) = parse(text)?;
    let env: Env<OnLoad> = Env::create(java).map_err(|e| format!("no JVMTI: {e}"))?;
    let mut wanted = WANTED.to_vec();
    if library.is_none() {
        // This capability costs time even if unused, and an agent of -Xrun is loaded too late to request it, so it is
        // requested only here.
        wanted.push(Capability::AccessLocalVariables);
    }
    let mut granted = env.add_capabilities(&wanted).map_err(|e| e.to_string())?;
    if !granted.has(Capability::GenerateSampledObjectAllocEvents) {
        let more = env.add_capabilities(&[Capability::RetransformClasses]);
        if more.is_ok_and(|more| more.has(Capability::RetransformClasses)) {
            granted = granted.with(Capability::RetransformClasses);
        }
    }
    if granted.has(Capability::GenerateSampledObjectAllocEvents) {
        // A thread uses a new interval only after the previous one has elapsed, so the interval is set before there are
        // threads.
        let set = env.set_heap_sampling_interval(words.alloc);
        set.map_err(|e| e.to_string())?;
    }
    let bridge = Bridge::new(java, env, granted, words)
        .install()
        .ok_or("the bridge is loaded already")?;
    jvmti::install(env, bridge).map_err(|e| e.to_string())?;
    for event in [
        EventKind::VmInit,
        EventKind::VmDeath,
        EventKind::ThreadStart,
        EventKind::ThreadEnd,
        EventKind::ObjectFree,
        EventKind::NativeMethodBind,
    ] {
        if let Err(error) = env.enable(event, true) {
            say(&format!("{event:?} events are missing: {error}"));
        }
    }
    if library.is_none()
        && let Err(error) = env.enable(EventKind::ClassFileLoadHook, true)
    {
        say(&format!(
            "class files are not shown to agents of -Xrun: {error}"
        ));
    }
    // SAFETY: `vm` as above; the library stays loaded as long as the VM.
    let seen_by_agents = unsafe { get_env::interpose(vm) };
    match library {
        Some(library) => load_agent(env, seen_by_agents, &library),
        None if seen_by_agents == vm => Ok(()),
        None => Err(
            "this VM's table of functions is read-only, so -Xrun agents cannot find \
                     the interface; name the agent: -agentpath:libjvmpi.so=AGENT:options"
                .to_owned(),
        ),
    }
}

/// Files that may be the agent, in the order of the VM: a path as it is; a name in the VM's library folder, then in the
/// search path of the system.
fn candidates(env: Env<OnLoad>, path: &Path) -> Vec<PathBuf> {
    if path.components().count() > 1 {
        return vec![path.to_path_buf()];
    }
    let name = path.to_string_lossy();
    let file = format!("lib{name}.so");
    let mut found = Vec::new();
    if let Some(folders) = env.system_property("sun.boot.library.path") {
        found.extend(std::env::split_paths(&folders).map(|folder| folder.join(&file)));
    }
    found.push(PathBuf::from(file));
    found.push(Path::new(".").join(path));
    found
}

fn load_agent(env: Env<OnLoad>, vm: RawEnv, library: &AgentLibrary) -> Result<(), String> {
    type OnLoadFn = unsafe extern "system" fn(RawEnv, *mut c_char, *mut c_void) -> i32;
    let mut handle = std::ptr::null_mut();
    let mut fault = String::new();
    for path in candidates(env, &library.path) {
        let Ok(text) = CString::new(path.to_string_lossy().as_bytes()) else {
            continue;
        };
        // SAFETY: loads the library that the user names; a C string.
        handle = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW) };
        if !handle.is_null() {
            break;
        }
        // SAFETY: dlerror gives null or a C string of this thread.
        let error = unsafe { libc::dlerror() };
        if !error.is_null() && (fault.is_empty() || path.is_file()) {
            // SAFETY: as above.
            fault = unsafe { CStr::from_ptr(error) }
                .to_string_lossy()
                .into_owned();
        }
    }
    if handle.is_null() {
        return Err(format!("the agent cannot be loaded: {fault}"));
    }
    // SAFETY: a valid handle and a C string.
    let symbol = unsafe { libc::dlsym(handle, c"JVM_OnLoad".as_ptr()) };
    if symbol.is_null() {
        let path = library.path.display();
        return Err(format!(
            "{path} has no JVM_OnLoad: it is no agent of this interface"
        ));
    }
    // SAFETY: the symbol of that name has this signature in every agent.
    let on_load = unsafe { std::mem::transmute::<*mut c_void, OnLoadFn>(symbol) };
    // Agents keep pointers into their options, and some write into them, so this memory is never freed.
    let options = CString::new(library.options.as_str()).unwrap_or_default();
    // SAFETY: `vm` behaves as a `JavaVM*`; the options live for ever.
    match unsafe { on_load(vm, options.into_raw(), std::ptr::null_mut()) } {
        JNI_OK => Ok(()),
        code => Err(format!("the agent refused to start ({code})")),
    }
}
