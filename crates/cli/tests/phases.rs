//! `--profile-phases`: what each phase of an analysis costs, on standard error.

use std::process::{Command, Output, Stdio};
use testkit::dump::{Elements, Heap, IdSize, Root};

fn leaks(folder: &std::path::Path, options: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tenure"))
        .current_dir(folder)
        .args(["leaks", "heap.hprof", "--json", "--bytes"])
        .args(options)
        .stdin(Stdio::null())
        .output()
        .expect("running tenure")
}

#[test]
fn phases_are_listed_with_what_was_counted_and_the_answer_is_the_same() {
    let mut heap = Heap::new(IdSize::Eight);
    heap.java_lang_object();
    let array = heap.primitive_array(Elements::Byte(vec![7; 100]));
    heap.root(Root::Unknown, array);
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("heap.hprof"), heap.bytes()).expect("written");
    let plain = leaks(folder.path(), &["--no-index"]);
    let with = leaks(folder.path(), &["--no-index", "--profile-phases"]);
    assert_eq!(plain.status.code(), with.status.code());
    assert_eq!(plain.stdout, with.stdout);
    assert!(plain.stderr.is_empty());

    let text = String::from_utf8(with.stderr).expect("text");
    let rows = text.lines().map(|line| {
        let cells = line.split("  ").map(str::trim);
        cells.filter(|cell| !cell.is_empty()).collect()
    });
    let rows: Vec<Vec<&str>> = rows.filter(|row: &Vec<&str>| row.len() == 8).collect();
    let names: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    let want = [
        "phase",
        "records",
        "objects",
        "classes and roots",
        "references",
        "search",
        "class edges",
        "dominators",
        "ancestors",
        "dominator tree",
        "groups",
        "retained sizes",
        "dominated objects",
        "end of the index",
        "answer",
        "sum, or the most",
    ];
    assert_eq!(names, want, "{text}");
    let bytes = |name: &str, column: usize| {
        let row = rows.iter().find(|row| row[0] == name).expect("a row");
        row[column]
            .replace([',', ' '], "")
            .parse::<u64>()
            .expect("bytes")
    };
    for phase in ["references", "dominators", "groups", "retained sizes"] {
        assert!(bytes(phase, 5) > 0, "arrays of {phase}: {text}");
    }
    if cfg!(target_os = "linux") {
        assert!(want[1..].iter().all(|phase| bytes(phase, 6) > 0), "{text}");
    }
}
