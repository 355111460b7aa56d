//! The explorer in a terminal. An answer becomes a document (`report`), a document becomes lines of
//! which some lead on, and keys move through them. In reading order: [`lines`], [`screen`] (the
//! questions), [`app`] (keys: a state machine without a terminal), [`draw`].

pub mod app;
pub mod draw;
pub mod lines;
pub mod screen;

use app::App;
use heap_graph::Heap;
use ratatui::crossterm::event::{self, Event, KeyEventKind};

/// Runs until `q`.
///
/// # Errors
/// When the terminal cannot be read or written.
pub fn run(heap: &Heap, file: &str, color: bool) -> anyhow::Result<()> {
    let mut app = App::new(heap, file)?;
    let mut terminal = ratatui::try_init()?;
    let result = follow(&mut app, &mut terminal, color);
    // Whatever happened, the terminal is the user's again.
    let restored = ratatui::try_restore();
    result?;
    Ok(restored?)
}

fn follow(
    app: &mut App<'_>,
    terminal: &mut ratatui::DefaultTerminal,
    color: bool,
) -> anyhow::Result<()> {
    while !app.ended {
        terminal.draw(|frame| draw::draw(app, frame, color))?;
        match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                app.key(key.code, key.modifiers)
            }
            _ => {}
        }
    }
    Ok(())
}
