//! Tables about running programs as text, from the declaration of their columns (`live_analysis::columns`).

use crate::csv::line;
use crate::units::{bytes_change, change, grouped, human_bytes, percent, utc};
use live_analysis::columns::{Column, Kind, Value};

/// A value for people; empty if it is not known.
pub fn text(kind: Kind, value: Value<'_>) -> String {
    match (kind, value) {
        (_, Value::None) => String::new(),
        (Kind::Bytes, Value::Count(bytes)) => human_bytes(bytes),
        (Kind::Milliseconds, Value::Count(ms)) => format!("{} s", grouped(ms / 1000)),
        (Kind::Time, Value::Count(ms)) => utc(ms),
        (Kind::Rate, Value::Real(rate)) => format!("{}/h", human_bytes(rate.max(0.0) as u64)),
        (Kind::Number, number) => number.to_string(),
        (Kind::BytesChange, Value::Change(bytes)) => bytes_change(bytes),
        (Kind::Percent, Value::Real(share)) => percent(share / 100.0),
        (_, Value::Count(number)) => grouped(number),
        (_, Value::Change(number)) => change(number),
        (_, Value::Real(number)) => format!("{number:.1}"),
        (_, Value::Text(text)) => text.to_owned(),
        (_, Value::Lines(lines)) => lines.join("\n"),
        (_, Value::Interval(low, high)) => format!("{}-{}", grouped(low), grouped(high)),
        (_, object) => object.to_string(),
    }
}

/// The columns that a screen shows beside the name.
pub fn shown<R>(columns: &'static [Column<R>]) -> impl Iterator<Item = &'static Column<R>> {
    columns.iter().filter(|column| column.kind.is_shown())
}

/// The cells of these columns, each with its interval, if it has one.
pub fn cells<R>(columns: &'static [Column<R>], row: &R) -> Vec<String> {
    let interval = |of: &Column<R>| {
        let mut all = columns.iter();
        let interval = all.find(|column| column.of == Some(of.name))?;
        let ends = text(of.kind, (interval.value)(row));
        (!ends.is_empty()).then(|| format!(" ({ends})"))
    };
    let cell = |column: &'static Column<R>| {
        let value = text(column.kind, (column.value)(row));
        value + &interval(column).unwrap_or_default()
    };
    shown(columns).map(cell).collect()
}

/// The name of a row.
pub fn name<R>(columns: &'static [Column<R>], row: &R) -> String {
    columns
        .first()
        .map(|column| (column.value)(row).to_string())
        .unwrap_or_default()
}

/// Qualifies or describes the name of a row: its loader, its thread, the value of an object.
pub fn details<R>(columns: &'static [Column<R>], row: &R) -> Vec<String> {
    let is_detail = |kind| matches!(kind, Kind::Detail | Kind::Description);
    let details = columns.iter().filter(|column| is_detail(column.kind));
    let texts = details.map(|column| (column.value)(row).to_string());
    texts.filter(|text| !text.is_empty()).collect()
}

/// The frames of a row, innermost first.
pub fn frames<R>(columns: &'static [Column<R>], row: &R) -> Vec<String> {
    let mut stacks = columns.iter().filter(|column| column.kind == Kind::Stack);
    match stacks.next().map(|column| (column.value)(row)) {
        Some(Value::Lines(lines)) => lines.to_vec(),
        _ => Vec::new(),
    }
}

/// Names of all columns.
pub fn heads<R>(columns: &'static [Column<R>]) -> Vec<&'static str> {
    columns.iter().map(|column| column.name).collect()
}

/// All cells of a row for other programs.
pub fn exact_cells<R>(columns: &'static [Column<R>], row: &R) -> Vec<String> {
    let cells = columns.iter().map(|column| (column.value)(row).to_string());
    cells.collect()
}

/// A table as [CSV](crate::csv).
pub fn csv<R>(columns: &'static [Column<R>], rows: &[R]) -> String {
    let lines = rows.iter().map(|row| line(exact_cells(columns, row)));
    std::iter::once(line(heads(columns))).chain(lines).collect()
}

/// The columns of a table as a table of the reference, in Markdown.
pub fn reference<R>(columns: &'static [Column<R>]) -> String {
    let mut out = String::from("| Field | Column | Unit | Meaning |\n|---|---|---|---|\n");
    for column in columns {
        let unit = match column.kind {
            Kind::Name | Kind::Text | Kind::Detail | Kind::Description => "text",
            Kind::Stack => "list of texts",
            Kind::Count | Kind::CountChange | Kind::Number => "number",
            Kind::Bytes | Kind::BytesChange => "bytes",
            Kind::Mean => "mean",
            Kind::Percent => "percent",
            Kind::Milliseconds => "ms",
            Kind::Time => "ms since 1970",
            Kind::Rate => "bytes per hour",
            Kind::Interval => "two numbers",
        };
        let (name, title, help) = (column.name, column.title, column.help);
        out.push_str(&format!("| `{name}` | {title} | {unit} | {help} |\n"));
    }
    out
}
