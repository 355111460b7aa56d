//! Tables in memory from the system and not from the allocator; untouched pages cost nothing.

use std::ops::Deref;
use std::{ptr, slice};

/// Rows of a table of so many bytes, a power of two and so many at most.
pub(super) fn places<T>(bytes: u64, most: usize) -> usize {
    let rows = usize::try_from(bytes).unwrap_or(usize::MAX) / size_of::<T>();
    (1 << rows.max(1).ilog2()).min(most)
}

/// A table of zero bytes that is never given back.
pub(super) struct Zeroed<T: 'static>(&'static [T]);

impl<T> Zeroed<T> {
    /// So many rows; `None` when the system has no memory for them.
    ///
    /// # Safety
    /// Zero bytes must be a valid `T`.
    pub(super) unsafe fn new(rows: usize) -> Option<Self> {
        // SAFETY: a new private mapping of zeros, page-aligned and as long as the slice,
        // that nothing else knows of; zeros are a `T` by the caller's promise.
        unsafe {
            let start = libc::mmap(
                ptr::null_mut(),
                rows.checked_mul(size_of::<T>())?,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            );
            (start != libc::MAP_FAILED).then(|| Self(slice::from_raw_parts(start.cast(), rows)))
        }
    }
}

impl<T> Deref for Zeroed<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0
    }
}
