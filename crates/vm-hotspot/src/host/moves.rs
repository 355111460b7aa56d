//! The order in which the moves of one collection are reported.

use rustc_hash::{FxHashMap, FxHashSet};
use vmpi::{ArenaId, Body, ObjectHandle, ObjectMove};

/// What a collection did to one tracked object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) from: u64,
    pub(crate) arena: ArenaId,
    /// 0 if it was freed.
    pub(crate) to: u64,
    pub(crate) new_arena: ArenaId,
}

/// Temporary ids that no object has, for objects that exchange addresses.
const NOWHERE: u64 = 1 << 63;

fn moved(from: u64, arena: ArenaId, to: u64, new_arena: ArenaId) -> Body {
    Body::ObjectMove(ObjectMove {
        object: ObjectHandle(from),
        arena,
        new_object: ObjectHandle(to),
        new_arena,
    })
}

/// Events for the changes of one collection: freed objects first, then moves, each to an address that no object has at
/// that moment.
pub(crate) fn in_order(changes: &[Change]) -> Vec<Body> {
    let mut bodies = Vec::with_capacity(changes.len());
    let mut by_place: FxHashMap<u64, Change> = FxHashMap::default();
    for change in changes {
        if change.to == 0 {
            let object = ObjectHandle(change.from);
            bodies.push(Body::ObjectFree { object });
        } else {
            by_place.insert(change.from, *change);
        }
    }
    let mut chain: Vec<Change> = Vec::new();
    let mut in_chain: FxHashSet<u64> = FxHashSet::default();
    for change in changes {
        let mut next = by_place.remove(&change.from);
        // The object at the target moves first.
        while let Some(change) = next {
            in_chain.insert(change.from);
            chain.push(change);
            next = by_place.remove(&change.to);
        }
        let Some(last) = chain.last_mut() else {
            continue;
        };
        let is_circle = last.to != last.from && in_chain.contains(&last.to);
        let end = (last.to, last.new_arena);
        if is_circle {
            (last.to, last.new_arena) = (NOWHERE | last.from, last.arena);
        }
        let aside = (last.to, last.new_arena);
        while let Some(change) = chain.pop() {
            let (from, to) = (change.from, change.to);
            bodies.push(moved(from, change.arena, to, change.new_arena));
        }
        if is_circle {
            bodies.push(moved(aside.0, aside.1, end.0, end.1));
        }
        in_chain.clear();
    }
    bodies
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays the events and compares with where everything should be; counts circles.
    fn check(moves: &[(u64, u64)]) -> usize {
        let change = |(from, to): &(u64, u64)| Change {
            from: *from,
            arena: ArenaId(1),
            to: *to,
            new_arena: ArenaId(4),
        };
        let changes: Vec<Change> = moves.iter().map(change).collect();
        // Place to original place.
        let mut live: FxHashMap<u64, u64> = moves.iter().map(|m| (m.0, m.0)).collect();
        let mut aside = 0;
        for body in in_order(&changes) {
            match body {
                Body::ObjectFree { object } => assert!(live.remove(&object.0).is_some()),
                Body::ObjectMove(m) => {
                    let who = live.remove(&m.object.0).expect("a live id moves");
                    aside += usize::from(m.new_object.0 >= NOWHERE);
                    assert!(
                        live.insert(m.new_object.0, who).is_none(),
                        "two have one id"
                    );
                }
                other => panic!("{other:?}"),
            }
        }
        let expected: FxHashMap<u64, u64> = moves
            .iter()
            .filter(|m| m.1 != 0)
            .map(|m| (m.1, m.0))
            .collect();
        assert_eq!(live, expected, "{moves:?}");
        aside
    }

    #[test]
    fn no_object_moves_to_a_place_that_is_taken() {
        assert_eq!(check(&[(8, 0), (16, 8), (24, 16), (32, 24)]), 0);
        assert_eq!(check(&[(32, 24), (24, 16), (16, 8), (8, 0)]), 0);
        assert_eq!(check(&[(8, 16), (16, 8)]), 1);
        assert_eq!(check(&[(8, 16), (16, 24), (24, 8), (40, 48)]), 1);
        // Same place, other arena: a region became old.
        assert_eq!(check(&[(8, 8), (16, 0)]), 0);
    }

    #[test]
    fn any_permutation_with_deaths_can_be_reported() {
        let mut random = vmpi::Random::new(7);
        let mut random = |below: u64| random.bits() % below;
        for _ in 0..500 {
            let count = 1 + random(12);
            let mut places: Vec<u64> = (1..=count + 3).map(|place| place * 8).collect();
            for at in (1..places.len()).rev() {
                places.swap(at, random(at as u64 + 1) as usize);
            }
            let target = |at: u64| places[at as usize - 1];
            let moves: Vec<(u64, u64)> = (1..=count)
                .map(|at| (at * 8, if at % 5 == 0 { 0 } else { target(at) }))
                .collect();
            check(&moves);
        }
    }
}
