//! Other people's readers applied to Tenure's output. A program that is not installed is reported and skipped:
//! `gprof2dot` and `stackcollapse-hprof` (package hprof2flamegraph) are on PyPI, `hprof-slurp` on
//! crates.io.

use crate::scripted::{Batch, ScriptedVm, recorder};
use std::process::Command;
use vmpi::{
    AllocationRow, ClassId, CostRow, Event, Profiler, SampleRow, ThreadId, ThreadInfo, TraceId,
};

/// Standard output of a program that must succeed; `None` when it is not installed.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let done = match Command::new(program).args(arguments).output() {
        Ok(done) => done,
        Err(error) => {
            testkit::skip(program, testkit::Need::Program, &error.to_string());
            return None;
        }
    };
    let (out, error) = (
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr),
    );
    assert!(done.status.success(), "{program} {arguments:?}: {error}");
    Some(out.into_owned())
}

/// A profile of a program with two traces, and a note at its end.
fn profile(options: &str) -> Vec<u8> {
    let (mut recorder, out, _) = recorder(options, None);
    let mut vm = ScriptedVm::new();
    let class = vm.class("Ldemo/Cpu;", Some("Cpu.java"), &[]);
    let frames = [("hot", 3), ("main", 14), ("<init>", 9)].map(|(name, line)| {
        let method = vm.method(class, name, "()V");
        vm.frame(method, Some(line))
    });
    let info = vm.info.clone();
    recorder.notify(
        &vm,
        &Event::VmInit {
            info: &info,
            main: ThreadId(1),
        },
    );
    let info = ThreadInfo {
        name: "main".into(),
        group: "main".into(),
        ..ThreadInfo::default()
    };
    let (thread, trace) = (ThreadId(1), TraceId::EMPTY);
    recorder.notify(
        &vm,
        &Event::ThreadStarted {
            thread,
            info: &info,
            trace,
        },
    );
    for (id, frames) in [
        (1, vec![frames[0], frames[1]]),
        (2, vec![frames[2], frames[1]]),
    ] {
        let trace = vmpi::Trace {
            thread: ThreadId::NONE,
            frames,
        };
        recorder.notify(
            &vm,
            &Event::TraceDefined {
                id: TraceId(id),
                trace: &trace,
            },
        );
    }
    let sample = |trace, samples| SampleRow {
        thread,
        trace: TraceId(trace),
        samples,
    };
    let cost = |trace, calls| CostRow {
        trace: TraceId(trace),
        calls,
        self_ns: calls * 1_000_000,
        total_ns: calls * 2_000_000,
    };
    let site = AllocationRow {
        class: ClassId(1),
        trace: TraceId(2),
        objects: 3,
        bytes: 72,
        ..AllocationRow::default()
    };
    *vm.batch.get_mut().expect("lock") = Batch {
        allocations: vec![site],
        frees: Vec::new(),
        costs: vec![cost(1, 70), cost(2, 30)],
        samples: vec![sample(1, 9), sample(2, 3)],
        ..Batch::default()
    };
    recorder.notify(
        &vm,
        &Event::Lost {
            what: "samples without a stack",
            count: 1,
        },
    );
    recorder.notify(&vm, &Event::ThreadEnded { thread });
    recorder.notify(&vm, &Event::VmDeath);
    out.bytes()
}

fn file(folder: &tempfile::TempDir, options: &str) -> String {
    let path = folder.path().join("profile");
    std::fs::write(&path, profile(options)).expect("written");
    path.display().to_string()
}

#[test]
fn gprof2dot_draws_samples_and_times() {
    for options in ["cpu=samples", "cpu=times", "cpu=samples,heap=sites"] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = file(&folder, options);
        let Some(dot) = output("gprof2dot", &["-f", "hprof", &path]) else {
            return;
        };
        assert!(
            dot.contains("demo") && dot.contains("hot"),
            "{options}: {dot}"
        );
    }
}

#[test]
fn hprof2flamegraph_collapses_samples() {
    for options in ["cpu=samples", "cpu=samples,thread=y"] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = file(&folder, options);
        let Some(stacks) = output("stackcollapse-hprof", &[&path]) else {
            return;
        };
        let line = stacks
            .lines()
            .find(|line| line.contains("hot"))
            .expect("the hot stack");
        assert!(line.ends_with(" 9"), "{options}: {stacks}");
    }
}

#[test]
fn hprof_slurp_reads_binary_profiles() {
    for options in [
        "heap=all,format=b",
        "heap=all,format=b,modern=y,cpu=samples",
    ] {
        let folder = tempfile::tempdir().expect("a folder");
        let path = file(&folder, options);
        let Some(report) = output("hprof-slurp", &[&path]) else {
            return;
        };
        assert!(
            report.contains("File content summary"),
            "{options}: {report}"
        );
    }
}
