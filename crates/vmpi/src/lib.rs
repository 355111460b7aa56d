//! The interface between a virtual machine and a profiler.
//!
//! A VM (HotSpot through JVMTI, the reference heap, a recording in a test) implements [`Vm`], the queries that a
//! profiler may make. A profiler implements [`Profiler`] and receives [`Event`]s. Neither depends on the implementation
//! of the other: this crate has no JVMTI pointers, files or sockets.
//!
//! Three rules keep frequent operations cheap and data consistent:
//!
//! * **Definitions come first.** A [`TraceId`], [`ClassId`], [`MethodId`] or
//!   [`ThreadId`] in an event was introduced by an earlier
//!   [`Event::TraceDefined`], [`Event::ClassLoaded`] or
//!   [`Event::ThreadStarted`], or can be requested with [`Vm`].
//! * **Counts are sent in batches.** Allocations, calls and samples are columns of *differences since the last batch*.
//!   Before a report the profiler calls [`Vm::flush`], which delivers every difference so far before it returns.
//! * **Ids are never reused while valid.** An id stays valid until the event that ends it ([`Event::ClassUnloaded`],
//!   [`Event::ThreadEnded`]); traces stay valid as long as the VM runs.
//!
//! ```
//! use vmpi::{Event, Profiler, Vm};
//!
//! /// Counts allocated bytes, whatever the VM below is.
//! struct Allocated(u64);
//!
//! impl Profiler for Allocated {
//!     fn notify(&mut self, _vm: &dyn Vm, event: &Event<'_>) {
//!         if let Event::Allocations(rows) = event {
//!             self.0 += rows.iter().map(|row| row.bytes).sum::<u64>();
//!         }
//!     }
//! }
//! ```
//!
//! In addition to the batches of [`Event`], which Tenure's profiler receives, this crate has all events of the
//! document: a [`VmEvent`] is one of its 36 events with the numbers of the C interface, and [`wire`] encodes them for
//! another process or a file.
//!
//! Reading order: [`ids`], [`info`], [`class_options`], [`content`], [`instances`], [`fills`], [`sample`], [`event`], [`heap`], [`vm`]; then [`kind`],
//! [`vm_event`], [`switches`], [`mode`], [`lifetime`], [`dump`], [`wire`]; [`c_interface`]; [`budget`].

pub mod budget;
pub mod c_interface;
pub mod class_options;
pub mod content;
pub mod dump;
pub mod event;
pub mod fills;
pub mod heap;
pub mod ids;
pub mod info;
pub mod instances;
pub mod kind;
pub mod lifetime;
pub mod mode;
pub mod references;
pub mod sample;
pub mod switches;
pub mod vm;
pub mod vm_event;
pub mod wire;

pub use budget::{Budget, Memory, Worth};
pub use class_options::{Choice, ClassOptions, Share};
pub use event::{
    AllocationRow, AllocationStackRow, ClassAnswer, CostRow, Event, FreeRow, GcKind, MonitorEvent,
    SampleRow, SampleTiming, WallDropped, WallRow,
};
pub use fills::{Fills, SiteFill};
pub use heap::{
    ClassRecord, HeapVisitor, Instance, NativeDump, ObjectArray, PlacedObject, PrimitiveArray,
    Root, Value,
};
pub use ids::{
    ArenaId, ClassId, Frame, Location, MethodId, MonitorId, ObjectHandle, ThreadId, TraceId,
};
pub use info::{
    BasicType, ClassInfo, ClassPlace, FieldInfo, LineEntry, MethodInfo, MonitorInfo, ThreadInfo,
    ThreadStack, ThreadState, Trace, VmInfo,
};
pub use instances::{InstanceQuery, Listing};
pub use kind::{Delivery, EventKind, EventMode, IdKind, Outcome};
pub use references::{ReferenceRow, References};
pub use sample::{FairSample, Random};
pub use switches::Switches;
pub use vm::{Control, HeapSummary, Profiler, Vm, VmError};
pub use vm_event::{
    Body, CallFrame, CallTrace, ClassLoad, CompiledMethod, DumpLevel, EnvId, FieldDef, GcInfo,
    HeapDump, JMethodId, MethodDef, MonitorDump, ObjectAlloc, ObjectMove, Operand, RawMonitorId,
    RefId, ThreadStart, VmEvent,
};
