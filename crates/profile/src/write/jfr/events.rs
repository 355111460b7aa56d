//! The events of a chunk, one after the other.

use super::buffer::Buffer;
use super::metadata::types;
use super::pools::Pools;
use super::{Output, Timed};
use crate::{Metric, NameId, Profile, TraceId, WeightedStack};
use std::collections::HashMap;
use std::io;

/// Nanoseconds between events without a time of their own.
const STEP: u64 = 10_000_000;
/// More events than this of one stack are not written.
pub(super) const MOST: u64 = 1_000_000;

/// Bytes of events that are written at once.
const PIECE: usize = 64 << 10;

/// The JDK's value for an unknown time: the smallest number.
const NOT_KNOWN: u64 = 1 << 63;

/// The JDK's value for the length of an old object that is not an array; here it means an unknown length.
const NO_LENGTH: u64 = 1 << 31;

/// The values of another metric for the same stacks.
struct Beside(HashMap<(TraceId, Option<NameId>), u64>);

impl Beside {
    fn of(profile: &Profile, metric: Metric) -> Beside {
        let stacks = profile.stacks(metric);
        let mut sums = HashMap::new();
        for stack in stacks {
            let sum: &mut u64 = sums.entry((stack.trace, stack.class)).or_default();
            *sum = sum.saturating_add(stack.value);
        }
        Beside(sums)
    }

    fn get(&self, stack: &WeightedStack) -> Option<u64> {
        self.0.get(&(stack.trace, stack.class)).copied()
    }

    /// The number of waits of a stack that has waited.
    fn waits(&self, stack: &WeightedStack) -> u64 {
        self.get(stack).unwrap_or(1).max(1)
    }
}

/// The events of a stack with this number of CPU samples, or nanoseconds.
fn samples(metric: Metric, value: u64) -> u64 {
    match metric {
        Metric::Samples => value,
        _ => value.saturating_add(STEP / 2) / STEP,
    }
}

/// Events of these metrics that are not written because their stacks have more than [`MOST`].
pub(super) fn left_out(profile: &Profile, cpu: Option<Metric>, waits: &[(Metric, Metric)]) -> u64 {
    let beyond = |count: u64| count.saturating_sub(MOST);
    let cpu = cpu.into_iter().flat_map(|metric| {
        let stacks = profile.stacks(metric);
        stacks.map(move |stack| beyond(samples(metric, stack.value)))
    });
    let waits = waits.iter().flat_map(|(time, count)| {
        let counts = Beside::of(profile, *count);
        let stacks = profile.stacks(*time);
        stacks.map(move |stack| beyond(counts.waits(&stack)))
    });
    cpu.chain(waits).fold(0, u64::saturating_add)
}

/// The events, which are written piece by piece, and the time of the next one without a time of its own.
pub(super) struct Events<'p> {
    profile: &'p Profile,
    pools: Pools<'p>,
    output: &'p mut dyn Output,
    /// The piece that is not written yet.
    piece: Buffer,
    /// Bytes before it.
    written: u64,
    /// The first failure; nothing is written after it.
    fault: Option<io::Error>,
    /// Nanoseconds since the chunk began.
    time: u64,
}

impl<'p> Events<'p> {
    /// No events yet; `header` bytes are left free at the beginning.
    pub(super) fn new(
        profile: &'p Profile,
        output: &'p mut dyn Output,
        header: usize,
    ) -> Events<'p> {
        Events {
            profile,
            pools: Pools::new(profile),
            output,
            piece: Buffer(vec![0; header]),
            written: 0,
            fault: None,
            time: 0,
        }
    }

    /// Writes the buffered events, and returns the number of all bytes, the pools, and the time of the last event.
    pub(super) fn finish(mut self) -> io::Result<(u64, Pools<'p>, u64)> {
        self.flush();
        match self.fault {
            None => Ok((self.written, self.pools, self.time)),
            Some(fault) => Err(fault),
        }
    }

    fn flush(&mut self) {
        if self.fault.is_none() {
            self.fault = self.output.write_all(&self.piece.0).err();
        }
        self.written += self.piece.0.len() as u64;
        self.piece.0.clear();
    }

    /// Writes an event at the current time; `values` are its fields.
    fn put(&mut self, kind: u64, values: &[u64]) {
        self.put_body(kind, |body| {
            values.iter().for_each(|value| body.varint(*value))
        });
    }

    fn put_body(&mut self, kind: u64, fields: impl FnOnce(&mut Buffer)) {
        let mut body = Buffer::default();
        body.varint(kind);
        body.varint(self.time);
        fields(&mut body);
        self.piece.event(&body);
        if self.piece.0.len() >= PIECE {
            self.flush();
        }
    }

    /// The CPU time of a sample of this metric, if it is known, in the words of the JDK.
    pub(super) fn settings(&mut self, cpu: Metric) {
        let samples = self.profile.samples.as_ref();
        let period = match cpu {
            Metric::Samples => samples.map_or(0, |table| table.interval_ns),
            _ => STEP,
        };
        if period == 0 {
            return;
        }
        let units = [(1_000_000, "ms"), (1_000, "us"), (1, "ns")];
        let unit = units.into_iter().find(|(unit, _)| period % unit == 0);
        let (unit, name) = unit.unwrap_or((1, "ns"));
        self.put_body(types::ACTIVE_SETTING, |body| {
            body.varint(types::EXECUTION_SAMPLE);
            body.string("period");
            body.string(&format!("{} {name}", period / unit));
        });
    }

    /// What a reader of the numbers must know.
    pub(super) fn notes(&mut self) {
        let profile = self.profile;
        for note in profile.notes.iter().chain(&profile.agent_notes) {
            self.put_body(types::NOTE, |body| body.string(note));
        }
    }

    /// The thread and the stack, which come first in every event.
    fn origin(&mut self, trace: TraceId) -> [u64; 2] {
        [self.pools.thread(trace), self.pools.stack(trace)]
    }

    /// CPU samples, or CPU time in steps.
    pub(super) fn cpu(&mut self, metric: Metric) {
        for stack in self.profile.stacks(metric) {
            let count = samples(metric, stack.value);
            let [thread, trace] = self.origin(stack.trace);
            let state = self.pools.runnable();
            for _ in 0..count.min(MOST) {
                self.put(types::EXECUTION_SAMPLE, &[thread, trace, state]);
                self.time += STEP;
            }
            if self.fault.is_some() {
                return;
            }
        }
    }

    /// Elapsed time of threads, running or waiting.
    pub(super) fn wall(&mut self, metric: Metric) {
        for stack in self.profile.stacks(metric) {
            let [thread, trace] = self.origin(stack.trace);
            let state = match metric {
                Metric::WallWaiting => self.pools.sleeping(),
                _ => self.pools.runnable(),
            };
            let samples = (stack.value.saturating_add(STEP / 2) / STEP).min(i32::MAX as u64);
            self.put(
                types::WALL_CLOCK_SAMPLE,
                &[thread, trace, state, samples, stack.value],
            );
            self.time += STEP;
        }
    }

    /// The allocations of each stack, without times.
    pub(super) fn allocations(&mut self, metric: Metric) {
        for stack in self.profile.stacks(metric) {
            self.allocation(stack.trace, stack.class, stack.value);
            self.time += STEP;
        }
    }

    /// Allocations, with their times.
    pub(super) fn timed_allocations(&mut self, timed: &Timed) {
        for one in &timed.allocations {
            self.time = timed.offset_ns(one.time_ms);
            self.allocation(one.trace, Some(one.class), one.bytes);
        }
        self.time = timed.offset_ns(timed.end_ms);
    }

    fn allocation(&mut self, trace: TraceId, class: Option<NameId>, bytes: u64) {
        let [thread, trace] = self.origin(trace);
        let class = self.pools.class(class);
        self.put(types::ALLOCATION_SAMPLE, &[thread, trace, class, bytes]);
    }

    /// Live objects, at the end of the recording.
    pub(super) fn live(&mut self) {
        let objects = Beside::of(self.profile, Metric::LiveObjects);
        let all = self.profile.stacks(Metric::LiveBytes);
        let heap = all.map(|stack| stack.value).fold(0, u64::saturating_add);
        for stack in self.profile.stacks(Metric::LiveBytes) {
            let count = objects.get(&stack).unwrap_or(0);
            let [thread, trace] = self.origin(stack.trace);
            let class = self.pools.class(stack.class);
            let plural = if count == 1 { "object" } else { "objects" };
            let object = self.pools.old_objects(class, &format!("{count} {plural}"));
            self.put(
                types::OLD_OBJECT_SAMPLE,
                &[
                    thread,
                    trace,
                    NOT_KNOWN,
                    NOT_KNOWN,
                    heap,
                    stack.value,
                    count,
                    object,
                    NO_LENGTH,
                ],
            );
        }
    }

    /// Blocks that native code allocated, and those of them that were not freed.
    pub(super) fn native(&mut self) {
        let profile = self.profile;
        let remaining = Beside::of(profile, Metric::NativeLiveBytes);
        for stack in profile.stacks(Metric::NativeAllocatedBytes) {
            let left = remaining.get(&stack).unwrap_or(0);
            let origin = self.origin(stack.trace);
            let library = stack.class.map_or("", |name| profile.names.get(name));
            self.put_body(types::NATIVE_ALLOCATION, |body| {
                origin.into_iter().for_each(|id| body.varint(id));
                body.string(library);
                body.varint(stack.value);
                body.varint(left);
            });
        }
    }

    /// Known threads, at the beginning of the recording.
    pub(super) fn thread_starts(&mut self) {
        let profile = self.profile;
        for thread in &profile.threads {
            let id = self.pools.thread_of_serial(thread.serial);
            // The stack and the thread that started it are not known.
            self.put(types::THREAD_START, &[0, 0, id]);
        }
    }

    /// Threads that have ended, at the end of the recording.
    pub(super) fn thread_ends(&mut self) {
        let profile = self.profile;
        for thread in profile.threads.iter().filter(|thread| thread.ended) {
            let id = self.pools.thread_of_serial(thread.serial);
            self.put(types::THREAD_END, &[id, id]);
        }
    }

    /// Waits for monitors.
    pub(super) fn contention(&mut self) {
        self.waits(types::MONITOR_ENTER, Metric::Blocked, Metric::Contentions);
    }

    /// Parked threads.
    pub(super) fn parks(&mut self) {
        self.waits(types::THREAD_PARK, Metric::Parked, Metric::Parks);
    }

    /// Waits of one kind, each as long as the mean of its stack.
    fn waits(&mut self, kind: u64, time: Metric, count: Metric) {
        let counts = Beside::of(self.profile, count);
        for stack in self.profile.stacks(time) {
            let count = counts.waits(&stack);
            let [thread, trace] = self.origin(stack.trace);
            let class = self.pools.class(stack.class);
            for _ in 0..count.min(MOST) {
                let duration = stack.value / count;
                self.put(kind, &[duration, thread, trace, class]);
                self.time += STEP;
            }
            if self.fault.is_some() {
                return;
            }
        }
    }
}
