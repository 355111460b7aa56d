//! The VM as a profiler sees it: modes, switches, requests, dumps.

use std::collections::{BTreeSet, HashMap};

use refheap::{Config, Gc, RefVm, Script, VM_THREAD, script};
use vmpi::dump::heap::{decode, decode_ids};
use vmpi::dump::{HeapRecord, IdLayout};
use vmpi::mode::{Request, Running};
use vmpi::wire::Item;
use vmpi::*;

const SCRIPT: &str = "
class Node 1 3
call Main.build
  $a = new Node
  $b = new int[5]
  $c = new Node[2]
  $a[0] = $b
  $c[1] = $a
  x = new Node
  x = null
end
";

fn ran(switches: Switches, sink: impl FnMut(EnvId, &Item) + 'static) -> RefVm<'static> {
    let script: Script = SCRIPT.parse().unwrap();
    let mut vm = RefVm::new(Config::new(Gc::MarkSweep), switches, Box::new(sink));
    script::run(&script, &mut vm).unwrap();
    vm
}

#[test]
fn nothing_is_reported_that_is_not_switched_on() {
    let mut vm = ran(Switches::NONE, |_, item| {
        assert!(!matches!(item, Item::Event { .. }), "{item:?}");
    });
    let mut running = Running::new(&mut vm);
    assert_eq!(running.switch(EventKind::GcStart, true), Outcome::Success);
    assert_eq!(
        running.switch(EventKind::HeapDump, true),
        Outcome::NotAvailable
    );
}

#[test]
fn definitions_can_be_requested_and_bear_the_bit() {
    let mut vm = ran(Switches::NONE, |_, _| {});
    let objects: Vec<_> = vm
        .objects()
        .iter()
        .map(|(_, object)| object.handle())
        .collect();
    let mut running = Running::new(&mut vm);
    let mut still = running.gc_disabled();
    let mut got = Vec::new();
    let mut ask = |request| still.request(request, &mut |event| got.push(event));
    for object in &objects {
        assert_eq!(ask(Request::ObjectAlloc(*object)), Outcome::Success);
    }
    assert_eq!(
        ask(Request::ClassLoad(refheap::ClassIdx(1).handle())),
        Outcome::Success
    );
    assert_eq!(ask(Request::ObjectAlloc(ObjectHandle(3))), Outcome::Fail);
    assert_eq!(ask(Request::ClassLoad(ObjectHandle(3))), Outcome::Fail);
    assert_eq!(got.len(), objects.len() + 1);
    assert!(
        got.iter()
            .all(|event| event.requested && event.env == VM_THREAD)
    );
    assert_eq!(got[0].event_type(), 0x1000_0004);
    let Body::ClassLoad(class) = &got.last().unwrap().body else {
        panic!()
    };
    assert_eq!((class.name.as_str(), class.instances.len()), ("Node", 4));
}

#[test]
fn no_collection_runs_while_collections_are_disabled() {
    let mut vm = ran(Switches::NONE, |_, _| {});
    let before = vm.collections();
    vmpi::mode::Host::disable_gc(&mut vm);
    vm.collect(GcKind::Full);
    assert_eq!(vm.collections(), before);
    vmpi::mode::Host::enable_gc(&mut vm);
    Running::new(&mut vm).run_gc();
    assert_eq!(vm.collections(), before + 1);
    drop(Running::new(&mut vm).gc_disabled());
    vm.collect(GcKind::Full);
    assert_eq!(
        vm.collections(),
        before + 2,
        "leaving the mode enabled them"
    );
}

#[test]
fn a_heap_dump_of_each_level_holds_every_object() {
    let mut loads: HashMap<ObjectHandle, ClassLoad> = HashMap::new();
    let mut vm = ran(Switches::NONE, |_, _| {});
    let all: BTreeSet<_> = vm
        .objects()
        .iter()
        .map(|(_, object)| object.handle())
        .collect();
    let live = vm.reachable();
    let mut running = Running::new(&mut vm);
    let mut still = running.gc_disabled();
    let mut dumps = Vec::new();
    for number in 0..5 {
        still.request(
            Request::ClassLoad(refheap::ClassIdx(number).handle()),
            &mut |event| {
                if let Body::ClassLoad(class) = event.body {
                    loads.insert(class.class, *class);
                }
            },
        );
    }
    for level in [DumpLevel::Ids, DumpLevel::References, DumpLevel::Values] {
        let outcome = still.request(Request::HeapDump(level), &mut |event| {
            if let Body::HeapDump(dump) = event.body {
                dumps.push(*dump);
            }
        });
        assert_eq!(outcome, Outcome::Success);
    }
    let layout = IdLayout::NATIVE;
    let (ids, damage) = decode_ids(&dumps[0].data, layout);
    assert_eq!(
        (damage, ids.iter().map(|r| r.object).collect()),
        (None, all.clone())
    );
    for dump in &dumps[1..] {
        let (records, damage) = decode(&dump.data, dump.level, layout, &loads);
        assert_eq!(damage, None);
        let mut edges: HashMap<ObjectHandle, Vec<ObjectHandle>> = HashMap::new();
        let mut found = Vec::new();
        for record in records {
            match record {
                HeapRecord::Root { object, .. } => found.push(object),
                HeapRecord::Instance { object, fields, .. } => {
                    let references = fields.chunks_exact(8).take(1);
                    let reference = |bytes: &[u8]| u64::from_ne_bytes(bytes.try_into().unwrap());
                    let to = references.map(|bytes| ObjectHandle(reference(bytes)));
                    edges.insert(object, to.collect());
                }
                HeapRecord::ObjectArray {
                    object, elements, ..
                } => {
                    edges.insert(object, elements);
                }
                HeapRecord::PrimitiveArray { object, len, .. } => {
                    assert_eq!(len, 5);
                    edges.insert(object, Vec::new());
                }
                HeapRecord::Class(_) => {}
            }
        }
        assert_eq!(edges.keys().copied().collect::<BTreeSet<_>>(), all);
        let mut reached = BTreeSet::new();
        while let Some(object) = found.pop() {
            if !object.is_null() && reached.insert(object) {
                found.extend(&edges[&object]);
            }
        }
        // Thread objects have data only; the walk from the dump finds the same as
        // the VM's own.
        assert_eq!(reached, live);
    }
}

#[test]
fn suspended_threads_stand_still_and_go_on() {
    let mut vm = RefVm::new(
        Config::new(Gc::MarkSweep),
        Switches::NONE,
        Box::new(|_, _| {}),
    );
    vm.start_thread("one").unwrap();
    let env = EnvId(VM_THREAD.0 + 1);
    let mut running = Running::new(&mut vm);
    let mut still = running.gc_disabled();
    assert!(still.thread_object(env).is_some());
    {
        let stopped = still.suspend(&[env, EnvId(99)]);
        assert_eq!(stopped.threads(), [env]);
        assert_eq!(
            stopped.status(env),
            Some(vmpi::vm_event::thread_status::RUNNABLE)
        );
        assert!(!stopped.has_run(env));
        assert_eq!(stopped.call_trace(env, 8).unwrap().frames, []);
    }
    assert_eq!(still.suspend(&[env]).threads(), [env], "it was resumed");
}
