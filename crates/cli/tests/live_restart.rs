//! A server of the live page is killed and another one takes its place: what was known by time is known.

use crate::watched::{Lab, Page, Program, java, lab, wait};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const NODES: &str = "filter=Populations$Node";

/// A server of this program's page, whose past is kept below `folder`.
fn attach(lab: &Lab, program: &Program, folder: &Path, flags: &[&str]) -> (Child, Page) {
    let mut server = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args(["attach", &program.child.id().to_string(), "--live"])
        .arg("--no-browser")
        .args(flags)
        .env("TENURE_AGENT", &lab.agent)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .current_dir(folder)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let page = Page::of(&mut server);
    (server, page)
}

fn kill(mut server: Child) {
    server.kill().expect("killed");
    server.wait().expect("ended");
}

/// Files in which the past is kept.
fn journals(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder.join("cache/tenure/live")).expect("a folder");
    files.map(|file| file.expect("a file").path()).collect()
}

/// Everything that a page says of a range.
fn answers(page: &Page, from: u64, to: u64) -> Vec<(String, Value)> {
    let range = format!("from={from}&to={to}");
    let mut asked: Vec<String> = ["class", "package", "loader", "method", "site"]
        .iter()
        .map(|by| format!("allocations?by={by}&limit=100000&{range}"))
        .collect();
    asked.push(format!("stacks?{NODES}&{range}"));
    asked.push(format!("classes?source=recording&brief=1&{NODES}&{range}"));
    asked.push(format!(
        "groups?class=Populations$Node&by=time&source=recording&{range}"
    ));
    asked.push(format!("cpu?limit=100000&{range}"));
    asked.push(format!("timeline?points=100000&{range}"));
    let answers = asked.into_iter().map(|question| {
        let mut answer = page.json(&question);
        // When sizes were read is not of the range.
        if let Some(answer) = answer.as_object_mut() {
            answer.remove("sizes");
        }
        // Rows of equal numbers have no order.
        if let Some(rows) = answer["rows"].as_array_mut() {
            rows.sort_by_key(Value::to_string);
        }
        (question, answer)
    });
    answers.collect()
}

fn same(before: &[(String, Value)], after: &[(String, Value)], when: &str) {
    for ((question, before), (_, after)) in before.iter().zip(after) {
        assert_eq!(before, after, "{question} {when}");
    }
}

fn allocated(page: &Page, range: &str) -> (i64, i64) {
    let answer = page.json(&format!("allocations?by=class&{NODES}{range}"));
    let row = &answer["rows"][0];
    let number = |name: &str| row[name].as_i64().unwrap_or(0);
    (number("allocations"), number("remaining"))
}

/// Waits until the timeline has gone on after this time.
fn goes_on(page: &Page, time: u64) {
    page.until(&format!("timeline?from={}", time + 1), |timeline| {
        timeline["rows"]
            .as_array()
            .is_some_and(|rows| rows.len() > 1)
    });
}

#[test]
fn what_a_killed_server_knew_by_time_is_known_to_the_next() {
    let Some(lab) = lab("live restart") else {
        return;
    };
    let Some(jdk) = lab.jdks.last() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let child = java(lab, jdk)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut program = Program::of(child);
    let (server, page) = attach(lab, &program, folder, &["--record", "full"]);
    page.counting(&mut program);
    page.command("cpu?on=1");
    program.send("burn 300");
    program.send("keep 1000");
    program.send("garbage 500");
    program.send("loaders 30");
    program.send("other 600");
    page.command("gc");
    let middle = page.snapshot();
    program.send("keep 50");
    program.send("drop");
    program.send("other 600");
    page.command("gc");
    page.command("mark?text=before");
    let end = page.snapshot();
    page.command("save");
    goes_on(&page, end);
    assert_eq!(allocated(&page, &format!("&from={middle}&to={end}")).0, 50);
    let first = answers(&page, 0, middle);
    let second = answers(&page, middle, end);
    let collections = page.json(&format!("growth?to={end}"))["collections"].clone();
    kill(server);

    // No server watches; more is allocated than the heap can hold.
    program.send("garbage 5000000");
    program.send("keep 7");
    // Neither what is recorded nor where must be said again.
    let (server, page) = attach(lab, &program, folder, &[]);
    page.connected();
    let now = page.snapshot();
    same(&first, &answers(&page, 0, middle), "after the kill");
    same(&second, &answers(&page, middle, end), "after the kill");
    let growth = page.json(&format!("growth?to={end}"));
    assert_eq!(growth["collections"], collections);
    let came = interrupted(&page, end);
    let state = page.json("state");
    assert_eq!(state["saved"].as_array().map(Vec::len), Some(1), "{state}");
    assert_eq!(state["notes"].to_string(), "[]", "{state}");

    // What was counted meanwhile belongs to the time when the server came; from then on counts continue.
    assert_eq!(
        allocated(&page, &format!("&from={end}&to={}", came - 1)),
        (0, 0)
    );
    let meanwhile = allocated(&page, &format!("&from={end}&to={now}"));
    assert_eq!(meanwhile.0, 5_000_007);
    program.send("keep 3");
    program.send("other 600");
    page.command("gc");
    let last = page.snapshot();
    assert_eq!(allocated(&page, &format!("&from={now}&to={last}")).0, 3);
    let all = allocated(&page, "");
    assert_eq!(all, (5_001_650, 100), "90 of the loaders, and 10");
    goes_on(&page, last);
    let third = answers(&page, end, last);
    kill(server);

    // A journal that is cut is read up to there.
    let [journal] = &journals(folder)[..] else {
        panic!("one program has one journal");
    };
    let length = fs::metadata(journal).expect("a file").len();
    let file = fs::OpenOptions::new().write(true).open(journal);
    file.and_then(|file| file.set_len(length - 3)).expect("cut");
    let (mut server, page) = attach(lab, &program, folder, &[]);
    page.connected();
    page.snapshot();
    same(&first, &answers(&page, 0, middle), "after damage");
    same(&second, &answers(&page, middle, end), "after damage");
    same(&third, &answers(&page, end, last), "after damage");
    assert_eq!(allocated(&page, ""), all);
    let events = page.json("timeline")["events"].to_string();
    assert!(events.contains("The journal was damaged"), "{events}");

    // What is recorded is kept when the program ends, and its journal is gone.
    program.say("exit");
    assert_eq!(wait(&mut server), Some(0));
    page.hears("what was recorded is in");
    assert_eq!(journals(folder), [] as [PathBuf; 0]);
}

/// When the next server came: there is one gap in the timeline, one mark at its end, and the collections in
/// between are there.
fn interrupted(page: &Page, end: u64) -> u64 {
    let timeline = page.json(&format!("timeline?points=100000&from={end}"));
    let rows = timeline["rows"].as_array().expect("rows");
    let is_gap = |row: &Value| {
        let values = row.as_array().expect("a row");
        values[1..].iter().all(Value::is_null)
    };
    let gaps: Vec<u64> = rows
        .iter()
        .filter(|row| is_gap(row))
        .filter_map(|row| row[0].as_u64())
        .collect();
    let [gap] = gaps[..] else {
        panic!("{gaps:?}: {timeline}");
    };
    let events = timeline["events"].as_array().expect("events").iter();
    let mut marks = events.clone().filter(|event| {
        let text = event["text"].as_str().unwrap_or_default();
        text.starts_with("Tenure did not run for ")
    });
    let came = marks.next().expect("a mark")["time_ms"].as_u64();
    let came = came.expect("a time");
    assert!(marks.next().is_none() && came > gap, "{timeline}");
    let between = |row: &&Value| row[0].as_u64().is_some_and(|at| gap < at && at < came);
    assert_eq!(rows.iter().filter(between).count(), 0);
    let mut later = events.filter(|event| event["time_ms"].as_u64() >= Some(came));
    let runs = later.find(|event| event["kind"] == "gc");
    let runs = runs.and_then(|event| event["count"].as_u64());
    assert!(runs >= Some(1), "{timeline}");
    came
}
