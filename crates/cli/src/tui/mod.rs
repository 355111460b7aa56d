//! The explorer in a terminal. An answer becomes a document (`report`), a document becomes lines of
//! which some lead on, and keys move through them. In reading order: [`lines`], [`screen`] (the
//! questions), [`app`] (keys: a state machine without a terminal), [`draw`], [`terminal`].

pub mod app;
pub mod draw;
pub mod lines;
pub mod screen;
pub mod terminal;

use app::App;
use heap_graph::Heap;
use ratatui::DefaultTerminal;
use std::time::Duration;
use terminal::{Ended, with_terminal};

/// How often the screen is drawn again although no key came: it may have another size.
const TICK: Duration = Duration::from_millis(250);

/// Runs until `q` or a signal.
///
/// # Errors
/// When the terminal cannot be read or written.
pub fn run(heap: &Heap, file: &str, color: bool) -> anyhow::Result<()> {
    let mut app = App::new(heap, file)?;
    with_terminal(|terminal, ended| follow(&mut app, terminal, ended, color))
}

/// Explores a heap on a terminal that is there already, until `q` or a signal.
///
/// # Errors
/// When the terminal cannot be read or written.
pub fn follow(
    app: &mut App<'_>,
    terminal: &mut DefaultTerminal,
    ended: &Ended,
    color: bool,
) -> anyhow::Result<()> {
    while !app.ended && !ended.is_set() {
        terminal.draw(|frame| draw::draw(app, frame, color))?;
        if let Some(key) = ended.key(TICK)? {
            app.key(key.code, key.modifiers);
        }
    }
    Ok(())
}
