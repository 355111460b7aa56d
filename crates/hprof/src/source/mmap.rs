//! The one place of this crate that maps files.
#![allow(unsafe_code)]

use memmap2::{Advice, Mmap, UncheckedAdvice};
use std::fs::File;
use std::io;

/// Bytes that are mapped, or in memory when there is nothing to map.
#[derive(Debug)]
pub(super) enum Mapped {
    File { map: Mmap, file: File },
    Memory(Vec<u8>),
}

impl Mapped {
    pub(super) fn file(file: &File) -> io::Result<Mapped> {
        if file.metadata()?.len() == 0 {
            return Ok(Mapped::Memory(Vec::new()));
        }
        // SAFETY: the mapping is private and read-only. If another process shortens the file
        // while it is read, the system ends this process with SIGBUS; SECURITY.md says so. Bytes
        // that change under the reader can give wrong answers but no unsoundness beyond that:
        // every length is checked against the slice at each use.
        let map = unsafe { Mmap::map(file)? };
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

    /// Copies bytes from the file; false where there is no file or it is too short.
    pub(super) fn read_at(&self, at: u64, out: &mut [u8]) -> bool {
        use std::os::unix::fs::FileExt;
        match self {
            Mapped::File { file, .. } => file.read_exact_at(out, at).is_ok(),
            Mapped::Memory(_) => false,
        }
    }

    pub(super) fn advise(&self, sequential: bool) {
        if let Mapped::File { map, .. } = self {
            // Advice may fail (old kernels); it changes speed only.
            let _ = map.advise(if sequential {
                Advice::Sequential
            } else {
                Advice::Normal
            });
        }
    }

    pub(super) fn release(&self, from: u64, to: u64) {
        const PAGE: u64 = 4096;
        if let Mapped::File { map, .. } = self {
            let from = from.div_ceil(PAGE) * PAGE;
            let to = to.min(map.len() as u64) / PAGE * PAGE;
            if from < to {
                // SAFETY: the mapping is read-only and backed by a file, so pages that are
                // dropped come back from the file unchanged.
                let _ = unsafe {
                    map.unchecked_advise_range(
                        UncheckedAdvice::DontNeed,
                        from as usize,
                        (to - from) as usize,
                    )
                };
            }
        }
    }
}
