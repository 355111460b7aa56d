//! What runs in place of the allocator's functions. Each calls the one that the program
//! would have called, and counts.
//!
//! On the way of a block that is not recorded nothing is locked and nothing allocated: a
//! countdown of bytes in thread-local memory, and one load of a small filter for a free.

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use vmpi::Random;

use super::objects::Hook;
use super::{Malloc, sample};

/// False before the start, after the end, and in the child of a fork.
pub(super) static ON: AtomicBool = AtomicBool::new(false);

/// What a thread needs to choose blocks.
pub(super) struct Local {
    /// Bytes until a block is recorded.
    left: Cell<i64>,
    /// `None` before the first random number.
    random: Cell<Option<Random>>,
    /// This thread is inside the allocator or inside us.
    inside: Cell<bool>,
}

thread_local! {
    static LOCAL: Local = const {
        Local { left: Cell::new(-1), random: Cell::new(None), inside: Cell::new(false) }
    };
}

impl Local {
    /// Whether the countdown ends with a block of `size` bytes.
    fn ends_with(&self, size: usize) -> bool {
        let left = self.left.get().saturating_sub(size as i64);
        self.left.set(left);
        left < 0
    }

    /// Whether a block is recorded with which the countdown ended, and the next countdown.
    fn draw(&self, size: usize, interval: u64) -> bool {
        if interval == 0 {
            self.left.set(-1);
            return true;
        }
        if self.random.get().is_none() {
            // A thread begins in the middle of a distance, which is distributed as a whole one.
            self.left
                .set(self.distance(interval).saturating_sub(size as i64));
            if self.left.get() >= 0 {
                return false;
            }
        }
        self.left.set(self.distance(interval));
        true
    }

    /// Bytes to the next recorded one: exponential, so that a block of `s` bytes is recorded
    /// with chance `1 - exp(-s / interval)` whatever came before.
    fn distance(&self, interval: u64) -> i64 {
        let mut random = self.random.get().unwrap_or_else(|| {
            let clock = crate::vm::config::Clock::Elapsed.now().cast_unsigned();
            Random::new(std::ptr::from_ref(self) as u64 ^ clock.rotate_left(32))
        });
        let chance = 1.0 - random.uniform();
        self.random.set(Some(random));
        (-chance.ln() * interval as f64) as i64
    }
}

/// Calls the allocator for a new block, and counts it.
#[inline]
fn allocate(size: usize, original: impl FnOnce() -> *mut c_void) -> *mut c_void {
    LOCAL.with(|local| {
        if local.inside.get() || !ON.load(Ordering::Relaxed) {
            return original();
        }
        let _inside = Inside::of(local);
        let block = original();
        if !block.is_null() {
            came(local, block as usize, size);
        }
        block
    })
}

/// A thread is inside until this goes, also when `new` throws.
struct Inside<'a>(&'a Local);

impl<'a> Inside<'a> {
    fn of(local: &'a Local) -> Self {
        local.inside.set(true);
        Self(local)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.set(false);
    }
}

/// A block came into being.
#[inline]
fn came(local: &Local, block: usize, size: usize) {
    let Some(malloc) = Malloc::get() else { return };
    // Freed by ways that we do not see.
    if malloc.blocks.may_hold(block) {
        malloc.forget(block);
    }
    if local.ends_with(size) && local.draw(size, malloc.interval) {
        keeping_errno(|| sample::record(malloc, block, size));
    }
}

/// The number of the last error is the program's.
fn keeping_errno(body: impl FnOnce()) {
    // SAFETY: the address of this thread's errno is always valid.
    unsafe {
        let errno = *libc::__errno_location();
        body();
        *libc::__errno_location() = errno;
    }
}

#[inline]
fn goes(block: *mut c_void) {
    if ON.load(Ordering::Relaxed)
        && let Some(malloc) = Malloc::get()
        && malloc.blocks.may_hold(block as usize)
    {
        malloc.forget(block as usize);
    }
}

/// Functions of the program that the agent's stand for, in the order of [`NAMES`].
static ORIGINALS: [AtomicUsize; NAMES.len()] = [const { AtomicUsize::new(0) }; NAMES.len()];

const NAMES: [&CStr; 25] = [
    c"malloc",
    c"calloc",
    c"realloc",
    c"free",
    c"posix_memalign",
    c"aligned_alloc",
    c"memalign",
    c"valloc",
    c"pvalloc",
    c"reallocarray",
    c"dlsym",
    // `new` and `delete` of C++, which some allocators bring themselves: plain and of arrays,
    // without exceptions, aligned; of a known size, aligned, and both.
    c"_Znwm",
    c"_Znam",
    c"_ZnwmRKSt9nothrow_t",
    c"_ZnamRKSt9nothrow_t",
    c"_ZnwmSt11align_val_t",
    c"_ZnamSt11align_val_t",
    c"_ZdlPv",
    c"_ZdaPv",
    c"_ZdlPvm",
    c"_ZdaPvm",
    c"_ZdlPvSt11align_val_t",
    c"_ZdaPvSt11align_val_t",
    c"_ZdlPvmSt11align_val_t",
    c"_ZdaPvmSt11align_val_t",
];

/// The original of a row of [`NAMES`].
macro_rules! original {
    ($row:literal as $type:ty) => {{
        let address = ORIGINALS[$row].load(Ordering::Relaxed);
        // SAFETY: a hook is put in place only when its original was found, by its name,
        // which has this signature.
        unsafe { std::mem::transmute::<usize, $type>(address) }
    }};
}

type OfSize = unsafe extern "C" fn(usize) -> *mut c_void;
type OfTwo = unsafe extern "C" fn(usize, usize) -> *mut c_void;

unsafe extern "C" fn malloc(size: usize) -> *mut c_void {
    let original = original!(0 as OfSize);
    // SAFETY: the caller's arguments, passed on.
    allocate(size, || unsafe { original(size) })
}

unsafe extern "C" fn calloc(count: usize, each: usize) -> *mut c_void {
    let original = original!(1 as OfTwo);
    // SAFETY: as above. A product that overflows gives no block.
    allocate(count.saturating_mul(each), || unsafe {
        original(count, each)
    })
}

unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    let original = original!(2 as unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void);
    // SAFETY: as above.
    moved(block, size, || unsafe { original(block, size) })
}

unsafe extern "C" fn reallocarray(block: *mut c_void, count: usize, each: usize) -> *mut c_void {
    let original = original!(9 as unsafe extern "C" fn(*mut c_void, usize, usize) -> *mut c_void);
    // SAFETY: as above.
    moved(block, count.saturating_mul(each), || unsafe {
        original(block, count, each)
    })
}

unsafe extern "C" fn free(block: *mut c_void) {
    // Before it is freed: afterwards the address may be another thread's.
    goes(block);
    let original = original!(3 as unsafe extern "C" fn(*mut c_void));
    // SAFETY: as above.
    unsafe { original(block) }
}

unsafe extern "C" fn posix_memalign(out: *mut *mut c_void, align: usize, size: usize) -> c_int {
    let original = original!(4 as unsafe extern "C" fn(*mut *mut c_void, usize, usize) -> c_int);
    let mut code = 0;
    allocate(size, || {
        // SAFETY: as above; `out` is written when the code is 0.
        unsafe {
            code = original(out, align, size);
            if code == 0 {
                *out
            } else {
                std::ptr::null_mut()
            }
        }
    });
    code
}

unsafe extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    let original = original!(5 as OfTwo);
    // SAFETY: as above.
    allocate(size, || unsafe { original(align, size) })
}

unsafe extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    let original = original!(6 as OfTwo);
    // SAFETY: as above.
    allocate(size, || unsafe { original(align, size) })
}

unsafe extern "C" fn valloc(size: usize) -> *mut c_void {
    let original = original!(7 as OfSize);
    // SAFETY: as above.
    allocate(size, || unsafe { original(size) })
}

unsafe extern "C" fn pvalloc(size: usize) -> *mut c_void {
    let original = original!(8 as OfSize);
    // SAFETY: as above.
    allocate(size, || unsafe { original(size) })
}

/// A `new`: of a size, and perhaps one argument more.
macro_rules! new {
    ($name:ident, $row:literal) => {
        unsafe extern "C-unwind" fn $name(size: usize, more: usize) -> *mut c_void {
            let original =
                original!($row as unsafe extern "C-unwind" fn(usize, usize) -> *mut c_void);
            // SAFETY: the caller's arguments, passed on. Where there is only one, the second
            // register holds anything, and the original does not look at it.
            allocate(size, || unsafe { original(size, more) })
        }
    };
}

/// A `delete`: of a block, and perhaps its size and alignment.
macro_rules! delete {
    ($name:ident, $row:literal) => {
        unsafe extern "C-unwind" fn $name(block: *mut c_void, more: usize, last: usize) {
            goes(block);
            let original =
                original!($row as unsafe extern "C-unwind" fn(*mut c_void, usize, usize));
            // SAFETY: as of `new`.
            unsafe { original(block, more, last) }
        }
    };
}

new!(new_one, 11);
new!(new_array, 12);
new!(new_or_null, 13);
new!(new_array_or_null, 14);
new!(new_aligned, 15);
new!(new_array_aligned, 16);
delete!(delete_one, 17);
delete!(delete_array, 18);
delete!(delete_sized, 19);
delete!(delete_array_sized, 20);
delete!(delete_aligned, 21);
delete!(delete_array_aligned, 22);
delete!(delete_sized_aligned, 23);
delete!(delete_array_sized_aligned, 24);

/// A block changes its size: the old one goes, a new one comes, unless the allocator refuses.
fn moved(block: *mut c_void, size: usize, original: impl FnOnce() -> *mut c_void) -> *mut c_void {
    let malloc = Malloc::get().filter(|_| ON.load(Ordering::Relaxed));
    let Some(malloc) = malloc else {
        return original();
    };
    // It stays the caller's until the allocator has moved it, and may be another thread's then.
    let old = malloc
        .blocks
        .may_hold(block as usize)
        .then(|| malloc.blocks.take(block as usize))
        .flatten();
    let new = allocate(size, original);
    if let Some(old) = old {
        let is_kept = new.is_null() && size > 0;
        if !is_kept || !malloc.blocks.put(block as usize, old) {
            malloc.stacks.freed(old);
        }
    }
    new
}

/// Searches for newly loaded objects when a thread looks up a symbol: that is the first use of
/// a library, before any of its code but its constructors has run.
extern "C" fn something_was_loaded() {
    if ON.load(Ordering::Relaxed) && !LOCAL.with(|local| local.inside.replace(true)) {
        keeping_errno(|| {
            super::patch_new();
        });
        LOCAL.with(|local| local.inside.set(false));
    }
}

// The answer of dlsym depends on who calls it, so it has to be jumped to, not called.
#[cfg(target_arch = "x86_64")]
std::arch::global_asm!(
    ".p2align 4",
    ".globl tenure_dlsym",
    ".hidden tenure_dlsym",
    "tenure_dlsym:",
    "push rdi",
    "push rsi",
    "sub rsp, 8",
    "call {look}",
    "add rsp, 8",
    "pop rsi",
    "pop rdi",
    "mov rax, qword ptr [rip + {originals} + 80]",
    "jmp rax",
    look = sym something_was_loaded,
    originals = sym ORIGINALS,
);

#[cfg(target_arch = "aarch64")]
std::arch::global_asm!(
    ".p2align 2",
    ".globl tenure_dlsym",
    ".hidden tenure_dlsym",
    "tenure_dlsym:",
    "stp x29, x30, [sp, #-32]!",
    "stp x0, x1, [sp, #16]",
    "bl {look}",
    "ldp x0, x1, [sp, #16]",
    "ldp x29, x30, [sp], #32",
    "adrp x16, {originals}",
    "add x16, x16, :lo12:{originals}",
    "ldr x16, [x16, #80]",
    "br x16",
    look = sym something_was_loaded,
    originals = sym ORIGINALS,
);

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
unsafe extern "C" {
    fn tenure_dlsym();
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
fn dlsym() -> usize {
    tenure_dlsym as *const () as usize
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn dlsym() -> usize {
    0
}

/// All hooks whose originals the program has.
pub(super) fn all() -> Vec<Hook> {
    let ours = [
        malloc as *const () as usize,
        calloc as *const () as usize,
        realloc as *const () as usize,
        free as *const () as usize,
        posix_memalign as *const () as usize,
        aligned_alloc as *const () as usize,
        memalign as *const () as usize,
        valloc as *const () as usize,
        pvalloc as *const () as usize,
        reallocarray as *const () as usize,
        dlsym(),
        new_one as *const () as usize,
        new_array as *const () as usize,
        new_or_null as *const () as usize,
        new_array_or_null as *const () as usize,
        new_aligned as *const () as usize,
        new_array_aligned as *const () as usize,
        delete_one as *const () as usize,
        delete_array as *const () as usize,
        delete_sized as *const () as usize,
        delete_array_sized as *const () as usize,
        delete_aligned as *const () as usize,
        delete_array_aligned as *const () as usize,
        delete_sized_aligned as *const () as usize,
        delete_array_sized_aligned as *const () as usize,
    ];
    let hooks = NAMES.iter().zip(ours).zip(&ORIGINALS);
    let hooks = hooks.map(|((name, ours), place)| {
        // SAFETY: looks a symbol up. An allocator that was loaded first comes first here, as
        // it does for the program.
        let original = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) } as usize;
        place.store(original, Ordering::Relaxed);
        Hook {
            name,
            ours,
            original,
        }
    });
    hooks
        .filter(|hook| hook.ours != 0 && hook.original != 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_chosen_by_the_bytes_they_hold() {
        const INTERVAL: u64 = 4096;
        let local = Local {
            left: Cell::new(-1),
            random: Cell::new(None),
            inside: Cell::new(false),
        };
        for size in [64_usize, 4096, 20_000] {
            let blocks = 40_000;
            let chosen = (0..blocks)
                .filter(|_| local.ends_with(size) && local.draw(size, INTERVAL))
                .count() as f64;
            let chance = 1.0 - (-(size as f64) / INTERVAL as f64).exp();
            let expected = chance * f64::from(blocks);
            // Six standard deviations of independent choices.
            let slack = 6.0 * (f64::from(blocks) * chance * (1.0 - chance)).sqrt() + 1.0;
            assert!(
                (chosen - expected).abs() < slack,
                "{size}: {chosen} of {expected}"
            );
        }
    }

    #[test]
    fn every_block_is_chosen_when_asked_for() {
        let local = Local {
            left: Cell::new(-1),
            random: Cell::new(None),
            inside: Cell::new(false),
        };
        assert!((0..1000).all(|size| local.ends_with(size) && local.draw(size, 0)));
    }
}
