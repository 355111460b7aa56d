//! Dumps that the VM writes for the agent: every stack is the right one, nothing is
//! missing, and the counts are those of the VM.

use std::collections::HashMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use hprof::{BasicType, HeapVisitor, IdSize, Record, map_file};
use hprof_text::{TextReader, TextRecord};
use testkit::jvm::Jdk;

#[test]
fn the_dump_at_the_end_needs_no_memory_that_a_concurrent_collector_would_have_to_free() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Daemons.java", 8) else {
        return;
    };
    for jdk in lab.jdks.iter().filter(|jdk| jdk.version >= 17) {
        // Sometimes the threads leave some memory.
        for _ in 0..4 {
            let options = Some("heap=dump,format=b,modern=y,file=end.hprof");
            let flags = ["-XX:+UseZGC", "-Xmx32m"];
            let ran = lab.run_in(jdk, classes.path(), options, &flags, &["Daemons"]);
            assert_eq!(
                ran.output.status.code(),
                Some(7),
                "{}: {}",
                jdk.full_version,
                ran.stderr()
            );
            let dump = std::fs::read(ran.folder.path().join("end.hprof")).expect("a dump");
            let map = map_file(&dump, |_| {}).expect("a header");
            assert!(map.diagnostics.is_empty(), "{:?}", map.diagnostics);
        }
    }
}

/// What one snapshot says of the objects of `Placed`.
#[derive(Debug, Default)]
struct Tally {
    right: u64,
    wrong: u64,
    unknown: u64,
}

struct Check<'a> {
    item: u64,
    ids: IdSize,
    /// Method names of each trace.
    traces: &'a HashMap<u32, Vec<String>>,
    tally: Tally,
}

impl Check<'_> {
    fn judge(&mut self, trace: u32, methods: [&str; 2], which: u32) {
        let names = self
            .traces
            .get(&trace)
            .map(Vec::as_slice)
            .unwrap_or_default();
        let (one, two) = (methods[0].to_owned(), methods[1].to_owned());
        let [is_one, is_two] = [names.contains(&one), names.contains(&two)];
        match (is_one, is_two, which) {
            (false, false, _) => self.tally.unknown += 1,
            (true, false, 0) | (false, true, 1) => self.tally.right += 1,
            _ => self.tally.wrong += 1,
        }
    }
}

impl HeapVisitor for Check<'_> {
    fn instance(&mut self, _: hprof::FileOffset, object: hprof::Instance<'_>) {
        if object.class.0 != self.item {
            return;
        }
        let word = |at: usize| {
            let bytes = object.fields[at..at + 4].try_into();
            u32::from_be_bytes(bytes.expect("four bytes"))
        };
        // The VM decides which of the two fields comes first.
        let site = [word(0), word(self.ids.bytes())];
        // One that is being made has no number yet.
        if let Some(site) = site.into_iter().find(|site| [1, 2].contains(site)) {
            self.judge(object.trace.0, ["first", "second"], site - 1);
        }
    }

    fn primitive_array(&mut self, _: hprof::FileOffset, array: hprof::PrimitiveArray<'_>) {
        if let [0, 0, 0x7e, 0x57, 0, 0, 0, which @ (3 | 4)] = array.data
            && array.element == BasicType::Int
        {
            self.judge(array.trace.0, ["third", "fourth"], u32::from(*which) - 3);
        }
    }
}

/// Counts right and wrong stacks in every snapshot of a file.
fn tallies(file: &Path) -> Vec<Tally> {
    let data = std::fs::read(file).expect("a dump");
    let (mut names, mut frames) = (HashMap::new(), HashMap::new());
    let (mut traces, mut item) = (HashMap::new(), 0);
    let header = hprof::Header::parse(&data).expect("a header");
    let map = map_file(&data, |record| match record.decode(header.id_size) {
        Some(Record::Utf8 { id, bytes }) => {
            names.insert(id.0, String::from_utf8_lossy(bytes).into_owned());
        }
        Some(Record::Frame(frame)) => {
            frames.insert(frame.id.0, names[&frame.method.0].clone());
        }
        Some(Record::Trace {
            serial,
            frames: ids,
            ..
        }) => {
            let methods = ids.iter().map(|id| frames[&id.0].clone()).collect();
            traces.insert(serial.0, methods);
        }
        Some(Record::LoadClass { class, name, .. }) if names[&name.0] == "Placed$Item" => {
            item = class.0;
        }
        _ => {}
    });
    let map = map.expect("a dump");
    assert!(!map.diagnostics.any_damage(), "{:?}", map.diagnostics);
    let snapshot = |n| {
        let mut check = Check {
            item,
            ids: header.id_size,
            traces: &traces,
            tally: Tally::default(),
        };
        for segment in map.snapshot(n) {
            let (from, end) = (segment.body, segment.end);
            let walked = hprof::walk(&data, header.id_size, from, end, end, &mut check);
            assert_eq!(walked, Ok(end));
        }
        check.tally
    };
    (0..map.snapshots).map(snapshot).collect()
}

/// A program that is running and has said that it is ready.
struct Running {
    child: Child,
    folder: tempfile::TempDir,
}

impl Running {
    fn start(jdk: &Jdk, options: &str, flags: &[&str], program: &[&str]) -> Self {
        let lab = crate::common::lab().expect("a laboratory");
        let folder = tempfile::tempdir().expect("temporary folder");
        let mut child = Command::new(jdk.tool("java"))
            .current_dir(folder.path())
            .env_remove("_JAVA_HPROF_OPTIONS")
            .arg(crate::common::kept_report("Placed"))
            .arg(format!("-agentpath:{}={options}", lab.agent.display()))
            .args(flags)
            .arg("-cp")
            .arg(lab.classes())
            .args(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("java runs");
        let mut lines = BufReader::new(child.stdout.as_mut().expect("piped"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("a line");
        assert_eq!(line, "ready\n", "{flags:?}");
        Self { child, folder }
    }

    /// Has a dump written and waits for its end.
    fn dump(&mut self) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args(["-QUIT", &pid]).status();
        assert!(sent.expect("kill runs").success());
        let mut lines = BufReader::new(self.child.stderr.as_mut().expect("piped"));
        let mut line = String::new();
        while !line.contains(" done.\n") {
            line.clear();
            let count = lines.read_line(&mut line).expect("a line");
            assert!(count > 0, "it ended");
        }
    }

    /// Ends the program by ending its input.
    fn end(mut self) -> tempfile::TempDir {
        drop(self.child.stdin.take());
        let output = self.child.wait_with_output().expect("it ends");
        assert!(output.status.success());
        self.folder
    }
}

/// Flags of each collector, and of the widths of references where these differ.
const RUNS: [&[&str]; 7] = [
    &["-XX:+UseSerialGC"],
    &["-XX:+UseParallelGC"],
    &["-XX:+UseParallelGC", "-XX:ObjectAlignmentInBytes=16"],
    &["-XX:+UseG1GC"],
    &["-XX:+UseG1GC", "-XX:-UseCompressedOops"],
    &["-XX:+UseZGC"],
    &["-XX:+UseShenandoahGC"],
];

#[test]
fn every_object_carries_the_stack_that_made_it_on_every_collector() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        for flags in RUNS {
            let flags = [flags, &["-XX:+UnlockExperimentalVMOptions", "-Xmx200m"]].concat();
            let what = format!("{} {flags:?}", jdk.full_version);
            let mut plain = Command::new(jdk.tool("java"));
            let plain = plain.args(&flags).arg("-version").output();
            if !plain.expect("java runs").status.success() {
                testkit::skip(&what, testkit::Need::JdkPart, "not built into this runtime");
                continue;
            }
            // Ids of four bytes and of eight differ by no collector.
            let modes = ["compat", "modern"];
            let modes = &modes[..if flags[0].contains("G1") { 2 } else { 1 }];
            for mode in modes {
                let options = format!("heap=dump,format=b,file=out,{mode}=y");
                // A concurrent collector would fight with the program for the CPU.
                let is_busy = !flags[0].contains("UseZ") && !flags[0].contains("Shen");
                let program = ["Placed", if is_busy { "busy" } else { "idle" }];
                let mut running = Running::start(jdk, &options, &flags, &program);
                running.dump();
                running.dump();
                let folder = running.end();
                let tallies = tallies(&folder.path().join("out"));
                assert_eq!(tallies.len(), 3, "{what} {mode}");
                for tally in tallies {
                    assert_eq!(tally.wrong, 0, "{what} {mode} {tally:?}");
                    // What is made just before the dump is not followed yet.
                    assert!(tally.right > 40_000, "{what} {mode} {tally:?}");
                }
                let left = std::fs::read_dir(folder.path()).expect("a folder").count();
                assert_eq!(left, 1, "no other file is left behind");
            }
        }
    }
}

#[test]
fn dumps_are_whole_and_their_counts_are_those_of_the_vm() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.jdks.iter().filter(|jdk| jdk.tool("jcmd").is_file()) {
        for options in [
            "heap=dump,format=b,file=out",
            "heap=dump,format=b,file=out,modern=y",
            "heap=dump,alloc=4k,format=b,file=out",
        ] {
            let mut running = Running::start(jdk, &format!("{options},doe=n"), &[], &["Placed"]);
            running.dump();
            let pid = running.child.id().to_string();
            let jcmd = Command::new(jdk.tool("jcmd"))
                .args([&pid, "GC.class_histogram"])
                .output()
                .expect("jcmd runs");
            let folder = running.end();
            let what = format!("{} {options}", jdk.full_version);
            let file = folder.path().join("out");
            let settings = heap_graph::Options {
                no_index: true,
                ..heap_graph::Options::default()
            };
            let control = heap_graph::Control::quiet();
            let heap = heap_graph::Heap::open(&file, &settings, &control).expect("a dump");
            if !options.contains("alloc") {
                let tally = &tallies(&file)[0];
                assert!(
                    tally.right >= 80_000 && tally.unknown < 300,
                    "{what}: {tally:?}"
                );
            }
            let verdict = heap_analysis::tables::validate::validate(&heap);
            assert!(
                verdict.whole && verdict.findings.is_empty(),
                "{what}: {:?}",
                verdict.findings
            );
            for check in &verdict.checks {
                assert!(check.ok, "{what}: {} {}", check.count, check.what);
            }
            let counted = heap_graph::quick_histogram(&file, &settings, &control);
            compare(
                &counted.expect("a dump"),
                &String::from_utf8_lossy(&jcmd.stdout),
                &what,
            );
        }
    }
}

/// The program's classes exactly, the VM's own within what answering `jcmd` makes.
fn compare(counted: &heap_graph::QuickHistogram, jcmd: &str, what: &str) {
    let mut ours: HashMap<String, i64> = HashMap::new();
    for row in &counted.rows {
        *ours.entry(row.name.clone()).or_default() += row.objects as i64;
    }
    let (mut rows, mut apart) = (0, 0);
    for row in testkit::corpus::parse_histogram(jcmd) {
        rows += row.instances as i64;
        let name = hprof::readable_class_name(&row.class);
        let found = ours.get(&name).copied().unwrap_or_default();
        let difference = found - row.instances as i64;
        apart += difference.abs();
        if name.starts_with("Placed") {
            assert_eq!(difference, 0, "{what}: {name}");
        }
    }
    assert!(
        rows > 80_000 && apart < rows / 50,
        "{what}: {apart} of {rows} apart"
    );
}

#[test]
fn a_text_dump_has_the_objects_and_sizes_that_the_vm_has() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    // Both widths of references, and heads of both sizes where the VM has them.
    let layouts: [&[&str]; 4] = [
        &[],
        &["-XX:-UseCompressedOops"],
        &[
            "-Xlog:disable", // of the class archive, which does not fit
            "-XX:-UseCompressedOops",
            "-XX:-UseCompressedClassPointers",
        ],
        &["-XX:+UseCompactObjectHeaders"],
    ];
    for jdk in lab.jdks.iter().filter(|jdk| jdk.tool("jcmd").is_file()) {
        for flags in layouts {
            let knows = Command::new(jdk.tool("java"))
                .args(flags)
                .arg("-version")
                .output();
            if !knows.expect("java runs").status.success() {
                continue;
            }
            let mut running = Running::start(jdk, "heap=dump,file=out,doe=n", flags, &["Placed"]);
            running.dump();
            let pid = running.child.id().to_string();
            let jcmd = Command::new(jdk.tool("jcmd"))
                .args([&pid, "GC.class_histogram"])
                .output()
                .expect("jcmd runs");
            let folder = running.end();
            let what = format!("{} {flags:?}", jdk.full_version);
            let bytes = std::fs::read(folder.path().join("out")).expect("a profile");
            let mut ours: HashMap<String, (u64, u64)> = HashMap::new();
            let mut traced = 0;
            for record in TextReader::new(&bytes) {
                let (class, size, trace) = match &record {
                    TextRecord::Object(object) => (object.class, object.size, object.trace),
                    TextRecord::Array(array) => (array.class, array.size, array.trace),
                    TextRecord::Note(note) => panic!("{what}: {}", String::from_utf8_lossy(note)),
                    _ => continue,
                };
                let sum = ours.entry(String::from_utf8_lossy(class).into_owned());
                let sum = sum.or_default();
                *sum = (sum.0 + 1, sum.1 + size);
                traced += u64::from(trace != 300_000);
            }
            assert!(traced > 80_000, "{what}: {traced}");
            let (mut compared, mut same) = (0, 0);
            for row in testkit::corpus::parse_histogram(&String::from_utf8_lossy(&jcmd.stdout)) {
                let name = hprof::readable_class_name(&row.class);
                let Some((objects, size)) = ours.get(&name).copied() else {
                    continue;
                };
                // Of arrays of primitives the text has the elements only; class objects have
                // their statics in them.
                let is_odd = row.class.len() == 2 || name == "java.lang.Class";
                if objects != row.instances || is_odd {
                    assert!(!name.starts_with("Placed"), "{what}: {name}");
                    continue;
                }
                compared += 1;
                same += u64::from(size == row.bytes);
                if name.starts_with("Placed")
                    || !name.starts_with("java.lang.invoke") && objects > 50
                {
                    assert_eq!(size, row.bytes, "{what}: {objects} of {name}");
                }
            }
            // The last object before a gap is followed by more than itself.
            assert!(
                compared > 100 && same * 20 >= compared * 19,
                "{what}: {same} of {compared}"
            );
        }
    }
}
