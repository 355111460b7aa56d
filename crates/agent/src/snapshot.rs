//! A copy of this process for a reader that writes its heap as a dump: `tenure dump --snapshot`, or a thread of the
//! agent with `oom=snapshot`.
//!
//! JVMTI calls back from a walk over the heap while all threads of the program are at a safepoint. The first callback
//! forks the process and ends the walk, so the program is stopped only for that time. The copy runs no code of the VM
//! and allocates nothing: it closes all files, connects to the reader's socket (or keeps the one that it inherited) and
//! waits. It ends when the reader closes the socket or ends, and when this process ends.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use agent_core::stack_serial;
use jvmti::{Capability, Env, HeapWalk, JavaVm, Reference, Walk};
use libc::{c_int, c_long, c_void, pid_t, sigset_t, sockaddr_un, socklen_t};

use vm_hotspot::HotSpot;
use vm_image::{Layout, Tracked, Words};
use vmpi::TraceId;

use crate::{process, recording};

/// Whether there is a copy. A second one would use more memory.
static IS_COPIED: AtomicBool = AtomicBool::new(false);

/// How long a copy took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// From the request to stop the threads until the program continued.
    pub(crate) stopped: Duration,
    /// The fork alone.
    pub(crate) fork: Duration,
}

/// How the copy reaches its reader.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reader<'a> {
    /// The reader listens at this path.
    At(&'a str),
    /// The reader has the other end of this socket, which stays open until this process has been copied.
    Behind(RawFd),
}

/// Copies this process for a reader. A separate thread calls `read` with the process id of the copy, and then waits
/// until the copy has ended.
pub(crate) fn take(
    java: JavaVm,
    reader: Reader<'_>,
    read: impl FnOnce(pid_t, Taken) + Send + 'static,
) -> Result<Taken, String> {
    let plan = Plan::new(reader).map_err(|error| format!("the socket of the reader: {error}"))?;
    if IS_COPIED.swap(true, Ordering::SeqCst) {
        return Err("a snapshot of this process is being read already".to_owned());
    }
    let taken = take_first(java, plan, read);
    if taken.is_err() {
        IS_COPIED.store(false, Ordering::SeqCst);
    }
    taken
}

/// As [`take`], when there is no other copy.
fn take_first(
    java: JavaVm,
    plan: Plan,
    read: impl FnOnce(pid_t, Taken) + Send + 'static,
) -> Result<Taken, String> {
    let (copied, reaped) = channel();
    let reaper = std::thread::Builder::new().name("HPROF reaper".to_owned());
    let spawned = reaper.spawn(move || {
        process::leave_signals_to_others();
        let Ok((pid, taken)) = reaped.recv() else {
            return;
        };
        read(pid, taken);
        wait_for(pid, libc::WNOWAIT);
        // A thread that sees that the copied process has ended can then make another copy.
        IS_COPIED.store(false, Ordering::SeqCst);
        wait_for(pid, 0);
    });
    if let Err(error) = spawned {
        return Err(format!(
            "cannot start a thread that waits for the copy: {error}"
        ));
    }
    let env = Env::create(java)
        .map_err(|error| error.to_string())?
        .attached_live();
    let mut walk = ForkingWalk { plan, forked: None };
    let (walked, stopped) = with_tracked(|words| {
        walk.plan.hello = [words.at, words.len];
        let begun = Instant::now();
        let walked = env
            .add_capabilities(&[Capability::TagObjects])
            .and_then(|_| env.follow_references(None, &mut walk));
        (walked, begun.elapsed())
    });
    let disposed = env.dispose();
    let (pid, fork) = match walk.forked {
        Some(Ok(forked)) => forked,
        Some(Err(error)) => return Err(format!("this process could not be copied: {error}")),
        None => {
            let why = walked.and(disposed).err().map(|error| error.to_string());
            return Err(why.unwrap_or_else(|| "the heap has no roots".to_owned()));
        }
    };
    let taken = Taken { stopped, fork };
    // The reaper thread waits for the copy.
    let _ = copied.send((pid, taken));
    Ok(taken)
}

/// Runs `body` while the recording's data about objects is stored where the reader finds it.
fn with_tracked<T>(body: impl FnOnce(Words) -> T) -> T {
    let known = HotSpot::get().and_then(|hotspot| Some((hotspot, hotspot.stacks_of_sites()?)));
    let Some(((hotspot, of_sites), recording)) = known.zip(recording::now()) else {
        return body(Words::default());
    };
    let mut all = of_sites.clone();
    all.sort_unstable();
    all.dedup();
    let all = all.into_iter().filter(|stack| *stack != TraceId::EMPTY);
    let stacks = agent_core::stacks(hotspot, recording.line_numbers, all);
    let sites: Vec<u32> = of_sites.into_iter().map(stack_serial).collect();
    hotspot.while_tracked(|known| {
        let Some(known) = known else {
            return body(Words::default());
        };
        let tracked = Tracked {
            stacks: &stacks,
            sites: &sites,
            lists: &known.lists,
            layout: Layout {
                size: known.entry_size,
                reference_at: known.reference_at,
                site_at: known.site_at,
                site_mask: known.site_mask,
            },
        };
        let words = tracked.words();
        body(Words {
            at: words.as_ptr() as u64,
            len: words.len() as u64,
        })
    })
}

/// Waits until the copy has ended. Unless `options` prevent it, this removes the copy from the system's process table.
fn wait_for(pid: pid_t, options: c_int) {
    let options = options | libc::WEXITED | libc::__WALL;
    // SAFETY: the kernel takes no pointer as one to nothing to fill in.
    while unsafe {
        libc::waitid(
            libc::P_PID,
            pid.unsigned_abs(),
            std::ptr::null_mut(),
            options,
        )
    } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
}

/// Data that the copy needs. It is prepared before the fork, because the copy cannot allocate.
struct Plan {
    socket: Socket,
    /// The bytes that the copy sends when it can be read: the address and size of the data about objects in its memory.
    hello: [u64; 2],
    parent: pid_t,
    /// The highest descriptor that may be open.
    highest: c_int,
}

impl Plan {
    fn new(reader: Reader<'_>) -> io::Result<Plan> {
        /// Higher descriptors are closed only on kernels that close all with one call.
        const MOST: c_long = 1 << 16;
        Ok(Plan {
            hello: [0; 2],
            socket: match reader {
                Reader::At(path) => Socket::Connect(address(Path::new(path))?),
                Reader::Behind(socket) => Socket::Keep(socket),
            },
            // SAFETY: the call takes nothing.
            parent: unsafe { libc::getpid() },
            // SAFETY: the call takes a number only.
            highest: unsafe { libc::sysconf(libc::_SC_OPEN_MAX) }.clamp(0, MOST) as c_int,
        })
    }
}

/// The address of a socket in the file system.
fn address(path: &Path) -> io::Result<sockaddr_un> {
    // SAFETY: all zeros are an address of no family.
    let mut address: sockaddr_un = unsafe { MaybeUninit::zeroed().assume_init() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let bytes = path.as_os_str().as_bytes();
    if bytes.len() >= address.sun_path.len() {
        return Err(io::ErrorKind::InvalidFilename.into());
    }
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    Ok(address)
}

/// How the copy gets its connection to the reader.
enum Socket {
    Connect(sockaddr_un),
    Keep(c_int),
}

/// A walk that forks at the first object.
struct ForkingWalk {
    plan: Plan,
    forked: Option<io::Result<(pid_t, Duration)>>,
}

impl HeapWalk for ForkingWalk {
    fn reference(&mut self, _: Reference<'_>) -> Walk {
        if self.forked.is_none() {
            self.forked = Some(fork(&self.plan));
        }
        Walk::Stop
    }
}

/// Forks without the handlers that libraries have registered for forks. The copy sends no signal when it ends, so that
/// other code in the program that waits for child processes does not receive it.
fn fork(plan: &Plan) -> io::Result<(pid_t, Duration)> {
    const NOTHING: c_long = 0;
    let begun = Instant::now();
    let mut all = MaybeUninit::<sigset_t>::uninit();
    let mut before = MaybeUninit::<sigset_t>::uninit();
    // SAFETY: both sets are live locals; the first is filled before it is used.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    // SAFETY: without flags and a stack this is a fork. The copy makes system calls only and never returns.
    let pid =
        unsafe { libc::syscall(libc::SYS_clone, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING) };
    if pid == 0 {
        serve_as_copy(plan);
    }
    let error = io::Error::last_os_error();
    // SAFETY: the call above has filled the set.
    unsafe {
        libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut());
    }
    if pid < 0 {
        return Err(error);
    }
    Ok((pid as pid_t, begun.elapsed()))
}

/// The descriptor of the reader's socket in the copy.
const KEPT: c_int = 0;

/// The code of the copy, in which no signal is handled.
fn serve_as_copy(plan: &Plan) -> ! {
    // SAFETY: all pointers are to live locals or literals; these calls allocate nothing and take no locks.
    unsafe {
        // A reader in this process closes its end of the socket when the process ends. The signal is sent when the
        // forking thread ends, which is a thread of the VM: while a program ends, that is too early for such a reader.
        if matches!(plan.socket, Socket::Connect(_)) {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid() != plan.parent {
                libc::_exit(1);
            }
        }
        // Lists of JVMs recognize a copy by this name and omit it.
        libc::prctl(libc::PR_SET_NAME, c"tenure copy".as_ptr());
        let kept = match plan.socket {
            Socket::Keep(socket) => {
                libc::dup2(socket, KEPT);
                KEPT
            }
            Socket::Connect(_) => -1,
        };
        close_files(kept + 1, plan.highest);
        // When memory is short, the kernel ends the copy and not the program.
        let score = libc::open(c"/proc/self/oom_score_adj".as_ptr(), libc::O_WRONLY);
        libc::write(score, c"1000".as_ptr().cast(), 4);
        libc::close(score);
        let socket = match &plan.socket {
            Socket::Keep(_) => KEPT,
            Socket::Connect(address) => {
                let socket = libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0);
                let len = size_of::<sockaddr_un>() as socklen_t;
                if libc::connect(socket, (&raw const *address).cast(), len) != 0 {
                    libc::_exit(1);
                }
                socket
            }
        };
        allow_reader(socket);
        let mut byte = [0_u8; 1];
        let byte = byte.as_mut_ptr().cast::<c_void>();
        libc::write(
            socket,
            (&raw const plan.hello).cast(),
            size_of_val(&plan.hello),
        );
        while libc::read(socket, byte, 1) > 0 {}
        libc::_exit(0)
    }
}

/// Closes all files from this number on. Otherwise other processes would wait for the end of connections that the
/// program has closed.
///
/// # Safety
/// Nothing in this process uses one of them afterwards.
unsafe fn close_files(first: c_int, highest: c_int) {
    // SAFETY: the call takes numbers only; the rest is the caller's promise.
    unsafe {
        let all = libc::c_uint::MAX;
        // Kernels before 5.9 do not have this call.
        if libc::syscall(libc::SYS_close_range, first, all, 0) != 0 {
            for descriptor in first..=highest {
                libc::close(descriptor);
            }
        }
    }
}

/// Allows the process at the other end to read this process's memory, which the kernel requires in some settings
/// (`kernel.yama.ptrace_scope` of 1).
///
/// # Safety
/// Must be called only in a copy; it allocates nothing.
unsafe fn allow_reader(socket: c_int) {
    let mut collector = MaybeUninit::<libc::ucred>::zeroed();
    let mut len = size_of::<libc::ucred>() as socklen_t;
    // SAFETY: the pointers are to live locals of these sizes; all zeros are valid credentials.
    unsafe {
        let into = collector.as_mut_ptr().cast();
        libc::getsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            into,
            &raw mut len,
        );
        let reader = c_long::from(collector.assume_init().pid);
        if reader > 0 {
            libc::prctl(libc::PR_SET_PTRACER, reader, 0, 0, 0);
        }
    }
}
