//! Measures how many events a second a stream is decoded and replayed with, in CPU time of the
//! thread: `cargo run -p tenure-live-heap --release --example replay_speed`, on a quiet machine.

#![allow(clippy::print_stdout, reason = "it prints what it measures")]

use live_heap::Replay;
use vmpi::wire::{Encoder, Hello, Item};
use vmpi::*;

/// A generational mutator: `rounds` nurseries of which one object in eight is
/// promoted and one in eight of the old ones dies.
fn stream(rounds: u64, nursery: u64) -> (Vec<u8>, u64) {
    let mut encoder = Encoder::new(&Hello::default());
    let mut events = 0;
    let mut put = |env: u64, body: Body| {
        events += 1;
        encoder.item(EnvId(env), &Item::event(body));
    };
    for arena in 1..=2 {
        put(
            1,
            Body::ArenaNew {
                arena: ArenaId(arena),
                name: format!("arena {arena}"),
            },
        );
    }
    let mut old = 0u64;
    for round in 0..rounds {
        for n in 0..nursery {
            put(
                2 + n / 4096 % 4,
                Body::ObjectAlloc(ObjectAlloc {
                    object: ObjectHandle(0x1000_0000 + n * 32),
                    class: ObjectHandle(0x1000 + n % 50 * 16),
                    size: 16 + n % 7 * 8,
                    arena: ArenaId(1),
                    trace: TraceId((n % 300) as u32 + 1),
                    array: None,
                }),
            );
        }
        put(
            1,
            Body::GcStart {
                kind: GcKind::Young,
            },
        );
        for n in (round % 8..nursery).step_by(8) {
            put(
                1,
                Body::ObjectMove(ObjectMove {
                    object: ObjectHandle(0x1000_0000 + n * 32),
                    arena: ArenaId(1),
                    new_object: ObjectHandle(0x2_0000_0000 + old * 32),
                    new_arena: ArenaId(2),
                }),
            );
            old += 1;
            if old.is_multiple_of(8) && old > 100_000 {
                put(
                    1,
                    Body::ObjectFree {
                        object: ObjectHandle(0x2_0000_0000 + (old - 100_000) * 32),
                    },
                );
            }
        }
        put(1, Body::ArenaDelete { arena: ArenaId(1) });
        put(
            1,
            Body::ArenaNew {
                arena: ArenaId(1),
                name: "arena 1".into(),
            },
        );
        put(1, Body::GcFinish(GcInfo::default()));
    }
    (encoder.finish(), events)
}

/// CPU time of this thread so far; Linux says it in nanoseconds.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let first = text
        .split(' ')
        .next()
        .and_then(|number| number.parse::<f64>().ok());
    first.expect("a number") / 1e9
}

fn main() {
    let (bytes, events) = stream(100, 60_000);
    for _ in 0..3 {
        let start = cpu_seconds();
        let mut decoder = vmpi::wire::Decoder::new();
        let mut count = 0u64;
        for portion in bytes.chunks(1 << 16) {
            decoder.push(portion);
            while let Some(frame) = decoder.next_frame().unwrap() {
                if let vmpi::wire::Frame::Batch(batch) = frame {
                    count += batch.map(|item| u64::from(item.is_ok())).sum::<u64>();
                }
            }
        }
        let decoded = cpu_seconds() - start;
        let start = cpu_seconds();
        let mut replay = Replay::new();
        bytes
            .chunks(1 << 16)
            .for_each(|portion| replay.push(portion));
        let (heap, damage) = replay.finish().unwrap();
        let seconds = cpu_seconds() - start;
        assert_eq!((damage, heap.contradictions(), count), (None, 0, events));
        let live = heap.population().count();
        let rate = |seconds: f64| events as f64 / seconds / 1e6;
        println!(
            "{events} events, {:.1} bytes each, {live} live: decoded at {:.1} million/s, replayed at {:.1} million/s",
            bytes.len() as f64 / events as f64,
            rate(decoded),
            rate(seconds),
        );
    }
}
