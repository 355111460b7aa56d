//! The stream of VM events beside a profile, and in a program that runs already.

use crate::common::Lab;
use crate::common::stage::{Here, objects_of, running, samples_under};
use crate::vm_events::{Recording, least_at_interval_0};
use testkit::jvm::Jdk;

/// Objects of each class that the program makes.
const COUNT: u64 = 20_000;

/// Runs a program that makes so many objects of a few classes.
fn profile_of(lab: &Lab, jdk: &Jdk, options: &str, count: u64) -> String {
    let classes = lab.compile("Made.java", 8).expect("compiles");
    let program = ["Made", &count.to_string()];
    let ran = lab.run_in(jdk, classes.path(), Some(options), &["-Xmx400m"], &program);
    assert!(ran.output.status.success(), "{}", ran.stderr());
    ran.profile()
}

/// The same with its VM events beside the profile.
fn both(lab: &Lab, jdk: &Jdk, options: &str, count: u64) -> (String, Recording) {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("events");
    let options = format!("{options},cutoff=0,events-file={}", path.display());
    let profile = profile_of(lab, jdk, &options, count);
    (profile, Recording::read(&path))
}

#[test]
fn a_profile_and_the_stream_count_the_same_objects() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in &lab.jdks {
        for profile in ["heap=sites", "cpu=times", "cpu=samples,interval=1"] {
            let options = format!("{profile},events=0");
            let (text, events) = both(lab, jdk, &options, COUNT);
            let what = format!("{profile} on {}", jdk.full_version);
            assert!(events.ended && events.lost == 0, "{what}");
            // Where no code is inserted, the compiler need not make all of them.
            let least = match jdk.version >= 11 && profile != "heap=sites" {
                true => COUNT / 2,
                false => least_at_interval_0(jdk, COUNT),
            };
            for class in ["Made$Derived", "Made$Inner"] {
                let made = events.made_of(class);
                assert!((least..=COUNT).contains(&made), "{made} {class}: {what}");
                if profile == "heap=sites" {
                    let objects = objects_of(&text, &format!(" {class}"));
                    assert_eq!(objects.map(|(_, all)| all), Some(COUNT), "{class}: {what}");
                }
            }
        }
    }
}

#[test]
fn an_output_that_cannot_be_opened_costs_the_file_of_no_other() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(jdk) = lab.jdks.last() else { return };
    let folder = tempfile::tempdir().expect("temporary folder");
    let old = folder.path().join("old");
    std::fs::write(&old, "precious").expect("written");
    let (old, none) = (old.display(), folder.path().join("none/x"));
    let none = none.display();
    let classes = lab.compile("Made.java", 8).expect("compiles");
    for outputs in [
        format!("file={old},events=64k,events-net=127.0.0.1:1"),
        format!("file={old},events=64k,events-file={none}"),
        format!("file={none},events=64k,events-file={old}"),
    ] {
        let options = format!("heap=sites,{outputs}");
        let ran = lab.run_in(jdk, classes.path(), Some(&options), &[], &["Made", "10"]);
        let printed = ran.stderr();
        assert!(printed.contains("the program runs unprofiled"), "{printed}");
        let content = std::fs::read_to_string(old.to_string()).expect("there");
        assert_eq!(content, "precious", "{options}");
    }
}

/// The VM has one sampler, whose interval is the smaller of the two.
#[test]
fn sampled_allocations_have_their_own_interval_beside_the_stream() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.jdks.iter().filter(|jdk| jdk.version >= 11) {
        let options = "alloc=64k,cutoff=0";
        let plain = profile_of(lab, jdk, options, 5 * COUNT);
        let (beside, events) = both(lab, jdk, "alloc=64k,events=4k", 5 * COUNT);
        let estimated = |text: &str| {
            let table = text.rsplit("SITES BEGIN").next().unwrap_or_default();
            let table = table.split("SITES END").next().unwrap_or_default();
            let rows = table.lines().map(|line| line.split_whitespace());
            let bytes = rows.filter_map(|mut row| row.nth(5)?.parse::<u64>().ok());
            bytes.sum::<u64>() as f64
        };
        let (plain, beside) = (estimated(&plain), estimated(&beside));
        let what = format!("{beside} bytes, {plain} alone, on {}", jdk.full_version);
        assert!(
            plain > 1e7 && (0.7..1.4).contains(&(beside / plain)),
            "{what}"
        );
        let sampled = events.allocations as f64 * 4096.0;
        assert!((0.7..1.4).contains(&(sampled / plain)), "{sampled}: {what}");
    }
}

#[test]
fn events_of_a_running_program_are_recorded_after_an_attach_and_until_a_stop() {
    for (here, mut program, pid) in running(|lab| &lab.jdks) {
        let Here { lab, jdk, stage } = &here;
        let what = format!("JDK {}", jdk.full_version);
        let mut make = |line: &str| {
            program.type_line(line);
            program.expect(&format!("done {line}"));
        };
        let path = |name: &str| stage.folder.path().join(name);
        // The second recording is as whole as the first, also where inserted code samples.
        for name in ["one.events", "two.events"] {
            let options = format!("events=0,file={name}");
            let printed = stage.ordered(lab, &[&pid, "--profile", &options]);
            assert!(printed.contains(name), "{what}: {printed}");
            // A thread that runs already has drawn its next sample by the interval before: 512 KiB on average.
            make("megabytes");
            make("late");
            let printed = stage.ordered(lab, &[&pid, "stop"]);
            assert!(printed.contains(name), "{what}: {printed}");
            make("late");
            let events = Recording::read(&path(name));
            assert!(events.ended && events.lost == 0, "{what}");
            assert_eq!(events.made_of("Patient$Late"), 500, "{what}: {name}");
        }
        // A profile beside the stream, and another after it.
        let options =
            "cpu=samples,interval=1,cutoff=0,file=cpu.txt,events=0,events-file=three.events";
        stage.ordered(lab, &[&pid, "--profile", options]);
        make("spin");
        make("megabytes");
        make("late");
        stage.ordered(
            lab,
            &[&pid, "--profile", "heap=sites,cutoff=0,file=sites.txt"],
        );
        make("counting");
        make("late");
        stage.ordered(lab, &[&pid, "stop"]);
        let text = |name: &str| std::fs::read_to_string(path(name)).expect("a profile");
        assert!(
            samples_under(&text("cpu.txt"), "Patient.spin(") > 0,
            "{what}"
        );
        let events = Recording::read(&path("three.events"));
        let made = events.made_of("Patient$Late");
        assert_eq!((events.ended, made), (true, 500), "{what}");
        let objects = objects_of(&text("sites.txt"), " Patient$Late");
        assert_eq!(objects.map(|(_, all)| all), Some(500), "{what}");
        program.type_line("end");
    }
}

/// `tenure attach --events`: written by the program, by this process beside a profile, and refused where there is a file.
#[test]
fn the_command_records_events_alone_and_beside_a_profile() {
    for (here, mut program, pid) in running(Lab::some_jdks) {
        let Here { lab, jdk, stage } = &here;
        let what = format!("JDK {}", jdk.full_version);
        let mut make = |line: &str| {
            program.type_line(line);
            program.expect(&format!("done {line}"));
        };
        let read = |name: &str| Recording::read(&stage.folder.path().join(name));
        stage.ordered(lab, &[&pid, "--events", "alone.events", "--interval", "0"]);
        make("megabytes");
        make("late");
        stage.ordered(lab, &[&pid, "stop"]);
        let alone = read("alone.events");
        let made = alone.made_of("Patient$Late");
        assert_eq!((alone.ended, made), (true, 500), "{what}");
        let again = [&pid, "--events", "alone.events"];
        for more in [&[][..], &["--duration", "1", "-o", "cpu.txt"]] {
            let (code, printed) = stage.order(lab, &[&again[..], more].concat());
            assert_eq!(code, Some(2), "{what}: {printed}");
            assert!(printed.contains("alone.events exists"), "{what}: {printed}");
        }
        let both = [
            "--events",
            "both.events",
            "--duration",
            "1",
            "-o",
            "cpu.html",
        ];
        stage.ordered(lab, &[&[&pid[..]], &both[..]].concat());
        assert!(read("both.events").ended, "{what}");
        let page = std::fs::read_to_string(stage.folder.path().join("cpu.html"));
        assert!(page.is_ok_and(|page| page.starts_with("<!")), "{what}");
        let (_, printed) = stage.order(lab, &[&pid, "status"]);
        assert!(printed.contains("nothing is recorded"), "{what}: {printed}");
        program.type_line("end");
    }
}
