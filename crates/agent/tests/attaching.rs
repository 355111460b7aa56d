//! A program that runs already: `tenure dump`, `tenure attach`, `jcmd`.

use std::io::BufRead;

use crate::common::Lab;
use crate::common::stage::*;

#[test]
fn a_running_program_is_dumped_and_profiled_from_outside() {
    for (here, mut program, pid) in running(Lab::some_jdks) {
        let Here { lab, stage, .. } = &here;
        let dumped = stage.run(&["dump", &pid, "-o", "heap.hprof"]);
        let printed = String::from_utf8_lossy(&dumped.stderr).into_owned();
        assert_eq!(dumped.status.code(), Some(0), "{printed}");
        let counted = stage.run(&["histogram", "heap.hprof", "--json", "--all"]);
        let rows = String::from_utf8_lossy(&counted.stdout).into_owned();
        let early = rows.split("Patient$Early").nth(1).unwrap_or_default();
        assert!(
            early
                .split('}')
                .next()
                .is_some_and(|row| row.contains("1000")),
            "{early}"
        );

        let file = stage.attach(lab, &pid, "heap=sites,cutoff=0");
        program.make(&["counting", "late"]);
        program.finish("kept 1500");
        let text = std::fs::read_to_string(&file).expect("a profile");
        assert_eq!(objects_of(&text, " Patient$Late"), Some((500, 500)));
        assert_eq!(
            objects_of(&text, " Patient$Early"),
            None,
            "they were there before"
        );
        let notes = text.split("are counted from their next call on: ");
        let running = notes.skip(1).filter_map(|note| note.lines().next());
        assert!(
            running
                .flat_map(|names| names.split(", "))
                .any(|name| name == "Patient.main"),
            "{text}"
        );
    }
}

#[test]
fn a_running_program_is_sampled_after_an_attach() {
    for (here, mut program, pid) in running(Lab::some_jdks) {
        let Here { lab, stage, .. } = &here;
        // Threads that run already and one that is still to come are both seen.
        program.make(&["twins"]);
        let file = stage.attach(lab, &pid, "cpu=samples,interval=1,cutoff=0,thread=y");
        // Several rounds: on a loaded machine they get little CPU time in each.
        program.make(&["both", "spin"].repeat(4));
        program.finish("kept 1000");
        let text = std::fs::read_to_string(&file).expect("a profile");
        for method in ["left", "right", "spin"] {
            let samples = samples_under(&text, &format!("Patient.{method}("));
            assert!(samples > 0, "{method}\n{text}");
        }
    }
}

#[test]
fn locks_of_java_util_concurrent_are_timed_from_the_first_attach_on() {
    for (here, mut program, pid) in running(Lab::some_jdks) {
        let Here { lab, stage, .. } = &here;
        let file = stage.attach(lab, &pid, "monitor=y,cutoff=0");
        program.make(&["attached", "lock"]);
        program.finish("kept 1000");
        let text = std::fs::read_to_string(&file).expect("a profile");
        let (_, times) = text.split_once("LOCK TIME BEGIN").expect("times");
        assert!(times.contains("ReentrantLock"), "{text}");
        assert!(text.contains("Patient.wantsLock("), "{text}");
    }
}

#[test]
fn notes_of_the_agent_are_printed_if_the_form_of_the_output_has_none() {
    for (here, mut program, pid) in running(Lab::some_jdks) {
        let Here { lab, stage, .. } = &here;
        let recording = ["--profile", "heap=sites", "--duration", "1"];
        let words = [&[&pid[..]], &recording[..], &["-o", "sites.collapsed"]].concat();
        let (code, printed) = stage.order(lab, &words);
        assert_eq!(code, Some(0), "{printed}");
        let note = "note of the agent: methods that were running when counting began";
        assert!(printed.contains(note), "{printed}");
        program.finish("kept 1000");
    }
}

#[test]
fn a_recording_is_not_ended_by_another_one_that_is_stored_here() {
    for (here, mut program, pid) in running(Lab::some_jdks) {
        let Here { lab, stage, .. } = &here;
        let file = stage.attach(lab, &pid, "heap=sites,cutoff=0");
        let other = [&pid, "--duration", "1", "-o", "other.txt"];
        let (code, printed) = stage.order(lab, &other);
        assert_eq!(code, Some(2), "{printed}");
        assert!(
            printed.contains("heap=sites") && printed.contains("attached.txt"),
            "{printed}"
        );
        assert!(!stage.folder.path().join("other.txt").exists(), "{printed}");
        program.make(&["counting", "late"]);
        let (code, printed) = stage.order(lab, &[&other[..], &["--force"]].concat());
        assert_eq!(code, Some(0), "{printed}");
        assert!(
            printed.contains("no longer records heap=sites"),
            "{printed}"
        );
        let text = std::fs::read_to_string(&file).expect("the recording that has ended");
        assert!(objects_of(&text, " Patient$Late").is_some(), "{text}");
        // What was written before is no recording any more.
        let (code, printed) = stage.order(lab, &[&other[..], &["--force"]].concat());
        assert_eq!(code, Some(0), "{printed}");
        assert!(!printed.contains("no longer"), "{printed}");
        program.finish("kept 1500");
    }
}

#[test]
fn a_recording_whose_collector_was_killed_is_continued_by_the_same_command() {
    for (here, mut program, pid) in running(Lab::some_jdks) {
        let Here { lab, stage, .. } = &here;
        let library = lab.agent.to_string_lossy();
        let record = |output: &str| {
            let mut command = std::process::Command::new(&stage.tenure);
            let options = ["--profile", "heap=sites,cutoff=0", "-o", output];
            command
                .args(["attach", &pid, "--agent", &library])
                .args(options);
            let mut recording = Talk::start({
                command.current_dir(stage.folder.path());
                command
            });
            let mut printed = String::new();
            let mut stderr = recording.stderr();
            stderr.read_line(&mut printed).expect("a line");
            assert!(printed.contains("is recorded until"), "{printed}");
            (recording, stderr)
        };
        let (mut first, _first_printed) = record("first.txt");
        program.make(&["counting", "late"]);
        first.child.kill().expect("killed");
        testkit::until(|| {
            let status = stage.ordered(lab, &[&pid, "status"]);
            match status.contains("which has disconnected") {
                true => Ok(()),
                false => Err(status),
            }
        });
        let (mut second, _second_printed) = record("second.txt");
        stage.ordered(lab, &[&pid, "stop"]);
        assert_eq!(second.code(), Some(0));
        let text = std::fs::read_to_string(stage.folder.path().join("second.txt"));
        let text = text.expect("a profile");
        assert_eq!(
            objects_of(&text, " Patient$Late"),
            Some((500, 500)),
            "{text}"
        );
        program.finish("kept 1500");
    }
}

#[test]
fn jcmd_loads_the_agent_into_a_running_program() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let has_jcmd = |jdk: &&testkit::jvm::Jdk| jdk.version >= 9 && jdk.tool("jcmd").is_file();
    for jdk in lab.jdks.iter().filter(has_jcmd) {
        let Some(stage) = stage(lab) else { continue };
        let mut program = stage.patient(jdk, None);
        let pid = program.child.id().to_string();
        let file = stage.folder.path().join("loaded.txt");
        let load = |options: &str| {
            let mut jcmd = std::process::Command::new(jdk.tool("jcmd"));
            // Words of a command are separated by blanks and `=`, unless they are quoted.
            jcmd.args([&pid, "JVMTI.agent_load"])
                .arg(&lab.agent)
                .arg(format!("\"{options}\""));
            let ran = jcmd.output().expect("jcmd runs");
            String::from_utf8_lossy(&ran.stdout).into_owned()
        };
        let what = format!("JDK {}", jdk.full_version);
        let printed = load("heap=nonsense");
        assert!(printed.contains("return code: -1"), "{what}: {printed}");
        let printed = load(&format!("heap=sites,cutoff=0,file={}", file.display()));
        assert!(printed.contains("return code: 0"), "{what}: {printed}");
        // An impossible recording is refused, and the first continues.
        let printed = load("cpu=samples,file=none/x.txt");
        assert!(printed.contains("return code: -1"), "{what}: {printed}");
        program.make(&["counting", "late"]);
        program.finish("kept 1500");
        let text = std::fs::read_to_string(&file).expect("a profile");
        assert_eq!(objects_of(&text, " Patient$Late"), Some((500, 500)));
        assert_eq!(objects_of(&text, " Patient$Early"), None, "{what}");
        let mut printed = String::new();
        std::io::Read::read_to_string(&mut program.stderr(), &mut printed).expect("text");
        let received = "HPROF: hprof option error: heap option value must be dump|sites|all";
        assert!(printed.contains(received), "{what}: {printed}");
    }
}
