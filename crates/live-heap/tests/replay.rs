//! The replay against the reference VM, which knows the truth, and against a
//! plain oracle that remembers everything.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use live_heap::{LiveHeap, Replay};
use proptest::prelude::*;
use refheap::{Config, Gc, Order, RefVm, Script, Shape, ThreadIdx, Variable, script};
use vmpi::mode::Request;
use vmpi::wire::{Encoder, Hello, Item, MoveRange};
use vmpi::*;

/// Runs `work` on a reference VM and gives what it emitted, as items and as bytes.
fn emitted(
    config: &Config,
    work: impl FnOnce(&mut RefVm<'_>),
) -> (Vec<(EnvId, Item)>, Vec<u8>, Vec<u64>) {
    let items = Rc::new(RefCell::new(Vec::new()));
    let inner = Rc::clone(&items);
    let sink = Box::new(move |env, item: &Item| inner.borrow_mut().push((env, item.clone())));
    let mut vm = RefVm::new(config.clone(), Switches::all(), sink);
    work(&mut vm);
    let mut truth: Vec<_> = vm
        .objects()
        .iter()
        .map(|(_, object)| object.address)
        .collect();
    truth.sort_unstable();
    drop(vm);
    let items = Rc::try_unwrap(items).unwrap().into_inner();
    let mut encoder = Encoder::new(&RefVm::hello(config));
    for (env, item) in &items {
        encoder.item(*env, item);
    }
    (items, encoder.finish(), truth)
}

fn replayed(bytes: &[u8]) -> LiveHeap {
    let mut replay = Replay::new();
    bytes.chunks(777).for_each(|portion| replay.push(portion));
    let (heap, damage) = replay.finish().expect("a stream");
    assert_eq!(damage, None);
    heap
}

/// The items of a stream in its order.
fn decoded(bytes: &[u8]) -> Vec<Item> {
    let mut items = Vec::new();
    let whole = vmpi::wire::read_all(bytes, |frame| {
        if let vmpi::wire::Frame::Batch(batch) = frame {
            for item in batch {
                items.push(item?);
            }
        }
        Ok(())
    });
    assert_eq!(whole, Ok(()));
    items
}

/// A random mutator: numbers choose what to do.
fn mutate(vm: &mut RefVm<'_>, numbers: &[(u8, u8, u8, u8)]) {
    vm.define_class("Node", 2, 0, &[]);
    vm.define_class("Wide", 4, 30, &[]);
    let threads: Vec<ThreadIdx> = (0..2).filter_map(|_| vm.start_thread("t").ok()).collect();
    for &(what, a, b, c) in numbers {
        let thread = threads[usize::from(a) % threads.len()];
        let variable = |n: u8| Variable::Local(u32::from(n % 6));
        let slots = vm.slots(thread, variable(b)).unwrap_or(0);
        let _ = match what % 10 {
            0..=3 => {
                let shape = match c % 3 {
                    0 => Shape::Instance(refheap::ClassIdx(1)),
                    1 => Shape::Instance(refheap::ClassIdx(2)),
                    _ => Shape::Primitive(BasicType::Byte, u32::from(c)),
                };
                vm.new_object(thread, variable(b), shape)
            }
            4..=6 if slots > 0 => vm.store(
                thread,
                variable(b),
                u32::from(c) % slots,
                Some(variable(c / 7)),
            ),
            7 if slots > 0 => vm.load(thread, variable(c), variable(b), u32::from(c) % slots),
            8 => vm.set(thread, variable(b), None),
            9 if c % 4 == 0 => {
                vm.collect(GcKind::Young);
                Ok(())
            }
            _ => Ok(()),
        };
    }
}

fn config() -> impl Strategy<Value = Config> {
    let gc = prop::sample::select(Gc::ALL.to_vec());
    let order = prop::sample::select(vec![Order::Sliding, Order::Arbitrary, Order::Linearizing]);
    (gc, order, 2u32..4, 1u32..3, any::<bool>()).prop_map(
        |(gc, order, generations, promotion_age, cycle_detector)| Config {
            gc,
            heap: 4096,
            order,
            generations,
            promotion_age,
            cycle_detector,
        },
    )
}

/// What a plain reading of the document says of each object.
#[derive(Clone, Debug, PartialEq)]
struct Life {
    serial: u64,
    size: u64,
    arena: u32,
    born_gc: u32,
    moves: u32,
}

#[derive(Default)]
struct Oracle {
    alive: BTreeMap<u64, Life>,
    /// Age in collections of each death.
    deaths: Vec<u32>,
    born: u64,
    gcs: u32,
}

impl Oracle {
    fn apply(&mut self, item: &Item) {
        let Item::Event { body, .. } = item else {
            return;
        };
        match body {
            Body::ObjectAlloc(a) => {
                self.born += 1;
                let life = Life {
                    serial: self.born,
                    size: a.size,
                    arena: a.arena.0,
                    born_gc: self.gcs,
                    moves: 0,
                };
                self.alive.insert(a.object.0, life);
            }
            Body::ObjectFree { object } => {
                let life = self.alive.remove(&object.0).unwrap();
                self.deaths.push(self.gcs - life.born_gc);
            }
            Body::ObjectMove(m) => {
                let mut life = self.alive.remove(&m.object.0).unwrap();
                life.arena = m.new_arena.0;
                life.moves += 1;
                self.alive.insert(m.new_object.0, life);
            }
            Body::ArenaDelete { arena } => {
                let gone: Vec<_> = self
                    .alive
                    .iter()
                    .filter(|(_, l)| l.arena == arena.0)
                    .map(|(id, _)| *id)
                    .collect();
                for id in gone {
                    let life = self.alive.remove(&id).unwrap();
                    self.deaths.push(self.gcs - life.born_gc);
                }
            }
            Body::GcFinish(_) => self.gcs += 1,
            _ => {}
        }
    }

    /// The survival curve by definition: of those whose outcome at an age is known (freed at this age or later, or
    /// live and older), the share that was not freed at this age; multiplied up.
    fn survival(&self, ages: usize) -> Vec<f64> {
        let alive: Vec<u32> = self
            .alive
            .values()
            .map(|life| self.gcs - life.born_gc)
            .collect();
        let mut share = 1.0;
        let mut points = vec![1.0];
        for age in 0..ages as u32 {
            let at_risk = self.deaths.iter().filter(|at| **at >= age).count()
                + alive.iter().filter(|at| **at > age).count();
            if at_risk == 0 {
                break;
            }
            let died = self.deaths.iter().filter(|at| **at == age).count();
            share *= 1.0 - died as f64 / at_risk as f64;
            points.push(share);
        }
        points
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_replayed_stream_is_the_true_heap(
        config in config(),
        numbers in prop::collection::vec(any::<(u8, u8, u8, u8)>(), 1..400),
    ) {
        let (_, bytes, truth) = emitted(&config, |vm| mutate(vm, &numbers));
        let heap = replayed(&bytes);
        let mut ids: Vec<_> = heap.population().map(|object| object.id).collect();
        ids.sort_unstable();
        prop_assert_eq!(&ids, &truth);
        prop_assert_eq!(heap.contradictions(), 0);

        let mut oracle = Oracle::default();
        // Allocations on different threads have no order but that of the stream.
        decoded(&bytes).iter().for_each(|item| oracle.apply(item));
        let lifetimes: BTreeMap<u64, Life> = heap.population().map(|object| {
            let born_gc = heap.collections() - object.age;
            let present = live_heap::Present { ..object };
            (present.id, Life { serial: present.serial, size: present.size, arena: present.arena, born_gc, moves: present.moves })
        }).collect();
        prop_assert_eq!(&lifetimes, &oracle.alive, "identity across moves");

        let answer = heap.answer(usize::MAX);
        prop_assert_eq!(answer.totals.freed_objects, oracle.deaths.len() as u64);
        prop_assert_eq!(answer.totals.live_bytes, oracle.alive.values().map(|l| l.size).sum::<u64>());
        prop_assert_eq!(answer.arenas.iter().map(|a| a.objects).sum::<u64>(), truth.len() as u64);
        prop_assert_eq!(answer.classes.iter().map(|c| c.live_bytes).sum::<u64>(), answer.totals.live_bytes);
        prop_assert_eq!(answer.sites.iter().map(|c| c.allocated_objects).sum::<u64>(), oracle.born);
        prop_assert_eq!(answer.moves.iter().sum::<u64>(), oracle.born);
        let expected = oracle.survival(20);
        prop_assert_eq!(answer.survival.len().min(21), expected.len());
        for (point, share) in answer.survival.iter().zip(&expected) {
            prop_assert!((point.alive - share).abs() < 1e-9, "{:?} {:?}", answer.survival, expected);
        }
        for collection in &answer.collections {
            prop_assert_eq!(collection.bytes_after, collection.vm_used_bytes);
            prop_assert_eq!(collection.bytes_before - collection.freed_bytes, collection.bytes_after);
        }
        let last = answer.timeline.last().expect("a last sample");
        prop_assert_eq!(last.bytes.iter().sum::<u64>(), answer.totals.live_bytes);
    }

    #[test]
    fn ranges_do_what_single_moves_do(
        numbers in prop::collection::vec(any::<(u8, u8, u8, u8)>(), 1..300),
        gc in prop::sample::select(vec![Gc::MarkCompact, Gc::TwoSpaceCopying, Gc::Generational]),
    ) {
        let config = Config { heap: 4096, ..Config::new(gc) };
        let (items, _, _) = emitted(&config, |vm| mutate(vm, &numbers));
        let mut ranged = LiveHeap::new(&RefVm::hello(&config));
        let mut range: Option<MoveRange> = None;
        for (_, item) in &items {
            // Neighbouring moves over the same distance become one range.
            if let Item::Event { body: Body::ObjectMove(m), .. } = item {
                if let Some(range) = &mut range
                    && range.arena == m.arena
                    && range.new_arena == m.new_arena
                    && m.object.0 >= range.from.0 + range.len
                    && m.object.0 - range.from.0 == m.new_object.0.wrapping_sub(range.to.0)
                    // Nothing else may lie between.
                    && m.object.0 - (range.from.0 + range.len) < 8
                {
                    range.len = m.object.0 - range.from.0 + 8;
                    continue;
                }
                if let Some(range) = range.take() {
                    ranged.apply(&Item::MoveRange(range));
                }
                range = Some(MoveRange { from: m.object, len: 8, arena: m.arena, to: m.new_object, new_arena: m.new_arena });
                continue;
            }
            if let Some(range) = range.take() {
                ranged.apply(&Item::MoveRange(range));
            }
            ranged.apply(item);
        }
        if let Some(range) = range {
            ranged.apply(&Item::MoveRange(range));
        }
        ranged.finish();
        let mut single = LiveHeap::new(&RefVm::hello(&config));
        items.iter().for_each(|(_, item)| single.apply(item));
        single.finish();
        let sorted = |heap: &LiveHeap| {
            let mut all: Vec<_> = heap.population().map(|o| (o.id, o.serial, o.arena, o.age, o.moves)).collect();
            all.sort_unstable();
            all
        };
        prop_assert_eq!(sorted(&ranged), sorted(&single));
        prop_assert_eq!(ranged.contradictions(), 0);
    }

    #[test]
    fn a_damaged_stream_never_panics(
        numbers in prop::collection::vec(any::<(u8, u8, u8, u8)>(), 1..100),
        change in any::<(prop::sample::Index, u8)>(),
    ) {
        let (_, mut bytes, _) = emitted(&Config::new(Gc::Generational), |vm| mutate(vm, &numbers));
        let at = change.0.index(bytes.len());
        bytes[at] ^= change.1;
        let mut replay = Replay::new();
        replay.push(&bytes);
        if let Ok((heap, _)) = replay.finish() {
            let _ = heap.answer(10);
        }
    }

    #[test]
    fn a_stream_that_breaks_the_rules_is_counted_and_never_panics(
        steps in prop::collection::vec((0u8..9, 0u64..12, 0u64..12, 0u32..4), 0..300),
    ) {
        let mut heap = LiveHeap::new(&Hello::default());
        for (what, id, other, arena) in steps {
            let (object, arena) = (ObjectHandle(id), ArenaId(arena));
            heap.apply(&match what {
                0 | 1 => Item::event(Body::ObjectAlloc(ObjectAlloc {
                    object, class: ObjectHandle(other), size: other * 8, arena,
                    trace: TraceId(id as u32), array: None,
                })),
                2 => Item::event(Body::ObjectFree { object }),
                3 => Item::event(Body::ObjectMove(ObjectMove {
                    object, arena, new_object: ObjectHandle(other), new_arena: ArenaId(other as u32),
                })),
                4 => Item::event(Body::ArenaDelete { arena }),
                5 => Item::event(Body::GcStart { kind: GcKind::Full }),
                6 => Item::event(Body::GcFinish(GcInfo::default())),
                7 => Item::MoveRange(MoveRange {
                    from: object, len: other, arena, to: ObjectHandle(other), new_arena: ArenaId(1),
                }),
                _ => Item::event(Body::ArenaNew { arena, name: "a".into() }),
            });
        }
        heap.finish();
        let answer = heap.answer(5);
        prop_assert_eq!(answer.totals.live_objects, heap.population().count() as u64);
        let accounted = answer.totals.live_objects + answer.totals.freed_objects;
        prop_assert_eq!(accounted, answer.totals.allocated_objects);
    }
}

fn answer_of(config: &Config, text: &str, dump: bool) -> live_heap::Events {
    let script: Script = text.parse().unwrap();
    let (_, bytes, _) = emitted(config, |vm| {
        script::run(&script, vm).unwrap();
        if dump {
            vm.request_to_sink(Request::HeapDump(DumpLevel::References));
        }
    });
    replayed(&bytes).answer(20)
}

#[test]
fn cycles_that_counting_cannot_free_are_listed_by_class_and_site() {
    let script = "
class Node 2
class Leaf 0 8
call Main.leak
  a = new Node
  b = new Node
  l = new Leaf
  a[0] = b
  b[0] = a
  b[1] = l
end
call Main.self
  s = new Node
  s[0] = s
end
kept = new Node
";
    for level in [DumpLevel::References, DumpLevel::Values] {
        let parsed: Script = script.parse().unwrap();
        let (_, bytes, _) = emitted(&Config::new(Gc::ReferenceCounting), |vm| {
            script::run(&parsed, vm).unwrap();
            vm.request_to_sink(Request::HeapDump(level));
        });
        let leaks = replayed(&bytes)
            .answer(20)
            .cycle_leaks
            .expect("a dump came");
        // The thread has ended: what is left is a, b, the leaf and s.
        assert_eq!(
            (leaks.objects, leaks.cycles, leaks.in_cycles),
            (4, 2, 3),
            "{level:?}"
        );
        let rows: Vec<_> = leaks
            .rows
            .iter()
            .map(|row| (row.class.as_str(), row.frames[0].as_str(), row.objects))
            .collect();
        assert_eq!(rows[0], ("Node", "Main.leak:5", 1));
        assert_eq!(rows.len(), 4);
    }
}

#[test]
fn a_collector_without_leaks_has_none() {
    let events = answer_of(
        &Config::new(Gc::MarkSweep),
        "class N 1\n$a = new N\n$a[0] = $a\ngc",
        true,
    );
    assert_eq!(
        events.cycle_leaks.unwrap().objects,
        1,
        "the ended thread's object waits for a collection"
    );
}

#[test]
fn promotion_is_entering_an_arena_that_stays() {
    let script = "
class Node 1
repeat 3
  a = new Node
  gc young
end
a = null
gc
";
    let events = answer_of(&Config::new(Gc::Generational), script, false);
    let old: Vec<_> = events
        .arenas
        .iter()
        .filter(|arena| arena.old)
        .map(|arena| arena.name.as_str())
        .collect();
    assert_eq!(old, ["old"]);
    // Three nodes and the thread's object.
    assert_eq!(
        (events.totals.promoted_objects, events.totals.promoted_bytes),
        (4, 3 * 24 + 32)
    );
    assert_eq!(
        (
            events.totals.premature_objects,
            events.totals.premature_bytes
        ),
        (3, 3 * 24)
    );
    // Survivor spaces are entered and left again: not where objects rest.
    let aging = Config {
        promotion_age: 2,
        ..Config::new(Gc::Generational)
    };
    let aged = answer_of(&aging, script, false);
    let old: Vec<_> = aged
        .arenas
        .iter()
        .filter(|arena| arena.old)
        .map(|arena| arena.name.as_str())
        .collect();
    assert_eq!(old, ["old"]);
    let copying = answer_of(&Config::new(Gc::TwoSpaceCopying), script, false);
    assert_eq!(
        copying.totals.promoted_objects, 0,
        "the other space is not older"
    );
    assert!(copying.totals.moves > 0);
}

#[test]
fn holes_of_a_heap_that_does_not_move_are_measured() {
    let script = "
class Node 1
a = new Node
b = new Node
$c = new Node
a = null
$d = new Node
b = null
gc
";
    let config = Config {
        heap: 1024,
        ..Config::new(Gc::MarkSweep)
    };
    let events = answer_of(&config, script, false);
    let holes = events.arenas[0].fragmentation.clone().unwrap();
    // Thread, two dead nodes side by side, two live ones, and the rest.
    assert_eq!((holes.holes, holes.free_bytes), (2, 1024 - 32 - 2 * 24));
    assert_eq!(holes.largest_hole, 1024 - 32 - 4 * 24);
    let compacted = answer_of(
        &Config {
            gc: Gc::MarkCompact,
            ..config
        },
        script,
        false,
    );
    assert_eq!(compacted.arenas[0].fragmentation.as_ref().unwrap().holes, 1);
}

#[test]
fn sampled_objects_stand_for_the_bytes_between_them() {
    let hello = Hello {
        sample_interval: 1000,
        stable_ids: true,
        ..Hello::default()
    };
    let mut heap = LiveHeap::new(&hello);
    let alloc = |id, size| {
        Item::event(Body::ObjectAlloc(ObjectAlloc {
            object: ObjectHandle(id),
            class: ObjectHandle(1),
            size,
            arena: ArenaId(1),
            trace: TraceId::EMPTY,
            array: None,
        }))
    };
    heap.apply(&alloc(1, 16));
    // 16 / (1 - e^-0.016) = 1008.02; an object of 1 MB stands for itself.
    assert_eq!(heap.answer(1).totals.allocated_bytes, 1008);
    heap.apply(&alloc(2, 1_000_000));
    assert_eq!(heap.answer(1).totals.allocated_bytes, 1_001_008);
}

#[test]
fn losses_are_reported_by_kind() {
    let mut heap = LiveHeap::new(&Hello::default());
    heap.apply(&Item::Lost {
        kind: Some(EventKind::ObjectFree),
        count: 5,
    });
    heap.apply(&Item::Lost {
        kind: Some(EventKind::ObjectFree),
        count: 2,
    });
    heap.apply(&Item::Lost {
        kind: None,
        count: 1,
    });
    let lost: Vec<_> = heap.answer(1).stream.lost.into_iter().collect();
    assert_eq!(
        lost,
        [
            ("MOVE_RANGE".to_string(), 1),
            ("OBJECT_FREE".to_string(), 7)
        ]
    );
}

/// A collector that clears references in collections of the whole heap only.
#[test]
fn who_dies_only_in_full_collections_is_not_aged_by_others() {
    let hello = Hello {
        stable_ids: true,
        full_gc_frees: true,
        ..Hello::default()
    };
    let mut heap = LiveHeap::new(&hello);
    let arena = ArenaId(6);
    let event = |body| Item::event(body);
    let gc = |heap: &mut LiveHeap, kind, dead: &[u64]| {
        heap.apply(&event(Body::GcStart { kind }));
        for id in dead {
            let object = ObjectHandle(*id);
            heap.apply(&event(Body::ObjectFree { object }));
        }
        heap.apply(&event(Body::GcFinish(GcInfo::default())));
    };
    for id in [8, 16, 24] {
        heap.apply(&event(Body::ObjectAlloc(ObjectAlloc {
            object: ObjectHandle(id),
            class: ObjectHandle::NULL,
            size: 16,
            arena,
            trace: vmpi::TraceId::EMPTY,
            array: Some(vmpi::BasicType::Byte),
        })));
    }
    for _ in 0..5 {
        gc(&mut heap, GcKind::Unknown, &[]);
    }
    // No one has survived anything by now.
    assert_eq!(heap.object(8).expect("alive").age, 0);
    gc(&mut heap, GcKind::Full, &[8, 16]);
    gc(&mut heap, GcKind::Unknown, &[]);
    heap.finish();
    let answer = heap.answer(5);
    assert_eq!((answer.totals.collections, answer.stream.pauses), (1, 6));
    assert_eq!(answer.collections.len(), 1);
    assert_eq!(answer.collections[0].freed_objects, 2);
    assert_eq!(heap.object(24).expect("alive").age, 1);
    let after_one = answer.survival.iter().find(|point| point.age == 1);
    assert!((after_one.expect("a point").alive - 1.0 / 3.0).abs() < 1e-9);
    assert_eq!(heap.contradictions(), 0);
}
