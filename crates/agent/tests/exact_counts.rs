//! Counts of a program that can be counted by hand, on every runtime here.

mod common;

use std::collections::HashMap;

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
    for line in table.lines() {
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
    let Some(lab) = common::lab() else { return };
    for jdk in &lab.jdks {
        let ran = lab.run(jdk, Some("heap=sites,cutoff=0"), &[], &["Known"]);
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

#[test]
fn every_call_is_counted_with_its_caller() {
    let Some(lab) = common::lab() else { return };
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
        check("Known$Shape.sides(", "Known.calls(", 50);
        check("Known$Shape.unit(", "Known.calls(", 50);
    }
}
