//! The frames of a thread's stack, as far as they can be parsed: those of the interpreter, of compiled methods with
//! their inlined methods, and of stubs. (Their layout is the same on x86_64 and aarch64.)

use crate::code::{self, Code, CodeCache};
use crate::klass::Classes;
use crate::memory::Address;
use crate::methods::{self, Method};
use crate::roots::Registers;
use crate::symbols::Symbols;
use crate::threads::Thread;
use crate::vm::Vm;

/// The most frames of a stack; deeper stacks are truncated.
const DEEPEST: usize = 1 << 14;
/// The words below the frame pointer among which an interpreted frame has its bytecode pointer. The exact one depends
/// on the version.
const BYTECODE: std::ops::RangeInclusive<u64> = 4..=11;

/// A frame of Java code.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub(crate) method: Method,
    /// The line in the format of HPROF.
    pub(crate) line: i32,
}

/// The stack of a thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    /// Frames, the innermost first.
    pub(crate) frames: Vec<Frame>,
    /// Whether the walk has reached the end of the stack.
    pub(crate) is_whole: bool,
    /// The end addresses of frames, and the number of the last Java frame in each.
    ends: Vec<(Address, u32)>,
    /// First blocks of JNI local references of outer frames.
    pub(crate) handles: Vec<Address>,
}

impl Trace {
    /// The number of the frame that contains this address of the stack.
    pub(crate) fn frame_at(&self, at: Address) -> Option<u32> {
        let i = self.ends.partition_point(|(end, _)| *end <= at);
        self.ends.get(i).map(|(_, frame)| *frame)
    }
}

/// The current position of a walk.
#[derive(Clone, Copy, Debug)]
struct Place {
    sp: Address,
    fp: Address,
    pc: Address,
}

/// Reads the frames of threads.
pub(crate) struct Frames<'f, 'm> {
    pub(crate) vm: &'f Vm<'m>,
    pub(crate) classes: &'f Classes,
    pub(crate) code: &'f CodeCache,
}

impl Frames<'_, '_> {
    /// The frames of a thread; none when it runs no Java code.
    pub(crate) fn of(
        &self,
        symbols: &mut Symbols,
        thread: &Thread,
        registers: Option<&Registers>,
    ) -> Trace {
        let mut trace = Trace::default();
        let Some(place) = self.first(thread, registers) else {
            // A thread without a Java frame has an empty stack, which is whole.
            trace.is_whole = self.anchor(thread.address, "JavaThread._anchor").is_some();
            return trace;
        };
        let mut place = Some(place);
        let low = thread.stack.map_or(0, |(low, _)| low);
        let mut last = low;
        while let Some(at) = place {
            let high = thread.stack.map_or(u64::MAX, |(_, high)| high);
            // The stack pointer must always move in the same direction, so that the walk ends.
            if at.sp < last
                || at.sp >= high
                || trace.frames.len() > DEEPEST
                || !at.sp.is_multiple_of(8)
            {
                return trace;
            }
            last = at.sp.saturating_add(8);
            let Some(next) = self.step(symbols, thread, at, &mut trace) else {
                return trace;
            };
            let frame = (trace.frames.len() as u32).saturating_sub(1);
            let end = next.map_or(high, |next| next.sp);
            trace.ends.push((end, frame));
            place = next;
        }
        trace.is_whole = true;
        trace
    }

    /// The position at which a thread last left Java code, or at which it runs it.
    fn first(&self, thread: &Thread, registers: Option<&Registers>) -> Option<Place> {
        if let Some(Some(place)) = self.anchor(thread.address, "JavaThread._anchor") {
            return Some(place);
        }
        let words = &registers?.words;
        let machine = self.vm.machine;
        let pc = *words.get(machine.program_counter())?;
        self.code.find(self.vm, pc)?;
        Some(Place {
            sp: registers?.stack_pointer,
            fp: *words.get(machine.frame_pointer())?,
            pc,
        })
    }

    /// The position at which Java code was left: `None` if it cannot be read, `Some(None)` if there is none.
    fn anchor(&self, structure: Address, field: &str) -> Option<Option<Place>> {
        let vm = self.vm;
        let anchor = structure.wrapping_add(vm.tables.find(field)?);
        let word = |name: &str| vm.memory.u64(anchor.wrapping_add(vm.tables.find(name)?));
        let sp = word("JavaFrameAnchor._last_Java_sp")?;
        if sp == 0 {
            return Some(None);
        }
        let pc = match word("JavaFrameAnchor._last_Java_pc")? {
            0 => vm.memory.u64(sp.wrapping_sub(8))?,
            pc => pc,
        };
        let fp = word("JavaFrameAnchor._last_Java_fp")?;
        Some(Some(Place { sp, fp, pc }))
    }

    /// Goes to the caller of a frame: `Some(None)` at the end of the stack, `None` if the frame cannot be parsed.
    fn step(
        &self,
        symbols: &mut Symbols,
        thread: &Thread,
        at: Place,
        trace: &mut Trace,
    ) -> Option<Option<Place>> {
        let vm = self.vm;
        let word = |at: Address| vm.memory.u64(at);
        match self.code.find(vm, at.pc)? {
            Code::Interpreter => {
                let method = word(at.fp.wrapping_sub(24))?;
                let method = methods::read(vm, self.classes, symbols, method)?;
                let places = BYTECODE.filter_map(|i| word(at.fp.wrapping_sub(i * 8)));
                let (start, end) = method.code;
                let bytecode = { places }.find(|place| (start..end).contains(place));
                let line = bytecode.map(|place| method.line(vm, (place - start) as u32));
                let line = line.unwrap_or(if method.is_native { -3 } else { -1 });
                trace.frames.push(Frame { method, line });
                Some(Some(Place {
                    sp: word(at.fp.wrapping_sub(8))?,
                    fp: word(at.fp)?,
                    pc: word(at.fp.wrapping_add(8))?,
                }))
            }
            Code::Call => {
                let offset = vm.tables.constant("frame::entry_frame_call_wrapper_offset");
                let offset = offset.unwrap_or(-6).wrapping_mul(8);
                let wrapper = word(at.fp.wrapping_add_signed(offset))?;
                // The structure begins with its thread and the JNI references of the outer frames.
                (word(wrapper)? == thread.address).then_some(())?;
                trace.handles.extend(word(wrapper.wrapping_add(8)));
                self.anchor(wrapper, "JavaCallWrapper._anchor")
            }
            Code::Blob { at: blob, frame } => {
                for (method, bci) in code::scopes(vm, blob, at.pc) {
                    let method = methods::read(vm, self.classes, symbols, method)?;
                    let line = bci.map_or(if method.is_native { -3 } else { -1 }, |bci| {
                        method.line(vm, bci)
                    });
                    trace.frames.push(Frame { method, line });
                }
                let sp = at.sp.checked_add(frame)?;
                Some(Some(Place {
                    sp,
                    fp: word(sp.wrapping_sub(16))?,
                    pc: word(sp.wrapping_sub(8))?,
                }))
            }
        }
    }
}
