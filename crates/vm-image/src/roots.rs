//! The roots, as far as the VM describes them: system classes, JNI references, threads, and the words of stacks.

use crate::damage::Damage;
use crate::dump::Place;
use crate::frames::Trace;
use crate::heap::Heap;
use crate::klass::{Classes, Shape};
use crate::memory::Address;
use crate::threads::Thread;
use crate::vm::Vm;
use hprof::{HeapTag, ObjectId, Root, Serial};
use rustc_hash::{FxHashMap, FxHashSet};

/// The most blocks of JNI references.
const MOST_BLOCKS: u64 = 1 << 20;
/// The most storages of references.
const STORAGES: usize = 32;
/// No frame.
pub(crate) const NO_FRAME: u32 = u32::MAX;
/// Bytes of a stack that are read at once.
const STACK_PIECE: usize = 1 << 20;

/// The kernel's data about a stopped thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers {
    /// The thread's id in the process's own namespace.
    pub thread: u32,
    /// The stack pointer.
    pub stack_pointer: Address,
    /// All registers of the processor.
    pub words: Vec<u64>,
}

impl Registers {
    /// The registers of a thread.
    pub(crate) fn of<'r>(all: &'r [Registers], thread: &Thread) -> Option<&'r Registers> {
        let id = thread.id?;
        all.iter().find(|one| one.thread == id)
    }
}

/// An object to which the stack of a parked virtual thread could refer.
pub(crate) fn of_parked(object: Address) -> Root {
    root(HeapTag::RootJavaFrame, object, 0, NO_FRAME, 0)
}

/// A root; whether there is an object at its address is not known yet.
fn root(kind: HeapTag, object: Address, thread: u32, frame: u32, reference: Address) -> Root {
    Root {
        kind,
        object: ObjectId(object),
        thread: Serial(thread),
        frame,
        reference: ObjectId(reference),
    }
}

/// All roots. The serial number of a thread is its index in `threads` plus one.
pub(crate) fn read(
    vm: &Vm<'_>,
    heap: &Heap,
    classes: &Classes,
    threads: &[(Thread, Trace)],
    place: &Place,
    damage: &mut Damage,
) -> Vec<Root> {
    let mut roots = system_classes(vm, classes);
    globals(vm, &mut roots, damage);
    variables(vm, heap, &mut roots);
    for (i, (thread, trace)) in threads.iter().enumerate() {
        let serial = i as u32 + 1;
        if thread.object != 0 {
            let kind = HeapTag::RootThreadObject;
            roots.push(root(kind, thread.object, serial, serial + 1, 0));
        }
        let handles = ["JavaThread._active_handles", "Thread._active_handles"];
        let handles = handles.iter().find_map(|name| vm.tables.find(name));
        let first = handles.and_then(|at| vm.memory.u64(thread.address.wrapping_add(at)));
        let mut add = |at: Address, object: Address| {
            roots.push(root(HeapTag::RootJniLocal, object, serial, NO_FRAME, at));
        };
        // JNI references of outer native methods are in the frames through which they called Java methods.
        for block in first.iter().chain(&trace.handles) {
            blocks(vm, *block, damage, &mut add);
        }
        let kind = HeapTag::RootJavaFrame;
        for (word, at) in stack_words(vm, heap, thread, place) {
            let frame = at.and_then(|at| trace.frame_at(at));
            roots.push(root(kind, word, serial, frame.unwrap_or(NO_FRAME), 0));
        }
    }
    roots
}

/// The classes of the loader that is never unloaded. Hidden classes without a loader have another loader's data, so
/// this one is found by that of `java.lang.Object`.
fn system_classes(vm: &Vm<'_>, classes: &Classes) -> Vec<Root> {
    let names = [
        "Klass._class_loader_data",
        "InstanceKlass._class_loader_data",
    ];
    let data = names.iter().find_map(|name| vm.tables.find(name));
    let loader = |klass: Address| vm.memory.u64(klass.wrapping_add(data?));
    let Some(system) = classes.object().and_then(|object| loader(object.klass)) else {
        return Vec::new();
    };
    let is_array = |shape| matches!(shape, Shape::References(_) | Shape::Primitives(..));
    let all = classes
        .all
        .iter()
        .filter(|class| class.is_in_dump() && !is_array(class.shape));
    let strong = all.filter(|class| loader(class.klass) == Some(system));
    strong
        .map(|class| root(HeapTag::RootStickyClass, class.mirror, 0, 0, 0))
        .collect()
}

/// JNI global references.
fn globals(vm: &Vm<'_>, roots: &mut Vec<Root>, damage: &mut Damage) {
    let field = "JNIHandles._global_handles";
    let Some(storage) = vm
        .tables
        .find_static(field)
        .and_then(|at| vm.memory.pointer(at))
    else {
        damage.count("the JNI global references cannot be found", 0);
        return;
    };
    let mut add = |at: Address, object: Address| {
        roots.push(root(HeapTag::RootJniGlobal, object, 0, 0, at));
    };
    if vm.tables.kind(field) == "JNIHandleBlock*" {
        blocks(vm, storage, damage, &mut add);
    } else if stored(vm, storage, &mut add).is_none() {
        damage.count("the JNI global references cannot be read", storage);
    }
    // From JDK 15 on the VM has a second storage for its own objects, which it also dumps as JNI global references. A
    // table of all storages, which is not exported, contains both.
    let all: Vec<(Address, u64)> = vm.variables().collect();
    let places = all
        .iter()
        .enumerate()
        .filter(|(_, (_, word))| *word == storage);
    let near =
        places.flat_map(|(i, _)| &all[i.saturating_sub(STORAGES)..(i + STORAGES).min(all.len())]);
    let is_of_vm = |at: Address| {
        let name = vm.memory.pointer(at).and_then(|at| vm.memory.u64(at));
        name.and_then(|at| vm.memory.text(at)).as_deref() == Some("VM Global")
    };
    if let Some((_, of_vm)) = near.copied().find(|(at, _)| is_of_vm(*at))
        && stored(vm, of_vm, &mut add).is_none()
    {
        damage.count("the global references of the VM cannot be read", of_vm);
    }
}

/// References in the variables of the VM. Up to JDK 14 they refer to the VM's own objects.
fn variables(vm: &Vm<'_>, heap: &Heap, roots: &mut Vec<Root>) {
    if vm.tables.kind("Universe._main_thread_group") != "oop" {
        return;
    }
    let inside = |word: u64| (heap.reserved.from..heap.reserved.to).contains(&word);
    let found = vm.variables().filter(|(_, word)| inside(*word));
    roots.extend(found.map(|(_, word)| root(HeapTag::RootUnknown, word, 0, 0, 0)));
}

/// References in a chain of blocks, which is the format of JNI local references (and of global ones in JDK 8).
fn blocks(
    vm: &Vm<'_>,
    mut block: Address,
    damage: &mut Damage,
    add: &mut dyn FnMut(Address, Address),
) {
    let offset = |name: &str| vm.tables.find(&format!("JNIHandleBlock.{name}"));
    let size = vm.tables.constant("JNIHandleBlock::block_size_in_oops");
    let (Some(handles), Some(top), Some(next), Some(size)) =
        (offset("_handles"), offset("_top"), offset("_next"), size)
    else {
        return;
    };
    let mut seen = FxHashSet::default();
    while block != 0 {
        if !block.is_multiple_of(8) || !seen.insert(block) {
            damage.count("a chain of JNI references is broken", block);
            return;
        }
        let Some(count) = vm.memory.i32(block.wrapping_add(top)) else {
            damage.count("a chain of JNI references is broken", block);
            return;
        };
        let count = i64::from(count).clamp(0, size.clamp(0, 1024));
        for i in 0..count as u64 {
            let at = block.wrapping_add(handles).wrapping_add(i * 8);
            // Free entries have a mark in the lower bits or do not refer to objects, which is detected later.
            let object = vm.memory.u64(at).filter(|object| object.is_multiple_of(8));
            if let Some(object) = object.filter(|object| *object != 0) {
                add(at, object);
            }
        }
        // Blocks after one that is not full are not in use.
        if count < size {
            return;
        }
        block = vm.memory.u64(block.wrapping_add(next)).unwrap_or(0);
    }
}

/// References in an `OopStorage` (JDK 10 and later), whose layout the VM does not describe. It begins with its name and
/// the array of its blocks. That array has its capacity, its length, a count of users, then pointers to blocks. A block
/// has 64 references, a bit for each that is in use, and the address of its storage, by which the VM itself recognizes
/// blocks and which is checked here.
fn stored(vm: &Vm<'_>, storage: Address, add: &mut dyn FnMut(Address, Address)) -> Option<()> {
    const DATA: u64 = 64 * 8;
    vm.memory.text(vm.memory.u64(storage)?)?;
    let array = vm.memory.pointer(storage.wrapping_add(8))?;
    let (capacity, len) = (vm.memory.u64(array)?, vm.memory.u64(array.wrapping_add(8))?);
    (len <= capacity && capacity <= MOST_BLOCKS).then_some(())?;
    for i in 0..len {
        let block = vm.memory.pointer(array.wrapping_add(24 + i * 8))?;
        let used = vm.memory.u64(block.wrapping_add(DATA))?;
        let owner = vm.memory.u64(block.wrapping_add(DATA + 8))?;
        (owner == storage).then_some(())?;
        for bit in (0..64).filter(|bit| used >> bit & 1 == 1) {
            let at = block.wrapping_add(bit * 8);
            match vm.memory.u64(at)? {
                0 => {}
                object => add(at, object),
            }
        }
    }
    Some(())
}

/// Words of a thread's stack and registers that could be references, wide or compressed. Each value is listed once,
/// with the innermost stack position that has it.
fn stack_words(
    vm: &Vm<'_>,
    heap: &Heap,
    thread: &Thread,
    place: &Place,
) -> Vec<(Address, Option<Address>)> {
    let registers = Registers::of(&place.registers, thread);
    let mut found = FxHashMap::default();
    let mut word = |word: u64, place: Option<Address>| {
        for address in heap.reserved.referred(vm, word) {
            found.entry(address).or_insert(place);
        }
    };
    for field in [
        "ThreadShadow._pending_exception",
        "JavaThread._exception_oop",
        "JavaThread._vm_result",
        "JavaThread._pending_async_exception",
    ] {
        let value = vm.tables.find(field);
        let value = value.and_then(|at| vm.memory.u64(thread.address.wrapping_add(at)));
        word(value.unwrap_or(0), None);
    }
    for value in registers.iter().flat_map(|registers| &registers.words) {
        word(*value, None);
    }
    if let Some((low, base)) = thread.stack {
        let pointer = match place.at_safepoint {
            true => Some(thread.last_java_sp.unwrap_or(base)),
            false => registers.map(|registers| registers.stack_pointer & !7),
        };
        let mut at = pointer
            .filter(|sp| (low..=base).contains(sp))
            .unwrap_or(low);
        let mut piece = vec![0; STACK_PIECE];
        while at < base {
            let len = ((base - at) as usize).min(piece.len());
            let there = vm.memory.direct().read(at, &mut piece[..len]) & !7;
            for (i, bytes) in piece[..there].as_chunks().0.iter().enumerate() {
                word(u64::from_le_bytes(*bytes), Some(at + i as u64 * 8));
            }
            at += there as u64;
            if there < len {
                // The guard pages of a stack cannot be read.
                let next = vm.memory.direct().next_readable(at + 1);
                at = next.map_or(base, |next| next.next_multiple_of(8));
            }
        }
    }
    let mut found: Vec<_> = found.into_iter().collect();
    found.sort_unstable();
    found
}
