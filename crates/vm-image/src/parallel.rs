//! The spaces of the Parallel collector.

use crate::fault::Fault;
use crate::heap::{Space, follow, space};
use crate::memory::Address;
use crate::vm::Vm;

/// Eden, both survivor spaces, and the old generation.
pub(crate) fn spaces(vm: &Vm<'_>) -> Result<Vec<Space>, Fault> {
    let generation = |name: &str| {
        let at = vm.tables.address(&[name])?;
        let what = "a part of the heap";
        vm.memory.pointer(at).ok_or(Fault::Senseless { what })
    };
    let young = generation("ParallelScavengeHeap._young_gen")?;
    let old = generation("ParallelScavengeHeap._old_gen")?;
    let all = [
        follow(vm, young, &["PSYoungGen._eden_space"])?,
        follow(vm, young, &["PSYoungGen._from_space"])?,
        follow(vm, young, &["PSYoungGen._to_space"])?,
        follow(vm, old, &["PSOldGen._object_space"])?,
    ];
    let bottom = ["MutableSpace._bottom", "ImmutableSpace._bottom"];
    let bounds = |at: &Address| space(vm, *at, &bottom, &["MutableSpace._top"]);
    all.iter().map(bounds).collect()
}
