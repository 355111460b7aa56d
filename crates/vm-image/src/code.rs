//! The code of a VM: the interpreter, compiled methods, and stubs.

use crate::fault::Fault;
use crate::memory::Address;
use crate::numbers::Numbers;
use crate::vm::Vm;

/// The most code heaps that are accepted; no VM has as many.
const MOST_HEAPS: u32 = 16;
/// The most steps back to the beginning of a block.
const MOST_STEPS: u32 = 1 << 16;
/// The most call positions of a method.
const MOST_PLACES: u64 = 1 << 20;
/// The most methods that are inlined into each other.
const DEEPEST: usize = 256;
/// The most bytes of a scope.
const SCOPE: usize = 64;

/// The kind of code that a program counter points to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// The interpreter.
    Interpreter,
    /// The stub through which the VM calls Java methods.
    Call,
    /// Compiled code, whose frames have a fixed size.
    Blob {
        at: Address,
        /// The size of its frame in bytes.
        frame: u64,
    },
}

struct Heap {
    low: Address,
    high: Address,
    map: Address,
    shift: u32,
}

/// All code.
pub(crate) struct CodeCache {
    interpreter: (Address, Address),
    call_return: Address,
    heaps: Vec<Heap>,
    /// Bytes before a block's contents.
    header: u64,
}

impl CodeCache {
    pub(crate) fn read(vm: &Vm<'_>) -> Result<CodeCache, Fault> {
        let what = "the code cache";
        let senseless = || Fault::Senseless { what };
        let word = |at: Address| vm.memory.u64(at).ok_or_else(senseless);
        let offset = |name: &str| vm.tables.offset(&[name]);
        let stubs = word(vm.tables.address(&["AbstractInterpreter._code"])?)?;
        let start = word(stubs.wrapping_add(offset("StubQueue._stub_buffer")?))?;
        let size = stubs.wrapping_add(offset("StubQueue._buffer_limit")?);
        let size = vm.memory.u32(size).ok_or_else(senseless)?;
        let call = vm
            .tables
            .address(&["StubRoutines._call_stub_return_address"])?;
        let mut all = Vec::new();
        if let Some(heap) = vm.tables.find_static("CodeCache._heap") {
            all.push(word(heap)?);
        } else {
            let heaps = word(vm.tables.address(&["CodeCache._heaps"])?)?;
            let len = ["GrowableArrayBase._len", "GenericGrowableArray._len"];
            let len = vm.memory.u32(heaps.wrapping_add(vm.tables.offset(&len)?));
            let data = word(heaps.wrapping_add(offset("GrowableArray<int>._data")?))?;
            for i in 0..len.ok_or_else(senseless)?.min(MOST_HEAPS) {
                all.push(word(data.wrapping_add(u64::from(i) * 8))?);
            }
        }
        let memory = offset("CodeHeap._memory")?;
        let map = offset("CodeHeap._segmap")?;
        let shift = offset("CodeHeap._log2_segment_size")?;
        let (low, high) = (offset("VirtualSpace._low")?, offset("VirtualSpace._high")?);
        let heap = |at: &Address| {
            let field = |field: u64, part: u64| vm.memory.u64(at.wrapping_add(field + part));
            let shift = vm.memory.u32(at.wrapping_add(shift));
            Some(Heap {
                low: field(memory, low)?,
                high: field(memory, high)?,
                map: field(map, low)?,
                shift: shift.filter(|shift| (3..20).contains(shift))?,
            })
        };
        Ok(CodeCache {
            interpreter: (start, start.wrapping_add(size.into())),
            call_return: word(call)?,
            heaps: all.iter().filter_map(heap).collect(),
            header: vm.tables.size("HeapBlock")?,
        })
    }

    /// The code that a program counter points to.
    pub(crate) fn find(&self, vm: &Vm<'_>, pc: Address) -> Option<Code> {
        if pc == self.call_return {
            return Some(Code::Call);
        }
        if (self.interpreter.0..self.interpreter.1).contains(&pc) {
            return Some(Code::Interpreter);
        }
        let heap = self
            .heaps
            .iter()
            .find(|heap| (heap.low..heap.high).contains(&pc))?;
        // The map has a byte per segment: 255 for a free one; otherwise how many segments to go back towards the first
        // segment of the block, at most 254 at once.
        let mut segment = (pc - heap.low) >> heap.shift;
        for _ in 0..MOST_STEPS {
            match vm.memory.u8(heap.map.wrapping_add(segment))? {
                255 => return None,
                0 => {
                    let block = heap.low.wrapping_add(segment << heap.shift);
                    let at = block.wrapping_add(self.header);
                    let words = vm.tables.find("CodeBlob._frame_size")?;
                    let words = vm.memory.u32(at.wrapping_add(words))?;
                    (1..1 << 20).contains(&words).then_some(())?;
                    let frame = u64::from(words) * 8;
                    return Some(Code::Blob { at, frame });
                }
                steps => segment = segment.checked_sub(steps.into())?,
            }
        }
        None
    }
}

/// A compiled method and the methods inlined at a position in it, the innermost first, each with its bytecode index if
/// that is known.
pub(crate) fn scopes(vm: &Vm<'_>, blob: Address, pc: Address) -> Vec<(Address, Option<u32>)> {
    let found = places(vm, blob).and_then(|places| places.scopes(vm, pc));
    found.unwrap_or_else(|| {
        let method = method_of(vm, blob);
        method.map(|method| (method, None)).into_iter().collect()
    })
}

/// The method that was compiled; `None` for stubs.
fn method_of(vm: &Vm<'_>, blob: Address) -> Option<Address> {
    let name = vm.tables.find("CodeBlob._name")?;
    let name = vm.memory.text(vm.memory.u64(blob.wrapping_add(name))?)?;
    name.contains("nmethod").then_some(())?;
    let method = vm
        .tables
        .find("nmethod._method")
        .or(vm.tables.find("CompiledMethod._method"))?;
    vm.memory.pointer(blob.wrapping_add(method))
}

/// The debugging information of a compiled method.
struct Places {
    code: Address,
    /// The table of positions, by address.
    pcs: (Address, Address),
    scopes: Address,
    methods: Address,
}

fn places(vm: &Vm<'_>, blob: Address) -> Option<Places> {
    method_of(vm, blob)?;
    let at = |name: &str| Some(blob.wrapping_add(vm.tables.find(name)?));
    let word = |name: &str| vm.memory.u64(at(name)?);
    // An offset from a base, in 32 bits.
    let offset = |base: Address, name: &str| {
        let offset = vm.memory.u32(at(name)?)?;
        (offset < 1 << 30).then_some(base.wrapping_add(offset.into()))
    };
    let code = word("CodeBlob._code_begin").or_else(|| offset(blob, "CodeBlob._code_offset"))?;
    if let Some(data) = word("nmethod._immutable_data") {
        // From JDK 24 on, immutable and mutable data are outside of the code.
        let scopes = offset(data, "nmethod._scopes_data_offset")?;
        let methods = offset(word("CodeBlob._mutable_data")?, "CodeBlob._relocation_size")?;
        return Some(Places {
            code,
            pcs: (offset(data, "nmethod._scopes_pcs_offset")?, scopes),
            scopes,
            methods,
        });
    }
    let pcs = offset(blob, "nmethod._scopes_pcs_offset")?;
    let scopes = word("CompiledMethod._scopes_data_begin");
    Some(Places {
        code,
        pcs: (pcs, offset(blob, "nmethod._dependencies_offset")?),
        scopes: scopes.or_else(|| offset(blob, "nmethod._scopes_data_offset"))?,
        methods: offset(blob, "nmethod._metadata_offset")?,
    })
}

impl Places {
    /// The methods at a position: the scope that belongs to it, then the scopes of its callers.
    fn scopes(&self, vm: &Vm<'_>, pc: Address) -> Option<Vec<(Address, Option<u32>)>> {
        let row = vm.tables.size("PcDesc").unwrap_or(16).max(16);
        let (pc_at, scope_at) = (
            vm.tables.find("PcDesc._pc_offset")?,
            vm.tables.find("PcDesc._scope_decode_offset")?,
        );
        let wanted = i64::try_from(pc.checked_sub(self.code)?).ok()?;
        let rows = self.pcs.1.checked_sub(self.pcs.0)? / row;
        (rows <= MOST_PLACES).then_some(())?;
        // The rows are sorted; the first one at or after the address is the right one.
        let found = (0..rows)
            .map(|i| self.pcs.0.wrapping_add(i * row))
            .find(|at| {
                let offset = vm.memory.i32(at.wrapping_add(pc_at));
                offset.is_none_or(|offset| i64::from(offset) >= wanted)
            })?;
        let mut scope = vm.memory.u32(found.wrapping_add(scope_at))?;
        let mut methods = Vec::new();
        while scope != 0 && methods.len() < DEEPEST {
            let mut bytes = [0; SCOPE];
            let at = self.scopes.wrapping_add(scope.into());
            let there = vm.memory.fill_some(at, &mut bytes);
            let mut numbers = Numbers {
                bytes: &bytes[..there],
                excludes_zero: vm.excludes_zero(),
            };
            let (sender, method, bci) = (numbers.next()?, numbers.next()?, numbers.next()?);
            let method = u64::from(method.checked_sub(1)?) * 8;
            let method = vm.memory.pointer(self.methods.wrapping_add(method))?;
            // Bytecode indices start at -1, for the entry of a method.
            methods.push((method, bci.checked_sub(1)));
            // Scopes of callers were written before, so their offsets are lower.
            (sender < scope).then_some(())?;
            scope = sender;
        }
        (!methods.is_empty()).then_some(methods)
    }
}
