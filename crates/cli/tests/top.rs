//! The live view in a terminal: its state machine by keys, its drawing on screens of several sizes,
//! and the program on a real terminal with a real JVM.

use crate::terminal::Terminal;
use crate::watched::{Lab, Program, java, lab};
use cli::top::app::{Action, Top};
use cli::top::draw::draw;
use cli::top::question::{Question, Row, Sheet};
use cli::top::view::View;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};
use server::live::metrics;
use server::live::session::TimelineAnswer;
use server::live::status::Status;
use server::live::timeline::{Event, EventKind};
use std::process::{Command, Stdio};

fn press(top: &mut Top, keys: &str) -> Option<Action> {
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
        last = top.key(code, KeyModifiers::NONE, 5_000);
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

fn page(top: &mut Top, width: u16, height: u16) -> String {
    let mut terminal = ratatui::Terminal::new(TestBackend::new(width, height)).unwrap();
    let timeline = timeline();
    terminal
        .draw(|frame| draw(top, &timeline, frame, false))
        .unwrap();
    let buffer = terminal.backend().buffer().clone();
    let rows = buffer.content().chunks(usize::from(width));
    let row = |r: &[ratatui::buffer::Cell]| r.iter().map(|c| c.symbol()).collect::<String>();
    rows.map(|r| row(r) + "\n").collect()
}

fn some_top() -> Top {
    Top::new(Status {
        pid: 4711,
        name: "demo.\x1b[31mMain".to_owned(),
        rows: vec![row(9750)],
        interval_ms: 250,
        ..Status::default()
    })
}

fn answer(question: &Question) -> Sheet {
    let cells = question.view.columns().iter().enumerate();
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
fn answered(top: &mut Top) {
    let question = top.question();
    let sheet = answer(&question);
    top.take(question, Ok(sheet));
}

#[test]
fn keys_choose_order_groups_filter_range_and_what_is_behind_a_row() {
    let mut top = some_top();
    press(&mut top, "i");
    answered(&mut top);
    assert_eq!(
        (top.question().sort, top.question().up),
        ("live_bytes", false)
    );
    press(&mut top, "→");
    assert_eq!(top.question().sort, "with_capacity_bytes");
    press(&mut top, "←←u");
    assert_eq!(
        (top.question().sort, top.question().up),
        ("bytes_each", true)
    );
    // Beyond the last column is the name, then the first again.
    press(&mut top, &"→".repeat(11));
    assert_eq!(top.question().sort, "name");
    press(&mut top, "→");
    assert_eq!(top.question().sort, "sample_percent");
    press(&mut top, "bbb");
    assert_eq!(top.question().by, "vm");
    press(&mut top, "↓↓\n");
    assert_eq!(
        (top.view(), top.question().class.as_str()),
        (View::Objects, "a.Class2")
    );
    press(&mut top, "<");
    assert_eq!(top.view(), View::Instances);

    press(&mut top, "a");
    answered(&mut top);
    press(&mut top, "/Node\n");
    assert_eq!(
        (top.question().filter.as_str(), top.question().regex),
        ("Node", false)
    );
    press(&mut top, "\n");
    let sites = top.question();
    assert_eq!(
        (sites.by, sites.filter.as_str(), sites.regex),
        ("site", "^a\\.Class0$", true)
    );
    answered(&mut top);
    press(&mut top, "\n");
    assert!(page(&mut top, 150, 40).contains("a.B.frame3(B.java:1)"));
    press(&mut top, "<<");
    assert_eq!(top.question().by, "class");
    assert_eq!(top.question().filter, "Node");

    press(&mut top, "t");
    assert_eq!((top.question().from, top.question().to), (Some(5000), None));
    press(&mut top, "t");
    assert_eq!(top.question().to, Some(5000));
    assert!(
        page(&mut top, 100, 40).contains(']'),
        "the range is on the timeline"
    );
    press(&mut top, "t");
    assert_eq!(top.question().from, None);

    let command = |name, parameters: &[(&'static str, &str)]| {
        let owned = parameters
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()));
        Some(Action::Command(name, owned.collect()))
    };
    assert_eq!(press(&mut top, "g"), command("gc", &[]));
    assert_eq!(press(&mut top, "d"), command("dump", &[]));
    assert_eq!(press(&mut top, "r"), command("record", &[("mode", "full")]));
    assert_eq!(press(&mut top, "+"), command("interval", &[("ms", "100")]));
    assert_eq!(press(&mut top, "-"), command("interval", &[("ms", "1000")]));
    assert_eq!(
        press(&mut top, "Mhere\n"),
        command("mark", &[("text", "here")])
    );
    assert_eq!(press(&mut top, "e"), Some(Action::Explore));
    press(&mut top, "q");
    assert!(top.ended);
}

#[test]
fn every_view_can_be_drawn_on_any_screen() {
    let mut top = some_top();
    for view in "manjifvo".chars() {
        press(&mut top, &view.to_string());
        for state in 0..4 {
            match state {
                0 => {}
                1 => answered(&mut top),
                2 => top.take(top.question(), Err("no \x1b[2J answer".to_owned())),
                _ => drop(press(&mut top, "?")),
            }
            for (width, height) in [(150, 40), (80, 24), (40, 12), (20, 4), (1, 1)] {
                let text = page(&mut top, width, height);
                assert!(!text.contains('\x1b'), "{text}");
            }
        }
        press(&mut top, "x");
    }
    press(&mut top, "m");
    answered(&mut top);
    let text = page(&mut top, 100, 40);
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
    press(&mut top, "i");
    answered(&mut top);
    press(&mut top, &"→".repeat(9));
    assert!(
        page(&mut top, 80, 24).contains("▼Cap. mean"),
        "{}",
        page(&mut top, 80, 24)
    );
}

/// The view with an answer of rows that say these keys, each with a stack.
fn with_rows(top: &mut Top, keys: &[&str]) {
    let row = |key: &&str| Row {
        cells: vec![String::new(); top.view().columns().len()],
        name: (*key).to_owned(),
        key: (*key).to_owned(),
        details: vec!["a.B.c(B.java:7)".to_owned()],
    };
    let rows = keys.iter().map(row).collect();
    let sheet = Sheet {
        rows,
        ..Sheet::default()
    };
    top.take(top.question(), Ok(sheet));
}

#[test]
fn saved_tables_are_compared_with_the_marked_one_or_the_one_before() {
    let mut top = some_top();
    press(&mut top, "v");
    let tables = |top: &mut Top| {
        let row = |key: &&str| Row {
            key: (*key).to_owned(),
            ..Row::default()
        };
        let sheet = Sheet {
            rows: ["3", "2", "1"].iter().map(row).collect(),
            ..Sheet::default()
        };
        top.take(top.question(), Ok(sheet));
    };
    tables(&mut top);
    press(&mut top, "\n");
    assert_eq!((top.view(), top.question().tables), (View::Changes, (2, 3)));
    assert_eq!(top.question().sort, "bytes_change");
    press(&mut top, "<");
    tables(&mut top);
    press(&mut top, "↓↓\n");
    assert!(top.message.contains("no table before"), "{}", top.message);
    press(&mut top, "c");
    assert!(top.trail().contains("compared from 1"), "{}", top.trail());
    press(&mut top, "\n");
    assert_eq!(
        top.view(),
        View::Saved,
        "a table is not compared with itself"
    );
    top.key(KeyCode::Home, KeyModifiers::NONE, 0);
    press(&mut top, "\n");
    assert_eq!(top.question().tables, (1, 3));
    assert!(top.trail().contains("from table 1 to 3"), "{}", top.trail());
    // A table that comes makes the list old.
    let age = top.age();
    top.status.saved.push(server::live::shelf::Saved {
        number: 4,
        time_ms: 0,
        source: String::new(),
        sizes_ms: None,
        stem: "t".into(),
    });
    assert_ne!(top.age(), age);
}

#[test]
fn options_of_classes_are_changed_line_by_line() {
    let mut top = some_top();
    press(&mut top, "A");
    assert!(top.typing.is_none(), "there are no lines in this view");
    press(&mut top, "o");
    with_rows(&mut top, &["* a.A off", "* a.B count"]);
    let told = |text: &str| Some(Action::Command("options", vec![("text", text.to_owned())]));
    // The chosen line is there to be changed.
    assert_eq!(
        press(&mut top, "↓\n,stack\n"),
        told("* a.A off\n* a.B count,stack")
    );
    top.key(KeyCode::Home, KeyModifiers::NONE, 0);
    assert_eq!(
        press(&mut top, "A* a.C off\n"),
        told("* a.A off\n* a.C off\n* a.B count,stack")
    );
    // The new line is the chosen one.
    assert_eq!(press(&mut top, "X"), told("* a.A off\n* a.B count,stack"));
    assert_eq!(press(&mut top, "X"), told("* a.A off"));
    assert_eq!(press(&mut top, "X"), told(""));
    assert_eq!(press(&mut top, "X"), None);
    assert_eq!(press(&mut top, "\n* ** count\n"), told("* ** count"));
    // What is refused is said, and asked again.
    let age = top.age();
    top.done(Err("line 1: no such option".to_owned()));
    assert_ne!(top.age(), age);
    assert!(page(&mut top, 100, 40).contains("line 1: no such option"));
}

#[test]
fn the_source_of_a_stack_is_one_key_away() {
    let mut top = some_top();
    press(&mut top, "l");
    assert!(top.message.contains("no stack"), "{}", top.message);
    press(&mut top, "j");
    with_rows(&mut top, &["a.B"]);
    press(&mut top, "l");
    assert_eq!(top.view(), View::Source);
    assert_eq!(top.question().stack, ["a.B.c(B.java:7)"]);
    with_rows(&mut top, &["a.B.c(B.java:7)"]);
    // The lines of the chosen frame are open from the beginning.
    assert_eq!(
        page(&mut top, 100, 40).matches("a.B.c(B.java:7)").count(),
        2
    );
    press(&mut top, "<");
    assert_eq!(top.view(), View::References);
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
    const TEST: &str = "top on a terminal";
    let Some(lab) = lab(TEST) else { return };
    if !crate::terminal::is_there() {
        return testkit::skip(TEST, testkit::Need::Program, "there is no script(1)");
    }
    let Some(mut program) = start(lab) else {
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let words = format!(
        "top {} --dumps {}",
        program.child.id(),
        folder.path().display()
    );
    let mut top = Terminal::start(&words, &lab.agent);
    top.wait("Populations");
    top.wait("resident");
    // Without a recording the VM's own histogram counts.
    top.press("i");
    top.wait("from: vm");
    top.press("a");
    top.wait("nothing has been recorded");
    top.press("r");
    top.until("recording", |screen| {
        program.tell("nothing");
        screen.contains("  recording every allocation")
    });
    program.tell("keep 1234");
    top.press("/Populations$Node\r");
    top.until("allocations", |screen| {
        line_of(screen, "Populations$Node").contains(" 1,234 ")
    });
    // The stacks behind the class, and one of them in full.
    top.press("\r");
    top.wait("Populations.keep(Populations.java:");
    top.press("\r");
    top.wait("\nPopulations.main(Populations.java:");
    top.press("\x7f\x7f");
    top.wait("Allocations by class");
    // From here on they only die.
    top.press("t");
    top.wait("the range begins");
    program.tell("drop");
    program.tell("other 600");
    top.press("g");
    top.until("deaths in the range", |screen| {
        line_of(screen, "Populations$Node").contains(" -1,234 ")
    });
    // The end of the range, and whole time again.
    top.press("tt");
    program.tell("bags 30");
    top.press("d");
    top.press("f");
    top.wait("savings of heap dump 1");
    top.press("i/Populations$Bag\r");
    top.until("sizes of the dump", |screen| {
        let bags = line_of(screen, "Populations$Bag");
        // Once the filter holds, it is the only class.
        bags.contains(" 30 ") && bags.contains(" 300 ") && !screen.contains("Object[]")
    });
    top.press("\r");
    top.wait("30 objects of Populations$Bag");
    top.press("e");
    top.wait("Overview");
    top.press("q");
    top.wait("30 objects of Populations$Bag");
    // The program ends; what is known of it stays.
    drop(program);
    top.wait("the program has ended");
    top.press("a");
    top.wait("Populations");
    top.press("q");
    top.is_given_back("0");
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
        "top {} --record full --dumps {} --source {}",
        program.child.id(),
        folder.path().display(),
        sources.parent().expect("a folder").display()
    );
    let mut top = Terminal::start(&words, &lab.agent);
    top.until("recording", |screen| {
        program.tell("nothing");
        screen.contains("  recording every allocation")
    });
    program.tell("keep 1234");
    program.tell("bags 3");
    top.press("a/Populations$Node\r");
    top.until("allocations", |screen| {
        line_of(screen, "Populations$Node").contains(" 1,234 ")
    });
    top.press("\r");
    top.wait("Populations.keep(Populations.java:");
    // From the innermost frame to the one that says new.
    top.press("l");
    top.wait("►");
    let text = std::fs::read_to_string(&sources).expect("the program");
    let line = text
        .lines()
        .position(|line| line.contains("Node node = new Node();"));
    let own = format!("►{:>5}  ", line.expect("a line") + 1);
    for _ in 0..3 {
        if top.screen().contains(&own) {
            break;
        }
        let before = top.screen();
        top.press("\x1b[B");
        top.until("the next frame", |screen| *screen != before);
    }
    assert!(top.screen().contains(&own), "{own}: {}", top.screen());

    // Two tables, and what came between them.
    top.press("v");
    top.wait("No table of all classes was kept");
    top.press("w");
    top.wait("-classes-1.html");
    program.tell("keep 66");
    top.press("a/Populations$Node\r");
    top.until("more of them", |screen| {
        line_of(screen, "Populations$Node").contains(" 1,300 ")
    });
    top.press("vw");
    top.wait("-classes-2.html");
    top.press("\r");
    top.until("the change", |screen| {
        line_of(screen, "Populations$Node").contains(" +66 ")
    });

    // A class is left out, and comes back.
    top.press("i/Populations$Bag\r");
    top.until("bags", |screen| {
        line_of(screen, "Populations$Bag").contains(" 3 ")
    });
    top.press("o");
    top.wait("Every class is recorded in full");
    top.press("A* Populations$Bag off\r");
    top.wait("\n* Populations$Bag off");
    top.press("i/Populations$Bag\r");
    top.wait("No class has instances");
    top.press("o");
    top.wait("\n* Populations$Bag off");
    top.press("Anonsense\r");
    top.until("it is refused", |screen| {
        screen.contains("line 2: ") && !screen.contains("\nnonsense")
    });
    top.press("X");
    top.wait("Every class is recorded in full");
    top.press("i/Populations$Bag\r");
    top.until("bags again", |screen| {
        line_of(screen, "Populations$Bag").contains(" 3 ")
    });
    top.press("q");
    top.is_given_back("0");
}

#[test]
fn a_signal_gives_the_terminal_back() {
    const TEST: &str = "top and signals";
    let Some(lab) = lab(TEST) else { return };
    if !crate::terminal::is_there() {
        return testkit::skip(TEST, testkit::Need::Program, "there is no script(1)");
    }
    let Some(program) = start(lab) else { return };
    for (signal, keys) in [("TERM", ""), ("HUP", ""), ("", "\x03")] {
        let mut top = Terminal::start(&format!("top {}", program.child.id()), &lab.agent);
        top.wait("resident");
        top.press(keys);
        if !signal.is_empty() {
            let kill = Command::new("kill")
                .args(["-s", signal, &top.pid()])
                .status();
            assert!(kill.expect("kill").success());
        }
        top.is_given_back("0");
    }
}

#[test]
fn what_is_no_terminal_no_program_and_no_file_is_said() {
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
        command.arg("top").args(words);
        testkit::run::run_command(command, std::time::Duration::from_secs(60))
    };
    // The first process is no JVM.
    let ran = run(&["1"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("no JVM"), "{}", ran.stderr);
    let ran = run(&["no.such.Main"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let Some(lab) = lab("top without a terminal") else {
        return;
    };
    let Some(program) = start(lab) else { return };
    let ran = run(&[&program.child.id().to_string()]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("needs a terminal"), "{}", ran.stderr);
}
