//! Rules for finding the caller of a frame in code without frame pointers. Compilers write them for exceptions
//! (`.eh_frame`: Linux Standard Base, "Exception Frames"; DWARF 5, section 6.4). They are read from a library's file
//! beforehand, into rows that a signal handler can look up.

/// The rule from an instruction on, until the next row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Row {
    /// The instruction's offset in its file's addresses.
    pub(super) begin: u32,
    pub(super) rule: Rule,
}

/// How to compute the caller's registers. Offsets are from the caller's stack pointer before the call (the "canonical
/// frame address").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    /// The base of that address.
    pub(super) base: Base,
    /// The offset from the base.
    pub(super) add: i32,
    /// Where the caller's frame pointer is; 0 if the register still has it.
    pub(super) fp: i16,
    /// Where the return address is; 0 if the link register has it.
    pub(super) back: i16,
}

/// The base of the caller's stack pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// No rule is known.
    Unknown,
    /// There is no caller.
    Outermost,
    Stack,
    Frame,
    /// The stack pointer, in code that the linker makes for calls of other libraries: it pushes a word in the middle of 16 bytes.
    Linkage,
}

/// The numbers that frame pointer, stack pointer and return address have in the rules.
#[cfg(target_arch = "x86_64")]
const NUMBERS: [u64; 3] = [6, 7, 16];
#[cfg(target_arch = "aarch64")]
const NUMBERS: [u64; 3] = [29, 31, 30];

const UNKNOWN: Rule = Rule {
    base: Base::Unknown,
    add: 0,
    fp: 0,
    back: 0,
};

/// All rows of a section, which is at `address` in its file's addresses, in ascending order. Unreadable entries have
/// the rule [`Base::Unknown`].
pub(super) fn rows_of(section: &[u8], address: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut at = 0;
    while let Some(length) = Bytes::at(section, at).u32() {
        let begin = at + 4;
        let end = begin + length as usize;
        // The end is marked by 0; all ones would begin an entry of more than 4 GiB.
        if length == 0 || length == u32::MAX || end > section.len() {
            break;
        }
        let entry = Bytes {
            bytes: &section[..end],
            at: begin,
        };
        // An unreadable entry does not affect others.
        let _ = function(entry, address, &mut rows);
        at = end;
    }
    // Where a function ends and another one begins, the latter's row holds.
    rows.sort_by_key(|row: &Row| (row.begin, row.rule.base != Base::Unknown));
    let mut kept: Vec<Row> = Vec::with_capacity(rows.len());
    for row in rows {
        if kept.last().is_some_and(|last| last.begin == row.begin) {
            kept.pop();
        }
        if kept.last().is_none_or(|last| last.rule != row.rule) {
            kept.push(row);
        }
    }
    kept.shrink_to_fit();
    kept
}

/// The rule for an address.
pub(super) fn rule_at(rows: &[Row], offset: u32) -> Rule {
    let after = rows.partition_point(|row| row.begin <= offset);
    let row = after.checked_sub(1).and_then(|at| rows.get(at));
    row.map_or(UNKNOWN, |row| row.rule)
}

/// The common part of several functions (CIE).
struct Common<'a> {
    code_unit: u64,
    data_unit: i64,
    pointers: u8,
    has_more: bool,
    steps: Bytes<'a>,
}

/// Reads the entry of a function, of which `entry` begins behind the length.
fn function(mut entry: Bytes<'_>, address: u64, rows: &mut Vec<Row>) -> Option<()> {
    let place = entry.at;
    let distance = entry.u32()? as usize;
    if distance == 0 {
        // A common part, which is read with the entries that refer to it.
        return None;
    }
    let common = common(entry.bytes, place.checked_sub(distance)?)?;
    let begin = entry.pointer(common.pointers, address)?;
    let size = entry.pointer(common.pointers & 0x0f, address)?;
    if common.has_more {
        let more = entry.uleb()?;
        entry.skip(more)?;
    }
    let end = u32::try_from(begin.checked_add(size)?).ok()?;
    let mut machine = Machine {
        at: u32::try_from(begin).ok()?,
        rule: Rule {
            back: if cfg!(target_arch = "x86_64") { -8 } else { 0 },
            ..UNKNOWN
        },
        first: UNKNOWN,
        saved: Vec::new(),
        rows,
    };
    let is_read = machine
        .run(common.steps.clone(), &common, address)
        .is_some();
    machine.first = machine.rule;
    let is_read = is_read && machine.run(entry, &common, address).is_some();
    if !is_read {
        machine.rule = UNKNOWN;
    }
    machine.emit();
    let rule = UNKNOWN;
    rows.push(Row { begin: end, rule });
    Some(())
}

fn common(section: &[u8], at: usize) -> Option<Common<'_>> {
    let mut head = Bytes::at(section, at);
    let length = head.u32()? as usize;
    let end = at.checked_add(4)?.checked_add(length)?;
    let mut entry = Bytes {
        bytes: section.get(..end)?,
        at: at + 4,
    };
    if entry.u32()? != 0 {
        return None;
    }
    let version = entry.u8()?;
    let letters = entry.text()?;
    let code_unit = entry.uleb()?;
    let data_unit = entry.sleb()?;
    let _return_address = match version {
        1 => u64::from(entry.u8()?),
        _ => entry.uleb()?,
    };
    let mut pointers = 0;
    let has_more = letters.first() == Some(&b'z');
    if has_more {
        let length = entry.uleb()?;
        let mut more = entry.clone();
        entry.skip(length)?;
        for letter in &letters[1..] {
            match letter {
                b'R' => pointers = more.u8()?,
                b'L' => drop(more.u8()?),
                b'P' => {
                    let kind = more.u8()?;
                    more.pointer(kind & 0x0f, 0)?;
                }
                // A frame of a signal, or with signed return addresses.
                b'S' | b'B' => {}
                _ => return None,
            }
        }
    } else if !letters.is_empty() {
        return None;
    }
    Some(Common {
        code_unit,
        data_unit,
        pointers,
        has_more,
        steps: entry,
    })
}

/// Executes the instructions of an entry. Each changes the rule or advances to a later address.
struct Machine<'a> {
    at: u32,
    rule: Rule,
    /// The rule that the function begins with.
    first: Rule,
    saved: Vec<Rule>,
    rows: &'a mut Vec<Row>,
}

impl Machine<'_> {
    fn emit(&mut self) {
        let (begin, rule) = (self.at, self.rule);
        self.rows.push(Row { begin, rule });
    }

    /// Advances; the present rule applies until that address.
    fn advance(&mut self, units: u64, common: &Common<'_>) -> Option<()> {
        let by = units.checked_mul(common.code_unit)?;
        self.emit();
        self.at = self.at.checked_add(u32::try_from(by).ok()?)?;
        Some(())
    }

    fn base(&mut self, register: u64) {
        let [fp, sp, _] = NUMBERS;
        self.rule.base = match register {
            _ if register == fp => Base::Frame,
            _ if register == sp => Base::Stack,
            _ => Base::Unknown,
        };
    }

    fn add(&mut self, offset: i64) -> Option<()> {
        self.rule.add = i32::try_from(offset).ok()?;
        Some(())
    }

    /// A register is saved at this offset from the frame's address, in units.
    fn save(&mut self, register: u64, units: i64, common: &Common<'_>) -> Option<()> {
        let offset = units.checked_mul(common.data_unit);
        let offset = offset.and_then(|offset| i16::try_from(offset).ok());
        self.set(register, offset?);
        Some(())
    }

    fn set(&mut self, register: u64, offset: i16) {
        let [fp, _, back] = NUMBERS;
        if register == fp {
            self.rule.fp = offset;
        } else if register == back {
            self.rule.back = offset;
        }
    }

    fn restore(&mut self, register: u64) {
        let [fp, _, back] = NUMBERS;
        if register == fp {
            self.rule.fp = self.first.fp;
        } else if register == back {
            self.rule.back = self.first.back;
        }
    }

    /// A register is in a place that these rules do not support.
    fn elsewhere(&mut self, register: u64) {
        let [fp, _, back] = NUMBERS;
        if register == fp || register == back {
            self.rule.base = Base::Unknown;
        }
    }

    fn run(&mut self, mut steps: Bytes<'_>, common: &Common<'_>, address: u64) -> Option<()> {
        while let Some(step) = steps.u8() {
            let low = u64::from(step & 0x3f);
            match step {
                0x40..0x80 => self.advance(low, common)?,
                0x80..0xc0 => {
                    let units = steps.uleb()?.cast_signed();
                    self.save(low, units, common)?;
                }
                0xc0.. => self.restore(low),
                0x00 => {}
                0x01 => {
                    let to = u32::try_from(steps.pointer(common.pointers, address)?).ok()?;
                    self.emit();
                    self.at = to;
                }
                0x02 => self.advance(u64::from(steps.u8()?), common)?,
                0x03 => self.advance(u64::from(steps.u16()?), common)?,
                0x04 => self.advance(u64::from(steps.u32()?), common)?,
                0x0a => self.saved.push(self.rule),
                0x0b => self.rule = self.saved.pop()?,
                // From here on return addresses are signed, or no longer signed.
                0x2d => {}
                0x2e => drop(steps.uleb()?),
                0x05..=0x09 | 0x10 | 0x11 | 0x14..=0x16 => {
                    self.register(step, &mut steps, common)?
                }
                0x0c..=0x0f | 0x12 | 0x13 => self.frame(step, &mut steps, common)?,
                _ => return None,
            }
        }
        Some(())
    }

    /// Steps about where a register of the caller is.
    fn register(&mut self, step: u8, steps: &mut Bytes<'_>, common: &Common<'_>) -> Option<()> {
        let register = steps.uleb()?;
        match step {
            0x05 => {
                let units = steps.uleb()?.cast_signed();
                self.save(register, units, common)?;
            }
            0x11 => {
                let units = steps.sleb()?;
                self.save(register, units, common)?;
            }
            0x06 => self.restore(register),
            0x07 if register == NUMBERS[2] => self.rule.base = Base::Outermost,
            0x07 => {}
            0x08 => self.set(register, 0),
            0x10 | 0x16 => {
                let length = steps.uleb()?;
                steps.skip(length)?;
                self.elsewhere(register);
            }
            0x15 => {
                steps.sleb()?;
                self.elsewhere(register);
            }
            // In another register, or a value.
            _ => {
                steps.uleb()?;
                self.elsewhere(register);
            }
        }
        Some(())
    }

    /// Steps about the frame's address.
    fn frame(&mut self, step: u8, steps: &mut Bytes<'_>, common: &Common<'_>) -> Option<()> {
        match step {
            0x0c => {
                let register = steps.uleb()?;
                self.base(register);
                self.add(steps.uleb()?.cast_signed())
            }
            0x0d => {
                let register = steps.uleb()?;
                self.base(register);
                Some(())
            }
            0x0e => self.add(steps.uleb()?.cast_signed()),
            0x12 => {
                let register = steps.uleb()?;
                self.base(register);
                self.add(steps.sleb()?.checked_mul(common.data_unit)?)
            }
            0x13 => self.add(steps.sleb()?.checked_mul(common.data_unit)?),
            _ => {
                /// `rsp + 8 + ((rip & 15) >= 11) * 8`
                const LINKAGE: [u8; 11] = [
                    0x77, 0x08, 0x80, 0x00, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22,
                ];
                let length = steps.uleb()?;
                let expression = steps.take(length)?;
                self.rule.base = match expression == LINKAGE {
                    true if cfg!(target_arch = "x86_64") => Base::Linkage,
                    _ => Base::Unknown,
                };
                Some(())
            }
        }
    }
}

/// A reader of bytes.
#[derive(Clone)]
struct Bytes<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Bytes<'a> {
    fn at(bytes: &'a [u8], at: usize) -> Self {
        Self { bytes, at }
    }

    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let end = self.at.checked_add(usize::try_from(length).ok()?)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn skip(&mut self, length: u64) -> Option<()> {
        self.take(length).map(drop)
    }

    fn array<const SIZE: usize>(&mut self) -> Option<[u8; SIZE]> {
        self.take(SIZE as u64)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        self.at += length + 1;
        Some(&rest[..length])
    }

    fn uleb(&mut self) -> Option<u64> {
        self.leb().map(|(value, ..)| value)
    }

    fn sleb(&mut self) -> Option<i64> {
        let (value, bits, is_negative) = self.leb()?;
        let fill = match is_negative && bits < 64 {
            true => u64::MAX << bits,
            false => 0,
        };
        Some((value | fill).cast_signed())
    }

    /// A number of any length, its bits, and the sign if it has one.
    fn leb(&mut self) -> Option<(u64, u32, bool)> {
        let (mut value, mut bits) = (0, 0);
        loop {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f).checked_shl(bits)?;
            bits += 7;
            if byte & 0x80 == 0 {
                return Some((value, bits, byte & 0x40 != 0));
            }
        }
    }

    /// An address of a kind that is usual in libraries: of 4 or 8 bytes, absolute or from its own place.
    fn pointer(&mut self, kind: u8, address: u64) -> Option<u64> {
        let own = address.wrapping_add(self.at as u64);
        let value = match kind & 0x0f {
            0x00 | 0x04 | 0x0c => self.array().map(u64::from_le_bytes)?,
            0x03 => u64::from(self.u32()?),
            0x0b => i64::from(self.u32()?.cast_signed()).cast_unsigned(),
            _ => return None,
        };
        match kind & 0x70 {
            0x00 => Some(value),
            0x10 => Some(value.wrapping_add(own)),
            _ => None,
        }
    }
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;

    /// What is common: units of 1 and -8, addresses of 4 bytes from their place; the frame's address is the stack pointer + 8.
    const COMMON: [u8; 24] = [
        20, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 1, 0, 0,
    ];

    /// The section with a function of so many bytes at 0x5000, and these steps. The section is at 0x1000.
    fn section(size: u32, steps: &[u8]) -> Vec<u8> {
        let mut section = COMMON.to_vec();
        let length = 4 + 8 + 1 + steps.len();
        section.extend((length as u32).to_le_bytes());
        section.extend(28_u32.to_le_bytes());
        let place = 0x1000 + section.len() as i32;
        section.extend((0x5000 - place).to_le_bytes());
        section.extend(size.to_le_bytes());
        section.push(0);
        section.extend(steps);
        section.extend([0; 4]);
        section
    }

    fn rule(base: Base, add: i32, fp: i16) -> Rule {
        let back = -8;
        Rule {
            base,
            add,
            fp,
            back,
        }
    }

    #[test]
    fn a_function_with_a_frame_pointer_has_three_rules() {
        // push rbp; mov rbp, rsp; ...; pop rbp; ret
        let steps = [
            0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x02, 0x30, 0xc6, 0x0c, 7, 8,
        ];
        let rows = rows_of(&section(0x40, &steps), 0x1000);
        for (offset, expected) in [
            (0x4fff, UNKNOWN),
            (0x5000, rule(Base::Stack, 8, 0)),
            (0x5001, rule(Base::Stack, 16, -16)),
            (0x5004, rule(Base::Frame, 16, -16)),
            (0x5033, rule(Base::Frame, 16, -16)),
            (0x5034, rule(Base::Stack, 8, 0)),
            (0x5040, UNKNOWN),
        ] {
            assert_eq!(rule_at(&rows, offset), expected, "{offset:x}");
        }
    }

    #[test]
    fn a_rule_that_was_saved_comes_back() {
        let steps = [0x0e, 32, 0x41, 0x0a, 0x0e, 8, 0x41, 0x0b];
        let rows = rows_of(&section(0x10, &steps), 0x1000);
        let adds = [0x5000, 0x5001, 0x5002].map(|offset| rule_at(&rows, offset).add);
        assert_eq!(adds, [32, 8, 32]);
    }

    #[test]
    fn what_is_not_understood_has_no_rule() {
        for steps in [
            &[0x3f_u8][..],
            &[0x0c, 3, 8],
            &[0x0b],
            &[0x0f, 200],
            &[0x16, 6, 1, 0x50],
        ] {
            let rows = rows_of(&section(0x10, steps), 0x1000);
            assert_eq!(rule_at(&rows, 0x5008).base, Base::Unknown, "{steps:?}");
        }
        // A thread's first function.
        let rows = rows_of(&section(0x10, &[0x07, 16]), 0x1000);
        assert_eq!(rule_at(&rows, 0x5008).base, Base::Outermost);
    }

    #[test]
    fn a_damaged_section_is_read_as_far_as_it_goes() {
        let whole = section(0x40, &[0x41, 0x0e, 16, 0x86, 2]);
        for cut in 0..whole.len() {
            let _ = rows_of(&whole[..cut], 0x1000);
        }
        for at in 0..whole.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = value;
                let _ = rows_of(&damaged, 0x1000);
            }
        }
    }
}
