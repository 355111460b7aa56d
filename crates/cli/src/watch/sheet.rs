//! Sheets of text: what an answer becomes for the terminal.

use live_analysis::table::Table;
use report::escape::visible;
use report::live;

/// A row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The cells in front of the name, as many as the view has columns.
    pub cells: Vec<String>,
    /// Class, package, library, or what happened.
    pub name: String,
    /// The exact name, for a question about it.
    pub key: String,
    /// What the row stands for in full: frames, innermost first.
    pub details: Vec<String>,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sheet {
    /// Where the numbers come from, and how many rows there are.
    pub heading: String,
    /// The rows.
    pub rows: Vec<Row>,
    /// The text that is shown when there are none.
    pub empty: &'static str,
}

/// The rows of a table, with the columns that it declares.
pub(super) fn rows_of<R>(table: &Table<R>) -> Vec<Row> {
    let columns = table.columns;
    let row = |row: &R| {
        let (key, frames) = (live::name(columns, row), live::frames(columns, row));
        // The constructors are called by the code that allocates.
        let caller = frames.iter().find(|frame| !frame.contains(".<init>("));
        let details = live::details(columns, row);
        let more: String = details
            .iter()
            .chain(caller)
            .map(|text| format!("  {text}"))
            .collect();
        let mut made = plain_row(live::cells(columns, row), &format!("{key}{more}"), frames);
        made.key = key;
        made
    };
    table.rows.iter().map(row).collect()
}

/// Names come from the program: what would move the cursor is made visible.
pub(super) fn plain_row(cells: Vec<String>, name: &str, details: Vec<String>) -> Row {
    let clean = |text: &str| visible(text).replace(['\n', '\t'], " ");
    Row {
        cells: cells.iter().map(|cell| clean(cell)).collect(),
        name: clean(name),
        key: name.to_owned(),
        details: details.iter().map(|line| clean(line)).collect(),
    }
}
