//! Who listens to the agent: `tenure listen`, and the commands typed there.

use crate::common::stage::*;

#[test]
fn threads_are_sampled_as_a_listener_orders() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        // Samples at safepoints, which were not requested at the start, and by timers.
        for options in ["heap=sites", "heap=sites,cpu=samples,interval=1"] {
            let Some(stage) = stage(lab) else { continue };
            let (mut listener, port) = stage.listen();
            let options = format!("{options},depth=8,net=127.0.0.1:{port}");
            let mut program = stage.patient(jdk, Some((&lab.agent, &options)));
            program.type_line("twins");
            program.expect("done twins");
            let got = stage.got();
            // Each thread reports its own start, so that either can be the first.
            let is_known = |text: &str| {
                let id = |name| thread_field(text, name, "id = ");
                id("left").is_some() && id("right").is_some()
            };
            let text = wait_for(&got, "threads", is_known);
            let left = thread_field(&text, "left", "id = ")
                .expect("an id")
                .to_owned();
            let right = thread_field(&text, "right", "obj=")
                .expect("an object")
                .to_owned();
            let mut tables = 0;
            let mut check = |orders: &[&str], expected: [bool; 2]| {
                for order in orders {
                    listener.type_line(order);
                }
                // The answer says that the orders have been carried out.
                listener.type_line("clear samples");
                listener.type_line("samples");
                tables += 1;
                let is_done = |n| move |text: &str| text.matches("CPU SAMPLES END").count() == n;
                wait_for(&got, "samples", is_done(tables));
                program.type_line("both");
                program.expect("done both");
                listener.type_line("samples");
                tables += 1;
                let text = wait_for(&got, "samples", is_done(tables));
                let found =
                    ["Patient.left(", "Patient.right("].map(|frame| samples_under(&text, frame));
                assert_eq!(
                    found.map(|count| count > 0),
                    expected,
                    "{orders:?} {options} {found:?}"
                );
            };
            check(&["sampling on"], [true, true]);
            check(&[&format!("sampling off {left}")], [false, true]);
            check(&["sampling off"], [false, false]);
            check(&[&format!("sampling on 0x{right}")], [false, true]);
            check(&[&format!("sampling on {left}")], [true, true]);
            check(&[&format!("sampling off 0x{right}")], [true, false]);
            check(&["sampling off", "sampling on 299999"], [false, false]);
            let text = std::fs::read_to_string(&got).expect("text");
            assert!(text.contains("NOTE: a control command names no thread: 299999"));
            program.type_line("end");
            assert_eq!(program.code(), Some(3));
        }
    }
}

#[test]
fn stacks_are_as_deep_as_a_listener_orders() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        let Some(stage) = stage(lab) else { continue };
        let (mut listener, port) = stage.listen();
        let options = format!("heap=sites,cpu=times,cutoff=0,depth=2,net=127.0.0.1:{port}");
        let mut program = stage.patient(jdk, Some((&lab.agent, &options)));
        let got = stage.got();
        for (tables, depth) in [(1, 2), (2, 12), (3, 1), (4, 30), (5, 3)] {
            if tables > 1 {
                listener.type_line(&format!("depth {depth}"));
            }
            listener.type_line("sites 0");
            let is_done = |n| move |text: &str| text.matches("SITES END").count() == n;
            wait_for(&got, "sites", is_done(2 * tables - 1));
            program.type_line("deep");
            program.expect("done deep");
            listener.type_line("sites 0");
            let text = wait_for(&got, "sites", is_done(2 * tables));
            let table = text.rsplit("SITES BEGIN").next().unwrap_or_default();
            let rows = table.lines().filter(|line| line.ends_with(" Patient$Deep"));
            let traces = rows.filter_map(|row| row.split_whitespace().nth(7));
            // The constructor, 21 calls of deep, and main.
            let depths: Vec<usize> = traces.map(|trace| frames_of(&text, trace).len()).collect();
            assert!(depths.contains(&depth.min(23)), "{depth}: {depths:?}");
            assert_eq!(depths.len(), tables, "one more site for each depth");
        }
        program.type_line("end");
        assert_eq!(program.code(), Some(3));
        let text = wait_for(&got, "times", |text| text.contains("CPU TIME (ms) END"));
        let of_deep = text.lines().filter(|line| line.ends_with(" Patient.deep"));
        let traces = of_deep.filter_map(|row| row.split_whitespace().nth(4));
        let deepest = traces.map(|trace| frames_of(&text, trace).len()).max();
        // main was open before the order, and knows no more than it did then.
        assert!((20..=30).contains(&deepest.unwrap_or(0)), "{deepest:?}");
    }
}

#[test]
fn a_listener_gets_what_it_asks_for_when_it_asks() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        let Some(stage) = stage(lab) else { continue };
        let (mut listener, port) = stage.listen();
        let options = format!("heap=all,cpu=samples,interval=2,net=127.0.0.1:{port}");
        let mut program = stage.patient(jdk, Some((&lab.agent, &options)));
        let got = stage.got();
        let sites = |n: usize| move |text: &str| text.matches("SITES END").count() == n;

        listener.type_line("sites");
        let text = wait_for(&got, "sites", sites(1));
        assert_eq!(objects_of(&text, " Patient$Early"), Some((1000, 1000)));
        // The agent stops counting and continues.
        listener.type_line("alloc off");
        listener.type_line("traces");
        listener.type_line("sites");
        wait_for(&got, "sites", sites(2));
        program.type_line("late");
        program.expect("done late");
        listener.type_line("alloc on");
        listener.type_line("sites");
        let text = wait_for(&got, "sites", sites(3));
        assert_eq!(
            objects_of(&text, " Patient$Late"),
            None,
            "they were not to be counted"
        );
        // From here on with traces of one frame.
        listener.type_line("depth 1");
        listener.type_line("sites");
        wait_for(&got, "sites", sites(4));
        program.type_line("late");
        program.expect("done late");
        listener.type_line("sites");
        let text = wait_for(&got, "sites", sites(5));
        assert_eq!(objects_of(&text, " Patient$Late").map(|o| o.1), Some(500));
        // Garbage is collected on request.
        program.type_line("forget");
        program.expect("done forget");
        listener.type_line("gc");
        listener.type_line("sites");
        let text = wait_for(&got, "sites", sites(6));
        assert_eq!(objects_of(&text, " Patient$Early"), Some((0, 1000)));
        listener.type_line("clear sites");
        listener.type_line("allocated");
        let text = wait_for(&got, "sites", sites(7));
        let left = objects_of(&text, " Patient$Early").unwrap_or_default();
        assert_eq!(left, (0, 0), "cleared");
        // It counts from there on, and what was made before dies without being counted.
        program.type_line("late");
        program.expect("done late");
        listener.type_line("gc");
        listener.type_line("sites");
        let text = wait_for(&got, "sites", sites(8));
        assert_eq!(objects_of(&text, " Patient$Late"), Some((500, 500)));
        program.type_line("forget");
        program.expect("done forget");
        listener.type_line("gc");
        listener.type_line("allocated");
        let text = wait_for(&got, "sites", sites(9));
        assert_eq!(objects_of(&text, " Patient$Late"), Some((0, 500)));
        // Samples, on command.
        program.type_line("spin");
        program.expect("done spin");
        listener.type_line("samples");
        let text = wait_for(&got, "samples", |text| text.contains("CPU SAMPLES END"));
        assert!(text.contains("Patient.spin"), "{text}");
        listener.type_line("clear samples");
        listener.type_line("dump");
        wait_for(&got, "a dump", |text| text.contains("HEAP DUMP END"));
        listener.type_line("end");
        listener.type_line("exit");
        program.type_line("end");
        program.expect("kept 0");
        assert_eq!(program.code(), Some(3), "no command after the end is heard");
        assert_eq!(listener.code(), Some(0));
        let text = wait_for(&got, "the last dump", |text| {
            text.contains("CPU SAMPLES END")
        });
        assert_eq!(
            text.matches("HEAP DUMP END").count(),
            2,
            "on command and at the end"
        );
    }
}

#[test]
fn a_binary_stream_is_a_dump_that_validates() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        let Some(stage) = stage(lab) else { continue };
        let (mut listener, port) = stage.listen();
        let options = format!("heap=all,format=b,net=127.0.0.1:{port}");
        let mut program = stage.patient(jdk, Some((&lab.agent, &options)));
        for command in ["summary", "sites", "gc", "traces", "dump", "summary"] {
            listener.type_line(command);
        }
        let count = |tag: u8| {
            let bytes = std::fs::read(stage.got()).unwrap_or_default();
            let map = hprof::map_file(&bytes, |_| {}).ok();
            let counts = map.map(|map| map.records).unwrap_or_default();
            counts
                .iter()
                .find(|row| row.0 == tag)
                .map_or(0, |row| row.1)
        };
        // HEAP SUMMARY twice, the second behind the dump.
        wait_for(&stage.got(), "two summaries", |_| count(0x07) == 2);
        program.type_line("late");
        program.expect("done late");
        program.type_line("end");
        program.expect("kept 1500");
        assert_eq!(program.code(), Some(3));
        assert_eq!(listener.code(), Some(0));
        let validated = stage.run(&["validate", "got"]);
        let printed = String::from_utf8_lossy(&validated.stdout).into_owned();
        assert_eq!(validated.status.code(), Some(0), "{printed}");
    }
}

#[test]
fn an_order_to_exit_ends_the_program() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    let Some(jdk) = lab.jdks.last() else { return };
    let Some(stage) = stage(lab) else { return };
    let (mut listener, port) = stage.listen();
    let options = format!("heap=sites,net=127.0.0.1:{port}");
    let mut program = stage.patient(jdk, Some((&lab.agent, &options)));
    listener.type_line("exit");
    assert_eq!(program.code(), Some(0));
    assert_eq!(listener.code(), Some(0));
    let printed = std::io::read_to_string(program.stderr()).expect("text");
    assert_eq!(printed, "HPROF: received exit event, exiting ...\n");
}

#[test]
fn what_was_there_when_sites_were_cleared_dies_uncounted() {
    let Some(lab) = crate::common::lab() else {
        return;
    };
    for jdk in lab.some_jdks() {
        for mode in ["heap=sites", "heap=sites,exact=y,thread=y", "heap=all"] {
            let Some(stage) = stage(lab) else { continue };
            let (mut listener, port) = stage.listen();
            let options = format!("{mode},cutoff=0,net=127.0.0.1:{port}");
            let mut program = stage.patient(jdk, Some((&lab.agent, &options)));
            let got = stage.got();
            let mut tables = 0;
            let mut late = |program: &mut Talk, lines: &[&str], orders: &[&str]| {
                for line in lines {
                    program.type_line(line);
                    program.expect(&format!("done {line}"));
                }
                for order in orders {
                    listener.type_line(order);
                }
                tables += 1;
                let is_done = |text: &str| text.matches("SITES END").count() == tables;
                objects_of(&wait_for(&got, "sites", is_done), " Patient$Late")
            };
            let what = format!("{mode} on {}", jdk.full_version);
            let found = late(&mut program, &["late"], &["gc", "sites 0"]);
            assert_eq!(found, Some((500, 500)), "{what}");
            let found = late(&mut program, &[], &["clear sites", "sites 0"]);
            assert!(
                found.is_none_or(|found| found == (0, 0)),
                "{what}: {found:?}"
            );
            let found = late(&mut program, &["late"], &["sites 0"]);
            assert_eq!(found, Some((500, 500)), "{what}");
            // The 500 that the table does not have die, and its own live on.
            let found = late(&mut program, &["forget old"], &["gc", "sites 0"]);
            assert_eq!(found, Some((500, 500)), "{what}");
            let found = late(&mut program, &["late"], &["clear sites", "gc", "sites 0"]);
            assert!(
                found.is_none_or(|found| found == (0, 0)),
                "{what}: {found:?}"
            );
            let found = late(&mut program, &["late", "forget"], &["gc", "allocated"]);
            assert_eq!(found, Some((0, 500)), "{what}");
            program.type_line("end");
            assert_eq!(program.code(), Some(3), "{what}");
        }
    }
}
