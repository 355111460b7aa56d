//! Profiles of real runs of the original agent, in both forms.

use profile::{Metric, Profile};
use std::path::PathBuf;
use testkit::corpus::unpacked;

fn cases() -> Option<PathBuf> {
    testkit::oracle::folder().map(|oracle| oracle.join("cases"))
}

fn profile(case: &str) -> Option<Profile> {
    let folder = cases()?.join(case);
    let files = std::fs::read_dir(folder).expect("case").flatten();
    let mut read = files.filter_map(|file| profile::read(&unpacked(&file.path())).ok());
    let (profile, diagnostics) = read.next().expect("a profile");
    assert!(
        diagnostics.is_empty(),
        "{case}: {:?}",
        diagnostics.iter().next()
    );
    Some(profile)
}

fn top(profile: &Profile, metric: Metric) -> (String, u64) {
    let top = profile
        .stacks(metric)
        .max_by_key(|stack| stack.value)
        .expect("a stack");
    (profile.path(&top).join(";"), top.value)
}

#[test]
fn every_profile_of_the_oracle_reads_without_a_finding() {
    let Some(cases) = cases() else { return };
    let mut read = 0;
    for case in std::fs::read_dir(cases).expect("cases").flatten() {
        for file in std::fs::read_dir(case.path()).expect("case").flatten() {
            if let Ok((profile, diagnostics)) = profile::read(&unpacked(&file.path())) {
                // The agent died in this run, in the middle of a record.
                let cut = case.file_name() == "net-dump-without-heapdump";
                let damage = diagnostics.any_damage() && !cut;
                assert!(
                    !damage,
                    "{:?}: {:?}",
                    file.path(),
                    diagnostics.iter().next()
                );
                for metric in profile.metrics() {
                    profile
                        .stacks(metric)
                        .for_each(|stack| drop(profile.path(&stack)));
                }
                read += 1;
            }
        }
    }
    assert!(read > 80, "only {read}");
}

#[test]
fn samples_have_the_original_totals_in_both_forms() {
    let Some(text) = profile("cpu-samples-txt") else {
        return;
    };
    assert_eq!(text.samples.as_ref().map(|table| table.total()), Some(176));
    assert_eq!(
        top(&text, Metric::Samples),
        ("Cpu.main;Cpu.mid".into(), 145)
    );
    let Some(binary) = profile("cpu-samples-bin") else {
        return;
    };
    assert_eq!(
        binary.samples.as_ref().map(|table| table.total()),
        Some(106)
    );
    assert_eq!(
        top(&binary, Metric::Samples),
        ("Cpu.main;Cpu.mid".into(), 94)
    );
    assert_eq!(binary.threads.len(), 2);
}

#[test]
fn sites_have_the_original_counts() {
    let Some(profile) = profile("heap-sites-cutoff0") else {
        return;
    };
    let sum = |class: &str, metric| -> u64 {
        let stacks = profile.stacks(metric);
        let of_class = |stack: &profile::WeightedStack| {
            stack.class.is_some_and(|id| profile.names.get(id) == class)
        };
        stacks.filter(of_class).map(|stack| stack.value).sum()
    };
    assert_eq!(sum("Alloc$Sub", Metric::AllocatedObjects), 101); // 100 and the class itself
    assert!(sum("Alloc$Node", Metric::LiveObjects) >= 1000);
    let Some(all) = &profile.sites else {
        panic!("no sites")
    };
    let ranked = all.rank(profile::SiteOrder::LiveBytes, 0.0);
    assert_eq!(ranked.len(), all.sites().len());
    assert!(ranked.windows(2).all(|pair| pair[0].share >= pair[1].share));
}

#[test]
fn call_pairs_show_as_calls() {
    let Some(profile) = profile("cpu-old") else {
        return;
    };
    let (path, calls) = top(&profile, Metric::Calls);
    assert_eq!((&*path, calls), ("Cpu.fib;Cpu.fib", 9280));
}

#[test]
fn two_dumps_of_one_run_add_their_samples() {
    let Some(profile) = profile("quit-cpu-samples") else {
        return;
    };
    let total = profile
        .samples
        .as_ref()
        .map(|table| table.total())
        .unwrap_or(0);
    let stacks: u64 = profile
        .stacks(Metric::Samples)
        .map(|stack| stack.value)
        .sum();
    assert!(total > 0 && total >= stacks);
}

#[test]
fn merging_a_profile_with_itself_doubles_every_number() {
    for case in [
        "cpu-samples-txt",
        "heap-sites-txt",
        "cpu-times-txt",
        "cpu-old",
    ] {
        let Some(once) = profile(case) else { return };
        let mut twice = once.clone();
        twice.merge(&once);
        for metric in once.metrics() {
            let sum = |profile: &Profile| -> u64 {
                profile.stacks(metric).map(|stack| stack.value).sum()
            };
            assert_eq!(sum(&twice), 2 * sum(&once), "{case} {metric:?}");
            assert!(top(&twice, metric).1 >= top(&once, metric).1, "{case}");
        }
        assert_eq!(twice.names.len(), once.names.len(), "{case}");
        assert_eq!(
            twice.stacks.method_count(),
            once.stacks.method_count(),
            "{case}"
        );
        let pairs = |profile: &Profile| profile.pairs.as_ref().map(Vec::len);
        assert_eq!(pairs(&twice), pairs(&once), "{case}");
    }
}

/// Two runs give the same serials to different threads.
#[test]
fn threads_of_merged_profiles_keep_their_names() {
    let run = |first: &str, second: &str| {
        let text = format!(
            "THREAD START (obj=1, id = 200001, name=\"{first}\", group=\"main\")\n\
             THREAD START (obj=2, id = 200002, name=\"{second}\", group=\"main\")\n\
             WAITED: MONITOR Ljava/lang/Object;, time_waited=5, thread 200002\n\
             WAITED: MONITOR Ljava/lang/Object;, time_waited=5, thread 200003\n\
             TRACE 300001:\n\tA.b(A.java:3)\n\
             MONITOR DUMP BEGIN\n    THREAD 200001, trace 300001, status: R\n    \
             MONITOR Ljava/lang/Object;\n\towner: thread 200001, entry count: 1\n\
             \twaiting to enter: thread 200002\nMONITOR DUMP END\n"
        );
        profile::read(text.as_bytes()).expect("a profile").0
    };
    let mut both = run("alpha", "beta");
    both.merge(&run("gamma", "delta"));
    both.merge(&run("epsilon", "zeta"));
    let name = |serial: u32| {
        let thread = both.thread(serial);
        thread.map_or("unknown", |thread| both.names.get(thread.name))
    };
    let waits: Vec<_> = both.waits.iter().map(|wait| name(wait.thread)).collect();
    assert_eq!(
        waits,
        ["beta", "unknown", "delta", "unknown", "zeta", "unknown"]
    );
    for (dump, [first, second]) in
        both.monitor_dumps
            .iter()
            .zip([["alpha", "beta"], ["gamma", "delta"], ["epsilon", "zeta"]])
    {
        assert_eq!(name(dump.threads[0].thread), first);
        let monitor = &dump.monitors[0];
        assert_eq!(monitor.owner.map(|owner| name(owner.0)), Some(first));
        assert_eq!(name(monitor.waiting_to_enter[0]), second);
    }
}

/// The largest numbers that the text form can have are limited, not wrong.
#[test]
fn numbers_without_room_are_limited() {
    let most = u64::MAX;
    let row = |name: &str| {
        format!(
            "   1 100.00% 100.00% {most} 300001 A.b\n   2 1e300% 100.00% {most} 300001 {name}\n"
        )
    };
    let text = format!(
        "TRACE 300001:\n\tA.b(A.java:3)\n\
         CPU SAMPLES BEGIN (total = {least}) now\n{}CPU SAMPLES END\n\
         CPU TIME (ms) BEGIN (total = {largest}) now\n{}CPU TIME (ms) END\n\
         WALL RUNNING (ms) BEGIN (total = {largest}) now\n{}WALL RUNNING (ms) END\n\
         MONITOR TIME BEGIN (total = {most} ms) now\n{}MONITOR TIME END\n\
         count callee caller time\n{most} A.b() A.c() {largest}\n{most} A.b() A.c() {largest}\n",
        row("A.b"),
        row("A.b"),
        row("A.b"),
        row("LA; (Java)").replace("A.b", "LA; (Java)"),
        least = i64::MIN,
        largest = i64::MAX,
    );
    let (once, _) = profile::read(text.as_bytes()).expect("a profile");
    let mut twice = once.clone();
    twice.merge(&once);
    for profile in [&once, &twice] {
        let samples = profile.samples.as_ref().expect("samples");
        assert_eq!((samples.total(), samples.rows()[0].1), (most, most));
        let costs = profile.costs.as_ref().expect("calls");
        assert_eq!(costs.rows()[0].1.calls, most);
        assert_eq!(costs.total_ns(), i64::MAX);
        assert!(!costs.rank(0.0).is_empty() && !samples.rank(0.0).is_empty());
        let contention = profile.contention.as_ref().expect("contention");
        assert_eq!(contention.rows()[0].count, most);
        for metric in profile.metrics() {
            assert!(top(profile, metric).1 > 0, "{metric:?}");
        }
    }
}
