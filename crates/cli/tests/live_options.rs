//! Class filters change what is recorded, while the program runs.

use crate::watched::{Page, Program, lab, run_live};
use serde_json::Value;

/// Objects of each `K` in a round of `Chosen.java`, and how many of them are kept.
const MADE: [u64; 10] = [60, 100, 160, 240, 320, 400, 500, 600, 800, 1000];
const KEPT: [u64; 10] = [20, 50, 80, 60, 160, 100, 250, 150, 400, 250];
const ROUNDS: usize = 20;

fn with_program(test: &str, flags: &[&str], body: impl Fn(&mut Program, &Page, u32)) {
    crate::watched::with_program(test, "Chosen", flags, body);
}

fn options(page: &Page, text: &str) {
    let text = text.replace(' ', "%20").replace('\n', "%0A");
    page.command(&format!("options?text={text}"));
    // The agent takes up one command after the other.
    page.snapshot();
}

/// The rows of a class by site: allocations and stack of each.
fn sites(page: &Page, class: &str) -> Vec<(i64, String)> {
    let answer = page.json(&format!(
        "allocations?filter=Chosen${class}&by=site&sort=allocations"
    ));
    let rows = answer["rows"].as_array().expect("rows");
    let of_class = rows
        .iter()
        .filter(|row| row["name"] == format!("Chosen${class}"));
    let row = |row: &Value| {
        let stack = row["stack"].to_string();
        (row["allocations"].as_i64().expect("a number"), stack)
    };
    of_class.map(row).collect()
}

fn class(page: &Page, name: &str) -> Option<Value> {
    let answer = page.json(&format!("classes?source=recording&filter=Chosen${name}"));
    let row = answer["rows"].get(0).cloned();
    row.filter(|row| row["class"] == format!("Chosen${name}"))
}

#[test]
fn what_is_off_is_not_recorded_and_stacks_only_where_they_are_wanted() {
    with_program("class filters", &[], |program, page, _| {
        page.command("record?mode=full");
        page.counting(program);
        program.send("a 1000");
        page.snapshot();
        assert_eq!(class(page, "A").expect("a row")["total"], 1000);
        options(page, "* Chosen$A off");
        program.send("a 500");
        page.snapshot();
        assert!(class(page, "A").is_none());
        options(page, "* Chosen$* count");
        program.send("a 70");
        program.send("b 300");
        page.snapshot();
        // The 500 were not counted, and the stacks of the 70 and the 300 are not known.
        options(page, "");
        program.send("a 9");
        program.send("other 600");
        page.command("gc");
        page.snapshot();
        let row = class(page, "A").expect("a row");
        let expected = [1079, 1079, 100];
        let names = ["total", "live", "sample_percent"];
        assert_eq!(
            names.map(|name| row[name].as_f64()),
            expected.map(|n| Some(f64::from(n)))
        );
        assert!(row["live_interval"].is_null(), "{row}");
        let rows = sites(page, "A");
        let counts: Vec<i64> = rows.iter().map(|row| row.0).collect();
        // The 9 are made where the 1000 were, if the loop has one line.
        assert_eq!(counts, [1009, 70], "{rows:?}");
        assert!(
            rows[0].1.contains("Chosen.makeA") && rows[1].1 == "[]",
            "{rows:?}"
        );
        let rows = sites(page, "B");
        assert_eq!(rows, [(300, "[]".to_owned())]);
    });
}

#[test]
fn thinned_counts_state_an_interval_that_holds_the_truth() {
    with_program("shares of classes", &[], |program, page, _| {
        page.command("record?mode=full");
        page.counting(program);
        options(page, "* Chosen$K* stack,ratio=0.1");
        program.send("a 1000");
        program.send(&format!("rounds {ROUNDS}"));
        program.send("other 600");
        page.command("gc");
        page.snapshot();
        // What is not thinned out is exact.
        let row = class(page, "A").expect("a row");
        assert_eq!((&row["total"], &row["live"]), (&1000.into(), &1000.into()));
        let answer = page.json("classes?loaders=1&source=recording&filter=Chosen$K&limit=1000");
        let rows = answer["rows"].as_array().expect("rows");
        let (mut held, mut bias) = (0, [0.0; 2]);
        for (kind, truth) in MADE.iter().zip(KEPT).enumerate() {
            let name = format!("Chosen$K{kind}");
            let of_kind = rows.iter().filter(|row| row["class"] == *name);
            for row in of_kind {
                for (at, (value, truth)) in
                    [("total", *truth.0), ("live", truth.1)].iter().enumerate()
                {
                    let end = |at: usize| {
                        row[format!("{value}_interval")][at]
                            .as_u64()
                            .expect("an end")
                    };
                    held += usize::from(end(0) <= *truth && *truth <= end(1));
                    bias[at] += row[*value].as_f64().expect("a number");
                }
                let percent = row["sample_percent"].as_f64().expect("a number");
                assert!((percent - 10.0).abs() < 0.5, "{row}");
            }
        }
        let all = 2 * ROUNDS * MADE.len();
        // Of intervals that hold 95 of 100, five standard deviations fewer.
        assert!(held * 100 >= all * 89, "{held} of {all}");
        let made: u64 = MADE.iter().sum::<u64>() * ROUNDS as u64;
        let kept: u64 = KEPT.iter().sum::<u64>() * ROUNDS as u64;
        for (sum, truth) in bias.iter().zip([made, kept]) {
            // Five standard deviations of a sum of so many.
            let truth = truth as f64;
            assert!(
                (sum - truth).abs() < 5.0 * (truth * 9.0).sqrt(),
                "{sum} {truth}"
            );
        }
    });
}

#[test]
fn shares_and_sampled_bytes_make_one_chance() {
    with_program("shares of samples", &[], |program, page, version| {
        if version < 11 {
            return;
        }
        // A sample cannot stand for more bytes than the VM's sampler leaves out.
        for interval in ["0", "2147483648", "18446744073709551615"] {
            let command = format!("api/v1/commands/record?mode=sampled&interval={interval}");
            let (status, body) = page.ask("POST", &command);
            assert_eq!(status, 400, "{body}");
            assert!(body.contains("expected 1 to 2147483647 bytes"), "{body}");
        }
        page.command("record?mode=sampled&interval=512");
        options(page, "* Chosen$A ratio=0.25\n* Chosen$B off");
        // A thread's next sample is as far away as it was before the interval was set: half a
        // mebibyte on average.
        program.send("other 1000000");
        program.send("a 60000");
        program.send("b 60000");
        page.snapshot();
        let row = class(page, "A").expect("a row");
        let end = |at: usize| row["live_interval"][at].as_f64().expect("an end");
        // Wider than 95 %: one in a million fails at random.
        let middle = row["live"].as_f64().expect("a number");
        let (low, high) = (
            middle - 2.5 * (middle - end(0)),
            middle + 2.5 * (end(1) - middle),
        );
        assert!(low < 60_000.0 && 60_000.0 < high, "{row}");
        // 16 bytes of 512, and a quarter of those.
        let chance = -(-16.0f64 / 512.0).exp_m1() * 25.0;
        let percent = row["sample_percent"].as_f64().expect("a number");
        assert!((percent / chance - 1.0).abs() < 0.05, "{percent} {chance}");
        options(page, "");
        assert!(class(page, "B").is_none());
    });
}

/// Rows of a class by who made its objects: numbers made.
fn makers(page: &Page, name: &str) -> Vec<(String, u64)> {
    let asked = format!("classes?contexts=1&source=recording&filter=Chosen${name}&sort=total");
    let answer = page.json(&asked);
    let rows = answer["rows"].as_array().expect("rows").iter();
    let row = |row: &Value| {
        let context = row["context"].as_str().expect("a context").to_owned();
        (context, row["total"].as_u64().expect("a number"))
    };
    rows.map(row).collect()
}

#[test]
fn who_makes_objects_is_recorded_where_it_is_asked_for() {
    with_program("makers of objects", &[], |program, page, version| {
        page.command("record?mode=full");
        page.counting(program);
        program.send("a 5");
        options(page, "* Chosen$A stack,context");
        program.send("thread 40 one");
        program.send("thread 60 two");
        let mut expected = vec![
            ("two (makers)", 60),
            ("one (makers)", 40),
            ("(not recorded)", 5),
        ];
        if version >= 21 {
            program.send("virtual 35");
            expected.insert(0, ("virtual threads without a name", 70));
        }
        page.snapshot();
        let expected: Vec<_> = expected
            .iter()
            .map(|one| (one.0.to_owned(), one.1))
            .collect();
        assert_eq!(makers(page, "A"), expected);
        let groups = page.json("allocations?by=context&filter=Chosen$A");
        let of = |name: &str| {
            let mut rows = groups["rows"].as_array().expect("rows").iter();
            rows.find(|row| row["name"] == name)
                .map(|row| row["allocations"].clone())
        };
        assert!(
            of("one (makers)").is_some_and(|made| made.as_u64() >= Some(40)),
            "{groups}"
        );
        // Instances know it, too, in the program and in a heap dump.
        let made_by = |source: &str| {
            let asked = format!("instances?source={source}&class=Chosen$A&limit=1000");
            let list = page.json(&asked);
            let rows = list["rows"].as_array().expect("rows").iter();
            rows.filter(|row| row["context"] == "one (makers)").count()
        };
        assert_eq!(made_by("live"), 40);
        page.command("dump");
        page.until("state", |state| state["dumps"][0]["stage"] == "ready");
        assert_eq!(made_by("dump"), 40);
        let sites = page.json("allocations?by=site&filter=Chosen$A&sort=allocations");
        assert!(
            sites.to_string().contains("\"context\":\"one (makers)\""),
            "{sites}"
        );
    });
}

#[test]
fn a_factory_of_the_program_says_what_is_recorded_and_cannot_stop_it() {
    with_program("options factory", &[], |program, page, _| {
        page.command("record?mode=full");
        page.counting(program);
        // A factory is code of the program, which runs only when that is allowed.
        options(page, "* Chosen$A factory=Chosen$Config");
        page.hears("which only own=y allows; default options hold");
        page.command("own?on=1");
        options(
            page,
            "* Chosen$A factory=Chosen$Config\n* Chosen$B factory=Chosen$Config\n* Chosen$K0 factory=Chosen$Config",
        );
        // The factory is asked in the background; who makes B is recorded once it has answered.
        page.until_counted(
            "classes?contexts=1&source=recording&filter=Chosen$B",
            |answer| {
                program.send("a 1");
                program.send("b 1");
                answer.to_string().contains("main (main)")
            },
        );
        let total = |name: &str| {
            let row = class(page, name);
            row.map_or(0, |row| row["total"].as_u64().expect("a number"))
        };
        // What it leaves out is not shown, and what it says of B holds for its instances.
        page.until_counted("classes?source=recording&filter=Chosen$A", |answer| {
            answer["count"] == 0
        });
        let list = page.json("instances?source=live&class=Chosen$B");
        let names = ["size", "capacity", "born_ms", "context"];
        let rows = list["rows"].as_array().expect("rows");
        let known = names.map(|name| rows.iter().any(|row| !row[name].is_null()));
        assert_eq!(known, [false, false, false, true], "{list}");
        let has_stack = |row: &Value| {
            row["stack"]
                .as_array()
                .is_none_or(|stack| !stack.is_empty())
        };
        assert!(!rows.iter().any(has_stack), "{list}");
        assert_eq!(page.ask("GET", "api/v1/instances?class=Chosen$A").0, 404);
        program.send("a 300");
        program.send("k 7");
        page.snapshot();
        // One that throws leaves things as they are by default.
        page.hears("Chosen$Config.getOptions(Chosen$K0): java.lang.IllegalStateException: no idea");
        assert_eq!(total("K0"), 7);
        options(page, "");
        let before = total("A");
        assert!(before < 300, "{before}");
        // So does one that does not return, or is not there.
        options(
            page,
            "* Chosen$A factory=Chosen$Sleepy\n* Chosen$B factory=not.There",
        );
        program.send("a 50");
        page.hears("Chosen$Sleepy.getOptions does not return");
        program.send("b 20");
        page.snapshot();
        assert_eq!(total("A"), before + 50);
        options(page, "");
        program.send("a 6");
        page.snapshot();
        assert_eq!(total("A"), before + 56);
        assert!(!page.json("state").to_string().contains("\"ended\":true"));
    });
}

#[test]
fn a_file_of_options_is_read_again_and_a_broken_one_says_where() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("classes.txt");
    let path = file.to_str().expect("text");
    let write = |text: &str| std::fs::write(&file, text).expect("written");
    write("# nothing of A\n* Chosen$A off\n");
    let flags = ["--record", "full", "--classes", path];
    with_program("file of options", &flags, |program, page, _| {
        page.until("options", |answer| {
            answer["text"].to_string().contains("Chosen$A off")
        });
        page.counting(program);
        page.snapshot();
        program.send("a 100");
        program.send("b 100");
        page.snapshot();
        assert!(class(page, "A").is_none());
        assert_eq!(class(page, "B").expect("a row")["total"], 100);
        write("* Chosen$B off\n");
        page.until("options", |answer| answer["text"] == "* Chosen$B off\n");
        page.snapshot();
        program.send("a 30");
        program.send("b 30");
        page.snapshot();
        assert_eq!(class(page, "A").expect("a row")["total"], 30);
        write("* Chosen$B off\n* Chosen$A nonsense\n");
        page.hears("classes.txt: line 2: nonsense");
        assert_eq!(page.json("options")["text"], "* Chosen$B off\n");
        program.send("a 5");
        page.snapshot();
        assert_eq!(class(page, "A").expect("a row")["total"], 35);
        assert!(class(page, "B").is_none());
        write("# nothing of A\n* Chosen$A off\n");
    });
    // A file that is broken from the beginning: nothing is started.
    write("* Chosen$A off\n* Chosen$B\n");
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_tenure"))
        .args([
            "run",
            "--live",
            "--no-browser",
            "--classes",
            path,
            "--",
            "echo",
            "started",
        ])
        .output()
        .expect("it runs");
    let printed = String::from_utf8_lossy(&run.stderr);
    assert_eq!(run.status.code(), Some(2), "{printed}");
    assert!(
        printed.contains("classes.txt: line 2: expected MODULE CLASS OPTIONS"),
        "{printed}"
    );
    assert!(run.stdout.is_empty());
}

#[test]
fn notes_of_the_agent_are_on_the_timeline_once() {
    let Some(lab) = lab("notes of the agent") else {
        return;
    };
    let Some(jdk) = lab.jdks.last() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let flags = ["--record", "full", "--agent-memory", "16m"];
    let (mut program, page) = run_live(lab, jdk, folder.path(), &flags);
    page.counting(&mut program);
    // A stack of 14 methods takes over a kilobyte.
    program.send("stacks 14");
    let notes = |timeline: &Value| {
        let events = timeline["events"].as_array().cloned().unwrap_or_default();
        let texts = events.into_iter().filter_map(|event| {
            let text = event["text"].as_str()?;
            text.starts_with("Agent: memory= is reached: at most")
                .then(|| text.to_owned())
        });
        texts.collect::<Vec<_>>()
    };
    page.until_counted("timeline?points=10", |timeline| !notes(timeline).is_empty());
    program.send("nothing");
    page.snapshot();
    let timeline = page.json("timeline?points=10");
    assert_eq!(notes(&timeline).len(), 1, "{timeline}");
    program.child.kill().expect("killed");
}
