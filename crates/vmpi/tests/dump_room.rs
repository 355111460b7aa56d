//! How much memory it takes to put a heap dump on the socket. Alone in its process, whose peak it reads.

use vmpi::wire::{Encoder, Hello, Item};
use vmpi::{Body, DumpLevel, EnvId, HeapDump};

/// The most memory that this process ever had, in bytes; `None` where the system does not say.
fn peak() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kilobytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes << 10)
}

#[test]
fn a_dump_is_there_three_times_while_it_is_put_on_the_wire() {
    const BYTES: usize = 64 << 20;
    let Some(before) = peak() else {
        return testkit::skip("room of dumps", testkit::Need::Program, "needs /proc");
    };
    // What waits already is over the limit: nothing may be taken apart to find what can be left out.
    let mut encoder = Encoder::with_limit(&Hello::default(), 1);
    let env = EnvId(0x7f00_1234_5678);
    encoder.clock(u64::MAX);
    let body = Body::HeapDump(Box::new(HeapDump {
        level: DumpLevel::Values,
        data: vec![7; BYTES],
        traces: Vec::new(),
    }));
    let requested = true;
    encoder.item(env, &Item::event(Body::JvmInitDone));
    encoder.item(env, &Item::Event { requested, body });
    encoder.flush();
    assert!(encoder.waiting() > BYTES && encoder.dropped() == 0);
    let peak = peak().expect("as before") - before;
    assert!(peak < 3 * BYTES + BYTES / 4, "{peak}");
}
