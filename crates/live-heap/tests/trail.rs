//! Ways of objects against a plain reading of the events.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use live_heap::{Fate, LiveHeap, Replay, Watch};
use refheap::{Config, Gc, RefVm, Script, script};
use vmpi::wire::{Encoder, Frame, Item, read_all};
use vmpi::{Body, Switches};

fn stream(gc: Gc) -> Vec<u8> {
    let mut config = Config::new(gc);
    config.heap = 16 << 10;
    let encoder = RefCell::new(Encoder::new(&RefVm::hello(&config)));
    let sink = |env, item: &Item| encoder.borrow_mut().item(env, item);
    let mut vm = RefVm::new(config, Switches::all(), Box::new(sink));
    let script: Script = script::DEFAULT.parse().expect("a script");
    script::run(&script, &mut vm).expect("it runs");
    drop(vm);
    encoder.into_inner().finish()
}

fn replayed(bytes: &[u8], watch: Watch) -> LiveHeap {
    let mut replay = Replay::watching(watch);
    bytes.chunks(333).for_each(|portion| replay.push(portion));
    replay.finish().expect("a stream").0
}

/// What became of one object: (fate, id, arena).
type Way = Vec<(Fate, u64, u32)>;

/// The way of every object, by birth.
fn ways(bytes: &[u8]) -> Vec<Way> {
    let mut ways: Vec<Way> = Vec::new();
    let mut live: BTreeMap<u64, usize> = BTreeMap::new();
    let whole = read_all(bytes, |frame| {
        let Frame::Batch(batch) = frame else {
            return Ok(());
        };
        for item in batch {
            let Item::Event { body, .. } = item? else {
                continue;
            };
            match body {
                Body::ObjectAlloc(alloc) => {
                    live.insert(alloc.object.0, ways.len());
                    ways.push(vec![(Fate::Born, alloc.object.0, alloc.arena.0)]);
                }
                Body::ObjectMove(moved) => {
                    let at = live.remove(&moved.object.0).expect("it is there");
                    live.insert(moved.new_object.0, at);
                    ways[at].push((Fate::Moved, moved.new_object.0, moved.new_arena.0));
                }
                Body::ObjectFree { object } => {
                    let at = live.remove(&object.0).expect("it is there");
                    let (_, id, arena) = *ways[at].last().expect("it was born");
                    ways[at].push((Fate::Freed, id, arena));
                }
                Body::ArenaDelete { arena } => live.retain(|_, at| {
                    let (_, id, in_arena) = *ways[*at].last().expect("it was born");
                    if in_arena == arena.0 {
                        ways[*at].push((Fate::ArenaDeleted, id, in_arena));
                    }
                    in_arena != arena.0
                }),
                _ => {}
            }
        }
        Ok(())
    });
    assert_eq!(whole, Ok(()));
    ways
}

#[test]
fn the_way_of_every_object_that_had_an_id_is_reported_across_its_moves() {
    for gc in Gc::ALL {
        let bytes = stream(gc);
        let ways = ways(&bytes);
        let ids: BTreeSet<u64> = ways.iter().flatten().map(|(_, id, _)| *id).collect();
        let mut most = 0;
        for id in ids.into_iter().step_by(41) {
            let serials = replayed(&bytes, Watch::of_id(id)).watched().to_vec();
            let trails = replayed(&bytes, Watch::of_objects(&serials)).trails();
            let reported: BTreeMap<u64, Way> = trails
                .iter()
                .map(|trail| {
                    let steps = trail.steps.iter();
                    let way = steps.map(|step| (step.fate, step.id, step.arena)).collect();
                    (trail.serial, way)
                })
                .collect();
            let numbered = (1..).zip(&ways);
            let expected: BTreeMap<u64, Way> = numbered
                .filter(|(_, way)| way.iter().any(|(_, had, _)| *had == id))
                .map(|(serial, way)| (serial, way.clone()))
                .collect();
            assert_eq!(reported, expected, "{gc:?} {id:#x}");
            assert!(
                trails
                    .iter()
                    .all(|trail| trail.size > 0 && !trail.class.is_empty())
            );
            most = most.max(
                trails
                    .iter()
                    .map(|trail| trail.steps.len())
                    .max()
                    .unwrap_or(0),
            );
        }
        // Semi-spaces move live objects at each collection; the others move less, or not.
        let enough = match gc {
            Gc::TwoSpaceCopying => 4,
            Gc::MarkCompact | Gc::Generational => 3,
            Gc::MarkSweep | Gc::ReferenceCounting => 2,
        };
        assert!(most >= enough, "{gc:?}: {most} steps at most");
    }
}
