//! Answers about what was saved or chosen: saved tables, what changed between two, the class filters, the source of a
//! stack.

use super::sheet::{Row, Sheet, plain_row, rows_of};
use live_session::Live;
use live_session::answers::{source, tables};
use live_session::persist::saved_tables::Saved;
use report::units::{grouped, utc};
use requests::Fault;
use requests::Params;

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
pub(super) fn changes(
    params: Params,
    (from, to): (usize, usize),
    live: &Live,
) -> Result<Sheet, Fault> {
    let params = params.with("from", &from.to_string());
    let answer = tables::compare(live, &params.with("to", &to.to_string()))?;
    Ok(Sheet {
        heading: format!("{} classes", grouped(answer.count as u64)),
        rows: rows_of(&answer),
        empty: "Nothing has changed.",
    })
}

/// The class filters, line by line.
pub(super) fn options(live: &Live) -> Sheet {
    let lines = tables::options(live).text;
    Sheet {
        heading: "the first line that fits a class holds".to_owned(),
        rows: lines.lines().map(option_row).collect(),
        empty: "Every class is recorded in full. A adds a line, such as  * sun.** off",
    }
}

pub(super) fn option_row(line: &str) -> Row {
    plain_row(Vec::new(), line, Vec::new())
}

/// The frames of a stack, each with the lines around its own.
pub(super) fn source(stack: &[String], live: &Live) -> Result<Sheet, Fault> {
    if live.sources().is_empty() {
        let text = "no sources are known; start tenure watch with --source FOLDER";
        return Err(Fault::not_found(text));
    }
    let row = |frame: &String| plain_row(Vec::new(), frame, excerpt(live, frame));
    let rows: Vec<Row> = stack.iter().map(row).collect();
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
