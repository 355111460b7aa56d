//! Methods: their names, and the source lines of bytecodes.

use crate::fields::Constants;
use crate::klass::Classes;
use crate::memory::Address;
use crate::numbers::Numbers;
use crate::symbols::Symbols;
use crate::vm::Vm;

const NATIVE: u16 = 0x100;
/// The flag of a method that has a table of lines.
const HAS_LINES: u32 = 1;
/// The most rows of a method's line table.
const MOST_LINES: usize = 1 << 16;
/// The most bytes of that table.
const LONGEST_LINES: usize = 1 << 19;

/// A method.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Method {
    /// The class that declares it.
    pub(crate) class: u32,
    pub(crate) name: Address,
    pub(crate) signature: Address,
    /// The name of the source file, 0 for none.
    pub(crate) source: Address,
    pub(crate) is_native: bool,
    /// The start and end of its bytecodes.
    pub(crate) code: (Address, Address),
    has_lines: bool,
}

/// Reads a method; `None` if there is no valid method at this address.
pub(crate) fn read(
    vm: &Vm<'_>,
    classes: &Classes,
    symbols: &mut Symbols,
    method: Address,
) -> Option<Method> {
    let field = |at: Address, name: &str| Some(at.wrapping_add(vm.tables.find(name)?));
    let method = method.is_multiple_of(8).then_some(method)?;
    let constant = vm.memory.pointer(field(method, "Method._constMethod")?)?;
    let flags = vm.memory.u16(field(method, "Method._access_flags")?)?;
    let pool = vm
        .memory
        .pointer(field(constant, "ConstMethod._constants")?)?;
    let holder = vm
        .memory
        .pointer(field(pool, "ConstantPool._pool_holder")?)?;
    let class = classes.get(holder)?;
    let constants = Constants::at(vm, pool)?;
    let number = |name: &str| vm.memory.u16(field(constant, name)?);
    let mut symbol = |index: u16| {
        let symbol = constants.symbol(vm, index.into())?;
        let first = *symbols.text(vm, symbol)?.first()?;
        Some((symbol, first))
    };
    let (name, _) = symbol(number("ConstMethod._name_index")?)?;
    let (signature, first) = symbol(number("ConstMethod._signature_index")?)?;
    (first == b'(').then_some(())?;
    let start = constant.wrapping_add(vm.tables.size("ConstMethod").ok()?);
    let flags_at = field(constant, "ConstMethod._flags._flags");
    let flags_at = flags_at.or_else(|| field(constant, "ConstMethod._flags"))?;
    let places =
        ["InstanceKlass", "ConstantPool"].map(|of| format!("{of}._source_file_name_index"));
    let source = field(holder, &places[0]).or_else(|| field(pool, &places[1]));
    let source = source.and_then(|at| symbol(vm.memory.u16(at)?));
    let size = number("ConstMethod._code_size")?;
    Some(Method {
        class,
        name,
        signature,
        source: source.map_or(0, |(symbol, _)| symbol),
        is_native: flags & NATIVE != 0,
        code: (start, start.wrapping_add(size.into())),
        has_lines: u32::from(vm.memory.u16(flags_at)?) & HAS_LINES != 0,
    })
}

impl Method {
    /// The line of a bytecode in the format of HPROF: -3 for native methods, -1 if it is unknown.
    pub(crate) fn line(&self, vm: &Vm<'_>, bci: u32) -> i32 {
        if self.is_native {
            return -3;
        }
        self.find_line(vm, bci).unwrap_or(-1)
    }

    /// The table follows the bytecodes (`CompressedLineNumberReadStream`). Each row has a byte with the differences of
    /// the bytecode index and of the line, or 255 and both as signed numbers; 0 ends the table.
    fn find_line(&self, vm: &Vm<'_>, wanted: u32) -> Option<i32> {
        self.has_lines.then_some(())?;
        let mut bytes =
            vec![0; LONGEST_LINES.min(64 + 8 * self.code.1.wrapping_sub(self.code.0) as usize)];
        let there = vm.memory.fill_some(self.code.1, &mut bytes);
        let mut numbers = Numbers {
            bytes: &bytes[..there],
            excludes_zero: vm.excludes_zero(),
        };
        let (mut bci, mut line) = (0_u32, 0_i32);
        let mut best = None;
        for _ in 0..MOST_LINES {
            let (byte, rest) = numbers.bytes.split_first()?;
            numbers.bytes = rest;
            match byte {
                0 => break,
                255 => {
                    bci = bci.wrapping_add(numbers.next_signed()? as u32);
                    line = line.wrapping_add(numbers.next_signed()?);
                }
                steps => {
                    bci = bci.wrapping_add((steps >> 3).into());
                    line = line.wrapping_add(i32::from(steps & 7));
                }
            }
            if bci <= wanted && best.is_none_or(|(at, _)| at <= bci) {
                best = Some((bci, line));
            }
        }
        best.map(|(_, line)| line).filter(|line| *line > 0)
    }
}
