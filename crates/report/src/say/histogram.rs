//! Counts by group.

use super::Say;
use super::summary::without_stacks;
use crate::doc::{Cell, Doc, Span, Table, number, words};
use heap_analysis::tables::group::{GroupBy, GroupKey};
use heap_analysis::tables::histogram::{Histogram, HistogramRow};
use heap_analysis::tables::unreachable::Unreachable;

/// The heading of the column of names.
pub(super) fn column_of(by: GroupBy) -> &'static str {
    match by {
        GroupBy::Class => "class",
        GroupBy::Superclass => "class with its subclasses",
        GroupBy::Loader => "class loader",
        GroupBy::Package => "package",
        GroupBy::Heap => "heap",
        GroupBy::Site => "allocated at",
    }
}

/// The cell of a group's name.
pub(super) fn key_cell(by: GroupBy, key: &GroupKey) -> Cell {
    let set = match key {
        GroupKey::Class { class, class_id } => {
            let word = if by == GroupBy::Superclass {
                "sub"
            } else {
                "class"
            };
            // Several loaders may each have a class of the name.
            let class = match class_id.0.is_null() {
                true => class.clone(),
                false => class_id.to_string(),
            };
            format!("{word}:{class}")
        }
        GroupKey::Package { package } => format!("package:{package}"),
        _ => return Cell::value(key.name()),
    };
    let (text, set) = (key.name(), Some(set));
    Span::Name { text, set }.into()
}

/// The rows as a table, with the columns objects, shallow, retained, share, name.
pub(super) fn table(histogram: &Histogram, total_bytes: u64) -> Table {
    let retained = histogram.rows.iter().any(|r| r.retained.is_some());
    let mut columns = vec![number("objects"), number("shallow")];
    if retained {
        columns.extend([number("retained"), number("share")]);
    }
    columns.push(words(column_of(histogram.by)));
    let mut table = Table::new(columns);
    let share = |row: &HistogramRow| match row.retained {
        Some(bytes) if total_bytes > 0 => bytes.0 as f64 / total_bytes as f64,
        _ => 0.0,
    };
    for row in &histogram.rows {
        let mut cells = vec![Cell::count(row.objects), Cell::bytes(row.shallow)];
        if let Some(bytes) = row.retained {
            cells.extend([Cell::bytes(bytes), Cell::share(share(row))]);
        }
        cells.push(key_cell(histogram.by, &row.key));
        table.row(cells);
    }
    let mut total = vec![
        Cell::count(histogram.total.objects),
        Cell::bytes(histogram.total.shallow),
    ];
    if retained {
        total.extend([Cell::empty(), Cell::empty()]);
    }
    total.push(Span::Dim("total".to_owned()).into());
    table.total = Some(total);
    table.omitted = histogram.omitted_rows;
    table
}

impl Say for Histogram {
    const NAME: &'static str = "histogram";

    fn doc(&self) -> Doc {
        let what = if self.all_objects {
            "All objects of the file"
        } else {
            "Reachable objects"
        };
        Doc::new()
            .heading(what)
            .table(table(self, self.heap_shallow.0))
    }
}

impl Say for Unreachable {
    const NAME: &'static str = "unreachable";

    fn doc(&self) -> Doc {
        let mut table = Table::new([number("objects"), number("shallow"), words("class")]);
        for row in &self.rows {
            table.row([
                Cell::count(row.objects),
                Cell::bytes(row.shallow),
                key_cell(GroupBy::Class, &row.key),
            ]);
        }
        table.omitted = self.omitted_rows;
        table.when_empty = "Everything in the dump is reachable.";
        let threads = self.parked_virtual_threads;
        let mut reasons = Vec::new();
        if self.is_damaged {
            reasons.push(
                "the dump is damaged, so objects can be unreachable only because records are missing"
                    .to_owned(),
            );
        }
        if threads > 0 {
            let threads = without_stacks(threads);
            reasons.push(format!("some can be held by {threads}"));
        }
        let freed = if reasons.is_empty() {
            " of all objects. They are garbage, except for what the VM itself holds without a root record, such as threads \
             and classes of its own."
                .to_owned()
        } else {
            let reasons = reasons.join("; ");
            format!(" of all objects. Not all of them need be garbage: {reasons}.")
        };
        Doc::new()
            .text([
                Span::Count(self.total.objects),
                Span::from(" objects are in the dump although nothing reaches them: "),
                Span::Bytes(self.total.shallow.0),
                Span::from(", "),
                Span::Share(self.share),
                Span::Text(freed),
            ])
            .table(table)
    }
}
