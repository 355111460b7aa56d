//! Event streams and collectors through the binary.

use crate::ran::tenure;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Output, Stdio};

use serde_json::Value as Json;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(output: &Output) -> Json {
    serde_json::from_slice(&output.stdout).expect("JSON")
}

const LIST: &str = "
class Node 1 8
repeat 40
  call List.push
    n = new Node
    n[0] = $list
    $list = n
  end
  junk = new byte[50]
end
";

#[test]
fn five_collectors_report_the_same_script() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("list.heap"), LIST).expect("written");
    let out = tenure(
        folder.path(),
        &[
            "collectors",
            "--script",
            "list.heap",
            "--heap",
            "4k",
            "--json",
        ],
    );
    assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
    let answer = json(&out);
    assert_eq!(answer["schema"], "tenure.collectors/1");
    let runs = answer["collectors"].as_array().expect("a list");
    let names: Vec<_> = runs
        .iter()
        .map(|run| run["collector"].as_str().expect("a name"))
        .collect();
    let all = [
        "mark_sweep",
        "mark_compact",
        "two_space_copying",
        "generational",
        "reference_counting",
    ];
    assert_eq!(names, all);
    for run in runs {
        let totals = &run["events"]["totals"];
        // 40 nodes and 40 arrays, and the thread's own object, which is dead.
        assert_eq!(totals["allocated_objects"], 81);
        assert_eq!(totals["live_objects"], 40, "{}", run["collector"]);
        assert_eq!(totals["freed_objects"], 41);
        let sites = run["events"]["sites"].as_array().expect("sites");
        assert!(
            sites
                .iter()
                .any(|site| site["name"] == "List.push:5" && site["live_objects"] == 40)
        );
        let leaked = run["events"]["cycle_leaks"]["objects"].as_u64();
        assert_eq!(leaked, Some(0));
    }
    let by_arena = &runs[2];
    assert_eq!(by_arena["freed_singly"], 0, "copying frees with the arena");
    assert_eq!(runs[0]["freed_singly"], 41);
    let tables = text(&tenure(folder.path(), &["collectors", "--script", "list.heap"]).stdout);
    assert!(all.iter().all(|name| tables.contains(name)), "{tables}");
}

/// What a command says at the end of its next line.
fn last_words(printed: &mut impl BufRead, after: &str) -> String {
    let mut line = String::new();
    assert!(
        printed.read_line(&mut line).expect("text") > 0,
        "it has ended"
    );
    let words = line.trim().rsplit_once(after);
    words.map_or_else(String::new, |(_, words)| words.to_owned())
}

#[test]
fn a_front_end_in_another_process_commands_the_reference_vm() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    fs::write(at.join("list.heap"), LIST).expect("written");
    let started = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_tenure"))
            .args(arguments)
            .current_dir(at)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started")
    };
    let mut listener = started(&["listen", "0", "-o", "run.vmpi"]);
    let mut printed = BufReader::new(listener.stderr.take().expect("a pipe"));
    let mut typed = listener.stdin.take().expect("a pipe");
    let address = format!("127.0.0.1:{}", last_words(&mut printed, ":"));
    let vm = [
        "collectors",
        "--gc",
        "generational",
        "--script",
        "list.heap",
        "--heap",
        "4k",
    ];
    let vm = started(
        &[
            &vm[..],
            &["--record", "same.vmpi", "--json", "--net", &address],
        ]
        .concat(),
    );
    last_words(&mut printed, "is connected");
    for (command, answer) in [
        ("gc", "done"),
        ("dump 0", "done"),
        ("dump 2", "done"),
        ("monitors", "done"),
        (
            "request object-alloc 0x3",
            "failed: no such object or class",
        ),
        ("request gc-start 0x3", "not available in this VM"),
        ("disable gc-start", "done"),
        ("gc", "done"),
        ("enable gc-start", "done"),
    ] {
        writeln!(typed, "{command}").expect("typed");
        let expected = format!("{command}: {answer}");
        assert_eq!(last_words(&mut printed, "tenure: "), expected);
    }
    // Until now the VM has waited for more.
    drop(typed);
    let vm = vm.wait_with_output().expect("ended");
    assert_eq!(vm.status.code(), Some(0), "{}", text(&vm.stderr));
    let mut rest = String::new();
    printed.read_to_string(&mut rest).expect("words");
    assert_eq!(listener.wait().expect("ended").code(), Some(0), "{rest}");
    let got = fs::read(at.join("run.vmpi")).expect("a recording");
    assert_eq!(got, fs::read(at.join("same.vmpi")).expect("a recording"));
    let events = json(&tenure(at, &["run.vmpi", "--json"]));
    assert_eq!(events["damaged"], false);
    let totals = &events["totals"];
    assert_eq!(totals, &json(&vm)["collectors"][0]["events"]["totals"]);
    assert_eq!(
        (&totals["allocated_objects"], &totals["live_objects"]),
        (&81.into(), &40.into())
    );
    let mut answers = 0;
    let (mut dumps, mut starts, mut finishes) = (0, 0, 0);
    vmpi::wire::read_all(&got, |frame| {
        let batch = match frame {
            vmpi::wire::Frame::Answer(_) => {
                answers += 1;
                return Ok(());
            }
            vmpi::wire::Frame::Batch(batch) => batch,
            _ => return Ok(()),
        };
        for item in batch {
            if let vmpi::wire::Item::Event { body, .. } = item? {
                dumps += u32::from(body.kind() == vmpi::EventKind::HeapDump);
                starts += u32::from(body.kind() == vmpi::EventKind::GcStart);
                finishes += u32::from(body.kind() == vmpi::EventKind::GcFinish);
            }
        }
        Ok(())
    })
    .expect("a whole stream");
    // The last dump is the VM's own.
    assert_eq!((answers, dumps, finishes - starts), (9, 3, 1));
}

#[test]
fn a_recording_is_opened_and_its_damage_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let made = tenure(
        at,
        &["collectors", "--gc", "generational", "--record", "run.vmpi"],
    );
    assert_eq!(made.status.code(), Some(0), "{}", text(&made.stderr));
    // The file alone is enough: it says what it is.
    let plain = tenure(at, &["run.vmpi", "--json"]);
    assert_eq!(plain.status.code(), Some(0));
    let whole = json(&plain);
    assert_eq!(
        (&whole["schema"], &whole["damaged"]),
        (&"tenure.events/1".into(), &false.into())
    );
    assert_eq!(whole["stream"]["collector"], "generational");
    let promoted = whole["totals"]["promoted_bytes"]
        .as_u64()
        .expect("a number");
    assert!(promoted > 0);

    let page = tenure(at, &["events", "run.vmpi", "-o", "run.html"]);
    assert_eq!(page.status.code(), Some(0), "{}", text(&page.stderr));
    let html = fs::read_to_string(at.join("run.html")).expect("the page");
    assert!(html.contains("<svg") && html.contains("Server.request") && !html.contains("<script"));

    let bytes = fs::read(at.join("run.vmpi")).expect("the recording");
    fs::write(at.join("cut.vmpi"), &bytes[..bytes.len() / 2]).expect("written");
    let cut = tenure(at, &["events", "cut.vmpi", "--json"]);
    assert_eq!(cut.status.code(), Some(4));
    let part = json(&cut);
    assert!(
        part["damage"]
            .as_str()
            .is_some_and(|text| text.starts_with("byte ") && text.contains("expected"))
    );
    let allocated = |answer: &Json| {
        answer["totals"]["allocated_objects"]
            .as_u64()
            .expect("a number")
    };
    assert!(allocated(&part) > 0 && allocated(&part) < allocated(&whole));

    fs::write(at.join("other.vmpi"), b"something else").expect("written");
    let other = tenure(at, &["events", "other.vmpi"]);
    assert_eq!(other.status.code(), Some(3));
    assert!(
        text(&other.stderr).contains("expected an event stream"),
        "{}",
        text(&other.stderr)
    );
}

#[test]
fn every_event_of_one_collector_is_listed() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(
        folder.path().join("s.heap"),
        "class N 1\na = new N\na = null\ngc\n",
    )
    .expect("written");
    let out = tenure(
        folder.path(),
        &[
            "collectors",
            "--gc",
            "mark_sweep",
            "--script",
            "s.heap",
            "--events",
        ],
    );
    let lines = text(&out.stdout);
    assert!(
        lines.contains("thread 1 OBJECT_FREE 0x10000020\n"),
        "{lines}"
    );
    assert!(
        lines.contains("thread 1 GC_FINISH 1 objects, 32 of 32768 bytes\n"),
        "{lines}"
    );
}

#[test]
fn a_script_that_makes_no_sense_is_a_fault_of_the_command_line() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("s.heap"), "a = new Unknown").expect("written");
    let out = tenure(folder.path(), &["collectors", "--script", "s.heap"]);
    assert_eq!(out.status.code(), Some(2));
    assert_eq!(
        text(&out.stderr),
        "tenure: s.heap: line 1: class Unknown is not declared\n"
    );

    fs::write(
        folder.path().join("full.heap"),
        "class N 1\nrepeat 1000\n$n = new N[99]\n$n[0] = $m\n$m = $n\nend",
    )
    .expect("written");
    let out = tenure(
        folder.path(),
        &["collectors", "--gc", "mark_sweep", "--script", "full.heap"],
    );
    assert_eq!(out.status.code(), Some(1), "{}", text(&out.stdout));
    assert!(
        text(&out.stdout).contains("out of memory"),
        "{}",
        text(&out.stdout)
    );
}

#[test]
fn the_options_of_the_collectors_change_what_they_say() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |more: &[&str]| {
        let out = tenure(folder.path(), &[&["collectors", "--json"], more].concat());
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        json(&out)["collectors"][0]["events"].clone()
    };
    let arenas = |events: &Json| events["arenas"].as_array().map_or(0, Vec::len);
    let generational = |more: &[&str]| run(&[&["--gc", "generational"], more].concat());
    assert_eq!(arenas(&generational(&[])), 2);
    assert_eq!(arenas(&generational(&["--generations", "4"])), 4);
    assert_eq!(
        arenas(&generational(&["--promotion-age", "2"])),
        4,
        "two survivor arenas"
    );
    let again = |order: &str| {
        let events = run(&["--gc", "mark_compact", "--order", order]);
        let all = events["collections"].as_array().expect("a list");
        all.iter()
            .map(|one| one["moved_again"].as_u64().expect("a number"))
            .sum::<u64>()
    };
    assert_eq!(again("sliding"), 0);
    assert!(again("arbitrary") > 0);
    let leaked = |more: &[&str]| {
        let events = run(&[&["--gc", "reference_counting"], more].concat());
        events["cycle_leaks"]["cycles"].as_u64().expect("a number")
    };
    assert_eq!((leaked(&[]), leaked(&["--cycle-detector"])), (200, 0));
    let small = run(&["--gc", "mark_sweep", "--heap", "16k"])["totals"]["collections"].as_u64();
    let large = run(&["--gc", "mark_sweep", "--heap", "1m"])["totals"]["collections"].as_u64();
    assert!(small > large);
    let bad = tenure(folder.path(), &["collectors", "--gc", "epsilon"]);
    assert_eq!(bad.status.code(), Some(2));
}

#[test]
fn an_object_is_found_under_every_id_it_had() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    let run = ["collectors", "--gc", "two_space_copying"];
    let recorded = tenure(at, &[&run[..], &["--record", "r.vmpi"]].concat());
    assert_eq!(
        recorded.status.code(),
        Some(0),
        "{}",
        text(&recorded.stderr)
    );
    let listed = text(&tenure(at, &[&run[..], &["--events"]].concat()).stdout);
    // The first object that moves, followed by hand.
    let moves: Vec<Vec<&str>> = listed
        .lines()
        .filter(|line| line.contains("OBJECT_MOVE"))
        .map(|line| {
            line.split_whitespace()
                .filter(|word| word.starts_with("0x"))
                .collect()
        })
        .collect();
    let [first, second] = moves[0][..] else {
        panic!("{:?}", moves[0])
    };
    let trails = |id: &str| {
        let out = tenure(at, &["events", "r.vmpi", "--object", id, "--json"]);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out.stderr));
        json(&out)
    };
    let (by_first, by_second) = (trails(first), trails(second));
    assert_eq!(by_first["schema"], "tenure.trail/1");
    let way = |answer: &Json| {
        let objects = answer["objects"].as_array().expect("a list").clone();
        let moved = |object: &&Json| {
            let steps = object["steps"].as_array().expect("a list");
            let ids: Vec<_> = steps.iter().map(|step| step["id"].as_str()).collect();
            ids.windows(2)
                .any(|pair| pair == [Some(first), Some(second)])
        };
        objects
            .iter()
            .find(moved)
            .expect("the object that moved")
            .clone()
    };
    assert_eq!(way(&by_first), way(&by_second));
    assert_eq!(way(&by_first)["steps"][0]["fate"], "born");
    let printed = tenure(at, &["events", "r.vmpi", "--object", first]);
    assert!(
        text(&printed.stdout).contains(second),
        "{}",
        text(&printed.stdout)
    );
    let unknown = tenure(at, &["events", "r.vmpi", "--object", "0x3"]);
    assert_eq!(unknown.status.code(), Some(1), "{}", text(&unknown.stdout));
    let wrong = tenure(at, &["events", "r.vmpi", "--object", "here"]);
    assert_eq!(wrong.status.code(), Some(2));
}
