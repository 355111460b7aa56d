//! The unsafe code of this crate: large zeroed arrays from the system, writes from several threads to different
//! elements of one array, and cache hints.
#![allow(unsafe_code)]

use crate::{Options, Phases, Tuning};
use hprof::source::{Guard, Health, Pages};
use memmap2::{MmapMut, MmapOptions};
use std::cell::UnsafeCell;
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Types without padding for which every bit pattern is a valid value.
///
/// # Safety
/// The implementor must be plain old data in that sense.
pub(crate) unsafe trait Plain: Copy + Send + Sync + 'static {}
// SAFETY: integers and arrays of integers are plain.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u16 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: as above.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// Bytes of a huge page.
const HUGE_PAGE: usize = 2 << 20;

/// How much memory the arrays of one build may take before they move to disk.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: u64,
    used: AtomicU64,
    spilled: AtomicBool,
    dir: std::path::PathBuf,
    /// Records how many bytes the arrays have.
    phases: Phases,
    /// Fails when the disk under a temporary file is full.
    health: Health,
    tuning: Tuning,
}

impl Budget {
    /// At most `limit` bytes in memory; files for the rest go to `dir`.
    pub(crate) fn new(limit: Option<u64>, dir: &Path, options: &Options) -> Budget {
        Budget {
            limit: limit.unwrap_or(u64::MAX),
            used: AtomicU64::new(0),
            spilled: AtomicBool::new(false),
            dir: dir.to_owned(),
            phases: options.phases.clone(),
            health: Health::default(),
            tuning: options.tuning,
        }
    }

    /// Without a limit; sequences from this length on go to files.
    #[cfg(test)]
    pub(crate) fn for_test(dir: &Path, in_file: u64) -> Budget {
        let mut options = Options::default();
        options.tuning.in_file = in_file;
        Budget::new(None, dir, &options)
    }

    /// Checks that all temporary files could be written. Called at the end of each phase, before its results are used.
    ///
    /// # Errors
    /// When a disk is full.
    pub(crate) fn check(&self) -> io::Result<()> {
        if self.health.has_failed() {
            Err(io::ErrorKind::StorageFull.into())
        } else {
            Ok(())
        }
    }

    /// Counts memory of the build that is in no array of this budget: less is left for those that follow.
    pub(crate) fn charge(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    /// True when an array had to go to disk.
    pub(crate) fn spilled(&self) -> bool {
        self.spilled.load(Ordering::Relaxed)
    }

    /// Where the phases of the build are recorded.
    pub(crate) fn phases(&self) -> &Phases {
        &self.phases
    }

    /// From which sizes on what is not read soon goes to files.
    pub(crate) fn tuning(&self) -> &Tuning {
        &self.tuning
    }

    /// The folder for temporary files.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}

/// A zeroed array of fixed length whose memory is returned to the system when it is dropped. Untouched pages take no
/// memory.
#[derive(Debug)]
pub(crate) struct BigVec<'b, T: Plain> {
    // Dropped before the mapping that it guards.
    _guard: Option<Guard>,
    map: MmapMut,
    len: usize,
    charged: Option<(&'b Budget, u64)>,
    marker: PhantomData<T>,
}

impl<'b, T: Plain> BigVec<'b, T> {
    /// An array of `len` zeros: in memory as long as the budget allows, otherwise in an unlinked file.
    pub(crate) fn zeroed(len: usize, budget: &'b Budget) -> io::Result<BigVec<'b, T>> {
        Self::reserve(len, len, budget)
    }

    /// Like [`zeroed`](Self::zeroed), but only `expect` elements will be touched.
    pub(crate) fn reserve(
        len: usize,
        expect: usize,
        budget: &'b Budget,
    ) -> io::Result<BigVec<'b, T>> {
        let charge = (expect.max(1) * size_of::<T>()) as u64;
        let before = budget.used.fetch_add(charge, Ordering::Relaxed);
        budget.phases.arrays(before + charge);
        if before.saturating_add(charge) > budget.limit {
            budget.spilled.store(true, Ordering::Relaxed);
            let (mut array, _) = BigVec::in_file(len, charge, budget)?;
            array.charged = Some((budget, charge));
            return Ok(array);
        }
        let array = Self::anonymous(len, expect);
        let mut array = array.inspect_err(|_| {
            budget.used.fetch_sub(charge, Ordering::Relaxed);
        })?;
        array.charged = Some((budget, charge));
        Ok(array)
    }

    /// An array of `len` zeros in memory, of which `expect` will be touched; no budget counts it.
    fn anonymous(len: usize, expect: usize) -> io::Result<BigVec<'b, T>> {
        let mut bytes = len.max(1) * size_of::<T>();
        let is_large = expect * size_of::<T>() >= HUGE_PAGE / 2;
        if is_large {
            // Linux places only whole huge pages at an address where it can use them.
            bytes = bytes.next_multiple_of(HUGE_PAGE);
        }
        let map = MmapOptions::new().len(bytes).no_reserve_swap().map_anon()?;
        #[cfg(target_os = "linux")]
        if is_large {
            // Huge pages save a quarter of the time on these arrays; it is not an error if the system refuses. What would
            // fill less than half of the last one is in small pages.
            let huge = (len * size_of::<T>() + HUGE_PAGE / 2) / HUGE_PAGE * HUGE_PAGE;
            let _ = map.advise_range(memmap2::Advice::HugePage, 0, huge);
        }
        Ok(BigVec {
            _guard: None,
            map,
            len,
            charged: None,
            marker: PhantomData,
        })
    }

    /// A small array of `len` zeros, which no budget counts.
    pub(crate) fn small(len: usize) -> io::Result<BigVec<'b, T>> {
        Self::anonymous(len, len)
    }

    /// An array of `len` zeros that the next phases do not need: for a large heap in an unlinked file. The file is also
    /// returned on systems where writes to a file are immediately visible in its mapping.
    pub(crate) fn for_later(
        len: usize,
        budget: &'b Budget,
    ) -> io::Result<(BigVec<'b, T>, Option<File>)> {
        if (len as u64) < budget.tuning.in_file {
            return Ok((Self::zeroed(len, budget)?, None));
        }
        let (array, file) = Self::in_file(len, (len * size_of::<T>()) as u64, budget)?;
        Ok((array, cfg!(unix).then_some(file)))
    }

    /// An array in an unlinked file; disk space for its first bytes is reserved now.
    fn in_file(len: usize, expect: u64, budget: &Budget) -> io::Result<(BigVec<'b, T>, File)> {
        let bytes = len.max(1) * size_of::<T>();
        let file = tempfile::tempfile_in(&budget.dir)?;
        file.set_len(bytes as u64)?;
        allocate(&file, expect)?;
        // SAFETY: the file is new, unlinked and known to no one else.
        let map = unsafe { MmapOptions::new().len(bytes).map_mut(&file)? };
        let health = budget.health.clone();
        // SAFETY: the range is the mapping's own, the guard is dropped before it, and zeros are
        // values of every plain type.
        let guard = unsafe { Guard::new(map.as_ptr() as usize, bytes, Pages::One, health) };
        let array = BigVec {
            _guard: Some(guard),
            map,
            len,
            charged: None,
            marker: PhantomData,
        };
        Ok((array, file))
    }
}

/// Reserves disk space for the first bytes of a file, so that a full disk is an error here and not a signal when the
/// mapping is written.
fn allocate(file: &File, bytes: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        match fallocate(file, FallocateFlags::empty(), 0, bytes) {
            // The file system cannot reserve space; the guard of the mapping then detects a full disk.
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, bytes);
    Ok(())
}

impl<T: Plain> Drop for BigVec<'_, T> {
    fn drop(&mut self) {
        if let Some((budget, charge)) = self.charged.take() {
            let before = budget.used.fetch_sub(charge, Ordering::Relaxed);
            budget.phases.arrays(before - charge);
        }
    }
}

impl<T: Plain> Deref for BigVec<'_, T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: the mapping is page-aligned, at least `len * size_of::<T>()` long, and any
        // bytes are values of T.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.len) }
    }
}

impl<T: Plain> DerefMut for BigVec<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as for deref; the mapping is owned by self alone.
        unsafe { std::slice::from_raw_parts_mut(self.map.as_mut_ptr().cast(), self.len) }
    }
}

/// Plain types that several threads may write to one address. The memory then has the value of one of them; for an
/// array this applies to each element.
pub(crate) trait Shareable: Plain {
    /// Writes a value while other threads may write there.
    ///
    /// # Safety
    /// The place must be valid for writes, and all access to it meanwhile must go through this function.
    unsafe fn store(place: *mut Self, value: Self);
}

macro_rules! shareable {
    ($($int:ty => $atomic:ty),*) => {
        $(impl Shareable for $int {
            #[inline(always)]
            unsafe fn store(place: *mut $int, value: $int) {
                // SAFETY: the caller promises a valid place, which is aligned as its type is, and that
                // that all other access is by this function, too.
                unsafe { <$atomic>::from_ptr(place) }.store(value, Ordering::Relaxed);
            }
        })*
    };
}

shareable!(u8 => AtomicU8, u16 => AtomicU16, u32 => AtomicU32, u64 => AtomicU64);

impl<T: Shareable, const N: usize> Shareable for [T; N] {
    #[inline(always)]
    unsafe fn store(place: *mut [T; N], value: [T; N]) {
        for (k, element) in value.into_iter().enumerate() {
            // SAFETY: the element is a part of the caller's place.
            unsafe { T::store(place.cast::<T>().add(k), element) };
        }
    }
}

/// A slice that several threads write and none reads. In a build each element belongs to one worker, unless the dump
/// changes while it is read.
pub(crate) struct SharedSlice<'a, T> {
    cells: &'a [UnsafeCell<T>],
}

// SAFETY: access goes only through `set`, which allows for other threads.
unsafe impl<T: Shareable> Sync for SharedSlice<'_, T> {}

impl<'a, T: Shareable> SharedSlice<'a, T> {
    /// Wraps a slice for the time of a parallel phase.
    pub(crate) fn new(slice: &'a mut [T]) -> SharedSlice<'a, T> {
        let cells = std::ptr::from_mut(slice) as *const [UnsafeCell<T>];
        // SAFETY: UnsafeCell<T> has the layout of T, and the borrow is exclusive for 'a.
        SharedSlice {
            cells: unsafe { &*cells },
        }
    }

    /// Fetches the cache line of an element.
    #[inline(always)]
    pub(crate) fn prefetch(&self, at: usize) {
        prefetch(self.cells, at);
    }

    /// Writes one element; out of range is ignored.
    #[inline(always)]
    pub(crate) fn set(&self, at: u64, value: T) {
        if let Some(cell) = self.cells.get(at as usize) {
            // SAFETY: the slice is borrowed exclusively, and only this function accesses it.
            unsafe { T::store(cell.get(), value) }
        }
    }
}

/// An array from which several threads take blocks to fill.
pub(crate) struct SharedRows<'a> {
    bytes: &'a [UnsafeCell<u8>],
    /// The first free byte.
    free: AtomicU64,
}

/// A part of the array that only one thread uses.
pub(crate) struct Block<'a> {
    start: u64,
    bytes: &'a mut [u8],
}

// SAFETY: each byte is in one block at most.
unsafe impl Sync for SharedRows<'_> {}

impl<'a> SharedRows<'a> {
    /// Wraps an array for the time of a parallel phase.
    pub(crate) fn new(rows: &'a mut [u8]) -> SharedRows<'a> {
        let bytes = std::ptr::from_mut(rows) as *const [UnsafeCell<u8>];
        // SAFETY: as for `SharedSlice`.
        SharedRows {
            bytes: unsafe { &*bytes },
            free: AtomicU64::new(0),
        }
    }

    /// The next block of this size; `None` if it would end beyond `limit` or the end.
    pub(crate) fn take(&self, size: u64, limit: u64) -> Option<Block<'a>> {
        let limit = limit.min(self.bytes.len() as u64);
        let next = |free: u64| free.checked_add(size).filter(|end| *end <= limit);
        let start = self
            .free
            .fetch_update(Ordering::Acquire, Ordering::Acquire, next);
        let start = start.ok()?;
        let cells = &self.bytes[start as usize..(start + size) as usize];
        // SAFETY: the rows are borrowed exclusively for 'a, and what was taken is taken again only
        // after it was given back, by value.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(cells.as_ptr() as *mut u8, cells.len()) };
        Some(Block { start, bytes })
    }

    /// Makes a block available again if it is the last one that was taken; otherwise returns it.
    pub(crate) fn give_back(&self, block: Block<'a>) -> Option<Block<'a>> {
        let end = block.start + block.bytes.len() as u64;
        let done =
            self.free
                .compare_exchange(end, block.start, Ordering::Release, Ordering::Relaxed);
        done.is_err().then_some(block)
    }
}

impl<'a> Block<'a> {
    /// The offset of the block.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// The block, to be filled.
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        self.bytes
    }

    /// The block without its first bytes.
    pub(crate) fn after(self, used: usize) -> Block<'a> {
        Block {
            start: self.start + used as u64,
            bytes: &mut self.bytes[used..],
        }
    }
}

/// Asks the processor to fetch `slice[at]`; nothing happens out of range.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if at < slice.len() {
        // SAFETY: the address is inside the slice, and a prefetch has no effect on memory.
        unsafe {
            use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            _mm_prefetch::<_MM_HINT_T0>(slice.as_ptr().add(at).cast());
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, at);
}

/// Runs `work`; on processors that count bits in one instruction, a version compiled for these.
pub(crate) fn with_popcnt<A: ?Sized, B: ?Sized>(a: &A, b: &mut B, work: impl Fn(&A, &mut B)) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("popcnt") {
        #[target_feature(enable = "popcnt")]
        fn fast<A: ?Sized, B: ?Sized>(a: &A, b: &mut B, work: impl Fn(&A, &mut B)) {
            work(a, b);
        }
        // SAFETY: the processor was just found to have the feature.
        return unsafe { fast(a, b, work) };
    }
    work(a, b);
}

/// Views bytes as an array of T; `None` if misaligned or not a whole number of elements.
pub(crate) fn view<T: Plain>(bytes: &[u8]) -> Option<&[T]> {
    // SAFETY: T is plain; align_to gives a middle part that is aligned and of whole elements.
    let (head, middle, tail) = unsafe { bytes.align_to::<T>() };
    (head.is_empty() && tail.is_empty()).then_some(middle)
}

/// Views an array of T as bytes.
pub(crate) fn bytes_of<T: Plain>(slice: &[T]) -> &[u8] {
    // SAFETY: plain types have no padding.
    unsafe { std::slice::from_raw_parts(slice.as_ptr().cast(), size_of_val(slice)) }
}

/// Views an array of T as bytes to be overwritten.
pub(crate) fn bytes_of_mut<T: Plain>(slice: &mut [T]) -> &mut [u8] {
    // SAFETY: plain types have no padding, and any bytes are values.
    unsafe { std::slice::from_raw_parts_mut(slice.as_mut_ptr().cast(), size_of_val(slice)) }
}

/// From now on large blocks are returned to the system when they are freed. Otherwise the allocator keeps blocks of
/// other threads, up to the size of the largest that was ever freed.
pub(crate) fn give_large_pieces_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: mallopt takes any number, and changes only how memory is obtained from now on.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 18);
    }
}

/// Returns memory that was freed in small blocks to the system.
pub(crate) fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: malloc_trim has no preconditions and only releases free memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Processor time of all threads of this process so far; zero where the system does not report it.
pub(crate) fn processor_time() -> Duration {
    #[cfg(unix)]
    {
        let mut time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: the place is valid for a timespec, which is all that the call writes.
        let done = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
        if done == 0 {
            return Duration::new(time.tv_sec as u64, time.tv_nsec as u32);
        }
    }
    Duration::ZERO
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_never_overlap() {
        let mut rows = vec![0u8; 100];
        let shared = SharedRows::new(&mut rows);
        let mut first = shared.take(40, 90).expect("room");
        first.bytes().fill(1);
        let second = shared.take(30, 90).expect("room");
        assert!(shared.take(30, 90).is_none(), "behind the limit");
        let kept = shared.give_back(first.after(10)).expect("not the last one");
        assert_eq!(kept.start(), 10);
        assert!(shared.give_back(second.after(5)).is_none());
        let mut third = shared.take(45, 90).expect("room");
        assert_eq!(third.start(), 45);
        third.bytes().fill(3);
        assert_eq!(
            (rows[39], rows[44], rows[45], rows[89], rows[90]),
            (1, 0, 3, 3, 0)
        );
    }

    #[test]
    fn two_threads_may_write_one_element() {
        let mut values = vec![[0u32; 3]; 4];
        let shared = SharedSlice::new(&mut values);
        std::thread::scope(|scope| {
            for value in 1..=2 {
                let shared = &shared;
                scope.spawn(move || (0..5).for_each(|at| shared.set(at, [value; 3])));
            }
        });
        assert!(values.iter().flatten().all(|v| (1..=2).contains(v)));
    }
}
