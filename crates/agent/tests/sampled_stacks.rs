//! Allocations counted by instruction, with sampled stacks (`stacks=sampled`).

use std::collections::HashMap;
use std::path::Path;

use crate::common::stage::{Here, Stage, frames_of, objects_of, running, stage};

/// Rounds of the program; three of four objects come from one caller.
const ROUNDS: u64 = 100_000;
const OFTEN: f64 = 75.0;

/// Allocated objects of each row of SITES, by class and the frames of its trace.
fn sites(profile: &str) -> HashMap<(String, String), u64> {
    let table = profile.rsplit("SITES BEGIN").next().unwrap_or_default();
    let mut rows = HashMap::new();
    for line in table.lines().take_while(|line| *line != "SITES END") {
        let fields: Vec<&str> = line.split_whitespace().collect();
        if let [_, _, _, _, _, _, allocated, trace, class] = fields[..]
            && let Ok(allocated) = allocated.parse::<u64>()
        {
            let frames = frames_of(profile, trace);
            let frames: Vec<_> = frames.iter().map(|frame| method(frame)).collect();
            *rows
                .entry((class.to_owned(), frames.join(" ")))
                .or_default() += allocated;
        }
    }
    rows
}

/// `Class.method` of a frame.
fn method(frame: &str) -> &str {
    frame.trim().split('(').next().unwrap_or_default()
}

/// A row of ALLOCATION STACKS.
#[derive(Debug)]
struct Row {
    /// Percent: estimate, lower and upper end.
    share: [f64; 3],
    samples: u64,
    objects: u64,
    site: String,
    stack: Vec<String>,
    class: String,
}

fn stacks(profile: &str) -> Vec<Row> {
    let table = profile.rsplit("ALLOCATION STACKS BEGIN").next();
    let lines = table.unwrap_or_default().lines().skip(2);
    let lines = lines.take_while(|line| *line != "ALLOCATION STACKS END");
    let row = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [_, share, ends, samples, objects, _, site, trace, class] = fields[..] else {
            return None;
        };
        let percent = |text: &str| text.strip_suffix('%')?.parse::<f64>().ok();
        let ends = ends.strip_prefix('(')?.strip_suffix(')')?;
        let (low, high) = ends.split_once("..")?;
        let frames = frames_of(profile, trace).into_iter();
        Some(Row {
            share: [percent(share)?, percent(low)?, percent(high)?],
            samples: samples.parse().ok()?,
            objects: objects.parse().ok()?,
            site: frames_of(profile, site).concat().trim().to_owned(),
            stack: frames.map(|frame| method(frame).to_owned()).collect(),
            class: class.to_owned(),
        })
    };
    lines
        .map(|line| row(line).unwrap_or_else(|| panic!("{line}")))
        .collect()
}

/// Allocated objects of each class of the program.
fn by_class(rows: &HashMap<(String, String), u64>) -> HashMap<&str, u64> {
    let mut sums = HashMap::new();
    for ((class, _), allocated) in rows {
        if class.starts_with("Shares") && !class.contains("Lambda") {
            *sums.entry(class.as_str()).or_default() += allocated;
        }
    }
    sums
}

#[test]
fn counts_are_exact_by_instruction_and_shares_of_stacks_are_estimated() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("Shares.java", 8) else {
        return;
    };
    let (mut checked, mut outside) = (0, Vec::new());
    for jdk in &lab.jdks {
        let what = format!("JDK {}", jdk.full_version);
        let run = |options: &str| {
            let program = ["Shares", &ROUNDS.to_string()];
            let ran = lab.run_in(jdk, classes.path(), Some(options), &[], &program);
            assert_eq!(ran.stdout(), "made\n", "{what} {}", ran.stderr());
            ran.profile()
        };
        let profile = run("heap=sites,stacks=sampled,depth=6,cutoff=0");
        assert!(
            !profile.contains("one number with another"),
            "{what}\n{profile}"
        );
        let rows = sites(&profile);
        let exact = sites(&run("heap=sites,depth=6,cutoff=0"));
        assert_eq!(by_class(&rows), by_class(&exact), "{what}");
        let known = [
            ("java.lang.Object", "Shares.plain", ROUNDS),
            ("Shares$Node", "Shares.node", ROUNDS),
            ("byte[]", "Shares.array", ROUNDS),
            ("Shares$Sized", "Shares.sized", ROUNDS),
            ("int[]", "Shares$Sized.<init>", ROUNDS),
            ("int[]", "Shares.copy", ROUNDS),
            ("long[][]", "Shares.nested", ROUNDS),
            ("long[]", "Shares.nested", 2 * ROUNDS),
            ("Shares$Node", "Shares.main", 1000),
            ("Shares$Node", "Shares$Node.<init>", 1000),
            ("Shares$Wrapped", "Shares.main", 1000),
            ("Shares$Base", "Shares$Wrapped.<init>", 2000),
        ];
        for (class, frame, objects) in known {
            let row = rows.get(&(class.to_owned(), frame.to_owned()));
            assert_eq!(row, Some(&objects), "{class} in {frame} on {what}");
        }
        assert!(
            !rows.keys().any(|(class, _)| class == "Shares$Refused"),
            "{what}"
        );
        let stacks = stacks(&profile);
        for (class, frame, objects) in &known[..8] {
            let of_site = stacks
                .iter()
                .filter(|row| row.class == *class && method(&row.site) == *frame);
            let of_site: Vec<_> = of_site.collect();
            let samples: u64 = of_site.iter().map(|row| row.samples).sum();
            assert!(
                (100..objects / 50).contains(&samples),
                "{samples} of {objects} {class} on {what}"
            );
            for (caller, truth) in [("Shares.often", OFTEN), ("Shares.seldom", 100.0 - OFTEN)] {
                let of_caller = of_site.iter();
                let mut of_caller =
                    of_caller.filter(|row| row.stack.iter().any(|one| one == caller));
                let row = of_caller.next();
                let row =
                    row.unwrap_or_else(|| panic!("no {caller} of {class} on {what}\n{profile}"));
                let [share, low, high] = row.share;
                assert!(
                    (share - truth).abs() < 20.0 && low < share && share < high,
                    "{row:?} on {what}"
                );
                let estimate = (share / 100.0 * *objects as f64) as u64;
                assert!(
                    row.objects.abs_diff(estimate) <= objects / 1000,
                    "{row:?} on {what}"
                );
                checked += 1;
                if !(low..=high).contains(&truth) {
                    outside.push(format!("{row:?} on {what}"));
                }
            }
        }
    }
    // Each interval holds the truth with a probability of 95 %.
    assert!(
        outside.len() * 8 <= checked,
        "{} of {checked}: {outside:#?}",
        outside.len()
    );
}

#[test]
fn a_running_program_is_counted_by_instruction_after_an_attach() {
    for (here, mut program, pid) in running(|lab| &lab.jdks) {
        let Here { lab, stage, .. } = &here;
        let file = stage.attach(lab, &pid, "heap=sites,stacks=sampled,cutoff=0");
        program.make(&["counting", "late"]);
        program.finish("kept 1500");
        let text = std::fs::read_to_string(&file).expect("a profile");
        assert_eq!(objects_of(&text, " Patient$Late"), Some((500, 500)));
        let rows = stacks(&text);
        let late = rows.iter().find(|row| row.class == "Patient$Late");
        assert!(late.is_some_and(|row| row.stack.len() > 1), "{rows:?}");
    }
}

#[test]
fn flame_graphs_are_made_of_sampled_stacks() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let (Some(classes), Some(stage)) = (lab.compile("Shares.java", 8), stage(lab)) else {
        return;
    };
    let Some(jdk) = lab.some_jdks().first() else {
        return;
    };
    for (format, file) in [("a", "java.hprof.txt"), ("b", "java.hprof")] {
        let options = format!("heap=sites,stacks=sampled,depth=6,format={format}");
        let program = ["Shares", "10000"];
        let ran = lab.run_in(jdk, classes.path(), Some(&options), &[], &program);
        check_flame_graph(&stage, &ran.folder.path().join(file));
    }
}

/// Each object of a site is in the stack of one caller.
fn check_flame_graph(stage: &Stage, profile: &Path) {
    let profile = profile.to_str().expect("a path");
    let metric = ["--metric", "sampled_alloc_objects"];
    let out = ["-o", "out.collapsed", "--force"];
    let made = stage.run(&[&["convert", profile][..], &metric, &out].concat());
    assert_eq!(
        made.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let collapsed =
        std::fs::read_to_string(stage.folder.path().join("out.collapsed")).expect("stacks");
    let of_caller = |caller: &str| -> u64 {
        let lines = collapsed
            .lines()
            .filter(|line| line.contains(caller) && line.contains("Shares.plain"));
        lines
            .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
            .sum()
    };
    let [often, seldom] = ["Shares.often", "Shares.seldom"].map(of_caller);
    assert!((9_990..=10_010).contains(&(often + seldom)), "{collapsed}");
    assert!(often > 2 * seldom, "{often} {seldom}");
}
