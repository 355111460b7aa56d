//! A JFR recording of one chunk (format 2.1), with the JDK's own event names, so that `jfr`, JDK
//! Mission Control and every other reader shows them without a plug-in.
//!
//! CPU samples become `jdk.ExecutionSample`, one each. CPU time becomes one sample for each 10 ms,
//! as JFR has no weighted sample. Allocation sites become `jdk.ObjectAllocationSample` with their
//! bytes as weight, and contention `jdk.JavaMonitorEnter`, one for each wait with the mean
//! duration. A profile has no times of events: they are spread evenly.

mod buffer;
mod metadata;
mod pools;

use ::profile::{Metric, Profile, WeightedStack};
use buffer::Buffer;
use metadata::types;
use pools::Pools;

/// Bytes of the chunk header.
const HEADER: usize = 68;
/// Nanoseconds that one event of the recording takes.
const STEP: u64 = 10_000_000;
/// More events than this of one stack are not written one by one.
const MOST: u64 = 1_000_000;

/// The recording.
pub fn write(profile: &Profile, metrics: &[Metric]) -> Vec<u8> {
    let mut pools = Pools::new(profile);
    let mut events = Events {
        out: Buffer(vec![0; HEADER]),
        time: 0,
    };
    let has = |metric| metrics.contains(&metric);
    if has(Metric::Samples) {
        for stack in profile.stacks(Metric::Samples) {
            events.samples(&mut pools, &stack, stack.value);
        }
    } else if has(Metric::CpuTime) {
        for stack in profile.stacks(Metric::CpuTime) {
            events.samples(&mut pools, &stack, (stack.value + STEP / 2) / STEP);
        }
    }
    let bytes = [Metric::AllocatedBytes, Metric::LiveBytes]
        .into_iter()
        .find(|one| has(*one));
    for stack in bytes.into_iter().flat_map(|metric| profile.stacks(metric)) {
        events.allocation(&mut pools, &stack);
    }
    if has(Metric::Blocked) {
        let counts: Vec<_> = profile.stacks(Metric::Contentions).collect();
        for stack in profile.stacks(Metric::Blocked) {
            let same = |one: &&WeightedStack| one.trace == stack.trace && one.class == stack.class;
            let count = counts.iter().find(same).map_or(1, |one| one.value);
            events.contention(&mut pools, &stack, count);
        }
    }
    let Events { mut out, time } = events;
    let metadata_at = out.0.len();
    out.event(&metadata::body());
    let checkpoint_at = out.0.len();
    out.event(&pools.checkpoint());
    let header = Header {
        size: out.0.len() as u64,
        checkpoint: checkpoint_at as u64,
        metadata: metadata_at as u64,
        start_ns: profile.created_ms * 1_000_000,
        duration_ns: time,
    };
    out.0[..HEADER].copy_from_slice(&header.bytes());
    out.0
}

struct Header {
    size: u64,
    checkpoint: u64,
    metadata: u64,
    start_ns: u64,
    duration_ns: u64,
}

impl Header {
    fn bytes(&self) -> [u8; HEADER] {
        let mut bytes = Vec::with_capacity(HEADER);
        bytes.extend(b"FLR\0");
        bytes.extend([0, 2, 0, 1]);
        // Ticks are nanoseconds from the start of the chunk.
        for number in [
            self.size,
            self.checkpoint,
            self.metadata,
            self.start_ns,
            self.duration_ns,
            0,
            1_000_000_000,
        ] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend(1u32.to_be_bytes()); // Integers are compressed.
        let mut header = [0; HEADER];
        header.copy_from_slice(&bytes);
        header
    }
}

struct Events {
    out: Buffer,
    time: u64,
}

impl Events {
    fn put(&mut self, kind: u64, values: &[u64]) {
        let mut body = Buffer::default();
        body.varint(kind);
        body.varint(self.time);
        values.iter().for_each(|value| body.varint(*value));
        self.out.event(&body);
        self.time += STEP;
    }

    fn samples(&mut self, pools: &mut Pools<'_>, stack: &WeightedStack, count: u64) {
        let (thread, trace) = (pools.thread(stack.trace), pools.stack(stack.trace));
        for _ in 0..count.min(MOST) {
            self.put(types::EXECUTION_SAMPLE, &[thread, trace, pools.runnable()]);
        }
    }

    fn allocation(&mut self, pools: &mut Pools<'_>, stack: &WeightedStack) {
        let (thread, trace) = (pools.thread(stack.trace), pools.stack(stack.trace));
        let class = pools.class(stack.class);
        self.put(
            types::ALLOCATION_SAMPLE,
            &[thread, trace, class, stack.value],
        );
    }

    fn contention(&mut self, pools: &mut Pools<'_>, stack: &WeightedStack, count: u64) {
        let (thread, trace) = (pools.thread(stack.trace), pools.stack(stack.trace));
        let class = pools.class(stack.class);
        for _ in 0..count.clamp(1, MOST) {
            let duration = stack.value / count.max(1);
            self.put(types::MONITOR_ENTER, &[duration, thread, trace, class]);
        }
    }
}
