//! The event table of the document: numbers, names, modes, and which events may be enabled or requested.
//!
//! The document lists 36 events. [`EventKind::InstructionStart`] is a later addition of interface version 1.2 and is
//! the 37th row here. Numbers are those of Sun's and IBM's headers, which agree; 10 to 32 and 36 were never assigned.

/// Set in the type of an event that was requested by `RequestEvent` (section 1.3).
pub const REQUESTED_EVENT: i32 = 0x1000_0000;

/// Interface version of JDK 1.2.
pub const VERSION_1: i32 = 0x1000_0001;
/// Interface version of JDK 1.3 and 1.4: adds `jobjectID2jobject` and back.
pub const VERSION_1_1: i32 = 0x1000_0002;
/// The last version: adds `SuspendThreadList` and `ResumeThreadList`.
pub const VERSION_1_2: i32 = 0x1000_0003;

/// Results of `EnableEvent`, `DisableEvent` and `RequestEvent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Outcome {
    /// Done.
    Success = 0,
    /// This event cannot be enabled or requested, or not in this VM.
    NotAvailable = 1,
    /// It failed: no such object, class or thread.
    Fail = -1,
}

impl Outcome {
    /// From the number of the C interface.
    #[must_use]
    pub fn from_code(code: i32) -> Option<Self> {
        Some(match code {
            0 => Self::Success,
            1 => Self::NotAvailable,
            -1 => Self::Fail,
            _ => return None,
        })
    }
}

/// The mode the process is in while an event is delivered (section 1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventMode {
    /// Multi-threaded, and a collection may start at any time.
    GcEnabled,
    /// Multi-threaded, and object ids do not change.
    GcDisabled,
    /// Threads are stopped: nothing may block, not even `malloc`.
    Suspended,
}

/// How a profiler can control an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// Only `EnableEvent` and `DisableEvent` control it.
    Switched,
    /// It can be enabled, and also requested with `RequestEvent`: the defining events of classes, threads and objects.
    SwitchedOrRequested,
    /// It is only sent after `RequestEvent`: the three dumps.
    Requested,
}

macro_rules! events {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $text:literal, $mode:ident, $delivery:ident;)*) => {
        /// One of the events, by its number in the C interface.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum EventKind {
            $($(#[$doc])* $name = $code,)*
        }

        impl EventKind {
            /// Every event, by number.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The event with this number, without [`REQUESTED_EVENT`].
            #[must_use]
            pub const fn from_code(code: i32) -> Option<Self> {
                match code { $($code => Some(Self::$name),)* _ => None }
            }

            /// The name in the C interface, without `JVMPI_EVENT_`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The mode in which the VM delivers it.
            #[must_use]
            pub const fn mode(self) -> EventMode {
                match self { $(Self::$name => EventMode::$mode,)* }
            }

            /// Whether it is enabled, requested, or both.
            #[must_use]
            pub const fn delivery(self) -> Delivery {
                match self { $(Self::$name => Delivery::$delivery,)* }
            }
        }
    };
}

events! {
    /// A method is entered.
    MethodEntry = 1, "METHOD_ENTRY", GcEnabled, Switched;
    /// A method is entered, with its receiver.
    MethodEntry2 = 2, "METHOD_ENTRY2", GcDisabled, Switched;
    /// A method returns or throws.
    MethodExit = 3, "METHOD_EXIT", GcEnabled, Switched;
    /// An object is allocated. Defines an object id.
    ObjectAlloc = 4, "OBJECT_ALLOC", GcDisabled, SwitchedOrRequested;
    /// An object is freed. Undefines its id.
    ObjectFree = 5, "OBJECT_FREE", Suspended, Switched;
    /// An object changes its id, perhaps its arena. Undefines one id, defines one.
    ObjectMove = 6, "OBJECT_MOVE", Suspended, Switched;
    /// A method was compiled and loaded.
    CompiledMethodLoad = 7, "COMPILED_METHOD_LOAD", GcEnabled, Switched;
    /// Compiled code is unloaded.
    CompiledMethodUnload = 8, "COMPILED_METHOD_UNLOAD", GcEnabled, Switched;
    /// A bytecode instruction starts: a later addition.
    InstructionStart = 9, "INSTRUCTION_START", GcEnabled, Switched;
    /// A thread starts. Defines a thread id.
    ThreadStart = 33, "THREAD_START", GcDisabled, SwitchedOrRequested;
    /// A thread ends. Undefines its id.
    ThreadEnd = 34, "THREAD_END", GcEnabled, Switched;
    /// Class file bytes are about to be defined and may be replaced.
    ClassLoadHook = 35, "CLASS_LOAD_HOOK", GcEnabled, Switched;
    /// A snapshot of the heap.
    HeapDump = 37, "HEAP_DUMP", GcDisabled, Requested;
    /// A JNI global reference is created. Defines its id.
    JniGlobalRefAlloc = 38, "JNI_GLOBALREF_ALLOC", GcDisabled, Switched;
    /// A JNI global reference is deleted. Undefines its id.
    JniGlobalRefFree = 39, "JNI_GLOBALREF_FREE", GcDisabled, Switched;
    /// A JNI weak global reference is created. Defines its id.
    JniWeakGlobalRefAlloc = 40, "JNI_WEAK_GLOBALREF_ALLOC", GcDisabled, Switched;
    /// A JNI weak global reference is deleted. Undefines its id.
    JniWeakGlobalRefFree = 41, "JNI_WEAK_GLOBALREF_FREE", GcDisabled, Switched;
    /// A class is loaded. Defines its id and those of its methods.
    ClassLoad = 42, "CLASS_LOAD", GcDisabled, SwitchedOrRequested;
    /// A class is unloaded. Undefines its id and those of its methods.
    ClassUnload = 43, "CLASS_UNLOAD", GcDisabled, Switched;
    /// A request for the profiler's data.
    DataDumpRequest = 44, "DATA_DUMP_REQUEST", GcEnabled, Switched;
    /// A request that the profiler resets its data.
    DataResetRequest = 45, "DATA_RESET_REQUEST", GcEnabled, Switched;
    /// The VM is initialised.
    JvmInitDone = 46, "JVM_INIT_DONE", GcEnabled, Switched;
    /// The VM is about to end.
    JvmShutDown = 47, "JVM_SHUT_DOWN", GcEnabled, Switched;
    /// An arena is created. Defines its id.
    ArenaNew = 48, "ARENA_NEW", GcEnabled, Switched;
    /// An arena is deleted with all objects in it. Undefines its id and theirs.
    ArenaDelete = 49, "ARENA_DELETE", Suspended, Switched;
    /// A snapshot of one object.
    ObjectDump = 50, "OBJECT_DUMP", GcDisabled, Requested;
    /// A thread blocks at a raw monitor.
    RawMonitorContendedEnter = 51, "RAW_MONITOR_CONTENDED_ENTER", GcEnabled, Switched;
    /// It has entered the raw monitor.
    RawMonitorContendedEntered = 52, "RAW_MONITOR_CONTENDED_ENTERED", GcEnabled, Switched;
    /// A thread leaves a raw monitor that others wait for.
    RawMonitorContendedExit = 53, "RAW_MONITOR_CONTENDED_EXIT", GcEnabled, Switched;
    /// A thread blocks at an object's monitor.
    MonitorContendedEnter = 54, "MONITOR_CONTENDED_ENTER", GcDisabled, Switched;
    /// It has entered the monitor.
    MonitorContendedEntered = 55, "MONITOR_CONTENDED_ENTERED", GcDisabled, Switched;
    /// A thread leaves a monitor that others wait for.
    MonitorContendedExit = 56, "MONITOR_CONTENDED_EXIT", GcDisabled, Switched;
    /// A thread is about to wait on an object.
    MonitorWait = 57, "MONITOR_WAIT", GcDisabled, Switched;
    /// It has finished waiting.
    MonitorWaited = 58, "MONITOR_WAITED", GcDisabled, Switched;
    /// A snapshot of threads and monitors.
    MonitorDump = 59, "MONITOR_DUMP", GcDisabled, Requested;
    /// A collection starts.
    GcStart = 60, "GC_START", GcEnabled, Switched;
    /// A collection has ended.
    GcFinish = 61, "GC_FINISH", GcEnabled, Switched;
}

/// Items that ids identify (section 1.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdKind {
    /// `JNIEnv *`.
    Thread,
    /// `jobjectID`.
    Object,
    /// `jobjectID` of the class object.
    Class,
    /// `jmethodID`, defined and undefined with its class.
    Method,
    /// An arena number.
    Arena,
    /// A JNI global or weak global reference.
    GlobalRef,
}

impl IdKind {
    /// Events that define an id.
    #[must_use]
    pub const fn defined_by(self) -> &'static [EventKind] {
        match self {
            Self::Thread => &[EventKind::ThreadStart],
            Self::Object => &[EventKind::ObjectAlloc, EventKind::ObjectMove],
            Self::Class => &[EventKind::ClassLoad, EventKind::ObjectMove],
            Self::Method => &[EventKind::ClassLoad],
            Self::Arena => &[EventKind::ArenaNew],
            Self::GlobalRef => &[
                EventKind::JniGlobalRefAlloc,
                EventKind::JniWeakGlobalRefAlloc,
            ],
        }
    }

    /// Events after which an id may refer to another item.
    #[must_use]
    pub const fn undefined_by(self) -> &'static [EventKind] {
        match self {
            Self::Thread => &[EventKind::ThreadEnd],
            Self::Object => &[
                EventKind::ObjectFree,
                EventKind::ObjectMove,
                EventKind::ArenaDelete,
            ],
            Self::Class => &[EventKind::ClassUnload, EventKind::ObjectMove],
            Self::Method => &[EventKind::ClassUnload],
            Self::Arena => &[EventKind::ArenaDelete],
            Self::GlobalRef => &[EventKind::JniGlobalRefFree, EventKind::JniWeakGlobalRefFree],
        }
    }
}

impl EventKind {
    /// The number in the C interface.
    #[must_use]
    pub const fn code(self) -> i32 {
        self as i32
    }

    /// The number in an event that was requested.
    #[must_use]
    pub const fn requested_code(self) -> i32 {
        self as i32 | REQUESTED_EVENT
    }

    /// Splits an event type into its kind and whether it was requested.
    #[must_use]
    pub const fn split(event_type: i32) -> Option<(Self, bool)> {
        match Self::from_code(event_type & !REQUESTED_EVENT) {
            Some(kind) => Some((kind, event_type & REQUESTED_EVENT != 0)),
            None => None,
        }
    }

    /// The event with this name: the C name with or without `JVMPI_EVENT_`, in any case, or one of the aliases that
    /// agents use.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let name = name.to_ascii_uppercase().replace('-', "_");
        let name = name.strip_prefix("JVMPI_EVENT_").unwrap_or(&name);
        let alias = match name {
            "LOAD_COMPILED_METHOD" => Some(Self::CompiledMethodLoad),
            "UNLOAD_COMPILED_METHOD" => Some(Self::CompiledMethodUnload),
            "NEW_ARENA" => Some(Self::ArenaNew),
            "DELETE_ARENA" => Some(Self::ArenaDelete),
            "DUMP_DATA_REQUEST" => Some(Self::DataDumpRequest),
            "RESET_DATA_REQUEST" => Some(Self::DataResetRequest),
            "OBJ_ALLOC" => Some(Self::ObjectAlloc),
            "OBJ_FREE" => Some(Self::ObjectFree),
            "OBJ_MOVE" => Some(Self::ObjectMove),
            _ => None,
        };
        alias.or_else(|| Self::ALL.iter().copied().find(|kind| kind.name() == name))
    }

    /// Whether it may only be sent between `GC_START` and `GC_FINISH`. A VM that counts references frees objects
    /// outside of collections and states this in its [`Hello`](crate::wire::Hello).
    #[must_use]
    pub const fn bracketed(self) -> bool {
        matches!(self.mode(), EventMode::Suspended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_thirty_six_events_and_one_was_added() {
        assert_eq!(EventKind::ALL.len(), 37);
        assert!(EventKind::ALL.is_sorted());
        for code in (10..=32).chain([0, 36, 62]) {
            assert_eq!(EventKind::from_code(code), None);
        }
        for kind in EventKind::ALL {
            assert_eq!(EventKind::from_code(kind.code()), Some(*kind));
            assert_eq!(EventKind::from_name(kind.name()), Some(*kind));
            assert_eq!(EventKind::split(kind.requested_code()), Some((*kind, true)));
        }
        assert_eq!(
            EventKind::from_name("obj-move"),
            Some(EventKind::ObjectMove)
        );
    }

    #[test]
    fn events_that_carry_object_ids_hold_collections_off() {
        use EventKind::*;
        for kind in [
            ObjectAlloc,
            MethodEntry2,
            ClassLoad,
            MonitorWait,
            HeapDump,
            JniGlobalRefAlloc,
        ] {
            assert_eq!(kind.mode(), EventMode::GcDisabled, "{kind:?}");
        }
        let bracketed: Vec<_> = EventKind::ALL
            .iter()
            .filter(|kind| kind.bracketed())
            .collect();
        assert_eq!(bracketed, [&ObjectFree, &ObjectMove, &ArenaDelete]);
    }
}
