//! Stack traces without a heap, for a process that reads a copy of the program: the tables in the copy contain only the
//! numbers of stacks.

use super::binary::{BinaryOutput, Settings};
use super::sink::Sink;
use super::{Context, Emit};
use crate::catalog::Catalog;
use crate::ids::{ObjectIds, trace_serial};
use crate::options::{Mode, Primitives};
use std::io::{self, Write};
use std::sync::mpsc::{Sender, channel};
use vmpi::{TraceId, Vm};

/// The names, classes, frames and traces of these stacks, each under the serial that it has in every dump of the
/// recording ([`stack_serial`]).
pub fn stacks(
    vm: &dyn Vm,
    line_numbers: bool,
    traces: impl IntoIterator<Item = TraceId>,
) -> Vec<u8> {
    let (pieces, written) = channel();
    let settings = Settings {
        mode: Mode::Modern,
        allocations: false,
        sample_interval: None,
        depth: 0,
        primitives: Primitives {
            fields: true,
            arrays: true,
        },
        for_collector: false,
    };
    let ids = ObjectIds::new(Mode::Modern, vm.info());
    let sink = Sink::new(Box::new(Pieces(pieces)));
    let mut out = BinaryOutput::new(sink, ids, settings, u64::MAX, 0);
    let mut catalog = Catalog::new(line_numbers, true);
    let mut context = Context {
        vm,
        catalog: &mut catalog,
        date: String::new(),
    };
    for trace in traces {
        let trace = context.catalog.trace(vm, trace);
        out.trace(&mut context, &trace);
    }
    drop(out);
    written.into_iter().flatten().collect()
}

/// The serial of a stack in the dumps of its recording; 0 for the empty one.
pub fn stack_serial(trace: TraceId) -> u32 {
    match trace {
        TraceId::EMPTY => 0,
        trace => trace_serial(trace).0,
    }
}

/// An output that sends its bytes in pieces through a channel.
struct Pieces(Sender<Vec<u8>>);

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.0.send(bytes.to_vec());
        sent.map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
