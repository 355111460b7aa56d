//! What testkit finds on this machine: the corpus, JDKs, python3.

use testkit::corpus::{JvmHistogramRow, corpus, parse_histogram};
use testkit::jvm::{NO_JDK, jdks, newest_compiler};
use testkit::mutants::{NO_MUTANTS, mutants};

#[test]
fn every_dump_of_the_corpus_has_the_size_its_answers_say() {
    let Some(dumps) = corpus() else {
        return testkit::skip(
            "corpus",
            testkit::Need::Shared,
            "no shared corpus beside the workspace",
        );
    };
    let expected: Vec<_> = dumps
        .iter()
        .filter_map(|d| Some((d, d.expected.as_ref()?)))
        .collect();
    assert!(
        expected.len() >= 30,
        "only {} dumps with answers",
        expected.len()
    );
    for (dump, answers) in expected {
        assert_eq!(dump.bytes().len() as u64, answers.bytes, "{}", dump.name);
    }
    assert!(dumps.iter().filter(|d| d.histogram.is_some()).count() >= 15);
}

#[test]
fn histograms_of_old_and_new_jvms_are_read() {
    let text = "\n num     #instances         #bytes  class name (module)\n-----\n\
        \x20  1:   26772   829360  [B (java.base@17.0.15)\n   2:  20059   641888  Zoo$Node\n\
        Total   46831  1471248\n";
    let row = |class: &str, instances, bytes| JvmHistogramRow {
        class: class.into(),
        instances,
        bytes,
    };
    assert_eq!(
        parse_histogram(text),
        [row("[B", 26772, 829_360), row("Zoo$Node", 20059, 641_888)]
    );
}

#[test]
fn a_fresh_dump_comes_with_the_jvms_own_histogram() {
    let (Some(compiler), Some(jdk)) = (newest_compiler(), jdks().pop()) else {
        return testkit::skip("a fresh dump", testkit::Need::Jdk, NO_JDK);
    };
    assert!(compiler.version >= 8);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let source = folder.path().join("Hold.java");
    let text = "public class Hold { static byte[][] held = new byte[7][1000];\n\
        public static void main(String[] a) { System.out.println(\"held \" + held.length); } }";
    std::fs::write(&source, text).expect("writing it");
    let dump = jdk.dump(&source, &["-Xmx64m"], &[]).expect("a dump");
    assert_eq!(dump.stdout.lines().next(), Some("held 7"));
    assert!(
        std::fs::read(&dump.path)
            .expect("the dump")
            .starts_with(b"JAVA PROFILE 1.0.")
    );
    let held = dump.histogram.iter().find(|r| r.class == "[[B");
    assert_eq!(held.map(|r| r.instances), Some(1));
}

#[test]
fn mutants_are_named_files_with_what_a_reader_must_do() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let good = folder.path().join("good.hprof");
    let graph = testkit::graph::Graph::from_edges(9, &[0], &[(0, 1), (1, 2), (2, 3), (3, 0)]);
    let dump = testkit::shapes::dump_of(
        &graph,
        testkit::shapes::Encoding::Fields,
        testkit::dump::IdSize::Eight,
    );
    std::fs::write(&good, dump.heap.bytes()).expect("writing it");
    let Some(made) = mutants(&good, 5, 1) else {
        return testkit::skip("mutants", testkit::Need::Shared, NO_MUTANTS);
    };
    assert!(made.all.len() > 100, "only {}", made.all.len());
    assert!(
        made.all
            .iter()
            .all(|m| m.path.is_file() && !m.must.is_empty())
    );
    assert_eq!(
        made.all
            .iter()
            .filter(|m| m.kind.starts_with("rnd-"))
            .count(),
        5
    );
}

#[test]
#[expect(clippy::print_stdout, reason = "the matrix says what it runs on")]
fn jdks_say_the_version_that_they_are_listed_with() {
    let found = jdks();
    if found.is_empty() {
        return testkit::skip("JDKs", testkit::Need::Jdk, NO_JDK);
    }
    for jdk in found {
        let asked = std::process::Command::new(jdk.tool("java"))
            .arg("-version")
            .output();
        let printed = asked.expect("java runs").stderr;
        let printed = String::from_utf8_lossy(&printed).into_owned();
        let compiles = jdk.tool("javac").is_file();
        let tools = if compiles { "" } else { ", no compiler" };
        println!(
            "JDK {} {} at {}{tools}",
            jdk.full_version,
            jdk.vendor,
            jdk.home.display()
        );
        assert!(printed.contains(&jdk.full_version), "{jdk:?}: {printed}");
    }
}
