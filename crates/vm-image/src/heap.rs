//! The positions of objects: the spaces of the collector up to their tops, without the unused rest of the buffers in
//! which threads allocate.

use crate::damage::Damage;
use crate::fault::Fault;
use crate::g1;
use crate::marks::Marks;
use crate::memory::Address;
use crate::parallel;
use crate::serial;
use crate::shenandoah;
use crate::threads::Thread;
use crate::vm::Vm;

/// A part of the heap that is full of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Space {
    pub(crate) from: Address,
    pub(crate) to: Address,
}

/// Collectors, by the flag that selects them.
const COLLECTORS: [(&str, &str); 7] = [
    ("UseG1GC", "G1"),
    ("UseParallelGC", "Parallel"),
    ("UseSerialGC", "Serial"),
    ("UseZGC", "ZGC"),
    ("UseShenandoahGC", "Shenandoah"),
    ("UseConcMarkSweepGC", "Concurrent Mark Sweep"),
    ("UseEpsilonGC", "Epsilon"),
];

impl Space {
    /// The addresses in this space to which a word of a stack could refer, wide or compressed.
    pub(crate) fn referred(self, vm: &Vm<'_>, word: u64) -> impl Iterator<Item = Address> {
        let narrow = [word as u32, (word >> 32) as u32].map(|half| vm.widen(half));
        let alignment = vm.alignment;
        let all = [word, narrow[0], narrow[1]].into_iter();
        all.filter(move |at| self.from <= *at && *at < self.to && at.is_multiple_of(alignment))
    }
}

/// The heap of a VM.
#[derive(Debug)]
pub(crate) struct Heap {
    pub(crate) collector: &'static str,
    /// The range of addresses that objects can have.
    pub(crate) reserved: Space,
    spaces: Vec<Space>,
    /// The marks of the spaces in which only marked objects exist.
    pub(crate) marks: Option<Marks>,
}

impl Heap {
    /// The name of the VM's collector, if it is supported.
    pub(crate) fn collector(vm: &Vm<'_>) -> Result<&'static str, Fault> {
        let used = COLLECTORS.iter().find(|(flag, _)| vm.is_set(flag));
        let collector = used.map_or("an unknown collector", |(_, name)| *name);
        match collector {
            "G1" | "Parallel" | "Serial" | "Shenandoah" => Ok(collector),
            _ => Err(Fault::Collector { collector }),
        }
    }

    /// Finds the heap. An unsupported collector and a collection in progress are faults.
    pub(crate) fn read(vm: &Vm<'_>, damage: &mut Damage) -> Result<Heap, Fault> {
        let what = "the heap";
        let collector = Heap::collector(vm)?;
        let heap = vm.tables.address(&["Universe._collectedHeap"])?;
        let heap = vm.memory.pointer(heap).ok_or(Fault::Senseless { what })?;
        let field = |names: &[&str]| Ok::<_, Fault>(heap.wrapping_add(vm.tables.offset(names)?));
        let active = [
            "CollectedHeap._is_stw_gc_active",
            "CollectedHeap._is_gc_active",
        ];
        match vm.memory.u8(field(&active)?) {
            Some(0) => {}
            Some(1) => return Err(Fault::InCollection),
            _ => return Err(Fault::Senseless { what }),
        }
        let reserved = field(&["CollectedHeap._reserved"])?;
        let start = vm.tables.offset(&["MemRegion._start"])?;
        let words = vm.tables.offset(&["MemRegion._word_size"])?;
        let start = vm.memory.pointer(reserved.wrapping_add(start));
        let words = vm.memory.u64(reserved.wrapping_add(words));
        let end = || start?.checked_add(words?.checked_mul(8)?);
        let (Some(from), Some(to)) = (start, end()) else {
            return Err(Fault::Senseless { what });
        };
        let reserved = Space { from, to };
        let mut marks = None;
        let mut found = match collector {
            "G1" => {
                let (spaces, found) = g1::spaces(vm, heap, reserved, damage)?;
                marks = found;
                spaces
            }
            "Parallel" => parallel::spaces(vm)?,
            "Shenandoah" => shenandoah::spaces(vm, heap, damage)?,
            _ => serial::spaces(vm, heap)?,
        };
        found.retain(|space| {
            let aligned = space.from.is_multiple_of(8) && space.to.is_multiple_of(8);
            let inside = from <= space.from && space.from <= space.to && space.to <= to;
            if !(aligned && inside) {
                damage.count("a part of the heap lies outside of it", space.from);
            }
            aligned && inside && space.from < space.to
        });
        found.sort_unstable();
        // A humongous object of JDK 8 is one space, and so are the regions that it covers.
        let mut spaces: Vec<Space> = Vec::new();
        for space in found {
            match spaces.last() {
                Some(last) if space.from < last.to => {}
                _ => spaces.push(space),
            }
        }
        Ok(Heap {
            collector,
            reserved,
            spaces,
            marks,
        })
    }

    /// The parts in which objects are adjacent, split where threads allocate: an object that is incomplete cannot hide
    /// the objects after it.
    pub(crate) fn pieces<'t>(&self, threads: impl Iterator<Item = &'t Thread>) -> Vec<Space> {
        let mut buffers: Vec<_> = threads.filter_map(|thread| thread.buffer).collect();
        buffers.sort_unstable_by_key(|buffer| buffer.start);
        let mut pieces = Vec::new();
        for space in &self.spaces {
            let mut from = space.from;
            let begin = buffers.partition_point(|buffer| buffer.start < space.from);
            for buffer in buffers[begin..].iter().take_while(|b| b.start < space.to) {
                if buffer.start < from {
                    continue;
                }
                let (top, end) = (buffer.top.min(space.to), buffer.end.min(space.to));
                for (from, to) in [(from, buffer.start), (buffer.start, top)] {
                    if from < to {
                        pieces.push(Space { from, to });
                    }
                }
                from = end;
            }
            if from < space.to {
                pieces.push(Space { from, to: space.to });
            }
        }
        pieces
    }
}

/// A space whose bounds are two fields of a structure.
pub(crate) fn space(
    vm: &Vm<'_>,
    structure: Address,
    bottom: &[&str],
    top: &[&str],
) -> Result<Space, Fault> {
    let word = |names: &[&str]| {
        let at = structure.wrapping_add(vm.tables.offset(names)?);
        let what = "a part of the heap";
        vm.memory.u64(at).ok_or(Fault::Senseless { what })
    };
    Ok(Space {
        from: word(bottom)?,
        to: word(top)?,
    })
}

/// The structure that a field of another one points to.
pub(crate) fn follow(vm: &Vm<'_>, structure: Address, names: &[&str]) -> Result<Address, Fault> {
    let at = structure.wrapping_add(vm.tables.offset(names)?);
    let what = "a part of the heap";
    vm.memory.pointer(at).ok_or(Fault::Senseless { what })
}

#[cfg(test)]
mod tests {
    use super::{Heap, Space};
    use crate::threads::{Buffer, Thread};

    #[test]
    fn unused_ends_of_buffers_are_no_part_of_the_heap() {
        let heap = Heap {
            collector: "Serial",
            reserved: Space { from: 0, to: 1000 },
            spaces: vec![Space { from: 100, to: 200 }, Space { from: 300, to: 400 }],
            marks: None,
        };
        let thread = |start, top, end| Thread {
            address: 0,
            object: 0,
            id: None,
            stack: None,
            last_java_sp: None,
            buffer: Some(Buffer { start, top, end }),
        };
        let threads = [
            thread(340, 360, 420),
            thread(120, 140, 150),
            // Invalid: inside of another one, and outside of all spaces.
            thread(130, 135, 150),
            thread(220, 230, 240),
            thread(150, 150, 160),
        ];
        let pieces: Vec<_> = heap
            .pieces(threads.iter())
            .iter()
            .map(|p| (p.from, p.to))
            .collect();
        assert_eq!(
            pieces,
            [(100, 120), (120, 140), (160, 200), (300, 340), (340, 360)]
        );
    }
}
