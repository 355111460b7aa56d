//! The terminal explorer as a state machine: keys in, a list of lines with a choice out. No terminal
//! in here.

use super::lines::{Line, Target};
use super::screen::Question;
use heap_analysis::sets::spec::SetSpec;
use heap_analysis::tables::group::GroupBy;
use heap_analysis::tables::histogram::SortBy;
use heap_graph::Heap;
use hprof::NoObjectId;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};

/// What the keys do, as shown by `?`.
pub const KEYS: &[(&str, &str)] = &[
    (
        "o l h d t",
        "overview, leaks, histogram, dominators, threads",
    ),
    ("s u", "duplicate strings, unreachable objects"),
    ("Enter →", "open the line"),
    ("Backspace ←", "back"),
    ("j k ↓ ↑ PgDn PgUp g G", "move"),
    ("p", "paths from roots to the object"),
    ("c", "objects of its class, or one by one those of a row"),
    ("r", "what it retains, by class"),
    ("i", "what refers to it, by class"),
    ("D", "what it dominates"),
    ("b", "histogram: group by the next kind"),
    ("S", "histogram: sort by the next column"),
    ("/ n N", "search in the lines; next, previous"),
    ("f", "find strings by regular expression"),
    ("@", "go to an object by its id"),
    ("?", "these keys"),
    ("q", "end"),
];

/// A question with its answer, and where one is in it.
#[derive(Clone, Debug)]
pub struct Screen {
    /// What was asked.
    pub question: Question,
    /// The answer.
    pub lines: Vec<Line>,
    /// The chosen line.
    pub chosen: usize,
}

/// What is being typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// Words to search for.
    Search,
    /// A regular expression for strings.
    Strings,
    /// An object id.
    Object,
}

/// The explorer.
pub struct App<'h> {
    heap: &'h Heap,
    /// File name of the dump.
    pub file: String,
    screens: Vec<Screen>,
    /// What is being typed, and the text so far.
    pub typing: Option<(Prompt, String)>,
    search: String,
    /// A word to the user: a fault, a search without result.
    pub message: String,
    /// True while the keys are shown.
    pub help: bool,
    /// Lines that fit; set by the drawing.
    pub height: usize,
    /// True once the user is done.
    pub ended: bool,
}

impl<'h> App<'h> {
    /// Begins with the overview.
    ///
    /// # Errors
    /// When the dump cannot be read.
    pub fn new(heap: &'h Heap, file: &str) -> anyhow::Result<App<'h>> {
        let question = Question::Overview;
        let first = Screen {
            lines: question.answer(heap)?,
            question,
            chosen: 0,
        };
        let mut app = App {
            heap,
            file: report::escape::visible(file).into_owned(),
            screens: vec![first],
            typing: None,
            search: String::new(),
            message: String::new(),
            help: false,
            height: 20,
            ended: false,
        };
        app.choose_first();
        Ok(app)
    }

    /// The screen to show.
    pub fn screen(&self) -> &Screen {
        // There is always one: going back stops at the first.
        &self.screens[self.screens.len() - 1]
    }

    fn screen_mut(&mut self) -> &mut Screen {
        let last = self.screens.len() - 1;
        &mut self.screens[last]
    }

    /// The way here.
    pub fn trail(&self) -> String {
        let titles: Vec<String> = self.screens.iter().map(|s| s.question.title()).collect();
        titles.join(" › ")
    }

    fn ask(&mut self, question: Question) {
        if self.screen().question == question {
            return;
        }
        match question.answer(self.heap) {
            Ok(lines) => {
                self.screens.push(Screen {
                    question,
                    lines,
                    chosen: 0,
                });
                self.choose_first();
            }
            Err(error) => {
                self.message = report::escape::visible(&format!("{error:#}")).into_owned()
            }
        }
    }

    /// The first line that leads somewhere.
    fn choose_first(&mut self) {
        let screen = self.screen_mut();
        let first = screen.lines.iter().position(|l| l.target.is_some());
        screen.chosen = first.unwrap_or(0);
    }

    fn target(&self) -> Option<Target> {
        let screen = self.screen();
        screen.lines.get(screen.chosen)?.target.clone()
    }

    /// What a question about the chosen line is about; on an object's screen that object, when the
    /// line leads nowhere.
    fn subject(&self) -> Option<SetSpec> {
        let here = match &self.screen().question {
            Question::Object(id) | Question::Paths(id) | Question::Dominators(Some(id)) => {
                Some(SetSpec::Objects(vec![*id]))
            }
            Question::Objects(set) | Question::HistogramOf(set) => Some(set.clone()),
            _ => None,
        };
        match self.target() {
            Some(Target::Object(id)) => Some(SetSpec::Objects(vec![id])),
            Some(Target::Set(set)) => Some(set),
            None => here,
        }
    }

    /// Takes a key.
    pub fn key(&mut self, code: KeyCode, modifiers: KeyModifiers) {
        self.message.clear();
        if modifiers.contains(KeyModifiers::CONTROL) && code == KeyCode::Char('c') {
            self.ended = true;
            return;
        }
        if let Some((prompt, text)) = self.typing.take() {
            self.typed(prompt, text, code);
            return;
        }
        if self.help {
            self.help = false;
            return;
        }
        match code {
            KeyCode::Char('q') => self.ended = true,
            KeyCode::Char('?') => self.help = true,
            KeyCode::Char('o') => self.ask(Question::Overview),
            KeyCode::Char('l') => self.ask(Question::Leaks),
            KeyCode::Char('h') => self.ask(Question::Histogram(GroupBy::Class, SortBy::Retained)),
            KeyCode::Char('d') => self.ask(Question::Dominators(None)),
            KeyCode::Char('t') => self.ask(Question::Threads),
            KeyCode::Char('s') => self.ask(Question::Strings(None)),
            KeyCode::Char('u') => self.ask(Question::Unreachable),
            KeyCode::Enter | KeyCode::Right => self.open(),
            KeyCode::Backspace | KeyCode::Left | KeyCode::Esc => {
                if self.screens.len() > 1 {
                    self.screens.pop();
                }
            }
            KeyCode::Char('/') => self.typing = Some((Prompt::Search, String::new())),
            KeyCode::Char('f') => self.typing = Some((Prompt::Strings, String::new())),
            KeyCode::Char('@') => self.typing = Some((Prompt::Object, "@".to_owned())),
            KeyCode::Char('n') => self.find(true),
            KeyCode::Char('N') => self.find(false),
            KeyCode::Char('b' | 'S') => self.regroup(code == KeyCode::Char('b')),
            KeyCode::Char('p' | 'c' | 'r' | 'i' | 'D') => self.ask_about(code),
            other => self.go(other),
        }
    }

    fn go(&mut self, code: KeyCode) {
        let page = self.height.max(2) - 1;
        let screen = self.screen_mut();
        let last = screen.lines.len().saturating_sub(1);
        screen.chosen = match code {
            KeyCode::Char('j') | KeyCode::Down => screen.chosen + 1,
            KeyCode::Char('k') | KeyCode::Up => screen.chosen.saturating_sub(1),
            KeyCode::PageDown | KeyCode::Char(' ') => screen.chosen + page,
            KeyCode::PageUp => screen.chosen.saturating_sub(page),
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => last,
            _ => screen.chosen,
        }
        .min(last);
    }

    fn open(&mut self) {
        match self.target() {
            Some(Target::Object(id)) => self.ask(Question::Object(id)),
            Some(Target::Set(set)) => self.ask(Question::Objects(set)),
            None => self.message = "this line leads nowhere".to_owned(),
        }
    }

    fn ask_about(&mut self, code: KeyCode) {
        let Some(subject) = self.subject() else {
            self.message = "choose a line with an object or a class".to_owned();
            return;
        };
        let one = match &subject {
            SetSpec::Objects(ids) => ids.first().copied(),
            _ => None,
        };
        match (code, one) {
            (KeyCode::Char('p'), Some(id)) => self.ask(Question::Paths(id)),
            (KeyCode::Char('D'), Some(id)) => self.ask(Question::Dominators(Some(id))),
            (KeyCode::Char('r'), _) => {
                self.ask(Question::HistogramOf(SetSpec::Retained(Box::new(subject))));
            }
            (KeyCode::Char('i'), _) => {
                self.ask(Question::HistogramOf(SetSpec::In(Box::new(subject))));
            }
            (KeyCode::Char('c'), Some(id)) => {
                let class = self.heap.find(id).map(|o| self.heap.class_of(o));
                if let Some(class) = class {
                    let name = self.heap.class(class).name.clone();
                    self.ask(Question::Objects(SetSpec::Class(name)));
                }
            }
            (KeyCode::Char('c'), None) => self.ask(Question::Objects(subject)),
            _ => self.message = "this is asked about one object; open the row first".to_owned(),
        }
    }

    fn regroup(&mut self, group: bool) {
        let Question::Histogram(by, sort) = self.screen().question else {
            self.message = "only in the histogram (h)".to_owned();
            return;
        };
        let next = if group {
            let by = match by {
                GroupBy::Class => GroupBy::Package,
                GroupBy::Package => GroupBy::Loader,
                GroupBy::Loader => GroupBy::Superclass,
                GroupBy::Superclass => GroupBy::Site,
                GroupBy::Site => GroupBy::Heap,
                GroupBy::Heap => GroupBy::Class,
            };
            Question::Histogram(by, sort)
        } else {
            let sort = match sort {
                SortBy::Retained => SortBy::Shallow,
                SortBy::Shallow => SortBy::Objects,
                SortBy::Objects => SortBy::Name,
                SortBy::Name => SortBy::Retained,
            };
            Question::Histogram(by, sort)
        };
        let depth = self.screens.len();
        self.ask(next);
        // The regrouped histogram takes the place of the one before.
        if self.screens.len() > depth && depth > 1 {
            self.screens.remove(depth - 1);
        }
    }

    fn typed(&mut self, prompt: Prompt, mut text: String, code: KeyCode) {
        match code {
            KeyCode::Char(c) => {
                text.push(c);
                self.typing = Some((prompt, text));
            }
            KeyCode::Backspace => {
                text.pop();
                self.typing = Some((prompt, text));
            }
            KeyCode::Enter if !text.is_empty() => match prompt {
                Prompt::Search => {
                    self.search = text.to_lowercase();
                    self.find(true);
                }
                Prompt::Strings => self.ask(Question::Strings(Some(text))),
                Prompt::Object => match text.parse() {
                    Ok(id) => self.ask(Question::Object(id)),
                    Err(NoObjectId) => self.message = NoObjectId.to_string(),
                },
            },
            KeyCode::Esc | KeyCode::Enter => {}
            _ => self.typing = Some((prompt, text)),
        }
    }

    /// The next line with the searched words, around the end.
    fn find(&mut self, forward: bool) {
        if self.search.is_empty() {
            self.message = "search with /".to_owned();
            return;
        }
        let screen = self.screen();
        let count = screen.lines.len();
        let found = (1..=count)
            .map(|step| {
                let step = if forward { step } else { count - step };
                (screen.chosen + step) % count
            })
            .find(|at| {
                screen.lines[*at]
                    .text()
                    .to_lowercase()
                    .contains(&self.search)
            });
        match found {
            Some(at) => self.screen_mut().chosen = at,
            None => self.message = format!("{} is not on this screen", self.search),
        }
    }
}
