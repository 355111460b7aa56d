//! What the roots reach, added up.

use crate::model::{ClassInfo, GroupSums, Summary};
use hprof::{Bytes, Diagnostics};
use rustc_hash::FxHashSet;

/// The reachable objects, by class.
#[derive(Debug, Default)]
pub(crate) struct Reached {
    objects: u64,
    shallow: u64,
    /// Per class: objects, shallow, retained.
    pub(crate) classes: Vec<[u64; 3]>,
    /// Other groups.
    pub(crate) groups: GroupSums,
    /// Virtual threads: id and file offset.
    pub(crate) virtual_threads: Vec<(u64, u64)>,
    /// References to objects that are not in the dump.
    pub(crate) dangling: u64,
    /// Instances that are shorter than their class.
    pub(crate) diagnostics: Diagnostics,
    /// Objects that only conservative local variables reach.
    pub(crate) conservative: FxHashSet<u64>,
}

impl Reached {
    pub(crate) fn new(classes: usize) -> Reached {
        Reached {
            classes: vec![[0; 3]; classes],
            ..Reached::default()
        }
    }

    /// Adds an object; `is_row`: also to the row of its class.
    #[inline]
    pub(crate) fn object(&mut self, class: u32, shallow: u64, is_row: bool) {
        self.objects += 1;
        self.shallow += shallow;
        if is_row {
            let row = &mut self.classes[class as usize];
            row[0] += 1;
            row[1] += shallow;
        }
    }

    pub(crate) fn add(&mut self, other: Reached) {
        self.objects += other.objects;
        self.shallow += other.shallow;
        for (all, one) in self.classes.iter_mut().zip(other.classes) {
            all[0] += one[0];
            all[1] += one[1];
        }
    }

    pub(crate) fn fill(self, classes: &mut [ClassInfo], summary: &mut Summary) {
        summary.reachable_objects = self.objects;
        summary.reachable_shallow = Bytes(self.shallow);
        summary.dangling_references = self.dangling;
        summary.diagnostics.extend(self.diagnostics);
        for (info, [objects, shallow, retained]) in classes.iter_mut().zip(self.classes) {
            info.reachable_objects = objects;
            info.reachable_shallow = Bytes(shallow);
            info.retained = Bytes(retained);
        }
    }
}
