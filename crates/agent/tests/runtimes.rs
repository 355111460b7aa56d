//! Collectors, virtual threads, verification, attaching: what differs by runtime.

use crate::common::Ran;

#[test]
fn virtual_threads_are_counted_and_none_is_lost() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.jdks.iter().filter(|jdk| jdk.version >= 21) {
        let Some(classes) = lab.compile("Virtual.java", 21) else {
            continue;
        };
        for mode in [
            "heap=sites,cutoff=0,depth=1",
            "heap=sites,alloc=1,thread=y,cutoff=0,depth=1",
            "cpu=times,cutoff=0",
            "cpu=samples",
        ] {
            let ran = lab.run_in(jdk, classes.path(), Some(mode), &[], &["Virtual"]);
            assert_eq!(ran.stdout(), "sum 402000\n", "{mode} {}", ran.stderr());
            if mode.starts_with("heap") {
                let row = |line: &&str| line.ends_with(" int[]") && line.contains(" 4000 ");
                assert!(
                    ran.profile().lines().any(|line| row(&line)),
                    "200 threads made 20 arrays each"
                );
            }
        }
    }
}

/// What a profile of `Known` says of its nodes: 21,000 made by constructors and 201 by `clone` or
/// for it, of which 1,200 are kept.
fn check_known(ran: &Ran, mode: &str, what: &str) {
    let profile = ran.profile();
    let sum = |end: &str, at: usize| -> u64 {
        let rows = profile.lines().filter(|row| row.ends_with(end));
        rows.filter_map(|row| row.split_whitespace().nth(at)?.parse::<u64>().ok())
            .sum()
    };
    match mode {
        "heap=sites,cutoff=0" => assert_eq!(sum(" Known$Node", 6), 21_201, "{what}"),
        "cpu=times,cutoff=0" => assert_eq!(sum(" Known$Node.<init>", 3), 21_001, "{what}"),
        "cpu=samples,interval=1" => assert!(profile.contains("CPU SAMPLES END"), "{what}"),
        "alloc=4k,cutoff=0" => {
            let table = profile
                .split("CLASS ESTIMATES BEGIN (interval = 4096 bytes")
                .nth(1);
            let mut rows = table.unwrap_or_default().lines();
            // Their numbers are those of the test of estimates.
            assert!(rows.any(|row| row.contains("..")), "{what}\n{profile}");
        }
        "heap=dump,format=b,file=out" => {
            let settings = heap_graph::Options {
                no_index: true,
                ..heap_graph::Options::default()
            };
            let file = ran.folder.path().join("out");
            let quiet = heap_graph::Control::quiet();
            let dump = heap_graph::quick_histogram(&file, &settings, &quiet).expect("a dump");
            let nodes = dump.rows.iter().filter(|row| row.name == "Known$Node");
            assert_eq!(nodes.map(|row| row.objects).sum::<u64>(), 1200, "{what}");
        }
        _ => {}
    }
}

#[test]
fn every_collector_runs_every_mode() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        for collector in ["Serial", "Parallel", "G1", "Z", "Shenandoah"] {
            let flag = format!("-XX:+Use{collector}GC");
            let flags = ["-XX:+UnlockExperimentalVMOptions", &flag];
            let plain = lab.run(jdk, None, &flags, &["Trouble", "lambda"]);
            if !plain.output.status.success() {
                let name = format!("{collector} on JDK {}", jdk.full_version);
                testkit::skip(&name, testkit::Need::JdkPart, "not built into this runtime");
                continue;
            }
            let each = [
                "heap=sites,cutoff=0",
                "heap=dump,format=b,file=out",
                "cpu=times,cutoff=0",
                "cpu=samples,interval=1",
                "alloc=4k,cutoff=0",
                "heap=sites,alloc=4k",
            ];
            let all: &[&str] = if crate::common::is_matrix() {
                crate::common::MODES
            } else {
                &[]
            };
            for mode in each.iter().chain(all) {
                // Small buffers: what the first one holds is not sampled, which can be all.
                let sampled = ["-XX:TLABSize=32k"];
                let more: &[&str] = if mode.starts_with("alloc") {
                    &sampled
                } else {
                    &[]
                };
                let ran = lab.run(jdk, Some(mode), &[&flags[..], more].concat(), &["Known"]);
                let what = format!("{collector} {mode} on {}", jdk.full_version);
                assert_eq!(ran.stdout(), "kept 1532\n", "{what} {}", ran.stderr());
                assert_eq!(ran.output.status.code(), Some(0), "{what}");
                if jdk.version >= 11 || !mode.contains("alloc") {
                    check_known(&ran, mode, &what);
                }
            }
        }
    }
}

#[test]
fn every_class_of_java_base_is_instrumented_under_the_verifier() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.jdks.iter().filter(|jdk| jdk.version >= 11) {
        let Some(classes) = lab.compile("LoadBase.java", 11) else {
            continue;
        };
        for mode in ["heap=sites", "cpu=times"] {
            let ran = lab.run_in(
                jdk,
                classes.path(),
                Some(mode),
                &["-Xverify:all"],
                &["LoadBase"],
            );
            assert!(
                ran.stdout().ends_with("failed 0\n"),
                "{mode} on {}: {}{}",
                jdk.full_version,
                ran.stdout(),
                ran.stderr()
            );
        }
    }
}

#[test]
fn a_running_vm_can_be_profiled() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.jdks.iter().filter(|jdk| jdk.version >= 11) {
        let Some(classes) = lab.compile("Attach.java", 11) else {
            continue;
        };
        let library = lab.agent.display().to_string();
        let flags = [
            "-Djdk.attach.allowAttachSelf=true",
            "-XX:+EnableDynamicAgentLoading",
            "--add-opens=java.base/java.lang=ALL-UNNAMED",
        ];
        for (options, expected) in [
            ("heap=sites,cutoff=0", " 20000 "),
            ("cpu=samples,interval=1", "CPU SAMPLES END"),
            ("cpu=old", "Known.nodes()V Known.main"),
        ] {
            let program = ["Attach", &library, options];
            let ran = lab.run_in(jdk, classes.path(), None, &flags, &program);
            assert_eq!(
                ran.stdout(),
                "kept 1532\n",
                "{options} on {}: {}",
                jdk.full_version,
                ran.stderr()
            );
            assert!(
                ran.profile().contains(expected),
                "{options} on {}: {}",
                jdk.full_version,
                ran.stderr()
            );
        }
    }
}
