//! What the keys do with the rows of saved tables and class filters, and with the stack of a row.

use super::app::{Action, Place, Prompt, Watch};
use super::question::Question;
use super::saved::option_row;
use super::sheet::Row;
use super::view::View;

impl Watch {
    /// The source of the chosen row's stack.
    pub(super) fn show_source(&mut self) {
        let stack = self.chosen_row().map(|row| row.details).unwrap_or_default();
        if stack.is_empty() || self.view() == View::Source {
            self.message = "this row has no stack; Enter shows the stacks of a class".to_owned();
            return;
        }
        self.places.push(Place {
            stack,
            open: true,
            ..Place::of(View::Source)
        });
    }

    /// The table that others are compared with.
    pub(super) fn mark_table(&mut self) {
        let row = self.chosen_row().filter(|_| self.view() == View::Saved);
        let number = row.and_then(|row| row.key.parse().ok());
        self.message = match number {
            Some(number) => format!("compared from table {number}: choose another, and Enter"),
            None => "there is no saved table here (v)".to_owned(),
        };
        if number.is_some() {
            self.place_mut().marked = number;
        }
    }

    /// What changed up to the chosen table: since the marked one, or since the one before it.
    pub(super) fn compare(&mut self, row: &Row) {
        let number = row.key.parse::<usize>().unwrap_or(0);
        let marked = self.place().marked.filter(|marked| *marked != number);
        let from = marked.unwrap_or(number.saturating_sub(1));
        if from == 0 {
            self.message = "there is no table before this one; c marks one".to_owned();
            return;
        }
        self.places.push(Place {
            tables: (from, number),
            ..Place::of(View::Changes)
        });
    }

    /// Types a line of the options, or a new one.
    pub(super) fn type_line(&mut self, prompt: Prompt) {
        let row = self.chosen_row();
        self.typing = match (self.view(), prompt, row) {
            (View::Options, Prompt::Line, Some(row)) => Some((prompt, row.key)),
            (View::Options, ..) if self.is_answered() => Some((Prompt::NewLine, String::new())),
            _ => None,
        };
        if self.typing.is_none() {
            self.message = "lines are those of the class filters (o)".to_owned();
        }
    }

    fn is_answered(&self) -> bool {
        matches!(self.sheet(), Some(Ok(_)))
    }

    /// Removes the chosen line of the options.
    pub(super) fn remove_line(&mut self) -> Option<Action> {
        if self.view() != View::Options || self.chosen_row().is_none() {
            self.message = "lines are those of the class filters (o)".to_owned();
            return None;
        }
        self.change_lines(Prompt::Line, String::new())
    }

    /// Puts a line in the place of the chosen one, or below it; an empty one goes.
    pub(super) fn change_lines(&mut self, prompt: Prompt, line: String) -> Option<Action> {
        let at = self.place().chosen;
        // What was shown may have gone while this was typed.
        let Some((
            Question {
                view: View::Options,
                ..
            },
            Ok(sheet),
        )) = &mut self.sheet
        else {
            return None;
        };
        let mut lines: Vec<String> = sheet.rows.iter().map(|row| row.key.clone()).collect();
        match prompt {
            Prompt::Line if at < lines.len() => lines[at] = line,
            _ => lines.insert((at + 1).min(lines.len()), line),
        }
        lines.retain(|line| !line.trim().is_empty());
        // Shown at once; if it is refused, the next answer has what holds.
        sheet.rows = lines.iter().map(|line| option_row(line)).collect();
        let last = lines.len().saturating_sub(1);
        let place = self.place_mut();
        place.chosen = match prompt {
            Prompt::NewLine => (at + 1).min(last),
            _ => at.min(last),
        };
        Some(Action::Command("options", vec![("text", lines.join("\n"))]))
    }
}
