//! The recorder on a small scripted VM: binary output, commands, and what it survives.

use crate::scripted::{Batch, Process, ScriptedVm, Shared, Thing, recorder};
use agent_core::control::{Command, Decoder, Form, StreamMeter, Switch};
use agent_core::options::{Parsed, parse};
use agent_core::{Reaction, Recorder};
use hprof::{HeapTag, Record, RecordTag, map_file};
use profile::Metric;
use std::io::{self, Write};
use vmpi::{
    AllocationRow, BasicType, ClassId, CostRow, Event, FieldInfo, FreeRow, Location, MonitorEvent,
    MonitorId, ObjectHandle, Profiler, Root, SampleRow, SampleTiming, ThreadId, ThreadInfo,
    TraceId, Value,
};

const MAIN: ThreadId = ThreadId(1);
const HOT: TraceId = TraceId(1);
const COLD: TraceId = TraceId(2);

/// A VM with two methods, two traces, a class with objects, and counts of every kind.
pub(crate) fn small_vm() -> ScriptedVm {
    let mut vm = ScriptedVm::new();
    let node = vm.class("Ldemo/Node;", Some("Node.java"), &[]);
    let ints = vm.class("[I", None, &[]);
    let field = |name: &str, descriptor: &str, is_static| FieldInfo {
        name: name.into(),
        descriptor: descriptor.into(),
        is_static,
    };
    let object = ObjectHandle;
    vm.heap = vec![
        Thing::Root(
            object(1),
            Root::ThreadObject {
                thread: MAIN,
                trace: HOT,
            },
        ),
        Thing::Root(
            object(2),
            Root::JavaFrame {
                thread: MAIN,
                depth: Some(0),
            },
        ),
        Thing::Root(object(3), Root::JniGlobal),
        Thing::Root(object(9), Root::StickyClass),
        Thing::Object(
            object(2),
            node,
            object(9),
            HOT,
            24,
            vec![Value::Object(object(3)), Value::Long(-2)],
        ),
        Thing::Primitives(object(3), ints, COLD, BasicType::Int, 2, ints_of(&[1, 258])),
        Thing::References(
            object(4),
            node,
            object(9),
            COLD,
            32,
            vec![object(2), ObjectHandle::NULL],
        ),
        Thing::Class(
            object(9),
            node,
            TraceId::EMPTY,
            [ObjectHandle::NULL; 4],
            vec![(field("count", "I", true), Value::Int(7))],
            vec![
                field("next", "Ldemo/Node;", false),
                field("key", "J", false),
            ],
        ),
    ];
    let batch = vm.batch.get_mut().expect("lock");
    let row = |class, trace, objects, bytes| AllocationRow {
        class,
        trace,
        objects,
        bytes,
        ..AllocationRow::default()
    };
    *batch = Batch {
        allocations: vec![row(node, HOT, 100, 2400), row(ints, COLD, 3, 5_000_000_000)],
        frees: vec![FreeRow {
            class: ints,
            trace: COLD,
            objects: 1,
            bytes: 4_999_999_000,
            ..Default::default()
        }],
        costs: vec![CostRow {
            trace: HOT,
            calls: 7,
            self_ns: 3_000_000,
            total_ns: 9_000_000,
        }],
        samples: vec![SampleRow {
            thread: MAIN,
            trace: HOT,
            samples: 9,
        }],
        sample_timing: SampleTiming {
            interruptions: 10,
            intervals: 25,
        },
        wall: crate::wall_clock::rows(HOT, COLD),
    };
    vm
}

fn ints_of(numbers: &[i32]) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|number| number.to_ne_bytes())
        .collect()
}

/// Starts the VM and introduces everything.
pub(crate) fn start(recorder: &mut Recorder, vm: &mut ScriptedVm) {
    let class = ClassId(1);
    let hot = vm.method(class, "hot", "(I)V");
    let main = vm.method(class, "main", "([Ljava/lang/String;)V");
    let top = vm.frame(hot, Some(3));
    let bottom = vm.frame(main, Some(14));
    let native = vmpi::Frame {
        method: hot,
        location: Location::Native,
    };
    let info = vm.info.clone();
    recorder.notify(
        vm,
        &Event::VmInit {
            info: &info,
            main: MAIN,
        },
    );
    for at in 0..vm.classes.len() {
        vm.classes[at].0.mirror = ObjectHandle(9 + at as u64);
        let (info, class) = (vm.classes[at].0.clone(), ClassId(at as u32 + 1));
        let (trace, thread) = (TraceId::EMPTY, MAIN);
        recorder.notify(
            vm,
            &Event::ClassLoaded {
                class,
                info: &info,
                trace,
                thread,
            },
        );
    }
    let info = ThreadInfo {
        name: "main".into(),
        group: "main".into(),
        parent_group: "system".into(),
        object: ObjectHandle(1),
        ..ThreadInfo::default()
    };
    vm.threads.insert(MAIN, info.clone());
    recorder.notify(
        vm,
        &Event::ThreadStarted {
            thread: MAIN,
            info: &info,
            trace: TraceId::EMPTY,
        },
    );
    for (id, frames) in [(HOT, vec![top, bottom]), (COLD, vec![native, bottom])] {
        let trace = vmpi::Trace {
            thread: ThreadId::NONE,
            frames,
        };
        recorder.notify(vm, &Event::TraceDefined { id, trace: &trace });
    }
}

/// A whole run with these options.
pub(crate) fn run(options: &str) -> Vec<u8> {
    let (mut recorder, out, _) = recorder(options, None);
    let mut vm = small_vm();
    start(&mut recorder, &mut vm);
    let event = Event::Monitor {
        what: MonitorEvent::ContendedEntered {
            waited_ns: 2_500_000,
        },
        thread: MAIN,
        monitor: MonitorId(1),
        class: ClassId(1),
        trace: HOT,
    };
    recorder.notify(&vm, &event);
    recorder.notify(&vm, &Event::ThreadEnded { thread: MAIN });
    recorder.notify(&vm, &Event::VmDeath);
    out.bytes()
}

/// Tags of all records that are not heap.
fn tags(bytes: &[u8]) -> Vec<RecordTag> {
    let mut tags = Vec::new();
    let map = map_file(bytes, |raw| tags.extend(raw.known_tag())).expect("a header");
    assert!(
        map.diagnostics.is_empty(),
        "{:?}",
        map.diagnostics.iter().next()
    );
    tags
}

#[test]
fn binary_output_has_no_finding_in_any_mode() {
    for options in [
        "format=b",
        "format=b,heap=dump",
        "format=b,heap=sites,cutoff=0",
        "format=b,cpu=samples",
        "format=b,modern=y",
        "format=b,modern=y,cpu=times,monitor=y,heap=all",
        "format=b,modern=y,cpu=old,cpu=samples",
        "format=b,heap=dump,primfields=n,primarrays=n",
    ] {
        let bytes = run(options);
        let tags = tags(&bytes);
        assert_eq!(tags[0], RecordTag::ControlSettings, "{options}");
        let diagnostics = match profile::read(&bytes) {
            Ok((_, diagnostics)) => diagnostics,
            Err(error) => {
                assert_eq!(error, profile::NoProfile::OnlyHeap, "{options}");
                assert!(options.contains("heap=dump"), "{options}");
                hprof::map_file(&bytes, |_| {}).expect(options).diagnostics
            }
        };
        assert!(diagnostics.is_empty(), "{options}");
    }
}

#[test]
fn every_name_comes_before_its_first_use() {
    let bytes = run("format=b,modern=y");
    let header = hprof::Header::parse(&bytes).expect("a header");
    let mut names = vec![hprof::ObjectId::NULL];
    map_file(&bytes, |raw| match raw.decode(header.id_size) {
        Some(Record::Utf8 { id, .. }) => names.push(id),
        Some(Record::LoadClass { name, .. }) => assert!(names.contains(&name)),
        Some(Record::Frame(frame)) => {
            for name in [frame.method, frame.signature, frame.source] {
                assert!(names.contains(&name));
            }
        }
        Some(Record::StartThread {
            name,
            group,
            parent_group,
            ..
        }) => {
            assert!(
                [name, group, parent_group]
                    .iter()
                    .all(|name| names.contains(name))
            );
        }
        _ => {}
    })
    .expect("a header");
    assert!(names.len() > 8);
}

#[derive(Default)]
struct Seen {
    roots: Vec<HeapTag>,
    instances: Vec<(u64, u32, Vec<u8>)>,
    arrays: Vec<(u64, Vec<u8>)>,
    classes: u32,
}

impl hprof::HeapVisitor for Seen {
    fn root(&mut self, _: hprof::FileOffset, root: hprof::Root) {
        self.roots.push(root.kind);
    }
    fn instance(&mut self, _: hprof::FileOffset, one: hprof::Instance<'_>) {
        self.instances
            .push((one.id.0, one.trace.0, one.fields.to_vec()));
    }
    fn primitive_array(&mut self, _: hprof::FileOffset, one: hprof::PrimitiveArray<'_>) {
        self.arrays.push((one.id.0, one.data.to_vec()));
    }
    fn class(&mut self, _: hprof::FileOffset, _: &hprof::ClassDump<'_>) {
        self.classes += 1;
    }
}

fn heap_of(bytes: &[u8]) -> (hprof::FileMap, Seen) {
    let map = map_file(bytes, |_| {}).expect("a header");
    let mut seen = Seen::default();
    map.walk(bytes, &mut seen);
    (map, seen)
}

#[test]
fn a_compat_dump_has_four_byte_ids_and_allocation_traces() {
    let (map, seen) = heap_of(&run("format=b,heap=dump"));
    assert_eq!(map.header.format, "JAVA PROFILE 1.0.1");
    assert_eq!(map.header.id_size.bytes(), 4);
    assert_eq!(map.segments.len(), 1);
    assert_eq!(seen.roots[0], HeapTag::RootThreadObject);
    assert_eq!(seen.roots.len(), 4);
    let fields = [&0x5000_0003u32.to_be_bytes()[..], &(-2i64).to_be_bytes()].concat();
    assert_eq!(seen.instances, [(0x5000_0002, 300_001, fields)]);
    assert_eq!(seen.arrays, [(0x5000_0003, vec![0, 0, 0, 1, 0, 0, 1, 2])]);
    assert_eq!(seen.classes, 1);
}

#[test]
fn a_modern_dump_has_eight_byte_ids() {
    let (map, seen) = heap_of(&run("format=b,heap=dump,modern=y"));
    assert_eq!(map.header.format, "JAVA PROFILE 1.0.2");
    assert_eq!(map.header.id_size.bytes(), 8);
    assert_eq!(seen.roots.len(), 4);
    assert_eq!(seen.instances[0].0, 2);
}

#[test]
fn primitives_can_be_left_out() {
    let (_, seen) = heap_of(&run("format=b,heap=dump,primfields=n,primarrays=n"));
    assert_eq!(seen.arrays[0].1, Vec::<u8>::new());
    assert_eq!(seen.instances[0].2[4..], [0; 8]);
}

#[test]
fn counts_survive_the_binary_form() {
    let bytes = run("format=b,modern=y,cpu=times,cpu=samples,monitor=y,heap=sites,cutoff=0");
    let (profile, _) = profile::read(&bytes).expect("a profile");
    let sum = |metric| -> u64 { profile.stacks(metric).map(|stack| stack.value).sum() };
    assert_eq!(sum(Metric::Samples), 9);
    assert_eq!(sum(Metric::Calls), 7);
    assert_eq!(sum(Metric::CpuTime), 3_000_000);
    assert_eq!(sum(Metric::Blocked), 2_500_000);
    // Wider than the 32 bits of ALLOC SITES.
    assert_eq!(sum(Metric::AllocatedBytes), 5_000_002_400);
    assert_eq!(sum(Metric::LiveBytes), 3_400);
    let top = profile.stacks(Metric::Samples).next().expect("a stack");
    assert_eq!(profile.path(&top), ["demo.Node.main", "demo.Node.hot"]);
    let (pairs, _) = profile::read(&run("format=b,modern=y,cpu=old")).expect("a profile");
    let top = pairs.stacks(Metric::Calls).next().expect("a stack");
    assert_eq!(pairs.path(&top), ["demo.Node.main", "demo.Node.hot"]);
}

#[test]
fn both_forms_say_the_same_of_monitors_and_waits() {
    let of = |options: &str| {
        let (mut recorder, out, _) = recorder(options, None);
        let mut vm = small_vm();
        let state = vmpi::ThreadState {
            alive: true,
            waiting: true,
            interrupted: true,
            ..Default::default()
        };
        vm.stacks.push(vmpi::ThreadStack {
            thread: MAIN,
            state,
            trace: HOT,
        });
        vm.monitors.push(vmpi::MonitorInfo {
            monitor: MonitorId(1),
            class: ClassId(1),
            owner: Some(MAIN),
            entry_count: 2,
            waiting_to_enter: vec![MAIN],
            waiting_to_be_notified: Vec::new(),
        });
        start(&mut recorder, &mut vm);
        let waits = [
            MonitorEvent::Wait { timeout_ms: 100 },
            MonitorEvent::Waited {
                waited_ns: 72_000_000,
                timed_out: false,
            },
        ];
        for what in waits {
            let (monitor, class) = (MonitorId(1), ClassId(1));
            let event = Event::Monitor {
                what,
                thread: MAIN,
                monitor,
                class,
                trace: HOT,
            };
            recorder.notify(&vm, &event);
        }
        recorder.notify(&vm, &Event::VmDeath);
        let (profile, faults) = profile::read(&out.bytes()).expect("a profile");
        assert!(faults.is_empty(), "{options}");
        let name = |id| profile.names.get(id).to_owned();
        let waits = profile.waits.iter();
        let waits: Vec<_> = waits
            .map(|wait| (name(wait.class), wait.thread, wait.waited_ns))
            .collect();
        assert_eq!(profile.monitor_dumps.len(), 1, "{options}");
        let dump = &profile.monitor_dumps[0];
        let threads = dump.threads.iter();
        let threads: Vec<_> = threads
            .map(|row| {
                let stack = profile.trace_names(row.trace);
                (row.thread, row.status.clone(), stack)
            })
            .collect();
        let monitors = dump.monitors.iter();
        let monitors: Vec<_> = monitors
            .map(|row| (name(row.class), row.owner, row.waiting_to_enter.clone()))
            .collect();
        (waits, threads, monitors)
    };
    let (waits, threads, monitors) = of("monitor=y,format=b,modern=y");
    assert_eq!(waits, [("demo.Node".to_owned(), 200_001, 72_000_000)]);
    let status = threads.iter().find(|row| row.0 == 200_001);
    assert_eq!(status.map(|row| &*row.1), Some("intr|CW"));
    assert_eq!(monitors[0].1, Some((200_001, 2)));
    assert_eq!(monitors[0].2, [200_001]);
    assert_eq!(of("monitor=y"), (waits, threads, monitors));
}

#[test]
fn contention_of_milliseconds_is_printed() {
    // The original divided milliseconds by a million and never printed the section.
    let text = String::from_utf8(run("monitor=y")).expect("text");
    assert!(text.contains("MONITOR TIME BEGIN (total = 2 ms)"), "{text}");
    assert!(
        text.contains("   1 100.00% 100.00%       1 300001 Ldemo/Node; (Java)\n"),
        "{text}"
    );
}

#[test]
fn sampled_sites_print_what_the_samples_stand_for() {
    let (mut recorder, out, _) = recorder("alloc=1m,cutoff=0", None);
    let mut vm = small_vm();
    start(&mut recorder, &mut vm);
    recorder.notify(&vm, &Event::VmDeath);
    let text = out.text();
    // 100 samples of 24 bytes, one per MiB on average: about 100 MiB.
    let row = text
        .lines()
        .find(|line| line.ends_with("demo.Node"))
        .expect("a row");
    let bytes: u64 = row
        .split_whitespace()
        .nth(3)
        .expect("bytes")
        .parse()
        .expect("a number");
    assert!(bytes.abs_diff(100 << 20) < 10_000, "{row}");
    // The class table has the interval of the estimate and a rate over the 338 ms of the run.
    let (_, estimates) = text.split_once("CLASS ESTIMATES BEGIN").expect("estimates");
    let row = estimates
        .lines()
        .find(|line| line.ends_with("demo.Node"))
        .expect("a row");
    let record = hprof_text::TextReader::new(text.as_bytes()).find_map(|record| match record {
        hprof_text::TextRecord::Estimate(one) if one.class == b"demo.Node" => Some(one),
        _ => None,
    });
    let [value, low, high] = record.expect(row).allocated_bytes;
    assert_eq!(value, bytes);
    assert!(
        low < value * 9 / 10 && value * 11 / 10 < high && high < value * 3 / 2,
        "{row}"
    );
    assert!(
        record.expect(row).rate.abs_diff(bytes * 1000 / 338) < 10,
        "{row}"
    );
}

#[test]
fn native_frames_are_marked_in_modern_mode_only() {
    let text = |options| String::from_utf8(run(options)).expect("text");
    assert!(text("heap=sites").contains("\tdemo.Node.hot(Node.java:Unknown line)\n"));
    assert!(text("heap=sites,modern=y").contains("\tdemo.Node.hot(Node.java:Native method)\n"));
    assert!(text("heap=sites,lineno=n").contains("main(Node.java:Unknown line)\n"));
}

#[test]
fn commands_of_the_collector_are_carried_out() {
    let (mut recorder, out, printed) = recorder("heap=all,cpu=samples,format=b,net=h:1", None);
    let mut vm = small_vm();
    start(&mut recorder, &mut vm);
    let answer = |recorder: &mut Recorder, command: Command| {
        let before = out.bytes().len();
        let reaction = recorder.command(&vm, &command);
        (reaction, out.bytes().len() - before)
    };
    let go = Reaction::Continue;
    assert_eq!(answer(&mut recorder, Command::ForceGc), (go, 0));
    assert!(answer(&mut recorder, Command::DumpTraces).1 > 100);
    assert_eq!(
        answer(&mut recorder, Command::DumpTraces),
        (go, 0),
        "nothing new"
    );
    assert_eq!(answer(&mut recorder, Command::HeapSummary), (go, 9 + 24));
    let sites = Command::AllocSites {
        flags: 6,
        cutoff: 0.0,
    };
    assert!(answer(&mut recorder, sites).1 >= 9 + 34 + 2 * 25);
    let samples = Command::CpuSamples { cutoff: 0.0 };
    assert_eq!(
        answer(&mut recorder, samples.clone()),
        (go, 9 + 16),
        "one row"
    );
    assert_eq!(
        answer(&mut recorder, samples.clone()),
        (go, 9 + 16),
        "costs are not reset"
    );
    assert_eq!(
        answer(&mut recorder, Command::Control(Switch::ClearSamples)),
        (go, 0)
    );
    assert_eq!(answer(&mut recorder, samples), (go, 9 + 8), "no row");
    let stop = Switch::Sampling {
        on: false,
        thread: Some(0x0100_0050),
    };
    assert_eq!(answer(&mut recorder, Command::Control(stop)), (go, 0));
    assert!(answer(&mut recorder, Command::DumpHeap).1 > 200);
    assert_eq!(
        answer(&mut recorder, Command::Unknown(99)).0,
        Reaction::StopListening
    );
    assert_eq!(
        answer(&mut recorder, Command::Eof).0,
        Reaction::StopListening
    );
    assert_eq!(answer(&mut recorder, Command::Exit).0, Reaction::Exit(0));
    assert!(
        printed
            .text()
            .contains("received exit event, exiting ...\n")
    );
    assert_eq!(
        *vm.collections.lock().expect("lock"),
        2,
        "once asked, once by a flag"
    );
    let controls = vm.controls.lock().expect("lock");
    // The id of the thread object was sent in the other byte order.
    let expected = vmpi::Control::Sampling {
        on: false,
        thread: Some(MAIN),
    };
    assert_eq!(*controls, [expected]);
    tags(&out.bytes());
}

#[test]
fn the_collector_receives_the_stream() {
    let (mut recorder, out, _) = recorder("format=b,net=h:1", None);
    let mut vm = small_vm();
    start(&mut recorder, &mut vm);
    recorder.notify(&vm, &Event::VmDeath);
    let bytes = out.bytes();
    let mut meter = StreamMeter::default();
    for piece in bytes.chunks(7) {
        meter.push(piece);
    }
    let progress = meter.progress();
    assert_eq!(
        (progress.form, progress.bytes),
        (Some(Form::Binary), bytes.len() as u64)
    );
    assert!(progress.at_boundary);
    let records: u64 = progress.records.values().sum();
    let map = map_file(&bytes, |_| {}).expect("a header");
    assert_eq!(
        records,
        map.records.iter().map(|(_, count)| count).sum::<u64>()
    );

    let mut meter = StreamMeter::default();
    run("heap=sites")
        .chunks(1000)
        .for_each(|piece| meter.push(piece));
    assert_eq!(meter.progress().form, Some(Form::Text));
    assert!(meter.progress().last.starts_with("SITES"));
    let mut decoder = Decoder::default();
    decoder.push(&Command::DumpHeap.encode(1));
    assert_eq!(decoder.next_command(), Some(Command::DumpHeap));
}

/// An output that breaks after some bytes.
struct Breaks(usize, Shared);

impl Write for Breaks {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0 == 0 {
            return Err(io::Error::other("Broken pipe"));
        }
        self.0 = self.0.saturating_sub(bytes.len());
        self.1.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_broken_output_is_reported_once_and_ends_nothing() {
    for options in ["heap=all", "heap=all,format=b"] {
        let Ok(Parsed::Run(parsed)) = parse(options, None) else {
            panic!()
        };
        let printed = Shared::default();
        let out = Box::new(Breaks(5000, Shared::default()));
        let mut recorder = Recorder::new(*parsed, out, Box::new(Process(printed.clone())));
        let mut vm = small_vm();
        start(&mut recorder, &mut vm);
        for _ in 0..40 {
            recorder.notify(&vm, &Event::DumpRequested);
        }
        recorder.notify(&vm, &Event::VmDeath);
        assert_eq!(
            printed.text().matches("Broken pipe").count(),
            1,
            "{options}"
        );
    }
}

#[test]
fn what_was_lost_is_in_the_profile() {
    let (mut recorder, out, _) = recorder("cpu=samples", None);
    let mut vm = small_vm();
    start(&mut recorder, &mut vm);
    for count in [2, 3] {
        recorder.notify(
            &vm,
            &Event::Lost {
                what: "samples without a stack",
                count,
            },
        );
    }
    recorder.notify(&vm, &Event::VmDeath);
    let text = out.text();
    let (_, notes) = text.split_once("CPU SAMPLES END\n").expect("a table");
    assert!(notes.ends_with("NOTE: 5 lost: samples without a stack\n"));
}

#[test]
fn the_interval_of_samples_and_the_notes_are_in_the_binary_form() {
    let options = "cpu=samples,interval=2500us,cutoff=0,format=b,modern=y";
    let (mut recorder, out, _) = recorder(options, None);
    let mut vm = small_vm();
    start(&mut recorder, &mut vm);
    let (what, count) = ("samples without a stack", 5);
    recorder.notify(&vm, &Event::Lost { what, count });
    recorder.notify(&vm, &Event::VmDeath);
    let (profile, _) = profile::read(&out.bytes()).expect("a profile");
    let notes = profile.agent_notes.join("\n");
    assert!(notes.contains("one stack for 6.25 ms"), "{notes}");
    assert!(notes.ends_with("5 lost: samples without a stack"));
    assert_eq!(profile.samples.expect("a table").interval_ns, 2_500_000);
}

#[test]
fn a_collector_gets_each_note_with_its_next_table_and_all_at_the_end() {
    let (mut recorder, out, _) = recorder("heap=sites,cutoff=0,net=h:1", None);
    let mut vm = small_vm();
    start(&mut recorder, &mut vm);
    let sites = Command::AllocSites {
        flags: 0,
        cutoff: 0.0,
    };
    let notes = || {
        let text = out.text();
        let notes = text.lines().filter_map(|line| line.strip_prefix("NOTE: "));
        notes.map(str::to_owned).collect::<Vec<_>>()
    };
    let (first, again) = (
        "memory= is reached: 5 bytes",
        "memory= is reached: 17 bytes",
    );
    for (what, expected) in [
        (first, &[first][..]),
        (again, &[first]),
        ("no timers", &[first, "no timers"]),
    ] {
        recorder.notify(&vm, &Event::Degraded { what });
        recorder.command(&vm, &sites);
        recorder.command(&vm, &sites);
        assert_eq!(notes(), expected);
    }
    recorder.notify(&vm, &Event::VmDeath);
    assert_eq!(notes(), [first, "no timers", again, "no timers"]);
}
