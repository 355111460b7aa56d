//! The collection: copy the objects that the scan reaches, and delete the rest.

use vmpi::GcKind;

use super::TwoSpaceCopying;
use crate::core::Core;

impl TwoSpaceCopying {
    pub(super) fn scavenge(&mut self, core: &mut Core<'_>) {
        core.gc_start(GcKind::Full);
        let reserve = 1 - self.current;
        for at in core.walk(core.roots(), |_| true) {
            let size = core.objects.get(at).size;
            let to = &mut self.spaces[reserve];
            let address = to.allocate(size).expect("the reserve is as large");
            core.move_to(at, to.arena, address);
        }
        let old = &mut self.spaces[self.current];
        core.arena_delete(old.arena);
        old.clear();
        core.arena_new(old);
        self.current = reserve;
        core.gc_finish(&self.spaces.iter().collect::<Vec<_>>());
    }
}
