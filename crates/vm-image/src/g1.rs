//! The regions of the G1 collector.

use crate::damage::Damage;
use crate::fault::Fault;
use crate::heap::{Space, space};
use crate::memory::Address;
use crate::vm::Vm;

/// The most regions of a heap.
const MOST_REGIONS: u64 = 1 << 22;

/// All regions with objects. An object larger than a region is one space, with all regions that it covers.
pub(crate) fn spaces(vm: &Vm<'_>, heap: Address, damage: &mut Damage) -> Result<Vec<Space>, Fault> {
    let what = "the table of regions";
    let regions = vm
        .tables
        .offset(&["HeapRegionManager._regions", "G1HeapRegionManager._regions"])?;
    let table = heap
        .wrapping_add(vm.tables.offset(&["G1CollectedHeap._hrm"])?)
        .wrapping_add(regions);
    let base = table.wrapping_add(vm.tables.offset(&["G1HeapRegionTable._base"])?);
    let len = table.wrapping_add(vm.tables.offset(&["G1HeapRegionTable._length"])?);
    let (Some(base), Some(len)) = (vm.memory.pointer(base), vm.memory.u64(len)) else {
        return Err(Fault::Senseless { what });
    };
    // In JDK 8 and 11 the bounds are in superclasses of a region, for which only the offsets within these types are
    // exported; all of them begin where the region begins.
    let bottom = [
        "HeapRegion._bottom",
        "G1HeapRegion._bottom",
        "Space._bottom",
    ];
    let top = [
        "HeapRegion._top",
        "G1HeapRegion._top",
        "G1ContiguousSpace._top",
        "G1OffsetTableContigSpace._top",
    ];
    let mut spaces: Vec<Space> = Vec::new();
    for i in 0..len.min(MOST_REGIONS) {
        let Some(region) = vm.memory.u64(base.wrapping_add(i * 8)) else {
            damage.count("the table of regions is broken", base.wrapping_add(i * 8));
            break;
        };
        // The memory of this region was never used.
        if region == 0 {
            continue;
        }
        let found = space(vm, region, &bottom, &top);
        let Some(found) = found.ok().filter(|found| found.from <= found.to) else {
            damage.count("a region cannot be read", region);
            continue;
        };
        match spaces.last_mut() {
            Some(last) if continues(vm, region) && last.to == found.from => last.to = found.to,
            _ => spaces.push(found),
        }
    }
    Ok(spaces)
}

/// Whether a large object of an earlier region covers this region.
fn continues(vm: &Vm<'_>, region: Address) -> bool {
    let either = |rest: &str| {
        let [new, old] = [format!("G1{rest}"), rest.to_owned()];
        vm.tables.find(&new).or_else(|| vm.tables.find(&old))
    };
    let constant = |rest: &str| {
        let [new, old] = [format!("G1{rest}"), rest.to_owned()];
        vm.tables
            .constant(&new)
            .or_else(|| vm.tables.constant(&old))
    };
    let tag = || {
        let at = region
            .wrapping_add(either("HeapRegion._type")?)
            .wrapping_add(either("HeapRegionType._tag")?);
        let tag = vm.memory.u32(at)?;
        Some(i64::from(tag) == constant("HeapRegionType::ContinuesHumongousTag")?)
    };
    tag().unwrap_or(false)
}
