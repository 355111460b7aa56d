//! Counts of a program that can be counted by hand, on every runtime here.

use std::collections::HashMap;

use crate::common::stage::frames_of;

/// Rows of SITES by class and innermost frame: (live objects, allocated objects).
fn sites(profile: &str) -> HashMap<(String, String), (u64, u64)> {
    let mut top = HashMap::new();
    let mut lines = profile.lines().peekable();
    while let Some(line) = lines.next() {
        if let Some(serial) = line
            .strip_prefix("TRACE ")
            .and_then(|l| l.strip_suffix(':'))
        {
            // Constructors come first in a trace; the method that says `new` is wanted.
            let mut frame = String::new();
            while let Some(line) = lines.next_if(|l| l.starts_with('\t')) {
                if frame.is_empty() || frame.contains("<init>") {
                    frame = line.trim().split('(').next().unwrap_or_default().to_owned();
                }
            }
            top.insert(serial.to_owned(), frame);
        }
    }
    let mut rows: HashMap<(String, String), (u64, u64)> = HashMap::new();
    let table = profile.split("SITES BEGIN").nth(1).unwrap_or_default();
    for line in table.lines().take_while(|line| *line != "SITES END") {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if let [_, _, _, _, live, _, allocated, trace, class] = fields[..]
            && let (Ok(live), Ok(allocated)) = (live.parse::<u64>(), allocated.parse::<u64>())
        {
            let frame = top.get(trace).cloned().unwrap_or_default();
            let sum = rows.entry((class.to_owned(), frame)).or_default();
            *sum = (sum.0 + live, sum.1 + allocated);
        }
    }
    rows
}

#[test]
fn every_allocation_is_counted_once_at_its_site() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let options = ["heap=sites,cutoff=0", "heap=sites,stacks=sampled,cutoff=0"];
    for (jdk, options) in lab
        .jdks
        .iter()
        .flat_map(|jdk| options.map(|one| (jdk, one)))
    {
        let ran = lab.run(jdk, Some(options), &[], &["Known"]);
        assert_eq!(ran.stdout(), "kept 1532\n", "{jdk:?} {}", ran.stderr());
        let rows = sites(&ran.profile());
        let check = |class: &str, method: &str, live, allocated| {
            let row = rows.get(&(class.to_owned(), method.to_owned())).copied();
            assert_eq!(
                row,
                Some((live, allocated)),
                "{class} in {method} on {}",
                jdk.full_version
            );
        };
        check("Known$Node", "Known.nodes", 1000, 1000);
        check("Known$Node", "Known.garbage", 0, 20000);
        check("Known$Node", "Known$Node.copy", 200, 200);
        check("byte[]", "Known.arrays", 64, 64);
        check("long[]", "Known.arrays", 64, 64);
        check("java.lang.Object[]", "Known.arrays", 64, 64);
        check("int[][]", "Known.nested", 10, 10);
        check("int[]", "Known.nested", 30, 30);
        // The JIT has code of its own for this method; the JDK itself calls it rarely.
        let copies = rows.get(&(
            "java.lang.Object[]".to_owned(),
            "java.util.Arrays.copyOf".to_owned(),
        ));
        let copies = copies.map_or(0, |row| row.1);
        assert!(
            (30..60).contains(&copies),
            "{copies} copies on {}",
            jdk.full_version
        );
        let reflected = rows
            .iter()
            .find(|((class, _), row)| class == "double[]" && row.1 == 100);
        assert!(
            reflected.is_some(),
            "Array.newInstance on {}",
            jdk.full_version
        );
    }
}

/// The original cuts SITES by the share of live bytes.
#[test]
fn sites_of_garbage_alone_are_in_every_profile_but_the_originals_which_says_what_it_lacks() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        for options in [
            "heap=sites",
            "heap=sites,modern=y",
            "heap=sites,stacks=sampled",
        ] {
            let ran = lab.run(jdk, Some(options), &[], &["Known"]);
            assert_eq!(ran.stdout(), "kept 1532\n", "{jdk:?} {}", ran.stderr());
            let profile = ran.profile();
            let rows = sites(&profile);
            let garbage = rows.get(&("Known$Node".to_owned(), "Known.garbage".to_owned()));
            let is_original = options == "heap=sites";
            let expected = (!is_original).then_some((0, 20_000));
            let what = format!("{options} on {}\n{profile}", jdk.full_version);
            assert_eq!(garbage.copied(), expected, "{what}");
            let note = "NOTE: the sites that are left out have ";
            assert_eq!(profile.contains(note), is_original, "{what}");
        }
    }
}

/// The thread that allocates alone is compared first, which others must notice.
#[test]
fn threads_that_allocate_in_turn_are_counted_each_with_its_own_stacks() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Turns.java", 8) else {
        return;
    };
    for jdk in &lab.jdks {
        let options = Some("heap=sites,cutoff=0,depth=4");
        let ran = lab.run_in(jdk, classes.path(), options, &[], &["Turns"]);
        assert_eq!(ran.stdout(), "made\n", "{jdk:?} {}", ran.stderr());
        let profile = ran.profile();
        let table = profile.split("SITES BEGIN").nth(1).unwrap_or_default();
        let mut found: HashMap<(&str, &str), u64> = HashMap::new();
        for row in table.lines().take_while(|line| *line != "SITES END") {
            let fields: Vec<&str> = row.split_whitespace().collect();
            let [.., allocated, trace, class] = fields[..] else {
                continue;
            };
            let frames = frames_of(&profile, trace);
            let made = frames
                .iter()
                .position(|line| line.starts_with("Turns.make("));
            let caller = made.and_then(|at| frames.get(at + 1)?.split('(').next());
            if let (Some(caller), Ok(allocated)) = (caller, allocated.parse::<u64>()) {
                *found.entry((class, caller)).or_default() += allocated;
            }
        }
        let roles = [
            ("Turns.inTurn", 20 * 700),
            ("Turns.between", 30 * 900),
            ("Turns.early", 10 * 3_000),
            ("Turns.late", 10 * 5_000),
            ("Turns.together", 4 * 40_000),
        ];
        let expected = roles.iter().flat_map(|(role, count)| {
            [("Turns$Made", *role), ("short[]", *role)].map(|key| (key, *count))
        });
        assert_eq!(found, expected.collect(), "{}", jdk.full_version);
    }
}

#[test]
fn every_call_is_counted_with_its_caller() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in &lab.jdks {
        let ran = lab.run(jdk, Some("cpu=old"), &[], &["Known", "calls"]);
        assert_eq!(ran.stdout(), "done\n", "{jdk:?} {}", ran.stderr());
        let profile = ran.profile();
        let count = |callee: &str, caller: &str| -> u64 {
            let rows = profile.lines().filter_map(|line| {
                let [count, to, from, _] = line.split(' ').collect::<Vec<_>>()[..] else {
                    return None;
                };
                (to.starts_with(callee) && from.starts_with(caller))
                    .then(|| count.parse::<u64>().ok())?
            });
            rows.sum()
        };
        let check = |callee, caller, expected| {
            assert_eq!(
                count(callee, caller),
                expected,
                "{callee} from {caller} on {}",
                jdk.full_version
            );
        };
        check("Known.fib(", "Known.calls(", 20);
        // fib(10) makes 176 calls below itself; fib(3) 4, seven times; fib(5) 14, four times.
        check("Known.fib(", "Known.fib(", 20 * 176 + 7 * 4 + 4 * 14);
        check("Known.fib(", "Known.lambda$", 7 + 4);
        check("Known.catcher(", "Known.calls(", 10);
        check("Known.thrower(", "Known.catcher(", 10);
        check("Known.thrower(", "Known.thrower(", 40);
        // The original was blind to methods of interfaces.
        check("Known$Shape.sides(", "Known.calls(", 300_000);
        check("Known$Shape.unit(", "Known.calls(", 300_000);
        check("Known.twice(", "Known.calls(", 10_000_000);
        check("Known.once(", "Known.twice(", 20_000_000);
    }
}

/// Different stacks are different sites, however many there are and wherever they differ.
#[test]
fn stacks_that_differ_only_at_their_outer_end_are_different_sites() {
    const STACKS: usize = 3000;
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(compiler) = testkit::jvm::newest_compiler() else {
        return;
    };
    let folder = tempfile::tempdir().expect("temporary folder");
    let mut source = String::from(
        "public class Many { static class Made {}\nstatic void c0() { new Made(); }\n",
    );
    for at in 1..40 {
        source += &format!("static void c{at}() {{ c{}(); }}\n", at - 1);
    }
    for stack in 0..STACKS {
        source +=
            &format!("static void s{stack}(int n) {{ for (; n > 0; n--) {{ c8(); c39(); }} }}\n");
    }
    // One method may hold no more than 64 KiB.
    for (part, first) in (0..STACKS).step_by(1000).enumerate() {
        source += &format!("static void all{part}() {{\n");
        for stack in first..first + 1000 {
            source += &format!("s{stack}({});\n", stack % 5 + 1);
        }
        source += "}\n";
    }
    source += "public static void main(String[] a) { all0(); all1(); all2(); System.out.println(\"done\"); } }\n";
    let file = folder.path().join("Many.java");
    std::fs::write(&file, source).expect("written");
    compiler.compile(&file, 8, folder.path()).expect("compiles");
    for jdk in lab.some_jdks() {
        // The constructor, nine calls, and the method in which the stacks differ; and 41.
        for (depth, expected) in [(11, STACKS + 1), (42, 2 * STACKS), (10, 1)] {
            let options = format!("heap=sites,cutoff=0,depth={depth}");
            let ran = lab.run_in(jdk, folder.path(), Some(&options), &[], &["Many"]);
            let what = format!("{options} on {}", jdk.full_version);
            assert_eq!(ran.stdout(), "done\n", "{what}: {}", ran.stderr());
            let profile = ran.profile();
            assert!(!profile.contains("one number with another"), "{what}");
            let table = profile.split("SITES BEGIN").nth(1).unwrap_or_default();
            let rows = table.lines().filter(|line| line.ends_with(" Many$Made"));
            let mut counts: Vec<usize> = rows
                .filter_map(|row| row.split_whitespace().nth(6)?.parse().ok())
                .collect();
            let all: usize = counts.iter().sum();
            assert_eq!(all, 2 * STACKS * 3, "{what}");
            assert_eq!(counts.len(), expected, "{what}");
            counts.sort_unstable();
            if depth == 42 {
                let each: Vec<usize> = (1..=5).flat_map(|n| vec![n; 2 * STACKS / 5]).collect();
                assert_eq!(counts, each, "{what}");
            }
        }
    }
}

/// Loaders, initializers and the linking of lambdas run in the midst of other code.
#[test]
fn what_the_vm_calls_by_itself_has_its_own_stack() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Upcalls.java", 8) else {
        return;
    };
    for jdk in &lab.jdks {
        for depth in [4, 30] {
            let options = format!("heap=sites,cutoff=0,depth={depth}");
            let ran = lab.run_in(jdk, classes.path(), Some(&options), &[], &["Upcalls"]);
            let what = format!("{options} on {}", jdk.full_version);
            assert_eq!(ran.stdout(), "done\n", "{what}: {}", ran.stderr());
            let profile = ran.profile();
            assert!(profile.contains("SITES END"), "{what}");
            assert!(!profile.contains("one number with another"), "{what}");
            let rows = profile.lines().filter(|row| row.ends_with(" Upcalls$Made"));
            let mut made: Vec<u64> = rows
                .filter_map(|row| row.split_whitespace().nth(6)?.parse().ok())
                .collect();
            made.sort_unstable();
            // One in each initializer; three in three calls, and as many that these hand on.
            assert_eq!(made.iter().sum::<u64>(), 25 + 6, "{what}");
            assert_eq!(made[made.len() - 2..], [3, 3], "{what}: {made:?}");
        }
    }
}

#[test]
fn threads_are_counted_whatever_they_say_their_id_is() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Ids.java", 8) else {
        return;
    };
    for jdk in &lab.jdks {
        for options in ["heap=sites,cutoff=0,depth=1", "cpu=old"] {
            let ran = lab.run_in(jdk, classes.path(), Some(options), &[], &["Ids"]);
            let what = format!("{options} on {}", jdk.full_version);
            assert_eq!(
                ran.stdout(),
                "made 4000 asked 0\n",
                "{what}: {}",
                ran.stderr()
            );
            let profile = ran.profile();
            let number = |at: usize, end: &str| -> u64 {
                let rows = profile.lines().filter(|line| line.contains(end));
                rows.filter_map(|row| row.split_whitespace().nth(at)?.parse::<u64>().ok())
                    .sum()
            };
            let found = if options.starts_with("heap") {
                number(6, " Ids$Made")
            } else {
                number(0, " Ids$Liar.work()V Ids$Liar.run()V")
            };
            assert_eq!(found, 4000, "{what}");
        }
    }
}

/// Own time and time with callees of each method, in nanoseconds, from CPU TIMES records.
fn times(bytes: &[u8]) -> HashMap<String, [u64; 3]> {
    use hprof::Record;
    let ids = hprof::Header::parse(bytes).expect("a header").id_size;
    let (mut names, mut frames, mut traces) = (HashMap::new(), HashMap::new(), HashMap::new());
    let mut times: HashMap<String, [u64; 3]> = HashMap::new();
    let map = hprof::map_file(bytes, |record| match record.decode(ids) {
        Some(Record::Utf8 { id, bytes }) => {
            names.insert(id.0, String::from_utf8_lossy(bytes).into_owned());
        }
        Some(Record::Frame(frame)) => {
            frames.insert(frame.id.0, names[&frame.method.0].clone());
        }
        Some(Record::Trace {
            serial, frames: of, ..
        }) => {
            traces.insert(serial.0, of.first().map(|id| frames[&id.0].clone()));
        }
        _ if record.tag == private_records::PrivateTag::CpuTimes as u8 => {
            for row in record.body[8..].chunks_exact(28) {
                let word =
                    |at: usize| u64::from_be_bytes(row[at..at + 8].try_into().expect("8 bytes"));
                let trace = u32::from_be_bytes(row[..4].try_into().expect("4 bytes"));
                if let Some(Some(method)) = traces.get(&trace) {
                    let sum = times.entry(method.clone()).or_default();
                    *sum = [sum[0] + word(4), sum[1] + word(12), sum[2] + word(20)];
                }
            }
        }
        _ => {}
    });
    assert!(!map.expect("a profile").diagnostics.any_damage());
    times
}

/// Checks the times of the methods of `Durations`: at least what they spin for, at most what the
/// program's own clock shows around all of their calls.
fn check_times(ran: &crate::common::Ran, what: &str, is_cpu_time: bool) {
    let bytes = std::fs::read(ran.folder.path().join("out")).expect("a profile");
    let times = times(&bytes);
    let printed = ran.stdout();
    let expected = [(20, 800_000), (100_000, 200_000_000), (40_000, 439_600_000)];
    assert_eq!(printed.lines().count(), expected.len(), "{what}: {printed}");
    for (line, (calls, nanos)) in printed.lines().zip(expected) {
        let words: Vec<&str> = line.split(' ').collect();
        let [counted, own, all] = times[words[0]];
        assert_eq!(counted, calls, "{what}: {line}");
        let around: u64 = words[1 + usize::from(is_cpu_time)].parse().expect("time");
        // They spin by the clock: while others have the processor they take no CPU time, and a
        // clock that cannot tick does not see it.
        let least = if is_cpu_time {
            nanos / 10
        } else {
            nanos / 5 * 4
        };
        // Of short stretches a random choice is measured, so a time is an estimate.
        let range = least..=around / 10 * 13 + 1_000_000;
        let printed = format!("{what}: {line}: own {own}, with callees {all}, {range:?}");
        assert!(range.contains(&own) && range.contains(&all), "{printed}");
    }
}

#[test]
fn short_methods_have_the_time_they_took() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Durations.java", 8) else {
        return;
    };
    for jdk in &lab.jdks {
        for options in ["cpu=times", "cpu=times,msa=y"] {
            let options = format!("{options},cutoff=0,format=b,modern=y,depth=1,file=out");
            let what = format!("{options} on {}", jdk.full_version);
            let ran = lab.run_in(jdk, classes.path(), Some(&options), &[], &["Durations"]);
            check_times(&ran, &what, options.contains("msa"));
        }
    }
}
