//! The spaces of the Serial collector.

use crate::fault::Fault;
use crate::heap::{Space, follow, space};
use crate::memory::Address;
use crate::vm::Vm;

/// Eden, both survivor spaces, and the old generation.
pub(crate) fn spaces(vm: &Vm<'_>, heap: Address) -> Result<Vec<Space>, Fault> {
    let (young, old) = if let Some(generations) = vm.tables.find("GenCollectedHeap._gens") {
        // JDK 8 has an array of two.
        let at = heap.wrapping_add(generations);
        let what = "a part of the heap";
        let generation = |i: u64| {
            vm.memory
                .pointer(at.wrapping_add(i * 8))
                .ok_or(Fault::Senseless { what })
        };
        (generation(0)?, generation(1)?)
    } else {
        (
            follow(
                vm,
                heap,
                &["SerialHeap._young_gen", "GenCollectedHeap._young_gen"],
            )?,
            follow(
                vm,
                heap,
                &["SerialHeap._old_gen", "GenCollectedHeap._old_gen"],
            )?,
        )
    };
    let old_space = [
        "TenuredGeneration._the_space",
        "OneContigSpaceCardGeneration._the_space",
    ];
    let all = [
        follow(vm, young, &["DefNewGeneration._eden_space"])?,
        follow(vm, young, &["DefNewGeneration._from_space"])?,
        follow(vm, young, &["DefNewGeneration._to_space"])?,
        follow(vm, old, &old_space)?,
    ];
    let bottom = ["ContiguousSpace._bottom", "Space._bottom"];
    let bounds = |at: &Address| space(vm, *at, &bottom, &["ContiguousSpace._top"]);
    all.iter().map(bounds).collect()
}
