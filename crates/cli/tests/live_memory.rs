//! Memory by category on the live page of real programs, and what of it could be saved.

use crate::watched::{Page, lab, run_live, run_live_of};
use jvm_observe::native_memory;
use serde_json::Value;
use std::process::Command;

const MIB: f64 = (1 << 20) as f64;
const CATEGORIES: [&str; 7] = ["java", "native", "code", "stack", "gc", "class", "other"];

/// A value of the last row of the timeline.
pub(crate) fn value(timeline: &Value, name: &str) -> Option<f64> {
    let metrics = timeline["metrics"].as_array()?;
    let at = metrics.iter().position(|metric| metric["name"] == name)?;
    timeline["rows"].as_array()?.last()?[at + 1].as_f64()
}

/// Categories of one kind, `resident` or `nmt`, as far as they are known, by the order above.
fn of(timeline: &Value, kind: &str) -> [f64; 7] {
    CATEGORIES.map(|name| value(timeline, &format!("{kind}_{name}_bytes")).unwrap_or(0.0))
}

/// The timeline once the categories sum to the resident memory of the same row, which they only do
/// when both were read while nothing changed.
fn settled(page: &Page) -> Value {
    page.until_counted("timeline", |timeline| {
        let resident = value(timeline, "resident_bytes").unwrap_or(0.0);
        let sum: f64 = of(timeline, "resident").iter().sum();
        sum > 0.0 && (sum - resident).abs() < 0.02 * resident
    })
}

#[test]
fn categories_sum_to_resident_memory_and_native_memory_is_native() {
    let Some(lab) = lab("memory by category") else {
        return;
    };
    for jdk in &lab.jdks {
        let folder = tempfile::tempdir().expect("a folder");
        let program = [
            "-XX:NativeMemoryTracking=summary",
            "-XX:MaxDirectMemorySize=200m",
            "Populations",
        ];
        let place = (lab.classes.path(), &program[..]);
        let (mut program, page) = run_live_of(lab, jdk, (folder.path(), &[]), place);
        // It has started, and waits.
        program.send("nothing");
        let before = settled(&page);
        let [java, native, code, stack, gc, class, _] = of(&before, "resident");
        let what = format!("{before} on {}", jdk.full_version);
        // The flag is -Xmx64m, a started program has touched some of it, and the VM's own libraries are larger than these.
        assert!((0.25 * MIB..=64.0 * MIB).contains(&java), "{what}");
        assert!(code > 8.0 * MIB && native > MIB, "{what}");
        assert!(class > 0.0 || jdk.version < 10, "{what}");
        assert!(gc > 0.0 || jdk.version < 9, "{what}");
        // Each thread has touched a page of its stack, none more than a megabyte or so.
        let threads = value(&before, "threads").expect("threads");
        assert!((threads * 4096.0..threads * MIB).contains(&stack), "{what}");

        // A buffer's memory is cleared, so all of its pages are resident.
        program.send("direct 100");
        let native_of = |timeline: &Value, kind: &str| of(timeline, kind)[1];
        page.until_counted("timeline", |now| {
            native_of(now, "resident") > native + 99.0 * MIB
                && native_of(now, "nmt") > native_of(&before, "nmt") + 99.0 * MIB
        });
        let after = settled(&page);
        let what = format!("{after} on {}", jdk.full_version);
        for kind in ["resident", "nmt"] {
            let (before, after) = (of(&before, kind), of(&after, kind));
            for (at, name) in CATEGORIES.iter().enumerate() {
                let grown = (after[at] - before[at]) / MIB;
                match *name {
                    "native" => assert!((99.0..115.0).contains(&grown), "{grown} {what}"),
                    _ => assert!(grown.abs() < 16.0, "{name}: {grown} {what}"),
                }
            }
        }
        program.child.kill().expect("killed");
    }
}

#[test]
fn what_the_vm_tracks_sums_to_its_own_total() {
    let Some(lab) = lab("native memory tracking") else {
        return;
    };
    for jdk in &lab.jdks {
        let flags = "-XX:+UnlockDiagnosticVMOptions -XX:NativeMemoryTracking=summary \
            -XX:+PrintNMTStatistics -version";
        let output = Command::new(jdk.tool("java"))
            .args(flags.split_whitespace())
            .output()
            .expect("java runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let total = text
            .lines()
            .find(|line| line.starts_with("Total:"))
            .and_then(|line| line.split_once("committed="))
            .and_then(|(_, rest)| {
                let kilobytes = rest.strip_suffix("KB");
                let number = kilobytes.unwrap_or(rest).parse::<u64>().ok()?;
                Some(number << (10 * u32::from(kilobytes.is_some())))
            });
        let what = format!("{text} on {}", jdk.full_version);
        let memory = native_memory::parse(&text).expect("a summary");
        let parts = [memory.java, memory.native, memory.code, memory.stack];
        let sum = parts.iter().sum::<u64>() + memory.gc + memory.class + memory.other;
        // Each of some thirty lines is rounded to a KB, and the VM works while it counts.
        let difference = sum.abs_diff(total.expect("a total"));
        assert!(difference < 256 << 10, "{difference} {what}");
    }
}

#[test]
fn what_grows_over_collections_is_named_with_its_stack() {
    let Some(lab) = lab("growth") else {
        return;
    };
    let Some(jdk) = lab.jdks.last() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (mut program, page) = run_live(lab, jdk, folder.path(), &["--record", "full"]);
    page.counting(&mut program);
    for _ in 0..5 {
        program.send("keep 2000");
        program.send("garbage 2000");
        program.send("other 600");
        page.collect();
        page.count();
    }
    let growth = page.json("growth");
    let rows = growth["rows"].as_array().expect("rows");
    let nodes = rows.iter().filter(|row| row["class"] == "Populations$Node");
    let nodes: Vec<&Value> = nodes.collect();
    assert!(!nodes.is_empty(), "{growth}");
    for row in nodes {
        let stack = row["stack"].to_string();
        assert!(
            stack.contains("Populations.keep("),
            "garbage does not grow: {row}"
        );
        assert!(row["collections"].as_u64() >= Some(3), "{row}");
        assert_eq!(row["last"], 10_000, "{row}");
    }
    program.child.kill().expect("killed");
}

#[test]
fn every_saving_is_reported_in_bytes_with_the_stack_that_allocates_it() {
    let Some(lab) = lab("savings") else {
        return;
    };
    let Some(jdk) = lab.jdks.last() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let (mut program, page) = run_live(lab, jdk, folder.path(), &["--record", "full"]);
    page.counting(&mut program);
    const COUNT: u64 = 300;
    program.send(&format!("waste {COUNT}"));
    page.snapshot();
    page.command("dump");
    page.until("state", |state| state["dumps"][0]["stage"] == "ready");
    let savings = page.json("savings?limit=1000");
    let rows = savings["rows"].as_array().expect("rows");
    // Sizes with references of four bytes: an object of 16 or 24 bytes, arrays of 16 and more.
    let array = |len: u64| (16 + 4 * len).div_ceil(8) * 8;
    let text = if jdk.version < 9 { 24 + 32 } else { 24 + 24 };
    for (kind, method, objects, one) in [
        ("boxed_fields", "boxedFields", COUNT, 16),
        ("duplicate_boxed_numbers", "equalBoxes", COUNT - 2, 16),
        ("duplicate_arrays", "equalArrays", COUNT - 1, array(8)),
        ("duplicate_strings", "equalTexts", COUNT - 1, text),
        ("single_element_collections", "singles", COUNT, 24),
        ("empty_collections", "empties", COUNT, 24 + array(50)),
        ("unused_slots", "rooms", COUNT, array(100) - array(2)),
    ] {
        let is_it = |row: &&Value| {
            row["kind"] == kind && row["stack"].to_string().contains(&format!(".{method}("))
        };
        let row = rows
            .iter()
            .find(is_it)
            .unwrap_or_else(|| panic!("{kind}: {savings}"));
        assert_eq!(row["objects"], objects, "{kind}: {row}");
        assert_eq!(row["bytes"], objects * one, "{kind}: {row}");
    }
    let boxed = rows.iter().find(|row| row["kind"] == "boxed_fields");
    let what = boxed.map(|row| row["what"].to_string()).unwrap_or_default();
    assert!(what.contains("Populations$Order.number"), "{what}");
    program.child.kill().expect("killed");
}
