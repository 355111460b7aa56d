//! The difference between two profiles, by method.

use super::label;
use crate::doc::{Cell, Doc, Span, Table, number, words};
use ::profile::{Metric, Profile};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

/// A metric of a profile and of its base, by method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ProfileDifference {
    /// Name and version of this layout.
    pub schema: &'static str,
    /// The metric.
    pub metric: &'static str,
    /// Its name in a text.
    #[serde(skip)]
    pub label: &'static str,
    /// Its unit: `count`, `bytes` or `nanoseconds`.
    pub unit: &'static str,
    /// The sum of the profile.
    pub total: u64,
    /// The sum of the base.
    pub base_total: u64,
    /// Methods that differ, those whose own cost changed most first.
    pub methods: Vec<MethodDifference>,
    /// Differing methods that are not listed.
    pub omitted_methods: u64,
}

/// A method in both profiles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MethodDifference {
    /// `class.method`, or the allocated class in brackets.
    pub method: String,
    /// Cost with this method innermost.
    pub own: u64,
    /// The same in the base.
    pub base_own: u64,
    /// Cost with this method anywhere in the stack.
    pub total: u64,
    /// The same in the base.
    pub base_total: u64,
}

impl MethodDifference {
    fn changes(&self) -> (u64, u64) {
        (
            self.own.abs_diff(self.base_own),
            self.total.abs_diff(self.base_total),
        )
    }
}

/// Compares a profile with a base; at most `top` methods.
pub fn difference(
    profile: &Profile,
    base: &Profile,
    metric: Metric,
    top: Option<usize>,
) -> ProfileDifference {
    let mut rows: BTreeMap<String, MethodDifference> = BTreeMap::new();
    let mut totals = [0u64; 2];
    for (side, one) in [profile, base].into_iter().enumerate() {
        for stack in one.stacks(metric) {
            let add = |sum: &mut u64| *sum = sum.saturating_add(stack.value);
            add(&mut totals[side]);
            let mut frames = one.path(&stack);
            if frames.is_empty() {
                frames.push("[no stack]".to_owned());
            }
            let innermost = frames.last().cloned().unwrap_or_default();
            let row = rows.entry(innermost).or_default();
            add([&mut row.own, &mut row.base_own][side]);
            // A recursive method counts once in each stack.
            for name in frames.into_iter().collect::<HashSet<_>>() {
                let row = rows.entry(name).or_default();
                add([&mut row.total, &mut row.base_total][side]);
            }
        }
    }
    let rows = rows.into_iter();
    let mut methods: Vec<_> = rows
        .map(|(method, row)| MethodDifference { method, ..row })
        .filter(|row| row.changes() != (0, 0))
        .collect();
    methods.sort_by_key(|row| Reverse(row.changes()));
    let all = methods.len();
    methods.truncate(top.unwrap_or(all));
    ProfileDifference {
        schema: "tenure.profile_difference/1",
        metric: metric.name(),
        label: label(profile, metric),
        unit: metric.unit(),
        total: totals[0],
        base_total: totals[1],
        omitted_methods: (all - methods.len()) as u64,
        methods,
    }
}

/// The answer as text and a table.
pub fn doc(answer: &ProfileDifference, metric: Metric) -> Doc {
    let text = |words: String| Cell::new([Span::Text(words)]);
    let cell = |value: u64| match metric.unit() {
        "bytes" => Cell::bytes(hprof::Bytes(value)),
        "nanoseconds" => text(format!("{:.1} ms", value as f64 / 1e6)),
        _ => Cell::count(value),
    };
    let changed = |now: u64, before: u64| {
        let mut cell = cell(now.abs_diff(before));
        let sign = match now.cmp(&before) {
            std::cmp::Ordering::Less => "-",
            std::cmp::Ordering::Equal => "",
            std::cmp::Ordering::Greater => "+",
        };
        cell.spans.insert(0, Span::from(sign));
        cell
    };
    let mut table = Table::new([
        number("change"),
        number("self"),
        number("self in base"),
        number("change with callees"),
        words("method"),
    ]);
    for row in &answer.methods {
        table.row([
            changed(row.own, row.base_own),
            cell(row.own),
            cell(row.base_own),
            changed(row.total, row.base_total),
            Cell::class(row.method.clone()),
        ]);
    }
    table.omitted = answer.omitted_methods;
    let mut line = vec![Span::from(format!("{}: ", answer.label))];
    line.extend(cell(answer.total).spans);
    line.push(Span::from(" in all, "));
    line.extend(cell(answer.base_total).spans);
    line.push(Span::from(" in the base, change "));
    line.extend(changed(answer.total, answer.base_total).spans);
    line.push(Span::from("."));
    Doc::new().text(line).table(table)
}

#[cfg(test)]
mod tests {
    use super::super::tests::profile;
    use super::*;
    use crate::{Look, terminal};

    #[test]
    fn a_profile_differs_from_twice_itself_by_itself() {
        let one = profile();
        let mut two = profile();
        two.merge(&one);
        let answer = difference(&two, &one, Metric::Samples, None);
        assert_eq!((answer.total, answer.base_total), (24, 12));
        let rows: Vec<_> = answer
            .methods
            .iter()
            .map(|row| {
                (
                    &*row.method,
                    row.own,
                    row.base_own,
                    row.total,
                    row.base_total,
                )
            })
            .collect();
        assert_eq!(
            rows,
            [
                ("demo.Cpu.hot", 18, 9, 18, 9),
                ("demo.Cpu.<init>", 6, 3, 6, 3),
                ("demo.Cpu.main", 0, 0, 24, 12)
            ]
        );
        let text = terminal::render(&doc(&answer, Metric::Samples), &Look::default());
        assert!(text.contains("change +12"), "{text}");
        assert!(
            difference(&one, &one, Metric::Samples, None)
                .methods
                .is_empty()
        );
        let cut = difference(&one, &two, Metric::Samples, Some(1));
        assert_eq!((cut.methods.len(), cut.omitted_methods), (1, 2));
        let text = terminal::render(&doc(&cut, Metric::Samples), &Look::default());
        assert!(text.contains("-9 "), "{text}");
    }
}
