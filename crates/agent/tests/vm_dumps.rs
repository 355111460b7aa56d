//! Dumps over the socket: a stock VM reports to a front end what is in its heap and at its monitors, by
//! the ids of the stream.

use std::collections::{HashMap, HashSet};
use std::net::TcpListener;
use std::process::Command as Process;

use crate::common::Lab;
use crate::common::front::{Front, Received};
use crate::common::stage::Talk;
use testkit::jvm::Jdk;
use vmpi::dump::heap::decode;
use vmpi::dump::monitor::{MonitorName, MonitorRecord, decode as decode_monitors};
use vmpi::dump::{ClassDump, HeapRecord, IdLayout, RootKind, field_values};
use vmpi::wire::Command;
use vmpi::{BasicType, DumpLevel, EventKind, ObjectHandle, Outcome, Value};

const NODES: usize = 3000;

/// Collectors to be tried; those that a runtime does not have are passed over.
fn collectors(lab: &Lab, jdk: &Jdk) -> &'static [&'static str] {
    let is_newest = lab.jdks.last().is_some_and(|last| last.home == jdk.home);
    match crate::common::is_matrix() {
        true => &["Serial", "Parallel", "G1", "Z", "Shenandoah"],
        false if is_newest => &["Serial", "G1", "Z"],
        false => &["G1"],
    }
}

/// A program under the agent and its front end.
struct Play {
    java: Talk,
    front: Front,
    what: String,
}

/// Starts the program and waits until it stands still.
fn play(lab: &Lab, jdk: &Jdk, collector: &str, more: &[&str]) -> Option<Play> {
    let flag = format!("-XX:+Use{collector}GC");
    if !lab
        .run(jdk, None, &[&flag], &["Trouble", "lambda"])
        .output
        .status
        .success()
    {
        return None;
    }
    let classes = lab.compile("Still.java", 8)?;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let mut java = Process::new(jdk.tool("java"));
    java.arg(format!(
        "-agentpath:{}=events=512,net={address}",
        lab.agent.display()
    ))
    .args([crate::common::kept_report("Still"), flag])
    .args(["-Xmx96m", "-cp"])
    .arg(classes.path())
    .arg("Still")
    .args(more);
    let mut java = Talk::start(java);
    let front = Front::accept(&listener);
    java.expect("ready");
    let what = format!("{} {collector}", jdk.full_version);
    Some(Play { java, front, what })
}

/// A dump by object, which are in it once.
struct Dump {
    classes: HashMap<ObjectHandle, ClassDump>,
    objects: HashMap<u64, HeapRecord>,
    roots: Vec<(ObjectHandle, RootKind)>,
}

impl Dump {
    fn read(received: &mut Received, level: DumpLevel) -> Self {
        let dump = received.heap_dump.take().expect("a dump");
        assert_eq!(dump.level, level);
        let (records, damage) = decode(&dump.data, level, IdLayout::NATIVE, &received.classes);
        assert_eq!(damage, None);
        let mut read = Self {
            classes: HashMap::new(),
            objects: HashMap::new(),
            roots: Vec::new(),
        };
        for record in records {
            let object = match &record {
                HeapRecord::Root { object, why } => {
                    read.roots.push((*object, *why));
                    continue;
                }
                HeapRecord::Class(class) => {
                    assert!(read.classes.insert(class.class, class.clone()).is_none());
                    continue;
                }
                HeapRecord::Instance { object, .. }
                | HeapRecord::ObjectArray { object, .. }
                | HeapRecord::PrimitiveArray { object, .. } => object.0,
            };
            let old = read.objects.insert(object, record);
            assert!(old.is_none() && object != 0, "{old:?} is dumped twice");
        }
        read
    }

    /// Types of the fields of an instance, its class's first.
    fn types(&self, received: &Received, mut class: ObjectHandle) -> Vec<(String, BasicType)> {
        let mut types = Vec::new();
        while let (Some(load), Some(dump)) =
            (received.classes.get(&class), self.classes.get(&class))
        {
            for field in &load.instances {
                let kind = BasicType::from_descriptor(&field.signature).expect("a descriptor");
                types.push((field.name.clone(), kind));
            }
            class = dump.superclass;
        }
        types
    }

    /// The fields of an instance by name.
    fn fields(&self, received: &Received, object: u64, level: DumpLevel) -> HashMap<String, Value> {
        let Some(HeapRecord::Instance { class, fields, .. }) = self.objects.get(&object) else {
            panic!("{:?} is no instance", self.objects.get(&object));
        };
        let mut types = self.types(received, *class);
        types.retain(|(_, kind)| level == DumpLevel::Values || *kind == BasicType::Object);
        let kinds: Vec<BasicType> = types.iter().map(|(_, kind)| *kind).collect();
        let values = field_values(fields, &kinds, IdLayout::NATIVE).expect("the fields");
        types
            .into_iter()
            .map(|(name, _)| name)
            .zip(values)
            .collect()
    }

    /// Objects by class.
    fn counts(&self, received: &Received) -> HashMap<String, u64> {
        let mut counts = HashMap::new();
        for record in self.objects.values() {
            *counts.entry(title(received, record)).or_default() += 1;
        }
        let class_objects = self.classes.len() as u64;
        *counts.entry("java.lang.Class".to_owned()).or_default() += class_objects;
        counts
    }

    /// In the dump, every object of the stream is what the stream reports it to be, and no other object
    /// has an id that the stream might give.
    fn check_ids(&self, received: &Received) -> usize {
        let mut known = 0;
        for (id, record) in &self.objects {
            let Some(alloc) = received.live.get(id) else {
                assert!(id >> 61 & 1 == 1, "{id:#x} was not told: {record:?}");
                continue;
            };
            known += 1;
            match record {
                HeapRecord::Instance { class, .. } => {
                    assert_eq!((*class, None), (alloc.class, alloc.array));
                }
                HeapRecord::ObjectArray { element_class, .. } => {
                    assert_eq!(
                        (*element_class, Some(BasicType::Object)),
                        (alloc.class, alloc.array)
                    );
                }
                HeapRecord::PrimitiveArray { element, .. } => {
                    assert_eq!(Some(*element), alloc.array);
                }
                other => panic!("{other:?}"),
            }
        }
        known
    }

    /// References of all records lead to something in the dump.
    fn check_edges(&self, received: &Received, level: DumpLevel) {
        let is_there = |to: &ObjectHandle| {
            to.is_null() || self.objects.contains_key(&to.0) || self.classes.contains_key(to)
        };
        let check = |to: &ObjectHandle, from: &dyn std::fmt::Debug| {
            assert!(is_there(to), "{to:?} of {from:?} is not in the dump");
        };
        for (root, why) in &self.roots {
            check(root, why);
        }
        for (id, record) in &self.objects {
            match record {
                HeapRecord::Instance { .. } => {
                    for value in self.fields(received, *id, level).values() {
                        if let Value::Object(to) = value {
                            check(to, record);
                        }
                    }
                }
                HeapRecord::ObjectArray { elements, .. } => {
                    elements.iter().for_each(|to| check(to, record));
                }
                _ => {}
            }
        }
    }
}

fn title(received: &Received, record: &HeapRecord) -> String {
    let name = |class: &ObjectHandle| match received.classes.get(class) {
        Some(load) => load.name.clone(),
        None => format!("{class:?}"),
    };
    match record {
        HeapRecord::Instance { class, .. } => name(class),
        HeapRecord::ObjectArray { element_class, .. } => name(element_class) + "[]",
        HeapRecord::PrimitiveArray { element, .. } => format!("{element:?}[]").to_lowercase(),
        other => panic!("{other:?}"),
    }
}

fn class_named(received: &Received, name: &str) -> ObjectHandle {
    let mut found = received.classes.values().filter(|class| class.name == name);
    found.next().expect("a class").class
}

/// The VM's own histogram, by the names that a dump has.
fn histogram(jcmd: &Jdk, pid: u32) -> HashMap<String, u64> {
    let output = Process::new(jcmd.tool("jcmd"))
        .args([&pid.to_string(), "GC.class_histogram"])
        .output()
        .expect("jcmd runs");
    let mut counts = HashMap::new();
    for row in testkit::corpus::parse_histogram(&String::from_utf8_lossy(&output.stdout)) {
        let name = match row.class.starts_with('[') {
            true => vmpi::info::java_name(&row.class),
            // Hidden classes have a slash in their names.
            false => row.class.replace('/', "."),
        };
        *counts.entry(name).or_default() += row.instances;
    }
    counts
}

#[test]
fn a_dump_has_what_is_in_the_heap_by_the_ids_that_the_stream_knows() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.jdks.iter() {
        for collector in collectors(lab, jdk) {
            let Some(mut play) = play(lab, jdk, collector, &[]) else {
                continue;
            };
            let (front, what) = (&mut play.front, &play.what);
            for _ in 0..2 {
                assert_eq!(front.ask(Command::RunGc), Outcome::Success);
            }
            let done = front.ask(Command::HeapDump(DumpLevel::Values));
            assert_eq!(done, Outcome::Success, "{what}");
            let dump = Dump::read(&mut front.received, DumpLevel::Values);
            let received = &front.received;
            let known = dump.check_ids(received);
            dump.check_edges(received, DumpLevel::Values);
            // Sampled nodes live: all of them are there.
            let node = class_named(received, "Still$Node");
            let nodes = received.live.values().filter(|alloc| alloc.class == node);
            let nodes: Vec<u64> = nodes
                .filter(|n| n.array.is_none())
                .map(|n| n.object.0)
                .collect();
            assert!(
                known > 100 && nodes.len() > 50,
                "{what}: {known} {}",
                nodes.len()
            );
            let there = received.live.iter().filter(|(id, alloc)| {
                alloc.class == node && alloc.array.is_none() && dump.objects.contains_key(id)
            });
            assert_eq!(there.count(), nodes.len(), "{what}");
            check_content(&dump, received, what);
            check_roots(&dump, received, what);
            compare(&dump, received, jdk, play.java.child.id(), what);
            again(&mut play, jdk.version);
        }
    }
}

/// The chain of nodes, from the static field that begins it.
fn check_content(dump: &Dump, received: &Received, what: &str) {
    let still = class_named(received, "Still");
    let statics = received.classes[&still]
        .statics
        .iter()
        .map(|field| &field.name);
    let statics: HashMap<_, _> = statics.zip(&dump.classes[&still].statics).collect();
    assert_eq!(statics[&"NODES".to_owned()], &Value::Int(3000), "{what}");
    let mut at = *statics[&"first".to_owned()];
    let mut seen = HashSet::new();
    for number in 0..NODES {
        let Value::Object(object) = at else {
            panic!("{at:?}")
        };
        assert!(seen.insert(object), "{what}: a node comes twice");
        let fields = dump.fields(received, object.0, DumpLevel::Values);
        assert_eq!(fields["number"], Value::Int(number as i32), "{what}");
        assert_eq!(fields["letter"], Value::Char(u16::from(b'x')), "{what}");
        assert_eq!(fields["mark"], Value::Long(0x1122_3344_5566_7788), "{what}");
        at = fields["next"];
    }
    assert_eq!(at, Value::Object(ObjectHandle::NULL), "{what}");
    let Value::Object(kept) = statics[&"kept".to_owned()] else {
        panic!("{statics:?}")
    };
    let Some(HeapRecord::ObjectArray { elements, .. }) = dump.objects.get(&kept.0) else {
        panic!("{kept:?}")
    };
    assert_eq!(elements.len(), 500);
    for (at, element) in elements.iter().enumerate() {
        let len = match &dump.objects[&element.0] {
            HeapRecord::PrimitiveArray { len, data, .. } => {
                assert_eq!(data.len(), at * 4);
                *len as usize
            }
            HeapRecord::ObjectArray { elements, .. } => elements.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!(len, at, "{what}");
    }
}

/// The monitors that are held are roots or held by threads, and each thread is a root.
fn check_roots(dump: &Dump, received: &Received, what: &str) {
    let named = |why: &RootKind| match why {
        RootKind::ThreadBlock(env) => received.threads.get(env).cloned(),
        _ => None,
    };
    let threads: HashSet<String> = dump
        .roots
        .iter()
        .filter_map(|(_, why)| named(why))
        .collect();
    for name in ["main", "owner", "entering one", "entering two", "notified"] {
        assert!(
            threads.contains(name),
            "{what}: {name} is not among {threads:?}"
        );
    }
    let lock = class_named(received, "Still$Lock");
    let is_lock = |object: &ObjectHandle| {
        let record = dump.objects.get(&object.0);
        matches!(record, Some(HeapRecord::Instance { class, .. }) if *class == lock)
    };
    let local = |why: &RootKind| match why {
        RootKind::JavaFrame(env, _) => received.threads.get(env).cloned(),
        _ => None,
    };
    let roots = dump.roots.iter().filter(|(object, _)| is_lock(object));
    let holders: HashSet<String> = roots.filter_map(|(_, why)| local(why)).collect();
    assert!(holders.contains("owner"), "{what}: {holders:?}");
}

/// Counts by class are those of the VM.
fn compare(dump: &Dump, received: &Received, jdk: &Jdk, pid: u32, what: &str) {
    let compiler = testkit::jvm::newest_compiler().expect("there is one");
    let tool = if jdk.tool("jcmd").exists() {
        jdk
    } else {
        &compiler
    };
    let (ours, theirs) = (dump.counts(received), histogram(tool, pid));
    // VMs before 17 give classes of lambdas other names in the histogram than anywhere else.
    let own = |name: &&String| {
        name.starts_with("Still") && !name.contains("$$Lambda") || name.as_str() == "int[][]"
    };
    let names: HashSet<&String> = ours.keys().chain(theirs.keys()).filter(own).collect();
    for class in ["Lock", "Gate", "Node", "Node[]", "Node[][]"] {
        let name = format!("Still${class}");
        assert!(names.contains(&name), "{what}: no {name} in {names:?}");
    }
    for name in names {
        assert_eq!(ours.get(name), theirs.get(name), "{what}: {name}");
    }
    let differ = theirs
        .iter()
        .filter(|(name, count)| ours.get(*name) != Some(count));
    let differ: Vec<_> = differ
        .map(|(name, count)| (name, count, ours.get(name)))
        .collect();
    assert!(differ.len() * 4 < theirs.len(), "{what}: {differ:?}");
}

/// A dump of level 1, of an object, and of monitors, of the same program.
fn again(play: &mut Play, version: u32) {
    let (front, what) = (&mut play.front, &play.what);
    let done = front.ask(Command::HeapDump(DumpLevel::References));
    assert_eq!(done, Outcome::Success, "{what}");
    let dump = Dump::read(&mut front.received, DumpLevel::References);
    dump.check_ids(&front.received);
    dump.check_edges(&front.received, DumpLevel::References);
    let node = class_named(&front.received, "Still$Node");
    let (id, _) = {
        let mut live = front.received.live.iter();
        live.find(|(id, alloc)| {
            alloc.class == node && alloc.array.is_none() && dump.objects.contains_key(id)
        })
        .expect("a node that was told")
    };
    let next = dump.fields(&front.received, *id, DumpLevel::References)["next"];
    let request = |what, id| Command::Request(what, ObjectHandle(id));
    let id = *id;
    let done = front.ask(request(EventKind::ObjectDump, id));
    assert_eq!(done, Outcome::Success, "{what}");
    let data = front.received.object_dump.take().expect("an object");
    let received = &front.received;
    let (records, damage) = decode(
        &data,
        DumpLevel::Values,
        IdLayout::NATIVE,
        &received.classes,
    );
    assert_eq!((damage, records.len()), (None, 1), "{what}");
    let HeapRecord::Instance {
        object,
        class,
        fields,
    } = &records[0]
    else {
        panic!("{records:?}")
    };
    assert_eq!((object.0, *class), (id, node), "{what}");
    let types = dump.types(received, *class);
    let kinds: Vec<BasicType> = types.iter().map(|(_, kind)| *kind).collect();
    let values = field_values(fields, &kinds, IdLayout::NATIVE).expect("the fields");
    let values: HashMap<_, _> = types
        .into_iter()
        .map(|(name, _)| name)
        .zip(values)
        .collect();
    assert_eq!(values["letter"], Value::Char(u16::from(b'x')), "{what}");
    // Tracked objects have the same id in both; others have one id per dump.
    match (values["next"], next) {
        (Value::Object(now), Value::Object(before)) => {
            let is_reported = |object: ObjectHandle| received.live.contains_key(&object.0);
            assert_eq!(is_reported(now), is_reported(before), "{what}");
            assert!(!is_reported(now) || now == before, "{what}");
            assert!(is_reported(now) || now.is_null() || now != before, "{what}");
        }
        other => panic!("{other:?}"),
    }
    let still = class_named(received, "Still").0;
    let done = front.ask(request(EventKind::ObjectDump, still));
    assert_eq!(done, Outcome::Success, "{what}");
    let data = front.received.object_dump.take().expect("a class");
    let classes = &front.received.classes;
    let (records, _) = decode(&data, DumpLevel::Values, IdLayout::NATIVE, classes);
    assert!(matches!(&records[..], [HeapRecord::Class(class)] if class.class.0 == still));
    for unknown in [3, 1 << 61 | 8] {
        let done = front.ask(request(EventKind::ObjectDump, unknown));
        assert_eq!(done, Outcome::Fail, "{what}");
    }
    assert_eq!(front.ask(Command::MonitorDump), Outcome::Success, "{what}");
    check_monitors(&mut front.received, version, what);
}

/// The monitors of the program, their owners and who waits for them.
fn check_monitors(received: &mut Received, version: u32, what: &str) {
    let dump = received.monitor_dump.take().expect("a dump");
    let (records, damage) = decode_monitors(&dump.data, IdLayout::NATIVE);
    assert_eq!(damage, None);
    let class_of = |record: &MonitorRecord| {
        let MonitorName::Java(object) = record.monitor else {
            panic!("{record:?}")
        };
        let known = received
            .live
            .get(&object.0)
            .or(received.described.get(&object.0));
        let class = known.expect("an object that was told").class;
        received.classes[&class].name.clone()
    };
    let of = |name: &str| {
        let mut found = records.iter().filter(|record| class_of(record) == name);
        found
            .next()
            .unwrap_or_else(|| panic!("{what}: no {name} in {records:?}"))
    };
    let names = |envs: &[vmpi::EnvId]| {
        let mut names: Vec<&str> = envs.iter().map(|env| &*received.threads[env]).collect();
        names.sort_unstable();
        names.join(", ")
    };
    let lock = of("Still$Lock");
    assert_eq!(names(&[lock.owner]), "owner", "{what}");
    assert_eq!(lock.entry_count, 2, "{what}");
    assert_eq!(
        names(&lock.waiting_to_enter),
        "entering one, entering two",
        "{what}"
    );
    assert!(lock.waiting_to_be_notified.is_empty(), "{what}");
    // Newer VMs do not say on which monitor a thread waits.
    if version < 23 {
        let gate = of("Still$Gate");
        assert_eq!(gate.owner.0, 0, "{what}");
        assert_eq!(names(&gate.waiting_to_be_notified), "notified", "{what}");
        assert_eq!(names(&gate.waiting_to_enter), "", "{what}");
    }
    // Each thread is where it was left.
    let methods = received.classes.values().flat_map(|class| &class.methods);
    let methods: HashMap<_, _> = methods.map(|m| (m.method, m.name.as_str())).collect();
    assert_eq!(dump.traces.len(), dump.status.len());
    for (thread, method, status) in [
        ("owner", "own", 3),
        ("entering one", "enter", 2),
        ("notified", "await", 3),
    ] {
        let traces = dump.traces.iter().zip(&dump.status);
        let mut of = traces.filter(|(trace, _)| received.threads[&trace.env] == thread);
        let (trace, found) = of.next().expect(thread);
        let frames: Vec<&str> = trace
            .frames
            .iter()
            .map(|frame| methods[&frame.method])
            .collect();
        assert!(frames.contains(&method), "{what}: {thread} {frames:?}");
        assert_eq!(*found, status, "{what}: {thread}");
    }
}

/// Objects are made, moved and freed while the dumps are made.
#[test]
fn dumps_of_a_program_that_goes_on_agree_with_the_stream_at_their_place() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        for collector in collectors(lab, jdk) {
            let Some(mut play) = play(lab, jdk, collector, &["on"]) else {
                continue;
            };
            let mut known = 0;
            for round in 0..6 {
                let level = match round % 2 {
                    0 => DumpLevel::Values,
                    _ => DumpLevel::References,
                };
                let done = play.front.ask(Command::HeapDump(level));
                assert_eq!(done, Outcome::Success, "{}", play.what);
                let dump = Dump::read(&mut play.front.received, level);
                known += dump.check_ids(&play.front.received);
                dump.check_edges(&play.front.received, level);
                // Young live objects are reported by now, as are those that were tracked just before.
                let node = class_named(&play.front.received, "Still$Node");
                let live = play.front.received.live.values();
                let live = live.filter(|alloc| alloc.class == node && alloc.array.is_none());
                assert!(live.count() > 50, "{}", play.what);
            }
            assert!(known > 1000, "{}: {known}", play.what);
            let received = &play.front.received;
            // Shenandoah empties only regions that are worth it, and may find none.
            let moves = !received.hello.stable_ids && *collector != "Shenandoah";
            let all = received.moves;
            assert!(!moves || all > 100, "{}: {all}", play.what);
        }
    }
}

/// A collection may never end in a VM that ends, and a dump takes its time.
#[test]
fn what_is_asked_of_a_program_that_ends_is_refused() {
    const ASKED: usize = 400;
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        let Some(mut play) = play(lab, jdk, "G1", &[]) else {
            continue;
        };
        for at in 0..ASKED {
            play.front.give(match at % 2 {
                0 => Command::HeapDump(DumpLevel::Values),
                _ => Command::RunGc,
            });
        }
        let pid = play.java.child.id().to_string();
        let killed = Process::new("kill").arg(pid).status();
        assert!(killed.is_ok_and(|status| status.success()));
        let (outcomes, is_whole) = play.front.rest();
        assert!(is_whole, "{}: {} answers", play.what, outcomes.len());
        assert_eq!(outcomes.len(), ASKED, "{}", play.what);
        assert_eq!(outcomes.last(), Some(&Outcome::Fail), "{}", play.what);
        let refused = outcomes.iter().position(|one| *one == Outcome::Fail);
        let rest = &outcomes[refused.unwrap_or(0)..];
        assert!(
            rest.iter().all(|one| *one == Outcome::Fail),
            "{}",
            play.what
        );
    }
}
