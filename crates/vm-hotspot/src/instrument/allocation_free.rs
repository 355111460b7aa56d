//! Which methods of a class neither allocate nor call code that may: they need no calling context, and neither do their
//! callers for such a call.
//!
//! A call is followed if it can only reach one method of the same class (a static, private or final one), or a method
//! of the platform that is known. Exceptions that the VM itself throws, and classes that it loads or initializes, are
//! not considered; the context is not kept for them in methods without calls, either.

use std::collections::HashMap;

use classfile::instruction::{
    ANEWARRAY, INVOKESPECIAL, INVOKESTATIC, INVOKEVIRTUAL, MULTIANEWARRAY, NEW, NEWARRAY,
};
use classfile::{Class, Instruction, Instructions, Method};

/// Whether an instruction makes objects or may run code that does.
pub(super) fn allocates(instruction: &Instruction<'_>) -> bool {
    let is_array = matches!(instruction.opcode, NEWARRAY | ANEWARRAY | MULTIANEWARRAY);
    is_array || instruction.is_invoke()
}

const PRIVATE: u16 = 0x0002;
const STATIC: u16 = 0x0008;
const FINAL: u16 = 0x0010;

/// The calls of one class that do not allocate, by the position of the calling method.
#[derive(Debug)]
pub struct AllocationFree {
    methods: Vec<Calls>,
    /// Whether a method is allocation-free.
    free: Vec<bool>,
}

/// What the code of a method may reach.
#[derive(Debug, Default)]
struct Calls {
    /// Memory may be allocated by its own instructions, or by calls that are not followed.
    allocates: bool,
    /// The offsets of calls of known methods of the platform, ascending.
    known: Vec<usize>,
    /// The offsets of calls of methods of the class, ascending, and the positions of these methods.
    own: Vec<(usize, usize)>,
}

impl AllocationFree {
    /// Finds these methods and calls.
    pub(crate) fn of(class: &Class<'_>) -> Self {
        let by_name: ByName<'_> = class
            .methods
            .iter()
            .map(|method| ((method.name, method.descriptor), method.index))
            .collect();
        let methods = class.methods.iter();
        let methods: Vec<Calls> = methods
            .map(|method| calls(class, method, &by_name))
            .collect();
        let mut free: Vec<bool> = methods.iter().map(|calls| !calls.allocates).collect();
        let mut callers = vec![Vec::new(); methods.len()];
        for (index, calls) in methods.iter().enumerate() {
            calls
                .own
                .iter()
                .for_each(|(_, called)| callers[*called].push(index));
        }
        // Recursion is free unless something else allocates: the callers of what is not free are not free.
        let mut left: Vec<usize> = (0..methods.len()).filter(|index| !free[*index]).collect();
        while let Some(index) = left.pop() {
            for caller in &callers[index] {
                if std::mem::take(&mut free[*caller]) {
                    left.push(*caller);
                }
            }
        }
        Self { methods, free }
    }

    /// Whether the method at this position is allocation-free.
    pub(crate) fn has(&self, index: usize) -> bool {
        self.free.get(index).copied().unwrap_or(false)
    }

    /// Whether the instruction at this offset of the method calls an allocation-free one.
    pub(crate) fn is_call(&self, index: usize, pc: usize) -> bool {
        self.methods.get(index).is_some_and(|calls| {
            let own = calls.own.binary_search_by_key(&pc, |own| own.0);
            own.is_ok_and(|at| self.free[calls.own[at].1]) || calls.known.binary_search(&pc).is_ok()
        })
    }
}

type ByName<'a> = HashMap<(&'a [u8], &'a [u8]), usize>;

fn calls(class: &Class<'_>, method: &Method<'_>, by_name: &ByName<'_>) -> Calls {
    let mut calls = Calls::default();
    let Some(code) = &method.code else {
        calls.allocates = true;
        return calls;
    };
    for instruction in Instructions::new(code.bytes) {
        let Ok(instruction) = instruction else {
            calls.allocates = true;
            break;
        };
        if !allocates(&instruction) && instruction.opcode != NEW {
            continue;
        }
        match callee(class, &instruction, by_name) {
            Callee::Known => calls.known.push(instruction.pc),
            Callee::Own(index) => calls.own.push((instruction.pc, index)),
            Callee::Unknown => calls.allocates = true,
        }
    }
    calls
}

enum Callee {
    /// A method of the platform that does not allocate.
    Known,
    /// A method of the class that cannot be overridden.
    Own(usize),
    Unknown,
}

fn callee(class: &Class<'_>, call: &Instruction<'_>, by_name: &ByName<'_>) -> Callee {
    if !matches!(call.opcode, INVOKESTATIC | INVOKESPECIAL | INVOKEVIRTUAL) {
        return Callee::Unknown;
    }
    let called = call.index().map(|index| class.pool.method_ref(index));
    let Some(Ok([owner, name, descriptor])) = called else {
        return Callee::Unknown;
    };
    if is_known(owner, name) {
        return Callee::Known;
    }
    let own = by_name
        .get(&(name, descriptor))
        .filter(|_| owner == class.name);
    let fixed = |index: &&usize| {
        let access = class.methods[**index].access | class.access & FINAL;
        call.opcode == INVOKESPECIAL || access & (STATIC | PRIVATE | FINAL) != 0
    };
    own.filter(fixed)
        .map_or(Callee::Unknown, |index| Callee::Own(*index))
}

/// Methods of the platform, none of which can be overridden, that allocate in no version from JDK 8 to 25.
fn is_known(owner: &[u8], name: &[u8]) -> bool {
    const ATOMIC: &[u8] = b"java/util/concurrent/atomic/Atomic";
    match owner {
        b"java/lang/Math" => matches!(name, b"abs" | b"max" | b"min"),
        b"java/lang/Integer" | b"java/lang/Long" => matches!(
            name,
            b"bitCount"
                | b"compare"
                | b"highestOneBit"
                | b"numberOfLeadingZeros"
                | b"numberOfTrailingZeros"
                | b"rotateLeft"
                | b"rotateRight"
                | b"signum"
        ),
        b"java/lang/String" => matches!(
            name,
            b"compareTo" | b"equals" | b"hashCode" | b"isEmpty" | b"length"
        ),
        b"sun/misc/Unsafe" | b"jdk/internal/misc/Unsafe" => {
            name != b"getUnsafe"
                && [&b"get"[..], b"put", b"compareAnd", b"weakCompareAnd"]
                    .iter()
                    .any(|prefix| name.starts_with(prefix))
        }
        _ => {
            let kind = owner.strip_prefix(ATOMIC);
            // Not those of AtomicBoolean: from JDK 9 on, their first use links a VarHandle, which allocates.
            let counts = kind.is_some_and(|kind| matches!(kind, b"Integer" | b"Long"));
            counts
                && matches!(
                    name,
                    b"get" | b"set" | b"compareAndSet" | b"getAndIncrement"
                )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_free_if_all_that_they_call_is() {
        let class = Class::parse(include_bytes!("../../tracker/HprofTracker.class"));
        let class = class.expect("a class file");
        let free = AllocationFree::of(&class);
        let is_free = |name: &str| {
            let mut named = class.methods.iter().filter(|m| m.name == name.as_bytes());
            named.any(|method| free.has(method.index))
        };
        // No call; calls of free methods of the class, and of `bitCount`.
        for name in ["firstSlot", "isKnown", "settle", "slot"] {
            assert!(is_free(name), "{name}");
        }
        // Of the calls in `push`, only that of `firstSlot` is free.
        let mut methods = class.methods.iter();
        let push = methods.find(|m| m.name == b"push").expect("push");
        let code = push.code.as_ref().expect("its code").bytes;
        let calls = Instructions::new(code)
            .flatten()
            .filter(Instruction::is_invoke);
        let free_calls = calls.filter(|call| free.is_call(push.index, call.pc));
        assert_eq!(free_calls.count(), 1);
        // It makes an array; it calls a method that does; it calls native methods; it has no code.
        for name in ["growStarts", "push", "begun", "drain", "<clinit>"] {
            assert!(!is_free(name), "{name}");
        }
    }
}
