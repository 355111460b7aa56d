//! The differences between a recorded and a repeated run.

use std::collections::{BTreeMap, BTreeSet};

use testkit::oracle::Case;

use super::facts::{Facts, Row, Site, Volume, facts};
use super::live::{KEPT, Left};

/// What the original did and what we did.
pub(crate) struct Pair<'a> {
    pub(crate) case: &'a Case,
    /// Recorded, or made by the original a moment ago.
    pub(crate) original: &'a Left,
    pub(crate) ours: &'a Left,
    /// Rows found equal; what was compared must not be nothing.
    pub(crate) equal: u64,
    pub(crate) differences: Vec<String>,
}

/// Bytes of a class object, which the original counted as an instance of its class.
const MIRROR: u64 = 544;

/// Threads of the VM and of the agent: not the program's business.
const SYSTEM: &[&str] = &[
    "HPROF ",
    "main",
    "Common-Cleaner",
    "Notification Thread",
    "DestroyJavaVM",
    "Finalizer",
    "Reference Handler",
    "Signal Dispatcher",
    "SIG",
    "process reaper",
];

impl Pair<'_> {
    /// Everything that is not the same.
    pub(crate) fn compare(&mut self) {
        self.process();
        for (name, old) in &self.original.files {
            let Some(new) = self.ours.files.get(name) else {
                continue;
            };
            if name.ends_with(".TMP") || old.len() == KEPT.len() {
                continue;
            }
            let (old, new) = (facts(old), facts(new));
            self.file(&old, &new);
        }
    }

    fn differ(&mut self, what: String) {
        self.differences.push(what);
    }

    fn is(&mut self, what: &str, old: &str, new: &str) {
        if old == new {
            self.equal += 1;
        } else {
            self.differ(format!("{what}: {old} -> {new}"));
        }
    }

    fn process(&mut self) {
        let (case, old, new) = (self.case, self.original, self.ours);
        self.is("exit", &old.exit.to_string(), &new.exit.to_string());
        self.is("stderr", &old.stderr, &new.stderr);
        // The VM's own thread dump stands among the program's lines.
        if old.stdout.contains("Full thread dump") {
            let last = |text: &str| text.lines().last().unwrap_or_default().to_owned();
            self.is("stdout", &last(&old.stdout), &last(&new.stdout));
        } else {
            self.is("stdout", &old.stdout, &new.stdout);
        }
        let names = |left: &Left| left.files.keys().cloned().collect::<Vec<_>>().join(" ");
        self.is("files", &names(old), &names(new));
        for (name, _) in case
            .left
            .iter()
            .filter(|(_, size)| *size == KEPT.len() as u64)
        {
            if new.files.get(name).is_none_or(|bytes| bytes != KEPT) {
                self.differ(format!("files: {name} was not kept"));
            }
        }
    }

    fn file(&mut self, old: &Facts, new: &Facts) {
        for problem in &new.problems {
            self.differ(format!("format: {problem}"));
        }
        self.is(
            "sections",
            &old.sections.join(", "),
            &new.sections.join(", "),
        );
        self.is("words", &old.words.join("; "), &new.words.join("; "));
        self.is("threads", &programs_threads(old), &programs_threads(new));
        for (at, (old, new)) in old.sites.iter().zip(&new.sites).enumerate() {
            self.sites(&format!("sites {at}"), old, new);
        }
        // A program that runs for a time is dumped in the middle of it: what one section has and
        // which the next is chance.
        self.calls(&old.calls.concat(), &new.calls.concat());
        self.pairs(&old.pairs.concat(), &new.pairs.concat());
        for ((_, old), (total, new)) in old.samples.iter().zip(&new.samples) {
            self.samples(old, *total, new);
        }
        self.is(
            "monitors",
            &format!("{:?}", old.monitors),
            &format!("{:?}", new.monitors),
        );
        let waits = |facts: &Facts| {
            let own = facts.waits.iter();
            let own: Vec<_> = own.filter(|((class, _), _)| self.is_own(class)).collect();
            format!("{own:?}")
        };
        let (old_waits, new_waits) = (waits(old), waits(new));
        self.is("waits", &old_waits, &new_waits);
        self.objects(old, new);
    }

    /// Whether a class (`Alloc$Node`, `LMon;`, `Cpu.fib:7`) belongs to the program.
    fn is_own(&self, name: &str) -> bool {
        let Some(program) = self.case.program().first() else {
            return false;
        };
        let name = name
            .strip_prefix('L')
            .filter(|_| name.ends_with(';'))
            .unwrap_or(name);
        let rest = name.strip_prefix(program.as_str());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '$', ';', '[']))
    }

    /// The program's innermost frames; what the library calls in between differs by version.
    fn own(&self, frames: &[String]) -> Vec<String> {
        let frames = frames.iter().filter(|frame| !frame.contains("$$Lambda"));
        frames
            .take_while(|frame| self.is_own(frame))
            .cloned()
            .collect()
    }

    /// Whether the program does the same every time, or runs for a number of milliseconds.
    fn does_fixed_work(&self) -> bool {
        let program = self.case.program();
        program.first().is_none_or(|name| name != "Cpu")
            || program.get(1).is_some_and(|ms| ms == "0")
    }

    /// Rows that differ only where the cutoff of either file fell.
    fn sites(&mut self, what: &str, old: &[Site], new: &[Site]) {
        let keyed = |rows: &[Site]| -> BTreeMap<_, Vec<(Volume, Volume)>> {
            let mut keyed: BTreeMap<_, Vec<_>> = BTreeMap::new();
            for row in rows {
                let own = self.own(&row.frames);
                if !own.is_empty() {
                    let volumes = (row.live, row.allocated);
                    keyed
                        .entry((row.class.clone(), own))
                        .or_default()
                        .push(volumes);
                }
            }
            keyed
        };
        let least = |rows: &[Site]| rows.iter().map(|row| row.live.bytes).min().unwrap_or(0);
        let (low_old, low_new) = (least(old), least(new));
        let (mut old, mut new) = (keyed(old), keyed(new));
        let keys: BTreeSet<_> = old.keys().chain(new.keys()).cloned().collect();
        for key in keys {
            let mut before = old.remove(&key).unwrap_or_default();
            let mut after = new.remove(&key).unwrap_or_default();
            let (a, b) = (sum(&before), sum(&after));
            let mirrors = a.1.objects.saturating_sub(b.1.objects);
            let place = format!("{what} of {} in {}", key.0, key.1.join(" "));
            if a == b {
                self.equal += 1;
                continue;
            }
            if mirrors > 0 && without_mirrors(a, mirrors) == Some(b) {
                self.differ(format!("class object: {place}"));
                continue;
            }
            // Row by row: what one has and the other has not may lie below the other's cutoff.
            before.retain(|row| {
                let found = after.iter().position(|one| one == row);
                found.map(|at| after.swap_remove(at)).is_none()
            });
            let below = |rows: &[(Volume, Volume)], low| rows.iter().all(|row| row.0.bytes <= low);
            if below(&before, low_new) && below(&after, low_old) {
                self.equal += 1;
                continue;
            }
            let live = (a.0.objects, b.0.objects);
            let allocated = (a.1.objects, b.1.objects);
            self.differ(format!(
                "{place}: live {} -> {}, allocated {} -> {}",
                live.0, live.1, allocated.0, allocated.1
            ));
        }
    }

    /// Each row of the original must be there; rows without time it left out.
    fn calls(&mut self, old: &[Row], new: &[Row]) {
        let rows = |rows: &[Row]| -> Vec<Row> {
            let own = rows
                .iter()
                .map(|(frames, count)| (self.own(frames), *count));
            own.filter(|(frames, _)| !frames.is_empty()).collect()
        };
        let (mut old, mut new) = (rows(old), rows(new));
        if !self.does_fixed_work() {
            for rows in [&mut old, &mut new] {
                rows.iter_mut().for_each(|row| row.1 = 0);
                rows.sort();
                rows.dedup();
            }
        }
        for (frames, count) in old {
            let found = new.iter().position(|row| *row == (frames.clone(), count));
            match found {
                Some(at) => {
                    self.equal += 1;
                    new.swap_remove(at);
                }
                None => self.differ(format!("calls: no row {count} {}", frames.join(" "))),
            }
        }
    }

    /// Calls of the program's methods exactly; calls out of it by what the library is.
    fn pairs(&mut self, old: &[(String, String, u64)], new: &[(String, String, u64)]) {
        let fixed = self.does_fixed_work();
        let rows = |rows: &[(String, String, u64)]| -> BTreeMap<(String, String), u64> {
            let own = rows.iter();
            let own = own.filter(|(to, from, _)| self.is_own(to) || self.is_own(from));
            own.map(|(to, from, count)| {
                ((to.clone(), from.clone()), if fixed { *count } else { 0 })
            })
            .collect()
        };
        let (old, new) = (rows(old), rows(new));
        let keys: BTreeSet<_> = old.keys().chain(new.keys()).collect();
        for key in keys {
            let (a, b) = (old.get(key), new.get(key));
            if a == b {
                self.equal += 1;
            } else {
                self.differ(format!("calls of {} by {}: {a:?} -> {b:?}", key.0, key.1));
            }
        }
    }

    /// Samples are chance; that each of the program is in its own methods is not.
    fn samples(&mut self, old: &[Row], total: u64, new: &[Row]) {
        let sum: u64 = new.iter().map(|row| row.1).sum();
        if sum > total {
            self.differ(format!("samples: {sum} of {total}"));
        }
        if old.is_empty() != new.is_empty() {
            self.differ(format!("samples: {} rows -> {}", old.len(), new.len()));
        }
        let hot = "Cpu.hot:";
        if self
            .case
            .program()
            .first()
            .is_some_and(|program| program == "Cpu")
            && !new.is_empty()
        {
            let own = new
                .iter()
                .filter(|row| row.0.first().is_some_and(|top| self.is_own(top)));
            let own: Vec<_> = own.collect();
            let all: u64 = own.iter().map(|row| row.1).sum();
            let in_hot = own.iter().filter(|row| row.0[0].starts_with(hot));
            let in_hot: u64 = in_hot.map(|row| row.1).sum();
            // A loaded machine leaves too few to say anything.
            if in_hot * 2 > all || all < 20 {
                self.equal += 1;
            } else {
                self.differ(format!("samples: {in_hot} of {all} in Cpu.hot"));
            }
        }
    }

    /// Objects of the program's classes, and objects that the program's methods made.
    fn objects(&mut self, old: &Facts, new: &Facts) {
        let by_class = |facts: &Facts| {
            let mut sums: BTreeMap<String, u64> = BTreeMap::new();
            for ((class, _), count) in &facts.objects {
                if self.is_own(class) && !class.contains("$$Lambda") {
                    *sums.entry(class.clone()).or_default() += count;
                }
            }
            sums
        };
        let (mut a, mut b) = (by_class(old), by_class(new));
        let keys: BTreeSet<_> = a.keys().chain(b.keys()).cloned().collect();
        for class in keys {
            let counts = (a.remove(&class).unwrap_or(0), b.remove(&class).unwrap_or(0));
            self.is(
                &format!("objects of {class}"),
                &counts.0.to_string(),
                &counts.1.to_string(),
            );
        }
        let sums = |facts: &Facts| {
            let mut sums: BTreeMap<_, u64> = BTreeMap::new();
            for ((class, frames), count) in &facts.objects {
                let own = self.own(frames);
                if !own.is_empty() {
                    *sums.entry((class.clone(), own)).or_default() += count;
                }
            }
            sums
        };
        let (mut old, mut new) = (sums(old), sums(new));
        let keys: BTreeSet<_> = old.keys().chain(new.keys()).cloned().collect();
        for key in keys {
            let (a, b) = (old.remove(&key).unwrap_or(0), new.remove(&key).unwrap_or(0));
            let place = format!("heap of {} in {}", key.0, key.1.join(" "));
            self.is(&place, &a.to_string(), &b.to_string());
        }
    }
}

fn sum(rows: &[(Volume, Volume)]) -> (Volume, Volume) {
    let add = |a: Volume, b: Volume| Volume {
        objects: a.objects + b.objects,
        bytes: a.bytes + b.bytes,
    };
    let start = (Volume::default(), Volume::default());
    rows.iter()
        .fold(start, |sum, row| (add(sum.0, row.0), add(sum.1, row.1)))
}

fn without_mirrors(rows: (Volume, Volume), mirrors: u64) -> Option<(Volume, Volume)> {
    let less = |volume: Volume| {
        Some(Volume {
            objects: volume.objects.checked_sub(mirrors)?,
            bytes: volume.bytes.checked_sub(mirrors * MIRROR)?,
        })
    };
    Some((less(rows.0)?, less(rows.1)?))
}

fn programs_threads(facts: &Facts) -> String {
    let own = facts.threads.iter();
    let own = own.filter(|(name, _)| !SYSTEM.iter().any(|start| name.starts_with(start)));
    let own: Vec<String> = own.map(|(name, count)| format!("{count} {name}")).collect();
    own.join(", ")
}
