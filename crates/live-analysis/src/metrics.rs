//! The metrics of the timeline: one row of numbers per tick, in the order of this table.

use serde::Serialize;

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Bytes per second.
    BytesPerSecond,
    /// Things.
    Count,
    /// A share of the time, 1 for one core all the time.
    Share,
}

/// A measured quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct MetricInfo {
    /// Name in the JSON, and `tenure_NAME` for Prometheus.
    pub name: &'static str,
    /// Title on the page.
    pub title: &'static str,
    /// Unit.
    pub unit: Unit,
    /// Which chart it belongs to: those of `heap`, `process` and `tracked` are stacked,
    /// and those of `process` sum to what was resident when they were read.
    pub chart: &'static str,
    /// What exactly is counted, where the title does not say it.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub about: &'static str,
}

const fn metric(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    chart: &'static str,
) -> MetricInfo {
    MetricInfo {
        name,
        title,
        unit,
        chart,
        about: "",
    }
}

/// A category of memory: a part of `resident`, or of the memory that the VM `tracks`.
const fn category(
    name: &'static str,
    title: &'static str,
    chart: &'static str,
    about: &'static str,
) -> MetricInfo {
    MetricInfo {
        about,
        ..metric(name, title, Unit::Bytes, chart)
    }
}

/// All metrics; a [`Row`] has its values at the same indices.
pub const METRICS: [MetricInfo; COUNT] = [
    metric("eden_bytes", "Eden", Unit::Bytes, "heap"),
    metric("survivor_bytes", "Survivor", Unit::Bytes, "heap"),
    metric("old_bytes", "Old", Unit::Bytes, "heap"),
    metric("metaspace_bytes", "Metaspace", Unit::Bytes, "heap"),
    metric(
        "heap_committed_bytes",
        "Heap committed",
        Unit::Bytes,
        "heap_line",
    ),
    category(
        "resident_java_bytes",
        "Java",
        "process",
        "pages of the Java heap that are resident",
    ),
    category(
        "resident_native_bytes",
        "Native",
        "process",
        "malloc, direct buffers, data of libraries and the VM's own, and whatever no other category claims",
    ),
    category(
        "resident_code_bytes",
        "Code",
        "process",
        "the code cache, mapped libraries, jars and the runtime image",
    ),
    category(
        "resident_stack_bytes",
        "Stack",
        "process",
        "stacks of threads",
    ),
    category(
        "resident_gc_bytes",
        "GC",
        "process",
        "the collector's card table and mark bits (JDK 9 and later; what it takes from malloc is native)",
    ),
    category(
        "resident_class_bytes",
        "Classes",
        "process",
        "class space, metaspace and the archive of classes (before JDK 10 metaspace is native)",
    ),
    category(
        "resident_other_bytes",
        "Other",
        "process",
        "other mapped files, shared memory, pages of the kernel",
    ),
    category(
        "nmt_java_bytes",
        "Java",
        "tracked",
        "committed: the Java heap",
    ),
    category(
        "nmt_native_bytes",
        "Native",
        "tracked",
        "committed: direct buffers, Unsafe.allocateMemory and internal memory; not malloc of libraries",
    ),
    category(
        "nmt_code_bytes",
        "Code",
        "tracked",
        "committed: the code cache and the compilers",
    ),
    category("nmt_stack_bytes", "Stack", "tracked", "committed: threads"),
    category(
        "nmt_gc_bytes",
        "GC",
        "tracked",
        "committed: all that the collector has beside the heap",
    ),
    category(
        "nmt_class_bytes",
        "Classes",
        "tracked",
        "committed: classes, metaspace, symbols and the archive of classes",
    ),
    category(
        "nmt_other_bytes",
        "Other",
        "tracked",
        "committed: everything else that the VM tracks",
    ),
    metric("resident_bytes", "Resident", Unit::Bytes, "process_line"),
    metric("swapped_bytes", "Swapped", Unit::Bytes, "none"),
    metric("container_bytes", "Container", Unit::Bytes, "none"),
    metric(
        "container_limit_bytes",
        "Container limit",
        Unit::Bytes,
        "process_line",
    ),
    metric(
        "allocated_bytes_per_second",
        "Allocation",
        Unit::BytesPerSecond,
        "rate",
    ),
    metric("cpu_cores", "CPU", Unit::Share, "cpu"),
    metric("gc_time_share", "GC pauses", Unit::Share, "cpu"),
    metric("safepoint_time_share", "Safepoints", Unit::Share, "none"),
    metric("threads", "Threads", Unit::Count, "threads"),
    metric("java_threads", "Java threads", Unit::Count, "none"),
    metric("loaded_classes", "Classes", Unit::Count, "classes"),
    metric(
        "tracked_live_objects",
        "Tracked objects",
        Unit::Count,
        "objects",
    ),
    metric("tracked_live_bytes", "Tracked bytes", Unit::Bytes, "none"),
];

/// Number of metrics.
pub const COUNT: usize = 32;

/// Index of a metric in [`METRICS`].
pub fn index(name: &str) -> Option<usize> {
    METRICS.iter().position(|metric| metric.name == name)
}

/// The metrics at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Milliseconds since 1970.
    pub time_ms: u64,
    /// Values; NaN if unknown.
    pub values: [f64; COUNT],
}

impl Row {
    /// A row without known values.
    pub fn new(time_ms: u64) -> Row {
        Row {
            time_ms,
            values: [f64::NAN; COUNT],
        }
    }

    /// Sets a value by name; an unknown name has no effect.
    pub fn set(&mut self, name: &str, value: f64) {
        if let Some(at) = index(name) {
            self.values[at] = value;
        }
    }

    /// A value by name.
    pub fn get(&self, name: &str) -> Option<f64> {
        let value = self.values[index(name)?];
        value.is_finite().then_some(value)
    }

    /// Whether any value is known.
    pub fn is_known(&self) -> bool {
        self.values.iter().any(|value| value.is_finite())
    }

    /// Merges several rows into one: the mean of the known values, at the time of the last row.
    pub fn merge(rows: &[Row]) -> Option<Row> {
        let mut merged = Row::new(rows.last()?.time_ms);
        for (at, value) in merged.values.iter_mut().enumerate() {
            let known = rows
                .iter()
                .map(|row| row.values[at])
                .filter(|v| v.is_finite());
            let (sum, count) = known.fold((0.0, 0u32), |(sum, n), v| (sum + v, n + 1));
            if count > 0 {
                *value = sum / f64::from(count);
            }
        }
        Some(merged)
    }
}

/// `[time, value or null, ...]`.
impl Serialize for Row {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeSeq;
        let mut seq = serializer.serialize_seq(Some(COUNT + 1))?;
        seq.serialize_element(&self.time_ms)?;
        for value in self.values {
            // Three decimals are more than the accuracy of any value.
            let value = value.is_finite().then(|| (value * 1000.0).round() / 1000.0);
            seq.serialize_element(&value)?;
        }
        seq.end()
    }
}
