//! The stream of VM events: collections, arenas, allocations, moves and frees of
//! sampled objects on a stock VM.

use std::collections::HashMap;
use std::io::Read;
use std::net::TcpListener;
use std::path::Path;

use crate::common::Lab;
use testkit::jvm::Jdk;
use vmpi::wire::{ArenaState, Frame, Hello, Item, read_all};
use vmpi::{ArenaId, Body, ObjectAlloc};

/// Everything a recording says, checked for sense while it is read.
#[derive(Default)]
pub(crate) struct Recording {
    hello: Option<Hello>,
    arenas: HashMap<ArenaId, String>,
    /// Living objects, as they were allocated, and where they are.
    pub(crate) live: HashMap<u64, (ObjectAlloc, ArenaId)>,
    classes: HashMap<u64, String>,
    /// Names of methods, and the stacks that were reported.
    methods: HashMap<u64, String>,
    traces: HashMap<u32, Vec<u64>>,
    /// Reported objects, by class and innermost method.
    made: HashMap<(String, String), u64>,
    /// Classes that were unloaded, and objects without a class or stack.
    pub(crate) unloaded: u64,
    pub(crate) nameless: u64,
    collections: u64,
    moves: u64,
    frees: u64,
    pub(crate) allocations: u64,
    pub(crate) lost: u64,
    /// Estimated bytes that moved from a young arena to the old one.
    promoted: f64,
    /// Growth of the old arena over all collections.
    growth: u64,
    old_used: Option<u64>,
    in_gc: bool,
    pub(crate) ended: bool,
}

impl Recording {
    pub(crate) fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).expect("a recording");
        let mut recording = Self::default();
        let read = read_all(&bytes, |frame| {
            match frame {
                Frame::Hello(hello) => recording.hello = Some(hello),
                Frame::Batch(batch) => {
                    for item in batch {
                        recording.take(item?);
                    }
                }
                _ => {}
            }
            Ok(())
        });
        read.unwrap_or_else(|damage| panic!("{damage:?}"));
        recording
    }

    pub(crate) fn class_count(&self) -> usize {
        self.classes.len()
    }

    /// Objects of a class, by whichever method they were made.
    pub(crate) fn made_of(&self, class: &str) -> u64 {
        let rows = self.made.iter().filter(|row| row.0.0 == class);
        rows.map(|row| row.1).sum()
    }

    /// Bytes that a sampled object stands for.
    fn weight(&self, alloc: &ObjectAlloc) -> f64 {
        let interval = self.hello.as_ref().map_or(0, |hello| hello.sample_interval);
        let size = alloc.size as f64;
        if interval == 0 {
            return size;
        }
        size / (1.0 - (-size / interval as f64).exp())
    }

    fn is(&self, arena: ArenaId, name: &str) -> bool {
        self.arenas.get(&arena).is_some_and(|known| known == name)
    }

    fn state(&mut self, state: ArenaState) {
        assert!(
            self.arenas.contains_key(&state.arena) && state.used <= state.capacity,
            "{state:?}"
        );
        if self.is(state.arena, "old") {
            let before = self.old_used.replace(state.used).unwrap_or(state.used);
            self.growth += state.used.saturating_sub(before);
        }
    }

    fn take(&mut self, item: Item) {
        let body = match item {
            Item::Event { body, .. } => body,
            Item::ArenaState(state) => return self.state(state),
            Item::Lost { count, .. } => return self.lost += count,
            Item::Trace { id, trace } => {
                let frames = trace.frames.iter().map(|frame| frame.method.0);
                self.traces.insert(id.0, frames.collect());
                return;
            }
            _ => return,
        };
        match body {
            Body::ArenaNew { arena, name } => assert!(self.arenas.insert(arena, name).is_none()),
            Body::ClassLoad(class) => {
                for method in &class.methods {
                    self.methods.insert(method.method.0, method.name.clone());
                }
                assert!(self.classes.insert(class.class.0, class.name).is_none());
            }
            Body::ObjectAlloc(alloc) => {
                self.allocations += 1;
                let has_class = !alloc.class.is_null() || alloc.array.is_some();
                self.nameless += u64::from(!has_class || alloc.trace.0 == 0);
                assert!(
                    !self.in_gc && self.arenas.contains_key(&alloc.arena),
                    "{alloc:?}"
                );
                let class = self.classes.get(&alloc.class.0).cloned();
                let named = match (&class, alloc.array) {
                    (Some(class), Some(_)) => Some(format!("{class}[]")),
                    (None, Some(element)) => Some(format!("{element:?}[]")),
                    _ => class.clone(),
                };
                assert!(alloc.class.is_null() || class.is_some());
                let top = self.traces.get(&alloc.trace.0).and_then(|t| t.first());
                let method = top.and_then(|method| self.methods.get(method));
                if let (Some(class), Some(method)) = (named, method) {
                    *self.made.entry((class, method.clone())).or_default() += 1;
                }
                let old = self.live.insert(alloc.object.0, (alloc, alloc.arena));
                assert!(old.is_none(), "an id is given twice: {alloc:?} {old:?}");
            }
            Body::ObjectMove(m) => {
                self.moves += 1;
                let (alloc, arena) = self.live.remove(&m.object.0).expect("a live object moves");
                assert!(self.in_gc && arena == m.arena, "{m:?}");
                if self.is(m.new_arena, "old") && !self.is(m.arena, "old") {
                    self.promoted += self.weight(&alloc);
                }
                let other = self.live.insert(m.new_object.0, (alloc, m.new_arena));
                assert!(other.is_none(), "two objects have one id");
            }
            Body::ObjectFree { object } => {
                self.frees += 1;
                // A collector whose references are cleared after its last pause.
                let late = self.hello.as_ref().is_some_and(|h| h.frees_outside_gc);
                let was_alive = self.live.remove(&object.0).is_some();
                assert!((self.in_gc || late) && was_alive, "{object:?}");
            }
            Body::ClassUnload { .. } => self.unloaded += 1,
            Body::GcStart { .. } => assert!(!std::mem::replace(&mut self.in_gc, true)),
            Body::GcFinish(_) => {
                assert!(std::mem::replace(&mut self.in_gc, false));
                self.collections += 1;
            }
            Body::JvmShutDown => self.ended = true,
            _ => {}
        }
    }
}

/// Runs a program and reads what was recorded of it.
pub(crate) fn record_some(
    lab: &Lab,
    jdk: &Jdk,
    flags: &[&str],
    interval: &str,
    program: &[&str],
) -> Recording {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("events");
    let source = format!("{}.java", program[0]);
    let classes = lab.compile(&source, 8).expect("compiles");
    let options = format!("events={interval},file={}", path.display());
    let ran = lab.run_in(jdk, classes.path(), Some(&options), flags, program);
    assert!(ran.output.status.success(), "{}", ran.stderr());
    let recording = Recording::read(&path);
    assert!(recording.ended, "{}", ran.stderr());
    recording
}

/// A recording from which nothing is left out.
fn record(lab: &Lab, jdk: &Jdk, flags: &[&str], interval: &str, program: &[&str]) -> Recording {
    let recording = record_some(lab, jdk, flags, interval, program);
    assert_eq!(recording.lost, 0);
    recording
}

#[test]
fn promoted_bytes_agree_with_the_growth_of_the_old_generation() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        for collector in ["Serial", "Parallel", "G1"] {
            let flag = format!("-XX:+Use{collector}GC");
            let flags = [
                &flag,
                "-Xms900m",
                "-Xmx900m",
                "-Xmn32m",
                "-XX:MaxTenuringThreshold=3",
            ];
            let recording = record(lab, jdk, &flags, "64k", &["Promote", "2200000"]);
            let hello = recording.hello.as_ref().expect("a greeting");
            assert!(
                !hello.stable_ids && hello.collector == collector,
                "{hello:?}"
            );
            assert!(recording.collections > 5 && recording.moves > 1000 && recording.frees > 1000);
            // G1 does not say of which kind a region is before JDK 11: its heap is one arena.
            if jdk.version < 11 && collector == "G1" {
                assert!(recording.arenas.values().eq(["heap"]));
                continue;
            }
            let (promoted, growth) = (recording.promoted, recording.growth as f64);
            let what = format!("{collector} {}: {promoted} of {growth}", jdk.full_version);
            assert!(growth > 300e6, "{what}");
            assert!((promoted / growth - 1.0).abs() < 0.10, "{what}");
        }
    }
}

#[test]
fn every_collector_reports_sensible_events() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(jdk) = lab.jdks.iter().rfind(|jdk| jdk.version >= 11) else {
        return testkit::skip(
            "events",
            testkit::Need::JdkPart,
            "no JDK from 11 on, which samples allocations",
        );
    };
    for collector in ["Serial", "Parallel", "G1", "Z", "Shenandoah"] {
        let flag = format!("-XX:+Use{collector}GC");
        let is_there = lab.run(jdk, None, &[&flag], &["Trouble", "lambda"]);
        if !is_there.output.status.success() {
            continue; // not built into this runtime
        }
        // ZGC clears weak references in collections of the whole heap only, after the event that
        // such a collection has ended.
        let flags = [&flag, "-Xmx160m"];
        let program = ["Promote", "300000", "gc"];
        let recording = record(lab, jdk, &flags, "4k", &program);
        assert!(
            recording.collections > 0 && recording.allocations > 5000,
            "{collector}"
        );
        assert!(recording.frees > 100, "{collector}: {}", recording.frees);
        let is_stable = recording
            .hello
            .as_ref()
            .is_some_and(|hello| hello.stable_ids);
        assert_eq!(is_stable, collector == "Z", "{collector}");
        // Young collections of ZGC leave weak references as they are, which the stream reports.
        let full_only = recording.hello.as_ref().is_some_and(|h| h.full_gc_frees);
        assert_eq!(full_only, is_stable, "{collector}");
        assert!(!is_stable || recording.moves == 0, "{collector}");
    }
}

#[test]
fn a_reader_that_stops_or_goes_away_does_not_hold_the_program() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(jdk) = lab.jdks.iter().rfind(|jdk| jdk.version >= 11) else {
        return testkit::skip(
            "events",
            testkit::Need::JdkPart,
            "no JDK from 11 on, which samples allocations",
        );
    };
    let classes = lab.compile("Promote.java", 8).expect("compiles");
    for goes_away in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let reader = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("the agent");
            let mut first = [0; 8];
            stream.read_exact(&mut first).expect("the beginning");
            // One lets go here; the other keeps the connection and reads no more.
            (!goes_away).then_some((first, stream))
        });
        // Every object is reported, which is more than the buffers between the two hold.
        let options = format!("events=0,net={address}");
        let flags = ["-Xmx400m"];
        let program = ["Promote", "500000"];
        let ran = lab.run_in(jdk, classes.path(), Some(&options), &flags, &program);
        assert!(ran.output.status.success(), "{}", ran.stderr());
        assert_eq!(ran.stdout().trim(), "274700000", "{}", ran.stderr());
        let Some((first, mut stream)) = reader.join().expect("the reader") else {
            continue;
        };
        // What had been written before is a stream up to its cut.
        let mut bytes = first.to_vec();
        stream.read_to_end(&mut bytes).expect("the rest");
        let mut allocations = 0;
        let _ = read_all(&bytes, |frame| {
            if let Frame::Batch(batch) = frame {
                for item in batch {
                    let body = match item? {
                        Item::Event { body, .. } => body,
                        _ => continue,
                    };
                    allocations += u32::from(matches!(body, Body::ObjectAlloc(_)));
                }
            }
            Ok(())
        });
        assert!(
            allocations > 10_000,
            "{allocations} of {} bytes",
            bytes.len()
        );
    }
}

#[test]
fn stacks_are_as_deep_as_was_asked() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        for (interval, deepest) in [("1k", 4), ("1k,depth=3", 3), ("1k,depth=20", 20)] {
            let recording = record(lab, jdk, &["-Xmx160m"], interval, &["Deep"]);
            let depths = recording.traces.values().map(Vec::len);
            assert_eq!(depths.max(), Some(deepest), "{}", jdk.full_version);
        }
    }
}

/// Also of those at the beginning of the program, in the allocation buffer that its thread has before.
#[test]
fn at_interval_0_every_object_from_the_first_on_is_reported() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    const BITS: u32 = 8;
    const OBJECTS: u64 = 16;
    for jdk in &lab.jdks {
        let program = ["ManyPaths", &BITS.to_string(), &OBJECTS.to_string()];
        let recording = record(lab, jdk, &["-Xmx400m"], "0", &program);
        for (class, count) in [
            ("ManyPaths$Made", OBJECTS << BITS),
            ("java.lang.Object[]", 1 << BITS),
        ] {
            let key = (class.to_owned(), "end".to_owned());
            let made = recording.made.get(&key).copied().unwrap_or(0);
            let all = least_at_interval_0(jdk, count)..=count;
            let what = format!("{key:?} on {}", jdk.full_version);
            assert!(all.contains(&made), "{made} of {count} {what}");
        }
    }
}

/// How many of the objects at least are reported. Where a thread of JDK 11 has made an object beside its buffer, the VM
/// reports none of those that still find room in that buffer, which is a few in a hundred.
pub(crate) fn least_at_interval_0(jdk: &Jdk, count: u64) -> u64 {
    match jdk.version {
        11 => count - count / 20,
        _ => count,
    }
}

/// Exact counts at interval 0, each object at the method that makes it: no constructor of its own, no
/// inserted code on top.
#[test]
fn every_object_is_reported_at_the_method_that_makes_it() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    const COUNT: u64 = 20_000;
    for jdk in lab.some_jdks().iter().filter(|jdk| jdk.version < 11) {
        let program = ["Made", &COUNT.to_string()];
        let recording = record(lab, jdk, &["-Xmx400m"], "0", &program);
        for (class, method, times) in [
            ("Made$Derived", "derived", 1),
            ("Made$Inner", "<init>", 1),
            ("Byte[]", "bytes", 1),
            ("Made$Inner[]", "references", 1),
            ("Short[]", "rows", 3),
            ("short[][]", "rows", 1),
        ] {
            let key = (class.to_owned(), method.to_owned());
            let made = recording.made.get(&key).copied().unwrap_or(0);
            assert_eq!(made, times * COUNT, "{key:?} on {}", jdk.full_version);
        }
        let bases = recording.made_of("Made$Base");
        assert_eq!(bases, COUNT, "made by reflection on {}", jdk.full_version);
    }
}
