//! Which code is inserted to count allocations and calls.
//!
//! Allocations: a method that allocates, or calls methods that may, has two new local variables. One is its thread's
//! tracker; the other is the calling context at its entry, shifted, with the number of its class added. Before each such
//! call it adds the number of the call site in its class and stores the sum in the tracker, where the called method
//! finds it. Nothing is needed at exits, in other methods, or at calls of those ([`AllocationFree`]). The context is a
//! sum of site numbers shifted by position, so that sites beyond the depth of stacks are shifted out: equal contexts
//! are equal stacks. Contexts that differ in one site always differ; others collide with a probability below one in
//! 2^32 (down to 37 frames). The stack is read now and then, and a difference is reported
//! ([`State::check`](crate::vm::state::State::check)). A class gets only one constant for its sites, because a VM that
//! changes a loaded class compares each new constant with all others. Methods that the VM calls in the middle of other
//! code ([`Upcall`]) restore the context at their end; those that it calls at many places begin with the context of
//! their stack.
//!
//! Calls: a call of the tracker at entry returns the depth of the stack of open calls. It is kept in a local variable
//! and passed to the tracker at returns and in exception handlers, so that the method that catches an exception ends
//! the calls that the exception has ended. A call of a [leaf](crate::instrument::leaf) is usually only counted.
//!
//! Inlining: C2 inlines a method into a caller that calls it often unless it is large, together with its inserted
//! calls. That costs more than it saves: compilation takes several times as long, and the compiled code is several
//! times as large. So a method that is not small is made too large to be inlined, by instructions at its end that are
//! never reached.

use std::cell::OnceCell;

use classfile::instruction::{ANEWARRAY, INVOKESTATIC, MULTIANEWARRAY, NEWARRAY};
use classfile::{Class, Instruction, Instrument, LocalType, MethodEdit, Place};

use crate::host::sampling;
use crate::instrument::allocation_free::{AllocationFree, allocates};
use crate::instrument::key_slots::spread_method;
use crate::instrument::leaf::is_leaf;
use crate::instrument::numbers::{NumberedMethod, Numbers, Sites};

/// The class that inserted code calls.
pub const TRACKER: &str = "java/lang/HprofTracker";

const ALOAD: u8 = 0x19;
const ASTORE: u8 = 0x3a;
pub(super) const LLOAD: u8 = 0x16;
pub(super) const LSTORE: u8 = 0x37;
const ILOAD: u8 = 0x15;
const ISTORE: u8 = 0x36;
const DUP: u8 = 0x59;
const ALOAD_0: u8 = 0x2a;
const ICONST_0: u8 = 0x03;
const BIPUSH: u8 = 0x10;
const SIPUSH: u8 = 0x11;
const ARRAYLENGTH: u8 = 0xbe;
pub(super) const LDC2_W: u8 = 0x14;
const LDC_W: u8 = 0x13;
const WIDE: u8 = 0xc4;

/// The longest method that HotSpot's compilers inline into every caller (`MaxInlineSize`).
const SMALL: usize = 35;
/// The length from which on C2 never inlines a method (above `FreqInlineSize`).
const TOO_LARGE: usize = 326;

/// The instrumenter of one class.
#[derive(Debug)]
pub struct Tracking<'a> {
    /// Gives the numbers of methods.
    pub numbers: &'a Numbers,
    /// The class's call sites.
    pub sites: Sites,
    /// The number of the next call site.
    pub next_site: u32,
    /// Insert code that counts allocations.
    pub allocations: bool,
    /// Count allocations by instruction, because stacks are sampled.
    pub stacks_sampled: bool,
    /// Insert code that counts calls.
    pub calls: bool,
    /// The class whose native method `allocateInstance` makes objects without a constructor.
    pub unsafe_class: &'static str,
    /// Its methods that need no calling context, when they are known.
    pub allocation_free: OnceCell<AllocationFree>,
}

/// Whether a class may be changed at all.
#[must_use]
pub fn is_eligible(name: &str) -> bool {
    // Classes without a name are VM-anonymous classes (JDK 8), which made the original crash. The implementation of
    // virtual threads runs while the current thread changes.
    !name.is_empty()
        && name != TRACKER
        && name != sampling::CLASS
        && !name.starts_with("jdk/internal/vm/")
        && !name.starts_with("java/lang/VirtualThread")
        && !name.starts_with("java/lang/ThreadBuilders$BoundVirtualThread")
        && !runs_after_a_change(name)
}

/// Whether `Modules.transformedByAgent` needs a class. The VM calls this method for the module of each class that an
/// agent changes, while it loads that class. If one of these classes is changed, it is needed for its own loading, and
/// the error stays in the constant pool of `Module`: JaCoCo's agent ended the program on JDK 25.
fn runs_after_a_change(name: &str) -> bool {
    name == "java/lang/Module$ReflectionData" || name.starts_with("java/lang/WeakPairMap")
}

impl Tracking<'_> {
    fn allocation_free(&self, class: &Class<'_>) -> &AllocationFree {
        let free = &self.allocation_free;
        free.get_or_init(|| AllocationFree::of(class))
    }

    /// Whether a method stays unchanged.
    fn is_exempt(class: &Class<'_>, edit: &MethodEdit<'_>) -> bool {
        let method = edit.method;
        // The tracker calls this method, which is final.
        let is_thread_id = class.name == b"java/lang/Thread"
            && method.name == b"threadId"
            && method.descriptor == b"()J";
        // A finalizer with more code than one `return` makes every instance finalizable.
        let is_empty_finalizer = method.name == b"finalize" && edit.code.bytes.len() == 1;
        // Virtual threads exist from JDK 19 on.
        let has_virtual_threads = class.version.0 >= 63;
        is_thread_id
            || is_empty_finalizer
            || has_virtual_threads && runs_in_transition(class.name, method.name)
    }
}

/// Whether `Continuation` or `VirtualThread` calls a method while the current thread changes between a virtual thread
/// and its carrier. A native method of the tracker that calls JVMTI there, or waits for a thread that does, would wait
/// for the end of the change: a deadlock.
fn runs_in_transition(class: &[u8], method: &[u8]) -> bool {
    let is_one_of = |names: &[&[u8]]| names.contains(&method);
    match class {
        // Of all its methods (fences, exchanges and others) only these allocate.
        b"jdk/internal/misc/Unsafe" => !method.starts_with(b"allocate"),
        b"java/lang/Thread" => is_one_of(&[
            b"currentCarrierThread",
            b"getContinuation",
            b"setContinuation",
            b"isInterrupted",
            b"setInterrupt",
            b"clearInterrupt",
        ]),
        // The implementation of JavaLangAccess.
        _ if class.starts_with(b"java/lang/System$") => is_one_of(&[
            b"currentCarrierThread",
            b"getContinuation",
            b"setContinuation",
            b"virtualThreadContinuationScope",
            b"scopedValueCache",
            b"setScopedValueCache",
        ]),
        _ => false,
    }
}

impl Instrument for Tracking<'_> {
    fn method(&mut self, class: &Class<'_>, edit: &mut MethodEdit<'_>) {
        if Self::is_exempt(class, edit) {
            return;
        }
        let is_object_init = class.name == b"java/lang/Object" && edit.method.name == b"<init>";
        if self.allocations && is_object_init {
            let hook = invoke(edit, "object", "(Ljava/lang/Object;)V");
            edit.insert(0, Place::Entry, &[&[ALOAD_0][..], &hook].concat());
            edit.need_stack(1);
        }
        let calls = self.calls && !is_object_init;
        let by_site = self.allocations && self.stacks_sampled;
        let contexts = self.allocations
            && !by_site
            && edit.instructions().iter().any(allocates)
            && !self.allocation_free(class).has(edit.method.index);
        if calls {
            self.add_calls(class, edit);
        }
        if contexts {
            self.add_contexts(class, edit);
        }
        if by_site {
            self.add_sites(class, edit);
        }
        let len = edit.code.bytes.len() + edit.growth();
        if !edit.is_empty() && len > SMALL {
            edit.lengthen(TOO_LARGE);
        }
    }
}

impl Tracking<'_> {
    fn add_calls(&self, class: &Class<'_>, edit: &mut MethodEdit<'_>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let number = self.numbers.method(NumberedMethod {
            class: text(class.name),
            name: text(edit.method.name),
            descriptor: text(edit.method.descriptor),
        });
        let depth = edit.add_local(LocalType::Int);
        let [high, low] = edit.pool.long(spread_method(number)).to_be_bytes();
        let begin = if is_leaf(class, edit) {
            "leaf"
        } else {
            "enter"
        };
        let enter = invoke(edit, begin, "(J)I");
        let entry = [&[LDC2_W, high, low][..], &enter, &local(ISTORE, depth)].concat();
        edit.insert(0, Place::Entry, &entry);
        let exit = invoke(edit, "exit", "(I)V");
        let exit = [&local(ILOAD, depth)[..], &exit].concat();
        for at in returns(edit) {
            edit.insert(at, Place::Before, &exit);
        }
        let caught = invoke(edit, "caught", "(I)V");
        let caught = [&local(ILOAD, depth)[..], &caught].concat();
        let mut handlers: Vec<u16> = edit.code.handlers.iter().map(|row| row[2]).collect();
        handlers.sort_unstable();
        handlers.dedup();
        for at in handlers {
            edit.insert(usize::from(at), Place::Before, &caught);
        }
        edit.need_stack(2);
    }

    /// Additional code of a method that the VM calls by itself: it restores the context at its end.
    fn add_upcall(&self, edit: &mut MethodEdit<'_>, tracker: u16, upcall: Upcall) {
        let before = edit.add_local(LocalType::Long);
        let begin = match upcall {
            Upcall::Once => "found",
            Upcall::Often => "called",
        };
        let found = invoke(edit, begin, "(Ljava/lang/HprofTracker;)J");
        let entry = [&[DUP][..], &found, &local(LSTORE, before)].concat();
        edit.insert(0, Place::Entry, &entry);
        let back = invoke(edit, "back", "(Ljava/lang/HprofTracker;J)V");
        let back = [&local(ALOAD, tracker)[..], &local(LLOAD, before), &back].concat();
        for at in returns(edit) {
            edit.insert(at, Place::Before, &back);
        }
    }

    fn add_contexts(&mut self, class: &Class<'_>, edit: &mut MethodEdit<'_>) {
        edit.need_stack(5);
        // The thread's tracker is looked up once and kept for the whole method.
        let owner = edit.pool.class(TRACKER);
        let tracker = edit.add_local(LocalType::Object(owner));
        let get = invoke(edit, "get", "()Ljava/lang/HprofTracker;");
        edit.insert(
            0,
            Place::Entry,
            &[&get[..], &[DUP], &local(ASTORE, tracker)].concat(),
        );
        if let Some(upcall) = upcall(class.name, edit.method.name, edit.method.descriptor) {
            self.add_upcall(edit, tracker, upcall);
        }
        let context = edit.add_local(LocalType::Long);
        let [high, low] = edit.pool.long(self.sites.of_class()).to_be_bytes();
        let found = invoke(edit, "context", "(Ljava/lang/HprofTracker;J)J");
        let entry = [&[LDC2_W, high, low][..], &found, &local(LSTORE, context)].concat();
        edit.insert(0, Place::Entry, &entry);
        let at = invoke(edit, "at", "(Ljava/lang/HprofTracker;JI)V");
        let mut after: Option<Vec<u8>> = None;
        let is_copy_of = is_arrays_copy(class.name, edit.method.name, edit.method.descriptor);
        for instruction in edit.instructions().to_vec() {
            if let Some(hook) = after.take() {
                edit.insert(instruction.pc, Place::AfterPrevious, &hook);
            }
            let free = self.allocation_free(class);
            if !allocates(&instruction) || free.is_call(edit.method.index, instruction.pc) {
                continue;
            }
            let site = push(edit, self.next_site);
            self.next_site += 1;
            let leave = [
                &local(ALOAD, tracker)[..],
                &local(LLOAD, context),
                &site,
                &at,
            ]
            .concat();
            edit.insert(instruction.pc, Place::Before, &leave);
            after = self.hook_after(class, edit, &instruction, is_copy_of);
            if let (true, Some(hook)) = (calls_arrays_copy(class, &instruction), &mut after) {
                // `copyOf` has stored the context of its own last call, or is replaced by the compiler.
                hook.splice(0..0, leave);
            }
        }
    }
}

/// A method that the VM calls by itself, between a call site and the method that is called there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Upcall {
    /// It runs once, so it has only one stack.
    Once,
    /// It runs at many places.
    Often,
}

/// Whether the VM calls this method by itself.
fn upcall(class: &[u8], method: &[u8], descriptor: &[u8]) -> Option<Upcall> {
    match (class, method) {
        (_, b"<clinit>") => Some(Upcall::Once),
        (_, b"loadClass") => {
            (descriptor == b"(Ljava/lang/String;)Ljava/lang/Class;").then_some(Upcall::Often)
        }
        (b"java/lang/ClassLoader", b"checkPackageAccess" | b"findNative") => Some(Upcall::Often),
        (b"java/lang/invoke/MethodHandleNatives", name) => {
            (name.starts_with(b"link") || name.starts_with(b"find")).then_some(Upcall::Often)
        }
        _ => None,
    }
}

/// The methods that C2 replaces with its own code. Their callers must count what they allocate.
pub(super) fn is_arrays_copy(owner: &[u8], name: &[u8], descriptor: &[u8]) -> bool {
    owner == b"java/util/Arrays"
        && matches!(name, b"copyOf" | b"copyOfRange")
        && descriptor.starts_with(b"([Ljava/lang/Object;")
        && descriptor.ends_with(b"Ljava/lang/Class;)[Ljava/lang/Object;")
}

fn calls_arrays_copy(class: &Class<'_>, instruction: &Instruction<'_>) -> bool {
    let index = instruction.index().filter(|_| instruction.is_invoke());
    let called = index.and_then(|index| class.pool.method_ref(index).ok());
    called.is_some_and(|[owner, name, descriptor]| is_arrays_copy(owner, name, descriptor))
}

impl Tracking<'_> {
    /// Whether this is `Unsafe.allocateInstance`. The method handle of a constructor also calls it, but runs the
    /// constructor afterwards, which counts the object.
    fn is_unsafe(&self, class: &Class<'_>, owner: &[u8], name: &[u8]) -> bool {
        owner == self.unsafe_class.as_bytes()
            && name == b"allocateInstance"
            && class.name != b"java/lang/invoke/DirectMethodHandle"
    }

    /// The code after an instruction that makes an object without a constructor.
    pub(super) fn hook_after(
        &self,
        class: &Class<'_>,
        edit: &mut MethodEdit<'_>,
        instruction: &Instruction<'_>,
        is_copy_of: bool,
    ) -> Option<Vec<u8>> {
        const REFERENCE: u8 = 2;
        let mut one =
            |name| Some([&[DUP][..], &invoke(edit, name, "(Ljava/lang/Object;)V")].concat());
        match instruction.opcode {
            NEWARRAY | ANEWARRAY if is_copy_of => None,
            NEWARRAY | ANEWARRAY => {
                let kind = match instruction.opcode {
                    NEWARRAY => *instruction.bytes.get(1)?,
                    _ => REFERENCE,
                };
                let hook = invoke(edit, "array", "(Ljava/lang/Object;II)V");
                Some([&[DUP, DUP, ARRAYLENGTH, BIPUSH, kind][..], &hook].concat())
            }
            MULTIANEWARRAY => one("nested"),
            _ => {
                let [owner, name, descriptor] = class.pool.method_ref(instruction.index()?).ok()?;
                let is_clone = name == b"clone"
                    && descriptor == b"()Ljava/lang/Object;"
                    && (owner == b"java/lang/Object" || owner.first() == Some(&b'['));
                let in_array = class.name == b"java/lang/reflect/Array" && owner == class.name;
                let is_copy = is_clone || is_arrays_copy(owner, name, descriptor);
                if is_copy || self.is_unsafe(class, owner, name) {
                    one("made")
                } else if in_array && name == b"newArray" {
                    one("newArray")
                } else if in_array && name == b"multiNewArray" {
                    one("nested")
                } else {
                    if is_copy_of && owner == b"java/lang/reflect/Array" {
                        let mute = invoke(edit, "muteNewArray", "()V");
                        edit.insert(instruction.pc, Place::Before, &mute);
                    }
                    None
                }
            }
        }
    }
}

/// Offsets of the returns.
fn returns(edit: &MethodEdit<'_>) -> Vec<usize> {
    edit.instructions()
        .iter()
        .filter(|i| i.is_return())
        .map(|i| i.pc)
        .collect()
}

/// A call of a tracker method.
pub(super) fn invoke(edit: &mut MethodEdit<'_>, name: &str, descriptor: &str) -> [u8; 3] {
    let [high, low] = edit
        .pool
        .method_ref(TRACKER, name, descriptor)
        .to_be_bytes();
    [INVOKESTATIC, high, low]
}

/// Pushes a number, without a constant of the class if possible.
pub(super) fn push(edit: &mut MethodEdit<'_>, number: u32) -> Vec<u8> {
    let [.., high, low] = number.to_be_bytes();
    match number {
        0..=5 => vec![ICONST_0 + low],
        6..=0x7f => vec![BIPUSH, low],
        0x80..=0x7fff => vec![SIPUSH, high, low],
        _ => {
            let [high, low] = edit.pool.integer(number.cast_signed()).to_be_bytes();
            vec![LDC_W, high, low]
        }
    }
}

/// A load or store of a local variable, in the short form if it fits.
pub(super) fn local(opcode: u8, slot: u16) -> Vec<u8> {
    match u8::try_from(slot) {
        Ok(slot) => vec![opcode, slot],
        Err(_) => {
            let [high, low] = slot.to_be_bytes();
            vec![WIDE, opcode, high, low]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_vm_calls_by_itself_is_known() {
        let check = |class: &str, method: &str, expected| {
            let descriptor = b"(Ljava/lang/String;)Ljava/lang/Class;";
            let found = upcall(class.as_bytes(), method.as_bytes(), descriptor);
            assert_eq!(found, expected, "{class}.{method}");
        };
        check("Main", "<clinit>", Some(Upcall::Once));
        check("Main$Loader", "loadClass", Some(Upcall::Often));
        let natives = "java/lang/invoke/MethodHandleNatives";
        check(natives, "linkCallSite", Some(Upcall::Often));
        check(natives, "findMethodHandleType", Some(Upcall::Often));
        check(natives, "refKindName", None);
        check("Main", "linkCallSite", None);
        assert_eq!(upcall(b"Main", b"loadClass", b"()V"), None);
    }

    #[test]
    fn what_runs_while_the_current_thread_changes_is_left_alone() {
        let check = |class: &str, method: &str, expected| {
            let found = runs_in_transition(class.as_bytes(), method.as_bytes());
            assert_eq!(found, expected, "{class}.{method}");
        };
        check("jdk/internal/misc/Unsafe", "compareAndSetBoolean", true);
        check(
            "jdk/internal/misc/Unsafe",
            "allocateUninitializedArray",
            false,
        );
        check("java/lang/System$2", "setContinuation", true);
        check("java/lang/System$2", "newStringUTF8NoRepl", false);
        check("java/lang/Thread", "setInterrupt", true);
        check("java/lang/Thread", "start", false);
        check("Main", "compareAndSetBoolean", false);
    }

    #[test]
    fn what_is_not_small_is_too_large_to_be_inlined() {
        let old = include_bytes!("../../tracker/HprofTracker.class");
        let lens = |bytes: &[u8]| -> Vec<Option<usize>> {
            let class = Class::parse(bytes).expect("a class file");
            let code = class.methods.iter().map(|method| method.code.as_ref());
            code.map(|code| Some(code?.bytes.len())).collect()
        };
        let mut calls = Tracking {
            numbers: &Numbers::default(),
            sites: Sites { first: 0, most: 0 },
            next_site: 0,
            allocations: false,
            stacks_sampled: false,
            calls: true,
            unsafe_class: "sun/misc/Unsafe",
            allocation_free: OnceCell::new(),
        };
        let patched = classfile::patch(old, &mut calls)
            .expect("a class file")
            .expect("changed");
        // The code of every method: it loads its number and stores a local variable at its beginning, and loads it at
        // its only return.
        const LEAST: usize = 3 + 3 + 2 + 2 + 3;
        let (mut small, mut made_large) = (0, 0);
        for (old, new) in lens(old).into_iter().zip(lens(&patched.bytes)) {
            let (Some(old), Some(new)) = (old, new) else {
                continue;
            };
            if new <= SMALL {
                small += 1;
            } else {
                assert!(
                    old + LEAST > SMALL - LEAST && new >= TOO_LARGE,
                    "{old} {new}"
                );
                made_large += usize::from(new == TOO_LARGE);
            }
        }
        assert!(small > 5 && made_large > 20, "{small} {made_large}");
    }

    #[test]
    fn anonymous_classes_and_the_tracker_are_left_alone() {
        let check = |name, expected| assert_eq!(is_eligible(name), expected, "{name}");
        check("", false);
        check(TRACKER, false);
        check("java/lang/VirtualThread", false);
        check("java/lang/Thread", true);
        check("Main", true);
    }
}
