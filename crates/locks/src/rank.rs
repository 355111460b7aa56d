//! The table of ranks: every lock of the agents, the outermost first.

macro_rules! ranks {
    ($($(#[$about:meta])* $rank:ident,)*) => {
        /// The rank of a lock. A thread that holds one may wait for locks of the ranks below it here, and for no others.
        ///
        /// Three rules decide where a lock belongs. The VM runs callbacks in the middle of calls into it, so a lock
        /// that is held during such a call is above those that callbacks take. Under [`Rank::State`] or anything below
        /// it no Java code runs, because inserted code may need the state, and nothing is allocated in the program's
        /// heap. Locks that the VM thread takes while it has stopped all other threads are at the bottom of their
        /// agent's part, and are held for a few instructions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rank {
            $($(#[$about])* $rank,)*
        }

        impl Rank {
            /// All ranks, the outermost first.
            pub const ALL: &[Self] = &[$(Self::$rank,)*];
        }
    };
}

ranks! {
    // The agent of a profile: commands from outside.
    /// `recording::CHANGE`: a recording begins or ends, one at a time. Held for as long as that takes.
    RecordingChange,
    /// `Inserted::begins`: only one thread starts or ends counting at a time. Held while all classes get their code,
    /// which needs nearly all locks below. Code that reports an event never takes it.
    Begins,
    /// `HotSpot::profiler`: receives events, one at a time. Held during all calls of the VM for a report. Callbacks in
    /// the middle of the program only try to lock it.
    Profiler,
    /// The recorder. Called by the thread that holds the profiler, or by the listener while no events are reported.
    Recorder,
    /// `recording::NOW`: what is recorded. Read and changed by an attach, not held over a call.
    Recording,
    /// `listener::PATIENCE`: the collector that the agent waits for. Copied, not held over a call.
    Patience,
    /// Data that waits to be sent to a collector. Writing to the recorder's output locks it.
    Sender,
    /// `conversion::CONVERTING`: held while files that have ended are written in another form, so that the end of the program
    /// waits for it.
    Conversion,
    /// `conversion::ENDED`: files that have ended and are not yet written in another form. The recorder adds a file when it
    /// drops the output.
    EndedFiles,
    /// `series::OWN`: files of a series. Held while a recording's file is completed and older ones are removed.
    SeriesFiles,

    // Queries of the profiler, run by the thread that holds it or by a thread of the agent.
    /// `Inserted::is_in`: whether all classes have the code. Held while they are changed, which causes callbacks.
    Classes,
    /// `Inserted::stopped`: whether allocations are counted. Held while the tracker is switched. Below the profiler,
    /// whose commands switch it, and above the state, which decides what is counted again.
    Counting,
    /// The slot of a worker thread. Held while the thread is started, which runs Java code and registers the thread in
    /// the state.
    Worker,
    /// `Clock::is_kept`: whether a thread keeps allocation times. Held while that is started.
    AllocationTimes,
    /// `own_code::DEFINING`: the helper's class is defined once. The definition causes callbacks.
    Defining,
    /// `Malloc::named`: names of native functions, each of which gets a number in the state.
    NativeNames,
    /// `Tracked::aged`: tracked objects that have survived a collection. Held while a dump reads them, which reads
    /// their sites from the state and takes the young lists.
    Aged,
    /// `HotSpot::lodging`: how many virtual threads have trackers. Held while one is made in the program's heap, so
    /// never with the state.
    Lodging,

    /// `HotSpot::reported`: what was reported of the sites. Held while the counts in the state are copied, some at a time.
    Reported,
    /// `Sampler::draining`: one thread at a time counts samples and removes ended threads.
    Draining,
    /// `symbols::ALL`: names of addresses, looked up before a native stack is counted in the state.
    Symbols,
    /// `unwind_tables::KNOWN`: rules of the libraries that are loaded.
    UnwindTables,

    // The state, and locks that may be taken while it is held.
    /// `HotSpot::state`: classes, methods, stacks, threads, sites. Callbacks of every kind take it.
    State,
    /// `HotSpot::classes_of_walk`: a copy of the classes for the VM thread, which walks the heap while other threads
    /// are stopped and may hold any lock.
    ClassesOfWalk,
    /// A list of `Tracked::young`: objects of some threads that are tracked since the last collection. Filled with and
    /// without the state locked; one list at a time.
    Young,
    /// A list of `Samples`: sampled allocations of some threads, until they are counted. One list at a time.
    Samples,
    /// `Tracked::shares`: numbers of shares, looked up while a list is filled.
    Shares,
    /// `Sampler::choice`: which threads are sampled, examined while samples are counted in the state.
    Sampled,
    /// `Timers::armed`: a timer for each thread. Switched with the choice, looked up with the state.
    Timers,
    /// `Timers::ended`: numbers of threads that had a timer.
    EndedTimers,
    /// `OtherThreads`: timers of threads that run no Java code.
    OtherThreads,
    /// Threads of the agent, which are not sampled.
    OwnThreads,
    /// The present question to a factory.
    Asking,
    /// `Numbers`: methods and call sites that inserted code knows by number. The class hook locks it, for every class.
    Numbers,
    /// Names of classes that have the code, added by the class hook.
    ChangedClasses,
    /// `references::TABLE`: global references. The program makes and deletes them anywhere, also in code of the VM that
    /// runs under one of the locks above.
    References,
    /// `HotSpot::deaths`: tags of freed objects, added by a thread of the VM. The next thread that locks the state
    /// processes them.
    Deaths,

    // The stream of VM events (`host`), the other output of a recording.
    /// `Host::sink`: the output of the stream, until its writer begins.
    EventSink,
    /// `Host::tracked`: sampled objects. The VM thread compares them in its pause, and queues their moves and frees.
    EventObjects,
    /// `Host::queue`: events to be sent. A new name is queued while the state is locked.
    EventQueue,
    /// `Host::is_finished`: whether the writer has ended.
    EventEnd,

    // The bridge to agents of `jvmpi.h`, which is a separate agent.
    /// `Bridge::granted`: capabilities. Held while others are requested.
    Granted,
    /// `Collector::emitting`: one collection is reported at a time. Held during calls to the agent, which may request
    /// the locks below.
    EmittingCollection,
    /// `Objects::naming`: an object gets its id once. Held while the VM tags it.
    Naming,
    /// Threads by environment.
    BridgeThreads,
    /// Classes by id.
    BridgeClasses,
    /// Line numbers by method.
    LineTables,
    /// What allocation sites make.
    NewObjectSteps,
    /// Classes that were loaded before they could be changed.
    EarlyClasses,
    /// Objects by id, in parts; one part at a time.
    Objects,
    /// Global references of the program.
    BridgeReferences,
    /// `Collector::state`: what the VM thread has noted of a collection.
    CollectorState,
    /// Faults that were reported already.
    ReportedEvents,
    /// `RawMonitors`: the list of an agent's raw monitors.
    RawMonitors,
    /// The counters of one raw monitor, not held during a call. The monitor itself belongs to the agent and has no
    /// rank.
    RawMonitor,

    // Locks that may be taken anywhere.
    /// `worker::WORKERS`: all worker threads.
    Workers,
    /// `last_words::STANDS_BY`: the one that stands by.
    StandsBy,
    /// `exhausted::READING`: the thread that reads a copy of the process. The thread that ends the process removes it
    /// and waits without the lock.
    ReadingCopy,
    /// Jobs that a worker has not begun.
    Jobs,
    /// `objects::SEEN`: how many libraries had been loaded. Taken under the linker's lock, by hooks that run wherever the
    /// program or the VM loads a library.
    Libraries,
}
