//! An agent in C, written to `jvmpi.h`, watches the reference VM.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value as Json;

const COLLECTORS: [&str; 5] = [
    "mark_sweep",
    "mark_compact",
    "two_space_copying",
    "generational",
    "reference_counting",
];

/// Events the reference VM has.
const EMITTED: [i64; 14] = [1, 3, 4, 5, 6, 33, 34, 42, 46, 47, 48, 49, 60, 61];

/// Compiles an agent that stands beside those of the bridge.
fn agent(folder: &Path, name: &str) -> Option<PathBuf> {
    let bridge = Path::new(env!("CARGO_MANIFEST_DIR")).join("../jvmpi-bridge");
    let library = folder.join(format!("lib{name}.so"));
    let source = bridge.join(format!("tests/agents/{name}.c"));
    testkit::jvm::compile_agent(&source, &[&bridge.join("include")], &library)?;
    Some(library)
}

/// Runs the default script under an agent; what it reported, and what Tenure answered.
fn watch(folder: &Path, library: &Path, arguments: &[&str], options: &str) -> (Output, String) {
    let report = folder.join("report.txt");
    let loaded = format!("{}:{}{options}", library.display(), report.display());
    let output = Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args(["collectors", "--json", "--agent", &loaded])
        .args(arguments)
        .output()
        .expect("started");
    let report = std::fs::read_to_string(&report).unwrap_or_default();
    (output, report)
}

/// The numbers of lines that begin with a word.
fn rows(report: &str, word: &str) -> Vec<Vec<i64>> {
    let lines = report.lines().filter_map(|line| line.strip_prefix(word));
    let numbers = |line: &str| {
        let words = line.split_whitespace();
        words.filter_map(|word| word.parse().ok()).collect()
    };
    lines.map(numbers).collect()
}

#[test]
fn an_agent_counts_the_same_objects_as_each_collector() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(library) = agent(folder.path(), "arenas") else {
        return;
    };
    let mut seen_anywhere = BTreeMap::new();
    for gc in COLLECTORS {
        let counting = match gc {
            "reference_counting" => ",counting",
            _ => "",
        };
        let (output, report) = watch(folder.path(), &library, &["--gc", gc], counting);
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{gc}: {printed}{report}");
        assert!(report.ends_with("faults 0\nend\n"), "{gc}: {report}");
        for row in rows(&report, "event ") {
            let answer = i64::from(!EMITTED.contains(&row[0]));
            assert_eq!(row[1], answer, "{gc}: event {}", row[0]);
        }
        for row in rows(&report, "seen ") {
            *seen_anywhere.entry(row[0]).or_insert(0) += row[1];
        }
        // The model behind the socket, which knows nothing of the C interface.
        let answer: Json = serde_json::from_slice(&output.stdout).expect("JSON");
        let events = &answer["collectors"][0]["events"];
        let ours = rows(&report, "gc ");
        let theirs = events["collections"].as_array().expect("a list");
        assert!(
            ours.len() == theirs.len() && ours.len() > 1,
            "{gc}: {ours:?}"
        );
        let number = |json: &Json| json.as_i64().expect("a number");
        let mut moves = 0;
        for (row, collection) in ours.iter().zip(theirs) {
            moves += number(&collection["moves"]);
            let objects = number(&collection["objects_after"]);
            let bytes = number(&collection["bytes_after"]);
            let expected = [number(&collection["number"]), objects, bytes, moves];
            assert_eq!(row[..], expected, "{gc}");
        }
        let (live, totals) = (&rows(&report, "live ")[0], &events["totals"]);
        let expected = [
            number(&totals["live_objects"]),
            number(&totals["live_bytes"]),
        ];
        assert_eq!(live[..], expected, "{gc}");
    }
    let seen: Vec<i64> = seen_anywhere.into_keys().collect();
    assert_eq!(seen, EMITTED, "every event came under one of them");
}

#[test]
fn an_agent_of_the_historic_kind_profiles_sites_of_the_reference_vm() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(library) = agent(folder.path(), "sites") else {
        return;
    };
    let (output, report) = watch(folder.path(), &library, &["--gc", "generational"], "");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(report.ends_with("faults 0\nend\n"), "{report}");
    let answer: Json = serde_json::from_slice(&output.stdout).expect("JSON");
    let classes = answer["collectors"][0]["events"]["classes"]
        .as_array()
        .expect("a list");
    let mut compared = 0;
    for class in classes {
        let name = class["name"].as_str().expect("a name");
        let mut sums = [0, 0];
        for line in report.lines() {
            if let ["site", of, objects, bytes, ..] = line.split(' ').collect::<Vec<_>>()[..]
                && of == name
            {
                sums[0] += objects.parse::<u64>().expect("a number");
                sums[1] += bytes.parse::<u64>().expect("a number");
            }
        }
        let expected = ["allocated_objects", "allocated_bytes"].map(|key| class[key].as_u64());
        assert_eq!(sums.map(Some), expected, "{name}");
        compared += 1;
    }
    assert!(compared > 4, "{classes:?}");
}

#[test]
fn an_agent_ends_the_vm_with_its_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(library) = agent(folder.path(), "arenas") else {
        return;
    };
    let (output, report) = watch(folder.path(), &library, &["--gc", "mark_sweep"], ",exit");
    assert_eq!(output.status.code(), Some(7), "{report}");
    let entered = rows(&report, "seen 1 ");
    assert_eq!(entered, [[20]], "nothing ran after it: {report}");
    assert!(report.ends_with("faults 0\nend\n"), "{report}");
}

#[test]
fn what_is_no_agent_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = folder.path().join("none.so");
    let (output, _) = watch(folder.path(), &missing, &["--gc", "mark_sweep"], "");
    let printed = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{printed}");
    assert!(
        printed.contains("none.so") && printed.contains("cannot be loaded"),
        "{printed}"
    );
    // One process has one VM with an agent, as it always was.
    let (output, _) = watch(folder.path(), &missing, &[], "");
    assert_eq!(output.status.code(), Some(2));
}
