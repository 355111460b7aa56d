//! The original's text profiles, converted into VM events, sent to the recorder, and compared
//! with what it writes. Whatever the reader, the tables, the ranking, the order of sections or
//! the writer get wrong shows here.
//!
//! Masked: dates. Deliberately different, and left out of the comparison (facts, section 7):
//! constant pool entries in `CLS`, the trace of a JNI global root, THREAD END without THREAD START.

use crate::scripted::recorder;
use crate::teller::{Teller, emit, handle, text, thread};
use agent_core::Recorder;
use agent_core::options::{Parsed, parse};
use hprof_text::{
    MonitorWait, Root as TextRoot, RootKind, TextReader, TextRecord, ThreadStart, write_record,
};
use testkit::oracle::{Case, cases};
use vmpi::{ClassId, Event, MonitorEvent, MonitorId, Profiler, ThreadId, ThreadInfo, TraceId};

/// Runs whose text cannot be replayed, with the reason.
const SKIPPED: &[(&str, &str)] = &[
    (
        "big-sites-overflow",
        "32-bit totals: the original printed an empty table (defect 6)",
    ),
    (
        "cpu-samples-times",
        "the original mixed both costs under one title",
    ),
    (
        "old-heap-sites",
        "the file does not say which traces the call pairs belong to",
    ),
    (
        "quit-cpu-times",
        "negative self times: the shares add up to 101 % (defect 10)",
    ),
    ("net-sites-txt", "sections on command"),
    ("net-summary-txt", "sections on command"),
];

/// Records with dates and deliberate differences masked.
fn masked<'a>(records: &[TextRecord<'a>]) -> Vec<TextRecord<'a>> {
    let mut started = Vec::new();
    let mut kept = Vec::new();
    for record in records {
        let mut record = record.clone();
        match &mut record {
            TextRecord::Header(header) => header.created = b"",
            TextRecord::SitesBegin { date, .. }
            | TextRecord::CpuBegin { date, .. }
            | TextRecord::MonitorTimeBegin { date, .. }
            | TextRecord::HeapBegin { date, .. } => *date = b"",
            TextRecord::ThreadStart(start) => started.push(start.thread),
            TextRecord::ThreadEnd { thread } if !started.contains(thread) => continue,
            TextRecord::Class(class) => class.constants.clear(),
            TextRecord::Root(TextRoot {
                kind: RootKind::JniGlobal { trace, .. },
                ..
            }) => *trace = 0,
            _ => {}
        }
        kept.push(record);
    }
    kept
}

/// Replays the whole file to a recorder; returns its output and its messages.
fn replay(case: &Case, records: &[TextRecord<'_>]) -> (Vec<u8>, String) {
    let environment = case.environment.as_deref();
    let Ok(Parsed::Run(options)) = parse(&case.options[0], environment) else {
        panic!()
    };
    let (mut recorder, out, printed) = recorder(&case.options[0], environment);
    let mut teller = Teller::new(&options);
    let info = teller.vm.info.clone();
    recorder.notify(
        &teller.vm,
        &Event::VmInit {
            info: &info,
            main: ThreadId(1),
        },
    );
    announce_older(&mut recorder, &teller, records);
    let mut at = 0;
    let mut ended = false;
    while let Some(record) = records.get(at) {
        at += 1;
        match record {
            TextRecord::Header(_) | TextRecord::Prelude(_) => {}
            TextRecord::ThreadStart(start) => thread_start(&mut recorder, &mut teller, start),
            TextRecord::ThreadEnd { thread: id } => {
                recorder.notify(
                    &teller.vm,
                    &Event::ThreadEnded {
                        thread: thread(*id),
                    },
                );
            }
            TextRecord::Wait(one) => wait(&mut recorder, &mut teller, one),
            _ => {
                at -= 1;
                at += emit(&mut teller, &records[at..]);
                define(&mut recorder, &mut teller);
                *teller.vm.batch.get_mut().expect("lock") = std::mem::take(&mut teller.batch);
                ended = at == records.len() && options.dump_on_exit;
                let event = if ended {
                    Event::VmDeath
                } else {
                    Event::DumpRequested
                };
                recorder.notify(&teller.vm, &event);
                teller.vm.stacks.clear();
                teller.vm.monitors.clear();
                teller.vm.heap.clear();
            }
        }
    }
    if !ended && !options.dump_on_exit {
        recorder.notify(&teller.vm, &Event::VmDeath);
    }
    (out.bytes(), printed.text())
}

/// Threads the file never saw start were there before the agent.
fn announce_older(recorder: &mut Recorder, teller: &Teller<'_>, records: &[TextRecord<'_>]) {
    let started = |id: u32| {
        let starts = |record: &TextRecord<'_>| matches!(record, TextRecord::ThreadStart(start) if start.thread == id);
        records.iter().any(starts)
    };
    for record in records {
        let TextRecord::MonitorThread(one) = record else {
            continue;
        };
        if !started(one.thread) {
            let info = ThreadInfo {
                predates_profiler: true,
                ..ThreadInfo::default()
            };
            let (thread, trace) = (thread(one.thread), TraceId::EMPTY);
            let event = Event::ThreadStarted {
                thread,
                info: &info,
                trace,
            };
            recorder.notify(&teller.vm, &event);
        }
    }
}

fn thread_start(recorder: &mut Recorder, teller: &mut Teller<'_>, start: &ThreadStart<'_>) {
    let info = ThreadInfo {
        name: text(start.name),
        group: text(start.group),
        object: handle(start.object),
        ..ThreadInfo::default()
    };
    let id = thread(start.thread);
    teller.vm.threads.insert(id, info.clone());
    let event = Event::ThreadStarted {
        thread: id,
        info: &info,
        trace: TraceId::EMPTY,
    };
    recorder.notify(&teller.vm, &event);
}

fn wait(recorder: &mut Recorder, teller: &mut Teller<'_>, one: &MonitorWait<'_>) {
    let class = teller.vm.class(&text(one.monitor), None, &[]);
    let what = if one.done {
        MonitorEvent::Waited {
            timed_out: true,
            waited_ns: one.time as u64 * 1_000_000,
        }
    } else {
        MonitorEvent::Wait {
            timeout_ms: one.time,
        }
    };
    let event = Event::Monitor {
        what,
        thread: thread(one.thread),
        monitor: MonitorId(1),
        class,
        trace: TraceId::EMPTY,
    };
    recorder.notify(&teller.vm, &event);
}

/// Introduces new traces, and every class that has a class object.
fn define(recorder: &mut Recorder, teller: &mut Teller<'_>) {
    for (id, trace) in std::mem::take(&mut teller.traces) {
        recorder.notify(&teller.vm, &Event::TraceDefined { id, trace: &trace });
    }
    for at in 0..teller.vm.classes.len() {
        let info = teller.vm.classes[at].0.clone();
        let class = ClassId(at as u32 + 1);
        let (trace, thread) = (TraceId::EMPTY, ThreadId::NONE);
        let event = Event::ClassLoaded {
            class,
            info: &info,
            trace,
            thread,
        };
        recorder.notify(&teller.vm, &event);
    }
}

fn bytes(record: &TextRecord<'_>) -> String {
    let mut out = Vec::new();
    write_record(&mut out, record).expect("memory");
    String::from_utf8_lossy(&out).into_owned()
}

#[test]
fn every_text_profile_of_the_original_is_written_again_from_events() {
    let mut replayed = 0;
    for case in cases() {
        if SKIPPED.iter().any(|(name, _)| *name == case.name) || case.exit == 9 || case.exit < 0 {
            continue;
        }
        for file in case.files() {
            let Some(original) = case.file(&file) else {
                continue;
            };
            if !hprof_text::is_text(&original) {
                continue;
            }
            let records: Vec<_> = TextReader::new(&original).collect();
            let (ours, printed) = replay(&case, &records);
            let expected = masked(&records);
            let ours: Vec<_> = TextReader::new(&ours).collect();
            let mut ours = masked(&ours);
            // What the original leaves out without a word.
            ours.retain(|line| !bytes(line).starts_with("NOTE: the sites that are left out "));
            let name = format!("{} {file}", case.name);
            let pairs = ours.iter().zip(&expected);
            if let Some((ours, expected)) = pairs.into_iter().find(|(a, b)| bytes(a) != bytes(b)) {
                assert_eq!(bytes(ours), bytes(expected), "{name}");
            }
            assert_eq!(ours.len(), expected.len(), "{name}: {:?}", ours.last());
            let dumping = |text: &str| -> Vec<String> {
                let lines = text.lines().filter(|line| line.starts_with("Dumping"));
                lines.map(str::to_owned).collect()
            };
            assert_eq!(dumping(&printed), dumping(&case.text("stderr")), "{name}");
            replayed += 1;
        }
    }
    assert!(
        replayed == 0 || replayed > 55,
        "only {replayed} profiles replayed"
    );
}
