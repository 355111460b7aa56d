//! The loaded objects of the process, and the slots through which they call the allocator.
//!
//! An object that calls a function of another holds its address in a slot that the dynamic linker fills: relocations of
//! the kinds JUMP_SLOT and GLOB_DAT name the slot and the function (System V ABI, "Dynamic Linking"). Our functions are
//! put there in place of the allocator's. Nothing is restored at unloading, because the slots are unloaded with their
//! object.
//!
//! Another thread may be linking an object meanwhile: the object is in the linker's list before its slots are filled.
//! So a page is made read-only only if it was read-only before ([`Pipe`]).

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};

use locks::{Mutex, MutexGuard, Rank};

#[cfg(target_arch = "x86_64")]
const KINDS: [u32; 2] = [6, 7];
#[cfg(target_arch = "aarch64")]
const KINDS: [u32; 2] = [1025, 1026];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const KINDS: [u32; 2] = [u32::MAX; 2];

const DYNAMIC: u32 = 2;
const LOAD: u32 = 1;
const RELRO: u32 = 0x6474_e552;
const WRITABLE: u32 = 2;
/// The binding of a symbol that may be missing (weak).
const WEAK: u8 = 2;

/// An entry of the dynamic section.
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: u64,
}

/// A relocation with addend.
#[repr(C)]
struct Rela {
    offset: u64,
    info: u64,
    addend: i64,
}

/// A function that is replaced.
pub(super) struct Hook {
    /// Its name.
    pub(super) name: &'static CStr,
    /// The agent's function.
    pub(super) ours: usize,
    /// The one that the program would call.
    pub(super) original: usize,
}

/// How many objects had been loaded when the slots were last read, and whether the number was the same the time before.
static SEEN: Mutex<(u64, bool)> = Mutex::new(Rank::Libraries, (0, false));

/// Calls `body` with each loaded object and its program headers until it returns true. The linker is locked meanwhile, so
/// that the object stays. Therefore `body` must not allocate: a thread with the lock of the allocator may wait for the
/// linker.
pub(super) fn each_loaded<F>(mut body: F)
where
    F: FnMut(&libc::dl_phdr_info, &[libc::Elf64_Phdr]) -> bool,
{
    unsafe extern "C" fn visit<F>(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        body: *mut c_void,
    ) -> c_int
    where
        F: FnMut(&libc::dl_phdr_info, &[libc::Elf64_Phdr]) -> bool,
    {
        // SAFETY: the linker passes a valid object, whose table has so many rows, and the pointer from below.
        unsafe {
            let (info, body) = (&*info, &mut *body.cast::<F>());
            let headers = match info.dlpi_phdr.is_null() {
                true => &[],
                false => std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()),
            };
            body(info, headers).into()
        }
    }
    // SAFETY: the callback has the signature, and gets the live `body`.
    unsafe { libc::dl_iterate_phdr(Some(visit::<F>), (&raw mut body).cast()) };
}

/// Address range of the library that holds `address`.
pub(crate) fn range_of(address: usize) -> (usize, usize) {
    let mut found = (0, 0);
    each_loaded(|info, headers| {
        let base = info.dlpi_addr as usize;
        let loads = headers.iter().filter(|header| header.p_type == LOAD);
        let ranges = loads.map(|header| {
            let start = base + header.p_vaddr as usize;
            (start, start + header.p_memsz as usize)
        });
        let whole = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let whole = whole.filter(|range| (range.0..range.1).contains(&address));
        found = whole.unwrap_or_default();
        whole.is_some()
    });
    found
}

struct Patch<'a> {
    hooks: &'a [Hook],
    /// The agent's library, which is not changed.
    own: (usize, usize),
    /// The linker, which is left alone, too: before glibc 2.31 it called `malloc` for
    /// the thread-local memory that our functions ask it for. 0 if it is not known.
    linker: usize,
    page: usize,
    adds: u64,
    /// [`SEEN`], from the first object on: a thread with the linker's lock may wait for it, but a thread that holds it
    /// never waits for the linker's lock.
    seen: Option<MutexGuard<'static, (u64, bool)>>,
    /// A slot could not be written this time, or was not linked yet.
    is_left: bool,
    pipe: Pipe,
}

/// Puts the hooks into the slots of all objects, if objects were loaded since the last call; returns whether there were
/// any.
pub(super) fn patch(hooks: &[Hook], own: (usize, usize)) -> bool {
    // SAFETY: both return a number.
    let (page, linker) = unsafe {
        (
            libc::sysconf(libc::_SC_PAGESIZE),
            libc::getauxval(libc::AT_BASE),
        )
    };
    let mut patch = Patch {
        hooks,
        own,
        linker: linker as usize,
        page: usize::try_from(page).unwrap_or(4096),
        adds: 0,
        seen: None,
        is_left: false,
        pipe: Pipe(None),
    };
    each_loaded(|info, headers| {
        patch.adds = info.dlpi_adds;
        if patch.seen.is_none() {
            let seen = patch.seen.insert(SEEN.lock());
            // An object that was being linked is read once more.
            if **seen == (info.dlpi_adds, true) {
                return true;
            }
        }
        if patch.linker == 0 || patch.linker != info.dlpi_addr as usize {
            // SAFETY: the linker holds its lock, so that the object stays; nothing in the function waits for a lock of
            // the program's.
            unsafe { patch_object(info.dlpi_addr as usize, headers, &mut patch) };
        }
        false
    });
    let Some(mut seen) = patch.seen else {
        return false;
    };
    let is_same = patch.adds == seen.0;
    *seen = (patch.adds, is_same && !patch.is_left);
    !is_same
}

/// # Safety
/// `base` and `headers` must be those of a loaded object that stays loaded meanwhile.
unsafe fn patch_object(base: usize, headers: &[libc::Elf64_Phdr], patch: &mut Patch<'_>) {
    let at = |header: &libc::Elf64_Phdr| base.wrapping_add(header.p_vaddr as usize);
    let Some(dynamic) = headers.iter().find(|header| header.p_type == DYNAMIC) else {
        return;
    };
    let loads = headers.iter().filter(|header| header.p_type == LOAD);
    let ends = loads.map(|header| (header.p_vaddr + header.p_memsz) as usize);
    let length = ends.max().unwrap_or(0);
    if (patch.own.0..patch.own.1).contains(&at(dynamic)) {
        return;
    }
    // SAFETY: the section is mapped and ends with a tag of 0.
    let Some(tables) = (unsafe { Tables::read(at(dynamic), base) }) else {
        return;
    };
    for (start, bytes) in tables.relocations {
        // SAFETY: the linker has read the same table.
        let rows =
            unsafe { std::slice::from_raw_parts(start as *const Rela, bytes / size_of::<Rela>()) };
        for row in rows.iter().filter(|row| KINDS.contains(&(row.info as u32))) {
            // SAFETY: relocations name symbols of the table, symbols names of theirs.
            let (name, defined, weak) = unsafe {
                let symbol = &*tables.symbols.add((row.info >> 32) as usize);
                let name = CStr::from_ptr(tables.names.add(symbol.st_name as usize));
                (name, symbol.st_shndx != 0, symbol.st_info >> 4 == WEAK)
            };
            let hooks = patch.hooks;
            let Some(hook) = hooks.iter().find(|hook| hook.name == name) else {
                continue;
            };
            let slot = base.wrapping_add(row.offset as usize);
            let range = headers.iter().find(|header| {
                header.p_type == LOAD
                    && (at(header)..at(header) + header.p_memsz as usize).contains(&slot)
            });
            // The linker makes whole pages read-only, the last one if all of it is to be.
            let start_of_page = |address: usize| address & !(patch.page - 1);
            let is_relro = headers.iter().any(|header| {
                let end = start_of_page(at(header) + header.p_memsz as usize);
                header.p_type == RELRO && (start_of_page(at(header))..end).contains(&slot)
            });
            let Some(range) = range.filter(|range| range.p_flags & WRITABLE != 0) else {
                continue;
            };
            let object = (at(range), headers.iter().filter(|h| h.p_type == LOAD));
            let within = |value: usize| {
                object
                    .1
                    .clone()
                    .any(|h| (at(h)..at(h) + h.p_memsz as usize).contains(&value))
            };
            // SAFETY: the slot is in a mapped, writable segment, or one that was made
            // read-only after linking, and is aligned, being one of the linker's.
            unsafe {
                let slot = &*(slot as *const AtomicUsize);
                let value = slot.load(Ordering::Relaxed);
                // A slot that is bound at the first call still leads into its own object.
                let is_unbound = !defined && within(value);
                // Before it is linked, a slot has an offset into the file, or nothing, which
                // it keeps if it is weak and the function is nowhere.
                patch.is_left |= !defined && !weak && value < length && length <= base;
                if value == hook.original || is_unbound {
                    let page = is_relro.then_some(patch.page);
                    patch.is_left |= !replace(slot, hook.ours, page, &mut patch.pipe);
                }
            }
        }
    }
}

/// Writes a slot, in a page of this size if the linker makes it read-only at the end; false
/// if that has to be tried again.
///
/// # Safety
/// `slot` must be a slot of the linker's.
unsafe fn replace(
    slot: &AtomicUsize,
    ours: usize,
    protected: Option<usize>,
    pipe: &mut Pipe,
) -> bool {
    let Some(page) = protected else {
        slot.store(ours, Ordering::Relaxed);
        return true;
    };
    match pipe.store(slot, ours) {
        // Its object is still being linked, so that nothing of it runs and reads the slot.
        Some(true) => return true,
        Some(false) => {}
        None => return false,
    }
    let start = (std::ptr::from_ref(slot) as usize & !(page - 1)) as *mut c_void;
    // SAFETY: the page is mapped, and was made read-only by the linker, which is the last
    // that it does with it.
    unsafe {
        if libc::mprotect(start, page, libc::PROT_READ | libc::PROT_WRITE) == 0 {
            slot.store(ours, Ordering::Relaxed);
            libc::mprotect(start, page, libc::PROT_READ);
        }
    }
    true
}

/// Writes to memory by reading from a pipe: if the page is read-only, the result is an error and not a fault. There is
/// no other way to know whether the linker has made it read-only.
struct Pipe(Option<[c_int; 2]>);

impl Pipe {
    /// Whether the word could be written; `None` if it was not tried, for want of a pipe.
    fn store(&mut self, word: &AtomicUsize, value: usize) -> Option<bool> {
        const SIZE: usize = size_of::<usize>();
        let mut value = value;
        // SAFETY: the buffers are live words of this size; `word` may be written by others
        // at any time, being atomic.
        unsafe {
            if self.0.is_none() {
                let mut ends = [0; 2];
                let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
                self.0 = (libc::pipe2(ends.as_mut_ptr(), flags) == 0).then_some(ends);
            }
            let [from, to] = self.0?;
            if libc::write(to, (&raw const value).cast(), SIZE) != SIZE as isize {
                return None;
            }
            let is_written = libc::read(from, word.as_ptr().cast(), SIZE) == SIZE as isize;
            if !is_written {
                libc::read(from, (&raw mut value).cast(), SIZE);
            }
            Some(is_written)
        }
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        for end in self.0.into_iter().flatten() {
            // SAFETY: an end of our own pipe, closed once.
            unsafe { libc::close(end) };
        }
    }
}

/// The tables that the dynamic section names.
struct Tables {
    symbols: *const libc::Elf64_Sym,
    names: *const c_char,
    /// Start and bytes of both tables of relocations.
    relocations: [(usize, usize); 2],
}

impl Tables {
    /// # Safety
    /// `dynamic` must be the address of an object's dynamic section, `base` that of the object.
    unsafe fn read(dynamic: usize, base: usize) -> Option<Self> {
        let mut found = [0_usize; 6];
        let mut entry = dynamic as *const Dynamic;
        // SAFETY: the section ends with a tag of 0.
        unsafe {
            while (*entry).tag != 0 {
                let place = match (*entry).tag {
                    5 => Some(0),
                    6 => Some(1),
                    23 => Some(2),
                    2 => Some(3),
                    7 => Some(4),
                    8 => Some(5),
                    _ => None,
                };
                if let Some(place) = place {
                    found[place] = (*entry).value as usize;
                }
                entry = entry.add(1);
            }
        }
        // The linker has turned offsets into addresses, but in objects it did not map itself.
        let [names, symbols, jumps, jump_bytes, others, other_bytes] = found;
        let place = |value: usize| if value < base { value + base } else { value };
        if names == 0 || symbols == 0 {
            return None;
        }
        let table = |start: usize, bytes: usize| match start {
            0 => (std::ptr::dangling::<Rela>() as usize, 0),
            start => (place(start), bytes),
        };
        Some(Self {
            symbols: place(symbols) as *const _,
            names: place(names) as *const _,
            relocations: [table(jumps, jump_bytes), table(others, other_bytes)],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_only_page_is_noticed_and_written_all_the_same() {
        // SAFETY: a page of our own, that nothing else knows of.
        unsafe {
            let page = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).unwrap();
            let (all, none) = (libc::PROT_READ | libc::PROT_WRITE, std::ptr::null_mut());
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let start = libc::mmap(none, page, all, flags, -1, 0);
            assert_ne!(start, libc::MAP_FAILED);
            let (slot, next) = (
                &*start.cast::<AtomicUsize>(),
                &*start.cast::<AtomicUsize>().add(1),
            );
            let mut pipe = Pipe(None);
            assert!(replace(slot, 17, Some(page), &mut pipe));
            assert_eq!(slot.load(Ordering::Relaxed), 17);
            // It is as writable as before.
            next.store(1, Ordering::Relaxed);
            libc::mprotect(start, page, libc::PROT_READ);
            assert_eq!(pipe.store(slot, 18), Some(false));
            assert!(replace(slot, 19, Some(page), &mut pipe));
            assert_eq!(slot.load(Ordering::Relaxed), 19);
            // And as read-only.
            assert_eq!(pipe.store(next, 2), Some(false));
            libc::munmap(start, page);
        }
    }
}
