//! Converts events to the tables of a profile.
//!
//! | Event | Becomes |
//! |---|---|
//! | `jdk.ExecutionSample` | CPU samples |
//! | `profiler.WallClockSample` with `weight`, as Tenure writes it | elapsed time, running or waiting |
//! | `jdk.CPUTimeSample` | CPU time: its sampling period |
//! | `jdk.ObjectAllocationSample` | allocated bytes: its weight |
//! | `jdk.ObjectAllocationInNewTLAB`, `jdk.ObjectAllocationOutsideTLAB` | allocated bytes: the size of the buffer, or of the object; only where there are no samples, which say the same |
//! | `jdk.JavaMonitorEnter` | contention |
//! | `jdk.ThreadPark` | parked threads |
//! | `jdk.OldObjectSample` (those of the last time), `profiler.LiveObject` | live bytes and objects |
//! | `tenure.NativeAllocation` | blocks of native code |
//! | `jdk.ThreadStart`, `jdk.ThreadEnd`, `jdk.ActiveSetting` | threads and their end, the period of samples |
//! | `tenure.Note` | notes of the agent |

use super::cursor::Cursor;
use super::values::{Value, Values};
use crate::cpu::SampleTable;
use crate::metric::{Metric, WeightedStack};
use crate::monitors::Contention;
use crate::names::NameId;
use crate::profile::{Profile, Thread};
use crate::stacks::{Frame, FrameId, Line, Method, MethodId, TraceId, TraceKey};
use hprof::{Serial, readable_class_name};
use rustc_hash::FxHashMap;

/// Converts the ticks of a chunk to times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    pub(super) start_ns: u64,
    pub(super) start_ticks: u64,
    pub(super) ticks_per_second: u64,
}

impl Clock {
    fn nanoseconds(self, ticks: u64) -> u64 {
        match self.ticks_per_second {
            0 | 1_000_000_000 => ticks,
            rate => (u128::from(ticks) * 1_000_000_000 / u128::from(rate)) as u64,
        }
    }

    /// A time in nanoseconds since 1970.
    fn moment(self, ticks: u64) -> u64 {
        let since = self.nanoseconds(ticks.saturating_sub(self.start_ticks));
        self.start_ns.saturating_add(since)
    }
}

/// How an event is processed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sample,
    CpuTime,
    Wall,
    Allocation,
    NewBuffer,
    OutsideBuffer,
    Monitor,
    Park,
    OldObject,
    LiveObject,
    Native,
    ThreadStart,
    ThreadEnd,
    Setting,
    Note,
}

const KINDS: [(&str, Kind); 15] = [
    ("jdk.ExecutionSample", Kind::Sample),
    ("jdk.CPUTimeSample", Kind::CpuTime),
    ("profiler.WallClockSample", Kind::Wall),
    ("jdk.ObjectAllocationSample", Kind::Allocation),
    ("jdk.ObjectAllocationInNewTLAB", Kind::NewBuffer),
    ("jdk.ObjectAllocationOutsideTLAB", Kind::OutsideBuffer),
    ("jdk.JavaMonitorEnter", Kind::Monitor),
    ("jdk.ThreadPark", Kind::Park),
    ("jdk.OldObjectSample", Kind::OldObject),
    ("profiler.LiveObject", Kind::LiveObject),
    ("tenure.NativeAllocation", Kind::Native),
    ("jdk.ThreadStart", Kind::ThreadStart),
    ("jdk.ThreadEnd", Kind::ThreadEnd),
    ("jdk.ActiveSetting", Kind::Setting),
    ("tenure.Note", Kind::Note),
];

/// The profile of all chunks, and the state that is needed to add the next event.
#[derive(Debug, Default)]
pub(super) struct Collector {
    profile: Profile,
    clock: Clock,
    /// How each type of this chunk is processed.
    kinds: FxHashMap<u64, Kind>,
    /// The converted stacks of this chunk, by key.
    stacks: FxHashMap<(u64, u64, u32), TraceId>,
    old_classes: FxHashMap<Key, NameId>,
    native_frames: FxHashMap<Key, bool>,
    methods: FxHashMap<Key, MethodId>,
    classes: FxHashMap<Key, NameId>,
    threads: FxHashMap<Key, u32>,
    /// Serials of threads by their numbers in Java and in the system, over all chunks.
    serials: FxHashMap<(u64, u64), u32>,
    traces: FxHashMap<(Vec<FrameId>, u32), TraceId>,
    /// Allocations by buffers, until it is known whether they are needed.
    buffers: Vec<WeightedStack>,
    /// The time at which old objects were last written, and these objects with their number.
    old: (u64, Vec<(WeightedStack, u64)>),
    /// Whether any old object has a size: the JDK writes no sizes before 20.
    has_sizes: bool,
}

/// Type and key of a value in a pool.
type Key = (u64, u64);

impl Collector {
    pub(super) fn begin_chunk(&mut self, values: &Values<'_>, clock: Clock) {
        self.clock = clock;
        if self.profile.created_ms == 0 {
            self.profile.created_ms = clock.start_ns / 1_000_000;
        }
        self.kinds = values
            .types
            .iter()
            .filter_map(|(id, type_)| {
                let known = KINDS.iter().find(|(name, _)| *name == type_.name);
                known.map(|(_, kind)| (*id, *kind))
            })
            .collect();
    }

    pub(super) fn end_chunk(&mut self) {
        self.stacks.clear();
        self.old_classes.clear();
        self.native_frames.clear();
        self.methods.clear();
        self.classes.clear();
        self.threads.clear();
    }

    /// Returns the profile.
    pub(super) fn finish(mut self) -> Profile {
        let has =
            |profile: &Profile, metric| profile.weighted.iter().any(|one| one.metric == metric);
        if !has(&self.profile, Metric::AllocatedBytes) {
            for stack in std::mem::take(&mut self.buffers) {
                self.profile.add_weight(Metric::AllocatedBytes, stack);
            }
        }
        for (stack, objects) in std::mem::take(&mut self.old.1) {
            if self.has_sizes {
                self.profile.add_weight(Metric::LiveBytes, stack);
            }
            let stack = WeightedStack {
                value: objects,
                ..stack
            };
            self.profile.add_weight(Metric::LiveObjects, stack);
        }
        if has(&self.profile, Metric::AllocatedBytes) {
            self.note("Allocated bytes are estimated from samples; objects are not counted.");
        }
        if has(&self.profile, Metric::LiveObjects) {
            self.note("Live bytes and objects are those of the sampled objects that were live at the end, not of all objects.");
        }
        if has(&self.profile, Metric::Parked) {
            self.note("Parked threads include those that wait for work.");
        }
        self.profile
    }

    fn note(&mut self, text: &str) {
        self.profile.notes.push(text.to_owned());
    }

    /// Adds an event; `None` if it cannot be read.
    pub(super) fn event(
        &mut self,
        values: &Values<'_>,
        id: u64,
        cursor: &mut Cursor<'_>,
    ) -> Option<()> {
        let Some(kind) = self.kinds.get(&id).copied() else {
            return Some(());
        };
        let event = Value::Fields(id, values.fields(cursor, id)?);
        let from = Event {
            values,
            event: &event,
            id,
            clock: self.clock,
        };
        match kind {
            Kind::Sample => {
                let trace = self.trace(from, "sampledThread");
                self.profile.samples.get_or_insert_default().add(trace, 1);
            }
            Kind::CpuTime => {
                let value = from.time("samplingPeriod");
                self.weigh(from, Metric::CpuTime, None, value);
            }
            Kind::Wall => {
                let state = values.follow(&from.raw("state"));
                let metric = match &*values.text(&state, "name") {
                    "STATE_SLEEPING" => Metric::WallWaiting,
                    _ => Metric::WallRunning,
                };
                let stack = WeightedStack {
                    trace: self.trace(from, "sampledThread"),
                    class: None,
                    value: from.number("weight"),
                };
                if stack.value > 0 {
                    self.profile.add_weight(metric, stack);
                }
            }
            Kind::Allocation => {
                let value = values.number(&event, "weight");
                self.weigh(from, Metric::AllocatedBytes, Some("objectClass"), value);
            }
            Kind::NewBuffer | Kind::OutsideBuffer => {
                let size = match kind {
                    Kind::NewBuffer => "tlabSize",
                    _ => "allocationSize",
                };
                let value = values.number(&event, size);
                let stack = self.stack(from, Some("objectClass"), value);
                self.buffers.push(stack);
            }
            Kind::Monitor => {
                let stack = self.stack(from, Some("monitorClass"), from.time("duration"));
                let contention = self.profile.contention.get_or_insert_default();
                contention.add(Contention {
                    class: stack.class.unwrap_or_default(),
                    trace: stack.trace,
                    count: 1,
                    blocked_ns: stack.value,
                });
            }
            Kind::Park => {
                self.weigh(
                    from,
                    Metric::Parked,
                    Some("parkedClass"),
                    from.time("duration"),
                );
                self.weigh(from, Metric::Parks, Some("parkedClass"), 1);
            }
            Kind::OldObject => self.old_object(from),
            Kind::LiveObject => {
                let value = values.number(&event, "allocationSize");
                let stack = self.stack(from, Some("objectClass"), value);
                self.has_sizes = true;
                self.old.1.push((stack, 1));
            }
            Kind::Native => self.native(from),
            Kind::ThreadStart | Kind::ThreadEnd => {
                let serial = self.thread(from, "thread");
                // Serials start at 1, in the order of the threads.
                let place = serial.checked_sub(1);
                let thread = place.and_then(|at| self.profile.threads.get_mut(at as usize));
                if let Some(thread) = thread {
                    thread.ended = kind == Kind::ThreadEnd;
                }
            }
            Kind::Setting => self.setting(from),
            Kind::Note => {
                let text = values.text(&event, "text");
                self.profile.agent_notes.push(text);
            }
        }
        Some(())
    }

    fn weigh(&mut self, from: Event<'_>, metric: Metric, class: Option<&str>, value: u64) {
        let stack = self.stack(from, class, value);
        self.profile.add_weight(metric, stack);
    }

    fn stack(&mut self, from: Event<'_>, class: Option<&str>, value: u64) -> WeightedStack {
        let class = class.map(|field| self.class(from.values, &from.raw(field)));
        WeightedStack {
            trace: self.trace(from, "eventThread"),
            class: class.filter(|class| *class != NameId::default()),
            value,
        }
    }

    /// The last set of old objects replaces all earlier ones, because the JDK writes all live ones each time.
    fn old_object(&mut self, from: Event<'_>) {
        let time = self.clock.moment(from.number("startTime"));
        if time > self.old.0 {
            self.old = (time, Vec::new());
        }
        if time < self.old.0 {
            return;
        }
        self.has_sizes |= from.raw("objectSize") != Value::Null;
        let class = self.old_class(from.values, &from.raw("object"));
        let mut stack = self.stack(from, None, from.number("objectSize"));
        stack.class = Some(class).filter(|class| *class != NameId::default());
        // Tenure writes one event for all objects of a stack, with their number.
        let objects = match from.raw("objects") {
            Value::Number(objects) => objects,
            _ => 1,
        };
        self.old.1.push((stack, objects));
    }

    fn native(&mut self, from: Event<'_>) {
        let library = from.values.text(from.event, "library");
        let mut stack = self.stack(from, None, from.number("allocated"));
        stack.class = (!library.is_empty()).then(|| self.profile.names.intern(&library));
        self.profile.add_weight(Metric::NativeAllocatedBytes, stack);
        stack.value = from.number("remaining");
        self.profile.add_weight(Metric::NativeLiveBytes, stack);
    }

    /// The period of CPU samples, which the JDK writes as text and async-profiler as nanoseconds.
    fn setting(&mut self, from: Event<'_>) {
        let is_of_samples = self.kinds.get(&from.number("id")) == Some(&Kind::Sample);
        let name = from.values.text(from.event, "name");
        let value = from.values.text(from.event, "value");
        if !is_of_samples || !(name == "period" || name == "interval") {
            return;
        }
        if let Some(interval) = nanoseconds_of(&value).filter(|interval| *interval > 0) {
            let samples = self
                .profile
                .samples
                .get_or_insert_with(SampleTable::default);
            samples.interval_ns = interval;
        }
    }

    /// The class that a reference refers to; the empty name if there is none.
    fn class(&mut self, values: &Values<'_>, reference: &Value) -> NameId {
        let Value::Pooled(kind, key) = *reference else {
            return NameId::default();
        };
        if let Some(known) = self.classes.get(&(kind, key)) {
            return *known;
        }
        let name = values.text(&values.follow(reference), "name");
        let name = self.profile.names.intern(&readable_class_name(&name));
        self.classes.insert((kind, key), name);
        name
    }

    fn method(&mut self, values: &Values<'_>, reference: &Value) -> MethodId {
        let key = match *reference {
            Value::Pooled(kind, key) => Some((kind, key)),
            _ => None,
        };
        if let Some(known) = key.and_then(|key| self.methods.get(&key)) {
            return *known;
        }
        let method = values.follow(reference);
        let class = self.class(values, &values.raw(&method, "type"));
        let name = values.text(&method, "name");
        let signature = values.text(&method, "descriptor");
        let id = self.profile.stacks.intern_method(Method {
            class,
            name: self.profile.names.intern(&name),
            signature: self.profile.names.intern(&signature),
            source: NameId::default(),
        });
        if let Some(key) = key {
            self.methods.insert(key, id);
        }
        id
    }

    fn frames(&mut self, values: &Values<'_>, reference: &Value) -> Vec<FrameId> {
        let stack = values.follow(reference);
        match values.field(&stack, "frames") {
            Value::Array(frames) => frames.iter().map(|one| self.frame(values, one)).collect(),
            _ => Vec::new(),
        }
    }

    fn frame(&mut self, values: &Values<'_>, frame: &Value) -> FrameId {
        let frame = values.follow(frame);
        let method = self.method(values, &values.raw(&frame, "method"));
        let number = values.number(&frame, "lineNumber") as u32 as i32;
        let line = match self.is_native(values, &values.raw(&frame, "type")) {
            true => Line::Native,
            _ if number > 0 => Line::Number(number as u32),
            _ => Line::Unknown,
        };
        self.profile.stacks.intern_frame(Frame { method, line })
    }

    /// Whether a reference to a frame type refers to that of native methods.
    fn is_native(&mut self, values: &Values<'_>, reference: &Value) -> bool {
        let Value::Pooled(kind, key) = *reference else {
            return false;
        };
        *self
            .native_frames
            .entry((kind, key))
            .or_insert_with(|| values.text(&values.follow(reference), "description") == "Native")
    }

    /// The class of the old object that a reference refers to.
    fn old_class(&mut self, values: &Values<'_>, reference: &Value) -> NameId {
        let Value::Pooled(kind, key) = *reference else {
            return NameId::default();
        };
        if let Some(known) = self.old_classes.get(&(kind, key)) {
            return *known;
        }
        let class = values.raw(&values.follow(reference), "type");
        let class = self.class(values, &class);
        self.old_classes.insert((kind, key), class);
        class
    }

    /// The serial of a thread; 0 for none.
    fn thread(&mut self, from: Event<'_>, field: &str) -> u32 {
        let reference = from.raw(field);
        let Value::Pooled(kind, key) = reference else {
            return 0;
        };
        if let Some(known) = self.threads.get(&(kind, key)) {
            return *known;
        }
        let thread = from.values.follow(&reference);
        let [java, system] =
            ["javaThreadId", "osThreadId"].map(|id| from.values.number(&thread, id));
        let mut serial = 0;
        if thread != Value::Null {
            let next = self.serials.len() as u32 + 1;
            // The system may reuse its numbers; Java does not.
            let id = if java > 0 { (java, 0) } else { (0, system) };
            serial = *self.serials.entry(id).or_insert(next);
        }
        if serial as usize > self.profile.threads.len() {
            let mut name = from.values.text(&thread, "javaName");
            if name.is_empty() {
                name = from.values.text(&thread, "osName");
            }
            let group = from.values.field(&thread, "group");
            let group = from.values.text(&group, "name");
            self.profile.threads.push(Thread {
                serial,
                name: self.profile.names.intern(&name),
                group: self.profile.names.intern(&group),
                ended: false,
            });
        }
        self.threads.insert((kind, key), serial);
        serial
    }

    /// The stack of an event in its thread.
    fn trace(&mut self, from: Event<'_>, thread: &str) -> TraceId {
        let thread = self.thread(from, thread);
        let stack = from.raw("stackTrace");
        let key = match stack {
            Value::Pooled(kind, key) => Some((kind, key, thread)),
            _ => None,
        };
        if let Some(known) = key.and_then(|key| self.stacks.get(&key)) {
            return *known;
        }
        let frames = self.frames(from.values, &stack);
        let profile = &mut self.profile;
        let next = |(frames, thread): &(Vec<FrameId>, u32)| {
            let key = TraceKey {
                thread: (*thread > 0).then_some(Serial(*thread)),
                ..TraceKey::default()
            };
            profile.stacks.push_trace(key, frames)
        };
        let trace = *self.traces.entry((frames, thread)).or_insert_with_key(next);
        if let Some(key) = key {
            self.stacks.insert(key, trace);
        }
        trace
    }
}

/// An event with the data that is needed to read its fields.
#[derive(Clone, Copy)]
struct Event<'a> {
    values: &'a Values<'a>,
    event: &'a Value,
    id: u64,
    clock: Clock,
}

impl Event<'_> {
    /// The value of a field as it is stored; a key is not resolved.
    fn raw(&self, name: &str) -> Value {
        self.values.raw(self.event, name)
    }

    fn number(&self, name: &str) -> u64 {
        self.values.number(self.event, name)
    }

    /// A time in nanoseconds, converted from its unit.
    fn time(&self, name: &str) -> u64 {
        let type_ = self.values.types.get(&self.id);
        let field = type_.and_then(|type_| type_.place(name).map(|place| &type_.fields[place]));
        let number = self.number(name);
        match field.map(|field| field.unit.as_str()) {
            Some("NANOSECONDS") => number,
            Some("MICROSECONDS") => number.saturating_mul(1000),
            Some("MILLISECONDS") => number.saturating_mul(1_000_000),
            Some("SECONDS") => number.saturating_mul(1_000_000_000),
            _ => self.clock.nanoseconds(number),
        }
    }
}

/// `20 ms`, `10000 us` or nanoseconds without a unit.
fn nanoseconds_of(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let number: u64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim() {
        "" | "ns" => 1,
        "us" => 1000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        _ => return None,
    };
    number.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::{Clock, nanoseconds_of};

    #[test]
    fn periods_are_read_in_the_words_of_the_jdk_and_of_async_profiler() {
        for (text, want) in [
            ("20 ms", Some(20_000_000)),
            ("5000000", Some(5_000_000)),
            ("1 s", Some(1_000_000_000)),
            ("everyChunk", None),
            ("99999999999999999 s", None),
            ("", None),
        ] {
            assert_eq!(nanoseconds_of(text), want, "{text}");
        }
    }

    #[test]
    fn ticks_become_nanoseconds_since_1970() {
        let clock = Clock {
            start_ns: 1_000,
            start_ticks: 500,
            ticks_per_second: 2_000_000_000,
        };
        assert_eq!(clock.nanoseconds(3), 1);
        assert_eq!(clock.moment(2_500), 2_000);
        assert_eq!(clock.moment(0), 1_000);
    }
}
