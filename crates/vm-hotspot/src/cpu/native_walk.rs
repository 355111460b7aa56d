//! Finds the native frames of an interrupted thread: by the rules of its library (`unwind_tables`), or without rules by
//! frame pointers: each frame has the address of its caller's frame, and the return address above it (System V ABI;
//! AAPCS64). If neither works, the walk ends early, and the stack continues with Java frames.
//!
//! Runs in the signal handler. A wrong frame pointer can have any value, so the stack is read through `/proc`,
//! where an unmapped address causes no fault.

use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::OnceLock;

use crate::cpu::code_cache::CodeCache;
use crate::cpu::registers::{Registers, link_register};
use crate::cpu::slots::MOST_ADDRESSES;
use crate::cpu::unwind_rules::{Base, Rule};
use crate::cpu::unwind_tables::rule_for;
use crate::native::objects::range_of;
use crate::native::own_files::own_file;
use crate::vm::vm_structs::exported_symbol;

/// The most bytes between two frames.
const MOST_BETWEEN: usize = 256 << 10;
/// Words of the stack that are read at a time.
const WINDOW: usize = 128;
const WORD: usize = size_of::<usize>();
/// The process has no code outside this range.
const CODE: Range<usize> = 0x1000..0x7fff_ffff_ffff_f000;

/// What a walk needs.
#[derive(Debug)]
pub(super) struct Walker {
    memory: &'static File,
    code: &'static CodeCache,
    /// The libraries from which frame pointers lead to compiled code: see [`linked`].
    linked: Vec<Range<usize>>,
}

/// This process's memory, read through the system: unmapped addresses cause no fault. It is opened once and stays
/// open, because a signal handler may read it at any time. Not for signal handlers until it is open.
///
/// # Errors
/// When the process cannot read its own memory through the system.
pub(super) fn own_memory() -> io::Result<&'static File> {
    static MEMORY: OnceLock<File> = OnceLock::new();
    if let Some(memory) = MEMORY.get() {
        return Ok(memory);
    }
    let opened = File::open(own_file("mem"))?;
    Ok(MEMORY.get_or_init(|| opened))
}

/// The libraries that compiled code calls without a note, directly or through each other: the VM's library, which keeps
/// frame pointers, and those of the system, whose short functions leave the register alone. Code of other libraries
/// may use the register for anything.
fn linked() -> Vec<Range<usize>> {
    let of_vm = exported_symbol(c"gHotSpotVMStructs") as usize;
    // SAFETY: takes nothing and cannot fail.
    let of_kernel = unsafe { libc::getauxval(libc::AT_SYSINFO_EHDR) } as usize;
    let of_system = [libc::getpid as *const (), libc::pthread_self as *const ()];
    let mut all = vec![of_vm, of_kernel];
    all.extend(of_system.map(|function| function as usize));
    let ranges = all.into_iter().map(range_of);
    let mut ranges: Vec<_> = ranges.map(|(begin, end)| begin..end).collect();
    ranges.retain(|range| !range.is_empty());
    ranges
}

/// What a walk has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Number of native frames.
    pub(super) count: usize,
    /// The registers where the VM's own code has called the outermost of them, if the walk has reached it.
    pub(super) caller: Option<Registers>,
}

/// A return address without the signature that some processors put into its upper bits.
fn plain(address: usize) -> usize {
    match cfg!(target_arch = "aarch64") {
        true => address & 0xffff_ffff_ffff,
        false => address,
    }
}

/// A part of the stack, read at once.
struct Window<'a> {
    walker: &'a Walker,
    begin: usize,
    words: [usize; WINDOW],
    count: usize,
}

impl Window<'_> {
    /// A word of the stack above `sp`.
    fn word(&mut self, address: usize, sp: usize) -> Option<usize> {
        let at = |window: &Self| {
            let at = address.checked_sub(window.begin)? / WORD;
            window.words.get(..window.count)?.get(at).copied()
        };
        if !address.is_multiple_of(WORD) || address < sp {
            return None;
        }
        at(self).or_else(|| {
            // The next word may be a little below.
            self.begin = address.saturating_sub(8 * WORD).max(sp - sp % WORD);
            self.count = self.walker.read(self.begin, &mut self.words) / WORD;
            at(self)
        })
    }

    /// The registers after the return from a frame of a library, by its rule; `None` without a rule.
    fn by_rule(&mut self, rule: Rule, now: Registers, link: Option<usize>) -> Option<Registers> {
        let Registers { pc, sp, fp } = now;
        let base = match rule.base {
            Base::Unknown | Base::Outermost => return None,
            Base::Stack => sp,
            Base::Frame => fp,
            Base::Linkage => sp + if pc & 15 >= 11 { WORD } else { 0 },
        };
        let frame = base.checked_add_signed(rule.add as isize)?;
        let is_above = match rule.back {
            // A frame with nothing on the stack.
            0 => frame >= sp,
            _ => frame > sp,
        };
        if !is_above || frame - sp > MOST_BETWEEN {
            return None;
        }
        let mut saved = |offset: i16| self.word(frame.checked_add_signed(offset.into())?, sp);
        let fp = match rule.fp {
            // Below the stack pointer, the register has been restored already, which the rules do not state.
            offset if offset == 0 || frame.checked_add_signed(offset.into())? < sp => fp,
            offset => saved(offset)?,
        };
        let back = match rule.back {
            0 => link?,
            offset => saved(offset)?,
        };
        Some(Registers {
            pc: plain(back),
            sp: frame,
            fp,
        })
    }

    /// The same by frame pointers.
    fn by_frame_pointer(&mut self, now: Registers) -> Option<Registers> {
        let Registers { sp, fp, .. } = now;
        if fp < sp || fp - sp > MOST_BETWEEN {
            return None;
        }
        let caller = self.word(fp, sp)?;
        let back = self.word(fp + WORD, sp)?;
        Some(Registers {
            pc: plain(back),
            sp: fp + 2 * WORD,
            fp: caller,
        })
    }
}

impl Walker {
    /// Prepares walks.
    ///
    /// # Errors
    /// When the process cannot read its own memory through the system.
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self {
            memory: own_memory()?,
            code: CodeCache::of_vm(),
            linked: linked(),
        })
    }

    /// Reads memory from an address on, as far as it is mapped; returns the number of bytes.
    fn read(&self, address: usize, words: &mut [usize]) -> usize {
        let (fd, size) = (self.memory.as_raw_fd(), size_of_val(words));
        let Ok(offset) = libc::off64_t::try_from(address) else {
            return 0;
        };
        // SAFETY: the system writes at most so many bytes into the live slice; any bytes are words.
        let read = unsafe { libc::pread64(fd, words.as_mut_ptr().cast(), size, offset) };
        usize::try_from(read).unwrap_or(0)
    }

    /// Writes the frames of the interrupted thread, innermost first and each as a return address, until the first of the VM's own
    /// code.
    ///
    /// # Safety
    /// `context` is what the system has given to a signal handler.
    pub(super) unsafe fn walk(&self, context: *const c_void, frames: &mut [usize]) -> Found {
        // SAFETY: the caller's promise.
        let (start, link) = unsafe { (Registers::of(context), link_register(context)) };
        self.walk_from(start, link, frames)
    }

    /// The registers where the VM's own code has called the native code of the interrupted thread, by frame pointers
    /// alone; `None` if a frame between them is of a library that may have none.
    ///
    /// # Safety
    /// `context` is what the system has given to a signal handler.
    pub(super) unsafe fn caller(&self, context: *const c_void) -> Option<Registers> {
        let frames = &mut [0; MOST_ADDRESSES];
        // SAFETY: the caller's promise.
        let found = unsafe { self.walk(context, frames) };
        let is_linked = |pc: &usize| self.linked.iter().any(|range| range.contains(&(pc - 1)));
        let are_linked = frames[..found.count].iter().all(is_linked);
        found.caller.filter(|_| are_linked)
    }

    fn walk_from(&self, start: Registers, link: Option<usize>, frames: &mut [usize]) -> Found {
        let mut window = Window {
            walker: self,
            begin: 0,
            words: [0; WINDOW],
            count: 0,
        };
        let mut found = Found::default();
        let mut now = start;
        for frame in frames {
            let is_compiled = self.code.contains(now.pc);
            if is_compiled && found.count > 0 {
                found.caller = Some(now);
            }
            if is_compiled || !CODE.contains(&now.pc) {
                break;
            }
            // A call may be the last instruction of a function, but what was interrupted is in its function if it is the first.
            let is_first = found.count == 0;
            *frame = now.pc + usize::from(is_first);
            found.count += 1;
            let next = match rule_for(*frame - 1) {
                Some(rule) if rule.base != Base::Unknown => {
                    window.by_rule(rule, now, link.filter(|_| is_first))
                }
                _ => window.by_frame_pointer(now),
            };
            let Some(next) = next else { break };
            now = next;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walker() -> Walker {
        let code = Box::leak(Box::new(CodeCache::of_range(0x9000..0xa000)));
        Walker {
            code,
            ..Walker::new().expect("own memory")
        }
    }

    /// A stack in memory: words with its frames, and the place of the first.
    fn walk(words: &[usize], fp: usize, most: usize) -> Vec<usize> {
        let walker = walker();
        let sp = words.as_ptr() as usize;
        let mut frames = vec![0; most];
        let start = Registers { pc: 0x5000, sp, fp };
        let found = walker.walk_from(start, None, &mut frames);
        frames.truncate(found.count);
        frames
    }

    /// Frames of two words each, with these return addresses.
    fn stack(returns: &[usize]) -> Vec<usize> {
        let mut words = vec![0; returns.len() * 2];
        let begin = words.as_ptr() as usize;
        for (index, back) in returns.iter().enumerate() {
            words[index * 2] = begin + (index + 1) * 2 * WORD;
            words[index * 2 + 1] = *back;
        }
        words
    }

    #[test]
    fn a_chain_of_frames_is_followed_to_the_vms_own_code() {
        let words = stack(&[0x6000, 0x7000, 0x9800, 0x8000]);
        let begin = words.as_ptr() as usize;
        assert_eq!(walk(&words, begin, 8), [0x5001, 0x6000, 0x7000]);
        assert_eq!(walk(&words, begin, 2), [0x5001, 0x6000]);
    }

    #[test]
    fn the_vms_own_code_that_called_is_found_with_its_registers() {
        let words = stack(&[0x6000, 0x9800, 0x8000]);
        let walker = walker();
        let sp = words.as_ptr() as usize;
        let start = |pc| Registers { pc, sp, fp: sp };
        let caller = Registers {
            pc: 0x9800,
            sp: sp + 4 * WORD,
            fp: sp + 4 * WORD,
        };
        let found = walker.walk_from(start(0x5000), None, &mut [0; 8]);
        assert_eq!((found.count, found.caller), (2, Some(caller)));
        // It was interrupted itself.
        let found = walker.walk_from(start(0x9100), None, &mut [0; 8]);
        assert_eq!(found, Found::default());
    }

    #[test]
    fn more_frames_than_are_read_at_once_are_followed() {
        let returns: Vec<usize> = (0..200).map(|n| 0xb000 + n).collect();
        let mut words = stack(&returns);
        words[399] = 0;
        let frames = walk(&words, words.as_ptr() as usize, 1000);
        assert_eq!(frames[1..], returns[..199]);
    }

    #[test]
    fn a_register_that_is_no_frame_pointer_ends_the_walk() {
        let words = stack(&[0x6000, 0x7000]);
        let begin = words.as_ptr() as usize;
        for fp in [
            0,
            8,
            begin + 1,
            begin - 16,
            begin + (1 << 30),
            usize::MAX - 7,
        ] {
            assert_eq!(walk(&words, fp, 8), [0x5001], "{fp:x}");
        }
        // One that leads back would never end.
        let mut round = stack(&[0x6000, 0x7000, 0x8000]);
        round[2] = round.as_ptr() as usize;
        let begin = round.as_ptr() as usize;
        assert_eq!(walk(&round, begin, 8), [0x5001, 0x6000, 0x7000]);
    }

    #[test]
    fn a_rule_finds_the_caller_of_code_without_frame_pointers() {
        let walker = Walker::new().expect("own memory");
        let words = [1_usize, 2, 0x7700, 0x6000, 5];
        let sp = words.as_ptr() as usize;
        let mut window = Window {
            walker: &walker,
            begin: 0,
            words: [0; WINDOW],
            count: 0,
        };
        let now = Registers {
            pc: 0x5000,
            sp,
            fp: 0x8800,
        };
        let mut rule = Rule {
            base: Base::Stack,
            add: 32,
            fp: -16,
            back: -8,
        };
        let caller = |fp| Registers {
            pc: 0x6000,
            sp: sp + 32,
            fp,
        };
        assert_eq!(window.by_rule(rule, now, None), Some(caller(0x7700)));
        for unsaved in [0, -40] {
            rule.fp = unsaved;
            assert_eq!(window.by_rule(rule, now, None), Some(caller(0x8800)));
        }
        rule.add = 0;
        assert_eq!(window.by_rule(rule, now, None), None, "no frame");
        rule.back = 0;
        let by_link = window.by_rule(rule, now, Some(0x6000));
        assert_eq!(
            by_link.map(|caller| (caller.pc, caller.sp)),
            Some((0x6000, sp))
        );
        rule.base = Base::Frame;
        assert_eq!(window.by_rule(rule, now, Some(1)), None, "below the stack");
    }

    #[test]
    fn memory_that_is_not_there_ends_the_walk() {
        let page = 4096;
        // SAFETY: a new mapping of two pages, of which the second is taken away again; nothing else knows of it.
        let words: &[usize] = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let access = libc::PROT_READ | libc::PROT_WRITE;
            let memory = libc::mmap(std::ptr::null_mut(), 2 * page, access, flags, -1, 0);
            assert_ne!(memory, libc::MAP_FAILED);
            let words = memory.cast::<usize>();
            libc::munmap(memory.cast::<u8>().add(page).cast(), page);
            words.write(words as usize + page - WORD);
            words.add(1).write(0x6000);
            std::slice::from_raw_parts(words, page / WORD)
        };
        let begin = words.as_ptr() as usize;
        assert_eq!(walk(words, begin, 8), [0x5001, 0x6000]);
        assert_eq!(walk(words, begin + page, 8), [0x5001]);
    }
}
