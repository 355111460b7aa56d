//! Agents written in C to `jvmpi.h`, on real VMs.

mod common;

use std::collections::HashMap;

use common::{collectors, lab};

/// Events that HotSpot has nothing for, and dumps, which cannot be enabled.
fn is_declared_missing(event: u32) -> bool {
    matches!(event, 6 | 9..=32 | 36 | 37 | 45 | 49 | 50 | 59)
}

/// What the agent that does everything must have seen.
fn check_everything(what: &str, report: &str) {
    let faults: Vec<&str> = report.lines().filter(|l| l.starts_with("FAULT")).collect();
    assert!(faults.is_empty(), "{what}: {faults:#?}");
    assert!(report.ends_with("faults 0\nend\n"), "{what}: {report}");
    let mut rows = HashMap::new();
    for line in report.lines() {
        if let ["event", event, answer, seen] = line.split(' ').collect::<Vec<_>>()[..] {
            let number = |text: &str| text.parse::<i64>().expect("a number");
            rows.insert(number(event) as u32, (number(answer), number(seen)));
        }
    }
    assert_eq!(rows.len(), 61, "{what}");
    for (event, (answer, seen)) in rows {
        if is_declared_missing(event) {
            assert_eq!(answer, 1, "{what}: event {event}");
        } else {
            assert_eq!(answer, 0, "{what}: event {event}");
            // Whether code of an unloaded class is thrown away in time is up to the VM.
            let is_up_to_the_vm = event == 8;
            assert!(
                seen > 0 || is_up_to_the_vm,
                "{what}: event {event} never came"
            );
        }
    }
}

#[test]
fn an_agent_that_does_everything_sees_every_event() {
    let Some(lab) = lab() else { return };
    let mut ran = 0;
    for jdk in lab.jdks_to_test() {
        for collector in collectors() {
            let flag = format!("-XX:+Use{collector}GC");
            if !lab.starts(jdk, &flag) {
                continue; // not built into this runtime
            }
            let what = format!("{} {collector}", jdk.full_version);
            let run = lab.run(jdk, "everything", &[&flag], &["Everything"]);
            assert!(
                run.stdout.ends_with("done\n"),
                "{what}: {}{}",
                run.stdout,
                run.stderr
            );
            check_everything(&what, &run.report);
            ran += 1;
        }
    }
    assert!(ran > 0, "no runtime started");
}

#[test]
fn the_historic_command_line_loads_an_agent() {
    let Some(lab) = lab() else { return };
    for jdk in lab.jdks_to_test() {
        let run = lab.run_historic(jdk, "sites", &["Known"]);
        assert_eq!(
            run.stdout, "kept 1532\n",
            "{}: {}",
            jdk.full_version, run.stderr
        );
        assert!(run.report.ends_with("faults 0\nend\n"), "{}", run.report);
        let what = format!("{} -Xrun", jdk.full_version);
        let run = lab.run_historic(jdk, "everything", &["Everything"]);
        assert!(run.stdout.ends_with("done\n"), "{what}: {}", run.stderr);
        check_everything(&what, &run.report);
    }
}

/// Allocated objects and bytes by class, of the agent's report.
fn sites(report: &str) -> HashMap<String, [u64; 2]> {
    let mut rows: HashMap<String, [u64; 2]> = HashMap::new();
    for line in report.lines() {
        if let ["site", class, objects, bytes, ..] = line.split(' ').collect::<Vec<_>>()[..] {
            let row = rows.entry(class.to_owned()).or_default();
            row[0] += objects.parse::<u64>().expect("a number");
            row[1] += bytes.parse::<u64>().expect("a number");
        }
    }
    rows
}

/// The same of SITES of `libhprof.so`.
fn sites_of_hprof(profile: &str) -> HashMap<String, [u64; 2]> {
    let mut rows: HashMap<String, [u64; 2]> = HashMap::new();
    let table = profile.split("SITES BEGIN").nth(1).unwrap_or_default();
    for line in table.lines() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if let [_, _, _, _, _, bytes, objects, _, class] = fields[..]
            && let (Ok(bytes), Ok(objects)) = (bytes.parse::<u64>(), objects.parse::<u64>())
        {
            let row = rows.entry(class.to_owned()).or_default();
            row[0] += objects;
            row[1] += bytes;
        }
    }
    rows
}

#[test]
fn allocations_by_site_agree_with_our_own_agent() {
    let Some(lab) = lab() else { return };
    for jdk in lab.jdks_to_test() {
        let run = lab.run(jdk, "sites", &[], &["Load", "40000"]);
        assert_eq!(run.stdout, "40000\n", "{}", run.stderr);
        assert!(run.report.ends_with("faults 0\nend\n"), "{}", run.report);
        let profile = lab.profile(jdk, &["Load", "40000"]);
        let (ours, theirs) = (sites_of_hprof(&profile), sites(&run.report));
        // What the program itself makes; start-up is seen from different moments on.
        let mut sums = [[0_u64; 2]; 2];
        for class in [
            "Load$Node",
            "Load$Node[]",
            "int[]",
            "java.lang.StringBuilder",
        ] {
            let both =
                [ours.get(class), theirs.get(class)].map(|row| row.copied().unwrap_or_default());
            for (sum, row) in sums.iter_mut().zip(both) {
                *sum = [sum[0] + row[0], sum[1] + row[1]];
            }
            let near = |a: u64, b: u64| a.abs_diff(b) * 100 <= a.max(b);
            assert!(
                both[0][0] >= 40_000
                    && near(both[0][0], both[1][0])
                    && near(both[0][1], both[1][1]),
                "{class} on {}: {both:?}",
                jdk.full_version
            );
        }
        let total = sums.map(|sum| sum[1]);
        assert!(
            total[0] > 4 << 20 && total[0].abs_diff(total[1]) * 100 <= total[0],
            "{total:?}"
        );
    }
}

#[test]
fn a_wrong_command_line_ends_the_vm_with_one_line() {
    let Some(lab) = lab() else { return };
    let Some(jdk) = lab.jdks_to_test().next() else {
        return;
    };
    let check = |text: &str, expected: &str| {
        let printed = lab.refused(jdk, text);
        assert!(printed.contains(expected), "{text}: {printed}");
    };
    check(
        "/nowhere/libagent.so:x",
        "JVMPI: the agent cannot be loaded",
    );
    check(":speed=high:x", "JVMPI: speed=high is not one of");
}
