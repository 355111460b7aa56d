//! What the recorder keeps of classes that are unloaded.

use crate::recorder::{small_vm, start};
use crate::scripted::{Batch, ScriptedVm, Thing, recorder};
use agent_core::Recorder;
use agent_core::control::Command;
use hprof::{Record, map_file};
use profile::AGENT_NAMES;
use vmpi::{
    AllocationRow, ClassAnswer, ClassId, ClassInfo, Event, ObjectHandle, Profiler, ThreadId,
    TraceId,
};

const ALL_SITES: Command = Command::AllocSites {
    flags: 0,
    cutoff: 0.0,
};

/// What a stream says of classes: `+NAME` for LOAD CLASS, `-NAME` for UNLOAD CLASS, in order; and its number of names.
fn reported(bytes: &[u8]) -> (Vec<String>, usize) {
    let ids = hprof::Header::parse(bytes).expect("a header").id_size;
    let (mut names, mut classes) = (Vec::new(), Vec::new());
    let mut reported = Vec::new();
    let map = map_file(bytes, |record| match record.decode(ids) {
        Some(Record::Utf8 { id, bytes }) => names.push((id, bytes.to_vec())),
        Some(Record::LoadClass { serial, name, .. }) => {
            let mut known = names.iter().rev();
            let text = known.find(|(id, _)| *id == name).expect("a name").1.clone();
            let text = String::from_utf8(text).expect("text");
            reported.push(format!("+{text}"));
            classes.push((serial, text));
        }
        Some(Record::UnloadClass { serial }) => {
            let mut known = classes.iter().rev();
            let (_, text) = known.find(|(known, _)| *known == serial).expect("loaded");
            reported.push(format!("-{text}"));
        }
        _ => {}
    });
    assert!(!map.expect("a stream").diagnostics.any_damage());
    (reported, names.len())
}

fn load(recorder: &mut Recorder, vm: &ScriptedVm, class: ClassId, name: &str) {
    let info = ClassInfo {
        signature: format!("L{name};"),
        mirror: ObjectHandle(u64::from(class.0)),
        ..ClassInfo::default()
    };
    let event = Event::ClassLoaded {
        class,
        info: &info,
        trace: TraceId::EMPTY,
        thread: ThreadId(1),
    };
    recorder.notify(vm, &event);
}

fn unload(recorder: &mut Recorder, vm: &ScriptedVm, class: ClassId, is_named: bool) {
    recorder.notify(vm, &Event::ClassUnloaded { class, is_named });
}

#[test]
fn an_unload_is_written_for_classes_the_file_knows() {
    let (mut recorder, out, _) = recorder("heap=sites,format=b", None);
    let mut vm = small_vm();
    start(&mut recorder, &mut vm);
    unload(&mut recorder, &vm, ClassId(1), true);
    unload(&mut recorder, &vm, ClassId(77), false);
    let expected = ["+demo.Node", "+int[]", "-demo.Node"];
    assert_eq!(reported(&out.bytes()).0, expected);
}

#[test]
fn classes_that_nothing_refers_to_are_forgotten_and_a_collector_never_gets_them() {
    for (options, is_collector) in [
        ("heap=sites,cutoff=0,format=b", false),
        ("heap=sites,cutoff=0,format=b,modern=y,net=h:1", true),
    ] {
        let (mut recorder, out, _) = recorder(options, None);
        let mut vm = small_vm();
        start(&mut recorder, &mut vm);
        let before = out.bytes().len();
        // As many as there are names that are remembered, and some more.
        let numbers = 100..100 + AGENT_NAMES as u32 + 50;
        for class in numbers.clone() {
            load(
                &mut recorder,
                &vm,
                ClassId(class),
                &format!("Script{class}"),
            );
            unload(&mut recorder, &vm, ClassId(class), false);
        }
        let (classes, names) = reported(&out.bytes());
        let written = classes.iter().filter(|one| one.contains("Script")).count();
        match is_collector {
            true => assert_eq!(out.bytes().len(), before, "{options}"),
            false => assert_eq!(written, 2 * numbers.len(), "{options}"),
        }
        // The first names are remembered, the later ones are sent again with a class.
        for (class, new_names) in [(100, 0), (numbers.end - 1, 1)] {
            load(
                &mut recorder,
                &vm,
                ClassId(9000 + class),
                &format!("Script{class}"),
            );
            let expected = if is_collector { 0 } else { new_names };
            assert_eq!(
                reported(&out.bytes()).1 - names,
                expected,
                "{options} {class}"
            );
        }
        // Another output gets only classes that are loaded.
        let again = crate::scripted::Shared::default();
        recorder.begin_again(&vm, Box::new(again.clone()));
        recorder.flush();
        let expected = match is_collector {
            true => vec![],
            false => {
                let last = format!("+Script{}", numbers.end - 1);
                ["+demo.Node", "+int[]", "+Script100", &last]
                    .map(str::to_owned)
                    .to_vec()
            }
        };
        assert_eq!(reported(&again.bytes()).0, expected, "{options}");
    }
}

#[test]
fn an_unloaded_class_with_allocations_keeps_its_name_at_a_collector() {
    let (mut recorder, out, _) = recorder("heap=sites,cutoff=0,format=b,modern=y,net=h:1", None);
    let mut vm = small_vm();
    let class = vm.class("Ldemo/Script;", None, &[]);
    start(&mut recorder, &mut vm);
    *vm.batch.get_mut().expect("lock") = Batch {
        allocations: vec![AllocationRow {
            class,
            trace: TraceId(1),
            objects: 7,
            bytes: 112,
            ..AllocationRow::default()
        }],
        ..Batch::default()
    };
    recorder.command(&vm, &ALL_SITES);
    unload(&mut recorder, &vm, class, true);
    recorder.command(&vm, &ALL_SITES);
    // The stack has frames of demo.Node.
    let expected = ["+demo.Node", "+demo.Script"];
    assert_eq!(reported(&out.bytes()).0, expected);
    let again = crate::scripted::Shared::default();
    recorder.begin_again(&vm, Box::new(again.clone()));
    recorder.command(&vm, &ALL_SITES);
    recorder.flush();
    assert_eq!(reported(&again.bytes()).0, expected);
    let profile = profile::read(&again.bytes()).expect("a profile").0;
    let site = profile.sites.as_ref().expect("sites").sites()[0];
    assert_eq!(profile.names.get(site.class), "demo.Script");
    assert_eq!(site.allocated.objects, 7);
}

#[test]
fn a_class_that_only_a_dump_has_is_unloaded_at_a_collector_and_sent_again_when_needed() {
    let (mut recorder, out, _) = recorder("heap=all,cutoff=0,format=b,modern=y,net=h:1", None);
    let mut vm = small_vm();
    let class = vm.class("Ldemo/Script;", None, &[]);
    vm.heap.push(Thing::Class(
        ObjectHandle(11),
        class,
        TraceId::EMPTY,
        [ObjectHandle::NULL; 4],
        vec![],
        vec![],
    ));
    start(&mut recorder, &mut vm);
    vm.batch.get_mut().expect("lock").allocations.clear();
    recorder.command(&vm, &Command::DumpHeap);
    unload(&mut recorder, &vm, class, false);
    vm.heap.pop();
    recorder.command(&vm, &Command::DumpHeap);
    let loads = reported(&out.bytes()).0;
    let of_script: Vec<_> = loads.iter().filter(|one| one.contains("Script")).collect();
    assert_eq!(of_script, ["+demo.Script", "-demo.Script"]);
}

#[test]
fn results_of_factories_are_sent_once_and_forgotten_with_their_classes() {
    let (mut recorder, out, _) = recorder("heap=sites,cutoff=0,format=b,modern=y,net=h:1", None);
    let mut vm = small_vm();
    start(&mut recorder, &mut vm);
    vm.batch.get_mut().expect("lock").allocations.clear();
    let answer = |recorder: &mut Recorder, anew, class| {
        let answers = [ClassAnswer {
            class,
            options: None,
        }];
        let event = Event::ClassOptions {
            anew,
            answers: &answers,
        };
        recorder.notify(&vm, &event);
    };
    // The classes of each CLASS OPTIONS.
    let results = |bytes: &[u8]| {
        let mut found = Vec::new();
        let read = hprof::map_file(bytes, |record| {
            if record.tag == private_records::PrivateTag::ClassOptions as u8 {
                let rows = record.body.chunks_exact(9);
                let class = |row: &[u8]| u32::from_be_bytes([row[0], row[1], row[2], row[3]]);
                found.push(rows.map(class).collect::<Vec<_>>());
            }
        });
        read.expect("a stream");
        found
    };
    for class in [100, 101, 102].map(ClassId) {
        load(&mut recorder, &vm, class, &format!("Script{}", class.0));
        answer(&mut recorder, class.0 == 100, class);
        recorder.command(&vm, &ALL_SITES);
        if class.0 < 102 {
            unload(&mut recorder, &vm, class, false);
        }
    }
    recorder.command(&vm, &ALL_SITES);
    let classes = reported(&out.bytes()).0;
    let of_scripts = classes.iter().filter(|one| one.contains("Script"));
    let of_scripts: Vec<_> = of_scripts.collect();
    let expected = [
        "+Script100",
        "-Script100",
        "+Script101",
        "-Script101",
        "+Script102",
    ];
    assert_eq!(of_scripts, expected);
    let sent = results(&out.bytes());
    assert_eq!((sent.len(), &sent[0]), (4, &vec![]), "{sent:?}");
    assert!(sent[1..].iter().all(|one| one.len() == 1), "{sent:?}");
    // Another output gets those that hold.
    let again = crate::scripted::Shared::default();
    recorder.begin_again(&vm, Box::new(again.clone()));
    recorder.command(&vm, &ALL_SITES);
    recorder.flush();
    let sent_again = results(&again.bytes());
    assert_eq!(sent_again, [sent[3].clone()]);
}
