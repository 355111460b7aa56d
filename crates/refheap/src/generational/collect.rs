//! The collection of the k youngest generations.

use std::collections::HashSet;

use vmpi::GcKind;

use super::Generational;
use crate::core::{Core, VM_THREAD};
use crate::mark_compact::lay_down;
use crate::object::ObjIdx;

impl Generational {
    /// Collects as few generations as possible: for a young collection those after which the survivors fit, for a full
    /// one all.
    pub(super) fn collect_generations(&mut self, core: &mut Core<'_>, kind: GcKind, need: u64) {
        let last = self.generations.len() - 1;
        // A large object needs space in the oldest generation.
        let waits_for_old = need > self.generations[0].capacity() / 2;
        let full = kind == GcKind::Full || waits_for_old;
        let first = if full { last } else { 0 };
        let oldest = (first..last)
            .find(|k| self.survivors_fit(core, *k))
            .unwrap_or(last);
        let live = self.live(core, oldest);
        if oldest == last && !self.oldest_fits(core, &live) {
            // Nothing can be promoted. Sweeping only the oldest generation could leave unreachable objects elsewhere
            // that refer to freed ones.
            core.gc_start(GcKind::Full);
            self.finish(core);
            return;
        }
        core.gc_start(if oldest == last {
            GcKind::Full
        } else {
            GcKind::Young
        });
        if oldest == last {
            self.sweep_oldest(core, &live);
        }
        for from in (0..=oldest.min(last - 1)).rev() {
            self.promote(core, from, &live);
        }
        self.remember_again(core);
        self.finish(core);
    }

    fn finish(&self, core: &mut Core<'_>) {
        let survivors = self.survivors.iter().flatten();
        let spaces: Vec<_> = self.generations.iter().chain(survivors).collect();
        core.gc_finish(&spaces);
    }

    /// Live objects of generations 0 to `oldest`: reachable from roots or from remembered objects of older generations.
    fn live(&self, core: &Core<'_>, oldest: usize) -> HashSet<ObjIdx> {
        let inside = |at: ObjIdx| self.generation(core.objects.get(at).arena) <= oldest;
        let mut from = core.roots();
        for holder in self.remembered.iter().filter(|at| !inside(**at)) {
            from.extend(core.objects.get(*holder).slots.iter().flatten());
        }
        // Roots in older generations are not walked, because their references to younger objects are in the remembered
        // set.
        let found = core.walk(from, |object| self.generation(object.arena) <= oldest);
        found.into_iter().collect()
    }

    /// Whether the survivors of a collection of generations 0 to `k` fit.
    fn survivors_fit(&self, core: &Core<'_>, k: usize) -> bool {
        let bytes = self.live_bytes(core, &self.live(core, k));
        (0..=k).all(|at| {
            let room = if at == k {
                self.generations[at + 1].room()
            } else {
                self.generations[at + 1].capacity()
            };
            bytes[at] <= room
        })
    }

    /// Whether the oldest generation, after compaction, has space for the objects promoted from the next younger one,
    /// and so on for the younger ones.
    fn oldest_fits(&self, core: &Core<'_>, live: &HashSet<ObjIdx>) -> bool {
        let bytes = self.live_bytes(core, live);
        let last = self.generations.len() - 1;
        let top = bytes[last] + bytes[last - 1] <= self.generations[last].capacity();
        top && (0..last - 1).all(|at| bytes[at] <= self.generations[at + 1].capacity())
    }

    fn live_bytes(&self, core: &Core<'_>, live: &HashSet<ObjIdx>) -> Vec<u64> {
        let mut bytes = vec![0; self.generations.len()];
        for at in live {
            let object = core.objects.get(*at);
            bytes[self.generation(object.arena)] += object.size;
        }
        bytes
    }

    fn sweep_oldest(&mut self, core: &mut Core<'_>, live: &HashSet<ObjIdx>) {
        let last = self.generations.len() - 1;
        let arena = self.generations[last].arena;
        let (alive, dead): (Vec<_>, Vec<_>) = core
            .in_arena(arena)
            .into_iter()
            .partition(|at| live.contains(at));
        for at in dead {
            self.remembered.remove(&at);
            core.free(VM_THREAD, at);
        }
        lay_down(core, &mut self.generations[last], &alive);
    }

    /// Moves the live objects of a generation to the next one and empties it.
    fn promote(&mut self, core: &mut Core<'_>, from: usize, live: &HashSet<ObjIdx>) {
        let in_use = match &self.survivors {
            Some(survivors) if from == 0 => Some(survivors[0].arena),
            _ => None,
        };
        let arena = self.generations[from].arena;
        let mut all = core.in_arena(arena);
        all.extend(in_use.into_iter().flat_map(|arena| core.in_arena(arena)));
        for at in all {
            if !live.contains(&at) {
                self.remembered.remove(&at);
                continue;
            }
            let object = core.objects.get_mut(at);
            object.age += 1;
            let (age, size) = (object.age, object.size);
            let stays = (in_use.is_some() && age < self.promotion_age).then(|| {
                self.survivors
                    .as_mut()
                    .and_then(|both| both[1].allocate(size))
            });
            if let (Some(Some(address)), Some(survivors)) = (stays, &self.survivors) {
                core.move_to(at, survivors[1].arena, address);
            } else {
                let to = &mut self.generations[from + 1];
                let address = to.allocate(size).expect("room was counted before");
                core.objects.get_mut(at).age = 0;
                core.move_to(at, to.arena, address);
            }
        }
        let space = &mut self.generations[from];
        core.arena_delete(arena);
        space.clear();
        core.arena_new(space);
        if let (Some(_), Some(survivors)) = (in_use, &mut self.survivors) {
            core.arena_delete(survivors[0].arena);
            survivors[0].clear();
            core.arena_new(&survivors[0]);
            survivors.swap(0, 1);
        }
    }

    /// Recomputes the remembered set, because objects have changed generations.
    fn remember_again(&mut self, core: &Core<'_>) {
        let generation = |at: ObjIdx| self.generation(core.objects.get(at).arena);
        self.remembered = core
            .objects
            .iter()
            .filter(|(at, object)| {
                let own = generation(*at);
                own > 0
                    && object
                        .slots
                        .iter()
                        .flatten()
                        .any(|to| generation(*to) < own)
            })
            .map(|(at, _)| at)
            .collect();
    }
}
