//! The live view in a terminal: its state machine by keys, its drawing on screens of several sizes,
//! and the program on a real terminal with a real JVM.

use crate::terminal::Terminal;
use crate::watched::{Lab, Program, java, lab};
use cli::watch::app::{Action, Watch};
use cli::watch::draw::draw;
use cli::watch::question::Question;
use cli::watch::sheet::{Row, Sheet};
use cli::watch::view::View;
use live_analysis::metrics;
use live_analysis::timeline::{Event, EventKind};
use live_session::recording::state::TimelineAnswer;
use live_session::recording::status::Status;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};
use std::process::{Command, Stdio};

fn press(watch: &mut Watch, keys: &str) -> Option<Action> {
    let mut last = None;
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '<' => KeyCode::Backspace,
            '→' => KeyCode::Right,
            '←' => KeyCode::Left,
            '↓' => KeyCode::Down,
            c => KeyCode::Char(c),
        };
        last = watch.key(code, KeyModifiers::NONE, 5_000);
    }
    last
}

fn row(time_ms: u64) -> metrics::Row {
    let mut row = metrics::Row::new(time_ms);
    row.set("old_bytes", 30e6);
    row.set("eden_bytes", 10e6 + time_ms as f64);
    row.set("heap_committed_bytes", 64e6);
    row.set("threads", 7.0);
    row
}

fn timeline() -> TimelineAnswer {
    let gc = EventKind::Gc {
        collector: "Copy".to_owned(),
        count: 1,
        pause_ms: 1.0,
        cause: "Allocation Failure".to_owned(),
    };
    TimelineAnswer {
        schema: "",
        metrics: &metrics::METRICS,
        rows: (0..40).map(|n| row(n * 250)).collect(),
        events: vec![Event {
            id: 0,
            time_ms: 4000,
            kind: gc,
        }],
    }
}

fn page(watch: &mut Watch, width: u16, height: u16) -> String {
    let mut terminal = ratatui::Terminal::new(TestBackend::new(width, height)).unwrap();
    let timeline = timeline();
    terminal
        .draw(|frame| draw(watch, &timeline, frame, false))
        .unwrap();
    let buffer = terminal.backend().buffer().clone();
    let rows = buffer.content().chunks(usize::from(width));
    let row = |r: &[ratatui::buffer::Cell]| r.iter().map(|c| c.symbol()).collect::<String>();
    rows.map(|r| row(r) + "\n").collect()
}

fn some_watch() -> Watch {
    Watch::new(Status {
        pid: 4711,
        name: "demo.\x1b[31mMain".to_owned(),
        rows: vec![row(9750)],
        interval_ms: 250,
        ..Status::default()
    })
}

fn answer(question: &Question) -> Sheet {
    let columns = question.view.columns();
    let cells = columns.iter().enumerate();
    let row = |n: usize, details: Vec<String>| Row {
        cells: cells
            .clone()
            .map(|(at, _)| (at * 7 + n).to_string())
            .collect(),
        name: format!("a.very.long.name.of.a.package.that.goes.on.and.on.Class{n}"),
        key: format!("a.Class{n}"),
        details,
    };
    let mut rows: Vec<Row> = (0..50).map(|n| row(n, Vec::new())).collect();
    if question.by == "site" {
        rows[0] = row(
            0,
            (0..40).map(|n| format!("a.B.frame{n}(B.java:1)")).collect(),
        );
    }
    Sheet {
        heading: "50 rows".to_owned(),
        rows,
        empty: "none",
    }
}

/// Gives the answer to what is asked at the moment.
fn answered(watch: &mut Watch) {
    let question = watch.question();
    let sheet = answer(&question);
    watch.take(question, Ok(sheet));
}

#[test]
fn keys_choose_order_groups_filter_range_and_what_is_behind_a_row() {
    let mut watch = some_watch();
    press(&mut watch, "i");
    answered(&mut watch);
    assert_eq!(
        (watch.question().sort, watch.question().up),
        ("live_bytes", false)
    );
    press(&mut watch, "→");
    assert_eq!(watch.question().sort, "capacity_bytes");
    press(&mut watch, "←←u");
    assert_eq!(
        (watch.question().sort, watch.question().up),
        ("bytes_each", true)
    );
    // Beyond the last column is the name, then the first again.
    press(&mut watch, &"→".repeat(12));
    assert_eq!(watch.question().sort, "name");
    press(&mut watch, "→");
    assert_eq!(watch.question().sort, "sample_percent");
    press(&mut watch, "bbb");
    assert_eq!(watch.question().by, "vm");
    press(&mut watch, "↓↓\n");
    assert_eq!(
        (watch.view(), watch.question().class.as_str()),
        (View::Objects, "a.Class2")
    );
    press(&mut watch, "<");
    assert_eq!(watch.view(), View::Instances);

    press(&mut watch, "a");
    answered(&mut watch);
    press(&mut watch, "/Node\n");
    assert_eq!(
        (watch.question().filter.as_str(), watch.question().regex),
        ("Node", false)
    );
    press(&mut watch, "\n");
    let sites = watch.question();
    assert_eq!(
        (sites.by, sites.filter.as_str(), sites.regex),
        ("site", "^a\\.Class0$", true)
    );
    answered(&mut watch);
    press(&mut watch, "\n");
    assert!(page(&mut watch, 150, 40).contains("a.B.frame3(B.java:1)"));
    press(&mut watch, "<<");
    assert_eq!(watch.question().by, "class");
    assert_eq!(watch.question().filter, "Node");

    press(&mut watch, "t");
    assert_eq!(
        (watch.question().from, watch.question().to),
        (Some(5000), None)
    );
    press(&mut watch, "t");
    assert_eq!(watch.question().to, Some(5000));
    assert!(
        page(&mut watch, 100, 40).contains(']'),
        "the range is on the timeline"
    );
    press(&mut watch, "t");
    assert_eq!(watch.question().from, None);

    let command = |name, parameters: &[(&'static str, &str)]| {
        let owned = parameters
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        Some(Action::Command(name, owned.collect()))
    };
    assert_eq!(press(&mut watch, "g"), command("gc", &[]));
    assert_eq!(press(&mut watch, "d"), command("dump", &[]));
    assert_eq!(
        press(&mut watch, "r"),
        command("record", &[("mode", "full")])
    );
    assert_eq!(
        press(&mut watch, "+"),
        command("interval", &[("ms", "100")])
    );
    assert_eq!(
        press(&mut watch, "-"),
        command("interval", &[("ms", "1000")])
    );
    assert_eq!(
        press(&mut watch, "Mhere\n"),
        command("mark", &[("text", "here")])
    );
    assert_eq!(press(&mut watch, "e"), Some(Action::Explore));
    press(&mut watch, "q");
    assert!(watch.ended);
}

#[test]
fn every_view_can_be_drawn_on_any_screen() {
    let mut watch = some_watch();
    for view in "manjifvo".chars() {
        press(&mut watch, &view.to_string());
        for state in 0..4 {
            match state {
                0 => {}
                1 => answered(&mut watch),
                2 => watch.take(watch.question(), Err("no \x1b[2J answer".to_owned())),
                _ => drop(press(&mut watch, "?")),
            }
            for (width, height) in [(150, 40), (80, 24), (40, 12), (20, 4), (1, 1)] {
                let text = page(&mut watch, width, height);
                assert!(!text.contains('\x1b'), "{text}");
            }
        }
        press(&mut watch, "x");
    }
    press(&mut watch, "m");
    answered(&mut watch);
    let text = page(&mut watch, 100, 40);
    for words in [
        "demo.",
        "4711",
        "heap 38.2 MiB",
        "threads 7",
        "▴",
        "█",
        "▒",
        "q end",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    // The sorted column is shown wherever it is.
    press(&mut watch, "i");
    answered(&mut watch);
    press(&mut watch, &"→".repeat(10));
    assert!(
        page(&mut watch, 80, 24).contains("▼Capacity mean"),
        "{}",
        page(&mut watch, 80, 24)
    );
}

/// The view with an answer of rows that say these keys, each with a stack.
fn with_rows(watch: &mut Watch, keys: &[&str]) {
    let row = |key: &&str| Row {
        cells: vec![String::new(); watch.view().columns().len()],
        name: (*key).to_owned(),
        key: (*key).to_owned(),
        details: vec!["a.B.c(B.java:7)".to_owned()],
    };
    let rows = keys.iter().map(row).collect();
    let sheet = Sheet {
        rows,
        ..Sheet::default()
    };
    watch.take(watch.question(), Ok(sheet));
}

#[test]
fn saved_tables_are_compared_with_the_marked_one_or_the_one_before() {
    let mut watch = some_watch();
    press(&mut watch, "v");
    let tables = |watch: &mut Watch| {
        let row = |key: &&str| Row {
            key: (*key).to_owned(),
            ..Row::default()
        };
        let sheet = Sheet {
            rows: ["3", "2", "1"].iter().map(row).collect(),
            ..Sheet::default()
        };
        watch.take(watch.question(), Ok(sheet));
    };
    tables(&mut watch);
    press(&mut watch, "\n");
    assert_eq!(
        (watch.view(), watch.question().tables),
        (View::Changes, (2, 3))
    );
    assert_eq!(watch.question().sort, "bytes_change");
    press(&mut watch, "<");
    tables(&mut watch);
    press(&mut watch, "↓↓\n");
    assert!(
        watch.message.contains("no table before"),
        "{}",
        watch.message
    );
    press(&mut watch, "c");
    assert!(
        watch.trail().contains("compared from 1"),
        "{}",
        watch.trail()
    );
    press(&mut watch, "\n");
    assert_eq!(
        watch.view(),
        View::Saved,
        "a table is not compared with itself"
    );
    watch.key(KeyCode::Home, KeyModifiers::NONE, 0);
    press(&mut watch, "\n");
    assert_eq!(watch.question().tables, (1, 3));
    assert!(
        watch.trail().contains("from table 1 to 3"),
        "{}",
        watch.trail()
    );
    // A table that comes makes the list old.
    let age = watch.age();
    watch
        .status
        .saved
        .push(live_session::persist::saved_tables::Saved {
            number: 4,
            time_ms: 0,
            source: String::new(),
            sizes_ms: None,
            stem: "t".into(),
        });
    assert_ne!(watch.age(), age);
}

#[test]
fn options_of_classes_are_changed_line_by_line() {
    let mut watch = some_watch();
    press(&mut watch, "A");
    assert!(watch.typing.is_none(), "there are no lines in this view");
    press(&mut watch, "o");
    with_rows(&mut watch, &["* a.A off", "* a.B count"]);
    let reported = |text: &str| Some(Action::Command("options", vec![("text", text.to_owned())]));
    // The chosen line is there to be changed.
    assert_eq!(
        press(&mut watch, "↓\n,stack\n"),
        reported("* a.A off\n* a.B count,stack")
    );
    watch.key(KeyCode::Home, KeyModifiers::NONE, 0);
    assert_eq!(
        press(&mut watch, "A* a.C off\n"),
        reported("* a.A off\n* a.C off\n* a.B count,stack")
    );
    // The new line is the chosen one.
    assert_eq!(
        press(&mut watch, "X"),
        reported("* a.A off\n* a.B count,stack")
    );
    assert_eq!(press(&mut watch, "X"), reported("* a.A off"));
    assert_eq!(press(&mut watch, "X"), reported(""));
    assert_eq!(press(&mut watch, "X"), None);
    assert_eq!(press(&mut watch, "\n* ** count\n"), reported("* ** count"));
    // A refused line is reported, and requested anew.
    let age = watch.age();
    watch.done(Err("line 1: no such option".to_owned()));
    assert_ne!(watch.age(), age);
    assert!(page(&mut watch, 100, 40).contains("line 1: no such option"));
}

#[test]
fn the_source_of_a_stack_is_one_key_away() {
    let mut watch = some_watch();
    press(&mut watch, "l");
    assert!(watch.message.contains("no stack"), "{}", watch.message);
    press(&mut watch, "j");
    with_rows(&mut watch, &["a.B"]);
    press(&mut watch, "l");
    assert_eq!(watch.view(), View::Source);
    assert_eq!(watch.question().stack, ["a.B.c(B.java:7)"]);
    with_rows(&mut watch, &["a.B.c(B.java:7)"]);
    // The lines of the chosen frame are open from the beginning.
    assert_eq!(
        page(&mut watch, 100, 40).matches("a.B.c(B.java:7)").count(),
        2
    );
    press(&mut watch, "<");
    assert_eq!(watch.view(), View::References);
}

fn start(lab: &Lab) -> Option<Program> {
    let jdk = lab.jdks.iter().find(|jdk| jdk.tool("javac").is_file())?;
    let mut command = java(lab, jdk);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    Some(Program::of(child.expect("started")))
}

/// The line of the screen that ends with a name.
fn line_of<'s>(screen: &'s str, name: &str) -> &'s str {
    let mut lines = screen.lines().map(str::trim_end);
    lines.find(|line| line.ends_with(name)).unwrap_or("")
}

#[test]
fn a_running_program_is_recorded_collected_and_explored_in_a_terminal() {
    const TEST: &str = "watch on a terminal";
    let Some(lab) = lab(TEST) else { return };
    if !crate::terminal::is_there() {
        return testkit::skip(TEST, testkit::Need::Program, "there is no script(1)");
    }
    let Some(mut program) = start(lab) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let words = format!(
        "watch {} --dumps {}",
        program.child.id(),
        folder.path().display()
    );
    let mut watch = Terminal::start(&words, &lab.agent);
    watch.wait("Populations");
    watch.wait("resident");
    // Without a recording the VM's own histogram counts.
    watch.press("i");
    watch.wait("from: vm");
    watch.press("a");
    watch.wait("nothing has been recorded");
    watch.press("r");
    watch.until("recording", |screen| {
        program.send("nothing");
        screen.contains("  recording every allocation")
    });
    program.send("keep 1234");
    watch.press("/Populations$Node\r");
    watch.until("allocations", |screen| {
        line_of(screen, "Populations$Node").contains(" 1,234 ")
    });
    // The stacks behind the class, and one of them in full.
    watch.press("\r");
    watch.wait("Populations.keep(Populations.java:");
    watch.press("\r");
    watch.wait("\nPopulations.main(Populations.java:");
    watch.press("\x7f\x7f");
    watch.wait("Allocations by class");
    // From here on they only die.
    watch.press("t");
    watch.wait("the range begins");
    program.send("drop");
    program.send("other 600");
    watch.press("g");
    watch.until("deaths in the range", |screen| {
        line_of(screen, "Populations$Node").contains(" -1,234 ")
    });
    // The end of the range, and whole time again.
    watch.press("tt");
    program.send("bags 30");
    watch.press("d");
    watch.press("p");
    watch.wait("savings of heap dump 1");
    watch.press("i/Populations$Bag\r");
    watch.until("sizes of the dump", |screen| {
        let bags = line_of(screen, "Populations$Bag");
        // Once the filter holds, it is the only class.
        bags.contains(" 30 ") && bags.contains(" 300 ") && !screen.contains("Object[]")
    });
    watch.press("\r");
    watch.wait("30 objects of Populations$Bag");
    watch.press("e");
    watch.wait("Overview");
    watch.press("q");
    watch.wait("30 objects of Populations$Bag");
    // The program ends; what is known of it stays.
    drop(program);
    watch.wait("the program has ended");
    watch.press("a");
    watch.wait("Populations");
    watch.press("q");
    watch.is_given_back("0");
}

#[test]
fn tables_are_kept_classes_left_out_and_source_is_shown_in_a_terminal() {
    const TEST: &str = "tables, options and source on a terminal";
    let Some(lab) = lab(TEST) else { return };
    if !crate::terminal::is_there() {
        return testkit::skip(TEST, testkit::Need::Program, "there is no script(1)");
    }
    let Some(mut program) = start(lab) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let sources = crate::watched::test_source("Populations");
    let words = format!(
        "watch {} --record full --dumps {} --source {}",
        program.child.id(),
        folder.path().display(),
        sources.parent().expect("a folder").display()
    );
    let mut watch = Terminal::start(&words, &lab.agent);
    watch.until("recording", |screen| {
        program.send("nothing");
        screen.contains("  recording every allocation")
    });
    program.send("keep 1234");
    program.send("bags 3");
    watch.press("a/Populations$Node\r");
    watch.until("allocations", |screen| {
        line_of(screen, "Populations$Node").contains(" 1,234 ")
    });
    watch.press("\r");
    watch.wait("Populations.keep(Populations.java:");
    // From the innermost frame to the one that says new.
    watch.press("l");
    watch.wait("►");
    let text = std::fs::read_to_string(&sources).expect("the program");
    let line = text
        .lines()
        .position(|line| line.contains("Node node = new Node();"));
    let own = format!("►{:>5}  ", line.expect("a line") + 1);
    for _ in 0..3 {
        if watch.screen().contains(&own) {
            break;
        }
        let before = watch.screen();
        watch.press("\x1b[B");
        watch.until("the next frame", |screen| *screen != before);
    }
    assert!(watch.screen().contains(&own), "{own}: {}", watch.screen());

    // Two tables, and what came between them.
    watch.press("v");
    watch.wait("No table of all classes was kept");
    watch.press("w");
    watch.wait("-classes-1.html");
    program.send("keep 66");
    watch.press("a/Populations$Node\r");
    watch.until("more of them", |screen| {
        line_of(screen, "Populations$Node").contains(" 1,300 ")
    });
    watch.press("vw");
    watch.wait("-classes-2.html");
    watch.press("\r");
    watch.until("the change", |screen| {
        line_of(screen, "Populations$Node").contains(" +66 ")
    });

    // A class is left out, and comes back.
    watch.press("i/Populations$Bag\r");
    watch.until("bags", |screen| {
        line_of(screen, "Populations$Bag").contains(" 3 ")
    });
    watch.press("o");
    watch.wait("Every class is recorded in full");
    watch.press("A* Populations$Bag off\r");
    watch.wait("\n* Populations$Bag off");
    watch.press("i/Populations$Bag\r");
    watch.wait("No class has instances");
    watch.press("o");
    watch.wait("\n* Populations$Bag off");
    watch.press("Anonsense\r");
    watch.until("it is refused", |screen| {
        screen.contains("line 2: ") && !screen.contains("\nnonsense")
    });
    watch.press("X");
    watch.wait("Every class is recorded in full");
    watch.press("i/Populations$Bag\r");
    watch.until("bags again", |screen| {
        line_of(screen, "Populations$Bag").contains(" 3 ")
    });
    watch.press("q");
    watch.is_given_back("0");
}

#[test]
fn a_signal_gives_the_terminal_back() {
    const TEST: &str = "watch and signals";
    let Some(lab) = lab(TEST) else { return };
    if !crate::terminal::is_there() {
        return testkit::skip(TEST, testkit::Need::Program, "there is no script(1)");
    }
    let Some(program) = start(lab) else { return };
    for (signal, keys) in [("TERM", ""), ("HUP", ""), ("", "\x03")] {
        let mut watch = Terminal::start(&format!("watch {}", program.child.id()), &lab.agent);
        watch.wait("resident");
        watch.press(keys);
        if !signal.is_empty() {
            let kill = Command::new("kill")
                .args(["-s", signal, &watch.pid()])
                .status();
            assert!(kill.expect("kill").success());
        }
        watch.is_given_back("0");
    }
}

#[test]
fn what_is_no_terminal_and_no_program_is_reported() {
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command.args(words);
        testkit::run::run_command(command, std::time::Duration::from_secs(60))
    };
    // The first process is no JVM.
    let ran = run(&["watch", "1"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("no JVM"), "{}", ran.stderr);
    let ran = run(&["watch", "no.such.Main"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let ran = run(&["top", "no.such.Main"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let Some(lab) = lab("watch without a terminal") else {
        return;
    };
    let Some(program) = start(lab) else { return };
    let pid = program.child.id().to_string();
    let ran = run(&["watch", &pid]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("needs a terminal"), "{}", ran.stderr);
    // Commands that read dumps.
    for command in ["top", "histogram", "threads"] {
        let ran = run(&[command, &pid]);
        assert_eq!(ran.code, Some(2), "{command}: {}", ran.stderr);
        for hint in ["tenure watch", "tenure dump"] {
            let hint = format!("{hint} {pid}");
            assert!(ran.stderr.contains(&hint), "{command}: {}", ran.stderr);
        }
    }
}
