//! Native allocations of real programs with known amounts.

use std::path::Path;
use std::process::Command;

use profile::{Profile, Site};

/// The program and its libraries.
struct Program {
    lab: &'static crate::common::Lab,
    classes: tempfile::TempDir,
    libraries: tempfile::TempDir,
    /// C++ can be compiled.
    has_cc: bool,
}

impl Program {
    fn new() -> Option<Program> {
        let lab = crate::common::lab()?;
        let libraries = tempfile::tempdir().expect("temporary folder");
        lab.library("blocks.c", libraries.path())?;
        lab.library("late.c", libraries.path())?;
        Some(Program {
            lab,
            has_cc: lab.library("made.cc", libraries.path()).is_some(),
            classes: lab.compile("Native.java", 8)?,
            libraries,
        })
    }

    /// The profile of a run with these steps, after it has ended with `code`.
    fn run(&self, jdk: &testkit::jvm::Jdk, options: &str, steps: &str, code: i32) -> Profile {
        let folder = self.libraries.path().to_string_lossy().into_owned();
        let program: Vec<&str> = ["Native", &folder]
            .into_iter()
            .chain(steps.split(' '))
            .collect();
        let ran = self
            .lab
            .run_in(jdk, self.classes.path(), Some(options), &[], &program);
        let what = format!("{options} on {}: {}", jdk.full_version, ran.stderr());
        assert_eq!(ran.output.status.code(), Some(code), "{what}");
        for line in steps.split(' ') {
            let printed = match line {
                "fork" => "child 7\n",
                "exec" => "exec 0\n",
                _ => continue,
            };
            assert!(ran.stdout().contains(printed), "{what}");
        }
        let name = match options.contains("format=b") {
            true => "java.hprof",
            false => "java.hprof.txt",
        };
        let bytes = std::fs::read(ran.folder.path().join(name)).expect("a profile");
        let (profile, damage) = profile::read(&bytes).expect("a profile");
        assert!(damage.is_empty(), "{what} {:?}", damage.iter().next());
        profile
    }
}

/// Blocks and bytes allocated and live, of a library's stacks that begin with `top`.
fn counts(profile: &Profile, library: &str, top: &str) -> [u64; 4] {
    let table = profile.native.as_ref().expect("native allocations");
    let is_it = |site: &&Site| {
        profile.names.get(site.class) == library
            && profile
                .trace_names(site.trace)
                .join(";")
                .starts_with(&top.replace("lib/", &format!("{library}.")))
    };
    let mut sum = [0; 4];
    for site in table.sites().iter().filter(is_it) {
        let (allocated, live) = (site.allocated, site.live);
        for (sum, one) in
            sum.iter_mut()
                .zip([allocated.objects, allocated.bytes, live.objects, live.bytes])
        {
            *sum += one;
        }
    }
    sum
}

const LEAK: &str = "lib/leak;lib/Java_Native_leak;Native.leak;";

#[test]
fn every_block_is_counted_at_its_stack_and_what_stays_is_a_leak() {
    let Some(program) = Program::new() else {
        return;
    };
    for jdk in program.lab.some_jdks() {
        for options in [
            "native=1,cutoff=0,depth=8",
            "native=0,cutoff=0,format=b,modern=y,depth=8",
        ] {
            let steps = "leak churn grow others threads fork exec late buffers exit";
            let profile = program.run(jdk, options, steps, 3);
            let check = |top: &str, expected: [u64; 4]| {
                let found = counts(&profile, "libblocks.so", top);
                assert_eq!(found, expected, "{top} {options} on {}", jdk.full_version);
            };
            check(
                &format!("{LEAK}Native.first;Native.main"),
                [10, 10_000, 10, 10_000],
            );
            check(
                &format!("{LEAK}Native.second;Native.main"),
                [20, 1000, 20, 1000],
            );
            check(
                "lib/Java_Native_churn;Native.churn;Native.main",
                [1000, 100_000, 0, 0],
            );
            // 100 of 24 bytes that moved to 1000, of which 50 were freed.
            check("lib/Java_Native_grow", [200, 102_400, 50, 50_000]);
            check("lib/Java_Native_others", [7, 7990, 5, 7960]);
            let string = counts(&profile, "libblocks.so", "libc.so.6.");
            assert_eq!(string, [1, 10, 1, 10], "strdup");
            check(
                &format!("{LEAK}Native.lambda"),
                [6400, 307_200, 6400, 307_200],
            );
            check(
                "lib/Java_Native_churn;Native.churn;Native.lambda",
                [12_800, 819_200, 0, 0],
            );
            let late = counts(
                &profile,
                "liblate.so",
                "lib/late;libblocks.so.Java_Native_load",
            );
            assert_eq!(late, [30, 9990, 30, 9990], "loaded late");
            let table = profile.native.as_ref().expect("native allocations");
            let buffers = table.sites().iter().filter(|site| {
                let stack = profile.trace_names(site.trace).join(";");
                stack.contains("Unsafe.allocateMemory") && stack.contains("Native.buffers")
            });
            let bytes: u64 = buffers.map(|site| site.live.bytes).sum();
            assert!((4 << 20..5 << 20).contains(&bytes), "buffers: {bytes}");
        }
    }
}

#[test]
fn what_is_freed_is_gone_and_objects_of_cpp_are_blocks() {
    let Some(program) = Program::new() else {
        return;
    };
    let jdk = program.lab.some_jdks().last().expect("a runtime");
    let steps = if program.has_cc {
        "leak grow others make free"
    } else {
        "leak grow others free"
    };
    let profile = program.run(jdk, "native=1,cutoff=0", steps, 0);
    let all = counts(&profile, "libblocks.so", "");
    assert_eq!(all, [10 + 20 + 200 + 7 + 1, 121_400, 0, 0]);
    if program.has_cc {
        // The five blocks that stay are a leak; the profile reports them as live.
        assert_eq!(counts(&profile, "libmade.so", ""), [10, 600, 5, 200]);
    }
}

#[test]
fn a_library_is_found_while_another_thread_links_it() {
    let Some(program) = Program::new() else {
        return;
    };
    let many = program.lab.library("many.c", program.libraries.path());
    if many.is_none() {
        return;
    }
    let jdk = program.lab.some_jdks().last().expect("a runtime");
    let profile = program.run(jdk, "native=1,cutoff=0", "race", 0);
    // Who was there when the names were looked up is gone by now, the other is not.
    let [many, blocks] = ["libmany.so", "libblocks.so"].map(|name| counts(&profile, name, ""));
    assert_eq!(many[0] + blocks[0], 100);
    assert_eq!(many[3] + blocks[3], 100 * 4096);
}

#[test]
fn a_sample_of_blocks_stands_for_all_of_them() {
    let Some(program) = Program::new() else {
        return;
    };
    for jdk in program.lab.some_jdks() {
        // Of 64,000 blocks of 1000 bytes 62 % are recorded: the standard error of their sum is
        // 0.3 %, so that 2 % are six of them.
        let profile = program.run(jdk, "native=1k,cutoff=0,depth=8", "many churn", 0);
        assert_eq!(profile.native_interval, 1024);
        let [blocks, bytes, live, live_bytes] =
            counts(&profile, "libblocks.so", &format!("{LEAK}Native.main"));
        for (found, true_one) in [
            (blocks, 64_000.0),
            (bytes, 64e6),
            (live, 64_000.0),
            (live_bytes, 64e6),
        ] {
            let error = (found as f64 - true_one).abs() / true_one;
            assert!(
                error < 0.02,
                "{found} of {true_one} on {}",
                jdk.full_version
            );
        }
        assert_eq!(blocks, live);
        assert_eq!(
            counts(&profile, "libblocks.so", "lib/Java_Native_churn")[2],
            0
        );
    }
}

#[test]
fn an_agent_that_comes_later_and_another_allocator_are_no_hindrance() {
    let Some(program) = Program::new() else {
        return;
    };
    let lab = program.lab;
    let allocator = lab.library("allocator.c", program.libraries.path());
    let Some(allocator) = allocator else { return };
    let expected = [30, 11_000, 30, 11_000];
    for jdk in lab.some_jdks().iter().filter(|jdk| jdk.version >= 11) {
        let mut java = Command::new(jdk.tool("java"));
        let folder = tempfile::tempdir().expect("temporary folder");
        java.current_dir(folder.path())
            .env("LD_PRELOAD", &allocator)
            .arg(format!(
                "-agentpath:{}=native=1,cutoff=0",
                lab.agent.display()
            ))
            .arg("-cp")
            .arg(program.classes.path())
            .arg("Native")
            .arg(program.libraries.path())
            .arg("leak");
        let output = java.output().expect("java runs");
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{printed}");
        let calls = printed
            .lines()
            .find_map(|line| line.strip_prefix("malloc calls: "));
        let calls: u64 = calls
            .and_then(|n| n.parse().ok())
            .expect("the allocator was used");
        assert!(calls > 1000, "{calls}");
        let bytes = std::fs::read(folder.path().join("java.hprof.txt")).expect("a profile");
        let profile = profile::read(&bytes).expect("a profile").0;
        assert_eq!(
            counts(&profile, "libblocks.so", ""),
            expected,
            "{}",
            jdk.full_version
        );

        let Some(attach) = lab.compile("Attach.java", 11) else {
            continue;
        };
        let paths = [attach.path(), program.classes.path()];
        let paths = std::env::join_paths(paths).expect("paths");
        let (library, folder) = (
            lab.agent.to_string_lossy(),
            program.libraries.path().to_string_lossy(),
        );
        let words = [
            "Attach",
            &*library,
            "native=1,cutoff=0",
            "Native",
            &*folder,
            "leak",
        ];
        let flags = [
            "-Djdk.attach.allowAttachSelf=true",
            "-XX:+EnableDynamicAgentLoading",
        ];
        let ran = lab.run_in(jdk, Path::new(&paths), None, &flags, &words);
        assert_eq!(ran.output.status.code(), Some(0), "{}", ran.stderr());
        let profile = profile::read(ran.profile().as_bytes())
            .expect("a profile")
            .0;
        let what = format!("attached to {}", jdk.full_version);
        assert_eq!(counts(&profile, "libblocks.so", ""), expected, "{what}");
    }
}

#[test]
fn nothing_is_recorded_unless_it_is_asked_for() {
    let Some(program) = Program::new() else {
        return;
    };
    let jdk = program.lab.some_jdks().last().expect("a runtime");
    let profile = program.run(jdk, "heap=sites", "leak", 0);
    assert!(profile.native.is_none());
    assert!(profile.sites.is_some());
}
