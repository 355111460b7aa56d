//! Differences between two tables of classes.

use crate::classes::ClassRow;
use crate::columns::{Column, Kind, Tabular};
use std::collections::BTreeMap;

/// The difference of a class between two tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Class name.
    pub class: String,
    /// Live objects before.
    pub live_before: u64,
    /// Live objects after.
    pub live_after: u64,
    /// Their difference.
    pub live_change: i64,
    /// Bytes of live objects before.
    pub bytes_before: u64,
    /// Bytes of live objects after.
    pub bytes_after: u64,
    /// Their difference.
    pub bytes_change: i64,
    /// Difference of the bytes of their arrays, if both tables have them.
    pub capacity_bytes_change: Option<i64>,
    /// Difference of the numbers of their elements, if both tables have them.
    pub size_change: Option<i64>,
}

impl Tabular for Change {
    const SCHEMA: &'static str = "tenure.live.compare/1";
    const ABOUT: &'static str = "What changed between two saved tables of classes.";
    const SORT: &'static str = "bytes_change";
    const COLUMNS: &'static [Column<Change>] = &[
        Column::new(Kind::Name, "class", "Type", "Class name.", |row| {
            row.class.as_str().into()
        }),
        Column::new(
            Kind::Count,
            "live_before",
            "Live before",
            "Live objects in the first table.",
            |row| row.live_before.into(),
        ),
        Column::new(
            Kind::Count,
            "live_after",
            "Live after",
            "Live objects in the second table.",
            |row| row.live_after.into(),
        ),
        Column::new(
            Kind::CountChange,
            "live_change",
            "Live change",
            "Live objects in the second table less those in the first.",
            |row| row.live_change.into(),
        ),
        Column::new(
            Kind::Bytes,
            "bytes_before",
            "Bytes before",
            "Bytes of live objects in the first table.",
            |row| row.bytes_before.into(),
        ),
        Column::new(
            Kind::Bytes,
            "bytes_after",
            "Bytes after",
            "Bytes of live objects in the second table.",
            |row| row.bytes_after.into(),
        ),
        Column::new(
            Kind::BytesChange,
            "bytes_change",
            "Bytes change",
            "Bytes in the second table less those in the first.",
            |row| row.bytes_change.into(),
        ),
        Column::new(
            Kind::CountChange,
            "size_change",
            "Elements change",
            "Difference of the numbers of elements, if both tables have them.",
            |row| row.size_change.into(),
        ),
        Column::new(
            Kind::BytesChange,
            "capacity_bytes_change",
            "Capacity bytes change",
            "Difference of the bytes of arrays, if both tables have them.",
            |row| row.capacity_bytes_change.into(),
        ),
    ];
}

fn difference(before: u64, after: u64) -> i64 {
    i64::try_from(i128::from(after) - i128::from(before)).unwrap_or(i64::MAX)
}

/// Every class of either table whose live objects changed in number, bytes or content. Content is compared if it is
/// known for both times (`contents`).
pub fn compare(before: Vec<ClassRow>, after: Vec<ClassRow>, contents: bool) -> Vec<Change> {
    let mut both: BTreeMap<String, [Option<ClassRow>; 2]> = BTreeMap::new();
    for (side, rows) in [before, after].into_iter().enumerate() {
        for row in rows {
            let sides = both.entry(row.class.clone()).or_default();
            sides[side] = Some(row);
        }
    }
    let changes = both.into_iter().map(|(class, sides)| {
        let [a, b] = sides.map(Option::unwrap_or_default);
        // A class without live objects has size 0; a class with live objects and without sizes is unknown.
        let known = |row: &ClassRow, value: Option<u64>| match row.live {
            0 => Some(value.unwrap_or(0)),
            _ => value,
        };
        let size = |row: &ClassRow| known(row, row.size.map(|size| size.sum));
        let capacity = |row: &ClassRow| known(row, row.capacity_bytes);
        let has = |row: &ClassRow| row.size.is_some();
        let sized = contents && (has(&a) || has(&b));
        let change = |a: Option<u64>, b: Option<u64>| Some(difference(a?, b?)).filter(|_| sized);
        Change {
            class,
            live_before: a.live,
            live_after: b.live,
            live_change: difference(a.live, b.live),
            bytes_before: a.live_bytes,
            bytes_after: b.live_bytes,
            bytes_change: difference(a.live_bytes, b.live_bytes),
            capacity_bytes_change: change(capacity(&a), capacity(&b)),
            size_change: change(size(&a), size(&b)),
        }
    });
    changes
        .filter(|change| {
            let content = [change.size_change, change.capacity_bytes_change];
            change.live_change != 0
                || change.bytes_change != 0
                || content.into_iter().flatten().any(|n| n != 0)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::Measure;

    fn row(class: &str, live: u64, size: Option<u64>) -> ClassRow {
        ClassRow {
            class: class.to_owned(),
            live,
            live_bytes: live * 24,
            size: size.map(|sum| Measure {
                sum,
                ..Measure::default()
            }),
            capacity_bytes: size.map(|sum| sum * 8),
            ..ClassRow::default()
        }
    }

    #[test]
    fn changes_are_after_less_before_and_unknown_sizes_stay_unknown() {
        let before = vec![
            row("gone", 2, Some(4)),
            row("same", 5, None),
            row("unsized", 1, None),
        ];
        let after = vec![
            row("new", 3, Some(9)),
            row("same", 5, None),
            row("unsized", 4, Some(2)),
        ];
        let unknown = compare(before.clone(), after.clone(), false);
        assert!(unknown.iter().all(|change| change.size_change.is_none()));
        let changes = compare(before, after, true);
        let seen: Vec<_> = changes
            .iter()
            .map(|c| (&*c.class, c.live_change, c.bytes_change, c.size_change))
            .collect();
        assert_eq!(
            seen,
            [
                ("gone", -2, -48, Some(-4)),
                ("new", 3, 72, Some(9)),
                ("unsized", 3, 72, None)
            ]
        );
    }
}
