//! What a profile says, in either form, with what differs between two runs left out: times,
//! serials, ids, the names of lambda classes.

use std::collections::BTreeMap;

/// A number of objects and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Volume {
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
}

/// A row of SITES or of ALLOC SITES.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Site {
    pub(crate) class: String,
    /// `Class.method:line`, innermost first.
    pub(crate) frames: Vec<String>,
    pub(crate) live: Volume,
    pub(crate) allocated: Volume,
}

/// The frames of a row and its count.
pub(crate) type Row = (Vec<String>, u64);

/// What one file says.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// Sections in their order; neighbours of a kind count once.
    pub(crate) sections: Vec<String>,
    /// Names of threads that started.
    pub(crate) threads: BTreeMap<String, u64>,
    /// The rows of each sites section.
    pub(crate) sites: Vec<Vec<Site>>,
    /// Frames and calls of each CPU TIME section.
    pub(crate) calls: Vec<Vec<Row>>,
    /// Callee, caller and calls of each table of `cpu=old`.
    pub(crate) pairs: Vec<Vec<(String, String, u64)>>,
    /// Total, and frames and samples, of each CPU SAMPLES section.
    pub(crate) samples: Vec<(u64, Vec<Row>)>,
    /// Objects of the heap dump by class and by the frames that made them.
    pub(crate) objects: BTreeMap<(String, Vec<String>), u64>,
    /// Monitors of the last monitor dump: class, entries of the owner, who waits to enter and to
    /// be notified.
    pub(crate) monitors: Vec<(String, Option<u32>, usize, usize)>,
    /// Waits that began and ended, by class.
    pub(crate) waits: BTreeMap<(String, bool), u64>,
    /// Version, width of ids, settings: the binary form's fixed words.
    pub(crate) words: Vec<String>,
    /// What breaks the format.
    pub(crate) problems: Vec<String>,
}

impl Facts {
    pub(crate) fn section(&mut self, name: &str) {
        if self.sections.last().is_none_or(|last| last != name) {
            self.sections.push(name.to_owned());
        }
    }

    /// Counts an object of the heap dump.
    pub(crate) fn object(&mut self, class: String, frames: Vec<String>) {
        *self.objects.entry((class, frames)).or_default() += 1;
    }
}

/// What a file says, in whichever form it is.
pub(crate) fn facts(bytes: &[u8]) -> Facts {
    if hprof_text::is_text(bytes) {
        crate::replay::facts_text::read(bytes)
    } else {
        crate::replay::facts_binary::read(bytes)
    }
}

/// The name of a class without what a VM makes up for lambdas.
pub(crate) fn plain(class: &str) -> String {
    let end = class.find("$$Lambda").map_or(class.len(), |at| at + 8);
    class[..end].to_owned()
}
