//! Converts options to what the VM side measures.

use agent_core::options::{Frames, Options};
use vm_hotspot::{Clock, Config, NativeStacks, Track, WhenExhausted};

use crate::exhausted;

/// What to measure for these options.
pub(crate) fn config(options: &Options) -> Config {
    let exact = options.tracks_every_allocation();
    Config {
        depth: options.traces.depth,
        // `cpu=old` always records pairs, whatever the depth is.
        call_depth: options.cpu.old.then_some(options.traces.cost_depth),
        has_profiler: !options.records_nothing,
        has_collector: options.output.target.is_collector(),
        allocations: exact,
        stacks_sampled: options.heap.stacks_sampled,
        sampled_allocations: options.sampled.map(|sampled| sampled.interval),
        native: options.heap.native,
        track: track(options),
        calls: options.cpu.times || options.cpu.old,
        clock: if options.thread_cpu_clock {
            Clock::ThreadCpu
        } else {
            Clock::Elapsed
        },
        // Without frames the original counted nothing.
        samples: (options.cpu.samples && options.traces.depth > 0).then_some(options.interval),
        safepoint_samples: options.cpu.safepoint,
        native_stacks: match options.cpu.frames {
            Frames::Java => NativeStacks::None,
            Frames::Native => NativeStacks::Native,
            Frames::Kernel => NativeStacks::Kernel,
        },
        wall: options.cpu.wall.filter(|_| options.traces.depth > 0),
        monitors: options.monitor,
        references: options.heap.references,
        per_thread: options.traces.per_thread,
        dumps_at_exit: options.heap.dump && options.dump_on_exit,
        when_exhausted: when_exhausted(options),
        tracked: options.tracked,
    }
}

fn when_exhausted(options: &Options) -> WhenExhausted {
    if options.snapshots_when_exhausted() {
        return WhenExhausted::Call(exhausted::snapshot);
    }
    match options.dumps_when_exhausted() {
        true => WhenExhausted::Dump,
        false => WhenExhausted::Nothing,
    }
}

/// A dump needs the stack of every object; the live counts of a table can be estimates for sites with very many
/// allocations.
fn track(options: &Options) -> Track {
    match options.sampled {
        _ if options.heap.dump => Track::Every,
        Some(sampled) if !sampled.live => Track::None,
        _ if options.exact => Track::Exact,
        _ => Track::Adaptive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use agent_core::options::{Parsed, parse};

    #[test]
    fn options_become_measurements() {
        let check = |text: &str, expected: fn(&Config) -> bool| {
            let Ok(Parsed::Run(options)) = parse(text, None) else {
                panic!("{text}")
            };
            assert!(expected(&config(&options)), "{text}");
        };
        check("heap=sites,depth=7", |c| {
            c.allocations && c.depth == 7 && !c.calls
        });
        check("heap=dump", |c| c.allocations && c.track == Track::Every);
        check("heap=sites", |c| c.track == Track::Adaptive);
        check("heap=sites,exact=y", |c| c.track == Track::Exact);
        check("alloc=512k,live=n", |c| c.track == Track::None);
        check("cpu=samples", |c| c.samples.is_some() && !c.instruments());
        check("cpu=samples,depth=0", |c| c.samples.is_none());
        check("wall=20ms", |c| {
            c.wall == Some(std::time::Duration::from_millis(20))
                && c.samples.is_none()
                && c.takes_async_stacks()
        });
        check("cpu=samples,frames=kernel", |c| {
            c.native_stacks == NativeStacks::Kernel
        });
        check("cpu=old", |c| {
            c.calls && c.call_depth == Some(2) && !c.allocations
        });
        check("cpu=times,thread=y", |c| {
            c.calls && c.per_thread && c.call_depth.is_none()
        });
        check("alloc=512k", |c| {
            c.sampled_allocations == Some(512 << 10) && !c.instruments()
        });
        check("native=64k", |c| {
            c.native == Some(64 << 10) && !c.counts_objects() && c.takes_async_stacks()
        });
        check("cpu=times,msa=y", |c| c.clock == Clock::ThreadCpu);
        let is_dumped = |c: &Config| matches!(c.when_exhausted, WhenExhausted::Dump);
        check("heap=dump", |c| {
            c.dumps_at_exit && !c.when_exhausted.is_wanted()
        });
        check("heap=dump,oom=y", is_dumped);
        check("heap=all,modern=y", is_dumped);
        check("heap=all,modern=y,oom=n", |c| !c.when_exhausted.is_wanted());
        check("heap=sites,modern=y", |c| !c.when_exhausted.is_wanted());
        check("heap=sites,oom=snapshot", |c| {
            c.allocations && matches!(c.when_exhausted, WhenExhausted::Call(_))
        });
        check("oom=snapshot", |c| {
            !c.instruments() && matches!(c.when_exhausted, WhenExhausted::Call(_))
        });
        check("heap=sites,tracked=9", |c| c.tracked == Some(9));
        check("heap=sites", |c| c.tracked.is_none());
        check("net=localhost:1", |c| c.has_collector);
        check("cpu=samples", |c| !c.has_collector);
        check("alloc=64k,net=localhost:1", |c| !c.takes_load_stacks());
        check("alloc=64k", Config::takes_load_stacks);
        check("heap=all,net=localhost:1", Config::takes_load_stacks);
        check("monitor=y", |c| c.monitors && !c.instruments());
    }
}
