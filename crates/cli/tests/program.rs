//! The program as a user meets it: exit codes, pipes, files, hostile names, on small dumps.

use crate::terminal;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use testkit::dump::{Elements, FrameSpec, Heap, IdSize, Root, Type, Value};

const TENURE: &str = env!("CARGO_BIN_EXE_tenure");

fn tenure(folder: &Path, args: &[&str]) -> Output {
    Command::new(TENURE)
        .current_dir(folder)
        .args(args)
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .output()
        .expect("running tenure")
}

fn code(folder: &Path, args: &[&str]) -> i32 {
    tenure(folder, args).status.code().expect("a code")
}

fn stdout(folder: &Path, args: &[&str]) -> String {
    String::from_utf8(tenure(folder, args).stdout).expect("text")
}

/// A shop whose registry holds too many orders, and a class with a hostile name.
fn shop() -> Vec<u8> {
    let mut heap = Heap::new(IdSize::Eight);
    let object = heap.java_lang_object();
    let order = heap.class("shop/Order", object, &[("lines", Type::Object)]);
    let evil = heap.class("evil/<script>\u{1b}[31m\u{202e}|x", object, &[]);
    let list = heap.class(
        "java/util/ArrayList",
        object,
        &[("size", Type::Int), ("elementData", Type::Object)],
    );
    let orders: Vec<u64> = (0..100)
        .map(|_| {
            let lines = heap.primitive_array(Elements::Byte(vec![7; 1000]));
            heap.instance(order, &[Value::Object(lines)])
        })
        .collect();
    let array_class = heap.object_array_class();
    let array = heap.object_array(array_class, &orders);
    let list = heap.instance(list, &[Value::Int(100), Value::Object(array)]);
    let registry = heap.class("shop/Registry", object, &[]);
    heap.set_static(registry, "ORDERS", Value::Object(list));
    heap.root(Root::StickyClass, registry);
    let local = heap.instance(evil, &[]);
    let frame = FrameSpec {
        class: registry,
        method: "serve",
        source: "Registry.java",
        line: 12,
    };
    let (thread, _) = heap.thread("main", &[frame]);
    heap.root(Root::JavaFrame { thread, frame: 0 }, local);
    let text = heap.string("jdbc:secret");
    heap.root(Root::JniGlobal { reference: 1 }, text);
    let lost = heap.primitive_array(Elements::Int(vec![1, 2, 3]));
    assert_ne!(lost, 0);
    heap.bytes()
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().to_owned();
    fs::write(path.join("shop.hprof"), shop()).expect("the dump");
    (dir, path)
}

#[test]
fn the_first_screen_names_the_leak() {
    let (_dir, at) = folder();
    let text = stdout(&at, &["shop.hprof", "--layout=plain"]);
    assert!(text.contains("Suspect 1"), "{text}");
    assert!(text.contains("shop.Registry.ORDERS"), "{text}");
    assert!(text.contains("100 objects of shop.Order"), "{text}");
    assert!(text.contains("plain layout"), "{text}");
    assert!(text.contains("tenure leaks shop.hprof"), "{text}");
}

#[test]
fn leaks_as_json_keep_their_contract() {
    let (_dir, at) = folder();
    let text = stdout(&at, &["leaks", "--json", "--layout=plain", "shop.hprof"]);
    let answer: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(answer["schema"], "tenure.leaks/1");
    let suspect = &answer["suspects"][0];
    assert_eq!(suspect["kind"], "object");
    assert_eq!(suspect["class"], "java.lang.Class");
    assert_eq!(suspect["value"], "shop.Registry");
    assert_eq!(suspect["instances"], 1);
    assert_eq!(suspect["holder"], "shop.Registry.ORDERS");
    assert_eq!(suspect["accumulation_point"]["class"], "java.lang.Object[]");
    assert_eq!(suspect["path"][0]["field"], "static ORDERS");
    assert_eq!(suspect["path"][1]["field"], "elementData");
    assert!(suspect["share"].as_f64().is_some_and(|s| s > 0.9));
    let id = suspect["object"].as_str().expect("an id");
    assert!(id.starts_with("0x"), "{id}");
    // Every id that an answer gives can be asked about.
    assert_eq!(code(&at, &["object", "shop.hprof", id]), 0);
    assert_eq!(code(&at, &["paths", id, "shop.hprof"]), 0);
    let digits = id.trim_start_matches("0x");
    assert_eq!(code(&at, &["object", "shop.hprof", digits]), 2);
    for (id, found) in [(id, "\"java.lang.Class\""), (digits, "null")] {
        let sql = format!("select class_of('{id}') as c from threads limit 1");
        let answer = stdout(&at, &["query", "--json", "shop.hprof", &sql]);
        let answer: serde_json::Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!(answer["rows"][0][0].to_string(), found, "{answer}");
    }
}

#[test]
fn exit_codes_show_how_it_went() {
    let (_dir, at) = folder();
    let whole = fs::read(at.join("shop.hprof")).expect("the dump");
    fs::write(at.join("cut.hprof"), &whole[..whole.len() - 40]).expect("a cut dump");
    fs::write(at.join("text.hprof"), "This is no dump.\n").expect("a text");
    for (args, want) in [
        (&["summary", "shop.hprof"][..], 0),
        (&["strings", "--find", "jdbc:.*", "shop.hprof"], 0),
        (&["strings", "--find", "nothing of it", "shop.hprof"], 1),
        (&["histogram", "--filter", "no.such", "shop.hprof"], 1),
        (
            &[
                "histogram",
                "--filter",
                "no.such",
                "--no-retained",
                "shop.hprof",
            ],
            1,
        ),
        (
            &[
                "histogram",
                "--filter",
                "shop",
                "--limit",
                "1",
                "shop.hprof",
            ],
            0,
        ),
        (&["export", "shop.hprof", "-o", "-"], 2),
        (&["object", "shop.hprof", "0x1"], 1),
        (&["paths", "--class", "no.such.Thing", "shop.hprof"], 1),
        (
            &["paths", "--exclude=all", "--class=shop.Order", "shop.hprof"],
            0,
        ),
        (
            &[
                "paths",
                "--exclude=soft,weak",
                "--exclude=final",
                "--class=shop.Order",
                "shop.hprof",
            ],
            0,
        ),
        (
            &["paths", "--exclude=my", "--class=shop.Order", "shop.hprof"],
            2,
        ),
        (&["dominators", "--by", "site", "shop.hprof"], 2),
        (&["dominators", "--by", "class", "shop.hprof", "0x1"], 2),
        (&["dominators", "--tsv", "shop.hprof", "0x1"], 2),
        (&["histgram", "shop.hprof"], 2),
        (&["histogram", "--by", "colour", "shop.hprof"], 2),
        (&["object", "shop.hprof", "xyzzy"], 2),
        (&["report", "shop.hprof", "-o", "page.pdf"], 2),
        (&["roots", "--kind", "sticky_class", "shop.hprof"], 0),
        (&["roots", "--kind", "MONITORS", "shop.hprof"], 2),
        (&["objects", "shop.hprof", "roots:MONITORS"], 2),
        (&["histogram", "shop.hprof#1"], 0),
        (&["histogram", "shop.hprof#0"], 3),
        (&["text.hprof"], 3),
        (&["./missing.hprof"], 3),
        (&["open", "--no-browser", "missing.hprof"], 3),
        (&["run", "-o", "-", "--", "java"], 2),
        (&["run", "--profile", "heap=nonsense", "--", "java"], 2),
        (&["validate", "cut.hprof"], 4),
        (&["cut.hprof"], 4),
        (&["--help"], 0),
        (&["shop.hprof", "leaks"], 0),
        (&["--version"], 0),
        (&["completions", "bash"], 0),
        (&["man"], 0),
    ] {
        let out = tenure(&at, args);
        let printed = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(want), "{args:?}: {printed}");
        if want == 0 {
            assert_eq!(printed, "", "{args:?}");
        } else if want != 1 || !(args.contains(&"strings") || args.contains(&"histogram")) {
            assert_ne!(printed, "", "{args:?}");
        }
    }
    assert!(!at.join("-").exists(), "no output is named -");
}

#[test]
fn a_class_that_is_not_in_the_dump_is_answered_with_a_similar_one() {
    let (_dir, at) = folder();
    for args in [
        &["paths", "--class", "shop.Ordr", "shop.hprof"][..],
        &["extract", "shop.hprof", "part.hprof", "--class", "Order"],
    ] {
        let out = tenure(&at, args);
        assert_eq!(out.status.code(), Some(1), "{args:?}");
        let printed = String::from_utf8_lossy(&out.stderr);
        assert!(printed.contains("did you mean"), "{args:?}: {printed}");
        assert!(printed.contains("shop.Order?"), "{args:?}: {printed}");
    }
}

#[test]
fn sentences_with_numbers_of_bytes_have_their_unit() {
    let (_dir, at) = folder();
    let print = |command: &str| stdout(&at, &[command, "shop.hprof", "--bytes"]);
    let commands = "overview waste strings collections leaks summary";
    for command in commands.split(' ') {
        let printed = print(command);
        let has_unit = printed.contains("KiB") || printed.contains("MiB");
        assert!(!has_unit && printed.contains(" B"), "{command}: {printed}");
    }
    let facts = print("overview");
    let in_use = facts.lines().find(|line| line.starts_with("in use"));
    let in_use = in_use.expect("the size in use");
    assert_eq!(in_use.matches(" B").count(), 2, "{in_use}");
}

#[test]
fn objects_that_the_dominator_tree_leaves_out_are_named_by_their_place() {
    let (_dir, at) = folder();
    let top = stdout(
        &at,
        &["dominators", "shop.hprof", "-n", "1", "--depth", "1"],
    );
    assert!(top.contains("at the top level."), "{top}");
    let rows = ["dominators", "shop.hprof", "-n", "1", "--json"];
    let rows: serde_json::Value = serde_json::from_str(&stdout(&at, &rows)).expect("JSON");
    let nodes = rows["nodes"].as_array().expect("nodes");
    let many = nodes
        .iter()
        .find(|node| node["dominated"].as_u64() > Some(1));
    let id = many.expect("an object that dominates several")["object"].to_string();
    let args = [
        "dominators",
        "shop.hprof",
        id.trim_matches('"'),
        "-n",
        "1",
        "--depth",
        "1",
    ];
    let below = stdout(&at, &args);
    assert!(below.contains("directly below the object."), "{below}");
}

#[test]
fn the_environment_switches_options_on_and_off() {
    let (_dir, at) = folder();
    let with = |variables: &[(&str, &str)], args: &[&str]| {
        let mut program = Command::new(TENURE);
        program.current_dir(&at).args(args);
        program.args(["histogram", "shop.hprof", "--no-index"]);
        let out = program.envs(variables.iter().copied()).output();
        let out = out.expect("running tenure");
        (
            out.status.code(),
            out.stdout.first().map(|first| char::from(*first)),
            String::from_utf8_lossy(&out.stderr).into_owned(),
        )
    };
    for (value, json) in [
        ("1", true),
        ("true", true),
        ("0", false),
        ("off", false),
        ("", false),
    ] {
        let (code, first, _) = with(&[("TENURE_JSON", value)], &[]);
        assert_eq!((code, first == Some('{')), (Some(0), json), "{value}");
    }
    let (code, _, error) = with(&[("TENURE_JSON", "perhaps")], &[]);
    assert!(code == Some(2) && error.contains("1 or 0"), "{error}");
    // An option on the command line takes precedence.
    let (code, first, _) = with(&[("TENURE_JSON", "1")], &["--csv"]);
    assert_eq!((code, first == Some('{')), (Some(0), false));
    let (code, first, _) = with(&[("TENURE_CSV", "1")], &["--json"]);
    assert_eq!((code, first), (Some(0), Some('{')));
    let (code, _, error) = with(&[("TENURE_CSV", "1"), ("TENURE_JSON", "1")], &[]);
    assert!(
        code == Some(2) && error.contains("cannot be used together"),
        "{error}"
    );
}

#[test]
fn thresholds_are_percentages_with_decimals() {
    let (_dir, at) = folder();
    for command in ["leaks", "top"] {
        let text = stdout(
            &at,
            &[command, "--json", "--threshold", "0.5%", "shop.hprof"],
        );
        assert!(text.contains("\"threshold\": 0.5"), "{text}");
    }
    let names = |threshold: &str| {
        let args = ["leaks", "--json", "--threshold", threshold, "shop.hprof"];
        let answer: serde_json::Value = serde_json::from_str(&stdout(&at, &args)).expect("JSON");
        answer["suspects"].as_array().expect("suspects").len()
    };
    assert!(names("0.01") > names("1"), "smaller suspects");
    for wrong in ["101", "-1", "many"] {
        let out = tenure(
            &at,
            &["leaks", &format!("--threshold={wrong}"), "shop.hprof"],
        );
        let printed = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{printed}");
        let expected = "expected a percentage from 0 to 100, such as 5 or 0.5%";
        assert!(printed.contains(expected), "{printed}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let (_dir, at) = folder();
    let mut child = Command::new(TENURE)
        .current_dir(&at)
        .args(["dominators", "--tsv", "--all", "shop.hprof"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("running tenure");
    drop(child.stdout.take());
    let out = child.wait_with_output().expect("its end");
    assert_eq!(out.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&out.stderr), "");
}

#[test]
fn output_files_are_private_and_never_overwritten() {
    let (_dir, at) = folder();
    let args = ["report", "shop.hprof", "-o", "page.html", "--quiet"];
    assert_eq!(code(&at, &args), 0);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(at.join("page.html")).expect("the page");
        assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(code(&at, &args), 2);
    let mut forced = args.to_vec();
    forced.push("--force");
    assert_eq!(code(&at, &forced), 0);
}

#[test]
fn names_from_the_dump_are_harmless_in_every_form() {
    let (_dir, at) = folder();
    for args in [
        &["histogram", "shop.hprof"][..],
        &["histogram", "--json", "shop.hprof"],
        &["threads", "shop.hprof"],
        &["report", "shop.hprof", "-o", "-", "--format", "html"],
        &["report", "shop.hprof", "-o", "-", "--format", "md"],
        &["report", "shop.hprof", "-o", "-", "--format", "json"],
    ] {
        let text = stdout(&at, args);
        assert!(
            !text.contains('\u{1b}') && !text.contains('\u{202e}'),
            "{args:?}"
        );
        assert!(text.contains("evil"), "{args:?}: {text}");
        if args.contains(&"html") || args.contains(&"md") {
            assert!(!text.contains("evil.<script>"), "{args:?}");
        }
    }
}

#[test]
fn the_page_is_small_and_reaches_for_nothing() {
    let (_dir, at) = folder();
    let page = stdout(
        &at,
        &["report", "shop.hprof", "-o", "-", "--format", "html"],
    );
    assert!(page.len() < 150_000, "{} bytes", page.len());
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("default-src 'none'"));
}

#[test]
fn the_same_question_has_the_same_answer() {
    let (_dir, at) = folder();
    for args in [
        &["leaks", "--json", "shop.hprof"][..],
        &["shop.hprof"],
        &["report", "shop.hprof", "-o", "-", "--format", "html"],
    ] {
        let first = stdout(&at, args);
        assert_eq!(first, stdout(&at, args), "{args:?}");
    }
    // Standard input and an environment twin mean the same as a file and a flag.
    let flag = stdout(&at, &["summary", "--json", "--layout=mat", "shop.hprof"]);
    let twin = Command::new(TENURE)
        .current_dir(&at)
        .args(["summary", "--json", "-"])
        .env("TENURE_LAYOUT", "mat")
        .stdin(fs::File::open(at.join("shop.hprof")).expect("the dump"))
        .output()
        .expect("running tenure");
    assert_eq!(flag, String::from_utf8_lossy(&twin.stdout));
}

#[test]
fn a_file_that_is_not_a_baseline_is_named_by_what_it_is() {
    let (_dir, at) = folder();
    let write = |name: &str, bytes: &[u8]| fs::write(at.join(name), bytes).expect(name);
    write("packed.json", b"\x1f\x8b\x08\0\xff");
    write("leaks.json", b"{\"schema\": \"tenure.leaks/1\"}");
    write("other.json", b"{\"objects\": 1}");
    write("cut.json", b"{\"schema\": \"tenure.base");
    write("less.json", b"{\"schema\": \"tenure.baseline/2\"}");
    write("old.json", b"{\"schema\": \"tenure.baseline/1\"}");
    write("empty.json", b"");
    write("text.json", b"classes\xff");
    for (file, found) in [
        ("shop.hprof", "a heap dump (HPROF)"),
        ("packed.json", "a file packed with gzip"),
        ("leaks.json", "tenure.leaks/1"),
        ("other.json", "JSON without a \"schema\""),
        ("cut.json", "no JSON (EOF"),
        ("less.json", "a damaged one: missing field `objects`"),
        (
            "old.json",
            "that of another version of Tenure (tenure.baseline/1)",
        ),
        ("empty.json", "an empty file"),
        ("text.json", "\"classes\\xff\""),
    ] {
        let out = tenure(&at, &["check", "shop.hprof", "--baseline", file]);
        let printed = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{printed}");
        let expected = "the JSON that `tenure check DUMP --write-baseline` writes";
        let text = format!("tenure: {file} is not a baseline: expected {expected}, found {found}");
        assert!(printed.starts_with(&text), "{printed}");
    }
}

#[test]
fn help_is_short_and_has_examples() {
    let (_dir, at) = folder();
    for command in [
        "leaks",
        "report",
        "histogram",
        "dominators",
        "top",
        "object",
        "paths",
        "roots",
        "threads",
        "strings",
        "collections",
        "waste",
        "diff",
        "check",
        "android",
        "secrets",
        "redact",
        "extract",
        "export",
        "convert",
        "loaders",
        "properties",
        "unreachable",
        "query",
        "summary",
        "validate",
        "cache",
        "events",
        "collectors",
    ] {
        let help = stdout(&at, &[command, "-h"]);
        assert!(help.contains("Examples:\n  tenure "), "{command}: {help}");
        assert!(
            help.lines().count() <= 45,
            "{command}: {}",
            help.lines().count()
        );
    }
}

#[test]
fn help_leads_from_the_program_to_a_command() {
    let (_dir, at) = folder();
    let alone = tenure(&at, &[]);
    assert_eq!(alone.status.code(), Some(0));
    let printed = String::from_utf8_lossy(&alone.stdout).into_owned();
    for words in [
        "\n  tenure heap.hprof ",
        "\n  tenure attach PID --live ",
        "JVMs that run:\n",
    ] {
        assert!(printed.contains(words), "{printed}");
    }
    let all = stdout(&at, &["--help"]);
    for words in [
        "\nLook at a dump:\n  overview ",
        "\nProfile a JVM:\n  run ",
        "TENURE_NO_INDEX=1",
    ] {
        assert!(all.contains(words), "{all}");
    }
    assert_eq!(
        stdout(&at, &["help", "leaks"]),
        stdout(&at, &["leaks", "--help"])
    );
    let swapped = stdout(&at, &["shop.hprof", "leaks"]);
    assert_eq!(swapped, stdout(&at, &["leaks", "shop.hprof"]));
}

#[test]
fn a_memory_limit_that_cannot_be_kept_is_refused_with_the_least_one() {
    let (_dir, at) = folder();
    let summary = |limit: &str| {
        let args = [
            "summary",
            "--threads=2",
            "--max-memory",
            limit,
            "shop.hprof",
        ];
        let out = tenure(&at, &args);
        let printed = String::from_utf8_lossy(&out.stderr).into_owned();
        (out.status.code(), printed)
    };
    let (code, printed) = summary("5M");
    assert_eq!(code, Some(3), "{printed}");
    let start = "tenure: --max-memory: 5M is too little, the index of this dump needs about ";
    let least = printed.strip_prefix(start).map(str::trim_end);
    let least = least.unwrap_or_else(|| panic!("{printed}"));
    let (code, printed) = summary("1k");
    assert_eq!(code, Some(3), "{printed}");
    assert!(printed.contains("1K is too little"), "{printed}");
    // What the process takes before is not always the same.
    let least: u64 = least.trim_end_matches('M').parse().expect("a size");
    assert_eq!(summary(&format!("{}M", least + 8)).0, Some(0));
}

#[test]
fn the_cache_is_listed_and_removed() {
    let (_dir, at) = folder();
    assert_eq!(code(&at, &["summary", "shop.hprof"]), 0);
    assert!(stdout(&at, &["cache", "ls", "shop.hprof"]).contains(".idx"));
    assert_eq!(code(&at, &["cache", "rm", "shop.hprof"]), 0);
    assert!(!at.join("shop.hprof.tenure").exists());
    assert!(stdout(&at, &["cache", "ls", "shop.hprof"]).contains("no index files"));
}

#[test]
fn a_cache_folder_that_cannot_be_made_is_an_error() {
    let (_dir, at) = folder();
    for command in ["overview", "histogram"] {
        let args = [command, "--cache-dir", "shop.hprof/cache", "shop.hprof"];
        let out = tenure(&at, &args);
        let printed = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(3), "{printed}");
        let start = "tenure: --cache-dir shop.hprof/cache: the folder cannot be made or written: ";
        assert!(printed.starts_with(start), "{printed}");
    }
    let args = ["overview", "--cache-dir", "new/cache", "shop.hprof"];
    assert_eq!(code(&at, &args), 0);
    assert!(at.join("new/cache/shop.hprof.tenure").is_dir());
}

#[test]
fn a_named_pipe_is_opened_once() {
    let (_dir, at) = folder();
    let made = Command::new("mkfifo").arg(at.join("pipe")).status();
    assert!(made.expect("mkfifo").success());
    let whole = fs::read(at.join("shop.hprof")).expect("the dump");
    let pipe = at.join("pipe");
    // A second opening would end the writer, or wait for another one.
    let writer = std::thread::spawn(move || fs::write(pipe, whole));
    let counted = stdout(&at, &["histogram", "--json", "pipe"]);
    writer
        .join()
        .expect("no panic")
        .expect("all of it was read");
    assert!(counted.contains("shop.Order"), "{counted}");
    let args = ["extract", "pipe", "part.hprof", "--class", "shop.Order"];
    assert_eq!(code(&at, &args), 2, "it would be read twice");
}

#[test]
fn outputs_that_are_not_named_are_named_after_their_inputs() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    fs::write(at.join("shop.hprof"), shop()).expect("a dump");
    let check = |args: &[&str], made: &str| {
        let done = tenure(at, args);
        let printed = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(0), "{args:?}: {printed}");
        assert!(at.join(made).is_file(), "{args:?}: {printed}");
        assert!(
            printed.contains(&format!("wrote {made}")),
            "{args:?}: {printed}"
        );
        // What a user has is not lost.
        assert_eq!(code(at, args), 2, "{args:?}");
    };
    check(&["report", "shop.hprof"], "shop.html");
    check(&["report", "shop.hprof", "--format", "md"], "shop.md");
    let args = ["convert", "shop.hprof", "--to", "android"];
    check(&args, "shop.android.hprof");
    let text = "TRACE 300001:\n\tCpu.hot(Cpu.java:3)\nCPU SAMPLES BEGIN (total = 7) Sat Nov 21 04:57:27 2026\n   \
                1 100.00% 100.00%       7 300001 Cpu.hot\nCPU SAMPLES END\n";
    fs::write(at.join("cpu.hprof.txt"), text).expect("a profile");
    check(&["convert", "cpu.hprof.txt"], "cpu.html");
}

#[test]
fn other_files_are_named_by_what_they_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = folder.path();
    fs::write(at.join("a.hprof"), b"FLR\0\0\x02\0\0rest").expect("a file");
    let done = tenure(at, &["leaks", "a.hprof"]);
    let printed = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(3), "{printed}");
    assert!(printed.contains("`tenure profile` shows it"), "{printed}");
    // A recording of which hardly anything is left.
    let done = tenure(at, &["profile", "a.hprof"]);
    let printed = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(4), "{printed}");
    assert!(printed.contains("at 0: chunk: expected"), "{printed}");
}

/// The terminal sends Ctrl-C to the program, too: passed on, it would be the second one, on which many programs end at once.
#[test]
fn a_program_receives_one_signal_for_each_that_is_typed_or_sent() {
    const PROGRAM: &str = "n=0; trap 'n=$((n+1)); echo int=$n.' INT; \
                           q=0; trap 'q=$((q+1)); echo quit=$q.' QUIT; trap 'echo total=$n.; exit 7' TERM\n\
                           echo ready.; while :; do read line; done\n";
    if !terminal::is_there() {
        let (what, why) = ("a_program_receives_one_signal", "there is no script(1)");
        return testkit::skip(what, testkit::Need::Program, why);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("count.sh");
    fs::write(&program, PROGRAM).expect("a program");
    let words = format!("run -- sh {}", program.display());
    let mut terminal = terminal::Terminal::start(&words, &testkit::built::agent());
    terminal.wait_raw("ready.");
    let pid = terminal.pid();
    let send = |signal: &str| {
        let sent = Command::new("kill").args(["-s", signal, &pid]).status();
        assert!(sent.expect("kill").success());
    };
    terminal.press("\x03");
    terminal.wait_raw("int=1.");
    send("INT");
    terminal.wait_raw("int=2.");
    terminal.press("\x1c");
    terminal.wait_raw("quit=1.");
    send("QUIT");
    terminal.wait_raw("quit=2.");
    // Signals are passed on in the order in which they arrive.
    send("TERM");
    let raw = terminal.wait_raw("total=");
    assert!(raw.contains("total=2."), "{raw}");
    assert!(!raw.contains("quit=3."), "{raw}");
    terminal.ended("7");
}
