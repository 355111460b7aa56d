//! Code that reports every object that Java code makes to a class of the boot loader, for VMs that have no event for it
//! (before JDK 11). A call is inserted into the constructor of `Object`, which every constructor calls in the end, and
//! after each instruction that makes an array.

use classfile::instruction::{ANEWARRAY, INVOKESTATIC, MULTIANEWARRAY, NEWARRAY};
use classfile::{Class, Instrument, MethodEdit, Place};

/// Inserts calls of static methods that take the object and return nothing.
#[derive(Clone, Copy, Debug)]
pub struct NewObjectCalls {
    /// The class that is called, with slashes.
    pub class: &'static str,
    /// Its method for objects with a constructor.
    pub object: &'static str,
    /// Its method for arrays.
    pub array: &'static str,
    /// Its method for arrays that were made together with their rows.
    pub nested: &'static str,
}

impl Instrument for NewObjectCalls {
    fn method(&mut self, class: &Class<'_>, edit: &mut MethodEdit<'_>) {
        const ALOAD_0: u8 = 0x2a;
        const DUP: u8 = 0x59;
        let call = |edit: &mut MethodEdit<'_>, first: u8, name: &str| {
            let method = edit
                .pool
                .method_ref(self.class, name, "(Ljava/lang/Object;)V");
            let [high, low] = method.to_be_bytes();
            [first, INVOKESTATIC, high, low]
        };
        if class.name == b"java/lang/Object" && edit.method.name == b"<init>" {
            let hook = call(edit, ALOAD_0, self.object);
            edit.insert(0, Place::Entry, &hook);
            edit.need_stack(1);
            return;
        }
        let mut after = None;
        for instruction in edit.instructions().to_vec() {
            if let Some(name) = after.take() {
                let hook = call(edit, DUP, name);
                edit.insert(instruction.pc, Place::AfterPrevious, &hook);
                edit.need_stack(1);
            }
            after = match instruction.opcode {
                NEWARRAY | ANEWARRAY => Some(self.array),
                MULTIANEWARRAY => Some(self.nested),
                _ => None,
            };
        }
    }
}

/// A frame above an allocation; `C` names classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<C> {
    /// A method of the class that is called.
    Ours,
    /// A constructor of a class.
    Constructor(C),
    /// Any other method.
    Other,
}

/// How many innermost frames to hide of the stack of an allocation: those of the agent, and the constructors of the
/// object, from that of `Object` to those of its own class.
pub fn hidden_frames<C: PartialEq>(steps: impl Iterator<Item = Step<C>>, class: &C) -> usize {
    let (mut hidden, mut has_arrived) = (0, false);
    for (at, step) in steps.enumerate() {
        match step {
            Step::Ours => hidden = at + 1,
            Step::Constructor(of) if of == *class => {
                (hidden, has_arrived) = (at + 1, true);
            }
            // A constructor of a superclass, unless one of the object's own class came before.
            Step::Constructor(_) if !has_arrived => {}
            _ => break,
        }
    }
    hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constructors_of_the_object_are_hidden_and_those_that_make_it_are_not() {
        use Step::{Constructor as C, Other, Ours};
        let check = |steps: &[Step<u64>], expected| {
            assert_eq!(
                hidden_frames(steps.iter().copied(), &7),
                expected,
                "{steps:?}"
            );
        };
        // new C() in a method: Object, a superclass, C twice (one calls the other).
        check(&[Ours, Ours, C(1), C(5), C(7), C(7), Other], 6);
        // new C() in a constructor of another class.
        check(&[Ours, Ours, C(1), C(7), C(9), Other], 4);
        // An array made in a method, and in a constructor.
        check(&[Ours, Ours, Other], 2);
        check(&[Ours, Ours, C(9), Other], 2);
        check(&[], 0);
    }
}
