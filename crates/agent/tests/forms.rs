//! Files in the forms of other tools, written by the agent alone.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;

use profile::{Metric, Profile};
use testkit::jvm::Jdk;
use testkit::pprof::Decoded;

use crate::common::stage::*;
use crate::rotation::files;

const ENDINGS: [&str; 3] = [".jfr", ".pb.gz", ".collapsed"];

/// Bytes of an object of `Patient$Late` on a JVM of 64 bits with compressed pointers: header and an `int`.
const LATE_BYTES: u64 = 16;

fn read(file: &Path) -> Vec<u8> {
    std::fs::read(file).expect("a file")
}

fn recording(file: &Path) -> Profile {
    let (profile, diagnostics) = profile::read(&read(file)).expect("a recording");
    assert!(!diagnostics.any_damage(), "{}", file.display());
    profile
}

fn pprof(file: &Path) -> Decoded {
    let mut plain = Vec::new();
    let bytes = read(file);
    let mut gzip = flate2::read::GzDecoder::new(&bytes[..]);
    gzip.read_to_end(&mut plain).expect("gzip");
    Decoded::of(&plain)
}

/// The sum of the first metric over the stacks with this name, in a file of any form.
fn sum(file: &Path, name: &str) -> u64 {
    let text = file.to_string_lossy();
    if text.ends_with(".jfr") {
        let profile = recording(file);
        let metrics = [Metric::Samples, Metric::AllocatedBytes].into_iter();
        let stacks = metrics.flat_map(|one| profile.stacks(one));
        let named = stacks.filter(|stack| profile.path(stack).iter().any(|it| it.contains(name)));
        return named.map(|stack| stack.value).sum();
    }
    if text.ends_with(".pb.gz") {
        return pprof(file).sum(name).first().copied().unwrap_or(0);
    }
    let text = String::from_utf8(read(file)).expect("text");
    let counts = text.lines().map(|line| {
        let (stack, count) = line.rsplit_once(' ').expect("a stack and its number");
        (stack, count.parse::<u64>().expect("a number"))
    });
    let named = counts.filter(|(stack, _)| stack.contains(name));
    named.map(|(_, count)| count).sum()
}

/// What the JDK's own reader prints of a recording, if the JDK has it.
fn summary(jdk: &Jdk, file: &Path) -> Option<String> {
    let tool = jdk.tool("jfr");
    if !tool.is_file() {
        return None;
    }
    let ran = Command::new(tool).arg("summary").arg(file).output();
    let ran = ran.expect("jfr runs");
    let text = [ran.stdout, ran.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    assert!(ran.status.success(), "{text}");
    Some(text)
}

fn nothing() -> [PathBuf; 0] {
    []
}

#[test]
fn each_file_of_a_series_has_what_was_allocated_in_its_time() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in &lab.jdks {
        for ending in ENDINGS {
            let Some(stage) = stage(lab) else { continue };
            let folder = stage.folder.path();
            let options = format!("heap=sites,cutoff=0,loop=50ms,keep=100000,file=a-%t{ending}");
            let mut program = stage.patient(jdk, Some((&lab.agent, &options)));
            program.make(&["counting"]);
            for round in 1..=3 {
                program.make(&["late"]);
                let there = files(folder, ending).len();
                testkit::until(|| match files(folder, ending).len() > there + 1 {
                    true => Ok(()),
                    false => Err(format!("no further file in round {round}")),
                });
            }
            program.type_line("end");
            while program.line() != "kept 2500" {}
            assert_eq!(program.code(), Some(3));
            let all = files(folder, ending);
            let sums: Vec<u64> = all.iter().map(|file| sum(file, "[Patient$Late]")).collect();
            let what = format!("{ending} on {}: {sums:?}", jdk.full_version);
            assert_eq!(sums.iter().sum::<u64>(), 1500 * LATE_BYTES, "{what}");
            assert!(sums.iter().filter(|sum| **sum > 0).count() >= 3, "{what}");
            assert_eq!(files(folder, ".part"), nothing(), "{what}");
            assert_eq!(files(folder, ".hprof"), nothing(), "{what}");
            if ending == ".pb.gz" {
                let objects = all.iter().map(|file| pprof(file).sum("[Patient$Late]")[1]);
                assert_eq!(objects.sum::<u64>(), 1500, "{what}");
            }
            if ending == ".jfr"
                && let Some(text) = summary(jdk, &all[0])
            {
                assert!(
                    text.contains("jdk.ObjectAllocationSample"),
                    "{what}: {text}"
                );
            }
        }
    }
}

/// The last file is written when the program ends.
#[test]
fn samples_until_the_end_of_the_program_are_in_the_file() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in &lab.jdks {
        for ending in ENDINGS {
            let Some(stage) = stage(lab) else { continue };
            let file = stage.folder.path().join(format!("end{ending}"));
            std::fs::write(&file, "an earlier one").expect("written");
            let options = format!("cpu=samples,interval=1,depth=16,duration=1h,file=end{ending}");
            let mut program = stage.patient(jdk, Some((&lab.agent, &options)));
            program.make(&["spin"]);
            assert_eq!(read(&file), b"an earlier one");
            program.finish("kept 1000");
            let what = format!("{ending} on {}", jdk.full_version);
            assert!(sum(&file, "Patient.spin") > 0, "{what}");
            let interval = match ending {
                ".jfr" => recording(&file).samples.expect("samples").interval_ns,
                ".pb.gz" => pprof(&file).period,
                _ => 1_000_000,
            };
            assert_eq!(interval, 1_000_000, "{what}");
            assert_eq!(
                std::fs::read_dir(stage.folder.path())
                    .expect("listed")
                    .count(),
                1
            );
        }
    }
}

#[test]
fn a_recording_ends_after_its_duration_and_another_one_keeps_its_file() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        let Some(stage) = stage(lab) else { continue };
        let folder = stage.folder.path();
        let options = "cpu=samples,duration=300ms,file=a.jfr";
        let mut program = stage.patient(jdk, Some((&lab.agent, options)));
        let pid = program.child.id().to_string();
        testkit::until(|| match folder.join("a.jfr").is_file() {
            true => Ok(()),
            false => Err("no file".to_owned()),
        });
        testkit::until(|| {
            let printed = stage.run(&["attach", &pid, "status"]).stdout;
            let printed = String::from_utf8_lossy(&printed).into_owned();
            match printed.contains("nothing is recorded") {
                true => Ok(()),
                false => Err(printed),
            }
        });
        recording(&folder.join("a.jfr"));
        let profile = "cpu=samples,duration=1h,force=n,file=a.jfr";
        let printed = stage.ordered(lab, &[&pid, "--profile", profile]);
        assert!(printed.contains("a-2.jfr"), "{printed}");
        assert_eq!(files(folder, ".part"), [folder.join("a-2.jfr.hprof.part")]);
        stage.ordered(lab, &[&pid, "stop"]);
        let both = ["a-2.jfr", "a.jfr"].map(|name| folder.join(name));
        assert_eq!(files(folder, ".jfr"), both);
        both.iter().for_each(|file| drop(recording(file)));
        assert_eq!(files(folder, ".part"), nothing());
        // A symbolic link stays, and the file that it leads to is replaced.
        let link = folder.join("link.jfr");
        std::os::unix::fs::symlink("a.jfr", &link).expect("a link");
        let read = || std::fs::read(folder.join("a.jfr")).expect("a recording");
        let before = read();
        let profile = "cpu=samples,duration=1h,force=y,file=link.jfr";
        stage.ordered(lab, &[&pid, "--profile", profile]);
        stage.ordered(lab, &[&pid, "stop"]);
        assert!(link.is_symlink());
        assert_ne!(read(), before);
        program.finish("kept 1000");
    }
}

/// The tables of the recording leave no memory for it.
#[test]
fn data_that_cannot_be_converted_is_kept() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(classes) = lab.compile("ManyPaths.java", 8) else {
        return;
    };
    for jdk in lab.some_jdks() {
        let options = "heap=sites,depth=24,cutoff=0,memory=16m,duration=1h,file=p.collapsed";
        let program = ["ManyPaths", "15", "4"];
        let ran = lab.run_in(jdk, classes.path(), Some(options), &["-Xmx256m"], &program);
        let printed = ran.stderr();
        assert!(ran.output.status.success(), "{printed}");
        let file = ran.folder.path().join("p.collapsed");
        let fault = format!("{} is not written: memory= is reached", file.display());
        assert!(printed.contains(&fault), "{printed}");
        assert!(!file.exists(), "{printed}");
        let profile = recording(&ran.folder.path().join("p.collapsed.hprof"));
        let made = profile.stacks(Metric::AllocatedObjects);
        let made = made.filter(|stack| {
            let class = stack.class.map(|class| profile.names.get(class));
            class == Some("ManyPaths$Made")
        });
        assert_eq!(made.map(|stack| stack.value).sum::<u64>(), 4 << 15);
    }
}
