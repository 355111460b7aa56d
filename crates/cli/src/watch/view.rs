//! The views, and their columns.

/// A view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// The timeline, and what happened.
    #[default]
    Memory,
    /// What was allocated in the range.
    Allocations,
    /// Blocks of native code.
    Native,
    /// Global references of native code.
    References,
    /// Instances of every class.
    Instances,
    /// The objects of one class in the last heap dump.
    Objects,
    /// What grows, and what could be saved.
    Advice,
    /// Tables of all classes that were kept.
    Saved,
    /// What changed between two of them.
    Changes,
    /// The lines that say what is recorded and looked at of each class.
    Options,
    /// The frames of a stack, with their lines of source.
    Source,
}

/// A column: its title, and its name when rows are sorted by it (empty where they are not).
pub type Column = (&'static str, &'static str);

impl View {
    /// What stands above it.
    pub fn title(self) -> &'static str {
        match self {
            View::Memory => "Memory",
            View::Allocations => "Allocations",
            View::Native => "Native memory",
            View::References => "JNI references",
            View::Instances => "Instances",
            View::Objects => "Objects",
            View::Advice => "What to fix",
            View::Saved => "Saved tables",
            View::Changes => "Changes",
            View::Options => "Options of classes",
            View::Source => "Source",
        }
    }

    /// What stands above the names.
    pub fn name_head(self) -> &'static str {
        match self {
            View::Saved => "File",
            View::Options => "Module  Class  Options",
            View::Source => "Frame",
            _ => "Name",
        }
    }

    /// The columns in front of the name.
    pub fn columns(self) -> &'static [Column] {
        match self {
            View::Memory => &[("When (UTC)", ""), ("Pause", "")],
            View::Allocations | View::Native => &[
                ("Allocs", "allocations"),
                ("Deallocs", "deallocations"),
                ("Remaining", "remaining"),
                ("Allocated", "allocated_bytes"),
                ("Dealloc'd", "deallocated_bytes"),
                ("Remaining B", "remaining_bytes"),
                ("Live", "live"),
                ("Live bytes", "live_bytes"),
            ],
            View::References => &[
                ("Kind", ""),
                ("Created", "created"),
                ("Deleted", "deleted"),
                ("Remaining", "remaining"),
                ("Cleared", "cleared"),
                ("Shallow", "bytes"),
                ("Objects", "held"),
                ("Retained", "retained"),
                ("Oldest", "oldest_ms"),
            ],
            View::Instances => &[
                ("Sample%", "sample_percent"),
                ("Live", "live"),
                ("GC'd", "dead"),
                ("Total", "total"),
                ("Bytes each", "bytes_each"),
                ("Live bytes", "live_bytes"),
                ("+Capacity", "with_capacity_bytes"),
                ("Size sum", "size_sum"),
                ("Size max", "size_max"),
                ("Max ever", "size_max_ever"),
                ("Size mean", "size_mean"),
                ("Cap. sum", "capacity_sum"),
                ("Cap. max", "capacity_max"),
                ("Max ever", "capacity_max_ever"),
                ("Cap. mean", "capacity_mean"),
            ],
            View::Objects => &[
                ("Address", "none"),
                ("Size", "size"),
                ("Capacity", "capacity"),
                ("Excess", "excess"),
                ("Cap. bytes", "capacity_bytes"),
            ],
            View::Advice => &[("Bytes", ""), ("Objects", ""), ("Collections", "")],
            View::Saved => &[("Number", ""), ("When (UTC)", ""), ("From", "")],
            View::Changes => &[
                ("Live before", "live_before"),
                ("Live after", "live_after"),
                ("Change", "live_change"),
                ("Bytes before", "bytes_before"),
                ("Bytes after", "bytes_after"),
                ("Bytes change", "bytes_change"),
                ("Cap. bytes change", "capacity_bytes_change"),
                ("Size change", "size_change"),
            ],
            View::Options | View::Source => &[],
        }
    }

    /// The words rows can be grouped by, or the sources they can come from.
    pub fn groups(self) -> &'static [&'static str] {
        match self {
            View::Allocations => &[
                "class", "site", "package", "module", "loader", "method", "context",
            ],
            View::Native => &["class", "site", "method"],
            // The VM's own histogram stops the program, so it is asked for, not followed.
            View::Instances => &["", "recording", "dump", "vm"],
            _ => &[],
        }
    }

    /// The column rows are sorted by at first, by its place in [`View::columns`].
    pub fn first_sort(self) -> usize {
        match self {
            View::Allocations => 3,
            View::Native => 7,
            View::References => 3,
            View::Instances | View::Changes => 5,
            View::Objects => 1,
            _ => 0,
        }
    }
}
