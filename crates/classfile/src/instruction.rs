//! Bytecode as a list of instructions.

use crate::error::Error;
use crate::reader::Reader;

/// `tableswitch`.
pub const TABLESWITCH: u8 = 0xaa;
/// `lookupswitch`.
pub const LOOKUPSWITCH: u8 = 0xab;
/// `return`; the five typed returns come before it, from [`IRETURN`].
pub const RETURN: u8 = 0xb1;
/// `ireturn`.
pub const IRETURN: u8 = 0xac;
/// `invokevirtual`; the other invokes follow up to [`INVOKEDYNAMIC`].
pub const INVOKEVIRTUAL: u8 = 0xb6;
/// `invokespecial`.
pub const INVOKESPECIAL: u8 = 0xb7;
/// `invokestatic`.
pub const INVOKESTATIC: u8 = 0xb8;
/// `invokedynamic`.
pub const INVOKEDYNAMIC: u8 = 0xba;
/// `new`.
pub const NEW: u8 = 0xbb;
/// `newarray`.
pub const NEWARRAY: u8 = 0xbc;
/// `anewarray`.
pub const ANEWARRAY: u8 = 0xbd;
/// `multianewarray`.
pub const MULTIANEWARRAY: u8 = 0xc5;
const WIDE: u8 = 0xc4;
const GOTO_W: u8 = 0xc8;
const JSR_W: u8 = 0xc9;

/// Sizes of instructions 0x00 to 0xc9; 0 where it depends on operands.
#[rustfmt::skip]
const SIZES: [u8; 0xca] = [
    1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1, 2,3,2,3,3,2,2,2,2,2,1,1,1,1,1,1,
    1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1, 1,1,1,1,1,1,2,2,2,2,2,1,1,1,1,1,
    1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1, 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,
    1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1, 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,
    1,1,1,1,3,1,1,1,1,1,1,1,1,1,1,1, 1,1,1,1,1,1,1,1,1,3,3,3,3,3,3,3,
    3,3,3,3,3,3,3,3,3,2,0,0,1,1,1,1, 1,1,3,3,3,3,3,3,3,5,5,3,2,3,1,1,
    3,3,1,1,0,4,3,3,5,5,
];

/// How an instruction refers to other positions in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// It does not refer to any.
    Plain,
    /// A 16-bit relative branch.
    Branch16,
    /// A 32-bit relative branch.
    Branch32,
    /// A switch: relative 32-bit targets, aligned.
    Switch,
}

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction<'a> {
    /// Its offset in the method's code.
    pub pc: usize,
    /// Its opcode.
    pub opcode: u8,
    /// All its bytes.
    pub bytes: &'a [u8],
}

impl Instruction<'_> {
    /// The 16-bit operand after the opcode: a constant pool index for invokes,
    /// `new` and the like.
    #[must_use]
    pub fn index(&self) -> Option<u16> {
        Some(u16::from_be_bytes([
            *self.bytes.get(1)?,
            *self.bytes.get(2)?,
        ]))
    }

    /// Whether it leaves the method normally.
    #[must_use]
    pub fn is_return(&self) -> bool {
        (IRETURN..=RETURN).contains(&self.opcode)
    }

    /// Whether it calls a method.
    #[must_use]
    pub fn is_invoke(&self) -> bool {
        (INVOKEVIRTUAL..=INVOKEDYNAMIC).contains(&self.opcode)
    }

    pub(crate) fn shape(&self) -> Shape {
        match self.opcode {
            0x99..=0xa8 | 0xc6 | 0xc7 => Shape::Branch16,
            GOTO_W | JSR_W => Shape::Branch32,
            TABLESWITCH | LOOKUPSWITCH => Shape::Switch,
            _ => Shape::Plain,
        }
    }
}

/// Iterates over code. Ends after the first malformed instruction, with the error.
#[derive(Clone, Debug)]
pub struct Instructions<'a> {
    code: &'a [u8],
    pc: usize,
}

impl<'a> Instructions<'a> {
    /// The instructions of `code`.
    #[must_use]
    pub fn new(code: &'a [u8]) -> Self {
        Self { code, pc: 0 }
    }

    fn len_at(&self, pc: usize) -> Result<usize, Error> {
        let bad = Error::Code { at: pc };
        let opcode = *self.code.get(pc).ok_or(bad)?;
        let fixed = SIZES.get(usize::from(opcode)).copied().ok_or(bad)?;
        if fixed != 0 {
            return Ok(usize::from(fixed));
        }
        if opcode == WIDE {
            const IINC: u8 = 0x84;
            return Ok(if self.code.get(pc + 1) == Some(&IINC) {
                6
            } else {
                4
            });
        }
        let operands = (pc + 4) & !3;
        let mut reader = Reader::at_offset(self.code, operands);
        reader.i4()?;
        let entries = if opcode == TABLESWITCH {
            let (low, high) = (reader.i4()?, reader.i4()?);
            let count = i64::from(high) - i64::from(low) + 1;
            usize::try_from(count).map_err(|_| bad)?.checked_mul(4)
        } else {
            usize::try_from(reader.i4()?)
                .map_err(|_| bad)?
                .checked_mul(8)
        };
        Ok(reader.at() - pc + entries.ok_or(bad)?)
    }
}

impl<'a> Iterator for Instructions<'a> {
    type Item = Result<Instruction<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.pc >= self.code.len() {
            return None;
        }
        let pc = self.pc;
        let found = self.len_at(pc).and_then(|len| {
            let bytes = self.code.get(pc..pc + len).ok_or(Error::Code { at: pc })?;
            Ok(Instruction {
                pc,
                opcode: bytes[0],
                bytes,
            })
        });
        self.pc = found.map_or(self.code.len(), |instruction| pc + instruction.bytes.len());
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_and_wide_are_measured() {
        // nop, tableswitch 0..1 (3 pads), wide iinc, return
        let mut code = vec![0, TABLESWITCH, 0, 0];
        for word in [27_i32, 0, 1, 27, 27] {
            code.extend(word.to_be_bytes());
        }
        code.extend([WIDE, 0x84, 0, 1, 0, 2, RETURN]);
        let sizes: Vec<usize> = Instructions::new(&code)
            .map(|i| i.map(|i| i.bytes.len()))
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(sizes, [1, 23, 6, 1]);
    }

    #[test]
    fn truncated_and_unknown_instructions_are_errors() {
        let check = |code: &[u8]| assert!(Instructions::new(code).last().unwrap().is_err());
        check(&[0x10]);
        check(&[0xff]);
        check(&[
            TABLESWITCH,
            0,
            0,
            0,
            0,
            0,
            0,
            0,
            0x7f,
            0xff,
            0xff,
            0xff,
            0x80,
            0,
            0,
            0,
        ]);
    }
}
