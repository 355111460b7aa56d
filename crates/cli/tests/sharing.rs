//! `redact` and `secrets`: what may leave the house.

use crate::ran::{run, tenure};
use serde_json::Value as Json;
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Command;
use testkit::corpus::workspace;
use testkit::dump::{Elements, Heap as Builder, IdSize, Root};
use testkit::jvm::{FreshDump, NO_JDK, jdks, newest_compiler};

fn json(folder: &Path, args: &[&str], code: i32) -> Json {
    serde_json::from_str(&run(folder, args, code)).expect("JSON")
}

fn program() -> Option<FreshDump> {
    let found = jdks();
    let (Some(jdk), Some(_)) = (found.last(), newest_compiler()) else {
        testkit::skip("sharing of a dump", testkit::Need::Jdk, NO_JDK);
        return None;
    };
    let source = workspace().join("crates/cli/tests/Secrets.java");
    let flags = ["-Xmx64m", "-XX:+UseSerialGC"];
    Some(jdk.dump(&source, &flags, &[]).expect("a dump"))
}

/// A naive search: every place of one text in another.
fn contains(data: &[u8], text: &[u8]) -> bool {
    data.windows(text.len()).any(|w| w == text)
}

/// A text as Latin-1 and as UTF-16 of either order.
fn spellings(text: &str) -> [Vec<u8>; 4] {
    [
        text.as_bytes().to_vec(),
        text.chars().map(|c| c as u32 as u8).collect(),
        text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
    ]
}

#[test]
fn nothing_of_the_contents_is_left_and_all_of_the_structure() {
    let Some(dump) = program() else { return };
    let at = dump.folder();
    fs::rename(&dump.path, at.join("heap.hprof")).expect("a name");
    run(
        at,
        &["redact", "heap.hprof", "out.hprof", "--numbers", "--quiet"],
        0,
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = fs::metadata(at.join("out.hprof"))
            .expect("a file")
            .permissions();
        assert_eq!(mode.mode() & 0o777, 0o600);
    }
    // Never over a file that is there, and never over the input.
    run(at, &["redact", "heap.hprof", "out.hprof"], 2);
    run(at, &["redact", "heap.hprof", "heap.hprof", "--force"], 2);

    let (before, after) = (
        fs::read(at.join("heap.hprof")).expect("the dump"),
        fs::read(at.join("out.hprof")).expect("the other"),
    );
    assert_eq!(before.len(), after.len());
    for secret in [
        "Ada Lovelace",
        "pin-of-number-7",
        "bearer-token-bytes-7",
        "hunter2-",
        "AKIAIOSFODNN7EXAMPLE",
        "AKIAIOSFODNN7",
        "s3cr3tword",
        "correct horse",
        "plain-looking-but-named-",
        "datasource.password",
        "\u{30c6}\u{30ad}\u{30b9}\u{30c8}",
    ] {
        let there = spellings(secret).iter().any(|s| contains(&before, s));
        assert!(there, "{secret} is not in the original: the test is wrong");
        for spelling in spellings(secret) {
            assert!(!contains(&after, &spelling), "{secret} is left");
        }
    }
    for number in [
        4_000_000_000_007_i64,
        5_500_000_000_000_000,
        4_111_111_111_111_111,
    ] {
        assert!(contains(&before, &number.to_be_bytes()), "{number}");
        assert!(!contains(&after, &number.to_be_bytes()), "{number} is left");
    }
    every_text_is_gone(at, &after);

    for command in [
        &["histogram", "--json"][..],
        &["dominators", "--tsv", "--all"],
    ] {
        let of = |file| {
            // One thread: which gaps are sampled depends on who comes first.
            let mut args = command.to_vec();
            args.extend(["--threads", "1", "--no-index", file]);
            run(at, &args, 0)
        };
        assert!(of("heap.hprof") == of("out.hprof"), "{command:?} differs");
    }
    let validated = ["heap.hprof", "out.hprof"].map(|file| {
        let mut answer = json(at, &["validate", "--json", file], 0);
        // Ids that are not those of objects in the dump are not written.
        answer["dangling_references"] = Json::Null;
        answer
    });
    assert_eq!(validated[0], validated[1]);
    let validated = &validated[1];
    assert_eq!(
        (&validated["whole"], &validated["skipped_bytes"]),
        (&true.into(), &0.into())
    );
    duplicates_agree(at);
    // No text has the form of a secret any more; fields are still named as they were, and hold tokens, of which short ones
    // may by coincidence be texts.
    let found = tenure(at, &["secrets", "--json", "out.hprof"]);
    let found: Json = serde_json::from_slice(&found.stdout).expect("JSON");
    assert!(found["tokens"].as_u64() >= Some(300), "{found}");
    let listed = found["found"].as_array().expect("a list");
    assert!(listed.len() < 10, "{found}");
    for one in listed {
        let rule = one["rule"].as_str().expect("a rule");
        assert!(rule.starts_with("field "), "{one}");
    }
    // Neither are zeros a secret.
    run(
        at,
        &["redact", "heap.hprof", "zeros.hprof", "--method=zero", "-q"],
        0,
    );
    let found = json(at, &["secrets", "--json", "zeros.hprof"], 0);
    assert_eq!(found["tokens"], 0);
    // What stays readable is still found.
    let keep = ["--keep", "Secrets$Account", "-q"];
    run(
        at,
        &[&["redact", "heap.hprof", "kept.hprof"], &keep[..]].concat(),
        0,
    );
    let found = json(at, &["secrets", "--json", "kept.hprof"], 1);
    let count = &found["rules"]["field Secrets$Account.password"];
    assert_eq!(*count, 300, "{}", found["rules"]);
}

/// Every string of the original, of eight characters or more, against the whole output: only what
/// is also the name of a class, field, method or file may be left.
fn every_text_is_gone(at: &Path, after: &[u8]) {
    let found = json(
        at,
        &[
            "strings",
            "--find",
            ".{8}",
            "--limit",
            "0",
            "--json",
            "heap.hprof",
        ],
        0,
    );
    let texts: BTreeSet<&str> = found["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .filter_map(|r| r["text"].as_str())
        .collect();
    assert!(texts.len() > 1000, "{}", texts.len());
    // All windows of eight bytes of the output's heap and of its texts that are no names.
    let map = hprof_records(after);
    let mut windows: BTreeSet<[u8; 8]> = BTreeSet::new();
    for body in map {
        windows.extend(body.windows(8).filter_map(|w| w.first_chunk().copied()));
    }
    let mut left = Vec::new();
    for text in texts {
        let latin: Vec<u8> = text.chars().map(|c| c as u32 as u8).collect();
        let wide: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for spelled in [latin, wide] {
            let all = |w: &[u8]| w.first_chunk().is_some_and(|w| windows.contains(w));
            let varied = spelled.iter().collect::<BTreeSet<_>>().len() > 3;
            if varied && spelled.windows(8).all(all) {
                left.push(text);
            }
        }
    }
    assert!(
        left.is_empty(),
        "{} texts are left: {:?}",
        left.len(),
        &left[..left.len().min(5)]
    );
}

/// The bodies of all heap records, read without the program's own reader: tag, time, length, body.
fn hprof_records(data: &[u8]) -> Vec<&[u8]> {
    let mut at = data.iter().position(|b| *b == 0).expect("a header") + 13;
    let mut bodies = Vec::new();
    while at + 9 <= data.len() {
        let len = u32::from_be_bytes(data[at + 5..at + 9].try_into().expect("four bytes")) as usize;
        if matches!(data[at], 0x0c | 0x1c) {
            bodies.push(&data[at + 9..at + 9 + len]);
        }
        at += 9 + len;
    }
    bodies
}

fn duplicates_agree(at: &Path) {
    let sums = |file| {
        let found = json(
            at,
            &["strings", "--duplicates", "--json", "-n", "0", file],
            0,
        );
        let counts: Vec<[u64; 4]> = found["rows"]
            .as_array()
            .expect("rows")
            .iter()
            .map(|r| ["count", "length", "bytes", "wasted"].map(|f| r[f].as_u64().expect(f)))
            .collect();
        let mut counts = counts;
        counts.sort_unstable();
        (
            found["strings"].clone(),
            found["distinct"].clone(),
            found["wasted"].clone(),
            counts,
        )
    };
    assert!(sums("heap.hprof") == sums("out.hprof"), "strings differ");
    let kinds = |file| {
        let found = json(at, &["waste", "--json", "--no-holders", file], 0);
        let kinds = found["kinds"].as_array().expect("kinds").clone();
        let same = [
            "duplicate_strings",
            "duplicate_arrays",
            "empty_collections",
            "unused_slots",
            "zero_arrays",
        ];
        let kept = kinds
            .into_iter()
            .filter(|k| same.contains(&k["kind"].as_str().unwrap_or("")));
        kept.map(|k| k.to_string()).collect::<BTreeSet<_>>()
    };
    assert_eq!(kinds("heap.hprof"), kinds("out.hprof"));
}

#[test]
fn a_keep_list_keeps_and_renaming_makes_a_map() {
    let Some(dump) = program() else { return };
    let at = dump.folder();
    fs::rename(&dump.path, at.join("heap.hprof")).expect("a name");
    let args = [
        "redact",
        "heap.hprof",
        "out.hprof",
        "--keep",
        "java.lang.Thread",
        "--rename",
        "map.txt",
        "-q",
    ];
    run(at, &args, 0);
    let map = fs::read_to_string(at.join("map.txt")).expect("a map");
    let line = map
        .lines()
        .find(|l| l.starts_with("Secrets$Account -> "))
        .expect(&map);
    let new = line
        .trim_end_matches(':')
        .rsplit(' ')
        .next()
        .expect("a name");
    // Static fields have new names, too.
    let bytes = fs::read(at.join("out.hprof")).expect("the output");
    let has = |name: &[u8]| bytes.windows(name.len()).any(|window| window == name);
    assert!(!has(b"apiKey") && has(b"java/util/HashMap"));
    assert!(map.contains(" apiKey -> "), "{map}");
    let histogram = run(at, &["histogram", "-n", "0", "out.hprof"], 0);
    assert!(
        !histogram.contains("Secrets") && histogram.contains(new),
        "{new}"
    );
    assert!(histogram.contains("java.util.HashMap"));
    let objects = |file, class: &str| {
        let found = json(
            at,
            &[
                "histogram",
                "--json",
                "--filter",
                &format!("^{}$", class.replace('$', "\\$")),
                file,
            ],
            0,
        );
        found["rows"][0]["objects"].clone()
    };
    assert_eq!(objects("out.hprof", new), 300);
    // Threads keep their names, and with the map classes get theirs back.
    let threads = run(at, &["threads", "out.hprof"], 0);
    assert!(
        threads.contains("main-program") || threads.contains("Reference Handler"),
        "{threads}"
    );
    let back = run(
        at,
        &[
            "histogram",
            "--limit",
            "0",
            "--mapping",
            "map.txt",
            "out.hprof",
        ],
        0,
    );
    assert!(back.contains("Secrets$Account"), "{back}");
    // So do the frames: class, method and source file.
    let frames = |arguments: &[&str]| {
        let printed = run(at, &[&["threads"], arguments].concat(), 0);
        let frames = printed.lines().filter(|line| line.contains("at Secrets"));
        frames.map(str::to_owned).collect::<Vec<_>>()
    };
    let old = frames(&["heap.hprof"]);
    assert!(!old.is_empty());
    assert_eq!(frames(&["out.hprof"]), <[&str; 0]>::default());
    assert_eq!(frames(&["--mapping", "map.txt", "out.hprof"]), old);
}

#[test]
fn secrets_are_found_by_form_and_by_name() {
    let Some(dump) = program() else { return };
    let at = dump.folder();
    fs::rename(&dump.path, at.join("heap.hprof")).expect("a name");
    let found = json(at, &["secrets", "--json", "--show", "heap.hprof"], 1);
    let texts: BTreeSet<String> = found["found"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|r| {
            format!(
                "{}: {}",
                r["rule"].as_str().unwrap_or(""),
                r["text"].as_str().unwrap_or("")
            )
        })
        .collect();
    for want in [
        "AWS access key: AKIAIOSFODNN7EXAMPLE",
        "field Secrets$Account.password: hunter2-7",
        "field Secrets.apiKey: plain-looking-but-named-42",
    ] {
        assert!(texts.contains(want), "{want} is not among {texts:?}");
    }
    let by = |start: &str| texts.iter().filter(|t| t.starts_with(start)).count();
    assert_eq!(by("field Secrets$Account.password"), 300);
    assert_eq!(found["tokens"], 0);
    assert!(
        by("password in a URL: postgresql://app:s3cr3tword@") >= 1,
        "{texts:?}"
    );
    assert_eq!(by("key datasource.password: correct horse"), 1);
    let printed = run(at, &["secrets", "heap.hprof"], 1);
    assert!(
        !printed.contains("hunter2-7"),
        "secrets are hidden unless asked for"
    );
}

/// Texts that begin with other characters, are Latin-1, or are longer than what is searched at a time.
#[test]
fn secrets_are_found_in_every_encoding_and_at_every_place() {
    let mut heap = Builder::new(IdSize::Eight);
    heap.java_lang_object();
    let far = format!("{} AKIAIOSFODNN7FARAWAY {0}", "x".repeat(1_500_000));
    let across = format!("{} AKIAIOSFODNN7ACROSS1 x", "y".repeat((1 << 20) - 10));
    let texts = [
        "\u{201c}AKIAIOSFODNN7QUOTED1\u{201d}",
        "\u{65e5}\u{672c} AKIAIOSFODNN7WIDE111",
        "h\u{e9} AKIAIOSFODNN7LATIN11",
        &far,
        &across,
    ];
    for text in texts {
        let string = heap.string(text);
        heap.root(Root::JniGlobal { reference: 1 }, string);
    }
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("a.hprof"), heap.bytes()).expect("the dump");
    let found = json(dir.path(), &["secrets", "--json", "--show", "a.hprof"], 1);
    let rows = found["found"].as_array().expect("rows");
    let mut got: Vec<&str> = rows.iter().filter_map(|r| r["text"].as_str()).collect();
    got.sort_unstable();
    let ends = ["ACROSS1", "FARAWAY", "LATIN11", "QUOTED1", "WIDE111"];
    assert_eq!(
        got,
        ends.map(|end| format!("AKIAIOSFODNN7{end}")),
        "{found}"
    );
}

/// A dump with texts; the offset of the length of its first text.
fn texts() -> (Vec<u8>, usize) {
    let mut heap = Builder::new(IdSize::Eight);
    let object = heap.java_lang_object();
    heap.class("Constants", object, &[]);
    let first = heap.primitive_array(Elements::Byte(b"first secret text".to_vec()));
    for text in ["second secret text", "third secret text"] {
        let array = heap.primitive_array(Elements::Byte(text.as_bytes().to_vec()));
        heap.root(Root::JniGlobal { reference: 1 }, array);
    }
    heap.root(Root::JniGlobal { reference: 1 }, first);
    let data = heap.bytes();
    let is_first = |w: &[u8]| w[0] == 0x23 && w[1..9] == first.to_be_bytes();
    let at = data.windows(9).position(is_first).expect("the array");
    (data, at + 13)
}

#[test]
fn damage_of_what_is_redacted_is_listed() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = dir.path();
    let (good, length) = texts();
    let cut = &good[..length + 10];
    let mut wrong = good.clone();
    wrong[length + 3] += 9;
    for (name, data) in [("cut", cut), ("wrong", &wrong)] {
        fs::write(at.join(name), data).expect("the dump");
        for command in ["redact", "convert"] {
            let out = format!("{command}-{name}.hprof");
            let args = match command {
                "redact" => vec!["redact", name, &out],
                _ => vec!["convert", name, "-o", &out],
            };
            let ran = tenure(at, &args);
            let printed = String::from_utf8_lossy(&ran.stderr);
            assert_eq!(ran.status.code(), Some(4), "{args:?}: {printed}");
            assert!(printed.contains("the input is damaged"), "{printed}");
            assert!(
                printed.contains("PRIMITIVE_ARRAY_DUMP") || printed.contains("sub-record tag"),
                "{printed}"
            );
        }
    }
    // A file without a heap dump.
    let names = hprof_heap(&good).expect("a heap dump");
    fs::write(at.join("names"), &good[..names]).expect("the file");
    let ran = tenure(at, &["redact", "names", "names-out"]);
    let printed = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(0), "{printed}");
    assert!(printed.contains("no heap dump in it"), "{printed}");
}

/// Where the first heap record is.
fn hprof_heap(data: &[u8]) -> Option<usize> {
    let mut at = data.iter().position(|b| *b == 0)? + 13;
    while at + 9 <= data.len() {
        if matches!(data[at], 0x0c | 0x1c) {
            return Some(at);
        }
        at += 9 + u32::from_be_bytes(data[at + 5..at + 9].try_into().ok()?) as usize;
    }
    None
}

#[test]
fn the_name_of_an_output_decides_its_form() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = dir.path();
    let (data, _) = texts();
    fs::write(at.join("heap.hprof"), &data).expect("the dump");
    run(
        at,
        &[
            "redact",
            "heap.hprof",
            "out.hprof",
            "--method",
            "zero",
            "-q",
        ],
        0,
    );
    let out = fs::read(at.join("out.hprof")).expect("the output");
    // Standard output, also of what came from standard input.
    let ran = tenure(at, &["redact", "heap.hprof", "-", "--method", "zero", "-q"]);
    assert!(ran.status.success() && ran.stdout == out);
    let ran = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .current_dir(at)
        .args(["redact", "-", "-", "--method", "zero", "-q"])
        .stdin(fs::File::open(at.join("heap.hprof")).expect("the dump"))
        .output()
        .expect("running tenure");
    assert!(ran.status.success() && ran.stdout == out, "{ran:?}");
    assert!(!at.join("-").exists());
    let extracted = tenure(
        at,
        &["extract", "heap.hprof", "-", "--class", "byte[]", "-q"],
    );
    assert!(extracted.status.success() && extracted.stdout.starts_with(b"JAVA PROFILE"));
    // Gzip, and no other packing.
    run(
        at,
        &[
            "redact",
            "heap.hprof",
            "out.hprof.gz",
            "--method",
            "zero",
            "-q",
        ],
        0,
    );
    let packed = fs::read(at.join("out.hprof.gz")).expect("the output");
    assert!(packed.starts_with(&[0x1f, 0x8b]));
    let mut unpacked = Vec::new();
    let read = flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut unpacked);
    assert!(read.is_ok() && unpacked == out);
    run(at, &["redact", "heap.hprof", "out.hprof.zst"], 2);
    run(
        at,
        &["extract", "heap.hprof", "out.hprof.xz", "--class", "byte[]"],
        2,
    );
    // All dumps of a file are written, so that one cannot be named; a part is of one.
    let ran = tenure(at, &["redact", "heap.hprof#1", "one.hprof"]);
    let printed = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(2), "{printed}");
    assert!(printed.contains("give heap.hprof"), "{printed}");
    run(
        at,
        &[
            "extract",
            "heap.hprof#1",
            "one.hprof",
            "--class",
            "byte[]",
            "-q",
        ],
        0,
    );
}

#[test]
fn a_part_without_objects_is_not_written() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = dir.path();
    fs::write(at.join("heap.hprof"), texts().0).expect("the dump");
    let ran = tenure(
        at,
        &[
            "extract",
            "heap.hprof",
            "part.hprof",
            "--class",
            "Constants",
        ],
    );
    let printed = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(1), "{printed}");
    assert!(printed.contains("has an object"), "{printed}");
    assert!(!at.join("part.hprof").exists());
}

#[test]
fn objects_of_one_id_are_all_written() {
    let dir = tempfile::tempdir().expect("a folder");
    let at = dir.path();
    // The heap twice: each id occurs again.
    let good = texts().0;
    let heap = hprof_heap(&good).expect("a heap dump");
    let end = heap + 9 + hprof_records(&good)[0].len();
    let twice = [&good[..end], &good[heap..]].concat();
    fs::write(at.join("twice"), &twice).expect("the dump");
    run(at, &["convert", "twice", "-o", "same.hprof"], 0);
    assert!(fs::read(at.join("same.hprof")).expect("the dump") == twice);
    run(at, &["redact", "twice", "out.hprof"], 0);
    let out = fs::read(at.join("out.hprof")).expect("the dump");
    assert_eq!(hprof_records(&out).len(), hprof_records(&twice).len());
}

#[test]
fn a_dump_whose_reader_ends_early_is_a_failure() {
    let mut heap = Builder::new(IdSize::Eight);
    heap.java_lang_object();
    let large = heap.primitive_array(Elements::Byte(vec![7; 4 << 20]));
    heap.root(Root::StickyClass, large);
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("heap.hprof"), heap.bytes()).expect("written");
    let mut tenure = Command::new(env!("CARGO_BIN_EXE_tenure"));
    tenure.args(["redact", "heap.hprof", "-"]);
    let pipe = std::process::Stdio::piped;
    let tenure = tenure.current_dir(folder.path()).stdout(pipe());
    let mut tenure = tenure.stderr(pipe()).spawn().expect("it runs");
    let mut first = [0; 4];
    let mut output = tenure.stdout.take().expect("a pipe");
    output.read_exact(&mut first).expect("some bytes");
    drop(output);
    let ended = tenure.wait_with_output().expect("it ends");
    let printed = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(&first, b"JAVA");
    assert_eq!(ended.status.code(), Some(3), "{printed}");
    assert!(
        printed.contains("the reader of the output ended"),
        "{printed}"
    );
}
