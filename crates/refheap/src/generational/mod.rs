//! Generational: one arena per generation; young ones are collected more often.
//!
//! Events: an `ARENA_NEW` for each generation; `OBJECT_ALLOC` in the youngest; in a collection of generations 0 to k
//! `OBJECT_MOVE` of live objects into the next older one, then `ARENA_DELETE` of the emptied arena, which frees its
//! unreachable objects without separate events, and `ARENA_NEW` with the same id. The oldest generation cannot promote
//! its objects: it is swept with `OBJECT_FREE` and compacted.
//!
//! With a promotion age above 1 the youngest generation also has two survivor arenas, one of them in reserve. An object
//! moves from one to the other until it reaches that age.

mod allocate;
mod collect;
#[cfg(test)]
mod golden;

use std::collections::BTreeSet;

use vmpi::GcKind;

use crate::collector::{Collector, Place, Write};
use crate::core::Core;
use crate::object::ObjIdx;
use crate::space::Space;

/// The collector's state.
#[derive(Debug)]
pub(crate) struct Generational {
    /// Youngest first.
    generations: Vec<Space>,
    /// In use and in reserve, if objects age in the youngest generation.
    survivors: Option<[Space; 2]>,
    promotion_age: u32,
    /// Objects that refer to a younger generation than their own.
    remembered: BTreeSet<ObjIdx>,
}

impl Generational {
    pub(crate) fn new(heap: u64, generations: u32, promotion_age: u32) -> Self {
        let names = |at: u32| match at {
            0 => "nursery".to_string(),
            at if at + 1 == generations => "old".to_string(),
            at => format!("generation {at}"),
        };
        // Each generation is four times as large as the one before it.
        let size = |at: u32| (heap >> (2 * (generations - 1 - at))).max(512);
        let spaces: Vec<_> = (0..generations)
            .map(|at| Space::new(at + 1, names(at), size(at)))
            .collect();
        let survivors = (promotion_age > 1).then(|| {
            let one = |number: u32| {
                Space::new(generations + number, format!("survivor {number}"), size(0))
            };
            [one(1), one(2)]
        });
        Self {
            generations: spaces,
            survivors,
            promotion_age,
            remembered: BTreeSet::new(),
        }
    }

    /// The generation of an arena; survivors belong to the youngest.
    fn generation(&self, arena: vmpi::ArenaId) -> usize {
        let at = self
            .generations
            .iter()
            .position(|space| space.arena == arena);
        at.unwrap_or(0)
    }
}

impl Collector for Generational {
    fn start(&mut self, core: &mut Core<'_>) {
        for space in self.spaces() {
            core.arena_new(space);
        }
    }

    fn allocate(&mut self, size: u64) -> Option<Place> {
        self.in_nursery(size)
    }

    fn collect(&mut self, core: &mut Core<'_>, kind: GcKind, need: u64) {
        self.collect_generations(core, kind, need);
    }

    fn stored(&mut self, core: &mut Core<'_>, write: Write) {
        self.remember(core, write);
    }

    fn spaces(&self) -> Vec<&Space> {
        let survivors = self.survivors.iter().flatten();
        self.generations.iter().chain(survivors).collect()
    }
}
