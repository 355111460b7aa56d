//! Allocation from the free list, and the counting.

use vmpi::EnvId;

use super::ReferenceCounting;
use crate::collector::{Place, Write};
use crate::core::Core;
use crate::object::ObjIdx;

impl ReferenceCounting {
    pub(super) fn first_fit(&mut self, size: u64) -> Option<Place> {
        let arena = self.space.arena;
        let address = self.space.allocate(size)?;
        Some(Place { arena, address })
    }

    /// Counts one reference more and one less. The new one is counted first, so that storing the same reference again
    /// frees nothing.
    pub(super) fn count(&mut self, core: &mut Core<'_>, write: Write) {
        if let Some(new) = write.new {
            core.objects.get_mut(new).count += 1;
        }
        if let Some(old) = write.old {
            self.drop_reference(core, write.env, old);
        }
    }

    /// Removes one reference and frees objects without references, without recursion, because a list may be long.
    fn drop_reference(&mut self, core: &mut Core<'_>, env: EnvId, from: ObjIdx) {
        let mut waiting = vec![from];
        while let Some(at) = waiting.pop() {
            let object = core.objects.get_mut(at);
            object.count -= 1;
            if object.count == 0 {
                let dead = core.free(env, at);
                self.space.release(dead.address, dead.size);
                waiting.extend(dead.slots.into_iter().rev().flatten());
            }
        }
    }
}
