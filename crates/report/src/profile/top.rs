//! The first screen of a profile: the cost in a metric, by method and by stack.

use super::monitors::{Monitors, monitors};
use super::native::{NativeProfile, native};
use super::references::{self, ReferenceRow, references};
use super::{has_timed_calls, label};
use crate::doc::{Cell, Doc, Span, Table, number, words};
use crate::units::{grouped, percent};
use ::profile::{Estimate, Metric, Profile};
use serde::Serialize;
use std::collections::{HashMap, HashSet};

/// A metric by method and by stack.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TopProfile {
    /// Name and version of this layout.
    pub schema: &'static str,
    /// The metric.
    pub metric: &'static str,
    /// Its name in a text.
    #[serde(skip)]
    pub label: &'static str,
    /// Its unit: `count`, `bytes` or `nanoseconds`.
    pub unit: &'static str,
    /// The sum over all listed stacks.
    pub total: u64,
    /// Every metric the profile has.
    pub metrics: Vec<&'static str>,
    /// Methods by their own cost.
    pub methods: Vec<MethodRow>,
    /// Methods that are not listed.
    pub omitted_methods: u64,
    /// Stacks by cost.
    pub stacks: Vec<StackRow>,
    /// Stacks that are not listed.
    pub omitted_stacks: u64,
    /// Blocks of native code, where they were recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native: Option<NativeProfile>,
    /// Global references of native code, where they were recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub references: Option<Vec<ReferenceRow>>,
    /// Further facts that are needed to interpret the numbers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Waits and monitor dumps, if the profile has them.
    #[serde(flatten)]
    pub monitors: Monitors,
}

/// A method.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MethodRow {
    /// `class.method`, or the allocated class in brackets.
    pub method: String,
    /// Cost with this method innermost.
    pub own: u64,
    /// Share of its own cost in the total; for samples with the 95 % interval.
    pub share: Estimate,
    /// Cost with this method anywhere in the stack.
    pub total: u64,
}

/// A stack.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StackRow {
    /// Its cost.
    pub value: u64,
    /// Its share of the total.
    pub share: f64,
    /// Frames, innermost first.
    pub frames: Vec<String>,
}

/// Sums a metric up; at most `top` methods and stacks.
pub fn top(profile: &Profile, metric: Metric, top: Option<usize>) -> TopProfile {
    let mut methods: HashMap<String, (u64, u64)> = HashMap::new();
    let mut stacks: HashMap<Vec<String>, u64> = HashMap::new();
    let mut total = 0;
    for stack in profile.stacks(metric) {
        let mut frames = profile.path(&stack);
        frames.reverse();
        if frames.is_empty() {
            frames.push("[no stack]".to_owned());
        }
        let add = |sum: &mut u64| *sum = sum.saturating_add(stack.value);
        add(&mut total);
        add(&mut methods.entry(frames[0].clone()).or_default().0);
        // A recursive method counts once in each stack.
        for name in frames.iter().collect::<HashSet<_>>() {
            add(&mut methods.entry(name.clone()).or_default().1);
        }
        add(stacks.entry(frames).or_default());
    }
    let period = sampled_period(profile, metric);
    let share = |value: u64| match period {
        Some(period) => Estimate::of_share(value / period, total / period),
        None => {
            let value = if total == 0 {
                0.0
            } else {
                value as f64 / total as f64
            };
            Estimate {
                value,
                low: value,
                high: value,
            }
        }
    };
    let mut methods: Vec<MethodRow> = methods
        .into_iter()
        .map(|(method, (own, total))| MethodRow {
            method,
            own,
            share: share(own),
            total,
        })
        .collect();
    methods.sort_by(|a, b| {
        (b.own, b.total)
            .cmp(&(a.own, a.total))
            .then(a.method.cmp(&b.method))
    });
    let mut stacks: Vec<StackRow> = stacks
        .into_iter()
        .map(|(frames, value)| StackRow {
            value,
            share: share(value).value,
            frames,
        })
        .collect();
    stacks.sort_by(|a, b| b.value.cmp(&a.value).then(a.frames.cmp(&b.frames)));
    let limit = top.unwrap_or(usize::MAX);
    let (all_methods, all_stacks) = (methods.len(), stacks.len());
    methods.truncate(limit);
    stacks.truncate(limit);
    TopProfile {
        schema: "tenure.profile/1",
        metric: metric.name(),
        label: label(profile, metric),
        unit: metric.unit(),
        total,
        metrics: profile.metrics().into_iter().map(Metric::name).collect(),
        omitted_methods: (all_methods - methods.len()) as u64,
        omitted_stacks: (all_stacks - stacks.len()) as u64,
        references: references(profile),
        methods,
        stacks,
        native: native(profile, top),
        notes: profile
            .notes
            .iter()
            .cloned()
            .chain(unlisted(profile, metric, total))
            .collect(),
        monitors: monitors(profile),
    }
}

/// A note on the part of the metric that is below the cutoff of the file; none if it may be a rounding error of the
/// shares in a text.
fn unlisted(profile: &Profile, metric: Metric, listed: u64) -> Option<String> {
    let missing = profile.unlisted(metric);
    let whole = listed.saturating_add(missing);
    let amount = match metric.unit() {
        "nanoseconds" => format!("{:.1} ms", missing as f64 / 1e6),
        _ => grouped(missing),
    };
    (missing > 0 && missing >= whole / 100).then(|| {
        format!(
            "The file lists no stacks below its cutoff: {amount} more, {} of the whole, in no row and no share.",
            percent(missing as f64 / whole as f64)
        )
    })
}

/// What one sample adds to a metric that was sampled; `None` for an exact one.
fn sampled_period(profile: &Profile, metric: Metric) -> Option<u64> {
    let samples = profile.samples.as_ref();
    match metric {
        Metric::Samples => Some(1),
        Metric::CpuTime if !has_timed_calls(profile) => samples
            .map(|samples| samples.interval_ns)
            .filter(|ns| *ns > 0),
        _ => None,
    }
}

/// The answer as text and tables; those of monitors and of references have at most `top` rows.
pub fn doc(answer: &TopProfile, metric: Metric, top: Option<usize>) -> Doc {
    let text = |words: String| Cell::new([Span::Text(words)]);
    let cell = |value: u64| match metric.unit() {
        "bytes" => Cell::bytes(hprof::Bytes(value)),
        "nanoseconds" => text(format!("{:.1} ms", value as f64 / 1e6)),
        _ => Cell::count(value),
    };
    let is_interval = |row: &MethodRow| row.share.low < row.share.high;
    let sampled = metric == Metric::Samples || answer.methods.iter().any(is_interval);
    let mut columns = vec![number("self"), number("share")];
    if sampled {
        columns.push(number("95 % interval"));
    }
    columns.extend([number("with callees"), words("method")]);
    let mut methods = Table::new(columns);
    for row in &answer.methods {
        let mut cells = vec![cell(row.own), Cell::share(row.share.value)];
        if sampled {
            let (low, high) = (row.share.low * 100.0, row.share.high * 100.0);
            cells.push(text(format!("{low:.1}..{high:.1} %")));
        }
        cells.extend([cell(row.total), Cell::class(row.method.clone())]);
        methods.row(cells);
    }
    methods.omitted = answer.omitted_methods;
    let mut doc = Doc::new().text([
        Span::from(format!("{}: ", answer.label)),
        cell(answer.total)
            .spans
            .into_iter()
            .next()
            .unwrap_or(Span::from("")),
        Span::from(" in all. The profile has: "),
        Span::from(answer.metrics.join(", ")),
        Span::from("."),
    ]);
    doc = doc.table(methods);
    let mut stacks = Table::new([number("cost"), number("share"), words("stack")]);
    for row in answer.stacks.iter().take(5) {
        for (depth, frame) in row.frames.iter().enumerate() {
            let first = depth == 0;
            stacks.row([
                if first {
                    cell(row.value)
                } else {
                    Cell::empty()
                },
                if first {
                    Cell::share(row.share)
                } else {
                    Cell::empty()
                },
                Cell::class(frame.clone()).at_depth(depth.min(1)),
            ]);
        }
    }
    doc = super::monitors::doc(doc.table(stacks), &answer.monitors, top);
    if let Some(rows) = &answer.references {
        doc = doc
            .text([Span::from("References that native code has made:")])
            .table(references::table(rows, top.unwrap_or(usize::MAX)));
    }
    if let Some(native) = &answer.native {
        doc = super::native::say(doc, native);
    }
    let notes = answer.notes.iter();
    notes.fold(doc, |doc, note| doc.note([Span::from(note.as_str())]))
}

#[cfg(test)]
mod tests {
    use super::super::tests::profile;
    use super::*;
    use crate::{Look, terminal};

    #[test]
    fn methods_are_summed_by_themselves_and_with_callees() {
        let profile = profile();
        let answer = top(&profile, Metric::Samples, None);
        assert_eq!(answer.total, 12);
        let rows: Vec<_> = answer
            .methods
            .iter()
            .map(|row| (&*row.method, row.own, row.total))
            .collect();
        assert_eq!(
            rows,
            [
                ("demo.Cpu.hot", 9, 9),
                ("demo.Cpu.<init>", 3, 3),
                ("demo.Cpu.main", 0, 12)
            ]
        );
        let share = answer.methods[0].share;
        assert!(share.low < 0.75 && 0.75 < share.high);
        assert_eq!(answer.stacks[0].frames, ["demo.Cpu.hot", "demo.Cpu.main"]);
        assert_eq!(top(&profile, Metric::Samples, Some(1)).omitted_methods, 2);
    }

    #[test]
    fn the_time_of_calls_is_exact_beside_samples_with_a_period() {
        let mut profile = profile();
        let samples = profile.samples.as_mut().expect("samples");
        samples.interval_ns = 20_000_000;
        let answer = top(&profile, Metric::CpuTime, None);
        let share = answer.methods[0].share;
        assert_eq!((share.low, share.high), (share.value, share.value));
        assert!((share.value - 0.7).abs() < 1e-9, "{share:?}");
    }

    #[test]
    fn stacks_below_the_cutoff_of_the_file_are_noted() {
        let text = b"TRACE 300001:\n\tCpu.hot(Cpu.java:3)\n\
            CPU SAMPLES BEGIN (total = 20) Sat Nov 21 04:57:27 2026\n   \
            1 65.00% 65.00%      13 300001 Cpu.hot\nCPU SAMPLES END\n";
        let (cut, _) = ::profile::read(text).expect("a profile");
        let answer = top(&cut, Metric::Samples, None);
        assert_eq!(answer.total, 13);
        assert_eq!(
            answer.notes,
            [
                "The file lists no stacks below its cutoff: 7 more, 35.0 % of the whole, in no row and no share."
            ]
        );
        assert!(top(&profile(), Metric::Samples, None).notes.is_empty());
    }

    #[test]
    fn the_words_name_the_metric_and_the_methods() {
        let profile = profile();
        for metric in profile.metrics() {
            let text = terminal::render(
                &doc(&top(&profile, metric, Some(10)), metric, Some(10)),
                &Look::default(),
            );
            assert!(text.starts_with(label(&profile, metric)), "{text}");
            assert!(text.contains("demo.Cpu"), "{text}");
        }
    }
}
