//! The collection: mark, free, arrange in order.

use std::collections::{BTreeMap, HashSet};

use vmpi::GcKind;

use super::MarkCompact;
use crate::collector::Order;
use crate::core::{Core, VM_THREAD};
use crate::object::ObjIdx;
use crate::space::Space;

impl MarkCompact {
    pub(super) fn mark_and_compact(&mut self, core: &mut Core<'_>) {
        core.gc_start(GcKind::Full);
        for at in core.unreachable() {
            core.free(VM_THREAD, at);
        }
        let mut order = core.in_arena(self.space.arena);
        match self.order {
            Order::Sliding => {}
            Order::Arbitrary => order.sort_by_key(|at| {
                let object = core.objects.get(*at);
                (std::cmp::Reverse(object.size), object.address)
            }),
            Order::Linearizing => order = depth_first(core),
        }
        lay_down(core, &mut self.space, &order);
        core.gc_finish(&[&self.space]);
    }
}

/// Live objects, each followed by the objects that it refers to.
fn depth_first(core: &Core<'_>) -> Vec<ObjIdx> {
    let mut order = Vec::new();
    let mut seen = HashSet::new();
    let mut stack: Vec<_> = core.roots().into_iter().rev().collect();
    while let Some(at) = stack.pop() {
        if seen.insert(at) {
            order.push(at);
            stack.extend(core.objects.get(at).slots.iter().rev().flatten());
        }
    }
    order
}

/// Moves all objects of a space to its beginning, in this order. An id may be reused only after it has ended, and a
/// copy must not overwrite an object that has not moved yet. So every object that overlaps another object's new
/// position first moves to scratch addresses after the space.
pub(crate) fn lay_down(core: &mut Core<'_>, space: &mut Space, order: &[ObjIdx]) {
    let arena = space.arena;
    let mut waiting: BTreeMap<u64, ObjIdx> = BTreeMap::new();
    for at in order {
        waiting.insert(core.objects.get(*at).address, *at);
    }
    let mut scratch = space.scratch();
    let mut target = space.base();
    for at in order {
        let object = core.objects.get(*at);
        let (address, size) = (object.address, object.size);
        waiting.remove(&address);
        let end = target + size;
        // At most one object begins before the position and overlaps it.
        while let Some((&start, &blocker)) = waiting.range(..end).next_back() {
            let blocker_size = core.objects.get(blocker).size;
            if start + blocker_size <= target {
                break;
            }
            waiting.remove(&start);
            core.move_to(blocker, arena, scratch);
            waiting.insert(scratch, blocker);
            scratch += blocker_size;
        }
        if address != target {
            core.move_to(*at, arena, target);
        }
        target = end;
    }
    space.fill(target - space.base());
}
