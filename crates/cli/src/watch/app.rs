//! The live view as a state machine: keys and answers in, questions and actions out. No terminal
//! and no program in here.

use super::question::Question;
use super::sheet::{Row, Sheet};
use super::view::View;
use live_session::recording::status::Status;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};

/// What the keys do, as shown by `?`.
pub const KEYS: &[(&str, &str)] = &[
    (
        "m a n j i f p",
        "memory, allocations, native memory, JNI references, instances, what grows, what could be saved",
    ),
    (
        "v o",
        "saved tables; class filters: what is recorded and examined",
    ),
    ("↓ ↑ PgDn PgUp Home End", "move"),
    ("← →", "sort by the column before, the next"),
    ("u", "turn the order round"),
    (
        "b",
        "group by the next kind; instances: from the next source",
    ),
    ("Enter", "what is behind the row: its stacks, its objects"),
    ("Backspace Esc", "back"),
    ("l", "lines of source of the row's stack (--source FOLDER)"),
    (
        "c Enter",
        "saved tables: compare from this one; with it, or with the one before",
    ),
    (
        "Enter A X",
        "class filters: change the line, add one below it, remove it",
    ),
    (
        "/ %",
        "filter by a text in class or frame; by a regular expression",
    ),
    ("r s", "record every allocation, or a sample; stop"),
    ("g d", "force a collection; take a heap dump"),
    ("e", "explore the last heap dump here (q comes back)"),
    ("t", "a range of time begins; ends; whole time"),
    ("z", "show more of the past, or less"),
    ("+ -", "measure more often, less often"),
    (
        "M w",
        "put a mark on the timeline; keep the table of classes",
    ),
    ("Space", "read again"),
    ("?", "these keys"),
    ("q", "end; the program continues"),
];

/// How much of the past the timeline shows, in milliseconds; 0 for all.
pub const SPANS: [u64; 5] = [30_000, 120_000, 600_000, 3_600_000, 0];
/// Milliseconds between two measurements that the keys choose from.
const INTERVALS: [u64; 4] = [100, 250, 1000, 5000];

/// A view with what was chosen in it.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    pub(super) view: View,
    pub(super) by: usize,
    /// Place of the column rows are sorted by; the name is behind the last.
    pub(super) sort: usize,
    pub(super) up: bool,
    pub(super) filter: String,
    pub(super) regex: bool,
    pub(super) class: String,
    /// Numbers of the tables that are compared.
    pub(super) tables: (usize, usize),
    /// The saved table that is compared from.
    pub(super) marked: Option<usize>,
    pub(super) stack: Vec<String>,
    pub(super) chosen: usize,
    /// The row is shown in full.
    pub(super) open: bool,
}

impl Place {
    pub(super) fn of(view: View) -> Place {
        Place {
            view,
            sort: view.first_sort(),
            ..Place::default()
        }
    }
}

/// What is being typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// A text to filter by.
    Filter,
    /// A regular expression to filter by.
    Regex,
    /// The text of a mark.
    Mark,
    /// A line of the class filters.
    Line,
    /// A new one below it.
    NewLine,
}

/// What a key asks of the program that is watched, by the names of the API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A command with its parameters.
    Command(&'static str, Vec<(&'static str, String)>),
    /// The last heap dump in the explorer.
    Explore,
}

/// The live view.
#[derive(Debug, Default)]
pub struct Watch {
    /// The state of the program.
    pub status: Status,
    pub(super) places: Vec<Place>,
    /// The range, in milliseconds since 1970.
    pub range: (Option<u64>, Option<u64>),
    /// Place in [`SPANS`].
    pub span: usize,
    /// The last answer, and what was asked.
    pub(super) sheet: Option<(Question, Result<Sheet, String>)>,
    /// What is being typed, and the text so far.
    pub typing: Option<(Prompt, String)>,
    /// A word to the user.
    pub message: String,
    /// True while the keys are shown.
    pub help: bool,
    /// Rows that fit; set by the drawing.
    pub height: usize,
    /// True once the user is done.
    pub ended: bool,
    /// Counts how often an answer was requested anew.
    renewed: u64,
}

impl Watch {
    /// Begins with the timeline.
    pub fn new(status: Status) -> Watch {
        Watch {
            status,
            places: vec![Place::of(View::Memory)],
            span: 1,
            height: 20,
            ..Watch::default()
        }
    }

    pub(super) fn place(&self) -> &Place {
        // There is always one: going back stops at the first.
        &self.places[self.places.len() - 1]
    }

    pub(super) fn place_mut(&mut self) -> &mut Place {
        let last = self.places.len() - 1;
        &mut self.places[last]
    }

    /// What is shown.
    pub fn view(&self) -> View {
        self.place().view
    }

    /// The question of the present view.
    pub fn question(&self) -> Question {
        let place = self.place();
        let columns = place.view.columns();
        let sort = columns.get(place.sort).map_or("name", |column| column.1);
        Question {
            view: place.view,
            by: place.view.groups().get(place.by).copied().unwrap_or(""),
            sort,
            up: place.up,
            filter: place.filter.clone(),
            regex: place.regex,
            class: place.class.clone(),
            tables: place.tables,
            stack: place.stack.clone(),
            from: self.range.0,
            to: self.range.1,
        }
    }

    /// What the answer hangs on besides the question: when it changes, the answer is old.
    pub fn age(&self) -> String {
        let status = &self.status;
        let stages = status.dumps.iter().map(|dump| dump.stage);
        let dumps = format!("{:?}", stages.collect::<Vec<_>>());
        let recording = status.recording.as_ref();
        let snapshots = recording.map(|recording| (recording.snapshots, recording.on));
        format!(
            "{} {dumps} {snapshots:?} {:?} {} {}",
            self.renewed,
            status.last_event,
            status.ended,
            status.saved.len()
        )
    }

    /// Takes an answer.
    pub fn take(&mut self, question: Question, answer: Result<Sheet, String>) {
        self.sheet = Some((question, answer));
        let rows = self.rows();
        let place = self.place_mut();
        place.chosen = place.chosen.min(rows.saturating_sub(1));
    }

    /// The answer to the present question, if it is there.
    pub fn sheet(&self) -> Option<&Result<Sheet, String>> {
        let (question, sheet) = self.sheet.as_ref()?;
        // An answer in another order is better than none while the new one is on its way.
        let place = self.place();
        let same = question.view == place.view
            && question.class == place.class
            && question.tables == place.tables
            && question.stack == place.stack;
        same.then_some(sheet)
    }

    fn rows(&self) -> usize {
        match self.sheet() {
            Some(Ok(sheet)) => sheet.rows.len(),
            _ => 0,
        }
    }

    /// The chosen row, whether it is shown in full, and the column rows are sorted by.
    pub fn chosen(&self) -> (usize, bool, usize) {
        let place = self.place();
        (place.chosen, place.open, place.sort)
    }

    /// Greatest first is `false`.
    pub fn up(&self) -> bool {
        self.place().up
    }

    /// The way here.
    pub fn trail(&self) -> String {
        let title = |place: &Place| {
            let question = match place.view {
                View::Objects => format!("of {}", place.class),
                View::Changes => format!("from table {} to {}", place.tables.0, place.tables.1),
                View::Saved => {
                    let marked = place.marked.map(|number| format!("compared from {number}"));
                    marked.unwrap_or_default()
                }
                view => {
                    let group = view.groups().get(place.by).filter(|word| !word.is_empty());
                    group.map(|word| format!("by {word}")).unwrap_or_default()
                }
            };
            let filter = match (place.filter.is_empty(), place.regex) {
                (true, _) => String::new(),
                (false, false) => format!("with {:?}", place.filter),
                (false, true) => format!("like /{}/", place.filter),
            };
            let words = [place.view.title().to_owned(), question, filter];
            let words = words.iter().filter(|word| !word.is_empty());
            words.map(String::as_str).collect::<Vec<_>>().join(" ")
        };
        let titles: Vec<String> = self.places.iter().map(title).collect();
        report::escape::visible(&titles.join(" › ")).into_owned()
    }

    /// Takes a key.
    pub fn key(&mut self, code: KeyCode, modifiers: KeyModifiers, now_ms: u64) -> Option<Action> {
        self.message.clear();
        if modifiers.contains(KeyModifiers::CONTROL) && code == KeyCode::Char('c') {
            self.ended = true;
            return None;
        }
        if let Some((prompt, text)) = self.typing.take() {
            return self.typed(prompt, text, code);
        }
        if self.help {
            self.help = false;
            return None;
        }
        match code {
            KeyCode::Char('q') => self.ended = true,
            KeyCode::Char('?') => self.help = true,
            KeyCode::Char('m') => self.go(View::Memory),
            KeyCode::Char('a') => self.go(View::Allocations),
            KeyCode::Char('n') => self.go(View::Native),
            KeyCode::Char('j') => self.go(View::References),
            KeyCode::Char('i') => self.go(View::Instances),
            KeyCode::Char('f') => self.go(View::Growth),
            KeyCode::Char('p') => self.go(View::Savings),
            KeyCode::Char('v') => self.go(View::Saved),
            KeyCode::Char('o') => self.go(View::Options),
            KeyCode::Char('l') => self.show_source(),
            KeyCode::Char('c') => self.mark_table(),
            KeyCode::Char('A') => self.type_line(Prompt::NewLine),
            KeyCode::Char('X') => return self.remove_line(),
            KeyCode::Char('/') => {
                self.typing = Some((Prompt::Filter, self.place().filter.clone()));
            }
            KeyCode::Char('%') => {
                self.typing = Some((Prompt::Regex, self.place().filter.clone()));
            }
            KeyCode::Char('M') => self.typing = Some((Prompt::Mark, String::new())),
            KeyCode::Char('t') => self.choose_time(now_ms),
            KeyCode::Char('z') => self.span = (self.span + 1) % SPANS.len(),
            KeyCode::Char(' ') => self.renewed += 1,
            KeyCode::Enter => self.open(),
            KeyCode::Backspace | KeyCode::Esc => self.back(),
            KeyCode::Char('b' | 'u') | KeyCode::Left | KeyCode::Right => self.order(code),
            KeyCode::Char('e') => return Some(Action::Explore),
            KeyCode::Char(c @ ('g' | 'd' | 'w' | 'r' | 's' | '+' | '-')) => return self.command(c),
            other => self.step(other),
        }
        None
    }

    fn go(&mut self, view: View) {
        self.places = vec![Place::of(view)];
    }

    fn step(&mut self, code: KeyCode) {
        let last = self.rows().saturating_sub(1);
        let page = self.height.max(2) - 1;
        let place = self.place_mut();
        let chosen = match code {
            KeyCode::Down => place.chosen + 1,
            KeyCode::Up => place.chosen.saturating_sub(1),
            KeyCode::PageDown => place.chosen + page,
            KeyCode::PageUp => place.chosen.saturating_sub(page),
            KeyCode::Home => 0,
            KeyCode::End => last,
            _ => place.chosen,
        };
        place.chosen = chosen.min(last);
    }

    /// Another order, or other groups.
    fn order(&mut self, code: KeyCode) {
        let place = self.place_mut();
        let columns = place.view.columns();
        // The name comes behind the last column.
        let count = columns.len() + 1;
        let is_sorted =
            |at: usize| at == columns.len() || columns.get(at).is_some_and(|c| !c.1.is_empty());
        let step = match code {
            KeyCode::Char('u') => {
                place.up = !place.up;
                return;
            }
            KeyCode::Char(_) => {
                match place.view.groups().len() {
                    0 => self.message = "there are no groups in this view".to_owned(),
                    groups => (place.by, place.chosen) = ((place.by + 1) % groups, 0),
                }
                return;
            }
            KeyCode::Right => 1,
            _ => count - 1,
        };
        if !columns.iter().any(|column| !column.1.is_empty()) {
            self.message = "this view has its own order".to_owned();
            return;
        }
        loop {
            place.sort = (place.sort + step) % count;
            if is_sorted(place.sort) {
                break;
            }
        }
        place.chosen = 0;
    }

    pub(super) fn chosen_row(&self) -> Option<Row> {
        match self.sheet() {
            Some(Ok(sheet)) => sheet.rows.get(self.place().chosen).cloned(),
            _ => None,
        }
    }

    /// What is behind the chosen row.
    fn open(&mut self) {
        if self.view() == View::Options {
            return self.type_line(Prompt::Line);
        }
        let Some(row) = self.chosen_row() else { return };
        let place = self.place_mut();
        if !row.details.is_empty() {
            place.open = !place.open;
            return;
        }
        match place.view {
            View::Instances => {
                let class = row.key;
                self.places.push(Place {
                    class,
                    ..Place::of(View::Objects)
                });
            }
            View::Saved => self.compare(&row),
            // Of a class, a library or a method the sites are those that name it.
            View::Allocations | View::Native if row.name != "All" => {
                let groups = place.view.groups();
                let end = match groups.get(place.by) {
                    Some(&"class") => "$",
                    Some(&"method") => r"\(",
                    _ => return self.message = "group by class (b) to see stacks".to_owned(),
                };
                let next = Place {
                    by: groups.iter().position(|word| *word == "site").unwrap_or(0),
                    filter: format!("^{}{end}", regex::escape(&row.key)),
                    regex: true,
                    ..Place::of(place.view)
                };
                self.places.push(next);
            }
            _ => self.message = "there is nothing more behind this row".to_owned(),
        }
    }

    fn back(&mut self) {
        let is_first = self.places.len() == 1;
        let place = self.place_mut();
        let closes = place.open && place.view != View::Source;
        match (closes, is_first) {
            (true, _) => place.open = false,
            (false, true) => place.filter.clear(),
            (false, false) => drop(self.places.pop()),
        }
    }

    fn choose_time(&mut self, now_ms: u64) {
        self.range = match self.range {
            (None, _) => (Some(now_ms), None),
            (Some(from), None) => (Some(from), Some(now_ms)),
            _ => (None, None),
        };
        self.message = match self.range {
            (None, _) => "whole time".to_owned(),
            (_, None) => "the range begins now; t ends it".to_owned(),
            _ => "the tables show what happened in the range; t: whole time".to_owned(),
        };
    }

    fn command(&mut self, key: char) -> Option<Action> {
        let command = |name, parameters| Some(Action::Command(name, parameters));
        let recording = self.status.recording.as_ref();
        let is_on = recording.is_some_and(|it| it.on);
        let is_connected = recording.is_some_and(|it| it.connected);
        match key {
            'g' => command("gc", Vec::new()),
            'd' => command("dump", Vec::new()),
            'w' => command("save", Vec::new()),
            'r' | 's' if is_on => command("stop", Vec::new()),
            // The agent in the program keeps its mode.
            'r' | 's' if is_connected => command("record", Vec::new()),
            'r' => command("record", vec![("mode", "full".to_owned())]),
            's' => command("record", vec![("mode", "sampled".to_owned())]),
            _ => {
                let now = self.status.interval_ms;
                let next = match key {
                    '+' => INTERVALS.iter().rev().find(|ms| **ms < now),
                    _ => INTERVALS.iter().find(|ms| **ms > now),
                };
                let next = next?;
                self.message = format!("one measurement every {next} ms");
                command("interval", vec![("ms", next.to_string())])
            }
        }
    }

    /// The outcome of a command: what is shown may be old now.
    pub fn done(&mut self, outcome: Result<(), String>) {
        self.renewed += 1;
        if let Err(what) = outcome {
            self.message = what;
        }
    }

    fn typed(&mut self, prompt: Prompt, mut text: String, code: KeyCode) -> Option<Action> {
        match code {
            KeyCode::Char(c) => text.push(c),
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Esc => return None,
            KeyCode::Enter if prompt == Prompt::Mark => {
                return Some(Action::Command("mark", vec![("text", text)]));
            }
            KeyCode::Enter if matches!(prompt, Prompt::Line | Prompt::NewLine) => {
                return self.change_lines(prompt, text);
            }
            KeyCode::Enter => {
                let place = self.place_mut();
                place.regex = prompt == Prompt::Regex;
                (place.filter, place.chosen) = (text, 0);
                return None;
            }
            _ => {}
        }
        self.typing = Some((prompt, text));
        None
    }
}
