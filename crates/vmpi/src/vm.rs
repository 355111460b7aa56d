//! The two interfaces: the queries of a profiler, and the events it receives.

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

/// Why a query failed. None of these ends a profile: the part is left out and the profile reports this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VmError {
    /// This VM, or this version of it, cannot do that.
    #[error("the VM has no {0}")]
    Unsupported(&'static str),
    /// The id is not, or no longer, valid.
    #[error("no such {0}")]
    Gone(&'static str),
    /// The query was made before initialization or after the VM's end.
    #[error("not possible before the VM is up or after it has ended")]
    WrongPhase,
    /// The VM returned an error.
    #[error("{function} failed: {reason}")]
    Failed {
        /// What was called.
        function: &'static str,
        /// The VM's description of the error.
        reason: String,
    },
}

/// The heap in four numbers, for HEAP SUMMARY. They have 64 bits, because the original's 32 bits overflowed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapSummary {
    /// Bytes of objects that are not known to be freed.
    pub live_bytes: u64,
    /// Objects that are not known to be freed.
    pub live_objects: u64,
    /// Bytes allocated since the profile began.
    pub allocated_bytes: u64,
    /// Objects allocated since the profile began.
    pub allocated_objects: u64,
}

/// The queries of a profiler. All calls run on the caller's thread; those marked *stops* stop all application threads
/// meanwhile.
///
/// The caller may hold its own locks during a query. [`flush`](Vm::flush) passes events to its `sink` and does not call
/// [`Profiler::notify`].
pub trait Vm {
    /// The VM as a whole.
    fn info(&self) -> &VmInfo;

    /// Data of a class, also of an unloaded one to which a stack or a row refers.
    fn class(&self, class: ClassId) -> Result<ClassInfo, VmError>;
    /// The origin of a class, if the VM provides it.
    fn place(&self, class: ClassId) -> Result<ClassPlace, VmError> {
        let _ = class;
        Err(VmError::Unsupported("place of classes"))
    }
    /// The fields a class declares itself, in class file order.
    fn fields(&self, class: ClassId) -> Result<Vec<FieldInfo>, VmError>;
    /// Data of a method, also of an unloaded class.
    fn method(&self, method: MethodId) -> Result<MethodInfo, VmError>;
    /// The line number table, sorted by `start`; empty when the class has none.
    fn lines(&self, method: MethodId) -> Result<Vec<LineEntry>, VmError>;
    /// The stack of a trace.
    fn trace(&self, trace: TraceId) -> Result<Trace, VmError>;

    /// All live threads, agent threads included.
    fn threads(&self) -> Result<Vec<ThreadId>, VmError>;
    /// Data of a thread, also of an ended one.
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
    /// Collects garbage and makes the VM write its own HPROF dump to a file that does not exist yet. Ids in it are
    /// addresses; the result contains the objects at these addresses. *Stops.*
    fn native_dump(&self, path: &Path) -> Result<NativeDump, VmError>;
    /// Counts of the VM side; allocation counts include the batches delivered so far.
    fn heap_summary(&self) -> Result<HeapSummary, VmError>;
    /// The global references of native code, if they are recorded.
    fn references(&self) -> Result<References, VmError> {
        Err(VmError::Unsupported("record of JNI references"))
    }
    /// Collects garbage and waits until the collection has ended. *Stops.*
    fn force_gc(&self) -> Result<(), VmError>;

    /// Delivers to `sink` every difference (allocations, frees, costs, samples)
    /// gathered since the last flush, with the definitions they need.
    fn flush(&self, sink: &mut dyn FnMut(&Event<'_>)) -> Result<(), VmError>;
    /// Enables or disables one source of events, for a socket command.
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

/// A change of what the VM side records while it runs.
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
    /// From now on, report only allocations and frees of objects that are allocated from now on.
    ClearAllocations,
    /// Start or stop reporting contention of monitors.
    Monitors(bool),
    /// What is recorded of each class from now on.
    Classes(Arc<Rules>),
    /// Allow or forbid running code of the program for requests about its objects.
    OwnCode(bool),
    /// List the live objects of a class; the answer is [`Event::Instances`].
    Instances(InstanceQuery),
    /// Read how large and how full all live objects are; the answer with this number is [`Event::Fills`].
    Fills(u32),
}

/// Receives events. The VM side calls with one event at a time (it holds
/// a lock), so an implementation needs no locks of its own, must not block on
/// I/O for long, and must not panic.
pub trait Profiler: Send {
    /// Receives one event. The implementation may query `vm`.
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
