//! The views, and their columns.

use live_analysis::allocations::By;
use live_analysis::classes::{self, ClassRow};
use live_analysis::columns::Tabular;
use live_analysis::comparison::Change;
use live_analysis::growth::Growing;
use live_analysis::instances::Instance;
use live_analysis::savings::{self, Saving};
use live_analysis::{allocations, references};

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
    /// What grows.
    Growth,
    /// What could be saved.
    Savings,
    /// Tables of all classes that were kept.
    Saved,
    /// What changed between two of them.
    Changes,
    /// The lines that say what is recorded and examined of each class.
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
            View::Growth => "What grows",
            View::Savings => "What could be saved",
            View::Saved => "Saved tables",
            View::Changes => "Changes",
            View::Options => "Class filters",
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
    pub fn columns(self) -> Vec<Column> {
        match self {
            View::Memory => vec![("When (UTC)", ""), ("Pause", "")],
            View::Allocations | View::Native => declared::<allocations::Row>(),
            View::References => declared::<references::Row>(),
            View::Instances => declared::<ClassRow>(),
            View::Objects => declared::<Instance>(),
            View::Growth => declared::<Growing>(),
            View::Savings => declared::<Saving>(),
            View::Saved => vec![("Number", ""), ("When (UTC)", ""), ("From", "")],
            View::Changes => declared::<Change>(),
            View::Options | View::Source => Vec::new(),
        }
    }

    /// The words rows can be grouped by, or the sources they can come from.
    pub fn groups(self) -> &'static [&'static str] {
        match self {
            View::Allocations => &By::WORDS,
            View::Native => &By::NATIVE,
            View::Savings => &savings::GROUPS,
            View::Instances => &SOURCES,
            _ => &[],
        }
    }

    /// The column rows are sorted by at first, by its place in [`View::columns`].
    pub fn first_sort(self) -> usize {
        let name = match self {
            View::Allocations => allocations::Row::SORT,
            View::Native => "live_bytes",
            View::References => references::Row::SORT,
            View::Instances => ClassRow::SORT,
            View::Changes => Change::SORT,
            View::Growth => Growing::SORT,
            View::Savings => Saving::SORT,
            View::Objects => "size",
            _ => return 0,
        };
        let columns = self.columns();
        columns
            .iter()
            .position(|(_, sort)| *sort == name)
            .unwrap_or(0)
    }
}

/// Where the instances of classes come from; at first what there is, without a safepoint for the VM's own histogram.
const SOURCES: [&str; 4] = {
    let [recording, dump, vm] = classes::SOURCES;
    ["", recording, dump, vm]
};

/// The columns that a table declares.
fn declared<R: Tabular>() -> Vec<Column> {
    report::live::shown(R::COLUMNS)
        .map(|column| (column.title, column.name))
        .collect()
}
