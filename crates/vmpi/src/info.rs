//! Data of a VM about classes, methods, threads and monitors.

use crate::ids::{ClassId, Frame, MethodId, MonitorId, ObjectHandle, ThreadId, TraceId};

/// Java's basic types, numbered as in HPROF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BasicType {
    /// A reference.
    Object = 2,
    /// `boolean`, one byte.
    Boolean = 4,
    /// `char`, two bytes.
    Char = 5,
    /// `float`, four bytes.
    Float = 6,
    /// `double`, eight bytes.
    Double = 7,
    /// `byte`, one byte.
    Byte = 8,
    /// `short`, two bytes.
    Short = 9,
    /// `int`, four bytes.
    Int = 10,
    /// `long`, eight bytes.
    Long = 11,
}

impl BasicType {
    /// The type of a descriptor, from its first character: `I`, `J`, `L...;`, `[...`.
    #[must_use]
    pub fn from_descriptor(descriptor: &str) -> Option<Self> {
        Some(match descriptor.as_bytes().first()? {
            b'Z' => Self::Boolean,
            b'C' => Self::Char,
            b'F' => Self::Float,
            b'D' => Self::Double,
            b'B' => Self::Byte,
            b'S' => Self::Short,
            b'I' => Self::Int,
            b'J' => Self::Long,
            b'L' | b'[' => Self::Object,
            _ => return None,
        })
    }

    /// Bytes of a primitive value; `None` for a reference, whose width depends on the writer.
    #[must_use]
    pub fn width(self) -> Option<usize> {
        match self {
            Self::Object => None,
            Self::Boolean | Self::Byte => Some(1),
            Self::Char | Self::Short => Some(2),
            Self::Float | Self::Int => Some(4),
            Self::Double | Self::Long => Some(8),
        }
    }
}

/// The VM as a whole, known since initialization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VmInfo {
    /// `java.vm.name` or the like.
    pub name: String,
    /// `java.vm.version` or the like.
    pub version: String,
    /// `Runtime.maxMemory()` in bytes.
    pub max_memory: u64,
    /// The operating system's process id.
    pub pid: u32,
    /// Whether an [`ObjectHandle`] stays the same after collections.
    pub stable_handles: bool,
}

/// A class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassInfo {
    /// Type descriptor as in the VM: `Ljava/lang/String;`, `[I`.
    pub signature: String,
    /// Source file, if the class states one.
    pub source: Option<String>,
    /// The superclass, `ClassId(0)` for none.
    pub superclass: ClassId,
    /// Its class object.
    pub mirror: ObjectHandle,
    /// The loader object; null for the boot loader.
    pub loader: ObjectHandle,
    /// Whether it is an interface.
    pub is_interface: bool,
}

impl ClassInfo {
    /// The name as Java writes it: `java.lang.String`, `int[]`.
    #[must_use]
    pub fn java_name(&self) -> String {
        java_name(&self.signature)
    }
}

/// Converts a descriptor to the name in Java source: `[Ljava/lang/Object;` is `java.lang.Object[]`. Text that is not a
/// descriptor is returned with `/` replaced by `.`.
#[must_use]
pub fn java_name(signature: &str) -> String {
    let dims = signature.bytes().take_while(|b| *b == b'[').count();
    let element = &signature[dims..];
    let base = match element {
        "Z" => "boolean".into(),
        "C" => "char".into(),
        "F" => "float".into(),
        "D" => "double".into(),
        "B" => "byte".into(),
        "S" => "short".into(),
        "I" => "int".into(),
        "J" => "long".into(),
        _ => {
            let inner = element
                .strip_prefix('L')
                .and_then(|name| name.strip_suffix(';'))
                .unwrap_or(element);
            inner.replace('/', ".")
        }
    };
    base + &"[]".repeat(dims)
}

/// The origin of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClassPlace {
    /// The loader: its class, its name if it has one, and a number that distinguishes it from others;
    /// empty for the boot loader.
    pub loader: String,
    /// The named module; empty if the class is in none.
    pub module: String,
}

/// A field, in the order of the class file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldInfo {
    /// Its name.
    pub name: String,
    /// Its descriptor.
    pub descriptor: String,
    /// Whether it is static.
    pub is_static: bool,
}

/// A method.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MethodInfo {
    /// The declaring class.
    pub class: ClassId,
    /// Its name.
    pub name: String,
    /// Its descriptor, `(I)V`.
    pub descriptor: String,
    /// Whether it is native.
    pub is_native: bool,
}

/// One row of a line number table: the line is valid from `start` to the next row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LineEntry {
    /// First bytecode offset.
    pub start: u32,
    /// The source line.
    pub line: u32,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadInfo {
    /// Its name as Unicode, without escapes.
    pub name: String,
    /// Its thread group's name, empty if the group was destroyed.
    pub group: String,
    /// The parent group's name, empty for the root.
    pub parent_group: String,
    /// The `Thread` object.
    pub object: ObjectHandle,
    /// A thread that belongs to the profiler, kept out of samples.
    pub is_agent: bool,
    /// A virtual thread.
    pub is_virtual: bool,
    /// It was already running when the profiler began to receive thread starts.
    pub predates_profiler: bool,
}

/// What a thread is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadState {
    /// It has started and not ended.
    pub alive: bool,
    /// Runnable: on CPU, or the VM cannot determine otherwise.
    pub runnable: bool,
    /// Blocked at the entrance of a monitor.
    pub blocked_on_monitor: bool,
    /// In `Object.wait`.
    pub waiting: bool,
    /// In `Thread.sleep`.
    pub sleeping: bool,
    /// Parked.
    pub parked: bool,
    /// Suspended.
    pub suspended: bool,
    /// Its interrupt flag is set.
    pub interrupted: bool,
    /// In native code.
    pub in_native: bool,
}

/// A stack, innermost frame first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Trace {
    /// The thread, or [`ThreadId::NONE`] if threads share stacks.
    pub thread: ThreadId,
    /// The frames, innermost first, at most the requested depth.
    pub frames: Vec<Frame>,
}

/// A monitor at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MonitorInfo {
    /// The monitor.
    pub monitor: MonitorId,
    /// The class of the object.
    pub class: ClassId,
    /// The owner.
    pub owner: Option<ThreadId>,
    /// How often the owner entered it.
    pub entry_count: u32,
    /// Threads that wait to enter.
    pub waiting_to_enter: Vec<ThreadId>,
    /// Threads that are in `wait` on it.
    pub waiting_to_be_notified: Vec<ThreadId>,
}

/// A thread with its state and interned stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadStack {
    /// The thread.
    pub thread: ThreadId,
    /// Its state.
    pub state: ThreadState,
    /// Its stack.
    pub trace: TraceId,
}

/// A method id with its data.
pub type NamedMethod = (MethodId, MethodInfo);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_become_names_of_the_language() {
        let check = |signature, name| assert_eq!(java_name(signature), name);
        check("Ljava/lang/String;", "java.lang.String");
        check("[I", "int[]");
        check("[[Ljava/lang/Object;", "java.lang.Object[][]");
        check("LThreads$$Lambda/0x0001;", "Threads$$Lambda.0x0001");
        check("", "");
    }

    #[test]
    fn basic_types_know_their_width() {
        assert_eq!(
            BasicType::from_descriptor("J").and_then(BasicType::width),
            Some(8)
        );
        assert_eq!(
            BasicType::from_descriptor("[J").and_then(BasicType::width),
            None
        );
        assert_eq!(BasicType::from_descriptor("V"), None);
    }
}
