//! The VM's code cache: compiled methods, and the routines of the VM that they call (`CodeCache`, `CodeHeap` and
//! `CodeBlob` in HotSpot's sources). Its tables say where they are. Fit for signal handlers, but for [`CodeCache::of_vm`].

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::native::objects::range_of;
use crate::vm::vm_structs::{VmStructs, exported_symbol, read};

/// The heaps of the code cache.
#[derive(Debug, Default)]
pub(super) struct CodeCache {
    /// The addresses of all code; empty if unknown.
    range: Range<usize>,
    /// The addresses of the heaps' structures; none if the layout is unknown.
    heaps: Vec<usize>,
    layout: Layout,
    /// The addresses of the VM's library.
    library: Range<usize>,
}

/// The offsets of fields in the VM's structures.
#[derive(Debug, Default)]
struct Layout {
    /// In a heap: the ends of its memory in use, the table of its segments, and the logarithm of their size.
    low: usize,
    high: usize,
    segments: usize,
    segment_bits: usize,
    /// The size of a block's header, which precedes the code, and in it the flag of a block in use.
    header: usize,
    used: usize,
    /// In a piece of code.
    name: usize,
    size: usize,
    code: CodeBegin,
    complete: Complete,
    frame: usize,
    /// In a compiled method, if the VM's tables have it.
    state: Option<usize>,
}

/// The field with the offset of the first instruction at which a frame is complete.
#[derive(Clone, Copy, Debug, Default)]
struct Complete {
    place: usize,
    /// Four bytes, before JDK 23; otherwise two.
    is_wide: bool,
}

/// Where the field with the beginning of the instructions is.
#[derive(Clone, Copy, Debug)]
enum CodeBegin {
    /// It has the address (JDK 9 to 22).
    Address(usize),
    /// It has the offset from the beginning of the structure (JDK 8, and from 23 on).
    Offset(usize),
}

impl Default for CodeBegin {
    fn default() -> Self {
        Self::Offset(0)
    }
}

/// What code is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A compiled method.
    Method,
    /// The interpreter, whose frames are those of methods.
    Interpreter,
    /// Code without a frame that jumps to a method: adapters of arguments, stubs of interface and virtual calls, and the
    /// methods that call a method handle's target.
    Jump,
    /// Another routine of the VM.
    Routine,
}

/// The first bytes of the names of code, which are constants in the VM's library.
const NAMES: [(&[u8; 8], Kind); 5] = [
    (b"nmethod\0", Kind::Method),
    (b"native n", Kind::Method),
    (b"Interpre", Kind::Interpreter),
    (b"I2C/C2I ", Kind::Jump),
    (b"vtable c", Kind::Jump),
];

/// A compiled method, or a routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) kind: Kind,
    /// Whether it is a compiled method, which is freed at some time, with or without a frame.
    pub(super) is_compiled: bool,
    /// Its structure.
    pub(super) structure: usize,
    /// The first instruction, and the end of the memory.
    pub(super) begin: usize,
    pub(super) end: usize,
    /// The first instruction at which the frame is complete.
    pub(super) complete: usize,
    /// The words of the complete frame, with the return address.
    pub(super) words: usize,
}

/// The value of a segment that is not in use; another one is the distance to a segment nearer to the block's begin.
const FREE: u8 = 0xff;
/// The offset of the first instruction with a complete frame, in code that never has one.
const NEVER: i16 = -1;
/// Where routines had such a mark, which was removed.
static UNMARKED: [AtomicUsize; 128] = [const { AtomicUsize::new(0) }; 128];
/// The states of compiled methods that may be called or are about to be: no version of the VM frees them.
const LIVE: std::ops::RangeInclusive<i8> = 0..=1;
/// The most steps to the begin of a block.
const MOST_STEPS: usize = 1 << 12;

impl CodeCache {
    /// That of this process, by the VM's tables; without them it is empty. Not for signal handlers.
    pub(super) fn of_vm() -> &'static Self {
        static FOUND: OnceLock<CodeCache> = OnceLock::new();
        FOUND.get_or_init(|| {
            let structs = VmStructs::load();
            structs
                .and_then(|structs| Self::of(&structs))
                .unwrap_or_default()
        })
    }

    fn of(structs: &VmStructs) -> Option<Self> {
        let heaps = heaps(structs)?;
        let range = range(structs, &heaps)?;
        let layout = Layout::of(structs);
        Some(Self {
            range,
            heaps: if layout.is_some() { heaps } else { Vec::new() },
            layout: layout.unwrap_or_default(),
            library: library()?,
        })
    }

    #[cfg(test)]
    pub(super) fn of_range(range: Range<usize>) -> Self {
        Self {
            range,
            ..Self::default()
        }
    }

    /// Whether an address is in the cache.
    pub(super) fn contains(&self, address: usize) -> bool {
        self.range.contains(&address)
    }

    /// Whether AsyncGetCallTrace may be called for an address that may be wrong: it is in code that the VM uses. A VM
    /// before JDK 20 ends the process when it finds a method there that is about to be freed.
    pub(super) fn is_safe(&self, address: usize) -> bool {
        let Some(code) = self.code_at(address) else {
            return false;
        };
        let is_inside = (code.begin..code.end).contains(&address);
        let state = self.layout.state.filter(|_| code.is_compiled);
        // SAFETY: a field of a compiled method.
        let state = state.and_then(|place| unsafe { read::<i8>(code.structure + place) });
        // Adapters and routines are not freed.
        is_inside && (!code.is_compiled || state.is_some_and(|state| LIVE.contains(&state)))
    }

    /// Removes the mark of the routine at this address that its frame is never complete; false if it had none. A
    /// routine that has a frame size has a complete frame where it calls. The VM uses the mark only when it walks a stack
    /// for a profiler or after a crash.
    ///
    /// # Safety
    /// This thread has called from there, so that the routine is not freed meanwhile.
    pub(super) unsafe fn unmark(&self, address: usize) -> bool {
        let routine = self.code_at(address);
        let routine = routine.filter(|code| code.kind == Kind::Routine && code.words >= 2);
        let Some(routine) = routine else {
            return false;
        };
        let place = routine.structure + self.layout.complete.place;
        // SAFETY: a field of its structure.
        let is_marked = unsafe { (place as *const i16).read_volatile() } == NEVER;
        let order = Ordering::Relaxed;
        if !is_marked {
            return UNMARKED.iter().any(|one| one.load(order) == place);
        }
        let take = |one: &AtomicUsize| one.compare_exchange(0, place, order, order).is_ok();
        if !UNMARKED.iter().any(take) {
            return false;
        }
        // SAFETY: as above.
        unsafe { self.layout.complete.write(place, 0) };
        true
    }

    /// Restores the marks.
    pub(super) fn mark_again(&self) {
        for one in &UNMARKED {
            let place = one.swap(0, Ordering::Relaxed);
            if place != 0 {
                // SAFETY: a field of a routine; the VM keeps its routines.
                unsafe { self.layout.complete.write(place, NEVER) };
            }
        }
    }

    /// The code at an address. Unless a thread is there or returns there, it may be freed meanwhile.
    pub(super) fn code_at(&self, address: usize) -> Option<Code> {
        if !self.contains(address) {
            return None;
        }
        let layout = &self.layout;
        // SAFETY: the fields of the VM's structures for its code, which contain an address that is in use.
        unsafe {
            let word = |place: usize| read::<usize>(place);
            let is_of = |heap: &&usize| {
                let (low, high) = (word(**heap + layout.low), word(**heap + layout.high));
                low <= Some(address) && Some(address) < high
            };
            let heap = *self.heaps.iter().find(is_of)?;
            let low = word(heap + layout.low)?;
            let bits = read::<i32>(heap + layout.segment_bits)?;
            let segments = word(heap + layout.segments)?;
            let mut segment = (address - low) >> bits;
            for _ in 0..MOST_STEPS {
                match read::<u8>(segments + segment)? {
                    FREE => return None,
                    0 => {
                        let block = low + (segment << bits);
                        let is_used = read::<u8>(block + layout.used)? != 0;
                        return self.code(block + layout.header).filter(|_| is_used);
                    }
                    back => segment = segment.checked_sub(back.into())?,
                }
            }
        }
        None
    }

    /// Reads a piece of code. What it says is only right if the code is in use.
    ///
    /// # Safety
    /// Its structure is at this address.
    unsafe fn code(&self, at: usize) -> Option<Code> {
        let layout = &self.layout;
        // SAFETY: the caller's promise; names in the library are constants.
        unsafe {
            let name: usize = read(at + layout.name)?;
            let is_constant = self.library.contains(&name) && self.library.contains(&(name + 8));
            let first: Option<[u8; 8]> = if is_constant { read(name) } else { None };
            let known = NAMES.iter().find(|(known, _)| first == Some(**known));
            let number = |place| read::<i32>(at + place).and_then(|it| usize::try_from(it).ok());
            let begin = match layout.code {
                CodeBegin::Address(place) => read(at + place)?,
                CodeBegin::Offset(place) => at + number(place)?,
            };
            // Of four bytes these are the lower ones; negative if it is never complete.
            let complete = read::<i16>(at + layout.complete.place)?;
            let kind = known.map_or(Kind::Routine, |(_, kind)| *kind);
            let is_compiled = kind == Kind::Method;
            let words = number(layout.frame).unwrap_or(0);
            Some(Code {
                kind: match is_compiled && words < 2 {
                    true => Kind::Jump,
                    false => kind,
                },
                is_compiled,
                structure: at,
                begin,
                end: at + number(layout.size)?,
                complete: begin.saturating_add(usize::try_from(complete).unwrap_or(0)),
                words,
            })
        }
    }
}

impl Complete {
    /// # Safety
    /// The field of a piece of code is there.
    unsafe fn write(self, place: usize, value: i16) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.is_wide {
                true => (place as *mut i32).write_volatile(value.into()),
                false => (place as *mut i16).write_volatile(value),
            }
        }
    }
}

impl Layout {
    fn of(structs: &VmStructs) -> Option<Self> {
        let heap = |name| structs.offset(&["CodeHeap"], name);
        let space = |name| structs.offset(&["VirtualSpace"], name);
        let code = |name| structs.offset(&["CodeBlob"], name);
        let memory = heap("_memory")?;
        let begin = match code("_code_begin") {
            Some(place) => CodeBegin::Address(place),
            None => CodeBegin::Offset(code("_code_offset")?),
        };
        Some(Self {
            low: memory + space("_low")?,
            high: memory + space("_high")?,
            segments: heap("_segmap")? + space("_low")?,
            segment_bits: heap("_log2_segment_size")?,
            header: structs.size("HeapBlock")?,
            used: structs.offset(&["HeapBlock"], "_header")?
                + structs.offset(&["HeapBlock::Header"], "_used")?,
            name: code("_name")?,
            size: code("_size")?,
            code: begin,
            complete: Complete {
                place: code("_frame_complete_offset")?,
                is_wide: structs.type_of(&["CodeBlob"], "_frame_complete_offset")? == "int",
            },
            frame: code("_frame_size")?,
            state: structs.offset(&["nmethod"], "_state"),
        })
    }
}

/// The structures of the heaps.
fn heaps(structs: &VmStructs) -> Option<Vec<usize>> {
    // SAFETY: static fields of the VM, which has set them at its start and changes neither the list nor its elements.
    unsafe {
        let Some(list) = structs.address("CodeCache", "_heaps") else {
            // JDK 8 has only one.
            let heap: usize = read(structs.address("CodeCache", "_heap")?)?;
            return Some(vec![heap]);
        };
        let list: usize = read(list)?;
        let kinds = ["GrowableArrayBase", "GenericGrowableArray"];
        let count: i32 = read(list + structs.offset(&kinds, "_len")?)?;
        let first: usize = read(list + structs.offset(&["GrowableArray<int>"], "_data")?)?;
        let heap = |index| read::<usize>(first + index * size_of::<usize>());
        (0..usize::try_from(count).ok()?).map(heap).collect()
    }
}

/// The addresses of all code.
fn range(structs: &VmStructs, heaps: &[usize]) -> Option<Range<usize>> {
    let memory = structs.offset(&["CodeHeap"], "_memory")?;
    // SAFETY: fields of structures of the VM.
    let bounds = |name| unsafe {
        let place = memory + structs.offset(&["VirtualSpace"], name)?;
        heaps
            .iter()
            .map(|heap| read::<usize>(heap + place))
            .collect::<Option<Vec<_>>>()
    };
    let (low, high) = (bounds("_low_boundary")?, bounds("_high_boundary")?);
    Some(low.into_iter().min()?..high.into_iter().max()?)
}

/// The addresses of the VM's library.
fn library() -> Option<Range<usize>> {
    let inside = exported_symbol(c"gHotSpotVMStructs");
    let (begin, end) = range_of(inside as usize);
    (begin < end).then_some(begin..end)
}
