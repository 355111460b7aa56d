//! Events of the kernel on a thread's CPU time, which carry the kernel's part of the stack (`perf_event_open`): software event
//! `cpu-clock`, a ring of one page for each thread, and a signal to the thread for each record.
//!
//! The signal has the file descriptor of its event, by which the handler finds the ring. Other threads also unmap
//! rings; they wait until the handler no longer uses the ring.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::cpu::timers::own_tid;

/// The most kernel frames of a sample.
pub(super) const MOST_KERNEL: usize = 48;

/// The requested event (`struct perf_event_attr` of Linux 4.8).
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    read: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint: u32,
    configs: [u64; 2],
    branches: u64,
    user_registers: u64,
    user_stack: u32,
    clock: i32,
    registers: u64,
    watermark: u32,
    most_frames: u16,
    _rest: u16,
}

const SOFTWARE: u32 = 1;
const CALL_CHAIN: u64 = 1 << 5;
const DISABLED: u64 = 1;
const WITHOUT_USER_FRAMES: u64 = 1 << 22;
const CLOSE_ON_EXEC: u64 = 8;
const ENABLE: libc::c_ulong = 0x2400;
const DISABLE: libc::c_ulong = 0x2401;
const SET_PERIOD: libc::c_ulong = 0x4008_2404;
const OWNER_IS_THREAD: i32 = 0;
const SET_OWNER: i32 = 15;
const SET_SIGNAL: i32 = 10;

/// Words of the page before the data: the kernel's write position, and the read position.
const HEAD: usize = 1024 / 8;
const TAIL: usize = 1032 / 8;
const SAMPLE: u32 = 9;
const LOST: u32 = 2;
/// Addresses from here on are marks between the parts of a stack.
const MARKS: u64 = 4095_u64.wrapping_neg();

/// The ring of an event, by its file descriptor.
struct Ring {
    /// Its address; [`NEVER`], or [`GONE`], or with [`BUSY`] while the handler reads it.
    address: AtomicUsize,
    tid: AtomicU32,
    /// Whether the thread runs no Java code.
    is_other: AtomicU32,
}

const NEVER: usize = 0;
const GONE: usize = 1;
const BUSY: usize = 2;
const MOST_FILES: usize = 1 << 16;

static RINGS: [Ring; MOST_FILES] = [const {
    Ring {
        address: AtomicUsize::new(NEVER),
        tid: AtomicU32::new(0),
        is_other: AtomicU32::new(0),
    }
}; MOST_FILES];

/// Whether a signal belongs to an event; for signal handlers. `Some(true)`: to that of a thread that runs no Java code.
pub(super) fn is_other(file: i32) -> Option<bool> {
    let ring = RINGS.get(usize::try_from(file).ok()?)?;
    let is_ours = ring.address.load(Ordering::Acquire) != NEVER;
    is_ours.then(|| ring.is_other.load(Ordering::Relaxed) != 0)
}

/// In the handler: writes the kernel's frames of the last record, innermost first, and gives their number and that of the
/// records since the last call.
pub(super) fn take_last(file: i32, frames: &mut [usize]) -> (usize, u32) {
    let ring = usize::try_from(file).ok().and_then(|file| RINGS.get(file));
    let Some(ring) = ring.filter(|ring| ring.tid.load(Ordering::Relaxed) == own_tid()) else {
        return (0, 1);
    };
    let address = ring.address.load(Ordering::Acquire);
    let claim = |address| {
        let (from, to) = (address, address | BUSY);
        let order = Ordering::Acquire;
        let claimed = ring
            .address
            .compare_exchange(from, to, order, Ordering::Relaxed);
        claimed.is_ok()
    };
    if address == NEVER || address & (GONE | BUSY) != 0 || !claim(address) {
        return (0, 1);
    }
    let page = page_size();
    // SAFETY: two pages of this event, which stay while the ring is busy; the kernel writes the second and some words of the first.
    let words = unsafe { std::slice::from_raw_parts(address as *const AtomicU64, page / 4) };
    let (control, data) = words.split_at(page / 8);
    let taken = last_record(control, data, frames);
    ring.address.store(address, Ordering::Release);
    taken
}

fn last_record(control: &[AtomicU64], data: &[AtomicU64], frames: &mut [usize]) -> (usize, u32) {
    let head = control[HEAD].load(Ordering::Acquire);
    let tail = control[TAIL].load(Ordering::Relaxed);
    let word = |at: u64| data[(at / 8) as usize % data.len()].load(Ordering::Relaxed);
    let (mut at, mut last, mut records) = (tail, None, 0_u64);
    while at < head {
        let header = word(at);
        let size = header >> 48;
        match header as u32 {
            SAMPLE => {
                last = Some(at);
                records += 1;
            }
            LOST => records += word(at + 16),
            _ => {}
        }
        if size < 8 {
            break;
        }
        at += size;
    }
    let mut count = 0;
    if let Some(last) = last {
        let most = (data.len() as u64).min(word(last + 8));
        let addresses = (0..most).map(|index| word(last + 16 + index * 8));
        for address in addresses.filter(|address| *address < MARKS) {
            let Some(frame) = frames.get_mut(count) else {
                break;
            };
            *frame = address as usize;
            count += 1;
        }
    }
    control[TAIL].store(head, Ordering::Release);
    (count, u32::try_from(records.max(1)).unwrap_or(u32::MAX))
}

/// Events that are open.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// How many events may be open: a quarter of the files that the process may open, because the program needs some, too.
fn most_open() -> usize {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the pointer is to a live local.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    match result {
        0 => usize::try_from(limit.rlim_cur / 4).map_or(MOST_FILES, |most| most.min(MOST_FILES)),
        _ => 0,
    }
}

fn page_size() -> usize {
    // SAFETY: reads a constant of the system, and is fit for signal handlers.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// An event of a thread.
#[derive(Debug)]
pub(super) struct Event {
    file: OwnedFd,
    address: usize,
}

impl Event {
    /// Signals a thread each time it has used this much CPU time; with zero, not yet.
    pub(super) fn open(period: Duration, tid: u32, is_other: bool) -> io::Result<Self> {
        if OPEN.load(Ordering::Relaxed) >= most_open() {
            return Err(io::Error::from_raw_os_error(libc::EMFILE));
        }
        let file = open(period, tid)?;
        let number = usize::try_from(file.as_raw_fd()).unwrap_or(usize::MAX);
        let ring = RINGS.get(number);
        let ring = ring.ok_or_else(|| io::Error::from_raw_os_error(libc::EMFILE))?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let (size, raw) = (2 * page_size(), file.as_raw_fd());
        // SAFETY: a new mapping at an address that the system chooses.
        let address =
            unsafe { libc::mmap(ptr::null_mut(), size, access, libc::MAP_SHARED, raw, 0) };
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        ring.tid.store(tid, Ordering::Relaxed);
        ring.is_other.store(u32::from(is_other), Ordering::Relaxed);
        ring.address.store(address as usize, Ordering::Release);
        OPEN.fetch_add(1, Ordering::Relaxed);
        let event = Self {
            file,
            address: address as usize,
        };
        event.signal_to(tid)?;
        event.set(period)?;
        Ok(event)
    }

    fn signal_to(&self, tid: u32) -> io::Result<()> {
        let file = self.file.as_raw_fd();
        let owner = [OWNER_IS_THREAD, tid.cast_signed()];
        // SAFETY: sets properties of an own file; the pointer is to a live local with the two numbers of `struct f_owner_ex`.
        let results = unsafe {
            [
                libc::fcntl(file, SET_OWNER, &raw const owner),
                libc::fcntl(file, SET_SIGNAL, libc::SIGPROF),
                libc::fcntl(file, libc::F_SETFL, libc::O_ASYNC | libc::O_NONBLOCK),
            ]
        };
        match results.contains(&-1) {
            true => Err(io::Error::last_os_error()),
            false => Ok(()),
        }
    }

    /// Signals so often from now on; never with zero.
    pub(super) fn set(&self, period: Duration) -> io::Result<()> {
        let file = self.file.as_raw_fd();
        let period = nanoseconds(period);
        // SAFETY: orders to an own file; the pointer is to a live local.
        let result = unsafe {
            match period {
                0 => libc::ioctl(file, DISABLE as _, 0),
                _ => match libc::ioctl(file, SET_PERIOD as _, &raw const period) {
                    0 => libc::ioctl(file, ENABLE as _, 0),
                    error => error,
                },
            }
        };
        match result {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Event {
    /// Ends the event when no handler reads its ring.
    fn drop(&mut self) {
        let number = usize::try_from(self.file.as_raw_fd()).unwrap_or(usize::MAX);
        let Some(ring) = RINGS.get(number) else {
            return;
        };
        let take = || {
            let (from, order) = (self.address, Ordering::AcqRel);
            let taken = ring
                .address
                .compare_exchange(from, GONE, order, Ordering::Relaxed);
            taken.is_ok()
        };
        // The handler reads some words, and takes no lock.
        while !take() {
            std::thread::yield_now();
        }
        OPEN.fetch_sub(1, Ordering::Relaxed);
        // SAFETY: the mapping that `open` has made, which no handler finds any more.
        unsafe { libc::munmap(self.address as *mut _, 2 * page_size()) };
    }
}

fn nanoseconds(period: Duration) -> u64 {
    u64::try_from(period.as_nanos()).unwrap_or(u64::MAX)
}

fn open(period: Duration, tid: u32) -> io::Result<OwnedFd> {
    let attributes = |most_frames| Attributes {
        kind: SOFTWARE,
        size: size_of::<Attributes>() as u32,
        // So late that no signal comes until the period is set.
        period: nanoseconds(period).max(1 << 20),
        sample: CALL_CHAIN,
        flags: DISABLED | WITHOUT_USER_FRAMES,
        wakeup_events: 1,
        most_frames,
        ..Attributes::default()
    };
    let call = |mut attributes: Attributes| {
        // SAFETY: the pointer is to a live local of the size that it has; the kernel makes a file or refuses.
        let file = unsafe {
            let (any_processor, no_group) = (-1, -1);
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw mut attributes,
                tid,
                any_processor,
                no_group,
                CLOSE_ON_EXEC,
            )
        };
        match i32::try_from(file) {
            // SAFETY: the kernel has made this file for us.
            Ok(file) if file >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(file) }),
            _ => Err(io::Error::last_os_error()),
        }
    };
    match call(attributes(MOST_KERNEL as u16)) {
        // Before Linux 4.8 stacks had one limit for all.
        Err(error) if error.raw_os_error() == Some(libc::E2BIG) => call(attributes(0)),
        result => result,
    }
}

/// Why such events are not available; `None` if they are.
pub(super) fn why_not() -> Option<String> {
    let error = Event::open(Duration::ZERO, own_tid(), false).err()?;
    let level = fs::read_to_string("/proc/sys/kernel/perf_event_paranoid");
    let level = level
        .ok()
        .and_then(|level| level.trim().parse::<i32>().ok());
    Some(match level {
        Some(level) if level > 1 => format!(
            "the system refuses perf_event_open ({error}); kernel.perf_event_paranoid is {level}, and 1 or the capability \
             CAP_PERFMON is needed"
        ),
        _ => format!("the system refuses perf_event_open ({error})"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(values: &[u64]) -> Vec<AtomicU64> {
        values.iter().map(|value| AtomicU64::new(*value)).collect()
    }

    #[test]
    fn the_last_record_has_the_frames_and_all_are_counted() {
        let control = words(&[0; 512]);
        let header = |kind: u32, size: u64| u64::from(kind) | size << 48;
        // A ring of 16 words; the last record goes around its end.
        let data = words(&[
            0xc,
            0xd,
            0,
            0, // the rest of the last record
            header(SAMPLE, 24),
            1,
            0xaa, // seven words before
            header(LOST, 24),
            0,
            5,
            header(SAMPLE, 48),
            4,
            MARKS,
            0xb,
            0,
            0,
        ]);
        data[14].store(0xb1, Ordering::Relaxed);
        data[15].store(0xb2, Ordering::Relaxed);
        control[HEAD].store(16 * 8, Ordering::Relaxed);
        control[TAIL].store(4 * 8, Ordering::Relaxed);
        let mut frames = [0; 8];
        let taken = last_record(&control, &data, &mut frames);
        assert_eq!(taken, (3, 7));
        assert_eq!(frames[..3], [0xb, 0xb1, 0xb2]);
        let again = last_record(&control, &data, &mut frames);
        assert_eq!(again, (0, 1), "it was read");
        // One that goes around the end of the ring.
        data[14].store(header(SAMPLE, 32), Ordering::Relaxed);
        data[15].store(2, Ordering::Relaxed);
        control[TAIL].store((16 + 14) * 8, Ordering::Relaxed);
        control[HEAD].store((16 + 18) * 8, Ordering::Relaxed);
        assert_eq!(last_record(&control, &data, &mut frames[..1]), (1, 1));
        assert_eq!(frames[0], 0xc);
    }

    #[test]
    fn a_thread_that_calls_the_kernel_is_met_there() {
        if let Some(why) = why_not() {
            return testkit::skip("kernel frames", testkit::Need::Root, &why);
        }
        let event = Event::open(Duration::ZERO, own_tid(), false).expect("as before");
        let file = event.file.as_raw_fd();
        // The signals of this event are not for the test.
        let mut blocked = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        // SAFETY: blocks a signal of this thread; the pointers are to a live local.
        unsafe {
            libc::sigemptyset(blocked.as_mut_ptr());
            libc::sigaddset(blocked.as_mut_ptr(), libc::SIGPROF);
            libc::pthread_sigmask(libc::SIG_BLOCK, blocked.as_ptr(), ptr::null_mut());
        }
        event.set(Duration::from_millis(1)).expect("it is enabled");
        let mut frames = [0; MOST_KERNEL];
        let mut zeros = vec![0_u8; 1 << 20];
        let mut met = 0;
        while met < 20 {
            use std::io::Read;
            let mut zero = fs::File::open("/dev/zero").expect("there");
            zero.read_exact(&mut zeros).expect("zeros");
            let (count, _) = take_last(file, &mut frames);
            met += usize::from(count > 0);
        }
        assert_eq!(is_other(file), Some(false));
        drop(event);
        assert_eq!(take_last(file, &mut frames), (0, 1), "it is gone");
    }
}
