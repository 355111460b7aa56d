//! The terminal explorer: its state machine by keys, its drawing on screens of several sizes, and
//! the program on a real terminal.

use crate::terminal;
use cli::tui::app::App;
use cli::tui::draw::draw;
use heap_graph::{Control, Heap, Options};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

fn demo() -> (tempfile::TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("leak.hprof");
    let packed = testkit::corpus::workspace().join("demo/leak-small.hprof.gz");
    std::fs::write(&file, testkit::corpus::unpacked(&packed)).unwrap();
    (dir, file)
}

fn press(app: &mut App<'_>, keys: &str) {
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '<' => KeyCode::Backspace,
            c => KeyCode::Char(c),
        };
        app.key(code, KeyModifiers::NONE);
    }
}

fn page(app: &mut App<'_>, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(app, frame, false)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let rows = buffer.content().chunks(usize::from(width));
    let row = |r: &[ratatui::buffer::Cell]| r.iter().map(|c| c.symbol()).collect::<String>();
    rows.map(|r| row(r) + "\n").collect()
}

#[test]
fn keys_lead_to_the_field_that_holds_the_leak() {
    let (_dir, file) = demo();
    let heap = Heap::open(&file, &Options::default(), &Control::quiet()).unwrap();
    let mut app = App::new(&heap, "leak.hprof").unwrap();
    assert!(page(&mut app, 100, 30).starts_with("Overview"));

    press(&mut app, "h/shop.Session\n");
    let text = page(&mut app, 100, 30);
    assert!(text.contains("shop.Session"), "{text}");
    let chosen = app.screen().lines[app.screen().chosen].text();
    assert!(chosen.contains("shop.Session"), "{chosen}");

    // Its objects, one of them, and the way to it from a root.
    press(&mut app, "\n");
    assert!(app.trail().contains("Objects: class:0x"), "{}", app.trail());
    press(&mut app, "\n");
    assert!(app.trail().contains("› Object 0x"), "{}", app.trail());
    let text = page(&mut app, 100, 60);
    assert!(text.contains("visitor-"), "{text}");
    press(&mut app, "p");
    let lines: Vec<String> = app.screen().lines.iter().map(|l| l.text()).collect();
    assert!(
        lines.iter().any(|l| l.contains("static SESSIONS")),
        "{lines:?}"
    );

    // Back to where we came from, step by step; the first screen stays.
    press(&mut app, "<<<");
    assert!(
        app.trail()
            .ends_with("histogram by class, sorted by retained"),
        "{}",
        app.trail()
    );
    press(&mut app, "<<<<");
    assert_eq!(app.trail(), "Overview");
    press(&mut app, "q");
    assert!(app.ended);
}

#[test]
fn every_key_on_every_screen_leaves_a_screen_that_can_be_drawn() {
    let (_dir, file) = demo();
    let heap = Heap::open(&file, &Options::default(), &Control::quiet()).unwrap();
    let mut app = App::new(&heap, "leak.hprof").unwrap();
    for screen in "olhdtsu".chars() {
        for keys in [
            "",
            "\n",
            "p",
            "c",
            "r",
            "i",
            "D",
            "b",
            "S",
            "n",
            "?x",
            "@zz\n",
            "@ffff\n",
            "f(\n",
            "fvisitor-1\n",
            "j",
            "k",
            "g",
            "G",
            "GG \n",
        ] {
            press(&mut app, &screen.to_string());
            press(&mut app, keys);
            for (width, height) in [(100, 30), (20, 4), (1, 3)] {
                page(&mut app, width, height);
            }
            assert!(!app.ended && app.typing.is_none(), "{screen} {keys}");
            press(&mut app, "<<<<<<<<<<");
        }
    }
    press(&mut app, "hb");
    assert!(
        app.trail()
            .ends_with("histogram by package, sorted by retained"),
        "{}",
        app.trail()
    );
    press(&mut app, "S");
    assert!(
        app.trail().ends_with("by package, sorted by shallow"),
        "{}",
        app.trail()
    );
    assert!(
        !app.trail().contains("by class"),
        "a regrouped histogram replaces the last one"
    );
}

#[test]
fn the_program_runs_on_a_terminal_and_gives_it_back() {
    if !terminal::is_there() {
        let (what, why) = ("the_program_runs_on_a_terminal", "there is no script(1)");
        return testkit::skip(what, testkit::Need::Program, why);
    }
    let (_dir, file) = demo();
    let words = format!("tui {}", file.display());
    let mut terminal = terminal::Terminal::start(&words, Path::new("none"));
    for (words, key) in [
        ("Overview", "h"),
        ("› histogram", "d"),
        ("› Dominator", "q"),
    ] {
        terminal.wait(words);
        terminal.press(key);
    }
    terminal.is_given_back("0");
}

#[test]
fn without_a_terminal_it_says_so() {
    let (_dir, file) = demo();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tenure"));
    command.arg("tui").arg(&file);
    let ran = testkit::run::run_command(command, Duration::from_secs(30));
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("needs a terminal"), "{}", ran.stderr);
}
