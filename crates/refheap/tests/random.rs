//! Random mutators above every collector: the events must say exactly what is
//! true, and must keep every rule of ids.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use proptest::prelude::*;
use refheap::{Config, Gc, Order, RefVm, Shape, ThreadIdx, Variable, VmFault};
use vmpi::lifetime::Lifetimes;
use vmpi::wire::Item;
use vmpi::{BasicType, Body, GcKind, ObjectHandle, Switches, VmEvent};

/// A step of a mutator; numbers are taken modulo what there is.
#[derive(Clone, Debug)]
enum Step {
    New(u8, u8, u8),
    Set(u8, u8, Option<u8>),
    Load(u8, u8, u8, u8),
    Store(u8, u8, u8, Option<u8>),
    Gc(bool),
    Restart(u8),
}

fn step() -> impl Strategy<Value = Step> {
    let var = any::<u8>;
    prop_oneof![
        6 => any::<(u8, u8, u8)>().prop_map(|(t, v, s)| Step::New(t, v, s)),
        3 => (var(), var(), prop::option::of(var())).prop_map(|(t, a, b)| Step::Set(t, a, b)),
        3 => any::<(u8, u8, u8, u8)>().prop_map(|(t, a, b, s)| Step::Load(t, a, b, s)),
        8 => (var(), var(), var(), prop::option::of(var()))
            .prop_map(|(t, a, s, b)| Step::Store(t, a, s, b)),
        1 => any::<bool>().prop_map(Step::Gc),
        1 => var().prop_map(Step::Restart),
    ]
}

fn config() -> impl Strategy<Value = Config> {
    let gc = prop::sample::select(Gc::ALL.to_vec());
    let order = prop::sample::select(vec![Order::Sliding, Order::Arbitrary, Order::Linearizing]);
    (gc, order, 2u32..5, 1u32..4, any::<bool>()).prop_map(
        |(gc, order, generations, promotion_age, cycle_detector)| Config {
            gc,
            heap: 2048,
            order,
            generations,
            promotion_age,
            cycle_detector,
        },
    )
}

/// What the events say.
struct Received {
    lifetimes: Lifetimes,
    finishes: Vec<(u64, usize)>,
    frees_in_arena_deletes: u64,
}

type Shared = Rc<RefCell<Received>>;

fn started(config: &Config) -> (RefVm<'static>, Shared) {
    let reported = Rc::new(RefCell::new(Received {
        lifetimes: Lifetimes::new(config.gc == Gc::ReferenceCounting),
        finishes: Vec::new(),
        frees_in_arena_deletes: 0,
    }));
    let inner = Rc::clone(&reported);
    let sink = Box::new(move |env, item: &Item| {
        let reported = &mut *inner.borrow_mut();
        if let Item::Event { requested, body } = item {
            let event = VmEvent {
                env,
                requested: *requested,
                body: body.clone(),
            };
            if let Err(violation) = reported.lifetimes.check(&event) {
                panic!("{violation}");
            }
            match body {
                Body::GcFinish(info) => {
                    let alive = reported.lifetimes.objects().len();
                    reported.finishes.push((info.used_objects, alive));
                }
                Body::ObjectFree { .. } => reported.frees_in_arena_deletes += 1,
                _ => {}
            }
        }
    });
    (RefVm::new(config.clone(), Switches::all(), sink), reported)
}

fn variable(number: u8) -> Variable {
    match number % 8 {
        at @ 0..=5 => Variable::Local(u32::from(at)),
        at => Variable::Global(u32::from(at - 6)),
    }
}

fn perform(vm: &mut RefVm<'_>, threads: &mut [ThreadIdx], step: &Step) -> Result<(), VmFault> {
    let on = |t: u8, threads: &[ThreadIdx]| threads[t as usize % threads.len()];
    let class = refheap::ClassIdx;
    match *step {
        Step::New(t, v, s) => {
            let shape = match s % 5 {
                0 => Shape::Instance(class(1)),
                1 => Shape::Instance(class(2)),
                2 => Shape::Array(class(1), u32::from(s) / 5 % 7),
                3 => Shape::Primitive(BasicType::Byte, u32::from(s)),
                _ => Shape::Primitive(BasicType::Long, u32::from(s) / 16),
            };
            vm.new_object(on(t, threads), variable(v), shape)
        }
        Step::Set(t, a, b) => vm.set(on(t, threads), variable(a), b.map(variable)),
        Step::Load(t, a, b, slot) => {
            let thread = on(t, threads);
            match vm.slots(thread, variable(b)) {
                Some(slots @ 1..) => {
                    vm.load(thread, variable(a), variable(b), u32::from(slot) % slots)
                }
                _ => Ok(()),
            }
        }
        Step::Store(t, a, slot, b) => {
            let thread = on(t, threads);
            match vm.slots(thread, variable(a)) {
                Some(slots @ 1..) => vm.store(
                    thread,
                    variable(a),
                    u32::from(slot) % slots,
                    b.map(variable),
                ),
                _ => Ok(()),
            }
        }
        Step::Gc(full) => {
            vm.collect(if full { GcKind::Full } else { GcKind::Young });
            Ok(())
        }
        Step::Restart(t) => {
            let at = t as usize % threads.len();
            let fresh = vm.start_thread("again")?;
            vm.end_thread(threads[at])?;
            threads[at] = fresh;
            Ok(())
        }
    }
}

/// Where the VM itself says its objects are.
fn truth(vm: &RefVm<'_>) -> BTreeMap<ObjectHandle, u32> {
    let objects = vm.objects().iter();
    objects
        .map(|(_, object)| (object.handle(), object.arena.0))
        .collect()
}

fn check(config: &Config, steps: &[Step]) {
    let (mut vm, reported) = started(config);
    vm.define_class("Node", 2, 0, &[]);
    vm.define_class("Wide", 5, 20, &[]);
    let mut threads: Vec<_> = (0..3).filter_map(|_| vm.start_thread("t").ok()).collect();
    assert_eq!(threads.len(), 3);
    // A young collection may leave garbage, a counting one leaves cycles.
    let collects_all = match config.gc {
        Gc::Generational => false,
        Gc::ReferenceCounting => config.cycle_detector,
        _ => true,
    };
    for step in steps {
        let live_before = vm.reachable().len();
        let finishes = reported.borrow().finishes.len();
        let outcome = perform(&mut vm, &mut threads, step);
        assert!(
            matches!(outcome, Ok(()) | Err(VmFault::OutOfMemory(_))),
            "{step:?}: {outcome:?}"
        );
        let reported = reported.borrow();
        let replayed: BTreeMap<_, _> = reported
            .lifetimes
            .objects()
            .iter()
            .map(|(o, a)| (*o, a.0))
            .collect();
        assert_eq!(replayed, truth(&vm), "after {step:?}");
        let known: BTreeSet<_> = replayed.keys().copied().collect();
        let live = vm.reachable();
        assert!(
            live.is_subset(&known),
            "something alive was freed by {step:?}"
        );
        for (used, alive) in &reported.finishes[finishes..] {
            assert_eq!(*used, *alive as u64);
            if collects_all {
                assert_eq!(*alive, live_before, "in {step:?}");
            }
        }
        let explicit_full = matches!(step, Step::Gc(true));
        if explicit_full && (collects_all || config.gc == Gc::Generational && config.heap > 2048) {
            assert_eq!(known, live);
        }
        assert!(!reported.lifetimes.in_gc());
    }
    if config.gc == Gc::TwoSpaceCopying {
        assert_eq!(
            reported.borrow().frees_in_arena_deletes,
            0,
            "its objects go with their arena"
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn events_say_what_is_true(config in config(), steps in prop::collection::vec(step(), 1..250)) {
        check(&config, &steps);
    }

    #[test]
    fn with_room_enough_a_full_collection_leaves_only_live_objects(
        config in config(),
        steps in prop::collection::vec(step(), 1..250),
    ) {
        check(&Config { heap: 32 << 10, ..config }, &steps);
    }
}

#[test]
fn the_same_script_gives_the_same_events() {
    let run = || {
        let mut reported = Vec::new();
        let sink = Box::new(|env, item: &Item| reported.push((env, item.clone())));
        let mut vm = RefVm::new(Config::new(Gc::Generational), Switches::all(), sink);
        let script: refheap::Script = refheap::script::DEFAULT.parse().unwrap();
        refheap::script::run(&script, &mut vm).unwrap();
        drop(vm);
        reported
    };
    assert_eq!(run(), run());
}
