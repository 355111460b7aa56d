//! Recordings of JDK Flight Recorder: what `tenure profile` reads in them against what the JDK's own `jfr print` says,
//! and the recordings that Tenure writes of them before `jfr`.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use testkit::jvm::Jdk;

/// Sums by class or method.
type Sums = BTreeMap<String, u64>;

fn run(program: &Path, folder: &Path, arguments: &[&str]) -> Output {
    let ran = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output();
    ran.unwrap_or_else(|error| panic!("{}: {error}", program.display()))
}

fn tenure(folder: &Path, arguments: &[&str]) -> Output {
    run(env!("CARGO_BIN_EXE_tenure").as_ref(), folder, arguments)
}

/// What a program prints; it must succeed and complain of nothing.
fn printed(program: &Path, folder: &Path, arguments: &[&str]) -> String {
    let ran = run(program, folder, arguments);
    let shown = String::from_utf8_lossy(&ran.stderr);
    assert!(
        ran.status.success() && shown.is_empty(),
        "{arguments:?}: {shown}"
    );
    String::from_utf8(ran.stdout).expect("text")
}

/// Runs the program with a recording into a file.
fn record(jdk: &Jdk, folder: &Path, options: &str, file: &str) {
    let flag = format!("-XX:StartFlightRecording:{options},settings=profile,filename={file}");
    let ran = run(
        &jdk.tool("java"),
        folder,
        &["-Xmx512m", &flag, "-cp", ".", "Recorded"],
    );
    assert!(
        ran.status.success(),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
}

/// Events as `jfr print --json` gives them.
fn events(jdk: &Jdk, folder: &Path, file: &str, name: &str) -> Vec<Value> {
    let arguments = [
        "print",
        "--json",
        "--stack-depth",
        "1",
        "--events",
        name,
        file,
    ];
    let text = printed(&jdk.tool("jfr"), folder, &arguments);
    let mut answer: Value = serde_json::from_str(&text).expect("JSON");
    let events = answer["recording"]["events"].take();
    let events = events.as_array().expect("events").iter();
    events.map(|event| event["values"].clone()).collect()
}

/// `PT1.5S` in nanoseconds.
fn nanoseconds(duration: &Value) -> u64 {
    let text = duration.as_str().expect("a duration");
    let seconds = text.trim_start_matches("PT").trim_end_matches('S');
    let (whole, part) = seconds.split_once('.').unwrap_or((seconds, ""));
    let nanoseconds: u64 = format!("{part:0<9}").parse().expect(text);
    whole.parse::<u64>().expect(text) * 1_000_000_000 + nanoseconds
}

/// `[B` and `java/lang/Object` as Tenure writes classes.
fn class(class: &Value) -> String {
    match class["name"].as_str() {
        Some(name) => format!("[{}]", hprof::readable_class_name(name)),
        None => String::new(),
    }
}

fn innermost(event: &Value) -> String {
    let method = &event["stackTrace"]["frames"][0]["method"];
    match (method["type"]["name"].as_str(), method["name"].as_str()) {
        (Some(class), Some(name)) => format!("{}.{name}", hprof::readable_class_name(class)),
        _ => "[no stack]".to_owned(),
    }
}

fn sums(events: &[Value], of: impl Fn(&Value) -> (String, u64)) -> Sums {
    let mut sums = Sums::new();
    for (name, value) in events.iter().map(of) {
        *sums.entry(name).or_default() += value;
    }
    sums.retain(|_, value| *value > 0);
    sums
}

/// What `tenure profile` says each method or class costs itself.
fn own(folder: &Path, file: &str, metric: &str) -> Sums {
    let ran = tenure(folder, &["profile", file, "--json", "--metric", metric]);
    let shown = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(0), "{metric}: {shown}");
    let answer: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    let rows = answer["methods"].as_array().expect("methods").iter();
    let rows = rows.map(|row| {
        let name = row["method"].as_str().expect("a name");
        (name.to_owned(), row["own"].as_u64().expect("a number"))
    });
    rows.filter(|(_, value)| *value > 0).collect()
}

fn has_events(jdk: &Jdk, folder: &Path, name: &str) -> bool {
    !events(jdk, folder, "a.jfr", name).is_empty()
}

/// The events of the last time that old objects were written.
fn last_batch(mut events: Vec<Value>) -> Vec<Value> {
    let times = events
        .iter()
        .map(|event| event["startTime"].as_str().expect("a time").to_owned());
    let last = times.max();
    events.retain(|event| event["startTime"].as_str() == last.as_deref());
    events
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn check_jdk(jdk: &Jdk) {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let source = folder.join("Recorded.java");
    std::fs::write(&source, include_str!("Recorded.java")).expect("written");
    jdk.compile(&source, 11, folder).expect("compiles");
    let has_cpu_time = jdk.version >= 25;
    let more = if has_cpu_time {
        "jdk.CPUTimeSample#enabled=true,"
    } else {
        ""
    };
    let options = format!("{more}jdk.JavaMonitorEnter#threshold=0ms,jdk.ThreadPark#threshold=0ms");
    record(jdk, folder, &options, "a.jfr");
    let of = |name: &str| events(jdk, folder, "a.jfr", name);

    let samples = sums(&of("jdk.ExecutionSample"), |e| (innermost(e), 1));
    assert!(samples.contains_key("Recorded.compute"), "{samples:?}");
    assert_eq!(own(folder, "a.jfr", "samples"), samples);
    if has_cpu_time {
        let time = sums(&of("jdk.CPUTimeSample"), |e| {
            (innermost(e), nanoseconds(&e["samplingPeriod"]))
        });
        assert_eq!(own(folder, "a.jfr", "cpu"), time);
    }
    let allocated = sums(&of("jdk.ObjectAllocationSample"), |e| {
        (class(&e["objectClass"]), number(&e["weight"]))
    });
    // The VM chooses which allocations it samples; nearly all bytes of this program are in these arrays.
    assert!(allocated.contains_key("[byte[]]"), "{allocated:?}");
    assert_eq!(own(folder, "a.jfr", "alloc_space"), allocated);
    let entered = of("jdk.JavaMonitorEnter");
    let blocked = sums(&entered, |e| {
        (class(&e["monitorClass"]), nanoseconds(&e["duration"]))
    });
    assert!(blocked.contains_key("[java.lang.Object]"), "{blocked:?}");
    assert_eq!(own(folder, "a.jfr", "delay"), blocked);
    let counted = sums(&entered, |e| (class(&e["monitorClass"]), 1));
    assert_eq!(own(folder, "a.jfr", "contentions"), counted);
    let parks = of("jdk.ThreadPark");
    let place = |e: &Value| match class(&e["parkedClass"]).as_str() {
        "" => innermost(e),
        class => class.to_owned(),
    };
    let parked = sums(&parks, |e| (place(e), nanoseconds(&e["duration"])));
    assert!(
        parked.keys().any(|name| name.contains("ReentrantLock")),
        "{parked:?}"
    );
    assert_eq!(own(folder, "a.jfr", "parked"), parked);
    assert_eq!(
        own(folder, "a.jfr", "parks"),
        sums(&parks, |e| (place(e), 1))
    );
    let old = last_batch(of("jdk.OldObjectSample"));
    let objects = sums(&old, |e| (class(&e["object"]["type"]), 1));
    // Which objects the JDK samples is its choice.
    if !objects.is_empty() {
        assert_eq!(own(folder, "a.jfr", "inuse_objects"), objects);
    }
    if old
        .first()
        .is_some_and(|one| one.get("objectSize").is_some())
    {
        let bytes = sums(&old, |e| {
            (class(&e["object"]["type"]), number(&e["objectSize"]))
        });
        assert_eq!(own(folder, "a.jfr", "inuse_space"), bytes);
    }
    let chunks = printed(&jdk.tool("jfr"), folder, &["summary", "a.jfr"]);
    let chunks = chunks
        .lines()
        .find_map(|line| line.trim().strip_prefix("Chunks: "));
    assert!(chunks.is_some_and(|count| count != "1"), "{chunks:?}");

    // Without samples of allocations, those of buffers.
    let options = "jdk.ObjectAllocationSample#enabled=false,jdk.ObjectAllocationInNewTLAB#enabled=true,jdk.ObjectAllocationOutsideTLAB#enabled=true";
    record(jdk, folder, options, "b.jfr");
    let of = |name: &str| events(jdk, folder, "b.jfr", name);
    let mut buffers = sums(&of("jdk.ObjectAllocationInNewTLAB"), |e| {
        (class(&e["objectClass"]), number(&e["tlabSize"]))
    });
    let outside = sums(&of("jdk.ObjectAllocationOutsideTLAB"), |e| {
        (class(&e["objectClass"]), number(&e["allocationSize"]))
    });
    for (name, bytes) in outside {
        *buffers.entry(name).or_default() += bytes;
    }
    assert_eq!(own(folder, "b.jfr", "alloc_space"), buffers);

    check_conversions(jdk, folder);
    check_damage(folder);
}

/// Other forms of a recording, each with the sums of the recording.
fn check_conversions(jdk: &Jdk, folder: &Path) {
    for output in ["a.html", "a.pb.gz", "a.json", "a.collapsed", "again.jfr"] {
        let ran = tenure(folder, &["convert", "a.jfr", "-o", output]);
        let shown = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(ran.status.code(), Some(0), "{output}: {shown}");
    }
    for metric in [
        "samples",
        "alloc_space",
        "contentions",
        "parks",
        "inuse_objects",
    ] {
        // Objects without a size are not written, and sometimes there are none.
        let has_objects = has_events(jdk, folder, "jdk.OldObjectSample");
        if metric == "inuse_objects" && (jdk.version < 20 || !has_objects) {
            continue;
        }
        assert_eq!(
            own(folder, "again.jfr", metric),
            own(folder, "a.jfr", metric),
            "{metric}"
        );
    }
    for metric in ["delay", "parked"] {
        let sum = |file: &str| own(folder, file, metric).values().sum::<u64>();
        let (here, there) = (sum("a.jfr"), sum("again.jfr"));
        // Each wait is written with the mean of its stack, in whole nanoseconds.
        assert!(
            there <= here && here - there < 100_000,
            "{metric}: {here}, {there}"
        );
    }
    // Threads by name, and which of them have ended.
    let speedscope: Value =
        serde_json::from_slice(&std::fs::read(folder.join("a.json")).expect("a file"))
            .expect("JSON");
    let profiles = speedscope["profiles"].as_array().expect("profiles").iter();
    let names: Vec<_> = profiles.filter_map(|one| one["name"].as_str()).collect();
    assert!(names.contains(&"CPU samples, thread task-0"), "{names:?}");
    let ended = events(jdk, folder, "again.jfr", "jdk.ThreadEnd");
    let ended = ended
        .iter()
        .filter_map(|event| event["thread"]["javaName"].as_str());
    let ended: Vec<_> = ended.filter(|name| name.starts_with("task-")).collect();
    assert_eq!(ended.len(), 4, "{ended:?}");
    // The JDK's own tool shows it without complaint.
    let jfr = jdk.tool("jfr");
    let summary = printed(&jfr, folder, &["summary", "again.jfr"]);
    assert!(summary.contains("jdk.ThreadPark"), "{summary}");
    printed(&jfr, folder, &["print", "again.jfr"]);
    if jdk.version >= 21 {
        for (view, want) in [
            ("hot-methods", "Recorded.compute()"),
            // The class that most bytes are of: others may have no sample.
            ("allocation-by-class", "byte[]"),
            ("contention-by-class", "java.lang.Object"),
            ("memory-leaks-by-class", ""),
        ] {
            let text = printed(&jfr, folder, &["view", view, "again.jfr"]);
            assert!(text.contains(want), "{view}: {text}");
        }
        printed(&jfr, folder, &["view", "all-views", "again.jfr"]);
    }
}

/// Cut and changed recordings: what can be read is read, and the exit code reports the damage.
fn check_damage(folder: &Path) {
    let whole = std::fs::read(folder.join("a.jfr")).expect("a recording");
    std::fs::write(folder.join("cut.jfr"), &whole[..whole.len() - 1000]).expect("written");
    let ran = tenure(folder, &["profile", "cut.jfr", "--json"]);
    assert_eq!(
        ran.status.code(),
        Some(4),
        "{}",
        String::from_utf8_lossy(&ran.stderr)
    );
    let answer: Value = serde_json::from_slice(&ran.stdout).expect("JSON");
    assert!(
        answer["total"].as_u64().is_some_and(|total| total > 0),
        "{answer}"
    );
    let mut tail = whole.clone();
    tail.extend(b"something else");
    std::fs::write(folder.join("tail.jfr"), tail).expect("written");
    let ran = tenure(folder, &["profile", "tail.jfr"]);
    assert_eq!(ran.status.code(), Some(4));
    let heap = tenure(folder, &["leaks", "a.jfr"]);
    assert_eq!(heap.status.code(), Some(3));
    assert!(String::from_utf8_lossy(&heap.stderr).contains("tenure profile"));
}

/// The JDKs whose recordings are read: JDK 17 and 25, where there are several.
fn judges() -> Vec<Jdk> {
    let found = testkit::jvm::jdks().into_iter();
    let mut found: Vec<Jdk> = found
        .filter(|jdk| jdk.version >= 17 && jdk.tool("jfr").exists() && jdk.tool("javac").exists())
        .collect();
    found.dedup_by_key(|jdk| jdk.version);
    found
}

#[test]
fn what_is_read_in_a_recording_is_what_the_jdk_prints() {
    let judges = judges();
    if judges.is_empty() {
        testkit::skip("recordings", testkit::Need::Jdk, testkit::jvm::NO_JDK);
    }
    judges.iter().for_each(check_jdk);
}
