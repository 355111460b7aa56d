//! The two tag spaces and the basic types. There are two enums because the same byte has two meanings: 0x01 is a
//! string among the top-level records and a JNI global root among the heap sub-records.

use std::ops::RangeInclusive;

macro_rules! tags {
    ($(#[$doc:meta])* $enum:ident { $($(#[$vdoc:meta])* $variant:ident = $value:literal, $name:literal;)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[repr(u8)]
        pub enum $enum { $($(#[$vdoc])* $variant = $value,)* }

        impl $enum {
            /// Every variant, in the order of definition.
            pub const ALL: &'static [$enum] = &[$($enum::$variant,)*];

            /// The variant of a byte in the file, if it is one.
            #[inline]
            pub const fn from_u8(byte: u8) -> Option<$enum> {
                match byte { $($value => Some($enum::$variant),)* _ => None }
            }

            /// The field's standard name, upper case with underscores.
            pub const fn name(self) -> &'static str {
                match self { $($enum::$variant => $name,)* }
            }
        }
    };
}

tags! {
    /// Tag of a top-level record (HPROF binary format, "The following TAGs are supported").
    #[non_exhaustive]
    RecordTag {
        /// A name: id and modified UTF-8 bytes.
        Utf8 = 0x01, "UTF8";
        /// A class: serial, object id, trace serial, name id.
        LoadClass = 0x02, "LOAD_CLASS";
        /// Class serial of an unloaded class.
        UnloadClass = 0x03, "UNLOAD_CLASS";
        /// A stack frame.
        Frame = 0x04, "FRAME";
        /// A stack trace: frame ids, innermost first.
        Trace = 0x05, "TRACE";
        /// Allocation sites table.
        AllocSites = 0x06, "ALLOC_SITES";
        /// Totals of the heap.
        HeapSummary = 0x07, "HEAP_SUMMARY";
        /// A thread began.
        StartThread = 0x0a, "START_THREAD";
        /// A thread ended.
        EndThread = 0x0b, "END_THREAD";
        /// A whole heap dump in one record.
        HeapDump = 0x0c, "HEAP_DUMP";
        /// CPU samples table.
        CpuSamples = 0x0d, "CPU_SAMPLES";
        /// Settings of the agent.
        ControlSettings = 0x0e, "CONTROL_SETTINGS";
        /// A piece of a heap dump.
        HeapDumpSegment = 0x1c, "HEAP_DUMP_SEGMENT";
        /// The end of a run of segments.
        HeapDumpEnd = 0x2c, "HEAP_DUMP_END";
    }
}

/// The tag bytes that are reserved for private records of the program that writes a file; the format uses none of them.
/// A private record is well-formed and no damage. Its body may have any length below 2^28 bytes; it is passed on as a
/// [`RawRecord`](crate::RawRecord) and never decoded. After damage, reading continues at a private record only if records
/// of the format, or several private ones up to the end of the file, follow it, the next one within a second by its time
/// stamp, because arbitrary bytes often look like a private record.
pub const PRIVATE_TAGS: RangeInclusive<u8> = 0x6f..=0x7e;

/// Name of the tag of a top-level record, or `0x77` for a private or unknown one.
pub(crate) fn record_name(byte: u8) -> String {
    RecordTag::from_u8(byte).map_or_else(|| format!("0x{byte:02x}"), |tag| tag.name().to_owned())
}

impl RecordTag {
    /// True for the two records with heap sub-records.
    pub const fn is_heap(self) -> bool {
        matches!(self, RecordTag::HeapDump | RecordTag::HeapDumpSegment)
    }

    /// True for the records that other records refer to: names, classes, frames, traces and threads, and their ends.
    pub const fn is_definition(self) -> bool {
        matches!(
            self,
            RecordTag::Utf8
                | RecordTag::LoadClass
                | RecordTag::UnloadClass
                | RecordTag::Frame
                | RecordTag::Trace
                | RecordTag::StartThread
                | RecordTag::EndThread
        )
    }
}

tags! {
    /// Tag of a sub-record inside HEAP_DUMP and HEAP_DUMP_SEGMENT, ART's additions included.
    #[non_exhaustive]
    HeapTag {
        /// Root of unknown kind.
        RootUnknown = 0xff, "UNKNOWN";
        /// JNI global reference.
        RootJniGlobal = 0x01, "JNI_GLOBAL";
        /// JNI local reference of a frame.
        RootJniLocal = 0x02, "JNI_LOCAL";
        /// Local variable of a Java frame.
        RootJavaFrame = 0x03, "JAVA_FRAME";
        /// Native stack of a thread.
        RootNativeStack = 0x04, "NATIVE_STACK";
        /// System class.
        RootStickyClass = 0x05, "STICKY_CLASS";
        /// Thread block.
        RootThreadBlock = 0x06, "THREAD_BLOCK";
        /// Busy monitor.
        RootMonitorUsed = 0x07, "MONITOR_USED";
        /// Live thread.
        RootThreadObject = 0x08, "THREAD_OBJ";
        /// ART: interned string.
        RootInternedString = 0x89, "INTERNED_STRING";
        /// ART: object waiting for its finalizer.
        RootFinalizing = 0x8a, "FINALIZING";
        /// ART: held by the debugger.
        RootDebugger = 0x8b, "DEBUGGER";
        /// ART: reference being cleaned up.
        RootReferenceCleanup = 0x8c, "REFERENCE_CLEANUP";
        /// ART: held by the VM itself.
        RootVmInternal = 0x8d, "VM_INTERNAL";
        /// ART: monitor entered from JNI.
        RootJniMonitor = 0x8e, "JNI_MONITOR";
        /// ART: an unreachable object (not a root).
        RootUnreachable = 0x90, "UNREACHABLE";
        /// A class with its statics and field table.
        ClassDump = 0x20, "CLASS_DUMP";
        /// An object.
        InstanceDump = 0x21, "INSTANCE_DUMP";
        /// An array of references.
        ObjectArrayDump = 0x22, "OBJECT_ARRAY_DUMP";
        /// An array of a primitive type.
        PrimitiveArrayDump = 0x23, "PRIMITIVE_ARRAY_DUMP";
        /// ART: a primitive array whose contents were left out.
        PrimitiveArrayNoData = 0xc3, "PRIMITIVE_ARRAY_NODATA";
        /// ART: the heap (app, zygote, image) the following objects belong to.
        HeapDumpInfo = 0xfe, "HEAP_DUMP_INFO";
    }
}

impl HeapTag {
    /// True for every ROOT sub-record (UNREACHABLE included, although it keeps nothing alive).
    pub const fn is_root(self) -> bool {
        !matches!(
            self,
            HeapTag::ClassDump
                | HeapTag::InstanceDump
                | HeapTag::ObjectArrayDump
                | HeapTag::PrimitiveArrayDump
                | HeapTag::PrimitiveArrayNoData
                | HeapTag::HeapDumpInfo
        )
    }

    /// The tag in hexadecimal: `0x21`.
    pub fn hex(self) -> String {
        format!("0x{:02x}", self as u8)
    }

    /// Bytes after the object id of a root sub-record.
    pub(crate) const fn root_extra(self, id_bytes: usize) -> usize {
        match self {
            HeapTag::RootJniGlobal => id_bytes,
            HeapTag::RootJniLocal
            | HeapTag::RootJavaFrame
            | HeapTag::RootThreadObject
            | HeapTag::RootJniMonitor => 8,
            HeapTag::RootNativeStack | HeapTag::RootThreadBlock => 4,
            _ => 0,
        }
    }
}

tags! {
    /// Type of a field, constant or array element ("Basic Type").
    BasicType {
        /// A reference.
        Object = 2, "object";
        /// boolean, 1 byte.
        Boolean = 4, "boolean";
        /// char, 2 bytes.
        Char = 5, "char";
        /// float, 4 bytes.
        Float = 6, "float";
        /// double, 8 bytes.
        Double = 7, "double";
        /// byte, 1 byte.
        Byte = 8, "byte";
        /// short, 2 bytes.
        Short = 9, "short";
        /// int, 4 bytes.
        Int = 10, "int";
        /// long, 8 bytes.
        Long = 11, "long";
    }
}

impl BasicType {
    /// Size in the file. A reference has the id width.
    #[inline]
    pub const fn size(self, id_bytes: usize) -> usize {
        match self {
            BasicType::Object => id_bytes,
            BasicType::Boolean | BasicType::Byte => 1,
            BasicType::Char | BasicType::Short => 2,
            BasicType::Float | BasicType::Int => 4,
            BasicType::Double | BasicType::Long => 8,
        }
    }

    /// The JVM's one-letter descriptor of an array element type (`I` for int).
    pub const fn descriptor(self) -> char {
        match self {
            BasicType::Object => 'L',
            BasicType::Boolean => 'Z',
            BasicType::Char => 'C',
            BasicType::Float => 'F',
            BasicType::Double => 'D',
            BasicType::Byte => 'B',
            BasicType::Short => 'S',
            BasicType::Int => 'I',
            BasicType::Long => 'J',
        }
    }
}
