//! Answers about what was kept or chosen: saved tables, what changed between two, the options of
//! classes, the source of a stack. And what the keys do with them.

use super::app::{Action, Place, Prompt, Watch};
use super::question::{Question, Row, Sheet, plain_row, signed, signed_bytes};
use super::view::View;
use report::units::{grouped, human_bytes, utc};
use server::live::shelf::{Change, Saved};
use server::live::{Live, ask, source};
use server::reply::Fault;

/// Lines of source before the frame's own, and behind it.
const BEFORE: usize = 4;
const BEHIND: usize = 40;

/// The tables of all classes that were kept, the last one at the top.
pub(super) fn tables(live: &Live) -> Sheet {
    let saved = live.status().borrow().saved.clone();
    let row = |table: &Saved| {
        let cells = vec![
            table.number.to_string(),
            utc(table.time_ms).trim_end_matches(" UTC").to_owned(),
            table.source.clone(),
        ];
        let mut row = plain_row(cells, &table.file("html").display().to_string(), Vec::new());
        row.key = table.number.to_string();
        row
    };
    Sheet {
        heading: format!("{} (w keeps one now)", grouped(saved.len() as u64)),
        rows: saved.iter().rev().map(row).collect(),
        empty: "No table of all classes was kept; w keeps one now.",
    }
}

/// What changed between two of them.
pub(super) fn changes(question: &Question, live: &Live) -> Result<Sheet, Fault> {
    let (from, to) = question.tables;
    let params = question.params("by");
    let params = params.with("from", &from.to_string());
    let answer = ask::compare(live, &params.with("to", &to.to_string()))?;
    let row = |change: &Change| {
        let known = |n: Option<i64>, text: fn(i64) -> String| n.map(text).unwrap_or_default();
        let cells = vec![
            grouped(change.live_before),
            grouped(change.live_after),
            signed(change.live_change),
            human_bytes(change.bytes_before),
            human_bytes(change.bytes_after),
            signed_bytes(change.bytes_change),
            known(change.capacity_bytes_change, signed_bytes),
            known(change.size_change, signed),
        ];
        plain_row(cells, &change.class, Vec::new())
    };
    Ok(Sheet {
        heading: format!("{} classes", grouped(answer.count as u64)),
        rows: answer.rows.iter().map(row).collect(),
        empty: "Nothing has changed.",
    })
}

/// The options of classes, line by line.
pub(super) fn options(live: &Live) -> Sheet {
    let lines = ask::options(live).text;
    Sheet {
        heading: "the first line that fits a class holds".to_owned(),
        rows: lines.lines().map(option_row).collect(),
        empty: "Every class is recorded in full. A adds a line, such as  * sun.** off",
    }
}

fn option_row(line: &str) -> Row {
    plain_row(Vec::new(), line, Vec::new())
}

/// The frames of a stack, each with the lines around its own.
pub(super) fn source(question: &Question, live: &Live) -> Result<Sheet, Fault> {
    if live.sources().is_empty() {
        let text = "no sources are known; start tenure watch with --source FOLDER";
        return Err(Fault::not_found(text));
    }
    let row = |frame: &String| plain_row(Vec::new(), frame, excerpt(live, frame));
    let rows: Vec<Row> = question.stack.iter().map(row).collect();
    Ok(Sheet {
        heading: format!("{} frames", grouped(rows.len() as u64)),
        rows,
        empty: "This stack has no frames.",
    })
}

fn excerpt(live: &Live, frame: &str) -> Vec<String> {
    let Some(found) = source::find(live.sources(), frame) else {
        return vec!["its source is in none of the folders".to_owned()];
    };
    let own = found.line.unwrap_or(found.first);
    let numbered = found.lines.iter().zip(found.first..);
    let around = numbered.filter(|(_, n)| *n + BEFORE >= own && *n <= own + BEHIND);
    let line = |(text, n): (&String, usize)| {
        let mark = if found.line == Some(n) { '►' } else { ' ' };
        format!("{mark}{n:>5}  {}", text.replace('\t', "    "))
    };
    std::iter::once(found.file.clone())
        .chain(around.map(line))
        .collect()
}

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
            self.message = "lines are those of the options of classes (o)".to_owned();
        }
    }

    fn is_answered(&self) -> bool {
        matches!(self.sheet(), Some(Ok(_)))
    }

    /// Removes the chosen line of the options.
    pub(super) fn remove_line(&mut self) -> Option<Action> {
        if self.view() != View::Options || self.chosen_row().is_none() {
            self.message = "lines are those of the options of classes (o)".to_owned();
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
