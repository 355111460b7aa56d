//! Which methods are leaves: their code has no loops and no calls, takes a few nanoseconds and runs no other code, not
//! even a class initializer or the constructor of an exception.
//!
//! Most calls of Java programs are of such methods (getters, comparisons of numbers). No other code can observe a call
//! of one while it is open, so the call is counted but not put on the stack of open calls, unless its time is measured.

use classfile::{Class, Instruction, MethodEdit};

/// The longest code of a leaf, in bytes.
const LONGEST: usize = 64;

const LDC: u8 = 0x12;
const LDC_W: u8 = 0x13;
const LDC2_W: u8 = 0x14;
const ASTORE: u8 = 0x3a;
const ASTORE_0: u8 = 0x4b;
const ALOAD_0: u8 = 0x2a;
const GETSTATIC: u8 = 0xb2;
const PUTSTATIC: u8 = 0xb3;
const GETFIELD: u8 = 0xb4;
const PUTFIELD: u8 = 0xb5;
/// `static` among a method's access flags.
const STATIC: u16 = 8;

/// Whether the method is a leaf.
pub(crate) fn is_leaf(class: &Class<'_>, edit: &MethodEdit<'_>) -> bool {
    let code = edit.code;
    if code.bytes.len() > LONGEST || !code.handlers.is_empty() {
        return false;
    }
    let has_this = edit.method.access & STATIC == 0
        && !edit.instructions().iter().any(|instruction| {
            let is_this = instruction.bytes.get(1) == Some(&0);
            instruction.opcode == ASTORE_0 || instruction.opcode == ASTORE && is_this
        });
    let instructions = edit.instructions();
    (0..instructions.len()).all(|at| {
        let before = |n: usize| at.checked_sub(n).map(|at| instructions[at]);
        let is_of_this = |n| has_this && before(n).is_some_and(|i| i.opcode == ALOAD_0);
        let instruction = &instructions[at];
        match instruction.opcode {
            GETFIELD => is_of_this(1),
            PUTFIELD => is_of_this(2) && before(1).is_some_and(|i| is_load(i.opcode)),
            GETSTATIC | PUTSTATIC => is_initialized(class, instruction),
            0x99..=0xa7 | 0xc6 | 0xc7 => is_forward(instruction),
            0xac..=0xb1 => true,
            _ => is_harmless(class, instruction),
        }
    })
}

/// Constants without an entry in the constant pool, and loads of local variables.
fn is_load(opcode: u8) -> bool {
    matches!(opcode, 0x01..=0x11 | 0x15..=0x2d)
}

/// Whether an instruction neither throws, calls nor jumps, nor ends the method.
pub(super) fn is_harmless(class: &Class<'_>, instruction: &Instruction<'_>) -> bool {
    match instruction.opcode {
        LDC | LDC_W | LDC2_W => is_number(class, instruction),
        // nop; stores to locals; moves on the stack; arithmetic but for the four that
        // divide integers; iinc, conversions and comparisons.
        0x00 | 0x36..=0x4e | 0x57..=0x6b | 0x6e | 0x6f | 0x72..=0x98 => true,
        opcode => is_load(opcode),
    }
}

fn is_forward(branch: &Instruction<'_>) -> bool {
    branch
        .index()
        .is_some_and(|offset| offset.cast_signed() > 0)
}

/// Whether the class of a static field is initialized before the method can run: the method's own class, or one that
/// the VM initializes first.
fn is_initialized(class: &Class<'_>, access: &Instruction<'_>) -> bool {
    let owner = access
        .index()
        .and_then(|index| class.pool.field_owner(index).ok());
    owner.is_some_and(|owner| owner == class.name || owner == b"java/lang/String")
}

fn is_number(class: &Class<'_>, load: &Instruction<'_>) -> bool {
    let index = match load.opcode {
        LDC => load.bytes.get(1).map(|index| u16::from(*index)),
        _ => load.index(),
    };
    index.is_some_and(|index| class.pool.is_number(index))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of a class's leaves.
    struct Leaves(Vec<String>);

    impl classfile::Instrument for Leaves {
        fn method(&mut self, class: &Class<'_>, edit: &mut MethodEdit<'_>) {
            if is_leaf(class, edit) {
                self.0
                    .push(String::from_utf8_lossy(edit.method.name).into_owned());
            }
        }
    }

    #[test]
    fn methods_that_lead_nowhere_are_leaves() {
        let mut found = Leaves(Vec::new());
        let tracker = include_bytes!("../../tracker/HprofTracker.class");
        classfile::patch(tracker, &mut found).unwrap();
        let is_found = |name: &str| found.0.iter().any(|leaf| leaf == name);
        // Its own static field and one of `this`; numbers and forward branches.
        for leaf in ["key", "beyond", "weighted"] {
            assert!(is_found(leaf), "{leaf}: {:?}", found.0);
        }
        // A field of what may be null, an element, calls, a loop, a constructor that
        // calls another.
        for other in ["context", "arrayBytes", "get", "array", "popAll", "<init>"] {
            assert!(!is_found(other), "{other}");
        }
    }
}
