//! What some objects retain together: the sum over the objects that none of the others dominates.

use crate::pace::Pace;
use heap_graph::{Dominator, Heap, HeapError, ObjIdx};
use hprof::Bytes;
use rustc_hash::{FxHashMap, FxHashSet};

/// One in this many objects on the way up is cached with its result: caching all of them would take more memory than
/// the heap's index if the chain is a list of millions.
const REMEMBERED: u64 = 32;

/// For each of some objects, the nearest other one that dominates it.
pub(crate) struct Above(FxHashMap<ObjIdx, ObjIdx>);

impl Above {
    pub(crate) fn of(
        heap: &Heap,
        objects: &[ObjIdx],
        pace: &mut Pace<'_>,
    ) -> Result<Above, HeapError> {
        let all: FxHashSet<ObjIdx> = objects.iter().copied().collect();
        let mut nearest = FxHashMap::default();
        let mut known: FxHashMap<ObjIdx, Option<ObjIdx>> = FxHashMap::default();
        let mut way = Vec::new();
        for object in &all {
            way.clear();
            let mut at = *object;
            let found = loop {
                pace.step()?;
                let Dominator::Object(above) = heap.dominator(at) else {
                    break None;
                };
                if all.contains(&above) {
                    break Some(above);
                }
                if let Some(found) = known.get(&above) {
                    break *found;
                }
                if above.0.is_multiple_of(REMEMBERED) {
                    way.push(above);
                }
                at = above;
            };
            known.extend(way.iter().map(|passed| (*passed, found)));
            nearest.extend(found.map(|found| (*object, found)));
        }
        Ok(Above(nearest))
    }

    /// What all of the objects retain together; they occur once each.
    pub(crate) fn retained_by_all(&self, heap: &Heap, objects: &[ObjIdx]) -> Bytes {
        let outermost = objects.iter().filter(|object| !self.0.contains_key(object));
        Bytes(outermost.map(|object| heap.retained(*object).0).sum())
    }

    /// What some of the objects retain together; each counts once.
    pub(crate) fn retained(&self, heap: &Heap, some: impl Iterator<Item = ObjIdx>) -> Bytes {
        let some: FxHashSet<ObjIdx> = some.collect();
        let is_outermost = |object: &&ObjIdx| {
            let mut above = std::iter::successors(self.0.get(object), |above| self.0.get(above));
            !above.any(|above| some.contains(above))
        };
        let outermost = some.iter().filter(is_outermost);
        Bytes(outermost.map(|object| heap.retained(*object).0).sum())
    }
}
