//! The records of the text form, one value for each item that the agent prints.
//!
//! Names are the file's bytes (modified UTF-8, unescaped), dates are the `ctime` text.

/// One record. A table is a begin, its rows and an end, so that any number of rows can be streamed.
#[derive(Clone, Debug, PartialEq)]
pub enum TextRecord<'a> {
    /// `JAVA PROFILE 1.0.1, created …`.
    Header(Header<'a>),
    /// The explanation between the header and the `--------` line.
    Prelude(&'a [u8]),
    /// `THREAD START (…)`.
    ThreadStart(ThreadStart<'a>),
    /// `THREAD END (id = …)`.
    ThreadEnd {
        /// Thread serial.
        thread: u32,
    },
    /// `TRACE …:` and its frames.
    Trace(Trace<'a>),
    /// `SITES BEGIN …`.
    SitesBegin {
        /// The order of the rows.
        order: SiteOrder,
        /// When.
        date: &'a [u8],
    },
    /// A row of SITES.
    Site(SiteRow<'a>),
    /// `SITES END`.
    SitesEnd,
    /// `NATIVE BEGIN …`: the table of Tenure's agent for native memory blocks, in rows of SITES whose class is the
    /// library, ordered by live bytes.
    NativeBegin {
        /// Mean bytes between two recorded blocks; 0 and 1 for every block.
        interval: u64,
        /// When.
        date: &'a [u8],
    },
    /// `NATIVE END`.
    NativeEnd,
    /// `CPU SAMPLES BEGIN …`, `CPU TIME (ms) BEGIN …`, `WALL RUNNING (ms) BEGIN …` or `WALL WAITING (ms) BEGIN …`.
    CpuBegin {
        /// Which of them.
        kind: CpuKind,
        /// Sum of all samples, or of all milliseconds, printed or not.
        total: i64,
        /// When.
        date: &'a [u8],
    },
    /// A row of any of them.
    Cpu(RankRow<'a>),
    /// The end of a CPU table.
    CpuEnd(CpuKind),
    /// `count callee caller time`: the table of `cpu=old` begins. It has no end.
    OldBegin,
    /// A row of `cpu=old`.
    Old(OldRow<'a>),
    /// `WAIT: MONITOR …` or `WAITED: MONITOR …`, printed when it happens.
    Wait(MonitorWait<'a>),
    /// `MONITOR DUMP BEGIN`.
    MonitorDumpBegin,
    /// A thread of a monitor dump.
    MonitorThread(MonitorThread<'a>),
    /// A monitor of a monitor dump.
    Monitor(Monitor<'a>),
    /// `MONITOR DUMP END`.
    MonitorDumpEnd,
    /// `LOCK TIME BEGIN (total = … ms) …`: as MONITOR TIME, for locks that are not monitors.
    LockTimeBegin {
        /// Milliseconds of all threads at locks.
        total: u64,
        /// When.
        date: &'a [u8],
    },
    /// A row of LOCK TIME.
    LockTime(RankRow<'a>),
    /// `LOCK TIME END`.
    LockTimeEnd,
    /// `MONITOR TIME BEGIN …`.
    MonitorTimeBegin {
        /// Milliseconds of contention, for all monitors.
        total: u64,
        /// When.
        date: &'a [u8],
    },
    /// A row of MONITOR TIME; `name` is the class signature.
    MonitorTime(RankRow<'a>),
    /// `MONITOR TIME END`.
    MonitorTimeEnd,
    /// `HEAP DUMP BEGIN …`.
    HeapBegin {
        /// Objects counted before the walk; the dump may have others.
        objects: u64,
        /// Bytes counted before the walk.
        bytes: u64,
        /// When.
        date: &'a [u8],
    },
    /// `ROOT …`.
    Root(Root<'a>),
    /// `OBJ …` and its references.
    Object(HeapObject<'a>),
    /// `ARR …` and its references.
    Array(HeapArray<'a>),
    /// `CLS …` and its references.
    Class(HeapClass<'a>),
    /// `HEAP DUMP END`.
    HeapEnd,
    /// `CLASS ESTIMATES BEGIN …`: the table of Tenure's agent for sampled allocations.
    EstimatesBegin {
        /// Mean bytes between two samples.
        interval: u64,
        /// Milliseconds that were profiled.
        time_ms: u64,
        /// When.
        date: &'a [u8],
    },
    /// A row of CLASS ESTIMATES.
    Estimate(EstimateRow<'a>),
    /// `CLASS ESTIMATES END`.
    EstimatesEnd,
    /// `ALLOCATION STACKS BEGIN …`: the table of Tenure's agent for the sampled stacks of sites.
    AllocationStacksBegin {
        /// Number of stacks that were read.
        samples: u64,
        /// When.
        date: &'a [u8],
    },
    /// A row of ALLOCATION STACKS.
    AllocationStack(AllocationStackRow<'a>),
    /// `ALLOCATION STACKS END`.
    AllocationStacksEnd,
    /// `JNI REFERENCES BEGIN …`: the table of Tenure's agent for global references of native code.
    ReferencesBegin {
        /// Global references that exist.
        global: u64,
        /// Weak global references that exist.
        weak: u64,
        /// When.
        date: &'a [u8],
    },
    /// A row of JNI REFERENCES.
    Reference(ReferenceRow<'a>),
    /// `JNI REFERENCES END`.
    ReferencesEnd,
    /// `NOTE: …`: a remark of Tenure's agent about the profile, for example about lost data. Old readers skip it,
    /// because it is between sections.
    Note(&'a [u8]),
}

/// The first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// `1.0.1`.
    pub version: &'a [u8],
    /// When the file was begun.
    pub created: &'a [u8],
}

/// A thread that began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadStart<'a> {
    /// Id of the thread object.
    pub object: u64,
    /// Thread serial.
    pub thread: u32,
    /// Name, including quotes and line ends.
    pub name: &'a [u8],
    /// Name of its group.
    pub group: &'a [u8],
}

/// A stack trace, innermost frame first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace<'a> {
    /// Trace serial.
    pub serial: u32,
    /// The thread, with `thread=y`.
    pub thread: Option<u32>,
    /// The phase of the VM outside normal running: `start`, `dead`, ….
    pub phase: Option<&'a [u8]>,
    /// Frames; none means the empty trace.
    pub frames: Vec<Frame<'a>>,
}

/// A frame of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Class name with dots.
    pub class: &'a [u8],
    /// Method name.
    pub method: &'a [u8],
    /// Source file or `<Unknown Source>`.
    pub source: &'a [u8],
    /// Line in it.
    pub line: TextLine,
}

/// The text after the colon of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextLine {
    /// A line number.
    Number(u32),
    /// `Unknown line`.
    Unknown,
    /// `Compiled method`.
    Compiled,
    /// `Native method`.
    Native,
    /// No colon at all, as in the output of other programs.
    Absent,
}

/// The order of SITES.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SiteOrder {
    /// `live bytes`.
    LiveBytes,
    /// `allocated bytes`.
    AllocatedBytes,
}

/// A row of SITES.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiteRow<'a> {
    /// Rank from 1.
    pub rank: u32,
    /// Share in per cent.
    pub share: f64,
    /// Share of this and all rows before it.
    pub accumulated: f64,
    /// Bytes not known to be collected.
    pub live_bytes: u64,
    /// Objects not known to be collected.
    pub live_objects: u64,
    /// Bytes allocated.
    pub allocated_bytes: u64,
    /// Objects allocated.
    pub allocated_objects: u64,
    /// Trace serial.
    pub trace: u32,
    /// Class name as in Java source (`int[]`).
    pub class: &'a [u8],
}

/// A row of CLASS ESTIMATES. Each estimate is followed by the bounds of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EstimateRow<'a> {
    /// Rank from 1.
    pub rank: u32,
    /// Live bytes: estimate, lower and upper bound.
    pub live_bytes: [u64; 3],
    /// Allocated bytes: estimate, lower and upper bound.
    pub allocated_bytes: [u64; 3],
    /// Allocated bytes per second.
    pub rate: u64,
    /// Class name as in Java source.
    pub class: &'a [u8],
}

/// A row of ALLOCATION STACKS.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AllocationStackRow<'a> {
    /// Rank of the site by allocated bytes, from 1.
    pub rank: u32,
    /// Percent of the site's objects: estimate, lower and upper bound.
    pub share: [f64; 3],
    /// How often the stack was sampled.
    pub samples: u64,
    /// Objects that it has allocated, an estimate.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The site's trace.
    pub site: u32,
    /// The stack.
    pub trace: u32,
    /// Class name as in Java source.
    pub class: &'a [u8],
}

/// A row of JNI REFERENCES: references of one kind to objects of one class, created at one stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReferenceRow<'a> {
    /// Rank from 1.
    pub rank: u32,
    /// `weak` instead of `global`.
    pub weak: bool,
    /// Created since the recording began.
    pub created: u64,
    /// Deleted by the program.
    pub deleted: u64,
    /// Weak ones that exist and whose objects were freed.
    pub cleared: u64,
    /// Shallow bytes of the objects of the existing references; an object with two references counts twice.
    pub bytes: u64,
    /// Milliseconds since the oldest existing one was created.
    pub oldest_ms: u64,
    /// Serial of the thread that created the most recent one.
    pub thread: u32,
    /// Trace serial.
    pub trace: u32,
    /// Class name as in Java source.
    pub class: &'a [u8],
}

/// Which CPU table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuKind {
    /// `CPU SAMPLES`.
    Samples,
    /// `CPU TIME (ms)`.
    Time,
    /// `WALL RUNNING (ms)`: elapsed time of threads that are running or runnable.
    Running,
    /// `WALL WAITING (ms)`: elapsed time of waiting threads.
    Waiting,
}

impl CpuKind {
    /// Every kind.
    pub const ALL: [CpuKind; 4] = [
        CpuKind::Samples,
        CpuKind::Time,
        CpuKind::Running,
        CpuKind::Waiting,
    ];

    /// The beginning of the lines that begin and end its table.
    pub const fn title(self) -> &'static str {
        match self {
            CpuKind::Samples => "CPU SAMPLES",
            CpuKind::Time => "CPU TIME (ms)",
            CpuKind::Running => "WALL RUNNING (ms)",
            CpuKind::Waiting => "WALL WAITING (ms)",
        }
    }
}

/// A row of a CPU table or of MONITOR TIME.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankRow<'a> {
    /// Rank from 1.
    pub rank: u32,
    /// Share in per cent.
    pub share: f64,
    /// Share of this and all rows before it.
    pub accumulated: f64,
    /// Samples, calls or contentions.
    pub count: u64,
    /// Trace serial.
    pub trace: u32,
    /// `class.method` of the top frame, `<empty trace>`, or a monitor's class signature.
    pub name: &'a [u8],
}

/// A row of `cpu=old`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OldRow<'a> {
    /// Calls.
    pub count: u64,
    /// `Class.method(signature)` or `<unknown callee>`.
    pub callee: &'a [u8],
    /// `Class.method(signature)` or `<unknown caller>`.
    pub caller: &'a [u8],
    /// Milliseconds, callees included.
    pub time: i64,
}

/// A thread began or stopped waiting on a monitor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonitorWait<'a> {
    /// False for `WAIT`, true for `WAITED`.
    pub done: bool,
    /// Class signature of the monitor's object.
    pub monitor: &'a [u8],
    /// The timeout or the time waited, in milliseconds.
    pub time: i64,
    /// Thread serial.
    pub thread: u32,
}

/// A thread of a monitor dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonitorThread<'a> {
    /// Thread serial.
    pub thread: u32,
    /// Trace serial.
    pub trace: u32,
    /// `R`, `CW`, `S|MW`, ….
    pub status: &'a [u8],
}

/// A monitor of a monitor dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Monitor<'a> {
    /// Class signature of its object.
    pub name: &'a [u8],
    /// Owner, and how often it has entered.
    pub owner: Option<(u32, u32)>,
    /// Threads waiting to enter; 0 is an unknown thread.
    pub waiters: Vec<u32>,
    /// Threads waiting to be notified.
    pub notify_waiters: Vec<u32>,
}

/// A garbage collection root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Root<'a> {
    /// The object.
    pub object: u64,
    /// The kind of root.
    pub kind: RootKind<'a>,
}

/// The kinds of root in the text form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootKind<'a> {
    /// `<thread>`.
    Thread {
        /// Thread serial.
        thread: u32,
        /// Trace where it was started.
        trace: u32,
    },
    /// `<thread block>`.
    ThreadBlock {
        /// Thread serial.
        thread: u32,
    },
    /// `<JNI global ref>`.
    JniGlobal {
        /// Number of the reference within this dump.
        reference: u64,
        /// Trace where the object was allocated.
        trace: u32,
    },
    /// `<JNI local ref>`.
    JniLocal {
        /// Thread serial.
        thread: u32,
        /// Frame number.
        frame: i32,
    },
    /// `<Java stack>`.
    JavaStack {
        /// Thread serial.
        thread: u32,
        /// Frame number.
        frame: i32,
    },
    /// `<native stack>`.
    NativeStack {
        /// Thread serial.
        thread: u32,
    },
    /// `<system class>`.
    SystemClass {
        /// Its name.
        name: &'a [u8],
    },
    /// `<busy monitor>`.
    BusyMonitor,
    /// `<unknown>`.
    Unknown,
}

/// An instance; only its non-null references are in the text form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapObject<'a> {
    /// Its id.
    pub id: u64,
    /// Bytes of heap.
    pub size: u64,
    /// Trace where it was allocated.
    pub trace: u32,
    /// Class name.
    pub class: &'a [u8],
    /// Class object.
    pub class_id: u64,
    /// Field name and referent.
    pub fields: Vec<(&'a [u8], u64)>,
}

/// An array; only the non-null references of an object array are in the text form.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapArray<'a> {
    /// Its id.
    pub id: u64,
    /// Bytes of heap (object arrays) or of elements (primitive arrays).
    pub size: u64,
    /// Trace where it was allocated.
    pub trace: u32,
    /// Number of elements.
    pub length: u64,
    /// The array's type as in Java source (`int[]`), not its element's.
    pub class: &'a [u8],
    /// Class object; none for primitive arrays.
    pub class_id: Option<u64>,
    /// Index and referent.
    pub elements: Vec<(u64, u64)>,
}

/// A class with its references.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeapClass<'a> {
    /// Its id.
    pub id: u64,
    /// Name with dots.
    pub name: &'a [u8],
    /// Trace where it was loaded.
    pub trace: u32,
    /// Superclass; 0 if there is none, as for the loader, signers and protection domain.
    pub superclass: u64,
    /// Class loader.
    pub loader: u64,
    /// Signers.
    pub signers: u64,
    /// Protection domain.
    pub domain: u64,
    /// Static field name and referent.
    pub statics: Vec<(&'a [u8], u64)>,
    /// Constant pool index and referent.
    pub constants: Vec<(u32, u64)>,
}
