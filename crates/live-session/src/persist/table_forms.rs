//! HTML tables, and a page that can be sorted without a server.

use live_analysis::columns::{Column, Kind};
use live_analysis::table::Table;
use report::{escape, live};
use std::fmt::Write;

/// The most frames of a stack that a page without JavaScript shows.
const FRAMES: usize = 12;

/// The script that sorts a table when its heads are clicked; also the answer to `/profiler?action=script`.
pub const SORT_SCRIPT: &str = include_str!("../../web/tablesort.js");

/// One page without any links, with its script included.
pub fn page<R>(title: &str, columns: &'static [Column<R>], rows: &[R]) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title} - Tenure</title>\n\
         <style>.t{{overflow-x:auto}}body{{font:13px system-ui}}table{{border-collapse:collapse;\
         font-variant-numeric:tabular-nums}}td,th{{padding:2px 8px;text-align:right;\
         border-bottom:1px solid #8884}}td:first-child,th:first-child{{text-align:left}}\
         th{{cursor:pointer}}</style>\n<script>\n{SORT_SCRIPT}</script>\n</head>\n<body>\n\
         <h1>{title}</h1>\n",
    );
    let cells: Vec<_> = rows
        .iter()
        .map(|row| live::exact_cells(columns, row))
        .collect();
    push_table(&mut out, &live::heads(columns), &cells);
    out.push_str("</body>\n</html>\n");
    out
}

/// A table as HTML, with its notes: the name with its details and first frames, then the numbers.
pub fn push_answer<R>(out: &mut String, table: &Table<R>) {
    for note in &table.notes {
        let _ = writeln!(out, "<p class=\"bad\">{}</p>", escape::html(note));
    }
    if table.rows.is_empty() {
        out.push_str("<p>There are no rows.</p>\n");
    }
    let columns = table.columns;
    let name = columns.first().map(|column| column.title);
    let heads: Vec<&str> = name
        .into_iter()
        .chain(live::shown(columns).map(|column| column.title))
        .collect();
    let row = |row: &R| {
        let mut lines = vec![live::name(columns, row)];
        if lines[0].is_empty() {
            "All".clone_into(&mut lines[0]);
        }
        lines.extend(
            live::details(columns, row)
                .iter()
                .map(|it| format!("  {it}")),
        );
        let frames = live::frames(columns, row);
        lines.extend(frames.iter().take(FRAMES).map(|it| format!("  at {it}")));
        // Numbers have all digits, so that they can be sorted.
        let cells = live::shown(columns).map(|column| match (column.kind, (column.value)(row)) {
            (kind @ (Kind::Time | Kind::Rate), value) => live::text(kind, value),
            (_, value) => value.to_string(),
        });
        std::iter::once(lines.join("\n")).chain(cells).collect()
    };
    let cells: Vec<Vec<String>> = table.rows.iter().chain(&table.total).map(row).collect();
    push_table(out, &heads, &cells);
}

/// A table of texts, escaped.
pub fn push_table(out: &mut String, columns: &[&str], rows: &[Vec<String>]) {
    out.push_str("<div class=\"t\"><table class=\"sortable\">\n<thead><tr>");
    for column in columns {
        let _ = write!(out, "<th>{}</th>", escape::html(column));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for cell in row {
            let lines: Vec<String> = cell.split('\n').map(escape::html).collect();
            let _ = write!(out, "<td>{}</td>", lines.join("<br>"));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table></div>\n");
}
