//! Profiles of real runs of the original agent, in both forms.

use flate2::read::GzDecoder;
use profile::{Metric, Profile};
use std::io::Read;
use std::path::{Path, PathBuf};

fn cases() -> Option<PathBuf> {
    let shared = std::env::var_os("TENURE_SHARED").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let cases = shared.join("oracle/cases");
    if cases.is_dir() {
        return Some(cases);
    }
    testkit::skip(
        "recorded runs",
        testkit::Need::Shared,
        &format!("no {}", cases.display()),
    );
    None
}

fn unpacked(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).expect("file");
    if path.extension().is_none_or(|ending| ending != "gz") {
        return bytes;
    }
    let mut plain = Vec::new();
    GzDecoder::new(&bytes[..])
        .read_to_end(&mut plain)
        .expect("gzip");
    plain
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
