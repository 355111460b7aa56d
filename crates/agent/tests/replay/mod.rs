//! Every recorded run of the original agent, run again with Tenure's agent: either equal once times, ids and
//! process numbers are masked, or different for a reason that stands in a table.
//!
//! By default the newest JDK and the runs of [`explained::DEFAULT`]; `./x matrix`
//! (`TENURE_MATRIX=all`, or `=8,21`) takes every run on every JDK. A VM that crashes leaves its
//! report in `target/tmp`.

mod compare;
mod explained;
mod facts;
mod facts_binary;
mod facts_text;
mod live;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use testkit::jvm::{Jdk, newest_compiler};
use testkit::oracle::{Case, cases, folder};

use crate::common::is_matrix;
use compare::Pair;
use explained::{LONG, NOT_APPLICABLE, reason};
use live::Left;

/// How many programs run at once; most of them sleep.
const WORKERS: usize = 4;

/// The result of one case.
enum Verdict {
    Equal(u64),
    Explained(u64, Vec<&'static str>),
    Wrong(Vec<String>),
}

fn check(case: &Case, jdk: &Jdk, library: &Path, classes: &Path) -> Verdict {
    let original = live::recorded(case);
    let ours = live::run(case, jdk, Some(library), classes);
    verdict(case, &original, &ours)
}

fn verdict(case: &Case, original: &Left, ours: &Left) -> Verdict {
    let mut pair = Pair {
        case,
        original,
        ours,
        equal: 0,
        differences: Vec::new(),
    };
    pair.compare();
    for (name, bytes) in &ours.files {
        pair.differences.extend(invalid(name, bytes));
    }
    let mut reasons = Vec::new();
    let mut wrong = Vec::new();
    for difference in &pair.differences {
        match reason(&case.name, difference) {
            Some(reason) if reasons.contains(&reason) => {}
            Some(reason) => reasons.push(reason),
            None => wrong.push(difference.clone()),
        }
    }
    if !wrong.is_empty() {
        return Verdict::Wrong(wrong);
    }
    if reasons.is_empty() {
        Verdict::Equal(pair.equal)
    } else {
        Verdict::Explained(pair.equal, reasons)
    }
}

/// What `tenure validate` finds in a file that has a heap dump.
fn invalid(name: &str, bytes: &[u8]) -> Option<String> {
    let is_binary = bytes.starts_with(b"JAVA PROFILE") && !hprof_text::is_text(bytes);
    let map = is_binary.then(|| hprof::map_file(bytes, |_| {}).ok())??;
    if map.segments.is_empty() {
        return None;
    }
    let file = tempfile::NamedTempFile::new().expect("temporary file");
    std::fs::write(file.path(), bytes).expect("written");
    let mut validate = std::process::Command::new(testkit::built::tenure());
    validate.args(["validate", "--no-index"]).arg(file.path());
    let ran = validate.output().expect("tenure runs");
    let printed = String::from_utf8_lossy(&ran.stdout).into_owned();
    let faults = String::from_utf8_lossy(&ran.stderr).into_owned();
    (ran.status.code() != Some(0)).then(|| format!("validate {name}: {printed}{faults}"))
}

/// The recorded programs, compiled; JDK 8's classes run everywhere. `Cpu` computes so much as took a quarter of
/// the time where the runs were recorded.
fn compiled(compiler: &Jdk) -> Option<tempfile::TempDir> {
    let classes = tempfile::tempdir().expect("temporary folder");
    let sources = folder()?.join("src");
    let sources = std::fs::read_dir(sources).expect("sources").flatten();
    let mut sources: Vec<_> = sources.map(|source| source.path()).collect();
    // A round took about so many milliseconds there.
    const ROUND: u32 = 2;
    let rounds = ROUND * live::SHARE_OF_TIME;
    let computing = sources
        .iter_mut()
        .find(|source| source.ends_with("Cpu.java"));
    let computing = computing.expect("Cpu.java");
    let by_time = "System.currentTimeMillis() < end";
    let source = std::fs::read_to_string(&*computing).expect("a source");
    assert!(source.contains(by_time), "{source}");
    *computing = classes.path().join("Cpu.java");
    let source = source.replace(by_time, &format!("rounds < ms / {rounds}"));
    std::fs::write(&*computing, source).expect("written");
    let compiled = compiler.compile_all(&sources, 8, classes.path());
    compiled.expect("compiles");
    Some(classes)
}

/// Does `work` for each case, several at once.
fn each<T: Send>(cases: Vec<Case>, work: impl Fn(&Case) -> T + Sync) -> Vec<(Case, T)> {
    let queue = Mutex::new(cases);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let case = queue.lock().expect("queue").pop();
                    let Some(case) = case else { return };
                    let result = work(&case);
                    done.lock().expect("results").push((case, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("results");
    done.sort_by(|a, b| a.0.name.cmp(&b.0.name));
    done
}

/// Prints the result of each case; the wrong ones are returned.
#[expect(clippy::print_stdout, reason = "no case is left out silently")]
fn say(jdk: &Jdk, verdicts: Vec<(Case, Verdict)>, mut counts: BTreeMap<&str, u64>) -> Vec<String> {
    let mut failed = Vec::new();
    for (Case { name, .. }, verdict) in verdicts {
        let word = match verdict {
            Verdict::Equal(facts) => {
                println!("equal      {name} ({facts} facts)");
                "equal"
            }
            Verdict::Explained(facts, reasons) => {
                println!("explained  {name} ({facts} facts): {}", reasons.join("; "));
                "explained"
            }
            Verdict::Wrong(differences) => {
                let list = differences.join("\n    ");
                failed.push(format!("{name} on JDK {}:\n    {list}", jdk.full_version));
                "wrong"
            }
        };
        *counts.entry(word).or_default() += 1;
    }
    println!("JDK {} {}: {counts:?}", jdk.full_version, jdk.vendor);
    failed
}

/// One case alone, by a piece of its name: `TENURE_CASE=net-`.
fn chosen() -> Vec<Case> {
    let only = std::env::var("TENURE_CASE").unwrap_or_default();
    let all = cases().into_iter();
    all.filter(|case| case.name.contains(&only)).collect()
}

#[test]
#[expect(clippy::print_stdout, reason = "no case is left out silently")]
fn every_recorded_run_comes_out_the_same() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(compiler) = newest_compiler() else {
        return;
    };
    let Some(classes) = compiled(&compiler) else {
        return;
    };
    let mut failed = Vec::new();
    for jdk in lab.some_jdks() {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        let mut queue = chosen();
        queue.retain(|case| {
            let why = NOT_APPLICABLE.iter().find(|(name, _)| *name == case.name);
            if let Some((_, why)) = why {
                println!("n/a        {}: {why}", case.name);
                *counts.entry("not applicable").or_default() += 1;
            } else if !is_matrix() && LONG.contains(&case.name.as_str()) {
                *counts.entry("left to ./x matrix").or_default() += 1;
                return false;
            }
            why.is_none()
        });
        let verdicts = each(queue, |case| check(case, jdk, &lab.agent, classes.path()));
        failed.extend(say(jdk, verdicts, counts));
    }
    assert!(failed.is_empty(), "\n{}\n", failed.join("\n"));
}

/// JDK 8 has the original: both run the same programs on the same VM, one after the other.
#[test]
fn the_original_beside_us_says_the_same() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let has_original = |jdk: &&Jdk| jdk.home.join("jre/lib/amd64/libhprof.so").is_file();
    let Some(jdk) = lab.jdks.iter().find(has_original) else {
        return testkit::skip(
            "the original beside us",
            testkit::Need::Jdk8,
            "no JDK 8 with its agent",
        );
    };
    let Some(compiler) = newest_compiler() else {
        return;
    };
    let Some(classes) = compiled(&compiler) else {
        return;
    };
    let mut queue = chosen();
    // Signals and sockets have their moments; the recorded runs have those.
    queue.retain(|case| case.signals.is_empty() && case.peer().is_empty());
    queue.retain(|case| is_matrix() || !LONG.contains(&case.name.as_str()));
    let verdicts = each(queue, |case| {
        let original = live::run(case, jdk, None, classes.path());
        let ours = live::run(case, jdk, Some(&lab.agent), classes.path());
        verdict(case, &original, &ours)
    });
    let failed = say(jdk, verdicts, BTreeMap::new());
    assert!(failed.is_empty(), "\n{}\n", failed.join("\n"));
}
