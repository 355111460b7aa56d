//! The two interfaces: what a profiler may ask, and the events it receives.

use std::path::Path;
use std::sync::Arc;

use crate::class_options::Rules;
use crate::event::Event;
use crate::heap::{HeapVisitor, NativeDump};
use crate::ids::{ClassId, Frame, Location, MethodId, ThreadId, TraceId};
use crate::info::{
    ClassInfo, ClassPlace, FieldInfo, LineEntry, MethodInfo, MonitorInfo, ThreadInfo, ThreadStack,
    Trace, VmInfo,
};
use crate::instances::InstanceQuery;
use crate::references::References;

/// Why a question has no answer. None of these ends a profile: the part is left
/// out and the profile reports this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VmError {
    /// This VM, or this version of it, cannot do that.
    #[error("the VM has no {0}")]
    Unsupported(&'static str),
    /// The id is not, or no longer, valid.
    #[error("no such {0}")]
    Gone(&'static str),
    /// The question came before initialisation or after death.
    #[error("not possible before the VM is up or after it has ended")]
    WrongPhase,
    /// The VM gave an error of its own.
    #[error("{function} failed: {reason}")]
    Failed {
        /// What was called.
        function: &'static str,
        /// What it said.
        reason: String,
    },
}

/// The heap in four numbers, for HEAP SUMMARY. 64 bits wide: the original's 32
/// wrapped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapSummary {
    /// Bytes of objects not yet known dead.
    pub live_bytes: u64,
    /// Objects not yet known dead.
    pub live_objects: u64,
    /// Bytes allocated since the profile began.
    pub allocated_bytes: u64,
    /// Objects allocated since the profile began.
    pub allocated_objects: u64,
}

/// What a profiler may ask of a VM. All calls are answered on the caller's
/// thread; those marked *stops* hold all application threads meanwhile.
///
/// The asker may hold its own locks while asking, with one exception:
/// [`flush`](Vm::flush) notifies, so it returns events instead of calling back.
pub trait Vm {
    /// The VM as a whole.
    fn info(&self) -> &VmInfo;

    /// What a class is. Answers for unloaded classes too.
    fn class(&self, class: ClassId) -> Result<ClassInfo, VmError>;
    /// Where a class comes from, if the VM says it.
    fn place(&self, class: ClassId) -> Result<ClassPlace, VmError> {
        let _ = class;
        Err(VmError::Unsupported("place of classes"))
    }
    /// The fields a class declares itself, in class file order.
    fn fields(&self, class: ClassId) -> Result<Vec<FieldInfo>, VmError>;
    /// What a method is. Answers for methods of unloaded classes too.
    fn method(&self, method: MethodId) -> Result<MethodInfo, VmError>;
    /// The line number table, sorted by `start`; empty when the class has none.
    fn lines(&self, method: MethodId) -> Result<Vec<LineEntry>, VmError>;
    /// What a trace stands for.
    fn trace(&self, trace: TraceId) -> Result<Trace, VmError>;

    /// All live threads, agent threads included.
    fn threads(&self) -> Result<Vec<ThreadId>, VmError>;
    /// Who a thread is. Answers for ended threads too.
    fn thread(&self, thread: ThreadId) -> Result<ThreadInfo, VmError>;
    /// Stack of one thread, innermost frame first, at most `depth` frames.
    fn stack(&self, thread: ThreadId, depth: u32) -> Result<Vec<Frame>, VmError>;
    /// Stacks and states of all live threads at one moment, interned with the
    /// depth the VM was configured with. *Stops.*
    fn all_stacks(&self) -> Result<Vec<ThreadStack>, VmError>;
    /// Monitors that some thread owns or waits for. *Stops.*
    fn monitors(&self) -> Result<Vec<MonitorInfo>, VmError>;

    /// Walks the heap, objects reachable from roots. *Stops.*
    fn walk_heap(&self, visitor: &mut dyn HeapVisitor) -> Result<(), VmError>;
    /// Collects garbage and lets the VM write its own HPROF dump to a file that does
    /// not exist yet; ids in it are addresses, and the answer says what is at them.
    /// *Stops.*
    fn native_dump(&self, path: &Path) -> Result<NativeDump, VmError>;
    /// Counts kept by the VM side; allocation counts are those of the batches
    /// delivered so far.
    fn heap_summary(&self) -> Result<HeapSummary, VmError>;
    /// The global references of native code, if they are recorded.
    fn references(&self) -> Result<References, VmError> {
        Err(VmError::Unsupported("record of JNI references"))
    }
    /// Collects garbage and waits for the end of it. *Stops.*
    fn force_gc(&self) -> Result<(), VmError>;

    /// Delivers to `sink` every difference (allocations, frees, costs, samples)
    /// gathered since the last flush, with the definitions they need.
    fn flush(&self, sink: &mut dyn FnMut(&Event<'_>)) -> Result<(), VmError>;
    /// Switches one source of events on or off, as a socket command may ask.
    fn control(&self, request: Control) -> Result<(), VmError>;

    /// Nanoseconds since the agent was loaded, monotonic.
    fn elapsed_ns(&self) -> u64;
    /// CPU time of a thread in nanoseconds.
    fn thread_cpu_ns(&self, thread: ThreadId) -> Result<u64, VmError>;

    /// The source line of a frame, from [`lines`](Vm::lines); `None` if unknown.
    fn line_of(&self, frame: Frame) -> Option<u32> {
        let Location::Bytecode(at) = frame.location else {
            return None;
        };
        let lines = self.lines(frame.method).ok()?;
        let after = lines.partition_point(|entry| entry.start <= at);
        lines.get(after.checked_sub(1)?).map(|entry| entry.line)
    }
}

/// A change asked of the VM side while it runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Control {
    /// Count allocations, or stop counting.
    Allocations(bool),
    /// Take CPU samples, or stop, of one thread or of all.
    Sampling {
        /// On or off.
        on: bool,
        /// One thread, or all.
        thread: Option<ThreadId>,
    },
    /// Depth of stacks from now on.
    Depth(u32),
    /// Allocations and frees from now on are those of objects made from now on.
    ClearAllocations,
    /// Report contention of monitors, or no longer.
    Monitors(bool),
    /// What is recorded of each class from now on.
    Classes(Arc<Rules>),
    /// Code of the program may be run to answer what is asked of its objects, or no longer.
    OwnCode(bool),
    /// List the live objects of a class; the answer is [`Event::Instances`].
    Instances(InstanceQuery),
    /// Read how big and how full all live objects are; the answer with this number is [`Event::Fills`].
    Fills(u32),
}

/// Receives events. The VM side calls with one event at a time (it holds
/// a lock), so an implementation needs no locks of its own, must not block on
/// I/O for long, and must not panic.
pub trait Profiler: Send {
    /// Something happened. `vm` may be asked from inside.
    fn notify(&mut self, vm: &dyn Vm, event: &Event<'_>);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_read_as_one_line() {
        let error = VmError::Failed {
            function: "GetStackTrace",
            reason: "WRONG_PHASE".into(),
        };
        assert_eq!(error.to_string(), "GetStackTrace failed: WRONG_PHASE");
        assert_eq!(
            VmError::Unsupported("heap walk").to_string(),
            "the VM has no heap walk"
        );
    }
}
