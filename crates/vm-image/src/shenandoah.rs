//! The regions of the Shenandoah collector, while it does not move objects.

use crate::damage::Damage;
use crate::fault::Fault;
use crate::heap::{Space, space};
use crate::memory::Address;
use crate::vm::Vm;

/// The most regions of a heap.
const MOST_REGIONS: u64 = 1 << 22;

/// What a region is used for.
enum Use {
    Objects,
    /// A large object of an earlier region covers it.
    Continued,
    /// Its objects are being moved.
    Moved,
    /// It is empty, or none of its objects is in use any more.
    Nothing,
}

/// All regions with objects. A large object and the regions that it covers are one space. While there are regions whose
/// objects are being moved, references may lead to both copies of an object: that is a fault.
pub(crate) fn spaces(vm: &Vm<'_>, heap: Address, damage: &mut Damage) -> Result<Vec<Space>, Fault> {
    let what = "the table of regions";
    let at = |field: &str| Ok::<_, Fault>(heap.wrapping_add(vm.tables.offset(&[field])?));
    let base = vm.memory.pointer(at("ShenandoahHeap._regions")?);
    let len = vm.memory.u64(at("ShenandoahHeap._num_regions")?);
    let (Some(base), Some(len)) = (base, len) else {
        return Err(Fault::Senseless { what });
    };
    let state = vm.tables.offset(&["ShenandoahHeapRegion._state"])?;
    let bottom = ["ShenandoahHeapRegion._bottom"];
    let top = ["ShenandoahHeapRegion._top"];
    let mut spaces: Vec<Space> = Vec::new();
    for i in 0..len.min(MOST_REGIONS) {
        let place = base.wrapping_add(i * 8);
        let Some(region) = vm.memory.pointer(place) else {
            damage.count("the table of regions is broken", place);
            break;
        };
        let used = vm.memory.u32(region.wrapping_add(state));
        let used = used.and_then(|state| use_of(vm, state));
        let found = space(vm, region, &bottom, &top).ok();
        let found = found.filter(|found| found.from <= found.to);
        let Some((used, found)) = used.zip(found) else {
            damage.count("a region cannot be read", region);
            continue;
        };
        match (used, spaces.last_mut()) {
            (Use::Moved, _) => return Err(Fault::InCollection),
            (Use::Nothing, _) => {}
            (Use::Continued, Some(last)) if last.to == found.from => last.to = found.to,
            (Use::Objects | Use::Continued, _) => spaces.push(found),
        }
    }
    Ok(spaces)
}

/// The use for the state of a region; `None` for an invalid state.
fn use_of(vm: &Vm<'_>, state: u32) -> Option<Use> {
    let is = |name: &str| {
        let name = format!("ShenandoahHeapRegion::_{name}");
        vm.tables.constant(&name) == Some(i64::from(state))
    };
    let any = |names: &[&str]| names.iter().any(|name| is(name));
    if any(&[
        "regular",
        "pinned",
        "humongous_start",
        "pinned_humongous_start",
    ]) {
        return Some(Use::Objects);
    }
    if any(&["humongous_cont"]) {
        return Some(Use::Continued);
    }
    if any(&["cset", "pinned_cset"]) {
        return Some(Use::Moved);
    }
    any(&["empty_uncommitted", "empty_committed", "trash"]).then_some(Use::Nothing)
}
