//! Monitors of a profile: who waited for how long, and who held what when it was dumped.

use crate::doc::{Cell, Doc, Span, Table, number, words};
use ::profile::Profile;
use serde::Serialize;
use std::collections::BTreeMap;

/// Waits and monitor dumps.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Monitors {
    /// Finished waits by class and thread, longest sum first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<WaitRow>,
    /// Dumps in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub monitor_dumps: Vec<DumpRows>,
}

/// Waits of one thread at monitors of one class.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WaitRow {
    /// Class of the monitor's object.
    pub class: String,
    /// Name of the thread.
    pub thread: String,
    /// Number of waits.
    pub waits: u64,
    /// Nanoseconds of all.
    pub total_ns: u64,
    /// Nanoseconds of the longest.
    pub longest_ns: u64,
}

/// One monitor dump.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DumpRows {
    /// Threads that had not ended.
    pub threads: Vec<ThreadRow>,
    /// Monitors.
    pub monitors: Vec<MonitorRow>,
}

/// A thread of a dump.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ThreadRow {
    /// Its name.
    pub thread: String,
    /// `R`, `MW`, `CW`, as in the text form.
    pub status: String,
    /// Its stack, innermost frame first.
    pub frames: Vec<String>,
}

/// A monitor of a dump.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MonitorRow {
    /// Class of its object.
    pub class: String,
    /// Name of the thread that owned it.
    pub owner: Option<String>,
    /// How often the owner had entered.
    pub entries: u32,
    /// Names of threads at its entrance.
    pub waiting_to_enter: Vec<String>,
    /// Names of threads in `wait`.
    pub waiting_to_be_notified: Vec<String>,
}

/// Waits and monitor dumps of a profile.
pub fn monitors(profile: &Profile) -> Monitors {
    let threads = profile.threads_by_serial();
    // The name of a thread, or its serial.
    let thread = |serial: u32| match threads.get(&serial) {
        Some(thread) => profile.names.get(thread.name).to_owned(),
        None => format!("thread {serial}"),
    };
    let mut rows: BTreeMap<(String, String), (u64, u64, u64)> = BTreeMap::new();
    for wait in &profile.waits {
        let class = profile.names.get(wait.class).to_owned();
        let row = rows.entry((class, thread(wait.thread)));
        let (waits, total, longest) = row.or_default();
        *waits += 1;
        *total = total.saturating_add(wait.waited_ns);
        *longest = (*longest).max(wait.waited_ns);
    }
    let row = |((class, thread), (waits, total_ns, longest_ns))| WaitRow {
        class,
        thread,
        waits,
        total_ns,
        longest_ns,
    };
    let mut waits: Vec<WaitRow> = rows.into_iter().map(row).collect();
    waits.sort_by_key(|row| std::cmp::Reverse(row.total_ns));
    let all = |serials: &[u32]| serials.iter().map(|one| thread(*one)).collect();
    let dump = |dump: &::profile::MonitorDump| DumpRows {
        threads: dump
            .threads
            .iter()
            .filter(|row| row.status != "ZO")
            .map(|row| ThreadRow {
                thread: thread(row.thread),
                status: row.status.clone(),
                frames: profile.trace_names(row.trace),
            })
            .collect(),
        monitors: dump
            .monitors
            .iter()
            .map(|row| MonitorRow {
                class: profile.names.get(row.class).to_owned(),
                owner: row.owner.map(|owner| thread(owner.0)),
                entries: row.owner.map_or(0, |owner| owner.1),
                waiting_to_enter: all(&row.waiting_to_enter),
                waiting_to_be_notified: all(&row.waiting_to_be_notified),
            })
            .collect(),
    };
    Monitors {
        waits,
        monitor_dumps: profile.monitor_dumps.iter().map(dump).collect(),
    }
}

/// The tables, after the others of the profile: waits, and the last dump.
pub fn doc(doc: Doc, answer: &Monitors, top: Option<usize>) -> Doc {
    let text = |words: String| Cell::new([Span::Text(words)]);
    let time = |ns: u64| text(format!("{:.1} ms", ns as f64 / 1e6));
    let limit = top.unwrap_or(usize::MAX);
    let mut doc = doc;
    if !answer.waits.is_empty() {
        let columns = ["waits", "time", "longest"].map(number);
        let columns = columns.into_iter().chain(["monitor", "thread"].map(words));
        let mut table = Table::new(columns);
        for row in answer.waits.iter().take(limit) {
            table.row([
                Cell::count(row.waits),
                time(row.total_ns),
                time(row.longest_ns),
                Cell::class(row.class.clone()),
                text(row.thread.clone()),
            ]);
        }
        table.omitted = answer.waits.len().saturating_sub(limit) as u64;
        doc = doc.heading("Waits").table(table);
    }
    let Some(dump) = answer.monitor_dumps.last() else {
        return doc;
    };
    let mut threads = Table::new(["state", "thread", "at"].map(words));
    for row in dump.threads.iter().take(limit) {
        threads.row([
            text(row.status.clone()),
            text(row.thread.clone()),
            Cell::class(row.frames.first().cloned().unwrap_or_default()),
        ]);
    }
    threads.omitted = dump.threads.len().saturating_sub(limit) as u64;
    let columns = ["monitor", "owner", "at the entrance", "in wait"].map(words);
    let mut monitors = Table::new(columns);
    monitors.when_empty = "No thread owns a monitor.";
    for row in dump.monitors.iter().take(limit) {
        let owner = row.owner.as_deref().unwrap_or("none");
        let entered = match row.entries {
            0 | 1 => String::new(),
            entries => format!(" ({entries} entries)"),
        };
        monitors.row([
            Cell::class(row.class.clone()),
            text(format!("{owner}{entered}")),
            text(row.waiting_to_enter.join(", ")),
            text(row.waiting_to_be_notified.join(", ")),
        ]);
    }
    monitors.omitted = dump.monitors.len().saturating_sub(limit) as u64;
    let heading = match answer.monitor_dumps.len() {
        1 => "Threads and monitors when they were dumped".to_owned(),
        count => format!("Threads and monitors in the last of {count} dumps"),
    };
    doc.heading(heading).table(threads).table(monitors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Look, terminal};

    #[test]
    fn a_dump_without_monitors_has_a_sentence() {
        let dump = DumpRows {
            threads: Vec::new(),
            monitors: Vec::new(),
        };
        let answer = Monitors {
            waits: Vec::new(),
            monitor_dumps: vec![dump],
        };
        let text = terminal::render(&doc(Doc::new(), &answer, None), &Look::default());
        assert!(text.contains("No thread owns a monitor."), "{text}");
    }
}
