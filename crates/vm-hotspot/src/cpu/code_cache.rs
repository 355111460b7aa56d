//! The VM's code cache: compiled methods, and the routines of the VM that they call (`CodeCache`, `CodeHeap` and
//! `CodeBlob` in HotSpot's sources). Its tables say where they are. Fit for signal handlers, but for [`CodeCache::of_vm`].

use std::ops::Range;
use std::sync::OnceLock;

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
    /// The size of a block's header, which precedes the code.
    header: usize,
    /// In a piece of code.
    name: usize,
    size: usize,
    code: CodeBegin,
    complete: usize,
    frame: usize,
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
    /// Code without a frame that jumps to a method: adapters of arguments, and stubs of interface and virtual calls.
    Jump,
    /// Another routine of the VM.
    Routine,
}

/// The first bytes of the names of code, which are constants in the VM's library.
const NAMES: [(&[u8; 8], Kind); 4] = [
    (b"nmethod\0", Kind::Method),
    (b"Interpre", Kind::Interpreter),
    (b"I2C/C2I ", Kind::Jump),
    (b"vtable c", Kind::Jump),
];

/// A compiled method, or a routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) kind: Kind,
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

    /// The code at an address where a thread is, or to which it returns: only such code is not freed meanwhile.
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
                    0 => return self.code(low + (segment << bits) + layout.header),
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
            // Two bytes from JDK 23 on, otherwise four, of which these are the lower ones; negative if it is never complete.
            let complete = read::<i16>(at + layout.complete)?;
            Some(Code {
                kind: known.map_or(Kind::Routine, |(_, kind)| *kind),
                begin,
                end: at + number(layout.size)?,
                complete: begin + usize::try_from(complete).unwrap_or(0),
                words: number(layout.frame).unwrap_or(0),
            })
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
            name: code("_name")?,
            size: code("_size")?,
            code: begin,
            complete: code("_frame_complete_offset")?,
            frame: code("_frame_size")?,
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
