//! The table of ranks: every lock of the agents, the outermost first.

macro_rules! ranks {
    ($($(#[$about:meta])* $rank:ident,)*) => {
        /// The rank of a lock. A thread that holds one may wait for locks of the ranks below it here, and for no others.
        ///
        /// Three rules decide where a lock belongs. The callbacks of the VM come in the middle of whatever calls
        /// into it, so a lock that is held over such a call stands above those that callbacks take. Under
        /// [`Rank::State`] or anything below it no Java code runs, because inserted code may need the state, and nothing is
        /// allocated in the program's heap. What the VM thread takes while it has stopped all others stands at the
        /// bottom of its agent's part, held for a few instructions.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rank {
            $($(#[$about])* $rank,)*
        }

        impl Rank {
            /// All of them, the outermost first.
            pub const ALL: &[Self] = &[$(Self::$rank,)*];
        }
    };
}

ranks! {
    // The agent of a profile: orders that come from outside.
    /// `Inserted::begins`: that counting begins, or ends, once at a time. Held while all classes get their code, which
    /// needs nearly all locks below. Code that reports an event never takes it.
    Begins,
    /// `HotSpot::profiler`: receives events, one at a time. Held over everything that a report asks of the VM. Callbacks
    /// in the middle of the program only try it.
    Profiler,
    /// The recorder. Called by the thread that holds the profiler, or by the listener while no events are reported.
    Recorder,
    /// `recording::NOW`: what is recorded. Read and changed by an attach, not held over a call.
    Recording,
    /// `listener::PATIENCE`: the collector that the agent waits for. Copied, not held over a call.
    Patience,
    /// What waits to be sent to a collector. Writing to the recorder's output takes it.
    Sender,

    // What the profiler asks of the VM, run by its holder or by a thread of the agent's own.
    /// `Inserted::is_in`: whether all classes have the code. Held while they are changed, which comes back as callbacks.
    Classes,
    /// `Inserted::stopped`: whether allocations are counted. Held while the tracker is switched; between the
    /// profiler, whose orders switch it, and the state, which says what has to be counted anew.
    Counting,
    /// Where a worker thread is kept. Held while the thread is started: that runs Java code and names it in the state.
    Worker,
    /// `Clock::is_kept`: whether a thread keeps allocation times. Held while that is started.
    AllocationTimes,
    /// `own_code::DEFINING`: the helper's class is defined once. The definition comes back as callbacks.
    Defining,
    /// `Malloc::named`: names of native functions, each of which gets a number in the state.
    NativeNames,
    /// `Tracked::aged`: objects that are followed and have seen a collection. Held while a dump reads them,
    /// which asks the state for their sites and takes over the young.
    Aged,
    /// `HotSpot::lodging`: how many virtual threads have objects that count for them. Held while one is made in the program's heap,
    /// so never with the state.
    Lodging,

    /// `HotSpot::reported`: what was reported of the sites. Held while the counts in the state are copied, some at a time.
    Reported,
    /// `Sampler::draining`: one thread at a time takes samples over, and forgets threads that have ended.
    Draining,
    /// `symbols::ALL`: names of addresses, looked up before a native stack is counted in the state.
    Symbols,
    /// `unwind_tables::KNOWN`: rules of the libraries that are loaded.
    UnwindTables,

    // The state, and what may be wanted with it.
    /// `HotSpot::state`: classes, methods, stacks, threads, sites. Callbacks of every kind take it.
    State,
    /// `HotSpot::classes_of_walk`: a copy of the classes for the VM thread, which walks the heap while others stand still,
    /// whatever they hold.
    ClassesOfWalk,
    /// A list of `Tracked::young`: objects of some threads that are followed since the last collection. Filled under the state
    /// and without it; one list at a time.
    Young,
    /// A list of `Samples`: sampled allocations of some threads, until they are taken over. One list at a time.
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
    /// Threads of the agent's own, which are not sampled.
    OwnThreads,
    /// What a factory is being asked.
    Asking,
    /// `Numbers`: methods and call sites that inserted code knows by number. The class hook takes it, wherever a
    /// class comes from.
    Numbers,
    /// Names of classes that have the code, noted by the class hook.
    ChangedClasses,
    /// `references::TABLE`: global references. The program makes and drops them anywhere, also in the VM's own code that runs
    /// under one of the locks above.
    References,
    /// `HotSpot::deaths`: tags of freed objects, put there by a thread of the VM. The next thread that locks the state takes them over.
    Deaths,

    // The stream of VM events (`host`), the other output of a recording.
    /// `Host::sink`: where the stream goes, until its writer begins.
    EventSink,
    /// `Host::tracked`: sampled objects. The VM thread compares them in its pause, and queues what has become of them.
    EventObjects,
    /// `Host::queue`: events to be sent. A new name is queued while the state is locked.
    EventQueue,
    /// `Host::is_finished`: whether the writer has ended.
    EventEnd,

    // The bridge to agents of `jvmpi.h`, which runs instead of all that.
    /// `Bridge::granted`: capabilities. Held while others are requested.
    Granted,
    /// `Collector::emitting`: one collection is reported at a time. Held over calls to the agent, which may request what is below.
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
    /// Classes that came before they could be changed.
    EarlyClasses,
    /// Objects by id, in parts; one part at a time.
    Objects,
    /// Global references of the program.
    BridgeReferences,
    /// `Collector::state`: what the VM thread has noted of a collection.
    CollectorState,
    /// What was said already of faults.
    ReportedEvents,
    /// `RawMonitors`: the list of an agent's raw monitors.
    RawMonitors,
    /// One raw monitor's own numbers, not held over a call. The monitor itself belongs to the agent and has no rank.
    RawMonitor,

    // What is wanted anywhere.
    /// `worker::WORKERS`: all worker threads.
    Workers,
    /// `last_words::STANDS_BY`: the one that stands by.
    StandsBy,
    /// `exhausted::READING`: the thread that reads a copy of the process. The thread that ends the process takes it out and waits
    /// without the lock.
    ReadingCopy,
    /// What a worker has not begun.
    Jobs,
    /// `objects::SEEN`: how many libraries had been loaded. Taken under the linker's lock, by hooks that run wherever the
    /// program or the VM loads a library.
    Libraries,
}
