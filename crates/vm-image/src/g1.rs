//! The regions of the G1 collector.

use crate::damage::Damage;
use crate::fault::Fault;
use crate::heap::{Space, space};
use crate::marks::{Marks, Source};
use crate::memory::Address;
use crate::vm::Vm;

/// The most regions of a heap.
const MOST_REGIONS: u64 = 1 << 22;

/// All regions with objects, and the marks of those in which only marked objects exist. An object larger than a region
/// is one space, with all regions that it covers. A region with marks is one space up to their end and one behind it.
pub(crate) fn spaces(
    vm: &Vm<'_>,
    heap: Address,
    reserved: Space,
    damage: &mut Damage,
) -> Result<(Vec<Space>, Option<Marks>), Fault> {
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
    let mut regions = Vec::new();
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
        regions.push((region, found));
    }
    let size = (reserved.to - reserved.from) / len.max(1);
    let mut marks = Source::find(vm, heap, reserved, (&regions, size));
    let mut spaces: Vec<Space> = Vec::new();
    for (region, found) in regions {
        let limit = marks.as_mut().filter(|_| is_old(vm, region));
        let limit = limit.and_then(|marks| {
            let limit = marks.limit(vm, region, found)?;
            marks.add(Space {
                from: found.from,
                to: limit,
            });
            Some(limit)
        });
        match (spaces.last_mut(), limit) {
            (_, Some(limit)) => {
                let Space { from, to } = found;
                spaces.extend([Space { from, to: limit }, Space { from: limit, to }]);
            }
            (Some(last), _) if continues(vm, region) && last.to == found.from => {
                last.to = found.to;
            }
            _ => spaces.push(found),
        }
    }
    Ok((spaces, marks.map(Source::finish)))
}

/// Whether a large object of an earlier region covers this region.
fn continues(vm: &Vm<'_>, region: Address) -> bool {
    let tag = tag(vm, region);
    tag.is_some() && tag == constant(vm, "ContinuesHumongousTag")
}

/// Whether the region has old objects that are smaller than a region, and that are not from an archive. JDK 8 does not
/// export the kinds of regions; there an object that is larger than a region is marked like any other one.
fn is_old(vm: &Vm<'_>, region: Address) -> bool {
    let tag = tag(vm, region);
    tag.is_none() || tag == constant(vm, "OldMask")
}

/// The kind of a region.
fn tag(vm: &Vm<'_>, region: Address) -> Option<i64> {
    let offset = |names| vm.tables.offset(names).ok();
    let kind = offset(&["G1HeapRegion._type", "HeapRegion._type"])?;
    let tag = offset(&["G1HeapRegionType._tag", "HeapRegionType._tag"])?;
    let at = region.wrapping_add(kind).wrapping_add(tag);
    vm.memory.u32(at).map(i64::from)
}

fn constant(vm: &Vm<'_>, name: &str) -> Option<i64> {
    let mut names = ["G1HeapRegionType", "HeapRegionType"].iter();
    names.find_map(|kind| vm.tables.constant(&format!("{kind}::{name}")))
}
