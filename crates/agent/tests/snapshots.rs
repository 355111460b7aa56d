//! A snapshot of a program that the agent records knows the stacks that allocated its objects, as a dump of the agent does.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use heap_analysis::objects::object;
use heap_analysis::tables::group::trace_frames;
use heap_graph::{ClassIdx, Control, Heap, Options};

fn open(path: &Path) -> Heap {
    Heap::open(path, &Options::default(), &Control::quiet()).expect("the dump opens")
}

/// How many objects of each class each stack has allocated that begins in the program's code. Class objects have none in
/// a snapshot, and the VM of JDK 8 has no name for the class of a lambda.
fn sites(heap: &Heap) -> BTreeMap<(String, Vec<String>), u64> {
    let mut sites = BTreeMap::new();
    for (i, class) in (0..).zip(heap.classes()) {
        for object in heap.objects_of(ClassIdx(i)) {
            let frames = trace_frames(heap, heap.allocation_trace(object));
            let begins = frames
                .first()
                .is_some_and(|frame| frame.starts_with("Numbered"));
            if begins && class.name != "java.lang.Class" {
                let name = class.name.split("$$").next().unwrap_or_default();
                *sites.entry((name.to_owned(), frames)).or_default() += 1;
            }
        }
    }
    sites
}

/// The stack of each item by its number.
fn items(heap: &Heap) -> BTreeMap<String, Vec<String>> {
    let mut classes = heap.classes().iter();
    let class = classes.position(|class| class.name == "Numbered$Item");
    let class = ClassIdx(class.expect("the class") as u32);
    let of = |item| {
        let shown = object::details(heap, item, &Default::default()).expect("the object");
        let mut slots = shown.slots.iter();
        let number = slots.find(|slot| slot.name == "number").expect("a number");
        (format!("{:?}", number.value), shown.allocated_at)
    };
    heap.objects_of(class).map(of).collect()
}

#[test]
fn a_snapshot_has_the_stacks_of_a_dump_of_the_agent() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Numbered.java", 8) else {
        return;
    };
    for jdk in &lab.jdks {
        let folder = tempfile::tempdir().expect("a folder");
        let library = lab.agent.display();
        let mut java = Command::new(jdk.tool("java"))
            .arg(format!(
                "-agentpath:{library}=heap=dump,format=b,modern=y,depth=8,file=all.hprof"
            ))
            .arg("-cp")
            .arg(classes.path())
            .arg("Numbered")
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a JVM");
        let mut input = java.stdin.take().expect("its input");
        let mut line = String::new();
        let mut output = BufReader::new(java.stdout.take().expect("its output"));
        output.read_line(&mut line).expect("a line");
        assert_eq!(line.trim_end(), "ready");
        let ran = Command::new(testkit::built::tenure())
            .args([
                "dump",
                &java.id().to_string(),
                "--snapshot",
                "-o",
                "now.hprof",
            ])
            .current_dir(folder.path())
            .output()
            .expect("tenure");
        let printed = String::from_utf8_lossy(&ran.stderr).into_owned();
        assert_eq!(ran.status.code(), Some(0), "{printed}");
        assert!(
            printed.contains("have the stack that allocated them"),
            "{printed}"
        );
        input.write_all(b"\n").expect("written");
        drop(input);
        assert!(testkit::wait::ended(&mut java).success());

        let (now, all) = ["now.hprof", "all.hprof"]
            .map(|name| open(&folder.path().join(name)))
            .into();
        let (of_now, of_all) = (items(&now), items(&all));
        assert_eq!(of_now.len(), 301, "JDK {}", jdk.version);
        assert_eq!(of_now, of_all, "JDK {}", jdk.version);
        let is_deep = |frames: &&Vec<String>| {
            let deep = frames
                .iter()
                .filter(|frame| frame.starts_with("Numbered.deep("));
            deep.count() == 5
        };
        assert_eq!(of_now.values().filter(is_deep).count(), 20);
        assert_eq!(sites(&now), sites(&all), "JDK {}", jdk.version);
        let ran = Command::new(testkit::built::tenure())
            .args(["leaks", "now.hprof"])
            .current_dir(folder.path())
            .output()
            .expect("tenure");
        let leaks = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(leaks.contains("Numbered.first("), "{leaks}");
    }
}
