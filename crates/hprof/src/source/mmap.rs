//! Maps files, and handles that a mapped file is shortened or its disk fails: the system then sends SIGBUS to the
//! thread that accesses a page. No other code of this crate maps files.
#![allow(unsafe_code)]

use super::at::read_exact_at;
use super::health::Health;
use memmap2::Mmap;
use std::fs::File;
use std::io;
use std::ops::Deref;

/// A file mapped for reading. Once the program has called [`guard_mappings`], unreadable bytes are zeros and
/// [`Health`] reports them.
#[derive(Debug)]
pub struct GuardedMap {
    // Dropped first: the handler must not have a range that is unmapped.
    guard: Guard,
    map: Mmap,
}

impl GuardedMap {
    /// Maps a whole file.
    ///
    /// # Errors
    /// When the system refuses, for an empty file too.
    pub fn new(file: &File) -> io::Result<GuardedMap> {
        GuardedMap::watched_by(file, Health::of_file(file)?)
    }

    /// Maps the current contents of a file while this process continues to append to it.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn of_growing(file: &File) -> io::Result<GuardedMap> {
        GuardedMap::watched_by(file, Health::default())
    }

    fn watched_by(file: &File, health: Health) -> io::Result<GuardedMap> {
        // SAFETY: the mapping is private and read-only. If another process shortens the file, the
        // guard below puts zeros in its place. Bytes that change under the reader can give wrong
        // answers, which `Health::check` finds, but no unsoundness beyond that: every length is
        // checked against the slice at each use, and integers have no invalid values.
        let map = unsafe { Mmap::map(file)? };
        // SAFETY: the range is the mapping's own, and the guard is dropped before it.
        let guard = unsafe { Guard::new(map.as_ptr() as usize, map.len(), Pages::Rest, health) };
        Ok(GuardedMap { guard, map })
    }

    /// Whether the data read so far are reliable.
    pub fn health(&self) -> &Health {
        &self.guard.health
    }
}

impl Drop for GuardedMap {
    fn drop(&mut self) {
        self.guard.health.close();
    }
}

impl Deref for GuardedMap {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}

/// Mapped bytes, or bytes in memory when there is no file to map.
#[derive(Debug)]
pub(super) enum Mapped {
    File { map: GuardedMap, file: File },
    Memory(Vec<u8>),
}

impl Mapped {
    pub(super) fn file(file: &File) -> io::Result<Mapped> {
        if file.metadata()?.len() == 0 {
            return Ok(Mapped::Memory(Vec::new()));
        }
        let map = GuardedMap::new(file)?;
        let file = file.try_clone()?;
        Ok(Mapped::File { map, file })
    }

    pub(super) fn memory(bytes: Vec<u8>) -> Mapped {
        Mapped::Memory(bytes)
    }

    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Mapped::File { map, .. } => map,
            Mapped::Memory(bytes) => bytes,
        }
    }

    pub(super) fn health(&self) -> Health {
        match self {
            Mapped::File { map, .. } => map.health().clone(),
            Mapped::Memory(_) => Health::default(),
        }
    }

    /// Copies bytes from the file; false if there is no file or it is too short.
    pub(super) fn read_at(&self, at: u64, out: &mut [u8]) -> bool {
        match self {
            Mapped::File { file, .. } => read_exact_at(file, out, at).is_ok(),
            Mapped::Memory(_) => false,
        }
    }

    pub(super) fn advise(&self, sequential: bool) {
        // The call may fail (old kernels); it affects only speed.
        #[cfg(unix)]
        if let Mapped::File { map, .. } = self {
            let _ = map.map.advise(if sequential {
                memmap2::Advice::Sequential
            } else {
                memmap2::Advice::Normal
            });
        }
        // Windows has no such call.
        #[cfg(not(unix))]
        let _ = sequential;
    }

    pub(super) fn release(&self, from: u64, to: u64) {
        #[cfg(unix)]
        if let Mapped::File { map, .. } = self {
            const PAGE: u64 = 4096;
            let from = from.div_ceil(PAGE) * PAGE;
            let to = to.min(map.len() as u64) / PAGE * PAGE;
            if from < to {
                // SAFETY: the mapping is read-only and backed by a file, so pages that are
                // dropped come back from the file unchanged; pages of zeros that the guard put
                // there come back as zeros.
                let _ = unsafe {
                    map.map.unchecked_advise_range(
                        memmap2::UncheckedAdvice::DontNeed,
                        from as usize,
                        (to - from) as usize,
                    )
                };
            }
        }
        #[cfg(not(unix))]
        let _ = (from, to);
    }
}

/// The pages that the guard replaces by zeros when a page cannot be read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// That page and all after it: a file that was shortened has no data there.
    Rest,
    /// That page alone, writable: if the disk is full, the other pages of the file still have data.
    One,
}

/// Protects a mapping from SIGBUS while it exists.
#[derive(Debug)]
pub struct Guard {
    slot: Option<usize>,
    health: Health,
}

impl Guard {
    /// Guards `len` bytes from an address on; `health` is set when the first page fails.
    ///
    /// # Safety
    /// The range must be a mapping of the caller's that stays mapped while the guard lives, and for
    /// which pages of zeros are valid content.
    pub unsafe fn new(address: usize, len: usize, pages: Pages, health: Health) -> Guard {
        let slot = imp::register(address, len, pages, &health);
        Guard { slot, health }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(slot) = self.slot.take() {
            imp::unregister(slot);
        }
    }
}

/// Installs the handler of SIGBUS for guarded mappings. A program calls it once at its start. A library inside another
/// process does not call it (a JVM has its own handler).
pub fn guard_mappings() {
    imp::install();
}

#[cfg(unix)]
mod imp {
    use super::super::health::Health;
    use super::Pages;
    use std::cell::UnsafeCell;
    use std::mem::MaybeUninit;
    use std::ptr;
    use std::sync::Once;
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

    /// A guarded range. `start` is 0 while the slot is free and 1 while it is being filled.
    struct Slot {
        start: AtomicUsize,
        end: AtomicUsize,
        one_page: AtomicBool,
        failed: AtomicPtr<AtomicBool>,
    }

    const FREE: usize = 0;
    const RESERVED: usize = 1;

    /// The most guarded mappings at once; further ones are not guarded.
    const SLOTS: usize = 1024;

    static RANGES: [Slot; SLOTS] = [const {
        Slot {
            start: AtomicUsize::new(FREE),
            end: AtomicUsize::new(0),
            one_page: AtomicBool::new(false),
            failed: AtomicPtr::new(ptr::null_mut()),
        }
    }; SLOTS];

    pub(super) fn register(
        address: usize,
        len: usize,
        pages: Pages,
        health: &Health,
    ) -> Option<usize> {
        let reserve = |slot: &Slot| {
            let to = RESERVED;
            slot.start
                .compare_exchange(FREE, to, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        };
        let at = RANGES.iter().position(reserve)?;
        let slot = &RANGES[at];
        slot.end.store(address + len, Ordering::Relaxed);
        slot.one_page.store(pages == Pages::One, Ordering::Relaxed);
        // The guard owns the health, so this pointer is valid as long as the slot is taken.
        let failed = ptr::from_ref(health.failed()).cast_mut();
        slot.failed.store(failed, Ordering::Relaxed);
        slot.start.store(address, Ordering::Release);
        Some(at)
    }

    pub(super) fn unregister(slot: usize) {
        RANGES[slot].start.store(FREE, Ordering::Release);
    }

    /// The previous handler.
    struct Before(UnsafeCell<MaybeUninit<libc::sigaction>>);
    // SAFETY: written once, before the handler that reads it is installed.
    unsafe impl Sync for Before {}
    static BEFORE: Before = Before(UnsafeCell::new(MaybeUninit::zeroed()));
    static PAGE: AtomicUsize = AtomicUsize::new(4096);

    pub(super) fn install() {
        static ONCE: Once = Once::new();
        // SAFETY: the structures are plain data that the calls fill; the handler is async-signal-safe.
        ONCE.call_once(|| unsafe {
            if let Ok(page) = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)) {
                PAGE.store(page, Ordering::Relaxed);
            }
            libc::sigaction(libc::SIGBUS, ptr::null(), BEFORE.0.get().cast());
            let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
            action.sa_sigaction = on_sigbus as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            libc::sigemptyset(&mut action.sa_mask);
            libc::sigaction(libc::SIGBUS, &action, ptr::null_mut());
        });
    }

    /// Maps zeros in place of a guarded page that failed, so that the thread can continue; passes any other signal to
    /// the previous handler.
    ///
    /// Only atomics and the system call `mmap` are used, which makes it async-signal-safe.
    extern "C" fn on_sigbus(
        signal: libc::c_int,
        info: *mut libc::siginfo_t,
        context: *mut libc::c_void,
    ) {
        // SAFETY: the system gives a valid structure.
        let address = unsafe { (*info).si_addr() } as usize;
        let inside = |slot: &&Slot| {
            let start = slot.start.load(Ordering::Acquire);
            start > RESERVED && (start..slot.end.load(Ordering::Relaxed)).contains(&address)
        };
        if let Some(slot) = RANGES.iter().find(inside)
            && replace(slot, address)
        {
            return;
        }
        chain(signal, info, context);
    }

    fn replace(slot: &Slot, address: usize) -> bool {
        let page = PAGE.load(Ordering::Relaxed);
        let from = address & !(page - 1);
        let (to, access) = if slot.one_page.load(Ordering::Relaxed) {
            (from + page, libc::PROT_READ | libc::PROT_WRITE)
        } else {
            let end = slot.end.load(Ordering::Relaxed);
            (end.next_multiple_of(page), libc::PROT_READ)
        };
        let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: errno belongs to the thread that was interrupted, and is put back. The pages are
        // part of a mapping whose owner allows zeros there, and the pointer lives as long as the slot
        // is taken, which it is while the owner's thread touches the mapping.
        unsafe {
            let errno = errno();
            let before = *errno;
            let mapped = libc::mmap(from as *mut _, to - from, access, flags, -1, 0);
            *errno = before;
            if mapped == libc::MAP_FAILED {
                return false;
            }
            (*slot.failed.load(Ordering::Relaxed)).store(true, Ordering::Release);
        }
        true
    }

    #[cfg(any(target_os = "linux", target_os = "emscripten"))]
    unsafe fn errno() -> *mut libc::c_int {
        // SAFETY: has no preconditions.
        unsafe { libc::__errno_location() }
    }

    #[cfg(target_vendor = "apple")]
    unsafe fn errno() -> *mut libc::c_int {
        // SAFETY: has no preconditions.
        unsafe { libc::__error() }
    }

    fn chain(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
        // SAFETY: BEFORE was filled before this handler was installed. A handler with SA_SIGINFO
        // takes three arguments, one without takes the first. With the default action in place the
        // instruction fails again on return and ends the process as if there were no handler.
        unsafe {
            let before = (*BEFORE.0.get()).assume_init_ref();
            match before.sa_sigaction {
                libc::SIG_DFL | libc::SIG_IGN => {
                    let mut default: libc::sigaction = MaybeUninit::zeroed().assume_init();
                    default.sa_sigaction = libc::SIG_DFL;
                    libc::sigaction(signal, &default, ptr::null_mut());
                }
                handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
                    let handler: extern "C" fn(
                        libc::c_int,
                        *mut libc::siginfo_t,
                        *mut libc::c_void,
                    ) = std::mem::transmute(handler);
                    handler(signal, info, context);
                }
                handler => {
                    let handler: extern "C" fn(libc::c_int) = std::mem::transmute(handler);
                    handler(signal);
                }
            }
        }
    }
}

#[cfg(not(unix))]
mod imp {
    use super::super::health::Health;
    use super::Pages;

    pub(super) fn register(_: usize, _: usize, _: Pages, _: &Health) -> Option<usize> {
        None
    }

    pub(super) fn unregister(_: usize) {}

    pub(super) fn install() {}
}
