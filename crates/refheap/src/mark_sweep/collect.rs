//! The collection: mark from the roots, free the rest.

use vmpi::GcKind;

use super::MarkSweep;
use crate::core::{Core, VM_THREAD};

impl MarkSweep {
    pub(super) fn mark_and_sweep(&mut self, core: &mut Core<'_>) {
        core.gc_start(GcKind::Full);
        for at in core.unreachable() {
            let dead = core.free(VM_THREAD, at);
            self.space.release(dead.address, dead.size);
        }
        core.gc_finish(&[&self.space]);
    }
}
