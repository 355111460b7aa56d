//! Converts the counters of a VM to rows of the timeline, and collections to events.

use crate::metrics::Row;
use crate::timeline::EventKind;
use jvm_observe::counters::Counters;
use jvm_observe::native_memory::NativeMemory;
use jvm_observe::process::Process;
use jvm_observe::resident::Resident;
use serde::{Deserialize, Serialize};
use vm_image::container::Container;

/// The most collectors of which a VM has counters.
const COLLECTORS: usize = 4;

/// Memory by category, as of the last query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Memory that the VM tracks, with `-XX:NativeMemoryTracking`.
    pub tracked: Option<NativeMemory>,
    /// Resident memory; `None` if the VM does not report the position of its heap.
    pub resident: Option<Resident>,
}

/// Converts the values that each tick reads into a row, using the previous tick.
#[derive(Clone, Debug, Default)]
pub struct Sampler {
    before: Option<Reading>,
    /// The collectors' state when another sampler ended.
    earlier: Option<Collectors>,
}

/// The values that one tick reads.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// The values of the operating system.
    pub process: Process,
    /// The limit of its container, if it has one.
    pub container: Option<Container>,
    /// The VM's counters; `None` with `-XX:-UsePerfData`.
    pub counters: Option<Counters>,
    /// Memory by category, as of the last query.
    pub memory: Memory,
}

/// Live and tracked objects and bytes, as the agent last reported them.
pub type Tracked = Option<(u64, u64)>;

/// What one collector has done since the VM began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Collections.
    pub runs: i64,
    /// Their time, in ticks of the VM's clock.
    pub time: i64,
}

/// The counts of all collectors of a VM since it began.
pub type Collectors = [Done; COLLECTORS];

impl Sampler {
    /// Continues where another sampler ended: collections since then are reported with the first row.
    pub fn after(earlier: Option<Collectors>) -> Sampler {
        Sampler {
            before: None,
            earlier,
        }
    }

    /// The collectors' counts at the last tick; `None` without counters.
    pub fn collectors(&self) -> Option<Collectors> {
        Some(done(self.before.as_ref()?.counters.as_ref()?))
    }

    /// The row of a reading, and the collections since the previous one.
    pub fn tick(&mut self, reading: Reading, tracked: Tracked) -> (Row, Vec<EventKind>) {
        let mut row = Row::new(reading.time_ms);
        let process = reading.process;
        row.set("resident_bytes", process.resident as f64);
        row.set("swapped_bytes", process.swapped as f64);
        row.set("threads", process.threads as f64);
        if let Some(container) = reading.container {
            row.set("container_bytes", container.used as f64);
            row.set("container_limit_bytes", container.limit as f64);
        }
        set_memory(&mut row, reading.memory);
        if let Some((objects, bytes)) = tracked {
            row.set("tracked_live_objects", objects as f64);
            row.set("tracked_live_bytes", bytes as f64);
        }
        if let Some(counters) = &reading.counters {
            set_levels(&mut row, counters);
        }
        let mut events = Vec::new();
        if let Some(new) = &reading.counters
            && let Some(earlier) = self.earlier.take()
        {
            events = collections(earlier, new);
        }
        if let Some(before) = &self.before {
            let seconds = reading.time_ms.saturating_sub(before.time_ms) as f64 / 1000.0;
            if seconds > 0.0 {
                let cpu = process.cpu_seconds - before.process.cpu_seconds;
                row.set("cpu_cores", (cpu / seconds).max(0.0));
                if let (Some(old), Some(new)) = (&before.counters, &reading.counters) {
                    set_rates(&mut row, old, new, seconds);
                    events = collections(done(old), new);
                }
            }
        }
        self.before = Some(reading);
        (row, events)
    }
}

fn set_memory(row: &mut Row, memory: Memory) {
    if let Some(resident) = memory.resident {
        for (name, bytes) in [
            ("resident_java_bytes", Some(resident.java)),
            ("resident_native_bytes", Some(resident.native)),
            ("resident_code_bytes", Some(resident.code)),
            ("resident_stack_bytes", Some(resident.stack)),
            ("resident_gc_bytes", resident.gc),
            ("resident_class_bytes", Some(resident.class)),
            ("resident_other_bytes", Some(resident.other)),
        ] {
            if let Some(bytes) = bytes {
                row.set(name, bytes as f64);
            }
        }
    }
    if let Some(tracked) = memory.tracked {
        for (name, bytes) in [
            ("nmt_java_bytes", tracked.java),
            ("nmt_native_bytes", tracked.native),
            ("nmt_code_bytes", tracked.code),
            ("nmt_stack_bytes", tracked.stack),
            ("nmt_gc_bytes", tracked.gc),
            ("nmt_class_bytes", tracked.class),
            ("nmt_other_bytes", tracked.other),
        ] {
            row.set(name, bytes as f64);
        }
    }
}

fn set_levels(row: &mut Row, counters: &Counters) {
    let (mut eden, mut survivor, mut old, mut committed) = (None, None, None, None);
    let add = |sum: &mut Option<i64>, more: Option<i64>| {
        if let Some(more) = more {
            *sum = Some(sum.unwrap_or(0) + more);
        }
    };
    for generation in 0..2 {
        let prefix = format!("sun.gc.generation.{generation}");
        add(
            &mut committed,
            counters.number(&format!("{prefix}.capacity")),
        );
        for space in 0..4 {
            let space = format!("{prefix}.space.{space}");
            let used = counters.number(&format!("{space}.used"));
            match counters.text(&format!("{space}.name")) {
                Some("eden") => add(&mut eden, used),
                Some("s0" | "s1" | "from" | "to" | "survivor") => add(&mut survivor, used),
                Some(_) => add(&mut old, used),
                None => {}
            }
        }
    }
    let mut set = |name, value: Option<i64>| {
        if let Some(value) = value {
            row.set(name, value as f64);
        }
    };
    // G1 sets these counters at its first collection; until then they are unknown.
    if [eden, survivor, old].iter().flatten().any(|used| *used > 0) {
        set("eden_bytes", eden);
        set("survivor_bytes", survivor);
        set("old_bytes", old);
    }
    set("heap_committed_bytes", committed);
    let metaspace = counters.number("sun.gc.metaspace.used");
    set("metaspace_bytes", metaspace.filter(|used| *used > 0));
    set("java_threads", counters.number("java.threads.live"));
    let count = |name: &str| counters.number(name).unwrap_or(0);
    let loaded = counters.number("java.cls.loadedClasses").map(|loaded| {
        loaded + count("java.cls.sharedLoadedClasses")
            - count("java.cls.unloadedClasses")
            - count("java.cls.sharedUnloadedClasses")
    });
    set("loaded_classes", loaded);
}

/// Ticks of the VM's own clock per second.
fn frequency(counters: &Counters) -> f64 {
    let frequency = counters.number("sun.os.hrt.frequency").unwrap_or(0);
    if frequency > 0 { frequency as f64 } else { 1e9 }
}

fn collector(counters: &Counters, n: usize, what: &str) -> i64 {
    counters
        .number(&format!("sun.gc.collector.{n}.{what}"))
        .unwrap_or(0)
}

fn set_rates(row: &mut Row, old: &Counters, new: &Counters, seconds: f64) {
    let frequency = frequency(new);
    let pause: i64 = (0..COLLECTORS)
        .map(|n| collector(new, n, "time") - collector(old, n, "time"))
        .sum();
    row.set(
        "gc_time_share",
        (pause as f64 / frequency / seconds).clamp(0.0, 1.0),
    );
    let time = |counters: &Counters| counters.number("sun.rt.safepointTime");
    if let (Some(before), Some(after)) = (time(old), time(new)) {
        let share = (after - before) as f64 / frequency / seconds;
        row.set("safepoint_time_share", share.clamp(0.0, 1.0));
    }
    if let Some(bytes) = allocated(old, new) {
        row.set("allocated_bytes_per_second", bytes as f64 / seconds);
    }
}

/// Bytes allocated between two readings, by the use of eden. If a collection emptied it in between, the space that was
/// free before counts as filled; with several collections this is a lower bound.
fn allocated(old: &Counters, new: &Counters) -> Option<i64> {
    let eden = |counters: &Counters, what: &str| {
        counters.number(&format!("sun.gc.generation.0.space.0.{what}"))
    };
    let (before, after) = (eden(old, "used")?, eden(new, "used")?);
    if runs(old) == runs(new) {
        return Some((after - before).max(0));
    }
    let room = eden(old, "capacity")?.max(before);
    let fills = (runs(new) - runs(old) - 1).max(0);
    Some(room - before + fills * eden(new, "capacity").unwrap_or(0) + after)
}

/// Collections that empty eden.
fn runs(counters: &Counters) -> i64 {
    collector(counters, 0, "invocations") + collector(counters, 1, "invocations")
}

fn done(counters: &Counters) -> Collectors {
    std::array::from_fn(|n| Done {
        runs: collector(counters, n, "invocations"),
        time: collector(counters, n, "time"),
    })
}

fn collections(old: Collectors, new: &Counters) -> Vec<EventKind> {
    let mut events = Vec::new();
    for (n, (old, now)) in old.into_iter().zip(done(new)).enumerate() {
        let runs = now.runs.saturating_sub(old.runs);
        if runs <= 0 {
            continue;
        }
        let time = now.time.saturating_sub(old.time);
        let name = new.text(&format!("sun.gc.collector.{n}.name"));
        events.push(EventKind::Gc {
            collector: name.unwrap_or("collector").to_owned(),
            count: runs as u64,
            pause_ms: (time as f64 / frequency(new) * 1e6).round() / 1e3,
            cause: new.text("sun.gc.lastCause").unwrap_or("").to_owned(),
        });
    }
    events
}
