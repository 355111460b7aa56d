//! Why a run is not the same: the original's defects by their number in the facts, section 7; gaps
//! of its counting, section 5; and what differs between the VMs.

/// Runs that cannot be repeated, and why.
pub(crate) const NOT_APPLICABLE: &[(&str, &str)] = &[];

/// Runs that take long and have a shorter sister: only in the matrix.
pub(crate) const LONG: &[&str] = &[
    "cpu-samples-i1",
    "cpu-samples-lineno-n",
    "cpu-samples-txt",
    "cpu-times-depth10",
    "cpu-times-lineno-n",
    "default-empty",
    "env-only",
    "err-depth-big",
    "err-gc_okay",
    "err-trailing-comma",
    "err-verbose-n",
    "file-TXT-upper",
    "file-exists-force-n-nosuffix",
    "file-exists-force-y",
    "file-plain",
    "file-subst",
    "file-txt",
    "heap-all-bin",
    "heap-dump-doe-n",
    "heap-dump-primfields-n",
    "heap-sites-cutoff05",
    "heap-sites-depth0",
    "heap-sites-doe-n",
    "heap-sites-exit",
    "heap-sites-lineno-n",
    "heap-sites-thread-y",
    "logflags",
    "monitor-samples",
    "net-dump",
    "net-gc",
    "net-plain-bin",
    "net-plain-txt",
    "net-sites-alloc-gc",
    "net-summary-txt",
    "net-traces",
    "quit-cpu-samples",
    "quit-cpu-times",
    "quit-doe-n",
    "quit-heap-dump-bin",
    "quit-heap-dump-txt",
    "sighup",
    "sites-x-int",
    "threads-dump-bin",
    "xrun-nooption",
];

const MONITOR_TIME: &str = "defect 1: milliseconds were divided as if nanoseconds";
const LAMBDA: &str = "defect 2: the original died of lambdas under cpu=times";
const SECOND_DUMP: &str = "defect 3: the second binary dump was fatal";
const UNLOADS: &str = "defect 4: no class could be unloaded, so no loader died";
const SHARE: &str = "defect 9: sorted by allocation, cut by live share";
const FULL: &str = "a thread that starts in a full heap gets no counters, and a line says so";
const TOO_LONG: &str =
    "CharacterData00.<clinit> has no room for more code, so what it calls has one context";
const NO_ROOM: &str = "a method of the JDK has no room for more code, and the profile says which";
const BLOCKED: &str = "defect 13: blocked threads counted as running";
const FATAL: &str = "requirement 2: no fault of the agent's own ends the program";
const NO_TEMPORARY: &str = "requirement 8: a dump needs no temporary file";
const CLONE: &str = "gap of section 5: Object.clone was not seen";
const INNER: &str = "gap of section 5: inner dimensions were not seen";
const MIRROR: &str = "section 5: a class object counted as an instance of its class";
const OFF: &str = "section 6: command 4 did not stop the sampling";
const LATER: &str = "asked when the program was further";
const GARBAGE: &str = "collected between the end of the program and the dump";
const UNREACHABLE: &str = "the original listed garbage that no collection had found yet";
const CLASS_LOADING: &str = "the VM calls class loaders and initializers as its version does";
const HELP: &str = "the help goes on with the options that are new";
const LOG: &str = "logflags=4 made the original parse its own dump into a file";
const TITLES: &str = "section 1: both costs stood twice under one title";
const SLOW_CLOCK: &str = "the profile says how often this system interrupts a thread";
const NOT_WALKED: &str =
    "docs/reference/agent.md: samples whose stack the VM cannot walk are counted in a NOTE";
const CUT: &str = "the profile says what the sites have that it leaves out as the original does";

/// Case (a `*` at its end stands for anything), a piece of the difference, reason.
const REASONS: &[(&str, &str, &str)] = &[
    ("cpu-times-thread", "exit: 9 -> 0", LAMBDA),
    ("cpu-times-thread", "stderr: Exception", LAMBDA),
    ("cpu-times-thread", "stdout:  -> threads done", LAMBDA),
    ("cpu-times-thread", "sections:  -> CPU Time", LAMBDA),
    ("cpu-times-thread", "threads: ", LAMBDA),
    ("times-lambda", "exit: 9 -> 0", LAMBDA),
    ("times-lambda", "stderr: Exception", LAMBDA),
    ("times-lambda", "stdout:  -> 12350", LAMBDA),
    ("times-lambda", "sections:  -> CPU Time", LAMBDA),
    (
        "cpu-samples-times",
        "sections: CPU Samples -> CPU Samples, CPU Time",
        TITLES,
    ),
    ("err-help", "stdout: ", HELP),
    ("err-net-*", "files: java.hprof.txt.TMP -> ", NO_TEMPORARY),
    (
        "sigkill",
        "files: java.hprof java.hprof.TMP -> java.hprof",
        NO_TEMPORARY,
    ),
    (
        "logcheck",
        "files: java.hprof java.hprof.check.txt -> java.hprof",
        LOG,
    ),
    ("mon*", "-> MONITOR DUMP, MONITOR TIME", MONITOR_TIME),
    (
        "quit-monitor",
        "-> MONITOR DUMP, MONITOR TIME",
        MONITOR_TIME,
    ),
    ("monitor-samples", "samples: 37 rows -> 0", BLOCKED),
    ("quit-heap-*", "exit: 9 -> 0", SECOND_DUMP),
    ("quit-heap-*", "stderr: Dumping", SECOND_DUMP),
    (
        "quit-heap-*",
        "files: java.hprof java.hprof.TMP -> java.hprof",
        SECOND_DUMP,
    ),
    ("quit-heap-*", "sections: HEAP DUMP", SECOND_DUMP),
    ("loader-*", "objects of Loader$", UNLOADS),
    ("loader-*", "heap of ", UNLOADS),
    ("net-sites-alloc-gc", "live 0 -> ", SHARE),
    (
        "net-sites*",
        "in Alloc$Node.<init>:6 Alloc.garbage:18",
        LATER,
    ),
    ("net-ctl-cpu-on", "samples: 2 rows -> 0", OFF),
    (
        "net-badcmd",
        "stderr: HPROF ERROR: failed to recognize cmd 99",
        FATAL,
    ),
    ("net-badcmd", "stdout:  -> kept 3321", FATAL),
    ("net-badcmd", "sections:  -> SITES", FATAL),
    ("net-peer-close", "exit: 9 -> 0", FATAL),
    ("net-peer-close", "stderr: Dumping allocation sites", FATAL),
    (
        "net-peer-close",
        "words:  -> JAVA PROFILE",
        "section 6: the peer saw nothing for seconds",
    ),
    ("net-dump-without-heapdump", "exit: 9 -> 0", FATAL),
    ("net-dump-without-heapdump", "stderr: HPROF ERROR", FATAL),
    (
        "net-dump-without-heapdump",
        "sections:  -> HEAP DUMP",
        FATAL,
    ),
    ("net-dump-without-heapdump", "objects of Alloc$", FATAL),
    ("net-dump-without-heapdump", "heap of ", FATAL),
    (
        "threads-dump-bin",
        "heap of java.lang.Thread[] in Threads.main:5: 1 -> 0",
        UNREACHABLE,
    ),
    ("oom", "byte[] in Oom.main:1: live ", GARBAGE),
    ("oom", " lost: threads not counted", FULL),
    ("*", "class object: ", MIRROR),
    ("*", "Alloc$Node in Alloc$Node.clone:", CLONE),
    ("*", "int[] in Alloc.clones:", CLONE),
    ("*", "int[] in Alloc.multi:", INNER),
    ("*", "java.lang.String[] in Alloc.multi:", INNER),
    ("*", "java.lang.String[][] in Alloc.multi:", INNER),
    ("*", "calls of java.lang.ClassLoader.", CLASS_LOADING),
    ("*", ".<clinit>()V by ", CLASS_LOADING),
    ("*", "NOTE: the sites that are left out have ", CUT),
    (
        "cpu-samples-i1",
        "NOTE: CPU samples: one stack for ",
        SLOW_CLOCK,
    ),
    ("*", " lost: Java frames of samples", NOT_WALKED),
    (
        "*",
        " 1 lost: allocations at stacks that have one number",
        TOO_LONG,
    ),
    ("*", "NOTE: not counted: sun.text.resources.", NO_ROOM),
    (
        "*",
        "NOTE: 1 lost: counts of classes or methods that cannot be instrumented",
        NO_ROOM,
    ),
];

/// How many objects each gap hides, whatever the depth: what is explained is also exact.
const HIDDEN: &[(&str, u64)] = &[
    ("Alloc$Node in Alloc$Node.clone:", 200),
    ("int[] in Alloc.clones:", 50),
    ("int[] in Alloc.multi:", 30),
    ("java.lang.String[] in Alloc.multi:", 60),
    ("java.lang.String[][] in Alloc.multi:", 20),
];

/// Why there is this difference, if the tables know.
pub(crate) fn reason(case: &str, difference: &str) -> Option<&'static str> {
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(start) => case.starts_with(start),
        None => case == pattern,
    };
    let mut hidden = HIDDEN
        .iter()
        .filter(|(place, _)| difference.contains(place));
    if !hidden.all(|(_, count)| grew_by(difference, *count)) {
        return None;
    }
    let found = REASONS.iter();
    let found = found.filter(|(name, piece, _)| fits(name) && difference.contains(piece));
    found.map(|found| found.2).next()
}

/// Whether each `old -> new` in a line differs by `count`.
fn grew_by(line: &str, count: u64) -> bool {
    let words: Vec<&str> = line
        .split([' ', ',', ':'])
        .filter(|word| !word.is_empty())
        .collect();
    let mut arrows = words.windows(3).filter(|words| words[1] == "->");
    arrows.all(|words| {
        let (old, new) = (words[0].parse::<u64>(), words[2].parse::<u64>());
        matches!((old, new), (Ok(old), Ok(new)) if old + count == new)
    })
}

#[test]
fn a_gap_must_be_closed_exactly() {
    let check = |line, expected| assert_eq!(reason("any", line).is_some(), expected, "{line}");
    check(
        "sites 0 of int[] in Alloc.clones:12: live 0 -> 50, allocated 1 -> 51",
        true,
    );
    check(
        "sites 0 of int[] in Alloc.clones:12: live 0 -> 50, allocated 1 -> 52",
        false,
    );
    check(
        "sites 0 of int[] in Alloc.other:12: live 0 -> 50, allocated 1 -> 51",
        false,
    );
}
