//! `tenure open` and `tenure objects` as programs.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

fn demo(dir: &tempfile::TempDir) -> PathBuf {
    let file = dir.path().join("leak.hprof");
    let packed = testkit::corpus::workspace().join("demo/leak-small.hprof.gz");
    std::fs::write(&file, testkit::corpus::unpacked(&packed)).unwrap();
    file
}

fn get(url: &str, path: &str) -> String {
    let rest = url.strip_prefix("http://").unwrap();
    let (host, token) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(
        stream,
        "GET /{token}{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    body.to_owned()
}

#[test]
fn the_api_says_what_the_command_says_and_a_signal_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = demo(&dir);
    let program = env!("CARGO_BIN_EXE_tenure");
    let mut child = Command::new(program)
        .args(["open", "--no-browser", "--base"])
        .args([&dir.path().join("leak.hprof#1"), &file])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut url)
        .unwrap();
    let url = url.trim_end();
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    testkit::until(|| {
        let state = get(url, "api/v1/state");
        state.contains("\"ready\"").then_some(()).ok_or(state)
    });
    for (view, words) in [
        ("histogram?limit=0", "histogram"),
        ("leaks", "leaks"),
        ("threads?locals=5&limit=1000000", "threads"),
        ("properties", "properties"),
        ("objects?set=class:shop.Session&limit=1000000", "objects"),
        (
            "immediate_dominators?set=class:shop.Session",
            "dominated by",
        ),
    ] {
        let mut command = Command::new(program);
        command.arg("--json");
        match words {
            "objects" => command
                .args(["objects"])
                .arg(&file)
                .arg("class:shop.Session"),
            "dominated by" => command
                .arg("objects")
                .arg(&file)
                .args(["class:shop.Session", "--dominators"]),
            "histogram" => command.args(["histogram", "--limit", "1000000"]).arg(&file),
            other => command.arg(other).arg(&file),
        };
        let printed = command.output().unwrap();
        let printed = String::from_utf8(printed.stdout).unwrap();
        let view = view.replace("limit=0", "limit=1000000");
        assert_eq!(get(url, &format!("api/v1/{view}")), printed, "{view}");
        assert!(printed.contains("\"schema\": \"tenure."), "{printed}");
    }
    let csv = get(
        url,
        "api/v1/objects?set=class:shop.Session&form=csv&limit=3",
    );
    assert_eq!(csv.lines().count(), 4, "{csv}");
    assert!(csv.starts_with("shallow,retained,object\r\n"), "{csv}");
    let shown = get(url, "api/v1/command/objects?set=class:shop.Session&limit=3");
    assert!(
        shown.contains("leak.hprof class:shop.Session --limit 3"),
        "{shown}"
    );
    let plain = get(url, "plain/histogram?filter=shop");
    // By its id, because several loaders can have a class of this name.
    let link = plain.split("<a href=\"");
    let link = link
        .into_iter()
        .find(|part| part.contains(">shop.Session</a>"));
    let link = link.and_then(|part| part.split('"').next()).expect(&plain);
    assert!(link.starts_with("objects?set=class:0x"), "{link}");
    let objects = get(url, &format!("plain/{link}&limit=3"));
    assert!(objects.matches("shop.Session").count() >= 3, "{objects}");
    let has_more = |view: &str| get(url, &format!("plain/{view}")).contains("Next rows");
    assert!(!plain.contains("Next rows"), "{plain}");
    assert!(has_more("histogram?limit=1"));
    assert!(has_more("objects?set=class:shop.Session&limit=1"));
    let shown = get(url, "api/v1/objects?set=class:shop.Session&limit=1");
    let shown: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    let last = shown["total"]["objects"].as_u64().expect("a number") - 1;
    let of_set = |offset| format!("objects?set=class:shop.Session&limit=1&offset={offset}");
    assert!(has_more(&of_set(last - 1)) && !has_more(&of_set(last)));

    let killed = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());
    assert_eq!(testkit::wait::ended(&mut child).code(), Some(0));
}

#[test]
fn a_file_that_is_no_dump_ends_with_a_fault() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("no.hprof");
    std::fs::write(&file, "not a dump").unwrap();
    for file in [file, dir.path().join("absent.hprof")] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command.args(["open", "--no-browser"]).arg(&file);
        let ran = testkit::run::run_command(command, Duration::from_secs(30));
        assert_eq!(ran.code, Some(3), "{}", ran.stderr);
        assert!(ran.stderr.starts_with("tenure: "), "{}", ran.stderr);
    }
}

#[test]
fn sets_have_exit_codes() {
    let dir = tempfile::tempdir().unwrap();
    let file = demo(&dir);
    for (set, code) in [
        ("class:shop.Session", 0),
        ("retained:class:shop.Session", 0),
        ("class:no.such.Class", 1),
        ("heap:zygote", 1),
        ("no such set", 2),
        ("shop.Session", 0),
        ("no.such.Class", 1),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command.arg("objects").arg(&file).arg(set);
        let ran = testkit::run::run_command(command, Duration::from_secs(60));
        assert_eq!(ran.code, Some(code), "{set}: {}{}", ran.stdout, ran.stderr);
    }
}
