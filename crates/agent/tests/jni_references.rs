//! References of JNI that a program makes: exact counts, and nothing else is changed.

use profile::{Profile, Reference};
use std::path::{Path, PathBuf};

/// The native half of `References.java`; `None`, having said why, where it cannot be made.
fn library(folder: &Path) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/native/references.c");
    let made = folder.join("libreferences.so");
    testkit::jvm::compile_agent(&source, &[], &made)?;
    Some(made)
}

/// Created, deleted, cleared of all rows of a kind, class and method.
fn sum(profile: &Profile, weak: bool, class: &str, method: &str) -> [u64; 3] {
    let rows = &profile.references.as_ref().expect("a table").rows;
    let is_it = |row: &&Reference| {
        let names = profile.trace_names(row.trace);
        let by = match method {
            "" => names.is_empty(),
            method => names.iter().any(|name| name == method),
        };
        row.weak == weak && profile.names.get(row.class) == class && by
    };
    rows.iter().filter(is_it).fold([0; 3], |sum, row| {
        [
            sum[0] + row.created,
            sum[1] + row.deleted,
            sum[2] + row.cleared,
        ]
    })
}

fn check(profile: &Profile, what: &str) {
    let of = |weak, class, method: &str| sum(profile, weak, class, method);
    let held = "References$Held";
    assert_eq!(of(false, held, "References.leak"), [7 + 4, 0, 0], "{what}");
    let passed = 5 + 4 * 5000;
    assert_eq!(
        of(false, held, "References.pass"),
        [passed, passed, 0],
        "{what}"
    );
    assert_eq!(of(true, held, "References.leakWeakly"), [5, 1, 3], "{what}");
    assert_eq!(
        of(false, "byte[]", "References.leakArrays"),
        [2, 0, 0],
        "{what}"
    );
    assert_eq!(
        of(false, held, "References.leakCritically"),
        [3, 0, 0],
        "{what}"
    );
    let thrown = "java.lang.IllegalStateException";
    assert_eq!(
        of(false, thrown, "References.holdException"),
        [1, 0, 0],
        "{what}"
    );
    assert_eq!(of(false, held, "References.attach"), [1, 1, 0], "{what}");
    assert_eq!(of(false, held, ""), [40, 24, 0], "native threads, {what}");
    let rows = &profile.references.as_ref().expect("a table").rows;
    let arrays = rows
        .iter()
        .find(|row| profile.names.get(row.class) == "byte[]" && row.remaining() == 2);
    let bytes = arrays.map(|row| row.bytes);
    assert!(bytes.is_some_and(|b| (2000..2100).contains(&b)), "{what}");
    let agents = rows
        .iter()
        .filter(|row| profile.names.get(row.class).starts_with("java.lang.Hprof"));
    assert_eq!(agents.count(), 0, "the agent's own, {what}");
}

#[test]
fn every_reference_is_counted_with_the_stack_that_made_it() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let folder = tempfile::tempdir().expect("temporary folder");
    let Some(library) = library(folder.path()) else {
        return;
    };
    let Some(classes) = lab.compile("References.java", 8) else {
        return;
    };
    let program = ["References", &*library.to_string_lossy(), "script"];
    for jdk in &lab.jdks {
        for (options, flag) in [
            ("jni=y", "-Xcheck:jni"),
            ("jni=y,heap=all,cpu=times,depth=8", "-XX:+UseSerialGC"),
            (
                "jni=y,heap=dump,format=b,modern=y,file=java.hprof.txt",
                "-Xmx256m",
            ),
        ] {
            let ran = lab.run_in(jdk, classes.path(), Some(options), &[flag], &program);
            let what = format!("{options} {flag} on {}\n{}", jdk.full_version, ran.stderr());
            assert_eq!(ran.output.status.code(), Some(0), "{what}");
            // The check of JNI prints to standard output as well, mostly of the program's sins.
            let printed = ran.stdout();
            let has = |line| printed.lines().any(|one| one == line);
            assert!(has("pending") && has("done"), "{printed}{what}");
            let bytes = std::fs::read(ran.folder.path().join("java.hprof.txt"));
            let (profile, damage) = profile::read(&bytes.expect("a profile")).expect("read");
            assert!(!damage.any_damage(), "{damage:?}\n{what}");
            check(&profile, &what);
            if options.contains("format=b") {
                handles(&profile, &what);
            }
        }
    }
}

/// A dump brings every reference that exists, once.
fn handles(profile: &Profile, what: &str) {
    let table = profile.references.as_ref().expect("a table");
    let remaining: u64 = table.remaining().iter().sum();
    assert_eq!(table.handles.len() as u64, remaining, "{what}");
    for (at, row) in table.rows.iter().enumerate() {
        let of_row = table.handles.iter().filter(|(row, _)| *row as usize == at);
        assert_eq!(of_row.count() as u64, row.remaining(), "{what}");
    }
}
