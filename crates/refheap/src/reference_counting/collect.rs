//! The optional cycle detector.

use std::collections::HashSet;

use vmpi::GcKind;

use super::ReferenceCounting;
use crate::core::{Core, VM_THREAD};
use crate::object::ObjIdx;

impl ReferenceCounting {
    /// Frees unreachable objects whose counts are not zero. Without the detector a collection does nothing.
    pub(super) fn detect_cycles(&mut self, core: &mut Core<'_>) {
        core.gc_start(GcKind::Full);
        if self.cycle_detector {
            let dead = core.unreachable();
            let doomed: HashSet<ObjIdx> = dead.iter().copied().collect();
            for at in dead {
                let object = core.free(VM_THREAD, at);
                self.space.release(object.address, object.size);
                for target in object.slots.into_iter().flatten() {
                    if !doomed.contains(&target) {
                        core.objects.get_mut(target).count -= 1;
                    }
                }
            }
        }
        core.gc_finish(&[&self.space]);
    }
}
