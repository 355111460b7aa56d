//! Tables to keep: JSON, CSV, or one page that sorts without a server.

use super::ask::Table;
use crate::explorer::params::Params;
use crate::reply::{Fault, json_bytes, typed};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use report::escape;
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;

/// What sorts a table when its heads are clicked; also the answer to `/profiler?action=script`.
pub(super) const SORT_SCRIPT: &str = include_str!("../../web/tablesort.js");

/// Columns of what changed between two tables that were kept.
const CHANGES: &[&str] = &[
    "class",
    "live_before",
    "live_after",
    "live_change",
    "bytes_before",
    "bytes_after",
    "bytes_change",
    "capacity_bytes_change",
    "size_change",
];

const REFERENCES: &[&str] = &[
    "name",
    "kind",
    "created",
    "deleted",
    "remaining",
    "cleared",
    "bytes",
    "oldest_ms",
    "thread",
    "held",
    "retained",
    "stack",
];

const ALLOCATIONS: &[&str] = &[
    "name",
    "allocations",
    "deallocations",
    "remaining",
    "allocated_bytes",
    "deallocated_bytes",
    "remaining_bytes",
    "live",
    "live_bytes",
    "context",
    "stack",
];

pub(super) const CLASSES: &[&str] = &[
    "class",
    "loader",
    "context",
    "sample_percent",
    "live",
    "live_interval",
    "dead",
    "total",
    "total_interval",
    "bytes_each",
    "live_bytes",
    "capacity_bytes",
    "capacity_bytes_interval",
    "size.sum",
    "size.interval",
    "size.max",
    "size.max_ever",
    "size.mean",
    "capacity.sum",
    "capacity.interval",
    "capacity.max",
    "capacity.max_ever",
    "capacity.mean",
];

/// A table in the form asked for: `form` json, csv or html.
pub(super) fn respond<R: Serialize>(
    params: &Params,
    name: &str,
    table: &Table<R>,
) -> Result<Response, Fault> {
    let form = params.get("form").unwrap_or("json");
    if form == "json" {
        return Ok(typed("application/json", json_bytes(table)));
    }
    let columns = match name {
        "classes" => CLASSES,
        "compare" => CHANGES,
        "references" => REFERENCES,
        _ => ALLOCATIONS,
    };
    let rows = texts(&table.rows, columns);
    let (media, text) = match form {
        "csv" => ("text/csv; charset=utf-8", csv(columns, &rows)),
        "html" => ("text/html; charset=utf-8", page(name, columns, &rows)),
        other => {
            return Err(Fault::bad(format!(
                "form={other}: expected json, csv or html"
            )));
        }
    };
    let file = format!("{name}.{form}");
    Ok(as_file(typed(media, text.into_bytes()), Path::new(&file)))
}

/// An answer that a browser keeps as a file of this name.
pub(super) fn as_file(mut response: Response, file: &Path) -> Response {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let disposition = format!("attachment; filename=\"{name}\"");
    if let Ok(value) = HeaderValue::from_str(&disposition) {
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_DISPOSITION, value);
    }
    response
}

/// The cells of a table as text.
pub(super) fn texts(rows: &[impl Serialize], columns: &[&'static str]) -> Vec<Vec<String>> {
    rows.iter().map(|row| cells(row, columns)).collect()
}

/// A table as CSV.
pub(super) fn csv(columns: &[&'static str], rows: &[Vec<String>]) -> String {
    let lines = rows.iter().map(report::csv::line);
    std::iter::once(report::csv::line(columns))
        .chain(lines)
        .collect()
}

fn cells(row: &impl Serialize, columns: &[&'static str]) -> Vec<String> {
    let value = serde_json::to_value(row).unwrap_or(Value::Null);
    let cell = |column: &&str| {
        let value = column
            .split('.')
            .try_fold(&value, |value, key| value.get(key));
        text(value.unwrap_or(&Value::Null))
    };
    columns.iter().map(cell).collect()
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(" < "),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => format!("{float:.2}"),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// One page without any link, with its own script.
pub(super) fn page(title: &str, columns: &[&'static str], rows: &[Vec<String>]) -> String {
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
    push_table(&mut out, columns, rows);
    out.push_str("</body>\n</html>\n");
    out
}

/// A table of texts, escaped.
pub(super) fn push_table(out: &mut String, columns: &[&'static str], rows: &[Vec<String>]) {
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
