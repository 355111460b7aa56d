//! Bytes at addresses: the only interface between the rest of the crate and a VM.

use std::cell::RefCell;
use std::fs::File;
use std::io;

/// An address in the VM.
pub type Address = u64;

/// Any source of a VM's memory. If a structure is not completely readable, reading returns fewer bytes instead of an
/// error.
pub trait Memory {
    /// Reads bytes from an address on; returns how many were read before the first unreadable one.
    fn read(&self, at: Address, into: &mut [u8]) -> usize;

    /// The first address at or after this one that may be readable.
    fn next_readable(&self, at: Address) -> Option<Address>;

    /// Whether all memory is unavailable because its process has ended.
    fn has_ended(&self) -> bool {
        false
    }
}

/// Bytes that are read at once for a structure.
const PAGE: u64 = 4096;
/// The most cached pages: 64 MiB, however large the VM is.
const SLOTS: usize = 1 << 14;
/// The longest C string that is accepted.
const LONGEST_TEXT: usize = 1024;

struct Page {
    number: u64,
    len: usize,
    bytes: Box<[u8]>,
}

/// Structures of the VM, read page by page. Words of one structure are close together, and a system call for each of
/// them would be most of the time for which the VM is stopped.
pub(crate) struct Structures<'m> {
    memory: &'m dyn Memory,
    pages: RefCell<Vec<Option<Page>>>,
}

impl<'m> Structures<'m> {
    pub(crate) fn new(memory: &'m dyn Memory) -> Structures<'m> {
        let mut pages = Vec::new();
        pages.resize_with(SLOTS, || None);
        Structures {
            memory,
            pages: RefCell::new(pages),
        }
    }

    /// The memory itself, for data that is read once and in large pieces.
    pub(crate) fn direct(&self) -> &'m dyn Memory {
        self.memory
    }

    /// All of these bytes, or nothing.
    pub(crate) fn fill(&self, at: Address, into: &mut [u8]) -> Option<()> {
        let mut done = 0;
        while done < into.len() {
            let address = at.checked_add(done as u64)?;
            let (number, offset) = (address / PAGE, (address % PAGE) as usize);
            let mut pages = self.pages.borrow_mut();
            let slot = &mut pages[number as usize % SLOTS];
            if slot.as_ref().is_none_or(|page| page.number != number) {
                let mut bytes = match slot.take() {
                    Some(page) => page.bytes,
                    None => vec![0; PAGE as usize].into(),
                };
                let len = self.memory.read(number * PAGE, &mut bytes);
                *slot = Some(Page { number, len, bytes });
            }
            let page = slot.as_ref()?;
            let there = page.bytes.get(offset..page.len)?;
            let count = there.len().min(into.len() - done);
            if count == 0 {
                return None;
            }
            into[done..done + count].copy_from_slice(&there[..count]);
            done += count;
        }
        Some(())
    }

    /// As many of these bytes as are readable.
    pub(crate) fn fill_some(&self, at: Address, into: &mut [u8]) -> usize {
        let there = into.iter_mut().enumerate().map_while(|(i, byte)| {
            *byte = self.u8(at.checked_add(i as u64)?)?;
            Some(())
        });
        there.count()
    }

    pub(crate) fn u8(&self, at: Address) -> Option<u8> {
        let mut bytes = [0; 1];
        self.fill(at, &mut bytes)?;
        Some(bytes[0])
    }

    pub(crate) fn u16(&self, at: Address) -> Option<u16> {
        let mut bytes = [0; 2];
        self.fill(at, &mut bytes)?;
        Some(u16::from_le_bytes(bytes))
    }

    pub(crate) fn u32(&self, at: Address) -> Option<u32> {
        let mut bytes = [0; 4];
        self.fill(at, &mut bytes)?;
        Some(u32::from_le_bytes(bytes))
    }

    pub(crate) fn i32(&self, at: Address) -> Option<i32> {
        self.u32(at).map(|value| value as i32)
    }

    pub(crate) fn u64(&self, at: Address) -> Option<u64> {
        let mut bytes = [0; 8];
        self.fill(at, &mut bytes)?;
        Some(u64::from_le_bytes(bytes))
    }

    /// A pointer: aligned and not null.
    pub(crate) fn pointer(&self, at: Address) -> Option<Address> {
        self.u64(at)
            .filter(|value| *value != 0 && value.is_multiple_of(8))
    }

    /// A pointer to something that need not be aligned to eight bytes, such as a symbol.
    pub(crate) fn pointer_unaligned(&self, at: Address) -> Option<Address> {
        self.u64(at).filter(|value| *value != 0)
    }

    /// Bytes; the caller has checked their number.
    pub(crate) fn bytes(&self, at: Address, len: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.fill(at, &mut bytes)?;
        Some(bytes)
    }

    /// A text that ends with a zero byte.
    pub(crate) fn text(&self, at: Address) -> Option<String> {
        let mut text = Vec::new();
        while text.len() < LONGEST_TEXT {
            match self.u8(at.checked_add(text.len() as u64)?)? {
                0 => return String::from_utf8(text).ok(),
                byte => text.push(byte),
            }
        }
        None
    }
}

/// Reads as many bytes of a file from a position as exist and can be read, at most the length of `into`; returns their
/// number. On Windows this also moves the cursor.
pub(crate) fn read_file_at(file: &File, into: &mut [u8], at: u64) -> usize {
    let mut done = 0;
    while done < into.len() {
        let Some(at) = at.checked_add(done as u64) else {
            break;
        };
        match read_once_at(file, &mut into[done..], at) {
            Ok(0) | Err(_) => break,
            Ok(count) => done += count,
        }
    }
    done
}

#[cfg(unix)]
fn read_once_at(file: &File, into: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, at)
}

#[cfg(windows)]
fn read_once_at(file: &File, into: &mut [u8], at: u64) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, into, at)
}
