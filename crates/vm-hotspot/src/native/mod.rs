//! Blocks that native code allocates (`malloc` and its family, and C++ `new`), by stack and library, until they are
//! freed.
//!
//! The allocator is not replaced: the slots through which loaded libraries call it get the addresses of the agent's
//! functions, which call the allocator ([`objects`], [`hooks`]). So this works in a VM that already runs, and with any
//! allocator. Blocks are chosen with a probability that depends on their size, or all of them. A chosen block is stored
//! by address ([`blocks`]) with its stack ([`sample`], [`stacks`]). Names are looked up later ([`symbols`]).
//!
//! Libraries that are loaded later are found when a thread looks up a symbol in them, which the VM does first, and
//! every 100 ms. Allocations of the agent are not recorded. A child of `fork` records nothing.
//!
//! In addition, [`references`] counts the global JNI references of native code, and [`clib`] has the differences
//! between glibc and musl.

mod blocks;
pub(crate) mod clib;
mod functions;
mod hooks;
mod memory;
pub(crate) mod objects;
pub(crate) mod own_files;
pub(crate) mod references;
mod sample;
mod stacks;
pub(crate) mod symbols;

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use jvmti::sys::MethodPtr;
use jvmti::{Env, Jni, Live};
use locks::{Mutex, Rank};
use vmpi::{
    AllocationRow, ArenaId, ClassId, Frame, FreeRow, Location, Memory, ObjectHandle, Share,
    ThreadId, Trace, TraceId,
};

use crate::cpu::java_frames::{AsyncGetCallTrace, find_agct};
use crate::vm::hotspot::HotSpot;
use crate::vm::registry::Registry;
use blocks::Blocks;
use objects::Hook;
use stacks::{Counts, Stacks};
use symbols::Place;

/// How often the agent searches for new libraries and new stacks.
const TICK: Duration = Duration::from_millis(100);

static MALLOC: OnceLock<Malloc> = OnceLock::new();

const ONLY_ONCE: &str = "native allocations are not recorded: they were before, and only the first recording of a program can \
                         have them";

/// Why another recording of this process cannot have native allocations, if it cannot.
pub fn native_refusal() -> Option<&'static str> {
    MALLOC.get().map(|_| ONLY_ONCE)
}

/// The recording of the process.
pub(crate) struct Malloc {
    blocks: Blocks,
    stacks: Stacks,
    /// Mean bytes between two recorded blocks, 0 for every block.
    interval: u64,
    /// Java frames of a stack.
    depth: usize,
    hooks: Vec<Hook>,
    /// Our library.
    own: (usize, usize),
    call_trace: Option<AsyncGetCallTrace>,
    java_is_up: AtomicBool,
    lost: AtomicU64,
    /// Stacks that have names.
    named: Mutex<Vec<Row>>,
}

/// A stack and what was reported of it to the profiler.
struct Row {
    stack: u32,
    library: ClassId,
    trace: TraceId,
    reported: Counts,
}

/// Differences since the last ones.
#[derive(Default)]
pub(crate) struct Rows {
    /// Allocations; the class is the library.
    pub(crate) allocations: Vec<AllocationRow>,
    /// Frees.
    pub(crate) frees: Vec<FreeRow>,
    /// Blocks that could not be recorded.
    pub(crate) lost: u64,
}

/// Starts to record; at most once.
///
/// # Errors
/// One line saying why nothing is recorded.
pub(crate) fn start(interval: u64, depth: u32, memory: &Memory) -> Result<(), &'static str> {
    let no_memory = "native allocations are not recorded: no memory for the tables";
    let interval = if interval <= 1 { 0 } else { interval };
    // Their size is fixed, so it is charged as a whole: an eighth, and a quarter.
    let limit = memory.native.limit();
    let blocks = Blocks::new(limit / 8).ok_or(no_memory)?;
    let stacks = Stacks::new(interval, limit / 4).ok_or(no_memory)?;
    memory.native.charge(blocks.bytes() + stacks.bytes());
    let own = start as *const () as usize;
    pin(own);
    if !clib::in_each_child(in_child) {
        return Err(
            "native allocations are not recorded: this C library does not report a fork, and the \
             child would record with the tables of its parent",
        );
    }
    let made = MALLOC.set(Malloc {
        blocks,
        stacks,
        interval,
        depth: depth as usize,
        hooks: hooks::all(),
        own: objects::range_of(own),
        call_trace: find_agct(),
        java_is_up: AtomicBool::new(false),
        lost: AtomicU64::new(0),
        named: Mutex::new(Rank::NativeNames, Vec::new()),
    });
    if made.is_err() {
        return Err(ONLY_ONCE);
    }
    hooks::ON.store(true, Ordering::SeqCst);
    patch_new();
    Ok(())
}

/// The tables of a child are a copy that is never read.
unsafe extern "C" fn in_child() {
    hooks::ON.store(false, Ordering::Relaxed);
}

/// The slots lead into our library, so that it must stay.
fn pin(own: usize) {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: finds the library of one of the agent's functions, and holds that library once more.
    unsafe {
        if libc::dladdr(own as *const c_void, info.as_mut_ptr()) != 0 {
            let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
            libc::dlopen(info.assume_init().dli_fname, flags);
        }
    }
}

/// Puts the hooks into newly loaded objects; true if there were any.
fn patch_new() -> bool {
    Malloc::get().is_some_and(|malloc| objects::patch(&malloc.hooks, malloc.own))
}

/// Java stacks can be taken from now on: starts the thread that looks up names.
pub(crate) fn begin(hotspot: &HotSpot, env: Env<Live>, jni: Jni) {
    let Some(malloc) = Malloc::recording() else {
        return;
    };
    malloc.java_is_up.store(true, Ordering::Relaxed);
    let hotspot = hotspot.forever();
    let watch = move |env, jni| {
        while hooks::ON.load(Ordering::Relaxed) {
            std::thread::sleep(TICK);
            let is_new = patch_new();
            malloc.name_new(hotspot, env, jni, is_new);
        }
    };
    if let Err(error) = hotspot.spawn(env, jni, "HPROF native heap thread", watch) {
        (hotspot.message)(&format!("native stacks get their names late: {error}"));
    }
}

/// Ends recording.
pub(crate) fn stop() {
    hooks::ON.store(false, Ordering::SeqCst);
}

impl Malloc {
    /// The recording, once started.
    #[inline]
    pub(crate) fn get() -> Option<&'static Self> {
        MALLOC.get()
    }

    /// The recording while it continues.
    pub(crate) fn recording() -> Option<&'static Self> {
        Self::get().filter(|_| hooks::ON.load(Ordering::Relaxed))
    }

    /// A block was freed, or must have been freed.
    #[cold]
    fn forget(&self, address: usize) {
        if let Some(block) = self.blocks.take(address)
            && !block.is_old
        {
            self.stacks.freed(block);
        }
    }

    /// Gives names to stacks that have none.
    fn name_new(&self, hotspot: &HotSpot, env: Env<Live>, jni: Jni, forget: bool) {
        let mut named = self.named.lock();
        if forget {
            symbols::all().forget_addresses(&hotspot.memory);
        }
        let first = named.len();
        for number in self.stacks.numbers(first) {
            let stack = self.stacks.stack(number);
            let mut symbols = symbols::all();
            let places: Vec<Place> = stack
                .native
                .iter()
                .filter_map(|pc| symbols.place(*pc, &hotspot.memory))
                .collect();
            drop(symbols);
            let mut state = hotspot.lock();
            let row = jni.local_frame(16, || {
                Row::of(
                    &mut state.registry,
                    (env, jni),
                    number,
                    &places,
                    &stack.java,
                )
            });
            drop(state);
            named.push(row);
        }
    }

    /// Blocks that exist now are not reported when they are freed.
    pub(crate) fn clear(&self) {
        for row in self.named.lock().iter_mut() {
            row.reported = self.stacks.counts(row.stack);
        }
        self.blocks.make_old();
    }

    /// The differences since the last call.
    pub(crate) fn rows(&self, hotspot: &HotSpot, env: Env<Live>, jni: Jni) -> Rows {
        self.name_new(hotspot, env, jni, patch_new());
        let mut rows = Rows {
            lost: self.lost.swap(0, Ordering::Relaxed),
            ..Rows::default()
        };
        for row in self.named.lock().iter_mut() {
            let now = self.stacks.counts(row.stack);
            let [blocks, bytes] = difference(now.allocated, row.reported.allocated);
            if blocks > 0 || bytes > 0 {
                rows.allocations.push(AllocationRow {
                    class: row.library,
                    trace: row.trace,
                    arena: ArenaId(0),
                    objects: blocks,
                    bytes,
                    share: Share::ALL,
                    object: ObjectHandle::NULL,
                });
            }
            let [blocks, bytes] = difference(now.freed, row.reported.freed);
            if blocks > 0 || bytes > 0 {
                rows.frees.push(FreeRow {
                    class: row.library,
                    trace: row.trace,
                    objects: blocks,
                    bytes,
                    share: Share::ALL,
                    object: ObjectHandle::NULL,
                });
            }
            row.reported = now;
        }
        rows
    }
}

fn difference(now: [u64; 2], before: [u64; 2]) -> [u64; 2] {
    [0, 1].map(|n| now[n].saturating_sub(before[n]))
}

impl Row {
    /// A stack as one of the profiler's: native functions are methods of their library.
    fn of(
        registry: &mut Registry,
        (env, jni): (Env<Live>, Jni),
        stack: u32,
        places: &[Place],
        java: &[(usize, i32)],
    ) -> Row {
        let caller = places.iter().find(|place| !place.is_carrier());
        let library = caller
            .or(places.first())
            .map_or(ClassId(0), |place| registry.library(&place.library));
        let mut frames: Vec<Frame> = places
            .iter()
            .map(|place| registry.native_frame(place))
            .collect();
        frames.extend(java.iter().map(|(method, bci)| Frame {
            method: registry.method(env, jni, MethodPtr(*method as *mut _)),
            location: u32::try_from(*bci).map_or(Location::Native, Location::Bytecode),
        }));
        let trace = registry.trace(Trace {
            thread: ThreadId::NONE,
            frames,
        });
        Row {
            stack,
            library,
            trace,
            reported: Counts::default(),
        }
    }
}
