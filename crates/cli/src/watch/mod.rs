//! A running program in a terminal: the live page without a browser. What is watched, recorded and
//! asked is the page's own (`live_session`); here it becomes text. In reading order: [`view`] (the columns), [`question`]
//! (the answers as [`sheet`]s; those about what was saved and chosen in `saved`), [`app`] (keys: a state machine without a terminal; `rows` has the keys of some views), `chart`, [`draw`].

pub mod app;
mod chart;
pub mod draw;
pub mod question;
mod rows;
mod saved;
pub mod sheet;
pub mod view;

use crate::tui;
use crate::tui::terminal::{Ended, with_terminal};
use app::{Action, Watch};
use live_session::clock::now_ms;
use live_session::{Live, carry_out};
use question::Question;
use ratatui::DefaultTerminal;
use requests::Params;
use sheet::Sheet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// How often the screen is drawn while no key comes.
const TICK: Duration = Duration::from_millis(200);
/// Points of the timeline: more than a screen has columns.
const POINTS: usize = 1000;

type Answer = (Question, Result<Sheet, String>);

/// Shows a watched program until `q` or a signal.
///
/// # Errors
/// When the terminal cannot be read or written.
pub fn run(live: &Arc<Live>, color: bool) -> anyhow::Result<()> {
    with_terminal(|terminal, ended| follow(live, terminal, ended, color))
}

fn follow(
    live: &Arc<Live>,
    terminal: &mut DefaultTerminal,
    ended: &Ended,
    color: bool,
) -> anyhow::Result<()> {
    let status = live.status();
    let mut app = Watch::new(status.borrow().clone());
    let mut asking = Asking::new();
    let (done, outcomes) = channel();
    while !app.ended && !ended.is_set() {
        app.status = status.borrow().clone();
        outcomes.try_iter().for_each(|outcome| app.done(outcome));
        asking.step(live, &mut app);
        let (from, to) = chart::shown(&app, None);
        let timeline = live.timeline(from, to, POINTS, None);
        terminal.draw(|frame| draw::draw(&mut app, &timeline, frame, color))?;
        let Some(key) = ended.key(TICK)? else {
            continue;
        };
        match app.key(key.code, key.modifiers, now_ms()) {
            None => {}
            Some(Action::Command(name, parameters)) => command(live, name, parameters, &done),
            Some(Action::Explore) => {
                if let Err(error) = explore(live, terminal, ended, color) {
                    app.message = format!("{error:#}");
                }
            }
        }
    }
    Ok(())
}

/// Answers come from a thread, so that a VM that takes its time does not stop the keys.
struct Asking {
    sender: Sender<Answer>,
    receiver: Receiver<Answer>,
    /// What was asked last, when the rest of the state was of this age.
    asked: Option<(Question, String)>,
    is_waiting: bool,
}

impl Asking {
    fn new() -> Asking {
        let (sender, receiver) = channel();
        Asking {
            sender,
            receiver,
            asked: None,
            is_waiting: false,
        }
    }

    /// Takes an answer that has come, and asks what is to be asked now.
    fn step(&mut self, live: &Arc<Live>, app: &mut Watch) {
        while let Ok((question, answer)) = self.receiver.try_recv() {
            self.is_waiting = false;
            app.take(question, answer);
        }
        let next = (app.question(), app.age());
        if self.is_waiting || self.asked.as_ref() == Some(&next) {
            return;
        }
        let (live, sender, question) = (Arc::clone(live), self.sender.clone(), next.0.clone());
        let spawned = std::thread::Builder::new()
            .name("tenure-answer".to_owned())
            .spawn(move || {
                let answer = question.answer(&live);
                // The receiver is gone: the view has ended.
                let _ = sender.send((question, answer));
            });
        self.is_waiting = spawned.is_ok();
        self.asked = Some(next);
    }
}

/// Carries out a command on a thread, and reports its result.
fn command(
    live: &Arc<Live>,
    name: &'static str,
    parameters: Vec<(&'static str, String)>,
    done: &Sender<Result<(), String>>,
) {
    let (live, done) = (Arc::clone(live), done.clone());
    let pairs = parameters.into_iter();
    let params = Params::new(pairs.map(|(name, value)| (name.to_owned(), value)));
    std::thread::spawn(move || {
        let outcome = carry_out(&live, name, &params);
        // The receiver is gone: the view has ended.
        let _ = done.send(outcome.map(drop).map_err(|fault| fault.message));
    });
}

/// The last heap dump in the explorer, on the same terminal.
fn explore(
    live: &Live,
    terminal: &mut DefaultTerminal,
    ended: &Ended,
    color: bool,
) -> anyhow::Result<()> {
    let Some(dump) = live.dumps.last() else {
        anyhow::bail!("no heap dump has been taken (d)");
    };
    let number = live.dumps.count();
    let heap = dump
        .opened
        .heap()
        .map_err(|fault| anyhow::Error::msg(fault.message))?;
    let mut app = tui::app::App::new(heap, &format!("heap dump {number}"))?;
    tui::follow(&mut app, terminal, ended, color)
}
