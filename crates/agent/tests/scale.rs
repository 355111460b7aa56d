//! Programs with very many threads, classes and loaders: a tenth of them in an ordinary run, all in
//! the matrix.

use testkit::jvm::{Jdk, is_matrix};

use crate::common::{Lab, Ran};

/// Virtual threads that are there at the same time, and those of the short and of the long run.
fn sizes() -> [u64; 3] {
    match is_matrix() {
        true => [10_000, 100_000, 1_000_000],
        false => [1_000, 10_000, 100_000],
    }
}

fn many_threads(lab: &Lab, jdk: &Jdk, options: Option<&str>, [kind, all, size]: [&str; 3]) -> Ran {
    let classes = lab.compile("ManyThreads.java", 21).expect("compiles");
    // The heap is there from the beginning, and the compiler whose working memory comes and goes by
    // tens of megabytes is off: what the process grows by is something else.
    let heap = ["-Xms512m", "-Xmx512m", "-XX:+AlwaysPreTouch"];
    let flags = [heap[0], heap[1], heap[2], "-XX:TieredStopAtLevel=1"];
    let program = ["ManyThreads", kind, all, size];
    let ran = lab.run_in(jdk, classes.path(), options, &flags, &program);
    let end = format!("threads {all}\n");
    assert!(
        ran.stdout().ends_with(&end),
        "{options:?} on {}: {}{}",
        jdk.full_version,
        ran.stdout(),
        ran.stderr()
    );
    ran
}

/// A number that the program prints, in KiB.
fn printed(ran: &Ran, what: &str) -> u64 {
    let lines = ran.stdout();
    let mut found = lines.lines().filter_map(|line| line.strip_prefix(what));
    let number = found.next().and_then(|number| number.trim().parse().ok());
    number.unwrap_or_else(|| panic!("no {what} in {lines}"))
}

/// The sum of a column over the rows of a table that end with a name.
fn sum(profile: &str, name: &str, column: usize) -> u64 {
    let rows = profile.lines().filter(|row| row.ends_with(name));
    rows.filter_map(|row| row.split_whitespace().nth(column)?.parse::<u64>().ok())
        .sum()
}

/// Each thread makes five objects and calls as the program says.
fn check_counts(profile: &str, options: &str, threads: u64) {
    if options.starts_with("heap") {
        assert_eq!(
            sum(profile, " ManyThreads$Made", 6),
            5 * threads,
            "{options}"
        );
    } else {
        let eighth = threads.div_ceil(8);
        let deep = eighth * 151 + (threads - eighth) * 3;
        for (method, calls) in [("run", 1), ("step", 2), ("fail", 4)] {
            let name = format!(" ManyThreads.{method}");
            assert_eq!(
                sum(profile, &name, 3),
                calls * threads,
                "{options} {method}"
            );
        }
        assert_eq!(sum(profile, " ManyThreads.deep", 3), deep, "{options}");
    }
}

/// Sites or times of the program's own classes, stacks written out.
fn own_rows(profile: &str, column: usize) -> Vec<String> {
    let mut stacks = std::collections::HashMap::new();
    let mut lines = profile.lines().peekable();
    while let Some(line) = lines.next() {
        let serial = line.strip_prefix("TRACE ");
        if let Some(serial) = serial.and_then(|line| line.split(':').next()) {
            let mut stack = String::new();
            while let Some(frame) = lines.next_if(|line| line.starts_with('\t')) {
                stack += frame.trim();
                stack.push(' ');
            }
            stacks.insert(serial.to_owned(), stack);
        }
    }
    let rows = profile.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let name = fields
            .last()
            .filter(|name| name.starts_with("ManyThreads"))?;
        let stack = stacks.get(*fields.get(fields.len().checked_sub(2)?)?)?;
        Some(format!("{} {name} {stack}", fields.get(column)?))
    });
    let mut rows: Vec<String> = rows.filter(|row| !row.contains("main")).collect();
    rows.sort();
    rows
}

#[test]
fn virtual_threads_are_counted_as_platform_threads_are() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.jdks.iter().filter(|jdk| jdk.version >= 21) {
        for (options, column) in [
            ("heap=sites,cutoff=0,depth=2", 6),
            ("cpu=times,cutoff=0,depth=2", 3),
        ] {
            let [real, light] = ["platform", "virtual"].map(|kind| {
                let ran = many_threads(lab, jdk, Some(options), [kind, "600", "60"]);
                check_counts(&ran.profile(), options, 600);
                own_rows(&ran.profile(), column)
            });
            assert!(!real.is_empty(), "{options}");
            assert_eq!(real, light, "{options} on {}", jdk.full_version);
        }
    }
}

/// With `thread=y` the virtual threads of one name are one thread, whose stacks are its own.
#[test]
fn stacks_of_virtual_threads_are_kept_apart_by_name() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.jdks.iter().filter(|jdk| jdk.version >= 21) {
        for options in [
            "heap=sites,thread=y,cutoff=0",
            "cpu=times,thread=y,cutoff=0",
        ] {
            let ran = many_threads(lab, jdk, Some(options), ["virtual", "600", "60"]);
            let profile = ran.profile();
            check_counts(&profile, options, 600);
            let traces = profile.matches("\tManyThreads.step(").count();
            assert!((1..10).contains(&traces), "{traces} {options}");
        }
    }
}

#[test]
fn virtual_threads_that_have_ended_leave_nothing_behind() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let [size, short, long] = sizes();
    let run = |jdk: &Jdk, options: Option<&str>, threads: u64| {
        let ran = many_threads(
            lab,
            jdk,
            options,
            ["virtual", &threads.to_string(), &size.to_string()],
        );
        if let Some(options) = options {
            check_counts(&ran.profile(), options, threads);
        }
        ["heap", "resident"].map(|what| printed(&ran, what))
    };
    for jdk in lab.jdks.iter().filter(|jdk| jdk.version >= 21) {
        let [plain_heap, _] = run(jdk, None, short);
        for options in ["heap=sites,cutoff=0", "cpu=times,cutoff=0"] {
            let [_, before] = run(jdk, Some(options), short);
            let [heap, after] = run(jdk, Some(options), long);
            let more = heap.saturating_sub(plain_heap);
            let what = format!(
                "{options} on {}: {more} KiB of heap, resident {before} and {after} KiB",
                jdk.full_version
            );
            assert!(more <= 64 << 10, "{what}");
            assert!(after <= before + (8 << 10), "{what}");
        }
    }
}

/// The program, with the class that it defines under many names.
fn many_classes(lab: &Lab) -> tempfile::TempDir {
    let made = lab.compile("ManyClasses.java", 8).expect("compiles");
    let generated = lab.compile("Generated0000.java", 8).expect("compiles");
    let file = "Generated0000.class";
    std::fs::copy(generated.path().join(file), made.path().join(file)).expect("copied");
    made
}

/// Ten arrays and calls of methods for each class that is defined. No VM lets hidden ones be changed,
/// so what these make is not counted.
fn check_classes(lab: &Lab, jdk: &Jdk, options: &str, [what, count]: [&str; 2], classes: u64) {
    let made = many_classes(lab);
    let program = ["ManyClasses", what, count];
    let ran = lab.run_in(jdk, made.path(), Some(options), &["-Xmx512m"], &program);
    let on = format!("{options} {what} on {}", jdk.full_version);
    let end = format!("called {classes}\n");
    assert!(ran.stdout().ends_with(&end), "{on} {}", ran.stderr());
    let profile = ran.profile();
    let rows = own_rows_of(
        &profile,
        "Generated",
        if options.starts_with("heap") { 6 } else { 3 },
    );
    let counted = rows.iter().map(|row| row.0).sum::<u64>();
    let expected = if what == "hidden" { 0 } else { 10 * classes };
    assert_eq!(counted, expected, "{on}");
}

/// Counts of rows whose innermost frame is one of the ten methods of a generated class.
fn own_rows_of(profile: &str, prefix: &str, column: usize) -> Vec<(u64, String)> {
    let mut tops = std::collections::HashMap::new();
    let mut lines = profile.lines().peekable();
    while let Some(line) = lines.next() {
        let serial = line.strip_prefix("TRACE ");
        if let Some(serial) = serial.and_then(|line| line.split(':').next())
            && let Some(frame) = lines.next_if(|line| line.starts_with('\t'))
        {
            tops.insert(serial.to_owned(), frame.trim().to_owned());
        }
    }
    let rows = profile.lines().filter_map(|line| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let top = tops.get(*fields.get(fields.len().checked_sub(2)?)?)?;
        let is_one = top.starts_with(prefix) && top.contains(".m");
        let count = fields.get(column)?.parse().ok()?;
        is_one.then(|| (count, top.clone()))
    });
    rows.collect()
}

/// A build with debug assertions ends the process when a thread makes more than 8,192 calls of the VM while it holds the
/// state, which every other thread may need: some milliseconds. Here more classes than that are unloaded at once.
#[test]
fn ten_thousand_classes_that_are_unloaded_at_once_stop_no_thread() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let made = many_classes(lab);
    for jdk in &lab.jdks {
        let program = ["ManyClasses", "kept", "100"];
        let flags = ["-Xmx512m"];
        let ran = lab.run_in(jdk, made.path(), Some("cpu=samples"), &flags, &program);
        let (out, shown) = (ran.stdout(), ran.stderr());
        assert!(
            ran.output.status.success() && out.ends_with("called 10000\n"),
            "{}: {out}{shown}",
            jdk.full_version
        );
    }
}

/// The stream of VM events gives back what it knows of a class that is unloaded: the names of all are more than the limit.
#[test]
fn classes_that_come_and_go_have_names_in_the_stream_within_its_memory() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let made = many_classes(lab);
    for jdk in lab.some_jdks() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("events");
        let options = format!("events=256,depth=8,memory=32m,file={}", path.display());
        // So that classes are unloaded often.
        let flags = ["-Xmx64m", "-XX:MaxMetaspaceSize=32m"];
        let program = ["ManyClasses", "loaders", "200"];
        let ran = lab.run_in(jdk, made.path(), Some(&options), &flags, &program);
        let on = format!("on {}: {}", jdk.full_version, ran.stderr());
        assert!(ran.stdout().ends_with("called 20000\n"), "{on}");
        let events = crate::vm_events::Recording::read(&path);
        let what = format!(
            "{} unloaded of {}, {} without a name of {}",
            events.unloaded,
            events.class_count(),
            events.nameless,
            events.allocations
        );
        assert!(events.ended && events.unloaded > 8_000, "{what} {on}");
        assert!(events.nameless * 100 < events.allocations, "{what} {on}");
    }
}

/// A profile gives back what it knows of a class that is unloaded, unless a stack or a row refers to it: the names of
/// all are more than the limit.
#[test]
fn classes_that_come_and_go_without_records_leave_nothing_in_the_memory_of_a_profile() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let made = many_classes(lab);
    for jdk in lab.some_jdks() {
        // Nothing is recorded of the classes.
        let options = "monitor=y,format=b,modern=y,memory=24m,file=out";
        let flags = ["-Xmx64m", "-XX:MaxMetaspaceSize=32m"];
        let program = ["ManyClasses", "loaders", "400"];
        let ran = lab.run_in(jdk, made.path(), Some(options), &flags, &program);
        let on = format!("on {}: {}", jdk.full_version, ran.stderr());
        assert!(ran.stdout().ends_with("called 40000\n"), "{on}");
        let bytes = std::fs::read(ran.folder.path().join("out")).expect("a profile");
        let has = |text: &str| {
            bytes
                .windows(text.len())
                .any(|part| part == text.as_bytes())
        };
        assert!(!has("NOTE: memory="), "{on}");
        let ids = hprof::Header::parse(&bytes).expect("a header").id_size;
        let [mut loaded, mut unloaded] = [0; 2];
        let map = hprof::map_file(&bytes, |record| match record.decode(ids) {
            Some(hprof::Record::LoadClass { .. }) => loaded += 1,
            Some(hprof::Record::UnloadClass { .. }) => unloaded += 1,
            _ => {}
        });
        assert!(!map.expect("a profile").diagnostics.any_damage(), "{on}");
        assert!(
            loaded > 40_000 && unloaded > 20_000,
            "{loaded} {unloaded} {on}"
        );
    }
}

#[test]
fn classes_that_come_and_go_are_counted_and_cost_little() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let part = if is_matrix() { 1 } else { 10 };
    let (hidden, loaders, methods) = (20_000 / part, 1_000 / part, 50_000 / part);
    for jdk in &lab.jdks {
        // A million stacks of a hundred thousand classes are to be named, for which the default limit is too low.
        for options in [
            "heap=sites,cutoff=0,memory=8g",
            "cpu=times,cutoff=0,memory=8g",
        ] {
            let text = |n: u64| n.to_string();
            if jdk.version >= 17 {
                check_classes(lab, jdk, options, ["hidden", &text(hidden)], hidden);
            }
            check_classes(
                lab,
                jdk,
                options,
                ["loaders", &text(loaders)],
                loaders * 100,
            );
            check_classes(lab, jdk, options, ["methods", &text(methods)], methods / 10);
        }
    }
}
