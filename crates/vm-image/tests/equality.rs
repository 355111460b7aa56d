//! A dump of a stopped VM has what the VM's own dump of the same moment has: the same objects at the same
//! addresses with the same values, the same classes, and at least the same roots. What may differ is named here and in
//! `docs/reference/images.md`.

use crate::common::{Heap, Program};
use hprof::HeapTag;
use std::collections::BTreeSet;
use std::process::Command;
use testkit::corpus::workspace;
use testkit::jvm::{self, Jdk};
use vm_image::Summary;

const SHENANDOAH: &str = "-XX:+UseShenandoahGC";
const INT_ARRAY: &str = "primitive 10";

/// What the comparison allows, by its name in the document.
mod allowed {
    pub(super) const FILLERS: &str = "Fillers";
    pub(super) const ORDER: &str = "Order of records and fields";
    pub(super) const INIT_LOCK: &str = "Name of the initialization lock";
    pub(super) const VARIABLES: &str = "Variables of the VM";
    pub(super) const THREADS: &str = "Threads of the VM";
    pub(super) const LOCALS: &str = "Local variables";
    pub(super) const PARKED: &str = "Parked virtual threads";
    pub(super) const MONITORS: &str = "Monitors in use";
    pub(super) const UNREACHABLE: &str = "Unreachable objects";
    pub(super) const STACKS: &str = "Stacks that allocated objects";
    pub(super) const ALL: [&str; 10] = [
        FILLERS,
        ORDER,
        INIT_LOCK,
        VARIABLES,
        THREADS,
        LOCALS,
        PARKED,
        MONITORS,
        UNREACHABLE,
        STACKS,
    ];
}

/// An assertion that fails with what was compared.
macro_rules! allows {
    ($difference:expr, $is_so:expr, $($printed:tt)+) => {
        assert!($is_so, "more than the difference {:?}: {}", $difference, format!($($printed)+))
    };
}

#[test]
fn the_document_names_what_the_comparison_allows() {
    let path = workspace().join("docs/reference/images.md");
    let text = std::fs::read_to_string(path).expect("the document");
    let rows = text
        .lines()
        .skip_while(|line| !line.starts_with("| Difference |"));
    let rows = rows.take_while(|line| line.starts_with('|')).skip(2);
    let named: Vec<&str> = rows
        .filter_map(|row| row.split('|').nth(1))
        .map(str::trim)
        .collect();
    assert_eq!(named, allowed::ALL);
}

#[test]
fn serial_heaps_are_read_as_the_vm_reads_them() {
    on_all("UseSerialGC", &["-XX:+UseSerialGC"]);
}

#[test]
fn parallel_heaps_are_read_as_the_vm_reads_them() {
    on_all("UseParallelGC", &["-XX:+UseParallelGC"]);
}

#[test]
fn g1_heaps_are_read_as_the_vm_reads_them() {
    on_all("UseG1GC", &["-XX:+UseG1GC"]);
}

/// Up to JDK 19, G1 leaves unreachable objects where they are when it unloads their classes.
#[test]
fn heaps_of_g1_are_read_past_the_objects_of_unloaded_classes() {
    let flags = [
        "-XX:+UseG1GC",
        "-XX:+ExplicitGCInvokesConcurrent",
        "-XX:MaxTenuringThreshold=0",
    ];
    let mut jdks = jvm::tested();
    let has_older = jdks.iter().any(|jdk| (9..20).contains(&jdk.version));
    if !has_older {
        jdks.extend(
            jvm::jdks()
                .into_iter()
                .rfind(|jdk| (9..20).contains(&jdk.version)),
        );
    }
    if jdks.is_empty() {
        testkit::skip("unloaded classes", testkit::Need::Jdk, jvm::NO_JDK);
    }
    for jdk in jdks {
        let Some(summary) = compare(&jdk, "Unloaded", &flags) else {
            return;
        };
        let has_dead = summary.dead_bytes > 15_000 * 24;
        assert_eq!(
            has_dead,
            jdk.version < 20,
            "{}: {summary:?}",
            jdk.full_version
        );
    }
}

#[test]
fn shenandoah_heaps_are_read_as_the_vm_reads_them() {
    let has_it = |jdk: &Jdk| {
        let mut java = Command::new(jdk.tool("java"));
        java.args([SHENANDOAH, "-version"]);
        java.output().is_ok_and(|ran| ran.status.success())
    };
    let jdks: Vec<Jdk> = jvm::tested().into_iter().filter(has_it).collect();
    if jdks.is_empty() {
        let reason = "no JDK with Shenandoah";
        testkit::skip("Shenandoah", testkit::Need::JdkPart, reason);
    }
    for jdk in jdks {
        compare(&jdk, "Rest", &[SHENANDOAH]);
        compare(&jdk, "Rest", &[SHENANDOAH, "-XX:-UseCompressedOops"]);
    }
}

#[test]
fn plain_references_are_read_as_the_vm_reads_them() {
    let plain = ["-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers"];
    on_all("plain", &[&["-XX:+UseSerialGC"], &plain[..]].concat());
    if jvm::is_matrix() {
        on_all("plain", &[&["-XX:+UseParallelGC"], &plain[..1]].concat());
        on_all("plain", &[&["-XX:+UseG1GC"], &plain[..]].concat());
        on_all(
            "aligned",
            &["-XX:+UseSerialGC", "-XX:ObjectAlignmentInBytes=32"],
        );
    }
}

#[test]
fn stacks_of_compiled_code_are_read_as_the_vm_reads_them() {
    on_all("compiled code", &["-Xcomp", "-XX:+UseSerialGC"]);
}

/// JDK 21 and later; newer ones write these stacks to their own dumps, too.
#[test]
fn what_parked_virtual_threads_refer_to_is_a_local_variable() {
    let jdks = jvm::tested().into_iter().filter(|jdk| jdk.version >= 21);
    let jdks: Vec<Jdk> = jdks.collect();
    if jdks.is_empty() {
        let reason = "no JDK 21 or later";
        testkit::skip("virtual threads", testkit::Need::JdkPart, reason);
    }
    for jdk in jdks {
        for flags in [
            &["-XX:+UseG1GC"][..],
            &["-XX:+UseSerialGC", "-XX:-UseCompressedOops"],
            &["-XX:+UseParallelGC", "-Xcomp", "-XX:TieredStopAtLevel=1"],
        ] {
            let Some(program) = Program::start(&jdk, "Parked", flags) else {
                return;
            };
            let case = format!("JDK {} {flags:?}", jdk.full_version);
            let check = || {
                let (bytes, summary) = program
                    .dump_frozen()
                    .unwrap_or_else(|e| panic!("{case}: {e}"));
                assert_eq!(summary.damage.total(), 0, "{case}: {:?}", summary.damage);
                let heap = Heap::read(&bytes);
                let locals = heap.of_root(HeapTag::RootJavaFrame);
                let held = heap.objects.iter().filter(|(id, object)| {
                    let is_held = heap.class_name(object) == "Parked$Held";
                    is_held && locals.contains(id)
                });
                allows!(allowed::PARKED, held.count() == 40, "{case}");
            };
            check();
            // The collector stores the references of stacks in another form.
            let ran = program.jcmd().arg("GC.run").output().expect("jcmd");
            assert!(ran.status.success(), "{case}");
            check();
        }
    }
}

#[test]
fn compact_headers_are_read_as_the_vm_reads_them() {
    let jdks = jvm::tested().into_iter().filter(|jdk| jdk.version >= 25);
    let jdks: Vec<Jdk> = jdks.collect();
    if jdks.is_empty() {
        let reason = "no JDK 25 or later";
        testkit::skip("compact object headers", testkit::Need::JdkPart, reason);
    }
    for jdk in jdks {
        for collector in ["-XX:+UseSerialGC", "-XX:+UseParallelGC", "-XX:+UseG1GC"] {
            compare(&jdk, "Rest", &[collector, "-XX:+UseCompactObjectHeaders"]);
        }
    }
}

/// Runtimes that another processor is emulated for; `./x matrix --arm64` names them. The processor of the test does not
/// matter: the memory of the emulated VM is that of its emulator.
#[test]
fn heaps_of_another_processor_are_read_as_the_vm_reads_them() {
    if std::env::var_os("TENURE_RUNTIMES").is_none() {
        let reason = "no emulated runtime (TENURE_RUNTIMES)";
        return testkit::skip("another processor", testkit::Need::JdkPart, reason);
    }
    for jdk in jvm::tested() {
        for collector in ["-XX:+UseSerialGC", "-XX:+UseParallelGC", "-XX:+UseG1GC"] {
            let Some(program) = Program::start(&jdk, "Rest", &[collector]) else {
                return;
            };
            let case = format!("JDK {} {collector}, emulated", jdk.full_version);
            // The first request makes the VM start a thread, which has objects.
            program.dump_of_vm();
            program.rests();
            let (ours, summary) = program
                .dump_frozen()
                .unwrap_or_else(|e| panic!("{case}: {e}"));
            let theirs = std::fs::read(program.dump_of_vm()).expect("a dump");
            assert_eq!(summary.damage.total(), 0, "{case}: {:?}", summary.damage);
            let (ours, theirs) = (Heap::read(&ours), Heap::read(&theirs));
            compare_heaps(&case, (&jdk, true), &ours, &theirs);
        }
    }
}

fn on_all(what: &str, flags: &[&str]) {
    let jdks = jvm::tested();
    if jdks.is_empty() {
        testkit::skip(what, testkit::Need::Jdk, jvm::NO_JDK);
    }
    for jdk in jdks {
        compare(&jdk, "Rest", flags);
    }
}

/// Compares the VM's own dump with one of the stopped VM and one of a copy of it.
fn compare(jdk: &Jdk, name: &str, flags: &[&str]) -> Option<Summary> {
    if !jdk.tool("jcmd").is_file() {
        testkit::skip("a dump of the VM's own", testkit::Need::JdkPart, "no jcmd");
        return None;
    }
    let program = Program::start(jdk, name, flags)?;
    let case = format!("JDK {} {name} {flags:?}", jdk.full_version);
    // The first request makes the VM start a thread, which has objects.
    let asked = program.jcmd().arg("VM.version").output().expect("jcmd");
    assert!(asked.status.success(), "{case}");
    program.rests();
    let (ours, summary) = program
        .dump_frozen()
        .unwrap_or_else(|e| panic!("{case}: {e}"));
    let theirs = std::fs::read(program.dump_of_vm()).expect("a dump");
    assert_eq!(summary.damage.total(), 0, "{case}: {:?}", summary.damage);
    assert_eq!(summary.gap_bytes, 0, "{case}");
    let (ours, theirs) = (Heap::read(&ours), Heap::read(&theirs));
    assert_eq!(summary.objects(), ours.objects.len() as u64, "{case}");
    assert_eq!(summary.classes, ours.classes.len() as u64, "{case}");
    assert_eq!(summary.traces, summary.threads, "{case}");
    let all = !flags.contains(&SHENANDOAH);
    compare_heaps(&case, (jdk, all), &ours, &theirs);
    // Loading the agent leaves no object behind.
    let copy = Heap::read(&program.dump_snapshot());
    compare_heaps(&format!("{case}, snapshot"), (jdk, all), &copy, &theirs);
    assert_eq!(copy.traces, ours.traces, "{case}");
    assert_eq!(
        copy.roots.keys().collect::<Vec<_>>(),
        ours.roots.keys().collect::<Vec<_>>(),
        "{case}"
    );
    // Only the Java frames of the stacks are searched.
    let locals = |heap: &Heap| heap.roots[&HeapTag::RootJavaFrame].len();
    assert!(locals(&copy) <= locals(&ours), "{case}");
    Some(summary)
}

/// Without `all`, the dump of the VM has only what it reaches.
fn compare_heaps(case: &str, (jdk, all): (&Jdk, bool), ours: &Heap, theirs: &Heap) {
    assert_eq!(ours.twice, 0, "{case}");
    compare_classes(case, ours, theirs);
    compare_objects((case, all), ours, theirs);
    compare_roots(case, jdk, ours, theirs);
    // The VM leaves out threads of its own, some of which wait in Java code.
    assert!(!theirs.traces.is_empty(), "{case}");
    for trace in &theirs.traces {
        assert!(
            ours.traces.contains(trace),
            "{case}: {trace:?} is missing in {:?}",
            ours.traces
        );
    }
}

fn compare_classes(case: &str, ours: &Heap, theirs: &Heap) {
    assert!(ours.classes.len() > 400, "{case}");
    assert_eq!(ours.loaded, theirs.loaded, "{case}");
    for (id, class) in &theirs.classes {
        let name = &theirs.loaded[id];
        // The VM goes through the fields in another order, which the record states.
        let sorted = |fields: &[(String, hprof::BasicType)]| {
            let fields = fields
                .iter()
                .map(|(name, kind)| (name.clone(), *kind as u8));
            fields.collect::<BTreeSet<_>>()
        };
        let own = &ours.classes[id];
        assert_eq!(sorted(&own.fields), sorted(&class.fields), "{case}: {name}");
        assert_eq!(own.statics, class.statics, "{case}: {name}");
        assert_eq!(own.ids, class.ids, "{case}: {name}");
        assert_eq!(own.instance_size, class.instance_size, "{case}: {name}");
    }
    assert_eq!(ours.classes.len(), theirs.classes.len(), "{case}");
}

fn compare_objects((case, all): (&str, bool), ours: &Heap, theirs: &Heap) {
    let ids = |heap: &Heap| heap.objects.keys().copied().collect::<BTreeSet<u64>>();
    let (own, other) = (ids(ours), ids(theirs));
    assert!(own.len() > 10_000, "{case}");
    // Before it dumps, the VM fills the unused rest of the buffers in which threads allocate; and its walk over
    // G1's regions leaves out what fills up the last region of a large object. Nothing refers to fillers.
    let reached = match all {
        true => None,
        false => Some(&theirs.referred() | &theirs.of_roots()),
    };
    for (heap, more) in [
        (ours, own.difference(&other)),
        (theirs, other.difference(&own)),
    ] {
        let referred = heap.referred();
        for id in more {
            if let Some(reached) = reached.as_ref().filter(|_| own.contains(id)) {
                allows!(
                    allowed::UNREACHABLE,
                    !reached.contains(id),
                    "{case}: {id:#x}"
                );
                continue;
            }
            let name = heap.class_name(&heap.objects[id]);
            let fillers = [
                INT_ARRAY,
                "java/lang/Object",
                "jdk/internal/vm/FillerObject",
            ];
            let is_filler = fillers.contains(&name.as_str()) && !referred.contains(id);
            allows!(allowed::FILLERS, is_filler, "{case}: {name} at {id:#x}");
        }
    }
    for id in own.intersection(&other) {
        let (one, two) = (&ours.objects[id], &theirs.objects[id]);
        assert_eq!(
            ours.class_name(one),
            theirs.class_name(two),
            "{case}: {id:#x}"
        );
        if one.kind == 0 {
            let name = ours.class_name(one);
            assert_eq!(
                ours.values(one),
                theirs.values(two),
                "{case}: {name} at {id:#x}"
            );
        } else {
            assert!(
                one == two,
                "{case}: the array at {id:#x} has other elements"
            );
        }
    }
}

fn compare_roots(case: &str, jdk: &Jdk, ours: &Heap, theirs: &Heap) {
    let sticky = HeapTag::RootStickyClass;
    assert_eq!(ours.of_root(sticky), theirs.of_root(sticky), "{case}");
    let global = HeapTag::RootJniGlobal;
    // Up to JDK 14 the VM dumps its own variables as if they were JNI references.
    if jdk.version >= 15 {
        assert_eq!(ours.roots[&global], theirs.roots[&global], "{case}");
    } else {
        let both = &ours.of_root(global) | &ours.of_root(HeapTag::RootUnknown);
        let has_all = theirs.of_root(global).is_subset(&both);
        allows!(allowed::VARIABLES, has_all, "{case}");
    }
    // Threads of the VM's own are no roots of its dumps, but their objects are in the heap.
    let kind = HeapTag::RootThreadObject;
    assert!(
        theirs.of_root(kind).is_subset(&ours.of_root(kind)),
        "{case}"
    );
    let hidden = ours.of_root(kind).len() - theirs.of_root(kind).len();
    allows!(allowed::THREADS, hidden < 12, "{case}: {hidden}");
    let frame = HeapTag::RootJavaFrame;
    let local = HeapTag::RootJniLocal;
    let stacks = &ours.of_root(frame) | &ours.of_root(local);
    for kind in [frame, local] {
        let missing: Vec<_> = theirs.of_root(kind).difference(&stacks).copied().collect();
        let has_all = missing.is_empty();
        allows!(allowed::LOCALS, has_all, "{case}: {kind:?} {missing:x?}");
    }
    let monitors = theirs.of_root(HeapTag::RootMonitorUsed);
    let has_all = monitors.is_subset(&ours.of_roots());
    allows!(allowed::MONITORS, has_all, "{case}: {monitors:x?}");
    let compared = [sticky, global, kind, frame, local, HeapTag::RootMonitorUsed];
    let others: Vec<_> = theirs
        .roots
        .keys()
        .filter(|kind| !compared.contains(kind))
        .collect();
    assert!(others.is_empty(), "{case}: {others:?}");
    let missing: Vec<_> = theirs
        .of_roots()
        .difference(&ours.of_roots())
        .copied()
        .collect();
    assert!(missing.is_empty(), "{case}: {missing:x?}");
}
