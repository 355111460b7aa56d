//! The code that is inserted if stacks are sampled: allocations are counted by instruction.
//!
//! Nothing is inserted at calls of other methods. The inserted code stores the number of the site in the thread's
//! tracker before a constructor of a new object is called, and after an instruction that makes an array or a copy. The
//! count that follows takes the number and clears it, so an object whose constructor is called by native code has no
//! site. A constructor that runs other code before it calls the next constructor keeps the site of its object in a
//! local variable meanwhile.

use classfile::instruction::{INVOKESPECIAL, NEW};
use classfile::{Class, Instruction, LocalType, MethodEdit, Place};

use crate::instrument::allocation_free::allocates;
use crate::instrument::leaf::is_harmless;
use crate::instrument::numbers::SITE_BITS;
use crate::instrument::rewrite::{
    LDC2_W, LLOAD, LSTORE, Tracking, invoke, is_arrays_copy, local, push,
};

/// What a site adds to the number of its class; the same function as in the tracker.
pub(crate) fn number(site: u32) -> i64 {
    let mut noise = u64::from(site).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    noise = (noise ^ noise >> 32).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (noise << SITE_BITS)
        .wrapping_add(u64::from(site))
        .cast_signed()
}

/// Constructor calls of a method, by offset.
#[derive(Debug, Default, PartialEq, Eq)]
struct Constructors {
    /// Of new objects.
    new: Vec<usize>,
    /// Those of new objects of the constructor's own class.
    own: Vec<usize>,
    /// Those by which a constructor calls the next one (`this(...)` or `super(...)`).
    next: Vec<usize>,
}

impl Constructors {
    fn of(class: &Class<'_>, edit: &MethodEdit<'_>) -> Self {
        let mut found = Self::default();
        let is_constructor = edit.method.name == b"<init>";
        // Classes of new objects without a constructor call so far, in the order of the code.
        let mut bare: Vec<&[u8]> = Vec::new();
        for instruction in edit.instructions() {
            if instruction.opcode == NEW {
                let name = instruction.index().map(|at| class.pool.class_name(at));
                bare.extend(name.and_then(Result::ok));
            }
            let Some(owner) = constructor_of(class, instruction) else {
                continue;
            };
            let is_other = owner != class.name && Some(owner) != class.superclass;
            let is_bare = bare.last() == Some(&owner);
            if is_bare {
                bare.pop();
            }
            if !is_constructor || is_other || is_bare {
                found.new.push(instruction.pc);
                if is_constructor && owner == class.name {
                    found.own.push(instruction.pc);
                }
            } else {
                found.next.push(instruction.pc);
            }
        }
        found
    }
}

/// The class whose constructor this instruction calls.
fn constructor_of<'a>(class: &Class<'a>, instruction: &Instruction<'_>) -> Option<&'a [u8]> {
    let index = instruction
        .index()
        .filter(|_| instruction.opcode == INVOKESPECIAL)?;
    let [owner, name, _] = class.pool.method_ref(index).ok()?;
    (name == b"<init>").then_some(owner)
}

impl Tracking<'_> {
    /// Inserts what counts the allocations of a method by instruction.
    pub(super) fn add_sites(&mut self, class: &Class<'_>, edit: &mut MethodEdit<'_>) {
        let is_copy_of = is_arrays_copy(class.name, edit.method.name, edit.method.descriptor);
        let constructors = Constructors::of(class, edit);
        let mut after: Option<Vec<u8>> = None;
        let mut changes = false;
        for instruction in edit.instructions().to_vec() {
            if let Some(hook) = after.take() {
                edit.insert(instruction.pc, Place::AfterPrevious, &hook);
            }
            if constructors.new.contains(&instruction.pc) {
                let (here, site) = self.here(edit);
                if constructors.own.contains(&instruction.pc) {
                    self.numbers.note_own(site, edit.method.descriptor);
                }
                edit.insert(instruction.pc, Place::Before, &here);
                changes = true;
            } else if allocates(&instruction)
                && let Some(hook) = self.hook_after(class, edit, &instruction, is_copy_of)
            {
                after = Some([self.here(edit).0, hook].concat());
                changes = true;
            }
        }
        if changes {
            edit.need_stack(3);
        }
        self.hold_site(class, edit, &constructors.next);
    }

    /// Code that stores which site is about to count, and the number of the site.
    fn here(&mut self, edit: &mut MethodEdit<'_>) -> (Vec<u8>, i64) {
        let of_class = self.sites.of_class();
        // 0 means no site.
        if of_class.wrapping_add(number(self.next_site)) == 0 {
            self.next_site += 1;
        }
        let number = of_class.wrapping_add(number(self.next_site));
        let [high, low] = edit.pool.long(of_class).to_be_bytes();
        let site = push(edit, self.next_site);
        self.next_site += 1;
        let here = invoke(edit, "here", "(JI)V");
        ([&[LDC2_W, high, low][..], &site, &here].concat(), number)
    }

    /// Keeps the site of the object in a constructor that runs other code before it calls the next one at this offset.
    fn hold_site(&self, class: &Class<'_>, edit: &mut MethodEdit<'_>, next: &[usize]) {
        let Some(last) = next.last() else {
            return;
        };
        let mut before = edit.instructions().iter().take_while(|i| i.pc < *last);
        if before.all(|i| next.contains(&i.pc) || is_harmless(class, i)) {
            return;
        }
        let site = edit.add_local(LocalType::Long);
        let held = invoke(edit, "held", "()J");
        edit.insert(0, Place::Entry, &[&held[..], &local(LSTORE, site)].concat());
        let hold = invoke(edit, "hold", "(J)V");
        for at in next {
            edit.insert(
                *at,
                Place::Before,
                &[&local(LLOAD, site)[..], &hold].concat(),
            );
        }
        edit.need_stack(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::numbers::Numbers;

    /// Constructor calls by method: of new objects, and of next constructors.
    struct Found(Vec<(String, [usize; 2])>);

    impl classfile::Instrument for Found {
        fn method(&mut self, class: &Class<'_>, edit: &mut MethodEdit<'_>) {
            let found = Constructors::of(class, edit);
            let calls = [found.new.len(), found.next.len()];
            if calls != [0, 0] {
                let name = String::from_utf8_lossy(edit.method.name).into_owned();
                self.0.push((name, calls));
            }
        }
    }

    #[test]
    fn new_objects_are_reported_from_the_next_constructor() {
        let tracker = include_bytes!("../../tracker/HprofTracker.class");
        let mut found = Found(Vec::new());
        classfile::patch(tracker, &mut found).expect("a class file");
        let expected = [("<init>", [0, 1]), ("<clinit>", [1, 0])];
        assert_eq!(
            found.0,
            expected.map(|(name, calls)| (name.to_owned(), calls))
        );
    }

    #[test]
    fn no_site_has_the_number_of_none() {
        let tracker = include_bytes!("../../tracker/HprofTracker.class");
        let numbers = Numbers::default();
        // The first class has the number 0.
        let [first, second] = [(); 2].map(|()| {
            let mut tracking = Tracking {
                numbers: &numbers,
                sites: numbers.sites_of(None, tracker.len()),
                next_site: 0,
                allocations: true,
                stacks_sampled: true,
                calls: false,
                unsafe_class: "",
                allocation_free: std::cell::OnceCell::new(),
            };
            classfile::patch(tracker, &mut tracking).expect("a class file");
            tracking.next_site
        });
        assert!(second > 0);
        assert_eq!(first, second + 1);
    }

    #[test]
    fn sites_of_a_class_have_different_numbers() {
        let numbers: std::collections::HashSet<i64> = (0..1000).map(number).collect();
        assert_eq!(numbers.len(), 1000);
        let low = |site: u32| number(site) & ((1 << SITE_BITS) - 1);
        assert_eq!([low(0), low(7)], [0, 7]);
    }
}
