//! The threads of a VM: their objects, stacks, local references, and the parts of the heap in which they allocate.

use crate::damage::Damage;
use crate::fault::Fault;
use crate::memory::Address;
use crate::vm::Vm;
use rustc_hash::FxHashSet;

/// The most threads of a VM.
const MOST_THREADS: usize = 1 << 20;
/// The most bytes of a stack that are read.
const LONGEST_STACK: u64 = 1 << 30;

/// The allocation buffer of a thread: objects are between `start` and `top`, and the rest to `end` is not used yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buffer {
    pub(crate) start: Address,
    pub(crate) top: Address,
    pub(crate) end: Address,
}

/// A thread that can run Java code.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    pub(crate) address: Address,
    /// Its `java.lang.Thread`, 0 for none.
    pub(crate) object: Address,
    /// Its id in the process's own namespace.
    pub(crate) id: Option<u32>,
    /// The bounds of the stack; the innermost frame is at the lower one.
    pub(crate) stack: Option<(Address, Address)>,
    /// The stack pointer of the Java frame that it last left; `None` in Java code and without Java frames.
    pub(crate) last_java_sp: Option<Address>,
    pub(crate) buffer: Option<Buffer>,
}

/// All threads.
pub(crate) fn read(vm: &Vm<'_>, damage: &mut Damage) -> Result<Vec<Thread>, Fault> {
    let addresses = list(vm, damage)?;
    Ok(addresses.iter().map(|at| thread(vm, *at)).collect())
}

fn thread(vm: &Vm<'_>, address: Address) -> Thread {
    let field = |name: &str| Some(address.wrapping_add(vm.tables.find(name)?));
    let osthread = ["JavaThread._osthread", "Thread._osthread"];
    let osthread = osthread.iter().find_map(|name| field(name));
    let id = || {
        let osthread = vm.memory.pointer(osthread?)?;
        let at = vm.tables.find("OSThread._thread_id")?;
        vm.memory.u32(osthread.wrapping_add(at))
    };
    let stack = || {
        let base = vm.memory.pointer(field("JavaThread._stack_base")?)?;
        let size = vm.memory.u64(field("JavaThread._stack_size")?)?;
        (size <= LONGEST_STACK).then_some((base.checked_sub(size)?, base))
    };
    let last_java_sp = || {
        let at = vm.tables.find("JavaFrameAnchor._last_Java_sp")?;
        vm.memory
            .pointer(field("JavaThread._anchor")?.wrapping_add(at))
    };
    Thread {
        address,
        object: vm
            .reference_of(address, "JavaThread._threadObj")
            .unwrap_or(0),
        id: id(),
        stack: stack(),
        last_java_sp: last_java_sp(),
        buffer: buffer(vm, address),
    }
}

fn list(vm: &Vm<'_>, damage: &mut Damage) -> Result<Vec<Address>, Fault> {
    let what = "the list of threads";
    if let Some(at) = vm.tables.find_static("ThreadsSMRSupport._java_thread_list") {
        let list = vm.memory.pointer(at).ok_or(Fault::Senseless { what })?;
        let len = vm.tables.offset(&["ThreadsList._length"])?;
        let array = vm.tables.offset(&["ThreadsList._threads"])?;
        let len = vm.memory.u32(list.wrapping_add(len));
        let array = vm.memory.u64(list.wrapping_add(array));
        let (Some(len), Some(array)) = (len, array) else {
            return Err(Fault::Senseless { what });
        };
        let len = (len as usize).min(MOST_THREADS) as u64;
        let threads = (0..len).map_while(|i| vm.memory.pointer(array.wrapping_add(i * 8)));
        let threads: Vec<Address> = threads.collect();
        if (threads.len() as u64) < len {
            damage.count("the list of threads is broken", array);
        }
        return Ok(threads);
    }
    let next = vm.tables.offset(&["JavaThread._next"])?;
    let head = vm.tables.address(&["Threads._thread_list"])?;
    let mut thread = vm.memory.pointer(head).ok_or(Fault::Senseless { what })?;
    let mut seen = FxHashSet::default();
    let mut all = Vec::new();
    while thread != 0 && all.len() < MOST_THREADS {
        if !thread.is_multiple_of(8) || !seen.insert(thread) {
            damage.count("the list of threads is broken", thread);
            break;
        }
        all.push(thread);
        thread = vm.memory.u64(thread.wrapping_add(next)).unwrap_or(0);
    }
    Ok(all)
}

/// The part of the heap in which a thread allocates.
fn buffer(vm: &Vm<'_>, thread: Address) -> Option<Buffer> {
    let tlab = thread.wrapping_add(vm.tables.find("Thread._tlab")?);
    let offset = |name: &str| vm.tables.find(&format!("ThreadLocalAllocBuffer.{name}"));
    let word = |offset: u64| vm.memory.pointer(tlab.wrapping_add(offset));
    let (start, top) = (word(offset("_start")?)?, word(offset("_top")?)?);
    let mut end = word(offset("_end")?)?;
    // From JDK 10 on `_end` may be before the actual end: the next allocation there is sampled. The actual end is
    // `_allocation_end`, which is not exported and is located between `_end` and `_desired_size`.
    if offset("_desired_size")? == offset("_end")? + 16 {
        end = end.max(word(offset("_end")? + 8)?);
    }
    // After the end there is space for a filler object and for prefetching.
    let words = |name: &str| {
        let at = vm.tables.find_static(name)?;
        vm.memory.u32(at).filter(|words| *words < 1 << 16)
    };
    let names = [
        "ThreadLocalAllocBuffer._reserve_for_allocation_prefetch",
        "Abstract_VM_Version._reserve_for_allocation_prefetch",
        "CollectedHeap._lab_alignment_reserve",
    ];
    let reserve = names.iter().filter_map(|name| words(name)).max();
    let filler = (vm.length_offset() as u64 + 4).next_multiple_of(8);
    let reserve = (u64::from(reserve.unwrap_or(0)) * 8).max(filler);
    let end = end.checked_add(reserve.next_multiple_of(vm.alignment))?;
    (start <= top && top <= end).then_some(Buffer { start, top, end })
}
