//! The live page of real programs with known populations, through the binary.

use crate::json_schema::{misfits, published};
use crate::watched::{Lab, Page, Program, java, jvm_of, lab, run_live, start_live_with, wait};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use testkit::jvm::Jdk;

/// A row's numbers.
fn numbers<const N: usize>(row: &Value, names: [&str; N]) -> [i64; N] {
    names.map(|name| row[name].as_i64().unwrap_or(-1))
}

const NODES: &str = "filter=Populations$Node";
const COLUMNS: [&str; 4] = ["allocations", "deallocations", "remaining", "live"];

#[test]
fn counts_are_exact_in_every_range_and_dumps_know_their_stacks() {
    let Some(lab) = lab("live counts") else {
        return;
    };
    for jdk in &lab.jdks {
        let folder = tempfile::tempdir().expect("a folder");
        let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");
        let (mut program, page) = run_live(lab, jdk, folder.path(), &["--source", tests]);
        page.command("record?mode=full");
        page.counting(&mut program);
        program.send("keep 1000");
        program.send("garbage 500");
        program.send("other 600");
        page.collect();
        let middle = page.snapshot();
        let nodes = |range: &str| page.json(&format!("allocations?{NODES}{range}"));
        let whole = nodes("&by=class");
        assert_eq!(whole["count"], 1, "{whole} on {}", jdk.full_version);
        assert_eq!(numbers(&whole["rows"][0], COLUMNS), [1500, 500, 1000, 1000]);
        let sites = nodes("&by=site&sort=live");
        let stack = |row: usize| sites["rows"][row]["stack"].to_string();
        assert!(
            stack(0).contains("Populations.keep(Populations.java:"),
            "{sites}"
        );
        assert!(stack(1).contains("Populations.garbage"), "{sites}");
        // A range after that knows nothing of it.
        program.send("keep 50");
        program.send("drop");
        program.send("other 600");
        page.command("gc");
        page.snapshot();
        let later = nodes(&format!("&from={middle}"));
        assert_eq!(numbers(&later["rows"][0], COLUMNS), [50, 1050, -1000, 0]);
        assert_eq!(
            numbers(&nodes(&format!("&to={middle}"))["rows"][0], COLUMNS),
            [1500, 500, 1000, 1000]
        );
        every_table_is_of_the_range(&page, middle);
        // What is off is not counted.
        page.command("stop");
        // The agent takes up one command after the other.
        page.snapshot();
        program.send("keep 7");
        page.snapshot();
        assert_eq!(numbers(&nodes("")["rows"][0], COLUMNS)[0], 1550);
        page.command("record");
        page.snapshot();
        content(&mut program, &page);
        measurements(&page);
        places(&mut program, &page, jdk.version);
        class_options(&page);
        program.child.kill().expect("killed");
    }
}

/// Threads count their objects before the agent has taken them over, and it reads both while they do.
#[test]
fn what_is_alive_is_never_counted_as_dead() {
    let Some(lab) = lab("live counts") else {
        return;
    };
    for jdk in &lab.jdks {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut program, page) = run_live(lab, jdk, folder.path(), &[]);
        page.command("record?mode=full");
        page.counting(&mut program);
        for _ in 0..ROUNDS {
            program.say(&format!("keep {MANY}"));
            page.count();
            program.expect("ok");
        }
        page.count();
        let nodes = page.json(&format!("allocations?{NODES}&by=class"));
        let all = i64::from(ROUNDS * MANY);
        assert_eq!(
            numbers(&nodes["rows"][0], COLUMNS),
            [all, 0, all, all],
            "on {}",
            jdk.full_version
        );
    }
}

/// So often objects are made while they are counted, and so many each time: a few milliseconds of work.
const ROUNDS: u32 = 100;
const MANY: u32 = 5000;

/// Not only allocations are those of a range: 50 were made in it, 1050 died, and none is alive.
fn every_table_is_of_the_range(page: &Page, from: u64) {
    let columns = ["live", "freed", "total"];
    let classes = |range: &str| {
        let classes = page.json(&format!("classes?source=recording&{NODES}{range}"));
        numbers(&classes["rows"][0], columns)
    };
    assert_eq!(classes(&format!("&from={from}")), [0, 1050, 50]);
    assert_eq!(classes(&format!("&to={from}")), [1000, 500, 1500]);
    assert_eq!(classes(""), [0, 1550, 1550]);
    let stacks = page.json(&format!("stacks?{NODES}&from={from}"));
    assert_eq!(stacks["total"]["allocations"], 50, "{stacks}");
    let all = page.json("timeline")["events"].to_string();
    let some = page.json(&format!("timeline?from={from}"))["events"].to_string();
    assert!(all.contains("Recording started") && !some.contains("Recording started"));
    let collections = |range: &str| page.json(&format!("growth?{range}"))["collections"].as_u64();
    assert!(collections(&format!("from={from}")) < collections(""));
    let plain = page.text(&format!("plain/allocations?{NODES}&from={from}"));
    assert!(plain.contains("<td>50</td><td>1050</td>"), "{plain}");
    let none = page.snapshot();
    let nothing = page.json(&format!("allocations?{NODES}&from={none}"));
    assert_eq!(nothing["count"], 0, "{nothing}");
}

/// Sizes and capacities of a class, in the page's form and in the old one.
fn content(program: &mut Program, page: &Page) {
    let before = page.snapshot();
    program.send("bags 20");
    page.snapshot();
    page.command("dump");
    let opened = |state: &Value| state["dumps"][0]["stage"] == "ready";
    let state = page.until("state", opened);
    assert_eq!(state["dumps"][0]["joined"], true);
    let classes = page.json("classes?filter=Populations$Bag");
    let row = &classes["rows"][0];
    assert_eq!(
        numbers(row, ["live", "total", "freed"]),
        [20, 20, 0],
        "{classes}"
    );
    assert_eq!(
        numbers(&row["size"], ["sum", "max", "max_ever"]),
        [200, 10, 10],
        "{row}"
    );
    assert_eq!(
        numbers(&row["capacity"], ["sum", "max", "max_ever"]),
        [2000, 100, 100],
        "{row}"
    );
    let made = |range: &str| {
        let list = page.json(&format!("instances?class=Populations$Bag&{range}={before}"));
        assert_eq!(
            (&list["source"], &list["objects"]),
            (&"live".into(), &20.into()),
            "{list}"
        );
        list["rows"].as_array().map(Vec::len)
    };
    assert_eq!((made("from"), made("to")), (Some(20), Some(0)));
    let list = page.json("instances?class=Populations$Bag&sort=size");
    assert_eq!(list["objects"], 20);
    let stack = list["rows"][0]["stack"].to_string();
    assert!(stack.contains("Populations.bags"), "{list}");
    let old = page.text("profiler?action=type&type=Populations$Bag");
    assert!(old.contains("<td>20</td><td>0</td><td>20</td>"), "{old}");
    let old = page.text("profiler?action=instances&type=Populations$Bag&sort=uniq_stack&sample=-1");
    assert!(
        old.contains("Populations.bags") && old.contains("<td>20</td><td>20</td>"),
        "{old}"
    );
    let sizes = page.text("profiler?action=instances&type=Populations$Bag&sort=uniq_size");
    assert!(
        sizes.contains("<td>10</td><td>20</td><td>20</td>"),
        "{sizes}"
    );
    let hours = page.text("profiler?action=instances&type=Populations$Bag&sort=uniq_hour");
    assert!(hours.contains("20 instances are alive"), "{hours}");
    let seconds = page.json("groups?class=Populations$Bag&by=second");
    let rows = seconds["rows"].as_array().expect("rows");
    let sum = rows
        .iter()
        .filter_map(|row| row["sampled"].as_u64())
        .sum::<u64>();
    assert_eq!((sum, &seconds["objects"]), (20, &20.into()), "{seconds}");
    assert!(
        page.text("profiler?action=script")
            .contains("addEventListener")
    );
    let explorer = page.text("dumps/1/api/v1/histogram?filter=Bag");
    assert!(explorer.contains("Populations$Bag"), "{explorer}");
    let vm = page.json("classes?source=vm&filter=Populations$Bag");
    assert_eq!(vm["rows"][0]["live"], 20, "the VM's own histogram");
    let kinds = page.json("savings?by=kind");
    assert_eq!(
        (&kinds["dump"], kinds["rows"][0]["what"].is_null()),
        (&1.into(), true),
        "{kinds}"
    );
    let csv = page.text("api/v1/instances?class=Populations$Bag&source=dump&form=csv");
    assert!(
        csv.starts_with("object,born_ms,size,") && csv.contains(",10,100,90,"),
        "{csv}"
    );
    let csv = page.text("api/v1/groups?class=Populations$Bag&by=size&form=csv");
    assert!(
        csv.starts_with("value,sampled,estimated,stack\r\n10,20,20,"),
        "{csv}"
    );
    saved(program, page);
}

/// Two tables that were kept differ by what the program did between them; a frame leads to its line.
fn saved(program: &mut Program, page: &Page) {
    page.command("save");
    program.send("bags 30");
    page.snapshot();
    page.command("save");
    let names = ["live_before", "live_after", "live_change"];
    let changes = page.json("compare?from=1&to=2&filter=Populations$Bag");
    assert_eq!(numbers(&changes["rows"][0], names), [20, 50, 30]);
    let back = page.json("compare?from=2&to=1&filter=Populations$Bag");
    assert_eq!(numbers(&back["rows"][0], names), [50, 20, -30]);
    let same = page.json("compare?from=2&to=2");
    assert_eq!(same["count"], 0, "{same}");
    let state = page.json("state");
    let stem = state["saved"][1]["stem"].as_str().expect("a file");
    let file = std::fs::read_to_string(format!("{stem}.html")).expect("kept");
    assert!(file.contains("<td>Populations$Bag</td>"), "{file}");
    assert_eq!(page.text("api/v1/saved?number=2&form=html"), file);
    assert_eq!(page.ask("GET", "api/v1/compare?from=1&to=9").0, 404);
    for (question, words) in [
        ("allocations?from=5&to=3", "the range ends before it begins"),
        ("savings?from=5&to=3", "the range ends before it begins"),
        ("timeline?after=-1", "expected a whole number"),
        ("cpu?base_from=1", "give both or none"),
    ] {
        let (status, body) = page.ask("GET", &format!("api/v1/{question}"));
        assert!(status == 400 && body.contains(words), "{question}: {body}");
    }
    for (command, words) in [
        ("record?mod=sampled", "did you mean mode?"),
        ("gc?now=1", "now: gc has no such parameter (it has none)"),
        ("cpu?on=yes", "on=yes: expected 1 or 0"),
        ("nothing", "expected one of gc, dump, record"),
    ] {
        let (status, body) = page.ask("POST", &format!("api/v1/commands/{command}"));
        let refused = [400, 404].contains(&status) && body.contains(words);
        assert!(refused, "{command}: {body}");
    }
    // Without an end, an answer covers the time until it was made.
    let whole = page.json("allocations")["range"].clone();
    let rows = page.json("state")["rows"].clone();
    let times = rows
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| row[0].as_u64());
    assert_eq!(whole["from"], 0);
    assert!(whole["to"].as_u64() >= times.flatten().min(), "{whole}");
    assert!(whole["to"].as_u64() < Some(1 << 53), "{whole}");
    let source = page.json("source?frame=Populations.keep(Populations.java:23)");
    assert_eq!((&source["line"], &source["first"]), (&23.into(), &1.into()));
    for question in [
        "state",
        "timeline",
        "stacks",
        "options",
        "source?frame=Populations.keep(Populations.java:23)",
    ] {
        let name = question.split('?').next().unwrap_or_default();
        let declared = published(&format!("live.{name}"));
        let found = misfits(&declared, &page.json(question));
        assert!(found.is_empty(), "{question}: {found:#?}");
    }
    let line = source["lines"][22].as_str().expect("the line");
    assert!(line.contains("new Node()"), "{line}");
    assert_eq!(
        page.ask("GET", "api/v1/source?frame=A.b(../live.rs:1)").0,
        404
    );
}

/// Classes of one name from three loaders are three; modules are known where there are some.
fn places(program: &mut Program, page: &Page, version: u32) {
    program.send("loaders 30");
    page.snapshot();
    let answer = page.json("allocations?by=loader&filter=Populations$Node&sort=allocations");
    let rows = answer["rows"].as_array().expect("rows");
    let of = |loader: &str| {
        let of = rows.iter().filter(|row| {
            row["name"]
                .as_str()
                .is_some_and(|name| name.contains(loader))
        });
        of.map(|row| row["allocations"].as_i64().unwrap_or(-1))
            .collect::<Vec<_>>()
    };
    assert_eq!(of("URLClassLoader"), [60, 30], "{answer}");
    assert_eq!(of("AppClassLoader").len(), 1, "{answer}");
    let apart = page.json("classes?loaders=1&source=recording&filter=Populations$Node");
    assert_eq!(apart["count"], 3, "{apart}");
    let together = page.json("classes?source=recording&filter=Populations$Node");
    assert_eq!(together["count"], 1, "{together}");
    page.command("dump");
    page.until("state", |state| state["dumps"][1]["stage"] == "ready");
    let dumped = page.json("classes?loaders=1&source=dump&filter=Populations$Node");
    let rows = dumped["rows"].as_array().expect("rows");
    let of = |loader: &str| {
        let of = |row: &&Value| {
            row["loader"]
                .as_str()
                .is_some_and(|one| one.contains(loader))
        };
        let mut live: Vec<i64> = rows
            .iter()
            .filter(of)
            .filter_map(|row| row["live"].as_i64())
            .collect();
        live.sort_unstable();
        live
    };
    assert_eq!(of("URLClassLoader"), [30, 60], "{dumped}");
    let modules = page
        .json("allocations?by=module&sort=allocations")
        .to_string();
    assert!(modules.contains("(no named module)"), "{modules}");
    assert_eq!(modules.contains("java.base"), version >= 9, "{modules}");
}

/// Class filters apply at once, and as long as no others are given.
fn class_options(page: &Page) {
    let all = page.json(&format!("allocations?{NODES}&by=site"))["count"].clone();
    let set = |text: &str| {
        page.ask("POST", &format!("api/v1/commands/options?text={text}"))
            .0
    };
    assert_eq!(set("*%20Populations$Node%20off"), 200);
    let nothing = page.json(&format!("allocations?{NODES}"));
    assert!(
        !nothing.to_string().contains("Populations$Node"),
        "{nothing}"
    );
    assert_eq!(page.json(&format!("classes?{NODES}"))["count"], 0);
    assert_eq!(
        page.ask("GET", "api/v1/instances?class=Populations$Node").0,
        404
    );
    assert_eq!(set("*%20Populations$*%20count,ratio=0.1"), 200);
    let merged = page.json(&format!("allocations?{NODES}&by=site"));
    let rows = merged["rows"].as_array().expect("rows");
    let nodes = rows.iter().filter(|row| row["name"] == "Populations$Node");
    let stacks: Vec<bool> = nodes
        .map(|row| {
            row["stack"]
                .as_array()
                .is_some_and(|stack| !stack.is_empty())
        })
        .collect();
    assert_eq!(stacks, [false; 3], "one of each loader: {merged}");
    let bags = page.json("instances?class=Populations$Bag&sort=size");
    assert_eq!(
        (&bags["objects"], &bags["sampled"]),
        (&50.into(), &5.into()),
        "{bags}"
    );
    assert!(bags["rows"][0]["size"].is_null(), "{bags}");
    assert_eq!(bags["rows"][0]["stack"].to_string(), "[]");
    assert_eq!(
        page.ask("GET", "api/v1/groups?class=Populations$Bag&by=stack")
            .0,
        400
    );
    assert_eq!(set("*%20Populations$Node%20colour"), 400);
    let text = page.json("options")["text"].to_string();
    assert!(
        text.contains("ratio=0.1"),
        "what is wrong changes nothing: {text}"
    );
    assert_eq!(set(""), 200);
    assert_eq!(
        page.json(&format!("allocations?{NODES}&by=site"))["count"],
        all
    );
}

fn measurements(page: &Page) {
    // Memory by category is read seldom, for the first time when the program has hardly begun.
    let timeline = page.until_counted("timeline", |timeline| {
        let value = |name| crate::live_memory::value(timeline, name);
        value("nmt_java_bytes") > Some(1e6) && value("resident_java_bytes") > Some(1e6)
    });
    let metrics: Vec<&str> = timeline["metrics"]
        .as_array()
        .expect("metrics")
        .iter()
        .map(|metric| metric["name"].as_str().expect("a name"))
        .collect();
    let last = timeline["rows"]
        .as_array()
        .and_then(|rows| rows.last())
        .expect("a row");
    let value = |name: &str| {
        let at = metrics
            .iter()
            .position(|metric| *metric == name)
            .expect(name);
        last[at + 1].as_f64()
    };
    assert!(value("resident_bytes") > Some(1e6) && value("threads") > Some(1.0));
    assert!(value("old_bytes") > Some(0.0) && value("loaded_classes") > Some(100.0));
    let events = timeline["events"].as_array().expect("events");
    let kind = |kind: &str| events.iter().filter(|event| event["kind"] == kind).count();
    assert!(kind("gc") >= 1 && kind("marker") >= 5, "{events:?}");
    let metrics = page.text("metrics");
    assert!(
        metrics.contains("tenure_up{pid=") && metrics.contains("tenure_old_bytes{"),
        "{metrics}"
    );
    for (form, start) in [
        ("collapsed&metric=alloc_space", "Populations.main"),
        ("flamegraph", "<!DOCTYPE html>"),
    ] {
        let text = page.text(&format!(
            "api/v1/profile?filter=Populations$Node&form={form}"
        ));
        assert!(text.starts_with(start), "{form}: {text}");
    }
    let csv = page.text("api/v1/classes?form=csv&filter=Populations$Bag");
    assert!(
        csv.starts_with("class,") && csv.contains("Populations$Bag,"),
        "{csv}"
    );
    for line in metrics.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        let is_name = |name: &str| name.starts_with("tenure_");
        let is_right = match words[..] {
            ["#", "HELP", name, _] => is_name(name),
            ["#", "TYPE", name, kind] => is_name(name) && ["gauge", "counter"].contains(&kind),
            [.., value] => is_name(line) && value.parse::<f64>().is_ok(),
            [] => false,
        };
        assert!(is_right, "{line}");
    }
    for (path, text) in [
        ("plain/", "Force GC"),
        (
            "plain/allocations?by=site&filter=Populations",
            "Populations.keep",
        ),
        (
            "plain/stacks?filter=Populations",
            "Populations.keep(Populations.java:",
        ),
        ("plain/events", "Force GC"),
        ("plain/references", "Class and stack"),
        ("plain/classes?filter=Populations", "Populations$Bag"),
        ("plain/instances?class=Populations$Bag", "Populations.bags"),
        (
            "plain/groups?class=Populations$Bag&by=stack",
            "Populations.bags",
        ),
        ("plain/growth", "Growing for"),
        ("plain/savings", "To save"),
        ("plain/saved", "What changed"),
        ("plain/options", "MODULE CLASS OPTIONS"),
        (
            "plain/source?frame=Populations.keep(Populations.java:23)",
            "&gt;   23",
        ),
    ] {
        let page = page.text(path);
        assert!(page.contains(text), "{path}: {page}");
    }
    assert_eq!(page.ask("GET", "api/v1/nothing").0, 404);
    assert_eq!(page.ask("GET", "api/v1/allocations?regex=(").0, 400);
    assert_eq!(page.ask("GET", "api/v1/commands/gc").0, 405);
}

#[test]
fn what_was_recorded_outlives_the_program_and_its_page() {
    let Some(lab) = lab("live end") else {
        return;
    };
    let Some(jdk) = lab.jdks.last() else { return };
    for stays in [false, true] {
        keeps_what_was_recorded(lab, jdk, stays);
    }
}

fn keeps_what_was_recorded(lab: &Lab, jdk: &Jdk, stays: bool) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut flags = vec!["--record", "full"];
    flags.extend(stays.then_some("--stay"));
    let (mut program, page) = run_live(lab, jdk, folder.path(), &flags);
    page.counting(&mut program);
    // What comes after the last snapshot is counted, too.
    program.send("keep 1234");
    program.say("exit");
    if stays {
        // At once: nothing has been measured since the program ended.
        page.hears("Ctrl-C ends the page");
        let interrupt = Command::new("kill")
            .args(["-INT", &program.child.id().to_string()])
            .status();
        assert!(interrupt.expect("kill").success());
    }
    assert_eq!(wait(&mut program.child), Some(0));
    page.hears("what was recorded is in");
    let file = |ending: &str| {
        let files = std::fs::read_dir(folder.path()).expect("a folder");
        let mut paths = files.map(|file| file.expect("a file").path());
        let path = paths.find(|path| path.to_string_lossy().ends_with(ending));
        path.unwrap_or_else(|| panic!("no file *{ending}"))
    };
    let classes = std::fs::read_to_string(file("-classes-1.json")).expect("a table");
    let classes: Value = serde_json::from_str(&classes).expect("JSON");
    let mut rows = classes["rows"].as_array().expect("rows").iter();
    let nodes = rows.find(|row| row["class"] == "Populations$Node");
    let nodes = nodes.expect("counted at the end");
    assert_eq!(numbers(nodes, ["live", "total"]), [1234, 1234]);
    let jfr = file("-recording-1.jfr");
    let magic = std::fs::read(&jfr).expect("a recording");
    assert!(magic.starts_with(b"FLR\0"));
    let tool = jdk.tool("jfr");
    if tool.is_file() {
        let printed = Command::new(tool)
            .args(["print", "--events", "jdk.ObjectAllocationSample"])
            .arg(&jfr)
            .output()
            .expect("jfr");
        let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
        assert!(printed.contains("Populations$Node"), "{printed}");
    }
}

#[test]
fn nothing_hangs_when_the_program_the_browser_or_the_server_is_gone() {
    let Some(lab) = lab("live faults") else {
        return;
    };
    let Some(jdk) = lab.jdks.iter().find(|jdk| jdk.tool("javac").is_file()) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    // A program that is killed ends the command with its code, although a browser listens.
    let (mut program, page) = run_live(lab, jdk, folder.path(), &["--record", "full"]);
    page.until("state", |state| state["recording"]["connected"] == true);
    let mut browser = TcpStream::connect(&page.host).expect("connected");
    let follow = format!(
        "GET {}api/v1/events HTTP/1.1\r\nHost: {}\r\n\r\n",
        page.base, page.host
    );
    browser.write_all(follow.as_bytes()).expect("sent");
    let mut some = [0; 64];
    browser.read_exact(&mut some).expect("events");
    assert!(
        Command::new("kill")
            .args(["-9", &jvm_of(&page).to_string()])
            .status()
            .expect("kill")
            .success()
    );
    assert_eq!(wait(&mut program.child), Some(137));
    drop(browser);

    // Two programs of one name: the name is refused, each id has its own page.
    let spawn = || {
        java(lab, jdk)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("started")
    };
    let (mut one, two) = (Program::of(spawn()), Program::of(spawn()));
    let attach = |selector: &str, flags: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command
            .args(["attach", selector, "--live", "--no-browser"])
            .args(flags);
        command
            .env("TENURE_AGENT", &lab.agent)
            .current_dir(folder.path());
        command
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("started")
    };
    assert_eq!(wait(&mut attach("Populations", &[])), Some(2));
    let mut first = attach(&one.child.id().to_string(), &["--record", "full"]);
    let mut second = attach(&two.child.id().to_string(), &[]);
    let (page_one, page_two) = (Page::of(&mut first), Page::of(&mut second));
    assert_eq!(jvm_of(&page_one), one.child.id());
    assert_eq!(jvm_of(&page_two), two.child.id());
    page_one.until("state", |state| state["recording"]["connected"] == true);

    // The server is killed: the program continues, and a new server watches it. It gets all that was
    // counted, also while there was none.
    page_one.counting(&mut one);
    first.kill().expect("killed");
    first.wait().expect("ended");
    one.send("keep 100");
    one.send("garbage 100000");
    let mut again = attach(&one.child.id().to_string(), &["--record", "full"]);
    let page = Page::of(&mut again);
    page.until("timeline", |timeline| {
        timeline["rows"]
            .as_array()
            .is_some_and(|rows| rows.len() > 2)
    });
    page.until("state", |state| state["recording"]["counting"] == true);
    one.send("other 600");
    page.command("gc");
    one.send("keep 1");
    page.snapshot();
    let nodes = page.json(&format!("allocations?{NODES}&by=class"));
    let row = numbers(&nodes["rows"][0], COLUMNS);
    assert_eq!(row, [100_101, 100_000, 101, 101], "{nodes}");
    // Both pages end with their programs.
    drop(one);
    assert_eq!(wait(&mut again), Some(0));
    drop(two);
    assert_eq!(wait(&mut second), Some(0));
}

/// The disk is full: the dump fails with the system's reason, nothing that looks like a dump stays, and the recording
/// continues.
#[test]
fn a_dump_that_cannot_be_stored_ends_no_recording() {
    let Some(lab) = lab("dumps on a full disk") else {
        return;
    };
    let modern = lab.jdks.iter().rfind(|jdk| jdk.version >= 17);
    let Some(jdk) = modern else { return };
    // Of ZGC there are no snapshots: the agent sends the dump.
    for collector in ["-XX:+UseSerialGC", "-XX:+UseZGC"] {
        let folder = tempfile::tempdir().expect("a folder");
        let mut shell = Command::new("sh");
        shell.args(["-c", "trap '' XFSZ; exec \"$@\"", "sh"]);
        shell.arg(env!("CARGO_BIN_EXE_tenure"));
        let flags: (&std::path::Path, &[&str]) = (folder.path(), &["--record", "full"]);
        let program = [collector, "Populations"];
        let program = (lab.classes.path(), &program[..]);
        let (child, page) = start_live_with(shell, lab, jdk, flags, program);
        let pid = Pid::from_child(&child);
        let mut program = Program::of(child);
        page.counting(&mut program);
        let few = Rlimit {
            current: Some(256 << 10),
            maximum: None,
        };
        prlimit(Some(pid), Resource::Fsize, few).expect("limited");
        let (status, why) = page.ask("POST", "api/v1/commands/dump");
        assert!(status >= 400, "{collector}: {why}");
        let expected = "cannot store the heap dump: ";
        assert!(
            why.contains(expected) && why.contains("File too large"),
            "{collector}: {why}"
        );
        let left = std::fs::read_dir(folder.path()).expect("a folder").count();
        assert_eq!(left, 0, "{collector}: {why}");
        page.counting(&mut program);
        let state = page.json("state");
        assert_eq!(state["recording"]["connected"], true, "{state}");
    }
}

#[test]
fn what_cannot_be_served_is_refused_before_the_program_starts() {
    let folder = tempfile::tempdir().expect("a folder");
    let begun = folder.path().join("begun");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("its address").port().to_string();
    for (flags, code, words) in [
        (["--port", &port], 3, "cannot listen on 127.0.0.1"),
        (["--save-every", "20000"], 2, "--save-every"),
    ] {
        let done = Command::new(env!("CARGO_BIN_EXE_tenure"))
            .args(["run", "--live", "--no-browser"])
            .args(flags)
            .args(["--", "touch"])
            .arg(&begun)
            .output()
            .expect("ran");
        let printed = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(code), "{printed}");
        assert!(printed.contains(words), "{printed}");
        assert!(!begun.exists(), "{flags:?}");
    }
}
